"""Forecasts beyond the last sample at a cost that does not grow with the samples.

Of all samples, a forecast needs the states at the last one only: what the data says of them (g) and
how much of their covariance it explains (P). A further sample is a block of one: with S e_1 the
covariance of the states with the value, the states led to its coordinate (P <- A P A', g <- A g)
become

    l^2 = 1 + ridge - P_11,  k = (S e_1 - P e_1) / l,  w = (y - g_1) / l,
    P <- P + k k',  g <- g + k w.

These are the recursions of :mod:`dkrls_cli.cascade.factors.quasiseparable`, w is the sample's row
of L^-1 y, and a trend F is led along beside the data. Its coefficients need the sums F'C^-1 F and
F'C^-1 y only, to which every sample adds the products of its w.

A sample is left out by a trend of its own: a column that is 1 there and 0 elsewhere, of infinite
variance. So the first samples can leave one by one, as long as they were announced beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.factors.long import trend_columns
from dkrls_cli.cascade.factors.markov import before, transition
from dkrls_cli.cascade.factors.quasiseparable import Quasiseparable
from dkrls_cli.cascade.kernels import Kernel

# Numbers that are worked on at once: 32 MB.
_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Filter:
    """What rising samples say of what follows them, for S kernels of one family and one trend.

    Attributes
    ----------
    kernel
        Family and trend of all kernels.
    sigmas, ridges
        Length scales and ridges (S,).
    leaving
        Number of first samples that can be left out, of those that the filter was built with.
    last
        Coordinate of the last sample.
    explained
        P at the last sample (S, states, states).
    states
        g of the trend, of the samples that can leave, and of the data (S, states, columns).
    products
        Sums of the products of w: of the trend and the samples that can leave, with all columns
        (S, trend and leaving, columns).
    """

    kernel: Kernel
    sigmas: Array
    ridges: Array
    leaving: int
    last: float
    explained: Array
    states: Array
    products: Array

    @classmethod
    def build(
        cls,
        kernels: Sequence[Kernel],
        ridges: Sequence[float],
        coordinates: Array,
        values: Array,
        leaving: int = 0,
    ) -> Self:
        """Return the filter of values (m, n) at rising coordinates (m,), each kernel in O(m)."""
        fixed = trend_columns(kernels[0], coordinates), np.eye(coordinates.size, leaving)
        parts = [
            _whiten(Quasiseparable.build(_plain(kernel), coordinates, ridge), fixed, values)
            for kernel, ridge in zip(kernels, ridges, strict=True)
        ]
        ridge, explained, states, products = (np.stack(each) for each in zip(*parts, strict=True))
        sigmas, last = np.array([kernel.sigma for kernel in kernels]), float(coordinates[-1])
        return cls(kernels[0], sigmas, ridge, leaving, last, explained, states, products)

    def append(self, coordinate: float, values: Array) -> Self:
        """Return the filter with one more sample (n,) behind the last."""
        explained, states = self._lead(coordinate)
        fixed = self.products.shape[1]
        row = np.concatenate([self._trend(coordinate), np.zeros(self.leaving), values])
        left = np.sqrt(np.maximum(1.0 - explained[:, 0, 0], 0.0) + self.ridges)[:, None]
        gain = (_stationary(self.kernel.family) - explained[:, :, 0]) / left
        whitened = (row - states[:, 0]) / left
        return replace(
            self,
            last=coordinate,
            explained=explained + gain[:, :, None] * gain[:, None, :],
            states=states + gain[:, :, None] * whitened[:, None, :],
            products=self.products + whitened[:, :fixed, None] * whitened[:, None, :],
        )

    def forecast(self, coordinate: float, without: int = 0) -> Array:
        """Return k' C^-1 y (S, n) at a coordinate behind the last sample.

        The first `without` samples are left out.
        """
        values, fixed = self._lead(coordinate)[1][:, 0], self.products.shape[1]
        trend = self._trend(coordinate)
        used = trend.size + without
        among = self.products[:, :used, :used] + np.diag(np.arange(used) < trend.size)
        effects = np.linalg.solve(among, self.products[:, :used, fixed:])
        left = np.concatenate([trend, np.zeros(without)]) - values[:, :used]
        return np.asarray(values[:, fixed:] + (left[:, None] @ effects)[:, 0])

    def _lead(self, coordinate: float) -> tuple[Array, Array]:
        """Return P and g at a coordinate behind the last sample."""
        moves = transition(_unit(self.kernel.family), (coordinate - self.last) / self.sigmas)
        return moves @ self.explained @ moves.swapaxes(1, 2), moves @ self.states

    def _trend(self, coordinate: float) -> Array:
        """Return the row of F at a coordinate."""
        return np.asarray(trend_columns(self.kernel, np.array([coordinate]))[0])


@cache
def _unit(family: str) -> Kernel:
    """Return the kernel of a family with a length scale of 1."""
    return Kernel(family, 1.0)


@cache
def _stationary(family: str) -> Array:
    """Return S e_1, the covariance of the states with the value."""
    return before(_unit(family), np.zeros(()))


def _plain(kernel: Kernel) -> Kernel:
    """Return the kernel without its trend."""
    return replace(kernel, constant=0.0, cycle=None)


def _whiten(
    factor: Quasiseparable, fixed: tuple[Array, Array], values: Array
) -> tuple[float, Array, Array, Array]:
    """Return the ridge of a factor, P, g and the products of all samples."""
    first, states = factor.whiten(np.column_stack(fixed))
    found = [(states, first.T @ first)]
    step = max(8, _AT_ONCE // len(values))
    for start in range(0, values.shape[1], step):
        whitened, states = factor.whiten(values[:, start : start + step])
        found.append((states, first.T @ whitened))
    g, products = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    return factor.ridge, factor.explained_at_end, g, products
