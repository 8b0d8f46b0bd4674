"""``dkrls stream``: forecasts as slices come, and a model that is never lost."""

from __future__ import annotations

import array
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shell import PATIENCE, ROOT, csv_rows, dkrls, refusal

from dkrls_cli import load_model

if os.name != "nt":
    import fcntl
    import termios

SENSORS = ["north", "south", "roof, west"]
SETTINGS = ["--kernel", "matern32", "--sigma", "time=0.3", "--sigma", "sensor=2", "--ridge", "1e-3"]


def lines(start: int, stop: int, holes: bool = False) -> list[dict[str, Any]]:
    """Rows of half-hours of three sensors."""
    rng = np.random.default_rng(4)
    truth = np.sin(np.arange(200)[:, None] / 9 + np.arange(3)) + 0.05 * rng.normal(size=(200, 3))
    return [
        {
            "time": f"2024-01-{1 + i // 48:02d}T{i // 2 % 24:02d}:{30 * (i % 2):02d}:00",
            "sensor": sensor,
            "heat": "" if holes and (i + s) % 7 == 0 else round(8 + truth[i, s], 4),
        }
        for i in range(start, stop)
        for s, sensor in enumerate(SENSORS)
    ]


def as_csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps({**row, "heat": row["heat"] or None}) + "\n" for row in rows)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "old.csv").write_text(as_csv(lines(0, 60)))
    path = tmp_path / "m.npz"
    dkrls("fit", tmp_path / "old.csv", "-o", path, "--levels", "sensor,time", *SETTINGS)
    return path


def slices(path: Path) -> int:
    return load_model(path).axes[load_model(path).grows].size


def test_each_slice_is_forecast_and_then_learnt(model: Path, tmp_path: Path) -> None:
    new = lines(60, 80)
    first = dkrls("predict", model, "--at", f"time={new[0]['time']}", "--allow-extrapolation")
    result = dkrls("stream", model, "--std", stdin=as_csv(new))
    rows = csv_rows(result.stdout)
    assert list(rows[0]) == ["sensor", "time", "heat", "predicted", "error", "std"]
    assert len(rows) == 60
    expected = [float(row["heat"]) for row in csv_rows(first.stdout)]
    assert [float(row["predicted"]) for row in rows[:3]] == pytest.approx(expected, rel=1e-9)
    for row, given in zip(rows, new, strict=True):
        assert row["sensor"] == given["sensor"]
        assert float(row["heat"]) == given["heat"]
        assert float(row["error"]) == pytest.approx(float(row["predicted"]) - given["heat"])
        assert float(row["std"]) > 0
    assert "20 slices learnt" in result.stderr
    assert slices(model) == 80
    updated = tmp_path / "u.npz"
    (tmp_path / "old.csv").write_text(as_csv(lines(0, 60)))
    (tmp_path / "new.csv").write_text(as_csv(new))
    dkrls("fit", tmp_path / "old.csv", "-o", updated, "--levels", "sensor,time", *SETTINGS)
    dkrls("update", updated, tmp_path / "new.csv")
    at = ["--at", "time=2024-01-02T10:07"]
    answers = [csv_rows(dkrls("predict", path, *at).stdout) for path in (model, updated)]
    for one, two in zip(*answers, strict=True):
        assert float(one["heat"]) == pytest.approx(float(two["heat"]), rel=1e-9)


@pytest.mark.parametrize("options", [[], ["--retune"], ["--window", "20"], ["--max-rank", "30"]])
def test_json_lines_and_gaps(model: Path, options: list[str]) -> None:
    result = dkrls("stream", model, *options, stdin=as_json(lines(60, 80, holes=True)))
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 60
    assert {row["heat"] is None for row in rows} == {True, False}
    assert all((row["error"] is None) == (row["heat"] is None) for row in rows)
    assert all(abs(row["predicted"] - 8) < 3 for row in rows)
    kept = {"--window": 20, "--max-rank": 30}
    assert slices(model) == kept.get(options[0] if options else "", 80)


def test_a_format_and_another_file(model: Path, tmp_path: Path) -> None:
    before, out = model.read_bytes(), tmp_path / "out.npz"
    text = as_csv(lines(60, 64))
    result = dkrls("stream", model, "-o", out, "--format", "jsonl", stdin=text)
    assert json.loads(result.stdout.splitlines()[0])["sensor"] == "north"
    assert model.read_bytes() == before
    assert slices(out) == 64
    assert "exists" in refusal("stream", model, "-o", out, stdin=text)
    dkrls("stream", model, "-o", out, "--overwrite", stdin=text)


def test_one_object_instead_of_rows(model: Path) -> None:
    told = json.loads(dkrls("stream", model, "--json", stdin=as_csv(lines(60, 80))).stdout)
    assert told["slices"] == 20
    assert told["skipped"] == 0
    assert 0 < told["rmse"] < told["last_value_rmse"] * 1.2
    assert not told["stopped"]


def test_what_is_known_is_skipped_or_replaced(model: Path) -> None:
    again = as_csv(lines(55, 65))
    told = json.loads(dkrls("stream", model, "--json", stdin=again).stdout)
    assert (told["slices"], told["skipped"]) == (5, 5)
    told = json.loads(dkrls("stream", model, "--json", "--replace", stdin=again).stdout)
    assert (told["slices"], told["skipped"]) == (10, 0)
    assert slices(model) == 65


def test_what_a_window_has_left_behind_is_skipped(model: Path) -> None:
    text = as_csv(lines(50, 80))
    for learnt, skipped in ((20, 10), (0, 30)):
        told = dkrls("stream", model, "--json", "--window", 12, stdin=text).stdout
        assert [json.loads(told)[key] for key in ("slices", "skipped")] == [learnt, skipped]
    assert "too old" in dkrls("stream", model, "--window", 12, stdin=text).stderr
    told = dkrls("stream", model, "--json", "--window", 12, "--replace", stdin=text).stdout
    assert [json.loads(told)[key] for key in ("slices", "skipped")] == [12, 18]
    assert slices(model) == 12


def test_a_slice_without_any_value_is_told_and_forgotten(model: Path) -> None:
    empty = [{**row, "heat": ""} for row in lines(60, 61)]
    result = dkrls("stream", model, stdin=as_csv(empty))
    assert "nan" not in result.stderr
    assert len(csv_rows(result.stdout)) == 3
    assert slices(model) == 60


def test_bad_rows_end_it_and_lose_nothing(model: Path) -> None:
    text = as_csv(lines(60, 64)) + "2024-01-02T08:00:00,north,hot\n"
    result = dkrls("stream", model, stdin=text, code=1)
    assert "Line 14 of standard input has 'hot'" in result.stderr
    assert len(csv_rows(result.stdout)) == 12
    assert slices(model) == 64


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("time", [1, 2], r"Line 1 .* has \[1, 2\] for a coordinate of 'time'"),
        ("time", None, "has null for a coordinate of 'time'"),
        ("time", float("nan"), "Line 1 .* 'time' is nan"),
        ("time", "nan", "'nan'"),
        ("sensor", {"name": "north"}, "for a coordinate of 'sensor'"),
        ("heat", 10**400, "Line 1 .* for a value"),
        ("heat", [8.0], "for a value"),
    ],
)
def test_json_of_the_wrong_kind_is_refused(model: Path, name: str, value: Any, reason: str) -> None:
    before = model.read_bytes()
    row = {**lines(60, 61)[0], name: value}
    line = refusal("stream", model, stdin=json.dumps(row) + "\n")
    assert re.search(reason, line)
    assert model.read_bytes() == before


def test_numbers_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    text = "time,heat\n" + "".join(f"{t},{np.sin(t / 3)}\n" for t in range(20))
    (tmp_path / "old.csv").write_text(text)
    model = tmp_path / "m.npz"
    dkrls("fit", tmp_path / "old.csv", "-o", model)
    for wrong in ("nan", "inf", "2_0", "", "1" + "0" * 400):
        assert "Line 2" in refusal("stream", model, stdin=f"time,heat\n{wrong},1\n")
    assert "Line 1" in refusal("stream", model, stdin=f'{{"time": 1{"0" * 400}, "heat": 1}}\n')


def test_comments_may_stand_before_json_lines(model: Path) -> None:
    dkrls("stream", model, stdin="# from the roof\n\n" + as_json(lines(60, 62)))
    assert slices(model) == 62


def test_what_a_file_means_by_missing_a_stream_does_too(model: Path) -> None:
    rows = [
        {**row, "heat": 9.96921e36 if i == 1 else row["heat"]}
        for i, row in enumerate(lines(60, 61))
    ]
    told = csv_rows(dkrls("stream", model, stdin=as_csv(rows)).stdout)
    assert [row["heat"] == "" for row in told] == [False, True, False]


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (["--save-every", "often"], 2, "--save-every"),
        (["--save-every", "0"], 2, "--save-every"),
        (["--save-every", f"{10**12}h"], 2, "--save-every"),
        (["--format", "nc"], 2, "format"),
        ([], 1, "empty"),
    ],
)
def test_wrong_words_are_refused(model: Path, options: list[str], code: int, reason: str) -> None:
    before = model.read_bytes()
    assert reason in refusal("stream", model, *options, code=code, stdin="")
    assert model.read_bytes() == before


def test_a_drift_is_warned_of_once(model: Path) -> None:
    far = [
        {**row, "heat": float(row["heat"]) * (-1) ** i * 40} for i, row in enumerate(lines(60, 90))
    ]
    told = dkrls("stream", model, stdin=as_csv(far)).stderr
    assert told.count("times the standard error that the model predicted") == 1
    told = dkrls("stream", model, "--retune", "--replace", stdin=as_csv(far)).stderr
    assert "Warning" not in told


# --- as a process -------------------------------------------------------------------------------

needs_signals = pytest.mark.skipif(os.name == "nt", reason="no such signals there")


def started(model: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dkrls_cli", "stream", str(model), *options]
    pipe = subprocess.PIPE
    env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    ends = {"stdin": pipe, "stdout": pipe, "stderr": pipe}
    return subprocess.Popen(command, cwd=ROOT, **ends, text=True, env=env)


def fed(process: subprocess.Popen[str], rows: list[dict[str, Any]], header: bool = True) -> None:
    assert process.stdin
    text = as_csv(rows)
    process.stdin.write(text if header else text.partition("\n")[2])
    process.stdin.flush()


def unread_bytes(process: subprocess.Popen[str]) -> int:
    """Return how much of its input a process has not read yet."""
    assert process.stdin
    count = array.array("i", [0])
    fcntl.ioctl(process.stdin, termios.FIONREAD, count)
    return count[0]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, as long as a busy machine may need."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def answered(process: subprocess.Popen[str], count: int) -> list[str]:
    """Return lines of the output; a process that does not write them is killed."""
    assert process.stdout
    killer = threading.Timer(PATIENCE, process.kill)
    killer.start()
    try:
        return list(filter(None, [process.stdout.readline() for _ in range(count)]))
    finally:
        killer.cancel()


def test_a_slice_is_answered_before_the_next_one_comes(model: Path) -> None:
    process = started(model)
    fed(process, lines(60, 61))
    assert len(answered(process, 4)) == 4
    fed(process, lines(61, 62), header=False)
    assert all("T06:30" in line for line in answered(process, 3))
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "2 slices" in told
    assert slices(model) == 62


@needs_signals
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_saves(model: Path, number: signal.Signals) -> None:
    process = started(model)
    fed(process, lines(60, 65))
    answered(process, 16)
    fed(process, lines(65, 66)[:1], header=False)  # a slice that is not whole is not learnt
    wait_until(lambda: unread_bytes(process) == 0)
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert told.startswith("Stopped: 5 slices")
    assert slices(model) == 65


@needs_signals
@pytest.mark.parametrize(("every", "saved"), [("2", 64), ("1s", 65)])
def test_killed_it_has_saved_in_time(model: Path, every: str, saved: int) -> None:
    process = started(model, "--save-every", every)
    fed(process, lines(60, 65))
    answered(process, 16)  # the fifth slice is answered after the fourth was saved
    wait_until(lambda: slices(model) == saved)
    process.kill()
    process.communicate()
    assert slices(model) == saved
    dkrls("stream", model, "--wait", "0", stdin=as_csv(lines(60, 70)))
    assert slices(model) == 70


@needs_signals
def test_a_reader_that_goes_away_loses_nothing(model: Path) -> None:
    process = started(model)
    fed(process, lines(60, 62))
    answered(process, 7)
    assert process.stdout
    process.stdout.close()
    fed(process, lines(62, 70), header=False)
    assert process.stdin
    assert process.stderr
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    assert process.stderr.read() == ""
    process.stderr.close()
    assert slices(model) >= 63


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_full_outputs_are_told_and_what_was_learnt_is_kept(model: Path) -> None:
    command = [sys.executable, "-m", "dkrls_cli", "stream", str(model)]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command,
            input=as_csv(lines(60, 62)),
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: Standard output cannot be written")
    assert slices(model) == 61


@needs_signals
def test_closed_ends_are_no_riddle(model: Path, tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m dkrls_cli stream '{model}'"
    (tmp_path / "new.csv").write_text(as_csv(lines(60, 62)))

    def ended(ends: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            f"{command} {ends}", shell=True, cwd=ROOT, capture_output=True, text=True, check=False
        )

    closed = ended("<&-")
    assert (closed.returncode, closed.stderr.count("\n")) == (1, 1)
    assert "standard input is closed" in closed.stderr
    unheard = ended(f"< '{tmp_path / 'new.csv'}' >&-")
    assert unheard.returncode == 0, unheard.stderr
    assert slices(model) == 62


@needs_signals
def test_told_to_stop_while_it_saves_it_saves(model: Path) -> None:
    program = (
        "import os, signal\n"
        "from dkrls_cli.files import npz\n"
        "from dkrls_cli.__main__ import main\n"
        "write = npz.write\n"
        "def interrupted(*given, **how):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    write(*given, **how)\n"
        "npz.write = interrupted\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "stream", str(model)]
    ended = subprocess.run(
        command, input=as_csv(lines(60, 63)), capture_output=True, cwd=ROOT, text=True, check=False
    )
    assert ended.returncode == 130, ended.stderr
    assert slices(model) == 63


@needs_signals
def test_an_update_waits_for_a_stream(model: Path, tmp_path: Path) -> None:
    process = started(model)
    fed(process, lines(60, 61))
    answered(process, 4)
    (tmp_path / "late.csv").write_text(as_csv(lines(65, 66)))
    line = dkrls("update", model, tmp_path / "late.csv", "--wait", "0.2", code=1).stderr
    assert "being changed by another command" in line
    process.communicate(timeout=PATIENCE)
    dkrls("update", model, tmp_path / "late.csv")
    assert slices(model) == 62


def test_what_could_not_be_used_is_told(model: Path) -> None:
    rows = lines(60, 63)
    for row in rows[3:6]:
        row["heat"] = ""
    rows[7]["heat"] = 1e300
    result = dkrls("stream", model, stdin=as_csv(rows))
    assert "3 slices learnt" in result.stderr
    assert "1 of them without any value, and not kept" in result.stderr
    assert "1 values infinite or beyond 9.9e+36 taken as missing" in result.stderr
    told = json.loads(dkrls("stream", model, "--replace", "--json", stdin=as_csv(rows)).stdout)
    assert (told["empty"], told["unusable_values"]) == (1, 1)
