"""A Gaussian process on a product grid, with the Kronecker operators of GPyTorch.

GPyTorch's own GridKernel has one kernel for all dimensions, assumes even steps, and visits every
cell for every query. One kernel per dimension with Kronecker operators has none of these limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.bench.rivals.interpolators import AnswerFunction

# Cells of the thinned grid that hyperparameters are chosen on: more change the choice little.
CHOICE_CELLS = 50_000

# Gradient steps of the choice: a fixed number, so that the cost is known and runs are repeatable.
_STEPS = 150


def fit_grid_process(coordinates: Sequence[Array], values: Array) -> AnswerFunction:
    """Fit a process with a Gaussian kernel, a width per dimension, and noise.

    The hyperparameters maximise the likelihood of a thinned grid.
    """
    import torch

    scales = [(c.mean(), c.std() or 1.0) for c in coordinates]
    mean, deviation = values.mean(), values.std() or 1.0

    def standardise(axes: Sequence[Array]) -> list[Any]:
        moved = [(c - centre) / width for c, (centre, width) in zip(axes, scales, strict=True)]
        return [torch.from_numpy(c[:, None]) for c in moved]

    few, thinned = thin_grid(coordinates, values)
    kernels, noise = train(standardise(few), torch.from_numpy((thinned - mean) / deviation))
    nodes, known = standardise(coordinates), torch.from_numpy((values - mean) / deviation)
    with torch.no_grad():
        covariance = kronecker(kernels, nodes, nodes).add_diagonal(noise)
        weights = covariance.solve(known.reshape(-1, 1))

    def answer(queries: Sequence[Array]) -> Array:
        with torch.no_grad():
            answers = kronecker(kernels, standardise(queries), nodes) @ weights
        shape = [query.size for query in queries]
        return np.asarray(answers.reshape(shape).numpy() * deviation + mean)

    return answer


def thin_grid(coordinates: Sequence[Array], values: Array) -> tuple[list[Array], Array]:
    """Return the grid in ascending order, halved along its longest dimension until it is small.

    The result has at most `CHOICE_CELLS` cells.
    """
    axes = [np.sort(c) for c in coordinates]
    orders = [np.argsort(c) for c in coordinates]
    while np.prod([order.size for order in orders]) > CHOICE_CELLS:
        longest = int(np.argmax([order.size for order in orders]))
        axes[longest], orders[longest] = axes[longest][::2], orders[longest][::2]
    return axes, values[np.ix_(*orders)]


def train(nodes: Sequence[Any], values: Any) -> tuple[Any, Any]:
    """Return a kernel per dimension and the noise, after a fixed number of steps of Adam."""
    import torch
    from gpytorch.constraints import GreaterThan
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood

    widths = [RBFKernel() for _ in nodes]
    kernels = torch.nn.ModuleList([ScaleKernel(widths[0]), *widths[1:]]).double()
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(1e-10)).double()
    likelihood.noise = 0.1  # from a small start, any data may be taken to have no noise
    known = values.reshape(-1)
    optimizer = torch.optim.Adam([*kernels.parameters(), *likelihood.parameters()], lr=0.2)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        prior = MultivariateNormal(torch.zeros_like(known), kronecker(kernels, nodes, nodes))
        loss = -likelihood(prior).log_prob(known) / known.numel()
        loss.backward()
        optimizer.step()
    return kernels, likelihood.noise.detach()


def kronecker(kernels: Any, rows: Sequence[Any], columns: Sequence[Any]) -> Any:
    """Return the kernel matrix between two grids, as one small matrix per dimension."""
    from linear_operator.operators import KroneckerProductLinearOperator

    sides = zip(kernels, rows, columns, strict=True)
    return KroneckerProductLinearOperator(*[kernel(a, b).to_dense() for kernel, a, b in sides])
