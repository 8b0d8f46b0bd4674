"""Grids made ready for a fit: what is refused, left out and replaced, and in which order."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.prepared import prepare_grid, suspicious_marks

WAVES = np.outer(np.sin(np.arange(20) / 4), np.cos(np.arange(24) / 4))


def test_a_complete_grid_stays_what_it_is():
    grid = as_grid(WAVES)
    ready = prepare_grid(grid, Settings())
    assert ready.grid is ready.with_lost is ready.given is grid
    assert (ready.missing, ready.lost, ready.repeats, ready.cleaned) == (0.0, [], [], None)
    coverage, note = ready.cover(grid.dims)
    assert not coverage.absent.any()
    assert note == ""


def test_lost_coordinates_are_left_out_and_counted_as_missing():
    values = WAVES.copy()
    values[3] = values[:2, 5] = np.nan
    ready = prepare_grid(as_grid(values), Settings())
    assert ready.grid.values.shape == (19, 24)
    assert ready.with_lost.values.shape == (20, 24)
    assert ready.missing == pytest.approx((24 + 2) / 480)
    assert len(ready.lost) == 1
    assert "1 of 20 coordinates" in ready.lost[0]
    assert not ready.grid.values.flags.writeable  # a copy that nobody else has is not copied again


def test_missing_cells_are_refused_where_they_are_an_error():
    values = WAVES.copy()
    values[0, 0] = np.nan
    with pytest.raises(InputError, match="missing"):
        prepare_grid(as_grid(values), Settings(missing="error"))


def test_repeated_longitudes_go_first_so_that_their_cells_count_once():
    lon = axis_of("lon", [*np.arange(0.0, 360.0, 15.0), 360.0], {"units": "degrees_east"})
    grid = Grid(np.concatenate([WAVES, WAVES[:, :1]], 1), (axis_of("y", np.arange(20.0)), lon))
    ready = prepare_grid(grid, Settings())
    assert ready.grid.values.shape == (20, 24)
    assert len(ready.repeats) == 1
    assert ready.given is grid


def test_bounds_of_a_robust_fit_are_those_of_good_cells():
    values = 0.5 + 0.4 * WAVES
    values += 0.01 * np.random.default_rng(0).normal(size=values.shape)
    values[7, 9] = 3.0  # no fraction
    grid = replace(as_grid(values), attrs={"valid_min": 0.0, "valid_max": 1.0})
    assert prepare_grid(grid, Settings()).bounds is None
    ready = prepare_grid(grid, Settings(robust=True))
    assert ready.bounds is not None
    assert ready.cleaned is not None
    assert ready.grid.values[7, 9] < 1.0


def test_marks_of_values_and_coordinates_are_noted_and_lost_digits_of_single_precision():
    values = WAVES.copy()
    values[2, 3] = -9999.0
    grid = Grid(values, (axis_of("y", [-9999.0, *range(19)]), axis_of("x", np.arange(24.0))))
    assert ["-9999" in note for note in suspicious_marks(grid, Settings())] == [True, True]
    tiny = as_grid(1e-42 * WAVES)
    assert suspicious_marks(tiny, Settings()) == []
    assert len(suspicious_marks(tiny, Settings(dtype="float32"))) == 1
