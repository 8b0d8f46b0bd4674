"""How surprising new slices are, given what a model predicts for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.model import Model

if TYPE_CHECKING:
    pass


# Drift: root mean square error more than this many times the standard error that was predicted.
_DRIFT = 3.0


@dataclass(frozen=True)
class Surprise:
    """How new slices differ from the model's predictions of them.

    Attributes
    ----------
    cells
        Number of cells compared.
    rmse
        Root mean square error of the predictions.
    promised
        Root mean square of the standard errors that the model gave them.
    """

    cells: int
    rmse: float
    promised: float

    @classmethod
    def measure(cls, errors: Array, variances: Array) -> Self:
        """Return the surprise of prediction errors, beside the variances that were predicted."""
        if not errors.size:
            return cls(0, math.nan, math.nan)
        rmse, promised = (float(np.sqrt(np.mean(x))) for x in (errors**2, variances))
        return cls(errors.size, rmse, promised)

    @property
    def drifts(self) -> bool:
        """Whether the errors are far larger than predicted."""
        return self.cells > 0 and self.rmse > _DRIFT * self.promised


def measure_surprise(
    model: Model, values: Array, new: Axis, noise: Array | None = None
) -> Surprise:
    """Return how far new slices are from the predictions of a model that has not learnt them.

    `noise` is the standard errors of the slices: as much more may they differ.
    """
    queries = list(model.queries(model.axes))
    queries[model.grows] = new.numbers
    errors = model.cascade.predict(queries) - values
    promised = model.variance(queries)
    if noise is not None:
        promised = promised + np.nan_to_num(noise) ** 2
    seen = np.isfinite(errors) & (promised > 0)
    return Surprise.measure(errors[seen], promised[seen])
