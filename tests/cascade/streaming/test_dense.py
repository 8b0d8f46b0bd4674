"""Rows as matrices: one, or two with few directions between them."""

import numpy as np

from dkrls_cli.cascade.streaming.dense import Dense, Factored
from dkrls_cli.cascade.streaming.products import Both


def matrix_of(directions: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.standard_normal((20, directions)) @ rng.standard_normal((directions, 30))


def test_factored_rows_have_the_directions_of_their_matrix():
    matrix = matrix_of(4)
    rows = Factored.build(matrix, 1e-10)
    assert (rows.size, rows.samples) == matrix.shape
    assert rows.operations == 4 * sum(matrix.shape)
    assert rows.window(slice(2, 3)) == slice(0, 30)
    data = np.random.default_rng(4).standard_normal((30, 5))
    np.testing.assert_allclose(rows.apply(data, 0, slice(2, 9)), (matrix @ data)[2:9], atol=1e-9)


def test_noise_is_no_direction():
    matrix, noise = matrix_of(4), np.random.default_rng(6).standard_normal((20, 30))
    noise *= 1e-3 / np.linalg.norm(noise, axis=1, keepdims=True)
    assert Factored.build(matrix + noise, 1e-10).operations == 20 * 50
    rows = Factored.build(matrix + noise, 1e-10, 1e-3)
    assert rows.operations == 4 * 50
    missed = rows.apply(np.eye(30), 0, slice(None)) - matrix
    assert np.linalg.norm(missed) < 0.7 * np.linalg.norm(noise)
    half = Factored.build(matrix + noise, 1e-10, 5e-4)
    assert 4 * 50 < half.operations < 20 * 50


def test_dense_rows_are_applied_along_any_axis():
    matrix = matrix_of(20)
    rows = Dense(Both.of(matrix))
    assert (rows.size, rows.samples, rows.operations) == (*matrix.shape, matrix.size)
    data = np.random.default_rng(5).standard_normal((2, 30, 3))
    found = rows.apply(data, 1, slice(4, 7))
    np.testing.assert_allclose(found, np.einsum("pm,amb->apb", matrix[4:7], data), atol=1e-12)
