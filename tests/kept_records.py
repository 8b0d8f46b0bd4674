"""Cascades of two levels that records keep, and headers as a file gives them back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level

X, T = np.linspace(0, 1, 30), np.arange(20.0)
SMOOTH = np.sin(3 * X[:, None] + T / 4)
NOISE = np.random.default_rng(2).standard_normal((30, 20))
KERNELS = Kernel("matern52", 0.4), Kernel("matern32", 5.0, None, 1.0, 7.0, 2.0)
NEW = [np.array([0.03, 0.7]), np.array([-1.0, 4.4, 9.0])]


def fitted(values: np.ndarray = NOISE, joint: float | None = None, **how: Any) -> Cascade:
    """Return a cascade of values on X and T, with a ridge on each level or a joint one."""
    ridge = 1e-3 if joint is None else 0.0
    levels = [Level(name, kernel, ridge) for name, kernel in zip("xt", KERNELS, strict=True)]
    return fit_cascade(values, [X, T], levels, joint_ridge=joint, **how)


def through_a_file(header: Any) -> Any:
    """Return a header as it is read again."""
    return json.loads(json.dumps(header))
