"""Rows of panels: the parts that pictures of fits and validations are made of.

A row has its title, its panels and one legend for them. Rows stand below each other in a figure; a
page shows the panels one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dkrls_cli.plots.style import DOTS, FULL_WIDTH, INK, new_figure, plain_text

# Width of a panel in mm from which on its labels have room: three are beside each other on a page.
_LEAST_WIDTH = 56.0

# Height of a panel in mm, of a title, and of a line of a legend.
_HEIGHT, _TITLE, _LEGEND_LINE = 58.0, 7.0, 4.2

# Width in mm of the mark of an entry in a legend with its gaps, and of a letter at 7 points.
_LEGEND_MARK, _LETTER = 11.0, 1.35


# Dots that an image may be high: one more than 65535 cannot be drawn. Many variables have so many.
_MOST_DOTS = 60_000.0

_MM = 25.4  # millimetres in an inch


class Row(Protocol):
    """A part of a figure as wide as the figure."""

    def height(self, width: float) -> float:
        """Return the height in mm at a width in mm."""

    def draw(self, figure: Any, width: float) -> None:
        """Draw it on a figure or a part of one, as wide as that."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One chart.

    Attributes
    ----------
    draw
        Draws it on axes of matplotlib.
    text
        What it shows, in a sentence for readers who do not see it.
    """

    draw: Callable[[Any], None]
    text: str


@dataclass(frozen=True, eq=False)
class PanelRow:
    """Charts beside each other, as many in a line as there is room for, and one legend below.

    Attributes
    ----------
    panels
        The charts.
    title
        Title of them all, empty for none.
    """

    panels: Sequence[Panel]
    title: str = ""

    def columns(self, width: float) -> int:
        """Return the number of panels in a line; all lines but the last have as many."""
        most = max(1, int(width / _LEAST_WIDTH))
        return math.ceil(len(self.panels) / math.ceil(len(self.panels) / most))

    def height(self, width: float) -> float:
        """Return the height in mm; lines of a legend are added when it is known."""
        lines = math.ceil(len(self.panels) / self.columns(width))
        return lines * _HEIGHT + (_TITLE if self.title else 0.0) + 3 * _LEGEND_LINE

    def draw(self, figure: Any, width: float) -> None:
        """Draw the panels."""
        if self.title:
            figure.suptitle(plain_text(self.title), fontsize=9.0, color=INK)
        columns = self.columns(width)
        lines = math.ceil(len(self.panels) / columns)
        every = list(figure.subplots(lines, columns, squeeze=False).ravel())
        for axes, panel in zip(every, self.panels, strict=False):
            panel.draw(axes)
        for axes in every[len(self.panels) :]:
            axes.remove()
        _add_legend(figure, every[: len(self.panels)], width)


def rows_figure(rows: Sequence[Row], width: float = FULL_WIDTH) -> Any:
    """Return the figure of rows below each other; `width` is in mm, and the height follows."""
    heights = [row.height(width) for row in rows]
    figure = new_figure(width, sum(heights))
    figure.set_dpi(min(DOTS, _MOST_DOTS * _MM / sum(heights)))
    parts = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=heights)
    for part, row in zip(parts.ravel(), rows, strict=True):
        row.draw(part, width)
    return figure


def _add_legend(figure: Any, every: Sequence[Any], width: float) -> None:
    """Add a legend below the panels, with every label once."""
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        each = _LEGEND_MARK + _LETTER * max(map(len, handles))
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=min(len(handles), max(1, int(width / each))),
            fontsize=7.0,
            handlelength=2.4,
            columnspacing=1.2,
        )
