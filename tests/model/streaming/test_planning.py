"""Blocks cover the answers once, fit into memory, and read chunks once where they can."""

import math

import numpy as np
import pytest
from chunked_grids import fitted, globe, query_of
from hypothesis import assume, given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError
from dkrls_cli.model.streaming.answering import BlockAnswers
from dkrls_cli.model.streaming.planning import Work, plan_blocks

MAP = {"lat": np.arange(-90.0, 91.0, 7.5), "lon": np.arange(0.0, 360.0, 10.0)}
LATER = {"time": np.arange(0.0, 13.0, 0.5)}
MODEL = fitted(globe())
FLAT = fitted(globe(), poles="none")
QUESTIONS = {
    "map": BlockAnswers.of(query_of(MODEL, MAP), std=False, single=False),
    "errors": BlockAnswers.of(query_of(MODEL, MAP), std=True, single=False),
    "times": BlockAnswers.of(query_of(FLAT, LATER), std=False, single=False),
    "all": BlockAnswers.of(query_of(MODEL, {**MAP, **LATER}), std=False, single=True),
    "nodes": BlockAnswers.of(query_of(FLAT, {}), std=False, single=False),
}
CELLS = 14 * 13 * 12


def covered(plan, shape):
    times = np.zeros(shape, int)
    for block in plan.blocks:
        times[block] += 1
    return times


@given(
    st.sampled_from(sorted(QUESTIONS)),
    st.tuples(st.integers(1, 14), st.integers(1, 13), st.integers(1, 12)),
    st.floats(1.5e5, 1e7),
    st.integers(1, 3),
    st.sampled_from([2, 4, 8]),
)
def test_blocks_cover_every_answer_once_and_fit(name, chunks, limit, workers, item):
    answers = QUESTIONS[name]
    try:
        plan = plan_blocks(answers, Work(chunks, item, 8, limit, workers))
    except InputError:  # see the last test
        assume(False)
    assert (covered(plan, answers.shape) == 1).all()
    assert plan.memory <= limit
    assert plan.bytes_read >= item * CELLS
    assert plan.tasks == len(plan.blocks) + (len(plan.spooling.first) if plan.spooling else 0)
    assert plan.blocks.region == tuple(
        max(part.stop - part.start for part in cut) for cut in plan.blocks.cuts
    )


def test_chunks_are_read_once_where_an_axis_passes_through():
    plan = plan_blocks(QUESTIONS["map"], Work((4, 13, 12), 8, 8, 6e5, 2))
    assert plan.spooling is None
    assert len(plan.blocks) > 1
    assert plan.bytes_read == 8 * CELLS
    assert {part.start % 4 for part in plan.blocks.cuts[0]} == {0}  # whole chunks


def test_what_fits_is_one_block():
    plan = plan_blocks(QUESTIONS["map"], Work((1, 13, 12), 8, 8, 1e9, 1))
    assert len(plan.blocks) == 1


def test_interpolation_along_the_stored_axis_is_spooled():
    thin = plan_blocks(QUESTIONS["times"], Work((1, 13, 12), 8, 8, 4e4, 1))
    assert thin.spooling is not None
    assert thin.spooling.axis == 0
    assert thin.bytes_read == 8 * CELLS
    assert thin.bytes_spooled == 8 * CELLS
    assert all(cut == (slice(0, 26),) for cut in thin.blocks.cuts[:1])
    deep = plan_blocks(QUESTIONS["times"], Work((14, 1, 12), 8, 8, 4e4, 1))
    assert deep.spooling is None  # chunks are whole along time: latitudes are cut instead
    assert deep.bytes_read == 8 * CELLS


def test_errors_and_more_workers_take_more_memory():
    plain, errors = (
        plan_blocks(QUESTIONS[name], Work((14, 13, 12), 8, 8, 1e9, 1)) for name in ("map", "errors")
    )
    assert errors.memory > plain.memory
    assert errors.bytes_written == 2 * plain.bytes_written
    assert plain.bytes_written == 8 * math.prod(QUESTIONS["map"].shape)
    double = plan_blocks(QUESTIONS["map"], Work((14, 13, 12), 8, 8, 1e9, 2))
    assert double.memory == 2 * plain.memory


def test_the_least_memory_is_told():
    with pytest.raises(InputError, match=r"smallest part of 'f' .* needs about 0 MB"):
        plan_blocks(QUESTIONS["map"], Work((1, 13, 12), 8, 8, 1e4, 1))


def test_there_are_blocks_for_all_workers():
    plan = plan_blocks(QUESTIONS["map"], Work((1, 13, 12), 8, 8, 1e9, 2, 8))
    assert len(plan.blocks) >= 8
    chunked = plan_blocks(QUESTIONS["map"], Work((7, 13, 12), 8, 8, 1e9, 2, 8))
    assert len(chunked.blocks) == 2  # more would read chunks twice
