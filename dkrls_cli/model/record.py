"""Models as a model file stores them: plain values for the header, and named arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
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

Arrays = Mapping[str, NDArray[Any]]


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
    count = math.prod(shape)
    if arrays["filled"].shape != ((count + 7) // 8,):
        raise ValueError("filled cells do not fit the grid")
    return np.unpackbits(arrays["filled"], count=count).astype(bool).reshape(shape)


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
