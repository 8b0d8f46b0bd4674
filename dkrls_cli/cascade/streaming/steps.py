"""The order in which rows of several axes are applied: the one that costs least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dkrls_cli.arrays import Slices
from dkrls_cli.cascade.streaming.dense import Dense, Factored
from dkrls_cli.cascade.streaming.forms import AxisRows

_ALONG_LAST = 1.2
"""Cost of products along the last axis, beside that of others: their results are thin."""


def cheapest_order(rows: Sequence[AxisRows], box: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return axes in the order in which their rows cost least, applied one after the other.

    With r, the share of cells that are left after an axis, and c, its cost for each cell, axis i
    goes before axis j if c_i + r_i c_j < c_j + r_j c_i: they are sorted by (r - 1) / c.

    Parameters
    ----------
    rows
        Rows of all axes.
    box, sizes
        Sizes of the data and of the answers along all axes.
    """
    steps = [Step(axis, own, slice(0, sizes[axis])) for axis, own in enumerate(rows)]
    return [step.axis for step in sorted(steps, key=lambda step: step.gain(box, len(rows)))]


@dataclass(frozen=True, eq=False)
class Step:
    """Rows that are applied along an axis.

    Attributes
    ----------
    axis, rows
        The axis, and its rows or a factor of these.
    part
        Some of the rows.
    """

    axis: int
    rows: AxisRows
    part: slice

    def gain(self, box: Sequence[int], count: int) -> float:
        """Return (r - 1) / c for a tensor of `count` axes: the least goes first.

        `box` has the sizes of the data, of which some rows take a part only.
        """
        kept = len(range(*self.part.indices(self.rows.size)))
        before = self.rows.samples if isinstance(self.rows, Dense) else box[self.axis]
        each = max(1, self.rows.operations) / self.rows.samples
        return (kept / before - 1.0) / (each * (_ALONG_LAST if self.axis == count - 1 else 1.0))


def plan_steps(
    rows: Sequence[AxisRows], box: Sequence[int], parts: Slices, axes: Sequence[int]
) -> list[Step]:
    """Return the steps in which rows of some axes cost least, applied one after the other.

    Of factored rows the first factor leaves few directions and the second makes many answers of
    them: all that lies between them is done in these directions.

    Parameters
    ----------
    rows
        Rows of all axes.
    box
        Sizes of the data along all axes.
    parts
        Some of the rows of every axis.
    axes
        The axes.
    """
    steps = []
    for axis in axes:
        own = rows[axis]
        whole = Step(axis, own, parts[axis])
        if not isinstance(own, Factored):
            steps.append(whole)
            continue
        right, left = Step(axis, own.right, slice(None)), Step(axis, own.left, parts[axis])
        in_order = right.gain(box, len(rows)) < left.gain(box, len(rows))
        steps += [right, left] if in_order else [whole]
    return sorted(steps, key=lambda step: step.gain(box, len(rows)))
