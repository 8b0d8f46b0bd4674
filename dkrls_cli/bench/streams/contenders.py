"""Who forecasts a stream, and the settings among which each is searched.

A search moves one setting at a time to its best value, twice through all of them, from the middle
of each. Sizes are in units of a usual change or step, so one list serves all streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from dkrls_cli.baselines import BASELINES, Baseline
from dkrls_cli.bench.streams.online import CHANGES, PLACES, Feed

Choice = Mapping[str, Any]
"""A value of every setting by name, and of `feed`."""

FEED = "feed"
_ROUNDS = 2
_SIGMAS = (0.5, 1.5, 5.0, 15.0, 50.0, 150.0)
_STEPS = (0.03, 0.1, 0.3, 0.9)
_RIDGES = (1e-3, 1e-2, 0.1, 1.0, 10.0)

CONTENDERS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "klms": {FEED: CHANGES, "sigma": _SIGMAS, "step": _STEPS},
    "klmp": {FEED: CHANGES, "sigma": _SIGMAS, "step": _STEPS, "power": (1.2, 1.5, 1.8)},
    "knlms": {FEED: CHANGES, "sigma": _SIGMAS, "step": _STEPS, "damping": (1e-2, 0.1, 1.0)},
    "qklms": {FEED: CHANGES, "sigma": _SIGMAS, "step": _STEPS, "radius": (0.1, 0.3, 1.0)},
    "norma": {
        FEED: CHANGES,
        "sigma": _SIGMAS,
        "step": _STEPS,
        "regularization": (1e-4, 1e-3, 1e-2, 0.1),
    },
    "krls": {FEED: CHANGES, "sigma": _SIGMAS, "ridge": _RIDGES},
    "aldkrls": {FEED: CHANGES, "sigma": _SIGMAS, "tolerance": (1e-3, 1e-2, 0.1, 0.5)},
    "swkrls": {FEED: CHANGES, "sigma": _SIGMAS, "ridge": _RIDGES, "window": (100, 200, 400)},
    "fbkrls": {
        FEED: CHANGES,
        "sigma": _SIGMAS,
        "ridge": _RIDGES,
        "label_step": (0.0, 0.03),
        "budget": (50, 100, 200),
    },
    "krlst": {
        FEED: CHANGES,
        "sigma": _SIGMAS,
        "noise": _RIDGES,
        "forgetting": (1.0, 0.9999, 0.999, 0.99),
        "budget": (50, 100),
    },
    "nonstill": {
        FEED: PLACES,
        "time_rate": (0.01, 0.1, 1.0),
        "space_rate": (0.3, 1.0, 3.0),
        "ridge": _RIDGES,
    },
    "kkf": {
        FEED: PLACES,
        "sigma": (0.3, 1.0, 3.0),
        "memory": (1.0, 5.0, 1e3, 1e5),
        "noise": (1e-8, 1e-6, 1e-4, 1e-2, 1.0, 10.0, 100.0),
    },
    "recursive": {
        FEED: PLACES,
        "sigmas": (0.3, 1.0, 3.0),
        "time_sigma": (1.0, 3.0, 10.0, 30.0),
        "ridge": _RIDGES,
    },
}
"""Settings of every online method; the radius of QKLMS is in sigmas."""


def maker(name: str, choice: Choice, places: int) -> Callable[[], Baseline]:
    """What makes the method with these settings, for places of so many dimensions."""
    settings = {key: value for key, value in choice.items() if key != FEED}
    if "radius" in settings:
        settings["radius"] *= settings["sigma"]
    if "time_sigma" in settings:
        settings["sigmas"] = [settings["sigmas"]] * places + [settings.pop("time_sigma")]
    return lambda: BASELINES[name](**settings)


def feed_of(choice: Choice) -> Feed:
    """How the method is fed."""
    feed: Feed = choice[FEED]
    return feed


def choice_text(choice: Choice) -> str:
    """The settings in words."""
    return ", ".join(f"{key} {value}" for key, value in choice.items())


def middle(settings: Mapping[str, Sequence[Any]]) -> Choice:
    """Where a search starts."""
    return {key: values[len(values) // 2] for key, values in settings.items()}


@dataclass(frozen=True)
class Found:
    """The best settings of a search, and how many were tried in how many seconds."""

    choice: Choice
    tried: int
    seconds: float


def descended(
    settings: Mapping[str, Sequence[Any]], error: Callable[[Choice], float], limit: float
) -> Found:
    """The settings of least error, one at a time; no more is tried when the time is up."""
    start = perf_counter()
    best = middle(settings)
    known = {choice_text(best): error(best)}
    for _ in range(_ROUNDS):
        before = best
        for key, values in settings.items():
            for value in values:
                trial = {**best, key: value}
                if choice_text(trial) not in known and perf_counter() - start < limit:
                    known[choice_text(trial)] = error(trial)
                if known.get(choice_text(trial), math.inf) < known[choice_text(best)]:
                    best = trial
        if best == before:
            break
    return Found(best, len(known), perf_counter() - start)
