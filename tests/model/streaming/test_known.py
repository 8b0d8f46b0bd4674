"""Answers that were made part by part, and are held."""

import numpy as np
import pytest
from chunked_grids import fitted, globe, query_of

from dkrls_cli.files.reading import open_source
from dkrls_cli.model.streaming.known import gather
from dkrls_cli.model.streaming.request import plan_stream
from dkrls_cli.model.streaming.running import Threads

AT = {"lat": np.arange(-90.0, 91.0, 15.0), "lon": np.arange(0.0, 360.0, 20.0)}


@pytest.fixture(params=[False, True])
def both(request, tmp_path):
    """A query of a model in memory, and its answers that were made part by part."""
    data = globe()
    data.to_netcdf(tmp_path / "a.nc", encoding={"f": {"chunksizes": (2, 13, 12)}})
    source = open_source([str(tmp_path / "a.nc")])
    query = query_of(fitted(data), {**AT, "time": np.arange(-2.0, 14.0)})
    kept = tuple(axis.distinct for axis in source.axes)
    streamed = plan_stream(source, kept, query, request.param, np.inf, 2)
    return query, gather(streamed, Threads(2)), request.param


def test_they_are_those_in_memory(both):
    query, known, std = both
    assert known.shape == query.shape
    assert np.isnan(query.values()).any()  # times before the first
    np.testing.assert_allclose(known.values(), query.values(), atol=1e-10)
    assert known.outside_count == query.outside_count > 0
    if std:
        np.testing.assert_allclose(known.std(), query.std(), atol=1e-10)


def test_blocks_are_parts_of_them(both):
    query, known, std = both
    values, errors = np.full(query.shape, 9e9), np.full(query.shape, 9e9)
    count = 0
    for part, some, bars in known.blocks(100, std=std):
        values[part], count = some, count + 1
        assert (bars is not None) == std
        if bars is not None:
            errors[part] = bars
    assert count > 5
    np.testing.assert_array_equal(values, known.values())
    if std:
        np.testing.assert_array_equal(errors, known.std())
