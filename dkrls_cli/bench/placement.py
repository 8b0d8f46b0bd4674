"""Where the labels of a scatter plot go, so that none covers another or a mark.

Boxes are rows (left, bottom, right, top), in any one unit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDS = 12
"""How often every label may look for a better place among the others."""

_REACHES = (1.0, 1.8, 3.0, 4.5, 6.5, 9.0, 12.0, 16.0, 21.0, 28.0, 36.0)
"""Distances of a label from its mark that are tried, in radii of a mark."""

_ANGLES = 24
_LABEL, _MARK, _OUTSIDE, _LEADER = 40.0, 8.0, 45.0, 6.0
"""Prices: of touching a label, and again of all that is covered of it; of covering a mark; of
leaving the frame, and again of all that is outside; of a line from a label to its mark that runs
under another label, a quarter of that over another mark. That of distance is 1 a radius."""


def placed(anchors: Floats, sizes: Floats, marks: Floats, radius: float, frame: Floats) -> Floats:
    """Boxes of labels.

    Parameters
    ----------
    anchors
        The mark that each label belongs to (n, 2).
    sizes
        Width and height of each label (n, 2).
    marks
        All marks, those without labels too (k, 2).
    radius
        That of a mark.
    frame
        The box that labels are to stay in.
    """
    tried = [_candidates(a, s, radius) for a, s in zip(anchors, sizes, strict=True)]
    around = np.hstack([marks - radius, marks + radius])
    boxes = np.array([candidates[0] for candidates in tried]).reshape(-1, 4)
    for _ in range(_ROUNDS):
        before = boxes.copy()
        for place, candidates in enumerate(tried):
            others = np.delete(boxes, place, axis=0)
            own = _own_price(candidates, anchors[place], around, radius, frame)
            price = own + _shared_price(
                candidates, anchors[place], others, np.delete(anchors, place, axis=0)
            )
            boxes[place] = candidates[np.argmin(price)]
        if np.array_equal(before, boxes):
            break
    return boxes


def overlaps(boxes: Floats, others: Floats) -> Floats:
    """Area that each box shares with each of the others (n, k)."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.prod(np.maximum(high - low, 0.0), axis=-1))


def nearest(boxes: Floats, anchors: Floats) -> Floats:
    """The point of each box that is nearest to an anchor: where a line to the mark begins."""
    return np.clip(anchors, boxes[:, :2], boxes[:, 2:])


def _candidates(anchor: Floats, size: Floats, radius: float) -> Floats:
    """Boxes all around a mark, the nearest first and of these the one to the right."""
    angles = np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False)
    towards = np.column_stack([np.cos(angles), np.sin(angles)])
    reaches = radius * np.array(_REACHES)[:, None, None]
    centres = (anchor + towards * (size / 2 + reaches)).reshape(-1, 2)
    return np.hstack([centres - size / 2, centres + size / 2])


def _own_price(
    boxes: Floats, anchor: Floats, marks: Floats, radius: float, frame: Floats
) -> Floats:
    """What is wrong with places whatever the other labels do."""
    area = np.prod(boxes[0, 2:] - boxes[0, :2])
    outside = 1 - overlaps(boxes, frame[None])[:, 0] / area
    covered = overlaps(boxes, marks).sum(axis=1) / (2 * radius) ** 2
    starts = nearest(boxes, anchor)
    reach = np.hypot(*(starts - anchor).T) / radius
    others = marks[~np.all(np.isclose(marks[:, :2] + radius, anchor), axis=1)]
    crossed = _under(_lines(starts, np.broadcast_to(anchor, starts.shape)), others).sum(axis=1)
    return np.asarray(
        _OUTSIDE * (outside + (outside > 1e-9)) + _MARK * covered + _LEADER / 4 * crossed + reach
    )


def _shared_price(boxes: Floats, anchor: Floats, others: Floats, theirs: Floats) -> Floats:
    """What is wrong with places beside those that the other labels have."""
    area = np.prod(boxes[0, 2:] - boxes[0, :2])
    shared = overlaps(boxes, others)
    covered = shared.sum(axis=1) / area + np.count_nonzero(shared, axis=1)
    own = _lines(nearest(boxes, anchor), np.broadcast_to(anchor, (len(boxes), 2)))
    crossed = _under(own, others).sum(axis=1)
    crossing = _under(_lines(nearest(others, theirs), theirs), boxes).sum(axis=0)
    return np.asarray(_LABEL * covered + _LEADER * (crossed + crossing))


def _lines(starts: Floats, ends: Floats) -> Floats:
    """Points along lines (n, 12, 2)."""
    shares = np.linspace(0, 1, 12)[:, None]
    return np.asarray(starts[:, None] * (1 - shares) + ends[:, None] * shares)


def _under(lines: Floats, boxes: Floats) -> NDArray[np.bool_]:
    """Whether each line has points in each box (n, k)."""
    points = lines[:, :, None]
    within = (points > boxes[:, :2]) & (points < boxes[:, 2:])
    return np.asarray(np.any(np.all(within, axis=-1), axis=1))
