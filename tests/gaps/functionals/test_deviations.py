"""Tests of dkrls_cli.gaps.functionals.deviations: against the dense Gaussian posterior."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals.answers import answer_grid
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Derivatives, Means, Values
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.functionals import deviations as module
from dkrls_cli.gaps.functionals.deviations import CellDraws, GapFunctionals
from dkrls_cli.gaps.noisy.analysis import Observations
from dkrls_cli.gaps.noisy.bars import NoisyBars

X, Y = np.arange(6.0), np.arange(7.0) * 2
KERNELS = Kernel("matern52", 2.5), Kernel("gaussian", 4.0, constant=0.5)
RIDGE = 0.02
OBSERVED = np.ones((6, 7), bool)
OBSERVED[2:4, 2:5] = OBSERVED[0, 6] = OBSERVED[5, 0] = False
ERRORS = np.random.default_rng(1).uniform(0.05, 0.4, OBSERVED.shape)
CELLS = {
    axis: SourceCells.around(nodes, nodes - step / 2, nodes + step / 2, False, None)
    for axis, nodes, step in ((0, X, 1.0), (1, Y, 2.0))
}
SLOPES = Derivatives(np.array([2.5, 4.1]), 1), Values(np.array([5.0, 12.0]))
MEANS = (
    Means(np.array([0.5, 1.5]), np.array([1.5, 5.5])),
    Means(np.array([5.0, -1.0]), np.array([7.0, 13.0])),
)


def make(asked, *, noisy=False, smooth=False, spread=None, cells=None):
    levels = [Level(name, kernel) for name, kernel in zip("xy", KERNELS, strict=True)]
    values = np.random.default_rng(0).standard_normal(OBSERVED.shape)
    cascade = fit_cascade(values, [X, Y], levels, joint_ridge=RIDGE)
    if noisy:
        seen = Observations(np.where(OBSERVED, values, np.nan), np.where(OBSERVED, ERRORS, 0.0))
        bars = NoisyBars(seen, 1.0, 1.0)
    else:
        bars = GapBars(~OBSERVED, 0.3, 1.2, 1.0)
    return GapFunctionals(bars, cascade, tuple(asked), smooth, cells or {}, spread)


def exact(asked, noise, shares=None, detail=None):
    """Return the variance of T e + S (q - e) + L r by one dense system, kernels written out."""
    grams = [
        (
            each.covariance(kernel),
            each.rows(kernel, nodes),
            gram(kernel, nodes, nodes),
        )
        for each, kernel, nodes in zip(asked, KERNELS, (X, Y), strict=True)
    ]
    own, cross, prior = (reduce(np.kron, parts) for parts in zip(*grams, strict=True))
    seen = OBSERVED.ravel()
    system = prior[np.ix_(seen, seen)] + np.diag(RIDGE + noise.ravel()[seen])
    # the joint covariance of the answers and of all cells, given the observations
    whole = np.block([[own, cross], [cross.T, prior]])
    known = np.concatenate([cross, prior])[:, seen]
    left = whole - known @ np.linalg.solve(system, known.T)
    count = len(own)
    if shares is None:
        return left.diagonal()[:count]
    # S (q - e) = -S (share of e), and independent detail
    share = np.where(seen, RIDGE / (RIDGE + noise.ravel()), 0.0)
    rows = np.hstack([np.eye(count), -shares * share])
    spread = np.where(seen, noise.ravel() * share, RIDGE)
    return (rows @ left @ rows.T).diagonal() + shares**2 @ spread


@pytest.fixture
def unscaled(monkeypatch):
    """Leave variances in units of the kernels."""
    monkeypatch.setattr(GapFunctionals, "_sizes", lambda *args: 1.0)
    monkeypatch.setattr(GapFunctionals, "_open_sizes", lambda *args: 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("unscaled")
@pytest.mark.parametrize("noisy", [False, True], ids=["gaps", "errors"])
def test_variances_of_slopes_are_those_of_the_posterior(noisy):
    noise = ERRORS**2 if noisy else np.zeros(OBSERVED.shape)
    expected = exact(SLOPES, noise)
    found = make(SLOPES, noisy=noisy, smooth=True).variance(draws=700).ravel()
    assert np.allclose(found, expected, rtol=0.2)
    assert np.allclose(found.mean(), expected.mean(), rtol=0.08)
    points = make(SLOPES, noisy=noisy, smooth=True, spread=()).variance(draws=300)
    assert np.allclose(points, expected[[0, 3]], rtol=0.35)
    beside = make(SLOPES, noisy=noisy, smooth=True, spread=(1,)).variance(draws=300)
    assert np.allclose(beside.ravel(), expected, rtol=0.35)


@pytest.mark.slow
@pytest.mark.usefixtures("unscaled")
@pytest.mark.parametrize("noisy", [False, True], ids=["gaps", "errors"])
def test_variances_of_means_pass_through_the_data(noisy):
    noise = ERRORS**2 if noisy else np.zeros(OBSERVED.shape)
    asked = make(MEANS, noisy=noisy, cells=CELLS)
    shares = reduce(
        np.kron,
        [CELLS[a].cut(each).shares(n) for a, each, n in zip((0, 1), MEANS, (6, 7), strict=True)],
    )
    expected = exact(MEANS, noise, shares)
    found = asked.variance(draws=700).ravel()
    assert np.allclose(found, expected, rtol=0.15, atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("unscaled")
def test_variances_of_slopes_that_pass_through_the_data():
    asked = Derivatives(np.array([2.5, 4.5]), 1), Values(Y[[0, 3]])
    short = Kernel("matern52", 0.7)
    cross = asked[0].rows(short, X)
    slopes = cross @ np.linalg.inv(gram(short, X, X) + 1e-3 * np.eye(6))
    left = asked[0].prior(short) - (slopes @ cross.T).diagonal()
    larger = np.maximum(left, (slopes**2).sum(axis=1))  # slopes of what may be noise
    assert (larger > left).all()
    shares = np.kron(slopes, np.eye(7)[[0, 3]])
    carried = exact(asked, np.zeros(OBSERVED.shape), shares)
    found = make(asked).variance(draws=700).ravel()
    assert np.allclose(found, carried + RIDGE * np.repeat(larger, 2), rtol=0.15)
    told = make(asked, noisy=True)._noise()  # of observations with errors the ridge is detail
    assert np.allclose(told, RIDGE * left[:, None] * np.ones(2), rtol=1e-9)


@pytest.mark.usefixtures("unscaled")
def test_the_mean_over_an_observed_cell_errs_by_what_lies_between_alone():
    one = Means(np.array([0.5]), np.array([1.5])), Means(np.array([5.0]), np.array([7.0]))
    assert OBSERVED[1, 3]
    passed = make(one, cells=CELLS).variance(draws=50).item()
    smooth = make(one, cells=CELLS, smooth=True).variance(draws=50).item()
    plain = make(one)
    assert 0 < passed < 0.2 * smooth
    assert smooth > RIDGE
    assert (
        plain.left_open().item() + plain._noise().item() > RIDGE
    )  # without cells of the data there is nothing to pass through


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True], ids=["gaps", "errors"])
def test_values_have_the_error_bars_that_values_have(noisy):
    asked = [Values(X), Values(Y)]
    linear = make(asked, noisy=noisy)
    found = linear.variance(draws=200)
    if noisy:
        known, cells = linear.bars.cells_in(linear.cascade).field, np.ones(OBSERVED.shape, bool)
    else:
        known, cells = variance_on_grid(linear.bars, linear.cascade, [X, Y]), ~OBSERVED
    assert np.allclose(found[cells], known[cells], rtol=0.05)


def test_observed_cells_are_scaled_as_the_missing_cells_that_are_known_best():
    linear = make(SLOPES)
    drawn = np.where(OBSERVED, 0.01, np.arange(42.0).reshape(6, 7))
    known = np.where(OBSERVED, 1e-9, 3.0 * drawn)
    known[0, 6] = 12.0  # the best known missing cell, drawn 6
    assert module._ratio_beside(known, drawn, ~OBSERVED) == pytest.approx(2.0)
    wide = linear.variance(draws=8)
    assert (wide > 0).all()


def test_draws_of_cells_are_those_of_the_posterior_everywhere():
    bars, cascade = make(SLOPES).bars, make(SLOPES).cascade
    cells = CellDraws.of(bars, cascade, 3)
    field, quantity = cells.draw(0)
    assert np.array_equal(cells.draw(0)[0], field)
    assert (quantity[OBSERVED] == 0).all()
    assert (field[OBSERVED] != 0).all()
    assert (quantity[~OBSERVED] != field[~OBSERVED]).all()


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True], ids=["gaps", "errors"])
def test_members_have_the_variance_of_the_error_bars(noisy):
    for asked, cells in ((SLOPES, {}), (MEANS, CELLS)):
        linear = make(asked, noisy=noisy, cells=cells)
        draw = linear.deviations(7)
        assert np.array_equal(draw(2), linear.deviations(7)(2))
        assert not np.array_equal(draw(2), linear.deviations(8)(2))
        drawn = np.array([draw(member) for member in range(300)])
        ratio = (drawn**2).mean(axis=0) / linear.variance(draws=200)
        assert np.all((ratio > 0.55) & (ratio < 1.8))


@pytest.mark.usefixtures("unscaled")
def test_means_of_parts_are_those_of_the_whole():
    parts = Means(np.array([1.5, 3.5]), np.array([3.5, 5.5])), MEANS[1].take(np.array([1]))
    one = Means(np.array([1.5]), np.array([5.5])), MEANS[1].take(np.array([1]))
    whole = make(one, cells=CELLS)
    found = make(parts, cells=CELLS).reduced_variance(
        lambda values: values.mean(axis=0, keepdims=True), whole, draws=20
    )
    assert np.allclose(found, whole.variance(draws=20), rtol=1e-6)


MEAN_CELLS = {axis: replace(source, are_means=True) for axis, source in CELLS.items()}
UNIONS = (
    Means(np.array([-0.5, 1.5, 2.5]), np.array([1.5, 5.5, 2.7])),
    Means(np.array([-1.0, 3.0]), np.array([3.0, 13.0])),
)


@pytest.mark.usefixtures("unscaled")
@pytest.mark.parametrize("noisy", [False, True], ids=["gaps", "errors"])
def test_the_mean_over_a_union_of_cells_errs_as_the_cells_do(noisy):
    noise = ERRORS**2 if noisy else np.zeros(OBSERVED.shape)
    linear = make(UNIONS, noisy=noisy, cells=MEAN_CELLS)
    found = linear.variance(draws=300)
    prior = np.kron(*(gram(k, c, c) for k, c in zip(KERNELS, (X, Y), strict=True)))
    seen = OBSERVED.ravel()
    system = prior[np.ix_(seen, seen)] + np.diag(RIDGE + noise.ravel()[seen])
    left = prior - prior[:, seen] @ np.linalg.solve(system, prior[seen])
    share = np.where(seen, RIDGE / (RIDGE + noise.ravel()), 0.0)
    spread = np.where(seen, noise.ravel() * share, RIDGE)
    shares = np.kron(
        *(
            MEAN_CELLS[a].cut(each).shares(n)
            for a, each, n in zip((0, 1), UNIONS, (6, 7), strict=True)
        )
    )
    own = shares * (1.0 - share)
    expected = ((own @ left @ own.T).diagonal() + shares**2 @ spread).reshape(3, 2)
    assert np.allclose(found[:2], expected[:2], rtol=0.3, atol=0)
    if not noisy:
        assert found[0, 0] == 0  # all of it is observed
        assert linear.deviations(3)(0)[0, 0] == 0
    assert (found[2] > 0).all()
    smooth = make(UNIONS, noisy=noisy, cells=MEAN_CELLS, smooth=True)
    assert (smooth.variance(draws=10) > 0).all()


def test_errors_of_means_are_carried_by_the_sharpened_field():
    asked = Values(np.array([1.2, 3.3])), Values(np.array([5.5, 9.0]))
    linear = make(asked, cells=MEAN_CELLS, smooth=True)
    data = np.multiply.outer(np.sin(X / 2), np.cos(Y / 5))
    found = linear._carried(data, np.zeros(data.shape))
    exact = answer_grid(replace(linear._fine, core=data), asked, smooth=True, cells=MEAN_CELLS)
    plain = answer_grid(replace(linear._fine, core=data), asked, smooth=True)
    assert np.allclose(found, exact, rtol=0, atol=1e-12)
    assert np.abs(found - plain).max() > 5e-3


def scaled(between, size):
    """Return error bars whose errors between coordinates are told, by pattern."""
    scale = BetweenScale(np.array(between), np.full((2, 2), 1e3), 1e3, 1e3)
    return GapBars(~OBSERVED, size, 1.0, 1.0, between=scale)


def test_what_lies_between_coordinates_is_scaled_by_slices_left_out():
    factors = [[7.0, 5.0], [3.0, 2.0]]
    asked = make(MEANS, cells=CELLS)
    assert np.allclose(replace(asked, bars=scaled(factors, 0.3))._open_sizes(), 2.0)
    one = make((MEANS[0], Values(Y[[1, 4]])))
    assert np.allclose(replace(one, bars=scaled(factors, 0.3))._open_sizes(), 3.0)
    points = make((SLOPES[0], Values(np.array([5.0, 12.0]))), spread=())
    found = replace(points, bars=scaled(factors, 0.3))._open_sizes()
    assert np.allclose(found, [2.0, 3.0])  # 12 is a coordinate
    nodes = make((Values(X), Values(Y)))
    assert (replace(nodes, bars=scaled(factors, 0.3))._open_sizes() == 0).all()


def test_cells_held_out_say_nothing_of_what_lies_between_coordinates():
    def variance(size, factor):
        asked = make(MEANS, cells=CELLS)
        bars = scaled(np.full((2, 2), factor), size)
        return replace(asked, bars=bars).variance(draws=12)

    of_cells, between = variance(1.0, 0.0), variance(0.0, 1.0)
    left = make(MEANS, cells=CELLS).left_open()
    assert np.allclose(between, left, rtol=1e-9)
    assert np.allclose(variance(50.0, 1.0), 50.0 * of_cells + between, rtol=1e-9)
    assert np.allclose(variance(1.0, 50.0), of_cells + 50.0 * between, rtol=1e-9)


def test_members_scale_both_parts_as_the_variance_does():
    asked = make(MEANS, cells=CELLS)
    for size, factor in ((1.0, 0.0), (0.0, 4.0)):
        linear = replace(asked, bars=scaled(np.full((2, 2), factor), size))
        draw = linear.deviations(5)
        drawn = np.mean([draw(member) ** 2 for member in range(400)], axis=0)
        ratio = drawn / linear.variance(draws=100)
        assert np.all((ratio > 0.6) & (ratio < 1.6))


def test_a_ridge_below_round_off_makes_no_error_larger():
    asked = make(MEANS, cells=CELLS)
    cascade = fit_cascade(asked.cascade.core, [X, Y], asked.cascade.levels, joint_ridge=1e-15)
    linear = replace(asked, cascade=cascade, bars=scaled(np.full((2, 2), 1e4), 1.0))
    middles = [(each.low + each.high) / 2 for each in MEANS]
    told = 1e4 * variance_on_grid(module.UNSCALED, cascade, middles, smooth=True)
    values = variance_on_grid(module.UNSCALED, linear._fine, middles, smooth=True)
    assert np.allclose(values * linear._open_sizes(), np.minimum(told, 1e4 * values), rtol=1e-6)
