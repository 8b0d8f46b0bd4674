"""The covariance of draws, exactly: what each of the random numbers does to all cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from unittest import mock

import numpy as np

from dkrls_cli.cascade import ensembles
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.kernels import gram


class Units:
    """Random numbers that are 0, but for one that is 1."""

    def __init__(self, place: int) -> None:
        self.place, self.used = place, 0

    def standard_normal(self, shape: Sequence[int]) -> np.ndarray:
        numbers = np.zeros(math.prod(shape))
        if 0 <= self.place - self.used < numbers.size:
            numbers[self.place - self.used] = 1.0
        self.used += numbers.size
        return numbers.reshape(shape)


def covariance_of(draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """Return the covariance of all cells of a draw, in C order."""
    units: dict[int, Units] = {}

    def member_rng(seed: int, member: int, stream: int | None = None) -> Units:
        return units.setdefault(member, Units(member))

    with mock.patch.object(ensembles, "member_rng", member_rng):
        assert not draw(-1).any()
        effects = np.stack([draw(place).ravel() for place in range(units[-1].used)])
    return effects.T @ effects


def cells_of(queries: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the cells of a product grid as points, in C order."""
    return [axis.ravel() for axis in np.meshgrid(*queries, indexing="ij")]


def level_covariance(
    model: Cascade, bars: LevelBars, points: Sequence[np.ndarray], smooth: bool = False
) -> np.ndarray:
    """Return the covariance of errors with a ridge per level, as ensembles.py writes it."""
    kernels = [level.kernel for level in model.levels]
    told = [level.ridge / k.variance for level, k in zip(model.levels, kernels, strict=True)]
    least = min(
        share for share, nodes in zip(told, model.coordinates, strict=True) if nodes.size > 1
    )
    prior, left, between = [], [], []
    noise = np.zeros(points[0].size)
    for axis, (level, query, nodes) in enumerate(
        zip(model.levels, points, model.coordinates, strict=True)
    ):
        kernel = level.kernel
        scale = bars.scales[axis] * bars.widening(axis, query, kernel.period)
        off = model.find_nodes(axis, query, smooth) < 0
        system = gram(kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
        cross, own = gram(kernel, nodes, query), gram(kernel, query, query)
        prior.append(own / kernel.variance)
        cell = min(level.ridge, least * kernel.variance)
        open_part = own - cross.T @ np.linalg.solve(system, cross)
        open_part += (level.ridge - cell) * (prior[-1] > 1 - 1e-12)
        left.append(open_part * np.outer(off * np.sqrt(scale), off * np.sqrt(scale)))
        noise += scale * cell * off
        between.append(off.astype(int))
    same = np.prod([p > 1 - 1e-12 for p in prior], axis=0)  # the same place has the same noise
    total = same * np.sqrt(np.outer(noise, noise))
    for axis, own in enumerate(left):
        total += own * np.prod([p for other, p in enumerate(prior) if other != axis], axis=0)
    width = np.sqrt(bars.factors[tuple(between)])
    return width[:, None] * total * width


def joint_covariance(
    model: Cascade, bars: JointBars, points: Sequence[np.ndarray], smooth: bool = False
) -> np.ndarray:
    """Return the posterior covariance of one Gaussian process, scaled; 0 at training cells."""
    cells, ridge = cells_of(model.coordinates), model.joint_ridge
    kernels = [level.kernel for level in model.levels]

    def prior(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> np.ndarray:
        return np.prod([gram(k, a, b) for k, a, b in zip(kernels, one, other, strict=True)], axis=0)

    own, cross = prior(points, points), prior(cells, points)
    total = own - cross.T @ np.linalg.solve(
        prior(cells, cells) + ridge * np.eye(cross.shape[0]), cross
    )
    variance = np.prod([kernel.variance for kernel in kernels])
    total += ridge * (own > variance * (1 - 1e-12))
    found = [model.find_nodes(axis, query, smooth) >= 0 for axis, query in enumerate(points)]
    off = ~np.all(found, axis=0)
    return bars.scale * total * np.outer(off, off)
