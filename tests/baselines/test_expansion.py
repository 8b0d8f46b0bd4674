"""Blocks of samples that become centres."""

import numpy as np

from dkrls_cli.baselines.expansion import BlockExpansion
from dkrls_cli.baselines.gaussian import gaussian


class Nadaraya(BlockExpansion):
    """Every sample a centre with its value for a weight."""

    def __init__(self) -> None:
        super().__init__(gaussian(0.5), block=4)

    def _learn_block(self, points: np.ndarray, values: np.ndarray) -> None:
        self._centres.extend(points, values)


def test_answers_and_size_count_samples_that_wait() -> None:
    model = Nadaraya()
    assert model.size == 0
    points, values = np.linspace(0, 1, 6)[:, None], np.arange(6.0)
    for count, (x, y) in enumerate(zip(points, values, strict=True), start=1):
        model.update(x, y)
        assert model.size == count
    at = np.array([[0.3], [0.9]])
    expected = np.exp(-((at - points.T) ** 2) / 0.5) @ values
    np.testing.assert_allclose(model.predict(at), expected, rtol=1e-12)


def test_an_answer_alone_learns_what_waits() -> None:
    model = Nadaraya()
    model.update([0.0], 2.0)
    np.testing.assert_allclose(model.predict([[0.0]]), [2.0])
