"""Fits of grids with missing cells that are completed first, against fits of the complete grid."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fill, fit, load_model
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.completed import complete_grid, is_fitted_complete

DEPTH = np.geomspace(5.0, 500.0, 14)
X, T = np.linspace(0.0, 6.0, 12), np.arange(15.0)


def truth(depth, x=X, t=T):
    field = np.exp(-depth / 150)[:, None, None] * np.cos(x)[:, None] + np.sin(t / 3)
    return xr.DataArray(field, {"depth": depth, "x": x, "t": t}, ("depth", "x", "t"))


def gappy(share=0.05):
    data = truth(DEPTH)
    return data.where(np.random.default_rng(1).random(data.shape) > share)


def rmse(model, depth):
    return float(np.sqrt(((model.predict(depth=depth) - truth(depth)) ** 2).mean()))


@pytest.mark.slow
def test_answers_between_coordinates_are_as_good_as_those_without_gaps():
    between = np.sqrt(DEPTH[1:] * DEPTH[:-1])
    model, complete = fit(gappy()), fit(truth(DEPTH))
    assert model.joint_ridge is None
    assert rmse(model, between) < 1.5 * rmse(complete, between) + 1e-6
    assert rmse(fit(gappy(), noise="joint"), between) > 10 * rmse(model, between)


def test_answers_in_the_gaps_are_those_of_a_fill_and_have_error_bars():
    data = gappy()
    model, gaps = fit(data), data.isnull().values
    np.testing.assert_allclose(model.predict(), fill(data, mask="none"), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.unobserved, gaps)
    std = model.std().values
    assert (std[gaps] > 0).all()
    assert not std[~gaps].any()


def test_the_model_tells_what_was_missing_after_it_was_saved_as_well(tmp_path):
    model = fit(gappy())
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.origin["missing"]["share"] == pytest.approx(float(gappy().isnull().mean()))
    at = {"depth": [30.0, 77.0]}
    np.testing.assert_array_equal(again.predict(**at), model.predict(**at))
    np.testing.assert_allclose(again.std(), model.std(), rtol=1e-6)


@pytest.mark.slow
def test_what_is_given_holds_for_the_complete_grid():
    model = fit(gappy(), kernel={"x": "cubic"}, sigma={"t": 2.5}, folds=4)
    assert model.level_of("x").kernel.family == "cubic"
    assert model.level_of("t").kernel.sigma == 2.5
    grouped = fit(gappy(), group=("x", "t"))
    assert grouped.joint_ridge is None
    assert grouped.origin["missing"]["group"] == ["x", "t"]


def test_a_hole_across_a_pole_is_solved_for_as_any_other():
    lat, lon = np.arange(-90.0, 91, 15), np.arange(0.0, 360, 30)
    y, x = np.radians(lat)[:, None], np.radians(lon)
    field = xr.DataArray(
        np.sin(y) + np.cos(y) * np.cos(x),
        {
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
        name="t",
    )
    data = field.where((field.lat < 70) & ((field.lat != 0) | (field.lon > 80)))
    model = fit(data, group=("lat", "lon"))
    assert model.joint_ridge is None
    np.testing.assert_array_equal(model.axes[0].plain, lat)
    assert model.unobserved[-2:].all()
    assert "dropped_coordinates" not in model.origin
    missed = (model.predict(mask="none") - field)[-2:]
    assert float(np.abs(missed).max()) < 0.3
    alone = fit(data, group="none")
    assert alone.origin["dropped_coordinates"] != []
    assert alone.axes[0].size == lat.size - 2


def test_warnings_of_the_solve_are_kept(monkeypatch):
    done = complete_grid(as_grid(gappy()), Settings())
    monkeypatch.setattr(
        "dkrls_cli.model.training.prepared.complete_grid",
        lambda *given: replace(done, notes=["a warning"]),
    )
    assert "a warning" in fit(gappy()).origin["notes"]


def test_a_warning_of_both_fits_is_given_once():
    data = gappy()
    data[3, 4, 5] = -9999.0
    notes = [note for note in fit(data).origin["notes"] if "-9999" in note]
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"noise": "level"}, True),
        ({"noise": "level", "ridge": 0.1}, True),
        ({"ridge": {"x": 0.1}}, True),
        ({"ridge": 0.1}, False),
        ({"ridge": "1e-3"}, False),
        ({"noise": "joint"}, False),
    ],
)
def test_one_ridge_is_that_of_the_whole_grid(settings, expected):
    asked = Settings(**settings)
    assert is_fitted_complete(as_grid(gappy()), asked) == expected
    assert not is_fitted_complete(as_grid(truth(DEPTH)), asked)
    errors = as_grid(gappy())
    object.__setattr__(errors, "errors", np.ones(errors.values.shape))
    assert not is_fitted_complete(errors, asked)


@pytest.mark.parametrize("lost", [False, True])
def test_an_update_keeps_what_the_fit_has_solved_for(lost):
    data = gappy()
    model = fit(data.isel(t=slice(0, 12)))
    new = truth(DEPTH).isel(t=slice(12, None)).copy()
    new[5, 6, 1] = np.nan if lost else new[5, 6, 1]
    grown = model.update(new)
    found = grown.predict()
    np.testing.assert_allclose(found[..., :12], model.predict(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[..., 12:], truth(DEPTH)[..., 12:], atol=0.05)
    assert grown.unobserved.sum() == model.unobserved.sum() + lost


def test_a_fill_has_one_ridge():
    with pytest.raises(SettingError, match="under one joint ridge only"):
        fill_grid(as_grid(gappy()), Settings(noise="level"))
    assert fill_grid(as_grid(gappy())).model.joint_ridge > 0
