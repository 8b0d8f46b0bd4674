"""Errors of answers between coordinates, where some cells of the grid were filled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.calibration.folds import BetweenScale, Fold, find_between_scale
from dkrls_cli.cascade.calibration.hats import Hats
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.tensors import apply, lay_out


@dataclass(frozen=True, eq=False)
class BetweenErrors:
    """Errors between the coordinates of a model with a joint ridge, some cells of which are filled.

    Attributes
    ----------
    unobserved
        Which cells are filled, in the shape of the grid.
    known
        How large errors are, if that is known; None: measured when first asked for.
    """

    unobserved: Mask
    known: BetweenScale | None = None
    _measured: WeakKeyDictionary[Cascade, BetweenScale] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )

    def variance(
        self,
        cascade: Cascade,
        left: Array,
        pattern: Sequence[Indices],
        answers: Callable[[], Array],
    ) -> Array:
        """Return what the lack of slices adds to the variance of answers; 0 at cells of the grid.

        Parameters
        ----------
        cascade
            The model.
        left
            What a complete grid leaves open there, noise included.
        pattern
            For every level whether it is asked between its coordinates, 0 or 1, as arrays that
            broadcast to the shape of `left`.
        answers
            Returns the answers there: where they swing far beyond the data, so may the errors. A
            cascade without data has none.
        """
        at_cells = ~np.any(np.broadcast_arrays(*pattern), axis=0)
        if at_cells.all():
            return np.zeros(left.shape)
        scale = self.scale_in(cascade)
        result, free = scale.variance(left, pattern), scale.unbounded(left, pattern)
        has_data = cascade.core.size > 1 and not cascade.is_stand_in
        if has_data and (free > np.maximum(result, scale.climate))[~at_cells].any():
            most = scale.climate + (answers() - cascade.mean) ** 2
            result = np.maximum(result, np.minimum(free, most))
        return np.where(at_cells, 0.0, result)

    def scale_in(self, cascade: Cascade) -> BetweenScale:
        """Return how large errors are between coordinates.

        Cells count that are observed and have observed cells around them: of what was filled, the
        slices that are left out were a part. If there are few such cells all observed ones count.
        """
        if self.known is not None:
            return self.known
        if cascade not in self._measured:
            found = find_between_scale(cascade, self.count_surrounded, self.count_observed)
            self._measured[cascade] = found
        return self._measured[cascade]

    def count_observed(self, fold: Fold) -> Mask:
        """Return which cells of a fold are observed."""
        return ~self.unobserved[np.ix_(*fold.places)]

    def count_surrounded(self, fold: Fold) -> Mask:
        """Return which cells of a fold are observed, and have observed cells around them."""
        hats = [
            Hats.between(kept, query, level.kernel.period)
            for kept, query, level in zip(
                fold.cascade.coordinates, fold.queries, fold.cascade.levels, strict=True
            )
        ]
        beside = apply(self.unobserved[np.ix_(*fold.kept)].astype(np.float64), hats)
        return np.asarray(self.count_observed(fold) & (beside == 0.0))


def grid_pattern(nodes: Sequence[Indices]) -> tuple[Indices, ...]:
    """Return for every level whether places of a product grid are none of its coordinates, 0 or 1.

    `nodes` are the coordinates at these places, -1 where there is none.
    """
    return np.ix_(*[(found < 0).astype(np.intp) for found in nodes])


def point_pattern(
    cascade: Cascade, points: Sequence[Array], spread: Collection[int], smooth: bool
) -> list[Indices]:
    """Return for every level whether points lie between its coordinates, 0 or 1.

    Axes in `spread` are no part of the points. With `smooth` all points do.
    """
    found = [cascade.find_nodes(axis, query, smooth) for axis, query in enumerate(points)]
    return lay_out([(nodes < 0).astype(np.intp) for nodes in found], spread)


def grid_answers(
    cascade: Cascade, queries: Sequence[Array], smooth: bool, part: Slices
) -> Callable[[], Array]:
    """Return a function that computes the answers in one block of a product grid."""
    here = [query[p] for query, p in zip(queries, part, strict=True)]
    return lambda: cascade.predict(here, smooth=smooth)


def point_answers(
    cascade: Cascade, points: Sequence[Array], spread: Collection[int], smooth: bool
) -> Callable[[], Array]:
    """Return a function that computes the answers at points."""
    return lambda: cascade.predict_points(points, spread=spread, smooth=smooth)
