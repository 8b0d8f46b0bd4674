"""Regridding is a fit and its answers, put together by hand here."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, regrid
from dkrls_cli.errors import InputError, SettingError

LAT, LON = np.linspace(-80.0, 80.0, 17), np.arange(0.0, 360.0, 15.0)
GIVEN = {"kernel": "matern52", "sigma": 40.0, "ridge": 1e-6}


def wave(lat, lon):
    y, x = np.deg2rad(np.meshgrid(lat, lon, indexing="ij"))
    return 2.0 + np.cos(y) ** 2 * np.cos(2 * x)


def source():
    coords = {
        "latitude": ("latitude", LAT, {"units": "degrees_north"}),
        "longitude": ("longitude", LON, {"units": "degrees_east"}),
    }
    return xr.DataArray(wave(LAT, LON), coords, ("latitude", "longitude"), "t", {"units": "K"})


def target():
    coords = {
        "lat": ("lat", np.linspace(-75.0, 75.0, 31), {"units": "degrees_north"}),
        "lon": ("lon", np.arange(-180.0, 180.0, 10.0), {"units": "degrees_east"}),
        "depth": 5.0,
    }
    return xr.Dataset(coords=coords)


def test_the_target_is_found_by_what_its_coordinates_are():
    found = regrid(source(), target(), **GIVEN)
    at = {"latitude": target().lat.values, "longitude": target().lon.values}
    xr.testing.assert_equal(found, fit(source(), **GIVEN).predict(**at))
    assert found.attrs == {"units": "K"}
    truth = wave(at["latitude"], at["longitude"])
    assert np.abs(found.values - truth).max() < 1e-2
    template = xr.DataArray(truth, target().drop_vars("depth").coords, ("lat", "lon"))
    xr.testing.assert_equal(regrid(source(), template, **GIVEN), found)


def test_coordinates_may_be_given_by_name_and_the_others_stay():
    found = regrid(source(), {"latitude": [0.0, 1.0]}, **GIVEN)
    assert found.shape == (2, LON.size)
    assert found.longitude.values.tolist() == LON.tolist()


def test_errors_come_beside_the_answers():
    both = regrid(source(), target(), std=True, **GIVEN)
    assert list(both) == ["t", "t_std"]
    assert both.t.attrs["ancillary_variables"] == "t_std"
    at = {"latitude": target().lat.values, "longitude": target().lon.values}
    np.testing.assert_array_equal(both.t_std, fit(source(), **GIVEN).std(**at))


def test_what_lies_outside_is_missing_unless_asked_for():
    far = {"latitude": [0.0, 85.0]}
    assert np.isnan(regrid(source(), far, **GIVEN).values).all(axis=1).tolist() == [False, True]
    held = regrid(source(), far, outside="nearest", **GIVEN)
    edge = regrid(source(), {"latitude": [80.0]}, **GIVEN)
    np.testing.assert_allclose(held.values[1], edge.values[0])
    with pytest.raises(SettingError, match="outside the training range"):
        regrid(source(), far, outside="refuse", **GIVEN)


def test_land_stays_land_unless_asked_for():
    masked = source().copy()
    masked[6:11, 4:10] = np.nan
    near = {"latitude": [1.0], "longitude": [100.0]}
    assert np.isnan(regrid(masked, near, **GIVEN)).all()
    assert np.isfinite(regrid(masked, near, mask="none", **GIVEN)).all()


def test_a_target_without_a_common_coordinate_is_refused():
    other = xr.Dataset(coords={"x": [1.0, 2.0]})
    with pytest.raises(InputError, match="no coordinate of the dimensions latitude, longitude"):
        regrid(source(), other)
