"""The model that users hold: a cascade with the names, units and origin of its data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli import __version__
from dkrls_cli.arrays import Array, Mask, Slices
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Bars, calibrate, variance_on_grid
from dkrls_cli.cascade.growing import Growing, SliceStore
from dkrls_cli.cascade.level import Level
from dkrls_cli.circle import outside
from dkrls_cli.errors import ModelFileError, SettingError
from dkrls_cli.files import npz as modelfile
from dkrls_cli.grid.axes import Attributes, Axis
from dkrls_cli.grid.grid import Grid, Style, std_variable, to_data_array
from dkrls_cli.model.record import (
    axis_from,
    axis_record,
    bars_from,
    bars_record,
    cascade_from,
    cascade_record,
    filled_from,
    from_json,
    to_json,
)

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
    store: SliceStore | None = None

    @cached_property
    def _calibrated(self) -> Bars:
        """The error bars, without those of filled cells."""
        return calibrate(self.cascade) if self.known_bars is None else self.known_bars

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
        return self.cascade.shape

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
        """Type in which the data is stored: float64 or float32."""
        return str(self.cascade.core.dtype.name)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of directions of every kernel that answers use, in the order of the data."""
        return tuple(spectrum.rank for spectrum in self.cascade.spectra)

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Number of directions of the data that are stored, in the order of the data."""
        return self.cascade.core.shape

    @property
    def grows(self) -> int:
        """Index of the dimension that grows: that of the last level."""
        return self.dims.index(self.hierarchy[-1])

    @property
    def unobserved(self) -> Mask | None:
        """Which cells were missing, in the shape of the grid; None if none was."""
        known = self.known_bars
        return self.filled if known is None or known.unobserved is None else known.unobserved

    @property
    def errors(self) -> tuple[float, ...]:
        """Root mean square error per axis on slices left out, or on cells under a joint ridge."""
        return tuple(np.broadcast_to(self.bars.errors, len(self.axes)).tolist())

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels, from level 0 to the last."""
        return tuple(self.cascade.levels[self.dims.index(name)] for name in self.hierarchy)

    def predict(self, *, smooth: bool = False, **at: Any) -> xr.DataArray:
        """Return the answers on the product grid of the given coordinates.

        Parameters
        ----------
        smooth
            Ask the model at training coordinates as well, where it otherwise returns the data: see
            :mod:`dkrls_cli.cascade.cascade`.
        **at
            Coordinates by dimension: numbers, dates or labels as in the data. A dimension that is
            not named keeps its training coordinates; a scalar drops its dimension.

        Returns
        -------
        xarray.DataArray
            The answers, with coordinates and attributes of the data.

        Raises
        ------
        SettingError
            If the model has no such dimension, or a coordinate cannot be read.

        Examples
        --------
        >>> from dkrls_cli import fit
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
        """Return the standard errors of :meth:`predict`; 0 where the answer is the data itself."""
        axes = self.axes_at(at)
        spread = self.variance(self.queries(axes), smooth=smooth)
        name, attrs = self.std_variable()
        errors = to_data_array(np.sqrt(spread), axes, name, attrs)
        return errors.isel({dim: 0 for dim, value in at.items() if np.ndim(value) == 0})

    def std_variable(self) -> tuple[str, dict[str, Any]]:
        """Return name and attributes of the standard error, after the CF conventions."""
        return std_variable(self.name, self.attrs)

    def predict_points(self, *, smooth: bool = False, **at: Any) -> Array:
        """Return the answers at scattered points: equally long coordinates for every dimension."""
        return self.cascade.predict_points(self._points(at), smooth=smooth)

    def std_points(self, *, smooth: bool = False, **at: Any) -> Array:
        """Return the standard errors of :meth:`predict_points`."""
        return self.std_at(self._points(at), smooth=smooth)

    def variance(self, queries: Sequence[Array], *, smooth: bool = False) -> Array:
        """Return the variance of the answers on the product grid of these numbers."""
        return variance_on_grid(self.bars, self.cascade, queries, smooth=smooth)

    def _points(self, at: Mapping[str, Any]) -> list[Array]:
        missing = [dim for dim in self.dims if dim not in at]
        if missing:
            raise SettingError(f"Points need a coordinate for '{missing[0]}' as well.")
        return self.queries(self.axes_at(at))

    def values_on(self, axes: Sequence[Axis], *, smooth: bool = False) -> Array:
        """Return the answers on the product grid of axes that :meth:`axes_at` returned."""
        return self.cascade.predict(self.queries(axes), smooth=smooth)

    def std_on(self, axes: Sequence[Axis], *, smooth: bool = False) -> Array:
        """Return the standard errors of :meth:`values_on`."""
        return np.sqrt(self.variance(self.queries(axes), smooth=smooth))

    def blocks_on(
        self, axes: Sequence[Axis], cells: int, *, std: bool = False, smooth: bool = False
    ) -> Iterator[tuple[Slices, Array, Array | None]]:
        """Yield the answers of :meth:`values_on` in C order, in blocks of about `cells` cells.

        Each block is its slices, its answers, and its standard errors or None without `std`.
        """
        queries = self.queries(axes)
        variance = self.bars.variance_blocks(self.cascade, queries, smooth=smooth) if std else None
        for part, values in self.cascade.predict_blocks(queries, cells, smooth=smooth):
            yield part, values, None if variance is None else np.sqrt(variance(part))

    def values_at(self, points: Sequence[Array], *, smooth: bool = False) -> Array:
        """Return the answers at scattered points, given as the numbers of every axis."""
        return self.cascade.predict_points(points, smooth=smooth)

    def std_at(self, points: Sequence[Array], *, smooth: bool = False) -> Array:
        """Return the standard errors of :meth:`values_at`."""
        return np.sqrt(self.bars.variance_at_points(self.cascade, points, smooth=smooth))

    def outside(self, axes: Sequence[Axis]) -> list[Mask]:
        """Return, for every axis, which coordinates lie beyond the training coordinates."""
        return [
            outside(axis.numbers, own.numbers, level.kernel.period)
            for axis, own, level in zip(axes, self.axes, self.cascade.levels, strict=True)
        ]

    def refuse_outside(self, axes: Sequence[Axis]) -> None:
        """Raise SettingError if a coordinate lies beyond the training coordinates."""
        for axis, own, beyond in zip(axes, self.axes, self.outside(axes), strict=True):
            if beyond.any():
                low, high = own.take([own.numbers.argmin(), own.numbers.argmax()]).texts
                first = axis.take(np.flatnonzero(beyond)[:1]).texts[0]
                raise SettingError(
                    f"{int(beyond.sum())} of {axis.size} coordinates of '{axis.name}' are outside "
                    f"the training range {low} to {high}, the first {first}.",
                    setting="allow_extrapolation",
                )

    def weights(self, depth: int) -> xr.DataArray:
        """Return the paper's weights after levels 0 to `depth` - 1 (1: Initial Modeling)."""
        if not 1 <= depth <= len(self.hierarchy):
            raise SettingError(f"Invalid depth {depth}. It must be 1 to {len(self.hierarchy)}.")
        solved = [self.dims.index(name) for name in self.hierarchy[:depth]]
        values = self.cascade.weights(solved)
        label = f"weights of '{self.name}' after {', '.join(self.hierarchy[:depth])}"
        return to_data_array(values, self.axes, f"weights_{depth}", {"long_name": label})

    def axes_at(self, at: Mapping[str, Any]) -> list[Axis]:
        """Return the axes at the given coordinates; a dimension that is not named keeps its own."""
        unknown = [dim for dim in at if dim not in self.dims]
        if unknown:
            raise SettingError(
                f"The model has no dimension '{unknown[0]}'. It has {', '.join(self.dims)}."
            )
        return [axis.at(at[axis.name]) if axis.name in at else axis for axis in self.axes]

    def queries(self, axes: Sequence[Axis]) -> list[Array]:
        """Return the numbers to ask the cascade for on these axes."""
        return [
            known if axis.numbers is own.numbers else axis.numbers
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

        Returns
        -------
        Model
            A new model; this one stays as it is.

        Raises
        ------
        InputError
            If the slices differ from the model in dimensions, units, calendar or coordinates, or
            a coordinate is in the model already and `replace` is False.

        Examples
        --------
        >>> from dkrls_cli import fit
        >>> x, t = np.linspace(0, 3, 20), np.arange(30.0)
        >>> values = np.outer(np.sin(x), np.cos(t / 4))
        >>> model = fit(values[:, :29], {"x": x, "t": t[:29]})
        >>> model.update(values[:, 29:], t[29:]).cascade.shape
        (20, 30)
        """
        from dkrls_cli.model.update import add_slices, align

        values, new = align(self, data, coordinates)
        return add_slices(self, values, new, replace=replace, window=window, max_rank=max_rank)

    @property
    def growing(self) -> Growing:
        """The cascade, the axis along which it grows, and the store of its slices."""
        return Growing(self.cascade, self.grows, self.store)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the model file, whole or not at all.

        Raises
        ------
        OutputError
            If the file exists and `overwrite` is False, or cannot be written.
        """
        header, arrays = cascade_record(self.cascade)
        bars, distance = bars_record(self._calibrated)
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
        filled = {} if self.filled is None else {"filled": np.packbits(self.filled)}
        modelfile.write(path, header, {**arrays, **distance, **filled}, overwrite=overwrite)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file.

    Parameters
    ----------
    path
        A file that :meth:`Model.save` or ``dkrls fit`` wrote.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, or of a version that this program cannot read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dkrls_cli import fit
    >>> model = fit(np.outer(np.arange(9.0), np.arange(8.0)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder) / "m.npz")
    ...     load_model(pathlib.Path(folder) / "m.npz").dims
    ('dim_0', 'dim_1')
    """
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
        if sorted(hierarchy) != sorted(level.name for level in trained.levels):
            raise ValueError("hierarchy and levels have different names")
        bars = bars_from(header["bars"], arrays, trained.shape, trained.joint_ridge is not None)
        filled = filled_from(arrays, trained.shape)
        return Model(trained, axes, hierarchy, bars, header["name"], attrs, style, origin, filled)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFileError(f"'{path}' is damaged ({error}). Fit the model again.") from None
