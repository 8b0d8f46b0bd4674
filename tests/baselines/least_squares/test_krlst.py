"""KRLS-T against KAFBOX and against a Gaussian process."""

from typing import Any

import numpy as np
import pytest
from baselines.known_samples import NOISY, TARGETS, WALK, teach
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from dkrls_cli.baselines.contract import POINTS_AT_ONCE
from dkrls_cli.baselines.least_squares.krlst import KRLST


def test_krlst_without_forgetting_is_a_gaussian_process() -> None:
    model = KRLST(sigma=0.7, budget=100, noise=0.05, forgetting=1.0, jitter=1e-9)
    teach(model, WALK[:60], NOISY[:60])
    process = GaussianProcessRegressor(RBF(0.7), alpha=0.05, optimizer=None)
    mean, deviation = process.fit(WALK[:60], NOISY[:60]).predict(TARGETS, return_std=True)
    np.testing.assert_allclose(model.predict(TARGETS), mean, atol=1e-6)
    np.testing.assert_allclose(
        model.variance(TARGETS) / model.scale, deviation**2 + 0.05, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("settings", "scale", "variances"),
    [
        ({}, 0.0561756605179824, (0.001772468076, 0.001851846006, 0.001567088945)),
        (
            {"forgetting": 1.0, "noise": 0.1},
            0.0236950313622752,
            (0.002993211023, 0.002803767992, 0.002906598012),
        ),
    ],
)
def test_krlst_variance_as_kafbox(
    settings: dict[str, Any], scale: float, variances: tuple[float, ...]
) -> None:
    model = KRLST(sigma=0.7, budget=50, **settings)
    assert np.isnan(model.variance(TARGETS)).all()
    teach(model, WALK, NOISY)
    np.testing.assert_allclose(model.scale, scale, rtol=1e-10)
    np.testing.assert_allclose(model.variance(TARGETS[:3]), variances, rtol=1e-9)


def test_variances_of_many_points_are_computed_in_parts() -> None:
    model = teach(KRLST(budget=5), WALK[:20], NOISY[:20])
    assert isinstance(model, KRLST)
    many = np.tile(TARGETS, (POINTS_AT_ONCE // 5 + 2, 1))
    expected = np.tile(model.variance(TARGETS), POINTS_AT_ONCE // 5 + 2)
    np.testing.assert_allclose(model.variance(many), expected, rtol=1e-9)
    assert model.variance(np.empty((0, 2))).shape == (0,)


def test_a_sample_in_the_span_of_the_others_is_learnt_and_not_kept() -> None:
    """Without jitter, four samples at one place are those of a Gaussian process there."""
    model = teach(KRLST(noise=0.5, forgetting=1.0, jitter=1e-300), WALK[:1], NOISY[:1])
    for _ in range(3):
        model.update(WALK[0], 1.0)
    assert model.size == 1
    np.testing.assert_allclose(model.predict(WALK[:1]), (NOISY[0] + 3.0) / 4.5, rtol=1e-12)
