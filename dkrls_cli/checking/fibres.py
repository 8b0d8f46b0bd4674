"""Prediction of each cell from the others of its fibre: leave-one-out in closed form.

Along one axis the cells of a fibre have the covariance C, and A is its inverse. The residual of
cell i, predicted from all others, is (A y)_i / A_ii, and its variance is 1 / A_ii. Cells that are
not to be used (missing, or found to be bad) leave the system exactly: with m these cells and o the
others,

    inverse of C_oo = A_oo - A_om (A_mm)^-1 A_mo,

and their own values are predicted by -(A_mm)^-1 A_mo y_o, with covariance (A_mm)^-1. So a bad cell
does not touch the residuals of its neighbours once it is left out.

Applied along one axis after the other, the residuals are those of a cell left out alone under the
product of the covariances: the prediction of a cell never contains the cell itself, because the
residuals along the second axis stem from other fibres of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices, Mask

# Cells of the longest fibre that is treated as a whole. Longer ones are cut into windows, each with
# a margin on both sides: cells further away add nothing to what neighbours say.
_WHOLE, _INNER, _MARGIN = 256, 160, 32

# Numbers of an intermediate array at once: 32 MB.
_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Window:
    """Some neighbouring coordinates of an axis.

    Attributes
    ----------
    places
        Indices of the coordinates (w,).
    inner
        Those among them that the window answers for; the others are its margin.
    """

    places: Indices
    inner: slice


@dataclass(frozen=True, eq=False)
class WindowModel:
    """A window, and the inverse of the covariance of the cells in it (w, w)."""

    window: Window
    inverse: Array


def windows(size: int, ring: bool) -> list[Window]:
    """Return windows that cover an axis; those of a ring reach across its seam.

    Examples
    --------
    >>> [(w.places.size, w.inner) for w in windows(300, False)]
    [(192, slice(0, 160, None)), (172, slice(32, 172, None))]
    """
    if size <= _WHOLE:
        return [Window(np.arange(size), slice(0, size))]
    found = []
    for start in range(0, size, _INNER):
        stop = min(start + _INNER, size)
        low, high = start - _MARGIN, stop + _MARGIN
        if not ring:
            low, high = max(low, 0), min(high, size)
        found.append(Window(np.arange(low, high) % size, slice(start - low, stop - low)))
    return found


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Residuals along one axis, and what they were computed from.

    Attributes
    ----------
    values, used
        The grid, and the cells that predicted others.
    left, spread
        Residuals of all cells that have a value, also of those that are not used, and their
        standard errors in units of the covariance.
    """

    values: Array
    used: Mask
    left: Array
    spread: Array


def leave_out(
    values: Array,
    used: Mask,
    axis: int,
    models: Sequence[WindowModel],
    last: LeftOut | None = None,
) -> LeftOut:
    """Return what is left of every cell when the others along an axis have predicted it.

    Parameters
    ----------
    values
        The grid, NaN where it is missing; its mean is near 0.
    used
        Which cells may predict others. A missing cell never does.
    axis
        Axis of the fibres.
    models
        Windows of that axis, which cover it.
    last
        An earlier result with the same models: fibres that have not changed keep theirs.
    """
    known = used & ~np.isnan(values)
    flat, here = _fibres(values, axis), _fibres(known, axis)
    left, spread = np.empty_like(flat), np.empty_like(flat)
    changed = np.ones(flat.shape, bool)
    if last is not None:
        left[...], spread[...] = _fibres(last.left, axis), _fibres(last.spread, axis)
        same = (flat == _fibres(last.values, axis)) | np.isnan(flat)
        changed = ~same | (here != _fibres(last.used, axis))
    for model in models:
        places, inner = model.window.places, model.window.inner
        columns = np.flatnonzero(changed[places].any(axis=0))
        part, cells = np.ix_(places, columns), np.ix_(places[inner], columns)
        left[cells], spread[cells] = residuals_in(flat[part], here[part], model.inverse, inner)
    shape = np.moveaxis(values, axis, 0).shape
    back = [np.moveaxis(found.reshape(shape), 0, axis) for found in (left, spread)]
    return LeftOut(values, known, back[0], back[1])


def _fibres(array: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return the fibres of an array along an axis, one in each column (m, n)."""
    moved = np.moveaxis(array, axis, 0)
    return moved.reshape(len(moved), -1)


def residuals_in(values: Array, used: Mask, inverse: Array, inner: slice) -> tuple[Array, Array]:
    """Return residuals and standard errors of the inner cells of a window of some fibres (w, n)."""
    diagonal = np.diag(inverse)[:, None]
    solved = inverse @ np.where(used, values, 0.0)
    left = solved / diagonal
    spread = np.broadcast_to(1.0 / np.sqrt(diagonal), values.shape).copy()
    gone = ~used
    for columns, places in _alike(gone):
        found = _without(values[:, columns], solved[:, columns], inverse, places)
        left[:, columns], spread[:, columns] = found
    return left[inner], spread[inner]


def _alike(gone: Mask) -> Iterator[tuple[Indices, Indices]]:
    """Yield fibres that have equally many cells left out (n,), and the places of these (n, k)."""
    count = gone.sum(axis=0)
    for k in np.unique(count[count > 0]).tolist():
        columns = np.flatnonzero(count == k)
        step = max(1, _AT_ONCE // (k * len(gone)))
        for start in range(0, columns.size, step):
            some = columns[start : start + step]
            yield some, np.nonzero(gone[:, some].T)[1].reshape(some.size, k)


def _without(values: Array, solved: Array, inverse: Array, places: Indices) -> tuple[Array, Array]:
    """Return residuals and standard errors of fibres (w, n), each with its own cells left out."""
    rows = np.arange(len(places))[:, None]
    block = np.linalg.inv(inverse[places[:, :, None], places[:, None, :]])  # (n, k, k)
    weights = np.einsum("nab,nb->na", block, solved[places, rows])
    across = inverse[places]  # (n, k, w): rows of the cells that are left out
    rest = solved.T - np.einsum("nkw,nk->nw", across, weights)
    explained = np.einsum("nkw,nkw->nw", across, np.matmul(block, across))
    diagonal = np.maximum(np.diag(inverse) - explained, _TINY * np.diag(inverse))
    left, spread = rest / diagonal, 1.0 / np.sqrt(diagonal)
    own = np.einsum("nkk->nk", block)
    left[rows, places] = values.T[rows, places] + weights
    spread[rows, places] = np.sqrt(np.maximum(own, 0.0))
    return left.T, spread.T


# Share of A_ii that is left at least when others are left out: below it there is only round-off.
_TINY = 1e-12
