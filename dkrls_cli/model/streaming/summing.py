"""The pass of a compact fit on any scheduler, and what of it is kept for a run that is resumed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.model.chunked.reduction import (
    Partial,
    Read,
    Reduction,
    Slab,
    Sums,
    reduce_slab,
)
from dkrls_cli.model.streaming.running import Scheduler

_EVERY = 20.0
"""Seconds between two times that sums are kept: a small share of a run that takes hours."""

_IDENTITY = "identity"
"""Name of the array that tells which slabs and frames sums are of."""


class Keeper(Protocol):
    """Keeps arrays, and the numbers of the parts that have gone into them, on disk."""

    done: set[int]

    def save_state(self, arrays: Mapping[str, NDArray[Any]], done: set[int]) -> None:
        """Keep arrays and the parts that they are sums of, both at once."""

    def load_state(self) -> dict[str, NDArray[Any]] | None:
        """Return the arrays that were kept last and set `done`; None if there are none."""


@dataclass(frozen=True, eq=False)
class SlabRunner:
    """Reduces the slabs of a grid on a scheduler.

    Attributes
    ----------
    scheduler
        Runs the slabs.
    keeper
        Keeps the sums now and then, and has those of an earlier run; None: nothing is kept.
    every
        Seconds between two times that they are kept.
    """

    scheduler: Scheduler
    keeper: Keeper | None = None
    every: float = _EVERY

    def __call__(
        self, read: Read, reduction: Reduction, slabs: Sequence[Slab]
    ) -> Iterable[Partial]:
        """Yield what every slab adds to a model."""
        task = partial(reduce_slab, read, reduction)
        if self.keeper is None:
            return (part for _, part in self.scheduler.run(task, slabs))
        return self._resumed(task, reduction, slabs)

    def _resumed(self, task: Any, reduction: Reduction, slabs: Sequence[Slab]) -> Iterator[Partial]:
        """Yield the sums of an earlier run, and then those of the slabs that it has not seen.

        Sums of other slabs, or with other frames, are no part of these: settings are chosen anew,
        and slabs cut, in the memory that there is.
        """
        assert self.keeper is not None
        kept, sums = self.keeper.load_state(), Sums(np.zeros(reduction.shape))
        identity, done = identity_of(reduction, slabs), set[int]()
        if kept is not None and np.array_equal(kept[_IDENTITY], identity):
            done = set(self.keeper.done)
            earlier = _as_partial(kept)
            sums.add(earlier)
            yield earlier
        left = [place for place in range(len(slabs)) if place not in done]
        last = monotonic()
        for number, part in self.scheduler.run(task, [slabs[place] for place in left]):
            if part.missing is None:
                sums.add(part)
                done.add(left[number])
            if monotonic() - last >= self.every:
                self.keeper.save_state({**_as_arrays(sums), _IDENTITY: identity}, done)
                last = monotonic()
            yield part


def identity_of(reduction: Reduction, slabs: Sequence[Slab]) -> NDArray[np.uint8]:
    """Return what tells whether two sums are over the same slabs, and with the same frames."""
    found = hashlib.sha256(repr((slabs, reduction.outer, reduction.latitude)).encode())
    for array in (*reduction.matrices, *reduction.mirrored, *reduction.columns, reduction.copies):
        found.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return np.frombuffer(found.digest(), np.uint8)


def _as_arrays(sums: Sums) -> dict[str, NDArray[Any]]:
    """Return sums as arrays."""
    totals = [math.fsum(one) for one in (sums.total, sums.own_squares, sums.squares)]
    return {
        "core": sums.core,
        "numbers": np.array([*totals, sums.least, sums.largest]),
        "cells": np.array([sums.cells]),
    }


def _as_partial(kept: Mapping[str, NDArray[Any]]) -> Partial:
    """Return sums of an earlier run as one part of the data."""
    core, (total, own, squares, least, largest) = kept["core"], kept["numbers"].tolist()
    where = tuple(slice(None) for _ in core.shape)
    return Partial(core, where, int(kept["cells"][0]), total, own, squares, least, largest)
