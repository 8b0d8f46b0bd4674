"""Axes that all tiles of a grid share: which coordinates have data, are solved for and answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Indices, Mask
from dkrls_cli.circle import nearest, outside
from dkrls_cli.grid.axes import Axis, number_axis
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.tiling.layout import Span
from dkrls_cli.model.tiling.planning import find_spans
from dkrls_cli.model.training.lost import enclosed_among


@dataclass(frozen=True, eq=False)
class Ground:
    """Layout common to all tiles of a grid: its axes, and where they are solved and answered.

    Attributes
    ----------
    outer, last
        Places of the outer axis, and of the last level.
    axes
        The axes, without coordinates that repeat others.
    columns
        Indices of their coordinates in the grid.
    solved
        Indices along these axes of the coordinates that tiles have where they do not cut.
    answered
        For every coordinate of the grid, its place among those that are solved for.
    beyond
        Which coordinates of the grid are outside the data, and have no answer.
    spans
        The axes that may be cut, by place.
    seen
        Whether any cell along the last level is observed, if that is known.
    """

    outer: int
    last: int
    axes: Sequence[Axis]
    columns: Sequence[Indices]
    solved: Sequence[Indices]
    answered: Sequence[Indices]
    beyond: Sequence[Mask]
    spans: Mapping[int, Span]
    seen: Mask | None


@dataclass(frozen=True, eq=False)
class Frame:
    """Axes of a grid and the coordinates that have data.

    Attributes
    ----------
    given
        The axes of the grid.
    axes
        The same without coordinates that repeat others.
    columns
        Indices of their coordinates in the grid.
    known
        For every one of these axes, the coordinates at which a cell is observed.
    extrapolate
        Whether coordinates outside the data are answered.
    """

    given: Sequence[Axis]
    axes: Sequence[Axis]
    columns: Sequence[Indices]
    known: Sequence[Indices]
    extrapolate: bool

    @classmethod
    def of(cls, given: Sequence[Axis], empty: Sequence[Indices], *, extrapolate: bool) -> Frame:
        """Return the frame of a grid that has no observed cell at some coordinates."""
        columns = [axis.distinct for axis in given]
        axes = [
            axis if own.size == axis.size else number_axis(axis.name, axis.stored[own], axis.attrs)
            for axis, own in zip(given, columns, strict=True)
        ]
        known = [
            np.flatnonzero(~np.isin(own, gone)) for own, gone in zip(columns, empty, strict=True)
        ]
        return cls(given, axes, columns, known, extrapolate)

    @property
    def known_axes(self) -> list[Axis]:
        """The axes at the coordinates that have data."""
        return [axis.take(own) for axis, own in zip(self.axes, self.known, strict=True)]

    @property
    def spans(self) -> dict[int, Span]:
        """The axes that may be cut, by place, from their first to their last known coordinate."""
        return find_spans(self.axes, self.known)

    def inner_axes(self, plan: FitPlan) -> list[Axis]:
        """Return the axes at coordinates that have data, and at those between them."""
        return [
            axis.take(np.union1d(own, np.flatnonzero(~self._far(place, own, plan))))
            for place, (axis, own) in enumerate(zip(self.axes, self.known, strict=True))
        ]

    def ground(
        self, plan: FitPlan, outer: int, last: int, seen: Mask | None, *, sphere: bool
    ) -> Ground:
        """Return where tiles are solved and answered.

        Parameters
        ----------
        plan
            Levels of the model.
        outer, last, seen
            As for :class:`Ground`.
        sphere
            Whether a group of axes has its distance on the sphere, where data encloses a cap.
        """
        nodes = list(self.known)
        if sphere:
            empty = [
                np.setdiff1d(np.arange(axis.size), own)
                for axis, own in zip(self.axes, nodes, strict=True)
            ]
            for place, more in enclosed_among(self.axes, empty, plan.group).items():
                nodes[place] = np.union1d(nodes[place], more)
        spans = find_spans(self.axes, nodes)
        solved, answered, beyond = [], [], []
        for place in range(len(self.axes)):
            if place in spans:
                spans[place] = self._span(spans[place], nodes[place], plan)
            far = self._far(place, nodes[place], plan)
            solved.append(np.union1d(nodes[place], np.flatnonzero(~far)))
            twin = self._twins(place)
            answered.append(np.searchsorted(solved[-1], twin).clip(max=solved[-1].size - 1))
            beyond.append(far[twin])
        return Ground(outer, last, self.axes, self.columns, solved, answered, beyond, spans, seen)

    def _span(self, span: Span, nodes: Indices, plan: FitPlan) -> Span:
        """Return the range that is answered along an axis which may be cut."""
        if span.ring and _period(plan, span.axis) is None:  # no ring without the lost coordinates
            span = replace(span, ring=False, low=int(nodes[0]), high=int(nodes[-1]) + 1)
        return replace(span, low=0, high=self.axes[span.axis].size) if self.extrapolate else span

    def _far(self, place: int, nodes: Indices, plan: FitPlan) -> Mask:
        """Return which coordinates of an axis lie outside the data and have no answer."""
        axis = self.axes[place]
        if self.extrapolate:
            return np.zeros(axis.size, bool)
        return outside(axis.numbers, axis.numbers[nodes], _period(plan, place))

    def _twins(self, place: int) -> Indices:
        """Return for every coordinate of the grid its place among those that repeat no other."""
        given, axis = self.given[place], self.axes[place]
        if given.size == axis.size:
            return np.arange(axis.size)
        return nearest(given.numbers, axis.numbers, given.turn)[0]


def _period(plan: FitPlan, place: int) -> float | None:
    """Return the length of the circle that an axis is modelled on; None for a line."""
    level = plan.levels[place]
    return level.period if isinstance(level, LevelRequest) else level.kernel.period
