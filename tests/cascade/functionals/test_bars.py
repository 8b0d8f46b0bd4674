"""Tests of dkrls_cli.cascade.functionals.bars: against the covariance of values, written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from long_models import long_model

from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals import bars as module
from dkrls_cli.cascade.functionals.answers import answer_blocks
from dkrls_cli.cascade.functionals.bars import (
    detail_variance,
    noise_left,
    noise_shares,
    variance_at_points,
    variance_blocks,
)
from dkrls_cli.cascade.functionals.detail import split_residuals
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError

X, Y = np.linspace(0.0, 9.0, 10), np.arange(12.0) * 30
KERNELS = Kernel("matern52", 2.0, constant=0.5), Kernel("gaussian", 60.0, period=360.0)
RIDGES = 0.03, 0.01
STEP = 1e-3
EVERYWHERE = (slice(None),) * 3


def model(joint: bool) -> Cascade:
    noise = 0.1 * np.random.default_rng(0).standard_normal((10, 12))
    values = 3.0 + np.sin(X)[:, None] * np.cos(np.radians(Y)) + noise
    ridges = (0.0, 0.0) if joint else RIDGES
    levels = [Level(n, k, r) for n, k, r in zip("xy", KERNELS, ridges, strict=True)]
    return fit_cascade(values, [X, Y], levels, joint_ridge=0.02 if joint else None)


def stencil(asked: Functional) -> tuple[np.ndarray, np.ndarray]:
    """Return places (p,) and weights (p,) whose sum of values is the functional of one question."""
    if isinstance(asked, Values):
        return asked.query, np.ones(1)
    if isinstance(asked, Derivatives):
        assert asked.order == 1
        return asked.query + np.array([-STEP, STEP]), np.array([-0.5, 0.5]) / STEP
    nodes, weights = np.polynomial.legendre.leggauss(60)
    return asked.low + (nodes + 1) / 2 * asked.width, weights / 2


def left_open(level: int, places: np.ndarray) -> np.ndarray:
    """Return R of a level among places, from its definition."""
    kernel, nodes = KERNELS[level], (X, Y)[level]
    cross = gram(kernel, places, nodes)
    system = gram(kernel, nodes, nodes) + RIDGES[level] * np.eye(nodes.size)
    return gram(kernel, places, places) - cross @ np.linalg.solve(system, cross.T)


def written_out(bars: LevelBars, asked: list[Functional], averaged: list[float]) -> float:
    """Return the variance of one answer by the covariance of all values that it is made of."""
    stencils = [stencil(each) for each in asked]
    own, similar = [], []
    for level, (places, weights) in enumerate(stencils):
        own.append(weights @ left_open(level, places) @ weights)
        correlation = gram(KERNELS[level], places, places) / KERNELS[level].variance
        similar.append(weights @ correlation @ weights)
    relative = [r / k.variance for r, k in zip(RIDGES, KERNELS, strict=True)]
    white = [min(relative) * k.variance for k in KERNELS]
    total = 0.0
    for level in (0, 1):
        shared = RIDGES[level] - white[level]
        part = (own[level] + shared * averaged[level]) * similar[1 - level]
        total += bars.scales[level] * (part + white[level] * averaged[0] * averaged[1])
    return float(bars.factors[1, 1] * total)


@pytest.mark.parametrize(
    ("first", "second", "averaged"),
    [
        (Means(np.array([0.5]), np.array([3.5])), Values(np.array([100.0])), [1 / 3, 1]),
        (
            Means(np.array([0.6]), np.array([0.9])),
            Means(np.array([15.0]), np.array([75.0])),
            [1, 0.5],
        ),
        (Derivatives(np.array([1.2]), 1), Values(np.array([100.0])), [0, 1]),
        (Derivatives(np.array([1.2]), 1), Derivatives(np.array([5.0]), 1), [0, 0]),
        (Values(np.array([1.2])), Values(np.array([100.0])), [1, 1]),
    ],
)
def test_level_bars_follow_from_the_covariance_of_values(first, second, averaged):
    cascade, asked = model(joint=False), [first, second]
    bars = calibrate(cascade)
    assert isinstance(bars, LevelBars)
    bars = replace(bars, growth=())
    whole = variance_blocks(bars, cascade, asked, smooth=True)((slice(0, 1), slice(0, 1)))
    exact = written_out(bars, asked, averaged)
    assert whole[0, 0] == pytest.approx(exact, rel=2e-4)
    at = variance_at_points(bars, cascade, asked, smooth=True)[0]
    assert at == pytest.approx(whole[0, 0], rel=1e-12)


def test_slopes_leave_those_of_the_detail_open():
    slope, one = Derivatives(np.array([1.4, 2.0]), 1), (slice(0, 2), slice(0, 1))
    short = Kernel("matern52", 0.7)
    cross = slope.rows(short, X)
    system = gram(short, X, X) + 1e-3 * np.eye(10)
    left = slope.prior(short) - (cross @ np.linalg.solve(system, cross.T)).diagonal()
    noise = (np.linalg.solve(system, cross.T) ** 2).sum(axis=0)
    larger = np.maximum(left, noise)
    assert (noise > left).any()
    for joint in (False, True):
        cascade = model(joint)
        bars = calibrate(cascade)
        for other, share in ((30.0, 1.0), (40.0, 0.0 if joint else 1.0)):
            asked = [slope, Values(np.array([other]))]
            smooth = variance_blocks(bars, cascade, asked, smooth=True)(one)[:, 0]
            found = variance_blocks(bars, cascade, asked)(one)[:, 0]
            if joint:
                added = bars.scale * 0.02 * larger * share
            else:
                passed = other == 30.0
                assert (detail_variance(cascade, 0, slope, True, 1.0, 1.0) == 0).all()
                split = split_residuals(cascade, bars.scales, bars.errors)
                white, shared = (parts[0] for parts in split)
                detail = white * larger + shared * left
                told = detail_variance(cascade, 0, slope, False, white, shared)
                assert np.allclose(told, detail, rtol=1e-9)
                factor = bars.factors[1, 0 if passed else 1] * bars.scales[0]
                assert (found > 0.99 * factor * detail).all()
                continue
            assert np.allclose(found - smooth, added, rtol=1e-6, atol=1e-12)


def test_noise_is_as_rough_along_all_axes_of_a_mixed_derivative():
    cascade = model(joint=False)
    bars = calibrate(cascade)
    slopes = [Derivatives(np.array([1.4, 2.0]), 1), Derivatives(np.array([45.0, 50.0]), 1)]
    rows = []  # slopes of an interpolation of the noise, along each axis
    for each, nodes, kernel in zip(slopes, (X, Y), KERNELS, strict=True):
        short = Kernel("matern52", 0.7 * (nodes[1] - nodes[0]), kernel.period)
        system = gram(short, nodes, nodes) + 1e-3 * np.eye(nodes.size)
        rows.append(np.linalg.solve(system, each.rows(short, nodes).T).T)
    white = np.dot(split_residuals(cascade, bars.scales, bars.errors)[0], bars.scales)
    expected = white * np.multiply.outer(*((row**2).sum(axis=1) for row in rows))
    whole = (slice(0, 2), slice(0, 2))
    found = variance_blocks(bars, cascade, slopes)(whole)
    assert (found > 0.99 * bars.factors[1, 1] * expected).all()
    assert np.allclose(variance_at_points(bars, cascade, slopes), found.diagonal(), rtol=1e-12)
    smooth = variance_blocks(bars, cascade, slopes, smooth=True)(whole)
    assert (smooth < found / 3).all()


def test_slopes_of_noise_are_in_their_errors_however_smooth_a_level_is():
    """A long kernel has a tiny ridge, which does not say that there is no noise."""
    nodes = [np.arange(14.0), np.arange(16.0), np.arange(12.0)]
    levels = [
        Level("x", Kernel("matern52", 50.0, constant=1.0), 1e-6),
        Level("y", Kernel("gaussian", 18.0, constant=1.0), 1e-9),
        Level("t", Kernel("matern32", 33.0, constant=1.0), 1e-3),
    ]
    x, y, t = np.meshgrid(*nodes, indexing="ij")
    noise = 0.02 * np.random.default_rng(0).standard_normal(x.shape)
    cascade = fit_cascade(np.sin(x / 5) * np.cos(y / 4) + noise, nodes, levels)
    bars = calibrate(cascade)
    x, y, t = np.arange(2.5, 11.0), np.arange(2.5, 13.0), np.array([3.0, 6.0, 8.0])
    by_x, by_y = np.cos(x / 5) / 5, -np.sin(y / 4) / 4
    mixed = np.multiply.outer(by_x, by_y)[:, :, None], Derivatives(x, 1), Derivatives(y, 1)
    trend = 0.0, Derivatives(x, 1), Values(y)
    for (truth, *asked), last in ((mixed, Values(t)), (trend, Derivatives(t + 0.5, 1))):
        error = answer_blocks(cascade, [*asked, last])(EVERYWHERE) - truth
        variance = variance_blocks(bars, cascade, [*asked, last])(EVERYWHERE)
        assert 0.4 < np.sqrt(np.mean(error**2 / variance)) < 1.4


def test_values_have_the_error_bars_of_values():
    cascade = model(joint=False)
    bars, queries = calibrate(cascade), [np.array([0.0, 1.3]), np.array([30.0, 40.0, 350.0])]
    whole = slice(0, 2), slice(0, 3)
    found = variance_blocks(bars, cascade, [Values(q) for q in queries])(whole)
    assert np.allclose(found, bars.variance_blocks(cascade, queries)(whole), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "first", [Means(np.array([0.5]), np.array([3.5])), Derivatives(np.array([1.2]), 1)]
)
def test_joint_bars_are_the_posterior(first):
    cascade, second = model(joint=True), Means(np.array([10.0]), np.array([80.0]))
    bars = calibrate(cascade)
    assert isinstance(bars, JointBars)
    rows = [f.rows(k, c) for f, k, c in zip((first, second), KERNELS, (X, Y), strict=True)]
    priors = [f.prior(k)[0] for f, k in zip((first, second), KERNELS, strict=True)]
    system = np.kron(*(gram(k, c, c) for k, c in zip(KERNELS, (X, Y), strict=True)))
    row = np.kron(*rows)[0]
    exact = np.prod(priors) - row @ np.linalg.solve(system + 0.02 * np.eye(120), row)
    noise = 0.02 * np.prod([noise_left(cascade, a, f)[0] for a, f in enumerate((first, second))])
    found = variance_blocks(bars, cascade, [first, second], smooth=True)((slice(0, 1),) * 2)
    assert found[0, 0] == pytest.approx(bars.scale * (exact + noise), rel=1e-9)
    for spread in ((), (0,), (1,)):
        at = variance_at_points(bars, cascade, [first, second], spread=spread, smooth=True)
        assert at.ravel()[0] == pytest.approx(found[0, 0], rel=1e-12)


def test_noise_averages_out_over_cells():
    cascade = model(joint=False)
    asked = Means(np.array([0.6, -0.5, 330.0]), np.array([0.9, 3.5, 390.0]))
    assert noise_left(cascade, 0, asked[:2]) == pytest.approx([1.0, 0.25], abs=0.02)
    assert noise_left(cascade, 1, asked[2:]) == pytest.approx([0.375], abs=0.02)
    assert noise_left(cascade, 0, Derivatives(X[:2], 1)).tolist() == [0.0, 0.0]


def test_blocks_are_parts_of_the_whole():
    cascade = model(joint=False)
    asked = [Derivatives(X[:4] + 0.3, 1), Means(Y[:3], Y[:3] + 9.0)]
    variance = variance_blocks(calibrate(cascade), cascade, asked)
    whole = variance((slice(0, 4), slice(0, 3)))
    assert np.array_equal(variance((slice(1, 3), slice(2, 3))), whole[1:3, 2:3])
    points = variance_at_points(calibrate(cascade), cascade, asked, spread=[1])
    assert np.allclose(points, whole, rtol=1e-12)


def test_shares_of_noise_have_the_sum_of_squares_that_is_left():
    cascade = model(joint=False)
    for asked in (
        Means(np.array([0.2, 1.0]), np.array([3.1, 1.4])),
        Values(np.array([0.3, 2.0, 0.3])),
        Derivatives(X[:2], 1),
    ):
        shares = noise_shares(cascade, 0, asked)
        assert np.allclose((shares**2).sum(axis=1), noise_left(cascade, 0, asked), rtol=1e-12)
    together = noise_shares(cascade, 0, Values(np.array([0.3, 2.0, 0.3])))
    assert (together @ together.T).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


@pytest.mark.slow
def test_long_levels_have_the_error_bars_of_dense_ones(monkeypatch):
    for joint in (False, True):
        long, dense = long_model(joint, dense=False), long_model(joint, dense=True)
        bars = calibrate(dense)
        query = np.array([3.3, 64.0, 1000.9])
        means = Means(query, query + np.array([0.1, 1.0, 80.0]))
        other = Values(np.array([0.4, 1.7, 2.0]))
        for asked in (means, Derivatives(query, 2)):
            pair, whole = [asked, other], (slice(0, 3), slice(0, 3))
            exact = variance_blocks(bars, dense, pair)(whole)
            assert np.allclose(variance_blocks(bars, long, pair)(whole), exact, rtol=1e-6, atol=0)
            monkeypatch.setattr(module, "_ROWS", 4)  # one point at a time
            at = variance_at_points(bars, long, pair)
            assert np.allclose(at, exact[np.arange(3), np.arange(3)], rtol=1e-6, atol=0)
            along = variance_at_points(bars, long, pair, spread=[0])
            assert np.allclose(along, exact.T, rtol=1e-6, atol=0)
            beside = variance_at_points(bars, long, pair, spread=[1])
            assert np.allclose(beside, exact, rtol=1e-6, atol=0)


def test_errors_of_a_spline_are_those_of_its_covariance():
    values = np.sin(X)[:, None] * np.cos(np.radians(Y))
    cubic, ring = Kernel("cubic", 2.0, errors="matern52"), Level("y", KERNELS[1], 0.01)
    cascade = fit_cascade(values, [X, Y], [Level("x", cubic), ring])
    asked = [Derivatives(np.array([0.5, 3.3]), 1), Values(np.array([45.0]))]
    whole = (slice(0, 2), slice(0, 1))
    bars = calibrate(cascade)
    found = variance_blocks(bars, cascade, asked)(whole)
    assert np.array_equal(found, variance_blocks(bars, cascade.covariance, asked)(whole))
    assert (found > 0).all()
    rough = fit_cascade(values, [X, Y], [Level("x", Kernel("cubic", 2.0, errors="matern12")), ring])
    with pytest.raises(SettingError, match="errors of the cubic spline along 'x' are too rough"):
        variance_blocks(calibrate(rough), rough, asked)
    means = [Means(np.array([0.5]), np.array([1.5])), asked[1]]
    assert variance_blocks(calibrate(rough), rough, means)((slice(0, 1), slice(0, 1))).item() > 0


def test_values_have_the_error_bars_that_answers_have_local_scales_included():
    cascade = model(joint=False)
    local = LocalScale(X[[1, 5, 8]], np.array([0.5, 2.0, 3.0])), None
    growth = LocalScale(X[[2, 6]], np.array([4.0, 1.0])), None
    bars = replace(calibrate(cascade), local=local, growth=growth)
    queries = np.array([0.3, 2.0, 4.4, 7.9]), np.array([15.0, 30.0, 200.0])
    asked, whole = [Values(query) for query in queries], (slice(0, 4), slice(0, 3))
    found = variance_blocks(bars, cascade, asked)(whole)
    assert np.allclose(found, bars.variance_blocks(cascade, queries)(whole), rtol=1e-9)
    narrow = [Means(queries[0] - 1e-7, queries[0] + 1e-7), asked[1]]
    plain = replace(bars, local=())
    with_scale, without = (variance_blocks(b, cascade, narrow)(whole) for b in (bars, plain))
    assert np.allclose(with_scale / without, local[0].at(queries[0])[:, None], rtol=1e-6)
