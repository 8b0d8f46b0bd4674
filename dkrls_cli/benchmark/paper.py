"""The paper's data, from its formulas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dkrls_cli.kernels import Array
from dkrls_cli.splits import random_split

PAPER_3D_SIZES = (145, 150, 100)
PAPER_3D_ENDS = (4 * np.pi, 8 * np.pi, 12 * np.pi)
PAPER_SIGMAS = (1.0, 0.3, 1.0)


def paper_3d(coordinates: Sequence[Array]) -> Array:
    """The paper's three-dimensional function (section 3.2) on a product grid."""
    x, d1, d2 = coordinates
    return np.asarray(np.cos(x)[:, None, None] * np.sin(d1 / 2)[:, None] * np.sin(d2 / 3))


def paper_3d_split(seed: int) -> tuple[list[Array], list[Array]]:
    """Training (116 x 120 x 80) and validation (29 x 30 x 20) coordinates of the 3D grid."""
    rng = np.random.default_rng(seed)
    axes = [np.linspace(0.1, end, n) for n, end in zip(PAPER_3D_SIZES, PAPER_3D_ENDS, strict=True)]
    splits = [random_split(axis.size, 0.2, rng) for axis in axes]
    return (
        [axis[s.train] for axis, s in zip(axes, splits, strict=True)],
        [axis[s.held] for axis, s in zip(axes, splits, strict=True)],
    )
