"""Colours of the terminal: those of the pictures, without matplotlib."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.plots.scales import Palette

Rgb = tuple[int, int, int]

GREY: Rgb = (120, 120, 120)
"""Colour of missing cells, which neither a dark nor a light terminal hides."""

# Nine colours of each map at equal distances, as in matplotlib: viridis, RdBu_r and magma_r.
_ANCHORS: dict[Palette, str] = {
    "sequential": "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
    "diverging": "053061 2a71b2 6bacd1 c2ddec f7f6f6 fbccb4 e48066 ba2832 67001f",
    "errors": "fcfdbf fec287 fb8761 e55064 b5367a 812581 4f127b 1c1044 000004",
}


def colours_at(places: Array, palette: Palette) -> NDArray[np.uint8]:
    """Return the colours at places between 0 and 1, in the shape of these and three more numbers.

    Places that are NaN are grey.
    """
    anchors = np.array([list(bytes.fromhex(word)) for word in _ANCHORS[palette].split()])
    ends = np.linspace(0.0, 1.0, len(anchors))
    known = np.where(np.isnan(places), 0.0, places)
    mixed = np.stack([np.interp(known, ends, channel) for channel in anchors.T], axis=-1)
    shown = np.where(np.isnan(places)[..., None], GREY, np.rint(mixed))
    return shown.astype(np.uint8)


def escape_code(colour: Rgb, *, behind: bool, many: bool) -> str:
    """Return the code that sets a colour of letters, or of what is behind them.

    With `many` it is one of 16 million, otherwise one of the 216 of a cube of 6 by 6 by 6.
    """
    ground = 48 if behind else 38
    if many:
        return f"\x1b[{ground};2;{colour[0]};{colour[1]};{colour[2]}m"
    red, green, blue = (round(part / 255 * 5) for part in colour)
    return f"\x1b[{ground};5;{16 + 36 * red + 6 * green + blue}m"
