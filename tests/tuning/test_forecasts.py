"""Forecasts of the next slice, against models fitted to the slices before it."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning import forecasts
from dkrls_cli.tuning.forecasts import Factor, Forecaster, has_weights, settings_around

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


def solved_weights(level, nodes, query):
    covariance = gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
    with one_blas_thread():
        return np.linalg.solve(covariance, gram(level.kernel, nodes, np.array([query]))[:, 0])


# --- the factor ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-2, 1e-6])
@pytest.mark.parametrize("family", ["matern12", "matern52", "gaussian"])
@given(steps=st.lists(st.floats(0.2, 3.0), min_size=6, max_size=40), window=st.integers(3, 50))
def test_weights_are_those_of_a_solve(steps, window, family, ridge):
    level = Level("t", Kernel(family, 2.0, constant=0.5), ridge)
    factor, coordinates = Factor(level), np.cumsum(steps)
    for place in range(2, coordinates.size):
        nodes = coordinates[max(0, place - window) : place]
        found = factor.weights(nodes, coordinates[place])
        solved = solved_weights(level, nodes, coordinates[place])
        assert np.linalg.norm(found - solved) <= 1e-13 / ridge * np.linalg.norm(solved)


@pytest.mark.parametrize("size", [255, 256])
def test_weights_of_a_large_factor_are_those_of_a_solve(size):
    level = Level("t", Kernel("matern32", 9.0, constant=1.0), 1e-4)
    nodes = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, size + 1))
    factor = Factor(level)
    for count in (size, size + 1):  # a new factor, and a row more
        found = factor.weights(nodes[:count], nodes[-1] + 0.7)
        solved = solved_weights(level, nodes[:count], nodes[-1] + 0.7)
        np.testing.assert_allclose(found, solved, atol=1e-10)


def test_the_inverse_of_a_triangle_is_lower_too():
    for size in (5, 300):
        lower = np.tril(np.random.default_rng(1).uniform(0.1, 1.0, (size, size)) / size)
        lower += np.eye(size)
        found = forecasts._invert_lower(lower)
        np.testing.assert_allclose(found @ lower, np.eye(size), atol=1e-12)
        assert not np.triu(found, 1).any()


def counted_grams(monkeypatch):
    sizes = []

    def counted(kernel, a, b):
        sizes.append((a.size, b.size))
        return gram(kernel, a, b)

    monkeypatch.setattr(forecasts, "gram", counted)
    return sizes


def test_a_slice_that_was_forecast_is_learnt_without_another_solve(monkeypatch):
    factor, t = Factor(LEVELS[1]), times(60, uneven=True)
    factor.weights(t[:50], t[50])
    sizes = counted_grams(monkeypatch)
    factor.weights(t[:51], t[51])
    assert sizes == [(51, 1)]  # the new query only
    factor.weights(t[:52], t[55])
    assert sizes[1:] == [(52, 1)]
    factor.weights(t[:53], t[56])  # not the coordinate that was asked for
    assert sizes[2:] == [(52, 1), (53, 1)]
    factor.weights(t[:53], t[57])  # no new slice, so no row and no new factor
    assert sizes[4:] == [(53, 1)]


def test_many_new_slices_make_a_new_factor(monkeypatch):
    """One and an eighth of all are rows; more are a new factor."""
    t = times(90, uneven=True)
    for count, anew in ((45, False), (46, False), (47, True), (39, True)):
        factor = Factor(LEVELS[1])
        factor.weights(t[:40], t[40])
        with pytest.MonkeyPatch.context() as patch:
            sizes = counted_grams(patch)
            factor.weights(t[:count], t[89])
        assert ((count, count) in sizes) == anew, count


def test_other_nodes_make_a_new_factor():
    factor, t = Factor(LEVELS[1]), times(40, uneven=True)
    factor.weights(t[:30], t[30])
    for nodes in (t[1:31], np.append(t[:29], t[30]), np.append(t[1:30], t[[31, 32]])):
        np.testing.assert_allclose(
            factor.weights(nodes, t[39]), solved_weights(LEVELS[1], nodes, t[39]), atol=1e-9
        )


def test_the_rows_have_room_that_doubles():
    factor, t = Factor(LEVELS[1]), times(60)
    sizes = set()
    for count in range(2, 60):
        factor.weights(t[:count], t[count])
        sizes.add(len(factor._rows))
    assert sorted(sizes) == [2, 18, 36, 72]


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
