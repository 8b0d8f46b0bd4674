"""Variables that are added beside others: names that are free, and attributes they share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dkrls_cli.errors import InputError
from dkrls_cli.files.patching.stores import dims_of
from dkrls_cli.files.source import kind_of
from dkrls_cli.grid.grid import REALIZATION


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
        refuse_errors(name, taken)
    for name in ensembles:
        refuse_members(name, taken)
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
    return {*found, *(dim for array in arrays for dim in dims_of(array))}


def refuse_errors(name: str, taken: Collection[str]) -> None:
    """Raise InputError if the name of standard errors is among those of a file."""
    if name in taken:
        raise InputError(
            f"The file has a variable '{name}' already, as the standard errors are to be named. "
            "Rename it, or leave the errors out (std)."
        )


def refuse_members(name: str, taken: Collection[str]) -> None:
    """Raise InputError if the name of an ensemble is among those of a file."""
    if name in taken:
        raise InputError(
            f"The file has a variable '{name}' already, as the members of the ensemble are to be "
            "named. Rename it, or leave the ensemble out."
        )


def shared_attributes(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that hold for every variable on the same cells."""
    return {key: attrs[key] for key in ("coordinates", "grid_mapping") if key in attrs}
