import numpy as np
import pytest

from dkrls_cli.checking.jumps import find_jumps


def noise(rows=80, columns=6, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def test_the_shorter_side_of_a_jump_is_told():
    series = noise()
    series[50:, 2] += 30
    series[:20, 4] -= 30
    found, sizes = find_jumps(series)
    assert np.flatnonzero(sizes).tolist() == [2, 4]
    expected = np.zeros(series.shape, bool)
    expected[50:, 2] = expected[:20, 4] = True
    np.testing.assert_array_equal(found, expected)


def test_a_shift_that_ends_is_told_between_its_jumps():
    series = noise()
    series[30:45, 1] += 30
    assert np.flatnonzero(find_jumps(series)[0][:, 1]).tolist() == list(range(30, 45))


@pytest.mark.parametrize("change", ["spike", "ramp", "nothing", "small"])
def test_what_does_not_last_or_is_not_sharp_is_no_jump(change):
    series = noise()
    if change == "spike":
        series[40, 2] += 100
    if change == "ramp":
        series[:, 2] += np.linspace(0, 60, 80)
    if change == "small":
        series[40:, 2] += 4
    assert not find_jumps(series)[0].any()


def test_short_and_missing_series_have_none():
    assert not find_jumps(noise(16))[0].any()
    assert not find_jumps(np.full((40, 2), np.nan))[0].any()
