"""Conjugate gradients for a grid with missing cells, with what is known of its smooth directions.

With the system A, its solution Q on the smooth directions (:mod:`dkrls_cli.gaps.coarse`) and D the
division by p + lambda / w, a step is preconditioned by (I - QA) D^-1. All others are solved for,
and then the smooth ones with what those leave of them (deflation: DEF2 in Tang, Nabben, Vuik and
Erlangga 2009). That takes two products with A, and a fourth of the steps of solving for both side
by side. It is the preconditioner

    Q + (I - QA) D^-1 (I - AQ)

for residuals that have no part on the smooth directions, as all have if the first one has none. By
round-off they get one. So every ten iterations and at the end the smooth directions are solved for
anew, which takes one more product. Where the ridge is so small that Q is round-off in part, it is
the second form, with a third product: over 48 solves of both it took as many steps from a ridge of
1e-12 of the largest variance on, and below fewer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.gaps.coarse import CoarseSpace
from dkrls_cli.gaps.preconditioner import ProductPreconditioner
from dkrls_cli.gaps.steps.settling import still_due
from dkrls_cli.gaps.steps.system import System

_LOOK = 10
"""Iterations between two calls of `stop`, each of which costs about half an iteration.

Smooth directions are solved for anew as often.
"""

_ROUND_OFF = 1e-15
"""Residual, as a share of the right-hand side, that is round-off."""

CALM = 3
"""Steps after a residual was computed anew, by which it shows whether anything is due."""

_OFF = 2.0
"""Growth of the energy of a residual that is computed anew, from which directions begin anew."""

_DEFLATED = 1e-11
"""Ridge, as a share of the largest variance, from which two products a step are enough."""


def descend(
    system: System,
    near: CoarseSpace | ProductPreconditioner | None,
    g: Array,
    renew: Callable[[], Array],
    tolerance: float,
    limit: int,
    stop: Callable[[float, float], bool],
) -> tuple[int, float]:
    """Solve for g in place by conjugate gradients; return the iterations and what is still due.

    That is told by the largest change of a missing cell in each step. `g` holds the starting point.
    `renew` computes the residual of g: at first, and where products are in single precision at the
    end, from where the solve goes on until that changes no missing cell. Every ten iterations
    `stop` is asked whether to end, given the largest change of a cell and the last ones.
    """
    left = renew()
    solved = _ROUND_OFF**2 * float(np.vdot(left, left))
    energy, iterations, renewed, changes = 1.0, 0, 0, list[float]()
    direction = np.zeros(left.shape)
    while iterations < limit:
        if iterations >= renewed + CALM and still_due(changes) <= tolerance:
            if not system.is_single or iterations == renewed + CALM:
                break
            left, renewed = renew(), iterations
        if iterations % _LOOK == 0:
            _solve_smooth(system, near, g, left)
        downhill = precondition(system, near, left)
        before, energy = energy, float(np.vdot(left, downhill))
        if energy <= 0 or float(np.vdot(left, left)) <= solved:
            changes = [0.0] * CALM
            break
        is_off = iterations == renewed and energy > _OFF * before
        direction *= 0.0 if is_off else energy / before
        direction += downhill
        del downhill
        product, reach = system.multiply(direction)
        curvature = system.inner(direction, product)
        if curvature <= 0:  # of a matrix that is positive: round-off is all that is left
            changes = [0.0] * CALM
            break
        pace = energy / curvature
        system.step(g, pace, direction)
        system.step(left, -pace, product)
        del product
        changes.append(pace * reach)
        iterations += 1
        if iterations % _LOOK == 0 and stop(max(changes), still_due(changes)):
            break
    _solve_smooth(system, near, g, left)
    return iterations, still_due(changes)


def precondition(
    system: System, near: CoarseSpace | ProductPreconditioner | None, left: Array
) -> Array:
    """Return an approximate solution of the system for a residual."""
    if near is None:
        return system.divide(left)
    if isinstance(near, ProductPreconditioner):
        result = system.divide(left)
        near.solve(left, result)
        return result
    if is_deflated(system):
        result = system.divide(left)
        near.add_solution(-system.multiply(result)[0], result)
        return result
    result = np.zeros(left.shape)
    near.add_solution(left, result)
    result += system.divide(left - system.multiply(result)[0])
    near.add_solution(left - system.multiply(result)[0], result)
    return result


def is_deflated(system: System) -> bool:
    """Return whether the smooth directions are solved for beside steps and not within them."""
    return system.ridge >= _DEFLATED * float(system.field.variances.max())


def _solve_smooth(
    system: System, near: CoarseSpace | ProductPreconditioner | None, g: Array, left: Array
) -> None:
    """Solve for the smooth directions in place: the residual has no part on them afterwards.

    That is for a coarse space that steps do not solve for.
    """
    if isinstance(near, CoarseSpace) and is_deflated(system):
        smooth = np.zeros(left.shape)
        near.add_solution(left, smooth)
        g += smooth
        left -= system.multiply(smooth)[0]
