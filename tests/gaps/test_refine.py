"""Filled cells are refined until they are what the observed cells predict."""

from functools import reduce

import numpy as np
import pytest
from gap_grids import case

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.gaps import solve
from dkrls_cli.gaps.field import make_field, product_field
from dkrls_cli.gaps.refine import refine, settle
from dkrls_cli.gaps.solve import complete

X, Y = np.linspace(0, 6, 24), np.linspace(0, 4, 17)


def holed(noise=0.0):
    """A smooth field with a block and single cells missing."""
    rng = np.random.default_rng(0)
    values = np.sin(X)[:, None] * np.cos(Y) + 2 + noise * rng.standard_normal((24, 17))
    values[8:14, 5:10] = np.nan
    values[rng.random(values.shape) < 0.1] = np.nan
    return values


def predicted(values, axes, kernels, ridge, mean):
    """The missing cells from the observed ones, by one dense system."""
    observed = np.isfinite(values).ravel()
    whole = reduce(np.kron, [gram(k, c, c) for k, c in zip(kernels, axes, strict=True)])
    system = whole[np.ix_(observed, observed)] + ridge * np.eye(observed.sum())
    weights = np.linalg.solve(system, values.ravel()[observed] - mean)
    return whole[np.ix_(~observed, observed)] @ weights + mean


@pytest.mark.parametrize("ridge", [0.0, 1e-14, 1e-13, 1e-12, 1e-10, 1e-7, 1e-3])
@pytest.mark.parametrize("family", ["matern52", "matern32", "matern12"])
def test_cells_are_right_however_small_the_ridge(family, ridge):
    """A residual of 1e-9 once left cells off by the whole spread of the data here."""
    values, kernels = holed(), [Kernel(family, 1.5), Kernel(family, 2.0)]
    done = complete(values, [X, Y], kernels, ridge, 2.0)
    expected = predicted(values, [X, Y], kernels, ridge, 2.0)
    assert done.converged
    assert np.abs(done.values[np.isnan(values)] - expected).max() < 3e-5  # round-off at 1e-14
    np.testing.assert_array_equal(done.values[np.isfinite(values)], values[np.isfinite(values)])


def refined(values, kernels, axes, ridge, mean, start, **how):
    spectra = [decompose(gram(k, c, c)) for k, c in zip(kernels, axes, strict=True)]
    observed = np.isfinite(values)
    filled = np.where(observed, values, start)
    how = {"tolerance": 1e-10, "limit": 200, **how}
    return refine(product_field(spectra), filled, observed, ridge, mean, **how)


@pytest.mark.parametrize("shape", [(15,), (6, 7), (4, 5, 6)])
@pytest.mark.parametrize("ridge", [1e-6, 0.1])
def test_any_start_ends_at_the_dense_solution(shape, ridge):
    values, axes, kernels = case(shape)
    missing = np.isnan(values)
    expected = predicted(values, axes, kernels, ridge, 0.3)
    for start in (0.3, -5.0, 40.0):
        found = refined(values, kernels, axes, ridge, 0.3, start)
        assert 0 < found.iterations <= missing.sum() + 2
        assert found.change <= 1e-10
        np.testing.assert_allclose(found.values[missing], expected, atol=1e-7)
        np.testing.assert_allclose(found.values[~missing], values[~missing], atol=1e-12)


def test_cells_that_are_right_stay_as_they_are():
    values, axes, kernels = case((6, 7))
    right = refined(values, kernels, axes, 1e-2, 0.0, 0.0).values
    again = refined(values, kernels, axes, 1e-2, 0.0, right, tolerance=1e-8)
    assert again.iterations == 0
    assert again.change <= 1e-8
    np.testing.assert_allclose(again.values, right, atol=1e-14)


def test_refinement_ends_when_its_last_changes_add_up_to_little():
    """A small change between large ones does not end it."""
    values, kernels = holed(), [Kernel("matern52", 1.5), Kernel("matern52", 2.0)]

    def run(**how):
        return refined(values, kernels, [X, Y], 1e-12, 2.0, 2.0, tolerance=1e-2, **how)

    for calm in (1, 40):
        done = run(calm=calm)
        before = run(calm=calm, limit=done.iterations - 1)
        assert done.change <= 1e-2 < before.change
    single = [run(limit=count, calm=1).change for count in range(1, 10)]  # of one step each
    assert min(single) > 1e-2
    assert run(calm=40).iterations > run(calm=1).iterations + 5


def test_cells_that_seem_right_are_refined_where_a_single_change_tells_nothing():
    values, axes, kernels = case((6, 7))
    right = refined(values, kernels, axes, 1e-2, 0.0, 0.0).values
    again = refined(values, kernels, axes, 1e-2, 0.0, right, tolerance=1e-8, calm=3)
    assert again.iterations > 0


def test_refinement_ends_at_once_where_nothing_is_left():
    found = settle(
        lambda grid: 2.0 * grid,
        lambda residual: residual / 2.0,
        np.array([1.0, 5.0, 1.0]),
        np.array([True, False, True]),
        0.0,
        tolerance=1e-6,
        limit=99,
        calm=5,
    )
    assert (found.iterations, found.change) == (1, 0.0)
    assert found.values.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("steps", "converged", "calm"), [(400, True, 1), (400, False, 40), (5, False, 3)]
)
def test_a_solve_that_has_not_converged_is_refined_for_a_tenth_of_its_steps(
    steps, converged, calm, monkeypatch
):
    given = []

    def noting(*args, **how):
        given.append(how["calm"])
        return refine(*args, **how)

    monkeypatch.setattr(solve, "refine", noting)
    values, axes, kernels = case((6, 7))
    done = solve.Completed(np.where(np.isnan(values), 0.0, values), steps, 1.0, converged)
    solve.refine_cells(done, make_field(axes, kernels), values, 1e-2, 0.0, limit=99)
    assert given == [calm]


def test_refinement_that_was_cut_short_says_how_much_is_due():
    values, axes, kernels = case((6, 7))
    short = refined(values, kernels, axes, 1e-6, 0.0, 100.0, limit=1)
    assert short.iterations == 1
    assert short.change > 1e-3
    assert refined(values, kernels, axes, 1e-6, 0.0, 100.0, limit=0).iterations == 0


def test_the_change_is_a_share_of_the_spread():
    values, axes, kernels = case((6, 7))
    one = refined(values, kernels, axes, 1e-3, 0.0, 1.0, limit=0)
    thousand = refined(1000 * values, kernels, axes, 1e-3, 0.0, 1000.0, limit=0)
    assert thousand.change == pytest.approx(one.change)
    shifted = refined(values + 7, kernels, axes, 1e-3, 7.0, 8.0, limit=0)
    assert shifted.change == pytest.approx(one.change)


def test_data_without_spread_fills_with_the_mean():
    values = np.full((5, 6), 3.0)
    values[2, 2:4] = np.nan
    axes, kernels = [np.arange(5.0), np.arange(6.0)], [Kernel("matern32", 2.0)] * 2
    done = complete(values, axes, kernels, 1e-3, 3.0)
    assert done.converged
    np.testing.assert_allclose(done.values, 3.0)


@pytest.mark.parametrize("mean", [0.0, 2.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-16, 1e-3, 10.0])
@pytest.mark.parametrize("family", ["gaussian", "matern12"])
@pytest.mark.parametrize("observed", [1, 2, 6, 12])
@pytest.mark.parametrize("data", [np.zeros(12), np.full(12, 2.0), np.arange(12.0)])
def test_exact_solutions_and_holes_larger_than_the_data_end(data, observed, family, ridge, mean):
    x, values = np.linspace(0, 5, 12), data.copy()
    values[observed:] = np.nan
    values[[3, 4]] = np.nan
    done = complete(values, [x], [Kernel(family, 1.0)], ridge, mean)
    assert np.isfinite(done.values).all()
    assert 0 <= done.residual < np.inf
    known = np.isfinite(values)
    np.testing.assert_array_equal(done.values[known], values[known])
