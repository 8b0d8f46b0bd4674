"""What a model keeps of its training."""

import numpy as np
import pytest

from dkrls_cli.gaps.solve import Completed
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.training.result import missing_facts, solve_notes

RNG = np.random.default_rng(5)
X, D = np.linspace(0, 4, 9), np.sort(RNG.uniform(0, 6, 11))
CLEAN = np.sin(np.add.outer(X, D / 2)) + 3.0


def test_missing_cells_are_described_by_share_and_place():
    observed = np.ones((4, 5, 10), bool)
    observed[:2, 0] = False  # at all times
    observed[3, 4, 3:5] = False  # here and there
    axes = as_grid(np.zeros((4, 5, 10)), {"x": range(4), "y": range(5), "time": range(10)}).axes
    done = Completed(np.zeros((4, 5, 10)), 7, 1e-8, converged=True)
    assert missing_facts(observed, axes, 2, done) == {
        "share": pytest.approx(22 / 200),
        "pattern": "10 % at all time, 1 % here and there",
        "typical_gap": "x 1 x y 1 x time 2",
        "iterations": 7,
        "residual": 1e-8,
    }
    observed[3, 4] = True
    assert missing_facts(observed, axes, 2, done)["pattern"] == "10 % at all time"
    turned = missing_facts(observed.transpose(2, 0, 1), axes[2:] + axes[:2], 0, done)
    assert turned["pattern"] == "10 % at all time"
    assert turned["typical_gap"] == "time 10 x x 2 x y 1"


def test_a_solve_that_converged_has_no_note():
    assert solve_notes(Completed(CLEAN, 5, 1e-3, converged=True)) == []
    (note,) = solve_notes(Completed(CLEAN, 5, 1e-3, converged=False))
    assert "to 0.001 only, in 5 steps; a larger ridge or a shorter sigma" in note
