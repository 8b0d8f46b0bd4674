"""Grids like another one and points with labels are the same questions as plain coordinates."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from dkrls_cli import fit, validate
from dkrls_cli.errors import InputError, SettingError

LAT, LON = np.linspace(-60.0, 60.0, 9), np.arange(0.0, 360.0, 30.0)
TIME = np.datetime64("2020-01-01", "ns") + np.arange(6).astype("timedelta64[D]")
GIVEN = {"kernel": "matern52", "sigma": 20.0, "ridge": 1e-6}


@pytest.fixture(scope="module")
def model():
    values = np.random.default_rng(4).standard_normal((6, 9, 12))
    coords = {
        "time": TIME,
        "latitude": ("latitude", LAT, {"units": "degrees_north"}),
        "longitude": ("longitude", LON, {"units": "degrees_east"}),
    }
    return fit(xr.DataArray(values, coords, [*coords], "t", {"units": "K"}), **GIVEN)


def target(**other):
    north = {"units": "degrees_north"}
    return xr.Dataset(coords={"lat": ("lat", [-70.0, 5.0, 10.0], north), **other})


@pytest.mark.parametrize("ask", ["predict", "std"])
def test_a_grid_like_another_has_its_coordinates_by_meaning(model, ask):
    found = getattr(model, ask)(like=target(), time=TIME[0])
    assert found.dims == ("latitude", "longitude")
    assert found.latitude.values.tolist() == [-70.0, 5.0, 10.0]
    assert np.isnan(found[0].values).all()  # outside the data: missing, as regrid has it
    inside = getattr(model, ask)(latitude=[5.0, 10.0], time=TIME[0])
    xr.testing.assert_allclose(found[1:], inside, rtol=0, atol=1e-12)


def test_a_grid_in_single_precision_is_asked_at_the_coordinates_it_means():
    lat, noise = np.arange(0, 2, 0.1), np.random.default_rng(0).standard_normal(20)
    data = xr.DataArray(noise, {"lat": lat}, ("lat",))
    model = fit(data, kernel="matern32", sigma=0.3, ridge=0.1)
    single = data.assign_coords(lat=lat.astype(np.float32))
    found = model.predict(like=single)
    np.testing.assert_array_equal(found, noise)  # 1.9 is inside, and no cell is smoothed
    assert (found - single).size == 20  # the coordinates are those of the grid
    assert validate(single, model=model).metrics["rmse"] == 0.0
    assert (model.std(lat=single.lat.values) == 0.0).all()


def test_ensembles_go_like_another_grid(model):
    like, at = target().isel(lat=[1, 2]), {"latitude": [5.0, 10.0]}
    xr.testing.assert_equal(model.ensemble(2, like=like), model.ensemble(2, **at))
    pairs = zip(model.iter_ensemble(2, like=like), model.iter_ensemble(2, **at), strict=True)
    for found, known in pairs:
        xr.testing.assert_equal(found, known)


def test_what_is_outside_is_refused_if_that_is_asked_for(model):
    with pytest.raises(SettingError, match="outside the training range"):
        model.predict(like=target(), outside="refuse")
    with pytest.raises(SettingError, match="outside the training range"):
        model.predict(latitude=-70.0)


def test_coordinates_by_name_come_before_those_of_a_grid(model):
    found = model.predict(like=target(), lat=[1.0, 2.0])
    assert found.latitude.values.tolist() == [1.0, 2.0]


def test_cells_of_a_grid_are_those_of_its_bounds(model):
    lat = ("lat", [5.0], {"units": "degrees_north", "bounds": "edges"})
    like = xr.Dataset({"edges": (("lat", "nv"), [[0.0, 20.0]])}, {"lat": lat})
    found = model.predict(like=like, mean="latitude", time=TIME[0], longitude=30.0)
    line = model.predict(latitude=np.linspace(0, 20, 2001), time=TIME[0], longitude=30.0)
    weights = np.cos(np.deg2rad(line.latitude))
    assert float(found[0]) == pytest.approx(float(line.weighted(weights).mean()), abs=1e-4)
    # a coordinate by name has cells of its own: those of the grid are not for it
    with pytest.raises(SettingError, match="cells of 'latitude' are not known"):
        model.predict(like=like, latitude=[5.0], mean="latitude")


def test_a_grid_without_a_coordinate_of_the_model_is_refused(model):
    with pytest.raises(InputError, match="no coordinate of the dimensions time, latitude"):
        model.predict(like=xr.Dataset(coords={"depth": [1.0, 2.0]}))


# ------------------------------------------------------------------------------------- points

AT = {"latitude": [1.0, -3.0], "longitude": [350.0, -20.0], "time": TIME[[1, 2]]}


def test_answers_at_points_have_their_labels(model):
    found = model.predict_points(**AT)
    assert found.dims == ("point",)
    assert found.name == "t"
    assert found.attrs == {"units": "K"}
    assert found.longitude.values.tolist() == [350.0, -20.0]
    assert (found.time.values == AT["time"]).all()
    for place in range(2):
        at = {dim: values[place] for dim, values in AT.items()}
        assert float(found[place]) == pytest.approx(float(model.predict(**at)), abs=1e-12)
    spread = model.std_points(**AT)
    assert spread.name == "t_std"
    assert spread.dims == ("point",)
    members = model.ensemble_points(3, **AT)
    assert members.dims == ("realization", "point")


def point_set():
    return xr.Dataset(
        {"longitude": ("site", AT["longitude"])},
        {
            "lat": ("site", AT["latitude"], {"units": "degrees_north"}),
            "time": ("site", AT["time"]),
            "site": ["a", "b"],
            "height": 2.0,
            "note": ("site", np.array([None, "x"], object)),
        },
    )


def labelled(kind):
    if kind == "dataset":
        return point_set()
    if kind == "array":
        sites = point_set().set_coords("longitude")
        return xr.DataArray([1.0, 2.0], sites.coords, ("site",))
    table = {"lat": AT["latitude"], "Longitude": AT["longitude"], "time": AT["time"], "id": "ab"}
    return pd.DataFrame({name: list(column) for name, column in table.items()})


@pytest.mark.parametrize("kind", ["dataset", "array", "table"])
def test_points_may_be_labelled_data(model, kind):
    found = model.predict_points(labelled(kind))
    np.testing.assert_array_equal(found, model.predict_points(**AT))
    assert found.dims == (("point",) if kind == "table" else ("site",))
    if kind != "table":
        assert found.site.values.tolist() == ["a", "b"]
        assert float(found.height) == 2.0
    assert {"latitude", "longitude", "time"} <= set(found.coords)


def test_one_coordinate_may_be_that_of_all_points(model):
    some = point_set().drop_vars("time")
    found = model.predict_points(some, time=TIME[3])
    known = model.predict_points(**{**AT, "time": TIME[[3, 3]]})
    np.testing.assert_array_equal(found, known)
    fixed = model.predict_points(some.assign_coords(time=TIME[3]))
    np.testing.assert_array_equal(fixed, known)


def test_plain_numbers_asked_of_plain_numbers_stay_plain():
    x = np.linspace(0, 3, 20)
    plain = fit(np.sin(x), {"x": x})
    assert not plain.is_labelled
    assert type(plain.predict_points(x=[0.5])) is np.ndarray
    assert type(plain.std_points(x=[0.5])) is np.ndarray
    assert type(plain.predict_points({"x": [0.5]})) is np.ndarray
    assert plain.predict_points(pd.DataFrame({"x": [0.5]})).dims == ("point",)


@pytest.mark.parametrize(
    "data",
    [
        xr.DataArray(np.arange(5.0) ** 2, dims="x", name="v"),
        xr.DataArray(np.arange(5.0) ** 2, {"x": list("abcde")}, ["x"]),
        xr.DataArray(np.arange(5.0) ** 2, {"x": ("x", np.arange(5.0), {"units": "m"})}, ["x"]),
        xr.DataArray(np.arange(5.0) ** 2, {"x": TIME[:5]}, ["x"]),
        xr.DataArray(np.arange(5.0) ** 2, dims="x", attrs={"units": "K"}),
    ],
    ids=["name", "texts", "units", "dates", "attributes"],
)
def test_any_label_makes_a_model_labelled(data):
    assert fit(data, kernel="gaussian", sigma=2.0, ridge=1e-6).is_labelled


@pytest.mark.parametrize(
    ("points", "at", "error", "words"),
    [
        (xr.Dataset(coords={"x": [1.0, 2.0]}), {}, InputError, "no coordinate of the dimensions"),
        (pd.DataFrame({"lat": [1.0]}), {"lat": 3.0}, SettingError, "'latitude' were given twice"),
        (xr.Dataset(coords={"lat": [1.0], "lon": [2.0]}), {}, InputError, "along lat and lon"),
        (pd.DataFrame({"lat": [1.0]}), {"lon": 3.0}, SettingError, "'time' as well"),
    ],
)
def test_points_that_make_no_sense_are_refused(model, points, at, error, words):
    with pytest.raises(error, match=words):
        model.predict_points(points, **at)
