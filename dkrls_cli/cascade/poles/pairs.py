"""Slices that are left out together with their copies, in closed form.

With A = C^-1 and B a slice j and its copy c, the residuals of both are A_BB^-1 (A Y)_B. That of the
slice itself is (A_cc (A Y)_j - A_jc (A Y)_c) / (A_jj A_cc - A_jc^2), and its variance is
A_cc / (A_jj A_cc - A_jc^2). A slice without a copy has the residual (A Y)_j / A_jj.
"""

from __future__ import annotations

import numpy as np

from dkrls_cli.arrays import Array, Indices

SINGULAR = 1e-12
"""Least share of A_jj A_cc that the determinant counts with: less is round-off."""


def leave_out_pairs(
    inverse: Array, whole: Array, nodes: Indices, copies: Indices
) -> tuple[Array, Array]:
    """Return the rows that predict slices from all others but their copies, and the variances.

    Parameters
    ----------
    inverse
        Rows of C^-1 of the slices (slices, m).
    whole
        C^-1 (m, m).
    nodes
        Places of the slices; none is a copy.
    copies
        For all m, the place of the slice that it copies, -1 where it copies none.
    """
    rows, variance = np.empty_like(inverse), np.empty(nodes.size)
    for place, node in enumerate(nodes):
        own, found = inverse[place, node], np.flatnonzero(copies == node)
        if not found.size:
            rows[place], variance[place] = -inverse[place] / own, 1.0 / own
            continue
        copy = found[0]
        other, both = whole[copy, copy], whole[node, copy]
        determinant = max(own * other - both**2, SINGULAR * own * other)
        rows[place] = (both * whole[copy] - other * inverse[place]) / determinant
        rows[place, copy], variance[place] = 0.0, other / determinant
    return rows, variance
