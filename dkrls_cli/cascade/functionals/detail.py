"""Slopes of the detail: of what the data has beside the smooth field.

Values pass through at training coordinates, where the data has more than the smooth field: the
residual that the ridge takes for noise. The derivative of the field that passes through the data is
that of the smooth field and that of its detail, which is only known at the coordinates. Between
them it is taken for a field that is as long as their steps: a Matern 5/2 kernel k_s of 0.7 median
steps, times the ridge. With K_s its Gram matrix, its slopes are (L k_s) K_s^-1 times the residual,
and what is left open of them is the ridge times L L'k_s - (L k_s) K_s^-1 (L k_s)'.

Part of the residual may be noise of single cells, of variance nu (:func:`split_residuals`), and not
detail. Its slopes are then no slopes of the field at all: with S = (L k_s) K_s^-1 they miss these
by nu S S'. Which of the two it is the data cannot tell, so of this part the larger variance counts,
question by question.

Every second coordinate held out, root mean square error of slopes in units of that of the better of
numpy.gradient and a cubic spline through the same data, the truth being a spline through all of it:
on 13 sets of series on which 0.7 was chosen from 0.7 to 4 steps (model ocean, climate model,
generated) it went from 1.31 to 0.78 in the geometric mean and from 2.7 to 1.04 at worst; on 16
others (climate of the USA, satellite, ocean profiles, generated) from 1.81 to 0.86, and from 3.2 to
0.98 at worst.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.levels import make_factor
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.functionals.functional import Derivatives, Functional
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.circle import spacing

# Length scale of the detail in median steps: see above.
_STEPS = 0.7

# Noise of the detail as a share of it: coordinates far closer than a step tell no slope.
_NOISE = 1e-3


def detail_kernel(kernel: Kernel, nodes: Array) -> Kernel:
    """Return the kernel of the detail of a level, of variance 1."""
    step = spacing(kernel.warped(nodes))
    return Kernel("matern52", _STEPS * step, kernel.period, warp=kernel.warp)


def split_residuals(
    cascade: Cascade, scales: Array, errors: Array
) -> tuple[list[float], list[float]]:
    """Return what of the ridge of every level may be noise of single cells, and what is detail.

    Such noise is in the errors of slices left out of every level, so its variance is no more than
    that of the least of them. `scales` are the s_l^2 of all levels, and `errors` the root mean
    square errors, NaN where they are not known. A level of one coordinate has none.
    """
    ridges = np.array([level.ridge for level in cascade.levels])
    known = errors[np.array(cascade.shape) > 1]
    least = np.fmin.reduce(known**2, initial=np.inf)  # NaN where a level is never asked between
    sizes = scales * ridges
    noises = ridges * np.minimum(1.0, least / np.where(sizes > 0.0, sizes, np.inf))
    return noises.tolist(), (ridges - noises).tolist()


def has_detail(level: Level, asked: Functional, smooth: bool) -> bool:
    """Return whether answers of a level have a share of its detail: derivatives, of a ridge."""
    return isinstance(asked, Derivatives) and not smooth and not level.kernel.is_spline


class Detail:
    """Derivatives of the detail of one level, from its values at the nodes.

    Parameters
    ----------
    kernel
        The kernel of the level.
    nodes
        Its coordinates.
    """

    def __init__(self, kernel: Kernel, nodes: Array) -> None:
        self.kernel, self.nodes = detail_kernel(kernel, nodes), nodes
        self.factor = make_factor(nodes, Level("detail", self.kernel, _NOISE))

    def solve(self, residual: Array) -> Array:
        """Return the weights K_s^-1 times a residual (m, n)."""
        if isinstance(self.factor, LongFactor):
            return self.factor.solve(residual)
        return np.asarray(self.factor.vectors @ self.factor.solve(_NOISE, residual))

    def rows(self, asked: Functional) -> Array:
        """Return (L k_s) K_s^-1 (q, m)."""
        cross = asked.rows(self.kernel, self.nodes)
        return np.ascontiguousarray(self.solve(np.ascontiguousarray(cross.T)).T)

    def left_open(self, asked: Functional) -> Array:
        """Return L L'k_s - (L k_s) K_s^-1 (L k_s)' of every question (q,)."""
        cross = asked.rows(self.kernel, self.nodes)
        explained = np.einsum("qm,mq->q", cross, self.solve(np.ascontiguousarray(cross.T)))
        return np.asarray(np.maximum(asked.prior(self.kernel) - explained, 0.0))

    def variance(self, asked: Functional, white: float, shared: float) -> Array:
        """Return the variance of slopes of the detail (q,).

        Of the residual, `white` is the variance that may be noise, and `shared` that of detail.
        """
        left = self.left_open(asked)
        if not white:
            return shared * left
        return shared * left + white * np.maximum(left, self._noise(asked))

    def covariance(self, asked: Functional, white: float, shared: float) -> Array:
        """Return a covariance of slopes of the detail, of the variance of :meth:`variance` (q, q).

        Of the part that may be noise it is that of both, as wide as the larger.
        """
        cross, rows = asked.rows(self.kernel, self.nodes), self.rows(asked)
        left = asked.covariance(self.kernel) - rows @ cross.T
        if not white:
            return np.asarray(shared * left)
        both = left + rows @ rows.T
        width = np.sqrt(np.maximum(self.left_open(asked), self._noise(asked)) / both.diagonal())
        return np.asarray(shared * left + white * np.outer(width, width) * both)

    def _noise(self, asked: Functional) -> Array:
        """Return S S' of every question (q,): the variance of slopes of noise of variance 1."""
        rows = self.rows(asked)
        return np.asarray(np.einsum("qm,qm->q", rows, rows))
