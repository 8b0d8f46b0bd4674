"""Files to grids: NetCDF, Zarr and tables, one file or several joined along one dimension."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.foreign.engines import with_engine
from dkrls_cli.files.griddes.grids import describe_cells
from dkrls_cli.files.griddes.names import GRID_NAMES
from dkrls_cli.files.netcdf import fields_of, open_dataset, open_xarray, read_axis, read_scalars
from dkrls_cli.files.source import Source, expand, is_netcdf, kind_of
from dkrls_cli.files.stored.reader import Reader
from dkrls_cli.files.styles import read_cells
from dkrls_cli.files.suitable import keep_suitable
from dkrls_cli.files.text.copying import TableCopy
from dkrls_cli.files.text.csv.opening import read_bytes
from dkrls_cli.files.text.tables import place_cells, read_table, value_columns
from dkrls_cli.grid.alignment import check_units
from dkrls_cli.grid.axes import Axis, calendar_of, convert_cells, convert_coordinates, index_axis
from dkrls_cli.grid.cf import hierarchy_of, is_called, is_time, pair_axes, place_of
from dkrls_cli.grid.grid import to_data_array
from dkrls_cli.grid.style import Style, join_styles, source_coordinates

if TYPE_CHECKING:
    import xarray as xr


ALL = "all"
"""Name that stands for every variable of a file that is on a grid and may be modelled."""

NOTHING: Mapping[str, bytes] = MappingProxyType({})


def open_grid(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    var: str | None = None,
    *,
    engine: str | None = None,
) -> xr.DataArray:
    r"""Read one variable of a file, or of several joined along time, as it is read by ``fit``.

    Fill values and values that were never written are NaN, coordinates are decoded, and a scalar
    time is a dimension of one coordinate.

    Parameters
    ----------
    path
        A NetCDF file, Zarr store or CSV table, a pattern such as ``"sst_*.nc"``, or a list. GRIB
        and GeoTIFF are read if the packages cfgrib and rioxarray are installed.
    var
        Name of the variable. None chooses the only one that can be meant.
    engine
        Engine of xarray that reads the files, such as ``h5netcdf``, whatever their names.

    Returns
    -------
    xarray.DataArray
        The values, in memory, with their coordinates and attributes.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such variable on a regular grid.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "sites.csv"
    >>> _ = path.write_text("x,site,t\n1,a,10\n1,b,NA\n2,a,30\n2,b,40\n")
    >>> grid = open_grid(path)
    >>> grid.dims
    ('x', 'site')
    >>> grid.sel(site="b").values
    array([nan, 40.])
    """
    paths = [path] if isinstance(path, str | os.PathLike) else path
    grid = open_source(with_engine([os.fspath(given) for given in paths], engine), var).grid()
    return to_data_array(grid.values, grid.axes, grid.name, grid.attrs)


def open_variables(
    inputs: Sequence[str],
    names: Sequence[str] = (),
    levels: Sequence[str] | None = None,
    raw: Mapping[str, bytes] | None = None,
) -> list[Source]:
    """Open variables of one file, or of several joined along the last level.

    Parameters
    ----------
    inputs
        Files and patterns.
    names
        Names of the variables; ``all`` for every one on a grid that holds no directions and no
        codes; none for the only one that can be meant.
    levels, raw
        As for :func:`open_source`.

    Raises
    ------
    InputError
        As for :func:`open_source`.
    SettingError
        If a variable is named twice.
    """
    if len(names) == 1 and names[0] != ALL:
        return [open_source(inputs, names[0], levels, raw=raw)]
    if not names:
        return [open_source(inputs, None, levels, raw=raw)]
    if len(set(names)) < len(names) or (ALL in names and len(names) > 1):
        raise SettingError(f"The variables {', '.join(names)} name one of them twice.")
    path = expand(inputs[0])[0]
    kind = kind_of(path)
    if kind != "table":
        with open_xarray(path, kind) as dataset:
            wanted = fields_of(dataset, path) if ALL in names else list(names)
        sources = [open_source(inputs, name, levels) for name in wanted]
    else:
        raw = raw or read_tables(inputs)
        wanted, dims = value_columns(raw[path], path, names, levels)
        opened = (open_source(inputs, name, dims, raw=raw) for name in wanted)
        sources = [_without_columns(source) for source in opened]
    return keep_suitable(sources) if ALL in names else sources


def _without_columns(source: Source) -> Source:
    """Return a source without the note on columns left out, which are other variables."""
    notes = [note for note in source.notes if not note.startswith("Columns left out")]
    return replace(source, notes=notes)


def open_source(
    inputs: Sequence[str],
    var: str | None = None,
    levels: Sequence[str] | None = None,
    likely: str | None = None,
    raw: Mapping[str, bytes] | None = None,
) -> Source:
    """Open one variable of one file, or of several joined along the last level.

    Parameters
    ----------
    inputs
        Files and patterns.
    var
        Name of the variable; None to choose the only one that can be meant.
    levels
        The dimensions in order of levels. By default files are joined along time.
    likely
        Variable to take if `var` is None and the file has it.
    raw
        Bytes of tables that have been read, by path.

    Raises
    ------
    InputError
        If a file cannot be read, or files do not go together.
    """
    paths = [path for given in inputs for path in expand(given)]
    grows = is_time if levels is None else lambda axis: is_called(axis, levels[-1])
    sources = [_open(path, var, levels, grows, likely, raw or {}) for path in paths]
    if len(paths) > 1:
        return _join(sources, paths, levels)
    if max(sources[0].shape) < 2:
        raise InputError(f"'{sources[0].name}' in '{paths[0]}' is one cell. Expected a grid.")
    return sources[0]


def read_tables(inputs: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of those inputs that are tables, by path: a pipe can be read once only."""
    paths = [path for given in inputs for path in expand(given)]
    return {path: read_bytes(path) for path in paths if kind_of(path) == "table"}


def open_slices(
    inputs: Sequence[str],
    var: str | None,
    hierarchy: Sequence[str],
    likely: str,
    raw: Mapping[str, bytes] = NOTHING,
) -> Source:
    """Open slices along the last level of a hierarchy, one or more, in one file or in several.

    Parameters
    ----------
    inputs
        Files and patterns.
    var
        Name of the variable; None to choose the only one that can be meant.
    hierarchy
        Dimensions of the model in order of levels.
    likely
        Variable to take if `var` is None and the file has it.
    raw
        Bytes of tables that have been read, by path.
    """
    paths = [path for given in inputs for path in expand(given)]
    last = hierarchy[-1]
    sources = [
        _open(path, var, hierarchy, lambda axis: axis.name == last, likely, raw) for path in paths
    ]
    return _join(sources, paths, hierarchy) if sources[1:] else sources[0]


def open_file(path: str, var: str | None = None, levels: Sequence[str] | None = None) -> Source:
    """Open one variable of one file, nothing of it left out."""
    return _open(path, var, levels, is_time)


@dataclass(frozen=True)
class Targets:
    """Where a grid asks for answers.

    Attributes
    ----------
    coordinates
        For each variable, the coordinates by the names of its axes.
    cells
        For each variable, the cells (m, 2) of those coordinates that have bounds, in its terms.
    unused
        Coordinates of the grid that no axis takes, though some axis has none of that kind.
    """

    coordinates: list[dict[str, Any]]
    cells: list[dict[str, Array]]
    unused: tuple[str, ...] = ()


def read_targets(path: str, variables: Sequence[Sequence[Axis]]) -> Targets:
    """Return the coordinates that a file or a named grid has for variables on some axes.

    The grid may be a file, a description of a grid, or a name such as ``r360x180``: see
    :func:`dkrls_cli.files.griddes.grids.describe_grid`. It is read once, as it may come from a
    pipe. A coordinate belongs to the axis of its name, or else to the one of its role: a latitude
    is one whatever its name.

    Raises
    ------
    InputError
        If there is no such file or grid, or it has no coordinate for any of the axes.
    """
    theirs, cells = _all_axes(path)
    paired = [pair_axes(axes, theirs) for axes in variables]
    if not any(paired):
        names = ", ".join(dict.fromkeys(axis.name for axes in variables for axis in axes))
        raise InputError(f"'{path}' has no coordinate of the model's dimensions {names}.")
    return Targets(
        [{own.name: convert_coordinates(its, own) for own, its in pairs} for pairs in paired],
        [
            {
                own.name: convert_cells(cells[its.name], its, own)
                for own, its in pairs
                if its.name in cells and own.labels is None
            }
            for pairs in paired
        ],
        _unused(theirs, variables, paired),
    )


def _unused(
    theirs: Sequence[Axis],
    variables: Sequence[Sequence[Axis]],
    paired: Sequence[Sequence[tuple[Axis, Axis]]],
) -> tuple[str, ...]:
    """Return the vectors of a grid that no axis takes, though one without a partner might.

    Axes of which nothing is known, such as positions, may be places on a map.
    """
    used = {its.name for pairs in paired for _, its in pairs}
    alone = {
        _kind_of_place(axis) or "horizontal"
        for axes, pairs in zip(variables, paired, strict=True)
        for axis in axes
        if axis.size > 1 and axis.name not in {own.name for own, _ in pairs}
    }
    return tuple(
        axis.name
        for axis in theirs
        if axis.size > 1 and axis.name not in used and _kind_of_place(axis) in alone
    )


def _kind_of_place(axis: Axis) -> str | None:
    """Return what kind of place or time coordinates are, or None if that is not known."""
    if is_time(axis):
        return "time"
    place = place_of(axis)
    return place if place in (None, "vertical") else "horizontal"


def has_variable(inputs: Sequence[str], name: str) -> bool:
    """Return whether the first input is a dataset, not a table, and has a variable of this name."""
    path = expand(inputs[0])[0]
    kind = kind_of(path)
    if kind == "table":
        return False
    with open_xarray(path, kind) as dataset:
        return name in dataset.data_vars


def _all_axes(given: str) -> tuple[list[Axis], dict[str, Array]]:
    """Return every coordinate of a file or a named grid that is a vector or a scalar, and cells."""
    described = describe_cells(given)
    if described is not None:
        return described
    try:
        path = expand(given)[0]
    except InputError as error:
        raise InputError(f"{error} Nor is it a grid by name, such as {GRID_NAMES}.") from None
    kind = kind_of(path)
    if kind == "table":
        return list(read_table(path)[0].axes), {}
    with open_xarray(path, kind) as dataset:
        vectors = [str(name) for name, v in dataset.variables.items() if v.dims == (name,)]
        axes = [*(read_axis(dataset, name, []) for name in vectors), *read_scalars(dataset)]
        return axes, read_cells(dataset, vectors)


def _open(
    path: str,
    var: str | None,
    levels: Sequence[str] | None,
    grows: Callable[[Axis], bool],
    likely: str | None = None,
    known: Mapping[str, bytes] = NOTHING,
) -> Source:
    """Open a variable of a file; a scalar that `grows` is an axis of one coordinate."""
    kind = kind_of(path)
    if kind != "table":
        return open_dataset(path, kind, var, grows, likely)
    raw = known[path] if path in known else read_bytes(path)
    if is_netcdf(raw[:8]):
        raise InputError(
            "Standard input is a NetCDF file. Only tables are read from a pipe: give the file."
            if path == "-"
            else f"'{path}' is a NetCDF file, whatever its name. End it in .nc."
        )
    placed = place_cells(raw, path, var, levels, likely=likely)
    grid = placed.grid
    notes = [note.removesuffix(".") for note in placed.notes]
    kept = raw if path == "-" else None
    grid.values.setflags(write=False)
    return Source(
        grid.axes,
        grid.name,
        grid.attrs,
        Style(coordinates=source_coordinates(grid.axes)),
        "float64",
        lambda: grid.values,
        notes=notes,
        table=TableCopy(path, var, levels, placed.is_wide, likely, kept),
        paths=(path,),
    )


def _join(sources: Sequence[Source], paths: Sequence[str], levels: Sequence[str] | None) -> Source:
    """Return several sources as one, joined along the last level."""
    first = sources[0]
    last = hierarchy_of(first.axes, levels)[-1]
    place = [axis.name for axis in first.axes].index(last)
    for source, path in zip(sources[1:], paths[1:], strict=True):
        _check_alike(first, source, path, last)
    joined = _join_axes([source.axes[place] for source in sources])
    axes = (*first.axes[:place], joined, *first.axes[place + 1 :])

    reader = _join_readers([source.reader for source in sources], place)

    def load() -> NDArray[Any]:
        return _load_joined(sources, tuple(axis.size for axis in axes), place)

    notes = list(dict.fromkeys(note for source in sources for note in source.notes))
    notes.append(f"{len(sources)} files joined along {last}")
    notes += _unit_notes(sources, paths)
    alike = len({source.axes[place].units for source in sources}) == 1
    style = join_styles([source.style for source in sources], last, joined, alike=alike)
    return replace(
        first,
        axes=axes,
        style=style,
        dtype=np.result_type(*(source.dtype for source in sources)).name,
        load=reader.read_all if reader else load,
        notes=notes,
        table=None,
        read=reader.read if reader else None,
        reader=reader,
        chunks=_join_chunks(sources, place) if reader else None,
        paths=tuple(paths),
    )


def _unit_notes(sources: Sequence[Source], paths: Sequence[str]) -> list[str]:
    """Return a note on files that do not say the units of their values, if others do."""
    units = [str(source.attrs.get("units", "")) for source in sources]
    lacking = [path for path, text in zip(paths, units, strict=True) if not text]
    known = next(filter(None, units), None)
    if known is None or not lacking:
        return []
    where = f"'{lacking[0]}'" + (f" nor in {len(lacking) - 1} more" if len(lacking) > 1 else "")
    name = sources[0].name
    return [f"'{name}' has no units in {where}: taken to be '{known}', as in others"]


def _join_readers(readers: Sequence[Reader | None], axis: int) -> Reader | None:
    """Return readers of one file each as one, or None if one of the files is in memory."""
    parts = [reader.parts[0] for reader in readers if reader is not None]
    return Reader(tuple(parts), axis) if len(parts) == len(readers) else None


def _join_chunks(sources: Sequence[Source], axis: int) -> tuple[int, ...] | None:
    """Return the chunks of the first file, not longer than any file along the axis."""
    chunks = sources[0].chunks
    if chunks is None:
        return None
    least = min(chunks[axis], *(source.shape[axis] for source in sources))
    return (*chunks[:axis], least, *chunks[axis + 1 :])


def _load_joined(sources: Sequence[Source], shape: tuple[int, ...], axis: int) -> NDArray[Any]:
    """Return the values of sources one behind the other; only one is in memory besides."""
    start, first = 0, sources[0].load()
    values = np.empty(shape, first.dtype)
    for part in chain([first], (source.load() for source in sources[1:])):
        values = values.astype(np.result_type(values, part), copy=False)
        stop = start + part.shape[axis]
        values[(*[slice(None)] * axis, slice(start, stop))] = part
        start = stop
    return values


def _join_axes(axes: Sequence[Axis]) -> Axis:
    """Return the axes of several files one after the other, in the terms of the first."""
    first = axes[0]
    if not any(axis.has_coordinate for axis in axes):
        return index_axis(first.name, sum(axis.size for axis in axes))
    if first.turn is not None or first.labels is not None:
        raise InputError(f"Files can be joined along time or numbers, not along '{first.name}'.")
    calendars = list(dict.fromkeys(calendar_of(axis) for axis in axes))
    if len(calendars) > 1:
        raise InputError(f"The files count '{first.name}' by calendars {' and '.join(calendars)}.")
    numbers = np.concatenate(
        [np.asarray(convert_coordinates(axis, first), np.float64) for axis in axes]
    )
    joined = replace(first, numbers=numbers)
    order = np.sort(numbers)
    again = order[1:][np.diff(order) == 0]
    if again.size:
        text = replace(joined, numbers=again[:1]).texts[0]
        raise InputError(
            f"Coordinate {text} of '{first.name}' is in more than one of the files, or twice in "
            "one. Give each once."
        )
    return joined


def _check_alike(first: Source, other: Source, path: str, last: str) -> None:
    """Raise InputError if a file does not continue the first one; the message says why."""
    dims, theirs = [a.name for a in first.axes], [a.name for a in other.axes]
    if other.name != first.name or dims != theirs:
        raise InputError(
            f"'{path}' has {other.name} ({', '.join(theirs)}), the first file has {first.name} "
            f"({', '.join(dims)})."
        )
    check_units(f"values of '{other.name}' in '{path}'", other.attrs, first.attrs, "first file")
    for axis, its in zip(first.axes, other.axes, strict=True):
        if axis.name == last:
            continue
        what = f"coordinates of '{axis.name}' in '{path}'"
        check_units(what, its.attrs, axis.attrs, "first file")
        if axis.texts != its.texts:
            raise InputError(
                f"'{path}' has other coordinates of '{axis.name}' than the first file."
            )
