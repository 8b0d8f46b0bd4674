"""The field of today: what people model grids with instead, set as one who knows it would.

Those that know of grids take coordinates per dimension and values on their product. The others
learn single samples, and most of them cost the cube of their number. All answer outside of what
they learnt with finite values: interpolators draw their pieces on, kernel models go back to the
mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.bench.rivals import RIVALS, Answer

_PACKAGES = {"sklearn": "scikit-learn"}
"""What is installed under another name than it is imported by."""

_NEIGHBOURS, _ENOUGH = 50, 1000
"""Samples that a radial basis function sees, where there are more than enough for one solve."""

_CHOSEN_BY, _CELLS = 500, 50_000
"""Samples and cells of a grid that settings are chosen by: most of a choice is won with few."""

_STEPS = 150
"""Gradient steps of the grid process."""

_BLOCK = 1000
"""Queries answered at once: memory is that many rows of a kernel matrix."""


@dataclass(frozen=True)
class Contender:
    """A method that people use today.

    Attributes
    ----------
    name, summary
        What it is called here, and what it is in a few words.
    library
        The import it needs.
    scattered
        Whether it learns single samples, at a cost that grows steeply with their number.
    fit
        From the coordinates of every dimension and values on their product to a function that
        answers on the product of others. If scattered: from a vector of n coordinates per
        dimension and n values to a function that answers q values for vectors of q coordinates.
    """

    name: str
    summary: str
    library: str
    scattered: bool
    fit: Callable[[Sequence[Array], Array], Answer]

    def missing(self) -> str:
        """Why it cannot run here; nothing if it can."""
        if find_spec(self.library):
            return ""
        package = _PACKAGES.get(self.library, self.library)
        return f"{package} is not installed: pip install 'dkrls-cli[bench]'"


def interpolator(coordinates: Sequence[Array], values: Array, rival: str) -> Answer:
    """An interpolator of the races on grids, which wants its coordinates to rise."""
    orders = [np.argsort(c) for c in coordinates]
    rising = [c[order] for c, order in zip(coordinates, orders, strict=True)]
    return RIVALS[rival].fit(rising, np.asarray(values, np.float64)[np.ix_(*orders)])


def rbf(coordinates: Sequence[Array], values: Array) -> Answer:
    """Thin-plate splines through all samples, or through the nearest of many.

    A step of the grid is as long along all dimensions: else the nearest may all lie in a plane.
    """
    from scipy.interpolate import RBFInterpolator

    steps = [np.ptp(c) / max(np.unique(c).size - 1, 1) or 1.0 for c in coordinates]
    fitted = RBFInterpolator(
        np.column_stack(coordinates) / steps,
        values,
        neighbors=_NEIGHBOURS if values.size > _ENOUGH else None,
    )
    return lambda queries: np.asarray(fitted(np.column_stack(queries) / steps))


def kernel_ridge(coordinates: Sequence[Array], values: Array) -> Answer:
    """A Gaussian kernel, its width and ridge by cross-validation of some samples."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    samples, some = np.column_stack(coordinates), _some(values.size, 2 * _CHOSEN_BY)
    ridge = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    search = GridSearchCV(
        TransformedTargetRegressor(ridge, transformer=StandardScaler()),
        {
            "regressor__kernelridge__gamma": 2.0 ** np.arange(-3, 9, 2),
            "regressor__kernelridge__alpha": 10.0 ** np.arange(-9, 0, 2),
        },
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="neg_mean_squared_error",
        refit=False,
    )
    with warnings.catch_warnings(action="ignore"):  # of candidates that are near singular
        search.fit(samples[some], values[some])
    chosen = search.estimator.set_params(**search.best_params_)
    return _in_blocks(chosen.fit(samples, values))


def gaussian_process(coordinates: Sequence[Array], values: Array) -> Answer:
    """A Gaussian kernel with a width per dimension and noise, by likelihood of some samples."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    samples, some = np.column_stack(coordinates), _some(values.size, _CHOSEN_BY)
    widths = RBF(np.full(len(coordinates), 0.5), (1e-2, 1e2))
    kernel = ConstantKernel(1.0, (1e-3, 1e6)) * widths + WhiteKernel(0.1, (1e-10, 1e1))
    choosing = GaussianProcessRegressor(kernel, normalize_y=True)
    scaler = StandardScaler().fit(samples)
    with warnings.catch_warnings(action="ignore"):  # of widths at their bounds
        choosing.fit(scaler.transform(samples[some]), values[some])
    chosen = GaussianProcessRegressor(choosing.kernel_, optimizer=None, normalize_y=True)
    return _in_blocks(make_pipeline(scaler, chosen).fit(samples, values))


def _some(count: int, most: int) -> Any:
    """Places of all samples, or of as many at random as are enough."""
    return np.random.default_rng(0).permutation(count)[:most]


def _in_blocks(fitted: Any) -> Answer:
    """Answers of a model of scikit-learn, a block of queries after another."""

    def answer(queries: Sequence[Array]) -> Array:
        asked = np.column_stack(queries)
        blocks = [asked[start : start + _BLOCK] for start in range(0, len(asked), _BLOCK)]
        return np.concatenate([np.asarray(fitted.predict(block)) for block in blocks])

    return answer


def grid_process(coordinates: Sequence[Array], values: Array) -> Answer:
    """A Gaussian kernel with a width per dimension and noise, by likelihood of a thinned grid.

    GridKernel of GPyTorch has one kernel for all dimensions, counts on even steps, and meets every
    cell anew in every query: with a kernel per dimension its Kronecker operators do none of that.
    """
    import torch

    scales = [(c.mean(), c.std() or 1.0) for c in coordinates]
    mean, deviation = values.mean(), values.std() or 1.0

    def standard(axes: Sequence[Array]) -> list[Any]:
        moved = [(c - centre) / width for c, (centre, width) in zip(axes, scales, strict=True)]
        return [torch.from_numpy(c[:, None]) for c in moved]

    few, thinned = _thinned(coordinates, values)
    kernels, noise = _trained(standard(few), torch.from_numpy((thinned - mean) / deviation))
    nodes, known = standard(coordinates), torch.from_numpy((values - mean) / deviation)
    with torch.no_grad():
        covariance = _kronecker(kernels, nodes, nodes).add_diagonal(noise)
        weights = covariance.solve(known.reshape(-1, 1))

    def answer(queries: Sequence[Array]) -> Array:
        with torch.no_grad():
            answers = _kronecker(kernels, standard(queries), nodes) @ weights
        shape = [query.size for query in queries]
        return np.asarray(answers.reshape(shape).numpy() * deviation + mean)

    return answer


def _thinned(coordinates: Sequence[Array], values: Array) -> tuple[list[Array], Array]:
    """Every second coordinate of the longest dimension, until few enough cells are left."""
    axes = [np.sort(c) for c in coordinates]
    orders = [np.argsort(c) for c in coordinates]
    while np.prod([order.size for order in orders]) > _CELLS:
        longest = int(np.argmax([order.size for order in orders]))
        axes[longest], orders[longest] = axes[longest][::2], orders[longest][::2]
    return axes, values[np.ix_(*orders)]


def _trained(nodes: Sequence[Any], values: Any) -> tuple[Any, Any]:
    """A kernel per dimension and the noise, after a fixed number of steps of Adam."""
    import torch
    from gpytorch.constraints import GreaterThan
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood

    widths = [RBFKernel() for _ in nodes]
    kernels = torch.nn.ModuleList([ScaleKernel(widths[0]), *widths[1:]]).double()
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(1e-10)).double()
    likelihood.noise = 0.1  # from below, all data may look as if it had none
    known = values.reshape(-1)
    optimizer = torch.optim.Adam([*kernels.parameters(), *likelihood.parameters()], lr=0.2)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        prior = MultivariateNormal(torch.zeros_like(known), _kronecker(kernels, nodes, nodes))
        loss = -likelihood(prior).log_prob(known) / known.numel()
        loss.backward()
        optimizer.step()
    return kernels, likelihood.noise.detach()


def _kronecker(kernels: Any, rows: Sequence[Any], columns: Sequence[Any]) -> Any:
    """The kernel between two grids, one small matrix per dimension."""
    from linear_operator.operators import KroneckerProductLinearOperator

    sides = zip(kernels, rows, columns, strict=True)
    return KroneckerProductLinearOperator(*[kernel(a, b).to_dense() for kernel, a, b in sides])


def _interpolators() -> list[Contender]:
    summaries = {
        "linear": "scipy RegularGridInterpolator, linear",
        "cubic": "scipy RegularGridInterpolator, cubic",
        "spline3": "scipy cubic splines along each dimension",
        "spline5": "scipy quintic splines along each dimension",
        "xarray": "xarray interp, linear",
    }
    return [
        Contender(name, about, about.split()[0], False, partial(interpolator, rival=name))
        for name, about in summaries.items()
    ]


FIELD: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        *_interpolators(),
        Contender("rbf", "scipy RBFInterpolator, thin plates", "scipy", True, rbf),
        Contender("kernel-ridge", "scikit-learn KernelRidge", "sklearn", True, kernel_ridge),
        Contender("gp", "scikit-learn GaussianProcessRegressor", "sklearn", True, gaussian_process),
        Contender("gpytorch", "GPyTorch grid process", "gpytorch", False, grid_process),
    )
}
