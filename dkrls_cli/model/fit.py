"""Models from labelled grids or plain arrays: what the user wants, checked and trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import as_numbers
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import NO_ATTRIBUTES, Attributes, axis_of, index_axis
from dkrls_cli.grid.grid import Grid, from_data_array, is_labelled
from dkrls_cli.model.choosing import Watch
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import Setting, read_wishes
from dkrls_cli.model.training import Training, train, train_through_gaps, without_lost_slices

if TYPE_CHECKING:
    import xarray as xr


def fit(
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    levels: Sequence[Level | str] | None = None,
    *,
    kernel: Setting[str] = "auto",
    sigma: Setting[float | str] = "auto",
    ridge: Setting[float | str] = "auto",
    period: Setting[float | str | None] = "auto",
    noise: str = "auto",
    missing: str = "model",
    mean: float | str = "auto",
    compact: bool = False,
    dtype: str = "float64",
    folds: int | None = None,
    origin: Attributes = NO_ATTRIBUTES,
    watch: Watch | None = None,
) -> Model:
    """Train a model of a grid.

    Parameters
    ----------
    data
        An xarray.DataArray with its coordinates and attributes, or an array of numbers.
    coordinates
        For an array of numbers: a coordinate vector per axis, by name or in order. Without, the
        positions 0, 1, 2, ...
    levels
        The hierarchy from level 0 to the last: names of dimensions, or whole levels. Without,
        the dimensions in the order of the data, a time-like one last.
    kernel, sigma, ridge, period
        Settings of the levels: one value for all, or a mapping from dimension to value.
        ``auto`` chooses by leaving slices out, see :mod:`dkrls_cli.tuning.slices`; the period is
        that of the circle the coordinates close, if they do.
    noise
        ``level``: a ridge per level, the paper's. ``joint``: one ridge over the whole grid.
        ``auto``: level on complete grids, joint where cells are missing.
    missing
        ``model``: fit through missing cells (NaN), coordinates without any observed cell dropped.
        ``error``: refuse them.
    mean
        What answers fall back to far from data: a number, or ``auto``, the mean of the data.
    compact, dtype
        See :func:`dkrls_cli.cascade.fit.fit_cascade`.
    folds
        Choose by leaving so many blocks of neighbours out instead of single slices: for answers
        in gaps much wider than the steps of the data.
    origin
        Anything worth remembering about where the data came from.
    watch
        Called with the name of a dimension and all that was tried for it, on complete grids.

    Examples
    --------
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> model = fit(np.outer(np.sin(x), np.cos(d)), {"x": x, "d": d}, sigma={"x": 1.0, "d": 1.5})
    >>> [level.kernel.sigma for level in model.levels]
    [1.0, 1.5]
    """
    grid = _grid(data, coordinates)
    told: list[str] = []
    share = 0.0
    if missing not in ("model", "error"):
        raise SettingError(f"Invalid missing '{missing}'. Choose model or error.")
    if missing == "error":
        grid.refuse_missing()
    elif not grid.is_complete:
        share = float(np.isnan(grid.values).mean())
        grid, told = without_lost_slices(grid)
    complete = grid.is_complete
    if folds is not None and not complete:
        raise SettingError("Folds are for complete grids: here cells like the gaps are left out.")
    wishes = read_wishes(
        grid.axes,
        levels,
        kernel=kernel,
        sigma=sigma,
        ridge=ridge,
        period=period,
        noise=noise,
        complete=complete,
    )
    centre = None if mean == "auto" else float(mean)
    how = Training(centre, compact, _storage(dtype), folds, watch, share)
    trained = (train if complete else train_through_gaps)(grid, wishes, how)
    about = {**origin, **trained.facts, **({"dropped_coordinates": told} if told else {})}
    return Model(
        trained.cascade,
        grid.axes,
        wishes.hierarchy,
        trained.bars,
        grid.name,
        grid.attrs,
        grid.style,
        about,
    )


def retuned(model: Model) -> Model:
    """A model with the settings of its last level chosen anew on the slices it holds.

    Nothing else changes: a coordinate of which no cell is observed now stays, and all missing
    cells are filled anew.
    """
    *others, last = model.levels
    joint = model.cascade.joint_ridge is not None
    values = model.cascade.predict()
    if joint and model.unobserved is not None:
        values[model.unobserved] = np.nan
    chosen = fit(
        Grid(values, model.axes, model.name, model.attrs, model.style),
        levels=[*others, last.name],
        noise="joint" if joint else "level",
        mean=model.cascade.mean,
    )
    from dkrls_cli.model.update import change_settings

    settings = chosen.cascade.levels, chosen.cascade.joint_ridge
    return change_settings(model, *settings, chosen.bars, chosen.origin["notes"])


def _grid(
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None,
) -> Grid:
    if is_labelled(data):
        labelled = from_data_array(data)
        data = replace(labelled, values=as_numbers(labelled.values, "values"))
    if isinstance(data, Grid):
        if coordinates is not None:
            raise SettingError("Coordinates were given for data that has its own.")
        return data
    values = as_numbers(data, "values")
    if coordinates is None:
        return Grid(values, tuple(index_axis(f"dim_{i}", n) for i, n in enumerate(values.shape)))
    if not isinstance(coordinates, Mapping):
        coordinates = {f"dim_{i}": c for i, c in enumerate(coordinates)}
    axes = tuple(axis_of(name, c) for name, c in coordinates.items())
    if values.shape != tuple(axis.size for axis in axes):
        sizes = " x ".join(f"{axis.name} {axis.size}" for axis in axes)
        raise InputError(f"Values of shape {values.shape} do not fit coordinates {sizes}.")
    return Grid(values, axes)


def _storage(dtype: str) -> type[np.floating[Any]]:
    types: dict[str, type[np.floating[Any]]] = {"float64": np.float64, "float32": np.float32}
    if dtype not in types:
        raise SettingError(f"Invalid storage '{dtype}'. It must be float64 or float32.")
    return types[dtype]
