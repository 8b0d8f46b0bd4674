"""Settings of grids with missing cells: the whole search, and each of its rules by itself."""

import math

import numpy as np
import pytest
from gap_grids import field, spectra_of

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.bars import calibrated, distance
from dkrls_cli.gaps.solve import complete, complete_with_spectra
from dkrls_cli.tuning import gaps
from dkrls_cli.tuning.gaps import GapChoice, choose_with_gaps, gap_bars
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.moves import LevelConstraint, Move
from dkrls_cli.tuning.spectra import SpectrumCache

# --- the whole search ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen():
    _, holed, axes = field()
    return choose_with_gaps(holed, axes, [LevelConstraint()] * 3)


def test_what_is_chosen_fills_to_within_the_noise(chosen):
    values, holed, axes = field()
    completed = complete(holed, axes, chosen.setting.kernels, chosen.setting.ridge)
    scattered = np.isnan(holed)
    scattered[3:8, 4:9] = False
    error = np.sqrt(np.mean((completed.values - values)[scattered] ** 2))
    assert error < 0.07  # the noise is 0.05
    assert 0.7 < error / chosen.error < 1.3


def test_choosing_is_repeatable_and_keeps_what_is_given(chosen):
    _, holed, axes = field()
    assert choose_with_gaps(holed, axes, [LevelConstraint()] * 3).setting == chosen.setting
    given = [
        LevelConstraint("matern12", 2.0),
        LevelConstraint("gaussian"),
        LevelConstraint(sigma=4.0, period=12.0),
    ]
    kernels = choose_with_gaps(holed, axes, given, ridge=0.05).setting.kernels
    assert kernels[0] == Kernel("matern12", 2.0)
    assert kernels[1].family == "gaussian"
    assert (kernels[2].sigma, kernels[2].period) == (4.0, 12.0)
    whole = [
        LevelConstraint("matern32", 2.0),
        LevelConstraint("matern32", 2.0),
        LevelConstraint("matern32", 4.0),
    ]
    by_hand = choose_with_gaps(holed, axes, whole, ridge=0.05)
    assert by_hand.tried == 1
    assert by_hand.setting == JointSetting(tuple(Kernel(w.family, w.sigma) for w in whole), 0.05)


@pytest.mark.parametrize("shape", [(1, 1), (2,), (3, 2), (1, 9), (30,)])
@pytest.mark.parametrize("constant", [False, True])
def test_tiny_and_constant_grids_get_finite_settings(shape, constant):
    rng = np.random.default_rng(0)
    values = np.full(shape, 2.0) if constant else rng.standard_normal(shape)
    if values.size > 2:
        values.flat[1] = np.nan
    axes = [np.arange(float(m)) for m in shape]
    found = choose_with_gaps(
        values, axes, [LevelConstraint()] * len(shape), mean=float(np.nanmean(values))
    )
    filled = complete(values, axes, found.setting.kernels, found.setting.ridge).values
    assert np.isfinite(found.error)
    assert np.isfinite(filled).all()
    bars = gap_bars(np.isfinite(values), found)
    assert np.isfinite([bars.scale, bars.power]).all()


def test_a_large_grid_is_seen_through_windows():
    rng = np.random.default_rng(0)
    axes = [np.arange(60.0), np.arange(50.0), np.arange(40.0)]
    values = np.sin(axes[0] / 5)[:, None, None] + np.cos(axes[1] / 6)[:, None] * np.sin(axes[2] / 7)
    values[rng.random(values.shape) < 0.3] = np.nan
    given = [LevelConstraint("matern52", 8.0)] * 3
    found = choose_with_gaps(values, axes, given, ridge=1e-4)
    assert len(found.windows) == 3
    assert all(window.values.size < values.size / 4 for window in found.windows)


def test_the_choice_hands_on_the_spectra_of_the_whole_grid(chosen):
    _, _, axes = field()
    whole = spectra_of(axes, chosen.setting.kernels)
    for found, expected in zip(chosen.spectra, whole, strict=True):
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.vectors, expected.vectors)


def test_the_error_is_that_on_hidden_cells(chosen):
    missed = np.concatenate([window.residuals for window in chosen.windows])
    assert chosen.error == pytest.approx(np.sqrt(np.mean(missed**2)))
    window = chosen.windows[0]
    setting = chosen.setting
    refilled = complete(window.seen, window.coordinates, setting.kernels, setting.ridge).values
    np.testing.assert_allclose(window.answers, refilled, atol=0.01 * chosen.error)


def test_another_seed_hides_other_cells():
    _, holed, axes = field()
    given = [LevelConstraint("matern52", sigma) for sigma in (2.0, 2.0, 4.0)]
    one, two = (choose_with_gaps(holed, axes, given, ridge=0.05, seed=seed) for seed in (0, 1))
    assert (one.windows[0].hidden != two.windows[0].hidden).any()


def test_answers_fall_back_to_the_mean():
    _, holed, axes = field()
    given = [LevelConstraint("matern52", 2.0)] * 3
    found = choose_with_gaps(holed + 50.0, axes, given, ridge=0.05, mean=50.0)
    plain = choose_with_gaps(holed, axes, given, ridge=0.05)
    np.testing.assert_allclose(found.windows[0].residuals, plain.windows[0].residuals, atol=1e-5)


@pytest.mark.parametrize(("second", "descents"), [(1.5, 2), (1.51, 1)])
def test_starts_that_are_far_behind_are_not_improved(second, descents, monkeypatch):
    improved = []
    errors = iter([1.0, second])

    def best_start(search, starts):
        return gaps._Attempt(starts[0], next(errors), 1, search.windows)

    def descend(search, start, rounds, rival):
        improved.append((start.error, rival.error, len(rounds)))
        return start

    monkeypatch.setattr(gaps, "_best_start", best_start)
    monkeypatch.setattr(gaps, "_descend", descend)
    _, holed, axes = field()
    choose_with_gaps(holed, axes, [LevelConstraint()] * 3)
    assert improved == [(1.0, 1.0, 3), (1.5, 1.0, 3)][:descents]


@pytest.mark.parametrize("ridge", [None, 0.01])
def test_a_ridge_that_is_given_is_not_raised_to_save_iterations(ridge, monkeypatch):
    calmed = []

    def calm(_, best, move):
        calmed.append(move.ridge_factor)
        return best

    monkeypatch.setattr(gaps, "_calm", calm)
    _, holed, axes = field()
    given = [LevelConstraint("matern52", 2.0)] * 3
    found = choose_with_gaps(holed, axes, given, ridge=ridge)
    assert calmed == ([3.0] if ridge is None else [])
    assert ridge is None or found.setting.ridge == ridge


def test_a_search_ends_with_few_iterations_where_that_costs_no_error():
    """Nearly clean data under a tiny ridge takes many iterations; a larger ridge is as good."""
    rng = np.random.default_rng(0)
    axes = [np.arange(30.0), np.arange(20.0)]
    values = np.sin(axes[0] / 3)[:, None] * np.cos(axes[1] / 4)
    values += 1e-3 * rng.standard_normal(values.shape)
    values[rng.random(values.shape) < 0.4] = np.nan
    given = [LevelConstraint("gaussian", 3.0)] * 2
    found = choose_with_gaps(values, axes, given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "_calm", lambda _, best, __: best)
        restless = choose_with_gaps(values, axes, given)
    assert found.setting.ridge == pytest.approx(3 * restless.setting.ridge)
    assert found.error <= 1.03 * restless.error


@pytest.mark.parametrize(
    ("error", "spread", "tried", "tolerance"),
    [
        (1e-4, 1.0, 9, 1e-7),
        (0.5, 1.0, 9, 1e-6),
        (1e-9, 1.0, 9, 1e-9),
        (1e-4, 1.0, 1, 1e-9),  # nothing was chosen
        (1e-4, 0.1, 2, 1e-6),
        (0.0, 0.0, 9, 1e-9),
    ],
)
def test_the_final_solve_is_far_more_exact_than_the_model(error, spread, tried, tolerance):
    setting = JointSetting((Kernel(),), 0.1)
    assert GapChoice(setting, error, spread, tried, (), ()).tolerance == pytest.approx(tolerance)


def test_error_bars_are_calibrated_on_hidden_cells(chosen):
    _, holed, axes = field()
    observed = np.isfinite(holed)
    setting, window = chosen.setting, chosen.windows[0]
    bars = gap_bars(observed, chosen)
    away = distance(axes, setting.kernels, np.isfinite(window.seen), setting.ridge)
    expected = calibrated(away[window.hidden] + setting.ridge, window.residuals)
    assert (bars.scale, bars.power) == expected
    assert bars.error == chosen.error
    np.testing.assert_array_equal(bars.unobserved, ~observed)


# --- trying one setting -------------------------------------------------------------------------

X = np.arange(40.0)


def window(seed=0, hide=slice(5, 40, 6)):
    rng = np.random.default_rng(seed)
    values = np.sin(X / 4) + 0.02 * rng.standard_normal(40)
    values[[3, 17, 18]] = np.nan
    hidden = np.zeros(40, bool)
    hidden[hide] = True
    hidden &= np.isfinite(values)
    return HiddenWindow((X,), values, hidden, values)


def setting_of(sigma=4.0, ridge=1e-3):
    return JointSetting((Kernel("matern52", sigma),), ridge)


def search_of(*windows, spread=1.0):
    return gaps._Search(windows, 0.0, spread, SpectrumCache())


def attempt_of(error, iterations=5, ridge=1e-3, windows=()):
    return gaps._Attempt(setting_of(ridge=ridge), error, iterations, tuple(windows))


def test_the_error_of_a_setting_is_that_of_a_solve_without_the_hidden_cells():
    windows = [window(0), window(1, slice(7, 40, 4))]
    found = search_of(*windows).attempt(setting_of(), None)
    missed = []
    for part in windows:
        filled = complete(part.seen, [X], setting_of().kernels, 1e-3).values
        missed.append((filled - part.values)[part.hidden])
    assert found.error == pytest.approx(np.sqrt(np.mean(np.concatenate(missed) ** 2)), rel=1e-3)
    assert found.setting == setting_of()


def test_a_setting_is_tried_once():
    search = search_of(window())
    first = search.attempt(setting_of(), None)
    assert search.attempt(setting_of(), None) is first
    assert search.tried == 1
    search.attempt(setting_of(5.0), first)
    search.solve(setting_of(5.0), first, 1.0)
    assert search.tried == 3


@pytest.mark.parametrize(
    ("error", "spread", "tolerance"),
    [
        (None, 1.0, 1e-3),
        (math.inf, 1.0, 1e-3),
        (1e-4, 0.0, 1e-3),
        (2e-4, 1.0, 2e-6),
        (2e-4, 10.0, 2e-7),
        (1e-12, 1.0, 1e-9),
        (0.5, 1.0, 5e-3),
    ],
)
def test_solves_are_as_exact_as_the_best_error_asks_for(error, spread, tolerance, monkeypatch):
    given = []

    def solve(*args, **options):
        given.append(options)
        return complete_with_spectra(*args, **options)

    monkeypatch.setattr(gaps, "complete_with_spectra", solve)
    best = None if error is None else attempt_of(error, windows=[window()])
    search_of(window(), spread=spread).solve(setting_of(), best, 1.0)
    assert given[0]["tolerance"] == pytest.approx(min(tolerance, 1e-5))
    assert (given[0]["limit"], given[0]["directions"]) == (200, 400)
    known = best is not None and math.isfinite(error) and spread > 0
    assert (given[0]["give_up"] is not None) == known


def test_a_setting_that_takes_too_long_or_is_given_up_has_no_finite_error(monkeypatch):
    search = search_of(window(), window(1))
    monkeypatch.setattr(gaps, "_ITERATIONS", 2)
    slow = search.solve(setting_of(), None, 1.0)
    assert slow.error == math.inf
    assert slow.iterations == 2
    monkeypatch.undo()
    bars = []

    def hopeless(windows, place, bar):
        bars.append((place, bar))
        return lambda _: place == 1

    monkeypatch.setattr(gaps, "_Hopeless", hopeless)
    best = attempt_of(2e-6, windows=[window(), window(1)])
    given_up = search.solve(setting_of(), best, 0.5)
    assert given_up.error == math.inf
    assert bars == [(0, 1e-6), (1, 1e-6)]
    np.testing.assert_allclose(given_up.windows[0].residuals, 0.0, atol=0.1)


def test_the_most_iterations_of_any_window_are_kept():
    hard, easy = window(), window(hide=slice(0, 1))
    each = [search_of(part).attempt(setting_of(), None).iterations for part in (hard, easy)]
    both = search_of(hard, easy).attempt(setting_of(), None)
    assert each[0] > each[1]
    assert both.iterations == each[0]


@pytest.mark.parametrize(
    ("errors", "bar", "ends"),
    [
        ([1.0], 1.01, False),
        ([1.0], 0.99, False),  # nothing is known of its pace yet
        ([1.0, 1.0], 0.99, True),
        ([1.0, 1.0], 1.0, False),
        ([1.0, 0.9], 0.11, False),  # by 0.1 a look: 0.1 after eight more
        ([1.0, 0.9], 0.09, True),
        ([1.0, 1.1], 1.09, True),  # an error that grows is not taken to fall
        ([1.0, 0.5, 0.5], 0.4, True),
    ],
)
def test_a_solve_is_given_up_if_at_its_pace_it_will_not_come_below_the_bar(errors, bar, ends):
    values, hidden = np.zeros(6), np.array([True, True, False, False, False, True])
    part = HiddenWindow((np.arange(6.0),), values, hidden, values)
    hopeless = gaps._Hopeless([part], 0, bar)
    looks = [hopeless(np.full(6, error)) for error in errors]
    assert looks == [False] * (len(errors) - 1) + [ends]


def test_windows_to_come_are_taken_to_be_as_good_as_the_best():
    values, hidden = np.zeros(4), np.array([True, True, False, False])
    here = HiddenWindow((np.arange(4.0),), values, hidden, values)
    other = HiddenWindow((np.arange(4.0),), values, hidden, np.full(4, 2.0))
    expected = np.sqrt((2 * 1.0 + 2 * 4.0) / 4)
    for bar, ends in ((1.001 * expected, False), (0.999 * expected, True)):
        hopeless = gaps._Hopeless([here, other], 0, bar)
        assert [hopeless(np.ones(4)) for _ in range(2)] == [False, ends]


def test_nothing_hidden_is_no_error():
    part = window(hide=slice(0, 0))
    assert gaps._rms_error([part]) == 0.0


# --- rules of the search, with errors made up ---------------------------------------------------


class Landscape:
    """A search in which error and iterations of a setting are functions of log10 of its ridge."""

    def __init__(self, error, iterations=lambda _: 5):
        self.error, self.iterations = error, iterations
        self.ridges, self.bars, self.tried = [], [], 0

    def attempt(self, setting, best):
        return self.solve(setting, best, None)

    def solve(self, setting, best, bar):
        self.tried += 1
        self.ridges.append(round(math.log10(setting.ridge), 3))
        self.bars.append((best.error if best else None, bar))
        exponent = math.log10(setting.ridge)
        return gaps._Attempt(setting, self.error(exponent), self.iterations(exponent), ())


RIDGE_MOVE = Move((), ((0.1, 10.0),), ridge_factor=10.0)


def at(exponent, search):
    setting = setting_of(ridge=10.0**exponent)
    return gaps._Attempt(setting, search.error(exponent), search.iterations(exponent), ())


def test_the_best_start_is_found_beside_the_best_before():
    search = Landscape(lambda e: abs(e + 4))
    starts = [setting_of(ridge=10.0**e) for e in (-2, -5, -4.5, -8)]
    assert gaps._best_start(search, starts).setting == starts[2]
    assert [error for error, _ in search.bars] == pytest.approx([None, 2.0, 1.0, 0.5])


def test_a_move_is_followed_for_as_long_as_it_helps():
    search = Landscape(lambda e: 1 + abs(e + 3))
    best = gaps._follow(search, at(-6, search), RIDGE_MOVE, last=99)
    assert math.log10(best.setting.ridge) == pytest.approx(-3)
    assert search.ridges == [-5, -4, -3, -2]  # and then not the other way


def test_a_move_is_followed_backward_where_forward_does_not_help():
    search = Landscape(lambda e: 1 + abs(e + 3))
    best = gaps._follow(search, at(-1, search), RIDGE_MOVE, last=99)
    assert math.log10(best.setting.ridge) == pytest.approx(-3)
    assert search.ridges == [0, -2, -3, -4]


@pytest.mark.parametrize(("gain", "follows"), [(0.9979, True), (0.9981, False)])
def test_a_gain_below_a_fifth_of_a_percent_is_none(gain, follows):
    search = Landscape(lambda e: gain if e > -5.5 else 1.0)
    start = at(-6, search)
    assert (gaps._follow(search, start, RIDGE_MOVE, last=99) is not start) == follows


def test_a_move_ends_with_the_number_of_settings_tried():
    search = Landscape(lambda e: 10.0**-e)
    search.tried = 5
    gaps._follow(search, at(-9, search), RIDGE_MOVE, last=8)
    assert search.tried == 8
    assert gaps._follow(search, start := at(-9, search), RIDGE_MOVE, last=8) is start


def test_rounds_of_smaller_moves_follow_each_other():
    search = Landscape(lambda e: 1 + abs(e + 3.25))
    rounds = [[Move((), RIDGE_MOVE.bounds, ridge_factor=f)] for f in (10.0, 10**0.5, 10**0.25)]
    best = gaps._descend(search, at(-6, search), rounds, attempt_of(math.inf))
    assert math.log10(best.setting.ridge) == pytest.approx(-3.25)
    coarse = gaps._descend(search, at(-6, search), rounds[:1], attempt_of(math.inf))
    assert math.log10(coarse.setting.ridge) == pytest.approx(-3)


@pytest.mark.parametrize(("rival", "rounds_run"), [(1.0, 3), (0.999, 3), (0.99, 1)])
def test_a_descent_behind_a_rival_ends_with_its_large_moves(rival, rounds_run):
    search = Landscape(lambda _: 1.0)
    rounds = [[Move((), RIDGE_MOVE.bounds, ridge_factor=f)] for f in (10.0, 3.0, 2.0)]
    gaps._descend(search, at(-6, search), rounds, attempt_of(rival))
    assert len(search.ridges) == 2 * rounds_run  # forward and backward in each


def test_moves_are_repeated_until_none_helps():
    """Two moves that take turns: each helps once the other has."""
    ridge = Move((), ((0.1, 1e9),), ridge_factor=10.0)
    sigma = Move((0,), ((0.1, 1e9),), 10.0)

    class Stairs(Landscape):
        def solve(self, setting, best, bar):
            self.tried += 1
            up = math.log10(setting.ridge) + 9, math.log10(setting.kernels[0].sigma)
            level = round(sum(up)) if abs(up[0] - up[1]) < 1.5 else 0
            return gaps._Attempt(setting, 0.9**level, 5, ())

    search = Stairs(None)
    start = gaps._Attempt(JointSetting((Kernel("gaussian", 1.0),), 1e-9), 1.0, 5, ())
    best = gaps._descend(search, start, [[ridge, sigma]], start)
    assert best.error < 0.9**8


def test_a_descent_tries_80_settings_at_most():
    search = Landscape(None)

    def solve(setting, best, bar):
        search.tried += 1
        return gaps._Attempt(setting, 0.5 * best.error, 5, ())

    search.solve, search.tried = solve, 7
    gaps._descend(search, attempt_of(1.0), [[RIDGE_MOVE]], attempt_of(math.inf))
    assert search.tried == 87


# --- calming: fewer iterations for a few percent of error ----------------------------------------


def calm(error, iterations, start=-6):
    search = Landscape(error, iterations)
    best = at(start, search)
    found = gaps._calm(search, best, RIDGE_MOVE)
    return math.log10(found.setting.ridge), search


def test_the_ridge_is_raised_until_solves_take_few_iterations():
    ridge, search = calm(lambda _: 1.0, lambda e: -8 * e)
    assert ridge == pytest.approx(-1)
    assert search.ridges == [-5, -4, -3, -2, -1]


@pytest.mark.parametrize(("iterations", "tries"), [(10, 0), (11, 1)])
def test_more_than_ten_iterations_are_many(iterations, tries):
    _, search = calm(lambda _: 1.0, lambda e: iterations if e < -5.5 else 1)
    assert len(search.ridges) == tries


@pytest.mark.parametrize(("error", "ridge"), [(1.029, -5), (1.031, -6)])
def test_a_larger_ridge_may_cost_three_percent_of_error(error, ridge):
    found, search = calm(lambda e: error if e > -5.5 else 1.0, lambda e: 50 if e < -5.5 else 1)
    assert found == pytest.approx(ridge)
    assert search.bars == [(1.0, 1.03)]


def test_errors_are_compared_with_the_best_and_do_not_add_up():
    """Two percent for each step: the second one is too much."""
    ridge, search = calm(lambda e: 1.02 ** (e + 6), lambda _: 50)
    assert ridge == pytest.approx(-5)
    assert search.ridges == [-5, -4]


def test_calming_ends_at_the_largest_ridge():
    ridge, search = calm(lambda _: 1.0, lambda _: 50, start=0)
    assert ridge == pytest.approx(1)
    assert search.ridges == [1, 1]


def test_a_setting_that_does_not_converge_is_not_taken_to_calm():
    ridge, _ = calm(lambda e: math.inf if e > -5.5 else 1.0, lambda _: 200)
    assert ridge == pytest.approx(-6)


def long_grid():
    rng = np.random.default_rng(0)
    t, x = np.arange(1200.0), np.arange(3.0)
    values = np.sin(t / 9)[:, None] * (1 + 0.1 * x) + 0.05 * rng.standard_normal((1200, 3))
    values[rng.random(values.shape) < 0.1] = np.nan
    return values, [t, x]


@pytest.mark.slow
def test_a_long_level_has_no_spectrum(monkeypatch):
    """Nothing as large as a matrix of the long axis is made."""
    sizes, make = [], SpectrumCache.of
    monkeypatch.setattr(
        SpectrumCache, "of", lambda self, k, c: sizes.append(c.size) or make(self, k, c)
    )
    chosen = choose_with_gaps(*long_grid(), [LevelConstraint("matern32"), LevelConstraint()])
    assert max(sizes) == 512
    assert chosen.spectra[0] is None
    assert chosen.spectra[1].rank == 3
    assert chosen.error < 0.1


@pytest.mark.parametrize("given", [None, "gaussian"])
def test_kernels_without_a_form_are_tried_on_a_long_level_only_if_given(given, monkeypatch):
    cost, solve, tried = choice.estimate, gaps._Search.solve, set()
    monkeypatch.setattr(
        choice, "estimate", lambda k, c: None if k.family == "gaussian" else cost(k, c)
    )

    def noting(self, setting, *more):
        tried.add(setting.kernels[0].family)
        return solve(self, setting, *more)

    monkeypatch.setattr(gaps._Search, "solve", noting)
    limits = [LevelConstraint(given), LevelConstraint("matern32", 2.0)]
    chosen = choose_with_gaps(*long_grid(), limits)
    assert ("gaussian" in tried) == (given == "gaussian")
    assert chosen.error < 0.1
    assert (chosen.spectra[0] is None) == (given is None)
