"""The smallest truncation of a layout whose answers are within a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from numpy.typing import DTypeLike

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.storage.comparison import Comparison, Difference
from dkrls_cli.cascade.storage.layout import Layout, Ranks


@dataclass(frozen=True, eq=False)
class Search:
    """The search for the smallest truncation of a layout within the tolerance, stored in a type.

    Cheap tests at few cells tell where to look, and what is found there is measured at all cells.
    If it fails, its worst cells are tested from then on.
    """

    layout: Layout
    cells: Comparison
    dtype: DTypeLike
    measured: dict[Ranks, Difference | None] = field(default_factory=dict)

    def run(self) -> tuple[Ranks, Difference] | None:
        """Return the smallest truncation that was found, None if there is none."""
        path = [ranks for ranks, _ in self.layout.path(self.cells.tolerance)]
        guess = _last(lambda at: self._is_likely(path[at]), len(path) - 1)
        place = None if guess is None else _last(lambda at: self._holds(path[at]), guess)
        return None if place is None else self._shave(path[place])

    def _shave(self, ranks: Ranks) -> tuple[Ranks, Difference]:
        """Drop directions until one less along any axis is not within the tolerance."""
        step = 1
        while True:
            fewer = next(filter(self._holds, self._fewer(ranks, step)), None)
            if fewer is not None:
                ranks, step = fewer, 2 * step
            elif step > 1:
                step = 1
            else:
                break
        difference = self.measured[ranks]
        assert difference is not None  # these ranks hold
        return ranks, difference

    def _fewer(self, ranks: Ranks, step: int) -> Iterator[Ranks]:
        """Yield ranks with some directions less along one axis, those that save most first."""
        for axis in self.layout.shrinkable(ranks):
            yield (*ranks[:axis], max(1, ranks[axis] - step), *ranks[axis + 1 :])

    def _is_likely(self, ranks: Ranks) -> bool:
        """Return whether a truncation is within the tolerance, as far as cheap tests can tell."""
        if ranks in self.measured:
            return self.measured[ranks] is not None
        return self.cells.is_likely(self.truncate(ranks))

    def _holds(self, ranks: Ranks) -> bool:
        """Return whether a truncation is within the tolerance at all cells."""
        if ranks not in self.measured and self._is_likely(ranks):
            self.measured[ranks] = self.cells.measure(self.truncate(ranks))
        return self.measured.get(ranks) is not None

    def truncate(self, ranks: Ranks) -> Cascade:
        """Return a truncation."""
        return self.layout.truncate(ranks, self.dtype)


def _last(test: Callable[[int], bool], guess: int) -> int | None:
    """Return the last place from 0 to a guess that passes a test, None if 0 does not.

    Places pass up to some place and fail from there on.
    """
    low, high, step = guess, guess + 1, 1
    while not test(low):
        if low == 0:
            return None
        low, high, step = max(0, low - step), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if test(middle) else (low, middle)
    return low
