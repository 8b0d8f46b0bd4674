"""What was tried is handed out level by level, with the setting that was chosen among it."""

import math

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.tuning.candidates import Candidate, LevelChoice
from dkrls_cli.tuning.gaps import choose_with_gaps
from dkrls_cli.tuning.joint import JointSetting, JointTrial, choose_joint
from dkrls_cli.tuning.moves import LevelConstraint
from dkrls_cli.tuning.trials.record import ChoiceRecord, level_choices


def setting(first=1.0, second=2.0, ridge=0.1):
    return JointSetting((Kernel("gaussian", first), Kernel("matern52", second)), ridge)


def test_a_level_sees_its_own_kernels_with_the_errors_of_all_levels_together():
    trials = [
        JointTrial(setting(1.0), 0.5, "cells"),
        JointTrial(setting(3.0, ridge=0.2), math.inf, "cells", 0.9),
        JointTrial(setting(2.0), 0.4, "cells"),
    ]
    (first,), (second,) = (level_choices(trials, setting(2.0), axis) for axis in (0, 1))
    assert [one.kernel.sigma for one in first.tried] == [1.0, 3.0, 2.0]
    assert [one.kernel.sigma for one in second.tried] == [2.0, 2.0, 2.0]
    assert [one.error for one in first.tried] == [0.5, math.inf, 0.4]
    assert [one.reached for one in first.tried] == [None, 0.9, None]
    assert [one.ridge for one in first.tried] == [0.1, 0.2, 0.1]
    assert first.taken == Candidate(Kernel("gaussian", 2.0), 0.1, 0.4)
    assert first.measure == "cells"


def test_each_measure_is_a_choice_of_its_own():
    trials = [
        JointTrial(setting(1.0), 0.5, "nearby"),
        JointTrial(setting(2.0), 0.3, "nearby"),
        JointTrial(setting(1.0), 0.7, "cells"),
        JointTrial(setting(1.0), 0.6, "cells"),
    ]
    nearby, cells = level_choices(trials, setting(1.0), 0)
    assert (nearby.measure, nearby.taken.error) == ("nearby", 0.5)
    assert (cells.measure, cells.taken.error) == ("cells", 0.6)  # the last time that it was tried
    assert level_choices(trials, setting(2.0), 0)[1].taken.error == 0.6  # not tried: the least


def test_a_record_keeps_the_last_choice_by_each_measure_without_its_spectra():
    record, kernel = ChoiceRecord(), Kernel("gaussian")
    first, second = (LevelChoice(c, (c,), {kernel: None}) for c in map(candidate, (1.0, 2.0)))
    record("lat", first)
    record("lon", first)
    record("lat", second)
    record("lat", LevelChoice(candidate(3.0), (), measure="joint"))
    assert [(one.measure, one.taken.error) for one in record.of("lat")] == [
        ("slices", 2.0),
        ("joint", 3.0),
    ]
    assert [one.taken.error for one in record.of("lon")] == [1.0]
    assert record.of("lat")[0].spectra == {}
    assert record.of("time") == ()


def candidate(error):
    return Candidate(Kernel("gaussian", 1.0), 0.1, error)


def field(seed=0):
    x, y = np.arange(24.0), np.arange(20.0)
    values = np.sin(np.add.outer(x / 4, y / 5))
    return values + 0.02 * np.random.default_rng(seed).standard_normal(values.shape), (x, y)


def test_the_trials_of_a_joint_ridge_hold_the_choice_and_its_error_is_that_of_cells_left_out():
    values, coordinates = field()
    kernels = [Kernel("gaussian", 2.0, constant=1.0), Kernel("gaussian", 9.0, constant=1.0)]
    found = choose_joint(values, coordinates, kernels, open_sigmas=[True, True])
    best = min(found.trials, key=lambda trial: trial.error)
    assert best.setting == found.setting
    assert len(found.trials) > 4
    grams = [s.vectors * s.values @ s.vectors.T for s in found.spectra]
    inverse = np.linalg.inv(np.kron(*grams) + found.setting.ridge * np.eye(values.size))
    missed = inverse @ values.ravel() / np.mean(np.diag(inverse))  # generalised cross-validation
    assert best.error == pytest.approx(np.sqrt(np.mean(missed**2)), rel=0.02)


def test_the_trials_of_a_grid_with_scattered_gaps_hold_the_choice_with_the_error_that_is_reported():
    """All hidden cells are next to data then, and the mean over distances is a plain one."""
    values, coordinates = field()
    values[np.random.default_rng(1).random(values.shape) < 0.05] = np.nan
    levels = [LevelConstraint(), LevelConstraint()]
    found = choose_with_gaps(values, coordinates, levels, mean=0.0)
    own = [trial for trial in found.trials if trial.setting == found.setting]
    assert own[-1].error == pytest.approx(found.error, rel=1e-9)
    assert own[-1].error <= 1.03 * min(trial.error for trial in found.trials)
    assert len(found.trials) == found.tried
    assert all((trial.reached is None) == math.isfinite(trial.error) for trial in found.trials)
    given_up = [trial.reached for trial in found.trials if trial.reached is not None]
    assert given_up
    assert min(given_up) > 0.98 / 1.03 * own[-1].error  # no improvement, and no calmer setting
