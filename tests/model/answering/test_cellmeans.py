"""Tests of dkrls_cli.model.answering.cellmeans: models of data that are means over cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model, regrid
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.functionals import deviations
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.derived import with_bounds
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.style import Style
from dkrls_cli.model.answering.cellmeans import cell_mean_dims, model_cells, told_means

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


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_means_are_kept_along_dimensions_at_the_coordinates_of_the_data(noise):
    data = array()
    model = fit(data, cell_means=True, **GIVEN, noise=noise)
    lon = np.arange(0.0, 360, 45)
    exact = data.mean("lon").transpose("lat", "time")
    for at in ({"lat": LAT, "lon": lon}, {"lon": lon}):
        found = model.predict(**at, mean=True)
        assert found.attrs["cell_methods"] == "lat: lon: mean"
        assert np.allclose(found.mean("lon"), exact, rtol=0, atol=1e-10)
    own = model.predict(mean=True)
    assert np.allclose(own, data, rtol=0, atol=1e-10)
    assert model.std(mean=True).max() < 1e-10
    slopes = model.predict(lon=lon, mean=True, derivative="lat")
    assert slopes.attrs["cell_methods"] == "lon: mean"


def test_dimensions_that_are_told_or_named():
    axes = [axis_of(n, [0.0, 1.0]) for n in ("time", "lat", "lon", "z")] + [
        axis_of("s", ["a", "b"])
    ]
    assert told_means(axes, {"cell_methods": "time: lat: mean (interval: 1 day) z: point"}) == (
        "time",
        "lat",
    )
    assert told_means(axes, {}) == ()
    assert told_means(axes, {"cell_methods": "area: sum time: mean"}, "sum") == ("lat", "lon")
    assert told_means(axes, {"cell_methods": "area: sum time: mean"}) == ("time",)
    assert cell_mean_dims(False, axes, {}) == ()
    assert cell_mean_dims(True, axes, {}) == ("lat", "lon")
    assert cell_mean_dims(True, axes[3:], {}) == ("z",)
    assert cell_mean_dims("z, lat,z", axes, {}) == ("z", "lat")
    assert cell_mean_dims(["time"], axes, {}) == ("time",)
    with pytest.raises(SettingError, match="'s' has text labels"):
        cell_mean_dims("s", axes, {})
    with pytest.raises(SettingError, match="no dimension with cells"):
        cell_mean_dims(True, axes[4:], {})


def with_gaps() -> xr.DataArray:
    data = array(cell_methods="area: mean")
    gaps = np.random.default_rng(1).random(data.shape) < 0.25
    gaps[2, 3] = True  # land
    gaps[4, 5] = gaps[0, 0] = False
    return data.where(~gaps)


KINDS = {
    "joint": (array(), {"noise": "joint"}),
    "gaps": (with_gaps(), {}),
    "observation errors": (array(), {"obs_error": 0.2}),
    "both": (with_gaps(), {"obs_error": 0.2}),
}


@pytest.mark.parametrize(("data", "more"), KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_model_keeps_means(data, more, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(deviations, "DRAWS", 8)
    monkeypatch.setattr(deviations, "_MEMBER_DRAWS", 4)
    model = fit(data, cell_means=True, **GIVEN, **more)
    model.save(tmp_path / "m.npz")
    model = load_model(tmp_path / "m.npz")
    assert model.cell_means == ("lat", "lon")
    means = model.predict(mean=["lat", "lon"], mask="none")
    completed = model.values_on(model.axes)  # observed cells, and the means over missing ones
    assert np.allclose(means, completed, rtol=0, atol=1e-12)
    seen = ~np.isnan(data.values)
    assert np.array_equal(completed[seen], data.values[seen]) == ("obs_error" not in more)
    land = seen.any(axis=2, keepdims=True) | np.zeros(seen.shape, bool)
    assert np.array_equal(np.isfinite(model.predict(mean=["lat", "lon"])), land)
    lat, lon = np.arange(-80.0, 81, 20), np.arange(0.0, 360, 45)
    found = model.predict(lat=lat, lon=lon, mean=True, mask="none")
    sums = np.einsum("yxt,y->t", found, areas(lat, 10)) / 8
    own = np.einsum("yxt,y->t", completed, areas(LAT, 15)) / 12
    assert np.allclose(sums, own, rtol=0, atol=1e-10)
    std = model.std(mean=["lat", "lon"], mask="none").values
    assert (std[~seen] > 0.1).all()
    assert (std[seen] > 0.05).all() if "obs_error" in more else np.all(std[seen] == 0)
    values = model.predict(mask="none")
    assert "cell_methods" not in values.attrs
    at = model.predict_points(lat=LAT[:2], lon=LON[:2], time=[0.0, 1.0])
    assert np.allclose(at, [values[0, 0, 0], values[1, 1, 1]], rtol=0, atol=1e-10)
    assert (model.std(mask="none") > 0).all()
    region = model.mean_over({"lat": (-90, 90), "lon": (0, 360)}, mask="none")
    assert np.allclose(region.values.ravel(), own / 2, rtol=0, atol=1e-10)
    slopes = model.predict(derivative="lat", lat=[0.0, 1e-3], mask="none").values
    steps = np.diff(model.predict(lat=[0.0, 1e-3], smooth=True, mask="none").values, axis=0)
    assert np.allclose(slopes[0], steps[0] / 1e-3, rtol=0, atol=1e-5)
    members = model.ensemble(members=3, mean=["lat", "lon"], lat=[-60.0, 60.0], mask="none")
    assert np.isfinite(members).all()


@pytest.mark.parametrize(("data", "more"), KINDS.values(), ids=KINDS.keys())
def test_an_updated_model_of_means_is_that_of_all_slices(data, more):
    whole = fit(data, cell_means=True, mean=0.0, **GIVEN, **more)
    first = fit(data[..., :3], cell_means=True, mean=0.0, **GIVEN, **more)
    grown = first.update(data[..., 3:])
    assert grown.cell_means == ("lat", "lon")
    close = 0.05 if "obs_error" in more else 1e-5  # the variance of the field stays as it was
    how = {"lat": [-50.0, 50.0], "lon": [100.0, 220.0], "mean": True}
    assert np.allclose(grown.predict(**how), whole.predict(**how), rtol=0, atol=close)
    at = {"lat": [-50.0, 51.0], "lon": [100.0, 221.0]}
    assert np.allclose(grown.predict(**at), whole.predict(**at), rtol=0, atol=close)


def test_fields_are_found_behind_clouds_far_better_than_by_taking_means_for_values():
    def field(lat, lon, time):
        waves = [np.cos(np.radians(n * lat) - 0.3 * n * time) for n in (2, 5)]
        return waves[0] * np.sin(np.radians(2 * lon)) + waves[1] * np.cos(np.radians(lon) + time)

    edges, time = [np.linspace(-60, 60, 17), np.linspace(0, 360, 33)], np.arange(6.0)
    places = [np.add.outer(e[:-1], np.diff(e)[0] * (np.arange(20) + 0.5) / 20) for e in edges]
    fine = field(places[0].ravel()[:, None, None], places[1].ravel()[None, :, None], time)
    cosines = np.cos(np.radians(places[0]))
    means = np.einsum("ayobt,ay->aot", fine.reshape(16, 20, 32, 20, 6), cosines) / 20
    means /= cosines.sum(axis=1)[:, None, None]
    clouds = np.random.default_rng(0).random(means.shape) < 0.3
    axes = {"lat": places[0].mean(axis=1), "lon": places[1].mean(axis=1), "time": time}
    data = xr.DataArray(np.where(clouds, np.nan, means), axes, ("lat", "lon", "time"))
    data.lat.attrs["units"], data.lon.attrs["units"] = "degrees_north", "degrees_east"
    lat, lon = np.linspace(-50.0, 50.0, 30), np.linspace(0.0, 350.0, 40)
    exact = field(lat[:, None, None], lon[None, :, None], time)
    how = {"kernel": "gaussian", "sigma": {"lat": 20, "lon": 40, "time": 2}, "ridge": 1e-8}
    models = [fit(data, cell_means=yes, group="none", **how) for yes in (True, False)]
    found, plain = (np.abs(model.predict(lat=lat, lon=lon) - exact).max() for model in models)
    assert found < 4e-3
    assert plain > 6 * found


def test_cells_reach_to_coordinates_without_data():
    data = with_gaps()
    data[2] = np.nan  # no data at a latitude: it is left out of the model
    model = fit(data, cell_means=True, **GIVEN)
    assert -15.0 not in model.axis_of("lat").numbers
    cells = model_cells(model, ())[0]
    assert cells.low.tolist() == [-90, -60, 0, 30, 60]
    assert cells.high.tolist() == [-60, -30, 30, 60, 90]
    means = model.predict(mean=["lat", "lon"], lat=model.axis_of("lat").numbers, mask="none")
    assert np.allclose(means, model.values_on(model.axes), rtol=0, atol=1e-12)


def test_means_over_cells_end_at_the_poles():
    lat, lon = np.arange(-75.0, 76, 30), np.arange(0.0, 360, 45)
    values = np.cos(np.radians(lat))[:, None] * np.cos(np.radians(lon))
    axes, how = {"lat": lat, "lon": lon}, {"kernel": "matern52", "sigma": 40.0, "ridge": 1e-6}
    assert fit(values, axes, **how, poles="scalar").poles is not None
    assert fit(values, axes, **how, cell_means=True).poles is None
    with pytest.raises(SettingError, match="means over cells end at the poles"):
        fit(values, axes, **how, cell_means=True, poles="scalar")


def monthly(first: int, last: int) -> Grid:
    """Return means over months of a wave, with the bounds of the months."""
    ends = np.append(0.0, np.cumsum(np.tile([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], 2)))
    values = -58 * np.diff(np.cos(ends / 58)) / np.diff(ends)
    time = axis_of("time", ((ends[1:] + ends[:-1]) / 2)[first:last])
    months = np.stack([ends[:-1], ends[1:]], axis=1)[first:last]
    axes = (time, axis_of("x", [0.0, 1.0]))
    style = with_bounds(Style(), time, months)
    return Grid(np.multiply.outer(values[first:last], [1.0, 2.0]), axes, "v", style=style)


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_new_months_keep_their_cells(noise):
    how = {"kernel": "gaussian", "sigma": {"time": 60.0, "x": 2.0}, "ridge": 1e-8, "noise": noise}
    model = fit(monthly(0, 20), cell_means="time", levels=["x", "time"], **how)
    grown = model.update(monthly(20, 24))
    cells = model_cells(grown, ())[0]
    assert np.array_equal(cells.high - cells.low, np.diff(cells.low, append=cells.high[-1]))
    assert set(cells.high - cells.low) == {28.0, 30.0, 31.0}
    assert np.allclose(grown.predict(mean="time"), monthly(0, 24).values, rtol=0, atol=1e-12)
    with pytest.raises(SettingError, match="Keep the last slices instead"):
        model.update(monthly(20, 24), max_rank=10)
