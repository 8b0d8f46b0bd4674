"""A grid with missing cells that several tests share."""

import numpy as np

from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid


def waves(shape: tuple[int, ...], missing: float = 0.2) -> Grid:
    """A smooth field without some of its cells."""
    rng = np.random.default_rng(5)
    places = np.meshgrid(*map(np.arange, shape), indexing="ij")
    values = np.sin(sum((i + 1) * p / 9 for i, p in enumerate(places)))
    values[rng.random(shape) < missing] = np.nan
    names = ("time", "lat", "lon")[-len(shape) :]
    return Grid(
        values, tuple(axis_of(n, np.arange(float(m))) for n, m in zip(names, shape, strict=True))
    )
