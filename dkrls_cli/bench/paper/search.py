"""A small search for the settings of D-KRLS and the online methods, the same for all of them.

It runs a few dozen trials on a small grid: at most 4,000 cells of the training part of the first
split (100,000 for D-KRLS, which is as quick with them), a fifth of every dimension held out of it
as in the paper. From a start that depends only on the ranges of the coordinates, one setting after
another is moved up and down, and kept if the root mean square error falls. Every dimension has a
length scale of its own; samples come in random order, with their mean subtracted. Dictionary sizes
are not searched: a larger one is always more accurate and slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import make_searched_entry
from dkrls_cli.bench.paper.published import PAPER_2D, PAPER_SETTINGS
from dkrls_cli.bench.paper.run import Limits, SplitResult, run_split
from dkrls_cli.bench.paper.search_results import SearchResult

# Most cells of the grid of a trial: for online methods, and for D-KRLS.
CELLS, CELLS_DKRLS = 4000, 100_000

# Most trials for a method on a dataset: keeps the search of all methods within minutes.
TRIALS = 60

# A length scale starts at this share of the range of its dimension.
_FIRST_SCALE = 1 / 12

_SCALE_PREFIX = "scales"


@dataclass(frozen=True)
class SearchRange:
    """The start of a setting, the factors by which it is moved, and its bounds."""

    start: float
    factors: tuple[float, ...]
    least: float = 0.0
    most: float = math.inf

    def neighbours(self, value: float) -> Iterator[float]:
        """Yield the values to try next."""
        for factor in self.factors:
            for new in (value * factor, value / factor):
                if self.least <= new <= self.most:
                    yield new


_RIDGE = SearchRange(1e-4, (100.0, 10.0), 1e-9)  # below, large matrices are not positive definite
_STEP = SearchRange(0.5, (2.0, 1.3), most=1.0)
_SCALE = SearchRange(1.0, (1.6,))

SEARCH_RANGES: Mapping[str, Mapping[str, SearchRange]] = MappingProxyType(
    {
        DKRLS: {"ridge": SearchRange(1e-6, (100.0, 10.0), 1e-14)},
        "klms": {"step": _STEP},
        "klmp": {"step": _STEP},
        "knlms": {"step": _STEP},
        "qklms": {"step": _STEP, "radius": SearchRange(0.05, (4.0,), most=1.0)},
        "norma": {"step": _STEP, "regularization": SearchRange(1e-4, (100.0,), 1e-8, 1.0)},
        "krls": {"ridge": _RIDGE},
        "skrls": {"tolerance": SearchRange(1e-3, (10.0,), 1e-8, 0.5)},
        "swkrls": {"ridge": _RIDGE},
        "fbkrls": {"ridge": SearchRange(1e-4, (100.0, 10.0), 1e-5)},  # below, its inverse drifts
        "krlst": {"noise": _RIDGE},
        "nonstill": {"ridge": _RIDGE},
        "kkf": {"noise": _RIDGE},
    }
)
"""The settings that are searched, besides the length scales."""

FIXED_SETTINGS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "klms": {"budget": 20_000},
        "klmp": {"budget": 20_000},
        "skrls": {"budget": 1000},
        "krlst": {"budget": 300, "forgetting": 1.0},
    }
)
"""Settings that are not searched: sizes that the paper does not give; a static field needs no
forgetting."""

_SIZE_SETTINGS = ("budget", "window")

Settings = dict[str, float]
TrialMoves = Callable[[Settings], Iterator[Settings]]


def fixed_settings(dataset: str, method: str) -> dict[str, Any]:
    """Return the settings that are not searched: dictionary sizes, the paper's if it gives them."""
    known = PAPER_SETTINGS[dataset].get(method) or PAPER_SETTINGS[PAPER_2D].get(method, {})
    return {
        **{name: known[name] for name in _SIZE_SETTINGS if name in known},
        **FIXED_SETTINGS.get(method, {}),
    }


def search_settings(dataset: Dataset, method: str, trials: int = TRIALS) -> SearchResult:
    """Return the best settings for a method that at most `trials` trials find."""
    start, small = perf_counter(), dataset.thin(trial_cells(method))
    best = {name: searched.start for name, searched in SEARCH_RANGES[method].items()}
    for place, axis in enumerate(small.coordinates):
        best[f"{_SCALE_PREFIX}{place}"] = float(np.ptp(axis)) * _FIRST_SCALE
    fixed = fixed_settings(dataset.name, method)
    least, left, improved = _trial_error(small, method, best, fixed), trials - 1, True
    while improved and left > 0:
        improved = False
        for moves in _all_moves(method, len(small.coordinates)):
            for tried in moves(best):
                if left <= 0:
                    break
                error, left = _trial_error(small, method, tried, fixed), left - 1
                if error < least:
                    best, least, improved = tried, error, True
                    break
    return _make_result(best, fixed, perf_counter() - start)


def trial_cells(method: str) -> int:
    """Return the most cells of a trial: online methods take far longer for each cell."""
    return CELLS_DKRLS if method == DKRLS else CELLS


def _all_moves(method: str, dimensions: int) -> Iterator[TrialMoves]:
    """Yield the ways to move: all length scales together, each setting, each length scale."""
    names = [f"{_SCALE_PREFIX}{place}" for place in range(dimensions)]

    def move_scales(at: Settings) -> Iterator[Settings]:
        for factor in _SCALE.neighbours(1.0):
            yield at | {name: at[name] * factor for name in names}

    yield move_scales
    for name, searched in SEARCH_RANGES[method].items():
        yield _moves_of(name, searched)
    for name in names:
        yield _moves_of(name, _SCALE)


def _moves_of(name: str, searched: SearchRange) -> TrialMoves:
    """Return a function that yields settings with one of them moved."""
    return lambda at: (at | {name: value} for value in searched.neighbours(at[name]))


def _trial_error(
    small: Dataset, method: str, settings: Settings, fixed: Mapping[str, Any]
) -> float:
    """Return the root mean square error of settings; infinity if they cannot be used."""
    entry = make_searched_entry(method, _make_result(settings, fixed, math.nan))
    try:
        *_, result = run_split(entry, small.make_task(0), Limits(math.inf, math.inf))
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return math.inf
    assert isinstance(result, SplitResult)
    return result.rmse if not result.note and math.isfinite(result.rmse) else math.inf


def _make_result(settings: Settings, fixed: Mapping[str, Any], seconds: float) -> SearchResult:
    """Return settings as a result, searched numbers rounded to three digits."""
    rounded = {name: float(f"{value:.3g}") for name, value in settings.items()}
    scales = tuple(value for name, value in rounded.items() if name.startswith(_SCALE_PREFIX))
    own = {name: value for name, value in rounded.items() if not name.startswith(_SCALE_PREFIX)}
    return SearchResult({**own, **fixed}, scales, seconds)
