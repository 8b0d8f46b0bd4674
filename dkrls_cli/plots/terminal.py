"""Pictures as text, for the terminal: cells as coloured half blocks or as shades, lines of dots.

Every cell on the screen shows the cell of the grid that its middle lies in.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import place_of
from dkrls_cli.plots.colours import Rgb, colours_at, escape_code
from dkrls_cli.plots.labels import axis_text, points_down
from dkrls_cli.plots.pictures import FieldPanel, LinePanel, Picture
from dkrls_cli.plots.scales import Scale
from dkrls_cli.plots.slices import cell_edges, proportion
from dkrls_cli.plots.ticks import Tick, axis_ticks, label_contexts

# Most and fewest lines of a field, and lines of a chart: all fit a terminal of 40 lines with texts.
_MOST_LINES, _FEWEST_LINES, _CHART_LINES = 24, 4, 14

# Fewest columns of a drawing, and most letters of a label beside it.
_FEWEST_COLUMNS, _WIDEST_LABEL = 10, 16

# Letters of a legend beside numbers and units: spaces, three colours, and what is missing.
_LEAST_LEGEND = 18

# Shades from light to dark; a space is a missing cell.
_SHADES = ".:-=+*#%@"

# Dots of a letter of Braille by row and column, as bits above its first code.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BRAILLE = 0x2800

_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹↑↓→…", "-0123456789^v>.", "°")


@dataclass(frozen=True)
class Terminal:
    """What a terminal can show.

    Attributes
    ----------
    columns
        Its width in letters.
    colours
        Number of colours: 0, 256 or 16777216.
    unicode
        Whether it shows letters beyond ASCII.
    """

    columns: int
    colours: int = 0
    unicode: bool = True

    @property
    def has_blocks(self) -> bool:
        """Whether cells are coloured half blocks, and not shades."""
        return self.colours > 0 and self.unicode


def draw_text(picture: Picture, terminal: Terminal) -> str:
    """Return a picture as lines of text, none wider than the terminal."""
    lines = _wrap(picture.title, terminal)
    if picture.line is not None:
        lines += _draw_chart(picture.line, picture.units, terminal)
    for field in picture.fields:
        heading = [printable(field.heading, terminal)] if field.heading else []
        lines += [*heading, *_draw_field(field, picture.units, terminal), ""]
    return "\n".join(lines).rstrip("\n")


def printable(text: str, terminal: Terminal) -> str:
    """Return a text of a file in one line, without what a terminal would obey or cannot show."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    if not terminal.unicode:
        shown = shown.translate(_PLAIN).encode("ascii", "replace").decode()
    return " ".join(shown.split())


def text_width(text: str) -> int:
    """Return how many columns a text takes; letters of some scripts take two, accents none."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def _wrap(text: str, terminal: Terminal) -> list[str]:
    """Return a text in lines that fit the terminal."""
    shown = printable(text, terminal)
    wide = text_width(shown) > len(shown)
    return textwrap.wrap(shown, terminal.columns // 2 if wide else terminal.columns)


def _cut(text: str, width: int) -> str:
    """Return the beginning of a text that is not wider than this."""
    while text_width(text) > width:
        text = text[:-1]
    return text


# Fields -------------------------------------------------------------------------------------------


def _draw_field(field: FieldPanel, units: str, terminal: Terminal) -> list[str]:
    """Return the lines of a field with its axes and the legend of its colours."""
    up, right = field.axes
    shape = proportion(up, right)
    labels = _labels_beside(up, _MOST_LINES, terminal)
    room = max(_FEWEST_COLUMNS, terminal.columns - max(map(text_width, labels)) - 1)
    columns = min(room, round(2 * _MOST_LINES / shape))
    lines = max(_FEWEST_LINES, min(_MOST_LINES, round(columns * shape / 2)))
    labels = _labels_beside(up, lines, terminal)
    rows = 2 * lines if terminal.has_blocks else lines
    down = points_down(up) or up.labels is not None
    upward = sampled(up, rows) if down else sampled(up, rows)[::-1]
    places = field.scale.place(field.values)[np.ix_(upward, sampled(right, columns))]
    drawn = _blocks(places, field.scale, terminal) if terminal.has_blocks else _shades(places)
    missing = bool(np.isnan(field.values).any())
    legend = _legend(field.scale, units, missing, terminal)
    return [*_framed(drawn, labels, right, columns, terminal), *_names(up, right, terminal), legend]


def sampled(axis: Axis, count: int) -> Indices:
    """Return the cells of an axis in which the middles of equal parts of its range lie."""
    edges = cell_edges(axis)
    middles = edges[0] + (edges[-1] - edges[0]) * (np.arange(count) + 0.5) / count
    found = np.searchsorted(edges, middles, side="right") - 1
    return np.asarray(np.clip(found, 0, axis.size - 1), np.intp)


def _shades(places: Array) -> list[str]:
    """Return one letter per cell, the darker the larger its value; a space where it is missing."""
    steps = np.minimum(np.nan_to_num(places) * len(_SHADES), len(_SHADES) - 1).astype(int)
    letters = np.where(np.isnan(places), " ", np.array(list(_SHADES))[steps])
    return ["".join(row) for row in letters]


def _blocks(places: Array, scale: Scale, terminal: Terminal) -> list[str]:
    """Return half blocks, each with the colours of two cells, one above the other."""
    colours = colours_at(places, scale.palette)
    return [
        _coloured(above, below, terminal)
        for above, below in zip(colours[::2].tolist(), colours[1::2].tolist(), strict=True)
    ]


def _coloured(above: list[Rgb], below: list[Rgb], terminal: Terminal) -> str:
    """Return a line of half blocks; a code is written only where a colour changes."""
    text, last, many = "", ("", ""), terminal.colours > 256
    for upper, lower in zip(above, below, strict=True):
        code = (
            escape_code(upper, behind=False, many=many),
            escape_code(lower, behind=True, many=many),
        )
        text += "".join(new for new, old in zip(code, last, strict=True) if new != old) + "▀"
        last = code
    return f"{text}\x1b[0m"


def _legend(scale: Scale, units: str, missing: bool, terminal: Terminal) -> str:
    """Return the line that says what the colours mean."""
    low, high = f"{scale.low:.4g}", f"{scale.high:.4g}"
    room = terminal.columns - len(low) - len(high) - _LEAST_LEGEND
    high = f"{high} {_cut(printable(units, terminal), max(room, 0))}".rstrip()
    if not terminal.has_blocks:
        absent = "  blank: missing" if missing else ""
        return _cut(f"{low} {_SHADES} {high}{absent}", terminal.columns)
    free = terminal.columns - len(low) - text_width(high) - len("    ▀▀ missing")
    count = max(3, min(24, free))
    sample = _blocks(np.tile(np.linspace(0.0, 1.0, count), (2, 1)), scale, terminal)[0]
    grey = _blocks(np.full((2, 2), np.nan), scale, terminal)[0]
    absent = f"  {grey} missing" if missing else ""
    return f"{low} {sample} {high}{absent}"


# Frames -------------------------------------------------------------------------------------------


def _labels_beside(axis: Axis, lines: int, terminal: Terminal) -> list[str]:
    """Return the label of every line of a drawing, most of them empty."""
    edges = cell_edges(axis)
    down = points_down(axis) or axis.labels is not None
    ticks = axis_ticks(axis, edges[0], edges[-1], max(2, lines // 3))
    return _spread_up(ticks, edges[0], edges[-1], lines, down, terminal)


def _spread_up(
    ticks: Sequence[Tick], low: float, high: float, lines: int, down: bool, terminal: Terminal
) -> list[str]:
    """Return the labels of ticks at their lines."""
    labels = [""] * lines
    for tick in ticks:
        share = (tick.number - low) / (high - low)
        line = min(lines - 1, int((share if down else 1 - share) * lines))
        labels[line] = _cut(printable(tick.text, terminal), _WIDEST_LABEL)
    return labels


def _framed(
    drawn: Sequence[str], labels: Sequence[str], right: Axis, columns: int, terminal: Terminal
) -> list[str]:
    """Return lines of a drawing with labels on their left and those of an axis below."""
    edges = cell_edges(right)
    ticks = axis_ticks(right, edges[0], edges[-1], 12, columns)
    return _with_labels(drawn, labels, ticks, (edges[0], edges[-1]), columns, terminal)


def _with_labels(
    drawn: Sequence[str],
    labels: Sequence[str],
    ticks: Sequence[Tick],
    ends: tuple[float, float],
    columns: int,
    terminal: Terminal,
) -> list[str]:
    """Return lines of a drawing with labels on their left, and those of ticks below."""
    wide = max(map(text_width, labels), default=0)
    beside = [" " * (wide - text_width(label)) + label for label in labels]
    lines = [f"{label} {line}".rstrip() for label, line in zip(beside, drawn, strict=True)]
    for texts in ([tick.short for tick in ticks], label_contexts(ticks)):
        shown = [printable(text, terminal) for text in texts]
        below = _spread_right([t.number for t in ticks], shown, ends, columns)
        if below:
            lines.append(" " * (wide + 1) + below)
    return lines


def _spread_right(
    numbers: Sequence[float], texts: Sequence[str], ends: tuple[float, float], columns: int
) -> str:
    """Return texts in one line, each below its place; those without room are left out."""
    line, used = "", 0
    for number, text in zip(numbers, texts, strict=True):
        wide = text_width(text)
        middle = (number - ends[0]) / (ends[1] - ends[0]) * columns
        start = min(max(0, round(middle - wide / 2)), columns - wide)
        if not text or start < used + (used > 0):
            continue
        line += " " * (start - used) + text
        used = start + wide
    return line


def _names(up: Axis, right: Axis, terminal: Terminal) -> list[str]:
    """Return a line with the names of the axes whose ticks do not say them; empty if all do."""
    arrow = "↓" if points_down(up) or up.labels is not None else "↑"
    said = [(axis_text(up), arrow), (axis_text(right), "→")]
    line = ", ".join(f"{mark} {text}" for text, mark in said if text)
    return _wrap(line, terminal)


# Lines --------------------------------------------------------------------------------------------


def _draw_chart(line: LinePanel, units: str, terminal: Terminal) -> list[str]:
    """Return the lines of a chart: dots of Braille, or letters where there is only ASCII."""
    upright = place_of(line.axis) == "vertical"
    down = upright and points_down(line.axis)
    along = _ends(line.axis.numbers[np.isfinite(line.values)])
    if line.axis.labels is not None:
        along = _ends(cell_edges(line.axis))
    values = _ends(np.concatenate([one.ravel() for one in _shown_values(line)]))
    rows = _MOST_LINES if upright else _CHART_LINES
    (left, right), (low, high) = (values, along) if upright else (along, values)
    value_axis = Axis("value", np.array(values))
    beside, below = (line.axis, value_axis) if upright else (value_axis, line.axis)
    labels = _spread_up(axis_ticks(beside, low, high, rows // 3), low, high, rows, down, terminal)
    columns = max(_FEWEST_COLUMNS, terminal.columns - max(map(text_width, labels)) - 1)
    canvas = _Canvas(columns, rows, ((left, right), (low, high)), down)
    _dot_line(canvas, line, upright)
    ticks = axis_ticks(below, left, right, 12, columns)
    drawn = canvas.lines(terminal)
    framed = _with_labels(drawn, labels, ticks, (left, right), columns, terminal)
    return [*framed, *_wrap(_chart_words(line, units), terminal)]


def _chart_words(line: LinePanel, units: str) -> str:
    """Return what is drawn, and the units and the name of the axis where ticks do not say them."""
    name = axis_text(line.axis)
    words = {
        f"values in {units}": bool(units),
        f"along {name}": bool(name),
        f"{'line' if line.axis.labels is None else 'x'}: {line.label}": bool(line.label),
        f"{'sparse dots' if line.axis.labels is None else 'bars'}: 90 % interval": (
            line.low is not None
        ),
        "o: data": line.points is not None,
    }
    return ", ".join(word for word, said in words.items() if said)


def _shown_values(line: LinePanel) -> list[Array]:
    every = [line.values, line.low, line.high, None if line.points is None else line.points[1]]
    return [one for one in every if one is not None]


def _ends(numbers: Array) -> tuple[float, float]:
    """Return the least and the largest of some numbers, apart from each other."""
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    if high > low:
        return low, high
    half = 0.5 * abs(low) or 0.5
    return low - half, high + half


class _Canvas:
    """Dots on a drawing of some columns and lines, two by four to each letter."""

    def __init__(
        self, columns: int, lines: int, ends: tuple[tuple[float, float], ...], down: bool
    ) -> None:
        self.ends, self.down = ends, down
        self.dots = np.zeros((4 * lines, 2 * columns), bool)
        self.letters: dict[tuple[int, int], str] = {}

    def place(self, x: Array, y: Array) -> tuple[Indices, Indices]:
        """Return the row and the column of the dots of points."""
        rows, columns = self.dots.shape
        (left, right), (low, high) = self.ends
        across = np.clip((x - left) / (right - left) * (columns - 1), 0, columns - 1)
        up = np.clip((y - low) / (high - low) * (rows - 1), 0, rows - 1)
        row = np.rint(up if self.down else rows - 1 - up).astype(int)
        return row, np.rint(across).astype(int)

    def join(self, x: Array, y: Array, *, sparse: bool = False) -> None:
        """Set the dots on the way from each point to the next; missing points interrupt it."""
        known = np.isfinite(x) & np.isfinite(y)
        row, column = self.place(np.where(known, x, 0.0), np.where(known, y, 0.0))
        for here in np.flatnonzero(known):
            there = here + 1 if here + 1 < known.size and known[here + 1] else here
            count = 1 + max(abs(row[there] - row[here]), abs(column[there] - column[here]))
            rows = np.rint(np.linspace(row[here], row[there], count)).astype(int)
            columns = np.rint(np.linspace(column[here], column[there], count)).astype(int)
            kept = (columns % 3 == 0) & (rows % 2 == 0) if sparse else slice(None)
            self.dots[rows[kept], columns[kept]] = True

    def mark(self, x: Array, y: Array, letter: str) -> None:
        """Put a letter where points are."""
        for row, column in zip(*self.place(x, y), strict=True):
            self.letters[int(row) // 4, int(column) // 2] = letter

    def lines(self, terminal: Terminal) -> list[str]:
        """Return the drawing as text."""
        rows, columns = self.dots.shape
        cells = self.dots.reshape(rows // 4, 4, columns // 2, 2)
        codes = (cells * _DOTS[None, :, None, :]).sum(axis=(1, 3))
        drawn = [
            [chr(_BRAILLE + code) if terminal.unicode else "*" if code else " " for code in row]
            for row in codes.tolist()
        ]
        for (row, column), letter in self.letters.items():
            drawn[row][column] = letter
        return ["".join(row).replace(chr(_BRAILLE), " ").rstrip() for row in drawn]


def _dot_line(canvas: _Canvas, line: LinePanel, upright: bool) -> None:
    """Draw a line, its interval and the data on a canvas."""

    def turned(along: Array, values: Array) -> tuple[Array, Array]:
        return (values, along) if upright else (along, values)

    numbers, known = line.axis.numbers, np.isfinite(line.values)
    if line.axis.labels is None:
        for edge in (line.low, line.high):
            if edge is not None:
                canvas.join(*turned(numbers, edge), sparse=True)
        canvas.join(*turned(numbers, line.values))
    else:
        if line.low is not None and line.high is not None:
            for number, *bar in zip(numbers[known], line.low[known], line.high[known], strict=True):
                canvas.join(*turned(np.array([number, number]), np.array(bar)))
        canvas.mark(*turned(numbers[known], line.values[known]), "x")
    if line.points is not None:
        canvas.mark(*turned(*line.points), "o")
