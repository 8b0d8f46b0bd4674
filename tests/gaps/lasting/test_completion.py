"""Slices with the same missing cells, completed as each is on its own."""

import tracemalloc

import numpy as np
import pytest
from lasting_masks import coast

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.errors import InputError
from dkrls_cli.gaps.lasting import completion, sequential
from dkrls_cli.gaps.lasting.completion import MaskedSlices, completion_bytes
from dkrls_cli.gaps.solve import complete

SHAPE = (22, 28)
LAT, LON = np.linspace(80.0, -80.0, SHAPE[0]), (np.arange(SHAPE[1]) * 360 / SHAPE[1] + 200) % 360
KERNELS = Kernel("matern32", 25.0), Kernel("matern32", 30.0, 360.0)


def slices_of(count=3, seed=2):
    rng = np.random.default_rng(seed)
    waves = rng.standard_normal((count, 1, 1)) * np.cos(np.radians(LON - 40.0))
    return (
        5.0 + waves * np.sin(np.radians(LAT))[:, None] + 0.1 * rng.standard_normal((count, *SHAPE))
    )


def dense(values, missing, ridge, mean):
    """The missing cells of slices, from one dense solve over the observed ones."""
    whole = np.kron(gram(KERNELS[0], LAT, LAT), gram(KERNELS[1], LON, LON))
    gone, seen = np.flatnonzero(missing), np.flatnonzero(~missing)
    data = values.reshape(len(values), -1)[:, seen].T - mean
    among = whole[np.ix_(seen, seen)] + ridge * np.eye(seen.size)
    return mean + (whole[np.ix_(gone, seen)] @ np.linalg.solve(among, data)).T


@pytest.mark.parametrize("ridge", [1e-1, 1e-3, 1e-6])
def test_missing_cells_are_those_of_the_dense_solve(ridge):
    missing, values = coast(SHAPE), slices_of()
    slices = MaskedSlices.build(missing, [LAT, LON], KERNELS, ridge)
    done = slices.complete(np.where(missing, np.nan, values), 4.0, tolerance=1e-10)
    np.testing.assert_allclose(
        done.values[:, missing], dense(values, missing, ridge, 4.0), atol=1e-7
    )
    np.testing.assert_allclose(done.values[:, ~missing], values[:, ~missing], atol=1e-13)
    assert done.iterations <= 40


def test_a_slice_is_completed_as_a_grid_of_its_own():
    missing, values = coast(SHAPE, 1), slices_of()
    slices = MaskedSlices.build(missing, [LAT, LON], KERNELS, 1e-2)
    gaps = np.where(missing, np.nan, values)
    done = slices.complete(gaps.copy(), 5.0, tolerance=1e-9)
    for own, found in zip(gaps, done.values, strict=True):
        expected = complete(own, [LAT, LON], KERNELS, 1e-2, 5.0)
        np.testing.assert_allclose(found, expected.values, atol=1e-6)


def test_answers_are_those_of_weights_on_observed_cells():
    missing, values = coast(SHAPE), slices_of()
    slices = MaskedSlices.build(missing, [LAT, LON], KERNELS, 1e-3)
    done = slices.complete(np.where(missing, np.nan, values), 5.0, tolerance=1e-11)
    weights = slices.precision(done.values - 5.0)
    assert np.abs(weights[:, missing]).max() < 1e-6 * np.abs(weights).max()
    queries = np.array([33.0, -7.0]), np.array([5.0, 123.0, 359.0])
    rows = [slices.rows(axis, query) for axis, query in enumerate(queries)]
    coefficients = slices.coefficients(done.values - 5.0)
    found = np.einsum("nij,ai,bj->nab", coefficients, *rows)
    crosses = [gram(k, q, c) for k, q, c in zip(KERNELS, queries, (LAT, LON), strict=True)]
    np.testing.assert_allclose(found, np.einsum("nij,ai,bj->nab", weights, *crosses), atol=1e-9)


def test_slices_without_missing_cells_are_left_as_they_are():
    values = slices_of()
    slices = MaskedSlices.build(np.zeros(SHAPE, bool), [LAT, LON], KERNELS, 1e-3)
    done = slices.complete(values.copy(), 5.0, tolerance=1e-9)
    np.testing.assert_array_equal(done.values, values)
    assert done.iterations == 0


def test_slices_without_data_are_refused():
    with pytest.raises(InputError, match="All 616 cells"):
        MaskedSlices.build(np.ones(SHAPE, bool), [LAT, LON], KERNELS, 1e-3)


def test_memory_grows_with_slices_and_land():
    few, many = coast(SHAPE, share=0.1), coast(SHAPE, share=0.6)
    assert completion_bytes(few, 1000) < completion_bytes(many, 1000)
    assert completion_bytes(few, 2000) - completion_bytes(few, 1000) == 80_000


@pytest.mark.parametrize("at_once", [2**16, 2**20])
def test_the_memory_of_a_mask_is_as_told(at_once, monkeypatch):
    """Of predicting few cells at a time the sparse matrix takes most, of many these."""
    monkeypatch.setattr(sequential, "AT_ONCE", at_once)
    monkeypatch.setattr(completion, "AT_ONCE", at_once)
    land = coast((48, 48), share=0.5)
    MaskedSlices.build(coast(SHAPE), [LAT, LON], KERNELS, 1e-3)  # what is loaded first
    tracemalloc.start()
    MaskedSlices.build(land, [np.arange(48.0)] * 2, [KERNELS[0]] * 2, 1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < completion_bytes(land, 0) < 2.0 * peak  # the sparse factor is not traced


@pytest.mark.slow
def test_iterations_are_few_where_a_plain_solve_takes_many():
    shape = (90, 180)
    lat, lon = np.linspace(-89.0, 89.0, 90), np.arange(0.0, 360.0, 2.0)
    kernels = Kernel("matern32", 8.0), Kernel("matern32", 8.0, 360.0)
    missing = coast(shape, 4)
    values = np.cos(np.radians(lat))[:, None] * np.sin(np.radians(3 * lon))
    slices = MaskedSlices.build(missing, [lat, lon], kernels, 1e-4)
    done = slices.complete(np.where(missing, np.nan, values)[None], 0.0, tolerance=1e-9)
    assert done.change <= 1e-9
    assert done.iterations <= 60
