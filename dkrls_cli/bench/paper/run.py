"""One method on the splits of one dataset, within limits of time and memory.

Online methods learn until a limit is reached; the answers are those of what was learnt until then.
"""

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

from dkrls_cli import memory
from dkrls_cli.arrays import Array, Indices
from dkrls_cli.baselines import BASELINES, Baseline
from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.paper.dataset import Dataset, PredictionTask
from dkrls_cli.bench.paper.entries import AUTO, RECURSIVE, RaceEntry
from dkrls_cli.bench.rivals.registry import RIVALS, Rival
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.model import fit as fitting
from dkrls_cli.model.validation.metrics import scores

# Threads of every method: most work on vectors and small matrices, which more threads slow down.
THREADS = 1

# Samples learnt between two checks of the limits: a multiple of the blocks of all baselines.
CHUNK = 512

# Samples that scattered methods learn first; the number doubles as long as the limits allow.
FIRST_SAMPLES = 128

# Powers of the number of samples by which time and memory of scattered methods are assumed to grow:
# from a kernel matrix (2) to its factorisation (3).
_LEAST_POWER, _MOST_POWER, _MEMORY_POWER = 2.0, 3.0, 2.0

# Jobs shorter than _QUICK seconds are repeated, and the median of _REPEATS runs is taken.
_QUICK, _REPEATS = 0.1, 5

# Share of the machine's memory that a method may take: the rest is for the system and the parent.
_SHARE = 0.5

# Seconds between two reports of progress.
_REPORT_EVERY = 0.5

# Seconds in which all splits must fit if there is no time limit.
_SECONDS_FOR_SPLITS = 60.0

T = TypeVar("T")


@dataclass(frozen=True)
class RunProgress:
    """The number of samples learnt so far, of all samples."""

    samples: int
    of: int


@dataclass(frozen=True)
class SplitResult:
    """The result of a method on one split; NaN where it gave no answers, and a note why.

    Attributes
    ----------
    samples, of
        Samples learnt, and training samples in all.
    seconds, predict_seconds
        Time to learn and to answer.
    max_error, normalized_max_error, rmse, mean_error
        Errors at the cells with finite answers.
    peak_mb
        Megabytes taken at most.
    note
        Which limit was reached, and how many answers are not finite; or empty.
    """

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

    @property
    def is_complete(self) -> bool:
        """Whether all samples were learnt: only then may another split follow."""
        return self.samples == self.of


@dataclass(frozen=True)
class Limits:
    """Seconds, and bytes beyond those held at the start, that a method may take."""

    seconds: float
    bytes: float
    held: float = field(default_factory=memory.held_bytes)

    def taken_bytes(self) -> float:
        """Return the most bytes taken so far."""
        return max(memory.peak_bytes() - self.held, 0.0)

    def reached(self, seconds: float, taken: float) -> str:
        """Return which limit is reached by this time and memory, as text; empty if none is."""
        if seconds >= self.seconds:
            return f"stopped at the time limit of {self.seconds:.3g} s"
        if taken >= self.bytes:
            return f"stopped at {self.bytes / 1e9:.3g} GB, half of this machine's memory"
        return ""


RunSteps = Iterator[RunProgress | SplitResult]


def run_splits(
    entry: RaceEntry, dataset: Dataset, seeds: Sequence[int], seconds: float
) -> RunSteps:
    """Run a method on one random split after another, and yield progress and results.

    A further split is run only if, by the time of the one before, all of them fit in half of
    `seconds`, or in a minute if that is infinite. Of several results of one split the last counts.
    """
    start = perf_counter()
    for_splits = seconds / 2 if math.isfinite(seconds) else _SECONDS_FOR_SPLITS
    for seed in seeds:
        before = perf_counter()
        memory.reset_peak()
        limits = Limits(seconds, _SHARE * memory.machine_bytes())
        for step in run_split(entry, dataset.make_task(seed), limits):
            yield step
        now = perf_counter()
        if step.samples < step.of or (now - start) + (now - before) > for_splits:
            return


def run_split(entry: RaceEntry, task: PredictionTask, limits: Limits) -> RunSteps:
    """Run a method on one split, and yield progress and results."""
    if entry.method in (DKRLS, AUTO):
        fit = _dkrls_fit(entry, task) if entry.method == DKRLS else _auto_fit(task)
        yield _run_on_grid(task, fit, limits)
    elif entry.method in RIVALS:
        rival = RIVALS[entry.method]
        if rival.scattered:
            yield from _run_scattered(rival, task, limits)
        else:
            yield _run_on_grid(task, _rival_fit(rival, task), limits)
    else:
        yield from _run_online(entry, task, limits)


PredictFunction = Callable[[], Array]


def _dkrls_fit(entry: RaceEntry, task: PredictionTask) -> Callable[[], PredictFunction]:
    """Return a function that fits D-KRLS; its sigmas are the entry's scales if it has any."""
    mean = float(task.values.mean()) if entry.prepared else 0.0
    ridge = entry.parameters["ridge"]
    levels = [
        Level(f"d{place}", Kernel(sigma=sigma), ridge)
        for place, sigma in enumerate(entry.scales or entry.parameters["sigmas"])
    ]

    def fit() -> PredictFunction:
        trained = fit_cascade(task.values - mean, task.coordinates, levels)
        return lambda: trained.predict(task.queries) + mean

    return fit


def _auto_fit(task: PredictionTask) -> Callable[[], PredictFunction]:
    """Return a function that fits D-KRLS with all settings chosen from the data."""

    def fit() -> PredictFunction:
        trained = fitting.fit(task.values, task.coordinates)
        axes = trained.axes_at(dict(zip(trained.dims, task.queries, strict=True)))
        return lambda: trained.values_on(axes)

    return fit


def _rival_fit(rival: Rival, task: PredictionTask) -> Callable[[], PredictFunction]:
    """Return a function that fits a rival that knows about grids."""

    def fit() -> PredictFunction:
        answer = rival.fit(task.coordinates, task.values)
        return lambda: answer(task.queries)

    return fit


def _run_on_grid(
    task: PredictionTask, fit: Callable[[], PredictFunction], limits: Limits
) -> SplitResult:
    """Fit the whole grid, predict, and return the result."""
    seconds, predict = time_job(fit)
    predict_seconds, answers = time_job(predict)
    result = SplitResult(task.size, task.size, seconds, predict_seconds)
    return _add_scores(task, answers, result, limits)


def _run_online(entry: RaceEntry, task: PredictionTask, limits: Limits) -> RunSteps:
    """Learn sample by sample until all are learnt or a limit is reached, then predict."""
    learner = make_learner(entry)
    mean = float(task.values.mean()) if entry.prepared else 0.0
    scales = np.array(entry.scales or 1.0)
    order, learnt, seconds, why = sample_order(task, entry.shuffled), 0, 0.0, ""
    reported = perf_counter()
    while learnt < task.size and not why:
        points, values = task.samples(order[learnt : learnt + CHUNK])
        seconds += _time_learning(learner, points / scales, values - mean)
        learnt += len(points)
        if learnt < task.size:
            why = limits.reached(seconds, limits.taken_bytes())
        if perf_counter() - reported > _REPORT_EVERY:
            reported = perf_counter()
            yield RunProgress(learnt, task.size)
    seconds += _time_delayed_work(learner, task, scales)
    queries = task.query_points() / scales
    start = perf_counter()
    answers = task.as_grid(learner.predict(queries)) + mean
    result = SplitResult(learnt, task.size, seconds, perf_counter() - start, note=why)
    yield _add_scores(task, answers, result, limits)


def make_learner(entry: RaceEntry) -> Baseline:
    """Return a new baseline with the parameters of an entry."""
    name = "recursive" if entry.method == RECURSIVE else entry.method
    return BASELINES[name](**entry.parameters)


def sample_order(task: PredictionTask, shuffled: bool) -> Indices:
    """Return the numbers of all samples in the order in which they are learnt."""
    return np.random.default_rng(0).permutation(task.size) if shuffled else np.arange(task.size)


def _time_learning(learner: Baseline, points: Array, values: Array) -> float:
    """Learn some samples and return the seconds it took."""
    start = perf_counter()
    for x, y in zip(points, values, strict=True):
        learner.update(x, y)
    return perf_counter() - start


def _time_delayed_work(learner: Baseline, task: PredictionTask, scales: Array) -> float:
    """Return the seconds of the work that was delayed until a first answer needs it."""
    first, _ = task.samples(np.zeros(1, np.intp))
    start = perf_counter()
    learner.predict(first / scales)
    return perf_counter() - start


def _run_scattered(rival: Rival, task: PredictionTask, limits: Limits) -> RunSteps:
    """Learn random samples, twice as many each time as long as the limits should suffice."""
    order, queries = sample_order(task, True), list(task.query_points().T)
    count, spent, before = min(FIRST_SAMPLES, task.size), 0.0, math.inf
    while True:
        points, values = task.samples(order[:count])
        start = perf_counter()
        answer = rival.fit(list(points.T), values)
        seconds = perf_counter() - start
        answers = answer(queries)
        took = perf_counter() - start
        spent += took
        following = min(2 * count, task.size)
        growth = following / count
        why = limits.reached(
            spent + took * growth ** growth_power(took / before),
            limits.taken_bytes() * growth**_MEMORY_POWER,
        )
        note = why.replace("stopped at", "more would pass") if count < task.size else ""
        result = SplitResult(count, task.size, seconds, took - seconds, note=note)
        yield _add_scores(task, task.as_grid(answers), result, limits)
        if count == task.size or why:
            return
        count, before = following, took


def growth_power(ratio: float) -> float:
    """Return the power by which time grows with the samples, from its ratio for twice as many."""
    seen = math.log2(ratio) if ratio > 0 else _LEAST_POWER
    return min(max(seen, _LEAST_POWER), _MOST_POWER)


def _add_scores(
    task: PredictionTask, answers: Array, result: SplitResult, limits: Limits
) -> SplitResult:
    """Return a result with the errors of the finite answers and the memory taken."""
    known = np.isfinite(answers)
    lost = int(np.count_nonzero(~known))
    found = scores(task.truth[known], np.asarray(answers)[known])
    lacking = f"no finite answer at {lost:,} of {answers.size:,} cells" if lost else ""
    return replace(
        result,
        max_error=found["max_error"],
        normalized_max_error=found["normalized_max_error"],
        rmse=found["rmse"],
        mean_error=found["mae"],
        peak_mb=limits.taken_bytes() / 1e6,
        note="; ".join(filter(None, (result.note, lacking))),
    )


def time_job(job: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds and the result of a job; the median of several runs if it is quick."""
    times = []
    while True:
        start = perf_counter()
        result = job()
        times.append(perf_counter() - start)
        if times[0] > _QUICK or len(times) == _REPEATS:
            return statistics.median(times), result


def warm_up(entry: RaceEntry, dimensions: int) -> None:
    """Run a method once on a tiny grid, so that imports and first calls are not timed.

    Afterwards all libraries loaded so far use one thread, for the rest of the process.
    """
    axes = tuple(np.linspace(0.0, 1.0, 10 - place) for place in range(dimensions))
    values = np.sin(sum(np.ix_(*axes)))
    small = Dataset("small", axes, values, (1,) * dimensions)
    with suppress(Exception):  # the same failure is reported by the real run
        deque(run_splits(entry, small, [0], 60.0))
    threadpool_limits(limits=THREADS)
