"""Settings of grids with missing cells: the whole search, and each of its rules by itself."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from gap_grids import field, spectra_of
from landscape import RIDGE_MOVE, Landscape, at, setting_of

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.solve import Completed, complete, complete_field
from dkrls_cli.tuning import gaps
from dkrls_cli.tuning.calibration.holes import gap_bars
from dkrls_cli.tuning.gaps import GapChoice, choose_with_gaps
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow, distance_powers, weigh_windows
from dkrls_cli.tuning.moves import LevelConstraint, Move
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials import descent

# --- the whole search ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen():
    _, holed, axes = field()
    return choose_with_gaps(holed, axes, [LevelConstraint()] * 3)


@pytest.mark.slow
def test_what_is_chosen_fills_to_within_the_noise(chosen):
    values, holed, axes = field()
    completed = complete(holed, axes, chosen.setting.kernels, chosen.setting.ridge)
    scattered = np.isnan(holed)
    scattered[3:8, 4:9] = False
    error = np.sqrt(np.mean((completed.values - values)[scattered] ** 2))
    assert error < 0.07  # the noise is 0.05
    assert 0.7 < error / chosen.error < 1.3


@pytest.mark.slow
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
    bars = gap_bars(values, axes, found)
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
    """Cells of every distance count as those to be filled do."""
    missed = np.concatenate([window.residuals for window in chosen.windows])
    powers = np.concatenate([window.powers for window in chosen.windows])
    observed = np.isfinite(field()[1])
    wanted = np.bincount(distance_powers(distance_to_data(observed)[~observed]))
    squares = [np.mean(missed[powers == p] ** 2) for p in range(wanted.size)]
    assert chosen.error == pytest.approx(np.sqrt(wanted @ squares / wanted.sum()))
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
        return descent.Attempt(starts[0], next(errors), 1, search.windows)

    def descend(search, start, rounds, rival, tell):
        improved.append((start.error, rival.error, len(rounds)))
        assert [moves[0].ridge_factor for moves in rounds] == pytest.approx([9.0, 2.56])
        assert [moves[1].factor for moves in rounds] == [3.0, 1.6]
        return start

    monkeypatch.setattr(descent, "best_start", best_start)
    monkeypatch.setattr(descent, "descend", descend)
    _, holed, axes = field()
    choose_with_gaps(holed, axes, [LevelConstraint()] * 3)
    assert improved == [(1.0, 1.0, 2), (1.5, 1.0, 2)][:descents]


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
    axes = [np.arange(40.0), np.arange(36.0)]
    values = np.sin(axes[0] / 3)[:, None] * np.cos(axes[1] / 4)
    values += 0.001 * rng.standard_normal(values.shape)
    values[rng.random(values.shape) < 0.4] = np.nan
    given = [LevelConstraint("matern52", 6.0)] * 2
    found = choose_with_gaps(values, axes, given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "_calm", lambda _, best, __: best)
        restless = choose_with_gaps(values, axes, given)
    assert found.setting.ridge == pytest.approx(3 * restless.setting.ridge)
    assert found.error <= 1.03 * restless.error


@pytest.mark.parametrize(
    ("error", "spread", "tried", "tolerance"),
    [
        (1e-4, 1.0, 9, 3e-7),
        (0.1, 1.0, 9, 3e-4),
        (3.0, 1.0, 9, 1e-3),  # the largest
        (1e-9, 1.0, 9, 1e-9),
        (1e-4, 1.0, 1, 1e-9),  # nothing was chosen
        (1e-4, 0.1, 2, 3e-6),
        (0.0, 0.0, 9, 1e-9),
    ],
)
def test_the_final_solve_is_far_more_exact_than_the_model(error, spread, tried, tolerance):
    setting = JointSetting((Kernel(),), 0.1)
    assert GapChoice(setting, error, spread, tried, (), ()).tolerance == pytest.approx(tolerance)


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


def search_of(*windows, spread=1.0):
    return gaps._Search(windows, 0.0, spread, SpectrumCache())


def attempt_of(error, iterations=5, ridge=1e-3, windows=()):
    return descent.Attempt(setting_of(ridge=ridge), error, iterations, tuple(windows))


def geometric(missed, powers):
    """Return the geometric mean of errors at each distance, by the number of their cells."""
    logs = [np.log(np.mean(missed[powers == p] ** 2)) * np.mean(powers == p) for p in set(powers)]
    return np.exp(0.5 * sum(logs))


def test_the_error_of_a_setting_is_that_of_a_solve_without_the_hidden_cells():
    windows = weigh_windows([window(0), window(1, slice(7, 40, 4))], np.zeros(0))
    found = search_of(*windows).attempt(setting_of(), None)
    missed = []
    for part in windows:
        filled = complete(part.seen, [X], setting_of().kernels, 1e-3).values
        missed.append((filled - part.values)[part.hidden])
    powers = np.concatenate([part.powers for part in windows])
    assert found.error == pytest.approx(geometric(np.concatenate(missed), powers), rel=1e-2)
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
        (None, 1.0, 1e-3),  # as if the error were a tenth, and the largest
        (math.inf, 1.0, 1e-3),
        (1e-4, 0.0, 1e-3),
        (2e-4, 1.0, 4e-6),
        (2e-4, 10.0, 4e-7),
        (0.049, 1.0, 9.8e-4),
        (1e-12, 1.0, 1e-9),
        (0.5, 1.0, 1e-3),
    ],
)
def test_solves_are_as_exact_as_the_best_error_asks_for(error, spread, tolerance, monkeypatch):
    given = []

    def solve(*args, **options):
        given.append(options)
        return complete_field(*args, **options)

    monkeypatch.setattr(gaps, "complete_field", solve)
    best = None if error is None else attempt_of(error, windows=[window()])
    search_of(window(), spread=spread).solve(setting_of(), best, 1.0)
    assert given[0]["tolerance"] == pytest.approx(tolerance)
    assert given[0]["limit"] == 300
    np.testing.assert_array_equal(given[0]["watched"], window().hidden)
    known = best is not None and math.isfinite(error) and spread > 0
    looks = [given[0]["give_up"](np.full(40, 9.0)) for _ in range(2)]
    assert looks == [known, known]  # without a best no error is too large


def test_a_setting_that_takes_too_long_or_is_given_up_has_no_finite_error(monkeypatch):
    search = search_of(window(), window(1))
    monkeypatch.setattr(gaps, "_ITERATIONS", 2)
    slow = search.solve(setting_of(), None, 1.0)
    assert slow.error == math.inf
    assert slow.iterations == 2
    monkeypatch.undo()
    monkeypatch.setattr(gaps, "_Watch", lambda _, place, __: Verdict(gives_up=place == 1))
    monkeypatch.setattr(gaps, "complete_field", partial(looked_at, complete_field))
    given_up = search.solve(setting_of(), None, 1.0)
    assert given_up.error == math.inf
    assert [(trial.error, trial.reached) for trial in search.trials][-1] == (math.inf, 7.0)
    assert search.trials[-1].setting == setting_of()
    np.testing.assert_allclose(given_up.windows[0].residuals, 0.0, atol=0.1)
    np.testing.assert_array_equal(given_up.windows[1].answers, 0.0)


class Verdict:
    """A watch that says the same whatever the answers are."""

    def __init__(self, gives_up=False, worse=False):
        self.gives_up, self.worse = gives_up, worse

    def __call__(self, _):
        return self.gives_up

    def is_worse(self, _):
        return self.worse

    def error(self, _):
        return 7.0


def looked_at(solve, *args, give_up, **options):
    """Solve, but ask at once whether to give up; answers are then 0, as at the start."""
    if give_up(args[1]):
        return Completed(np.zeros(args[1].shape), 0, math.inf, converged=False)
    return solve(*args, give_up=give_up, **options)


@pytest.mark.parametrize(
    ("count", "bars"), [(1, [1e-6]), (2, [1.1e-6, 1e-6]), (3, [1.1e-6, 1.1e-6, 1e-6])]
)
def test_all_windows_but_the_last_have_a_margin_over_the_bar(count, bars, monkeypatch):
    made = []

    def watch(windows, place, bar):
        made.append((place, bar))
        return Verdict()

    monkeypatch.setattr(gaps, "_Watch", watch)
    parts = [window(seed) for seed in range(count)]
    search_of(*parts).solve(setting_of(), attempt_of(2e-6, windows=parts), 0.5)
    assert made == [(place, pytest.approx(bar)) for place, bar in enumerate(bars)]


@pytest.mark.parametrize("worse", [None, 0, 1, 2])
def test_a_setting_that_ends_above_the_bar_in_one_window_is_not_tried_in_others(worse, monkeypatch):
    monkeypatch.setattr(gaps, "_Watch", lambda _, place, __: Verdict(worse=place == worse))
    parts = [window(seed) for seed in range(3)]
    found = search_of(*parts).solve(setting_of(), None, 1.0)
    assert math.isfinite(found.error) == (worse is None)
    done = [np.isfinite(part.answers).all() for part in found.windows]  # gaps are filled
    assert done == [worse is None or place <= worse for place in range(3)]


def test_answers_are_worse_if_their_error_is_above_the_bar():
    """However far the solve has come: its pace does not count."""
    values, hidden = np.zeros(4), np.array([True, True, False, False])
    part = HiddenWindow((np.arange(4.0),), values, hidden, values)
    watch = gaps._Watch([part], 0, 1.0)
    assert [watch.is_worse(np.full(4, error)) for error in (5.0, 1.001, 0.999)] == [
        True,
        True,
        False,
    ]


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
        ([1.0, 0.9], 0.41, False),  # by 0.1 a look: 0.4 after five more
        ([1.0, 0.9], 0.39, True),
        ([1.0, 1.1], 1.09, True),  # an error that grows is not taken to fall
        ([1.0, 0.5, 0.5], 0.4, True),
    ],
)
def test_a_solve_is_given_up_if_at_its_pace_it_will_not_come_below_the_bar(errors, bar, ends):
    values, hidden = np.zeros(6), np.array([True, True, False, False, False, True])
    part = HiddenWindow((np.arange(6.0),), values, hidden, values)
    watch = gaps._Watch([part], 0, bar)
    looks = [watch(np.full(6, error)) for error in errors]
    assert looks == [False] * (len(errors) - 1) + [ends]


def test_windows_to_come_are_taken_to_be_as_good_as_the_best():
    values, hidden = np.zeros(4), np.array([True, True, False, False])
    here = HiddenWindow((np.arange(4.0),), values, hidden, values)
    other = HiddenWindow((np.arange(4.0),), values, hidden, np.full(4, 2.0))
    expected = np.sqrt((2 * 1.0 + 2 * 4.0) / 4)
    for bar, ends in ((1.001 * expected, False), (0.999 * expected, True)):
        watch = gaps._Watch([here, other], 0, bar)
        assert [watch(np.ones(4)) for _ in range(2)] == [False, ends]
        assert watch.is_worse(np.ones(4)) == ends


def test_nothing_hidden_is_no_error():
    part = window(hide=slice(0, 0))
    assert gaps._rms_error([part]) == 0.0


# --- rules of the search, with errors made up ---------------------------------------------------


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


# --- larger views: a setting must converge there as well ------------------------------------------


def test_a_setting_that_does_not_converge_in_larger_views_gets_a_larger_ridge():
    wide = Landscape(lambda e: 2.0 if e > -4.5 else math.inf)
    found = gaps._confirm(wide, at(-6, Landscape(lambda _: 1.0)), RIDGE_MOVE)
    assert math.log10(found.setting.ridge) == pytest.approx(-4)
    assert found.error == 2.0  # as it is in the larger views
    assert wide.ridges == [-6, -5, -4]


def test_a_setting_that_never_converges_in_larger_views_is_taken_as_it_is():
    wide = Landscape(lambda _: math.inf)
    best = at(-1, Landscape(lambda _: 1.0))
    assert gaps._confirm(wide, best, RIDGE_MOVE) is best
    assert wide.ridges == [-1, 0, 1]


@pytest.mark.parametrize(("ridge", "cells"), [(None, 22_500), (0.1, 19_494)])
def test_a_choice_is_confirmed_on_larger_views_unless_its_ridge_is_given(ridge, cells):
    rng = np.random.default_rng(0)
    axes = [np.arange(30.0), np.arange(30.0), np.arange(25.0)]
    values = np.sin(axes[0] / 5)[:, None, None] + 0.1 * rng.standard_normal((30, 30, 25))
    values[rng.random(values.shape) < 0.1] = np.nan
    found = choose_with_gaps(values, axes, [LevelConstraint("matern32", 4.0)] * 3, ridge=ridge)
    assert sum(window.values.size for window in found.windows) == cells


def test_larger_views_are_solved_as_the_whole_grid_is(monkeypatch):
    """Trials of the search have smaller coarse spaces, with which more steps are left."""
    makers = []

    def solve(*args, coarse, **options):
        makers.append((args[1].size, coarse))
        return complete_field(*args, coarse=coarse, **options)

    monkeypatch.setattr(gaps, "complete_field", solve)
    rng = np.random.default_rng(0)
    axes = [np.arange(30.0), np.arange(30.0), np.arange(25.0)]
    values = np.sin(axes[0] / 5)[:, None, None] + 0.1 * rng.standard_normal((30, 30, 25))
    values[rng.random(values.shape) < 0.1] = np.nan
    choose_with_gaps(values, axes, [LevelConstraint("matern32", 4.0)] * 3)
    assert {coarse is None for size, coarse in makers if size == values.size} == {True}
    assert {coarse is None for size, coarse in makers if size < values.size} == {False}


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


@pytest.mark.slow
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


# --- groups: axes with one distance -------------------------------------------------------------

PAIR = Grouping(((0, 1),))


def rough(seed=0, size=40, hole=20, sigma=8.0, noise=0.05):
    """Return an isotropic rough field, the same with a large hole, and its axes."""
    axes = [np.arange(float(size))] * 2
    rng = np.random.default_rng(seed)
    truth = make_field(axes, [Kernel("matern12", sigma)] * 2, PAIR).draw(rng)
    holed = truth + noise * rng.standard_normal(truth.shape)
    holed[8 : 8 + hole, 10 : 10 + hole] = np.nan
    return truth, holed, axes


def smooth():
    """Return a separable smooth field with scattered gaps, and its axes."""
    rng = np.random.default_rng(0)
    axes = [np.arange(40.0), np.arange(36.0)]
    values = np.sin(axes[0] / 5)[:, None] * np.cos(axes[1] / 4)
    values += 0.01 * rng.standard_normal(values.shape)
    values[rng.random(values.shape) < 0.15] = np.nan
    return values, axes


def choose(values, axes, **options):
    free = [LevelConstraint()] * values.ndim
    return choose_with_gaps(values, axes, free, groups=((0, 1),), **options)


@pytest.fixture(scope="module")
def chosen_group():
    _, holed, axes = rough()
    return choose(holed, axes)


@pytest.mark.slow
def test_a_group_is_chosen_for_a_rough_field_with_a_hole(chosen_group):
    _, holed, axes = rough()
    assert chosen_group.setting.grouping.axes == ((0, 1),)
    product = choose_with_gaps(holed, axes, [LevelConstraint()] * 2)
    assert product.setting.grouping.axes == ()
    one, other = chosen_group.setting.kernels
    assert one.family == other.family
    assert one.constant == other.constant


def test_no_group_is_tried_where_gaps_are_scattered(monkeypatch):
    values, axes = smooth()
    monkeypatch.setattr(gaps, "list_group_starts", None)
    assert choose(values, axes).setting.grouping.axes == ()


def test_a_group_is_not_chosen_for_a_separable_field_with_a_hole():
    values, axes = smooth()
    values[10:16, 10:16] = np.nan
    found = choose(values, axes)
    assert gaps.has_holes(found.windows, 2.0)
    assert found.setting.grouping.axes == ()


def test_a_group_that_is_forced_is_taken_whatever_the_cells_say():
    values, axes = smooth()
    assert choose(values, axes, force=True).setting.grouping.axes == ((0, 1),)


@pytest.mark.parametrize(("error", "group"), [(0.979, True), (0.981, False)])
def test_a_group_is_taken_if_it_is_clearly_better(error, group):
    grouped, product = attempt_of(error), attempt_of(1.0)
    assert (gaps._product_or(grouped, product) is grouped) == group


@pytest.mark.parametrize(("share", "holes"), [(0.04, False), (0.06, True)])
def test_holes_are_cells_that_are_not_next_to_data(share, holes):
    assert part_with(share).distances.tolist() == [1, 2, 1, 1]
    assert gaps.has_holes([part_with(share)], 2.0) == holes
    assert not gaps.has_holes([part_with(share)], 2.1)


def part_with(share):
    """Return a window with a share of weight on the one hidden cell that is two from data."""
    values, hidden = np.zeros(9), np.zeros(9, bool)
    hidden[[1, 2, 3, 6]] = True
    weights = np.array([(1 - share) / 3, share, (1 - share) / 3, (1 - share) / 3])
    return HiddenWindow((np.arange(9.0),), values, hidden, values, None, weights)


@pytest.mark.parametrize(("side", "groups", "draws"), [(2, 0, 0), (3, 0, 1), (7, 1, 1)])
def test_groups_are_tried_in_wide_holes_and_error_bars_draw_in_narrow_ones(
    side, groups, draws, monkeypatch
):
    """In the middle of a hole cells are one, two or four from data."""
    values, hidden = np.zeros((20, 20)), np.zeros((20, 20), bool)
    hidden[3 : 3 + side, 3 : 3 + side] = True
    axes = [np.arange(20.0)] * 2
    distances = HiddenWindow(tuple(axes), values, hidden, values).distances
    weights = (distances == distances.max()) / np.count_nonzero(distances == distances.max())
    part = HiddenWindow(tuple(axes), values, hidden, values, None, weights)
    monkeypatch.setattr(gaps, "hide_cells", lambda *_, **__: [part])
    starts, listed = [], gaps.list_group_starts
    monkeypatch.setattr(
        gaps, "list_group_starts", lambda *args: starts.append(args) or listed(*args)
    )
    given = [LevelConstraint("matern32", 3.0)] * 2
    found = choose_with_gaps(values, axes, given, ridge=0.1, groups=((0, 1),))
    assert len(starts) == groups
    assert (gap_bars(values, axes, found).factors is not None) == bool(draws)


class Judge:
    """Trials in which errors of groups and of products are given; it notes what it is asked."""

    def __init__(self, group, product):
        self.group, self.product, self.asked = group, product, []
        self.tried, self.better = 0, 0.98

    def attempt(self, setting, best):
        self.tried += 1
        grouped = bool(setting.grouping.axes)
        self.asked.append("group" if grouped else "product")
        return descent.Attempt(setting, self.group if grouped else self.product, 5, ())


def ways_of(dimensions, group):
    kernels = (Kernel("matern12", 3.0),) * dimensions
    grouping = Grouping(((0, 1),) if group else ())
    moves = [[Move((), ((0.1, 10.0),) * dimensions, ridge_factor=f)] for f in (9.0, 2.0)]
    return gaps._Ways([[JointSetting(kernels, 0.1, grouping)]], moves)


def try_groups(search, near, dimensions=2, force=False):
    group, product = ways_of(dimensions, True), ways_of(dimensions, False)
    found = gaps._try_groups(search, near, [group], product, force)
    return bool(found.setting.grouping.axes)


@pytest.mark.parametrize(("error", "asked"), [(0.979, ["group"]), (0.981, ["group", "product"])])
def test_on_a_map_the_nearest_cells_decide_whether_a_product_is_solved_for(error, asked):
    search, near = Judge(0.5, 1.0), Judge(error, 1.0)
    assert try_groups(search, near)
    assert list(dict.fromkeys(search.asked)) == asked
    assert search.asked.count("group") == 1  # it is improved by the nearest cells alone


def test_beside_other_axes_solves_improve_a_group_and_decide():
    search, near = Judge(1.0, 0.5), Judge(0.1, 1.0)
    assert not try_groups(search, near, dimensions=3)
    assert search.asked.count("group") == 3  # it, and a small step forward and back
    assert search.asked.count("product") > 1
    assert "product" not in near.asked


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_forced_group_has_no_rival(dimensions):
    search, near = Judge(1.0, 0.1), Judge(1.0, 0.1)
    assert try_groups(search, near, dimensions, force=True)
    assert "product" not in search.asked + near.asked


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_group_that_cannot_be_solved_for_is_not_taken(dimensions):
    search, near = Judge(math.inf, 1.0), Judge(0.1, 1.0)
    assert not try_groups(search, near, dimensions)
    assert search.asked.count("group") == 1


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_forced_group_that_cannot_be_solved_for_is_searched_by_solves(dimensions):
    """The nearest cells ask for a small ridge, with which solves do not converge."""

    class Ridges(Judge):
        def attempt(self, setting, best):
            found = super().attempt(setting, best)
            return replace(found, error=self.group if setting.ridge > 0.05 else self.product)

    ways, product = ways_of(dimensions, True), ways_of(dimensions, False)
    search, near = Ridges(1.0, math.inf), Ridges(1.0, 0.1)
    found = gaps._try_groups(search, near, [ways], product, True)
    assert near.attempt(ways.starts[0][0], None).error == 1.0  # where both begin
    assert found.error == 1.0
    assert found.setting.ridge > 0.05


def test_the_better_kind_of_group_by_the_nearest_cells_is_solved_for():
    search = Judge(0.5, 1.0)
    plane, sphere = ways_of(2, True), ways_of(2, True)
    (setting,) = sphere.starts[0]
    sphere.starts[0][0] = replace(setting, grouping=replace(setting.grouping, sphere=True))

    class Rounder(Judge):
        def attempt(self, setting, best):
            found = super().attempt(setting, best)
            return replace(found, error=0.5 * found.error) if setting.grouping.sphere else found

    found = gaps._try_groups(search, Rounder(0.5, 1.0), [plane, sphere], ways_of(2, False), False)
    assert found.setting.grouping.sphere


def test_settings_tried_by_the_nearest_cells_are_counted_once():
    values, axes = smooth()
    values[10:16, 10:16] = np.nan
    given = [LevelConstraint("matern12", 5.0)] * 2
    found = choose_with_gaps(values, axes, given, ridge=0.1, groups=((0, 1),), force=True)
    assert found.tried == 1


def test_all_starts_of_a_group_are_improved_if_they_are_not_far_behind(monkeypatch):
    """The best for each ridge."""
    improved = []

    def best_start(search, starts):
        return descent.Attempt(starts[0], 1.0 + starts[0].ridge, 1, ())

    def descend(search, start, rounds, rival, tell):
        improved.append((start.setting.ridge, bool(start.setting.grouping.axes)))
        return start

    monkeypatch.setattr(descent, "best_start", best_start)
    monkeypatch.setattr(descent, "descend", descend)
    values, axes = smooth()
    choose(values, axes, force=True)
    assert improved == [(0.01, True), (0.1, True)]


def test_one_observed_cell_is_not_hidden():
    values = np.full((4, 5), np.nan)
    values[1, 2] = 2.0
    axes = [np.arange(4.0), np.arange(5.0)]
    found = choose_with_gaps(values, axes, [LevelConstraint()] * 2, mean=2.0)
    assert found.error == 0.0


# --- the sphere ---------------------------------------------------------------------------------


def global_field(stretch, seed=0):
    """Return a rough field on the globe with a hole across a pole and one at the equator.

    It is isotropic, or far longer along parallels than across them.
    """
    lat, lon = np.arange(-85.0, 90, 10), np.arange(0.0, 360, 10)
    kernels = [Kernel("matern12", 25.0), Kernel("matern12", 25.0 * stretch, 360.0)]
    grouping = Grouping(((0, 1),), sphere=stretch == 1)
    values = make_field([lat, lon], kernels, grouping).draw(np.random.default_rng(seed))
    values[-6:, 1:] = np.nan
    values[5:11, 8:20] = np.nan
    return values, [lat, lon]


@pytest.mark.parametrize("stretch", [1.0, 12.0])
def test_hidden_cells_decide_between_the_sphere_and_a_plane(stretch):
    values, axes = global_field(stretch)
    limits = [LevelConstraint("matern12"), LevelConstraint("matern12", period=360.0)]
    found = choose_with_gaps(values, axes, limits, ridge=0.01, groups=((0, 1),), sphere=True)
    assert found.setting.grouping.axes == ((0, 1),)
    assert found.setting.grouping.sphere == (stretch == 1.0)
    one, other = found.setting.kernels
    assert (one.sigma == other.sigma) == (stretch == 1.0)


def test_a_group_that_is_forced_is_on_the_sphere():
    values, axes = global_field(12.0)
    limits = [LevelConstraint("matern12", 30.0), LevelConstraint("matern12", 30.0, 360.0)]
    how = {"ridge": 0.01, "groups": ((0, 1),), "force": True}
    for sphere in (True, False):
        found = choose_with_gaps(values, axes, limits, sphere=sphere, **how)
        assert found.setting.grouping == Grouping(((0, 1),), sphere=sphere)
        assert found.tried == 1


def test_a_choice_moves_to_a_grid_with_more_coordinates():
    values, axes = global_field(1.0)
    limits = [LevelConstraint("matern12", 30.0), LevelConstraint("matern12", 30.0, 360.0)]
    how = {"ridge": 0.01, "groups": ((0, 1),), "force": True, "sphere": True}
    found = choose_with_gaps(values, axes, limits, **how)
    more = [np.append(axes[0], 89.0), axes[1]]
    targets = np.ones((19, 36), bool)
    moved = found.move_to(more, targets)
    assert moved.targets is targets
    assert moved.spectra[1] is found.spectra[1]
    spectrum = moved.spectra[0]
    whole = gram(found.setting.kernels[0], more[0], more[0])
    back = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
    np.testing.assert_allclose(back, whole, atol=1e-9)
    assert (moved.setting, moved.error) == (found.setting, found.error)


def test_an_improved_plane_does_not_rule_out_the_rough_starts_of_a_sphere(monkeypatch):
    values, axes = global_field(1.0)
    rivals, improve = [], descent.improve

    def noting(search, kinds, rounds, rival=None):
        rivals.append((kinds[0][0].grouping, rival is None))
        return improve(search, kinds, rounds, rival)

    monkeypatch.setattr(gaps, "improve", noting)
    limits = [LevelConstraint("matern12", 30.0), LevelConstraint("matern12", 30.0, 360.0)]
    choose_with_gaps(values, axes, limits, ridge=0.01, groups=((0, 1),), sphere=True)
    planes = [Grouping(((0, 1),)), Grouping(((0, 1),), sphere=True), Grouping()]
    assert rivals == [(planes[0], True), (planes[1], True), (planes[2], False)]


@pytest.mark.parametrize(("noisy", "better", "again"), [(False, 0.98, 4), (True, 0.995, 1)])
def test_observations_with_errors_are_searched_in_smaller_steps(noisy, better, again, monkeypatch):
    seen, improve = [], descent.improve

    def noting(search, *args, **how):
        seen.append((search.better, len(search.windows)))
        return improve(search, *args, **how)

    monkeypatch.setattr(gaps, "improve", noting)
    _, holed, axes = field()
    errors = np.full(holed.shape, 0.1) if noisy else None
    choose_with_gaps(holed, axes, [LevelConstraint("matern32", 3.0)] * 3, errors=errors)
    assert seen == [(better, again)]
