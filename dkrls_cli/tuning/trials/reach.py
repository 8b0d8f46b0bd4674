"""The least ridge of some kernels with which a whole grid with gaps can be solved for in time.

Settings are tried on windows. A window of a smooth field has few directions, which a coarse space
holds all; the whole grid may have more of them than the largest coarse space. With w the largest
variance of those that are left and p the observed share, a solve of the whole grid takes about
3 sqrt(1 + p w / ridge) steps (:mod:`dkrls_cli.gaps.coarse`). Over 27 settings on grids of
12 x 90 x 180 with clouds and land (ridges of 0.3 to 1e-11, 6 to 549 steps) it took 0.7 to 1.8 times
as many. So the least ridge is known before anything is solved for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.gaps.coarse import MOST_DIRECTIONS, PRODUCTS, STEPS
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.solve import LEAST_RIDGE, has_scattered_gaps
from dkrls_cli.tuning.joint import JointSetting

_WORK = 2e5
"""Operations of a solve per cell: some 2 s for 194,000 cells, 13 s for 1.3 million."""

_FEWEST_STEPS = 30.0
"""Steps that a solve may take on any grid: those of a rough field with noise take as many."""


class WholeGrid:
    """Tells the least ridge with which the missing cells of a grid are solved for in time.

    Parameters
    ----------
    observed
        Which cells are observed.
    targets
        The missing cells to be solved for.
    coordinates
        One vector per axis.
    """

    def __init__(self, observed: Mask, targets: Mask, coordinates: Sequence[Array]) -> None:
        self._coordinates = tuple(coordinates)
        self._share, self._cells = float(observed.mean()), observed.size
        self._values: dict[tuple[int, Kernel], Array] = {}
        is_long = any(c.size > choice.LONG for c in coordinates)
        self._is_bounded = not is_long and not has_scattered_gaps(observed, targets)

    def least_ridge(self, setting: JointSetting) -> float:
        """Return the least ridge for the kernels of a setting; 0 if any can be solved for."""
        if not self._is_bounded:
            return 0.0
        if setting.grouping.axes:
            field = make_field(self._coordinates, setting.kernels, setting.grouping)
            largest, operations = _largest(field.variances.ravel()), field.operations
            tiniest = LEAST_RIDGE
        else:
            kernels = enumerate(setting.kernels)
            spectra = [self._spectrum(axis, kernel) for axis, kernel in kernels]
            largest = reduce(_largest_products, sorted(spectra, key=len, reverse=True))
            operations = 4.0 * self._cells * sum(map(len, spectra))
            tiniest = ROUND_OFF
        if largest.size <= MOST_DIRECTIONS:
            return 0.0
        steps = max(_FEWEST_STEPS, _WORK * self._cells / (PRODUCTS * operations))
        left = self._share * float(largest[-1])
        return max(left / ((steps / STEPS) ** 2 - 1.0), tiniest * float(largest[0]))

    def _spectrum(self, axis: int, kernel: Kernel) -> Array:
        """Return the eigenvalues of a kernel along an axis, largest first."""
        known = self._values.get((axis, kernel))
        if known is None:
            c = self._coordinates[axis]
            known = np.maximum(np.linalg.eigvalsh(gram(kernel, c, c))[::-1], 0.0)
            self._values[axis, kernel] = known
        return known


def _largest(values: Array) -> Array:
    """Return the largest values, as many as a coarse space has and one more, largest first."""
    most = min(values.size, MOST_DIRECTIONS + 1)
    return np.sort(np.partition(values, values.size - most)[values.size - most :])[::-1]


def _largest_products(one: Array, other: Array) -> Array:
    """Return the largest products of two vectors, as many as a coarse space has and one more.

    Both have their largest first, so that the product of the i-th and the j-th is at best the
    (i j)-th of all.
    """
    most = MOST_DIRECTIONS + 1
    parts = [one[: most // place] * value for place, value in enumerate(other[:most], 1)]
    return np.asarray(np.sort(np.concatenate(parts))[::-1][:most])
