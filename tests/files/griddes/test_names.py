"""Grids by name, against exact formulae."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.gaussian import gaussian_latitudes
from dkrls_cli.files.griddes.names import GRID_NAMES, named_grid


def named(name: str) -> tuple[np.ndarray, np.ndarray]:
    axes = named_grid(name)
    assert axes is not None
    return axes[0].plain, axes[1].plain


@given(st.integers(1, 2000), st.integers(1, 1000))
def test_a_regular_grid_parts_the_globe_evenly(columns: int, rows: int) -> None:
    lon, lat = named(f"r{columns}x{rows}")
    assert (lon.size, lat.size) == (columns, rows)
    np.testing.assert_allclose(lon, [360 * i / columns for i in range(columns)], atol=1e-11)
    np.testing.assert_allclose(lat, -lat[::-1], atol=1e-11)
    if rows % 2 and rows > 1:  # the poles and the equator have a row
        assert (lat[0], lat[-1]) == (-90, 90)
    else:  # centres of cells
        np.testing.assert_allclose(lat[0] + 90, 90 / rows, atol=1e-11)
    np.testing.assert_allclose(np.diff(lat), np.ptp(lat) / max(1, rows - 1), atol=1e-11)


@given(st.floats(0.1, 180))
def test_a_global_grid_has_cells_of_one_size_from_the_date_line_and_the_south_pole(
    step: float,
) -> None:
    lon, lat = named(f"global_{step!r}")
    assert lon[0] == pytest.approx(step / 2 - 180)
    assert lat[0] == pytest.approx(step / 2 - 90)
    assert abs(lon.size - 360 / step) <= 0.5 + 1e-9
    assert abs(lat.size - 180 / step) <= 0.5 + 1e-9
    for numbers in (lon, lat):
        np.testing.assert_allclose(np.diff(numbers), step)


@pytest.mark.parametrize("name", ["N8", "F8", "f8"])
def test_a_gaussian_grid_has_several_names(name: str) -> None:
    for one, other in zip(named("n8"), named(name), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *[("t21grid", 32), ("t42grid", 64), ("t63grid", 96), ("t106grid", 160), ("t4grid", 8)],
        *[("tl63grid", 64), ("tl127grid", 128), ("tl159grid", 160), ("tl2grid", 4)],
    ],
)
def test_a_truncation_has_its_gaussian_grid(name: str, rows: int) -> None:
    lon, lat = named(name)
    assert (lon.size, lat.size) == (2 * rows, rows)
    np.testing.assert_array_equal(lat, gaussian_latitudes(rows))
    np.testing.assert_allclose(lon, np.arange(2 * rows) * 180 / rows, atol=1e-11)


@pytest.mark.parametrize("name", ["lon=10/lat=-50.5", "lon=1e1_lat=-50.5", "LON=+10./LAT=-50.5"])
def test_a_point_is_a_grid_of_one_cell(name: str) -> None:
    assert [numbers.tolist() for numbers in named(name)] == [[10.0], [-50.5]]


@pytest.mark.parametrize(
    "name",
    [
        *["r360*180", "360x180", "rx", "r360x", "global", "global_", "global_x", "n", "t63"],
        *["zonal_10", "lon=10", "hp8", "gme4", "F8x", "xr4x2", "lon=1/lat=2/3", "tlgrid", "n8.5"],
    ],
)
def test_other_names_are_none(name: str) -> None:
    assert named_grid(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("r0x180", "has 0 longitudes and 180 latitudes"),
        ("r4x0", "has 4 longitudes and 0 latitudes"),
        ("n0", "has 0 longitudes and 0 latitudes"),
        ("r1000001x2", "more than 1000000 coordinates"),
        ("global_0.0001", "more than 1000000 coordinates"),
        ("global_0", "steps of 0 degrees. Expected 0 to 180"),
        ("global_-1", "steps of -1 degrees"),
        ("global_181", "steps of 181 degrees"),
        ("n8001", "16002 latitudes is too large"),
        ("lon=10/lat=95", "has the latitude 95"),
    ],
)
def test_sizes_that_are_no_grid_are_refused(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        named_grid(name)


def test_the_examples_of_every_form_are_grids() -> None:
    for name in GRID_NAMES.split(", "):
        assert named_grid(name) is not None
