"""``dkrls fit``: what is written, printed and refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from shell import ROOT, dkrls, refusal

from dkrls_cli import load_model
from dkrls_cli.model.training import joint


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
    level = (*given[:-1], "lat=1e-4", "--noise", "level", "--json")
    told = json.loads(dkrls("fit", source, "-o", tmp_path / "n.npz", *level).stdout)
    assert told["joint_ridge"] is None
    assert told["missing"]["share"] == pytest.approx(0.3136, abs=1e-4)


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


def test_a_model_is_not_overwritten_unless_asked(globe: Path, tmp_path: Path) -> None:
    (target := tmp_path / "m.npz").write_text("mine")
    assert "exists already" in refusal("fit", globe, "-o", target)
    assert target.read_text() == "mine"
    dkrls("fit", globe, "-o", target, "--overwrite")
    assert "There is no folder" in refusal("fit", globe, "-o", tmp_path / "x" / "m.npz")


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
    monkeypatch.setattr(joint, "SOLVE_LIMIT", 1)
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
