"""Missing cells of old and new slices, filled again from all that is known."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, fits_single, round_to_single
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.factors.choice import is_long
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.gaps.bars import GapBars, rescale
from dkrls_cli.gaps.field import NO_GROUPS, Grouping, make_field
from dkrls_cli.gaps.noisy.analysis import Observations, analyse
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.gaps.slices import fill_slices
from dkrls_cli.gaps.solve import Completed, complete
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.observations import describe_errors
from dkrls_cli.model.model import OBS_ERRORS, Model
from dkrls_cli.model.training.result import inexact_error, solve_notes
from dkrls_cli.model.updating.outcome import with_facts, with_slices
from dkrls_cli.tuning.gaps import final_tolerance

if TYPE_CHECKING:
    pass


# Tolerance and iterations of the analysis of all observations, as those of a fit with all settings.
_EXACT, _LIMIT = 1e-9, 1500


@dataclass(frozen=True, eq=False)
class Judge:
    """Says whether missing cells are solved for as exactly as in a fit.

    A fit ends when what is still due is far below the error of the model. An update goes on, so
    that the order of slices does not matter; but where it gets stuck, that much is enough.

    Attributes
    ----------
    model
        The model before.
    accept_inexact
        Whether to go on, with a warning, where they are not.
    """

    model: Model
    accept_inexact: bool

    def check(self, done: Completed, values: Array) -> Completed:
        """Return the solve of a grid, NaN where it is missing; raise if it is not good enough."""
        if done.converged:
            return done
        given = self.model.origin.get("missing", {}).get("settings_tried") == 1
        error = 0.0 if given else float(self.model.bars.errors.min())  # given: as exact as can be
        if done.residual <= final_tolerance(error, float(np.nanstd(values))):
            return dataclasses.replace(done, converged=True)
        if not self.accept_inexact:
            raise inexact_error(done)
        return done


def has_gaps(model: Model, values: Array) -> bool:
    """Return whether a cell of old or new slices is missing."""
    return model.trained_unobserved is not None or bool(np.isnan(values).any())


def missing_cells(model: Model, values: Array) -> Mask:
    """Return which cells of old and new slices are missing, the axis that grows first."""
    known, shape = model.trained_unobserved, model.cascade.shape
    before = np.zeros(shape, bool) if known is None else known
    together: Mask = np.concatenate([before, np.isnan(values)], axis=model.grows)
    return np.moveaxis(together, model.grows, 0)


def refill_slices(
    model: Model, values: Array, axis: Axis, source: Indices, missing: Mask, judge: Judge
) -> Model:
    """Fill slices with gaps from the complete ones and from each other, under level ridges.

    All stand in the order of the axis, whenever they came: an iterative solve depends on the order,
    to its tolerance. If the fit has solved for missing cells, under a ridge that suits these, old
    slices stay as they are.
    """
    growing, old = model.growing, model.axes[model.grows].size
    open_cells = missing.copy()
    if model.origin.get("missing", {}).get("settings_tried"):
        open_cells[source < old] = False
    gappy: Mask = np.asarray(open_cells.reshape(len(missing), -1).any(axis=1))
    whole = _take_complete(growing, values, axis.take(~gappy).numbers, source[~gappy], old)
    slices = _gather(growing, values, source[gappy], old)
    slices[np.moveaxis(open_cells[gappy], 0, growing.axis)] = np.nan
    coordinates = axis.numbers[gappy]
    done = judge.check(fill_slices(whole, coordinates, slices), slices)
    done = _like_data(model, values, done, np.isnan(slices))
    together = whole.append(coordinates, done.values)
    places = np.argsort(np.concatenate([np.flatnonzero(~gappy), np.flatnonzero(gappy)]))
    unobserved = np.moveaxis(missing, 0, growing.axis)
    return with_slices(model, together.take(places), axis, filled=unobserved, done=done)


def _take_complete(
    growing: Growing, values: Array, coordinates: Array, source: Indices, old: int
) -> Growing:
    """Return old and new slices without gaps."""
    new = source >= old
    together = growing.append(coordinates[new], values.take(source[new] - old, growing.axis))
    places = source.copy()
    places[new] = old + np.arange(np.count_nonzero(new))
    return together.take(places)


def _gather(growing: Growing, values: Array, source: Indices, old: int) -> Array:
    """Return old and new slices as they were given, in the order of `source`."""
    by_age = np.argsort(source)
    before, new = np.split(source[by_age], [np.count_nonzero(source < old)])
    parts = [growing.slices(before), values.take(new - old, growing.axis)]
    return np.concatenate(parts, growing.axis).take(np.argsort(by_age), growing.axis)


def refill_all(
    model: Model, values: Array, axis: Axis, source: Indices, missing: Mask, judge: Judge
) -> Model:
    """Solve for all missing cells again, as a fit does, under a joint ridge."""
    growing, trained = model.growing, model.cascade
    slices = _gather(growing, values, source, model.axes[model.grows].size)
    unobserved = np.moveaxis(missing, 0, growing.axis)
    slices[unobserved] = np.nan
    nodes = list(trained.coordinates)
    nodes[growing.axis] = axis.numbers
    kernels, ridge = [level.kernel for level in trained.levels], trained.joint_ridge or 0.0
    spectra = [
        None if is_long(k, c) else decompose(gram(k, c, c))
        for k, c in zip(kernels, nodes, strict=True)
    ]
    done = complete(
        slices,
        nodes,
        kernels,
        ridge,
        trained.mean,
        grouping=_grouping(model),
        limit=_LIMIT,
        spectra=spectra,
    )
    done = judge.check(done, slices)
    done = _like_data(model, values, done, unobserved)
    solved = fit_cascade(
        done.values,
        nodes,
        trained.levels,
        joint_ridge=ridge,
        mean=trained.mean,
        dtype=trained.storage,
        spectra=spectra,
    )
    known = calibrate(trained, model.poles) if model.known_bars is None else model.known_bars
    bars = rescale(known, unobserved)
    return with_slices(model, Growing(solved, growing.axis), axis, bars=bars, done=done)


def reanalyse(model: Model, seen: Observations, bars: NoisyBars, axis: Axis, judge: Judge) -> Model:
    """Return the model of other observations, with the same settings, as a fit makes it."""
    growing, trained = model.growing, model.cascade
    nodes = list(trained.coordinates)
    nodes[growing.axis] = axis.numbers
    kernels, ridge = [level.kernel for level in trained.levels], trained.joint_ridge or 0.0
    done = analyse(
        make_field(nodes, kernels, bars.grouping),
        seen.values,
        ridge,
        seen.errors**2 / bars.scale,
        trained.mean,
        tolerance=_EXACT,
        limit=_LIMIT,
    )
    done = judge.check(done, seen.values)
    if fits_single(seen.values):
        every = np.ones(seen.values.shape, bool)
        done = dataclasses.replace(done, values=round_to_single(done.values, every))
    solved = fit_cascade(
        done.values,
        nodes,
        trained.levels,
        joint_ridge=ridge,
        mean=trained.mean,
        dtype=trained.storage,
    )
    known = dataclasses.replace(bars, observations=seen, factors=bars.known_factors)
    after = with_slices(model, Growing(solved, growing.axis), axis, bars=known, done=done)
    facts = {**model.origin.get(OBS_ERRORS, {}), **describe_errors(seen.errors, seen.observed)}
    return with_facts(after, {OBS_ERRORS: facts, "notes": solve_notes(done)})


def keep_observations(before: NoisyBars, bars: NoisyBars) -> NoisyBars:
    """Return new error bars of the same observations, and of their group, if they have one."""
    kept = dataclasses.replace(bars, observations=before.observations)
    if not before.grouping.axes:
        return kept
    return dataclasses.replace(kept, grouping=before.grouping, factors=before.known_factors)


def keep_group(before: GapBars, bars: GapBars) -> GapBars:
    """Return new error bars of a model whose holes are still filled with its group, if it has one.

    Other settings are chosen with a product of kernels, which says nothing of the group.
    """
    if not before.grouping.axes:
        return bars
    factors = before.hole_factors or bars.factors
    return dataclasses.replace(bars, grouping=before.grouping, factors=factors)


def _grouping(model: Model) -> Grouping:
    """Return which axes of a model share one distance."""
    return model.known_bars.grouping if isinstance(model.known_bars, GapBars) else NO_GROUPS


def _like_data(model: Model, values: Array, done: Completed, filled: Mask) -> Completed:
    """Return filled cells as numbers that float32 holds, if it holds those of model and slices."""
    if not (fits_single(model.cascade.core) and fits_single(values)):
        return done
    return dataclasses.replace(done, values=round_to_single(done.values, filled))
