"""Missing cells are filled with what a model answers there, and only those that may be."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fill, fit
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model import fill as module
from dkrls_cli.model import training
from dkrls_cli.model.answering.masks import lasting_mask
from dkrls_cli.model.fill import choose_cells, fill_grid
from dkrls_cli.model.fit import fit_grid
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


def chosen(*given):
    found = choose_cells(*given)
    return found.cells, found.left


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


def test_members_come_in_a_dataset_with_the_data():
    data = sample()
    found = fill(data, ensemble=3, seed=2, **GIVEN)
    assert list(found) == ["sst", "sst_ensemble"]
    xr.testing.assert_identical(
        found.sst.drop_vars("realization", errors="ignore"), fill(data, **GIVEN)
    )
    drawn = found.sst_ensemble
    assert drawn.dims == ("realization", *data.dims)
    assert drawn.realization.values.tolist() == [0, 1, 2]
    assert drawn.realization.attrs["standard_name"] == "realization"
    assert drawn.attrs["long_name"] == "sst, ensemble members"
    assert drawn.depth.identical(data.depth)
    cells, values = MISSING & ~ALWAYS, drawn.values
    assert (values[:, ~MISSING] == data.values[~MISSING]).all()
    assert np.isnan(values[:, ALWAYS]).all()
    assert (values[0] != values[1])[cells].all()
    expected = fit(data, **GIVEN).ensemble(3, seed=2, mask="none").values
    np.testing.assert_allclose(values[:, cells], expected[:, cells])
    assert not np.allclose(
        values[:, cells], fill(data, ensemble=3, **GIVEN).sst_ensemble.values[:, cells]
    )


def test_members_go_with_standard_errors_and_limits():
    data = sample()
    std = fill(data, std=True, **GIVEN).sst_std.values
    limit = float(np.nanmedian(std[MISSING & ~ALWAYS])) * 1.001
    found = fill(data, std=True, ensemble=80, max_std=limit, **GIVEN)
    assert list(found) == ["sst", "sst_std", "sst_ensemble"]
    cells = MISSING & ~ALWAYS & (std <= limit)
    assert np.array_equal(np.isnan(found.sst.values), MISSING & ~cells)
    assert np.isnan(found.sst_ensemble.values[:, MISSING & ~cells]).all()
    spread = found.sst_ensemble.values[:, cells].std(axis=0) / std[cells]
    assert spread.mean() == pytest.approx(1.0, abs=0.15)


def test_members_of_plain_arrays_and_of_one_coordinate_have_the_shape_of_the_data():
    plain = fill(GRID.values, ensemble=2, **{**GIVEN, "sigma": 5.0}).values_ensemble
    assert plain.dims == ("realization", "dim_0", "dim_1", "dim_2")
    single = fill(sample().expand_dims(height=[2.0], axis=1), ensemble=2, **GIVEN).sst_ensemble
    assert single.shape == (2, 10, 1, 6, 7)


def test_members_keep_within_bounds():
    found = fill(sample(), ensemble=20, bounds=(11.0, 19.0), **{**GIVEN, "ridge": 1.0})
    drawn = found.sst_ensemble.values[:, MISSING & ~ALWAYS]
    assert drawn.min() >= 11.0
    assert drawn.max() <= 19.0


def test_members_are_drawn_one_at_a_time():
    found = fill_grid(GRID, SETTINGS, ensemble=10**9)
    assert next(found.members).shape == FIELD.shape
    assert fill_grid(GRID, SETTINGS).members is None
    whole = fill_grid(as_grid(FIELD), ensemble=2)
    assert whole.model is None
    assert all((member == FIELD).all() for member in whole.members)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (sample(), {"ensemble": 0}, "Invalid number of members 0. It must be 1 or more"),
        (sample(), {"ensemble": 2, "seed": -1}, "Invalid seed -1"),
        (sample().rename(time="realization"), {"ensemble": 2}, "'sst' has a dimension 'realiz"),
        (sample().assign_coords(realization=3), {"ensemble": 2}, "'sst' has a dimension 'realiz"),
        (sample(), {"max_std": 0.0}, "Invalid largest standard error 0.0. It must be above 0"),
        (sample(), {"max_std": math.nan}, "Invalid largest standard error nan"),
    ],
)
def test_ensembles_and_limits_that_cannot_be_are_refused_before_a_fit(
    data, options, message, monkeypatch
):
    monkeypatch.setattr(module, "fit_grid", None)
    with pytest.raises(SettingError, match=message):
        fill(data, **options)


def test_members_along_a_very_long_dimension_are_refused_before_a_fit(monkeypatch):
    monkeypatch.setattr(module, "fit_grid", None)
    values = np.ones((2049, 2))
    values[7, 0] = np.nan
    with pytest.raises(SettingError, match="'dim_0' has 2049 coordinates"):
        fill(values, mask="none", ensemble=2)


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
    cells, _ = chosen(as_grid(values, {"x": axis}), Settings(), "none", max_gap)
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
        cells, left = chosen(grid, Settings(), open_cells, {"x": limit})
        assert cells.sum() == count
        assert left["left as masked"] == 1
        assert left.get("left in gaps along x", 0) == 1 - count


def test_gaps_are_filled_whole_or_not_at_all_and_counted():
    cells, left = chosen(GRID, SETTINGS, "always", {"time": 2})
    sea = MISSING & ~ALWAYS
    assert not cells[2:5, 2, 1].any()
    assert left["left as masked"] == ALWAYS.sum()
    assert left["left in gaps along time"] == (sea & ~cells).sum() > 0
    assert cells.any()


def test_time_may_be_a_duration():
    def cells(**limits):
        return chosen(GRID, SETTINGS, "none", limits)[0]

    for text, days in (("2D", 2), ("48H", 2), ("1W", 7), ("0.1M", 365.2425 / 120)):
        assert np.array_equal(cells(time=text), cells(time=days))
    assert not np.array_equal(cells(time="2D"), cells(time="1D"))


def test_a_gap_must_be_short_along_every_dimension_named():
    each = [chosen(GRID, SETTINGS, "none", {dim: 9})[0] for dim in ("lat", "lon")]
    both, left = chosen(GRID, SETTINGS, "none", {"lat": 9, "lon": 9})
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


# Distance from data -------------------------------------------------------------------------------


def near(grid, places, limit):
    """Cells at most so far from data, pair by pair: `places` has the positions of every axis."""
    missing = np.isnan(grid.values)
    found = np.zeros(missing.shape, bool)
    for cell in np.argwhere(missing):
        for datum in np.argwhere(~missing):
            steps = [abs(p[i] - p[j]) for p, i, j in zip(places, cell, datum, strict=True)]
            found[tuple(cell)] |= math.hypot(*steps) <= limit * (1 + 1e-12)
    return found


@pytest.mark.parametrize("within", [1, 1.5, "2", 2.4])
def test_a_distance_counts_cells_along_places(within):
    found = choose_cells(GRID, SETTINGS, within=within)
    places = np.arange(10) * 1e9, np.arange(6), np.arange(7)  # no datum of another day is near
    assert np.array_equal(found.cells, near(GRID, places, float(within)))
    (reason,) = found.left
    assert reason == f"left further than {within} cell{'s' * (within != 1)} from data"
    assert found.cells.sum() + found.left[reason] == MISSING.sum()


def test_distances_by_dimension_are_an_ellipse_in_their_units():
    found = choose_cells(GRID, SETTINGS, within={"lat": 10, "lon": "6"})
    places = np.arange(10) * 1e9, LAT / 10, LON / 6
    assert np.array_equal(found.cells, near(GRID, places, 1.0))
    assert list(found.left) == ["left further than lat 10, lon 6 from data"]
    found = choose_cells(GRID, SETTINGS, within={"time": "36H"})
    places = np.arange(10) / 1.5, np.arange(6) * 1e9, np.arange(7) * 1e9
    assert np.array_equal(found.cells, near(GRID, places, 1.0))


def test_distances_go_round_the_circle_of_longitude():
    values = np.where(np.arange(12) == 1, 5.0, np.nan) * np.ones((2, 1))
    axes = axis_of("lat", [0.0, 1.0]), axis_of("lon", np.arange(0.0, 360, 30), {"axis": "X"})
    grid = Grid(values, axes)
    cells = choose_cells(grid, Settings(), within=2).cells
    assert np.flatnonzero(cells[0]).tolist() == [0, 2, 3, 11]
    cells = choose_cells(grid, Settings(), within={"lon": 60}).cells
    assert np.flatnonzero(cells[0]).tolist() == [0, 2, 3, 11]
    part = axis_of("lon", np.arange(0.0, 360, 5), {"axis": "X"}).take([0, 1, 2, 70])  # 350 is last
    near_zero = Grid(np.array([1.0, np.nan, np.nan, np.nan]), (part,))
    assert choose_cells(near_zero, Settings(), within={"lon": 10}).cells.sum() == 3
    assert choose_cells(near_zero, Settings(), within={"lon": 9}).cells.sum() == 1
    assert choose_cells(near_zero, Settings(), within=2).cells.sum() == 3


def test_cells_are_counted_along_all_but_the_last_level_without_places():
    plain = as_grid(GRID.values)
    cells = choose_cells(plain, Settings(), within=1).cells
    places = np.arange(10), np.arange(6), np.arange(7) * 1e9
    assert np.array_equal(cells, near(plain, places, 1.0))
    series = as_grid(ONE_GAP[None, :].repeat(3, 0), {"site": list("abc"), "x": STEPS})
    assert np.array_equal(choose_cells(series, Settings(), within=1).cells, np.isnan(series.values))
    line = as_grid([1.0, *[np.nan] * 5, 2.0])
    assert np.flatnonzero(choose_cells(line, Settings(), within=2).cells).tolist() == [1, 2, 4, 5]


def test_with_a_distance_nothing_is_masked_unless_asked_for():
    coasts = choose_cells(GRID, SETTINGS, within={"lat": 8})
    assert (coasts.cells & ALWAYS).any()
    both = choose_cells(GRID, SETTINGS, "always", within={"lat": 8})
    assert np.array_equal(both.cells, coasts.cells & ~ALWAYS)
    assert list(both.left) == ["left as masked", "left further than lat 8 from data"]
    wet = choose_cells(GRID, SETTINGS, WET, {"time": 2}, {"lat": 8})
    assert len(wet.left) == 3
    assert wet.cells.sum() + sum(wet.left.values()) == MISSING.sum()
    filled = fill(sample(), within={"lat": 10, "lon": 6}, **GIVEN)
    expected = choose_cells(GRID, SETTINGS, within={"lat": 10, "lon": 6}).cells
    assert np.array_equal(np.isnan(filled), MISSING & ~expected)


@pytest.mark.parametrize(
    ("within", "message"),
    [
        (0, "distance '0' from data. Give a number of cells above 0"),
        (-1, "above 0"),
        (math.nan, "above 0"),
        (math.inf, "above 0"),
        ("2D", "distance '2D' from data"),
        ({"depth": 3}, "no dimension 'depth'"),
        ({"lat": "3D"}, "distance '3D' along 'lat': that is not a number"),
        ({"lat": 0}, "distance 0 along 'lat'. It must be above 0"),
        ({"lat": math.inf}, "along 'lat'. It must be finite"),
        ({}, "names no dimension"),
    ],
)
def test_distances_that_cannot_be_are_refused(within, message):
    with pytest.raises(SettingError, match=message):
        fill(sample(), within=within)


def test_labels_have_no_distance():
    grid = as_grid(np.where(MISSING[0], np.nan, 1.0), {"a": list("abcdef"), "b": list("abcdefg")})
    with pytest.raises(SettingError, match="'a' holds text labels"):
        fill(grid, within={"a": 1})
    with pytest.raises(SettingError, match="All dimensions hold text labels"):
        fill(grid, within=1)


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


@pytest.mark.parametrize(
    ("mask", "exact"), [("always", False), ("none", True)], ids=["land stays", "land is filled"]
)
def test_land_is_solved_for_exactly_only_if_it_is_filled(mask, exact, monkeypatch):
    x, t = np.linspace(0, 6, 12), np.arange(9.0)
    values = np.sin(x)[:, None] * np.cos(t / 3) + 0.1 * np.random.default_rng(0).random((12, 9))
    values[4:6] = np.nan  # land
    values[[1, 8, 9], [2, 5, 6]] = np.nan
    data = np.stack([values, values[::-1]], axis=1)
    watched = []
    real = training.complete

    def complete(*args, **options):
        watched.append(options["watched"])
        return real(*args, **options)

    monkeypatch.setattr(training, "complete", complete)
    grid = as_grid(data, {"x": x, "y": np.arange(2.0), "t": t})
    fill_grid(grid, mask=mask)
    assert (watched[0] is None) == exact
    if not exact:
        never = np.isnan(data).all(axis=2, keepdims=True)
        np.testing.assert_array_equal(watched[0], np.isnan(data) & ~never)
    fit_grid(grid)
    assert watched[1] is None  # a model may be asked anywhere
