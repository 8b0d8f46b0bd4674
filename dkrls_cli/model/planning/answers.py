"""Plans of answers of a model that holds its data: memory and bytes, before they are made."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import pairwise

from dkrls_cli.memory import peak_bytes
from dkrls_cli.model.answering.answers import Query
from dkrls_cli.model.streaming.request import Streamed, process_bytes
from dkrls_cli.tuning.footprint import answer_memory

_NUMBER = 8
"""Bytes of a number with which is computed."""

_WRITERS = {"nc": 138_000_000, "zarr": 120_000_000}
"""Bytes of the libraries that write a format, as measured; they are loaded when they are needed."""


def predict_memory(
    query: Query, *, std: bool, form: str, at_once: float = math.inf, held: int = 0
) -> int:
    """Return the bytes in use at most while a query is answered, program and model included.

    Parameters
    ----------
    query
        What a model is asked.
    std
        Whether standard errors are asked for.
    form
        Format in which the answers are written: nc, zarr, or one of rows.
    at_once
        Answers that are made at a time.
    held
        Answers of other variables that are held meanwhile.
    """
    cells = int(min(math.prod(query.shape), at_once))
    share = cells / max(1, math.prod(query.shape))
    solved = 2 * math.prod(query.model.shape) if query.model.joint_ridge is not None else 0
    between = share * _between(query.model.shape, query.shape)
    made = max(answer_memory(cells + held, std=std), int(_NUMBER * between))
    written = 0 if "xarray" in sys.modules else _WRITERS.get(form, 0)
    needs = process_bytes() + _NUMBER * solved + made + written
    reading = peak_bytes()  # of the file of the model; NaN where it is not known
    return max(needs, 0 if math.isnan(reading) else int(reading))


def gathered_memory(streamed: Streamed, cells: int, *, std: bool) -> int:
    """Return the bytes in use at most while answers are made part by part and held until written.

    `cells` are those of all answers that are held.
    """
    held = _NUMBER * cells * (1 + std)
    return max(streamed.memory + held, process_bytes() + answer_memory(cells, std=std))


def _between(samples: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the most cells of two arrays that follow each other when axes are answered in turn.

    Axes that shrink most go first. The first array is that of the model, which is there already.
    """
    if len(samples) != len(sizes):
        return 0
    shape, steps = list(samples), [0]
    for axis in sorted(range(len(sizes)), key=lambda a: sizes[a] / samples[a]):
        shape[axis] = sizes[axis]
        steps.append(math.prod(shape))
    return max(one + following for one, following in pairwise(steps))
