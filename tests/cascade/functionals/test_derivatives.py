"""Tests of dkrls_cli.cascade.functionals.derivatives."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.derivatives import (
    ORDERS,
    derivative_covariance,
    derivative_gram,
    derivative_pairs,
    derivative_variance,
    prior_variance,
    refuse_rough,
)
from dkrls_cli.cascade.kernels import CYCLE_SIGMA, FAMILIES, Kernel, gram
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.errors import SettingError

SMOOTH = [(family, order) for family in FAMILIES for order in range(1, ORDERS[family] + 1)]


def exact_kernel(kernel: Kernel, d):
    """Return k(d) in mpmath's numbers, from the definition."""

    def chord(period):
        return period / mpmath.pi * mpmath.sin(mpmath.pi * d / period)

    s = abs((d if kernel.period is None else chord(mpmath.mpf(kernel.period))) / kernel.sigma)
    value = {
        "gaussian": lambda: mpmath.exp(-(s**2) / 2),
        "matern52": lambda: (
            (1 + mpmath.sqrt(5) * s + 5 * s**2 / 3) * mpmath.exp(-mpmath.sqrt(5) * s)
        ),
        "matern32": lambda: (1 + mpmath.sqrt(3) * s) * mpmath.exp(-mpmath.sqrt(3) * s),
        "matern12": lambda: mpmath.exp(-s),
    }[kernel.family]()
    if kernel.cycle is not None:
        wave = chord(mpmath.mpf(kernel.cycle)) / (CYCLE_SIGMA * kernel.cycle)
        value += kernel.swing * mpmath.exp(-(wave**2) / 2)
    return value + kernel.constant


@pytest.mark.parametrize(("family", "order"), SMOOTH)
@pytest.mark.parametrize("circle", [False, True])
def test_covariances_of_derivatives_equal_those_of_mpmath(family, order, circle):
    where = {"period": 9.0} if circle else {"cycle": 5.0, "swing": 0.7}
    kernel = Kernel(family, 1.3, constant=0.4, **where)
    query = np.array([0.03, 1.1, 4.0])
    found = derivative_covariance(kernel, query, order)
    assert np.allclose(found.diagonal(), prior_variance(kernel, query, order), rtol=1e-12)
    with mpmath.workdps(40):
        for a, b in [(0, 1), (1, 0), (0, 2)]:
            d = mpmath.mpf(query[a]) - mpmath.mpf(query[b])
            exact = float(mpmath.diff(lambda d: exact_kernel(kernel, d), d, 2 * order))
            assert found[a, b] == pytest.approx((-1) ** order * exact, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("warp", ["log", "sqrt"])
@pytest.mark.parametrize("order", [1, 2])
def test_covariances_of_derivatives_by_warped_coordinates(warp, order):
    kernel, query = Kernel("matern52", 0.7, warp=warp), np.array([1.0, 1.9, 4.0])
    found = derivative_covariance(kernel, query, order)
    assert np.allclose(found.diagonal(), prior_variance(kernel, query, order), rtol=1e-12)
    bend = {"log": mpmath.log, "sqrt": mpmath.sqrt}[warp]

    def covariance(a, b):
        return exact_kernel(Kernel("matern52", 0.7), bend(a) - bend(b))

    with mpmath.workdps(40):
        for a, b in [(0, 1), (2, 0)]:
            exact = float(mpmath.diff(covariance, (query[a], query[b]), (order, order)))
            assert found[a, b] == pytest.approx(exact, rel=1e-8)


def test_covariances_of_values_are_the_kernel():
    kernel, query = Kernel("matern12", 0.7), np.array([1.0, 1.9, 4.0])
    assert np.array_equal(derivative_covariance(kernel, query, 0), gram(kernel, query, query))


@pytest.mark.parametrize(("family", "order"), SMOOTH)
@pytest.mark.parametrize("sigma", [0.05, 1.3, 100.0])
@pytest.mark.parametrize("circle", [False, True])
def test_derivatives_equal_those_of_mpmath(family, order, sigma, circle):
    where = {"period": 9.0} if circle else {"cycle": 5.0, "swing": 0.7}
    kernel = Kernel(family, sigma, constant=0.4, **where)
    nodes, query = np.array([0.0, 1.0, 4.0]), np.array([0.03, 2.7])
    found = derivative_gram(kernel, query, nodes, order)
    with mpmath.workdps(40):
        for place in np.ndindex(found.shape):
            d = mpmath.mpf(query[place[0]]) - mpmath.mpf(nodes[place[1]])
            exact = float(mpmath.diff(lambda d: exact_kernel(kernel, d), d, order))
            scale = derivative_variance(kernel, order) ** 0.5
            assert found[place] == pytest.approx(exact, rel=1e-9, abs=1e-13 * scale)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "order"), SMOOTH)
@pytest.mark.parametrize("circle", [False, True])
def test_variance_is_the_even_derivative_at_0(family, order, circle):
    where = {"period": 9.0} if circle else {"cycle": 5.0, "swing": 0.7}
    kernel = Kernel(family, 1.3, constant=0.4, **where)
    with mpmath.workdps(50):
        exact = mpmath.limit(
            lambda h: mpmath.diff(lambda d: exact_kernel(kernel, d), h, 2 * order), 0, exp=True
        )
    assert derivative_variance(kernel, order) == pytest.approx(
        (-1) ** order * float(exact), rel=1e-6
    )


def test_values_are_the_derivative_of_order_0():
    kernel, nodes = Kernel("matern32", 2.0, constant=0.5), np.array([0.0, 1.0])
    assert np.array_equal(
        derivative_gram(kernel, nodes, nodes, 0), gram(kernel, nodes, nodes), equal_nan=True
    )
    assert derivative_pairs(kernel, nodes, nodes, 0).tolist() == [1.5, 1.5]
    assert derivative_variance(kernel, 0) == 1.5


def test_far_coordinates_have_no_slope():
    for family in ("gaussian", "matern52", "matern32"):
        slopes = derivative_gram(Kernel(family, 1e-300), np.array([1e300]), np.zeros(1), 1)
        assert slopes.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("family", "order", "words"),
    [
        ("matern12", 1, "no first derivative. Fit with matern32, matern52 or gaussian"),
        ("matern12", 2, "no second derivative. Fit with matern52 or gaussian"),
        ("matern32", 2, "no second derivative. Fit with matern52 or gaussian"),
        ("gaussian", 3, "Orders 1 and 2 are answered"),
    ],
)
def test_a_derivative_that_a_field_does_not_have_is_refused(family, order, words):
    with pytest.raises(SettingError, match=words):
        refuse_rough(Kernel(family), order, "time")
    for known, most in ORDERS.items():
        refuse_rough(Kernel(known), most, "time")


def test_a_spline_with_pieces_has_the_derivatives_of_the_roughest_and_those_of_differences():
    edged = Kernel("cubic", pieces=(Piece("linear", 2.0, 3.0),))
    with pytest.raises(SettingError, match=r"a linear kernel, as 'time' has, has no first"):
        refuse_rough(edged, 1, "time")
    smooth = Kernel("cubic", pieces=(Piece("quintic", 2.0, 5.0),))
    refuse_rough(smooth, 2, "time")
    nodes, query, step = np.arange(9.0), np.array([1.3, 2.6, 3.4, 4.8, 6.3]), 1e-5
    near = gram(smooth, query + step, nodes) - gram(smooth, query - step, nodes)
    found = derivative_gram(smooth, query, nodes, 1)
    np.testing.assert_allclose(found, near / (2 * step), atol=1e-8)


LONG = [
    Kernel("matern32", 4.0, constant=0.3, cycle=50.0),
    Kernel("matern52", 30.0),
    Kernel("gaussian", 2.0),  # banded
    Kernel("gaussian", 100.0, constant=1.0),  # of low rank
    Kernel("gaussian", 3.0, period=1500.0),  # circulant, far
    Kernel("matern52", 0.4, period=1500.0),  # circulant, short
]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", LONG, ids=str)
def test_long_levels_answer_derivatives_as_dense_ones(kernel):
    rng = np.random.default_rng(0)
    nodes = np.arange(1500.0)
    query = np.concatenate([rng.uniform(-0.5, 1499.5, 40), [0.0, 63.0, 64.0, 700.0]])
    factor = LongFactor.build(kernel, nodes, 0.05)
    data = rng.standard_normal((1500, 2))
    system = gram(kernel, nodes, nodes) + 0.05 * np.eye(1500)
    order = 1 if kernel.family == "matern32" else 2
    for each in range(1, order + 1):
        rows = derivative_gram(kernel, query, nodes, each)
        scale = derivative_variance(kernel, each) ** 0.5
        found = factor.prepare(factor.solve(data), each)(query)
        assert np.allclose(found, rows @ np.linalg.solve(system, data), rtol=0, atol=1e-9 * scale)
        explained = np.einsum("qm,mq->q", rows, np.linalg.solve(system, rows.T))
        left = derivative_variance(kernel, each) - explained
        assert np.allclose(factor.unexplained(query, each), left, rtol=0, atol=1e-9 * scale**2)


@pytest.mark.parametrize("warp", ["log", "sqrt"])
@pytest.mark.parametrize(("family", "order"), SMOOTH)
def test_derivatives_by_warped_coordinates_equal_those_of_mpmath(family, order, warp):
    kernel, function = Kernel(family, 0.7, warp=warp), getattr(mpmath, warp)
    nodes, query = np.array([0.2, 1.0, 4.0]), np.array([0.3, 2.7])
    found, prior = (
        derivative_gram(kernel, query, nodes, order),
        prior_variance(kernel, query, order),
    )
    plain = kernel.unwarped
    with mpmath.workdps(40):
        for place in np.ndindex(found.shape):
            there = function(mpmath.mpf(nodes[place[1]]))

            def value(z, there=there):
                return exact_kernel(plain, function(z) - there)

            exact = mpmath.diff(value, mpmath.mpf(query[place[0]]), order)
            assert found[place] == pytest.approx(float(exact), rel=1e-9, abs=1e-13)
    # the variance is that of a difference quotient of values, but for its step
    step = 1e-3
    weights = np.array([-0.5, 0.0, 0.5]) / step if order == 1 else np.array([1, -2, 1]) / step**2
    for place, z in enumerate(query):
        places = z + step * np.array([-1.0, 0.0, 1.0])
        quotient = weights @ gram(kernel, places, places) @ weights
        assert prior[place] == pytest.approx(quotient, rel=2e-2)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("degree", [3, 5])
def test_derivatives_of_splines_are_those_of_scipy(degree, order):
    nodes, query = np.geomspace(1.0, 30.0, 12), np.linspace(1.0, 30.0, 7)
    name = {3: "cubic", 5: "quintic"}[degree]
    exact = make_interp_spline(nodes, np.eye(12), k=degree).derivative(order)(query)
    assert np.allclose(derivative_gram(Kernel(name), query, nodes, order), exact, atol=1e-9)
    warped = make_interp_spline(np.log(nodes), np.eye(12), k=degree)
    first, second = (warped.derivative(n)(np.log(query)) for n in (1, 2))
    by_chain = first / query[:, None] if order == 1 else (second - first) / query[:, None] ** 2
    found = derivative_gram(Kernel(name, warp="log"), query, nodes, order)
    assert np.allclose(found, by_chain, atol=1e-9)
