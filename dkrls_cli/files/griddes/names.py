"""Grids of the globe by their short names: regular ones, Gaussian ones, and points."""

from __future__ import annotations

import re

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.gaussian import gaussian_latitudes
from dkrls_cli.files.griddes.globe import MOST, checked_axes, globe_axes
from dkrls_cli.grid.axes import Axis

GRID_NAMES = "r360x180, global_0.5, n80, F80, t63grid, tl127grid, lon=10/lat=50"
"""An example of every form of name, for messages."""

_COUNT, _NUMBER = r"(\d+)", r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_REGULAR = re.compile(rf"r{_COUNT}x{_COUNT}", re.IGNORECASE)
_GLOBAL = re.compile(rf"global_{_NUMBER}", re.IGNORECASE)
_GAUSSIAN = re.compile(rf"[nf]{_COUNT}", re.IGNORECASE)
_TRUNCATION = re.compile(rf"t(l?){_COUNT}grid", re.IGNORECASE)
_POINT = re.compile(rf"lon={_NUMBER}[/_]lat={_NUMBER}", re.IGNORECASE)


def named_grid(name: str) -> list[Axis] | None:
    """Return the axes of a grid by its name, or None if the name has no known form."""
    if match := _REGULAR.fullmatch(name):
        return _regular(name, *(int(word) for word in match.groups()))
    if match := _GLOBAL.fullmatch(name):
        return _global(name, float(match[1]))
    if match := _GAUSSIAN.fullmatch(name):
        return _gaussian(name, 2 * int(match[1]))
    if match := _TRUNCATION.fullmatch(name):
        return _gaussian(name, _rows_of_truncation(int(match[2]), linear=bool(match[1])))
    if match := _POINT.fullmatch(name):
        lon, lat = (np.array([float(word)]) for word in match.groups())
        return checked_axes(f"Grid '{name}'", lon, lat)
    return None


def _regular(name: str, columns: int, rows: int) -> list[Axis]:
    """Return longitudes from 0, and cell centres of latitude; an odd number of rows has the poles.

    An odd number of rows is CDO's way to have a row at the equator and at both poles.
    """
    _refuse_sizes(name, columns, rows)
    if rows == 1:
        lat = np.zeros(1)
    elif rows % 2:
        lat = np.linspace(-90.0, 90.0, rows)
    else:
        lat = (np.arange(rows) + 0.5) * 180.0 / rows - 90.0
    return globe_axes(_circle(columns), lat)


def _global(name: str, step: float) -> list[Axis]:
    """Return the centres of cells of `step` degrees, from 180 W and from the south pole."""
    if not 0 < step <= 180:
        raise InputError(f"Grid '{name}' has steps of {step:g} degrees. Expected 0 to 180.")
    columns, rows = int(360.0 / step + 0.5), int(180.0 / step + 0.5)
    _refuse_sizes(name, columns, rows)
    lon, lat = ((np.arange(n) + 0.5) * step - half for n, half in ((columns, 180), (rows, 90)))
    return checked_axes(f"Grid '{name}'", np.asarray(lon), np.asarray(lat))


def _gaussian(name: str, rows: int) -> list[Axis]:
    """Return the full Gaussian grid of so many latitudes, and twice as many longitudes."""
    _refuse_sizes(name, 2 * rows, rows)
    return globe_axes(_circle(2 * rows), gaussian_latitudes(rows))


def _rows_of_truncation(truncation: int, linear: bool) -> int:
    """Return the latitudes of the Gaussian grid of a truncation: an even number.

    A quadratic grid has (3 T + 1) / 2 or more latitudes, a linear grid (2 T + 1) / 2 or more.
    """
    rows = truncation + 1 if linear else (3 * truncation + 2) // 2
    return rows + rows % 2


def _refuse_sizes(name: str, columns: int, rows: int) -> None:
    if min(columns, rows) < 1:
        raise InputError(f"Grid '{name}' has {columns} longitudes and {rows} latitudes.")
    if max(columns, rows) > MOST:
        raise InputError(f"Grid '{name}' has more than {MOST} coordinates on an axis.")


def _circle(columns: int) -> Array:
    return np.asarray(np.arange(columns) * 360.0 / columns)
