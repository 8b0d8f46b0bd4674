"""Pictures of races: what is drawn where, and that methods can be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkrls_cli.bench.paper.entries import PAPER_METHODS
from dkrls_cli.bench.plots import PlotPoint, assign_looks, draw_race, make_figure, make_point
from dkrls_cli.errors import OutputError


def row(method: str, seconds: Any, error: Any, **more: Any) -> dict[str, Any]:
    given = {"dataset": "paper-2d", "settings": "", "paper_seconds": None, "paper_error": None}
    return {"method": method, "seconds": seconds, "max_error": error, **given, **more}


def crowd(count: int) -> list[dict[str, Any]]:
    """A third of the methods close together, as slow and inaccurate ones are."""
    rng = np.random.default_rng(1)
    spread = np.where(np.arange(count) % 3, 3.0, 0.5)
    seconds, errors = 10 ** (rng.normal(size=(2, count)) * spread / 2)
    return [row("dkrls", 0.01, 1e-7)] + [
        row(f"method-{i}", t, e, paper_seconds=9 * t if i % 2 else None, paper_error=2 * e)
        for i, (t, e) in enumerate(zip(seconds, errors, strict=True))
    ]


# Points -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (None, 1.0),
        (1.0, float("inf")),
        (1.0, None),
        (0.0, 1.0),
        (float("inf"), 1.0),
        (1.0, float("nan")),
    ],
)
def test_a_row_without_a_finite_error_and_a_positive_time_is_not_drawn(
    seconds: Any, error: Any
) -> None:
    point = make_point(row("a", seconds, error))
    assert (point.here, point.paper, point.is_drawn) == (None, None, False)


def test_a_row_has_a_point_here_and_one_in_the_paper() -> None:
    point = make_point(row("a", None, None, paper_seconds=3.0, paper_error=0.5))
    assert point == PlotPoint("a", False, None, (3.0, 0.5))
    assert point.is_drawn
    point = make_point(row("a", 2.0, 0.0, settings="searched"))
    assert point == PlotPoint("a", True, (2.0, 0.0), None)
    assert point.is_exact
    assert not make_point(row("a", 2.0, 0.1)).is_exact


# Looks --------------------------------------------------------------------------------------------


def lightness(colour: str) -> float:
    """Relative luminance of a colour (ITU-R BT.709)."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_all_methods_of_the_paper_can_be_told_apart_without_colours() -> None:
    looks = assign_looks(PAPER_METHODS)
    assert list(looks) == list(PAPER_METHODS)
    by_shape: dict[Any, list[float]] = {}
    for look in looks.values():
        by_shape.setdefault(look.shape, []).append(lightness(look.colour))
    assert all(len(tones) <= 2 for tones in by_shape.values())
    assert all(tones[1] - tones[0] > 0.2 for tones in by_shape.values() if len(tones) == 2)


def test_looks_depend_on_the_order_of_methods_only() -> None:
    looks = assign_looks(["b", "a", "b", "dkrls"])
    assert list(looks) == ["b", "a", "dkrls"]
    assert looks["b"] == assign_looks(["x"])["x"]
    assert looks["a"].shape != looks["b"].shape


def test_our_methods_have_shapes_and_a_colour_of_their_own() -> None:
    looks = assign_looks([*PAPER_METHODS, *(f"m{i}" for i in range(30))])
    ours = {name for name in looks if name.startswith("dkrls")}
    others = [look for name, look in looks.items() if name not in ours]
    assert len({looks[name].shape for name in ours}) == 3
    assert len({looks[name].colour for name in ours}) == 1
    for name in ours:
        assert looks[name].shape not in {look.shape for look in others}
        assert looks[name].colour not in {look.colour for look in others}


# Files --------------------------------------------------------------------------------------------


@pytest.fixture
def _matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="drawing needs the extra plot")


drawing = pytest.mark.usefixtures("_matplotlib")


def legends(figure: Any) -> list[list[str]]:
    return [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]


def marks(panel: Any) -> dict[tuple[float, float], Any]:
    """Lines that are marks, by their place."""
    lines = [line for line in panel.lines if line.get_marker() != "None"]
    return {tuple(line.get_xydata()[0]): line for line in lines}


@drawing
@pytest.mark.parametrize("count", [2, 24, 60])
def test_every_method_drawn_is_in_the_legend_beside_the_panel(count: int) -> None:
    figure = make_figure(crowd(count))
    names, _ = legends(figure)
    assert names == ["dkrls", *(f"method-{i}" for i in range(count))]
    figure.draw_without_rendering()
    panel, box = figure.axes[0].bbox, figure.legends[0].get_window_extent()
    assert box.x0 >= panel.x1
    assert box.x1 <= figure.bbox.x1 + 1
    assert box.y0 >= 0
    assert panel.width > 0.5 * figure.bbox.width


@drawing
def test_the_legend_shows_marks_as_they_are_drawn() -> None:
    figure = make_figure([row("norma", 2.0, 0.5), row("dkrls", 1.0, 0.1)])
    for handle, line in zip(
        figure.legends[0].legend_handles, marks(figure.axes[0]).values(), strict=True
    ):
        assert handle.get_marker() == line.get_marker()
        assert handle.get_markerfacecolor() == line.get_markerfacecolor()


@drawing
def test_settings_and_the_paper_differ_in_rim_and_fill() -> None:
    rows = [
        row("norma", 2.0, 0.5, settings="paper", paper_seconds=40.0, paper_error=1.05),
        row("norma", 3.0, 0.6, settings="searched"),
    ]
    figure = make_figure(rows)
    at = marks(figure.axes[0])
    here, searched, paper = at[2.0, 0.5], at[3.0, 0.6], at[40.0, 1.05]
    assert here.get_marker() == searched.get_marker() == paper.get_marker()
    assert here.get_markerfacecolor() == searched.get_markerfacecolor()
    assert (here.get_markeredgecolor(), searched.get_markeredgecolor()) == ("white", "black")
    assert paper.get_markerfacecolor() == "none"
    assert paper.get_markeredgecolor() == here.get_markerfacecolor()
    assert legends(figure)[1] == [
        "measured here",
        "measured here, searched settings",
        "published in the paper",
    ]
    joined = [line for line in figure.axes[0].lines if len(line.get_xydata()) == 2]
    assert [line.get_xydata().tolist() for line in joined] == [[[2.0, 0.5], [40.0, 1.05]]]


@drawing
def test_kinds_of_marks_that_are_not_there_are_not_in_the_legend() -> None:
    figure = make_figure([row("norma", 2.0, 0.5, settings="searched")])
    assert legends(figure) == [["norma"], ["measured here, searched settings"]]


@drawing
def test_an_error_of_zero_is_drawn_at_the_lower_edge_and_named() -> None:
    panel = make_figure([row("exact", 1.0, 0.0), row("linear", 2.0, 1e-3)]).axes[0]
    low, high = panel.get_ylim()
    heights = sorted(line.get_ydata()[0] for line in panel.lines)
    assert low < heights[0] < 1e-4
    assert heights[1] == 1e-3 < high
    assert "at the lower edge, with an error of 0: exact" in panel.get_xlabel()


@drawing
def test_all_points_are_inside_the_panel() -> None:
    for rows in (crowd(9), [row("a", 5.0, 0.2)], [row("a", 1.0, 0.0)]):
        panel = make_figure(rows).axes[0]
        (left, right), (low, high) = panel.get_xlim(), panel.get_ylim()
        for line in panel.lines:
            assert ((left < line.get_xdata()) & (line.get_xdata() < right)).all()
            assert ((low < line.get_ydata()) & (line.get_ydata() < high)).all()


@drawing
def test_methods_that_are_not_drawn_are_named_once_and_not_in_the_legend() -> None:
    rows = [row("lost", 1.0, float("nan")), row("lost", None, 1.0), row("linear", 2.0, 1e-3)]
    figure = make_figure(rows)
    text = figure.axes[0].get_xlabel()
    assert text.endswith("not shown, without a finite error or time: lost")
    assert legends(figure)[0] == ["linear"]


@drawing
def test_every_dataset_has_a_panel_and_all_share_the_looks() -> None:
    names = ("paper-2d", "paper-3d", "cross")
    rows = [row(m, 1.0, 1e-3, dataset=name) for name in names for m in ("linear", "rbf")]
    figure = make_figure(rows)
    panels = [panel for panel in figure.axes if panel.axison]
    assert len(figure.axes) == 4
    assert [panel.get_title("left") for panel in panels] == list(names)
    shapes = [[line.get_marker() for line in panel.lines] for panel in panels]
    assert shapes[0] == shapes[1] == shapes[2]
    assert legends(figure)[0] == ["linear", "rbf"]


@pytest.mark.slow
@drawing
@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_equal_rows_give_equal_files(tmp_path: Path, suffix: str, start: bytes) -> None:
    one, two = (tmp_path / f"{name}{suffix}" for name in "ab")
    for path in (one, two):
        draw_race(crowd(4), path, overwrite=True)
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(start)
    assert sorted(tmp_path.iterdir()) == [one, two]
    with pytest.raises(OutputError, match="exists already"):
        draw_race(crowd(4), one, overwrite=False)


@drawing
@pytest.mark.parametrize("rows", [[], [row("lost", None, None)], [row("exact", 1.0, 0.0)]])
def test_few_rows_or_none_are_drawn(tmp_path: Path, rows: Any) -> None:
    draw_race(rows, tmp_path / "race.png", overwrite=True)
    assert (tmp_path / "race.png").stat().st_size > 1000
