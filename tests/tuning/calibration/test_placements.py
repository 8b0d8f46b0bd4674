"""Gaps of a grid at other places."""

import numpy as np
import pytest

from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.tuning.calibration import placements as module
from dkrls_cli.tuning.calibration.placements import place_gaps, widest_hole


def box(shape, *sides):
    cells = np.zeros(shape, bool)
    cells[tuple(slice(*side) for side in sides)] = True
    return cells


def placed(observed, targets, seeds=20):
    return [place_gaps(observed, targets, np.random.default_rng(seed)) for seed in range(seeds)]


def test_a_hole_is_hidden_whole_at_different_places():
    targets = box((30, 40), (3, 8), (20, 27))
    hole = widest_hole(targets, distance_to_data(~targets))
    found = placed(~targets, targets)
    assert len({cells.tobytes() for cells in found}) > 15
    whole = [cells for cells in found if cells.sum() == hole.sum()]
    assert len(whole) > 10  # those that do not lie on the hole itself
    for cells in whole:
        rows, columns = (np.flatnonzero(cells.any(axis=axis)) for axis in (1, 0))
        assert (np.ptp(rows), np.ptp(columns)) == (4, 6)
    assert all(cells.sum() >= 0.7 * hole.sum() for cells in found)
    assert not any((cells & targets).any() for cells in found)


def test_a_hole_is_mirrored(monkeypatch):
    targets = box((40, 40), (5, 12), (5, 12)) & ~box((40, 40), (5, 9), (5, 9))
    monkeypatch.setattr(module, "widest_hole", lambda targets, away: targets)
    corners = set()
    for cells in placed(~targets, targets, 60):
        if cells.sum() == targets.sum():
            rows, columns = (np.flatnonzero(cells.any(axis=axis)) for axis in (1, 0))
            corners.add(tuple(cells[r, c] for r in rows[[0, -1]] for c in columns[[0, -1]]))
    assert len(corners) == 4
    assert {sum(corner) for corner in corners} == {3}


def test_other_gaps_are_shifted_as_they_lie():
    targets = box((60, 60), (20, 30), (20, 30))
    targets[::12, ::12] = True
    found = placed(~targets, targets)
    away = distance_to_data(~targets)
    hole = widest_hole(targets, away)
    for cells in found:
        assert cells.sum() > 0.7 * hole.sum() + 0.5 * (targets & ~hole).sum()
        assert cells.sum() <= targets.sum()


def test_the_widest_hole_is_the_one_of_the_farthest_cell():
    targets = box((30, 30), (2, 5), (2, 28)) | box((30, 30), (12, 22), (10, 20))
    hole = widest_hole(targets, distance_to_data(~targets))
    assert not hole[:6].any()
    assert hole[13:21, 11:19].all()
    assert hole.sum() > 90  # corners aside


def test_gaps_that_touch_a_hole_are_no_part_of_it():
    targets = box((30, 30), (10, 20), (10, 20)) | box((30, 30), (15, 16), (0, 30))
    hole = widest_hole(targets, distance_to_data(~targets))
    assert not hole[15, :7].any()
    assert not hole[15, 23:].any()
    assert hole[15, 10:20].all()


def test_cells_that_are_not_to_be_filled_are_not_in_the_hole():
    missing = box((30, 30), (10, 20), (10, 20))
    targets = missing & box((30, 30), (10, 20), (10, 16))
    hole = widest_hole(targets, distance_to_data(~missing))
    assert hole.any()
    assert not (hole & ~targets).any()


@pytest.mark.parametrize("size", [5, 24, 29])
def test_four_tenths_of_the_observed_cells_are_hidden_at_most(size):
    targets = box((30, 30), (0, size), (0, 30))
    for cells in placed(~targets, targets):
        assert cells.any()
        assert not (cells & targets).any()
        assert cells.sum() <= 0.4 * (~targets).sum()


def test_without_room_for_all_gaps_the_hole_alone_is_hidden():
    rng = np.random.default_rng(0)
    hole = box((40, 40), (10, 18), (10, 18))
    targets = hole | (rng.random((40, 40)) < 0.45)
    found = placed(~targets, targets)
    widest = widest_hole(targets, distance_to_data(~targets)).sum()
    assert any(cells.sum() <= widest for cells in found)


def test_the_place_where_most_is_observed_is_taken():
    observed = np.zeros((40, 5), bool)
    observed[30:36] = True
    cells = np.argwhere(np.ones((6, 5), bool))
    place = module._find_place(observed, cells, np.random.default_rng(0))
    assert observed[place].mean() >= 0.7
    barely = np.zeros((40, 5), bool)
    barely[30:33] = True
    assert barely[module._find_place(barely, cells, np.random.default_rng(0))].mean() == 0.5


@pytest.mark.parametrize("shape", [(12,), (6, 6), (4, 5, 6)])
def test_a_single_cell_is_put_somewhere_else(shape):
    targets = np.zeros(shape, bool)
    targets.flat[3] = True
    found = placed(~targets, targets)
    assert max(cells.sum() for cells in found) == 1
    assert len({int(np.argmax(cells)) for cells in found if cells.any()}) > 3
