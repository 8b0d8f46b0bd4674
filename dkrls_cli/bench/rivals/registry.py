"""The rivals of the paper's experiments: methods of other libraries, well set up.

Methods that know about grids take the coordinates per dimension and values on their product. The
others learn single samples, most of them at a cost that grows with the cube of their number. All
give finite answers outside the training range: interpolators extrapolate their polynomials, kernel
methods return to the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.bench.rivals.grid_process import fit_grid_process
from dkrls_cli.bench.rivals.interpolators import INTERPOLATORS, AnswerFunction
from dkrls_cli.bench.rivals.regressors import fit_gaussian_process, fit_kernel_ridge, fit_rbf

_PACKAGES = {"sklearn": "scikit-learn"}
"""Names of packages that differ from the name they are imported by."""


@dataclass(frozen=True)
class Rival:
    """A method of another library.

    Attributes
    ----------
    name, summary
        Its name in races, and a description in a few words.
    library
        The module it needs.
    scattered
        Whether it learns single samples, at a cost that grows steeply with their number.
    fit
        Maps the coordinates of every dimension and values on their product to a function that
        answers on the product of query coordinates. If scattered: maps a vector of n coordinates
        per dimension and n values to a function that answers at q points, given as a vector of q
        coordinates per dimension.
    """

    name: str
    summary: str
    library: str
    scattered: bool
    fit: Callable[[Sequence[Array], Array], AnswerFunction]

    def missing(self) -> str:
        """Return why the method cannot run here and how to install it, or an empty text."""
        if find_spec(self.library):
            return ""
        package = _PACKAGES.get(self.library, self.library)
        return f"{package} is not installed: pip install 'dkrls-cli[bench]'"


def fit_interpolator(coordinates: Sequence[Array], values: Array, name: str) -> AnswerFunction:
    """Fit an interpolator to coordinates in any order."""
    orders = [np.argsort(c) for c in coordinates]
    ascending = [c[order] for c, order in zip(coordinates, orders, strict=True)]
    return INTERPOLATORS[name].fit(ascending, np.asarray(values, np.float64)[np.ix_(*orders)])


def _interpolating_rivals() -> list[Rival]:
    """Return the interpolators as rivals."""
    summaries = {
        "linear": "scipy RegularGridInterpolator, linear",
        "cubic": "scipy RegularGridInterpolator, cubic",
        "spline3": "scipy cubic splines along each dimension",
        "spline5": "scipy quintic splines along each dimension",
        "xarray": "xarray interp, linear",
    }
    return [
        Rival(name, summary, summary.split()[0], False, partial(fit_interpolator, name=name))
        for name, summary in summaries.items()
    ]


RIVALS: dict[str, Rival] = {
    rival.name: rival
    for rival in (
        *_interpolating_rivals(),
        Rival("rbf", "scipy RBFInterpolator, thin plates", "scipy", True, fit_rbf),
        Rival("kernel-ridge", "scikit-learn KernelRidge", "sklearn", True, fit_kernel_ridge),
        Rival("gp", "scikit-learn GaussianProcessRegressor", "sklearn", True, fit_gaussian_process),
        Rival("gpytorch", "GPyTorch grid process", "gpytorch", False, fit_grid_process),
    )
}
"""Every rival by name."""
