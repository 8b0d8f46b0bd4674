"""From a labelled grid to a trained cascade: complete grids, and grids with missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dkrls_cli.arrays import Mask, checked_gaps, checked_values
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Bars, calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level, check_axis, check_ridges
from dkrls_cli.gaps.pattern import Pattern, empty_slices, pattern
from dkrls_cli.gaps.solve import Completed, complete
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.choosing import Watch, choose_levels
from dkrls_cli.model.settings import Wish, Wishes
from dkrls_cli.tuning import gaps as gapfit
from dkrls_cli.tuning.gaps import gap_bars


@dataclass(frozen=True, eq=False)
class Trained:
    """A cascade, what its error bars are made from, and what is worth knowing of the training."""

    cascade: Cascade
    bars: Bars
    facts: dict[str, Any]


@dataclass(frozen=True)
class Training:
    """How to train, besides the levels.

    Attributes
    ----------
    mean
        What answers fall back to far from data; None: the mean of the data.
    compact, dtype
        See :func:`dkrls_cli.cascade.fit.fit_cascade`.
    folds, watch
        See :func:`dkrls_cli.model.choosing.choose_levels`.
    missing
        Share of cells that are missing, those of coordinates that were dropped among them.
    """

    mean: float | None = None
    compact: bool = False
    dtype: DTypeLike = np.float64
    folds: int | None = None
    watch: Watch | None = None
    missing: float = 0.0


def without_lost_slices(grid: Grid) -> tuple[Grid, list[str]]:
    """The grid without coordinates at which no cell is observed, and what went."""
    observed = ~np.isnan(grid.values)
    if not observed.any():
        return grid, []
    lost = empty_slices(observed)
    told = [
        f"{axis.name}: {gone.size} of {axis.size} coordinates have no observed cell and are "
        f"dropped, {_some(axis.take(gone).texts)}"
        for axis, gone in zip(grid.axes, lost, strict=True)
        if gone.size
    ]
    kept = [np.setdiff1d(np.arange(a.size), gone) for a, gone in zip(grid.axes, lost, strict=True)]
    return (grid.take(kept) if told else grid), told


def _some(texts: Sequence[str]) -> str:
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]}, {texts[1]}, ..., {texts[-1]}"


def train(grid: Grid, wishes: Wishes, how: Training) -> Trained:
    """Train on a complete grid."""
    values = checked_values(grid.values)
    mean = float(np.mean(values)) if how.mean is None else how.mean
    chosen = choose_levels(wishes, grid.axes, values, mean, folds=how.folds, watch=how.watch)
    trained = fit_cascade(
        values,
        [axis.numbers for axis in grid.axes],
        chosen.levels,
        joint_ridge=chosen.joint_ridge,
        mean=mean,
        compact=how.compact,
        dtype=how.dtype,
    )
    return Trained(trained, calibrate(trained), {"notes": list(chosen.warnings)})


def train_through_gaps(grid: Grid, wishes: Wishes, how: Training) -> Trained:
    """Train on the observed cells of a grid, under one joint ridge: :mod:`dkrls_cli.gaps.solve`."""
    values = checked_gaps(grid.values)
    observed = ~np.isnan(values)
    coordinates = [axis.numbers for axis in grid.axes]
    wanted = [_wanted(axis, wish) for axis, wish in zip(grid.axes, wishes.levels, strict=True)]
    check_ridges([w for w in wishes.levels if isinstance(w, Level)], wishes.joint_ridge or 0.0)
    mean = float(values[observed].mean()) if how.mean is None else how.mean
    chosen = gapfit.choose(values, coordinates, wanted, ridge=wishes.joint_ridge, mean=mean)
    kernels, ridge = chosen.setting.kernels, chosen.setting.ridge
    done = complete(values, coordinates, kernels, ridge, mean, tolerance=chosen.tolerance)
    trained = fit_cascade(
        done.values,
        coordinates,
        [Level(axis.name, kernel) for axis, kernel in zip(grid.axes, kernels, strict=True)],
        joint_ridge=ridge,
        mean=mean,
        compact=how.compact,
        dtype=how.dtype,
    )
    last = [axis.name for axis in grid.axes].index(wishes.hierarchy[-1])
    missing = missing_facts(observed, grid.axes, last, done) | {"settings_tried": chosen.tried}
    facts = {"missing": missing | {"share": how.missing}, "notes": solve_notes(done)}
    return Trained(trained, gap_bars(coordinates, kernels, observed, chosen), facts)


def _wanted(axis: Axis, wish: Level | Wish) -> gapfit.Wanted:
    if isinstance(wish, Level):
        kernel = wish.kernel
        wanted = gapfit.Wanted(kernel.family, kernel.sigma, kernel.period, kernel)
    else:
        wanted = gapfit.Wanted(wish.family, wish.sigma, wish.period)
    check_axis(axis.numbers, Level(axis.name, Kernel(period=wanted.period)))
    return wanted


def missing_facts(
    observed: Mask, axes: Sequence[Axis], last: int, done: Completed
) -> dict[str, Any]:
    """What is missing of a grid, and how well it is solved for."""
    return {
        "share": 1.0 - float(observed.mean()),
        **_words(pattern(observed, last), axes, last),
        "iterations": done.iterations,
        "residual": done.residual,
    }


def _words(found: Pattern, axes: Sequence[Axis], last: int) -> dict[str, Any]:
    """What is missing, in shares and words."""
    kinds = {
        f"at all {axes[last].name}": found.fixed,
        "here and there": found.scattered,
    }
    told = [f"{100 * share:.3g} % {words}" for words, share in kinds.items() if share > 0]
    sides = zip(axes, found.shape, strict=True)
    typical = " x ".join(f"{axis.name} {side}" for axis, side in sides)
    return {"pattern": ", ".join(told), "typical_gap": typical}


def solve_notes(done: Completed) -> list[str]:
    """What to warn of, if missing cells were not solved for as well as they should be."""
    if done.converged:
        return []
    return [
        f"the missing cells are solved for to {done.residual:.2g} only, in {done.iterations} "
        "steps; a larger --ridge or a shorter --sigma solves better"
    ]
