"""Variables that follow from others: derivatives and means over cells, as CF describes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import Attributes, Axis, is_latitude, is_longitude
from dkrls_cli.grid.inherit import bounds_on, half_way
from dkrls_cli.grid.style import Companion, Style, key_values

EARTH_RADIUS = 6371229.0
"""Radius of the sphere in metres for derivatives per metre: that of most weather models."""

# Standard names of which CF has the tendency, ``tendency_of_X``, as a standard name of its own.
_TENDENCIES = frozenset(
    (
        "air_pressure",
        "air_temperature",
        "eastward_wind",
        "northward_wind",
        "sea_ice_area_fraction",
        "sea_ice_thickness",
        "sea_water_salinity",
        "sea_water_temperature",
        "specific_humidity",
        "surface_air_pressure",
    )
)

# Units of time as CF writes them in products: without a plural.
_SINGULAR = {"days": "day", "hours": "hour", "minutes": "minute", "seconds": "s", "second": "s"}


def derivative_variable(
    name: str, attrs: Attributes, along: Sequence[Axis], *, per_metre: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of a derivative of a variable.

    Parameters
    ----------
    name, attrs
        Name and attributes of the variable.
    along
        The axes by which it is derived, one of them several times for a higher derivative.
    per_metre
        Whether derivatives by latitude and longitude are by metres on the sphere.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> lat = axis_of("lat", [0.0, 1.0], {"units": "degrees_north"})
    >>> derivative_variable("t", {"units": "K"}, [lat, lat])
    ('d2t_dlat2', {'long_name': 'second derivative of t by lat', 'units': 'K degrees_north-2'})
    """
    counts = Counter(axis.name for axis in along)
    by = {axis.name: axis for axis in along}
    order = "" if len(along) == 1 else str(len(along))
    steps = "_".join(f"d{dim}{count if count > 1 else ''}" for dim, count in counts.items())
    words = {1: "derivative", 2: "second derivative"}.get(len(along), f"derivative {len(along)}")
    about: dict[str, Any] = {
        "long_name": f"{words} of {attrs.get('long_name', name)} by {' and '.join(counts)}"
    }
    standard = str(attrs.get("standard_name", ""))
    if len(along) == 1 and along[0].time is not None and standard in _TENDENCIES:
        about["standard_name"] = f"tendency_of_{standard}"
    units = [_unit(by[dim], per_metre) for dim in counts]
    if "units" in attrs and all(units):
        powers = [f"{unit}-{count}" for unit, count in zip(units, counts.values(), strict=True)]
        own = str(attrs["units"]).strip()
        about["units"] = " ".join([*([own] if own not in ("", "1") else []), *powers])
    return f"d{order}{name}_{steps}", about


def _unit(axis: Axis, per_metre: bool) -> str:
    """Return the unit of distances along an axis, for a product of units; empty if not known."""
    if per_metre and is_on_sphere(axis):
        return "m"
    unit = _SINGULAR.get(axis.length_units.lower(), axis.length_units)
    return f"({unit})" if " " in unit or "/" in unit or "-" in unit else unit


def is_on_sphere(axis: Axis) -> bool:
    """Return whether an axis is latitude or longitude in degrees."""
    return is_latitude(axis) or is_longitude(axis)


def cells_on(axis: Axis, style: Style) -> Array:
    """Return the cells (m, 2) of an axis, in the numbers that the user writes.

    They are the bounds of the source at its own coordinates, and elsewhere lie half-way between
    neighbouring coordinates.

    Raises
    ------
    SettingError
        If the axis has text labels, one coordinate only, or coordinates in no order.
    """
    if axis.labels is not None:
        raise SettingError(f"'{axis.name}' has text labels: there is no mean over cells along it.")
    found = bounds_on(style, axis)
    if found is not None and found[0] == "bounds" and found[2].values.ndim == 2:
        return np.asarray(found[2].values, np.float64)
    made = half_way(axis)
    if made is None:
        raise SettingError(
            f"The cells of '{axis.name}' are not known: with {axis.size} coordinates, or in no "
            "order, they have no places half-way. Give coordinates that rise or fall, or a grid "
            "with bounds."
        )
    return _exact_half_way(axis) if made.dtype != np.float64 else np.asarray(made)


def _exact_half_way(axis: Axis) -> Array:
    """Return the cells of an axis that is stored in single precision, in double precision."""
    made = half_way(replace(axis, dtype="float64"))
    assert made is not None
    return np.asarray(made, np.float64)


def cell_numbers(axis: Axis, cells: Array) -> tuple[Array, Array]:
    """Return the ends of cells as numbers of the kernel, the lower first.

    Cells are given in the numbers that the user writes, turns away on a circle.

    Raises
    ------
    SettingError
        If a cell has no width, is not finite, or is wider than the circle.
    """
    low, high = cells.min(axis=1), cells.max(axis=1)
    if axis.turn is not None:
        low, high = _around(axis.plain, cells, axis.turn)
    low, high = (ends + (axis.numbers - axis.plain) for ends in (low, high))
    bad = np.flatnonzero(~(np.isfinite(high) & np.isfinite(low) & (high > low)))
    if axis.turn is not None:
        bad = np.union1d(bad, np.flatnonzero(high - low > axis.turn * (1 + 1e-9)))
    if bad.size:
        first = cells[bad[0]]
        raise SettingError(
            f"Invalid cell {first[0]:g} to {first[1]:g} of '{axis.name}'. Its ends must be "
            "different, finite, and no more than a turn apart."
        )
    return low, high


def _around(centres: Array, cells: Array, turn: float) -> tuple[Array, Array]:
    """Return the ends of cells on a circle that may be given turns away: 359.5 to 0.5 around 0."""
    low, high = cells.min(axis=1), cells.max(axis=1)
    moved = centres[:, None] + np.mod(cells - centres[:, None] + turn / 2, turn) - turn / 2
    away = (centres < low) | (centres > high)
    return np.where(away, moved.min(axis=1), low), np.where(away, moved.max(axis=1), high)


def mean_variable(
    attrs: Attributes, style: Style, axes: Sequence[Axis], cells: Mapping[str, Array]
) -> tuple[dict[str, Any], Style]:
    """Return attributes and style of means over cells: cell methods, and the bounds of the cells.

    Parameters
    ----------
    attrs, style
        Attributes of the variable, and its style.
    axes
        Axes of the means.
    cells
        Cells (m, 2) of the dimensions over whose cells means are taken, as the user writes them.
    """
    dims = [axis.name for axis in axes if axis.name in cells]
    known = str(attrs.get("cell_methods", "")).strip()
    methods = " ".join([*(f"{dim}:" for dim in dims), "mean"])
    text = known if methods in known else " ".join(filter(None, [known, methods]))
    lost = {name for name, one in style.companions.items() if set(one.dims) & set(dims)}
    kept = {name: one for name, one in style.companions.items() if name not in lost}
    changed = replace(style, companions=kept)
    for axis in axes:
        if axis.name in cells:
            changed = with_bounds(changed, axis, cells[axis.name])
    return {**attrs, "cell_methods": text}, changed


def with_bounds(style: Style, axis: Axis, cells: Array) -> Style:
    """Return a style with the cells (m, 2) of an axis, in single precision if that is exact."""
    _, called = style.bounds.get(axis.name, ("", f"{axis.name}_bnds"))
    stored = cells.astype(np.result_type(axis.stored.dtype, np.float32))
    same = np.array_equal(stored.astype(np.float64), cells)
    companion = Companion((axis.name, "bnds"), stored if same else cells)
    return replace(
        style,
        bounds={**style.bounds, axis.name: ("bounds", called)},
        companions={**style.companions, called: companion},
        coordinates={**style.coordinates, axis.name: key_values(axis)},
    )
