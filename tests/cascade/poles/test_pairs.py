import numpy as np

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.poles.pairs import leave_out_pairs


def test_a_slice_is_predicted_from_all_others_but_its_copy():
    x = np.array([0.0, 1.0, 2.2, 3.1, 4.0, 5.5])
    copies = np.array([-1, -1, -1, -1, 3, 1])
    kernel, ridge = Kernel("matern32", 2.0), 0.01
    covariance = gram(kernel, x, x) + ridge * np.eye(6)
    inverse, nodes = np.linalg.inv(covariance), np.array([1, 2, 3])
    rows, variance = leave_out_pairs(inverse[nodes], inverse, nodes, copies)
    for place, node in enumerate(nodes):
        gone = [node, *np.flatnonzero(copies == node)]
        left = np.delete(np.arange(6), gone)
        weights = np.linalg.solve(covariance[np.ix_(left, left)], covariance[left, node])
        assert np.allclose(rows[place, left], weights)
        assert np.allclose(np.delete(rows[place], [node, *left]), 0.0)
        expected = covariance[node, node] - weights @ covariance[left, node]
        assert np.isclose(variance[place], expected)


def test_a_copy_at_the_same_place_gives_numbers():
    inverse = np.array([[1.0, -1.0], [-1.0, 1.0]]) * 1e12
    rows, variance = leave_out_pairs(inverse[:1], inverse, np.array([0]), np.array([-1, 0]))
    assert np.isfinite(rows).all()
    assert np.isclose(variance[0], 1.0)
