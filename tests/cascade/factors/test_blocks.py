"""Blocks of a quasiseparable factor: which matrix a block has, and its algebra against dense."""

import numpy as np
import pytest

from dkrls_cli.cascade.factors.blocks import BLOCK, Shape, Stack, change_of, factor_block
from dkrls_cli.cascade.kernels import Kernel, gram


@pytest.mark.parametrize(
    ("known", "count", "expected"),
    [(1, 1, [0]), (2, 2, [0, 1]), (2, 5, [0, 0, 0, 0, 1]), (4, 6, [0, 1, 2, 2, 2, 3])],
)
def test_blocks_between_the_first_and_the_last_share_a_matrix(
    known: int, count: int, expected: list[int]
) -> None:
    matrices = np.random.default_rng(0).standard_normal((known, 3, 2))
    stack, data = Stack(matrices, count), np.random.default_rng(1).standard_normal((count, 2, 4))
    for block, place in enumerate(expected):
        np.testing.assert_array_equal(stack[block], matrices[place])
        np.testing.assert_allclose((stack @ data)[block], matrices[place] @ data[block])
        np.testing.assert_array_equal(stack.turned[block], matrices[place].T)
    np.testing.assert_array_equal(stack.take(np.arange(count)), matrices[expected])


KERNEL, NODES = Kernel("matern52", 20.0), np.cumsum(np.linspace(0.5, 1.5, BLOCK))


def test_a_first_block_is_the_cholesky_factor_of_its_own_matrix() -> None:
    shape = Shape.of(KERNEL, NODES, float(NODES[-1] + 1.0))
    block = factor_block(shape, 1e-2, np.zeros((3, 3)))
    system = gram(KERNEL, NODES, NODES) + 1e-2 * np.eye(BLOCK)
    np.testing.assert_allclose(block.inverse @ system @ block.inverse.T, np.eye(BLOCK), atol=1e-10)
    further = NODES[-1] + np.array([1.0, 30.0])
    from dkrls_cli.cascade.factors.markov import behind

    passed = behind(KERNEL, further - NODES[-1] - 1.0) @ block.passed
    across = gram(KERNEL, further, NODES)
    explained = across @ np.linalg.inv(system) @ across.T
    ahead = behind(KERNEL, further - NODES[-1] - 1.0)
    np.testing.assert_allclose(passed @ ahead.T, explained, atol=1e-10)


def test_samples_that_a_short_block_lacks_are_apart() -> None:
    shape = Shape.of(KERNEL, NODES[:10], float(NODES[9]))
    inverse = factor_block(shape, 1e-2, np.zeros((3, 3))).inverse
    np.testing.assert_array_equal(inverse[10:, 10:], np.eye(BLOCK - 10))
    np.testing.assert_array_equal(inverse[10:, :10], 0.0)


def test_a_change_is_that_of_the_covariance() -> None:
    left = np.array([[1.0, 2.0], [0.0, 3.0]])
    assert change_of(left, np.eye(2), np.diag([1.0, 1.5])) == pytest.approx(4.5)
