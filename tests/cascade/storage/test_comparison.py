"""Differences of answers are found at all cells, and told by cheap tests where they were found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.storage import comparison as module
from dkrls_cli.cascade.storage.comparison import Comparison, half_way

AXES = [np.arange(9.0), np.arange(7.0)]


def fitted() -> Cascade:
    values = np.random.default_rng(0).standard_normal((9, 7))
    return fit_cascade(values, AXES, [Level(d, Kernel("matern52", 2.0), 1e-3) for d in "xy"])


def off_at(full: Cascade, cell: tuple[int, int], by: float) -> Cascade:
    """Return a cascade whose data differs in one cell."""
    core = np.array(full.core)
    core[cell] += by
    return replace(full, core=core)


@pytest.mark.parametrize("kept", [0, 10**6])
def test_a_difference_is_that_of_all_answers(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS_KEPT", kept)
    monkeypatch.setattr(module, "_COORDINATES_AT_ONCE", 4)
    full = fitted()
    small = off_at(full, (7, 2), 0.1)
    queries = [np.concatenate([c, half_way(c, None)]) for c in AXES]
    answers = full.predict(queries) - small.predict(queries)
    found = Comparison(full, queries, 1.0).measure(small)
    assert found is not None
    assert found.rms == pytest.approx(np.sqrt(np.mean(answers**2)))
    assert found.largest == pytest.approx(max(np.abs(answers).max(), 0.1))


def test_cells_where_one_cascade_failed_are_tested_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAMPLE_CELLS", 1)
    full = fitted()
    cells = Comparison(full, AXES, 0.05)
    queries, _ = cells._sample
    far = (8, 6) if queries[0][0] < 4 else (0, 0)
    bad, worse = off_at(full, far, 0.1), off_at(full, far, 0.2)
    assert cells.is_likely(worse)
    assert cells.measure(bad) is None
    assert not cells.is_likely(worse)
    assert cells.is_likely(full)


def test_data_is_compared_where_answers_do_not_tell() -> None:
    """Answers to no cells differ by nothing; the data does."""
    full = fitted()
    cells = Comparison(full, [AXES[0][:1], AXES[1][:1]], 0.05)
    assert cells.measure(full) is not None
    assert cells.measure(off_at(full, (8, 6), 0.1)) is None


@pytest.mark.parametrize(
    ("nodes", "period", "expected"),
    [
        ([3.0, 0.0, 1.0], None, [0.5, 2.0]),
        ([350.0, 10.0, 100.0], 360.0, [55.0, 225.0, 360.0]),
        ([-10.0, 10.0], 360.0, [180.0, 360.0]),
        ([7.0], None, []),
    ],
)
def test_half_way_between_neighbours(nodes, period, expected) -> None:
    np.testing.assert_allclose(half_way(np.array(nodes), period), expected)
