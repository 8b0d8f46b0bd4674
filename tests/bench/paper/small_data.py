"""A small dataset and entries that the tests of the paper's experiments share."""

from __future__ import annotations

import math

import numpy as np

from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import RaceEntry, make_entries
from dkrls_cli.bench.paper.published import paper_2d
from dkrls_cli.bench.paper.run import Limits, SplitResult, run_split

UNLIMITED = Limits(math.inf, math.inf)


def small(sizes: tuple[int, ...] = (15, 14), name: str = "paper-2d") -> Dataset:
    """The paper's field on few cells, a fifth held out."""
    axes = tuple(np.linspace(0.1, 3.0, size) for size in sizes)
    values = paper_2d(axes[:2])
    for axis in axes[2:]:
        values = values[..., None] * np.cos(axis / 3)
    return Dataset(name, axes, values, tuple(round(0.2 * size) for size in sizes))


def last(entry: RaceEntry, dataset: Dataset, limits: Limits = UNLIMITED) -> SplitResult:
    *_, outcome = run_split(entry, dataset.make_task(0), limits)
    assert isinstance(outcome, SplitResult)
    return outcome


def entry_of(method: str, settings: str, dataset: str = "paper-2d") -> RaceEntry:
    return next(e for e in make_entries(dataset, [method]) if e.settings == settings)
