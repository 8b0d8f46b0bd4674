"""Hide observed cells of a grid in the way its missing cells lie.

The error on hidden cells tells the error in the gaps only if hidden cells lie as the gaps do: a
single cell among observed ones is easy to predict, the middle of a cloud is not. So the gaps
themselves are shifted and mirrored to other places on the grid, and observed cells under them are
hidden. What is left of a difference is weighed: cells count by their distance to data, such that
every distance has the share that it has among the cells to be filled.

A large grid is seen through a few windows of neighbouring cells, which keep distances and gaps as
they are, and, if some of its holes are too wide for a window, as a whole with fewer cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from dkrls_cli.arrays import Array, Indices, Mask, Slices
from dkrls_cli.cascade.factors import choice
from dkrls_cli.gaps.pattern import SCATTERED, distance_to_data, pattern

WHOLE, WINDOW, WINDOWS = 20_000, 6_667, 3
"""Cells up to which a grid is seen whole; beyond, cells of a window and number of windows."""

_MAP, WIDE_ROOM = 2, 3
"""Dimensions of a map, and how many times larger its views are.

A map has wide holes more often, and solves on it are fast.
"""

_REPEATS = 4
"""Times at most that a small grid is seen, with other cells hidden: few cells tell little."""

_SIDE, _MOST_WINDOWS = 512, 12
"""Coordinates of a long axis in a window, and most windows: small ones are more in number.

A spectrum of 512 coordinates takes a tenth of a second.
"""

POWERS = 32
"""Powers of two of distances in cells: more than there can be."""

_THINNED = 13_334
"""Cells of a view of the whole grid."""

_FAR_STRIDES = 4
"""Distance to data, in strides of a view with fewer cells, from which its density is enough."""

_ROOM = 5
"""A window is wide enough for holes whose middle is a share of this of its side from data."""

_HELD_OUT, _MOST_HELD_OUT = 0.15, 0.4
"""Share of the observed cells to hide: enough to compare settings by, few enough to fit without.

Holes are hidden whole, so it may be more.
"""

_ALONE, _ALONE_CELLS = 0.03, 200
"""Share of the observed cells to hide where they are left out alone, and the fewest: bars need so
many, and neighbours of a hidden cell should be seen.
"""

_SHRINK = 0.9
"""Factor on the sides of a box of hidden cells that holds too many."""

_SHIFTS = 20
"""Most shifts of the gaps; each hides what is observed under it, until enough is hidden."""


@dataclass(frozen=True, eq=False)
class HiddenWindow:
    """A part of the grid, some of its observed cells hidden.

    Attributes
    ----------
    coordinates
        One vector per axis.
    values
        The data of the part, hidden cells included, NaN where it is missing.
    hidden
        True in observed cells that are hidden.
    answers
        The part completed without the hidden cells.
    strides
        Cells of the grid from one cell of the part to the next, along each axis; one by default.
    weights
        Weight of every hidden cell in a mean over all windows, in their order in the part.
    errors
        Standard error of every observation; None: they have none.
    added, added_variance
        Noise that observations are seen with besides, and its variance.
    poorness
        How many times farther a cell seems to be from data, as that is poor; None: not at all.
    is_alone
        Whether each hidden cell is answered for with all other hidden cells seen.
    """

    coordinates: tuple[Array, ...]
    values: Array
    hidden: Mask
    answers: Array
    strides: tuple[int, ...] | None = None
    weights: Array | None = None
    errors: Array | None = None
    added: Array | float = 0.0
    added_variance: Array | float = 0.0
    poorness: Array | None = None
    is_alone: bool = False

    @property
    def seen(self) -> Array:
        """The data with hidden cells missing (NaN)."""
        return np.where(self.hidden, np.nan, self.values + self.added)

    @property
    def seen_noise(self) -> Array | None:
        """Variance of the error with which every observation is seen, if known."""
        return None if self.errors is None else np.asarray(self.errors**2 + self.added_variance)

    @property
    def residuals(self) -> Array:
        """Answers minus data in the hidden cells."""
        return np.asarray(self.answers[self.hidden] - self.values[self.hidden])

    @property
    def shares(self) -> Array:
        """Weights of the hidden cells; without any they count alike."""
        count = int(np.count_nonzero(self.hidden))
        return np.full(count, 1.0 / max(1, count)) if self.weights is None else self.weights

    @property
    def noise(self) -> Array | None:
        """Squared standard error of every hidden cell, in their order in the part, if known."""
        return None if self.errors is None else np.asarray(self.errors[self.hidden] ** 2)

    @property
    def is_dense(self) -> bool:
        """Whether the part has all cells of the grid there."""
        return max(self.strides or (1,)) == 1

    @cached_property
    def distances(self) -> Array:
        """Distance of every hidden cell to data that is not hidden, in cells of the grid."""
        return distance_to_data(np.isfinite(self.seen), self.strides)[self.hidden]

    @cached_property
    def powers(self) -> Indices:
        """Power of two of every distance, farther where data is poor."""
        farther = 1.0 if self.poorness is None else self.poorness[self.hidden]
        return np.minimum(distance_powers(self.distances * farther), POWERS - 1)

    def with_answers(self, answers: Array) -> HiddenWindow:
        """Return the window with other answers; its distances are not computed again."""
        result = replace(self, answers=answers)
        vars(result).update(distances=self.distances, powers=self.powers)
        return result

    def squares(self, residuals: Array) -> Array:
        """Return the sum of weighted squares of residuals for each power of two of distance."""
        squares = np.bincount(self.powers, self.shares * residuals**2, minlength=POWERS)
        return squares.astype(np.float64, copy=False)


def hide_cells(
    values: Array,
    coordinates: Sequence[Array],
    rng: np.random.Generator,
    targets: Mask | None = None,
    *,
    whole: bool = False,
    errors: Array | None = None,
    room: int = 1,
    again: int = 1,
    alone: bool = False,
) -> list[HiddenWindow]:
    """Return the grid, or views of a large one, with some observed cells hidden.

    Parameters
    ----------
    values
        The data, NaN where it is missing.
    coordinates
        One vector per axis.
    rng
        Random numbers that decide which cells are hidden.
    targets
        The missing cells that are to be filled; all of them by default.
    whole
        Whether to return the grid as it is, however large.
    errors
        Standard error of every observation; None: they have none. With errors, observed cells are
        answered for as well, so single cells are hidden too, and count for half. There may then
        be no cell to be filled.
    room
        How many times larger than usual the views are.
    again
        How many times every view is returned, each with other cells hidden.
    alone
        Whether cells are to be left out alone: a few single ones are hidden.
    """
    observed = np.isfinite(values)
    if targets is None or not (targets.any() or errors is not None):
        targets = ~observed
    shape = pattern(observed).shape
    far = distance_to_data(observed)[targets]
    if errors is not None:  # the distance of a single cell that is hidden
        count = int(np.count_nonzero(observed))
        far = np.concatenate([far, np.ones(min(far.size, count) or count)])
    found = []
    parts = [_whole(observed.shape)]
    if not whole:
        parts = _views(observed, float(far.max(initial=0.0)), room)
        parts *= again
    for part in parts:
        piece = np.array(values[part], np.float64)
        if alone:
            hidden = _hide_single(np.isfinite(piece), rng)
        else:
            hide = _hide if errors is None else _hide_besides
            hidden = hide(np.isfinite(piece), targets[part], shape, rng)
        axes = tuple(_cut(c, s) for c, s in zip(coordinates, part, strict=True))
        strides = tuple(s.step or 1 for s in part)
        own = None if errors is None else errors[part]
        window = HiddenWindow(axes, piece, hidden, piece, strides, errors=own, is_alone=alone)
        found.append(window)
    return weigh_windows(found, far)


def view_room(dimensions: int) -> int:
    """Return how many times larger than usual views of a grid with so many dimensions are."""
    return WIDE_ROOM if dimensions <= _MAP else 1


def count_repeats(cells: int) -> int:
    """Return how many times to hide cells of a grid: more than once if it is small."""
    return max(1, min(_REPEATS, WHOLE // cells))


def weigh_windows(windows: Sequence[HiddenWindow], far: Array) -> list[HiddenWindow]:
    """Return windows whose hidden cells have the distances to data of the cells to be filled.

    Distances are told apart by their power of two. Hidden cells of each power together weigh as
    much as the cells to be filled that are as far from data, or if none of it is hidden, the next
    power below counts for them. Farther cells than any to be filled have no weight, nor have cells
    of a view with fewer cells that are near data: there it has less data than the grid. If there
    are no cells to be filled, all hidden cells weigh the same.
    """
    powers = [distance_powers(window.distances) for window in windows]
    wanted = np.bincount(distance_powers(far), minlength=1) / max(1, far.size)
    counted = [_tells(w, p, windows) for w, p in zip(windows, powers, strict=True)]
    known = np.concatenate([p[c] for p, c in zip(powers, counted, strict=True)])
    counts = np.bincount(known, minlength=wanted.size)[: wanted.size]
    if not (far.size and counts.any()):
        each = np.full(POWERS, 1.0 / max(1, sum(p.size for p in powers)))
        return [replace(w, weights=each[p]) for w, p in zip(windows, powers, strict=True)]
    present = np.flatnonzero(counts)
    share = np.zeros(wanted.size)
    for power, part in enumerate(wanted):  # the next below, or the first of all
        share[present[max(0, int(np.searchsorted(present, power, "right")) - 1)]] += part
    each = np.zeros(max(int(p.max(initial=0)) for p in powers) + 1)
    each[present] = share[present] / counts[present]
    return [
        replace(w, weights=each[p] * c) for w, p, c in zip(windows, powers, counted, strict=True)
    ]


def _tells(window: HiddenWindow, powers: Indices, windows: Sequence[HiddenWindow]) -> Mask:
    """Return which hidden cells of a window have errors as the grid has them."""
    if window.is_dense or not any(other.is_dense for other in windows):
        return np.ones(powers.size, bool)
    return np.asarray(window.distances >= _FAR_STRIDES * max(window.strides or (1,)))


def distance_powers(distances: Array) -> Indices:
    """Return the power of two of distances in cells: 0 for neighbours of data, 1 from 2 on."""
    return np.floor(np.log2(np.maximum(distances, 1.0))).astype(np.intp)


def _whole(shape: Sequence[int]) -> Slices:
    return tuple(slice(0, size) for size in shape)


def _cut(coordinates: Array, part: slice) -> Array:
    """Return a part of an axis; of a long one counted from its first coordinate.

    Kernels know differences only, so windows of equal steps have the same spectra.
    """
    cut = np.asarray(coordinates[part])
    return cut - cut[0] if coordinates.size > choice.LONG else cut


def _views(observed: Mask, farthest: float, room: int) -> list[Slices]:
    """Return windows of a grid, and one view of the whole if a hole is too wide for windows.

    The windows are then smaller: they tell of cells near data only. A view that would have too few
    cells to tell of the widest hole is not worth its time: it takes most of that of a search.
    """
    windows = _windows(observed, room * WINDOW, room * WHOLE)
    sides = [part.stop - part.start for part in windows[0]]
    wide = [side for side, size in zip(sides, observed.shape, strict=True) if side < size]
    if not wide or farthest <= min(wide) / _ROOM or max(observed.shape) > choice.LONG:
        return windows
    stride = math.ceil((observed.size / (room * _THINNED)) ** (1 / len(wide)))
    if farthest < _FAR_STRIDES * stride:
        return windows
    thinned = tuple(
        slice(0, size, stride if side < size else 1)
        for side, size in zip(sides, observed.shape, strict=True)
    )
    return [thinned, *_windows(observed, room * WINDOW // 2, room * WHOLE)]


def _windows(observed: Mask, cells: int, whole: int) -> list[Slices]:
    """Return the whole of a grid of at most so many cells, or windows where most is observed.

    Windows lie at the ends and in the middle of each axis, and more of them along a long axis.
    Those with at least half as many observed cells as the fullest are good, and three of them are
    taken, spread evenly, or more if they are small.
    """
    long = [size > choice.LONG for size in observed.shape]
    if observed.size <= whole and not any(long):
        return [_whole(observed.shape)]
    sides = [
        min(side, _SIDE) if is_long else side
        for side, is_long in zip(window_sides(observed.shape, cells), long, strict=True)
    ]
    wanted = min(_MOST_WINDOWS, max(WINDOWS, WINDOWS * cells // math.prod(sides)))
    choices = [
        np.unique(np.linspace(0, size - side, wanted if is_long else 3).astype(int)).tolist()
        for size, side, is_long in zip(observed.shape, sides, long, strict=True)
    ]
    parts = [
        tuple(slice(start, start + side) for start, side in zip(corner, sides, strict=True))
        for corner in product(*choices)
    ]
    counts = [np.count_nonzero(observed[part]) for part in parts]
    good = [part for part, count in zip(parts, counts, strict=True) if 2 * count >= max(counts)]
    taken = np.unique(np.linspace(0, len(good) - 1, wanted).round().astype(int))
    return [good[place] for place in taken]


def window_sides(shape: Sequence[int], cells: int) -> list[int]:
    """Return the sides of a window of about so many cells, as equal as the grid allows."""
    sides = [0] * len(shape)
    left = float(cells)
    for done, axis in enumerate(np.argsort(shape)):
        sides[axis] = min(shape[axis], max(2, int(left ** (1 / (len(shape) - done)))))
        left /= sides[axis]
    return sides


def _hide(observed: Mask, gaps: Mask, shape: Sequence[int], rng: np.random.Generator) -> Mask:
    """Return observed cells to hide: those under shifted gaps.

    With too few gaps to shift, hide boxes of the shape of a gap. If neither hides a cell, or all
    are hidden, hide single cells.
    """
    enough = np.count_nonzero(gaps) > SCATTERED * np.count_nonzero(observed)
    hidden = _shift_gaps(observed, gaps, rng) if enough else _place_boxes(observed, shape, rng)
    some = hidden.any() and np.count_nonzero(hidden) < np.count_nonzero(observed)
    return hidden if some else _place_boxes(observed, [1] * observed.ndim, rng)


def _hide_single(observed: Mask, rng: np.random.Generator) -> Mask:
    """Return a few single observed cells to hide, most of them amid cells that are seen."""
    count = max(1, int(np.count_nonzero(observed)))
    share = max(_ALONE, min(_HELD_OUT, _ALONE_CELLS / count))
    return _place_boxes(observed, [1] * observed.ndim, rng, share)


def _hide_besides(
    observed: Mask, gaps: Mask, shape: Sequence[int], rng: np.random.Generator
) -> Mask:
    """Return observed cells to hide: those under shifted gaps, if there are any, and single cells.

    At least one cell stays.
    """
    none = np.zeros(observed.shape, bool)
    hidden = _hide(observed, gaps, shape, rng) if gaps.any() else none
    return hidden | _place_boxes(observed & ~hidden, [1] * observed.ndim, rng)


def _shift_gaps(observed: Mask, gaps: Mask, rng: np.random.Generator) -> Mask:
    """Return observed cells under gaps that are shifted and mirrored, until enough are hidden.

    Gaps that would hide far too much are cut to a box.
    """
    count = int(np.count_nonzero(observed))
    axes = tuple(range(observed.ndim))
    hidden = np.zeros(observed.shape, bool)
    for _ in range(_SHIFTS):
        mirrored = np.flip(gaps, tuple(axis for axis in axes if rng.random() < 0.5))
        shifted = np.roll(mirrored, [int(rng.integers(size)) for size in gaps.shape], axes)
        under = observed & shifted & ~hidden
        left = max(1.0, _MOST_HELD_OUT * count - np.count_nonzero(hidden))
        if np.count_nonzero(under) > left:
            under = cut_cells(under, left, rng)
        hidden |= under
        if np.count_nonzero(hidden) >= _HELD_OUT * count:
            break
    return hidden


def cut_cells(under: Mask, most: float, rng: np.random.Generator) -> Mask:
    """Return the cells in a box around one of them, made smaller until it holds at most so many."""
    places = np.argwhere(under)
    centre = places[rng.integers(len(places))]
    share = (most / len(places)) ** (1 / under.ndim)
    kept = under
    while np.count_nonzero(kept) > most:
        box = _box(centre, [max(1, round(share * size)) for size in under.shape])
        kept = np.zeros(under.shape, bool)
        kept[box] = under[box]
        share *= _SHRINK
    return kept


def _place_boxes(
    observed: Mask, shape: Sequence[int], rng: np.random.Generator, share: float = _HELD_OUT
) -> Mask:
    """Return observed cells in boxes of a shape around cells drawn at random.

    A side is at most a third of its axis, or else as long as the axis. Return no cell at all if
    every observed cell would be hidden.
    """
    hidden = np.zeros(observed.shape, bool)
    places = np.argwhere(observed)
    wanted = max(1, int(share * len(places)))
    sides = [
        size if side >= size else min(side, max(1, size // 3))
        for side, size in zip(shape, observed.shape, strict=True)
    ]
    drawn = places[rng.permutation(len(places))]
    if max(sides) == 1:
        hidden[tuple(drawn[:wanted].T)] = True
    else:
        for centre in drawn:
            hidden[_box(centre, sides)] = True
            if np.count_nonzero(hidden & observed) >= wanted:
                break
        hidden &= observed
    return hidden if np.count_nonzero(hidden) < len(places) else np.zeros(observed.shape, bool)


def _box(centre: Indices, sides: Sequence[int]) -> Slices:
    """Return the box with these sides around a cell, cut off at the edges of the grid."""
    return tuple(
        slice(max(0, int(place) - side // 2), int(place) - side // 2 + side)
        for place, side in zip(centre, sides, strict=True)
    )
