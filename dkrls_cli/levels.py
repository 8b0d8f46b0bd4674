"""Levels: one dimension's place in the hierarchy, with its kernel and ridge."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dkrls_cli.errors import SettingError
from dkrls_cli.kernels import Kernel


@dataclass(frozen=True)
class Level:
    """One dimension of the grid as the model sees it.

    Level 0 of a hierarchy is the paper's Initial Modeling, the others its Hierarchic Weight
    Modeling. The ridge is added to the diagonal of the level's Gram matrix; with a joint ridge
    it stays 0.

    Examples
    --------
    >>> Level("time", Kernel("matern32", sigma=5.0), ridge=1e-6).kernel.sigma
    5.0
    """

    name: str
    kernel: Kernel = field(default_factory=Kernel)
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.ridge) and self.ridge >= 0):
            raise SettingError(
                f"Invalid ridge {self.ridge} of level '{self.name}'. "
                "It must be a finite number, 0 or above."
            )
