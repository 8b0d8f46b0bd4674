"""Runs the command line, in this process or in one of its own, and checks how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from dkrls_cli.cli import app
from dkrls_cli.cli.terminal import progress

ROOT = Path(__file__).parents[1]
PATIENCE = 300.0  # seconds for a process to end, also on a machine that is busy with other things

HERE = ["--at", "lat=0,1.5", "--at", "lon=7", "--at", "time=2020-01-03"]
"""Two places in the model of the globe."""

POINTS = 'id,lon,lat,time,note\n7,-10,1.5,2020-01-03,"a, b"\n007,350,1.5,2020-01-03,\n'
"""Two points in the model of the globe, which are the same place."""


_PROGRAM = (
    "from dkrls_cli.cli.terminal import progress; progress.FIRST_AFTER = 1e6; "
    "from dkrls_cli.__main__ import main; main()"
)


def dkrls(*words: Any, code: int = 0, stdin: str | bytes | None = None, **env: str) -> Any:
    """Run a command; it must end with this code, and without an exception of its own.

    Progress is not shown, however long the command takes.
    """
    given = [str(word) for word in words]
    with (
        mock.patch.object(sys, "argv", ["dkrls", *given]),
        mock.patch.object(progress, "FIRST_AFTER", 1e6),
    ):
        result = CliRunner().invoke(app, given, input=stdin, env=env or None)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "should not happen" not in result.stderr, result.stderr
    assert "Traceback" not in result.output, result.output
    assert result.exit_code == code, result.output
    return result


def refusal(*words: Any, code: int = 1, **options: Any) -> str:
    """Return the one line that says why a command is refused; nothing is on stdout."""
    result = dkrls(*words, code=code, **options)
    assert result.stdout == ""
    *notes, last = result.stderr.splitlines()
    assert all(note.startswith("Note: ") for note in notes), result.stderr
    assert last.startswith("Error: "), result.stderr
    return last


def spawn(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own; progress is not shown, however long it takes."""
    command = [sys.executable, "-c", _PROGRAM, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=False, **options
    )


# Runs commands one after the other, without dask as `dkrls` does, and prints the most bytes that
# their process has held.
_PEAK = (
    "import json, sys; sys.modules['dask'] = None\n"
    "from dkrls_cli.cli import app; from dkrls_cli.memory import peak_bytes\n"
    "for words in json.loads(sys.argv[1]): app(words, standalone_mode=False)\n"
    "print('peak', int(peak_bytes()), file=sys.stderr)"
)


def peak_of(*commands: Sequence[Any], **env: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run commands in a process of their own; return it, and the most bytes that it has held."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is not known here")
    words = json.dumps([[str(word) for word in command] for command in commands])
    command = [sys.executable, "-c", _PEAK, words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **env}
    )
    return done, int(done.stderr.split("peak ")[-1])


def csv_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


def assert_same_rows(text: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Check that a CSV text has the same content as rows of JSON; no value is an empty cell."""
    for written, row in zip(csv.DictReader(io.StringIO(text)), rows, strict=True):
        assert list(written) == list(row)
        assert {k: v for k, v in written.items() if v} == {
            k: str(v) for k, v in row.items() if v not in (None, "")
        }
