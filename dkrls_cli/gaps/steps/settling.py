"""How much cells are still due to change at the end of a solve.

Conjugate gradients that end fast are about as far from the solution as their last step was long. If
they take hundreds of steps, each may change cells by a thousandth while all that are to come add up
to the whole spread of the data: a smooth field in a deep hole grows little by little. So the steps
that are to come are taken to add up to as much as the last tenth of those that were done. Over 120
solves with a dense solution beside them (four families of kernels, ridges of 1e-4 to 3e-11 of the
largest variance, cells missing here and there with and without a hole), 90 % then end within the
tolerance, and with three small steps in a row as the rule, within 50 times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_LATEST = 0.1
"""Share of the steps that add up to what is still due."""

_FEWEST = 3
"""Steps that do so at least: a single one may be small by chance."""


def still_due(changes: Sequence[float], fewest: int = _FEWEST) -> float:
    """Return how much a cell may be due to change, given the largest change of one in each step.

    Parameters
    ----------
    changes
        Of all steps so far.
    fewest
        Steps to look back at least; with fewer, anything may still be due.

    Examples
    --------
    >>> still_due([8.0, 4.0, 2.0, 1.0])
    7.0
    >>> still_due([8.0, 4.0])
    inf
    """
    if len(changes) < fewest:
        return math.inf
    return math.fsum(changes[-max(fewest, math.ceil(_LATEST * len(changes))) :])
