"""Settings chosen on the whole axis of a long level, against refits without each slice."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.factors.factor import Cost
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.tuning import whole as module
from dkrls_cli.tuning.candidates import CONSTANT, RIDGES, Candidate
from dkrls_cli.tuning.whole import LeftOut, WholeAxis, WholeSearch, is_affordable, mix_columns

RNG = np.random.default_rng(3)
EVEN = np.arange(150.0)
UNEVEN = np.sort(RNG.uniform(0, 150, 150))


def walk(size, columns=3, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal((size, columns))
    return steps.cumsum(axis=0) + noise * rng.standard_normal((size, columns))


def answers(x, data, kernel, ridge, queries):
    system = gram(kernel, x, x) + ridge * np.eye(x.size)
    return gram(kernel, queries, x) @ np.linalg.solve(system, data)


def refitted(x, data, kernel, ridge, blocks):
    """Return the residuals of every block, predicted from all other samples."""
    missed = []
    for block in blocks:
        rest = np.setdiff1d(np.arange(x.size), block)
        missed.append(data[block] - answers(x[rest], data[rest], kernel, ridge, x[block]))
    return np.concatenate(missed)


# --- leaving out --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("x", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("family", ["matern12", "matern32", "matern52"])
@pytest.mark.parametrize("cycle", [None, 24.0])
def test_the_error_is_that_of_refits_without_each_slice(x, family, cycle):
    data = walk(150)
    kernel = Kernel(family, 7.0, None, CONSTANT, cycle)
    missed = refitted(x, data, kernel, 1e-2, np.arange(150)[:, None])
    weights = np.ones(150)
    weights[[0, -1]] = 0.1
    squares = np.mean(missed**2, axis=1)
    shuffled = np.random.default_rng(1).permutation(150)
    left = WholeAxis(x[shuffled], data[shuffled]).leave_out(kernel, 1e-2)
    assert left.error == pytest.approx(math.sqrt(np.average(squares, weights=weights)), rel=1e-8)
    np.testing.assert_allclose(left.some, missed, atol=1e-7)
    parts = weights * squares
    assert left.slices == pytest.approx(parts.sum() ** 2 / np.sum(parts**2), rel=1e-6)


@pytest.mark.parametrize(("folds", "ends"), [(3, 1.0), (4, 0.1), (8, 0.1)])
def test_the_error_of_blocks_is_that_of_refits_without_them(folds, ends):
    data, kernel = walk(150), Kernel("matern32", 9.0, None, CONSTANT)
    blocks = np.array_split(np.arange(150), folds)
    squares = np.mean(refitted(UNEVEN, data, kernel, 0.1, blocks) ** 2, axis=1)
    weights = np.ones(150)
    weights[blocks[0]] = weights[blocks[-1]] = ends
    left = WholeAxis(UNEVEN, data, folds=folds).leave_out(kernel, 0.1)
    assert left.error == pytest.approx(math.sqrt(np.average(squares, weights=weights)), rel=1e-8)


def test_of_many_blocks_eight_are_left_out_spread_evenly():
    data, kernel = walk(150), Kernel("matern12", 9.0, None, CONSTANT)
    blocks = np.array_split(np.arange(150), 15)
    chosen = [blocks[place] for place in (0, 2, 4, 6, 8, 10, 12, 14)]
    missed = refitted(EVEN, data, kernel, 0.1, chosen)
    left = WholeAxis(EVEN, data, folds=15).leave_out(kernel, 0.1)
    np.testing.assert_allclose(left.some, missed, atol=1e-8)


def test_a_circle_has_no_ends():
    assert set(WholeAxis(EVEN, walk(150), closed=True).weights) == {1.0}
    assert set(WholeAxis(EVEN, walk(150)).weights) == {0.1, 1.0}


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30), st.floats(1e-3, 1e3))
def test_slices_of_equal_error_count_each(sizes, scale):
    missed = scale * np.ones((len(sizes), 2))
    left = LeftOut.of(missed, np.ones(len(sizes)))
    assert left.slices == pytest.approx(len(sizes))
    assert left.error == pytest.approx(scale)
    uneven = LeftOut.of(np.array(sizes)[:, None], np.ones(len(sizes)))
    assert 1.0 <= uneven.slices * (1 + 1e-12) <= len(sizes) * (1 + 1e-9)


def test_a_spike_is_one_slice_and_no_error_is_all_of_them():
    spike = np.full((1000, 1), 1e-3)
    spike[500] = 100.0
    assert LeftOut.of(spike, np.ones(1000)).slices == pytest.approx(1.0, rel=1e-3)
    none = LeftOut.of(np.zeros((7, 2)), np.ones(7))
    assert (none.error, none.slices) == (0.0, 7)


def test_few_residuals_are_kept(monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 100)
    missed = RNG.standard_normal((90, 4))
    np.testing.assert_array_equal(LeftOut.of(missed, np.ones(90)).some, missed[::4])


def test_many_columns_are_mixed_to_few_of_the_same_mean_square(monkeypatch):
    monkeypatch.setattr(module, "_NUMBERS", 10_000)
    sizes = np.geomspace(0.1, 3.0, 90)
    data = RNG.standard_normal((1000, 90)) * sizes
    mixed = mix_columns(data)
    assert mixed.shape == (1000, 10)
    assert np.mean(mixed**2) == pytest.approx(np.mean(data**2), rel=0.05)
    assert mix_columns(data[:, :10]).shape == (1000, 10)
    np.testing.assert_array_equal(mix_columns(data[:, :10]), data[:, :10])
    assert mix_columns(np.ones((5000, 9))).shape == (5000, 4)
    one = np.zeros((1000, 90))
    one[:, 7] = 1.0  # what one column alone has is never lost
    np.testing.assert_allclose(np.mean(mix_columns(one) ** 2), 1 / 90)


# --- what is tried ------------------------------------------------------------------------------


def test_a_short_level_is_for_matern_kernels_on_a_line():
    assert is_affordable(Kernel("matern52"), np.arange(1024.0), 1.0, 1.0)
    assert not is_affordable(Kernel("gaussian"), np.arange(1024.0), 0.0, 1.0)
    assert not is_affordable(Kernel("matern52", period=1024.0), np.arange(1024.0), 0.0, 1.0)
    assert is_affordable(Kernel("matern52"), np.sort(RNG.uniform(0, 9, 1025)), 1.0, 1.0)


@pytest.mark.parametrize(
    ("error", "operations", "can"),
    [
        (1.0, 2**15, True),
        (1.0, 2**15 + 1, False),
        (0.9, 2**15 + 1, False),
        (0.89, 2**21, True),
        (0.89, 2**21 + 1, False),
    ],
)
def test_a_dear_factor_is_tried_where_it_can_win(error, operations, can, monkeypatch):
    monkeypatch.setattr(module, "estimate", lambda *_: Cost(1, operations * 2000.0))
    assert is_affordable(Kernel(), np.arange(2000.0), error, 1.0) == can


def test_what_has_no_factor_is_not_tried(monkeypatch):
    monkeypatch.setattr(module, "estimate", lambda *_: None)
    assert not is_affordable(Kernel(), np.arange(2000.0), 0.0, 1.0)


def search_on(data, x=EVEN, span=(0.4, 450.0), **how):
    return WholeSearch(WholeAxis(x, data), span, **how)


def start(family="matern12", sigma=3.0, ridge=1e-3, **parts):
    return Candidate(Kernel(family, sigma, None, CONSTANT, **parts), ridge, math.nan)


def best_on_a_grid(x, data, family):
    """Return the least error of a family over a fine grid of sigmas and ridges, all dense."""
    weights = np.ones(x.size)
    weights[[0, -1]] = 0.1
    least = math.inf
    for sigma in np.geomspace(0.5, 1000, 34):
        values, vectors = np.linalg.eigh(gram(Kernel(family, sigma, None, CONSTANT), x, x))
        for ridge in np.geomspace(1e-10, 10, 45):
            inverse = (vectors / (values + ridge)) @ vectors.T
            missed = inverse @ data / inverse.diagonal()[:, None]
            squares = np.mean(missed**2, axis=1)
            least = min(least, math.sqrt(np.average(squares, weights=weights)))
    return least


@pytest.mark.slow
@pytest.mark.parametrize("family", ["matern12", "matern32", "matern52"])
@pytest.mark.parametrize(("sigma", "ridge"), [(12.0, 1e-2), (40.0, 1.0), (2.0, 10.0)])
def test_the_search_comes_close_to_the_best_of_a_dense_grid(family, sigma, ridge):
    data = walk(150, noise=1.0)
    taken = search_on(data).run([start(family, sigma, ridge)])
    assert taken.error <= 1.01 * best_on_a_grid(EVEN, data, family)
    missed = refitted(EVEN, data, taken.kernel, taken.ridge, np.arange(150)[:, None])
    assert taken.error == pytest.approx(math.sqrt(np.mean(missed[1:-1] ** 2)), rel=0.05)


def test_the_family_of_the_data_is_found_from_a_start_of_each():
    starts = [start("matern52", 10.0, 0.01), start("matern32", 10.0, 0.01), start("matern12", 10.0)]
    search = search_on(walk(800, 12, noise=0.0), np.arange(800.0))
    assert search.run(starts).kernel.family == "matern12"


def test_a_hopeless_start_is_tried_once_and_not_improved():
    search = search_on(walk(150, noise=0.0))
    search.run([start("matern12", 30.0, 1e-4), start("matern52", 0.5, 10.0)])
    assert [c.kernel.family for c in search.tried].count("matern52") == 1


def test_what_is_given_stays():
    data = walk(150)
    search = search_on(data, open_sigma=False)
    search.run([start("matern32", 5.0)])
    assert {c.kernel.sigma for c in search.tried} == {5.0}
    assert len({c.ridge for c in search.tried}) > 2
    search = search_on(data, open_ridge=False)
    search.run([start("matern32", 5.0, 1e-15)])
    assert {c.ridge for c in search.tried} == {1e-15}
    assert len({c.kernel.sigma for c in search.tried}) > 2
    search = search_on(data, open_sigma=False, open_ridge=False)
    search.run([start("matern32", 5.0)])
    assert len(search.tried) == 1


def test_sigma_and_ridge_stay_within_bounds():
    noise = RNG.standard_normal((150, 3))
    search = search_on(noise, span=(2.0, 5.0))
    search.run([start("matern12", 3.0, 5.0)])
    assert {c.ridge for c in search.tried if c.ridge > 9.9} == {RIDGES[-1]}
    assert all(2.0 <= c.kernel.sigma <= 5.0 for c in search.tried)
    smooth = np.sin(EVEN / 30)[:, None]
    search = search_on(smooth)
    search.run([start("matern52", 30.0, 1e-11)])
    assert min(c.ridge for c in search.tried) == 1e-12
    long = WholeAxis(np.arange(5000.0), np.sin(np.arange(5000.0) / 300)[:, None])
    least = WholeSearch(long, (0.4, 1e4)).assess(Kernel("matern52", 300.0), 1e-14).ridge
    assert least == pytest.approx(4 * np.finfo(float).eps * 5000)


def test_no_setting_is_evaluated_twice(monkeypatch):
    seen = []
    plain = WholeAxis.leave_out

    def counted(self, *setting):
        seen.append(setting)
        return plain(self, *setting)

    monkeypatch.setattr(WholeAxis, "leave_out", counted)
    search = search_on(walk(150))
    search.run([start(), start("matern32")])
    assert len(seen) == len(set(seen)) == len(search.tried)


def test_settings_that_cost_too_much_are_passed_over(monkeypatch):
    monkeypatch.setattr(module, "is_affordable", lambda kernel, *_: kernel.sigma < 5.0)
    search = search_on(walk(150, noise=0.0))
    taken = search.run([start("matern12", 3.0, 1e-3)])
    assert math.isfinite(taken.error)
    assert all(c.kernel.sigma < 5.0 for c in search.tried)
    assert search.assess(Kernel("matern12", 6.0), 0.1).error == math.inf


def test_a_cycle_is_taken_if_it_helps():
    x = np.arange(600.0)
    rng = np.random.default_rng(2)
    wave = np.maximum(0, np.sin(2 * np.pi * x / 24))[:, None] * rng.uniform(1, 2, 3)
    noise = rng.standard_normal((600, 3))
    found = search_on(5 * wave + noise, x).run([start("matern32", 3.0, 0.1)], [24.0, 50.0])
    assert found.kernel.cycle == 24.0
    search = search_on(noise, x)
    assert search.run([start("matern32", 3.0, 0.1)], [24.0]).kernel.cycle is None
    swings = {c.kernel.swing for c in search.tried if c.kernel.cycle == 24.0}
    assert {1.0, 10.0} <= swings


def test_other_families_are_tried_with_the_best_cycle():
    x = np.arange(600.0)
    wave = 9 * np.sin(2 * np.pi * x / 24)[:, None]
    search = search_on(wave + walk(600, noise=0.0), x)
    starts = [start("matern52", 5.0, 1e-3), start("matern12", 9.0, 1e-3)]
    taken = search.run(starts, [24.0])
    assert (taken.kernel.family, taken.kernel.cycle) == ("matern12", 24.0)


# --- which one is taken -------------------------------------------------------------------------


class Told:
    """An axis whose left-out slices under a ridge are what they are told to be."""

    coordinates = EVEN

    def __init__(self, told, slices):
        self.told, self.slices = told, slices

    def leave_out(self, kernel, ridge):
        error, answer = self.told[ridge]
        return LeftOut(error, self.slices, np.array([answer]))


def taken_of(told, slices):
    search = WholeSearch(Told(told, slices), (1.0, 1.0), open_sigma=False, open_ridge=False)
    candidates = [search.assess(Kernel("matern12"), ridge) for ridge in told]
    best = min(candidates, key=lambda candidate: candidate.error)
    return search._nearest_to_average(best).ridge


def test_the_middle_of_what_few_slices_leave_open_is_taken():
    told = {1e-3: (1.0, 0.0), 1e-2: (1.01, 5.0), 1e-1: (1.0, 10.0)}
    assert taken_of(told, 10.0) == 1e-2
    assert taken_of(told, 1e4) in (1e-3, 1e-1)
    assert taken_of({**told, 1e-3: (0.99, 0.0)}, 1e4) == 1e-3


def test_candidates_side_by_side_do_not_outvote_others():
    """Four of nearly the same ridge stand for no more than one of them."""
    crowd = {0.1 * (1 + 1e-3 * i): (1.0, 10.0 + 1e-3 * i) for i in range(4)}
    told = {1e-5: (1.0, 0.0), 1e-3: (1.0, 6.0), **crowd}
    assert taken_of(told, 10.0) == 1e-3


def test_candidates_of_little_weight_do_not_count_nor_are_taken():
    two = {1e-3: (1.0, 0.0), 1e-2: (1.05, 10.0)}
    assert taken_of({**two, 1e-1: (0.0101**-0.5, 1e6)}, 2.0) == 1e-2
    assert taken_of({**two, 1e-1: (0.0099**-0.5, 1e6)}, 2.0) == 1e-3
    middle = {1e-3: (1.0, 0.0), 1e-1: (1.0, 10.0)}
    assert taken_of({**middle, 1e-2: (0.301**-0.5, 5.0)}, 2.0) == 1e-2
    assert taken_of({**middle, 1e-2: (0.299**-0.5, 5.0)}, 2.0) != 1e-2


def test_of_candidates_that_predict_alike_the_largest_ridge_is_taken():
    told = {1e-9: (1.0, 10.0), 1e-3: (1.0, 10.1), 1e-2: (1.0, 10.2), 1e-1: (1.0, 10.6)}
    assert taken_of(told, 50.0) == 1e-2


def test_data_without_error_has_a_candidate():
    assert taken_of({1e-3: (0.0, 0.0), 1e-2: (0.0, 1.0)}, 5.0) in (1e-3, 1e-2)
    taken = search_on(np.zeros((150, 2))).run([start()])
    assert taken.error == 0.0


def test_a_setting_must_be_better_by_a_share_to_be_moved_to():
    better, close = (replace(start(), error=error) for error in (0.9989, 0.9991))
    assert module._is_better(better, replace(start(), error=1.0))
    assert not module._is_better(close, replace(start(), error=1.0))


@given(st.floats(-0.99, 0.99), st.floats(0.1, 10.0), st.floats(-5, 5))
def test_the_vertex_of_a_parabola_is_found(place, bend, level):
    values = [level + bend * (at - place) ** 2 for at in (-1.0, 0.0, 1.0)]
    vertex, gain = module._vertex(values)
    assert vertex == pytest.approx(place, abs=1e-9)
    assert gain == pytest.approx(bend * place**2, abs=1e-9)


@pytest.mark.parametrize("values", [(0, 0, 0), (0, 1, 0), (1, 0, math.inf), (2, 1, 0)])
def test_what_is_no_parabola_has_no_vertex(values):
    assert module._vertex(values) == (0.0, 0.0)


def test_steps_in_one_direction_end(monkeypatch):
    """The longer the sigma the better, without end."""
    monkeypatch.setattr(
        WholeAxis, "leave_out", lambda _, k, r: LeftOut(1 / k.sigma, 9.0, np.zeros(1))
    )
    search = WholeSearch(WholeAxis(EVEN, walk(150)), (1e-9, 1e9), open_ridge=False)
    search.run([start("matern12", 1.0)])
    sigmas = sorted(c.kernel.sigma for c in search.tried)
    assert sigmas[-1] == pytest.approx(2.0 ** (6 * (1.0 + 2 * 0.7 + 2 * 0.4)))
