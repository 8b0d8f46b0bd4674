"""Names of variables and dimensions in a file, as fast as they can be told.

No value is read, and xarray is not imported. A file that is damaged or of no known kind has no
names; a pipe is not opened, since it might never answer.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Bytes of a table, or of the metadata of a store, that are read at most.
_LARGEST_START, _LARGEST_METADATA = 2**16, 2**22

# Names of one kind that are listed at most: more help nobody, and wide tables have thousands.
_MOST = 200

# Attributes that name variables which belong to another one.
_COMPANIONS = ("bounds", "coordinates", "grid_mapping", "ancillary_variables")


@dataclass(frozen=True)
class Names:
    """Names of the variables and of the dimensions of a file."""

    variables: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()


def names_in(path: str) -> Names:
    """Return the names in a NetCDF file, Zarr store, text table or model file.

    Raises
    ------
    OSError, ValueError, KeyError, TypeError, DkrlsError
        If the file cannot be read: who completes a command line is silent about it.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return _of_variables(_zarr_variables(path))
    if not stat.S_ISREG(mode):
        return Names()
    with open(path, "rb") as file:
        start = file.read(_LARGEST_START)
    if start[:2] == b"PK":
        return _of_model(path)
    if start[:3] == b"CDF" or start[:8] == b"\x89HDF\r\n\x1a\n":
        return _of_variables(_netcdf_variables(path))
    return _of_table(start)


@dataclass(frozen=True)
class _Variable:
    """A variable: its name, its dimensions, and its attributes that name others."""

    name: str
    dims: tuple[str, ...]
    companions: str


def _of_variables(found: Iterable[_Variable]) -> Names:
    """Return the variables that hold data, not coordinates, and their dimensions."""
    every = list(found)
    used = {dim for one in every for dim in one.dims}
    beside = {word for one in every for word in re.split(r"[\s:]+", one.companions)}
    data = [one for one in every if one.dims and one.name not in used | beside]
    dims = dict.fromkeys(dim for one in data for dim in one.dims)
    return Names(tuple(one.name for one in data)[:_MOST], tuple(dims)[:_MOST])


def _netcdf_variables(path: str) -> Iterator[_Variable]:
    """Yield the variables of a NetCDF file."""
    from netCDF4 import Dataset

    from dkrls_cli.files.guards.classic import check_classic, is_classic

    if is_classic(path):
        check_classic(path)
    with Dataset(path) as file:
        for name, variable in file.variables.items():
            own = [str(variable.getncattr(a)) for a in _COMPANIONS if a in variable.ncattrs()]
            yield _Variable(name, tuple(variable.dimensions), " ".join(own))


def _zarr_variables(path: str) -> Iterator[_Variable]:
    """Yield the arrays of a Zarr store of version 2 or 3, by its metadata."""
    for name, (facts, attrs) in _zarr_metadata(path).items():
        dims = facts.get("dimension_names") or attrs.get("_ARRAY_DIMENSIONS") or ()
        own = " ".join(str(attrs[key]) for key in _COMPANIONS if key in attrs)
        yield _Variable(name, tuple(map(str, dims)), own)


def _zarr_metadata(path: str) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return metadata and attributes of the arrays of a store, by their names."""
    listed = _json(path, ".zmetadata").get("metadata")
    if listed:
        names = [key.removesuffix("/.zarray") for key in listed if key.endswith("/.zarray")]
        return {one: (listed[f"{one}/.zarray"], listed.get(f"{one}/.zattrs", {})) for one in names}
    listed = (_json(path, "zarr.json").get("consolidated_metadata") or {}).get("metadata")
    if not listed:
        inner = sorted(one for one in os.listdir(path) if not one.startswith("."))[:_MOST]
        listed = {one: _json(path, one, "zarr.json") for one in inner}
        listed |= {
            one: {"node_type": "array", "attributes": _json(path, one, ".zattrs")}
            for one in inner
            if os.path.exists(os.path.join(path, one, ".zarray"))
        }
    return {
        name: (facts, facts.get("attributes", {}))
        for name, facts in listed.items()
        if facts.get("node_type") == "array"
    }


def _json(*parts: str) -> dict[str, Any]:
    """Return an object of JSON in a file; an empty one if there is none."""
    path = os.path.join(*parts)
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        found = json.loads(file.read(_LARGEST_METADATA))
    return found if isinstance(found, dict) else {}


def _of_model(path: str) -> Names:
    """Return the variables and the levels of a model file, level 0 first."""
    from dkrls_cli.files.npz import read_header

    header = read_header(path)
    every = [{**header, **one} for one in header.get("variables", [{}])]
    dims = dict.fromkeys(str(dim) for one in every for dim in one["hierarchy"])
    return Names(tuple(str(one["name"]) for one in every), tuple(dims))


def _of_table(start: bytes) -> Names:
    """Return the columns of a text table: each may be a variable or a dimension."""
    if b"\x00" in start:
        return Names()
    lines = start.decode("utf-8-sig", "replace").splitlines()
    head = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    mark = max(",;\t|", key=head.count)
    cells = (cell.strip().strip("\"'") for cell in head.split(mark))
    columns = tuple(cell for cell in cells if cell and not re.fullmatch(r"[-+.\d]+", cell))[:_MOST]
    return Names(columns, columns)
