"""Splines at scattered points, in as many numbers per point as there are B-splines beside it.

As rows over the samples, cubic and quintic splines have no zeros. Over their B-splines they have
degree + 1 numbers at any place. So samples become coefficients of B-splines once, along one axis
after another, and a point then takes (degree + 1)^n of them, however large the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Tensor
from dkrls_cli.cascade.splines.cardinal import Cardinal, cardinal, reach_of
from dkrls_cli.cascade.splines.pieces import Piece, piece_weights
from dkrls_cli.cascade.tensors import along

_NUMBERS = 2**16
"""Numbers gathered at once: half a megabyte stays in the cache."""


@dataclass(frozen=True, eq=False)
class LocalRows:
    """Rows of one axis at points, as their entries that are not 0.

    Attributes
    ----------
    places, values
        Which entries, and their values (n, w).
    coefficients
        The matrix that turns samples into what the entries belong to (k, m); None: samples.
    """

    places: Indices
    values: Array
    coefficients: Array | None = None

    @classmethod
    def at_nodes(cls, nodes: Indices) -> LocalRows:
        """Return the rows that take one sample at each point."""
        return cls(nodes[:, None], np.ones((nodes.size, 1)))

    @classmethod
    def of_splines(
        cls, first: str, pieces: Sequence[Piece], nodes: Array, query: Array
    ) -> LocalRows:
        """Return the rows of a spline with pieces, through samples at nodes in any order."""
        order = np.argsort(nodes)
        found = [
            _rows_of_one(cardinal(name, nodes[order]), order, weight, query)
            for name, weight in piece_weights(first, pieces, query).items()
            if weight.any()
        ]
        return found[0] if len(found) == 1 else _side_by_side(found, nodes.size)


def is_within_reach(nodes: Array, query: Array) -> Mask:
    """Return where polynomials of splines are asked; farther away a spline goes on straight."""
    low, high = reach_of(np.sort(nodes))
    return np.asarray((low <= query) & (query <= high))


def _rows_of_one(spline: Cardinal, order: Indices, weight: Array, query: Array) -> LocalRows:
    """Return the rows of one spline, times a weight at every query."""
    values, first = spline.local_basis(query)
    places = first[:, None] + np.arange(values.shape[1])
    values *= weight[:, None]
    if spline.degree == 1:  # its B-splines are 1 at one sample and 0 at all others
        return LocalRows(order[places], values)
    coefficients = np.empty_like(spline.coefficients)
    coefficients[:, order] = spline.coefficients
    return LocalRows(places, values, coefficients)


def _side_by_side(rows: Sequence[LocalRows], size: int) -> LocalRows:
    """Return the sum of rows, each of which has numbers of its own."""
    matrices = [np.eye(size) if own.coefficients is None else own.coefficients for own in rows]
    places = [own.places + place * size for place, own in enumerate(rows)]
    values = [own.values for own in rows]
    return LocalRows(np.hstack(places), np.hstack(values), np.vstack(matrices))


def contract_local(tensor: Tensor, rows: Sequence[LocalRows]) -> Array:
    """Return a tensor contracted with one row per axis at every point (n,).

    Examples
    --------
    >>> rows = LocalRows.of_splines("linear", (), np.arange(3.0), np.array([0.5, 1.25]))
    >>> contract_local(np.array([0.0, 2.0, 6.0]), [rows]).tolist()
    [1.0, 3.0]
    """
    for axis, own in enumerate(rows):
        if own.coefficients is not None:
            tensor = along(tensor, axis, own.coefficients)
    numbers = tensor.reshape(-1)
    steps = [math.prod(tensor.shape[axis + 1 :]) for axis in range(tensor.ndim)]
    count = len(rows[0].places)
    block = max(1, _NUMBERS // math.prod(own.places.shape[1] for own in rows))
    answers = np.empty(count)
    for start in range(0, count, block):
        part = slice(start, start + block)
        at = np.zeros((len(answers[part]), 1), np.intp)
        for own, step in zip(rows, steps, strict=True):
            at = (at[:, :, None] + step * own.places[part, None]).reshape(len(at), -1)
        left = numbers[at].astype(np.float64, copy=False)
        for own in reversed(rows):
            values = own.values[part]
            left = np.einsum("pij,pj->pi", left.reshape(len(at), -1, values.shape[1]), values)
        answers[part] = left[:, 0]
    return answers
