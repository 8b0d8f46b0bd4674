"""Circles, cycles and time are found by the attributes and names of dimensions."""

import numpy as np
import pytest

from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.cf import hierarchy_of, natural_cycles, natural_period

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
