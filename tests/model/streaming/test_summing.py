"""Sums over slabs on a scheduler, kept now and then, and gone on with."""

import numpy as np
import pytest
from stored_grids import Reads

from dkrls_cli.model.chunked.panels import Stored
from dkrls_cli.model.chunked.reduction import Sums, make_reduction, plan_slabs
from dkrls_cli.model.streaming.running import Threads
from dkrls_cli.model.streaming.summing import SlabRunner, identity_of

SHAPE = (12, 7, 5)


class Memory:
    """Keeps the last state in memory, as a checkpoint does on disk."""

    def __init__(self):
        self.done, self.arrays, self.saves = set(), None, 0

    def save_state(self, arrays, done):
        self.arrays = {name: np.array(one) for name, one in arrays.items()}
        self.done, self.saves = set(done), self.saves + 1

    def load_state(self):
        return self.arrays


def pieces(seed=0, side=2):
    """Return data, how it is reduced, and its slabs."""
    values = np.random.default_rng(seed).normal(size=SHAPE) + 3
    rng = np.random.default_rng(1)
    frames = [np.linalg.qr(rng.normal(size=(size, 3)))[0] for size in SHAPE[1:]]
    stored = Stored(SHAPE, (side, *SHAPE[1:]), 8)
    plan = plan_slabs(stored, (12, 3, 3), 2e3 * side)
    columns = tuple(np.arange(size) for size in SHAPE)
    reduction = make_reduction((None, *frames), plan.outer, columns, None, constant=False)
    return Reads(values), reduction, list(plan.slabs(SHAPE))


def total(parts, reduction):
    sums = Sums(np.zeros(reduction.shape))
    for part in parts:
        sums.add(part)
    return sums


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours.core, theirs.core, rtol=1e-12, atol=1e-12)
    assert (ours.cells, ours.least, ours.largest) == (theirs.cells, theirs.least, theirs.largest)
    assert ours.mean == pytest.approx(theirs.mean, rel=1e-13)
    assert ours.spread == pytest.approx(theirs.spread, rel=1e-12)


def test_sums_on_a_scheduler_are_those_one_after_the_other():
    read, reduction, slabs = pieces()
    assert len(slabs) > 3
    one, two = (total(SlabRunner(Threads(n))(read, reduction, slabs), reduction) for n in (1, 2))
    assert_same(one, two)
    assert one.cells == np.prod(SHAPE)
    assert one.mean == pytest.approx(read.values.mean(), rel=1e-13)


@pytest.mark.parametrize("stop", [1, 3])
def test_a_run_goes_on_with_the_sums_that_are_kept(stop):
    read, reduction, slabs = pieces()
    whole = total(SlabRunner(Threads(1))(read, reduction, slabs), reduction)
    keeper = Memory()
    run = SlabRunner(Threads(1), keeper, every=0.0)
    parts = iter(run(read, reduction, slabs))
    for _ in range(stop):
        next(parts)
    parts.close()
    assert keeper.done == set(range(stop))
    assert keeper.saves == stop
    before = read.calls
    assert_same(total(run(read, reduction, slabs), reduction), whole)
    assert read.calls - before == len(slabs) - stop
    assert keeper.done == set(range(len(slabs)))
    assert_same(total(run(read, reduction, slabs), reduction), whole)  # all was done


def test_sums_are_kept_only_now_and_then():
    keeper = Memory()
    read, reduction, slabs = pieces()
    total(SlabRunner(Threads(1), keeper, every=3600.0)(read, reduction, slabs), reduction)
    assert keeper.saves == 0


@pytest.mark.parametrize("what", ["slabs", "frames"])
def test_sums_of_something_else_are_not_gone_on_with(what):
    read, reduction, slabs = pieces()
    keeper = Memory()
    run = SlabRunner(Threads(1), keeper, every=0.0)
    parts = iter(run(read, reduction, slabs))
    next(parts), next(parts)
    parts.close()
    if what == "slabs":
        _, reduction, slabs = pieces(side=3)
    else:
        frames = tuple(m if m is None else m[:, ::-1] for m in reduction.matrices)
        reduction = make_reduction(frames, reduction.outer, reduction.columns, None, constant=False)
    whole = total(SlabRunner(Threads(1))(read, reduction, slabs), reduction)
    assert_same(total(run(read, reduction, slabs), reduction), whole)


def test_an_identity_is_that_of_slabs_and_frames():
    _, reduction, slabs = pieces()
    _, other, others = pieces(side=3)
    assert (identity_of(reduction, slabs) == identity_of(reduction, list(slabs))).all()
    assert (identity_of(reduction, slabs) != identity_of(other, others)).any()
    assert (identity_of(reduction, slabs) != identity_of(reduction, slabs[:-1])).any()


def test_a_missing_cell_is_told_and_not_kept():
    read, reduction, slabs = pieces()
    read.values[-1, 2, 3] = np.nan
    keeper = Memory()
    parts = list(SlabRunner(Threads(1), keeper, every=0.0)(read, reduction, slabs))
    assert [part.missing for part in parts if part.missing is not None] == [(11, 2, 3)]
    assert len(slabs) - 1 not in keeper.done
