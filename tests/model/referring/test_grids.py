"""Grids of models that refer to their data, held in memory, with their ensembles."""

from dataclasses import replace

import numpy as np
import pytest
from chunked_grids import globe, query_of
from chunked_grids import referring_pair as pair

from dkrls_cli.errors import InputError
from dkrls_cli.model.answering.ensembles import stack_members
from dkrls_cli.model.referring import grids
from dkrls_cli.model.referring.grids import refer
from dkrls_cli.model.streaming.running import Threads

AT = {"time": [1.0, 2.5, 30.2], "lat": [-20.0, 3.0, 87.0], "lon": [0.0, 7.0, 359.0]}


@pytest.mark.parametrize("asked", [{}, {"mean": "lat"}, {"derivative": "time"}])
def test_values_errors_and_members_are_those_in_memory(tmp_path, asked):
    referring, held = pair(tmp_path)
    for ask in (
        lambda model: model.predict(**AT, **asked),
        lambda model: model.std(**AT, **asked),
        lambda model: model.ensemble(3, seed=7, **AT, **asked),
    ):
        np.testing.assert_allclose(ask(referring), ask(held), rtol=0, atol=1e-12)


def test_members_differ_and_pass_through_the_data(tmp_path):
    referring, held = pair(tmp_path)
    members = referring.ensemble(2, lat=[held.axes[1].values[4], 3.0], lon=10.0, time=[4.0])
    assert float(members[:, 0, 0].std()) == 0.0
    assert float(members[:, 0, 1].std()) > 1e-3


def test_bounds_hold(tmp_path):
    data = globe(40, 19, 36).clip(0.0, None)
    referring, held = pair(tmp_path, data, bounds=(0.0, None))
    for ask in (
        lambda model: model.predict(**AT),
        lambda model: model.std(**AT),
        lambda model: model.ensemble(5, **AT),
    ):
        np.testing.assert_allclose(ask(referring), ask(held), rtol=0, atol=1e-12)
    assert float(referring.ensemble(5, **AT).min()) == 0.0


def test_values_beyond_the_bounds_are_refused(tmp_path):
    referring, _ = pair(tmp_path)
    bounded = replace(referring, bounds=type(_bounds(tmp_path))(0.0))
    with pytest.raises(InputError, match="answers are bounded by 0"):
        bounded.predict(**AT)


def _bounds(tmp_path):
    (tmp_path / "b").mkdir()
    data = globe(5, 6, 8).clip(0.0, None)
    return pair(tmp_path / "b", data, chunks=(5, 6, 8), bounds=(0.0, None))[1].bounds


def test_blocks_are_parts_of_the_answers(tmp_path):
    referring, _ = pair(tmp_path)
    query = refer(query_of(referring, AT), 1e9, Threads(1))
    values, errors = query.values(), query.std()
    for part, some, error in query.blocks(4, std=True):
        np.testing.assert_array_equal(some, values[part])
        np.testing.assert_array_equal(error, errors[part])
    assert [error for *_, error in query.blocks(40)] == [None]
    assert stack_members(query, 2, 0).shape == (2, *query.shape)


def test_answers_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    referring, _ = pair(tmp_path)
    monkeypatch.setattr(grids, "process_bytes", lambda: 0)
    query = query_of(referring, AT)
    with pytest.raises(InputError, match="27 answers take about 0 MB"):
        refer(query, 27 * 48 - 1.0, Threads(1)).values()
