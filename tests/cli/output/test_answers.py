"""Answers on grids are written the same whatever the format and the size of blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, NORTH
from shell import csv_rows, dkrls

from dkrls_cli.cli.output import answers
from dkrls_cli.files.regions.writer import NetcdfWriter

LAT, LON = np.linspace(-60.0, 60.0, 9), np.arange(0.0, 360.0, 30.0)


def test_land_is_told_and_left_out_in_every_format(sea: Path, tmp_path: Path) -> None:
    note = (
        "Note: 27 of 324 cells of sst stay missing, where the data never had a value; --mask none"
    )
    out = dkrls("predict", sea)
    assert note in out.stderr
    rows = csv_rows(out.stdout)
    assert sum(row["sst"] == "" for row in rows) == 27
    assert note in dkrls("predict", sea, "-o", tmp_path / "a.nc").stderr
    with xr.open_dataset(tmp_path / "a.nc") as grid:
        assert int(grid.sst.isnull().sum()) == 27
        np.testing.assert_allclose(
            grid.sst.values.ravel(), [float(row["sst"] or "nan") for row in rows]
        )
    assert "stay missing" not in dkrls("predict", sea, "--mask", "none").stderr


@pytest.mark.slow
@pytest.mark.parametrize("cells", [1, 10, 50, 10_000])
def test_rows_do_not_depend_on_the_size_of_blocks(
    sea: Path, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    words = ("predict", sea, "--std", "--at", "lat=1.5,30")
    whole = csv_rows(dkrls(*words).stdout)
    monkeypatch.setattr("dkrls_cli.cli.output.answers.BLOCK_CELLS", cells)
    found = csv_rows(dkrls(*words).stdout)
    assert [row["lat"] for row in found] == [row["lat"] for row in whole]
    for name in ("sst", "sst_std"):
        numbers = [[float(row[name] or "nan") for row in rows] for rows in (found, whole)]
        np.testing.assert_allclose(*numbers, rtol=1e-9, atol=1e-12)


def test_rows_of_the_file_beyond_its_data_are_told_where_they_are_answered(tmp_path: Path) -> None:
    values = np.add.outer(np.arange(3.0), np.add.outer(np.cos(LAT / 50), np.sin(LON / 60)))
    values[:, 0] = np.nan
    time = ("time", np.arange(3.0), {"units": "days since 2000-01-01"})
    xr.Dataset(
        {"sst": (("time", "lat", "lon"), values)},
        {"time": time, "lat": ("lat", LAT, NORTH), "lon": ("lon", LON, EAST)},
    ).to_netcdf(tmp_path / "a.nc")
    how = ("--kernel", "matern52", "--sigma", "time=2,lat=40,lon=60", "--ridge", "1e-4")
    dkrls("fit", tmp_path / "a.nc", "-o", tmp_path / "m.npz", *how)
    out = dkrls("predict", tmp_path / "m.npz", "--mask", "none")
    assert "Note: 36 of 324 cells of sst are extrapolated" in out.stderr
    assert all(row["sst"] for row in csv_rows(out.stdout))
    for words in ([], ["--mask", "none", "--outside", "missing"]):
        out = dkrls("predict", tmp_path / "m.npz", *words)
        assert "extrapolated" not in out.stderr
        assert sum(row["sst"] == "" for row in csv_rows(out.stdout)) == 36


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_large_answers_are_written_region_by_region(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    words = ["predict", model, "--at", "lat=-60:60:10", "--std", "-o"]
    dkrls(*words, tmp_path / f"once.{ending}")
    monkeypatch.setattr(answers, "HELD_CELLS", 10)
    monkeypatch.setattr(answers, "_REGION_CELLS", 50)
    dkrls(*words, tmp_path / f"regions.{ending}")
    engine = "zarr" if ending == "zarr" else None
    once, regions = (
        xr.load_dataset(tmp_path / f"{name}.{ending}", engine=engine)
        for name in ("once", "regions")
    )
    xr.testing.assert_identical(once.drop_attrs(), regions.drop_attrs())
    for name in once.data_vars:
        assert once[name].attrs == regions[name].attrs


def test_no_chunk_of_large_answers_is_written_twice(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk that lies in two regions would be compressed, read and compressed again."""
    asked: list[slice] = []
    put = NetcdfWriter.put_stored
    monkeypatch.setattr(
        NetcdfWriter, "put_stored", lambda *given: asked.append(given[2][0]) or put(*given)
    )
    monkeypatch.setattr(answers, "HELD_CELLS", 10)
    monkeypatch.setattr(answers, "_REGION_CELLS", 50)
    dkrls("predict", model, "--at", "lat=-60:60:5", "-o", tmp_path / "regions.nc")
    with xr.open_dataset(tmp_path / "regions.nc") as written:
        chunk = next(iter(written.data_vars.values())).encoding["chunksizes"][0]
    assert len(asked) > 2
    assert all(part.start % chunk == 0 for part in asked)
