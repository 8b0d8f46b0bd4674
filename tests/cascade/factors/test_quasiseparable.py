"""The quasiseparable factor against dense algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors import quasiseparable as module
from dkrls_cli.cascade.factors.blocks import BLOCK, Block, Shape
from dkrls_cli.cascade.factors.markov import STATES
from dkrls_cli.cascade.factors.quasiseparable import Quasiseparable, cost
from dkrls_cli.cascade.kernels import Kernel, gram

SIZES = (1, 2, 63, 64, 65, 128, 300)


def nodes(size: int, even: bool, seed: int = 0) -> Array:
    steps = np.random.default_rng(seed).uniform(0.1, 2.0, size)
    return np.arange(float(size)) if even else np.cumsum(steps)


def queries(c: Array) -> Array:
    """Return places before, between, at and behind the nodes, in no order, some of them twice."""
    rng = np.random.default_rng(1)
    inside = rng.uniform(c[0], c[-1], 150)
    ends = [c[0] - 3.0, c[-1] + 3.0, c[0] - 1e4, c[-1] + 1e4]
    return rng.permutation(np.concatenate([inside, inside[:5], c[:3], c[-3:], ends]))


@pytest.mark.slow
@pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", STATES)
@pytest.mark.parametrize(("sigma", "ridge"), [(0.3, 1e-6), (4.0, 1e-4), (4.0, 2.0), (200.0, 1e-2)])
def test_all_is_as_with_the_dense_matrix(
    family: str, size: int, even: bool, sigma: float, ridge: float
) -> None:
    kernel, c = Kernel(family, sigma), nodes(size, even)
    factor, q = Quasiseparable.build(kernel, c, ridge), queries(c)
    system, across = gram(kernel, c, c) + ridge * np.eye(size), gram(kernel, q, c)
    right = np.random.default_rng(2).standard_normal((size, 3))
    inverse = np.linalg.inv(system)
    weights = factor.solve(right)
    np.testing.assert_allclose(system @ weights, right, atol=1e-8)
    np.testing.assert_allclose(factor.answer(q, right), across @ right, atol=1e-10)
    np.testing.assert_allclose(factor.answer(q, weights), across @ inverse @ right, atol=1e-7)
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), rtol=1e-7)
    left = 1.0 - np.einsum("qi,ij,qj->q", across, inverse, across)
    np.testing.assert_allclose(factor.unexplained(q), left, atol=1e-8)
    assert (factor.unexplained(q) >= 0).all()
    edges = np.unique([0, size // 7, size // 3, size // 3 + 1, 2 * size // 3, size])
    for block, start, stop in zip(factor.inverse_blocks(edges), edges, edges[1:], strict=False):
        expected = inverse[start:stop, start:stop]
        np.testing.assert_allclose(block, expected, atol=1e-7 * np.abs(inverse).max())


@pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])
@pytest.mark.parametrize("family", STATES)
@pytest.mark.parametrize(("sigma", "ridge"), [(3.0, 1e-6), (100.0, 1e-4), (3000.0, 1e-2)])
@pytest.mark.slow
def test_2000_samples_agree_with_a_dense_solve_to_1e_8(
    family: str, even: bool, sigma: float, ridge: float
) -> None:
    kernel, c = Kernel(family, sigma), nodes(2000, even)
    y, middle = np.random.default_rng(0).standard_normal((c.size, 2)), (c[1:] + c[:-1]) / 2
    weights = solve(gram(kernel, c, c) + ridge * np.eye(c.size), y, assume_a="pos")
    expected = gram(kernel, middle, c) @ weights
    factor = Quasiseparable.build(kernel, c, ridge)
    np.testing.assert_allclose(factor.answer(middle, factor.solve(y)), expected, atol=1e-8)


@settings(max_examples=40)
@given(
    st.sampled_from(list(STATES)),
    st.integers(1, 200),
    st.floats(-1, 4),
    st.floats(-9, 1),
    st.integers(0, 99),
)
def test_a_solve_undoes_a_product(
    family: str, size: int, log_sigma: float, log_ridge: float, seed: int
) -> None:
    kernel, ridge, c = Kernel(family, 10**log_sigma), 10**log_ridge, nodes(size, False, seed)
    factor = Quasiseparable.build(kernel, c, ridge)
    weights = np.random.default_rng(seed).standard_normal((size, 2))
    product = factor.answer(c, weights) + ridge * weights
    np.testing.assert_allclose(factor.solve(product), weights, atol=1e-13 * size**2 / ridge + 1e-9)


# ---- even steps


@pytest.mark.parametrize("family", STATES)
def test_even_blocks_share_one_factor(family: str) -> None:
    """It is that of uneven blocks, made by steps that differ by far less than round-off matters."""
    c = np.arange(40.0 * BLOCK + 7)
    kernel = Kernel(family, 5.0)
    shared = Quasiseparable.build(kernel, c, 1e-3)
    assert len(shared.inverse.matrices) < 12
    uneven = c.copy()
    uneven[100] += 1e-9
    alone = Quasiseparable.build(kernel, uneven, 1e-3)
    assert len(alone.inverse.matrices) == 41
    y = np.random.default_rng(0).standard_normal((c.size, 2))
    np.testing.assert_allclose(shared.solve(y), alone.solve(y), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(shared.inverse_diagonal(), alone.inverse_diagonal(), rtol=1e-6)


@pytest.mark.parametrize("family", STATES)
@pytest.mark.parametrize(
    ("sigma", "ridge"), [(3.0, 1e-3), (48.0, 1e-8), (500.0, 1e-4), (5e3, 1e-2)]
)
def test_shared_blocks_lose_no_digits(
    family: str, sigma: float, ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A P that settles slowly, or falls and rises again, is not taken for one that has settled."""
    c, kernel = np.arange(1500.0), Kernel(family, sigma)
    y, middle = np.sin(c / 20)[:, None], c[:-1] + 0.5
    shared = Quasiseparable.build(kernel, c, ridge)
    rough = Quasiseparable.build(kernel, c, ridge, rough=True)
    monkeypatch.setattr(module, "is_even", lambda _: False)
    alone = Quasiseparable.build(kernel, c, ridge)
    assert len(rough.inverse.matrices) <= len(shared.inverse.matrices)
    expected = alone.answer(middle, alone.solve(y))
    np.testing.assert_allclose(shared.answer(middle, shared.solve(y)), expected, atol=1e-9)
    np.testing.assert_allclose(rough.answer(middle, rough.solve(y)), expected, atol=1e-3)
    np.testing.assert_allclose(rough.inverse_diagonal(), alone.inverse_diagonal(), rtol=1e-2)


def test_a_rough_factor_shares_blocks_where_an_exact_one_does_not() -> None:
    kernel, c = Kernel("matern52", 48.0), np.arange(1500.0)
    exact, rough = (Quasiseparable.build(kernel, c, 1e-7, rough=rough) for rough in (False, True))
    assert len(rough.inverse.matrices) < len(exact.inverse.matrices)


def test_blocks_stay_apart_until_the_states_have_settled() -> None:
    """A long memory settles slowly; a first block is never the one that all share."""
    slow = Quasiseparable.build(Kernel("matern12", 1e4), np.arange(100.0 * BLOCK), 10.0)
    fast = Quasiseparable.build(Kernel("matern12", 1.0), np.arange(100.0 * BLOCK), 1e-3)
    assert 2 < len(fast.inverse.matrices) < len(slow.inverse.matrices)


# ---- guards


def test_a_ridge_below_round_off_is_raised() -> None:
    c = np.arange(500.0)
    factor = Quasiseparable.build(Kernel("matern52", 1e4), c, 0.0)
    assert factor.ridge == 1e-12
    assert np.isfinite(factor.solve(np.ones((500, 1)))).all()
    assert Quasiseparable.build(Kernel("matern52", 1.0), c, 1e-9).ridge == 1e-9


def test_a_block_that_round_off_spoils_has_a_larger_ridge() -> None:
    """Which ridge that is depends on the last bits of products, but what is solved for does not."""
    c = np.sort(np.random.default_rng(0).uniform(0, 1100, 1100))
    for sigma in (200.0, 500.0, 1000.0):
        factor = Quasiseparable.build(Kernel("matern52", sigma), c, 0.0)
        assert 1e-12 <= factor.ridge <= 1.1e-11
        found = factor.answer(c, factor.solve(c[:, None]))
        np.testing.assert_allclose(found, c[:, None], atol=1e-3)


@pytest.mark.parametrize("ridge", [0.0, 1e-12])
def test_a_ridge_is_raised_until_all_blocks_can_be_factorised(
    ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks behind the first with more than 20 samples pass for singular at a small ridge."""
    factor_block = module.factor_block

    def limited(shape: Shape, given: float, explained: Array) -> Block:
        if given < 5e-12 and explained.any() and shape.size > 20:
            raise np.linalg.LinAlgError
        return factor_block(shape, given, explained)

    monkeypatch.setattr(module, "factor_block", limited)
    kernel, c = Kernel("matern52", 5.0), nodes(BLOCK + 21, False)
    factor = Quasiseparable.build(kernel, c, ridge)
    assert factor.ridge == pytest.approx(1e-11)
    shorter = Quasiseparable.build(kernel, c[:-1], ridge)
    assert shorter.ridge == 1e-12
    assert shorter.extend(c[-1:]).ridge == pytest.approx(1e-11)


def test_columns_and_queries_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    c, rng = nodes(200, False), np.random.default_rng(0)
    kernel, y, q = (
        Kernel("matern32", 3.0),
        rng.standard_normal((200, 30)),
        queries(nodes(200, False)),
    )
    factor = Quasiseparable.build(kernel, c, 1e-2)
    solved, answered, left = factor.solve(y), factor.answer(q, y), factor.unexplained(q)
    monkeypatch.setattr(module, "AT_ONCE", 200)
    np.testing.assert_allclose(factor.solve(y), solved, atol=1e-12)
    np.testing.assert_allclose(factor.answer(q, y), answered, atol=1e-12)
    np.testing.assert_allclose(factor.unexplained(q), left, atol=1e-12)
    assert list(module._columns(200, 20)) == [slice(0, 6), slice(6, 13), slice(13, 20)]


def test_no_query_has_no_answer() -> None:
    factor = Quasiseparable.build(Kernel("matern32", 3.0), nodes(100, False), 1e-2)
    assert factor.answer(np.empty(0), np.ones((100, 2))).shape == (0, 2)
    assert factor.unexplained(np.empty(0)).shape == (0,)


@pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])
@pytest.mark.parametrize("first", [1, 63, 64, 65, 150, 1000])
@pytest.mark.parametrize("more", [1, 2, 64, 90])
def test_an_extended_factor_is_that_of_all_samples(first: int, more: int, even: bool) -> None:
    c, kernel = nodes(first + more, even), Kernel("matern52", 5.0)
    whole = Quasiseparable.build(kernel, c, 1e-3)
    part = Quasiseparable.build(kernel, c[:first], 1e-3).extend(c[first:])
    y = np.random.default_rng(0).standard_normal((c.size, 2))
    np.testing.assert_allclose(part.solve(y), whole.solve(y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(part.inverse_diagonal(), whole.inverse_diagonal(), rtol=1e-9)


@pytest.mark.parametrize("more", [2, 200])
def test_a_factor_that_stops_being_even_is_made_again(more: int) -> None:
    c = np.append(np.arange(1000.0), 1000.0 + np.cumsum(np.linspace(0.5, 2.5, more)))
    part = Quasiseparable.build(Kernel("matern32", 5.0), c[:1000], 1e-3).extend(c[1000:])
    whole = Quasiseparable.build(Kernel("matern32", 5.0), c, 1e-3)
    np.testing.assert_allclose(part.inverse_diagonal(), whole.inverse_diagonal(), rtol=1e-9)


def test_cost_is_known_beforehand() -> None:
    even, uneven = nodes(5000, True), nodes(5000, False)
    kernel = Kernel("matern52", 5.0)
    for c in (even, uneven):
        factor = Quasiseparable.build(kernel, c, 1e-3)
        stacks = (factor.inverse, factor.right, factor.left, factor.ahead, factor.phi)
        used = sum(stack.matrices.nbytes for stack in stacks)
        known = cost(kernel, c)
        assert known is not None
        assert used / 3 < known.memory < 3 * used
    assert cost(Kernel("gaussian", 5.0), even) is None
    assert cost(Kernel("matern52", 5.0, period=5000.0), even) is None


@pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", STATES)
def test_colouring_undoes_whitening_and_has_the_covariance(
    family: str, size: int, even: bool
) -> None:
    kernel, c = Kernel(family, 3.0), nodes(size, even)
    factor = Quasiseparable.build(kernel, c, 0.01)
    lower = factor.colour(np.eye(size))
    np.testing.assert_allclose(lower, np.tril(lower), atol=1e-14)
    np.testing.assert_allclose(
        lower @ lower.T, gram(kernel, c, c) + 0.01 * np.eye(size), atol=1e-11
    )
    right = np.random.default_rng(2).standard_normal((size, 3))
    np.testing.assert_allclose(factor.colour(factor.whiten(right)[0]), right, atol=1e-9)
