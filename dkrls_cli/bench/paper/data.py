"""The paper's data from its formulas, and what it says of them: settings and figures.

Sections and tables are those of "Deep Kernel Recursive Least-Squares Algorithm" (Mohamadipanah,
Heydari and Chowdhary). Nothing here was measured by this package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.model.splits import random_split

PAPER_3D_SIZES = (145, 150, 100)
PAPER_3D_ENDS = (4 * np.pi, 8 * np.pi, 12 * np.pi)
PAPER_SIGMAS = (1.0, 0.3, 1.0)

TWO, THREE, INTEL, CROSS = NAMES = ("paper-2d", "paper-3d", "intel-lab", "cross")
RIDGE = 1e-8
"""Of D-KRLS. The paper names none; with less the inverses of its recursion are round-off."""


def paper_2d(coordinates: Sequence[Array]) -> Array:
    """The paper's two-dimensional function (section 3.1) on a product grid."""
    x, d = coordinates
    return np.asarray(np.sin(x)[:, None] * np.cos(d / 2))


def paper_3d(coordinates: Sequence[Array]) -> Array:
    """The paper's three-dimensional function (section 3.2) on a product grid."""
    x, d1, d2 = coordinates
    return np.asarray(np.cos(x)[:, None, None] * np.sin(d1 / 2)[:, None] * np.sin(d2 / 3))


def paper_3d_split(seed: int) -> tuple[list[Array], list[Array]]:
    """Training (116 x 120 x 80) and validation (29 x 30 x 20) coordinates of the 3D grid."""
    rng = np.random.default_rng(seed)
    axes = _axes(PAPER_3D_SIZES, PAPER_3D_ENDS)
    splits = [random_split(axis.size, 0.2, rng) for axis in axes]
    return (
        [axis[s.train] for axis, s in zip(axes, splits, strict=True)],
        [axis[s.held] for axis, s in zip(axes, splits, strict=True)],
    )


def synthetic(name: str) -> Dataset:
    """The grid of one of the paper's formulas, at its size."""
    if name == TWO:  # section 3.1: 116 x 120 train
        axes = _axes(PAPER_3D_SIZES[:2], PAPER_3D_ENDS[:2])
        return Dataset(name, axes, paper_2d(axes), (29, 30))
    if name == THREE:  # section 3.2: 116 x 120 x 80 train
        axes = _axes(PAPER_3D_SIZES, PAPER_3D_ENDS)
        return Dataset(name, axes, paper_3d(axes), (29, 30, 20))
    axes = _axes((48, 50), (0.4244, 0.8488))  # section 3.4: 37 x 38 train
    return Dataset(CROSS, axes, paper_2d(axes), (11, 12))


def intel_lab(temperatures: Array) -> Dataset:
    """Sensors by times (section 3.3): a fifth of the times is held out, no sensor."""
    sensors, times = temperatures.shape
    axes = (np.arange(1.0, sensors + 1), np.arange(301.0, 301.0 + times))
    return Dataset(INTEL, axes, temperatures, (0, round(0.2 * times)))


def _axes(sizes: Sequence[int], ends: Sequence[float]) -> tuple[Array, ...]:
    return tuple(np.linspace(0.1, end, size) for size, end in zip(sizes, ends, strict=True))


@dataclass(frozen=True)
class Figure:
    """What the paper reports of a method: seconds of training, and errors on the validation set.

    `error` is the maximum error: of the Intel Lab over the largest temperature, else as it is,
    which on the synthetic grids of section 3.1 and 3.2 is the same, their largest value being 1.
    """

    seconds: float
    error: float
    mean_error: float = math.nan


FIGURES: Mapping[str, Mapping[str, Figure]] = MappingProxyType(
    {
        TWO: {  # Table 2 (label Comparison)
            "dkrls": Figure(2.93, 0.0134),
            "qklms": Figure(39.39, 0.8401),
            "fbkrls": Figure(285.76, 0.0572),
            "aldkrls": Figure(108.66, 0.0232),
            "norma": Figure(38.61, 0.3502),
            "swkrls": Figure(1097.26, 0.9971),
        },
        THREE: {
            "dkrls": Figure(910.23, 0.0171),
            "qklms": Figure(68168.58, 0.4469),
            "fbkrls": Figure(12994.17, 0.9232),
            "aldkrls": Figure(4608.40, 0.8067),
            "norma": Figure(2309.76, 0.9949),
            "swkrls": Figure(7696.30, 0.9949),
        },
        INTEL: {
            "dkrls": Figure(1.11, 0.1244),
            "qklms": Figure(1.54, 0.6220),
            "fbkrls": Figure(39.88, 0.2182),
            "aldkrls": Figure(5.64, 0.1582),
            "norma": Figure(1.49, 0.3422),
            "swkrls": Figure(288.77, 0.9895),
        },
        CROSS: {  # Table 1 (label Cross), which has mean errors too
            "dkrls": Figure(0.3940, 0.0519, 0.0029),
            "krls": Figure(22.6461, 0.0418, 0.0035),
            "nonstill": Figure(22.6675, 1.5323, 0.0728),
        },
    }
)

_UNLIMITED = 10**9
"""The paper's S-KRLS has no budget."""

SETTINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        TWO: {  # Table 3 (Appendix B)
            "dkrls": {"sigmas": (1.0, 0.3), "ridge": RIDGE},
            "qklms": {"sigma": 1.0, "step": 0.15, "radius": 1e-6},
            "fbkrls": {"sigma": 1.0, "budget": 800, "ridge": 0.1, "label_step": 0.0},
            "aldkrls": {"sigma": 1.0, "tolerance": 0.01, "budget": _UNLIMITED},
            "norma": {"sigma": 1.0, "window": 13920, "step": 0.02, "regularization": 1e-4},
            "swkrls": {"sigma": 1.0, "window": 1000, "ridge": 0.01},
        },
        THREE: {
            "dkrls": {"sigmas": PAPER_SIGMAS, "ridge": RIDGE},
            "qklms": {"sigma": 0.5, "step": 0.03, "radius": 0.0005},
            "fbkrls": {"sigma": 0.5, "budget": 600, "ridge": 0.01, "label_step": 0.03},
            "aldkrls": {"sigma": 1.0, "tolerance": 0.99, "budget": _UNLIMITED},
            "norma": {"sigma": 1.0, "window": 10_000, "step": 0.005, "regularization": 1e-7},
            "swkrls": {"sigma": 1.0, "window": 300, "ridge": 0.01},
        },
        INTEL: {
            "dkrls": {"sigmas": (1.0, 1.5), "ridge": RIDGE},
            "qklms": {"sigma": 3.5, "step": 0.15, "radius": 1e-6},
            "fbkrls": {"sigma": 3.5, "budget": 500, "ridge": 0.01, "label_step": 0.03},
            "aldkrls": {"sigma": 3.5, "tolerance": 0.2, "budget": _UNLIMITED},
            "norma": {"sigma": 3.5, "window": 4160, "step": 0.04, "regularization": 1e-6},
            "swkrls": {"sigma": 3.5, "window": 1000, "ridge": 0.01},
        },
        CROSS: {  # section 3.4 gives a' = b' = 1; length scales are those of the 2D data
            "dkrls": {"sigmas": (1.0, 0.3), "ridge": RIDGE},
            "krls": {"sigma": 1.0, "ridge": 1e-6},
            "nonstill": {"time_rate": 1.0, "space_rate": 1.0, "ridge": 1e-6},
        },
    }
)
"""By dataset and method, in the words of the baselines."""
