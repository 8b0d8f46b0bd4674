"""Changes to data files: some cells of a variable replaced in a copy, and members added.

A file is copied byte by byte, then changed only in these cells: packed values are packed alike,
and other variables, groups, attributes and encodings stay as they are. The members of an ensemble
are added to a file one by one, so that only one of them is in memory.
"""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask, Slices
from dkrls_cli.errors import InputError, OutputError
from dkrls_cli.files.output import atomic_write
from dkrls_cli.files.packing import pack, packed_range
from dkrls_cli.files.source import kind_of
from dkrls_cli.grid.grid import REALIZATION, REALIZATION_ATTRS
from dkrls_cli.grid.style import Packing

Filters: TypeAlias = Callable[[int], Mapping[str, Any]]
"""Returns how a variable of so many bytes is compressed."""

# Cells of a chunk: 1 MB of float64, few enough to read one, many enough to be quick.
_CHUNK_CELLS = 2**17

# Bytes of a variable, or of one record of it, that a format can hold.
_LARGEST = {"NETCDF3_CLASSIC": 2**31 - 4, "NETCDF3_64BIT_OFFSET": 2**32 - 4}


@dataclass(frozen=True, eq=False)
class Patch:
    """A change to a file.

    Attributes
    ----------
    name
        Name of the variable.
    cells
        Mask of the cells to replace; as many cells as the variable has, in its order.
    values
        New values, in the same shape, NaN for missing cells; those of other cells are not used.
    history
        A line to put before the history of the file; empty for none.
    added
        A variable to add on the same dimensions: its name, values and attributes.
    """

    name: str
    cells: Mask
    values: Array
    history: str
    added: tuple[str, Array, Mapping[str, Any]] | None = None


def write_patched_copy(
    path: str,
    target: str,
    patches: Sequence[Patch],
    *,
    overwrite: bool,
    members: Sequence[Members] = (),
    filters: Filters = lambda size: {},
) -> list[str]:
    """Write a patched copy of a NetCDF file or Zarr store, whole or not at all.

    Parameters
    ----------
    path, target
        The file, and where the copy goes.
    patches
        Changes to different variables.
    overwrite
        Whether the target may exist.
    members
        Ensembles of these variables, whose members are drawn and written one by one.
    filters
        How ensembles are compressed, where the format of the file can be.

    Returns
    -------
    list of str
        What the format of the file or the type of a variable could not hold, a sentence each, for
        the user.

    Raises
    ------
    InputError
        If the file has a variable of the name of one to add: see :func:`check_names`.
    OutputError
        If the target exists and may not be overwritten, or has no folder, or its format cannot hold
        the members.
    """
    zarr = kind_of(path) == "zarr"
    with _copied(path, target, overwrite) as temporary:
        apply = _patch_zarr if zarr else _patch_netcdf
        notes = [note for patch in patches for note in apply(temporary, patch)]
        for each in members:
            notes += append_members(temporary, each, filters, zarr=zarr)
        return notes


@contextmanager
def _copied(path: str, target: str, overwrite: bool) -> Iterator[str]:
    """Yield a copy of a file or store that takes the place of the target if there is no error."""
    zarr = kind_of(path) == "zarr"
    with atomic_write(target, overwrite=overwrite, folder=zarr) as temporary:
        if zarr:
            shutil.copytree(path, temporary, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, temporary)
        yield str(temporary)


def check_names(path: str, errors: Sequence[str], ensembles: Sequence[str]) -> None:
    """Check that names are free in a NetCDF file or Zarr store to which variables will be added.

    Parameters
    ----------
    path
        The file.
    errors
        Names of standard errors to add.
    ensembles
        Names of ensembles to add; their dimension is added as well.

    Raises
    ------
    InputError
        If the file has a variable or a dimension of one of the names.
    """
    taken = (_names_in_zarr if kind_of(path) == "zarr" else _names_in_netcdf)(path)
    for name in errors:
        _refuse_taken(name, taken)
    for name in ensembles:
        _refuse_members(name, taken)
    if ensembles and REALIZATION in taken:
        raise InputError(
            f"The file has a dimension or variable '{REALIZATION}' already, as the dimension of "
            "the ensemble is to be named. Rename it, or leave the ensemble out."
        )


def _names_in_netcdf(path: str) -> set[str]:
    """Return the names of the variables and dimensions of a file."""
    import netCDF4

    with netCDF4.Dataset(path) as dataset:
        return {*dataset.variables, *dataset.dimensions}


def _names_in_zarr(path: str) -> set[str]:
    """Return the names of the arrays, groups and dimensions of a store."""
    import zarr

    found = dict(zarr.open_group(path, mode="r", use_consolidated=False).members())
    arrays = [one for one in found.values() if isinstance(one, zarr.Array)]
    return {*found, *(dim for array in arrays for dim in _zarr_dims(array))}


def _zarr_dims(array: Any) -> tuple[str, ...]:
    """Return the names of the dimensions of an array, as either format of Zarr has them."""
    named = getattr(array.metadata, "dimension_names", None)
    return tuple(named or array.attrs.get("_ARRAY_DIMENSIONS", ()))


def _patch_netcdf(path: str, patch: Patch) -> list[str]:
    import netCDF4

    with netCDF4.Dataset(path, "r+") as dataset:
        variable = dataset.variables[patch.name]
        variable.set_auto_maskandscale(False)
        attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
        variable[...], notes = _replace_cells(variable[...], patch, attrs)
        if _outgrown(attrs, patch):
            variable.delncattr("actual_range")
        if patch.added is not None:
            name, values, about = patch.added
            _refuse_taken(name, dataset.variables)
            filters = variable.filters() or {}
            added = dataset.createVariable(
                name,
                values.dtype,
                variable.dimensions,
                zlib=bool(filters.get("zlib")),
                fill_value=np.nan,
            )
            added.setncatts({**about, **_shared(attrs)})
            added[...] = values.reshape(variable.shape)
            variable.setncattr("ancillary_variables", _ancillary(attrs, name))
        dataset.setncattr("history", _join_history(patch.history, getattr(dataset, "history", "")))
    return notes


def _patch_zarr(path: str, patch: Patch) -> list[str]:
    import zarr

    together = _is_consolidated(path)
    array: Any = zarr.open_group(path, mode="r+", use_consolidated=False)[patch.name]
    attrs = dict(array.attrs)
    known = {"_FillValue": array.fill_value, **attrs}
    array[...], notes = _replace_cells(array[...], patch, known)
    if _outgrown(attrs, patch):
        del array.attrs["actual_range"]
    if patch.added is not None:
        name, values, about = patch.added
        _add_to_zarr(path, array, name, values, {**about, **_shared(attrs)})
        array.attrs["ancillary_variables"] = _ancillary(attrs, patch.added[0])
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    group.attrs["history"] = _join_history(patch.history, str(group.attrs.get("history", "")))
    if together:
        _consolidate(path)
    return notes


def _is_consolidated(path: str) -> bool:
    """Return whether the metadata of a store is in one place."""
    import zarr

    return zarr.open_group(path, mode="r").metadata.consolidated_metadata is not None


def _consolidate(path: str) -> None:
    """Write the metadata of a store, which has changed, again in one place."""
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats without it: the store had it before
        zarr.consolidate_metadata(path)


def _add_to_zarr(
    path: str, beside: Any, name: str, values: Array, attrs: Mapping[str, Any]
) -> None:
    """Add a variable on the dimensions of another one; the attributes of the store stay."""
    import xarray as xr
    import zarr

    group = zarr.open_group(path, mode="r", use_consolidated=False)
    _refuse_taken(name, dict(group.members()))
    variable = (list(_zarr_dims(beside)), values.reshape(beside.shape), dict(attrs))
    dataset = xr.Dataset({name: variable}, attrs=dict(group.attrs))
    dataset.to_zarr(path, mode="a", consolidated=False)


def _replace_cells(
    raw: NDArray[Any], patch: Patch, attrs: Mapping[str, Any]
) -> tuple[NDArray[Any], list[str]]:
    """Return the stored numbers of a variable with those of some cells replaced, and notes.

    The type of the variable stays, so that a number it cannot hold becomes the nearest it can.
    """
    stored = np.array(raw)
    beyond, marked = _put_cells(patch.name, stored, patch.cells, patch.values, attrs)
    return stored, _packing_notes(patch.name, stored.dtype, attrs, beyond, marked)


def _put_cells(
    name: str, stored: NDArray[Any], cells: Mask, values: Array, attrs: Mapping[str, Any]
) -> tuple[int, int]:
    """Replace some cells of stored numbers, in place; return how many are not as they should be.

    NaN makes a cell missing. Not as they should be are cells beyond what the type holds, and cells
    equal to a mark of missing values.
    """
    scale, offset = float(attrs.get("scale_factor", 1)), float(attrs.get("add_offset", 0))
    new = values[cells]
    gone = np.isnan(new)
    packed = pack((new[~gone] - offset) / scale, stored.dtype, attrs)
    numbers = np.empty(new.shape, stored.dtype)
    numbers[~gone] = packed.stored
    if gone.any():
        numbers[gone] = _missing_mark(name, stored.dtype, attrs)
    stored.reshape(cells.shape)[cells] = numbers
    return packed.beyond, packed.marked


def _packing_notes(
    name: str, dtype: np.dtype[Any], attrs: Mapping[str, Any], beyond: int, marked: int
) -> list[str]:
    """Return notes on filled cells that could not be stored as they are."""
    notes = []
    if beyond:
        low, high = packed_range(Packing(dtype.name, attrs))
        notes.append(
            f"{beyond} filled cells of '{name}' lie beyond {low:g} to {high:g}, which "
            f"its {dtype.name} can hold, and are stored as the nearer of the two"
        )
    if marked:
        scale = abs(float(attrs.get("scale_factor", 1)))
        notes.append(
            f"{marked} filled cells of '{name}' equal a mark of missing values, and "
            f"are stored {scale:g} beside it"
        )
    return notes


def _missing_mark(name: str, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> Any:
    """Return the number that marks a missing cell of a variable, or raise InputError."""
    for key in ("_FillValue", "missing_value"):
        mark = np.ravel(attrs.get(key, ()))
        if mark.size and mark.dtype.kind in "fiu":
            return mark[0]
    if dtype.kind == "f":
        return np.nan
    raise InputError(
        f"'{name}' is stored as {dtype} without a _FillValue: its cells cannot be missing. Write "
        "to another format."
    )


def _outgrown(attrs: Mapping[str, Any], patch: Patch) -> bool:
    """Return whether the range of values that a variable states no longer holds."""
    new = patch.values[patch.cells]
    low, high = new.min(initial=math.inf), new.max(initial=-math.inf)
    return _is_outgrown(attrs, float(low), float(high))


def _is_outgrown(attrs: Mapping[str, Any], low: float, high: float) -> bool:
    """Return whether new values from `low` to `high` are outside of the range that is stated."""
    stated = np.ravel(attrs.get("actual_range", ()))
    if stated.size != 2 or stated.dtype.kind not in "fiu":
        return False
    return bool(low < stated.min() or high > stated.max())


def _shared(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that hold for every variable on the same cells."""
    return {key: attrs[key] for key in ("coordinates", "grid_mapping") if key in attrs}


def _refuse_taken(name: str, taken: Collection[str]) -> None:
    if name in taken:
        raise InputError(
            f"The file has a variable '{name}' already, as the standard errors are to be named. "
            "Rename it, or leave the errors out (std)."
        )


def _ancillary(attrs: Mapping[str, Any], name: str) -> str:
    return " ".join([*str(attrs.get("ancillary_variables", "")).split(), name])


def _join_history(line: str, before: str) -> str:
    return "\n".join(filter(None, [line, before]))


# Parts --------------------------------------------------------------------------------------------


class PatchedCopy:
    """A copy of a NetCDF file or Zarr store whose variables are patched part by part.

    Parameters
    ----------
    path, copy
        The file, and its copy.
    """

    def __init__(self, path: str, copy: str) -> None:
        self._path, self._copy, self._zarr = path, copy, kind_of(path) == "zarr"

    @contextmanager
    def variable(self, name: str, added: AddedVariable | None = None) -> Iterator[PartWriter]:
        """Yield what patches one variable; `added` is a variable to add on its dimensions."""
        opened = self._open_zarr if self._zarr else self._open_netcdf
        with opened(name, added) as writer:
            yield writer

    def add_history(self, line: str) -> None:
        """Put a line before the history of the copy."""
        if not self._zarr:
            import netCDF4

            with netCDF4.Dataset(self._copy, "r+") as dataset:
                dataset.setncattr("history", _join_history(line, getattr(dataset, "history", "")))
            return
        import zarr

        together = _is_consolidated(self._copy)
        group = zarr.open_group(self._copy, mode="r+", use_consolidated=False)
        group.attrs["history"] = _join_history(line, str(group.attrs.get("history", "")))
        if together:
            _consolidate(self._copy)

    @contextmanager
    def _open_netcdf(self, name: str, added: AddedVariable | None) -> Iterator[PartWriter]:
        import netCDF4

        with netCDF4.Dataset(self._path) as source, netCDF4.Dataset(self._copy, "r+") as copy:
            raw, variable = source.variables[name], copy.variables[name]
            for one in (raw, variable):
                one.set_auto_maskandscale(False)
            attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
            errors: Any = None
            if added is not None:
                _refuse_taken(added.name, copy.variables)
                errors = copy.createVariable(
                    added.name,
                    added.dtype,
                    variable.dimensions,
                    zlib=bool((variable.filters() or {}).get("zlib")),
                    fill_value=np.nan,
                )
                errors.setncatts({**added.attrs, **_shared(attrs)})
                errors.set_auto_maskandscale(False)
                variable.setncattr("ancillary_variables", _ancillary(attrs, added.name))
            writer = PartWriter(name, raw, variable, errors, attrs)
            yield writer
            if writer.has_outgrown:
                variable.delncattr("actual_range")

    @contextmanager
    def _open_zarr(self, name: str, added: AddedVariable | None) -> Iterator[PartWriter]:
        import zarr

        together = _is_consolidated(self._copy)
        raw: Any = zarr.open_group(self._path, mode="r", use_consolidated=False)[name]
        group = zarr.open_group(self._copy, mode="r+", use_consolidated=False)
        variable: Any = group[name]
        attrs, errors = dict(variable.attrs), None
        if added is not None:
            _refuse_taken(added.name, dict(group.members()))
            errors = group.create_array(
                added.name,
                shape=variable.shape,
                chunks=variable.chunks,
                dtype=np.dtype(added.dtype),
                fill_value=np.nan,
                **_zarr_labels(group, _zarr_dims(variable), {**added.attrs, **_shared(attrs)}),
            )
            variable.attrs["ancillary_variables"] = _ancillary(attrs, added.name)
        writer = PartWriter(
            name, raw, variable, errors, {"_FillValue": variable.fill_value, **attrs}
        )
        yield writer
        if writer.has_outgrown:
            del variable.attrs["actual_range"]
        if together:
            _consolidate(self._copy)


@dataclass(frozen=True, eq=False)
class AddedVariable:
    """A variable to add to a file: its name, floating type and attributes."""

    name: str
    dtype: str
    attrs: Mapping[str, Any]


class PartWriter:
    """Writes filled cells into a copy of a variable, part by part.

    Cells that are not filled are written as the file has them, so a part may be written again.

    Parameters
    ----------
    name
        Name of the variable.
    raw, variable, errors
        The stored numbers of the file, of its copy, and of the variable added beside it, if any.
    attrs
        Attributes of the variable.
    """

    def __init__(
        self, name: str, raw: Any, variable: Any, errors: Any, attrs: Mapping[str, Any]
    ) -> None:
        self._name, self._attrs = name, attrs
        self._raw, self._variable, self._errors = raw, variable, errors
        self._dtype = np.dtype(raw.dtype)
        self.restart()

    def restart(self) -> None:
        """Forget what was written: all parts will be written again."""
        self._beyond = self._marked = 0
        self._low, self._high = math.inf, -math.inf

    def write(self, part: Slices, cells: Mask, values: Array, errors: Array | None = None) -> None:
        """Write a part of the variable, of which some cells are filled, and its standard errors.

        `part` has a slice for each axis of the grid; a first one of one coordinate may be a scalar
        of the file.
        """
        own = part[len(part) - len(self._raw.shape) :]
        stored = np.array(self._raw[own])
        beyond, marked = _put_cells(self._name, stored, cells, values, self._attrs)
        self._beyond, self._marked = self._beyond + beyond, self._marked + marked
        self._variable[own] = stored
        new = values[cells]
        self._low = min(self._low, float(new.min(initial=math.inf)))
        self._high = max(self._high, float(new.max(initial=-math.inf)))
        if self._errors is not None and errors is not None:
            self._errors[own] = errors.reshape(stored.shape).astype(self._errors.dtype)

    @property
    def notes(self) -> list[str]:
        """Notes on filled cells that could not be stored as they are."""
        counts = self._beyond, self._marked
        return _packing_notes(self._name, self._dtype, self._attrs, *counts)

    @property
    def has_outgrown(self) -> bool:
        """Whether the range of values that the variable states no longer holds."""
        return _is_outgrown(self._attrs, self._low, self._high)


@contextmanager
def patched_copy(path: str, target: str, *, overwrite: bool) -> Iterator[PatchedCopy]:
    """Yield a copy of a NetCDF file or Zarr store to be patched; it appears whole or not at all.

    Parameters
    ----------
    path, target
        The file, and where the copy goes.
    overwrite
        Whether the target may exist.

    Raises
    ------
    OutputError
        As :func:`write_patched_copy`.
    """
    with _copied(path, target, overwrite) as temporary:
        yield PatchedCopy(path, temporary)


# Members ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Members:
    """Members of an ensemble, to be written one at a time.

    Attributes
    ----------
    beside
        Name of the variable on whose dimensions each member is.
    name, attrs
        Name and attributes of the variable that holds the members.
    dtype
        Floating type in which they are stored.
    count
        Number of members.
    arrays
        The members, in the order of the dimensions of the variable; NaN where missing.
    """

    beside: str
    name: str
    attrs: Mapping[str, Any]
    dtype: str
    count: int
    arrays: Iterator[Array]


def append_members(path: str, members: Members, filters: Filters, *, zarr: bool) -> list[str]:
    """Add the members of an ensemble to a NetCDF file, or to a Zarr store of format 2 or 3.

    They are a variable with ``realization`` before the dimensions of the one that they are beside.
    In NetCDF-3, where an unlimited dimension has to be the first, it stands before ``realization``.

    Parameters
    ----------
    path
        The file.
    members
        The members.
    filters
        Returns how a variable of so many bytes is compressed; NetCDF-3 does not compress.
    zarr
        Whether the file is a store.

    Returns
    -------
    list of str
        What is other than in files of other formats, a sentence each, for the user.

    Raises
    ------
    InputError
        If the file has a variable of that name.
    OutputError
        If the format cannot hold so many cells.
    """
    if zarr:
        _append_to_zarr(path, members, filters)
        return []
    return _append_to_netcdf(path, members, filters)


def _append_to_netcdf(path: str, members: Members, filters: Filters) -> list[str]:
    import netCDF4

    with netCDF4.Dataset(path, "r+") as dataset:
        _refuse_members(members.name, dataset.variables)
        variable = dataset.variables[members.beside]
        place = _realization_place(dataset, variable)
        size = members.count * variable.size * np.dtype(members.dtype).itemsize
        record = size // max(1, variable.shape[0]) if place else size
        _refuse_larger(members, record, dataset.data_model)
        if REALIZATION not in dataset.dimensions:
            dataset.createDimension(REALIZATION, members.count)
            coordinate = dataset.createVariable(REALIZATION, "i4", (REALIZATION,))
            coordinate.setncatts(REALIZATION_ATTRS)
            coordinate[:] = np.arange(members.count)
        attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
        how: dict[str, Any] = {}
        if not dataset.data_model.startswith("NETCDF3"):
            chunks = (1, *whole_chunks(variable.shape)) if variable.size else None
            how = {"chunksizes": chunks, **filters(size)}
        dims = variable.dimensions
        dims = (*dims[:place], REALIZATION, *dims[place:])
        added = dataset.createVariable(members.name, members.dtype, dims, fill_value=np.nan, **how)
        added.setncatts({**members.attrs, **_shared(attrs)})
        added.set_auto_maskandscale(False)
        whole = (slice(None),) * place
        for number, values in enumerate(members.arrays):
            added[(*whole, number)] = values.reshape(variable.shape)
    if not place:
        return []
    return [
        f"'{members.name}' has '{REALIZATION}' after '{dims[0]}', which is unlimited: in NetCDF-3 "
        "such a dimension is the first"
    ]


def _realization_place(dataset: Any, variable: Any) -> int:
    """Return the place of the members among the dimensions: first, or after one that must be."""
    dims = variable.dimensions
    grows = bool(dims) and dataset.dimensions[dims[0]].isunlimited()
    return int(grows and dataset.data_model.startswith("NETCDF3"))


def _refuse_larger(members: Members, size: int, form: str) -> None:
    """Raise OutputError if a format cannot hold a variable, or a record of it, of so many bytes."""
    if size > _LARGEST.get(form, size):
        raise OutputError(
            f"'{members.name}' has {size / 1e9:.3g} GB, and a file of the format {form} holds "
            f"{_LARGEST[form] / 1e9:.3g} GB of a variable. Give fewer members, or write to .zarr."
        )


def _append_to_zarr(path: str, members: Members, filters: Filters) -> None:
    import zarr

    together = _is_consolidated(path)
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    _refuse_members(members.name, dict(group.members()))
    if REALIZATION not in group:
        numbers = np.arange(members.count, dtype=np.int32)
        coordinate = group.create_array(
            REALIZATION,
            shape=numbers.shape,
            dtype=numbers.dtype,
            fill_value=None,  # a number would mark a member as missing
            **_zarr_labels(group, [REALIZATION], REALIZATION_ATTRS),
        )
        coordinate[...] = numbers
    beside: Any = group[members.beside]
    attrs, dtype = dict(beside.attrs), np.dtype(members.dtype)
    labels = [REALIZATION, *_zarr_dims(beside)]
    added = group.create_array(
        members.name,
        shape=(members.count, *beside.shape),
        chunks=(1, *(max(1, size) for size in whole_chunks(beside.shape))),
        dtype=dtype,
        fill_value=np.nan,
        **_zarr_labels(group, labels, {**members.attrs, **_shared(attrs)}),
        **filters(members.count * beside.size * dtype.itemsize),
    )
    for number, values in enumerate(members.arrays):
        added[number] = values.reshape(beside.shape).astype(dtype)
    if together:
        _consolidate(path)


def _zarr_labels(group: Any, dims: Sequence[str], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dimensions and attributes of a new array, as the format of the store has them."""
    if group.metadata.zarr_format == 2:
        return {"attributes": {**attrs, "_ARRAY_DIMENSIONS": list(dims)}}
    return {"attributes": dict(attrs), "dimension_names": list(dims)}


def _refuse_members(name: str, taken: Collection[str]) -> None:
    if name in taken:
        raise InputError(
            f"The file has a variable '{name}' already, as the members of the ensemble are to be "
            "named. Rename it, or leave the ensemble out."
        )


def whole_chunks(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of chunks: whole along the last axes, as many cells as may be.

    >>> whole_chunks((10000, 300)), whole_chunks((12, 10, 10**6))
    ((436, 300), (1, 1, 131072))
    """
    sizes: list[int] = []
    room = _CHUNK_CELLS
    for size in reversed(shape):
        sizes.append(min(size, max(1, room)))
        room //= max(1, sizes[-1])
    return tuple(reversed(sizes))
