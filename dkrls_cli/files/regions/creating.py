"""Files without values: NetCDF files and Zarr stores as :mod:`dkrls_cli.files.writing` makes them.

Everything is there but the values of the variables, which are written region by region.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dkrls_cli.files.packing import Encoded
from dkrls_cli.files.regions.slots import Blank, Slot, Tally
from dkrls_cli.files.stored.handles import NETCDF_LOCK
from dkrls_cli.files.writing import (
    Field,
    dataset_of,
    encodings,
    explain_writing,
    growing_dims,
    write_dataset,
)
from dkrls_cli.grid.axes import Axis

if TYPE_CHECKING:
    import xarray as xr

# Bytes of a chunk at most: few enough to read one, many enough to be quick.
_CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class Plan:
    """A file to be created.

    Attributes
    ----------
    dataset
        What the file will have. The values of the variables are placeholders without memory.
    slots
        How each variable is stored, by name.
    encoding
        Filters and chunks by name.
    grows
        Dimensions along which the file can grow.
    zarr
        Whether it is a Zarr store.
    """

    dataset: xr.Dataset
    slots: dict[str, Slot]
    encoding: dict[str, dict[str, Any]]
    grows: list[str]
    zarr: bool


def plan_file(
    blanks: Sequence[Blank],
    command: Sequence[str],
    *,
    zarr: bool,
    compress: int | None = None,
    regions: Mapping[str, int] | None = None,
) -> Plan:
    """Return what a file of variables will have, before any of it is written.

    Parameters
    ----------
    blanks
        The variables.
    command
        Words of the command line, for the history.
    zarr
        Whether it is a Zarr store.
    compress
        Level of compression, as for :func:`dkrls_cli.files.writing.write_grid`.
    regions
        By dimension, how many coordinates a region has, where it does not have all: chunks are
        chosen so that no two regions share one. None: chunks as a file that is written at once has.

    Raises
    ------
    InputError
        If two variables have different coordinates along the same dimension.
    """
    slots: dict[str, Slot] = {}
    by_name = {blank.name: blank for blank in blanks}

    def store(field: Field, attrs: dict[str, Any]) -> Encoded:
        slot = slots[field.name] = Slot.of(by_name[field.name], attrs)
        return Encoded(_placeholder(slot.dtype, field.values.shape), slot.attrs, slot.notes)

    fields = [Field(b.name, _placeholder("f8", b.shape), b.axes, b.attrs, b.style) for b in blanks]
    dataset, _ = dataset_of(fields, command, store=store)
    encoding = encodings(dataset, fields, compress, zarr)
    if regions is not None:
        for name in slots:
            variable = dataset[name]
            sizes = {str(dim): size for dim, size in variable.sizes.items()}
            chunks = region_chunks(sizes, regions, variable.dtype.itemsize)
            encoding[name]["chunks" if zarr else "chunksizes"] = chunks
    return Plan(dataset, slots, encoding, growing_dims(fields), zarr)


def _placeholder(dtype: str, shape: Sequence[int]) -> Any:
    """Return an array of zeros that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), tuple(shape))


def common_regions(variables: Iterable[tuple[Sequence[Axis], Sequence[int]]]) -> dict[str, int]:
    """Return how many coordinates the regions of all variables have, by dimension.

    Each variable comes as its axes, and the sizes of its regions along these.
    """
    found: dict[str, int] = {}
    for axes, region in variables:
        for axis, size in zip(axes, region, strict=True):
            if size < axis.size:
                found[axis.name] = math.gcd(size, found.get(axis.name, size))
    return found


def region_chunks(
    sizes: Mapping[str, int], regions: Mapping[str, int], itemsize: int
) -> tuple[int, ...]:
    """Return the sizes of chunks that regions are made of, small along the first dimensions.

    >>> region_chunks({"time": 3650, "lat": 720, "lon": 1440}, {"time": 30}, 4)
    (1, 720, 1440)
    >>> region_chunks({"time": 3650, "lat": 720, "lon": 1440}, {"lat": 12}, 4)
    (60, 12, 1440)
    """
    steps = {dim: min(size, regions.get(dim, size)) for dim, size in sizes.items()}
    chunks = dict(steps)
    for dim in sizes:
        rest = itemsize * math.prod(size for other, size in chunks.items() if other != dim)
        most = max(1, _CHUNK // max(1, rest))
        if chunks[dim] > most:
            whole = steps[dim] == sizes[dim]
            chunks[dim] = most if whole else _largest_divisor(steps[dim], most)
    return tuple(max(1, size) for size in chunks.values())


def _largest_divisor(number: int, most: int) -> int:
    return next(found for found in range(min(number, most), 0, -1) if number % found == 0)


def create_file(path: Path, plan: Plan, name: str) -> None:
    """Create a file without the values of its variables; `name` is what errors call it."""
    small = plan.dataset.drop_vars(list(plan.slots))
    own = {key: one for key, one in plan.encoding.items() if key not in plan.slots}
    grows = [dim for dim in plan.grows if dim in small.sizes]
    with explain_writing(name), NETCDF_LOCK:
        write_dataset(small, path, own, grows, zarr=plan.zarr)
        (_add_to_zarr if plan.zarr else _add_to_netcdf)(path, plan)


def _add_to_netcdf(path: Path, plan: Plan) -> None:
    import netCDF4

    for name in {*plan.slots, *map(str, plan.dataset.sizes)}:
        if "/" in name:  # would make a group
            raise ValueError(f"'{name}' has a slash, which separates groups")
    with netCDF4.Dataset(path, "r+") as file:
        for dim, size in plan.dataset.sizes.items():
            if dim not in file.dimensions:
                file.createDimension(str(dim), None if dim in plan.grows else size)
        for name in plan.slots:
            variable = plan.dataset[name]
            attrs = dict(variable.attrs)
            encoding = {k: v for k, v in plan.encoding[name].items() if k != "_FillValue"}
            fill = attrs.pop("_FillValue", None)
            created = file.createVariable(
                name, variable.dtype, list(map(str, variable.dims)), fill_value=fill, **encoding
            )
            created.setncatts(attrs)


def _add_to_zarr(path: Path, plan: Plan) -> None:
    import zarr

    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    for name in plan.slots:
        variable = plan.dataset[name]
        attrs = dict(variable.attrs)
        encoding = {k: v for k, v in plan.encoding[name].items() if k != "_FillValue"}
        fill = attrs.pop("_FillValue", None)
        labels = {"_ARRAY_DIMENSIONS": [str(dim) for dim in variable.dims]}
        group.create_array(
            name,
            shape=variable.shape,
            dtype=variable.dtype,
            fill_value=fill,
            attributes={**labels, **_as_json(attrs)},
            **encoding,
        )


def finish_file(path: Path, plan: Plan, tallies: Mapping[str, Tally]) -> None:
    """Add the attributes that state ranges which hold for what was written."""
    stated = {name: slot.ranges(tallies[name]) for name, slot in plan.slots.items()}
    with NETCDF_LOCK:
        (_state_in_zarr if plan.zarr else _state_in_netcdf)(path, stated)


def _state_in_netcdf(path: Path, stated: Mapping[str, Mapping[str, Any]]) -> None:
    import netCDF4

    with netCDF4.Dataset(path, "r+") as file:
        for name, attrs in stated.items():
            file.variables[name].setncatts(attrs)


def _state_in_zarr(path: Path, stated: Mapping[str, Mapping[str, Any]]) -> None:
    import zarr

    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    for name, attrs in stated.items():
        group[name].attrs.update(_as_json(attrs))
    zarr.consolidate_metadata(str(path))


def _as_json(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as a Zarr store has them."""
    numpy = (np.ndarray, np.generic)
    return {k: v.tolist() if isinstance(v, numpy) else v for k, v in attrs.items()}
