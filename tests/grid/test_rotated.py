"""Latitudes and longitudes of a rotated grid: rotations of the sphere, by another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.grid.axes import Axis, axis_of
from dkrls_cli.grid.rotated import places_on, true_places
from dkrls_cli.grid.style import Companion, Style

POLE = {
    "grid_mapping_name": "rotated_latitude_longitude",
    "grid_north_pole_latitude": 39.25,
    "grid_north_pole_longitude": -162.0,
}
RLAT, RLON = np.linspace(-10.0, 10.0, 6), np.linspace(-12.0, 12.0, 7)
NORTH = {"standard_name": "latitude", "units": "degrees_north"}
EAST = {"standard_name": "longitude", "units": "degrees_east"}


def axes(rlat: Any, rlon: Any) -> list[Axis]:
    return [
        axis_of("rlat", np.asarray(rlat, float), {"standard_name": "grid_latitude"}),
        axis_of("rlon", np.asarray(rlon, float), {"standard_name": "grid_longitude"}),
    ]


def rotated_style(lat: Any = None, lon: Any = None, pole: Any = POLE, dtype: str = "f8") -> Style:
    known = true_places(RLAT, RLON, POLE)
    lat, lon = (
        np.asarray(own if given is None else given, dtype)
        for own, given in zip(known, (lat, lon), strict=True)
    )
    return Style(
        grid_mapping="pole",
        companions={
            "lat": Companion(("rlat", "rlon"), lat, NORTH),
            "lon": Companion(("rlat", "rlon"), lon, EAST),
            "pole": Companion((), np.asarray(0), pole),
        },
        coordinates={"rlat": RLAT, "rlon": RLON},
    )


def rotate(lat: float, lon: float, pole_lat: float, pole_lon: float, turn: float) -> np.ndarray:
    """A place of the rotated grid as a vector on the earth, by matrices of rotation."""
    phi, lam, a, b, g = np.radians([lat, lon, pole_lat, pole_lon, turn])
    there = np.array([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])

    def about_z(x: float) -> np.ndarray:
        return np.array([[np.cos(x), -np.sin(x), 0], [np.sin(x), np.cos(x), 0], [0, 0, 1]])

    tilt = np.pi / 2 - a
    about_y = np.array(
        [[np.cos(tilt), 0, np.sin(tilt)], [0, 1, 0], [-np.sin(tilt), 0, np.cos(tilt)]]
    )
    return about_z(b) @ about_y @ about_z(np.pi) @ about_z(g) @ there


@given(
    st.floats(-89, 89),
    st.floats(-180, 180),
    st.floats(-90, 90),
    st.floats(-180, 180),
    st.floats(0, 90),
)
def test_places_are_those_of_rotations_of_the_sphere(
    lat: float, lon: float, pole_lat: float, pole_lon: float, turn: float
) -> None:
    pole = {
        "grid_north_pole_latitude": pole_lat,
        "grid_north_pole_longitude": pole_lon,
        "north_pole_grid_longitude": turn,
    }
    found = true_places(np.array([lat]), np.array([lon]), pole)
    phi, lam = (np.radians(values.item()) for values in found)
    there = np.array([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])
    np.testing.assert_allclose(there, rotate(lat, lon, pole_lat, pole_lon, turn), atol=1e-7)


def test_the_pole_of_the_grid_is_where_its_attributes_say() -> None:
    lat, lon = true_places(np.array([90.0]), np.array([0.0]), POLE)
    np.testing.assert_allclose([lat.item(), lon.item()], [39.25, -162.0])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_fields_are_known_between_the_coordinates_of_the_source(dtype: str) -> None:
    asked = axes([0.5, 3.3], [-1.0, 0.0, 7.7])
    found = places_on(rotated_style(dtype=dtype), asked)
    expected = true_places(asked[0].plain, asked[1].plain, POLE)
    for name, values in zip(("lat", "lon"), expected, strict=True):
        assert found[name].values.dtype == dtype
        assert found[name].dims == ("rlat", "rlon")
        np.testing.assert_allclose(found[name].values, values, atol=1e-5)
    assert found["lat"].attrs == NORTH


def test_longitudes_are_counted_as_the_source_does() -> None:
    lon = true_places(RLAT, RLON, POLE)[1] + 360
    found = places_on(rotated_style(lon=lon), axes([0.5], [0.5]))
    assert 360 < found["lon"].values.item() < 400


def test_fields_that_are_no_rotated_grid_are_not_made() -> None:
    known = true_places(RLAT, RLON, POLE)
    asked = axes([0.5], [0.5])
    assert set(places_on(rotated_style(lat=known[0] + 0.01), asked)) == {"lon"}
    assert set(places_on(rotated_style(lon=known[1].T @ known[1]), asked)) == {"lat"}
    assert places_on(rotated_style(pole={**POLE, "grid_north_pole_latitude": 40.0}), asked) == {}
    for key in POLE:
        poor = {k: v for k, v in POLE.items() if k != key}
        assert places_on(rotated_style(pole=poor), asked) == {}
    assert places_on(rotated_style(), [asked[0]]) == {}
    assert places_on(Style(), asked) == {}
