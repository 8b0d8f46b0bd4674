"""S-KRLS: interpolation, and least squares in its dictionary."""

import numpy as np
import pytest
from baselines.known_samples import NOISY, TARGETS, WALK, X, Y, gaussian, teach

from dkrls_cli.baselines.least_squares.skrls import SKRLS


def test_skrls_with_all_samples_independent_interpolates() -> None:
    model = teach(SKRLS(sigma=0.3, tolerance=1e-8), X, Y)
    assert model.size == len(X)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-9)


def test_skrls_solves_least_squares_in_its_dictionary() -> None:
    """All samples regressed on the projections that the dictionary had when each came."""
    model = teach(SKRLS(sigma=0.7, tolerance=0.02), WALK, NOISY)
    kept: list[int] = []
    rows = []
    for i, x in enumerate(WALK):
        k = gaussian(WALK[kept], x[None], 0.7)[:, 0]
        a = np.linalg.solve(gaussian(WALK[kept], WALK[kept], 0.7), k) if kept else k
        if 1 - k @ a > 0.02:
            kept.append(i)
            a = np.append(np.zeros(len(kept) - 1), 1.0)
        rows.append(a)
    design = np.zeros((len(WALK), len(kept)))
    for i, a in enumerate(rows):
        design[i, : a.size] = a
    kernel = gaussian(WALK[kept], WALK[kept], 0.7)
    weights = np.linalg.lstsq(design @ kernel, NOISY)[0]
    assert model.size == len(kept)
    expected = gaussian(TARGETS, WALK[kept], 0.7) @ weights
    np.testing.assert_allclose(model.predict(TARGETS), expected, atol=1e-8)


@pytest.mark.parametrize("budget", [1, 20])
def test_a_full_dictionary_keeps_its_first_samples_and_still_learns(budget: int) -> None:
    model = teach(SKRLS(sigma=0.7, tolerance=0.02, budget=budget), WALK[:30], NOISY[:30])
    before = model.predict(TARGETS)
    model.update(WALK[30], NOISY[30] + 1.0)
    assert model.size == budget
    assert (model.predict(TARGETS) != before).any()
