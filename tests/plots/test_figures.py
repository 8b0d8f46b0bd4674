"""Figures: what is in their axes, and that nothing overlaps or is cut off."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.plots.figures import make_figure
from dkrls_cli.plots.pictures import FieldPanel, LinePanel, Picture, make_field
from dkrls_cli.plots.scales import Scale
from dkrls_cli.plots.style import DIVERGING, ERRORS, SEQUENTIAL, house_style

pytest.importorskip("matplotlib", reason="drawing needs the extra plot")

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
LAT = axis_of("lat", np.linspace(-60.0, 60.0, 9), NORTH)
LON = axis_of("lon", np.arange(0.0, 360.0, 30.0), EAST)
DEPTH = axis_of("depth", [5.0, 50.0, 500.0], {"units": "m", "positive": "down"})
TIME = Axis("time", 30.0 * np.arange(24), time=TimeScale("days since 2000-01-01", "360_day"))
SITE = text_axis("site", [f"station {i} north" for i in range(14)])


def field(*axes: Axis, scale: Scale | None = None, heading: str = "") -> FieldPanel:
    shape = [axis.size for axis in axes]
    values = np.arange(float(np.prod(shape))).reshape(shape)
    values[0, 1] = np.nan
    return make_field(axes, values, scale or Scale(0.0, values[-1, -1]), heading)


def drawn(picture: Picture | list[Picture], width: float = 180.0) -> Any:
    with house_style():
        figure = make_figure([picture] if isinstance(picture, Picture) else picture, width)
        figure.draw_without_rendering()
    return figure


def panels(figure: Any) -> list[Any]:
    """Axes that are no colour bars."""
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def ticks(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


def texts(figure: Any) -> list[Any]:
    """All texts that can be seen."""
    from matplotlib.text import Text

    return [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]


# Fields -------------------------------------------------------------------------------------------


def test_a_field_is_drawn_with_its_values_and_missing_cells_are_masked() -> None:
    shown = field(LAT, LON)
    figure = drawn(Picture("sst, 2000-01-01", "K", (shown,)))
    [panel] = panels(figure)
    [mesh] = panel.collections
    array = mesh.get_array()
    np.testing.assert_array_equal(array.mask, np.isnan(shown.values))
    np.testing.assert_array_equal(array.compressed(), shown.values[np.isfinite(shown.values)])
    assert mesh.get_clim() == (shown.scale.low, shown.scale.high)
    grey = panel.get_facecolor()[:3]
    assert grey[0] == grey[1] == grey[2]
    assert 0.6 < grey[0] < 0.9
    assert panel.patch.get_hatch()
    assert panel.get_xlim() == (-15.0, 345.0)
    assert panel.get_ylim() == (-67.5, 67.5)
    assert "60°W" in ticks(panel.xaxis)
    assert "30°S" in ticks(panel.yaxis)


def test_the_title_says_what_and_the_bar_has_units() -> None:
    figure = drawn(Picture("sst of $x$, 2000-01-01", "°C", (field(LAT, LON),)))
    said = [text.get_text() for text in texts(figure)]
    assert "sst of \\$x\\$, 2000-01-01" in said
    [bar] = [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    assert bar.get_xlabel() == "°C"
    assert ticks(bar.xaxis) == ["0", "20", "40", "60", "80", "100"]


@pytest.mark.parametrize(
    ("scale", "name"),
    [
        (Scale(0.0, 1.0), SEQUENTIAL),
        (Scale(-3.0, 3.0, "diverging"), DIVERGING),
        (Scale(0.0, 2.0, "errors"), ERRORS),
    ],
)
def test_colour_maps(scale: Scale, name: str) -> None:
    [panel] = panels(drawn(Picture("t", "", (field(LAT, LON, scale=scale),))))
    mesh = panel.collections[0]
    assert mesh.get_cmap().name == name
    assert mesh.get_clim() == (scale.low, scale.high)
    if name == DIVERGING:
        assert mesh.norm(0.0) == 0.5
        assert min(mesh.get_cmap()(0.5)[:3]) > 0.9  # zero is white


def test_depths_and_labels_run_downward_and_heights_upward() -> None:
    for axis, down in ((DEPTH, True), (SITE, True), (LAT, False)):
        [panel] = panels(drawn(Picture("t", "", (field(axis, TIME),))))
        assert bool(panel.yaxis_inverted()) is down
    assert panels(drawn(Picture("t", "", (field(DEPTH, TIME),))))[0].get_ylabel() == "depth [m]"


def test_dates_are_those_of_the_calendar() -> None:
    [panel] = panels(drawn(Picture("t", "", (field(LAT, TIME),))))
    shown = ticks(panel.xaxis)
    assert shown[:3] == ["Jan\n2000", "Apr", "Jul"]
    assert panel.get_xticks()[:5].tolist() == [0.0, 90.0, 180.0, 270.0, 360.0]
    [panel] = panels(drawn(Picture("t", "", (field(TIME, LON),))))
    assert "2000-07" in ticks(panel.yaxis)


@pytest.mark.parametrize(("width", "columns"), [(180.0, 3), (120.0, 2), (80.0, 1)])
def test_fields_stand_beside_each_other_where_there_is_room(width: float, columns: int) -> None:
    fields = tuple(field(LAT, LON, heading=word) for word in ("before", "after", "error"))
    found = panels(drawn(Picture("t", "K", fields), width))
    assert [panel.get_title() for panel in found] == ["before", "after", "error"]
    lefts = {round(panel.get_position().x0, 1) for panel in found}
    assert len(lefts) == columns


def test_several_pictures_are_rows() -> None:
    one, two = (Picture(word, "K", (field(LAT, LON),)) for word in ("one", "two"))
    alone, both = drawn(one), drawn([one, two])
    assert both.get_figheight() == pytest.approx(2 * alone.get_figheight())
    assert len(panels(both)) == 2


def test_more_cells_than_dots_are_not_all_drawn() -> None:
    many = axis_of("x", np.arange(7000.0))
    [panel] = panels(drawn(Picture("t", "", (field(DEPTH, many),))))
    assert panel.collections[0].get_array().shape == (3, 2334)
    assert panel.collections[0].get_rasterized()


# Lines --------------------------------------------------------------------------------------------


def line(axis: Axis, **more: Any) -> LinePanel:
    return LinePanel(axis, np.sin(axis.numbers / 99), **more)


def test_a_line_has_its_values_interval_and_data() -> None:
    middle = np.sin(TIME.numbers / 99)
    points = (TIME.numbers[:5], middle[:5] + 0.1)
    shown = line(TIME, low=middle - 1, high=middle + 1, points=points, label="model")
    figure = drawn(Picture("t", "K", line=shown))
    [panel] = panels(figure)
    curve, data = panel.lines
    np.testing.assert_array_equal(curve.get_xydata(), np.stack([TIME.numbers, middle], axis=1))
    np.testing.assert_array_equal(data.get_xydata(), np.stack(points, axis=1))
    edges = panel.collections[0].get_paths()[0].vertices
    assert (edges[:, 1].min(), edges[:, 1].max()) == (middle.min() - 1, middle.max() + 1)
    [legend] = [t for f in figure.subfigs for t in f.legends]
    assert [t.get_text() for t in legend.get_texts()] == ["90 % interval", "model", "data"]
    assert panel.get_ylabel() == "K"
    assert ticks(panel.xaxis)[0] == "Jan\n2000"


def test_a_profile_is_upright_and_points_down() -> None:
    middle = np.sin(DEPTH.numbers / 99)
    [panel] = panels(drawn(Picture("t", "K", line=line(DEPTH, low=middle - 1, high=middle + 1))))
    np.testing.assert_array_equal(panel.lines[0].get_ydata(), DEPTH.numbers)
    assert panel.yaxis_inverted()
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("K", "depth [m]")


def test_labels_are_not_joined() -> None:
    low = np.zeros(SITE.size)
    shown = line(SITE, low=low, high=low + 1, label="model")
    [panel] = panels(drawn(Picture("t", "K", line=shown)))
    [marks] = panel.lines
    assert marks.get_linestyle() == "None"
    assert len(panel.collections[0].get_segments()) == SITE.size


def test_single_values_between_missing_ones_are_marked() -> None:
    axis = axis_of("x", np.arange(200.0))
    values = np.zeros(200)
    values[[3, 5]] = np.nan
    [panel] = panels(drawn(Picture("t", "", line=LinePanel(axis, values))))
    assert panel.lines[1].get_xydata().tolist() == [[4.0, 0.0]]
    few = axis_of("x", np.arange(20.0))
    [panel] = panels(drawn(Picture("t", "", line=LinePanel(few, np.zeros(20)))))
    assert len(panel.lines[1].get_xydata()) == 20


# Texts --------------------------------------------------------------------------------------------

LONG = {"long_name": "a name of an axis that goes on for very many words and then some more"}
WORDS = text_axis("site", [f"{i} is a site whose name does not end" for i in range(5)], LONG)
FAR = axis_of("x", TIME.numbers, LONG)

CASES = {
    "long": Picture(
        "t" * 150, "units that take " * 6, (field(WORDS, axis_of("x", TIME.numbers, LONG)),)
    ),
    "map": Picture("sea surface temperature of a long name, 2000-01-01", "°C", (field(LAT, LON),)),
    "three": Picture("t", "K", tuple(field(LAT, LON, heading=word) for word in "abc")),
    "hovmoeller": Picture("t", "K", (field(SITE, TIME),)),
    "section": Picture("t", "kg m⁻²", (field(DEPTH, LAT),)),
    "large": Picture("t", "", (field(LAT, LON, scale=Scale(-1.5e7, 2.5e7)),)),
    "series": Picture("t", "K", line=line(TIME, label="model")),
    "profile": Picture("t", "K", line=line(DEPTH)),
    "labels": Picture("t", "K", line=line(SITE)),
}


@pytest.mark.parametrize("width", [80.0, 180.0])
@pytest.mark.parametrize("case", CASES)
def test_no_text_is_cut_off_or_overlaps_another(case: str, width: float) -> None:
    figure = drawn(CASES[case], width)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(figure)]
    assert len(boxes) > 4
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text
    for (one, first), (other, second) in combinations(boxes, 2):
        assert not first.overlaps(second), (one, other)
