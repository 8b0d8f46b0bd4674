"""The least ridge of a setting, by the steps that a solve of the whole grid would take."""

import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps import coarse
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.solve import LEAST_RIDGE, complete_field
from dkrls_cli.tuning.gaps import choose_with_gaps
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.moves import LevelConstraint
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials import reach
from dkrls_cli.tuning.trials.solved import SolvedTrials

SHAPE = (6, 20, 24)
AXES = [np.arange(float(size)) for size in SHAPE]
KERNELS = (
    Kernel("matern52", 3.0, None, 1.0),
    Kernel("gaussian", 2.0),
    Kernel("matern32", 5.0, None, 1.0),
)
FEW = 200


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Let coarse spaces have few directions, so that small grids have more."""
    monkeypatch.setattr(reach, "MOST_DIRECTIONS", FEW)
    monkeypatch.setattr(coarse, "_SIZES", (FEW,))


def cloudy(shape=SHAPE):
    observed = np.ones(shape, bool)
    observed[1:4, 4:10, 5:12] = observed[2:6, 12:18, 14:21] = False
    return observed


def whole(observed=None, axes=AXES):
    observed = cloudy() if observed is None else observed
    return reach.WholeGrid(observed, ~observed, axes)


def variances(kernels=KERNELS):
    spectra = [np.linalg.eigvalsh(gram(k, c, c)) for k, c in zip(kernels, AXES, strict=True)]
    return np.sort(reduce(np.multiply.outer, spectra).ravel())[::-1]


def steps_allowed(operations):
    return max(30.0, 2e5 * math.prod(SHAPE) / (2 * operations))


def test_the_least_ridge_takes_the_steps_that_are_allowed():
    found = whole().least_ridge(JointSetting(KERNELS, 1e-9))
    steps = 3 * math.sqrt(1 + cloudy().mean() * variances()[FEW] / found)
    assert steps == pytest.approx(steps_allowed(4 * math.prod(SHAPE) * sum(SHAPE)))
    assert steps > 30


def test_a_solve_takes_about_as_many_steps(monkeypatch):
    monkeypatch.setattr(reach, "_WORK", 0.0)
    observed = cloudy()
    ridge = whole().least_ridge(JointSetting(KERNELS, 1e-9))
    values = np.add.outer(np.sin(AXES[0]), np.outer(np.cos(AXES[1] / 3), np.sin(AXES[2] / 4)))
    values[~observed] = np.nan
    field = make_field(AXES, KERNELS)
    done = complete_field(field, values, ridge, 0.0, tolerance=1e-5, limit=300)
    assert done.converged
    assert 15 < done.iterations < 60


def test_a_long_grid_may_take_some_steps_at_least(monkeypatch):
    monkeypatch.setattr(reach, "_WORK", 1.0)
    found = whole().least_ridge(JointSetting(KERNELS, 1e-9))
    assert found == pytest.approx(cloudy().mean() * variances()[FEW] / 99)  # (30 / 3)^2 - 1


def test_a_group_has_the_variances_of_its_field():
    grouping = Grouping(((1, 2),))
    kernels = (KERNELS[0], Kernel("matern32", 3.0), Kernel("matern32", 5.0))
    found = whole().least_ridge(JointSetting(kernels, 1e-9, grouping))
    field = make_field(AXES, kernels, grouping)
    w = np.sort(field.variances.ravel())[::-1]
    steps = 3 * math.sqrt(1 + cloudy().mean() * w[FEW] / found)
    assert steps == pytest.approx(steps_allowed(field.operations))


@pytest.mark.parametrize(
    ("grouping", "least"), [(Grouping(), 2.0**-50), (Grouping(((1, 2),)), LEAST_RIDGE)]
)
def test_a_field_that_is_smooth_enough_stays_above_round_off(grouping, least):
    smooth = tuple(Kernel("gaussian", 40.0) for _ in SHAPE)
    found = whole().least_ridge(JointSetting(smooth, 1e-13, grouping))
    largest = make_field(AXES, smooth, grouping).variances.max()
    assert found == pytest.approx(least * largest)


def test_any_ridge_will_do_where_directions_are_few_or_gaps_are_scattered(monkeypatch):
    setting = JointSetting(KERNELS, 1e-9)
    scattered = np.random.default_rng(0).random(SHAPE) > 0.1
    assert whole(scattered).least_ridge(setting) == 0
    with monkeypatch.context() as patch:
        patch.setattr(choice, "LONG", 23)  # such a grid is solved for in another way
        assert whole().least_ridge(setting) == 0
    assert whole().least_ridge(setting) > 0
    monkeypatch.setattr(reach, "MOST_DIRECTIONS", math.prod(SHAPE))
    assert whole().least_ridge(setting) == 0


def test_a_setting_is_tried_with_the_least_ridge_at_least():
    values = np.where(cloudy(), 1.0, np.nan)
    hidden = np.zeros(SHAPE, bool)
    hidden[0, 5:9, 5:9] = True
    window = HiddenWindow(tuple(AXES), values, hidden, values)
    search = SolvedTrials([window], 0.0, 1.0, SpectrumCache(), whole=whole())
    setting = JointSetting(KERNELS, 1e-9)
    least = whole().least_ridge(setting)
    assert search.attempt(setting, None).setting == replace(setting, ridge=least)
    assert search.attempt(replace(setting, ridge=2 * least), None).setting.ridge == 2 * least
    free = SolvedTrials([window], 0.0, 1.0, SpectrumCache())
    assert free.attempt(setting, None).setting == setting


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ridge", "seen_whole", "is_bound"),
    [(None, 100, True), (1e-6, 100, False), (None, 20_000, False)],
)
def test_a_ridge_that_is_chosen_on_windows_is_one_for_the_whole_grid(
    monkeypatch, ridge, seen_whole, is_bound
):
    """A field without noise asks for the least ridge of all. A ridge that is given stays."""
    monkeypatch.setattr("dkrls_cli.tuning.gaps.WHOLE", seen_whole)
    monkeypatch.setattr("dkrls_cli.tuning.masks.WHOLE", seen_whole)
    observed = cloudy()
    smooth = np.multiply.outer(np.sin(AXES[0] / 5), np.outer(np.cos(AXES[1] / 9), AXES[2] / 24))
    kernels = [LevelConstraint("gaussian", size) for size in (2.0, 2.0, 3.0)]
    data = np.where(observed, smooth, np.nan)
    chosen = choose_with_gaps(data, AXES, kernels, ridge=ridge, mean=float(np.nanmean(data)))
    least = whole().least_ridge(chosen.setting)
    assert all(trial.setting.ridge >= least for trial in chosen.trials) == is_bound
    assert chosen.setting.ridge == ridge or (chosen.setting.ridge >= least) == is_bound
