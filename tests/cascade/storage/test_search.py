"""The search ends where one direction less along any axis is too much."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.storage import search as module
from dkrls_cli.cascade.storage.comparison import Comparison
from dkrls_cli.cascade.storage.layout import principal_directions, turn
from dkrls_cli.cascade.storage.search import Search


@pytest.mark.parametrize("tolerance", [1.0, 0.1, 0.01])
def test_no_smaller_truncation_holds(tolerance: float) -> None:
    rng = np.random.default_rng(0)
    values = sum(
        0.4**k * np.einsum("i,j,k->ijk", *(rng.standard_normal(m) for m in (8, 7, 6)))
        for k in range(6)
    )
    axes = [np.arange(float(m)) for m in (8, 7, 6)]
    full = fit_cascade(values, axes, [Level(d, Kernel("matern52", 2.0), 1e-3) for d in "xyz"])
    layout = turn(full, principal_directions(full))
    found = Search(layout, Comparison(full, axes, tolerance), "f8").run()
    assert found is not None
    ranks, difference = found
    assert difference.largest <= tolerance
    for axis in layout.shrinkable(ranks):
        fewer = tuple(rank - (a == axis) for a, rank in enumerate(ranks))
        off = layout.truncate(fewer, "f8").predict(axes) - full.predict(axes)
        assert np.abs(off).max() > tolerance


@pytest.mark.parametrize("passing", range(8))
@pytest.mark.parametrize("guess", range(7))
def test_the_last_place_that_passes_is_found_from_any_guess(passing: int, guess: int) -> None:
    found = module._last(lambda place: place < passing, guess)
    assert found == (min(passing - 1, guess) if passing else None)
