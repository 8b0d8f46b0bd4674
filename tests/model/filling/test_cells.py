"""Masks say which cells stay missing."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from cloudy_seas import (
    ALWAYS,
    DAYS,
    FIELD,
    GRID,
    LAT,
    LON,
    MISSING,
    SETTINGS,
    WET,
    chosen,
    filled_cells,
    sample,
)

from dkrls_cli import fill
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.answering.masks import lasting_mask
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.filling.cells import choose_cells, open_cells
from dkrls_cli.model.settings import Settings


def test_cells_missing_at_all_times_or_at_first_stay_missing():
    assert np.array_equal(filled_cells(), MISSING & ~ALWAYS)
    assert np.array_equal(filled_cells(mask="always"), MISSING & ~ALWAYS)
    assert np.array_equal(filled_cells(mask="first"), MISSING & ~MISSING[0])
    assert np.array_equal(filled_cells(mask="none"), MISSING)


def test_land_is_what_is_missing_at_all_times_whichever_level_is_last():
    settings = Settings(["time", "lon", "lat"])
    assert np.array_equal(chosen(GRID, settings, "always", None)[0], MISSING & ~ALWAYS)
    assert chosen(GRID, settings, "none", None)[1] == {}
    with pytest.raises(SettingError, match="Name each"):
        chosen(GRID, Settings(["time"]), "none", None)


def test_on_a_grid_without_places_a_mask_looks_along_the_last_level():
    plain = as_grid(GRID.values)
    settings = Settings(["dim_0", "dim_2", "dim_1"])
    cells, _ = chosen(plain, settings, "always", None)
    assert np.array_equal(cells, MISSING & ~MISSING.all(axis=1, keepdims=True))
    cells, _ = chosen(plain, settings, "first", None)
    assert np.array_equal(cells, MISSING & ~MISSING[:, :1])


def test_the_first_slice_shows_no_mask_along_a_place_or_one_coordinate():
    with pytest.raises(SettingError, match="'lat' is a place") as refused:
        fill(sample(), mask="first", levels=["time", "lon", "lat"])
    assert refused.value.setting == "mask"
    one = replace(GRID, values=GRID.values[:1], axes=(GRID.axes[0].take([0]), *GRID.axes[1:]))
    with pytest.raises(SettingError, match="'time' has one coordinate"):
        choose_cells(one, SETTINGS, "first")


def test_what_was_decided_about_land_is_told():
    """One day: the sea surface temperature says that holes may be land."""
    day = as_grid(sample().isel(time=3))
    found = choose_cells(day, Settings())
    assert not found.cells.any()
    assert found.left == {"left as masked": MISSING[3].sum()}
    assert found.note == lasting_mask(day, day.dims).note != ""
    assert fill_grid(day, SETTINGS).note == found.note
    everything = fill_grid(day, Settings(sigma=20.0, ridge=1e-3), mask="none")
    assert everything.note == ""
    assert everything.cells.sum() == MISSING[3].sum()
    assert fill_grid(GRID, SETTINGS).note == ""


@pytest.mark.parametrize(
    "mask",
    [
        WET,
        np.where(WET, 3.0, np.nan),
        np.where(WET, -1, 0),
        np.broadcast_to(WET, FIELD.shape),
        xr.DataArray(WET, {"lat": LAT, "lon": LON}, ("lat", "lon")),
        xr.DataArray(WET, {"lat": LAT, "lon": LON}, ("lat", "lon")).transpose(),
        Grid(np.where(WET, 1.0, np.nan), GRID.axes[1:], "wet"),
        xr.DataArray(WET, {"latitude": LAT, "lons": LON}, ("latitude", "lons")),
        xr.DataArray(WET, {"lat": LAT, "lon": LON}, ("lat", "lon")).expand_dims(
            time=DAYS[:1] - 900
        ),
        xr.DataArray(WET, {"lat": LAT, "lon": LON}, ("lat", "lon")).expand_dims(z=[2.0]),
    ],
)
def test_a_mask_may_be_an_array(mask):
    cells, left = chosen(GRID, SETTINGS, mask, None)
    assert np.array_equal(cells, MISSING & WET)
    assert left == {"left as masked": (MISSING & ~WET).sum()}


def test_a_mask_of_the_same_cells_may_have_them_in_other_ways():
    east = {"units": "degrees_east"}
    cells = np.array([[True, False, True, False]])
    data = np.where(cells, np.arange(12.0).reshape(3, 4), np.nan)
    grid = as_grid(
        xr.DataArray(data, {"lat": [1.0, 2, 3], "lon": ("lon", [0.1, 90, 180, 270], east)})
    )
    wet = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1]])
    found, _ = chosen(grid, SETTINGS, wet, None)
    lon = np.array([0.1, 90, -180, -90], np.float32)
    mask = xr.DataArray(wet, {"lat": [1.0, 2, 3], "lon": ("lon", lon, east)}).sortby("lon")
    wider = mask.pad(lat=(1, 0), constant_values=1).assign_coords(lat=[0.0, 1, 2, 3])
    for same in (mask, mask[::-1], mask.transpose(), wider):
        assert np.array_equal(chosen(grid, SETTINGS, same, None)[0], found)
    names = as_grid(xr.DataArray(np.ones((2, 2)), {"x": ["a", "b"]}, ("x", "y")))
    turned = xr.DataArray([0, 1], {"x": ["b", "a"]}, ("x",))
    assert open_cells(names, turned).tolist() == [[True], [False]]


def test_a_mask_at_one_latitude_is_not_that_of_all():
    one = xr.DataArray(WET, {"lat": LAT, "lon": LON}, ("lat", "lon"))[:1]
    with pytest.raises(InputError, match="other coordinates of 'lat'"):
        chosen(GRID, SETTINGS, one, None)


def test_a_mask_may_lie_along_one_dimension():
    early = xr.DataArray(np.arange(10) < 4, {"time": DAYS}, ("time",))
    cells, _ = chosen(GRID, SETTINGS, early, None)
    assert np.array_equal(cells, MISSING & (np.arange(10) < 4)[:, None, None])
    middle = np.array([0, 1, 0, 0, 1, 1])[:, None]
    assert np.array_equal(chosen(GRID, SETTINGS, middle, None)[0], MISSING & (middle > 0))


def test_a_mask_that_keeps_everything_missing_leaves_nothing_to_fit():
    found = fill_grid(GRID, SETTINGS, mask=np.zeros((6, 7)), std=True)
    assert found.model is None
    assert found.left == {"left as masked": MISSING.sum()}
    assert found.grid is GRID
    assert np.array_equal(np.isnan(found.std), MISSING)
    assert np.array_equal(filled_cells(mask=np.ones((6, 7))), MISSING)


def test_a_mask_without_coordinates_has_as_many_cells_as_the_grid():
    grid = as_grid(xr.DataArray(np.ones((2, 3)), dims=("x", "y")))
    with pytest.raises(InputError, match="4 cells along 'y', and no coordinates"):
        open_cells(grid, xr.DataArray(np.ones(4), dims=("y",)))


def test_a_grid_without_any_value_is_masked_or_refused():
    empty = np.full((3, 4), np.nan)
    assert fill_grid(as_grid(empty)).left == {"left as masked": 12}
    with pytest.raises(InputError, match="All 12 values are missing"):
        fill(empty, mask="none")


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        ("land", SettingError, "Unknown mask 'land'. Choose from: always, first, none"),
        (np.ones((7, 6)), InputError, r"shape \(7, 6\).*shape \(10, 6, 7\)"),
        (np.ones((2, 10, 6, 7)), InputError, r"shape \(2, 10, 6, 7\)"),
        (
            xr.DataArray(np.ones(3), {"z": range(3)}, ("z",), "m"),
            InputError,
            "'m' has a dimension 'z'",
        ),
        (
            xr.DataArray(np.ones(6), {"lat": LAT + 1e-3}, ("lat",), "m"),
            InputError,
            "'m' has other coordinates of 'lat'",
        ),
        (xr.DataArray(np.ones(5), {"lat": LAT[:5]}, ("lat",)), InputError, "it lacks 20.0"),
    ],
)
def test_masks_that_do_not_fit_are_refused(mask, error, message):
    with pytest.raises(error, match=message):
        fill(sample(), mask=mask)
