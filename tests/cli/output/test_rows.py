"""Rows of text say the same in every format, and nothing that a terminal would obey."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from shell import csv_rows

from dkrls_cli.cli.output.rows import refuse_different_grids, rows_output, stdout_writer
from dkrls_cli.cli.output.target import Target
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of

HOSTILE = "v\x1b[2J\x07\nError: forged\r\u202e\x9b1m\u2028z"
X, SITE = axis_of("x", np.array([0.5, 1.0])), axis_of("site", np.array(["a", "b, c"]))
VALUES = np.array([[1.5, np.nan], [-2.0, 1e-3]])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_rows_are_clean_on_a_terminal_and_true_in_a_pipe(
    form: str, stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", out := stream())
    stdout_writer(form).write_cells([f"d{HOSTILE}"], [[HOSTILE]], {f"a{HOSTILE}": np.ones(1)})
    text = out.getvalue()
    if stream is Terminal:
        assert text.replace("\n", "").isprintable()
        assert len(text.splitlines()) == (2 if form == "csv" else 1)
    else:
        assert ("\x1b" if form == "csv" else "\x9b") in text


def write(target: Target, names: list[str]) -> None:
    with rows_output(target, names, [X, SITE]) as writer:
        writer.write_cells(["x", "site"], [X.texts, SITE.texts], {"v": VALUES})


def test_every_format_has_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(Target(None, "csv", False), ["v"])
    shown = capsys.readouterr().out
    rows = [
        {name: json.loads(text or "null") if name != "site" else text for name, text in row.items()}
        for row in csv_rows(shown)
    ]
    assert [(row["x"], row["site"]) for row in rows] == [
        (x, site) for x in (0.5, 1.0) for site in ("a", "b, c")
    ]
    assert [row["v"] for row in rows] == [1.5, None, -2.0, 0.001]
    for form in ("csv", "jsonl", "parquet"):
        write(Target(str(tmp_path / f"a.{form}"), form, False), ["v"])
    assert (tmp_path / "a.csv").read_text() == shown
    assert list(map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())) == rows
    found = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "a.parquet")
    assert found.to_pylist() == rows
    for names, key in ((["v"], {"variable": "v"}), (["v", "w"], {"variables": ["v", "w"]})):
        write(Target(None, "json", False), names)
        assert json.loads(capsys.readouterr().out) == {**key, "answers": rows}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_that_fail_leave_no_file(form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    with (
        pytest.raises(ZeroDivisionError),
        rows_output(Target(str(tmp_path / f"a.{form}"), form, False), ["v"], [X]),
    ):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "other", [[X], [SITE, X], [X.take([1, 0]), SITE], [axis_of("y", np.array([0.5, 1.0])), SITE]]
)
def test_grids_that_differ_in_anything_do_not_go_into_rows(other: list) -> None:
    refuse_different_grids([("v", [X, SITE])])
    refuse_different_grids([("v", [X, SITE]), ("w", [X, SITE])])
    with pytest.raises(SettingError, match="'v' and 'w' are on different grids, and rows have one"):
        refuse_different_grids([("v", [X, SITE]), ("u", [X, SITE]), ("w", other)])
