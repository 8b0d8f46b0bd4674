"""Values and arrays of a record: what JSON can hold, and long arrays by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]

Record = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""A model as a file stores it: facts that JSON can hold, and arrays by name."""

# Numbers that the header of a model file holds at most; longer arrays are stored as arrays.
_SHORT = 16


def array_record(values: NDArray[Any], name: str) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return an array for the header: itself if it is short, else the name by which it is stored.

    Numbers that are not finite are stored as bytes: a model file has no such numbers elsewhere, and
    refuses them as damage.
    """
    if values.dtype.kind in "fiub" and values.size <= _SHORT:
        return to_json(values), {}
    record = {"array": name, "dtype": values.dtype.str, "shape": list(values.shape)}
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return record, {name: np.frombuffer(values.tobytes(), np.uint8)}
    return record, {name: np.ascontiguousarray(values).reshape(values.shape)}


def array_from(record: Any, arrays: Arrays) -> NDArray[Any]:
    """Return the array that was recorded, or raise ValueError if another one is stored."""
    if "array" not in record:
        return np.asarray(from_json(record))
    stored, shape = arrays[record["array"]], tuple(record["shape"])
    dtype = np.dtype(record["dtype"])
    if stored.dtype == np.uint8 and dtype.kind == "f":
        stored = np.frombuffer(stored.tobytes(), dtype).reshape(shape)
    if stored.dtype != dtype or stored.shape != shape:
        raise ValueError(f"array '{record['array']}' is not what the header says")
    return stored


def same_array(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays have the same type and the same values."""
    return one.dtype == other.dtype and np.array_equal(one, other)


def to_json(value: Any) -> Any:
    """Return a value that JSON can hold; numpy values keep their type."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiub":
        return {"dtype": value.dtype.str, "values": value.tolist()}
    if isinstance(value, Mapping):
        return {str(key): to_json(v) for key, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [to_json(v) for v in value]
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def from_json(value: Any) -> Any:
    """Return the value that :func:`to_json` was given."""
    if isinstance(value, dict) and value.keys() == {"dtype", "values"}:
        return np.array(value["values"], value["dtype"])[()]
    if isinstance(value, dict):
        return {key: from_json(v) for key, v in value.items()}
    return [from_json(v) for v in value] if isinstance(value, list) else value


def dtype_of(header: Mapping[str, Any], name: str) -> np.dtype[Any] | None:
    """Return the type that an array had before it was narrowed; None if it was not."""
    form = header.get("narrowed", {}).get(name)
    return None if form is None else np.dtype(form["dtype"])
