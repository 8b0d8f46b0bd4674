"""The dense matrices that factors stand for, and one check of all that a factor answers."""

from itertools import pairwise

import numpy as np

from dkrls_cli.cascade.factors.factor import Factor
from dkrls_cli.cascade.kernels import Kernel, gram

EPS = float(np.finfo(np.float64).eps)


def steps(kind: str, m: int, seed: int = 0) -> np.ndarray:
    """Coordinates with steps of 1, or of 0.2 to 1.8 at random, that begin below zero."""
    rng = np.random.default_rng(seed)
    return np.cumsum(np.ones(m) if kind == "even" else rng.uniform(0.2, 1.8, m)) - 0.25 * m


def places(coordinates: np.ndarray, seed: int = 1) -> np.ndarray:
    """Queries at nodes, half-way, anywhere, just outside, far outside; repeated and shuffled."""
    rng = np.random.default_rng(seed)
    low, high = coordinates[0], coordinates[-1]
    half = coordinates[:-1] + 0.5 * np.diff(coordinates)
    reach = high - low
    outside = [low - 0.3, high + 0.3, low - 0.5 * reach, high + 0.7 * reach, high + 30 * reach]
    anywhere = rng.uniform(low, high, 90)
    query = np.concatenate([coordinates[::5], half[::3], outside, anywhere, anywhere[:9]])
    return rng.permutation(query)


def assert_as_dense(factor: Factor, kernel: Kernel) -> None:
    """Compare everything a factor answers with the dense matrix, as closely as it is known."""
    c, m = factor.coordinates, factor.coordinates.size
    dense = gram(kernel, c, c) + factor.ridge * np.eye(m)
    inverse, values = np.linalg.inv(dense), np.abs(np.linalg.eigvalsh(dense))
    place = EPS * np.ptp(c) / kernel.sigma  # rounding of a coordinate, in length scales
    slack = (16 * EPS + place) * values.max() / values.min()
    rounding = 8 * (EPS * m + place)
    query, rng = places(c), np.random.default_rng(2)
    rows, rights = gram(kernel, query, c), [rng.standard_normal((m, n)) for n in (1, 7)]
    solved = np.split(np.linalg.solve(dense, np.hstack([*rights, rows.T])), [1, 8], axis=1)
    for right, expected in zip(rights, solved, strict=False):
        kept = right.copy()
        close(factor.solve(right), expected, slack)
        close(factor.answer(query, right), rows @ right, rounding)
        np.testing.assert_array_equal(right, kept)
    left = 1.0 - np.einsum("qm,mq->q", rows, solved[-1])
    unexplained = factor.unexplained(query)
    assert (unexplained >= 0).all()
    np.testing.assert_allclose(unexplained, left, rtol=0, atol=rounding + 0.1 * slack)
    close(factor.inverse_diagonal(), np.diag(inverse), slack)
    assert_blocks(factor, inverse, slack)


def assert_blocks(factor: Factor, inverse: np.ndarray, slack: float) -> None:
    """Compare blocks of the inverse: of one coordinate, of a few, and of most of them."""
    m = len(inverse)
    for edges in ([0, m], [0, 1, 2, 40, m // 2 + 3, m - 1, m], [*range(0, m, 50), m]):
        blocks = factor.inverse_blocks(np.array(edges))
        assert len(blocks) == len(edges) - 1
        for block, (start, end) in zip(blocks, pairwise(edges), strict=True):
            close(block, inverse[start:end, start:end], slack, np.abs(inverse).max())


def close(found: np.ndarray, true: np.ndarray, slack: float, size: float | None = None) -> None:
    """Assert that arrays agree to a part of the largest number."""
    largest = np.abs(true).max() if size is None else size
    assert found.shape == true.shape
    np.testing.assert_allclose(found, true, rtol=0, atol=slack * largest)


def assert_same(one: Factor, other: Factor, slack: float = 1e-9) -> None:
    """Assert that two factors are of the same matrix."""
    m = one.coordinates.size
    right = np.random.default_rng(3).standard_normal((m, 2))
    query = places(one.coordinates)
    assert one.ridge == other.ridge
    np.testing.assert_array_equal(one.coordinates, other.coordinates)
    close(one.solve(right), other.solve(right), slack)
    close(one.inverse_diagonal(), other.inverse_diagonal(), slack)
    close(one.answer(query, right), other.answer(query, right), slack)
    close(one.unexplained(query), other.unexplained(query), slack)
