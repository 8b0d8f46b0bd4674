"""How far kernels reach, and products that leave out what is beyond."""

import math

import mpmath
import numpy as np
import pytest
from dense_factors import places, steps

from dkrls_cli.cascade.factors.reach import NEGLIGIBLE, product, reach, runs, windows
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram

EXACT = {
    "gaussian": lambda s: mpmath.exp(-(s**2) / 2),
    "matern52": lambda s: (1 + mpmath.sqrt(5) * s + 5 * s**2 / 3) * mpmath.exp(-mpmath.sqrt(5) * s),
    "matern32": lambda s: (1 + mpmath.sqrt(3) * s) * mpmath.exp(-mpmath.sqrt(3) * s),
    "matern12": lambda s: mpmath.exp(-s),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kernel_is_negligible_from_its_reach_on(family: str) -> None:
    distance = reach(Kernel(family, sigma=2.5)) / 2.5
    assert float(EXACT[family](distance)) == pytest.approx(NEGLIGIBLE, rel=1e-6)


def test_reach_on_a_circle_is_an_arc() -> None:
    kernel = Kernel("gaussian", sigma=3.0, period=100.0)
    arc = reach(kernel)
    assert 100 / math.pi * math.sin(math.pi * arc / 100) == pytest.approx(reach(Kernel(sigma=3.0)))
    assert gram(kernel, np.zeros(1), np.array([arc]))[0, 0] == pytest.approx(NEGLIGIBLE)


def test_a_kernel_has_no_end_on_a_circle_that_is_too_small() -> None:
    chord = reach(Kernel(sigma=1.0))
    assert reach(Kernel(sigma=1.0, period=0.99 * math.pi * chord)) == math.inf
    assert reach(Kernel(sigma=1.0, period=1.01 * math.pi * chord)) < math.inf


@pytest.mark.parametrize("added", [{"constant": 1.0}, {"cycle": 12.0}])
def test_kernels_with_trends_are_not_taken(added: dict[str, float]) -> None:
    with pytest.raises(AssertionError):
        reach(Kernel(**added))


@pytest.mark.parametrize("period", [None, 90.0])
def test_windows_hold_what_is_not_negligible_and_nothing_else(period: float | None) -> None:
    kernel = Kernel(sigma=1.0, period=period)
    nodes = np.sort(np.random.default_rng(0).uniform(0, 90, 70))
    query = np.linspace(0, 89.9, 57)
    low, high = windows(kernel, query, nodes)
    for row, first, end in zip(gram(kernel, query, nodes), low, high, strict=True):
        assert set(np.arange(first, end) % 70) == set(np.flatnonzero(row > NEGLIGIBLE))
        assert end - first <= 70


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("period", [None, 420.0])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 6.0, 300.0])
def test_products_are_those_of_the_dense_matrix(
    family: str, period: float | None, sigma: float
) -> None:
    kernel, c = Kernel(family, sigma, period), steps("random", 400)
    weights, query = np.random.default_rng(1).standard_normal((400, 3)), places(c)
    dense = gram(kernel, query, c) @ weights
    np.testing.assert_allclose(product(kernel, query, c, weights), dense, rtol=0, atol=3e-11)


def test_products_where_nothing_is_in_reach_are_zero() -> None:
    kernel, c = Kernel(sigma=0.01), np.arange(300.0)
    found = product(kernel, np.array([0.5, 1e9, -7.0, 3.0]), c, np.ones((300, 2)))
    np.testing.assert_array_equal(found, [[0, 0], [0, 0], [0, 0], [1, 1]])


def test_products_of_no_query_are_none() -> None:
    assert product(Kernel(), np.empty(0), np.arange(9.0), np.ones((9, 2))).shape == (0, 2)


def test_products_take_bounded_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def watched(kernel: Kernel, a: np.ndarray, b: np.ndarray, order: int) -> np.ndarray:
        sizes.append(a.size * b.size)
        return gram(kernel, a, b)

    monkeypatch.setattr("dkrls_cli.cascade.factors.reach.derivative_gram", watched)
    monkeypatch.setattr("dkrls_cli.cascade.factors.reach.BLOCK", 30_000)
    query = np.concatenate([np.linspace(0, 5000, 900), np.linspace(10, 75, 2000)])
    product(Kernel(sigma=3.0), query, np.arange(5000.0), np.ones((5000, 1)))
    assert max(sizes) <= 30_000
    assert len(sizes) < 120
    assert sum(sizes) < 3 * 64 * query.size


def test_runs_are_of_equal_numbers_and_not_too_long() -> None:
    groups = np.array([-2, -2, 0, 5, 5, 5, 5, 5])
    assert [(run.start, run.stop) for run in runs(groups, 2)] == [
        (0, 2),
        (2, 3),
        (3, 5),
        (5, 7),
        (7, 8),
    ]
    assert list(runs(np.empty(0, np.intp), 2)) == []
