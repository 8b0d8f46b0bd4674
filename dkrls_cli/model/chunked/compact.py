"""Compact models of grids beyond memory: one pass over the data, given or surveyed settings.

The model is the one that a fit in memory keeps with ``compact``: in every level, the directions
that its kernel can express. Only data that spans less than that by itself, such as a product of
functions without noise, is kept more exactly in memory.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.factors.levels import AnyFactor, express, make_factors
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.factors.quasiseparable import AT_ONCE
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.answering.bounds import Bounds, bounds_asked, settle_bounds, unclear_limits
from dkrls_cli.model.answering.tolerance import PROMISE
from dkrls_cli.model.chunked.ground import Ground, prepare
from dkrls_cli.model.chunked.promise import keep_promise, measure_rest
from dkrls_cli.model.chunked.reduction import (
    Matrices,
    Partial,
    Read,
    Reduction,
    Slab,
    SlabPlan,
    Sums,
    make_reduction,
    mirrored_constant,
    plan_slabs,
    reduce_slab,
)
from dkrls_cli.model.chunked.survey import Surveyed, plan_survey, survey
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import Settings
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.footprint import level_memory

T = TypeVar("T")

Tell = Callable[[float], None]
"""Called with the share that is done."""


Run = Callable[[Read, Reduction, Sequence[Slab]], Iterable[Partial]]
"""Runs :func:`.reduction.reduce_slab` for every slab, and yields the results in any order."""

_MOST_WORKERS = 4
"""Slabs that are worked on at once at most: reading does not get faster with more."""


@dataclass(frozen=True, eq=False)
class CompactPlan:
    """A pass over a grid that makes a compact model of it.

    Attributes
    ----------
    ground
        The grid.
    levels, rows
        Levels, and rows across the poles, or None.
    factors, frames
        Of all axes, with these rows.
    slabs
        How the grid is cut.
    core_bytes
        Bytes of the core.
    bytes_read
        Bytes of the values that are read.
    memory
        Bytes in use at most, the program included.
    workers
        Slabs that are worked on at once.
    """

    ground: Ground
    levels: tuple[Level, ...]
    rows: Continuation | None
    factors: tuple[AnyFactor, ...]
    frames: Matrices
    slabs: SlabPlan
    core_bytes: int
    bytes_read: int
    memory: int
    workers: int = 1

    @property
    def coordinates(self) -> tuple[Array, ...]:
        """Coordinates of all levels, those of rows across the poles included."""
        return _coordinates(self.ground, self.rows)

    @property
    def reduction(self) -> Reduction:
        """How the data is reduced to the core."""
        return make_reduction(
            self.frames,
            self.slabs.outer,
            self.ground.columns,
            self.rows,
            constant=self.ground.settings.centre != 0,
        )

    def tasks(self) -> list[Slab]:
        """Return the slabs: each is an independent task of :func:`.reduction.reduce_slab`."""
        return list(self.slabs.slabs(self.ground.stored.shape))


def _coordinates(ground: Ground, rows: Continuation | None) -> tuple[Array, ...]:
    numbers = [axis.numbers for axis in ground.axes]
    if rows is not None:
        numbers[rows.latitude] = rows.extend_latitudes(numbers[rows.latitude])
    return tuple(numbers)


def plan_compact(ground: Ground, surveyed: Surveyed, limit: float = math.inf) -> CompactPlan:
    """Plan the pass over a grid, before it is read.

    Parameters
    ----------
    ground, surveyed
        The grid, and its settings.
    limit
        Bytes that may be in use, the program included.

    Raises
    ------
    InputError
        If the core is larger than memory allows.
    """
    levels, rows = surveyed.model.cascade.levels, surveyed.model.poles
    numbers = _coordinates(ground, rows)
    constant = ground.settings.centre != 0
    with one_blas_thread():  # many small factorisations
        made = make_factors(numbers, levels, None, [None] * len(levels))
        factors = tuple(map(express, made))
        frames = tuple(_frame(factor, constant) for factor in factors)
    sizes = [
        number.size if frame is None else frame.shape[1]
        for number, frame in zip(numbers, frames, strict=True)
    ]
    core = 8 * math.prod(sizes)
    held = surveyed.plan.process + core + sum(level_memory(number.size)[0] for number in numbers)
    held += sum(frame.nbytes for frame in frames if frame is not None)
    stored, workers = ground.stored, min(_MOST_WORKERS, os.cpu_count() or 1)
    while True:
        slabs = plan_slabs(stored, sizes, (limit - held) / (workers + 1))
        memory = held + workers * slabs.memory + slabs.result  # one waits to be added
        memory = max(memory, held + _bars_memory(factors, math.prod(sizes)))
        cut = any(side < chunk for side, chunk in zip(slabs.sides, stored.chunks, strict=True))
        if workers == 1 or (memory <= limit and not cut):  # a chunk is not read twice
            break
        workers -= 1
    if memory > limit:
        raise _too_large(sizes, levels, numbers, memory, limit)
    return CompactPlan(
        ground, levels, rows, factors, frames, slabs, core, stored.bytes, memory, workers
    )


def _too_large(
    sizes: Sequence[int],
    levels: Sequence[Level],
    numbers: Sequence[Array],
    memory: float,
    limit: float,
) -> InputError:
    """Return the error of a model that memory does not hold; it names the levels that are rough."""
    kept = [
        f"{size} of {own.size} directions of {level.name} ({level.kernel.family}"
        + ("" if level.kernel.is_spline else f", sigma {level.kernel.sigma:.3g}")
        + ")"
        for size, level, own in zip(sizes, levels, numbers, strict=True)
        if size > own.size / 2
    ]
    why = f": its kernels are rough and keep {', '.join(kept)}" if kept else ""
    remedy = "longer sigmas or Gaussian kernels there" if kept else "longer sigmas"
    return InputError(
        f"The compact model has {' x '.join(map(str, sizes))} numbers, and its fit takes about "
        f"{math.ceil(memory / 1e6)} MB where {limit / 1e6:.0f} MB are allowed{why}. Allow so much "
        f"memory, give {remedy}, or keep the data where it is, with a model that refers to it and "
        "is not compact.",
        setting="max_memory",
    )


def _bars_memory(factors: Sequence[AnyFactor], cells: int) -> int:
    """Return the bytes that error bars take beside the core: a long level solves for all of it."""
    if not any(isinstance(factor, LongFactor) for factor in factors):
        return 8 * cells
    return 8 * (3 * cells + 5 * min(cells, AT_ONCE))


def _frame(factor: AnyFactor, constant: bool) -> Array | None:
    """Return the frame of a level, as :func:`dkrls_cli.cascade.fit.fit_cascade` has it."""
    if not isinstance(factor, Spectrum) or factor.rank >= len(factor.vectors):
        return None
    if not constant:
        return factor.vectors
    ones = np.ones(len(factor.vectors))
    return np.linalg.qr(np.column_stack([factor.vectors, ones]))[0]


def fit_compact(
    source: Source,
    settings: Settings,
    limit: float = math.inf,
    *,
    surveyed: Surveyed | None = None,
    tell: Tell = lambda share: None,
    run: Run | None = None,
) -> Model:
    """Fit a compact model of a grid in one pass over its chunks.

    Parameters
    ----------
    source
        The grid.
    settings
        Settings of the fit.
    limit
        Bytes that may be in use, the program included.
    surveyed
        Settings that were chosen; None: they are, on a few chunks.
    tell
        Called with the share that is done.
    run
        Yields the result of :func:`.reduction.reduce_slab` for each slab, in any order; None: they
        are computed here, one after the other.

    Returns
    -------
    Model
        Equal to a compact fit in memory with these settings.

    Raises
    ------
    InputError
        If cells are missing, or the model is larger than memory allows.
    SettingError
        If a setting is not possible, or not for a grid beyond memory.
    """
    ground = prepare(source, settings)
    if settings.allowed is not None:
        settings.allowed.check_units(source.name, source.attrs)
    found = _survey(source, settings, limit) if surveyed is None else surveyed
    plan = plan_compact(ground, found, limit)
    return _finish(plan, found, _pass(plan, tell, run))


def plan_given(source: Source, settings: Settings, limit: float = math.inf) -> CompactPlan | None:
    """Plan the pass over a grid whose settings are given; None if some are left to be chosen.

    Nothing is read. Parameters and errors are those of :func:`fit_compact`.
    """
    panels = plan_survey(source, settings, None, limit, bars=False).panels
    if any(panel.whole for panel in panels):
        return None
    return plan_compact(prepare(source, settings), _survey(source, settings, limit), limit)


def _survey(source: Source, settings: Settings, limit: float) -> Surveyed:
    """Return the settings of a grid; where none is to be chosen, nothing is read for its mean."""
    panels = plan_survey(source, settings, None, limit, bars=False).panels
    if not any(panel.whole for panel in panels) and settings.centre is None:
        settings = replace(settings, mean=0.0)  # the pass tells it
    return survey(source, settings, None, limit, bars=False)


_FILL_FIRST = (
    "A compact model of a grid beyond memory needs all of them: fill the gaps in tiles first, or "
    "take all of the grid into memory."
)


def _pass(
    plan: CompactPlan,
    tell: Tell,
    run: Run | None,
) -> Sums:
    """Return the sums over all slabs of a grid."""
    reduction, slabs, ground = plan.reduction, plan.tasks(), plan.ground
    read = ground.source.read
    assert read is not None
    sums = Sums(np.zeros(reduction.shape))
    parts = (run or partial(run_here, workers=plan.workers))(read, reduction, slabs)
    for part in parts:
        if part.missing is not None:
            raise InputError(
                f"A cell of '{ground.source.name}' is missing, at {_place(ground, part.missing)}. "
                f"{_FILL_FIRST}",
                setting="max_memory",
            )
        sums.add(part)
        tell(sums.cells / math.prod(ground.stored.shape))
    return sums


def run_here(
    read: Read, reduction: Reduction, slabs: Sequence[Slab], workers: int = 1
) -> Iterator[Partial]:
    """Yield what every slab adds to a model, in their order; some slabs are worked on at once."""
    return _run_some(partial(reduce_slab, read, reduction), slabs, workers)


def _run_some(task: Callable[[Slab], T], slabs: Sequence[Slab], workers: int) -> Iterator[T]:
    """Yield the results of a task for every slab, in their order, a few of them at once."""
    waiting: deque[Future[T]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        try:
            for slab in slabs:
                waiting.append(pool.submit(task, slab))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


def _place(ground: Ground, cell: Sequence[int]) -> str:
    """Return the coordinates of a cell in words."""
    pairs = zip(ground.axes, cell, strict=True)
    return ", ".join(f"{axis.name}={axis.take([i]).texts[0]}" for axis, i in pairs)


def _finish(plan: CompactPlan, surveyed: Surveyed, sums: Sums) -> Model:
    """Return the model of a grid whose core is known."""
    ground, rows = plan.ground, plan.rows
    settings, centre = ground.settings, ground.settings.centre
    mean = sums.mean if centre is None else centre
    if rows is not None:
        rows = replace(rows, mean=mean)
        constant = mirrored_constant(rows, plan.frames, [c.size for c in plan.coordinates], mean)
        if constant is not None:
            sums.core += constant
    extremes = np.array([sums.least, sums.largest])
    _grid_of(ground, extremes).refuse_unsuitable()
    allowed = settings.allowed
    core = np.ascontiguousarray(sums.core, "float64" if allowed else settings.dtype)
    core.setflags(write=False)
    cascade = Cascade(
        plan.levels,
        plan.coordinates,
        plan.factors,
        plan.frames,
        core,
        dropped=_dropped(sums),
        mean=mean,
        compact=True,
    )
    bars = calibrate(cascade, rows)
    promise = None
    if allowed is not None:
        assert ground.source.read is not None
        task = partial(measure_rest, ground.source.read, plan.reduction, core)
        rests = _run_some(task, plan.tasks(), plan.workers)
        cascade, promise = keep_promise(cascade, ground.axes, sums.spread, allowed, rests)
    bounds, note = _bounds(ground, extremes)
    facts = {**surveyed.model.origin, "bounds": note, PROMISE: promise}
    return replace(
        surveyed.model,
        cascade=cascade,
        known_bars=bars,
        poles=rows,
        bounds=bounds,
        origin={key: fact for key, fact in facts.items() if fact},
    )


def _grid_of(ground: Ground, values: Array) -> Grid:
    """Return a few values with the axes and attributes of a grid."""
    source = ground.source
    return Grid(values, ground.axes, source.name, source.attrs, source.style)


def _bounds(ground: Ground, extremes: Array) -> tuple[Bounds | None, str]:
    """Return the bounds of answers and a note, from the least and the largest value."""
    given, grid = ground.settings.bounds, _grid_of(ground, extremes)
    asked, told = bounds_asked(given, grid)
    if asked is None:
        return None, unclear_limits(given, grid)
    bounds = asked.round_out(extremes)
    outside = bounds.count_outside(extremes)
    low, high = extremes
    return settle_bounds(bounds, told, f"values reach from {low:g} to {high:g}" if outside else "")


def _dropped(sums: Sums) -> float:
    """Return the share of the sum of squares that the core does not hold."""
    whole, held = math.fsum(sums.squares), float(np.vdot(sums.core, sums.core))
    return max(0.0, 1.0 - held / whole) if whole > 0 else 0.0
