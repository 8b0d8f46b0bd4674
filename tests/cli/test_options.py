"""Options: closed sets, limits, and settings of dimensions, on the command line and in a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from shell import dkrls, refusal

from dkrls_cli.cli import options as opt

# Closed sets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        (["fit", "absent.nc", "--dry-run", "--missing", "x"], "model, error"),
        (["fit", "absent.nc", "-o", "m.npz", "--missing", "x"], "model, error"),
        (["fit", "absent.nc", "--dry-run", "--noise", "x"], "level, joint, auto"),
        (["validate", "absent.nc", "--holdout", "0.2", "--missing", "x"], "model, error"),
        (["validate", "absent.nc", "--holdout", "0.2", "--noise", "x"], "level, joint, auto"),
        (["predict", "absent.npz", "--format", "x"], "csv, jsonl, nc"),
        (["stream", "absent.npz", "--format", "x"], "csv, jsonl"),
    ],
)
def test_a_word_outside_a_closed_set_is_refused_before_any_file_is_read(
    words: list[str], choices: str
) -> None:
    line = refusal(*words, code=2)
    option = words[-2]
    expected = f"Error: Invalid value for '{option}': 'x'. Choose from: {choices}. "
    assert line == f"{expected}Try 'dkrls {words[0]} --help'."


def settings_of(*words: Any) -> dict[str, dict[str, Any]]:
    levels = json.loads(dkrls("fit", *words, "--dry-run", "--json").stdout)["levels"]
    return {level["dimension"]: level for level in levels}


def test_most_of_the_free_memory_is_the_limit_unless_another_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dkrls_cli.memory.available_bytes", lambda: 5e9)
    assert opt.RunOptions().memory_limit == 4e9
    assert opt.RunOptions(max_memory="2kB").memory_limit == 2000
    assert opt.RunOptions(max_memory="none").memory_limit == math.inf


def test_a_locked_model_is_waited_for_a_minute() -> None:
    assert opt.InPlaceOptions() == opt.InPlaceOptions(wait=60.0, overwrite=False)


# Durations and pairs, on the command line and in a file


@pytest.mark.parametrize(
    "words",
    [
        ["--sigma", "latitude=10,time=30D", "--period", "lon=none,time=1Y"],
        ["--sigma", "lat=10", "--sigma", "time=30D", "--period", "lon=none", "--period", "time=1Y"],
    ],
)
def test_settings_of_several_dimensions(globe: Path, tmp_path: Path, words: list[str]) -> None:
    levels = settings_of(globe, *words)
    assert (levels["lat"]["sigma"], levels["time"]["sigma"]) == (10, 30)
    assert levels["time"]["period"] == pytest.approx(365.2425)
    assert levels["lon"]["period"] is None
    for text in (
        'sigma = "latitude=10,time=30D"\nperiod = "lon=none,time=1Y"\n',
        '[sigma]\nlatitude = 10\ntime = "30D"\n[period]\nlon = "none"\ntime = "1Y"\n',
    ):
        (path := tmp_path / "run.toml").write_text(text)
        assert settings_of(globe, "--config", path) == levels


@pytest.mark.parametrize("option", ["kernel", "ridge"])
def test_kernels_and_ridges_in_pairs(globe: Path, option: str) -> None:
    one, other = ("gaussian", "matern12") if option == "kernel" else ("0.5", "0.25")
    levels = settings_of(globe, f"--{option}", f"latitude={one},lon={other}")
    assert [str(levels[dim][option]) for dim in ("lat", "lon", "time")] == [one, other, "auto"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--sigma", "lat=30D"], "Invalid sigma '30D' of 'lat', which has no dates. Give a number"),
        (["--sigma", "time=30Q"], "Invalid sigma '30Q'. Give a number, a duration such as 30D"),
        (["--sigma", "lat=10,20"], "Invalid sigma '10,20'"),
        (["--sigma", "tme=3"], "Did you mean 'time'?"),
    ],
)
def test_nonsense_is_refused_in_one_line(globe: Path, words: list[str], reason: str) -> None:
    assert reason in refusal("fit", globe, "--dry-run", *words, code=2)


# Whole levels
