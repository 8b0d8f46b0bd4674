"""Pictures of races. The only door to matplotlib, which is optional."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.bench.placement import nearest, placed
from dkrls_cli.errors import SettingError
from dkrls_cli.files.output import atomic_write

Row = Mapping[str, Any]
Floats = NDArray[np.float64]

SUFFIXES = (".png", ".svg", ".pdf")
OURS = "dkrls"

_OUR_COLOUR = "#D55E00"
_COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#B07D00", "#3A9BD9", "#444444")
"""After Okabe and Ito, told apart by all eyes; two are darker for the sake of text."""
_MARKS = "osD^Pp"
"""One for each round of the colours."""

_NO_DATES = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""What would make pictures of equal rows differ."""

_STYLE: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 10.0,
    "axes.linewidth": 0.6,
    "svg.hashsalt": "dkrls",
    "pdf.fonttype": 42,
}

_DPI = 150
_RADIUS = 4.5
"""Of a mark with some air, in points."""
_STATIONS = 14
"""Points of a line between marks that labels keep away from."""
_LONGEST = 32
"""Letters of a label."""

_PANEL = (7.0, 5.4)
"""Width and height in inches."""


@dataclass(frozen=True)
class Spot:
    """A row as it is drawn.

    Attributes
    ----------
    label
        Its method, with the settings where that method has several rows.
    colour, mark
        How it is drawn.
    here, paper
        Seconds and error, measured here and in the paper; None where there are none to draw.
    exact
        Whether its error is 0, which no logarithm shows: it is drawn at the lower edge.
    """

    label: str
    colour: str
    mark: str
    here: tuple[float, float] | None
    paper: tuple[float, float] | None
    exact: bool

    @property
    def ours(self) -> bool:
        """Whether it is the default fit."""
        return self.label.split(",")[0] == OURS

    @property
    def place(self) -> tuple[float, float] | None:
        """Where its label belongs."""
        return self.here or self.paper


def error_against_time(rows: Sequence[Row], path: Path, *, overwrite: bool = True) -> None:
    """Draw the largest error of every row against the seconds it learnt for, a panel per dataset.

    Parameters
    ----------
    rows
        With dataset, method, settings, seconds, max_error, paper_seconds and paper_error, each
        None or NaN where there is none. What the paper reports is drawn hollow.
    path
        Where to: .png, .svg or .pdf. Equal rows give equal files.
    overwrite
        Whether a file of that name may be replaced.
    """
    refuse_undrawable(path)
    import matplotlib as mpl

    kind = path.suffix.lower().removeprefix(".")
    with mpl.rc_context(_STYLE), atomic_write(path, overwrite=overwrite) as temporary:
        figure_of(rows).savefig(temporary, format=kind, metadata=_NO_DATES[kind])


def refuse_undrawable(path: Path) -> None:
    """Refuse a picture of another kind, or any without matplotlib."""
    if path.suffix.lower() not in SUFFIXES:
        raise SettingError(
            f"Cannot draw '{path}'. Expected a name that ends in .png, .svg or .pdf."
        )
    if not find_spec("matplotlib"):
        raise SettingError(
            f"Cannot draw '{path}': matplotlib is not installed. Try pip install 'dkrls-cli[plot]'."
        )


def figure_of(rows: Sequence[Row]) -> Any:
    """The figure of all rows, two panels beside each other."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(str(row["dataset"]) for row in rows))
    spots = [spots_of([row for row in rows if row["dataset"] == name]) for name in datasets]
    across = min(max(len(datasets), 1), 2)
    down = max(math.ceil(len(datasets) / across), 1)
    size = (_PANEL[0] * across, _PANEL[1] * down)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    panels = list(figure.subplots(down, across, squeeze=False).ravel())
    for panel, name, drawn in zip(panels, datasets, spots, strict=False):
        _draw(panel, name, drawn)
    for panel in panels[len(datasets) :]:
        panel.set_axis_off()
    figure.draw_without_rendering()  # panels take their places, and labels then find theirs
    figure.set_layout_engine("none")
    for panel, drawn in zip(panels, spots, strict=False):
        _label(panel, [spot for spot in drawn if spot.place])
    return figure


def spots_of(rows: Sequence[Row]) -> list[Spot]:
    """The rows of one dataset with colours, marks and labels."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    others = [method for method in methods if not method.startswith(OURS)]
    spots = []
    for row in rows:
        method = row["method"]
        turn, place = divmod(others.index(method) if method in others else 0, len(_COLOURS))
        several = sum(row["method"] == method for row in rows) > 1
        error = _number(row.get("max_error"))
        spots.append(
            Spot(
                label=_name(row, several),
                colour=_COLOURS[place] if method in others else _OUR_COLOUR,
                mark=_MARKS[turn % len(_MARKS)],
                here=_point(row.get("seconds"), error),
                paper=_point(row.get("paper_seconds"), _number(row.get("paper_error"))),
                exact=error == 0,
            )
        )
    return spots


def _name(row: Row, several: bool) -> str:
    name = (
        f"{row['method']}, {row['settings']}" if several and row.get("settings") else row["method"]
    )
    return textwrap.shorten(name, _LONGEST, placeholder=" ...")


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _point(seconds: Any, error: float) -> tuple[float, float] | None:
    """Where a row is drawn; nowhere if it has no time, no error, or an endless one."""
    time = _number(seconds)
    there = math.isfinite(time) and time > 0 and math.isfinite(error)
    return (time, error) if there else None


def _draw(panel: Any, dataset: str, spots: Sequence[Spot]) -> None:
    """Axes and marks of one dataset, and the names of those it cannot show."""
    panel.set_title(dataset, loc="left", fontweight="bold")
    panel.set(xscale="log", yscale="log", xlabel="seconds to learn", ylabel="largest error")
    panel.grid(which="major", linewidth=0.4, color="0.9")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    _set_limits(panel, spots)
    for spot in spots:
        _mark(panel, spot)
    _legend(panel, spots)
    hidden = [spot.label for spot in spots if spot.place is None]
    if hidden:
        text = textwrap.fill(f"without a finite error or time: {', '.join(hidden)}", 100)
        panel.annotate(
            text,
            (0, 0),
            (0, -34),
            "axes fraction",
            textcoords="offset points",
            color="0.4",
            fontsize=7,
            va="top",
        )


def _set_limits(panel: Any, spots: Sequence[Spot]) -> None:
    """Room around all points for their labels; where nothing has a size, a decade."""
    points = [point for spot in spots for point in (spot.here, spot.paper) if point]
    times = [time for time, _ in points] or [1.0]
    errors = [error for _, error in points if error > 0] or [1.0]
    exact = any(spot.exact for spot in spots)
    panel.set_xlim(min(times) / 4, max(times) * 12)
    panel.set_ylim(min(errors) / (100 if exact else 6), max(errors) * 20)


def _mark(panel: Any, spot: Spot) -> None:
    """A row's marks, here and in the paper, and a line between them."""
    here, paper = (_drawn(panel, point) for point in (spot.here, spot.paper))
    size = 13.0 if spot.ours else 5.5
    shape = {"linestyle": "none", "markersize": size, "zorder": 4 if spot.ours else 3}
    if here and paper:
        panel.plot(*zip(here, paper, strict=True), color=spot.colour, linewidth=0.6, alpha=0.35)
    if here:
        mark = "v" if spot.exact else "*" if spot.ours else spot.mark
        panel.plot(*here, mark, color=spot.colour, markeredgecolor="white", **shape)
    if paper:
        mark = "*" if spot.ours else spot.mark
        panel.plot(*paper, mark, markerfacecolor="none", markeredgecolor=spot.colour, **shape)


def _drawn(panel: Any, point: tuple[float, float] | None) -> tuple[float, float] | None:
    """A point with an error of 0 at the lower edge."""
    low = panel.get_ylim()[0]
    return point and (point[0], point[1] or 2 * low)


def _legend(panel: Any, spots: Sequence[Spot]) -> None:
    """What hollow marks and those that point down are, where there are any."""
    from matplotlib.lines import Line2D

    known = {
        "measured here": Line2D([], [], linestyle="none", marker="o", color="0.3"),
        "in the paper": Line2D([], [], linestyle="none", marker="o", color="0.3", fillstyle="none"),
        "no error at all": Line2D([], [], linestyle="none", marker="v", color="0.3"),
    }
    there = [True, any(spot.paper for spot in spots), any(spot.exact for spot in spots)]
    shown = {
        name: line for (name, line), is_there in zip(known.items(), there, strict=True) if is_there
    }
    if len(shown) > 1:
        panel.legend(
            shown.values(),
            shown.keys(),
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=3,
            frameon=False,
            fontsize=7,
            borderaxespad=0.2,
            handletextpad=0.1,
            columnspacing=1,
        )


def _label(panel: Any, spots: Sequence[Spot]) -> None:
    """Names beside marks, none over another; a thin line leads from those that are far."""
    if not spots:
        return
    texts = [_text(panel, spot) for spot in spots]
    sizes = np.array([_size(text) for text in texts])
    anchors = _pixels(panel, [spot.place for spot in spots])
    radius = _RADIUS * _DPI / 72
    boxes = placed(anchors, sizes, _obstacles(panel, spots), radius, panel.bbox.extents)
    to_data = panel.transData.inverted().transform
    for text, box, anchor, spot in zip(texts, boxes, anchors, spots, strict=True):
        text.set_position(to_data((box[:2] + box[2:]) / 2))
        start = nearest(box[None], anchor)[0]
        if np.hypot(*(start - anchor)) > 2 * radius:
            panel.plot(*to_data([start, anchor]).T, color=spot.colour, linewidth=0.5, zorder=2)


def _obstacles(panel: Any, spots: Sequence[Spot]) -> Floats:
    """All marks, and points on the lines between those that belong together."""
    marks = _pixels(panel, [point for s in spots for point in (s.here, s.paper) if point])
    pairs = [_pixels(panel, [s.here, s.paper]) for s in spots if s.here and s.paper]
    shares = np.linspace(0, 1, _STATIONS)[1:-1, None]
    return np.vstack([marks, *(here + shares * (paper - here) for here, paper in pairs)])


def _text(panel: Any, spot: Spot) -> Any:
    """A name that is yet to be put in its place."""
    from matplotlib.patheffects import withStroke

    weight, size = ("bold", 9) if spot.ours else ("normal", 7)
    style = {"ha": "center", "va": "center", "fontsize": size, "fontweight": weight, "zorder": 5}
    halo = [withStroke(linewidth=1.5, foreground="white")]
    return panel.text(1.0, 1.0, spot.label, color=spot.colour, path_effects=halo, **style)


def _size(text: Any) -> Floats:
    """Width and height in pixels, with a little air."""
    box = text.get_window_extent()
    return np.array([box.width + 4, box.height + 2])


def _pixels(panel: Any, points: Sequence[Any]) -> Floats:
    drawn = [_drawn(panel, point) for point in points]
    return np.asarray(panel.transData.transform(drawn), np.float64)
