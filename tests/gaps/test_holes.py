"""Holes of a grid: connected missing cells, runs to the end of an axis, distances from data."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.gaps.holes import (
    Reach,
    label_holes,
    nearest_distance,
    reaches_end,
    shore,
    within_reach,
)

SEEDS = st.integers(0, 2**32 - 1)


def random_holes(seed, shape=(7, 9)):
    rng = np.random.default_rng(seed)
    return rng.random(shape) < rng.uniform(0.05, 0.95)


# Connected cells ----------------------------------------------------------------------------------


def flooded(missing, ring):
    """Holes as sets of cells, each flooded from its first cell."""
    left = {tuple(cell) for cell in np.argwhere(missing).tolist()}
    holes = []
    while left:
        edge, hole = [left.pop()], set()
        while edge:
            cell = edge.pop()
            hole.add(cell)
            for axis in range(missing.ndim):
                for step in (-1, 1):
                    other = list(cell)
                    other[axis] += step
                    if axis == ring:
                        other[axis] %= missing.shape[axis]
                    if tuple(other) in left:
                        left.remove(tuple(other))
                        edge.append(tuple(other))
        holes.append(frozenset(hole))
    return set(holes)


@given(SEEDS, st.sampled_from([None, 0, 1]))
def test_holes_are_the_cells_that_a_flood_reaches(seed, ring):
    missing = random_holes(seed)
    labels, count = label_holes(missing, ring)
    expected = flooded(missing, ring)
    assert len(expected) == count
    assert np.array_equal(labels > 0, missing)
    assert set(np.unique(labels[missing])) == set(range(1, count + 1))
    found = {frozenset(map(tuple, np.argwhere(labels == i).tolist())) for i in range(1, count + 1)}
    assert found == expected


def test_a_ring_joins_chains_of_holes():
    """Two holes at one side of the seam and one at the other are one; so is a hole on both ends."""
    missing = np.zeros((5, 6), bool)
    missing[[0, 4], 0] = missing[:, 5] = True
    assert label_holes(missing)[1] == 3
    assert label_holes(missing, ring=1)[1] == 1
    everything = np.ones((3, 4), bool)
    assert label_holes(everything, ring=1)[1] == 1
    assert label_holes(~everything, ring=1)[1] == 0


def test_axes_of_one_coordinate_do_not_matter():
    missing = random_holes(5)
    labels, count = label_holes(missing[None, :, None], ring=3)
    assert np.array_equal(labels[0, :, 0], label_holes(missing, ring=1)[0])
    assert count == label_holes(missing, ring=1)[1]


# Distances ----------------------------------------------------------------------------------------


@given(SEEDS, st.booleans())
def test_the_nearest_datum_is_on_the_shore(seed, circle):
    rng = np.random.default_rng(seed)
    missing = random_holes(seed)
    if not missing.any() or missing.all():
        return
    x, y = (np.cumsum(rng.uniform(0.1, 2.0, size)) for size in missing.shape)
    angle = y / (y[-1] + 1) * (2 * np.pi if circle else 1.0)
    up, round_ = np.meshgrid(x, angle, indexing="ij")
    points = np.stack([up, np.cos(round_), np.sin(round_)] if circle else [up, round_], axis=-1)
    near_shore = nearest_distance(points[missing], points[shore(missing)], math.inf)
    all_data = points[~missing]
    expected = [np.linalg.norm(all_data - p, axis=1).min() for p in points[missing]]
    np.testing.assert_allclose(near_shore, expected)


def test_inner_data_is_not_on_the_shore():
    missing = np.zeros((9, 9), bool)
    missing[4, 4] = True
    found = shore(missing)
    assert np.argwhere(found[1:-1, 1:-1]).tolist() == [[2, 3], [3, 2], [3, 4], [4, 3]]
    assert not found[4, 4]


def test_a_distance_of_just_the_limit_is_found_and_a_larger_one_is_not():
    points, data = np.array([[0.0], [3.0], [3.0 + 1e-9]]), np.array([[0.0]])
    assert nearest_distance(points, data, 3.0).tolist() == [0.0, 3.0, np.inf]
    assert nearest_distance(points, np.empty((0, 1)), 3.0).tolist() == [np.inf] * 3


@given(SEEDS, st.sampled_from([0, 1]))
def test_runs_reach_an_end_if_nothing_but_missing_cells_is_on_the_way(seed, axis):
    missing = random_holes(seed)
    found = np.moveaxis(reaches_end(missing, axis), axis, 0)
    lines = np.moveaxis(missing, axis, 0)
    expected = [
        [lines[: i + 1, j].all() or lines[i:, j].all() for j in range(lines.shape[1])]
        for i in range(lines.shape[0])
    ]
    assert np.array_equal(found, expected)


# Reaches ------------------------------------------------------------------------------------------


def nearby(missing, reaches):
    """Cells with a datum in their ellipse, pair by pair."""
    found = ~missing
    for cell in np.argwhere(missing):
        for datum in np.argwhere(~missing):
            total = 0.0
            for axis, (i, j) in enumerate(zip(cell, datum, strict=True)):
                if axis not in reaches:
                    total += 0.0 if i == j else math.inf
                    continue
                reach = reaches[axis]
                step = abs(reach.coordinates[i] - reach.coordinates[j])
                if reach.period is not None:
                    step = min(step % reach.period, -step % reach.period)
                total += (step / reach.length) ** 2
            found[tuple(cell)] |= total <= 1
    return found


@pytest.mark.slow
@given(SEEDS, st.sampled_from([{0}, {1}, {0, 1}, {0, 2}, {0, 1, 2}]), st.booleans())
def test_cells_are_near_if_a_datum_is_in_their_ellipse(seed, axes, circle):
    rng = np.random.default_rng(seed)
    missing = random_holes(seed, (5, 4, 6)) | (rng.random((5, 4, 6)) < 0.6)
    reaches = {}
    for axis in axes:
        size = missing.shape[axis]
        coordinates = rng.permutation(np.cumsum(rng.uniform(0.2, 2, size)))
        turn = coordinates.max() + rng.uniform(-0.5, 1.0) if circle else None
        reaches[axis] = Reach(coordinates, rng.uniform(0.3, 5), turn)
    assert np.array_equal(within_reach(missing, reaches), nearby(missing, reaches))


def test_a_cell_of_just_the_distance_is_near():
    missing = np.ones((21, 21), bool)
    missing[10, 10] = False
    steps = np.arange(21) * 0.1
    found = within_reach(missing, {axis: Reach(steps, 0.5) for axis in (0, 1)})
    away = np.hypot(*np.meshgrid(np.arange(-10, 11), np.arange(-10, 11)))
    assert np.array_equal(found, away <= 5)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_short_circles_are_gone_round_both_ways(size):
    missing = np.ones(size, bool)
    missing[0] = False
    for count in range(1, size):
        found = within_reach(missing, {0: Reach(np.arange(float(size)), count, size)})
        steps = np.arange(size)
        assert np.array_equal(found, np.minimum(steps, size - steps) <= count)


def test_a_coordinate_one_turn_later_is_the_same_place():
    missing = np.array([False, True, True, True])
    found = within_reach(missing, {0: Reach(np.array([0.0, 120, 240, 360]), 1.0, 360.0)})
    assert found.tolist() == [True, False, False, True]


def test_what_is_near_grows_with_the_reach():
    missing = random_holes(3) | (random_holes(4))
    counts = [
        int(within_reach(missing, {0: Reach(np.arange(7.0), r), 1: Reach(np.arange(9.0), r)}).sum())
        for r in (0.5, 1, 1.5, 3, 20)
    ]
    assert counts[0] == (~missing).sum()
    assert all(a <= b for a, b in pairwise(counts))
    assert counts[-1] == missing.size
