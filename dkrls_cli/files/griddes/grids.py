"""Axes of a grid that is named, or described in a file, a pipe or standard input.

A grid of the whole globe has a short name such as ``r360x180``; any grid of longitudes and
latitudes can be described in a text file of lines ``key = value``, as ``cdo griddes`` prints it.
Either becomes two axes, longitude and latitude in degrees.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.descriptions import begins_description, parse_description
from dkrls_cli.files.griddes.names import named_grid
from dkrls_cli.files.source import TABLES
from dkrls_cli.files.text.csv.opening import explain_reading, source_name, unzip_bytes
from dkrls_cli.grid.axes import Axis

# Bytes that show whether a file is a description: comments may stand before the first key.
_HEAD = 2**16


def describe_grid(given: str) -> list[Axis] | None:
    """Return the axes of a grid that is named or described in a text file.

    A file of that name is looked for first. Names are CDO's: ``r<NX>x<NY>`` and ``global_<STEP>``
    for regular grids of the globe, ``n<N>`` and ``F<N>`` for Gaussian grids with N latitudes
    between a pole and the equator, ``t<T>grid`` and ``tl<T>grid`` for the Gaussian grid of a
    spectral truncation, and ``lon=<LON>/lat=<LAT>`` for one point.

    Parameters
    ----------
    given
        The name, or the path of a description; ``-`` is standard input.

    Returns
    -------
    list of Axis, or None
        Longitude and latitude; None if there is no such name and the file is no description.

    Raises
    ------
    InputError
        If a description leaves something out, contradicts itself, or is of another kind of grid.

    Examples
    --------
    >>> lon, lat = describe_grid("r4x2")
    >>> lon.texts, lat.texts
    (['0.0', '90.0', '180.0', '270.0'], ['-45.0', '45.0'])
    """
    found = describe_cells(given)
    return None if found is None else found[0]


def describe_cells(given: str) -> tuple[list[Axis], dict[str, Array]] | None:
    """Return the axes of :func:`describe_grid`, and the cells (m, 2) of those with bounds."""
    if given == "-" or os.path.exists(given):
        text = _description(given)
        return None if text is None else parse_description(text, source_name(given))
    named = named_grid(given)
    return None if named is None else (named, {})


def _description(path: str) -> str | None:
    """Return the text of a file if it begins like a description of a grid, else None.

    A pipe is read whole, as it cannot be read again; standard input is only looked at.
    """
    source, is_pipe = source_name(path), path != "-" and not os.path.isfile(path)
    if os.path.isdir(path) or (is_pipe and path.lower().endswith(TABLES)):
        return None
    with explain_reading(source):
        if path == "-":
            return _stdin_description()
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            if is_pipe and not begins_description(head):
                raise InputError(f"{source} is a pipe. Expected the description of a grid in it.")
            if not begins_description(head):
                return None
            return (head + file.read()).decode("utf-8-sig")


def _stdin_description() -> str | None:
    """Return standard input if it begins like a description; otherwise nothing of it is taken."""
    if sys.stdin is None:
        return None
    raw: Any = sys.stdin.buffer
    if hasattr(raw, "peek"):
        head = raw.peek(_HEAD)
    elif raw.seekable():
        place = raw.tell()
        head = raw.read(_HEAD)
        raw.seek(place)
    else:
        return None
    return unzip_bytes(raw.read()).decode("utf-8") if begins_description(head) else None
