"""Answers block by block from boxes of the data are those of the model in memory."""

import pickle
from functools import partial

import numpy as np
import pytest
from chunked_grids import fitted, globe, query_of

from dkrls_cli.cascade.streaming.rows import cut_rows
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.answering.answers import Rules
from dkrls_cli.model.answering.coverage import coverage_of
from dkrls_cli.model.answering.regions import ask_region
from dkrls_cli.model.streaming import answering
from dkrls_cli.model.streaming.answering import BlockAnswers, centre_box, refuse_missing, stand_in

MAP = {"lat": np.arange(-90.0, 91.0, 7.5), "lon": np.arange(0.0, 360.0, 10.0)}


def by_blocks(answers: BlockAnswers, values, step: int):
    """Return all answers and errors, made in blocks along time."""
    parts = [slice(start, start + step) for start in range(0, answers.shape[0], step)]
    whole = tuple(slice(0, size) for size in answers.shape[1:])
    found = []
    for part in parts:
        block = (slice(part.start, min(part.stop, answers.shape[0])), *whole)
        found.append(answers.answer(values[answers.box(block)].copy(), block))
    errors = [e for _, e in found]
    return np.concatenate([v for v, _ in found]), None if errors[0] is None else np.concatenate(
        [e for e in errors if e is not None]
    )


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, {}),
        ({"poles": "none"}, {}),
        ({"bounds": (-1.4, 1.6)}, {}),
        ({"cell_means": True}, {}),
        ({}, {"mean": True}),
        ({}, {"derivative": "lat"}),
        ({"kernel": {"lat": "linear"}, "sigma": "auto", "ridge": "auto", "poles": "none"}, {}),
    ],
)
def test_blocks_answer_as_the_whole_model(settings, asked):
    data = globe()
    model = fitted(data, **settings)
    query = query_of(model, MAP, **asked)
    answers = BlockAnswers.of(query, std=True, single=False)
    values, errors = by_blocks(answers, data.values, 4)
    np.testing.assert_allclose(values, query.values(), atol=1e-12)
    np.testing.assert_allclose(errors, query.std(), atol=1e-12)
    assert np.isfinite(values).any()


@pytest.mark.parametrize(("std", "poles"), [(True, "auto"), (False, "auto"), (False, "none")])
def test_blocks_are_answered_in_pieces_that_stay_in_the_cache(std, poles, monkeypatch):
    """Pieces may need the same samples: without poles, their memory is not used then."""
    data = globe() + 1.0
    query = query_of(fitted(data, poles=poles), {**MAP, "time": [9.0, 3.0, 4.0, 0.0, 12.0, 12.0]})
    answers = BlockAnswers.of(query, std=std, single=False)
    block = tuple(slice(0, size) for size in answers.shape)
    whole = answers.answer(data.values[answers.box(block)].copy(), block)
    seen = []
    centre = BlockAnswers.centre
    monkeypatch.setattr(
        BlockAnswers,
        "centre",
        lambda *given, **how: seen.append(given[2][0]) or centre(*given, **how),
    )
    monkeypatch.setattr(answering, "_IN_CACHE", 4 * data.values[0].nbytes)
    values, errors = answers.answer(data.values[answers.box(block)].copy(), block)
    assert seen == [slice(3, 10), slice(0, 5), slice(12, 13)]
    np.testing.assert_allclose(values, whole[0], atol=1e-13)
    assert (errors is not None) == std
    if std:
        np.testing.assert_allclose(errors, whole[1], atol=1e-13)


def test_the_memory_of_a_box_is_used_only_if_it_is_spent():
    model, where = fitted(globe(), poles="none"), (slice(0, 2), slice(0, 13), slice(0, 12))
    data = np.ones((2, 13, 12))
    centre = partial(centre_box, where=where, model=model, dtype=data.dtype)
    kept = centre(data)
    assert (data == 1.0).all()
    assert centre(np.broadcast_to(1.0, data.shape), spent=True).flags.owndata
    assert centre(data.astype(np.float32), spent=True).dtype == data.dtype
    assert centre(data, spent=True) is data
    np.testing.assert_array_equal(data, kept)


def test_blocks_of_some_times_read_those_times_only():
    model = fitted(globe())
    asked = {**MAP, "time": [9.0, 3.0, 4.0]}
    answers = BlockAnswers.of(query_of(model, asked), std=False, single=False)
    block = (slice(1, 3), slice(0, 2), slice(0, 3))
    assert answers.passes(0)
    assert answers.box(block) == (slice(3, 5), slice(0, 13), slice(0, 12))


def test_latitudes_that_pass_through_are_read_whole_beside_a_pole():
    data = globe()
    model = fitted(data)
    assert model.poles is not None
    query = query_of(model, {"lon": MAP["lon"]})
    answers = BlockAnswers.of(query, std=True, single=False)
    assert [answers.passes(axis) for axis in range(3)] == [True, False, False]
    values, errors = by_blocks(answers, data.values, 5)
    np.testing.assert_allclose(values, query.values(), atol=1e-12)
    np.testing.assert_allclose(errors, query.std(), atol=1e-12)


def test_answers_are_the_same_in_another_process():
    data = globe()
    query = query_of(fitted(data), MAP, mean=True)
    answers = BlockAnswers.of(query, std=True, single=False)
    here = by_blocks(answers, data.values, 6)
    packed = pickle.dumps(answers)
    there = by_blocks(pickle.loads(packed), data.values, 6)
    np.testing.assert_array_equal(here[0], there[0])
    np.testing.assert_array_equal(here[1], there[1])


@pytest.mark.parametrize("asked", [{}, {"mean": True}])
def test_answers_without_errors_are_sent_without_factors(asked):
    data = globe(lats=60)
    answers = BlockAnswers.of(
        query_of(fitted(data, poles="none"), MAP, **asked), std=False, single=False
    )
    assert answers.query.model.cascade.known_factor(1) is not None
    there = pickle.loads(pickle.dumps(answers))
    assert there.query.model.cascade.known_factor(1) is None
    np.testing.assert_array_equal(
        by_blocks(there, data.values, 6)[0], by_blocks(answers, data.values, 6)[0]
    )


def test_a_stand_in_has_no_data():
    model = fitted(globe(times=40, lats=40, lons=40))
    assert len(pickle.dumps(stand_in(model))) < 0.5 * model.cascade.core.nbytes
    assert stand_in(model).shape == model.shape


def test_single_precision_is_kept_but_for_derivatives():
    data = globe()
    model = fitted(data)
    single = data.values.astype(np.float32)
    answers = BlockAnswers.of(query_of(model, MAP), std=False, single=True)
    values, errors = by_blocks(answers, single, 4)
    assert errors is None
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, query_of(model, MAP).values(), atol=2e-6)
    slopes = BlockAnswers.of(query_of(model, MAP, derivative="lat"), std=False, single=True)
    assert slopes.dtype == np.float64


@pytest.mark.parametrize("single", [True, False])
def test_rows_keep_the_noise_of_solving_in_double_precision_only(single, monkeypatch):
    seen = []

    def watched(*rows, noisy):
        seen.append(noisy)
        return cut_rows(*rows, noisy=noisy)

    monkeypatch.setattr(answering, "cut_rows", watched)
    BlockAnswers.of(query_of(fitted(globe()), MAP), std=False, single=single)
    assert seen == [not single] * 3


def test_what_goes_over_the_whole_grid_is_refused():
    data = globe()
    with pytest.raises(SettingError, match="joint ridge takes the whole grid"):
        BlockAnswers.of(query_of(fitted(data, noise="joint"), MAP), std=False, single=False)
    region = ask_region(fitted(data), ["lat=0:40,lon"], {}, Rules("missing"), (), False)
    with pytest.raises(SettingError, match="Standard errors of means over regions"):
        BlockAnswers.of(region, std=True, single=False)
    sea = as_grid(data.isel(time=0, drop=True).clip(0.0, 1.0).round())
    model = fitted(data, poles="none")
    rules = Rules("missing", coverage_of(sea, model.axes))
    region = ask_region(model, ["lat,lon"], {}, rules, (), False)
    with pytest.raises(SettingError, match="region of which cells are left out"):
        BlockAnswers.of(region, std=False, single=False)


@pytest.mark.parametrize("over", ["lat=0:40,lon=20:200", "time", "lat,time", "lat,lon,time"])
@pytest.mark.parametrize("means", [False, True])
def test_means_over_regions_are_those_in_memory(over, means):
    data = globe()
    model = fitted(data, cell_means=means, poles="none")
    region = ask_region(model, over, {}, Rules("missing"))
    answers = BlockAnswers.of(region, std=False, single=False)
    values, _ = by_blocks(answers, data.values, 4)
    np.testing.assert_allclose(values, region.values(), rtol=0, atol=1e-12)


def test_the_first_missing_cell_is_named():
    data = globe()
    model = fitted(data)
    answers = BlockAnswers.of(query_of(model, MAP), std=False, single=False)
    holed = data.values.copy()
    holed[5, 2, 3] = np.nan
    block = (slice(4, 8), slice(0, 25), slice(0, 36))
    with pytest.raises(InputError, match=r"first at time 5.0, lat -58.6\d+, lon 90.0"):
        answers.answer(holed[answers.box(block)], block)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 9.96921e36, -1e37])
def test_numbers_that_cannot_be_used_are_missing(value):
    model = fitted(globe())
    whole = tuple(slice(0, size) for size in model.shape)
    values = np.full(model.shape, 1e36, np.float32)
    refuse_missing(values, whole, model)
    values[-1, -1, -1] = value
    with pytest.raises(InputError, match=r"first at time 13.0, lat 88.0, lon 330.0"):
        refuse_missing(values, whole, model)


def test_values_outside_the_bounds_are_refused():
    data = globe()
    answers = BlockAnswers.of(
        query_of(fitted(data, bounds=(-1.4, 1.6)), MAP), std=False, single=False
    )
    values = data.values.copy()
    block = (slice(0, 4), slice(0, 25), slice(0, 36))
    answers.answer(values[answers.box(block)].copy(), block)
    values[2, 3, 4] = 1.7
    with pytest.raises(InputError, match=r"to 1.7, and answers are bounded by -1.4 and 1.6"):
        answers.answer(values[answers.box(block)], block)
