"""KRLS-T: the kernel RLS tracker (Van Vaerenbergh, Lazaro-Gredilla and Santamaria, 2012).

A Gaussian process on a limited number of samples: its posterior mean mu and covariance Sigma at
these samples, with Q the inverse of their Gram matrix. Before each sample the posterior moves one
step back to the prior (forgetting); after it, the sample whose removal changes the mean least is
dropped.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dkrls_cli.arrays import Array
from dkrls_cli.baselines.buffers import Symmetric
from dkrls_cli.baselines.checks import check_above, check_between, check_count
from dkrls_cli.baselines.contract import Baseline, split_points
from dkrls_cli.baselines.gaussian import gaussian


class KRLST(Baseline):
    """Kernel recursive least-squares tracker.

    Parameters
    ----------
    sigma
        Length scale of the Gaussian kernel.
    budget
        Number of samples kept.
    noise
        Variance of the noise, in units of the variance of the signal.
    forgetting
        lambda, the share of the posterior that is kept at each sample; 1 forgets nothing.
    jitter
        Added to the diagonal of the Gram matrix.
    """

    paper_name = "KRLS-T"
    summary = "A forgetting Gaussian process on a limited number of samples."

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        budget: int = 100,
        noise: float = 1e-2,
        forgetting: float = 0.999,
        jitter: float = 1e-6,
    ) -> None:
        super().__init__()
        self._kernel = gaussian(check_above("sigma", sigma))
        self._budget = check_count("budget", budget)
        self._noise = check_above("noise", noise)
        self._forgetting = check_between("forgetting", forgetting, 0.0, 1.0)
        self._jitter = check_above("jitter", jitter)
        self._q, self._sigma, self._gram = Symmetric(), Symmetric(), Symmetric()
        self._surprise, self._weight = 0.0, 0.0

    def _start(self, features: int) -> None:
        self._points = np.empty((features, self._budget))
        self._mean = np.empty(self._budget)

    @property
    def size(self) -> int:
        """Number of samples kept."""
        return self._q.size

    @property
    def scale(self) -> float:
        """Estimated variance of the signal; NaN before any sample."""
        return self._surprise / self._weight if self._weight else math.nan

    def _learn(self, x: Array, y: float) -> None:
        self._forget()
        k = self._kernel(x[None], self._points[:, : self.size])[0]
        q = self._q.times(k)
        mean = self._mean[: self.size]
        guess = float(q @ mean)
        novelty = max(1.0 + self._jitter - float(k @ q), 0.0)
        h = self._sigma.times(q)
        spread = max(novelty + float(q @ h), 0.0)
        total, error = self._noise + spread, y - guess
        mean += (error / total) * h
        self._score(error**2 / total)
        if novelty >= self._jitter:
            self._admit(x, k, q, h, novelty, spread, guess + error * spread / total)
        else:  # the sample lies in the span of those kept: update them, and do not keep it
            self._sigma.add_outer(-1.0 / total, h)

    def _forget(self) -> None:
        """Move the posterior one step back to the prior."""
        share = self._forgetting
        if share < 1.0:
            self._sigma.mix(share, self._gram)
            self._mean[: self.size] *= math.sqrt(share)

    def _score(self, surprise: float) -> None:
        """Add a squared error, in units of its variance, to the estimate of the scale."""
        share = self._forgetting if self.size else 1.0
        self._surprise += share * surprise
        self._weight += share

    def _admit(
        self, x: Array, k: Array, q: Array, h: Array, novelty: float, spread: float, mean: float
    ) -> None:
        """Keep a new sample; if the budget is full, in the place of the least needed one."""
        place = self.size
        if place < self._budget:
            self._q.extend_inverse(q, novelty)
            self._sigma.append(h, spread)
            self._gram.append(k, 1.0 + self._jitter)
            p = np.append(h, spread)
        else:
            place = self._least_needed(q, novelty, mean)
            if place == self.size:
                self._sigma.add_outer(-1.0 / (self._noise + spread), h)
                return
            self._q.replace_in_inverse(place, q, novelty)
            self._sigma.put(place, h, spread)
            self._gram.put(place, k, 1.0 + self._jitter)
            p = h
            p[place] = spread
        self._sigma.add_outer(-1.0 / (self._noise + spread), p)
        self._points[:, place], self._mean[place] = x, mean

    def _least_needed(self, q: Array, novelty: float, mean: float) -> int:
        """Return the place whose removal changes the mean least; the new sample is the last."""
        kept = self._mean[: self.size]
        pull = (float(q @ kept) - mean) / novelty
        weights = np.append(self._q.times(kept) + q * pull, -pull)
        corners = np.append(self._q.diagonal() + q**2 / novelty, 1.0 / novelty)
        return int(np.argmin(np.abs(weights / corners)))

    def _answer(self, points: Array) -> Array:
        weights = self._q.times(self._mean[: self.size])
        return np.asarray(self._kernel_to(points) @ weights)

    def variance(self, X: ArrayLike) -> Array:  # noqa: N803 (a matrix)
        """Return the variance of a noisy observation at points (n, D); NaN before any sample."""
        points = np.asarray(X, np.float64)
        if self._features is None or len(points) == 0:
            return np.full(len(points), np.nan)
        q, sigma = self._q.dense(), self._sigma.dense()
        return np.concatenate(
            [self._variance(self._kernel_to(p), q, sigma) for p in split_points(points)]
        )

    def _variance(self, k: Array, q: Array, sigma: Array) -> Array:
        qk = k @ q
        explained = np.sum((qk @ sigma) * qk, axis=1) - np.sum(k * qk, axis=1)
        latent = np.maximum(1.0 + self._jitter + explained, 0.0)
        return np.asarray(self.scale * (self._noise + latent))

    def _kernel_to(self, points: Array) -> Array:
        """Return the kernel between points (n, D) and the kept samples (n, m)."""
        return self._kernel(points, self._points[:, : self.size])
