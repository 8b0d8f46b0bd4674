"""Samples that pass through, and operators."""

import numpy as np

from dkrls_cli.cascade.streaming.forms import Mixed, Taken, Whole


def test_samples_are_taken_from_their_window():
    data = np.random.default_rng(2).standard_normal((5, 2))
    all_of_them = Taken(np.arange(5), 5)
    assert all_of_them.apply(data, 0, slice(0, 5)) is data
    assert all_of_them.window(slice(1, 9)) == slice(1, 5)
    np.testing.assert_array_equal(all_of_them.apply(data[1:4], 0, slice(1, 4)), data[1:4])
    assert Taken(np.arange(5), 6).window(slice(2, 4)) == slice(2, 4)
    assert Taken(np.array([0, 2, 1]), 3).window(slice(1, 2)) == slice(2, 3)


def test_rows_beside_samples_are_applied_in_their_order():
    matrix = np.random.default_rng(6).standard_normal((2, 4))
    rows = Mixed(np.array([-1, 3, -1, 0]), Whole(matrix, 4))  # type: ignore[arg-type]
    data = np.random.default_rng(7).standard_normal((4, 3))
    expected = np.stack([matrix[0] @ data, data[3], matrix[1] @ data, data[0]])
    np.testing.assert_allclose(rows.apply(data, 0, slice(0, 4)), expected)
    np.testing.assert_allclose(rows.apply(data, 0, slice(1, 3)), expected[1:3])
    np.testing.assert_array_equal(rows.apply(data, 0, slice(3, 4)), data[:1])
