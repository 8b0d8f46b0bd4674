"""Models as a model file stores them: plain values for the header, and named arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Bars, JointBars, LevelBars
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.style import Companion, Packing, Style, source_coordinates
from dkrls_cli.model.answering.bounds import Bounds, read_bounds
from dkrls_cli.model.answering.coverage import Coverage

Arrays = Mapping[str, NDArray[Any]]

# Numbers that the header of a model file holds at most; longer arrays are stored as arrays.
_SHORT = 16


def cascade_record(cascade: Cascade) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the settings of a cascade for the header, and its arrays."""
    header = {
        "joint_ridge": cascade.joint_ridge,
        "dropped": cascade.dropped,
        "mean": cascade.mean,
        "levels": [_level_record(level) for level in cascade.levels],
        "triangular": [spectrum.triangular for spectrum in cascade.spectra],
    }
    arrays: dict[str, NDArray[Any]] = {"core": np.ascontiguousarray(cascade.core)}
    for i, spectrum in enumerate(cascade.spectra):
        arrays[f"coordinates_{i}"] = cascade.coordinates[i]
        arrays[f"spectrum_{i}"] = spectrum.values
        arrays[f"vectors_{i}"] = spectrum.vectors
        frame = cascade.frames[i]
        if frame is not None:
            arrays[f"frame_{i}"] = frame
    return header, arrays


def cascade_from(header: Mapping[str, Any], arrays: Arrays) -> Cascade:
    """Return the cascade that was recorded, or raise ValueError if its arrays do not fit."""
    levels = tuple(_level_from(level) for level in header["levels"])
    axes = range(len(levels))
    triangular = header.get("triangular", [False] * len(levels))
    spectra = tuple(
        Spectrum(arrays[f"vectors_{i}"], arrays[f"spectrum_{i}"], triangular[i]) for i in axes
    )
    cascade = Cascade(
        levels,
        tuple(arrays[f"coordinates_{i}"] for i in axes),
        spectra,
        tuple(arrays.get(f"frame_{i}") for i in axes),
        arrays["core"],
        header["joint_ridge"],
        header["dropped"],
        header["mean"],
    )
    if cascade.core.ndim != len(levels):
        raise ValueError(f"{len(levels)} levels for {cascade.core.ndim} axes")
    for axis, spectrum in enumerate(spectra):
        _check_sizes(cascade, axis, spectrum)
    return cascade


def _check_sizes(cascade: Cascade, axis: int, spectrum: Spectrum) -> None:
    """Raise ValueError if the arrays of a level differ in their number of coordinates or ranks."""
    m, frame = cascade.shape[axis], cascade.frames[axis]
    fits = spectrum.vectors.shape == (m, spectrum.rank)
    if frame is None:
        fits &= cascade.core.shape[axis] == m
    else:
        fits &= frame.shape == (m, cascade.core.shape[axis])
    if not fits:
        raise ValueError(f"arrays of level '{cascade.levels[axis].name}' do not fit together")


def _level_record(level: Level) -> dict[str, Any]:
    kernel = level.kernel
    return {
        "name": level.name,
        "kernel": kernel.family,
        "sigma": kernel.sigma,
        "period": kernel.period,
        "constant": kernel.constant,
        "cycle": kernel.cycle,
        "swing": kernel.swing,
        "ridge": level.ridge,
    }


def _level_from(record: Mapping[str, Any]) -> Level:
    fields = ("kernel", "sigma", "period", "constant", "cycle", "swing")
    kernel = Kernel(*(record[field] for field in fields))
    return Level(record["name"], kernel, record["ridge"])


def bars_record(bars: Bars) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the numbers of error bars for the header, and their array if they have one."""
    match bars:
        case GapBars():
            known = {"error": bars.error, "scale": bars.scale, "power": bars.power}
            return known, {"distance": bars.distance.astype(np.float32)}
        case JointBars():
            return {"errors": [bars.error], "scales": [bars.scale], "factors": 1.0}, {}
        case LevelBars():
            names = ("errors", "scales", "factors")
            return {name: getattr(bars, name).tolist() for name in names}, {}
    raise TypeError(f"no record of {type(bars).__name__}")


def bars_from(
    header: Mapping[str, Any], arrays: Arrays, shape: tuple[int, ...], joint: bool
) -> Bars:
    """Return the error bars that were recorded."""
    if "distance" in arrays:
        distance = arrays["distance"].astype(np.float64)
        if distance.shape != shape:
            raise ValueError("distances do not fit the grid")
        return GapBars(distance, header["scale"], header["power"], header["error"])
    if joint:
        return JointBars(float(header["errors"][0]), float(header["scales"][0]))
    errors, scales, factors = (np.array(header[key]) for key in ("errors", "scales", "factors"))
    if (errors.shape, scales.shape) != ((len(shape),),) * 2 or factors.shape != (2,) * len(shape):
        raise ValueError("error bars do not fit the levels")
    return LevelBars(errors, scales, factors)


def filled_from(arrays: Arrays, shape: tuple[int, ...]) -> Mask | None:
    """Return which cells were missing and are filled; None if none was recorded."""
    if "filled" not in arrays:
        return None
    return _unpack(arrays["filled"], shape, "filled cells")


Record = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""A model as a file stores it: facts that JSON can hold, and arrays by name."""


def join_records(records: Sequence[Record]) -> Record:
    """Return the record of several models as one; arrays that are equal are stored once.

    Variables on the same coordinates share these, and factors where their kernels are the same.
    """
    arrays: dict[str, NDArray[Any]] = {}
    stored: dict[tuple[Any, ...], str] = {}
    headers = []
    for number, (header, own) in enumerate(records):
        members = {}
        for name, array in own.items():
            key = array.dtype.str, array.shape, sha256(array.tobytes()).digest()
            members[name] = stored.setdefault(key, f"{number}_{name}")
            arrays.setdefault(members[name], array)
        headers.append({**header, "members": members})
    return {"variables": headers}, arrays


def split_record(header: Mapping[str, Any], arrays: Arrays) -> list[Record]:
    """Return the records of the models in a file, one for each variable.

    Raises
    ------
    KeyError, TypeError
        If the file does not have what its header names.
    """
    if "variables" not in header:
        return [(dict(header), dict(arrays))]
    return [
        (one, {name: arrays[member] for name, member in one["members"].items()})
        for one in header["variables"]
    ]


def coverage_record(
    coverage: Coverage | None,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the axes and the shape of a coverage for the header, and its arrays."""
    if coverage is None:
        return {}, {}
    header = {"axes": [axis_record(axis) for axis in coverage.axes]}
    arrays: dict[str, NDArray[Any]] = {
        f"whole_{i}": axis.numbers for i, axis in enumerate(coverage.axes)
    }
    shape = list(coverage.absent.shape)
    return {"coverage": {**header, "shape": shape}}, {
        **arrays,
        "absent": np.packbits(coverage.absent),
    }


def coverage_from(
    header: Mapping[str, Any], arrays: Arrays, axes: Sequence[Axis]
) -> Coverage | None:
    """Return the coverage that was recorded, or None; raise ValueError if it does not fit."""
    known = header.get("coverage")
    if known is None:
        return None
    whole = tuple(
        axis_from(record, axis.name, arrays[f"whole_{i}"])
        for i, (record, axis) in enumerate(zip(known["axes"], axes, strict=True))
    )
    shape = tuple(known["shape"])
    if len(shape) != len(whole) or any(
        size not in (1, axis.size) for size, axis in zip(shape, whole, strict=True)
    ):
        raise ValueError("cells without data do not fit the grid")
    return Coverage(whole, _unpack(arrays["absent"], shape, "cells without data"))


def _unpack(bits: NDArray[Any], shape: tuple[int, ...], what: str) -> Mask:
    """Return packed bits as a mask of this shape, or raise ValueError if they do not fit it."""
    count = math.prod(shape)
    if bits.shape != ((count + 7) // 8,):
        raise ValueError(f"{what} do not fit the grid")
    return np.unpackbits(bits, count=count).astype(bool).reshape(shape)


def bounds_record(bounds: Bounds) -> list[float | None]:
    """Return the bounds of answers as JSON can hold them: None is an open end."""
    return [end if math.isfinite(end) else None for end in (bounds.low, bounds.high)]


def bounds_from(header: Mapping[str, Any]) -> Bounds | None:
    """Return the bounds of answers that were recorded; None if there are none."""
    return read_bounds(header.get("bounds"))


def axis_record(axis: Axis) -> dict[str, Any]:
    """Return what an axis means, without its name and numbers."""
    return {
        "dtype": axis.dtype,
        "time": [axis.time.units, axis.time.calendar] if axis.time else None,
        "labels": axis.labels,
        "attrs": to_json(axis.attrs),
        "has_coordinate": axis.has_coordinate,
        "turn": axis.turn,
        "written": to_json(axis.written),
    }


def axis_from(record: Mapping[str, Any], name: str, numbers: Array) -> Axis:
    """Return the axis that was recorded."""
    time, labels = record["time"], record["labels"]
    return Axis(
        name,
        numbers,
        record["dtype"],
        TimeScale(*time) if time else None,
        tuple(labels) if labels is not None else None,
        from_json(record["attrs"]),
        record["has_coordinate"],
        record["turn"],
        from_json(record["written"]),
    )


def style_record(style: Style) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a style for the header, and its long arrays."""
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
        record, array = _array_record(one.values, f"companion_{i}")
        about = {"dims": list(one.dims), "attrs": to_json(one.attrs)}
        header["companions"][name] = {**about, "values": record}
        arrays |= array
    for i, (dim, values) in enumerate(style.coordinates.items()):
        record, array = _array_record(values, f"source_coordinates_{i}")
        header["coordinates"][dim] = record
        arrays |= array
    return header, arrays


def style_from(header: Mapping[str, Any], arrays: Arrays, axes: Sequence[Axis]) -> Style:
    """Return the style that was recorded, also by a program that knew less of styles.

    Without coordinates of the source, those of the axes stand for them. Raise ValueError if the
    record has what this program does not know.
    """
    unknown = header.keys() - {*(field.name for field in fields(Style)), "grid_mapping_attrs"}
    if unknown:
        raise ValueError(f"unknown style '{min(unknown)}'")
    packing = header.get("packing")
    companions = {
        name: Companion(
            tuple(one["dims"]), _array_from(one["values"], arrays), from_json(one["attrs"])
        )
        for name, one in header.get("companions", {}).items()
    }
    mapping = header["grid_mapping"]
    if mapping and "grid_mapping_attrs" in header:
        companions[mapping] = Companion(
            (), np.asarray(np.int32(0)), from_json(header["grid_mapping_attrs"])
        )
    known = header.get("coordinates", {})
    coordinates = {dim: _array_from(record, arrays) for dim, record in known.items()}
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
        coordinates or source_coordinates(axes),
    )


def _array_record(values: NDArray[Any], name: str) -> tuple[Any, dict[str, NDArray[Any]]]:
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


def _array_from(record: Any, arrays: Arrays) -> NDArray[Any]:
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
