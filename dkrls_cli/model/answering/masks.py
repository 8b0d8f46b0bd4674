"""Lasting masks: cells that are taken to have no data ever, like land and the sea floor.

Along time, or any other dimension that is not a place, a lasting mask shows: it is what is missing
everywhere along it. A grid of places alone does not show it, and then shape decides. In the
vertical, what is missing up to an end is sea floor, mountain or land; holes between data are gaps.
On a map, holes wider than clouds and swaths are land; of a quantity of the sea, any hole may be.
Texts, like the names of sensors, have nothing between them: those without any data stay missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.circle import repeated
from dkrls_cli.gaps.holes import beside, label_holes, nearest_distance, reaches_end, shore
from dkrls_cli.gaps.pattern import always_missing
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import Place, is_time, kilometres, natural_period, period_beside, place_of
from dkrls_cli.grid.grid import Grid

FARTHEST_GAP = 250.0
"""Kilometres from the nearest datum to the middle of the widest hole that is taken for a gap.

Holes of 500 km across are wider than most clouds and gaps between swaths, and narrower than land
masses. Islands below that size are filled on maps that do not say that they are of the sea. On
grids with steps as long as that, a hole must also be three cells wide to be taken for land.
"""

# Radius of the Earth, in kilometres: the mean of the ellipsoid.
_EARTH = 6371.0

# Words of quantities that are of the sea alone, in standard names, long names and names. "Sea
# level" is not among them: pressure at sea level and heights above it are of the whole Earth.
_SEA_WORDS = "sea (surface|water|ice|floor)|seawater|seaice|oceans?|oceanic|sst|salinity"
_OF_THE_SEA = re.compile(rf"(?<![a-z])({_SEA_WORDS})(?![a-z])")
# Names of such variables in the files of CMIP (tos to sit), altimetry and NEMO (votemper on).
_SEA_NAME = re.compile(
    r"tos|sos|zos|thetao|[uvw]o|mlotst|siconc|sithick|sic|sit|ssh|sss|sla|adt|votemper|vosaline"
)

# What a note begins with where shape had to decide, and what it says of cells.
_WHY = "land cannot be told from gaps by the data, which has fewer than two times"
_LAND = "are taken for land and stay missing"
_GAPS = "are taken for gaps"


@dataclass(frozen=True, eq=False)
class LastingMask:
    """Cells that are taken to have no data ever, and what was decided about them.

    Attributes
    ----------
    cells
        True where a cell is taken to have no data ever, in a shape that broadcasts to that of the
        grid: of size 1 along the dimensions that showed it.
    note
        One sentence of what was decided and why, without a full stop; empty where the data shows
        it, and nothing had to be decided.
    """

    cells: Mask
    note: str = ""


def lasting_mask(grid: Grid, hierarchy: Sequence[str]) -> LastingMask:
    """Return the cells of a grid that are taken to have no data ever, like land.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing.
    hierarchy
        Names of the dimensions from level 0 to the last. The last one counts on grids without any
        place (latitude, longitude, vertical, map projection): there the mask is what is missing all
        along it; coordinates of other axes without any data are gaps, unless the last one is time.

    Returns
    -------
    LastingMask
        The cells, and a note if shape had to decide.

    Examples
    --------
    >>> from dkrls_cli.grid.grid import as_grid
    >>> values = np.ones((3, 4))
    >>> values[0, 1] = values[:, 2] = np.nan
    >>> coordinates = {"time": np.array(["2001-01-01", "2001-01-02", "2001-01-03"], "M8[D]")}
    >>> grid = as_grid(values, {**coordinates, "lat": [10.0, 20.0, 30.0, 40.0]})
    >>> lasting_mask(grid, ("lat", "time")).cells.tolist()
    [[False, False, True, False]]
    """
    missing = np.isnan(grid.values)
    found = _without_texts(grid, missing, hierarchy)
    texts = _lost_texts(missing, grid.axes)
    return found if texts is None else replace(found, cells=found.cells | texts)


def _without_texts(grid: Grid, missing: Mask, hierarchy: Sequence[str]) -> LastingMask:
    """Return the lasting mask, but for coordinates that are texts."""
    places = {i: kind for i, axis in enumerate(grid.axes) if (kind := place_of(axis))}
    others = tuple(i for i, axis in enumerate(grid.axes) if i not in places and axis.size > 1)
    if places and others:
        return LastingMask(np.asarray(missing.all(axis=others, keepdims=True)))
    wide = {i: kind for i, kind in places.items() if grid.axes[i].size > 1}
    if not wide:
        return LastingMask(_along_last(missing, grid.axes, grid.dims.index(hierarchy[-1])))
    if not missing.any():
        return LastingMask(np.zeros([1] * missing.ndim, bool))
    ascending = [np.argsort(axis.numbers, kind="stable") for axis in grid.axes]
    axes = [axis.take(order) for axis, order in zip(grid.axes, ascending, strict=True)]
    found = _by_shape(missing[np.ix_(*ascending)], axes, wide, of_the_sea(grid))
    cells = np.empty_like(missing)
    cells[np.ix_(*ascending)] = found.cells
    return LastingMask(cells, f"{_WHY}: {found.note}")


def _lost_texts(missing: Mask, axes: Sequence[Axis]) -> Mask | None:
    """Return the cells at texts that have no data at all, or None if there are none.

    A sensor that never measured is not between two others. Names of months are.
    """
    found = None
    for place, axis in enumerate(axes):
        if axis.labels is not None and natural_period(axis) is None:
            lost = _lost(missing, place)
            if lost.any():
                found = lost if found is None else found | lost
    return found


def _lost(missing: Mask, place: int) -> Mask:
    """Return which coordinates of an axis have no data, in a shape that broadcasts."""
    others = tuple(i for i in range(missing.ndim) if i != place)
    return np.asarray(missing.all(axis=others, keepdims=True))


def _along_last(missing: Mask, axes: Sequence[Axis], last: int) -> Mask:
    """Return what is missing all along the last level, if that can be told from other gaps.

    Unless the last level is time, a coordinate of another axis without any data may as well be a
    row that was left out: that is a gap.
    """
    if sum(size > 1 for size in missing.shape) < 2 or missing.shape[last] == 1:
        return np.zeros([1] * missing.ndim, bool)
    cells = always_missing(missing, last)
    if not is_time(axes[last]) and not missing.all():
        for place in range(missing.ndim):
            if place != last:
                cells = cells & ~_lost(missing, place)
    return cells


def _by_shape(
    missing: Mask, axes: Sequence[Axis], places: Mapping[int, Place], sea: bool
) -> LastingMask:
    """Decide by the shape of the holes; all axes are in ascending order.

    Parameters
    ----------
    missing
        True where a cell has no value.
    axes
        Axes of the grid.
    places
        Kinds of those axes that have two or more coordinates, by place of the axis.
    sea
        Whether the values are of a quantity of the sea.
    """
    upright = [i for i, kind in places.items() if kind == "vertical"]
    if upright:
        return _by_columns(missing, axes, upright)
    ring = next((i for i in places if steps_round(axes[i]) is not None), None)
    labels, count = label_holes(missing, ring)
    if sea:
        return LastingMask(missing, f"{_all(missing, count)} {_LAND}: the quantity is of the sea")
    inner = ~beside(~missing, ring)[missing]
    wide = np.unique(labels[missing][inner & _far(missing, axes, places)])
    cells = np.isin(labels, wide)
    width = f"wider than {2 * FARTHEST_GAP:g} km"
    if not wide.size:
        return LastingMask(cells, f"{_all(missing, count)} {_GAPS}: no hole is {width}")
    if wide.size == count:
        return LastingMask(cells, f"{_all(missing, count)} {width} {_LAND}")
    note = (
        f"{_cells(cells)} in {_holes(wide.size)} {width} {_LAND}; {_cells(missing & ~cells)} in "
        f"{_holes(count - wide.size)} {_GAPS}"
    )
    return LastingMask(cells, note)


def _all(missing: Mask, count: int) -> str:
    return f"all {_cells(missing)} in {_holes(count)}"


def _cells(cells: Mask) -> str:
    count = int(np.count_nonzero(cells))
    return f"{count} missing cell{'s' if count != 1 else ''}"


def _holes(count: int) -> str:
    return f"{count} hole{'s' if count != 1 else ''}"


def _by_columns(missing: Mask, axes: Sequence[Axis], upright: Sequence[int]) -> LastingMask:
    """Take for lasting what is missing up to an end of a vertical axis."""
    cells = np.zeros(missing.shape, bool)
    for place in upright:
        cells |= reaches_end(missing, place)
    names = " or ".join(f"'{axes[i].name}'" for i in upright)
    note = (
        f"{_cells(cells)} in columns that are missing up to an end of {names} are taken for land "
        f"or sea floor and stay missing; {_cells(missing & ~cells)} between data {_GAPS}"
    )
    return LastingMask(cells, note)


def steps_round(axis: Axis, axes: Sequence[Axis] = ()) -> int | None:
    """Return the number of steps from coordinate to coordinate round a circle, or None.

    None means that the coordinates do not close a circle, which the other `axes` of their grid may
    tell (:func:`dkrls_cli.grid.cf.period_beside`). A longitude that is there twice, one turn
    apart, closes it with one step less.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> east = {"units": "degrees_east"}
    >>> [steps_round(axis_of("x", np.arange(0, end, 90), east)) for end in (270, 360, 361)]
    [None, 4, 4]
    """
    if axis.turn is not None and repeated(axis.numbers, axis.turn) is not None:
        return axis.size - 1
    return None if period_beside(axis, axes) is None else axis.size


def _far(missing: Mask, axes: Sequence[Axis], places: Mapping[int, Place]) -> Mask:
    """Return which missing cells, in C order, are farther from data than a gap reaches."""
    here, there = (_positions(axes, places, np.nonzero(m)) for m in (missing, shore(missing)))
    if here is None or there is None:
        return np.zeros(int(missing.sum()), bool)
    return nearest_distance(here, there, FARTHEST_GAP) > FARTHEST_GAP


def _positions(
    axes: Sequence[Axis], places: Mapping[int, Place], cells: tuple[Indices, ...]
) -> Array | None:
    """Return the positions of cells in kilometres (n, k), or None if units are not known.

    On the sphere, k is 3, and distances are straight lines through it: 16 m less than along the
    surface at 250 km.
    """
    if "projection" in places.values():
        units = {i: kilometres(axes[i]) for i in places}
        known = [axes[i].numbers[cells[i]] * unit for i, unit in units.items() if unit is not None]
        return np.stack(known, axis=1) if len(known) == len(places) else None
    degrees = {"latitude": np.zeros(cells[0].size), "longitude": np.zeros(cells[0].size)}
    for i, axis in enumerate(axes):
        kind = place_of(axis)
        if kind in degrees:
            degrees[kind] = axis.numbers[cells[i]]
    lat, lon = np.deg2rad(degrees["latitude"]), np.deg2rad(degrees["longitude"])
    sphere = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return _EARTH * np.stack(sphere, axis=1)


def of_the_sea(grid: Grid) -> bool:
    """Return whether a variable is a quantity of the sea, by its names.

    Examples
    --------
    >>> from dkrls_cli.grid.grid import as_grid
    >>> from dataclasses import replace
    >>> of_the_sea(replace(as_grid([1.0]), name="analysed_sst"))
    True
    """
    if _SEA_NAME.fullmatch(grid.name.lower()):
        return True
    texts = [grid.name, *(str(grid.attrs.get(k, "")) for k in ("standard_name", "long_name"))]
    return any(_OF_THE_SEA.search(re.sub(r"[\W_]+", " ", text.lower())) for text in texts)
