"""Lasting masks: what is land and sea floor, and what is a gap."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.answering.masks import LastingMask, lasting_mask, of_the_sea, steps_round

SHARED = Path(__file__).parents[4] / "shared" / "data"
NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
LAT, LON = np.arange(-87.5, 90, 5), np.arange(2.5, 360, 5)  # cells of 556 km at the equator
GLOBE = axis_of("lat", LAT, NORTH), axis_of("lon", LON, EAST)


def decide(missing, axes, name="t", last=None, **attrs) -> LastingMask:
    grid = Grid(np.where(missing, np.nan, 1.0), tuple(axes), name, attrs)
    hierarchy = hierarchy_of(axes, None)
    found = lasting_mask(grid, (*(d for d in hierarchy if d != last), last) if last else hierarchy)
    whole = np.broadcast_to(found.cells, missing.shape)  # the shape broadcasts
    assert not (whole & ~missing).any()
    return replace(found, cells=whole)


def times(size: int) -> Axis:
    return axis_of("time", np.arange(size).astype("M8[D]"))


def some(shape, seed=0, share=0.4):
    return np.random.default_rng(seed).random(shape) < share


# Data that shows it -------------------------------------------------------------------------------


def test_along_time_the_mask_is_what_is_missing_at_all_times():
    missing = some((3, 36, 72))
    found = decide(missing, (times(3), *GLOBE))
    assert np.array_equal(found.cells, np.broadcast_to(missing.all(axis=0), missing.shape))
    assert found.note == ""
    grid = Grid(np.where(missing, np.nan, 1.0), (times(3), *GLOBE))
    assert lasting_mask(grid, grid.dims).cells.shape == (1, 36, 72)


@pytest.mark.parametrize("last", ["time", "lat", "member"])
def test_all_dimensions_that_are_no_places_show_it_together(last):
    axes = times(2), GLOBE[0], axis_of("member", [1, 2, 3]), GLOBE[1]
    missing = some((2, 36, 3, 72), share=0.8)
    found = decide(missing, axes, last=last)
    assert found.cells.any()
    assert np.array_equal(found.cells, missing & missing.all(axis=(0, 2), keepdims=True))


@pytest.mark.parametrize(
    "place",
    [
        axis_of("depth", [0.0, 10, 20, 50]),
        axis_of("p", [1000.0, 850, 500, 200], {"units": "hPa"}),
        axis_of("north", [0.0, 1, 2, 3], {"axis": "Y", "units": "km"}),
        axis_of("lat", [0.0, 1, 2, 3]),
    ],
    ids=lambda axis: axis.name,
)
def test_any_place_is_masked_along_the_others(place):
    missing = some((4, 5), share=0.7)
    missing[2] = True
    found = decide(missing, (place, axis_of("month", np.arange(1, 6))), last=place.name)
    assert np.array_equal(found.cells, missing & missing.all(axis=1, keepdims=True))
    assert found.note == ""


def test_plain_grids_are_masked_along_their_last_level():
    missing = some((4, 5, 6), share=0.3)
    missing[2, 1] = missing[1, :, 4] = missing[3] = True
    axes = index_axis("a", 4), index_axis("b", 5), index_axis("c", 6)
    expected = np.zeros((4, 5, 6), bool)
    expected[2, 1] = True
    assert np.array_equal(decide(missing, axes).cells, expected)
    expected = np.zeros((4, 5, 6), bool)
    expected[1, :, 4] = True
    assert np.array_equal(decide(missing, axes, last="b").cells, expected)


def test_a_row_without_data_is_a_gap_on_plain_grids_and_masked_along_time():
    missing = some((4, 5), share=0.6)
    missing[2] = True
    axes = index_axis("a", 4), index_axis("b", 5)
    assert not decide(missing, axes).cells.any()
    along_time = np.zeros((4, 5), bool)
    along_time[2] = True
    assert np.array_equal(decide(missing, (axes[0], times(5))).cells, along_time)
    assert decide(np.ones((4, 5), bool), axes).cells.all()


@pytest.mark.parametrize(
    "others", [times(4), axis_of("x", np.arange(4.0)), GLOBE[0].take(range(4))]
)
def test_a_text_without_data_stays_missing_and_a_month_is_between_others(others):
    missing = np.zeros((4, 12), bool)
    missing[1, 3] = missing[:, 7] = True
    sensors = text_axis("sensor", [f"s{i}" for i in range(12)])
    expected = np.zeros((4, 12), bool)
    expected[:, 7] = True
    for last in (others.name, "sensor"):
        assert np.array_equal(decide(missing, (others, sensors), last=last).cells, expected)
    months = text_axis(
        "month",
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    )
    assert not decide(missing, (others, months), last="month").cells.any()


def test_one_coordinate_tells_nothing():
    missing = some((4, 5), share=0.7)
    missing[1] = True
    axes = index_axis("a", 4), index_axis("b", 5), times(1)
    assert not decide(missing[..., None], axes).cells.any()
    assert not decide(np.ones(4, bool), axes[:1]).cells.any()
    assert not decide(missing[:1, :, None], (index_axis("a", 1), *axes[1:])).cells.any()


def test_a_complete_grid_has_no_mask_and_no_note():
    found = decide(np.zeros((36, 72), bool), GLOBE)
    assert not found.cells.any()
    assert found.note == ""


# Columns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [(), (times(1),)], ids=["no time", "one time"])
def test_what_reaches_an_end_of_the_vertical_is_land_or_sea_floor(single):
    depth = axis_of("depth", np.array([0.0, 10, 50, 200, 1000]), {"positive": "down"})
    missing = np.zeros((5, 36, 72), bool)
    missing[3:, 4:9, 4:9] = True  # sea floor
    missing[:, 20:30, 20:30] = True  # land
    missing[:1, 1, 1] = True  # up to the surface
    lasting = missing.copy()
    missing[1:3, 3, 60:65] = missing[2, 4, 4] = True  # gaps
    lasting[2, 4, 4] = True  # but that one is next to the sea floor
    shape = (1,) * len(single) + missing.shape
    found = decide(missing.reshape(shape), (*single, depth, *GLOBE))
    assert np.array_equal(found.cells.reshape(missing.shape), lasting)
    assert "fewer than two times" in found.note
    assert f"{lasting.sum()} missing cells in columns" in found.note
    assert "10 missing cells between data are taken for gaps" in found.note
    order = [3, 0, 4, 2, 1]
    mixed = decide(missing[order], (depth.take(order), *GLOBE))
    assert np.array_equal(mixed.cells, lasting[order])


# Maps ---------------------------------------------------------------------------------------------


def continents():
    land = np.zeros((36, 72), bool)
    land[10:20, 66:] = land[10:20, :4] = True  # across the end of the longitudes
    land[:3] = True
    return land


def test_wide_holes_are_land_and_narrow_ones_are_gaps():
    land = continents()
    clouds = np.zeros(land.shape, bool)
    clouds[25, 30] = clouds[33, 40:44] = True  # less than three cells wide
    found = decide(land | clouds, GLOBE)
    assert np.array_equal(found.cells, land)
    assert f"{land.sum()} missing cells in 2 holes wider than 500 km are taken for land" in (
        found.note
    )
    assert "5 missing cells in 2 holes are taken for gaps" in found.note
    only = decide(land, GLOBE)
    assert f"all {land.sum()} missing cells in 2 holes wider than" in only.note
    gaps = decide(clouds, GLOBE)
    assert not gaps.cells.any()
    assert gaps.note.endswith(
        "all 5 missing cells in 2 holes are taken for gaps: no hole is wider than 500 km"
    )


def test_a_hole_across_the_end_of_the_longitudes_is_one():
    missing = np.zeros((36, 72), bool)
    missing[18, 70:] = True  # narrow on this side
    missing[16:21, 0:5] = True
    assert np.array_equal(decide(missing, GLOBE).cells, missing)
    part = axis_of("lon", LON - 180, EAST)
    assert decide(np.roll(missing, 36, axis=1), (GLOBE[0], part)).cells.sum() == missing.sum()
    twice = axis_of("lon", np.arange(0.0, 361, 5), EAST)
    closed = np.zeros((36, 73), bool)
    closed[16:21, 0:5] = closed[18, 71:] = True
    assert np.array_equal(decide(closed, (GLOBE[0], twice)).cells, closed)
    regional = axis_of("lon", LON / 2, EAST)
    assert not decide(missing, (GLOBE[0], regional)).cells[18, 71]


def test_a_hole_of_three_cells_is_land_on_a_coarse_grid():
    for left in (20, 70, 71):
        missing = np.zeros((36, 72), bool)
        columns = np.arange(left, left + 3) % 72
        missing[np.ix_(range(16, 19), columns)] = True
        assert np.array_equal(decide(missing, GLOBE).cells, missing)
        missing[16] = False
        assert not decide(missing, GLOBE).cells.any()


@pytest.mark.parametrize("order", [np.s_[::-1], np.random.default_rng(0).permutation(36)])
def test_the_order_of_coordinates_does_not_matter(order):
    missing = continents() | some((36, 72), share=0.05)
    expected = decide(missing, GLOBE).cells
    lat = axis_of("lat", LAT[order], NORTH)
    shuffled = np.random.default_rng(1).permutation(72)
    lon = axis_of("lon", LON[shuffled], EAST)
    found = decide(missing[order][:, shuffled], (lat, lon))
    assert np.array_equal(found.cells, expected[order][:, shuffled])


def strip(km: float, axes, spacing: float, count=41):
    """Whether a square hole is lasting whose middle is so many kilometres from data."""
    missing = np.zeros((count, count), bool)
    half = round(km / spacing) - 1
    middle = count // 2
    missing[middle - half : middle + half + 1, middle - half : middle + half + 1] = True
    return bool(decide(missing, axes).cells.any())


@pytest.mark.parametrize(("scale", "units"), [(10.0, "km"), (10e3, "m"), (10e3, "metres")])
def test_projections_are_measured_in_their_units(scale, units):
    steps = np.arange(61) * scale
    axes = [axis_of(n, steps, {"axis": n.upper(), "units": units}) for n in "yx"]
    assert not strip(250, axes, 10, 61)
    assert strip(260, axes, 10, 61)


def test_degrees_are_measured_on_the_sphere():
    """At 60 degrees north a degree of longitude is half as long."""
    step = 10 / 111.19493  # degrees in 10 km
    degrees = (np.arange(81) - 40) * step
    at_equator = [axis_of("lat", degrees, NORTH), axis_of("lon", degrees, EAST)]
    assert not strip(250, at_equator, 10, 81)
    assert strip(270, at_equator, 10, 81)
    narrow = np.zeros((81, 81), bool)
    narrow[:, 10:71] = True  # 305 km at the equator from its middle to either side
    assert decide(narrow, at_equator).cells.any()
    north = [axis_of("lat", degrees + 60, NORTH), at_equator[1]]
    assert not decide(narrow, north).cells.any()
    rotated = [
        axis_of("rlat", degrees, {"standard_name": "grid_latitude", "units": "degrees"}),
        axis_of("rlon", degrees, {"standard_name": "grid_longitude", "units": "degrees"}),
    ]
    assert decide(narrow, rotated).cells.any()


def test_one_latitude_says_how_long_a_degree_is():
    lon = axis_of("lon", np.arange(0.0, 20, 0.5), EAST)
    missing = np.zeros((1, 40), bool)
    missing[0, 15:24] = True  # 2.5 degrees from its middle to either side
    for lat, lasting in ((0.0, True), (45.0, False)):
        found = decide(missing, (axis_of("lat", [lat], NORTH), lon))
        assert found.cells.any() == lasting


def test_projections_without_a_length_are_not_measured():
    names = ("projection_y_coordinate", "projection_x_coordinate")
    axes = [axis_of(n[11], np.arange(41.0), {"standard_name": n, "units": "rad"}) for n in names]
    missing = np.zeros((41, 41), bool)
    missing[5:36, 5:36] = True
    found = decide(missing, axes)
    assert not found.cells.any()
    assert "taken for gaps" in found.note


def test_any_hole_of_a_quantity_of_the_sea_may_be_land():
    missing = some((36, 72), share=0.1)
    found = decide(missing, GLOBE, standard_name="sea_surface_temperature")
    assert np.array_equal(found.cells, missing)
    assert found.note.endswith("are taken for land and stay missing: the quantity is of the sea")
    assert not decide(missing, GLOBE, standard_name="air_temperature").cells.any()


def test_a_grid_without_data_is_all_mask():
    everything = np.ones((36, 72), bool)
    assert decide(everything, GLOBE).cells.all()
    assert decide(everything, GLOBE, "tos").cells.all()
    assert decide(everything, (times(36), GLOBE[1])).cells.all()


@pytest.mark.parametrize(
    ("name", "attrs", "sea"),
    [
        ("tos", {}, True),
        ("THETAO", {}, True),
        ("siconc", {}, True),
        ("analysed_sst", {}, True),
        ("sst", {}, True),
        ("t", {"standard_name": "sea_water_practical_salinity"}, True),
        ("t", {"standard_name": "sea_ice_area_fraction"}, True),
        ("t", {"standard_name": "surface_downward_heat_flux_in_sea_water"}, True),
        ("t", {"standard_name": "ocean_mixed_layer_thickness"}, True),
        ("t", {"long_name": "Sea Surface Temperature"}, True),
        ("t", {"long_name": "Potential temperature of the ocean"}, True),
        ("msl", {"standard_name": "air_pressure_at_mean_sea_level"}, False),
        ("t", {"long_name": "Mean sea level pressure"}, False),
        ("t", {"long_name": "land surface temperature"}, False),
        ("t", {"long_name": "height above sea level"}, False),
        ("season", {"long_name": "research in the season"}, False),
        ("tas", {}, False),
        ("assist", {}, False),
        ("oceanside", {}, False),
    ],
)
def test_quantities_of_the_sea_are_known_by_their_names(name, attrs, sea):
    assert of_the_sea(Grid(np.ones(2), (index_axis("x", 2),), name, attrs)) is sea


def test_circles_are_counted_in_steps():
    assert steps_round(GLOBE[0]) is None
    assert steps_round(GLOBE[1]) == 72
    assert steps_round(axis_of("lon", np.arange(-180.0, 181, 5), EAST)) == 72
    assert steps_round(axis_of("lon", np.arange(0.0, 181, 5), EAST)) is None
    assert steps_round(axis_of("month", np.arange(1, 13))) == 12


# Real files ---------------------------------------------------------------------------------------


def shared(name: str) -> xr.Dataset:
    if not (SHARED / name).exists():
        pytest.skip(f"no {name} in {SHARED}")
    with xr.open_dataset(SHARED / name) as dataset:
        return dataset.load()


def test_the_sea_floor_of_the_atlantic_is_kept():
    grid = as_grid(shared("atlantic_profiles.nc").salinity)
    found = lasting_mask(grid, grid.dims)
    assert np.array_equal(found.cells, np.isnan(grid.values))
    assert found.cells.sum() == 33


def test_clouds_over_land_are_gaps():
    grid = as_grid(shared("heaton_satellite.nc").temp)
    found = lasting_mask(grid, grid.dims)
    assert not found.cells.any()
    assert "all 44431 missing cells in 706 holes are taken for gaps" in found.note
