"""Members of an ensemble added to a file one by one, so that only one of them is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.errors import OutputError
from dkrls_cli.files.patching.beside import refuse_members, shared_attributes
from dkrls_cli.files.patching.stores import changed_store, dims_of, labels_of
from dkrls_cli.grid.grid import REALIZATION, REALIZATION_ATTRS

Filters: TypeAlias = Callable[[int], Mapping[str, Any]]
"""Returns how a variable of so many bytes is compressed."""

# Cells of a chunk: 1 MB of float64, few enough to read one, many enough to be quick.
_CHUNK_CELLS = 2**17

# Bytes of a variable, or of one record of it, that a format can hold.
_LARGEST = {"NETCDF3_CLASSIC": 2**31 - 4, "NETCDF3_64BIT_OFFSET": 2**32 - 4}


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
    """Add the members to a NetCDF file; return a note if they do not come first."""
    import netCDF4

    with netCDF4.Dataset(path, "r+") as dataset:
        refuse_members(members.name, dataset.variables)
        variable = dataset.variables[members.beside]
        place = _realization_place(dataset, variable)
        size = members.count * variable.size * np.dtype(members.dtype).itemsize
        record = size // max(1, variable.shape[0]) if place else size
        _refuse_larger(members, record, dataset.data_model)
        if REALIZATION not in dataset.dimensions:
            _number_in_netcdf(dataset, members.count)
        attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
        how: dict[str, Any] = {}
        if not dataset.data_model.startswith("NETCDF3"):
            chunks = (1, *whole_chunks(variable.shape)) if variable.size else None
            how = {"chunksizes": chunks, **filters(size)}
        dims = variable.dimensions
        dims = (*dims[:place], REALIZATION, *dims[place:])
        added = dataset.createVariable(members.name, members.dtype, dims, fill_value=np.nan, **how)
        added.setncatts({**members.attrs, **shared_attributes(attrs)})
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


def _number_in_netcdf(dataset: Any, count: int) -> None:
    """Add the dimension of so many members to a file, and their numbers."""
    dataset.createDimension(REALIZATION, count)
    coordinate = dataset.createVariable(REALIZATION, "i4", (REALIZATION,))
    coordinate.setncatts(REALIZATION_ATTRS)
    coordinate[:] = np.arange(count)


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
    """Add the members to a Zarr store."""
    with changed_store(path) as group:
        refuse_members(members.name, dict(group.members()))
        if REALIZATION not in group:
            _number_in_zarr(group, members.count)
        beside: Any = group[members.beside]
        attrs, dtype = dict(beside.attrs), np.dtype(members.dtype)
        about = {**members.attrs, **shared_attributes(attrs)}
        added = group.create_array(
            members.name,
            shape=(members.count, *beside.shape),
            chunks=(1, *(max(1, size) for size in whole_chunks(beside.shape))),
            dtype=dtype,
            fill_value=np.nan,
            **labels_of(group, [REALIZATION, *dims_of(beside)], about),
            **filters(members.count * beside.size * dtype.itemsize),
        )
        for number, values in enumerate(members.arrays):
            added[number] = values.reshape(beside.shape).astype(dtype)


def _number_in_zarr(group: Any, count: int) -> None:
    """Add the numbers of so many members to a store."""
    numbers = np.arange(count, dtype=np.int32)
    coordinate = group.create_array(
        REALIZATION,
        shape=numbers.shape,
        dtype=numbers.dtype,
        fill_value=None,  # a number would mark a member as missing
        **labels_of(group, [REALIZATION], REALIZATION_ATTRS),
    )
    coordinate[...] = numbers


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
