"""Splines through the samples of one level: linear, cubic and quintic, with not-a-knot ends.

A spline is linear in the data, so it is a level like any other: its answer at q is r(q) y, with a
row r(q) for which r(c_j) is the unit vector of sample j. As a kernel it is *cardinal*: the matrix
between its own coordinates is the identity, the weights of (20), (21) are the data, and there is no
ridge. Between the coordinates it is what ``scipy.interpolate.make_interp_spline`` computes. Beyond
them its last polynomial goes on for four of the outermost steps, and then its slope: farther away a
polynomial of degree five would leave the data by orders of magnitude.

Leaving samples out
-------------------
The spline without sample j is a spline on the same knots less one, so it is s + a l_j: the spline s
of all samples, and the spline l_j that is 1 at sample j and 0 at all others, times a number with
which the highest derivative has no jump at the knot that goes. With J the jumps at that knot, the
residual of the sample is J(s) / J(l_j), and that of a block of neighbours solves as many equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.errors import InputError

DEGREES = {"linear": 1, "cubic": 3, "quintic": 5}
"""Degree of the polynomials between two coordinates, by the name of the spline."""

# Extent of the coordinates in shortest steps up to which a spline is made: beyond, numbers of a
# quintic spline grow by more than its power of five, 1e60, and mean nothing.
_MOST_UNEVEN = 1e12

# Outermost steps beyond an end for which the last polynomial goes on. On the paper's grids, where
# the ends may be held out, the outermost samples are up to four steps away.
_BEYOND = 4.0

# Splines that are kept: up to three for every level of a model, and some that are tried.
_KEPT = 16


@dataclass(frozen=True, eq=False)
class Cardinal:
    """The splines that are 1 at one sample and 0 at all others.

    Attributes
    ----------
    nodes
        Coordinates of the samples, rising (m,).
    degree
        Degree of the polynomials.
    knots
        Where they meet, and the ends degree + 1 times (m + degree + 1,).
    coefficients
        Of the B-splines, one column per sample (m, m).
    """

    nodes: Array
    degree: int
    knots: Array
    coefficients: Array

    @classmethod
    def build(cls, degree: int, nodes: Array) -> Cardinal:
        """Return the splines through rising nodes."""
        ends, side = [0] * (degree + 1), (degree + 1) // 2
        inner = nodes[side : nodes.size - side] if degree else nodes[:0]
        knots = np.concatenate([nodes[ends], inner, nodes[[end - 1 for end in ends]]])
        values, first = _basis(knots, degree, nodes)
        collocation = _scatter(values, first, nodes.size)
        return cls(nodes, degree, knots, np.asarray(np.linalg.inv(collocation)))

    def rows(self, query: Array, derivative: int = 0) -> Array:
        """Return the rows that answer at queries (q, m), or their derivatives.

        From four steps beyond the ends on, the value goes on with the slope there.
        """
        low, high = reach_of(self.nodes)
        inside = np.clip(query, low, high)
        rows = self._inner_rows(inside, derivative)
        beyond = np.flatnonzero(query != inside)
        if beyond.size:
            slope = self._inner_rows(inside[beyond], 1)
            away = (query - inside)[beyond, None]
            on = {0: rows[beyond] + away * slope, 1: slope}
            rows[beyond] = on.get(derivative, np.zeros_like(slope))
        return rows

    def local_basis(self, query: Array) -> tuple[Array, Indices]:
        """Return the B-splines that are not 0 at queries (q, degree + 1), and places of the first.

        Queries lie within :func:`reach_of`.
        """
        return _basis(self.knots, self.degree, query)

    def _inner_rows(self, query: Array, derivative: int) -> Array:
        """Return rows of queries between the ends."""
        if derivative > self.degree:
            return np.zeros((query.size, self.nodes.size))
        knots, coefficients = self._differentiate(derivative)
        values, first = _basis(knots, self.degree - derivative, query)
        result = np.zeros((query.size, self.nodes.size))
        for place in range(values.shape[1]):
            result += values[:, place, None] * coefficients[first + place]
        return result

    def _differentiate(self, order: int) -> tuple[Array, Array]:
        """Return knots and coefficients of a derivative."""
        knots, coefficients, degree = self.knots, self.coefficients, self.degree
        for _ in range(order):
            widths = knots[degree + 1 : -1] - knots[1 : -degree - 1]
            coefficients = degree * np.diff(coefficients, axis=0) / widths[:, None]
            knots, degree = knots[1:-1], degree - 1
        return knots, coefficients

    @cached_property
    def _jumps(self) -> Array:
        """Jumps of the highest derivative at the inner knots (m - degree - 1, m).

        Those of an uneven axis differ by orders of magnitude, and are scaled to the same size. So
        the unit of the nodes is no matter, and in that of the extent powers of it do not overflow.
        """
        extent = self.nodes[-1] - self.nodes[0]
        scaled = replace(self, knots=(self.knots - self.nodes[0]) / extent)
        jumps = np.diff(scaled._differentiate(self.degree)[1], axis=0)
        return np.asarray(jumps / np.abs(jumps).max(axis=1, keepdims=True))

    def left_out_residuals(self) -> Array:
        """Return the rows (m, m) of the residuals of samples that are left out one by one."""
        count = len(self._jumps)
        gone = np.clip(np.arange(self.nodes.size) - (self.degree + 1) // 2, 0, count - 1)
        jumps = self._jumps[gone]
        return np.asarray(jumps / jumps.diagonal()[:, None])

    def left_out_block(self, block: Indices) -> Array:
        """Return the rows (b, m) of the residuals of neighbours that are left out together.

        They are consecutive places of the rising nodes, with at least degree + 1 others.
        """
        first = np.clip(block[0] - (self.degree + 1) // 2, 0, len(self._jumps) - block.size)
        jumps = self._jumps[first : first + block.size]
        return np.asarray(np.linalg.solve(jumps[:, block], jumps))


def reach_of(nodes: Array) -> tuple[float, float]:
    """Return the coordinates at which polynomials are asked, at most: four steps beyond each end.

    >>> reach_of(np.array([0.0, 1.0, 3.0]))
    (-4.0, 11.0)
    """
    first, last = nodes[[0, -1]].tolist()
    if nodes.size == 1:
        return first, last
    before, behind = nodes[1] - nodes[0], nodes[-1] - nodes[-2]
    return first - _BEYOND * float(before), last + _BEYOND * float(behind)


def fitting_degree(name: str, count: int) -> int:
    """Return the degree of a spline through so many samples: lower where these are too few."""
    least = count - 1
    return min(DEGREES[name], least - (least + 1) % 2 if least else 0)


def is_solvable(nodes: Array) -> bool:
    """Return whether rising nodes are even enough for a spline."""
    if nodes.size == 1:
        return True
    with np.errstate(over="ignore"):
        extent, shortest = nodes[-1] - nodes[0], np.diff(nodes).min()
        return bool(extent <= _MOST_UNEVEN * shortest and np.isfinite(extent))


def spline_rows(name: str, nodes: Array, query: Array, derivative: int = 0) -> Array:
    """Return the rows that answer at queries from samples at nodes in any order (q, m).

    Examples
    --------
    >>> spline_rows("linear", np.array([2.0, 0.0]), np.array([0.5, 2.0])).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    order = np.argsort(nodes)
    rows = cardinal(name, nodes[order]).rows(query, derivative)
    result = np.empty_like(rows)
    result[:, order] = rows
    return result


def left_out_rows(
    name: str,
    nodes: Array,
    blocks: Sequence[Indices] | None = None,
    *,
    ends: bool = True,
) -> Array:
    """Return the rows that predict every sample from all others (m, m), on rising nodes.

    With `blocks` of neighbours, samples are predicted from those outside of their block. The
    samples at an end are predicted by a spline that goes on straight. That takes other splines, and
    without `ends` their rows are arbitrary where there is a cheaper way for all others. A spline
    through one sample more than its degree is a polynomial, and so is the one through all but one.
    """
    count = nodes.size
    spline = cardinal(name, nodes)
    single = np.arange(count)[:, None]
    result = np.eye(count)
    if blocks is None and count > spline.degree + 1:
        result -= spline.left_out_residuals()
        np.fill_diagonal(result, 0.0)
        single = single[[0, -1]] if ends else single[:0]
    for block in single if blocks is None else blocks:
        kept = np.delete(np.arange(count), block)
        at_end = block[0] == 0 or block[-1] == count - 1
        if at_end or kept.size <= spline.degree:
            result[block] = 0.0
            if kept.size == spline.degree and block.size == 1 and not at_end:
                result[np.ix_(block, kept)] = _polynomial_rows(nodes[kept], nodes[block])
            elif kept.size:  # a sample alone is predicted by 0, as by any kernel
                result[np.ix_(block, kept)] = spline_rows(name, nodes[kept], nodes[block])
        else:
            result[block] -= spline.left_out_block(block)
            result[np.ix_(block, block)] = 0.0
    return result


def _polynomial_rows(nodes: Array, query: Array) -> Array:
    """Return the rows of the polynomial through all samples, by the formula of Lagrange (q, m)."""
    result = np.ones((query.size, nodes.size))
    for place, node in enumerate(nodes.tolist()):
        others = np.delete(nodes, place)
        result[:, place] = np.prod((query[:, None] - others) / (node - others), axis=1)
    return result


def cardinal(name: str, nodes: Array) -> Cardinal:
    """Return the splines through rising nodes; those of the last ones are kept.

    Raises
    ------
    InputError
        If the steps between nodes are too uneven.
    """
    return _cardinal(name, nodes.tobytes())


@lru_cache(maxsize=_KEPT)
def _cardinal(name: str, nodes: bytes) -> Cardinal:
    """Return the splines through the rising nodes in these bytes."""
    rising = np.frombuffer(nodes)
    if is_solvable(rising):
        # uneven steps can round to a singular matrix long before that, above all of high degree
        with suppress(np.linalg.LinAlgError):
            return Cardinal.build(fitting_degree(name, rising.size), rising)
    with np.errstate(over="ignore"):
        extent = (rising[-1] - rising[0]) / np.diff(rising).min()
    raise InputError(
        f"The {rising.size} coordinates from {rising[0]:g} to {rising[-1]:g} are too uneven for a "
        f"{name} spline: their extent is {extent:.1e} times the shortest step. Choose another "
        "kernel, or leave out coordinates that are nearly the same.",
        setting="kernel",
    )


def _basis(knots: Array, degree: int, query: Array) -> tuple[Array, Indices]:
    """Return the B-splines that are not 0 at queries (q, degree + 1), and the place of the first.

    By the recursion of Cox and de Boor.
    """
    count = knots.size - degree - 1
    span = np.clip(np.searchsorted(knots, query, side="right") - 1, degree, count - 1)
    values = np.ones((query.size, 1))
    for order in range(1, degree + 1):
        raised = np.zeros((query.size, order + 1))
        for place in range(order):
            low, high = knots[span + 1 + place - order], knots[span + 1 + place]
            share = (query - low) / (high - low)
            raised[:, place] += (1.0 - share) * values[:, place]
            raised[:, place + 1] += share * values[:, place]
        values = raised
    return values, span - degree


def _scatter(values: Array, first: Indices, count: int) -> Array:
    """Return rows of neighbours as full rows (q, count)."""
    result = np.zeros((len(values), count))
    places = first[:, None] + np.arange(values.shape[1])
    np.put_along_axis(result, places, values, axis=1)
    return result
