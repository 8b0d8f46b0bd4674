"""Widths of error bars by the distance to data."""

import numpy as np
import pytest

from dkrls_cli.cascade.errorbars.bars import Z90
from dkrls_cli.gaps.calibration import widths as module
from dkrls_cli.gaps.calibration.widths import calibrated, scale_by_distance


@pytest.mark.parametrize(
    ("power", "expected"),
    [(0.5, 0.5), (1.0, 1.0), (1.4, 1.4), (0.05, 0.2), (2.5, 1.5), (-1.0, 0.2)],
)
def test_the_width_grows_with_distance_as_the_errors_do(power: float, expected: float) -> None:
    rng = np.random.default_rng(0)
    reached = np.exp(rng.uniform(-4, 0, 4000))
    missed = rng.standard_normal(4000) * np.sqrt(4.0 * reached**power)
    scale, found = calibrated(reached, missed)
    assert found == pytest.approx(expected, abs=0.06)
    inside = np.abs(missed) <= Z90 * np.sqrt(scale * reached**found)
    assert inside.mean() == pytest.approx(0.9, abs=0.002)


def test_cells_all_equally_far_are_scaled_only() -> None:
    missed = np.linspace(-1, 1, 101)
    for spread, power in ((0.0, 1.0), (0.09, 1.0), (0.2, None)):
        reached = np.exp(np.linspace(0, 1.25 * spread, 101))
        found = calibrated(reached, missed)[1]
        assert (found == 1.0) == (power == 1.0)


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_calibration_does_not_depend_on_units(size: float) -> None:
    """Also where most cells near the data are not missed at all."""
    reached, missed = np.exp(np.linspace(-3, 0, 60)), np.linspace(-1, 1, 60)
    missed[:24] = 0.0
    scale, power = calibrated(reached, missed)
    found = calibrated(reached, size * missed)
    assert found == (pytest.approx(size**2 * scale), pytest.approx(power))
    few = np.where(np.arange(60) % 7, 0.0, missed)
    narrow = calibrated(1 + reached / 9, few)[1], calibrated(1 + reached / 9, size * few)[1]
    assert narrow[0] == pytest.approx(narrow[1])


def test_errors_of_nothing_and_of_one_cell() -> None:
    assert calibrated(np.array([0.1, 0.2]), np.zeros(2)) == (0.0, 1.0)
    scale, power = calibrated(np.array([0.25]), np.array([0.5]))
    assert (scale, power) == (pytest.approx(1.0 / Z90**2), 1.0)
    two = calibrated(np.array([0.01, 1.0]), np.array([0.0, 0.5]))
    assert np.isfinite(two).all()
    assert two[1] == 1.5


def test_width_is_compared_in_five_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def upper(squares: np.ndarray) -> float:
        sizes.append(squares.size)
        return plain(squares)

    plain = module._upper_tenth
    monkeypatch.setattr(module, "_upper_tenth", upper)
    calibrated(np.linspace(0.1, 1, 50), np.ones(50))
    assert sizes == [10] * 5 + [50]


@pytest.mark.parametrize(("size", "rank"), [(1, 0), (9, 8), (10, 9), (19, 17), (99, 89)])
def test_nine_of_ten_further_errors_stay_below(size: int, rank: int) -> None:
    """The quantile for a further one: the 90th of 99, the 18th of 19, the last of 9 or fewer."""
    squares = np.random.default_rng(0).permutation(np.arange(float(size)))
    assert module._upper_tenth(squares) == pytest.approx(rank, abs=0.11)


def test_factors_are_interpolated_between_powers_of_two_of_the_distance() -> None:
    observed = np.zeros(40, bool)
    observed[0] = True
    away = np.arange(40.0)
    factors = (1.0, 4.0, 0.5)
    found = scale_by_distance(np.full(40, 2.0), observed, factors)
    assert found[0] == 0.0
    np.testing.assert_allclose(found[1], 2.0)  # below the middle of the first: its own factor
    middle = 2.0**1.5  # of the second power
    logs = np.interp(np.log2(away[1:]), [0.5, 1.5, 2.5], np.log(factors))
    np.testing.assert_allclose(found[1:], 2.0 * np.exp(logs))
    assert found[2] < 8.0 * middle
    np.testing.assert_allclose(found[6:], 1.0)  # beyond the last: its factor
    np.testing.assert_allclose(scale_by_distance(np.ones(40), observed, (3.0,))[1:], 3.0)


def test_factors_in_holes_are_interpolated_by_distance() -> None:
    observed = np.ones(17, bool)
    observed[1:16] = False  # at most 8 cells from data
    found = module.scale_by_distance(np.full(17, 3.0), observed, (1.0, 4.0))
    assert found[0] == found[16] == 0.0
    assert found[1] == pytest.approx(3.0)
    assert found[2] == pytest.approx(3.0 * 2.0)  # half-way between the middles of the two powers
    assert found[4] == found[8] == pytest.approx(12.0)
