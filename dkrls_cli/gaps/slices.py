"""Fill missing cells of a few slices of a model with a ridge per level.

A ridge per level is a Gaussian process over the grid whose covariance is the Kronecker product of
the C_l = K_l + lambda_l I. The product of the ridges is far less than the noise of a cell: a level
that is told from whole slices, such as a smooth one in time, takes what single cells differ by for
signal, and multiplies it. So cells have a noise of their own. It is the one with which cells of
complete slices nearby, each left out, are predicted best; without such slices, those of the slices
that are filled. Missing cells are filled with their mean given the observed ones, and the complete
slices nearby.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.choice import LARGEST
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.circle import nearest, wrap
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.field import Field, product_field
from dkrls_cli.gaps.solve import Completed, complete_field, refine_cells

_NOISES = tuple(10.0**power for power in range(0, -13, -1))
"""Noises of a cell that are tried, as shares of its variance, the largest first."""

_FIRST_NOISE, _ROUNDS = 1e-2, 2
"""Noise with which slices are filled before any is known, and rounds in which it is chosen then.

In further rounds the filled cells, which agree with each other, would speak for ever less noise.
"""

_ROUGH_TOLERANCE, _ROUGH_LIMIT = 1e-4, 100
"""Where the solve stops while the noise is chosen."""

_TOLERANCE, _LIMIT = 1e-9, 500
"""Relative residual and number of iterations at which the solve stops, as in a fit."""

_RAISED, _RAISES = 100.0, 3
"""Factor by which the noise grows where cells cannot be solved for with it, and how often."""

_FEWEST, _MOST, _CELLS = 8, 64, 2**18
"""Complete slices that tell the noise, those that are looked at, and cells these may have."""


def fill_slices(known: Growing, coordinates: Array, slices: Array) -> Completed:
    """Fill the missing cells (NaN) of slices from each other and from complete slices.

    Parameters
    ----------
    known
        The complete slices; there may be none.
    coordinates
        Coordinates of the slices to fill, on the axis that grows.
    slices
        The slices to fill, with the axes of the data.

    Returns
    -------
    Completed
        The filled slices, and how accurately they were solved for.

    Raises
    ------
    SettingError
        If more slices than fit into a dense matrix are to be filled, or one has a longer axis.
    """
    known = replace(known, cascade=known.cascade.covariance)
    cascade, axis = known.cascade, known.axis
    _refuse_long(cascade, slices.shape)
    if not np.isnan(slices).any():
        return Completed(slices.copy(), 0, 0.0, converged=True)
    near = _nearest_slices(known, coordinates, slices.size // coordinates.size)
    nodes = np.concatenate([known.coordinates[near], coordinates])
    centred = np.concatenate([known.slices(near), slices], axis) - cascade.mean
    field = _field(known, nodes)
    if near.size >= _FEWEST:
        complete = centred.take(np.arange(near.size), axis)
        noise = best_noise(
            _field(known, nodes[: near.size]), complete, np.ones(complete.shape, bool)
        )
    else:
        noise = _noise_through_gaps(field, centred)
    done = _solve(field, centred, noise)
    filled = done.values.take(np.arange(near.size, nodes.size), axis) + cascade.mean
    return replace(done, values=np.where(np.isnan(slices), filled, slices))


def _nearest_slices(known: Growing, coordinates: Array, size: int) -> Indices:
    """Return the places of the complete slices nearest to those to fill, in order."""
    own = known.coordinates
    count = min(max(_CELLS // size, _FEWEST), _MOST, LARGEST - coordinates.size, own.size)
    period = known.cascade.levels[known.axis].kernel.period
    there = coordinates[nearest(own, coordinates, period)[0]]
    apart = np.abs(wrap(own, period) - wrap(there, period))
    if period is not None:
        apart = np.minimum(apart, period - apart)
    return np.sort(np.argsort(apart, kind="stable")[: max(count, 0)])


def _field(known: Growing, nodes: Array) -> Field:
    """Return the field of slices at some coordinates."""
    cascade, axis = known.cascade, known.axis
    level = cascade.levels[axis]
    grows = decompose(gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size))
    spectra = [grows if a == axis else _covariance(cascade, a) for a in range(cascade.ndim)]
    return product_field(
        [_with_floor(one, each.ridge) for one, each in zip(spectra, cascade.levels, strict=True)]
    )


def _noise_through_gaps(field: Field, values: Array) -> float:
    """Return the noise of cells that complete slices do not tell."""
    noise, observed = _FIRST_NOISE * field.variance, np.isfinite(values)
    for _ in range(_ROUNDS):
        rough = complete_field(
            field, values, noise, 0.0, tolerance=_ROUGH_TOLERANCE, limit=_ROUGH_LIMIT
        )
        noise = best_noise(field, rough.values, observed)
    return noise


def best_noise(field: Field, values: Array, observed: Mask) -> float:
    """Return the variance of the noise with which cells, each left out, are predicted best.

    Parameters
    ----------
    field
        Field of the cells without noise.
    values
        The cells less their mean, none missing.
    observed
        Cells that count.
    """
    rotated, squares = field.analysis(values), [basis**2 for basis in field.bases]
    best, least = _NOISES[0] * field.variance, np.inf
    for share in _NOISES:
        weights = 1.0 / (field.variances + share * field.variance)
        left_out = field.synthesis(weights * rotated) / apply(weights, squares)
        missed = float(np.mean(left_out[observed] ** 2))
        if missed >= least:
            break
        best, least = share * field.variance, missed
    return best


def _solve(field: Field, values: Array, noise: float) -> Completed:
    """Return slices without gaps; with more noise, if they cannot be solved for with so little."""
    for times in range(_RAISES):
        raised = noise * _RAISED**times
        done = complete_field(field, values, raised, 0.0, tolerance=_TOLERANCE, limit=_LIMIT)
        done = refine_cells(done, field, values, raised, 0.0, limit=_LIMIT)
        if done.converged:
            break
    return done


def _refuse_long(cascade: Cascade, shape: tuple[int, ...]) -> None:
    """Raise SettingError if an axis of the slices is too long for a dense matrix.

    Cells have a noise of their own beside the ridges of the levels, so every axis takes a spectrum.
    """
    for level, size in zip(cascade.levels, shape, strict=True):
        if size > LARGEST:
            raise SettingError(
                f"Slices with missing cells would take a matrix of {size} x {size} along "
                f"'{level.name}', which is more than {LARGEST}. Fit all slices anew under a joint "
                "ridge, or add fewer of them at a time.",
                setting="noise",
            )


def _covariance(cascade: Cascade, axis: int) -> Spectrum:
    """Return the spectrum of C_l = K_l + lambda_l I; the cascade may hold that of K_l already."""
    known, level = cascade.known_factor(axis), cascade.levels[axis]
    nodes = cascade.coordinates[axis]
    if not isinstance(known, Spectrum) or known.rank < nodes.size:  # directions are missing
        known = decompose(gram(level.kernel, nodes, nodes))
    return Spectrum(known.vectors, known.values + level.ridge)


def _with_floor(spectrum: Spectrum, ridge: float) -> Spectrum:
    """Return a spectrum of C_l with no value below its ridge, nor below round-off."""
    least = max(ridge, ROUND_OFF * float(spectrum.values[0]))
    return Spectrum(spectrum.vectors, np.maximum(spectrum.values, least))
