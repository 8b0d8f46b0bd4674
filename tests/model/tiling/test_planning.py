"""Plans of tiles."""

import numpy as np
import pytest
import xarray as xr
from tiled_grids import EAST, NORTH, daily, source_of

from dkrls_cli.errors import InputError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.planning.plan import group_memory
from dkrls_cli.model.settings import DEFAULTS, Settings
from dkrls_cli.model.tiling import planning
from dkrls_cli.model.tiling.layout import TilesTooLargeError
from dkrls_cli.model.tiling.planning import (
    FillRequest,
    find_spans,
    plan_tiles,
    process_bytes,
    relative_work,
)


def broad(shape, dims=("time", "lat", "lon")) -> planning.Source:
    """Return a large grid that takes no memory."""
    coords = {dim: np.arange(float(size)) for dim, size in zip(dims, shape, strict=True)}
    small = as_grid(xr.DataArray(np.zeros([2] * len(shape)), dims=dims, name="v"))
    axes = as_grid(xr.DataArray(np.broadcast_to(0.0, shape), coords, dims)).axes
    source = source_of(small)
    object.__setattr__(source, "axes", axes)
    object.__setattr__(source, "dtype", "float32")
    return source


def test_a_plan_tells_tiles_memory_and_bytes():
    source = broad((3000, 40, 50))
    limit = process_bytes() + 430e6
    plan = plan_tiles(source, DEFAULTS, FillRequest(), limit)
    assert plan.layout.count > 1
    assert plan.layout.memory < plan.memory <= limit + 20e6
    assert plan.bytes_written == 4 * 3000 * 2000
    assert plan.passes == plan.bytes_read / plan.bytes_written > 3
    more = plan_tiles(source, DEFAULTS, FillRequest(std=True), limit)
    assert more.layout.memory > plan.layout.memory
    assert more.bytes_written == 2 * plan.bytes_written
    tight = plan_tiles(source, DEFAULTS, FillRequest(), process_bytes() + 250e6)
    assert tight.layout.count > plan.layout.count
    assert 1 < relative_work(plan.layout, source.shape) < relative_work(tight.layout, source.shape)


def test_less_context_is_planned_where_memory_is_short():
    source, process = broad((3000, 40, 50)), process_bytes()
    wide = plan_tiles(source, DEFAULTS, FillRequest(), process + 700e6)
    tight = plan_tiles(source, DEFAULTS, FillRequest(), process + 130e6)
    assert tight.layout.context.near < wide.layout.context.near
    with pytest.raises(TilesTooLargeError, match="Even the smallest tiles"):
        plan_tiles(source, DEFAULTS, FillRequest(), process + 10e6)


def test_only_axes_with_numbers_in_order_are_cut():
    mixed = xr.DataArray(
        np.zeros((3, 4, 5, 6)),
        {
            "site": list("abc"),
            "x": [1.0, 3.0, 2.0, 4.0],
            "lon": ("lon", [0.0, 90.0, 180.0, 270.0, 360.0], EAST),
            "z": np.arange(6.0)[::-1],
        },
        ["site", "x", "lon", "z"],
    )
    grid = as_grid(mixed)
    known = [np.arange(axis.size) for axis in grid.axes]
    known[3] = np.array([1, 2, 4])
    spans = find_spans(grid.axes, known)
    assert list(spans) == [3]
    assert (spans[3].low, spans[3].high, spans[3].ring) == (1, 5, False)
    ring = find_spans(as_grid(mixed.isel(lon=slice(4))).axes, [*known[:2], np.arange(2), known[3]])
    assert ring[2].ring
    assert (ring[2].low, ring[2].high) == (0, 4)  # nothing is outside a circle
    with pytest.raises(InputError, match="No dimension of the grid can be cut"):
        plan_tiles(source_of(as_grid(mixed.isel(z=0, drop=True))), DEFAULTS, FillRequest(), 1e9)


def test_matrices_of_the_sphere_are_held_beside_tiles():
    lat, lon = np.linspace(-89, 89, 90), np.arange(180) * 2.0
    coords = {"lat": ("lat", lat, NORTH), "lon": ("lon", lon, EAST)}
    globe = source_of(as_grid(xr.DataArray(np.zeros((90, 180)), coords, ["lat", "lon"])))
    more = group_memory(globe.axes, DEFAULTS)
    assert more > 1e6
    plane = plan_tiles(globe, Settings(group="none"), FillRequest(), 4e9)
    assert plan_tiles(globe, DEFAULTS, FillRequest(), 4e9).memory == pytest.approx(
        plane.memory + more, abs=5e6
    )


def test_a_grid_that_fits_is_one_tile():
    assert plan_tiles(source_of(as_grid(daily())), DEFAULTS, FillRequest(), 4e9).layout.count == 1
