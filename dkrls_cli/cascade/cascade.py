"""The D-KRLS cascade on plain arrays: fit, predict, weights.

Notation, as in the paper: level l has coordinates c_l (m_l of them), Gram matrix K_l, ridge
lambda_l, C_l = K_l + lambda_l I. Training solves with C_l along axis l, one level after another
(20, 21; Algorithm 1), so the whole is one solve with the Kronecker product of the C_l and the
order of the levels does not matter to the answers.

The weights themselves are never worked with: they grow like the product of the 1/lambda_l and
lose every digit on smooth data. What is kept instead is the data, each axis in the basis U_l of
what the data spans along it (a *frame*; None: the samples themselves), and the spectrum
K_l = V_l diag(w_l) V_l'. An answer applies k(q, c_l) V_l diag(1 / (w_l + lambda_l)) V_l' U_l
along every axis, which in exact arithmetic is (12) to (19). All factors are bounded by the data.

With a joint ridge lambda, 1 / (prod w_l + lambda) takes the place of prod 1 / (w_l + lambda_l):
kernel ridge regression (one-layer KRLS) over all samples of the grid at once, exactly.

What is passed through
----------------------
A ridge smooths between coordinates; whether it also smooths *at* the training coordinates is the
user's choice:

- By default a training coordinate passes through: the answer there is the data, and the level
  takes no part in it. The rule holds coordinate by coordinate, so an answer does not depend on
  what else was asked for. Under a joint ridge there is one layer only, and so it holds cell by
  cell: a training cell answers with its value, every other cell with the model.
- ``smooth=True`` asks the model everywhere: at the nodes the ridge smooths as well (denoising).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from dkrls_cli.arrays import Array, Indices, Slices, Tensor, checked_values, vector_of
from dkrls_cli.cascade.chebyshev import resolve
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.level import Level, check_ridges, checked_coordinates
from dkrls_cli.cascade.spectrum import Spectrum, spectra_of
from dkrls_cli.cascade.tensors import along, apply, blocks, contract, span
from dkrls_cli.circle import nearest
from dkrls_cli.errors import SettingError

_POINTS_AT_ONCE = 2**17


@dataclass(frozen=True, eq=False)
class Cascade:
    """A trained model: levels, their coordinates and spectra, and the data in its frames.

    Attributes
    ----------
    levels, coordinates
        One per axis of the data.
    factors
        What is known of the spectra; what is not is worked out when it is first needed.
    frames
        U_l (m_l, r_l), or None where the axis is kept in samples.
    core
        The data with U_l' applied along every framed axis.
    joint_ridge
        The one ridge of the whole grid, or None for a ridge per level.
    dropped
        Share of the data's energy that ``compact`` left out.
    mean
        What the model falls back to far from data: it is taken out before, and added after.
    """

    levels: tuple[Level, ...]
    coordinates: tuple[Array, ...]
    factors: tuple[Spectrum | None, ...]
    frames: tuple[Array | None, ...]
    core: Tensor
    joint_ridge: float | None = None
    dropped: float = 0.0
    mean: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the training grid."""
        return tuple(c.size for c in self.coordinates)

    @property
    def ndim(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @cached_property
    def spectra(self) -> tuple[Spectrum, ...]:
        """The spectrum of every level."""
        return spectra_of(self.coordinates, self.levels, self.joint_ridge, self.factors)

    def known_factor(self, axis: int) -> Spectrum | None:
        """What is known of the spectrum of a level now."""
        worked_out: tuple[Spectrum | None, ...] = vars(self).get("spectra", self.factors)
        return worked_out[axis]

    def predict(
        self, queries: Sequence[ArrayLike | None] | None = None, *, smooth: bool = False
    ) -> Array:
        """Answers on the product grid of one query vector per axis (None: training coordinates).

        Examples
        --------
        >>> from dkrls_cli.cascade.kernels import Kernel
        >>> x = np.linspace(0.0, 6.0, 25)
        >>> model = fit(np.sin(x), [x], [Level("x", Kernel("gaussian", sigma=1.5))])
        >>> model.predict([[1.1, 2.2]]).round(6)
        array([0.891207, 0.808496])
        """
        asked = self._queries(queries if queries is not None else [None] * self.ndim)
        return self._answers(asked, smooth)(tuple(slice(0, query.size) for query in asked))

    def predict_blocks(
        self, queries: Sequence[ArrayLike | None], cells: int, *, smooth: bool = False
    ) -> Iterator[tuple[Slices, Array]]:
        """The answers of :meth:`predict` in C order, block by block of about so many cells."""
        asked = self._queries(queries)
        answers = self._answers(asked, smooth)
        for part in blocks([query.size for query in asked], cells):
            yield part, answers(part)

    def _answers(self, asked: Sequence[Array], smooth: bool) -> Callable[[Slices], Array]:
        """What answers any part of a product grid; the work common to all parts is done here."""
        axes = range(self.ndim)
        if self.joint_ridge is None:
            rows = [self._rows(axis, asked[axis], smooth) for axis in axes]
            passed = all(row.ndim == 1 for row in rows)
            tensor, mean = (self.core, 0.0) if passed else (self._centred(), self.mean)

            def level_answers(part: Slices) -> Array:
                result = apply(tensor, [rows[axis][part[axis]] for axis in axes])
                result += mean
                return result

            return level_answers
        nodes = [self.nodes(axis, asked[axis], smooth) for axis in axes]
        kernel_rows = [self.kernel_rows(axis, asked[axis]) for axis in axes]
        coefficients = self._coefficients([True] * self.ndim)

        def joint_answers(part: Slices) -> Array:
            result = apply(coefficients, [kernel_rows[axis][part[axis]] for axis in axes])
            result += self.mean
            here = [nodes[axis][part[axis]] for axis in axes]
            known = np.ix_(*[np.flatnonzero(n >= 0) for n in here])
            data = [self._data_rows(axis, here[axis][here[axis] >= 0]) for axis in axes]
            result[known] = apply(self.core, data)
            return result

        return joint_answers

    def predict_points(self, points: Sequence[ArrayLike], *, smooth: bool = False) -> Array:
        """Answers at N scattered points, given as one vector of N coordinates per axis.

        Memory beyond points and answers does not grow with N.
        """
        asked = self._queries(points)
        if len({query.size for query in asked}) > 1:
            sizes = ", ".join(str(query.size) for query in asked)
            raise SettingError(f"Points need equally many coordinates per axis, got {sizes}.")
        answers = np.empty(asked[0].size)
        for start in range(0, answers.size, _POINTS_AT_ONCE):
            part = slice(start, start + _POINTS_AT_ONCE)
            answers[part] = self._some_points([query[part] for query in asked], smooth)
        return answers

    def _some_points(self, asked: Sequence[Array], smooth: bool) -> Array:
        nodes = [self.nodes(axis, query, smooth) for axis, query in enumerate(asked)]
        passed = np.stack([n >= 0 for n in nodes])  # (axes, points)
        if self.joint_ridge is not None:
            passed[:] = passed.all(axis=0)
        patterns = np.left_shift(1, np.arange(len(nodes))) @ passed
        answers = np.empty(asked[0].size)
        for pattern in np.unique(patterns):
            here = np.flatnonzero(patterns == pattern)
            queries, known = [q[here] for q in asked], [n[here] for n in nodes]
            answers[here] = self._points_alike(passed[:, here[0]].tolist(), queries, known)
        return answers

    def _points_alike(
        self, passed: Sequence[bool], queries: Sequence[Array], nodes: Sequence[Indices]
    ) -> Array:
        """Answers at points that all pass through the same axes.

        An axis is solved for in the tensor where that makes it shorter, else in the rows.
        """
        joint = self.joint_ridge is not None
        solved = [
            not passed[axis] and (joint or spectrum.rank < self.core.shape[axis])
            for axis, spectrum in enumerate(self.spectra)
        ]

        asked = {
            axis: self._answering(axis, queries[axis], solved[axis])
            for axis in range(self.ndim)
            if not passed[axis]
        }

        def rows(axis: int, part: slice) -> Array:
            frame = self.frames[axis]
            if axis in asked:
                return asked[axis](queries[axis][part])
            assert frame is not None  # else it is looked up
            return frame[nodes[axis][part]]

        looked_up = {a: nodes[a] for a, p in enumerate(passed) if p and self.frames[a] is None}
        count, widest = queries[0].size, max(self.shape)
        if not asked:
            return contract(self.core, count, rows, looked_up, widest)
        tensor = self._coefficients(solved) if any(solved) else self._centred()
        return contract(tensor, count, rows, looked_up, widest) + self.mean

    def _answering(self, axis: int, queries: Array, solved: bool) -> Callable[[Array], Array]:
        """What makes the rows of new coordinates: the kernel, or where they are many its series."""
        solve = None if solved else self._solve(axis)

        def rows(query: Array) -> Array:
            kernel_rows = self.kernel_rows(axis, query)
            return kernel_rows if solve is None else kernel_rows @ solve

        if queries.size < 4 * self.shape[axis]:
            return rows
        kernel = partial(self.kernel_rows, axis)
        series = resolve(kernel, queries.min(), queries.max(), limit=self.shape[axis])
        if series is None:
            return rows
        return series if solve is None else series @ solve

    def weights(self, solved: Iterable[int]) -> Array:
        """The paper's weights after the levels of the given axes were trained, in sample space.

        With one axis this is alpha^1 of (20), with two alpha^2 of (21), and so on; with all of
        them the record of Algorithm 1. Under a joint ridge there is one layer, and so all axes
        must be given. Directions that no ridge lifts above round-off take no part, as in a
        pseudo-inverse.
        """
        axes = sorted(set(solved))
        if not set(axes) <= set(range(self.ndim)):
            raise SettingError(f"Invalid axes {axes}. The model has axes 0 to {self.ndim - 1}.")
        if self.joint_ridge is None:
            inverses = [
                self.spectra[axis].inverse(self.levels[axis].ridge) if axis in axes else None
                for axis in range(self.ndim)
            ]
            return apply(self.predict() - self.mean, inverses)
        if axes != list(range(self.ndim)):
            raise SettingError("A joint ridge has one layer of weights only: ask for all axes.")
        return apply(self._coefficients([True] * self.ndim), [s.vectors for s in self.spectra])

    def _centred(self) -> Tensor:
        """The core of the data less its mean."""
        if self.mean == 0:
            return self.core
        ones = [
            np.ones(m) if f is None else f.sum(axis=0)
            for m, f in zip(self.shape, self.frames, strict=True)
        ]
        return np.asarray(self.core - self.mean * reduce(np.multiply.outer, ones))

    def _queries(self, queries: Sequence[ArrayLike | None]) -> list[Array]:
        if len(queries) != self.ndim:
            raise SettingError(f"Expected one query per level ({self.ndim}), got {len(queries)}.")
        return [
            c if q is None else vector_of(q, f"query of level '{level.name}'", SettingError)
            for q, c, level in zip(queries, self.coordinates, self.levels, strict=True)
        ]

    def nodes(self, axis: int, query: Array, smooth: bool = False) -> Indices:
        """Index of the training coordinate that each query coordinate is, or -1: ask the model."""
        coordinates, kernel = self.coordinates[axis], self.levels[axis].kernel
        if smooth:
            return np.full(query.size, -1)
        if query is coordinates:
            return np.arange(query.size)
        near, same = nearest(query, coordinates, kernel.period)
        return np.where(same, near, -1)

    def _data_rows(self, axis: int, nodes: Indices) -> Array | Indices:
        """What gives the data back at nodes: rows of the frame, or plain indices into samples."""
        frame = self.frames[axis]
        return nodes if frame is None else frame[nodes]

    def kernel_rows(self, axis: int, query: Array) -> Array:
        """k(q, c_l) V_l (q, rank): the cross-kernel of (12), (15), (18) in the eigenbasis."""
        kernel, coordinates = self.levels[axis].kernel, self.coordinates[axis]
        return gram(kernel, query, coordinates) @ self.spectra[axis].vectors

    def _to_eigenbasis(self, axis: int) -> Array:
        """V_l' U_l (rank, r_l): from the frame of the data to the eigenbasis of the kernel."""
        vectors, frame = self.spectra[axis].vectors, self.frames[axis]
        return vectors.T if frame is None else vectors.T @ frame

    def _solve(self, axis: int) -> Array:
        """diag(1 / (w_l + lambda_l)) V_l' U_l (rank, r_l): the solve of (20), (21)."""
        values = self.spectra[axis].values + self.levels[axis].ridge
        return self._to_eigenbasis(axis) / values[:, None]

    def _rows(self, axis: int, query: Array, smooth: bool) -> Array | Indices:
        """What answers from the core along one axis: rows (q, r_l), or indices where all pass."""
        nodes = self.nodes(axis, query, smooth)
        known, frame = nodes >= 0, self.frames[axis]
        if known.all():
            return self._data_rows(axis, nodes)
        rows: Array = self.kernel_rows(axis, query) @ self._solve(axis)  # (13), (16), (19)
        if frame is not None:
            rows[known] = frame[nodes[known]]
        else:
            rows[known] = 0.0
            rows[known, nodes[known]] = 1.0
        return rows

    def _coefficients(self, solved: Sequence[bool]) -> Array:
        """The core, the given axes solved for in the eigenbasis of their kernels."""
        axes = range(self.ndim)
        if self.joint_ridge is None:
            solves = [self._solve(axis) if solved[axis] else None for axis in axes]
            return apply(self._centred(), solves)
        coefficients = apply(self._centred(), [self._to_eigenbasis(axis) for axis in axes])
        product = reduce(np.multiply.outer, [spectrum.values for spectrum in self.spectra])
        coefficients /= product + self.joint_ridge
        return coefficients


def fit(
    values: ArrayLike,
    coordinates: Sequence[ArrayLike],
    levels: Sequence[Level],
    *,
    joint_ridge: float | None = None,
    mean: float = 0.0,
    compact: bool = False,
    dtype: DTypeLike = np.float64,
) -> Cascade:
    """Train the cascade on a complete grid.

    Parameters
    ----------
    values
        The data, one axis per level (any order of levels gives the same answers).
    coordinates
        One vector per axis, distinct numbers in any order.
    levels
        Kernel and ridge of every axis.
    joint_ridge
        One ridge over the whole grid instead of a ridge per level.
    mean
        Level to which the answers fall back far from data (the paper's is 0).
    compact
        Where the data spans more than the kernel of a level can express, keep only the latter. The
        model is smaller, its answers at training coordinates lose what went, and ``dropped`` says
        what share of energy that was.
    dtype
        Storage of the core. ``float32`` halves the model and costs 6e-8 of the data's size in
        every answer, more (up to 1/sqrt(ridge) times) where a level is nearly singular.

    Examples
    --------
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> values = np.sin(x)[:, None] * np.cos(d)
    >>> levels = [Level("x", Kernel(sigma=1.0)), Level("d", Kernel(sigma=1.5))]
    >>> model = fit(values, [x, d], levels)
    >>> bool(abs(model.predict([[0.5], [2.5]]) - np.sin(0.5) * np.cos(2.5)) < 1e-7)
    True
    """
    data = checked_values(values)
    axes = checked_coordinates(coordinates, levels, data.shape)
    check_ridges(levels, joint_ridge)
    spectra = spectra_of(axes, levels, joint_ridge, [None] * len(axes))
    if compact:
        spectra = tuple(s if s.triangular else s.expressible() for s in spectra)
    frames, core = _frame(data, spectra, compact, with_constant=mean != 0)
    dropped = _lost_energy(data, core) if compact else 0.0
    shared = np.may_share_memory(core, np.asarray(values))
    stored = np.array(core, dtype, order="C", copy=True if shared else None)
    stored.setflags(write=False)
    return Cascade(tuple(levels), axes, spectra, frames, stored, joint_ridge, dropped, mean)


@dataclass(frozen=True)
class Footprint:
    """What a fit takes: cells, bytes of memory at most, and arithmetic operations at most."""

    cells: int
    memory: int
    operations: float


def footprint(shape: Sequence[int], dtype: DTypeLike = np.float64) -> Footprint:
    """What fitting a grid of this shape and stored type takes, known before it is read."""
    cells = math.prod(shape)
    stored = np.dtype(dtype).itemsize
    arrays = stored + 8 if stored == 8 else stored + 16  # the data, as float64, and the core
    factors = sum(6 * 8 * m * m for m in shape)
    operations = 0.5 * cells * max(shape) + 12.0 * sum(m**3 for m in shape)
    return Footprint(cells, cells * arrays + factors, operations)


def _frame(
    data: Array, spectra: Sequence[Spectrum], compact: bool, with_constant: bool
) -> tuple[tuple[Array | None, ...], Array]:
    """A frame for every axis that has a smaller one, and the data in these frames.

    The longest axis first: what it shrinks, the others need not read. A constant that is to be
    taken out later must lie in every frame.
    """
    frames: list[Array | None] = [None] * data.ndim
    core = data
    for axis in sorted(range(data.ndim), key=lambda a: -data.shape[a]):
        frame = span(core, axis)
        if frame is None and compact and spectra[axis].rank < data.shape[axis]:
            frame = spectra[axis].vectors
        if frame is not None and with_constant:
            frame = np.linalg.qr(np.column_stack([frame, np.ones(len(frame))]))[0]
        if frame is not None:
            frames[axis] = frame
            core = along(core, axis, frame.T)
    return tuple(frames), core


def _lost_energy(data: Array, core: Array) -> float:
    """Share of the sum of squares that the core does not hold."""
    largest = float(np.abs(data).max())
    if largest == 0:
        return 0.0
    whole, held = np.linalg.norm(data / largest), np.linalg.norm(core / largest)
    return max(0.0, 1.0 - float(held / whole) ** 2)
