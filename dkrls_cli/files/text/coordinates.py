"""Coordinates in a column of text: numbers, dates or labels, as an axis.

Only distinct texts are parsed. They are numbers or dates if all of them are; one other text makes
all of them labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text.csv.cells import (
    Integers,
    code_texts,
    find_bad_text,
    is_missing,
    parse_numbers,
    text_index,
)
from dkrls_cli.files.text.csv.splitting import TextColumn
from dkrls_cli.files.text.dates import looks_like_date, read_dates
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale

_DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")
_ISO_DATE = re.compile(r"\d{4}-(0?[1-9]|1[0-2])(-\d{1,2}([T\s].*)?)?$")

Where = Callable[[TextColumn, int], str]
"""Returns where a label of a column, by its position, stands first, to begin a message."""


def is_coordinate(text: str) -> bool:
    """Return whether a text is a number or a date, as ISO 8601 has it or not.

    >>> is_coordinate("1.5"), is_coordinate("2020-01"), is_coordinate("31/01/2020")
    (True, True, True)
    >>> is_coordinate("Jan")
    False
    """
    is_iso = _ISO_DATE.match(text) is not None
    return is_iso or parse_numbers([text]) is not None or looks_like_date(text)


def read_axis(column: TextColumn, where: Where) -> tuple[Axis, Integers, list[str]]:
    """Read the texts of a column as the coordinates of an axis.

    Parameters
    ----------
    column
        The column.
    where
        Returns where a label of the column stands, for messages.

    Returns
    -------
    The axis, the place on it of every row, and notes on dates that are not written as ISO 8601.
    Numbers and dates are sorted, labels stay in order of appearance.

    Raises
    ------
    InputError
        If a row has no coordinate, or a date does not exist or can be read in two ways.

    Examples
    --------
    >>> column = TextColumn("x", (["20", "5"], np.array([0, 1, 0])))
    >>> axis, places, notes = read_axis(column, lambda column, label: f"Row {label}")
    >>> axis.numbers.tolist(), places.tolist(), notes
    ([5.0, 20.0], [1, 0, 1], [])
    """
    name, labels = column.name, column.labels
    dated: list[str] = []
    present = [text for text in labels if not is_missing(text)]
    found = (
        _other_time_axis(column, present, where, dated)
        or _number_axis(name, present)
        or _time_axis(column, present, present, where)
    )
    if "" in labels or (found and len(present) < len(labels)):
        missing = next(i for i, text in enumerate(labels) if is_missing(text))
        raise InputError(
            f"{where(column, missing)} has '{labels[missing]}' for a coordinate of "
            f"'{name}'. Expected one in every row."
        )
    if found is None:
        index = text_index()
        places = code_texts(index, labels)
        return text_axis(name, list(index)), places[column.codes], dated
    axis, places = found
    return axis, places[column.codes], dated


def _number_axis(name: str, texts: Sequence[str]) -> tuple[Axis, Integers] | None:
    """Return an axis of numbers and the place of each text; None if the texts are no numbers."""
    numbers = parse_numbers(texts)
    if numbers is None or not numbers.size or not np.isfinite(numbers).all():
        return None
    distinct, places = np.unique(numbers, return_inverse=True)
    whole = all(text.lstrip("+-").isdigit() for text in texts) and np.abs(distinct).max() < 2**53
    return axis_of(name, distinct.astype(np.int64) if whole else distinct), places


def _time_axis(
    column: TextColumn, texts: Sequence[str], dates: Sequence[str], where: Where
) -> tuple[Axis, Integers] | None:
    """Return an axis of dates and the place of each text; None if the dates are not ISO 8601.

    Dates are the texts of the column, or what these mean.
    """
    if not texts or not all(map(_ISO_DATE.match, dates)):
        return None
    try:
        distinct, places = np.unique(_DAYS.numbers(dates), return_inverse=True)
    except SettingError:
        bad, reason = find_bad_text(_DAYS.numbers, dates)
        text = texts[list(dates).index(bad)]
        place = where(column, column.labels.index(text))
        raise InputError(f"{place}, column '{column.name}': {reason}") from None
    return Axis(name=column.name, numbers=distinct, time=_DAYS), places


def _other_time_axis(
    column: TextColumn, texts: Sequence[str], where: Where, dated: list[str]
) -> tuple[Axis, Integers] | None:
    """Return an axis of dates in another form than ISO 8601, or None if the texts are no such.

    A note on the form is added to `dated`.

    Raises
    ------
    InputError
        If a date can be read in two ways.
    """
    reading = read_dates(column.name, texts)
    if reading is None:
        return None
    if reading.doubt is not None:
        text, why = reading.doubt
        raise InputError(
            f"{where(column, column.labels.index(text))}, column '{column.name}': the date "
            f"'{text}' {why}. Write dates as ISO 8601, like 2020-01-31."
        )
    dated.append(
        f"Dates of '{column.name}' are read as {reading.form}: '{texts[0]}' is {reading.texts[0]}."
    )
    return _time_axis(column, texts, reading.texts, where)


def mixed_label_notes(axis: Axis) -> list[str]:
    """Return a note on text labels some of which are numbers or dates, or no note."""
    odd = [text for text in axis.labels or () if not is_coordinate(text)]
    if not odd or len(odd) == axis.size:
        return []
    return [f"The coordinates of '{axis.name}' are taken as texts, because of '{odd[0]}'."]
