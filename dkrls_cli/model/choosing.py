"""From wishes to levels: what is left open is chosen on the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level, check_axis
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.settings import Wish, Wishes
from dkrls_cli.tuning import slices as tuning
from dkrls_cli.tuning.joint import choose_joint
from dkrls_cli.tuning.slices import Choice

Watch = Callable[[str, Choice], None]
"""Told of every choice as it is made, with the name of the dimension."""


@dataclass(frozen=True)
class Chosen:
    """Levels in the order of the axes, the joint ridge if there is one, and what to warn of."""

    levels: tuple[Level, ...]
    joint_ridge: float | None
    warnings: tuple[str, ...]


def choose_levels(
    wishes: Wishes,
    axes: Sequence[Axis],
    values: Array,
    mean: float,
    *,
    folds: int | None = None,
    watch: Watch | None = None,
) -> Chosen:
    """Choose what the user left open, the shortest level first: :mod:`dkrls_cli.tuning.slices`.

    Between labels there is nothing to answer, so they do not smooth for the levels after them.
    """
    levels: dict[int, Level] = {}
    warnings: list[str] = []
    seen, centre = values, mean
    order = sorted(range(values.ndim), key=lambda place: values.shape[place])
    for place in order:
        axis, wish = axes[place], wishes.levels[place]
        smoother = _given(wish, wishes.joint)
        if smoother is None:
            assert isinstance(wish, Wish)
            check_axis(axis.numbers, Level(axis.name, Kernel(period=wish.period)))
            choice = _choice(wish, axis, tuning.slices(seen, place, centre), folds)
            if watch is not None:
                watch(axis.name, choice)
            warnings += [
                f"{axis.name}: {warning}; a better value may lie beyond"
                for warning in choice.warnings
            ]
            smoother = _level(wish, choice, joint=False)
            levels[place] = _level(wish, choice, wishes.joint)
        else:
            levels[place] = smoother
        if place != order[-1] and axis.size > 1 and axis.labels is None:
            kernel, ridge = smoother.kernel, smoother.ridge
            seen, centre = tuning.between(seen, place, centre, axis.numbers, kernel, ridge), 0.0
    found = tuple(levels[place] for place in range(values.ndim))
    if not wishes.joint:
        return Chosen(found, None, tuple(warnings))
    return _under_joint_ridge(wishes, axes, values - mean, Chosen(found, None, tuple(warnings)))


def _under_joint_ridge(
    wishes: Wishes, axes: Sequence[Axis], values: Array, chosen: Chosen
) -> Chosen:
    """One ridge for all levels, and sigmas that go with it where they are open."""
    movable = [isinstance(wish, Wish) and wish.sigma is None for wish in wishes.levels]
    if wishes.joint_ridge is not None and not any(movable):
        return replace(chosen, joint_ridge=wishes.joint_ridge)
    kernels, ridge = choose_joint(
        values,
        [axis.numbers for axis in axes],
        [level.kernel for level in chosen.levels],
        open_sigmas=movable,
        ridge=wishes.joint_ridge,
    )
    levels = tuple(replace(lv, kernel=k) for lv, k in zip(chosen.levels, kernels, strict=True))
    return replace(chosen, levels=levels, joint_ridge=ridge)


def _given(wish: Level | Wish, joint: bool) -> Level | None:
    """The level, if nothing of it is left open."""
    if isinstance(wish, Level):
        return wish
    ridge = 0.0 if joint else wish.ridge
    if wish.family is None or wish.sigma is None or ridge is None:
        return None
    return Level(wish.name, Kernel(wish.family, wish.sigma, wish.period), ridge)


def _choice(wish: Wish, axis: Axis, data: Array, folds: int | None) -> Choice:
    return tuning.choose(
        axis.numbers,
        data,
        family=wish.family,
        sigma=wish.sigma,
        ridge=wish.ridge,
        period=wish.period,
        cycles=wish.cycles,
        folds=folds,
    )


def _level(wish: Wish, choice: Choice, joint: bool) -> Level:
    """The level that was chosen around a wish."""
    trial = choice.under_joint_ridge if joint else choice.taken
    return Level(wish.name, trial.kernel, 0.0 if joint else trial.ridge)
