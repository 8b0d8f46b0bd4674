"""Tiles, and what they see."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError
from dkrls_cli.model.tiling.layout import (
    CONTEXTS,
    MOST,
    USUAL,
    WORTH,
    Context,
    Cut,
    Span,
    TilesTooLargeError,
    lay_tiles,
    see_context,
    worth,
)


@given(
    size=st.integers(2, 300),
    near=st.integers(1, 12),
    least=st.integers(1, 60),
    ring=st.booleans(),
    odd=st.booleans(),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_a_tile_sees_its_core_all_that_is_near_and_less_and_less_farther_away(
    size, near, least, ring, odd, ends
):
    start, stop = sorted(int(end * (size - 1)) for end in ends)
    core = np.arange(start, stop + 1)
    seen = see_context(core, np.arange(size), Context(near, least), ring=ring, odd=odd)
    assert (np.diff(seen) > 0).all()
    assert set(core) <= set(seen)
    places = np.arange(size)
    away = np.maximum(np.maximum(start - places, places - stop), 0)
    if ring:
        away = np.where(away > 0, np.minimum((start - places) % size, (places - stop) % size), 0)
    assert set(places[away < 2 * near]) <= set(seen)
    largest = 2 ** round(np.log2(max(1.0, size / least)))
    for d in (3, 9, 27):  # at a distance of 2 near s, no more than s coordinates are passed over
        far = places[(away >= 2 * near * d) & (away < 4 * near * d)]
        chosen = np.isin(far, seen)
        widest = max(
            (len(run) for run in "".join("01"[int(c)] for c in chosen).split("1")), default=0
        )
        assert widest <= (2 if ring else 1) * min(largest, 4 * d)  # twice at the ends of a ring


def test_neighbouring_tiles_see_other_coordinates_far_away():
    known = np.arange(400)
    one, other = (
        see_context(np.arange(0, 20), known, Context(4, 25), ring=False, odd=odd)
        for odd in (False, True)
    )
    far = np.arange(100, 400)
    assert not set(one[one >= 100]) & set(other[other >= 100])
    assert np.isin(far, one).sum() == pytest.approx(np.isin(far, other).sum(), abs=1)


def test_coordinates_without_data_are_seen_in_the_core_and_beside_it_only():
    known = np.r_[0:10, 14:40]
    span = Span(0, 0, 40, known)
    cut = Cut(0, ((0, 12), (12, 40)))
    assert span.see(cut, 0, Context(3, 40)).tolist() == [*range(13), *range(14, 40)]
    assert 11 not in span.see(cut, 1, Context(3, 40))
    assert span.see(Cut(0, ((0, 40),)), 0, Context(1, 1)).tolist() == list(range(40))


def test_cores_cover_an_axis_once_and_are_alike():
    for size, core in ((10, 3), (100, 7), (5, 5), (7, 1)):
        cores = Span(0, 2, 2 + size, np.arange(size)).cut(core).cores
        assert [cores[0][0], cores[-1][1]] == [2, 2 + size]
        assert all(one[1] == other[0] for one, other in itertools.pairwise(cores))
        lengths = [stop - start for start, stop in cores]
        assert max(lengths) <= core
        assert max(lengths) - min(lengths) <= 1


def test_tiles_are_as_large_as_the_limit_allows():
    span = Span(0, 0, 1000, np.arange(1000))

    def memory(core, width, inner):
        return width * inner

    layout = lay_tiles(span, None, Context(4, 16), memory, 300)
    assert layout.memory <= 300
    assert layout.count < 8
    assert layout.axes == (0,)
    assert lay_tiles(span, None, Context(4, 16), memory, 1000).count == 1
    with pytest.raises(TilesTooLargeError, match="Allow more memory") as caught:
        lay_tiles(span, None, Context(4, 16), memory, 20)
    assert isinstance(caught.value, InputError)
    assert 20 < caught.value.least < 100


def test_two_axes_are_cut_where_one_is_not_enough():
    outer, inner = Span(0, 0, 100, np.arange(100)), Span(2, 0, 90, np.arange(90), ring=True)

    def memory(core, width, across):
        return width * across

    layout = lay_tiles(outer, inner, Context(2, 8), memory, 1500)
    assert layout.inner is not None
    assert layout.axes == (0, 2)
    assert layout.count == len(layout.outer.cores) * len(layout.inner.cores)
    whole = lay_tiles(outer, inner, Context(2, 8), memory, 5000)
    assert whole.axes == (0,)


def test_what_is_far_is_not_seen_where_memory_is_scarce():
    known, core = np.arange(400), np.arange(100, 110)
    for near, odd in ((4, False), (4, True), (9, False)):
        wide = see_context(core, known, Context(near, 25), ring=False, odd=odd)
        close = see_context(core, known, Context(near, 25, far=False), ring=False, odd=odd)
        reach = 4 * near
        np.testing.assert_array_equal(close, wide[(wide > 100 - reach) & (wide < 109 + reach)])
        assert close.size < wide.size


def test_contexts_grow():
    near = [one for one in CONTEXTS if not one.far]
    far = [one for one in CONTEXTS if one.far]
    assert [*near, *far] == [*CONTEXTS]
    assert len(near) < USUAL < len(CONTEXTS)
    for own in (near, far):
        for one, other in itertools.pairwise(own):
            assert one.near < other.near
            assert one.least < other.least
    assert [worth(place) for place in range(5)] == [np.inf, WORTH, MOST, WORTH, WORTH]


def test_a_large_grid_in_little_memory_takes_few_tiles_without_what_is_far():
    axes = [np.arange(size) for size in (4000, 720, 720)]
    outer, inner = (Span(place, 0, own.size, own) for place, own in enumerate(axes[:2]))

    def memory(core, width, across):
        return 720 * (80 * width * across + 720 * (34 * core + 4 * width))

    far, near = (lay_tiles(outer, inner, CONTEXTS[place], memory, 7e8) for place in (2, 0))
    assert far.work > MOST * 4000 * 720
    assert near.work < 5 * 4000 * 720
    assert near.count < 0.05 * far.count
