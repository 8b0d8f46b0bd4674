"""The entries of a race on the paper's data: a method with its settings is one row of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.paper.published import PAPER_SETTINGS
from dkrls_cli.bench.paper.search_results import SEARCH_RESULTS, SearchResult
from dkrls_cli.bench.rivals.registry import RIVALS

PAPER, SEARCHED, OWN = "paper", "searched", "own"
"""Where settings come from: the paper, a search, or the method's own choice."""

AUTO, RECURSIVE = "dkrls-auto", "dkrls-recursive"
ONLINE_METHODS = tuple(name for name in BASELINES if name != "recursive")
PAPER_METHODS = (DKRLS, AUTO, RECURSIVE, *ONLINE_METHODS, *RIVALS)

_IN_GRID_ORDER = ("kkf", RECURSIVE)
"""Methods that can only learn a grid line after line."""


@dataclass(frozen=True)
class RaceEntry:
    """A method with its settings.

    Attributes
    ----------
    method, settings
        Its name, and where the settings come from.
    parameters
        Arguments of the method.
    scales
        Length scales that coordinates are divided by beforehand; empty leaves them as they are.
    prepared
        Whether the mean is subtracted beforehand and samples come in random order, as a careful
        user would do; the paper does neither.
    search_seconds
        Duration of the search of the settings; NaN without a search.
    """

    method: str
    settings: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scales: tuple[float, ...] = ()
    prepared: bool = False
    search_seconds: float = float("nan")

    @property
    def label(self) -> str:
        """The method as tables show it, with a star if its settings were searched."""
        return f"{self.method}*" if self.settings == SEARCHED else self.method

    @property
    def shuffled(self) -> bool:
        """Whether samples come in random order."""
        return self.prepared and self.method not in _IN_GRID_ORDER

    @property
    def parameter_text(self) -> str:
        """All parameters and scales as text."""
        shown = {**self.parameters, **({"scales": self.scales} if self.scales else {})}
        return ", ".join(f"{name} {_number_text(value)}" for name, value in shown.items())


def _number_text(value: Any) -> str:
    """Return a number, or a tuple of numbers, as short text."""
    if isinstance(value, tuple):
        return " x ".join(_number_text(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def make_entries(
    dataset: str, methods: Sequence[str], found: Mapping[str, SearchResult] | None = None
) -> Iterator[RaceEntry]:
    """Yield the entries of a race, in the order of `PAPER_METHODS`.

    Parameters
    ----------
    dataset
        Name of the dataset.
    methods
        Methods that race: each with the paper's settings and with searched ones, where there are
        any, or with its own choice.
    found
        Searched settings by method; without, those of `SEARCH_RESULTS`.
    """
    searched = SEARCH_RESULTS[dataset] if found is None else found
    for method in PAPER_METHODS:
        if method in methods:
            yield from _entry_of_paper(dataset, method)
            if method in searched:
                yield make_searched_entry(method, searched[method])
            if method == AUTO or method in RIVALS:
                yield RaceEntry(method, OWN)


def _entry_of_paper(dataset: str, method: str) -> Iterator[RaceEntry]:
    """Yield a method with the paper's settings, if it gives any.

    The paper's recursion has the settings of D-KRLS.
    """
    known = PAPER_SETTINGS[dataset].get(DKRLS if method == RECURSIVE else method)
    if known is not None:
        yield RaceEntry(method, PAPER, known)


def make_searched_entry(method: str, found: SearchResult) -> RaceEntry:
    """Return a method with settings that a search found."""
    return RaceEntry(method, SEARCHED, found.parameters, found.scales, True, found.seconds)
