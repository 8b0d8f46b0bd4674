"""Which part of a grid a picture shows, and how it is turned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.source import Source
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.style import Style
from dkrls_cli.plots.slices import (
    Fixed,
    cell_edges,
    fix_dimensions,
    orient,
    proportion,
    read_part,
    read_slice,
    refuse_empty,
)

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
LAT = axis_of("lat", [10.0, 0.0, -10.0], NORTH)
LON = axis_of("lon", [0.0, 20.0, 40.0, 60.0], EAST)
DEPTH = axis_of("depth", [5.0, 50.0, 500.0], {"units": "m", "positive": "down"})
TIME = Axis("time", np.array([0.0, 30.0]), time=TimeScale("days since 2000-01-01", "360_day"))
SITE = text_axis("site", ["b", "a", "c"])


def grid(*axes: Axis) -> Grid:
    shape = [axis.size for axis in axes]
    return Grid(np.arange(float(np.prod(shape))).reshape(shape), axes, "t")


def source(*axes: Axis, parts: bool = True) -> Source:
    whole = grid(*axes)

    def read(indices: Sequence[Any]) -> Any:
        assert all((np.diff(places) > 0).all() for places in indices)
        return whole.values[np.ix_(*indices)]

    return Source(
        axes, "t", {}, Style(), "float64", lambda: whole.values, read=read if parts else None
    )


# Dimensions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axes", "fixed"),
    [
        ((LAT, LON), {}),
        ((TIME, LON), {}),
        ((TIME,), {}),
        ((TIME, LAT, LON), {"time": 1}),
        ((LAT, LON, TIME), {"time": 1}),
        ((DEPTH, LAT, LON), {"depth": 0}),
        ((TIME, DEPTH, LAT, LON), {"time": 1, "depth": 0}),
        ((TIME, DEPTH, LAT), {"time": 1}),
        ((SITE, TIME, DEPTH), {"time": 1}),
        ((axis_of("a", [1.0, 2.0]), axis_of("b", [1.0, 2.0]), axis_of("c", [1.0, 2.0])), {"a": 0}),
    ],
)
def test_places_are_shown_before_times(axes: tuple[Axis, ...], fixed: dict[str, int]) -> None:
    assert fix_dimensions(axes) == fixed


def test_the_last_time_is_the_latest_one() -> None:
    backward = Axis("time", np.array([60.0, 30.0, 0.0]), time=TIME.time)
    assert fix_dimensions([backward, LAT, LON]) == {"time": 0}


@pytest.mark.parametrize(
    ("axes", "dims"),
    [
        ((LON, LAT), ("lat", "lon")),
        ((LAT, LON), ("lat", "lon")),
        ((TIME, LON), ("time", "lon")),
        ((TIME, LAT), ("lat", "time")),
        ((TIME, DEPTH), ("depth", "time")),
        ((LAT, DEPTH), ("depth", "lat")),
        ((TIME, SITE), ("site", "time")),
        ((axis_of("x", [0.0, 1.0]), axis_of("d", [0.0, 1.0])), ("x", "d")),
        ((axis_of("year", [0.0, 1.0]), SITE), ("site", "year")),
    ],
)
def test_the_last_dimension_runs_to_the_right(axes: Any, dims: Any) -> None:
    given = grid(*axes)
    found = orient(given).grid
    assert found.dims == dims
    first, second = (found.axes[dims.index(axis.name)] for axis in axes)
    for i, one in enumerate(axes[0].texts):
        for j, other in enumerate(axes[1].texts):
            place = {axes[0].name: first.texts.index(one), axes[1].name: second.texts.index(other)}
            assert found.values[tuple(place[dim] for dim in dims)] == given.values[i, j]


def test_coordinates_rise_and_labels_keep_their_order() -> None:
    found = orient(grid(LAT, LON)).grid
    assert found.axes[0].numbers.tolist() == [-10.0, 0.0, 10.0]
    assert found.values[0].tolist() == [8.0, 9.0, 10.0, 11.0]
    assert orient(grid(SITE)).grid.axes[0].texts == ["b", "a", "c"]


def test_longitudes_have_no_jump() -> None:
    stored = axis_of("lon", [0.5, 325.5, 340.5, 355.5], EAST)
    found = orient(grid(stored)).grid
    assert np.ptp(found.axes[0].numbers) == 35.0
    assert found.values.tolist() == [1.0, 2.0, 3.0, 0.0]
    asked = axis_of("lon", np.arange(0.0, 360.0, 10.0), EAST).at([350.0, 360.0, 370.0])
    found = orient(grid(asked)).grid
    assert found.axes[0].numbers.tolist() == [350.0, 360.0, 370.0]
    assert found.values.tolist() == [0.0, 1.0, 2.0]


def test_one_cell_and_coordinates_that_are_not_finite_are_refused() -> None:
    with pytest.raises(SettingError, match=r"One cell of 't' is left, 0: there is nothing to draw"):
        orient(grid(LAT.take([0]), LON.take([1])))
    with pytest.raises(InputError, match="coordinate of 'x' is missing or not finite"):
        orient(grid(axis_of("x", [0.0, np.nan, 1.0])))
    with pytest.raises(InputError, match=r"All coordinates of 'x' are 5.0"):
        orient(grid(axis_of("x", [5.0, 5.0])))


def test_a_slice_without_values_is_refused() -> None:
    refuse_empty(np.array([np.nan, 1.0]), "t", [])
    with pytest.raises(InputError, match=r"No cell of 't' has a value at lat=10.0: there is"):
        refuse_empty(np.array([np.nan]), "t", [LAT.take([0])])


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [True, False])
def test_the_slice_of_a_file(parts: bool) -> None:
    found, fixed = read_slice(source(TIME, LAT, LON, parts=parts), {"lon": [0.0, 60.0]})
    assert fixed == [Fixed("time", "2000-02-01", "the last of 2")]
    assert found.fixed[0].texts == ["2000-02-01"]
    expected = grid(TIME, LAT, LON).values[1][::-1][:, [0, 3]]
    np.testing.assert_array_equal(found.grid.values, expected)


def test_coordinates_may_be_asked_for_in_any_order() -> None:
    whole = source(LAT, LON)
    part = read_part(whole, [np.array([2, 0]), np.array([3, 1, 0])])
    np.testing.assert_array_equal(part.values, grid(LAT, LON).values[np.ix_([2, 0], [3, 1, 0])])
    assert part.axes[0].numbers.tolist() == [-10.0, 10.0]


def test_unusable_values_are_missing() -> None:
    broken = source(LON)
    broken.load()[1] = np.inf
    assert np.isnan(read_part(broken, [np.arange(4)]).values).tolist() == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("asked", "shown"), [(4.0, "0.0"), (-4.0, "0.0"), (14.9, "10.0"), (-14.9, "-10.0")]
)
def test_the_cell_that_a_coordinate_lies_in_is_shown_and_told(asked: float, shown: str) -> None:
    found, fixed = read_slice(source(LAT, LON), {"lat": [asked]})
    assert fixed == [Fixed("lat", shown, f"the nearest to {asked}", asked=True)]
    assert found.fixed[0].texts == [shown]


def test_all_cells_that_coordinates_lie_in_are_told() -> None:
    found, fixed = read_slice(source(LAT, LON), {"lat": [1.0, 10.0]})
    assert fixed == [Fixed("lat", "0.0, 10.0", "the nearest to 1.0, 10.0", asked=True)]
    assert found.grid.axes[0].numbers.tolist() == [0.0, 10.0]


def test_what_lies_in_no_cell_is_refused() -> None:
    with pytest.raises(SettingError, match=r"The file has no lat=15.1; the nearest is 10.0"):
        read_slice(source(LAT, LON), {"lat": [15.1]})
    with pytest.raises(SettingError, match=r"there is one cell for lat=0.0"):
        read_slice(source(LAT, LON), {"lat": [0.0, 1.0, 2.0]})


def test_a_single_coordinate_is_met_but_for_rounding() -> None:
    one = axis_of("y", [1e6])
    _, fixed = read_slice(source(one, LON), {"y": [1e6 + 0.5]})
    assert fixed == [Fixed("y", "1000000.0", "the nearest to 1000000.5", asked=True)]
    with pytest.raises(SettingError, match=r"The file has no y=1000002.0"):
        read_slice(source(one, LON), {"y": [1e6 + 2]})


def test_coordinates_of_the_file_are_not_told() -> None:
    single = axis_of("lat", np.array([0.1, 0.2], np.float32), NORTH)
    for at in ({"lat": [0.1]}, {"lon": [380.0]}, {"lon": [0.0, 20.0]}):
        assert read_slice(source(single, LON), at)[1] == []
    assert read_slice(source(SITE, LON), {"site": ["a"]})[1] == []


# Cells --------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20, unique=True))
def test_every_coordinate_lies_in_its_cell(numbers: list[float]) -> None:
    axis = axis_of("x", sorted(numbers))
    edges = cell_edges(axis)
    assert edges.size == axis.size + 1
    assert (edges[:-1] <= axis.numbers).all()
    assert (axis.numbers <= edges[1:]).all()


def test_cells_end_at_the_poles() -> None:
    axis = axis_of("lat", [-89.0, 0.0, 89.0], NORTH)
    assert cell_edges(axis).tolist() == [-90.0, -44.5, 44.5, 90.0]


def test_maps_have_their_proportion() -> None:
    lat = axis_of("lat", [-10.0, 10.0], NORTH)
    assert proportion(lat, axis_of("lon", [0.0, 40.0], EAST)) == 0.5
    north = axis_of("lat", [50.0, 70.0], NORTH)
    assert proportion(north, axis_of("lon", [0.0, 40.0], EAST)) == pytest.approx(1.0)
    metres = {"units": "m", "axis": "X"}
    y, x = axis_of("y", [0.0, 30.0], metres), axis_of("x", [0.0, 60.0], metres)
    assert proportion(y, x) == 0.5
    assert proportion(lat, axis_of("lon", [0.0, 150.0, 300.0], EAST)) == 0.3
    assert proportion(axis_of("lat", [-80.0, 80.0], NORTH), axis_of("lon", [0.0, 1.0], EAST)) == 1.4
    assert proportion(DEPTH, lat) == 0.62
