"""Cells hidden in the way that cells are missing."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.gaps.pattern import SCATTERED, distance_to_data
from dkrls_cli.tuning import masks
from dkrls_cli.tuning.masks import HiddenWindow, distance_powers, hide_cells, weigh_windows


def grid(shape, missing=None, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    if missing is not None:
        values[missing] = np.nan
    return values, [np.arange(float(size)) for size in shape]


def hidden_of(shape, missing=None, seed=0):
    values, axes = grid(shape, missing)
    (window,) = hide_cells(values, axes, np.random.default_rng(seed), room=3)
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


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.6])
def test_15_to_40_percent_of_the_observed_cells_are_hidden(share):
    missing = np.random.default_rng(3).random((40, 30, 20)) < share
    window, observed = hidden_of((40, 30, 20), missing)
    assert 0.15 <= np.count_nonzero(window.hidden) / np.count_nonzero(observed) <= 0.4


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 30), st.integers(3, 30), st.integers(0, 9999))
def test_observed_cells_are_hidden_but_never_far_too_many(rows, columns, seed):
    """Holes of any size and place: at most 40 % of what is observed, or one cell."""
    rng = np.random.default_rng(seed)
    missing = rng.random((rows, columns)) < rng.choice([0.0, 0.1])
    top, left = int(rng.integers(rows)), int(rng.integers(columns))
    missing[top : top + int(rng.integers(rows)), left : left + int(rng.integers(columns))] = True
    missing[rng.integers(rows), rng.integers(columns)] = False
    observed, gaps = ~missing, missing
    found = masks._shift_gaps(observed, gaps, rng)
    assert (found <= observed).all()
    assert np.count_nonzero(found) <= max(1.0, 0.4 * np.count_nonzero(observed))
    values, axes = grid((rows, columns), missing)
    (window,) = hide_cells(values, axes, rng, room=3)
    assert np.isfinite(window.seen).any()


def test_the_only_observed_cell_is_never_hidden():
    missing = np.ones((4, 5), bool)
    missing[1, 2] = False
    for seed in range(30):
        window, _ = hidden_of((4, 5), missing, seed)
        assert not window.hidden.any()


def test_a_hole_is_hidden_whole_where_it_fits():
    """A quarter of the grid is missing; as large a hole is hidden somewhere else."""
    missing = np.zeros((40, 40), bool)
    missing[:20, :20] = True
    shares = []
    for seed in range(20):
        window, observed = hidden_of((40, 40), missing, seed)
        shares.append(np.count_nonzero(window.hidden) / np.count_nonzero(observed))
        assert window.distances.max() > 3
    assert 0.15 <= min(shares) <= max(shares) <= 0.4


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
    gaps[:20] = True  # one shift has more than enough: a box of it is taken
    found = masks._shift_gaps(observed, gaps, np.random.default_rng(0))
    assert 0.15 * 2000 <= np.count_nonzero(found) <= 0.4 * 2000
    assert masks._shift_gaps(~observed, gaps, np.random.default_rng(0)).sum() == 0


@pytest.mark.parametrize(("rows", "shifts"), [(10, 1), (1, 20)])
def test_gaps_are_shifted_no_more_than_needed(rows, shifts, monkeypatch):
    rolled, roll = [], np.roll
    monkeypatch.setattr(np, "roll", lambda *args: rolled.append(args) or roll(*args))
    gaps = np.zeros((40, 50), bool)
    gaps[:rows, : 50 if rows > 1 else 5] = True
    masks._shift_gaps(np.ones((40, 50), bool), gaps, np.random.default_rng(0))
    assert len(rolled) == shifts


def test_gaps_are_mirrored_as_well_as_shifted():
    """An L has eight forms on a grid; four of them are its mirror images."""
    gaps = np.zeros((9, 9), bool)
    gaps[3:6, 4] = gaps[5, 5] = True
    forms = set()
    for seed in range(40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(masks, "_HELD_OUT", 0.01)
            found = masks._shift_gaps(np.ones((9, 9), bool), gaps, np.random.default_rng(seed))
        shape = min(np.roll(found, (i, j), (0, 1)).tobytes() for i in range(9) for j in range(9))
        forms.add(shape)
    assert len(forms) == 4


@pytest.mark.parametrize("most", [1, 5, 30, 99])
def test_a_box_of_gaps_holds_at_most_so_many_cells(most):
    rng = np.random.default_rng(most)
    for _ in range(20):
        under = np.zeros((20, 30), bool)
        under[4:14, 10:20] = True
        found = masks.cut_cells(under, most, rng)
        assert (found <= under).all()
        assert 1 <= np.count_nonzero(found) <= most


@pytest.mark.parametrize("extra", [0, 1])
def test_gaps_are_shifted_if_they_are_more_than_one_in_200(extra, monkeypatch):
    called = []
    monkeypatch.setattr(masks, "_shift_gaps", lambda *_: called.append("shift") or gaps)
    monkeypatch.setattr(masks, "_place_boxes", lambda *_: called.append("boxes") or gaps)
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
    (window,) = hide_cells(values, axes, np.random.default_rng(0), room=3)
    assert not window.hidden.all()


def test_boxes_hide_observed_cells_only():
    observed = np.random.default_rng(0).random((20, 20)) > 0.5
    found = masks._place_boxes(observed, (3, 3), np.random.default_rng(0))
    assert (found <= observed).all()
    assert np.count_nonzero(found) >= int(0.15 * np.count_nonzero(observed))


def test_single_cells_are_hidden_as_many_as_are_wanted_and_never_all():
    rng = np.random.default_rng(0)
    observed = rng.random((9, 8, 1)) > 0.3
    hidden = masks._place_boxes(observed, (1, 1, 1), rng)
    assert np.count_nonzero(hidden) == int(0.15 * np.count_nonzero(observed))
    assert not (hidden & ~observed).any()
    other = masks._place_boxes(observed, (1, 1, 1), rng)
    assert (other != hidden).any()  # they are drawn
    lone = np.arange(5) == 2
    assert not masks._place_boxes(lone, (1,), rng).any()


@pytest.mark.parametrize(("columns", "count"), [(200, 1), (201, 3)])
def test_a_grid_is_seen_whole_up_to_a_limit(columns, count):
    values, axes = grid((300, columns), np.random.default_rng(0).random((300, columns)) < 0.2)
    windows = hide_cells(values, axes, np.random.default_rng(0), room=3)
    assert len(windows) == count
    for window in windows:
        rows, others = ([int(c[0]), int(c[-1]) + 1] for c in window.coordinates)
        part = values[slice(*rows), slice(*others)]
        np.testing.assert_array_equal(window.values, part)
        assert window.hidden.any()


def test_windows_lie_at_the_ends_and_in_the_middle():
    parts = masks._windows(np.ones((300, 400), bool), 20_000, 60_000)
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
    starts = [tuple(s.start for s in part) for part in masks._windows(observed, 20_000, 60_000)]
    ends = (300 - sides[0], 400 - sides[1])
    assert starts == ([(0, 0), ends] if good else [(0, 0)])


def test_windows_of_a_long_axis_are_short_and_many():
    parts = masks._windows(np.ones((30_000,), bool), 20_000, 60_000)
    starts = [part[0].start for part in parts]
    assert [part[0].stop - part[0].start for part in parts] == [512] * 12
    assert starts == np.linspace(0, 30_000 - 512, 12).astype(int).tolist()
    parts = masks._windows(np.ones((16, 8760), bool), 20_000, 60_000)
    assert {tuple(s.stop - s.start for s in part) for part in parts} == {(16, 512)}
    assert len(parts) == 60_000 // (16 * 512)
    assert (parts[0][1].start, parts[-1][1].stop) == (0, 8760)


def test_a_long_axis_is_seen_through_windows_however_few_the_cells():
    assert len(masks._windows(np.ones(1024, bool), 20_000, 60_000)) == 1
    assert len(masks._windows(np.ones(1025, bool), 20_000, 60_000)) == 12


def test_windows_of_equal_steps_along_a_long_axis_have_the_same_coordinates():
    t, x = 1e6 + np.arange(3000.0), np.array([3.0, 4.0, 7.0])
    values = np.where(np.random.default_rng(0).random((3000, 3)) < 0.1, np.nan, 1.0)
    windows = masks.hide_cells(values, [t, x], np.random.default_rng(1), room=3)
    assert len(windows) > 3
    for window in windows:
        np.testing.assert_array_equal(window.coordinates[0], np.arange(512.0))
        np.testing.assert_array_equal(window.coordinates[1], x)


# --- weights by distance to data ----------------------------------------------------------------


def test_powers_of_two_of_distances():
    away = np.array([0.0, 1.0, 1.4, 1.999, 2.0, 3.9, 4.0, 7.9, 8.0, 1000.0])
    assert distance_powers(away).tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 3, 9]


def test_distances_of_hidden_cells_are_to_what_is_still_seen():
    values = np.array([1.0, np.nan, 3.0, 4.0, 5.0, 6.0])
    hidden = np.array([False, False, True, True, False, False])
    window = HiddenWindow((np.arange(6.0),), values, hidden, values)
    assert window.distances.tolist() == [2.0, 1.0]
    thinned = HiddenWindow((np.arange(6.0),), values, hidden, values, (3,))
    assert thinned.distances.tolist() == [6.0, 3.0]
    assert thinned.powers.tolist() == [2, 1]
    assert window.shares.tolist() == [0.5, 0.5]


def window_with_hole(side, seed=0, shape=(30, 30)):
    values, axes = grid(shape, seed=seed)
    hidden = np.zeros(shape, bool)
    hidden[5 : 5 + side, 6 : 6 + side] = hidden[28, 28] = True
    return HiddenWindow(tuple(axes), values, hidden, values)


@given(
    st.lists(st.integers(1, 18), min_size=1, max_size=3),
    st.lists(st.floats(1.0, 40.0), min_size=1, max_size=30),
)
@settings(max_examples=40, deadline=None)
def test_hidden_cells_are_weighed_by_the_distances_of_the_targets(sides, far):
    windows = weigh_windows([window_with_hole(side) for side in sides], np.array(far))
    weights = np.concatenate([w.shares for w in windows])
    powers = np.concatenate([w.powers for w in windows])
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    wanted = distance_powers(np.array(far))
    assert (weights[powers > wanted.max()] == 0).all()
    present = np.unique(powers)
    taken = [present[present <= p].max() for p in wanted]  # the next power below that is hidden
    for power in present:
        assert weights[powers == power].sum() == pytest.approx(np.mean(np.equal(taken, power)))
        assert np.ptp(weights[powers == power]) < 1e-15


def test_without_targets_all_hidden_cells_weigh_the_same():
    windows = weigh_windows([window_with_hole(3), window_with_hole(8)], np.zeros(0))
    weights = np.concatenate([w.shares for w in windows])
    np.testing.assert_allclose(weights, 1.0 / weights.size)


def test_squares_are_summed_by_power_and_weight():
    window = window_with_hole(9)
    weights = np.arange(1.0, window.hidden.sum() + 1)
    window = HiddenWindow(
        window.coordinates, window.values, window.hidden, window.values, None, weights
    )
    missed = np.linspace(-1, 2, weights.size)
    found = window.squares(missed)
    assert found.size == 32
    for power in range(3):
        mine = window.powers == power
        assert found[power] == pytest.approx(np.sum(weights[mine] * missed[mine] ** 2))
    assert found[3:].tolist() == [0.0] * 29


def test_targets_say_what_is_hidden_and_how_it_counts():
    """Land stays missing: cells are hidden as clouds lie, whose cells are all next to data."""
    missing = np.zeros((40, 40, 6), bool)
    missing[:20, :20] = True
    targets = np.random.default_rng(0).random(missing.shape) < 0.1
    targets &= ~missing
    values, axes = grid(missing.shape, missing | targets)
    (window,) = hide_cells(values, axes, np.random.default_rng(0), targets)
    assert window.powers[window.shares > 0].max() == 0
    (other,) = hide_cells(values, axes, np.random.default_rng(0))
    assert other.powers[other.shares > 0].max() >= 1
    none = np.zeros(missing.shape, bool)  # no targets: all that is missing
    (same,) = hide_cells(values, axes, np.random.default_rng(0), none)
    np.testing.assert_array_equal(same.hidden, other.hidden)


# --- a view of the whole ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strides", "dense"), [(None, True), ((1, 1), True), ((1, 2), False), ((3, 1), False)]
)
def test_a_part_is_dense_if_it_has_all_cells_of_the_grid(strides, dense):
    window = window_with_hole(3)
    parts = window.coordinates, window.values, window.hidden, window.values
    assert HiddenWindow(*parts, strides).is_dense == dense


def thinned_window(strides, side=18):
    window = window_with_hole(side)
    return replace(window, strides=strides)


@pytest.mark.parametrize("strides", [(3, 3), (1, 3), (3, 1)])
def test_near_cells_of_a_thinned_view_have_no_weight_beside_a_dense_window(strides):
    """The view has less data there than the grid: cells count from four strides on."""
    hole = window_with_hole(28, shape=(40, 40))
    thinned, dense = weigh_windows(
        [replace(hole, strides=strides), window_with_hole(6)], np.arange(1.0, 65.0)
    )
    counted = thinned.distances >= 12.0
    assert 0 < np.count_nonzero(counted) < counted.size
    np.testing.assert_array_equal(thinned.shares > 0, counted)
    assert (dense.shares > 0).all()
    assert thinned.shares.sum() + dense.shares.sum() == pytest.approx(1.0)
    far = distance_powers(np.arange(1.0, 65.0))
    near = dense.powers == 0  # cells that are dropped are not counted: others have their weight
    assert dense.shares[near].sum() == pytest.approx(np.mean(far == 0))


def test_near_cells_of_a_thinned_view_count_where_there_is_no_dense_window():
    windows = weigh_windows([thinned_window((3, 3)), thinned_window((2, 2))], np.arange(1.0, 33.0))
    assert all((w.shares > 0).all() for w in windows)


def test_a_thinned_view_with_near_cells_only_leaves_the_dense_window_alone():
    thinned, dense = weigh_windows(
        [thinned_window((3, 3), side=2), window_with_hole(6)], np.arange(1.0, 9.0)
    )
    assert (thinned.shares == 0).all()
    assert dense.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("shape", "farthest", "thinned"),
    [
        ((300, 400), 28.0, False),  # a fifth of 141
        ((300, 400), 28.3, True),
        ((400, 600), 28.3, True),
        ((200, 200), 90.0, False),  # seen whole
        ((60, 1100), 90.0, False),  # a long axis
        ((20, 180, 360), 23.9, False),  # no cell is four strides of 6 from data
        ((20, 180, 360), 24.0, True),
    ],
)
def test_the_whole_is_seen_thinned_only_for_wide_holes_in_large_grids(shape, farthest, thinned):
    parts = masks._views(np.ones(shape, bool), farthest, 3)
    assert (parts[0][0].step is not None) == thinned
    assert all(s.step is None for part in parts[1:] for s in part)
    if thinned:
        sides = [len(range(*s.indices(size))) for s, size in zip(parts[0], shape, strict=True)]
        assert 20_000 < math.prod(sides) <= 40_000
        small = masks.window_sides(shape, 10_000)
        assert [s.stop - s.start for s in parts[1]] == small


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_a_short_axis_is_not_thinned_and_distances_stay_those_of_the_grid(order):
    """A hole through all of a short axis, whichever comes first."""
    missing = np.zeros((4, 200, 200), bool)
    missing[:, 40:160, 40:160] = True
    values, axes = grid(missing.shape, missing)
    turned = [axes[axis] for axis in order]
    windows = hide_cells(values.transpose(order), turned, np.random.default_rng(0), room=3)
    first = windows[0]
    strides = tuple((1, 2, 2)[axis] for axis in order)
    assert first.strides == strides
    assert first.values.shape == tuple((4, 100, 100)[axis] for axis in order)
    assert all(w.strides == (1, 1, 1) for w in windows[1:])
    data = np.argwhere(np.isfinite(first.seen)) * strides
    cells = np.argwhere(first.hidden) * strides
    for place in range(0, len(cells), 499):
        nearest = np.sqrt(((data - cells[place]) ** 2).sum(axis=1)).min()
        assert first.distances[place] == pytest.approx(nearest)
    assert sum(w.shares.sum() for w in windows) == pytest.approx(1.0)


def test_the_whole_is_hidden_in_as_it_is_if_asked():
    values, axes = grid((300, 300), np.random.default_rng(0).random((300, 300)) < 0.1)
    (window,) = hide_cells(values, axes, np.random.default_rng(0), whole=True)
    assert window.values.shape == (300, 300)


def test_with_errors_single_cells_are_hidden_besides_gaps_and_count_for_half():
    hole = (slice(10, 20), slice(12, 24))
    values, axes = grid((40, 50), hole)
    errors = np.full(values.shape, 0.5)
    (window,) = hide_cells(values, axes, np.random.default_rng(1), errors=errors)
    (plain,) = hide_cells(values, axes, np.random.default_rng(1))
    assert (window.hidden >= plain.hidden).all()
    more = window.hidden & ~plain.hidden
    assert np.count_nonzero(more) == pytest.approx(
        0.15 * np.count_nonzero(np.isfinite(values) & ~plain.hidden), rel=0.05
    )
    near = window.powers == 0
    far = distance_to_data(np.isfinite(values))[hole]
    assert window.shares[near].sum() == pytest.approx(0.5 + 0.5 * (far < 2).mean())
    np.testing.assert_array_equal(window.noise, 0.25)
    assert plain.noise is None
    assert plain.seen_noise is None


def test_with_errors_there_may_be_no_cell_to_fill():
    """As where all that is missing is land: only single cells are then hidden."""
    hole = (slice(10, 20), slice(12, 24))
    values, axes = grid((40, 50), hole)
    none = np.zeros(values.shape, bool)
    errors = np.full(values.shape, 0.5)
    (window,) = hide_cells(values, axes, np.random.default_rng(1), none, errors=errors)
    away = distance_to_data(np.isfinite(window.seen))
    assert away[window.hidden].max() < 3
    assert window.hidden.sum() == pytest.approx(0.15 * np.isfinite(values).sum(), rel=0.05)
    assert window.shares[window.powers == 0].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("cells", "times"), [(100, 4), (5000, 4), (5001, 3), (10_001, 1), (10**6, 1)]
)
def test_cells_of_small_grids_are_hidden_several_times(cells, times):
    assert masks.count_repeats(cells) == times


def test_views_are_returned_again_with_other_cells_hidden():
    values = np.random.default_rng(0).standard_normal((20, 30))
    values[5:8, 4:9] = np.nan
    axes = [np.arange(20.0), np.arange(30.0)]
    one, other = hide_cells(values, axes, np.random.default_rng(0), again=2)
    np.testing.assert_array_equal(one.values, other.values)
    assert (one.hidden != other.hidden).any()
    assert one.shares.sum() + other.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("side", "room", "views"), [(141, 1, 1), (142, 1, 3), (142, 3, 1)])
def test_room_says_how_large_the_views_are(side, room, views):
    values = np.zeros((side, side))
    values[3, 3] = np.nan
    axes = [np.arange(float(side))] * 2
    assert len(hide_cells(values, axes, np.random.default_rng(0), room=room)) == views


@pytest.mark.parametrize(("dimensions", "room"), [(1, 3), (2, 3), (3, 1), (4, 1)])
def test_maps_are_seen_in_larger_parts(dimensions, room):
    assert masks.view_room(dimensions) == room


def test_a_window_with_other_answers_has_the_same_distances(monkeypatch):
    window = window_with_hole(6)
    powers, residuals = window.powers, window.residuals
    monkeypatch.setattr(masks, "distance_to_data", lambda *_: pytest.fail("computed again"))
    other = window.with_answers(window.answers + 1.0)
    np.testing.assert_array_equal(other.powers, powers)
    np.testing.assert_array_equal(other.distances, window.distances)
    np.testing.assert_allclose(other.residuals, residuals + 1.0)


@pytest.mark.parametrize(("side", "share"), [(30, 200 / 900), (100, 0.03), (10, 0.15)])
def test_few_single_cells_are_hidden_where_they_are_left_out_alone(side, share):
    values = np.zeros((side, side))
    values[3, 4] = np.nan
    axes = [np.arange(float(side))] * 2
    (window,) = masks.hide_cells(values, axes, np.random.default_rng(0), alone=True)
    assert window.is_alone
    assert not window.hidden[3, 4]
    count = int(min(share, 0.15) * (values.size - 1))
    assert np.count_nonzero(window.hidden) == pytest.approx(count, abs=1)
