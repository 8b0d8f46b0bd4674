"""A setting is judged by a solve without the hidden cells."""

import math
from functools import partial

import numpy as np
import pytest
from landscape import setting_of

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.solve import Completed, complete, complete_field
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow, weigh_windows
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials import descent, solved

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
    return solved.SolvedTrials(windows, 0.0, spread, SpectrumCache())


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
    ("family", "sigma", "is_tried"),
    [("gaussian", 9.0, True), ("gaussian", 9.1, False), ("matern52", 9.1, True)],
)
def test_a_gaussian_wider_than_windows_can_tell_is_not_tried(family, sigma, is_tried):
    search = solved.SolvedTrials([window()], 0.0, 1.0, SpectrumCache(), widest={0: 9.0})
    found = search.attempt(JointSetting((Kernel(family, sigma),), 0.1), None)
    assert math.isfinite(found.error) == is_tried
    assert search.tried == is_tried


@pytest.mark.parametrize(
    ("error", "spread", "tolerance"),
    [
        (None, 1.0, 1e-3),  # as if the error were a twentieth
        (math.inf, 1.0, 1e-3),
        (1e-4, 0.0, 1e-3),
        (2e-4, 1.0, 4e-6),
        (2e-4, 10.0, 4e-7),
        (0.049, 1.0, 9.8e-4),
        (1e-12, 1.0, 1e-9),
        (0.45, 1.0, 9e-3),
        (0.9, 1.0, 1e-2),
    ],
)
def test_solves_are_as_exact_as_the_best_error_asks_for(error, spread, tolerance, monkeypatch):
    given = []

    def solve(*args, **options):
        given.append(options)
        return complete_field(*args, **options)

    monkeypatch.setattr(solved, "complete_field", solve)
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
    monkeypatch.setattr(solved, "_ITERATIONS", 2)
    slow = search.solve(setting_of(), None, 1.0)
    assert slow.error == math.inf
    assert slow.iterations == 2
    monkeypatch.undo()
    monkeypatch.setattr(solved, "_Watch", lambda _, place, __: Verdict(gives_up=place == 1))
    monkeypatch.setattr(solved, "complete_field", partial(looked_at, complete_field))
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

    monkeypatch.setattr(solved, "_Watch", watch)
    parts = [window(seed) for seed in range(count)]
    search_of(*parts).solve(setting_of(), attempt_of(2e-6, windows=parts), 0.5)
    assert made == [(place, pytest.approx(bar)) for place, bar in enumerate(bars)]


@pytest.mark.parametrize("worse", [None, 0, 1, 2])
def test_a_setting_that_ends_above_the_bar_in_one_window_is_not_tried_in_others(worse, monkeypatch):
    monkeypatch.setattr(solved, "_Watch", lambda _, place, __: Verdict(worse=place == worse))
    parts = [window(seed) for seed in range(3)]
    found = search_of(*parts).solve(setting_of(), None, 1.0)
    assert math.isfinite(found.error) == (worse is None)
    done = [np.isfinite(part.answers).all() for part in found.windows]  # gaps are filled
    assert done == [worse is None or place <= worse for place in range(3)]


def test_answers_are_worse_if_their_error_is_above_the_bar():
    """However far the solve has come: its pace does not count."""
    values, hidden = np.zeros(4), np.array([True, True, False, False])
    part = HiddenWindow((np.arange(4.0),), values, hidden, values)
    watch = solved._Watch([part], 0, 1.0)
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
    watch = solved._Watch([part], 0, bar)
    looks = [watch(np.full(6, error)) for error in errors]
    assert looks == [False] * (len(errors) - 1) + [ends]


def test_windows_to_come_are_taken_to_be_as_good_as_the_best():
    values, hidden = np.zeros(4), np.array([True, True, False, False])
    here = HiddenWindow((np.arange(4.0),), values, hidden, values)
    other = HiddenWindow((np.arange(4.0),), values, hidden, np.full(4, 2.0))
    expected = np.sqrt((2 * 1.0 + 2 * 4.0) / 4)
    for bar, ends in ((1.001 * expected, False), (0.999 * expected, True)):
        watch = solved._Watch([here, other], 0, bar)
        assert [watch(np.ones(4)) for _ in range(2)] == [False, ends]
        assert watch.is_worse(np.ones(4)) == ends


def test_nothing_hidden_is_no_error():
    part = window(hide=slice(0, 0))
    assert solved.rms_error([part]) == 0.0
