"""A fit takes data in every form, and remembers what it made of it."""

import inspect
from dataclasses import fields

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import Level, fit, load_model
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.fit import fit_grid, retune
from dkrls_cli.model.settings import DEFAULTS, Settings

RNG = np.random.default_rng(5)
X, T = np.linspace(0, 4, 9), np.arange(11.0)
VALUES = np.sin(np.add.outer(T / 4, X)) + 3.0
GIVEN = {"kernel": "matern52", "sigma": {"x": 1.5, "time": 4.0}, "ridge": 1e-3}


def labelled(values=VALUES):
    return xr.DataArray(values, {"time": T, "x": X}, ("time", "x"), "tas", {"units": "K"})


def test_the_signature_has_every_setting_with_its_default():
    parameters = inspect.signature(fit).parameters
    for field in fields(Settings):
        assert parameters[field.name].default == getattr(DEFAULTS, field.name)
    assert list(parameters)[:3] == ["data", "coordinates", "levels"]


def test_a_fit_is_the_fit_of_the_grid_with_one_value_of_settings():
    settings = Settings(["time", "x"], **GIVEN, mean=1.0, compact=True, dtype="float32")
    whole = fit_grid(as_grid(labelled()), settings)
    by_word = fit(
        labelled(), levels=["time", "x"], **GIVEN, mean=1.0, compact=True, dtype="float32"
    )
    assert by_word.levels == whole.levels
    assert by_word.hierarchy == ("time", "x")
    assert by_word.storage == "float32"
    assert by_word.cascade.mean == 1.0
    np.testing.assert_array_equal(by_word.predict(x=1.3), whole.predict(x=1.3))


def test_folds_and_watch_are_used():
    watched = {}
    folded = fit(labelled(), folds=3, watch=lambda dim, choice: watched.update({dim: choice}))
    assert set(watched) == {"time", "x"}
    assert watched["x"].taken.kernel == folded.levels[0].kernel
    assert folded.levels != fit(labelled()).levels


def test_data_in_every_form_makes_the_same_model():
    models = [
        fit(labelled(), **GIVEN),
        fit(as_grid(labelled()), **GIVEN),
        fit(VALUES, {"time": T, "x": X}, **GIVEN),
        fit(VALUES.tolist(), {"time": T.tolist(), "x": X.tolist()}, **GIVEN),
    ]
    for model in models:
        assert model.hierarchy == ("x", "time")
        np.testing.assert_array_equal(model.predict(x=1.3), models[0].predict(x=1.3))
    assert [model.name for model in models] == ["tas", "tas", "values", "values"]
    assert models[0].attrs == models[1].attrs == {"units": "K"}


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_single_precision_makes_the_model_of_the_same_numbers_in_double(noise, tmp_path):
    """The same settings and the very same file; also read again it answers the same."""
    rng = np.random.default_rng(4)
    single = (280 + VALUES[..., None] * rng.random((*VALUES.shape, 9))).astype(np.float32)
    found, same = (fit(v, noise=noise, mean=280.0) for v in (single, single.astype(np.float64)))
    assert (found.cascade.core.dtype, same.cascade.core.dtype) == ("float32", "float64")
    assert found.storage == same.storage == "float64"
    files = [tmp_path / "found.npz", tmp_path / "same.npz"]
    found.save(files[0]), same.save(files[1])
    assert files[0].read_bytes() == files[1].read_bytes()
    again = load_model(files[0])
    assert (again.cascade.core.dtype, again.storage) == ("float32", "float64")
    asked = {"dim_0": [0.5, 3.0], "dim_2": [2.25]}
    answers, errors = same.predict(**asked), same.std(**asked)
    for model in (found, again):
        np.testing.assert_allclose(model.predict(**asked), answers, rtol=1e-12)
        np.testing.assert_allclose(model.std(**asked), errors, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_model_is_not_changed_by_who_has_the_data(dtype):
    values = np.random.default_rng(4).random((12, 9)).astype(dtype)
    grid, kept = labelled_as(values), values.copy()
    model = fit(grid, sigma=2.0, ridge=1e-3, kernel="gaussian")
    values[:] = 0
    np.testing.assert_array_equal(model.predict(), kept)
    assert values.flags.writeable


def labelled_as(values):
    return xr.DataArray(values, {"x": np.arange(12.0), "t": np.arange(9.0)}, ["x", "t"])


def test_the_origin_is_remembered_with_the_notes_of_the_fit():
    model = fit(labelled(), origin={"inputs": ["a.nc"]}, **GIVEN)
    assert model.origin == {"inputs": ["a.nc"], "notes": []}


def test_lost_slices_are_dropped_and_remembered_with_the_share_that_is_missing():
    values = VALUES.copy()
    values[3:5], values[:, 8] = np.nan, np.nan
    model = fit(labelled(values), **GIVEN)
    assert model.shape == (9, 8)
    assert model.joint_ridge is None  # what is left is complete
    assert model.origin["dropped_coordinates"] == [
        "time: 2 of 11 coordinates have no observed cell and are left out, 3.0, 4.0",
        "x: 1 of 9 coordinates have no observed cell and are left out, 4.0",
    ]
    assert "missing" not in model.origin
    values[0, 0] = np.nan
    gappy = fit(labelled(values), **GIVEN)
    assert gappy.joint_ridge == 1e-3
    assert gappy.origin["missing"]["share"] == pytest.approx(np.isnan(values).mean())


def test_missing_cells_are_refused_where_they_are_an_error():
    values = VALUES.copy()
    values[2, 3] = np.nan
    with pytest.raises(InputError, match=r"1 of 99 cells of 'tas' are missing.*time=2.0, x=1.5"):
        fit(labelled(values), missing="error")
    fit(labelled(), missing="error", **GIVEN)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((0, 3)), "hold no grid"),
        (3.0, "hold no grid"),
        (np.full((2, 3), np.nan), "All 6 values are missing"),
        ([1.0, np.inf, 2.0], "1 of 3 values are missing or infinite"),
        ([1.0, np.inf, np.nan], "1 of 2 values are missing or infinite"),
        ([[1.0, np.inf], [np.nan, 3.0]], "1 of 4 values are infinite"),
    ],
)
def test_values_that_make_no_grid_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        fit(values)


def test_retuning_chooses_the_last_level_again_and_nothing_else():
    given = {"sigma": {"time": 0.4, "x": 1.5}, "kernel": "gaussian", "ridge": 1e-6}
    data = labelled(VALUES + 0.1 * np.random.default_rng(0).standard_normal(VALUES.shape))
    model = fit(data, mean=50.0, **given)
    again = retune(model)
    assert again.levels[0] == model.levels[0]
    assert again.levels[1] != model.levels[1]
    levels = [model.levels[0], "time"]
    assert again.levels == fit(data, levels=levels, mean=50.0).levels
    assert again.levels != fit(data, levels=levels).levels
    np.testing.assert_array_equal(again.predict(), model.predict())
    assert again.joint_ridge is None


def test_retuning_keeps_the_kind_of_ridge():
    model = fit(labelled(), noise="joint", sigma={"x": 1.5}, kernel="gaussian")
    assert retune(model).joint_ridge is not None


def test_retuning_under_a_joint_ridge_keeps_to_the_observed_cells():
    values = VALUES.copy()
    values[RNG.random(VALUES.shape) < 0.2] = np.nan
    values[0, 0] = VALUES[0, 0]
    model = fit(labelled(values), **GIVEN)
    again = retune(model)
    assert again.joint_ridge is not None
    assert again.levels[0] == model.levels[0]
    levels, mean = [*model.levels[:1], "time"], model.cascade.mean
    gappy = fit(labelled(values), levels=levels, mean=mean, noise="joint")
    assert again.levels == gappy.levels
    assert again.joint_ridge == gappy.joint_ridge


def test_levels_given_whole_leave_nothing_to_choose():
    levels = [Level("x"), Level("time")]
    assert fit(labelled(), levels=levels).levels == tuple(levels)
    with pytest.raises(SettingError, match="given whole"):
        fit(labelled(), levels=levels, sigma=3.0)
