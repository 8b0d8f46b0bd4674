"""Data in memory becomes a grid, whatever form it has."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import Grid, as_grid, scalar_axes

X = np.arange(4.0)


def test_a_grid_is_taken_as_it_is():
    grid = as_grid(np.eye(3))
    assert as_grid(grid) is grid


def test_an_array_gets_positions_or_the_coordinates_given():
    plain = as_grid([[1, 2], [3, 4]])
    assert plain.dims == ("dim_0", "dim_1")
    assert plain.values.dtype == np.float64
    assert not any(axis.has_coordinate for axis in plain.axes)
    in_order = as_grid(np.zeros((4, 2)), [X, ["a", "b"]])
    assert in_order.dims == ("dim_0", "dim_1")
    assert in_order.axes[1].labels == ("a", "b")
    named = as_grid(np.zeros((4, 2)), {"x": X, "site": ["a", "b"]})
    assert named.dims == ("x", "site")
    np.testing.assert_array_equal(named.axes[0].numbers, X)


def test_a_data_array_keeps_name_and_attributes_and_drops_single_coordinates():
    array = xr.DataArray(
        np.arange(8).reshape(1, 4, 2),
        {"z": [5.0], "x": ("x", X, {"units": "m"})},
        ("z", "x", "y"),
        "t",
        {"units": "K"},
    )
    grid = as_grid(array)
    assert (grid.name, grid.dims, dict(grid.attrs)) == ("t", ("x", "y"), {"units": "K"})
    assert grid.values.dtype == np.float64
    assert grid.axes[0].units == "m"
    assert [axis.name for axis in scalar_axes(array, ("z", "x", "w"))] == ["z"]
    assert scalar_axes(array, ("z",))[0].numbers.tolist() == [5.0]
    one = array.isel(x=2)
    assert [axis.numbers.tolist() for axis in scalar_axes(one, ("x", "z"))] == [[2.0], [5.0]]


def test_masked_cells_are_missing():
    grid = as_grid(np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]))
    assert np.isnan(grid.values).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("data", "coordinates", "error", "message"),
    [
        (np.zeros((4, 4)), {"x": X}, InputError, r"shape \(4, 4\) do not fit coordinates x 4"),
        (np.zeros((4, 3)), [X, X], InputError, "dim_0 4 x dim_1 4"),
        (xr.DataArray(X), {"x": X}, SettingError, "its own"),
        (as_grid(X), [X], SettingError, "its own"),
        (xr.Dataset({"a": ("x", X)}), None, InputError, "Dataset"),
        (xr.DataArray(3.0), None, InputError, "no dimension"),
        (np.array(["a", "b"]), None, InputError, "real numbers"),
        (xr.DataArray(np.array([1j, 2])), None, InputError, "real numbers"),
    ],
)
def test_data_that_makes_no_grid_is_refused(data, coordinates, error, message):
    with pytest.raises(error, match=message):
        as_grid(data, coordinates)


def test_values_are_not_copied():
    values = np.eye(3)
    assert as_grid(values).values is values
    assert isinstance(as_grid(values), Grid)
