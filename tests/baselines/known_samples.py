"""Samples and reference formulas that the tests of all baselines share."""

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from dkrls_cli.baselines import Baseline


def grid(*axes: np.ndarray) -> np.ndarray:
    """All points of a grid, the first axis fastest: the paper's order, the last one time."""
    return np.stack([a.ravel(order="F") for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def field(points: np.ndarray) -> np.ndarray:
    return np.sin(points[:, 0]) * np.cos(points[:, 1] / 2) + 0.3


def teach(model: Baseline, points: np.ndarray, values: np.ndarray) -> Baseline:
    for x, y in zip(points, values, strict=True):
        model.update(x, y)
    return model


def predict_ahead(model: Baseline, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Each value as predicted before it is learnt."""
    guesses = np.empty(len(points))
    for i, (x, y) in enumerate(zip(points, values, strict=True)):
        guesses[i] = model.predict(x[None])[0]
        model.update(x, y)
    return guesses


def gaussian(a: np.ndarray, b: np.ndarray, sigma: float) -> np.ndarray:
    return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2 * sigma**2))


def ridge_answers(points: np.ndarray, values: np.ndarray, sigma: float, ridge: float) -> np.ndarray:
    """Kernel ridge regression of scikit-learn at `NEW`."""
    model = KernelRidge(alpha=ridge, kernel="rbf", gamma=1 / (2 * sigma**2))
    return np.asarray(model.fit(points, values).predict(NEW))


X = grid(np.linspace(0, 4, 9), np.linspace(0, 5, 8))
Y = field(X)
NEW = np.random.default_rng(0).uniform(0, 4, (17, 2))

# A quasi-random walk with noise: the samples of kaf_oracle.csv.
COUNT = np.arange(1, 401)
WALK = 4 * np.mod(np.outer(COUNT, [0.7548776662466927, 0.5698402909980532]), 1.0)
NOISY = np.sin(1.5 * WALK[:, 0]) * np.cos(WALK[:, 1]) + 0.05 * np.sin(37 * COUNT)
TARGETS = np.array([(0.5, 0.5), (1, 3), (2, 2), (3.3, 0.7), (3.9, 3.9)])

# Several blocks and a part of one, with samples that repeat.
LONG = np.random.default_rng(5).uniform(0, 4, (700, 2))
LONG[1::7] = LONG[::7]
CURVE = field(LONG)
