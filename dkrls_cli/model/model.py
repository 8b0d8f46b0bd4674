"""The model that users hold: a cascade with the names, units and origin of its data."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array, Mask, Slices, blocks
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Bars, calibrate, variance_on_grid
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
from dkrls_cli.grid.grid import (
    STATION,
    ErrorLike,
    Grid,
    as_grid,
    ensemble_variable,
    station_array,
    std_variable,
    to_data_array,
)
from dkrls_cli.grid.style import Style
from dkrls_cli.model.answering.answers import (
    Land,
    Outside,
    PointQuery,
    Query,
    Rules,
    ask,
    ask_points,
)
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.answering.coverage import Coverage, coverage_of
from dkrls_cli.model.answering.ensembles import ensemble_array, iterate_arrays, stack_members
from dkrls_cli.model.answering.questions import MeanLike, Question, read_question
from dkrls_cli.model.answering.regions import RegionLike, ask_region
from dkrls_cli.model.answering.targets import (
    LabelledPoints,
    PointsLike,
    read_points,
    target_coordinates,
)
from dkrls_cli.model.poles.planning import KINDS, Poles, extend_axes

if TYPE_CHECKING:
    import xarray as xr

    from dkrls_cli.model.filing.references import Reference

OBS_ERRORS = "observation_errors"
"""Key of the origin of a model of observations with errors: how large, and where they come from."""

# Cells that are looked at together where the spread of the data is measured: 8 MB.
_SPREAD_BLOCK = 2**20

Asked = TypeVar("Asked", Query, PointQuery)

MaskLike: TypeAlias = "Land | xr.DataArray | Grid"
"""Cells without an answer: the name of a rule, or a mask with labels."""


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model of a labelled grid.

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

    def __repr__(self) -> str:
        """Return one line: the variable, its dimensions, kernels and errors."""
        from dkrls_cli.model.notebook.text import model_line

        return model_line(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the levels, the errors and a small map."""
        from dkrls_cli.model.notebook.html import model_html

        return model_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a model as a file stores it, for other processes."""
        from dkrls_cli.model.saving import pickled, unpickled

        return unpickled, pickled(self)

    def predict(
        self,
        *,
        like: xr.DataArray | xr.Dataset | None = None,
        smooth: bool = False,
        outside: Outside | None = None,
        extrapolate: bool = False,
        mask: MaskLike = "model",
        mean: MeanLike = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> xr.DataArray:
        """Return the answers on the product grid of the given coordinates.

        Parameters
        ----------
        like
            A DataArray or Dataset whose coordinates are taken, by their names or by what they are
            (a latitude is one whatever its name).
        smooth
            Ask the model at training coordinates as well, where it otherwise returns the data: see
            :mod:`dkrls_cli.cascade.cascade`.
        outside
            What happens to coordinates outside the training range: ``refuse``, ``missing`` (no
            answer), ``nearest`` (the answer at the end of the range) or ``extrapolate``. By default
            ``missing`` for a grid like another one, else ``refuse``.
        extrapolate
            The same as ``outside="extrapolate"``.
        mask
            Cells without an answer: ``model`` for those that never had data (land), ``none``, or a
            DataArray or Grid on some of the dimensions: no answer where it is 0, False or NaN.
            Between coordinates the nearest cell decides.
        mean
            Answer with means over the cells of dimensions instead of values: their names, or True
            for all that are asked for at new coordinates. Cells lie half-way between coordinates,
            and are the bounds of the data at its own; along latitude means are weighted by its
            cosine.
        derivative
            Answer with derivatives: a dimension, or several; one of them twice for the second
            derivative. Time counts in the units of its coordinate.
        per_metre
            Whether derivatives by latitude and longitude are by metres on the sphere, of radius
            6371229 m, and not by degrees. At the poles one by longitude is NaN.
        **at
            Coordinates by dimension: numbers, dates or labels as in the data; they come before
            those of `like`. A dimension that is not named keeps the coordinates of the data; a
            scalar drops its dimension. ``lat`` means a dimension ``latitude`` as well: see
            :func:`dkrls_cli.grid.cf.find_axis`.

        Returns
        -------
        xarray.DataArray
            The answers, with coordinates and attributes of the data.

        Raises
        ------
        SettingError
            If the model has no such dimension, a coordinate cannot be read, or one is outside the
            training range and is refused there.

        Examples
        --------
        >>> from dkrls_cli import fit
        >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
        >>> model = fit(np.outer(np.sin(x), np.cos(d)), {"x": x, "d": d})
        >>> answers = model.predict(x=[0.51, 1.02], d=2.5)
        >>> answers.dims, bool(np.allclose(answers, np.sin([0.51, 1.02]) * np.cos(2.5), atol=1e-3))
        (('x',), True)
        """
        query, dropped = self._grid_query(
            like, at, smooth, outside, extrapolate, mask, (mean, derivative, per_metre)
        )
        answers = to_data_array(query.values(), query.axes, query.model.name, query.model.attrs)
        return answers.isel(dropped)

    def std(
        self,
        *,
        like: xr.DataArray | xr.Dataset | None = None,
        smooth: bool = False,
        outside: Outside | None = None,
        extrapolate: bool = False,
        mask: MaskLike = "model",
        mean: MeanLike = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> xr.DataArray:
        """Return the standard errors of :meth:`predict`; 0 where the answer is the data itself.

        A model of observations with errors answers with the quantity itself, nowhere with the data.
        """
        query, dropped = self._grid_query(
            like, at, smooth, outside, extrapolate, mask, (mean, derivative, per_metre)
        )
        name, attrs = query.model.std_variable()
        return to_data_array(query.std(), query.axes, name, attrs).isel(dropped)

    def ensemble(
        self,
        members: int,
        *,
        seed: int = 0,
        like: xr.DataArray | xr.Dataset | None = None,
        smooth: bool = False,
        outside: Outside | None = None,
        extrapolate: bool = False,
        mask: MaskLike = "model",
        mean: MeanLike = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> xr.DataArray:
        """Return an ensemble: answers with errors drawn at random, one member after the other.

        Every member passes through the data. The spread of the members is the standard error, and
        their errors go together in space and time as the model says, so that the spread of a mean
        over a region is the standard error of that mean.

        Parameters
        ----------
        members
            Number of members. A member depends on the seed and its number only, not on how many
            there are. It does depend on the coordinates: members of one grid do not fit together
            with those of another.
        seed
            Seed of the random numbers, 0 or above.
        like, smooth, outside, extrapolate, mask, mean, derivative, per_metre, **at
            As for :meth:`predict`.

        Returns
        -------
        xarray.DataArray
            The members, first dimension ``realization``, within the bounds of the model.

        Raises
        ------
        SettingError
            As :meth:`predict`; or if there is no such number of members or seed, or more
            coordinates than can be drawn together.

        Examples
        --------
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(30.0)
        >>> model = fit(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t})
        >>> members = model.ensemble(50, x=[0.5, 1.5], t=2.5)
        >>> members.dims, members.mean("x").std("realization").item() > 0
        (('realization', 'x'), True)
        """
        query, dropped = self._grid_query(
            like, at, smooth, outside, extrapolate, mask, (mean, derivative, per_metre)
        )
        return ensemble_array(query, members, seed, dropped)

    def iter_ensemble(
        self,
        members: int,
        *,
        seed: int = 0,
        like: xr.DataArray | xr.Dataset | None = None,
        smooth: bool = False,
        outside: Outside | None = None,
        extrapolate: bool = False,
        mask: MaskLike = "model",
        mean: MeanLike = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> Iterator[xr.DataArray]:
        """Return an iterator over the members of :meth:`ensemble`, of which one is in memory.

        Each has its number as a scalar coordinate ``realization``.
        """
        query, dropped = self._grid_query(
            like, at, smooth, outside, extrapolate, mask, (mean, derivative, per_metre)
        )
        return iterate_arrays(query, members, seed, dropped)

    def mean_over(
        self,
        region: RegionLike,
        *,
        std: bool = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        smooth: bool = False,
        outside: Outside = "refuse",
        mask: MaskLike = "model",
        **at: Any,
    ) -> xr.DataArray | xr.Dataset:
        """Return the mean over a region or a period: a number, or a series along other dimensions.

        Parameters
        ----------
        region
            Ranges by dimension, ``{"lat": (20, 60), "lon": (-10, 30)}``, None for all of one; or as
            text, ``"lat=20:60,lon"``. Means are weighted by the cosine of latitude. Land, as
            `mask` tells, is left out; the attribute ``comment`` tells the share that is left.
        std
            Whether to return the standard errors as well, from data left out of just these means.
            Where cells are missing they are the spread of 64 members of an ensemble.
        derivative, per_metre, smooth, outside, mask, **at
            As for :meth:`predict`, along the other dimensions.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            The means, without the dimensions of the region; with `std`, a dataset of them and
            their standard errors.

        Examples
        --------
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(30.0)
        >>> model = fit(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t})
        >>> found = model.mean_over({"x": (0, 3)}, t=[0.0])
        >>> bool(abs(found[0] - (1 - np.cos(3)) / 3) < 1e-4)
        True
        """
        rules = self._rules(smooth, outside, False, mask)
        query = self._refer(ask_region(self, region, at, rules, derivative, per_metre))
        found = to_data_array(query.values(), query.axes, query.model.name, query.model.attrs)
        dropped = [
            *query.averaged,
            *(
                dim
                for dim, value in by_dimension(at, self.axes, "model").items()
                if not np.ndim(value)
            ),
        ]
        if not std:
            return found.isel(dict.fromkeys(dropped, 0))
        name, attrs = query.model.std_variable()
        errors = to_data_array(query.std(), query.axes, name, attrs)
        both = found.to_dataset(name=query.model.name).assign({name: errors})
        return both.isel(dict.fromkeys(dropped, 0))

    def std_variable(self) -> tuple[str, dict[str, Any]]:
        """Return name and attributes of the standard error, after the CF conventions."""
        return std_variable(self.name, self.attrs)

    def predict_points(
        self,
        points: PointsLike | None = None,
        *,
        smooth: bool = False,
        outside: Outside = "refuse",
        extrapolate: bool = False,
        mask: MaskLike = "model",
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> Array | xr.DataArray:
        """Return the answers at scattered points: equally long coordinates for every dimension.

        Parameters
        ----------
        points
            Points with labels: a Dataset or a DataArray of one dimension, whose coordinates are
            found by their names or by what they are, or a pandas.DataFrame with columns.
        smooth, outside, extrapolate, mask, derivative, per_metre
            As for :meth:`predict`.
        **at
            Coordinates by dimension, beside those of `points` or instead of them; a single one is
            that of all points. A dimension of one coordinate need not be named.

        Returns
        -------
        xarray.DataArray or numpy.ndarray
            The answers along dimension ``point``, or that of `points`, with their coordinates. A
            plain array if there are no labels: numbers asked of a model of plain numbers, see
            :attr:`is_labelled`.

        Raises
        ------
        SettingError
            As :meth:`predict`, or if a dimension is given twice or not at all.

        Examples
        --------
        >>> import xarray as xr
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(12.0)
        >>> data = xr.DataArray(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t}, name="wave")
        >>> answers = fit(data).predict_points(x=[0.5, 1.7], t=[2.5, 3.0])
        >>> answers.dims, answers.x.values
        (('point',), array([0.5, 1.7]))
        """
        asked, query = self._point_query(
            points, at, smooth, outside, extrapolate, mask, (derivative, per_metre)
        )
        return self._along_points(asked, query.values(), query.model.name, query.model.attrs)

    def std_points(
        self,
        points: PointsLike | None = None,
        *,
        smooth: bool = False,
        outside: Outside = "refuse",
        extrapolate: bool = False,
        mask: MaskLike = "model",
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> Array | xr.DataArray:
        """Return the standard errors of :meth:`predict_points`."""
        asked, query = self._point_query(
            points, at, smooth, outside, extrapolate, mask, (derivative, per_metre)
        )
        return self._along_points(asked, query.std(), *query.model.std_variable())

    def ensemble_points(
        self,
        members: int,
        points: PointsLike | None = None,
        *,
        seed: int = 0,
        smooth: bool = False,
        outside: Outside = "refuse",
        extrapolate: bool = False,
        mask: MaskLike = "model",
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> Array | xr.DataArray:
        """Return an ensemble (members, points) of :meth:`predict_points`, as :meth:`ensemble`."""
        asked, query = self._point_query(
            points, at, smooth, outside, extrapolate, mask, (derivative, per_metre)
        )
        values = stack_members(query, members, seed)
        variable = ensemble_variable(query.model.name, query.model.attrs)
        return self._along_points(asked, values, *variable, members=members)

    def predict_stations(
        self,
        stations: Mapping[str, Any],
        *,
        smooth: bool = False,
        outside: Outside = "refuse",
        extrapolate: bool = False,
        mask: MaskLike = "model",
        mean: MeanLike = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> xr.DataArray:
        """Return the answers of every station at every coordinate of the other dimensions.

        Parameters
        ----------
        stations
            Equally long coordinates by dimension, one for each station.
        smooth, outside, extrapolate, mask, mean, derivative, per_metre
            As for :meth:`predict`.
        **at
            Coordinates of the other dimensions, as in :meth:`predict`: a dimension that is not
            named keeps the coordinates of the data; a scalar drops its dimension.

        Returns
        -------
        xarray.DataArray
            The answers, first dimension ``station``, with the coordinates of the stations on it.

        Raises
        ------
        SettingError
            If a dimension is named twice or not known, stations have unequal coordinates, or one
            is outside the training range and is refused there.

        Examples
        --------
        >>> from dkrls_cli import fit
        >>> x, y, t = np.linspace(0, 3, 20), np.linspace(0, 2, 15), np.arange(12.0)
        >>> field = np.sin(x)[:, None, None] * np.cos(y)[:, None] * np.cos(t / 4)
        >>> model = fit(field, {"x": x, "y": y, "t": t})
        >>> answers = model.predict_stations({"x": [0.5, 1.7, 2.9], "y": [1.0, 0.2, 0.4]})
        >>> answers.dims, answers.shape
        (('station', 't'), (3, 12))
        """
        at = by_dimension(at, self.axes, "model")
        question = read_question(self, mean, derivative, per_metre, at)
        rules = self._rules(smooth, outside, extrapolate, mask, question)
        axes, spread = self._stations(stations, at)
        query = self._refer(ask_points(self, axes, rules, spread))
        variable = query.model.name, query.model.attrs
        return station_array(query.values(), axes, spread, at, *variable)

    def std_stations(
        self,
        stations: Mapping[str, Any],
        *,
        smooth: bool = False,
        outside: Outside = "refuse",
        extrapolate: bool = False,
        mask: MaskLike = "model",
        mean: MeanLike = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> xr.DataArray:
        """Return the standard errors of :meth:`predict_stations`."""
        at = by_dimension(at, self.axes, "model")
        question = read_question(self, mean, derivative, per_metre, at)
        rules = self._rules(smooth, outside, extrapolate, mask, question)
        axes, spread = self._stations(stations, at)
        query = self._refer(ask_points(self, axes, rules, spread))
        return station_array(query.std(), axes, spread, at, *query.model.std_variable())

    def ensemble_stations(
        self,
        members: int,
        stations: Mapping[str, Any],
        *,
        seed: int = 0,
        smooth: bool = False,
        outside: Outside = "refuse",
        extrapolate: bool = False,
        mask: MaskLike = "model",
        mean: MeanLike = False,
        derivative: str | Sequence[str] = (),
        per_metre: bool = False,
        **at: Any,
    ) -> xr.DataArray:
        """Return an ensemble of :meth:`predict_stations`, first dimension ``realization``."""
        at = by_dimension(at, self.axes, "model")
        question = read_question(self, mean, derivative, per_metre, at)
        rules = self._rules(smooth, outside, extrapolate, mask, question)
        axes, spread = self._stations(stations, at)
        query = self._refer(ask_points(self, axes, rules, spread))
        values = stack_members(query, members, seed)
        variable = ensemble_variable(query.model.name, query.model.attrs)
        return station_array(values, axes, spread, at, *variable, members=members)

    @property
    def is_labelled(self) -> bool:
        """Whether names, units or dates came with the data: it was no array of plain numbers."""
        marked = any(axis.attrs or axis.time or axis.labels for axis in self.axes)
        return marked or bool(self.attrs) or self.name != "values"

    def _grid_query(
        self,
        like: xr.DataArray | xr.Dataset | None,
        given: Mapping[str, Any],
        smooth: bool,
        outside: Outside | None,
        extrapolate: bool,
        mask: MaskLike,
        asks: tuple[MeanLike, str | Sequence[str], bool] = (False, (), False),
    ) -> tuple[Query, dict[str, int]]:
        """Return the grid to answer on, and the index of each dimension that a scalar drops."""
        own = by_dimension(given, self.axes, "model")
        theirs, cells = ({}, {}) if like is None else target_coordinates(like, self.axes)
        at = theirs | own
        cells = {dim: edges for dim, edges in cells.items() if dim not in own}
        question = read_question(self, *asks, at, cells)
        usual: Outside = "refuse" if like is None else "missing"
        rules = self._rules(smooth, outside or usual, extrapolate, mask, question)
        query = self._refer(ask(self, self.axes_at(at), rules, list(at)))
        return query, {dim: 0 for dim, value in own.items() if np.ndim(value) == 0}

    def _point_query(
        self,
        points: PointsLike | None,
        at: Mapping[str, Any],
        smooth: bool,
        outside: Outside,
        extrapolate: bool,
        mask: MaskLike,
        asks: tuple[str | Sequence[str], bool] = ((), False),
    ) -> tuple[LabelledPoints, PointQuery]:
        """Return the points with their labels, and the query that answers there."""
        asked = read_points(points, at, self.axes)
        question = read_question(self, False, *asks, {})
        rules = self._rules(smooth, outside, extrapolate, mask, question)
        return asked, self._refer(ask_points(self, self._points(asked.at), rules))

    def _refer(self, query: Asked) -> Asked:
        """Return a query that reads the data which the model refers to, if it does."""
        if self.reference is None:
            return query
        from dkrls_cli.model.referring.grids import refer

        return refer(query)

    def _along_points(
        self,
        asked: LabelledPoints,
        values: Array,
        name: str,
        attrs: Attributes,
        members: int | None = None,
    ) -> Array | xr.DataArray:
        """Return values at points with the labels of these, or as they are if there are none."""
        if not (asked.is_labelled or self.is_labelled):
            return values
        axes = self._points(asked.at)
        found = station_array(values, axes, (), {}, name, attrs, members, asked.dim)
        fresh = {key: coord for key, coord in asked.coords.items() if key not in found.coords}
        return found.assign_coords(fresh)

    def _rules(
        self,
        smooth: bool,
        outside: Outside,
        extrapolate: bool,
        mask: MaskLike,
        question: Question | None = None,
    ) -> Rules:
        """Return the rules of answering that parameters give; a mask may be an array."""
        land = mask if isinstance(mask, str | Coverage) else coverage_of(as_grid(mask), self.axes)
        return Rules("extrapolate" if extrapolate else outside, land, smooth, question)

    def _stations(
        self, stations: Mapping[str, Any], at: Mapping[str, Any]
    ) -> tuple[list[Axis], list[int]]:
        """Return the axes to ask at, and the places of those that are no part of stations."""
        stations = by_dimension(stations, self.axes, "model")
        twice = [dim for dim in by_dimension(at, self.axes, "model") if dim in stations]
        if twice:
            raise SettingError(f"Coordinates of '{twice[0]}' were given twice.")
        if not stations:
            raise SettingError("Stations need the coordinates of at least one dimension.")
        axes = self.axes_at({**stations, **at})
        spread = [place for place, dim in enumerate(self.dims) if dim not in stations]
        if STATION in self.dims and STATION not in stations:
            raise SettingError(f"The model has a dimension '{STATION}'. Give the stations by it.")
        return axes, spread

    def variance(self, queries: Sequence[Array], *, smooth: bool = False) -> Array:
        """Return the variance of the answers on the product grid of these numbers, bounds aside."""
        return variance_on_grid(self.bars, self.cascade, queries, smooth=smooth)

    def _points(self, at: Mapping[str, Any]) -> list[Axis]:
        """Return the axes at the coordinates of points; that of one coordinate is repeated."""
        missing = [axis.name for axis in self.axes if axis.name not in at and axis.size > 1]
        if missing:
            raise SettingError(f"Points need a coordinate for '{missing[0]}' as well.")
        axes = self.axes_at(at)
        count = max(axis.size for axis in axes if axis.name in at)
        return [axis.take(np.zeros(count, int)) if axis.size == 1 else axis for axis in axes]

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

    def update(
        self,
        data: xr.DataArray | Grid | ArrayLike,
        coordinates: Any = None,
        *,
        replace: bool = False,
        window: int | None = None,
        max_rank: int | None = None,
        obs_error: ErrorLike | None = None,
        accept_inexact: bool = False,
    ) -> Model:
        """Return the model with new slices along its last level, and the same settings.

        It equals a fit of all slices with these settings, whatever the order in which they come.
        An update touches the new slices only; the factor of the last level is computed when an
        answer first needs it.

        Parameters
        ----------
        data
            Slices with the model's dimensions, NaN where cells are missing; a DataArray with one
            slice may have its coordinate as a scalar.
        coordinates
            Coordinates of the slices along the last level, where `data` is an array of numbers.
        replace
            Whether slices may replace those at the same coordinates; otherwise that is an error.
        window
            How many slices to keep at most: those of the largest coordinates.
        max_rank
            How many slices to keep at most, over the whole history: slices whose coordinates the
            others span best are dropped (approximate linear dependency). ``origin["thinned"]``
            holds the error with which the others predict them.
        obs_error
            Standard errors of the new slices, as for :func:`dkrls_cli.fit`, for a model of
            observations with errors. By default the number, or the coordinate of the same name,
            that the model was fitted with.
        accept_inexact
            Whether to take missing cells that could not be solved for exactly, with a warning.

        Returns
        -------
        Model
            A new model; this one stays as it is.

        Raises
        ------
        InputError
            If the slices differ from the model in dimensions, units, calendar or coordinates, or
            a coordinate is in the model already and `replace` is False; or if just one of model
            and slices has errors of the observations.
        ConvergenceError
            If missing cells could not be solved for as exactly as in a fit, and `accept_inexact` is
            False.

        Examples
        --------
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(30.0)
        >>> values = np.outer(np.sin(x), np.cos(t / 4))
        >>> model = fit(values[:, :29], {"x": x, "t": t[:29]})
        >>> model.update(values[:, 29:], t[29:]).cascade.shape
        (20, 30)
        """
        from dkrls_cli.model.updating.adding import add_slices
        from dkrls_cli.model.updating.alignment import align, slice_errors
        from dkrls_cli.model.updating.update import with_style

        values, new = align(self, data, coordinates)
        errors = slice_errors(self, data, coordinates, values, obs_error)
        after = add_slices(
            self,
            values,
            new,
            replace=replace,
            window=window,
            max_rank=max_rank,
            errors=errors,
            accept_inexact=accept_inexact,
        )
        return with_style(after, data, new)

    @property
    def growing(self) -> Growing:
        """The cascade, the axis along which it grows, and the store of its slices."""
        self.cascade.refuse_stand_in()
        return Growing(self.cascade, self.grows, self.store)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the model file, whole or not at all.

        Raises
        ------
        OutputError
            If the file exists and `overwrite` is False, or cannot be written.
        """
        from dkrls_cli.model.saving import save_models

        save_models([self], path, overwrite=overwrite)

    @property
    def calibrated_bars(self) -> Bars:
        """The error bars without those of filled cells, as a model file stores them."""
        return self._calibrated


def _whole_axis(own: Axis, whole: Axis) -> Axis:
    """Return the whole axis of the data, its longitudes counted as those of the model are.

    A longitude that is there twice, one turn apart, is the same place.
    """
    return whole if own.turn is None or own.size == whole.size else own.at(whole.plain)
