"""``dkrls fit``: what is written, printed and refused."""

from __future__ import annotations

import gzip
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, grid
from shell import HERE, ROOT, csv_rows, dkrls, refusal

from dkrls_cli import load_model
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cli.commands.fit import choice_printer
from dkrls_cli.cli.report import Report
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model import training
from dkrls_cli.tuning.candidates import Candidate, LevelChoice


@pytest.mark.slow
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


def memory_commands(source: Path, folder: Path) -> list[list[object]]:
    """Return all commands that have a limit on their memory."""
    return [
        ["fit", source, "-o", folder / "m.npz"],
        ["fit", source, "--dry-run"],
        ["fill", source, "-o", folder / "f.nc"],
        ["regrid", source, "-o", folder / "r.nc", "--at", "lat=0,1.5"],
        ["validate", source, "--holdout", "0.2"],
    ]


def test_memory_is_refused_before_the_data_is_read(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dkrls_cli.files.source.Source.grid", None)
    for words in memory_commands(globe, tmp_path):
        line = refusal(*words, "--max-memory", "2kB")
        assert re.search(
            r"needs about [\d.e+]+ [MG]B of memory, more than the 2 kB of --max-memory\. "
            r"Try a part of the grid, or a larger --max-memory\.$"
            r"|takes about \d+ MB, and \d+ MB are allowed\. Allow more memory"
            r"|needs about \d+ MB beside the process\. Allow more memory",
            line,
        )
        assert "'lots' is not a size" in refusal(*words, "--max-memory", "lots", code=2)
    assert list(tmp_path.iterdir()) == []


def test_without_a_limit_given_the_free_memory_is_one(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dkrls_cli.memory.available_bytes", lambda: 1e6)
    for words in memory_commands(globe, tmp_path):
        line = refusal(*words)
        assert "more than the 800 kB of --max-memory" in line or "Allow more memory" in line
    for words in memory_commands(globe, tmp_path):
        dkrls(*words, "--max-memory", "none")


def test_a_joint_ridge_that_needs_too_much_gets_the_advice_to_do_without(globe: Path) -> None:
    line = refusal("fit", globe, "--dry-run", "--noise", "joint", "--max-memory", "2kB", code=2)
    assert "One joint ridge needs the whole grid in memory. Leave it out" in line


@pytest.fixture
def half_missing(tmp_path: Path) -> Path:
    """A table with missing cells, and a dimension long enough for their search to take 66 MB."""
    rows = (f"{x},{y},{x * y if (x * y) % 2 else 'NA'}" for x in range(12) for y in range(400))
    (path := tmp_path / "gaps.csv").write_text("\n".join(["x,y,v", *rows]) + "\n")
    return path


@pytest.mark.parametrize("command", ["fit", "regrid", "validate"])
def test_missing_cells_are_counted_once_they_are_known(
    half_missing: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit between the needs of a complete grid and those of one with missing cells."""
    monkeypatch.setattr("dkrls_cli.memory.held_bytes", lambda: 1e8)
    monkeypatch.setattr("dkrls_cli.memory.peak_bytes", lambda: 1e8)
    plan = json.loads(dkrls("fit", half_missing, "--dry-run", "--json").stdout)
    assert plan["memory_bytes"] < 140e6 < plan["memory_bytes_with_gaps"]
    words = {
        "fit": ["-o", tmp_path / "m.npz"],
        "regrid": ["-o", tmp_path / "r.nc", "--at", "x=1.5"],
        "validate": ["--holdout", "x=0.1"],
    }[command]
    line = refusal(command, half_missing, *words, "--max-memory", "140MB")
    assert "through its missing cells needs about" in line
    other = refusal(command, half_missing, *words, "--max-memory", "140MB", "--missing", "error")
    assert "memory" not in other


def test_the_plan_tells_the_parts_of_the_memory(globe: Path) -> None:
    found = dkrls("fit", globe, "--dry-run", "--json")
    plan = json.loads(found.stdout)
    assert plan["memory_bytes"] == sum(plan["memory_parts"].values())
    assert plan["memory_parts"]["process"] > 1e7
    told = dkrls("fit", globe, "--dry-run", "-v")
    assert re.search(r"memory +about [\d.]+ [MG]B, [\d.]+ [MG]B if cells are missing", told.stdout)
    assert re.search(r"t: memory\n(.*\n)*process +[\d.]+ [MG]B", told.stderr)
    assert "t: memory if cells are missing\n" in told.stderr
    strict = dkrls("fit", globe, "--dry-run", "--missing", "error", "--json").stdout
    assert json.loads(strict)["memory_bytes_with_gaps"] is None
    assert "if cells" not in dkrls("fit", globe, "--dry-run", "--missing", "error").stdout


# Runs the command line, and prints the most bytes that its process has held.
PEAK = (
    "import sys; from dkrls_cli.cli import app; from dkrls_cli.memory import peak_bytes\n"
    "app(sys.argv[1:], standalone_mode=False); print('peak', int(peak_bytes()), file=sys.stderr)"
)


@pytest.mark.slow
def test_a_fit_of_single_precision_holds_at_most_2_2_times_the_data(tmp_path: Path) -> None:
    """Reading with a fill value, the fit and the file; and answers from that no more."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is not known here")
    shape = (120, 400, 500)
    axes = {f"d{place}": np.arange(float(size)) for place, size in enumerate(shape)}
    values = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    grid = xr.DataArray(values, axes, list(axes), "v")
    grid.to_netcdf(source := tmp_path / "v.nc", encoding={"v": {"_FillValue": -9e9}})
    grid[:9, :9, :9].to_netcdf(few := tmp_path / "few.nc")

    def peak(*words: str | Path) -> int:
        run = [sys.executable, "-c", PEAK, *words]
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        return int(done.stderr.split("peak ")[-1])

    given = ["--sigma", "2", "--kernel", "matern32", "--ridge", "0.1"]
    model = tmp_path / "m.npz"
    process = peak("fit", few, *given, "-o", tmp_path / "few.npz")
    assert peak("fit", source, *given, "-o", model) - process < 2.2 * values.nbytes
    asked = [word for dim in axes for word in ("--at", f"{dim}=3.5")]
    assert peak("predict", model, *asked) - process < 2.2 * values.nbytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "dtype", "missing", "words"),
    [
        ((250, 200, 200), "float32", 0.0, ["fit", "--ridge", "0.1"]),
        ((200, 200, 60), "float32", 0.0, ["fit", "--noise", "joint", "--ridge", "0.1"]),
        ((100, 100, 60), "float32", 0.3, ["fill", "--ridge", "0.1"]),
        ((120, 120, 120), "float64", 0.0, ["regrid", "--std", "--at", "d0=0:119:0.5"]),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else None,
)
def test_the_estimate_is_near_the_peak_of_the_process(
    shape: tuple[int, ...], dtype: str, missing: float, words: list[str], tmp_path: Path
) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is not known here")
    rng = np.random.default_rng(0)
    values = 0.1 * rng.standard_normal(shape) + np.sin(np.arange(shape[-1]) / 9)
    values[rng.random(shape) < missing] = np.nan
    axes = {f"d{place}": np.arange(float(size)) for place, size in enumerate(shape)}
    grid = xr.DataArray(values.astype(dtype), axes, list(axes), "v")
    grid.to_netcdf(source := tmp_path / "v.nc")
    given = ["--sigma", "4", "--kernel", "gaussian"]
    command, *others = words
    target = tmp_path / ("m.npz" if command == "fit" else "out.nc")
    run = [sys.executable, "-c", PEAK, command, source, "-o", target, *given, *others]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    peak = int(done.stderr.split("peak ")[-1])
    run += ["--overwrite", "--dry-run", "--json"]
    line = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    estimate = json.loads(line.splitlines()[0])["memory_bytes"]
    assert peak / 1.5 < estimate < 1.5 * peak


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--sigma", "depth=3"], "no dimension 'depth' to set sigma of"),
        (["--sigma", "3", "--sigma", "lat=2"], "cannot stand beside another --sigma"),
        (["--sigma", "lat=3", "--sigma", "lat=2"], "twice for the same dimension"),
        (["--sigma", "lat=wide"], "Invalid sigma 'wide'"),
        (["--ridge", "-1"], "ridge"),
        (["--kernel", "cubical"], "Unknown kernel 'cubical'"),
        (["--period", "lon=long"], "Invalid period 'long'"),
        (["--noise", "none"], "Choose from: level, joint, auto."),
        (["--levels", "lat,lon"], "are not the dimensions of the data"),
        (["--tolerance", "0"], "Invalid tolerance 0. It must be above 0"),
        (["--tolerance", "-1e-3"], "Invalid tolerance -0.001. It must be above 0"),
        (["--tolerance", "nan"], "Invalid tolerance 'nan'. Give a share"),
        (["--tolerance", "0.1 kg"], "has the units"),
        (["--tolerance", "0.1 kg", "--dry-run"], "has the units"),
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
    "options",
    [
        ["--compact"],
        ["--float32"],
        ["--tolerance", "1e-3"],
        ["--noise", "joint"],
        ["--threads", "1"],
    ],
)
def test_every_kind_of_model_answers(globe: Path, tmp_path: Path, options: list[str]) -> None:
    dkrls("fit", globe, *options, "-o", tmp_path / "m.npz")
    told = csv_rows(dkrls("predict", tmp_path / "m.npz", *HERE).stdout)
    assert all(5 < float(row["t"]) < 90 for row in told)
    assert "grid" in dkrls("info", tmp_path / "m.npz").stdout


LONG = "x,y,v\n" + "".join(f"{i},{j / 2},{i * j}\n" for i in range(5) for j in range(4))


@pytest.mark.parametrize("way", ["stdin", "gzip on stdin", "file", "tsv"])
def test_tables_come_in_every_way(tmp_path: Path, way: str) -> None:
    (tmp_path / "t.csv").write_text(LONG)
    (tmp_path / "t.tsv").write_text(LONG.replace(",", "\t"))
    stdin = gzip.compress(LONG.encode()) if way == "gzip on stdin" else LONG.encode()
    source = {"file": tmp_path / "t.csv", "tsv": tmp_path / "t.tsv"}.get(way, "-")
    dkrls("fit", source, "-o", tmp_path / "m.npz", stdin=stdin)
    told = csv_rows(dkrls("predict", tmp_path / "m.npz", "--at", "x=2", "--at", "y=1").stdout)
    assert told == [{"x": "2", "y": "1.0", "v": "4.0"}]


def test_bounds_are_kept_by_every_answer_of_a_model(tmp_path: Path) -> None:
    rows = [f"{x},{d},{min(1, max(0, (x - 5) / 2))}" for x in range(11) for d in range(5)]
    (source := tmp_path / "t.csv").write_text("x,day,ice\n" + "\n".join(rows) + "\n")
    given = ("--kernel", "gaussian", "--sigma", "x=1.5", "--sigma", "day=3", "--ridge", "1e-4")
    where = ("--at", "x=3.5,4.5,7.5,8.5", "--at", "day=1.5", "--std")
    answers = {}
    for bounds in ("none", "0,1", "0,"):
        saved = tmp_path / "m.npz"
        words = ("fit", source, "-o", saved, *given, "--overwrite", "--bounds", bounds)
        assert "answers" not in dkrls(*words).stderr
        printed = csv_rows(dkrls("predict", saved, *where).stdout)
        answers[bounds] = [(float(row["ice"]), float(row["ice_std"])) for row in printed]
    free, both, low = (answers[bounds] for bounds in ("none", "0,1", "0,"))
    assert min(free)[0] < 0
    assert max(free)[0] > 1
    assert [value for value, _ in both] == [min(max(value, 0), 1) for value, _ in free]
    assert [value for value, _ in low] == [max(value, 0) for value, _ in free]
    assert all(one[1] < other[1] for one, other in zip(both, free, strict=True))
    (config := tmp_path / "c.toml").write_text("bounds = [0, 1]\n")
    dkrls("fit", source, "-o", saved, *given, "--overwrite", "--config", config)
    assert csv_rows(dkrls("predict", saved, *where).stdout)[0]["ice"] == str(both[0][0])
    assert "'0;1'" in refusal("fit", source, "--dry-run", "--bounds", "0;1", code=2)
    line = refusal("fit", source, "-o", saved, "--overwrite", "--bounds", ",0.5", code=2)
    assert "at or below 0.5, and 20 of 55 values lie outside, from 1 to 1" in line
    assert line.endswith("Option: --bounds.")


def test_scattered_points_are_refused_with_the_options_that_help(tmp_path: Path) -> None:
    rows = "".join(f"{(i * 37 % 101) / 7},{(i * 53 % 97) / 3},{i}\n" for i in range(90))
    (source := tmp_path / "s.csv").write_text(f"x,t,v\n{rows}")
    for words in (["--dry-run"], ["-o", tmp_path / "m.npz"]):
        line = refusal("fit", source, *words)
        assert "looks like 90 scattered points in x and t with values v, not a grid" in line
        assert line.endswith("Options: --var, --levels.")
    assert "scattered points" in refusal("fit", "-", "--dry-run", stdin=source.read_text())


def test_dates_of_two_readings_are_refused(tmp_path: Path) -> None:
    (source := tmp_path / "d.csv").write_text("date,v\n01/01/2020,1\n01/02/2020,2\n")
    line = refusal("fit", source, "--dry-run")
    assert "Line 3" in line
    assert "Write dates as ISO 8601" in line


def test_sigmas_are_shown_with_their_units(globe: Path, tmp_path: Path) -> None:
    given = ("--sigma", "lat=20,lon=40,time=10D", "--ridge", "0.1")
    words = ("fit", globe, "-o", tmp_path / "m.npz", *given)
    plan = dkrls(*words, "--dry-run").stdout
    fitted = dkrls(*words).stdout
    shown = dkrls("info", tmp_path / "m.npz").stdout
    changed = dkrls("update", tmp_path / "m.npz", globe, "--replace").stdout
    measured = dkrls("validate", globe, "--model", tmp_path / "m.npz").stdout
    for told in (plan, fitted, shown, changed, measured):
        for text in ("20 degrees_north", "40 degrees_east", "10 days"):
            assert told.count(text) == 1
        assert "sigma_units" not in told
    for command in (
        ["info", tmp_path / "m.npz"],
        ["validate", globe, "--model", tmp_path / "m.npz"],
    ):
        levels = json.loads(dkrls(*command, "--json").stdout)["levels"]
        assert [(row["sigma"], row["sigma_units"]) for row in levels] == [
            (20.0, "degrees_north"),
            (40.0, "degrees_east"),
            (10.0, "days"),
        ]
    tried = dkrls("fit", globe, "-o", tmp_path / "n.npz", "-v").stderr
    for dim, units in (("lat", "degrees_north"), ("lon", "degrees_east"), ("time", "days")):
        assert f"\n{dim}: error on slices left out, at the best ridge; sigma in {units}\n" in tried


def test_a_fit_takes_dimensions_by_their_roles(globe: Path, tmp_path: Path) -> None:
    given = ("--levels", "longitude,latitude,time", "--sigma", "latitude=20", "--ridge", "0.1")
    told = json.loads(dkrls("fit", globe, "-o", tmp_path / "m.npz", *given, "--json").stdout)
    assert [row["dimension"] for row in told["levels"]] == ["lon", "lat", "time"]
    assert told["levels"][1]["sigma"] == 20.0
    told = json.loads(
        dkrls("validate", globe, "--holdout", "latitude=0.4", "--repeats", "1", "--json").stdout
    )
    assert told["held_out"] == {"lat": 0.4}
    line = refusal("validate", globe, "--holdout", "lt=0.4,time=0.2", code=2)
    assert "no dimension 'lt'. The data has time, lat, lon. Did you mean 'lat'?" in line


def test_a_variable_that_is_nearly_right_gets_a_suggestion(globe: Path, tmp_path: Path) -> None:
    name = json.loads(dkrls("fit", globe, "--dry-run", "--json").stdout)["variable"]
    assert f"Did you mean '{name}'?" in refusal("fit", globe, "--dry-run", "--var", f"{name}x")
    (table := tmp_path / "t.csv").write_text("x,y,flow\n1,1,1\n1,2,2\n2,1,3\n2,2,4\n")
    assert "Did you mean 'flow'?" in refusal("fit", table, "--dry-run", "--var", "flw")


@pytest.mark.parametrize("kind", ["nc", "csv"])
def test_the_history_of_a_model_begins_with_its_fit(
    globe: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    table = tmp_path / "a.csv"
    table.write_text("x,y,t\n" + "".join(f"{x},{y},{x * y}\n" for x in range(4) for y in range(5)))
    source = globe if kind == "nc" else table
    dkrls("fit", source, "-o", tmp_path / "m.npz")
    first, *others = load_model(tmp_path / "m.npz").style.global_attrs["history"].split("\n")
    assert first.startswith(f"1970-01-01T00:00:00Z: dkrls fit {source.name} -o m.npz (dkrls ")
    assert others == (["2001-01-01: made"] if kind == "nc" else [])


def test_a_tolerance_is_reported_by_fit_and_info(globe: Path, tmp_path: Path) -> None:
    saved = tmp_path / "m.npz"
    said = dkrls("fit", globe, "--tolerance", "0.01", "--compact", "-o", saved).stdout
    told = load_model(saved).origin["tolerance"]
    assert 0 < told["rms"] <= told["max"] <= told["limit"]
    for words in (said, dkrls("info", saved).stdout):
        assert re.search(
            r"^tolerance +\S.*\(0.01 of the standard deviation\)$", words, re.MULTILINE
        )
        found = f"at most {told['max']:.4g}, root mean square {told['rms']:.4g}"
        assert re.search(f"^differences +{re.escape(found)}$", words, re.MULTILINE)
        assert len(re.findall("^tolerance ", words, re.MULTILINE)) == 1
    assert json.loads(dkrls("info", saved, "--json").stdout)["origin"]["tolerance"] == told
    again = ("fit", globe, "--tolerance", "0.01", "-o", saved, "--overwrite", "--json")
    assert json.loads(dkrls(*again).stdout)["tolerance"] == told


@pytest.mark.parametrize(("line", "given"), [("1e-2", 0.01), ("'0.01'", 0.01)])
def test_a_tolerance_may_stand_in_a_configuration(
    globe: Path, tmp_path: Path, line: str, given: float
) -> None:
    (config := tmp_path / "c.toml").write_text(f"tolerance = {line}\n")
    dkrls("fit", globe, "--config", config, "-o", tmp_path / "m.npz")
    told = load_model(tmp_path / "m.npz").origin["tolerance"]
    assert told["given"] == f"{given:g} of the standard deviation"


@pytest.fixture
def gappy(tmp_path):
    x, y = np.arange(9.0), np.arange(8.0)
    values = np.sin(np.add.outer(x / 2, y / 3))
    values[np.random.default_rng(1).random((9, 8)) < 0.3] = np.nan
    xr.DataArray(values, {"x": x, "y": y}, ("x", "y"), "t").to_netcdf(tmp_path / "gappy.nc")
    return tmp_path / "gappy.nc"


EXACTLY = ("--kernel", "matern52", "--sigma", 3, "--ridge", "1e-3")


@pytest.mark.parametrize("command", ["fit", "fill"])
def test_missing_cells_that_are_not_solved_for_are_an_error(command, gappy, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SOLVE_LIMIT", 1)
    out = tmp_path / ("m.npz" if command == "fit" else "filled.nc")
    said = refusal(command, gappy, "-o", out, *EXACTLY)
    assert "The missing cells are solved for to" in said
    assert said.endswith("Option: --accept-inexact.")
    assert not out.exists()
    told = dkrls(command, gappy, "-o", out, *EXACTLY, "--accept-inexact")
    assert "Warning: the missing cells are solved for to" in told.stderr


def test_a_group_is_told_by_fit_fill_and_info(gappy, tmp_path):
    group = ("--group", "x,y", *EXACTLY)
    fitted = dkrls("fit", gappy, "-o", tmp_path / "m.npz", *group).stdout
    filled = dkrls("fill", gappy, "-o", tmp_path / "f.nc", *group, "--mask", "none").stdout
    known = dkrls("info", tmp_path / "m.npz").stdout
    for text in (fitted, filled, known):
        assert "x, y share one distance" in text
    said = refusal("fit", gappy, "-o", tmp_path / "n.npz", "--group", "x", code=2)
    assert "Invalid group 'x'. Name two or more dimensions" in said


def test_means_over_cells_are_told_and_kept(tmp_path: Path) -> None:
    axes = {"lat": (LAT, NORTH), "lon": (LON, EAST)}
    source = grid(tmp_path / "a.nc", axes)
    with xr.open_dataset(source) as data:
        told = data.load()
    told.t.attrs["cell_methods"] = "area: mean"
    told.to_netcdf(tmp_path / "b.nc")
    given = ("--kernel", "gaussian", "--sigma", "60", "--ridge", "1e-3")
    result = dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "b.npz", *given)
    assert "--cell-means keeps them as means" in result.stderr
    kept = dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "c.npz", *given, "--cell-means")
    assert "--cell-means" not in kept.stderr
    dkrls("predict", tmp_path / "c.npz", "--mean-along", "lat,lon", "-o", tmp_path / "d.nc")
    with xr.open_dataset(tmp_path / "d.nc") as means:
        assert np.allclose(means.t, told.t, rtol=0, atol=1e-10)
    assert "may be noise" not in dkrls("predict", tmp_path / "c.npz").stderr
    noisy = ("--ridge", "0.1", "--cell-means", "--overwrite")
    dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "c.npz", *given[:-2], *noisy)
    assert "a share of 0.1 may be noise" in dkrls("predict", tmp_path / "c.npz").stderr
    assert "may be noise" not in dkrls("predict", tmp_path / "c.npz", "--smooth").stderr
    along = ("--cell-means-along", "lat", "--overwrite")
    dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "c.npz", *given, *along)
    assert load_model(tmp_path / "c.npz").cell_means == ("lat",)


def test_the_way_across_the_poles_is_an_option(globe: Path, tmp_path: Path) -> None:
    words = ["--sigma", "30", "--ridge", "0.1", "--kernel", "matern32", "--json"]
    told = {}
    for kind in ("vector", "none"):
        path = tmp_path / f"{kind}.npz"
        told[kind] = json.loads(dkrls("fit", globe, "-o", path, *words, "--poles", kind).stdout)
        assert json.loads(dkrls("info", path, "--json").stdout)["poles"] == told[kind]["poles"]
    assert told["vector"]["poles"] == {"kind": "vector", "rows": [2, 2]}
    assert told["none"]["poles"] is None
    planned = json.loads(dkrls("fit", globe, "--dry-run", "--json").stdout)
    assert planned["poles"] == "auto"


def test_settings_that_were_given_up_have_no_row_among_those_tried(capsys) -> None:
    kernels = [Kernel("gaussian", sigma) for sigma in (1.0, 2.0)]
    known, lost = Candidate(kernels[0], 0.1, 0.5), Candidate(kernels[1], 0.1, math.inf, reached=9.0)
    for choice, rows in ((LevelChoice(known, (known, lost)), 1), (LevelChoice(lost, (lost,)), 0)):
        print_choice = choice_printer(Report(verbose=True), [axis_of("x", [0.0, 1.0])])
        print_choice("x", replace(choice, measure="cells"))
        printed = capsys.readouterr().err
        assert "x: error on hidden cells, at the best ridge" in printed
        assert printed.count("gaussian") == rows
        assert ("every setting was given up" in printed) == (rows == 0)
