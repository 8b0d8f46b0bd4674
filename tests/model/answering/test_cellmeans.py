"""Tests of dkrls_cli.model.answering.cellmeans: models of data that are means over cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model, regrid, validate
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.answering.cellmeans import cell_mean_dims, told_means

LAT, LON = np.arange(-75.0, 76, 30), np.arange(15.0, 360, 30)
GIVEN = {"kernel": "gaussian", "sigma": {"lat": 50.0, "lon": 60.0, "time": 3.0}, "ridge": 1e-4}


def array(**attrs) -> xr.DataArray:
    values = np.random.default_rng(0).standard_normal((6, 12, 4))
    coords = {
        "lat": ("lat", LAT, {"units": "degrees_north"}),
        "lon": ("lon", LON, {"units": "degrees_east"}),
        "time": np.arange(4.0),
    }
    return xr.DataArray(values, coords, ("lat", "lon", "time"), "t", attrs)


def areas(lat, half):
    return np.sin(np.radians(lat + half)) - np.sin(np.radians(lat - half))


def test_a_saved_model_keeps_means_and_their_sums(tmp_path: Path):
    data = array(cell_methods="area: mean time: maximum")
    model = fit(data, cell_means=True, **GIVEN)
    assert model.cell_means == ("lat", "lon")
    model.save(tmp_path / "m.npz")
    loaded = load_model(tmp_path / "m.npz")
    assert loaded.cell_means == ("lat", "lon")
    own = loaded.predict(mean=["lat", "lon"])
    assert np.allclose(own, data, rtol=0, atol=1e-12)
    assert own.attrs["cell_methods"] == "area: mean time: maximum lat: lon: mean"
    assert loaded.std(mean=["lat", "lon"]).max() == 0
    lat, lon = np.arange(-80.0, 81, 20), np.arange(0.0, 360, 45)
    found = loaded.predict(lat=lat, lon=lon, mean=True)
    sums = np.einsum("yxt,y->t", found, areas(lat, 10)) / 8
    assert np.allclose(sums, np.einsum("yxt,y->t", data, areas(LAT, 15)) / 12, rtol=0, atol=1e-10)
    values = loaded.predict()  # no longer means
    assert "cell_methods" not in values.attrs
    assert not np.allclose(values, data, atol=1e-3)
    at = loaded.predict_points(lat=LAT[:2], lon=LON[:2], time=[0.0, 1.0])
    assert np.allclose(at, [values[0, 0, 0], values[1, 1, 1]], rtol=0, atol=1e-10)


def test_regrid_of_means():
    found = regrid(array(), {"lat": [-45.0, 45.0]}, mean=True, cell_means="lat", **GIVEN)
    thirds = array().values.reshape(2, 3, 12, 4)
    exact = np.einsum("ayxt,ay->axt", thirds, areas(LAT, 15).reshape(2, 3))
    assert np.allclose(found, exact, rtol=0, atol=1e-12)


def test_dimensions_that_are_told_or_named():
    axes = [axis_of(n, [0.0, 1.0]) for n in ("time", "lat", "lon", "z")] + [
        axis_of("s", ["a", "b"])
    ]
    assert told_means(axes, {"cell_methods": "time: lat: mean (interval: 1 day) z: point"}) == (
        "time",
        "lat",
    )
    assert told_means(axes, {}) == ()
    assert cell_mean_dims(False, axes, {}) == ()
    assert cell_mean_dims(True, axes, {}) == ("lat", "lon")
    assert cell_mean_dims(True, axes[3:], {}) == ("z",)
    assert cell_mean_dims("z, lat,z", axes, {}) == ("z", "lat")
    assert cell_mean_dims(["time"], axes, {}) == ("time",)
    with pytest.raises(SettingError, match="'s' has text labels"):
        cell_mean_dims("s", axes, {})
    with pytest.raises(SettingError, match="no dimension with cells"):
        cell_mean_dims(True, axes[4:], {})


def test_what_does_not_go_with_means_over_cells():
    gaps = array()
    gaps[0, 0, 0] = np.nan
    for data, more in ((gaps, {}), (array(), {"noise": "joint"}), (array(), {"obs_error": 0.1})):
        with pytest.raises(SettingError, match="need a complete grid"):
            fit(data, cell_means=True, **more)
    with pytest.raises(SettingError, match="Validate without"):
        validate(array(), holdout=0.2, cell_means=True)


def test_means_over_cells_end_at_the_poles():
    lat, lon = np.arange(-75.0, 76, 30), np.arange(0.0, 360, 45)
    values = np.cos(np.radians(lat))[:, None] * np.cos(np.radians(lon))
    axes, how = {"lat": lat, "lon": lon}, {"kernel": "matern52", "sigma": 40.0, "ridge": 1e-6}
    assert fit(values, axes, **how, poles="scalar").poles is not None
    assert fit(values, axes, **how, cell_means=True).poles is None
    with pytest.raises(SettingError, match="means over cells end at the poles"):
        fit(values, axes, **how, cell_means=True, poles="scalar")
