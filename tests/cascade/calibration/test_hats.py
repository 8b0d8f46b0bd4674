"""Linear interpolation between cells, against numpy's."""

import numpy as np
import pytest

from dkrls_cli.cascade.calibration.hats import hats_of, interpolate_at_points
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level


@pytest.mark.parametrize("period", [None, 12.0])
@pytest.mark.parametrize("nodes", [[0.0, 3.0, 4.0, 9.0], [9.0, 2.0, 4.0, 3.0], [5.0]])
def test_hats_are_linear_interpolation(nodes: list[float], period: float | None) -> None:
    axis = np.array(nodes)
    values = np.cos(axis)
    model = fit_cascade(values, [axis], [Level("z", Kernel(period=period))], joint_ridge=0.1)
    query = np.concatenate([np.linspace(-20, 30, 101), axis])
    rows = hats_of(model, 0, query)
    order = np.argsort(axis)
    expected = np.interp(query, axis[order], values[order], period=period)
    np.testing.assert_allclose((rows @ values[:, None])[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(rows.dense(axis.size) @ values, expected, atol=1e-12)
    np.testing.assert_allclose(rows.dense(axis.size).sum(axis=1), 1.0, atol=1e-14)
    assert (rows.dense(axis.size) >= 0).all()


def test_points_have_the_values_of_the_grid():
    """Also where one axis is no part of the points."""
    rng = np.random.default_rng(0)
    axes = [np.arange(5.0), np.arange(4.0), np.arange(3.0)]
    levels = [Level(name, Kernel()) for name in "abc"]
    cells = rng.standard_normal((5, 4, 3))
    model = fit_cascade(cells, axes, levels, joint_ridge=0.1)
    points = [rng.uniform(0, 4, 6), rng.uniform(0, 3, 6), np.array([0.5, 2.0])]
    hats = [hats_of(model, axis, query) for axis, query in enumerate(points)]
    found = interpolate_at_points(cells, hats, 6, [2])
    dense = [hat.dense(size) for hat, size in zip(hats, cells.shape, strict=True)]
    np.testing.assert_allclose(found, np.einsum("pi,pj,qk,ijk->pq", *dense, cells), atol=1e-13)
