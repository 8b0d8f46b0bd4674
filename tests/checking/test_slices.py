import numpy as np
import pytest

from dkrls_cli.checking.choice import CheckAxis
from dkrls_cli.checking.slices import _width, find_duplicates, find_slices, row_quantile


@pytest.fixture(scope="module")
def maps():
    rng = np.random.default_rng(0)
    season = np.sin(np.arange(30) / 4)
    pattern = rng.normal(size=(6, 7))
    return 10 * season[:, None, None] + 3 * pattern + 0.3 * rng.normal(size=(30, 6, 7))


def run(values, along=0, floor=0.0):
    used = ~np.isnan(values)
    axes = [CheckAxis(np.arange(float(n))) for n in values.shape]
    return np.flatnonzero(find_slices(values, used, axes, along, floor)).tolist()


def test_a_slice_that_is_shifted_is_told(maps):
    values = maps.copy()
    values[11] += 12.0
    values[20] -= 15.0
    values[11, 2, 3] = np.nan
    assert run(values) == [11, 20]
    assert run(np.moveaxis(values, 0, 2), 2) == [11, 20]


def test_a_shift_or_width_that_rounding_makes_is_not_told(maps):
    shifted = maps.copy()
    shifted[11] += 12.0
    assert run(shifted, floor=2.5) == [11]
    assert run(shifted, floor=3.5) == []
    flat = np.zeros((3, 8))
    flat[1, :3] = 1.0
    assert _width(flat, 0.5).tolist() == [1.0, 1.0, 1.0]
    assert _width(flat, 0.0).tolist() == [1e-300, 1.0, 1e-300]


def test_a_slice_that_is_scaled_is_told(maps):
    values = maps - maps.mean(axis=0) + 3 * maps.mean(axis=0)
    middle = values[15].mean()
    values[15] = middle + 4 * (values[15] - middle)
    assert run(values) == [15]


def test_good_slices_few_slices_and_single_series_are_left_alone(maps):
    assert run(maps) == []
    assert run(maps[:7]) == []
    assert run(maps[:, :1, :5]) == []
    values = maps.copy()
    values[11, :3] = np.nan
    assert run(values) == []


def test_slices_that_repeat_an_earlier_one_are_told():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(12, 20))
    rows[3, 4] = np.nan
    rows[7] = rows[3]
    rows[9] = rows[8]
    assert np.flatnonzero(find_duplicates(rows)).tolist() == [7, 9]
    rows[9, 0] += 1e-9
    assert np.flatnonzero(find_duplicates(rows)).tolist() == [7]


def test_repeats_that_are_the_kind_of_data_are_not_told():
    rng = np.random.default_rng(2)
    year = rng.normal(size=(4, 20))
    assert not find_duplicates(np.tile(year, (3, 1))).any()
    assert not find_duplicates(np.ones((12, 20))).any()
    assert not find_duplicates(np.round(rng.normal(size=(12, 3)))).any()


def test_slices_that_nearly_repeat_others_do_so_by_chance():
    slices = np.random.default_rng(0).normal(size=(30, 20))
    slices[11] = slices[4]
    assert np.flatnonzero(find_duplicates(slices)).tolist() == [11]
    slices[20] = slices[4]
    slices[20, :2] += 1.0  # two cells of twenty
    assert not find_duplicates(slices).any()
    slices[20, 2] += 1.0
    assert np.flatnonzero(find_duplicates(slices)).tolist() == [11]
    slices[:, 5] = np.nan  # missing in both is no difference
    assert np.flatnonzero(find_duplicates(slices)).tolist() == [11]


def test_quantiles_of_rows_leave_missing_cells_out():
    rows = np.array([[3.0, np.nan, 1.0, 2.0], [5.0, 6.0, 7.0, 8.0]])
    assert row_quantile(rows, 0.5).tolist() == [2.0, 6.0]


def test_a_change_that_lasts_is_no_bad_slice(maps):
    values = maps.copy()
    values[15:] += 12.0
    assert run(values) == []


def test_two_bad_slices_in_a_row_are_told(maps):
    values = maps.copy()
    values[11:13] += 30.0
    assert run(values) == [11, 12]


def test_restless_slices_do_not_hide_those_off_by_more_than_the_data_varies():
    rng = np.random.default_rng(4)
    common = 0.02 * np.cumsum(rng.standard_t(2, size=400))
    values = common[:, None] + 0.02 * rng.normal(size=(400, 30))
    bad = [50, 170, 171, 300]
    values[bad] += 8.0 * values.std()
    assert run(values) == bad


def smooth_rows(seed, slices=30):
    """Return some waves with a little noise, a row for each of the slices."""
    rng, x = np.random.default_rng(seed), np.linspace(0, 1, 40)
    t = np.arange(slices)[:, None] / slices
    waves = (
        rng.normal() * np.sin(2 * np.pi * rng.uniform(0.2, 2) * t + rng.uniform(-6, 6) * x)
        for _ in range(4)
    )
    return sum(waves) + 1e-3 * rng.normal(size=(slices, 40))


def found_in(rows):
    axes = [CheckAxis(np.arange(float(size))) for size in rows.shape]
    return find_slices(rows, np.ones(rows.shape, bool), axes, 0)


def test_slices_at_the_ends_of_smooth_data_are_as_good_as_others():
    flagged = sum(int(found_in(smooth_rows(seed)).sum()) for seed in range(40))
    assert flagged < 12  # of 1200; 21 if ends are judged as all others


def test_a_slice_at_an_end_that_is_far_from_the_next_is_bad():
    found = []
    for seed in range(12):
        rows = smooth_rows(seed)
        rows[-1] += 6 * rows.std()
        found.append(found_in(rows)[29])
    assert np.mean(found) > 0.9
