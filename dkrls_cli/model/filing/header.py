"""The header of a model file: every key it may have, and what may stand there.

This is the one place where a header is believed or not. A new key is one line below, in `MODEL` or
in the part that it belongs to; files of versions before 3 may have keys that are no longer used.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import FAMILIES, KERNELS, SPLINES
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.filing.checks import (
    Check,
    attribute,
    flag,
    list_of,
    number,
    number_type,
    one_of,
    optional,
    record,
    table_of,
    text,
    typed_numbers,
    whole,
)
from dkrls_cli.model.filing.references import REFERENCE

# Dimensions that a model has at most: as many as arrays of numpy can have in all its versions.
_MOST_LEVELS = 32

# Numbers that equal steps stand for in a whole file: the header alone must not fill the memory.
_MOST_EVEN = 2**24

# Pieces of a spline at most: coordinates of the levels on which splines are tried.
_MOST_PIECES = 1024

# Rows behind a pole at most: five times as many as are ever added.
_MOST_COPIES = 64

# Types in which a file may store texts, as numpy writes them: of at most 9999 characters.
_TEXTS = re.compile(r"[<>|=]?[SU]\d{1,4}")

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float32", "float64")


def _stored_type(value: Any, key: str) -> None:
    """Check that a value names a type of numbers or of texts."""
    if not isinstance(value, str) or not _TEXTS.fullmatch(value):
        number_type(value, key)


def _stored_array(value: Any, key: str) -> None:
    """Check an array that stands in the header, or the name by which it is stored."""
    if isinstance(value, dict) and "array" in value:
        record({"array": text, "dtype": _stored_type, "shape": SHAPE})(value, key)
    else:
        typed_numbers(value, key)


def _anything(value: Any, key: str) -> None:
    """Check nothing: the value is checked elsewhere."""


def _start(value: Any, key: str) -> None:
    """Check a number, or the few numbers of a row, possibly in rows themselves."""
    if isinstance(value, list):
        list_of(_start, 1, _MOST_ROW)(value, key)
    else:
        number()(value, key)


# Numbers in a row of an array that is stored in steps.
_MOST_ROW = 8

SHAPE = list_of(whole(), 0, _MOST_LEVELS)
ATTRIBUTES = table_of(attribute)
POSITIVE, NOT_NEGATIVE = number(above=0), number(0)
# An error that was measured; NaN where nothing could be left out.
ERROR = number(0, finite=False)
# Factor of a variance; NaN where error bars are not known, as beyond memory with land.
_SCALE = number(0, sys.float_info.max, finite=False)


def _kernel(value: Any, key: str) -> None:
    """Check the name of a kernel, or those of all pieces of a spline, as linear/cubic."""
    first, *others = value.split("/") if isinstance(value, str) else [value]
    one_of(*KERNELS)(first, key)
    list_of(one_of(*SPLINES))(others, key)


def _piece(value: Any, key: str) -> None:
    """Check a piece of a spline: its name, and the coordinates between which it takes over."""
    list_of(_anything, 3, 3)(value, key)
    one_of(*SPLINES)(value[0], key)
    list_of(number())(value[1:], key)


LEVEL = record(
    {
        "name": text,
        "kernel": _kernel,
        "sigma": POSITIVE,
        "period": optional(POSITIVE),
        "constant": NOT_NEGATIVE,
        "cycle": optional(POSITIVE),
        "swing": NOT_NEGATIVE,
        "ridge": NOT_NEGATIVE,
    },
    {"errors": one_of(*FAMILIES), "pieces": list_of(_piece, 1, _MOST_PIECES)},
)

AXIS = record(
    {
        "dtype": one_of(*_FLOATS, *_INTEGERS, "float16", "float128", "longdouble", "bool", "str"),
        "time": optional(list_of(text, 2, 2)),
        "labels": optional(list_of(text)),
        "attrs": ATTRIBUTES,
        "has_coordinate": flag,
        "turn": optional(POSITIVE),
        "written": optional(_stored_array),
    }
)

GROUPING = record(
    {},
    {
        "axes": list_of(list_of(whole(0, _MOST_LEVELS))),
        "share": number(0, 1),
        "factor": POSITIVE,
        "sphere": flag,
    },
)


def _factors(value: Any, key: str) -> None:
    """Check the factors of error bars: a number, or lists of two inside each other."""
    if isinstance(value, list):
        list_of(_factors, 2, 2)(value, key)
    else:
        NOT_NEGATIVE(value, key)


# Errors between coordinates, of models that keep less than their data.
BETWEEN = record(
    {"factors": _factors, "usual": _factors, "open": POSITIVE, "climate": NOT_NEGATIVE}
)

GAP_BARS = record(
    {"error": ERROR, "scale": NOT_NEGATIVE, "power": NOT_NEGATIVE},
    {
        "hole_factors": list_of(NOT_NEGATIVE),
        "grouping": GROUPING,
        "between": BETWEEN,
        "slices": list_of(whole(0, _MOST_LEVELS), 1),
        "is_local": flag,
        "most": whole(1),
        "usual": optional(NOT_NEGATIVE),
    },
)

NOISY_BARS = record(
    {
        "error": ERROR,
        "scale": POSITIVE,
        "hole_factors": list_of(POSITIVE, 1),
        "grouping": GROUPING,
    },
    {"between": BETWEEN},
)


# Scales of a level by place; files of older programs have none.
LOCAL_SCALE = record({"places": list_of(number(), 1), "factors": list_of(POSITIVE, 1)})

LEVEL_BARS = record(
    {"errors": list_of(ERROR, 1), "scales": list_of(_SCALE, 1), "factors": _factors},
    {key: list_of(optional(LOCAL_SCALE), 0, _MOST_LEVELS) for key in ("local", "growth")},
)


def _bars(value: Any, key: str) -> None:
    """Check the numbers of error bars: with missing cells or errors of observations, others."""
    keys = value if isinstance(value, dict) else {}
    if "error" not in keys:
        LEVEL_BARS(value, key)
    else:
        (GAP_BARS if "power" in keys else NOISY_BARS)(value, key)


def _packing_attributes(value: Any, key: str) -> None:
    """Check the attributes of packed numbers, of which two must be numbers."""
    ATTRIBUTES(value, key)
    for name in ("scale_factor", "add_offset"):
        given = value.get(name, 1.0)
        numbers = given["values"] if isinstance(given, dict) and "values" in given else given
        single = numbers[0] if isinstance(numbers, list) and len(numbers) == 1 else numbers
        number()(single, f"{key}.{name}")
        if single == 0 and name == "scale_factor":
            raise ValueError(f"{key}.{name} is 0, by which nothing can be divided")


STYLE = record(
    {
        "dtype": one_of(*_FLOATS),
        "fill": optional(number(finite=False)),
        "global_attrs": ATTRIBUTES,
        "grid_mapping": optional(text),
    },
    {
        "marks": list_of(text),
        "packing": optional(
            record({"dtype": one_of(*_INTEGERS, *_FLOATS), "attrs": _packing_attributes})
        ),
        "unlimited": list_of(text),
        "bounds": table_of(list_of(text, 2, 2)),
        "companions": table_of(
            record({"dims": list_of(text), "values": _stored_array, "attrs": ATTRIBUTES})
        ),
        "coordinates": table_of(optional(_stored_array)),
        "grid_mapping_attrs": ATTRIBUTES,
    },
)

MISSING = record(
    {
        "share": number(0, 1),
        "pattern": text,
        "typical_gap": text,
        "settings_tried": whole(),
        "residual": ERROR,
        "iterations": whole(),
    },
    {
        "group": list_of(text),
        "sphere": flag,
        "second_scale": optional(record({"factor": number(), "share": number()}, {}, attribute)),
    },
    attribute,
)

TOLERANCE = record(
    {
        "limit": number(),
        "given": text,
        "bytes": NOT_NEGATIVE,
        "full_bytes": NOT_NEGATIVE,
        "max": ERROR,
        "rms": ERROR,
    },
    {},
    attribute,
)

OBSERVATION_ERRORS = record(
    {"least": NOT_NEGATIVE, "median": NOT_NEGATIVE, "most": NOT_NEGATIVE}, {"source": attribute}
)

ORIGIN = record(
    {},
    {
        "notes": list_of(text),
        "dropped_coordinates": list_of(text),
        "missing": optional(MISSING),
        "tolerance": optional(TOLERANCE),
        "thinned": optional(record({"slices": whole(), "rmse": ERROR}, {}, attribute)),
        "slices_added": whole(),
        "observation_errors": optional(OBSERVATION_ERRORS),
        "last_level_chosen_on": optional(whole()),
    },
    attribute,
)

POLES = record(
    {
        "latitude": whole(0, _MOST_LEVELS),
        "longitude": whole(0, _MOST_LEVELS),
        "kind": one_of("scalar", "vector"),
        "before": list_of(whole(), 0, _MOST_COPIES),
        "after": list_of(whole(), 0, _MOST_COPIES),
        "stored": flag,
    }
)

FORM = record(
    {"dtype": _stored_type},
    {
        "held": number_type,
        "shape": SHAPE,
        "deflated": whole(),
        "start": _start,
        "step": _start,
        "parts": whole(1),
        "count": whole(1, _MOST_EVEN),
    },
)

MODEL: dict[str, Check] = {
    "joint_ridge": optional(NOT_NEGATIVE),
    "dropped": number(0, 1),
    "mean": number(),
    "levels": list_of(LEVEL, 1, _MOST_LEVELS),
    "bars": _bars,
    "name": text,
    "attrs": ATTRIBUTES,
    "style": STYLE,
    "origin": ORIGIN,
    "hierarchy": list_of(text, 1, _MOST_LEVELS),
    "axes": list_of(AXIS, 1, _MOST_LEVELS),
}
"""Keys that the header of every model has, and the checks of their values."""

ALSO: dict[str, Check] = {
    "format": text,
    "version": whole(),
    "digest": text,
    "program": text,
    "arrays": _anything,  # checked when the arrays are read
    "members": table_of(text),
    "variables": _anything,  # each is checked as a model of its own
    "compact": flag,
    "triangular": list_of(flag),  # of versions 1 and 2
    "bounds": optional(list_of(optional(number()), 2, 2)),
    "cell_means": list_of(text, 0, _MOST_LEVELS),
    "coverage": optional(record({"axes": list_of(optional(AXIS)), "shape": SHAPE})),
    "narrowed": table_of(FORM),
    "poles": optional(POLES),
    "reference": REFERENCE,
}
"""Keys that the header of a model may have."""


def check_variables(header: Mapping[str, Any]) -> None:
    """Raise ValueError if the header of a file does not say which arrays each variable has."""
    if "variables" in header:
        list_of(table_of(_anything), 1)(header["variables"], "variables")
        for place, one in enumerate(header["variables"]):
            needed = record({"members": table_of(text)}, {}, _anything)
            needed({**header, **one}, f"variables[{place}]")


def check_header(header: Mapping[str, Any], place: str = "") -> None:
    """Raise ValueError if the header of one model does not follow the schema.

    Parameters
    ----------
    header
        What the file says of the model.
    place
        Key of the model in the header of the whole file; empty if it is the only one.
    """
    older = header.get("version", 0) < 3
    record(MODEL, ALSO, attribute if older else None)(dict(header), place)
    start = f"{place}." if place else ""
    hierarchy, names = header["hierarchy"], [level["name"] for level in header["levels"]]
    if len(set(names)) < len(names):
        raise ValueError(f"{start}levels have a name twice: {', '.join(names)}")
    if sorted(hierarchy) != sorted(names):
        raise ValueError(f"{start}hierarchy is not the names of the levels, each once")
    if len(header["axes"]) != len(names):
        raise ValueError(f"{start}axes are not as many as levels")
    forms = header.get("narrowed", {}).values()
    if sum(form.get("count", 0) * np.size(form.get("start", 0)) for form in forms) > _MOST_EVEN:
        raise ValueError(f"{start}narrowed stands for more than {_MOST_EVEN} numbers")


_KINDS = {
    "core": ("f", None),
    "coordinates": ("f", 1),
    "frame": ("f", 2),
    "whole": ("f", 1),
    "spectrum": ("f", 1),
    "distance": ("f", None),
    "unobserved": ("u", 1),
    "local_scale": ("f", 1),
    "filled": ("u", 1),
    "absent": ("u", 1),
    "observations": ("f", None),
    "observation_errors": ("f", None),
}
"""Kind of numbers and number of axes of arrays, by the names of the arrays without a number."""


def check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError if an array of a model is of another kind than its name says."""
    for name, array in arrays.items():
        kind, axes = _KINDS.get(re.sub(r"_\d+$", "", name), (array.dtype.kind, None))
        if array.dtype.kind != kind or array.ndim != (array.ndim if axes is None else axes):
            raise ValueError(f"array '{name}' is of type {array.dtype} and {array.ndim} axes")


def check_axes(axes: Sequence[Axis]) -> None:
    """Raise ValueError if the labels or dates of an axis do not go with its numbers."""
    for axis in axes:
        if axis.labels is not None:
            _check_labels(axis.name, axis.labels, axis.numbers)
        elif axis.time is not None:
            axis.time.texts(np.array([axis.numbers.min(), axis.numbers.max()]))


def _check_labels(name: str, labels: Sequence[str], numbers: Array) -> None:
    if len(set(labels)) < len(labels):
        raise ValueError(f"the labels of '{name}' have a text twice")
    known = (numbers >= 0) & (numbers < len(labels)) & (numbers == np.floor(numbers))
    if not known.all():
        raise ValueError(f"'{name}' has coordinates without a label")
