"""Pictures as text: exact small ones, and that no line is wider than the terminal."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.plots.pictures import LinePanel, Picture, make_field
from dkrls_cli.plots.scales import Scale
from dkrls_cli.plots.terminal import Terminal, draw_text, printable, sampled, text_width

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
LAT = axis_of("lat", [-15.0, -5.0, 5.0, 15.0], NORTH)
LON = axis_of("lon", np.arange(5.0, 160.0, 10.0), EAST)
DEPTH = axis_of("depth", np.arange(100.0, 900.0, 100.0), {"units": "m", "positive": "down"})
TIME = Axis("time", 30.0 * np.arange(24), time=TimeScale("days since 2000-01-01", "360_day"))

CODES = re.compile(r"\x1b\[[\d;]*m")


def rising(*axes: Axis, title: str = "t", units: str = "K") -> Any:
    values = np.arange(float(axes[0].size * axes[1].size)).reshape([axis.size for axis in axes])
    values[0, 0] = np.nan
    return Picture(title, units, (make_field(axes, values, Scale(-1e-9, values.max())),))


# Fields -------------------------------------------------------------------------------------------


def test_a_small_map_in_shades() -> None:
    values = np.tile(np.arange(16.0), (4, 1))
    values[0, :3] = np.nan
    picture = Picture("sst, 2000-01-01", "°C", (make_field((LAT, LON), values, Scale(0, 15)),))
    assert draw_text(picture, Terminal(37)).splitlines() == [
        "sst, 2000-01-01",
        "20°N ....::::--====++++**####%%%%@@@@",
        "     ....::::--====++++**####%%%%@@@@",
        "     ....::::--====++++**####%%%%@@@@",
        "     ....::::--====++++**####%%%%@@@@",
        "20°S       ::--====++++**####%%%%@@@@",
        "     0°     45°E     90°E    135°E",
        "0 .:-=+*#%@ 15 °C  blank: missing",
    ]


def test_labels_stand_below_their_cells() -> None:
    lon = axis_of("lon", np.arange(100.0, 181.0, 10.0), EAST)
    values = np.zeros((4, 9))
    values[:, 2] = 1.0  # 120 degrees east
    picture = Picture("t", "", (make_field((LAT, lon), values, Scale(0.0, 1.0)),))
    _, first, *_, ticks, _ = draw_text(picture, Terminal(60)).splitlines()
    dark = [place for place, letter in enumerate(first) if letter == "@"]
    middle = ticks.index("120°E") + len("120°E") / 2
    assert abs(middle - (dark[0] + dark[-1] + 1) / 2) <= 1


def test_half_blocks_have_the_colours_of_two_rows() -> None:
    axes = (axis_of("y", np.arange(8.0)), axis_of("x", np.arange(10.0)))
    values = np.repeat(np.arange(8.0)[:, None], 10, axis=1)
    picture = Picture("t", "", (make_field(axes, values, Scale(0.0, 7.0)),))
    text = draw_text(picture, Terminal(12, 2**24)).splitlines()
    rows = [line for line in text if "▀" in line][:-1]
    assert len(rows) == 4
    assert all(line.count("▀") == 10 for line in rows)
    assert "\x1b[38;2;253;231;37m" in rows[0]  # the top is the largest value
    assert "\x1b[48;2;68;1;84m" in rows[-1]
    assert rows[0].count("\x1b") == 3  # two colours and the end
    fewer = draw_text(picture, Terminal(12, 256))
    assert "\x1b[38;5;" in fewer
    assert "38;2" not in fewer


def test_missing_cells_are_grey_and_named() -> None:
    values = np.full((4, 16), np.nan)
    values[0, 0] = 1.0
    picture = Picture("t", "", (make_field((LAT, LON), values, Scale(0.0, 1.0)),))
    text = draw_text(picture, Terminal(60, 2**24))
    assert "\x1b[38;2;120;120;120m\x1b[48;2;120;120;120m▀▀▀" in text
    assert text.endswith("missing")
    whole = Picture("t", "", (make_field((LAT, LON), np.ones((4, 16)), Scale(0.0, 2.0)),))
    assert "missing" not in draw_text(whole, Terminal(60))


def test_depths_begin_at_the_top() -> None:
    values = np.repeat(np.arange(8.0)[:, None], 4, axis=1)
    picture = Picture("t", "", (make_field((DEPTH, LAT), values, Scale(0.0, 7.0)),))
    lines = draw_text(picture, Terminal(30)).splitlines()
    assert lines[1].lstrip().startswith("....")
    assert "↓ depth [m]" in lines
    upward = Picture(
        "t", "", (make_field((axis_of("z", DEPTH.numbers), LAT), values, Scale(0, 7)),)
    )
    lines = draw_text(upward, Terminal(30)).splitlines()
    assert lines[1].lstrip().startswith("@@@@")
    assert "↑ z" in lines


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30, unique=True), st.integers(1, 90))
def test_every_part_shows_the_nearest_cell(numbers: list[float], count: int) -> None:
    axis = axis_of("x", sorted(numbers))
    found = sampled(axis, count)
    assert (np.diff(found) >= 0).all()
    assert 0 <= found.min() <= found.max() < axis.size
    even = axis_of("x", np.arange(5.0))
    assert sampled(even, 5).tolist() == [0, 1, 2, 3, 4]
    assert sampled(even, 10).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


# Widths -------------------------------------------------------------------------------------------

AXES = st.sampled_from(
    [LAT, LON, DEPTH, TIME, text_axis("site", ["a", "Zürich 漢字 long name", "c"])]
)


WORDS = st.text(st.sampled_from("ab 漢é\u0301\x1b°"), max_size=99)


@given(AXES, AXES, st.integers(40, 160), st.sampled_from([0, 256, 2**24]), st.booleans(), WORDS)
def test_no_line_of_a_field_is_wider_than_the_terminal(
    up: Axis, right: Axis, columns: int, colours: int, unicode: bool, words: str
) -> None:
    picture = rising(up, right, title=words, units=words)
    text = draw_text(picture, Terminal(columns, colours, unicode))
    assert max(text_width(CODES.sub("", line)) for line in text.splitlines()) <= columns
    assert len(text.splitlines()) <= 40
    assert unicode or text.isascii()
    assert (colours > 0 and unicode) == ("\x1b" in text)


@given(
    AXES,
    st.integers(40, 160),
    st.booleans(),
    st.lists(st.one_of(st.just(np.nan), st.floats(-1e9, 1e9)), min_size=30, max_size=30),
)
def test_no_line_of_a_chart_is_wider_than_the_terminal(
    axis: Axis, columns: int, unicode: bool, numbers: list[float]
) -> None:
    values = np.array([1.0, *numbers])[: axis.size]
    line = LinePanel(axis, values, values - 1, values + 1, (axis.numbers[:1], values[:1]), "model")
    text = draw_text(Picture("t", "K", line=line), Terminal(columns, 0, unicode))
    assert max(map(text_width, text.splitlines())) <= columns
    assert unicode or text.isascii()
    assert "o: data" in " ".join(text.split())


# Lines --------------------------------------------------------------------------------------------


def test_a_small_line_in_dots() -> None:
    axis = axis_of("x", [0.0, 1.0])
    picture = Picture("t", "", line=LinePanel(axis, np.array([0.0, 1.0])))
    lines = draw_text(picture, Terminal(31)).splitlines()
    assert lines[0] == "t"
    chart = [line[4:] for line in lines[1:15]]
    assert chart[0].rstrip().endswith("⠊")
    assert chart[-1].startswith("⡠")
    starts = [len(line) - len(line.lstrip()) for line in chart]
    assert starts == sorted(starts, reverse=True)
    assert lines[15].split() == ["0", "0.5", "1.0"]
    assert lines[16:] == ["along x"]


def test_a_line_without_unicode_is_made_of_stars() -> None:
    axis = axis_of("x", np.arange(5.0))
    values = np.array([0.0, 1.0, np.nan, 1.0, 0.0])
    text = draw_text(Picture("t", "°C", line=LinePanel(axis, values)), Terminal(40, 0, False))
    assert text.isascii()
    assert text.count("*") > 20
    middle = [line[20:23] for line in text.splitlines()[1:15]]
    assert "*" not in "".join(middle)  # the missing value interrupts the line
    assert "values in C, along x" in text


def test_what_is_drawn_is_named() -> None:
    axis, low = axis_of("x", np.arange(5.0)), np.zeros(5)
    line = LinePanel(axis, low + 1, low, low + 2, (axis.numbers, low + 1), "model")
    text = draw_text(Picture("t", "K", line=line), Terminal(90))
    assert text.endswith("values in K, along x, line: model, sparse dots: 90 % interval, o: data")
    labels = text_axis("site", ["a", "b"])
    line = LinePanel(labels, np.array([1.0, 2.0]), np.zeros(2), np.full(2, 3.0), None, "model")
    text = draw_text(Picture("t", "", line=line), Terminal(90))
    assert text.endswith("along site, x: model, bars: 90 % interval")
    assert text.count("x") == 3


# Texts --------------------------------------------------------------------------------------------


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    picture = Picture(
        "a\x1b[2Jb\n\u202ec", "\x07K", (make_field((LAT, LON), np.ones((4, 16)), Scale(0, 2)),)
    )
    text = draw_text(picture, Terminal(60))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)
    assert text.splitlines()[0] == "a [2Jb c"


@pytest.mark.parametrize(
    ("text", "plain"), [("30°N", "30N"), ("m s⁻²", "m s-2"), ("Zürich", "Z?rich"), ("↓ z", "v z")]
)
def test_texts_without_unicode(text: str, plain: str) -> None:
    assert printable(text, Terminal(80, 0, False)) == plain
    assert printable(text, Terminal(80)) == text


def test_widths() -> None:
    assert text_width("漢字") == 4
    assert text_width("e\u0301a") == 2
