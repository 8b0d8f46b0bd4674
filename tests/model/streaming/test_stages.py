"""Answers of all blocks of a plan, in one stage or two, are those of the model in memory."""

import numpy as np
import pytest
from chunked_grids import InMemory, fitted, globe, query_of

from dkrls_cli.model.streaming.answering import BlockAnswers
from dkrls_cli.model.streaming.planning import Work, plan_blocks
from dkrls_cli.model.streaming.running import Threads
from dkrls_cli.model.streaming.stages import answer_in_blocks, run_small

MAP = {"lat": np.arange(-90.0, 91.0, 7.5), "lon": np.arange(0.0, 360.0, 10.0)}
LATER = {"time": np.arange(0.0, 13.0, 0.5)}


TWO = Threads(2)


def run(data, query, work, scheduler=TWO, std=True, single=False, **how):
    answers = BlockAnswers.of(query, std=std, single=single)
    plan = plan_blocks(answers, work)
    values, errors = np.full(query.shape, 9e9), np.full(query.shape, 9e9)

    def sink(part, found):
        values[part] = found[0]
        if std:
            errors[part] = found[1]

    boxes = InMemory(data)
    answer_in_blocks(boxes, answers, plan, scheduler, sink, **how)
    return plan, boxes, values, errors


@pytest.mark.parametrize(
    ("at", "chunks", "limit", "stages"),
    [
        (MAP, (1, 13, 12), 4.5e5, 1),
        (LATER, (1, 13, 12), 1e5, 2),
        (LATER, (14, 2, 12), 1e5, 1),
        ({**MAP, **LATER}, (1, 13, 12), 8e5, 2),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_answers_beyond_memory(at, chunks, limit, stages, workers, tmp_path):
    data = globe()
    query = query_of(fitted(data, poles="none" if at is LATER else "auto"), at)
    plan, boxes, values, errors = run(
        data.values,
        query,
        Work(chunks, 8, 8, workers * limit, workers),
        Threads(workers),
        folder=tmp_path,
    )
    assert (plan.spooling is not None) == (stages == 2)
    assert len(plan.blocks) > 1
    np.testing.assert_allclose(values, query.values(), atol=1e-12)
    np.testing.assert_allclose(errors, query.std(), atol=1e-12)
    assert boxes.cells_read * 8 <= plan.bytes_read
    assert not list(tmp_path.iterdir())  # nothing is left of the spool


class Elsewhere:
    """Other machines that tell how many tasks they were sent."""

    workers, is_remote = 2, True

    def __init__(self):
        self.sent = []

    def run(self, task, items):
        self.sent.append(len(items))
        return enumerate(map(task, items))


@pytest.mark.parametrize(("items", "sent"), [(0, 0), (47, 47), (48, 24), (101, 26), (400, 50)])
def test_small_results_come_from_other_machines_several_at_a_time(items, sent):
    scheduler = Elsewhere()
    found = list(run_small(scheduler, abs, range(items)))
    assert found == [(place, place) for place in range(items)]
    assert scheduler.sent == [sent]
    assert list(run_small(TWO, abs, range(items))) == found


def test_answers_that_are_sent_back_come_one_by_one():
    data = globe(times=120)
    query, collected = query_of(fitted(data), MAP), {}
    whole = query.values()
    answers = BlockAnswers.of(query, std=False, single=False)
    plan = plan_blocks(answers, Work((1, 13, 12), 8, 8, 2e5, 2))
    for sink, tasks in ((None, len(plan.blocks)), (lambda part, found: found, 0)):
        scheduler = Elsewhere()
        answer_in_blocks(
            InMemory(data.values), answers, plan, scheduler, sink, collect=collected.__setitem__
        )
        assert len(collected) == len(plan.blocks) >= 48
        assert (scheduler.sent == [tasks]) == (sink is None)
        for place, part in enumerate(plan.blocks):
            np.testing.assert_allclose(collected[place][0], whole[part], atol=1e-12)


def test_long_levels_are_spooled_in_double_precision():
    rng = np.random.default_rng(0)
    import xarray as xr

    from dkrls_cli import fit

    data = xr.DataArray(
        rng.standard_normal((1100, 3, 4)).cumsum(0),
        {"time": np.arange(1100.0), "y": np.arange(3.0), "x": np.arange(4.0)},
        ("time", "y", "x"),
        name="f",
    )
    model = fit(data, kernel="matern32", sigma=5.0, ridge=1e-2)
    query = query_of(model, {"time": np.arange(0.5, 40.0)})
    _, _, values, errors = run(data.values, query, Work((1, 3, 4), 8, 8, 7e5, 1))
    np.testing.assert_allclose(values, query.values(), atol=1e-9)
    np.testing.assert_allclose(errors, query.std(), atol=1e-9)


def test_blocks_that_are_done_are_not_answered_again():
    data = globe()
    query = query_of(fitted(data), MAP)
    work = Work((1, 13, 12), 8, 8, 9e5, 2)
    marked = []
    plan, _, values, _ = run(
        data.values, query, work, done={0, 2}, collect=lambda place, _: marked.append(place)
    )
    assert marked == [place for place in range(len(plan.blocks)) if place not in (0, 2)]
    blocks = list(plan.blocks)
    assert (values[blocks[0]] == 9e9).all()
    np.testing.assert_allclose(values[blocks[1]], query.values()[blocks[1]], atol=1e-12)


def test_all_blocks_done_reads_nothing():
    data = globe()
    query = query_of(fitted(data), MAP)
    work = Work((1, 13, 12), 8, 8, 9e5, 2)
    _, boxes, _, _ = run(data.values, query, work, done=range(1000))
    assert boxes.cells_read == 0


def test_progress_rises_to_one():
    data = globe()
    shares: list[float] = []
    run(
        data.values,
        query_of(fitted(data), {**MAP, **LATER}),
        Work((1, 13, 12), 8, 8, 1e6, 2),
        progress=shares.append,
    )
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert len(shares) > 3


@pytest.mark.parametrize("at", [MAP, {**MAP, **LATER}])
def test_without_a_sink_answers_are_collected(at):
    data = globe()
    query = query_of(fitted(data), at)
    answers = BlockAnswers.of(query, std=False, single=False)
    plan = plan_blocks(answers, Work((1, 13, 12), 8, 8, 1.6e6, 2))
    values, blocks = np.full(query.shape, 9e9), list(plan.blocks)

    def collect(place, found):
        values[blocks[place]] = found[0]

    answer_in_blocks(InMemory(data.values), answers, plan, Threads(2), None, collect=collect)
    np.testing.assert_allclose(values, query.values(), atol=1e-12)


def test_what_a_sink_returns_is_collected_in_order():
    data = globe()
    query = query_of(fitted(data), MAP)
    answers = BlockAnswers.of(query, std=False, single=False)
    plan = plan_blocks(answers, Work((1, 13, 12), 8, 8, 9e5, 2))
    told = []
    answer_in_blocks(
        InMemory(data.values),
        answers,
        plan,
        Threads(2),
        lambda part, found: found[0].size,
        collect=lambda place, size: told.append((place, size)),
    )
    assert [place for place, _ in told] == list(range(len(plan.blocks)))
    assert sum(size for _, size in told) == query.values().size
