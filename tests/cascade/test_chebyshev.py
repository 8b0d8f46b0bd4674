"""Chebyshev series against the functions they stand for, and which functions have none."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval

from dkrls_cli.cascade.chebyshev import Series, resolve

Function = Callable[[np.ndarray], np.ndarray]


def column(function: Function) -> Function:
    """A function of one number as one with values of size 1."""
    return lambda z: function(z)[:, None]


def polynomial(degree: int, last: float = 1.0) -> Function:
    """1 + last * T_degree, on [-1, 1]."""
    return column(lambda z: chebval(z, [1.0] + [0.0] * (degree - 1) + [last]))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (3.0, 3.5), (-2e6, 5e6), (-1e-9, 4e-9)])
def test_smooth_functions_are_resolved_to_round_off(low: float, high: float) -> None:
    def waves(z: np.ndarray) -> np.ndarray:
        s = (z - low) / (high - low)
        return np.stack([np.sin(9 * s), np.exp(-s), np.full_like(s, 2.0)], axis=1)

    series = resolve(waves, low, high, limit=100)
    assert series is not None
    z = np.concatenate([[low, high], np.linspace(low, high, 57)])
    np.testing.assert_allclose(series(z), waves(z), rtol=0, atol=3e-14)


def test_functions_are_asked_inside_the_interval_only() -> None:
    asked = []

    def function(z: np.ndarray) -> np.ndarray:
        asked.append(z)
        return np.cos(8 * z)[:, None]

    assert resolve(function, 2.0, 5.0, limit=200) is not None
    points = np.concatenate(asked)
    assert points.min() > 2.0
    assert points.max() < 5.0
    assert [z.size for z in asked] == [16, 24, 36, 54]


@pytest.mark.parametrize(
    ("degree", "limit", "resolved"),
    [
        (1, 16, False),
        (1, 17, True),
        (11, 17, True),
        (12, 24, False),
        (12, 25, True),
    ],
)
def test_a_series_has_four_terms_to_spare_below_its_limit(
    degree: int, limit: int, resolved: bool
) -> None:
    """The first series is of 16 points, then 24, 36, and so on while that is below the limit."""
    series = resolve(polynomial(degree), -1.0, 1.0, limit)
    assert (series is not None) == resolved
    assert series is None or len(series.terms) == degree + 1


@pytest.mark.parametrize(("last", "terms"), [(6e-15, 11), (1e-16, 1)])
def test_terms_up_to_eight_epsilons_are_round_off(last: float, terms: int) -> None:
    series = resolve(polynomial(10, last), -1.0, 1.0, limit=17)
    assert series is not None
    assert len(series.terms) == terms


@pytest.mark.parametrize(("noise", "terms"), [(3.0, 11), (4.0, 1)])
def test_round_off_may_be_larger(noise: float, terms: int) -> None:
    series = resolve(polynomial(10, 6e-15), -1.0, 1.0, limit=17, noise=noise)
    assert series is not None
    assert len(series.terms) == terms


@pytest.mark.parametrize("function", [np.abs, lambda z: np.sqrt(1 + z), np.sign])
def test_functions_with_kinks_have_no_series(function: Function) -> None:
    assert resolve(column(function), -1.0, 1.0, limit=300) is None


@pytest.mark.parametrize(
    ("peak", "told", "seen"),
    [
        (0.3, True, False),
        (0.3, False, True),
        (3.0, True, True),
        (1.0, False, True),
        (-1.0, True, False),
        (1.0, True, False),
    ],
)
def test_a_peak_between_the_points_is_seen_when_told(peak: float, told: bool, seen: bool) -> None:
    """1 and a peak of width 1e-5; at the ends it is always looked for if peaks are told."""
    narrow = column(lambda z: 1.0 + np.exp(-(((z - peak) / 1e-5) ** 2)))
    found = resolve(narrow, -1.0, 1.0, limit=100, peaks=np.array([peak]) if told else None)
    assert (found is not None) == seen


@pytest.mark.parametrize(("error", "right"), [(0.9e-11, True), (1.1e-11, False)])
def test_a_series_may_err_by_so_much_at_a_peak(error: float, right: bool) -> None:
    peaked = column(lambda z: np.where(z == 0.3, 2.0 + 2 * error, 2.0))
    found = resolve(peaked, -1.0, 1.0, limit=100, peaks=np.array([0.3]))
    assert (found is not None) == right


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (-1.7e308, 1.7e308), (0.0, math.inf)])
def test_intervals_without_a_finite_length_have_no_series(low: float, high: float) -> None:
    def function(z: np.ndarray) -> np.ndarray:
        raise AssertionError("there is nothing to ask for")

    with np.errstate(over="ignore"):
        assert resolve(function, low, high, limit=100) is None


def test_a_series_times_a_matrix_is_the_series_of_the_product() -> None:
    matrix = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 0.0]])
    series = Series(np.array([[1.0, 2.0], [0.5, -1.0], [0.25, 0.125]]), low=-3.0, half=2.0)
    z = np.linspace(-3, 1, 9)
    np.testing.assert_allclose((series @ matrix)(z), series(z) @ matrix, atol=1e-14)
    expected = chebval((z + 3) / 2 - 1, series.terms).T
    np.testing.assert_allclose(series(z), expected, atol=1e-14)
