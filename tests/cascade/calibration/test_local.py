"""Local scales against plain loops, and Student's t against scipy."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from dkrls_cli.cascade.calibration import local
from dkrls_cli.cascade.calibration.local import (
    LocalScale,
    count_independent,
    find_local_scale,
    series_scales,
    student_factor,
)
from dkrls_cli.cascade.errorbars.bars import Z90

SQUARES = np.array([1.0, 1.2, 0.9, 1.1, 9.0, 12.0, 8.0, 10.0, 11.0, 0.8, 1.0, 1.1])
PLACES = np.cumsum(np.linspace(0.5, 2.0, 12))


def smoothed(squares, *, closed, with_own):
    """Return the local means of squares, slice by slice."""
    count, found = len(squares), []
    relative = squares / squares.mean() + 1e-3
    for j in range(count):
        total = weight = 0.0
        for i in range(count):
            steps = min(abs(i - j), count - abs(i - j)) if closed else abs(i - j)
            if steps or with_own:
                own = math.exp(-((steps / 1.5) ** 2) / 2)
                total, weight = total + own * relative[i], weight + own
        found.append((total / weight) ** 0.7)
    return found


@pytest.mark.parametrize("closed", [False, True])
def test_scales_are_local_means_and_a_slice_has_no_say_in_its_own(closed):
    order = np.random.default_rng(0).permutation(12)
    scale, own = find_local_scale(PLACES[order], SQUARES[order], closed=closed)
    np.testing.assert_array_equal(scale.places, PLACES)
    np.testing.assert_allclose(scale.factors, smoothed(SQUARES, closed=closed, with_own=True))
    np.testing.assert_allclose(
        own[np.argsort(order)], smoothed(SQUARES, closed=closed, with_own=False)
    )


def test_of_few_fibres_a_scale_is_what_is_beyond_chance():
    means = smoothed(SQUARES, closed=False, with_own=False)
    variance = np.var(np.log(means) / 0.7)
    scale, own = find_local_scale(PLACES, SQUARES, fibres=2 / (0.4 * variance))
    np.testing.assert_allclose(own, np.power(means, 0.6))  # 60 % is beyond chance
    within = smoothed(SQUARES, closed=False, with_own=True)
    np.testing.assert_allclose(scale.factors, np.power(within, 0.6))
    assert find_local_scale(PLACES, SQUARES, fibres=1.99 / variance) is None


@pytest.mark.parametrize("rank", [1, 4, 25])
def test_independent_errors_are_counted_by_what_patterns_have_in_common(rank):
    rng = np.random.default_rng(2)
    loud = np.exp(rng.normal(0, 2, (60, 1)))  # some slices are missed by more
    missed = loud * (rng.standard_normal((60, rank)) @ np.kron(np.eye(rank), np.ones((1, 8))))
    assert count_independent(missed) == pytest.approx(rank, rel=0.1)
    assert count_independent(np.vstack([missed, 0 * missed])) == count_independent(missed)
    assert count_independent(np.zeros((5, 3))) == 1.0


def test_errors_that_do_not_go_by_place_have_no_local_scale():
    rng = np.random.default_rng(1)
    found = [find_local_scale(PLACES, rng.chisquare(20, 12) / 20) for _ in range(50)]
    assert sum(scale is not None for scale in found) <= 3
    assert find_local_scale(np.arange(7.0), SQUARES[:7]) is None
    assert find_local_scale(np.arange(8.0), SQUARES[:8]) is not None
    assert find_local_scale(PLACES, np.zeros(12)) is None
    assert find_local_scale(PLACES, np.full(12, np.inf)) is None


def test_the_gain_is_that_of_a_likelihood():
    scale = np.linspace(0.5, 2.0, 12)

    def log_likelihood(variance):
        best = variance * np.mean(SQUARES / variance)
        return -0.5 * np.sum(np.log(best) + SQUARES / best)

    expected = log_likelihood(scale) - log_likelihood(np.ones(12))
    assert local._gain(SQUARES, scale) == pytest.approx(expected)


def test_scales_between_places_are_interpolated_and_go_round_a_circle():
    scale = LocalScale(np.array([10.0, 100.0, 350.0]), np.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(scale.at(np.array([0.0, 55.0, 400.0])), [1.0, 2**0.5, 4.0])
    np.testing.assert_allclose(scale.at(np.array([0.0, 360.0, 5.0]), 360.0), [2.0, 2.0, 2**0.5])


@pytest.mark.parametrize("slices", range(2, 9))
def test_few_slices_are_widened_by_students_t(slices):
    expected = (student.ppf(0.95, slices) / Z90) ** 2
    assert student_factor(slices) == pytest.approx(expected, rel=1e-4)


def test_one_slice_and_nine_are_not_widened():
    assert student_factor(1) == student_factor(9) == student_factor(500) == 1.0


def test_series_have_scales_of_their_own_as_far_as_they_differ_by_more_than_chance():
    rng = np.random.default_rng(3)
    alike = rng.chisquare(1, (20, 400))
    found = series_scales(alike, 20.0)
    assert found.mean() == pytest.approx(alike.mean())
    assert found.std() < 0.4 * alike.mean(axis=0).std()
    true = np.exp(rng.normal(0, 0.5, 400))
    found = series_scales(alike * true, 20.0)
    missed = np.log(found / true) - np.log(found / true).mean()
    own = np.log(alike.mean(axis=0)) - np.log(alike.mean(axis=0)).mean()
    assert missed.std() < own.std()  # nearer than the means of each alone
    assert series_scales(np.zeros((5, 2)), 5.0).tolist() == [0.0, 0.0]
    assert series_scales(np.array([[4.0], [2.0]]), 1.0).tolist() == [3.0]
    met = series_scales(np.array([[0.0, 1.0]]), 1e9)  # a series that is met counts as a thousandth
    assert met[0] == pytest.approx(0.5 / 1000, rel=0.01)
