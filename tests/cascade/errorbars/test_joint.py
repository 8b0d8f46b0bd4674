"""Error bars under a joint ridge, against dense algebra."""

import numpy as np
import pytest

from dkrls_cli.cascade.errorbars.bars import Z90, variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

RNG = np.random.default_rng(3)
X, D = np.sort(RNG.uniform(0, 9, 11)), np.linspace(0, 5, 8)
KERNELS = Kernel("matern32", 1.7), Kernel("gaussian", 0.9)
VALUES = RNG.standard_normal((11, 8))
NEW = [np.array([0.7, X[3], 4.4]), np.array([0.1, 2.05, D[2], 4.9])]


def fitted(joint):
    ridges = (0.0, 0.0) if joint else (1e-3, 1e-2)
    levels = [Level(n, k, r) for n, k, r in zip("xd", KERNELS, ridges, strict=True)]
    return fit_cascade(VALUES, [X, D], levels, joint_ridge=1e-2 if joint else None)


def test_a_joint_ridge_leaves_open_what_one_dense_system_does():
    model = fitted(joint=True)
    known = calibrate(model)
    system = np.kron(*(gram(k, c, c) for k, c in zip(KERNELS, (X, D), strict=True)))
    inverse = np.linalg.inv(system + 1e-2 * np.eye(88))
    missed = inverse @ VALUES.ravel() / np.diag(inverse)
    own = (np.quantile(np.abs(missed) * np.sqrt(np.diag(inverse)), 0.9) / Z90) ** 2
    assert known.scale == pytest.approx(own, rel=1e-8)
    assert known.errors == pytest.approx([np.sqrt(np.mean(missed**2))], rel=1e-8)
    cross = np.kron(*(gram(k, q, c) for k, q, c in zip(KERNELS, NEW, (X, D), strict=True)))
    expected = own * (1 + 1e-2 - np.einsum("ij,jk,ik->i", cross, inverse, cross)).reshape(3, 4)
    expected[1, 2] = 0.0  # a training cell
    np.testing.assert_allclose(variance_on_grid(known, model, NEW), expected, rtol=1e-7)
