"""Files that an engine of xarray reads: through a small one made here, and real ones if there."""

import pickle
from copy import copy

import cftime
import numpy as np
import pytest
import xarray as xr
from shell import dkrls, refusal
from xarray.backends import BackendEntrypoint
from xarray.backends.plugins import BACKEND_ENTRYPOINTS, list_engines

from dkrls_cli import load_model, open_grid
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.foreign.engines import EngineFile, engine_of, like_file, with_engine
from dkrls_cli.files.source import expand, kind_of

X = np.linspace(0.0, 3.0, 8)
GIVEN = ["--kernel", "gaussian", "--sigma", 2, "--ridge", 1e-6]
DATES = {
    "standard": np.datetime64("2020-01-01", "ns") + np.arange(6).astype("timedelta64[D]"),
    "360_day": np.array([cftime.datetime(2000, 2, 25 + d, calendar="360_day") for d in range(6)]),
}


def field(calendar="standard", factor=1.0):
    values = factor * np.outer(np.cos(np.arange(6) / 3), np.sin(X))
    values[2, 3] = np.nan
    coords = {"time": DATES[calendar], "x": ("x", X, {"units": "m"})}
    return xr.DataArray(values, coords, ("time", "x"), "v", {"units": "K"})


class PlainEngine(BackendEntrypoint):
    """Reads a file with the name of a calendar in it; it has none of the options of xarray."""

    def open_dataset(self, filename_or_obj, *, drop_variables=None):
        with open(filename_or_obj) as file:
            calendar, factor = file.read().split()
        return field(calendar, float(factor)).to_dataset()


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    monkeypatch.setitem(BACKEND_ENTRYPOINTS, "plain", (None, PlainEngine))
    list_engines.cache_clear()
    yield
    list_engines.cache_clear()


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.dat").write_text("standard 1")
    return tmp_path / "a.dat"


@pytest.mark.parametrize("calendar", DATES)
def test_a_file_is_read_by_the_engine_that_is_named(tmp_path, calendar):
    (tmp_path / "a.dat").write_text(f"{calendar} 2")
    found = open_grid(tmp_path / "a.dat", engine="plain")
    xr.testing.assert_equal(found, field(calendar, 2.0))
    assert found.attrs == {"units": "K"}
    assert found.x.attrs == {"units": "m"}


def test_patterns_are_read_by_the_engine_and_joined(tmp_path):
    (tmp_path / "a1.dat").write_text("standard 1")
    (tmp_path / "a2.dat").write_text("360_day 1")
    with pytest.raises(InputError, match="by calendars"):
        open_grid(tmp_path / "a*.dat", engine="plain")
    assert open_grid([tmp_path / "a1.dat"], "v", engine="plain").shape == (6, 8)


def test_every_command_that_reads_grids_takes_an_engine(path, tmp_path):
    by = ["--engine", "plain"]
    dkrls("fit", path, *by, "-o", tmp_path / "m.npz", *GIVEN)
    known = load_model(tmp_path / "m.npz")
    assert known.dims == ("time", "x")
    dkrls("fill", path, *by, "-o", tmp_path / "f.nc", *GIVEN)
    filled = open_grid(tmp_path / "f.nc")
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled.where(field().notnull()), field())
    dkrls("regrid", path, *by, "--at", "x=0.5,1.5", "-o", tmp_path / "r.nc", *GIVEN)
    np.testing.assert_allclose(open_grid(tmp_path / "r.nc"), known.predict(x=[0.5, 1.5]), atol=1e-6)
    dkrls("validate", path, *by, "--model", tmp_path / "m.npz")
    dkrls("check", path, *by)
    (tmp_path / "b.dat").write_text("standard 3")
    dkrls("update", tmp_path / "m.npz", tmp_path / "b.dat", *by, "--replace")
    assert float(load_model(tmp_path / "m.npz").predict(time=DATES["standard"][0], x=X[2])) == (
        pytest.approx(3 * float(known.predict(time=DATES["standard"][0], x=X[2])))
    )


def test_an_engine_reads_netcdf_as_well(tmp_path):
    field().to_netcdf(tmp_path / "a.nc")
    xr.testing.assert_equal(open_grid(tmp_path / "a.nc", engine="netcdf4"), field())
    xr.testing.assert_equal(open_grid(tmp_path / "a.nc"), field())


def test_an_engine_that_is_not_there_says_what_to_install(path, tmp_path, monkeypatch):
    kept = {"plain": list_engines()["plain"]}
    monkeypatch.setattr(xr.backends, "list_engines", lambda: kept)
    for name, words in {
        "a.grib": "needs the engine 'cfgrib' of xarray to be read: pip install cfgrib eccodes.",
        "a.TIF": "needs the engine 'rasterio' of xarray to be read: pip install rioxarray.",
    }.items():
        (tmp_path / name).write_bytes(b"GRIB")
        assert words in refusal("fit", tmp_path / name, "-o", tmp_path / "m.npz")
    lack = refusal("fit", path, "--engine", "h5netcdf", "-o", tmp_path / "m.npz")
    assert "pip install h5netcdf." in lack
    lack = refusal("fit", path, "--engine", "plian", "-o", tmp_path / "m.npz")
    assert "no engine 'plian'" in lack
    assert "It has plain;" in lack
    assert "Did you mean 'plain'?" in lack


def test_a_file_that_an_engine_cannot_read_is_named(tmp_path):
    (tmp_path / "a.dat").write_text("nonsense")
    message = refusal("fit", tmp_path / "a.dat", "--engine", "plain", "-o", tmp_path / "m.npz")
    assert f"'{tmp_path / 'a.dat'}' cannot be read: not enough values" in message


def test_standard_input_is_read_by_no_engine(tmp_path):
    with pytest.raises(SettingError, match="Standard input is a table"):
        with_engine(["a.nc", "-"], "netcdf4")
    given = {"stdin": "x,v\n1,2\n", "code": 2}
    refused = refusal("fit", "-", "--engine", "plain", "-o", tmp_path / "m.npz", **given)
    assert "Give a file" in refused


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("a.grib", "cfgrib"),
        ("A.GRB2", "cfgrib"),
        ("b.tiff", "rasterio"),
        ("a.nc", None),
        ("-", None),
    ],
)
def test_endings_choose_the_engine(name, engine):
    assert engine_of(name) == engine
    assert (kind_of(name) == "engine") == (engine is not None)


def test_a_path_keeps_its_engine(path):
    given = EngineFile(str(path.parent / "*.dat"), "plain")
    (found,) = expand(given)
    assert engine_of(found) == "plain"
    assert kind_of(found) == "engine"
    assert found == str(path)
    for again in (copy(given), pickle.loads(pickle.dumps(given))):
        assert again == given
        assert engine_of(again) == "plain"
    assert with_engine(["a.nc"], None) == ["a.nc"]
    assert engine_of(like_file("b.nc", "a.nc")) is None


def test_grib_is_read_by_cfgrib(tmp_path):
    eccodes = pytest.importorskip("eccodes", reason="needs eccodes")
    pytest.importorskip("cfgrib", reason="needs cfgrib")
    lat, lon = np.arange(40.0, -1.0, -5.0), np.arange(0.0, 331.0, 30.0)
    values = 280 + np.cos(np.deg2rad(lat))[:, None] * np.cos(np.deg2rad(lon))
    keys = {
        **{"Ni": 12, "Nj": 9, "dataDate": 20200102, "dataTime": 600, "shortName": "2t"},
        **{"latitudeOfFirstGridPointInDegrees": 40.0, "longitudeOfFirstGridPointInDegrees": 0.0},
        **{"latitudeOfLastGridPointInDegrees": 0.0, "longitudeOfLastGridPointInDegrees": 330.0},
        **{"iDirectionIncrementInDegrees": 30.0, "jDirectionIncrementInDegrees": 5.0},
    }
    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    for key, value in keys.items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_values(message, values.ravel())
    with open(tmp_path / "a.grib", "wb") as file:
        eccodes.codes_write(message, file)
    found = open_grid(tmp_path / "a.grib")
    assert found.dims == ("time", "latitude", "longitude")
    assert found.time.values.tolist() == [np.datetime64("2020-01-02T06:00", "ns").item()]
    np.testing.assert_allclose(found[0], values, atol=1e-3)
    assert [path.name for path in tmp_path.iterdir()] == ["a.grib"]  # no index beside it


def test_geotiff_is_read_by_rasterio(tmp_path):
    rasterio = pytest.importorskip("rasterio", reason="needs rasterio")
    pytest.importorskip("rioxarray", reason="needs rioxarray")
    values = np.arange(20.0, dtype=np.float32).reshape(4, 5)
    about = {"driver": "GTiff", "height": 4, "width": 5, "count": 1, "dtype": "float32"}
    place = rasterio.transform.from_origin(10.0, 40.0, 2.0, 1.0)
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", **about, crs="EPSG:4326", transform=place, nodata=7) as file:
        file.write(values, 1)
    found = open_grid(path)
    assert found.dims == ("band", "y", "x")
    assert found.x.values.tolist() == [11.0, 13.0, 15.0, 17.0, 19.0]
    assert found.y.values.tolist() == [39.5, 38.5, 37.5, 36.5]
    np.testing.assert_array_equal(found[0], np.where(values == 7, np.nan, values))
