"""Tests of dkrls_cli.cascade.functionals.regions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from long_models import long_model
from scipy.interpolate import make_interp_spline

from dkrls_cli.cascade.calibration.local import series_scales, student_factor
from dkrls_cli.cascade.errorbars.leaving import leave_out
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals import regions as module
from dkrls_cli.cascade.functionals.answers import NO_CELLS, answer_grid
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Means, Values
from dkrls_cli.cascade.functionals.regions import (
    find_gaps,
    left_out_scales,
    region_blocks,
    region_series,
)
from dkrls_cli.cascade.functionals.windows import window_errors
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

X, T = np.arange(8.0), np.arange(40.0)
LEVELS = [Level("x", Kernel("gaussian", 2.0), 0.01), Level("t", Kernel("matern32", 5.0), 0.1)]
DATA = np.random.default_rng(0).standard_normal((8, 40))
CASCADE = fit_cascade(DATA, [X, T], LEVELS, mean=0.3)
REGION = Means(np.array([1.0]), np.array([6.0]))


def region_scale(cascade, axis, asked, cells=NO_CELLS, copies=None):
    series = region_series(cascade, axis, asked, False, cells)
    return left_out_scales(cascade, axis, series, copies)[0]


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


def test_a_gap_is_where_a_sample_is_missing():
    def gaps(nodes, low, high):
        pieces = around(nodes).cut(Means(np.array([low]), np.array([high])))
        found = find_gaps(pieces, nodes)
        return list(zip(pieces.low[found], pieces.high[found], strict=True))

    even = np.arange(12.0)
    assert gaps(even, 2.0, 8.0) == []
    assert gaps(np.delete(even, 5), 2.0, 8.0) == [(4.5, 5.5)]
    assert gaps(np.delete(even, [5, 6]), 2.0, 8.0) == [(4.5, 6.5)]
    assert gaps(np.delete(even, 5), 6.0, 8.0) == []
    assert gaps(np.delete(even, 5), 5.0, 8.0) == [(5.0, 5.5)]
    assert gaps(np.delete(even, 5), 5.1, 8.0) == []  # less than half a step of it
    jumping = even + np.where(even % 3 == 0, 0.2, 0.0)
    assert gaps(jumping, 2.0, 8.0) == []
    wider = np.delete(even, 9) - np.where(np.delete(even, 9) < 4, 0.2, 0.0)
    assert gaps(wider, 2.0, 11.0) == [(pytest.approx(3.3), 3.5), (8.5, 9.5)]


@pytest.mark.parametrize("together", [True, False])
def test_of_a_range_with_gaps_the_missing_samples_are_open(together, monkeypatch):
    nodes = np.delete(T, [9, 10, 20])
    level = Level("t", Kernel("matern32", 5.0), 0.1)
    cascade = fit_cascade(DATA[:, : nodes.size], [X, nodes], [LEVELS[0], level])
    asked = [Values(X[2:3]), Means(np.array([5.5]), np.array([25.5]))]
    if not together:  # gaps are means of the field then, one by one
        monkeypatch.setattr(module, "_MOST_MISSING", 2)
    found = region_parts(cascade, asked, False, {1: around(nodes)})[1][0]
    fine = (np.arange(100) + 0.5) / 100
    gaps = [np.array([9.0, 10.0, 20.0])] if together else [8.5 + 2 * fine, 19.5 + fine]
    system = gram(level.kernel, nodes, nodes) + 0.1 * np.eye(nodes.size)
    variance = 0.0
    for some, share in zip(gaps, [3 / 20] if together else [2 / 20, 1 / 20], strict=True):
        rows = gram(level.kernel, some, nodes)
        left = gram(level.kernel, some, some) - rows @ np.linalg.solve(system, rows.T)
        variance += left.mean() * share**2
    noise = 0.1 * 3 * (1 / 20) ** 2
    scale = region_scale(cascade, 1, asked, cells={1: around(nodes)})
    assert found == pytest.approx(scale * (variance + noise), rel=1e-4)


@pytest.mark.parametrize("gap", [True, False])
def test_errors_that_go_by_place_have_the_scale_of_their_place(gap, monkeypatch):
    kept = np.delete(T, [10, 11, 30, 31]) if gap else T
    loud = np.where(kept < 20, 1.0, 20.0)
    cascade = fit_cascade(DATA[:, : kept.size] * loud, [X, kept], LEVELS)
    low, high = np.array([4.5, 24.5]), np.array([15.5, 35.5])
    asked, cells = [Values(X), Means(low, high)], {1: around(kept)}
    quiet, rough = region_parts(cascade, asked, False, cells)[1]
    assert 40 < rough / quiet < 70  # 400 to the power 0.7 is 66
    monkeypatch.setattr(module, "_GAIN", np.inf)
    quiet, rough = region_parts(cascade, asked, False, cells)[1]
    assert 0.9 < rough / quiet < 1.1
    monkeypatch.undo()
    monkeypatch.setattr(module, "_MOST_PLACES", 12)  # runs of three samples
    quiet, rough = region_parts(cascade, asked, False, cells)[1]
    assert 4 < rough / quiet < 40


def test_of_a_range_without_gaps_windows_tell_the_scale(monkeypatch):
    monkeypatch.setattr(module, "_GAIN", np.inf)
    asked = [Values(X[2:3]), Means(np.array([5.5]), np.array([25.5]))]
    cells = {1: around(T)}
    series = region_series(CASCADE, 1, asked, False, cells)
    scale, least = window_errors(LEVELS[1], T, series, 5.5, 25.5)
    assert least == 0.0
    fine = 5.5 + (np.arange(2000) + 0.5) / 100
    system = gram(LEVELS[1].kernel, T, T) + 0.1 * np.eye(40)
    row = gram(LEVELS[1].kernel, fine, T).mean(axis=0)
    left = gram(LEVELS[1].kernel, fine, fine).mean() - row @ np.linalg.solve(system, row)
    noise, alone = 0.1 / 20, region_scale(CASCADE, 1, asked, cells)
    expected = scale * max(left - noise, 0.0) + alone * 0.5 * noise
    found = region_parts(CASCADE, asked, False, cells)[1]
    assert found == pytest.approx(expected, rel=1e-4)
    # three samples tell nothing of ranges: what they say when they are left out counts
    few = fit_cascade(DATA[:, :5], [X, T[:5]], LEVELS)
    asked = [Values(X[2:3]), Means(np.array([0.5]), np.array([3.5]))]
    alone = region_scale(few, 1, asked, cells={1: around(T[:5])})
    left = max(module.left_variance(few, 1, asked[1])[0] - 0.1 / 3, 0.0) + 0.5 * 0.1 / 3
    assert region_parts(few, asked, False, {1: around(T[:5])})[1] == pytest.approx(alone * left)


def test_several_ranges_have_each_its_own_error():
    low, high = np.array([5.5, 20.5]), np.array([9.5, 39.5])
    cells = {1: around(T)}
    both = region_parts(CASCADE, [Values(X[:1]), Means(low, high)], False, cells)[1]
    for place in range(2):
        one = Means(low[place : place + 1], high[place : place + 1])
        alone = region_parts(CASCADE, [Values(X[:1]), one], False, cells)[1]
        assert both[place] == pytest.approx(alone[0], rel=0.2)  # the scale is that of all series


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
    assert 0.85 < np.sqrt(np.mean(missed**2) / told) < 1.15


def test_gaps_of_long_levels_are_those_of_dense_ones():
    found = []
    for dense in (False, True):
        cascade = long_model(False, dense=dense)
        nodes = cascade.coordinates[0]
        cells = {0: SourceCells(nodes - 0.1, nodes + 0.1, are_means=False)}
        asked = [Means(nodes[3:4], nodes[9:10]), Values(np.array([0.0]))]
        found.append(region_parts(cascade, asked, False, cells)[0])
    assert np.allclose(found[0], found[1], rtol=1e-5)


def test_samples_without_cells_are_no_part_of_windows(monkeypatch):
    monkeypatch.setattr(module, "_GAIN", np.inf)
    own = np.arange(3, 40)
    cells = {1: SourceCells(T[own] - 0.5, T[own] + 0.5, are_means=False, places=own)}
    asked = [Values(X[2:3]), Means(np.array([5.5]), np.array([25.5]))]
    series = region_series(CASCADE, 1, asked, False, cells)
    scale, least = window_errors(LEVELS[1], T[own], series[own], 5.5, 25.5)
    assert least == 0.0
    assert scale != pytest.approx(window_errors(LEVELS[1], T, series, 5.5, 25.5)[0], rel=1e-3)
    left, noise = module._open_in_cells(CASCADE, 1, asked[1])
    expected = scale * left + region_scale(CASCADE, 1, asked, cells) * noise
    assert region_parts(CASCADE, asked, False, cells)[1] == pytest.approx(expected, rel=1e-9)


def test_the_variance_of_a_range_of_few_samples_has_a_least():
    smooth = [LEVELS[0], Level("t", Kernel("gaussian", 2.0), 1e-6)]
    rough = np.cos(0.6 * T[:10] + X[:, None]) + 0.3 * DATA[:, :10]
    cascade = fit_cascade(rough, [X, T[:10]], smooth)
    asked, cells = [Values(X[2:3]), Means(np.array([2.5]), np.array([6.5]))], {1: around(T[:10])}
    series = region_series(cascade, 1, asked, False, cells)
    scale, least = window_errors(smooth[1], T[:10], series, 2.5, 6.5)
    smoothed, noise = module._open_in_cells(cascade, 1, asked[1])
    assert scale * smoothed + region_scale(cascade, 1, asked, cells) * noise < least
    assert region_parts(cascade, asked, False, cells)[1] == pytest.approx(least, rel=1e-9)


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
