"""KLMS against the algorithm written out, one sample at a time."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, gaussian, teach

from dkrls_cli.baselines.gradient.klms import BLOCK, KLMS


@pytest.mark.parametrize("budget", [1, 100, BLOCK, BLOCK + 1, 300, 10_000])
def test_klms_in_blocks_is_klms(budget: int) -> None:
    model = teach(KLMS(sigma=0.5, step=0.2, budget=budget), LONG, CURVE)
    kept = min(budget, len(LONG))
    weights = np.zeros(kept)
    for i in range(kept):
        error = CURVE[i] - gaussian(LONG[i : i + 1], LONG[:i], 0.5)[0] @ weights[:i]
        weights[i] = 0.2 * error
    assert model.size == kept
    expected = gaussian(NEW, LONG[:kept], 0.5) @ weights
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-9, atol=1e-12)


def test_a_kernel_matrix_of_a_block_with_itself_is_an_eighth_of_a_megabyte() -> None:
    assert 8 * BLOCK**2 == 2**17
