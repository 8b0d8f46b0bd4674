"""Only gaps up to a length and cells up to a distance from data are filled."""

import math

import numpy as np
import pytest
from cloudy_seas import (
    ALWAYS,
    GIVEN,
    GRID,
    LAT,
    LON,
    MISSING,
    SETTINGS,
    WET,
    chosen,
    sample,
)

from dkrls_cli import fill
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.filling.cells import choose_cells
from dkrls_cli.model.settings import Settings

STEPS = np.array([0.0, 1.0, 3.0, 4.0, 7.0, 8.0])
ONE_GAP = np.array([1.0, 2.0, np.nan, np.nan, 3.0, 4.0])  # from 1 to 7: six long


def fills(max_gap, values=ONE_GAP, axis=STEPS):
    cells, _ = chosen(as_grid(values, {"x": axis}), Settings(), "none", max_gap)
    return bool(cells.any())


@pytest.mark.parametrize(
    ("limit", "filled"),
    [
        (6.0, True),
        ("6", True),
        (6 * (1 - 1e-10), True),  # the same but for rounding
        (6 * (1 - 3e-9), False),
        (5.999, False),
        (1, False),
        (1e9, True),
        (math.inf, True),
    ],
)
def test_a_gap_of_just_the_limit_is_filled_and_a_longer_one_is_not(limit, filled):
    assert fills({"x": limit}) is filled
    assert fills({"x": limit}, ONE_GAP[::-1], STEPS[::-1]) is filled


def test_a_gap_is_as_long_as_it_is_missing_masked_or_not():
    open_cells = np.array([1, 1, 1, 0, 1, 1])
    for limit, count in ((6, 1), (5, 0)):
        grid = as_grid(ONE_GAP, {"x": STEPS})
        cells, left = chosen(grid, Settings(), open_cells, {"x": limit})
        assert cells.sum() == count
        assert left["left as masked"] == 1
        assert left.get("left in gaps along x", 0) == 1 - count


def test_gaps_are_filled_whole_or_not_at_all_and_counted():
    cells, left = chosen(GRID, SETTINGS, "always", {"time": 2})
    sea = MISSING & ~ALWAYS
    assert not cells[2:5, 2, 1].any()
    assert left["left as masked"] == ALWAYS.sum()
    assert left["left in gaps along time"] == (sea & ~cells).sum() > 0
    assert cells.any()


def test_time_may_be_a_duration():
    def cells(**limits):
        return chosen(GRID, SETTINGS, "none", limits)[0]

    for text, days in (("2D", 2), ("48H", 2), ("1W", 7), ("0.1M", 365.2425 / 120)):
        assert np.array_equal(cells(time=text), cells(time=days))
    assert not np.array_equal(cells(time="2D"), cells(time="1D"))


def test_a_gap_must_be_short_along_every_dimension_named():
    each = [chosen(GRID, SETTINGS, "none", {dim: 9})[0] for dim in ("lat", "lon")]
    both, left = chosen(GRID, SETTINGS, "none", {"lat": 9, "lon": 9})
    assert np.array_equal(both, each[0] & each[1])
    assert not np.array_equal(both, each[0])
    assert both.sum() + sum(left.values()) == MISSING.sum()


@pytest.mark.parametrize(
    ("max_gap", "message"),
    [
        ({"depth": 3}, "no dimension 'depth'. The data has time, lat, lon"),
        ({"lat": "3D"}, "longest gap '3D' along 'lat': that is not a number"),
        ({"lat": 0}, "longest gap 0 along 'lat'. It must be above 0"),
        ({"lat": -1}, "above 0"),
        ({"time": "-1"}, "above 0"),
        ({"lon": math.nan}, "above 0"),
        ({"time": "soon"}, "'soon' is not a time step"),
    ],
)
def test_lengths_that_cannot_be_are_refused(max_gap, message):
    with pytest.raises(SettingError, match=message):
        fill(sample(), max_gap=max_gap)


# Distance from data -------------------------------------------------------------------------------


def near(grid, places, limit):
    """Cells at most so far from data, pair by pair: `places` has the positions of every axis."""
    missing = np.isnan(grid.values)
    found = np.zeros(missing.shape, bool)
    for cell in np.argwhere(missing):
        for datum in np.argwhere(~missing):
            steps = [abs(p[i] - p[j]) for p, i, j in zip(places, cell, datum, strict=True)]
            found[tuple(cell)] |= math.hypot(*steps) <= limit * (1 + 1e-12)
    return found


@pytest.mark.parametrize("within", [1, 1.5, "2", 2.4])
def test_a_distance_counts_cells_along_places(within):
    found = choose_cells(GRID, SETTINGS, within=within)
    places = np.arange(10) * 1e9, np.arange(6), np.arange(7)  # no datum of another day is near
    assert np.array_equal(found.cells, near(GRID, places, float(within)))
    (reason,) = found.left
    assert reason == f"left further than {within} cell{'s' * (within != 1)} from data"
    assert found.cells.sum() + found.left[reason] == MISSING.sum()


@pytest.mark.parametrize("first", [0.0, -180.0, 130.0])
@pytest.mark.parametrize("twice", [False, True])
def test_gaps_go_round_the_circle_of_longitude(first, twice):
    """A gap across the end of the file is as long as any other."""
    lon = first + np.arange(0.0, 360.0 + 15 * twice, 15)
    values = np.ones((2, lon.size))
    values[0, np.isin(lon % 360, [0, 345])] = np.nan
    values[1, np.isin(lon % 360, [330, 345, 0, 15])] = np.nan
    grid = Grid(values, (axis_of("lat", [0.0, 9.0]), axis_of("lon", lon, {"axis": "X"})), "t")
    for limit, rows in ((44.0, []), (45.0, [0]), (74.0, [0]), (75.0, [0, 1])):
        found = choose_cells(grid, Settings(), "none", {"lon": limit}).cells
        np.testing.assert_array_equal(found[rows], np.isnan(values)[rows])
        assert found.sum() == found[rows].sum()


def test_distances_by_dimension_are_an_ellipse_in_their_units():
    found = choose_cells(GRID, SETTINGS, within={"lat": 10, "lon": "6"})
    places = np.arange(10) * 1e9, LAT / 10, LON / 6
    assert np.array_equal(found.cells, near(GRID, places, 1.0))
    assert list(found.left) == ["left further than lat 10, lon 6 from data"]
    found = choose_cells(GRID, SETTINGS, within={"time": "36H"})
    places = np.arange(10) / 1.5, np.arange(6) * 1e9, np.arange(7) * 1e9
    assert np.array_equal(found.cells, near(GRID, places, 1.0))


def test_distances_go_round_the_circle_of_longitude():
    values = np.where(np.arange(12) == 1, 5.0, np.nan) * np.ones((2, 1))
    axes = axis_of("lat", [0.0, 1.0]), axis_of("lon", np.arange(0.0, 360, 30), {"axis": "X"})
    grid = Grid(values, axes)
    cells = choose_cells(grid, Settings(), within=2).cells
    assert np.flatnonzero(cells[0]).tolist() == [0, 2, 3, 11]
    cells = choose_cells(grid, Settings(), within={"lon": 60}).cells
    assert np.flatnonzero(cells[0]).tolist() == [0, 2, 3, 11]
    part = axis_of("lon", np.arange(0.0, 360, 5), {"axis": "X"}).take([0, 1, 2, 70])  # 350 is last
    near_zero = Grid(np.array([1.0, np.nan, np.nan, np.nan]), (part,))
    assert choose_cells(near_zero, Settings(), within={"lon": 10}).cells.sum() == 3
    assert choose_cells(near_zero, Settings(), within={"lon": 9}).cells.sum() == 1
    assert choose_cells(near_zero, Settings(), within=2).cells.sum() == 3


def test_cells_are_counted_along_all_but_the_last_level_without_places():
    plain = as_grid(GRID.values)
    cells = choose_cells(plain, Settings(), within=1).cells
    places = np.arange(10), np.arange(6), np.arange(7) * 1e9
    assert np.array_equal(cells, near(plain, places, 1.0))
    series = as_grid(ONE_GAP[None, :].repeat(3, 0), {"site": list("abc"), "x": STEPS})
    assert np.array_equal(choose_cells(series, Settings(), within=1).cells, np.isnan(series.values))
    line = as_grid([1.0, *[np.nan] * 5, 2.0])
    assert np.flatnonzero(choose_cells(line, Settings(), within=2).cells).tolist() == [1, 2, 4, 5]


def test_with_a_distance_nothing_is_masked_unless_asked_for():
    coasts = choose_cells(GRID, SETTINGS, within={"lat": 8})
    assert (coasts.cells & ALWAYS).any()
    both = choose_cells(GRID, SETTINGS, "always", within={"lat": 8})
    assert np.array_equal(both.cells, coasts.cells & ~ALWAYS)
    assert list(both.left) == ["left as masked", "left further than lat 8 from data"]
    wet = choose_cells(GRID, SETTINGS, WET, {"time": 2}, {"lat": 8})
    assert len(wet.left) == 3
    assert wet.cells.sum() + sum(wet.left.values()) == MISSING.sum()
    filled = fill(sample(), within={"lat": 10, "lon": 6}, **GIVEN)
    expected = choose_cells(GRID, SETTINGS, within={"lat": 10, "lon": 6}).cells
    assert np.array_equal(np.isnan(filled), MISSING & ~expected)


@pytest.mark.parametrize(
    ("within", "message"),
    [
        (0, "distance '0' from data. Give a number of cells above 0"),
        (-1, "above 0"),
        (math.nan, "above 0"),
        (math.inf, "above 0"),
        ("2D", "distance '2D' from data"),
        ({"depth": 3}, "no dimension 'depth'"),
        ({"lat": "3D"}, "distance '3D' along 'lat': that is not a number"),
        ({"lat": 0}, "distance 0 along 'lat'. It must be above 0"),
        ({"lat": math.inf}, "along 'lat'. It must be finite"),
        ({}, "names no dimension"),
    ],
)
def test_distances_that_cannot_be_are_refused(within, message):
    with pytest.raises(SettingError, match=message):
        fill(sample(), within=within)


def test_labels_have_no_distance():
    grid = as_grid(np.where(MISSING[0], np.nan, 1.0), {"a": list("abcdef"), "b": list("abcdefg")})
    with pytest.raises(SettingError, match="'a' holds text labels"):
        fill(grid, within={"a": 1})
    with pytest.raises(SettingError, match="All dimensions hold text labels"):
        fill(grid, within=1)


@pytest.mark.parametrize("within", [1, {"month": 1}])
def test_months_beside_years_are_no_circle(within):
    """December is far from the January of its own year; alone, months close a circle."""
    months, years = np.arange(1.0, 13), np.arange(2000.0, 2004)
    alone = np.where(months == 1, 1.0, np.nan)
    near, _ = chosen(as_grid(alone, {"month": months}), Settings(), "none", None, within)
    assert near[-1]
    both = as_grid(np.tile(alone, (4, 1)), {"year": years, "month": months})
    near, _ = chosen(both, Settings(levels=["month", "year"]), "none", None, within)
    assert near[:, 1].all()
    assert not near[:, -1].any()
