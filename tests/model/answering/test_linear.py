"""Tests of dkrls_cli.model.answering.linear; answers of models are in test_questions.py."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.levels import FilledBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals.functional import Derivatives, Means, Values
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.functionals import deviations
from dkrls_cli.gaps.noisy.analysis import Observations
from dkrls_cli.gaps.noisy.bars import NoisyBars
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.answering.linear import LinearAnswers

X, Y = np.arange(6.0), np.arange(5.0)
CASCADE = fit_cascade(
    np.add.outer(np.sin(X), Y**2 / 9), [X, Y], [Level(n, Kernel(sigma=2.0), 1e-3) for n in "xy"]
)
ASKED = Means(X[:3], X[:3] + 0.5), Derivatives(Y[1:3] + 0.2, 1)


def answers(**changes) -> LinearAnswers:
    plain = {"factors": [np.ones(3), np.ones(2)], "smooth": False, "bounds": None}
    return LinearAnswers(CASCADE, ASKED, **plain | changes, bars=lambda: calibrate(CASCADE))


def test_factors_multiply_answers_and_their_errors():
    factors = [np.array([1.0, -2.0, 3.0]), np.array([4.0, 5.0])]
    plain, scaled = answers(), answers(factors=factors)
    assert np.allclose(scaled.values(), plain.values() * np.outer(*factors), rtol=1e-14)
    assert np.allclose(scaled.std(), plain.std() * np.abs(np.outer(*factors)), rtol=1e-14)
    for part, values, std in scaled.blocks(2, std=True):
        assert np.allclose(values, scaled.values()[part], rtol=0, atol=1e-13)
        assert np.allclose(std, scaled.std()[part], rtol=1e-12)


def test_answers_within_bounds():
    bounded = answers(bounds=Bounds(0.3, 0.4))
    assert bounded.values().min() >= 0.3
    assert (bounded.std() < answers().std()).any()
    assert bounded.shape == (3, 2)


def test_points_that_share_an_axis():
    shared = answers(spread=(1,))
    assert shared.shape == (3, 2)
    assert np.allclose(shared.values(), answers().values(), rtol=0, atol=1e-13)
    assert np.allclose(shared.std(), answers().std(), rtol=1e-10)
    nothing = LinearAnswers(
        CASCADE,
        (Values(X[:0]), Values(Y)),
        [np.ones(0), np.ones(5)],
        smooth=False,
        bounds=None,
        bars=lambda: calibrate(CASCADE),
        spread=(1,),
    )
    assert [values.shape for _, values, _ in nothing.blocks(9, std=False)] == [(0, 5)]


def test_errors_of_a_region_are_the_same_whole_and_in_blocks():
    x, t = np.arange(8.0), np.arange(30.0)
    levels = [Level("x", Kernel("gaussian", 2.0), 0.01), Level("t", Kernel("matern32", 5.0), 0.1)]
    cascade = fit_cascade(np.random.default_rng(0).standard_normal((8, 30)), [x, t], levels)
    asked = Means(np.array([1.0]), np.array([6.0])), Values(np.array([2.5, 7.5]))
    ones, bars = [np.ones(1), np.ones(2)], calibrate(cascade)
    region, plain = (
        LinearAnswers(cascade, asked, ones, False, None, lambda: bars, region=region)
        for region in (True, False)
    )
    ((_, _, errors),) = region.blocks(100, std=True)
    assert np.array_equal(region.std(), errors)
    assert not np.allclose(region.std(), plain.std())


JOINT = fit_cascade(
    np.add.outer(np.sin(X), Y**2 / 9),
    [X, Y],
    [Level(n, Kernel(sigma=2.0)) for n in "xy"],
    joint_ridge=1e-3,
)
MISSING = np.zeros((6, 5), bool)
MISSING[2:4, 3] = True
KINDS = {
    "level": (CASCADE, calibrate(CASCADE)),
    "joint": (JOINT, calibrate(JOINT)),
    "filled": (CASCADE, FilledBars(calibrate(CASCADE), MISSING, 0)),
    "gaps": (JOINT, GapBars(MISSING, 0.5, 1.0, 0.1)),
    "errors": (
        JOINT,
        NoisyBars(
            Observations(np.where(MISSING, np.nan, JOINT.predict()), np.full((6, 5), 0.1)), 1.0, 0.1
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", [ASKED, (Derivatives(X[1:4], 2), Values(Y[1:3]))])
def test_every_kind_of_error_bars_has_standard_errors_and_members(kind, asked, monkeypatch):
    monkeypatch.setattr(deviations, "DRAWS", 8)
    cascade, bars = KINDS[kind]
    factors = [np.array([1.0, -2.0, 3.0]), np.ones(2)]

    def make(factors, spread=None):
        return LinearAnswers(cascade, asked, factors, False, None, lambda: bars, spread)

    grid, plain = make(factors), make([np.ones(3), np.ones(2)])
    assert (grid.std() > 0).all()
    assert np.allclose(grid.std(), plain.std() * np.abs(factors[0])[:, None], rtol=1e-12)
    members = grid.deviations(1), plain.deviations(1)
    assert np.allclose(members[0](2), members[1](2) * factors[0][:, None], rtol=1e-9)
    shared = make(factors, spread=(1,))
    assert np.allclose(shared.std(), grid.std(), rtol=1e-6)
    assert shared.deviations(1)(0).shape == (3, 2)
    for answers in (grid, shared):
        for part, values, std in answers.blocks(2, std=True):
            assert np.allclose(values, grid.values()[part], rtol=0, atol=1e-9)
            assert np.allclose(std, grid.std()[part], rtol=1e-6)


def test_errors_of_filled_cells_add_to_those_of_the_data():
    asked = Derivatives(np.array([2.5, 0.5]), 1), Values(np.array([3.0]))

    def std(kind):
        ones = [np.ones(2), np.ones(1)]
        return LinearAnswers(CASCADE, asked, ones, False, None, lambda: KINDS[kind][1]).std()

    wider = std("filled") / std("level")
    assert wider[0, 0] > 1.05  # beside the filled cell
    assert wider[1, 0] > 1.00001


def waves(seed, noise):
    """Return a field of waves with land and noise, the land, and its exact means over cells."""
    rng = np.random.default_rng(seed)
    w, phase = np.clip(rng.standard_t(3, (2, 60)) / 4, -25, 25), rng.uniform(0, 2 * np.pi, 60)

    def mean(y, x, wide):
        (rows, columns) = (
            np.exp(1j * np.outer(c, own)) * np.sinc(wide * own / (2 * np.pi))
            for c, own in zip((y, x), w, strict=True)
        )
        return np.sqrt(2 / 60) * ((rows * np.exp(1j * phase)) @ columns.T).real

    y, x = np.arange(14.0), np.arange(18.0)
    chance = noise * rng.standard_normal((14, 18))
    values, land = mean(y, x, 0.0) + chance, np.zeros((14, 18), bool)
    row, column = rng.integers(2, 8, 2)
    land[row : row + 3, column : column + 4] = True
    values[land] = np.nan
    data = xr.DataArray(values, {"y": y, "x": x}, ["y", "x"])
    blocks = [(c[1:-2:2] + c[2:-1:2]) / 2 for c in (y, x)]
    noise_in = chance[1:-1, 1:-1].reshape(6, 2, 8, 2).mean((1, 3))
    some = land[1:-1, 1:-1].reshape(6, 2, 8, 2).any((1, 3))
    return data, blocks, mean(*blocks, 2.0) + noise_in, some


@pytest.mark.slow
def test_errors_of_means_beside_gaps_hold_what_they_promise_and_are_not_far_too_wide():
    inside, logs = [], []
    for seed in range(30, 36):
        data, (y, x), truth, some = waves(seed, 0.1)
        model = fit(data, noise="joint")
        missed = model.predict(y=y, x=x, mean=True, mask="none").values - truth
        std = model.std(y=y, x=x, mean=True, mask="none").values
        for cells in (some, ~some):
            inside.append((np.abs(missed) < 1.645 * std)[cells].mean())
            logs.append(np.log(np.mean(missed[cells] ** 2) / np.mean(std[cells] ** 2)) / 2)
    assert np.mean(inside) > 0.85
    ratios = np.exp(np.reshape(logs, (6, 2)).mean(axis=0))  # beside land, and apart from it
    assert np.all(ratios > [0.3, 0.34])  # 0.27 apart from it, if cells held out scale all
    assert np.all(ratios < 1.0)
