"""Pictures of commands: what is checked before the work, and what a terminal can show."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from dkrls_cli.cli.output import pictures
from dkrls_cli.cli.output.pictures import (
    check_picture,
    known_terminal,
    print_picture,
    report_fixed,
    write_filled_slices,
)
from dkrls_cli.cli.report import Report
from dkrls_cli.errors import OutputError, SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.plots.filling import FilledSlice
from dkrls_cli.plots.pictures import LinePanel, Picture
from dkrls_cli.plots.slices import Fixed


class Screen(io.StringIO):
    """A terminal, or a pipe, with an encoding of its own."""

    def __init__(self, tty: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self.tty, self._encoding = tty, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self.tty


@pytest.mark.parametrize(
    ("tty", "env", "colours"),
    [
        (True, {"TERM": "xterm-256color", "COLORTERM": "truecolor"}, 2**24),
        (True, {"TERM": "xterm-256color", "COLORTERM": "24bit"}, 2**24),
        (True, {"TERM": "xterm-256color"}, 256),
        (True, {"TERM": "xterm"}, 0),
        (True, {"TERM": "dumb", "COLORTERM": "truecolor"}, 0),
        (True, {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, 0),
        (False, {"TERM": "xterm-256color", "COLORTERM": "truecolor"}, 0),
    ],
)
def test_colours_of_a_terminal(
    tty: bool, env: dict[str, str], colours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "66")
    monkeypatch.setattr(sys, "stdout", Screen(tty))
    found = known_terminal()
    assert (found.columns, found.colours, found.unicode) == (66, colours, True)
    monkeypatch.setattr(sys, "stdout", Screen(tty, "ascii"))
    assert not known_terminal().unicode


def test_a_picture_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    axis = axis_of("x", [0.0, 1.0])
    print_picture(Picture("rain", "mm", line=LinePanel(axis, np.array([0.0, 1.0]))))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "rain"
    assert lines[-1] == "values in mm, along x"


def test_what_cannot_be_drawn_or_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "a.png"
    there.write_bytes(b"")
    with pytest.raises(OutputError, match="exists already"):
        check_picture(there, False, Report())
    with pytest.raises(OutputError, match="one of the inputs"):
        check_picture(there, True, Report(), str(there))
    check_picture(there, True, Report(), None)
    with pytest.raises(SettingError, match=r"ends in .png, .svg or .pdf"):
        check_picture(tmp_path / "a.gif", True, Report())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(OutputError, match="matplotlib is not installed"):
        check_picture(there, True, Report())


def test_what_is_shown_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    fixed = [Fixed("time", "2000", "the last of 9"), Fixed("x", "1.0", "the nearest to 1.1", True)]
    report_fixed(fixed, Report())
    assert capsys.readouterr().err.splitlines() == [
        "Note: time=2000 is shown, the last of 9; --at time=... shows another.",
        "Note: x=1.0 is shown, the nearest to 1.1.",
    ]
    report_fixed(fixed, Report(quiet=True))
    assert capsys.readouterr().err == ""


def test_variables_without_values_are_left_out_of_a_picture_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(
        pictures, "write_pictures", lambda found, *_: drawn.extend(one.title for one in found)
    )
    axes = (axis_of("x", [0.0, 1.0, 2.0]),)
    empty = FilledSlice(Grid(np.full(3, np.nan), axes, "none"), np.full(3, np.nan), None, [])
    fixed = [Fixed("time", "2000", "where most cells (1) are filled", True)]
    some = FilledSlice(Grid(np.array([1.0, np.nan, 2.0]), axes, "some"), np.ones(3), None, fixed)
    out = tmp_path / "a.png"
    write_filled_slices([empty, some], out, False, Report())
    assert drawn == ["some"]
    assert capsys.readouterr().err.splitlines() == [
        "Note: 'none' has no values and is not drawn.",
        f"Note: time=2000 is shown of some in {out}, where most cells (1) are filled.",
    ]
    write_filled_slices([empty], out, False, Report(quiet=True))
    assert drawn == ["some"]
