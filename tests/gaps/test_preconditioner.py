"""The preconditioner of masks that last along an axis, against dense systems."""

from functools import reduce

import numpy as np
import pytest
from gap_grids import case, dense_answers, spectra_of

from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.gaps import preconditioner
from dkrls_cli.gaps.field import product_field
from dkrls_cli.gaps.preconditioner import build_preconditioner, count_directions, lasting_axis
from dkrls_cli.gaps.solve import complete

RIDGE = 1e-3


def test_a_mask_that_lasts_is_solved_for_as_exactly():
    values, axes, kernels = case((9, 8, 10), "matern52", share=0.1)
    values[2:6, 3:7] = np.nan
    assert lasting_axis(np.isfinite(values)) == 2
    completed = complete(values, axes, kernels, RIDGE, tolerance=1e-13, limit=2000)
    dense = dense_answers(values, axes, kernels, RIDGE, axes)
    missing = np.isnan(values)
    np.testing.assert_allclose(completed.values[missing], dense[missing], rtol=0, atol=1e-8)


def test_a_mask_that_is_a_product_is_solved_for_at_once():
    values, axes, kernels = case((9, 8, 10), "matern32", share=0.0)
    values[2:6, 3:7] = np.nan
    observed = np.isfinite(values)
    spectra = spectra_of(axes, kernels)
    near = build_preconditioner(product_field(spectra), observed, RIDGE)
    v = reduce(np.kron, [s.vectors for s in spectra])
    w = reduce(np.kron, [s.values for s in spectra])
    left = np.random.default_rng(0).standard_normal(values.shape)
    result = np.empty(values.shape)
    near.solve(left, result)
    dense = np.linalg.solve((v.T * observed.ravel()) @ v + np.diag(RIDGE / w), left.ravel())
    np.testing.assert_allclose(result.ravel(), dense, rtol=0, atol=1e-3 * np.abs(dense).max())


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_axis_of_a_lasting_mask_is_found(axis):
    observed = np.random.default_rng(0).random((12, 12, 12)) > 0.1
    np.moveaxis(observed, axis, -1)[2:7, 3:9] = False
    assert lasting_axis(observed) == axis


def test_cells_missing_at_random_do_not_last():
    rng = np.random.default_rng(1)
    for share in (0.02, 0.3, 0.5):
        assert lasting_axis(rng.random((24, 23, 25)) > share) is None


def test_a_mask_in_one_dimension_does_not_last():
    observed = np.ones(30, bool)
    observed[4:20] = False
    assert lasting_axis(observed) is None


def test_a_mask_lasts_most_along_the_axis_where_its_fibres_differ_most():
    observed = np.ones((20, 20, 20), bool)
    observed[:, 2:12, 3:13] = False  # lasts along axis 0 throughout
    observed[4:8, :10, :] = False  # lasts along axis 2, less so
    assert lasting_axis(observed) == 0
    assert lasting_axis(np.moveaxis(observed, 0, 2)) == 2


def between_fibres(observed, axis):
    """Return the share of a mask's variance that lies between its fibres, 0 if by chance."""
    size = observed.shape[axis]
    share = observed.mean(axis=axis).var() / (observed.mean() * (1 - observed.mean()))
    return (share - 1 / size) / (1 - 1 / size)


@pytest.mark.parametrize(("dead", "lasts"), [(0, False), (1, False), (3, True)])
def test_fibres_that_are_never_observed_make_a_mask_last(dead, lasts):
    """One fibre in 200 may be dead by chance; three are a mask, however little variance it has."""
    rng = np.random.default_rng(2)
    observed = rng.random((20, 10, 40)) > 0.35
    observed.reshape(200, 40)[rng.permutation(200)[:dead]] = False
    assert 0 < between_fibres(observed, 2) < 0.15
    assert lasting_axis(observed) == (2 if lasts else None)


@pytest.mark.parametrize(("thin", "lasts"), [(0.55, False), (0.25, True)])
def test_fibres_that_are_often_missing_make_a_mask_last(thin, lasts):
    """Half of the fibres are observed less often than the others, but none is dead."""
    observed = np.random.default_rng(3).random((20, 10, 60)) < 0.8
    observed[:10] &= np.random.default_rng(4).random((10, 10, 60)) < thin / 0.8
    assert observed.any(axis=2).all()
    assert (between_fibres(observed, 2) > 0.15) == lasts
    assert lasting_axis(observed) == (2 if lasts else None)


def mask_and_spectra():
    values, axes, kernels = case((9, 8, 10), "matern32", share=0.0)
    values[2:6, 3:7] = np.nan
    return np.isfinite(values), spectra_of(axes, kernels)


def test_no_preconditioner_for_other_masks_or_for_a_ridge_of_round_off():
    observed, spectra = mask_and_spectra()
    largest = np.prod([s.values[0] for s in spectra])
    assert (
        build_preconditioner(product_field(spectra), observed, 1.001 * ROUND_OFF * largest)
        is not None
    )
    assert (
        build_preconditioner(product_field(spectra), observed, 0.999 * ROUND_OFF * largest) is None
    )
    scattered = np.random.default_rng(0).random(observed.shape) > 0.2
    assert build_preconditioner(product_field(spectra), scattered, RIDGE) is None


def cost_in_seconds(size, others, one, operations, ridge):
    """Return the time of a solve with so many directions: 40 operations a nanosecond."""
    rest = np.sort(others, axis=None)[::-1][size] * one.max() if size < others.size else 0.0
    steps = 75 + 1.7 * np.sqrt(rest / ridge)
    return (steps * (0.75 * operations + 2 * size**2 * one.size) + 9 * size**3) / 40e9


@pytest.mark.parametrize("decay", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("ridge", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("operations", [1e7, 1e9, 1e11])
def test_the_directions_are_as_many_as_are_worth_their_time(decay, ridge, operations):
    others, one = (1.0 + np.arange(60 * 60.0)).reshape(60, 60) ** -decay, np.ones(20)
    count = count_directions(others, one, operations, ridge, 10**7)
    costs = [cost_in_seconds(n, others, one, operations, ridge) for n in preconditioner._SIZES]
    assert count == preconditioner._SIZES[int(np.argmin(costs))]


def test_the_more_a_step_costs_the_more_directions_are_taken():
    others, one = (1.0 + np.arange(60 * 60.0)).reshape(60, 60) ** -2.0, np.ones(20)
    counts = [count_directions(others, one, cost, 1e-9, 10**7) for cost in (1e6, 1e9, 1e12)]
    assert counts[0] < counts[1] < counts[2] == 2200


@pytest.mark.parametrize(("cells", "count"), [(1000, 800), (302_499, 800), (302_500, 1100)])
def test_directions_have_no_more_memory_than_four_grids(cells, count):
    others, one = (1.0 + np.arange(60 * 60.0)).reshape(60, 60) ** -2.0, np.ones(20)
    assert count_directions(others, one, 1e12, 1e-9, cells) == count


@pytest.mark.parametrize("most", [1, 20, 72])
def test_the_directions_are_the_smoothest(most):
    observed, spectra = mask_and_spectra()
    near = build_preconditioner(product_field(spectra), observed, RIDGE, most)
    products = np.multiply.outer(spectra[0].values, spectra[1].values)
    taken = products[near.places]
    assert taken.size == most
    np.testing.assert_allclose(np.sort(taken), np.sort(products.ravel())[-most:])


def test_directions_of_no_use_beside_the_ridge_are_left_out():
    observed, spectra = mask_and_spectra()
    products = np.multiply.outer(spectra[0].values, spectra[1].values) * spectra[2].values[0]
    near = build_preconditioner(product_field(spectra), observed, 200.0)
    assert near.places[0].size == np.count_nonzero(products > 2.0)
    assert 1 < near.places[0].size < 72
    assert build_preconditioner(product_field(spectra), observed, 1e9).places[0].size == 1


def test_directions_that_are_not_covered_stay_as_they_are():
    observed, spectra = mask_and_spectra()
    near = build_preconditioner(product_field(spectra), observed, RIDGE, 20)
    left = np.random.default_rng(0).standard_normal(observed.shape)
    result = np.full(observed.shape, 7.0)
    near.solve(left, result)
    covered = np.zeros(observed.shape, bool)
    covered[near.places] = True
    assert (result[~covered] == 7.0).all()
    assert (result[covered] != 7.0).all()
    nothing = np.zeros(observed.shape)
    near.solve(nothing, result)
    assert (result[covered] == 0.0).all()


def test_a_mask_that_is_a_product_of_two_is_solved_for_as_well():
    """Land at all times, and a time at which nothing is observed."""
    observed, spectra = mask_and_spectra()
    observed[..., 6] = False
    assert lasting_axis(observed) == 2
    near = build_preconditioner(product_field(spectra), observed, RIDGE)
    v = reduce(np.kron, [s.vectors for s in spectra])
    w = reduce(np.kron, [s.values for s in spectra])
    left = np.random.default_rng(0).standard_normal(observed.shape)
    result = np.empty(observed.shape)
    near.solve(left, result)
    system = (v.T * observed.ravel()) @ v + np.diag(RIDGE / w)
    back = (system @ result.ravel()).reshape(left.shape)
    assert np.linalg.norm(back - left) < 1e-2 * np.linalg.norm(left)


def test_modes_of_a_mask_have_no_negative_eigenvalues():
    """Where nothing is observed they are 0, but for rounding."""
    _, spectra = mask_and_spectra()
    density = np.zeros((9, 8))
    density[:4] = 0.5
    places = tuple(np.indices((9, 8)).reshape(2, -1))
    bases, values = zip(*[(s.vectors, s.values) for s in spectra[:2]], strict=True)
    root = np.sqrt(np.multiply.outer(*values).ravel())
    _, mu = preconditioner._modes(density, bases, places, root)
    assert mu.min() == 0.0
    assert np.count_nonzero(mu > 1e-12) == 32
