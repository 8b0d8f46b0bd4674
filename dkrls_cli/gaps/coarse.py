"""A coarse space: the directions of largest variance, solved for exactly with the true mask.

The system is V' M V + lambda / w, see :mod:`dkrls_cli.gaps.solve`. Dividing by p + lambda / w, with
p the observed share, is good for directions that change from cell to cell: some of their cells are
observed. Smooth directions fit into a hole, where nothing is. So for the k directions of largest w
the system is formed with the mask as it is, and factored. The
matrix V_k' M V_k is the same for all kernels in one basis, so a search makes it once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.gaps.bases.sphere import SphereBasis
from dkrls_cli.gaps.field import Field
from dkrls_cli.gaps.pattern import distance_to_data

_SIZES = (200, 300, 450, 700, 1000, 1500, 2200, 3000)
"""Numbers of directions to choose from: 3000 take 140 MB, and some 0.5 s to factor."""

MOST_DIRECTIONS = _SIZES[-1]
"""Directions of the largest coarse space."""

STEPS = 3.0
"""Iterations of a solve per root of the ratio that a coarse space leaves, as measured: 2 to 3.5."""

PRODUCTS = 2.0
"""Products with the system in an iteration: the space is solved for after the others."""

_MOST_STEPS, _TRIAL_STEPS = 1000.0, 500.0
"""Iterations of a solve at most: a ratio that asks for more is of directions at round-off.

Trials of a search that take more are given up. Were it less, settings with a small ridge would get
few directions, and seem not to converge.
"""

_SOLVES = 2.0
"""Solves that a space serves, roughly; that of a trial serves one."""

_READING = 20.0
"""Cost of an entry of the factor in an iteration: it is read from memory twice."""

_AS_GOOD = 1.25
"""Cost, as a multiple of the least, up to which a larger space is made: it leaves fewer steps.

That of a trial is the cheapest.
"""

_LEAST = 1e-14
"""Least ridge of the coarse system, as a share of its trace: below is round-off."""

_AT_ONCE = 2**21
"""Numbers that a Gram matrix is summed from at a time: 16 MB, thrice."""

_NO_USE = 0.01
"""Directions whose w is below this share of the ridge are solved as well without."""


@dataclass(frozen=True, eq=False)
class CoarseSpace:
    """The system on some directions, factored.

    Attributes
    ----------
    places
        Indices of the directions, one vector per axis.
    roots
        sqrt(w) of the directions (k,).
    factor
        Cholesky factor of sqrt(w) V' M V sqrt(w) + lambda.
    """

    places: tuple[Indices, ...]
    roots: Array
    factor: tuple[Array, bool]

    def add_solution(self, left: Array, result: Array) -> None:
        """Add the solution for `left` on these directions to `result`."""
        from scipy.linalg import cho_solve

        right = self.roots * left[self.places]
        part = cho_solve(self.factor, right, overwrite_b=True, check_finite=False)
        result[self.places] += self.roots * part


class CoarseMaker:
    """Makes coarse spaces for one grid; what depends on the basis alone is made once.

    Parameters
    ----------
    weights
        Weight of every cell in the system: 1 where it is observed, 0 where it is missing.
    most
        Directions at most; None: as many as are worth their time.
    is_trial
        Whether each space serves one trial of a search.
    """

    def __init__(self, weights: Array, most: int | None = None, *, is_trial: bool = False) -> None:
        self._weights, self._most, self._is_trial = weights, most, is_trial
        self._known: tuple[tuple[Array | SphereBasis, ...], tuple[Indices, ...], Array] | None = (
            None
        )
        self._last: tuple[Array, float, CoarseSpace] | None = None

    @cached_property
    def distances(self) -> Array:
        """Distance of every cell to the nearest one that has a weight, in cells."""
        return distance_to_data(self._weights > 0)

    def make(self, field: Field, ridge: float) -> CoarseSpace:
        """Return the coarse space of a field; that of the last one is kept."""
        if self._last is not None:
            variances, before, space = self._last
            if variances is field.variances and before == ridge:
                return space
        self._last = None  # its memory is free while another one is made
        space = self._make(field, ridge)
        self._last = field.variances, ridge, space
        return space

    def _make(self, field: Field, ridge: float) -> CoarseSpace:
        from scipy.linalg import cho_factor

        share = float(self._weights.mean())
        most = self._most
        if most is None:
            most = coarse_size(field, share, ridge, is_trial=self._is_trial)
        places = largest_places(field.variances, most, _NO_USE * ridge)
        system = self._gram(field, places)
        roots = np.sqrt(field.variances[places])
        system *= roots
        system *= roots[:, None]
        least = _LEAST * float(np.trace(system))
        system[np.diag_indices(roots.size)] += max(ridge, least)
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return CoarseSpace(places, roots, factor)

    def _gram(self, field: Field, places: tuple[Indices, ...]) -> Array:
        """Return V_k' M V_k, which may be overwritten; that of a group is kept for other sigmas."""
        bases = field.operators
        if self._known is not None:
            before, there, gram = self._known
            same = all(one is other for one, other in zip(bases, before, strict=True))
            if same and all(np.array_equal(*pair) for pair in zip(places, there, strict=True)):
                return gram.copy()
        self._known = None
        gram = masked_gram(self._weights, *field.factors(places))
        if not field.grouped:
            return gram
        self._known = bases, places, gram
        return gram.copy()


def coarse_size(field: Field, share: float, ridge: float, *, is_trial: bool = False) -> int:
    """Return the number of directions with which making the space and solving cost about least.

    The k-th largest variance w leaves eigenvalues from lambda to p w + lambda, of whose ratio the
    iterations are the root.
    """
    shape = field.shape
    cells, flat = math.prod(shape), field.variances.ravel()
    sizes = [size for size in _SIZES if size < flat.size]
    if not sizes:
        return flat.size
    ordered = np.partition(flat, [flat.size - 1 - size for size in sizes])
    limit, solves, slack = (
        (_TRIAL_STEPS, 1.0, 1.0) if is_trial else (_MOST_STEPS, _SOLVES, _AS_GOOD)
    )
    products = PRODUCTS * field.operations
    least = max(ridge, _LEAST * float(flat.max()))
    ratios = [1.0 + share * float(ordered[flat.size - 1 - size]) / least for size in sizes]
    steps = [min(STEPS * math.sqrt(ratio), limit) for ratio in ratios]
    costs = [
        size**2 * cells / max(shape) + size**3 / 3 + solves * step * (products + _READING * size**2)
        for size, step in zip(sizes, steps, strict=True)
    ]
    found = [place for place, cost in enumerate(costs) if cost <= slack * min(costs)]
    return sizes[min(found, key=lambda place: steps[place])]  # the smallest of as few steps


def largest_places(variances: Array, most: int, least: float) -> tuple[Indices, ...]:
    """Return the indices of the largest variances above `least`; at least one."""
    count = min(most, max(1, int(np.count_nonzero(variances > least))))
    flat = variances.ravel()
    largest = np.sort(np.argpartition(flat, flat.size - count)[flat.size - count :])
    return np.unravel_index(largest, variances.shape)


def _cheapest_first(shape: Sequence[int], places: Sequence[Indices]) -> int:
    """Return the axis to sum over first: a long one of which few directions are asked for."""
    pairs = [np.unique(place).size ** 2 for place in places]
    costs = [pair + places[0].size ** 2 / size for pair, size in zip(pairs, shape, strict=True)]
    return int(np.argmin(costs))


def masked_gram(weights: Array, bases: Sequence[Array], places: Sequence[Indices]) -> Array:
    """Return V' M V for some directions (k, k), given the weights of the cells, M.

    One axis is summed over before the others, once for each pair of its directions: the one with
    which that costs least. In the order of its directions the matrix has blocks, of which those on
    one side of the diagonal are computed.
    """
    if weights.ndim == 1:
        columns = bases[0][:, places[0]]
        return np.asarray(columns.T @ (weights[:, None] * columns))
    first = _cheapest_first(weights.shape, places)
    others = [axis for axis in range(weights.ndim) if axis != first]
    shape, count = [1, *(weights.shape[axis] for axis in others)], places[0].size
    order = np.argsort(places[first], kind="stable")
    ordered = [place[order] for place in places]
    distinct, starts = np.unique(ordered[first], return_index=True)
    which = np.repeat(np.arange(distinct.size), np.diff(starts, append=count))
    basis = bases[first][:, distinct]
    cells = np.moveaxis(weights, first, 0).reshape(len(basis), -1).astype(np.float64, copy=False)
    gram = np.zeros((count, count))
    step = max(1, _AT_ONCE // count)
    for start in range(0, cells.shape[1], step):
        fibres = cells[:, start : start + step]
        spots = np.unravel_index(np.arange(start, start + fibres.shape[1]), shape)
        rest = np.ones((fibres.shape[1], count))
        for axis, spot in zip(others, spots[1:], strict=True):
            rest *= bases[axis][np.ix_(spot, ordered[axis])]
        for place, (here, end) in enumerate(zip(starts, [*starts[1:], count], strict=True)):
            sums = (basis[:, place:] * basis[:, [place]]).T @ fibres
            behind = sums[which[here:] - place].T * rest[:, here:]
            gram[here:end, here:] += rest[:, here:end].T @ behind
    for here, end in zip(starts, [*starts[1:], count], strict=True):
        gram[end:, here:end] = gram[here:end, end:].T
    back = np.argsort(order)
    return gram if (back == np.arange(count)).all() else np.asarray(gram[np.ix_(back, back)])


def decompose_in_place(system: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of a symmetric matrix, which is overwritten with them."""
    from scipy.linalg import eigh

    if len(system) == 1:  # for which versions of scipy reserve too little room
        return system[0].copy(), np.ones((1, 1))
    values, vectors = eigh(system.T, overwrite_a=True, driver="evd", check_finite=False)
    return values, vectors
