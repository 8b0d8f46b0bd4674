"""Settings of a grid beyond memory, chosen on a few of its chunks, and its stand-in.

The *stand-in* is a model of the whole grid in everything but its values: levels, axes, error bars,
bounds, rows across the poles. Its core is one number for all cells, and takes no memory. Whoever
answers from it reads the data where it is stored.

Levels are chosen as in a fit of the whole grid, the shortest first, on *panels*
(:mod:`dkrls_cli.model.chunked.panels`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.errors import InputError, ScatteredGapsError
from dkrls_cli.files.source import Source
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.quantities import coordinate_marks, mark_note
from dkrls_cli.model.answering.bounds import Bounds, bounds_asked, choose_bounds
from dkrls_cli.model.chunked.ground import Ground, prepare
from dkrls_cli.model.chunked.panels import Panel, plan_panels
from dkrls_cli.model.chunked.standin import any_level, make_stand_in, no_bars
from dkrls_cli.model.model import Model
from dkrls_cli.model.planning.requests import LevelRequest
from dkrls_cli.model.poles.crossing import continue_rows
from dkrls_cli.model.poles.planning import SIGNS
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.planning import process_bytes
from dkrls_cli.model.training.complete import Settled, settle
from dkrls_cli.tuning.footprint import survey_memory

SURVEYED = "settings_chosen_on"
"""Key of the origin of a model whose settings were chosen on a part of its data."""

_ALONE = Kernel("gaussian", 1e-3)
"""Kernel between positions under which every slice is on its own."""


_LARGER = 60
"""Limits that are tried, each a tenth above the one before, to tell how much memory would do."""

_MOST_CELLS = 2**24
"""Cells of a panel at most: choosing on these takes some seconds."""

_MOST_ROWS = 12
"""Rows that are added behind each pole at most."""


@dataclass(frozen=True)
class SurveyPlan:
    """What choosing the settings of a stored grid will read.

    Attributes
    ----------
    panels
        Parts of the grid on which levels are chosen; none if nothing is to be chosen.
    bytes_read, chunks_read
        Bytes of the values of all chunks that are read, and their number.
    share
        Share of the bytes of the grid that this is; above 1 if chunks are read twice.
    memory
        Bytes in use at most, the program included.
    process
        Bytes of the program alone: what a survey takes besides is free again after it.
    """

    panels: tuple[Panel, ...]
    bytes_read: int
    chunks_read: int
    share: float
    memory: int
    process: int


@dataclass(frozen=True, eq=False)
class Surveyed:
    """Settings of a stored grid.

    Attributes
    ----------
    model
        Stand-in of the grid: a model whose core is the mean in all cells. Error bars that are not
        known are NaN.
    plan
        What was read.
    mean
        Mean of the first panel, or the one that was given.
    note
        What the settings were chosen on, for the user; empty if nothing was chosen.
    """

    model: Model
    plan: SurveyPlan
    mean: float
    note: str


def plan_survey(
    source: Source,
    settings: Settings,
    wanted: Collection[int] | None = None,
    limit: float = math.inf,
    *,
    bars: bool = True,
) -> SurveyPlan:
    """Plan what choosing the settings of a stored grid reads, before anything is read.

    Parameters
    ----------
    source, settings, wanted, limit, bars
        As for :func:`survey`.

    Raises
    ------
    InputError, SettingError
        As for :func:`survey`.
    """
    return _plan(prepare(source, settings, wanted), limit, bars=bars)


def _plan(ground: Ground, limit: float, *, bars: bool) -> SurveyPlan:
    """Return the panels of a grid that fit into a limit."""
    stored, process = ground.stored, process_bytes()
    closed = [_is_closed(level) for level in ground.plan.levels]
    chosen = [place for place in ground.wanted if bars or not closed[place]]
    poles = ground.plan.poles
    is_open = poles is not None and (bars or poles.kind == "auto" or bool(chosen))
    together = (poles.latitude, poles.longitude) if poles is not None and is_open else ()
    chosen = sorted({*chosen, *together})
    if not chosen and ground.settings.centre is not None:
        return SurveyPlan((), 0, 0, 0.0, process, process)

    searches = not all(closed[place] for place in chosen)

    def memory(shape: Sequence[int]) -> int:
        sides = [*shape]
        if together:
            sides[together[0]] += 2 * _MOST_ROWS
        added = math.prod(sides) - math.prod(shape)
        return survey_memory(shape, chosen=searches, added=added)

    def panels_within(room: float) -> list[Panel] | None:
        return plan_panels(
            stored,
            chosen,
            together,
            lambda shape: process + memory(shape) <= room and math.prod(shape) <= _MOST_CELLS,
            near=(),
        )

    panels = panels_within(limit)
    if panels is None:
        larger = (panels_within(max(limit, process) * 1.1**step) for step in range(1, _LARGER))
        enough, allowed = next(filter(None, larger), None), f"{limit / 1e6:.0f} MB"
        takes = f"more than the {allowed} that are allowed"
        if enough is not None:
            least = process + max(memory(panel.shape) for panel in enough)
            takes = f"about {math.ceil(least / 1e6)} MB, and {allowed} are allowed"
        remedy = "" if bars else _left_to_give(ground)
        raise InputError(
            f"Choosing the settings takes {takes}. Allow more memory{remedy}.",
            setting="max_memory",
        )
    read = [stored.touched(panel.indices) for panel in panels]
    total = sum(size for _, size in read)
    return SurveyPlan(
        tuple(panels),
        total,
        sum(count for count, _ in read),
        total / stored.bytes,
        process + max(memory(panel.shape) for panel in panels),
        process,
    )


def _left_to_give(ground: Ground) -> str:
    """Return what else a user can do where memory does not suffice to choose: give settings."""
    poles = ground.plan.poles
    if not all(_is_closed(ground.plan.levels[place]) for place in ground.wanted):
        return ", or give kernels, sigmas and ridges" + (", and poles" if poles is not None else "")
    return ", or give poles" if poles is not None and poles.kind == "auto" else ""


def _is_closed(level: Level | LevelRequest) -> bool:
    """Return whether nothing of a level is left to be chosen."""
    if isinstance(level, Level):
        return True
    needs_sigma = level.family is None or not level.example.kernel.is_spline
    return None not in (level.family, level.ridge) and not (needs_sigma and level.sigma is None)


def survey(
    source: Source,
    settings: Settings,
    wanted: Collection[int] | None = None,
    limit: float = math.inf,
    *,
    bars: bool = True,
) -> Surveyed:
    """Choose the settings of a stored grid on a few of its chunks.

    Parameters
    ----------
    source
        The grid.
    settings
        Settings of the fit; what is ``auto`` is chosen.
    wanted
        Places of the axes that will be asked between their coordinates; None: all. Levels of the
        others have an arbitrary setting, and must be passed through.
    limit
        Bytes that may be in use, the program included.
    bars
        Whether error bars are needed. Without them, and with all settings and the mean given,
        nothing is read.

    Returns
    -------
    Surveyed
        The settings, as a stand-in of the whole grid.

    Raises
    ------
    ScatteredGapsError
        If cells of the chunks are missing.
    InputError
        If the grid cannot be read part by part, or panels do not fit into memory.
    SettingError
        If a setting is not possible, or not for a grid beyond memory.
    """
    ground = prepare(source, settings, wanted)
    plan = _plan(ground, limit, bars=bars)
    choice = _Choice(ground, bars=bars)
    for panel in plan.panels:
        choice.read(panel)
    return Surveyed(choice.stand_in(plan), plan, choice.mean, _describe(ground, plan.panels))


def unsurveyed(source: Source, settings: Settings, wanted: Collection[int] | None = None) -> Model:
    """Return a stand-in whose settings are arbitrary where they are not given; nothing is read.

    It tells what will be done, and is not to be answered from.
    """
    ground = prepare(source, settings, wanted)
    levels = [any_level(p, axis) for p, axis in zip(ground.plan.levels, ground.axes, strict=True)]
    poles, mean = ground.plan.poles, settings.centre or 0.0
    rows = None
    if poles is not None:
        sign = SIGNS.get(poles.kind, 1)
        rows = continue_rows(ground.axes, poles, sign, levels, None, mean)
    bars = no_bars(len(levels))
    return make_stand_in(ground, levels, mean, bars=bars, rows=rows, bounds=(None, ""), facts={})


class _Choice:
    """Levels of a grid and their error bars, chosen on one panel after the other."""

    def __init__(self, ground: Ground, *, bars: bool) -> None:
        self.ground, self.wants_bars = ground, bars
        self.known_mean = ground.settings.centre
        self.levels: dict[int, Level] = {}
        self.found: list[tuple[Panel, LevelBars | None, Continuation | None]] = []
        self.notes = coordinate_marks(ground.axes)
        self.bounds: list[tuple[Bounds | None, str]] = []

    @property
    def mean(self) -> float:
        """Value to which answers fall back."""
        assert self.known_mean is not None
        return self.known_mean

    def read(self, panel: Panel) -> None:
        """Read a panel and choose on it, or raise ScatteredGapsError if cells of it are missing."""
        grid = self.ground.grid(panel, labelled=True)
        if not grid.is_complete:
            raise ScatteredGapsError(
                f"'{grid.name}' has missing cells, {np.count_nonzero(~grid.observed)} in the part "
                "on which settings are chosen. Beyond memory, grids are taken whole: fill it "
                "first, land as well, or take all of it into memory.",
                setting="max_memory",
            )
        self._choose(panel, grid)

    def _choose(self, panel: Panel, grid: Grid) -> None:
        """Choose the levels of the axes along which a panel is whole."""
        grid.refuse_unsuitable()
        self.notes += filter(None, [mark_note(grid.name, grid.values)])
        ground = self.ground
        self.bounds.append(choose_bounds(ground.settings.bounds, grid))
        if self.known_mean is None:
            self.known_mean = float(np.mean(grid.values, dtype=np.float64))
        if not panel.whole:
            return
        poles = ground.plan.poles
        if poles is not None and not {poles.latitude, poles.longitude} <= {*panel.whole}:
            poles = None
        levels = tuple(self._level(panel, place) for place in range(len(grid.axes)))
        settings = replace(
            ground.settings, mean=self.mean, compact=False, dtype="float64", tolerance=None
        )
        settled = settle(grid, replace(ground.plan, levels=levels, poles=poles), settings)
        self.levels |= {place: settled.chosen.levels[place] for place in panel.whole}
        self.notes += settled.chosen.warnings
        bars = _panel_bars(panel, settled, settings) if self.wants_bars else None
        self.found.append((panel, bars, settled.poles))

    def _level(self, panel: Panel, place: int) -> Level | LevelRequest:
        """Return the level of an axis of a panel: to be chosen, chosen before, or arbitrary."""
        planned = self.ground.plan.levels[place]
        if place in panel.whole:
            return planned
        if place in panel.near:
            return self.levels[place]
        return planned if self.ground.axes[place].size == 1 else Level(planned.name, _ALONE)

    def stand_in(self, plan: SurveyPlan) -> Model:
        """Return the model of the whole grid without its values."""
        ground = self.ground
        levels = tuple(
            self.levels.get(place) or any_level(planned, axis)
            for place, (planned, axis) in enumerate(
                zip(ground.plan.levels, ground.axes, strict=True)
            )
        )
        return make_stand_in(
            ground,
            levels,
            self.mean,
            bars=self._bars(),
            rows=self._rows(levels),
            bounds=self._bounds(),
            facts={"notes": self.notes, SURVEYED: _describe(ground, plan.panels)},
        )

    def _rows(self, levels: Sequence[Level]) -> Continuation | None:
        """Return the rows across the poles: those of the panel, or as they are given."""
        poles = self.ground.plan.poles
        if poles is None:
            return None
        for panel, _, rows in self.found:
            if poles.latitude in panel.whole:
                return rows
        return continue_rows(self.ground.axes, poles, SIGNS[poles.kind], levels, None, self.mean)

    def _bars(self) -> LevelBars:
        """Return error bars: of each level, and of several together, by the panel that has them.

        Of levels that no panel has together, the variances are added up less the noise that is
        counted several times: as much of them as the levels of one panel show.
        """
        count = len(self.ground.axes)
        found = [(panel, bars) for panel, bars, _ in self.found if bars is not None]
        if not found:
            return no_bars(count)
        errors, scales = np.full(count, math.nan), np.full(count, math.nan)
        factors = np.ones((2,) * count)
        local: list[LocalScale | None] = [None] * count
        growth: list[LocalScale | None] = [None] * count
        for panel, own in found:
            for place in panel.whole:
                errors[place], scales[place] = own.errors[place], own.scales[place]
                local[place] = own.local[place] if own.local else None
                growth[place] = own.growth[place] if own.growth else None
        noise = _noise_share(found)
        for pattern in np.ndindex(factors.shape):
            asked = [place for place, between in enumerate(pattern) if between]
            factors[pattern] = _factor(found, asked, noise)
        for place, axis in enumerate(self.ground.axes):
            if axis.size == 1:
                errors[place] = scales[place] = 0.0
        by_place = (tuple(own) if any(own) else () for own in (local, growth))
        return LevelBars(errors, scales, factors, *by_place)

    def _bounds(self) -> tuple[Bounds | None, str]:
        """Return the bounds of answers, and what was decided, as far as panels tell."""
        if not self.bounds:
            source = self.ground.source
            empty = Grid(np.zeros(0), (), source.name, source.attrs, source.style)
            return bounds_asked(self.ground.settings.bounds, empty)[0], ""
        dropped = [found for found in self.bounds if found[0] is None]
        kept = [bounds for bounds, _ in self.bounds if bounds is not None]
        if dropped:
            return dropped[0]
        low, high = min(b.low for b in kept), max(b.high for b in kept)
        return Bounds(low, high), self.bounds[0][1]


def _noise_share(found: Sequence[tuple[Panel, LevelBars]]) -> float:
    """Return the share of noise in the errors of levels, as panels of several levels tell it.

    Noise in a cell is missed by every level but counts once: if errors are noise alone, the factor
    of two levels is half of that of each. 0 if no panel has two levels: error bars are then too
    wide where errors are mostly noise, by up to the root of the number of levels.
    """
    for panel, bars in found:
        pair = panel.whole[:2]
        if len(pair) == 2:
            alone = np.mean([_own_factor(bars, [place]) for place in pair])
            return float(np.clip(2.0 * (1.0 - _own_factor(bars, pair) / alone), 0.0, 1.0))
    return 0.0


def _factor(found: Sequence[tuple[Panel, LevelBars]], asked: Sequence[int], noise: float) -> float:
    """Return the factor of levels that are asked between coordinates together."""
    own = [_own_factor(bars, asked) for panel, bars in found if {*asked} <= {*panel.whole}]
    if own:
        return own[0]
    alone = [
        _own_factor(bars, [place])
        for panel, bars in found
        for place in panel.whole
        if place in asked
    ]
    if not alone:
        return 1.0
    return float(np.mean(alone)) * (1.0 - noise * (1.0 - 1.0 / len(alone)))


def _own_factor(bars: LevelBars, asked: Sequence[int]) -> float:
    """Return the factor of a pattern of levels by the bars of one panel."""
    return float(bars.factors[tuple(int(a in asked) for a in range(bars.factors.ndim))])


def _panel_bars(panel: Panel, settled: Settled, settings: Settings) -> LevelBars:
    """Return the error bars of a panel: its slices on their own are not asked between."""
    cascade = settled.fit(settings)
    alone = [a for a in range(cascade.ndim) if a not in (*panel.whole, *panel.near)]
    bars = calibrate(cascade, settled.poles, alone)
    assert isinstance(bars, LevelBars)
    return bars


def _describe(ground: Ground, panels: Sequence[Panel]) -> str:
    """Return on which part of a grid settings were chosen, in words; empty if on none."""
    parts = []
    for panel in panels:
        whole = [ground.axes[place].name for place in panel.whole]
        part = [
            f"{own.size} of {axis.size} {axis.name}"
            for own, axis in zip(panel.indices, ground.axes, strict=True)
            if own.size < axis.size
        ]
        if whole and part:
            parts.append(f"{', '.join(whole)} on {' and '.join(part)}")
    return f"settings chosen for {'; for '.join(parts)}" if parts else ""
