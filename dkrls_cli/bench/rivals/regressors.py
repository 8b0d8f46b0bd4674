"""Methods of scipy and scikit-learn that learn scattered samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.bench.rivals.interpolators import AnswerFunction

# Samples up to which one system of radial basis functions is solved for all of them, and the number
# of nearest samples that an answer uses above that.
_ONE_SOLVE, _NEIGHBOURS = 1000, 50

# Samples that settings are chosen on: more of them change the choice little.
_CHOICE_SAMPLES = 500

# Queries answered at a time: bounds the memory to this many rows of a kernel matrix.
QUERIES_AT_ONCE = 1000


def fit_rbf(coordinates: Sequence[Array], values: Array) -> AnswerFunction:
    """Fit thin-plate splines through all samples, or through the nearest of many.

    Coordinates are scaled to steps of the grid: else the nearest samples may all lie in a plane.
    """
    from scipy.interpolate import RBFInterpolator

    steps = [np.ptp(c) / max(np.unique(c).size - 1, 1) or 1.0 for c in coordinates]
    fitted = RBFInterpolator(
        np.column_stack(coordinates) / steps,
        values,
        neighbors=_NEIGHBOURS if values.size > _ONE_SOLVE else None,
    )
    return lambda queries: np.asarray(fitted(np.column_stack(queries) / steps))


def fit_kernel_ridge(coordinates: Sequence[Array], values: Array) -> AnswerFunction:
    """Fit kernel ridge regression with a Gaussian kernel.

    Width and ridge are chosen by cross-validation on a random selection of samples.
    """
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    samples, some = np.column_stack(coordinates), draw_samples(values.size, 2 * _CHOICE_SAMPLES)
    ridge = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    search = GridSearchCV(
        TransformedTargetRegressor(ridge, transformer=StandardScaler()),
        {
            "regressor__kernelridge__gamma": 2.0 ** np.arange(-3, 9, 2),
            "regressor__kernelridge__alpha": 10.0 ** np.arange(-9, 0, 2),
        },
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="neg_mean_squared_error",
        refit=False,
    )
    with warnings.catch_warnings(action="ignore"):  # from candidates that are nearly singular
        search.fit(samples[some], values[some])
    chosen = search.estimator.set_params(**search.best_params_)
    return answer_in_blocks(chosen.fit(samples, values))


def fit_gaussian_process(coordinates: Sequence[Array], values: Array) -> AnswerFunction:
    """Fit a Gaussian process with a Gaussian kernel, a width per dimension, and noise.

    The hyperparameters maximise the likelihood of a random selection of samples.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    samples, some = np.column_stack(coordinates), draw_samples(values.size, _CHOICE_SAMPLES)
    widths = RBF(np.full(len(coordinates), 0.5), (1e-2, 1e2))
    kernel = ConstantKernel(1.0, (1e-3, 1e6)) * widths + WhiteKernel(0.1, (1e-10, 1e1))
    choosing = GaussianProcessRegressor(kernel, normalize_y=True)
    scaler = StandardScaler().fit(samples)
    with warnings.catch_warnings(action="ignore"):  # from widths at their bounds
        choosing.fit(scaler.transform(samples[some]), values[some])
    chosen = GaussianProcessRegressor(choosing.kernel_, optimizer=None, normalize_y=True)
    return answer_in_blocks(make_pipeline(scaler, chosen).fit(samples, values))


def draw_samples(count: int, most: int) -> Indices:
    """Return the indices of at most `most` of `count` samples, drawn at random."""
    return np.random.default_rng(0).permutation(count)[:most]


def answer_in_blocks(fitted: Any) -> AnswerFunction:
    """Return a function that asks a model of scikit-learn for one block of queries at a time."""

    def answer(queries: Sequence[Array]) -> Array:
        points = np.column_stack(queries)
        starts = range(0, len(points), QUERIES_AT_ONCE)
        blocks = [points[start : start + QUERIES_AT_ONCE] for start in starts]
        return np.concatenate([np.asarray(fitted.predict(block)) for block in blocks])

    return answer
