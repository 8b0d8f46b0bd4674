"""A preconditioner for missing cells of a grid with a long axis: two sweeps along it.

The system is A = (C^-1)_mm over the missing cells m, see :mod:`dkrls_cli.gaps.refine`. Its inverse
is their covariance given the observed cells. The cells are taken in blocks along the long axis, and
every block is assumed to know of all cells before it through the last ones only, as many as a block
has:

    x_i = B_i x_(i-1) + e_i,  cov(e_i) = D_i,  so  A^-1 ~ (I - B)^-1 D (I - B)^-T,

which is symmetric and positive definite however rough the assumption, and applied by one sweep
backward and one forward. B_i and D_i come from a dense window: with Q the part of its precision
matrix that belongs to these cells and the block, the cells of a block behind it eliminated,
D_i = Q_ii^-1 and B_i = -Q_ii^-1 Q_(i,i-1). Holes far longer than a window take few more iterations
than short ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose

_CELLS, _FEWEST = 256, 16
"""Missing cells of a block at most, and at most where there are very many of them in all.

Half as many take up to twenty times the iterations in holes of many columns; a window of three
blocks takes some 30 ms.
"""

_STEPS = 64
"""Samples of the long axis that a block extends over at most, and how far away it has links."""

_MEMORY = 2**28
"""Bytes that all blocks may take: 256 MB."""

_AT_ONCE = 2**22
"""Numbers of a window that are worked on at once: 32 MB."""

_SPECTRA = 128
"""Spectra of windows that are kept: some 40 MB."""

# Share that is added to the diagonal of a window's matrix: below is round-off.
_LEAST = 1e-13


@dataclass(frozen=True, eq=False)
class Sweep:
    """The approximate inverse of the system of the missing cells.

    Attributes
    ----------
    ends
        Ends of the blocks among all missing cells.
    roots
        R_i with D_i = R_i' R_i.
    links
        B_i, a column for each of the last cells before the block; none if they are far away.
    """

    ends: tuple[int, ...]
    roots: tuple[Array, ...]
    links: tuple[Array, ...]

    def solve(self, residual: Array) -> Array:
        """Return what is nearly the solution for a residual of the missing cells."""
        result = residual.copy()
        starts = [0, *self.ends[:-1]]
        blocks = list(zip(starts, self.ends, self.roots, self.links, strict=True))
        for start, end, _, link in reversed(blocks):
            result[start - link.shape[1] : start] += link.T @ result[start:end]
        for start, end, root, link in blocks:
            result[start:end] = root.T @ (root @ result[start:end])
            result[start:end] += link @ result[start - link.shape[1] : start]
        return result


def build_sweep(
    kernel: Kernel, coordinates: Array, spectra: Sequence[Spectrum], ridge: float, missing: Mask
) -> Sweep:
    """Return the preconditioner of the missing cells of a grid whose first axis is long.

    Parameters
    ----------
    kernel, coordinates
        Of the long axis; the coordinates rise, on a circle from wherever they begin.
    spectra
        The full spectra of the other axes.
    ridge
        The joint ridge.
    missing
        Which cells are missing, in the shape of the grid; at least one.
    """
    places = np.nonzero(missing)
    steps = places[0]
    most = int(np.clip(_MEMORY // (16 * steps.size), _FEWEST, _CELLS))
    ends = _cut(steps, most)
    known: dict[bytes, Spectrum] = {}
    roots, links = [], []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        near = np.searchsorted(steps, [steps[start] - _STEPS, steps[end - 1] + _STEPS + 1])
        first = max(int(near[0]), start - most)
        last = min(int(near[1]), end + most)
        begin, stop = _window(steps, first, last)
        nodes = coordinates[begin:stop]
        window = _window_spectrum(kernel, nodes, known)
        rows = (steps[first:last] - begin, *(place[first:last] for place in places[1:]))
        precision = _precision([window, *spectra], rows, ridge)
        root, link = _condition(precision, start - first, end - first)
        roots.append(root)
        links.append(link)
    return Sweep(tuple(ends), tuple(roots), tuple(links))


def _window(steps: Indices, first: int, last: int) -> tuple[int, int]:
    """Return the steps of a window around some cells: as far as no other cell is missing.

    A missing cell in the window that is none of these would count as known.
    """
    begin, stop = int(steps[first]), int(steps[last - 1]) + 1
    low = int(steps[first - 1]) + 1 if first else 0
    high = int(steps[last]) if last < steps.size else stop + _STEPS
    return min(begin, max(low, begin - _STEPS // 2)), max(stop, min(high, stop + _STEPS // 2))


def _cut(steps: Indices, most: int) -> list[int]:
    """Return the ends of blocks of cells: at most so many each, and not over too many steps."""
    ends, start = [], 0
    while start < steps.size:
        reach = int(np.searchsorted(steps, steps[start] + _STEPS))
        start = min(reach, start + most)
        ends.append(start)
    return ends


def _window_spectrum(kernel: Kernel, nodes: Array, known: dict[bytes, Spectrum]) -> Spectrum:
    """Return the spectrum of a kernel on the nodes of a window; windows of equal steps share it."""
    steps = nodes - nodes[0]
    key = np.round(steps / (kernel.sigma * 1e-9)).tobytes()
    if key not in known:
        if len(known) == _SPECTRA:
            known.clear()
        known[key] = decompose(gram(kernel, steps, steps))
    return known[key]


def _precision(spectra: Sequence[Spectrum], rows: Sequence[Indices], ridge: float) -> Array:
    """Return the block of (K + ridge)^-1 of the cells at these rows of a window."""
    first, *others = (s.vectors[row] for s, row in zip(spectra, rows, strict=True))
    ones = np.ones((len(first), 1))
    across = reduce(lambda a, b: (a[:, :, None] * b[:, None]).reshape(len(a), -1), others, ones)
    products = reduce(np.multiply.outer, [s.values for s in spectra[1:]], np.array(1.0)).ravel()
    least = ROUND_OFF * float(spectra[0].values[0] * products.max())
    result = np.zeros((len(first), len(first)))
    width = max(1, _AT_ONCE // first.size)
    for start in range(0, products.size, width):
        part = slice(start, start + width)
        values = np.multiply.outer(products[part], spectra[0].values) + ridge
        cells = across[:, part, None] * first[:, None] / np.sqrt(np.maximum(values, least))
        cells = cells.reshape(len(cells), -1)
        result += cells @ cells.T
    return result


def _condition(precision: Array, start: int, end: int) -> tuple[Array, Array]:
    """Return R and B of a block, given the precision of the one before, itself, and the one behind.

    `start` and `end` are where the block begins and ends.
    """
    scale = 1.0 / np.sqrt(precision.diagonal())
    scaled = precision * scale[:, None] * scale
    scaled[np.arange(len(scaled)), np.arange(len(scaled))] += _LEAST * len(scaled)
    turned = scaled[::-1, ::-1]  # the block behind is eliminated first
    lower = np.linalg.cholesky(turned)
    behind, here = len(scaled) - end, len(scaled) - start
    own = lower[behind:here, behind:here]
    root = np.linalg.inv(own)  # of Q_ii, in reverse order
    before = lower[here:, behind:here]
    link = -(root.T @ before.T)
    root, link = root[:, ::-1] * scale[start:end], link[::-1, ::-1]
    return root, link * scale[start:end, None] / scale[:start]
