"""Even circles against dense matrices."""

import numpy as np
import pytest
from dense_factors import EPS, assert_as_dense, assert_same, close, places
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.factors import circulant
from dkrls_cli.cascade.factors.circulant import Circulant, cost
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import decompose


def circle(m: int, period: float = 360.0, start: float = -180.0) -> np.ndarray:
    return start + np.arange(m) * (period / m)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("in_steps", [0.02, 0.29, 0.31, 1.9, 2.1, 12.0, 200.0])
def test_all_answers_are_those_of_the_dense_matrix(family: str, in_steps: float) -> None:
    kernel = Kernel(family, in_steps * 360.0 / 401, period=360.0)
    assert_as_dense(Circulant.build(kernel, circle(401), 1e-3), kernel)


@pytest.mark.parametrize("ridge", [3e-6, 10.0])
@pytest.mark.parametrize("m", [1, 2, 3, 300])
def test_small_and_large_ridges_and_circles(ridge: float, m: int) -> None:
    kernel = Kernel(sigma=20.0, period=360.0)
    factor, c = Circulant.build(kernel, circle(m), ridge), circle(m)
    dense = gram(kernel, c, c) + ridge * np.eye(m)
    slack = 16 * EPS * np.linalg.cond(dense)
    right = np.random.default_rng(0).standard_normal((m, 3))
    query = np.random.default_rng(1).uniform(-900, 900, 77)
    rows = gram(kernel, query, c)
    close(factor.solve(right), np.linalg.solve(dense, right), slack)
    close(factor.answer(query, right), rows @ right, 1e-12)
    left = 1.0 - np.einsum("qm,mq->q", rows, np.linalg.solve(dense, rows.T))
    np.testing.assert_allclose(factor.unexplained(query), left, rtol=0, atol=1e-12 + slack)
    close(factor.inverse_diagonal(), np.diag(np.linalg.inv(dense)), slack)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.5, 1 / 3])
def test_regular_queries_take_few_convolutions(shift: float) -> None:
    """Half-way on a long circle, where rounding scatters the offsets."""
    kernel, c = Kernel(sigma=9.0, period=360.0), circle(3000)
    factor = Circulant.build(kernel, c, 0.1)
    query = (c + shift * 0.12 + 720.0)[::-1]
    _, offsets, shares = factor._places(query)
    assert offsets.size <= 3
    assert np.ptp(offsets) < 1e-9
    np.testing.assert_array_equal(shares.sum(axis=1), 1.0)
    weights = np.random.default_rng(0).standard_normal((3000, 2))
    close(factor.answer(query, weights), gram(kernel, query, c) @ weights, 1e-12)


@pytest.mark.parametrize("ridge", [0.0, 1e-14, 1e-10, 1e-3])
@pytest.mark.parametrize("in_steps", [0.1, 1.0, 2.5, 10.0])
def test_answers_are_those_in_the_eigenbasis_at_any_ridge(ridge: float, in_steps: float) -> None:
    """The eigenbasis is that of Spectrum.solvable; data is smooth where directions are dropped."""
    c = circle(500)
    kernel = Kernel(sigma=in_steps * 0.72, period=360.0)
    dense, rng = gram(kernel, c, c), np.random.default_rng(0)
    data = dense @ rng.standard_normal((500, 2))
    query = places(c)
    known = decompose(dense).solvable(ridge)
    true = gram(kernel, query, c) @ known.vectors @ known.solve(ridge, data)
    factor = Circulant.build(kernel, c, ridge)
    close(factor.answer(query, factor.solve(data)), true, 1e-11)


def test_directions_that_are_round_off_are_left_out() -> None:
    kernel, c = Kernel(sigma=36.0, period=360.0), circle(400)
    inverse = Circulant.build(kernel, c, 0.0).inverse
    w = decompose(gram(kernel, c, c)).values
    assert 2 * np.count_nonzero(inverse) - 1 == pytest.approx(
        np.count_nonzero(w > 4 * EPS * w[0]), abs=2
    )
    assert inverse.max() < 1 / (4 * EPS * w[0])
    ridge = 5 * EPS * float(w[0])
    kept = Circulant.build(kernel, c, ridge).inverse
    assert (kept > 0).all()
    assert kept.max() <= 1 / ridge


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("in_steps", "points"), circulant._POINTS)
def test_points_hold_a_kernel_over_one_step(family: str, in_steps: float, points: int) -> None:
    kernel, nodes = Kernel(family, in_steps), np.arange(-8.0, 10.0)
    offsets = np.linspace(0, 1, 99)
    at, shares = circulant._interpolation(offsets, points)
    true = gram(kernel, offsets, nodes)
    np.testing.assert_allclose(shares @ gram(kernel, at, nodes), true, rtol=0, atol=4e-15)


def test_long_kernels_take_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(circulant, "product")
    factor = Circulant.build(Kernel(sigma=9.0, period=360.0), circle(360), 0.1)
    assert factor.answer(places(circle(360)), np.ones((360, 1))).std() < 1e-12


@given(
    m=st.integers(1, 90),
    in_steps=st.floats(0.05, 50),
    ridge=st.floats(1e-4, 10),
    family=st.sampled_from(list(FAMILIES)),
)
def test_solve_undoes_the_matrix(m: int, in_steps: float, ridge: float, family: str) -> None:
    kernel, c = Kernel(family, in_steps * 7.0 / m, period=7.0), circle(m, 7.0, 2.0)
    x = np.random.default_rng(m).standard_normal((m, 2))
    right = gram(kernel, c, c) @ x + ridge * x
    close(Circulant.build(kernel, c, ridge).solve(right), x, 1e-9)


@pytest.mark.slow
def test_answers_agree_on_a_long_circle() -> None:
    kernel, c = Kernel("matern52", 0.9, period=360.0), circle(4000)
    factor = Circulant.build(kernel, c, 1e-4)
    right = np.random.default_rng(0).standard_normal((4000, 2))
    dense = gram(kernel, c, c)
    true = dense @ np.linalg.solve(dense + 1e-4 * np.eye(4000), right)
    close(factor.answer(c, factor.solve(right)), true, 1e-8)


def test_a_circle_that_is_full_takes_no_further_coordinate() -> None:
    factor = Circulant.build(Kernel(period=360.0), circle(36), 0.1)
    assert_same(factor.extend(np.empty(0)), factor)
    with pytest.raises(AssertionError):
        factor.extend(np.array([180.0]))


def test_only_even_circles_apply() -> None:
    kernel, c = Kernel(period=360.0), circle(36)
    nudged = c.copy()
    nudged[7] += 1e-12
    found = cost(kernel, c)
    assert found is not None
    assert found.memory < 36**2 * 40
    assert cost(Kernel(), c) is None
    assert cost(kernel, nudged) is None
    assert cost(kernel, c[:-1]) is None
    assert cost(kernel, np.linspace(-180, 180, 37)) is None
    with pytest.raises(AssertionError):
        Circulant.build(kernel, nudged, 0.1)


@pytest.mark.parametrize("added", [{"constant": 1.0}, {"cycle": 12.0}])
def test_kernels_with_trends_are_not_taken(added: dict[str, float]) -> None:
    with pytest.raises(AssertionError):
        cost(Kernel(period=360.0, **added), circle(9))
