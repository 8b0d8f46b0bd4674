"""Copies of data files in which cells of variables are replaced, each variable as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.files.patching.members import Filters, Members, append_members
from dkrls_cli.files.patching.parts import AddedVariable, PatchedCopy, patched_copy


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
        If the file has a variable of the name of one to add: see
        :func:`dkrls_cli.files.patching.beside.check_names`.
    OutputError
        If the target exists and may not be overwritten, or has no folder, or its format cannot hold
        the members.
    """
    with patched_copy(path, target, overwrite=overwrite) as copy:
        notes = [note for patch in patches for note in _apply(copy, patch)]
        for each in members:
            notes += append_members(copy.path, each, filters, zarr=copy.is_zarr)
        return notes


def _apply(copy: PatchedCopy, patch: Patch) -> list[str]:
    """Change one variable of a copy; return notes on cells that could not be stored as they are."""
    added = errors = None
    if patch.added is not None:
        name, errors, attrs = patch.added
        added = AddedVariable(name, errors.dtype.name, attrs, chunks="auto")
    with copy.variable(patch.name, added) as writer:
        writer.write_whole(patch.cells, patch.values, errors)
    copy.add_history(patch.history)
    return writer.notes
