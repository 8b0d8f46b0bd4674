"""Growth of cost with the cells of a grid, at fixed ranks: fits and answers, as a slope.

A field of a few waves with noise is sampled ever more finely. The length scales of the kernels are
shares of the axes, so that the number of directions that a kernel can express does not change. What
is left is linear in the cells: a compact fit reads them once, and answers write them once. Factors
of the levels take the cube of their samples, which on a cube is linear in the cells as well.

Below half a million cells the fixed cost of a fit, some milliseconds, counts as much as its cells:
growth is measured from there.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dkrls_cli.arrays import Array
from dkrls_cli.bench.speed import Measure
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.memory import available_bytes

SIDES = (80, 172, 369, 794)
"""Samples of a cube along each dimension: half a million cells to half a billion, tenfold each."""

_SIGMA, _RIDGE = 0.3, 1e-3
"""Length scale of every level, as a share of its axis, and its ridge."""

_BYTES = 6
"""Bytes a cell that must be free: the data, in single precision, and half as much on the way."""

_PART = 2**15
"""Cells that are answered at once: few enough that parts of small and large grids fit a cache."""

_FEW, _RUNS = 10**7, 6
"""Cells up to which a time is the median of several runs after the first, and these runs."""


@dataclass(frozen=True)
class Growth:
    """Times of one size of a grid.

    Attributes
    ----------
    cells
        Cells of the grid.
    fit, predict
        Seconds of a compact fit with given settings, and of answers half-way between all cells.
    products
        Seconds of bare matrix products of the same ranks, over the same cells.
    """

    cells: int
    fit: float
    predict: float
    products: float

    @property
    def is_small(self) -> bool:
        """Whether times are medians of several runs."""
        return self.cells <= _FEW


def measure_cells(
    seconds: float, sides: Sequence[int] = SIDES, free: float | None = None
) -> Iterator[Measure]:
    """Yield times per million cells, beside bare products, and the slopes of their growth.

    Parameters
    ----------
    seconds
        Time that one size may take: the series ends before one that would take longer.
    sides
        Samples along each of three dimensions, smallest first.
    free
        Bytes that may be used; None asks the system. The series ends before more are needed.
    """
    room, found = available_bytes() if free is None else free, list[Growth]()
    with threadpool_limits(limits=1):
        expected = 0.0
        for side in sides:
            if _BYTES * side**3 > room or expected * side**3 > seconds:
                break
            start = perf_counter()
            found.append(measure_side(side))
            yield from _measures(side, found[-1])
            expected = (perf_counter() - start) / side**3 / (_RUNS if found[-1].is_small else 1)
    yield from slopes(found)


def measure_side(side: int) -> Growth:
    """Measure a cube of so many samples along each dimension."""
    values, axis = make_waves(side), np.linspace(0.0, 1.0, side)
    levels = [Level(name, Kernel(sigma=_SIGMA), _RIDGE) for name in "xyz"]
    trained: list[Cascade] = []

    def fit() -> None:
        trained[:] = [fit_cascade(values, [axis] * 3, levels, mean=10.0, compact=True)]

    timed = partial(_seconds, runs=_RUNS if values.size <= _FEW else 1)
    fit_seconds = timed(fit)
    middles = [axis[:-1] + 0.5 / (side - 1)] * 3
    predict_seconds = timed(lambda: _ask(trained[0], middles))
    products = timed(make_thin_products(values, trained[0].core.shape))
    return Growth(values.size, fit_seconds, predict_seconds, products)


def make_waves(side: int) -> NDArray[np.float32]:
    """Return a field of twelve waves with noise on a cube, read-only, in single precision."""
    rng = np.random.default_rng(0)
    at = np.linspace(0.0, 2 * np.pi, side)
    waves = np.sin(rng.uniform(1, 4, (3, 12, 1)) * at + rng.uniform(0, 6, (3, 12, 1)))
    values = np.empty((side,) * 3, np.float32)
    for place, slab in enumerate(values):
        smooth = (waves[0, :, place, None] * waves[1]).T @ waves[2] + 10
        slab[:] = smooth + 0.05 * rng.standard_normal(slab.shape, dtype=np.float32)
    values.setflags(write=False)
    return values


def make_thin_products(values: NDArray[np.float32], ranks: Sequence[int]) -> Callable[[], None]:
    """Return a job of the matrix products that reduce an array to some ranks, axis by axis."""
    rng = np.random.default_rng(1)
    rows = [rng.standard_normal((r, n)) for r, n in zip(ranks, values.shape, strict=True)]

    def run() -> None:
        done: Array = np.concatenate(
            [(rows[2] @ slab.T.astype(np.float64))[None] for slab in values]
        )  # (x, rank, y)
        done = np.matmul(done, rows[1].T)
        np.matmul(rows[0], done.reshape(len(done), -1))

    return run


def slopes(found: Sequence[Growth]) -> Iterator[Measure]:
    """Yield the slopes of time over cells, both in logarithms; none of a single size.

    Examples
    --------
    >>> linear = [Growth(10**n, 2e-9 * 10**n, 1e-9 * 10**n, 1e-9) for n in (6, 7, 8)]
    >>> [(measure.what, round(measure.value, 3)) for measure in slopes(linear)]
    [('growth of a fit, 10^6 to 10^8 cells', 1.0), ('growth of midpoints, 10^6 to 10^8 cells', 1.0)]
    """
    if len(found) < 2:
        return
    cells = np.log10([one.cells for one in found])
    ends = f"10^{cells[0]:.2g} to 10^{cells[-1]:.2g} cells"
    for what, times in (
        ("a fit", [one.fit for one in found]),
        ("midpoints", [one.predict for one in found]),
    ):
        slope = float(np.polyfit(cells, np.log10(times), 1)[0])
        yield Measure(f"growth of {what}, {ends}", slope, "slope, 1 is linear")


def _measures(side: int, one: Growth) -> Iterator[Measure]:
    """Yield what is told of one size."""
    millions, size = one.cells / 1e6, f"{side}^3"
    for what, seconds in (("compact fit", one.fit), ("all midpoints", one.predict)):
        yield Measure(
            f"{what}, fixed ranks, {size}", 1e3 * seconds / millions, "ms a million cells"
        )
        yield Measure(f"the same, {size}", seconds / one.products, "x the products")


def _ask(trained: Cascade, queries: Sequence[Array]) -> None:
    """Answer a grid in parts, none of which is kept."""
    for _ in trained.predict_blocks(queries, _PART):
        pass


def _seconds(job: Callable[[], object], runs: int) -> float:
    """Return the processor time of a job, the median of its runs without the first if several.

    On one thread that is its time on a machine that has nothing else to do.
    """
    times = []
    for _ in range(runs):
        start = process_time()
        job()
        times.append(process_time() - start)
    return statistics.median(times[1:] or times)
