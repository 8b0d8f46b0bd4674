"""Small grids that are filled whole and in tiles, to compare the two."""

import math
from types import SimpleNamespace

import numpy as np
import xarray as xr

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.files.source import Source
from dkrls_cli.gaps.field import make_field
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling import fill, layout, planning, sampling
from dkrls_cli.model.tiling.layout import Context

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}

CONTEXTS = (Context(2, 8), Context(4, 16), Context(8, 32), Context(16, 64))
"""As small beside the small grids as the real ones are beside large grids."""


def settings(sigmas, ridge=0.01, constant=0.0, periods=None, **others) -> Settings:
    """Return settings of which nothing is left to be chosen."""
    periods = periods or {}
    levels = [
        Level(dim, Kernel("matern52", sigma, periods.get(dim), constant))
        for dim, sigma in sigmas.items()
    ]
    return Settings(levels=levels, ridge=ridge, **others)


def draw_field(sizes, sigmas, constant=1.0, seed=0, noise=0.1) -> np.ndarray:
    """Return a random field, with noise."""
    rng = np.random.default_rng(seed)
    axes = [np.arange(float(size)) for size in sizes]
    kernels = [Kernel("matern52", sigma, constant=constant) for sigma in sigmas]
    return 5.0 + make_field(axes, kernels).draw(rng) + noise * rng.standard_normal(sizes)


def daily(size=60, lat=6, lon=7, seed=0, share=0.35, dtype="float64") -> xr.DataArray:
    """Return days of maps with scattered gaps, land, a lost day, and days lost at both ends."""
    values = draw_field((size, lat, lon), (4.0, 3.0, 3.0), seed=seed)
    values[np.random.default_rng(seed + 1).random(values.shape) < share] = np.nan
    values[:, 0, :2] = np.nan
    values[[0, 1, size // 2, size - 1]] = np.nan
    coords = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(size) * np.timedelta64(1, "D"),
        "lat": ("lat", np.arange(lat) * 1.0, NORTH),
        "lon": ("lon", np.arange(lon) * 1.0, EAST),
    }
    return xr.DataArray(values.astype(dtype), coords, ["time", "lat", "lon"], "t2m")


def source_of(grid: Grid) -> Source:
    """Return a grid in memory as one that is read part by part."""
    return Source(
        grid.axes,
        grid.name,
        grid.attrs,
        grid.style,
        str(grid.values.dtype),
        lambda: grid.values,
        read=lambda indices: grid.values[np.ix_(*indices)],
    )


class Sheet:
    """Keeps what is written."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.restarts = grid, 0
        self.restart()

    def restart(self) -> None:
        shape = self.grid.values.shape
        self.restarts += 1
        self.values, self.std = self.grid.values.copy(), np.full(shape, np.nan)
        self.cells = np.zeros(shape, bool)

    def write(self, part, cells, values, errors=None) -> None:
        assert not self.cells[part].any()  # no part is written twice
        self.cells[part] = cells
        self.values[part] = np.where(cells, values, self.grid.values[part])
        if errors is not None:
            self.std[part] = errors


def shrink(monkeypatch, contexts=CONTEXTS, usual=1) -> None:
    """Let tiles of few cells, with a small context, be the largest that memory allows.

    A limit is then the number of cells that a tile sees.
    """
    for module in (fill, layout, planning):
        monkeypatch.setattr(module, "CONTEXTS", contexts, raising=False)
        monkeypatch.setattr(module, "USUAL", usual, raising=False)
        monkeypatch.setattr(module, "process_bytes", lambda: 0, raising=False)
    monkeypatch.setattr(planning, "solve_memory", lambda shape, std=False: math.prod(shape))
    monkeypatch.setattr(planning, "_panel_bytes", lambda *given: 0)
    monkeypatch.setattr(planning, "group_memory", lambda *given: 0)
    monkeypatch.setattr(sampling, "footprint", lambda *given, **others: SimpleNamespace(memory=0))


def fill_both(data, chosen, limit, **asked):
    """Return a grid filled whole, the same filled in tiles, and what was told of the tiles."""
    grid = as_grid(data)
    whole = fill_grid(grid, chosen, **asked)
    sheet = Sheet(grid)
    request = planning.FillRequest(**asked)
    told = fill.fill_in_tiles(source_of(grid), chosen, request, sheet, limit)
    return whole, sheet, told


def bar_ratio(whole, sheet, bars) -> np.ndarray:
    """Return differences of filled cells in units of the error bar."""
    cells = whole.cells & sheet.cells
    return (sheet.values - whole.grid.values)[cells] / bars[cells]
