"""Copies of data files whose variables are patched part by part.

A file is copied byte by byte, then changed only in the cells that are filled: packed values are
packed alike, and other variables, groups, attributes and encodings stay as they are.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dkrls_cli.arrays import Array, Mask, Slices
from dkrls_cli.files.output.atomic import atomic_write
from dkrls_cli.files.patching.beside import refuse_errors, shared_attributes
from dkrls_cli.files.patching.cells import is_outgrown, packing_notes, put_cells
from dkrls_cli.files.patching.stores import changed_store, dims_of, labels_of
from dkrls_cli.files.source import kind_of


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
        If the target exists and may not be overwritten, or has no folder.
    """
    zarr = kind_of(path) == "zarr"
    with atomic_write(target, overwrite=overwrite, folder=zarr) as temporary:
        if zarr:
            shutil.copytree(path, temporary, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, temporary)
        yield PatchedCopy(path, str(temporary), zarr)


@dataclass(frozen=True)
class PatchedCopy:
    """A copy of a NetCDF file or Zarr store whose variables are patched.

    Attributes
    ----------
    source, path
        The file, and its copy.
    is_zarr
        Whether both are stores.
    """

    source: str
    path: str
    is_zarr: bool

    @contextmanager
    def variable(self, name: str, added: AddedVariable | None = None) -> Iterator[PartWriter]:
        """Yield what patches one variable; `added` is a variable to add on its dimensions.

        Raises
        ------
        InputError
            If the file has a variable of the name of the one to add.
        """
        opened = self._open_zarr if self.is_zarr else self._open_netcdf
        with opened(name, added) as writer:
            yield writer

    def add_history(self, line: str) -> None:
        """Put a line before the history of the copy."""
        if self.is_zarr:
            with changed_store(self.path) as group:
                before = str(group.attrs.get("history", ""))
                group.attrs["history"] = _join_history(line, before)
            return
        import netCDF4

        with netCDF4.Dataset(self.path, "r+") as dataset:
            dataset.setncattr("history", _join_history(line, getattr(dataset, "history", "")))

    @contextmanager
    def _open_netcdf(self, name: str, added: AddedVariable | None) -> Iterator[PartWriter]:
        import netCDF4

        with netCDF4.Dataset(self.source) as source, netCDF4.Dataset(self.path, "r+") as copy:
            raw, variable = source.variables[name], copy.variables[name]
            for one in (raw, variable):
                one.set_auto_maskandscale(False)
            attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
            errors: Any = None
            if added is not None:
                refuse_errors(added.name, copy.variables)
                errors = copy.createVariable(
                    added.name,
                    added.dtype,
                    variable.dimensions,
                    zlib=bool((variable.filters() or {}).get("zlib")),
                    fill_value=np.nan,
                )
                errors.setncatts({**added.attrs, **shared_attributes(attrs)})
                errors.set_auto_maskandscale(False)
                variable.setncattr("ancillary_variables", _join_names(attrs, added.name))
            writer = PartWriter(name, raw, variable, errors, attrs)
            yield writer
            if writer.has_outgrown:
                variable.delncattr("actual_range")

    @contextmanager
    def _open_zarr(self, name: str, added: AddedVariable | None) -> Iterator[PartWriter]:
        import zarr

        raw: Any = zarr.open_group(self.source, mode="r", use_consolidated=False)[name]
        with changed_store(self.path) as group:
            variable: Any = group[name]
            attrs, errors = dict(variable.attrs), None
            if added is not None:
                refuse_errors(added.name, dict(group.members()))
                about = {**added.attrs, **shared_attributes(attrs)}
                errors = group.create_array(
                    added.name,
                    shape=variable.shape,
                    chunks=variable.chunks if added.chunks == "alike" else "auto",
                    dtype=np.dtype(added.dtype),
                    fill_value=np.nan,
                    **labels_of(group, dims_of(variable), about),
                )
                variable.attrs["ancillary_variables"] = _join_names(attrs, added.name)
            known = {"_FillValue": variable.fill_value, **attrs}
            writer = PartWriter(name, raw, variable, errors, known)
            yield writer
            if writer.has_outgrown:
                del variable.attrs["actual_range"]


@dataclass(frozen=True, eq=False)
class AddedVariable:
    """A variable to add to a file.

    Attributes
    ----------
    name, dtype, attrs
        Its name, floating type and attributes.
    chunks
        Chunks of a Zarr array: `alike` are those of the variable that it stands beside, so that
        parts of whole chunks of one are whole chunks of the other; `auto` are those of the library.
    """

    name: str
    dtype: str
    attrs: Mapping[str, Any]
    chunks: Literal["alike", "auto"] = "alike"


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
        self._write(part[len(part) - len(self._raw.shape) :], cells, values, errors)

    def write_whole(self, cells: Mask, values: Array, errors: Array | None = None) -> None:
        """Write the whole variable at once; dimensions of size one may be left out."""
        self._write(..., cells, values, errors)

    def _write(self, part: Any, cells: Mask, values: Array, errors: Array | None) -> None:
        stored = np.array(self._raw[part])
        beyond, marked = put_cells(self._name, stored, cells, values, self._attrs)
        self._beyond, self._marked = self._beyond + beyond, self._marked + marked
        self._variable[part] = stored
        new = values[cells]
        self._low = min(self._low, float(new.min(initial=math.inf)))
        self._high = max(self._high, float(new.max(initial=-math.inf)))
        if self._errors is not None and errors is not None:
            self._errors[part] = errors.reshape(stored.shape).astype(self._errors.dtype, copy=False)

    @property
    def notes(self) -> list[str]:
        """Notes on filled cells that could not be stored as they are."""
        counts = self._beyond, self._marked
        return packing_notes(self._name, self._dtype, self._attrs, *counts)

    @property
    def has_outgrown(self) -> bool:
        """Whether the range of values that the variable states no longer holds."""
        return is_outgrown(self._attrs, self._low, self._high)


def _join_names(attrs: Mapping[str, Any], name: str) -> str:
    """Return the variables that stand beside one, and one more."""
    return " ".join([*str(attrs.get("ancillary_variables", "")).split(), name])


def _join_history(line: str, before: str) -> str:
    """Return a line, which may be empty, before the history of a file."""
    return "\n".join(filter(None, [line, before]))
