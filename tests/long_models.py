"""A model with a long level, and the same with a dense one."""

from __future__ import annotations

import numpy as np

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import decompose


def long_model(joint: bool, dense: bool) -> Cascade:
    """Return a model of 1100 x 3 samples, the long one dense if asked for."""
    t, z = np.arange(1100.0), np.array([0.0, 1.0, 2.5])
    values = np.sin(t / 30)[:, None] * (1 + z) + 2.0
    ridges = (0.0, 0.0) if joint else (1e-3, 1e-2)
    kernels = Kernel("matern52", 20.0, constant=0.4), Kernel("gaussian", 1.5)
    levels = [Level(n, k, r) for n, k, r in zip("tz", kernels, ridges, strict=True)]
    cascade = fit_cascade(values, [t, z], levels, joint_ridge=1e-3 if joint else None)
    if dense:
        cascade._made[0] = decompose(gram(kernels[0], t, t)).solvable(1e-3)
        cascade._made[1] = decompose(gram(kernels[1], z, z))
    return cascade
