"""Copies of data files with some cells of a variable replaced, all else as it was.

A file is copied byte by byte, then changed where it must be: what is packed is packed alike, other
variables, groups, attributes and encodings stay what they are. The only door to netCDF4, and to
zarr.
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
from dkrls_cli.files.output import replacing
from dkrls_cli.files.source import kind_of


@dataclass(frozen=True, eq=False)
class Patch:
    """What to change in a file.

    Attributes
    ----------
    name
        The variable.
    cells
        Those to replace, in the shape of the variable but for dimensions of size 1.
    values
        What to put there, in the same shape.
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


def patched_copy(path: str, target: str, patch: Patch, *, overwrite: bool) -> None:
    """Write a patched copy of a NetCDF file or Zarr store, whole or not at all."""
    zarr = kind_of(path) == "zarr"
    with replacing(target, overwrite=overwrite, folder=zarr) as temporary:
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
        variable[...] = _replaced(variable[...], patch, attrs)
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
            variable.setncattr("ancillary_variables", _listed(attrs, name))
        dataset.setncattr("history", _history(patch, getattr(dataset, "history", "")))


def _patch_zarr(path: str, patch: Patch) -> None:
    import zarr

    together = zarr.open_group(path, mode="r").metadata.consolidated_metadata is not None
    array: Any = zarr.open_group(path, mode="r+", use_consolidated=False)[patch.name]
    attrs = dict(array.attrs)
    array[...] = _replaced(array[...], patch, {"_FillValue": array.fill_value, **attrs})
    if patch.added is not None:
        _add_to_zarr(path, array, *patch.added)
        array.attrs["ancillary_variables"] = _listed(attrs, patch.added[0])
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    group.attrs["history"] = _history(patch, str(group.attrs.get("history", "")))
    if together:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the store was so before, whatever its format
            zarr.consolidate_metadata(path)


def _add_to_zarr(
    path: str, beside: Any, name: str, values: Array, attrs: Mapping[str, Any]
) -> None:
    """Add a variable on the dimensions of another one."""
    import xarray as xr
    import zarr

    _refuse_taken(name, dict(zarr.open_group(path, mode="r").members()))
    dims = getattr(beside.metadata, "dimension_names", None) or beside.attrs["_ARRAY_DIMENSIONS"]
    dataset = xr.Dataset({name: (list(dims), values.reshape(beside.shape), dict(attrs))})
    dataset.to_zarr(path, mode="a", consolidated=False)


def _replaced(raw: NDArray[Any], patch: Patch, attrs: Mapping[str, Any]) -> NDArray[Any]:
    """The stored numbers of a variable with those of some cells replaced."""
    scale, offset = float(attrs.get("scale_factor", 1)), float(attrs.get("add_offset", 0))
    numbers = (patch.values[patch.cells] - offset) / scale
    stored = np.array(raw)
    stored.reshape(patch.cells.shape)[patch.cells] = _packed(numbers, stored.dtype, attrs)
    return stored


def _packed(numbers: Array, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> NDArray[Any]:
    """Numbers in the stored type; integers rounded, and none that would mean a missing one."""
    if dtype.kind == "f":
        return numbers.astype(dtype)
    unsigned = dtype.kind == "i" and str(attrs.get("_Unsigned", "")).lower() == "true"
    holder = np.dtype(f"u{dtype.itemsize}") if unsigned else dtype
    limits = np.iinfo(holder)
    packed = np.clip(np.rint(numbers), limits.min, limits.max).astype(holder)
    for key in ("_FillValue", "missing_value"):
        taken = np.asarray(attrs.get(key, ())).ravel()
        if taken.size == 1 and taken.dtype.kind in "iu":
            marked = packed == taken.astype(holder)[0]
            packed[marked] += 1 if packed.size and taken[0] <= 0 else -1
    return packed.view(dtype) if unsigned else packed


def _refuse_taken(name: str, taken: Mapping[str, Any]) -> None:
    if name in taken:
        raise InputError(f"The file has a variable '{name}' already, where errors would go.")


def _listed(attrs: Mapping[str, Any], name: str) -> str:
    return " ".join([*str(attrs.get("ancillary_variables", "")).split(), name])


def _history(patch: Patch, before: str) -> str:
    return "\n".join(filter(None, [patch.history, before]))
