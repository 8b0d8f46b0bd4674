"""Callbacks of a fit: how far it is, and what was tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dkrls_cli.cli.describe import kernel_facts
from dkrls_cli.cli.report import Report
from dkrls_cli.cli.terminal.tables import table

if TYPE_CHECKING:
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.choosing import ChoiceCallback
    from dkrls_cli.tuning.candidates import LevelChoice


def counting(
    watch: ChoiceCallback | None, levels: int, done: Callable[[float], None]
) -> ChoiceCallback:
    """Return a callback that tells how many levels are chosen, the fit itself counting as one.

    Levels may be chosen twice, to see whether data is continued across the poles.
    """
    chosen = 0

    def count(dim: str, choice: LevelChoice) -> None:
        nonlocal chosen
        chosen += 1
        done(min(chosen, levels) / (levels + 1))
        if watch is not None:
            watch(dim, choice)

    return count


def both(one: ChoiceCallback | None, other: ChoiceCallback | None) -> ChoiceCallback | None:
    """Return a callback that calls two others; either may be None."""
    if one is None or other is None:
        return one or other

    def call(dim: str, choice: LevelChoice) -> None:
        one(dim, choice)
        other(dim, choice)

    return call


def choice_printer(report: Report, axes: Sequence[Axis]) -> ChoiceCallback | None:
    """Return a callback that prints the error of every kernel tried; None if not verbose."""
    if not report.verbose:
        return None
    from dkrls_cli.tuning.candidates import MEASURES

    by_name = {axis.name: axis for axis in axes}

    def print_choice(dim: str, choice: LevelChoice) -> None:
        best = min(trial.error for trial in choice.tried)
        known = [trial for trial in choice.curve if math.isfinite(trial.error)]
        rows = [
            {
                **kernel_facts(trial.kernel),
                "ridge": trial.ridge,
                "cv_error": trial.error,
                "": "#" * round(30 * best / trial.error) if trial.error else "#" * 30,
            }
            for trial in known
        ]
        units = by_name[dim].length_units
        scale = f"; sigma in {units}" if units else ""
        title = f"{dim}: error on {MEASURES[choice.measure]}, at the best ridge{scale}"
        report.detail("", title, table(rows) if rows else "every setting was given up")

    return print_choice
