"""The model as users hold it: a cascade with the names, units and origin of its data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli import __version__, errorbars, gapbars, modelfile
from dkrls_cli.axes import NO_ATTRIBUTES, Attributes, Axis, axis_of, index_axis
from dkrls_cli.cascade import Cascade
from dkrls_cli.checks import as_numbers
from dkrls_cli.errors import InputError, ModelFileError, SettingError
from dkrls_cli.gapbars import Bars, GapBars
from dkrls_cli.grid import (
    Grid,
    Style,
    from_data_array,
    is_labelled,
    std_variable,
    to_data_array,
)
from dkrls_cli.kernels import Array
from dkrls_cli.levels import Level
from dkrls_cli.records import (
    axis_from,
    axis_record,
    bars_from,
    bars_record,
    cascade_from,
    from_json,
    record,
    to_json,
)
from dkrls_cli.tensors import Slices

if TYPE_CHECKING:
    import xarray as xr

    from dkrls_cli.choosing import Watch
    from dkrls_cli.settings import Setting


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model of a labelled grid.

    Attributes
    ----------
    cascade
        The numbers: levels, spectra and the data in its frames, axes in the order of the data.
    axes
        What the coordinates mean.
    hierarchy
        Names of the dimensions from level 0 to the last level.
    name, attrs, style
        Of the variable, and how its file keeps it.
    bars
        What error bars are made from: see :mod:`dkrls_cli.errorbars`, and :mod:`dkrls_cli.gapbars`
        for models of grids with missing cells.
    origin
        Where the model comes from: inputs, options, versions.
    """

    cascade: Cascade
    axes: tuple[Axis, ...]
    hierarchy: tuple[str, ...]
    bars: Bars
    name: str = "values"
    attrs: Attributes = field(default_factory=dict)
    style: Style = field(default_factory=Style)
    origin: Attributes = field(default_factory=dict)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, in the order of the data."""
        return tuple(axis.name for axis in self.axes)

    @property
    def errors(self) -> tuple[float, ...]:
        """Root mean square error per axis on slices left out, or on cells under a joint ridge."""
        if isinstance(self.bars, GapBars):
            return (self.bars.error,) * len(self.axes)
        errors = self.bars.errors.tolist()
        return tuple(errors if len(errors) > 1 else errors * len(self.axes))

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels, from level 0 to the last."""
        return tuple(self.cascade.levels[self.dims.index(name)] for name in self.hierarchy)

    def predict(self, *, smooth: bool = False, **at: Any) -> xr.DataArray:
        """Answers on the product grid of the coordinates given; other dimensions keep theirs.

        A scalar coordinate drops its dimension. `smooth` asks the model at training coordinates
        as well, see :mod:`dkrls_cli.cascade`.

        Examples
        --------
        >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
        >>> model = fit(np.outer(np.sin(x), np.cos(d)), {"x": x, "d": d})
        >>> answers = model.predict(x=[0.51, 1.02], d=2.5)
        >>> answers.dims, bool(np.allclose(answers, np.sin([0.51, 1.02]) * np.cos(2.5), atol=1e-3))
        (('x',), True)
        """
        axes = self.axes_at(at)
        values = self.cascade.predict(self.queries(axes), smooth=smooth)
        answers = to_data_array(values, axes, self.name, self.attrs)
        return answers.isel({dim: 0 for dim, value in at.items() if np.ndim(value) == 0})

    def std(self, *, smooth: bool = False, **at: Any) -> xr.DataArray:
        """Standard errors of the answers of :meth:`predict`; 0 where all is passed through."""
        axes = self.axes_at(at)
        spread = self.variance(self.queries(axes), smooth=smooth)
        name, attrs = self.std_variable()
        errors = to_data_array(np.sqrt(spread), axes, name, attrs)
        return errors.isel({dim: 0 for dim, value in at.items() if np.ndim(value) == 0})

    def std_variable(self) -> tuple[str, dict[str, Any]]:
        """Name and attributes of the standard error, after the CF conventions."""
        return std_variable(self.name, self.attrs)

    def predict_points(self, *, smooth: bool = False, **at: Any) -> Array:
        """Answers at scattered points: equally long coordinates for every dimension."""
        return self.cascade.predict_points(self._points(at), smooth=smooth)

    def std_points(self, *, smooth: bool = False, **at: Any) -> Array:
        """Standard errors of the answers of :meth:`predict_points`."""
        return np.sqrt(self.variance_at_points(self._points(at), smooth=smooth))

    def variance(self, queries: Sequence[Array], *, smooth: bool = False) -> Array:
        """Variance of the answers on the product grid of the numbers asked for."""
        whole = tuple(slice(0, query.size) for query in queries)
        return self.variances(queries, smooth=smooth)(whole)

    def variances(
        self, queries: Sequence[Array], *, smooth: bool = False
    ) -> Callable[[Slices], Array]:
        """What gives the variance of any part of that grid."""
        if isinstance(self.bars, GapBars):
            return gapbars.variances(self.cascade, self.bars, queries, smooth=smooth)
        return errorbars.variances(self.cascade, self.bars, queries, smooth=smooth)

    def variance_at_points(self, points: Sequence[Array], *, smooth: bool = False) -> Array:
        """Variance of the answers at scattered points."""
        if isinstance(self.bars, GapBars):
            return gapbars.variance_at_points(self.cascade, self.bars, points, smooth=smooth)
        return errorbars.variance_at_points(self.cascade, self.bars, points, smooth=smooth)

    def _points(self, at: Mapping[str, Any]) -> list[Array]:
        missing = [dim for dim in self.dims if dim not in at]
        if missing:
            raise SettingError(f"Points need a coordinate for '{missing[0]}' as well.")
        return self.queries(self.axes_at(at))

    def weights(self, depth: int) -> xr.DataArray:
        """The paper's weights after levels 0 to `depth` - 1 were trained (1: Initial Modeling)."""
        if not 1 <= depth <= len(self.hierarchy):
            raise SettingError(f"Invalid depth {depth}. It must be 1 to {len(self.hierarchy)}.")
        solved = [self.dims.index(name) for name in self.hierarchy[:depth]]
        values = self.cascade.weights(solved)
        label = f"weights of '{self.name}' after {', '.join(self.hierarchy[:depth])}"
        return to_data_array(values, self.axes, f"weights_{depth}", {"long_name": label})

    def axes_at(self, at: Mapping[str, Any]) -> list[Axis]:
        """The axes at the coordinates given; a dimension that is not named keeps its own."""
        unknown = [dim for dim in at if dim not in self.dims]
        if unknown:
            raise SettingError(
                f"The model has no dimension '{unknown[0]}'. It has {', '.join(self.dims)}."
            )
        return [axis.at(at[axis.name]) if axis.name in at else axis for axis in self.axes]

    def queries(self, axes: Sequence[Axis]) -> list[Array]:
        """What to ask the cascade for these axes."""
        return [
            known if axis.numbers is own.numbers else axis.numbers
            for axis, own, known in zip(axes, self.axes, self.cascade.coordinates, strict=True)
        ]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the model file, whole or not at all."""
        header, arrays = record(self.cascade)
        bars, distance = bars_record(self.bars)
        header |= {
            "bars": bars,
            "program": f"dkrls {__version__}",
            "name": self.name,
            "attrs": to_json(self.attrs),
            "style": to_json(asdict(self.style)),
            "origin": to_json(self.origin),
            "hierarchy": list(self.hierarchy),
            "axes": [axis_record(axis) for axis in self.axes],
        }
        modelfile.write(path, header, {**arrays, **distance}, overwrite=overwrite)


def fit(
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    levels: Sequence[Level] | Sequence[str] | None = None,
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
        ``auto`` chooses by leaving slices out, see :mod:`dkrls_cli.tuning`; the period is that of
        the circle the coordinates close, if they do.
    noise
        ``level``: a ridge per level, the paper's. ``joint``: one ridge over the whole grid.
        ``auto``: level on complete grids, joint where cells are missing.
    missing
        ``model``: fit through missing cells (NaN), coordinates without any observed cell dropped.
        ``error``: refuse them.
    mean
        What answers fall back to far from data: a number, or ``auto``, the mean of the data.
    compact, dtype
        See :func:`dkrls_cli.cascade.fit`.
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
    from dkrls_cli.settings import read_wishes
    from dkrls_cli.training import Training, train, train_through_gaps, without_lost_slices

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


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file."""
    header, arrays = modelfile.read(path)
    try:
        trained = cascade_from(header, arrays)
        axes = tuple(
            axis_from(axis, level.name, numbers)
            for axis, level, numbers in zip(
                header["axes"], trained.levels, trained.coordinates, strict=True
            )
        )
        attrs, origin = from_json(header["attrs"]), from_json(header["origin"])
        style, hierarchy = Style(**from_json(header["style"])), tuple(header["hierarchy"])
        bars = bars_from(header["bars"], arrays, trained.shape)
        return Model(trained, axes, hierarchy, bars, header["name"], attrs, style, origin)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFileError(f"'{path}' is damaged ({error}). Fit the model again.") from None


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
