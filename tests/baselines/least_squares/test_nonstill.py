"""NONSTILL-KRLS: its kernel, and ridge regression with it."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, teach
from sklearn.kernel_ridge import KernelRidge

from dkrls_cli.baselines.least_squares.nonstill import NonstillKRLS, covariance
from dkrls_cli.errors import InputError


@pytest.mark.parametrize("time", [-1, 0])
def test_nonstill_kernel_is_the_formula_of_the_paper(time: int) -> None:
    first, second = (0.3, 1.1), (0.9, -0.4)
    u, h = (first[time] - second[time]), (first[1 + time] - second[1 + time])
    a, b = 0.7, 1.3
    expected = (a**2 * u**2 + 1) ** -0.5 * np.exp(-(b**2) * h**2 / (a**2 * u**2 + 1))
    (found,) = covariance(a, b, time)(np.array([first]), np.array([second]).T).ravel()
    assert np.isclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("features", [1, 2, 3, 4])
def test_nonstill_kernel_is_positive_definite(features: int) -> None:
    points = np.random.default_rng(2).uniform(0, 4, (150, features))
    spectrum = np.linalg.eigvalsh(covariance(1.0, 1.0, -1)(points, points.T))
    assert spectrum[0] > -1e-12 * spectrum[-1]


def test_nonstill_is_ridge_regression_with_that_kernel() -> None:
    model = teach(NonstillKRLS(ridge=1e-2), LONG, CURVE)
    kernel = covariance(1.0, 1.0, -1)
    system = KernelRidge(alpha=1e-2, kernel="precomputed").fit(kernel(LONG, LONG.T), CURVE)
    expected = system.predict(kernel(NEW, LONG.T))
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-9)


@pytest.mark.parametrize("features", [1, 3, 4])
def test_the_power_is_the_number_of_dimensions_of_space(features: int) -> None:
    """Cressie and Huang's first family, with all of the distance in time."""
    point, other = np.zeros((1, features)), np.zeros((1, features))
    other[0, -1] = 2.0
    (found,) = covariance(0.7, 1.3, -1)(point, other.T).ravel()
    assert np.isclose(found, (0.7**2 * 4 + 1) ** (-max(features - 1, 1) / 2), rtol=1e-14)


@pytest.mark.parametrize("time", [2, -3])
def test_time_must_be_one_of_the_features(time: int) -> None:
    with pytest.raises(InputError, match=rf"Invalid time feature {time}\. Samples have 2"):
        NonstillKRLS(time=time).update([0.0, 1.0], 1.0)


@pytest.mark.parametrize("time", [-2, 0, 1])
def test_any_feature_may_be_time(time: int) -> None:
    NonstillKRLS(time=time).update([0.0, 1.0], 1.0)
