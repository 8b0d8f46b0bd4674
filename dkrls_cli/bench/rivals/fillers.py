"""Common ways to fill missing cells, one small function each.

All of them use the indices of the grid: a step has the same length along every dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array, Mask

# When the iteration for one number of modes ends: root mean square change of the filled cells in
# standard deviations of the data, well below any error of the method; and most iterations.
_TOLERANCE, _ITERATIONS = 1e-4, 300

# Numbers of modes worse than the best so far, in a row, after which no more are tried.
_PATIENCE = 3


@dataclass(frozen=True, eq=False)
class FillingProblem:
    """A grid with missing cells, and which of them to fill.

    Attributes
    ----------
    values
        The grid, NaN where a cell is missing.
    asked
        Which missing cells to fill, in the shape of the grid.
    time
        Position of the time dimension, or of the last level if there is none.
    """

    values: Array
    asked: Mask
    time: int


def fill_per_axis(problem: FillingProblem) -> Array:
    """Return the mean of xarray's linear interpolate_na along every dimension.

    A cell that none of the dimensions reaches gets the value of the nearest observed cell.
    """
    import xarray as xr

    dims = [f"d{axis}" for axis in range(problem.values.ndim)]
    array = xr.DataArray(problem.values, dims=dims)
    along = np.array(
        [array.interpolate_na(d, use_coordinate=False).values[problem.asked] for d in dims]
    )
    reached = np.isfinite(along)
    count = reached.sum(axis=0)
    means = np.where(reached, along, 0.0).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, means, fill_nearest(problem))


def fill_nearest(problem: FillingProblem) -> Array:
    """Return the value of the nearest observed cell."""
    from scipy.ndimage import distance_transform_edt

    places = distance_transform_edt(
        np.isnan(problem.values), return_distances=False, return_indices=True
    )
    return np.asarray(problem.values[tuple(place[problem.asked] for place in places)])


def fill_griddata(problem: FillingProblem) -> Array:
    """Return scipy's linear griddata; the nearest value outside the hull of the observed cells."""
    from scipy import interpolate
    from scipy.spatial import QhullError

    observed = np.isfinite(problem.values)
    known, asked = np.argwhere(observed), np.argwhere(problem.asked)
    try:
        answers = interpolate.griddata(known, problem.values[observed], asked).reshape(len(asked))
    except QhullError:  # the observed cells lie in a plane, so there is no hull
        return fill_nearest(problem)
    return np.where(np.isfinite(answers), answers, fill_nearest(problem))


def fill_eof(problem: FillingProblem) -> Array:
    """Return the values of DINEOF: empirical orthogonal functions of space and time.

    After Beckers and Rixen (2003) and Alvera-Azcarate et al. (2005): missing cells of the matrix of
    space by time start at the mean, and are replaced by its first k modes until they no longer
    change, for k = 1, 2, ... A few observed cells that are set aside choose the best k; then the
    filling is repeated with them. A place that is missing at all times stays at the mean.
    """
    matrix = np.moveaxis(problem.values, problem.time, -1).reshape(
        -1, problem.values.shape[problem.time]
    )
    observed = np.isfinite(matrix)
    mean, deviation = float(matrix[observed].mean()), float(matrix[observed].std())
    anomalies = np.where(observed, matrix - mean, 0.0)
    aside = _set_aside(observed)
    best = _best_modes(anomalies, observed & ~aside, aside, deviation)
    *_, filled = _fill_by_modes(anomalies, observed, deviation, best)
    turned = np.moveaxis(problem.asked, problem.time, -1)
    whole = (filled + mean).reshape(turned.shape)
    return np.asarray(np.moveaxis(whole, -1, problem.time)[problem.asked])


def _set_aside(observed: Mask) -> Mask:
    """Return the observed cells that choose the number of modes: as many as DINEOF takes."""
    known = np.flatnonzero(observed)
    count = int(min(0.01 * known.size + 40, 0.03 * known.size)) or min(1, known.size - 1)
    aside = np.zeros(observed.shape, bool)
    aside.flat[np.random.default_rng(0).choice(known, count, replace=False)] = True
    return aside


def _best_modes(anomalies: Array, observed: Mask, aside: Mask, deviation: float) -> int:
    """Return the number of modes with the least error at the cells set aside."""
    errors: list[float] = []
    for filled in _fill_by_modes(anomalies, observed, deviation, max(1, min(anomalies.shape) - 1)):
        errors.append(float(np.sum((filled - anomalies)[aside] ** 2)))
        if len(errors) - np.argmin(errors) > _PATIENCE:
            break
    return int(np.argmin(errors)) + 1


def _fill_by_modes(
    anomalies: Array, observed: Mask, deviation: float, most: int
) -> Iterator[Array]:
    """Yield the matrix filled with 1, 2, ... `most` modes, each starting from the one before."""
    filled = np.where(observed, anomalies, 0.0)
    for modes in range(1, most + 1):
        for _ in range(_ITERATIONS):
            before = filled[~observed]
            filled = np.where(observed, anomalies, _truncate(filled, modes))
            change = filled[~observed] - before
            if change @ change <= (_TOLERANCE * deviation) ** 2 * change.size:
                break
        yield filled


def _truncate(matrix: Array, modes: int) -> Array:
    """Return the first terms of the singular value decomposition, from the smaller Gram matrix."""
    if matrix.shape[0] < matrix.shape[1]:
        return _truncate(matrix.T, modes).T
    _, vectors = np.linalg.eigh(matrix.T @ matrix)
    first = vectors[:, -modes:]
    return np.asarray(matrix @ first @ first.T)


FILLERS: Mapping[str, Callable[[FillingProblem], Array]] = MappingProxyType(
    {"per-axis": fill_per_axis, "nearest": fill_nearest, "griddata": fill_griddata, "eof": fill_eof}
)
"""Every way to fill missing cells by name."""
