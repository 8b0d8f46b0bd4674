"""Which spline answers where: against all paths, and on tables with an edge."""

from itertools import pairwise, product

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.splines.pieces import are_ordered
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.tables.leftout import Slices
from dkrls_cli.tuning.tables.pieces import cheapest_path, cost_of_change, join_splines, slice_costs
from dkrls_cli.tuning.tables.splines import spline_candidates, with_error_kernel

X = np.linspace(0.0, 3.0, 31)
PHASES = np.linspace(0.5, 1.5, 7)


def with_a_kink(x):
    """Straight lines up to 1, and waves behind it."""
    return np.where(x[:, None] < 1.0, x[:, None] - 1.0, np.sin(4 * np.outer(x - 1.0, PHASES)))


def joined(data, x=X, folds=None):
    slices = Slices.of(x, data, folds, 100)
    return slices, join_splines(slices, spline_candidates(slices))


@pytest.mark.parametrize("seed", range(5))
def test_the_cheapest_path_is_that_of_all_paths(seed):
    costs, change = np.random.default_rng(seed).exponential(2.0, (3, 6)), 1.5

    def total(path):
        return sum(costs[p, j] for j, p in enumerate(path)) + change * sum(
            a != b for a, b in pairwise(path)
        )

    best = min(product(range(3), repeat=6), key=total)
    assert cheapest_path(costs, change).tolist() == list(best)


def test_costs_count_slices_alike_and_large_errors_most():
    squares = np.array([[1.0, 4.0], [2.0, 2.0]])
    np.testing.assert_allclose(slice_costs(squares), np.log(squares) + squares / 1.5)


def test_a_table_with_a_kink_is_linear_on_one_side_of_it():
    slices, found = joined(with_a_kink(X))
    first, last = found.kernel.pieces[0], found.kernel.pieces[-1]
    assert (found.kernel.family, last.family) == ("linear", "quintic")
    assert 0.7 < first.low < last.high < 1.7
    assert first.high - first.low == pytest.approx(0.025)
    errors = slices.spline_errors(found.kernel.family, found.kernel.pieces)
    assert found.error == pytest.approx(np.sqrt(errors.mean()))
    before, behind = (slices.inner_coordinates <= first.low), (slices.inner_coordinates > last.low)
    assert np.array_equal(errors[before], slices.spline_errors("linear")[before])
    assert np.array_equal(errors[behind], slices.spline_errors("quintic")[behind])


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_steps_beside_a_kink_are_left_to_the_spline_that_is_exact_there(mirrored):
    data = with_a_kink(X)[::-1] if mirrored else with_a_kink(X)
    x = 3.0 - X[::-1] if mirrored else X
    kernel = joined(data, x)[1].kernel
    middles = np.arange(0.05, 1.0, 0.1)
    query = 3.0 - middles if mirrored else middles
    answers = gram(kernel, query, x) @ data
    np.testing.assert_allclose(answers, with_a_kink(middles), atol=1e-12)


def test_splines_change_between_coordinates_with_no_number_between_them():
    x = 2.0**30 + np.arange(31) * 2.0**-22
    for data in (with_a_kink(X), with_a_kink(X)[::-1]):
        pieces = joined(data, x)[1].kernel.pieces
        assert pieces
        assert are_ordered(pieces)


def test_the_same_table_in_blocks_or_falling_order_changes_there_as_well():
    pieces = joined(with_a_kink(X))[1].kernel.pieces
    assert joined(with_a_kink(X)[::-1], X[::-1])[1].kernel.pieces == pieces
    blocked = joined(with_a_kink(X), folds=15)[1].kernel.pieces
    assert abs(blocked[0].low - pieces[0].low) < 0.5


def test_a_level_takes_it_and_answers_better_than_any_spline():
    query = (X[:-1] + X[1:]) / 2
    truth = with_a_kink(query)
    choice = choose_level(X, with_a_kink(X))
    assert choice.taken.kernel.pieces
    assert choice.taken in choice.tried
    names = [one.kernel.name for one in choice.tried if one.kernel.is_spline]
    assert names == ["linear", "cubic", "quintic", choice.taken.kernel.name]
    assert choice.curve
    error = {
        one.kernel.name: np.median(np.abs(gram(one.kernel, query, X) @ with_a_kink(X) - truth))
        for one in choice.tried
        if one.kernel.is_spline
    }
    assert error.pop(names[-1]) < 0.5 * min(error.values())


def test_smooth_and_noisy_data_have_one_spline():
    assert not joined(np.exp(np.outer(X, PHASES)))[1].kernel.pieces
    for seed in range(10):
        noise = np.random.default_rng(seed).standard_normal((31, 20))
        assert not joined(noise)[1].kernel.pieces


def test_chance_in_single_series_changes_no_spline():
    x = np.arange(300.0)
    for seed in range(5):
        noise = np.random.default_rng(seed).standard_normal(302)
        walk = np.convolve(np.cumsum(noise), np.ones(3) / 3, "valid")
        assert not joined(walk[:, None], x)[1].kernel.pieces


def test_a_change_costs_twice_as_far_as_chance_strays():
    steps = np.random.default_rng(0).normal(0.0, 3.0, 10_000)
    costs = np.array([np.zeros(10_000), steps])
    assert cost_of_change(costs) == pytest.approx(2 * 3.0 * 100, rel=0.03)
    assert cost_of_change(costs[::-1] + 1.0) == cost_of_change(costs)  # of either, above the other
    steady = np.array([np.zeros(40), np.repeat([-1.0, 5.0], 20)])
    assert cost_of_change(steady) == 5.0


def test_of_few_slices_none_tells_where_to_change():
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    data = np.column_stack([np.where(x < 2.5, 0.0, 1.0), np.where(x < 2.5, 0.0, (x - 2.5) ** 5)])
    assert not joined(data, x)[1].kernel.pieces


def test_the_covariance_of_errors_leaves_the_pieces():
    slices, found = joined(with_a_kink(X))
    assert with_error_kernel(slices, found).kernel.pieces == found.kernel.pieces
