"""KKF: a kriged Kalman filter (Mardia, Goodall, Redfern and Alonso, 1998).

The field is a sum of spatial functions whose weights follow linear dynamics in time:

    y = h(s)' a(t) + noise,    a(t + dt) = rho a(t) + w,    rho = exp(-dt / memory).

Assumptions of this version:

- h(s) = L^-1 k(knots, s), with L L' the Gram matrix of the knots: simple kriging from the knots,
  written for weights that are independent with prior variance 1. The variance that the knots do
  not explain, 1 - h'h, counts as noise.
- A site becomes a knot when it is first met, if its kriging variance is above a tolerance. Earlier
  states hold the prior for the weight of a knot that was added later.
- All weights have the same memory, and w has the variance 1 - rho^2, which keeps the variance of
  the weights at 1: the first-order autoregression of the original, stationary, at any time step.
- Samples come in order of time. Answers at past times are smoothed (Rauch, Tung and Striebel,
  1965): they use all samples so far, also those after the time asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
from scipy.linalg import solve

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Centres, Symmetric
from dkrls_cli.baselines.checks import check_above, check_between, check_count
from dkrls_cli.baselines.contract import Baseline
from dkrls_cli.baselines.gaussian import gaussian
from dkrls_cli.errors import InputError


class KKF(Baseline):
    """Kriged Kalman filter.

    Parameters
    ----------
    sigma
        Length scale in space, of a Gaussian kernel.
    memory
        Time over which the correlation of a weight falls to 1/e, in units of the time feature.
    noise
        Variance of the noise, in units of the variance of the field.
    tolerance
        Kriging variance above which a site becomes a knot.
    knots
        Largest number of knots.
    time
        Index of the time feature; all others are space.
    """

    paper_name = "KKF"
    summary = "Kriging in space, linear dynamics of its weights in time."

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        memory: float = 10.0,
        noise: float = 1e-4,
        tolerance: float = 1e-4,
        knots: int = 200,
        time: int = -1,
    ) -> None:
        super().__init__()
        self._kernel = gaussian(check_above("sigma", sigma))
        self._memory = check_above("memory", memory)
        self._noise = check_above("noise", noise)
        self._tolerance = check_between("tolerance", tolerance, 1e-10, 1.0)
        self._most = check_count("knots", knots)
        self._time = time
        self._root = np.zeros((0, 0))  # L^-1
        self._mean, self._covariance = np.zeros(0), Symmetric()
        self._times: list[float] = []  # distinct times of samples, the present one last
        self._past: list[tuple[Array, Array]] = []  # filtered, at all times but the last
        self._smoothed: list[Array] | None = None

    def _start(self, features: int) -> None:
        if features < 2 or not -features <= self._time < features:
            raise InputError(
                f"Invalid time feature {self._time}: samples have {features} features. "
                "One of them must be time, and at least one other space."
            )
        self._space = np.arange(features) != self._time % features
        self._knots = Centres(features - 1)

    @property
    def size(self) -> int:
        """Number of knots."""
        return self._mean.size

    def _learn(self, x: Array, y: float) -> None:
        self._smoothed = None
        self._advance(float(x[self._time]))
        h = self._basis(x[None])[0]
        unexplained = max(1.0 - float(h @ h), 0.0)
        if unexplained > self._tolerance and self.size < self._most:
            h, unexplained = self._add_knot(x, h, math.sqrt(unexplained)), 0.0
        gain = self._covariance.times(h)
        total = float(h @ gain) + self._noise + unexplained
        self._mean += gain * ((y - float(h @ self._mean)) / total)
        self._covariance.add_outer(-1.0 / total, gain)

    def _advance(self, time: float) -> None:
        """Advance the state to the time of a sample, or raise InputError if it is in the past."""
        now = self._times[-1] if self._times else -math.inf
        if time < now:
            raise InputError(
                f"Invalid sample at time {time}, after one at {now}. Sort the samples by time."
            )
        if time == now:
            return
        if self._times:
            self._past.append((self._mean.copy(), self._covariance.dense()))
            rho = self._rho(time - now)
            self._mean *= rho
            self._covariance.mix_identity(rho**2)
        self._times.append(time)

    def _rho(self, step: float) -> float:
        """Return the correlation of a weight with itself one time step later."""
        return math.exp(-step / self._memory)

    def _basis(self, points: Array) -> Array:
        """Return h(s) (n, knots) at points."""
        return np.asarray(self._kernel(points[:, self._space], self._knots.points) @ self._root.T)

    def _add_knot(self, x: Array, h: Array, left: float) -> Array:
        """Add a knot at the site of a sample, and return h(s) there with the new knot."""
        self._knots.extend(x[None, self._space], 0.0)
        root = np.zeros((self.size + 1, self.size + 1))
        root[:-1, :-1] = self._root
        root[-1] = np.append(-(h @ self._root), 1.0) / left
        self._root = root
        self._mean = np.append(self._mean, 0.0)
        self._covariance.append(corner=1.0)
        return np.append(h, left)

    def _answer(self, points: Array) -> Array:
        times, which = np.unique(points[:, self._time], return_inverse=True)
        means = np.stack([self._mean_at(float(time)) for time in times])
        return np.asarray(np.sum(self._basis(points) * means[which], axis=1))

    def _mean_at(self, time: float) -> Array:
        """Return the mean of the weights at any time, given all samples so far."""
        times = self._times
        if time >= times[-1]:
            return self._mean * self._rho(time - times[-1])
        means = self._smooth()
        place = bisect_right(times, time) - 1
        if place < 0:
            return means[0] * self._rho(times[0] - time)
        mean, covariance = self._filtered(place)
        rho = self._rho(time - times[place])
        later = self._rho(times[place + 1] - time)
        return _smooth_step(
            rho * mean, _forecast_covariance(covariance, rho), means[place + 1], later
        )

    def _smooth(self) -> list[Array]:
        """Return the smoothed means at the times of the samples."""
        if self._smoothed is None:
            means = [self._mean]
            for place in reversed(range(len(self._past))):
                rho = self._rho(self._times[place + 1] - self._times[place])
                means.append(_smooth_step(*self._filtered(place), means[-1], rho))
            self._smoothed = means[::-1]
        return self._smoothed

    def _filtered(self, place: int) -> tuple[Array, Array]:
        """Return the filtered mean and covariance at a past time, the prior for later knots."""
        mean, covariance = self._past[place]
        whole = np.eye(self.size)
        whole[: mean.size, : mean.size] = covariance
        return np.append(mean, np.zeros(self.size - mean.size)), whole


def _forecast_covariance(covariance: Array, rho: float) -> Array:
    """Return rho^2 P + (1 - rho^2) I, the covariance one time step later."""
    return np.asarray(rho**2 * covariance + (1.0 - rho**2) * np.eye(len(covariance)))


def _smooth_step(mean: Array, covariance: Array, later: Array, rho: float) -> Array:
    """Return the smoothed mean, from the filtered state and the smoothed mean one step later."""
    surprise = later - rho * mean
    ahead = solve(
        _forecast_covariance(covariance, rho), surprise, assume_a="pos", check_finite=False
    )
    return np.asarray(mean + rho * (covariance @ ahead))
