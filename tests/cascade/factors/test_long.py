"""Factors of long levels, with their trends, against dense algebra."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors.long import LongAxis, LongFactor, LongSmoother
from dkrls_cli.cascade.kernels import Kernel, gram

KERNELS = {
    "plain": Kernel("matern32", 3.0),
    "constant": Kernel("matern12", 3.0, constant=2.0),
    "cycle": Kernel("matern52", 2.0, cycle=7.0, swing=10.0),
    "both": Kernel("matern32", 30.0, constant=1.0, cycle=11.3, swing=0.5),
}

each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
each_order = pytest.mark.parametrize("order", ["rising", "falling", "any"])


def nodes(order: str) -> Array:
    rng = np.random.default_rng(3)
    c = np.cumsum(rng.uniform(0.1, 1.0, 150))
    return {"rising": c, "falling": c[::-1].copy(), "any": rng.permutation(c)}[order]


Y = np.random.default_rng(4).standard_normal((150, 4)) + 5.0
Q = np.random.default_rng(5).uniform(-3.0, 90.0, 70)


@each_order
@each_kernel
@pytest.mark.parametrize("ridge", [1e-4, 1.0])
def test_all_is_as_with_the_dense_matrix(kernel: Kernel, order: str, ridge: float) -> None:
    c = nodes(order)
    factor = LongFactor.build(kernel, c, ridge)
    inverse = np.linalg.inv(gram(kernel, c, c) + ridge * np.eye(c.size))
    across = gram(kernel, Q, c)
    np.testing.assert_allclose(factor.solve(Y), inverse @ Y, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(factor.answer(Q, Y), across @ Y, rtol=1e-10)
    np.testing.assert_allclose(factor.answer(Q, factor.solve(Y)), across @ inverse @ Y, atol=1e-8)
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), rtol=1e-8)
    left = kernel.variance - np.einsum("qi,ij,qj->q", across, inverse, across)
    np.testing.assert_allclose(factor.unexplained(Q), left, atol=1e-8)
    rising = np.argsort(c)
    for block, part in zip(
        factor.inverse_blocks(np.array([0, 70, 75, 150])), np.split(rising, [70, 75]), strict=True
    ):
        np.testing.assert_allclose(block, inverse[np.ix_(part, part)], rtol=1e-6, atol=1e-6)
    assert (factor.ridge, factor.rank) == (ridge, 150)
    np.testing.assert_allclose(
        factor.with_ridge(0.3).solve(Y), LongFactor.build(kernel, c, 0.3).solve(Y)
    )


@each_order
@each_kernel
def test_an_extended_factor_is_that_of_all_samples(kernel: Kernel, order: str) -> None:
    c = nodes(order)
    part = LongFactor.build(kernel, c[:100], 1e-3).extend(c[100:])
    np.testing.assert_array_equal(part.coordinates, c)
    np.testing.assert_allclose(
        part.solve(Y), LongFactor.build(kernel, c, 1e-3).solve(Y), rtol=1e-8, atol=1e-6
    )


def test_rows_are_an_operator_that_can_be_cut() -> None:
    kernel, c = KERNELS["both"], nodes("any")
    rows = LongFactor.build(kernel, c, 1e-3).rows(Q)
    assert (len(rows), rows.ndim) == (70, 2)
    np.testing.assert_allclose(rows[10:20] @ Y, gram(kernel, Q[10:20], c) @ Y, rtol=1e-10)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_axis_gives_its_data_at_nodes_and_the_model_between(axis: int) -> None:
    kernel, c = KERNELS["constant"], nodes("any")
    factor = LongFactor.build(kernel, c, 1e-2)
    tensor = np.random.default_rng(0).standard_normal((2, 3, 2))
    tensor = np.moveaxis(np.random.default_rng(0).standard_normal((150, 2, 3)), 0, axis)
    query = np.concatenate([Q[:5], c[[7, 3]]])
    places = np.array([-1] * 5 + [7, 3])
    found = LongAxis(factor, tensor, axis).at(query, places)
    inverse = np.linalg.inv(gram(kernel, c, c) + 1e-2 * np.eye(150))
    first = np.moveaxis(tensor, axis, 0)
    expected = np.tensordot(gram(kernel, Q[:5], c) @ inverse, first, 1)
    np.testing.assert_allclose(np.moveaxis(found, axis, 0)[:5], expected, atol=1e-8)
    np.testing.assert_array_equal(np.moveaxis(found, axis, 0)[5:], first[[7, 3]])
    smoother = LongSmoother(factor, query, places)
    assert (len(smoother), smoother.ndim) == (7, 2)
    flat = first.reshape(150, -1)
    np.testing.assert_allclose(smoother[2:6] @ flat, (smoother @ flat)[2:6], atol=1e-12)
    np.testing.assert_allclose((smoother @ flat)[:5], expected.reshape(5, -1), atol=1e-8)


def test_data_at_nodes_needs_no_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = LongFactor.build(KERNELS["plain"], nodes("rising"), 1e-2)
    monkeypatch.setattr(LongFactor, "solve", None)
    found = LongAxis(factor, Y, 0).at(nodes("rising")[[4, 2]], np.array([4, 2]))
    np.testing.assert_array_equal(found, Y[[4, 2]])


@pytest.mark.parametrize("kernel", [Kernel("matern52", 0.4, constant=1.0), Kernel("gaussian", 1.0)])
def test_a_warped_kernel_is_that_of_warped_coordinates(kernel: Kernel) -> None:
    x = np.random.default_rng(2).permutation(np.geomspace(1.0, 50.0, 150))
    query = np.geomspace(0.9, 60.0, 40)
    found = LongFactor.build(replace(kernel, warp="log"), x, 1e-3)
    expected = LongFactor.build(kernel, np.log(x), 1e-3)
    weights = expected.solve(Y)
    assert np.array_equal(found.solve(Y), weights)
    assert np.array_equal(found.answer(query, weights), expected.answer(np.log(query), weights))
    assert np.array_equal(found.unexplained(query), expected.unexplained(np.log(query)))
    assert np.array_equal(found.inverse_diagonal(), expected.inverse_diagonal())
    rising = LongFactor.build(replace(kernel, warp="log"), np.sort(x)[:140], 1e-3)
    longer = rising.extend(np.sort(x)[140:])
    whole = LongFactor.build(replace(kernel, warp="log"), np.sort(x), 1e-3)
    np.testing.assert_allclose(longer.solve(Y), whole.solve(Y), rtol=1e-8, atol=1e-8)
