"""How pictures look and how they are written: the door to matplotlib, which is optional.

Figures are made without pyplot, so no screen, no backend and no global list of figures is needed,
and the settings of matplotlib are as they were when a picture is done. Equal figures give equal
files: nothing of the date, the machine or the version is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from dkrls_cli.errors import OutputError, SettingError
from dkrls_cli.files.output.atomic import atomic_write

Kind = Literal["png", "svg", "pdf"]

SUFFIXES = (".png", ".svg", ".pdf")
"""Endings of the names of pictures."""

FULL_WIDTH = 180.0
"""Width of a picture in mm: that of the text on a page of A4 with narrow margins."""

LEAST_WIDTH, LARGEST_WIDTH = 60.0, 600.0
"""Widths in mm between which labels can be read and a picture can be rendered."""

DOTS = 200
"""Dots per inch of a PNG: 180 mm are 1417 dots, which is sharp on a screen and in print."""

MISSING = "0.78"
"""Grey of cells without a value, land among them. Its hatching tells it from values in print."""

HATCH, HATCH_COLOUR = "//////", "0.58"
"""Thin lines across missing cells, a little darker than they are."""

INK, ACCENT, BAND = "0.15", "#0072B2", "#0072B2"
"""Colours of texts and frames, of lines and marks, and of the bands around lines.

The blue is of Okabe and Ito's palette, which colour-blind readers can tell apart."""

SECOND = "#D55E00"
"""Colour of what is to be told from `ACCENT`, of the same palette and of another lightness."""

SEQUENTIAL, DIVERGING, ERRORS = "viridis", "RdBu_r", "magma_r"
"""Colour maps of values, of values around zero, and of standard errors, where light is small.

The lightness of all changes evenly, that of the diverging one on each side of zero."""

_MM = 25.4  # millimetres in an inch

_UNDATED: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata to leave out."""

_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same on every machine
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.35,
    "svg.hashsalt": "dkrls",
    "pdf.fonttype": 42,
}

_OF_SCREENS = ("backend", "backend_fallback", "interactive", "toolbar", "timezone")
"""Settings that concern windows, or that may not be changed once they are used."""


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house's style while the block runs; the settings of matplotlib come back.

    What a user's own matplotlibrc says is not used, so that pictures are the same everywhere.
    """
    import matplotlib as mpl

    known: dict[Any, Any] = dict(mpl.rcParamsDefault)
    default = {name: known[name] for name in known if name not in _OF_SCREENS}
    with mpl.rc_context({**default, **_SETTINGS}):
        yield


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure whose size is given in mm; labels are laid out without overlap."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / _MM, height / _MM), dpi=DOTS, layout="constrained")


def check_drawable(path: Path) -> None:
    """Raise an error if a picture of this name cannot be drawn, before any work is done.

    Raises
    ------
    SettingError
        If the suffix is not that of a picture.
    OutputError
        If matplotlib is not installed.
    """
    picture_kind(path)
    check_installed(path)


def check_installed(path: Path) -> None:
    """Raise OutputError if matplotlib, which draws what goes to a path, is not installed."""
    if not find_spec("matplotlib"):
        raise OutputError(
            f"Cannot draw '{path}': matplotlib is not installed. Try pip install 'dkrls-cli[plot]'."
        )


def picture_kind(path: Path) -> Kind:
    """Return the format that the suffix of a name stands for, or raise SettingError."""
    kinds: dict[str, Kind] = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
    found = kinds.get(path.suffix.lower())
    if found is None:
        raise SettingError(
            f"Cannot draw '{path}'. Expected a name that ends in .png, .svg or .pdf."
        )
    return found


def write_figure(make: Callable[[], Any], path: Path, *, overwrite: bool) -> None:
    """Make a figure in the house's style and write it in the format of its suffix.

    Parameters
    ----------
    make
        Called without arguments in the house's style; returns a figure, see `new_figure`.
    path
        The picture to write: .png, .svg or .pdf.
    overwrite
        Whether an existing file may be replaced.

    Raises
    ------
    SettingError
        If the suffix is another one.
    OutputError
        If matplotlib is not installed, or the file exists and must not be replaced, or cannot be
        written.
    """
    check_drawable(path)
    content = encode_figure(make, picture_kind(path))
    with atomic_write(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def encode_figure(make: Callable[[], Any], kind: Kind) -> bytes:
    """Make a figure in the house's style and return the bytes of its file."""
    import warnings

    stream = BytesIO()
    with house_style(), warnings.catch_warnings():
        # a letter of a file that the font does not have is drawn as a box
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        make().savefig(stream, format=kind, metadata=_UNDATED[kind])
    return stream.getvalue()


def plain_text(text: str) -> str:
    r"""Return a text of a file as matplotlib draws it as it is, in one line.

    Dollar signs are no mathematics, and control characters are left out.

    >>> print(plain_text("price\nin $ of $"))
    price in \$ of \$
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split()).replace("$", r"\$")
