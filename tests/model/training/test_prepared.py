"""Grids made ready for a fit: what is refused, left out and replaced, and in which order."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training import prepared
from dkrls_cli.model.training.prepared import jump_notes, prepare_grid, suspicious_marks

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


EAST = axis_of("lon", np.arange(0.0, 360.0, 15.0), {"units": "degrees_east"})
"""Longitudes that close a circle."""


def ring_grid(along, axis=EAST):
    """Return a field that changes along an axis, and a little along another one."""
    return Grid(along + 0.01 * np.arange(3.0)[:, None], (axis_of("y", [0.0, 1.0, 2.0]), axis), "t")


def notes_on(grid, **settings):
    return jump_notes(grid, plan_fit(grid.axes, Settings(**settings)))


def test_data_that_jumps_at_the_seam_of_a_circle_is_told_of():
    ramp = ring_grid(EAST.numbers / 360)
    note = notes_on(ramp)[0]
    assert "'t' jumps along 'lon' from 345.0 to 0.0, 23 times as far" in note
    assert notes_on(ramp, period={"lon": "none"}) == []
    descending = replace(
        ramp, values=ramp.values[:, ::-1], axes=(ramp.axes[0], EAST.take(slice(None, None, -1)))
    )
    assert notes_on(descending) == [note]
    gappy = ramp.values.copy()
    gappy[0, ::5] = np.nan
    assert notes_on(replace(ramp, values=gappy)) == [note]
    half = EAST.take(slice(0, 12))
    assert notes_on(ring_grid(half.numbers / 360, half)) == []  # no circle


@pytest.mark.parametrize("size", [8, 12, 24, 72])
def test_data_that_goes_round_does_not_jump(size):
    axis = axis_of("lon", np.arange(size) * 360 / size, {"units": "degrees_east"})
    angles, rng = np.radians(axis.numbers), np.random.default_rng(size)
    for _ in range(20):
        waves = np.arange(1, size // 2)
        heights = rng.normal(size=waves.size) / waves ** rng.choice([0, 1, 2])
        phases = rng.uniform(0, 2 * np.pi, waves.size)
        field = np.cos(waves[:, None] * angles + phases[:, None]).T @ heights
        assert notes_on(ring_grid(field, axis)) == []
    wide = axis.take(slice(0, size - 1))  # a step that is twice as wide may be twice as far
    assert notes_on(ring_grid(np.abs(wide.numbers - 180), wide)) == []
    assert notes_on(ring_grid(np.zeros(size), axis)) == []


def test_jumps_of_large_grids_are_seen_in_a_part_of_them(monkeypatch):
    monkeypatch.setattr(prepared, "_LOOKED_AT", 40)
    assert len(notes_on(ring_grid(EAST.numbers / 360))) == 1
