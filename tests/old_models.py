"""Model files as they were: versions 1 and 2, key for key, with the factors of every level."""

import json
import math

import numpy as np

from dkrls_cli.cascade.kernels import gram
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.calibration.nearest import distance
from dkrls_cli.model.records.labels import bounds_record
from dkrls_cli.model.records.values import to_json


def write_old(path, models):
    """Write a file of version 1 for one model, of version 2 for several."""
    if len(models) == 1:
        header, arrays = old_record(models[0])
        return write(path, {"format": "dkrls-model", "version": 1, **header}, arrays)
    headers, arrays = [], {}
    for number, model in enumerate(models):
        header, own = old_record(model)
        headers.append({**header, "members": {name: f"{number}_{name}" for name in own}})
        arrays |= {f"{number}_{name}": array for name, array in own.items()}
    return write(path, {"format": "dkrls-model", "version": 2, "variables": headers}, arrays)


def write(path, header, arrays):
    listed = {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}
    text = json.dumps({**header, "arrays": listed}).encode()
    np.savez(path, header=np.frombuffer(text, np.uint8), **arrays)


def old_record(model):
    cascade, coverage = model.cascade, model.coverage
    bars, beside = old_bars(model)
    header = {
        "joint_ridge": cascade.joint_ridge,
        "dropped": cascade.dropped,
        "mean": cascade.mean,
        "levels": [old_level(level) for level in cascade.levels],
        "triangular": [False] * cascade.ndim,
        "bars": bars,
        "program": "dkrls 0.1",
        "name": model.name,
        "attrs": to_json(model.attrs),
        "style": old_style(model),
        "origin": to_json(model.origin),
        "hierarchy": list(model.hierarchy),
        "axes": [old_axis(axis) for axis in model.axes],
        "coverage": {
            "axes": [old_axis(axis) for axis in coverage.axes],
            "shape": list(coverage.absent.shape),
        },
    }
    if model.bounds is not None:
        header["bounds"] = bounds_record(model.bounds)
    arrays = {"core": np.ascontiguousarray(cascade.core), **beside}
    for i, (values, vectors) in enumerate(old_spectra(cascade)):
        arrays[f"coordinates_{i}"] = cascade.coordinates[i]
        arrays[f"spectrum_{i}"], arrays[f"vectors_{i}"] = values, vectors
        if cascade.frames[i] is not None:
            arrays[f"frame_{i}"] = cascade.frames[i]
        arrays[f"whole_{i}"] = coverage.axes[i].numbers
    arrays["absent"] = np.packbits(coverage.absent)
    if model.filled is not None:
        arrays["filled"] = np.packbits(model.filled)
    return header, arrays


def old_spectra(cascade):
    """Eigenvalues that the ridge lifts above round-off; of a compact model, those above it."""
    eps, kernels = 4 * np.finfo(float).eps, [level.kernel for level in cascade.levels]
    grams = [gram(k, c, c) for k, c in zip(kernels, cascade.coordinates, strict=True)]
    whole = [np.linalg.eigh(matrix) for matrix in grams]
    largest = math.prod(values[-1] for values, _ in whole)
    for level, (values, vectors) in zip(cascade.levels, whole, strict=True):
        joint = cascade.joint_ridge
        ridge = level.ridge if joint is None else joint * values[-1] / largest
        live = np.maximum(values, 0) + (0 if cascade.compact else ridge) > eps * values[-1]
        yield np.maximum(values, 0)[live][::-1], np.ascontiguousarray(vectors[:, live][:, ::-1])


def old_bars(model):
    bars, cascade = model.calibrated_bars, model.cascade
    if isinstance(bars, GapBars):
        kernels = [level.kernel for level in cascade.levels]
        away = distance(cascade.coordinates, kernels, ~bars.unobserved, cascade.joint_ridge)
        known = {"error": bars.error, "scale": bars.scale, "power": bars.power}
        return known, {"distance": away.astype(np.float32)}
    if cascade.joint_ridge is not None:
        return {"errors": [bars.error], "scales": [bars.scale], "factors": 1.0}, {}
    return {key: getattr(bars, key).tolist() for key in ("errors", "scales", "factors")}, {}


def old_level(level):
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


def old_axis(axis):
    return {
        "dtype": axis.dtype,
        "time": [axis.time.units, axis.time.calendar] if axis.time else None,
        "labels": axis.labels,
        "attrs": to_json(axis.attrs),
        "has_coordinate": axis.has_coordinate,
        "turn": axis.turn,
        "written": to_json(axis.written),
    }


def old_style(model):
    """The style of data that came from no file: it has nothing but coordinates."""
    return {
        "dtype": "float64",
        "fill": None,
        "marks": ["_FillValue"],
        "packing": None,
        "global_attrs": {},
        "unlimited": [],
        "grid_mapping": None,
        "bounds": {},
        "companions": {},
        "coordinates": {axis.name: to_json(axis.plain) for axis in model.coverage.axes},
    }
