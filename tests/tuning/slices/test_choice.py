"""Settings of a level chosen by leaving slices out, against refits without the slice."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given
from hypothesis import strategies as st
from levels_left_out import ROUGH, X, refitted_error, refitted_errors, request_of, uneven_level

from dkrls_cli import fit
from dkrls_cli.bench import paper_3d, paper_3d_split
from dkrls_cli.cascade.kernels import FAMILIES, SPLINES, Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.model.validation.splits import random_split
from dkrls_cli.tuning.candidates import CONSTANT, RIDGES
from dkrls_cli.tuning.slices import choice as module
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.slices.fibres import predict_midpoints
from dkrls_cli.tuning.spectra import SpectrumCache

RNG = np.random.default_rng(11)


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


def test_more_blocks_than_slices_are_slices():
    assert choose_level(X, ROUGH, folds=99).taken == choose_level(X, ROUGH).taken


def test_what_is_given_is_kept_and_the_rest_chosen_around_it():
    assert choose_level(X, ROUGH, family="matern12").taken.kernel.family == "matern12"
    assert choose_level(X, ROUGH, sigma=2.0).taken.kernel.sigma == 2.0
    assert choose_level(X, ROUGH, ridge=0.5).taken.ridge == 0.5
    open_choice = choose_level(X, ROUGH)
    assert {candidate.kernel.family for candidate in open_choice.tried} == {*FAMILIES, *SPLINES}


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
@example([0.0, 1.0, 977427.0, 1.5, 1.75, -76129.0], 0.0, 0.0)
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
    return module._choose_on_segments(request_of(x, data, **given), SpectrumCache())


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


def test_segments_with_equal_steps_are_seen_as_one():
    x = np.arange(400.0)
    data = np.sin(np.multiply.outer(x / 7, np.linspace(1, 2, 9)))
    data += 0.1 * np.random.default_rng(2).standard_normal(data.shape)
    shaken = x + 1e-6 * np.sin(x)
    fixed = {"family": "matern32", "sigma": 9.0, "ridge": 1e-2}
    together, apart = (choose_on_segments(c, data, **fixed).taken for c in (x, shaken))
    assert together.error == pytest.approx(apart.error, rel=1e-4)


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
    monkeypatch.setattr("dkrls_cli.tuning.slices.fibres.decompose", counted)
    taken = (choice := choose_level(X, ROUGH, family="matern32")).taken
    assert len(made) == len(set(made)) == 9 + 10
    spectrum = choice.spectra[taken.kernel]
    given = predict_midpoints(ROUGH, 0, 0.0, X, taken.kernel, taken.ridge, spectrum=spectrum)
    assert len(made) == 19
    np.testing.assert_array_equal(
        given, predict_midpoints(ROUGH, 0, 0.0, X, taken.kernel, taken.ridge)
    )
    assert len(made) == 20


def test_splines_and_warps_are_not_tried_beside_copies():
    x = np.concatenate([[0.5], np.geomspace(1.0, 100.0, 14)])
    data = np.log(x)[:, None] ** 3 * np.ones(3)
    data[0] = data[1]
    copies = np.full(15, -1)
    copies[0] = 1
    tried = choose_level(x, data, copies=copies).tried
    assert not any(c.kernel.is_spline or c.kernel.warp for c in tried)
    assert any(c.kernel.is_spline for c in choose_level(x, data).tried)


def test_two_samples_are_a_straight_line():
    data = RNG.standard_normal((2, 30)) + 3.0
    times, sites = np.array([4.0, 7.0]), np.arange(30.0)
    model = fit(data, {"t": times, "site": sites})
    asked = np.array([4.3, 5.5, 6.8])
    slope = (data[1] - data[0]) / 3.0
    straight = data[0] + np.outer(asked - 4.0, slope)
    spread = np.ptp(data)
    assert np.allclose(model.predict(t=asked), straight, rtol=0, atol=0.02 * spread)
    assert np.allclose(model.predict(t=asked, derivative="t"), slope, rtol=0, atol=0.02 * spread)
    given = choose_level(times, data, sigma=1.0).taken
    assert given.kernel.sigma == 1.0
    chosen = choose_level(times, data)
    assert chosen.taken in chosen.tried
