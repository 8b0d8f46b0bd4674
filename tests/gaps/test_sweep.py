"""The sweeps that precondition the missing cells of a grid with a long axis."""

from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.gaps import sweep as module
from dkrls_cli.gaps.sweep import build_sweep

T, X = np.arange(60.0), np.array([0.0, 1.0, 2.5])
KERNELS = [Kernel("matern32", 5.0), Kernel("matern52", 2.0)]
RIDGE = 1e-3


def scattered(shape=(60, 3), share=0.3, seed=0):
    return np.random.default_rng(seed).random(shape) < share


def system(missing, t=T, ridge=RIDGE):
    """The block of (K + ridge)^-1 that belongs to the missing cells, from one dense inverse."""
    axes = [t, X][: missing.ndim]
    whole = reduce(np.kron, [gram(k, c, c) for k, c in zip(KERNELS, axes, strict=False)])
    lost = missing.ravel()
    return np.linalg.inv(whole + ridge * np.eye(lost.size))[np.ix_(lost, lost)]


def swept(missing, t=T, ridge=RIDGE):
    beside = [decompose(gram(KERNELS[1], X, X))][: missing.ndim - 1]
    return build_sweep(KERNELS[0], t, beside, ridge, missing)


def as_matrix(sweep, size):
    return np.stack([sweep.solve(unit) for unit in np.eye(size)], axis=1)


@pytest.mark.parametrize("shape", [(60,), (60, 3)])
def test_one_block_within_one_window_is_solved_exactly(shape):
    missing = scattered(shape)
    sweep = swept(missing)
    assert len(sweep.ends) == 1
    expected = np.linalg.inv(system(missing))
    np.testing.assert_allclose(as_matrix(sweep, missing.sum()), expected, atol=1e-8)


@pytest.mark.parametrize("cells", [7, 19, 30])
def test_two_or_three_blocks_within_one_window_are_solved_exactly(cells, monkeypatch):
    """The last is linked to all cells before it, and what is behind a block is eliminated."""
    monkeypatch.setattr(module, "_CELLS", cells)
    monkeypatch.setattr(module, "_FEWEST", 1)
    missing = np.zeros((60, 3), bool)
    missing.ravel()[np.random.default_rng(3).permutation(180)[: 2 * cells]] = True
    sweep = swept(missing)
    assert np.diff([0, *sweep.ends]).tolist() == [cells, cells]
    expected = np.linalg.inv(system(missing))
    np.testing.assert_allclose(as_matrix(sweep, 2 * cells), expected, atol=1e-8)


def test_many_blocks_are_symmetric_positive_and_near(monkeypatch):
    monkeypatch.setattr(module, "_CELLS", 16)
    missing = scattered()
    missing[10:50, 1] = True
    sweep = swept(missing)
    assert len(sweep.ends) > 4
    found = as_matrix(sweep, missing.sum())
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    spread = np.linalg.eigvals(found @ system(missing)).real
    assert 0.5 < spread.min() <= spread.max() < 1.5
    alone = np.linalg.eigvals(system(missing) / system(missing).diagonal()).real
    assert alone.max() / alone.min() > 20 * spread.max() / spread.min()  # a diagonal is no match


def test_blocks_end_at_so_many_cells_or_steps(monkeypatch):
    monkeypatch.setattr(module, "_STEPS", 10)
    steps = np.array([0, 1, 1, 2, 9, 10, 11, 40])
    assert module._cut(steps, 100) == [5, 7, 8]
    assert module._cut(steps, 2) == [2, 4, 6, 7, 8]


def test_a_block_far_behind_another_is_not_linked(monkeypatch):
    monkeypatch.setattr(module, "_STEPS", 10)
    missing = np.zeros(60, bool)
    missing[[5, 6, 16, 40]] = True
    links = swept(missing).links
    assert [link.shape for link in links] == [(2, 0), (1, 1), (1, 0)]


@pytest.mark.parametrize(("count", "cells"), [(100, 256), (2**20, 16), (2**18, 64)])
def test_very_many_missing_cells_have_smaller_blocks(count, cells, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "_cut", lambda steps, most: asked.append(most) or [1])
    monkeypatch.setattr(module, "_precision", lambda *_: np.eye(1))
    missing = np.zeros(2**20, bool)
    missing[:count] = True
    build_sweep(KERNELS[0], np.arange(2.0**20), [], RIDGE, missing)
    assert asked == [cells]


def test_windows_of_equal_steps_share_a_spectrum(monkeypatch):
    made = []
    monkeypatch.setattr(module, "_STEPS", 4)
    monkeypatch.setattr(module, "decompose", lambda g: made.append(len(g)) or decompose(g))
    missing = np.zeros(60, bool)
    missing[5:60:10] = True
    even = swept(missing, T * 0.1)
    assert made == [5]
    swept(missing, T**1.01)
    assert len(made) == 1 + len(even.ends)


def test_numbers_are_worked_on_in_parts(monkeypatch):
    missing = scattered()
    whole = as_matrix(swept(missing), missing.sum())
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    np.testing.assert_allclose(as_matrix(swept(missing), missing.sum()), whole, atol=1e-10)


def test_no_ridge_is_no_obstacle():
    missing = scattered()
    found = as_matrix(swept(missing, ridge=0.0), missing.sum())
    assert np.isfinite(found).all()
    assert np.linalg.eigvalsh(found + found.T).min() > 0


def test_no_other_missing_cell_is_in_a_window(monkeypatch):
    """It would count as known, and holes of many columns would take hundreds of iterations."""
    monkeypatch.setattr(module, "_STEPS", 20)
    steps = np.array([3, 8, 30, 31, 31, 33, 39, 80])
    assert module._window(steps, 2, 6) == (20, 39)
    assert module._window(steps, 2, 4) == (20, 32)  # the rest of a step is within
    assert module._window(steps, 4, 6) == (31, 39)
    assert module._window(steps, 0, 2) == (0, 19)
    assert module._window(steps, 7, 8) == (70, 91)


def test_holes_of_many_columns_are_solved_for_nearly_exactly(monkeypatch):
    monkeypatch.setattr(module, "_CELLS", 30)
    missing = np.zeros((60, 3), bool)
    missing[5:55, :2] = True
    sweep = swept(missing, ridge=1e-5)
    spread = np.linalg.eigvals(as_matrix(sweep, 100) @ system(missing, ridge=1e-5)).real
    assert 0.3 < spread.min() <= spread.max() < 3
