"""Pictures as figures of matplotlib: maps, sections and lines, one row for each variable."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import place_of
from dkrls_cli.plots import style
from dkrls_cli.plots.labels import axis_text, points_down
from dkrls_cli.plots.pictures import FieldPanel, LinePanel, Picture
from dkrls_cli.plots.scales import Scale
from dkrls_cli.plots.slices import cell_edges, proportion
from dkrls_cli.plots.style import plain_text
from dkrls_cli.plots.ticks import Tick, axis_ticks, label_contexts, number_ticks

# Width in mm of a letter of a tick, a label and a title: DejaVu Sans at 7.5, 8 and 9 points.
_LETTER, _LABEL_LETTER, _TITLE_LETTER = 1.65, 1.75, 1.95

# Height in mm of a line of text, of a colour bar with its ticks and label, and of a line chart.
_TEXT, _BAR, _CHART = 4.5, 15.0, 60.0

# Height in mm of a colour bar itself.
_BAR_HEIGHT = 2.8

# Width in mm that labels beside a panel take, and the least width of a panel with its labels.
_BESIDE, _LEAST_PANEL = 14.0, 50.0

# Distance in mm from one tick to the next upward, at least.
_BETWEEN_TICKS = 5.5

# Coordinates of an axis that are drawn at most: more cells than dots cannot be seen.
_MOST_CELLS = 3000

# Cells from which on a field in a vector file is stored as an image, so that the file stays small.
_MANY_CELLS = 5000

# Values from which on the marks of a line would hide it.
_MANY_VALUES = 80

_COLOURS = {
    "sequential": style.SEQUENTIAL,
    "diverging": style.DIVERGING,
    "errors": style.ERRORS,
}


def make_figure(pictures: Sequence[Picture], width: float = style.FULL_WIDTH) -> Any:
    """Return a figure of one picture, or of several in rows.

    Parameters
    ----------
    pictures
        What is shown. Fields of a picture stand beside each other where there is room for them.
    width
        Width in mm; the height follows.
    """
    heights = [picture_height(picture, width) for picture in pictures]
    figure = style.new_figure(width, sum(heights))
    rows = figure.subfigures(len(pictures), 1, squeeze=False, height_ratios=heights)
    for row, picture, height in zip(rows.ravel(), pictures, heights, strict=True):
        draw_picture(row, picture, width, height)
    return figure


def draw_picture(row: Any, picture: Picture, width: float, height: float) -> None:
    """Draw a picture on a part of a figure whose size in mm is given."""
    row.suptitle("\n".join(_title_lines(picture.title, width)), fontsize=9.0, color=style.INK)
    if picture.line is not None:
        _draw_line(row, picture.line, picture, width, height)
        return
    columns = _columns(picture, width)
    lines = math.ceil(len(picture.fields) / columns)
    panels = list(row.subplots(lines, columns, squeeze=False).ravel())
    for panel, field in zip(panels, picture.fields, strict=False):
        _draw_field(row, panel, field, picture.units, _panel_size(field, width, columns))
    for panel in panels[len(picture.fields) :]:
        panel.remove()


def _wrap(text: str, width: float) -> str:
    """Return a label in two lines at most that fit a width in mm; the rest is cut off."""
    letters = max(8, int(width / _LABEL_LETTER))
    lines = textwrap.wrap(text, letters, max_lines=2, placeholder=" …")
    return "\n".join(map(plain_text, lines))


def _title_lines(title: str, width: float) -> list[str]:
    """Return a title in lines that fit a width in mm."""
    return [plain_text(line) for line in textwrap.wrap(title, int(width / _TITLE_LETTER))]


# Sizes --------------------------------------------------------------------------------------------


def _columns(picture: Picture, width: float) -> int:
    """Return how many fields stand beside each other."""
    return max(1, min(len(picture.fields), int(width / _LEAST_PANEL)))


def picture_height(picture: Picture, width: float) -> float:
    """Return the height of a picture in mm."""
    title = _TEXT * (1 + len(_title_lines(picture.title, width)))
    if picture.line is not None:
        return title + _chart_height(picture.line.axis, width) + 4 * _TEXT
    columns = _columns(picture, width)
    lines = math.ceil(len(picture.fields) / columns)
    around = _BAR + 2 * _TEXT + (_TEXT if picture.fields[0].heading else 0.0)
    tallest = max(_panel_size(field, width, columns)[1] for field in picture.fields)
    return title + lines * (tallest + around)


def _chart_height(axis: Axis, width: float) -> float:
    upright = 1.4 if place_of(axis) == "vertical" else 1.0
    return upright * min(_CHART, 0.7 * width)


def _panel_size(field: FieldPanel, width: float, columns: int) -> tuple[float, float]:
    """Return width and height of a panel in mm."""
    across = max(width / columns - _BESIDE - _label_width(field.axes[0]), 20.0)
    return across, across * proportion(*field.axes)


def _label_width(axis: Axis) -> float:
    """Return the width in mm that labels of an axis upward take beyond the usual one."""
    if axis.labels is None:
        return 0.0
    longest = max(len(tick.text) for tick in axis_ticks(axis, *_span(axis), axis.size))
    return _LETTER * max(0, longest - 6)


def _span(axis: Axis) -> tuple[float, float]:
    edges = cell_edges(axis)
    return float(edges[0]), float(edges[-1])


# Fields -------------------------------------------------------------------------------------------


def _draw_field(
    figure: Any, panel: Any, field: FieldPanel, units: str, size: tuple[float, float]
) -> None:
    """Draw values by colours, with axes and a colour bar; missing cells are grey."""
    up, right, values = _thin(field)
    mesh = panel.pcolormesh(
        cell_edges(right),
        cell_edges(up),
        np.ma.masked_invalid(values),
        cmap=_COLOURS[field.scale.palette],
        vmin=field.scale.low,
        vmax=field.scale.high,
        rasterized=values.size > _MANY_CELLS,
    )
    panel.set_facecolor(style.MISSING)
    panel.patch.set(hatch=style.HATCH, edgecolor=style.HATCH_COLOUR, linewidth=0.0)
    if field.heading:
        panel.set_title(field.heading, fontsize=8.0, color=style.INK)
    set_ticks_right(panel, right, size[0])
    _set_ticks_up(panel, up, size[1])
    if points_down(up) or up.labels is not None:
        panel.invert_yaxis()
    _add_bar(figure, panel, mesh, field.scale, units, size[0])


def _thin(field: FieldPanel) -> tuple[Axis, Axis, Array]:
    """Return the axes and values of a field, without cells that are far smaller than a dot."""
    steps = [math.ceil(axis.size / _MOST_CELLS) for axis in field.axes]
    up, right = (
        axis.take(np.arange(0, axis.size, step))
        for axis, step in zip(field.axes, steps, strict=True)
    )
    return up, right, field.values[:: steps[0], :: steps[1]]


def _add_bar(figure: Any, panel: Any, mesh: Any, scale: Scale, units: str, width: float) -> None:
    """Add a colour bar below a panel."""
    bar = figure.colorbar(mesh, ax=panel, location="bottom", aspect=width / _BAR_HEIGHT, pad=0.03)
    ticks = number_ticks(scale.low, scale.high, 7, 0.9 * width / _LETTER)
    bar.set_ticks([tick.number for tick in ticks], labels=[_minus(tick.text) for tick in ticks])
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.4)
    if units:
        bar.set_label(_wrap(units, width))


# Axes ---------------------------------------------------------------------------------------------


def set_ticks_right(panel: Any, axis: Axis, width: float) -> None:
    """Set the ticks and the label of the axis from left to right."""
    low, high = sorted(panel.get_xlim())
    ticks = axis_ticks(axis, low, high, 12, width / _LETTER)
    panel.set_xticks([tick.number for tick in ticks], labels=_two_lines(ticks, axis))
    panel.set_xlabel(_wrap(axis_text(axis), 0.8 * width))


def _set_ticks_up(panel: Any, axis: Axis, height: float) -> None:
    """Set the ticks and the label of the axis upward."""
    low, high = sorted(panel.get_ylim())
    ticks = axis_ticks(axis, low, high, max(2, int(height / _BETWEEN_TICKS)))
    labels = [_label(tick.text, axis) for tick in ticks]
    panel.set_yticks([tick.number for tick in ticks], labels=labels)
    panel.set_ylabel(_wrap(axis_text(axis), height))


def _two_lines(ticks: Sequence[Tick], axis: Axis) -> list[str]:
    """Return the labels from left to right, their context in a second line where it changes."""
    pairs = zip(ticks, label_contexts(ticks), strict=True)
    return [f"{_label(tick.short, axis)}\n{context}".rstrip("\n") for tick, context in pairs]


def _label(text: str, axis: Axis) -> str:
    """Return the label of a tick: a text of the file as it is, a number with a minus sign."""
    return plain_text(text) if axis.labels is not None else _minus(text, axis)


def _minus(text: str, axis: Axis | None = None) -> str:
    """Return a number with a minus sign in place of the hyphen; dates keep theirs."""
    dated = axis is not None and axis.time is not None
    return text if dated else text.replace("-", "\N{MINUS SIGN}")


# Lines --------------------------------------------------------------------------------------------


def _draw_line(figure: Any, line: LinePanel, picture: Picture, width: float, height: float) -> None:
    """Draw a line with its interval and the data; a profile of the vertical is upright."""
    panel = figure.subplots()
    upright = place_of(line.axis) == "vertical"
    _plot_line(panel, line, upright)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(linewidth=0.4, color="0.9")
    panel.set_axisbelow(True)
    across, up = width - _BESIDE - 8, height - 6 * _TEXT
    label = _wrap(picture.units, across if upright else up)
    if upright:
        _set_ticks_up(panel, line.axis, up)
        panel.set_xlabel(label)
        _set_values(panel.set_xticks, panel.get_xlim(), 10, across / _LETTER)
        if points_down(line.axis):
            panel.invert_yaxis()
    else:
        set_ticks_right(panel, line.axis, across)
        panel.set_ylabel(label)
        _set_values(panel.set_yticks, panel.get_ylim(), max(2, int(up / _BETWEEN_TICKS)))
    handles, labels = panel.get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _set_values(
    set_ticks: Any, limits: tuple[float, float], most: int, room: float = math.inf
) -> None:
    """Set the ticks of values at round numbers."""
    ticks = number_ticks(min(limits), max(limits), most, room)
    set_ticks([tick.number for tick in ticks], labels=[_minus(tick.text) for tick in ticks])


def _plot_line(panel: Any, line: LinePanel, upright: bool) -> None:
    """Draw values, interval and data; text labels have no line from one to the next."""
    numbers = line.axis.numbers
    if line.low is not None and line.high is not None:
        _plot_interval(panel, line, upright)
    marks = _marked(line)
    label = line.label or None
    if line.axis.labels is None:
        panel.plot(*_turned(numbers, line.values, upright), color=style.ACCENT, label=label)
        label = None
    if marks.any():
        kind: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.5}
        places = _turned(numbers[marks], line.values[marks], upright)
        panel.plot(*places, color=style.ACCENT, label=label, **kind)
    if line.points is not None:
        panel.plot(
            *_turned(*line.points, upright),
            linestyle="none",
            marker="o",
            markersize=3.0,
            markerfacecolor="none",
            markeredgecolor=style.SECOND,
            markeredgewidth=0.8,
            label="data",
        )


def _plot_interval(panel: Any, line: LinePanel, upright: bool) -> None:
    """Draw the interval around a line: a band, or bars at text labels."""
    numbers, label = line.axis.numbers, "90 % interval"
    if line.axis.labels is not None:
        bars = panel.hlines if upright else panel.vlines
        bars(numbers, line.low, line.high, color=style.BAND, alpha=0.4, linewidth=3, label=label)
        return
    between = panel.fill_betweenx if upright else panel.fill_between
    between(numbers, line.low, line.high, color=style.BAND, alpha=0.25, linewidth=0, label=label)


def _marked(line: LinePanel) -> Any:
    """Return which values get a mark: few ones, text labels, and those without a neighbour."""
    known = np.isfinite(line.values)
    beside = np.pad(known, 1)
    alone = known & ~beside[:-2] & ~beside[2:]
    few = not line.label and known.size <= _MANY_VALUES
    return known if line.axis.labels is not None or few else alone


def _turned(along: Array, values: Array, upright: bool) -> tuple[Array, Array]:
    return (values, along) if upright else (along, values)
