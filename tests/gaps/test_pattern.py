"""How missing cells lie: patterns, empty slices and lengths of gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkrls_cli.errors import InputError
from dkrls_cli.gaps.pattern import (
    SCATTERED,
    always_missing,
    distance_to_data,
    empty_slices,
    gap_lengths,
    gaussian_sum,
    local_mean,
    pattern,
    scattered,
    spread_to_missing,
)


def test_pattern_of_a_mask():
    observed = np.ones((20, 12, 30), bool)
    observed[:, :, [4, 17]] = False  # lost time steps
    observed[3:9, 2:8] = False  # land
    observed[12:16, 4:7, 20:25] = False  # a cloud
    found = pattern(observed, last=2)
    assert found.missing == pytest.approx(1 - observed.mean())
    assert found.lost == (0, 0, 2)
    assert found.fixed == pytest.approx(36 / 240)
    assert found.scattered == pytest.approx(4 * 3 * 5 / (240 * 28))
    assert found.shape == (4, 3, 5)
    assert [places.tolist() for places in empty_slices(observed)] == [[], [], [4, 17]]


def test_a_grid_without_observed_cells_has_no_pattern():
    with pytest.raises(InputError, match="All 12 values are missing"):
        pattern(np.zeros((3, 4), bool))


def test_the_last_level_may_be_any_axis():
    observed = np.ones((5, 6, 7), bool)
    observed[:, 2, 3] = False
    assert pattern(observed, last=0).fixed == pytest.approx(1 / 42)
    assert pattern(observed).fixed == 0.0
    assert pattern(observed, last=0).scattered == 0.0


def test_scattered_cells_have_an_observed_cell_on_every_line():
    observed = np.ones((6, 6), bool)
    observed[2, :] = False
    observed[:, 4] = False
    observed[0, 0] = False
    assert np.argwhere(scattered(observed)).tolist() == [[0, 0]]
    line = np.array([True, False, True])
    assert scattered(line).tolist() == [False, True, False]


@pytest.mark.parametrize(("gaps", "enough"), [(112, False), (113, True)])
def test_up_to_one_stray_cell_in_200_is_no_pattern(gaps, enough):
    observed = np.ones((20, 40, 30), bool)
    observed[4:10, 10:18] = False  # land: 22,560 cells are left
    apart = np.argwhere(observed[:4:2, ::2, ::2])[:gaps] * 2
    observed[tuple(apart.T)] = False
    assert (gaps > SCATTERED * np.count_nonzero(observed)) == enough
    assert (pattern(observed).shape == (1, 1, 1)) == enough


def test_exactly_one_in_200_is_no_pattern():
    observed = np.ones((7, 10, 15), bool)
    observed[2, 3:6] = False  # land
    observed[0, ::2, 4] = False  # five stray cells beside 1000
    assert np.count_nonzero(observed) == 1000
    assert pattern(observed).shape != (1, 1, 1)
    observed[6, 9, 9] = False
    assert pattern(observed).shape == (1, 1, 1)


def test_stray_cells_do_not_hide_the_mask():
    observed = np.ones((20, 40, 30), bool)
    observed[4:10, 10:18] = False  # land
    observed[0, 0, 0] = False
    assert pattern(observed).shape == (6, 8, 30)
    observed[0, 0, 0] = True
    observed[15, 25:37, 2:12] = False
    assert pattern(observed).shape == (1, 12, 10)


@pytest.mark.parametrize(("length", "side"), [(4, 4), (5, 5), (6, 10)])
def test_a_gap_over_more_than_half_an_axis_counts_as_the_whole_axis(length, side):
    observed = np.ones((10, 40), bool)
    observed[2 : 2 + length, 5:9] = False
    assert pattern(observed).shape == (side, 4)
    assert pattern(np.array([[True], [False]])).shape[1] == 1


def test_gaps_at_the_ends_are_counted_once():
    observed = np.ones((9, 30), bool)
    observed[0, :3] = observed[4, 27:] = observed[6, 10:13] = False
    assert pattern(observed).shape == (1, 3)


@given(st.lists(st.booleans(), min_size=2, max_size=12), st.integers(0, 99))
def test_a_gap_on_a_circle_is_as_long_wherever_the_circle_is_cut(missing, cut):
    size = len(missing)
    places = np.cumsum(np.random.default_rng(cut).uniform(0.5, 2.0, 3 * size))[-size:]
    places -= places[0]
    found = gap_lengths(np.array(missing), 0, places, 30.0)
    turned = np.roll(np.arange(size), cut)
    laid = places[turned] + np.where(turned < turned[0], 30.0, 0.0)
    np.testing.assert_allclose(gap_lengths(np.array(missing)[turned], 0, laid, 30.0), found[turned])
    line = gap_lengths(np.array(missing), 0, places)
    inner = np.cumsum(~np.array(missing)) * np.cumsum(~np.array(missing)[::-1])[::-1] > 0
    np.testing.assert_array_equal(found[inner], line[inner])
    assert np.all(found[~inner] > line[~inner]) or all(missing)


def test_empty_slices_of_every_axis():
    observed = np.ones((4, 5, 3), bool)
    observed[1] = observed[:, [0, 4]] = False
    assert [places.tolist() for places in empty_slices(observed)] == [[1], [0, 4], []]
    assert [p.tolist() for p in empty_slices(np.array([True, False]))] == [[1]]


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, 99))
def test_the_length_of_a_gap_is_the_distance_of_its_observed_ends(missing, seed):
    rng = np.random.default_rng(seed)
    missing = np.array(missing)
    places = np.cumsum(rng.uniform(0.5, 2.0, missing.size))
    expected = np.zeros(missing.size)
    for i in np.flatnonzero(missing):
        before, after = np.flatnonzero(~missing[:i]), np.flatnonzero(~missing[i:]) + i
        low = places[before[-1]] if before.size else places[0]
        high = places[after[0]] if after.size else places[-1]
        expected[i] = high - low if before.size or after.size else np.inf
    order = rng.permutation(missing.size)
    found = gap_lengths(missing[order], 0, places[order])
    np.testing.assert_allclose(found, expected[order])
    both = np.stack([missing, ~missing], axis=1)
    np.testing.assert_allclose(gap_lengths(both, 0, places)[:, 0], expected)
    np.testing.assert_allclose(gap_lengths(both.T, 1, places)[0], expected)


def test_cells_missing_all_along_an_axis():
    missing = np.zeros((3, 4, 5), bool)
    missing[:, 1, 2] = missing[0, 0] = True
    assert np.argwhere(always_missing(missing, 0)).tolist() == [[0, 1, 2]]
    assert always_missing(missing, 2).shape == (3, 4, 1)
    assert np.argwhere(always_missing(missing, 2)).tolist() == [[0, 0, 0]]


def test_one_coordinate_shows_no_lasting_mask_and_hides_no_gap():
    observed = np.ones((4, 50, 1), bool)
    observed[1, 10:13] = observed[3, 30:33] = False
    found = pattern(observed)
    assert found.fixed == 0.0
    assert found.scattered == 6 / 200
    assert found.shape == (1, 3, 1)


@given(hnp.arrays(bool, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6)), st.integers(1, 4))
def test_the_distance_to_data_is_that_to_the_nearest_observed_cell(observed, step):
    observed.flat[0] = True
    steps = [step, *[1] * (observed.ndim - 1)]
    data = np.argwhere(observed)
    found, stretched = distance_to_data(observed), distance_to_data(observed, steps)
    for place in np.ndindex(observed.shape):
        away = data - np.array(place)
        assert found[place] == pytest.approx(np.sqrt((away**2).sum(axis=1)).min())
        assert stretched[place] == pytest.approx(np.sqrt(((away * steps) ** 2).sum(axis=1)).min())


def test_missing_cells_have_the_value_of_the_nearest_observed_one():
    observed = np.array([True, False, False, True])
    found = spread_to_missing(np.array([1.0, 0.0, 0.0, 4.0]), observed)
    np.testing.assert_array_equal(found, [1, 1, 4, 4])


def test_means_are_those_of_observed_cells_in_a_box():
    cells, observed = np.arange(1.0, 26.0).reshape(5, 5), np.ones((5, 5), bool)
    observed[1, 1] = observed[4, 4] = False
    found = local_mean(np.where(observed, cells, 0.0), observed, 3)
    assert found[2, 2] == pytest.approx(np.delete(cells[1:4, 1:4].ravel(), 0).mean())
    assert found[0, 0] == pytest.approx((1 + 2 + 6) / 3)
    assert found[1, 1] == 0.0


def test_gaussian_sums_are_those_of_a_matrix_per_axis():
    cells = np.random.default_rng(0).random((30, 20, 3))
    widths = [2.0, 1.3, 0.0]
    expected = cells
    for axis, (size, width) in enumerate(zip(cells.shape, widths, strict=True)):
        steps = np.subtract.outer(np.arange(size), np.arange(size))
        reach = np.arange(-100, 101)
        weights = np.exp(-0.5 * (steps / width) ** 2) if width else np.eye(size)
        whole = np.exp(-0.5 * (reach / width) ** 2).sum() if width else 1.0
        expected = np.moveaxis(np.tensordot(weights / whole, expected, (1, axis)), 0, axis)
    np.testing.assert_allclose(gaussian_sum(cells, widths), expected, atol=1e-7)
