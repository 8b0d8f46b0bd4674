"""Copies of data files with some cells of a variable replaced, all else as it was.

A file is copied byte by byte, then changed only in these cells: packed values are packed alike,
and other variables, groups, attributes and encodings stay as they are. The only door to netCDF4,
and to zarr.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.errors import InputError
from dkrls_cli.files.output import atomic_write
from dkrls_cli.files.source import kind_of


@dataclass(frozen=True, eq=False)
class Patch:
    """A change to a file.

    Attributes
    ----------
    name
        Name of the variable.
    cells
        Mask of the cells to replace, in the shape of the variable without dimensions of size 1.
    values
        New values, in the same shape; those of other cells are not used.
    history
        A line to put before the history of the file.
    added
        A variable to add on the same dimensions: its name, values and attributes.
    """

    name: str
    cells: Mask
    values: Array
    history: str
    added: tuple[str, Array, Mapping[str, Any]] | None = None


def write_patched_copy(path: str, target: str, patch: Patch, *, overwrite: bool) -> None:
    """Write a patched copy of a NetCDF file or Zarr store, whole or not at all.

    Raises
    ------
    InputError
        If the file has a variable of the name of the one to add.
    OutputError
        If the target exists and may not be overwritten, or has no folder.
    """
    zarr = kind_of(path) == "zarr"
    with atomic_write(target, overwrite=overwrite, folder=zarr) as temporary:
        if zarr:
            shutil.copytree(path, temporary)
            _patch_zarr(str(temporary), patch)
        else:
            shutil.copyfile(path, temporary)
            _patch_netcdf(str(temporary), patch)


def _patch_netcdf(path: str, patch: Patch) -> None:
    import netCDF4

    with netCDF4.Dataset(path, "r+") as dataset:
        variable = dataset.variables[patch.name]
        variable.set_auto_maskandscale(False)
        attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
        variable[...] = _replace_cells(variable[...], patch, attrs)
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
            added.setncatts(dict(about))
            added[...] = values.reshape(variable.shape)
            variable.setncattr("ancillary_variables", _ancillary(attrs, name))
        dataset.setncattr("history", _history(patch, getattr(dataset, "history", "")))


def _patch_zarr(path: str, patch: Patch) -> None:
    import zarr

    together = zarr.open_group(path, mode="r").metadata.consolidated_metadata is not None
    array: Any = zarr.open_group(path, mode="r+", use_consolidated=False)[patch.name]
    attrs = dict(array.attrs)
    array[...] = _replace_cells(array[...], patch, {"_FillValue": array.fill_value, **attrs})
    if patch.added is not None:
        _add_to_zarr(path, array, *patch.added)
        array.attrs["ancillary_variables"] = _ancillary(attrs, patch.added[0])
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    group.attrs["history"] = _history(patch, str(group.attrs.get("history", "")))
    if together:
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
    dims = getattr(beside.metadata, "dimension_names", None) or beside.attrs["_ARRAY_DIMENSIONS"]
    variable = (list(dims), values.reshape(beside.shape), dict(attrs))
    dataset = xr.Dataset({name: variable}, attrs=dict(group.attrs))
    dataset.to_zarr(path, mode="a", consolidated=False)


def _replace_cells(raw: NDArray[Any], patch: Patch, attrs: Mapping[str, Any]) -> NDArray[Any]:
    """Return the stored numbers of a variable with those of some cells replaced."""
    scale, offset = float(attrs.get("scale_factor", 1)), float(attrs.get("add_offset", 0))
    numbers = (patch.values[patch.cells] - offset) / scale
    stored = np.array(raw)
    stored.reshape(patch.cells.shape)[patch.cells] = _pack(numbers, stored.dtype, attrs)
    return stored


def _pack(numbers: Array, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> NDArray[Any]:
    """Return numbers in the stored type.

    Integers are rounded and kept within their range. One that would mean a missing value is moved
    to the next one towards zero, which is always in the range.
    """
    if dtype.kind == "f":
        return numbers.astype(dtype)
    unsigned = dtype.kind == "i" and str(attrs.get("_Unsigned", "")).lower() == "true"
    holder = np.dtype(f"u{dtype.itemsize}") if unsigned else dtype
    limits = np.iinfo(holder)
    packed = np.clip(np.rint(numbers), limits.min, limits.max).astype(holder)
    marks = _missing_marks(attrs, holder, wraps=unsigned)
    for mark in marks:
        packed[packed == mark] = _free_neighbour(mark, marks)
    return packed.view(dtype) if unsigned else packed


def _missing_marks(attrs: Mapping[str, Any], holder: np.dtype[Any], *, wraps: bool) -> set[int]:
    """Return the integers that mark missing values; `wraps` if signed ones stand for unsigned."""
    marks = set()
    for key in ("_FillValue", "missing_value"):
        given = np.asarray(attrs.get(key, ())).ravel()
        if given.size == 1 and given.dtype.kind in "iu":
            mark = given.astype(holder)[0]
            if wraps or mark == given[0]:
                marks.add(int(mark))
    return marks


def _free_neighbour(mark: int, marks: set[int]) -> int:
    """Return the next integer towards zero (from zero: upwards) that marks no missing value."""
    step = 1 if mark <= 0 else -1
    while mark in marks:
        mark += step
    return mark


def _refuse_taken(name: str, taken: Mapping[str, Any]) -> None:
    if name in taken:
        raise InputError(
            f"The file has a variable '{name}' already, as the standard errors are to be named. "
            "Rename it, or leave the errors out (std)."
        )


def _ancillary(attrs: Mapping[str, Any], name: str) -> str:
    return " ".join([*str(attrs.get("ancillary_variables", "")).split(), name])


def _history(patch: Patch, before: str) -> str:
    return "\n".join(filter(None, [patch.history, before]))
