"""KRLS is kernel ridge regression on all samples."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, X, Y, field, ridge_answers, teach

from dkrls_cli.baselines.least_squares.krls import KRLS
from dkrls_cli.errors import InputError


@pytest.mark.parametrize("asked_after", [[1, 2, 3], [511, 512, 513], [5, 520, 1030, 1031]])
def test_answers_between_blocks_are_ridge_regression(asked_after: list[int]) -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 9, (asked_after[-1], 2))
    values, model = field(points), KRLS(sigma=0.8, ridge=1e-3)
    for i, (x, y) in enumerate(zip(points, values, strict=True), start=1):
        model.update(x, y)
        if i in asked_after:
            expected = ridge_answers(points[:i], values[:i], 0.8, 1e-3)
            np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-8)


def test_krls_names_the_remedy_for_a_singular_matrix() -> None:
    model = teach(KRLS(ridge=1e-300), X[:1], Y[:1])
    expected = model.predict(NEW)
    model.update(X[0], Y[0])
    with pytest.raises(InputError, match="Raise the ridge"):
        model.predict(NEW)
    np.testing.assert_array_equal(model.predict(NEW), expected)


def test_answers_are_ridge_regression_on_all_samples() -> None:
    model = teach(KRLS(sigma=0.8, ridge=1e-2), LONG, CURVE)
    assert model.size == len(LONG)
    expected = ridge_answers(LONG, CURVE, 0.8, 1e-2)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-9)
