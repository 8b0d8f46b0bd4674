"""Solvers of a cascade: a ridge per level, or one joint ridge for the whole grid.

Both have the interface :class:`Solver`; a cascade asks its solver wherever the two differ.

- :class:`LevelSolver`, the paper's: 1 / (w_l + lambda_l) along every axis on its own, (20), (21).
- :class:`JointSolver`: 1 / (prod w_l + lambda) over all axes at once, which is kernel ridge
  regression (one-layer KRLS) over all samples of the grid, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.factors.levels import AnyFactor
from dkrls_cli.cascade.factors.long import LongAxis, LongFactor
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.cascade.tensors import Operator, Rows, along, along_map, apply
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.cascade.cascade import Cascade


class Solver(Protocol):
    """How a ridge enters the answers of a cascade."""

    def answer_blocks(self, queries: Sequence[Array], smooth: bool) -> Callable[[Slices], Array]:
        """Return a function that answers one block of a product grid."""

    def pass_through(self, at_node: Mask) -> Mask:
        """Return where axes pass through (axes, points), given where a query is a coordinate."""

    def spread_rows(self, axis: int, query: Array, smooth: bool) -> Array | Indices | Rows:
        """Return the rows that answer along an axis which is no part of points, for all points."""

    def solves_tensor(self, axis: int) -> bool:
        """Return whether points are answered faster with this axis solved for in the tensor."""

    def coefficients(self, solved: Sequence[bool]) -> Array:
        """Return the core less its mean, the given axes solved for in their eigenbases."""

    def weights(self, axes: Sequence[int]) -> Array:
        """Return the paper's weights after the levels of these axes, in samples."""

    def factors_after(self, axis: int, factor: AnyFactor | None) -> tuple[AnyFactor | None, ...]:
        """Return the factors that stay valid when coordinates of one axis change.

        `factor` is what is known of the changed axis.
        """


@dataclass(frozen=True, eq=False)
class LevelSolver:
    """A ridge per level: every axis is solved for on its own."""

    cascade: Cascade

    def answer_blocks(self, queries: Sequence[Array], smooth: bool) -> Callable[[Slices], Array]:
        """Return a function that answers one block of a product grid."""
        cascade = self.cascade
        long = self._long_axis(queries, smooth)
        if long is not None:
            return self._answer_long(long, queries, smooth)
        rows = [cascade.answer_rows(axis, query, smooth) for axis, query in enumerate(queries)]
        passed = all(row.ndim == 1 for row in rows)
        framed = any(frame is not None for frame in cascade.frames)
        tensor = cascade.centred_core() if framed and not passed else cascade.core
        mean = 0.0 if passed else cascade.mean
        less = 0.0 if framed else mean  # of a core in samples, which may be large, in parts of it

        def answer(part: Slices) -> Array:
            result = apply(tensor, [row[p] for row, p in zip(rows, part, strict=True)], less)
            result += mean
            return result

        return answer

    def _long_axis(self, queries: Sequence[Array], smooth: bool) -> int | None:
        """Return the longest axis that is long, in samples and queried between its coordinates."""
        cascade = self.cascade
        between = [
            axis
            for axis, query in enumerate(queries)
            if cascade.frames[axis] is None
            and (cascade.find_nodes(axis, query, smooth) < 0).any()
            and cascade.is_long(axis)
        ]
        return max(between, key=lambda axis: cascade.shape[axis], default=None)

    def _answer_long(
        self, long: int, queries: Sequence[Array], smooth: bool
    ) -> Callable[[Slices], Array]:
        """Return a function that answers one block, with one long axis solved for beforehand.

        At training coordinates of that axis the data is asked, between them its weights.
        """
        cascade, mean = self.cascade, self.cascade.mean
        factor, nodes = cascade.factor(long), cascade.find_nodes(long, queries[long], smooth)
        assert isinstance(factor, LongFactor)
        rows: list[Operator] = [
            None if axis == long else cascade.answer_rows(axis, query, smooth)
            for axis, query in enumerate(queries)
        ]
        data = np.asarray(cascade.centred_core(), np.float64)
        sizes = [query.size for query in queries]
        grows = math.prod(sizes) * cascade.shape[long] > data.size * sizes[long]
        whole = LongAxis(factor, data, long) if grows else None
        known: dict[tuple[tuple[int, int], ...], LongAxis] = {}

        def answer(part: Slices) -> Array:
            query, here = queries[long][part[long]], nodes[part[long]]
            cut = [None if row is None else row[p] for row, p in zip(rows, part, strict=True)]
            if whole is not None:
                result = apply(whole.at(query, here), cut)
            else:  # blocks of the same columns follow each other
                columns = tuple((p.start, p.stop) for p in (*part[:long], *part[long + 1 :]))
                if columns not in known:
                    known.clear()
                    known[columns] = LongAxis(factor, apply(data, cut), long)
                result = known[columns].at(query, here)
            result += mean
            return result

        return answer

    def pass_through(self, at_node: Mask) -> Mask:
        """Return where axes pass through: each axis on its own."""
        return at_node

    def spread_rows(self, axis: int, query: Array, smooth: bool) -> Array | Indices | Rows:
        """Return the rows that answer from the core, data at training coordinates."""
        return self.cascade.answer_rows(axis, query, smooth)

    def solves_tensor(self, axis: int) -> bool:
        """Return whether solving makes the tensor shorter here, or this is the long axis."""
        factor = self.cascade.factor(axis)
        if isinstance(factor, LongFactor):
            return axis == int(np.argmax(self.cascade.shape))
        return bool(factor.rank < self.cascade.core.shape[axis])

    def coefficients(self, solved: Sequence[bool]) -> Array:
        """Return the core less its mean, the given axes solved for in their eigenbases."""
        cascade = self.cascade
        solves = [cascade.solve_rows(axis) if yes else None for axis, yes in enumerate(solved)]
        return cascade.apply_centred(solves)

    def weights(self, axes: Sequence[int]) -> Array:
        """Return alpha^1 of (20) for one axis, alpha^2 of (21) for two, and so on."""
        result = self.cascade.predict() - self.cascade.mean
        for axis in axes:
            factor, level = self.cascade.factor(axis), self.cascade.levels[axis]
            if isinstance(factor, LongFactor):
                result = along_map(result, axis, factor.solve)
            else:
                result = along(result, axis, factor.inverse(level.ridge))
        return result

    def factors_after(self, axis: int, factor: AnyFactor | None) -> tuple[AnyFactor | None, ...]:
        """Return the factors of all other axes, and what is known of the changed one."""
        factors = list(self.cascade.factors)
        factors[axis] = factor
        return tuple(factors)


@dataclass(frozen=True, eq=False)
class JointSolver:
    """One ridge for the whole grid: all axes are solved for at once."""

    cascade: Cascade
    ridge: float

    def answer_blocks(self, queries: Sequence[Array], smooth: bool) -> Callable[[Slices], Array]:
        """Return a function that answers one block of a product grid."""
        cascade = self.cascade
        nodes = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        kernel_rows = [cascade.cross_rows(axis, query) for axis, query in enumerate(queries)]
        coefficients = self.coefficients([True] * cascade.ndim)

        def answer(part: Slices) -> Array:
            result = apply(coefficients, [row[p] for row, p in zip(kernel_rows, part, strict=True)])
            result += cascade.mean
            here = [n[p] for n, p in zip(nodes, part, strict=True)]
            known = np.ix_(*[np.flatnonzero(n >= 0) for n in here])
            data = [cascade.data_rows(axis, n[n >= 0]) for axis, n in enumerate(here)]
            result[known] = apply(cascade.core, data)
            return result

        return answer

    def pass_through(self, at_node: Mask) -> Mask:
        """Return where axes pass through: all of them, at training cells only."""
        return np.broadcast_to(at_node.all(axis=0), at_node.shape)

    def spread_rows(self, axis: int, query: Array, smooth: bool) -> Array | Rows:
        """Return the rows of the kernel, for the coefficients of all axes."""
        return self.cascade.cross_rows(axis, query)

    def solves_tensor(self, axis: int) -> bool:
        """Return True: there is one solve, for all axes."""
        return True

    def coefficients(self, solved: Sequence[bool]) -> Array:
        """Return the core less its mean, all axes solved for in their eigenbases.

        A long axis is solved for in samples, once for every direction of the others.
        """
        cascade, long = self.cascade, self.long
        bases = [
            cascade.frames[axis] if axis == long else cascade.to_eigenbasis(axis)
            for axis in range(cascade.ndim)
        ]
        coefficients = cascade.apply_centred(bases)
        if long is None:
            coefficients /= self.eigenvalues()
            return coefficients
        return self.solve_long(coefficients)

    @property
    def long(self) -> int | None:
        """The axis that is solved for as a long level, if there is one."""
        axes = range(self.cascade.ndim)
        return next((axis for axis in axes if self.cascade.is_long(axis)), None)

    def solve_long(self, tensor: Array) -> Array:
        """Return the solution along the long axis, in samples, in every direction of the others.

        The tensor has the other axes in their eigenbases. With p the product of their eigenvalues,
        the system is p K + ridge.
        """
        return self._long_map(tensor, lambda factor, column: factor.solve(column))

    def products(self) -> Array:
        """Return the products of the eigenvalues of all levels that are not long."""
        values = [self.cascade.spectrum(axis).values for axis in self.short]
        return np.asarray(reduce(np.multiply.outer, values, np.array(1.0)))

    def eigenvalues(self) -> Array:
        """Return p + ridge over the products p of the levels' eigenvalues."""
        return self.products() + self.ridge

    def _long_map(self, tensor: Array, function: Callable[[LongFactor, Array], Array]) -> Array:
        """Return a function of the long axis, for every direction of the other levels.

        In a direction whose eigenvalues have the product p the system is p K + ridge, which is p
        times K + ridge / p: `function` is given the factor of that and the fibre of the tensor, and
        its result (n, 1) is divided by p. A p of 0 is round-off of the largest.
        """
        long = self.long
        assert long is not None
        factor, products = self.cascade.factor(long), self.products().ravel()
        products = np.maximum(products, ROUND_OFF * products.max())
        assert isinstance(factor, LongFactor)
        fibres = np.moveaxis(tensor, long, 0)
        columns = fibres.reshape(len(fibres), -1)
        columns = np.broadcast_to(columns, (len(fibres), products.size))
        results = [
            function(factor.with_ridge(self.ridge / p), columns[:, place : place + 1]) / p
            for place, p in enumerate(products.tolist())
        ]
        shape = [self.cascade.spectrum(axis).rank for axis in self.short]
        return np.moveaxis(np.concatenate(results, axis=1).reshape(-1, *shape), 0, long)

    def shared_eigenvalues(self) -> list[Array]:
        """Return w + its share of the ridge for every level: k(q, c) V / sqrt of it is bounded."""
        spectra = self.cascade.spectra
        share = self.ridge / math.prod(float(s.values[0]) for s in spectra)
        return [s.values + share * s.values[0] for s in spectra]

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of the inverse of the whole system, in the shape of the grid."""
        squares = [
            None if axis == self.long else self.cascade.spectrum(axis).vectors ** 2
            for axis in range(self.cascade.ndim)
        ]
        if self.long is None:
            return apply(1.0 / self.eigenvalues(), squares)
        one = np.ones((1,) * self.cascade.ndim)
        return apply(self._long_map(one, lambda f, _: f.inverse_diagonal()[:, None]), squares)

    def explained(self, queries: Sequence[Array]) -> tuple[Array, list[Array | Indices]]:
        """Return a tensor, and operators that make the variance that data explains of it.

        The operators are squared rows. The tensor has a long axis at the queries already.
        """
        cascade, long = self.cascade, self.long
        rows: list[Array | Indices] = [
            np.arange(query.size) if axis == long else cascade.kernel_rows(axis, query) ** 2
            for axis, query in enumerate(queries)
        ]
        if long is None:
            return 1.0 / self.eigenvalues(), rows
        return self.long_explained(queries[long]), rows

    def left(self, queries: Sequence[Array]) -> Callable[[Slices], Array]:
        """Return a function that computes what the data leaves open in a block of a grid.

        That is the posterior variance, never below 0, and the noise.
        """
        inverse, rows = self.explained(queries)
        prior = math.prod(level.kernel.variance for level in self.cascade.levels)

        def left(part: Slices) -> Array:
            explained = apply(inverse, [row[p] for row, p in zip(rows, part, strict=True)])
            return np.asarray(np.maximum(prior - explained, 0.0) + self.ridge)

        return left

    def long_explained(self, query: Array) -> Array:
        """Return k' (p K + ridge)^-1 k of the long axis, in every direction of the others."""
        assert self.long is not None
        prior = self.cascade.levels[self.long].kernel.variance
        return self.long_variances(lambda factor: prior - factor.unexplained(query))

    def long_variances(self, function: Callable[[LongFactor], Array]) -> Array:
        """Return a variance (q,) of the long axis in every direction of the others.

        In a direction whose eigenvalues have the product p, `function` is given the factor of
        K + ridge / p, and its result is divided by p.
        """
        one = np.ones((1,) * self.cascade.ndim)
        return self._long_map(one, lambda factor, _: function(factor)[:, None])

    @property
    def short(self) -> list[int]:
        """The axes that are not solved for as a long level."""
        return [axis for axis in range(self.cascade.ndim) if axis != self.long]

    def weights(self, axes: Sequence[int]) -> Array:
        """Return the weights of the one layer; all axes must be asked for."""
        cascade = self.cascade
        if list(axes) != list(range(cascade.ndim)):
            raise SettingError("A joint ridge has one layer of weights only: ask for all axes.")
        coefficients = self.coefficients([True] * cascade.ndim)
        axes = range(cascade.ndim)
        return apply(
            coefficients, [None if a == self.long else cascade.spectrum(a).vectors for a in axes]
        )

    def factors_after(self, axis: int, factor: AnyFactor | None) -> tuple[AnyFactor | None, ...]:
        """Return no factors: each holds the directions that the ridge solves beside the others."""
        return (None,) * self.cascade.ndim
