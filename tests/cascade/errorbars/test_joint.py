"""Error bars under a joint ridge, against dense algebra."""

import numpy as np
import pytest
from refitted_bars import KERNELS, NEW, VALUES, D, X, fitted

from dkrls_cli.cascade.errorbars.bars import Z90, variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.kernels import gram


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
