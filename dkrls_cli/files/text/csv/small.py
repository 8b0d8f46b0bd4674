"""Small tables as CSV text, and back."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows of equal keys as a CSV table; a cell without a value (None or NaN) is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if _is_nan(value) else value for key, value in row.items()})
    return text.getvalue()


def csv_rows(text: str) -> list[dict[str, str]]:
    """Return the cells of a CSV table as `csv_text` writes it, row by row."""
    return list(csv.DictReader(io.StringIO(text)))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
