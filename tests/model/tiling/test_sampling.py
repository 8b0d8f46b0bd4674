"""The part of a grid on which the settings of all tiles are chosen."""

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling import sampling
from dkrls_cli.model.tiling.ground import Frame
from dkrls_cli.model.tiling.sampling import Sample, sample_rows


def test_parts_of_an_axis_are_at_its_ends_and_in_its_middle():
    known = np.arange(0, 200, 2)
    assert sample_rows(known, 100) is known
    assert sample_rows(known, 6).tolist() == [0, 2, 98, 100, 196, 198]
    assert sample_rows(known, 4, runs=1).tolist() == [96, 98, 100, 102]


def part(gaps, *, cut=(0,), limit=1e12):
    """Return the rows of the part of a grid of 200 x 30 cells."""
    axes = [axis_of("t", np.arange(200.0)), axis_of("x", np.arange(30.0))]
    frame = Frame.of(axes, [np.empty(0, int)] * 2, extrapolate=False)
    plan = plan_fit(axes, Settings(), complete=False)
    return Sample(frame, plan, cut, np.asarray(gaps), "float64", limit).rows()


def test_a_part_is_cut_along_the_axes_that_tiles_cut_until_it_has_few_cells(monkeypatch):
    monkeypatch.setattr(sampling, "_MOST_CELLS", 100 * 30)
    rows, columns = part(np.ones(200))
    assert columns.size == 30
    assert 100 / 1.25 - 3 <= rows.size <= 100
    assert (rows[0], rows[-1]) == (0, 199)
    monkeypatch.setattr(sampling, "_MOST_CELLS", 10)
    assert [own.size for own in part(np.ones(200))] == [24, 30]  # fewer would show no gaps


def test_a_part_without_gaps_is_moved_to_where_they_are(monkeypatch):
    monkeypatch.setattr(sampling, "_MOST_CELLS", 24 * 30)
    gaps = np.zeros(200, int)
    gaps[[60, 61]] = 5
    rows, _ = part(gaps)
    assert rows.tolist() == list(range(48, 72))
    gaps[:] = 0
    gaps[199] = 1
    assert part(gaps)[0].tolist() == [*range(8), *range(96, 104), *range(192, 200)]


def test_memory_cuts_other_axes_as_well_and_refuses_what_is_left(monkeypatch):
    monkeypatch.setattr(sampling, "held_bytes", lambda: 1e8)
    monkeypatch.setattr(sampling, "peak_bytes", lambda: 1e8)
    least = Sample._memory(Sample(None, None, (0,), None, "float64", 0.0), [24, 24])
    assert [own.size for own in part(np.ones(200), limit=least)] == [24, 24]
    with pytest.raises(InputError, match="Choosing settings on a part of the grid takes about"):
        part(np.ones(200), limit=least - 1)
