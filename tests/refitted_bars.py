"""A small model, its error bars by refits, and one that is rough in the middle."""

import numpy as np

from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

RNG = np.random.default_rng(3)
X, D = np.sort(RNG.uniform(0, 9, 11)), np.linspace(0, 5, 8)
KERNELS = Kernel("matern32", 1.7), Kernel("gaussian", 0.9)
VALUES = RNG.standard_normal((11, 8))
NEW = [np.array([0.7, X[3], 4.4]), np.array([0.1, 2.05, D[2], 4.9])]
SPLINES = (
    Kernel("cubic", 2.0, errors="matern32"),
    Kernel("quintic", 0.6, warp="sqrt", errors="gaussian"),
)


def fitted(joint):
    ridges = (0.0, 0.0) if joint else (1e-3, 1e-2)
    levels = [Level(n, k, r) for n, k, r in zip("xd", KERNELS, ridges, strict=True)]
    return fit_cascade(VALUES, [X, D], levels, joint_ridge=1e-2 if joint else None)


def covariance_left(kernel, ridge, query, nodes):
    system = gram(kernel, nodes, nodes) + ridge * np.eye(nodes.size)
    cross = gram(kernel, query, nodes)
    return 1 + ridge - np.einsum("ij,ij->i", cross, np.linalg.solve(system, cross.T).T)


def left_out(model, axis):
    """Rows that predict every slice from all others, and their variances, by refits."""
    kernel, ridge, nodes = KERNELS[axis], model.levels[axis].ridge, (X, D)[axis]
    rows, variances = np.zeros((nodes.size, nodes.size)), np.empty(nodes.size)
    for j in range(nodes.size):
        rest = np.delete(np.arange(nodes.size), j)
        system = gram(kernel, nodes[rest], nodes[rest]) + ridge * np.eye(rest.size)
        rows[j, rest] = np.linalg.solve(system, gram(kernel, nodes[rest], nodes[[j]])[:, 0])
        variances[j] = covariance_left(kernel, ridge, nodes[[j]], nodes[rest])[0]
    return rows[1:-1], variances[1:-1]


def rough_in_the_middle(period=None):
    """Return a model of noise that is five times as large around the middle of x."""
    x = np.arange(24.0) * (1.0 if period is None else period / 24)
    size = np.where(np.abs(np.arange(24) - 12) < 5, 5.0, 1.0)
    values = np.random.default_rng(5).standard_normal((24, 9)) * size[:, None]
    levels = [Level("x", Kernel("matern32", x[2], period), 0.1), Level("d", KERNELS[1], 0.1)]
    return fit_cascade(values, [x, np.arange(9.0)], levels)
