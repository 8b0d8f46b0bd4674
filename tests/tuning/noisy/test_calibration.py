"""The width of error bars of observations with errors."""

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.noisy.analysis import Observations
from dkrls_cli.tuning.gaps import choose_with_gaps
from dkrls_cli.tuning.moves import LevelConstraint
from dkrls_cli.tuning.noisy.calibration import factors_by_power, noisy_bars, noisy_factors

AXES = [np.arange(30.0), np.arange(40.0)]


def drawn(count, factor, noise, seed=0):
    """Return squares of cells whose promised variance of 1 is too small by a factor."""
    rng = np.random.default_rng(seed)
    squares = (factor + noise) * rng.standard_normal(count) ** 2
    return squares, np.ones(count), np.full(count, noise)


@pytest.mark.parametrize("factor", [0.3, 1.0, 6.0])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_bands_hold_what_they_promise(factor, noise):
    squares, promised, own = drawn(8000, factor, noise)
    (found,) = factors_by_power(squares, promised, own, np.zeros(8000, int))
    assert found == pytest.approx(factor, rel=0.15)


def test_cells_whose_own_errors_hide_all_else_leave_the_factor_at_one():
    squares, promised, own = drawn(2000, 5.0, 1000.0)
    (found,) = factors_by_power(squares, promised, own, np.zeros(2000, int))
    assert found == pytest.approx(1.0, abs=0.1)


def test_nothing_left_of_a_difference_by_chance_makes_no_narrow_bars():
    found = [factors_by_power(*drawn(900, 1.0, 8.0, s), np.zeros(900, int))[0] for s in range(30)]
    assert min(found) > 0.4  # a factor of 1 that a band of 900 cells tells to no better than a half
    assert np.mean(found) == pytest.approx(1.0, abs=0.15)


def test_far_cells_have_a_factor_of_their_own_if_they_are_many():
    near, far = drawn(5000, 1.0, 0.1), drawn(20_000, 9.0, 0.1, seed=1)
    together = [np.concatenate(pair) for pair in zip(near, far, strict=True)]
    powers = np.repeat([0, 2], [5000, 20_000])
    found = factors_by_power(*together, powers)
    assert found[0] == pytest.approx(1.0, rel=0.15)
    assert found[2] == pytest.approx(9.0, rel=0.15)
    assert found[0] < found[1] < 1.2 * found[2]
    few = factors_by_power(*(part[:5005] for part in together), powers[:5005])
    assert few[2] == pytest.approx(few[0], rel=0.2)


def test_no_cell_and_no_promise_are_a_factor_of_one():
    none = np.zeros(0)
    assert factors_by_power(none, none, none, none.astype(int)) == (1.0,)
    zeros = np.zeros(3)
    assert factors_by_power(zeros, zeros, zeros + 1, np.zeros(3, int)) == (1.0,)


@pytest.mark.slow
def test_error_bars_are_calibrated_on_other_cells_when_first_needed():
    rng = np.random.default_rng(2)
    kernels = [Kernel("matern32", 5.0)] * 2
    errors = np.where(np.arange(40) < 20, 0.05, 0.5) * np.ones((30, 1))
    values = make_field(AXES, kernels).draw(rng) + errors * rng.standard_normal(errors.shape)
    values[rng.random(errors.shape) < 0.2] = np.nan
    errors[np.isnan(values)] = 0.0
    given = [LevelConstraint("matern32", 5.0)] * 2
    chosen = choose_with_gaps(values, AXES, given, ridge=1e-3, errors=errors)
    bars = noisy_bars(Observations(values, errors), AXES, chosen)
    assert callable(bars.factors)
    assert bars.known_factors == noisy_factors(bars.observations, AXES, chosen)
    assert 0.4 < bars.known_factors[0] < 2.5
    assert bars.scale == chosen.scale
    assert bars.error == chosen.error
