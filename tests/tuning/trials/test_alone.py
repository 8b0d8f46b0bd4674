"""A setting is judged by every cell, left out alone."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.tuning.gaps import choose_with_gaps
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import hide_cells
from dkrls_cli.tuning.moves import LevelConstraint
from dkrls_cli.tuning.spectra import SpectrumCache
from dkrls_cli.tuning.trials.alone import LoneTrials, has_stray_gaps

AXES = [np.arange(11.0), np.array([0.0, 1.0, 1.5, 3.0, 4.0, 6.0, 7.0, 8.5, 9.0, 10.0])]
SETTING = JointSetting((Kernel("matern32", 3.0), Kernel("gaussian", 2.0, None, 0.5)), 1e-2)
MEAN = 0.3


def field(seed=0, missing=((4, 5),)):
    rng = np.random.default_rng(seed)
    values = np.outer(np.sin(AXES[0] / 3), np.cos(AXES[1] / 4))
    values += 0.1 * rng.standard_normal(values.shape)
    for place in missing:
        values[place] = np.nan
    return values


def trials(values):
    windows = hide_cells(values, AXES, np.random.default_rng(1), alone=True)
    return LoneTrials(windows, MEAN, float(np.nanstd(values)), SpectrumCache())


def left_out(values, setting=SETTING):
    """Return what all other observed cells say of every cell, by dense systems."""
    one, other = (gram(k, c, c) for k, c in zip(setting.kernels, AXES, strict=True))
    covariance, seen = np.kron(one, other), np.isfinite(values).ravel()
    answers = np.empty(values.size)
    for cell in range(values.size):
        by = np.flatnonzero(seen & (np.arange(values.size) != cell))
        system = covariance[np.ix_(by, by)] + setting.ridge * np.eye(by.size)
        weights = np.linalg.solve(system, values.ravel()[by] - MEAN)
        answers[cell] = covariance[cell, by] @ weights + MEAN
    return answers.reshape(values.shape)


def test_the_error_is_that_of_all_cells_left_out_alone():
    values = field(missing=())
    found = trials(values).attempt(SETTING, None)
    expected = left_out(values)
    assert found.error == pytest.approx(np.sqrt(np.mean((expected - values) ** 2)), rel=1e-9)
    (window,) = found.windows
    assert 1 < np.count_nonzero(window.hidden) < values.size / 5
    np.testing.assert_allclose(window.answers[window.hidden], expected[window.hidden], atol=1e-9)
    np.testing.assert_array_equal(window.answers[~window.hidden], values[~window.hidden])


def test_missing_cells_have_no_part_in_the_error():
    values = field(missing=((4, 5),))
    search = trials(values)
    found = search.attempt(SETTING, None)
    seen, expected = np.isfinite(values), left_out(values)
    error = np.sqrt(np.mean((expected - values)[seen] ** 2))
    assert found.error == pytest.approx(error, rel=5e-3)  # beside a gap closed forms are as near
    (window,) = found.windows
    assert window.answers[4, 5] == pytest.approx(expected[4, 5], abs=0.05 * found.error)


def test_a_trial_goes_on_from_the_missing_cells_of_the_best():
    search = trials(field(missing=((4, 5), (8, 1))))
    first = search.attempt(SETTING, None)
    other = replace(SETTING, ridge=3e-2)
    again = search.attempt(other, first)
    alone = trials(field(missing=((4, 5), (8, 1)))).attempt(other, None)
    assert again.error == pytest.approx(alone.error, rel=5e-3)


@pytest.mark.parametrize(
    ("missing", "stray"),
    [
        ([(3, 7)], True),
        ([(3, 7), (0, 0), (15, 21), (19, 29), (9, 3)], True),
        ([(3, 7), (3, 8)], False),  # a gap of two cells
        ([(3, 7), (3, 8), (0, 0), (15, 21)], True),  # two of four by chance
        ([(place, 3 * place % 29) for place in range(7)], False),  # too many
        ([], True),
    ],
)
def test_gaps_are_stray_if_they_are_few_and_apart(missing, stray):
    observed = np.ones((20, 30), bool)
    for place in missing:
        observed[place] = False
    assert has_stray_gaps(observed) == stray
    assert has_stray_gaps(observed[:, :, None]) == stray


def test_cells_missing_all_along_an_axis_are_not_stray():
    observed = np.ones((2, 20, 30), bool)
    observed[:, 4, 7] = False
    assert not has_stray_gaps(observed)


def choose(values, **given):
    return choose_with_gaps(values, AXES, [LevelConstraint()] * 2, **given)


def test_cells_are_left_out_alone_where_stray_ones_are_missing_and_nothing_else():
    values = field()
    assert all(window.is_alone for window in choose(values).windows)
    for others in (
        choose(field(missing=((4, 5), (4, 6)))),
        choose(values, groups=((0, 1),), force=True),
        choose(values, errors=np.full(values.shape, 0.1)),
    ):
        assert not any(window.is_alone for window in others.windows)


def test_the_setting_chosen_leaves_cells_out_better_than_its_neighbours():
    values = field(missing=())
    rng = np.random.default_rng(3)
    values += 0.1 * rng.standard_normal(values.shape)
    values[4, 5] = np.nan
    chosen = choose(values)
    search = LoneTrials(chosen.windows, 0.0, float(np.nanstd(values)), SpectrumCache())
    least = search.attempt(chosen.setting, None).error
    for factor in (1 / 3, 3.0):
        other = replace(chosen.setting, ridge=chosen.setting.ridge * factor)
        assert search.attempt(other, None).error > 0.99 * least
    assert least < 0.5 * np.nanstd(values)
