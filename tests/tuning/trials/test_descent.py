"""A setting is improved one move at a time, for as long as its error falls."""

import math

import pytest
from landscape import RIDGE_MOVE, Landscape, at, setting_of

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.moves import Move
from dkrls_cli.tuning.trials.descent import Attempt, best_start, better, descend, follow, improve


def attempt_of(error):
    return Attempt(setting_of(ridge=1e-3), error, 5, ())


def test_the_best_start_is_found_beside_the_best_before():
    search = Landscape(lambda e: abs(e + 4))
    starts = [setting_of(ridge=10.0**e) for e in (-2, -5, -4.5, -8)]
    assert best_start(search, starts).setting == starts[2]
    assert [error for error, _ in search.bars] == pytest.approx([None, 2.0, 1.0, 0.5])


def test_a_move_is_followed_for_as_long_as_it_helps():
    search = Landscape(lambda e: 1 + abs(e + 3))
    best = follow(search, at(-6, search), RIDGE_MOVE, last=99)
    assert math.log10(best.setting.ridge) == pytest.approx(-3)
    assert search.ridges == [-5, -4, -3, -2]  # and then not the other way


def test_a_move_is_followed_backward_where_forward_does_not_help():
    search = Landscape(lambda e: 1 + abs(e + 3))
    best = follow(search, at(-1, search), RIDGE_MOVE, last=99)
    assert math.log10(best.setting.ridge) == pytest.approx(-3)
    assert search.ridges == [0, -2, -3, -4]


@pytest.mark.parametrize(("gain", "follows"), [(0.9949, True), (0.9951, False)])
def test_a_gain_below_half_a_percent_is_none(gain, follows):
    search = Landscape(lambda e: gain if e > -5.5 else 1.0)
    start = at(-6, search)
    assert (follow(search, start, RIDGE_MOVE, last=99) is not start) == follows


def test_a_move_ends_with_the_number_of_settings_tried():
    search = Landscape(lambda e: 10.0**-e)
    search.tried = 5
    follow(search, at(-9, search), RIDGE_MOVE, last=8)
    assert search.tried == 8
    assert follow(search, start := at(-9, search), RIDGE_MOVE, last=8) is start


def test_rounds_of_smaller_moves_follow_each_other():
    search = Landscape(lambda e: 1 + abs(e + 3.25))
    rounds = [[Move((), RIDGE_MOVE.bounds, ridge_factor=f)] for f in (10.0, 10**0.5, 10**0.25)]
    best = descend(search, at(-6, search), rounds, attempt_of(math.inf))
    assert math.log10(best.setting.ridge) == pytest.approx(-3.25)
    coarse = descend(search, at(-6, search), rounds[:1], attempt_of(math.inf))
    assert math.log10(coarse.setting.ridge) == pytest.approx(-3)


@pytest.mark.parametrize(("rival", "rounds_run"), [(1.0, 3), (0.9951, 3), (0.9949, 1)])
def test_a_descent_behind_a_rival_ends_with_its_large_moves(rival, rounds_run):
    search = Landscape(lambda _: 1.0)
    rounds = [[Move((), RIDGE_MOVE.bounds, ridge_factor=f)] for f in (10.0, 3.0, 2.0)]
    descend(search, at(-6, search), rounds, attempt_of(rival))
    assert len(search.ridges) == 2 * rounds_run  # forward and backward in each


def test_moves_are_repeated_until_none_helps():
    """Two moves that take turns: each helps once the other has."""
    ridge = Move((), ((0.1, 1e9),), ridge_factor=10.0)
    sigma = Move((0,), ((0.1, 1e9),), 10.0)

    class Stairs(Landscape):
        def solve(self, setting, best, bar):
            self.tried += 1
            up = math.log10(setting.ridge) + 9, math.log10(setting.kernels[0].sigma)
            level = round(sum(up)) if abs(up[0] - up[1]) < 1.5 else 0
            return Attempt(setting, 0.9**level, 5, ())

    search = Stairs(None)
    start = Attempt(JointSetting((Kernel("gaussian", 1.0),), 1e-9), 1.0, 5, ())
    best = descend(search, start, [[ridge, sigma]], start)
    assert best.error < 0.9**8


def test_a_descent_tries_80_settings_at_most():
    search = Landscape(None)

    def solve(setting, best, bar):
        search.tried += 1
        return Attempt(setting, 0.5 * best.error, 5, ())

    search.solve, search.tried = solve, 7
    descend(search, attempt_of(1.0), [[RIDGE_MOVE]], attempt_of(math.inf))
    assert search.tried == 87


@pytest.mark.parametrize(("first", "taken"), [(0.9, True), (1.0, True), (1.1, False)])
def test_the_better_of_two_attempts_is_the_first_if_they_are_alike(first, taken):
    one, other = attempt_of(first), attempt_of(1.0)
    assert (better(one, other) is one) == taken


@pytest.mark.parametrize(("second", "descents"), [(1.5, 2), (1.51, 1)])
def test_starts_far_behind_what_is_found_are_not_improved(second, descents):
    """The first start cannot be improved; the second is tried if it is within half of it."""
    search = Landscape(lambda e: second if e > -5 else 1.0)
    kinds = [[setting_of(ridge=1e-3)], [setting_of(ridge=1e-8)]]  # the worse one first
    best = improve(search, kinds, [[Move((), RIDGE_MOVE.bounds, ridge_factor=2.0)]])
    assert best.error == 1.0
    assert len(search.ridges) == 2 + 2 * descents  # two starts, and two steps from each


def test_starts_are_compared_with_what_the_best_start_has_led_to():
    """From 1e-8 the error falls to a tenth, so that a start within half of it is far behind."""
    search = Landscape(lambda e: 1.2 if e > 0 else 1.0 if e < -7.5 else 0.1)
    rounds = [[RIDGE_MOVE]]
    improve(search, [[setting_of(ridge=10.0)], [setting_of(ridge=1e-8)]], rounds)
    assert 0 not in search.ridges  # a step from the other start
    improve(search, [[setting_of(ridge=10.0)], [setting_of(ridge=1e-8)]], rounds, attempt_of(0.01))


@pytest.mark.parametrize(("rival", "tried"), [(0.6, 4), (0.7, 6)])
def test_no_start_is_improved_far_behind_a_rival(rival, tried):
    search = Landscape(lambda _: 1.0)
    rounds = [[Move((), RIDGE_MOVE.bounds, ridge_factor=2.0)]]
    improve(search, [[setting_of(ridge=1e-3)], [setting_of(ridge=1e-8)]], rounds, attempt_of(rival))
    assert len(search.ridges) == (2 if rival < 1 / 1.5 else tried)


def test_a_search_tells_how_far_it_is():
    search, shares = Landscape(lambda e: 1 + abs(e + 3.25)), []
    rounds = [[Move((), RIDGE_MOVE.bounds, ridge_factor=f)] for f in (10.0, 10**0.5)]
    kinds = [[setting_of(ridge=1e-6)], [setting_of(ridge=1e-5)]]
    improve(search, kinds, rounds, tell=shares.append)
    assert shares[:2] == pytest.approx([0.15, 0.3])  # of the two starts
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
