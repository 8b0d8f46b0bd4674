"""A model file opens as a dataset: the answers of the model, computed where they are asked for."""

import pickle
import tomllib
from dataclasses import replace
from importlib import import_module, metadata
from pathlib import Path

import cftime
import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model, save_models
from dkrls_cli.errors import ModelFileError
from dkrls_cli.interfaces import backend
from dkrls_cli.interfaces.backend import ModelBackend

GIVEN = {"kernel": "gaussian", "sigma": 2.0, "ridge": 1e-6}


def source(name="t", times=6):
    dates = [cftime.datetime(2000, 2, d + 25, calendar="360_day") for d in range(times)]
    coords = {
        "time": ("time", dates, {"long_name": "day"}),
        "lat": ("lat", np.linspace(60, -60, 5), {"units": "degrees_north"}),
        "site": ["a", "b", "c", "d"],
    }
    values = np.random.default_rng(len(name)).standard_normal((times, 5, 4))
    values[2, 0, 1] = np.nan
    return xr.DataArray(values, coords, [*coords], name, {"units": "K"})


@pytest.fixture
def path(tmp_path):
    fit(source(), **GIVEN).save(tmp_path / "m.npz")
    return tmp_path / "m.npz"


def test_a_dataset_has_answers_coordinates_and_attributes(path):
    dataset = xr.open_dataset(path, engine=ModelBackend)
    xr.testing.assert_identical(dataset.t.load(), load_model(path).predict())
    assert dataset.t.attrs == {"units": "K"}
    assert dataset.time.attrs == {"long_name": "day"}
    assert dataset.time.encoding["calendar"] == "360_day"


def test_land_stays_land(tmp_path):
    axes = {"time": np.arange(12.0), "lat": np.linspace(0, 50, 6), "lon": np.linspace(0, 60, 7)}
    values = np.random.default_rng(0).standard_normal((12, 6, 7))
    values[:, 2:4, 3:5] = np.nan
    model = fit(xr.DataArray(values, axes, [*axes], "t"), kernel="gaussian", sigma=9, ridge=1e-3)
    model.save(tmp_path / "m.npz")
    found = xr.open_dataset(tmp_path / "m.npz", engine=ModelBackend).t
    np.testing.assert_array_equal(np.isnan(found[5].values), np.isnan(values[5]))
    assert np.isnan(found[3, 2, 4].values)


def test_standard_errors_come_if_they_are_asked_for(path):
    dataset = xr.open_dataset(path, engine=ModelBackend, std=True)
    assert list(dataset) == ["t", "t_std"]
    xr.testing.assert_identical(dataset.t_std.load(), load_model(path).std())


INDICES = [
    {"time": 2, "lat": 3, "site": 0},
    {"time": slice(1, 5, 2)},
    {"time": slice(None, None, -1), "site": [3, 0, 0]},
    {"lat": [4, 1], "site": [2, 3]},
    {"time": -1, "lat": np.array([True, False, True, False, False])},
    {"time": xr.DataArray([0, 3, 3], dims="p"), "lat": xr.DataArray([4, 0, 1], dims="p")},
    {"time": slice(3, 3)},
]


@pytest.mark.parametrize("index", INDICES)
def test_any_part_is_that_of_the_whole(path, index):
    lazy = xr.open_dataset(path, engine=ModelBackend)
    whole = load_model(path).predict()
    xr.testing.assert_equal(lazy.t.isel(index).load(), whole.isel(index))


def test_only_the_part_that_is_asked_for_is_computed(path, monkeypatch):
    asked = []

    def count(model, axes, *rest):
        asked.append([axis.size for axis in axes])
        return original(model, axes, *rest)

    original = backend.ask
    monkeypatch.setattr(backend, "ask", count)
    dataset = xr.open_dataset(path, engine=ModelBackend)
    assert asked == []
    dataset.t.isel(time=slice(2, 4), lat=1).load()
    assert asked == [[2, 1, 4]]


def test_chunks_are_computed_by_dask(path):
    pytest.importorskip("dask", reason="needs dask")
    whole = load_model(path).predict()
    xr.testing.assert_equal(xr.open_dataset(path, engine=ModelBackend, chunks={}).t, whole)
    chunked = xr.open_dataset(path, engine=ModelBackend, chunks={"time": 2})
    assert chunked.t.chunks[0] == (2, 2, 2)
    xr.testing.assert_allclose(chunked.t.mean("time").compute(), whole.mean("time"))


def test_a_dataset_goes_to_other_processes(path):
    again = pickle.loads(pickle.dumps(xr.open_dataset(path, engine=ModelBackend)))
    np.testing.assert_array_equal(again.t, load_model(path).predict())


def test_variables_on_the_same_axes_share_a_dataset(tmp_path):
    one, other = fit(source("t"), **GIVEN), fit(source("wind").isel(site=slice(4)), **GIVEN)
    flat = fit(source("flat").isel(site=0, drop=True), **GIVEN)
    save_models([one, other, flat], tmp_path / "m.npz")
    dataset = xr.open_dataset(tmp_path / "m.npz", engine=ModelBackend)
    assert list(dataset) == ["t", "wind", "flat"]
    assert dataset.flat.dims == ("time", "lat")
    np.testing.assert_array_equal(dataset.wind, other.predict())
    some = xr.open_dataset(tmp_path / "m.npz", engine=ModelBackend, drop_variables="t")
    assert list(some) == ["wind", "flat"]
    less = xr.open_dataset(
        tmp_path / "m.npz", engine=ModelBackend, drop_variables=["t", "flat_std"], std=True
    )
    assert list(less) == ["wind", "flat", "wind_std"]


def test_variables_on_other_coordinates_are_refused(tmp_path):
    save_models([fit(source("t"), **GIVEN), fit(source("u", 5), **GIVEN)], tmp_path / "m.npz")
    with pytest.raises(ModelFileError, match=r"'t' and 'u' .* coordinates of 'time'. Leave"):
        xr.open_dataset(tmp_path / "m.npz", engine=ModelBackend)
    dataset = xr.open_dataset(tmp_path / "m.npz", engine=ModelBackend, drop_variables="t")
    assert dataset.sizes["time"] == 5


def test_attributes_of_the_file_are_kept(path):
    model = load_model(path)
    style = replace(model.style, global_attrs={"title": "a year"})
    replace(model, style=style).save(path)
    assert xr.open_dataset(path, engine=ModelBackend).attrs == {"title": "a year"}


def test_a_dimension_without_coordinates_has_none(tmp_path):
    fit(np.outer(np.arange(5.0), np.arange(6.0))).save(tmp_path / "m.npz")
    dataset = xr.open_dataset(tmp_path / "m.npz", engine=ModelBackend)
    assert not dataset.coords
    assert dict(dataset.sizes) == {"dim_0": 5, "dim_1": 6}


def test_only_model_files_are_guessed(path, tmp_path):
    engine = ModelBackend()
    assert engine.guess_can_open(path)
    assert engine.guess_can_open(str(path))
    np.savez(tmp_path / "other.npz", header=np.arange(3))
    (tmp_path / "short.npz").write_bytes(b"PK")
    (tmp_path / "m.nc").write_bytes(path.read_bytes())
    (tmp_path / "folder.npz").mkdir()
    for name in ("other.npz", "short.npz", "m.nc", "folder.npz", "none.npz"):
        assert not engine.guess_can_open(tmp_path / name)
    for other in (b"PK", open, "http://host/m.npz", None):
        assert not engine.guess_can_open(other)


def test_what_is_no_model_file_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="There is no model file"):
        xr.open_dataset(tmp_path / "none.npz", engine=ModelBackend)
    with pytest.raises(ModelFileError, match="by its path, not as bytes"):
        ModelBackend().open_dataset(b"PK")


def test_the_engine_is_known_by_its_name():
    project = tomllib.loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    module, name = project["entry-points"]["xarray.backends"]["dkrls"].split(":")
    assert getattr(import_module(module), name) is ModelBackend


def test_xarray_finds_the_engine_of_an_installed_package(path):
    if not list(metadata.entry_points(group="xarray.backends", name="dkrls")):
        pytest.skip("the package is not installed, only on the path")
    xr.testing.assert_identical(
        xr.open_dataset(path, engine="dkrls").load(), xr.open_dataset(path).load()
    )
