"""Values of options: words of closed sets, and names in the file on the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.completion.places import Place

if TYPE_CHECKING:
    from dkrls_cli.files.listing.names import Names


@dataclass(frozen=True)
class Candidate:
    """A word that may stand next, and what it is."""

    value: str
    about: str = ""


def option_values(option: Any, typed: str, place: Place) -> list[Candidate]:
    """Return the values that an option may have."""
    name = max(option.opts, key=len).removeprefix("--")
    choices = getattr(option.type, "choices", None)
    if choices:
        return [Candidate(str(choice)) for choice in choices]
    metavar = str(option.metavar or "").strip("[]")
    literal = [word for word in metavar.split("|") if re.fullmatch(r"[a-z]+", word)]
    complete = _COMPLETERS.get(name)
    found = list(complete(typed, names_given(place))) if complete else []
    return [*found, *map(Candidate, literal)]


def names_given(place: Place) -> Names:
    """Return the names in the first file on a command line that has any."""
    from glob import glob

    from dkrls_cli.files.listing.names import Names, names_in

    for word in place.given:
        for path in [word] if os.path.exists(word) else sorted(glob(word))[:1]:
            with suppress(Exception):
                found = names_in(path)
                if found.dimensions:
                    return found
    return Names()


Completer = Callable[[str, "Names"], Iterator[Candidate]]
"""Yields the values of an option, from what is typed of it and the names in the file."""


def _variables(typed: str, names: Names) -> Iterator[Candidate]:
    """Yield the variables."""
    yield from (Candidate(name, "variable") for name in names.variables)


def _one_dimension(typed: str, names: Names) -> Iterator[Candidate]:
    """Yield the dimensions."""
    yield from (Candidate(name, "dimension") for name in names.dimensions)


def _dimensions(typed: str, names: Names) -> Iterator[Candidate]:
    """Yield what is typed and one more dimension, of those that are not named yet."""
    before, comma, _ = typed.rpartition(",")
    used = before.split(",")
    for name in names.dimensions:
        if name not in used:
            yield Candidate(f"{before}{comma}{name}", "dimension")


def _pairs(*values: str, kernels: bool = False, alone: bool = True) -> Completer:
    """Return a completer of ``DIM=VALUE``, several of them separated by commas.

    With `alone`, a value may also stand without a dimension, for all of them.
    """

    def complete(typed: str, names: Names) -> Iterator[Candidate]:
        before, comma, last = typed.rpartition(",")
        if comma and "=" not in last and "=" not in before:
            return
        words = [*values, *(_kernels() if kernels else ())]
        dim, equals, _ = last.partition("=")
        if equals:
            yield from (Candidate(f"{before}{comma}{dim}={word}") for word in words)
            return
        used = {pair.partition("=")[0] for pair in before.split(",")}
        for name in names.dimensions:
            if name not in used:
                yield Candidate(f"{before}{comma}{name}=", "dimension")
        if alone and not comma:
            yield from map(Candidate, words)

    return complete


def _kernels() -> tuple[str, ...]:
    """Return the names of all kernels."""
    from dkrls_cli.cascade.kernels import KERNELS

    return KERNELS


_COMPLETERS: dict[str, Completer] = {
    "at": _pairs("all", alone=False),
    "cell-means-along": _dimensions,
    "derivative": _one_dimension,
    "group": _dimensions,
    "holdout": _pairs(),
    "kernel": _pairs("auto", kernels=True),
    "levels": _dimensions,
    "max-gap": _pairs(),
    "mean-along": _dimensions,
    "mean-over": _pairs(),
    "obs-error": _variables,
    "period": _pairs("auto", "none"),
    "ridge": _pairs("auto"),
    "sigma": _pairs("auto"),
    "var": _variables,
    "within": _pairs(),
}
"""How values of options are completed, by the long names of these."""
