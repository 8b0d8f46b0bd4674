"""The trained D-KRLS cascade on plain arrays: answers on grids and at points, and weights.

Notation, as in the paper: level l has coordinates c_l (m_l of them), Gram matrix K_l, ridge
lambda_l, C_l = K_l + lambda_l I. Training solves with C_l along axis l, one level after another
(20, 21; Algorithm 1), so the whole is one solve with the Kronecker product of the C_l and the
order of the levels does not matter to the answers.

The weights themselves are never worked with: they grow like the product of the 1/lambda_l and
lose every digit on smooth data. Kept instead are the data, each axis in a basis U_l of what the
data spans along it (a *frame*; None: the samples themselves), and the spectrum
K_l = V_l diag(w_l) V_l'. An answer applies k(q, c_l) V_l diag(1 / (w_l + lambda_l)) V_l' U_l
along every axis, which in exact arithmetic is (12) to (19). All factors are bounded by the data.

With a joint ridge lambda, 1 / (prod w_l + lambda) takes the place of prod 1 / (w_l + lambda_l):
kernel ridge regression (one-layer KRLS) over all samples of the grid at once, exactly.

Pass-through
------------
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array, Indices, Mask, Slices, Tensor, blocks, vector_of
from dkrls_cli.cascade.chebyshev import resolve
from dkrls_cli.cascade.factors.levels import AnyFactor, express, make_factor, make_joint_factors
from dkrls_cli.cascade.factors.long import LongFactor, LongRows, LongSmoother
from dkrls_cli.cascade.kernels import SPLINE_RIDGE, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.panels import Curve, contract_points
from dkrls_cli.cascade.solvers import JointSolver, LevelSolver, Solver
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.cascade.splines.points import LocalRows, contract_local, is_within_reach
from dkrls_cli.cascade.tensors import Operator, Rows, apply, contract, count_points
from dkrls_cli.circle import nearest, wrap
from dkrls_cli.errors import InputError, SettingError

# Points answered at once: what is known of each takes up to some hundred megabytes.
_POINTS_AT_ONCE = 2**19

# Length scales along an axis up to which the rounding of coordinates is no more than that of the
# kernel: a coordinate is rounded by an epsilon of its distance from the middle.
_CALM = 32

# Largest round-off of rows that is allowed for: on longer axes points have rows of their own.
_NOISIEST = 1e3


@dataclass(frozen=True, eq=False)
class Cascade:
    """A trained model: levels, their coordinates and spectra, and the data in its frames.

    Attributes
    ----------
    levels, coordinates
        One per axis of the data.
    factors
        The factors that are known; the others (None) are computed when first needed.
    frames
        U_l (m_l, r_l), or None where the axis is kept in samples.
    core
        The data with U_l' applied along every framed axis.
    joint_ridge
        The one ridge of the whole grid, or None for a ridge per level.
    dropped
        Share of the data's energy that ``compact`` left out.
    mean
        Value to which answers fall back far from data: taken out before the solve, added after.
    compact
        Whether the model works only with directions that the kernels can express.
    exact
        Whether a core of single precision holds the data exactly, to save memory: new data need
        not be rounded to it.
    """

    levels: tuple[Level, ...]
    coordinates: tuple[Array, ...]
    factors: tuple[AnyFactor | None, ...]
    frames: tuple[Array | None, ...]
    core: Tensor
    joint_ridge: float | None = None
    dropped: float = 0.0
    mean: float = 0.0
    compact: bool = False
    exact: bool = False

    @property
    def storage(self) -> np.dtype[Any]:
        """Type to which data is rounded: that of the core, unless this holds the data exactly."""
        return np.dtype(np.float64) if self.exact else self.core.dtype

    def widen(self) -> Cascade:
        """Return the cascade with its core in the type that data is rounded to."""
        core: Tensor = self.core.astype(self.storage)
        core.setflags(write=False)
        return replace(self, core=core, exact=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the training grid."""
        return tuple(c.size for c in self.coordinates)

    @property
    def ndim(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @cached_property
    def _made(self) -> dict[int, AnyFactor]:
        """The factors that have been computed so far, by axis."""
        return {}

    def factor(self, axis: int) -> AnyFactor:
        """Return the factor of a level: its spectrum, or the factor of a long level."""
        if axis in self._made:
            return self._made[axis]
        if self.joint_ridge is None:
            known = self.factors[axis]
            made = {axis: make_factor(self.coordinates[axis], self.levels[axis], known)}
        else:
            joint = make_joint_factors(
                self.coordinates, self.levels, self.joint_ridge, self.factors
            )
            made = dict(enumerate(joint))
        self._made.update({a: express(f) if self.compact else f for a, f in made.items()})
        return self._made[axis]

    def spectrum(self, axis: int) -> Spectrum:
        """Return the spectrum of a level that is not long."""
        found = self.factor(axis)
        assert isinstance(found, Spectrum)
        return found

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        """The spectrum of every level of a cascade that has no long ones."""
        return tuple(self.spectrum(axis) for axis in range(self.ndim))

    @cached_property
    def covariance(self) -> Cascade:
        """The same data with the covariance of its errors in place of every spline.

        Splines answer, but have no covariance of their own: error bars come from here.
        """
        splines = [level.kernel.is_spline for level in self.levels]
        if not any(splines):
            return self
        return replace(
            self,
            levels=tuple(
                replace(level, kernel=level.kernel.covariance, ridge=SPLINE_RIDGE) if yes else level
                for level, yes in zip(self.levels, splines, strict=True)
            ),
            factors=tuple(
                None if yes else self.known_factor(axis) for axis, yes in enumerate(splines)
            ),
        )

    def is_long(self, axis: int) -> bool:
        """Return whether a level is long: its rows are an operator, and not a matrix."""
        return isinstance(self.factor(axis), LongFactor)

    @property
    def is_stand_in(self) -> bool:
        """Whether the core is one number for all cells, and the data is somewhere else."""
        return self.core.size > 1 and not any(self.core.strides)

    def refuse_stand_in(self) -> None:
        """Raise InputError if there are no values to answer from."""
        if self.is_stand_in:
            raise InputError(
                "The model refers to its data and holds no values itself: they have to be read "
                "part by part, from where they are stored."
            )

    @property
    def solver(self) -> Solver:
        """The solver of this kind of ridge."""
        self.refuse_stand_in()
        return (
            LevelSolver(self) if self.joint_ridge is None else JointSolver(self, self.joint_ridge)
        )

    def known_factor(self, axis: int) -> AnyFactor | None:
        """Return the factor of a level if it has been computed by now."""
        return self._made.get(axis, self.factors[axis])

    def predict(
        self, queries: Sequence[ArrayLike | None] | None = None, *, smooth: bool = False
    ) -> Array:
        """Return the answers on the product grid of one query vector per axis.

        None as a query vector means the training coordinates of its axis.

        Examples
        --------
        >>> from dkrls_cli.cascade.fit import fit_cascade
        >>> from dkrls_cli.cascade.kernels import Kernel
        >>> x = np.linspace(0.0, 6.0, 25)
        >>> model = fit_cascade(np.sin(x), [x], [Level("x", Kernel("gaussian", sigma=1.5))])
        >>> model.predict([[1.1, 2.2]]).round(6)
        array([0.891207, 0.808496])
        """
        vectors = self._queries(queries if queries is not None else [None] * self.ndim)
        whole = tuple(slice(0, vector.size) for vector in vectors)
        return self.solver.answer_blocks(vectors, smooth)(whole)

    def predict_blocks(
        self, queries: Sequence[ArrayLike | None], cells: int, *, smooth: bool = False
    ) -> Iterator[tuple[Slices, Array]]:
        """Yield the answers of :meth:`predict` in C order, in blocks of about `cells` cells."""
        vectors = self._queries(queries)
        answer = self.solver.answer_blocks(vectors, smooth)
        for part in blocks([vector.size for vector in vectors], cells):
            yield part, answer(part)

    def predict_points(
        self, points: Sequence[ArrayLike], *, spread: Collection[int] = (), smooth: bool = False
    ) -> Array:
        """Return the answers at N scattered points, given as one vector of N numbers per axis.

        Axes in `spread` are no part of the points: every point is answered at each of the numbers
        of those axes, and the answers have shape (N, numbers of the first of them, ...). Memory
        beyond points and answers does not grow with N.

        Examples
        --------
        >>> from dkrls_cli.cascade.fit import fit_cascade
        >>> from dkrls_cli.cascade.kernels import Kernel
        >>> axes = [np.linspace(0.0, 6.0, 25)] * 3
        >>> levels = [Level(name, Kernel("gaussian", sigma=1.5)) for name in "xyt"]
        >>> model = fit_cascade(np.ones((25, 25, 25)), axes, levels)
        >>> model.predict_points([[1.1, 2.2], [0.3, 0.4], [1.0, 2.0, 3.0]], spread=[2]).shape
        (2, 3)
        """
        vectors = self._queries(points)
        own = [vector for axis, vector in enumerate(vectors) if axis not in spread]
        if len({vector.size for vector in own}) != 1:
            sizes = ", ".join(str(vector.size) for vector in own) or "none"
            raise SettingError(f"Points need equally many coordinates per axis, got {sizes}.")
        answers = np.empty((own[0].size, *(vectors[axis].size for axis in sorted(spread))))
        for start in range(0, len(answers), _POINTS_AT_ONCE):
            part = slice(start, start + _POINTS_AT_ONCE)
            some = [v if axis in spread else v[part] for axis, v in enumerate(vectors)]
            answers[part] = self._answer_points(some, spread, smooth)
        return answers

    def _answer_points(
        self, queries: Sequence[Array], spread: Collection[int], smooth: bool
    ) -> Array:
        """Return the answers at points, in groups that pass through the same axes."""
        nodes = [self.find_nodes(axis, query, smooth) for axis, query in enumerate(queries)]
        count = count_points(queries, spread)
        at_node = [
            np.zeros(count, bool) if axis in spread else found >= 0
            for axis, found in enumerate(nodes)
        ]
        passed = self.solver.pass_through(np.stack(at_node))  # (axes, points)
        local = self._are_local(queries, passed, spread)
        patterns = np.left_shift(1, np.arange(len(nodes) + 1)) @ np.vstack([passed, local])
        operators = {axis: self.solver.spread_rows(axis, queries[axis], smooth) for axis in spread}
        answers = np.empty((count, *(queries[axis].size for axis in sorted(spread))))
        for pattern in np.unique(patterns):
            here = np.flatnonzero(patterns == pattern)
            some = [q if axis in spread else q[here] for axis, q in enumerate(queries)]
            known = [n if axis in spread else n[here] for axis, n in enumerate(nodes)]
            group = passed[:, here[0]].tolist()
            if local[here[0]] and here.size >= sum(self.shape):
                answers[here] = self._answer_locally(group, some, known)
            else:
                answers[here] = self._answer_group(group, some, known, operators)
        if spread and self.joint_ridge is not None:
            self._answer_cells(answers, nodes, spread)
        return answers

    def _answer_group(
        self,
        passed: Sequence[bool],
        queries: Sequence[Array],
        nodes: Sequence[Indices],
        spread: Mapping[int, Array | Indices | Rows],
    ) -> Array:
        """Return the answers at points that all pass through the same axes.

        An axis is solved for in the tensor where that makes it shorter, else in the rows; those in
        `spread` come with rows that the solver made.
        """
        solved = [
            self.joint_ridge is not None
            if axis in spread
            else not p and self.solver.solves_tensor(axis)
            for axis, p in enumerate(passed)
        ]
        between = [a for a in range(self.ndim) if not passed[a] and a not in spread]
        long = next((axis for axis in between if solved[axis] and self.is_long(axis)), None)
        if long is not None:  # with a ridge of its own it is solved for when its turn comes
            solved[long] = self.joint_ridge is not None
        make_rows = cache(lambda axis: self._row_maker(axis, queries[axis], solved[axis]))

        def rows(axis: int, part: slice | Indices) -> Array:
            if axis in between:
                return make_rows(axis)(queries[axis][part])
            return self._frame_rows(axis, nodes[axis][part])

        looked_up = {a: nodes[a] for a, p in enumerate(passed) if p and self.frames[a] is None}
        widest = max(self.shape)
        count = count_points(queries, spread)
        if not between and not any(solved) and all((nodes[axis] >= 0).all() for axis in spread):
            return contract(self.core, count, rows, looked_up, widest, spread)
        tensor = self.solver.coefficients(solved) if any(solved) else self.centred_core()
        if any(self.is_long(axis) for axis in between):
            leading = None if long is None else (long, partial(self._lead, long, queries[long]))
            return contract(tensor, count, rows, looked_up, widest, spread, leading) + self.mean
        curves = {axis: self.curve(axis, queries[axis], solved[axis]) for axis in between}
        return contract_points(tensor, count, rows, looked_up, widest, spread, curves) + self.mean

    def _are_local(self, queries: Sequence[Array], passed: Mask, spread: Collection[int]) -> Mask:
        """Return which points take few numbers per axis: those of splines, within their reach."""
        local = np.full(passed.shape[1], not spread and all(f is None for f in self.frames))
        for axis, (level, at_node) in enumerate(zip(self.levels, passed, strict=True)):
            kernel = level.kernel
            if local.any() and kernel.is_spline:
                nodes = kernel.warped(self.coordinates[axis])
                local &= at_node | is_within_reach(nodes, kernel.warped(queries[axis]))
            else:
                local &= at_node
        return local

    def _answer_locally(
        self, passed: Sequence[bool], queries: Sequence[Array], nodes: Sequence[Indices]
    ) -> Array:
        """Return the answers at points that take few numbers per axis.

        They are answered by the B-splines beside them.
        """
        rows = [
            LocalRows.at_nodes(found) if p else self._local_rows(axis, query)
            for axis, (p, query, found) in enumerate(zip(passed, queries, nodes, strict=True))
        ]
        if all(own.coefficients is None for own in rows):  # they sum to 1
            self.refuse_stand_in()
            return contract_local(self.core, rows)
        return contract_local(self.centred_core(), rows) + self.mean

    def _local_rows(self, axis: int, query: Array) -> LocalRows:
        kernel = self.levels[axis].kernel
        nodes = kernel.warped(self.coordinates[axis])
        return LocalRows.of_splines(kernel.family, kernel.pieces, nodes, kernel.warped(query))

    def _lead(self, axis: int, query: Array, fibres: Array) -> Callable[[slice], Array]:
        """Return a function that answers some of the points along a long axis.

        The fibres are data, or weights under a joint ridge.
        """
        factor = self.factor(axis)
        assert isinstance(factor, LongFactor)
        frame = self.frames[axis]
        if self.joint_ridge is None:
            fibres = factor.solve(fibres if frame is None else frame @ fibres)
        answer = factor.prepare(fibres)
        return lambda part: answer(query[part])

    def _answer_cells(
        self, answers: Array, nodes: Sequence[Indices], spread: Collection[int]
    ) -> None:
        """Replace answers at training cells by the data: a joint ridge passes cell by cell."""
        own = [axis for axis in range(self.ndim) if axis not in spread]
        points = np.flatnonzero(np.all([nodes[axis] >= 0 for axis in own], axis=0))
        places = [np.flatnonzero(nodes[axis] >= 0) for axis in sorted(spread)]
        if not points.size:
            return
        here = {axis: nodes[axis][points] for axis in own}
        data = {
            axis: self.data_rows(axis, n[n >= 0]) for axis, n in enumerate(nodes) if axis in spread
        }
        looked_up = {axis: here[axis] for axis in own if self.frames[axis] is None}

        def rows(axis: int, part: slice) -> Array:
            return self._frame_rows(axis, here[axis][part])

        cells = contract(self.core, points.size, rows, looked_up, max(self.shape), data)
        answers[np.ix_(points, *places)] = cells

    def _frame_rows(self, axis: int, nodes: Indices) -> Array:
        frame = self.frames[axis]
        assert frame is not None  # else the axis is looked up
        return frame[nodes]

    def curve(self, axis: int, queries: Array, solved: bool) -> Curve:
        """Return the rows between coordinates of an axis as a function of the coordinate."""
        whole = self.levels[axis].kernel
        kernel, coordinates = whole.unwarped, whole.warped(self.coordinates[axis])
        vectors = self.spectrum(axis).vectors
        with np.errstate(over="ignore"):
            length = np.ptp(coordinates) / kernel.sigma
        return Curve(
            lambda query: gram(kernel, query, coordinates),
            (vectors,) if solved else (vectors, self.solve_rows(axis)),
            coordinates,
            kernel.family != "gaussian",
            kernel.period,
            whole.warped(queries),
            noise=float(np.clip(length / _CALM, 1.0, _NOISIEST)),
        )

    def _row_maker(self, axis: int, queries: Array, solved: bool) -> Callable[[Array], Array]:
        """Return a function from coordinates to rows: the kernel, or its series for many points."""
        if self.is_long(axis):
            return partial(self._model_rows, axis)
        solve = None if solved else self.solve_rows(axis)

        def rows(query: Array) -> Array:
            kernel_rows = self.kernel_rows(axis, query)
            return kernel_rows if solve is None else kernel_rows @ solve

        if queries.size < 4 * self.shape[axis] or self.levels[axis].kernel.is_spline:
            return rows
        low, high, period = queries.min(), queries.max(), self.levels[axis].kernel.period
        nodes = self.coordinates[axis]
        peaks = nodes if period is None else low + wrap(nodes - low, period)
        function = partial(self.kernel_rows, axis)
        series = resolve(function, low, high, limit=self.shape[axis], peaks=peaks)
        if series is None:
            return rows
        return series if solve is None else series @ solve

    def weights(self, solved: Iterable[int]) -> Array:
        """Return the paper's weights after the levels of the given axes, in sample space.

        With one axis this is alpha^1 of (20), with two alpha^2 of (21), and so on; with all of
        them the record of Algorithm 1. Under a joint ridge there is one layer, and so all axes
        must be given. Directions that no ridge lifts above round-off take no part, as in a
        pseudo-inverse.
        """
        axes = sorted(set(solved))
        if not set(axes) <= set(range(self.ndim)):
            raise SettingError(f"Invalid axes {axes}. The model has axes 0 to {self.ndim - 1}.")
        return self.solver.weights(axes)

    def centred_core(self) -> Tensor:
        """Return the core of the data less its mean."""
        self.refuse_stand_in()
        if self.mean == 0:
            return self.core
        if not any(frame is not None for frame in self.frames):
            return np.subtract(self.core, self.mean, dtype=np.float64)
        ones = [
            np.ones(m) if f is None else f.sum(axis=0)
            for m, f in zip(self.shape, self.frames, strict=True)
        ]
        return np.asarray(self.core - self.mean * reduce(np.multiply.outer, ones))

    def spread(self, kept: Sequence[slice]) -> float:
        """Return the standard deviation of the data at some coordinates of every axis.

        It comes from the core: with U_l the kept rows of the frames, the sum of squares of the data
        is the inner product of the core and U_l' U_l applied to it along every axis.
        """
        core = np.asarray(self.centred_core(), np.float64)
        for axis, part in enumerate(kept):
            if self.frames[axis] is None:
                core = core[(slice(None),) * axis + (part,)]
        rows = [None if f is None else f[part] for f, part in zip(self.frames, kept, strict=True)]
        squares = np.vdot(core, apply(core, [None if u is None else u.T @ u for u in rows]))
        ones = [
            np.ones((1, m)) if u is None else u.sum(axis=0)[None]
            for u, m in zip(rows, core.shape, strict=True)
        ]
        sizes = [m if u is None else len(u) for u, m in zip(rows, core.shape, strict=True)]
        mean = float(apply(core, ones).item()) / math.prod(sizes)
        return math.sqrt(max(0.0, float(squares) / math.prod(sizes) - mean**2))

    def apply_centred(self, operators: Sequence[Operator]) -> Array:
        """Return the data less its mean with operators applied; no copy is made of a large core."""
        if any(frame is not None for frame in self.frames):
            return apply(self.centred_core(), operators)
        return apply(self.core, operators, self.mean)

    def _queries(self, queries: Sequence[ArrayLike | None]) -> list[Array]:
        """Return one vector of numbers per axis, or raise SettingError."""
        if len(queries) != self.ndim:
            raise SettingError(f"Expected one query per level ({self.ndim}), got {len(queries)}.")
        return [
            c if q is None else vector_of(q, f"query of level '{level.name}'", SettingError)
            for q, c, level in zip(queries, self.coordinates, self.levels, strict=True)
        ]

    def find_nodes(self, axis: int, query: Array, smooth: bool = False) -> Indices:
        """Return the index of the training coordinate at each query coordinate, or -1.

        With `smooth` all are -1: the model is asked at training coordinates as well.
        """
        coordinates, kernel = self.coordinates[axis], self.levels[axis].kernel
        if smooth:
            return np.full(query.size, -1)
        if query is coordinates:
            return np.arange(query.size)
        near, same = nearest(query, coordinates, kernel.period)
        return np.where(same, near, -1)

    def data_rows(self, axis: int, nodes: Indices) -> Array | Indices:
        """Return the operator that reads the data at nodes: rows of the frame, or the indices."""
        frame = self.frames[axis]
        return nodes if frame is None else frame[nodes]

    def kernel_rows(self, axis: int, query: Array) -> Array:
        """Return k(q, c_l) V_l (q, rank), the cross-kernel of (12), (15), (18) in eigenbasis."""
        kernel, coordinates = self.levels[axis].kernel, self.coordinates[axis]
        return gram(kernel, query, coordinates) @ self.spectrum(axis).vectors

    def cross_rows(self, axis: int, query: Array) -> Array | LongRows:
        """Return the cross-kernel of a level, in its eigenbasis or, of a long one, in samples."""
        factor = self.factor(axis)
        return (
            factor.rows(query) if isinstance(factor, LongFactor) else self.kernel_rows(axis, query)
        )

    def to_eigenbasis(self, axis: int) -> Array:
        """Return V_l' U_l (rank, r_l): from the frame of the data to the kernel's eigenbasis."""
        vectors, frame = self.spectrum(axis).vectors, self.frames[axis]
        return vectors.T if frame is None else vectors.T @ frame

    def solve_rows(self, axis: int) -> Array:
        """Return diag(1 / (w_l + lambda_l)) V_l' U_l (rank, r_l): the solve of (20), (21)."""
        values = self.spectrum(axis).values + self.levels[axis].ridge
        return self.to_eigenbasis(axis) / values[:, None]

    def answer_rows(self, axis: int, query: Array, smooth: bool) -> Array | Indices | Rows:
        """Return the rows (q, r_l) that answer from the core along one axis.

        Where every query coordinate is a training coordinate these are plain indices if the axis
        is kept in samples.
        """
        nodes = self.find_nodes(axis, query, smooth)
        known, frame = nodes >= 0, self.frames[axis]
        if known.all():
            return self.data_rows(axis, nodes)
        factor = self.factor(axis)
        if isinstance(factor, LongFactor) and frame is None:
            return LongSmoother(factor, query, nodes)
        rows = self._model_rows(axis, query)
        if frame is not None:
            rows[known] = frame[nodes[known]]
        else:
            rows[known] = 0.0
            rows[known, nodes[known]] = 1.0
        return rows

    def _model_rows(self, axis: int, query: Array) -> Array:
        """Return the rows (q, r_l) of the model along one axis: (13), (16), (19)."""
        factor, frame = self.factor(axis), self.frames[axis]
        kernel, coordinates = self.levels[axis].kernel, self.coordinates[axis]
        if kernel.is_spline:
            rows = gram(kernel, query, coordinates)
            return rows if frame is None else rows @ frame
        if isinstance(factor, Spectrum):
            return self.kernel_rows(axis, query) @ self.solve_rows(axis)
        if frame is not None:
            return factor.answer(query, factor.solve(frame))
        return factor.solve(gram(kernel, coordinates, query)).T
