"""KKF against the Gaussian process that it filters."""

import numpy as np
import pytest
from baselines.known_samples import X, Y, field, grid, teach
from sklearn.gaussian_process.kernels import RBF, Matern

from dkrls_cli.baselines.least_squares.kkf import KKF
from dkrls_cli.errors import InputError


@pytest.mark.parametrize("noise", [0.3, 1e-3])
def test_kkf_is_the_gaussian_process_that_it_filters(noise: float) -> None:
    """Knots at all sites: a Gaussian kernel in space times an exponential one in time."""
    sites, times = np.array([0.0, 0.7, 1.5, 2.2]), np.array([0.0, 0.5, 0.6, 2.0, 3.5])
    points = grid(sites, times)
    points = points[points[:, 0] <= 1 + points[:, 1]]  # sites join as time goes
    values = field(points)
    model = teach(KKF(sigma=0.9, memory=2.0, noise=noise, tolerance=1e-9), points, values)
    asked = grid(sites, np.array([-1.0, 0.0, 0.3, 0.6, 3.4, 3.5, 5.0]))

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(RBF(0.9)(a[:, :1], b[:, :1]) * Matern(2.0, nu=0.5)(a[:, 1:], b[:, 1:]))

    weights = np.linalg.solve(kernel(points, points) + noise * np.eye(len(points)), values)
    np.testing.assert_allclose(model.predict(asked), kernel(asked, points) @ weights, atol=1e-9)


def test_kkf_keeps_the_knots_it_needs() -> None:
    assert teach(KKF(sigma=5.0, tolerance=1e-3), X, Y).size < 5
    assert teach(KKF(sigma=0.2, tolerance=1e-3), X, Y).size == 9
    assert teach(KKF(sigma=0.2, tolerance=1e-3, knots=3), X, Y).size == 3


def test_kkf_refuses_to_go_back_in_time() -> None:
    model = teach(KKF(), np.array([[0.0, 2.0]]), np.array([1.0]))
    with pytest.raises(InputError, match="Sort the samples by time"):
        model.update([0.0, 1.0], 1.0)


def test_a_refused_sample_changes_nothing() -> None:
    model, other = (teach(KKF(), X[9:18], Y[9:18]) for _ in range(2))
    with pytest.raises(InputError, match="Sort the samples by time"):
        model.update(X[0], Y[0])
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


@pytest.mark.parametrize("time", [2, -3])
def test_time_must_be_one_of_the_features(time: int) -> None:
    with pytest.raises(InputError, match=rf"Invalid time feature {time}: samples have 2"):
        KKF(time=time).update([0.0, 1.0], 1.0)


def test_a_sample_needs_a_feature_of_space() -> None:
    with pytest.raises(InputError, match="at least one other space"):
        KKF().update([0.0], 1.0)


def test_variance_that_the_knots_do_not_explain_counts_as_noise() -> None:
    """One knot at 0 and a sample at 1: kriging from the knot, with the rest as noise."""
    model = teach(KKF(noise=0.1, knots=1), np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([2.0, 3.0]))
    assert model.size == 1
    h = np.array([1.0, np.exp(-0.5)])
    precision = 1.0 + h[0] ** 2 / 0.1 + h[1] ** 2 / (0.1 + 1 - h[1] ** 2)
    mean = (h[0] * 2.0 / 0.1 + h[1] * 3.0 / (0.1 + 1 - h[1] ** 2)) / precision
    np.testing.assert_allclose(model.predict([[0.0, 0.0]]), mean, rtol=1e-12)


def test_a_site_becomes_a_knot_only_above_the_tolerance() -> None:
    """The first site has a kriging variance of exactly 1."""
    assert teach(KKF(tolerance=1.0), X[:1], Y[:1]).size == 0
    assert teach(KKF(tolerance=1 - 1e-9), X[:1], Y[:1]).size == 1
