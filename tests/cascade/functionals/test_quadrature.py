"""Tests of dkrls_cli.cascade.functionals.quadrature."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.cascade.functionals import quadrature
from dkrls_cli.cascade.functionals.quadrature import make_rule
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.errors import SettingError

LOW, HIGH = np.array([0.0, 2.5, -1.0]), np.array([1.0, 7.25, 30.0])


def test_weights_of_every_interval_sum_to_one_and_points_lie_inside():
    rule = make_rule(Kernel("matern32", 0.7), LOW, HIGH, np.arange(9.0), latitude=False)
    for place in range(3):
        part = rule[place : place + 1]
        assert part.weights.sum() == pytest.approx(1.0, abs=1e-14)
        assert LOW[place] < part.points.min()
        assert part.points.max() < HIGH[place]


def test_polynomials_are_averaged_exactly():
    rule = make_rule(Kernel(sigma=3.0), LOW, HIGH, np.arange(9.0), latitude=False)
    exact = (HIGH**5 - LOW**5) / (5 * (HIGH - LOW))
    assert np.allclose(rule.average(rule.points[:, None] ** 4)[:, 0], exact, rtol=1e-14)


def test_latitudes_are_weighted_by_their_cosine():
    rule = make_rule(Kernel(sigma=9.0), LOW, HIGH, np.arange(9.0), latitude=True)
    low, high = np.radians(LOW), np.radians(HIGH)

    def integral(z):  # of cos(z)^2
        return z / 2 + np.sin(2 * z) / 4

    exact = (integral(high) - integral(low)) / (np.sin(high) - np.sin(low))
    assert np.allclose(rule.average(np.cos(np.radians(rule.points))), exact, rtol=1e-14)


def test_parts_of_a_rule_are_the_rule_of_parts():
    rule = make_rule(Kernel(sigma=0.3), LOW, HIGH, np.arange(9.0), latitude=False)
    values = np.sin(rule.points)[:, None]
    whole = rule.average(values)
    taken = rule.take(np.array([2, 0, 2]))
    assert np.array_equal(taken.average(np.sin(taken.points)[:, None]), whole[[2, 0, 2]])
    assert np.array_equal(rule[1:].average(values[rule.starts[1] :]), whole[1:])
    assert rule[3:].average(np.empty((0, 4))).shape == (0, 4)


def test_a_tiny_length_scale_takes_a_bounded_number_of_points():
    rule = make_rule(Kernel(sigma=1e-9), LOW, HIGH, np.arange(9.0), latitude=False)
    assert rule.points.size < 12 * 60 * 20


def test_too_many_points_are_refused(monkeypatch):
    monkeypatch.setattr(quadrature, "_MOST", 100)
    make_rule(Kernel(sigma=9.0), LOW[:1], HIGH[:1], np.zeros(1), latitude=False)
    with pytest.raises(SettingError, match="more points than fit the memory"):
        make_rule(Kernel(sigma=0.1), LOW, HIGH, np.arange(9.0), latitude=False)
