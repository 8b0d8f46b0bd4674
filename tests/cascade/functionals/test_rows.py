"""Tests of dkrls_cli.cascade.functionals.rows; answers are in test_answers.py."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals import rows as module
from dkrls_cli.cascade.functionals.functional import Derivatives, Means, Values
from dkrls_cli.cascade.functionals.rows import (
    LongAnswerRows,
    LongKernelRows,
    answer_long,
    long_variance,
)
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.errors import SettingError

KERNEL, NODES = Kernel("matern52", 9.0, constant=0.3), np.arange(200.0)
FACTOR = LongFactor.build(KERNEL, NODES, 0.01)
SYSTEM = gram(KERNEL, NODES, NODES) + 0.01 * np.eye(200)
MEANS = Means(np.array([0.2, 50.0, 77.7]), np.array([0.9, 130.0, 80.0]))
ASKED = [MEANS, Derivatives(np.array([3.0, 66.6]), 1), Values(np.array([1.5, 199.0]))]


@pytest.mark.parametrize("asked", ASKED)
def test_operators_equal_matrices(asked, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 64)  # one mean at a time
    data = np.random.default_rng(0).standard_normal((200, 2))
    rows = asked.rows(KERNEL, NODES)
    assert np.allclose(answer_long(FACTOR, asked, data), rows @ data, rtol=0, atol=1e-11)
    operator = LongKernelRows(FACTOR, asked)
    assert (len(operator), operator.ndim) == (len(asked), 2)
    assert np.allclose(operator[1:] @ data, rows[1:] @ data, rtol=0, atol=1e-11)
    solved = rows @ np.linalg.solve(SYSTEM, data)
    assert np.allclose(LongAnswerRows(FACTOR, asked)[:1] @ data, solved[:1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("asked", ASKED)
def test_variances_equal_dense_ones(asked, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 250)
    rows = asked.rows(KERNEL, NODES)
    exact = asked.prior(KERNEL) - np.einsum("qm,mq->q", rows, np.linalg.solve(SYSTEM, rows.T))
    assert np.allclose(long_variance(FACTOR, asked, "t"), exact, rtol=0, atol=1e-11)


def test_too_many_means_of_a_long_level_have_no_error_bars(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 599)
    with pytest.raises(SettingError, match=r"3 answers along 't', of 200 coordinates.* 2 answers"):
        long_variance(FACTOR, MEANS, "t")
    assert long_variance(FACTOR, MEANS[:2], "t").shape == (2,)


@pytest.mark.parametrize("warp", ["log", "sqrt"])
@pytest.mark.parametrize("asked", [*ASKED, Derivatives(np.array([3.0, 66.6]), 2)])
def test_long_levels_of_warped_coordinates_equal_dense_ones(warp, asked):
    kernel, nodes = Kernel("matern52", 1.5, constant=0.3, warp=warp), NODES + 0.1
    factor = LongFactor.build(kernel, nodes, 0.01)
    data, rows = np.random.default_rng(0).standard_normal((200, 2)), asked.rows(kernel, nodes)
    assert np.allclose(answer_long(factor, asked, data), rows @ data, rtol=0, atol=1e-10)
    system = gram(kernel, nodes, nodes) + 0.01 * np.eye(200)
    exact = asked.prior(kernel) - np.einsum("qm,mq->q", rows, np.linalg.solve(system, rows.T))
    assert np.allclose(long_variance(factor, asked, "t"), exact, rtol=0, atol=1e-10)
