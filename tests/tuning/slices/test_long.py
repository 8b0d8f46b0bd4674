"""Long levels that are seen whole, against refits and dense searches."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from levels_left_out import answers, long_walk, refitted_error, request_of

from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.tuning.candidates import CONSTANT, Candidate
from dkrls_cli.tuning.slices import long as module
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.slices.fibres import predict_midpoints
from dkrls_cli.tuning.slices.long import choose_whole
from dkrls_cli.tuning.slices.search import Search, sigma_range
from dkrls_cli.tuning.slices.segments import Segment, cut_segments
from dkrls_cli.tuning.spectra import SpectrumCache

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("even", [True, False])
def test_the_error_of_a_long_level_is_that_of_refits_without_each_slice(even):
    x = np.arange(170.0) if even else np.sort(RNG.uniform(0, 99, 170))
    data, kernel = long_walk(170), Kernel("matern32", 4.0, None, CONSTANT)
    found = choose_level(x[::-1].copy(), data[::-1], family="matern32", sigma=4.0, ridge=1e-2).taken
    expected = refitted_error(x, data, kernel, 1e-2, np.arange(170)[:, None], closed=False)
    assert found.error == pytest.approx(expected, rel=1e-8)


def test_a_long_level_comes_close_to_the_best_of_a_dense_search():
    x, data = np.arange(300.0), long_walk(300, noise=1.0)
    segment = Segment(x, [data], False, None, SpectrumCache())
    dense = Search([segment], 300, None, None, ()).candidates(
        ["matern52", "matern32", "matern12"], None, sigma_range(x, None)
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
    assert (choose_whole(request) is not None) == whole


def test_short_levels_and_those_without_a_factor_are_not_seen_whole(monkeypatch):
    data = long_walk(161)
    assert choose_whole(request_of(np.arange(160.0), data[:160])) is None
    assert choose_whole(request_of(np.arange(161.0), data)) is not None
    assert choose_whole(request_of(np.arange(161.0), data, family="gaussian")) is None
    assert choose_whole(request_of(np.arange(161.0), data, period=161.0)) is None


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

    plain = cut_segments
    monkeypatch.setattr("dkrls_cli.tuning.slices.request.cut_segments", counted)
    x, given = np.arange(300.0), {"family": "matern12", "sigma": 3.0, "ridge": 0.1}
    for columns in (1, 600, 3000):
        module._see_segments(request_of(x, np.ones((300, columns)), **given))
    module._see_segments(request_of(np.sort(RNG.uniform(0, 9, 300)), np.ones((300, 1)), **given))
    assert counts == [16, 10, 3, 3]
