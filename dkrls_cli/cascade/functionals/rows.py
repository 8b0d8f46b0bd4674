"""Rows of a cascade for the functionals of its levels: matrices, and operators of long levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.derivatives import warp_slopes
from dkrls_cli.cascade.functionals.detail import Detail, has_detail
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.cascade.functionals.quadrature import make_rule
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.tensors import Rows
from dkrls_cli.errors import SettingError

# Numbers of a dense matrix of a long level that are worked on at once: 64 MB.
_AT_ONCE = 2**23

# Numbers of all dense rows of a long level together at most, for the variance of means: they are
# solved for one by one, in some minutes.
_MOST = 2**31


def kernel_rows(cascade: Cascade, axis: int, asked: Functional) -> Array | Rows:
    """Return L k(., c) of a level: in its eigenbasis (q, rank), or of a long one in samples."""
    factor = cascade.factor(axis)
    if isinstance(factor, LongFactor):
        return LongKernelRows(factor, asked)
    kernel, nodes = cascade.levels[axis].kernel, cascade.coordinates[axis]
    return asked.rows(kernel, nodes) @ factor.vectors


def answer_rows(
    cascade: Cascade, axis: int, asked: Functional, smooth: bool
) -> Array | Indices | Rows:
    """Return the rows (q, r_l) that answer from the core along one axis, with its own ridge.

    Values pass through at training coordinates as ever, and derivatives are those of what passes
    through, with a share of the detail (:mod:`dkrls_cli.cascade.functionals.detail`); means are
    those of the smooth field.
    """
    if isinstance(asked, Values):
        return cascade.answer_rows(axis, asked.query, smooth)
    factor, frame = cascade.factor(axis), cascade.frames[axis]
    level, nodes = cascade.levels[axis], cascade.coordinates[axis]
    detail = Detail(level.kernel, nodes) if has_detail(level, asked, smooth) else None
    if isinstance(factor, LongFactor):
        long = LongAnswerRows(factor, asked, detail)
        return long if frame is None else long @ np.asarray(frame, np.float64)
    rows = kernel_rows(cascade, axis, asked)
    assert isinstance(rows, np.ndarray)
    rows = np.asarray(rows @ cascade.solve_rows(axis))
    if detail is None:
        return rows
    data = np.eye(nodes.size) if frame is None else np.asarray(frame, np.float64)
    seen = gram(level.kernel, nodes, nodes) @ factor.vectors @ cascade.solve_rows(axis)
    return np.asarray(rows + detail.rows(asked) @ (data - seen))


def answer_long(factor: LongFactor, asked: Functional, weights: Array) -> Array:
    """Return L k(., c) weights (q, n) of a long level, in O(m)."""
    return prepare_long(factor, weights, asked)(asked)


def prepare_long(
    factor: LongFactor, weights: Array, like: Functional
) -> Callable[[Functional], Array]:
    """Return a function that answers functionals of one kind from the same weights (m, n)."""
    order = like.order if isinstance(like, Derivatives) else 0
    answer = _prepare_order(factor, weights, order)

    def at(asked: Functional) -> Array:
        if isinstance(asked, Values | Derivatives):
            return answer(asked.query)
        assert isinstance(asked, Means)
        result = np.empty((len(asked), weights.shape[1]))
        most = max(1, _AT_ONCE // max(1, weights.shape[1] * 32))
        for start in range(0, len(asked), most):
            some = asked[start : start + most]
            rule = make_rule(
                factor.kernel, some.low, some.high, factor.coordinates, latitude=some.latitude
            )
            result[start : start + most] = rule.average(answer(rule.points))
        return result

    return at


def _prepare_order(factor: LongFactor, weights: Array, order: int) -> Callable[[Array], Array]:
    """Return a function that answers with derivatives by the coordinate, warped or not."""
    kernel, answer = factor.kernel, factor.prepare(weights, order)
    if kernel.warp is None or order == 0:
        return answer
    first = answer if order == 1 else factor.prepare(weights, 1)

    def at(query: Array) -> Array:
        slope, bend = (each[:, None] for each in warp_slopes(kernel, query))
        if order == 1:
            return slope * first(query)
        return slope**2 * answer(query) + bend * first(query)

    return at


@dataclass(frozen=True, eq=False)
class LongKernelRows:
    """Kernel rows L k(., c) of a long level (q, m), as an operator on weights."""

    factor: LongFactor
    asked: Functional
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.asked)

    def __getitem__(self, part: slice) -> LongKernelRows:
        """Return some of the rows."""
        return LongKernelRows(self.factor, self.asked[part])

    def __matmul__(self, weights: Array) -> Array:
        """Return the answers (q, n) of weights (m, n)."""
        return answer_long(self.factor, self.asked, weights)


@dataclass(frozen=True, eq=False)
class LongAnswerRows:
    """Rows L k(., c) C^-1 of a long level (q, m), as an operator on data."""

    factor: LongFactor
    asked: Functional
    detail: Detail | None = None
    ndim: ClassVar[int] = 2

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.asked)

    def __getitem__(self, part: slice) -> LongAnswerRows:
        """Return some of the rows."""
        return LongAnswerRows(self.factor, self.asked[part], self.detail)

    def __matmul__(self, fibres: Array) -> Array:
        """Return the answers (q, n) from data (m, n)."""
        return self.prepare(fibres)(self.asked)

    def prepare(self, fibres: Array) -> Callable[[Functional], Array]:
        """Return a function that answers functionals of this kind from the same data (m, n)."""
        weights = self.factor.solve(fibres)
        smooth = prepare_long(self.factor, weights, self.asked)
        if self.detail is None:
            return smooth
        assert isinstance(self.detail.factor, LongFactor)
        residual = self.factor.ridge * weights  # y - K C^-1 y
        beside = prepare_long(self.detail.factor, self.detail.solve(residual), self.asked)
        return lambda asked: smooth(asked) + beside(asked)


def left_variance(cascade: Cascade, axis: int, asked: Functional) -> Array:
    """Return L L'k - (L k)' C^-1 (L k) of a level with its own ridge, without noise (q,)."""
    factor, level = cascade.factor(axis), cascade.levels[axis]
    if isinstance(factor, LongFactor):
        return long_variance(factor, asked, level.name)
    rows = kernel_rows(cascade, axis, asked)
    assert isinstance(rows, np.ndarray)
    explained = rows**2 @ (1.0 / (factor.values + level.ridge))
    return np.maximum(asked.prior(level.kernel) - explained, 0.0)


def long_variance(factor: LongFactor, asked: Functional, name: str) -> Array:
    """Return L L'k - (L k)' C^-1 (L k) of a long level (q,).

    Values and derivatives take O(m). The rows of means, and of second derivatives by a warped
    coordinate, are solved for as they are, some at a time.

    Raises
    ------
    SettingError
        If there are too many of them.
    """
    if isinstance(asked, Values):
        return factor.unexplained(asked.query)
    if isinstance(asked, Derivatives) and factor.kernel.warp is None:
        return factor.unexplained(asked.query, asked.order)
    if isinstance(asked, Derivatives) and asked.order == 1:
        slope, _ = warp_slopes(factor.kernel, asked.query)
        return slope**2 * factor.unexplained(asked.query, 1)
    size = factor.coordinates.size
    if len(asked) * size > _MOST:
        raise SettingError(
            f"Standard errors of {len(asked)} answers along '{name}', of {size} coordinates, take "
            f"too long. Ask for {_MOST // size} answers at most, or for no standard errors."
        )
    left = asked.prior(factor.kernel)
    step = max(1, _AT_ONCE // size)
    for start in range(0, len(asked), step):
        part = slice(start, start + step)
        rows = asked[part].rows(factor.kernel, factor.coordinates)
        left[part] -= np.einsum("qm,mq->q", rows, factor.solve(np.ascontiguousarray(rows.T)))
    return np.maximum(left, 0.0)
