"""A trained cascade with the meaning of its axes, and its answers on axes and at points."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dkrls_cli.arrays import Array, Mask, Slices, blocks
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars, variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.growing import Growing, Stored
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.tensors import count_points
from dkrls_cli.circle import outside
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.noisy.analysis import Observations
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.grid.axes import Attributes, Axis
from dkrls_cli.grid.cf import by_dimension
from dkrls_cli.grid.grid import std_variable, to_data_array
from dkrls_cli.grid.style import Style
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.poles.planning import KINDS, Poles, extend_axes

if TYPE_CHECKING:
    import xarray as xr

    from dkrls_cli.model.filing.references import Reference

# Cells that are looked at together where the spread of the data is measured: 8 MB.
_SPREAD_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained cascade of a labelled grid, which answers on axes and at numbers.

    Attributes
    ----------
    cascade
        The numbers: levels, spectra and the data in its frames, axes in the order of the data.
    axes
        The meaning of the coordinates, in the order of the data.
    hierarchy
        Names of the dimensions from level 0 to the last level.
    known_bars
        The error bars: see :mod:`dkrls_cli.cascade.errorbars`, and :mod:`dkrls_cli.gaps.bars` for
        grids with missing cells. None: they are calibrated when first asked for.
    name, attrs, style
        Name and attributes of the variable, and how its file stores it.
    origin
        Where the model comes from: inputs, options, versions.
    filled
        Cells that were missing in slices added later, under a ridge per level; or None.
    store
        Storage of the slices of a model that grows, see :mod:`dkrls_cli.cascade.growing`.
    known_coverage
        The grid of the data, whole, and its cells without data: see
        :mod:`dkrls_cli.model.answering.coverage`. None: all cells of the training grid have data.
    bounds
        The least and the largest value of an answer, or None.
    poles
        Rows of the cascade that go on across the poles, or None: see
        :mod:`dkrls_cli.cascade.poles.continuation`. They are no part of the axes.
    cell_means
        Dimensions along which the data are means over cells, and not values at coordinates.
    reference
        Where the data is, if the model holds none: see :mod:`dkrls_cli.model.filing.references`.
    """

    cascade: Cascade
    axes: tuple[Axis, ...]
    hierarchy: tuple[str, ...]
    known_bars: Bars | None
    name: str = "values"
    attrs: Attributes = field(default_factory=dict)
    style: Style = field(default_factory=Style)
    origin: Attributes = field(default_factory=dict)
    filled: Mask | None = None
    store: Stored | None = None
    known_coverage: Coverage | None = None
    bounds: Bounds | None = None
    poles: Continuation | None = None
    cell_means: tuple[str, ...] = ()
    reference: Reference | None = None

    @cached_property
    def coverage(self) -> Coverage:
        """The grid that the model was fitted to, whole, and its cells without data."""
        if self.known_coverage is not None:
            return self.known_coverage
        return Coverage(self.axes, np.zeros((1,) * len(self.axes), bool))

    @cached_property
    def _calibrated(self) -> Bars:
        """The error bars, without those of filled cells."""
        known = self.known_bars
        return calibrate(self.cascade, self.poles) if known is None else known

    @property
    def bars(self) -> Bars:
        """The error bars, calibrated when first asked for."""
        bars, filled = self._calibrated, self.filled
        return bars if filled is None else bars.with_unobserved(filled, self.grows)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, in the order of the data."""
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions, in the order of the data."""
        return tuple(axis.size for axis in self.axes)

    @property
    def across_poles(self) -> Poles:
        """How the field goes on across the poles: ``scalar``, ``vector`` or ``none``."""
        return "none" if self.poles is None else KINDS[self.poles.sign]

    @property
    def trained_axes(self) -> tuple[Axis, ...]:
        """The axes of the cascade: with the latitudes of rows that go on across the poles."""
        return self.axes if self.poles is None else extend_axes(self.axes, self.poles)

    def cut(self, values: Array) -> Array:
        """Return values on the grid of the cascade without rows that go on across the poles."""
        return values if self.poles is None else self.poles.cut(values)

    def extend(self, values: Array) -> Array:
        """Return values on the grid with rows that go on across the poles, if the cascade has some.

        They are NaN where cells are missing.
        """
        return values if self.poles is None else np.asarray(self.poles.extend(values), np.float64)

    @property
    def joint_ridge(self) -> float | None:
        """The one ridge of the whole grid, or None for a ridge per level."""
        return self.cascade.joint_ridge

    @property
    def dropped(self) -> float:
        """Share of the data's energy that a compact model left out."""
        return self.cascade.dropped

    @property
    def storage(self) -> str:
        """Type in which the data is stored: float64 or float32; or ``reference``."""
        return "reference" if self.reference is not None else str(self.cascade.storage.name)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of directions of every kernel that answers use, in the order of the data."""
        return tuple(self.cascade.factor(axis).rank for axis in range(self.cascade.ndim))

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Number of directions of the data that are stored, in the order of the data."""
        sizes, rows = list(self.cascade.core.shape), self.poles
        if rows is not None and self.cascade.frames[rows.latitude] is None:
            sizes[rows.latitude] -= rows.rows
        return tuple(sizes)

    @property
    def grows(self) -> int:
        """Index of the dimension that grows: that of the last level."""
        return self.dims.index(self.hierarchy[-1])

    @property
    def unobserved(self) -> Mask | None:
        """Which cells were missing, in the shape of the grid; None if none was."""
        missing = self.trained_unobserved
        return missing if missing is None or self.poles is None else self.poles.cut(missing)

    @property
    def trained_unobserved(self) -> Mask | None:
        """Which cells of the cascade were missing; None if none was."""
        known = self.known_bars
        return self.filled if known is None or known.unobserved is None else known.unobserved

    @property
    def observations(self) -> Observations | None:
        """The observations and their errors, in the shape of the grid; None if they have none."""
        return self.known_bars.observations if isinstance(self.known_bars, NoisyBars) else None

    @property
    def errors(self) -> tuple[float, ...]:
        """Root mean square error per axis on slices left out, or on cells under a joint ridge."""
        return tuple(np.broadcast_to(self.bars.errors, len(self.axes)).tolist())

    @property
    def spread(self) -> float:
        """Standard deviation of the data, missing cells aside; memory does not grow with it.

        NaN for a model that refers to its data, which is not read for it.
        """
        if self.cascade.is_stand_in:
            return math.nan
        if self.observations is not None:
            return float(np.nanstd(self.observations.values))
        numbers, missing = [axis.numbers for axis in self.axes], self.unobserved
        if missing is None and any(frame is not None for frame in self.cascade.frames):
            kept = [slice(None)] * len(self.axes)
            if self.poles is not None:
                place = self.poles.latitude
                kept[place] = self.poles.inner(self.cascade.shape[place])
            return self.cascade.spread(kept)
        count, mean, squares = 0, 0.0, 0.0
        for part, block in self.cascade.predict_blocks(numbers, _SPREAD_BLOCK):
            known = block if missing is None else block[~missing[part]]
            if known.size:
                step = float(known.mean()) - mean
                share = known.size / (count + known.size)
                squares += float(known.var()) * known.size + step**2 * count * share
                mean, count = mean + step * share, count + known.size
        return math.sqrt(squares / count) if count else math.nan

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels, from level 0 to the last."""
        return tuple(self.cascade.levels[self.dims.index(name)] for name in self.hierarchy)

    def axis_of(self, dim: str) -> Axis:
        """Return the axis of a dimension."""
        return self.axes[self.dims.index(dim)]

    def level_of(self, dim: str) -> Level:
        """Return the level of a dimension."""
        return self.cascade.levels[self.dims.index(dim)]

    def std_variable(self) -> tuple[str, dict[str, Any]]:
        """Return name and attributes of the standard error, after the CF conventions."""
        return std_variable(self.name, self.attrs)

    @property
    def is_labelled(self) -> bool:
        """Whether names, units or dates came with the data: it was no array of plain numbers."""
        marked = any(axis.attrs or axis.time or axis.labels for axis in self.axes)
        return marked or bool(self.attrs) or self.name != "values"

    def variance(self, queries: Sequence[Array], *, smooth: bool = False) -> Array:
        """Return the variance of the answers on the product grid of these numbers, bounds aside."""
        return variance_on_grid(self.bars, self.cascade, queries, smooth=smooth)

    def values_on(self, axes: Sequence[Axis], *, smooth: bool = False) -> Array:
        """Return the answers on the product grid of axes that :meth:`axes_at` returned."""
        return self._clip(self.cascade.predict(self.queries(axes), smooth=smooth))

    def std_on(self, axes: Sequence[Axis], *, smooth: bool = False) -> Array:
        """Return the standard errors of :meth:`values_on`."""
        queries = self.queries(axes)
        std = np.sqrt(self.variance(queries, smooth=smooth))
        if self.bounds is None:
            return std
        return self.bounds.spread(self.cascade.predict(queries, smooth=smooth), std)

    def blocks_on(
        self, axes: Sequence[Axis], cells: int, *, std: bool = False, smooth: bool = False
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers of :meth:`values_on` in C order, in blocks of about `cells` cells.

        Each block is its slices, its answers, and its standard errors or None without `std`.
        """
        queries = self.queries(axes)
        variance = self.bars.variance_blocks(self.cascade, queries, smooth=smooth) if std else None
        for part, values in self.cascade.predict_blocks(queries, cells, smooth=smooth):
            errors = None if variance is None else np.sqrt(variance(part))
            if errors is not None and self.bounds is not None:
                errors = self.bounds.spread(values, errors)
            yield part, self._clip(values), errors

    def values_at(
        self, points: Sequence[Array], *, spread: Collection[int] = (), smooth: bool = False
    ) -> Array:
        """Return the answers at scattered points, given as the numbers of every axis.

        Axes in `spread`, by their index, are no part of the points: every point is answered at each
        of the numbers of those axes, and the answers have an axis for each of them after that of
        the points.
        """
        return self._clip(self.cascade.predict_points(points, spread=spread, smooth=smooth))

    def std_at(
        self, points: Sequence[Array], *, spread: Collection[int] = (), smooth: bool = False
    ) -> Array:
        """Return the standard errors of :meth:`values_at`."""
        variance = self.bars.variance_at_points(self.cascade, points, spread=spread, smooth=smooth)
        if self.bounds is None:
            return np.sqrt(variance)
        free = self.cascade.predict_points(points, spread=spread, smooth=smooth)
        return self.bounds.spread(free, np.sqrt(variance))

    def _clip(self, values: Array) -> Array:
        """Return answers within the bounds."""
        return values if self.bounds is None else self.bounds.clip(values)

    def blocks_at(
        self,
        points: Sequence[Array],
        cells: int,
        *,
        spread: Collection[int] = (),
        std: bool = False,
        smooth: bool = False,
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers of :meth:`values_at` in C order, in blocks of about `cells` cells.

        Each block is its slices, of the points and of every axis in `spread`; its answers; and its
        standard errors or None without `std`.
        """
        order = sorted(spread)
        shape = (count_points(points, spread), *(points[axis].size for axis in order))
        whole = tuple(slice(0, size) for size in shape)
        for part in blocks(shape, cells) if math.prod(shape) else [whole]:
            own = dict(zip(order, part[1:], strict=True))
            some = [numbers[own.get(axis, part[0])] for axis, numbers in enumerate(points)]
            values = self.values_at(some, spread=spread, smooth=smooth)
            yield part, values, self.std_at(some, spread=spread, smooth=smooth) if std else None

    def outside(self, axes: Sequence[Axis]) -> list[Mask]:
        """Return, for every axis, which coordinates lie beyond the training coordinates."""
        return [
            outside(axis.numbers, known, level.kernel.period)
            for axis, known, level in zip(axes, self.ranges, self.cascade.levels, strict=True)
        ]

    @property
    def ranges(self) -> tuple[Array, ...]:
        """Numbers on every axis between the least and the largest of which nothing is outside.

        They are the training coordinates, and the poles that the field goes on across.
        """
        known = [axis.numbers for axis in self.axes]
        if self.poles is not None:
            known[self.poles.latitude] = self.poles.reach(known[self.poles.latitude])
        return tuple(known)

    def weights(self, depth: int) -> xr.DataArray:
        """Return the paper's weights after levels 0 to `depth` - 1 (1: Initial Modeling).

        Rows that go on across the poles have weights as well, at latitudes beyond 90 degrees.
        """
        if not 1 <= depth <= len(self.hierarchy):
            raise SettingError(f"Invalid depth {depth}. It must be 1 to {len(self.hierarchy)}.")
        solved = [self.dims.index(name) for name in self.hierarchy[:depth]]
        values = self.cascade.weights(solved)
        label = f"weights of '{self.name}' after {', '.join(self.hierarchy[:depth])}"
        return to_data_array(values, self.trained_axes, f"weights_{depth}", {"long_name": label})

    def axes_at(self, at: Mapping[str, Any]) -> list[Axis]:
        """Return the axes at the given coordinates.

        A dimension that is not named has the coordinates of the data, also those without data.
        """
        known = by_dimension(at, self.axes, "model")
        return [
            axis.at(known[axis.name]) if axis.name in known else _whole_axis(axis, whole)
            for axis, whole in zip(self.axes, self.coverage.axes, strict=True)
        ]

    def queries(self, axes: Sequence[Axis]) -> list[Array]:
        """Return the numbers to ask the cascade for on these axes."""
        return [
            known if axis.numbers is own.numbers and axis.size == known.size else axis.numbers
            for axis, own, known in zip(axes, self.axes, self.cascade.coordinates, strict=True)
        ]

    @property
    def growing(self) -> Growing:
        """The cascade, the axis along which it grows, and the store of its slices."""
        self.cascade.refuse_stand_in()
        return Growing(self.cascade, self.grows, self.store)

    @property
    def calibrated_bars(self) -> Bars:
        """The error bars without those of filled cells, as a model file stores them."""
        return self._calibrated


def _whole_axis(own: Axis, whole: Axis) -> Axis:
    """Return the whole axis of the data, its longitudes counted as those of the model are.

    A longitude that is there twice, one turn apart, is the same place.
    """
    return whole if own.turn is None or own.size == whole.size else own.at(whole.plain)
