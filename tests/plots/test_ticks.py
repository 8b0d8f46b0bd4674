"""Ticks: round numbers, degrees and dates, never more than there is room for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.plots.ticks import (
    Tick,
    axis_ticks,
    label_contexts,
    latitude_text,
    longitude_text,
    number_ticks,
)


def texts(ticks: list[Tick]) -> list[str]:
    return [tick.text for tick in ticks]


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-3, 7, ["-2", "0", "2", "4", "6"]),
        (1950, 2010, ["1960", "1980", "2000"]),
        (1e-9, 3e-9, ["1.0e-9", "1.5e-9", "2.0e-9", "2.5e-9", "3.0e-9"]),
        (1e7, 1.3e7, ["1.0e7", "1.1e7", "1.2e7", "1.3e7"]),
        (0, 1e36, ["0", "5.0e35", "1.0e36"]),
        (271.123, 271.125, ["271.123", "271.124", "271.125"]),
    ],
)
def test_numbers_are_round(low: float, high: float, expected: list[str]) -> None:
    assert texts(number_ticks(low, high, 6, 40)) == expected


@given(st.floats(-1e12, 1e12), st.floats(1e-3, 1e12), st.integers(2, 20), st.floats(30, 200))
def test_numbers_are_inside_apart_and_fit(low: float, span: float, most: int, room: float) -> None:
    high = low + span
    ticks = number_ticks(low, high, most, room)
    slack = 1e-6 * span + 1e-9 * abs(low)
    assert all(low - slack <= tick.number <= high + slack for tick in ticks)
    assert len(ticks) <= most
    if len(ticks) > 1:
        steps = np.diff([tick.number for tick in ticks])
        assert np.ptp(steps) <= 1e-6 * steps[0] + 1e-9 * abs(low)
        assert sum(len(tick.short) + 2 for tick in ticks) <= room
        assert len(set(texts(ticks))) == len(ticks) or span < 1e-9 * abs(low)


def test_all_room_is_used() -> None:
    assert len(number_ticks(0, 10, 11)) == 11
    assert len(number_ticks(0, 10, 10)) == 6


# Degrees ------------------------------------------------------------------------------------------


def test_degrees_have_sides() -> None:
    east = axis_of("lon", np.arange(100.0, 280.0, 10), {"units": "degrees_east"})
    assert texts(axis_ticks(east, 95, 275, 8, 60)) == [
        "120°E", "150°E", "180°", "150°W", "120°W", "90°W",
    ]  # fmt: skip
    north = axis_of("lat", [-30.0, 30.0], {"units": "degrees_north"})
    assert texts(axis_ticks(north, -90, 90, 8)) == [
        "90°S",
        "60°S",
        "30°S",
        "0°",
        "30°N",
        "60°N",
        "90°N",
    ]
    assert texts(axis_ticks(north, 30, 31, 3)) == ["30.0°N", "30.5°N", "31.0°N"]


@given(st.floats(-720, 720))
def test_longitudes_that_are_turns_apart_have_one_text(degrees: float) -> None:
    rounded = round(degrees, 2)
    assert longitude_text(rounded, 2) == longitude_text(rounded + 360, 2)
    number, side = longitude_text(rounded, 2).split("°")
    east = float(number) * (-1 if side == "W" else 1)
    assert math.isclose(math.cos(math.radians(east - rounded)), 1.0)
    assert (side == "") == (float(number) in (0.0, 180.0))


def test_latitudes_have_sides() -> None:
    assert [latitude_text(d, 0) for d in (-30.0, -0.0, 45.0)] == ["30°S", "0°", "45°N"]


# Dates --------------------------------------------------------------------------------------------


DAY = "1 Jan 2020,"


@pytest.mark.parametrize(
    ("first", "last", "calendar", "room", "short", "contexts"),
    [
        ("1902-05-01", "1990-01-01", "360_day", 30, "1920 1940 1960 1980", ",,,"),
        ("2019-12-11", "2020-03-02", "360_day", 30, "Jan Feb Mar", "2020,,"),
        ("2019-12-21", "2020-02-02", "360_day", 40, "1 16 1", "Jan 2020,,Feb 2020"),
        ("2020-02-27", "2020-03-02", "360_day", 70, "27 28 29 30 1 2", "Feb 2020,,,,Mar 2020,"),
        ("2020-02-27", "2020-03-02", "standard", 60, "27 28 29 1 2", "Feb 2020,,,Mar 2020,"),
        ("2020-02-27", "2020-03-02", "noleap", 60, "27 28 1 2", "Feb 2020,,Mar 2020,"),
        ("2020-01-01T05", "2020-01-01T17", "julian", 50, "06:00 09:00 12:00 15:00", DAY + ",,"),
        ("2020-01-01T05:00:10", "2020-01-01T05:00:31", "standard", 30, "05:00:15 05:00:30", DAY),
    ],
)  # fmt: skip
def test_dates_are_round_in_their_calendar(
    first: str, last: str, calendar: str, room: float, short: str, contexts: str
) -> None:
    scale = TimeScale("hours since 1900-01-01", calendar)
    axis = Axis("time", scale.numbers([first, last]), time=scale)
    ticks = axis_ticks(axis, *axis.numbers.tolist(), 12, room)
    assert " ".join(tick.short for tick in ticks) == short
    assert ",".join(label_contexts(ticks)) == contexts
    back = scale.numbers([tick.text.replace(" ", "T") for tick in ticks])
    np.testing.assert_allclose(back, [tick.number for tick in ticks], atol=1e-6)


@given(
    st.integers(0, 10**6),
    st.floats(0.01, 10**6),
    st.sampled_from(["standard", "360_day", "noleap", "all_leap"]),
    st.integers(20, 200),
)
def test_dates_are_inside_and_fit(start: int, days: float, calendar: str, room: int) -> None:
    scale = TimeScale("days since 1600-01-01", calendar)
    axis = Axis("time", np.array([start, start + days]), time=scale)
    ticks = axis_ticks(axis, start, start + days, 15, room)
    assert all(start - 1e-6 * days <= tick.number <= start + days * (1 + 1e-6) for tick in ticks)
    assert len(ticks) <= 15
    if len(ticks) > 1:
        assert sum(tick.width + 2 for tick in ticks) <= room
    assert ticks == sorted(ticks, key=lambda tick: tick.number)


@pytest.mark.parametrize("unit", ["months", "years"])
def test_dates_of_counted_months_are_round(unit: str) -> None:
    scale = TimeScale(f"{unit} since 2000-01-01")
    numbers = scale.numbers(["2001-01-01", "2003-01-01"])
    ticks = axis_ticks(Axis("time", numbers, time=scale), *numbers.tolist(), 3)
    assert texts(ticks) == ["2001", "2002", "2003"]


def test_years_that_a_calendar_lacks_are_not_asked_for() -> None:
    scale = TimeScale("days since 0001-01-01", "standard")
    axis = Axis("time", np.array([0.0, 3000.0]), time=scale)
    ticks = axis_ticks(axis, -5.0, 3000.0, 6, 80)
    assert 2 <= len(ticks) <= 6


# Labels -------------------------------------------------------------------------------------------


def test_labels_are_shown_every_so_often() -> None:
    axis = text_axis("site", [f"s{i}" for i in range(12)])
    assert texts(axis_ticks(axis, -0.5, 11.5, 12)) == list(axis.labels or ())
    assert texts(axis_ticks(axis, -0.5, 11.5, 7)) == ["s0", "s2", "s4", "s6", "s8", "s10"]
    assert texts(axis_ticks(axis, -0.5, 11.5, 12, 16)) == ["s0", "s5", "s10"]
    assert texts(axis_ticks(axis, 2.5, 4.5, 12)) == ["s3", "s4"]


def test_long_labels_are_cut() -> None:
    axis = text_axis("site", ["a" * 20, "b" * 21])
    assert texts(axis_ticks(axis, -0.5, 1.5, 9)) == ["a" * 20, "b" * 19 + "…"]


def test_a_context_is_shown_where_it_changes() -> None:
    ticks = [Tick(float(i), c, c, c) for i, c in enumerate("aabba")]
    assert label_contexts(ticks) == ["a", "", "b", "", "a"]
