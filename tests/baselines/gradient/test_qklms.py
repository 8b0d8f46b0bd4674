"""QKLMS against the algorithm written out, one sample at a time."""

from typing import Any

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, gaussian, teach

from dkrls_cli.baselines.gradient import qklms
from dkrls_cli.baselines.gradient.qklms import QKLMS


def plain_qklms(points: np.ndarray, values: np.ndarray, radius: float) -> tuple[Any, Any]:
    centres, weights = [points[0]], [0.2 * values[0]]
    for x, y in zip(points[1:], values[1:], strict=True):
        error = y - gaussian(x[None], np.array(centres), 0.5)[0] @ weights
        distances = ((np.array(centres) - x) ** 2).sum(axis=1)
        nearest = int(np.argmin(distances))
        if distances[nearest] <= radius**2:
            weights[nearest] += 0.2 * error
        else:
            centres.append(x)
            weights.append(0.2 * error)
    return np.array(centres), np.array(weights)


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.05, 0.3, 2.0])
@pytest.mark.parametrize("at_once", [16, 1024])
def test_qklms_in_blocks_is_qklms(
    radius: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qklms, "CENTRES_AT_ONCE", at_once)
    model = teach(QKLMS(sigma=0.5, step=0.2, radius=radius), LONG, CURVE)
    centres, weights = plain_qklms(LONG, CURVE, radius)
    assert model.size == len(centres)
    np.testing.assert_allclose(
        model.predict(NEW), gaussian(NEW, centres, 0.5) @ weights, rtol=1e-10
    )
