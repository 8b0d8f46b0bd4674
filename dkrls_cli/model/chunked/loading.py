"""Chunked arrays that are loaded into memory, if they fit."""

from __future__ import annotations

import math

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import is_chunked
from dkrls_cli.memory import available_bytes, held_bytes, peak_bytes
from dkrls_cli.tuning.footprint import Machine, footprint

SHARE = 0.8
"""Share of the memory that is free which a function of the Python interface takes by itself."""


def room() -> float:
    """Return the bytes that may be in use, the program included."""
    return SHARE * available_bytes()


def refuse_errors(obs_error: object) -> None:
    """Raise SettingError if there are errors of observations, which go part by part nowhere."""
    if obs_error is not None:
        raise SettingError(
            "Errors of the observations need the whole array in memory. Leave them out, or load "
            "the array first.",
            setting="obs_error",
        )


def refuse_large(data: object, advice: str = "Select a part of it.", *, gaps: bool = False) -> None:
    """Raise InputError if data is a chunked array that does not fit into memory.

    Parameters
    ----------
    data
        Data as a user gives it; what is not a chunked array is in memory already.
    advice
        What to try, a sentence.
    gaps
        Whether cells are missing, for which solving takes more memory.
    """
    if not is_chunked(data) or not math.prod(data.shape):
        return
    machine = Machine(held_bytes(), peak_bytes())
    needed, limit = footprint(data.shape, data.dtype, gaps=gaps, machine=machine).memory, room()
    if needed > limit:
        raise InputError(
            f"'{data.name or 'values'}' takes about {needed / 1e9:.3g} GB in memory, and "
            f"{limit / 1e9:.3g} GB may be used. {advice}"
        )
