"""Tests of dkrls_cli.cascade.functionals.functional."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import make_interp_spline
from scipy.special import erf

from dkrls_cli.cascade.functionals import functional as module
from dkrls_cli.cascade.functionals.functional import Derivatives, Means, Values, parts_of
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram

LOW, HIGH = np.array([3.2, 10.0, 0.0]), np.array([3.7, 14.2, 36.0])
NODES = np.arange(36.0)


def integrate(function, low, high, places):
    """Return an integral by scipy's adaptive rule, between places that are hard for it."""
    edges = sorted({low, high, *(p for p in places if low < p < high)})
    parts = [
        quad(function, *ends, epsabs=1e-14, epsrel=1e-13, limit=200) for ends in pairwise(edges)
    ]
    return math.fsum(part[0] for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sigma", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("circle", [False, True])
@pytest.mark.parametrize("latitude", [False, True])
def test_means_equal_integrals(family, sigma, circle, latitude):
    where = {"period": 36.0} if circle else {"cycle": 7.0, "swing": 0.6}
    kernel = Kernel(family, sigma, constant=0.3, **where)
    found = Means(LOW, HIGH, latitude).rows(kernel, NODES)
    for place, (low, high) in enumerate(zip(LOW, HIGH, strict=True)):
        for node in (3, 12):
            beside = NODES[node] + np.array([-5 * sigma, 0.0, 5 * sigma])
            around = NODES[node] + np.arange(-36, 37, 7.0)

            def weighted(z, node=node):
                weight = math.cos(math.radians(z)) if latitude else 1.0
                return weight * gram(kernel, np.array([z]), NODES[node : node + 1])[0, 0]

            total = integrate(weighted, low, high, [*beside, *around])
            width = (
                math.degrees(math.sin(math.radians(high)) - math.sin(math.radians(low)))
                if latitude
                else high - low
            )
            assert found[place, node] == pytest.approx(total / width, abs=5e-15)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("latitude", [False, True])
@pytest.mark.parametrize("period", [None, 36.0])
def test_covariances_of_means_are_means_of_rows(family, latitude, period, monkeypatch):
    kernel = Kernel(family, 2.0, period, constant=0.2)
    asked = Means(np.array([3.0, 5.0, 20.0]), np.array([5.0, 6.5, 33.0]), latitude)
    found = asked.covariance(kernel)
    assert np.allclose(found, found.T, rtol=1e-12)
    assert np.array_equal(found.diagonal(), asked.prior(kernel))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    for one, other in [(0, 1), (0, 2), (2, 1)]:
        low, high = asked.low[other], asked.high[other]
        places = low + (nodes + 1) / 2 * (high - low)
        share = weights * (np.cos(np.radians(places)) if latitude else 1.0)
        rows = asked.take(np.array([one])).rows(kernel, places)[0]
        assert found[one, other] == pytest.approx(rows @ share / share.sum(), rel=1e-9)
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    assert np.allclose(asked.covariance(kernel), found, rtol=1e-13)


def test_covariances_of_values_and_slopes():
    kernel, query = Kernel("matern52", 2.0), np.array([0.0, 1.0, 2.5])
    assert np.array_equal(Values(query).covariance(kernel), gram(kernel, query, query))
    slopes = Derivatives(query, 1)
    assert np.allclose(slopes.covariance(kernel).diagonal(), slopes.prior(kernel), rtol=1e-12)


def test_means_of_a_gaussian_are_error_functions():
    kernel = Kernel(sigma=0.8)
    ends = [erf((end[:, None] - NODES) / (0.8 * math.sqrt(2))) for end in (HIGH, LOW)]
    exact = 0.8 * math.sqrt(math.pi / 2) * (ends[0] - ends[1]) / (HIGH - LOW)[:, None]
    assert np.allclose(Means(LOW, HIGH).rows(kernel, NODES), exact, rtol=0, atol=5e-15)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("latitude", [False, True])
@pytest.mark.parametrize("period", [None, 36.0])
def test_the_prior_of_a_mean_is_the_mean_of_its_rows(family, latitude, period):
    for sigma in (0.05, 2.0, 100.0):
        kernel = Kernel(family, sigma, period, constant=0.2)
        prior = Means(LOW, HIGH, latitude).prior(kernel)
        for place in range(3):
            mean = Means(LOW[place : place + 1], HIGH[place : place + 1], latitude)
            fine = Means(LOW[place : place + 1], HIGH[place : place + 1], latitude)
            places = module.make_rule(
                Kernel("matern12", max(sigma, 0.2)),
                fine.low,
                fine.high,
                fine.low,
                latitude=latitude,
            )
            twice = places.average(mean.rows(kernel, places.points)[0])[0]
            assert prior[place] == pytest.approx(twice, rel=1e-12)


def test_the_prior_of_a_narrow_cell_is_the_variance():
    kernel = Kernel("matern32", 5.0)
    for latitude in (False, True):
        narrow = Means(np.array([60.0]), np.array([60.0 + 1e-9]), latitude)
        assert narrow.prior(kernel)[0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "asked", [Values(LOW), Derivatives(LOW, 1), Means(LOW, HIGH), Means(LOW, HIGH, latitude=True)]
)
def test_functionals_are_cut_as_their_rows(asked):
    kernel = Kernel("matern52", 2.0)
    rows, prior = asked.rows(kernel, NODES), asked.prior(kernel)
    assert len(asked) == 3
    assert np.allclose(asked[1:].rows(kernel, NODES), rows[1:], rtol=0, atol=1e-15)
    which = np.array([2, 0])
    assert np.allclose(asked.take(which).rows(kernel, NODES), rows[which], rtol=0, atol=1e-15)
    assert np.allclose(asked.take(which).prior(kernel), prior[which], rtol=1e-14)


def test_rows_of_means_are_computed_in_parts(monkeypatch):
    kernel = Kernel("matern52", 2.0)
    whole = Means(LOW, HIGH).rows(kernel, NODES)
    monkeypatch.setattr(module, "_AT_ONCE", 500)
    assert np.array_equal(Means(LOW, HIGH).rows(kernel, NODES), whole)
    assert parts_of(np.array([3, 4, 5, 20, 1]), 50) == [
        slice(0, 2),
        slice(2, 3),
        slice(3, 4),
        slice(4, 5),
    ]
    assert parts_of(np.empty(0, int), 50) == []


WARPED = np.geomspace(0.3, 90.0, 14)
CELLS = np.array([0.31, 2.0, 5.0]), np.array([80.0, 2.2, 11.0])


@pytest.mark.slow
@pytest.mark.parametrize("warp", ["log", "sqrt"])
@pytest.mark.parametrize("family", ["gaussian", "matern32", "matern12"])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
def test_means_along_warped_coordinates_equal_integrals(warp, family, sigma):
    kernel, function = Kernel(family, sigma, constant=0.2, warp=warp), {"log": np.log}.get(warp)
    function = function or np.sqrt
    asked = Means(*CELLS)
    found, prior = asked.rows(kernel, WARPED), asked.prior(kernel)
    steps = np.arange(-12, 13) * sigma
    for place, (low, high) in enumerate(zip(*CELLS, strict=True)):
        for node in (3, 9):
            centre = float(function(WARPED[node])) + steps
            hard = np.exp(centre) if warp == "log" else np.where(centre > 0, centre, 0.0) ** 2

            def value(z, node=node):
                return gram(kernel, np.array([z]), WARPED[node : node + 1])[0, 0]

            mean = integrate(value, low, high, hard.tolist()) / (high - low)
            assert found[place, node] == pytest.approx(mean, abs=2e-14)
        dense = module.make_rule(
            Kernel("matern12", 0.5 * sigma, warp=warp),
            *(c[place : place + 1] for c in CELLS),
            WARPED,
            latitude=False,
        )
        one = Means(*(c[place : place + 1] for c in CELLS))
        twice = dense.average(one.rows(kernel, dense.points)[0])[0]
        assert prior[place] == pytest.approx(twice, rel=1e-11)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_means_of_splines_are_those_of_scipy(degree):
    name = {1: "linear", 3: "cubic", 5: "quintic"}[degree]
    spline = make_interp_spline(WARPED, np.eye(14), k=degree)
    exact = [spline.integrate(*ends) / (ends[1] - ends[0]) for ends in zip(*CELLS, strict=True)]
    rows = Means(*CELLS).rows(Kernel(name, 7.0), WARPED)
    assert np.allclose(rows, exact, rtol=0, atol=1e-11)
    warped = make_interp_spline(np.log(WARPED), np.eye(14), k=degree)
    places, weights = np.polynomial.legendre.leggauss(40)
    edges = np.unique([0.31, 80.0, *WARPED[(WARPED > 0.31) & (WARPED < 80.0)]])
    mean = sum(
        (b - a) / 2 * weights @ warped(np.log((a + b) / 2 + (b - a) / 2 * places))
        for a, b in pairwise(edges)
    ) / (80.0 - 0.31)
    rows = Means(*CELLS).rows(Kernel(name, 7.0, warp="log"), WARPED)
    assert np.allclose(rows[0], mean, rtol=0, atol=1e-11)


def test_what_functionals_make_of_a_constant():
    assert (Values(LOW).of_one, Means(LOW, HIGH).of_one, Derivatives(LOW, 2).of_one) == (1, 1, 0)


@pytest.mark.parametrize(("warp", "function"), [("log", math.log), ("sqrt", math.sqrt)])
def test_a_wide_cell_between_nodes_is_cut_where_a_warped_coordinate_doubles(warp, function):
    kernel, nodes = Kernel("gaussian", 30.0, warp=warp), np.array([0.5, 3000.0])
    found = Means(np.array([1.0]), np.array([2000.0])).rows(kernel, nodes)[0]
    for node, mean in zip(nodes.tolist(), found.tolist(), strict=True):
        there = function(node)
        total = integrate(
            lambda z, there=there: math.exp(-0.5 * ((function(z) - there) / 30) ** 2),
            1.0,
            2000.0,
            [2.0**n for n in range(1, 11)],
        )
        assert mean == pytest.approx(total / 1999.0, abs=1e-14)
