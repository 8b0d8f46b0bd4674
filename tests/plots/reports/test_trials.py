"""A panel shows every setting that was tried for a level, and marks the one that was taken."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.cascade.kernels import Kernel, kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.plots.reports.trials import (
    LevelTrials,
    draw_trials,
    level_trials,
    setting_text,
    sigma_units,
    trial_row,
)
from dkrls_cli.tuning.candidates import Candidate, LevelChoice
from dkrls_cli.tuning.trials.record import ChoiceRecord

figures = pytest.importorskip("matplotlib.figure", reason="drawing needs the extra plot")

SMOOTH, ROUGH = "gaussian", "matern12"
DEPTH = axis_of("depth", np.array([1.0, 3.0, 9.0]), {"units": "m"})


def candidate(sigma: float, error: float, family: str = SMOOTH, **more: Any) -> Candidate:
    ridge = more.pop("ridge", 0.1)
    reached = more.pop("reached", None)
    return Candidate(Kernel(family, sigma, **more), ridge, error, reached=reached)


def tried(*candidates: Candidate, measure: Any = "slices", best: int = 0) -> LevelChoice:
    return LevelChoice(candidates[best], candidates, measure=measure)


def level(*choices: LevelChoice, axis: Axis = DEPTH, **given: Any) -> LevelTrials:
    taken = choices[-1].taken if choices else candidate(2.0, 0.5)
    own = Level(axis.name, taken.kernel, taken.ridge)
    return LevelTrials(axis, own, choices, given.pop("reported", 0.3), "K", taken.ridge)


def drawn(trials: LevelTrials) -> Any:
    axes = figures.Figure().add_subplot()
    draw_trials(axes, trials)
    return axes


def points(axes: Any, label: str) -> list[tuple[float, float]]:
    lines = [one for one in axes.lines if one.get_label() == label]
    assert len(lines) == 1, label
    return list(zip(*map(np.ravel, lines[0].get_data()), strict=True))


def labels(axes: Any) -> list[str]:
    return list(axes.get_legend_handles_labels()[1])


# What is drawn ------------------------------------------------------------------------------------


def test_a_line_has_the_least_error_of_a_kernel_at_every_sigma() -> None:
    choice = tried(
        candidate(2.0, 0.5),
        candidate(2.0, 0.4, ridge=0.3),
        candidate(1.0, 0.9),
        candidate(2.0, 0.6, ROUGH),
        candidate(2.0, 0.7, cycle=12.0),
        candidate(2.0, 0.65, cycle=12.0, swing=10.0),
        best=1,
    )
    axes = drawn(level(choice))
    assert points(axes, SMOOTH) == [(1.0, 0.9), (2.0, 0.4)]
    assert points(axes, ROUGH) == [(2.0, 0.6)]
    assert points(axes, f"{SMOOTH} + cycle 12") == [(2.0, 0.65)]
    assert points(axes, "taken") == [(2.0, 0.4)]
    assert points(axes, "error of the model") == [(0.0, 0.3), (1.0, 0.3)]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "sigma [m]"
    assert axes.get_ylabel() == "error on slices left out [K]"
    assert axes.get_title("left") == f"depth: {SMOOTH}\nsigma 2 m, ridge 0.3"


def test_errors_are_cut_off_far_above_the_least() -> None:
    axes = drawn(level(tried(candidate(1.0, 0.5), candidate(2.0, 1e6))))
    low, high = axes.get_ylim()
    assert 0.1 < low < 0.3
    assert 0.5 < high < 30


def test_a_spline_is_a_level_and_its_mark_has_no_sigma() -> None:
    cubic = Candidate(kernel_named("cubic"), 0.0, 0.2)
    axes = drawn(level(tried(candidate(1.0, 0.5), cubic, best=1)))
    assert {y for _, y in points(axes, "cubic spline")} == {0.2}
    assert points(axes, "taken") == [(0.5, 0.2)]
    assert axes.get_title("left") == "depth: cubic spline\nridge 0"


def test_kernels_of_other_coordinates_are_a_level_at_their_least_error() -> None:
    warped = [candidate(1.0, 0.3, warp="log"), candidate(2.0, 0.2, warp="log")]
    plain = [candidate(4.0, 0.5), candidate(5.0, 0.6)]
    axes = drawn(level(tried(*plain, *warped)))
    assert {y for _, y in points(axes, "kernels of log coordinates")} == {0.2}
    assert points(axes, SMOOTH) == [(4.0, 0.5), (5.0, 0.6)]
    other = drawn(level(tried(*plain, *warped, best=3)))
    assert points(other, SMOOTH) == [(1.0, 0.3), (2.0, 0.2)]
    assert {y for _, y in points(other, "kernels of plain coordinates")} == {0.5}
    assert other.get_xlabel() == "sigma [log(m)]"


def test_with_one_sigma_errors_are_drawn_against_the_ridge() -> None:
    some = [candidate(2.0, error, ridge=ridge) for error, ridge in ((0.5, 1e-3), (0.4, 0.0))]
    axes = drawn(level(tried(*some, best=1)))
    assert axes.get_xlabel() == "ridge"
    assert points(axes, SMOOTH) == [(1e-15, 0.4), (1e-3, 0.5)]
    assert points(axes, "taken") == [(1e-15, 0.4)]


def test_settings_of_all_levels_are_points_and_those_given_up_are_crosses() -> None:
    cells = tried(
        candidate(1.0, 0.5),
        candidate(3.0, 0.6, ROUGH),
        candidate(9.0, math.inf, reached=2.0),
        measure="cells",
    )
    nearby = tried(candidate(1.0, 0.7), candidate(2.0, 0.8), measure="nearby")
    axes = drawn(level(nearby, cells))
    assert points(axes, SMOOTH) == [(1.0, 0.5)]
    assert points(axes, ROUGH) == [(3.0, 0.6)]
    assert points(axes, "given up at this error") == [(9.0, 2.0)]
    assert points(axes, "on hidden cells, from their nearest cells") == [(1.0, 0.7), (2.0, 0.8)]
    assert points(axes, "taken") == [(1.0, 0.5)]
    assert axes.get_ylabel() == "error on hidden cells [K]"


def test_under_a_joint_ridge_the_last_choice_counts() -> None:
    slices = tried(candidate(1.0, 0.5), candidate(2.0, 0.4))
    joint = tried(candidate(2.0, 0.8), candidate(3.0, 0.7), measure="joint", best=1)
    axes = drawn(level(slices, joint))
    assert points(axes, "taken") == [(3.0, 0.7)]
    assert axes.get_ylabel().startswith("error on cells left out under a joint ridge")


def test_a_setting_of_the_model_that_was_tried_is_marked_wherever_the_choice_was() -> None:
    choice = tried(candidate(1.0, 0.5), candidate(2.0, 0.4, ridge=0.3), candidate(2.0, 0.2))
    own = replace(level(choice), level=Level("depth", Kernel(SMOOTH, 2.0), 0.3), ridge=0.3)
    assert points(drawn(own), "taken") == [(2.0, 0.4)]


@pytest.mark.parametrize("exact", [candidate(2.0, 0.0), Candidate(kernel_named("cubic"), 0.0, 0.0)])
def test_a_setting_without_error_is_marked_at_the_bottom(exact: Candidate) -> None:
    axes = drawn(
        level(tried(candidate(1.0, 0.5), candidate(3.0, 0.4), exact, best=2), reported=0.0)
    )
    ((across, height),) = points(axes, "taken, without error")
    assert across == (0.5 if exact.kernel.is_spline else 2.0)
    assert height == 0.0
    assert axes.get_ylim() == pytest.approx((0.4 / 1.25, 0.5 * 1.25))
    mark = next(one for one in axes.lines if one.get_label() == "taken, without error")
    shown = axes.transAxes.inverted().transform(mark.get_transform().transform((across, height)))
    assert shown[1] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        (level(), "Settings given:\nnothing was tried."),
        (level(axis=axis_of("one", [3.0])), "One coordinate:\nnothing to choose by."),
        (level(tried(candidate(1.0, 0.0))), "Every setting tried\nis without error."),
    ],
    ids=["given", "one", "exact"],
)
def test_a_panel_without_errors_says_why(trials: LevelTrials, words: str) -> None:
    axes = drawn(trials)
    assert [text.get_text() for text in axes.texts] == [words]
    assert labels(axes) == []


def test_names_are_drawn_as_they_are() -> None:
    axis = replace(DEPTH, name="a$b$\n<c>")
    assert drawn(level(axis=axis)).get_title("left").startswith(r"a\$b\$ <c>: gaussian")


# Units and words ----------------------------------------------------------------------------------

HOURS = Axis("time", np.arange(2000.0), time=TimeScale("hours since 2000-01-01"))


@pytest.mark.parametrize(
    ("axis", "units"),
    [
        (DEPTH, "m"),
        (axis_of("lon", np.arange(3.0), {"units": "degrees_east"}), "°"),
        (axis_of("lat", np.arange(3.0), {"units": "degrees_north"}), "°"),
        (text_axis("site", ["a", "b"]), "positions"),
        (index_axis("member", 4), "positions"),
        (HOURS, "days"),
        (HOURS.take(np.arange(900)), "hours"),
        (axis_of("x", np.arange(3.0)), ""),
    ],
)
def test_units_of_sigma(axis: Axis, units: str) -> None:
    assert sigma_units(axis) == units


def test_many_hours_are_days_in_words_and_on_the_axis() -> None:
    trials = level(tried(candidate(48.0, 0.5), candidate(96.0, 0.6)), axis=HOURS)
    assert setting_text(trials) == f"{SMOOTH}, sigma 2 days, ridge 0.1"
    assert points(drawn(trials), SMOOTH) == [(2.0, 0.5), (4.0, 0.6)]
    assert points(drawn(trials), "taken") == [(2.0, 0.5)]


# A fit --------------------------------------------------------------------------------------------


def test_the_panels_of_a_fit_stand_in_the_order_of_its_levels() -> None:
    record, x, t = ChoiceRecord(), np.linspace(0, 4, 9), np.arange(12.0)
    values = np.sin(np.add.outer(t / 4, x)) + 0.1 * np.cos(np.multiply.outer(t, x))
    given = {"kernel": {"x": "gaussian"}, "sigma": {"x": 1.5}, "ridge": {"x": 0.01}}
    model = fit(values, {"time": t, "x": x}, watch=record, **given)
    found = level_trials(model, record)
    assert [one.axis.name for one in found] == list(model.hierarchy) == ["x", "time"]
    assert [len(one.choices) for one in found] == [0, 1]
    assert found[1].reported == model.errors[model.dims.index("time")]
    axes = drawn(found[1])
    taken = found[1].choices[0].taken
    assert points(axes, "taken") == [(taken.kernel.sigma, taken.error)]
    assert taken.kernel == model.level_of("time").kernel
    first, second = trial_row(model, record, "t").panels
    assert "nothing was tried; taken: gaussian, sigma 1.5, ridge 0.01" in first.text
    assert f"{len(found[1].choices[0].tried)} settings tried" in second.text
