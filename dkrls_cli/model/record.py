"""Models as a model file stores them: plain values for the header, and named arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Bars, JointBars, LevelBars
from dkrls_cli.cascade.kernels import kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.field import Grouping
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.gaps.noisy.analysis import Observations
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.style import Companion, Packing, Style, source_coordinates
from dkrls_cli.model.answering.bounds import Bounds, read_bounds
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.narrowing import (
    narrow_coordinates,
    narrow_values,
    pack_mask,
    unpack_mask,
    widen,
)
from dkrls_cli.model.poles.planning import KINDS, SIGNS

Arrays = Mapping[str, NDArray[Any]]

Record = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""A model as a file stores it: facts that JSON can hold, and arrays by name."""

# Numbers that the header of a model file holds at most; longer arrays are stored as arrays.
_SHORT = 16

# Beginnings of the names of arrays that have the steps of coordinates.
_STEPPED = ("coordinates_", "whole_", "written_", "companion_", "source_coordinates_")


def cascade_record(cascade: Cascade) -> Record:
    """Return the settings of a cascade for the header, and its arrays."""
    header = {
        "joint_ridge": cascade.joint_ridge,
        "dropped": cascade.dropped,
        "mean": cascade.mean,
        "compact": cascade.compact,
        "levels": [_level_record(level) for level in cascade.levels],
    }
    arrays: dict[str, NDArray[Any]] = {"core": cascade.core}
    for i, (coordinates, frame) in enumerate(zip(cascade.coordinates, cascade.frames, strict=True)):
        arrays[f"coordinates_{i}"] = coordinates
        if frame is not None:
            arrays[f"frame_{i}"] = frame
    return header, arrays


def cascade_from(header: Mapping[str, Any], arrays: Arrays) -> Cascade:
    """Return the cascade that was recorded, or raise ValueError if its arrays do not fit.

    Its factors are computed when first needed.
    """
    levels = tuple(_level_from(level) for level in header["levels"])
    axes = range(len(levels))
    cascade = Cascade(
        levels,
        tuple(arrays[f"coordinates_{i}"] for i in axes),
        (None,) * len(levels),
        tuple(arrays.get(f"frame_{i}") for i in axes),
        arrays["core"],
        header["joint_ridge"],
        header["dropped"],
        header["mean"],
        header["compact"] if "compact" in header else _was_compact(header, arrays),
        exact=arrays["core"].dtype == np.float32 and _dtype_of(header, "core") == np.float64,
    )
    if cascade.core.ndim != len(levels):
        raise ValueError(f"{len(levels)} levels for {cascade.core.ndim} axes")
    for axis in axes:
        _check_sizes(cascade, axis)
    return cascade


def _was_compact(header: Mapping[str, Any], arrays: Arrays) -> bool:
    """Return whether a file of an older version, which held the spectra, has a compact model.

    That is so if no eigenvalue is round-off; where all directions count it makes no difference.
    """
    spectra = [arrays[f"spectrum_{i}"] for i in range(len(header["levels"]))]
    whole = all(bool((values > ROUND_OFF * values[0]).all()) for values in spectra)
    return whole and not any(header.get("triangular", ()))  # those were no eigenvalues


def _check_sizes(cascade: Cascade, axis: int) -> None:
    """Raise ValueError if the arrays of a level do not fit together, or not to its kernel."""
    m, frame, core = cascade.shape[axis], cascade.frames[axis], cascade.core.shape[axis]
    cascade.levels[axis].kernel.warped(cascade.coordinates[axis])
    if core != m if frame is None else frame.shape != (m, core):
        raise ValueError(f"arrays of level '{cascade.levels[axis].name}' do not fit together")


def _level_record(level: Level) -> dict[str, Any]:
    kernel = level.kernel
    return {
        "name": level.name,
        "kernel": kernel.name,
        "sigma": kernel.sigma,
        "period": kernel.period,
        "constant": kernel.constant,
        "cycle": kernel.cycle,
        "swing": kernel.swing,
        "ridge": level.ridge,
        **({"errors": kernel.errors} if kernel.errors else {}),
        **({"pieces": [list(piece) for piece in kernel.pieces]} if kernel.pieces else {}),
    }


def _level_from(record: Mapping[str, Any]) -> Level:
    named = kernel_named(record["kernel"].partition("/")[0])
    known = {field: record[field] for field in ("sigma", "period", "constant", "cycle", "swing")}
    pieces = tuple(Piece(*piece) for piece in record.get("pieces", ()))
    kernel = replace(named, **known, errors=record.get("errors"), pieces=pieces)
    if kernel.name != record["kernel"]:
        raise ValueError(f"kernel '{record['kernel']}' has the pieces of '{kernel.name}'")
    return Level(record["name"], kernel, record["ridge"])


def poles_record(cascade: Cascade, rows: Continuation) -> tuple[dict[str, Any], Cascade]:
    """Return the rows that go on across the poles for the header, and the cascade to be stored.

    Rows that are copies of others to the last bit are not stored.
    """
    restored = not cascade.is_stand_in and rows.restores(cascade)
    record = {
        "latitude": rows.latitude,
        "longitude": rows.longitude,
        "kind": KINDS[rows.sign],
        "before": list(rows.before),
        "after": list(rows.after),
        "stored": not restored,
    }
    return record, rows.bare(cascade) if restored else cascade


def poles_from(record: Mapping[str, Any], stored: Cascade) -> tuple[Continuation, Cascade]:
    """Return the rows that go on across the poles, and the cascade that has them.

    Raises ValueError if the cascade that was stored does not fit them.
    """
    latitude, longitude = record["latitude"], record["longitude"]
    if latitude == longitude or max(latitude, longitude) >= stored.ndim:
        raise ValueError("latitude and longitude of the poles are no two levels")
    ring, joint = stored.levels[longitude], stored.joint_ridge
    if ring.kernel.period is None or stored.levels[latitude].kernel.period is not None:
        raise ValueError("the longitude of the poles is no circle, or their latitude is one")
    rows = Continuation(
        latitude,
        longitude,
        SIGNS[record["kind"]],
        tuple(record["before"]),
        tuple(record["after"]),
        stored.coordinates[longitude],
        ring if joint is None else replace(ring, ridge=joint),
        stored.mean,
    )
    known = stored.coordinates[latitude]
    own = known[rows.inner(known.size)] if record["stored"] else known
    if max((*rows.before, *rows.after), default=own.size) >= own.size:
        raise ValueError("rows across the poles are copies of rows that are not there")
    if record["stored"]:
        if not np.array_equal(rows.extend_latitudes(own), known):
            raise ValueError("rows across the poles are not at the latitudes that they copy")
        return rows, stored
    if stored.frames[latitude] is not None or stored.frames[longitude] is not None:
        raise ValueError("rows across the poles are not stored, and cannot be restored")
    return rows, rows.restore(stored)


def bars_record(bars: Bars) -> Record:
    """Return the numbers of error bars for the header, and their mask if they have one."""
    match bars:
        case NoisyBars():
            return _noisy_record(bars)
        case LandBars():
            numbers, mask = bars_record(bars.one)
            return {**numbers, "slices": list(bars.slices)}, mask
        case GapBars():
            known: dict[str, Any] = {
                "error": bars.error,
                "scale": bars.scale,
                "power": bars.power,
                "hole_factors": list(bars.hole_factors),
                "grouping": asdict(bars.grouping),
                **_between_record(bars.between),
                "is_local": bars.is_local,
            }
            arrays: dict[str, NDArray[Any]] = {"unobserved": pack_mask(bars.unobserved)}
            if bars.local is not None:
                arrays["local_scale"] = bars.local.astype(np.float32)
            return known, arrays
        case JointBars():
            return {"errors": [bars.error], "scales": [bars.scale], "factors": 1.0}, {}
        case LevelBars():
            names = ("errors", "scales", "factors")
            numbers = {name: getattr(bars, name).tolist() for name in names}
            return numbers | _local_record(bars.local), {}
    raise TypeError(f"no record of {type(bars).__name__}")


def bars_from(
    header: Mapping[str, Any], arrays: Arrays, shape: tuple[int, ...], joint: bool
) -> Bars:
    """Return the error bars that were recorded."""
    if "slices" in header:
        return _land_from(header, arrays, shape)
    unobserved = _unobserved_from(arrays, shape)
    if "observations" in arrays:
        return _noisy_from(header, arrays, shape, unobserved)
    if unobserved is not None:
        return GapBars(
            unobserved,
            header["scale"],
            header["power"],
            header["error"],
            _grouping_from(header.get("grouping", {}), len(shape)),
            tuple(header.get("hole_factors", ())),
            _between_from(header.get("between"), len(shape)),
            is_local=header.get("is_local", False),
            local=_missing_scale_from(arrays, unobserved),
        )
    if joint:
        return JointBars(float(header["errors"][0]), float(header["scales"][0]))
    errors, scales, factors = (np.array(header[key]) for key in ("errors", "scales", "factors"))
    if (errors.shape, scales.shape) != ((len(shape),),) * 2 or factors.shape != (2,) * len(shape):
        raise ValueError("error bars do not fit the levels")
    return LevelBars(errors, scales, factors, _local_from(header.get("local", ()), len(shape)))


def _land_from(header: Mapping[str, Any], arrays: Arrays, shape: tuple[int, ...]) -> LandBars:
    """Return error bars of slices with the same missing cells."""
    slices = tuple(int(axis) for axis in header["slices"])
    own = tuple(size for axis, size in enumerate(shape) if axis not in slices)
    alone = {key: value for key, value in header.items() if key != "slices"}
    one = bars_from(alone, arrays, own, True)
    fits = set(slices) < set(range(len(shape)))
    if not isinstance(one, GapBars) or one.between is None or not fits:
        raise ValueError("error bars of one slice do not fit the grid")
    return LandBars(slices, one)


def _missing_scale_from(arrays: Arrays, unobserved: Mask) -> Array | None:
    """Return the local scale of missing cells, or raise ValueError if it does not fit them."""
    scale = arrays.get("local_scale")
    if scale is None:
        return None
    if scale.shape != (np.count_nonzero(unobserved),) or not (scale > 0).all():
        raise ValueError("the local scale of error bars does not fit the missing cells")
    return np.asarray(scale, np.float64)


def _between_record(between: BetweenScale | None) -> dict[str, Any]:
    """Return how large errors are between coordinates; nothing if the model can measure it."""
    if between is None:
        return {}
    known = {"factors": between.factors.tolist(), "usual": between.usual.tolist()}
    return {"between": known | {"open": between.open, "climate": between.climate}}


def _between_from(record: Mapping[str, Any] | None, levels: int) -> BetweenScale | None:
    """Return how large errors are between coordinates, or raise ValueError if that fits no levels.

    What is usually left open is not known of a set of levels of which no slice was left out.
    """
    if record is None:
        return None
    factors, usual = np.array(record["factors"]), np.array(record["usual"], np.float64)
    if (factors.shape, usual.shape) != ((2,) * levels,) * 2:
        raise ValueError("error bars between coordinates do not fit the levels")
    return BetweenScale(factors, usual, float(record["open"]), float(record["climate"]))


def _local_record(local: Sequence[LocalScale | None]) -> dict[str, Any]:
    """Return the local scales of error bars for the header; nothing if no level has one."""
    if not local:
        return {}
    kept = [s and {"places": s.places.tolist(), "factors": s.factors.tolist()} for s in local]
    return {"local": kept}


def _local_from(
    records: Sequence[Mapping[str, Any] | None], levels: int
) -> tuple[LocalScale | None, ...]:
    """Return the local scales that were recorded: none in older files."""
    if records and len(records) != levels:
        raise ValueError("local scales of error bars do not fit the levels")
    return tuple(None if record is None else _local_scale_from(record) for record in records)


def _local_scale_from(record: Mapping[str, Any]) -> LocalScale:
    """Return one local scale, or raise ValueError if its places do not rise."""
    places, factors = np.array(record["places"]), np.array(record["factors"])
    if places.shape != factors.shape or (np.diff(places) <= 0).any():
        raise ValueError("places of a local scale of error bars do not rise, or do not fit it")
    return LocalScale(places, factors)


def _noisy_record(bars: NoisyBars) -> Record:
    """Return error bars of observations with errors, and these: 0 where there is none.

    Errors that are the same all along an axis are stored once.
    """
    seen = bars.observations
    header = {
        "error": bars.error,
        "scale": bars.scale,
        "hole_factors": list(bars.known_factors),
        "grouping": asdict(bars.grouping),
        **_between_record(bars.between),
    }
    arrays: dict[str, NDArray[Any]] = {
        "observations": np.where(seen.observed, seen.values, 0.0),
        "observation_errors": _without_repeats(seen.errors, seen.observed),
    }
    if bars.unobserved is not None:
        arrays["unobserved"] = pack_mask(bars.unobserved)
    return header, arrays


def _without_repeats(errors: Array, observed: Mask) -> Array:
    """Return errors with one coordinate along axes on which those of observed cells are equal."""
    for axis in range(errors.ndim):
        largest = np.where(observed, errors, -np.inf).max(axis=axis, keepdims=True)
        if (np.where(observed, errors, largest) == largest).all():
            errors = np.maximum(largest, 0.0)
            observed = np.asarray(observed.any(axis=axis, keepdims=True))
    return errors


def _noisy_from(
    header: Mapping[str, Any], arrays: Arrays, shape: tuple[int, ...], unobserved: Mask | None
) -> NoisyBars:
    """Return error bars of observations with errors, or raise ValueError if these do not fit."""
    values, errors = arrays["observations"], arrays["observation_errors"]
    sizes = zip(errors.shape, shape, strict=True)
    if values.shape != shape or any(size not in (1, whole) for size, whole in sizes):
        raise ValueError("observations or their errors do not fit the grid")
    scale, factors = float(header["scale"]), tuple(map(float, header["hole_factors"]))
    if not (scale > 0 and factors and min(factors) > 0 and (errors >= 0).all()):
        raise ValueError("errors of observations are not all 0 or above, or have no scale")
    values = np.asarray(values, np.float64)
    errors = np.broadcast_to(np.asarray(errors, np.float64), shape)
    if unobserved is not None:
        values, errors = np.where(unobserved, np.nan, values), np.where(unobserved, 0.0, errors)
    return NoisyBars(
        Observations(values, errors),
        scale,
        float(header["error"]),
        _grouping_from(header["grouping"], len(shape)),
        factors,
        _between_from(header.get("between"), len(shape)),
    )


def _grouping_from(record: Mapping[str, Any], axes: int) -> Grouping:
    """Return which axes share one distance, or raise ValueError if there are no such axes."""
    groups = tuple(tuple(group) for group in record.get("axes", ()))
    if any(axis not in range(axes) for group in groups for axis in group):
        raise ValueError("a group has axes that the levels do not have")
    sphere = record.get("sphere", False)
    if sphere and [len(group) for group in groups] != [2]:
        raise ValueError("a sphere has one group of latitude and longitude")
    return Grouping(groups, record.get("share", 0.0), record.get("factor", 1.0), sphere)


def _unobserved_from(arrays: Arrays, shape: tuple[int, ...]) -> Mask | None:
    """Return which cells are missing under a joint ridge, or None.

    Files of older versions have the distance of every cell to data instead.
    """
    if "unobserved" in arrays:
        return unpack_mask(arrays["unobserved"], shape, "missing cells")
    if "distance" not in arrays:
        return None
    if arrays["distance"].shape != shape:
        raise ValueError("distances do not fit the grid")
    return np.asarray(arrays["distance"] > 0)


def filled_from(arrays: Arrays, shape: tuple[int, ...]) -> Mask | None:
    """Return which cells were missing and are filled; None if none was recorded."""
    if "filled" not in arrays:
        return None
    return unpack_mask(arrays["filled"], shape, "filled cells")


def narrow_record(header: Mapping[str, Any], arrays: Arrays, exact: Collection[str] = ()) -> Record:
    """Return the record of a model with its arrays in fewer bytes, and the forms that they have.

    Arrays in `exact` are of single precision, which holds their numbers of double precision.
    """
    forms, narrowed = {}, {}
    for name, array in arrays.items():
        stepped = name.startswith(_STEPPED)
        dtype = np.dtype(np.float64) if name in exact else array.dtype
        form, stored = narrow_coordinates(array) if stepped else narrow_values(array, dtype)
        if form:
            forms[name] = form
        if stored is not None:
            narrowed[name] = stored
    return {**header, "narrowed": forms}, narrowed


def widen_arrays(header: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Return the arrays of a model as they were before they were narrowed, if they were.

    A core that is held in single precision stays so: it is large.
    """
    forms = header.get("narrowed", {})
    widened = {
        name: widen(form, arrays.get(name), held=name == "core") for name, form in forms.items()
    }
    return {**arrays, **widened}


def _dtype_of(header: Mapping[str, Any], name: str) -> np.dtype[Any] | None:
    """Return the type that an array had before it was narrowed; None if it was not."""
    form = header.get("narrowed", {}).get(name)
    return None if form is None else np.dtype(form["dtype"])


def join_records(records: Sequence[Record]) -> Record:
    """Return the record of several models as one; what is equal in them is stored once.

    Variables on the same coordinates share these, and all of a file its attributes.
    """
    arrays: dict[str, NDArray[Any]] = {}
    stored: dict[tuple[Any, ...], str] = {}
    headers = []
    for number, (header, own) in enumerate(records):
        members = {}
        for name, array in own.items():
            key = array.dtype.str, array.shape, sha256(np.ascontiguousarray(array).data).digest()
            members[name] = stored.setdefault(key, f"{number}_{name}")
            arrays.setdefault(members[name], array)
        headers.append({**header, "members": members})
    common = {key: fact for key, fact in headers[0].items() if _in_all(headers, key, fact)}
    variables = [{key: one[key] for key in one if key not in common} for one in headers]
    return {**common, "variables": variables}, arrays


def _in_all(headers: Sequence[Mapping[str, Any]], key: str, fact: Any) -> bool:
    return all(key in header and header[key] == fact for header in headers)


def split_record(header: Mapping[str, Any], arrays: Arrays) -> list[Record]:
    """Return the records of the models in a file, one for each variable.

    Raises
    ------
    KeyError, TypeError
        If the file does not have what its header names.
    """
    if "variables" not in header:
        return [(dict(header), dict(arrays))]
    every = [{**header, **one} for one in header["variables"]]
    return [
        (one, {name: arrays[member] for name, member in one["members"].items()}) for one in every
    ]


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
    plain, arrays = (None, {}) if axis.written is None else _array_record(axis.written, written)
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
    written = None if plain is None else _array_from(plain, arrays)
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
        record, array = _array_record(one.values, f"companion_{i}")
        about = {"dims": list(one.dims), "attrs": to_json(one.attrs)}
        header["companions"][name] = {**about, "values": record}
        arrays |= array
    for i, (dim, values) in enumerate(style.coordinates.items()):
        if dim in known and _same_array(values, known[dim]):
            header["coordinates"][dim] = None
            continue
        record, array = _array_record(values, f"source_coordinates_{i}")
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
            tuple(one["dims"]), _array_from(one["values"], arrays), from_json(one["attrs"])
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
        dim: whole[dim] if record is None else _array_from(record, arrays)
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


def _same_array(one: NDArray[Any], other: NDArray[Any]) -> bool:
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
