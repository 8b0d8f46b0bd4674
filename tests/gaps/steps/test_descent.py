from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.coarse import CoarseMaker
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.solve import _near, complete_field
from dkrls_cli.gaps.steps import descent
from dkrls_cli.gaps.steps.system import System


def dense_system(observed, kernels, ridge):
    """Return a system of equations, and the same as a matrix."""
    axes = [np.arange(float(m)) for m in observed.shape]
    field = make_field(axes, kernels)
    v = reduce(np.kron, field.bases)
    a = (v.T * observed.ravel()) @ v + np.diag(ridge / field.variances.ravel())
    return System(field, observed * 1.0, ridge, ~observed), a


def with_hole(most, family, ridge):
    """Return a system with a hole, its matrix, a coarse space, that as a matrix, and D^-1."""
    observed = np.ones((12, 14), bool)
    observed[3:9, 4:11] = False
    system, a = dense_system(observed, [Kernel(family, 3.0)] * 2, ridge)
    near = CoarseMaker(observed * 1.0, most).make(system.field, ridge)
    variances = system.field.variances
    flat = np.ravel_multi_index(near.places, variances.shape)
    q = np.zeros(a.shape)
    q[np.ix_(flat, flat)] = np.linalg.inv(a[np.ix_(flat, flat)])
    d = np.diag(1.0 / (system.share + ridge / variances.ravel()))
    return system, a, near, q, d


def test_scattered_gaps_are_preconditioned_by_their_observed_share():
    observed = np.random.default_rng(0).random((7, 6)) > 0.3
    system, _ = dense_system(observed, [Kernel("matern32", 2.0)] * 2, 0.01)
    assert _near(system, observed, None) is None
    left, w = np.random.default_rng(0).standard_normal((7, 6)), system.field.variances
    found = descent.precondition(system, None, left)
    np.testing.assert_allclose(found, left * w / (observed.mean() * w + 0.01), rtol=1e-12)


@pytest.mark.parametrize("most", [20, 100])
def test_smooth_directions_are_solved_for_with_what_the_others_leave(most):
    """(I - QA) D^-1 against dense matrices."""
    system, a, near, q, d = with_hole(most, "matern32", 0.01)
    left = np.random.default_rng(0).standard_normal(system.ranks)
    found = descent.precondition(system, near, left).ravel()
    expected = (np.eye(len(a)) - q @ a) @ d @ left.ravel()
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_with_a_tiny_ridge_they_are_solved_for_before_and_after_the_others():
    """Q + (I - QA) D^-1 (I - AQ), against dense matrices."""
    system, a, near, q, d = with_hole(20, "gaussian", 1e-10)
    left = np.random.default_rng(0).standard_normal(system.ranks)
    found = descent.precondition(system, near, left).ravel()
    rest = np.eye(len(a)) - a @ q
    expected = (q + rest.T @ d @ rest) @ left.ravel()
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_a_residual_has_no_part_on_smooth_directions_that_are_solved_for():
    system, a, near, _, _ = with_hole(20, "matern32", 0.01)
    g, left = np.zeros(system.ranks), np.random.default_rng(0).standard_normal(system.ranks)
    before = left.copy()
    descent._solve_smooth(system, near, g, left)
    assert np.abs(left[near.places]).max() < 1e-12
    np.testing.assert_allclose(left.ravel(), before.ravel() - a @ g.ravel(), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "ridge"), [("matern12", 1e-3), ("matern52", 1e-4)])
def test_what_round_off_brings_back_of_smooth_directions_does_not_grow(family, ridge):
    """Solves of more than a hundred steps end at the dense solution."""
    rng = np.random.default_rng(0)
    observed = rng.random((14, 15, 8)) > 0.1
    observed[3:9, 4:11, 2:6] = False
    system, a = dense_system(observed, [Kernel(family, 3.0)] * 3, ridge)
    values = np.where(observed, rng.standard_normal(observed.shape), np.nan)
    few = CoarseMaker(observed * 1.0, 20)
    done = complete_field(system.field, values, ridge, 0.0, tolerance=1e-9, limit=500, coarse=few)
    v = reduce(np.kron, system.field.bases)
    truth = v @ np.linalg.solve(a, v.T @ np.nan_to_num(values).ravel())
    assert done.converged
    assert done.iterations > 100
    off = np.abs(done.values.ravel() - truth)[~observed.ravel()]
    assert off.max() < 1e-7
