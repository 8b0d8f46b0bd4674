"""Ridge regression on a limited number of samples, any of which can be replaced."""

import numpy as np
from baselines.known_samples import CURVE, LONG, NEW, ridge_answers, teach

from dkrls_cli.baselines.least_squares.fixed_size import FixedSizeRidge


class RandomPlace(FixedSizeRidge):
    """A new sample takes a random place once all are taken."""

    paper_name, summary = "random", "Random."

    def __init__(self) -> None:
        super().__init__(sigma=0.8, capacity=9, ridge=1e-2)
        self._rng = np.random.default_rng(0)
        self.kept: dict[int, int] = {}
        self._learnt = 0

    def _learn(self, x: np.ndarray, y: float) -> None:
        full = self.size == self._capacity
        place = int(self._rng.integers(self._capacity)) if full else self.size
        self._put(place, x, y, *self._border(self._kernel_to(x)))
        self.kept[place] = self._learnt
        self._learnt += 1


def test_answers_are_ridge_regression_on_the_samples_kept() -> None:
    model = RandomPlace()
    teach(model, LONG[:100], CURVE[:100])
    kept = list(model.kept.values())
    assert model.size == len(kept) == 9
    expected = ridge_answers(LONG[kept], CURVE[kept], 0.8, 1e-2)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-10)
