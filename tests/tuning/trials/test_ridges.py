"""The ridge is raised where solves take long, or do not end."""

import math
from dataclasses import replace

import numpy as np
import pytest
from landscape import RIDGE_MOVE, Landscape, at, setting_of

from dkrls_cli.tuning.joint import JointTrial
from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.trials import descent, ridges

# --- calming: fewer iterations for a few percent of error ----------------------------------------


def calm(error, iterations, start=-6):
    search = Landscape(error, iterations)
    best = at(start, search)
    found = ridges.calm(search, best, RIDGE_MOVE)
    return math.log10(found.setting.ridge), search


def test_the_ridge_is_raised_until_solves_take_few_iterations():
    ridge, search = calm(lambda _: 1.0, lambda e: -8 * e)
    assert ridge == pytest.approx(-1)
    assert search.ridges == [-5, -4, -3, -2, -1]


@pytest.mark.parametrize(("iterations", "tries"), [(10, 0), (11, 1)])
def test_more_than_ten_iterations_are_many(iterations, tries):
    _, search = calm(lambda _: 1.0, lambda e: iterations if e < -5.5 else 1)
    assert len(search.ridges) == tries


@pytest.mark.parametrize(("error", "ridge"), [(1.029, -5), (1.031, -6)])
def test_a_larger_ridge_may_cost_three_percent_of_error(error, ridge):
    found, search = calm(lambda e: error if e > -5.5 else 1.0, lambda e: 50 if e < -5.5 else 1)
    assert found == pytest.approx(ridge)
    assert search.bars == [(1.0, 1.03)]


def test_errors_are_compared_with_the_best_and_do_not_add_up():
    """Two percent for each step: the second one is too much."""
    ridge, search = calm(lambda e: 1.02 ** (e + 6), lambda _: 50)
    assert ridge == pytest.approx(-5)
    assert search.ridges == [-5, -4]


def test_calming_ends_at_the_largest_ridge():
    ridge, search = calm(lambda _: 1.0, lambda _: 50, start=0)
    assert ridge == pytest.approx(1)
    assert search.ridges == [1, 1]


def test_a_setting_that_does_not_converge_is_not_taken_to_calm():
    ridge, _ = calm(lambda e: math.inf if e > -5.5 else 1.0, lambda _: 200)
    assert ridge == pytest.approx(-6)


# --- larger views: a setting must converge there as well ------------------------------------------


def test_a_setting_that_does_not_converge_in_larger_views_gets_a_larger_ridge():
    wide = Landscape(lambda e: 2.0 if e > -4.5 else math.inf)
    found = ridges.confirm(wide, at(-6, Landscape(lambda _: 1.0)), RIDGE_MOVE)
    assert math.log10(found.setting.ridge) == pytest.approx(-4)
    assert found.error == 2.0  # as it is in the larger views
    assert wide.ridges == [-6, -5, -4]


def test_a_setting_that_never_converges_in_larger_views_is_taken_as_it_is():
    wide = Landscape(lambda _: math.inf)
    best = at(-1, Landscape(lambda _: 1.0))
    assert ridges.confirm(wide, best, RIDGE_MOVE) is best
    assert wide.ridges == [-1, 0, 1]


class TwoKinds(Landscape):
    """A landscape in which settings with a ridge of 1 have an error of their own."""

    def __init__(self, error, other):
        super().__init__(lambda e: other if e == 0 else error)


@pytest.mark.parametrize(
    ("error", "other", "taken"),
    [
        (1.0, 0.5, -6),  # as good as in small parts: nothing else is tried
        (1.4, 1.5, -6),
        (1.4, 1.38, -6),  # not clearly better
        (1.4, 1.0, 0),
        (math.inf, 1.0, 0),
    ],
)
def test_a_setting_that_is_worse_in_larger_views_is_compared_with_the_runner_up(
    error, other, taken
):
    wide = TwoKinds(error, other)
    best = at(-6, Landscape(lambda _: 1.0))
    found = ridges.confirm(wide, best, RIDGE_MOVE, setting_of(ridge=1.0))
    assert math.log10(found.setting.ridge) == pytest.approx(taken)
    assert (0 in wide.ridges) == (error > 1.03)


@pytest.mark.parametrize(("sigma", "holds"), [(4.0, True), (40.0, False)])
def test_views_do_not_tell_of_kernels_that_are_wider_than_they_are(sigma, holds):
    values = np.zeros(30)
    view = HiddenWindow((np.arange(30.0),), values, values > 0, values)
    found = descent.Attempt(setting_of(sigma), 1.0, 5, (view,))
    assert (sigma > np.ptp(view.coordinates[0])) != holds
    assert ridges._holds(found, replace(found, error=1.0)) == holds
    assert not ridges._holds(found, replace(found, error=0.9))


def test_the_runner_up_is_the_best_setting_with_other_kernels():
    def trial(family, error):
        setting = replace(setting_of(), kernels=(replace(setting_of().kernels[0], family=family),))
        return JointTrial(setting, error, "cells")

    best = trial("gaussian", 1.0)
    trials = [best, trial("matern52", math.inf), trial("matern32", 3.0), trial("matern52", 2.0)]
    found = ridges.runner_up([*trials, trial("gaussian", 1.5)], best.setting)
    assert found == trials[3].setting
    assert ridges.runner_up(trials[:2], best.setting) is None
