"""``dkrls predict``: where it answers, and how the answers are written."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import sample_files as files
import xarray as xr
import zarr
from sample_files import EAST, LAT, LON, NORTH, grid, latlon, netcdf, timed
from shell import HERE, PATIENCE, POINTS, ROOT, csv_rows, dkrls, refusal, spawn

from dkrls_cli import load_model
from dkrls_cli.grid.style import Packing

TIMES = 12  # of the model of the globe


def asked(model: Path, *at: str, dim: str) -> list[str]:
    """Coordinates of a dimension in the answers to --at."""
    words = [word for spec in at for word in ("--at", spec)]
    return list(dict.fromkeys(row[dim] for row in csv_rows(dkrls("predict", model, *words).stdout)))


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
        ("lon=-10,370,700", ["-10.0", "370.0", "700.0"]),
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
    assert found == expected if expected else len(found) == TIMES


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("lat", "is not DIM=SPEC"),
        ("lat=", "is not DIM=SPEC"),
        ("depth=1", "no dimension 'depth'. The model has time, lat, lon."),
        ("lat=x", "'x' is not a number"),
        ("lat=nan", "'nan' is not a finite number"),
        ("lon=1e400", "'1e400' is not a finite number"),
        ("lat=1,,2", "'' is not a number"),
        ("lat=1:2", "lat=1:2: there is no coordinate in that range"),
        ("lat=1:2:3:4", "is not start:stop:step"),
        ("lat=2:1:1", "do not lead from 2 to 1"),
        ("lat=1:2:0", "do not lead from 1 to 2"),
        ("lat=0:1:1e-12", "more than 1000000"),
        ("time=yesterday", "'yesterday' is not a date"),
        ("time=2020-02-30", "2020-02-30"),
        ("time=1500-01-01", "outside the training range 2020-01-01 to 2020-02-25"),
        ("time=1582-10-10", "1582-10-10"),
        ("time=2020-01-01:x", "no range of dates: start:stop, or start:stop:step"),
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
    told = csv_rows(
        dkrls(
            "predict", model, "--at", "lat=1,2", "--at", "lon=7", "--at", "time=2020-01-03"
        ).stdout
    )
    values = load_model(model).predict(lat=[1, 2], lon=7, time="2020-01-03")
    np.testing.assert_array_equal([float(row["t"]) for row in told], values)


# Outside ------------------------------------------------------------------------------------------


def test_a_range_has_the_coordinates_of_the_file_also_those_of_land(tmp_path: Path) -> None:
    lon = np.arange(0.0, 60.0, 10.0)
    values = np.sin(np.arange(4.0))[:, None, None] + LAT[:, None] / 90 + lon / 60
    values[..., 2] = np.nan
    axes = {"time": np.arange("2020-01-01", 4, dtype="M8[D]"), "lat": LAT, "lon": lon}
    xr.DataArray(values, axes, tuple(axes), "t").to_netcdf(tmp_path / "a.nc")
    assert dkrls("fit", tmp_path / "a.nc", "-o", tmp_path / "m.npz", "--sigma", 9).exit_code == 0
    at = ("time=2020-01-02", "lat=0")
    assert asked(tmp_path / "m.npz", "lon=10:30", *at, dim="lon") == ["10.0", "20.0", "30.0"]
    (tmp_path / "p.csv").write_text("lat,time\n1,2020-01-02\n")
    words = ("--points", tmp_path / "p.csv", "--at", "lon=10:30")
    rows = csv_rows(dkrls("predict", tmp_path / "m.npz", *words).stdout)
    assert [(row["lon"], row["t"] == "") for row in rows] == [
        ("10.0", False),
        ("20.0", True),
        ("30.0", False),
    ]


def test_outside_is_refused_with_count_and_range_unless_allowed(model: Path) -> None:
    words = ["predict", model, "--at", "lat=50:70:10", "--at", "time=2020-01-01", "--at", "lon=0"]
    line = refusal(*words, code=2)
    assert "1 of 3 coordinates of 'lat' are outside the training range -60.0 to 60.0" in line
    assert "the first 70.0. --outside missing leaves them out" in line
    far = {}
    for how in ("missing", "nearest", "extrapolate"):
        told = dkrls(*words, "--outside", how)
        far[how] = [row["t"] for row in csv_rows(told.stdout)]
        assert ("1 of 3 cells of t stay missing, outside the training range" in told.stderr) == (
            how == "missing"
        )
    assert far["missing"] == [*far["extrapolate"][:2], ""]
    assert far["nearest"] == [*far["extrapolate"][:2], far["extrapolate"][1]]
    assert len(set(far["extrapolate"])) == 3
    assert csv_rows(dkrls(*words, "--allow-extrapolation").stdout)[2]["t"] == far["extrapolate"][2]
    both = refusal(*words, "--allow-extrapolation", "--outside", "missing", code=2)
    assert "--allow-extrapolation and --outside missing do not go together" in both


@pytest.mark.parametrize("asked", [["--derivative", "lat"], ["--mean-along", "lat"]])
def test_refusals_outside_name_ways_that_the_question_has(model: Path, asked: list[str]) -> None:
    words = ["predict", model, "--at", "lat=0,80", *asked]
    why = refusal(*words, code=2)
    assert why.endswith("--outside missing leaves them out, extrapolate answers there.")
    dkrls(*words, "--outside", "missing")
    assert "instead of nearest" in refusal(*words, "--outside", "nearest", code=2)


def test_dates_outside_are_named_as_dates(model: Path) -> None:
    line = refusal("predict", model, "--at", "time=2021-01-01", code=2)
    assert "2020-01-01 to 2020-02-25, the first 2021-01-01" in line


def test_a_circle_may_be_asked_anywhere_and_closes(model: Path) -> None:
    told = csv_rows(
        dkrls(
            "predict", model, "--at", "lat=0", "--at", "time=2020-01-01", "--at", "lon=-10,350,710"
        ).stdout
    )
    np.testing.assert_allclose([float(row["t"]) for row in told], float(told[0]["t"]), rtol=1e-12)


def test_part_of_a_circle_may_be_asked_by_either_name(tmp_path: Path) -> None:
    source = files.WHOLE["longitude_across_zero"](tmp_path)
    dkrls("fit", source, "-o", tmp_path / "m.npz")
    told = csv_rows(
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
        assert out.time.encoding["units"] == "days since 2020-01-01"


def test_like_takes_another_calendar_by_its_dates(model: Path, tmp_path: Path) -> None:
    other = timed(tmp_path / "o.nc", "days since 2020-01-01", "360_day", np.array([0.0, 30.0]))
    told = csv_rows(
        dkrls("predict", model, "--like", other, "--at", "lat=0", "--at", "lon=0").stdout
    )
    assert [row["time"] for row in told] == ["2020-01-01", "2020-02-01"]


def test_like_takes_tables_and_stores(model: Path, tmp_path: Path) -> None:
    store = files.WHOLE["zarr_store"](tmp_path)
    told = dkrls("predict", model, "--like", store, "--at", "time=2020-01-01").stdout
    assert len(csv_rows(told)) == LAT.size * LON.size
    (tmp_path / "t.csv").write_text(
        "lat,lon,v\n" + "".join(f"{i},{j},0\n" for i in (1, 2) for j in (3, 4))
    )
    told = dkrls("predict", model, "--like", tmp_path / "t.csv", "--at", "time=2020-01-01").stdout
    assert [(row["lat"], row["lon"]) for row in csv_rows(told)] == [
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


@pytest.mark.parametrize("way", ["file", "stdin", "gz"])
def test_points_keep_their_columns(model: Path, tmp_path: Path, way: str) -> None:
    (tmp_path / "p.csv").write_text(POINTS)
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(POINTS.encode()))
    where = {"file": tmp_path / "p.csv", "stdin": "-", "gz": tmp_path / "p.csv.gz"}[way]
    told = csv_rows(dkrls("predict", model, "--points", where, stdin=POINTS).stdout)
    assert [(row["id"], row["lon"], row["note"]) for row in told] == [
        ("7", "-10", "a, b"),
        ("007", "350", ""),
    ]
    assert told[0]["t"] == told[1]["t"]


def test_points_are_written_as_lines_of_json(model: Path, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("other", [[], ["--at", "time=all"]])
def test_points_are_not_answered_like_a_file(model: Path, other: list[str]) -> None:
    words = ["predict", model, "--points", "-", "--like", "grid.nc", *other]
    assert "do not go together" in refusal(*words, code=2)


# Formats ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["o.csv", "o.jsonl", "o.ndjson", "o.nc", "o.nc4", "o.cdf", "o.zarr"]
)
def test_every_format_says_the_same(model: Path, tmp_path: Path, name: str) -> None:
    expected = [float(row["t"]) for row in csv_rows(dkrls("predict", model, *HERE).stdout)]
    dkrls("predict", model, *HERE, "-o", tmp_path / name)
    text = (
        (tmp_path / name).read_text() if name.endswith(("csv", "json", "jsonl", "ndjson")) else ""
    )
    if name == "o.csv":
        found = [float(row["t"]) for row in csv_rows(text)]
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
    assert csv_rows(dkrls("predict", model, *HERE, "-o", "-").stdout)


def test_smooth_and_threads(model: Path) -> None:
    plain = dkrls("predict", model, "--at", "lat=0", "--threads", "1").stdout
    smooth = dkrls("predict", model, "--at", "lat=0", "--smooth").stdout
    one, other = ([float(row["t"]) for row in csv_rows(text)] for text in (plain, smooth))
    assert one != other
    assert np.corrcoef(one, other)[0, 1] > 0.98


def test_an_output_is_refused_before_any_work(model: Path, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("mine")
    absent = tmp_path / "absent.npz"  # the model is not even looked for
    line = refusal("predict", absent, "-o", tmp_path / "o.csv")
    assert "'" + str(tmp_path / "o.csv") + "' exists already" in line
    assert "There is no folder" in refusal("predict", absent, "-o", tmp_path / "x" / "o.csv")
    dkrls("predict", model, *HERE, "-o", tmp_path / "o.csv", "--overwrite")
    assert (tmp_path / "o.csv").read_text().startswith("time,")


# Processes ----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="there is no head")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_closed_pipe_ends_quietly_and_at_once(model: Path, form: str) -> None:
    command = [sys.executable, "-m", "dkrls_cli", "predict", str(model), "--format", form, "-q"]
    command += ["--at", "lon=0:359.9:0.01", "--at", "lat=-60:60:0.01"]  # would take an hour
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(PATIENCE) == 0
    assert all(lines)


def test_points_are_answered_in_a_pipe(model: Path) -> None:
    run = spawn("predict", model, "--points", "-", input=POINTS)
    assert run.stderr == ""
    assert len(csv_rows(run.stdout)) == 2


def test_threads_of_the_environment_do(model: Path) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    assert spawn("predict", model, *HERE, env=env).returncode == 0


# Values and standard errors -----------------------------------------------------------------------

MIXED = {"time": ["2020-01-06", "2020-01-08"], "lat": [-60.0, 7.0, 30.0], "lon": [0.0, 7.0]}
"""Training coordinates and others."""


def words_for(places: dict[str, list[Any]]) -> list[str]:
    specs = [f"{dim}={','.join(map(str, values))}" for dim, values in places.items()]
    return [word for spec in specs for word in ("--at", spec)]


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("form", ["csv", "nc", "points"])
def test_values_and_standard_errors_are_those_of_the_python_api(
    model: Path, tmp_path: Path, form: str, smooth: bool
) -> None:
    known = load_model(model)
    values = known.predict(smooth=smooth, **MIXED).values.ravel()
    errors = known.std(smooth=smooth, **MIXED).values.ravel()
    words = ["predict", model, "--std", *(["--smooth"] if smooth else [])]
    if form == "nc":
        dkrls(*words, *words_for(MIXED), "-o", tmp_path / "o.nc")
        with xr.open_dataset(tmp_path / "o.nc") as out:
            found = [out.t.values.ravel(), out.t_std.values.ravel()]
    else:
        cells = [(t, y, x) for t in MIXED["time"] for y in MIXED["lat"] for x in MIXED["lon"]]
        stdin = "time,lat,lon\n" + "".join(f"{t},{y},{x}\n" for t, y, x in cells)
        where = words_for(MIXED) if form == "csv" else ["--points", "-"]
        told = csv_rows(dkrls(*words, *where, stdin=stdin).stdout)
        found = [[float(row["t"]) for row in told], [float(row["t_std"]) for row in told]]
    np.testing.assert_allclose(found[0], values, rtol=1e-9)
    np.testing.assert_allclose(found[1], errors, rtol=1e-6, atol=1e-12)
    assert (min(errors) == 0) == (not smooth)


@pytest.mark.parametrize("cells", [1, 5, 7, 12])
def test_rows_are_the_same_in_blocks_of_any_size(
    model: Path, tmp_path: Path, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["predict", model, "--std", *words_for(MIXED)]
    whole = dkrls(*words).stdout
    monkeypatch.setattr("dkrls_cli.cli.output.answers.BLOCK_CELLS", cells)
    np.testing.assert_allclose(numbers(dkrls(*words).stdout), numbers(whole), rtol=1e-9, atol=1e-9)
    told = dkrls(*words, "-o", tmp_path / "o.csv", "--json", "-v")
    assert json.loads(told.stdout)["cells"] == 12
    assert told.stderr == f"12 cells written to {tmp_path / 'o.csv'}\n"


def numbers(text: str) -> list[list[float]]:
    return [[float(row["t"]), float(row["t_std"])] for row in csv_rows(text)]


def test_points_come_in_blocks_and_are_all_counted(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dkrls_cli.files.text import points

    def blocks(*given: Any) -> Any:
        yield from read(*given)
        yield from read(*given)

    read = points.point_blocks
    (tmp_path / "p.csv").write_text(POINTS)
    monkeypatch.setattr(points, "point_blocks", blocks)
    words = ["predict", model, "--points", tmp_path / "p.csv", "-o", tmp_path / "o.csv", "--json"]
    assert json.loads(dkrls(*words).stdout)["cells"] == 4


def test_at_replaces_the_coordinates_of_a_file(model: Path, tmp_path: Path) -> None:
    like = latlon(tmp_path / "g.nc")
    words = ["predict", model, "--like", like, "--at", "time=2020-01-03", "--at", "lat=1,2"]
    told = csv_rows(dkrls(*words).stdout)
    assert {row["lat"] for row in told} == {"1.0", "2.0"}
    assert len({row["lon"] for row in told}) > 2


# Names by role, and ranges of training coordinates


def test_dimensions_are_found_by_their_roles(model: Path) -> None:
    there = dkrls("predict", model, *HERE).stdout
    roles = [word.replace("lat=", "Latitude=").replace("lon=", "longitude=") for word in HERE]
    assert dkrls("predict", model, *roles).stdout == there
    line = refusal("predict", model, "--at", "latt=3", code=2)
    assert "no dimension 'latt'. The model has time, lat, lon. Did you mean 'lat'?" in line


def test_a_table_of_other_names_is_asked_by_role(tmp_path: Path) -> None:
    rows = "".join(
        f"2020-01-{d:02d},{y},{d + y / 10}\n" for d in range(1, 9) for y in range(0, 50, 10)
    )
    (source := tmp_path / "t.csv").write_text(f"date,latitude,v\n{rows}")
    dkrls("fit", source, "-o", tmp_path / "m.npz", "--sigma", "time=3D,lat=20", "--ridge", "1e-6")
    words = ("--at", "time=2020-01-02:2020-01-03", "--at", "lat=20:30")
    found = csv_rows(dkrls("predict", tmp_path / "m.npz", *words).stdout)
    assert [(row["date"], row["latitude"]) for row in found] == [
        ("2020-01-02", "20"),
        ("2020-01-02", "30"),
        ("2020-01-03", "20"),
        ("2020-01-03", "30"),
    ]
    assert [float(row["v"]) for row in found] == [4.0, 5.0, 5.0, 6.0]


def test_a_range_gives_the_data_at_its_training_coordinates(
    model: Path, globe: Path, tmp_path: Path
) -> None:
    words = ("--at", "lon=300:100", "--at", "lat=-90:0", "--at", "time=2020-01:2020-01")
    dkrls("predict", model, *words, "-o", tmp_path / "o.nc")
    with xr.open_dataset(tmp_path / "o.nc") as found, xr.open_dataset(globe) as data:
        (name,) = found.data_vars
        assert np.all(np.diff(found.lon) > 0)
        assert (found.lon.min() >= -60) & (found.lon.max() <= 100)
        assert found.time.max() <= np.datetime64("2020-02-01")
        same = data[name].assign_coords(lon=data.lon % 360)
        there = same.sel(lon=found.lon.values % 360, lat=found.lat, time=found.time)
        assert there.size == found[name].size > 0
        np.testing.assert_allclose(found[name].values, there.values, rtol=1e-6)
        inside = (data.lon.values % 360 >= 300) | (data.lon.values % 360 <= 100)
        assert found.sizes["lon"] == inside.sum()


def test_a_range_without_training_coordinates_says_where_they_are(model: Path) -> None:
    line = refusal("predict", model, "--at", "time=2031:2032", code=2)
    assert "time=2031:2032: there is no coordinate in that range" in line
    assert "from 2020-01-01 to 2020-02-25" in line


# Files of answers ---------------------------------------------------------------------------------


def test_answers_that_cannot_be_packed_are_told(tmp_path: Path) -> None:
    attrs = {"scale_factor": 0.01, "_FillValue": np.int16(-1)}
    source = files.packed(tmp_path / "a.nc", files.RAW, attrs)
    dkrls("fit", source, "-o", tmp_path / "m.npz", "-q")
    model = load_model(tmp_path / "m.npz")
    limited = Packing("uint8", {"scale_factor": 0.01, "_FillValue": np.uint8(255)})
    style = replace(model.style, packing=limited)
    replace(model, style=style).save(tmp_path / "m.npz")
    told = dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "o.nc")
    assert told.stderr == (
        "Note: 't' is written as float64 and not packed as uint8: 30 cells beyond 0 to 2.54.\n"
    )
    np.testing.assert_allclose(xr.load_dataset(tmp_path / "o.nc").t, files.RAW / 100)
    piped = dkrls("predict", tmp_path / "m.npz", "--format", "nc")
    assert "not packed as uint8" in piped.stderr


def test_standard_errors_have_the_units_of_the_data_and_no_packing(tmp_path: Path) -> None:
    attrs = {"scale_factor": 0.01, "units": "degree_Celsius", "standard_name": "air_temperature"}
    source = files.packed(tmp_path / "a.nc", files.RAW, attrs)
    dkrls("fit", source, "-o", tmp_path / "m.npz", "-q")
    words = ("predict", tmp_path / "m.npz", "--at", "x=0.5,1.5", "--std", "-o", tmp_path / "o.nc")
    dkrls(*words)
    raw = xr.load_dataset(tmp_path / "o.nc", mask_and_scale=False)
    assert (raw.t.dtype, raw.t_std.dtype) == (np.int16, np.float32)
    assert raw.t_std.attrs["units"] == "degree_Celsius"
    assert raw.t_std.attrs["standard_name"] == "air_temperature standard_error"
    assert raw.t.attrs["ancillary_variables"] == "t_std"
    expected = load_model(tmp_path / "m.npz").std(x=[0.5, 1.5])
    np.testing.assert_allclose(raw.t_std, expected, rtol=1e-6)
    assert float(raw.t_std.min()) > 0


@pytest.mark.parametrize("to", [["-o", "o.nc"], ["--format", "nc"], ["-o", "o.zarr"]])
def test_answers_are_compressed_as_asked_for(model: Path, tmp_path: Path, to: list[str]) -> None:
    target = tmp_path / to[1] if to[0] == "-o" else None
    told = dkrls("predict", model, *to[:1], target or to[1], "--compress", "7")
    if target is None:
        (tmp_path / "o.nc").write_bytes(told.stdout_bytes)
    if to[1] == "o.zarr":
        assert zarr.open_group(tmp_path / "o.zarr")["t"].metadata.compressor.clevel == 7
    else:
        with netCDF4.Dataset(tmp_path / "o.nc") as file:
            assert file["t"].filters()["complevel"] == 7


@pytest.mark.parametrize("options", [[], ["-o", "o.csv"], ["-o", "o.jsonl"], ["--json"]])
def test_rows_are_not_compressed(model: Path, options: list[str]) -> None:
    line = refusal("predict", model, *options, "--compress", "3", code=2)
    assert "--compress 3 is for NetCDF and Zarr" in line


@pytest.mark.parametrize("level", ["-1", "10", "much"])
def test_levels_of_compression_are_0_to_9(model: Path, level: str) -> None:
    assert "--compress" in refusal("predict", model, "-o", "o.nc", "--compress", level, code=2)


# Months -------------------------------------------------------------------------------------------

MONTHS = "months since 1960-01-01"


def monthly(path: Path, first: int, count: int, calendar: str | None = None) -> Path:
    """A yearly cycle in the middle of months."""
    attrs = {"units": MONTHS, **({"calendar": calendar} if calendar else {})}
    times = first + np.arange(count) + 0.5
    wave = np.multiply.outer(np.sin(2 * np.pi * times / 12), np.cos(LAT / 60)) + 10
    variables = {
        "time": (("time",), times, attrs),
        "lat": (("lat",), LAT, NORTH),
        "t": (("time", "lat"), wave, {"units": "K"}),
    }
    return netcdf(path, variables)


def test_months_are_asked_for_by_their_dates(tmp_path: Path) -> None:
    source, model = monthly(tmp_path / "a.nc", 400, 72), tmp_path / "m.npz"
    told = dkrls("fit", source, "-o", model)
    note = f"Note: time: '{MONTHS}' are taken as calendar months and years."
    assert note in told.stderr.splitlines()
    kernel = next(level.kernel for level in load_model(model).levels if level.name == "time")
    assert kernel.cycle == 12.0  # the year, in months
    found = csv_rows(
        dkrls("predict", model, "--at", "time=1997-03-16T12:00", "--at", "lat=0").stdout
    )
    assert [row["time"] for row in found] == ["1997-03-16T12:00"]
    number = 12 * 37 + 2.5
    assert float(found[0]["t"]) == pytest.approx(np.sin(2 * np.pi * number / 12) + 10, abs=1e-9)
    between = csv_rows(dkrls("predict", model, "--at", "time=1997-03-16", "--at", "lat=0").stdout)
    assert float(between[0]["t"]) == pytest.approx(np.sin(2 * np.pi * number / 12) + 10, abs=0.02)


def test_months_come_back_as_the_numbers_of_the_file(tmp_path: Path) -> None:
    dkrls("fit", monthly(tmp_path / "a.nc", 400, 24), "-o", tmp_path / "m.npz")
    dates = "time=1994-01-16:1994-04-16:1M"
    dkrls("predict", tmp_path / "m.npz", "--at", dates, "-o", tmp_path / "o.nc")
    with xr.open_dataset(tmp_path / "o.nc", decode_times=False) as found:
        assert found.time.attrs["units"] == MONTHS
        assert found.time.attrs["calendar"] == "standard"
        expected = 408 + np.array([15 / 31, 1 + 15 / 28, 2 + 15 / 31, 3 + 15 / 30])
        np.testing.assert_allclose(found.time, expected, rtol=1e-14)


@pytest.mark.parametrize("calendar", [None, "360_day"])
def test_files_that_count_months_are_joined(tmp_path: Path, calendar: str | None) -> None:
    parts = [monthly(tmp_path / f"{i}.nc", 400 + 12 * i, 12, calendar) for i in range(3)]
    dkrls("fit", *parts[:2], "-o", tmp_path / "m.npz")
    dkrls("update", tmp_path / "m.npz", parts[2])
    axis = load_model(tmp_path / "m.npz").axes[0]
    assert axis.numbers.tolist() == (400.5 + np.arange(36)).tolist()


def test_months_and_days_go_together(tmp_path: Path) -> None:
    dkrls("fit", monthly(tmp_path / "a.nc", 400, 24), "-o", tmp_path / "m.npz")
    days = timed(
        tmp_path / "b.nc", "days since 1995-05-01", None, np.array([15.5, 46.0]), dtype="float64"
    )
    dkrls("update", tmp_path / "m.npz", days)
    axis = load_model(tmp_path / "m.npz").axes[0]
    assert axis.numbers[-2:].tolist() == [424.5, 425.5]


def test_derivatives_in_rows_and_at_points(model: Path, tmp_path: Path) -> None:
    at = ("--at", "lat=0,10", "--at", "lon=7", "--at", "time=2020-01-03", "--std")
    derive = ("--derivative", "lat", "--per-metre")
    rows = csv_rows(dkrls("predict", model, *at, *derive).stdout)
    assert list(rows[0])[3:] == ["dt_dlat", "dt_dlat_std"]
    (tmp_path / "p.csv").write_text("lat,lon\n0,7\n10,7\n")
    points = ("--points", tmp_path / "p.csv", "--at", "time=2020-01-03", "--std")
    found = csv_rows(dkrls("predict", model, *points, *derive).stdout)
    for key in ("dt_dlat", "dt_dlat_std"):
        assert [float(r[key]) for r in found] == pytest.approx(
            [float(r[key]) for r in rows], rel=1e-6
        )
    dkrls("predict", model, *points, *derive, "-o", tmp_path / "p.nc")
    with xr.open_dataset(tmp_path / "p.nc") as stations:
        assert stations["dt_dlat"].attrs["units"].endswith("m-1")
        assert "standard_name" not in stations["dt_dlat"].attrs


def test_means_along_a_dimension_that_points_share(model: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("lat,lon\n0,7\n10,7\n")
    points = ("--points", tmp_path / "p.csv", "--at", "time=2020-01-06:2020-01-26:10D")
    dkrls("predict", model, *points, "--mean-along", "time", "-o", tmp_path / "p.nc")
    dkrls("predict", model, *points, "--mean", "-o", tmp_path / "q.nc")
    with xr.open_dataset(tmp_path / "p.nc") as one, xr.open_dataset(tmp_path / "q.nc") as two:
        assert one.t.attrs["long_name"].endswith("mean over cells of time")
        assert np.array_equal(one.t, two.t)


def test_slopes_of_noise_are_told(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((30, 4)) + 10
    rows = [f"{t},{x},{values[t, x]}" for t in range(30) for x in range(4)]
    (tmp_path / "a.csv").write_text("\n".join(["t,x,v", *rows]))
    how = ("--kernel", "t=matern52", "--sigma", "t=4", "--ridge", "t=0.5")
    dkrls("fit", tmp_path / "a.csv", "-o", tmp_path / "m.npz", *how)
    asked = ("predict", tmp_path / "m.npz", "--at", "t=2.5", "--derivative", "t")
    assert "slopes along t follow the data" in dkrls(*asked).stderr
    assert "follow the data" not in dkrls(*asked, "--smooth").stderr


def test_questions_that_do_not_go_together(model: Path) -> None:
    assert "of which dimensions" in refusal("predict", model, "--mean", code=2)


def test_means_over_a_region(model: Path, tmp_path: Path) -> None:
    over = ("--mean-over", "lat,lon=-20:40", "--std")
    rows = csv_rows(dkrls("predict", model, *over, "--at", "time=2020-01-03").stdout)
    assert len(rows) == 1
    assert float(rows[0]["t_std"]) >= 0
    dkrls("predict", model, *over, "-o", tmp_path / "r.nc")
    with xr.open_dataset(tmp_path / "r.nc") as series:
        assert dict(series.t.sizes) == {"time": 12, "lat": 1, "lon": 1}
        assert series.lon_bnds.values.tolist() == [[-20.0, 40.0]]
        assert series.t.attrs["cell_methods"] == "lat: lon: mean"
    assert "does not go with --mean" in refusal("predict", model, *over, "--mean", code=2)
    for words in (over, ["--mean"]):
        told = refusal("predict", model, *words, "--points", tmp_path / "p.csv", code=2)
        assert f"{words[0]} does not go with --points" in told
