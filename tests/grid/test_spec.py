"""Coordinates are what the user writes, to the last digit, or refused with the reason."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.spec import parse_at

DAYS = TimeScale("days since 2000-01-01")
AXES = [
    Axis("time", np.arange(3.0), time=DAYS),
    axis_of("lat", [10.0, 20.0]),
    text_axis("site", ["a", "b, c", "d"]),
]


def asked(text):
    (values,) = parse_at([text], AXES).values()
    return np.asarray(values).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lat=12.5", [12.5]),
        (" lat = 1, 2,-3e1 ", [1.0, 2.0, -30.0]),
        ("lat=0:1:0.25", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("lat=0:1:0.3", [0.0, 0.3, 0.6, 0.9]),
        ("lat=1:0:-0.5", [1.0, 0.5, 0.0]),
        ("lat=5:5:1", [5.0]),
        ("lat=0:2.9999999999:1", [0.0, 1.0, 2.0, 3.0]),
        ("lat=0:2.9999999:1", [0.0, 1.0, 2.0]),
        ("lat=0:0.3:0.1", [0.0, 0.1, 0.2, 0.3]),
        ("lat=0:3e-1:1e-1", [0.0, 0.1, 0.2, 0.3]),
        ("site=a", ["a"]),
        ("site=d,a", ["d", "a"]),
        ("site=b, c", ["b, c"]),
        ("time=2000-01-03", [2.0]),
        ("time=2000-01-03T12:30:00", [2.0 + 12.5 / 24]),
        ("time=2000-01-03, 2000-01-02", [2.0, 1.0]),
        ("time=2000-01-01:2000-01-05:2D", [0.0, 2.0, 4.0]),
        ("time=2000-01-31:2000-04-30:1M", [30.0, 59.0, 90.0, 120.0]),
        ("time=2000-01-01T06:2000-01-01T18:6H", [0.25, 0.5, 0.75]),
        ("time=2000-02", [31.0]),
    ],
)
def test_coordinates_are_those_that_are_written(text, expected):
    assert asked(text) == expected


@given(start=st.integers(-999, 999), step=st.integers(1, 99), count=st.integers(1, 60))
def test_a_range_in_decimals_has_the_numbers_that_one_would_write(start, step, count):
    stop = start + step * (count - 1)
    found = asked(f"lat={start / 100}:{stop / 100}:{step / 100}")
    assert found == [round((start + step * i) / 100, 2) for i in range(count)]


def test_dimensions_that_are_not_named_or_named_all_keep_their_coordinates():
    assert parse_at(None, AXES) == {}
    assert parse_at([], AXES) == {}
    assert list(parse_at(["lat=1", "site=all"], AXES)) == ["lat"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["lat"], "'lat' is not DIM=SPEC, like lat="),
        (["=1"], "no dimension ''"),
        (["lat= "], "'lat= ' is not DIM=SPEC"),
        (["depth=1"], "no dimension 'depth'. It has time, lat, site"),
        (["lat=1", "lat=2"], "Coordinates of 'lat' were given twice. .* lat=1,2,3"),
        (["lat=x"], "lat: 'x' is not a number"),
        (["lat=1,,2"], "lat: '' is not a number"),
        (["lat=nan"], "lat: 'nan' is not a finite number"),
        (["lat=1e400"], "lat: '1e400' is not a finite"),
        (["lat=1:2"], "lat=1:2 is not start:stop:step"),
        (["lat=1:2:3:4"], "is not start:stop:step"),
        (["lat=2:1:1"], "steps of 1 do not lead from 2 to 1"),
        (["lat=1:2:-1"], "steps of -1 do not lead from 1 to 2"),
        (["lat=1:2:0"], "steps of 0 do not lead from 1 to 2"),
        (["lat=0:1:1e-12"], "more than 100000000 coordinates"),
        (["lat=0:1e308:1e-300"], "more than 100000000 coordinates"),
        (["time=soon"], "'soon' is not a date"),
        (["time=2000-01-01:2000-02-01"], "no range of dates: start:stop:step"),
        (["time=2000-02-01:2000-01-01:1D"], "do not lead from 2000-02-01 to 2000-01-01"),
        (["time=2000-02-01:2000-01-01:1M"], "do not lead from 2000-02-01 to 2000-01-01"),
        (["time=2000-01-01:2000-02-01:1x"], "'1x' is not a time step"),
        (["time=2000-01-01:2020-01-01:1S"], "more than 100000000 coordinates"),
    ],
)
def test_what_cannot_be_understood_is_refused(texts, words):
    with pytest.raises(SettingError, match=words) as caught:
        parse_at(texts, AXES)
    assert "--" not in str(caught.value)


def test_the_largest_range_that_is_allowed(monkeypatch):
    monkeypatch.setattr("dkrls_cli.grid.spec._MOST", 5)
    assert len(asked("lat=0:4:1")) == len(asked("time=2000-01-01:2000-01-05:1D")) == 5
    for text in ("lat=0:5:1", "time=2000-01-01:2000-01-06:1D"):
        with pytest.raises(SettingError, match="more than 5 coordinates"):
            asked(text)


def test_dates_too_far_away_to_count_are_refused():
    far = TimeScale("microseconds since 2000-01-01", "noleap")
    with pytest.raises(SettingError, match="too far away to be counted in 'microseconds since"):
        parse_at(["time=999999-01-01"], [Axis("time", np.arange(3.0), time=far)])
