"""Pictures of a choice: the settings that were tried for every level, and the one that was taken.

On complete grids the error of left-out slices is drawn against sigma, a line for every kernel, each
point at its best ridge. Where cells are missing all levels are chosen together: every setting that
was tried is a point in the panel of every level. A panel of a level whose settings were given says
so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.grid.axes import Axis, is_latitude
from dkrls_cli.model.model import Model
from dkrls_cli.plots.labels import units_text, with_units
from dkrls_cli.plots.reports.panels import Panel, PanelRow
from dkrls_cli.plots.style import INK, plain_text
from dkrls_cli.tuning.candidates import MEASURES, Candidate, LevelChoice
from dkrls_cli.tuning.trials.record import ChoiceRecord

Placer = Callable[[Candidate], float]
"""Where a trial stands from left to right."""

# Extent of a time axis, in its units, from which on lengths are told in days.
_MANY = 1000.0

# Colour and mark of each family: they differ in lightness and in shape, so grey print will do.
_LOOKS = {
    "gaussian": ("#0072B2", "o"),
    "matern52": ("#D55E00", "s"),
    "matern32": ("#009E73", "^"),
    "matern12": ("#8E4BA8", "D"),
}

# Dashes of kernels without a cycle, and with the first, second and third.
_DASHES = ("-", "--", ":", "-.")

# Dashes and spaces, in widths of a line, of splines and of kernels of other coordinates.
_LEVELS = ((1.0, 1.5), (4.0, 1.5), (7.0, 2.0, 1.0, 2.0), (2.0, 4.0))

# Errors beyond this many times the least are cut off: how large they are tells nothing.
_CUT = 30.0

# Colour of the mark of the choice, light among dark ones, and ridge at which one of 0 is drawn.
_TAKEN, _LEAST_RIDGE = "#F0C000", 1e-15

# Sizes of marks in points: of trials, and of the choice.
_MARK, _STAR = 2.8, 9.0

# Factor between the ends of an axis up to which its ticks are round numbers, and not powers of ten.
_NARROW = 8.0


@dataclass(frozen=True, eq=False)
class LevelTrials:
    """What was tried for one level, and what was taken.

    Attributes
    ----------
    axis, level
        Coordinates and settings of the level in the model.
    choices
        What was tried, by each measure that was used; none if the settings were given.
    reported
        Error of the model on what is left out; None for a level of one coordinate.
    units
        Units of the variable, empty if there are none.
    ridge
        Ridge of the level, or that of the whole grid.
    """

    axis: Axis
    level: Level
    choices: tuple[LevelChoice, ...]
    reported: float | None
    units: str
    ridge: float


def trial_row(model: Model, record: ChoiceRecord, title: str = "") -> PanelRow:
    """Return what was tried in a fit as a row of panels, one for each level from level 0 on.

    Parameters
    ----------
    model
        The model that was fitted.
    record
        What was tried.
    title
        Title of the row.
    """
    return PanelRow([_panel(trials) for trials in level_trials(model, record)], title)


def level_trials(model: Model, record: ChoiceRecord) -> list[LevelTrials]:
    """Return what was tried for the levels of a model, from level 0 to the last."""
    joint = model.joint_ridge
    found = []
    for level in model.levels:
        axis = model.axis_of(level.name)
        error = model.errors[model.dims.index(level.name)]
        found.append(
            LevelTrials(
                axis,
                level,
                record.of(level.name),
                error if axis.size > 1 else None,
                units_text(model.attrs),
                level.ridge if joint is None else joint,
            )
        )
    return found


def _panel(trials: LevelTrials) -> Panel:
    tried = sum(len(choice.tried) for choice in trials.choices)
    said = f"{tried} settings tried" if tried else "settings given, nothing was tried"
    text = f"{trials.axis.name}: {said}; taken: {setting_text(trials)}."
    return Panel(lambda axes: draw_trials(axes, trials), text)


def setting_text(trials: LevelTrials) -> str:
    """Return the setting that was taken in words."""
    kernel = trials.level.kernel
    return f"{kernel_text(kernel)}, {numbers_text(trials)}"


def kernel_text(kernel: Kernel) -> str:
    """Return the name of a kernel, and that it is a spline or has a cycle."""
    if kernel.is_spline:
        return f"{kernel.name} spline"
    return kernel.name if kernel.cycle is None else f"{kernel.name} + cycle {short(kernel.cycle)}"


def numbers_text(trials: LevelTrials) -> str:
    """Return sigma and ridge of the setting that was taken in words."""
    kernel, ridge = trials.level.kernel, f"ridge {short(trials.ridge)}"
    if kernel.is_spline:
        return ridge
    return f"sigma {sigma_text(kernel, trials.axis)}, {ridge}"


def sigma_text(kernel: Kernel, axis: Axis) -> str:
    """Return the sigma of a kernel with its units."""
    sigma = kernel.sigma / length_unit(axis)
    return f"{short(sigma)} {sigma_units(axis, kernel.warp)}".rstrip().replace(" °", "°")


def length_unit(axis: Axis) -> float:
    """Return what lengths along an axis are divided by: a day if it counts many hours or seconds.

    >>> from dkrls_cli.grid.calendars import TimeScale
    >>> time = Axis("time", np.arange(5000.0), time=TimeScale("hours since 2000-01-01"))
    >>> length_unit(time), sigma_units(time)
    (24.0, 'days')
    """
    if axis.time is None or float(np.ptp(axis.numbers)) < _MANY:
        return 1.0
    return max(axis.time.day, 1.0)


def short(number: float) -> str:
    """Return a number with four digits.

    >>> short(12191.3), short(0.000012345)
    ('12190', '1.234e-05')
    """
    return f"{float(f'{number:.4g}'):g}"


def sigma_units(axis: Axis, warp: str | None = None) -> str:
    """Return the units of a sigma as they are printed, empty if there are none.

    >>> from dkrls_cli.grid.axes import axis_of
    >>> sigma_units(axis_of("lat", [0.0, 1.0])), sigma_units(axis_of("s", ["a", "b"]))
    ('°', 'positions')
    """
    if axis.labels is not None or not axis.has_coordinate:
        own = "positions"
    elif length_unit(axis) > 1:
        own = "days"
    elif axis.turn is not None or is_latitude(axis):
        own = "°"
    else:
        own = units_text({"units": axis.length_units})
    return f"{warp}({own})" if warp and own else own


def draw_trials(axes: Any, trials: LevelTrials) -> None:
    """Draw what was tried for one level on axes of matplotlib."""
    known = [_drawable(choice) for choice in trials.choices]
    known = [choice for choice in known if choice.tried]
    kernel = kernel_text(trials.level.kernel)
    axes.set_title(
        plain_text(f"{trials.axis.name}: {kernel}") + "\n" + plain_text(numbers_text(trials)),
        loc="left",
        fontsize=7.5,
    )
    if not known:
        _say_nothing_tried(axes, trials)
        return
    main = _main(known)
    by_ridge = len({one.kernel.sigma for one in main.tried}) == 1
    place = _placer(trials.axis, by_ridge)
    lowest = []
    for choice in known:
        if choice.measure == "slices":
            lowest += _draw_lines(axes, choice, place)
        else:
            lowest += _draw_points(axes, choice, place, decides=choice is main)
    _draw_given_up(axes, trials.choices, place)
    lowest.append(_draw_taken(axes, main, trials, place))
    _label(axes, trials, main, by_ridge)
    _set_range(axes, [*lowest, *([trials.reported] if trials.reported else [])])


def _drawable(choice: LevelChoice) -> LevelChoice:
    """Return a choice with the errors that a logarithmic axis can show."""
    tried = tuple(one for one in choice.tried if 0 < one.error < math.inf)
    return LevelChoice(choice.taken, tried, measure=choice.measure)


def _main(known: Sequence[LevelChoice]) -> LevelChoice:
    """Return the choice that decided: that by hidden cells if there are gaps, else the last one."""
    return next((choice for choice in known if choice.measure == "cells"), known[-1])


def _say_nothing_tried(axes: Any, trials: LevelTrials) -> None:
    """Say that the settings were given, or that there was nothing to choose by."""
    why = "Settings given:\nnothing was tried."
    if trials.axis.size == 1:
        why = "One coordinate:\nnothing to choose by."
    elif trials.choices:
        why = "Every setting tried\nis without error."
    axes.text(0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])


def _placer(axis: Axis, by_ridge: bool) -> Placer:
    """Return where trials stand: at their sigma, or at their ridge, of which none is 0 on paper."""
    unit = length_unit(axis)
    if by_ridge:
        return lambda one: max(one.ridge, _LEAST_RIDGE)
    return lambda one: one.kernel.sigma / unit


def _draw_lines(axes: Any, choice: LevelChoice, place: Placer) -> list[float]:
    """Draw the least error of every kernel against sigma, and what has no such sigma as levels.

    Returns the errors that are drawn.
    """
    own = choice.taken.kernel.warp
    drawn: list[float] = []
    cycles = sorted({one.kernel.cycle for one in choice.tried if one.kernel.cycle is not None})
    for (family, cycle), points in _envelopes(choice, own, place).items():
        colour, mark = _LOOKS[family]
        dashes = _DASHES[(0 if cycle is None else 1 + cycles.index(cycle)) % len(_DASHES)]
        label = family if cycle is None else f"{family} + cycle {short(cycle)}"
        axes.plot(*points, dashes, color=colour, marker=mark, markersize=_MARK, label=label)
        drawn += points[1]
    for number, (name, error) in enumerate(_level_errors(choice, own).items()):
        pattern = _LEVELS[number % len(_LEVELS)]
        axes.axhline(error, color="0.5", linewidth=0.9, dashes=pattern, zorder=1, label=name)
        drawn.append(error)
    return drawn


def _envelopes(
    choice: LevelChoice, warp: str | None, place: Placer
) -> Mapping[tuple[str, float | None], tuple[list[float], list[float]]]:
    """Return, by family and cycle, the places and least errors of kernels on the same coordinates.

    Kernels of one sigma that differ in the size of their cycle count as one.
    """
    least: dict[tuple[str, float | None], dict[float, float]] = {}
    for one in choice.tried:
        kernel = one.kernel
        if kernel.is_spline or kernel.warp != warp:
            continue
        own = least.setdefault((kernel.family, kernel.cycle), {})
        own[place(one)] = min(one.error, own.get(place(one), math.inf))
    return {key: (sorted(own), [own[at] for at in sorted(own)]) for key, own in least.items()}


def _level_errors(choice: LevelChoice, warp: str | None) -> dict[str, float]:
    """Return the least error of each spline, and of the kernels of other coordinates."""
    found: dict[str, float] = {}
    for one in choice.tried:
        kernel = one.kernel
        if kernel.is_spline:
            name = kernel_text(kernel)
        elif kernel.warp != warp:
            name = f"kernels of {kernel.warp or 'plain'} coordinates"
        else:
            continue
        found[name] = min(one.error, found.get(name, math.inf))
    return found


def _draw_points(axes: Any, choice: LevelChoice, place: Placer, *, decides: bool) -> list[float]:
    """Draw every setting that was tried as a point, hollow if others decided; return the errors."""
    if not decides:
        points = [(place(one), one.error) for one in choice.tried]
        style: dict[str, Any] = {"markersize": _MARK, "markeredgewidth": 0.6, "color": "0.45"}
        label = f"on {MEASURES[choice.measure]}"
        mark = "v" if choice.measure == "views" else "o"
        axes.plot(*zip(*points, strict=True), mark, markerfacecolor="none", label=label, **style)
    for family, (colour, mark) in _LOOKS.items():
        own = [one for one in choice.tried if one.kernel.family == family]
        if decides and own:
            x, y = [place(one) for one in own], [one.error for one in own]
            axes.plot(x, y, mark, color=colour, markersize=1.4 * _MARK, label=family)
    return [one.error for one in choice.tried]


def _draw_given_up(axes: Any, choices: Sequence[LevelChoice], place: Placer) -> None:
    """Draw the settings whose solve was given up where their error was by then."""
    points = [
        (place(one), one.reached)
        for choice in choices
        for one in choice.tried
        if one.reached is not None and 0 < one.reached < math.inf
    ]
    if points:
        style: dict[str, Any] = {"color": "0.5", "markersize": 3.0, "markeredgewidth": 0.7}
        axes.plot(*zip(*points, strict=True), "x", label="given up at this error", **style)


def _draw_taken(axes: Any, main: LevelChoice, trials: LevelTrials, place: Placer) -> float:
    """Mark the setting that was taken, and the error of the model; return the error of the first.

    A spline has no sigma: its mark stands in the middle. One without error stands at the bottom.
    """
    taken = _taken(main, trials)
    spline, exact = taken.kernel.is_spline, not taken.error > 0
    across = 0.5 if spline else place(taken)
    where = axes.get_yaxis_transform() if spline else axes.transData
    if exact:
        where = axes.transAxes if spline else axes.get_xaxis_transform()
    style = {"markersize": _STAR, "color": _TAKEN, "zorder": 5, "clip_on": False}
    style |= {"markeredgecolor": "black", "markeredgewidth": 0.8, "transform": where}
    label = "taken, without error" if exact else "taken"
    axes.plot([across], [0.0 if exact else taken.error], "*", label=label, **style)
    if trials.reported:
        label = "error of the model"
        axes.axhline(trials.reported, color=INK, linewidth=0.7, zorder=1, label=label)
    return taken.error


def _taken(main: LevelChoice, trials: LevelTrials) -> Candidate:
    """Return the trial of the setting that the model has, or else that of the choice."""
    own = [one for one in (main.taken, *main.tried) if one.kernel == trials.level.kernel]
    own = [one for one in own if one.ridge == trials.ridge] or own
    return min(own, key=lambda one: one.error) if own else main.taken


def _label(axes: Any, trials: LevelTrials, main: LevelChoice, by_ridge: bool) -> None:
    """Set scales and labels."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylabel(plain_text(with_units(f"error on {MEASURES[main.measure]}", trials.units)))
    units = sigma_units(trials.axis, trials.level.kernel.warp)
    axes.set_xlabel(plain_text("ridge" if by_ridge else with_units("sigma", units)))


def _set_range(axes: Any, errors: Sequence[float]) -> None:
    """Show the errors up to a limit, and label both axes with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    errors = [error for error in errors if 0 < error < math.inf]
    least = min(errors)
    axes.set_ylim(least / 1.25, min(max(errors), _CUT * least) * 1.25)
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if high < _NARROW * low:
            axis.set_major_locator(MaxNLocator(4))
        else:
            wide = high > 100 * low
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:.6g}"))
        axis.set_minor_formatter(NullFormatter())
