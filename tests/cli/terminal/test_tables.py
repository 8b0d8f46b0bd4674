"""Tables and lists of facts: plain text in a pipe, the same columns on a terminal."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from shell import dkrls

from dkrls_cli.cli.terminal import tables
from dkrls_cli.cli.terminal.tables import (
    bytes_text,
    can_draw,
    cell_text,
    count_text,
    draw,
    duration_text,
    pairs,
    table,
)

ROWS = [
    {"method": "dkrls", "rmse": 0.123456, "n": 12, "good": True},
    {"method": "linear", "rmse": float("nan"), "n": 3, "good": None},
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def columns(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setenv("COLUMNS", str(count))


def test_a_table_has_headings_and_numbers_to_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    columns(monkeypatch, 80)
    assert str(table(ROWS)).splitlines() == [
        "method    rmse   n  good",
        "dkrls   0.1235  12  True",
        "linear       -   3  -",
    ]


def test_a_column_with_one_text_is_aligned_to_the_left(monkeypatch: pytest.MonkeyPatch) -> None:
    columns(monkeypatch, 80)
    assert str(table([{"a": 1.0, "b": 100}, {"a": "auto", "b": 2}])).splitlines() == [
        "a       b",
        "1     100",
        "auto    2",
    ]


def test_a_column_of_yes_and_no_is_aligned_to_the_left(monkeypatch: pytest.MonkeyPatch) -> None:
    columns(monkeypatch, 80)
    text = str(table([{"good": True, "n": 1}, {"good": False, "n": 10}]))
    assert text.splitlines() == ["good    n", "True    1", "False  10"]


def wide(count: int) -> list[dict[str, str]]:
    """Two rows of columns that are ten wide each, with two between them."""
    return [{f"{c:010d}": row * 10 for c in range(count)} for row in "xy"]


@pytest.mark.parametrize(
    ("room", "lines"),
    [(58, 3), (57, 5), (40, 5), (39, 5)],  # below 40 nothing is made narrower
)
def test_a_table_that_is_too_wide_is_transposed(
    monkeypatch: pytest.MonkeyPatch, room: int, lines: int
) -> None:
    columns(monkeypatch, room)
    text = str(table(wide(5)))
    assert len(text.splitlines()) == lines
    if lines == 5:
        assert text.splitlines()[0] == "0000000000  xxxxxxxxxx  yyyyyyyyyy"


def test_a_table_that_is_too_wide_both_ways_becomes_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns(monkeypatch, 40)
    rows = [{"a": str(i), "long": "x" * 12} for i in range(4)]
    text = str(table([{**row, "more": "y" * 30} for row in rows]))
    assert text.split("\n\n")[1].splitlines() == [
        "a     1",
        "long  xxxxxxxxxxxx",
        "more  " + "y" * 30,
    ]
    assert len(text.split("\n\n")) == 4


def test_facts_stand_one_below_the_other() -> None:
    assert str(pairs({"grid": "lat 5", "error": 0.1234567})) == "grid   lat 5\nerror  0.1235"


def test_width_is_that_of_the_terminal_or_100(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, expected in ((120, 120), (40, 40), (20, 40)):
        columns(monkeypatch, given)
        assert tables.available_width() == expected
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(sys, "__stdout__", None)
    assert tables.available_width() == 100


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (float("inf"), "inf"),
        (1.0, "1"),
        (0.00012345678, "0.0001235"),
        (123456, "123456"),
        ("auto", "auto"),
        (True, "True"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell_text(value) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (123_456, "123 kB"),
        (5e6, "5 MB"),
        (1.5e9, "1.5 GB"),
        (2e12, "2 TB"),
        (3e15, "3e+03 TB"),
    ],
)
def test_bytes_in_the_unit_that_suits_them(size: float, text: str) -> None:
    assert bytes_text(size) == text


def test_only_a_terminal_that_can_move_its_cursor_is_drawn_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert can_draw(Terminal())
    assert not can_draw(io.StringIO())
    assert not can_draw(None)
    monkeypatch.setenv("TERM", "dumb")
    assert not can_draw(Terminal())


def drawn(monkeypatch: pytest.MonkeyPatch, room: int, *parts: str | tables.Layout) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    columns(monkeypatch, room)
    monkeypatch.setattr(sys, "stdout", stream := Terminal())
    draw(parts)
    return stream.getvalue()


def plain(text: str) -> str:
    unstyled = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "\n".join(line.rstrip() for line in unstyled.splitlines())


@pytest.mark.parametrize("room", [40, 57, 80])
def test_a_terminal_shows_what_a_pipe_gets(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    columns(monkeypatch, room)
    parts = (
        "grid  [red]lat[/red] x lon",
        pairs({"a": "[bold]", "bc": 2}),
        table(wide(5)),
        table(ROWS),
    )
    text = drawn(monkeypatch, room, *parts)
    assert plain(text) == "\n\n".join(map(str, parts))
    assert "\x1b[1m" in text


def test_lists_of_a_narrow_terminal_are_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    columns(monkeypatch, 40)
    lists = table([{"a": "x" * 30, "b": "y" * 30}, {"a": "1", "b": "2"}])
    assert plain(drawn(monkeypatch, 40, lists)) == str(lists)


def test_headings_are_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(monkeypatch, 80, table(ROWS))
    assert re.search(r"\x1b\[1m *method", text)
    assert not re.search(r"\x1b\[1m *dkrls", text)
    text = drawn(monkeypatch, 80, pairs({"grid": "lat"}))
    assert re.search(r"\x1b\[1mgrid", text)
    assert not re.search(r"\x1b\[1m *lat", text)


def test_long_values_are_folded_and_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/folder" * 12
    text = plain(drawn(monkeypatch, 40, pairs({"model": path})))
    assert max(map(len, text.splitlines())) <= 40
    assert "".join(line.removeprefix("model").strip() for line in text.splitlines()) == path


def test_a_long_text_is_not_broken_into_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "/folder with spaces" * 6
    assert plain(drawn(monkeypatch, 40, text)) == text


@pytest.mark.parametrize(("width", "lines"), [(40, 44), (80, 14), (200, 4)])
def test_tables_of_a_command_fit_the_terminal(model: Path, width: int, lines: int) -> None:
    told = dkrls("info", model, COLUMNS=str(width)).stdout
    levels = told.split("\n\n", 1)[1].splitlines()
    assert max(map(len, levels)) <= width
    assert len(levels) == lines
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.00123456, "0.00123 s"),
        (59.4, "59.4 s"),
        (59.5, "1 min 0 s"),
        (60, "1 min 0 s"),
        (200.4, "3 min 20 s"),
        (3599.4, "59 min 59 s"),
        (3599.5, "1 h 0 min"),
        (3900, "1 h 5 min"),
        (100_000, "27 h 47 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (9999, "9999"), (10000, "10,000"), (-12345678, "-12,345,678")]
)
def test_counts(count: int, text: str) -> None:
    assert count_text(count) == text
