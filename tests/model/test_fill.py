"""Missing cells are filled with what a model answers there, and only those that may be."""

import math

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fill, fit
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.fill import choose_cells, fill_grid
from dkrls_cli.model.settings import Settings

DAYS = np.arange("2001-01-01", "2001-01-11", dtype="datetime64[D]")
LAT, LON = np.linspace(-20, 20, 6), np.linspace(100, 130, 7)
FIELD = 15 + 4 * np.sin(np.add.outer(np.arange(10) / 4, np.add.outer(LAT / 10, LON / 9)))
LAND = np.add.outer(LAT, LON) > 130
GIVEN = {"kernel": "matern52", "sigma": {"lat": 15, "lon": 15, "time": 5}, "ridge": 1e-4}
SETTINGS = Settings(**GIVEN)


def holes():
    missing = np.broadcast_to(LAND, FIELD.shape) | (
        np.random.default_rng(2).random(FIELD.shape) < 0.15
    )
    missing[:, 0, 0] = False  # so that no coordinate is lost by chance
    missing[2:5, 2, 1] = True
    return missing


MISSING = holes()
ALWAYS = np.broadcast_to(LAND, FIELD.shape)


def sample(missing=MISSING, dtype="float32"):
    """Days of a sea with clouds."""
    return xr.DataArray(
        np.where(missing, np.nan, FIELD).astype(dtype),
        {
            "time": DAYS,
            "lat": ("lat", LAT, {"units": "degrees_north"}),
            "lon": ("lon", LON, {"units": "degrees_east"}),
            "depth": (("lat", "lon"), np.ones((6, 7))),
        },
        ("time", "lat", "lon"),
        "sst",
        {"units": "degree_Celsius", "standard_name": "sea_surface_temperature"},
    )


GRID = as_grid(sample())


def filled_cells(**options):
    found = fill_grid(GRID, SETTINGS, **options)
    np.testing.assert_array_equal(found.cells, MISSING & ~np.isnan(found.grid.values))
    assert found.cells.sum() + sum(found.left.values()) == MISSING.sum()
    return found.cells


# What is returned ---------------------------------------------------------------------------------


def test_missing_cells_are_answered_by_the_model_and_nothing_else_changes():
    data = sample()
    before = data.copy(deep=True)
    filled = fill(data, **GIVEN)
    model = fit(data, **GIVEN)
    cells = MISSING & ~ALWAYS
    np.testing.assert_array_equal(filled.values[cells], model.predict().values.astype("f4")[cells])
    assert np.abs(filled.values - FIELD)[cells].max() < 1.0
    xr.testing.assert_identical(filled.where(~MISSING), data.where(~MISSING))
    assert np.isnan(filled.values[ALWAYS]).all()
    assert filled.dtype == np.float32
    xr.testing.assert_identical(data, before)


def test_dimensions_of_one_coordinate_are_kept():
    data = sample().expand_dims(height=[2.0], axis=1)
    filled = fill(data, **GIVEN)
    assert filled.dims == data.dims
    xr.testing.assert_identical(filled.isel(height=0, drop=True), fill(sample(), **GIVEN))


def test_grids_and_arrays_are_filled_alike():
    expected = fill(sample(dtype="float64"), **GIVEN)
    grid = as_grid(sample(dtype="float64"))
    labelled = fill(grid, **GIVEN)
    np.testing.assert_array_equal(labelled, expected)
    assert (labelled.name, labelled.attrs) == ("sst", expected.attrs)
    plain = fill(grid.values, {"time": DAYS, "lat": LAT, "lon": LON}, **GIVEN)
    np.testing.assert_allclose(plain, expected)
    assert plain.dims == ("time", "lat", "lon")
    assert plain.name == "values"


def test_standard_errors_come_in_a_dataset_with_the_data():
    data = sample()
    both = fill(data, std=True, **GIVEN)
    assert list(both) == ["sst", "sst_std"]
    assert both.sst.attrs == {**data.attrs, "ancillary_variables": "sst_std"}
    assert both.sst_std.attrs["standard_name"] == "sea_surface_temperature standard_error"
    np.testing.assert_array_equal(both.sst, fill(data, **GIVEN))
    errors, cells = both.sst_std.values, MISSING & ~ALWAYS
    assert (errors[~MISSING] == 0).all()
    assert np.isnan(errors[ALWAYS]).all()
    np.testing.assert_allclose(errors[cells], fit(data, **GIVEN).std().values[cells])
    assert (errors[cells] > 0).all()
    assert "ancillary_variables" not in data.attrs
    unnamed = fill(data.rename(None), std=True, **GIVEN)
    assert list(unnamed) == ["values", "values_std"]


def test_a_complete_grid_is_returned_without_a_fit():
    found = fill_grid(as_grid(FIELD), std=True)
    assert found.model is None
    assert found.left == {}
    assert not found.cells.any()
    assert (found.std == 0).all()
    np.testing.assert_array_equal(found.grid.values, FIELD)
    assert fill_grid(as_grid(FIELD)).std is None
    whole = xr.DataArray(np.arange(12).reshape(3, 4))
    assert fill(whole).dtype == whole.dtype


def test_values_keep_their_type():
    grid = Grid(sample().values, GRID.axes)
    found = fill_grid(grid, SETTINGS, std=True)
    assert found.grid.values.dtype == np.float32
    assert found.std.dtype == np.float64


def test_settings_reach_the_fit():
    found = fill_grid(GRID, Settings(["time", "lon", "lat"], **GIVEN), mask="none")
    assert found.model.hierarchy == ("time", "lon", "lat")
    assert {level.kernel.family for level in found.model.levels} == {"matern52"}
    assert found.model.joint_ridge == 1e-4
    with pytest.raises(SettingError, match="wide"):
        fill(sample(), sigma="wide")


def test_a_grid_that_lacks_whole_slices_only_is_chosen_for_as_a_complete_one():
    watched = []
    lost = np.zeros(FIELD.shape, bool)
    lost[4] = True
    grid = as_grid(sample(lost))
    found = fill_grid(grid, watch=lambda dim, _: watched.append(dim))
    assert set(watched) == {"time", "lat", "lon"}
    assert found.cells.sum() == 42
    assert np.abs(found.grid.values[4] - FIELD[4]).max() < 0.1


def test_text_labels_are_asked_for_as_texts():
    values = np.where(MISSING[:, 0], np.nan, FIELD[:, 0])
    given = {"sigma": {"time": 4, "site": 2}, "kernel": "matern52", "ridge": 1e-3}
    coordinates = {"time": np.arange(10.0), "site": list("abcdefg")}
    found = fill(values, coordinates, **given)
    assert not np.isnan(found).any()
    np.testing.assert_array_equal(found, fit(values, coordinates, **given).predict())


# Masks --------------------------------------------------------------------------------------------


def test_cells_missing_at_all_times_or_at_first_stay_missing():
    assert np.array_equal(filled_cells(), MISSING & ~ALWAYS)
    assert np.array_equal(filled_cells(mask="always"), MISSING & ~ALWAYS)
    assert np.array_equal(filled_cells(mask="first"), MISSING & ~MISSING[0])
    assert np.array_equal(filled_cells(mask="none"), MISSING)


def test_a_mask_looks_along_the_last_level():
    settings = Settings(["time", "lon", "lat"])
    cells, _ = choose_cells(GRID, settings, "always", None)
    assert np.array_equal(cells, MISSING & ~MISSING.all(axis=1, keepdims=True))
    cells, _ = choose_cells(GRID, settings, "first", None)
    assert np.array_equal(cells, MISSING & ~MISSING[:, :1])
    assert choose_cells(GRID, settings, "none", None)[1] == {}
    with pytest.raises(SettingError, match="Name each"):
        choose_cells(GRID, Settings(["time"]), "none", None)


WET = ~LAND & (LAT[:, None] < 10)


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
    ],
)
def test_a_mask_may_be_an_array(mask):
    cells, left = choose_cells(GRID, SETTINGS, mask, None)
    assert np.array_equal(cells, MISSING & WET)
    assert left == {"left as masked": (MISSING & ~WET).sum()}


def test_a_mask_may_lie_along_one_dimension():
    early = xr.DataArray(np.arange(10) < 4, {"time": DAYS}, ("time",))
    cells, _ = choose_cells(GRID, SETTINGS, early, None)
    assert np.array_equal(cells, MISSING & (np.arange(10) < 4)[:, None, None])
    middle = np.array([0, 1, 0, 0, 1, 1])[:, None]
    assert np.array_equal(choose_cells(GRID, SETTINGS, middle, None)[0], MISSING & (middle > 0))


def test_a_mask_that_keeps_everything_missing_leaves_nothing_to_fit():
    found = fill_grid(GRID, SETTINGS, mask=np.zeros((6, 7)), std=True)
    assert found.model is None
    assert found.left == {"left as masked": MISSING.sum()}
    assert found.grid is GRID
    assert np.array_equal(np.isnan(found.std), MISSING)
    assert np.array_equal(filled_cells(mask=np.ones((6, 7))), MISSING)


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
        (xr.DataArray(np.ones(5), {"lat": LAT[:5]}, ("lat",)), InputError, "other coordinates"),
    ],
)
def test_masks_that_do_not_fit_are_refused(mask, error, message):
    with pytest.raises(error, match=message):
        fill(sample(), mask=mask)


# Lengths of gaps ----------------------------------------------------------------------------------

STEPS = np.array([0.0, 1.0, 3.0, 4.0, 7.0, 8.0])
ONE_GAP = np.array([1.0, 2.0, np.nan, np.nan, 3.0, 4.0])  # from 1 to 7: six long


def fills(max_gap, values=ONE_GAP, axis=STEPS):
    cells, _ = choose_cells(as_grid(values, {"x": axis}), Settings(), "none", max_gap)
    return bool(cells.any())


@pytest.mark.parametrize(
    ("limit", "filled"),
    [
        (6.0, True),
        ("6", True),
        (6 * (1 - 1e-10), True),  # the same but for rounding
        (6 * (1 - 3e-9), False),
        (5.999, False),
        (1, False),
        (1e9, True),
        (math.inf, True),
    ],
)
def test_a_gap_of_just_the_limit_is_filled_and_a_longer_one_is_not(limit, filled):
    assert fills({"x": limit}) is filled
    assert fills({"x": limit}, ONE_GAP[::-1], STEPS[::-1]) is filled


def test_a_gap_is_as_long_as_it_is_missing_masked_or_not():
    open_cells = np.array([1, 1, 1, 0, 1, 1])
    for limit, count in ((6, 1), (5, 0)):
        grid = as_grid(ONE_GAP, {"x": STEPS})
        cells, left = choose_cells(grid, Settings(), open_cells, {"x": limit})
        assert cells.sum() == count
        assert left["left as masked"] == 1
        assert left.get("left in gaps along x", 0) == 1 - count


def test_gaps_are_filled_whole_or_not_at_all_and_counted():
    cells, left = choose_cells(GRID, SETTINGS, "always", {"time": 2})
    sea = MISSING & ~ALWAYS
    assert not cells[2:5, 2, 1].any()
    assert left["left as masked"] == ALWAYS.sum()
    assert left["left in gaps along time"] == (sea & ~cells).sum() > 0
    assert cells.any()


def test_time_may_be_a_duration():
    def cells(**limits):
        return choose_cells(GRID, SETTINGS, "none", limits)[0]

    for text, days in (("2D", 2), ("48H", 2), ("1W", 7), ("0.1M", 365.2425 / 120)):
        assert np.array_equal(cells(time=text), cells(time=days))
    assert not np.array_equal(cells(time="2D"), cells(time="1D"))


def test_a_gap_must_be_short_along_every_dimension_named():
    each = [choose_cells(GRID, SETTINGS, "none", {dim: 9})[0] for dim in ("lat", "lon")]
    both, left = choose_cells(GRID, SETTINGS, "none", {"lat": 9, "lon": 9})
    assert np.array_equal(both, each[0] & each[1])
    assert not np.array_equal(both, each[0])
    assert both.sum() + sum(left.values()) == MISSING.sum()


@pytest.mark.parametrize(
    ("max_gap", "message"),
    [
        ({"depth": 3}, "no dimension 'depth'. The data has time, lat, lon"),
        ({"lat": "3D"}, "longest gap '3D' along 'lat': that is not a number"),
        ({"lat": 0}, "longest gap 0 along 'lat'. It must be above 0"),
        ({"lat": -1}, "above 0"),
        ({"time": "-1"}, "above 0"),
        ({"lon": math.nan}, "above 0"),
        ({"time": "soon"}, "'soon' is not a time step"),
    ],
)
def test_lengths_that_cannot_be_are_refused(max_gap, message):
    with pytest.raises(SettingError, match=message):
        fill(sample(), max_gap=max_gap)


# Beyond the data ----------------------------------------------------------------------------------


def test_slices_beyond_the_data_are_left_unless_asked_for():
    missing = MISSING.copy()
    missing[:2], missing[7], missing[:, :, 6] = True, True, True
    grid, sea = as_grid(sample(missing)), missing & ~missing.all(axis=0)
    found = fill_grid(grid, SETTINGS, std=True)
    inside = sea.copy()
    inside[:2] = False
    assert np.array_equal(found.cells, inside)
    assert found.left["left beyond the data along time"] == sea[:2].sum()
    assert np.isnan(found.std[:2]).all()
    asked = fill_grid(grid, SETTINGS, extrapolate=True)
    assert np.array_equal(asked.cells, sea)
    assert list(asked.left) == ["left as masked"]
    both = fill_grid(grid, SETTINGS, mask="none")
    assert both.left == {
        "left beyond the data along time": 2 * 42,
        "left beyond the data along lon": 8 * 6,
    }
    assert fill_grid(grid, SETTINGS, mask="none", extrapolate=True).left == {}
    everywhere = fill(sample(missing), mask="none", extrapolate=True, **GIVEN)
    assert np.isfinite(everywhere).all()
    assert np.isnan(fill(sample(missing), mask="none", **GIVEN)[:2]).all()


def test_nothing_may_be_left_once_extrapolation_is_out():
    values = np.outer(np.ones(4), np.arange(6.0))
    values[:, 5] = np.nan
    found = fill_grid(as_grid(values), mask="none", std=True)
    assert not found.cells.any()
    assert found.model is not None
    np.testing.assert_array_equal(found.grid.values, values)
    assert np.array_equal(np.isnan(found.std), np.isnan(values))


def test_there_is_no_beyond_on_a_circle_and_a_repeated_longitude_is_filled_alike():
    lon = np.arange(0.0, 361, 30)
    values = 3 + np.outer(np.linspace(1, 2, 8), np.sin(np.deg2rad(lon)))
    values[3:5, [0, 12]] = values[2, 6] = np.nan
    axes = axis_of("lat", np.arange(8.0)), axis_of("lon", lon, {"units": "degrees_east"})
    given = Settings(kernel="matern52", sigma={"lat": 4, "lon": 60}, ridge=1e-6)
    found = fill_grid(Grid(values, axes), given, mask="none")
    assert found.left == {}
    assert found.model.shape == (8, 12)
    assert found.model.cascade.levels[1].kernel.period == 360
    np.testing.assert_array_equal(found.grid.values[3:5, 0], found.grid.values[3:5, 12])
    assert np.abs(found.grid.values[3:5, 0] - 3).max() < 0.05
    assert found.grid.axes is axes


def test_longitudes_are_compared_with_those_of_the_model_whatever_their_turn():
    lon = np.arange(0.0, 361, 90)  # laid out around 0 here, from 0 to 270 in the model
    values = np.outer(np.linspace(1, 2, 6), np.cos(np.deg2rad(lon)))
    values[2, 1] = values[3, 3] = np.nan
    axes = axis_of("lat", np.arange(6.0)), axis_of("lon", lon, {"units": "degrees_east"})
    given = Settings(kernel="matern52", sigma={"lat": 4, "lon": 90}, ridge=1e-6, period="none")
    found = fill_grid(Grid(values, axes), given)
    assert found.left == {}
    assert found.cells.sum() == 2
