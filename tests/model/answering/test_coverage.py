"""A coverage answers for the nearest cell, and forgets land that has data by now."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.answering.coverage import Coverage, coverage_of

EAST = {"units": "degrees_east"}
LAT, LON = axis_of("lat", [-10.0, 0.0, 10.0]), axis_of("lon", np.arange(0.0, 360, 90), EAST)
TIME = axis_of("time", [0.0, 1.0, 2.0])
LAND = np.zeros((1, 3, 4), bool)
LAND[0, 0, 1] = LAND[0, 2, 0] = True
COVERAGE = Coverage((TIME, LAT, LON), LAND)


def test_the_nearest_cell_decides_between_coordinates_and_across_the_seam():
    axes = (TIME.at([0.5]), LAT.at([-7.0, 4.0, 80.0]), LON.at([44.0, 46.0, 350.0]))
    found = COVERAGE.absent_on(axes)
    assert found.shape == (1, 3, 3)
    assert found[0].tolist() == [[False, True, False], [False] * 3, [True, False, True]]


@given(
    st.lists(
        st.tuples(
            st.floats(-5, 5, allow_nan=False),
            st.floats(-90, 90, allow_nan=False),
            st.floats(-400, 400, allow_nan=False),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_points_are_as_the_cells_of_a_grid(points):
    numbers = [np.array(column) for column in zip(*points, strict=True)]
    numbers[2] = LON.encode(numbers[2])
    alone = [
        COVERAGE.absent_on([TIME.at([t]), LAT.at([y]), LON.at([x])]).item()
        for t, y, x in zip(*numbers, strict=True)
    ]
    found = COVERAGE.absent_at(numbers, {0: 0, 1: 0, 2: 0}, 1)
    assert np.broadcast_to(found, len(points)).tolist() == alone


def test_stations_are_as_the_cells_of_a_grid():
    lat, lon = LAT.at([-9.0, 4.0]), LON.at([100.0, 350.0, 10.0])
    found = COVERAGE.absent_at([TIME.numbers, lat.numbers, lon.numbers], {0: 1, 1: 2, 2: 0}, 3)
    cells = COVERAGE.absent_on((TIME, lat, lon))
    np.testing.assert_array_equal(found, cells.transpose(2, 0, 1))


def test_land_that_has_data_by_now_is_land_no_longer():
    longer = axis_of("time", [0.0, 1.0, 2.0, 3.0])
    unobserved = np.broadcast_to(LAND, (4, 3, 4)).copy()
    unobserved[3, 0, 1] = False
    grown = COVERAGE.grow(0, (longer, LAT, LON), unobserved)
    assert grown.axes[0].size == 4
    assert np.argwhere(grown.absent).tolist() == [[0, 2, 0]]
    assert not COVERAGE.grow(0, (longer, LAT, LON), None).has_land
    assert np.count_nonzero(COVERAGE.absent) == 2


def test_coordinates_that_the_model_does_not_have_stay_land():
    fewer = LAT.take([0, 1])
    grown = COVERAGE.grow(0, (TIME, fewer, LON), None)
    assert np.argwhere(grown.absent).tolist() == [[0, 2, 0]]


def test_a_mask_along_the_axis_that_grows_follows_its_slices():
    absent = np.array([[True, False, False], [False, False, True]])
    x, y = axis_of("x", [0.0, 1.0]), axis_of("y", [0.0, 1.0, 2.0])
    longer = axis_of("y", [1.0, 2.0, 3.0, 4.0])
    unobserved = np.array([[False, False, True, False], [False, True, False, False]])
    grown = Coverage((x, y), absent).grow(1, (x, longer), unobserved)
    assert grown.absent.tolist() == [[False, False, True, False], [False, True, False, False]]


def test_a_grid_without_land_grows_without_a_mask():
    whole = Coverage((TIME, LAT), np.zeros((1, 1), bool))
    assert whole.grow(0, (axis_of("time", [5.0]), LAT), None).axes[0].texts == ["5.0"]
    assert not whole.has_land
    every = Coverage((TIME, LAT), np.zeros((3, 3), bool))  # of slices without data, not of land
    longer = axis_of("time", np.arange(5.0))
    assert not every.grow(0, (longer, LAT), None).absent_on([longer, LAT]).any()


def test_a_mask_has_some_of_the_dimensions_in_any_order_at_any_coordinates():
    fine = axis_of("lon", [-90.0, 0.0, 90.0], EAST)
    values = np.array([[[1.0, 0.0, np.nan], [2.0, 3.0, 4.0]]]).transpose(2, 1, 0)
    mask = Grid(values, (fine, axis_of("lat", [0.0, 5.0]), axis_of("z", [1.0])), "land")
    known = coverage_of(mask, (TIME, LAT, LON))
    assert known.absent.shape == (1, 4, 5)  # with an end on each side
    found = known.absent_on((TIME.at([7.0]), LAT.at([-4.0, 4.0]), LON.at([270.0, 10.0, 100.0])))
    assert found[0].tolist() == [[False, True, True], [False, False, False]]


def test_a_mask_may_have_other_names_for_the_same():
    axes = axis_of("latitude", [0.0, 5.0]), axis_of("x", [-90.0, 0.0, 90.0], EAST)
    mask = Grid(np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]), axes, "land")
    known = coverage_of(mask, (TIME, LAT, LON))
    assert np.argwhere(known.absent[:, :2, :3]).tolist() == [[0, 0, 1]]


def test_beyond_its_ends_a_mask_says_nothing():
    """Such as that of a region: the cell at its edge does not decide for the rest of the world."""
    lat, lon = axis_of("lat", [40.0, 20.0, 30.0]), axis_of("lon", np.arange(90.0, 180.0, 15), EAST)
    known = coverage_of(Grid(np.ones((3, 6)), (lat, lon), "land"), (TIME, LAT, LON))
    found = known.absent_on((TIME, LAT.at([9.9, 10.1, 30.0, 49.9, 50.1]), LON.at([100.0])))
    assert found.ravel().tolist() == [True, False, False, False, True]
    found = known.absent_on((TIME, LAT.at([30.0]), LON.at([-90.0, 74.9, 75.1, 179.9, 180.1])))
    assert found.ravel().tolist() == [True, True, False, False, True]
    wide = axis_of("lon", np.arange(0.0, 300.0, 50), EAST)  # a gap of 110 degrees, two steps
    known = coverage_of(Grid(np.ones((3, 6)), (lat, wide), "land"), (TIME, LAT, LON))
    found = known.absent_on((TIME, LAT.at([30.0]), LON.at([277.0, 278.0, 332.0, 333.0, -1.0])))
    assert found.ravel().tolist() == [False, True, True, False, False]


def test_a_mask_of_a_ring_or_of_names_has_no_ends():
    ring = axis_of("lon", np.arange(0.0, 360.0, 15), EAST)
    site = axis_of("site", ["a", "b"])
    known = coverage_of(Grid(np.ones((24, 2)), (ring, site), "land"), (ring, site))
    assert known.absent.shape == (24, 2)
    assert not known.has_land


def test_a_mask_with_another_dimension_is_refused():
    mask = Grid(np.ones(2), (axis_of("depth", [1.0, 2.0]),), "floor")
    with pytest.raises(InputError, match="'floor' has a dimension 'depth'"):
        coverage_of(mask, (TIME, LAT))


def test_both_columns_of_a_longitude_that_is_there_twice_get_data():
    twice = axis_of("lon", [-180.0, -90.0, 0.0, 90.0, 180.0], EAST)
    land = np.zeros((1, 3, 5), bool)
    land[0, 1, [0, 4]] = land[0, 2, 2] = True
    unobserved = np.zeros((2, 3, 4), bool)
    unobserved[:, 2, 2] = True
    trained = (axis_of("time", [0.0, 1.0]), LAT, twice.take([0, 1, 2, 3]))
    grown = Coverage((TIME.take([0]), LAT, twice), land).grow(0, trained, unobserved)
    assert np.argwhere(grown.absent).tolist() == [[0, 2, 2]]


def test_other_land_is_that_of_the_training_grid_and_all_that_is_not_trained():
    land = np.zeros((1, 2, 4), bool)
    land[0, 0, 3] = True
    changed = COVERAGE.with_land((TIME, LAT.take([0, 1]), LON), land)
    assert changed.absent.shape == (1, 3, 4)
    expected = [[0, 0, 3], [0, 2, 0], [0, 2, 1], [0, 2, 2], [0, 2, 3]]
    assert np.argwhere(changed.absent).tolist() == expected
    nothing = COVERAGE.with_land((TIME, LAT.take([0, 1]), LON), np.zeros((1, 1, 1), bool))
    assert np.argwhere(nothing.absent).tolist() == [[0, 2, 0]]
    assert not COVERAGE.with_land((TIME, LAT, LON), np.zeros((1, 1, 1), bool)).has_land


def test_numbers_a_turn_away_are_the_same_place():
    points = [np.zeros(3), np.full(3, 10.0), np.array([359.0, -1.0, 300.0])]
    found = COVERAGE.absent_at(points, {0: 0, 1: 0, 2: 0}, 1)
    assert found.tolist() == [True, True, False]
