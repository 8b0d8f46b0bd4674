"""The coarse space of a solve, against dense systems."""

from functools import reduce
from itertools import permutations

import numpy as np
import pytest
from gap_grids import case
from hypothesis import given, settings
from hypothesis import strategies as st
from sphere_grids import SPHERE, kernels_of

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps import coarse as module
from dkrls_cli.gaps.coarse import (
    CoarseMaker,
    coarse_size,
    decompose_in_place,
    largest_places,
    masked_gram,
)
from dkrls_cli.gaps.field import Field, Grouping, make_field
from dkrls_cli.gaps.pattern import distance_to_data

PAIR = Grouping(((0, 1),))


def weights_of(shape, seed=0):
    """Return weights of cells: none in a third of them, and between 0 and 1 in the others."""
    rng = np.random.default_rng(seed)
    return rng.random(shape) * (rng.random(shape) > 0.3)


def field_of(shape, family="matern32", grouping=PAIR):
    return make_field(
        [np.arange(float(m)) for m in shape], [Kernel(family, 3.0)] * len(shape), grouping
    )


def dense_system(field, weights, ridge):
    v = reduce(np.kron, field.bases)
    return (v.T * weights.ravel()) @ v + np.diag(ridge / field.variances.ravel())


@pytest.mark.parametrize("at_once", [1, 40, 2**21])
@pytest.mark.parametrize("shape", [(9,), (7, 5), (3, 8), (4, 3, 5), (2, 3, 4, 3), (1, 6)])
def test_the_masked_gram_is_that_of_dense_columns(shape, at_once, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    rng = np.random.default_rng(1)
    bases = [rng.standard_normal((m, m + 2)) for m in shape]
    ranks = [basis.shape[1] for basis in bases]
    weights = weights_of(shape)
    flat = np.sort(rng.permutation(np.prod(ranks))[:12])
    v = reduce(np.kron, bases)[:, flat]
    found = masked_gram(weights, bases, np.unravel_index(flat, ranks))
    np.testing.assert_allclose(found, (v.T * weights.ravel()) @ v, atol=1e-10)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 0.02])
@pytest.mark.parametrize("grouping", [Grouping(), PAIR], ids=["product", "group"])
def test_on_all_directions_the_solution_is_that_of_the_dense_system(grouping, ridge):
    field = field_of((6, 7), grouping=grouping)
    weights = weights_of((6, 7))
    near = CoarseMaker(weights, field.variances.size).make(field, ridge)
    exact = 1e-7 if near.factor.dtype == np.float64 else 1e-5
    assert near.places[0].size == field.variances.size
    left = np.random.default_rng(2).standard_normal(field.variances.shape)
    result = np.zeros(left.shape)
    near.add_solution(left, result)
    expected = np.linalg.solve(dense_system(field, weights, ridge), left.ravel())
    np.testing.assert_allclose(result.ravel(), expected, atol=exact * np.abs(expected).max())


def test_directions_of_no_use_beside_the_ridge_are_left_out():
    field = field_of((6, 7))
    near = CoarseMaker(weights_of((6, 7)), 999).make(field, 20.0)
    count = np.count_nonzero(field.variances > 0.2)
    assert near.places[0].size == count
    assert 1 < count < field.variances.size


@pytest.mark.parametrize("most", [1, 5, 20])
def test_the_largest_directions_are_solved_for_and_others_left_alone(most):
    field, weights, ridge = field_of((6, 7)), weights_of((6, 7)), 0.1
    near = CoarseMaker(weights, most).make(field, ridge)
    flat = np.ravel_multi_index(near.places, field.variances.shape)
    order = np.sort(field.variances.ravel())[::-1]
    np.testing.assert_allclose(np.sort(field.variances.ravel()[flat])[::-1], order[:most])
    left = np.random.default_rng(2).standard_normal(field.variances.shape)
    result = np.full(left.shape, 7.0)
    near.add_solution(left, result)
    system = dense_system(field, weights, ridge)[np.ix_(flat, flat)]
    expected = np.linalg.solve(system, left.ravel()[flat])
    np.testing.assert_allclose(result.ravel()[flat] - 7.0, expected, rtol=1e-8)  # it is added
    assert (np.delete(result.ravel(), flat) == 7.0).all()


def test_a_ridge_of_nothing_still_has_a_factor():
    field = field_of((6, 7), "gaussian", Grouping())
    weights = np.zeros((6, 7))
    weights[0, 0] = 1.0
    near = CoarseMaker(weights, 42).make(field, 0.0)
    result = np.zeros(field.variances.shape)
    near.add_solution(np.ones(field.variances.shape), result)
    assert np.isfinite(result).all()


@given(st.integers(1, 50), st.floats(0, 10), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_largest_places_are_above_the_least_but_one_there_is(most, least, seed):
    variances = np.random.default_rng(seed).exponential(3.0, (4, 5, 2))
    places = largest_places(variances, most, least)
    taken, ordered = variances[places], np.sort(variances.ravel())[::-1]
    count = min(most, max(1, np.count_nonzero(variances > least)))
    assert taken.size == count
    np.testing.assert_array_equal(np.sort(taken)[::-1], ordered[:count])


def test_the_gram_is_made_again_only_for_other_bases_or_places(monkeypatch):
    made, real = [], module.masked_gram
    monkeypatch.setattr(module, "masked_gram", lambda *args: made.append(1) or real(*args))
    weights = weights_of((8, 9))
    maker, field = CoarseMaker(weights, 10), field_of((8, 9))
    one = maker.make(field, 0.1)
    again = maker.make(field, 0.1)
    assert len(made) == 1
    np.testing.assert_array_equal(one.factor, again.factor)
    scaled = Field(field.bases, 5.0 * field.variances, field.grouped)  # another kernel, same waves
    found = maker.make(scaled, 0.2)
    assert len(made) == 1
    fresh = CoarseMaker(weights, 10).make(scaled, 0.2)
    np.testing.assert_allclose(np.tril(found.factor), np.tril(fresh.factor))
    assert len(made) == 2
    copied = Field(tuple(b.copy() for b in field.bases), field.variances, field.grouped)
    maker.make(copied, 0.1)
    assert len(made) == 3
    turned = Field(copied.bases, copied.variances[::-1, ::-1], field.grouped)  # other places
    other = maker.make(turned, 0.1)
    assert len(made) == 4
    fresh = CoarseMaker(weights, 10).make(turned, 0.1)
    np.testing.assert_allclose(np.tril(other.factor), np.tril(fresh.factor))


@pytest.mark.parametrize("family", ["matern12", "matern32", "gaussian"])
def test_the_size_is_one_of_some_and_falls_with_the_ridge(family):
    field = field_of((64, 60), family)
    sizes = [coarse_size(field, 0.7, 10.0**exponent) for exponent in range(-3, 4)]
    assert set(sizes) <= set(module._SIZES)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == module._SIZES[0]
    if family == "matern12":
        assert sizes[0] > sizes[-1]


def test_a_ridge_that_takes_the_most_iterations_anyway_is_no_reason_for_a_large_space():
    field = field_of((64, 60), "matern12")
    flat = np.sort(field.variances.ravel())[::-1]
    ridges = [0.7 * flat[size] * (3.0 / module._MOST_STEPS) ** 2 for size in (300, 2200)]
    assert coarse_size(field, 0.7, 2.0 * ridges[0]) > 200  # 300 directions save iterations
    assert coarse_size(field, 0.7, 0.9 * ridges[1]) == 200


def test_a_smooth_field_that_many_directions_tell_has_them():
    """200 directions leave 3200 iterations by the rule, 3000 directions 180."""
    kernels = [Kernel("gaussian", 3.2), Kernel("gaussian", 2.0), Kernel("gaussian", 2.0)]
    field = make_field([np.arange(float(m)) for m in (48, 25, 36)], kernels)
    ordered = np.sort(field.variances.ravel())[::-1]
    ridge = 0.75 * ordered[3000] * (3.0 / 180.0) ** 2
    assert 3.0 * np.sqrt(0.75 * ordered[200] / ridge) > 2000.0
    assert coarse_size(field, 0.75, ridge) == 3000


def test_near_round_off_directions_save_no_iterations():
    """By the rule 200 directions leave far too many, and 300 leave 2500."""
    variances = np.full((64, 60), 1e-7)
    variances.flat[:250] = 1.0
    field = Field((np.eye(64), np.eye(60)), variances)
    assert [coarse_size(field, 0.7, ridge) for ridge in (0.99e-13, 1.01e-13)] == [200, 300]


def test_a_small_grid_is_solved_for_in_all_directions():
    field = field_of((6, 7))
    assert coarse_size(field, 0.7, 0.1) == min(200, field.variances.size)


def test_a_ridge_of_round_off_is_no_reason_for_a_large_space():
    """Of a smooth kernel: more directions than fit leave as large a ratio."""
    axes = [np.linspace(0, 6, m) for m in (60, 60, 40)]
    field = make_field(axes, [Kernel("gaussian", 0.3)] * 3).useful(1e-12)
    assert coarse_size(field, 0.9, 1e-12) == module._SIZES[0]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("ridge", [1e-5, 0.001, 0.003, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("is_trial", [False, True])
def test_the_size_is_what_is_worth_its_time(share, ridge, is_trial):
    """The costs are those of making the space, and of the iterations that are left.

    Of a trial the size is the cheapest. Otherwise there are two solves, and it is that of the
    fewest iterations that costs at most a quarter more.
    """
    field = field_of((50, 80), "matern12")
    flat = np.sort(field.variances.ravel())[::-1]
    cells, ranks = 4000, sum(field.variances.shape)
    costs, counts = {}, {}
    for size in module._SIZES:
        counts[size] = steps = min(
            500 if is_trial else module._MOST_STEPS, 3 * np.sqrt(1 + share * flat[size] / ridge)
        )
        each = 2 * 4 * cells * ranks + 20 * size**2  # two products, and reading the factor
        solves = 1 if is_trial else 2
        costs[size] = size**2 * cells / 80 + size**3 / 3 + solves * steps * each
    slack = 1.0 if is_trial else 1.25
    cheap = [size for size, cost in costs.items() if cost <= slack * min(costs.values())]
    fewest = min(counts[size] for size in cheap)
    expected = min(size for size in cheap if counts[size] == fewest)
    assert coarse_size(field, share, ridge, is_trial=is_trial) == expected


def test_without_a_limit_the_size_is_chosen():
    values, *_ = case((40, 45))
    observed = np.isfinite(values)
    field = field_of((40, 45), "matern12")
    near = CoarseMaker(observed * 1.0).make(field, 0.05)
    assert near.places[0].size == coarse_size(field, float(observed.mean()), 0.05)


# --- the sphere ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-6, 0.02])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_on_all_directions_of_a_sphere_the_solution_is_that_of_the_dense_system(place, ridge):
    """Wherever the other axis is."""
    axes, kernels = [np.arange(-60.0, 70, 40), np.arange(0.0, 360, 60)], kernels_of("matern32", 50)
    axes.insert(place, np.arange(3.0))
    kernels.insert(place, Kernel("matern12", 2.0))
    group = tuple(axis for axis in range(3) if axis != place)
    field = make_field(axes, kernels, Grouping((group,), sphere=True))
    weights = weights_of(field.shape)
    near = CoarseMaker(weights, field.variances.size).make(field, ridge)
    left = np.random.default_rng(2).standard_normal(field.variances.shape)
    result = np.zeros(left.shape)
    near.add_solution(left, result)
    back = field.analysis(field.fold(weights) * field.synthesis(result))
    back += ridge / field.variances * result
    exact = 1e-6 if near.factor.dtype == np.float64 else 1e-3
    np.testing.assert_allclose(back, left, atol=exact * np.abs(left).max())


@pytest.mark.parametrize("axes", list(permutations(range(3))))
def test_the_axes_to_sum_over_first_are_those_with_the_fewest_pairs(axes):
    """Of time, latitude and longitude the first two, however the axes are ordered."""
    shape, reach = (12, 90, 180), {12: 2.0, 60: 15.0, 90: 30.0}
    variances = reduce(np.multiply.outer, [np.exp(-np.arange(m) / r) for m, r in reach.items()])
    places = largest_places(variances, 500, 0.0)
    first = module._cheapest_first([shape[a] for a in axes], [places[a] for a in axes])
    assert [axes[place] for place in first] == [0, 1]


def test_of_two_axes_alike_in_directions_the_long_one_is_summed_over_first():
    alike = [np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20)]
    assert module._cheapest_first((30, 300), alike) == (1, 0)
    assert module._cheapest_first((300, 30), alike) == (0, 1)


def test_the_size_of_a_coarse_space_follows_from_the_operations_of_the_field():
    """Of a sphere, the number of directions is no measure of the cost of a product."""
    axes = [np.arange(-88.0, 90, 4), np.arange(0.0, 360, 4)]
    sphere = make_field(axes, kernels_of("matern12", 40.0), SPHERE)
    plane = make_field(axes, kernels_of("matern12", 40.0), PAIR)
    sizes = [coarse_size(field, 0.7, 0.01) for field in (sphere, plane)]
    assert sizes[0] <= 1.5 * sizes[1]


def test_distances_to_data_are_computed_once(monkeypatch):
    weights = weights_of((6, 7))
    maker = CoarseMaker(weights)
    expected = distance_to_data(weights > 0)
    np.testing.assert_array_equal(maker.distances, expected)
    monkeypatch.setattr(module, "distance_to_data", None)
    np.testing.assert_array_equal(maker.distances, expected)


def test_a_matrix_is_decomposed_where_it_is():
    rows = np.random.default_rng(0).standard_normal((9, 30))
    system = rows @ rows.T
    whole = system.copy()
    values, vectors = decompose_in_place(system)
    np.testing.assert_allclose((vectors * values) @ vectors.T, whole, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(9), atol=1e-12)
    assert np.shares_memory(vectors, system)


def test_a_matrix_of_one_number_is_its_eigenvalue():
    values, vectors = decompose_in_place(np.array([[2.5]]))
    assert values.tolist() == [2.5]
    assert vectors.tolist() == [[1.0]]
