"""Settings that the search found for D-KRLS and the online methods, by dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class SearchResult:
    """Settings that a search found.

    Attributes
    ----------
    parameters
        Arguments of the method.
    scales
        Length scale of each dimension.
    seconds
        Duration of the search.
    """

    parameters: Mapping[str, Any]
    scales: tuple[float, ...]
    seconds: float


SEARCH_RESULTS: Mapping[str, Mapping[str, SearchResult]] = MappingProxyType(
    {
        "paper-2d": {
            "dkrls": SearchResult({"ridge": 1e-14}, (2.64, 3.29), 1.7),
            "klms": SearchResult({"step": 1.0, "budget": 20000}, (1.02, 2.04), 0.58),
            "klmp": SearchResult({"step": 0.192, "budget": 20000}, (0.636, 3.27), 0.85),
            "knlms": SearchResult({"step": 0.65}, (0.636, 3.27), 1.1),
            "qklms": SearchResult({"step": 1.0, "radius": 0.05}, (1.02, 2.04), 0.93),
            "norma": SearchResult(
                {"step": 1.0, "regularization": 1e-08, "window": 13920}, (1.02, 2.04), 2.7
            ),
            "krls": SearchResult({"ridge": 1e-09}, (1.63, 2.04), 11.0),
            "skrls": SearchResult({"tolerance": 1e-06, "budget": 1000}, (1.63, 2.04), 9.4),
            "swkrls": SearchResult({"ridge": 1e-06, "window": 1000}, (2.6, 3.27), 19.0),
            "fbkrls": SearchResult({"ridge": 1e-05, "budget": 800}, (1.63, 2.04), 18.0),
            "krlst": SearchResult(
                {"noise": 1e-07, "budget": 300, "forgetting": 1.0}, (1.63, 2.04), 13.0
            ),
            "nonstill": SearchResult({"ridge": 1e-09}, (2.6, 5.23), 10.0),
            "kkf": SearchResult({"noise": 1e-05}, (1.02, 13.4), 3.6),
        },
        "paper-3d": {
            "dkrls": SearchResult({"ridge": 1e-14}, (2.6, 5.16, 7.94), 1.5),
            "klms": SearchResult({"step": 1.0, "budget": 20000}, (0.988, 3.09, 3.39), 0.47),
            "klmp": SearchResult({"step": 0.65, "budget": 20000}, (0.988, 3.09, 3.39), 0.65),
            "knlms": SearchResult({"step": 0.769}, (1.58, 4.95, 3.39), 2.0),
            "qklms": SearchResult({"step": 1.0, "radius": 0.05}, (0.988, 3.09, 3.39), 0.63),
            "norma": SearchResult(
                {"step": 1.0, "regularization": 1e-08, "window": 10000}, (0.988, 3.09, 3.39), 1.3
            ),
            "krls": SearchResult({"ridge": 0.001}, (1.58, 3.09, 2.12), 2.2),
            "skrls": SearchResult({"tolerance": 0.001, "budget": 1000}, (0.988, 3.09, 3.39), 7.2),
            "swkrls": SearchResult({"ridge": 0.0001, "window": 300}, (0.618, 3.09, 3.39), 6.7),
            "fbkrls": SearchResult({"ridge": 0.0001, "budget": 600}, (1.58, 3.09, 3.39), 8.3),
            "krlst": SearchResult(
                {"noise": 1e-05, "budget": 300, "forgetting": 1.0}, (1.58, 3.09, 3.39), 16.0
            ),
            "nonstill": SearchResult({"ridge": 1e-09}, (2.53, 7.91, 5.43), 8.6),
            "kkf": SearchResult({"noise": 1e-06}, (1.58, 3.09, 8.69), 4.1),
        },
        "intel-lab": {
            "dkrls": SearchResult({"ridge": 1e-07}, (2.66, 5.16), 0.43),
            "klms": SearchResult({"step": 0.65, "budget": 20000}, (1.04, 13.2), 3.9),
            "klmp": SearchResult({"step": 0.25, "budget": 20000}, (1.66, 21.1), 4.8),
            "knlms": SearchResult({"step": 0.385}, (1.66, 13.2), 9.4),
            "qklms": SearchResult({"step": 0.65, "radius": 0.05}, (1.04, 13.2), 8.3),
            "norma": SearchResult(
                {"step": 0.65, "regularization": 1e-06, "window": 4160}, (1.04, 13.2), 11.0
            ),
            "krls": SearchResult({"ridge": 1e-05}, (0.648, 8.25), 31.0),
            "skrls": SearchResult({"tolerance": 1e-05, "budget": 1000}, (1.66, 8.25), 17.0),
            "swkrls": SearchResult({"ridge": 1e-05, "window": 1000}, (1.66, 13.2), 38.0),
            "fbkrls": SearchResult({"ridge": 0.0001, "budget": 500}, (1.66, 13.2), 14.0),
            "krlst": SearchResult(
                {"noise": 0.01, "budget": 300, "forgetting": 1.0}, (1.66, 13.2), 19.0
            ),
            "nonstill": SearchResult({"ridge": 1e-07}, (1.04, 21.1), 23.0),
            "kkf": SearchResult({"noise": 1e-09}, (1.04, 1450.0), 4.9),
        },
        "cross": {
            "dkrls": SearchResult({"ridge": 1e-14}, (0.434, 0.392), 0.55),
            "klms": SearchResult({"step": 0.5, "budget": 20000}, (0.106, 0.153), 0.26),
            "klmp": SearchResult({"step": 0.0625, "budget": 20000}, (0.0663, 0.392), 0.36),
            "knlms": SearchResult({"step": 0.25}, (0.0414, 0.0958), 0.41),
            "qklms": SearchResult({"step": 0.5, "radius": 0.05}, (0.106, 0.153), 0.4),
            "norma": SearchResult(
                {"step": 0.5, "regularization": 1e-08, "window": 13920}, (0.106, 0.153), 0.84
            ),
            "krls": SearchResult({"ridge": 1e-09}, (0.434, 0.628), 1.3),
            "skrls": SearchResult({"tolerance": 1e-06, "budget": 1000}, (0.17, 0.245), 0.92),
            "swkrls": SearchResult({"ridge": 1e-06, "window": 1000}, (0.271, 1.0), 5.6),
            "fbkrls": SearchResult({"ridge": 1e-05, "budget": 800}, (0.271, 0.628), 6.4),
            "krlst": SearchResult(
                {"noise": 1e-08, "budget": 300, "forgetting": 1.0}, (0.271, 0.392), 3.3
            ),
            "nonstill": SearchResult({"ridge": 1e-09}, (0.271, 1.0), 0.81),
            "kkf": SearchResult({"noise": 1e-08}, (0.106, 0.245), 0.67),
        },
    }
)
"""The output of `dkrls bench NAME --search -v`, by dataset; seconds are those of one core."""
