"""Rows of scattered points, cut to windows, give the sums of whole rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.streaming import windows
from dkrls_cli.cascade.streaming.windows import PointRows, add_products, group_points


def bumps(centres, samples, width, circle):
    """Rows that are 0 outside a window around their centres."""
    away = np.abs(np.arange(samples) - np.asarray(centres)[:, None])
    away = np.minimum(away, samples - away) if circle else away
    return np.where(away <= width, np.exp(-away), 0.0)


@given(
    st.integers(1, 40),
    st.integers(0, 25),
    st.booleans(),
    st.lists(st.floats(0.0, 39.0), min_size=1, max_size=9),
)
def test_windows_hold_all_of_their_rows(samples, width, circle, centres):
    rows = bumps(np.minimum(centres, samples - 1).round(), samples, width, circle)
    found = PointRows.build(lambda part: rows[part], len(rows), samples, circle=circle)
    np.testing.assert_array_equal(found.matrix(slice(0, samples)), rows)
    assert found.width <= min(samples, 2 * width + 1)
    half = slice(samples // 2, samples)
    np.testing.assert_array_equal(found.matrix(half), rows[:, half])


def test_a_window_across_the_seam_of_a_circle_is_as_narrow_as_others():
    rows = bumps([0, 20, 39], 40, 3, True)
    assert PointRows.build(lambda part: rows[part], 3, 40, circle=True).width == 7
    assert PointRows.build(lambda part: rows[part], 3, 40, circle=False).width == 40


@pytest.mark.parametrize(("small", "width"), [(1e-13, 61), (1e-9, 43)])
def test_entries_that_are_small_beside_the_largest_are_left_out(small, width):
    rows = np.exp(-np.abs(np.arange(200) - 100.0))[None] * 7.0
    found = PointRows.build(lambda part: rows[part], 1, 200, small=small)
    kept = np.abs(np.arange(200) - 100.0) < -np.log(small)
    assert found.width == np.count_nonzero(kept)
    assert abs(found.width - width) <= 2


def test_rows_are_made_some_at_a_time(monkeypatch):
    rows = bumps([3, 9, 30, 12, 1], 40, 2, False)
    seen = []

    def make(part):
        seen.append(part)
        return rows[part]

    monkeypatch.setattr(windows, "_AT_ONCE", 80)
    found = PointRows.build(make, 5, 40)
    assert seen == [slice(0, 2), slice(2, 4), slice(4, 5)]
    np.testing.assert_array_equal(found.matrix(slice(0, 40)), rows)


def test_rows_of_zeros_have_a_window():
    found = PointRows.build(lambda part: np.zeros((1, 5)), 1, 5)
    np.testing.assert_array_equal(found.matrix(slice(0, 5)), np.zeros((1, 5)))


def test_groups_have_all_points_once_and_windows_below_two_widths():
    rng = np.random.default_rng(1)
    axes = [PointRows(rng.integers(0, 90, 200), np.ones((200, w)), 100) for w in (4, 10)]
    groups = group_points(axes)
    assert sorted(np.concatenate(groups)) == list(range(200))
    for rows in axes:
        first, last = rows.windows(groups).T
        assert (last - first < 2 * rows.width).all()
    assert len(groups) < 200


@pytest.mark.parametrize("between", [2**22, 30])
def test_products_over_boxes_add_up_to_those_with_all_of_the_data(monkeypatch, between):
    monkeypatch.setattr(windows, "_BETWEEN", between)
    rng = np.random.default_rng(2)
    data = rng.standard_normal((30, 24, 4))
    rows = [bumps(rng.integers(0, m, 25), m, 3, c) for m, c in ((30, False), (24, True))]
    axes = [
        PointRows.build(lambda part, r=r: r[part], 25, r.shape[1], circle=circle)
        for r, circle in zip(rows, (False, True), strict=True)
    ]
    expected = np.einsum("pa,pb,abc->pc", *rows, data)
    found = np.zeros((25, 4))
    for a in (slice(0, 7), slice(7, 30)):
        for b in (slice(0, 11), slice(11, 20), slice(20, 24)):
            for group in group_points(axes):
                add_products(found, group, axes, data[a, b], [a, b])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
