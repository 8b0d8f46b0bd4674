"""Cascades as a model file stores them: levels, frames and core, and rows across the poles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.kernels import kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.model.poles.planning import KINDS, SIGNS
from dkrls_cli.model.records.values import Arrays, Record, dtype_of


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
        exact=arrays["core"].dtype == np.float32 and dtype_of(header, "core") == np.float64,
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
