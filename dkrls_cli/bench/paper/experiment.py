"""The paper's experiments: every method on every dataset, a process of its own for each."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dkrls_cli.bench.field import FIELD
from dkrls_cli.bench.paper.data import FIGURES, INTEL, Figure
from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import AUTO, DKRLS, PAPER, RECURSIVE, SEARCHED, Entry
from dkrls_cli.bench.paper.trial import Outcome, Progress, trial, warm_up
from dkrls_cli.bench.worker import FailedError, OutOfTimeError, Worker

Row = dict[str, Any]

_NO_FIGURE = Figure(math.nan, math.nan)
_PATIENCE, _GRACE = 2.0, 30.0
"""A process is ended by force after its limit times the one, plus the other in seconds."""


@dataclass(frozen=True)
class Terms:
    """How many random splits there are, and seconds for a method on all of them."""

    seeds: int
    limit: float

    @property
    def told_limit(self) -> float | None:
        """Seconds, or None without a limit."""
        return self.limit if math.isfinite(self.limit) else None


def row_of(entry: Entry, dataset: Dataset, terms: Terms, watch: Callable[[Progress], None]) -> Row:
    """Run a method with its settings on a dataset, as far as the terms allow."""
    contender = FIELD.get(entry.method)
    if contender is not None and contender.missing():
        return told(entry, dataset, terms, [], f"skipped: {contender.missing()}")
    outcomes, note = outcomes_of(entry, dataset, terms, watch)
    return told(entry, dataset, terms, outcomes, note)


def outcomes_of(
    entry: Entry, dataset: Dataset, terms: Terms, watch: Callable[[Progress], None]
) -> tuple[list[Outcome], str]:
    """The last outcome of every split that was run, and what went wrong if anything did."""
    outcomes: list[Outcome] = []
    force = _PATIENCE * terms.limit + _GRACE
    prepare = partial(warm_up, entry, len(dataset.coordinates))
    try:
        with Worker(prepare, ready=[trial.__module__]) as worker:
            seeds = range(terms.seeds)
            for step in worker.watch(force, trial, entry, dataset, seeds, terms.limit):
                if isinstance(step, Progress):
                    watch(step)
                elif outcomes and not finished(outcomes[-1]):
                    outcomes[-1] = step
                else:
                    outcomes.append(step)
    except OutOfTimeError as error:
        return outcomes, str(error)
    except FailedError as error:
        return outcomes, f"failed: {error}"
    return outcomes, ""


def finished(outcome: Outcome) -> bool:
    """Whether all samples were learnt: only then may another split have followed."""
    return outcome.samples == outcome.of


def told(
    entry: Entry, dataset: Dataset, terms: Terms, outcomes: Sequence[Outcome], note: str
) -> Row:
    """The row of a method: medians over its splits, with ranges, beside the paper's figures."""
    figure = figure_of(entry, dataset.name)
    first = outcomes[0] if outcomes else Outcome(0, dataset.task(0).size)
    return {
        "dataset": dataset.name,
        "method": entry.method,
        "settings": entry.settings,
        "parameters": entry.words,
        "samples_learnt": first.samples,
        "samples": first.of,
        "seeds": len(outcomes),
        "seeds_asked": terms.seeds,
        "time_limit": terms.told_limit,
        **_spread("seconds", outcomes),
        "predict_seconds": _median("predict_seconds", outcomes),
        **_spread("max_error", outcomes),
        **_spread("normalized_max_error", outcomes),
        "rmse": _median("rmse", outcomes),
        "mean_error": _median("mean_error", outcomes),
        "peak_mb": max((outcome.peak_mb for outcome in outcomes), default=math.nan),
        "search_seconds": entry.search_seconds,
        "paper_seconds": figure.seconds,
        "paper_error": figure.error,
        "paper_mean_error": figure.mean_error,
        "note": "; ".join(dict.fromkeys(filter(None, [*(o.note for o in outcomes), note]))),
    }


def figure_of(entry: Entry, dataset: str) -> Figure:
    """The paper's figure of a method, beside whichever settings."""
    method = DKRLS if entry.method in (AUTO, RECURSIVE) else entry.method
    return FIGURES[dataset].get(method, _NO_FIGURE)


def _spread(name: str, outcomes: Sequence[Outcome]) -> Row:
    found = [getattr(outcome, name) for outcome in outcomes]
    return {
        name: statistics.median(found) if found else math.nan,
        f"{name}_min": min(found, default=math.nan),
        f"{name}_max": max(found, default=math.nan),
    }


def _median(name: str, outcomes: Sequence[Outcome]) -> float:
    found = [getattr(outcome, name) for outcome in outcomes]
    return statistics.median(found) if found else math.nan


def error_key(dataset: str) -> str:
    """Which error the paper reports of a dataset."""
    return "normalized_max_error" if dataset == INTEL else "max_error"


def verdict_of(rows: Iterable[Row], dataset: str) -> list[Row]:
    """How D-KRLS stands to the other methods that the paper compares on a dataset.

    The paper's settings stand against the paper's, searched ones and the default fit against
    searched ones. Ratios are of the best other method to D-KRLS: above 1 D-KRLS is faster, or
    nearer the truth.
    """
    own = [row for row in rows if row["dataset"] == dataset]
    key, others = error_key(dataset), [name for name in FIGURES[dataset] if name != DKRLS]
    verdict = []
    for row in own:
        against = PAPER if row["settings"] == PAPER else SEARCHED
        rivals = [r for r in own if r["method"] in others and r["settings"] == against]
        if row["method"] in (DKRLS, AUTO) and rivals:
            verdict.append(
                {
                    "method": row["method"],
                    "settings": row["settings"],
                    "against": against,
                    "times_as_fast": _least("seconds", rivals) / row["seconds"],
                    "times_as_accurate": _least(key, rivals) / row[key],
                }
            )
    return verdict


def _least(key: str, rows: Iterable[Row]) -> float:
    return min((row[key] for row in rows if not math.isnan(row[key])), default=math.nan)
