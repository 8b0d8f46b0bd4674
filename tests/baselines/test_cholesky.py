"""The growing factor against a dense solve."""

import numpy as np
import pytest

from dkrls_cli.baselines.cholesky import GrowingCholesky
from dkrls_cli.errors import InputError

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("parts", [[1] * 9, [4, 4, 1], [3, 1, 4, 2], [4, 2, 2, 4]])
def test_it_solves_as_a_dense_solve_at_any_size(parts: list[int]) -> None:
    size = sum(parts)
    root, values = RNG.normal(size=(size, size)), RNG.normal(size=size)
    matrix = root @ root.T + np.eye(size)
    factor, end = GrowingCholesky(height=4), 0
    for part in parts:
        start, end = end, end + part
        factor.append(matrix[start:end, :end], values[start:end])
        assert factor.size == end
        assert factor.room == -end % 4
        expected = np.linalg.solve(matrix[:end, :end], values[:end])
        np.testing.assert_allclose(factor.solve(), expected, rtol=1e-9)


def test_a_singular_matrix_is_refused_and_the_factor_stays() -> None:
    factor = GrowingCholesky(height=4)
    factor.append(np.array([[1.0]]), np.array([1.0]))
    with pytest.raises(InputError, match=r"singular at sample 2\. Raise the ridge\."):
        factor.append(np.array([[1.0, 1.0]]), np.array([1.0]))
    assert factor.size == 1
    np.testing.assert_allclose(factor.solve(), [1.0])
    factor.append(np.array([[0.0, 4.0]]), np.array([1.0]))
    np.testing.assert_allclose(factor.solve(), [1.0, 0.25])
