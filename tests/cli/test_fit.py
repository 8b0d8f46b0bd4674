"""``dkrls fit``: what is written, printed and refused."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from shell import HERE, ROOT, csv_rows, dkrls, refusal

from dkrls_cli import load_model


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


def test_memory_is_refused_before_it_is_used(globe: Path, tmp_path: Path) -> None:
    for words in (
        ["fit", globe, "-o", tmp_path / "m.npz"],
        ["validate", globe, "--holdout", "0.2"],
    ):
        line = refusal(*words, "--max-memory", "2kB")
        assert re.search(r"needs about \d+(\.\d+)? kB of memory, more than --max-memory 2 kB", line)
        assert "'lots' is not a size" in refusal(*words, "--max-memory", "lots", code=2)
    dkrls("fit", globe, "-o", tmp_path / "m.npz", "--max-memory", "1.5GiB")


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
        (["--noise", "none"], "Choose from: level, joint, auto."),
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
