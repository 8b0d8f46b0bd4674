"""The request for a level: its data, the settings that are given, and those to be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import FAMILIES, WARPS
from dkrls_cli.tuning.slices.segments import SEGMENT, WHOLE, CopiedSegment, Segment, cut_segments
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.tables.leftout import Slices

_BLOCKS = 4
"""Blocks of a segment at least: where it has fewer of the size asked for, they are smaller."""


@dataclass(frozen=True, eq=False)
class Request:
    """The request to :func:`dkrls_cli.tuning.slices.choice.choose_level`."""

    coordinates: Array
    data: Array
    family: str | None
    sigma: float | None
    ridge: float | None
    period: float | None
    cycles: Sequence[float]
    folds: int | None
    joint: bool
    copies: Indices | None = None

    @property
    def is_open(self) -> bool:
        """Whether kernel, sigma and ridge are all to be chosen, on a line and for this level.

        Splines and warps do not know samples that are copies of others.
        """
        given = (self.family, self.sigma, self.ridge, self.period, self.copies)
        return all(value is None for value in given) and not self.joint

    @cached_property
    def slices(self) -> Slices:
        """The slices of the level, to compare a few candidates by inner slices."""
        return Slices.of(self.coordinates, self.data, self.folds)

    def warped(self, warp: str | None) -> Request:
        """Return the same with the coordinates that a warp measures distances in."""
        if warp is None:
            return self
        if warp not in self._warped:
            coordinates = WARPS[warp](self.coordinates)
            self._warped[warp] = replace(self, coordinates=coordinates, cycles=())
        return self._warped[warp]

    @cached_property
    def _warped(self) -> dict[str, Request]:
        """The same with other coordinates, by warp."""
        return {}

    @property
    def size(self) -> int:
        """Samples of the level."""
        return self.coordinates.size

    @property
    def families(self) -> list[str]:
        """The families to try."""
        return list(FAMILIES) if self.family is None else [self.family]

    @property
    def has_small_blocks(self) -> bool:
        """Whether blocks are so small that segments have enough of them."""
        return self.folds is not None and self.folds * SEGMENT > _BLOCKS * self.size

    @property
    def segment_folds(self) -> int | None:
        """Blocks of a segment: of the size that they have on the level, if it has some of them."""
        if self.folds is None or self.size <= WHOLE:
            return self.folds
        return max(min(self.folds, _BLOCKS), round(self.folds * SEGMENT / self.size))

    def segments(self, count: int, spectra: SpectrumCache) -> list[Segment]:
        """Return this many segments of the level, or all of a short one."""
        closed = self.period is not None and self.size <= WHOLE
        cut = cut_segments(self.coordinates, self.data, count)
        if self.copies is not None:
            ((rising, runs),) = cut
            return [CopiedSegment(rising, runs, self.rising_copies, spectra)]
        return [Segment(c, runs, closed, self.segment_folds, spectra) for c, runs in cut]

    @property
    def rising_copies(self) -> Indices:
        """The copies of samples in rising order."""
        assert self.copies is not None
        order = np.argsort(self.coordinates)
        copied = self.copies[order]
        return np.where(copied < 0, -1, np.argsort(order)[copied])

    def cycles_within(self, extent: float) -> list[float]:
        """Return the cycles that fit twice."""
        return [length for length in self.cycles if 2 * length <= extent]
