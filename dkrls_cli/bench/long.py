"""Times, memory and accuracy of long dimensions, as ratios measured in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from dkrls_cli.arrays import Array
from dkrls_cli.bench.machine import median_seconds
from dkrls_cli.bench.speed import Measure
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.grid.axes import Axis
from dkrls_cli.memory import held_bytes, peak_bytes, reset_peak
from dkrls_cli.model.fit import fit
from dkrls_cli.model.model import Model
from dkrls_cli.model.stream import Plan, Stream

LENGTHS = (10_000, 20_000, 40_000, 80_000, 160_000)
"""Samples of the grids that show how cost grows with a long dimension."""

HOURS, SENSORS = 8760, 16
"""Hours of a year, and sensors of a small network."""

# Length scale in steps, and ridge, with which a long factor is compared with a dense one.
_SIGMA, _RIDGE = 20.0, 1e-3


def make_series(steps: int, columns: int, seed: int = 0) -> Array:
    """Return made-up sensors (steps, columns): a daily wave, a wandering mean, and noise."""
    rng = np.random.default_rng(seed)
    hours = np.arange(float(steps))[:, None]
    wave = np.sin(2 * np.pi * hours / 24 + rng.uniform(0, 6, columns))
    wander = 0.05 * rng.standard_normal((steps, columns)).cumsum(axis=0)
    return np.asarray(20 + 3 * wave + wander + 0.1 * rng.standard_normal((steps, columns)))


def measure_long(
    lengths: tuple[int, ...] = LENGTHS,
    appends: int = 200,
    appended: tuple[int, int] = (5_000, 50_000),
) -> Iterator[Measure]:
    """Yield how cost grows with a long dimension, and a year of hours against splines."""
    with threadpool_limits(limits=1):
        yield from measure_lengths(lengths)
        yield from measure_agreement(min(4000, lengths[0]))
        yield from measure_year()
        yield from measure_appending(appends, appended)
        yield from measure_streaming(appends)


def measure_lengths(lengths: tuple[int, ...], columns: int = 64) -> Iterator[Measure]:
    """Yield the time of a fit with its own choice of settings and of answers half-way."""
    before = 0.0
    for steps in lengths:
        values = make_series(steps, columns)
        held = held_bytes()
        reset_peak()
        seconds = _seconds(partial(_fit_and_ask, values))
        size = f"{steps} x {columns}"
        yield Measure(f"fit and answers half-way, {size}", seconds, "s")
        if before:
            yield Measure(f"the same, {size}", seconds / before, "x half as many")
        if steps == lengths[-1]:
            yield Measure(f"memory, {size}", (peak_bytes() - held) / values.nbytes, "x the data")
            yield Measure(f"memory of the process, {size}", peak_bytes() / 1e9, "GB")
        before = seconds


def _fit_and_ask(values: Array) -> Array:
    """Return answers half-way between the steps of a series, with settings chosen on it."""
    hours = np.arange(float(len(values)))
    model = _fit(values, hours)
    return model.cascade.predict([hours[:-1] + 0.5, None])


def _fit(values: Array, hours: Array) -> Model:
    axes = {"time": hours, "sensor": np.arange(float(values.shape[1]))}
    return fit(values, axes, ["sensor", "time"])


def measure_agreement(steps: int) -> Iterator[Measure]:
    """Yield the largest difference to a dense factor, half-way between the steps."""
    hours, values = np.arange(float(steps)), make_series(steps, 4) - 20
    middle = hours[:-1] + 0.5
    for family in FAMILIES:
        kernel = Kernel(family, _SIGMA, constant=1.0)
        spectrum = decompose(gram(kernel, hours, hours)).solvable(_RIDGE)
        rows = gram(kernel, middle, hours) @ spectrum.vectors
        dense = rows @ spectrum.solve(_RIDGE, values)
        factor = LongFactor.build(kernel, hours, _RIDGE)
        found = factor.answer(middle, factor.solve(values))
        worst = float(np.abs(found - dense).max()) / float(values.std())
        yield Measure(f"{family} against the dense factor, {steps}", worst, "x the spread")


def measure_year() -> Iterator[Measure]:
    """Yield a year of hours against cubic splines, and the size of its model."""
    from scipy.interpolate import make_interp_spline

    hours, values = np.arange(float(HOURS)), make_series(HOURS, SENSORS)
    middle = hours[:-1] + 0.5
    spline = median_seconds(lambda: make_interp_spline(hours, values, k=3)(middle), 5)
    own = median_seconds(partial(_fit_and_ask, values), 3)
    size = f"{HOURS} x {SENSORS}"
    yield Measure(f"fit and answers half-way, {size}", own / spline, "x scipy cubic splines")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        _fit(values, hours).save(path)
        share = path.stat().st_size / values.nbytes
    yield Measure(f"model file, {size}", share, "x the data")


def measure_appending(count: int, lengths: tuple[int, int]) -> Iterator[Measure]:
    """Yield the cost of one more slice of a long series relative to that of a shorter one."""
    shorter, longer = (_append_seconds(steps, count) for steps in lengths)
    yield Measure(f"appending a slice to {lengths[0]}", 1e3 * shorter, "ms")
    yield Measure(f"appending a slice to {lengths[1]}", longer / shorter, "x the shorter")


def _append_seconds(steps: int, count: int) -> float:
    """Return the median time of appending one slice to a series of so many."""
    values = make_series(steps + count, SENSORS)
    hours = np.arange(float(steps + count))
    model, times = _fit(values[:steps], hours[:steps]), []
    for step in range(steps, steps + count):
        start = perf_counter()
        model = model.update(values[step : step + 1], hours[step : step + 1])
        times.append(perf_counter() - start)
    return statistics.median(times[count // 4 :])


def measure_streaming(count: int) -> Iterator[Measure]:
    """Yield the slices that a stream with a window of a year takes in one second."""
    values = make_series(HOURS + 2 * count, SENSORS)
    hours = np.arange(float(len(values)))
    for retune in (False, True):
        stream = Stream(_fit(values[:HOURS], hours[:HOURS]), Plan(window=HOURS, retune=retune))
        time = stream.model.axes[0]

        def run(first: int, stream: Stream = stream, time: Axis = time) -> None:
            for step in range(first, first + count):
                stream.step(time.at(hours[step]), values[step : step + 1])

        run(HOURS)
        rate = count / _seconds(partial(run, HOURS + count))
        how = ", settings weighed" if retune else ""
        yield Measure(f"stream of {SENSORS}, window {HOURS}{how}", rate, "steps a second")


def _seconds(job: Callable[[], object]) -> float:
    """Return the time of one run of a job."""
    start = perf_counter()
    job()
    return perf_counter() - start
