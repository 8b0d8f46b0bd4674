"""Coordinates at which no cell is observed."""

import numpy as np
import pytest

from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.training.lost import drop_lost_slices, outage_folds

RNG = np.random.default_rng(5)
X, D = np.linspace(0, 4, 9), np.sort(RNG.uniform(0, 6, 11))
CLEAN = np.sin(np.add.outer(X, D / 2)) + 3.0
GAPS = RNG.random(CLEAN.shape) < 0.3
VALUES = np.where(GAPS, np.nan, CLEAN)


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ([2], "1 of 9 coordinates have no observed cell and are left out, 2"),
        ([0, 4, 8], "3 of 9 coordinates have no observed cell and are left out, 0, 4, 8"),
        (
            [1, 2, 4, 5, 6],
            "5 of 9 coordinates have no observed cell and are left out, 1, 2, 4, 5, ... (5 in all)",
        ),
    ],
)
def test_lost_slices_are_dropped_and_some_of_them_named(lost, named):
    values = CLEAN.copy()
    values[lost] = np.nan
    grid, notes = drop_lost_slices(as_grid(values, {"x": range(9), "d": D}))
    assert notes == [f"x: {named}"]
    np.testing.assert_array_equal(grid.values, np.delete(CLEAN, lost, 0))
    assert grid.axes[0].numbers.tolist() == np.delete(np.arange(9.0), lost).tolist()
    assert grid.axes[1].size == D.size


def test_without_a_lost_slice_or_an_observed_cell_the_grid_is_returned():
    for values in (VALUES, CLEAN, np.full((3, 4), np.nan)):
        grid = as_grid(values)
        assert drop_lost_slices(grid) == (grid, [])


@pytest.mark.parametrize(
    ("lost", "folds"),
    [
        ([], None),
        ([0, 1, 2, 38, 39], None),  # before the first slice and after the last one
        ([5, 9, 20], None),  # single slices are left out one by one
        ([10, 11], 19),  # 38 slices in blocks of two
        ([4, 8, 20, 21, 22, 30], 11),  # three of the six lie in one outage: blocks of three
        (list(range(5, 25)), 4),  # at least
    ],
)
def test_blocks_that_are_left_out_are_as_wide_as_the_outages(lost, folds):
    observed = np.ones((3, 40), bool)
    observed[:, lost] = False
    observed[1] = False  # a single slice of the first axis
    assert outage_folds(observed) == ({} if folds is None else {1: folds})
