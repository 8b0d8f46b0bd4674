"""Zarr stores that are changed: their metadata in one place, and the labels of their arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def changed_store(path: str) -> Iterator[Any]:
    """Yield the group of a store; metadata that is in one place is written there again."""
    import zarr

    together = zarr.open_group(path, mode="r").metadata.consolidated_metadata is not None
    yield zarr.open_group(path, mode="r+", use_consolidated=False)
    if together:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formats without it: the store had it before
            zarr.consolidate_metadata(path)


def dims_of(array: Any) -> tuple[str, ...]:
    """Return the names of the dimensions of an array, as either format of Zarr has them."""
    named = getattr(array.metadata, "dimension_names", None)
    return tuple(named or array.attrs.get("_ARRAY_DIMENSIONS", ()))


def labels_of(group: Any, dims: Sequence[str], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dimensions and attributes of a new array, as the format of the store has them."""
    if group.metadata.zarr_format == 2:
        return {"attributes": {**attrs, "_ARRAY_DIMENSIONS": list(dims)}}
    return {"attributes": dict(attrs), "dimension_names": list(dims)}
