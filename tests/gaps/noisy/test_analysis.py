"""The analysis of observations with errors, against one dense system."""

from functools import reduce

import numpy as np
import pytest
from gap_grids import model_of

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.noisy.analysis import (
    Observations,
    analyse,
    detail_share,
    estimate_scale,
    good_precision,
    local_precision,
    measure_spread,
    poorness,
    quantity_variance,
    solve_noisy,
    split_noise,
)

SHAPE, MEAN = (6, 7), 0.3
AXES = [np.arange(float(m)) for m in SHAPE]
KERNELS = [Kernel("matern32", 2.0), Kernel("gaussian", 1.5)]
EXACTLY = {"tolerance": 1e-12, "limit": 500}


def case(ridge, gaps=True, seed=0):
    """Return observations with errors that differ a hundredfold, one of them 0, and their n."""
    rng = np.random.default_rng(seed)
    noise = 10 ** rng.uniform(-3, 1, SHAPE)
    noise[0, 0] = 0.0
    values = rng.standard_normal(SHAPE)
    if gaps:
        values[2:4, 2:5] = np.nan
    return values, noise


def dense(values, noise, ridge):
    """Return alpha, f and the inverse of K + lambda + n on observed cells, 0 elsewhere."""
    whole = reduce(np.kron, [gram(k, c, c) for k, c in zip(KERNELS, AXES, strict=True)])
    seen = np.isfinite(values).ravel()
    inverse = np.zeros(whole.shape)
    system = (whole + np.diag(ridge + noise.ravel()))[np.ix_(seen, seen)]
    inverse[np.ix_(seen, seen)] = np.linalg.inv(system)
    alpha = inverse @ np.where(seen, values.ravel() - MEAN, 0.0)
    return alpha, whole @ alpha, inverse, whole


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("ridge", [0.05, 1e-6])
def test_the_analysis_is_the_data_less_what_errors_explain(ridge, gaps):
    values, noise = case(ridge, gaps)
    alpha, field, _, _ = dense(values, noise, ridge)
    done = analyse(make_field(AXES, KERNELS), values, ridge, noise, MEAN, **EXACTLY)
    expected = np.where(
        np.isnan(values).ravel(), MEAN + field, values.ravel() - noise.ravel() * alpha
    )
    assert done.converged
    np.testing.assert_allclose(done.values.ravel(), expected, atol=1e-9)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_an_ordinary_cascade_of_the_analysis_answers_between_the_coordinates(gaps):
    ridge, queries = 0.05, [np.array([0.5, 1.5, 2.7]), np.array([0.3, 3.3])]
    values, noise = case(ridge, gaps)
    alpha, field, _, _ = dense(values, noise, ridge)
    done = analyse(make_field(AXES, KERNELS), values, ridge, noise, MEAN, **EXACTLY)
    cascade = model_of(done, AXES, KERNELS, ridge, MEAN)
    cross = reduce(np.kron, [gram(k, q, c) for k, q, c in zip(KERNELS, queries, AXES, strict=True)])
    np.testing.assert_allclose(cascade.predict(queries).ravel(), MEAN + cross @ alpha, atol=1e-9)
    np.testing.assert_allclose(cascade.predict(smooth=True).ravel(), MEAN + field, atol=1e-9)
    np.testing.assert_allclose(cascade.predict(), done.values, atol=1e-12)


def test_a_constant_error_is_a_larger_ridge():
    values, _ = case(0.05, gaps=False)
    noise, queries = np.full(SHAPE, 0.2), [np.array([0.5, 2.5]), np.array([1.3])]
    done = analyse(make_field(AXES, KERNELS), values, 0.05, noise, MEAN, **EXACTLY)
    ours = model_of(done, AXES, KERNELS, 0.05, MEAN)
    theirs = model_of(Observations(values, noise), AXES, KERNELS, 0.25, MEAN)
    np.testing.assert_allclose(ours.predict(queries), theirs.predict(queries), atol=1e-9)


def test_without_errors_the_analysis_is_the_data():
    values, noise = case(0.05, gaps=False)
    done = analyse(make_field(AXES, KERNELS), values, 0.05, 0 * noise, MEAN, **EXACTLY)
    np.testing.assert_allclose(done.values, values, atol=1e-12)


def test_variances_of_the_quantity_follow_from_those_of_the_field():
    ridge = 0.05
    values, noise = case(ridge)
    _, _, inverse, whole = dense(values, noise, ridge)
    field = np.diag(whole - whole @ inverse @ whole).reshape(SHAPE)
    n, observed = noise.ravel(), np.isfinite(values)
    own = np.where(observed, (n - n**2 * np.diag(inverse)).reshape(SHAPE), field + ridge)
    np.testing.assert_allclose(quantity_variance(field, observed, ridge, noise), own, atol=1e-12)
    assert (own[observed] <= noise[observed] + 1e-12).all()


def test_detail_is_all_of_the_difference_where_there_is_no_noise_at_all():
    np.testing.assert_array_equal(detail_share(0.0, np.array([0.0, 1.0])), [1.0, 0.0])
    np.testing.assert_allclose(detail_share(0.5, np.array([0.0, 1.5])), [1.0, 0.25])


def test_noise_is_split_into_the_least_of_all_and_the_rest():
    field = make_field(AXES, KERNELS)
    observed = np.ones(SHAPE, bool)
    observed[0] = False
    noise = np.full(SHAPE, 0.2)
    noise[1, 1], noise[0] = 0.1, 0.0
    least, rest = split_noise(field, observed, 0.05, noise)
    assert least == pytest.approx(0.15)
    assert (rest[0] == 0).all()
    assert rest[1, 1] == pytest.approx(0.0)
    assert rest[2, 2] == pytest.approx(0.1)
    assert split_noise(field, observed, 0.0, 0 * noise)[0] > 0


@pytest.mark.parametrize("grouping", [Grouping(), Grouping(((0, 1),))], ids=["product", "group"])
def test_a_poor_half_is_solved_for_as_exactly_as_a_good_one(grouping):
    """Without a coarse space a solve seems to end while the poor half is off by its spread."""
    axes, rng = [np.arange(40.0), np.arange(50.0)], np.random.default_rng(1)
    field = make_field(axes, [Kernel("matern32", 6.0)] * 2, grouping)
    noise = np.full((40, 50), 1e-3)
    noise[:, :25] = 1e3
    values = field.draw(rng) + np.sqrt(noise) * rng.standard_normal(noise.shape)
    loose = solve_noisy(field, values, 1e-4, noise, 0.0, tolerance=1e-6, limit=500)
    tight = solve_noisy(field, values, 1e-4, noise, 0.0, tolerance=1e-11, limit=2000)
    assert loose.converged
    assert loose.iterations < 200
    assert np.abs(loose.values - tight.values).max() < 1e-3


def test_one_wild_observation_with_a_huge_error_does_not_loosen_the_solve():
    values, noise = case(0.05, gaps=False)
    field = make_field(AXES, KERNELS)
    wild, poor = values.copy(), noise.copy()
    wild[5, 5], poor[5, 5] = 1e9, 1e20
    without = np.where(poor > 1e19, np.nan, values)
    found = analyse(field, wild, 0.05, poor, 0.0, tolerance=1e-6, limit=500).values
    expected = analyse(field, without, 0.05, noise, 0.0, **EXACTLY).values
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("amplitude", [0.2, 30.0])
@pytest.mark.parametrize("kind", ["random", "half"])
def test_the_amplitude_of_the_quantity_is_found_among_errors(amplitude, kind):
    rng = np.random.default_rng(3)
    axes = [np.arange(80.0), np.arange(90.0)]
    field = make_field(axes, [Kernel("matern32", 4.0)] * 2)
    errors = np.full((80, 90), 0.05 * amplitude)
    where = rng.random(errors.shape) < 0.5 if kind == "random" else np.arange(90) < 45
    errors[np.broadcast_to(where, errors.shape)] = 1.5 * amplitude
    values = 7.0 + amplitude * field.draw(rng) + errors * rng.standard_normal(errors.shape)
    values[rng.random(errors.shape) < 0.2] = np.nan
    spread = measure_spread(values, errors)
    assert np.sqrt(estimate_scale([(field, spread)], 0.0)) == pytest.approx(amplitude, rel=0.2)
    assert spread.mean == pytest.approx(7.0, abs=0.5 * amplitude)
    assert spread.weights.sum() == pytest.approx(1.0)
    assert (spread.weights[np.isnan(values)] == 0).all()


def test_the_expected_spread_is_that_about_the_mean_of_the_cells():
    values, noise = case(0.05)
    _, _, _, whole = dense(values, noise, 0.05)
    spread = measure_spread(values, np.sqrt(noise))
    weights = spread.weights.ravel()
    prior = whole + 0.05 * np.eye(weights.size)
    expected = weights @ np.diag(prior) - weights @ prior @ weights
    found = spread.expected(make_field(AXES, KERNELS), 0.05)
    assert found == pytest.approx(expected, rel=1e-9)


def test_errors_that_explain_all_leave_a_little():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(500)
    spread = measure_spread(values, np.full(500, 5.0))
    assert spread.signal == pytest.approx(0.01 * spread.variance)
    field = make_field([np.arange(500.0)], [Kernel("matern32", 3.0)])
    assert estimate_scale([(field, spread)], 0.1) > 0


def test_data_without_spread_has_some_scale():
    field = make_field([np.arange(9.0)], [Kernel("matern32", 3.0)])
    assert estimate_scale([(field, measure_spread(np.ones(9), np.zeros(9)))], 0.1) == 1.0


def test_observations_are_taken_and_appended_along_an_axis():
    one = Observations(np.array([[1.0, np.nan], [3.0, 4.0]]), np.array([[0.1, 0.0], [0.3, 0.4]]))
    more = one.append(np.array([[5.0], [np.nan]]), np.array([[0.5], [0.6]]), 1)
    np.testing.assert_array_equal(more.errors, [[0.1, 0.0, 0.5], [0.3, 0.4, 0.0]])
    np.testing.assert_array_equal(more.take(np.array([2, 0]), 1).values, [[5, 1], [np.nan, 3]])
    np.testing.assert_array_equal(one.observed, [[True, False], [True, True]])
    assert one.reshape((4,)).errors.shape == (4,)


def test_data_is_as_poor_as_the_errors_around_it():
    observed, errors = np.ones((20, 30), bool), np.full((20, 30), 0.1)
    errors[:, :15] = 3.0
    found = poorness(observed, errors, 1e-6)
    np.testing.assert_allclose(found[:, :12], 30.0, rtol=1e-3)
    np.testing.assert_allclose(found[:, 18:], 1.0)
    mixed = np.where(np.arange(30) % 2, 0.1, 3.0) * np.ones((20, 1))
    assert poorness(observed, mixed, 1e-6).max() < 1.5
    local = local_precision(observed, errors, 1e-6)
    assert good_precision(local, observed) == pytest.approx(100.0, rel=1e-3)
    assert poorness(observed, errors, 1e-6, good=1e4).min() == pytest.approx(10.0, rel=1e-3)
    assert poorness(observed, errors, 1e9).max() == pytest.approx(1.0, abs=1e-4)
