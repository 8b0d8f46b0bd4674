"""Rows of an interrupted run, written and read back."""

from __future__ import annotations

import math

import pytest
from bench.paper.small_data import entry_of, small

from dkrls_cli.bench.paper.entries import PAPER, SEARCHED
from dkrls_cli.bench.paper.experiment import RaceOptions, make_race_row
from dkrls_cli.bench.paper.resume import find_row, parse_rows
from dkrls_cli.bench.paper.run import SplitResult
from dkrls_cli.errors import InputError
from dkrls_cli.files.text.csv.small import csv_text


def test_a_row_is_used_only_for_the_same_method_and_options() -> None:
    entry, data = entry_of("dkrls", PAPER), small()
    options = RaceOptions(2, math.inf)
    row = make_race_row(entry, data, options, [SplitResult(132, 132, 1.0, 1.0, 0.5)], "")
    rows = parse_rows(csv_text([row]), "rows.csv")
    assert csv_text(rows) == csv_text([row])
    assert find_row(rows, entry, data, options) is not None
    assert find_row(rows, entry, data, RaceOptions(3, math.inf)) is None
    assert find_row(rows, entry, data, RaceOptions(2, 60.0)) is None
    assert find_row(rows, entry_of("dkrls", PAPER, "paper-3d"), data, options) is None
    failed = parse_rows(csv_text([make_race_row(entry, data, options, [], "failed")]), "rows.csv")
    assert find_row(failed, entry, data, options) is None


def test_numbers_texts_and_empty_cells_are_read_back() -> None:
    entry, options = entry_of("skrls", PAPER), RaceOptions(2, 60.0)
    row = make_race_row(entry, small(), options, [SplitResult(99, 132, 1.5, note="a, b")], "")
    (found,) = parse_rows(csv_text([row]), "rows.csv")
    assert (found["seconds"], found["samples_learnt"], found["note"]) == (1.5, 99, "a, b")
    assert (found["time_limit"], type(found["seeds"])) == (60.0, int)
    assert math.isnan(found["max_error"])


def test_rows_with_an_earlier_spelling_of_a_method_are_used() -> None:
    entry, options = entry_of("skrls", SEARCHED), RaceOptions(2, math.inf)
    row = make_race_row(entry, small(), options, [SplitResult(132, 132, 1.5)], "")
    old = csv_text([row]).replace("skrls", "aldkrls")
    (found,) = parse_rows(old, "rows.csv")
    assert found["method"] == "skrls"
    assert find_row([found], entry, small(), options) is found


@pytest.mark.parametrize(
    ("text", "reason"), [("a,b\n1,2\n", "could not convert|no column"), ("seeds\nx\n", "invalid")]
)
def test_a_file_of_another_kind_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=f"'rows.csv' was not written by such a run .*({reason})"):
        parse_rows(text, "rows.csv")


@pytest.mark.parametrize("column", ["note", "seeds", "time_limit"])
def test_every_column_is_needed(column: str) -> None:
    row = make_race_row(entry_of("dkrls", PAPER), small(), RaceOptions(2, 60.0), [], "")
    del row[column]
    with pytest.raises(InputError, match=f"no column {column}"):
        parse_rows(csv_text([row]), "rows.csv")
