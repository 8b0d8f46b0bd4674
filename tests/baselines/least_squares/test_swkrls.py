"""SW-KRLS is kernel ridge regression on the last samples."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, gaussian, ridge_answers, teach

from dkrls_cli.baselines.least_squares.swkrls import SWKRLS


@pytest.mark.parametrize("learnt", [30, 40, 41, 350, 700])
def test_swkrls_is_ridge_regression_on_the_window(learnt: int) -> None:
    model = SWKRLS(sigma=0.8, window=40, ridge=1e-3)
    teach(model, LONG[:learnt], CURVE[:learnt])
    last = slice(max(learnt - 40, 0), learnt)
    kernel = gaussian(LONG[last], LONG[last], 0.8) + 1e-3 * np.eye(min(learnt, 40))
    expected = gaussian(NEW, LONG[last], 0.8) @ np.linalg.solve(kernel, CURVE[last])
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-9)


def test_swkrls_does_not_drift() -> None:
    model = SWKRLS(sigma=0.8, window=30, ridge=1e-2)
    teach(model, np.tile(LONG, (15, 1)), np.tile(CURVE, 15))
    expected = ridge_answers(LONG[-30:], CURVE[-30:], 0.8, 1e-2)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-10)
