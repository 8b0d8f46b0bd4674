"""The ways in which people fill missing cells today, each as one small function.

All of them see the grid by its index: a step along any dimension is as long as along any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array, Mask

_TOLERANCE, _ITERATIONS = 1e-4, 300
"""Where the iteration for a number of modes ends: change of what is filled, in deviations."""

_PATIENCE = 3
"""Numbers of modes that may be worse than the best in a row before no more are tried."""


@dataclass(frozen=True, eq=False)
class Holes:
    """A grid with missing cells, and which of them to fill.

    Attributes
    ----------
    values
        NaN where missing.
    asked
        Missing cells to answer, in the shape of the grid.
    time
        The dimension of time, or what stands for it.
    """

    values: Array
    asked: Mask
    time: int


def per_axis(holes: Holes) -> Array:
    """The mean of xarray's linear interpolate_na along every dimension; nearest out of reach."""
    import xarray as xr

    dims = [f"d{axis}" for axis in range(holes.values.ndim)]
    array = xr.DataArray(holes.values, dims=dims)
    along = np.array(
        [array.interpolate_na(d, use_coordinate=False).values[holes.asked] for d in dims]
    )
    reached = np.isfinite(along)
    count = reached.sum(axis=0)
    means = np.where(reached, along, 0.0).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, means, nearest(holes))


def nearest(holes: Holes) -> Array:
    """The value of the nearest observed cell."""
    from scipy.ndimage import distance_transform_edt

    places = distance_transform_edt(
        np.isnan(holes.values), return_distances=False, return_indices=True
    )
    return np.asarray(holes.values[tuple(place[holes.asked] for place in places)])


def griddata(holes: Holes) -> Array:
    """Linear griddata of scipy; nearest outside the hull of the observed cells."""
    from scipy import interpolate
    from scipy.spatial import QhullError

    observed = np.isfinite(holes.values)
    known, asked = np.argwhere(observed), np.argwhere(holes.asked)
    try:
        answers = interpolate.griddata(known, holes.values[observed], asked).reshape(len(asked))
    except QhullError:  # the observed cells lie in a plane: all others are outside
        return nearest(holes)
    return np.where(np.isfinite(answers), answers, nearest(holes))


def eof(holes: Holes) -> Array:
    """DINEOF: empirical orthogonal functions of space and time that the gaps are filled with.

    After Beckers and Rixen (2003) and Alvera-Azcarate et al. (2005): gaps of the matrix of space
    and time begin with the mean, and are replaced by what its first k modes give there until that
    changes no more, k = 1, 2, ... A few observed cells set aside tell which k is best, and with
    it all is done again, these cells included. What is missing at all times stays at the mean.
    """
    matrix = np.moveaxis(holes.values, holes.time, -1).reshape(-1, holes.values.shape[holes.time])
    observed = np.isfinite(matrix)
    mean, deviation = float(matrix[observed].mean()), float(matrix[observed].std())
    anomalies = np.where(observed, matrix - mean, 0.0)
    aside = _set_aside(observed)
    best = _best_modes(anomalies, observed & ~aside, aside, deviation)
    *_, filled = _by_modes(anomalies, observed, deviation, best)
    turned = np.moveaxis(holes.asked, holes.time, -1)
    whole = (filled + mean).reshape(turned.shape)
    return np.asarray(np.moveaxis(whole, -1, holes.time)[holes.asked])


def _set_aside(observed: Mask) -> Mask:
    """Cells to choose the number of modes by: as many as DINEOF takes."""
    known = np.flatnonzero(observed)
    count = int(min(0.01 * known.size + 40, 0.03 * known.size)) or min(1, known.size - 1)
    aside = np.zeros(observed.shape, bool)
    aside.flat[np.random.default_rng(0).choice(known, count, replace=False)] = True
    return aside


def _best_modes(anomalies: Array, observed: Mask, aside: Mask, deviation: float) -> int:
    """The number of modes that answers best what was set aside."""
    errors: list[float] = []
    for filled in _by_modes(anomalies, observed, deviation, max(1, min(anomalies.shape) - 1)):
        errors.append(float(np.sum((filled - anomalies)[aside] ** 2)))
        if len(errors) - np.argmin(errors) > _PATIENCE:
            break
    return int(np.argmin(errors)) + 1


def _by_modes(anomalies: Array, observed: Mask, deviation: float, most: int) -> Iterator[Array]:
    """The matrix filled with 1, 2, ... modes, each beginning from the one before."""
    filled = np.where(observed, anomalies, 0.0)
    for modes in range(1, most + 1):
        for _ in range(_ITERATIONS):
            before = filled[~observed]
            filled = np.where(observed, anomalies, _truncated(filled, modes))
            change = filled[~observed] - before
            if change @ change <= (_TOLERANCE * deviation) ** 2 * change.size:
                break
        yield filled


def _truncated(matrix: Array, modes: int) -> Array:
    """The first terms of the singular value decomposition, from the shorter side's products."""
    if matrix.shape[0] < matrix.shape[1]:
        return _truncated(matrix.T, modes).T
    _, vectors = np.linalg.eigh(matrix.T @ matrix)
    first = vectors[:, -modes:]
    return np.asarray(matrix @ first @ first.T)


FILLERS: Mapping[str, Callable[[Holes], Array]] = MappingProxyType(
    {"per-axis": per_axis, "nearest": nearest, "griddata": griddata, "eof": eof}
)
