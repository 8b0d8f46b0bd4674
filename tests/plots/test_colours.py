"""Colours of the terminal: those of matplotlib's maps."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.plots import style
from dkrls_cli.plots.colours import GREY, colours_at, escape_code
from dkrls_cli.plots.scales import Palette

MAPS: dict[Palette, str] = {
    "sequential": style.SEQUENTIAL,
    "diverging": style.DIVERGING,
    "errors": style.ERRORS,
}


@pytest.mark.parametrize("palette", MAPS)
def test_colours_are_those_of_the_pictures(palette: Palette) -> None:
    mpl = pytest.importorskip("matplotlib", reason="drawing needs the extra plot")
    places = np.linspace(0.0, 1.0, 65)
    theirs = 255 * mpl.colormaps[MAPS[palette]](places)[:, :3]
    ours = colours_at(places, palette).astype(float)
    assert np.abs(ours - theirs)[::8].max() <= 1.0
    assert np.abs(ours - theirs).max() < 20


def test_missing_places_are_grey() -> None:
    found = colours_at(np.array([[np.nan, 0.0]]), "sequential")
    assert found.shape == (1, 2, 3)
    assert tuple(found[0, 0]) == GREY
    assert tuple(found[0, 1]) == (0x44, 0x01, 0x54)


def test_codes() -> None:
    assert escape_code((255, 0, 51), behind=False, many=True) == "\x1b[38;2;255;0;51m"
    assert escape_code((255, 0, 51), behind=True, many=False) == "\x1b[48;5;197m"
    assert escape_code((0, 0, 0), behind=True, many=False) == "\x1b[48;5;16m"
