"""Files to grids: NetCDF, Zarr and tables, one file or several joined along one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError
from dkrls_cli.files.netcdf import axis_in, dataset_at, open_dataset, scalars_in
from dkrls_cli.files.source import Source, expand, kind_of
from dkrls_cli.files.tables import read_table
from dkrls_cli.grid.axes import Axis, calendar_of, index_axis, like, number_axis
from dkrls_cli.grid.cf import hierarchy_of, is_time
from dkrls_cli.grid.grid import Style


def open_source(
    inputs: Sequence[str], var: str | None = None, levels: Sequence[str] | None = None
) -> Source:
    """One variable of one file, or of several joined along the last level."""
    paths = [path for given in inputs for path in expand(given)]
    if len(paths) == 1:
        source = without_repeats(open_file(paths[0], var, levels))
        if max(source.shape) < 2:
            raise InputError(f"'{source.name}' in '{paths[0]}' is one cell. Expected a grid.")
        return source
    grows = is_time if levels is None else lambda axis: axis.name == levels[-1]
    sources = [_open(path, var, levels, grows) for path in paths]
    return without_repeats(_joined(sources, paths, levels))


def open_slices(
    inputs: Sequence[str], var: str | None, hierarchy: Sequence[str], likely: str
) -> Source:
    """Slices along the last level of a hierarchy, one or more, in one file or in several."""
    paths = [path for given in inputs for path in expand(given)]
    last = hierarchy[-1]

    def opened(path: str) -> Source:
        if var is None and kind_of(path) != "table" and has_variable([path], likely):
            return _open(path, likely, hierarchy, lambda axis: axis.name == last)
        return _open(path, var, hierarchy, lambda axis: axis.name == last, likely)

    sources = [opened(path) for path in paths]
    return without_repeats(_joined(sources, paths, hierarchy) if sources[1:] else sources[0])


def open_file(path: str, var: str | None = None, levels: Sequence[str] | None = None) -> Source:
    """One variable of one file, all of it."""
    return _open(path, var, levels, lambda _: False)


def read_coordinates(path: str, axes: Sequence[Axis]) -> dict[str, Any]:
    """Coordinates of a file for those of the axes that it has: by name, else by what they are."""
    theirs = {axis.name: axis for axis in _all_axes(expand(path)[0])}
    roles = {_role(axis): axis for axis in theirs.values() if _role(axis)}
    pairs = [(own, theirs.get(own.name) or roles.get(_role(own))) for own in axes]
    found = {own.name: like(axis, own) for own, axis in pairs if axis is not None}
    if not found:
        names = ", ".join(axis.name for axis in axes)
        raise InputError(f"'{path}' has no coordinate of the model's dimensions {names}.")
    return found


def has_variable(inputs: Sequence[str], name: str) -> bool:
    """Whether the first input, if it is a dataset, has a variable of this name."""
    path = expand(inputs[0])[0]
    if kind_of(path) == "table":
        return False
    with dataset_at(path) as dataset:
        return name in dataset.data_vars


def _all_axes(path: str) -> list[Axis]:
    """Every coordinate of a file that is a vector or a scalar."""
    if kind_of(path) == "table":
        return list(read_table(path)[0].axes)
    with dataset_at(path) as dataset:
        vectors = [str(name) for name, v in dataset.variables.items() if v.dims == (name,)]
        return [*(axis_in(dataset, name, []) for name in vectors), *scalars_in(dataset)]


def _role(axis: Axis) -> str:
    """What a coordinate is, whatever its name."""
    if axis.time is not None:
        return "time"
    if axis.turn is not None:
        return "longitude"
    north = axis.units.lower() in ("degrees_north", "degree_north")
    return "latitude" if north else str(axis.attrs.get("standard_name", ""))


def _open(
    path: str,
    var: str | None,
    levels: Sequence[str] | None,
    grows: Callable[[Axis], bool],
    likely: str | None = None,
) -> Source:
    """A variable of a file; an axis that `grows` is kept even if it has one coordinate."""
    if kind_of(path) != "table":
        return open_dataset(path, var, grows)
    grid, told = read_table(path, var, levels, likely=likely)
    notes = [note.removesuffix(".") for note in told]
    return Source(
        grid.axes, grid.name, grid.attrs, Style(), "float64", lambda: grid.values, notes=notes
    )


def without_repeats(source: Source) -> Source:
    """A source without the columns that repeat a longitude one turn later."""
    for place, axis in enumerate(source.axes):
        kept = _first_of_each(axis)
        if kept.size == axis.size:
            continue
        gone = axis.take(np.setdiff1d(np.arange(axis.size), kept)).texts
        verb = "repeat earlier ones and are" if len(gone) > 1 else "repeats an earlier one and is"
        note = f"{axis.name} {', '.join(gone)} {verb} dropped"
        fresh = number_axis(axis.name, axis.stored[kept], axis.attrs)
        source = replace(
            source,
            axes=(*source.axes[:place], fresh, *source.axes[place + 1 :]),
            load=partial(_taken, source.load, kept, place),
            notes=[*source.notes, note],
        )
    return source


def _taken(load: Callable[[], NDArray[Any]], kept: Any, place: int) -> NDArray[Any]:
    return np.asarray(np.take(load(), kept, axis=place))


def _first_of_each(axis: Axis) -> NDArray[np.intp]:
    """Positions of coordinates that are not whole turns away from an earlier one."""
    if axis.turn is None or np.unique(axis.plain).size < axis.size:
        return np.arange(axis.size)
    digits = 4 if axis.dtype == "float32" else 9
    spots = np.round(np.mod(axis.plain, axis.turn), digits) % axis.turn
    return np.sort(np.unique(spots, return_index=True)[1])


def _joined(
    sources: Sequence[Source], paths: Sequence[str], levels: Sequence[str] | None
) -> Source:
    """Several sources as one, joined along the last level."""
    first = sources[0]
    last = hierarchy_of(first.axes, levels)[-1]
    place = [axis.name for axis in first.axes].index(last)
    for source, path in zip(sources[1:], paths[1:], strict=True):
        _check_alike(first, source, path, last)
    joined = _joined_axis([source.axes[place] for source in sources])
    axes = (*first.axes[:place], joined, *first.axes[place + 1 :])

    def load() -> NDArray[Any]:
        return np.concatenate([source.load() for source in sources], axis=place)

    notes = list(dict.fromkeys(note for source in sources for note in source.notes))
    notes.append(f"{len(sources)} files joined along {last}")
    return replace(first, axes=axes, load=load, notes=notes)


def _joined_axis(axes: Sequence[Axis]) -> Axis:
    """Axes of several files one after the other, in the terms of the first."""
    first = axes[0]
    if not any(axis.has_coordinate for axis in axes):
        return index_axis(first.name, sum(axis.size for axis in axes))
    if first.turn is not None or first.labels is not None:
        raise InputError(f"Files can be joined along time or numbers, not along '{first.name}'.")
    calendars = list(dict.fromkeys(calendar_of(axis) for axis in axes))
    if len(calendars) > 1:
        raise InputError(f"The files count '{first.name}' by calendars {' and '.join(calendars)}.")
    numbers = np.concatenate([np.asarray(like(axis, first), np.float64) for axis in axes])
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
    """Refuse a file that does not continue the first one, saying what differs."""
    dims, theirs = [a.name for a in first.axes], [a.name for a in other.axes]
    if other.name != first.name or dims != theirs:
        raise InputError(
            f"'{path}' has {other.name} ({', '.join(theirs)}), the first file has {first.name} "
            f"({', '.join(dims)})."
        )
    for axis, its in zip(first.axes, other.axes, strict=True):
        if axis.name != last and axis.texts != its.texts:
            raise InputError(
                f"'{path}' has other coordinates of '{axis.name}' than the first file."
            )
