"""Change the ridge of the best setting: for solves that end, and for error bars that fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dkrls_cli.tuning.joint import JointSetting, JointTrial
from dkrls_cli.tuning.moves import Move
from dkrls_cli.tuning.trials.descent import Attempt
from dkrls_cli.tuning.trials.solved import SolvedTrials

_MANY = 10
"""Iterations of a solve beyond which a larger ridge is tried."""

CALMING, _AS_GOOD = 3.0, 1.03
"""Factor on the ridge that saves iterations, and factor on the error that this may cost."""

_CLEARLY = 0.98
"""Another setting is taken in larger views if its error is below this share of the best one's."""

_BALANCING, _BALANCED = 6.0, (1e-6, 1.0)
"""Factor on the ridge that fits error bars, and the least and the largest such ridge."""


def calm(search: SolvedTrials, best: Attempt, larger: Move) -> Attempt:
    """Raise the ridge while solves take many iterations and the error stays within a few percent.

    A solve that takes many iterations on a window may not converge on the whole grid.
    """
    calm = best
    while calm.iterations > _MANY:
        setting = larger.apply(calm.setting, 1)
        attempt = search.solve(setting, best, _AS_GOOD)
        if setting == calm.setting or attempt.error > _AS_GOOD * best.error:
            break
        calm = attempt
    return calm


def confirm(
    wide: SolvedTrials, best: Attempt, larger: Move, other: JointSetting | None = None
) -> Attempt:
    """Return a setting that converges in larger views of the grid too, with its answers there.

    A smooth field with a tiny ridge is solved for easily in a small part of the grid alone, where a
    kernel that is wider than the part is as good as polynomials. If a kernel is wider than the
    larger views, too, or if the setting takes a larger ridge there or predicts them worse, it may
    be the best in small parts only: the best setting with other kernels is tried there as well, and
    taken if it is clearly better.
    """
    found = _settle(wide, best.setting, larger)
    if other is None or (found is not None and _holds(found, best)):
        return found or best
    rival = _settle(wide, other, larger)
    if found is None or rival is None:
        return found or rival or best
    return rival if rival.error < _CLEARLY * found.error else found


def _holds(found: Attempt, best: Attempt) -> bool:
    """Return whether larger views tell the same of a setting as small parts, and can tell it."""
    same = found.setting == best.setting and found.error <= _AS_GOOD * best.error
    pairs = (zip(found.setting.kernels, view.coordinates, strict=True) for view in found.windows)
    return same and not any(
        not kernel.is_spline and kernel.sigma > np.ptp(c) for pair in pairs for kernel, c in pair
    )


def _settle(wide: SolvedTrials, setting: JointSetting, larger: Move) -> Attempt | None:
    """Raise the ridge of a setting until its solve ends; None if it does not at the largest."""
    while True:
        found = wide.solve(setting, None, 1.0)
        if math.isfinite(found.error):
            return found
        calmer = larger.apply(setting, 1)
        if calmer == setting:
            return None
        setting = calmer


def runner_up(trials: Sequence[JointTrial], best: JointSetting) -> JointSetting | None:
    """Return the best setting that was tried with other kernels along all dimensions."""
    families = [kernel.family for kernel in best.kernels]
    others = [
        trial
        for trial in trials
        if math.isfinite(trial.error)
        and all(k.family != own for k, own in zip(trial.setting.kernels, families, strict=True))
    ]
    return min(others, key=lambda trial: trial.error).setting if others else None


def balance(search: SolvedTrials, best: Attempt) -> Attempt:
    """Change the ridge such that error bars fit, as long as the error stays within a few percent.

    That is for observations with errors: see :mod:`dkrls_cli.tuning.noisy.balance`.
    """
    balanced, least = best, abs(search.misfit(best))
    for factor in (1 / _BALANCING, _BALANCING):
        ridge = best.setting.ridge * factor
        while _BALANCED[0] <= ridge <= _BALANCED[1]:
            attempt = search.solve(replace(best.setting, ridge=ridge), best, _AS_GOOD)
            if not attempt.error <= _AS_GOOD * best.error:
                break
            found = abs(search.misfit(attempt))
            if found >= least:
                break
            balanced, least = attempt, found
            ridge *= factor
    return balanced
