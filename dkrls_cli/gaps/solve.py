"""Fill missing cells under a joint ridge: one Gaussian field through the observed cells only.

With M the mask of observed cells and f = V g the field (:mod:`dkrls_cli.gaps.field`), whose
coefficients have prior variances w, kernel ridge regression over the observed cells solves

    (V' M V + lambda / w) g = V' M y.

Of a product of kernels, missing cells filled with f make a complete grid whose ordinary joint-ridge
solution has no weight on the filled cells, so it is the same model, and
:func:`dkrls_cli.cascade.fit.fit_cascade` does the rest. Of a group of axes with one distance, the
completed grid is what a product of kernels interpolates between the coordinates.

Solver
------
The system is solved by conjugate gradients. In g, all directions of the data have a similar size
however small their w. The preconditioner w / (p w + lambda), with p the observed share, deals with
scattered cells. Smooth directions, which fit into holes, are solved for with the mask as it is:
:mod:`dkrls_cli.gaps.coarse`. How the two go together: :mod:`dkrls_cli.gaps.steps.descent`. The
solve ends when the missing cells have stopped changing: a small residual says little about them. A
grid with a long axis is solved for in its missing cells alone: :mod:`dkrls_cli.gaps.long`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.coarse import CoarseMaker, CoarseSpace
from dkrls_cli.gaps.field import NEGLIGIBLE, NO_GROUPS, Field, Grouping, SphereField, make_field
from dkrls_cli.gaps.long import complete_long, find_long_axis
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.preconditioner import (
    ProductPreconditioner,
    build_preconditioner,
    lasting_axis,
)
from dkrls_cli.gaps.refine import refine
from dkrls_cli.gaps.steps.descent import CALM, descend
from dkrls_cli.gaps.steps.system import System
from dkrls_cli.threads import one_blas_thread

_SETTLED = 1e-7
"""Change of a filled cell, as a share of the spread of the data, below which it is settled."""

_SINGLE, _MANY_CELLS = 1e-5, 2**16
"""Tolerance and cells from which products may be in single precision: of few, nothing is saved."""

_DROPPED, _DROPPED_SHARES = 0.02, (NEGLIGIBLE, 1e-6)
"""Largest w of directions to drop, as a share of the ridge: so much of the tolerance, in bounds."""

_SCATTERED = 1.1
"""Mean distance of the watched cells to data, in cells, below which they are scattered."""

_FEEBLE = 0.03
"""Weight of a cell, as a share of the largest, below which it counts as missing.

Where many such cells lie together, a solve without a coarse space seems to end far too early.
"""

_SAFE = 1e-9
"""Ridge, as a share of the largest variance, from which a solve that stands still has ended."""

LEAST_RIDGE = 1e-11
"""Least ridge, as a share of the largest variance, of a solve that is not refined.

Below, round-off decides about the missing cells, however small the residual.
"""

_EPSILON = float(np.finfo(np.float64).eps)
"""Round-off of a number: in the missing cells it is multiplied by w / lambda at the most."""

_LONG_CALM = 0.1
"""Share of the steps of a solve that has not converged by which its refinement ends at the least.

With a tiny ridge, steps may change no cell by 1e-7 while cells are off by a thousandth.
"""


@dataclass(frozen=True, eq=False)
class Completed:
    """A grid whose missing cells are filled, and how accurately they were solved for.

    Attributes
    ----------
    values
        The data, with missing cells filled by the model's predictions.
    iterations
        Number of conjugate gradient steps.
    residual
        Largest change of a filled cell that is still due, as a share of the spread of the data. If
        a group is solved for to round-off, what that leaves open.
    converged
        Whether that has come down to the tolerance.
    """

    values: Array
    iterations: int
    residual: float
    converged: bool


def complete(
    values: Array,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    ridge: float,
    mean: float = 0.0,
    *,
    grouping: Grouping = NO_GROUPS,
    tolerance: float = 1e-9,
    limit: int = 500,
    start: Array | None = None,
    spectra: Sequence[Spectrum | None] | None = None,
    watched: Mask | None = None,
    noise: Array | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Completed:
    """Fill the missing cells (NaN) with the joint-ridge model of the observed ones.

    Parameters
    ----------
    values
        The data, one axis per level, NaN where it is missing.
    coordinates, kernels
        One per axis.
    ridge
        The joint ridge.
    mean
        Value to which the answers fall back far from data.
    grouping
        Axes that share one distance. A long axis cannot be among them.
    tolerance, limit
        The solve stops when no missing cell changes by more than this share of the spread of the
        data, or after this many iterations. A product of kernels is then refined for at most as
        many, to 1e-7 if the tolerance is less.
    start
        The same grid completed with similar settings, to start the solve from.
    spectra
        The full spectrum of each axis, ``decompose(gram(kernel, c, c))``, where it is known
        already; None where it is not. A long axis needs none.
    watched
        The cells whose change decides when to stop, all missing ones by default. Others, such as
        land that stays missing, may be solved for less accurately.
    noise
        Variance of the noise of every cell beside the ridge, in units of the kernels. With it the
        observed cells are answered for as well.
    tell
        Called now and then with the share that is done, 0 to 1, as far as steps have come.

    Returns
    -------
    Completed
        The filled grid, and how accurately it was solved for.

    Raises
    ------
    InputError
        If no cell is observed.
    SettingError
        If the ridge is negative or not finite.

    Examples
    --------
    >>> x = np.linspace(0.0, 6.0, 25)
    >>> values = np.sin(x)
    >>> values[[3, 11, 12]] = np.nan
    >>> completed = complete(values, [x], [Kernel("gaussian", 1.5)], ridge=1e-10)
    >>> bool(np.abs(completed.values - np.sin(x)).max() < 1e-6)
    True
    """
    if not (math.isfinite(ridge) and ridge >= 0):
        raise SettingError(f"Invalid joint ridge {ridge}. It must be a finite number, 0 or above.")
    if not grouping.axes and noise is None:
        long = find_long_axis(coordinates, kernels)
        if long is not None:
            return _complete_long(
                values,
                coordinates,
                kernels,
                long,
                ridge,
                mean,
                limit=limit,
                start=start,
                spectra=spectra or [None] * values.ndim,
            )
    field = make_field(coordinates, kernels, grouping, spectra)
    done = complete_field(
        field,
        values,
        ridge,
        mean,
        tolerance=tolerance,
        limit=limit,
        start=start,
        watched=watched,
        noise=noise,
        tell=tell,
    )
    safe = watched is not None and ridge >= _SAFE * float(field.variances.max())
    if field.grouped or safe or noise is not None:
        return done
    return refine_cells(
        done, field, values, ridge, mean, tolerance=max(tolerance, _SETTLED), limit=limit
    )


def _complete_long(
    values: Array,
    coordinates: Sequence[Array],
    kernels: Sequence[Kernel],
    long: int,
    ridge: float,
    mean: float,
    *,
    limit: int,
    start: Array | None,
    spectra: Sequence[Spectrum | None],
) -> Completed:
    """Fill the missing cells of a grid with a long axis: :mod:`dkrls_cli.gaps.long`."""
    observed = np.isfinite(values)
    _refuse_empty(observed)
    if observed.all():
        return Completed(values.copy(), 0, 0.0, converged=True)
    done = complete_long(
        values,
        coordinates,
        kernels,
        long,
        ridge,
        mean,
        tolerance=_SETTLED,
        limit=limit,
        start=start,
        spectra=spectra,
    )
    return Completed(done.values, done.iterations, done.change, done.change <= _SETTLED)


def _refuse_empty(observed: Mask) -> None:
    """Raise InputError if no cell is observed."""
    if not observed.any():
        raise InputError(f"All {observed.size} values are missing. Expected at least one number.")


def refine_cells(
    done: Completed,
    field: Field,
    values: Array,
    ridge: float,
    mean: float,
    *,
    tolerance: float = _SETTLED,
    limit: int,
) -> Completed:
    """Refine the filled cells of a solve until they stop changing: :mod:`dkrls_cli.gaps.refine`.

    With a tiny ridge a solve may stand still while missing cells are far from their answers. The
    result has converged if no filled cell would change any more.
    """
    observed = np.isfinite(values)
    if observed.all():
        return done
    with one_blas_thread():
        refined = refine(
            field,
            done.values,
            observed,
            ridge,
            mean,
            tolerance=tolerance,
            limit=limit,
            calm=1 if done.converged else max(CALM, math.ceil(_LONG_CALM * done.iterations)),
        )
    np.copyto(refined.values, values, where=observed)
    iterations = done.iterations + refined.iterations
    return Completed(refined.values, iterations, refined.change, refined.change <= tolerance)


def complete_field(
    field: Field,
    values: Array,
    ridge: float,
    mean: float,
    *,
    tolerance: float,
    limit: int,
    start: Array | None = None,
    watched: Mask | None = None,
    coarse: CoarseMaker | None = None,
    noise: Array | None = None,
    give_up: Callable[[Array], bool] | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Completed:
    """Fill missing cells as :func:`complete` does, from a field on the grid.

    `coarse` makes the coarse space, if the mask has been met before. `noise` is a variance of the
    noise of every cell beside the ridge: cells then count by lambda / (lambda + noise), and
    observed cells are answered for as the missing ones are. `give_up` is called with the answers
    every ten iterations, and stops the solve by returning True.
    """
    observed = np.isfinite(values)
    _refuse_empty(observed)
    if observed.all() and noise is None:
        return Completed(values.copy(), 0, 0.0, converged=True)
    with one_blas_thread():
        if watched is None:
            watched = np.ones(values.shape, bool) if noise is not None else ~observed
        if field.grouped:
            ridge = max(ridge, LEAST_RIDGE * float(field.variances.max()))
        weights = cell_weights(observed, ridge, noise)
        useful = useful_field(field, ridge, tolerance)
        system = System(useful, field.fold(weights), ridge, field.fold(watched))
        near = _near(system, observed, coarse) if noise is None else _near_noisy(system, coarse)
        if noise is None and tolerance >= _SINGLE and _has_no_hole(system, near, observed):
            system = system.in_single()
        spread = float(np.abs(weights * (values - mean))[observed].max()) or 1.0
        del weights
        g = np.zeros(system.ranks) if start is None else system.smoothed(start, mean)
        due = tolerance * spread

        def stop(largest: float, change: float) -> bool:
            if largest > change > due > 0:  # steps make cells settle at an even pace, roughly
                tell(math.log(largest / change) / math.log(largest / due))
            return give_up is not None and give_up(system.answers(g, mean))

        def renew() -> Array:
            return system.residual(g, values, mean)

        iterations, change = descend(system, near, g, renew, due, limit, stop)
        filled = system.answers(g, mean)
    if noise is None:
        np.copyto(filled, values, where=observed)
    residual = change / spread
    if field.grouped and change == 0.0:
        residual = _EPSILON * float(field.variances.max()) / ridge
    return Completed(filled, iterations, residual, change <= tolerance * spread)


def useful_field(field: Field, ridge: float, tolerance: float) -> Field:
    """Return a field without the directions that a solve to a tolerance needs not.

    Of a field that has been returned before nothing is dropped: it is returned as it is.
    """
    return field.useful(ridge, float(np.clip(_DROPPED * tolerance, *_DROPPED_SHARES)))


def cell_weights(observed: Mask, ridge: float, noise: Array | None) -> Array:
    """Return M: lambda / (lambda + noise) of every observed cell, and 0 of every missing one."""
    if noise is None:
        return observed.astype(np.float64)
    return np.asarray(np.where(observed, ridge / (ridge + noise), 0.0))


def _near(
    system: System, observed: Mask, coarse: CoarseMaker | None
) -> CoarseSpace | ProductPreconditioner | None:
    """Return the preconditioner of the smooth directions; None where all cells are scattered.

    A mask that lasts along an axis, beside which cells are missing here and there, has its own if
    it is solved for once. Where solves share a coarse space, that takes a third of the steps.
    """
    axis, watched = lasting_axis(observed), system.field.unfold(system.watched)
    far = distance_to_data(observed) if coarse is None else coarse.distances
    if _are_scattered(observed, watched, axis, far):
        if axis is None:
            return None
        if coarse is None:
            lasting = build_preconditioner(system.field, observed, system.ridge)
            if lasting is not None:
                return lasting
    coarse = coarse or CoarseMaker(system.cell_weights)
    return coarse.make(system.field, system.ridge)


def has_scattered_gaps(observed: Mask, watched: Mask) -> bool:
    """Return whether cells are missing here and there, and a solve needs no coarse space.

    Watched cells that are missing all along an axis, as land is, do not count.
    """
    return _are_scattered(observed, watched, lasting_axis(observed), distance_to_data(observed))


def _are_scattered(observed: Mask, watched: Mask, axis: int | None, far: Array) -> bool:
    """Return whether watched cells are next to data, but for those all along a lasting axis."""
    beside = watched if axis is None else watched & observed.any(axis=axis, keepdims=True)
    away = far[beside]
    return bool(away.sum() <= _SCATTERED * away.size)


def _near_noisy(system: System, coarse: CoarseMaker | None) -> CoarseSpace | None:
    """Return the preconditioner of cells with noise; None where good data is near every cell."""
    weights = system.cell_weights
    away = distance_to_data(weights > _FEEBLE * weights.max())[system.field.unfold(system.watched)]
    if not system.field.grouped and away.sum() <= _SCATTERED * away.size:
        return None
    return (coarse or CoarseMaker(weights)).make(system.field, system.ridge)


def _has_no_hole(
    system: System, near: CoarseSpace | ProductPreconditioner | None, observed: Mask
) -> bool:
    """Return whether a grid is large, and no watched cell of it is in a hole.

    Single precision is good enough then: in a hole, its round-off is multiplied by w / lambda.
    """
    field = system.field
    if (
        observed.size < _MANY_CELLS
        or isinstance(field, SphereField)
        or isinstance(near, CoarseSpace)
        or system.ridge < _SAFE * float(field.variances.max())
    ):
        return False
    axis = lasting_axis(observed)
    never = False if axis is None else ~observed.any(axis=axis, keepdims=True)
    return not np.any(field.unfold(system.watched) & never)
