"""Data on another grid: a fit and its answers in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from dkrls_cli.grid.grid import (
    Coordinates,
    ErrorLike,
    GridLike,
    as_grid,
    is_chunked,
    refuse_coordinates,
    std_variable,
    to_data_array,
)
from dkrls_cli.grid.observations import with_errors
from dkrls_cli.model.answering.answers import Land, Outside, Query, Rules, ask
from dkrls_cli.model.answering.questions import MeanLike, read_question
from dkrls_cli.model.answering.targets import TargetLike, target_coordinates
from dkrls_cli.model.chunked.loading import refuse_errors
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import Settings

if TYPE_CHECKING:
    import xarray as xr


@overload
def regrid(
    data: GridLike,
    target: TargetLike,
    coordinates: Coordinates | None = ...,
    *,
    std: Literal[False] = ...,
    smooth: bool = ...,
    outside: Outside = ...,
    mask: Land = ...,
    obs_error: ErrorLike | None = ...,
    mean: MeanLike = ...,
    derivative: str | Sequence[str] = ...,
    per_metre: bool = ...,
    **settings: Any,
) -> xr.DataArray: ...


@overload
def regrid(
    data: GridLike,
    target: TargetLike,
    coordinates: Coordinates | None = ...,
    *,
    std: Literal[True],
    smooth: bool = ...,
    outside: Outside = ...,
    mask: Land = ...,
    obs_error: ErrorLike | None = ...,
    mean: MeanLike = ...,
    derivative: str | Sequence[str] = ...,
    per_metre: bool = ...,
    **settings: Any,
) -> xr.Dataset: ...


def regrid(
    data: GridLike,
    target: TargetLike,
    coordinates: Coordinates | None = None,
    *,
    std: bool = False,
    smooth: bool = False,
    outside: Outside = "missing",
    mask: Land = "model",
    obs_error: ErrorLike | None = None,
    mean: MeanLike = False,
    derivative: str | Sequence[str] = (),
    per_metre: bool = False,
    **settings: Any,
) -> xr.DataArray | xr.Dataset:
    """Return data on another grid.

    Parameters
    ----------
    data
        An xarray.DataArray, a Grid or an array of numbers; NaN where cells are missing. A DataArray
        that is chunked (with dask) stays so: see the notes.
    target
        Coordinates by dimension; or a DataArray or Dataset whose coordinates are taken, by their
        names or by what they are (a latitude is one whatever its name). Other dimensions keep the
        coordinates of the data.
    coordinates
        For an array of numbers, a coordinate vector per axis, by name or in order.
    std
        Whether to return the standard errors as well.
    smooth, mask
        As for :meth:`dkrls_cli.Model.predict`.
    outside
        The same, but by default there is no answer outside the range of the data.
    obs_error
        Standard errors of the data, as for :func:`dkrls_cli.fit`.
    mean, derivative, per_metre
        As for :meth:`dkrls_cli.Model.predict`. Cells are the bounds of the target, if it has any.
    **settings
        Settings of the fit, as keywords of :func:`dkrls_cli.fit`.

    Returns
    -------
    xarray.DataArray or xarray.Dataset
        The data on the other grid. With `std`, a dataset of it and its standard errors, named like
        the data with ``_std`` behind.

    Raises
    ------
    InputError
        If the data cannot be used, or the target has no coordinate of it.
    SettingError
        If a setting is not possible, or not for this grid.

    Notes
    -----
    Of a chunked DataArray a few chunks are computed to choose the settings, and nothing else: the
    answers are chunked, and are computed with ``compute`` or when they are written, on threads or
    on a cluster of dask. Dimensions that keep their coordinates keep their chunks, or have shorter
    ones where answers would be too large. Settings, standard errors and the number that answers
    fall back to are those of these chunks, and differ a little from those of all data.

    Cells may be missing all along the dimensions that are no places, as land is at all times, or at
    some times only. Every time is then answered on its own, with one ridge for all its cells. If
    the chunks that are looked at show cells that come and go, all of the array is computed once to
    see which are land. If they do not, computing the answers raises InputError with the place; so
    it does at any missing cell if all settings and the mean are given, since no chunk is looked at
    then. What takes the whole grid at once (errors of the observations, one joint ridge, a robust
    fit, a compact model) is refused.
    ``regrid(array.compute(), ...)`` does all of this in memory.

    Examples
    --------
    >>> import numpy as np
    >>> x, t = np.linspace(0, 3, 16), np.arange(20.0)
    >>> values = np.outer(np.sin(x), np.cos(t / 4))
    >>> fine = regrid(values, {"x": [0.75, 1.5]}, {"x": x, "t": t})
    >>> fine.dims, bool(np.allclose(fine[:, 0], np.sin([0.75, 1.5]), atol=1e-3))
    (('x', 't'), True)

    A chunked array stays lazy:

    >>> import xarray as xr
    >>> data = xr.DataArray(values, {"x": x, "t": t}, ("x", "t")).chunk(t=5)  # doctest: +SKIP
    >>> regrid(data, {"x": [0.75, 1.5]}).chunks  # doctest: +SKIP
    ((2,), (5, 5, 5, 5))
    """
    rules = Rules(outside, mask, smooth)  # wrong ones are refused before the fit

    def ask_model(model: Model) -> Query:
        asked, cells = target_coordinates(target, model.axes)
        question = read_question(model, mean, derivative, per_metre, asked, cells)
        own_rules = replace(rules, question=question)
        return ask(model, model.axes_at(asked), own_rules, list(asked))

    if is_chunked(data):
        from dkrls_cli.model.streaming.lazy import lazy_regrid

        refuse_coordinates(coordinates)
        refuse_errors(obs_error)
        return _labelled(*lazy_regrid(data, Settings(**settings), ask_model, std=std))
    grid = with_errors(data, as_grid(data, coordinates, keep_single=True), obs_error)
    query = ask_model(fit_grid(grid, Settings(**settings)))
    return _labelled(query, query.values(), query.std() if std else None)


def _labelled(query: Query, values: Any, std: Any | None) -> xr.DataArray | xr.Dataset:
    """Return the answers as a DataArray, or with their errors as a Dataset."""
    model = query.model
    answers = to_data_array(values, query.axes, model.name, model.attrs)
    if std is None:
        return answers
    name, attrs = std_variable(model.name, model.attrs)
    answers.attrs["ancillary_variables"] = name
    errors = to_data_array(std, query.axes, name, attrs)
    return answers.to_dataset(name=model.name).assign({name: errors})
