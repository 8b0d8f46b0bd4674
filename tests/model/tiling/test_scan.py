"""One pass over a grid, beside the same from the whole of it."""

import numpy as np
import pytest
from tiled_grids import daily, source_of

from dkrls_cli.errors import InputError
from dkrls_cli.gaps.pattern import empty_slices
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.tiling import scan as scanning
from dkrls_cli.model.tiling.scan import PartReader, is_rising, scan


@pytest.fixture(params=[1, 100, 10**6])
def at_once(request, monkeypatch):
    monkeypatch.setattr(scanning, "_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_parts_are_parts_of_the_whole(axis):
    grid = as_grid(daily())
    reader = PartReader(source_of(grid), axis)
    found = [values for _, values in reader.parts()]
    assert np.array_equal(np.concatenate(found, axis), grid.values, equal_nan=True)
    assert reader.bytes_read == grid.values.nbytes
    rows = np.array([0, 1, 2, 5])
    columns = [np.array([0, 3]), np.array([1, 2, 4]), np.array([2, 5])]
    part = reader.rows(rows, columns)
    columns[axis] = rows
    assert np.array_equal(part, grid.values[np.ix_(*columns)], equal_nan=True)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("axis", [0, 1])
def test_a_pass_finds_what_the_whole_grid_tells(axis):
    grid = as_grid(daily())
    values, observed = grid.values, ~np.isnan(grid.values)
    low, high = np.nanquantile(values, [0.1, 0.8])
    shares = []
    found = scan(
        PartReader(source_of(grid), axis), [(0,), (0, 1)], Bounds(low, high), shares.append
    )
    assert (found.cells, found.missing) == (values.size, (~observed).sum())
    assert found.mean == pytest.approx(np.nanmean(values), rel=1e-13)
    assert (found.least, found.largest) == (np.nanmin(values), np.nanmax(values))
    for own, theirs in zip(found.empty, empty_slices(observed), strict=True):
        assert np.array_equal(own, theirs)
    others = tuple({0, 1, 2} - {axis})
    assert np.array_equal(found.gaps, (~observed).sum(axis=others))
    for axes, seen in found.seen.items():
        assert np.array_equal(seen, observed.any(axis=axes, keepdims=True))
    bounds = Bounds(low, high)
    assert found.outside.words(bounds, observed.sum()) == bounds.count_outside(values)
    rounded = Bounds(np.nanmin(values), high)  # values below are rounding, those above are not
    assert found.outside.words(rounded, observed.sum()) == rounded.count_outside(values)
    assert not found.single
    assert shares[-1] == 1.0


def test_values_that_are_no_numbers_are_counted():
    data = daily(dtype="float32")
    data[3, 3, 3], data[4, 4, 4] = np.inf, 1e37
    grid = as_grid(data.fillna(1.0))
    found = scan(PartReader(source_of(grid), 0), [])
    assert found.missing == 2
    assert found.unusable == {"infinite": 1, "beyond 9.9e+36": 1}
    assert found.single


def test_what_cannot_be_read_in_parts_or_has_no_data_is_refused():
    grid = as_grid(daily())
    source = source_of(grid)
    object.__setattr__(source, "read", None)
    with pytest.raises(InputError, match="can only be read as a whole"):
        PartReader(source, 0)
    with pytest.raises(InputError, match="All 2520 values are missing"):
        scan(PartReader(source_of(as_grid(daily() * np.nan)), 0), [])


def test_axes_that_rise_or_fall_can_be_cut():
    assert is_rising(axis_of("x", [1.0, 2.0, 4.0]))
    assert is_rising(axis_of("x", [4.0, 2.0, 1.0]))
    assert not is_rising(axis_of("x", [1.0, 4.0, 2.0]))
