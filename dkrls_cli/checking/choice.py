"""Which predictor of a cell is best: covariances along the axes, chosen by a robust error.

For every axis some covariances are tried: kernels of several length scales and ridges, and the
covariance of the slices as the data shows it. They are scored by the trimmed mean of the absolute
leave-one-out residuals, which a few bad cells do not touch. The axis that explains most comes
first; the next one is chosen on the residuals that the first has left, and so on as long as they
get smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.checking.fibres import (
    LeftOut,
    Window,
    WindowModel,
    leave_out,
    residuals_in,
    windows,
)

# Length scales that are tried, in steps between coordinates: from neighbours to a whole window.
_STEPS = (1.5, 4.0, 12.0, 40.0)
# Ridges that are tried, in units of the variance of a kernel: from smooth fields to noise.
_RIDGES = (1e-6, 1e-4, 1e-2, 0.1, 1.0)
# The same for a measured covariance, whose small eigenvalues are not known well.
_MEASURED_RIDGES = (1e-3, 1e-2, 1e-1)
# Families that are tried: a smoother one needs a ridge that hides what it gains.
_FAMILIES = ("matern12", "matern32", "matern52")

# Ratio of the largest to the smallest step from which on order is tried instead of distance.
_UNEVEN = 4.0

# Variance of the mean of a fibre, in units of that of the kernel: each fibre has its own mean.
_CONSTANT = 10.0

# Fibres, and windows of a long axis, on which covariances are scored.
_FIBRES, _WINDOWS = 192, 4
# Products for each covariance that is scored, and the fewest fibres whatever they cost.
_WORK, _FEWEST_FIBRES = 2e7, 16
# Fibres per coordinate from which on a covariance is measured, and the most that are looked at.
_PER_COORDINATE, _MOST_FIBRES = 10, 20_000

# Share of the residuals, the smallest ones, whose mean is the score.
_TRIMMED = 0.8
# An axis is used if residuals with it are smaller than without it by this factor.
_GAIN = 0.9

# Robust deviations to which residuals are limited where a covariance is measured.
_CLIP = 3.0
# Standard deviation of normal numbers, in units of their median absolute deviation.
_NORMAL = 1.4826

_Maker = Callable[[Window], Array]


@dataclass(frozen=True, eq=False)
class CheckAxis:
    """An axis of a grid that is checked.

    Attributes
    ----------
    numbers
        Coordinates (m,), in any order.
    period
        Length of the circle they lie on, or None.
    ordered
        Whether neighbours are alike: text labels have no order.
    family, sigma, ridge
        Settings that were given; None where they are chosen.
    """

    numbers: Array
    period: float | None = None
    ordered: bool = True
    family: str | None = None
    sigma: float | None = None
    ridge: float | None = None

    @property
    def is_given(self) -> bool:
        """Whether a kernel was given, so that no other covariance is tried."""
        return self.family is not None or self.sigma is not None

    @property
    def is_uneven(self) -> bool:
        """Whether steps differ so much that neighbours in order may tell more than distances."""
        gaps = np.diff(np.sort(self.numbers))
        return gaps.size > 2 and bool(gaps.max() > _UNEVEN * gaps.min())

    def as_positions(self) -> CheckAxis:
        """Return the axis with the place of each coordinate in order as its number."""
        order = np.argsort(np.argsort(self.numbers)).astype(np.float64)
        period = None if self.period is None else float(order.size)
        return replace(self, numbers=order, period=period)

    @property
    def step(self) -> float:
        """Typical distance between neighbours."""
        gaps = np.diff(np.sort(self.numbers))
        return float(np.median(gaps)) if gaps.size else 1.0


@dataclass(frozen=True, eq=False)
class Step:
    """One axis of a predictor.

    Attributes
    ----------
    axis
        The axis.
    models
        Windows that cover it.
    words
        The covariance, for people.
    error, before
        Typical residual with this step, and without it.
    """

    axis: int
    models: list[WindowModel]
    words: str
    error: float
    before: float


@dataclass(frozen=True, eq=False)
class Trace:
    """Residuals of a grid after every step of a predictor."""

    values: Array
    results: tuple[LeftOut, ...]

    @property
    def residuals(self) -> tuple[Array, Array]:
        """Residual of every cell, and its standard error but for a common factor."""
        left = self.results[-1].left if self.results else self.values
        spread = np.where(np.isnan(left), np.nan, 1.0)
        for result in self.results:
            spread *= result.spread
        return left, spread

    @property
    def size(self) -> Array:
        """Size of residuals in units of their standard errors: by the first step, and by all.

        Of two bad neighbours that are off alike, each agrees with the other along the axis that
        they share, and good ones beside them do not. Along another axis only the bad ones do not.
        So it is the geometric mean of both.
        """
        left, spread = self.residuals
        first = self.results[0] if self.results else None
        before = left if first is None else first.left / first.spread
        return np.asarray(np.sqrt(np.abs(before * left / spread)))


@dataclass(frozen=True, eq=False)
class Predictor:
    """The axes along which a cell is predicted, one after the other."""

    steps: tuple[Step, ...]

    @property
    def error(self) -> float:
        """Typical residual after the last step; infinite if no axis is of any use."""
        return self.steps[-1].error if self.steps else np.inf

    def residuals(self, values: Array, used: Mask) -> tuple[Array, Array]:
        """Return what is left of every cell, and its standard error but for a common factor."""
        return self.trace(values - middle(values, used), used).residuals

    def trace(self, values: Array, used: Mask, last: Trace | None = None) -> Trace:
        """Return the residuals after every step; `last` has earlier ones of the same values."""
        left, results = values, []
        for place, step in enumerate(self.steps):
            known = None if last is None else last.results[place]
            found = leave_out(left, used, step.axis, step.models, known)
            left = found.left
            results.append(found)
        return Trace(values, tuple(results))


def middle(values: Array, used: Mask) -> float:
    """Return the median of the cells that are used; 0 if there are none."""
    some = values[used & ~np.isnan(values)]
    return float(np.median(some)) if some.size else 0.0


def choose_predictor(
    values: Array,
    used: Mask,
    axes: Sequence[CheckAxis],
    without: Sequence[int] = (),
    *,
    near: bool = False,
    telling: Mask | None = None,
) -> Predictor:
    """Choose the axes along which cells are predicted best, and their covariances.

    Parameters
    ----------
    values
        The grid, NaN where it is missing.
    used
        Which cells may be used.
    axes
        Its axes.
    without
        Axes that are not to be used.
    near
        Whether only the nearest cells shall have a say: less exact, but few cells are predicted
        wrongly because of a bad one.
    telling
        Cells whose residuals are scored; all if None.

    Returns
    -------
    Predictor
        The steps, the most useful axis first; none if no axis is of any use.
    """
    left = values - middle(values, used)
    scored = np.ones(values.shape, bool) if telling is None else telling
    open_axes = [a for a, m in enumerate(values.shape) if m > 2 and a not in without]
    steps: list[Step] = []
    while open_axes:
        tried = [_best(left, used, scored, axis, axes[axis], near) for axis in open_axes]
        best = min(tried, key=lambda step: step.error / step.before if step.before else 1.0)
        if not best.error < _GAIN * best.before:
            break
        steps.append(best)
        open_axes.remove(best.axis)
        left = leave_out(left, used, best.axis, best.models).left
    return Predictor(tuple(steps))


def _best(
    values: Array, used: Mask, telling: Mask, axis: int, about: CheckAxis, near: bool
) -> Step:
    """Return the covariance that predicts cells best along one axis."""
    fibres = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    known = np.moveaxis(used, axis, 0).reshape(fibres.shape) & ~np.isnan(fibres)
    cut = windows(len(fibres), about.period is not None)
    shown = [cut[i] for i in _spread_out(len(cut), _WINDOWS)]
    filled = np.flatnonzero(known.sum(axis=0) > 2)
    if not filled.size:
        return Step(axis, [], "nothing", 0.0, 0.0)
    some = filled[_spread_out(filled.size, _affordable(known[:, filled]))]
    parts = [(w, fibres[np.ix_(w.places, some)], known[np.ix_(w.places, some)]) for w in shown]
    counts = known & np.moveaxis(telling, axis, 0).reshape(fibres.shape)
    counted = [counts[np.ix_(w.places[w.inner], some)] for w in shown]
    inner = [part[w.inner] for w, part, _ in parts]
    before = _score(list(zip(inner, counted, strict=True)))
    scored: list[tuple[float, str, _Maker]] = []
    for words, make in _candidates(fibres, known, about, near):
        left = [residuals_in(part, here, make(w), w.inner)[0] for w, part, here in parts]
        scored.append((_score(list(zip(left, counted, strict=True))), words, make))
    if not scored:  # labels without an order, too many for a covariance
        return Step(axis, [], "nothing", before, before)
    error, words, make = min(scored, key=lambda one: one[0])
    return Step(axis, [WindowModel(w, make(w)) for w in cut], words, error, before)


def _affordable(known: Mask) -> int:
    """Return how many fibres are scored: fewer if each has many cells to be left out."""
    gone = (~known).sum(axis=0).astype(float)
    per_fibre = float(np.mean(np.minimum(gone, 256.0) ** 2)) * min(len(known), 256)
    return int(np.clip(_WORK / max(per_fibre, 1.0), _FEWEST_FIBRES, _FIBRES))


def _spread_out(size: int, most: int) -> list[int]:
    """Return at most so many positions, spread evenly over all."""
    return sorted(set(np.linspace(0, size - 1, min(size, most)).astype(int).tolist()))


def _score(parts: Sequence[tuple[Array, Mask]]) -> float:
    """Return the mean of the smallest absolute residuals: four fifths of them."""
    sizes = np.concatenate([np.abs(left[known]) for left, known in parts])
    if not sizes.size:
        return 0.0
    kept = max(1, int(_TRIMMED * sizes.size))
    return float(np.partition(sizes, kept - 1)[:kept].mean())


def _candidates(
    fibres: Array, known: Mask, about: CheckAxis, near: bool
) -> Iterator[tuple[str, _Maker]]:
    """Yield the covariances to try along an axis, in words, and what makes their inverses."""
    if about.ordered or about.is_given:
        sigmas = [about.sigma] if about.sigma else [steps * about.step for steps in _STEPS]
        families = _FAMILIES[:1] if near else [about.family] if about.family else _FAMILIES
        ridges = [about.ridge] if about.ridge is not None else _RIDGES
        for family in families:
            for sigma in sigmas:
                for ridge in ridges:
                    kernel = Kernel(family, sigma, about.period, _CONSTANT)
                    words = f"{family} sigma {sigma:.4g} ridge {ridge:.2g}"
                    yield words, partial(_kernel_inverse, kernel, ridge, about)
    if about.is_uneven and not about.is_given:
        positions = about.as_positions()
        yield from _candidates(fibres, known, positions, near)
    if not (about.ordered or about.is_given):
        alike = _inverse(np.full((len(fibres), len(fibres)), _CONSTANT), 1.0)
        if len(windows(len(fibres), False)) == 1:
            yield "the mean of the others", partial(_same, alike)
    if not (about.is_given or (near and about.ordered)):
        yield from _measured(fibres, known)


def _kernel_inverse(kernel: Kernel, ridge: float, about: CheckAxis, window: Window) -> Array:
    """Return the inverse of K + ridge in a window.

    A window of a longer ring lies on a line: its coordinates go on across the seam.
    """
    numbers = about.numbers[window.places]
    if kernel.period is not None and numbers.size != about.numbers.size:
        numbers = np.unwrap(numbers, period=kernel.period)
        kernel = Kernel(kernel.family, kernel.sigma, None, _CONSTANT)
    floor = max(ridge, _SMALLEST_RIDGE)
    return _inverse(gram(kernel, numbers, numbers), floor)


def _inverse(covariance: Array, ridge: float) -> Array:
    """Return the inverse of a covariance with a ridge on its diagonal."""
    return np.asarray(np.linalg.inv(covariance + ridge * np.eye(len(covariance))), np.float64)


def _same(inverse: Array, window: Window) -> Array:
    """Return the inverse of a covariance on an axis of one window."""
    return inverse


# Smallest ridge, in units of the variance: with less, residuals of smooth fields are round-off.
_SMALLEST_RIDGE = 1e-9


def _measured(fibres: Array, known: Mask) -> Iterator[tuple[str, _Maker]]:
    """Yield the covariance of the slices as the data shows it, if there are fibres enough."""
    size, count = fibres.shape
    if count < _PER_COORDINATE * size or len(windows(size, False)) > 1:
        return
    some = _spread_out(count, _MOST_FIBRES)
    sample = np.where(known[:, some], fibres[:, some], np.nan)
    sample = sample[:, (known[:, some]).any(axis=0)]
    bare = ~known[:, some].any(axis=1)
    sample[bare] = 0.0
    centred = sample - np.nanmedian(sample, axis=1, keepdims=True)
    deviation = _NORMAL * np.nanmedian(np.abs(centred), axis=1, keepdims=True)
    limit = _CLIP * np.where(deviation > 0, deviation, np.inf)
    centred = np.clip(np.nan_to_num(centred), -limit, limit)
    covariance = centred @ centred.T / centred.shape[1]
    scale = float(np.mean(np.diag(covariance)))
    if not scale > 0:
        return
    for ridge in _MEASURED_RIDGES:
        inverse = _inverse(covariance / scale + _CONSTANT, ridge)
        yield f"measured covariance, ridge {ridge:.2g}", partial(_same, inverse)
