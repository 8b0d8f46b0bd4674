"""Roots against the covariances that they are roots of: applied to a unit matrix, they show S."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.drawing import roots as module
from dkrls_cli.cascade.drawing.roots import (
    MappedRows,
    Root,
    Samples,
    correlate,
    correlation_root,
    draw_field,
    kernel_root,
    markov_root,
)
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import decompose

RNG = np.random.default_rng(8)
UNEVEN = RNG.permutation(np.cumsum(RNG.uniform(0.2, 1.8, 150)))
EVEN = np.arange(150.0)
FAMILIES = ["matern12", "matern32", "matern52"]


def covariance(root: Root) -> np.ndarray:
    rows = root.rows @ np.eye(root.width)
    assert rows.shape == (len(root), root.width)
    return rows @ rows.T


# Dense roots --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
def test_a_correlation_has_a_symmetric_root(sigma: float) -> None:
    x = np.linspace(0, 5, 12)
    matrix = gram(Kernel("gaussian", sigma), x, x)  # singular in float64 for the longest sigma
    root = correlation_root(matrix)
    np.testing.assert_allclose(covariance(root), matrix, atol=1e-13)
    np.testing.assert_allclose(root.rows, root.rows.T, atol=1e-7)


def test_a_root_has_rows_of_unit_length_even_if_round_off_spoils_the_matrix() -> None:
    spoilt = np.full((3, 3), 1.0 + 1e-3) - 1e-3 * np.eye(3)  # correlations above 1
    assert np.linalg.eigvalsh(spoilt)[0] < 0
    rows = correlation_root(spoilt).rows
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(rows @ rows.T, 1.0, atol=1e-12)


def test_no_place_has_an_empty_root() -> None:
    root = correlation_root(np.empty((0, 0)))
    assert (len(root), root.width) == (0, 0)


def test_covariances_become_correlations() -> None:
    given = np.array([[4.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 7.0]])
    found = correlate(given, np.array([4.0, 1.0, 0.0]))
    assert found.tolist() == [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert found is given
    rounding = np.array([[1e-18, 3e-17], [-3e-17, 1e-18]])
    assert correlate(rounding, np.full(2, 1e-18)).tolist() == [[1.0, 1.0], [-1.0, 1.0]]


# What is made of roots ----------------------------------------------------------------------------


@pytest.mark.parametrize("mapped", [False, True])
def test_roots_are_scaled_and_stand_among_others(mapped: bool) -> None:
    matrix = RNG.standard_normal((3, 4))
    plain = Root(MappedRows(3, matrix.__matmul__) if mapped else matrix, 4)
    sizes, here = np.array([2.0, 0.0, -1.0]), np.array([0, 3, 4])
    expected = np.zeros((6, 4))
    expected[here] = sizes[:, None] * matrix
    found = plain.times(sizes).within(here, 6)
    assert (len(found), found.width) == (6, 4)
    np.testing.assert_allclose(found.rows @ np.eye(4), expected, rtol=1e-15)
    assert plain.within(np.arange(3), 3) is plain


@pytest.mark.parametrize("mapped", [False, True])
def test_roots_take_noise_on(mapped: bool) -> None:
    matrix = RNG.standard_normal((3, 4))
    plain = Root(MappedRows(3, matrix.__matmul__) if mapped else matrix, 4)
    noisy = plain.with_noise(0.5)
    assert noisy.width == 7
    np.testing.assert_allclose(covariance(noisy), matrix @ matrix.T + 0.5 * np.eye(3), rtol=1e-12)
    assert plain.with_noise(0.0) is plain


def test_mapped_rows_are_cut_like_a_matrix() -> None:
    matrix = RNG.standard_normal((5, 4))
    rows = MappedRows(5, matrix.__matmul__)
    part = rows[1:4]
    assert (len(rows), len(part), part.ndim) == (5, 3, 2)
    np.testing.assert_array_equal(part @ np.eye(4), matrix[1:4])


def test_a_field_is_drawn_along_all_axes() -> None:
    one, other = RNG.standard_normal((3, 4)), RNG.standard_normal((5, 2))
    roots = [Root(one, 4), Root(MappedRows(5, other.__matmul__), 2)]
    white = np.random.default_rng(3).standard_normal((4, 2))
    found = draw_field(np.random.default_rng(3), roots)
    np.testing.assert_allclose(found, one @ white @ other.T, rtol=1e-12)


# Roots in O(m) ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("coordinates", [EVEN, UNEVEN, EVEN[:1]], ids=["even", "uneven", "one"])
def test_a_matern_kernel_is_drawn_in_any_order(family: str, coordinates: np.ndarray) -> None:
    kernel = Kernel(family, 7.0, constant=0.5, cycle=12.0, swing=0.7)
    root = markov_root(kernel, coordinates)
    expected = gram(kernel, coordinates, coordinates)
    np.testing.assert_allclose(covariance(root), expected, atol=1e-10)
    assert markov_root(Kernel(family, 7.0), coordinates).width == coordinates.size


@pytest.mark.parametrize(("size", "dense"), [(20, True), (21, False)])
def test_many_places_of_a_matern_kernel_have_no_matrix(
    size: int, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", 20)
    kernel = Kernel("matern32", 3.0, constant=2.0)
    root = kernel_root(kernel, EVEN[:size])
    assert isinstance(root.rows, np.ndarray) == dense
    np.testing.assert_allclose(covariance(root), gram(kernel, EVEN[:size], EVEN[:size]), atol=1e-11)
    others = (
        kernel_root(Kernel("gaussian", 3.0), EVEN),
        kernel_root(Kernel("matern32", 20.0, 150.0), EVEN),
    )
    assert all(isinstance(other.rows, np.ndarray) for other in others)


# What samples leave open --------------------------------------------------------------------------

QUERY = np.array([-3.0, 0.2, 5.0, 5.1, 60.3, 148.5, 151.0])


def open_part(kernel: Kernel, ridge: float, nodes: np.ndarray) -> np.ndarray:
    system = gram(kernel, nodes, nodes) + ridge * np.eye(nodes.size)
    cross = gram(kernel, nodes, QUERY)
    return gram(kernel, QUERY, QUERY) - cross.T @ np.linalg.solve(system, cross)


@pytest.mark.parametrize("family", [*FAMILIES, "gaussian"])
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("at_once", [2**22, 8 * 150])
def test_open_covariance_is_that_of_dense_algebra(
    family: str, long: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    kernel = Kernel(family, 2.0, constant=0.3)
    nodes = np.arange(-50.0, 200.0)  # enough for a long factor of a Gaussian kernel
    dense = decompose(gram(kernel, nodes, nodes))
    factor = LongFactor.build(kernel, nodes, 0.1) if long else dense
    found = Samples(kernel, 0.1, nodes, factor).open_covariance(QUERY)
    np.testing.assert_allclose(found, open_part(kernel, 0.1, nodes), atol=1e-10)
    np.testing.assert_allclose(found, found.T, atol=0.0 if long else 1e-15)


def test_without_samples_all_is_open() -> None:
    kernel = Kernel("gaussian", 4.0)
    found = Samples(kernel, 0.1, np.empty(0), None).open_covariance(QUERY)
    np.testing.assert_array_equal(found, gram(kernel, QUERY, QUERY))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("ridge", [0.1, 1e-6])
def test_open_roots_have_the_open_covariance(family: str, long: bool, ridge: float) -> None:
    kernel = Kernel(family, 4.0, constant=0.3, cycle=30.0)
    nodes = np.sort(UNEVEN)
    factor = (
        LongFactor.build(kernel, nodes, ridge) if long else decompose(gram(kernel, nodes, nodes))
    )
    samples = Samples(kernel, ridge, nodes, factor)
    query = np.append(QUERY, nodes[:2])  # what is asked at samples is drawn as they are
    system = gram(kernel, nodes, nodes) + ridge * np.eye(nodes.size)
    cross = gram(kernel, nodes, query)
    expected = gram(kernel, query, query) - cross.T @ np.linalg.solve(system, cross)
    found = covariance(samples.open_root(query, expected.diagonal()))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("long", [False, True])
def test_the_noise_that_a_factor_needs_does_not_widen_open_roots(long: bool) -> None:
    """It is 1e-12, and the open variance here not much more."""
    kernel, ridge = Kernel("matern52", 60.0), 1e-11
    factor = LongFactor.build(kernel, EVEN, ridge)
    query = EVEN[20:120] + 0.5
    variance = factor.unexplained(query)
    assert variance.max() < 3e-10
    dense = decompose(gram(kernel, EVEN, EVEN))
    samples = Samples(kernel, ridge, EVEN, factor if long else dense)
    found = covariance(samples.open_root(query, variance)).diagonal()
    assert np.mean(found / variance) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("at_once", [1, 150, 400, 2**22])
def test_predictions_do_not_depend_on_blocks(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, data = Kernel("matern32", 4.0), RNG.standard_normal((150, 3))
    samples = Samples(kernel, 0.1, EVEN, decompose(gram(kernel, EVEN, EVEN)))
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    system = gram(kernel, EVEN, EVEN) + 0.1 * np.eye(150)
    expected = gram(kernel, QUERY, EVEN) @ np.linalg.solve(system, data)
    np.testing.assert_allclose(samples.explain(QUERY, data), expected, atol=1e-11)
    long = replace(samples, factor=LongFactor.build(kernel, EVEN, 0.1))
    np.testing.assert_allclose(long.explain(QUERY, data), expected, atol=1e-11)


def test_the_root_of_a_warped_kernel_has_its_covariance() -> None:
    x = np.geomspace(1.0, 90.0, 30)
    kernel = Kernel("matern32", 0.8, warp="log")
    np.testing.assert_allclose(covariance(markov_root(kernel, x)), gram(kernel, x, x), atol=1e-10)
