"""Choices by leaving slices out, against refits without the slice."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli import fit
from dkrls_cli.benchmark import paper_3d, paper_3d_split
from dkrls_cli.kernels import FAMILIES, Kernel, gram
from dkrls_cli.splits import random_split
from dkrls_cli.tuning import RIDGES, choose, choose_joint_ridge, slices

RNG = np.random.default_rng(11)
X = np.sort(RNG.uniform(0, 10, 14))
ROUGH = np.sin(X)[:, None] * RNG.standard_normal(40) + 0.3 * RNG.standard_normal((14, 40))


def refitted_error(x, data, kernel, ridge):
    """Root of the weighted mean square error of every slice predicted from all others."""
    squares, weights = [], []
    for j in range(x.size):
        rest = np.delete(np.arange(x.size), j)
        system = gram(kernel, x[rest], x[rest]) + ridge * np.eye(rest.size)
        answer = gram(kernel, x[[j]], x[rest]) @ np.linalg.solve(system, data[rest])
        squares.append(np.mean((answer[0] - data[j]) ** 2))
        weights.append(0.1 if kernel.period is None and x[j] in (x.min(), x.max()) else 1.0)
    return math.sqrt(np.average(squares, weights=weights))


@pytest.mark.parametrize("period", [None, 12.0])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fibres", [3, 40])
def test_the_error_is_that_of_refits_without_each_slice(family, period, fibres):
    data = ROUGH[:, :fibres]
    trial = choose(X, data, family=family, sigma=1.5, ridge=1e-3, period=period).taken
    expected = refitted_error(X, data, Kernel(family, 1.5, period), 1e-3)
    assert trial.error == pytest.approx(expected, rel=1e-8)
    assert trial.kernel == Kernel(family, 1.5, period)
    assert trial.ridge == 1e-3


def test_what_is_given_is_kept_and_the_rest_chosen_around_it():
    assert choose(X, ROUGH, family="matern12").taken.kernel.family == "matern12"
    assert choose(X, ROUGH, sigma=2.0).taken.kernel.sigma == 2.0
    assert choose(X, ROUGH, ridge=0.5).taken.ridge == 0.5
    open_choice = choose(X, ROUGH)
    assert len({trial.kernel.family for trial in open_choice.tried}) == len(FAMILIES)


def test_the_smallest_ridge_near_the_least_error_is_taken():
    choice = choose(X, ROUGH)
    least = min(trial.error for trial in choice.tried)
    allowed = least * math.sqrt(1.03 + 1 / X.size)
    assert choice.taken.error <= allowed
    assert all(t.ridge >= choice.taken.ridge for t in choice.tried if t.error <= allowed)


def test_kernels_are_told_apart_by_the_data():
    x = np.arange(60.0)
    smooth = np.sin(np.multiply.outer(x / 9, np.linspace(1, 2, 20)))
    walk = RNG.standard_normal((60, 20)).cumsum(axis=0)
    assert choose(x, smooth).taken.kernel.family == "gaussian"
    assert choose(x, walk).taken.kernel.family in ("matern12", "matern32")
    noise = choose(x, RNG.standard_normal((60, 200))).taken
    assert noise.error == pytest.approx(1.0, rel=0.1)


def test_long_levels_are_seen_through_windows_and_settings_agree():
    x = np.arange(400.0)
    data = np.sin(np.multiply.outer(x / 7, np.linspace(1, 2, 30))) + 0.1 * RNG.standard_normal(
        (400, 30)
    )
    windowed, whole = choose(x, data).taken, choose(x[:150], data[:150]).taken
    assert windowed.error == pytest.approx(whole.error, rel=0.1)
    assert windowed == choose(x, data).taken


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=7, unique=True),
    st.floats(-1e100, 1e100),
    st.sampled_from([0.0, 1.0, 1e-9]),
)
def test_nothing_finite_makes_a_choice_fail(x, level, noise):
    x = np.array(x)
    data = level + noise * np.cos(np.arange(x.size))[:, None]
    taken = choose(x, data).taken
    assert math.isfinite(taken.kernel.sigma)
    assert taken.kernel.sigma > 0
    assert taken.ridge in RIDGES


def test_a_range_that_may_be_too_short_is_said():
    alternating = np.where(np.arange(30) % 2, 1.0, -1.0)[:, None] * np.ones(5)
    warnings = choose(np.arange(30.0), alternating + 0.01 * RNG.standard_normal((30, 5))).warnings
    assert warnings
    assert not choose(X, ROUGH).warnings


def test_a_sample_of_fibres_stands_for_a_large_grid():
    values = RNG.standard_normal((6, 7, 5))
    np.testing.assert_allclose(
        np.sort(slices(values, 1, 0.5).ravel()), np.sort(values.ravel() - 0.5)
    )
    many = RNG.standard_normal((100, 8, 90))
    some = slices(many, 1, 0.0)
    assert some.shape[0] == 8
    assert 1500 < some.shape[1] <= 2048
    assert some.std() == pytest.approx(1.0, rel=0.05)


def test_the_joint_ridge_makes_generalised_cross_validation_least():
    x, y = np.arange(9.0), np.arange(8.0)
    kernels = [Kernel("gaussian", 2.0), Kernel("matern32", 3.0)]
    clean = np.sin(np.add.outer(x / 3, y / 4))
    noisy = clean + 0.1 * RNG.standard_normal(clean.shape)
    chosen = choose_joint_ridge(noisy, [x, y], kernels)
    system = np.kron(*(gram(k, c, c) for k, c in zip(kernels, (x, y), strict=True)))

    def score(ridge):
        left = ridge * np.linalg.inv(system + ridge * np.eye(72))
        return np.mean((left @ noisy.ravel()) ** 2) / (np.trace(left) / 72) ** 2

    grid = np.geomspace(1e-6, 1e2, 200)
    assert score(chosen) <= 1.01 * min(score(ridge) for ridge in grid)


def test_joint_ridge_beats_level_ridge_under_noise():
    """The paper's 3D grid with 5 % noise, error against the clean truth."""
    train, held = paper_3d_split(0)
    clean = paper_3d(train)
    noisy = clean + 0.05 * clean.std() * RNG.standard_normal(clean.shape)
    coordinates = dict(zip("xyz", train, strict=True))
    truth = paper_3d(held)
    error = {}
    for noise in ("level", "joint"):
        model = fit(noisy, coordinates, noise=noise)
        error[noise] = np.sqrt(np.mean((model.cascade.predict(held) - truth) ** 2))
    assert error["joint"] <= 0.75 * error["level"]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_papers_grids_need_no_hand_on_the_knobs(dimensions):
    ends, sizes = (4 * np.pi, 8 * np.pi, 12 * np.pi), (145, 150, 100)
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        axes = [np.linspace(0.1, e, n) for e, n in zip(ends[:dimensions], sizes, strict=False)]
        splits = [random_split(axis.size, 0.2, rng, keep_edges=True) for axis in axes]
        train = [axis[s.train] for axis, s in zip(axes, splits, strict=True)]
        held = [axis[s.held] for axis, s in zip(axes, splits, strict=True)]
        field = paper_3d if dimensions == 3 else lambda c: np.outer(np.sin(c[0]), np.cos(c[1] / 2))
        model = fit(field(train), dict(zip("xyz", train, strict=False)))
        errors.append(np.abs(model.cascade.predict(held) - field(held)).max())
    assert np.median(errors) < 5e-7
