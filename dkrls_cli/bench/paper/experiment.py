"""The paper's experiments: every method on every dataset, each in a process of its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import AUTO, PAPER, RECURSIVE, SEARCHED, RaceEntry
from dkrls_cli.bench.paper.published import INTEL_LAB, PUBLISHED, PublishedResult
from dkrls_cli.bench.paper.run import RunProgress, SplitResult, run_splits, warm_up
from dkrls_cli.bench.rivals.registry import RIVALS
from dkrls_cli.bench.worker import JobFailedError, JobTimeoutError, Worker

RaceRow = dict[str, Any]
"""A row of the table of an experiment, by column."""

_NOT_PUBLISHED = PublishedResult(math.nan, math.nan)

# A process is ended by force after _PATIENCE times its limit plus _GRACE seconds: methods check the
# limit themselves, and may be late by one chunk of samples or one prediction.
_PATIENCE, _GRACE = 2.0, 30.0


@dataclass(frozen=True)
class RaceOptions:
    """The number of random splits, and the seconds for a method on all of them."""

    seeds: int
    limit: float

    @property
    def limit_or_none(self) -> float | None:
        """The limit in seconds, or None if it is infinite."""
        return self.limit if math.isfinite(self.limit) else None


def run_method(
    entry: RaceEntry, dataset: Dataset, options: RaceOptions, watch: Callable[[RunProgress], None]
) -> RaceRow:
    """Run a method on a dataset and return its row.

    A method whose library is not installed is skipped; the note of the row says how to install it.

    Parameters
    ----------
    entry, dataset, options
        What to run, and how long.
    watch
        Called with the progress now and then.
    """
    rival = RIVALS.get(entry.method)
    if rival is not None and rival.missing():
        return make_race_row(entry, dataset, options, [], f"skipped: {rival.missing()}")
    results, note = run_in_worker(entry, dataset, options, watch)
    return make_race_row(entry, dataset, options, results, note)


def run_in_worker(
    entry: RaceEntry, dataset: Dataset, options: RaceOptions, watch: Callable[[RunProgress], None]
) -> tuple[list[SplitResult], str]:
    """Return the last result of every split that was run, and a note if the process failed."""
    results: list[SplitResult] = []
    force = _PATIENCE * options.limit + _GRACE
    prepare = partial(warm_up, entry, len(dataset.coordinates))
    try:
        with Worker(prepare, preload=[run_splits.__module__]) as worker:
            seeds = range(options.seeds)
            for step in worker.iterate(force, run_splits, entry, dataset, seeds, options.limit):
                if isinstance(step, RunProgress):
                    watch(step)
                elif results and not results[-1].is_complete:
                    results[-1] = step
                else:
                    results.append(step)
    except JobTimeoutError as error:
        return results, str(error)
    except JobFailedError as error:
        return results, f"failed: {error}"
    return results, ""


def make_race_row(
    entry: RaceEntry,
    dataset: Dataset,
    options: RaceOptions,
    results: Sequence[SplitResult],
    note: str,
) -> RaceRow:
    """Return the row of a method: medians and ranges over its splits, and the paper's results."""
    published = published_result(entry, dataset.name)
    first = results[0] if results else SplitResult(0, dataset.make_task(0).size)
    return {
        "dataset": dataset.name,
        "method": entry.method,
        "settings": entry.settings,
        "parameters": entry.parameter_text,
        "samples_learnt": first.samples,
        "samples": first.of,
        "seeds": len(results),
        "seeds_asked": options.seeds,
        "time_limit": options.limit_or_none,
        **_median_and_range("seconds", results),
        "predict_seconds": _median("predict_seconds", results),
        **_median_and_range("max_error", results),
        **_median_and_range("normalized_max_error", results),
        "rmse": _median("rmse", results),
        "mean_error": _median("mean_error", results),
        "peak_mb": max((result.peak_mb for result in results), default=math.nan),
        "search_seconds": entry.search_seconds,
        "paper_seconds": published.seconds,
        "paper_error": published.error,
        "paper_mean_error": published.mean_error,
        "note": "; ".join(dict.fromkeys(filter(None, [*(r.note for r in results), note]))),
    }


def published_result(entry: RaceEntry, dataset: str) -> PublishedResult:
    """Return the paper's result for a method, whatever the settings of the entry."""
    method = DKRLS if entry.method in (AUTO, RECURSIVE) else entry.method
    return PUBLISHED[dataset].get(method, _NOT_PUBLISHED)


def _median_and_range(name: str, results: Sequence[SplitResult]) -> RaceRow:
    """Return the columns of the median, least and largest value of a field."""
    found = [getattr(result, name) for result in results]
    return {
        name: _median(name, results),
        f"{name}_min": min(found, default=math.nan),
        f"{name}_max": max(found, default=math.nan),
    }


def _median(name: str, results: Sequence[SplitResult]) -> float:
    """Return the median of a field, or NaN without results."""
    found = [getattr(result, name) for result in results]
    return statistics.median(found) if found else math.nan


def published_error_column(dataset: str) -> str:
    """Return the column of the error that the paper reports for a dataset."""
    return "normalized_max_error" if dataset == INTEL_LAB else "max_error"


def compare_with_paper_methods(rows: Iterable[RaceRow], dataset: str) -> list[RaceRow]:
    """Compare D-KRLS with the other methods of the paper's table for a dataset.

    D-KRLS with the paper's settings is compared with methods that have the paper's settings;
    searched settings and the default fit are compared with searched ones.

    Returns
    -------
    list of dict
        A row for each entry of D-KRLS that has rivals. ``times_as_fast`` and ``times_as_accurate``
        are ratios of the best other method to D-KRLS: above 1, D-KRLS is better.
    """
    own = [row for row in rows if row["dataset"] == dataset]
    column = published_error_column(dataset)
    others = [name for name in PUBLISHED[dataset] if name != DKRLS]
    comparisons = []
    for row in own:
        against = PAPER if row["settings"] == PAPER else SEARCHED
        rivals = [r for r in own if r["method"] in others and r["settings"] == against]
        if row["method"] in (DKRLS, AUTO) and rivals:
            comparisons.append(
                {
                    "method": row["method"],
                    "settings": row["settings"],
                    "against": against,
                    "times_as_fast": _least("seconds", rivals) / row["seconds"],
                    "times_as_accurate": _least(column, rivals) / row[column],
                }
            )
    return comparisons


def _least(column: str, rows: Iterable[RaceRow]) -> float:
    """Return the least number of a column, or NaN if there is none."""
    return min((row[column] for row in rows if not math.isnan(row[column])), default=math.nan)
