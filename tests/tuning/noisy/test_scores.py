"""Errors on hidden cells with errors of their own: what is left when these are subtracted."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.tuning.noisy.scores import PowerShares, share_powers, weigh_by_errors


def shares(count, error):
    return share_powers(
        [(np.zeros(count, int), np.full(count, 1 / count), np.full(count, error))], 4
    )


def test_without_errors_mean_squares_are_as_they_are():
    found = share_powers([(np.array([0, 2, 2]), np.array([0.5, 0.2, 0.3]), None)], 4)
    np.testing.assert_allclose(found.weights, [0.5, 0, 0.5, 0])
    assert not found.expected.any()
    assert not found.soft.any()
    squares = np.array([1.0, 0.0, 3.0, 0.0])
    np.testing.assert_array_equal(found.mean_squares(squares), [2.0, 6.0])


def test_the_mean_square_of_known_errors_is_subtracted():
    found = shares(10_000, 4.0)
    assert found.expected[0] == pytest.approx(4.0)
    assert found.mean_squares(np.array([9.0, 0, 0, 0]))[0] == pytest.approx(5.0, rel=0.01)


def test_few_cells_are_softened_more():
    chance = np.sqrt(2 / 50) * 4.0
    assert shares(50, 4.0).soft[0] == pytest.approx(2 * chance)
    assert shares(10**6, 4.0).soft[0] == pytest.approx(0.05 * 4.0)


@given(st.lists(st.floats(0.0, 20.0), min_size=2, max_size=2, unique=True))
def test_settings_keep_their_order_however_large_errors_are_stated(two):
    small, large = (shares(50, 4.0).mean_squares(np.array([s, 0, 0, 0]))[0] for s in sorted(two))
    assert 0 < small <= large


def test_a_hidden_cell_with_a_huge_error_counts_for_little():
    powers, weights = np.zeros(5, int), np.full(5, 0.2)
    noise = np.array([0.01, 0.01, 0.01, 0.01, 100.0])
    (found,) = weigh_by_errors([(powers, weights, noise)], 1.0)
    assert found[4] < 1e-6
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found[:4], 0.25, rtol=1e-5)


def test_every_distance_keeps_its_weight():
    """Also where all cells are poor."""
    powers = [np.array([0, 0, 1]), np.array([1, 0])]
    weights = [np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.1])]
    noise = [np.array([0.0, 1.0, 50.0]), np.array([50.0, 0.0])]
    found = weigh_by_errors(list(zip(powers, weights, noise, strict=True)), 1.0)
    totals = np.bincount(np.concatenate(powers), np.concatenate(found))
    np.testing.assert_allclose(totals, [0.4, 0.6])
    assert found[0][0] > 10 * found[0][1]


def test_without_cells_or_spread_weights_stay():
    none = np.zeros(0)
    (found,) = weigh_by_errors([(none.astype(int), none, none)], 1.0)
    assert found.size == 0
    same = np.array([0.3, 0.7])
    (found,) = weigh_by_errors([(np.zeros(2, int), same, np.array([0.0, 1.0]))], 0.0)
    assert found is same


def test_powers_without_weight_have_no_mean_square():
    none = np.zeros(3)
    assert PowerShares(none, none, none).mean_squares(none).size == 0


def test_the_score_is_a_geometric_mean_over_distances():
    squares, shares = np.zeros(32), np.zeros(32)
    squares[:2], shares[:2] = [0.5 * 0.04, 0.5 * 9.0], [0.5, 0.5]
    none = 0 * shares
    shares, empty = PowerShares(shares, none, none), PowerShares(none, none, none)
    assert shares.score(squares) == pytest.approx(math.sqrt(0.2 * 3.0))
    assert empty.score(squares) == 0.0
    # ten times the error far from data counts as much as ten times the error next to it
    near, far = squares.copy(), squares.copy()
    near[0] *= 100
    far[1] *= 100
    assert shares.score(near) == pytest.approx(shares.score(far))
    squares[0] = 0.0
    assert 0 <= shares.score(squares) < 1e-70
