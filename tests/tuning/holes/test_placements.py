"""Placing the wide holes of a grid over observed cells."""

import numpy as np
import pytest
from scipy.ndimage import label

from dkrls_cli.tuning.holes import placements
from dkrls_cli.tuning.holes.placements import place_holes, wide_holes


def holed(shape=(40, 60), part=(slice(3, 9), slice(20, 28))):
    """A grid with one box missing, and single gaps."""
    observed = np.random.default_rng(0).random(shape) > 0.05
    observed[part] = False
    return observed, ~observed


def test_single_gaps_are_no_wide_holes():
    observed = np.ones((20, 20), bool)
    observed[::3, ::3] = False
    observed[5:7, 5:7] = False
    assert wide_holes(observed, ~observed) == []
    assert not place_holes(observed, ~observed, np.random.default_rng(0)).hidden.any()


def test_a_wide_hole_has_all_its_cells_and_only_those_to_be_filled():
    observed = np.ones((20, 20), bool)
    observed[4:10, 5:9] = False
    (hole,) = wide_holes(observed, ~observed)
    assert sorted(map(tuple, hole.tolist())) == [(i, j) for i in range(4, 10) for j in range(5, 9)]
    gaps = ~observed
    gaps[4:8] = False
    (part,) = wide_holes(observed, gaps)
    assert sorted(map(tuple, part.tolist())) == [(i, j) for i in (8, 9) for j in range(5, 9)]


def test_large_holes_come_first_and_small_ones_are_left_out():
    observed = np.ones((60, 60), bool)
    observed[2:7, 2:7] = observed[20:40, 20:40] = observed[50:57, 50:57] = False
    holes = wide_holes(observed, ~observed)
    assert [len(hole) for hole in holes] == [400, 49]


def test_a_hole_is_placed_several_times_in_its_own_shape_or_mirrored():
    observed = np.ones((60, 70), bool)
    observed[20:28, 30:36] = False
    observed[28:31, 30:33] = False  # a leg: mirror images differ
    placed = place_holes(observed, ~observed, np.random.default_rng(0))
    np.testing.assert_array_equal(placed.holes, ~observed)
    assert not (placed.hidden & ~observed).any()
    labels, count = label(placed.hidden)
    sizes = np.bincount(labels.ravel())[1:]
    assert count >= 4
    assert 5 * 57 < placed.hidden.sum() <= 8 * 57
    whole = [labels == place + 1 for place in range(count) if sizes[place] == 57]
    shape = ~observed[20:31, 30:36]
    images = [np.flip(shape, axes) for axes in ((), (0,), (1,), (0, 1))]
    seen = set()
    for cells in whole:
        rows, columns = (np.flatnonzero(cells.any(axis=axis)) for axis in (1, 0))
        box = cells[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        seen |= {place for place, image in enumerate(images) if np.array_equal(box, image)}
    assert len(seen) >= 2


def test_holes_hide_a_limited_share_of_the_observed_cells():
    observed, gaps = holed((20, 40))
    placed = place_holes(observed, gaps, np.random.default_rng(0))
    assert 0 < placed.hidden.sum() <= 0.15 * observed.sum()
    observed[:, :20] = False  # half of the grid: too large to be hidden beside anything else
    placed = place_holes(observed, ~observed, np.random.default_rng(0))
    assert not placed.hidden.any()
    assert not placed.holes.any()


def test_a_hole_does_not_reach_beyond_the_edges():
    """One that spans an axis is shifted along the others alone."""
    observed = np.ones((5, 80), bool)
    observed[:, 30:35] = False
    for seed in range(10):
        hidden = place_holes(observed, ~observed, np.random.default_rng(seed)).hidden
        assert (hidden.all(axis=0) == hidden.any(axis=0)).all()
        assert hidden.any()


def test_a_hole_that_fits_nowhere_is_left_out():
    hole = np.argwhere(np.ones((4, 4), bool))
    free = np.zeros((10, 10), bool)
    assert placements._find_place(hole, free, np.random.default_rng(0)) is None
    free[::2] = True  # half is enough if there is no better place
    found = placements._find_place(hole, free, np.random.default_rng(0))
    assert found is not None
    assert free[found].mean() == 0.5


def test_a_place_where_most_is_observed_is_preferred():
    hole = np.argwhere(np.ones((4, 4), bool))
    free = np.zeros((30, 12), bool)
    free[::2] = True
    free[15:] = True
    for seed in range(5):
        found = placements._find_place(hole, free, np.random.default_rng(seed))
        assert found is not None
        assert free[found].mean() >= 0.8


@pytest.mark.parametrize("seed", [0, 1])
def test_placements_follow_the_random_numbers(seed):
    observed, gaps = holed()
    first, again = (place_holes(observed, gaps, np.random.default_rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(first.hidden, again.hidden)
    other = place_holes(observed, gaps, np.random.default_rng(seed + 7))
    assert (first.hidden != other.hidden).any()
