"""Axes, coverage and bounds in records."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kept_records import through_a_file

from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.records.labels import (
    axis_from,
    axis_record,
    bounds_from,
    bounds_record,
    coverage_from,
    coverage_record,
)

LONGITUDES = np.array([350.0, 0.0, 10.0], np.float32)
MANY_LONGITUDES = np.roll(np.arange(0.0, 360.0, 10.0), 5)
DATES = np.array(["2001-01-01", "2001-01-05"], "datetime64[ns]")


@pytest.mark.parametrize(
    "axis",
    [
        axis_of("x", np.array([1, 2, 5], np.int16), {"units": "m", "step": np.float32(0.5)}),
        axis_of("lon", LONGITUDES, {"units": "degrees_east"}),
        axis_of("long", MANY_LONGITUDES, {"units": "degrees_east"}),
        axis_of("time", DATES),
        text_axis("station", ["a", "b"]),
        index_axis("n", 4),
    ],
    ids=lambda axis: axis.name,
)
def test_an_axis_comes_back(axis: Axis) -> None:
    record, arrays = axis_record(axis, "written_0")
    assert list(arrays) == (["written_0"] if axis.name == "long" else [])
    again = axis_from(through_a_file(record), axis.name, axis.numbers, arrays)
    assert again.texts == axis.texts
    assert (again.dtype, again.time, again.labels) == (axis.dtype, axis.time, axis.labels)
    assert again.attrs == axis.attrs
    assert (again.has_coordinate, again.turn) == (axis.has_coordinate, axis.turn)
    assert (again.written is None) == (axis.written is None)
    np.testing.assert_array_equal(again.plain, axis.plain)


def test_written_coordinates_are_as_many_as_the_numbers() -> None:
    axis = axis_of("long", MANY_LONGITUDES, {"units": "degrees_east"})
    record, arrays = axis_record(axis, "written_0")
    with pytest.raises(ValueError, match="the coordinates of 'long' are of two sizes"):
        axis_from(record, "long", axis.numbers[:-1], arrays)
    short = axis_of("lon", LONGITUDES, {"units": "degrees_east"})
    with pytest.raises(ValueError, match="two sizes"):
        axis_from(axis_record(short, "")[0], "lon", short.numbers[:-1], {})


def test_a_coverage_comes_back_and_axes_of_the_model_are_not_stored_twice() -> None:
    lat = axis_of("lat", np.arange(5.0), {"units": "degrees_north"})
    lon = axis_of("lon", MANY_LONGITUDES, {"units": "degrees_east"})
    absent = np.zeros((5, 36), bool)
    absent[2, 3:9] = True
    coverage = Coverage((lat, lon), absent)
    header, arrays = coverage_record(coverage, (lat.take([0, 1, 3, 4]), lon))
    assert header["coverage"]["axes"][1] is None
    assert sorted(arrays) == ["absent", "whole_0"]
    again = coverage_from(through_a_file(header), arrays, (lat.take([0, 1, 3, 4]), lon))
    assert again is not None
    assert np.array_equal(again.absent, absent)
    assert again.axes[0].texts == lat.texts
    assert again.axes[1] is lon


@pytest.mark.parametrize(
    "other",
    [
        {"numbers": np.arange(1.0, 4.0)},
        {"written": np.arange(1.0, 4.0)},
        {"attrs": {"units": "m"}},
        {"dtype": "float32"},
        {"labels": ("a", "b", "c")},
    ],
)
def test_an_axis_that_differs_in_anything_is_stored(other: dict[str, Any]) -> None:
    own = axis_of("x", np.arange(3.0))
    whole = replace(own, **other)
    header, arrays = coverage_record(Coverage((whole,), np.zeros(1, bool)), (own,))
    assert header["coverage"]["axes"][0] is not None
    assert "whole_0" in arrays


@pytest.mark.parametrize("bounds", [Bounds(0, 1), Bounds(-2.5), Bounds(high=0.1)])
def test_bounds_come_back_through_json(bounds):
    assert bounds_from(through_a_file({"bounds": bounds_record(bounds)})) == bounds


def test_files_of_older_versions_have_no_bounds():
    assert bounds_from({}) is None


@pytest.mark.parametrize("record", [[1, 0], [0], "wide", [None, "x"]])
def test_bounds_that_cannot_be_are_refused(record):
    with pytest.raises(ValueError, match="ounds"):
        bounds_from({"bounds": record})
