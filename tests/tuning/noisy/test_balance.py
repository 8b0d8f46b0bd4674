"""The ridge of observations with errors: hidden cells differ by as much as is promised."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.field import make_field
from dkrls_cli.tuning.gaps import choose_with_gaps
from dkrls_cli.tuning.masks import hide_cells
from dkrls_cli.tuning.moves import LevelConstraint
from dkrls_cli.tuning.noisy.balance import misfit
from dkrls_cli.tuning.noisy.views import tell_by_errors
from dkrls_cli.tuning.trials.solved import solve_window

AXES = [np.arange(40.0), np.arange(50.0)]
KERNELS = [Kernel("matern32", 6.0)] * 2
TRUE = 0.05


def observations(ridge, seed=1):
    """Return a quantity with detail of this variance, seen with errors of two sizes."""
    rng = np.random.default_rng(seed)
    errors = np.where(rng.random((40, 50)) < 0.5, 0.05, 1.0)
    field = make_field(AXES, KERNELS)
    quantity = field.draw(rng) + np.sqrt(ridge) * rng.standard_normal(errors.shape)
    return quantity + errors * rng.standard_normal(errors.shape), errors


def answered(values, errors, ridge, scale=1.0):
    rng, field = np.random.default_rng(0), make_field(AXES, KERNELS)
    hidden = hide_cells(values, AXES, rng, errors=errors)
    (window,) = tell_by_errors(hidden, values, errors, rng)
    done = solve_window(field, window, ridge, 0.0, scale, tolerance=1e-6)
    return [replace(window, answers=done.values)], [field]


@pytest.mark.slow
@pytest.mark.parametrize(("ridge", "sign"), [(TRUE / 20, 1), (20 * TRUE, -1)])
def test_hidden_cells_tell_a_ridge_that_is_too_small_or_too_large(ridge, sign):
    values, errors = observations(TRUE)
    right = misfit(*answered(values, errors, TRUE), TRUE, 1.0)
    wrong = misfit(*answered(values, errors, ridge), ridge, 1.0)
    assert abs(right) < 0.25
    assert sign * wrong > 0.6


def test_a_scale_that_is_too_large_promises_too_much():
    values, errors = observations(TRUE)
    assert misfit(*answered(values, errors, TRUE, 8.0), TRUE, 8.0) < -0.8


@pytest.mark.slow
@pytest.mark.parametrize(("true", "low", "high"), [(0.1, 0.02, 0.5), (1e-6, 0.0, 0.004)])
def test_a_search_finds_how_much_detail_there_is(true, low, high):
    """Predictions of hidden cells alone leave it open."""
    values, errors = observations(true)
    given = [LevelConstraint("matern32", 6.0)] * 2
    found = choose_with_gaps(values, AXES, given, errors=errors)
    assert low < found.setting.ridge * found.scale < high
    assert np.sqrt(found.scale) == pytest.approx(1.0, rel=0.35)


def test_no_promise_and_no_cell_are_no_misfit():
    values, errors = observations(TRUE)
    windows, fields = answered(values, errors, TRUE)
    none = replace(windows[0], weights=np.zeros(windows[0].hidden.sum()))
    assert misfit([none], fields, TRUE, 1.0) == 0.0
