"""The model as users hold it: a cascade with the names, units and origin of its data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli import __version__, cascade, modelfile
from dkrls_cli.axes import NO_ATTRIBUTES, Attributes, Axis, axis_of, index_axis
from dkrls_cli.cascade import Cascade
from dkrls_cli.errors import InputError, ModelFileError, SettingError
from dkrls_cli.grid import Grid, from_data_array, is_labelled, to_data_array
from dkrls_cli.kernels import Array
from dkrls_cli.levels import Level
from dkrls_cli.records import axis_from, axis_record, cascade_from, from_json, record, to_json
from dkrls_cli.settings import Setting, choose_levels

if TYPE_CHECKING:
    import xarray as xr


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
    name, attrs
        Of the variable.
    origin
        Where the model comes from: inputs, options, versions.
    """

    cascade: Cascade
    axes: tuple[Axis, ...]
    hierarchy: tuple[str, ...]
    name: str = "values"
    attrs: Attributes = field(default_factory=dict)
    origin: Attributes = field(default_factory=dict)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, in the order of the data."""
        return tuple(axis.name for axis in self.axes)

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
        asked = self.encode(at)
        axes = [replace(a, numbers=q) for a, q in zip(self.axes, asked, strict=True)]
        values = self.cascade.predict(self._queries(at, asked), smooth=smooth)
        answers = to_data_array(values, axes, self.name, self.attrs)
        return answers.isel({dim: 0 for dim, value in at.items() if np.ndim(value) == 0})

    def predict_points(self, *, smooth: bool = False, **at: Any) -> Array:
        """Answers at scattered points: equally long coordinates for every dimension."""
        missing = [dim for dim in self.dims if dim not in at]
        if missing:
            raise SettingError(f"Points need a coordinate for '{missing[0]}' as well.")
        return self.cascade.predict_points(self.encode(at), smooth=smooth)

    def weights(self, depth: int) -> xr.DataArray:
        """The paper's weights after levels 0 to `depth` - 1 were trained (1: Initial Modeling)."""
        if not 1 <= depth <= len(self.hierarchy):
            raise SettingError(f"Invalid depth {depth}. It must be 1 to {len(self.hierarchy)}.")
        solved = [self.dims.index(name) for name in self.hierarchy[:depth]]
        values = self.cascade.weights(solved)
        label = f"weights of '{self.name}' after {', '.join(self.hierarchy[:depth])}"
        return to_data_array(values, self.axes, f"weights_{depth}", {"long_name": label})

    def encode(self, at: Mapping[str, Any]) -> list[Array]:
        """Coordinates in the user's terms as numbers, one vector per dimension of the data."""
        unknown = [dim for dim in at if dim not in self.dims]
        if unknown:
            raise SettingError(
                f"The model has no dimension '{unknown[0]}'. It has {', '.join(self.dims)}."
            )
        return [
            axis.encode(at[axis.name]) if axis.name in at else axis.numbers for axis in self.axes
        ]

    def _queries(self, at: Mapping[str, Any], asked: Sequence[Array]) -> list[Array | None]:
        return [q if dim in at else None for dim, q in zip(self.dims, asked, strict=True)]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the model file, whole or not at all."""
        header, arrays = record(self.cascade)
        header |= {
            "program": f"dkrls {__version__}",
            "name": self.name,
            "attrs": to_json(self.attrs),
            "origin": to_json(self.origin),
            "hierarchy": list(self.hierarchy),
            "axes": [axis_record(axis) for axis in self.axes],
        }
        modelfile.write(path, header, arrays, overwrite=overwrite)


def fit(
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    levels: Sequence[Level] | Sequence[str] | None = None,
    *,
    kernel: Setting[str] = "auto",
    sigma: Setting[float | str] = "auto",
    ridge: Setting[float | str] = "auto",
    period: Setting[float | None] = None,
    noise: str = "level",
    compact: bool = False,
    dtype: str = "float64",
    origin: Attributes = NO_ATTRIBUTES,
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
        ``auto`` is the rule of :func:`dkrls_cli.settings.choose_levels`.
    noise
        ``level``: a ridge per level, the paper's. ``joint``: one ridge over the whole grid.
    compact, dtype
        See :func:`dkrls_cli.cascade.fit`.
    origin
        Anything worth remembering about where the data came from.

    Examples
    --------
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> model = fit(np.outer(np.sin(x), np.cos(d)), {"x": x, "d": d}, sigma={"x": 1.0, "d": 1.5})
    >>> [level.kernel.sigma for level in model.levels]
    [1.0, 1.5]
    """
    grid = _grid(data, coordinates)
    hierarchy, chosen, joint_ridge = choose_levels(
        grid.axes, levels, kernel=kernel, sigma=sigma, ridge=ridge, period=period, noise=noise
    )
    trained = cascade.fit(
        grid.values,
        [axis.numbers for axis in grid.axes],
        chosen,
        joint_ridge=joint_ridge,
        compact=compact,
        dtype=_storage(dtype),
    )
    return Model(trained, grid.axes, hierarchy, grid.name, grid.attrs, origin)


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
        return Model(trained, axes, tuple(header["hierarchy"]), header["name"], attrs, origin)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFileError(f"'{path}' is damaged ({error}). Fit the model again.") from None


def _grid(
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None,
) -> Grid:
    if is_labelled(data):
        data = from_data_array(data)
    if isinstance(data, Grid):
        if coordinates is not None:
            raise SettingError("Coordinates were given for data that has its own.")
        return data
    values = np.asarray(data)
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
