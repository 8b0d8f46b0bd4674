import numpy as np
import pytest

from dkrls_cli.checking.jumps import find_jumps, find_levels, jump_limits


def noise(rows=80, columns=6, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def levels(series, spread=1.0):
    return find_levels(series, find_jumps(series, jump_limits(series, spread)))


def test_the_shorter_side_of_a_jump_is_told():
    series = noise()
    series[50:, 2] += 30
    series[:20, 4] -= 30
    found = levels(series)
    expected = np.zeros(series.shape, bool)
    expected[50:, 2] = expected[:20, 4] = True
    np.testing.assert_array_equal(found != 0, expected)
    assert found[60, 2] == pytest.approx(30, abs=2)
    assert found[10, 4] == pytest.approx(-30, abs=2)


@pytest.mark.parametrize("stop", [45, 78, 79])
def test_a_shift_that_ends_is_told_between_its_jumps(stop):
    series = noise()
    series[30:stop, 1] += 30
    if stop > 70:
        series[30:60, 1] -= 30  # most of the series has its usual level
    start = 60 if stop > 70 else 30
    assert np.flatnonzero(levels(series)[:, 1]).tolist() == list(range(start, stop))


@pytest.mark.parametrize("change", ["spike", "ramp", "nothing", "small", "restless"])
def test_what_does_not_last_or_is_not_sharp_is_no_jump(change):
    series = noise()
    if change == "spike":
        series[40, 2] += 100
    if change == "ramp":
        series[:, 2] += np.linspace(0, 60, 80)
    if change == "small":
        series[40:, 2] += 4
    if change == "restless":  # no level has most of the series
        series[:, 2] += np.repeat([0, 40, 80, 120], 20)
    assert not levels(series).any()


def test_a_jump_larger_than_the_data_is_one_whatever_the_tail_of_the_others():
    rng = np.random.default_rng(1)
    series = rng.standard_cauchy(size=(400, 20)) * 0.01
    series[250:, 3] += 5
    assert jump_limits(series, 1.0).size.max() <= 1.5
    assert (levels(series)[250:, 3] > 0).all()


def test_a_change_that_rounding_makes_is_no_jump():
    series = np.zeros((60, 4))
    series[40:, 2] = 3.0
    for floor, count in ((0.0, 20), (0.1, 20), (0.3, 0)):
        limits = jump_limits(series, 0.0, floor)
        found = find_levels(series, find_jumps(series, limits))
        assert np.count_nonzero(found) == count


def test_missing_values_neither_hide_nor_make_a_jump():
    series = noise()
    series[50:, 2] += 30
    series[np.random.default_rng(3).random(series.shape) < 0.4] = np.nan
    found = (levels(series) != 0) & ~np.isnan(series)
    expected = np.zeros(series.shape, bool)
    expected[50:, 2] = True
    np.testing.assert_array_equal(found, expected & ~np.isnan(series))


def test_short_and_missing_series_have_none():
    assert not levels(noise(3)).any()
    assert not levels(np.full((40, 2), np.nan)).any()


def test_short_series_jump_as_well():
    series = noise(12, 40)
    series[8:, 3] += 40
    series[5:10, 7] -= 40
    expected = np.zeros(series.shape, bool)
    expected[8:, 3] = expected[5:10, 7] = True
    np.testing.assert_array_equal(levels(series) != 0, expected)
