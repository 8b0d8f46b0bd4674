"""The interpolators that people use today, each as one small function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from dkrls_cli.arrays import Array


@dataclass(frozen=True, eq=False)
class Problem:
    """Values on a product grid and where to interpolate them.

    Attributes
    ----------
    values
        The held-out dimensions first, all others in one at the end (m_1, ..., m_h, rest): each
        slice of the rest is interpolated on its own, in one call.
    nodes
        Ascending coordinates of each held-out dimension.
    queries
        Coordinates to answer at.
    """

    values: Array
    nodes: tuple[Array, ...]
    queries: tuple[Array, ...]


Answer = Callable[[Sequence[Array]], Array]
"""Values on the product of query coordinates, one vector of them per dimension."""


@dataclass(frozen=True)
class Rival:
    """A way to interpolate, and the degree of its polynomials: it needs more samples than that."""

    fit: Callable[[Sequence[Array], Array], Answer]
    degree: int

    def answer(self, problem: Problem) -> Array:
        """Fit and answer at once."""
        return self.fit(problem.nodes, problem.values)(problem.queries)


def problem_of(values: Array, nodes: Sequence[Array], queries: Mapping[int, Array]) -> Problem:
    """The problem of answering at `queries` of some dimensions, those not named kept as they are.

    Parameters
    ----------
    values
        An array (m_1, ..., m_n).
    nodes
        Coordinates of every dimension, in any order.
    queries
        Where to answer, by position of the dimension.
    """
    ordered = np.asarray(values, np.float64)
    for place in queries:
        ordered = np.take(ordered, np.argsort(nodes[place]), axis=place)
    leading = np.moveaxis(ordered, list(queries), range(len(queries)))
    rest = leading.reshape(*leading.shape[: len(queries)], -1)
    return Problem(
        np.ascontiguousarray(rest),
        tuple(np.sort(nodes[place]) for place in queries),
        tuple(queries.values()),
    )


def laid_out(truth: Array, held: Sequence[int]) -> Array:
    """An array with its dimensions as a problem has them."""
    leading = np.moveaxis(np.asarray(truth, np.float64), list(held), range(len(held)))
    return leading.reshape(*leading.shape[: len(held)], -1)


def regular_grid(nodes: Sequence[Array], values: Array, method: str) -> Answer:
    """RegularGridInterpolator of scipy over all dimensions at once, its pieces drawn on outside."""
    from scipy.interpolate import RegularGridInterpolator

    interpolator = RegularGridInterpolator(
        nodes, values, method=method, bounds_error=False, fill_value=None
    )
    return lambda queries: np.asarray(interpolator(tuple(np.ix_(*queries))))


def spline(nodes: Sequence[Array], values: Array, degree: int) -> Answer:
    """Interpolating splines of scipy along one dimension after another, drawn on outside.

    Only the first is fitted ahead: the others, fitted to its answers, have less to go through.
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


def xarray_linear(nodes: Sequence[Array], values: Array) -> Answer:
    """The interp of xarray with its default method, drawn on outside."""
    import xarray as xr

    dims = [f"d{place}" for place in range(len(nodes))]
    rest = [f"rest{place}" for place in range(values.ndim - len(nodes))]
    array = xr.DataArray(values, dict(zip(dims, nodes, strict=True)), [*dims, *rest])

    def answer(queries: Sequence[Array]) -> Array:
        asked = dict(zip(dims, queries, strict=True))
        return np.asarray(array.interp(asked, kwargs={"fill_value": "extrapolate"}).values)

    return answer


# xarray's cubic is not among them: it calls the same code as cubic, along one dimension as spline3.
RIVALS: Mapping[str, Rival] = MappingProxyType(
    {
        "linear": Rival(partial(regular_grid, method="linear"), 1),
        "spline3": Rival(partial(spline, degree=3), 3),
        "spline5": Rival(partial(spline, degree=5), 5),
        "cubic": Rival(partial(regular_grid, method="cubic"), 3),
        "xarray": Rival(xarray_linear, 1),
    }
)
