"""Bands against dense matrices."""

import numpy as np
import pytest
from dense_factors import EPS, assert_as_dense, assert_same, close, steps
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.factors import banded
from dkrls_cli.cascade.factors.banded import LEAST_EIGENVALUE, Banded, cost
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import decompose


def period_of(c: np.ndarray, is_circle: bool) -> float | None:
    return float(np.ptp(c)) + 0.7 if is_circle else None


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["even", "random"])
@pytest.mark.parametrize("is_circle", [False, True])
@pytest.mark.parametrize("sigma", [0.1, 1.5])
def test_all_answers_are_those_of_the_dense_matrix(
    family: str, kind: str, is_circle: bool, sigma: float
) -> None:
    c = steps(kind, 500)
    kernel = Kernel(family, sigma, period_of(c, is_circle))
    factor = Banded.build(kernel, c, 1e-3)
    assert len(factor.blocks) >= 2
    assert_as_dense(factor, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [LEAST_EIGENVALUE, 0.3, 10.0])
@pytest.mark.parametrize("is_circle", [False, True])
def test_small_and_large_ridges(ridge: float, is_circle: bool) -> None:
    c = steps("random", 1300)
    kernel = Kernel("gaussian", 8.0, period_of(c, is_circle))
    factor = Banded.build(kernel, c, ridge)
    assert factor.ridge == ridge
    assert_as_dense(factor, kernel)


def test_a_circle_of_any_parity_and_of_more_than_one_turn() -> None:
    for m in (401, 402):
        c = steps("random", m)
        kernel = Kernel(sigma=1.0, period=period_of(c, True))
        assert_as_dense(Banded.build(kernel, c, 0.01), kernel)
    c = np.arange(300) * 7.0 + 0.3  # eight turns; places are 0.1 apart
    kernel = Kernel(sigma=1.0, period=260.3)
    assert_as_dense(Banded.build(kernel, c, 0.01), kernel)


@pytest.mark.parametrize("m", [1, 2, 63, 64, 65, 128, 129])
@pytest.mark.parametrize("sigma", [1.0, 1e6])
@pytest.mark.parametrize("period", [None, 200.0])
def test_few_coordinates_make_few_blocks(m: int, sigma: float, period: float | None) -> None:
    c, kernel = steps("even", m), Kernel(sigma=sigma, period=period)
    factor = Banded.build(kernel, c, 0.1)
    x = np.random.default_rng(0).standard_normal((m, 2))
    close(factor.solve(gram(kernel, c, c) @ x + 0.1 * x), x, 1e-10)
    rows = gram(kernel, c + 0.4, c)
    inverse = np.linalg.inv(gram(kernel, c, c) + 0.1 * np.eye(m))
    left = 1 - np.einsum("qm,mn,qn->q", rows, inverse, rows)
    np.testing.assert_allclose(factor.unexplained(c + 0.4), left, rtol=0, atol=1e-11)


def test_blocks_are_as_long_as_the_band_at_its_widest() -> None:
    """A dense cluster among wide steps."""
    c = np.concatenate([np.arange(0, 300.0), 300 + 0.02 * np.arange(200), 310 + np.arange(300.0)])
    kernel = Kernel("matern12", 0.2)
    factor = Banded.build(kernel, c, 0.01)
    assert factor.size > 200
    assert_as_dense(factor, kernel)


def test_a_matrix_that_is_well_conditioned_needs_no_ridge() -> None:
    kernel, c = Kernel("gaussian", 1.0), steps("even", 400)
    factor = Banded.build(kernel, c, 0.0)
    assert factor.ridge == 0.0
    assert_as_dense(factor, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [0.0, 1e-15, 0.9 * LEAST_EIGENVALUE])
@pytest.mark.parametrize("sigma", [4.0, 30.0])
@pytest.mark.parametrize("is_circle", [False, True])
def test_the_ridge_of_a_nearly_singular_matrix_is_raised(
    ridge: float, sigma: float, is_circle: bool
) -> None:
    c = steps("random", 900)
    kernel = Kernel("gaussian", sigma, period_of(c, is_circle))
    factor = Banded.build(kernel, c, ridge)
    assert factor.ridge == LEAST_EIGENVALUE
    assert_same(factor, Banded.build(kernel, c, LEAST_EIGENVALUE), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [3.0, 10.0, 40.0])
@pytest.mark.parametrize("kind", ["even", "random"])
@pytest.mark.parametrize("ridge", [3e-6, 1e-6, 1e-8, 1e-10])
def test_a_small_ridge_is_kept_and_answers_white_noise_as_the_eigenbasis(
    sigma: float, kind: str, ridge: float
) -> None:
    """A ridge raised tenfold would change these answers by a hundredth of the data and more."""
    kernel, c = Kernel("gaussian", sigma), steps(kind, 700)
    data = np.random.default_rng(0).standard_normal((700, 4))
    half = c[:-1] + 0.5 * np.diff(c)
    known, rows = decompose(gram(kernel, c, c)).solvable(ridge), gram(kernel, half, c)
    factor = Banded.build(kernel, c, ridge)
    assert factor.ridge == ridge
    answers = factor.answer(half, factor.solve(data))
    true = rows @ known.vectors @ known.solve(ridge, data)
    np.testing.assert_allclose(answers, true, rtol=0, atol=3e-14 / ridge)
    explained = np.einsum("qm,mq->q", rows @ known.vectors, known.solve(ridge, rows.T))
    np.testing.assert_allclose(factor.unexplained(half), 1 - explained, rtol=0, atol=1e-12)


def test_the_ridge_is_raised_until_all_blocks_can_be_factorised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Banded._with_blocks

    def failing(factor: Banded) -> Banded:
        if factor.ridge < 5e-11:
            raise np.linalg.LinAlgError
        return whole(factor)

    monkeypatch.setattr(Banded, "_with_blocks", failing)
    factor = Banded.build(Kernel(sigma=5.0), steps("even", 400), 1e-12)
    assert factor.ridge == pytest.approx(1e-10)


@given(
    m=st.integers(1, 300),
    sigma=st.floats(0.05, 4),
    ridge=st.floats(1e-4, 10),
    family=st.sampled_from(list(FAMILIES)),
    is_circle=st.booleans(),
)
def test_solve_undoes_the_matrix(
    m: int, sigma: float, ridge: float, family: str, is_circle: bool
) -> None:
    c = steps("random", m, seed=m)
    kernel = Kernel(family, sigma, period_of(c, is_circle))
    x = np.random.default_rng(m).standard_normal((m, 2))
    right = gram(kernel, c, c) @ x + ridge * x
    close(Banded.build(kernel, c, ridge).solve(right), x, 1e-9)


@pytest.mark.slow
def test_answers_agree_on_a_long_line() -> None:
    kernel, c = Kernel("gaussian", 15.0), steps("random", 4000)
    factor = Banded.build(kernel, c, 1e-4)
    right = np.random.default_rng(0).standard_normal((4000, 2))
    dense = gram(kernel, c, c)
    true = dense @ np.linalg.solve(dense + 1e-4 * np.eye(4000), right)
    close(factor.answer(c, factor.solve(right)), true, 1e-8)


@pytest.mark.parametrize("more", [0, 1, 27, 28, 29, 300])
@pytest.mark.parametrize("is_circle", [False, True])
def test_an_extended_factor_is_one_of_all_coordinates(more: int, is_circle: bool) -> None:
    c = steps("even", 390 + more)
    kernel = Kernel(sigma=1.5, period=1000.0 if is_circle else None)
    factor = Banded.build(kernel, c[:390], 0.01)
    longer = factor.extend(c[390:])
    assert_same(longer, Banded.build(kernel, c, 0.01), 1e-12)
    if not is_circle:  # blocks of 64: six are full, and the last of them is redone
        assert all(a is b for a, b in zip(factor.blocks[:5], longer.blocks[:5], strict=True))


def test_an_extended_factor_takes_a_wider_band() -> None:
    c = np.concatenate([np.arange(300.0), 300 + 0.1 * np.arange(200)])
    kernel = Kernel(sigma=1.0)
    longer = Banded.build(kernel, c[:300], 0.01).extend(c[300:])
    assert longer.size > 64
    assert_same(longer, Banded.build(kernel, c, 0.01), 1e-12)


def test_an_extended_factor_raises_its_ridge_when_it_must() -> None:
    c = np.concatenate([np.arange(300.0), 300 + 0.2 * np.arange(60)])
    kernel = Kernel(sigma=1.0)
    factor = Banded.build(kernel, c[:300], 1e-15)
    assert factor.ridge == 1e-15
    assert_same(factor.extend(c[300:]), Banded.build(kernel, c, LEAST_EIGENVALUE), 1e-12)


def test_blocks_of_queries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, c = Kernel(sigma=2.0), steps("even", 500)
    factor, query = Banded.build(kernel, c, 0.01), np.linspace(-130, 380, 999)
    true, sizes = factor.unexplained(query), []

    def watched(kernel: Kernel, a: np.ndarray, b: np.ndarray, order: int) -> np.ndarray:
        sizes.append(a.size * b.size)
        return gram(kernel, a, b)

    monkeypatch.setattr(banded, "derivative_gram", watched)
    monkeypatch.setattr(banded, "BLOCK", 2000)
    np.testing.assert_allclose(factor.unexplained(query), true, rtol=0, atol=16 * EPS)
    assert max(sizes) <= 2000


def test_the_cost_is_that_of_the_band() -> None:
    c = steps("even", 3000)
    narrow, wide = cost(Kernel(sigma=1.0), c), cost(Kernel(sigma=60.0), c)
    assert narrow is not None
    assert wide is not None
    factor = Banded.build(Kernel(sigma=60.0), c, 0.1)
    factor.inverse_diagonal()
    held = sum(block.nbytes for block in factor.blocks + factor._tails)
    assert held <= wide.memory < 1.1 * held
    assert wide.operations / narrow.operations > (factor.size / 64) ** 1.5
    assert cost(Kernel(sigma=130.0), c) is None
    assert cost(Kernel(sigma=60.0, period=3000.0), c) is None
