"""Panels: which coordinates they have, and what reading them costs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.model.chunked.panels import (
    SHARE,
    Stored,
    find_runs,
    find_spread,
    plan_panel,
    plan_panels,
)

ROOM = 2**24


def fits(shape) -> bool:
    return math.prod(shape) <= ROOM


def test_chunks_that_are_touched_are_counted_with_ragged_ends():
    grid = Stored((10, 7), (4, 3), 2)
    one = [np.array([3, 9]), np.array([6])]
    assert grid.touched(one) == (2, (4 + 2) * 1 * 2)
    everything = [np.arange(10), np.arange(7)]
    assert grid.touched(everything) == (9, grid.bytes)


@given(
    st.integers(1, 500), st.integers(1, 500), st.integers(1, 60), st.integers(1, 6), st.booleans()
)
def test_coordinates_of_panels_rise_and_lie_in_few_chunks(size, chunk, count, places, near):
    chunk = min(chunk, size)
    found = (find_runs if near else find_spread)(size, chunk, count, places)
    assert (np.diff(found) > 0).all()
    assert 0 <= found[0] <= found[-1] < size
    assert 1 <= found.size <= max(count + places, size if count >= size else 0)
    if count < size and not near:
        assert np.unique(found // chunk).size <= places
    if count < size and near:
        runs = 1 + np.count_nonzero(np.diff(found) > 1)
        assert runs <= places
        assert found.size >= min(count // 2, size)  # runs may touch


def test_coordinates_come_from_all_over_the_axis():
    assert np.ptp(find_spread(4000, 1, 24, 24)) > 3500
    assert np.ptp(find_spread(4000, 4000, 24, 1)) > 3500  # one chunk is read anyway
    assert np.ptp(find_runs(4000, 100, 48, 3)) > 2500
    inside = find_runs(4000, 100, 30, 3)
    assert np.unique(inside // 100).size == 3  # no run lies across two chunks


def test_levels_between_which_slices_pass_through_share_one_panel_of_few_chunks():
    grid = Stored((4000, 720, 720), (100, 180, 180), 4)
    (panel,) = plan_panels(grid, [1, 2], (), fits)
    assert panel.whole == (1, 2)
    assert panel.near == ()
    assert panel.shape[1:] == (720, 720)
    assert 3 <= panel.shape[0] <= 24
    assert grid.touched(panel.indices)[1] <= SHARE * grid.bytes


def test_a_long_level_has_a_panel_of_its_own_with_neighbours_of_the_others():
    grid = Stored((4000, 720, 720), (100, 45, 45), 4)
    first, second = plan_panels(grid, [0, 1, 2], (), fits)
    assert (first.whole, second.whole, second.near) == ((1, 2), (0,), (1, 2))
    steps = np.diff(second.indices[1])
    assert np.count_nonzero(steps == 1) >= 0.9 * steps.size
    read = sum(grid.touched(panel.indices)[1] for panel in (first, second))
    assert read <= SHARE * grid.bytes


def test_chunks_that_are_whole_along_time_are_read_by_levels_one_by_one():
    """One panel of both would read everything."""
    grid = Stored((4000, 720, 720), (4000, 10, 10), 4)
    panels = plan_panels(grid, [1, 2], (), fits)
    assert [panel.whole for panel in panels] == [(1,), (2,)]
    assert sum(grid.touched(panel.indices)[1] for panel in panels) < 0.06 * grid.bytes
    (joint,) = plan_panels(grid, [1, 2], (1, 2), fits)
    assert grid.touched(joint.indices)[1] == grid.bytes


def test_a_panel_has_fewer_coordinates_where_memory_is_short():
    grid = Stored((4000, 100, 100), (100, 50, 50), 4)
    roomy = plan_panel(grid, (0,), (1, 2), fits, grid.bytes)
    tight = plan_panel(grid, (0,), (1, 2), lambda shape: math.prod(shape) <= 4000 * 600, grid.bytes)
    assert math.prod(tight.shape) <= 4000 * 600 < math.prod(roomy.shape)
    assert plan_panel(grid, (0,), (1, 2), lambda shape: False, grid.bytes) is None
    assert plan_panels(grid, [0, 1], (), lambda shape: False) is None


@pytest.mark.parametrize("near", [None, (0, 1, 2)])
def test_neighbours_are_taken_where_they_are_needed(near):
    grid = Stored((4000, 100, 100), (10, 50, 50), 4)
    (panel,) = plan_panels(grid, [1, 2], (), fits, near=near)
    runs = np.count_nonzero(np.diff(panel.indices[0]) == 1)
    assert (runs >= 0.8 * panel.shape[0]) == (near is not None)
