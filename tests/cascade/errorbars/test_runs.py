"""Variances of runs of missing cells, against dense solves of every row."""

import numpy as np
import pytest

from dkrls_cli.cascade.errorbars.runs import _beside, variance_in_runs
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

AXES = [np.array([4.0, 0.0, 1.0, 2.5, 6.0, 5.2]), np.arange(9.0) * 40.0, np.zeros(1)]
LEVELS = [
    Level("x", Kernel("matern32", 2.0), 0.01),
    Level("lon", Kernel("matern52", 90.0, period=360.0), 0.02),
    Level("z", Kernel()),
]


def left(cascade, axis, query):
    """What a level leaves open, times a factor of its own."""
    (level,), (nodes,) = cascade.levels, cascade.coordinates
    system = gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
    cross = gram(level.kernel, query, nodes)
    explained = np.einsum("ij,jk,ik->i", cross, np.linalg.inv(system), cross)
    return (axis + 1.0) * (level.kernel.variance + level.ridge - explained)


def run_around(row, place, *, circle):
    """The places of a run of missing cells in a row."""
    inside, size = {place}, row.size
    for step in (1, -1):
        here = place + step
        while (circle or 0 <= here < size) and row[here % size] and here % size not in inside:
            inside.add(here % size)
            here += step
    return sorted(inside)


def test_cells_are_known_as_well_as_the_best_of_their_rows_tells():
    missing = np.random.default_rng(2).random((6, 9, 1)) < 0.5
    missing[2], missing[:, 3] = True, True
    model = fit_cascade(np.zeros((6, 9, 1)), AXES, LEVELS)
    found = variance_in_runs(model, missing, left)
    order = [np.argsort(AXES[0]), np.arange(9)]
    for place in np.ndindex(missing.shape):
        known = [np.inf]
        for axis, circle in ((0, False), (1, True)):
            row = missing[:, place[1], 0] if axis == 0 else missing[place[0], :, 0]
            rank = int(np.flatnonzero(order[axis] == place[axis])[0])
            kept = np.setdiff1d(
                np.arange(row.size), run_around(row[order[axis]], rank, circle=circle)
            )
            if kept.size:
                nodes = AXES[axis][order[axis][kept]]
                others = fit_cascade(np.zeros(kept.size), [nodes], [LEVELS[axis]])
                known.append(left(others, axis, AXES[axis][[place[axis]]])[0])
        expected = min(known) if missing[place] else 0.0
        assert found[place] == pytest.approx(expected, rel=1e-9)
    assert np.isinf(found[2, 3, 0])


def test_far_slices_are_not_asked():
    assert _beside(99, 103, 300, circle=False).tolist() == [*range(68, 100), *range(103, 135)]
    assert _beside(0, 4, 300, circle=True).tolist() == [0, *range(4, 36), *range(269, 300)]
    assert _beside(-1, 300, 300, circle=False).size == 0
