"""``dkrls predict --points``: scattered points, and every station at every time."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sample_files import LAT, LON
from shell import PATIENCE, ROOT, csv_rows, dkrls, refusal

from dkrls_cli import fit, load_model
from dkrls_cli.cli.output import points as module

STATIONS = 'id,lon,Latitude,name\n007,-10,1.5,"a, b"\n12,7,30,\nx,350,1.5,Zürich\n'
DAYS = ["2020-01-01", "2020-01-06", "2020-01-11"]  # training coordinates
RANGE = "time=2020-01-01:2020-01-11:5D"
SHARED = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture
def stations(tmp_path: Path) -> Path:
    path = tmp_path / "stations.csv"
    path.write_text(STATIONS, encoding="utf-8")
    return path


def times(*words: Any, **options: Any) -> list[dict[str, str]]:
    return csv_rows(dkrls("predict", *words, **options).stdout)


def one_by_one(at: list[str]) -> str:
    """The stations as scattered points, each with every time."""
    header, *rows = STATIONS.splitlines()
    return "\n".join([f"{header},time", *(f"{row},{day}" for row in rows for day in at), ""])


# Stations times times -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "days"),
    [
        (RANGE, DAYS),
        ("time=2020-01-11,2020-01-02T12", ["2020-01-11T00:00", "2020-01-02T12:00"]),
        ("time=2020-01-03", ["2020-01-03"]),
    ],
)
@pytest.mark.parametrize("smooth", [False, True])
def test_every_station_is_answered_at_every_time(
    model: Path, stations: Path, spec: str, days: list[str], smooth: bool
) -> None:
    words = [model, "--std", *(["--smooth"] if smooth else [])]
    told = times(*words, "--points", stations, "--at", spec)
    assert list(told[0]) == ["id", "lon", "Latitude", "name", "time", "t", "t_std"]
    assert [(row["id"], row["time"]) for row in told] == [
        (station, day) for station in ("007", "12", "x") for day in days
    ]
    assert told[0]["name"] == "a, b"
    alone = times(*words, "--points", "-", stdin=one_by_one(days))
    for name in ("t", "t_std"):
        np.testing.assert_allclose(
            [float(row[name]) for row in told], [float(row[name]) for row in alone], rtol=1e-9
        )


def test_all_times_are_those_of_the_model(model: Path, stations: Path) -> None:
    told = times(model, "--points", stations, "--at", "time=all")
    known = load_model(model)
    assert [row["time"] for row in told[:12]] == known.axes[0].texts
    values = known.predict_stations({"lat": [1.5, 30, 1.5], "lon": [-10, 7, 350]}).values
    np.testing.assert_array_equal([float(row["t"]) for row in told], values.ravel())


def test_several_dimensions_may_be_given_for_all_points(model: Path) -> None:
    at = ["--at", "time=2020-01-03,2020-01-04", "--at", "lon=all"]
    told = times(model, "--points", "-", *at, stdin="lat\n0\n1.5\n")
    assert len(told) == 2 * 2 * LON.size
    assert list(told[0]) == ["lat", "time", "lon", "t"]
    values = load_model(model).predict(lat=[0, 1.5], time=["2020-01-03", "2020-01-04"])
    expected = values.transpose("lat", "time", "lon").values.ravel()
    np.testing.assert_allclose([float(row["t"]) for row in told], expected, rtol=1e-12)


def test_json_lines_have_the_same_rows(model: Path, stations: Path, tmp_path: Path) -> None:
    words = ["predict", model, "--points", stations, "--at", RANGE, "--std"]
    told = csv_rows(dkrls(*words).stdout)
    dkrls(*words, "-o", tmp_path / "o.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [list(line) for line in lines] == [list(row) for row in told]
    assert lines[0]["id"] == "007"
    assert lines[3]["name"] is None
    for name in ("t", "t_std"):
        assert [line[name] for line in lines] == [float(row[name]) for row in told]
    whole = json.loads(dkrls(*words, "--json").stdout)
    assert whole == {"variable": "t", "answers": lines}
    told = json.loads(dkrls(*words, "-o", tmp_path / "o.csv", "--json").stdout)
    assert told == {"output": str(tmp_path / "o.csv"), "variable": "t", "cells": 9}


@pytest.mark.parametrize("cells", [1, 2, 3, 7])
@pytest.mark.parametrize("form", ["csv", "nc"])
def test_answers_are_the_same_in_blocks_of_any_size(
    model: Path,
    stations: Path,
    tmp_path: Path,
    cells: int,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["predict", model, "--points", stations, "--std", "--at", RANGE, "--overwrite", "-o"]
    found = []
    for size in (2**20, cells):
        monkeypatch.setattr(module, "_BLOCK_CELLS", size)
        dkrls(*words, tmp_path / f"o.{form}")
        if form == "nc":
            out = xr.load_dataset(tmp_path / "o.nc")
            found.append([out.t.values.T.ravel(), out.t_std.values.T.ravel()])
        else:
            told = csv_rows((tmp_path / "o.csv").read_text())
            found.append([[float(row[name]) for row in told] for name in ("t", "t_std")])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)


def test_stations_are_read_in_blocks_as_large_as_their_answers_allow(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, asked = load_model(model), []
    monkeypatch.setattr(module, "_BLOCK_CELLS", 36)
    cells = {"lat": "1", "lon": "2", "time": "2020-01-02"}
    for at in (["time=all"], None, ["time=all", "lon=all"]):
        stations = module.asked_stations(known, "-", at)
        columns = [dim for dim in cells if dim not in stations.dims]
        rows = ",".join(columns) + 5 * ("\n" + ",".join(cells[dim] for dim in columns))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
        asked.append([len(block.cells) for block in stations.blocks(known)])
    assert asked == [[3, 2], [5], [1] * 5]


def test_memory_does_not_grow_with_stations_and_times(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40,000 answers and their text take 3 MB; blocks of 1,000 answers take a part of that."""
    monkeypatch.setattr(module, "_BLOCK_CELLS", 1000)
    (tmp_path / "s.csv").write_text("lat,lon\n" + "1,2\n" * 400)
    words = ["predict", model, "--points", tmp_path / "s.csv", "-o", tmp_path / "o.csv"]
    words += ["--at", "time=2020-01-01:2020-02-19:12H", "--overwrite"]
    dkrls(*words)  # once for what is imported and cached
    tracemalloc.start()
    dkrls(*words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "o.csv").stat().st_size > 1e6
    assert peak < 1e6


def test_stations_of_a_pipe_are_answered_before_it_ends(model: Path) -> None:
    program = (
        "from dkrls_cli.cli.output import points; points._BLOCK_CELLS = 24; "
        "from dkrls_cli.__main__ import main; main()"
    )
    words = ["predict", str(model), "--points", "-", "--at", "time=all"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("id,lat,lon\na,1,2\nb,3,4\n")
        process.stdin.flush()
        rows = [process.stdout.readline() for _ in range(25)]  # two stations, 12 times, a header
        assert rows[-1].startswith("b,3,4,2020-02-25,")
        process.stdin.write("c,5,6\n")
        process.stdin.close()
        assert len(process.stdout.readlines()) == 12
        assert process.wait(PATIENCE) == 0


def test_no_stations_are_no_answers(model: Path, tmp_path: Path) -> None:
    words = ["predict", model, "--points", "-", "--at", "time=all", "--std"]
    assert dkrls(*words, stdin="id,lat,lon\n").stdout == "id,lat,lon,time,t,t_std\n"
    dkrls(*words, "-o", tmp_path / "o.nc", stdin="id,lat,lon\n")
    assert xr.load_dataset(tmp_path / "o.nc").t.shape == (12, 0)


def test_labels_are_stations_as_well(sites: Path) -> None:
    told = times(sites, "--points", "-", "--at", "x=all", stdin='site,owner\n"b, north",ann\nc,\n')
    assert [(row["site"], row["owner"], row["x"]) for row in told[4:6]] == [
        ("b, north", "ann", "4.0"),
        ("c", "", "0.0"),
    ]
    values = load_model(sites).predict(site=["b, north", "c"]).values
    np.testing.assert_array_equal([float(row["t"]) for row in told], values.ravel())


def test_a_dimension_of_one_coordinate_needs_no_column_and_may_have_one(tmp_path: Path) -> None:
    axes = {"z": [2.0], "lat": LAT, "t": np.arange(6.0)}
    fit(np.random.default_rng(1).random((1, LAT.size, 6)), axes).save(tmp_path / "m.npz")
    words = [tmp_path / "m.npz", "--points", "-", "--at", "t=all"]
    told = times(*words, stdin="lat\n1.5\n")
    assert [list(told[0]), len(told)] == [["lat", "t", "values"], 6]
    again = times(*words, stdin="z,lat\n2,1.5\n")
    assert [row["values"] for row in again] == [row["values"] for row in told]
    line = refusal("predict", *words, code=2, stdin="z,lat\n3,1.5\n")
    assert "1 of 1 coordinates of 'z' are outside the training range 2.0 to 2.0" in line


# Refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "at", "reason", "code"),
    [
        ("id,lat,lon,time\n", "time=all", "has a column 'time', and 'time' is given for all", 2),
        ("latitude,lon,time\n", "lat=1", "has a column 'latitude', and 'lat' is given for all", 2),
        ("id,lat\n", "time=all", "has no column 'lon', a coordinate of every point", 1),
        ("id,lat,lon\n", "depth=1", "no dimension 'depth'", 2),
        ("id,lat,lon\n", "time=soon", "'soon' is not a date", 2),
        ("latitude,lats,lon\n", "time=all", "'latitude' or 'lats' may be meant for lat", 1),
        ("id,lat,lon,t\n1,2,3,4\n", "time=all", "There is a column 't' already", 1),
        ("id,lat,lon\n1,x,3\n", "time=all", "Line 2 of standard input: 'x' is not a number", 1),
        ("id,lat,lon\na,1,2\n", "time=1999-01-01", "1 of 1 coordinates of 'time' are outside", 2),
        ("id,lat,lon\na,1,2\nb,70,2\n", "time=all", "1 of 2 coordinates of 'lat' are outside", 2),
    ],
)
@pytest.mark.parametrize("form", ["csv", "nc"])
def test_what_cannot_be_answered_is_refused_and_nothing_is_written(
    model: Path, tmp_path: Path, points: str, at: str, reason: str, code: int, form: str
) -> None:
    words = ["predict", model, "--points", "-", "--at", at, "-o", tmp_path / f"o.{form}"]
    assert reason in refusal(*words, code=code, stdin=points)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_column_names_the_option_that_helps(model: Path) -> None:
    line = refusal("predict", model, "--points", "-", stdin="lat,lon\n1,2\n")
    assert "has no column 'time'" in line
    assert line.endswith("Option: --at.")


def test_some_dimension_is_left_to_the_points(model: Path) -> None:
    at = [word for dim in ("lat", "lon", "time") for word in ("--at", f"{dim}=all")]
    line = refusal("predict", model, "--points", "-", *at, code=2, stdin="id\n1\n")
    assert "gives the coordinates of every dimension" in line


@pytest.mark.parametrize("form", ["csv", "nc"])
def test_extrapolation_is_answered_where_it_is_allowed(
    model: Path, tmp_path: Path, form: str
) -> None:
    words = ["predict", model, "--points", "-", "--at", "time=2020-03-01", "-o"]
    dkrls(*words, tmp_path / f"o.{form}", "--allow-extrapolation", stdin="lat,lon\n70,0\n")
    assert (tmp_path / f"o.{form}").exists()


# NetCDF and Zarr ----------------------------------------------------------------------------------


def test_stations_become_time_series(model: Path, stations: Path, tmp_path: Path) -> None:
    dkrls("predict", model, "--points", stations, "--at", RANGE, "--std", "-o", tmp_path / "o.nc")
    told = times(model, "--points", stations, "--at", RANGE, "--std")
    out = xr.load_dataset(tmp_path / "o.nc")
    assert out.attrs["featureType"] == "timeSeries"
    assert "dkrls predict" in out.attrs["history"].splitlines()[0]
    assert out.t.dims == ("time", "station")
    assert out.id.values.tolist() == ["007", "12", "x"]
    assert out.lon.values.tolist() == [-10, 7, 350]
    for name in ("t", "t_std"):
        expected = np.reshape([float(row[name]) for row in told], (3, 3))
        np.testing.assert_array_equal(out[name].transpose("station", "time"), expected)


def test_points_with_their_own_times_become_points(model: Path, tmp_path: Path) -> None:
    text = one_by_one(DAYS)
    dkrls("predict", model, "--points", "-", "-o", tmp_path / "o.nc", stdin=text)
    told = times(model, "--points", "-", stdin=text)
    out = xr.load_dataset(tmp_path / "o.nc")
    assert (out.attrs["featureType"], out.t.dims) == ("point", ("obs",))
    np.testing.assert_array_equal(out.t, [float(row["t"]) for row in told])
    assert out.time.values[1] == np.datetime64("2020-01-06")


def test_a_store_and_standard_output_hold_the_same(
    model: Path, stations: Path, tmp_path: Path
) -> None:
    words = ["predict", model, "--points", stations, "--at", RANGE]
    dkrls(*words, "-o", tmp_path / "o.nc")
    dkrls(*words, "-o", tmp_path / "o.zarr")
    (tmp_path / "p.nc").write_bytes(dkrls(*words, "--format", "nc").stdout_bytes)
    first, *others = (
        xr.load_dataset(tmp_path / name, engine="zarr" if name == "o.zarr" else "netcdf4")
        for name in ("o.nc", "p.nc", "o.zarr")
    )
    for other in others:
        for name in ("id", "name"):
            other[name] = other[name].astype(object)
        xr.testing.assert_equal(first, other)
        assert other.attrs["featureType"] == "timeSeries"


def test_a_file_that_exists_is_kept(model: Path, stations: Path, tmp_path: Path) -> None:
    (tmp_path / "o.nc").write_text("mine")
    words = ["predict", model, "--points", stations, "--at", "time=all", "-o", tmp_path / "o.nc"]
    assert "exists already" in refusal(*words)
    assert (tmp_path / "o.nc").read_text() == "mine"
    dkrls(*words, "--overwrite")
    assert xr.load_dataset(tmp_path / "o.nc").t.size == 36


# Real data ----------------------------------------------------------------------------------------


def test_stations_in_a_real_climate_model(tmp_path: Path) -> None:
    source = SHARED / "E1_north_america.nc"
    if not source.exists():
        pytest.skip(f"there is no {source.name} here; the globe above stands for it")
    dkrls("fit", source, "-o", tmp_path / "m.npz", "--sigma", "10", "--ridge", "1e-3")
    cities = "id,lat,lon\nnyc,40.7,-74\ncalgary,51.05,-114.07\nmiami,25.8,279.8\n"
    words = ["predict", tmp_path / "m.npz", "--points", "-", "--at", "time=all", "-o"]
    dkrls(*words, tmp_path / "o.nc", stdin=cities)
    whole = {"decode_timedelta": False}
    with (
        xr.open_dataset(source, **whole) as data,
        xr.open_dataset(tmp_path / "o.nc", **whole) as out,
    ):
        linear = data.air_temperature.interp(
            latitude=xr.DataArray([40.7, 51.05, 25.8], dims="station"),
            longitude=xr.DataArray([286, 245.93, 279.8], dims="station"),
        )
        assert np.abs(out.air_temperature.values - linear.values).max() < 3
        assert out.sizes == {"time": 240, "station": 3}
    if shutil.which("cdo"):
        told = subprocess.run(
            ["cdo", "-s", "ntime", tmp_path / "o.nc"], capture_output=True, text=True, check=True
        )
        assert told.stdout.split() == ["240"]
    assert os.path.getsize(tmp_path / "o.nc") < 1e5


def test_points_that_stay_missing_are_counted(model: Path, tmp_path: Path) -> None:
    (points := tmp_path / "p.csv").write_text("lat,lon\n0,7\n70,7\n")
    for out in ([], ["-o", tmp_path / "o.nc"]):
        words = ("predict", model, "--points", points, "--at", "time=all", *out)
        told = dkrls(*words, "--outside", "missing").stderr
        assert "Note: 12 of 24 cells of t stay missing, outside the training range" in told
