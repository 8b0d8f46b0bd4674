"""Levels whose settings are chosen by leaving slices out, and refits without the slices."""

import math

import numpy as np

from dkrls_cli.cascade.kernels import gram
from dkrls_cli.tuning.slices.request import Request

_RNG = np.random.default_rng(11)
X = np.sort(_RNG.uniform(0, 10, 14))
ROUGH = np.sin(X)[:, None] * _RNG.standard_normal(40) + 0.3 * _RNG.standard_normal((14, 40))


def answers(x, data, kernel, ridge, queries):
    """Plain kernel ridge regression."""
    system = gram(kernel, x, x) + ridge * np.eye(x.size)
    return gram(kernel, queries, x) @ np.linalg.solve(system, data)


def refitted_error(x, data, kernel, ridge, blocks, closed):
    """Root of the weighted mean square error of every block predicted from all others."""
    return refitted_errors(x, data, kernel, ridge, blocks, closed)[0]


def refitted_errors(x, data, kernel, ridge, blocks, closed):
    """The same, and the root of the weighted geometric mean over the slices."""
    squares, weights = np.empty(x.size), np.ones(x.size)
    for block in blocks:
        rest = np.setdiff1d(np.arange(x.size), block)
        missed = answers(x[rest], data[rest], kernel, ridge, x[block]) - data[block]
        squares[block] = np.mean(missed**2, axis=1)
    if not closed:
        weights[blocks[0]] = weights[blocks[-1]] = 0.1
    typical = np.exp(np.average(np.log(squares), weights=weights) / 2)
    return math.sqrt(np.average(squares, weights=weights)), typical


def request_of(x, data, **given):
    """Return what is asked for a level: settings that are given, and all others to be chosen."""
    names = ("family", "sigma", "ridge", "period", "cycles", "folds", "joint")
    return Request(x, data, **dict.fromkeys(names) | {"cycles": (), "joint": False} | given)


def uneven_level(ranks=(1, 3, 40), seed=0):
    """Return three stretches of 70 samples with steps of 1, 2 and 3, of these ranks, 40 fibres."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.arange(70.0), 70 + 2 * np.arange(70.0), 210 + 3 * np.arange(70.0)])
    parts = [
        rng.standard_normal((70, r)).cumsum(axis=0) @ rng.standard_normal((r, 40)) for r in ranks
    ]
    return x, np.concatenate(parts)


def long_walk(size, columns=3, noise=0.5):
    """Return random walks under noise (size, columns)."""
    rng = np.random.default_rng(9)
    steps = rng.standard_normal((size, columns))
    return steps.cumsum(axis=0) + noise * rng.standard_normal((size, columns))
