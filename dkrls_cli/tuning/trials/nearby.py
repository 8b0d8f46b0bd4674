"""Judge settings by the nearest observed cells of hidden ones: a hundred times faster than a solve.

A hidden cell is predicted from a few dozen observed cells around it instead of all: with K their
covariance, k that with the cell, and y the data less the mean,

    k' (K + lambda I)^-1 y.

Farther cells are screened by nearer ones, so the error is nearly that of a solve, for rough fields
and in holes of any width. Kernels need no basis here, so distances are what they are: in a plane,
on a circle, on the sphere.

What many cells know together is not seen. So the part of the covariance that is constant over the
whole grid is left out: all cells know it, but a few would take the mean of their surroundings for
it, and settings that fall back to the mean in the middle of a hole would look good. A mean along
one axis alone (a climatology), and fields so smooth that far cells count, need a solve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.gaps.field import Grouping, sphere_sigma
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning.joint import JointSetting, JointTrial
from dkrls_cli.tuning.masks import POWERS, HiddenWindow
from dkrls_cli.tuning.noisy.scores import share_powers
from dkrls_cli.tuning.trials.descent import Attempt
from dkrls_cli.tuning.trials.neighbours import Neighbourhoods, find_neighbourhoods

_CELLS, _NEIGHBOURS = 400, 40
"""Hidden cells in all windows, and neighbours of each: one setting takes 10 ms."""

_BETTER = 0.995
"""An error below this share of the best is an improvement."""


class NearbyTrials:
    """Tries settings on some hidden cells of all windows, each setting once.

    Parameters
    ----------
    windows
        Parts of the grid with hidden cells.
    mean
        Value to which answers fall back far from data.
    rng
        Random numbers that decide which of the hidden cells are predicted.
    """

    def __init__(
        self, windows: Sequence[HiddenWindow], mean: float, rng: np.random.Generator
    ) -> None:
        each = -(-_CELLS // max(1, len(windows)))
        found = [find_neighbourhoods(window, each, _NEIGHBOURS, rng) for window in windows]
        self._near = [_Predictor(near, mean) for near in found if near.truth.size]
        self._shares = share_powers([(n.powers, n.weights, None) for n in found], POWERS)
        self._known: dict[JointSetting, Attempt] = {}
        self.tried, self.better = 0, _BETTER

    @property
    def trials(self) -> list[JointTrial]:
        """The settings that were tried, in their order."""
        return [JointTrial(own.setting, own.error, "nearby") for own in self._known.values()]

    def attempt(self, setting: JointSetting, best: Attempt | None) -> Attempt:
        """Try a setting, or return what is known of it; its windows are not filled."""
        if setting not in self._known:
            self.tried += 1
            self._known[setting] = Attempt(setting, self._error(setting), 0, ())
        return self._known[setting]

    def _error(self, setting: JointSetting) -> float:
        """Return the error on hidden cells; infinite where a covariance is singular."""
        with one_blas_thread():
            try:
                missed = [predictor.residuals(setting) for predictor in self._near]
            except np.linalg.LinAlgError:
                return math.inf
        squares = np.zeros(POWERS)
        for predictor, errors in zip(self._near, missed, strict=True):
            near = predictor.near
            squares += np.bincount(near.powers, near.weights * errors**2, minlength=POWERS)
        return self._shares.score(squares) if np.isfinite(squares).all() else math.inf


class _Predictor:
    """Predicts hidden cells from their neighbours, under one setting after the other."""

    def __init__(self, near: Neighbourhoods, mean: float) -> None:
        self.near, self._values = near, near.values - mean
        self._truth = near.truth - mean
        # Cells of a matrix over the coordinates of each axis, for all pairs of neighbours.
        self._pairs = [
            places[:, :, None] * c.size + places[:, None, :]
            for places, c in zip(near.places, near.coordinates, strict=True)
        ]
        self._known: dict[int, tuple[Kernel, Array]] = {}
        self._apart: dict[int, Array] = {}  # the period of an axis is always the same
        self._on_sphere: Array | None = None

    def residuals(self, setting: JointSetting) -> Array:
        """Return predictions less the truth (h,)."""
        covariance = self._covariance(setting)
        count = self._values.shape[1]
        towards = covariance[:, count, :count].copy()
        diagonal = np.arange(count)
        covariance[:, diagonal, diagonal] += setting.ridge
        weights = np.linalg.solve(covariance[:, :count, :count], self._values[..., None])
        return np.asarray(np.matmul(towards[:, None], weights)[:, 0, 0] - self._truth)

    def _covariance(self, setting: JointSetting) -> Array:
        """Return the covariances (h, n + 1, n + 1), without the constant of the whole grid."""
        kernels, grouping = setting.kernels, setting.grouping
        grouped = {axis for group in grouping.axes for axis in group}
        single = [axis for axis in range(len(kernels)) if axis not in grouped]
        parts = [self._of_axis(axis, kernels[axis]) for axis in single]
        parts += [self._of_group(group, kernels, grouping) for group in grouping.axes]
        heads = [*single, *(group[0] for group in grouping.axes)]
        result = parts[0].copy()
        for part in parts[1:]:
            result *= part
        result -= math.prod(kernels[axis].constant for axis in heads)
        return result

    def _of_axis(self, axis: int, kernel: Kernel) -> Array:
        """Return the kernel of an axis between all pairs; the last one is kept."""
        kept = self._known.get(axis)
        if kept is None or kept[0] != kernel:
            c = self.near.coordinates[axis]
            kept = kernel, gram(kernel, c, c).ravel()[self._pairs[axis]]
            self._known[axis] = kept
        return kept[1]

    def _of_group(
        self, group: Sequence[int], kernels: Sequence[Kernel], grouping: Grouping
    ) -> Array:
        """Return the kernel of a group between all pairs."""
        own = [kernels[axis] for axis in group]
        if grouping.sphere:
            distances = self._chords(group, own) / math.radians(sphere_sigma(own))
        else:
            scaled = [
                self._squares(axis, k.period) / k.sigma**2
                for axis, k in zip(group, own, strict=True)
            ]
            distances = np.sqrt(sum(scaled))
        family, share = FAMILIES[own[0].family], grouping.share
        second = share * family(distances / grouping.factor) if share else 0.0
        result = (1.0 - share) * family(distances) + second
        result += own[0].constant
        return np.asarray(result)

    def _squares(self, axis: int, period: float | None) -> Array:
        """Return squared distances along an axis between all pairs; they are kept."""
        if axis not in self._apart:
            c = self.near.coordinates[axis]
            apart = c[:, None] - c
            if period is not None:
                apart = (period / math.pi) * np.sin(apart * (math.pi / period))
            self._apart[axis] = (apart**2).ravel()[self._pairs[axis]]
        return self._apart[axis]

    def _chords(self, group: Sequence[int], kernels: Sequence[Kernel]) -> Array:
        """Return the chords between all pairs on the sphere, of radius 1; they are kept."""
        if self._on_sphere is None:
            self._on_sphere = self._find_chords(group, kernels)
        return self._on_sphere

    def _find_chords(self, group: Sequence[int], kernels: Sequence[Kernel]) -> Array:
        latitude, longitude = sorted(
            group, key=lambda axis: kernels[group.index(axis)].period is not None
        )
        angles = [
            np.radians(self.near.coordinates[axis])[self.near.places[axis]]
            for axis in (latitude, longitude)
        ]
        cosine = np.cos(angles[0])
        points = np.stack(
            [cosine * np.cos(angles[1]), cosine * np.sin(angles[1]), np.sin(angles[0])], axis=-1
        )
        products = np.matmul(points, points.transpose(0, 2, 1))
        return np.asarray(np.sqrt(np.maximum(2.0 - 2.0 * products, 0.0)))
