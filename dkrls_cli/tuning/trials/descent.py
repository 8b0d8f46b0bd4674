"""Improve a setting one move at a time, for as long as hidden cells are predicted better.

How a setting is judged is left to :class:`Trials`: by a solve in windows of the grid, or by the
nearest cells alone (:mod:`dkrls_cli.tuning.trials.nearby`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.moves import Move

TRIALS = 80
"""Settings that one descent may try."""

_STARTS = 0.3
"""Share of a search that trying its starts takes, roughly: as many settings as a third of it."""

HOPEFUL = 1.5
"""A start is improved if its error is at most this many times that of the best start."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """A setting that was tried: its error, the most iterations of a solve, its answers and s^2."""

    setting: JointSetting
    error: float
    iterations: int
    windows: tuple[HiddenWindow, ...]
    scale: float = 1.0


class Trials(Protocol):
    """Tries settings, each once.

    Attributes
    ----------
    tried
        Number of settings tried.
    better
        An error below this share of the best is an improvement: the less a trial costs, the smaller
        are the improvements worth another one.
    """

    tried: int
    better: float

    def attempt(self, setting: JointSetting, best: Attempt | None) -> Attempt:
        """Try a setting, or return what is known of it; `best` is the best so far."""


def improve(
    trials: Trials,
    kinds: Sequence[Sequence[JointSetting]],
    rounds: Sequence[Sequence[Move]],
    rival: Attempt | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Attempt:
    """Return the best setting that the best starts of some kinds lead to.

    The best start is improved first. Starts that are far worse than what is found by then, or than
    a rival, are not improved. `tell` is called with the share that is done, roughly.
    """
    found = []
    for place, kind in enumerate(kinds):
        found.append(best_start(trials, kind))
        tell(_STARTS * (place + 1) / len(kinds))
    starts = sorted(found, key=lambda start: start.error)
    best = starts[0]
    for place, start in enumerate(starts):
        ahead = best if rival is None else better(best, rival)
        if start.error <= HOPEFUL * ahead.error:
            best = better(best, descend(trials, start, rounds, ahead, tell if not place else None))
    return best


def better(one: Attempt, other: Attempt) -> Attempt:
    """Return the attempt with the smaller error, or the first if they have the same."""
    return min(one, other, key=lambda attempt: attempt.error)


def best_start(trials: Trials, starts: Sequence[JointSetting]) -> Attempt:
    """Return the best of some settings to start from."""
    best = trials.attempt(starts[0], None)
    for start in starts[1:]:
        best = better(best, trials.attempt(start, best))
    return best


def descend(
    trials: Trials,
    best: Attempt,
    rounds: Sequence[Sequence[Move]],
    rival: Attempt,
    tell: Callable[[float], None] | None = None,
) -> Attempt:
    """Improve an attempt one move at a time, in rounds of smaller and smaller moves.

    Stop after the first round if a rival is still better. `tell` is called with the share of the
    whole search that is done, roughly.
    """
    last = trials.tried + TRIALS
    for number, moves in enumerate(rounds):
        if moves is not rounds[0] and best.error > rival.error / trials.better:
            break
        improved = True
        while improved and trials.tried < last:
            improved = False
            for place, move in enumerate(moves):
                found = follow(trials, best, move, last)
                if tell is not None:
                    part = (number + (place + 1) / len(moves)) / len(rounds)
                    tell(_STARTS + (1.0 - _STARTS) * part)
                improved |= found is not best
                best = found
    return best


def follow(trials: Trials, best: Attempt, move: Move, last: int) -> Attempt:
    """Repeat a move forward, or else backward, for as long as the error falls."""
    for sign in (1, -1):
        came_from = best
        while trials.tried < last:
            attempt = trials.attempt(move.apply(best.setting, sign), best)
            if not attempt.error < trials.better * best.error:
                break
            best = attempt
        if best is not came_from:
            break
    return best
