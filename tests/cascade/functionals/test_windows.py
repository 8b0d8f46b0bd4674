"""Tests of dkrls_cli.cascade.functionals.windows."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.cascade.functionals import windows as module
from dkrls_cli.cascade.functionals.functional import Means
from dkrls_cli.cascade.functionals.windows import window_errors
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

LEVEL = Level("t", Kernel("matern32", 3.0), 0.05)
T = np.arange(14.0)
SERIES = np.random.default_rng(5).standard_normal((14, 3))


def window_scale(*given, **how):
    found = window_errors(*given, **how)
    return None if found is None else found[0].mean()


def answer(level, nodes, series, places, half):
    """Return answers at fine places: the smooth field, and in cells what it leaves of the data."""
    solved = np.linalg.solve(
        gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size), series
    )
    residual = series - gram(level.kernel, nodes, nodes) @ solved
    found = gram(level.kernel, places, nodes) @ solved
    distances = np.abs(places[:, None] - nodes)
    near = distances.argmin(axis=1)
    return found + np.where(distances.min(axis=1) < half, 1.0, 0.0)[:, None] * residual[near]


def test_the_scale_is_that_of_windows_with_every_second_sample_left_out():
    step, scores = 0.002, []
    for kept in (np.r_[0, np.arange(1, 14, 2)], np.r_[np.arange(0, 14, 2), 13]):
        for start in range(1, 10):  # four cells each, the first and the last cell in none
            places = start - 0.5 + step * (np.arange(round(4 / step)) + 0.5)
            rows = answer(LEVEL, T, np.eye(14), places, 0.5).mean(axis=0)
            rows[kept] -= answer(LEVEL, T[kept], np.eye(kept.size), places, 1.0).mean(axis=0)
            expected = rows @ (gram(LEVEL.kernel, T, T) + 0.05 * np.eye(14)) @ rows
            scores.append((rows @ SERIES) ** 2 / expected)
    found = window_scale(LEVEL, T, SERIES, 4.4, 8.4)  # five to eight
    assert found == pytest.approx(np.mean(scores), rel=2e-3)
    assert window_scale(LEVEL, T, SERIES, 4.4, 9.4) != pytest.approx(found, rel=0.01)
    shuffled = np.random.default_rng(0).permutation(14)
    assert window_scale(LEVEL, T[shuffled], SERIES[shuffled], 4.4, 8.4) == pytest.approx(found)


@pytest.mark.parametrize(
    "kernel",
    [
        Kernel("matern12", 8.0),
        Kernel("matern52", 3.0, constant=2.0),
        Kernel("gaussian", 50.0, period=360.0),
        Kernel("matern32", 1.0, warp="log"),
    ],
)
def test_series_of_the_kernel_have_a_scale_of_1(kernel):
    nodes = np.arange(1.0, 25) if kernel.period is None else np.arange(0.0, 360, 15)
    level = Level("t", kernel, 0.1)
    root = np.linalg.cholesky(gram(kernel, nodes, nodes) + 0.1 * np.eye(24))
    series = root @ np.random.default_rng(2).standard_normal((24, 3000))
    assert window_scale(level, nodes, series, nodes[4], nodes[11]) == pytest.approx(1, rel=0.05)


def test_a_circle_is_the_same_wherever_it_is_cut():
    kernel, nodes = Kernel("gaussian", 60.0, period=360.0), np.arange(0.0, 360, 30)
    level, series = Level("lon", kernel, 0.01), SERIES[:12]
    found = window_scale(level, nodes, series, 320.0, 400.0)  # 330, 0 and 30
    assert window_scale(level, nodes, np.roll(series, 4, 0), 80.0, 160.0) == pytest.approx(found)
    assert window_scale(level, nodes, series, 80.0, 160.0) == pytest.approx(found)
    assert window_scale(level, nodes, series, 80.0, 220.0) != pytest.approx(found, rel=0.01)


def test_latitudes_count_by_their_cosine():
    nodes, level = np.arange(-85.0, 90, 10), Level("lat", Kernel("matern52", 40.0), 0.01)
    series = np.random.default_rng(1).standard_normal((18, 2))
    plain, weighted = (
        window_scale(level, nodes, series, -60.0, 60.0, latitude=yes) for yes in (False, True)
    )
    assert weighted is not None
    assert weighted != pytest.approx(plain, rel=0.01)


def test_of_long_series_those_near_the_range_count(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 20)
    nodes, series = np.arange(60.0), np.random.default_rng(4).standard_normal((60, 1))
    found = window_scale(LEVEL, nodes, series, 28.0, 32.0)
    assert found == pytest.approx(window_scale(LEVEL, nodes[20:40], series[20:40], 28.0, 32.0))
    first = window_scale(LEVEL, nodes, series, 0.0, 4.0)
    assert first == pytest.approx(window_scale(LEVEL, nodes[:20], series[:20], 0.0, 4.0))
    last = window_scale(LEVEL, nodes, series, 56.0, 59.0)
    assert last == pytest.approx(window_scale(LEVEL, nodes[40:], series[40:], 56.0, 59.0))


def test_a_range_of_all_samples_counts_as_the_widest_window_between_the_ends():
    widest = window_scale(LEVEL, T, SERIES, 0.5, 12.5)  # all but the first and the last
    assert window_scale(LEVEL, T, SERIES, -1.0, 14.0) == pytest.approx(widest)


@pytest.mark.parametrize("middle", [180.0, 0.0, 357.0])
def test_of_long_circles_those_near_the_range_count_wherever_it_is(monkeypatch, middle):
    """They are those of a line of the same samples: the rest of the circle is no gap in it."""
    monkeypatch.setattr(module, "_MOST", 20)
    kernel, nodes = Kernel("matern32", 9.0, period=360.0), np.arange(0.0, 360, 3)
    series = np.random.default_rng(4).standard_normal((120, 2))
    found = window_scale(Level("lon", kernel, 0.05), nodes, series, middle - 7.0, middle + 7.0)
    places = np.arange(round(middle / 3) - 10, round(middle / 3) + 10)
    line = Level("lon", Kernel("matern32", 9.0), 0.05)
    expected = window_scale(line, 3.0 * places, series[places % 120], middle - 7.0, middle + 7.0)
    assert found == pytest.approx(expected, rel=1e-3)  # a kernel of chords differs by as much


def test_a_few_samples_are_not_believed_to_be_smooth():
    level, month = Level("t", Kernel("gaussian", 3.0), 1e-6), np.arange(0.0, 12, 2)
    finer = np.arange(0.0, 11)  # every second of which the series has
    cycle = np.cos(2 * np.pi * (finer[:, None] + np.arange(40) / 4) / 12)
    weather = 0.3 * np.random.default_rng(3).standard_normal((11, 40))
    series = (cycle + weather)[::2]
    scale, least = window_errors(level, month, series, 1.0, 7.0)
    true = (cycle + weather)[2:7].mean(axis=0)
    rows = module._rows(level, month, np.arange(6), Means(np.ones(1), np.full(1, 7.0)), None)
    missed = np.mean((rows[0] @ series - true) ** 2)
    assert (scale > 0).all()
    least = least.mean()
    assert 0.2 * missed < least < 5 * missed
    assert window_errors(LEVEL, T, SERIES, 4.4, 8.4)[1].tolist() == [0.0] * 3


def test_series_that_differ_by_far_have_scales_of_their_own():
    nodes = np.arange(40.0)
    series = np.random.default_rng(4).standard_normal((40, 6)) * np.array([1.0, 30] * 3)
    scale = window_errors(LEVEL, nodes, series, 10.5, 14.5)[0]
    assert (scale[1::2] / scale[::2] > 100).all()
    alone = window_errors(LEVEL, nodes, series[:, :1], 10.5, 14.5)[0]
    assert scale[0] == pytest.approx(alone[0], rel=0.7)


def test_as_many_windows_are_independent_as_lie_side_by_side(monkeypatch):
    told = []
    monkeypatch.setattr(
        module, "series_scales", lambda squares, n: told.append(n) or squares.mean(axis=0)
    )
    window_errors(LEVEL, T, SERIES, 4.4, 8.4)
    assert told == [14 / 4]


def test_many_windows_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr(module, "_WINDOWS", 3)
    nodes = np.arange(10.0)
    found = module._windows(nodes, 2, None, False)
    assert found.low.tolist() == [0.5, 3.5, 6.5]
    assert found.high.tolist() == [2.5, 5.5, 8.5]


def test_short_series_and_such_that_are_met_tell_nothing():
    assert window_scale(LEVEL, T[:5], SERIES[:5], 1.0, 3.0) is None
    assert window_scale(LEVEL, T[:6], SERIES[:6], 1.0, 3.0) is not None
    assert window_scale(LEVEL, T, 0 * SERIES, 1.0, 3.0) == 0.0
