"""The sequential preconditioner: exact with all neighbours, near with few."""

import numpy as np
import pytest
from lasting_masks import coast

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps.lasting.sequential import (
    SequentialSolver,
    Side,
    _find_neighbours,
    _levels,
    _order,
    _stencil,
)


def sides_of(shape, family="matern32", sigma=3.0, circle=False):
    result = []
    for axis, size in enumerate(shape):
        period = float(size) if circle and axis else None
        own = gram(Kernel(family, sigma, period), np.arange(float(size)), np.arange(float(size)))
        result.append(Side(own, 1.0 / sigma, period is not None))
    return result


def precision_of(missing, sides, ridge):
    """(C^-1)_mm of a whole grid, dense."""
    whole = np.array([[1.0]])
    for side in sides:
        whole = np.kron(whole, side.gram)
    flat = np.flatnonzero(missing)
    inverse = np.linalg.inv(whole + ridge * np.eye(len(whole)))
    return inverse[np.ix_(flat, flat)]


@pytest.mark.parametrize("shape", [(40,), (9, 11), (4, 5, 6)])
def test_with_all_cells_as_neighbours_it_is_the_inverse(shape):
    rng = np.random.default_rng(1)
    missing = rng.random(shape) < 0.4
    sides = sides_of(shape, circle=len(shape) > 1)
    near = SequentialSolver.build(missing, sides, 1e-2, neighbours=missing.size)
    found = near(np.eye(np.count_nonzero(missing)))
    expected = np.linalg.inv(precision_of(missing, sides, 1e-2))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("circle", [False, True])
def test_few_neighbours_leave_eigenvalues_near_one(circle):
    missing = coast((24, 30))
    sides = sides_of(missing.shape, circle=circle)
    matrix = precision_of(missing, sides, 1e-4)
    near = SequentialSolver.build(missing, sides, 1e-4, neighbours=24)
    inverse = near(np.eye(len(matrix)))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12)
    eigenvalues = np.linalg.eigvals(inverse @ matrix).real
    assert 0.1 < eigenvalues.min() <= eigenvalues.max() < 10.0
    alone = np.linalg.eigvals(matrix / np.diag(matrix)).real
    assert eigenvalues.max() / eigenvalues.min() < 0.1 * alone.max() / alone.min()


def test_neighbours_come_before_the_cells_that_they_predict():
    missing = coast((20, 26), 3)
    levels = _levels(missing)
    order = _order(missing, levels)
    cells = np.argwhere(missing)[order]
    found = _find_neighbours(missing, cells, levels[order], sides_of(missing.shape, circle=True), 9)
    rank = np.full(missing.size, -1)
    rank[np.ravel_multi_index(tuple(cells.T), missing.shape)] = np.arange(len(cells))
    for place, own in enumerate(found):
        there = own[own >= 0]
        assert np.unique(there).size == there.size == 9
        assert (rank[there] < place).all()


def test_cells_far_from_data_come_first_on_coarse_lattices():
    missing = np.ones((17, 17), bool)
    missing[0] = False
    levels = np.full(missing.shape, -1)
    levels[missing] = _levels(missing)
    assert levels[16, 16] == 4
    assert levels[8, 16] == 3
    assert levels[1, 0] == 0
    assert levels[2, 2] == 1
    order = _order(missing, levels[missing])
    ordered = levels[missing][order]
    assert (np.diff(ordered) <= 0).all()


def test_far_cells_have_neighbours_too():
    missing = np.ones((64, 8), bool)
    missing[0] = False
    levels = _levels(missing)
    order = _order(missing, levels)
    cells = np.argwhere(missing)[order]
    found = _find_neighbours(missing, cells, levels[order], sides_of(missing.shape), 6)
    reached = (found >= 0).any(axis=1)
    assert reached.mean() > 0.99


def test_steps_are_counted_in_units_of_the_kernels():
    even = _stencil([Side(np.eye(9), 1.0), Side(np.eye(9), 1.0)], 8)
    assert {tuple(abs(step)) for step in even} == {(0, 1), (1, 0), (1, 1)}
    flat = _stencil([Side(np.eye(9), 4.0), Side(np.eye(9), 1.0)], 8)
    assert (np.abs(flat[:, 0]) <= 1).all()
    assert np.abs(flat[:, 1]).max() == 4
