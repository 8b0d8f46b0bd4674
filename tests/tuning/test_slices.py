"""Settings of a level chosen by leaving slices out, against refits without the slice."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli import fit
from dkrls_cli.bench import paper_3d, paper_3d_split
from dkrls_cli.cascade.kernels import FAMILIES, SPLINES, Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.model.validation.splits import random_split
from dkrls_cli.tuning import slices as module
from dkrls_cli.tuning.candidates import CONSTANT, RIDGES, Candidate
from dkrls_cli.tuning.slices import choose_level, predict_midpoints, sample_fibres
from dkrls_cli.tuning.spectra import SpectrumCache

RNG = np.random.default_rng(11)
X = np.sort(RNG.uniform(0, 10, 14))
ROUGH = np.sin(X)[:, None] * RNG.standard_normal(40) + 0.3 * RNG.standard_normal((14, 40))


def answers(x, data, kernel, ridge, queries):
    """Plain kernel ridge regression."""
    system = gram(kernel, x, x) + ridge * np.eye(x.size)
    return gram(kernel, queries, x) @ np.linalg.solve(system, data)


def refitted_error(x, data, kernel, ridge, blocks, closed):
    """Root of the weighted mean square error of every block predicted from all others."""
    return refitted_errors(x, data, kernel, ridge, blocks, closed)[0]


def refitted_errors(x, data, kernel, ridge, blocks, closed):
    """The same, and the root of the weighted geometric mean over the slices."""
    squares, weights = np.empty(x.size), np.ones(x.size)
    for block in blocks:
        rest = np.setdiff1d(np.arange(x.size), block)
        missed = answers(x[rest], data[rest], kernel, ridge, x[block]) - data[block]
        squares[block] = np.mean(missed**2, axis=1)
    if not closed:
        weights[blocks[0]] = weights[blocks[-1]] = 0.1
    typical = np.exp(np.average(np.log(squares), weights=weights) / 2)
    return math.sqrt(np.average(squares, weights=weights)), typical


@pytest.mark.parametrize("folds", [None, 5])
@pytest.mark.parametrize("period", [None, 12.0])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fibres", [3, 40])
def test_the_error_is_that_of_refits_without_each_slice_or_block(family, period, fibres, folds):
    data = ROUGH[:, :fibres]
    kernel = Kernel(family, 1.5, period, CONSTANT)
    candidate = choose_level(
        X, data, family=family, sigma=1.5, ridge=1e-3, period=period, folds=folds
    ).taken
    blocks = np.array_split(np.arange(X.size), folds or X.size)
    expected = refitted_errors(X, data, kernel, 1e-3, blocks, closed=period is not None)
    assert (candidate.error, candidate.typical) == pytest.approx(expected, rel=1e-8)
    assert candidate.kernel == kernel
    assert candidate.ridge == 1e-3


def test_parts_of_a_long_circle_have_ends():
    x = np.arange(200.0)
    data = np.sin(np.multiply.outer(x / 9, np.linspace(1, 2, 5)))
    kernel = Kernel("matern32", 9.0, 200.0, CONSTANT)
    found = choose_level(x, data, family="matern32", sigma=9.0, ridge=1e-3, period=200.0).taken
    runs = [np.arange(start, start + 64) for start in (0, 68, 136)]
    errors = [
        refitted_error(x[r], data[r], kernel, 1e-3, np.arange(64)[:, None], False) for r in runs
    ]
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-8)


def test_more_blocks_than_slices_are_slices():
    assert choose_level(X, ROUGH, folds=99).taken == choose_level(X, ROUGH).taken


def test_what_is_given_is_kept_and_the_rest_chosen_around_it():
    assert choose_level(X, ROUGH, family="matern12").taken.kernel.family == "matern12"
    assert choose_level(X, ROUGH, sigma=2.0).taken.kernel.sigma == 2.0
    assert choose_level(X, ROUGH, ridge=0.5).taken.ridge == 0.5
    open_choice = choose_level(X, ROUGH)
    assert {candidate.kernel.family for candidate in open_choice.tried} == {*FAMILIES, *SPLINES}


def test_the_setting_nearest_to_the_weighted_average_of_all_is_taken():
    choice = choose_level(X, ROUGH)
    candidates = [candidate for candidate in choice.tried if not candidate.kernel.is_spline]
    middles = (X[1:] + X[:-1]) / 2
    shares = np.empty(len(candidates))
    for family in FAMILIES:
        sigmas = np.unique([t.kernel.sigma for t in candidates if t.kernel.family == family])
        widths = dict(zip(sigmas, np.gradient(np.log(sigmas)), strict=True))
        for i, candidate in enumerate(candidates):
            if candidate.kernel.family == family:
                shares[i] = widths[candidate.kernel.sigma]
    scores = np.array([math.sqrt(candidate.error * candidate.typical) for candidate in candidates])
    weights = shares * (scores / scores.min()) ** -float(X.size)
    weights *= [max(candidate.ridge, 1e-6) ** -0.1 for candidate in candidates]
    some = np.flatnonzero(weights > 1e-3 * weights.max())
    found = {i: answers(X, ROUGH, candidates[i].kernel, candidates[i].ridge, middles) for i in some}
    average = sum(weights[i] * found[i] for i in some) / weights[some].sum()
    close = [i for i in some if weights[i] >= 0.3 * weights.max()]
    distance = {i: np.linalg.norm(found[i] - average) for i in close}
    taken = candidates.index(choice.taken)
    assert len(close) > 3
    assert distance[taken] <= 1.05 * min(distance.values())


@pytest.mark.parametrize(("ridges", "taken"), [
    ([1e-4, 1e-3, 1e-2, 0.1], 1e-3),  # 1e-2 if all counted alike
    ([1e-12, 1e-5, 1e-4, 1e-3], 1e-5),  # 1e-12 if it counted more than 1e-6
])  # fmt: skip
def test_of_settings_that_miss_slices_alike_those_of_a_small_ridge_count_more(ridges, taken):
    """Weights are the power -0.1 of ridges; below 1e-6 none passes for noise."""
    kernel, middles = Kernel("matern32", 2.0, constant=1.0), (X[1:] + X[:-1]) / 2
    found = np.array([answers(X, ROUGH, kernel, ridge, middles) for ridge in ridges])
    average = np.average(found, axis=0, weights=np.maximum(ridges, 1e-6) ** -0.1)
    nearest = int(np.argmin(np.linalg.norm(found - average, axis=(1, 2))))
    segment = module._Segment(X, [ROUGH], False, None, SpectrumCache())
    alike = [Candidate(kernel, ridge, 1.0) for ridge in ridges]
    assert module._nearest_to_average([segment], alike).ridge == ridges[nearest] == taken


def test_answers_far_from_data_fall_back_to_the_mean_along_the_dimension():
    x = np.concatenate([np.arange(30.0), np.arange(200.0, 230.0)])
    means = np.linspace(-40, 40, 25)
    data = means + 0.5 * np.random.default_rng(1).standard_normal((60, 25))
    model = fit(data, {"x": x, "run": np.arange(25.0)})
    # without a constant it would be 0; by seed, settings are off by 0.3 to 2.2
    np.testing.assert_allclose(model.predict(x=115.0), means, atol=2.5)


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
    tried = choose_level(np.arange(30.0), ROUGH[np.arange(30) % 14], cycles=[20.0]).tried
    assert {candidate.kernel.cycle for candidate in tried} == {None}


def test_kernels_are_told_apart_by_the_data():
    x = np.arange(60.0)
    smooth = np.sin(np.multiply.outer(x / 9, np.linspace(1, 2, 20)))
    walk = RNG.standard_normal((60, 20)).cumsum(axis=0)
    assert choose_level(x, smooth).taken.kernel.family == "gaussian"
    assert choose_level(x, walk).taken.kernel.family in ("matern12", "matern32")
    noise = choose_level(x, RNG.standard_normal((60, 200))).taken
    assert noise.error == pytest.approx(1.0, rel=0.1)


def test_segments_with_equal_steps_are_seen_as_one():
    x = np.arange(400.0)
    data = np.sin(np.multiply.outer(x / 7, np.linspace(1, 2, 9)))
    data += 0.1 * np.random.default_rng(2).standard_normal(data.shape)
    shaken = x + 1e-6 * np.sin(x)
    fixed = {"family": "matern32", "sigma": 9.0, "ridge": 1e-2}
    together, apart = (choose_on_segments(c, data, **fixed).taken for c in (x, shaken))
    assert together.error == pytest.approx(apart.error, rel=1e-4)


def test_long_levels_are_seen_through_segments_and_settings_agree():
    x = np.arange(400.0)
    data = np.sin(np.multiply.outer(x / 7, np.linspace(1, 2, 30))) + 0.1 * RNG.standard_normal(
        (400, 30)
    )
    windowed, whole = choose_level(x, data).taken, choose_level(x[:150], data[:150]).taken
    assert windowed.error == pytest.approx(whole.error, rel=0.1)
    assert windowed == choose_level(x, data).taken


@pytest.mark.slow
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=7, unique=True),
    st.floats(-1e100, 1e100),
    st.sampled_from([0.0, 1.0, 1e-9]),
)
def test_nothing_finite_makes_a_choice_fail(x, level, noise):
    x = np.array(x)
    data = level + noise * np.cos(np.arange(x.size))[:, None]
    taken = choose_level(x, data).taken
    assert math.isfinite(taken.kernel.sigma)
    assert taken.kernel.sigma > 0
    assert taken.ridge in RIDGES or taken.kernel.is_spline


def test_settings_at_the_end_of_their_range_are_warned_of():
    alternating = np.where(np.arange(30) % 2, 1.0, -1.0)[:, None] * np.ones(5)
    warnings = choose_level(
        np.arange(30.0), alternating + 0.01 * RNG.standard_normal((30, 5))
    ).warnings
    assert warnings
    assert not choose_level(X, ROUGH).warnings


def test_a_sample_of_fibres_stands_for_a_large_grid():
    values = RNG.standard_normal((6, 7, 5))
    np.testing.assert_allclose(
        np.sort(sample_fibres(values, 1, 0.5).ravel()), np.sort(values.ravel() - 0.5)
    )
    many = RNG.standard_normal((100, 8, 90))
    some = sample_fibres(many, 1, 0.0)
    long = sample_fibres(np.zeros((40, 2**18)), 1, 0.0)
    assert 4 < long.shape[1] <= 8  # two million numbers
    assert sample_fibres(np.zeros((2, 2**22)), 1, 0.0).shape[1] == 1
    assert some.shape[0] == 8
    assert 1500 < some.shape[1] <= 2048
    assert some.std() == pytest.approx(1.0, rel=0.05)


def test_midpoints_are_predicted_along_one_axis():
    values = 3.0 + RNG.standard_normal((4, 14, 5))
    kernel = Kernel("matern52", 2.0, None, 1.0)
    found = predict_midpoints(values, 1, 3.0, X, kernel, 1e-2)
    middles = (X[1:] + X[:-1]) / 2
    for i in range(4):
        expected = answers(X, values[i] - 3.0, kernel, 1e-2, middles)
        np.testing.assert_allclose(found[i], expected, atol=1e-10)
    shuffled = RNG.permutation(14)
    np.testing.assert_allclose(
        predict_midpoints(values[:, shuffled], 1, 3.0, X[shuffled], kernel, 1e-2), found, atol=1e-10
    )
    many = np.arange(100.0)
    assert predict_midpoints(np.outer(many, [1, 2]), 0, 0.0, many, kernel, 1e-2).shape == (24, 2)


def test_midpoints_along_a_long_axis_are_those_of_a_dense_system():
    x = np.sort(RNG.uniform(0, 500, 1100))
    values, kernel = 3.0 + RNG.standard_normal((2, 1100)), Kernel("matern32", 4.0, None, 1.0)
    places = np.linspace(0, 1098, 24).astype(int)
    expected = answers(x, values.T - 3.0, kernel, 0.1, (x[places] + x[places + 1]) / 2)
    found = predict_midpoints(values, 1, 3.0, x, kernel, 0.1)
    np.testing.assert_allclose(found, expected.T, atol=1e-9)
    turned = predict_midpoints(values[:, ::-1], 1, 3.0, x[::-1].copy(), kernel, 0.1)
    np.testing.assert_allclose(turned, found, atol=1e-9)


def test_the_second_level_is_chosen_on_what_the_first_answers_between():
    rng = np.random.default_rng(8)
    y = np.arange(20.0)
    values = np.sin(np.add.outer(X, y / 3)) + 0.3 * rng.standard_normal((14, 20))
    told = {}
    model = fit(values, {"x": X, "y": y}, watch=told.__setitem__)
    first = told["x"].taken
    assert first == choose_level(X, values - values.mean()).taken
    seen = predict_midpoints(values, 0, values.mean(), X, first.kernel, first.ridge)
    assert told["y"].taken == choose_level(y, seen.T).taken
    assert [level.kernel for level in model.levels] == [told[d].taken.kernel for d in "xy"]


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["level", "joint"])
def test_noise_is_averaged_out(noise):
    """The paper's 3D grid with 5 % noise (0.018), error against the clean truth."""
    train, held = paper_3d_split(0)
    clean = paper_3d(train)
    noisy = clean + 0.05 * clean.std() * np.random.default_rng(11).standard_normal(clean.shape)
    model = fit(noisy, dict(zip("xyz", train, strict=True)), noise=noise)
    error = np.sqrt(np.mean((model.cascade.predict(held) - paper_3d(held)) ** 2))
    assert error <= 1.2e-3


@pytest.mark.slow
@pytest.mark.parametrize("keep_edges", [False, True])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_papers_grids_need_no_given_settings(dimensions, keep_edges):
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


# --- segments of long levels --------------------------------------------------------------------


def choose_on_segments(x, data, **given):
    """Return the choice that is made where a level cannot be seen whole."""
    return module._choose_on_segments(request_of(x, data, **given), module.SpectrumCache())


def uneven_level(ranks=(1, 3, 40), seed=0):
    """Return three stretches of 70 samples with steps of 1, 2 and 3, of these ranks, 40 fibres."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.arange(70.0), 70 + 2 * np.arange(70.0), 210 + 3 * np.arange(70.0)])
    parts = [
        rng.standard_normal((70, r)).cumsum(axis=0) @ rng.standard_normal((r, 40)) for r in ranks
    ]
    return x, np.concatenate(parts)


def test_segments_may_have_different_steps_and_rank():
    x, data = uneven_level()
    taken = choose_on_segments(x, data).taken
    runs = [np.arange(start, start + 64) for start in (0, 73, 146)]
    blocks = np.arange(64)[:, None]
    errors = [refitted_error(x[r], data[r], taken.kernel, taken.ridge, blocks, False) for r in runs]
    assert taken.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)
    model = fit(data, {"x": x, "y": np.arange(40.0)}, ["y", "x"])
    assert np.isfinite(model.predict(x=x[:-1] + 0.5)).all()


def test_the_rank_of_a_segment_does_not_change_what_it_counts():
    """Fibres repeated many times have the same rank; noise of no size raises it to the full."""
    rng = np.random.default_rng(5)
    x, data = uneven_level(ranks=(2, 2, 2))
    full = data + 1e-12 * rng.standard_normal(data.shape)
    full[:70] = data[:70]
    fixed = {"family": "matern32"}
    low, high = (choose_on_segments(x, d, **fixed).taken for d in (data, full))
    assert (low.kernel, low.ridge) == (high.kernel, high.ridge)


def test_segments_count_by_the_runs_they_stand_for():
    x = np.concatenate([np.arange(140.0), 140 + 2.5 * np.arange(70.0)])
    data = np.random.default_rng(3).standard_normal((210, 5)).cumsum(axis=0)
    fixed = {"family": "matern32", "sigma": 4.0, "ridge": 1e-2}
    found = choose_on_segments(x, data, **fixed).taken
    blocks = np.arange(64)[:, None]
    kernel = Kernel("matern32", 4.0, None, CONSTANT)
    runs = [np.arange(start, start + 64) for start in (0, 73, 146)]
    errors = [refitted_error(x[r], data[r], kernel, 1e-2, blocks, False) for r in runs]
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-8)


@pytest.mark.parametrize("size", [160, 161])
def test_a_level_of_up_to_160_samples_is_seen_whole(size):
    x = np.arange(float(size))
    data = np.sin(np.multiply.outer(x / 9, np.linspace(1, 2, 4)))
    fixed = {"family": "matern32", "sigma": 9.0, "ridge": 1e-3, "period": float(size), "folds": 8}
    found = choose_level(x, data, **fixed).taken
    kernel = Kernel("matern32", 9.0, float(size), CONSTANT)
    starts, count = ([0], 160) if size == 160 else ([0, 48, 97], 64)
    blocks = np.array_split(np.arange(count), 8 if size == 160 else 4)
    errors = [
        refitted_error(x[r], data[r], kernel, 1e-3, blocks, closed=size == 160)
        for r in (np.arange(start, start + count) for start in starts)
    ]
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)


@pytest.mark.parametrize(("folds", "ends"), [(3, False), (4, True)])
def test_ends_count_less_from_four_blocks_on(folds, ends):
    kernel = Kernel("matern32", 2.0, None, CONSTANT)
    fixed = {"family": "matern32", "sigma": 2.0, "ridge": 1e-2}
    blocks = np.array_split(np.arange(X.size), folds)
    expected = refitted_error(X, ROUGH, kernel, 1e-2, blocks, closed=not ends)
    assert choose_level(X, ROUGH, folds=folds, **fixed).taken.error == pytest.approx(expected)
    few, data = X[:folds], ROUGH[:folds]
    expected = refitted_error(few, data, kernel, 1e-2, np.arange(folds)[:, None], closed=not ends)
    assert choose_level(few, data, **fixed).taken.error == pytest.approx(expected)


def test_compressed_slices_have_the_same_inner_products():
    rng = np.random.default_rng(6)
    for data, rank in ((rng.standard_normal((9, 30)), 9), (ROUGH[:, :4], 4), (np.zeros((5, 7)), 1)):
        small = module._compress(data)
        assert small.shape == (len(data), rank)
        np.testing.assert_allclose(
            small @ small.T / rank, data @ data.T / data.shape[1], atol=1e-12
        )
        energy = np.sum(small**2, axis=0)
        assert (np.diff(energy) <= 0).all()
    low = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 50))
    assert module._compress(low).shape == (12, 2)
    low[:, 0] += 1e-9 * rng.standard_normal(12)  # detail is kept, however small
    assert module._compress(low).shape == (12, 3)


@pytest.mark.parametrize(("shake", "count"), [(1e-12, 1), (1e-7, 3)])
def test_runs_make_one_segment_if_their_steps_differ_by_rounding_only(shake, count):
    x = np.arange(400.0)
    x += shake * np.sin(x)
    found = list(module._segments(x, x[:, None], 3))
    assert len(found) == count
    runs = [run for _, runs in found for run in runs]
    np.testing.assert_allclose([run[0, 0] for run in runs], [0, 168, 336], atol=1e-6)


# --- long levels that are seen whole ------------------------------------------------------------


def long_walk(size, columns=3, noise=0.5):
    rng = np.random.default_rng(9)
    steps = rng.standard_normal((size, columns))
    return steps.cumsum(axis=0) + noise * rng.standard_normal((size, columns))


@pytest.mark.parametrize("even", [True, False])
def test_the_error_of_a_long_level_is_that_of_refits_without_each_slice(even):
    x = np.arange(170.0) if even else np.sort(RNG.uniform(0, 99, 170))
    data, kernel = long_walk(170), Kernel("matern32", 4.0, None, CONSTANT)
    found = choose_level(x[::-1].copy(), data[::-1], family="matern32", sigma=4.0, ridge=1e-2).taken
    expected = refitted_error(x, data, kernel, 1e-2, np.arange(170)[:, None], closed=False)
    assert found.error == pytest.approx(expected, rel=1e-8)


def test_a_long_level_comes_close_to_the_best_of_a_dense_search():
    x, data = np.arange(300.0), long_walk(300, noise=1.0)
    segment = module._Segment(x, [data], False, None, module.SpectrumCache())
    dense = module._Search([segment], 300, None, None, ()).candidates(
        ["matern52", "matern32", "matern12"], None, module._sigma_range(x, None)
    )
    least = min(candidate.error for candidate in dense)
    choice = choose_level(x, data)
    assert choice.taken.error <= 1.005 * least
    assert choice.spectra == {}


def test_blocks_of_a_long_level_are_those_that_were_asked_for():
    """Ten blocks of 17 samples are left out whole, blocks of 8 out of segments."""
    x, data = np.arange(170.0), long_walk(170)
    kernel, fixed = Kernel("matern12", 9.0, None, CONSTANT), {"sigma": 9.0, "ridge": 1e-2}
    found = choose_level(x, data, family="matern12", folds=4, **fixed).taken
    blocks = np.array_split(np.arange(170), 4)
    expected = refitted_error(x, data, kernel, 1e-2, blocks, closed=False)
    assert found.error == pytest.approx(expected, rel=1e-8)
    found = choose_level(x, data, family="matern12", folds=21, **fixed).taken
    runs = [np.arange(start, start + 64) for start in (0, 53, 106)]
    blocks = np.array_split(np.arange(64), 8)
    errors = [refitted_error(x[r], data[r], kernel, 1e-2, blocks, False) for r in runs]
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-8)


@pytest.mark.parametrize(("folds", "whole"), [(None, True), (10, True), (11, False)])
def test_small_blocks_are_left_out_of_segments(folds, whole):
    request = request_of(np.arange(161.0), long_walk(161), family="matern12", folds=folds)
    assert (module._choose_whole(request) is not None) == whole


def request_of(x, data, **given):
    names = ("family", "sigma", "ridge", "period", "cycles", "folds", "joint")
    return module._Request(x, data, **dict.fromkeys(names) | {"cycles": (), "joint": False} | given)


def test_short_levels_and_those_without_a_factor_are_not_seen_whole(monkeypatch):
    data = long_walk(161)
    assert module._choose_whole(request_of(np.arange(160.0), data[:160])) is None
    assert module._choose_whole(request_of(np.arange(161.0), data)) is not None
    assert module._choose_whole(request_of(np.arange(161.0), data, family="gaussian")) is None
    assert module._choose_whole(request_of(np.arange(161.0), data, period=161.0)) is None


@pytest.mark.parametrize(
    ("size", "gain", "seen"), [(1024, 1, 0), (1025, 1, 3), (8192, 9, 0), (8193, 9, 3)]
)
def test_a_family_without_a_factor_is_kept_where_it_wins_and_has_a_dense_one(
    size, gain, seen, monkeypatch
):
    """The Gaussian is best by little or by far, and only the others have a factor."""
    monkeypatch.setattr(module, "is_affordable", lambda k, *_: k.family != "gaussian")
    x, errors = np.arange(float(size)), {"gaussian": 1.0 / gain, "matern52": 1.05}
    errors |= {"matern32": 1.06, "matern12": 1.07}
    coarse = [Candidate(Kernel(f), 0.1, errors[f]) for f in FAMILIES]
    found = module._affordable_starts(request_of(x, x[:, None]), coarse)
    assert [c.kernel.family for c in found] == ["matern52", "matern32", "matern12"][:seen]


def test_families_far_behind_on_segments_are_not_tried_whole():
    x = np.arange(300.0)
    errors = {"gaussian": 2.0, "matern52": 1.11, "matern32": 1.09, "matern12": 1.0}
    coarse = [Candidate(Kernel(f), 0.1, errors[f]) for f in FAMILIES]
    found = module._affordable_starts(request_of(x, x[:, None]), coarse)
    assert [c.kernel.family for c in found] == ["matern12", "matern32"]


def test_of_settings_that_segments_do_not_tell_apart_the_largest_ridge_is_the_start():
    told = [(1e-6, 1.0), (1e-4, 1.004), (1e-2, 1.006), (1.0, 2.0)]
    candidates = [Candidate(Kernel("matern32"), ridge, error) for ridge, error in told]
    candidates.append(Candidate(Kernel("matern12"), 5.0, 0.9))
    assert module._calmest(candidates, "matern32").ridge == 1e-4


def test_long_sigmas_are_tried_where_segments_see_noise():
    x = np.arange(0.0, 12000.0, 2.0)
    request = request_of(x, x[:, None])
    noisy = Candidate(Kernel("matern32", 20.0), 0.01, 1.0)
    found = module._far_starts(request, noisy)
    assert [c.kernel.sigma for c in found] == pytest.approx([2 * 64 * 8.0, 2 * 64 * 64.0])
    assert {(c.kernel.family, c.ridge) for c in found} == {("matern32", 1.0)}
    assert module._far_starts(request, replace(noisy, ridge=9e-3)) == []
    white = Candidate(Kernel("matern12", 1.9), 1e-9, 1.0)
    assert len(module._far_starts(request, white)) == 2
    assert module._far_starts(replace(request, sigma=3.0), noisy) == []
    assert {c.ridge for c in module._far_starts(replace(request, ridge=0.3), noisy)} == {0.3}
    assert module._far_starts(request_of(x[:500], x[:500, None]), noisy) == []


def test_a_slow_signal_is_found_under_noise():
    x = np.arange(3000.0)
    clean = np.sin(2 * np.pi * np.multiply.outer(x, [1, 1.2, 1.4]) / 1500)
    noisy = clean + 3 * np.random.default_rng(0).standard_normal(clean.shape)
    taken = choose_level(x, noisy).taken
    assert taken.kernel.sigma > 64
    smooth = answers(x, noisy, taken.kernel, taken.ridge, x)
    assert np.std(smooth - clean) < 0.4


def test_a_year_is_found_in_daily_data_of_a_decade():
    x = np.arange(3653.0)
    rng = np.random.default_rng(1)
    season = np.maximum(0, np.sin(2 * np.pi * x / 365.25))[:, None] * np.array([3.0, 4.0])
    data = season + rng.standard_normal((3653, 2))
    assert choose_level(x, data, cycles=[365.25, 1900.0]).taken.kernel.cycle == 365.25
    assert choose_level(x, data - season, cycles=[365.25]).taken.kernel.cycle is None


def test_a_long_level_takes_no_dense_matrix():
    """At 20,000 coordinates one would take 3.2 GB."""
    x = np.arange(20_000.0)
    data = long_walk(20_000)
    tracemalloc.start()
    taken = choose_level(x, data).taken
    predict_midpoints(data, 0, 0.0, x, taken.kernel, taken.ridge)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_under_a_joint_ridge_a_real_one_is_tried_as_well():
    x = np.arange(300.0)
    data = np.cumsum(long_walk(300, noise=0.0), axis=0)
    for joint in (False, True):
        choice = choose_level(x, data, joint=joint)
        assert choice.taken.ridge < 1e-4
        assert (choice.under_joint_ridge.ridge >= 1e-4) == joint


def test_segments_of_even_steps_are_many_and_of_uneven_steps_three(monkeypatch):
    counts = []

    def counted(coordinates, data, count):
        counts.append(count)
        return plain(coordinates, data, count)

    plain = module._segments
    monkeypatch.setattr(module, "_segments", counted)
    x, given = np.arange(300.0), {"family": "matern12", "sigma": 3.0, "ridge": 0.1}
    for columns in (1, 600, 3000):
        module._see_segments(request_of(x, np.ones((300, columns)), **given))
    module._see_segments(request_of(np.sort(RNG.uniform(0, 9, 300)), np.ones((300, 1)), **given))
    assert counts == [16, 10, 3, 3]


# --- what is tried ------------------------------------------------------------------------------


def test_sigmas_are_tried_from_less_than_a_step_to_several_extents():
    x = np.arange(0.0, 60.0, 2.0)
    data = ROUGH[np.arange(30) % 14]
    for period, longest in ((None, 3 * 58.0), (60.0, 3 * 60 / math.pi)):
        coarse = [c.kernel for c in choose_level(x, data, period=period).tried]
        sigmas = list(dict.fromkeys(k.sigma for k in coarse if k.family == "gaussian"))[:9]
        np.testing.assert_allclose(sigmas, np.geomspace(0.8, longest, 9))


def test_the_search_is_refined_around_the_best_of_the_two_best_families():
    choice = choose_level(X, ROUGH)
    sigmas = {}
    for candidate in choice.tried:
        sigmas.setdefault(candidate.kernel.family, set()).add(candidate.kernel.sigma)
    errors = {f: min(c.error for c in choice.tried if c.kernel.family == f) for f in FAMILIES}
    best, second, *others = sorted(FAMILIES, key=errors.get)
    counts = [len(sigmas[family]) for family in (best, second, *others)]
    assert counts == [9 + 10, 9 + 4, 9, 9]
    step = (3 * np.ptp(X) / (0.4 * np.median(np.diff(X)))) ** (1 / 8)
    for family, halvings in ((best, 5), (second, 2)):
        top = min((c for c in choice.tried if c.kernel.family == family), key=lambda c: c.error)
        ratios = np.sort(np.abs(np.log(np.array(list(sigmas[family])) / top.kernel.sigma)))
        assert ratios[1] == pytest.approx(np.log(step) / 2**halvings)


def test_ridges_so_small_that_directions_drop_out_are_not_tried():
    """Directions drop out below 4 eps times m times the variance, here 2 and with a cycle 3."""
    x = np.arange(50.0)
    data = np.cos(np.multiply.outer(x / 3, [1.0, 1.1]))
    tried = choose_level(x, data, sigma=5.0, cycles=[20.0]).tried
    least = {}
    for candidate in tried:
        key = candidate.kernel.cycle, candidate.kernel.swing
        least[key] = min(candidate.ridge, least.get(key, 1.0))
    assert least == {(None, 1.0): 1e-13, (20.0, 1.0): 3e-13, (20.0, 10.0): 1e-12}
    assert {c.ridge for c in tried if c.kernel.cycle is None} == set(RIDGES[2:].tolist())


def test_a_ridge_of_zero_can_be_given():
    x = np.arange(30.0)
    data = np.sin(x / 9)[:, None]
    taken = choose_level(x, data, family="gaussian", sigma=30.0, ridge=0.0).taken
    assert taken.error < 1e-3


def test_cycles_are_tried_where_they_fit_twice():
    x = np.arange(41.0)
    tried = choose_level(x, ROUGH[np.arange(41) % 14], sigma=3.0, cycles=[20.0, 20.1]).tried
    cycles = {(c.kernel.cycle, c.kernel.swing) for c in tried}
    assert cycles == {(None, 1.0), (20.0, 1.0), (20.0, 10.0)}
    x, data = uneven_level()  # 417 long, and its shortest segment 63
    fixed = {"family": "matern32", "sigma": 3.0, "ridge": 0.1}
    tried = choose_on_segments(x, data, cycles=[31.0, 32.0], **fixed).tried
    assert {c.kernel.cycle for c in tried} == {None, 31.0}
    tried = choose_level(x, data, cycles=[208.0, 209.0], **fixed).tried
    assert {c.kernel.cycle for c in tried} == {None, 208.0}


# --- which one is taken -------------------------------------------------------------------------


class Answers:
    """A segment of two slices whose candidates answer what they are told to."""

    slices = 2

    def __init__(self, answers):
        self.answers = answers

    def midpoints(self, candidate):
        return np.array([self.answers[candidate.kernel.family]])


def nearest(**told):
    """Return the family taken; each has an error and an answer, and so the weight 1 / error^2."""
    candidates = [Candidate(Kernel(family), 1e-3, told[family][0]) for family in told]
    answers = {family: answer for family, (_, answer) in told.items()}
    return module._nearest_to_average([Answers(answers)], candidates).kernel.family


def test_the_middle_of_what_the_data_leaves_open_is_taken():
    taken = nearest(gaussian=(1.0, 0.0), matern52=(1.1, 5.0), matern32=(1.0, 10.0))
    assert taken == "matern52"
    assert nearest(gaussian=(1.0, 0.0), matern52=(1.0, 1.0)) == "gaussian"  # the first of equals
    assert nearest(gaussian=(0.0, 0.0), matern52=(1e-9, 5.0), matern32=(0.0, 10.0)) == "gaussian"


def test_a_candidate_of_little_weight_is_not_taken():
    others = {"gaussian": (1.0, 0.0), "matern32": (1.0, 10.0)}
    assert nearest(matern52=(0.299**-0.5, 5.0), **others) != "matern52"
    assert nearest(matern52=(0.301**-0.5, 5.0), **others) == "matern52"


def test_a_candidate_of_less_than_a_hundredth_does_not_count():
    """Two answers of nearly equal weight; a third far away draws the average to one of them."""
    two = {"gaussian": (1.0, 0.0), "matern52": (1.001**0.5, 10.0)}
    assert nearest(**two) == "gaussian"
    assert nearest(matern32=(0.0101**-0.5, 1e6), **two) == "matern52"
    assert nearest(matern32=(0.0099**-0.5, 1e6), **two) == "gaussian"


def test_one_slice_that_is_missed_by_much_does_not_decide_alone():
    told = {"gaussian": (2.0, 0.5), "matern52": (1.5, 1.0), "matern32": (1.1, 1.1)}
    found = [Candidate(Kernel(family), 1e-3, *errors) for family, errors in told.items()]
    answers = Answers({"gaussian": 0.0, "matern52": 5.0, "matern32": 10.0})
    answers.slices = 500
    assert module._nearest_to_average([answers], found).kernel.family == "gaussian"


@pytest.mark.parametrize("slices", [11, 12])
def test_few_slices_have_no_typical_error(slices):
    found = choose_level(X[:slices], ROUGH[:slices])
    kernels = [candidate for candidate in found.tried if not candidate.kernel.is_spline]
    assert all((candidate.typical is None) == (slices == 11) for candidate in kernels)


@pytest.mark.parametrize(("limit", "sigmas"), [(4.0, 9), (math.inf, 13)])
def test_a_second_family_that_is_far_behind_is_not_refined(limit, sigmas, monkeypatch):
    monkeypatch.setattr(module, "_FAR_BEHIND", limit)
    x = np.linspace(0.0, 12.0, 30)
    choice = choose_level(x, np.sin(np.outer(x, [1.0, 1.1])))
    kernels = {candidate.kernel for candidate in choice.tried}
    found = {family: sum(kernel.family == family for kernel in kernels) for family in FAMILIES}
    assert found == {"gaussian": 19, "matern52": sigmas, "matern32": 0, "matern12": 0}


def test_segments_count_by_their_runs_in_both_means():
    rng = np.random.default_rng(3)
    x = np.concatenate([np.arange(100.0), 100.0 + 1.5 * np.arange(80)])
    data, fixed = rng.standard_normal((180, 5)), {"family": "gaussian", "sigma": 0.5, "ridge": 0.1}
    runs = [np.arange(start, start + 64) for start in (0, 58, 116)]
    kernel = Kernel("gaussian", 0.5, None, CONSTANT)
    parts = np.array(
        [refitted_errors(x[r], data[r], kernel, 0.1, np.arange(64)[:, None], False) for r in runs]
    )
    found = choose_level(x, data, **fixed).taken
    assert found.error == pytest.approx(math.sqrt(np.mean(parts[:, 0] ** 2)), rel=1e-8)
    assert found.typical == pytest.approx(np.exp(np.mean(np.log(parts[:, 1]))), rel=1e-8)


def test_weights_grow_with_the_number_of_slices():
    candidates = [Candidate(Kernel(f), 1e-3, e) for f, e in (("gaussian", 1.0), ("matern12", 1.5))]
    answers = [Answers({"gaussian": 0.0, "matern12": 1.0})] * 9  # 18 slices: 1.5^-18 is nothing
    assert module._nearest_to_average(answers, candidates).kernel.family == "gaussian"


def test_a_kernel_counts_by_the_range_of_sigma_it_stands_for():
    kernels = [Kernel("gaussian", sigma) for sigma in (1.0, 2.0, 2.5, 16.0)]
    lone = Kernel("matern12", 3.0)
    shares = module._shares([*kernels, lone])
    expected = np.gradient(np.log([1.0, 2.0, 2.5, 16.0]))
    np.testing.assert_allclose([shares[kernel] for kernel in kernels], expected)
    assert shares[lone] == 1.0


def test_predictions_are_compared_in_the_directions_of_most_energy():
    data = np.random.default_rng(7).standard_normal((50, 60))
    segment = module._Segment(np.arange(50.0), [data], False, None, module.SpectrumCache())
    candidate = Candidate(Kernel("matern32", 3.0), 1e-2, 1.0)
    found = segment.midpoints(candidate)
    assert found.size == 49 * 32
    middles = np.arange(49) + 0.5
    whole = answers(np.arange(50.0), segment.data, candidate.kernel, 1e-2, middles)
    np.testing.assert_allclose(found, whole[:, :32].ravel() / math.sqrt(50), atol=1e-10)


# --- what is handed on --------------------------------------------------------------------------


def test_the_spectra_of_a_choice_are_those_of_its_kernels():
    choice = choose_level(X, ROUGH)
    kernels = {choice.taken.kernel, choice.under_joint_ridge.kernel}
    assert set(choice.spectra) == kernels
    for kernel, spectrum in choice.spectra.items():
        whole = decompose(gram(kernel, X, X))
        np.testing.assert_array_equal(spectrum.vectors, whole.vectors)
        np.testing.assert_array_equal(spectrum.values, whole.values)


def test_no_spectrum_is_handed_on_where_the_level_was_not_seen_as_it_is():
    fixed = {"family": "matern32", "sigma": 3.0, "ridge": 1e-2}
    assert choose_level(X[::-1].copy(), ROUGH[::-1], **fixed).spectra == {}
    x, data = uneven_level()
    assert choose_level(x, data, **fixed).spectra == {}


def test_no_gram_matrix_is_decomposed_twice(monkeypatch):
    made = []

    def counted(matrix):
        made.append(matrix.tobytes())
        return decompose(matrix)

    monkeypatch.setattr("dkrls_cli.tuning.spectra.decompose", counted)
    monkeypatch.setattr(module, "decompose", counted)
    taken = (choice := choose_level(X, ROUGH, family="matern32")).taken
    assert len(made) == len(set(made)) == 9 + 10
    spectrum = choice.spectra[taken.kernel]
    given = predict_midpoints(ROUGH, 0, 0.0, X, taken.kernel, taken.ridge, spectrum=spectrum)
    assert len(made) == 19
    np.testing.assert_array_equal(
        given, predict_midpoints(ROUGH, 0, 0.0, X, taken.kernel, taken.ridge)
    )
    assert len(made) == 20


@pytest.mark.parametrize("size", [25, 26, 200])
def test_at_most_24_midpoints_are_spread_evenly(size):
    x = np.arange(float(size))
    found = predict_midpoints(np.outer(x, [1.0]), 0, 0.0, x, Kernel("matern52", 3.0), 1e-9)[:, 0]
    assert found.size == 24
    assert found[[0, -1]] == pytest.approx([0.5, size - 1.5], rel=0.1)
    steps = np.diff(found)[1:-1]  # beyond the ends there is no data to go by
    assert steps.max() < steps.min() + 1.5


@pytest.mark.parametrize("most", [70, 69, 20])
def test_fibres_are_all_taken_or_spread_evenly(most):
    values = np.arange(7 * 3 * 10.0).reshape(7, 3, 10)
    every = np.moveaxis(values, 1, 0).reshape(3, -1) - 1.0
    found = sample_fibres(values, 1, 1.0, most)
    places = [np.flatnonzero((every == fibre[:, None]).all(axis=0)).item() for fibre in found.T]
    if most == 70:
        assert places == list(range(70))
    else:
        assert len(places) == len(set(places)) <= most
        assert len(places) > 0.6 * most
        assert np.diff([-1, *places, 70]).max() <= 3.0 * 70 / most


@pytest.mark.parametrize("order", [1, -1])
def test_samples_are_left_out_together_with_their_copies(order):
    rng = np.random.default_rng(3)
    x = np.array([-5.0, -4.0, -3.0, -2.2, -1.0, 0.3, 1.0, 2.0, 3.0])[::order]
    copies = np.array([-1, -1, -1, -1, -1, -1, 4, 3, 2] if order == 1 else [6, 5, 4] + [-1] * 6)
    data = rng.normal(size=(9, 20))
    choice = choose_level(x, data, family="matern32", sigma=1.5, ridge=0.1, copies=copies)
    covariance = gram(choice.taken.kernel, x, x) + 0.1 * np.eye(9)
    errors, weights = [], []
    for row in np.flatnonzero(copies < 0):
        left = np.setdiff1d(np.arange(9), [row, *np.flatnonzero(copies == row)])
        rows = np.linalg.solve(covariance[np.ix_(left, left)], covariance[left, row])
        errors.append(np.mean((data[row] - rows @ data[left]) ** 2))
        weights.append(0.1 if x[row] == -5.0 else 1.0)  # the end behind which nothing is copied
    expected = np.sqrt(np.average(errors, weights=weights))
    assert np.isclose(choice.taken.error, expected)
    segment = module._CopiedSegment(np.sort(x), [data], np.sort(copies), module.SpectrumCache())
    assert segment.slices == 6


def test_splines_and_warps_are_not_tried_beside_copies():
    x = np.concatenate([[0.5], np.geomspace(1.0, 100.0, 14)])
    data = np.log(x)[:, None] ** 3 * np.ones(3)
    data[0] = data[1]
    copies = np.full(15, -1)
    copies[0] = 1
    tried = choose_level(x, data, copies=copies).tried
    assert not any(c.kernel.is_spline or c.kernel.warp for c in tried)
    assert any(c.kernel.is_spline for c in choose_level(x, data).tried)
