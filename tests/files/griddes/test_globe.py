"""Axes of the globe carry what CF asks for, and places beyond it are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.globe import checked_axes, globe_axes


def test_axes_carry_what_cf_asks_for() -> None:
    axes = globe_axes(np.array([0.0, 90.0]), np.array([-45.0, 45.0]))
    assert [(axis.name, dict(axis.attrs)) for axis in axes] == [
        ("lon", {"standard_name": "longitude", "units": "degrees_east", "axis": "X"}),
        ("lat", {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"}),
    ]
    assert axes[0].turn == 360


@pytest.mark.parametrize(
    ("lon", "lat", "names", "reason"),
    [
        ([0.0, 1.0], [91.0], ("lon", "lat"), "has the latitude 91. Expected -90 to 90"),
        ([0.0, 0.0], [1.0], ("a", "lat"), "has a coordinate of 'a' twice"),
        ([0.0], [1.0, 1.0], ("lon", "b"), "has a coordinate of 'b' twice"),
        ([0.0, 361.0], [1.0], ("lon", "lat"), "longitudes over 361 degrees. Expected 360"),
        ([0.0], [1.0], ("a", "a"), "xname and yname are both 'a'"),
    ],
)
def test_coordinates_that_are_no_places_on_the_globe_are_refused(
    lon: list[float], lat: list[float], names: tuple[str, str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        checked_axes("It", np.array(lon), np.array(lat), *names)


def test_the_poles_and_a_whole_turn_are_places_on_the_globe() -> None:
    lon, lat = checked_axes("It", np.array([0.0, 360.0]), np.array([-90.0, 90.0]))
    assert (lon.size, lat.size) == (2, 2)
