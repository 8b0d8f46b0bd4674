"""Errors averaged over settings against dense kriging, and series drawn from known fields."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from dkrls_cli.cascade.calibration import averaging as module
from dkrls_cli.cascade.calibration.averaging import WeightedMean, averaged_variances
from dkrls_cli.cascade.kernels import Kernel, gram

T = np.array([0.0, 1.0, 2.5, 3.0, 4.0, 6.0])
SERIES = np.random.default_rng(0).standard_normal((6, 3))
PLACES = np.array([1.2, 1.7, 2.2, 2.7])
MEAN = WeightedMean(
    np.array([0, 0.3, 0.2, 0.1, 0, 0]), PLACES, np.array([0.1, 0.2, 0.3, 0.4]), 0.07
)
LINE = Kernel("gaussian", 1.0)


def only(monkeypatch, families=("matern32",), steps=(3.0,), noise=(0.1,)):
    monkeypatch.setattr(module, "_FAMILIES", families)
    monkeypatch.setattr(module, "_STEPS", steps)
    monkeypatch.setattr(module, "_NOISE", noise)


def kriged(kernel, noise, series, answer, nodes=T, mean=MEAN):
    """Return likelihoods and squares of errors by ordinary kriging, with the plain formulas."""
    m, one = nodes.size, np.ones(nodes.size)
    system = gram(kernel, nodes, nodes) + noise * np.eye(m)
    inverse = np.linalg.inv(system)
    cross = mean.weights @ gram(kernel, mean.places, nodes) + noise * mean.shares
    rows = inverse @ (cross + one * (1 - one @ inverse @ cross) / (one @ inverse @ one))
    prior = mean.weights @ gram(kernel, mean.places, mean.places) @ mean.weights
    prior += noise * (mean.shares @ mean.shares + mean.unseen)
    left = prior - 2 * rows @ cross + rows @ system @ rows
    projected = inverse - inverse @ np.outer(one, one) @ inverse / (one @ inverse @ one)
    scale = np.einsum("mn,mk,kn->n", series, projected, series) / (m - 1)
    determinant = np.linalg.slogdet(system)[1] + np.log(one @ inverse @ one)
    return -0.5 * (determinant + (m - 1) * np.log(scale)), left * scale + (
        rows @ series - answer
    ) ** 2


def few(m):
    return module._student(m - 1) ** 2


@pytest.mark.parametrize(("freedom", "near"), [(1, 0.2), (2, 0.02), (3, 0.005), (11, 1e-4)])
def test_students_quantile_is_near_enough(freedom, near):
    exact = student.ppf(0.95, freedom) / norm.ppf(0.95)
    assert module._student(freedom) == pytest.approx(exact, rel=near)


def test_with_one_setting_it_is_ordinary_kriging(monkeypatch):
    only(monkeypatch)
    answer = np.array([0.4, -0.2, 3.0])
    expected = kriged(Kernel("matern32", 3.0), 0.1, SERIES, answer)[1]
    found = averaged_variances(LINE, T, SERIES, MEAN, answer)
    np.testing.assert_allclose(found, few(6) * expected, rtol=1e-9)
    moved = averaged_variances(LINE, T, SERIES + 1e3, MEAN, answer + 1e3)
    np.testing.assert_allclose(moved, found, rtol=1e-6)
    louder = averaged_variances(LINE, T, 10 * SERIES, MEAN, 10 * answer)
    np.testing.assert_allclose(louder, 100 * found, rtol=1e-9)


def test_settings_count_as_much_as_series_are_likely_by_them(monkeypatch):
    only(monkeypatch, families=("matern12", "gaussian"), noise=(0.1, 1.0))
    answer = np.zeros(3)
    settings = [(f, noise) for f in ("matern12", "gaussian") for noise in (0.1, 1.0)]
    both = [kriged(Kernel(f, 3.0), noise, SERIES, answer) for f, noise in settings]
    own, squares = (np.array(each) for each in zip(*both, strict=True))
    centred = SERIES - SERIES.mean(axis=0)
    patterns = centred / np.linalg.norm(centred, axis=0)
    shared = np.mean([(patterns[:, i] @ patterns[:, j]) ** 2 for i, j in ((0, 1), (0, 2), (1, 2))])
    likely = own + (1 / shared - 1) * own.mean(axis=1, keepdims=True)
    weights = np.exp(likely - likely.max(axis=0))
    expected = ((weights * squares**0.25).sum(axis=0) / weights.sum(axis=0)) ** 4
    found = averaged_variances(LINE, T, SERIES, MEAN, answer)
    np.testing.assert_allclose(found, few(6) * expected, rtol=1e-8)
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    np.testing.assert_allclose(averaged_variances(LINE, T, SERIES, MEAN, answer), found, rtol=1e-12)


def test_series_that_repeat_tell_no_more_than_one():
    one, answer = SERIES[:, :1], np.zeros(4)
    alone = averaged_variances(LINE, T, one, MEAN, answer[:1])
    four = averaged_variances(LINE, T, one * [1.0, -2.0, 5.0, 1.0], MEAN, answer)
    np.testing.assert_allclose(four, alone * [1.0, 4.0, 25.0, 1.0], rtol=1e-9)


def test_circles_and_logarithms_are_those_of_the_coordinates():
    ring, places = Kernel("gaussian", 1.0, 12.0), np.arange(0.0, 12, 2)
    mean = WeightedMean(np.full(6, 1 / 6), places + 1.0, np.full(6, 1 / 6), 0.1)
    found = averaged_variances(ring, places, SERIES, mean, np.zeros(3))
    turned = averaged_variances(ring, places, np.roll(SERIES, 2, axis=0), mean, np.zeros(3))
    np.testing.assert_allclose(turned, found, rtol=1e-6)
    line = averaged_variances(LINE, places, SERIES, mean, np.zeros(3))
    assert not np.allclose(line, found, rtol=1e-2)
    warped, logs = Kernel("gaussian", 1.0, warp="log"), np.log(T + 1)
    mean = WeightedMean(MEAN.shares, np.exp(PLACES / 4), MEAN.weights, MEAN.unseen)
    plain = WeightedMean(MEAN.shares, PLACES / 4, MEAN.weights, MEAN.unseen)
    np.testing.assert_allclose(
        averaged_variances(warped, T + 1, SERIES, mean, np.zeros(3)),
        averaged_variances(LINE, logs, SERIES, plain, np.zeros(3)),
        rtol=1e-6,
    )


def test_uneven_coordinates_are_tried_by_their_order_as_well(monkeypatch):
    only(monkeypatch)
    nodes, answer = np.array([1.0, 2.0, 4.0, 7.0, 12.0, 16.1]), np.zeros(3)
    mean = WeightedMean(MEAN.shares, np.array([1.5, 3.0, 8.25]), np.full(3, 1 / 3), 0.07)
    even = WeightedMean(MEAN.shares, np.array([0.5, 1.5, 3.25]), np.full(3, 1 / 3), 0.07)
    one, tried = [], [(nodes, mean, 3.0 * 3.0), (np.arange(6.0), even, 3.0)]
    for coordinates, asked, sigma in tried:
        kernel = Kernel("matern32", sigma)
        one.append(kriged(kernel, 0.1, SERIES[:, :1], answer[:1], coordinates, asked))
    likely, squares = (np.array(each)[:, 0] for each in zip(*one, strict=True))
    weights = np.exp(likely - likely.max())
    both = (weights @ squares**0.25 / weights.sum()) ** 4
    found = averaged_variances(LINE, nodes, SERIES[:, :1], mean, answer[:1])
    assert found[0] == pytest.approx(few(6) * both, rel=1e-8)
    nodes[-1] = 16.0  # steps of one to five no longer
    nodes[4] = 11.0
    alone = averaged_variances(
        LINE, nodes[:5], SERIES[:5, :1], replace(mean, shares=MEAN.shares[:5]), answer[:1]
    )
    expected = kriged(
        Kernel("matern32", 3.0 * 2.5),
        0.1,
        SERIES[:5, :1],
        answer[:1],
        nodes[:5],
        replace(mean, shares=MEAN.shares[:5]),
    )[1]
    assert alone[0] == pytest.approx(few(5) * expected[0], rel=1e-8)


def test_series_of_one_value_are_known():
    found = averaged_variances(LINE, T, np.ones((6, 2)), MEAN, np.ones(2))
    assert (found < 1e-12).all()
    two = averaged_variances(
        LINE,
        T[:2],
        SERIES[:2],
        WeightedMean(np.array([0.5, 0.5]), np.array([0.5]), np.ones(1), 0.0),
        np.zeros(3),
    )
    assert np.isfinite(two).all()


@pytest.mark.parametrize(
    ("family", "sigma", "noise", "least"),
    [
        ("matern12", 2.0, 0.0, 0.85),
        ("matern52", 4.0, 0.0, 0.95),
        ("matern52", 6.0, 0.3, 0.76),
        ("gaussian", 0.5, 0.1, 0.85),
    ],
)
def test_of_few_samples_bands_hold_what_they_say(family, sigma, noise, least):
    # every second value is known, and all are averaged: noise cannot be told from detail
    fine, rng = np.arange(11.0), np.random.default_rng(1)
    system = gram(Kernel(family, sigma), fine, fine) + (noise + 1e-9) * np.eye(11)
    drawn = np.linalg.cholesky(system) @ rng.standard_normal((11, 400))
    weights = np.r_[0.05, np.full(9, 0.1), 0.05]
    mean = WeightedMean(weights[::2], fine, weights, float(np.sum(weights[1::2] ** 2)))
    told = np.r_[0.1, np.full(4, 0.2), 0.1] @ drawn[::2]  # straight lines between them
    width = norm.ppf(0.95) * np.sqrt(averaged_variances(LINE, fine[::2], drawn[::2], mean, told))
    off = np.abs(told - weights @ drawn)
    assert np.mean(off < width) > least
    assert np.median(width) < 6 * norm.ppf(0.95) * np.std(off)
