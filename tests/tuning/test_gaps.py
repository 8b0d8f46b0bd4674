"""Settings of grids with missing cells: the whole search, and each of its rules by itself."""

import math
from dataclasses import replace

import numpy as np
import pytest
from gap_grids import field, spectra_of
from landscape import setting_of

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.solve import complete, complete_field
from dkrls_cli.tuning import gaps
from dkrls_cli.tuning.calibration.holes import gap_bars
from dkrls_cli.tuning.gaps import GapChoice, choose_with_gaps
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow, distance_powers
from dkrls_cli.tuning.moves import LevelConstraint, Move
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials import descent, solved

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


@pytest.mark.slow
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

    monkeypatch.setattr(gaps, "calm", calm)
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
        patch.setattr(gaps, "calm", lambda _, best, __: best)
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


# --- larger views ---------------------------------------------------------------------------------


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

    monkeypatch.setattr(solved, "complete_field", solve)
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
    chosen = choose_with_gaps(
        *long_grid(), [LevelConstraint("matern32"), LevelConstraint("matern32", 2.0)], ridge=0.01
    )
    assert max(sizes) == 512
    assert chosen.spectra[0] is None
    assert chosen.spectra[1].rank == 3
    assert chosen.error < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "gaussian"])
def test_kernels_without_a_form_are_tried_on_a_long_level_only_if_given(given, monkeypatch):
    cost, solve, tried = choice.estimate, solved.SolvedTrials.solve, set()
    monkeypatch.setattr(
        choice, "estimate", lambda k, c: None if k.family == "gaussian" else cost(k, c)
    )

    def noting(self, setting, *more):
        tried.add(setting.kernels[0].family)
        return solve(self, setting, *more)

    monkeypatch.setattr(solved.SolvedTrials, "solve", noting)
    limits = [LevelConstraint(given), LevelConstraint("matern32", 2.0)]
    chosen = choose_with_gaps(*long_grid(), limits, ridge=0.01)
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
    grouped, product = (descent.Attempt(setting_of(), size, 5, ()) for size in (error, 1.0))
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
    assert improved == [(0.1 / 9, True), (0.1, True)]


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


def test_a_gaussian_is_at_most_half_as_wide_again_as_the_largest_window():
    """Along axes that windows are a part of, unless its sigma is given."""
    axes = [np.arange(8.0), np.arange(0.0, 60.0, 2.0), np.arange(40.0), np.arange(40.0)]
    shape = (8, 10, 12, 12)
    cut = [
        tuple(c[:m] for c, m in zip(axes, sides, strict=True)) for sides in (shape, (8, 4, 9, 9))
    ]
    windows = [HiddenWindow(own, np.zeros(1), np.zeros(1, bool), np.zeros(1)) for own in cut]
    given = LevelConstraint(kernel=Kernel("gaussian", 90.0))
    constraints = [LevelConstraint(), LevelConstraint(), LevelConstraint(sigma=90.0), given]
    assert gaps._widest_gaussians(windows, axes, constraints) == {1: 27.0}


def test_the_search_on_a_large_grid_knows_the_widest_gaussians(monkeypatch):
    class MadeError(Exception):
        pass

    def search(*_, widest, **__):
        raise MadeError(widest)

    monkeypatch.setattr(gaps, "SolvedTrials", search)
    axes = [np.arange(20.0), np.arange(30.0), np.arange(40.0)]
    values = np.ones((20, 30, 40))
    values[:, 5:9, 5:9] = np.nan
    with pytest.raises(MadeError) as made:
        choose_with_gaps(values, axes, [LevelConstraint()] * 3)
    windows = gaps.hide_cells(values, axes, np.random.default_rng(0), room=1)
    expected = gaps._widest_gaussians(windows, axes, [LevelConstraint()] * 3)
    assert made.value.args[0] == expected
    assert expected
