"""Stored grids as a fit takes them."""

import numpy as np
import pytest
import xarray as xr
from stored_grids import EAST, globe, stored, waves

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.chunked.ground import prepare, stored_chunks
from dkrls_cli.model.chunked.panels import Panel
from dkrls_cli.model.settings import DEFAULTS, Settings


def test_any_coordinates_are_read_and_unusable_cells_are_missing():
    values = np.arange(240.0).reshape(10, 24)
    values[3, 5] = np.inf
    source = stored(xr.DataArray(values, dims=["y", "x"]), (4, 6))
    ground = prepare(source, DEFAULTS)
    rows, columns = np.array([0, 1, 2, 3, 9]), np.array([1, 5, 7, 9])
    found = ground.read([rows, columns])
    wanted = values[np.ix_(rows, columns)]
    wanted[3, 1] = np.nan
    np.testing.assert_array_equal(found, wanted)
    assert source.read.cells == found.size  # nothing besides


def test_columns_that_repeat_a_longitude_are_left_out():
    lon = np.arange(0.0, 390.0, 30.0)
    data = xr.DataArray(
        np.arange(13.0)[None].repeat(5, 0), {"lon": ("lon", lon, EAST)}, ["y", "lon"]
    )
    ground = prepare(stored(data), DEFAULTS)
    assert ground.stored.shape == (5, 12)
    assert ground.notes == ("lon 360.0 repeats an earlier one and is dropped",)
    assert ground.read([np.arange(5), np.arange(12)])[0].tolist() == list(range(12))


def test_slices_with_nothing_between_are_labels():
    ground = prepare(stored(waves(), (10, 10, 12)), DEFAULTS, [1, 2])
    panel = Panel((1,), (2,), (np.array([3, 40]), np.arange(20), np.arange(5, 15)))
    grid = ground.grid(panel, labelled=True)
    assert [axis.labels is not None for axis in grid.axes] == [True, False, False]
    np.testing.assert_array_equal(grid.values, waves().values[[3, 40], :, 5:15])
    assert ground.grid(panel, labelled=False).axes[0].time is not None


def test_latitudes_between_which_is_asked_need_longitudes_for_the_poles():
    assert prepare(stored(globe()), DEFAULTS, [1]).wanted == (1, 2)
    alone = prepare(stored(globe()), DEFAULTS, [0])
    assert (alone.wanted, alone.plan.poles) == ((0,), None)
    assert prepare(stored(globe()), Settings(poles="none"), [1]).wanted == (1,)


def test_chunks_of_a_source_that_has_none_are_its_rows():
    assert stored_chunks(stored(waves())) == (1, 1, 24)
    assert stored_chunks(stored(waves(), (500, 5, 5))) == (60, 5, 5)


def test_bytes_are_those_that_are_stored():
    assert prepare(stored(waves(dtype="float64")), DEFAULTS).stored.itemsize == 8
    assert prepare(stored(waves()), DEFAULTS).stored.itemsize == 4


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        (Settings(noise="joint"), SettingError, "One joint ridge needs the whole grid in memory"),
        (Settings(robust=True), SettingError, "A robust fit needs the whole grid in memory"),
        (Settings(sigma={"depth": 3}), SettingError, "no dimension"),
        (Settings(cell_means="depth"), SettingError, "no dimension"),
        (Settings(group="lat,lon"), SettingError, "no cell is missing"),
    ],
)
def test_what_needs_the_whole_grid_is_refused(settings, error, text):
    with pytest.raises(error, match=text):
        prepare(stored(waves()), settings)


def test_sources_that_cannot_be_read_part_by_part_are_refused():
    source = stored(waves(), errors=lambda: 0.1)
    with pytest.raises(InputError, match="Errors of the observations need the whole grid"):
        prepare(source, DEFAULTS)
    whole = stored(as_grid(waves()))
    object.__setattr__(whole, "read", None)
    with pytest.raises(InputError, match="can only be read as a whole"):
        prepare(whole, DEFAULTS)
