"""Temperatures of the Intel Berkeley lab (the paper's section 3.3), from either of two files.

The matrix: a row every 30 seconds, a column for each of 52 sensors, gaps already filled. Or the
raw `data.txt`, a reading per line: date, time, epoch, mote, temperature, humidity, light, voltage.
The paper takes rows 301 to 400, without motes 5 and 15, and smooths them.

Of raw lines those are dropped that are cut short or no numbers, of motes that the paper has not,
outside 0 to 50 degrees, or with a voltage outside 2.2 to 3.2, where the thermometers are known to
fail. Time is cut in steps of 30 seconds from the median of the motes' first readings; a step has
the mean of its readings, one without is interpolated in time between those of its mote. Motes
with readings in less than half of the steps that are used are left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.csv import open_text, source_name

FIRST, LAST = 301, 400
"""Rows that the paper takes, counted from 1."""

MOTES = tuple(mote for mote in range(1, 55) if mote not in (5, 15))
STEP = 30.0
DEGREES, VOLTS = (0.0, 50.0), (2.2, 3.2)
_BEFORE = datetime(2004, 1, 1)
LEAST = 0.5
"""Share of the steps in which a mote must have readings."""

_SIDE, _VARIANCE = 6, 5.0
"""Of the paper's filter."""


@dataclass(frozen=True, eq=False)
class Temperatures:
    """Sensors by times, smoothed as in the paper, and what there is to say of them."""

    values: Array
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """A temperature of a mote at a time in seconds."""

    mote: int
    time: float
    degrees: float


class Log:
    """The readings of one mote, of which there may be many."""

    def __init__(self) -> None:
        self.times, self.degrees = array("d"), array("d")

    def add(self, reading: Reading) -> None:
        """Take one more."""
        self.times.append(reading.time)
        self.degrees.append(reading.degrees)


def read(path: str) -> Temperatures:
    """The paper's window of a file, whichever of the two it is."""
    with open_text(path) as lines:
        first = next((line for line in lines if line.strip()), "")
        rest = (line for line in lines if line.strip())
        if ":" in first:
            return _from_readings(path, chain([first], rest))
        return _from_matrix(path, first, rest)


def _from_matrix(path: str, first: str, rest: Iterable[str]) -> Temperatures:
    columns = len(first.split())
    if columns != len(MOTES):
        raise InputError(
            f"{source_name(path)} has {columns} columns. Expected a matrix of {len(MOTES)}, or the "
            "raw data.txt with date, time, epoch, mote, temperature, humidity, light and voltage."
        )
    window: list[list[float]] = []
    for number, line in enumerate([first, *_until(rest, LAST - 1)], start=1):
        if number >= FIRST:
            window.append(_numbers(path, number, line, columns))
    if len(window) <= LAST - FIRST:
        raise InputError(
            f"{source_name(path)} has less than {LAST} rows, of which {FIRST} to {LAST} are used."
        )
    return Temperatures(smoothed(np.array(window).T))


def _until(lines: Iterable[str], count: int) -> Iterator[str]:
    for _, line in zip(range(count), lines, strict=False):
        yield line


def _numbers(path: str, number: int, line: str, columns: int) -> list[float]:
    try:
        row = [float(word) for word in line.split()]
    except ValueError as error:
        raise InputError(f"{source_name(path)}, row {number}: {error}.") from None
    if len(row) != columns or not np.isfinite(row).all():
        raise InputError(f"{source_name(path)}, row {number}: expected {columns} finite numbers.")
    return row


def _from_readings(path: str, raw: Iterable[str]) -> Temperatures:
    lines = kept = 0
    logs: dict[int, Log] = {}
    for line in raw:
        lines += 1
        reading = reading_of(line)
        if reading is not None:
            kept += 1
            logs.setdefault(reading.mote, Log()).add(reading)
    if not kept:
        raise InputError(
            f"None of the {lines:,} lines of {source_name(path)} is a reading. Expected date, "
            "time, epoch, mote, temperature, humidity, light and voltage."
        )
    rows, without = resampled(logs)
    if len(rows) < 2:
        raise InputError(
            f"{source_name(path)} has readings of {len(rows)} motes in half of the steps {FIRST} "
            f"to {LAST} of {STEP:g} s. Expected 2 at least."
        )
    told = [f"{lines - kept:,} of {lines:,} readings were dropped: faulty, or of other motes"]
    if without:
        told.append(f"motes without enough readings: {', '.join(map(str, without))}")
    return Temperatures(smoothed(np.array(rows)), tuple(told))


def reading_of(line: str) -> Reading | None:
    """The reading of a raw line, if it is one to trust."""
    words = line.split()
    if len(words) != 8:
        return None
    try:
        time = (datetime.fromisoformat(f"{words[0]}T{words[1]}") - _BEFORE).total_seconds()
        mote, degrees, volts = int(words[3]), float(words[4]), float(words[7])
    except ValueError:
        return None
    good = DEGREES[0] < degrees < DEGREES[1] and VOLTS[0] <= volts <= VOLTS[1]
    return Reading(mote, time, degrees) if good and mote in MOTES else None


def resampled(logs: Mapping[int, Log]) -> tuple[list[Array], list[int]]:
    """The window of every mote that has enough readings in it; the motes that have not."""
    start = float(np.median([min(log.times) for log in logs.values()]))
    windows = {mote: _window(logs.get(mote, Log()), start) for mote in MOTES}
    rows = [row for row in windows.values() if row is not None]
    return rows, [mote for mote, row in windows.items() if row is None]


def _window(log: Log, start: float) -> Array | None:
    """Means of the steps of the window, gaps interpolated; None if there are too many."""
    steps = ((np.array(log.times) - start) // STEP).astype(np.intp) + 1
    degrees = np.array(log.degrees)
    inside = (steps >= FIRST) & (steps <= LAST)
    places, which = np.unique(steps[inside], return_inverse=True)
    wanted = np.arange(FIRST, LAST + 1)
    if places.size < LEAST * wanted.size:
        return None
    means = np.bincount(which, degrees[inside]) / np.bincount(which)
    return np.interp(wanted, places, means)


def smoothed(values: Array) -> Array:
    """The paper's filter: a Gaussian of variance 5 on 6 x 6 cells, the edges mirrored."""
    offsets = np.arange(_SIDE) - (_SIDE - 1) / 2
    weights = np.exp(-np.add.outer(offsets**2, offsets**2) / (2 * _VARIANCE))
    before, after = _SIDE // 2, _SIDE - 1 - _SIDE // 2
    padded = np.pad(values, (before, after), mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (_SIDE, _SIDE))
    return np.asarray(np.einsum("ijkl,kl->ij", windows, weights / weights.sum()))
