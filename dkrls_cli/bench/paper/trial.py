"""One method on one dataset under a clock: it learns as much as time and memory allow."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from dkrls_cli.arrays import Array
from dkrls_cli.baselines import BASELINES, Baseline
from dkrls_cli.bench import memory
from dkrls_cli.bench.field import FIELD, Contender
from dkrls_cli.bench.paper.dataset import Dataset, Places, Task
from dkrls_cli.bench.paper.entries import AUTO, DKRLS, RECURSIVE, Entry
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.model import fit as fitting
from dkrls_cli.model.metrics import scores

THREADS = 1
"""Of every method: most work on vectors and small matrices, which more threads only slow down."""

_CHUNK = 512
"""Samples learnt between two looks at the clock: a multiple of the blocks of all baselines."""

_FIRST = 128
_LEAST_GROWTH, _MOST_GROWTH, _MEMORY_GROWTH = 2.0, 3.0, 2.0
"""Powers of the number of samples, for methods that solve for all of them at once."""

_QUICK, _REPEATS = 0.1, 5
"""Seconds below which a median of several runs is taken."""

_BETWEEN_WORDS = 0.5
_SHARED = 60.0

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """How far a method is."""

    samples: int
    of: int


@dataclass(frozen=True)
class Outcome:
    """How a method did on one split; NaN where it gave no answers, and the note says why."""

    samples: int
    of: int
    seconds: float = math.nan
    predict_seconds: float = math.nan
    max_error: float = math.nan
    normalized_max_error: float = math.nan
    rmse: float = math.nan
    mean_error: float = math.nan
    peak_mb: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class Bounds:
    """What a method may take: seconds, and bytes beyond those held when it began."""

    seconds: float
    bytes: float
    held: float = field(default_factory=memory.held)

    def taken(self) -> float:
        """The most bytes taken so far."""
        return max(memory.peak() - self.held, 0.0)

    def reached(self, seconds: float, taken: float) -> str:
        """Which bound so many seconds and bytes reach, in words; none is empty."""
        if seconds >= self.seconds:
            return f"stopped at the time limit of {self.seconds:.3g} s"
        if taken >= self.bytes:
            return f"stopped at {self.bytes / 1e9:.3g} GB, half the memory here"
        return ""


Steps = Iterator[Progress | Outcome]


def trial(entry: Entry, dataset: Dataset, seeds: Sequence[int], seconds: float) -> Steps:
    """A method on one split after another, all within so many seconds.

    A further split is begun only where the one before says that there is time for it in half of
    them, or in a minute without a limit. Of the outcomes of one split the last one counts.
    """
    start, shared = perf_counter(), seconds / 2 if math.isfinite(seconds) else _SHARED
    for seed in seeds:
        before = perf_counter()
        memory.forget_peak()
        bounds = Bounds(seconds, memory.allowed())
        for step in attempt(entry, dataset.task(seed), bounds):
            yield step
        now = perf_counter()
        if step.samples < step.of or (now - start) + (now - before) > shared:
            return


def attempt(entry: Entry, task: Task, bounds: Bounds) -> Steps:
    """A method on one split."""
    if entry.method in (DKRLS, AUTO):
        fitted = _dkrls(entry, task) if entry.method == DKRLS else _dkrls_auto(task)
        yield _on_the_grid(task, fitted, bounds)
    elif entry.method in FIELD:
        contender = FIELD[entry.method]
        if contender.scattered:
            yield from _scattered(contender, task, bounds)
        else:
            yield _on_the_grid(task, _contender(contender, task), bounds)
    else:
        yield from _online(entry, task, bounds)


Answering = Callable[[], Array]


def _dkrls(entry: Entry, task: Task) -> Callable[[], Answering]:
    """D-KRLS with the settings of an entry: length scales that were searched for are its sigmas."""
    mean = float(task.values.mean()) if entry.prepared else 0.0
    ridge = entry.parameters["ridge"]
    levels = [
        Level(f"d{place}", Kernel(sigma=sigma), ridge)
        for place, sigma in enumerate(entry.scales or entry.parameters["sigmas"])
    ]

    def fit() -> Answering:
        trained = fit_cascade(task.values - mean, task.coordinates, levels)
        return lambda: trained.predict(task.queries) + mean

    return fit


def _dkrls_auto(task: Task) -> Callable[[], Answering]:
    """D-KRLS that chooses everything itself."""

    def fit() -> Answering:
        trained = fitting.fit(task.values, task.coordinates)
        return lambda: trained.cascade.predict(task.queries)

    return fit


def _contender(contender: Contender, task: Task) -> Callable[[], Answering]:
    def fit() -> Answering:
        answer = contender.fit(task.coordinates, task.values)
        return lambda: answer(task.queries)

    return fit


def _on_the_grid(task: Task, fit: Callable[[], Answering], bounds: Bounds) -> Outcome:
    """Fit the whole grid and ask for the rest."""
    seconds, answer = timed(fit)
    predict_seconds, answers = timed(answer)
    return _scored(task, answers, Outcome(task.size, task.size, seconds, predict_seconds), bounds)


def _online(entry: Entry, task: Task, bounds: Bounds) -> Steps:
    """Learn sample by sample until all are learnt or a bound is reached."""
    learner = learner_of(entry)
    mean = float(task.values.mean()) if entry.prepared else 0.0
    scales = np.array(entry.scales or 1.0)
    order, learnt, seconds, why = order_of(task, entry.shuffled), 0, 0.0, ""
    told = perf_counter()
    while learnt < task.size and not why:
        points, values = task.samples(order[learnt : learnt + _CHUNK])
        seconds += _taught(learner, points / scales, values - mean)
        learnt += len(points)
        if learnt < task.size:
            why = bounds.reached(seconds, bounds.taken())
        if perf_counter() - told > _BETWEEN_WORDS:
            told = perf_counter()
            yield Progress(learnt, task.size)
    seconds += _caught_up(learner, task, scales)
    asked = task.asked() / scales
    start = perf_counter()
    answers = task.laid_out(learner.predict(asked)) + mean
    outcome = Outcome(learnt, task.size, seconds, perf_counter() - start, note=why)
    yield _scored(task, answers, outcome, bounds)


def learner_of(entry: Entry) -> Baseline:
    """The baseline of an entry."""
    name = "recursive" if entry.method == RECURSIVE else entry.method
    return BASELINES[name](**entry.parameters)


def order_of(task: Task, shuffled: bool) -> Places:
    """Numbers of all samples in the order in which they are learnt."""
    return np.random.default_rng(0).permutation(task.size) if shuffled else np.arange(task.size)


def _taught(learner: Baseline, points: Array, values: Array) -> float:
    """Seconds to learn some samples."""
    start = perf_counter()
    for x, y in zip(points, values, strict=True):
        learner.update(x, y)
    return perf_counter() - start


def _caught_up(learner: Baseline, task: Task, scales: Array) -> float:
    """Seconds of the learning that was put off: the first sample's answer needs all of it."""
    first, _ = task.samples(np.zeros(1, np.intp))
    start = perf_counter()
    learner.predict(first / scales)
    return perf_counter() - start


def _scattered(contender: Contender, task: Task, bounds: Bounds) -> Steps:
    """Learn random samples, twice as many each time as long as time and memory should suffice."""
    order, asked = order_of(task, True), list(task.asked().T)
    count, spent, before = min(_FIRST, task.size), 0.0, math.inf
    while True:
        points, values = task.samples(order[:count])
        start = perf_counter()
        answer = contender.fit(list(points.T), values)
        seconds = perf_counter() - start
        answers = answer(asked)
        took = perf_counter() - start
        spent += took
        following = min(2 * count, task.size)
        growth = following / count
        why = bounds.reached(
            spent + took * growth ** power_of(took / before),
            bounds.taken() * growth**_MEMORY_GROWTH,
        )
        note = why.replace("stopped at", "more would pass") if count < task.size else ""
        outcome = Outcome(count, task.size, seconds, took - seconds, note=note)
        yield _scored(task, task.laid_out(answers), outcome, bounds)
        if count == task.size or why:
            return
        count, before = following, took


def power_of(ratio: float) -> float:
    """The power by which time grows, from what twice the samples took; within reason."""
    seen = math.log2(ratio) if ratio > 0 else _LEAST_GROWTH
    return min(max(seen, _LEAST_GROWTH), _MOST_GROWTH)


def _scored(task: Task, answers: Array, outcome: Outcome, bounds: Bounds) -> Outcome:
    """An outcome with its errors, of the answers that are finite, and the memory taken."""
    known = np.isfinite(answers)
    lost = int(np.count_nonzero(~known))
    found = scores(task.truth[known], np.asarray(answers)[known])
    lacking = f"no answer at {lost:,} of {answers.size:,} cells" if lost else ""
    return replace(
        outcome,
        max_error=found["max_error"],
        normalized_max_error=found["normalized_max_error"],
        rmse=found["rmse"],
        mean_error=found["mae"],
        peak_mb=bounds.taken() / 1e6,
        note="; ".join(filter(None, (outcome.note, lacking))),
    )


def timed(job: Callable[[], T]) -> tuple[float, T]:
    """Seconds of a job and its result; the median of several runs where it is quick."""
    times = []
    while True:
        start = perf_counter()
        result = job()
        times.append(perf_counter() - start)
        if times[0] > _QUICK or len(times) == _REPEATS:
            return statistics.median(times), result


def warm_up(entry: Entry, dimensions: int) -> None:
    """Run a method once on very little: imports and first calls are not what is timed."""
    axes = tuple(np.linspace(0.0, 1.0, 10 - place) for place in range(dimensions))
    values = np.sin(sum(np.ix_(*axes)))
    with suppress(Exception):  # what cannot run says so when it should
        deque(trial(entry, Dataset("small", axes, values, (1,) * dimensions), [0], 60.0))
    threadpool_limits(limits=THREADS)  # of all that is loaded by now, for good
