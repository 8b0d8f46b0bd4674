"""Chunked arrays as sources: the grid that is told is the one that loading gives."""

import numpy as np
import pytest
import xarray as xr
from chunked_grids import globe

from dkrls_cli.errors import InputError
from dkrls_cli.files.stored.arrays import source_of
from dkrls_cli.grid.grid import as_grid

pytest.importorskip("dask")


def assert_same_grid(data: xr.DataArray) -> None:
    grid, source = as_grid(data), source_of(data)
    assert [axis.name for axis in source.axes] == list(grid.dims)
    for own, theirs in zip(source.axes, grid.axes, strict=True):
        np.testing.assert_array_equal(own.numbers, theirs.numbers)
        assert own.attrs == theirs.attrs
    assert (source.name, source.attrs, source.style) == (grid.name, grid.attrs, grid.style)
    np.testing.assert_array_equal(source.load(), grid.values)


def test_axes_attributes_and_values_are_those_of_the_grid():
    data = globe().assign_attrs(units="K", valid_min=0).chunk(time=5, lat=4)
    data.encoding["scale_factor"] = 0.5  # valid_min counts packed numbers then
    assert_same_grid(data)
    assert source_of(data).chunks == (5, 4, 12)


def test_a_scalar_time_is_an_axis():
    data = globe().isel(time=3).assign_coords(time=np.datetime64("2001-02-03", "ns")).chunk(lat=4)
    assert_same_grid(data)
    source = source_of(data)
    assert source.chunks == (1, 4, 12)
    part = source.read([np.array([0]), np.array([2, 3, 9]), np.array([1, 4])])
    np.testing.assert_array_equal(part[0], data.values[[2, 3, 9]][:, [1, 4]])


def test_parts_are_read_at_any_coordinates():
    data = globe().astype("float32")
    indices = [np.array([0, 2, 4]), np.array([1, 2, 7]), np.array([11])]
    part = source_of(data.chunk(time=2, lon=5)).read(indices)
    np.testing.assert_array_equal(part, data.values[np.ix_(*indices)])
    assert part.dtype.name == source_of(data.chunk()).dtype == "float64"


def test_integers_are_numbers_and_masked_ones_are_missing():
    import dask.array

    counts = xr.DataArray(np.arange(12).reshape(3, 4), dims=("x", "y")).chunk(x=1)
    assert_same_grid(counts)
    masked = np.ma.masked_equal(np.arange(12.0).reshape(3, 4), 7)
    lazy = xr.DataArray(dask.array.from_array(masked, chunks=2), dims=("x", "y"))
    values = source_of(lazy).load()
    assert np.argwhere(np.isnan(values)).tolist() == [[1, 3]]


def test_one_cell_is_no_grid():
    with pytest.raises(InputError, match="no dimension of more than one coordinate"):
        source_of(globe()[:1, :1, :1].chunk())
