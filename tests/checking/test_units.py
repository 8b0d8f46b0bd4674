import numpy as np
import pytest

from dkrls_cli.checking.units import (
    CONVERSIONS,
    find_unit_series,
    find_unit_slices,
    name_units,
)

WORDS = [one.words for one in CONVERSIONS]


def maps(count=20, cells=30, seed=0):
    rng = np.random.default_rng(seed)
    season = 8 * np.sin(np.arange(count) / 3)
    return 14 + np.add.outer(season, 6 * rng.normal(size=cells)) + rng.normal(size=(count, cells))


@pytest.mark.parametrize("place", range(len(CONVERSIONS)))
def test_every_conversion_is_found_from_some_slice_on(place):
    one, values = CONVERSIONS[place], maps()
    values[13:] = one.slope * values[13:] + one.offset
    values[3, 4] = np.nan
    found = find_unit_slices(values)
    np.testing.assert_array_equal(found[:13], -1)
    np.testing.assert_array_equal(found[13:], place)
    np.testing.assert_allclose(one.undo(values[13:]), maps()[13:], rtol=1e-9, atol=1e-9)


def test_the_units_of_most_slices_are_right():
    values = maps()
    values[:7] += 273.15
    assert find_unit_slices(values).tolist() == [0] * 7 + [-1] * 13


def test_slices_in_between_are_told():
    values = maps()
    values[5:8] = values[5:8] * 1.8 + 32
    found = find_unit_slices(values)
    assert [WORDS[kind] for kind in found[5:8]] == ["degF instead of degC"] * 3
    assert (np.delete(found, [5, 6, 7]) == -1).all()


def test_data_in_one_unit_is_left_alone():
    assert (find_unit_slices(maps()) == -1).all()
    assert (find_unit_slices(maps(2)) == -1).all()
    assert (find_unit_slices(np.ones((9, 9))) == -1).all()
    assert (find_unit_slices(np.full((9, 9), np.nan)) == -1).all()
    assert (find_unit_series(maps()) == -1).all()
    assert (find_unit_series(np.full((30, 2), np.nan)) == -1).all()


def test_a_step_that_is_no_conversion_is_none():
    values = maps()
    values[13:] += 100.0
    assert (find_unit_slices(values) == -1).all()


def test_a_single_series_is_told():
    values = 20 + np.cumsum(0.1 * np.random.default_rng(1).normal(size=(60, 5)), axis=0)
    values[40:, 2] += 273.15
    found = find_unit_series(values)
    np.testing.assert_array_equal(found[40:, 2], 0)
    found[40:, 2] = -1
    assert (found == -1).all()


def test_a_spike_of_a_series_is_no_change_of_units():
    values = 20 + np.cumsum(0.1 * np.random.default_rng(1).normal(size=(60, 5)), axis=0)
    values[30, 2] += 273.15
    values[50:52, 3] *= 10
    assert (find_unit_series(values) == -1).all()


def test_single_cells_are_named():
    values = np.array([288.15, 150.0, -15.0, 15.2])
    found = name_units(values, np.full(4, 15.0), np.full(4, 0.1))
    assert [WORDS[kind] if kind >= 0 else "" for kind in found] == [
        "K instead of degC",
        "10 times too large",
        "sign changed",
        "",
    ]


def anomalies(seed):
    """Return slices of two patterns, of which each has any size from slice to slice."""
    rng = np.random.default_rng(seed)
    patterns = np.stack([np.ones(30), np.sin(np.arange(30) / 6)])
    return rng.normal(size=(40, 2)) @ patterns + 0.02 * rng.normal(size=(40, 30))


def test_anomalies_that_turn_or_grow_at_once_keep_their_units():
    found = [find_unit_slices(anomalies(seed)) for seed in range(40)]
    assert (np.array(found) == -1).all()


def test_fields_about_zero_in_other_units_are_found_by_their_width():
    rng = np.random.default_rng(1)
    wind = rng.normal(size=(1, 40)) + 0.1 * np.cumsum(rng.normal(size=(30, 40)), axis=0)
    wind[20:] *= 3.6
    found = find_unit_slices(wind)
    assert [CONVERSIONS[kind].words for kind in np.unique(found[20:])] == ["km/h instead of m/s"]
    assert (found[:20] == -1).all()


def test_slices_in_other_units_may_be_spread_otherwise_by_themselves():
    values = maps()
    season = np.nanmean(values, axis=1, keepdims=True)
    values[15:] = season[15:] + (values[15:] - season[15:]) / 2
    values[13:] = 1.8 * values[13:] + 32
    assert find_unit_slices(values).tolist() == [-1] * 13 + [2] * 7


@pytest.mark.parametrize("place", [3, 8, 10])
def test_one_slice_that_is_off_says_nothing_of_those_after_it(place):
    """A shift by 210 looks as if degF had become K; the slices after it have not changed."""
    rng = np.random.default_rng(0)
    rain = rng.uniform(60, 120, 12)[:, None] * rng.uniform(0.5, 1.5, (12, 40))
    rain[place] = 255.4 + rain[place - 1] / 1.8
    found = find_unit_slices(rain)
    assert (np.delete(found, place) == -1).all()
