"""KNLMS against the algorithm written out with plain matrices."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, gaussian, teach

from dkrls_cli.baselines.gradient.knlms import KNLMS


@pytest.mark.parametrize("coherence", [0.0, 0.5, 0.95, 1.0])
def test_incoherent_samples_are_kept_and_all_weights_take_a_step(coherence: float) -> None:
    points, values = LONG[:200], CURVE[:200]
    kept, weights = np.empty((0, 2)), np.empty(0)
    for x, y in zip(points, values, strict=True):
        if not len(kept) or gaussian(x[None], kept, 0.5).max() <= coherence:
            kept, weights = np.vstack([kept, x]), np.append(weights, 0.0)
        k = gaussian(x[None], kept, 0.5)[0]
        weights = weights + 0.3 * (y - k @ weights) / (0.05 + k @ k) * k
    model = KNLMS(sigma=0.5, step=0.3, coherence=coherence, damping=0.05)
    teach(model, points, values)
    assert model.size == len(kept)
    np.testing.assert_allclose(model.predict(NEW), gaussian(NEW, kept, 0.5) @ weights, rtol=1e-9)
