"""Who races on the paper's data: a method with its settings is one row of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench.field import FIELD
from dkrls_cli.bench.paper.data import SETTINGS
from dkrls_cli.bench.paper.found import FOUND, Found

PAPER, SEARCHED, OWN = "paper", "searched", "own"
"""Whose settings: the paper's, those of a search, or the method's own choice."""

OURS = DKRLS, AUTO, RECURSIVE = "dkrls", "dkrls-auto", "dkrls-recursive"
ONLINE = tuple(name for name in BASELINES if name != "recursive")
METHODS = (*OURS, *ONLINE, *FIELD)

IN_ORDER = ("kkf", RECURSIVE)
"""Those who can only learn a grid line after line."""


@dataclass(frozen=True)
class Entry:
    """A method with its settings.

    Attributes
    ----------
    method, settings
        Its name, and whose settings these are.
    parameters
        What it is made with.
    scales
        Length scales that coordinates are divided by beforehand; none are where empty.
    prepared
        Whether the mean is taken off beforehand and samples come in random order, as a careful
        user would have it; the paper does neither.
    search_seconds
        What the search of the settings took.
    """

    method: str
    settings: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scales: tuple[float, ...] = ()
    prepared: bool = False
    search_seconds: float = float("nan")

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"{self.method}*" if self.settings == SEARCHED else self.method

    @property
    def shuffled(self) -> bool:
        """Whether samples come in random order."""
        return self.prepared and self.method not in IN_ORDER

    @property
    def words(self) -> str:
        """All settings in words."""
        told = {**self.parameters, **({"scales": self.scales} if self.scales else {})}
        return ", ".join(f"{name} {_number(value)}" for name, value in told.items())


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return " x ".join(_number(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def entries_of(
    dataset: str, methods: Sequence[str], found: Mapping[str, Found] | None = None
) -> Iterator[Entry]:
    """The rows of a table, in the order of `METHODS`: the paper's settings, then found ones."""
    searched = FOUND[dataset] if found is None else found
    for method in METHODS:
        if method in methods:
            yield from _with_paper_settings(dataset, method)
            if method in searched:
                yield searched_entry(method, searched[method])
            if method == AUTO or method in FIELD:
                yield Entry(method, OWN)


def _with_paper_settings(dataset: str, method: str) -> Iterator[Entry]:
    """The paper's recursion is run with the settings of the paper's method."""
    known = SETTINGS[dataset].get(DKRLS if method == RECURSIVE else method)
    if known is not None:
        yield Entry(method, PAPER, known)


def searched_entry(method: str, found: Found) -> Entry:
    """A method with settings that were searched for."""
    return Entry(method, SEARCHED, found.parameters, found.scales, True, found.seconds)
