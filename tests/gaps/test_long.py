"""Missing cells of grids with a long axis, against dense solves over the observed cells."""

import tracemalloc

import numpy as np
import pytest
from gap_grids import case, dense_answers, model_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps import long as module
from dkrls_cli.gaps.long import complete_long, find_long_axis
from dkrls_cli.gaps.solve import complete

MEAN = 0.3
HOW = {"tolerance": 1e-7, "limit": 300}


def field(m=300, n=6, seed=0):
    """A walk with a cycle at each of some places."""
    rng = np.random.default_rng(seed)
    t, x = np.arange(float(m)), np.arange(float(n))
    walk = 0.1 * np.cumsum(rng.standard_normal((m, 1)), axis=0)
    cycle = np.sin(t / 4)[:, None] * np.cos(x / 5)
    return walk + cycle + 0.05 * rng.standard_normal((m, n)), [t, x]


def mask(name, shape=(300, 6), seed=1):
    m, n = shape
    missing = np.zeros(shape, bool)
    if name in ("scattered", "dead", "everything"):
        missing |= np.random.default_rng(seed).random(shape) < 0.1
    if name in ("steps", "everything"):
        missing[100:120] = missing[:9] = missing[-7:] = True
    if name in ("dead", "everything"):
        missing[: m - 50, 2] = True
    if name in ("block", "everything"):
        missing[40 : m // 2, : n // 2] = True
    if name in ("column", "everything"):
        missing[:, 4] = True
    return missing


MASKS = ["scattered", "steps", "dead", "block", "column", "everything"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(
    ("family", "sigma", "ridge"),
    [("matern52", 20.0, 1e-3), ("matern32", 100.0, 1e-5), ("matern12", 50.0, 0.1)],
)
def test_every_mask_is_filled_as_one_dense_system_says(name, family, sigma, ridge):
    values, axes = field()
    missing = mask(name)
    kernels = [Kernel(family, sigma, constant=1.0), Kernel("matern32", 4.0)]
    holed = np.where(missing, np.nan, values)
    done = complete_long(holed, axes, kernels, 0, ridge, MEAN, **HOW)
    expected = dense_answers(holed, axes, kernels, ridge, axes, MEAN)
    assert done.change <= 1e-7
    np.testing.assert_allclose(done.values[missing], expected[missing], rtol=0, atol=2e-6)
    np.testing.assert_array_equal(done.values[~missing], values[~missing])


@pytest.mark.parametrize("name", ["scattered", "steps", "dead"])
def test_a_long_grid_is_filled_as_a_short_one_is(name, monkeypatch):
    values, axes = field(500, 5)
    holed = np.where(mask(name, (500, 5)), np.nan, values)
    kernels = [Kernel("matern52", 15.0, constant=1.0, cycle=25.0), Kernel("gaussian", 3.0)]
    dense = complete(holed, axes, kernels, 1e-3, MEAN)
    monkeypatch.setattr(choice, "LONG", 200)
    long = complete(holed, axes, kernels, 1e-3, MEAN)
    assert dense.converged
    assert long.converged
    np.testing.assert_allclose(long.values, dense.values, rtol=0, atol=1e-6)


def test_a_series_is_solved_for_directly(monkeypatch):
    monkeypatch.setattr(choice, "LONG", 100)
    values, (t, _) = field(400, 1)
    series = np.where(np.random.default_rng(0).random(400) < 0.3, np.nan, values[:, 0])
    series[200:260] = np.nan
    kernels = [Kernel("matern32", 12.0)]
    done = complete(series, [t], kernels, 0.01, MEAN)
    assert (done.iterations, done.residual, done.converged) == (0, 0.0, True)
    expected = dense_answers(series, [t], kernels, 0.01, [t], MEAN)
    lost = np.isnan(series)
    np.testing.assert_allclose(done.values[lost], expected[lost], atol=1e-11)


@pytest.mark.slow
@given(seed=st.integers(0, 50), long=st.integers(0, 2), share=st.sampled_from([0.05, 0.3, 0.8]))
@settings(max_examples=25, deadline=None)
def test_any_order_of_uneven_coordinates_and_any_place_of_the_long_axis(seed, long, share):
    shape = [4, 5, 3]
    shape[long] = 70
    values, axes, kernels = case(shape, "matern32", seed=seed, share=share)
    done = complete_long(values, axes, kernels, long, 1e-3, MEAN, **HOW)
    expected = dense_answers(values, axes, kernels, 1e-3, axes, MEAN)
    lost = np.isnan(values)
    np.testing.assert_allclose(done.values[lost], expected[lost], rtol=0, atol=1e-5)


def test_filled_cells_have_no_weight_in_the_model_of_the_completed_grid(monkeypatch):
    monkeypatch.setattr(choice, "LONG", 100)
    values, axes = field(200)
    missing = mask("everything", (200, 6))
    kernels = [Kernel("matern32", 10.0), Kernel("matern52", 3.0)]
    done = complete(np.where(missing, np.nan, values), axes, kernels, 0.01, MEAN)
    weights = model_of(done, axes, kernels, 0.01, MEAN).weights(range(2))
    assert np.abs(weights[missing]).max() < 1e-5 * np.abs(weights).max()


def test_a_start_saves_iterations_and_a_limit_is_told():
    values, axes = field()
    holed = np.where(mask("block"), np.nan, values)
    kernels = [Kernel("matern52", 20.0), Kernel("matern32", 4.0)]
    cold = complete_long(holed, axes, kernels, 0, 1e-3, MEAN, **HOW)
    warm = complete_long(holed, axes, kernels, 0, 1e-3, MEAN, start=cold.values, **HOW)
    assert warm.iterations == 0 < cold.iterations
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-12)
    short = complete_long(holed, axes, kernels, 0, 1e-3, MEAN, tolerance=1e-7, limit=1)
    assert short.iterations == 1
    assert short.change > 1e-7


def test_long_holes_take_few_iterations():
    values, axes = field(2000, 4)
    missing = mask("dead", (2000, 4))
    kernels = [Kernel("matern52", 20.0, constant=1.0), Kernel("matern32", 4.0)]
    done = complete_long(np.where(missing, np.nan, values), axes, kernels, 0, 1e-3, MEAN, **HOW)
    assert done.change <= 1e-7
    assert done.iterations < 30


def test_long_and_wide_holes_take_few_iterations_under_a_small_ridge():
    values, axes = field(1500, 8)
    missing = mask("block", (1500, 8))
    kernels = [Kernel("matern32", 100.0), Kernel("matern32", 4.0)]
    done = complete_long(np.where(missing, np.nan, values), axes, kernels, 0, 1e-6, MEAN, **HOW)
    assert done.change <= 1e-7
    assert done.iterations < 25


def test_directions_without_an_eigenvalue_are_no_obstacle():
    """A Gaussian on near coordinates has eigenvalues of exactly 0."""
    values, (t, _) = field(150, 12)
    x = np.linspace(0, 0.1, 12)
    kernels = [Kernel("matern32", 10.0), Kernel("gaussian", 2.0)]
    holed = np.where(mask("scattered", (150, 12)), np.nan, values)
    known = decompose(gram(kernels[1], x, x))
    floored = Spectrum(known.vectors, np.where(known.values < 1e-14, 0.0, known.values))
    done = complete_long(holed, [t, x], kernels, 0, 0.01, MEAN, spectra=[None, floored], **HOW)
    expected = dense_answers(holed, [t, x], kernels, 0.01, [t, x], MEAN)
    lost = np.isnan(holed)
    np.testing.assert_allclose(done.values[lost], expected[lost], atol=1e-6)


@pytest.mark.parametrize("kept", [0, 2**30])
def test_factors_are_kept_while_they_are_small(kept, monkeypatch):
    monkeypatch.setattr(module, "_KEPT", kept)
    made = []
    build = module.LongFactor.build
    monkeypatch.setattr(module.LongFactor, "build", lambda *given: made.append(1) or build(*given))
    values, axes = field()
    holed = np.where(mask("scattered"), np.nan, values)
    kernels = [Kernel("matern32", 20.0), Kernel("matern32", 4.0)]
    done = complete_long(holed, axes, kernels, 0, 1e-3, MEAN, **HOW)
    products = done.iterations + 1
    assert len(made) == (6 if kept else 6 * products)


def test_columns_too_many_for_one_spectrum_are_missing_cells_like_others(monkeypatch):
    values, axes, kernels = case((80, 4, 3), "matern32", share=0.1)
    values[:, 1, 2] = np.nan
    apart = complete_long(values, axes, kernels, 0, 1e-3, MEAN, **HOW)
    monkeypatch.setattr(module, "LONG", 5)
    together = complete_long(values, axes, kernels, 0, 1e-3, MEAN, **HOW)
    assert together.iterations > 0
    np.testing.assert_allclose(together.values, apart.values, atol=1e-5)


def test_steps_stay_where_a_kernel_has_no_form_without_them(monkeypatch):
    values, axes = field()
    holed = np.where(mask("steps"), np.nan, values)
    kernels = [Kernel("matern32", 20.0), Kernel("matern32", 4.0)]
    direct = complete_long(holed, axes, kernels, 0, 1e-3, MEAN, **HOW)
    real = choice.estimate
    monkeypatch.setattr(module, "estimate", lambda k, c: real(k, c) if c.size == 300 else None)
    iterated = complete_long(holed, axes, kernels, 0, 1e-3, MEAN, **HOW)
    assert (direct.iterations, iterated.iterations > 0) == (0, True)
    np.testing.assert_allclose(iterated.values, direct.values, atol=1e-6)


def test_complete_and_empty_grids(monkeypatch):
    monkeypatch.setattr(choice, "LONG", 10)
    t, kernels = np.arange(100.0), [Kernel("matern32", 3.0)]
    whole = complete(np.sin(t), [t], kernels, 0.1)
    np.testing.assert_array_equal(whole.values, np.sin(t))
    assert (whole.iterations, whole.converged) == (0, True)
    with pytest.raises(InputError, match="All 100 values are missing"):
        complete(np.full(100, np.nan), [t], kernels, 0.1)


def test_the_long_axis_is_the_longest_one(monkeypatch):
    monkeypatch.setattr(choice, "LONG", 10)
    kernels = [Kernel("matern32", 2.0)] * 3
    assert find_long_axis([np.arange(5.0)] * 3, kernels) is None
    sizes = [np.arange(5.0), np.arange(100.0), np.arange(90.0)]
    assert find_long_axis(sizes, kernels) == 1
    monkeypatch.setattr("dkrls_cli.cascade.factors.levels.LARGEST", 80)
    with pytest.raises(SettingError, match="'axis 1' and 'axis 2'"):
        find_long_axis(sizes, kernels)


def test_memory_does_not_grow_with_the_square_of_the_axis():
    values, axes = field(12_000, 2)
    holed = np.where(mask("scattered", (12_000, 2)), np.nan, values)
    kernels = [Kernel("matern32", 20.0), Kernel("matern32", 4.0)]
    tracemalloc.start()
    complete_long(holed, axes, kernels, 0, 1e-2, MEAN, **HOW)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000**2  # bytes: an eighth of one matrix
