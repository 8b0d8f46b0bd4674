"""Fibres stand for a grid, and answers between slices are those of a dense system."""

import numpy as np
import pytest
from levels_left_out import X, answers

from dkrls_cli import fit
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.slices.fibres import (
    LEAST_SHARE,
    predict_midpoints,
    sample_fibres,
    see_through,
)

RNG = np.random.default_rng(11)


def test_a_sample_of_fibres_stands_for_a_large_grid():
    values = RNG.standard_normal((6, 7, 5))
    np.testing.assert_allclose(
        np.sort(sample_fibres(values, 1, 0.5).ravel()), np.sort(values.ravel() - 0.5)
    )
    many = RNG.standard_normal((100, 8, 90))
    some = sample_fibres(many, 1, 0.0)
    long = sample_fibres(np.zeros((40, 2**18)), 1, 0.0)
    assert 4 < long.shape[1] <= 8  # two million numbers
    assert sample_fibres(np.zeros((2, 2**22)), 1, 0.0).shape[1] == 1
    assert some.shape[0] == 8
    assert 1500 < some.shape[1] <= 2048
    assert some.std() == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("most", [70, 69, 20])
def test_fibres_are_all_taken_or_spread_evenly(most):
    values = np.arange(7 * 3 * 10.0).reshape(7, 3, 10)
    every = np.moveaxis(values, 1, 0).reshape(3, -1) - 1.0
    found = sample_fibres(values, 1, 1.0, most)
    places = [np.flatnonzero((every == fibre[:, None]).all(axis=0)).item() for fibre in found.T]
    if most == 70:
        assert places == list(range(70))
    else:
        assert len(places) == len(set(places)) <= most
        assert len(places) > 0.6 * most
        assert np.diff([-1, *places, 70]).max() <= 3.0 * 70 / most


def test_midpoints_are_predicted_along_one_axis():
    values = 3.0 + RNG.standard_normal((4, 14, 5))
    kernel = Kernel("matern52", 2.0, None, 1.0)
    found = predict_midpoints(values, 1, 3.0, X, kernel, 1e-2)
    middles = (X[1:] + X[:-1]) / 2
    for i in range(4):
        expected = answers(X, values[i] - 3.0, kernel, 1e-2, middles)
        np.testing.assert_allclose(found[i], expected, atol=1e-10)
    shuffled = RNG.permutation(14)
    np.testing.assert_allclose(
        predict_midpoints(values[:, shuffled], 1, 3.0, X[shuffled], kernel, 1e-2), found, atol=1e-10
    )
    many = np.arange(100.0)
    assert predict_midpoints(np.outer(many, [1, 2]), 0, 0.0, many, kernel, 1e-2).shape == (24, 2)


@pytest.mark.parametrize("common", [0.0, 0.9, 1.1, 5.0])
def test_data_that_cancels_half_way_between_slices_is_seen_as_it_is(common):
    """The part that all slices share is left half-way, that of alternating sign is not."""
    x, kernel = np.arange(6.0), Kernel("matern12", 9.0, None, 1.0)
    shared, alternating = RNG.standard_normal((2, 1, 300))
    alternating -= shared * (shared @ alternating.T) / (shared @ shared.T)
    alternating = (-1.0) ** x[:, None] * alternating
    half_way = [
        predict_midpoints(part + np.zeros((6, 1)), 0, 0.0, x, kernel, 1e-6)
        for part in (shared, alternating)
    ]
    left, cancelled = (np.mean(part**2) for part in half_way)
    energy, other = np.mean(shared**2), np.mean(alternating**2)
    share = common * LEAST_SHARE  # (f left + cancelled) / (f energy + other)
    factor = np.sqrt(max(0.0, share * other - cancelled) / (left - share * energy))
    values = 7.0 + factor * shared + alternating
    found = see_through(values, 0, 7.0, x, kernel, 1e-6)
    between = predict_midpoints(values, 0, 7.0, x, kernel, 1e-6)
    np.testing.assert_array_equal(found, between if common > 1 else values - 7.0)


def test_two_slices_are_seen_as_they_are():
    kernel = Kernel("matern32", 20.0, None, 1.0)
    for slices in (2, 3):
        x, values = np.arange(float(slices)), 3.0 + np.ones((slices, 4), np.float32)
        found = see_through(values, 0, 3.0, x, kernel, 1e-6)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, np.ones((2, 4)), rtol=1e-3)
        assert (found == 1.0).all() == (slices == 2)


def test_midpoints_along_a_long_axis_are_those_of_a_dense_system():
    x = np.sort(RNG.uniform(0, 500, 1100))
    values, kernel = 3.0 + RNG.standard_normal((2, 1100)), Kernel("matern32", 4.0, None, 1.0)
    places = np.linspace(0, 1098, 24).astype(int)
    expected = answers(x, values.T - 3.0, kernel, 0.1, (x[places] + x[places + 1]) / 2)
    found = predict_midpoints(values, 1, 3.0, x, kernel, 0.1)
    np.testing.assert_allclose(found, expected.T, atol=1e-9)
    turned = predict_midpoints(values[:, ::-1], 1, 3.0, x[::-1].copy(), kernel, 0.1)
    np.testing.assert_allclose(turned, found, atol=1e-9)


@pytest.mark.parametrize("size", [25, 26, 200])
def test_at_most_24_midpoints_are_spread_evenly(size):
    x = np.arange(float(size))
    found = predict_midpoints(np.outer(x, [1.0]), 0, 0.0, x, Kernel("matern52", 3.0), 1e-9)[:, 0]
    assert found.size == 24
    assert found[[0, -1]] == pytest.approx([0.5, size - 1.5], rel=0.1)
    steps = np.diff(found)[1:-1]  # beyond the ends there is no data to go by
    assert steps.max() < steps.min() + 1.5


def test_the_second_level_is_chosen_on_what_the_first_answers_between():
    rng = np.random.default_rng(8)
    y = np.arange(20.0)
    values = np.sin(np.add.outer(X, y / 3)) + 0.3 * rng.standard_normal((14, 20))
    told = {}
    model = fit(values, {"x": X, "y": y}, watch=told.__setitem__)
    first = told["x"].taken
    assert first == choose_level(X, values - values.mean()).taken
    seen = predict_midpoints(values, 0, values.mean(), X, first.kernel, first.ridge)
    assert told["y"].taken == choose_level(y, seen.T).taken
    assert [level.kernel for level in model.levels] == [told[d].taken.kernel for d in "xy"]
