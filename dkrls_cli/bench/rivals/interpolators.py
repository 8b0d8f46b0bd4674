"""Interpolators of scipy and xarray on product grids, one small function each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array


@dataclass(frozen=True, eq=False)
class InterpolationProblem:
    """Values on a product grid, and the coordinates to interpolate them at.

    Attributes
    ----------
    values
        The held-out dimensions first, all others in one at the end (m_1, ..., m_h, rest): each
        slice of the rest is interpolated separately, in one call.
    nodes
        Ascending coordinates of each held-out dimension.
    queries
        Coordinates to answer at, for each held-out dimension.
    """

    values: Array
    nodes: tuple[Array, ...]
    queries: tuple[Array, ...]


AnswerFunction = Callable[[Sequence[Array]], Array]
"""Maps query coordinates, one vector per dimension, to values on their product grid."""


@dataclass(frozen=True)
class Interpolator:
    """An interpolation method.

    Attributes
    ----------
    fit
        Maps the coordinates of every dimension and the values to a function that answers.
    degree
        Degree of its polynomials: it needs more samples than that along every dimension.
    """

    fit: Callable[[Sequence[Array], Array], AnswerFunction]
    degree: int

    def solve(self, problem: InterpolationProblem) -> Array:
        """Return the values at the queries of a problem."""
        return self.fit(problem.nodes, problem.values)(problem.queries)


def make_problem(
    values: Array, nodes: Sequence[Array], queries: Mapping[int, Array]
) -> InterpolationProblem:
    """Return the problem of interpolating along some dimensions of a grid.

    Parameters
    ----------
    values
        An array (m_1, ..., m_n).
    nodes
        Coordinates of every dimension, in any order.
    queries
        Coordinates to answer at, by position of the dimension; other dimensions keep theirs.
    """
    ordered = np.asarray(values, np.float64)
    for place in queries:
        ordered = np.take(ordered, np.argsort(nodes[place]), axis=place)
    return InterpolationProblem(
        np.ascontiguousarray(move_first(ordered, list(queries))),
        tuple(np.sort(nodes[place]) for place in queries),
        tuple(queries.values()),
    )


def move_first(values: Array, places: Sequence[int]) -> Array:
    """Return an array with some dimensions first and all others merged into one at the end."""
    leading = np.moveaxis(np.asarray(values, np.float64), list(places), range(len(places)))
    return leading.reshape(*leading.shape[: len(places)], -1)


def fit_regular_grid(nodes: Sequence[Array], values: Array, method: str) -> AnswerFunction:
    """Fit scipy's RegularGridInterpolator over all dimensions at once, with extrapolation."""
    from scipy.interpolate import RegularGridInterpolator

    interpolator = RegularGridInterpolator(
        nodes, values, method=method, bounds_error=False, fill_value=None
    )
    return lambda queries: np.asarray(interpolator(tuple(np.ix_(*queries))))


def fit_spline(nodes: Sequence[Array], values: Array, degree: int) -> AnswerFunction:
    """Fit scipy's interpolating splines along one dimension after another, with extrapolation.

    Only the first dimension is fitted in advance. The others are fitted to its answers, which are
    fewer than the values.
    """
    from scipy.interpolate import make_interp_spline

    first = make_interp_spline(nodes[0], values, k=degree)

    def answer(queries: Sequence[Array]) -> Array:
        answers = np.asarray(first(queries[0]))
        for axis in range(1, len(nodes)):
            along = make_interp_spline(nodes[axis], answers, k=degree, axis=axis)
            answers = np.asarray(along(queries[axis]))
        return answers

    return answer


def fit_xarray_linear(nodes: Sequence[Array], values: Array) -> AnswerFunction:
    """Return xarray's `interp` with its default method, with extrapolation."""
    import xarray as xr

    dims = [f"d{place}" for place in range(len(nodes))]
    rest = [f"rest{place}" for place in range(values.ndim - len(nodes))]
    array = xr.DataArray(values, dict(zip(dims, nodes, strict=True)), [*dims, *rest])

    def answer(queries: Sequence[Array]) -> Array:
        at = dict(zip(dims, queries, strict=True))
        return np.asarray(array.interp(at, kwargs={"fill_value": "extrapolate"}).values)

    return answer


# xarray's cubic is left out: it runs the same code as `cubic`, or `spline3` along one dimension.
INTERPOLATORS: Mapping[str, Interpolator] = MappingProxyType(
    {
        "linear": Interpolator(partial(fit_regular_grid, method="linear"), 1),
        "spline3": Interpolator(partial(fit_spline, degree=3), 3),
        "spline5": Interpolator(partial(fit_spline, degree=5), 5),
        "cubic": Interpolator(partial(fit_regular_grid, method="cubic"), 3),
        "xarray": Interpolator(fit_xarray_linear, 1),
    }
)
