"""Fill missing cells of a few slices of a model with a ridge per level.

A ridge per level is a Gaussian process over the grid whose covariance is the Kronecker product of
the C_l = K_l + lambda_l I. Most slices of a stream are complete. Given those, the slices with gaps
are a small grid of their own: their mean is the prediction of the level that grows, and their
covariance is that of this level given the complete slices, times the C_l of all other levels.

The product of the ridges is far less than the noise of a cell. Part of what a level treats as noise
is detail along other levels, but not all of it: the least ridge, relative to the variance of its
kernel, is taken as the noise of single cells. Missing cells are filled with their mean given the
observed ones.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.choice import LARGEST
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.field import product_field
from dkrls_cli.gaps.solve import Completed, complete_field, refine_cells

_LEAST_NOISE = 1e-8
"""Smallest noise of a cell as a share of its variance: it bounds the iterations of the solve."""

_TOLERANCE, _LIMIT = 1e-9, 500
"""Relative residual and number of iterations at which the solve stops, as in a fit."""


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
    expected, covariance = _condition(known, coordinates)
    spectra = [
        _with_floor(decompose(covariance) if a == axis else _covariance(cascade, a), level.ridge)
        for a, level in enumerate(cascade.levels)
    ]
    variance = math.prod(float(spectrum.values.mean()) for spectrum in spectra)
    noise = max(_LEAST_NOISE, _noise(cascade)) * variance
    field = product_field(spectra)
    done = complete_field(field, slices - expected, noise, 0.0, tolerance=_TOLERANCE, limit=_LIMIT)
    done = refine_cells(done, field, slices - expected, noise, 0.0, limit=_LIMIT)
    filled = np.where(np.isnan(slices), expected + done.values, slices)
    return Completed(filled, done.iterations, done.residual, done.converged)


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


def _condition(known: Growing, coordinates: Array) -> tuple[Array, Array]:
    """Return mean and covariance (g, g) at new coordinates, given the complete slices."""
    cascade, axis = known.cascade, known.axis
    kernel, ridge = cascade.levels[axis].kernel, cascade.levels[axis].ridge
    prior = gram(kernel, coordinates, coordinates) + ridge * np.eye(coordinates.size)
    if known.coordinates.size == 0:
        return np.array(cascade.mean), prior
    queries = [coordinates if a == axis else None for a in range(cascade.ndim)]
    factor = cascade.factor(axis)
    if isinstance(factor, LongFactor):
        weights = factor.solve(gram(kernel, known.coordinates, coordinates))
        explained = factor.answer(coordinates, weights)
    else:
        rows = cascade.kernel_rows(axis, coordinates)
        explained = (rows / (factor.values + ridge)) @ rows.T
    return cascade.predict(queries), prior - explained


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


def _noise(cascade: Cascade) -> float:
    """Return the noise of a cell as a share of its variance."""
    return min(level.ridge / level.kernel.variance for level in cascade.levels)
