"""Which coordinates train and which are held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import SettingError


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of one dimension, both ascending."""

    train: NDArray[np.intp]
    held: NDArray[np.intp]


def random_split(
    size: int, fraction: float, rng: np.random.Generator, *, keep_edges: bool = False
) -> Split:
    """Hold a share of one dimension out at random: the paper's protocol, dimension by dimension.

    At least one index trains. With `keep_edges` the first and the last always do, so that every
    held-out coordinate lies between two that train.
    """
    if not 0 <= fraction < 1:
        raise SettingError(f"Invalid hold-out fraction {fraction}. It must be in [0, 1).")
    candidates = np.arange(1, size - 1) if keep_edges else np.arange(size)
    count = min(round(fraction * size), candidates.size, size - 1)
    held = np.sort(rng.choice(candidates, count, replace=False))
    return Split(np.setdiff1d(np.arange(size), held, assume_unique=True), held)


def alternate_split(size: int) -> Split:
    """Hold every second index out, the edges kept."""
    held = np.arange(1, size - 1, 2)
    return Split(np.setdiff1d(np.arange(size), held, assume_unique=True), held)
