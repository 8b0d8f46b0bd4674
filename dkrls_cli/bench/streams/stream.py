"""Streams: every slice forecast before it is learnt, by this package and by online methods.

A cell that is missing is not scored, and what was forecast for it is learnt in its place.

Settings of the online methods are searched on the first steps of the stream; then all run over
the whole of it. This package has no settings to search. What a method did after the part that the
search has seen is told besides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.bench.real.race import NONE, OURS
from dkrls_cli.bench.streams.contenders import (
    CONTENDERS,
    Choice,
    choice_text,
    descended,
    feed_of,
    maker,
    middle,
)
from dkrls_cli.bench.streams.online import Forecaster, LastValue, Online, Units
from dkrls_cli.bench.streams.ours import FIRST, Ours
from dkrls_cli.circle import spacing
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.stream import Plan
from dkrls_cli.threads import one_blas_thread

LAST = "last-value"
FIXED = "dkrls-fixed"
METHODS = (LAST, OURS, FIXED, *CONTENDERS)
SEARCHED, SERIES = 1000, 16
"""Steps and series on which settings are searched."""

_SHARE = 0.25
"""Of a short stream, how much is searched at most."""

_TRIAL = 0.05
"""Share of the time limit for the steps of a trial."""

_LEAST = 3


@dataclass(frozen=True, eq=False)
class Stream:
    """Slices in the order of their coordinates.

    Attributes
    ----------
    coordinates
        Of the slices (steps,).
    values
        The slices (steps, series).
    places
        Of the series (series, dimensions) in steps of each dimension, the first running fastest.
    few
        Series spread over all of them, as a grid, for a search to see.
    """

    coordinates: Array
    values: Array
    places: Array
    few: NDArray[np.intp]

    @property
    def steps(self) -> int:
        """Number of slices."""
        return len(self.values)

    @property
    def searched(self) -> int:
        """How many of the first steps a search may see."""
        return min(SEARCHED, int(_SHARE * self.steps))

    def first(self, steps: int) -> Stream:
        """Its beginning."""
        return replace(self, coordinates=self.coordinates[:steps], values=self.values[:steps])

    def thinned(self) -> Stream:
        """A few of its series."""
        few = np.arange(self.few.size)
        return replace(self, values=self.values[:, self.few], places=self.places[self.few], few=few)

    def units(self) -> Units:
        """What sizes are counted in, from its beginning."""
        changes = np.diff(self.values[: max(self.searched, 2)], axis=0)
        squares = changes[np.isfinite(changes)] ** 2
        usual = float(np.sqrt(squares.mean())) if squares.size else 0.0
        step = float(np.median(np.diff(self.coordinates)))
        return Units(usual or 1.0, step, self.places)


def stream_of(grid: Grid, levels: Sequence[str] | None = None) -> Stream:
    """A grid as a stream along its last level."""
    last = hierarchy_of(grid.axes, levels)[-1]
    place = grid.dims.index(last)
    axis = grid.axes[place]
    if axis.size < _LEAST:
        raise InputError(
            f"'{grid.name}' has {axis.size} coordinates of {last}, its last level. "
            f"A stream needs {_LEAST} at least."
        )
    order = np.argsort(axis.numbers, kind="stable")
    slices = np.moveaxis(np.asarray(grid.values, np.float64), place, 0)[order]
    others = [other.numbers / spacing(other.numbers) for other in grid.axes if other.name != last]
    mesh = np.meshgrid(*others, indexing="ij")[::-1] or [np.zeros(1)]
    places = np.stack([numbers.ravel() for numbers in mesh], axis=1)
    few = _spread([other.size for other in others])
    return Stream(axis.numbers[order], slices.reshape(axis.size, -1), places, few)


def _spread(sizes: Sequence[int]) -> NDArray[np.intp]:
    """Cells of a grid of such sizes that are a smaller grid, as numbers of cells."""
    if not sizes:
        return np.zeros(1, np.intp)
    side = int(SERIES ** (1 / len(sizes)))
    taken = [np.linspace(0, n - 1, min(side, n)).astype(np.intp) for n in sizes]
    return np.arange(math.prod(sizes)).reshape(sizes)[np.ix_(*taken)].ravel()


@dataclass(frozen=True, eq=False)
class Run:
    """What a forecaster did, and the time it took.

    A run that was stopped, or that failed, has the steps until then.

    Attributes
    ----------
    squares, cells
        Sum of the squared errors of every step but the first, and number of observed cells.
    """

    squares: Array
    cells: Array
    seconds: float
    settings: str = ""
    note: str = ""
    out_of_time: bool = False

    @property
    def steps(self) -> int:
        """Number of forecasts."""
        return self.squares.size

    def rmse(self, start: int = 0, stop: int | None = None) -> float:
        """Error of some of the forecasts; NaN of none."""
        cells = float(self.cells[start:stop].sum())
        return math.sqrt(float(self.squares[start:stop].sum()) / cells) if cells else NONE


def prequential(forecaster: Forecaster, stream: Stream, limit: float) -> Run:
    """Forecast every slice, then learn it, as long as there is time."""
    squares, note, late, start = list[float](), "", False, perf_counter()
    observed = np.isfinite(stream.values)
    forecaster.learn(float(stream.coordinates[0]), _filled(stream.values[0]))
    with np.errstate(all="ignore"), one_blas_thread():
        for place, coordinate in enumerate(stream.coordinates[1:].tolist(), start=1):
            late = perf_counter() - start > limit
            if late:
                note = f"stopped after {limit:g} s"
                break
            try:
                guess = forecaster.forecast(coordinate)
                values = np.where(observed[place], stream.values[place], guess)
                forecaster.learn(coordinate, values)
            except (DkrlsError, np.linalg.LinAlgError) as error:
                note = f"failed: {' '.join(str(error).split()).rstrip('.')}"
                break
            if not np.isfinite(guess).all():
                note = "answers are not all finite"
                break
            squares.append(float(np.sum((guess - values) ** 2)))
    cells = observed[1 : len(squares) + 1].sum(axis=1)
    return Run(np.array(squares), cells, perf_counter() - start, note=note, out_of_time=late)


def _filled(values: Array) -> Array:
    """A first slice whose missing cells have the mean of the others."""
    observed = np.isfinite(values)
    return np.where(observed, values, values[observed].mean() if observed.any() else 0.0)


def run_of(method: str, stream: Stream, window: int, limit: float) -> Run:
    """A method over the stream, its settings searched before if it has any."""
    if method == LAST:
        return prequential(LastValue(), stream, limit)
    if method in (OURS, FIXED):
        return _ours(stream, Plan(window, retune=method == OURS), limit)
    found = descended(CONTENDERS[method], _search_error(method, stream, limit), limit)
    run = prequential(_online(method, found.choice, stream), stream, limit)
    searched = f"best of {found.tried} tried in {found.seconds:.0f} s"
    return replace(run, settings=f"{choice_text(found.choice)} ({searched})")


def _ours(stream: Stream, plan: Plan, limit: float) -> Run:
    first = min(FIRST, max(stream.searched, _LEAST))
    run = prequential(Ours(plan, first), stream, limit)
    how = "settings averaged by how they did of late" if plan.retune else "settings of that fit"
    return replace(run, settings=f"fitted to the first {first}, window {plan.window}, {how}")


def _online(method: str, choice: Choice, stream: Stream) -> Online:
    units = stream.units()
    return Online(maker(method, choice, units.places.shape[1]), feed_of(choice), units)


def _search_error(method: str, stream: Stream, limit: float) -> Callable[[Choice], float]:
    """Error of a method by its settings, on the beginning of a stream and a few of its series.

    The first trial says how far there is time to go; all others go as far, or are no use.
    """
    whole = stream.first(max(stream.searched, _LEAST)).thinned()
    first = prequential(_online(method, middle(CONTENDERS[method]), whole), whole, _TRIAL * limit)
    part = whole.first(max(first.steps + 1, _LEAST)) if first.out_of_time else whole

    def error(choice: Choice) -> float:
        run = prequential(_online(method, choice, part), part, 4 * _TRIAL * limit)
        return run.rmse() if run.steps == part.steps - 1 else math.inf

    return error


def rows_of(runs: Mapping[str, Run], searched: int) -> list[dict[str, Any]]:
    """One row per method, each against the last value and against ours on the same steps."""
    return [
        {
            "method": method,
            "steps": run.steps,
            "rmse": run.rmse(),
            "to_last_value": _ratio(run, runs.get(LAST)),
            "to_last_value_later": _ratio(run, runs.get(LAST), searched),
            "to_dkrls": _ratio(run, runs.get(OURS)),
            "to_dkrls_later": _ratio(run, runs.get(OURS), searched),
            "seconds": run.seconds,
            "steps_per_second": run.steps / run.seconds,
            "settings": run.settings,
            "note": run.note,
        }
        for method, run in runs.items()
    ]


def _ratio(run: Run, other: Run | None, start: int = 0) -> float:
    """Error of a run by that of another on the steps that both have done."""
    stop = min(run.steps, other.steps) if other else 0
    below = other.rmse(start, stop) if other else NONE
    return run.rmse(start, stop) / below if below > 0 else NONE
