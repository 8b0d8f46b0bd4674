"""Panels stand beside each other where there is room, and share one legend."""

from __future__ import annotations

from typing import Any

import pytest

from dkrls_cli.plots.reports.panels import Panel, PanelRow, rows_figure

pytest.importorskip("matplotlib", reason="drawing needs the extra plot")


def line(label: str) -> Panel:
    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], label=label)
        axes.plot([0, 1], [1, 0], label="both")

    return Panel(draw, f"line {label}")


@pytest.mark.parametrize(
    ("count", "width", "columns"),
    [(1, 180, 1), (2, 180, 2), (3, 180, 3), (4, 180, 2), (5, 180, 3), (7, 180, 3), (3, 80, 1)],
)
def test_a_line_has_as_many_panels_as_there_is_room_for(
    count: int, width: float, columns: int
) -> None:
    row = PanelRow([line(str(i)) for i in range(count)])
    assert row.columns(width) == columns
    figure = rows_figure([row], width)
    axes = [one for part in figure.subfigs for one in part.axes]
    assert len(axes) == count
    assert len({one.get_subplotspec().colspan.start for one in axes}) == columns


def test_rows_stand_below_each_other_at_the_width_that_is_asked_for() -> None:
    rows = [PanelRow([line("a")], "first $ row"), PanelRow([line("b")])]
    figure = rows_figure(rows, 100)
    width, height = figure.get_size_inches() * 25.4
    assert width == pytest.approx(100)
    assert height == pytest.approx(sum(row.height(100) for row in rows))
    assert rows[0].height(100) > rows[1].height(100)
    titles = [part._suptitle and part._suptitle.get_text() for part in figure.subfigs]
    assert titles == [r"first \$ row", None]


def test_a_legend_has_every_label_once() -> None:
    figure = rows_figure([PanelRow([line("a"), line("b")])])
    (part,) = figure.subfigs
    (legend,) = part.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "both", "b"]


def test_a_row_without_labels_has_no_legend() -> None:
    figure = rows_figure([PanelRow([Panel(lambda axes: axes.plot([0, 1]), "")])])
    assert figure.subfigs[0].legends == []


@pytest.mark.parametrize(("letters", "columns"), [(4, 3), (30, 3), (60, 1), (300, 1)])
def test_a_legend_has_as_many_columns_as_its_longest_label_leaves_room_for(
    letters: int, columns: int
) -> None:
    figure = rows_figure([PanelRow([line("a"), line("b" * letters)])], 180)
    assert figure.subfigs[0].legends[0]._ncols == columns


class High:
    """A row of five metres."""

    def height(self, width: float) -> float:
        return 5000.0

    def draw(self, figure: Any, width: float) -> None:
        pass


def test_a_figure_of_very_many_rows_has_fewer_dots() -> None:
    one, many = (rows_figure([High()] * count, 180) for count in (1, 3))
    assert one.get_dpi() == 200
    assert 59_000 < many.get_dpi() * many.get_size_inches()[1] <= 60_001
