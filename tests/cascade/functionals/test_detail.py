"""Tests of dkrls_cli.cascade.functionals.detail."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals.derivatives import derivative_covariance
from dkrls_cli.cascade.functionals.detail import (
    Detail,
    detail_kernel,
    has_detail,
    split_residuals,
)
from dkrls_cli.cascade.functionals.functional import Derivatives, Means, Values
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

X = np.array([0.0, 2.0, 4.0, 6.5, 8.0, 10.0])
SLOPES = Derivatives(np.array([1.0, 4.0, 7.3]), 1)


def test_the_kernel_of_detail_is_as_long_as_the_steps():
    plain = detail_kernel(Kernel("gaussian", 50.0, constant=3.0), X)
    assert plain == Kernel("matern52", 0.7 * 2.0)
    ring = detail_kernel(Kernel("gaussian", 50.0, period=12.0), X)
    assert ring == Kernel("matern52", 1.4, 12.0)
    steps = 2.0 ** np.arange(5)
    warped = detail_kernel(Kernel("matern52", 1.0, warp="log"), steps)
    assert (warped.family, warped.warp) == ("matern52", "log")
    assert warped.sigma == pytest.approx(0.7 * np.log(2))


def test_noise_is_no_larger_than_the_least_errors_of_left_out_slices():
    levels = [Level(name, Kernel(), ridge) for name, ridge in [("s", 0.5), ("x", 0.1), ("y", 0.0)]]
    x = np.arange(4.0)
    cascade = fit_cascade(np.zeros((1, 4, 4)), [np.zeros(1), x, x], levels)
    scales, errors = np.array([1.0, 50.0, 3.0]), np.array([0.0, 2.0, 3.0])
    noises, details = split_residuals(cascade, scales, errors)
    assert noises == pytest.approx([0.5, 4.0 / 50.0, 0.0])  # that of the single slice is 0.5 < 4
    assert details == pytest.approx([0.0, 0.1 - 4.0 / 50.0, 0.0])
    assert split_residuals(cascade, scales, 10 * errors)[0] == pytest.approx([0.5, 0.1, 0.0])
    alone = fit_cascade(np.ones(1), [np.zeros(1)], [Level("s", Kernel(), 0.3)])
    assert split_residuals(alone, np.ones(1), np.zeros(1)) == ([0.3], [0.0])


def test_only_slopes_that_pass_through_have_detail():
    level, spline = Level("x", Kernel(), 0.1), Level("x", Kernel("cubic"))
    assert has_detail(level, SLOPES, smooth=False)
    assert not has_detail(level, SLOPES, smooth=True)
    assert not has_detail(level, Values(X), smooth=False)
    assert not has_detail(level, Means(X[:1], X[1:2]), smooth=False)
    assert not has_detail(spline, SLOPES, smooth=False)


def test_slopes_of_detail_are_those_of_an_interpolation():
    detail = Detail(Kernel(), X)
    kernel = detail.kernel
    system = gram(kernel, X, X) + 1e-3 * np.eye(6)
    cross = SLOPES.rows(kernel, X)
    assert np.allclose(detail.rows(SLOPES), cross @ np.linalg.inv(system), rtol=1e-9)
    left = derivative_covariance(kernel, SLOPES.query, 1) - cross @ np.linalg.solve(system, cross.T)
    assert np.allclose(detail.covariance(SLOPES, 0.0, 2.0), 2 * left, rtol=1e-9)
    assert np.allclose(detail.variance(SLOPES, 0.0, 2.0), 2 * left.diagonal(), rtol=1e-9)
    assert np.allclose(detail.left_open(SLOPES), left.diagonal(), rtol=1e-9)
    # half-way between two coordinates the slope is that of their difference, or steeper
    two = detail.rows(Derivatives(np.array([3.0]), 1)) @ np.array([0, -1.0, 1.0, 0, 0, 0])
    assert 1.0 < two[0] < 1.5


def test_slopes_of_noise_count_where_they_are_larger():
    detail = Detail(Kernel(), X)
    left, rows = detail.left_open(SLOPES), detail.rows(SLOPES)
    noise = (rows**2).sum(axis=1)  # the variance of rows times white noise
    assert noise[0] > left[0]  # half-way
    assert noise[1] < left[1]  # at a coordinate
    expected = 0.5 * left + 2.0 * np.where(noise > left, noise, left)
    assert np.allclose(detail.variance(SLOPES, 2.0, 0.5), expected, rtol=1e-12)
    related = detail.covariance(SLOPES, 2.0, 0.5)
    assert np.allclose(related.diagonal(), expected, rtol=1e-9)
    assert np.allclose(related, related.T)
    assert np.linalg.eigvalsh(related).min() > 0
    both = detail.covariance(SLOPES, 0.0, 1.0) + rows @ rows.T
    shared = 0.5 * detail.covariance(SLOPES, 0.0, 1.0)
    width = np.sqrt(np.diag(both))
    white = (related - shared) / np.sqrt(np.outer(*[np.diag(related - shared)] * 2))
    assert np.allclose(white, both / np.outer(width, width), rtol=1e-9)


def test_coordinates_far_closer_than_a_step_tell_no_slope():
    close = np.sort(np.append(X, 4.0 + 1e-4))
    rows = Detail(Kernel(), close).rows(Derivatives(np.array([4.00005]), 1))
    assert np.abs(rows).max() < 20  # and not the 10,000 of a difference


def test_long_levels_have_the_slopes_of_dense_ones(monkeypatch):
    nodes = np.arange(3000.0)
    long = Detail(Kernel("matern32", 40.0), nodes)
    assert isinstance(long.factor, LongFactor)
    residual = np.random.default_rng(0).standard_normal((3000, 2))
    some = Derivatives(np.array([1500.3, 1501.0]), 1)
    near = slice(1450, 1550)
    system = gram(long.kernel, nodes[near], nodes[near]) + 1e-3 * np.eye(100)
    exact = some.rows(long.kernel, nodes[near]) @ np.linalg.solve(system, residual[near])
    assert np.allclose(long.rows(some) @ residual, exact, rtol=1e-8)
    cross = some.rows(long.kernel, nodes[near])
    left = some.prior(long.kernel) - (cross @ np.linalg.solve(system, cross.T)).diagonal()
    assert np.allclose(long.left_open(some), left, rtol=1e-8)
