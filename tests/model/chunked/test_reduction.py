"""Cores as sums over chunks."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_grids import Reads

from dkrls_cli.cascade.tensors import apply
from dkrls_cli.model.chunked import reduction as reducing
from dkrls_cli.model.chunked.panels import Stored
from dkrls_cli.model.chunked.reduction import (
    CELL,
    Sums,
    make_reduction,
    plan_slabs,
    reduce_slab,
)

SHAPE = (9, 14, 11)


def frames_of(kept, seed=0):
    """Return orthonormal frames that hold a constant, for some axes."""
    rng = np.random.default_rng(seed)
    found = []
    for size, yes in zip(SHAPE, kept, strict=True):
        columns = np.column_stack([np.ones(size), rng.normal(size=(size, 3))])
        found.append(np.linalg.qr(columns)[0] if yes else None)
    return tuple(found)


def reduce_all(values, frames, plan, constant=True):
    columns = tuple(np.arange(size) for size in values.shape)
    reduction = make_reduction(frames, plan.outer, columns, None, constant=constant)
    sums = Sums(np.zeros(reduction.shape))
    for slab in plan.slabs(values.shape):
        sums.add(reduce_slab(Reads(values), reduction, slab))
    return sums


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.booleans()] * 3),
    st.tuples(*[st.integers(1, n) for n in SHAPE]),
    st.integers(100, 20000),
    st.booleans(),
)
def test_the_core_is_the_same_however_the_grid_is_cut(kept, chunks, room, constant):
    values = 7 + np.random.default_rng(3).normal(size=SHAPE).astype("float32")
    frames = frames_of(kept)
    ranks = [size if f is None else f.shape[1] for size, f in zip(SHAPE, frames, strict=True)]
    plan = plan_slabs(Stored(SHAPE, chunks, 4), ranks, room * CELL)
    sums = reduce_all(values, frames, plan, constant)
    exact = values.astype(np.float64)
    core = apply(exact, [None if f is None else f.T for f in frames])
    np.testing.assert_allclose(sums.core, core, atol=1e-10)
    assert sums.cells == values.size
    assert sums.mean == pytest.approx(exact.mean(), rel=1e-13)
    assert sums.spread == pytest.approx(exact.std(), rel=1e-9)
    assert (sums.least, sums.largest) == (exact.min(), exact.max())
    assert math.fsum(sums.squares) == pytest.approx((exact**2).sum(), rel=1e-13)


@pytest.mark.parametrize("outer", [0, 1, 2])
@pytest.mark.parametrize("layer", [1, 100, 300, 10**6])
def test_the_core_is_the_same_in_layers_of_any_size(outer, layer, monkeypatch):
    values = np.random.default_rng(4).normal(size=SHAPE).astype("float32")
    columns = tuple(np.arange(size) for size in SHAPE)
    frames, slab = frames_of((1, 1, 1)), (tuple(slice(0, size) for size in SHAPE),)
    reduction = make_reduction(frames, outer, columns, None)
    monkeypatch.setattr(reducing, "_LAYER", layer)
    layers = [piece[outer] for piece, _ in reducing._in_layers(values, slab[0], outer)]
    step = -(-layer * SHAPE[outer] // values.size)
    assert layers == [slice(s, min(s + step, SHAPE[outer])) for s in range(0, SHAPE[outer], step)]
    part = reduce_slab(Reads(values), reduction, slab)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(part.core, apply(exact, [f.T for f in frames]), atol=1e-12)
    assert part.total == pytest.approx(exact.sum(), rel=1e-10)
    assert part.squares == pytest.approx((exact**2).sum(), rel=1e-13)
    assert (part.least, part.largest) == (exact.min(), exact.max())


def test_slabs_cover_the_grid_once_and_do_not_cut_chunks():
    stored = Stored((100, 60, 50), (10, 15, 50), 4)
    plan = plan_slabs(stored, (8, 9, 10), 2e6)
    seen = np.zeros(stored.shape, int)
    for slab in plan.slabs(stored.shape):
        assert len({piece[plan.outer] for piece in (tuple(map(str, p)) for p in slab)}) == 1
        for piece in slab:
            seen[piece] += 1
            assert all(p.start % c == 0 for p, c in zip(piece, stored.chunks, strict=True))
    assert (seen == 1).all()
    assert plan.memory <= 2e6
    wide = plan_slabs(stored, (8, 9, 10), 2e8)
    assert math.prod(wide.sides) > math.prod(plan.sides)


def test_chunks_that_are_larger_than_memory_are_read_in_parts():
    plan = plan_slabs(Stored((1000, 1000), (1000, 1000), 4), (5, 5), 1e6)
    assert math.prod(plan.sides) * CELL <= 1e6
    none = plan_slabs(Stored((10, 10), (10, 10), 4), (10, 10), -1.0)
    assert none.memory > 0  # told as it is


@pytest.mark.parametrize("bad", [np.nan, np.inf, 9.96921e36])
def test_a_missing_cell_is_named(bad):
    values = np.ones(SHAPE)
    values[4, 8, 3] = bad
    plan = plan_slabs(Stored(SHAPE, (3, 7, 11), 8), (4, 4, 4), 300 * CELL)
    columns = tuple(np.arange(size) for size in SHAPE)
    reduction = make_reduction(frames_of((1, 1, 1)), plan.outer, columns, None)
    parts = [reduce_slab(Reads(values), reduction, slab) for slab in plan.slabs(SHAPE)]
    assert {part.missing for part in parts} == {None, (4, 8, 3)}


def test_a_task_can_be_sent_to_another_process():
    values = np.random.default_rng(0).normal(size=SHAPE)
    plan = plan_slabs(Stored(SHAPE, (3, 7, 11), 8), (4, 4, 4), 300 * CELL)
    columns = tuple(np.arange(size) for size in SHAPE)
    reduction = make_reduction(frames_of((1, 1, 1)), plan.outer, columns, None)
    slab = next(plan.slabs(SHAPE))
    task = Reads(values), reduction, slab
    there = pickle.loads(pickle.dumps(reduce_slab(*pickle.loads(pickle.dumps(task)))))
    here = reduce_slab(*task)
    np.testing.assert_array_equal(there.core, here.core)
    assert there.total == here.total
