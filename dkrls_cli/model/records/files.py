"""Records of several models in one file, and their arrays in as few bytes as hold them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.model.narrowing import (
    narrow_coordinates,
    narrow_values,
    widen,
)
from dkrls_cli.model.records.values import Arrays, Record

# Beginnings of the names of arrays that have the steps of coordinates.
_STEPPED = ("coordinates_", "whole_", "written_", "companion_", "source_coordinates_")


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
