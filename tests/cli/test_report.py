"""What every command prints: results, notes, errors and exit codes."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import sample_files as files
import typer
from sample_files import LAT, LON
from shell import HERE, POINTS, ROOT, dkrls, refusal, spawn

from dkrls_cli.cli.commands.predict import predict
from dkrls_cli.cli.report import (
    HINTS,
    Report,
    command_line,
    edge,
    error_line,
    refuse_closed_stdout,
)
from dkrls_cli.cli.terminal.tables import pairs
from dkrls_cli.errors import InputError, ModelFileError, OutputError, SettingError
from dkrls_cli.files.output.atomic import copy_to_stdout


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
        "cells": 12 * LAT.size * LON.size,
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


@pytest.mark.slow
def test_exit_codes_of_processes(model: Path, globe: Path, tmp_path: Path) -> None:
    bad = files.REFUSED["missing_as_nan"][0](tmp_path)
    runs = {
        0: spawn("predict", model, *HERE),
        1: spawn("fit", bad, "-o", tmp_path / "m.npz", "--missing", "error"),
        2: spawn("fit", globe, "--no-such-option"),
        3: spawn("validate", globe, "--model", model, "--fail-above", "rmse=-1"),
    }
    assert {code: run.returncode for code, run in runs.items()} == {code: code for code in runs}
    assert runs[1].stderr.count("Error: ") == 1
    assert runs[1].stderr.splitlines()[-1].startswith("Error: 2 of 30 cells")
    assert "No such option" in runs[2].stderr
    assert not any("Traceback" in run.stderr or "\x1b" in run.stderr for run in runs.values())


def test_debug_shows_where(tmp_path: Path) -> None:
    run = spawn("fit", tmp_path / "absent.nc", "-o", tmp_path / "m.npz", "--debug")
    assert run.returncode == 1
    assert "InputError" in run.stderr
    assert "reading.py" in re.sub(r"[\s│]", "", run.stderr)  # it may be wrapped in a box


def test_no_color_is_respected(model: Path) -> None:
    env = {**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1", "PYTHONPATH": str(ROOT)}
    for words in (["info", model], ["predict", model, "--bogus"]):
        run = spawn(*words, env=env)
        assert not re.search(r"\x1b\[\d*;?3[0-7]m", run.stdout + run.stderr)


# Quiet --------------------------------------------------------------------------------------------


@pytest.fixture
def summaries(model: Path, globe: Path, tmp_path: Path) -> dict[str, list[object]]:
    """Commands whose result is a summary."""
    (copy := tmp_path / "copy.npz").write_bytes(model.read_bytes())
    later = files.timed(tmp_path / "later.nc", "days since 2020-01-01", "standard")
    dkrls("fit", later, *GIVEN.split(), "-o", tmp_path / "later.npz")
    race = ["--methods", "linear", "--seeds", "1"]
    return {
        "fit": ["fit", globe, *GIVEN.split(), "-o", tmp_path / "m.npz", "--overwrite"],
        "dry run": ["fit", globe, "--dry-run"],
        "fill": ["fill", globe, "-o", tmp_path / "f.nc", "--overwrite"],
        "update": ["update", tmp_path / "later.npz", later, "--replace"],
        "validate": ["validate", globe, "--model", copy],
        "held out": ["validate", globe, *GIVEN.split(), "--holdout", "lat=0.2", "--repeats", "1"],
        "info": ["info", copy],
        "race": ["bench", "real", globe, *race],
    }


@pytest.mark.slow
def test_quiet_prints_no_summary_unless_json_asks_for_it(
    summaries: dict[str, list[object]],
) -> None:
    for name, words in summaries.items():
        silent = dkrls(*words, "-q")
        assert (silent.stdout, silent.stderr) == ("", ""), name
        assert dkrls(*words).stdout != "", name
        told = dkrls(*words, "-q", "--json")
        assert json.loads(told.stdout), name
        assert told.stderr == "", name


def test_quiet_prints_data_that_was_asked_for(model: Path, tmp_path: Path) -> None:
    words = ["predict", model, *HERE]
    assert dkrls(*words, "-q").stdout == dkrls(*words).stdout
    points = ["predict", model, "--points", "-"]
    assert dkrls(*points, "-q", stdin=POINTS).stdout == dkrls(*points, stdin=POINTS).stdout
    text = "time,heat\n" + "".join(f"{t},{t % 5}\n" for t in range(20))
    (tmp_path / "t.csv").write_text(text)
    dkrls("fit", tmp_path / "t.csv", "-o", tmp_path / "t.npz")
    forecasts = dkrls("stream", tmp_path / "t.npz", "-q", stdin="time,heat\n20,1\n21,2\n")
    assert len(forecasts.stdout.splitlines()) == 3
    assert forecasts.stderr == ""


def test_quiet_still_prints_errors(tmp_path: Path) -> None:
    assert "There is no" in refusal("info", tmp_path / "absent.npz", "-q")


def test_quiet_still_ends_with_3_when_a_threshold_is_missed(model: Path, globe: Path) -> None:
    words = ["validate", globe, "--model", model, "--fail-above", "rmse=-1", "-q"]
    assert dkrls(*words, code=3).output == ""


# Report -------------------------------------------------------------------------------------------


def printed(report: Report, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    report.note("note")
    report.detail(pairs({"more": 1}))
    report.part("part", "", "more")
    bad = [float("nan"), float("inf"), (1.5, None)]
    report.result({"n": 1, "bad": bad}, "text", pairs({"n": 1}))
    return tuple(capsys.readouterr())


def test_what_is_printed_with_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    data = '{"n": 1, "bad": [null, null, [1.5, null]]}\n'
    text = "part\n\nmore\n\ntext\n\nn  1\n"
    assert printed(Report(), capsys) == (text, "note\n")
    assert printed(Report(verbose=True), capsys) == (text, "note\nmore  1\n")
    assert printed(Report(json=True), capsys) == (data, "note\n")
    assert printed(Report(quiet=True, verbose=True), capsys) == ("", "")
    assert printed(Report(json=True, quiet=True), capsys) == (data, "")


def test_a_terminal_is_drawn_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    drawn: list[object] = []
    monkeypatch.setattr("dkrls_cli.cli.terminal.tables.draw", drawn.append)
    Report().result({}, "text", "", "more")
    assert drawn == [["text", "more"]]
    Report().part("text")
    assert drawn[1:] == [["text"]]
    assert capsys.readouterr().out == "\n"
    Report(json=True).result({"n": 1})
    assert capsys.readouterr().out == '{"n": 1}\n'


def test_a_closed_stderr_gets_no_notes_and_neither_does_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    Report().note("note")
    assert capsys.readouterr().out == ""


def test_work_is_shown_unless_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def show(what: str, total_bytes: float | None) -> object:
        shown.append(what)
        return nullcontext(shown.append)

    monkeypatch.setattr("dkrls_cli.cli.terminal.progress.show_progress", show)
    for quiet in (False, True):
        with Report(quiet=quiet).working("counting") as set_fraction:
            set_fraction(0.5)
    assert shown == ["counting", 0.5]


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SettingError("Wrong."), 2, "Wrong."),
        (InputError("Bad\n  data."), 1, "Bad data."),
        (ModelFileError("No model."), 1, "No model."),
        (SettingError("Far.", setting="outside"), 2, "Far. --outside missing leaves them out"),
        (OutputError("It exists.", setting="overwrite"), 1, "It exists. Option: --overwrite."),
        (InputError("Big.", setting="max_memory"), 1, "Big. Option: --max-memory."),
        (MemoryError("9 GB"), 1, "Not enough memory (9 GB). Use a part of the grid, or --float32."),
        (FileNotFoundError(2, "No such file", "a.nc"), 1, "No such file: 'a.nc'"),
        (OSError(28, "No space left"), 1, "No space left"),
        (OSError("odd"), 1, "odd"),
        (
            KeyError("x"),
            1,
            "KeyError: 'x'. This should not happen: please report it, with what --debug shows.",
        ),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: Exception, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, edge(False):
        raise error
    assert ended.value.exit_code == code
    told = capsys.readouterr().err
    assert told.startswith(f"Error: {line}")
    assert told == f"Error: {error_line(error)}\n"
    with pytest.raises(type(error)), edge(True):
        raise error


def test_an_interrupt_ends_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, edge(False):
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_an_exit_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, edge(False):
        raise typer.Exit(3)
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err == ""


def test_hints_name_options_that_exist() -> None:
    for settings, hint in HINTS.items():
        first, *others = settings.split()
        assert f"--{first.replace('_', '-')}" in hint
        assert {first, *others} <= set(inspect.signature(predict).parameters)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [(None, ""), ("max_gap", " Option: --max-gap."), ("var levels", " Options: --var, --levels.")],
)
def test_the_options_of_a_setting_are_added(setting: str | None, hint: str) -> None:
    assert error_line(SettingError("Wrong.", setting=setting)) == f"Wrong.{hint}"


def test_refusals_name_the_option_that_helps(tmp_path: Path) -> None:
    taken = tmp_path / "m.npz"
    taken.touch()
    sensors = ROOT / "sample_data" / "sensors.csv"
    assert refusal("fit", sensors, "-o", taken).endswith("replaced. Option: --overwrite.")
    (tmp_path / "odd.csv").write_text("a,b,c,d\n1,1,1,1\n1,1,2,2\n")
    line = refusal("fit", tmp_path / "odd.csv", "--levels", "a,b", "-o", tmp_path / "n.npz")
    assert line.endswith("by its name. Option: --var.")


def test_the_running_command_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/python -m dkrls_cli", "info", "a b.npz"])
    assert command_line() == ["dkrls", "info", "a b.npz"]


# Streams that are closed or full ------------------------------------------------------------------

GIVEN = "--kernel gaussian --sigma 20 --ridge 1e-3"
NO_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    line = command.replace("dkrls ", f"'{sys.executable}' -m dkrls_cli ", 1)
    return subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.skipif(os.name == "nt", reason="no such shell there")
def test_a_fit_that_nobody_hears_is_a_fit(globe: Path, tmp_path: Path) -> None:
    for number, ends in enumerate(("2>&-", ">&- 2>&-", "<&- >&- 2>&-")):
        run = shell(f"dkrls fit '{globe}' -o '{tmp_path}/{number}.npz' {GIVEN} {ends}")
        assert run.returncode == 0, (ends, run.stderr)
        dkrls("info", tmp_path / f"{number}.npz")


@NO_FULL
def test_outputs_that_are_full_are_one_line(globe: Path, model: Path, tmp_path: Path) -> None:
    for words in ("--version", "--help", f"predict '{model}'", f"info '{model}'"):
        run = shell(f"dkrls {words} >/dev/full")
        lines = [line for line in run.stderr.splitlines() if " s)" not in line]  # but progress
        assert (run.returncode, len(lines)) == (1, 1), (words, run.stderr)
        assert "No space left on device" in lines[0]
    run = shell(f"dkrls fit '{globe}' -o '{tmp_path}/m.npz' {GIVEN} 2>/dev/full")
    assert run.returncode == 0
    dkrls("info", tmp_path / "m.npz")


@pytest.mark.skipif(os.name == "nt", reason="no such shell there")
def test_answers_need_an_output_that_is_open(model: Path) -> None:
    run = shell(f"dkrls predict '{model}' >&-")
    assert run.returncode == 1
    assert run.stderr == (
        "Error: Standard output is closed, and the answers go there. Give -o OUT.\n"
    )


def test_a_closed_output_is_refused_for_answers_and_no_matter_for_summaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputError, match="Standard output is closed"):
        refuse_closed_stdout()
    with pytest.raises(OutputError, match="Standard output is closed"):
        copy_to_stdout(Path(__file__))
    with edge(False), pytest.raises(OutputError, match="Standard output is closed"):
        refuse_closed_stdout()
    sys.stdout.close()


class Full(io.StringIO):
    """A stream that takes nothing."""

    def write(self, _: str) -> int:
        raise OSError(28, "No space left on device")


def test_notes_that_cannot_be_written_fail_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Full(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        Report(verbose=True).note("unheard")
        with pytest.raises(typer.Exit), edge(False):
            raise InputError("unheard")


def test_a_character_that_the_output_cannot_hold_is_named() -> None:
    error = UnicodeEncodeError("ascii", "a\u00e9", 1, 2, "ordinal not in range")
    assert error_line(error) == (
        "'\u00e9' cannot be written in the encoding of the output, ascii. Set "
        "PYTHONIOENCODING=utf-8, or write to a file."
    )


@pytest.mark.skipif(os.name == "nt", reason="no such shell there")
def test_no_file_stands_in_for_a_stream_that_is_closed() -> None:
    code = (
        "import os; from dkrls_cli.cli import _fill_closed_streams; _fill_closed_streams(); "
        "os.write(1, str(os.open(os.devnull, os.O_RDONLY)).encode())"
    )
    for ends in ("2>&-", "<&- 2>&-", ""):
        line = f"'{sys.executable}' -c '{code}' {ends}"
        run = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
        assert int(run.stdout) > 2


@pytest.mark.parametrize(
    ("options", "on_terminal", "told"),
    [
        ({}, True, "Next: dkrls fit 'a b.nc' -o m.npz\n"),
        ({}, False, ""),
        ({"quiet": True}, True, ""),
        ({"json": True}, True, ""),
    ],
)
def test_the_next_command_is_suggested_to_people_only(
    options: dict[str, bool],
    on_terminal: bool,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: on_terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Report(**options).next_step("fit", "a b.nc", "-o", "m.npz")
    assert capsys.readouterr() == ("", told)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    Report(**options).next_step("fit", "a b.nc")
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What commands show that they are doing."""
    steps: list[str] = []

    def show(what: str, total_bytes: float | None) -> object:
        steps.append(what.split(maxsplit=1)[0])
        return nullcontext(lambda fraction: steps.append(f"{100 * fraction:.0f} %"))

    monkeypatch.setattr("dkrls_cli.cli.terminal.progress.show_progress", show)
    return steps


def test_every_step_of_a_command_is_shown(
    globe: Path, model: Path, tmp_path: Path, shown: list[str]
) -> None:
    def steps(*words: object) -> list[str]:
        shown.clear()
        dkrls(*words)
        return list(shown)

    new = tmp_path / "m.npz"
    fitting = ["opening", "reading", "fitting", "25 %", "50 %", "75 %"]
    assert steps("fit", globe, "--poles", "none", "-o", new) == [*fitting, "writing"]
    predicting = ["reading", "predicting", "100 %"]
    assert steps("predict", model, "-o", tmp_path / "o.nc") == [*predicting, "writing"]
    assert steps("predict", model, "-o", tmp_path / "o.csv") == predicting
    assert steps("predict", model) == predicting
    fixed = ("--sigma", "30", "--kernel", "gaussian", "--ridge", "1e-3")
    regridding = ("regrid", globe, "--like", "r8x5", *fixed, "-o", tmp_path / "r.nc")
    expected = ["opening", "reading", "fitting", "predicting", "100 %", "writing"]
    assert steps(*regridding) == expected
    assert steps("fill", globe, "-o", tmp_path / "f.nc")[-1] == "writing"
    assert steps("check", globe, "-o", tmp_path / "c.nc")[-2:] == ["checking", "writing"]
    updating = steps("update", model, globe, "--replace", "-o", tmp_path / "u.npz")
    assert updating == ["reading", "reading", "learning", "writing"]
    assert steps("info", model) == ["reading"]
    assert steps("info", model, "--weights", tmp_path / "w.nc") == ["reading", "writing"]
    measured = steps("validate", globe, "--model", model)
    assert measured == ["reading", "opening", "reading", "predicting"]
    assert steps("check", model, globe)[0] == "reading"


def test_the_spread_of_the_data_stands_beside_the_error(globe: Path, tmp_path: Path) -> None:
    import xarray as xr

    model, gappy = tmp_path / "m.npz", tmp_path / "g.nc"
    with xr.open_dataset(globe) as data:
        (name,) = data.data_vars
        values = data[name].values
        data.assign({name: data[name].where(data[name] > data[name].min())}).to_netcdf(gappy)
    told = json.loads(dkrls("fit", globe, "-o", model, "--json").stdout)
    assert told["data_std"] == pytest.approx(values.std(), rel=1e-6)
    assert json.loads(dkrls("info", model, "--json").stdout)["data_std"] == told["data_std"]
    at = ("--like", "r8x5", "-o", tmp_path / "r.nc", "--json")
    assert json.loads(dkrls("regrid", globe, *at).stdout)["data_std"] == told["data_std"]
    filled = json.loads(dkrls("fill", gappy, "-o", tmp_path / "f.nc", "--json").stdout)
    observed = values[values > values.min()]
    assert filled["data_std"] == pytest.approx(observed.std(), rel=1e-6)
    for words in (("info", model), ("fit", globe, "-o", model, "--overwrite")):
        assert re.search(
            r"^cv error +lat .* % of the standard deviation$", dkrls(*words).stdout, re.M
        )
