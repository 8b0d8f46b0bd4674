"""Small grids with missing cells, and dense solves to compare with."""

from functools import reduce

import numpy as np

from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import decompose


def case(shape, family="matern32", period=None, seed=0, share=0.3):
    """Return noise on a small uneven grid of which some cells are missing, and kernels for it."""
    rng = np.random.default_rng(seed)
    axes = [rng.permutation(np.linspace(0, 12, m) + rng.uniform(0, 0.4, m)) for m in shape]
    kernels = [Kernel(family, 0.8 + 0.3 * axis, period) for axis in range(len(shape))]
    values = rng.standard_normal(shape)
    values[rng.random(shape) < share] = np.nan
    return values, axes, kernels


def spectra_of(axes, kernels):
    return [decompose(gram(k, c, c)) for k, c in zip(kernels, axes, strict=True)]


def dense_answers(values, axes, kernels, ridge, queries, mean=0.0):
    """Return kernel ridge regression over the observed cells, from one dense system."""
    observed = np.isfinite(values).ravel()
    whole = reduce(np.kron, [gram(k, c, c) for k, c in zip(kernels, axes, strict=True)])
    system = whole[np.ix_(observed, observed)] + ridge * np.eye(observed.sum())
    weights = np.linalg.solve(system, values.ravel()[observed] - mean)
    crosses = [gram(k, q, c) for k, q, c in zip(kernels, queries, axes, strict=True)]
    cross = reduce(np.kron, crosses)[:, observed]
    return (cross @ weights + mean).reshape([q.size for q in queries])


def model_of(completed, axes, kernels, ridge, mean=0.0):
    levels = [Level(f"d{axis}", kernel) for axis, kernel in enumerate(kernels)]
    return fit_cascade(completed.values, axes, levels, joint_ridge=ridge, mean=mean)


def field(seed=0):
    """Return a smooth field with some noise, the same with gaps, and its axes.

    The gaps are a mask that lasts along the last axis, and scattered cells.
    """
    rng = np.random.default_rng(seed)
    axes = [np.linspace(0, 6, 20), np.linspace(0, 5, 14), np.arange(12.0)]
    truth = np.sin(axes[0])[:, None, None] * np.cos(axes[1])[:, None] * np.sin(axes[2] / 3 + 1)
    values = truth + 0.05 * rng.standard_normal(truth.shape)
    holed = values.copy()
    holed[3:8, 4:9] = np.nan
    holed[rng.random(values.shape) < 0.15] = np.nan
    return values, holed, axes
