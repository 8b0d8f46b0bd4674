"""Results of a training: the cascade, the facts that its model keeps, and notes on the solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dkrls_cli.arrays import Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.poles.continuation import Continuation
from dkrls_cli.errors import ConvergenceError
from dkrls_cli.gaps.pattern import Pattern, pattern
from dkrls_cli.gaps.solve import Completed
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.tuning.joint import JointSetting

Tell = Callable[[float], None]
"""Called with the share that is done, 0 to 1."""


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained cascade.

    Attributes
    ----------
    cascade
        The numbers of the model.
    bars
        What its error bars are computed from.
    facts
        What the model keeps about its training: ``notes`` to warn of, and ``missing``, the share
        and pattern of the missing cells and how well they are solved for.
    enclosing
        The grid that the model holds, and notes on its coordinates that are left out, if these are
        others than in the grid that was given.
    poles
        Rows of the cascade that go on across the poles, or None.
    """

    cascade: Cascade
    bars: Bars
    facts: dict[str, Any]
    enclosing: tuple[Grid, list[str]] | None = None
    poles: Continuation | None = None


CHOSEN_ON = "last_level_chosen_on"
"""Key of the origin of a model fitted to one slice: slices when its settings were last chosen."""


def missing_facts(
    observed: Mask, axes: Sequence[Axis], last: int, done: Completed
) -> dict[str, Any]:
    """Return what is missing of a grid, and how well the missing cells are solved for.

    Parameters
    ----------
    observed
        Which cells are observed.
    axes
        Axes of the grid.
    last
        Place among the axes of the last level.
    done
        The completed grid.

    Returns
    -------
    dict
        ``share`` of the cells, ``pattern`` and ``typical_gap`` in words, and ``iterations`` and
        relative ``residual`` of the solve.
    """
    return {
        "share": 1.0 - float(observed.mean()),
        **_describe(pattern(observed, last), axes, last),
        "iterations": done.iterations,
        "residual": done.residual,
    }


def _describe(found: Pattern, axes: Sequence[Axis], last: int) -> dict[str, str]:
    """Return the pattern of missing cells, and the size of a typical gap, in words."""
    shares = {f"at all {axes[last].name}": found.fixed, "here and there": found.scattered}
    words = [f"{100 * share:.3g} % {where}" for where, share in shares.items() if share > 0]
    sides = zip(axes, found.shape, strict=True)
    typical = " x ".join(f"{axis.name} {side}" for axis, side in sides)
    return {"pattern": ", ".join(words), "typical_gap": typical}


def group_facts(setting: JointSetting, axes: Sequence[Axis]) -> dict[str, Any]:
    """Return which dimensions share one distance, if some do, and their second scale."""
    grouping = setting.grouping
    if not grouping.axes:
        return {}
    names = [axes[place].name for place in grouping.axes[0]]
    second = {"share": grouping.share, "factor": grouping.factor} if grouping.share else None
    return {"group": names, "sphere": grouping.sphere, "second_scale": second}


def solve_notes(done: Completed) -> list[str]:
    """Return a warning if the solve for the missing cells ended above its tolerance."""
    if done.converged:
        return []
    return [
        f"the missing cells are solved for to {done.residual:.2g} only, in {done.iterations} "
        "steps; a larger ridge or a shorter sigma solves better"
    ]


def calm_notes(chosen: float, taken: float) -> list[str]:
    """Return a note if the ridge is a larger one than hidden cells have chosen."""
    if taken <= chosen:
        return []
    return [
        f"the ridge is {taken:.2g}, not {chosen:.2g} as hidden cells would have it: with that, the "
        "missing cells could not be solved for"
    ]


def inexact_error(done: Completed) -> ConvergenceError:
    """Return the error of missing cells that were not solved for."""
    return ConvergenceError(
        f"The missing cells are solved for to {done.residual:.2g} of the spread of the data only, "
        f"after {done.iterations} steps. Give a larger ridge or a shorter sigma, or accept inexact "
        "answers.",
        setting="accept_inexact",
    )
