"""Axes, coverage and bounds as a model file stores them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.model.answering.bounds import Bounds, read_bounds
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.narrowing import (
    pack_mask,
    unpack_mask,
)
from dkrls_cli.model.records.values import (
    Arrays,
    Record,
    array_from,
    array_record,
    from_json,
    to_json,
)


def coverage_record(coverage: Coverage | None, axes: Sequence[Axis]) -> Record:
    """Return the axes and the shape of a coverage for the header, and its arrays.

    An axis that is that of the model is not stored again.
    """
    if coverage is None:
        return {}, {}
    records: list[dict[str, Any] | None] = []
    arrays: dict[str, NDArray[Any]] = {"absent": pack_mask(coverage.absent)}
    for i, (whole, own) in enumerate(zip(coverage.axes, axes, strict=True)):
        if _same_axis(whole, own):
            records.append(None)
            continue
        record, written = axis_record(whole, f"written_whole_{i}")
        records.append(record)
        arrays |= {f"whole_{i}": whole.numbers, **written}
    return {"coverage": {"axes": records, "shape": list(coverage.absent.shape)}}, arrays


def _same_axis(one: Axis, other: Axis) -> bool:
    """Return whether two axes have the same coordinates, and these the same meaning."""
    same = np.array_equal(one.numbers, other.numbers) and np.array_equal(one.plain, other.plain)
    return same and axis_record(one, "")[0] == axis_record(other, "")[0]


def coverage_from(
    header: Mapping[str, Any], arrays: Arrays, axes: Sequence[Axis]
) -> Coverage | None:
    """Return the coverage that was recorded, or None; raise ValueError if it does not fit."""
    known = header.get("coverage")
    if known is None:
        return None
    whole = tuple(
        axis if record is None else axis_from(record, axis.name, arrays[f"whole_{i}"], arrays)
        for i, (record, axis) in enumerate(zip(known["axes"], axes, strict=True))
    )
    shape = tuple(known["shape"])
    if len(shape) != len(whole) or any(
        size not in (1, axis.size) for size, axis in zip(shape, whole, strict=True)
    ):
        raise ValueError("cells without data do not fit the grid")
    return Coverage(whole, unpack_mask(arrays["absent"], shape, "cells without data"))


def bounds_record(bounds: Bounds) -> list[float | None]:
    """Return the bounds of answers as JSON can hold them: None is an open end."""
    return [end if math.isfinite(end) else None for end in (bounds.low, bounds.high)]


def bounds_from(header: Mapping[str, Any]) -> Bounds | None:
    """Return the bounds of answers that were recorded; None if there are none."""
    return read_bounds(header.get("bounds"))


def axis_record(axis: Axis, written: str) -> Record:
    """Return what an axis means, without its name and numbers, and its array `written`, if long."""
    plain, arrays = (None, {}) if axis.written is None else array_record(axis.written, written)
    return {
        "dtype": axis.dtype,
        "time": [axis.time.units, axis.time.calendar] if axis.time else None,
        "labels": axis.labels,
        "attrs": to_json(axis.attrs),
        "has_coordinate": axis.has_coordinate,
        "turn": axis.turn,
        "written": plain,
    }, arrays


def axis_from(record: Mapping[str, Any], name: str, numbers: Array, arrays: Arrays) -> Axis:
    """Return the axis that was recorded, or raise ValueError if its arrays do not fit."""
    time, labels, plain = record["time"], record["labels"], record["written"]
    written = None if plain is None else array_from(plain, arrays)
    if written is not None and written.shape != numbers.shape:
        raise ValueError(f"the coordinates of '{name}' are of two sizes")
    return Axis(
        name,
        numbers,
        record["dtype"],
        TimeScale(*time) if time else None,
        tuple(labels) if labels is not None else None,
        from_json(record["attrs"]),
        record["has_coordinate"],
        record["turn"],
        written,
    )
