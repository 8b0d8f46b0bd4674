"""Estimate what a fit takes, from the shape of the grid alone: bytes of memory, operations.

A fit goes through steps, and the memory it needs is that of the largest: what is held all the time
and what the step adds. Every part has a name and a short function of the shape, in bytes. Factors
were measured as peaks of real fits; the estimates lie within a factor of 1.5 of these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from dkrls_cli.arrays import AT_ONCE
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.factors.blocks import BLOCK
from dkrls_cli.cascade.factors.quasiseparable import AT_ONCE as SOLVED_AT_ONCE
from dkrls_cli.tuning import masks, spectra
from dkrls_cli.tuning.slices.fibres import FIBRES, MIDPOINTS, NUMBERS
from dkrls_cli.tuning.slices.segments import SEGMENT, WHOLE

PROCESS = 115_000_000
"""Bytes of the interpreter and its libraries where the system does not tell what it holds."""

_STILL_TO_COME = 8_000_000
"""Bytes of libraries and buffers that a process does not hold yet when it has opened a file."""

_NUMBER = 8
"""Bytes of a number with which is computed."""

_READING = 24
"""Bytes a cell of a part that is read: as it is stored, decoded, and masks."""

_KERNELS, _GAP_KERNELS = 60, 26
"""Kernels of one level that are tried on a complete grid, and with missing cells."""

_SWEPT = 100
"""Bytes a cell that missing cells along a long level take, as measured with a twentieth missing."""

_MOST_DIRECTIONS, _CELLS_A_DIRECTION = 3000, 12
"""Directions of a coarse space at most, and cells of a grid for each: see :mod:`.gaps.coarse`."""

_BARS = 5.0
"""Arrays of all cells that standard errors take beside those of the solve."""

_SETTINGS = 60
"""Settings tried with missing cells whose answers are held."""


_SURVEY = 24_000_000
"""Bytes of libraries that are loaded to choose settings, and of what earlier panels leave."""

_PANEL_ARRAYS = 1.5
"""Arrays of all cells of a part on which settings are chosen, if no level is long."""

_CHOSEN, _GIVEN = 4.0, 1.4
"""Times the memory of the factors of all levels that levels take which are chosen, for several
kernels have theirs, or given."""


@dataclass(frozen=True)
class Footprint:
    """What a fit takes.

    Attributes
    ----------
    cells
        Cells of the grid.
    parts
        Bytes held when most memory is in use, by what they are for.
    operations
        Arithmetic operations, an upper bound.
    """

    cells: int
    parts: Mapping[str, int]
    operations: float

    @property
    def memory(self) -> int:
        """Bytes in use at most."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Machine:
    """Bytes that the process holds as it is now, and the most it has held so far."""

    held: float = math.nan
    peak: float = math.nan

    @property
    def process(self) -> int:
        """Bytes of the process when all its libraries are loaded."""
        return PROCESS if math.isnan(self.held) else int(self.held) + _STILL_TO_COME

    @property
    def opening(self) -> int:
        """Bytes that opening the file took for a while."""
        beyond = self.peak - self.held
        return 0 if math.isnan(beyond) else max(0, int(beyond) - _STILL_TO_COME)


def footprint(
    shape: Sequence[int],
    dtype: DTypeLike = np.float64,
    *,
    storage: DTypeLike = np.float64,
    compact: bool = False,
    joint: bool = False,
    gaps: bool = False,
    loaded: bool = False,
    saved: bool = False,
    others: int = 0,
    answers: int = 0,
    sphere: int = 0,
    added: int = 0,
    machine: Machine | None = None,
) -> Footprint:
    """Estimate what fitting a grid takes, before it is read.

    Parameters
    ----------
    shape, dtype
        Of the data, as it is stored.
    storage
        Type of the numbers of the model.
    compact
        Whether the model keeps only what the kernels can express.
    joint
        Whether the model has one ridge over the whole grid.
    gaps
        Whether cells are missing; the model then has one ridge over the whole grid as well.
    loaded
        Whether the data is in memory already, and part of what the process holds.
    saved
        Whether the model is written to a file.
    others
        Bytes that are held from before: other models, other data.
    answers
        Bytes of answers that are held after the fit.
    sphere
        Bytes of the matrices of latitude and longitude, if cells are missing and these are tried
        with distances on the sphere.
    added
        Cells of rows that may go on across the poles: they are added to a copy of the data.
    machine
        Bytes of the process; None leaves them out.

    Examples
    --------
    >>> found = footprint((500, 500, 50), "float32")
    >>> {part: round(size / 1e6) for part, size in found.parts.items()}
    {'levels': 12, 'data': 50, 'search': 70}
    """
    cells = math.prod(shape)
    as_read = cells * _bytes_as_read(dtype)
    own = machine or Machine(held=-_STILL_TO_COME)
    always = {"process": own.process, "held besides": others, "levels": _levels(shape)}
    data = {"data": 0 if loaded else as_read}
    model = {"model": _model(cells + added, dtype, storage, compact)}
    across = {"across the poles": (cells + added) * _bytes_as_read(dtype) if added else 0}
    steps = [{"opening": own.opening}, data | {"reading": _READING * min(cells, AT_ONCE)}]
    if gaps:
        copy = {"data as float64": 0 if _bytes_as_read(dtype) == _NUMBER else _NUMBER * cells}
        more = {"across the poles": across["across the poles"] + _missing_cells(added, False)}
        besides = data | copy | more | {"sphere": sphere}
        steps += [besides | step for step in _gap_steps(shape)]
    else:
        steps += [data | across | {"search": _search(shape)}]
        steps += [data | model | across | {"long levels": _solve_long(shape)}]
    if joint and not gaps:
        steps += [data | {"joint ridge": 3 * _NUMBER * cells}]
        steps += [data | model | across | {"error bars": 4 * _NUMBER * (cells + added)}]
    kept = {"data": 0, "model": cells * _NUMBER} if gaps else data | model
    if saved and not compact:  # which has given the data back by then
        steps += [kept | {"saving": _saved(cells, dtype, storage, gaps)}]
    if answers:
        solved = 2 * _NUMBER * cells if joint or gaps else 0  # the data in eigenbases
        steps += [kept | {"joint ridge": solved, "answers": answers}]
    largest = max(steps, key=lambda step: sum(step.values()))
    parts = {name: size for name, size in (always | largest).items() if size}
    return Footprint(cells, parts, _operations(shape))


def kept_memory(
    shape: Sequence[int], storage: DTypeLike = np.float64, dtype: DTypeLike = np.float64
) -> int:
    """Return the bytes of a model: its numbers, and the factors of its levels.

    `dtype` is that of the data: numbers of single precision stay so.
    """
    kept = sum(level_memory(size)[0] for size in shape)
    return math.prod(shape) * min(np.dtype(storage).itemsize, _bytes_as_read(dtype)) + kept


def holdout_memory(
    shape: Sequence[int],
    trained: Sequence[int],
    dtype: DTypeLike = np.float64,
    storage: DTypeLike = np.float64,
) -> int:
    """Return the bytes of a hold-out besides those of a fit to the part that trains.

    They are the whole grid, and the model of the hold-out before.
    """
    return math.prod(shape) * _bytes_as_read(dtype) + kept_memory(trained, storage, dtype)


def solve_memory(shape: Sequence[int], *, std: bool = False) -> int:
    """Return the bytes for solving for missing cells with known settings, data included.

    Standard errors take a model of the completed grid, and some arrays of its cells.
    """
    cells, long = math.prod(shape), max(shape) > choice.LONG and len(shape) > 1
    bars = int(_BARS * _NUMBER * cells) if std else 0
    smooth = 0 if long else _coarse_space(shape)
    return _levels(shape) + smooth + _missing_cells(cells, long) + _NUMBER * cells + bars


def answer_memory(cells: int, *, std: bool = False) -> int:
    """Return the bytes of answers on a grid until they are written: them and what is written.

    Standard errors are one more array, and arrays on the way to it.
    """
    return int((4.0 if std else 2.5) * _NUMBER * cells)


def survey_memory(shape: Sequence[int], *, chosen: bool, added: int = 0) -> int:
    """Return the bytes for the levels of a part of a grid beyond memory, and their error bars.

    Parameters
    ----------
    shape
        Of the part.
    chosen
        Whether a level is chosen; the search is the most of it then.
    added
        Cells of rows that may go on across the poles.
    """
    cells = math.prod(shape) + added
    factors = (_CHOSEN if chosen else _GIVEN) * _levels(shape)
    return int(_SURVEY + factors + max(_PANEL_ARRAYS * _NUMBER * cells, _solve_long(shape)))


def level_memory(size: int) -> tuple[int, int]:
    """Return the bytes of the factors of one level, and those that computing them takes besides.

    Besides the eigenvectors there are the Gram matrix, a copy of it, and twice as much for LAPACK.
    A long level has blocks of 64 samples, each with a matrix of its own if steps are uneven, which
    is not known yet: half of that is counted.
    """
    if size > choice.LONG:
        return _NUMBER * size * BLOCK // 2, 0
    return _NUMBER * size**2, 4 * _NUMBER * size**2


def _levels(shape: Sequence[int]) -> int:
    """Return the bytes of the factors of all levels, which are computed one after the other."""
    each = [level_memory(size) for size in shape]
    return sum(held for held, _ in each) + max(working for _, working in each)


def _bytes_as_read(dtype: DTypeLike) -> int:
    """Return the bytes of a cell as it is read: integers become numbers of 8 bytes."""
    stored = np.dtype(dtype)
    return int(stored.itemsize) if stored.kind == "f" else _NUMBER


def _model(cells: int, dtype: DTypeLike, storage: DTypeLike, compact: bool) -> int:
    """Return the bytes of the numbers of a model beside the data, which it shares if it can.

    How much the kernels can express is not known yet: a quarter of all is told.
    """
    stored = np.dtype(storage).itemsize
    if compact:
        return _NUMBER * cells // 4
    return stored * cells if stored < _bytes_as_read(dtype) else 0


def _saved(cells: int, dtype: DTypeLike, storage: DTypeLike, gaps: bool) -> int:
    """Return the bytes for writing the numbers of a model: :mod:`dkrls_cli.model.narrowing`.

    All bytes but those of the exponents, which are deflated; if float64 is written as float32, that
    as well.
    """
    size = _NUMBER if gaps else _bytes_as_read(dtype)
    return cells * (min(np.dtype(storage).itemsize, size) - 1) + cells // 4


def _search(shape: Sequence[int]) -> int:
    """Return the bytes for the choice of levels on a complete grid: :mod:`.slices`.

    The data as predicted half-way along the shortest level, fibres along the longest, and
    eigenvectors of all kernels on the coordinates that are seen.
    """
    cells, shortest, longest = math.prod(shape), min(shape), max(shape)
    midpoints = cells * min(MIDPOINTS, shortest) // shortest if shape[1:] else 0
    fibres = 2 * min(longest * min(FIBRES, cells // longest), NUMBERS)
    seen = [m if m <= WHOLE else SEGMENT for m in shape]
    kernels = min(_KERNELS * sum(m * m for m in seen), spectra.HELD // _NUMBER)
    return _NUMBER * (midpoints + fibres + kernels)


def _solve_long(shape: Sequence[int]) -> int:
    """Return the bytes for solving along a long level: fibres, weights, and five arrays of a part.

    See :mod:`dkrls_cli.cascade.factors.quasiseparable`.
    """
    cells = math.prod(shape)
    return _NUMBER * (2 * cells + 5 * min(cells, SOLVED_AT_ONCE)) if max(shape) > choice.LONG else 0


def _gap_steps(shape: Sequence[int]) -> list[dict[str, int]]:
    """Return the bytes for the choice with missing cells, and for the solve: :mod:`.gaps`.

    The choice holds eigenvectors of all kernels on the coordinates of windows,
    which stay, and the answers of all settings in the windows.
    """
    cells, long = math.prod(shape), max(shape) > choice.LONG and len(shape) > 1
    room = masks.view_room(len(shape))
    whole = cells <= room * masks.WHOLE and not long
    sides = shape if whole else masks.window_sides(shape, room * masks.WINDOW)
    numbers = sum(side * side for side in sides) * (1 if whole else masks.WINDOWS)
    kernels = min(_GAP_KERNELS * _NUMBER * numbers, spectra.HELD)
    answers = _NUMBER * _SETTINGS * min(cells, room * masks.WHOLE)
    smooth = 0 if long else _coarse_space(shape)
    return [
        {"search": kernels + answers, "smooth directions": smooth},
        {
            "search": kernels,
            "smooth directions": smooth,
            "missing cells": _missing_cells(cells, long),
        },
    ]


def _coarse_space(shape: Sequence[int]) -> int:
    """Return the bytes for the smooth directions of a grid with holes, some matrices of them.

    Scattered gaps need none. Maps have holes; with a third dimension half of what they take is
    told, as it is not known yet how the missing cells lie.
    """
    matrices = 2.5 if len(shape) <= 2 else 1.25
    directions = min(_MOST_DIRECTIONS, math.prod(shape) // _CELLS_A_DIRECTION)
    return int(matrices * _NUMBER * directions**2)


def _missing_cells(cells: int, long: bool) -> int:
    """Return the bytes for solving for missing cells: :mod:`dkrls_cli.gaps.refine`.

    They are the completed grid, the eigenvalues, the direction, and three arrays for products with
    eigenvectors, all whole grids, and vectors of the missing cells. Along a long level neighbouring
    missing cells have matrices in common (:mod:`dkrls_cli.gaps.sweep`).
    """
    return int(9.0 * _NUMBER * cells) + (_SWEPT * cells if long else 0)


def _operations(shape: Sequence[int]) -> float:
    """Return the operations of a fit: those of the answers, and of the factors."""
    cells, dense = math.prod(shape), [m for m in shape if m <= choice.LONG]
    long = sum(4.0 * (m * BLOCK**2 + cells * BLOCK) for m in shape if m > choice.LONG)
    return 0.5 * cells * max(dense, default=0) + 12.0 * sum(m**3 for m in dense) + long
