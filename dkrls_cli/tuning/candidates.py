"""The settings that are tried for one level, and the one that is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from dkrls_cli.cascade.kernels import KERNELS, Kernel
from dkrls_cli.cascade.spectrum import Spectrum

RIDGES = np.concatenate([[1e-14, 3e-14, 1e-13, 3e-13], 10.0 ** np.arange(-12, 2)])
"""Ridges that are tried; closer at the small end, where clean data tells them apart."""

CONSTANT = 1.0
"""Variance of the constant in chosen kernels, in units of the variance of the family."""

SWINGS = (1.0, 10.0)
"""Variances of a cycle that are tried, in units of the variance of the family."""

END_WEIGHT = 0.1
"""Weight of the outermost slices or blocks beside 1: leaving them out tests extrapolation."""

COUNTS, MAY_BE_TAKEN = 0.01, 0.3
"""Weights, as shares of the largest, from which a candidate is averaged, and may be taken."""

Measure = Literal["slices", "joint", "cells", "nearby", "views"]
"""What settings were judged by."""

MEASURES: dict[Measure, str] = {
    "slices": "slices left out",
    "joint": "cells left out under a joint ridge",
    "cells": "hidden cells",
    "nearby": "hidden cells, from their nearest cells",
    "views": "hidden cells in larger views",
}
"""The same in words, as what an error is measured on."""

REAL_RIDGE = 1e-4
"""Ridge from which a level is taken to have noise of its own."""


@dataclass(frozen=True)
class Candidate:
    """A setting of one level, and how well it predicts left-out slices.

    Attributes
    ----------
    kernel, ridge
        The setting.
    error
        Root of its mean square error on left-out slices.
    typical
        The same with the geometric mean over the slices, in which no slice counts more than
        another; None if it is not known.
    reached
        Error at which a solve was given up, whose error is then infinite; None if it was not.
    """

    kernel: Kernel
    ridge: float
    error: float
    typical: float | None = None
    reached: float | None = None

    @property
    def score(self) -> float:
        """The error by which candidates are weighed: between that of all slices and the typical."""
        return self.error if self.typical is None else math.sqrt(self.error * self.typical)


@dataclass(frozen=True)
class LevelChoice:
    """The setting chosen for one level.

    Attributes
    ----------
    taken
        The candidate that was chosen.
    tried
        All candidates.
    spectra
        Full spectra, on all coordinates of the level, of the kernels of `taken` and of
        `under_joint_ridge`. Empty if the level was seen in segments only, or if its coordinates
        do not rise.
    measure
        What the errors of the candidates are errors of.
    """

    taken: Candidate
    tried: tuple[Candidate, ...]
    spectra: Mapping[Kernel, Spectrum] = field(default_factory=dict, compare=False, repr=False)
    measure: Measure = "slices"

    @property
    def under_joint_ridge(self) -> Candidate:
        """The candidate for a level without a ridge of its own: least error with a real ridge.

        A joint ridge must find the noise in the spectra of the kernels, and kernels chosen
        together with a tiny ridge leave no room for it.
        """
        real = [candidate for candidate in self.tried if candidate.ridge >= REAL_RIDGE]
        return min(real or self.tried, key=lambda candidate: candidate.error)

    @property
    def warnings(self) -> list[str]:
        """Sentences about settings at the end of their range, where better ones may lie beyond."""
        own = self.taken.kernel
        if own.is_spline:
            return []
        alike = [each.kernel for each in self.tried if each.kernel.warp == own.warp]
        sigmas = [kernel.sigma for kernel in alike if not kernel.is_spline]
        found = []
        if len(set(sigmas)) > 1 and self.taken.kernel.sigma == min(sigmas):
            found.append(f"sigma {self.taken.kernel.sigma:.3g} is the shortest tried")
        if self.taken.ridge == RIDGES[-1]:
            found.append(f"ridge {self.taken.ridge:g} is the largest tried")
        return found

    @property
    def curve(self) -> list[Candidate]:
        """The best candidate of each kernel, ordered by cycle, family and sigma."""
        best: dict[Kernel, Candidate] = {}
        for candidate in self.tried:
            known = best.get(candidate.kernel)
            if known is None or candidate.error < known.error:
                best[candidate.kernel] = candidate
        order = list(KERNELS)
        return sorted(
            best.values(),
            key=lambda c: (
                c.kernel.cycle or 0.0,
                order.index(c.kernel.name.partition("/")[0]),
                c.kernel.sigma,
            ),
        )

    def warped(self, warp: str | None) -> LevelChoice:
        """Return a choice on warped coordinates as one on the coordinates themselves."""
        if warp is None:
            return self
        taken, *tried = (
            replace(each, kernel=replace(each.kernel, warp=warp))
            for each in (self.taken, *self.tried)
        )
        return LevelChoice(taken, tuple(tried))
