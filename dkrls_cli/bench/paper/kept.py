"""Rows of an interrupted run, read back from the file they were written to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import Entry
from dkrls_cli.bench.paper.experiment import Row, Terms, told
from dkrls_cli.errors import InputError
from dkrls_cli.files.csv import csv_rows

_TEXTS = ("dataset", "method", "settings", "parameters", "note")
_COUNTS = ("samples_learnt", "samples", "seeds", "seeds_asked")
_SAME = ("dataset", "method", "settings", "parameters", "samples", "seeds_asked", "time_limit")
"""What a row must agree in to stand for a method that need not be run again."""


def rows_from(text: str, source: str) -> list[Row]:
    """The rows of a file that a run has written."""
    try:
        return [_row(cells) for cells in csv_rows(text)]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"'{source}' is not from such a run ({error}). Choose another name, or --overwrite."
        ) from None


def _row(cells: Mapping[str, str]) -> Row:
    row = {name: _value(name, cell) for name, cell in cells.items()}
    absent = [name for name in (*_TEXTS, *_COUNTS, "time_limit") if name not in row]
    if absent:
        raise KeyError(f"no column {absent[0]}")
    return row


def _value(name: str, cell: str) -> Any:
    if name in _TEXTS:
        return cell
    if name == "time_limit":
        return float(cell) if cell else None
    return int(cell) if name in _COUNTS else float(cell or math.nan)


def row_among(rows: Iterable[Row], entry: Entry, dataset: Dataset, terms: Terms) -> Row | None:
    """The row of a method that was run before on the same terms, if it came to an end."""
    wanted = told(entry, dataset, terms, [], "")
    for row in rows:
        if all(row[name] == wanted[name] for name in _SAME) and row["seeds"]:
            return row
    return None
