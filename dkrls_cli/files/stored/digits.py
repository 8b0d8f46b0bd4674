"""Dates that a file stores as digits: 20200131.5 in place of a number of days since some date.

Files of CDO with absolute times say so in their units, ``day as %Y%m%d.%f``; others have no units,
or a pattern such as ``YYYYMMDD``. Taken for numbers, the step from one month to the next would
count seventy days.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text.dates import read_dates
from dkrls_cli.grid.axes import Attributes, Axis, number_axis
from dkrls_cli.grid.calendars import TimeScale

# Units that tell of digits: "day as %Y%m%d.%f", "month as %Y%m.%f", "YYYYMMDDhh", "yyyy-mm-dd".
_UNITS = re.compile(r"((day|month)s? as )?%?y(yyy)?-?%?m{1,2}-?(%?d{1,2})?[hm%.f]*", re.IGNORECASE)
_SCALE = "days since 1970-01-01"
# Seconds of a day, to which the fraction behind the digits is rounded: files hold few more digits.
_SECONDS = 86400.0


def dates_of_digits(axis: Axis) -> tuple[Axis, str] | None:
    """Return an axis of digits as one of dates, and a note; None if its numbers are no such dates.

    Digits that cannot be read stay numbers, and the note says why.

    Parameters
    ----------
    axis
        An axis of numbers. Its name has to be that of dates, unless its units tell of digits; with
        other units they are numbers.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import number_axis
    >>> axis, note = dates_of_digits(number_axis("time", np.array([20200131.5, 20200201.0])))
    >>> axis.texts, note
    (['2020-01-31T12:00', '2020-02-01T00:00'], 'time: 20200131.5 is read as 2020-01-31T12:00')
    """
    units = str(axis.attrs.get("units", "")).strip()
    if (units and not _UNITS.fullmatch(units)) or not np.isfinite(axis.numbers).all():
        return None
    days = np.floor(axis.numbers)
    reading = read_dates("date" if units else axis.name, [f"{day:.0f}" for day in days.tolist()])
    fractions = np.rint((axis.numbers - days) * _SECONDS) / _SECONDS
    if reading is None or (reading.form != "yyyymmdd" and fractions.any()):
        return _unread(axis, f"digits by '{units}' cannot be read") if units else None
    calendar = str(axis.attrs.get("calendar", "standard")).lower()
    try:
        scale = TimeScale(_SCALE, calendar)
        numbers = scale.numbers(reading.texts) + fractions
    except (InputError, SettingError) as error:  # no such calendar, or no such day of a month
        return _unread(axis, str(error).rstrip("."))
    attrs = {key: value for key, value in axis.attrs.items() if key not in ("units", "calendar")}
    dates = replace(axis, numbers=numbers, time=scale, attrs=attrs, dtype="float64")
    return dates, f"{axis.name}: {axis.numbers[0]:.15g} is read as {dates.texts[0]}"


def cells_of_digits(
    name: str, attrs: Attributes, coordinates: NDArray[Any], cells: NDArray[Any]
) -> NDArray[Any] | None:
    """Return the bounds (m, 2) of coordinates: as dates are counted, if these are dates of digits.

    Parameters
    ----------
    name, attrs, coordinates
        Name, attributes and values of the coordinates.
    cells
        Their bounds, in digits as well.

    Returns
    -------
    array or None
        None if the bounds are no dates, and the coordinates are.

    Examples
    --------
    >>> cells_of_digits("time", {}, np.array([20200115]), np.array([[20200101, 20200201]]))
    array([[18262., 18293.]])
    """
    if not _are_dates(dates_of_digits(number_axis(name, coordinates, attrs))):
        return cells
    ends = dates_of_digits(number_axis(name, cells.ravel(), attrs))
    return ends[0].numbers.reshape(cells.shape) if ends and _are_dates(ends) else None


def _are_dates(read: tuple[Axis, str] | None) -> bool:
    return read is not None and read[0].time is not None


def _unread(axis: Axis, reason: str) -> tuple[Axis, str]:
    """Return an axis as it is, and a note that it has numbers."""
    return axis, f"{axis.name}: {reason}; its numbers are used as they are, not as dates"
