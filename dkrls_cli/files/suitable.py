"""Which of all variables of a file may be modelled: directions and codes are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dkrls_cli.arrays import blocks
from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source, mask_unusable
from dkrls_cli.files.stored.handles import close_files
from dkrls_cli.grid.quantities import may_have_no_averages, refuse_no_averages

# Cells that are read at once for the range of a variable: 64 MB of them.
_AT_ONCE = 2**23


def keep_suitable(sources: Sequence[Source]) -> list[Source]:
    """Return the variables that hold no directions and no codes; a note tells which are left out.

    Only the values of those whose name or attributes speak of directions or codes are read.

    Raises
    ------
    InputError
        If none is left.
    """
    reasons = [_why_unsuitable(source) for source in sources]
    told = [
        f"'{source.name}' is left out. {reason.removesuffix('.')}"
        for source, reason in zip(sources, reasons, strict=True)
        if reason
    ]
    kept = [source for source, reason in zip(sources, reasons, strict=True) if not reason]
    if not kept:
        raise InputError(f"No variable is left to model. {' '.join(reasons)}")
    return [replace(kept[0], notes=[*told, *kept[0].notes]), *kept[1:]]


def _why_unsuitable(source: Source) -> str:
    """Return why no mean can be taken of a variable; empty if one can."""
    if not may_have_no_averages(source.name, source.attrs):
        return ""
    try:
        refuse_no_averages(source.name, source.attrs, *_range_of(source), source.style.packing)
    except InputError as error:
        return str(error)
    return ""


def _range_of(source: Source) -> tuple[float, float]:
    """Return the least and the largest value, NaN if there is none; files are closed again."""
    if source.reader is None:
        parts = iter([source.load()])
    else:
        parts = (source.reader.read_box(box) for box in blocks(source.shape, _AT_ONCE))
    least = largest = np.nan
    try:
        for part in parts:
            values, _ = mask_unusable(part)
            least = float(np.fmin.reduce(values, axis=None, initial=least))
            largest = float(np.fmax.reduce(values, axis=None, initial=largest))
    finally:
        close_files(source.paths)
    return least, largest
