"""A small map of a model's values, as SVG of a few kilobytes.

The values are those at some of the training coordinates, so that a large model is shown as fast as
a small one. Runs of equal colour along a row are one stroke.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.grid.axes import Axis, is_latitude, is_longitude
from dkrls_cli.grid.cf import is_time
from dkrls_cli.model.answering.answers import Rules, ask

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model

# Cells of a map at most, across and down: 8 bytes each are some 20 kB where no two are equal.
COLUMNS, ROWS = 72, 36
# Width of a map, and its least and largest height, in pixels.
_WIDTH, _LOWEST, _HIGHEST = 288, 96, 216
# Colours from low to high: dark blue to yellow, of even steps in lightness, which reads in grey
# and for the colour-blind.
COLOURS = (
    *("#352a6e", "#33408a", "#2b5797", "#276e9c", "#2a859a", "#3b9b8f", "#5db07c", "#8cc168"),
    *("#bfcd5a", "#f2d95c"),
)
# Digits after the point of the height of a line: less than a pixel.
_DIGITS = 1


@dataclass(frozen=True, eq=False)
class Thumbnail:
    """Values on a thinned grid of one or two axes.

    Attributes
    ----------
    values
        Values (rows, columns), rows from top to bottom; NaN where there is none. One row is a line.
    axes
        The axes along the rows, if there are several, and along the columns.
    fixed
        Axes of one coordinate: where the others were held.
    """

    values: Array
    axes: tuple[Axis, ...]
    fixed: tuple[Axis, ...]


def thin_values(model: Model) -> Thumbnail:
    """Return the values of a model on a thinned grid of latitude and longitude, or of two others.

    The other dimensions are held in their middle.
    """
    axes = list(model.coverage.axes)
    shown = _shown(axes)
    most = {shown[-1]: COLUMNS, **({shown[0]: ROWS} if shown[1:] else {})}
    asked = [
        axis.take(_thinned(axis.size, most[place]) if place in most else [axis.size // 2])
        for place, axis in enumerate(axes)
    ]
    values = ask(model, asked, Rules("missing"), ()).values()
    values = np.transpose(values, [*(p for p in range(len(axes)) if p not in shown), *shown])
    values = values.reshape([asked[place].size for place in shown])
    for place, one in enumerate(shown):  # the lowest on the left, and at the bottom
        order = np.argsort(asked[one].numbers, kind="stable")
        is_row = len(shown) > 1 and place == 0
        values = np.take(values, order[::-1] if is_row else order, axis=place)
    fixed = tuple(asked[place] for place in range(len(axes)) if place not in shown)
    return Thumbnail(np.atleast_2d(values), tuple(asked[place] for place in shown), fixed)


def _shown(axes: Sequence[Axis]) -> list[int]:
    """Return the places of the axes that a map shows: that of its rows and that of its columns."""
    places = [place for place, axis in enumerate(axes) if axis.size > 1] or [0]
    north = [place for place in places if is_latitude(axes[place])]
    east = [place for place in places if is_longitude(axes[place])]
    if north and east:
        return [north[0], east[0]]
    still = [place for place in places if not is_time(axes[place])]
    return still[:2] if len(still) > 1 else places[:2]


def _thinned(size: int, most: int) -> Indices:
    """Return indices of at most so many coordinates, both ends among them."""
    return np.linspace(0, size - 1, min(size, most)).round().astype(np.intp)


def draw(thumbnail: Thumbnail) -> str:
    """Return values as SVG: a map in colours, or a line if there is one row only.

    Examples
    --------
    >>> svg = draw(Thumbnail(np.array([[0.0, 1.0], [np.nan, 0.0]]), (), ()))
    >>> svg.count("<path"), "M0 0h1M1 1h1" in svg
    (2, True)
    """
    values = thumbnail.values
    rows, columns = values.shape
    body = _line(values[0]) if rows == 1 else _map(values)
    height = int(np.clip(_WIDTH * rows / columns, _LOWEST, _HIGHEST))
    tall = _LOWEST if rows == 1 else rows
    wide = _WIDTH if rows == 1 else columns
    return (
        f'<svg class="dkrls-map" viewBox="0 0 {wide} {tall}" width="{_WIDTH}" '
        f'height="{_LOWEST if rows == 1 else height}" preserveAspectRatio="none" role="img" '
        f'shape-rendering="{"auto" if rows == 1 else "crispEdges"}">{body}</svg>'
    )


def _map(values: Array) -> str:
    """Return the cells of a map, a path for each colour."""
    strokes: dict[int, list[str]] = {}
    for row, classes in enumerate(_classes(values)):
        start = 0
        for colour, run in groupby(classes.tolist()):
            length = len(list(run))
            if colour >= 0:
                strokes.setdefault(colour, []).append(f"M{start} {row}h{length}")
            start += length
    paths = (
        f'<path stroke="{COLOURS[colour]}" d="{"".join(parts)}"/>'
        for colour, parts in sorted(strokes.items())
    )
    return f'<g fill="none" transform="translate(0 .5)">{"".join(paths)}</g>'


def _classes(values: Array) -> Array:
    """Return the number of the colour of every value, -1 where there is none."""
    low, span = _range(values)
    shares = np.where(np.isfinite(values), (values - low) / span, -1.0)
    last = len(COLOURS) - 1
    return np.where(shares < 0, -1, np.minimum(np.floor(shares * (last + 1)), last)).astype(int)


def _line(values: Array) -> str:
    """Return values along one axis as a line, broken where there is none."""
    low, span = _range(values)
    across = np.linspace(1, _WIDTH - 1, values.size)
    down = (_LOWEST - 2) * (1 - (values - low) / span) + 1
    parts, pen = [], "M"
    for x, y in zip(across, down, strict=True):
        if not np.isfinite(y):
            pen = "M"
            continue
        parts.append(f"{pen}{x:.{_DIGITS}f} {y:.{_DIGITS}f}")
        pen = "L"
    return f'<path fill="none" stroke="{COLOURS[4]}" stroke-width="2" d="{"".join(parts)}"/>'


def _range(values: Array) -> tuple[float, float]:
    """Return the least of the finite values, and how far the largest is above it, not 0."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, span = float(finite.min()), float(finite.max() - finite.min())
    return low, span or 1.0
