"""Training on complete grids."""

import numpy as np
import pytest

from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.complete import train

RNG = np.random.default_rng(5)
X, D = np.linspace(0, 4, 9), np.sort(RNG.uniform(0, 6, 11))
CLEAN = np.sin(np.add.outer(X, D / 2)) + 3.0


def test_a_complete_grid_is_trained_with_its_settings():
    grid = as_grid(CLEAN, {"x": X, "d": D})
    plan = plan_fit(grid.axes)

    def trained(**settings):
        return train(grid, plan, Settings(**settings)).cascade

    assert trained().mean == pytest.approx(CLEAN.mean())
    assert trained(mean=2.5).mean == 2.5
    assert trained(dtype="float32").core.dtype == np.float32
    assert trained(folds=3).levels != trained().levels
    rough = np.random.default_rng(0).standard_normal(CLEAN.shape)
    wide = Settings(kernel="gaussian", sigma=100.0, ridge=1e-6, compact=True)
    plan = plan_fit(grid.axes, wide)
    small = train(as_grid(rough, {"x": X, "d": D}), plan, wide).cascade
    assert small.dropped > 0
