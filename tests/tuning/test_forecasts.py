"""Forecasts of the next slice, against models fitted to the slices before it."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.tuning import forecasts
from dkrls_cli.tuning.forecasts import Forecaster, has_weights, settings_around

X = np.linspace(0, 1, 7)
LEVELS = [
    Level("x", Kernel("matern52", 0.4), 1e-4),
    Level("t", Kernel("matern32", 6.0, constant=1.0), 1e-3),
]
MEAN = 2.9


def times(count=40, uneven=False):
    steps = np.random.default_rng(5).uniform(0.5, 1.5, count) if uneven else np.ones(count)
    return np.cumsum(steps)


def field(t):
    noise = 0.05 * np.random.default_rng(0).normal(size=(X.size, t.size))
    return 3 + np.sin(2 * X[:, None] + t / 5) + noise


def growing_of(t, values=None, level=LEVELS[1], axis=1):
    values = field(t) if values is None else values
    axes, levels = [X, t], [LEVELS[0], level]
    if axis == 0:
        axes, levels, values = axes[::-1], levels[::-1], values.T
    return Growing(fit_cascade(values, axes, levels, mean=MEAN), axis)


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("ridge", "has"), [(2.001e-9, True), (1.999e-9, False), (0.0, False)])
def test_weights_need_a_ridge_relative_to_the_kernel(ridge, has):
    assert has_weights(Level("t", Kernel(constant=1.0), ridge)) == has
    assert has_weights(Level("t", Kernel(), 1e-9))


def test_settings_range_over_families_scales_and_ridges():
    own = Level("t", Kernel("gaussian", 3.0, period=90.0), 0.1)
    first, *others = settings_around(own, np.arange(0.0, 90.0, 2.0))
    assert first is own
    assert {level.kernel.family for level in others} == set(FAMILIES)
    assert {level.kernel.sigma for level in others} == {40.0, 400.0, 4000.0}
    assert {level.ridge for level in others} == {1e-6, 1e-4, 1e-2, 1.0}
    assert len(set(others)) == 48
    assert {(v.name, v.kernel.period, v.kernel.constant) for v in others} == {("t", None, 1.0)}


# --- how settings did before --------------------------------------------------------------------


def test_the_past_is_forecast_slice_by_slice():
    t = times(12, uneven=True)
    values = field(t).T - 3
    found = forecasts._one_step_errors(LEVELS[1], t, values)
    for place in range(1, 12):
        model = fit_cascade(values[:place], [t[:place], X], LEVELS[::-1])
        expected = values[place] - model.predict([t[place : place + 1], None])[0]
        assert found[place] == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found[0], values[0], rtol=1e-12)


def test_a_setting_that_cannot_be_solved_for_has_infinite_errors():
    level = Level("t", Kernel("gaussian", 200.0), 0.0)
    found = forecasts._one_step_errors(level, np.arange(50.0), np.ones((50, 3)))
    assert found.shape == (50, 3)
    assert np.isinf(found).all()


@pytest.mark.parametrize("count", [30, 31, 260])
def test_past_errors_are_those_of_the_latest_slices_and_fade(count):
    t = times(count, uneven=True)
    order = np.random.default_rng(3).permutation(count)  # slices in any order
    growing = growing_of(t[order], field(t)[:, order])
    found = forecasts._past_errors(growing, LEVELS[1:])
    last = slice(-200, None)
    errors = forecasts._one_step_errors(LEVELS[1], t[last], field(t)[:, last].T - MEAN)
    size = min(count, 200)
    expected = np.zeros(X.size)
    for place in range(size // 2, size):
        expected = 0.99 * expected + errors[place] ** 2
    np.testing.assert_allclose(found, [expected], rtol=1e-8)


# --- forecasts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("uneven", [False, True])
def test_a_forecast_is_the_answer_of_the_model_there(uneven, axis):
    t = times(40, uneven)
    forecaster = None
    for place in range(12, 40):
        growing = growing_of(t[:place], field(t)[:, :place], axis=axis)
        forecaster = forecaster or Forecaster(growing, LEVELS[1:])
        queries = [None, t[place : place + 1]]
        expected = growing.cascade.predict(queries if axis else queries[::-1])
        found = forecaster.forecast(growing, t[place])
        np.testing.assert_allclose(found.values, expected, rtol=1e-9)
        assert found.each.shape == (1, X.size)


def test_frames_of_all_axes_are_used():
    """A field of rank one is kept in frames along both axes."""
    t, places = times(40), np.linspace(0, 1, 30)
    values = np.outer(np.cos(places), np.sin(t / 5))
    levels = [Level("x", Kernel("matern52", 0.4), 1e-4), LEVELS[1]]
    growing = Growing(fit_cascade(values, [places, t], levels, mean=0.5), 1)
    assert all(frame is not None for frame in growing.cascade.frames)
    found = Forecaster(growing, [LEVELS[1]]).forecast(growing, 41.0).values
    np.testing.assert_allclose(found, growing.cascade.predict([None, [41.0]]), rtol=1e-9)


def test_weights_are_kept_while_nothing_but_the_place_moves():
    t = 1e4 + times(60) / 7
    forecaster = Forecaster(growing_of(t[:20]), LEVELS[1:])
    rows = forecaster._weights(t[:20], t[20])
    assert forecaster._weights(t[5:25], t[25]) is rows
    assert forecaster._weights(t[5:25], t[25] + 1e-9) is not rows
    assert forecaster._weights(t[5:26], t[26]).shape == (1, 21)
    shifted = t[5:25].copy()
    rows = forecaster._weights(shifted, t[25])
    shifted[3] += 1e-8
    assert forecaster._weights(shifted, t[25]) is not rows


def several():
    t = times(60)
    growing = growing_of(t[:40], field(t)[:, :40])
    settings = [LEVELS[1], replace(LEVELS[1], ridge=1.0), Level("t", Kernel("matern12", 50.0), 0.1)]
    return growing, settings, t


def test_several_settings_are_weighted_by_their_errors_in_each_cell():
    growing, settings, t = several()
    forecaster = Forecaster(growing, settings)
    past = forecasts._past_errors(growing, settings)
    found = forecaster.forecast(growing, t[40])
    weights = past**-2.0
    weights /= weights.sum(axis=0)
    alone = [Forecaster(growing, [s]).forecast(growing, t[40]).values[:, 0] for s in settings]
    np.testing.assert_allclose(found.each, alone, rtol=1e-12)
    np.testing.assert_allclose(found.values[:, 0], np.sum(weights * alone, axis=0), rtol=1e-12)


def test_what_is_learnt_fades_and_missing_cells_change_nothing():
    growing, settings, t = several()
    forecaster = Forecaster(growing, settings)
    forecast = forecaster.forecast(growing, t[40])
    before = forecaster._missed.copy()
    values = field(t)[:, 40:41].copy()
    values[2] = np.nan
    forecaster.learn(forecast, values)
    squares = (forecast.each - values[:, 0]) ** 2
    expected = 0.99 * before + squares
    expected[:, 2] = before[:, 2]
    np.testing.assert_allclose(forecaster._missed, expected, rtol=1e-12)


def test_one_setting_has_nothing_to_learn():
    growing, settings, t = several()
    forecaster = Forecaster(growing, settings[:1])
    forecaster.learn(forecaster.forecast(growing, t[40]), field(t)[:, 40:41])
    assert forecaster._missed.tolist() == [[0.0]]


def test_one_more_forecast_may_be_weighed_in():
    growing, settings, t = several()
    forecaster = Forecaster(growing, settings, with_another=True)
    past = forecasts._past_errors(growing, settings)
    another = np.full((X.size, 1), 7.0)
    found = forecaster.forecast(growing, t[40], another)
    assert found.each.shape == (4, X.size)
    np.testing.assert_array_equal(found.each[3], another[:, 0])
    weights = np.vstack([past, past.min(axis=0)]) ** -2.0  # taken to be as good as the best
    weights /= weights.sum(axis=0)
    np.testing.assert_allclose(found.values[:, 0], np.sum(weights * found.each, axis=0))


def test_settings_without_any_error_share_alike():
    growing, settings, _ = several()
    forecaster = Forecaster(growing, settings)
    forecaster._missed = np.array([[0.0], [0.0], [1.0]]) * np.ones(X.size)
    shares = forecaster._shares((X.size,))
    np.testing.assert_allclose(shares[:, 0], [0.5, 0.5, 0.0], atol=1e-12)


def test_scipy_is_not_needed_for_one_setting(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    monkeypatch.setitem(sys.modules, "scipy.linalg.lapack", None)
    growing, settings, t = several()
    assert np.isfinite(Forecaster(growing, settings[:1]).forecast(growing, t[40]).values).all()
    with pytest.raises(ImportError):
        Forecaster(growing, settings)


# --- long levels --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("uneven", [False, True])
def test_a_forecast_of_a_long_level_is_the_answer_of_the_model_there(monkeypatch, uneven, axis):
    """Also while it becomes long, and with several settings."""
    monkeypatch.setattr(choice, "LONG", 20)
    t, forecaster = times(40, uneven), None
    settings = [LEVELS[1], replace(LEVELS[1], ridge=1.0), Level("t", Kernel("gaussian", 5.0), 0.1)]
    for place in range(12, 40):
        growing = growing_of(t[:place], field(t)[:, :place], axis=axis)
        forecaster = forecaster or Forecaster(growing, settings)
        found = forecaster.forecast(growing, t[place])
        for level, each in zip(settings, found.each, strict=True):
            model = growing_of(t[:place], field(t)[:, :place], level, axis).cascade
            expected = model.predict([None, t[[place]]] if axis else [t[[place]], None])
            np.testing.assert_allclose(each, expected.ravel(), rtol=1e-9)


def test_another_forecast_leaves_no_setting_that_is_exact(monkeypatch):
    growing, settings, _ = several()
    made = []
    monkeypatch.setattr(forecasts, "LongForecaster", lambda s, exact: made.append((s, exact)))
    Forecaster(growing, settings)
    Forecaster(growing, settings, with_another=True)
    assert made == [(settings, 1), (settings, 0)]


def test_splines_and_warps_have_no_weights_to_forecast_by():
    assert has_weights(Level("t", Kernel("matern32", 5.0), 0.1))
    assert not has_weights(Level("t", Kernel("matern32", 5.0, warp="log"), 0.1))
    assert not has_weights(Level("t", Kernel("cubic")))
