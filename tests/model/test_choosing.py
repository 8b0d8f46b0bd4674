"""Levels are chosen one after the other, each on what the levels before it answer."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.grid.axes import axis_of, index_axis, text_axis
from dkrls_cli.model import choosing
from dkrls_cli.model.choosing import choose_levels
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings
from dkrls_cli.tuning.candidates import LevelChoice
from dkrls_cli.tuning.joint import choose_joint
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.slices.fibres import predict_midpoints, sample_fibres
from dkrls_cli.tuning.tables.leftout import Slices
from dkrls_cli.tuning.tables.splines import with_error_kernel
from dkrls_cli.tuning.trials.record import ChoiceRecord

RNG = np.random.default_rng(3)
X, D = np.linspace(0, 4, 9), np.sort(RNG.uniform(0, 6, 12))
VALUES = np.sin(np.add.outer(D / 2, X)) + 3.0 + 0.05 * RNG.standard_normal((12, 9))
AXES = axis_of("d", D), axis_of("x", X)
MEAN = float(VALUES.mean())


def chosen_alone(axis, data, **given):
    """The level that :mod:`dkrls_cli.tuning.slices` chooses for some data along an axis."""
    return choose_level(axis.numbers, data, **given).taken


def test_the_shortest_level_is_chosen_first_and_the_next_on_what_it_answers():
    watched = []
    plan = plan_fit(AXES)
    found = choose_levels(plan, AXES, VALUES, MEAN, watch=lambda *told: watched.append(told))
    first = chosen_alone(AXES[1], sample_fibres(VALUES, 1, MEAN))
    seen = predict_midpoints(VALUES, 1, MEAN, X, first.kernel, first.ridge)
    second = chosen_alone(AXES[0], sample_fibres(seen, 0, 0.0))
    assert found.levels == (
        Level("d", second.kernel, second.ridge),
        Level("x", first.kernel, first.ridge),
    )
    assert found.joint_ridge is None
    assert [dim for dim, _ in watched] == ["x", "d"]
    assert [choice.taken for _, choice in watched] == [first, second]
    assert second != chosen_alone(AXES[0], sample_fibres(VALUES, 0, MEAN))


def test_a_level_without_anything_open_is_kept_and_still_answers_for_the_next():
    given = Level("x", Kernel("matern32", 0.7), 0.3)
    watched = []
    for settings in (
        Settings(["d", given]),
        Settings(kernel={"x": "matern32"}, sigma={"x": 0.7}, ridge={"x": 0.3}),
    ):
        plan = plan_fit(AXES, settings)
        found = choose_levels(plan, AXES, VALUES, MEAN, watch=lambda dim, _: watched.append(dim))
        seen = predict_midpoints(VALUES, 1, MEAN, X, given.kernel, given.ridge)
        other = chosen_alone(AXES[0], sample_fibres(seen, 0, 0.0))
        assert found.levels == (Level("d", other.kernel, other.ridge), given)
    assert watched == ["d", "d"]


@pytest.mark.parametrize("stations", [2, 6])
def test_stations_in_antiphase_are_predicted_as_one_alone(stations):
    """Half-way between them nothing is left, by which the settings of time would be chosen."""
    times, asked = np.arange(40.0), np.arange(5.5, 35.0)
    turns = (-1.0) ** np.arange(stations)[:, None]
    noise = 0.01 * np.random.default_rng(stations).standard_normal((stations, times.size))
    named = {"station": np.arange(float(stations)), "time": times}
    model = fit(turns * np.sin(times / 4) + noise, named)
    error = model.predict(time=asked).values - turns * np.sin(asked / 4)
    assert np.sqrt(np.mean(error**2)) < 0.01
    assert np.mean(np.abs(error) < 1.645 * model.std(time=asked).values) > 0.85


@pytest.mark.parametrize("open_setting", ["kernel", "sigma", "ridge"])
def test_what_is_given_is_kept_and_the_rest_is_chosen_around_it(open_setting):
    given = {"kernel": "matern32", "sigma": 0.7, "ridge": 0.3}
    del given[open_setting]
    found = choose_levels(plan_fit(AXES, Settings(**given)), AXES, VALUES, MEAN).levels[1]
    own = {"family" if key == "kernel" else key: value for key, value in given.items()}
    alone = chosen_alone(AXES[1], sample_fibres(VALUES, 1, MEAN), **own)
    assert found == Level("x", alone.kernel, alone.ridge)
    taken = {"kernel": found.kernel.family, "sigma": found.kernel.sigma, "ridge": found.ridge}
    assert given.items() <= taken.items()


@pytest.mark.parametrize("first", [text_axis("x", list("abcdefghi")), index_axis("x", 1)])
def test_between_labels_and_around_one_coordinate_nothing_is_answered(first):
    values = VALUES[:, : first.size]
    axes = AXES[0], first
    mean = float(values.mean())
    found = choose_levels(plan_fit(axes), axes, values, mean)
    alone = chosen_alone(AXES[0], sample_fibres(values, 0, mean))
    assert found.levels[0] == Level("d", alone.kernel, alone.ridge)


def test_period_cycles_and_folds_reach_the_search():
    months = axis_of("time", np.arange("2001-01", "2004-01", dtype="datetime64[M]"))
    wave = np.sin(2 * np.pi * months.numbers / months.time.year)
    found = choose_levels(plan_fit([months]), [months], wave, 0.0).levels[0]
    assert found.kernel.cycle == months.time.year
    circle = plan_fit([AXES[1]], Settings(period=20))
    level = choose_levels(circle, [AXES[1]], VALUES[0], MEAN, folds=3).levels[0]
    data = sample_fibres(VALUES[0], 0, MEAN)
    alone = chosen_alone(AXES[1], data, period=20.0, folds=3)
    assert level == Level("x", alone.kernel, alone.ridge)
    assert alone != chosen_alone(AXES[1], data, period=20.0)


def test_warnings_name_the_dimension():
    plan = plan_fit(AXES, Settings(ridge={"d": 10.0}, sigma={"d": 2.0}))
    found = choose_levels(plan, AXES, VALUES, MEAN)
    assert found.warnings == ("d: ridge 10 is the largest tried; a better value may lie beyond",)


def test_a_joint_ridge_is_chosen_with_the_sigmas_that_are_open():
    plan = plan_fit(AXES, Settings(noise="joint", sigma={"x": 1.0}))
    found = choose_levels(plan, AXES, VALUES, MEAN)
    first = choose_level(X, sample_fibres(VALUES, 1, MEAN), sigma=1.0)
    taken = first.taken
    seen = predict_midpoints(VALUES, 1, MEAN, X, taken.kernel, taken.ridge)
    second = choose_level(D, sample_fibres(seen, 0, 0.0))
    kernels = [second.under_joint_ridge.kernel, first.under_joint_ridge.kernel]
    centred = VALUES - MEAN
    setting = choose_joint(centred, [D, X], kernels, open_sigmas=[True, False]).setting
    expected, ridge = setting.kernels, setting.ridge
    assert tuple(level.kernel for level in found.levels) == expected
    assert found.joint_ridge == ridge
    assert [level.ridge for level in found.levels] == [0.0, 0.0]


def test_a_joint_ridge_with_nothing_open_is_kept():
    settings = Settings(noise="joint", sigma=1.0, kernel="gaussian", ridge=0.25)
    found = choose_levels(plan_fit(AXES, settings), AXES, VALUES, MEAN)
    assert found.joint_ridge == 0.25
    assert [level.kernel for level in found.levels] == [Kernel("gaussian", 1.0)] * 2


def test_sigmas_move_beside_a_joint_ridge_that_is_given():
    plan = plan_fit(AXES, Settings(noise="joint", kernel="gaussian", ridge=0.25))
    found = choose_levels(plan, AXES, VALUES, MEAN)
    start = choose_levels(
        plan_fit(AXES, Settings(noise="joint", kernel="gaussian")), AXES, VALUES, MEAN
    )
    assert found.joint_ridge == 0.25 != start.joint_ridge
    first = choose_level(X, sample_fibres(VALUES, 1, MEAN), family="gaussian")
    seen = predict_midpoints(VALUES, 1, MEAN, X, first.taken.kernel, first.taken.ridge)
    second = choose_level(D, sample_fibres(seen, 0, 0.0), family="gaussian")
    kernels = [second.under_joint_ridge.kernel, first.under_joint_ridge.kernel]
    moved = choose_joint(
        VALUES - MEAN, [D, X], kernels, open_sigmas=[True, True], ridge=0.25
    ).setting.kernels
    assert moved != tuple(kernels)
    assert tuple(level.kernel for level in found.levels) == moved


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_a_long_level_is_chosen_and_fitted_without_its_spectrum(noise):
    steps = index_axis("step", 1500)
    values = np.random.default_rng(5).standard_normal((1500, 9)).cumsum(axis=0)
    axes = steps, AXES[1]
    found = choose_levels(plan_fit(axes, Settings(noise=noise)), axes, values, 0.0)
    assert found.spectra[0] is None
    assert found.levels[0].kernel.family.startswith("matern")
    assert (found.joint_ridge is None) == (noise == "level")
    trained = fit_cascade(
        values,
        [axis.numbers for axis in axes],
        found.levels,
        joint_ridge=found.joint_ridge,
        spectra=found.spectra,
    )
    middles = np.arange(1499) + 0.5
    missed = trained.predict([middles, X]) - (values[1:] + values[:-1]) / 2
    assert np.sqrt(np.mean(missed**2)) < 0.5


# What was tried -----------------------------------------------------------------------------------


def recorded(values, coordinates, **settings):
    record = ChoiceRecord()
    return fit(values, coordinates, watch=record, **settings), record


def test_on_a_ring_the_error_of_the_choice_is_the_one_that_the_model_reports():
    """A ring has no ends, and one level has no other before it: both leave each slice out."""
    angle = np.arange(12) * 30.0
    noise = 0.1 * np.random.default_rng(2).standard_normal(12)
    model, record = recorded(np.sin(np.radians(angle)) + noise, {"a": angle}, period=360.0)
    (choice,) = record.of("a")
    assert choice.taken in choice.tried
    assert choice.taken.kernel == model.levels[0].kernel
    assert choice.taken.ridge == model.levels[0].ridge
    assert choice.taken.error == pytest.approx(model.errors[0], rel=1e-9)


def test_a_joint_ridge_tells_of_slices_and_of_cells_left_out():
    model, record = recorded(VALUES, {"d": D, "x": X}, noise="joint")
    for dim in ("d", "x"):
        slices, joint = record.of(dim)
        assert (slices.measure, joint.measure) == ("slices", "joint")
        assert joint.taken.kernel == model.level_of(dim).kernel
        assert joint.taken.ridge == model.joint_ridge
        assert joint.taken.error == min(one.error for one in joint.tried)
    _, given = recorded(VALUES, {"d": D, "x": X}, noise="joint", sigma=1.0, ridge=0.1)
    assert [one.measure for one in given.of("x")] == ["slices"]


@pytest.mark.parametrize("errors", [None, 0.05])
def test_all_levels_with_gaps_or_errors_tell_what_was_tried_together(errors):
    values = VALUES[:, :, None].copy()
    values[np.random.default_rng(0).random(values.shape) < 0.1] = np.nan
    at = {"d": D, "x": X, "one": [0.0]}
    model, record = recorded(values, at, obs_error=errors, noise="joint")
    assert record.of("one") == ()
    d, x = (record.of(dim)[0] for dim in ("d", "x"))
    assert len(d.tried) == len(x.tried) > 5
    assert [one.error for one in d.tried] == [one.error for one in x.tried]
    assert d.taken.kernel == model.level_of("d").kernel
    assert x.taken.kernel == model.level_of("x").kernel
    assert x.taken.ridge == model.joint_ridge
    assert x.measure == "cells"
    _, given = recorded(values, at, obs_error=errors, kernel="gaussian", sigma=2.0, ridge=0.1)
    assert given.of("d") == ()


# One spline on all levels -------------------------------------------------------------------------


@pytest.fixture
def cubic(monkeypatch):
    """Let a cubic spline be as good as all levels together; return what was compared."""
    asked = []

    def take(values, mean, levels):
        asked.append((values, mean, levels))
        return "cubic"

    monkeypatch.setattr(choosing, "choose_together", take)
    return asked


def families(axes, values, settings=None, **more):
    """The names of the chosen kernels."""
    plan = plan_fit(axes, settings or Settings())
    found = choose_levels(plan, axes, values, float(values.mean()), **more)
    return [level.kernel.name for level in found.levels]


def test_one_spline_stands_for_all_levels_where_it_is_as_good():
    watched = []
    axes = axis_of("d", np.arange(16.0)), axis_of("x", np.arange(12.0))
    rough = np.random.default_rng(0).standard_normal((16, 12)).cumsum(axis=0).cumsum(axis=1)
    found = choose_levels(
        plan_fit(axes), axes, rough, 0.0, watch=lambda *told: watched.append(told)
    )
    assert [level.kernel.name for level in found.levels] == ["linear", "linear"]
    assert found.spectra == (None, None)
    assert found.smoothers == found.levels
    first, last = watched[:2], watched[2:]
    assert {choice.taken.kernel.name for _, choice in first} != {"linear"}
    assert {dim: choice.taken.kernel for dim, choice in last} == {
        level.name: level.kernel for level in found.levels
    }
    assert all(choice.taken in choice.tried for _, choice in last)


def test_the_spline_has_the_covariance_of_errors_that_suits_the_data(cubic):
    found = choose_levels(plan_fit(AXES), AXES, VALUES, MEAN)
    ((values, mean, levels),) = cubic
    assert values is VALUES
    assert (mean, set(levels)) == (MEAN, {0, 1})
    for place, level in enumerate(found.levels):
        fibres = sample_fibres(VALUES, place, MEAN)
        alone = chosen_alone(AXES[place], fibres, family="cubic")
        assert level == Level(AXES[place].name, with_error_kernel(slices_of(place), alone).kernel)


def slices_of(place):
    return Slices.of(AXES[place].numbers, sample_fibres(VALUES, place, MEAN), None)


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        (Settings(kernel={"x": "matern32"}), {}),
        (Settings(sigma={"x": 1.0}), {}),
        (Settings(ridge={"x": 0.1}), {}),
        (Settings(period={"x": 20.0}), {}),
        (Settings(noise="joint"), {}),
        (Settings(["d", Level("x", Kernel("matern32", 0.7), 0.3)]), {}),
        (Settings(), {"folds": 4}),
    ],
)
def test_what_is_given_of_one_level_keeps_all_from_one_spline(settings, more, cubic):
    assert "cubic" not in families(AXES, VALUES, settings, **more)
    assert not cubic


def test_blocks_that_are_left_out_of_one_level_keep_all_from_one_spline(cubic):
    plan = plan_fit(AXES)
    d, x = plan.levels
    choose_levels(replace(plan, levels=(d, replace(x, folds=4))), AXES, VALUES, MEAN)
    assert not cubic


def test_levels_with_nothing_between_their_coordinates_keep_their_own(cubic):
    pair, single = axis_of("pair", [0.0, 1.0]), index_axis("one", 1)
    text = text_axis("text", list("abcde"))
    axes = AXES[0], pair, text, single
    values = VALUES[:, :5, None] * np.array([1.0, 0.8])
    found = families(axes, values.transpose(0, 2, 1)[..., None])
    assert [name == "cubic" for name in found] == [True, False, False, False]
    ((_, _, levels),) = cubic
    assert set(levels) == {0}
    assert "cubic" not in families([pair], np.array([1.0, 2.0]))
    assert len(cubic) == 1


def test_warnings_are_of_the_levels_that_keep_their_own(cubic, monkeypatch):
    monkeypatch.setattr(LevelChoice, "warnings", property(lambda own: [own.taken.kernel.name]))
    axes = AXES[0], axis_of("pair", [0.0, 1.0])
    found = choose_levels(plan_fit(axes), axes, VALUES[:, :2], MEAN)
    assert found.warnings == ("pair: matern32; a better value may lie beyond",)


def test_long_levels_have_no_spline(cubic):
    steps = index_axis("step", 1025)
    values = np.random.default_rng(5).standard_normal((1025, 3)).cumsum(axis=0)
    assert "cubic" not in families((steps, axis_of("x", X[:3])), values)
    assert not cubic
