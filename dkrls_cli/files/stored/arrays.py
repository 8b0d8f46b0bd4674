"""Chunked arrays of xarray as sources: their values are computed part by part, when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Indices, as_numbers
from dkrls_cli.files.source import Source
from dkrls_cli.files.stored.reader import span_of
from dkrls_cli.grid.grid import axes_of, name_and_attrs
from dkrls_cli.grid.style import Style

if TYPE_CHECKING:
    import xarray as xr


def source_of(array: xr.DataArray) -> Source:
    """Return a chunked DataArray as a source: axes and attributes are those of its grid.

    Nothing but coordinates is computed.

    Raises
    ------
    InputError
        If it has no dimension of more than one coordinate.
    """
    axes = axes_of(array)
    name, attrs = name_and_attrs(array)
    chunks = [max(sizes) for sizes in array.chunks or ()]
    scalars = [1] * (len(axes) - array.ndim)
    read = partial(read_part, array)
    return Source(
        axes,
        name,
        attrs,
        Style(),
        "float64",
        load=partial(read, [np.arange(axis.size) for axis in axes]),
        read=read,
        chunks=(*scalars, *chunks),
    )


def read_part(array: xr.DataArray, indices: Sequence[Indices]) -> NDArray[Any]:
    """Return the values of an array at some coordinates of its axes, NaN where they are masked.

    Axes that the array has as scalar coordinates stand before its dimensions.
    """
    own = indices[len(indices) - array.ndim :]
    part = {dim: span_of(some) for dim, some in zip(array.dims, own, strict=True)}
    found = array.variable.isel(part).data.compute()
    if isinstance(found, np.ma.MaskedArray):  # whose mask an array of numbers would not have
        found = np.where(np.ma.getmaskarray(found), np.nan, found.data)
    values = as_numbers(found, "values")
    return values.reshape([some.size for some in indices])
