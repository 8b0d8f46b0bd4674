"""Data on another grid: a fit and its answers in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from dkrls_cli.grid.grid import (
    Coordinates,
    ErrorLike,
    GridLike,
    as_grid,
    std_variable,
    to_data_array,
)
from dkrls_cli.grid.observations import with_errors
from dkrls_cli.model.answering.answers import Land, Outside, Query, Rules, ask
from dkrls_cli.model.answering.questions import MeanLike, read_question
from dkrls_cli.model.answering.targets import TargetLike, target_coordinates
from dkrls_cli.model.fit import fit_grid
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
        An xarray.DataArray, a Grid or an array of numbers; NaN where cells are missing.
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

    Examples
    --------
    >>> import numpy as np
    >>> x, t = np.linspace(0, 3, 16), np.arange(20.0)
    >>> values = np.outer(np.sin(x), np.cos(t / 4))
    >>> fine = regrid(values, {"x": [0.75, 1.5]}, {"x": x, "t": t})
    >>> fine.dims, bool(np.allclose(fine[:, 0], np.sin([0.75, 1.5]), atol=1e-3))
    (('x', 't'), True)
    """
    grid = with_errors(data, as_grid(data, coordinates, keep_single=True), obs_error)
    Rules(outside, mask, smooth)  # wrong ones are refused before the fit
    model = fit_grid(grid, Settings(**settings))
    asked, cells = target_coordinates(target, model.axes)
    question = read_question(model, mean, derivative, per_metre, asked, cells)
    rules = Rules(outside, mask, smooth, question)
    query = ask(model, model.axes_at(asked), rules, list(asked))
    return _labelled(query, std)


def _labelled(query: Query, std: bool) -> xr.DataArray | xr.Dataset:
    """Return the answers as a DataArray, or with their errors as a Dataset."""
    model = query.model
    answers = to_data_array(query.values(), query.axes, model.name, model.attrs)
    if not std:
        return answers
    name, attrs = std_variable(model.name, model.attrs)
    answers.attrs["ancillary_variables"] = name
    errors = to_data_array(query.std(), query.axes, name, attrs)
    return answers.to_dataset(name=model.name).assign({name: errors})
