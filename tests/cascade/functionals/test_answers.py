"""Tests of dkrls_cli.cascade.functionals.answers: against dense solves, and finite differences."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from long_models import long_model

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals.answers import (
    answer_blocks,
    answer_data,
    answer_grid,
    answer_points,
)
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

X, Y = np.linspace(0.0, 9.0, 10), np.arange(12.0) * 30
LEVELS = [
    Level("x", Kernel("matern52", 2.0, constant=0.5), 0.02),
    Level("y", Kernel("gaussian", 60.0, period=360.0), 0.01),
]


def data() -> np.ndarray:
    noise = 0.1 * np.random.default_rng(0).standard_normal((10, 12))
    return 3.0 + np.sin(X)[:, None] * np.cos(np.radians(Y)) + noise


def model(joint: bool) -> Cascade:
    if not joint:
        return fit_cascade(data(), [X, Y], LEVELS, mean=2.5)
    plain = [Level(level.name, level.kernel) for level in LEVELS]
    return fit_cascade(data(), [X, Y], plain, joint_ridge=0.03, mean=2.5)


def dense(cascade: Cascade, asked: list[Functional]) -> np.ndarray:
    """Return the answers by one solve with the whole system."""
    systems = [gram(v.kernel, c, c) for v, c in zip(LEVELS, (X, Y), strict=True)]
    if cascade.joint_ridge is None:
        systems = [s + v.ridge * np.eye(len(s)) for s, v in zip(systems, LEVELS, strict=True)]
    system = np.kron(*systems) + (cascade.joint_ridge or 0.0) * np.eye(120)
    weights = np.linalg.solve(system, (data() - cascade.mean).ravel())
    rows = [f.rows(v.kernel, c) for f, v, c in zip(asked, LEVELS, (X, Y), strict=True)]
    one = np.prod([f.of_one for f in asked])
    return (np.kron(*rows) @ weights + one * cascade.mean).reshape(len(asked[0]), -1)


MEANS = Means(np.array([0.3, 2.0]), np.array([1.1, 7.0]))
SLOPES = Derivatives(np.array([0.0, 1.7, 8.0]), 1)
AROUND = Means(np.array([-10.0, 40.0]), np.array([10.0, 400.0]))
CURVES = Derivatives(np.array([15.0, 300.0, 30.0]), 2)
OTHER = Values(np.array([17.0, 100.0, 301.0]))


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("first", [MEANS, SLOPES])
@pytest.mark.parametrize("second", [AROUND, CURVES, OTHER])
def test_answers_equal_a_dense_solve(joint, first, second):
    cascade, asked = model(joint), [first, second]
    found = answer_grid(cascade, asked, smooth=True)
    exact = dense(cascade, asked)
    assert np.allclose(found, exact, rtol=0, atol=1e-11)
    part = (slice(1, 2), slice(0, 2))
    for smooth in (True, False):
        whole = answer_grid(cascade, asked, smooth=smooth)
        some = answer_blocks(cascade, asked, smooth=smooth)(part)
        assert np.allclose(some, whole[part], rtol=0, atol=1e-13)


@pytest.mark.parametrize("joint", [False, True])
def test_slopes_have_a_share_of_what_the_data_has_beside_the_smooth_field(joint):
    cascade, asked = model(joint), [SLOPES, Values(Y[3:6])]
    nodes = [Values(X), Values(Y[3:6])]
    if joint:  # the residual of the cells themselves
        residual = data()[:, 3:6] - dense(cascade, nodes)
        smooth = dense(cascade, asked)
    else:  # along the other axis values pass through
        system = gram(LEVELS[0].kernel, X, X) + LEVELS[0].ridge * np.eye(10)
        weights = np.linalg.solve(system, data()[:, 3:6] - cascade.mean)
        residual = LEVELS[0].ridge * weights
        smooth = SLOPES.rows(LEVELS[0].kernel, X) @ weights
    short = Kernel("matern52", 0.7)
    slopes = SLOPES.rows(short, X) @ np.linalg.solve(
        gram(short, X, X) + 1e-3 * np.eye(10), residual
    )
    assert np.abs(slopes).max() > 0.03
    assert np.allclose(answer_grid(cascade, asked), smooth + slopes, rtol=0, atol=1e-10)
    between = [SLOPES, OTHER]  # between coordinates of the other axis there is no residual
    same = np.allclose(answer_grid(cascade, between), dense(cascade, between), rtol=0, atol=1e-10)
    assert same == joint


def test_other_data_is_answered_as_if_it_were_the_model_s():
    for joint in (False, True):
        cascade, other = model(joint), np.random.default_rng(1).standard_normal((10, 12))
        fresh = fit_cascade(
            other, [X, Y], cascade.levels, joint_ridge=cascade.joint_ridge, mean=0.0
        )
        for asked in ([SLOPES, OTHER], [MEANS, CURVES]):
            for spread in (None, (1,)):
                found = answer_data(cascade, asked, spread=spread)(other)
                exact = answer_grid(fresh, asked)
                assert np.allclose(found, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("joint", [False, True])
def test_values_pass_through_axes_with_a_ridge_of_their_own(joint):
    cascade = model(joint)
    node, passing = [MEANS, Values(Y[3:5])], answer_grid(model(joint), [MEANS, Values(Y[3:5])])
    rows = MEANS.rows(LEVELS[0].kernel, X)
    system = gram(LEVELS[0].kernel, X, X) + LEVELS[0].ridge * np.eye(10)
    passed = cascade.mean + rows @ np.linalg.solve(system, data()[:, 3:5] - cascade.mean)
    assert np.allclose(passing, passed, rtol=0, atol=1e-11) == (not joint)
    assert np.allclose(
        answer_grid(cascade, node, smooth=True), dense(cascade, node), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("first", [MEANS, SLOPES, Values(X[:3])])
def test_points_are_a_diagonal_of_the_grid(joint, first):
    cascade = model(joint)
    second = CURVES[: len(first)]
    whole = answer_grid(cascade, [first, second])
    found = answer_points(cascade, [first, second])
    assert np.allclose(found, whole[np.arange(len(first)), np.arange(len(first))], atol=1e-12)
    spread = answer_points(cascade, [first, second], spread=[1])
    assert np.allclose(spread, whole, rtol=0, atol=1e-12)


def test_derivatives_are_those_of_the_answers():
    cascade, step = model(joint=False), 1e-5
    up, down = (
        cascade.predict([SLOPES.query + d, OTHER.query], smooth=True) for d in (step, -step)
    )
    found = answer_grid(cascade, [SLOPES, OTHER], smooth=True)
    assert np.allclose(found, (up - down) / (2 * step), rtol=0, atol=1e-7)


def test_means_over_parts_make_the_mean_over_the_whole():
    cascade = model(joint=True)
    edges = np.array([0.0, 10.0, 100.0, 150.0])
    parts = answer_grid(cascade, [MEANS, Means(edges[:-1], edges[1:])])
    whole = answer_grid(cascade, [MEANS, Means(edges[:1], edges[-1:])])
    assert np.allclose(parts @ (np.diff(edges) / 150.0), whole[:, 0], rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_long_levels_answer_as_dense_ones(joint):
    query = np.array([3.3, 64.0, 1000.9])
    long, dense_one = long_model(joint, dense=False), long_model(joint, dense=True)
    assert long.is_long(0)
    assert not dense_one.is_long(0)
    other = Values(np.array([0.4, 1.7, 2.0]))
    means = Means(query, query + np.array([0.1, 1.0, 80.0]))
    for asked in (means, Derivatives(query, 1), Derivatives(query, 2)):
        pair = [asked, other]
        exact = answer_grid(dense_one, pair)
        assert np.allclose(answer_grid(long, pair), exact, rtol=0, atol=1e-8)
        diagonal = np.arange(3), np.arange(3)
        assert np.allclose(answer_points(long, pair), exact[diagonal], rtol=0, atol=1e-8)
        assert np.allclose(answer_points(long, pair, spread=[0]), exact.T, rtol=0, atol=1e-8)
    slope = [Values(query), Derivatives(other.query, 1)]
    assert np.allclose(
        answer_points(long, slope), answer_grid(dense_one, slope)[diagonal], rtol=0, atol=1e-8
    )


def test_one_axis_alone():
    cascade = fit_cascade(data()[:, 0], [X], LEVELS[:1])
    assert answer_grid(cascade, [MEANS]).shape == (2,)
    assert answer_points(cascade, [MEANS]) == pytest.approx(answer_grid(cascade, [MEANS]))
    assert reduce(np.add, answer_grid(cascade, [SLOPES])) != 0
