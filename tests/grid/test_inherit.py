"""What described the source holds at its coordinates, and is left out elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.inherit import (
    bounds_on,
    companions_on,
    half_way,
    is_whole,
    positions_on,
    true_attrs,
    true_file_attrs,
)
from dkrls_cli.grid.style import Companion, Style, source_coordinates

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
LAT, LON, TIME = np.array([-80.0, -40, 0, 40, 80]), np.arange(0.0, 360, 90), np.arange(6.0)


def lat(values: Any = LAT) -> Axis:
    return axis_of("lat", np.asarray(values, float), NORTH)


def lon(values: Any = LON) -> Axis:
    known = axis_of("lon", LON, EAST)
    return known if values is LON else known.at(values)


def time(values: Any = TIME) -> Axis:
    return Axis("time", np.asarray(values, float), time=TimeScale("days since 2000-01-01"))


def half(values: Any, width: float) -> np.ndarray:
    return np.stack([values - width, values + width], axis=1)


STYLE = Style(
    companions={
        "height": Companion((), np.asarray(2.0), {"units": "m"}),
        "time": Companion((), np.asarray(7.0)),
        "period": Companion(("time",), np.arange(6) * 6),
        "area": Companion(("lat", "lon"), np.arange(20.0).reshape(5, 4)),
        "lat_bnds": Companion(("lat", "v"), np.stack([LAT - 30, LAT + 1], 1)),
        "lon_bnds": Companion(("lon", "v"), half(LON, 45)),
        "time_bnds": Companion(("time", "v"), half(TIME, 0.25)),
    },
    bounds={
        "lat": ("bounds", "lat_bnds"),
        "lon": ("bounds", "lon_bnds"),
        "time": ("climatology", "time_bnds"),
    },
    coordinates={"time": TIME, "lat": LAT, "lon": LON},
    global_attrs={"title": "a", "geospatial_lat_min": -80.0, "time_coverage_start": "2000"},
)


# Positions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (lat(), [0, 1, 2, 3, 4]),
        (lat([40, -80]), [3, 0]),
        (lat([40, 41]), None),
        (lon([270, -90, 450]), [3, 3, 1]),  # whole turns away
        (lon([1.0]), None),
        (time([5]), [5]),
        (time([5.5]), None),
        (axis_of("depth", [0.0]), None),
    ],
)
def test_coordinates_are_found_in_the_source(axis: Axis, expected: Any) -> None:
    found = positions_on(STYLE, [axis])[axis.name]
    assert (None if found is None else found.tolist()) == expected


def test_labels_and_positions_are_found_as_well() -> None:
    sites = text_axis("site", ["a", "b", "c"])
    style = Style(coordinates={"site": np.array(["a", "b", "c"]), "n": np.arange(3.0)})
    assert positions_on(style, [sites.at(["c", "a"])])["site"].tolist() == [2, 0]
    assert positions_on(style, [index_axis("n", 3).take([2])])["n"].tolist() == [2]
    numbers = Style(coordinates={"site": np.arange(3.0)})
    assert positions_on(numbers, [sites])["site"] is None


@given(st.lists(st.integers(0, 4), min_size=1))
def test_a_subset_has_the_values_of_the_source(places: list[int]) -> None:
    found = companions_on(STYLE, [lat(LAT[places]), lon()])
    np.testing.assert_array_equal(found["area"].values, np.arange(20.0).reshape(5, 4)[places])


# Companions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axes", "names"),
    [
        ([time(), lat(), lon()], ["height", "period", "area"]),
        ([time([3, 1]), lat([0]), lon()], ["height", "period", "area"]),
        ([time([0.5]), lat(), lon()], ["height", "area"]),
        ([time(), lat([1.0]), lon()], ["height", "period"]),
        ([time(), lat(), lon([1.0])], ["height", "period"]),
        ([lat(), lon()], ["height", "time", "area"]),  # the scalar stands for no axis
        ([time(), lat()], ["height", "period"]),
    ],
)
def test_companions_are_kept_where_they_are_known(axes: list[Axis], names: list[str]) -> None:
    assert list(companions_on(STYLE, axes)) == names


def test_a_companion_that_does_not_fit_the_source_is_left_out() -> None:
    style = Style(companions={"p": Companion(("t",), np.arange(3))}, coordinates={"t": TIME})
    assert companions_on(style, [axis_of("t", TIME)]) == {}


def test_a_formula_is_kept_where_all_its_terms_are() -> None:
    attrs = {"formula_terms": "a: height b: sigma", "units": "m"}
    height = Companion(("x",), np.arange(3.0), attrs)
    sigma = Companion(("x",), np.ones(3))
    x = axis_of("x", [1.0, 2.0, 3.0])
    both = Style(companions={"height": height, "sigma": sigma}, coordinates=source_coordinates([x]))
    assert companions_on(both, [x])["height"].attrs == attrs
    alone = replace(both, companions={"height": height})
    assert companions_on(alone, [x])["height"].attrs == {"units": "m"}


def test_bounds_go_with_their_companion() -> None:
    field = np.zeros((5, 4))
    style = Style(
        companions={
            "place": Companion(("lat", "lon"), field, {"bounds": "corners"}),
            "corners": Companion(("lat", "lon", "v"), np.zeros((5, 4, 4))),
            "level": Companion((), np.asarray(2.0), {"bounds": "level_bnds"}),
            "level_bnds": Companion(("v",), np.array([1.0, 3.0])),
            "lost": Companion((), np.asarray(1.0), {"bounds": "nowhere", "units": "m"}),
        },
        coordinates={"lat": LAT, "lon": LON},
    )
    found = companions_on(style, [lat([0, 40]), lon()])
    assert found["corners"].values.shape == (2, 4, 4)
    assert found["place"].attrs == {"bounds": "corners"}
    assert found["level_bnds"].values.tolist() == [1, 3]
    assert found["lost"].attrs == {"units": "m"}
    assert list(companions_on(style, [lat([1.0]), lon()])) == ["level", "level_bnds", "lost"]


# Bounds -------------------------------------------------------------------------------------------


def cells(axis: Axis, style: Style = STYLE) -> Any:
    found = bounds_on(style, axis)
    return None if found is None else found[2].values.tolist()


def test_bounds_of_the_source_are_kept_at_its_coordinates() -> None:
    assert cells(lat([40, -80])) == [[10, 41], [-110, -79]]
    assert cells(lat([40])) == [[10, 41]]
    attribute, name, companion = bounds_on(STYLE, lat())  # type: ignore[misc]
    assert (attribute, name, companion.dims) == ("bounds", "lat_bnds", ("lat", "v"))
    assert bounds_on(STYLE, time([2]))[:2] == ("climatology", "time_bnds")  # type: ignore[index]


def test_bounds_of_longitudes_turn_with_them() -> None:
    assert cells(lon([-90, 90])) == [[-135, -45], [45, 135]]


def test_new_bounds_lie_half_way_and_end_at_the_poles() -> None:
    assert cells(lat([-85, -70, -60])) == [[-90, -77.5], [-77.5, -65], [-65, -55]]
    assert cells(lat([89, 85, 83])) == [[90, 87], [87, 84], [84, 82]]
    assert cells(lon([350, 0, 20])) == [[345, 355], [-5, 10], [10, 30]]
    assert cells(lon([340, 350, 359])) == [[335, 345], [345, 354.5], [354.5, 363.5]]


def test_new_bounds_have_the_precision_of_their_coordinates() -> None:
    single = axis_of("lat", LAT.astype("f4"), NORTH).at([0.5, 1.5])
    whole = Axis("lat", np.array([1.0, 2.0]), "int16", attrs=NORTH)
    for axis, dtype in ((single, "f4"), (lat([0.5, 1.5]), "f8"), (whole, "f4")):
        assert bounds_on(STYLE, axis)[2].values.dtype == dtype  # type: ignore[index]


@pytest.mark.parametrize(
    "axis",
    [
        lat([1.0]),  # no neighbour
        lat([1.0, 3.0, 2.0]),
        lat([1.0, 1.0]),
        time([0.5, 1.5]),  # of a climatology
        axis_of("depth", [0.0, 1.0]),  # none in the source
    ],
)
def test_there_are_no_new_bounds_where_nothing_is_known(axis: Axis) -> None:
    assert bounds_on(STYLE, axis) is None


def test_lost_bounds_are_made_again() -> None:
    style = Style(bounds={"lat": ("bounds", "b")}, coordinates={"lat": LAT})
    assert cells(lat([0, 1]), style) == [[-0.5, 0.5], [0.5, 1.5]]
    assert bounds_on(style, lat())[2].dims == ("lat", "bnds")  # type: ignore[index]


@given(st.lists(st.floats(-80, 80), min_size=2, max_size=9, unique=True), st.booleans())
def test_new_cells_hold_their_coordinates_and_meet(values: list[float], down: bool) -> None:
    ordered = np.sort(np.array(values))[:: -1 if down else 1]
    made = np.array(cells(lat(ordered), Style(bounds={"lat": ("bounds", "b")})))
    np.testing.assert_array_equal(made[1:, 0], made[:-1, 1])
    assert (np.sort(made, 1)[:, 0] <= ordered).all()
    assert (ordered <= np.sort(made, 1)[:, 1]).all()


# Attributes ---------------------------------------------------------------------------------------

NEW_TIME = [time([0.5]), lat(), lon()]
NEW_LAT = [time(), lat([1.0]), lon()]
SUBSET = [time([3]), lat([0, 40]), lon([90])]


@pytest.mark.parametrize(
    ("text", "axes", "expected"),
    [
        ("time: mean", SUBSET, "time: mean"),
        ("time: mean", NEW_TIME, None),
        ("time: mean", NEW_LAT, "time: mean"),
        ("area: mean", NEW_LAT, None),
        ("area: mean", NEW_TIME, "area: mean"),
        ("latitude: longitude: mean", NEW_LAT, None),
        ("area: mean where land time: mean", NEW_TIME, "area: mean where land"),
        ("area: time: mean", NEW_TIME, None),
        ("time: mean (interval: 6 hours) area: mean", NEW_LAT, "time: mean (interval: 6 hours)"),
        ("time: maximum within days time: mean over days", NEW_TIME, None),
        ("height: point time: mean", NEW_TIME, "height: point"),
        ("mean", NEW_TIME, None),  # not as CF has it
        ("mean", SUBSET, "mean"),
        ("time: mean (comment: lat: lon: all)", NEW_LAT, "time: mean (comment: lat: lon: all)"),
    ],
)
def test_cell_methods_are_kept_along_coordinates_of_the_source(
    text: str, axes: list[Axis], expected: str | None
) -> None:
    found = true_attrs({"units": "K", "cell_methods": text}, STYLE, axes)
    assert found.get("cell_methods") == expected
    assert found["units"] == "K"


def test_an_area_is_one_of_projected_coordinates_too() -> None:
    x = axis_of("x", np.arange(3.0), {"standard_name": "projection_x_coordinate"})
    style = Style(coordinates={"x": np.arange(3.0)})
    attrs = {"cell_methods": "area: mean"}
    assert true_attrs(attrs, style, [x]) == attrs
    assert true_attrs(attrs, style, [x.at([0.5])]) == {}


@pytest.mark.parametrize("key", ["grid_type", "CDI_grid_type", "CDI_grid_num_LPE"])
def test_the_type_of_a_grid_holds_for_the_whole_grid(key: str) -> None:
    attrs = {key: "gaussian", "units": "K"}
    whole = [time(), lat(), lon()]
    assert true_attrs(attrs, STYLE, whole) == attrs
    for axes in (NEW_LAT, SUBSET):
        assert true_attrs(attrs, STYLE, axes) == {"units": "K"}


def test_the_extent_of_a_file_is_kept_only_with_its_grid() -> None:
    whole = [time(), lat(), lon()]
    assert is_whole(STYLE, whole)
    assert true_file_attrs(STYLE, whole) == STYLE.global_attrs
    assert not is_whole(STYLE, [time(), lat(LAT[::-1]), lon()])
    for axes in (SUBSET, NEW_LAT):
        assert true_file_attrs(STYLE, axes) == {"title": "a"}


def test_cells_beside_the_seam_of_an_uneven_ring_do_not_overlap() -> None:
    uneven = [*np.arange(0.0, 350, 20), 350.0]
    for values, sign in ((uneven, 1), (uneven[::-1], -1)):
        cells = half_way(axis_of("lon", np.array(values), EAST))
        assert cells is not None
        first, last = (cells[0], cells[-1]) if sign > 0 else (cells[-1], cells[0])
        assert sorted(first) == [-5.0, 10.0]
        assert sorted(last) == [345.0, 355.0]
    even = half_way(axis_of("lon", np.arange(0.0, 360, 20), EAST))
    assert even is not None
    assert even[[0, -1]].tolist() == [[-10.0, 10.0], [330.0, 350.0]]
    part = half_way(axis_of("lon", np.arange(0.0, 100, 20), EAST))  # far from closing the circle
    assert part is not None
    assert part[[0, -1]].tolist() == [[-10.0, 10.0], [70.0, 90.0]]
