"""Missing cells are filled with what a model answers there, and only those that may be."""

import math

import numpy as np
import pytest
import xarray as xr
from cloudy_seas import (
    ALWAYS,
    DAYS,
    FIELD,
    GIVEN,
    GRID,
    LAT,
    LON,
    MISSING,
    SETTINGS,
    sample,
)

from dkrls_cli import fill, fit
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model import fill as module
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training import joint

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


@pytest.mark.slow
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


def test_an_outage_of_whole_slices_is_filled_by_settings_that_blocks_tell():
    t = np.arange(120.0)
    noise = np.random.default_rng(4).standard_normal((120, 6))
    truth = 3 * np.sin(t / 2)[:, None] + 0.3 * np.cumsum(noise, 0)
    data = truth.copy()
    data[50:66] = np.nan
    error, told = {}, {}
    for outages in (True, False):
        grid = as_grid(data, {"t": t, "run": np.arange(6.0)})
        model = fit_grid(grid, outages=outages)
        asked = [axis_of("t", t[50:66]), axis_of("run", np.arange(6.0))]
        error[outages] = np.sqrt(np.mean((model.values_on(asked) - truth[50:66]) ** 2))
        told[outages] = np.sqrt(np.mean(model.std_on(asked) ** 2))
    filled = fill(data, {"t": t, "run": np.arange(6.0)}, levels=["run", "t"])
    assert np.isfinite(filled.values).all()
    assert error[True] < 0.7 * error[False]
    assert 0.6 < told[True] / error[True] < 1.7


def test_text_labels_are_asked_for_as_texts():
    values = np.where(MISSING[:, 0], np.nan, FIELD[:, 0])
    given = {"sigma": {"time": 4, "site": 2}, "kernel": "matern52", "ridge": 1e-3}
    coordinates = {"time": np.arange(10.0), "site": list("abcdefg")}
    found = fill(values, coordinates, **given)
    assert not np.isnan(found).any()
    np.testing.assert_array_equal(found, fit(values, coordinates, **given).predict())


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
    real = joint.complete

    def complete(*args, **options):
        watched.append(options["watched"])
        return real(*args, **options)

    monkeypatch.setattr(joint, "complete", complete)
    grid = as_grid(data, {"x": x, "y": np.arange(2.0), "t": t})
    fill_grid(grid, mask=mask)
    assert (watched[0] is None) == exact
    if not exact:
        never = np.isnan(data).all(axis=2, keepdims=True)
        np.testing.assert_array_equal(watched[0], np.isnan(data) & ~never)
    fit_grid(grid)
    assert watched[1] is None  # a model may be asked anywhere
