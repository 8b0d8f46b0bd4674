"""The model that users hold: a trained cascade that is asked, and answers, with labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array
from dkrls_cli.grid.grid import ErrorLike, Grid, ensemble_variable, to_data_array
from dkrls_cli.model.answering.answers import Outside
from dkrls_cli.model.answering.ensembles import ensemble_array, iterate_arrays, stack_members
from dkrls_cli.model.answering.questions import MeanLike
from dkrls_cli.model.answering.regions import RegionLike
from dkrls_cli.model.answering.targets import PointsLike
from dkrls_cli.model.asking.queries import (
    Manner,
    MaskLike,
    grid_query,
    point_query,
    region_query,
    station_query,
)
from dkrls_cli.model.trained import Trained

if TYPE_CHECKING:
    import xarray as xr

OBS_ERRORS = "observation_errors"
"""Key of the origin of a model of observations with errors: how large, and where they come from."""


@dataclass(frozen=True, eq=False)
class Model(Trained):
    """A trained model of a labelled grid.

    It has the attributes of :class:`dkrls_cli.model.trained.Trained`, among them `axes`, the
    meaning of the coordinates in the order of the data; `hierarchy`, the names of the dimensions
    from level 0 to the last level; `name` and `attrs` of the variable; and `origin`: where the
    model comes from.
    """

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
        >>> import numpy as np
        >>> from dkrls_cli import fit
        >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
        >>> model = fit(np.outer(np.sin(x), np.cos(d)), {"x": x, "d": d})
        >>> answers = model.predict(x=[0.51, 1.02], d=2.5)
        >>> answers.dims, bool(np.allclose(answers, np.sin([0.51, 1.02]) * np.cos(2.5), atol=1e-3))
        (('x',), True)
        """
        manner, asks = Manner(smooth, outside, extrapolate, mask), (mean, derivative, per_metre)
        query, dropped = grid_query(self, like, at, manner, asks)
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
        manner, asks = Manner(smooth, outside, extrapolate, mask), (mean, derivative, per_metre)
        query, dropped = grid_query(self, like, at, manner, asks)
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
        >>> import numpy as np
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(30.0)
        >>> model = fit(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t})
        >>> members = model.ensemble(50, x=[0.5, 1.5], t=2.5)
        >>> members.dims, members.mean("x").std("realization").item() > 0
        (('realization', 'x'), True)
        """
        manner, asks = Manner(smooth, outside, extrapolate, mask), (mean, derivative, per_metre)
        query, dropped = grid_query(self, like, at, manner, asks)
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
        manner, asks = Manner(smooth, outside, extrapolate, mask), (mean, derivative, per_metre)
        query, dropped = grid_query(self, like, at, manner, asks)
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
        >>> import numpy as np
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(30.0)
        >>> model = fit(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t})
        >>> found = model.mean_over({"x": (0, 3)}, t=[0.0])
        >>> bool(abs(found[0] - (1 - np.cos(3)) / 3) < 1e-4)
        True
        """
        manner = Manner(smooth, outside, mask=mask)
        query, dropped = region_query(self, region, at, manner, derivative, per_metre)
        found = to_data_array(query.values(), query.axes, query.model.name, query.model.attrs)
        if not std:
            return found.isel(dropped)
        name, attrs = query.model.std_variable()
        errors = to_data_array(query.std(), query.axes, name, attrs)
        return found.to_dataset(name=query.model.name).assign({name: errors}).isel(dropped)

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
        >>> import numpy as np
        >>> import xarray as xr
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(12.0)
        >>> data = xr.DataArray(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t}, name="wave")
        >>> answers = fit(data).predict_points(x=[0.5, 1.7], t=[2.5, 3.0])
        >>> answers.dims, answers.x.values
        (('point',), array([0.5, 1.7]))
        """
        manner = Manner(smooth, outside, extrapolate, mask)
        asked = point_query(self, points, at, manner, derivative, per_metre)
        query = asked.query
        return asked.label(query.values(), query.model.name, query.model.attrs)

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
        manner = Manner(smooth, outside, extrapolate, mask)
        asked = point_query(self, points, at, manner, derivative, per_metre)
        return asked.label(asked.query.std(), *asked.query.model.std_variable())

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
        manner = Manner(smooth, outside, extrapolate, mask)
        asked = point_query(self, points, at, manner, derivative, per_metre)
        values = stack_members(asked.query, members, seed)
        variable = ensemble_variable(asked.query.model.name, asked.query.model.attrs)
        return asked.label(values, *variable, members)

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
        >>> import numpy as np
        >>> from dkrls_cli import fit
        >>> x, y, t = np.linspace(0, 3, 20), np.linspace(0, 2, 15), np.arange(12.0)
        >>> field = np.sin(x)[:, None, None] * np.cos(y)[:, None] * np.cos(t / 4)
        >>> model = fit(field, {"x": x, "y": y, "t": t})
        >>> answers = model.predict_stations({"x": [0.5, 1.7, 2.9], "y": [1.0, 0.2, 0.4]})
        >>> answers.dims, answers.shape
        (('station', 't'), (3, 12))
        """
        manner, asks = Manner(smooth, outside, extrapolate, mask), (mean, derivative, per_metre)
        asked = station_query(self, stations, at, manner, asks)
        query = asked.query
        return asked.label(query.values(), query.model.name, query.model.attrs)

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
        manner, asks = Manner(smooth, outside, extrapolate, mask), (mean, derivative, per_metre)
        asked = station_query(self, stations, at, manner, asks)
        return asked.label(asked.query.std(), *asked.query.model.std_variable())

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
        manner, asks = Manner(smooth, outside, extrapolate, mask), (mean, derivative, per_metre)
        asked = station_query(self, stations, at, manner, asks)
        values = stack_members(asked.query, members, seed)
        variable = ensemble_variable(asked.query.model.name, asked.query.model.attrs)
        return asked.label(values, *variable, members)

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
        >>> import numpy as np
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
        errors = slice_errors(self, data, values, obs_error)
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

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the model file, whole or not at all.

        Raises
        ------
        OutputError
            If the file exists and `overwrite` is False, or cannot be written.
        """
        from dkrls_cli.model.saving import save_models

        save_models([self], path, overwrite=overwrite)
