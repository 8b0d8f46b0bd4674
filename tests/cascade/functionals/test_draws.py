"""Tests of dkrls_cli.cascade.functionals.draws: against covariances of values, written out."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from long_models import long_model

from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.ensembles import split_ridges
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.levels import FilledBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals import draws as module
from dkrls_cli.cascade.functionals.bars import variance_at_points, variance_blocks, widening
from dkrls_cli.cascade.functionals.draws import filled_variance, functional_draws
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional, Means, Values
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError

X, Y = np.linspace(0.0, 9.0, 10), np.arange(12.0) * 30
KERNELS = Kernel("matern52", 2.0, constant=0.5), Kernel("gaussian", 60.0, period=360.0)
STEP = 1e-3
MEMBERS = 4000
QUESTIONS = {
    "slopes": [Derivatives(np.array([1.3, 1.8, 6.0]), 1), Values(np.array([45.0, 75.0]))],
    "means": [
        Means(np.array([1.0, 1.6, 5.0]), np.array([1.6, 3.0, 9.0])),
        Means(np.array([10.0, 60.0]), np.array([40.0, 200.0])),
    ],
    "both": [
        Means(np.array([1.0, 1.6, 5.0]), np.array([1.6, 3.0, 9.0])),
        Derivatives(np.array([45.0, 50.0]), 1),
    ],
}


def model(joint: bool) -> Cascade:
    noise = 0.1 * np.random.default_rng(0).standard_normal((10, 12))
    values = 3.0 + np.sin(X)[:, None] * np.cos(np.radians(Y)) + noise
    ridges = (0.0, 0.0) if joint else (0.03, 0.01)
    levels = [Level(n, k, r) for n, k, r in zip("xy", KERNELS, ridges, strict=True)]
    return fit_cascade(values, [X, Y], levels, joint_ridge=0.02 if joint else None)


def stencil(asked: Functional) -> tuple[np.ndarray, np.ndarray]:
    """Return places (p,) and weights (q, p) whose sums of values are the functionals."""
    if isinstance(asked, Values):
        return asked.query, np.eye(len(asked))
    if isinstance(asked, Derivatives):
        assert asked.order == 1
        places = asked.query[:, None] + np.array([-STEP, STEP])
        parts = np.broadcast_to(np.array([-0.5, 0.5]) / STEP, places.shape)
    else:
        nodes, weights = np.polynomial.legendre.leggauss(60)
        places = asked.low[:, None] + (nodes + 1) / 2 * asked.width[:, None]
        parts = np.broadcast_to(weights / 2, places.shape)
    rows = np.zeros((len(asked), places.size))
    for place, part in enumerate(parts):
        rows[place, place * part.size : (place + 1) * part.size] = part
    return places.ravel(), rows


def of_pairs(asked: Functional, covariance) -> np.ndarray:
    """Return the covariance of functionals (q, q), of a covariance of values among places."""
    places, weights = stencil(asked)
    return weights @ covariance(places) @ weights.T


def level_covariance(cascade: Cascade, bars, asked) -> np.ndarray:
    """Return the covariance of all answers (n, n) without noise, from the formula."""
    total = 0.0
    for level in range(2):
        own, nodes = cascade.levels[level], cascade.coordinates[level]
        system = gram(own.kernel, nodes, nodes) + own.ridge * np.eye(nodes.size)

        def left(places, own=own, nodes=nodes, system=system):
            cross = gram(own.kernel, places, nodes)
            return gram(own.kernel, places, places) - cross @ np.linalg.solve(system, cross.T)

        parts = [None, None]
        width = np.sqrt(bars.scales[level] * widening(bars, cascade, level, asked[level]))
        parts[level] = of_pairs(asked[level], left) * np.outer(width, width)
        other = cascade.levels[1 - level].kernel
        parts[1 - level] = of_pairs(
            asked[1 - level], lambda p, other=other: gram(other, p, p) / other.variance
        )
        total = total + np.kron(*parts)
    return bars.factors[1, 1] * total


def sample(draw, members=MEMBERS) -> np.ndarray:
    return np.array([draw(member).ravel() for member in range(members)])


def assert_same_covariance(drawn: np.ndarray, expected: np.ndarray, members=MEMBERS) -> None:
    found = drawn.T @ drawn / members
    spread = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    assert np.abs((found - expected) / spread).max() < 6 / np.sqrt(members)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_draws_of_level_ridges_have_the_covariance_of_functionals(name):
    cascade, asked = model(joint=False), QUESTIONS[name]
    growth = () if name == "both" else (LocalScale(X[[2, 6]], np.array([4.0, 1.0])), None)
    bars = replace(calibrate(cascade), local=(), growth=growth)
    assert split_ridges(cascade)[1][1] == 0
    expected = level_covariance(cascade, bars, asked)
    # noise is not in the formula above: its variance is that of the error bars
    whole = (slice(0, 3), slice(0, 2))
    variance = variance_blocks(bars, cascade, asked, smooth=True)(whole).ravel()
    noise = variance - expected.diagonal()
    assert (noise > -1e-9).all()
    drawn = sample(functional_draws(bars, cascade, asked, smooth=True, seed=3))
    if name == "means":  # noise of shared cells goes together: variances alone
        found = (drawn**2).mean(axis=0)
        assert np.allclose(found, expected.diagonal() + noise, rtol=0.15)
    else:
        assert_same_covariance(drawn, expected + np.diag(noise))
    if name == "slopes":
        points = [asked[0].take(np.array([0, 2])), asked[1]]
        at = sample(functional_draws(bars, cascade, points, spread=(), smooth=True, seed=4))
        diagonal = [0, 5]  # the first question of both axes, and the last
        assert_same_covariance(at, (expected + np.diag(noise))[np.ix_(diagonal, diagonal)])


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_draws_of_a_joint_ridge_have_the_covariance_of_the_posterior(name):
    cascade, asked = model(joint=True), QUESTIONS[name]
    bars = calibrate(cascade)
    (px, wx), (py, wy) = (stencil(each) for each in asked)
    grams = [
        [w @ gram(k, p, p) @ w.T, w @ gram(k, p, c), gram(k, c, c)]
        for k, p, w, c in zip(KERNELS, (px, py), (wx, wy), (X, Y), strict=True)
    ]
    prior, cross, system = (reduce(np.kron, parts) for parts in zip(*grams, strict=True))
    system = system + 0.02 * np.eye(len(system))
    posterior = prior - cross @ np.linalg.solve(system, cross.T)
    whole = (slice(0, 3), slice(0, 2))
    variance = variance_blocks(bars, cascade, asked)(whole).ravel()
    expected = bars.scale * posterior
    expected += np.diag(np.maximum(variance - expected.diagonal(), 0.0))
    drawn = sample(functional_draws(bars, cascade, asked, seed=3))
    assert_same_covariance(drawn, expected)
    points = [asked[0].take(np.arange(2)), asked[1]]
    at = sample(functional_draws(bars, cascade, points, spread=(), seed=4))
    diagonal = [0, 3]  # question 0 of both axes, and question 1
    assert_same_covariance(at, expected[np.ix_(diagonal, diagonal)])


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("spread", [(), (0,), (1,)])
def test_draws_at_points_have_the_variance_of_the_error_bars(joint, spread):
    cascade = model(joint)
    bars = calibrate(cascade)
    if not joint:
        scale = LocalScale(X[[1, 5, 8]], np.array([0.5, 2.0, 3.0])), None
        growth = LocalScale(X[[2, 6]], np.array([4.0, 1.0])), None
        bars = replace(bars, local=scale, growth=growth)
    for asked in (
        [Derivatives(np.array([1.3, 2.0]), 2), Values(np.array([45.0, 60.0]))],
        [Values(np.array([1.3, 2.0])), Derivatives(np.array([45.0, 60.0]), 1)],
        [Derivatives(np.array([1.3, 2.0]), 1), Derivatives(np.array([45.0, 60.0]), 1)],
    ):
        variance = variance_at_points(bars, cascade, asked, spread=spread)
        draw = functional_draws(bars, cascade, asked, spread=spread, seed=1)
        drawn = sample(draw, 2000).reshape(2000, *variance.shape)
        assert np.allclose((drawn**2).mean(axis=0), variance, rtol=0.2, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slopes", "mixed"])
def test_draws_of_slopes_have_the_variance_that_detail_leaves_open(name):
    mixed = [QUESTIONS["slopes"][0], QUESTIONS["both"][1]]
    cascade, asked = model(joint=False), mixed if name == "mixed" else QUESTIONS["slopes"]
    bars, whole = calibrate(cascade), (slice(0, 3), slice(0, 2))
    variance = variance_blocks(bars, cascade, asked)(whole)
    assert (variance > 1.05 * variance_blocks(bars, cascade, asked, smooth=True)(whole)).any()
    drawn = sample(functional_draws(bars, cascade, asked, seed=9), 2000)
    assert np.allclose((drawn**2).mean(axis=0), variance.ravel(), rtol=0.2)


def test_values_at_training_coordinates_do_not_vary():
    cascade = model(joint=False)
    asked = [Values(X[[2, 4]]), Values(np.array([30.0, 45.0]))]
    draw = functional_draws(calibrate(cascade), cascade, asked, seed=2)(0)
    assert (draw[:, 0] == 0).all()
    assert (draw[:, 1] != 0).all()
    smooth = functional_draws(calibrate(cascade), cascade, asked, smooth=True, seed=2)(0)
    assert (smooth != 0).all()


def test_members_depend_on_their_number_and_the_seed_alone():
    for joint in (False, True):
        cascade = model(joint)
        bars, asked = calibrate(cascade), QUESTIONS["slopes"]
        draw = functional_draws(bars, cascade, asked, seed=5)
        again = functional_draws(bars, cascade, asked, seed=5)
        assert np.array_equal(draw(3), again(3))
        assert not np.array_equal(draw(3), draw(4))
        assert not np.array_equal(draw(3), functional_draws(bars, cascade, asked, seed=6)(3))
        none = [each.take(np.arange(0)) for each in asked]
        assert functional_draws(bars, cascade, none)(0).shape == (0, 0)


def test_errors_of_filled_cells_go_into_answers_as_the_data_does():
    cascade = model(joint=False)
    bars, filled = calibrate(cascade), np.zeros((10, 12), bool)
    filled[4, 3:6] = True
    wider = FilledBars(bars, filled, 0)
    asked = QUESTIONS["slopes"]
    observed = functional_draws(bars, cascade, asked, seed=1)
    draw = functional_draws(wider, cascade, asked, seed=1)
    errors = wider.deviations(cascade, cascade.coordinates, seed=1)
    rows = []
    for level, each in zip(cascade.levels, asked, strict=True):
        nodes = X if level.name == "x" else Y
        gram_of = gram(level.kernel, nodes, nodes)
        inverse = np.linalg.inv(gram_of + level.ridge * np.eye(nodes.size))
        row = each.rows(level.kernel, nodes) @ inverse
        if level.name == "x":  # slopes have a share of the detail
            short = Kernel("matern52", 0.7)
            solve = np.linalg.inv(gram(short, X, X) + 1e-3 * np.eye(10))
            row = row + each.rows(short, X) @ solve @ (np.eye(10) - gram_of @ inverse)
        rows.append(row)
    for member in range(2):
        expected = rows[0] @ errors(member) @ rows[1].T
        assert np.abs(expected).max() > 0
        found = draw(member) - observed(member)
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    added = filled_variance(wider, cascade, asked)
    seed = module._SEED
    errors = wider.deviations(cascade, cascade.coordinates, seed=seed)
    squares = [(rows[0] @ errors(i) @ rows[1].T) ** 2 for i in range(module.DRAWS)]
    assert np.allclose(added, np.mean(squares, axis=0), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_long_levels_have_the_draws_of_dense_ones(joint, monkeypatch):
    long, dense = long_model(joint, dense=False), long_model(joint, dense=True)
    bars, query = calibrate(dense), np.array([3.3, 64.0])
    for own in (Derivatives(query, 1), Means(query, query + 2.0)):
        asked = [own, Values(np.array([0.4, 1.7]))]
        monkeypatch.setattr(module, "_AT_ONCE", 1)
        variance = variance_blocks(bars, dense, asked)((slice(0, 2), slice(0, 2)))
        drawn = sample(functional_draws(bars, long, asked), 1500)
        assert np.allclose((drawn**2).mean(axis=0), variance.ravel(), rtol=0.2)
    monkeypatch.setattr(module, "LARGEST", 100)
    if joint:
        with pytest.raises(SettingError, match="is too large under a joint ridge"):
            functional_draws(bars, long, asked)


def test_too_many_questions_are_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 2)
    cascade = model(joint=False)
    with pytest.raises(SettingError, match="3 means or derivatives along 'x'"):
        functional_draws(calibrate(cascade), cascade, QUESTIONS["slopes"])
    three = [Derivatives(np.array([1.3, 1.8, 6.0]), 1), Values(np.array([45.0, 75.0, 80.0]))]
    with pytest.raises(SettingError, match="3 means or derivatives at points is too large"):
        functional_draws(calibrate(cascade), cascade, three, spread=())
