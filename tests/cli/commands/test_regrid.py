"""``dkrls regrid`` is fit and predict in one step; CDO is beaten on an analytic field."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, NORTH
from shell import csv_rows, dkrls, refusal

GIVEN = ("--kernel", "matern52", "--sigma", "lat=40,lon=60", "--ridge", "1e-6")


def wave(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """A smooth field on the sphere: two harmonics and a slope."""
    y, x = np.deg2rad(np.meshgrid(lat, lon, indexing="ij"))
    return 2 + np.cos(y) ** 2 * np.cos(2 * x) + np.sin(2 * y) ** 5 * np.sin(3 * x) + np.sin(y)


def write(path: Path, nlat: int = 24, nlon: int = 48, land: bool = False) -> Path:
    lat, lon = -90 + (np.arange(nlat) + 0.5) * 180 / nlat, np.arange(nlon) * 360 / nlon
    values = wave(lat, lon)
    if land:
        values[8:16, 10:20] = np.nan
    xr.Dataset(
        {"t": (("lat", "lon"), values, {"units": "K"})},
        {"lat": ("lat", lat, NORTH), "lon": ("lon", lon, EAST)},
    ).to_netcdf(path)
    return path


def test_regrid_is_fit_and_predict(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc")
    out = dkrls("regrid", source, "-o", tmp_path / "b.nc", "--like", "r72x36", *GIVEN, "--std")
    dkrls("fit", source, "-o", tmp_path / "m.npz", *GIVEN)
    like = ("--like", "r72x36", "--std")
    dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "c.nc", *like)
    with xr.open_dataset(tmp_path / "b.nc") as one, xr.open_dataset(tmp_path / "c.nc") as two:
        xr.testing.assert_equal(one, two)
        assert one.t.shape == (36, 72)
        assert one.attrs["history"].count("dkrls") == 2  # the command, and the version
        truth = wave(one.lat.values, one.lon.values)
        assert np.abs(one.t.values - truth).max() < 0.01  # up to the poles
    assert "missing" not in out.stderr
    assert "lat 24 x lon 48" in out.stdout
    assert "lat 36 x lon 72" in out.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "b.nc", "c.nc", "m.npz"]


def test_what_lies_outside_follows_the_option(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc")
    words = ("regrid", source, "--at", "lat=0,89", "--at", "lon=10", *GIVEN, "--poles", "none")
    rows = {}
    for outside in ("missing", "nearest", "extrapolate"):
        out = tmp_path / f"{outside}.csv"
        dkrls(*words, "-o", out, "--outside", outside)
        rows[outside] = [row["t"] for row in csv_rows(out.read_text())]
    assert rows["missing"] == [rows["nearest"][0], ""]
    assert len({rows[how][1] for how in rows}) == 3
    line = refusal(*words, "-o", tmp_path / "o.csv", "--outside", "refuse", code=2)
    assert "outside the training range" in line
    assert not (tmp_path / "o.csv").exists()


def test_land_stays_land(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc", land=True)
    told = json.loads(
        dkrls(
            "regrid", source, "-o", tmp_path / "b.nc", "--like", "r24x12", *GIVEN, "--json"
        ).stdout
    )
    with xr.open_dataset(tmp_path / "b.nc") as out:
        assert int(out.t.isnull().sum()) == told["land"] + told["outside"]
        assert np.isnan(out.t.sel(lat=0, lon=105, method="nearest"))
    assert told["land"] > 0
    dkrls("regrid", source, "-o", tmp_path / "c.nc", "--like", "r24x12", *GIVEN, "--mask", "none")
    with xr.open_dataset(tmp_path / "c.nc") as out:
        assert int(out.t.isnull().sum()) == told["outside"]


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ([], "Give -o OUT.nc", 2),
        (["-o", "-", "--json", "--format", "nc", "--like", "r8x4"], "both write to stdout", 2),
        (["-o", "b.nc"], "Give --like GRID or --at DIM=SPEC", 2),
        (["-o", "b.what", "--like", "r8x4"], "format of 'b.what' is not known", 2),
        (["-o", "b.csv", "--like", "r8x4", "--compress", "3"], "is for NetCDF and Zarr", 2),
        (["-o", "a.nc", "--like", "r8x4", "--overwrite"], "is one of the inputs", 1),
        (["-o", "a.nc", "--like", "r8x4"], "is one of the inputs", 1),
        (["-o", "b.nc", "--like", "nowhere.nc"], "Nor is it a grid by name", 1),
        (["-o", "b.nc", "--at", "depth=3"], "no dimension 'depth'", 2),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str, code: int
) -> None:
    write(tmp_path / "a.nc")
    monkeypatch.chdir(tmp_path)
    assert message in refusal("regrid", "a.nc", *words, *GIVEN, code=code)
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def test_what_is_wrong_with_the_target_is_said_before_the_fit(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc")
    xr.Dataset(coords={"x": [1.0, 2.0]}).to_netcdf(tmp_path / "x.nc")
    for words, code in (
        (["--like", tmp_path / "x.nc"], 1),
        (["--at", "lat=north"], 2),
        (["--like", "r8x4", "--mask", "nowhere.nc"], 1),
        (["--like", "r8x4", "--outside", "missing", "--allow-extrapolation"], 2),
    ):
        with mock.patch("dkrls_cli.model.fit.fit_grid") as work:
            refusal("regrid", source, "-o", tmp_path / "b.nc", *words, code=code)
        work.assert_not_called()


def test_tables_and_pipes_are_regridded(tmp_path: Path) -> None:
    rows = [f"{x},{y},{x * 2 + y}" for x in range(8) for y in range(6)]
    table = "x,y,v\n" + "\n".join(rows) + "\n"
    how = ("--kernel", "gaussian", "--sigma", "4", "--ridge", "1e-8", "--at", "x=0.5:6.5:1")
    dkrls("regrid", "-", "-o", tmp_path / "o.csv", *how, stdin=table)
    assert (
        dkrls("regrid", "-", "-o", "-", *how, stdin=table).stdout
        == (tmp_path / "o.csv").read_text()
    )
    found = csv_rows((tmp_path / "o.csv").read_text())
    assert len(found) == 7 * 6
    assert float(found[0]["v"]) == pytest.approx(1.0, abs=0.01)


@pytest.mark.skipif(shutil.which("cdo") is None, reason="cdo is not installed")
@pytest.mark.parametrize("remap", ["remapbil", "remapbic"])
def test_an_analytic_field_comes_nearer_than_by_cdo(tmp_path: Path, remap: str) -> None:
    source = write(tmp_path / "a.nc")
    dkrls("regrid", source, "-o", tmp_path / "b.nc", "--like", "r90x45")
    command = ["cdo", "-s", f"{remap},r90x45", str(source), str(tmp_path / "c.nc")]
    subprocess.run(command, check=True, capture_output=True)
    with xr.open_dataset(tmp_path / "b.nc") as own, xr.open_dataset(tmp_path / "c.nc") as theirs:
        truth = wave(own.lat.values, own.lon.values)
        inside = np.isfinite(own.t.values)
        errors = [np.abs(grid.t.values - truth)[inside].max() for grid in (own, theirs)]
    assert errors[0] < 0.1 * errors[1]


def test_rows_beyond_a_gaussian_grid_are_missing_and_counted(tmp_path: Path) -> None:
    lat = np.rad2deg(np.arcsin(np.polynomial.legendre.leggauss(32)[0]))
    lon = np.arange(64) * 360 / 64
    xr.Dataset(
        {"t": (("lat", "lon"), wave(lat, lon))},
        {"lat": ("lat", lat, NORTH), "lon": ("lon", lon, EAST)},
    ).to_netcdf(tmp_path / "n16.nc")
    words = ("regrid", tmp_path / "n16.nc", "-o", tmp_path / "o.nc", "--like", "r360x180", *GIVEN)
    assert json.loads(dkrls(*words, "--json").stdout)["outside"] == 0
    told = dkrls(*words, "--poles", "none", "--overwrite", "--json")
    beyond = int((np.abs(-89.5 + np.arange(180)) > lat.max()).sum())
    assert beyond == 8
    assert f"{beyond * 360} of 64,800 cells of t stay missing, outside" in told.stderr
    assert json.loads(told.stdout)["outside"] == beyond * 360
    with xr.open_dataset(tmp_path / "o.nc") as out:
        assert np.isnan(out.t).all("lon").sum() == beyond


def test_means_over_cells_have_bounds_and_methods_and_keep_the_integral(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc")
    dkrls("fit", source, "-o", tmp_path / "m.npz", *GIVEN)
    for name, more in (("c", ()), ("d", ("--mean-along", "lon"))):
        given = more or ("--mean",)
        dkrls("regrid", source, "-o", tmp_path / f"{name}.nc", "--like", "r24x12", *GIVEN, *given)
    fine = ("--like", "r48x24", "--std")
    dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "f.nc", "--mean", *fine)
    with (
        xr.open_dataset(tmp_path / "c.nc") as coarse,
        xr.open_dataset(tmp_path / "f.nc") as fine_one,
    ):
        assert coarse.t.attrs["cell_methods"] == "lat: lon: mean"
        assert coarse.lat.attrs["bounds"] == "lat_bnds"
        assert coarse.lat_bnds.values[[0, -1]].tolist() == [[-90, -75], [75, 90]]
        assert set(fine_one.data_vars) == {"t", "t_std", "lat_bnds", "lon_bnds"}
        sums = []
        for one in (coarse, fine_one):
            areas = np.diff(np.sin(np.radians(one.lat_bnds.values)), axis=1)
            widths = np.diff(one.lon_bnds.values, axis=1)[:, 0]
            sums.append(float((one.t.values * areas * widths).sum() / (2 * 360)))
        assert sums[0] == pytest.approx(sums[1], abs=1e-10)
        assert sums[0] == pytest.approx(2.0, abs=1e-4)  # all waves of the field average out
    with xr.open_dataset(tmp_path / "d.nc") as along:
        assert along.t.attrs["cell_methods"] == "lon: mean"
        assert "lat_bnds" not in along


def test_means_over_cells_that_are_partly_land_are_told(tmp_path: Path) -> None:
    for land in (False, True):
        source = write(tmp_path / f"{land}.nc", land=land)
        words = ("--like", "r12x6", "--group", "none", *GIVEN[:4], "--ridge", "1e-3")
        for mean in ((), ("--mean",)):
            out = tmp_path / f"{land}{len(mean)}.nc"
            told = dkrls("regrid", source, "-o", out, *words, *mean).stderr
            assert ("the field continued there" in told) == (land and bool(mean))


def test_means_take_the_bounds_of_the_target(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc")
    text = "gridtype = lonlat\nxsize = 2\nysize = 2\nxvals = 90 270\nyvals = -45 45\n"
    (tmp_path / "g").write_text(text + "ybounds = -60 0 0 60\nxbounds = 0 180 180 360\n")
    bounds = {"b": (("lat", "n"), [[-60.0, 0.0], [0.0, 60.0]])}
    north = NORTH | {"bounds": "b"}
    coords = {"lat": ("lat", [-45.0, 45.0], north), "lon": ("lon", [90.0, 270.0], EAST)}
    xr.Dataset(bounds, coords).to_netcdf(tmp_path / "like.nc")
    found = []
    for like in ("g", "like.nc"):
        out = tmp_path / f"{like}.out.nc"
        dkrls("regrid", source, "-o", out, "--like", tmp_path / like, "--mean", *GIVEN)
        with xr.open_dataset(out) as one:
            assert one.lat_bnds.values.tolist() == [[-60, 0], [0, 60]]
            found.append(one.t.values)
    assert np.allclose(*found, rtol=0, atol=1e-12)
    (tmp_path / "g").write_text(text + "ybounds = -60 0 0\n")
    words = ("regrid", source, "-o", tmp_path / "x.nc", "--like", tmp_path / "g", "--mean", *GIVEN)
    assert "ybounds has 3 numbers for 2 cells" in refusal(*words)
