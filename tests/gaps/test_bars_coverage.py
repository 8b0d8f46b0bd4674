"""Error bars of models of grids with missing cells."""

from dataclasses import replace

import numpy as np
import pytest
from gap_grids import case, field, model_of

from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps.calibration.nearest import distance
from dkrls_cli.gaps.solve import complete
from dkrls_cli.tuning.calibration.holes import gap_bars
from dkrls_cli.tuning.gaps import choose_with_gaps
from dkrls_cli.tuning.moves import LevelConstraint

RIDGE = 1e-3


@pytest.fixture(scope="module")
def barred():
    """A model of the field with settings near those that a search finds, and its error bars."""
    _, holed, axes = field()
    given = [LevelConstraint("gaussian", sigma) for sigma in (1.8, 2.0, 4.0)]
    chosen = choose_with_gaps(holed, axes, given, ridge=0.02)
    kernels, ridge = chosen.setting.kernels, chosen.setting.ridge
    model = model_of(complete(holed, axes, kernels, ridge), axes, kernels, ridge)
    return model, gap_bars(holed, axes, chosen)


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
    bars = replace(bars, is_local=False, factors=(1.0,))  # which follow the noise of this field
    spread = variance_on_grid(bars, model, model.coordinates)
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
