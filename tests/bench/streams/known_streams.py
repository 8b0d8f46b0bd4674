"""A stream that the tests of this folder share."""

import numpy as np

from dkrls_cli.bench.streams.data import StreamData, make_stream
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid

NO_LIMIT = 1e6


def waves(steps: int = 40, series: int = 3, noise: float = 0.1) -> StreamData:
    """Slow waves with noise, a series for each phase."""
    rng = np.random.default_rng(0)
    times = np.arange(float(steps))
    values = np.sin(times[:, None] / 7 + np.arange(series)) + noise * rng.normal(
        size=(steps, series)
    )
    axes = (axis_of("time", times), axis_of("place", np.arange(float(series))))
    return make_stream(Grid(values, axes))
