"""Error bars as a model file stores them, each kind with its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.field import Grouping
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.gaps.noisy.analysis import Observations
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.model.narrowing import (
    pack_mask,
    unpack_mask,
)
from dkrls_cli.model.records.values import Arrays, Record


def bars_record(bars: Bars) -> Record:
    """Return the numbers of error bars for the header, and their mask if they have one."""
    match bars:
        case NoisyBars():
            return _noisy_record(bars)
        case LandBars():
            numbers, mask = bars_record(bars.one)
            varied = {"most": bars.most, "usual": bars.one.usual} if bars.most else {}
            return {**numbers, "slices": list(bars.slices), **varied}, mask
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
            by_place = {"local": bars.local, "growth": bars.growth}
            return numbers | {k: _scales_record(own) for k, own in by_place.items() if own}, {}
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
    local, growth = (_scales_from(header.get(key, ()), len(shape)) for key in ("local", "growth"))
    return LevelBars(errors, scales, factors, local, growth)


def _land_from(header: Mapping[str, Any], arrays: Arrays, shape: tuple[int, ...]) -> LandBars:
    """Return error bars of slices with the same missing cells."""
    slices = tuple(int(axis) for axis in header["slices"])
    own = tuple(size for axis, size in enumerate(shape) if axis not in slices)
    alone = {key: value for key, value in header.items() if key != "slices"}
    one = bars_from(alone, arrays, own, True)
    fits = set(slices) < set(range(len(shape)))
    if not isinstance(one, GapBars) or one.between is None or not fits:
        raise ValueError("error bars of one slice do not fit the grid")
    return LandBars(slices, replace(one, usual=header.get("usual")), header.get("most", 0))


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


def _scales_record(scales: Sequence[LocalScale | None]) -> list[dict[str, Any] | None]:
    """Return scales by place for the header."""
    return [
        None if own is None else {"places": own.places.tolist(), "factors": own.factors.tolist()}
        for own in scales
    ]


def _scales_from(
    records: Sequence[Mapping[str, Any] | None], levels: int
) -> tuple[LocalScale | None, ...]:
    """Return the scales by place that were recorded: none in older files."""
    if records and len(records) != levels:
        raise ValueError("scales of error bars by place do not fit the levels")
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
