"""Pictures of filled grids: the fullest slice, before, after and the standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dkrls_cli.files.source import Source
from dkrls_cli.grid.axes import Axis, axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.style import Style
from dkrls_cli.model.fill import Filled, fill_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.plots import filling
from dkrls_cli.plots.filling import picture_filled, slice_files, slice_filled
from dkrls_cli.plots.slices import Fixed

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
TIME, LAT, LON = np.arange(6.0), np.linspace(-40.0, 40.0, 5), np.linspace(0.0, 100.0, 6)
AXES = (axis_of("time", TIME), axis_of("lat", LAT, NORTH), axis_of("lon", LON, EAST))


def whole() -> Any:
    t, y, x = np.meshgrid(TIME, np.radians(LAT), np.radians(LON), indexing="ij")
    return np.cos(y) * np.sin(x + t / 9)


def gappy() -> Grid:
    values = whole()
    values[2, 1, 2:4] = np.nan
    values[4, 2, 1] = np.nan
    values[:, 0, 0] = np.nan  # land
    return Grid(values, AXES, "t", {"units": "K"})


@pytest.fixture(scope="module")
def filled() -> Filled:
    return fill_grid(gappy(), Settings(sigma=30.0, ridge=1e-6))


@pytest.fixture(scope="module")
def with_std() -> Filled:
    return fill_grid(gappy(), Settings(sigma=30.0, ridge=1e-6), std=True)


def test_the_slice_with_most_filled_cells_is_shown(with_std: Filled) -> None:
    found = slice_filled(with_std)
    assert found.fixed == [Fixed("time", "2.0", "where most cells (2) are filled", asked=True)]
    np.testing.assert_array_equal(found.before.values[0], gappy().values[2])
    np.testing.assert_array_equal(found.after[0], with_std.grid.values[2])
    assert found.errors is not None
    assert with_std.std is not None
    np.testing.assert_array_equal(found.errors[0], with_std.std[2])


def test_errors_that_were_not_asked_for_are_computed(filled: Filled, with_std: Filled) -> None:
    assert filled.std is None
    one, other = slice_filled(filled).errors, slice_filled(with_std).errors
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)
    assert np.isnan(one[0, 0, 0])
    assert one[0, 1, 2] > 0 == one[0, 3, 3]


def test_a_picture_has_three_fields_and_land_stays_missing(filled: Filled) -> None:
    picture = picture_filled(slice_filled(filled))
    assert picture is not None
    assert picture.title == "t, time 2"
    before, after, errors = picture.fields
    assert [one.heading for one in picture.fields] == ["before", "after", "standard error"]
    assert before.scale == after.scale
    assert np.isnan(before.values).sum() == 3
    assert np.isnan(after.values).sum() == np.isnan(errors.values).sum() == 1
    assert np.isnan(after.values[0, 0])


def test_nothing_filled_shows_the_slice_with_most_data() -> None:
    values = whole()
    values[1:, 0, :2] = np.nan
    grid = Grid(values, AXES, "t")
    found = slice_filled(Filled(grid, np.zeros(values.shape, bool), None, {}, None))
    assert found.fixed == [Fixed("time", "0.0", "where most cells have data", asked=True)]
    picture = picture_filled(found)
    assert picture is not None
    assert [one.heading for one in picture.fields] == ["before", "after"]


def test_a_grid_without_values_has_no_picture() -> None:
    grid = Grid(np.full((5, 6), np.nan), AXES[1:], "t")
    none = np.zeros(grid.values.shape, bool)
    assert picture_filled(slice_filled(Filled(grid, none, None, {}, None))) is None


def test_one_dimension_is_a_line_with_the_data() -> None:
    values = np.sin(np.arange(30.0) / 5)
    values[10:12] = np.nan
    grid = Grid(values, (axis_of("x", np.arange(30.0)),), "t")
    picture = picture_filled(slice_filled(fill_grid(grid, Settings(sigma=5.0), mask="none")))
    assert picture is not None
    line = picture.line
    assert line is not None
    assert line.points is not None
    assert line.high is not None
    assert line.label == "filled"
    assert np.isfinite(line.values).all()
    assert line.points[0].tolist() == [float(i) for i in range(30) if i not in (10, 11)]
    assert (line.high - line.values)[10] > 0 == (line.high - line.values)[3]


# Files --------------------------------------------------------------------------------------------


def source(values: Any, axes: tuple[Axis, ...] = AXES) -> Source:
    def read(indices: Sequence[Any]) -> Any:
        reads.append(values[np.ix_(*indices)].size)
        return values[np.ix_(*indices)]

    reads: list[int] = []
    found = Source(axes, "t", {"units": "K"}, Style(), "float64", lambda: values, read=read)
    object.__setattr__(found, "reads", reads)
    return found


@pytest.mark.parametrize("cells", [1, 60, 2**21])
def test_files_show_the_same_as_memory(
    with_std: Filled, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "_BLOCK_CELLS", cells)
    before, after = source(gappy().values), source(with_std.grid.values)
    found = slice_files(before, after, source(with_std.std))
    expected = slice_filled(with_std)
    assert found.fixed == expected.fixed
    np.testing.assert_array_equal(found.before.values, expected.before.values)
    np.testing.assert_array_equal(found.after, expected.after)
    assert found.errors is not None
    assert expected.errors is not None
    np.testing.assert_array_equal(found.errors, expected.errors)
    assert max(before.reads) <= max(cells, 30)  # type: ignore[attr-defined]
    assert slice_files(before, after, None).errors is None


def test_long_axes_of_files_are_read_at_some_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "_MOST_READ", 3)
    found = slice_files(source(gappy().values), source(whole()), None)
    assert found.before.values.shape == (1, 3, 3)
    assert found.before.axes[2].numbers.tolist() == [0.0, 40.0, 80.0]


def test_two_dimensions_are_read_once() -> None:
    values = gappy().values[2]
    before = source(values, AXES[1:])
    found = slice_files(before, source(whole()[2], AXES[1:]), None)
    assert found.fixed == []
    np.testing.assert_array_equal(found.before.values, values)
    assert len(before.reads) == 1  # type: ignore[attr-defined]
