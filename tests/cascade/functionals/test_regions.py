"""Tests of dkrls_cli.cascade.functionals.regions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from long_models import long_model
from scipy.interpolate import make_interp_spline

from dkrls_cli.cascade.calibration.averaging import averaged_variances
from dkrls_cli.cascade.calibration.local import series_scales, student_factor
from dkrls_cli.cascade.errorbars.leaving import leave_out
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals import regions as module
from dkrls_cli.cascade.functionals.answers import NO_CELLS, answer_grid
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Means, Values
from dkrls_cli.cascade.functionals.regions import (
    left_out_scales,
    region_blocks,
    region_series,
)
from dkrls_cli.cascade.functionals.sharpening import CellField, CellRows
from dkrls_cli.cascade.functionals.windows import open_parts
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

X, T = np.arange(8.0), np.arange(40.0)
LEVELS = [Level("x", Kernel("gaussian", 2.0), 0.01), Level("t", Kernel("matern32", 5.0), 0.1)]
DATA = np.random.default_rng(0).standard_normal((8, 40))
CASCADE = fit_cascade(DATA, [X, T], LEVELS, mean=0.3)
REGION = Means(np.array([1.0]), np.array([6.0]))


def region_scale(cascade, axis, asked, cells=NO_CELLS, copies=None):
    series = region_series(cascade, axis, asked, False, cells)
    return left_out_scales(cascade, axis, series, copies)


def region_parts(cascade, asked, smooth, cells, **how):
    """What every level adds at its own questions, for the first ones of all others."""
    found, sizes = [np.zeros(len(each)) for each in asked], [len(each) for each in asked]
    for part in module.region_parts(cascade, asked, smooth, cells, **how):
        first = [slice(None) if axis == part.axis else slice(0, 1) for axis in range(len(asked))]
        found[part.axis] = part.block(tuple(first), sizes).ravel()
    return found


def test_a_series_is_the_data_averaged_as_the_answer_is():
    series = region_series(CASCADE, 1, [REGION, Values(T[:2])], False, {})
    system = gram(LEVELS[0].kernel, X, X) + 0.01 * np.eye(8)
    row = REGION.rows(LEVELS[0].kernel, X) @ np.linalg.inv(system)
    assert series.shape == (40, 1)
    assert np.allclose(series[:, 0], (row @ (DATA - 0.3))[0], rtol=0, atol=1e-12)
    assert region_series(CASCADE, 0, [REGION, Values(T[:2])], False, {}).shape == (8, 2)


def test_scales_come_from_samples_left_out_one_by_one():
    asked = [REGION, Values(np.array([3.5]))]
    series = region_series(CASCADE, 1, asked, False, {})[:, 0]
    system = gram(LEVELS[1].kernel, T, T) + 0.1 * np.eye(40)
    scores = []
    for place in range(1, 39):
        others = np.delete(np.arange(40), place)
        inner = np.linalg.inv(system[np.ix_(others, others)])
        row = system[place, others] @ inner
        variance = system[place, place] - row @ system[others, place]
        scores.append((series[place] - row @ series[others]) ** 2 / variance)
    assert region_scale(CASCADE, 1, asked) == pytest.approx(np.mean(scores), rel=1e-9)


def test_neighbouring_samples_count_half_where_series_are_told_apart():
    loud = fit_cascade(DATA * np.geomspace(1.0, 3.0, 8)[:, None], [X, T], LEVELS)
    asked = [Values(X), Means(np.array([5.5]), np.array([25.5]))]
    left, series = leave_out(loud, 1, 40), region_series(loud, 1, asked, False, {})
    known, predicted = np.split(left.twice @ series, 2)
    squares = (predicted - known) ** 2 / left.variance[:, None]
    found = region_scale(loud, 1, asked)
    assert found == pytest.approx(series_scales(squares, 19.0), rel=1e-9)
    assert found != pytest.approx(series_scales(squares, 38.0), rel=1e-3)


def test_levels_add_up_and_those_passed_through_add_nothing():
    asked = [REGION, Values(np.array([3.0, 3.5]))]
    parts = region_parts(CASCADE, asked, False, {})
    assert parts[1][0] == 0.0
    assert parts[1][1] > 0
    found = region_blocks(CASCADE, asked)((slice(0, 1), slice(1, 2)))
    assert found[0, 0] == pytest.approx(parts[0][0] + parts[1][1], rel=1e-12)
    cells = {0: SourceCells(X - 0.5, X + 0.5)}
    whole = [Means(np.array([0.5]), np.array([6.5])), asked[1]]
    assert region_parts(CASCADE, whole, False, cells)[0].tolist() == [0.0]


def test_errors_that_go_together_stay_and_others_average_out():
    rng = np.random.default_rng(1)
    alone, shared = rng.standard_normal((8, 40)), np.tile(rng.standard_normal(40), (8, 1))
    asked = [Means(np.array([-0.5]), np.array([7.5])), Values(np.array([3.5]))]
    variances = []
    for data in (alone, shared):
        cascade = fit_cascade(data, [X, T], LEVELS)
        variances.append(region_parts(cascade, asked, False, {})[1][0])
    assert 5 * variances[0] < variances[1]


@pytest.mark.slow
def test_long_levels_have_the_errors_of_dense_ones():
    asked = [Means(np.array([3.0]), np.array([500.0])), Values(np.array([0.5]))]
    found = [region_parts(long_model(False, dense=d), asked, False, {}) for d in (False, True)]
    assert np.allclose(found[0][0], found[1][0], rtol=1e-6)


def test_a_spline_is_left_out_as_a_spline():
    t = np.geomspace(1.0, 40.0, 40)
    levels = [LEVELS[0], Level("t", Kernel("cubic", 2.0, warp="log", errors="matern52"))]
    cascade = fit_cascade(np.outer(1 + X, np.log(t) ** 2), [X, t], levels)
    asked = [REGION, Values(np.array([3.5]))]
    series = region_series(cascade, 1, asked, False, {})[:, 0]
    covariance = cascade.covariance.levels[1]
    system = gram(covariance.kernel, t, t) + covariance.ridge * np.eye(40)
    precision = np.diag(np.linalg.inv(system))
    scores = []
    for place in range(1, 39):
        others = np.delete(np.arange(40), place)
        told = make_interp_spline(np.log(t[others]), series[others])(np.log(t[place]))
        scores.append((told - series[place]) ** 2 * precision[place])
    assert region_scale(cascade, 1, asked) == pytest.approx(np.mean(scores), rel=1e-4)


def test_rows_are_left_out_with_their_copies():
    copies = np.full(8, -1)
    copies[0], copies[1] = 3, 2
    data = DATA.copy()
    data[0], data[1] = data[3], data[2]
    cascade = fit_cascade(data, [X, T], LEVELS)
    asked = [Values(np.array([3.3])), REGION]
    series = region_series(cascade, 0, asked, False, {})
    system = gram(LEVELS[0].kernel, X, X) + 0.01 * np.eye(8)
    scores = []
    for place, gone in ((2, [2, 1]), (3, [3, 0]), (4, [4]), (5, [5]), (6, [6])):
        others = np.delete(np.arange(8), gone)
        row = np.linalg.solve(system[np.ix_(others, others)], system[others, place])
        variance = system[place, place] - row @ system[others, place]
        scores.append((series[place] - row @ series[others]) ** 2 / variance)
    found = region_scale(cascade, 0, asked, copies=copies)
    few = student_factor(5)  # samples that are left out
    assert found == pytest.approx(few * np.mean(scores), rel=1e-8)


def around(nodes: np.ndarray) -> SourceCells:
    middles = (nodes[1:] + nodes[:-1]) / 2
    low = np.r_[2 * nodes[0] - middles[0], middles]
    high = np.r_[middles, 2 * nodes[-1] - middles[-1]]
    return SourceCells.around(nodes, low, high, False, None)


@pytest.mark.parametrize("own", [np.arange(40), np.arange(3, 40)])
def test_ranges_have_the_errors_of_all_settings_part_by_part(own):
    cells = {1: SourceCells(T[own] - 0.5, T[own] + 0.5, are_means=False, places=own)}
    asked = [Values(X[2:3]), Means(np.array([4.5]), np.array([34.5]))]
    series, field = (
        region_series(CASCADE, 1, asked, False, cells),
        CellField.of(CASCADE, 1, cells[1]),
    )
    parts = open_parts(cells[1], asked[1], T[own])
    assert len(parts) == 2
    expected = 0.0
    for part in parts:
        answer = part.weights @ (CellRows(field, part.asked) @ series)
        near = own[part.near]
        told = averaged_variances(LEVELS[1].kernel, T[near], series[near], part.mean, answer)
        expected += part.share**2 * told[0]
    found = region_parts(CASCADE, asked, False, cells)[1]
    assert found == pytest.approx(expected, rel=1e-9)


def test_several_ranges_have_each_its_own_error():
    low, high = np.array([5.5, 20.5]), np.array([9.5, 39.5])
    cells = {1: around(T)}
    both = region_parts(CASCADE, [Values(X[:1]), Means(low, high)], False, cells)[1]
    for place in range(2):
        one = Means(low[place : place + 1], high[place : place + 1])
        alone = region_parts(CASCADE, [Values(X[:1]), one], False, cells)[1]
        assert both[place] == pytest.approx(alone[0], rel=1e-9)


@pytest.mark.parametrize("held", [[7, 8, 15, 22], None])
def test_errors_of_ranges_are_as_large_as_told(held):
    rng, full = np.random.default_rng(3), np.arange(60.0)
    level = Level("t", Kernel("matern32", 6.0), 0.2)
    root = np.linalg.cholesky(gram(level.kernel, full, full) + 0.2 * np.eye(60))
    values = root @ rng.standard_normal((60, 400))
    kept = np.arange(1, 60, 2) if held is None else np.delete(np.arange(60), held)
    levels = [level, Level("x", Kernel("gaussian", 1.0), 1e-9)]
    cascade = fit_cascade(values[kept], [full[kept], np.arange(400.0)], levels)
    cells = {0: around(full[kept])}
    asked = [Means(np.array([4.5]), np.array([30.5])), Values(np.arange(400.0))]
    missed = answer_grid(cascade, asked, cells=cells)[0] - values[5:31].mean(axis=0)
    told = region_parts(cascade, asked, False, cells)[0][0]
    # without gaps 30 samples do not tell noise from detail, which leaves less of a mean open
    assert 0.85 < np.sqrt(np.mean(missed**2) / told) < (1.35 if held is None else 1.15)


def test_every_series_has_an_error_of_its_own_whatever_is_asked_beside_it():
    places, loud = np.arange(600.0), np.where(np.arange(600) < 300, 1.0, 100.0)
    data = np.random.default_rng(7).standard_normal((40, 600)) * loud
    levels = [LEVELS[1], Level("x", Kernel("gaussian", 0.1), 1e-9)]
    cascade = fit_cascade(data, [T, places], levels)
    asked = [Means(np.array([5.5]), np.array([25.5])), Values(places)]
    variance = region_blocks(cascade, asked, cells={0: around(T)})
    whole = variance((slice(0, 1), slice(0, 600)))
    assert whole.shape == (1, 600)
    quiet, rough = np.median(whole[0, :298]), np.median(whole[0, 302:])
    assert 1e3 < rough / quiet < 1e4
    assert np.array_equal(variance((slice(0, 1), slice(290, 310))), whole[:, 290:310])
    few = [asked[0], Values(places[[3, 500]])]
    alone = region_blocks(cascade, few, cells={0: around(T)})((slice(0, 1), slice(0, 2)))
    assert np.allclose(alone[0] / whole[0, [3, 500]], 1.0, rtol=0, atol=0.7)


def test_errors_need_no_data_where_its_series_are_told():
    asked = [REGION, Values(np.linspace(0.5, 38.5, 600))]
    cells = {0: around(X)}
    told = []

    def make(axis, few):
        told.append((axis, [len(each) for each in few]))
        return region_series(CASCADE, axis, few, False, cells)

    bare = replace(CASCADE, core=np.broadcast_to(0.0, CASCADE.shape))
    found = region_parts(bare, asked, False, cells, make=make)
    for ours, theirs in zip(found, region_parts(CASCADE, asked, False, cells), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert told == [(0, [1, 512]), (1, [1, 512])]
