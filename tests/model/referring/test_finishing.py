"""Answers of models that refer to their data keep bounds, and come in blocks."""

from dataclasses import replace

import numpy as np
import pytest
from chunked_grids import fitted, globe, query_of

from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.errors import SettingError
from dkrls_cli.model.answering.answers import Query, Rules, ask_points
from dkrls_cli.model.asking.queries import point_axes
from dkrls_cli.model.referring.finishing import bounded_errors, bounded_values, cut_blocks

AT = {"time": [1.0, 2.5], "lat": [-20.0, 3.0], "lon": [0.0, 7.0]}


def both(**settings):
    """A question on a grid and one at points, of a model in memory that answers them itself."""
    model = fitted(globe().clip(-1.0, 0.3), poles="none", **settings)
    return query_of(model, AT), ask_points(model, point_axes(model, AT), Rules())


@pytest.mark.parametrize("settings", [{}, {"bounds": (-1.0, 0.3)}])
def test_answers_and_errors_are_those_of_the_query(settings):
    for query in both(**settings):
        np.testing.assert_array_equal(bounded_values(query), query.values())
        np.testing.assert_allclose(bounded_errors(query), query.std(), rtol=1e-12)


@pytest.mark.parametrize(("bounds", "reads"), [("none", 0), ((-1.0, 0.3), 1)])
def test_errors_need_the_answers_only_within_bounds(bounds, reads, monkeypatch):
    query, _ = both(bounds=bounds)
    seen, free = [], Query.free
    monkeypatch.setattr(Query, "free", lambda self: seen.append(1) or free(self))
    bounded_errors(query)
    assert len(seen) == reads


def test_bounds_of_values_do_not_hold_for_slopes():
    model = fitted(globe().clip(0.0, None), poles="none", bounds=(0.0, None))
    query = query_of(model, AT, derivative=("time",))
    assert bounded_values(query).min() < 0
    np.testing.assert_allclose(bounded_errors(query), query.std(), rtol=1e-12)


def test_errors_that_are_not_known_are_refused():
    query, _ = both()
    unknown = replace(query, model=replace(query.model, known_bars=JointBars(np.nan, np.nan)))
    with pytest.raises(SettingError, match="not known"):
        bounded_errors(unknown)


@pytest.mark.parametrize("std", [False, True])
def test_blocks_are_parts_of_all_answers(std):
    for query in both():
        found = list(cut_blocks(query, 1, std))
        assert len(found) > 1
        for part, values, errors in found:
            np.testing.assert_array_equal(values, query.values()[part])
            assert (errors is not None) == std
            if errors is not None:
                np.testing.assert_array_equal(errors, query.std()[part])


def test_no_answers_are_one_block():
    _, query = both()
    none = {dim: [] for dim in AT}
    empty = ask_points(query.model, point_axes(query.model, none), Rules())
    (block,) = cut_blocks(empty, 10, True)
    assert block[1].shape == (0,)
