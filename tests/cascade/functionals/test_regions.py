"""Tests of dkrls_cli.cascade.functionals.regions."""

from __future__ import annotations

import numpy as np
import pytest
from long_models import long_model
from scipy.interpolate import make_interp_spline

from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Means, Values
from dkrls_cli.cascade.functionals.regions import (
    region_blocks,
    region_parts,
    region_scale,
    region_series,
)
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

X, T = np.arange(8.0), np.arange(40.0)
LEVELS = [Level("x", Kernel("gaussian", 2.0), 0.01), Level("t", Kernel("matern32", 5.0), 0.1)]
DATA = np.random.default_rng(0).standard_normal((8, 40))
CASCADE = fit_cascade(DATA, [X, T], LEVELS, mean=0.3)
REGION = Means(np.array([1.0]), np.array([6.0]))


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
    assert found == pytest.approx(np.mean(scores), rel=1e-8)
