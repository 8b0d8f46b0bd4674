"""Forecasts of the filter, against dense solves."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors import filter as module
from dkrls_cli.cascade.factors.filter import Filter
from dkrls_cli.cascade.factors.markov import STATES
from dkrls_cli.cascade.factors.quasiseparable import Quasiseparable
from dkrls_cli.cascade.kernels import Kernel, gram

TRENDS: dict[str, dict[str, float]] = {
    "none": {},
    "constant": {"constant": 2.0},
    "cycle": {"constant": 0.5, "cycle": 24.0},
}
each_family = pytest.mark.parametrize("family", STATES)
each_trend = pytest.mark.parametrize("trend", TRENDS)
each_kind = pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])


def data(size: int, even: bool) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    t = np.arange(float(size)) if even else np.cumsum(rng.uniform(0.2, 2.0, size))
    waves = np.sin(t[:, None] / [9.0, 30.0, 80.0])
    return t, waves + 0.1 * rng.standard_normal((size, 3)) + 1.0


def solved(kernel: Kernel, ridge: float, t: Array, y: Array, query: float) -> Array:
    system = gram(kernel, t, t) + ridge * np.eye(t.size)
    return np.linalg.solve(system, gram(kernel, t, np.array([query]))[:, 0]) @ y


@pytest.mark.slow
@each_family
@each_trend
@each_kind
@pytest.mark.parametrize(("sigma", "ridge"), [(0.3, 1e-6), (8.0, 1e-3), (300.0, 1.0)])
def test_forecasts_are_those_of_a_dense_solve(
    family: str, trend: str, even: bool, sigma: float, ridge: float
) -> None:
    """Whether samples were there from the first, or came one by one."""
    t, y = data(200, even)
    kernel = Kernel(family, sigma, **TRENDS[trend])
    for first in (1, 64, 100, 150):
        found = Filter.build([kernel], [ridge], t[:first], y[:first])
        for place in range(first, 150):
            found = found.append(float(t[place]), y[place])
        for query in (t[149] + 0.01, t[149] + 3.0, t[149] + 1e5):
            expected = solved(kernel, ridge, t[:150], y[:150], query)
            np.testing.assert_allclose(found.forecast(query)[0], expected, rtol=1e-9, atol=1e-9)


@each_family
@each_trend
@pytest.mark.parametrize("first", [20, 90])
def test_first_samples_leave_one_by_one(family: str, trend: str, first: int) -> None:
    t, y = data(140, even=False)
    kernel = Kernel(family, 40.0, **TRENDS[trend])
    found = Filter.build([kernel], [1e-2], t[:first], y[:first], leaving=20)
    for place in range(first, 140):
        found = found.append(float(t[place]), y[place])
    for without in (0, 1, 7, 20):
        expected = solved(kernel, 1e-2, t[without:], y[without:], t[-1] + 2.0)
        np.testing.assert_allclose(
            found.forecast(t[-1] + 2.0, without)[0], expected, rtol=1e-9, atol=1e-9
        )


def test_several_settings_are_as_each_alone() -> None:
    t, y = data(90, even=False)
    kernels = [Kernel("matern32", sigma, constant=1.0) for sigma in (3.0, 20.0, 400.0)]
    ridges = [1e-3, 1e-2, 1.0]
    together = Filter.build(kernels, ridges, t[:80], y[:80], leaving=2)
    alone = [
        Filter.build([k], [r], t[:80], y[:80], leaving=2)
        for k, r in zip(kernels, ridges, strict=True)
    ]
    for place in range(80, 90):
        together = together.append(float(t[place]), y[place])
        alone = [each.append(float(t[place]), y[place]) for each in alone]
    expected = np.concatenate([each.forecast(t[-1] + 1.0, 2) for each in alone])
    np.testing.assert_allclose(together.forecast(t[-1] + 1.0, 2), expected, rtol=1e-12)


def test_a_filter_stays_as_it_was_when_samples_follow() -> None:
    t, y = data(90, even=True)
    filtered = Filter.build([Kernel("matern52", 9.0, constant=1.0)], [1e-2], t[:80], y[:80])
    before = filtered.forecast(80.5)
    one, other = filtered.append(81.0, y[81]), filtered.append(82.0, y[82])
    np.testing.assert_array_equal(filtered.forecast(80.5), before)
    assert (one.last, other.last) == (81.0, 82.0)


def test_columns_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    t, _ = data(90, even=True)
    y = np.random.default_rng(1).standard_normal((90, 30))
    kernel = Kernel("matern52", 9.0, constant=1.0)
    whole = Filter.build([kernel], [1e-2], t, y, leaving=3)
    monkeypatch.setattr(module, "_AT_ONCE", 90)
    parts = Filter.build([kernel], [1e-2], t, y, leaving=3)
    np.testing.assert_allclose(parts.states, whole.states, atol=1e-13)
    np.testing.assert_allclose(parts.products, whole.products, atol=1e-11)


def test_a_ridge_below_round_off_is_that_of_the_factor() -> None:
    t, y = data(70, even=True)
    filtered = Filter.build([Kernel("matern12", 9.0)], [0.0], t, y).append(70.0, y[0])
    assert filtered.ridges.tolist() == [1e-12]
    assert np.isfinite(filtered.forecast(71.0)).all()


@each_family
@each_kind
def test_whitened_data_has_the_products_of_a_solve(family: str, even: bool) -> None:
    """The states are cov(states, y) C^-1 y, and P their covariance that the samples explain."""
    t, y = data(150, even)
    kernel = Kernel(family, 8.0)
    factor = Quasiseparable.build(kernel, t, 1e-3)
    whitened, states = factor.whiten(y)
    inverse = np.linalg.inv(gram(kernel, t, t) + 1e-3 * np.eye(150))
    np.testing.assert_allclose(whitened.T @ whitened, y.T @ inverse @ y, rtol=1e-8)
    across = gram(kernel, t[-1:], t)  # the first state is the value
    np.testing.assert_allclose(states[0], (across @ inverse @ y)[0], atol=1e-9)
    explained = factor.explained_at_end
    np.testing.assert_allclose(explained[0, 0], (across @ inverse @ across.T)[0, 0], atol=1e-9)
    np.testing.assert_allclose(explained, explained.T, atol=1e-12)
    assert replace(factor).whiten(np.empty((150, 0)))[0].shape == (150, 0)
