"""The small map: the cells that it paints are those of the data."""

import re

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit
from dkrls_cli.model.notebook.map import COLOURS, COLUMNS, ROWS, Thumbnail, draw, thin_values

GIVEN = {"kernel": "gaussian", "sigma": 1.0, "ridge": 1e-6}


def painted(svg, shape):
    """Return the number of the colour of every cell that an SVG paints, -1 where it paints none."""
    cells = np.full(shape, -1)
    for colour, path in re.findall(r'<path stroke="(#\w+)" d="([^"]+)"/>', svg):
        for x, y, run in re.findall(r"M(\d+) (\d+)h(\d+)", path):
            assert (cells[int(y), int(x) : int(x) + int(run)] == -1).all()
            cells[int(y), int(x) : int(x) + int(run)] = COLOURS.index(colour)
    return cells


def test_a_map_paints_every_cell_by_its_value():
    rng = np.random.default_rng(3)
    values = rng.random((7, 9))
    values[rng.random((7, 9)) < 0.2] = np.nan
    low, high = np.nanmin(values), np.nanmax(values)
    edges = np.linspace(low, high, len(COLOURS) + 1)[1:-1]
    expected = np.where(np.isnan(values), -1, np.digitize(values, edges))
    found = painted(draw(Thumbnail(values, (), ())), values.shape)
    assert (found == expected).all()
    assert found[np.unravel_index(np.nanargmin(values), values.shape)] == 0
    assert found[np.unravel_index(np.nanargmax(values), values.shape)] == len(COLOURS) - 1


def test_equal_values_and_no_values_have_a_map():
    assert (painted(draw(Thumbnail(np.ones((2, 3)), (), ())), (2, 3)) == 0).all()
    assert (painted(draw(Thumbnail(np.full((2, 3), np.nan), (), ())), (2, 3)) == -1).all()


def test_one_row_is_a_line_that_breaks_where_there_is_no_value():
    svg = draw(Thumbnail(np.array([[0.0, 1.0, np.nan, 2.0, 1.0]]), (), ()))
    path = re.search(r' d="([^"]+)"', svg)[1]
    assert [path.count(pen) for pen in "ML"] == [2, 2]
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path)]
    assert heights[0] > heights[1] > heights[2]  # downwards is larger
    assert heights[1] == heights[3]


def grid(*dims, **sizes):
    coords = {
        "lat": ("lat", np.linspace(50, -50, sizes.get("lat", 5)), {"units": "degrees_north"}),
        "lon": ("lon", np.linspace(0, 100, sizes.get("lon", 6)), {"units": "degrees_east"}),
        "time": np.datetime64("2020-01-01", "ns") + np.arange(4).astype("timedelta64[D]"),
        "x": np.arange(3.0),
    }
    shape = [len(coords[d]) if d in ("time", "x") else len(coords[d][1]) for d in dims]
    values = np.random.default_rng(1).standard_normal(shape)
    return xr.DataArray(values, {d: coords[d] for d in dims}, dims, "v")


@pytest.mark.parametrize(
    ("dims", "shown"),
    [
        (("time", "lon", "lat"), ("lat", "lon")),
        (("lat", "lon"), ("lat", "lon")),
        (("time", "x"), ("time", "x")),
        (("time", "x", "lat"), ("x", "lat")),
        (("time",), ("time",)),
    ],
)
def test_latitude_and_longitude_are_shown_or_two_other_dimensions(dims, shown):
    found = thin_values(fit(grid(*dims), **GIVEN))
    assert tuple(axis.name for axis in found.axes) == shown
    assert {axis.name for axis in found.fixed} == set(dims) - set(shown)


def test_the_values_are_those_of_the_data_north_up():
    data = grid("time", "lon", "lat")
    data = data.where(data.lat < 40)
    found = thin_values(fit(data, **GIVEN))
    held = data.isel(time=2).transpose("lat", "lon")  # stored from north to south
    assert found.fixed[0].texts == ["2020-01-03"]
    np.testing.assert_allclose(found.values, held.values, atol=1e-3)
    assert np.isnan(found.values[0]).all()


def test_a_large_grid_is_thinned_with_both_ends():
    data = grid("lat", "lon", lat=101, lon=301)
    found = thin_values(fit(data, kernel="cubic"))
    assert found.values.shape == (ROWS, COLUMNS)
    corners = data.values[[0, 0, -1, -1], [0, -1, 0, -1]]
    np.testing.assert_allclose(found.values[[0, 0, -1, -1], [0, -1, 0, -1]], corners)
    assert len(draw(found)) < 25_000  # noise: no two neighbours are alike
