"""The style of a file, as a model file stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.style import Companion, Packing, Style, source_coordinates
from dkrls_cli.model.records.values import (
    Arrays,
    Record,
    array_from,
    array_record,
    from_json,
    same_array,
    to_json,
)


def style_record(style: Style, axes: Sequence[Axis]) -> Record:
    """Return a style for the header, and its long arrays.

    Coordinates that are those of an axis of the whole grid are not stored again.
    """
    known = source_coordinates(axes)
    header: dict[str, Any] = {
        "dtype": style.dtype,
        "fill": style.fill,
        "marks": list(style.marks),
        "packing": None
        if style.packing is None
        else {"dtype": style.packing.dtype, "attrs": to_json(style.packing.attrs)},
        "global_attrs": to_json(style.global_attrs),
        "unlimited": list(style.unlimited),
        "grid_mapping": style.grid_mapping,
        "bounds": {dim: list(names) for dim, names in style.bounds.items()},
        "companions": {},
        "coordinates": {},
    }
    arrays: dict[str, NDArray[Any]] = {}
    for i, (name, one) in enumerate(style.companions.items()):
        record, array = array_record(one.values, f"companion_{i}")
        about = {"dims": list(one.dims), "attrs": to_json(one.attrs)}
        header["companions"][name] = {**about, "values": record}
        arrays |= array
    for i, (dim, values) in enumerate(style.coordinates.items()):
        if dim in known and same_array(values, known[dim]):
            header["coordinates"][dim] = None
            continue
        record, array = array_record(values, f"source_coordinates_{i}")
        header["coordinates"][dim] = record
        arrays |= array
    return header, arrays


def style_from(header: Mapping[str, Any], arrays: Arrays, axes: Sequence[Axis]) -> Style:
    """Return the style that was recorded, also by a program that knew less of styles.

    Where it has no coordinates of the source, those of the axes of the whole grid stand for them.
    Raise ValueError if the record has what this program does not know.
    """
    unknown = header.keys() - {*(field.name for field in fields(Style)), "grid_mapping_attrs"}
    if unknown:
        raise ValueError(f"unknown style '{min(unknown)}'")
    packing = header.get("packing")
    companions = {
        name: Companion(
            tuple(one["dims"]), array_from(one["values"], arrays), from_json(one["attrs"])
        )
        for name, one in header.get("companions", {}).items()
    }
    mapping = header["grid_mapping"]
    if mapping and "grid_mapping_attrs" in header:
        companions[mapping] = Companion(
            (), np.asarray(np.int32(0)), from_json(header["grid_mapping_attrs"])
        )
    whole = source_coordinates(axes)
    coordinates = {
        dim: whole[dim] if record is None else array_from(record, arrays)
        for dim, record in header.get("coordinates", {}).items()
    }
    return Style(
        header["dtype"],
        header["fill"],
        tuple(header.get("marks", ("_FillValue",))),
        None if packing is None else Packing(packing["dtype"], from_json(packing["attrs"])),
        from_json(header["global_attrs"]),
        tuple(header.get("unlimited", ())),
        mapping,
        companions,
        {dim: (names[0], names[1]) for dim, names in header.get("bounds", {}).items()},
        coordinates or whole,
    )
