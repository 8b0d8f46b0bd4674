"""The paper's datasets from its formulas, and the settings and results that it publishes.

Sections and tables are those of "Deep Kernel Recursive Least-Squares Algorithm" (Mohamadipanah,
Heydari and Chowdhary, arXiv 1704.04522). Nothing here was measured by this package.
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
from dkrls_cli.model.validation.splits import random_split

# Samples per dimension of the 3D grid, and its last coordinates; the first is 0.1 (section 3.2).
PAPER_3D_SIZES = (145, 150, 100)
PAPER_3D_ENDS = (4 * np.pi, 8 * np.pi, 12 * np.pi)

# The paper's length scales sigma_I, sigma_H1, sigma_H2 for the 3D data (Appendix B).
PAPER_SIGMAS = (1.0, 0.3, 1.0)

PAPER_2D, PAPER_3D, INTEL_LAB, CROSS = DATASETS = ("paper-2d", "paper-3d", "intel-lab", "cross")

# Ridge of D-KRLS. The paper gives none; below this the inverses of its recursion are round-off.
RIDGE = 1e-8


def paper_2d(coordinates: Sequence[Array]) -> Array:
    """Return the paper's two-dimensional function (section 3.1) on a product grid."""
    x, d = coordinates
    return np.asarray(np.sin(x)[:, None] * np.cos(d / 2))


def paper_3d(coordinates: Sequence[Array]) -> Array:
    """Return the paper's three-dimensional function (section 3.2) on a product grid."""
    x, d1, d2 = coordinates
    return np.asarray(np.cos(x)[:, None, None] * np.sin(d1 / 2)[:, None] * np.sin(d2 / 3))


def paper_3d_split(seed: int) -> tuple[list[Array], list[Array]]:
    """Return training (116 x 120 x 80) and validation (29 x 30 x 20) coordinates of the 3D grid."""
    rng = np.random.default_rng(seed)
    axes = _axes(PAPER_3D_SIZES, PAPER_3D_ENDS)
    splits = [random_split(axis.size, 0.2, rng) for axis in axes]
    return (
        [axis[s.train] for axis, s in zip(axes, splits, strict=True)],
        [axis[s.held] for axis, s in zip(axes, splits, strict=True)],
    )


def synthetic_dataset(name: str) -> Dataset:
    """Return the dataset of one of the paper's formulas, at the paper's size."""
    if name == PAPER_2D:  # section 3.1: 116 x 120 train
        axes = _axes(PAPER_3D_SIZES[:2], PAPER_3D_ENDS[:2])
        return Dataset(name, axes, paper_2d(axes), (29, 30))
    if name == PAPER_3D:  # section 3.2: 116 x 120 x 80 train
        axes = _axes(PAPER_3D_SIZES, PAPER_3D_ENDS)
        return Dataset(name, axes, paper_3d(axes), (29, 30, 20))
    axes = _axes((48, 50), (0.4244, 0.8488))  # section 3.4: 37 x 38 train
    return Dataset(CROSS, axes, paper_2d(axes), (11, 12))


def intel_lab_dataset(temperatures: Array) -> Dataset:
    """Return the dataset of sensors by times (section 3.3): a fifth of the times is held out."""
    sensors, times = temperatures.shape
    axes = (np.arange(1.0, sensors + 1), np.arange(301.0, 301.0 + times))
    return Dataset(INTEL_LAB, axes, temperatures, (0, round(0.2 * times)))


def _axes(sizes: Sequence[int], ends: Sequence[float]) -> tuple[Array, ...]:
    """Return even coordinates from 0.1 to each end."""
    return tuple(np.linspace(0.1, end, size) for size, end in zip(sizes, ends, strict=True))


@dataclass(frozen=True)
class PublishedResult:
    """Figures that the paper reports for a method.

    Attributes
    ----------
    seconds
        Time of training.
    error
        Largest error on the validation set. For the Intel Lab it is divided by the largest
        temperature; on the grids of sections 3.1 and 3.2 that makes no difference, as their largest
        value is 1.
    mean_error
        Mean error on the validation set; NaN where the paper gives none.
    """

    seconds: float
    error: float
    mean_error: float = math.nan


PUBLISHED: Mapping[str, Mapping[str, PublishedResult]] = MappingProxyType(
    {
        PAPER_2D: {  # Table 2 (label Comparison)
            "dkrls": PublishedResult(2.93, 0.0134),
            "qklms": PublishedResult(39.39, 0.8401),
            "fbkrls": PublishedResult(285.76, 0.0572),
            "skrls": PublishedResult(108.66, 0.0232),
            "norma": PublishedResult(38.61, 0.3502),
            "swkrls": PublishedResult(1097.26, 0.9971),
        },
        PAPER_3D: {
            "dkrls": PublishedResult(910.23, 0.0171),
            "qklms": PublishedResult(68168.58, 0.4469),
            "fbkrls": PublishedResult(12994.17, 0.9232),
            "skrls": PublishedResult(4608.40, 0.8067),
            "norma": PublishedResult(2309.76, 0.9949),
            "swkrls": PublishedResult(7696.30, 0.9949),
        },
        INTEL_LAB: {
            "dkrls": PublishedResult(1.11, 0.1244),
            "qklms": PublishedResult(1.54, 0.6220),
            "fbkrls": PublishedResult(39.88, 0.2182),
            "skrls": PublishedResult(5.64, 0.1582),
            "norma": PublishedResult(1.49, 0.3422),
            "swkrls": PublishedResult(288.77, 0.9895),
        },
        CROSS: {  # Table 1 (label Cross), which has mean errors too
            "dkrls": PublishedResult(0.3940, 0.0519, 0.0029),
            "krls": PublishedResult(22.6461, 0.0418, 0.0035),
            "nonstill": PublishedResult(22.6675, 1.5323, 0.0728),
        },
    }
)
"""The paper's results by dataset and method."""

# Budget of the paper's S-KRLS, which has none: more samples than any dataset has.
_UNLIMITED = 10**9

PAPER_SETTINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        PAPER_2D: {  # Table 3 (Appendix B)
            "dkrls": {"sigmas": (1.0, 0.3), "ridge": RIDGE},
            "qklms": {"sigma": 1.0, "step": 0.15, "radius": 1e-6},
            "fbkrls": {"sigma": 1.0, "budget": 800, "ridge": 0.1, "label_step": 0.0},
            "skrls": {"sigma": 1.0, "tolerance": 0.01, "budget": _UNLIMITED},
            "norma": {"sigma": 1.0, "window": 13920, "step": 0.02, "regularization": 1e-4},
            "swkrls": {"sigma": 1.0, "window": 1000, "ridge": 0.01},
        },
        PAPER_3D: {
            "dkrls": {"sigmas": PAPER_SIGMAS, "ridge": RIDGE},
            "qklms": {"sigma": 0.5, "step": 0.03, "radius": 0.0005},
            "fbkrls": {"sigma": 0.5, "budget": 600, "ridge": 0.01, "label_step": 0.03},
            "skrls": {"sigma": 1.0, "tolerance": 0.99, "budget": _UNLIMITED},
            "norma": {"sigma": 1.0, "window": 10_000, "step": 0.005, "regularization": 1e-7},
            "swkrls": {"sigma": 1.0, "window": 300, "ridge": 0.01},
        },
        INTEL_LAB: {
            "dkrls": {"sigmas": (1.0, 1.5), "ridge": RIDGE},
            "qklms": {"sigma": 3.5, "step": 0.15, "radius": 1e-6},
            "fbkrls": {"sigma": 3.5, "budget": 500, "ridge": 0.01, "label_step": 0.03},
            "skrls": {"sigma": 3.5, "tolerance": 0.2, "budget": _UNLIMITED},
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
"""The paper's settings by dataset and method, as arguments of the baselines."""
