"""Splits of the coordinates of a dimension into those that train and those that are held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Indices
from dkrls_cli.errors import SettingError


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of one dimension that train and that are held out, both ascending."""

    train: Indices
    held: Indices


def random_split(
    size: int, fraction: float, rng: np.random.Generator, *, keep_edges: bool = False
) -> Split:
    """Hold out a fraction of one dimension at random: the paper's protocol.

    Parameters
    ----------
    size
        Number of coordinates.
    fraction
        Share of them to hold out, 0 or above and below 1. At least one coordinate trains.
    rng
        Source of the random choice.
    keep_edges
        Whether the first and the last coordinate always train, so that every coordinate held out
        lies between two that train.

    Returns
    -------
    Split
        Every index is in one of its two parts.

    Raises
    ------
    SettingError
        If the fraction is not in [0, 1).

    Examples
    --------
    >>> random_split(10, 0.2, np.random.default_rng(0)).held.size
    2
    """
    if not 0 <= fraction < 1:
        raise SettingError(f"Invalid hold-out fraction {fraction}. It must be in [0, 1).")
    candidates = np.arange(1, size - 1) if keep_edges else np.arange(size)
    count = min(round(fraction * size), candidates.size, size - 1)
    held = np.sort(rng.choice(candidates, count, replace=False))
    return _split(size, held)


def alternate_split(size: int) -> Split:
    """Hold out every second index; the first and the last train.

    Examples
    --------
    >>> alternate_split(5).held.tolist()
    [1, 3]
    """
    return _split(size, np.arange(1, size - 1, 2))


def _split(size: int, held: Indices) -> Split:
    return Split(np.setdiff1d(np.arange(size), held, assume_unique=True), held)
