"""Error bars of grids with holes, calibrated on hidden cells."""

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.bars import distance, field_variance
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.solve import complete
from dkrls_cli.tuning.gaps import GapChoice, choose_with_gaps
from dkrls_cli.tuning.holes import calibration
from dkrls_cli.tuning.holes.calibration import extend_factors, fewer_draws, gap_bars, hole_factors
from dkrls_cli.tuning.holes.factors import band_factor, student_factor
from dkrls_cli.tuning.masks import hide_cells
from dkrls_cli.tuning.moves import LevelConstraint

AXES = [np.arange(30.0), np.arange(32.0)]
KERNELS = (Kernel("matern32", 5.0),) * 2
RIDGE = 0.01
WIDER = np.array([1.0, 1.5, 4.0])


def drawn(seed, scale=1.0):
    """A field drawn from the model, with a wide hole and single gaps, and the field itself."""
    rng = np.random.default_rng(seed)
    values = scale * (make_field(AXES, KERNELS).draw(rng) + 0.1 * rng.standard_normal((30, 32)))
    holed = values.copy()
    holed[rng.random(values.shape) < 0.1] = np.nan
    row, column = rng.integers(2, 19), rng.integers(2, 21)
    holed[row : row + 9, column : column + 9] = np.nan
    return holed, values


def chosen_for(holed):
    given = [LevelConstraint("matern32", 5.0, None, kernel) for kernel in KERNELS]
    return choose_with_gaps(holed, AXES, given, ridge=RIDGE)


def test_caution_goes_as_far_as_the_climate():
    known = np.array([1.0, 2.0, 3.0])
    assert extend_factors(known, WIDER, 3, 100.0) == (1.0, 3.0, 12.0)
    assert extend_factors(known, WIDER, 2, 100.0) == (1.0, 3.0, 12.0)
    assert extend_factors(known, WIDER, 3, 10.0) == (1.0, 3.0, 10.0)
    assert extend_factors(known, 2 * WIDER, 3, 0.1) == (1.0, 2.0, 3.0)  # never narrower
    found = extend_factors(known, np.ones(3), 5, 1000.0)
    assert found[3:] == pytest.approx([3.0 * float(student_factor(1.0))] * 2)


def test_cells_are_hidden_thrice_with_a_third_of_the_draws(monkeypatch):
    holed, _ = drawn(0)
    asked, real = [], calibration.field_variance
    monkeypatch.setattr(
        calibration,
        "field_variance",
        lambda *args: asked.append((args[3], args[6])) or real(*args),
    )
    hole_factors(holed, AXES, chosen_for(holed))
    assert [draws for _, draws in asked] == [range(8), range(8, 16), range(16, 24)]
    masks = [seen for seen, _ in asked]
    assert not np.array_equal(masks[0], masks[1])
    assert not np.array_equal(masks[1], masks[2])


def test_errors_are_those_of_hidden_cells_against_their_draws():
    holed, _ = drawn(1)
    chosen = chosen_for(holed)
    windows = hide_cells(holed, AXES, np.random.default_rng(1), None, whole=True, again=2)
    found = calibration._measure(windows, AXES, chosen)
    errors, variances, powers = [], [], []
    for place, window in enumerate(windows):
        seen = np.isfinite(window.seen)
        filled = complete(window.seen, AXES, KERNELS, RIDGE).values
        near = distance(AXES, KERNELS, seen, RIDGE)
        numbers = range(12 * place, 12 * place + 12)
        group = chosen.setting.grouping
        whole = field_variance(AXES, KERNELS, group, seen, RIDGE, near, numbers)
        drawn_there = whole[window.hidden]
        seem = fewer_draws(drawn_there, RIDGE, 12)
        errors.append(seem * (filled - holed)[window.hidden])
        variances.append(drawn_there + RIDGE)
        powers.append(window.powers)
    counted = np.concatenate([window.shares for window in windows]) > 0
    np.testing.assert_allclose(found.errors, np.concatenate(errors)[counted], atol=1e-4)
    np.testing.assert_allclose(found.variances, np.concatenate(variances)[counted])
    np.testing.assert_array_equal(found.powers, np.concatenate(powers)[counted])
    # No group has cells of both hidings, and every cell has one at its own distance.
    first = np.count_nonzero(windows[0].shares > 0)
    for power, groups in enumerate(found.groups):
        assert not set(groups[:first]) & set(groups[first:]) - {-1}
        assert ((groups >= 0) == (found.powers >= power)).all()


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_errors_seem_larger_beside_variances_from_few_draws(ridge):
    """Errors scaled so hold bands from eight draws as they would hold those from 24."""
    rng = np.random.default_rng(0)
    errors = np.sqrt(1.0 + ridge) * rng.standard_normal(100_000)
    few, many = (np.mean(rng.standard_normal((n, 100_000)) ** 2, axis=0) for n in (8, 24))
    seem = fewer_draws(few, ridge, 8)
    assert (seem < 1.0).all()
    asked = band_factor(np.abs(seem * errors) / np.sqrt(few + ridge))
    assert asked == pytest.approx(band_factor(np.abs(errors) / np.sqrt(many + ridge)), rel=0.03)


def test_factors_reach_to_the_farthest_cell_to_be_filled():
    """Nothing is observed at a distance of eight: those cells have the bars of the climate."""
    holed = np.sin(AXES[0] / 3)[:, None] * np.cos(AXES[1] / 4)
    holed[:, 6:] = np.nan
    chosen = chosen_for(holed)
    found = hole_factors(holed, AXES, chosen)
    assert len(found.factors) == 5
    climate = chosen.spread**2 / 1.0
    assert found.factors[-1] <= climate
    assert found.factors[-1] > 2.0 * found.factors[0]


def test_scattered_gaps_have_no_factors():
    holed, _ = drawn(2)
    holed = np.nan_to_num(holed)
    holed[::5, ::4] = np.nan
    bars = gap_bars(holed, AXES, chosen_for(holed))
    assert bars.factors is None
    assert isinstance(chosen_for(holed), GapChoice)


@pytest.mark.slow
def test_bands_of_fields_with_known_covariance_hold_what_they_promise():
    """In a wide hole beside single gaps: bands of 90 % hold 86 to 94 %, of 95 % 92 to 98 %."""
    held90, held95 = [], []
    for seed in range(12):
        holed, values = drawn(100 + seed)
        found = hole_factors(holed, AXES, chosen_for(holed))
        observed = np.isfinite(holed)
        near = distance(AXES, KERNELS, observed, RIDGE)
        bars = gap_bars(holed, AXES, chosen_for(holed))
        assert bars.factors is not None
        filled = complete(holed, AXES, KERNELS, RIDGE).values
        whole = field_variance(AXES, KERNELS, bars.grouping, observed, RIDGE, near)
        from dkrls_cli.gaps.bars import scale_by_distance

        spread = np.sqrt(scale_by_distance((whole + RIDGE) ** found.power, observed, found.factors))
        missed = np.abs(filled - values)[~observed]
        held90.append(np.mean(missed <= 1.645 * spread[~observed]))
        held95.append(np.mean(missed <= 1.96 * spread[~observed]))
    assert 0.86 <= np.mean(held90) <= 0.94
    assert 0.92 <= np.mean(held95) <= 0.98
