"""The settings of online methods that are searched for a stream, and the search.

The search moves one setting at a time to its best value, twice through all of them, from the middle
of each list. Sizes are in units of a usual change or step, so one list serves all streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from dkrls_cli.baselines import BASELINES, Baseline
from dkrls_cli.bench.streams.online import CHANGE_SCHEMES, PLACE_SCHEMES

OnlineSettings = Mapping[str, Any]
"""A value for every setting by name, and a `SampleScheme` for `SCHEME`."""

SCHEME = "feed"
"""The name of the sample scheme among the settings, as rows show it."""

# Passes through all settings, at most.
_ROUNDS = 2

_SIGMAS = (0.5, 1.5, 5.0, 15.0, 50.0, 150.0)
_STEPS = (0.03, 0.1, 0.3, 0.9)
_RIDGES = (1e-3, 1e-2, 0.1, 1.0, 10.0)

STREAM_SETTINGS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "klms": {SCHEME: CHANGE_SCHEMES, "sigma": _SIGMAS, "step": _STEPS},
    "klmp": {SCHEME: CHANGE_SCHEMES, "sigma": _SIGMAS, "step": _STEPS, "power": (1.2, 1.5, 1.8)},
    "knlms": {
        SCHEME: CHANGE_SCHEMES,
        "sigma": _SIGMAS,
        "step": _STEPS,
        "damping": (1e-2, 0.1, 1.0),
    },
    "qklms": {SCHEME: CHANGE_SCHEMES, "sigma": _SIGMAS, "step": _STEPS, "radius": (0.1, 0.3, 1.0)},
    "norma": {
        SCHEME: CHANGE_SCHEMES,
        "sigma": _SIGMAS,
        "step": _STEPS,
        "regularization": (1e-4, 1e-3, 1e-2, 0.1),
    },
    "krls": {SCHEME: CHANGE_SCHEMES, "sigma": _SIGMAS, "ridge": _RIDGES},
    "skrls": {SCHEME: CHANGE_SCHEMES, "sigma": _SIGMAS, "tolerance": (1e-3, 1e-2, 0.1, 0.5)},
    "swkrls": {
        SCHEME: CHANGE_SCHEMES,
        "sigma": _SIGMAS,
        "ridge": _RIDGES,
        "window": (100, 200, 400),
    },
    "fbkrls": {
        SCHEME: CHANGE_SCHEMES,
        "sigma": _SIGMAS,
        "ridge": _RIDGES,
        "label_step": (0.0, 0.03),
        "budget": (50, 100, 200),
    },
    "krlst": {
        SCHEME: CHANGE_SCHEMES,
        "sigma": _SIGMAS,
        "noise": _RIDGES,
        "forgetting": (1.0, 0.9999, 0.999, 0.99),
        "budget": (50, 100),
    },
    "nonstill": {
        SCHEME: PLACE_SCHEMES,
        "time_rate": (0.01, 0.1, 1.0),
        "space_rate": (0.3, 1.0, 3.0),
        "ridge": _RIDGES,
    },
    "kkf": {
        SCHEME: PLACE_SCHEMES,
        "sigma": (0.3, 1.0, 3.0),
        "memory": (1.0, 5.0, 1e3, 1e5),
        "noise": (1e-8, 1e-6, 1e-4, 1e-2, 1.0, 10.0, 100.0),
    },
    "recursive": {
        SCHEME: PLACE_SCHEMES,
        "sigmas": (0.3, 1.0, 3.0),
        "time_sigma": (1.0, 3.0, 10.0, 30.0),
        "ridge": _RIDGES,
    },
}
"""The values to try of every setting, by method; the radius of QKLMS is in sigmas."""


def make_factory(name: str, settings: OnlineSettings, dimensions: int) -> Callable[[], Baseline]:
    """Return a function that makes the method with these settings.

    Parameters
    ----------
    name, settings
        The method and its settings.
    dimensions
        Number of dimensions of the places of series.
    """
    arguments = {key: value for key, value in settings.items() if key != SCHEME}
    if "radius" in arguments:
        arguments["radius"] *= arguments["sigma"]
    if "time_sigma" in arguments:
        time_sigma = arguments.pop("time_sigma")
        arguments["sigmas"] = [arguments["sigmas"]] * dimensions + [time_sigma]
    return lambda: BASELINES[name](**arguments)


def settings_text(settings: OnlineSettings) -> str:
    """Return the settings as text."""
    return ", ".join(f"{key} {value}" for key, value in settings.items())


def middle_settings(lists: Mapping[str, Sequence[Any]]) -> OnlineSettings:
    """Return the settings that a search starts from: the middle of each list."""
    return {key: values[len(values) // 2] for key, values in lists.items()}


@dataclass(frozen=True)
class BestSettings:
    """The best settings of a search, the number of settings tried, and the seconds it took."""

    settings: OnlineSettings
    tried: int
    seconds: float


def search_one_by_one(
    lists: Mapping[str, Sequence[Any]], error: Callable[[OnlineSettings], float], limit: float
) -> BestSettings:
    """Return the settings of least error, found by moving one setting at a time.

    No further settings are tried after `limit` seconds.
    """
    start = perf_counter()
    best = middle_settings(lists)
    known = {settings_text(best): error(best)}
    for _ in range(_ROUNDS):
        before = best
        for key, values in lists.items():
            for value in values:
                tried = {**best, key: value}
                if settings_text(tried) not in known and perf_counter() - start < limit:
                    known[settings_text(tried)] = error(tried)
                if known.get(settings_text(tried), math.inf) < known[settings_text(best)]:
                    best = tried
        if best == before:
            break
    return BestSettings(best, len(known), perf_counter() - start)
