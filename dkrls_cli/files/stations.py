"""Answers at stations and points to files: NetCDF and Zarr, as discrete sampling geometries of CF.

Stations that are all answered at the same times are time series on dimensions ``time`` and
``station``; points with a time of their own are points on a dimension ``obs`` (CF conventions,
chapter 9). The columns that are no coordinates become variables beside the answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.files.output.atomic import atomic_write
from dkrls_cli.files.patching.members import Members, whole_chunks
from dkrls_cli.files.text.csv.cells import is_missing, parse_values
from dkrls_cli.files.text.points import PointBlock, role_of_axis
from dkrls_cli.files.writing import (
    _attrs,
    _stored,
    _writable,
    compression,
    explain_writing,
    history_line,
    reserved_names,
    write_dataset,
    write_members,
)
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import Role, is_time, role_of
from dkrls_cli.grid.grid import STATION
from dkrls_cli.grid.style import Style

if TYPE_CHECKING:
    import xarray as xr

_POINT = "obs"
_CONVENTIONS = "CF-1.8"
# Names of columns that say which station it is, those that are meant for this first.
_IDENTIFIERS = ["station", "station_id", "stationid", "site", "site_id", "siteid", "id", "wmo_id"]
_IDENTIFIERS += ["wmo", "code", "sensor", "name", "station_name", "site_name"]
# Attributes of a variable on a grid that are not true of its answers at stations.
_OF_GRIDS = frozenset(("ancillary_variables", "cell_measures", "cell_methods", "coordinates"))
_OF_GRIDS |= {"actual_range", "grid_mapping", "grid_type", "valid_range", "valid_min", "valid_max"}
# The same for coordinates, and for the whole file.
_OF_AXES = frozenset(("axis", "bounds", "climatology", "actual_range", "_CoordinateAxisType"))
_OF_FILES = frozenset(("cdm_data_type", "Conventions", "featureType", "history"))
# Standard names of coordinates that make a horizontal place.
_PLACES = (
    {"longitude", "latitude"},
    {"grid_longitude", "grid_latitude"},
    {"projection_x_coordinate", "projection_y_coordinate"},
)
# Attributes of which a variable should have one.
_NAMED = frozenset(("long_name", "standard_name"))
_HEIGHTS = ("alt", "altitude", "elevation", "elev", "height")
_UNITS = {"longitude": "degrees_east", "latitude": "degrees_north"}
# Whole numbers that 32 bits hold: CF has none of 64 bits.
_WHOLE_NUMBER = re.compile(r"[+-]?(0|[1-9]\d{0,8})", re.ASCII)
_ZERO_PADDED = re.compile(r"[+-]?0\d")

Variables = Mapping[str, tuple[NDArray[Any], Mapping[str, Any]]]
"""Values and attributes by name."""

Entry = tuple[Any, Any, dict[str, Any]]
"""Dimensions, values and attributes of a variable."""


def write_stations(
    path: str,
    table: PointBlock,
    spread: Sequence[Axis],
    variables: Variables,
    style: Style,
    command: Sequence[str],
    *,
    overwrite: bool,
    compress: int | None = None,
    members: Sequence[Members] = (),
) -> None:
    """Write answers at stations to a NetCDF file, or to a Zarr store if named ``.zarr``.

    Parameters
    ----------
    path
        The target, which is written whole or not at all.
    table
        The stations: all columns of their table, and their coordinates.
    spread
        Axes at whose coordinates every station is answered, such as time; none for points that
        have all coordinates of their own.
    variables
        Answers (stations, coordinates of the first axis in `spread`, ...) and attributes, by name.
    style
        How the file of the training data keeps its variable.
    command
        Words of the command line, for the history.
    overwrite
        Whether the target may exist.
    compress
        Level of compression, as for :func:`dkrls_cli.files.writing.write_grid`.
    members
        Ensembles of the answers, each member in their shape, drawn and written one by one.

    Raises
    ------
    OutputError
        If the target exists and may not be overwritten, or has no folder.
    InputError
        If a column has the name of an answer, or the library for the format is not installed.
    """
    dataset = _dataset(table, spread, variables, style, command, reserved_names(members))
    zarr = path.rstrip("/").endswith(".zarr")
    encoding = {name: _encoding(dataset[name], zarr) for name in map(str, dataset.variables)}
    for name in variables:
        encoding[name] |= compression(dataset[name].nbytes, compress, zarr)
        if style.fill is not None:
            encoding[name]["_FillValue"] = np.dtype(style.dtype).type(style.fill)
        if dataset[name].size and not zarr:
            # the default of an UNLIMITED time is a chunk for each
            encoding[name]["chunksizes"] = whole_chunks(dataset[name].shape)
    with atomic_write(path.rstrip("/"), overwrite=overwrite, folder=zarr) as temporary:
        with explain_writing(path):
            grows = [axis.name for axis in spread if is_time(axis)]
            write_dataset(dataset, temporary, encoding, grows, zarr=zarr)
        turned = [replace(each, arrays=_turned(each, dataset, spread)) for each in members]
        write_members(temporary, turned, compress, zarr=zarr)


def _turned(members: Members, dataset: xr.Dataset, spread: Sequence[Axis]) -> Iterator[Array]:
    """Return members (stations, coordinates of the first axis in `spread`, ...) as in the file."""
    dims = dataset[members.beside].dims
    instance = next(dim for dim in dims if dim not in [axis.name for axis in spread])
    given = [instance, *(axis.name for axis in spread)]
    order = [given.index(dim) for dim in dims]
    return (values.transpose(order) for values in members.arrays)


def _dataset(
    table: PointBlock,
    spread: Sequence[Axis],
    variables: Variables,
    style: Style,
    command: Sequence[str],
    reserved: Collection[str] = (),
) -> xr.Dataset:
    """Return answers with the coordinates and columns of their stations, as CF has them.

    Time comes first, as CDO and NCO need it, and then the stations. Ensembles of the answers have
    `reserved` names.
    """
    import xarray as xr

    _refuse_taken(table.header, [*variables, *reserved])
    taken = {*variables, *reserved, *(axis.name for axis in spread)}
    instance = _free_name(STATION if spread else _POINT, taken)
    taken.add(instance)
    coords = {a.name: (a.name, _stored(a), _axis_attrs(a)) for a in spread if a.has_coordinate}
    places = _coordinates(table, instance, taken)
    columns = _columns(table, instance, taken)
    feature = _feature_type(spread, [*places.values(), *columns.values()], table)
    if feature == "timeSeries":
        _mark_identifier(table, instance, places, columns, taken)
    for name in list(columns):
        if {"cf_role", "standard_name"} & set(columns[name][2]) or name.lower() in _HEIGHTS:
            places[name] = columns.pop(name)
    what = f"{next(iter(variables))} at {len(table.cells)} {'stations' if spread else 'points'}"
    attrs = {"title": what, **_file_attrs(style, command)}
    attrs |= {"featureType": feature} if feature else {}
    data = {**_answers(variables, [instance, *(a.name for a in spread)], style), **columns}
    first = [axis.name for axis in spread if is_time(axis)]
    coords |= _scalars(style, {*data, *coords, *places, *reserved})
    return xr.Dataset(data, {**coords, **places}, attrs).transpose(*first, instance, ...)


def _scalars(style: Style, taken: Collection[str]) -> dict[str, Entry]:
    """Return the single numbers beside the data, such as its height, that are true everywhere."""
    return {
        name: ((), one.values, _writable(one.attrs))
        for name, one in style.companions.items()
        if one.dims == () and name not in taken
    }


def _answers(variables: Variables, dims: Sequence[str], style: Style) -> dict[str, Any]:
    """Return the answers as variables, the first linked to the others, and the map projection."""
    mapping = {"grid_mapping": style.grid_mapping} if style.grid_mapping else {}
    data: dict[str, Any] = {
        name: (
            dims,
            values.astype(style.dtype, copy=False),
            {**_answer_attrs(name, attrs), **mapping},
        )
        for name, (values, attrs) in variables.items()
    }
    for name in data:
        if f"{name}_std" in data:
            data[name][2]["ancillary_variables"] = f"{name}_std"
    for name in style.mappings:
        projection = style.companions[name]
        data[name] = (projection.dims, projection.values, _writable(projection.attrs))
    return data


def _file_attrs(style: Style, command: Sequence[str]) -> dict[str, Any]:
    """Return the attributes of the file of the training data that still hold, and the history."""
    kept = {k: v for k, v in _writable(style.global_attrs).items() if k not in _OF_FILES}
    lines = [history_line(command), str(style.global_attrs.get("history", ""))]
    return {**kept, "Conventions": _CONVENTIONS, "history": "\n".join(filter(None, lines))}


def _refuse_taken(header: Sequence[str], answers: Collection[str]) -> None:
    taken = [name for name in answers if name in header]
    if taken:
        raise InputError(
            f"There is a column '{taken[0]}' already, as the answers are named. Rename it."
        )


def _answer_attrs(name: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in _writable(attrs).items() if key not in _OF_GRIDS}
    return kept if _NAMED & set(kept) else {"long_name": name, **kept}


def _axis_attrs(axis: Axis) -> dict[str, Any]:
    """Return the attributes of a coordinate, with the marks that CF asks for."""
    attrs = {name: value for name, value in _attrs(axis).items() if name not in _OF_AXES}
    role = role_of_axis(axis)
    if role is None:
        return attrs if _NAMED & set(attrs) else {"long_name": axis.name, **attrs}
    units = {"units": _UNITS[role]} if role in _UNITS else {}
    return {"standard_name": role, **attrs, **units}


def _coordinates(table: PointBlock, instance: str, taken: set[str]) -> dict[str, Entry]:
    """Return the coordinates of the stations as variables.

    A coordinate that is the same for all stations, as it has no column, is a scalar: a height of
    2 m. Places and times are on the dimension of the stations in any case, as CF demands it.
    """
    found: dict[str, Entry] = {}
    for axis, column in zip(table.axes, table.columns, strict=True):
        name = _free_name(_variable_name(axis.name, instance), taken)
        taken.add(name)
        values, attrs = _stored(axis), _axis_attrs(axis)
        scalar = column is None and role_of_axis(axis) is None and values.size > 0
        found[name] = ((), values[0], attrs) if scalar else (instance, values, attrs)
    return found


def _columns(table: PointBlock, instance: str, taken: set[str]) -> dict[str, Entry]:
    """Return the other columns of the table as variables: numbers where all cells are."""
    found: dict[str, Entry] = {}
    known = {role_of_axis(axis) for axis in table.axes}
    for place, title in enumerate(table.header):
        if place in table.columns:
            continue
        values = _parse_column([row[place].strip() for row in table.cells])
        name = _free_name(_variable_name(_plain_name(title), instance), taken)
        taken.add(name)
        found[name] = (instance, values, _column_attrs(title, values, known))
    return found


def _column_attrs(
    title: str, values: NDArray[Any], known: Collection[Role | None]
) -> dict[str, Any]:
    """Return attributes of a column: its title, and those of a place if it is not `known` yet."""
    role = role_of(title, {}) if values.dtype.kind in "fi" else None
    if role is None or role in known or role not in _UNITS:
        return {"long_name": title}
    return {"long_name": title, "standard_name": role, "units": _UNITS[role]}


def _parse_column(texts: Sequence[str]) -> NDArray[Any]:
    """Return cells as whole numbers, numbers (NaN where missing) or texts; 007 is a text."""
    if texts and all(map(_WHOLE_NUMBER.fullmatch, texts)):
        return np.array([int(text) for text in texts], np.int32)
    padded = any(map(_ZERO_PADDED.match, texts))
    numbers = None if padded or all(map(is_missing, texts)) else parse_values(texts)
    return np.array(texts, dtype=np.str_) if numbers is None else numbers


def _plain_name(title: str) -> str:
    """Return a title as a name that CF allows: letters, digits and underscores.

    >>> _plain_name("Name (local)"), _plain_name("2m temp")
    ('Name__local_', 'column_2m_temp')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", title)
    return name if re.match("[A-Za-z]", name) else f"column_{name}"


def _variable_name(name: str, instance: str) -> str:
    """Return the name of a variable on the instance dimension, which must not be its name."""
    return f"{name}_id" if name == instance else name


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken, with underscores if need be."""
    while name in taken:
        name += "_"
    return name


def _feature_type(
    spread: Sequence[Axis], entries: Sequence[Entry], table: PointBlock
) -> str | None:
    """Return CF's feature type, or None if the stations have no place or the axes fit none.

    Every feature type of CF has a horizontal place and a time.
    """
    standard = {str(attrs.get("standard_name", "")) for _, _, attrs in entries}
    if not any(pair <= standard for pair in _PLACES):
        return None
    if not spread:
        return "point" if any(map(is_time, table.axes)) else None
    return "timeSeries" if [is_time(axis) for axis in spread] == [True] else None


def _mark_identifier(
    table: PointBlock,
    instance: str,
    places: dict[str, Entry],
    columns: dict[str, Entry],
    taken: set[str],
) -> None:
    """Mark the variable that identifies the stations; without one, number their rows.

    It is a column with a name that says so and no cell twice, or a coordinate of text labels.
    """
    by_title = {str(entry[2]["long_name"]).lower(): entry for entry in columns.values()}
    named = [by_title[title] for title in _IDENTIFIERS if title in by_title]
    labels = [entry for entry in places.values() if entry[0] and entry[1].dtype.kind == "U"]
    for _, values, attrs in (*named, *labels):
        if np.unique(values).size == values.size and not _has_missing(values):
            attrs["cf_role"] = "timeseries_id"
            return
    name = _free_name("station_id", taken)
    about = {"long_name": "row of the station in its table", "cf_role": "timeseries_id"}
    columns[name] = (instance, np.arange(1, len(table.cells) + 1, dtype=np.int32), about)


def _has_missing(values: NDArray[Any]) -> bool:
    kind = values.dtype.kind
    return bool(np.isnan(values).any() if kind == "f" else kind == "U" and (values == "").any())


def _encoding(variable: xr.DataArray, zarr: bool) -> dict[str, Any]:
    """Return how to write a variable: texts as characters, no fill value where none is needed."""
    kind = variable.dtype.kind
    if kind == "U":
        return {} if zarr else {"dtype": "S1"}
    return {"_FillValue": np.nan if kind == "f" and _has_missing(variable.values) else None}
