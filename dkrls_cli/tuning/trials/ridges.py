"""Change the ridge of the best setting: for solves that end, and for error bars that fit."""

from __future__ import annotations

import math
from dataclasses import replace

from dkrls_cli.tuning.moves import Move
from dkrls_cli.tuning.trials.descent import Attempt
from dkrls_cli.tuning.trials.solved import SolvedTrials

_MANY = 10
"""Iterations of a solve beyond which a larger ridge is tried."""

CALMING, _AS_GOOD = 3.0, 1.03
"""Factor on the ridge that saves iterations, and factor on the error that this may cost."""

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


def confirm(wide: SolvedTrials, best: Attempt, larger: Move) -> Attempt:
    """Return a setting that converges in larger views of the grid too, with its answers there.

    A smooth field with a tiny ridge is solved for easily in a small part of the grid alone. The
    ridge is raised until the solve ends; at the largest ridge the setting is taken as it is.
    """
    setting = best.setting
    while True:
        found = wide.solve(setting, None, 1.0)
        calmer = larger.apply(setting, 1)
        if math.isfinite(found.error):
            return found
        if calmer == setting:
            return best
        setting = calmer


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
