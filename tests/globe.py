"""Fields on the globe in closed form, also beyond the poles: polynomials of the place."""

import numpy as np

from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid


def places(lat, lon):
    """Return x, y, z of the cells of a grid (lat, lon) on the unit sphere."""
    up, east = np.meshgrid(np.deg2rad(lat), np.deg2rad(lon), indexing="ij")
    return np.cos(up) * np.cos(east), np.cos(up) * np.sin(east), np.sin(up)


def scalar(lat, lon, phase=0.0):
    """Return x + 2 y z + x y z + 3 z^2 + x^3, its waves turned by a phase in degrees.

    Beyond the pole that is the field on the other side of the globe, with the same sign.
    """
    x, y, z = places(lat, np.asarray(lon) + phase)
    return x + 2 * y * z + x * y * z + 3 * z**2 + x**3


def eastward(lat, lon):
    """Return the eastward component of the gradient of x + 2 y z + x y z + 3 z^2 + x^3.

    Beyond the pole that is the component on the other side of the globe, with the opposite sign.
    """
    x, y, z = places(lat, lon)
    east = np.deg2rad(lon)
    return -np.sin(east) * (1 + y * z + 3 * x**2) + np.cos(east) * (2 * z + x * z)


def planar(lat, lon):
    """Return a field on latitudes and longitudes that ends at the poles."""
    return np.add.outer(np.asarray(lat) / 90, np.cos(np.deg2rad(lon))) ** 2


def rows(kind, count):
    """Return latitudes at the poles and between (pole), or in the middle of cells (cell)."""
    if kind == "pole":
        return np.linspace(-90.0, 90.0, count)
    return (np.arange(count) + 0.5) * 180 / count - 90


def ring(count, start=0.0):
    """Return longitudes all round."""
    return start + np.arange(count) * 360.0 / count


def latitude(numbers):
    """Return an axis of latitude."""
    return axis_of("lat", numbers, {"units": "degrees_north"})


def longitude(numbers):
    """Return an axis of longitude."""
    return axis_of("lon", numbers, {"units": "degrees_east"})


def globe(values, lat, lon, time=None, **attrs):
    """Return a grid (lat, lon) or (time, lat, lon)."""
    axes = [latitude(lat), longitude(lon)]
    if time is not None:
        axes = [axis_of("time", np.asarray(time, float)), *axes]
    return Grid(np.asarray(values), tuple(axes), "field", attrs)


def moving(lat, lon, time):
    """Return the scalar field as it turns round the globe (time, lat, lon)."""
    return np.stack([scalar(lat, lon, phase=20 * t) + 0.1 * np.sin(t) for t in time])
