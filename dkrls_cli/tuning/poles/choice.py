"""Choose whether a field goes on across the poles, and with which sign, by leaving latitudes out.

The three rows next to each pole are left out one by one, each with its copy behind the pole, and
predicted from all others: without the copies, with copies of the same sign, and with copies of the
opposite one. Without copies the last row is extrapolated. If the field does go on across the pole,
its copies tell more than that; if it does not (other data on latitudes and longitudes), they tell
less by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.poles.pairs import leave_out_pairs
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.threads import one_blas_thread

_JUDGED = 3
"""Rows next to a pole that are left out."""

_WINDOW = 32
"""Rows next to a pole that these are predicted from: others are too far away to tell."""

_BETTER = 0.95
"""Mean square error beside that without copies, below which copies are taken.

Fields on the sphere had 0.0001 to 0.92, others 0.98 and above: any limit between does.
"""


def choose_sign(
    rows: Continuation,
    latitudes: Array,
    fibres: Array,
    mean: float,
    level: Level,
    signs: Sequence[int],
) -> int:
    """Return the sign with which a field goes on across the poles, or 0 if it does not.

    Parameters
    ----------
    rows
        Rows that are added, of the first of the signs.
    latitudes
        All latitudes, those of the copies among them (m,).
    fibres
        Fibres along them, less the mean, as columns (m, fibres).
    mean
        The mean that was taken out.
    level
        Kernel and ridge of the latitudes.
    signs
        Signs that may be.
    """
    copies, sides = rows.copies(latitudes.size), list(_sides(rows, latitudes.size))

    def error(sign: int) -> float:
        data = _turn(rows, fibres, mean, sign) if sign else fibres
        missed = [
            _leave_out(level, latitudes, data, near, added if sign else added[:0], copies)
            for near, added in sides
        ]
        return float(np.mean(np.square(missed)))

    with one_blas_thread():
        without, errors = error(0), [error(sign) for sign in signs]
    best = int(np.argmin(errors))
    return signs[best] if errors[best] < _BETTER * without else 0


def _sides(rows: Continuation, size: int) -> Iterator[tuple[Indices, Indices]]:
    """Yield the rows next to each pole, the nearest first, and the rows added behind it."""
    inner = np.arange(size)[rows.inner(size)]
    if rows.before:
        yield inner[:_WINDOW], np.arange(inner[0])
    if rows.after:
        yield inner[::-1][:_WINDOW], np.arange(inner[-1] + 1, size)


def _turn(rows: Continuation, fibres: Array, mean: float, sign: int) -> Array:
    """Return fibres whose copies have a sign."""
    if sign == rows.sign:
        return fibres
    turned = fibres.copy()
    added = rows.copies(len(fibres)) >= 0
    turned[added] = -(fibres[added] + mean) - mean
    return turned


def _leave_out(
    level: Level, latitudes: Array, fibres: Array, near: Indices, added: Indices, copies: Indices
) -> Array:
    """Return the residuals of the rows next to a pole, each left out with its copy."""
    used = np.concatenate([near, added])
    whole = decompose(gram(level.kernel, latitudes[used], latitudes[used]))
    inverse = whole.solvable(level.ridge).inverse(level.ridge)
    place = {row: position for position, row in enumerate(used.tolist())}
    own = np.array([place.get(row, -1) for row in copies[used].tolist()])
    judged = np.arange(_JUDGED)
    rows, _ = leave_out_pairs(inverse[judged], inverse, judged, own)
    rows[judged, judged] = 0.0
    return np.asarray(fibres[near[judged]] - rows @ fibres[used])
