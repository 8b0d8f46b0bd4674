"""Errors of left-out slices, against refits, and their ratios."""

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.splines.cardinal import spline_rows
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.tables.leftout import Ratio, Slices

X = np.sort(np.random.default_rng(1).uniform(0, 9, 13))
DATA = np.sin(np.outer(X, [1.0, 1.3, 0.4])) + 0.1 * np.random.default_rng(2).standard_normal(
    (13, 3)
)
KERNEL, RIDGE = Kernel("matern32", 2.0, constant=1.0), 1e-3


def by_kernel(nodes, data, query):
    covariance = gram(KERNEL, nodes, nodes) + RIDGE * np.eye(nodes.size)
    return gram(KERNEL, query, nodes) @ np.linalg.solve(covariance, data)


def by_cubic(nodes, data, query):
    return spline_rows("cubic", nodes, query) @ data


def refitted(predict, blocks):
    """Squares in the cells of the slices of all blocks but the first and the last."""
    squares = []
    for block in blocks[1:-1]:
        kept = np.delete(np.arange(13), block)
        missed = predict(X[kept], DATA[kept], X[block]) - DATA[block]
        squares.append(missed**2)
    return np.concatenate(squares)


@pytest.mark.parametrize("folds", [None, 5])
def test_errors_are_those_of_refits_without_the_slices(folds):
    order = np.random.default_rng(0).permutation(13)
    slices = Slices.of(X[order], DATA[order], folds, 100)
    blocks = np.array_split(np.arange(13), folds or 13)
    expected = refitted(by_cubic, blocks)
    np.testing.assert_allclose(slices.spline_cells("cubic"), expected, rtol=1e-6)
    np.testing.assert_allclose(slices.spline_errors("cubic"), expected.mean(axis=1), rtol=1e-7)
    found = slices.kernel_cells(KERNEL, RIDGE, SpectrumCache())
    np.testing.assert_allclose(found, refitted(by_kernel, blocks), rtol=1e-6)


def test_inner_coordinates_are_those_of_the_errors():
    assert np.array_equal(Slices.of(X, DATA, None, 100).inner_coordinates, X[1:-1])
    assert np.array_equal(Slices.of(X, DATA, 5, 100).inner_coordinates, X[3:-2])
    assert np.array_equal(Slices.of(X, DATA, 3, 100).inner_coordinates, X)


def test_three_slices_are_all_inner_ones():
    slices = Slices.of(X[:3], DATA[:3], None, 100)
    assert np.array_equal(slices.inner_coordinates, X[:3])
    assert slices.spline_errors("linear").size == 3
    first = spline_rows("linear", X[1:3], X[:1]) @ DATA[1:3] - DATA[:1]
    assert slices.spline_errors("linear")[0] == pytest.approx(np.mean(first**2))


def test_errors_below_rounding_are_equal():
    slices = Slices.of(X, 1e6 * np.ones((13, 2)), None, 100)
    assert (slices.spline_errors("linear") == (np.finfo(float).eps * 1e6) ** 2).all()
    zero = Slices.of(X, np.zeros((13, 2)), None, 100)
    ratio = Ratio.of(zero.spline_cells("linear"), zero.spline_cells("cubic"))
    assert ratio.both == ratio.cells == 1.0


def test_many_fibres_are_thinned_evenly():
    data = np.tile(np.arange(10.0), (13, 1))
    assert Slices.of(X, data, None, 4).data[0].tolist() == [0, 3, 6, 9]
    assert Slices.of(X, data, None, 10).data.shape == (13, 10)


def test_thinned_slices_are_every_second_one():
    thin = Slices.of(X, DATA, 4, 100).thinned(1)
    assert np.array_equal(thin.coordinates, X[1::2])
    assert thin.blocks is None


def test_a_ratio_has_a_mean_and_what_is_typical_of_slices_and_of_cells():
    one, other = np.array([[1.0, 1.0], [1.0, 1.0], [100.0, 199.0]]), np.full((3, 2), 100.0)
    other[:2] = [1.0, 399.0]
    ratio = Ratio.of(one, other)
    assert ratio.mean == pytest.approx(303.0 / 1000.0)
    assert ratio.typical == pytest.approx((1 / 200 * 1 / 200 * 1.495) ** (1 / 3))
    assert ratio.cells == pytest.approx((1 / 399 * 1 / 399 * 1.99) ** (1 / 6))
    assert ratio.both == pytest.approx(np.sqrt(ratio.mean * ratio.typical))
    assert Ratio(1.0, 1.0).cells == np.inf
