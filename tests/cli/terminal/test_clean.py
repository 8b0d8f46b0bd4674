"""What files say is printed as one line, and moves no cursor."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from shell import dkrls

from dkrls_cli.cli.report import Report, error_line
from dkrls_cli.cli.terminal.clean import clean, clean_lines
from dkrls_cli.cli.terminal.progress import show_progress
from dkrls_cli.cli.terminal.tables import pairs, table
from dkrls_cli.errors import InputError

HOSTILE = "v\x1b[2J\x07\nError: forged\r\u202e\x9b1m\u2028z"


def is_clean(text: str) -> bool:
    return text.isprintable()


@given(st.text())
def test_a_clean_text_is_one_line_without_control_characters(text: str) -> None:
    found = clean(text)
    assert found.splitlines() in ([], [found])
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in found)
    assert clean(found) == found
    assert clean_lines(f"{text}\n{text}").split("\n") == [
        clean(part) for part in f"{text}\n{text}".split("\n")
    ]


def test_harmless_texts_stay() -> None:
    for text in ("sea surface temperature", "°C", "Zürich, 東京", "a  b", "\\n"):
        assert clean(text) == text


def test_characters_are_shown_by_their_numbers() -> None:
    assert clean(HOSTILE) == r"v\x1b[2J\x07\nError: forged\r\u202e\x9b1m\u2028z"
    assert clean("\udc80") == r"\udc80"


def test_tables_and_errors_are_clean() -> None:
    shown = str(pairs({HOSTILE: HOSTILE})) + str(table([{HOSTILE: HOSTILE}]))
    assert is_clean(shown.replace("\n", ""))
    assert is_clean(error_line(InputError(HOSTILE)))
    assert is_clean(error_line(KeyError(HOSTILE)))
    long = error_line(InputError("x" * 10**6))
    assert len(long) < 2100
    assert long.endswith(" ...")


def test_notes_details_and_parts_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(verbose=True)
    report.note(HOSTILE)
    report.detail(HOSTILE, pairs({"a": HOSTILE}))
    report.result({}, HOSTILE.replace("\n", ""), pairs({"b": HOSTILE}))
    out, err = capsys.readouterr()
    assert err.count("\n") == 3
    assert is_clean(err.replace("\n", ""))
    assert is_clean(out.replace("\n", ""))


def test_progress_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dkrls_cli.cli.terminal.progress.FIRST_AFTER", 0.0)
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with show_progress(HOSTILE):
        while not stream.getvalue():
            pass
    assert is_clean(stream.getvalue().strip("\n"))


def test_a_hostile_file_prints_nothing_of_its_own(tmp_path: Path) -> None:
    """Names, units, attributes, labels and the origin, through all that a user sees."""
    rng = np.random.default_rng(1)
    array = xr.DataArray(
        rng.random((3, 6)),
        {"site": ["a\x1b[31m", "b", "c"], "x": ("x", np.arange(6.0), {"units": HOSTILE})},
        name="v\x1b[1m",
        attrs={"units": HOSTILE, "long_name": HOSTILE},
    )
    from dkrls_cli import fit

    fit(array, kernel="gaussian", sigma=2.0, ridge=0.1).save(tmp_path / "m.npz")
    told = dkrls("info", tmp_path / "m.npz")
    assert "\x1b" not in told.output
    assert not any(line.startswith("Error") for line in told.output.splitlines())
    assert json.loads(dkrls("info", tmp_path / "m.npz", "--json").stdout)["units"] == HOSTILE
    refused = dkrls("predict", tmp_path / "m.npz", "--at", "site=\x1b[31m", code=2)
    assert "\x1b" not in refused.output
    assert "\x1b" not in dkrls("predict", tmp_path / "m.npz", "--\x1b[1m", code=2).output
