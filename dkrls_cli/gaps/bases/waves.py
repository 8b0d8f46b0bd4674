"""Waves along an axis: sines and cosines of a circle, or cosines of a line that reaches beyond it.

They are functions of the coordinate, so steps need not be even. Cosines reflect a field at the ends
of their interval; a *margin* keeps that away from the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.circle import spacing, wrap

_MARGIN, _LEAST_MARGIN = 0.1, 2
"""Margin at each end of a line: a share of its coordinates, and at least this many steps."""

_MOST_WAVES = 2
"""Waves on an axis per coordinate, at most: enough for steps that differ by a factor of two."""


@dataclass(frozen=True, eq=False)
class Waves:
    """Waves along an axis.

    Attributes
    ----------
    values
        Every wave at every coordinate (m, r). Squares of a wave have the mean 1 / r.
    frequencies
        In radians per unit of the coordinate (r,), ascending from 0.
    circle
        Whether they are the waves of a circle.
    """

    values: Array
    frequencies: Array
    circle: bool


def waves_of(coordinates: Array, period: float | None) -> Waves:
    """Return the waves of an axis: on a circle of its period, else on a line with margins.

    Coordinates on a part of the circle have the waves of a shorter one: there are fewer.
    The last ones are kept: a search asks for the same waves again and again.
    """
    return _make_waves(coordinates.tobytes(), period)


@lru_cache(maxsize=16)
def _make_waves(coordinates: bytes, period: float | None) -> Waves:
    numbers = np.frombuffer(coordinates)
    return _line_waves(numbers) if period is None else _circle_waves(numbers, period)


def _line_waves(coordinates: Array) -> Waves:
    step, count = spacing(coordinates), coordinates.size
    margin = max(_LEAST_MARGIN, round(_MARGIN * count)) * step
    start = float(coordinates.min()) - margin - step / 2
    length = float(np.ptp(coordinates)) + 2 * margin + step
    number = _wave_number(coordinates, length)
    frequencies = np.arange(float(number)) * (math.pi / length)
    values = np.cos(np.multiply.outer(coordinates - start, frequencies))
    values *= math.sqrt(2.0 / number)
    values[:, 0] = math.sqrt(1.0 / number)
    return Waves(values, frequencies, circle=False)


def _circle_waves(coordinates: Array, turn: float) -> Waves:
    places, period = unroll(coordinates, turn)
    number = _wave_number(places, period)
    turns = np.arange(1, number // 2 + 1)
    places -= places[0]  # where the shortest wave has a crest, not a node
    angles = np.multiply.outer(places, turns * (2.0 * math.pi / period))
    values = np.empty((coordinates.size, 2 * turns.size + 1))
    values[:, 0] = math.sqrt(0.5)
    values[:, 1::2], values[:, 2::2] = np.cos(angles), np.sin(angles)
    values, frequencies = values[:, :number], np.repeat(turns, 2)[: number - 1].astype(float)
    if number % 2 == 0:  # the shortest wave has a cosine only
        values[:, -1] *= math.sqrt(0.5)
    values = values * math.sqrt(2.0 / number)
    frequencies = np.concatenate([[0.0], frequencies * (2.0 * math.pi / period)])
    return Waves(values, frequencies, circle=True)


def unroll(coordinates: Array, turn: float) -> tuple[Array, float]:
    """Return coordinates on a circle counted from the end of their widest gap, and their period.

    That is a turn, or for coordinates that cover less than half of it twice what they cover: no
    two of them are then nearer to each other round the period than they are on the circle.
    """
    turned = wrap(coordinates, turn)
    order = np.sort(turned)
    gaps = np.diff(order, append=order[0] + turn)
    widest = int(np.argmax(gaps))
    places = wrap(turned - order[(widest + 1) % order.size], turn)
    return places, min(turn, 2.0 * (float(np.ptp(places)) + spacing(places)))


def _wave_number(coordinates: Array, length: float) -> int:
    """Return how many waves tell the coordinates apart: one per step, within a limit."""
    steps = np.diff(np.sort(coordinates))
    shortest = float(steps.min()) if steps.size else length
    extra = length / (float(np.ptp(coordinates)) + spacing(coordinates))
    most = math.ceil(_MOST_WAVES * extra * coordinates.size)
    even = round(length / spacing(coordinates))
    is_even = steps.size and float(steps.max()) < 1.01 * shortest
    wanted = even if is_even else math.ceil(length / max(shortest, length / most))
    return max(2, min(wanted, most))
