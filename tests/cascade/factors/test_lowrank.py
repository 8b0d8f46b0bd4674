"""Long Gaussians against dense matrices."""

import numpy as np
import pytest
from dense_factors import EPS, assert_as_dense, assert_same, close, places, steps
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.factors import lowrank
from dkrls_cli.cascade.factors.lowrank import LowRank, cost
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import decompose


def kernel_on(c: np.ndarray, sigma: float, is_circle: bool) -> Kernel:
    return Kernel("gaussian", sigma, float(np.ptp(c)) + 0.7 if is_circle else None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["even", "random"])
@pytest.mark.parametrize("is_circle", [False, True])
@pytest.mark.parametrize("sigma", [12.0, 60.0, 400.0, 1e5])
def test_all_answers_are_those_of_the_dense_matrix(
    kind: str, is_circle: bool, sigma: float
) -> None:
    c = steps(kind, 500)
    kernel = kernel_on(c, sigma, is_circle)
    assert_as_dense(LowRank.build(kernel, c, 1e-3), kernel)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [3e-6, 0.3, 10.0])
@pytest.mark.parametrize("is_circle", [False, True])
def test_small_and_large_ridges(ridge: float, is_circle: bool) -> None:
    c = steps("random", 1100)
    kernel = kernel_on(c, 40.0, is_circle)
    assert_as_dense(LowRank.build(kernel, c, ridge), kernel)


@pytest.mark.slow
@pytest.mark.parametrize("is_circle", [False, True])
@pytest.mark.parametrize("sigma", [5.0, 50.0, 5000.0])
def test_the_matrix_is_known_to_round_off(is_circle: bool, sigma: float) -> None:
    c = steps("random", 1000)
    kernel = kernel_on(c, sigma, is_circle)
    factor = LowRank.build(kernel, c, 0.1)
    error = (factor.vectors * factor.roots**2) @ factor.vectors.T - gram(kernel, c, c)
    assert np.linalg.norm(error, 2) < 4 * EPS * c.size
    between = factor.vectors.T @ factor.vectors - np.eye(factor.roots.size)
    assert np.abs(between).max() < 1e-14


@pytest.mark.parametrize("extent", [1.0, 10.0, 100.0])
def test_the_rank_is_known_beforehand(extent: float) -> None:
    """2.82 extent / sigma + 51, on a line."""
    c = np.linspace(0, extent, 1000)
    waves = lowrank._waves(Kernel(sigma=1.0), c)
    assert waves is not None
    assert waves.count == pytest.approx(2.82 * extent + 51, abs=2)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("period", [None, 9.0])
def test_the_series_ends_before_its_limit(sigma: float, period: float | None) -> None:
    """What is left out is below round-off: the variances add up to 1."""
    waves = lowrank._waves(Kernel(sigma=sigma, period=period), np.linspace(0, 8.9, 9000))
    assert waves is not None
    assert np.sum(waves.sizes**2) == pytest.approx(1.0, abs=8 * EPS)


@pytest.mark.parametrize("ridge", [0.0, 1e-14, 1e-10, 1e-3])
@pytest.mark.parametrize("is_circle", [False, True])
def test_answers_are_those_in_the_eigenbasis_at_any_ridge(ridge: float, is_circle: bool) -> None:
    c = steps("random", 600)
    kernel = kernel_on(c, 25.0, is_circle)
    dense, rng = gram(kernel, c, c), np.random.default_rng(0)
    data = dense @ rng.standard_normal((600, 2))
    known = decompose(dense).solvable(ridge)
    query = places(c)
    query = query[(query >= c[0]) & (query <= c[-1])]
    true = gram(kernel, query, c) @ known.vectors @ known.solve(ridge, data)
    factor = LowRank.build(kernel, c, ridge)
    close(factor.answer(query, factor.solve(data)), true, 1e-11)


def test_a_ridge_of_round_off_leaves_directions_out() -> None:
    """C^-1 is then the pseudo-inverse: as the exact one in the directions that matter."""
    c = steps("even", 500)
    factor = LowRank.build(Kernel(sigma=40.0), c, 0.0)
    w, v = factor.roots**2, factor.vectors
    live = w > 4 * EPS * w[0]
    inverse = (v[:, live] / w[live]) @ v[:, live].T
    right = np.random.default_rng(0).standard_normal((500, 2))
    close(factor.solve(right), inverse @ right, 1e-9)
    close(factor.inverse_diagonal(), np.diag(inverse), 1e-9)
    close(factor.inverse_blocks(np.array([0, 500]))[0], inverse, 1e-9)
    unexplained = factor.unexplained(np.concatenate([c, [c[-1] + 200]]))
    assert unexplained[:-1].max() < 1e-14 * w[0]
    assert unexplained[-1] == pytest.approx(1.0, abs=1e-3)


def test_nothing_is_known_far_outside() -> None:
    c = steps("even", 300)
    factor = LowRank.build(Kernel(sigma=10.0), c, 1e-6)
    query = np.array([c[0] - 90.0, c[-1] + 90.0, 1e12, -1e300])
    weights = 1e9 * np.random.default_rng(0).standard_normal((300, 2))
    assert (factor.answer(query, weights) == 0).all()
    assert (factor.unexplained(query) == 1).all()


@given(
    m=st.integers(140, 300),
    sigma=st.floats(8, 1e4),
    ridge=st.floats(1e-4, 10),
    is_circle=st.booleans(),
)
def test_solve_undoes_the_matrix(m: int, sigma: float, ridge: float, is_circle: bool) -> None:
    c = steps("random", m, seed=m)
    kernel = kernel_on(c, sigma, is_circle)
    x = np.random.default_rng(m).standard_normal((m, 2))
    right = gram(kernel, c, c) @ x + ridge * x
    close(LowRank.build(kernel, c, ridge).solve(right), x, 1e-8)


@pytest.mark.slow
def test_answers_agree_on_a_long_line() -> None:
    kernel, c = Kernel("gaussian", 100.0), steps("random", 4000)
    factor = LowRank.build(kernel, c, 1e-4)
    right = np.random.default_rng(0).standard_normal((4000, 2))
    dense = gram(kernel, c, c)
    true = dense @ np.linalg.solve(dense + 1e-4 * np.eye(4000), right)
    close(factor.answer(c, factor.solve(right)), true, 1e-8)


def test_an_extended_factor_is_one_of_all_coordinates() -> None:
    c, kernel = steps("random", 400), Kernel(sigma=30.0)
    assert_same(
        LowRank.build(kernel, c[:350], 0.01).extend(c[350:]), LowRank.build(kernel, c, 0.01)
    )


def test_blocks_of_queries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    c = steps("even", 400)
    factor, query = LowRank.build(Kernel(sigma=30.0), c, 0.01), np.linspace(-150, 350, 777)
    weights = np.random.default_rng(0).standard_normal((400, 3))
    true = factor.answer(query, weights), factor.unexplained(query), factor.inverse_diagonal()
    monkeypatch.setattr(lowrank, "BLOCK", 2000)
    close(factor.answer(query, weights), true[0], 1e-14)
    close(factor.unexplained(query), true[1], 1e-13)
    close(factor.inverse_diagonal(), true[2], 1e-14)


def test_only_long_gaussians_apply() -> None:
    c = steps("even", 1000)
    for family in FAMILIES:
        assert (cost(Kernel(family, 50.0), c) is not None) == (family == "gaussian")
    assert cost(Kernel(sigma=6.0), c) is None
    assert cost(Kernel(sigma=7.0), c) is not None
    assert cost(Kernel(sigma=1e-300), c) is None
    assert cost(Kernel(sigma=1e308), c) is None
    assert cost(Kernel(sigma=5.0, period=1000.0), c) is None
    assert cost(Kernel(sigma=6.0, period=1000.0), c) is not None
    with pytest.raises(AssertionError):
        LowRank.build(Kernel("matern12", 50.0), c, 0.1)


@pytest.mark.parametrize("added", [{"constant": 1.0}, {"cycle": 12.0}])
def test_kernels_with_trends_are_not_taken(added: dict[str, float]) -> None:
    with pytest.raises(AssertionError):
        cost(Kernel(sigma=50.0, **added), steps("even", 1000))
