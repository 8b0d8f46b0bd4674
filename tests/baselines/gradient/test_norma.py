"""NORMA against the algorithm written out, one sample at a time."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, gaussian, teach

from dkrls_cli.baselines.gradient.norma import NORMA
from dkrls_cli.errors import SettingError


@pytest.mark.parametrize("window", [1, 5, 127, 128, 129, 300, 1000])
@pytest.mark.parametrize("order", ["original", "shrink-first"])
def test_norma_in_blocks_is_norma(window: int, order: str) -> None:
    settings = {"sigma": 0.5, "step": 0.3, "regularization": 0.05}
    model = teach(NORMA(**settings, window=window, order=order), LONG, CURVE)
    weights, keep = np.zeros(0), 1 - 0.3 * 0.05
    for i, (x, y) in enumerate(zip(LONG, CURVE, strict=True)):
        k = gaussian(x[None], LONG[max(i - window, 0) : i], 0.5)[0]
        error = y - k @ weights * (keep if order == "shrink-first" else 1)
        weights = np.append(keep * weights, 0.3 * error)[-window:]
    expected = gaussian(NEW, LONG[-window:], 0.5) @ weights
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-10, atol=1e-14)


def test_weights_may_shrink_to_nothing_but_not_below() -> None:
    NORMA(step=0.5, regularization=2.0)
    with pytest.raises(SettingError, match=r"step times regularization 1\.05"):
        NORMA(step=0.5, regularization=2.1)


def test_an_unknown_order_lists_all() -> None:
    with pytest.raises(SettingError, match="Choose from: original, shrink-first"):
        NORMA(order="last")
