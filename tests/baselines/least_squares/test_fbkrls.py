"""FB-KRLS against the algorithm written out with dense solves."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, gaussian, ridge_answers, teach

from dkrls_cli.baselines.least_squares.fbkrls import FBKRLS
from dkrls_cli.errors import SettingError


@pytest.mark.parametrize("label_step", [0.0, 0.1])
@pytest.mark.parametrize("budget", [1, 12])
def test_the_sample_of_least_leave_one_out_error_is_dropped(budget: int, label_step: float) -> None:
    points, values = LONG[:120], CURVE[:120] + 0.1 * np.sin(37 * np.arange(120))
    kept, labels = np.empty((0, 2)), np.empty(0)
    for x, y in zip(points, values, strict=True):
        labels = labels + label_step * gaussian(kept, x[None], 0.8)[:, 0] * (y - labels)
        kept, labels = np.vstack([kept, x]), np.append(labels, y)
        if len(kept) > budget:
            inverse = np.linalg.inv(gaussian(kept, kept, 0.8) + 0.05 * np.eye(len(kept)))
            goes = np.argmin(np.abs(inverse @ labels) / np.diag(inverse))
            kept, labels = np.delete(kept, goes, axis=0), np.delete(labels, goes)
    model = FBKRLS(sigma=0.8, budget=budget, ridge=0.05, label_step=label_step)
    teach(model, points, values)
    assert model.size == budget
    np.testing.assert_allclose(
        model.predict(NEW), ridge_answers(kept, labels, 0.8, 0.05), rtol=0, atol=1e-9
    )


def test_with_room_for_all_samples_it_is_ridge_regression() -> None:
    model = teach(FBKRLS(sigma=0.8, ridge=1e-2, budget=300), LONG[:300], CURVE[:300])
    expected = ridge_answers(LONG[:300], CURVE[:300], 0.8, 1e-2)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-9)


def test_kept_values_move_at_most_all_the_way_to_a_new_one() -> None:
    FBKRLS(label_step=1.0)
    with pytest.raises(SettingError, match=r"Invalid label_step 1\.1\. It must be from 0 to 1\."):
        FBKRLS(label_step=1.1)
