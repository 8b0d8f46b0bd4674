"""Grids with missing cells, against dense solves over the observed cells only."""

import tracemalloc
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.bench import paper_3d, paper_3d_split
from dkrls_cli.bench.speed import LONG_SIGMAS
from dkrls_cli.cascade.errorbars import variance_on_grid
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.bars import distance
from dkrls_cli.gaps.pattern import empty_slices, pattern
from dkrls_cli.gaps.preconditioner import lasting, lasting_axis
from dkrls_cli.gaps.solve import complete, complete_in
from dkrls_cli.tuning.gaps import Setting, Wanted, choose, gap_bars

SHAPES = [(40,), (12, 14), (7, 6, 8), (4, 5, 3, 6)]
RIDGE = 1e-3


def case(shape, family="matern32", period=None, seed=0, share=0.3):
    """Noise on a small uneven grid of which some cells are missing, and kernels for it."""
    rng = np.random.default_rng(seed)
    axes = [rng.permutation(np.linspace(0, 12, m) + rng.uniform(0, 0.4, m)) for m in shape]
    kernels = [Kernel(family, 0.8 + 0.3 * axis, period) for axis in range(len(shape))]
    values = rng.standard_normal(shape)
    values[rng.random(shape) < share] = np.nan
    return values, axes, kernels


def dense_answers(values, axes, kernels, ridge, queries, mean=0.0):
    """Kernel ridge regression over the observed cells, from one dense system."""
    observed = np.isfinite(values).ravel()
    whole = reduce(np.kron, [gram(k, c, c) for k, c in zip(kernels, axes, strict=True)])
    system = whole[np.ix_(observed, observed)] + ridge * np.eye(observed.sum())
    weights = np.linalg.solve(system, values.ravel()[observed] - mean)
    crosses = [gram(k, q, c) for k, q, c in zip(kernels, queries, axes, strict=True)]
    cross = reduce(np.kron, crosses)[:, observed]
    return (cross @ weights + mean).reshape([q.size for q in queries])


def model_of(completed, axes, kernels, ridge, mean=0.0):
    levels = [Level(f"d{axis}", kernel) for axis, kernel in enumerate(kernels)]
    return fit_cascade(completed.values, axes, levels, joint_ridge=ridge, mean=mean)


@pytest.mark.parametrize("family", ["gaussian", "matern52", "matern32", "matern12"])
@pytest.mark.parametrize("period", [None, 16.0])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{len(shape)}d")
def test_completed_grid_holds_the_model_of_the_observed_cells(shape, family, period):
    values, axes, kernels = case(shape, family, period)
    completed = complete(values, axes, kernels, RIDGE, 0.3, tolerance=1e-13, limit=2000)
    missing = np.isnan(values)
    dense = dense_answers(values, axes, kernels, RIDGE, axes, mean=0.3)
    assert completed.converged
    np.testing.assert_array_equal(completed.values[~missing], values[~missing])
    np.testing.assert_allclose(completed.values[missing], dense[missing], rtol=0, atol=1e-8)
    new = [np.linspace(-0.5, 12.5, 4) for _ in shape]
    answers = model_of(completed, axes, kernels, RIDGE, 0.3).predict(new)
    expected = dense_answers(values, axes, kernels, RIDGE, new, mean=0.3)
    np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-8)


def test_filled_cells_have_no_weight():
    values, axes, kernels = case((7, 6, 8))
    completed = complete(values, axes, kernels, RIDGE, tolerance=1e-13, limit=2000)
    weights = model_of(completed, axes, kernels, RIDGE).weights(range(3))
    assert np.abs(weights[np.isnan(values)]).max() < 1e-8 * np.abs(weights).max()


def test_a_mask_that_lasts_is_solved_for_as_exactly():
    values, axes, kernels = case((9, 8, 10), "matern52", share=0.1)
    values[2:6, 3:7] = np.nan
    assert lasting_axis(np.isfinite(values)) == 2
    completed = complete(values, axes, kernels, RIDGE, tolerance=1e-13, limit=2000)
    dense = dense_answers(values, axes, kernels, RIDGE, axes)
    missing = np.isnan(values)
    np.testing.assert_allclose(completed.values[missing], dense[missing], rtol=0, atol=1e-8)


def test_a_mask_that_lasts_takes_few_iterations():
    rng = np.random.default_rng(0)
    axes = [np.arange(30.0), np.arange(24.0), np.arange(28.0)]
    kernels = [Kernel("matern32", 5.0), Kernel("matern52", 6.0), Kernel("matern52", 6.0)]
    values = np.sin(axes[0])[:, None, None] + np.sin(axes[1] / 4)[:, None] * np.cos(axes[2] / 5)
    values += 0.1 * rng.standard_normal(values.shape)
    values[:, 4:15, 6:20] = np.nan
    values[rng.random(values.shape) < 0.2] = np.nan
    completed = complete(values, axes, kernels, 0.02, tolerance=1e-6)
    assert completed.converged
    assert completed.iterations <= 20


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_tiny_and_huge_values_are_solved_for_alike(size):
    values, axes, kernels = case((9, 8, 10), "matern52", share=0.1)
    values[2:6, 3:7] = np.nan
    plain = complete(values, axes, kernels, RIDGE)
    scaled = complete(size * values, axes, kernels, RIDGE)
    assert scaled.iterations <= plain.iterations + 1
    np.testing.assert_allclose(scaled.values / size, plain.values, atol=1e-7)


def test_a_mask_that_is_a_product_is_solved_for_at_once():
    values, axes, kernels = case((9, 8, 10), "matern32", share=0.0)
    values[2:6, 3:7] = np.nan
    observed = np.isfinite(values)
    spectra = [decompose(gram(k, c, c)) for k, c in zip(kernels, axes, strict=True)]
    near = lasting(spectra, observed, RIDGE)
    v = reduce(np.kron, [s.vectors for s in spectra])
    w = reduce(np.kron, [s.values for s in spectra])
    left = np.random.default_rng(0).standard_normal(values.shape)
    result = np.empty(values.shape)
    near.solve(left, result)
    dense = np.linalg.solve((v.T * observed.ravel()) @ v + np.diag(RIDGE / w), left.ravel())
    np.testing.assert_allclose(result.ravel(), dense, rtol=0, atol=1e-3 * np.abs(dense).max())


def test_a_start_saves_iterations_and_changes_nothing():
    values, axes, kernels = case((12, 14))
    cold = complete(values, axes, kernels, RIDGE, tolerance=1e-11)
    warm = complete(values, axes, kernels, RIDGE, tolerance=1e-11, start=cold.values)
    assert warm.iterations < cold.iterations / 2
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-8)


@pytest.mark.parametrize("holes", [False, True], ids=["scattered", "holes"])
def test_the_papers_field_is_recovered(holes):
    train, _ = paper_3d_split(0)
    truth = paper_3d(train)
    rng = np.random.default_rng(1)
    missing = rng.random(truth.shape) < (0.0 if holes else 0.3)
    for _ in range(10 if holes else 0):
        sides = [round(0.1 * m) for m in truth.shape]
        corner = [rng.integers(0, m - s) for m, s in zip(truth.shape, sides, strict=True)]
        missing[tuple(slice(c, c + s) for c, s in zip(corner, sides, strict=True))] = True
    kernels = [Kernel("gaussian", sigma) for sigma in LONG_SIGMAS]
    completed = complete(np.where(missing, np.nan, truth), train, kernels, 1e-12)
    assert completed.converged
    assert completed.iterations <= (100 if holes else 30)
    assert np.abs(completed.values - truth).max() < 1e-5


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(3)), st.floats(-50, 50), st.floats(-3, 3), st.integers(0, 99))
def test_order_of_axes_shifts_and_factors_do_not_matter(order, shift, factor, seed):
    values, axes, kernels = case((5, 6, 4), seed=seed)
    plain = complete(values, axes, kernels, RIDGE, tolerance=1e-12, limit=2000).values
    turned = complete(
        factor * values.transpose(order),
        [axes[axis] + shift for axis in order],
        [kernels[axis] for axis in order],
        RIDGE,
        tolerance=1e-12,
        limit=2000,
    ).values
    np.testing.assert_allclose(turned, factor * plain.transpose(order), atol=1e-7)


def test_answers_are_linear_in_the_data():
    values, axes, kernels = case((8, 9))
    other = np.where(np.isnan(values), np.nan, np.random.default_rng(5).standard_normal((8, 9)))
    one, two, both = (
        complete(data, axes, kernels, RIDGE, tolerance=1e-13, limit=2000).values
        for data in (values, other, 2 * values - other)
    )
    np.testing.assert_allclose(both, 2 * one - two, atol=1e-8)


def test_a_complete_grid_comes_back():
    values = np.random.default_rng(0).standard_normal((5, 6))
    completed = complete(values, [np.arange(5.0), np.arange(6.0)], [Kernel(), Kernel()], 0.1)
    assert completed.converged
    np.testing.assert_array_equal(completed.values, values)


def test_a_constant_is_filled_with_itself():
    values = np.full((6, 7), 3.0)
    values[2:4, 3] = np.nan
    axes = [np.arange(6.0), np.arange(7.0)]
    filled = complete(values, axes, [Kernel(), Kernel()], 0.1, mean=3.0).values
    np.testing.assert_array_equal(filled, np.full((6, 7), 3.0))


def test_a_solve_that_was_cut_short_says_so():
    values, axes, kernels = case((12, 14))
    completed = complete(values, axes, kernels, 1e-6, limit=2)
    assert not completed.converged
    assert completed.iterations == 2
    assert np.isfinite(completed.values).all()


def test_a_solve_that_is_watched_ends_when_told():
    values, axes, kernels = case((12, 14))
    spectra = [decompose(gram(k, c, c)) for k, c in zip(kernels, axes, strict=True)]
    seen = []

    def enough(answers):
        seen.append(answers)
        return len(seen) == 2

    completed = complete_in(spectra, values, 1e-6, 0.2, tolerance=0, limit=99, enough=enough)
    assert completed.iterations == 20
    assert not completed.converged
    missing = np.isnan(values)
    np.testing.assert_allclose(seen[-1][missing], completed.values[missing], atol=1e-12)


def test_memory_is_a_few_arrays():
    rng = np.random.default_rng(0)
    axes = [np.arange(132.0), np.arange(73.0), np.arange(144.0)]
    values = rng.standard_normal((132, 73, 144))
    values[:, 20:50, 30:100] = np.nan
    values[rng.random(values.shape) < 0.2] = np.nan
    kernels = [Kernel("matern12", 20.0), Kernel("matern32", 6.0), Kernel("matern32", 8.0)]
    tracemalloc.start()
    complete(values, axes, kernels, 0.01, limit=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5.2 * values.nbytes


def test_nothing_observed_and_no_ridge_are_refused():
    with pytest.raises(InputError, match="All 6 values are missing"):
        complete(np.full(6, np.nan), [np.arange(6.0)], [Kernel()], 0.1)
    with pytest.raises(SettingError, match="Invalid joint ridge -1"):
        complete(np.ones(6), [np.arange(6.0)], [Kernel()], -1.0)


def test_pattern_of_a_mask():
    observed = np.ones((20, 12, 30), bool)
    observed[:, :, [4, 17]] = False  # lost time steps
    observed[3:9, 2:8] = False  # land
    observed[12:16, 4:7, 20:25] = False  # a cloud
    found = pattern(observed, last=2)
    assert found.missing == pytest.approx(1 - observed.mean())
    assert found.lost == (0, 0, 2)
    assert found.fixed == pytest.approx(36 / 240)
    assert found.scattered == pytest.approx(4 * 3 * 5 / (240 * 28))
    assert found.shape == (4, 3, 5)
    assert [places.tolist() for places in empty_slices(observed)] == [[], [], [4, 17]]


def field(seed=0):
    """A smooth field with some noise, a lasting mask and scattered gaps."""
    rng = np.random.default_rng(seed)
    axes = [np.linspace(0, 6, 20), np.linspace(0, 5, 14), np.arange(12.0)]
    truth = np.sin(axes[0])[:, None, None] * np.cos(axes[1])[:, None] * np.sin(axes[2] / 3 + 1)
    values = truth + 0.05 * rng.standard_normal(truth.shape)
    holed = values.copy()
    holed[3:8, 4:9] = np.nan
    holed[rng.random(values.shape) < 0.15] = np.nan
    return values, holed, axes


@pytest.fixture(scope="module")
def chosen():
    _, holed, axes = field()
    return choose(holed, axes, [Wanted()] * 3)


def test_choosing_fills_better_than_the_mean_of_neighbours(chosen):
    values, holed, axes = field()
    completed = complete(holed, axes, chosen.setting.kernels, chosen.setting.ridge)
    scattered = np.isnan(holed)
    scattered[3:8, 4:9] = False
    error = np.sqrt(np.mean((completed.values - values)[scattered] ** 2))
    assert error < 0.07  # the noise is 0.05
    assert 0.7 < error / chosen.error < 1.3


def test_choosing_is_repeatable_and_keeps_what_is_given(chosen):
    _, holed, axes = field()
    assert choose(holed, axes, [Wanted()] * 3).setting == chosen.setting
    given = [Wanted("matern12", 2.0), Wanted("gaussian"), Wanted(sigma=4.0, period=12.0)]
    kernels = choose(holed, axes, given, ridge=0.05).setting.kernels
    assert kernels[0] == Kernel("matern12", 2.0)
    assert kernels[1].family == "gaussian"
    assert (kernels[2].sigma, kernels[2].period) == (4.0, 12.0)
    whole = [Wanted("matern32", 2.0), Wanted("matern32", 2.0), Wanted("matern32", 4.0)]
    by_hand = choose(holed, axes, whole, ridge=0.05)
    assert by_hand.tried == 1
    assert by_hand.setting == Setting(tuple(Kernel(w.family, w.sigma) for w in whole), 0.05)


@pytest.mark.parametrize("shape", [(1, 1), (2,), (3, 2), (1, 9), (30,)])
@pytest.mark.parametrize("constant", [False, True])
def test_tiny_and_constant_grids_get_finite_settings(shape, constant):
    rng = np.random.default_rng(0)
    values = np.full(shape, 2.0) if constant else rng.standard_normal(shape)
    if values.size > 2:
        values.flat[1] = np.nan
    axes = [np.arange(float(m)) for m in shape]
    found = choose(values, axes, [Wanted()] * len(shape), mean=float(np.nanmean(values)))
    filled = complete(values, axes, found.setting.kernels, found.setting.ridge).values
    assert np.isfinite(found.error)
    assert np.isfinite(filled).all()
    bars = gap_bars(axes, found.setting.kernels, np.isfinite(values), found)
    assert np.isfinite(bars.distance).all()
    assert np.isfinite([bars.scale, bars.power]).all()


def test_a_large_grid_is_seen_through_windows():
    rng = np.random.default_rng(0)
    axes = [np.arange(60.0), np.arange(50.0), np.arange(40.0)]
    values = np.sin(axes[0] / 5)[:, None, None] + np.cos(axes[1] / 6)[:, None] * np.sin(axes[2] / 7)
    values[rng.random(values.shape) < 0.3] = np.nan
    given = [Wanted("matern52", 8.0)] * 3
    found = choose(values, axes, given, ridge=1e-4)
    assert len(found.windows) == 3
    assert all(window.values.size < values.size / 4 for window in found.windows)


@pytest.fixture(scope="module")
def barred(chosen):
    _, holed, axes = field()
    kernels, ridge = chosen.setting.kernels, chosen.setting.ridge
    model = model_of(complete(holed, axes, kernels, ridge), axes, kernels, ridge)
    return model, gap_bars(axes, kernels, np.isfinite(holed), chosen)


def test_error_bars_cover_nine_of_ten(barred):
    values, holed, _ = field()
    model, bars = barred
    spread = np.sqrt(variance_on_grid(bars, model, model.coordinates))
    scattered = np.isnan(holed)
    scattered[3:8, 4:9] = False
    inside = np.abs(model.predict() - values)[scattered] <= 1.645 * spread[scattered]
    assert 0.85 <= inside.mean() <= 0.95


def test_error_bars_are_zero_on_data_and_grow_into_holes(barred):
    _, holed, _ = field()
    model, bars = barred
    spread = variance_on_grid(bars, model, model.coordinates)
    assert (spread[np.isfinite(holed)] == 0).all()
    assert (spread[np.isnan(holed)] > 0).all()
    assert spread[5, 6].mean() > spread[3, 4].mean() > spread[np.isnan(holed)].min()
    assert (variance_on_grid(bars, model, model.coordinates, smooth=True) > 0).all()


def test_error_bars_at_points_are_those_of_the_grid(barred):
    model, bars = barred
    queries = [np.array([0.0, 1.234, 7.0]), model.coordinates[1][[0, 6]], np.array([3.0, 4.4])]
    points = [axis.ravel() for axis in np.meshgrid(*queries, indexing="ij")]
    for smooth in (False, True):
        on_grid = variance_on_grid(bars, model, queries, smooth=smooth)
        at_points = bars.variance_at_points(model, points, smooth=smooth)
        np.testing.assert_allclose(at_points, on_grid.ravel(), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("constant", [0.0, 1.5])
@pytest.mark.parametrize("period", [None, 9.0])
def test_distance_is_the_variance_given_neighbours_along_the_axes(period, constant):
    values, axes, _ = case((9, 8), seed=3)
    axes = [np.arange(9.0), np.arange(8.0)]
    kernels = [Kernel("matern32", 2.0, period, constant), Kernel("matern52", 3.0)]
    prior = kernels[0].variance
    observed = np.isfinite(values)
    found = distance(axes, kernels, observed, RIDGE)
    for i, j in np.argwhere(~observed):
        column, row = np.flatnonzero(observed[:, j]), np.flatnonzero(observed[i])
        turns = (column[:, None] + np.array([-9, 0, 9])).ravel() if period else column
        near = [(turns[turns < i].max(initial=-99), j), (turns[turns > i].min(initial=99), j)]
        near += [(i, row[row < j].max(initial=-99)), (i, row[row > j].min(initial=99))]
        places = sorted({(a % 9, b) for a, b in near if abs(a) < 99 and abs(b) < 99})
        cells = [np.array(c, float) for c in zip(*places, strict=True)]
        pairs = [gram(k, c, c) for k, c in zip(kernels, cells, strict=True)]
        spot = [np.array([float(z)]) for z in (i, j)]
        here = [gram(k, z, c)[0] for k, z, c in zip(kernels, spot, cells, strict=True)]
        cross, system = here[0] * here[1], pairs[0] * pairs[1] + RIDGE * np.eye(len(places))
        assert found[i, j] == pytest.approx(
            prior - cross @ np.linalg.solve(system, cross), abs=1e-9
        )
