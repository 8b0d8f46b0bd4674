"""Pictures of races. Drawn with matplotlib, which is optional, in the style of all pictures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.bench.paper.entries import AUTO, RECURSIVE, SEARCHED
from dkrls_cli.plots.style import new_figure, write_figure

PlotRow = Mapping[str, Any]

Shape = str | tuple[int, int, float]
"""A marker of matplotlib: its letter, or the tips, kind and angle of a star."""

_OUR_COLOUR = "#D55E00"
_OUR_SHAPES = {DKRLS: "*", AUTO: "P", RECURSIVE: "h"}
"""Shapes of this package's methods, which no other method has."""

_SHAPES: tuple[Shape, ...] = (*"osD^v<>pXd", (4, 1, 0))
_TONES = (
    ("#0072B2", "#00875A", "#8E4BA8", "#6B6B6B", "#8A6D00"),
    ("#F0C000", "#7CC8F2", "#F2A7D0", "#B8B8B8", "#98DF8A"),
)
"""Dark colours for the first methods and light ones for those that use the shapes a second time.

Within a tone every method has a shape of its own, and equal shapes differ in tone, so methods can
be told apart in grey and by colour-blind readers. The colours are based on Okabe and Ito's."""

# Width and height of a panel in mm: legible at the width of a page.
_PANEL = (162.5, 132.0)

# Width in mm of a column of the legend, most names in a column, and font size in points: a full
# column is as high as a panel.
_LEGEND_WIDTH, _LEGEND_NAMES, _LEGEND_SIZE = 38.0, 28, 8.0

# Size of a mark in points, and of stars, which look smaller than other shapes of their size.
_MARK = 7.0
_STARS: dict[Shape, float] = {"*": 13.0, (4, 1, 0): 10.0}

Point = tuple[float, float]


@dataclass(frozen=True)
class Look:
    """The shape and colour of a method's marks."""

    shape: Shape
    colour: str

    @property
    def size(self) -> float:
        """Size of a mark in points."""
        return _STARS.get(self.shape, _MARK)


@dataclass(frozen=True)
class PlotPoint:
    """A row as it is drawn.

    Attributes
    ----------
    method
        Name of the method.
    searched
        Whether its settings were searched.
    here, paper
        Seconds and error, measured here and published in the paper; None if they cannot be drawn.
    """

    method: str
    searched: bool
    here: Point | None
    paper: Point | None

    @property
    def is_drawn(self) -> bool:
        """Whether there is anything to draw."""
        return self.here is not None or self.paper is not None

    @property
    def is_exact(self) -> bool:
        """Whether the error is 0, which a logarithmic axis cannot show."""
        return self.here is not None and self.here[1] == 0


def draw_race(rows: Sequence[PlotRow], path: Path, *, overwrite: bool) -> None:
    """Draw the largest error of every row against its time of learning, one panel per dataset.

    Parameters
    ----------
    rows
        With dataset, method, settings, seconds, max_error, paper_seconds and paper_error, each
        None or NaN if there is none. The paper's results are drawn hollow.
    path
        The picture to write: .png, .svg or .pdf. Equal rows give equal files.
    overwrite
        Whether an existing file may be replaced.

    Raises
    ------
    SettingError
        If the suffix is another one.
    OutputError
        If matplotlib is not installed, or the file exists and must not be replaced, or cannot be
        written.
    """
    write_figure(lambda: make_figure(rows), path, overwrite=overwrite)


def make_figure(rows: Sequence[PlotRow]) -> Any:
    """Return the figure of all rows: up to two panels beside each other, and one legend."""
    datasets = list(dict.fromkeys(str(row["dataset"]) for row in rows))
    looks = assign_looks([str(row["method"]) for row in rows])
    columns = min(max(len(datasets), 1), 2)
    lines = max(math.ceil(len(datasets) / columns), 1)
    beside = math.ceil(len(looks) / _LEGEND_NAMES)
    figure = new_figure(_PANEL[0] * columns + _LEGEND_WIDTH * beside, _PANEL[1] * lines)
    panels = list(figure.subplots(lines, columns, squeeze=False).ravel())
    for panel, name in zip(panels, datasets, strict=False):
        points = [make_point(row) for row in rows if row["dataset"] == name]
        _draw_panel(panel, name, points, looks)
    for panel in panels[len(datasets) :]:
        panel.set_axis_off()
    _add_legends(figure, [make_point(row) for row in rows], looks, beside)
    return figure


def assign_looks(methods: Sequence[str]) -> dict[str, Look]:
    """Return the look of every method, in the order in which they first appear."""
    looks: dict[str, Look] = {}
    others = 0
    for method in dict.fromkeys(methods):
        if method in _OUR_SHAPES:
            looks[method] = Look(_OUR_SHAPES[method], _OUR_COLOUR)
            continue
        tone, place = divmod(others, len(_SHAPES))
        colours = _TONES[tone % len(_TONES)]
        looks[method] = Look(_SHAPES[place], colours[(place + tone) % len(colours)])
        others += 1
    return looks


def make_point(row: PlotRow) -> PlotPoint:
    """Return a row as it is drawn."""
    return PlotPoint(
        method=str(row["method"]),
        searched=row.get("settings") == SEARCHED,
        here=_position(row.get("seconds"), row.get("max_error")),
        paper=_position(row.get("paper_seconds"), row.get("paper_error")),
    )


def _position(seconds: Any, error: Any) -> Point | None:
    """Return time and error, or None if the time is not positive or one is not finite."""
    time, height = _as_float(seconds), _as_float(error)
    return (time, height) if 0 < time < math.inf and math.isfinite(height) else None


def _as_float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _draw_panel(
    panel: Any, dataset: str, points: Sequence[PlotPoint], looks: Mapping[str, Look]
) -> None:
    """Draw axes and marks of one dataset, and name the methods that cannot be shown."""
    panel.set_title(dataset, loc="left", fontweight="bold")
    panel.set(xscale="log", yscale="log", xlabel="seconds to learn", ylabel="largest error")
    panel.grid(which="major", linewidth=0.4, color="0.9")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    _set_limits(panel, points)
    for point in points:
        _draw_marks(panel, point, looks[point.method])
    hidden = dict.fromkeys(point.method for point in points if not point.is_drawn)
    exact = dict.fromkeys(point.method for point in points if point.is_exact)
    notes = [
        f"{what}: {', '.join(names)}"
        for what, names in (
            ("at the lower edge, with an error of 0", exact),
            ("not shown, without a finite error or time", hidden),
        )
        if names
    ]
    if notes:
        text = "\n".join(textwrap.fill(note, 90) for note in notes)
        panel.set_xlabel(f"seconds to learn\n\n{text}")


def _set_limits(panel: Any, points: Sequence[PlotPoint]) -> None:
    """Set the range of both axes, with room around the points and for errors of 0 below."""
    places = [place for point in points for place in (point.here, point.paper) if place]
    times = [time for time, _ in places] or [1.0]
    errors = [error for _, error in places if error > 0] or [1.0]
    exact = any(point.is_exact for point in points)
    panel.set_xlim(min(times) / 2, max(times) * 2)
    panel.set_ylim(min(errors) / (100 if exact else 2.5), max(errors) * 2.5)


def _draw_marks(panel: Any, point: PlotPoint, look: Look) -> None:
    """Draw the marks of a row, here and in the paper, and a line between them."""
    here, paper = (_above_edge(panel, place) for place in (point.here, point.paper))
    if here and paper:
        panel.plot(*zip(here, paper, strict=True), color=look.colour, linewidth=0.6, alpha=0.5)
    if here:
        panel.plot(*here, **_mark_style(look, searched=point.searched))
    if paper:
        panel.plot(*paper, **_mark_style(look, hollow=True))


def _mark_style(look: Look, searched: bool = False, hollow: bool = False) -> dict[str, Any]:
    """Return how marks are drawn: filled, with a black rim if searched, or hollow."""
    ours = look.colour == _OUR_COLOUR
    rim = look.colour if hollow else "black" if searched else "white"
    return {
        "linestyle": "none",
        "marker": look.shape,
        "markersize": look.size,
        "markerfacecolor": "none" if hollow else look.colour,
        "markeredgecolor": rim,
        "markeredgewidth": 1.2 if hollow or searched else 0.5,
        "zorder": 4 if ours else 3,
    }


def _above_edge(panel: Any, place: Point | None) -> Point | None:
    """Return a place, an error of 0 moved to just above the lower edge."""
    return place and (place[0], place[1] or 1.5 * panel.get_ylim()[0])


def _add_legends(
    figure: Any, points: Sequence[PlotPoint], looks: Mapping[str, Look], columns: int
) -> None:
    """Add a legend of the methods on the right, and one of the kinds of marks below."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"frameon": False, "fontsize": _LEGEND_SIZE}
    drawn = {point.method for point in points if point.is_drawn}
    methods = {name: look for name, look in looks.items() if name in drawn}
    if methods:
        marks = [Line2D([], [], **_mark_style(look)) for look in methods.values()]
        figure.legend(marks, list(methods), loc="outside right upper", ncols=columns, **style)
    here = [point for point in points if point.here]
    kinds = {
        "measured here": any(not point.searched for point in here),
        "measured here, searched settings": any(point.searched for point in here),
        "published in the paper": any(point.paper for point in points),
    }
    shown = [kind for kind, there in kinds.items() if there]
    if shown:
        marks = [
            Line2D([], [], **_mark_style(Look("o", "0.5"), "searched" in kind, "paper" in kind))
            for kind in shown
        ]
        figure.legend(marks, shown, loc="outside lower center", ncols=len(shown), **style)
