"""What was tried, level by level: trials of all levels together, seen along each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dkrls_cli.tuning.candidates import Candidate, LevelChoice
from dkrls_cli.tuning.joint import JointSetting, JointTrial


def level_choices(
    trials: Sequence[JointTrial], taken: JointSetting, axis: int
) -> list[LevelChoice]:
    """Return what was tried for one level while the settings of all levels were chosen.

    Parameters
    ----------
    trials
        Settings of all levels and their errors.
    taken
        The setting that was chosen. Under a measure by which it was not tried, the choice is the
        setting of least error.
    axis
        Place of the level.

    Returns
    -------
    list of LevelChoice
        One for each measure that errors have, in the order in which they were first used.

    Examples
    --------
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> wide, narrow = (JointSetting((Kernel("gaussian", s),), 0.1) for s in (3.0, 1.0))
    >>> trials = [JointTrial(wide, 0.5, "cells"), JointTrial(narrow, 0.4, "cells")]
    >>> [(c.taken.error, len(c.tried)) for c in level_choices(trials, narrow, 0)]
    [(0.4, 2)]
    """
    choices = []
    for measure in dict.fromkeys(trial.measure for trial in trials):
        own = [trial for trial in trials if trial.measure == measure]
        best = next(
            (trial for trial in reversed(own) if trial.setting == taken),
            min(own, key=lambda trial: trial.error),
        )
        tried = tuple(_candidate(trial, axis) for trial in own)
        choices.append(LevelChoice(_candidate(best, axis), tried, measure=measure))
    return choices


def _candidate(trial: JointTrial, axis: int) -> Candidate:
    """Return the part of a trial that belongs to one level."""
    setting = trial.setting
    return Candidate(setting.kernels[axis], setting.ridge, trial.error, reached=trial.reached)


class ChoiceRecord:
    """Keeps what was tried in a fit: give it to the fit as the callback for its choices.

    Examples
    --------
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> taken = Candidate(Kernel("gaussian", 2.0), 0.1, 0.5)
    >>> record = ChoiceRecord()
    >>> record("time", LevelChoice(taken, (taken,)))
    >>> len(record.of("time")), record.of("lat")
    (1, ())
    """

    def __init__(self) -> None:
        self._choices: dict[str, list[LevelChoice]] = {}

    def __call__(self, dim: str, choice: LevelChoice) -> None:
        """Keep the choice of a level; it replaces an earlier one by the same measure."""
        known = self._choices.get(dim, [])
        others = [one for one in known if one.measure != choice.measure]
        self._choices[dim] = [*others, replace(choice, spectra={})]

    def of(self, dim: str) -> tuple[LevelChoice, ...]:
        """Return the choices of a level, one for each measure; none if nothing was tried."""
        return tuple(self._choices.get(dim, ()))
