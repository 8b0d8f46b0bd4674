"""Inheritance from a source: companions, bounds and attributes that hold at other coordinates.

Answers are given at coordinates of the source, at some of them, or between them. A station name or
the latitude of a cell is known at coordinates of the source only; a mean over a month is one only
at the months of the source. What no longer holds is left out: a file must not say what is not so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.grid.axes import Attributes, Axis, is_latitude
from dkrls_cli.grid.cf import role_of
from dkrls_cli.grid.rotated import places_on
from dkrls_cli.grid.style import Companion, Style, key_values

Positions = Mapping[str, "NDArray[np.intp] | None"]
"""Positions of coordinates in the source, by dimension; None if one of them is not there."""

BOUNDS = ("bounds", "climatology")
"""Attributes that name the bounds of cells."""
# Attribute that names the terms of a formula, as ``a: height b: sigma``.
_FORMULA = "formula_terms"
# Decimals of degrees to which longitudes are compared after they are moved by whole turns.
_DIGITS = 9
# Degrees of latitude of the poles, beyond which no cell reaches.
_POLE = 90.0
# Words of a ``cell_methods`` attribute; what stands in parentheses is one word.
_WORDS = re.compile(r"\([^)]*\)|[^\s()]+")
# Standard names of horizontal coordinates besides those in degrees of the earth.
_HORIZONTAL = (
    "grid_latitude",
    "grid_longitude",
    "projection_x_coordinate",
    "projection_y_coordinate",
)
# Attributes of a file that state the extent of its coordinates, as ACDD names them.
_EXTENT = re.compile(
    r"geospatial_(bounds|(lat|lon|vertical)_(min|max|resolution))"
    r"|time_coverage_(start|end|duration|resolution)"
)
# Attributes that hold only on the whole grid of the source.
_OF_THE_GRID = ("grid_type", "CDI_grid_type", "CDI_grid_num_LPE")


def positions_on(style: Style, axes: Sequence[Axis]) -> dict[str, NDArray[np.intp] | None]:
    """Return where the coordinates of axes are in the source of a style, by dimension."""
    return {axis.name: _positions(axis, style.coordinates.get(axis.name)) for axis in axes}


def _positions(axis: Axis, known: NDArray[Any] | None) -> NDArray[np.intp] | None:
    """Return where the coordinates are among known ones, or None if one is not among them."""
    asked = key_values(axis)
    if known is None or (known.dtype.kind in "US") != (asked.dtype.kind in "US"):
        return None
    if axis.turn is not None:
        asked, known = (_on_the_circle(degrees, axis.turn) for degrees in (asked, known))
    if np.array_equal(asked, known):
        return np.arange(asked.size)
    place = {value: position for position, value in reversed(list(enumerate(known.tolist())))}
    found = [place.get(value) for value in asked.tolist()]
    return None if None in found else np.array(found, np.intp)


def _on_the_circle(degrees: Array, turn: float) -> Array:
    return np.asarray(np.round(np.mod(degrees, turn), _DIGITS) % turn, np.float64)


def companions_on(style: Style, axes: Sequence[Axis]) -> dict[str, Companion]:
    """Return the companions that hold on these axes, at the coordinates of the axes.

    Scalars always hold. A companion along dimensions of the grid holds where all coordinates along
    them are coordinates of the source; latitudes and longitudes of a rotated grid are known from
    its pole elsewhere. A companion that an axis stands for is left out, and so are the bounds of
    axes, see :func:`bounds_on`, and of coordinates that are not there.

    Parameters
    ----------
    style
        Companions and coordinates of the source.
    axes
        Axes of the output.

    Returns
    -------
    dict
        Companions by name.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> station = Companion(("x",), np.array(["a", "b", "c"]))
    >>> style = Style(companions={"station": station}, coordinates={"x": np.array([1.0, 2.0, 3.0])})
    >>> companions_on(style, [axis_of("x", [3.0, 1.0])])["station"].values.tolist()
    ['c', 'a']
    >>> companions_on(style, [axis_of("x", [2.5])])
    {}
    """
    where = positions_on(style, axes)
    of_axes = {name for _, name in style.bounds.values()}
    found = {
        name: taken
        for name, companion in style.companions.items()
        if name not in where and name not in of_axes
        if (taken := _take(companion, where, style)) is not None
    }
    places = {} if _all_known(where) else places_on(style, axes)
    found |= {name: one for name, one in places.items() if name not in found}
    pointed = {_bounds_name(one.attrs) for one in style.companions.values()} - {None}
    parents = {_bounds_name(one.attrs) for one in found.values()}
    kept = {name: one for name, one in found.items() if name not in pointed or name in parents}
    return {name: _without_lost(one, kept) for name, one in kept.items()}


def _all_known(where: Positions) -> bool:
    return all(positions is not None for positions in where.values())


def _bounds_name(attrs: Attributes) -> str | None:
    return next((str(attrs[key]) for key in BOUNDS if key in attrs), None)


def _without_lost(companion: Companion, kept: Mapping[str, Companion]) -> Companion:
    """Return a companion that names no bounds and no terms of a formula which are not written."""
    named = {key: [str(companion.attrs[key])] for key in BOUNDS if key in companion.attrs}
    if _FORMULA in companion.attrs:
        named[_FORMULA] = str(companion.attrs[_FORMULA]).split()[1::2]
    gone = [key for key, names in named.items() if not set(names) <= kept.keys()]
    attrs = {key: value for key, value in companion.attrs.items() if key not in gone}
    return replace(companion, attrs=attrs) if gone else companion


def _take(companion: Companion, where: Positions, style: Style) -> Companion | None:
    """Return a companion at the positions of the output, or None if it does not hold there."""
    values = companion.values
    for place, dim in enumerate(companion.dims):
        if dim not in where and dim not in style.coordinates:
            continue  # vertices of cells
        positions = where.get(dim)
        if positions is None or values.shape[place] != style.coordinates[dim].size:
            return None
        if not _is_whole(positions, values.shape[place]):
            values = np.take(values, positions, axis=place)
    return replace(companion, values=values)


def _is_whole(positions: NDArray[np.intp], size: int) -> bool:
    return positions.size == size and np.array_equal(positions, np.arange(size))


def bounds_on(style: Style, axis: Axis) -> tuple[str, str, Companion] | None:
    """Return the bounds of the cells of an axis, if the source has bounds for that dimension.

    At coordinates of the source they are those of the source; elsewhere they lie half-way between
    neighbouring coordinates, and at the poles at most. There are none where that cannot be said:
    for a single coordinate, for coordinates in no order, and for the bounds of a climatology.

    Returns
    -------
    tuple or None
        The attribute of the axis that names the bounds, their name, and the bounds.
    """
    if axis.name not in style.bounds or axis.labels is not None:
        return None
    attribute, name = style.bounds[axis.name]
    own = style.companions.get(name)
    positions = _positions(axis, style.coordinates.get(axis.name))
    if own is not None and positions is not None:
        where = {axis.name: positions}
        taken = _take(own, where, style)
        if taken is not None:
            known = style.coordinates[axis.name][positions]
            turns = (axis.plain - known)[:, None].round() if axis.turn else 0.0
            shifted = taken.values + turns if np.any(turns) else taken.values
            return attribute, name, replace(taken, values=shifted)
    made = None if attribute != "bounds" else half_way(axis)
    if made is None:
        return None
    vertices = own.dims[-1] if own is not None else "bnds"
    return attribute, name, Companion((axis.name, vertices), made)


# Part by which cells beside the seam of a circle may overlap: rounding.
_ROUNDING = 1e-9


def half_way(axis: Axis) -> NDArray[Any] | None:
    """Return cells (m, 2) that meet half-way between coordinates, or None if they have no order."""
    plain = axis.plain
    along = np.unwrap(plain, period=axis.turn) if axis.turn else plain
    steps = np.diff(along)
    if not steps.size or not (np.all(steps > 0) or np.all(steps < 0)):
        return None
    first, last = steps[0] / 2, steps[-1] / 2
    if axis.turn is not None:  # the cells beside the seam meet in its middle, if they would overlap
        seam = np.sign(steps[0]) * (axis.turn - abs(along[-1] - along[0]))
        if abs(first + last) > (1.0 + _ROUNDING) * abs(seam):
            first = last = seam / 2
    edges = np.concatenate([[along[0] - first], along[:-1] + steps / 2, [along[-1] + last]])
    cells = np.stack([edges[:-1], edges[1:]], axis=1) + (plain - along)[:, None]
    if is_latitude(axis) and np.abs(plain).max() <= _POLE:
        cells = np.clip(cells, -_POLE, _POLE)
    stored = np.result_type(axis.stored.dtype, np.float32)
    return cells.astype(stored)


def true_attrs(attrs: Attributes, style: Style, axes: Sequence[Axis]) -> dict[str, Any]:
    """Return those attributes of a variable that hold on these axes; ranges are not looked at."""
    where = positions_on(style, axes)
    kept = dict(attrs)
    if "cell_methods" in kept:
        methods = _true_methods(str(kept.pop("cell_methods")), axes, where)
        kept |= {"cell_methods": methods} if methods else {}
    if not is_whole(style, axes):
        kept = {key: value for key, value in kept.items() if key not in _OF_THE_GRID}
    return kept


def true_file_attrs(style: Style, axes: Sequence[Axis]) -> dict[str, Any]:
    """Return the attributes of the file that hold on these axes: not the extent of another grid."""
    if is_whole(style, axes):
        return dict(style.global_attrs)
    return {k: v for k, v in style.global_attrs.items() if not _EXTENT.fullmatch(k)}


def is_whole(style: Style, axes: Sequence[Axis]) -> bool:
    """Return whether the axes are those of the source, with all coordinates in its order."""
    where = positions_on(style, axes)
    return all(
        positions is not None and _is_whole(positions, style.coordinates[dim].size)
        for dim, positions in where.items()
    )


def _true_methods(text: str, axes: Sequence[Axis], where: Positions) -> str:
    """Return the cell methods that hold: those along coordinates that are all of the source."""
    changed = _changed_names(axes, where)
    methods = _methods(text)
    if methods is None:  # not as CF has it: nothing is known about its parts
        return "" if changed else text
    held = [
        words
        for words in methods
        if not changed & {word.rstrip(":") for word in words if _names(word)}
    ]
    return text if len(held) == len(methods) else " ".join(word for words in held for word in words)


def _changed_names(axes: Sequence[Axis], where: Positions) -> set[str]:
    """Return the names by which cell methods call dimensions that have other coordinates now."""
    names = set()
    for axis in axes:
        if where[axis.name] is not None:
            continue
        standard = str(axis.attrs.get("standard_name", ""))
        role = "time" if axis.time is not None else role_of(axis.name, axis.attrs)
        names |= {axis.name, standard, role or ""} - {""}
        if role in ("latitude", "longitude") or standard in _HORIZONTAL:
            names.add("area")
    return names


def _methods(text: str) -> list[list[str]] | None:
    """Return the words of every cell method, or None if the text does not begin with a name."""
    words, methods = _WORDS.findall(text), list[list[str]]()
    for before, word in zip(["", *words], words, strict=False):
        if _names(word) and not _names(before):
            methods.append([])
        if not methods:
            return None
        methods[-1].append(word)
    return methods


def _names(word: str) -> bool:
    """Return whether a word of a cell method names a dimension, as ``time:`` does."""
    return word.endswith(":") and not word.startswith("(")
