"""The command line in this process, with what it prints and how it ends."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from typer.testing import CliRunner

from dkrls_cli.cli import app

ROOT = Path(__file__).parents[1]


def dkrls(*words: Any, code: int = 0, stdin: str | bytes | None = None, **env: str) -> Any:
    """Run a command; it must end with this code, and without an exception of its own."""
    given = [str(word) for word in words]
    with mock.patch.object(sys, "argv", ["dkrls", *given]):
        result = CliRunner().invoke(app, given, input=stdin, env=env or None)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "should not happen" not in result.stderr, result.stderr
    assert "Traceback" not in result.output, result.output
    assert result.exit_code == code, result.output
    return result


def refusal(*words: Any, code: int = 1, **options: Any) -> str:
    """The one line that says why a command is refused; nothing stands on stdout."""
    result = dkrls(*words, code=code, **options)
    assert result.stdout == ""
    *notes, last = result.stderr.splitlines()
    assert all(note.startswith("Note: ") for note in notes), result.stderr
    assert last.startswith("Error: "), result.stderr
    return last


def spawn(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "dkrls_cli", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False, **options
    )


def assert_same_rows(text: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """CSV that was written says the same as rows of JSON, what has no value left empty."""
    for written, row in zip(csv.DictReader(io.StringIO(text)), rows, strict=True):
        assert list(written) == list(row)
        assert {k: v for k, v in written.items() if v} == {
            k: str(v) for k, v in row.items() if v not in (None, "")
        }
