"""Temperatures of the Intel Berkeley lab (the paper's section 3.3), from one of two kinds of file.

The first kind is a matrix: a row every 30 seconds, a column for each of 52 sensors, no gaps. The
second is the raw `data.txt`, one reading per line: date, time, epoch, mote, temperature, humidity,
light, voltage. The paper uses rows 301 to 400, without motes 5 and 15, and smooths them.

A raw line is dropped if it is cut short or not numeric, comes from a mote that the paper does not
use, is outside 0 to 50 degrees, or has a voltage outside 2.2 to 3.2, where the thermometers are
known to fail. Time is cut into steps of 30 seconds from the median of the motes' first readings.
The value of a step is the mean of its readings; a step without any is interpolated in time from
other steps of the same mote. Motes with readings in less than half of the steps are left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.text.csv.opening import open_text, source_name

# First and last row that the paper uses, counted from 1.
FIRST, LAST = 301, 400

# Sensors that the paper uses: all 54 but two.
MOTES = tuple(mote for mote in range(1, 55) if mote not in (5, 15))

# Seconds between two rows.
STEP = 30.0

# Temperatures in degrees Celsius and battery voltages of readings that can be trusted.
DEGREES, VOLTS = (0.0, 50.0), (2.2, 3.2)

# Start of the count of seconds: any date before the first reading.
_EPOCH = datetime(2004, 1, 1)

# Share of the steps in which a mote must have readings.
LEAST_SHARE = 0.5

# Cells along a side, and variance in cells, of the paper's smoothing filter.
_SIDE, _VARIANCE = 6, 5.0


@dataclass(frozen=True, eq=False)
class Temperatures:
    """Temperatures (sensors, times), smoothed as in the paper, and notes about the file."""

    values: Array
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """A temperature in degrees Celsius, of a mote at a time in seconds."""

    mote: int
    time: float
    degrees: float


class MoteLog:
    """The readings of one mote, in compact arrays: the raw file has millions of them."""

    def __init__(self) -> None:
        self.times, self.degrees = array("d"), array("d")

    def add(self, reading: Reading) -> None:
        """Append a reading."""
        self.times.append(reading.time)
        self.degrees.append(reading.degrees)


def read_intel_lab(path: str) -> Temperatures:
    """Return the rows that the paper uses from a file of either kind.

    Raises
    ------
    InputError
        If the file is of neither kind, or has too few rows or readings.
    """
    with open_text(path) as lines:
        first = next((line for line in lines if line.strip()), "")
        rest = (line for line in lines if line.strip())
        if ":" in first:
            return _from_readings(path, chain([first], rest))
        return _from_matrix(path, first, rest)


def _from_matrix(path: str, first: str, rest: Iterable[str]) -> Temperatures:
    """Return the temperatures of a matrix, given its first line and the others."""
    columns = len(first.split())
    if columns != len(MOTES):
        raise InputError(
            f"{source_name(path)} has {columns} columns. Expected a matrix of {len(MOTES)}, or the "
            "raw data.txt with date, time, epoch, mote, temperature, humidity, light and voltage."
        )
    window: list[list[float]] = []
    for number, line in enumerate([first, *islice(rest, LAST - 1)], start=1):
        if number >= FIRST:
            window.append(_parse_row(path, number, line, columns))
    if len(window) <= LAST - FIRST:
        raise InputError(
            f"{source_name(path)} has less than {LAST} rows. Rows {FIRST} to {LAST} are needed."
        )
    return Temperatures(smooth(np.array(window).T))


def _parse_row(path: str, number: int, line: str, columns: int) -> list[float]:
    """Return the numbers of a line, or raise InputError."""
    try:
        row = [float(word) for word in line.split()]
    except ValueError as error:
        raise InputError(f"{source_name(path)}, row {number}: {error}.") from None
    if len(row) != columns or not np.isfinite(row).all():
        raise InputError(f"{source_name(path)}, row {number}: expected {columns} finite numbers.")
    return row


def _from_readings(path: str, raw: Iterable[str]) -> Temperatures:
    """Return the temperatures of the lines of the raw file."""
    lines = kept = 0
    logs: dict[int, MoteLog] = {}
    for line in raw:
        lines += 1
        reading = parse_reading(line)
        if reading is not None:
            kept += 1
            logs.setdefault(reading.mote, MoteLog()).add(reading)
    if not kept:
        raise InputError(
            f"None of the {lines:,} lines of {source_name(path)} is a reading. Expected date, "
            "time, epoch, mote, temperature, humidity, light and voltage."
        )
    rows, without = resample(logs)
    if len(rows) < 2:
        raise InputError(
            f"{source_name(path)} has {len(rows)} motes with readings in half of the steps {FIRST} "
            f"to {LAST} of {STEP:g} s. Expected at least 2."
        )
    notes = [f"{lines - kept:,} of {lines:,} readings were dropped: faulty, or of other motes"]
    if without:
        notes.append(f"motes without enough readings: {', '.join(map(str, without))}")
    return Temperatures(smooth(np.array(rows)), tuple(notes))


def parse_reading(line: str) -> Reading | None:
    """Return the reading of a raw line, or None if it cannot be trusted."""
    words = line.split()
    if len(words) != 8:
        return None
    try:
        time = (datetime.fromisoformat(f"{words[0]}T{words[1]}") - _EPOCH).total_seconds()
        mote, degrees, volts = int(words[3]), float(words[4]), float(words[7])
    except ValueError:
        return None
    good = DEGREES[0] < degrees < DEGREES[1] and VOLTS[0] <= volts <= VOLTS[1]
    return Reading(mote, time, degrees) if good and mote in MOTES else None


def resample(logs: Mapping[int, MoteLog]) -> tuple[list[Array], list[int]]:
    """Return the window of every mote with enough readings, and the motes without."""
    start = float(np.median([min(log.times) for log in logs.values()]))
    windows = {mote: _window(logs.get(mote, MoteLog()), start) for mote in MOTES}
    rows = [row for row in windows.values() if row is not None]
    return rows, [mote for mote, row in windows.items() if row is None]


def _window(log: MoteLog, start: float) -> Array | None:
    """Return the means of the steps of the window, gaps interpolated; None if too few."""
    steps = ((np.array(log.times) - start) // STEP).astype(np.intp) + 1
    degrees = np.array(log.degrees)
    inside = (steps >= FIRST) & (steps <= LAST)
    places, which = np.unique(steps[inside], return_inverse=True)
    wanted = np.arange(FIRST, LAST + 1)
    if places.size < LEAST_SHARE * wanted.size:
        return None
    means = np.bincount(which, degrees[inside]) / np.bincount(which)
    return np.interp(wanted, places, means)


def smooth(values: Array) -> Array:
    """Apply the paper's filter: a Gaussian of variance 5 on 6 x 6 cells, mirrored at the edges."""
    offsets = np.arange(_SIDE) - (_SIDE - 1) / 2
    weights = np.exp(-np.add.outer(offsets**2, offsets**2) / (2 * _VARIANCE))
    before, after = _SIDE // 2, _SIDE - 1 - _SIDE // 2
    padded = np.pad(values, (before, after), mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (_SIDE, _SIDE))
    return np.asarray(np.einsum("ijkl,kl->ij", windows, weights / weights.sum()))
