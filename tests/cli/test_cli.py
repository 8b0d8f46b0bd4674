"""The commands: every option on every kind of input it claims, and the manners of a batch job."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, grid, latlon, netcdf, timed
from shell import ROOT, dkrls, refusal, spawn

DAYS = np.arange(0.0, 60, 5)
SINCE = {"units": "days since 2020-01-01", "calendar": "standard", "standard_name": "time"}
COMMANDS = ("fit", "predict", "fill", "update", "stream", "validate", "info", "bench")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def globe(folder: Path) -> Path:
    """A grid of the whole globe."""
    axes = {"time": (DAYS, SINCE), "lat": (LAT, NORTH), "lon": (LON, EAST)}
    return grid(folder / "globe.nc", axes, unlimited="time")


@pytest.fixture(scope="module")
def model(folder: Path, globe: Path) -> Path:
    dkrls("fit", globe, "-o", folder / "globe.npz")
    return folder / "globe.npz"


@pytest.fixture(scope="module")
def sites(folder: Path) -> Path:
    """A model with text labels."""
    axes = {"site": (np.array(["a", "b, north", "c"], object), {}), "x": (np.arange(5.0), {})}
    dkrls("fit", grid(folder / "sites.nc", axes), "-o", folder / "sites.npz")
    return folder / "sites.npz"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def asked(model: Path, *at: str, dim: str) -> list[str]:
    """Coordinates of a dimension in the answers to --at."""
    words = [word for spec in at for word in ("--at", spec)]
    return list(dict.fromkeys(row[dim] for row in rows(dkrls("predict", model, *words).stdout)))


# --at ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("lat=10", ["10.0"]),
        ("lat=1,2.5,-3", ["1.0", "2.5", "-3.0"]),
        ("lat=0:1:0.25", ["0.0", "0.25", "0.5", "0.75", "1.0"]),
        ("lat=0:0.3:0.1", ["0.0", "0.1", "0.2", "0.3"]),
        ("lat=3:0:-1.5", ["3.0", "1.5", "0.0"]),
        ("lat=0:1:0.4", ["0.0", "0.4", "0.8"]),
        ("lat=5:5:1", ["5.0"]),
        ("lat=1e1:2e1:5e0", ["10.0", "15.0", "20.0"]),
        ("lat=all", ["-60.0", "-30.0", "0.0", "30.0", "60.0"]),
        ("lon=-10,370,1000", ["-10.0", "370.0", "1000.0"]),
        ("time=2020-01-03", ["2020-01-03"]),
        ("time=2020-01-03,2020-02-01T12", ["2020-01-03T00:00", "2020-02-01T12:00"]),
        ("time=2020-01-03T06:30Z", ["2020-01-03T06:30"]),
        ("time=2020-01-01:2020-01-20:7D", ["2020-01-01", "2020-01-08", "2020-01-15"]),
        ("time=2020-01-01:2020-02-01:1M", ["2020-01-01", "2020-02-01"]),
        ("time=2020-01-01:2020-02-01:P1M", ["2020-01-01", "2020-02-01"]),
        (
            "time=2020-01-01:2020-01-01T01:PT30M",
            [f"2020-01-01T{t}" for t in ("00:00", "00:30", "01:00")],
        ),
        (
            "time=2020-01-01T00:00:2020-01-01T12:00:6H",
            [f"2020-01-01T{h}:00" for h in ("00", "06", "12")],
        ),
        ("time=2020-01-02T06:30:00", ["2020-01-02T06:30"]),
        ("time=all", None),
    ],
)
def test_at_takes_what_is_documented(model: Path, spec: str, expected: list[str] | None) -> None:
    dim = spec.partition("=")[0]
    others = [f"{d}={v}" for d, v in (("lat", 0), ("lon", 0), ("time", "2020-01-02")) if d != dim]
    found = asked(model, spec, *others, dim=dim)
    assert found == expected if expected else len(found) == DAYS.size


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("lat", "is not DIM=SPEC"),
        ("lat=", "is not DIM=SPEC"),
        ("depth=1", "no dimension 'depth'. It has time, lat, lon."),
        ("lat=x", "'x' is not a number"),
        ("lat=nan", "'nan' is not a finite number"),
        ("lon=1e400", "'1e400' is not a finite number"),
        ("lat=1,,2", "'' is not a number"),
        ("lat=1:2", "is not start:stop:step"),
        ("lat=1:2:3:4", "is not start:stop:step"),
        ("lat=2:1:1", "do not lead from 2 to 1"),
        ("lat=1:2:0", "do not lead from 1 to 2"),
        ("lat=0:1:1e-12", "more than 100000000"),
        ("time=yesterday", "'yesterday' is not a date"),
        ("time=2020-02-30", "2020-02-30"),
        ("time=1500-01-01", "outside the training range 2020-01-01 to 2020-02-25"),
        ("time=1582-10-10", "1582-10-10"),
        ("time=2020-01-01:2020-02-01", "no range of dates: start:stop:step"),
        ("time=2020-01-01:2020-02-01:1fortnight", "'1fortnight' is not a time step"),
        ("time=2020-02-01:2020-01-01:1D", "do not lead from 2020-02-01 to 2020-01-01"),
    ],
)
def test_at_refuses_the_rest_and_says_why(model: Path, spec: str, reason: str) -> None:
    assert reason in refusal("predict", model, "--at", spec, code=2)


def test_at_twice_for_a_dimension_is_refused(model: Path) -> None:
    line = refusal("predict", model, "--at", "lat=1", "--at", "lat=2", code=2)
    assert "'lat' were given twice. Put commas" in line


def test_labels_may_hold_commas(sites: Path) -> None:
    assert asked(sites, "site=b, north", "x=0", dim="site") == ["b, north"]
    assert asked(sites, "site=c,a", "x=0", dim="site") == ["c", "a"]
    assert "there is nothing between labels" in refusal("predict", sites, "--at", "site=z", code=2)


def test_calendars_read_their_own_dates(tmp_path: Path) -> None:
    dkrls(
        "fit",
        timed(tmp_path / "a.nc", "days since 2000-01-01", "360_day"),
        "-o",
        tmp_path / "m.npz",
    )
    steps = ["time=2000-02-30:2000-05-30:1M", "lat=0"]
    assert asked(tmp_path / "m.npz", *steps, dim="time") == [f"2000-0{m}-30" for m in range(2, 6)]
    far = ["--at", "time=999999-01-01", "--allow-extrapolation"]
    assert "too far away" in refusal("predict", tmp_path / "m.npz", *far, code=2)
    assert "2000-01-31" in refusal("predict", tmp_path / "m.npz", "--at", "time=2000-01-31", code=2)


def test_answers_are_those_of_the_python_api(model: Path) -> None:
    from dkrls_cli import load_model

    told = rows(
        dkrls(
            "predict", model, "--at", "lat=1,2", "--at", "lon=7", "--at", "time=2020-01-03"
        ).stdout
    )
    values = load_model(model).predict(lat=[1, 2], lon=7, time="2020-01-03")
    np.testing.assert_array_equal([float(row["t"]) for row in told], values)


# Outside ------------------------------------------------------------------------------------------


def test_outside_is_refused_with_count_and_range_unless_allowed(model: Path) -> None:
    words = ["predict", model, "--at", "lat=50:70:10", "--at", "time=2020-01-01", "--at", "lon=0"]
    line = refusal(*words, code=2)
    assert "1 of 3 coordinates of 'lat' are outside the training range -60.0 to 60.0" in line
    assert "the first 70.0. --allow-extrapolation" in line
    assert len(rows(dkrls(*words, "--allow-extrapolation").stdout)) == 3


def test_dates_outside_are_named_as_dates(model: Path) -> None:
    line = refusal("predict", model, "--at", "time=2021-01-01", code=2)
    assert "2020-01-01 to 2020-02-25, the first 2021-01-01" in line


def test_a_circle_may_be_asked_anywhere_and_closes(model: Path) -> None:
    told = rows(
        dkrls(
            "predict", model, "--at", "lat=0", "--at", "time=2020-01-01", "--at", "lon=-10,350,710"
        ).stdout
    )
    np.testing.assert_allclose([float(row["t"]) for row in told], float(told[0]["t"]), rtol=1e-12)


def test_part_of_a_circle_may_be_asked_by_either_name(tmp_path: Path) -> None:
    source = files.WHOLE["longitude_across_zero"](tmp_path)
    dkrls("fit", source, "-o", tmp_path / "m.npz")
    told = rows(
        dkrls("predict", tmp_path / "m.npz", "--at", "lat=0", "--at", "lon=-15,345,7").stdout
    )
    assert told[0]["t"] == told[1]["t"]
    line = refusal("predict", tmp_path / "m.npz", "--at", "lon=180", code=2)
    assert "outside the training range 340.0 to 10.0" in line


def test_points_outside_are_refused_before_a_file_is_there(model: Path, tmp_path: Path) -> None:
    points = "time,lat,lon\n2020-01-01,0,0\n2020-01-01,80,0\n"
    words = ["predict", model, "--points", "-", "-o", tmp_path / "o.csv"]
    assert "1 of 2 coordinates of 'lat'" in refusal(*words, code=2, stdin=points)
    assert list(tmp_path.iterdir()) == []
    dkrls(*words, "--allow-extrapolation", stdin=points)


# --like and --points ------------------------------------------------------------------------------


def test_like_takes_other_units_names_and_conventions(model: Path, tmp_path: Path) -> None:
    other = {
        "t": (np.array([24.0, 36]), {"units": "hours since 2020-01-02", "standard_name": "time"}),
        "y": (np.array([10.0, -10]), NORTH),
        "x": (np.array([-170.0, -5, 5]), EAST),
    }
    made = netcdf(tmp_path / "o.nc", {k: ((k,), v, a) for k, (v, a) in other.items()})
    dkrls("predict", model, "--like", made, "-o", tmp_path / "out.nc")
    with xr.open_dataset(tmp_path / "out.nc") as out:
        assert out.t.shape == (2, 2, 3)
        assert out.lon.values.tolist() == [-170, -5, 5]
        assert out.time.values[1] == np.datetime64("2020-01-03T12:00")
        assert out.time.encoding["units"] == SINCE["units"]


def test_like_takes_another_calendar_by_its_dates(model: Path, tmp_path: Path) -> None:
    other = timed(tmp_path / "o.nc", "days since 2020-01-01", "360_day", np.array([0.0, 30.0]))
    told = rows(dkrls("predict", model, "--like", other, "--at", "lat=0", "--at", "lon=0").stdout)
    assert [row["time"] for row in told] == ["2020-01-01", "2020-02-01"]


def test_like_takes_tables_and_stores(model: Path, tmp_path: Path) -> None:
    store = files.WHOLE["zarr_store"](tmp_path)
    told = dkrls("predict", model, "--like", store, "--at", "time=2020-01-01").stdout
    assert len(rows(told)) == LAT.size * LON.size
    (tmp_path / "t.csv").write_text(
        "lat,lon,v\n" + "".join(f"{i},{j},0\n" for i in (1, 2) for j in (3, 4))
    )
    told = dkrls("predict", model, "--like", tmp_path / "t.csv", "--at", "time=2020-01-01").stdout
    assert [(row["lat"], row["lon"]) for row in rows(told)] == [
        ("1.0", "3.0"),
        ("1.0", "4.0"),
        ("2.0", "3.0"),
        ("2.0", "4.0"),
    ]


def test_like_refuses_what_it_cannot_use(model: Path, sites: Path, tmp_path: Path) -> None:
    labels = grid(tmp_path / "l.nc", {"time": (np.array(["a", "b"], object), {})})
    line = refusal("predict", model, "--like", labels)
    assert "another kind there (text labels) than here (days since 2020-01-01)" in line
    assert "has no coordinate of the model's" in refusal(
        "predict", sites, "--like", latlon(tmp_path / "g.nc")
    )
    assert "There is no file" in refusal("predict", model, "--like", tmp_path / "none.nc")
    assert "is a zip archive" in refusal("predict", model, "--like", model)


POINTS = 'id,lon,lat,time,note\n7,-10,1.5,2020-01-03,"a, b"\n007,350,1.5,2020-01-03,\n'


@pytest.mark.parametrize("way", ["file", "stdin", "gz"])
def test_points_keep_their_columns(model: Path, tmp_path: Path, way: str) -> None:
    import gzip

    (tmp_path / "p.csv").write_text(POINTS)
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(POINTS.encode()))
    where = {"file": tmp_path / "p.csv", "stdin": "-", "gz": tmp_path / "p.csv.gz"}[way]
    told = rows(dkrls("predict", model, "--points", where, stdin=POINTS).stdout)
    assert [(row["id"], row["lon"], row["note"]) for row in told] == [
        ("7", "-10", "a, b"),
        ("007", "350", ""),
    ]
    assert told[0]["t"] == told[1]["t"]


def test_points_are_written_as_rows_only(model: Path, tmp_path: Path) -> None:
    line = refusal("predict", model, "--points", "-", "-o", tmp_path / "o.nc", code=2, stdin=POINTS)
    assert "as csv or jsonl" in line
    dkrls("predict", model, "--points", "-", "-o", tmp_path / "o.jsonl", stdin=POINTS)
    first, second = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert first["t"] == second["t"]
    assert first["note"] == "a, b"


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ("lat,lon\n1,2\n", "has no column 'time'"),
        ("lat,lon,time\n1,x,2020-01-01\n", "Line 2 of standard input: 'x' is not a number"),
        ("lat,lon,time\n1,2,soon\n", "'soon' is not a date"),
        ("lat,lon,time\n1,2\n", "has 2 cells, the header 3"),
        ("", "is empty"),
        ("lat,lon,time,t\n1,2,2020-01-01,5\n", "There is a column 't' already"),
    ],
)
def test_points_that_cannot_be_read_are_refused(model: Path, points: str, reason: str) -> None:
    assert reason in refusal("predict", model, "--points", "-", stdin=points)


def test_no_points_are_no_answers(model: Path) -> None:
    assert (
        dkrls("predict", model, "--points", "-", stdin="lat,lon,time\n").stdout
        == "lat,lon,time,t\n"
    )


@pytest.mark.parametrize("other", [["--at", "lat=1"], ["--like", "grid.nc"]])
def test_points_stand_alone(model: Path, other: list[str]) -> None:
    assert "do not go together" in refusal("predict", model, "--points", "-", *other, code=2)


# Formats ------------------------------------------------------------------------------------------

HERE = ["--at", "lat=0,1.5", "--at", "lon=7", "--at", "time=2020-01-03"]


@pytest.mark.parametrize(
    "name", ["o.csv", "o.jsonl", "o.ndjson", "o.nc", "o.nc4", "o.cdf", "o.zarr"]
)
def test_every_format_says_the_same(model: Path, tmp_path: Path, name: str) -> None:
    expected = [float(row["t"]) for row in rows(dkrls("predict", model, *HERE).stdout)]
    dkrls("predict", model, *HERE, "-o", tmp_path / name)
    text = (
        (tmp_path / name).read_text() if name.endswith(("csv", "json", "jsonl", "ndjson")) else ""
    )
    if name == "o.csv":
        found = [float(row["t"]) for row in rows(text)]
    elif text:
        found = [json.loads(line)["t"] for line in text.splitlines()]
    else:
        engine = "zarr" if name == "o.zarr" else "netcdf4"
        found = xr.load_dataset(tmp_path / name, engine=engine).t.values.ravel().tolist()
    assert found == expected


def test_formats_on_stdout(model: Path, tmp_path: Path) -> None:
    lines = dkrls("predict", model, *HERE, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["lat"] for line in lines] == [0.0, 1.5]
    (tmp_path / "o.nc").write_bytes(
        dkrls("predict", model, *HERE, "--format", "nc", "-o", "-").stdout_bytes
    )
    assert xr.load_dataset(tmp_path / "o.nc").t.shape == (1, 2, 1)
    assert rows(dkrls("predict", model, *HERE, "-o", "-").stdout)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-o", "answers"], "does not say what to write"),
        (["-o", "o.csv", "--format", "nc"], "do not go together"),
        (["--format", "xml"], "Unknown format 'xml'"),
        (["--json", "--format", "csv"], "both print"),
    ],
)
def test_formats_that_make_no_sense(model: Path, options: list[str], reason: str) -> None:
    assert reason in refusal("predict", model, *options, code=2)


def test_a_name_without_ending_takes_the_format(model: Path, tmp_path: Path) -> None:
    dkrls("predict", model, *HERE, "-o", tmp_path / "answers", "--format", "csv")
    assert (tmp_path / "answers").read_text().startswith("time,lat,lon,t\n")


def test_smooth_and_threads(model: Path) -> None:
    plain = dkrls("predict", model, "--at", "lat=0", "--threads", "1").stdout
    smooth = dkrls("predict", model, "--at", "lat=0", "--smooth").stdout
    one, other = ([float(row["t"]) for row in rows(text)] for text in (plain, smooth))
    assert one != other
    assert np.corrcoef(one, other)[0, 1] > 0.98


def test_gaps_are_reported_and_validated(tmp_path: Path) -> None:
    source, saved = ROOT / "sample_data" / "ocean_gaps.nc", tmp_path / "m.npz"
    given = ("--kernel", "matern52", "--sigma", "lat=40", "--sigma", "lon=60", "--sigma", "time=30")
    given = (*given, "--ridge", "1e-4")
    told = json.loads(dkrls("fit", source, "-o", saved, *given, "--json").stdout)
    assert told["missing"]["share"] == pytest.approx(0.3136, abs=1e-4)
    assert told["joint_ridge"] == 1e-4
    assert "% at all time" in dkrls("info", saved).stdout
    against = json.loads(
        dkrls("validate", ROOT / "sample_data" / "ocean.nc", "--model", saved, "--json").stdout
    )["metrics"]
    assert against["rmse"] < 3
    held = ("validate", source, "--holdout", "time=0.1", "--repeats", "1", *given, "--json")
    metrics = json.loads(dkrls(*held).stdout)["metrics"]
    assert metrics["rmse"] < 0.5
    assert 0 < metrics["coverage90"] <= 1
    words = ("fit", source, "-o", tmp_path / "n.npz", "--noise", "level")
    assert "one joint ridge only" in refusal(*words, code=2)


def test_folds_choose_for_wide_gaps(globe: Path, tmp_path: Path) -> None:
    told = [
        json.loads(dkrls("fit", globe, "-o", tmp_path / f"{i}.npz", "--json", *words).stdout)[
            "levels"
        ]
        for i, words in enumerate([[], ["--folds", "3"]])
    ]
    assert told[0] != told[1]
    held = dkrls("validate", globe, "--holdout", "0.2", "--repeats", "1", "--folds", "3")
    assert "rmse" in held.stdout
    assert "--folds" in refusal(
        "validate", globe, "--model", tmp_path / "0.npz", "--folds", "3", code=2
    )
    assert "--folds" in dkrls("fit", globe, "--folds", "1", code=2).stderr


def test_verbose_shows_how_every_kernel_did(globe: Path, tmp_path: Path) -> None:
    said = dkrls("fit", globe, "-o", tmp_path / "m.npz", "-v").stderr
    for dim in ("lat", "lon", "time"):
        assert f"{dim}: error on slices left out" in said
    assert said.count("matern52") > 20
    assert "###" in said


# What is printed ----------------------------------------------------------------------------------


def test_json_is_one_object_of_every_command(model: Path, globe: Path, tmp_path: Path) -> None:
    commands = {
        "fit": ["fit", globe, "-o", tmp_path / "m.npz"],
        "dry": ["fit", globe, "--dry-run"],
        "file": ["predict", model, "-o", tmp_path / "o.nc"],
        "answers": ["predict", model, *HERE],
        "points": ["predict", model, "--points", "-"],
        "held": ["validate", globe, "--holdout", "0.2", "--repeats", "2"],
        "model": ["validate", globe, "--model", model],
        "info": ["info", model],
    }
    told = {
        name: json.loads(dkrls(*words, "--json", stdin=POINTS).stdout)
        for name, words in commands.items()
    }
    assert told["fit"]["levels"][2]["dimension"] == "time"
    assert told["dry"]["memory_bytes"] > 0
    assert told["file"] == {
        "output": str(tmp_path / "o.nc"),
        "variable": "t",
        "cells": DAYS.size * LAT.size * LON.size,
    }
    assert [row["lat"] for row in told["answers"]["answers"]] == [0.0, 1.5]
    assert told["points"]["answers"][0]["note"] == "a, b"
    assert len(told["held"]["runs"]) == 2
    assert isinstance(told["held"]["metrics"]["n"], int)
    assert told["model"]["metrics"]["rmse"] < 1e-9
    assert told["info"]["origin"]["inputs"] == ["globe.nc"]


def test_json_has_no_nan(tmp_path: Path) -> None:
    flat = files.WHOLE["values_all_equal"](tmp_path)
    dkrls("fit", flat, "-o", tmp_path / "m.npz")
    told = dkrls("validate", flat, "--model", tmp_path / "m.npz", "--json").stdout
    assert "NaN" not in told
    json.loads(told)


def test_quiet_silences_notes_and_verbose_says_more(tmp_path: Path) -> None:
    source = files.WHOLE["dimension_without_coordinate"](tmp_path)
    words = ["fit", source, "-o", tmp_path / "m.npz", "--overwrite"]
    assert "Note: dimension member has no coordinate" in dkrls(*words).stderr
    assert dkrls(*words, "-q").stderr == ""
    assert "t: member 4 x lat 5, float64" in dkrls(*words, "-v").stderr
    out = dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "o.csv", "-v").stderr
    assert out == f"20 cells written to {tmp_path / 'o.csv'}\n"


@pytest.mark.parametrize(("width", "lines"), [(40, 38), (60, 11), (100, 4)])
def test_tables_fit_the_terminal(model: Path, width: int, lines: int) -> None:
    told = dkrls("info", model, COLUMNS=str(width)).stdout
    table = told.split("\n\n", 1)[1]
    assert max(map(len, table.splitlines())) <= width
    assert len(table.splitlines()) >= min(lines, 4)
    assert "\x1b" not in told


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_help_says_it_all(command: str, width: str) -> None:
    told = dkrls(command, "--help", COLUMNS=width, TERMINAL_WIDTH=width).stdout
    examples = re.findall(r"^ *dkrls \w+ .*$", told, re.MULTILINE)
    assert len(examples) >= 2
    assert "Examples:" in told
    assert all(option in told for option in ("--json", "--quiet", "--debug"))
    if command in ("fit", "validate") and width == "120":
        assert told.count("[DIM=]VALUE") == 3
        assert "[DIM=]NAME" in told


# Outputs ------------------------------------------------------------------------------------------


def test_an_output_is_refused_before_any_work(model: Path, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("mine")
    absent = tmp_path / "absent.npz"  # the model is not even looked for
    line = refusal("predict", absent, "-o", tmp_path / "o.csv")
    assert "'" + str(tmp_path / "o.csv") + "' exists already" in line
    assert "There is no folder" in refusal("predict", absent, "-o", tmp_path / "x" / "o.csv")
    dkrls("predict", model, *HERE, "-o", tmp_path / "o.csv", "--overwrite")
    assert (tmp_path / "o.csv").read_text().startswith("time,")


def test_a_model_is_not_overwritten_unless_asked(globe: Path, tmp_path: Path) -> None:
    (target := tmp_path / "m.npz").write_text("mine")
    assert "exists already" in refusal("fit", globe, "-o", target)
    assert target.read_text() == "mine"
    dkrls("fit", globe, "-o", target, "--overwrite")
    assert "There is no folder" in refusal("fit", globe, "-o", tmp_path / "x" / "m.npz")


def test_dry_run_writes_nothing(globe: Path, tmp_path: Path) -> None:
    told = dkrls("fit", globe, "--dry-run", "-o", tmp_path / "m.npz").stdout
    assert "memory" in told
    assert "time 12 x lat 5 x lon 8" in told
    assert list(tmp_path.iterdir()) == []


def test_memory_is_refused_before_it_is_used(globe: Path, tmp_path: Path) -> None:
    for words in (
        ["fit", globe, "-o", tmp_path / "m.npz"],
        ["validate", globe, "--holdout", "0.2"],
    ):
        line = refusal(*words, "--max-memory", "2kB")
        assert re.search(r"needs about \d+(\.\d+)? kB of memory, more than --max-memory 2 kB", line)
        assert "'lots' is not a size" in refusal(*words, "--max-memory", "lots", code=2)
    dkrls("fit", globe, "-o", tmp_path / "m.npz", "--max-memory", "1.5GiB")


# --config -----------------------------------------------------------------------------------------


def settings_of(*words: Any) -> dict[str, dict[str, Any]]:
    levels = json.loads(dkrls("fit", *words, "--dry-run", "--json").stdout)["levels"]
    return {level["dimension"]: level for level in levels}


def test_a_configuration_gives_defaults_and_options_replace_them(
    globe: Path, tmp_path: Path
) -> None:
    (path := tmp_path / "run.toml").write_text(
        'levels = ["lon", "lat", "time"]\nridge = 1e-4\n[sigma]\nlat = 30\ntime = "20"\n'
        '[kernel]\nlon = "gaussian"\n[period]\nlon = "none"\n'
    )
    levels = settings_of(globe, "--config", path)
    assert list(levels) == ["lon", "lat", "time"]
    assert (levels["lat"]["sigma"], levels["time"]["sigma"]) == (30, 20)
    assert {level["ridge"] for level in levels.values()} == {1e-4}
    assert (levels["lon"]["kernel"], levels["lon"]["period"]) == ("gaussian", None)
    over = settings_of(globe, "--config", path, "--sigma", "7", "--levels", "lat,lon,time")
    assert {level["sigma"] for level in over.values()} == {7}
    assert list(over) == ["lat", "lon", "time"]


@pytest.mark.parametrize(
    ("text", "sigma"), [("sigma = 3", 3), ('sigma = "3.5"', 3.5), ('sigma = ["lat=2"]', 2)]
)
def test_a_configuration_takes_one_value_or_a_list(
    globe: Path, tmp_path: Path, text: str, sigma: float
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    assert settings_of(globe, "--config", path)["lat"]["sigma"] == sigma


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sigmas = 3", "has a key 'sigmas' that is no option"),
        ('config = "x"', "has a key 'config'"),
        ("sigma = [", "is not TOML"),
        ("[levels]\na = 1", "levels takes one value, not a table"),
    ],
)
def test_a_wrong_configuration_is_refused(
    globe: Path, tmp_path: Path, text: str, reason: str
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    assert reason in refusal("fit", globe, "--config", path, "--dry-run", code=2)


def test_an_absent_configuration_is_refused(globe: Path, tmp_path: Path) -> None:
    line = refusal("validate", globe, "--config", tmp_path / "no.toml", code=2)
    assert "cannot be read (No such file" in line


# Settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--sigma", "depth=3"], "no dimension 'depth' to set sigma of"),
        (["--sigma", "3", "--sigma", "lat=2"], "cannot stand beside another --sigma"),
        (["--sigma", "lat=3", "--sigma", "lat=2"], "twice for the same dimension"),
        (["--sigma", "lat=wide"], "Invalid sigma 'wide'"),
        (["--ridge", "-1"], "ridge"),
        (["--kernel", "cubic"], "Unknown kernel 'cubic'"),
        (["--period", "lon=long"], "Invalid period 'long'"),
        (["--noise", "none"], "Unknown kind of noise"),
        (["--levels", "lat,lon"], "are not the dimensions of the data"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    globe: Path, tmp_path: Path, options: list[str], reason: str
) -> None:
    assert reason in refusal("fit", globe, *options, "-o", tmp_path / "m.npz", code=2)
    assert list(tmp_path.iterdir()) == []


def test_fit_needs_an_output(globe: Path) -> None:
    assert "Give -o MODEL.npz" in refusal("fit", globe, code=2)


@pytest.mark.parametrize(
    "options", [["--compact"], ["--float32"], ["--noise", "joint"], ["--threads", "1"]]
)
def test_every_kind_of_model_answers(globe: Path, tmp_path: Path, options: list[str]) -> None:
    dkrls("fit", globe, *options, "-o", tmp_path / "m.npz")
    told = rows(dkrls("predict", tmp_path / "m.npz", *HERE).stdout)
    assert all(5 < float(row["t"]) < 90 for row in told)
    assert "grid" in dkrls("info", tmp_path / "m.npz").stdout


# Tables as input ----------------------------------------------------------------------------------

LONG = "x,y,v\n" + "".join(f"{i},{j / 2},{i * j}\n" for i in range(5) for j in range(4))


@pytest.mark.parametrize("way", ["stdin", "gzip on stdin", "file", "tsv"])
def test_tables_come_in_every_way(tmp_path: Path, way: str) -> None:
    import gzip

    (tmp_path / "t.csv").write_text(LONG)
    (tmp_path / "t.tsv").write_text(LONG.replace(",", "\t"))
    stdin = gzip.compress(LONG.encode()) if way == "gzip on stdin" else LONG.encode()
    source = {"file": tmp_path / "t.csv", "tsv": tmp_path / "t.tsv"}.get(way, "-")
    dkrls("fit", source, "-o", tmp_path / "m.npz", stdin=stdin)
    told = rows(dkrls("predict", tmp_path / "m.npz", "--at", "x=2", "--at", "y=1").stdout)
    assert told == [{"x": "2", "y": "1.0", "v": "4.0"}]


# validate -----------------------------------------------------------------------------------------


def test_validate_against_some_of_the_grid(model: Path, globe: Path, tmp_path: Path) -> None:
    with xr.open_dataset(globe, decode_times=False) as whole:
        parts = {
            "scalar": whole.isel(time=3),
            "thin": whole.isel(time=[3]),
            "turned": whole.isel(lat=slice(None, None, -1)).transpose("lon", "time", "lat"),
            "west": whole.assign_coords(lon=((whole.lon + 180) % 360 - 180).assign_attrs(EAST)),
        }
        for name, part in parts.items():
            part.drop_encoding().load().to_netcdf(tmp_path / f"{name}.nc")
            told = json.loads(
                dkrls("validate", tmp_path / f"{name}.nc", "--model", model, "--json").stdout
            )
            assert told["metrics"]["max_error"] < 1e-9, name
            assert told["metrics"]["n"] == part.t.size


def test_validate_picks_the_variable_of_the_model(model: Path, globe: Path, tmp_path: Path) -> None:
    with xr.open_dataset(globe, decode_times=False) as whole:
        whole.assign(s=whole.t * 2).load().to_netcdf(tmp_path / "two.nc")
    words = ["validate", tmp_path / "two.nc", "--model", model, "--json"]
    assert json.loads(dkrls(*words).stdout)["metrics"]["rmse"] < 1e-9
    assert json.loads(dkrls(*words, "--var", "s").stdout)["metrics"]["rmse"] > 1


def test_validate_refuses_another_grid(model: Path, tmp_path: Path) -> None:
    line = refusal("validate", latlon(tmp_path / "a.nc"), "--model", model)
    assert "The grid has dimensions lat, lon, the model time, lat, lon" in line


def test_validate_exits_with_3_above_a_threshold(model: Path, globe: Path) -> None:
    words = ["validate", globe, "--holdout", "lat=0.2", "--repeats", "1", "--fail-above"]
    assert "Missed: rmse is" in dkrls(*words, "rmse=0", code=3).stderr
    assert dkrls(*words, "rmse=0", "-q", code=3).stderr == ""
    dkrls(*words, "rmse=1e9")
    told = dkrls("validate", globe, "--model", model, "--fail-above", "rmse=-1", "--json", code=3)
    assert json.loads(told.stdout)["missed"] == ["rmse"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "Give either --model MODEL or --holdout FRACTION"),
        (["--holdout", "1.5"], "a fraction between 0 and 1"),
        (["--holdout", "some"], "is not a fraction"),
        (["--holdout", "depth=0.2"], "no dimension 'depth'"),
        (["--holdout", "0.2", "--fail-above", "speed=1"], "is not METRIC=VALUE"),
        (["--holdout", "0.2", "--fail-above", "rmse=x"], "'x' is not a number"),
    ],
)
def test_validate_refuses_what_makes_no_sense(globe: Path, options: list[str], reason: str) -> None:
    assert reason in refusal("validate", globe, *options, code=2)


def test_validate_with_a_model_takes_no_settings(model: Path, globe: Path) -> None:
    line = refusal("validate", globe, "--model", model, "--sigma", "3", code=2)
    assert "--sigma goes with --holdout" in line


def test_seeds_are_kept_to(globe: Path) -> None:
    words = ["validate", globe, "--holdout", "0.3", "--repeats", "2", "--json", "--seed"]

    def errors(seed: str) -> list[float]:
        return [run["rmse"] for run in json.loads(dkrls(*words, seed).stdout)["runs"]]

    assert errors("4") == errors("4")
    assert errors("4")[1] == errors("5")[0]


# info ---------------------------------------------------------------------------------------------


def test_weights_of_every_level_are_written(model: Path, tmp_path: Path) -> None:
    told = dkrls("info", model, "--weights", tmp_path / "w.nc")
    assert told.stderr == f"Weights of 3 levels written to {tmp_path / 'w.nc'}.\n"
    weights = xr.load_dataset(tmp_path / "w.nc")
    assert list(weights.data_vars) == ["weights_1", "weights_2", "weights_3"]
    assert weights.weights_3.shape == (DAYS.size, LAT.size, LON.size)
    assert "exists already" in refusal("info", "absent.npz", "--weights", tmp_path / "w.nc")
    assert "as a grid" in refusal("info", model, "--weights", tmp_path / "w.csv", code=2)
    dkrls("info", model, "--weights", tmp_path / "w.nc", "--overwrite", "--json")


def test_a_joint_ridge_has_one_layer_of_weights(globe: Path, tmp_path: Path) -> None:
    dkrls("fit", globe, "--noise", "joint", "-o", tmp_path / "m.npz")
    dkrls("info", tmp_path / "m.npz", "--weights", tmp_path / "w.nc")
    assert list(xr.load_dataset(tmp_path / "w.nc").data_vars) == ["weights_3"]


@pytest.mark.parametrize("command", ["predict", "info"])
@pytest.mark.parametrize("what", ["data", "absent", "folder", "text"])
def test_what_is_no_model_is_refused(globe: Path, tmp_path: Path, command: str, what: str) -> None:
    (tmp_path / "text.npz").write_text("no model")
    given = {
        "data": globe,
        "absent": tmp_path / "absent.npz",
        "folder": tmp_path,
        "text": tmp_path / "text.npz",
    }[what]
    line = refusal(command, given)
    assert ("There is no model file" if what == "absent" else "is not a model file") in line


# Processes ----------------------------------------------------------------------------------------


def test_exit_codes_of_processes(model: Path, globe: Path, tmp_path: Path) -> None:
    bad = files.REFUSED["missing_as_nan"][0](tmp_path)
    runs = {
        0: spawn("predict", model, *HERE),
        1: spawn("fit", bad, "-o", tmp_path / "m.npz", "--missing", "error"),
        2: spawn("fit", globe, "--no-such-option"),
        3: spawn("validate", globe, "--model", model, "--fail-above", "rmse=-1"),
    }
    assert {code: run.returncode for code, run in runs.items()} == {code: code for code in runs}
    assert runs[1].stderr.count("\n") == 1
    assert runs[1].stderr.startswith("Error: 2 of 30 cells")
    assert "No such option" in runs[2].stderr
    assert not any("Traceback" in run.stderr or "\x1b" in run.stderr for run in runs.values())


def test_debug_shows_where(tmp_path: Path) -> None:
    run = spawn("fit", tmp_path / "absent.nc", "-o", tmp_path / "m.npz", "--debug")
    assert run.returncode == 1
    assert "InputError" in run.stderr
    assert "reading.py" in run.stderr


def test_no_color_is_respected(model: Path) -> None:
    env = {**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1", "PYTHONPATH": str(ROOT)}
    for words in (["info", model], ["predict", model, "--bogus"]):
        run = spawn(*words, env=env)
        assert not re.search(r"\x1b\[\d*;?3[0-7]m", run.stdout + run.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no head")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_closed_pipe_ends_quietly_and_at_once(model: Path, form: str) -> None:
    command = [sys.executable, "-m", "dkrls_cli", "predict", str(model), "--format", form]
    command += ["--at", "lon=0:359.9:0.1", "--at", "lat=-60:60:0.1"]
    start = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(10) == 0
    assert all(lines)
    assert time.monotonic() - start < 5


def test_points_are_answered_in_a_pipe(model: Path) -> None:
    run = spawn("predict", model, "--points", "-", input=POINTS)
    assert run.stderr == ""
    assert len(rows(run.stdout)) == 2


def test_threads_of_the_environment_do(model: Path) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    assert spawn("predict", model, *HERE, env=env).returncode == 0


def test_a_long_run_says_so_in_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    from dkrls_cli.cli import report

    monkeypatch.setattr(report, "_FIRST_WORD_AFTER", 0.01)
    monkeypatch.setattr(report, "_NEXT_WORD_AFTER", 0.01)
    monkeypatch.setattr(sys, "stderr", told := io.StringIO())
    with report.Report().working("counting"):
        time.sleep(0.1)
    assert re.fullmatch(r"(counting \(0 s\)\n)+", told.getvalue())
    told.truncate(0)
    with report.Report(quiet=True).working("counting"):
        time.sleep(0.03)
    assert told.getvalue() == ""
