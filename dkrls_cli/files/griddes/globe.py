"""Longitudes and latitudes as axes of a grid of the globe."""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import Axis, number_axis

# Coordinates of an axis: more are a slip of the pen, and would fill the memory.
MOST = 10**6


def checked_axes(
    source: str, lon: Array, lat: Array, xname: str = "lon", yname: str = "lat"
) -> list[Axis]:
    """Return the axes, or raise InputError if the coordinates cannot be places on the globe."""
    if xname == yname:
        raise InputError(f"{source}: xname and yname are both '{xname}'. Rename one.")
    if np.abs(lat).max() > 90.0 + 1e-9:
        worst = lat[np.argmax(np.abs(lat))]
        raise InputError(f"{source} has the latitude {worst:g}. Expected -90 to 90.")
    for name, numbers in ((xname, lon), (yname, lat)):
        if np.unique(numbers).size < numbers.size:
            raise InputError(f"{source} has a coordinate of '{name}' twice.")
    if np.ptp(lon) > 360.0:
        raise InputError(f"{source} has longitudes over {np.ptp(lon):g} degrees. Expected 360.")
    return globe_axes(lon, lat, xname, yname)


def globe_axes(lon: Array, lat: Array, xname: str = "lon", yname: str = "lat") -> list[Axis]:
    """Return longitude and latitude with their CF attributes."""
    return [
        number_axis(name, numbers, {"standard_name": what, "units": units, "axis": letter})
        for name, numbers, what, units, letter in (
            (xname, lon, "longitude", "degrees_east", "X"),
            (yname, lat, "latitude", "degrees_north", "Y"),
        )
    ]
