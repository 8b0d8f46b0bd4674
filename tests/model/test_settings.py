"""What is read from the user's words and the data's own marks."""

import numpy as np
import pytest

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.cf import hierarchy_of, natural_cycles, natural_period
from dkrls_cli.model.settings import Wish, read_wishes

EAST = {"units": "degrees_east"}
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@pytest.mark.parametrize(
    ("axis", "period"),
    [
        (axis_of("lon", np.arange(0.0, 360, 10), EAST), 360.0),
        (axis_of("lon", np.arange(-180.0, 180, 2.5), EAST), 360.0),
        (axis_of("lon", np.arange(0.0, 180, 10), EAST), None),
        (axis_of("x", np.arange(0.0, 360, 10)), None),
        (axis_of("month", np.arange(1, 13)), 12.0),
        (axis_of("month", np.arange(1, 7)), None),
        (axis_of("hour", np.arange(0, 24, 3)), 24.0),
        (axis_of("hour", np.arange(0, 25)), None),
        (axis_of("dayofyear", np.arange(1, 366)), 365.25),
        (text_axis("column", MONTHS), 12.0),
        (text_axis("column", MONTHS[::-1]), None),
        (axis_of("lon", [0.0, 180.0], EAST), None),
    ],
)
def test_a_circle_is_found_where_the_coordinates_close_it(axis, period):
    assert natural_period(axis) == period


def times(start, stop, step):
    return axis_of("t", np.arange(np.datetime64(start), np.datetime64(stop), step))


@pytest.mark.parametrize(
    ("axis", "cycles"),
    [
        (times("2001-01", "2004-01", np.timedelta64(1, "M")), ["year"]),
        (times("2001-01", "2002-06", np.timedelta64(1, "M")), []),
        (times("2001", "2041", np.timedelta64(1, "Y")), []),
        (times("2001-01-01", "2001-03-01", np.timedelta64(6, "h")), ["day"]),
        (times("2001-01-01T00", "2003-12-31T00", np.timedelta64(6, "h")), ["day", "year"]),
        (axis_of("t", np.arange(900.0)), []),
    ],
)
def test_days_and_years_may_be_cycles_where_they_come_round(axis, cycles):
    assert natural_cycles(axis) == tuple(getattr(axis.time, cycle) for cycle in cycles)


def test_time_is_last_whatever_marks_it():
    x, y = axis_of("x", [1.0, 2]), axis_of("y", [1.0, 2])
    for time in (
        axis_of("t", np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")),
        axis_of("time", [1.0, 2]),
        axis_of("t", [1.0, 2], {"axis": "T"}),
        axis_of("t", [1.0, 2], {"standard_name": "time"}),
    ):
        assert hierarchy_of([time, x, y], None) == ("x", "y", time.name)


def test_what_is_said_is_kept_and_what_is_not_is_left_open():
    axes = [axis_of("lat", [1.0, 2]), axis_of("lon", np.arange(0.0, 360, 10), EAST)]
    wishes = read_wishes(axes, sigma={"lat": "3.5"}, kernel="matern12", period={"lon": "none"})
    assert wishes.levels[0] == Wish("lat", "matern12", 3.5, None, None)
    assert wishes.levels[1] == Wish("lon", "matern12", None, None, None)
    assert read_wishes(axes).levels[1].period == 360.0
    assert read_wishes(axes, noise="joint", ridge="0.1").joint_ridge == 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "magic"}, "magic"),
        ({"sigma": "wide"}, "wide"),
        ({"ridge": {"time": 1.0}}, "no dimension 'time'"),
        ({"noise": "joint", "ridge": {"lat": 1.0}}, "one number"),
        ({"noise": "pink"}, "pink"),
        ({"levels": ["lat", "lat"]}, "Name each"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    axes = [axis_of("lat", [1.0, 2]), axis_of("lon", [1.0, 2])]
    with pytest.raises(SettingError, match=message):
        read_wishes(axes, **settings)
