"""Missing cells of single slices, in a cascade with a ridge per level.

A ridge per level is a Gaussian process over the grid whose covariance is the Kronecker product of
the C_l = K_l + lambda_l I. Most slices of a stream are complete, and given those the slices with
gaps are a small grid of their own: expected is what the level that grows predicts, and what is left
has the covariance of that level given the complete slices, times the C_l of all others.

The product of the ridges is far less than the noise of a cell. What a level calls noise may be
detail along the other levels, but not all of them: the least ridge, relative to its kernel, is what
is taken as noise of single cells, and missing ones are filled with the mean given the observed.
"""

from __future__ import annotations

import math

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.gaps.solve import Completed, complete_in

_LEAST_NOISE = 1e-8
"""Share of the variance that is noise of a cell at least: it bounds the steps of the solve."""


def fill_slices(known: Growing, coordinates: Array, slices: Array) -> Completed:
    """Fill the missing cells (NaN) of slices from each other and from complete slices, if any."""
    cascade, axis = known.cascade, known.axis
    expected, covariance = _expected(known, coordinates)
    spectra = [
        _at_least(decompose(covariance if a == axis else _covariance(cascade, a)), level.ridge)
        for a, level in enumerate(cascade.levels)
    ]
    variance = math.prod(float(spectrum.values.mean()) for spectrum in spectra)
    noise = max(_LEAST_NOISE, _noise(cascade)) * variance
    done = complete_in(spectra, slices - expected, noise, 0.0, tolerance=1e-9, limit=500)
    filled = np.where(np.isnan(slices), expected + done.values, slices)
    return Completed(filled, done.iterations, done.residual, done.converged)


def _expected(known: Growing, coordinates: Array) -> tuple[Array, Array]:
    """What complete slices predict at new coordinates, and the covariance they leave (g, g)."""
    cascade, axis = known.cascade, known.axis
    kernel, ridge = cascade.levels[axis].kernel, cascade.levels[axis].ridge
    prior = gram(kernel, coordinates, coordinates) + ridge * np.eye(coordinates.size)
    if known.coordinates.size == 0:
        return np.array(cascade.mean), prior
    queries = [coordinates if a == axis else None for a in range(cascade.ndim)]
    rows = cascade.kernel_rows(axis, coordinates)
    explained = (rows / (cascade.spectra[axis].values + ridge)) @ rows.T
    return cascade.predict(queries), prior - explained


def _covariance(cascade: Cascade, axis: int) -> Array:
    """C_l of a level."""
    nodes, level = cascade.coordinates[axis], cascade.levels[axis]
    return np.asarray(gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size))


def _at_least(spectrum: Spectrum, ridge: float) -> Spectrum:
    """The spectrum, no value below the ridge that is part of it, nor below round-off."""
    least = max(ridge, ROUND_OFF * float(spectrum.values[0]))
    return Spectrum(spectrum.vectors, np.maximum(spectrum.values, least))


def _noise(cascade: Cascade) -> float:
    """Noise of a cell as a share of the variance."""
    return min(level.ridge / level.kernel.variance for level in cascade.levels)
