"""Settings for D-KRLS and the online methods by a small search, the same for all of them.

A few dozen trials on a small grid: at most 4,000 cells of the training part of the first split
(100,000 for D-KRLS, which is as quick with them), a fifth of every dimension held out of it as the
paper does. From a start that knows only the ranges
of the coordinates, one setting after another is moved up and down, and stays where the root mean
square error is less. Every dimension has a length scale of its own, samples come in random order
and without their mean. Sizes of dictionaries are not searched: more of them is better and slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from dkrls_cli.bench.paper.data import SETTINGS
from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.entries import DKRLS, searched_entry
from dkrls_cli.bench.paper.found import Found
from dkrls_cli.bench.paper.trial import Bounds, Outcome, attempt

CELLS, CELLS_AT_ONCE = 4000, 100_000
TRIALS = 60
_SCALES = "scales"


@dataclass(frozen=True)
class Knob:
    """A setting to search: where it starts, by which factors it moves, and within what bounds."""

    start: float
    factors: tuple[float, ...]
    least: float = 0.0
    most: float = math.inf

    def moved(self, value: float) -> Iterator[float]:
        """Other values to try."""
        for factor in self.factors:
            for new in (value * factor, value / factor):
                if self.least <= new <= self.most:
                    yield new


_RIDGE = Knob(1e-4, (100.0, 10.0), 1e-9)  # below, large matrices are no longer positive
_STEP = Knob(0.5, (2.0, 1.3), most=1.0)

KNOBS: Mapping[str, Mapping[str, Knob]] = MappingProxyType(
    {
        DKRLS: {"ridge": Knob(1e-6, (100.0, 10.0), 1e-14)},
        "klms": {"step": _STEP},
        "klmp": {"step": _STEP},
        "knlms": {"step": _STEP},
        "qklms": {"step": _STEP, "radius": Knob(0.05, (4.0,), most=1.0)},
        "norma": {"step": _STEP, "regularization": Knob(1e-4, (100.0,), 1e-8, 1.0)},
        "krls": {"ridge": _RIDGE},
        "aldkrls": {"tolerance": Knob(1e-3, (10.0,), 1e-8, 0.5)},
        "swkrls": {"ridge": _RIDGE},
        "fbkrls": {"ridge": Knob(1e-4, (100.0, 10.0), 1e-5)},  # below, its inverse drifts
        "krlst": {"noise": _RIDGE},
        "nonstill": {"ridge": _RIDGE},
        "kkf": {"noise": _RIDGE},
    }
)
"""What is searched beside length scales."""

FIXED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "klms": {"budget": 20_000},
        "klmp": {"budget": 20_000},
        "aldkrls": {"budget": 1000},
        "krlst": {"budget": 300, "forgetting": 1.0},
    }
)
"""What is not: sizes that no paper's setting gives, and nothing is forgotten of a static field."""

_SIZES = ("budget", "window")


def fixed(dataset: str, method: str) -> dict[str, Any]:
    """Sizes of dictionaries: the paper's where it limits them."""
    known = SETTINGS[dataset].get(method) or SETTINGS["paper-2d"].get(method, {})
    return {
        **{name: known[name] for name in _SIZES if name in known},
        **FIXED.get(method, {}),
    }


def search(dataset: Dataset, method: str, trials: int = TRIALS) -> Found:
    """Settings for a method, by so many trials at most."""
    start, small = perf_counter(), dataset.thinned(cells_for(method))
    best = {name: knob.start for name, knob in KNOBS[method].items()}
    best |= {f"{_SCALES}{i}": float(np.ptp(c)) / 12 for i, c in enumerate(small.coordinates)}
    stays = fixed(dataset.name, method)
    least, left, improved = _error(small, method, best, stays), trials - 1, True
    while improved and left > 0:
        improved = False
        for moves in _moves(method, len(small.coordinates)):
            for tried in moves(best):
                if left <= 0:
                    break
                error, left = _error(small, method, tried, stays), left - 1
                if error < least:
                    best, least, improved = tried, error, True
                    break
    return _found(best, stays, perf_counter() - start)


def cells_for(method: str) -> int:
    """How many cells trials see: those that learn them one by one take far longer for each."""
    return CELLS_AT_ONCE if method == DKRLS else CELLS


def _moves(method: str, dimensions: int) -> Iterator[Any]:
    """Ways to move: all length scales at once, each setting, each length scale."""
    names = [f"{_SCALES}{i}" for i in range(dimensions)]
    scale = Knob(1.0, (1.6,))
    yield lambda at: (at | {n: at[n] * f for n in names} for f in scale.moved(1.0))
    for name, knob in KNOBS[method].items():
        yield lambda at, name=name, knob=knob: (at | {name: v} for v in knob.moved(at[name]))
    for name in names:
        yield lambda at, name=name: (at | {name: v} for v in scale.moved(at[name]))


def _error(small: Dataset, method: str, settings: dict[str, float], stays: dict[str, Any]) -> float:
    """Root mean square error of settings; infinite where they cannot be used."""
    entry = searched_entry(method, _found(settings, stays, math.nan))
    try:
        *_, outcome = attempt(entry, small.task(0), Bounds(math.inf, math.inf))
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return math.inf
    assert isinstance(outcome, Outcome)
    return outcome.rmse if not outcome.note and math.isfinite(outcome.rmse) else math.inf


def _found(settings: dict[str, float], stays: dict[str, Any], seconds: float) -> Found:
    rounded = {name: float(f"{value:.3g}") for name, value in settings.items()}
    scales = tuple(value for name, value in rounded.items() if name.startswith(_SCALES))
    own = {name: value for name, value in rounded.items() if not name.startswith(_SCALES)}
    return Found({**own, **stays}, scales, seconds)
