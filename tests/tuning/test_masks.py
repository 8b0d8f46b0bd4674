"""Cells hidden in the way that cells are missing."""

import numpy as np
import pytest

from dkrls_cli.gaps.pattern import SCATTERED
from dkrls_cli.tuning import masks
from dkrls_cli.tuning.masks import HiddenWindow, hide_cells


def grid(shape, missing=None, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    if missing is not None:
        values[missing] = np.nan
    return values, [np.arange(float(size)) for size in shape]


def hidden_of(shape, missing=None, seed=0):
    values, axes = grid(shape, missing)
    (window,) = hide_cells(values, axes, np.random.default_rng(seed))
    return window, np.isfinite(values)


def clouds(shape, side, count, seed=1):
    """Return a mask of square clouds, each in one slice of the last axis."""
    rng = np.random.default_rng(seed)
    missing = np.zeros(shape, bool)
    for _ in range(count):
        i, j, k = (int(rng.integers(size)) for size in shape)
        missing[i : i + side, j : j + side, k] = True
    return missing


def test_a_window_shows_its_data_without_what_is_hidden():
    values = np.array([1.0, np.nan, 3.0, 4.0])
    hidden = np.array([True, False, False, True])
    window = HiddenWindow((np.arange(4.0),), values, hidden, np.array([1.5, 2.0, 3.0, 3.0]))
    np.testing.assert_array_equal(window.seen, [np.nan, np.nan, 3.0, np.nan])
    assert window.residuals.tolist() == [0.5, -1.0]


def test_observed_cells_are_hidden_at_random_and_repeatably():
    missing = np.random.default_rng(3).random((30, 20, 12)) < 0.2
    window, observed = hidden_of((30, 20, 12), missing)
    again, _ = hidden_of((30, 20, 12), missing)
    other, _ = hidden_of((30, 20, 12), missing, seed=1)
    assert (window.hidden <= observed).all()
    np.testing.assert_array_equal(window.hidden, again.hidden)
    assert (window.hidden != other.hidden).any()
    np.testing.assert_array_equal(window.values[observed], window.answers[observed])


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_about_15_percent_of_the_observed_cells_are_hidden(share):
    missing = np.random.default_rng(3).random((40, 30, 20)) < share
    window, observed = hidden_of((40, 30, 20), missing)
    assert np.count_nonzero(window.hidden) / np.count_nonzero(observed) == pytest.approx(
        0.15, abs=0.02
    )


def test_clouds_are_hidden_under_clouds():
    """Most hidden cells have hidden or missing neighbours, as most missing cells do."""
    missing = clouds((40, 40, 20), 6, 60)
    window, observed = hidden_of((40, 40, 20), missing)
    gone = window.hidden | ~observed
    beside = np.zeros(gone.shape, int)
    for axis in (0, 1):
        for step in (1, -1):
            beside += np.roll(gone, step, axis)
    assert beside[window.hidden].mean() > 3.0
    scattered, _ = hidden_of((40, 40, 20), np.random.default_rng(5).random((40, 40, 20)) < 0.1)
    alone = np.zeros(gone.shape, int)
    for axis in (0, 1):
        for step in (1, -1):
            alone += np.roll(scattered.hidden, step, axis)
    assert alone[scattered.hidden].mean() < 1.0


def test_shifted_gaps_hide_cells_until_enough_are_hidden_or_shifts_are_used_up():
    observed = np.ones((40, 50), bool)
    gaps = np.zeros((40, 50), bool)
    gaps[3, 4:9] = True
    found = masks._shift_gaps(observed, gaps, np.random.default_rng(0))
    rows = np.flatnonzero(found.any(axis=1))
    assert 60 <= np.count_nonzero(found) <= 20 * 5  # 20 shifts of five cells, some overlap
    assert rows.size > 8
    gaps[:20] = True  # one shift has more than enough: some tiles of it are taken
    found = masks._shift_gaps(observed, gaps, np.random.default_rng(0))
    assert np.count_nonzero(found) == pytest.approx(0.15 * 2000, abs=130)
    assert masks._shift_gaps(~observed, gaps, np.random.default_rng(0)).sum() == 0


@pytest.mark.parametrize(("rows", "shifts"), [(20, 1), (1, 20)])
def test_gaps_are_shifted_no_more_than_needed(rows, shifts, monkeypatch):
    drawn = []
    draw_tiles = masks._draw_tiles

    def counted(*args):
        drawn.append(args)
        return draw_tiles(*args)

    monkeypatch.setattr(masks, "_draw_tiles", counted)
    gaps = np.zeros((40, 50), bool)
    gaps[:rows, : 50 if rows > 1 else 5] = True
    masks._shift_gaps(np.ones((40, 50), bool), gaps, np.random.default_rng(0))
    assert len(drawn) == shifts


def test_tiles_are_squares_of_eight_cells_with_a_number_each():
    tiles = masks._draw_tiles((17, 24), np.random.default_rng(0))
    assert tiles.shape == (17, 24)
    for i in range(0, 17, 8):
        for j in range(0, 24, 8):
            assert np.unique(tiles[i : i + 8, j : j + 8]).size == 1
    assert np.unique(tiles).size == 9
    assert ((tiles >= 0) & (tiles < 1)).all()


@pytest.mark.parametrize("extra", [0, 1])
def test_gaps_are_shifted_if_they_are_more_than_one_in_200(extra, monkeypatch):
    called = []
    monkeypatch.setattr(masks, "_shift_gaps", lambda *_: called.append("shift") or observed)
    monkeypatch.setattr(masks, "_place_boxes", lambda *_: called.append("boxes") or observed)
    observed, gaps = np.ones((20, 50), bool), np.zeros((20, 50), bool)
    gaps.flat[: 5 + extra] = True  # one in 200 is five
    assert SCATTERED * 1000 == 5
    masks._hide(observed, gaps, (1, 1), np.random.default_rng(0))
    assert called == ["shift" if extra else "boxes"]


def test_single_cells_are_hidden_where_nothing_else_hides_any():
    called = []

    def boxes(observed, shape, _):
        called.append(tuple(shape))
        return observed if len(called) == 2 else ~observed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masks, "_place_boxes", boxes)
        masks._hide(np.ones((4, 5), bool), np.zeros((4, 5), bool), (3, 2), None)
    assert called == [(3, 2), (1, 1)]
    window, _ = hidden_of((5,))
    assert np.count_nonzero(window.hidden) == 1


def test_boxes_have_the_shape_of_a_gap_but_leave_most_of_an_axis():
    observed = np.ones((30, 30), bool)
    found = masks._place_boxes(observed, (4, 3), np.random.default_rng(0))
    assert 0.15 <= found.mean() <= 0.15 + 12 / 900
    lone = masks._place_boxes(observed[:9, :9], (2, 8), np.random.default_rng(0))
    rows, columns = np.flatnonzero(lone.any(axis=1)), np.flatnonzero(lone.any(axis=0))
    assert np.count_nonzero(lone) >= 12
    assert rows.size <= 8
    assert columns.size < 9  # a third of the axis, not eight cells
    first = masks._box(np.array([4, 4]), [2, 3])
    assert first == (slice(3, 5), slice(3, 6))
    assert masks._box(np.array([0, 1]), [4, 3]) == (slice(0, 2), slice(0, 3))


@pytest.mark.parametrize(
    ("gap", "sides"), [((2, 8), [2, 3]), ((9, 1), [9, 1]), ((11, 3), [9, 3]), ((4, 4), [3, 3])]
)
def test_sides_of_a_box_are_a_third_of_the_axis_or_all_of_it(gap, sides, monkeypatch):
    asked = []

    def box(centre, sides):
        asked.append(sides)
        return (slice(0, 9), slice(0, 8))

    monkeypatch.setattr(masks, "_box", box)
    masks._place_boxes(np.ones((9, 9), bool), gap, np.random.default_rng(0))
    assert asked == [sides]


def test_boxes_as_long_as_an_axis_go_all_along_it():
    observed = np.ones((9, 40), bool)
    found = masks._place_boxes(observed, (9, 1), np.random.default_rng(2))
    lengths = found.sum(axis=0)
    assert lengths.max() >= 5
    assert np.count_nonzero(lengths) < 20


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,)])
def test_not_every_observed_cell_is_hidden(shape):
    found = masks._place_boxes(np.ones(shape, bool), shape, np.random.default_rng(0))
    assert not found.all()
    values, axes = grid(shape)
    (window,) = hide_cells(values, axes, np.random.default_rng(0))
    assert not window.hidden.all()


def test_boxes_hide_observed_cells_only():
    observed = np.random.default_rng(0).random((20, 20)) > 0.5
    found = masks._place_boxes(observed, (3, 3), np.random.default_rng(0))
    assert (found <= observed).all()
    assert np.count_nonzero(found) >= int(0.15 * np.count_nonzero(observed))


@pytest.mark.parametrize(("columns", "count"), [(200, 1), (201, 3)])
def test_a_grid_of_up_to_60000_cells_is_seen_whole(columns, count):
    values, axes = grid((300, columns), np.random.default_rng(0).random((300, columns)) < 0.2)
    windows = hide_cells(values, axes, np.random.default_rng(0))
    assert len(windows) == count
    for window in windows:
        rows, others = ([int(c[0]), int(c[-1]) + 1] for c in window.coordinates)
        part = values[slice(*rows), slice(*others)]
        np.testing.assert_array_equal(window.values, part)
        assert window.hidden.any()


def test_windows_lie_at_the_ends_and_in_the_middle():
    parts = masks._windows(np.ones((300, 400), bool))
    sides = masks.window_sides((300, 400), 20_000)
    starts = [[s.start for s in part] for part in parts]
    ends = [300 - sides[0], 400 - sides[1]]
    assert starts == [[0, 0], [ends[0] // 2, ends[1] // 2], ends]
    assert all([s.stop - s.start for s in part] == sides for part in parts)


@pytest.mark.parametrize(
    ("shape", "cells", "sides"),
    [
        ((300, 400), 20_000, [141, 141]),
        ((10, 9000), 20_000, [10, 2000]),
        ((9000, 10), 20_000, [2000, 10]),
        ((100, 100, 100), 20_000, [27, 27, 27]),
        ((500, 4, 70), 20_000, [71, 4, 70]),
        ((3, 90_000), 2, [2, 2]),
    ],
)
def test_sides_of_a_window_are_as_equal_as_the_grid_allows(shape, cells, sides):
    assert masks.window_sides(shape, cells) == sides


@pytest.mark.parametrize(("share", "good"), [(0.49, False), (0.51, True)])
def test_windows_with_half_the_cells_of_the_fullest_are_good(share, good):
    observed = np.zeros((300, 400), bool)
    sides = masks.window_sides((300, 400), 20_000)
    observed[: sides[0], : sides[1]] = True  # the first corner is full
    rows = round(share * sides[0])
    observed[-rows:, -sides[1] :] = True  # the last one is not
    starts = [tuple(s.start for s in part) for part in masks._windows(observed)]
    ends = (300 - sides[0], 400 - sides[1])
    assert starts == ([(0, 0), ends] if good else [(0, 0)])


def test_windows_of_a_long_axis_are_short_and_many():
    parts = masks._windows(np.ones((30_000,), bool))
    starts = [part[0].start for part in parts]
    assert [part[0].stop - part[0].start for part in parts] == [512] * 12
    assert starts == np.linspace(0, 30_000 - 512, 12).astype(int).tolist()
    parts = masks._windows(np.ones((16, 8760), bool))
    assert {tuple(s.stop - s.start for s in part) for part in parts} == {(16, 512)}
    assert len(parts) == 60_000 // (16 * 512)
    assert (parts[0][1].start, parts[-1][1].stop) == (0, 8760)


def test_a_long_axis_is_seen_through_windows_however_few_the_cells():
    assert len(masks._windows(np.ones(1024, bool))) == 1
    assert len(masks._windows(np.ones(1025, bool))) == 12


def test_windows_of_equal_steps_along_a_long_axis_have_the_same_coordinates():
    t, x = 1e6 + np.arange(3000.0), np.array([3.0, 4.0, 7.0])
    values = np.where(np.random.default_rng(0).random((3000, 3)) < 0.1, np.nan, 1.0)
    windows = masks.hide_cells(values, [t, x], np.random.default_rng(1))
    assert len(windows) > 3
    for window in windows:
        np.testing.assert_array_equal(window.coordinates[0], np.arange(512.0))
        np.testing.assert_array_equal(window.coordinates[1], x)
