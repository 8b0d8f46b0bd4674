"""Settings of a stored grid with land, and its stand-in.

A grid with missing cells has one joint ridge. Beyond memory, its times are on their own: the model
is that of every time by itself, with the same settings for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Indices, Mask, checked_gaps
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.factors.choice import LARGEST
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, ScatteredGapsError, SettingError
from dkrls_cli.files.source import Source
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.gaps.lasting.completion import completion_bytes, mask_bytes
from dkrls_cli.gaps.pattern import empty_slices
from dkrls_cli.grid.axes import Axis, text_axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.quantities import coordinate_marks, mark_note
from dkrls_cli.model.answering.bounds import choose_bounds
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.chunked.ground import refuse_whole_grid, stored_chunks
from dkrls_cli.model.chunked.panels import Stored
from dkrls_cli.model.chunked.standin import any_level
from dkrls_cli.model.chunked.survey import SURVEYED, SurveyPlan
from dkrls_cli.model.lasting.calibrating import calibrate_gaps, calibrate_land
from dkrls_cli.model.lasting.land import Land, slice_axes
from dkrls_cli.model.model import Model
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.planning import process_bytes
from dkrls_cli.model.training.gaps import choose_kernels
from dkrls_cli.model.training.lost import drop_lost_slices, lost_notes
from dkrls_cli.tuning.footprint import footprint

ALONE = Kernel("gaussian", 1e-3)
"""Kernel between positions under which every slice is on its own."""

_FIRST = np.zeros(1, np.intp)
"""The one coordinate of an axis that a slice has."""

_SLICES = (6, 2)
"""Slices on which settings are chosen, at most, and on which a mean is taken."""

_ON_THE_WAY = 2.0
"""Memory that a choice takes, beside the footprint of a fit of a large grid."""

_ANY_RIDGE = 1e-3
"""Joint ridge of a plan, for which it does not matter."""

_TOLERANCES = {"float32": 1e-7, "float64": 1e-9}
"""Largest change of a cell at the end of a solve where settings are given, by type of the data."""


@dataclass(frozen=True, eq=False)
class LandSurvey:
    """Settings of a stored grid with land.

    Attributes
    ----------
    model
        Stand-in of the grid under a joint ridge: it knows land, and has no values.
    kept
        Places of the coordinates of the source that the stand-in has: those with data.
    missing
        Missing cells on the axes of the stand-in, of size 1 along those of the slices.
    slices
        Places of the axes whose slices are on their own.
    tolerance
        Largest change of a missing cell at the end of a solve, as a share of the spread.
    note
        What the settings were chosen on and how gaps are answered, for the user; may be empty.
    most
        Missing cells of a slice at most, if slices miss other cells as well; 0 if none does.
    choosing
        What was read to choose settings; None if they were known.
    """

    model: Model
    kept: tuple[Indices, ...]
    missing: Mask
    slices: tuple[int, ...]
    tolerance: float
    note: str
    most: int = 0
    choosing: SurveyPlan | None = None


def survey_land(land: Land, settings: Settings, limit: float, *, bars: bool = False) -> LandSurvey:
    """Choose the settings of a stored grid with land on a few of its slices.

    Parameters
    ----------
    land
        The land.
    settings
        Settings of the fit; what is ``auto`` is chosen.
    limit
        Bytes that may be in use, the program included.
    bars
        Whether to calibrate error bars, on as many slices.

    Raises
    ------
    ScatteredGapsError
        If slices miss other cells than land, and were not all looked at.
    InputError
        If missing cells are refused, or slices do not fit into memory.
    SettingError
        If a setting is not possible, or not for a grid with land beyond memory.
    """
    settings = _without_groups(land, settings)
    first = land.panel(1)
    if settings.missing == "error":
        first.refuse_missing()
    kept, notes = _kept(land, first)
    axes = tuple(axis.take(own) for axis, own in zip(land.source.axes, kept, strict=True))
    plan = plan_fit(axes, settings, complete=False)
    _refuse_large(land, axes, limit)
    choosing = _plan_choice(land, kept, plan, settings, limit, bars=bars)
    panel = first.take([own if a in land.places else _FIRST for a, own in enumerate(kept)])
    tolerance, note, mean = _TOLERANCES[land.source.dtype], "", settings.centre
    is_open = _has_choice(land, plan)
    if is_open or mean is None or land.varied:
        panel = _panel(land, kept, limit, _SLICES[0] if is_open else _SLICES[1])
        _refuse_other_gaps(land, panel)
        mean = float(np.nanmean(panel.values)) if mean is None else mean
    panel.refuse_unsuitable()
    marks = mark_note(panel.name, panel.values)
    if is_open:
        plan, found = _choose(land, panel, plan, mean)
        tolerance = max(tolerance, found)
        count = max(panel.axes[a].size for a in land.slices)
        note = f"settings chosen on {count} slices along {land.names}"
    note = "; ".join(filter(None, (note, land.gap_note)))
    bounds, told = choose_bounds(settings.bounds, panel)
    facts = {"dropped_coordinates": notes, "bounds": told, SURVEYED: note}
    facts["notes"] = [*filter(None, [marks]), *coordinate_marks(axes)]
    levels = [any_level(level, axis) for level, axis in zip(plan.levels, axes, strict=True)]
    known: Bars = JointBars(math.nan, math.nan)
    if bars:
        many = panel if is_open else _panel(land, kept, limit, _SLICES[0])
        _refuse_other_gaps(land, many)
        many.refuse_unsuitable()
        apart = _apart(land, many, replace(plan, levels=tuple(levels)))
        known = _calibrate(land, kept, apart, mean)
    model = _stand_in(land, axes, plan, levels, mean, facts, known)
    own = [one if a in land.places else _FIRST for a, one in enumerate(kept)]
    missing, model = land.missing[np.ix_(*own)], replace(model, bounds=bounds)
    return LandSurvey(model, kept, missing, land.slices, tolerance, note, land.most, choosing)


def _calibrate(
    land: Land, kept: tuple[Indices, ...], apart: tuple[Grid, FitPlan], mean: float
) -> LandBars:
    """Return the error bars of a grid from some of its slices, each on its own."""
    if not land.varied:
        return calibrate_land(*apart, mean, land.slices)
    own = land.missing[np.ix_(*(one if a in land.places else _FIRST for a, one in enumerate(kept)))]
    return calibrate_gaps(*apart, mean, land.slices, own.squeeze(land.slices), land.most)


def plan_land(
    land: Land, settings: Settings, limit: float, *, bars: bool = False
) -> tuple[LandSurvey, SurveyPlan]:
    """Return what a grid with land is answered with, and what choosing its settings will read.

    One slice is read. Settings that are not given are arbitrary. Parameters and errors are those of
    :func:`survey_land`.
    """
    settings = _without_groups(land, settings)
    first = land.panel(1)
    if settings.missing == "error":
        first.refuse_missing()
    kept, _ = _kept(land, first)
    axes = tuple(axis.take(own) for axis, own in zip(land.source.axes, kept, strict=True))
    plan = plan_fit(axes, settings, complete=False)
    _refuse_large(land, axes, limit)
    levels = [any_level(level, axis) for level, axis in zip(plan.levels, axes, strict=True)]
    known = replace(plan, joint_ridge=plan.joint_ridge or _ANY_RIDGE)
    mean, unknown = settings.centre or 0.0, JointBars(1.0, 1.0)
    model = _stand_in(land, axes, known, levels, mean, {}, unknown)
    own = [one if a in land.places else _FIRST for a, one in enumerate(kept)]
    missing = land.missing[np.ix_(*own)]
    found = LandSurvey(model, kept, missing, land.slices, 1.0, "")
    return found, _plan_choice(land, kept, plan, settings, limit, bars=bars)


def _plan_choice(
    land: Land,
    kept: tuple[Indices, ...],
    plan: FitPlan,
    settings: Settings,
    limit: float,
    *,
    bars: bool,
) -> SurveyPlan:
    """Return what looking at some slices takes."""
    most = _SLICES[1] if settings.centre is None else 1
    if bars or _has_choice(land, plan):
        most = _SLICES[0]
    count = _count_slices(land, kept, limit, most)
    source, process = land.source, process_bytes()
    stored = Stored(source.shape, stored_chunks(source), np.dtype(source.dtype).itemsize)
    chunks, read = stored.touched(land.indices(count))
    read += stored.bytes if land.varied else 0  # all slices were looked at
    memory: float = process + completion_bytes(
        land.missing, math.prod(kept[a].size for a in land.places)
    )
    if most == _SLICES[0]:
        memory = max(memory, process + _panel_bytes(land, kept, count))
    return SurveyPlan((), read, chunks, read / stored.bytes, int(memory), process)


def known_land(model: Model, source: Source) -> LandSurvey:
    """Return what the stand-in of a grid with land, which refers to a source, was made with.

    Raises
    ------
    InputError
        If the source lacks a coordinate of the model.
    """
    pairs = list(zip(model.axes, source.axes, strict=True))
    found = [nearest(own.numbers, whole.numbers, None) for own, whole in pairs]
    for (own, _), (_, known) in zip(pairs, found, strict=True):
        if not known.all():
            raise InputError(f"'{source.name}' lacks coordinates of '{own.name}' that it had.")
    kept = tuple(places for places, _ in found)
    slices, absent = slice_axes(source.axes), model.coverage.absent
    own_places = [_FIRST if a in slices else places for a, places in enumerate(kept)]
    missing, bars = absent[np.ix_(*own_places)], model.known_bars
    most = bars.most if isinstance(bars, LandBars) else 0
    return LandSurvey(model, kept, missing, slices, _TOLERANCES[source.dtype], "", most)


def _without_groups(land: Land, settings: Settings) -> Settings:
    """Return settings without a group and without poles, or raise SettingError if one is given."""
    refuse_whole_grid(land.source, settings)
    for is_given, what, setting in (
        (settings.group_names is not None, "A group of dimensions", "group"),
        (settings.poles not in ("auto", "none"), "Going on across the poles", "poles"),
        (bool(settings.cell_means), "Data that are means over cells", "cell_means"),
    ):
        if is_given:
            raise SettingError(
                f"{what} with missing cells needs the whole grid in memory. Leave it out, or load "
                "all of it.",
                setting=setting,
            )
    return replace(settings, group="none", poles="none")


def _kept(land: Land, one: Grid) -> tuple[tuple[Indices, ...], list[str]]:
    """Return the coordinates with data that repeat no other, and notes on those without data."""
    if land.varied:
        return _kept_of_all(land)
    distinct = [axis.distinct for axis in land.source.axes]
    single = one.take([own if a in land.places else _FIRST for a, own in enumerate(distinct)])
    observed, notes = single.observed, drop_lost_slices(single)[1]
    kept = []
    for place, own in enumerate(distinct):
        others = tuple(axis for axis in range(observed.ndim) if axis != place)
        has_data = observed.any(axis=others)
        kept.append(own[has_data] if place in land.places else own)
    return tuple(kept), notes


def _kept_of_all(land: Land) -> tuple[tuple[Indices, ...], list[str]]:
    """Return the same of a grid of which all slices were looked at.

    Slices without data are kept, and have no answers.
    """
    axes, nothing = land.source.axes, np.zeros(0, np.intp)
    lost = [gone if a in land.places else nothing for a, gone in enumerate(land.empty)]
    kept = tuple(np.setdiff1d(axis.distinct, gone) for axis, gone in zip(axes, lost, strict=True))
    return kept, lost_notes(axes, lost)


def _refuse_large(land: Land, axes: tuple[Axis, ...], limit: float) -> None:
    """Raise an error if one slice is too large to be completed."""
    own = [axes[place] for place in land.places]
    longest = max(own, key=lambda axis: axis.size)
    if longest.size > LARGEST:
        raise SettingError(
            f"'{longest.name}' has {longest.size} coordinates. Beside missing cells, {LARGEST} are "
            "the most: fill the grid first, land as well.",
            setting="max_memory",
        )
    cells = math.prod(axis.size for axis in own)
    least = process_bytes() + completion_bytes(land.missing, cells) + mask_bytes(land.most)
    if least > limit:
        raise InputError(
            f"Completing one slice of '{land.source.name}' takes about {least / 1e6:.0f} MB, and "
            f"{limit / 1e6:.0f} MB are allowed. Allow more memory, or fill the grid first, land as "
            "well.",
            setting="max_memory",
        )


def _has_choice(land: Land, plan: FitPlan) -> bool:
    """Return whether a setting of the slices is to be chosen."""
    return plan.joint_ridge is None or any(_is_open(plan.levels[a]) for a in land.places)


def _is_open(level: Level | LevelRequest) -> bool:
    """Return whether a kernel is to be chosen."""
    return isinstance(level, LevelRequest) and None in (level.family, level.sigma)


def _panel(land: Land, kept: tuple[Indices, ...], limit: float, most: int) -> Grid:
    """Read as many slices as fit into memory, at coordinates with data."""
    grid = land.panel(_count_slices(land, kept, limit, most))
    every = [np.arange(axis.size) for axis in grid.axes]
    panel = grid.take([kept[a] if a in land.places else every[a] for a in range(len(every))])
    return _with_data(land, panel) if land.varied else panel


def _with_data(land: Land, panel: Grid) -> Grid:
    """Return a panel without slices that have no data at all."""
    if not panel.observed.any():
        raise InputError(
            f"'{land.source.name}' has no data at the few coordinates of {land.names} on which "
            "settings are chosen. Fill the grid first, or take all of it into memory."
        )
    every = [np.arange(axis.size) for axis in panel.axes]
    gone = empty_slices(panel.observed)
    return panel.take(
        [np.setdiff1d(own, gone[a]) if a in land.slices else own for a, own in enumerate(every)]
    )


def _count_slices(land: Land, kept: tuple[Indices, ...], limit: float, most: int) -> int:
    """Return how many slices, up to `most`, settings can be chosen on in memory; at least one."""
    room = limit - process_bytes()
    fitting = (count for count in range(most, 1, -1) if _panel_bytes(land, kept, count) <= room)
    return next(fitting, 1)


def _panel_bytes(land: Land, kept: tuple[Indices, ...], count: int) -> float:
    """Return the bytes that choosing settings on some slices takes."""
    cells = [kept[place].size for place in land.places]
    return _ON_THE_WAY * footprint([count, *cells], land.source.dtype, gaps=True).memory


def _refuse_other_gaps(land: Land, panel: Grid) -> None:
    """Raise InputError if slices have other missing cells than the one that was looked at."""
    gone = ~panel.observed
    if not land.varied and (gone != gone.all(axis=land.slices, keepdims=True)).any():
        raise scattered_gaps(land.source.name, land.names)


def scattered_gaps(name: str, slices: str, where: str = "") -> ScatteredGapsError:
    """Return the error of cells that are missing at some slices only."""
    first = f", the first {where}" if where else ""
    return ScatteredGapsError(
        f"Cells of '{name}' are missing at some coordinates of {slices} only{first}. Beyond "
        "memory, the same cells must be missing at all of them, as land is: fill the grid first "
        "(land may stay), or take all of it into memory.",
        setting="max_memory",
    )


def _choose(land: Land, panel: Grid, plan: FitPlan, mean: float) -> tuple[FitPlan, float]:
    """Choose kernels and ridge on a panel; return the plan with them, and the tolerance."""
    labelled, alone = _apart(land, panel, plan)
    chosen = choose_kernels(labelled, alone, mean)
    thin = [place for place, axis in enumerate(panel.axes) if axis.size > 1]
    found = list(plan.levels)
    for place, kernel in zip(thin, chosen.setting.kernels, strict=True):
        if place in land.places:
            found[place] = Level(panel.axes[place].name, kernel)
    return replace(plan, levels=tuple(found), joint_ridge=chosen.setting.ridge), chosen.tolerance


def _apart(land: Land, panel: Grid, plan: FitPlan) -> tuple[Grid, FitPlan]:
    """Return a panel and a plan in which every slice is on its own."""
    axes, levels = list(panel.axes), list(plan.levels)
    for place in land.slices:
        own = axes[place]
        axes[place] = text_axis(own.name, [str(i) for i in range(own.size)])
        levels[place] = Level(own.name, ALONE)
    labelled = replace(panel, axes=tuple(axes), values=checked_gaps(panel.values))
    return labelled, replace(plan, levels=tuple(levels))


def _stand_in(
    land: Land,
    axes: tuple[Axis, ...],
    plan: FitPlan,
    levels: list[Level],
    mean: float,
    facts: Mapping[str, object],
    bars: Bars,
) -> Model:
    """Return a model of the whole grid in everything but its values."""
    source, count = land.source, len(axes)
    cascade = Cascade(
        tuple(replace(level, ridge=0.0) for level in levels),
        tuple(axis.numbers for axis in axes),
        (None,) * count,
        (None,) * count,
        np.broadcast_to(np.float32(mean), tuple(axis.size for axis in axes)),
        plan.joint_ridge,
        mean=mean,
    )
    return Model(
        cascade,
        axes,
        plan.hierarchy,
        bars,
        source.name,
        source.attrs,
        source.style,
        {key: found for key, found in facts.items() if found},
        known_coverage=Coverage(source.axes, land.missing),
    )
