"""What one pass over a grid tells before its tiles are solved."""

import numpy as np
import pytest
from tiled_grids import daily, source_of

from dkrls_cli.errors import InputError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.planning import FillRequest
from dkrls_cli.model.tiling.scan import PartReader
from dkrls_cli.model.tiling.survey import Task, survey_grid


def task_of(data, request=None, settings=None, outer=0):
    source = source_of(as_grid(data))
    reader = PartReader(source, outer)
    return Task(source, settings or Settings(), request or FillRequest(), (outer,), reader)


def test_a_survey_tells_cells_land_and_bounds_in_one_pass():
    data = daily(12, 5, 6)
    data[:, 2, 3] = np.nan
    data[4, 4, 0] = np.nan
    data = abs(data).assign_attrs(valid_min=0.0)
    shares = []
    task = task_of(data)
    found = survey_grid(task, shares.append)
    assert found.summary.missing == int(np.isnan(data.values).sum())
    assert found.rules.masked[0, 2, 3]
    assert not found.rules.masked[0, 4, 0]
    assert (found.bounds.low, found.bounds.high) == (0.0, np.inf)
    assert shares[-1] == 1.0
    assert task.reader.bytes_read == data.size * 8


def test_the_first_slice_is_read_where_it_is_the_mask():
    data = daily(12, 5, 6).fillna(1.0)
    data[0, 1, 1] = data[3, 2, 2] = np.nan
    for outer in (0, 1):
        found = survey_grid(
            task_of(data, FillRequest(mask="first"), outer=outer), lambda share: None
        )
        masked = np.broadcast_to(found.rules.masked, data.shape)
        assert masked[:, 1, 1].all()
        assert masked.sum() == 12


def test_what_may_be_observed_along_the_last_level_is_known_if_parts_are_ranges_of_it():
    data = daily(12, 5, 6)
    seen = {outer: survey_grid(task_of(data, outer=outer), float).summary.seen for outer in (0, 1)}
    assert (0,) in seen[0]
    task = task_of(data, FillRequest(mask="none"))
    assert (task.last, task.outer, task.wants_std) == (0, 0, False)
    assert task_of(data, FillRequest(max_std=1.0)).wants_std
    assert list(survey_grid(task, float).summary.seen) == [(0,)]
    assert not survey_grid(task_of(data, FillRequest(mask="none"), outer=1), float).summary.seen


def test_infinite_cells_are_missing_and_sizes_that_cannot_be_fitted_are_refused():
    data = daily(12, 5, 6)
    data[3, 3, 3] = np.inf
    found = survey_grid(task_of(data), float)
    assert len(found.notes) == 1
    assert "infinite" in found.notes[0]
    with pytest.raises(InputError, match=r"small|too|size"):
        survey_grid(task_of(1e-200 * daily(12, 5, 6)), float)
