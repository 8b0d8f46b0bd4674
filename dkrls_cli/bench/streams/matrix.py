"""Streams in a plain matrix of numbers: a line for each step, a column for each series."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.text.csv.cells import parse_numbers
from dkrls_cli.files.text.csv.opening import open_text, source_name
from dkrls_cli.grid.axes import index_axis
from dkrls_cli.grid.grid import Grid

_SUFFIXES = (".txt", ".dat", ".txt.gz", ".dat.gz")


def is_matrix(path: str) -> bool:
    """Return whether a text file starts with a line of numbers separated by blanks."""
    if not path.lower().endswith(_SUFFIXES):
        return False
    with open_text(path) as lines:
        words = next((line.split() for line in lines if line.strip()), [])
    return len(words) > 1 and parse_numbers(words) is not None


def read_matrix(path: str) -> Grid:
    """Return a matrix as a grid of time and series.

    Raises
    ------
    InputError
        If a line is not all numbers, or has more or fewer than the first.
    """
    with open_text(path) as lines:
        rows = [
            _parse_row(path, number, line.split())
            for number, line in enumerate(lines, start=1)
            if line.strip()
        ]
    for number, row in enumerate(rows, start=1):
        if row.size != rows[0].size:
            raise InputError(
                f"Row {number} of {source_name(path)} has {row.size} numbers, the first "
                f"{rows[0].size}. Expected equally many in every row."
            )
    axes = (index_axis("time", len(rows)), index_axis("series", rows[0].size))
    return Grid(np.array(rows), axes)


def _parse_row(path: str, number: int, words: list[str]) -> Array:
    """Return the numbers of a line, or raise InputError."""
    row = parse_numbers(words)
    if row is None:
        raise InputError(f"Line {number} of {source_name(path)} is not all numbers.")
    return row
