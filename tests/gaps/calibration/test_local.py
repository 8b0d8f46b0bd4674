"""The local scale of error bars."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.gaps.calibration import local as module
from dkrls_cli.gaps.calibration.local import left_out_errors, local_scale, usual_error

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("ridge", [1e-3, 0.5])
def test_errors_are_those_of_a_gaussian_process_without_the_cell(ridge):
    """Dense: the mean and the variance of every cell given all others."""
    axes = [np.arange(4.0), np.array([0.0, 1.0, 3.0]), np.arange(3.0)]
    kernels = [Kernel("matern32", 2.0), Kernel("gaussian", 1.0), Kernel("matern12", 3.0)]
    grams = [gram(kernel, c, c) for kernel, c in zip(kernels, axes, strict=True)]
    values = RNG.standard_normal((4, 3, 3))
    whole = np.kron(np.kron(grams[0], grams[1]), grams[2])
    expected = []
    for cell in range(values.size):
        others = np.delete(np.arange(values.size), cell)
        system = whole[np.ix_(others, others)] + ridge * np.eye(others.size)
        row = np.linalg.solve(system, whole[others, cell])
        missed = values.flat[cell] - row @ values.ravel()[others]
        expected.append(
            abs(missed) / math.sqrt(whole[cell, cell] + ridge - row @ whole[others, cell])
        )
    found = left_out_errors(values, [decompose(each) for each in grams], ridge)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-8)


def test_errors_of_a_field_of_the_model_are_normal():
    x = np.arange(200.0)
    covariance = gram(Kernel("matern32", 5.0), x, x)
    drawn = np.linalg.cholesky(covariance + 0.01 * np.eye(200)) @ RNG.standard_normal((200, 50))
    errors = [left_out_errors(y, [decompose(covariance)], 0.01) for y in drawn.T]
    assert np.mean(np.square(errors)) == pytest.approx(1.0, abs=0.05)


def test_a_ridge_of_nothing_has_finite_errors():
    x = np.arange(40.0)
    spectrum = decompose(gram(Kernel("gaussian", 9.0), x, x))
    errors = left_out_errors(np.sin(x), [spectrum], 0.0)
    assert np.isfinite(errors).all()


def test_the_usual_error_is_that_of_observed_cells():
    assert usual_error(np.array([1.0, 3.0, 100.0]), np.array([True, True, False])) == 2.0


@pytest.mark.parametrize("shape", [(300,), (40, 50), (12, 20, 1, 20)])
def test_equal_errors_have_one_scale(shape):
    observed = RNG.random(shape) < 0.7
    errors = np.where(observed, 3.0, 1e9)  # of missing cells nothing counts
    np.testing.assert_allclose(local_scale(errors, observed, 3.0), 1.0)
    twice = local_scale(errors, observed, 1.5)
    assert (twice[observed] > 0.8 * 2.0**1.7).all()
    assert (twice <= 2.0**1.7).all()


def test_the_scale_is_that_of_the_errors_around():
    errors = np.ones((60, 60))
    errors[:, 30:] = 4.0
    scale = local_scale(errors, np.ones((60, 60), bool), 2.0)
    weight = 1 / 1.05
    low, high = ((weight * e / 2.0 + 0.05 * weight) ** 1.7 for e in (1.0, 4.0))
    np.testing.assert_allclose(scale[20:40, 10], low, rtol=1e-3)
    np.testing.assert_allclose(scale[20:40, 50], high, rtol=1e-3)
    assert (np.diff(scale[30, 20:40]) >= 0).all()


@pytest.mark.parametrize("shape", [(400,), (60, 60), (25, 25, 25)])
def test_a_mean_is_over_sixty_cells(shape):
    """That is 1 / (the sum of squared weights)."""
    errors = np.zeros(shape)
    middle = tuple(size // 2 for size in shape)
    errors[middle] = 1.0
    relative = local_scale(errors, np.ones(shape, bool), 1e-6) ** (1 / 1.7)
    weights = 1.05e-6 * relative - 0.05e-6
    assert weights.sum() == pytest.approx(1.0, rel=0.01)
    assert 1 / np.sum(weights**2) == pytest.approx(60.0, rel=0.1)


def test_the_scale_is_relative_to_the_mean_of_observed_cells_by_default():
    errors = np.random.default_rng(3).random((20, 30))
    observed = np.random.default_rng(4).random((20, 30)) < 0.7
    expected = local_scale(errors, observed, float(errors[observed].mean()))
    np.testing.assert_array_equal(local_scale(errors, observed), expected)


def test_far_from_data_the_error_is_the_usual_one():
    observed = np.ones((80, 80), bool)
    observed[20:60, 20:60] = False
    scale = local_scale(np.full((80, 80), 5.0), observed, 1.0)
    assert scale[40, 40] == pytest.approx(1.0)
    assert scale[40, 21] > 3.0 > scale[40, 27] > 1.0


def test_short_axes_have_narrow_weights():
    assert module._widths((4, 100)) == pytest.approx([1.0, math.sqrt(60 / (4 * math.pi))])
    assert module._widths((1, 100, 1)) == pytest.approx([0.0, 60 / (2 * math.sqrt(math.pi)), 0.0])
    assert module._widths((1,)) == [0.0]


def test_cells_that_are_met_by_chance_keep_a_scale():
    scale = local_scale(np.zeros((80, 80)), np.ones((80, 80), bool), 1.0)
    np.testing.assert_allclose(scale[20:-20, 20:-20], (0.05 / 1.05) ** 1.7)
    np.testing.assert_array_equal(local_scale(np.zeros(9), np.ones(9, bool), 0.0), 1.0)


@given(st.integers(1, 30), st.integers(1, 30), st.floats(1e-100, 1e100), st.integers(0, 99))
def test_scales_do_not_depend_on_the_unit(rows, columns, unit, seed):
    rng = np.random.default_rng(seed)
    errors, observed = rng.random((rows, columns)), rng.random((rows, columns)) < 0.5
    scale = local_scale(errors, observed, 0.5)
    assert (scale > 0).all()
    np.testing.assert_allclose(local_scale(errors * unit, observed, 0.5 * unit), scale, rtol=1e-9)
