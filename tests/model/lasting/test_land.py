"""Land, as one time of a stored grid shows it."""

import numpy as np
import pytest
from chunked_grids import globe

from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.answering.masks import lasting_mask
from dkrls_cli.model.lasting.land import find_land, slice_axes


def stored(tmp_path, data, chunks=None):
    path = tmp_path / "land.nc"
    data.to_netcdf(path, encoding={"f": {"chunksizes": chunks or data.shape}})
    return open_source([str(path)])


def test_land_is_that_of_the_whole_grid(tmp_path):
    data = globe(5)
    data[:, 2:5, 3:7] = np.nan
    source = stored(tmp_path, data)
    land = find_land(source)
    expected = lasting_mask(source.grid(), ("lat", "lon", "time")).cells
    np.testing.assert_array_equal(land.missing, expected)
    assert (land.slices, land.places, land.names) == ((0,), (1, 2), "time")


@pytest.mark.parametrize("gone", [slice(0, 0), slice(None)])
def test_a_time_with_all_cells_or_none_shows_no_land(tmp_path, gone):
    data = globe(5)
    data[2, gone] = np.nan
    assert find_land(stored(tmp_path, data)) is None


def test_slices_lie_apart_and_have_all_cells(tmp_path):
    data = globe(9)
    data[:, 2] = np.nan
    panel = find_land(stored(tmp_path, data)).panel(3)
    assert panel.values.shape == (3, *data.shape[1:])
    np.testing.assert_array_equal(panel.values, data.sel(time=panel.axes[0].numbers))
    assert (np.diff(panel.axes[0].numbers) >= 2).all()


def test_nothing_is_looked_at_where_chunks_would_make_it_dear(tmp_path, monkeypatch):
    from dkrls_cli.model.chunked import panels

    data = globe(40)
    data[:, 2] = np.nan
    monkeypatch.setattr(panels, "_CHEAP", 0)
    assert find_land(stored(tmp_path, data, (40, 4, 4))) is None
    assert find_land(stored(tmp_path, data, (1, 13, 12))) is not None


def test_times_and_members_are_slices_and_places_are_not():
    lat = axis_of("lat", np.arange(3.0), {"units": "degrees_north"})
    time, member = axis_of("time", np.arange(4.0)), axis_of("member", np.arange(2.0))
    one = axis_of("height", [2.0])
    assert slice_axes([member, time, lat, one]) == (0, 1)
    assert slice_axes([time, member]) == ()
    assert slice_axes([lat]) == ()
