"""Small grids that are read part by part as if they were beyond memory."""

from dataclasses import replace

import numpy as np
import xarray as xr

from dkrls_cli.files.source import Source
from dkrls_cli.grid.grid import Grid, as_grid

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}


class Reads:
    """Reads parts of a grid in memory, and counts the cells and the reads."""

    def __init__(self, values):
        self.values, self.cells, self.calls = values, 0, 0

    def __call__(self, indices):
        part = self.values[np.ix_(*indices)]
        self.cells += part.size
        self.calls += 1
        return part


def stored(data, chunks=None, **others) -> Source:
    """Return a grid in memory as a source with chunks; `source.read` counts what is read."""
    grid = data if isinstance(data, Grid) else replace(as_grid(data), values=data.values)
    source = Source(
        grid.axes,
        grid.name,
        grid.attrs,
        grid.style,
        str(grid.values.dtype),
        lambda: grid.values,
        read=Reads(grid.values),
        **others,
    )
    object.__setattr__(source, "chunks", chunks)
    return source


def waves(nt=60, ny=20, nx=24, noise=0.05, seed=0, dtype="float32") -> xr.DataArray:
    """Return hours of maps: a sum of smooth products, and noise."""
    rng = np.random.default_rng(seed)
    axes = [np.linspace(0, 1, size) for size in (nt, ny, nx)]
    terms = [
        [np.sin(rng.uniform(2, 9) * axis + rng.uniform(0, 6.3)) for axis in axes] for _ in range(6)
    ]
    values = 10 + sum(np.einsum("t,y,x->tyx", *term) for term in terms)
    values += noise * rng.standard_normal(values.shape)
    coords = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(nt) * np.timedelta64(1, "h"),
        "lat": ("lat", np.linspace(20, 50, ny), NORTH),
        "lon": ("lon", np.linspace(0, 60, nx), EAST),
    }
    array = xr.DataArray(values.astype(dtype), coords, ["time", "lat", "lon"], "f")
    return array.assign_attrs(units="K")


def globe(nt=12, ny=19, nx=36, noise=0.02, seed=0, dtype="float64") -> xr.DataArray:
    """Return maps of the whole globe, smooth across the poles, and noise."""
    rng = np.random.default_rng(seed)
    lat, lon = np.linspace(-90, 90, ny), np.arange(nx) * 360.0 / nx
    north, east = np.deg2rad(lat)[:, None], np.deg2rad(lon)
    place = np.stack(
        np.broadcast_arrays(
            np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)
        )
    )
    values = 5.0 + np.zeros((nt, ny, nx))
    for _ in range(8):
        phase = np.tensordot(rng.normal(size=3) * 2, place, 1) + rng.uniform(0, 6.3)
        swing = np.cos(np.arange(nt) * rng.uniform(0, 0.5) + rng.uniform(0, 6.3))
        values += swing[:, None, None] * np.cos(phase)
    values += noise * rng.standard_normal(values.shape)
    coords = {"time": np.arange(float(nt)), "lat": ("lat", lat, NORTH), "lon": ("lon", lon, EAST)}
    return xr.DataArray(values.astype(dtype), coords, ["time", "lat", "lon"], "f")
