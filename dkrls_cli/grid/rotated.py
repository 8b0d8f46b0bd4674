"""Rotated poles: where on the earth the cells of a rotated grid are, between its coordinates too.

A file with a rotated pole has the true latitude and longitude of every cell as fields. At other
coordinates they follow from the pole, by the formula of the grid mapping
``rotated_latitude_longitude`` of the CF conventions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.grid.axes import Attributes, Axis
from dkrls_cli.grid.cf import role_of
from dkrls_cli.grid.style import Companion, Style

# Degrees by which fields of a file may differ from the formula: they are stored in single precision
# and rounded; a sphere and an ellipsoid, or another pole, differ by more.
_TOLERANCE = 2e-3


def true_places(latitude: Array, longitude: Array, pole: Attributes) -> tuple[Array, Array]:
    """Return the latitude and longitude on the earth of a grid with a rotated pole.

    Parameters
    ----------
    latitude, longitude
        Coordinates (m,) and (n,) of the rotated grid, in degrees.
    pole
        Attributes of the grid mapping.

    Returns
    -------
    tuple of arrays
        Latitudes and longitudes (m, n) in degrees, the latter from -180 to 180.

    Examples
    --------
    >>> pole = {"grid_north_pole_latitude": 40.0, "grid_north_pole_longitude": -170.0}
    >>> lat, lon = true_places(np.array([0.0]), np.array([0.0]), pole)
    >>> lat.round(9).tolist(), lon.round(9).tolist()
    ([[50.0]], [[10.0]])
    """
    phi = np.radians(float(pole["grid_north_pole_latitude"]))
    lam = np.radians(float(pole["grid_north_pole_longitude"]))
    turn = np.radians(float(pole.get("north_pole_grid_longitude", 0.0)))
    lat = np.radians(latitude)[:, None]
    lon = np.radians(longitude)[None, :] + turn
    north = np.sin(phi) * np.sin(lat) + np.cos(phi) * np.cos(lat) * np.cos(lon)
    along = np.cos(phi) * np.sin(lat) - np.sin(phi) * np.cos(lat) * np.cos(lon)
    across = np.cos(lat) * np.sin(lon)
    x = np.cos(lam) * along + np.sin(lam) * across
    y = np.sin(lam) * along - np.cos(lam) * across
    return np.degrees(np.arcsin(np.clip(north, -1, 1))), np.degrees(np.arctan2(y, x))


def places_on(style: Style, axes: Sequence[Axis]) -> dict[str, Companion]:
    """Return the fields of latitude and longitude of a rotated grid at other coordinates.

    They are returned only if the formula gives those of the source at its own coordinates.
    """
    pole = _pole(style)
    named = {str(axis.attrs.get("standard_name", "")): axis for axis in axes}
    rows, columns = named.get("grid_latitude"), named.get("grid_longitude")
    if pole is None or rows is None or columns is None:
        return {}
    dims = (rows.name, columns.name)
    if not set(dims) <= style.coordinates.keys():
        return {}
    known = true_places(style.coordinates[dims[0]], style.coordinates[dims[1]], pole)
    asked = true_places(rows.plain, columns.plain, pole)
    found = {}
    for name, field in style.companions.items():
        role = role_of(name, field.attrs)
        if role in ("latitude", "longitude") and field.dims == dims:
            place = 0 if role == "latitude" else 1
            if _agree(known[place], field.values):
                middle = float(np.mean(field.values)) if place else 0.0
                values = _around(asked[place] - middle) + middle
                found[name] = replace(field, values=values.astype(field.values.dtype))
    return found


def _pole(style: Style) -> Attributes | None:
    """Return the attributes of the rotated pole among the map projections of a style."""
    for name in style.mappings:
        attrs = style.companions[name].attrs if name in style.companions else {}
        whole = {"grid_north_pole_latitude", "grid_north_pole_longitude"} <= attrs.keys()
        if whole and attrs.get("grid_mapping_name") == "rotated_latitude_longitude":
            return attrs
    return None


def _agree(known: Array, field: NDArray[Any]) -> bool:
    """Return whether a field of degrees is what the formula gives."""
    if known.shape != field.shape or field.dtype.kind != "f":
        return False
    return bool(np.abs(_around(known - field)).max() <= _TOLERANCE)


def _around(degrees: Array) -> Array:
    """Return differences of degrees as the shorter way round."""
    return np.asarray((degrees + 180.0) % 360.0 - 180.0)
