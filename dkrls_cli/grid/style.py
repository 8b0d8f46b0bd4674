"""Styles: how a file keeps a variable and what stands beside it, so that answers are written alike.

A style is taken from the file of the data and travels with the grid and the model. What of it is
true for an output depends on the coordinates of that output: see :mod:`dkrls_cli.grid.inherit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.grid.axes import Attributes, Axis


@dataclass(frozen=True)
class Packing:
    """How a file stores real numbers as integers: number = integer * scale_factor + add_offset.

    Attributes
    ----------
    dtype
        Type of the stored integers.
    attrs
        Attributes of the integers, in the types of the file: scale_factor, add_offset, _FillValue,
        missing_value, _Unsigned, valid_range, valid_min and valid_max, as far as it has them.
    """

    dtype: str
    attrs: Attributes

    @property
    def scale(self) -> float:
        """Difference of two neighbouring numbers."""
        return float(self.attrs.get("scale_factor", 1.0))

    @property
    def offset(self) -> float:
        """The number that integer 0 stands for."""
        return float(self.attrs.get("add_offset", 0.0))

    @property
    def marks(self) -> list[Any]:
        """Numbers that mark missing values, that of ``_FillValue`` first."""
        return [self.attrs[k] for k in ("_FillValue", "missing_value") if k in self.attrs]

    @property
    def valid(self) -> dict[str, list[float]]:
        """Limits of valid numbers: valid_range, valid_min and valid_max, unpacked.

        Limits of another type than the integers are left out, as are those of integers that are
        read as unsigned: it is not known what they count.
        """
        names = {key: key for key in _LIMITS}
        if self.scale < 0:
            names |= {"valid_min": "valid_max", "valid_max": "valid_min"}
        return {
            names[key]: sorted((limits.ravel() * self.scale + self.offset).tolist())
            for key, limits in self._limits.items()
            if self._counts_integers(limits)
        }

    @property
    def unclear(self) -> dict[str, list[Any]]:
        """Limits of valid numbers of which it is not known what they count, as they are stored."""
        return {
            key: limits.ravel().tolist()
            for key, limits in self._limits.items()
            if not self._counts_integers(limits)
        }

    @property
    def _limits(self) -> dict[str, NDArray[Any]]:
        """Limits of valid numbers, as they are stored."""
        return {key: np.asarray(self.attrs[key]) for key in _LIMITS if key in self.attrs}

    def _counts_integers(self, limits: NDArray[Any]) -> bool:
        """Return whether limits are surely in units of the integers."""
        return limits.dtype.name == self.dtype and "_Unsigned" not in self.attrs


# Attributes that limit valid numbers.
_LIMITS = ("valid_range", "valid_min", "valid_max")


@dataclass(frozen=True, eq=False)
class Companion:
    """A variable that describes the data: a coordinate beside the axes, bounds, a map projection.

    Attributes
    ----------
    dims
        Its dimensions: of the grid, and for bounds one more for the vertices of a cell. None for a
        scalar.
    values
        Its values, as the file stores them.
    attrs
        Its attributes.
    """

    dims: tuple[str, ...]
    values: NDArray[Any]
    attrs: Attributes = field(default_factory=dict)


@dataclass(frozen=True)
class Style:
    """How a file keeps a variable, so that answers can be written alike.

    Attributes
    ----------
    dtype
        Floating type of the values, where they are not packed.
    fill
        The number that marks a missing value among floating numbers, if there is one.
    marks
        Attributes that name this number: ``_FillValue``, ``missing_value``, or both.
    packing
        How the values are stored as integers, if they are.
    global_attrs
        Attributes of the whole file.
    unlimited
        Dimensions along which the file can grow.
    grid_mapping
        The attribute that names the map projection, which is among the companions.
    companions
        Variables beside the data, by name.
    bounds
        By dimension, the attribute (``bounds`` or ``climatology``) that names the bounds of its
        cells, and that name. The bounds are among the companions.
    coordinates
        Coordinates of the file by dimension, numbers or texts: companions are in their order.
    """

    dtype: str = "float64"
    fill: float | None = None
    marks: tuple[str, ...] = ("_FillValue",)
    packing: Packing | None = None
    global_attrs: Attributes = field(default_factory=dict)
    unlimited: tuple[str, ...] = ()
    grid_mapping: str | None = None
    companions: Mapping[str, Companion] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    coordinates: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def mappings(self) -> tuple[str, ...]:
        """Names of the map projections: ``crs``, or those with a colon in ``crs: x y``."""
        words = (self.grid_mapping or "").split()
        named = [word[:-1] for word in words if word.endswith(":")]
        return tuple(named or words[:1])

    @property
    def of_errors(self) -> Style:
        """The style of standard errors: in single precision where the data is packed.

        The packing of the data does not fit them: its step is the scale of the data, not of errors.
        """
        if self.packing is None:
            return self
        return replace(self, packing=None, dtype="float32", fill=None)

    def after(self, line: str) -> Style:
        """Return the style with one more line before the history of the file."""
        lines = [line, str(self.global_attrs.get("history", ""))]
        history = {"history": "\n".join(filter(None, lines))}
        return replace(self, global_attrs={**self.global_attrs, **history})


def source_coordinates(axes: Sequence[Axis]) -> dict[str, NDArray[Any]]:
    """Return the coordinates of axes as a style keeps them: texts, or the numbers of the file."""
    return {axis.name: key_values(axis) for axis in axes}


def key_values(axis: Axis) -> NDArray[Any]:
    """Return the coordinates of an axis in the form by which they are compared with a style's."""
    return axis.values if axis.labels is not None else axis.plain


def join_styles(styles: Sequence[Style], dim: str, axis: Axis, *, alike: bool) -> Style:
    """Return the style of several files joined along one dimension.

    Parameters
    ----------
    styles
        Styles of the files, in order. All but the companions is that of the first; a packing only
        if all files have it.
    dim
        The dimension along which the files are joined.
    axis
        The axis of all files together.
    alike
        Whether the files count that dimension in the same units. Otherwise companions along it
        would have to be converted, and are left out.
    """
    first = styles[0]
    companions = {}
    for name in first.companions:
        every = [style.companions[name] for style in styles if name in style.companions]
        joined = _join_companions(every, dim, alike) if len(every) == len(styles) else None
        if joined is not None:
            companions[name] = joined
    coordinates = {**first.coordinates, dim: key_values(axis)}
    packings = {_packing_key(style.packing) for style in styles}
    packing = first.packing if len(packings) == 1 else None
    return replace(first, companions=companions, coordinates=coordinates, packing=packing)


def _packing_key(packing: Packing | None) -> tuple[str, float, float] | None:
    """Return what decides which numbers a packing can hold."""
    return None if packing is None else (packing.dtype, packing.scale, packing.offset)


def grow_style(style: Style, axis: Axis, added: Style | None = None) -> Style:
    """Return the style of a model that has grown along one axis.

    Parameters
    ----------
    style
        The style before.
    axis
        The axis as it is now. All its coordinates are data, as those of the source were.
    added
        The style of the new data, if it counts the axis in the same units. Companions along the
        axis are kept where both have them.
    """
    dim, wanted = axis.name, key_values(axis)
    known = style.coordinates.get(dim)
    if known is None or (added is None and np.isin(wanted, known).all()):
        return style
    parts = [style] if added is None or dim not in added.coordinates else [style, added]
    keys = np.concatenate([part.coordinates[dim] for part in parts]).tolist()
    place = {value: position for position, value in enumerate(keys)}  # of two, the one that is new
    found = [place.get(value, -1) for value in wanted.tolist()]
    companions = {}
    for name in style.companions:
        every = [part.companions[name] for part in parts if name in part.companions]
        joined = _join_companions(every, dim, True) if len(every) == len(parts) else None
        if joined is not None and dim in joined.dims and -1 in found:
            joined = None
        if joined is not None and dim in joined.dims:
            values = np.take(joined.values, found, axis=joined.dims.index(dim))
            joined = replace(joined, values=values)
        if joined is not None:
            companions[name] = joined
    return replace(style, companions=companions, coordinates={**style.coordinates, dim: wanted})


def _join_companions(parts: Sequence[Companion], dim: str, alike: bool) -> Companion | None:
    """Return the companions of several files as one, or None if they do not make one."""
    first = parts[0]
    place = first.dims.index(dim) if dim in first.dims else None
    shapes = [[*part.values.shape] for part in parts]
    if place is not None:
        shapes = [[*shape[:place], *shape[place + 1 :]] for shape in shapes]
    units = [part.attrs.get("units") for part in parts]
    if any(part.dims != first.dims for part in parts) or shapes.count(shapes[0]) < len(parts):
        return None
    if units.count(units[0]) < len(parts):
        return None
    if place is None:
        same = all(same_values(part.values, first.values) for part in parts)
        return first if same else None
    if not alike:
        return None
    return replace(first, values=np.concatenate([part.values for part in parts], axis=place))


def same_values(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return whether two arrays are equal; missing values equal each other."""
    numbers = first.dtype.kind == "f" and second.dtype.kind == "f"
    return np.array_equal(first, second, equal_nan=numbers)
