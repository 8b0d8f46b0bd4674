"""Words of pictures: names and units as files give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.plots.labels import (
    axis_text,
    coordinate_text,
    points_down,
    title_text,
    units_text,
    variable_text,
    with_units,
)

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}


def dated(day: float, calendar: str) -> Axis:
    return Axis("t", np.array([day]), time=TimeScale("days since 2000-01-01", calendar))


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        ("degree_Celsius", "°C"), ("degC", "°C"), ("Kelvin", "K"), ("1", ""), ("", ""), ("C", "C"),
        ("m s-1", "m s⁻¹"), ("kg m**-2", "kg m⁻²"), ("m^2", "m²"), ("1e-3", "1e-3"),
        ("m2 s-1", "m² s⁻¹"), ("W m-2", "W m⁻²"), ("H2O", "H2O"), ("%", "%"), ("mm/m", "mm/m"),
    ],
)  # fmt: skip
def test_units(units: str, shown: str) -> None:
    assert units_text({"units": units}) == shown


def test_units_may_be_absent() -> None:
    assert units_text({}) == ""
    assert with_units("depth", "m") == "depth [m]"
    assert with_units("depth", "") == "depth"


@pytest.mark.parametrize(
    ("attrs", "shown"),
    [
        (
            {"long_name": "sea surface\n temperature", "standard_name": "x_y"},
            "sea surface temperature",
        ),
        ({"standard_name": "air_temperature"}, "air temperature"),
        ({"long_name": "monthly_sum_pr"}, "monthly sum pr"),
        ({"long_name": "a_b of c"}, "a_b of c"),
        ({"long_name": " "}, "t_2m"),
        ({}, "t_2m"),
    ],
)
def test_names(attrs: Any, shown: str) -> None:
    assert variable_text("t_2m", attrs) == shown


def test_axes_are_named_where_ticks_do_not_say_it() -> None:
    scale = TimeScale("days since 2000-01-01")
    assert axis_text(axis_of("lat", [0.0, 1.0], NORTH)) == ""
    assert axis_text(axis_of("lon", [0.0, 1.0], EAST)) == ""
    assert axis_text(Axis("time", axis_of("t", [0.0]).numbers, time=scale)) == ""
    depth = axis_of("z", [0.0, 1.0], {"long_name": "depth", "units": "m"})
    assert axis_text(depth) == "depth [m]"
    assert axis_text(text_axis("site", ["a"])) == "site"


@pytest.mark.parametrize(
    ("axis", "shown"),
    [
        (axis_of("lat", [-4.8338351], NORTH), "4.834°S"),
        (axis_of("lon", [325.5], EAST), "34.5°W"),
        (axis_of("depth", [5.0], {"units": "m"}), "depth 5 m"),
        (axis_of("x", [0.1]), "x 0.1"),
        (text_axis("site", ["north"]), "site north"),
        (index_axis("row", 5).take([3]), "row 3"),
        (dated(59.0, "360_day"), "2000-02-30"),
        (dated(0.5, "standard"), "2000-01-01 12:00"),
    ],
)
def test_coordinates(axis: Axis, shown: str) -> None:
    assert coordinate_text(axis) == shown


def test_a_title_says_what_and_when() -> None:
    scale = TimeScale("days since 2000-01-01")
    fixed = [
        axis_of("depth", [5.0], {"units": "m"}),
        Axis("time", axis_of("t", [1.0]).numbers, time=scale),
        index_axis("member", 1),
    ]
    assert title_text("sst", {}, fixed) == "sst, 2000-01-02, depth 5 m"


@pytest.mark.parametrize(
    ("name", "attrs", "down"),
    [
        ("depth", {"positive": "down"}, True),
        ("depth", {"positive": "up"}, False),
        ("depth", {"units": "m"}, True),
        ("height", {"units": "m", "positive": "up"}, False),
        ("height", {"units": "m"}, False),
        ("plev", {"units": "hPa"}, True),
        ("lev", {"units": "Pa", "standard_name": "air_pressure"}, True),
        ("lat", {"units": "degrees_north"}, False),
        ("x", {}, False),
    ],
)
def test_depths_and_pressures_point_down(name: str, attrs: Any, down: bool) -> None:
    assert points_down(axis_of(name, [10.0, 20.0], attrs)) is down


def test_depths_below_zero_point_up() -> None:
    assert not points_down(axis_of("depth", [-20.0, -10.0], {"units": "m"}))
