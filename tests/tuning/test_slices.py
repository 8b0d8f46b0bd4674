"""Choices by leaving slices out, against refits without the slice."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli import fit
from dkrls_cli.bench import paper_3d, paper_3d_split
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.model.splits import random_split
from dkrls_cli.tuning.joint import choose_joint
from dkrls_cli.tuning.slices import CONSTANT, RIDGES, between, choose, slices

RNG = np.random.default_rng(11)
X = np.sort(RNG.uniform(0, 10, 14))
ROUGH = np.sin(X)[:, None] * RNG.standard_normal(40) + 0.3 * RNG.standard_normal((14, 40))


def answers(x, data, kernel, ridge, queries):
    """Plain kernel ridge regression."""
    system = gram(kernel, x, x) + ridge * np.eye(x.size)
    return gram(kernel, queries, x) @ np.linalg.solve(system, data)


def refitted_error(x, data, kernel, ridge, blocks, closed):
    """Root of the weighted mean square error of every block predicted from all others."""
    squares, weights = np.empty(x.size), np.ones(x.size)
    for block in blocks:
        rest = np.setdiff1d(np.arange(x.size), block)
        missed = answers(x[rest], data[rest], kernel, ridge, x[block]) - data[block]
        squares[block] = np.mean(missed**2, axis=1)
    if not closed:
        weights[blocks[0]] = weights[blocks[-1]] = 0.1
    return math.sqrt(np.average(squares, weights=weights))


@pytest.mark.parametrize("folds", [None, 5])
@pytest.mark.parametrize("period", [None, 12.0])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fibres", [3, 40])
def test_the_error_is_that_of_refits_without_each_slice_or_block(family, period, fibres, folds):
    data = ROUGH[:, :fibres]
    kernel = Kernel(family, 1.5, period, CONSTANT)
    trial = choose(X, data, family=family, sigma=1.5, ridge=1e-3, period=period, folds=folds).taken
    blocks = np.array_split(np.arange(X.size), folds or X.size)
    expected = refitted_error(X, data, kernel, 1e-3, blocks, closed=period is not None)
    assert trial.error == pytest.approx(expected, rel=1e-8)
    assert trial.kernel == kernel
    assert trial.ridge == 1e-3


def test_parts_of_a_long_circle_have_ends():
    x = np.arange(200.0)
    data = np.sin(np.multiply.outer(x / 9, np.linspace(1, 2, 5)))
    kernel = Kernel("matern32", 9.0, 200.0, CONSTANT)
    found = choose(x, data, family="matern32", sigma=9.0, ridge=1e-3, period=200.0).taken
    runs = [np.arange(start, start + 64) for start in (0, 68, 136)]
    errors = [
        refitted_error(x[r], data[r], kernel, 1e-3, np.arange(64)[:, None], False) for r in runs
    ]
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-8)


def test_more_blocks_than_slices_are_slices():
    assert choose(X, ROUGH, folds=99).taken == choose(X, ROUGH).taken


def test_what_is_given_is_kept_and_the_rest_chosen_around_it():
    assert choose(X, ROUGH, family="matern12").taken.kernel.family == "matern12"
    assert choose(X, ROUGH, sigma=2.0).taken.kernel.sigma == 2.0
    assert choose(X, ROUGH, ridge=0.5).taken.ridge == 0.5
    open_choice = choose(X, ROUGH)
    assert len({trial.kernel.family for trial in open_choice.tried}) == len(FAMILIES)


def test_the_setting_nearest_to_the_weighted_average_of_all_is_taken():
    choice = choose(X, ROUGH)
    trials = choice.tried
    middles = (X[1:] + X[:-1]) / 2
    shares = np.empty(len(trials))
    for family in FAMILIES:
        sigmas = np.unique([t.kernel.sigma for t in trials if t.kernel.family == family])
        widths = dict(zip(sigmas, np.gradient(np.log(sigmas)), strict=True))
        for i, trial in enumerate(trials):
            if trial.kernel.family == family:
                shares[i] = widths[trial.kernel.sigma]
    errors = np.array([trial.error for trial in trials])
    weights = shares * (errors / errors.min()) ** -float(X.size)
    some = np.flatnonzero(weights > 1e-3 * weights.max())
    found = {i: answers(X, ROUGH, trials[i].kernel, trials[i].ridge, middles) for i in some}
    average = sum(weights[i] * found[i] for i in some) / weights[some].sum()
    close = [i for i in some if weights[i] >= 0.3 * weights.max()]
    distance = {i: np.linalg.norm(found[i] - average) for i in close}
    taken = trials.index(choice.taken)
    assert len(close) > 3
    assert distance[taken] <= 1.05 * min(distance.values())


def test_answers_far_from_data_fall_back_to_the_mean_along_the_dimension():
    x = np.concatenate([np.arange(30.0), np.arange(200.0, 230.0)])
    means = np.linspace(-40, 40, 25)
    data = means + 0.5 * np.random.default_rng(1).standard_normal((60, 25))
    model = fit(data, {"x": x, "run": np.arange(25.0)})
    np.testing.assert_allclose(model.predict(x=115.0), means, atol=1.0)


MONTHS = xr.date_range("2001-01-01", periods=60, freq="MS", use_cftime=False)


def seasonal(swing, noise=1.0):
    rng = np.random.default_rng(4)
    wave = np.cos(2 * np.pi * np.arange(60) / 12)[:, None] * rng.uniform(1, 2, 30)
    values = swing * wave + noise * rng.standard_normal((60, 30))
    return xr.DataArray(values, {"time": MONTHS, "place": np.arange(30.0)}, ("time", "place"))


def test_a_yearly_cycle_is_found_and_used():
    data, clean = seasonal(4.0), seasonal(4.0, noise=0.0)
    held = np.arange(3, 57, 5)
    train = data.isel(time=np.setdiff1d(np.arange(60), held))
    found, without = fit(train), fit(train, period="none")
    assert found.levels[-1].kernel.cycle == pytest.approx(365.2425)
    assert without.levels[-1].kernel.cycle is None

    def error(model):
        return np.linalg.norm(model.predict(time=MONTHS[held]) - clean.isel(time=held))

    assert error(found) < 0.75 * error(without)


def test_no_cycle_is_made_of_noise_nor_tried_where_it_does_not_come_round():
    assert fit(seasonal(0.0)).levels[-1].kernel.cycle is None
    tried = choose(np.arange(30.0), ROUGH[np.arange(30) % 14], cycles=[20.0]).tried
    assert {trial.kernel.cycle for trial in tried} == {None}


def test_kernels_are_told_apart_by_the_data():
    x = np.arange(60.0)
    smooth = np.sin(np.multiply.outer(x / 9, np.linspace(1, 2, 20)))
    walk = RNG.standard_normal((60, 20)).cumsum(axis=0)
    assert choose(x, smooth).taken.kernel.family == "gaussian"
    assert choose(x, walk).taken.kernel.family in ("matern12", "matern32")
    noise = choose(x, RNG.standard_normal((60, 200))).taken
    assert noise.error == pytest.approx(1.0, rel=0.1)


def test_windows_with_equal_steps_are_seen_as_one():
    x = np.arange(400.0)
    data = np.sin(np.multiply.outer(x / 7, np.linspace(1, 2, 9)))
    data += 0.1 * np.random.default_rng(2).standard_normal(data.shape)
    shaken = x + 1e-6 * np.sin(x)
    fixed = {"family": "matern32", "sigma": 9.0, "ridge": 1e-2}
    together, apart = choose(x, data, **fixed).taken, choose(shaken, data, **fixed).taken
    assert together.error == pytest.approx(apart.error, rel=1e-4)


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


def test_between_answers_half_way_along_one_axis():
    values = 3.0 + RNG.standard_normal((4, 14, 5))
    kernel = Kernel("matern52", 2.0, None, 1.0)
    found = between(values, 1, 3.0, X, kernel, 1e-2)
    middles = (X[1:] + X[:-1]) / 2
    for i in range(4):
        expected = answers(X, values[i] - 3.0, kernel, 1e-2, middles)
        np.testing.assert_allclose(found[i], expected, atol=1e-10)
    shuffled = RNG.permutation(14)
    np.testing.assert_allclose(
        between(values[:, shuffled], 1, 3.0, X[shuffled], kernel, 1e-2), found, atol=1e-10
    )
    many = np.arange(100.0)
    assert between(np.outer(many, [1, 2]), 0, 0.0, many, kernel, 1e-2).shape == (24, 2)


def test_the_second_level_is_chosen_on_what_the_first_answers_between():
    rng = np.random.default_rng(8)
    y = np.arange(20.0)
    values = np.sin(np.add.outer(X, y / 3)) + 0.3 * rng.standard_normal((14, 20))
    told = {}
    model = fit(values, {"x": X, "y": y}, watch=told.__setitem__)
    first = told["x"].taken
    assert first == choose(X, values - values.mean()).taken
    seen = between(values, 0, values.mean(), X, first.kernel, first.ridge)
    assert told["y"].taken == choose(y, seen.T).taken
    assert [level.kernel for level in model.levels] == [told[d].taken.kernel for d in "xy"]


def joint_score(values, system, ridge):
    left = ridge * np.linalg.inv(system + ridge * np.eye(values.size))
    return np.mean((left @ values.ravel()) ** 2) / (np.trace(left) / values.size) ** 2


def test_the_joint_ridge_makes_generalised_cross_validation_least():
    x, y = np.arange(9.0), np.arange(8.0)
    kernels = [Kernel("gaussian", 2.0), Kernel("matern32", 3.0)]
    noisy = np.sin(np.add.outer(x / 3, y / 4)) + 0.1 * RNG.standard_normal((9, 8))
    same, chosen = choose_joint(noisy, [x, y], kernels, open_sigmas=[False, False])
    assert list(same) == kernels

    def score(kernels, ridge):
        grams = (gram(k, c, c) for k, c in zip(kernels, (x, y), strict=True))
        return joint_score(noisy, np.kron(*grams), ridge)

    least = min(score(kernels, ridge) for ridge in np.geomspace(1e-6, 1e2, 200))
    assert score(kernels, chosen) <= 1.01 * least
    moved, ridge = choose_joint(noisy, [x, y], kernels, open_sigmas=[True, True])
    assert score(moved, ridge) < score(kernels, chosen)
    _, kept = choose_joint(noisy, [x, y], kernels, open_sigmas=[True, True], ridge=0.5)
    assert kept == 0.5


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_noise_is_averaged_out(noise):
    """The paper's 3D grid with 5 % noise (0.018), error against the clean truth."""
    train, held = paper_3d_split(0)
    clean = paper_3d(train)
    noisy = clean + 0.05 * clean.std() * np.random.default_rng(11).standard_normal(clean.shape)
    model = fit(noisy, dict(zip("xyz", train, strict=True)), noise=noise)
    error = np.sqrt(np.mean((model.cascade.predict(held) - paper_3d(held)) ** 2))
    assert error <= 1.2e-3


@pytest.mark.parametrize("keep_edges", [False, True])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_papers_grids_need_no_hand_on_the_knobs(dimensions, keep_edges):
    ends, sizes = (4 * np.pi, 8 * np.pi, 12 * np.pi), (145, 150, 100)
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        axes = [np.linspace(0.1, e, n) for e, n in zip(ends[:dimensions], sizes, strict=False)]
        splits = [random_split(axis.size, 0.2, rng, keep_edges=keep_edges) for axis in axes]
        train = [axis[s.train] for axis, s in zip(axes, splits, strict=True)]
        held = [axis[s.held] for axis, s in zip(axes, splits, strict=True)]
        field = paper_3d if dimensions == 3 else lambda c: np.outer(np.sin(c[0]), np.cos(c[1] / 2))
        model = fit(field(train), dict(zip("xyz", train, strict=False)))
        errors.append(np.abs(model.cascade.predict(held) - field(held)).max())
    assert np.median(errors) < 5e-7
