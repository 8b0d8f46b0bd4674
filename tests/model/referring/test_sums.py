"""Sums over tiles are those over all of the data."""

import pickle

import numpy as np
import pytest
from chunked_grids import InMemory, fitted, globe

from dkrls_cli.cascade.streaming.windows import PointRows
from dkrls_cli.model.referring.sums import PointSums, TileTask
from dkrls_cli.model.streaming.answering import stand_in


@pytest.mark.parametrize("sizes", [(14, 13, 12), (3, 4, 5), (1, 1, 1)])
@pytest.mark.parametrize("kept", [np.arange(14), np.array([2, 3, 11])])
def test_sums_over_tiles(sizes, kept):
    data = globe()
    model = stand_in(fitted(data, poles="none", mean=0.3))
    rng = np.random.default_rng(1)
    rows = {
        1: PointRows(rng.integers(0, 9, 20), rng.standard_normal((20, 4)), 13),
        2: PointRows(rng.integers(0, 12, 20), rng.standard_normal((20, 3)), 12),
    }
    sums = PointSums(model, rows, {0: kept})
    matrices = [own.matrix(slice(0, own.samples)) for own in rows.values()]
    expected = np.einsum("pa,pb,tab->pt", *matrices, data.values[kept] - 0.3)
    found = np.zeros(sums.shape)
    task = pickle.loads(pickle.dumps(TileTask(InMemory(data.values), sums)))
    for tile in sums.needs().tiles(model.shape, sizes):
        points, part, added = task(tile)
        found[(points, *part)] += added
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_bytes_of_a_point_are_its_rows_and_its_sums():
    rows = {0: PointRows(np.zeros(2, int), np.ones((2, 7)), 9)}
    model = stand_in(fitted(globe(), poles="none"))
    sums = PointSums(model, rows, {1: np.arange(5)})
    assert sums.bytes_each == 8 * 8 + 32 * 5
    assert sums.shape == (2, 5)
