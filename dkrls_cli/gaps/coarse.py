"""A coarse space: the directions of largest variance, solved for exactly with the true mask.

The system is V' M V + lambda / w, see :mod:`dkrls_cli.gaps.solve`. Dividing by p + lambda / w, with
p the observed share, is good for directions that change from cell to cell: some of their cells are
observed. Smooth directions fit into a hole, where nothing is. So for the k directions of largest w
the system is formed with the mask as it is, and factored. The
matrix V_k' M V_k is the same for all kernels in one basis, so a search makes it once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations

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

_MOST_STEPS, _TRIAL_STEPS = 10_000.0, 500.0
"""Iterations of a solve at most: a ratio that asks for more is of directions at round-off.

Trials that take more are given up. Other solves end before, too, but with a lower limit many sizes
would seem to take as many iterations: the fewest directions were cheapest, and did not converge.
"""

_TOLD, _UNTOLD_STEPS = 1e-13, 1000.0
"""Ridge, as a share of the largest variance, below which iterations have another limit, and that.

There the ridge of the coarse system is round-off in part, and more directions are none the better.
"""

_SOLVES = 2.0
"""Solves that a space serves, roughly; that of a trial serves one."""

_READING = 20.0
"""Cost of an entry of the factor in an iteration: it is read from memory twice."""

_AS_GOOD = 1.25
"""Cost, as a multiple of the least, up to which a larger space is made: it leaves fewer steps.

That of a trial is the cheapest.
"""

_COPYING, _CALLING = 20.0, 4e4
"""Cost of copying a number and of calling a product, in multiplications of a large product."""

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
        Lower Cholesky factor of sqrt(w) V' M V sqrt(w) + lambda (k, k), stored column by column;
        what is above its diagonal has no meaning.
    """

    places: tuple[Indices, ...]
    roots: Array
    factor: Array

    def add_solution(self, left: Array, result: Array) -> None:
        """Add the solution for `left` on these directions to `result`."""
        from scipy.linalg.blas import dtrsv  # for one vector three times as fast as cho_solve

        part = self.roots * left[self.places]
        for transposed in (0, 1):
            part = dtrsv(self.factor, part, lower=1, trans=transposed, overwrite_x=1)
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
        factor, _ = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
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
    solves, slack = (1.0, 1.0) if is_trial else (_SOLVES, _AS_GOOD)
    most = _MOST_STEPS if ridge >= _TOLD * float(flat.max()) else _UNTOLD_STEPS
    limit = _TRIAL_STEPS if is_trial else most
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


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The distinct pairs of directions along two axes, in the order of the first.

    Attributes
    ----------
    first, second
        The columns of both bases that have a part in a pair (m, u).
    ones, others
        The column of each of them of every pair.
    starts
        The first direction of every pair, and the number of directions: they have its order.
    which
        The pair of every direction.
    """

    first: Array
    second: Array
    ones: Indices
    others: Indices
    starts: Indices
    which: Indices

    @classmethod
    def of(cls, bases: Sequence[Array], places: Sequence[Indices]) -> _Pairs:
        """Return the pairs of two bases, given the column of every direction in each."""
        (first, one), (second, other) = (np.unique(p, return_inverse=True) for p in places)
        pairs, starts, which = np.unique(
            one * second.size + other, return_index=True, return_inverse=True
        )
        ones, others = np.divmod(pairs, second.size)
        starts = np.append(starts, which.size)
        return cls(bases[0][:, first], bases[1][:, second], ones, others, starts, which)

    def sums(self, cells: Array) -> Iterator[tuple[int, Array]]:
        """Yield every pair, and the sums of cells (m, m', n) times it and each pair behind it."""
        groups = np.searchsorted(self.ones, np.arange(self.first.shape[1] + 1))
        flat = cells.reshape(len(self.first), -1)
        for pair, (one, other) in enumerate(zip(self.ones, self.others, strict=True)):
            if pair == groups[one]:
                over_first = (self.first[:, one:] * self.first[:, [one]]).T @ flat
                over_first = over_first.reshape(-1, *cells.shape[1:])
            columns = self.second * self.second[:, [other]]
            sums = np.empty((self.ones.size - pair, cells.shape[2]))
            for group, part in enumerate(over_first, int(one)):
                here, end = max(pair, groups[group]), groups[group + 1]
                np.matmul(
                    columns[:, self.others[here:end]].T, part, out=sums[here - pair : end - pair]
                )
            yield pair, sums


def masked_gram(weights: Array, bases: Sequence[Array], places: Sequence[Indices]) -> Array:
    """Return V' M V for some directions (k, k), given the weights of the cells, M.

    Two axes are summed over before the others, one after the other and once for each pair of their
    directions: those with which that costs least. In their order the matrix has blocks, of which
    those on one side of the diagonal are computed.
    """
    count, lacking = places[0].size, max(0, 3 - weights.ndim)
    weights = weights.reshape(*[1] * lacking, *weights.shape)
    bases = [*[np.ones((1, 1))] * lacking, *bases]
    places = [*[np.zeros(count, np.intp)] * lacking, *places]
    first = _cheapest_first(weights.shape, places)
    order = np.lexsort([places[axis] for axis in reversed(first)])
    ordered = [place[order] for place in places]
    pairs = _Pairs.of([bases[axis] for axis in first], [ordered[axis] for axis in first])
    others = [axis for axis in range(weights.ndim) if axis not in first]
    cells = np.moveaxis(weights, first, (0, 1)).astype(np.float64, copy=False)
    shape = cells.shape[2:]
    cells = cells.reshape(*cells.shape[:2], -1)
    gram = np.zeros((count, count))
    step = max(1, _AT_ONCE // count)
    for start in range(0, cells.shape[2], step):
        part = cells[:, :, start : start + step]
        spots = np.unravel_index(np.arange(start, start + part.shape[2]), shape)
        rest = np.ones((count, part.shape[2]))
        for axis, spot in zip(others, spots, strict=True):
            rest *= bases[axis].T[np.ix_(ordered[axis], spot)]
        for pair, sums in pairs.sums(part):
            here, end = pairs.starts[pair : pair + 2]
            behind = sums[pairs.which[here:] - pair] * rest[here:]
            gram[here:end, here:] += rest[here:end] @ behind.T
    for here, end in pairwise(pairs.starts):
        gram[end:, here:end] = gram[here:end, end:].T
    back = np.argsort(order)
    return gram if (back == np.arange(count)).all() else np.asarray(gram[np.ix_(back, back)])


def _cheapest_first(shape: Sequence[int], places: Sequence[Indices]) -> tuple[int, int]:
    """Return the two axes to sum over first, in their order: those with the fewest operations."""
    cells, count = math.prod(shape), places[0].size
    distinct = [np.unique(place).size for place in places]

    def cost(first: tuple[int, int]) -> float:
        one, other = first
        pairs = np.unique(places[one] * (places[other].max() + 1) + places[other]).size
        left = cells // shape[one] // shape[other]
        return (
            distinct[one] ** 2 * cells
            + pairs**2 * cells / shape[one]
            + count**2 * left
            + _COPYING * pairs * count * left
            + _CALLING * pairs * distinct[one]
        )

    return min(permutations(range(len(shape)), 2), key=cost)


def decompose_in_place(system: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of a symmetric matrix, which is overwritten with them."""
    from scipy.linalg import eigh

    if len(system) == 1:  # for which versions of scipy reserve too little room
        return system[0].copy(), np.ones((1, 1))
    values, vectors = eigh(system.T, overwrite_a=True, driver="evd", check_finite=False)
    return values, vectors
