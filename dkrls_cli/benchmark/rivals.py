"""The interpolators that people use today, each as one small function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from dkrls_cli.kernels import Array


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


@dataclass(frozen=True)
class Rival:
    """A way to interpolate, and the degree of its polynomials: it needs more samples than that."""

    answer: Callable[[Problem], Array]
    degree: int


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


def regular_grid(problem: Problem, method: str) -> Array:
    """RegularGridInterpolator of scipy over all held-out dimensions at once."""
    from scipy.interpolate import RegularGridInterpolator

    interpolator = RegularGridInterpolator(problem.nodes, problem.values, method=method)
    return np.asarray(interpolator(tuple(np.ix_(*problem.queries))))


def spline(problem: Problem, degree: int) -> Array:
    """Interpolating splines of scipy along one held-out dimension after another."""
    from scipy.interpolate import make_interp_spline

    values = problem.values
    for axis, (node, query) in enumerate(zip(problem.nodes, problem.queries, strict=True)):
        values = make_interp_spline(node, values, k=degree, axis=axis)(query)
    return values


def xarray_linear(problem: Problem) -> Array:
    """The interp of xarray with its default method."""
    import xarray as xr

    dims = [f"d{place}" for place in range(len(problem.nodes))]
    array = xr.DataArray(
        problem.values, dict(zip(dims, problem.nodes, strict=True)), [*dims, "rest"]
    )
    return np.asarray(array.interp(dict(zip(dims, problem.queries, strict=True))).values)


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
