"""Rows of an interrupted run, read back from the file that it wrote."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dkrls_cli.baselines import canonical_name
from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import RaceEntry
from dkrls_cli.bench.paper.experiment import RaceOptions, RaceRow, make_race_row
from dkrls_cli.errors import InputError
from dkrls_cli.files.text.csv.small import csv_rows

_TEXT_COLUMNS = ("dataset", "method", "settings", "parameters", "note")
_COUNT_COLUMNS = ("samples_learnt", "samples", "seeds", "seeds_asked")
_LIMIT_COLUMN = "time_limit"

_SAME_COLUMNS = ("dataset", "method", "settings", "parameters", "samples", "seeds_asked")
"""Columns besides the limit that must be equal for a row to be used instead of a new run."""


def parse_rows(text: str, source: str) -> list[RaceRow]:
    """Return the rows of a CSV text that an earlier run wrote.

    Raises
    ------
    InputError
        If the text has not the columns of such a run, or not numbers where they are expected.
    """
    try:
        return [_parse_row(cells) for cells in csv_rows(text)]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"'{source}' was not written by such a run ({error}). "
            "Choose another name, or overwrite it."
        ) from None


def _parse_row(cells: Mapping[str, str]) -> RaceRow:
    """Return one row with its numbers; names of methods in the present spelling."""
    row = {name: _parse_cell(name, cell) for name, cell in cells.items()}
    needed = (*_TEXT_COLUMNS, *_COUNT_COLUMNS, _LIMIT_COLUMN)
    absent = [name for name in needed if name not in row]
    if absent:
        raise KeyError(f"no column {absent[0]}")
    return row | {"method": canonical_name(row["method"])}


def _parse_cell(name: str, cell: str) -> Any:
    """Return the value of a cell, by the kind of its column."""
    if name in _TEXT_COLUMNS:
        return cell
    if name == _LIMIT_COLUMN:
        return float(cell) if cell else None
    return int(cell) if name in _COUNT_COLUMNS else float(cell or math.nan)


def find_row(
    rows: Iterable[RaceRow], entry: RaceEntry, dataset: Dataset, options: RaceOptions
) -> RaceRow | None:
    """Return the row of the same method, dataset and options, if it has results; else None."""
    wanted = make_race_row(entry, dataset, options, [], "")
    for row in rows:
        same = all(row[name] == wanted[name] for name in (*_SAME_COLUMNS, _LIMIT_COLUMN))
        if same and row["seeds"]:
            return row
    return None
