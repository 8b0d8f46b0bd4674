"""Factors of the variance in holes, from the errors of hidden cells."""

import math

import numpy as np
import pytest
from scipy import stats

from dkrls_cli.tuning.holes import factors as module
from dkrls_cli.tuning.holes.factors import (
    Misses,
    band_factor,
    factors_by_power,
    find_power,
    freedom,
    group_cells,
    student_factor,
)

RNG = np.random.default_rng(0)


def misses(errors, powers, variances=None, size=1):
    """Errors whose groups are runs of so many cells."""
    powers = np.asarray(powers)
    groups = np.arange(powers.size) // size
    every = [np.where(powers >= power, groups, -1) for power in range(powers.max() + 1)]
    known = np.ones(powers.size) if variances is None else variances
    return Misses(np.asarray(errors, float), known, powers, np.array(every))


def test_exact_bands_have_factors_of_one():
    powers = np.repeat([0, 1, 2], 20_000)
    factors, degrees = factors_by_power(misses(RNG.standard_normal(60_000), powers))
    np.testing.assert_allclose(factors, 1.0, atol=0.06)
    assert (degrees > 5000).all()


@pytest.mark.parametrize("size", [0.5, 3.0])
def test_factors_follow_the_errors_at_each_distance(size):
    powers = np.repeat([0, 1], 40_000)
    errors = np.where(powers == 0, 1.0, size) * RNG.standard_normal(80_000)
    factors, _ = factors_by_power(misses(errors, powers))
    np.testing.assert_allclose(factors, [1.0, size**2], rtol=0.06)


def test_few_groups_shrink_to_the_power_below_rather_to_wider_bands():
    near = np.abs(RNG.standard_normal(10_000))
    powers = np.append(np.zeros(10_000, int), [2] * 40)
    base = band_factor(near)
    for size, doubt in ((5.0, 2.0), (0.1, 10.0)):
        far = size * near[:40]
        found, degrees = factors_by_power(misses(np.append(near, far), powers, size=20))
        own = band_factor(far)
        assert 1.0 <= degrees[2] <= 4.0
        logs = (degrees[2] * math.log(own) + doubt * math.log(found[0])) / (degrees[2] + doubt)
        assert found[2] == pytest.approx(math.exp(logs))
        assert found[1] == found[0]  # no cell of its own
        assert degrees[1] == 0.0
        assert found[0] == pytest.approx(base, rel=0.1)


def test_errors_of_nothing_have_tiny_factors():
    found, _ = factors_by_power(misses(np.zeros(20), np.zeros(20, int)))
    assert 0 < found[0] < 1e-20


def test_a_factor_is_the_larger_that_the_two_bands_ask_for():
    normal = np.abs(stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000))
    assert band_factor(normal) == pytest.approx(1.0, rel=1e-3)
    heavy = np.where(normal > 1.8, 3 * normal, normal)
    share = np.quantile(heavy, 0.95) / 1.959963984540054
    assert band_factor(heavy) == pytest.approx(share**2)
    assert band_factor(np.where(normal > 1.8, 1.8, normal)) == pytest.approx(1.0, rel=1e-3)


def test_independent_groups_have_their_number_of_degrees_of_freedom():
    """Cells of a group are equal: one degree of freedom each, by the chi-squared distribution."""
    draws = []
    for seed in range(40):
        errors = np.repeat(np.random.default_rng(seed).standard_normal(200), 5)
        draws.append(freedom(errors**2, np.arange(1000) // 5))
    assert np.median(draws) == pytest.approx(200, rel=0.15)


def test_degrees_of_freedom_are_limited_by_the_number_of_groups():
    squares = np.ones(100)
    assert freedom(squares, np.zeros(100, int)) == 1.0
    assert freedom(squares, np.arange(100) // 50) == 4.0
    assert freedom(squares, 3 * (np.arange(100) // 20)) == 13.0  # numbers may be left out
    assert freedom(np.append(np.zeros(99), 1.0), np.arange(100)) == pytest.approx(2.0, rel=0.02)
    assert freedom(np.zeros(100), np.arange(100) // 50) == 4.0


@pytest.mark.parametrize("degrees", [1.0, 3.0, 8.0, 1000.0])
def test_bands_are_as_much_wider_as_those_of_students_t(degrees):
    wider = [stats.t.ppf(0.95, degrees) / stats.norm.ppf(0.95)]
    wider.append(stats.t.ppf(0.975, degrees) / stats.norm.ppf(0.975))
    assert student_factor(degrees) == pytest.approx(np.mean(wider) ** 2)


@pytest.mark.parametrize("power", [1.0, 1.5, 1.9])
def test_gamma_is_found_from_the_growth_of_errors(power):
    variances = np.exp(RNG.uniform(-4, 0, 40_000))
    errors = np.sqrt(0.3 * variances**power) * RNG.standard_normal(40_000)
    seen = misses(errors, np.repeat([0, 1], 20_000), variances)
    _, degrees = factors_by_power(seen)
    found = find_power(seen, degrees)
    assert found == pytest.approx(power, abs=0.08)
    factors, _ = factors_by_power(seen, power)
    np.testing.assert_allclose(factors, 0.3, rtol=0.08)


def test_gamma_is_one_where_nothing_is_known_or_errors_grow_slower():
    variances = np.exp(RNG.uniform(-4, 0, 4000))
    slow = misses(RNG.standard_normal(4000), np.zeros(4000, int), variances)
    assert find_power(slow, [4000.0]) == 1.0
    fast = misses(variances**2 * RNG.standard_normal(4000), np.zeros(4000, int), variances)
    assert find_power(fast, [4000.0]) == 2.0
    assert 1.0 < find_power(fast, [2.0]) < 1.7  # few degrees of freedom
    few = misses(fast.errors[:99], np.zeros(99, int), variances[:99])
    assert find_power(few, [99.0]) == 1.0
    alike = misses(RNG.standard_normal(4000), np.zeros(4000, int), np.exp(variances / 100))
    assert find_power(alike, [4000.0]) == pytest.approx(1.0, abs=0.05)


# ---- groups


def test_groups_are_holes_of_cells_at_the_distance():
    hidden = np.zeros((12, 30), bool)
    hidden[1:6, 1:6] = hidden[7:11, 20:26] = hidden[6, 6] = True  # touches at a corner
    powers = np.zeros(np.count_nonzero(hidden), int)
    places = np.argwhere(hidden)
    middle = (places == [3, 3]).all(axis=1)
    powers[middle] = 1
    groups = group_cells(hidden, powers, 0)
    first = places[:, 1] < 10
    assert len(set(groups[first])) == len(set(groups[~first])) == 1
    assert set(groups) == {0, 1}
    assert group_cells(hidden, powers, 1).tolist() == np.where(middle, 0, -1).tolist()
    assert (group_cells(hidden, powers, 2) == -1).all()


@pytest.mark.parametrize(("power", "parts"), [(0, 5), (1, 2), (2, 1)])
def test_very_long_holes_are_cut_into_parts(power, parts):
    hidden = np.zeros((3, 60), bool)
    hidden[1, 10:50] = True
    groups = group_cells(hidden, np.full(40, 2), power)
    assert groups.tolist() == np.repeat(np.arange(parts), 40 // parts).tolist()


def test_bands_of_the_module_are_those_of_the_normal_distribution():
    for share, half in module.BANDS:
        assert half == pytest.approx(stats.norm.ppf((1 + share) / 2))
