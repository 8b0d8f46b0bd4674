"""The sample data equal what their script makes, are small, and have the documented features."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

FOLDER = Path(__file__).parents[1] / "sample_data"
NETCDF_NAMES = ["paper_2d.nc", "ocean.nc", "ocean_gaps.nc"]


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample_data")
    runpy.run_path(str(FOLDER / "make_sample_data.py"))["main"](folder)
    return folder


def load(path: Path, **options: bool) -> xr.Dataset:
    with xr.open_dataset(path, **options) as dataset:
        return dataset.load()


@pytest.mark.parametrize("name", NETCDF_NAMES)
def test_the_script_makes_the_netcdf_files_again(remade: Path, name: str) -> None:
    """Compare without decoding, so that units, fill values and stored types are compared too."""
    made, kept = (load(folder / name, decode_cf=False) for folder in (remade, FOLDER))
    xr.testing.assert_identical(made, kept)
    assert {key: made[key].dtype for key in made.variables} == {
        key: kept[key].dtype for key in kept.variables
    }


@pytest.mark.parametrize("name", ["sensors.csv", "sensors_next.csv"])
def test_the_script_makes_the_csv_files_again(remade: Path, name: str) -> None:
    assert (remade / name).read_bytes() == (FOLDER / name).read_bytes()


def test_files_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir() if path.is_file()}
    assert set(sizes) > {*NETCDF_NAMES, "sensors.csv", "sensors_next.csv"}
    assert max(sizes.values()) < 1_000_000
    assert sum(sizes.values()) < 1_500_000


def test_paper_2d_equals_its_formula() -> None:
    paper = load(FOLDER / "paper_2d.nc")
    assert paper.upsilon.dims == ("x", "d")
    np.testing.assert_allclose(paper.x, np.linspace(0.1, 4 * np.pi, 145), rtol=1e-14)
    np.testing.assert_allclose(paper.d, np.linspace(0.1, 8 * np.pi, 150), rtol=1e-14)
    xr.testing.assert_allclose(
        paper.upsilon, np.sin(paper.x) * np.cos(paper.d / 2), rtol=0, atol=1e-14
    )


def test_the_ocean_is_complete_and_goes_around_the_globe() -> None:
    ocean = load(FOLDER / "ocean.nc")
    assert ocean.sst.dims == ("time", "lat", "lon")
    assert ocean.sst.notnull().all()
    assert ocean.time.values[0] == np.datetime64("2020-01-03")
    assert (np.diff(ocean.time.values) == np.timedelta64(5, "D")).all()
    assert ocean.lon_bnds.values[-1, 1] - ocean.lon_bnds.values[0, 0] == 360
    for name in ("lat", "lon"):
        bounds = ocean[ocean[name].attrs["bounds"]]
        np.testing.assert_allclose(bounds.mean("bnds"), ocean[name], atol=1e-12)


def test_the_gappy_ocean_is_the_ocean_with_missing_cells() -> None:
    ocean, gaps = load(FOLDER / "ocean.nc"), load(FOLDER / "ocean_gaps.nc")
    xr.testing.assert_equal(gaps.sst, ocean.sst.where(gaps.sst.notnull()))


def test_land_stays_in_place_and_clouds_move() -> None:
    missing = load(FOLDER / "ocean_gaps.nc").sst.isnull()
    script = runpy.run_path(str(FOLDER / "make_sample_data.py"))
    land = script["land"](missing.lat, missing.lon)
    clouds = missing.where(~land)
    assert missing.where(land, True).all()
    assert 0.20 < land.mean() < 0.25
    assert 0.10 < clouds.mean() < 0.15
    assert clouds.mean("time").max() < 0.5
    assert (missing.astype(int).diff("time") != 0).any(["lat", "lon"]).all()


def test_sensors_lack_a_few_rows_and_s07_five_hours() -> None:
    table = pd.read_csv(FOLDER / "sensors.csv", parse_dates=["time"])
    assert list(table.columns) == ["time", "sensor", "temperature"]
    assert sorted(table.sensor.unique()) == [f"s{number:02d}" for number in range(1, 13)]
    assert not table.duplicated(["time", "sensor"]).any()
    assert 0.02 < 1 - len(table) / (12 * 4 * 48) < 0.06
    longest_silence = table.groupby("sensor").time.apply(lambda times: times.diff().max())
    assert longest_silence.idxmax() == "s07"
    assert longest_silence.max() >= pd.Timedelta(hours=5)


def test_the_next_table_continues_the_first() -> None:
    first, later = (
        pd.read_csv(FOLDER / name, parse_dates=["time"])
        for name in ("sensors.csv", "sensors_next.csv")
    )
    assert list(later.columns) == list(first.columns)
    assert set(later.sensor) == set(first.sensor)
    assert later.time.min() - first.time.max() == pd.Timedelta(minutes=30)
    assert later.time.nunique() == 24
