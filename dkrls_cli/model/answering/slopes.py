"""Slopes along levels whose kernel has none: those of a smoother kernel, chosen on the same data.

Values along a rough dimension are best told by a Matern 1/2 kernel, or by straight lines, neither
of which has a derivative. A slope there is told by the differentiable kernel that misses left-out
slices least (:func:`dkrls_cli.tuning.slices.choice.choose_level`), with the slope of the detail
beside it (:mod:`dkrls_cli.cascade.functionals.detail`). Everything that takes is in a model that
holds its data; its error bars are calibrated with the kernel of the slope. Of a grid with missing
cells it is the data that the model has filled, under its joint ridge, and error bars are those of
the values, which know the missing cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import Bars, variance_on_grid
from dkrls_cli.cascade.errorbars.leaving import copies_of
from dkrls_cli.cascade.functionals.derivatives import ORDERS
from dkrls_cli.cascade.kernels import kernel_text
from dkrls_cli.cascade.level import Level
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.slices.fibres import sample_fibres
from dkrls_cli.tuning.slices.segments import WHOLE

if TYPE_CHECKING:
    from dkrls_cli.model.answering.questions import Question
    from dkrls_cli.model.model import Model

# Families that are tried, the roughest first; which have a derivative, `ORDERS` tells.
_FAMILIES = ("matern32", "matern52", "gaussian")

# Levels that were chosen for slopes: several questions are asked of one model.
_known: WeakKeyDictionary[Cascade, dict[tuple[tuple[str, int], ...], dict[str, Level]]] = (
    WeakKeyDictionary()
)


# Ridge, as a share of the variance of its kernel, from which on a level has noise or detail that
# slopes show: a hundredth of the variance is a tenth of the spread.
_NOISY = 1e-2


def noisy_slopes(model: Model, question: Question | None, *, smooth: bool) -> dict[str, float]:
    """Return the ridges of dimensions whose slopes pass through data that may be noise.

    They are shares of the variance of the kernel, by dimension; a smooth question has none.
    """
    return {} if question is None or smooth else _noisy(model, list(question.orders()))


def noisy_values(model: Model, question: Question | None, *, smooth: bool) -> dict[str, float]:
    """Return the ridges of dimensions along which data that may be noise is in values of means.

    They are shares of the variance of the kernel, by dimension. Values of a model of means over
    cells follow the data all over a cell; means over cells, and smooth answers, are not meant here.
    """
    if question is None or smooth or question.mean or question.derivative:
        return {}
    return _noisy(model, model.cell_means)


def _noisy(model: Model, dims: Sequence[str]) -> dict[str, float]:
    """Return the ridges of some dimensions that may be those of noise."""
    joint, prior = model.joint_ridge, math.prod(own.kernel.variance for own in model.cascade.levels)
    found = {
        dim: model.level_of(dim).ridge / model.level_of(dim).kernel.variance
        if joint is None
        else joint / prior
        for dim in dims
    }
    return {dim: ridge for dim, ridge in found.items() if ridge >= _NOISY}


def can_replace(model: Model, order: int) -> bool:
    """Return whether a level that is too rough can have another kernel for its slopes."""
    return (
        order <= max(ORDERS.values()) and model.reference is None and not model.cascade.is_stand_in
    )


def with_slopes(model: Model, question: Question | None) -> tuple[Model, str]:
    """Return the model that answers a question for derivatives, with kernels that have them.

    Returns
    -------
    Model
        The model itself, if its own kernels have the derivatives.
    str
        Which kernels are not those of the values, in words; empty if all are.
    """
    orders = {} if question is None else question.orders()
    rough = {
        dim: order
        for dim, order in orders.items()
        if order > ORDERS[model.level_of(dim).kernel.roughest]
    }
    if not rough:
        return model, ""
    found = _known.setdefault(model.cascade, {})
    key = tuple(rough.items())
    if key not in found:
        found[key] = {dim: _smoother_level(model, dim, order) for dim, order in key}
    levels, factors = list(model.cascade.levels), list(model.cascade.factors)
    for dim, level in found[key].items():
        levels[model.dims.index(dim)], factors[model.dims.index(dim)] = level, None
    joint = None
    if model.joint_ridge is not None:
        joint = max(model.joint_ridge, _least_joint_ridge(levels))
        levels = [replace(level, ridge=0.0) for level in levels]
    cascade = replace(
        model.cascade, levels=tuple(levels), factors=tuple(factors), joint_ridge=joint
    )
    words = [
        f"slopes along {dim} are those of a {kernel_text(level.kernel)} kernel of sigma "
        f"{level.kernel.sigma:.3g}, as the {model.level_of(dim).kernel.name} kernel of the values "
        "has none"
        for dim, level in found[key].items()
    ]
    return replace(model, cascade=cascade, known_bars=_bars_of(model, cascade)), "; ".join(words)


def _least_joint_ridge(levels: Sequence[Level]) -> float:
    """Return the joint ridge of which levels have the shares that their own ridges are."""
    prior = math.prod(level.kernel.variance for level in levels)
    return prior * max(level.ridge / level.kernel.variance for level in levels)


def _bars_of(model: Model, cascade: Cascade) -> Bars | None:
    """Return the error bars that know missing cells, as wide there with the kernels of slopes.

    None: they are calibrated when first asked for.
    """
    bars = model.known_bars
    if not isinstance(bars, GapBars):
        return bars if isinstance(bars, NoisyBars) else None
    if not bars.unobserved.any():
        return bars
    ours, theirs = (
        float(variance_on_grid(bars, each, each.coordinates)[bars.unobserved].mean())
        for each in (model.cascade, cascade)
    )
    return replace(bars, scale=bars.scale * ours / theirs) if theirs > 0 else bars


def _smoother_level(model: Model, dim: str, order: int) -> Level:
    """Return the level whose differentiable kernel misses left-out slices least."""
    cascade, own, axis = model.cascade, model.level_of(dim), model.dims.index(dim)
    plain = all(frame is None for frame in cascade.frames)
    fibres = sample_fibres(cascade.core if plain else cascade.predict(), axis, cascade.mean)
    nodes = cascade.coordinates[axis]
    copies = copies_of(cascade, model.poles).get(axis) if nodes.size <= WHOLE else None
    families = [family for family in _FAMILIES if ORDERS[family] >= order]
    if model.joint_ridge is not None:
        known = choose_level(
            nodes, fibres, family=families[0], period=own.kernel.period, copies=copies
        )
        return replace(own, kernel=known.taken.kernel, ridge=known.taken.ridge)
    choices = [
        choose_level(nodes, fibres, family=family, period=own.kernel.period, copies=copies).taken
        for family in families
    ]
    best = min(choices, key=lambda taken: taken.score)
    return replace(own, kernel=best.kernel, ridge=best.ridge)
