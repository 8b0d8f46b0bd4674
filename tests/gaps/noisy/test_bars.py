"""Error bars of observations with errors, against the dense posterior."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from gap_grids import model_of

from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.calibration.hats import hats_of
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import UNSCALED
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.noisy import bars as module
from dkrls_cli.gaps.noisy.analysis import Observations, analyse
from dkrls_cli.gaps.noisy.bars import NoisyBars, noisy_field_variance

SHAPE, RIDGE, SCALE = (8, 9), 0.02, 4.0
AXES = [np.arange(float(m)) for m in SHAPE]
KERNELS = [Kernel("matern32", 4.0)] * 2
BETWEEN = [np.array([0.5, 3.5, 5.25]), np.array([1.5, 4.0, 6.25])]


@pytest.fixture(scope="module")
def setup():
    """Return observations, their cascade, and the dense covariance of cells and of BETWEEN."""
    rng = np.random.default_rng(4)
    noise = 10 ** rng.uniform(-3, 0.5, SHAPE)
    noise[0, 0] = 0.0
    field = make_field(AXES, KERNELS)
    values = field.draw(rng) + np.sqrt(noise + RIDGE) * rng.standard_normal(SHAPE)
    values[2:5, 3:6] = np.nan
    values *= np.sqrt(SCALE)
    seen = np.isfinite(values)
    errors = np.where(seen, np.sqrt(SCALE * noise), 0.0)
    done = analyse(field, values, RIDGE, noise, 0.0, tolerance=1e-10, limit=500)
    cascade = model_of(done, AXES, KERNELS, RIDGE)
    whole = reduce(np.kron, [gram(k, c, c) for k, c in zip(KERNELS, AXES, strict=True)])
    mask = seen.ravel()
    inverse = np.zeros(whole.shape)
    inverse[np.ix_(mask, mask)] = np.linalg.inv(
        (whole + np.diag(RIDGE + noise.ravel()))[np.ix_(mask, mask)]
    )
    n, v = noise.ravel(), np.diag(whole - whole @ inverse @ whole)
    own = SCALE * np.where(mask, n - n**2 * np.diag(inverse), v + RIDGE)
    cross = reduce(np.kron, [gram(k, q, c) for k, q, c in zip(KERNELS, BETWEEN, AXES, strict=True)])
    there = SCALE * (1 + RIDGE - np.einsum("ij,jk,ik->i", cross, inverse, cross))
    return Observations(values, errors), cascade, own.reshape(SHAPE), there.reshape(3, 3)


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(noisy_field_variance, "__defaults__", (600,))


@pytest.mark.slow
def test_cells_have_the_variance_of_the_posterior(setup, many):
    seen, cascade, own, _ = setup
    found = variance_on_grid(NoisyBars(seen, SCALE, 1.0), cascade, AXES)
    assert found[0, 0] == own[0, 0] == 0.0
    np.testing.assert_allclose(found, own, rtol=0.25, atol=1e-12)
    observed = seen.observed
    assert (found[observed] <= seen.errors[observed] ** 2 + 1e-12).all()


@pytest.mark.slow
def test_between_coordinates_the_variance_is_near_that_of_the_posterior(setup, many):
    seen, cascade, _, there = setup
    found = variance_on_grid(NoisyBars(seen, SCALE, 1.0), cascade, BETWEEN)
    np.testing.assert_allclose(found, there, rtol=0.3)
    assert abs(np.log(found / there).mean()) < 0.15


def test_points_blocks_and_smooth_answers_agree_with_the_grid(setup):
    seen, cascade, _, _ = setup
    bars = NoisyBars(seen, SCALE, 1.0)
    whole = variance_on_grid(bars, cascade, BETWEEN)
    part = bars.variance_blocks(cascade, BETWEEN)((slice(1, 3), slice(0, 2)))
    np.testing.assert_allclose(part, whole[1:3, :2])
    each = [grid.ravel() for grid in np.meshgrid(*BETWEEN, indexing="ij")]
    np.testing.assert_allclose(bars.variance_at_points(cascade, each), whole.ravel())
    cells = [grid.ravel() for grid in np.meshgrid(*AXES, indexing="ij")]
    own = variance_on_grid(bars, cascade, AXES)
    np.testing.assert_allclose(bars.variance_at_points(cascade, cells), own.ravel())
    spread = bars.variance_at_points(cascade, BETWEEN, spread=[1])
    np.testing.assert_allclose(spread, whole)
    # a smooth answer at an observed cell is the field without the detail that was seen there
    smooth = variance_on_grid(bars, cascade, AXES, smooth=True)
    assert (smooth >= own - 1e-9).all()
    assert smooth[0, 0] > 0


@pytest.mark.slow
def test_members_vary_as_much_as_the_error_bars(setup):
    seen, cascade, own, _ = setup
    bars = NoisyBars(seen, SCALE, 1.0)
    draw = bars.deviations(cascade, AXES, seed=5)
    members = np.array([draw(number) for number in range(500)])
    found = members.var(axis=0)
    assert found[0, 0] == 0.0
    ratio = found.ravel()[1:] / own.ravel()[1:]
    assert abs(np.log(ratio).mean()) < 0.03
    assert 0.7 < ratio.min() < ratio.max() < 1.4
    np.testing.assert_array_equal(draw(7), bars.deviations(cascade, AXES, seed=5)(7))
    assert np.abs(draw(7) - bars.deviations(cascade, AXES, seed=6)(7)).max() > 0.1


@pytest.mark.slow
def test_members_between_coordinates_and_at_points_pass_through_those_of_the_cells(setup):
    seen, cascade, _, _ = setup
    bars = NoisyBars(seen, SCALE, 1.0)
    cells = bars.deviations(cascade, AXES, seed=5)(3)
    mixed = bars.deviations(cascade, [AXES[0], np.array([1.0, 1.5, 2.0])], seed=5)(3)
    np.testing.assert_allclose(mixed[:, [0, 2]], cells[:, [1, 2]])
    points = [np.array([4.0, 4.0]), np.array([4.0, 4.5])]
    draw = bars.deviations_at_points(cascade, points, seed=5)
    assert draw(3)[0] == pytest.approx(cells[4, 4])
    members = np.array([draw(number) for number in range(500)])
    wide = bars.variance_at_points(cascade, points)
    np.testing.assert_allclose(members.var(axis=0), wide, rtol=0.35)


def test_members_vary_as_much_as_the_error_bars_where_slices_add_nothing(setup):
    """In a narrow step the bar is that of the cells around, of which members have the field."""
    seen, cascade, _, _ = setup
    near = replace(cascade, coordinates=(AXES[0] + 0.95 * (AXES[0] == 1), AXES[1]))
    known = BetweenScale(np.full((2, 2), 1e-9), np.ones((2, 2)), open=1.0, climate=0.0)
    bars = NoisyBars(seen, SCALE, 1.0, factors=(3.0,), between=known)
    variance = variance_on_grid(bars, near, [np.array([1.97]), AXES[1]])
    on_grid = bars.deviations(near, [np.array([1.97]), AXES[1]], seed=5)
    at_points = bars.deviations_at_points(near, [np.full(9, 1.97), AXES[1]], seed=5)
    for draw in (on_grid, at_points):
        members = np.array([draw(number).ravel() for number in range(100)])
        assert (members**2).mean() == pytest.approx(variance.mean(), rel=0.2)


def test_a_factor_widens_what_other_cells_tell_and_leaves_accurate_cells_alone(setup):
    seen, cascade, _, _ = setup
    plain, wide = (NoisyBars(seen, SCALE, 1.0, factors=(f,)) for f in (1.0, 4.0))
    ours, theirs = (variance_on_grid(bars, cascade, AXES) for bars in (plain, wide))
    missing = ~seen.observed
    np.testing.assert_allclose(theirs[missing], 4 * ours[missing])
    accurate = seen.observed & (seen.errors**2 < 0.4 * RIDGE * SCALE)
    assert accurate.sum() > 3
    assert (theirs[accurate] <= 1.7 * ours[accurate]).all()
    poor = seen.observed & (seen.errors**2 > SCALE)
    assert (theirs[poor] > 1.8 * ours[poor]).all()
    known = BetweenScale(np.full((2, 2), 1e-9), np.ones((2, 2)), open=1.0, climate=1.0)
    plain, wide = (replace(bars, between=known) for bars in (plain, wide))  # slices ask for nothing
    far, near = (variance_on_grid(b, cascade, BETWEEN) for b in (wide, plain))
    np.testing.assert_allclose(far, 4 * near)
    left = variance_on_grid(UNSCALED, cascade, BETWEEN, smooth=True)
    hats = [hats_of(cascade, axis, query) for axis, query in enumerate(BETWEEN)]
    beside, field = (apply(getattr(plain.cells_in(cascade), n), hats) for n in ("left", "field"))
    assert (left > beside).any()
    np.testing.assert_allclose(near, field + SCALE * np.maximum(left - beside, 0.0))


def test_slices_that_are_missed_by_more_widen_the_bars_between_coordinates(setup):
    seen, cascade, _, _ = setup
    known = BetweenScale(np.full((2, 2), 1e3), np.full((2, 2), 9.0), open=1.0, climate=1.0)
    told = NoisyBars(seen, SCALE, 1.0, between=known)
    left = UNSCALED.variance_blocks(cascade, BETWEEN, smooth=True)((slice(0, 3), slice(0, 3)))
    hats = [hats_of(cascade, axis, query) for axis, query in enumerate(BETWEEN)]
    field = apply(told.cells_in(cascade).field, hats)
    expected = field + 1e3 * left - SCALE * RIDGE
    np.testing.assert_allclose(variance_on_grid(told, cascade, BETWEEN), expected)
    each = [grid.ravel() for grid in np.meshgrid(*BETWEEN, indexing="ij")]
    np.testing.assert_allclose(told.variance_at_points(cascade, each), expected.ravel())
    drawn = told.deviations(cascade, BETWEEN, seed=1)
    spread = np.std([drawn(number) for number in range(200)], axis=0)
    np.testing.assert_allclose(spread, np.sqrt(expected), rtol=0.25)
    own = variance_on_grid(told, cascade, AXES)
    np.testing.assert_array_equal(own, variance_on_grid(NoisyBars(seen, SCALE, 1.0), cascade, AXES))
    measured = NoisyBars(seen, SCALE, 1.0).measured_in(cascade)
    assert measured.between is measured.slices.scale_in(cascade)


def test_factors_are_made_when_first_needed_and_once(setup):
    seen, cascade, _, _ = setup
    calls = []
    bars = NoisyBars(seen, SCALE, 1.0, factors=lambda: calls.append(1) or (2.0,))
    assert not calls
    variance_on_grid(bars, cascade, AXES)
    variance_on_grid(bars, cascade, BETWEEN)
    assert calls == [1]


def test_what_is_known_of_missing_cells_and_errors(setup):
    seen = setup[0]
    bars = NoisyBars(seen, SCALE, 0.7, Grouping(((0, 1),)))
    np.testing.assert_array_equal(bars.unobserved, np.isnan(seen.values))
    assert bars.errors.tolist() == [0.7]
    assert bars.with_unobserved(bars.unobserved, 0) is bars
    whole = Observations(np.zeros((2, 3)), np.ones((2, 3)))
    assert NoisyBars(whole, 1.0, 1.0).unobserved is None
    wider = bars.expand((8, 1, 9), (0, 2))
    assert wider.observations.values.shape == (8, 1, 9)
    assert wider.grouping.axes == ((0, 2),)


@pytest.mark.slow
def test_a_large_grid_takes_neighbours_together(monkeypatch):
    """The variance of blocks of 2 x 2 cells, interpolated, is near that of every cell."""
    axes, rng = [np.arange(24.0), np.arange(30.0)], np.random.default_rng(2)
    observed = rng.random((24, 30)) < 0.8
    observed[8:16, 10:20] = False
    noise = np.full((24, 30), 0.5)
    noise[:, 15:] = 0.05
    kernels, given = [Kernel("gaussian", 5.0)] * 2, (observed, 1e-4, noise)
    exact = noisy_field_variance(axes, kernels, Grouping(), *given, draws=200)
    monkeypatch.setattr(module, "thinning", lambda shape: (2, 2))
    thin = noisy_field_variance(axes, kernels, Grouping(), *given, draws=200)
    ratio = np.sqrt(thin / exact)
    assert abs(np.log(ratio).mean()) < 0.1
    assert np.quantile(ratio, 0.05) > 0.6
    assert np.quantile(ratio, 0.95) < 1.6
    assert (thin[observed] <= (noise + 1e-4)[observed]).all()


def test_members_of_a_long_dimension_are_refused(setup, monkeypatch):
    from dkrls_cli.gaps import bars as gap_bars

    seen, cascade, _, _ = setup
    monkeypatch.setattr(gap_bars, "_LONGEST", 8)
    with pytest.raises(SettingError, match="'d1' has 9 coordinates"):
        NoisyBars(seen, SCALE, 1.0).deviations(cascade, AXES)
