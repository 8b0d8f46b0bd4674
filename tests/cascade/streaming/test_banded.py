"""Windows of rows: what they leave out is negligible, and none is wider than it must be."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.streaming import banded as module
from dkrls_cli.cascade.streaming.banded import Banded, Constant
from dkrls_cli.cascade.streaming.products import Both


@given(
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-6, 0.2]),
)
def test_what_is_left_out_is_negligible(samples, seed, negligible):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((5, samples)) * 10.0 ** rng.integers(-9, 1, (5, samples))
    rows[rng.random(rows.shape) < 0.3] = 0.0
    found = Banded.build(lambda part: rows[part], 5, None, negligible)
    inside = samples_of(found.windows[0], samples)
    assert 0 < inside.size <= samples
    outside = np.setdiff1d(np.arange(samples), inside)
    lengths = np.sqrt((rows**2).sum(axis=1))
    assert (np.sqrt((rows[:, outside] ** 2).sum(axis=1)) <= negligible * lengths + 1e-300).all()
    np.testing.assert_array_equal(found.groups[0].double, rows[:, inside])


def samples_of(window, samples) -> np.ndarray:
    return np.concatenate([np.arange(samples)[part] for part in window])


def test_a_window_in_two_parts_is_at_most_half_as_wide():
    rows = np.full((1, 9), 1.0)
    rows[0, [4, 5]] = 0.0
    found = Banded.build(lambda part: rows[part], 1, None, 1e-13)
    assert found.windows == ((slice(0, 9),),)


def test_ends_of_the_axis_are_left_out_although_rows_are_smallest_between():
    rows = np.array([[0.0, 0.0, 1.0, 1e-300, 1.0, 0.0, 1e-290]])
    found = Banded.build(lambda part: rows[part], 1, None, 1e-13)
    assert found.windows == ((slice(2, 5),),)


def bands(places, samples, *, width=12.0, circle=False) -> np.ndarray:
    """Return rows that fall off around some places."""
    away = np.abs(np.asarray(places)[:, None] - np.arange(samples))
    away = np.minimum(away, samples - away) if circle else away
    return np.where(away < width, np.cos(away) + 2.0, 0.0)


EVEN = np.arange(0.3, 400.0, 2.0)


@pytest.mark.parametrize("circle", [False, True])
@pytest.mark.parametrize("step", [2.0, 1.97, 0.5])
def test_groups_of_an_even_grid_are_applied_together(step, circle):
    rows = bands(np.arange(0.3, 400.0, step), 400, circle=circle)
    found = Banded.build(lambda part: rows[part], len(rows))
    together = [place for run in found.runs for place in run.groups]
    assert len(set(together)) == len(together) > 0.6 * len(found.groups)
    for run in found.runs:
        own = [found.windows[place][0] for place in run.groups]
        assert all(run.window.start <= each.start and each.stop <= run.window.stop for each in own)
        narrowest = min(each.stop - each.start for each in own)
        assert narrowest <= run.rows.double.shape[2] <= 1.05 * narrowest


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("part", [slice(None), slice(5, 150), slice(16, 33), slice(70, 200)])
@pytest.mark.parametrize("places", [EVEN, 400.0 * (EVEN / 400.0) ** 1.3], ids=["even", "uneven"])
def test_runs_answer_as_their_groups_do(places, part, axis):
    rows = bands(places, 400)
    shape = [3, 2, 5]
    shape[axis] = 400
    data = np.random.default_rng(1).standard_normal(shape)
    found = Banded.build(lambda part: rows[part], len(rows))
    answers = found.apply(data, axis, part)
    truth = np.moveaxis(np.tensordot(rows[part], data, (1, axis)), 0, axis)
    np.testing.assert_allclose(answers, truth, rtol=0, atol=1e-11)
    apart = replace(found, runs=()).apply(data, axis, part)
    np.testing.assert_allclose(answers, apart, rtol=0, atol=1e-12)


@given(st.floats(0.0, 20.0), st.floats(1.9, 2.1), st.integers(60, 140))
def test_runs_keep_within_the_samples_and_full_groups(first, step, size):
    rows = bands(first + step * np.arange(size), 300)
    found = Banded.build(lambda part: rows[part], size)
    data = np.random.default_rng(1).standard_normal((2, 300, 3))
    answers = found.apply(data, 1, slice(None))
    np.testing.assert_allclose(answers, rows @ data, rtol=0, atol=1e-11)
    assert all(run.start >= 0 and run.window.stop <= 300 for run in found.runs)
    assert all(run.last <= size for run in found.runs)


def test_few_groups_and_equal_windows_are_applied_one_by_one():
    few, enough = bands(20.0 + EVEN[:48], 400), bands(20.0 + EVEN[:64], 400)
    assert not Banded.build(lambda part: few[part], 48).runs
    assert len(Banded.build(lambda part: enough[part], 64).runs) == 1
    same = np.ones((300, 400))
    assert not Banded.build(lambda part: same[part], 300).runs


@pytest.mark.parametrize(
    ("starts", "rows", "found"),
    [([5, 14, 25, 35], 16, 4), ([0, 9, 20, 30], 16, 0), ([5, 15, 25, 35, 45], 15, 4)],
)
def test_runs_begin_on_the_axis_and_have_full_groups(starts, rows, found):
    windows = tuple((slice(start, start + 20),) for start in starts)
    sizes = [16] * (len(starts) - 1) + [rows]
    groups = tuple(Both.of(np.ones((size, 20))) for size in sizes)
    runs = list(Banded(100, windows, groups, 16)._find_runs())
    assert sum(len(run.groups) for run in runs) == found


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("added", [1, 40, 2**16])
def test_the_share_of_a_constant_is_added_part_by_part(added, axis, monkeypatch):
    monkeypatch.setattr(module, "_ADDED", added)
    rng, shape = np.random.default_rng(2), [3, 4, 5]
    shape[axis] = 30
    rows, data = rng.standard_normal((20, 30)), rng.standard_normal(shape)
    constant = Constant(0.5, rng.random(30))
    found = Banded.build(lambda part: rows[part], 20, constant, 0.0)
    truth = np.moveaxis(np.tensordot(rows[3:17], data, (1, axis)), 0, axis)
    np.testing.assert_allclose(found.apply(data, axis, slice(3, 17)), truth, rtol=0, atol=1e-11)
