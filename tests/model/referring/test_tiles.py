"""Tiles hold what points need, once, and little else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.model.referring.tiles import Needs, tile_sizes

WINDOWS = st.lists(st.tuples(st.integers(0, 19), st.integers(1, 20)), min_size=1, max_size=6)


@given(WINDOWS, st.lists(st.integers(0, 11), min_size=1, unique=True), st.integers(1, 20))
def test_tiles_cover_the_windows_of_every_group_once(windows, samples, size):
    bounds = np.array([(start, start + width) for start, width in windows])
    needs = Needs({0: bounds}, {1: np.sort(samples)})
    seen = np.zeros((len(windows), 20, 12), int)
    for tile in needs.tiles([20, 12], [size, 5]):
        assert tile.box[0].stop - tile.box[0].start <= size
        for group in tile.groups:
            seen[(group, *tile.box)] += 1
    for group, (start, width) in enumerate(windows):
        needed = np.arange(start, start + width) % 20
        assert (seen[group][np.ix_(needed, np.sort(samples))] == 1).all()
    assert seen.max() == 1


def test_what_nobody_needs_is_not_read():
    needs = Needs({0: np.array([[0, 2], [5, 6]])}, {1: np.array([3])})
    boxes = [tile.box for tile in needs.tiles([9, 9], [4, 2])]
    assert boxes == [(slice(0, 2), slice(3, 4)), (slice(5, 6), slice(3, 4))]


def test_axes_that_are_whole_are_not_cut():
    needs = Needs({0: np.array([[0, 2]]), 1: np.array([[3, 4]])}, {}, frozenset([1]))
    (tile,) = needs.tiles([9, 9], [9, 2])
    assert tile.box == (slice(0, 2), slice(0, 9))


def test_tiles_are_chunks_unless_these_are_large_or_tiny():
    assert tile_sizes([400, 360, 720], [10, 180, 180], frozenset(), 2**22) == [10, 180, 180]
    assert tile_sizes([400, 360, 720], [100, 360, 720], frozenset(), 2**22) == [15, 360, 720]
    assert tile_sizes([400, 360, 720], [400, 360, 720], frozenset(), 2**16) == [1, 90, 720]
    assert tile_sizes([400, 360, 720], [10, 10, 10], frozenset(), 2**22) == [10, 40, 720]
    assert tile_sizes([400, 360, 720], [10, 10, 10], frozenset([1, 2]), 2**20) == [4, 360, 720]
    assert tile_sizes([5, 5], [5, 5], frozenset(), 2**20) == [5, 5]


def test_tiny_chunks_are_joined_no_further_than_memory_goes():
    sizes = tile_sizes([400, 360, 720], [1, 10, 10], frozenset(), 4000)
    assert np.prod(sizes) <= 4000
