"""Streams: every slice forecast by the model of those before it, and learnt like an update."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dkrls_cli import Kernel, Level, Model, fit
from dkrls_cli.cascade.factors import choice
from dkrls_cli.model.stream import Plan, Stream, _StreamBars, _Tally
from dkrls_cli.tuning.forecasts import Forecaster, settings_around

X = np.linspace(0, 1, 7)
LEVELS = [
    Level("x", Kernel("matern52", 0.4), 1e-4),
    Level("t", Kernel("matern32", 6.0, constant=1.0), 1e-3),
]
JOINT = {"levels": [replace(v, ridge=0.0) for v in LEVELS], "noise": "joint", "ridge": 1e-3}


def times(uneven: bool, count: int = 40) -> np.ndarray:
    steps = np.random.default_rng(5).uniform(0.5, 1.5, count) if uneven else np.ones(count)
    return np.cumsum(steps)


def field(t: np.ndarray, seed: int = 0) -> np.ndarray:
    noise = 0.05 * np.random.default_rng(seed).normal(size=(X.size, t.size))
    return 3 + np.sin(2 * X[:, None] + t / 5) + noise


def fitted(values: np.ndarray, t: np.ndarray, **how: Any) -> Model:
    return fit(values, {"x": X, "t": t}, **{"levels": LEVELS, "mean": 2.9, **how})


def test_a_singular_level_asks_the_model_itself() -> None:
    t = np.arange(40.0)
    values = np.sin(t / 9) * np.ones((7, 1))
    levels = [LEVELS[0], Level("t", Kernel("gaussian", 8.0), 0.0)]
    stream = Stream(fit(values[:, :30], {"x": X, "t": t[:30]}, levels), Plan(window=30))
    for place in range(30, 40):
        before = stream.model.predict(t=t[place : place + 1], extrapolate=True).values
        new = stream.model.axes[1].at(t[place])
        assert np.array_equal(stream.step(new, values[:, [place]]).values, before)
    assert stream.rmse < 1e-3


# --- streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("window", [None, 9])
def test_a_forecast_is_the_answer_of_the_model_there(
    how: dict[str, Any], uneven: bool, window: int | None
) -> None:
    t = times(uneven)
    values = field(t)
    stream = Stream(fitted(values[:, :12], t[:12], **how), Plan(window))
    for place in range(12, 40):
        before = stream.model.predict(t=t[place : place + 1], extrapolate=True).values
        new = stream.model.axes[1].at(t[place])
        expected = stream.step(new, values[:, place : place + 1])
        assert expected.values == pytest.approx(before, rel=1e-9)
    kept = slice(-window, None) if window else slice(None)
    whole = fitted(values[:, kept], t[kept], **how)
    at = {"x": [0.3], "t": [t[-1] + 0.4]}
    assert float(stream.final_model().predict(**at, extrapolate=True)[0, 0]) == pytest.approx(
        float(whole.predict(**at, extrapolate=True)[0, 0]), rel=1e-9
    )
    assert stream.slices == 28


@pytest.mark.parametrize("retunes", [False, True])
def test_a_slice_that_comes_again_is_no_forecast(retunes: bool) -> None:
    t = np.arange(24.0)
    values = field(t)
    plain, again = (
        Stream(fitted(values[:, :12], t[:12]), Plan(replace=replace, retune=retunes))
        for replace in (False, True)
    )
    for place in [11, 12, 13, 12, *range(14, 24)]:
        new = plain.model.axes[1].at(t[place])
        known, found = again.model, again.step(new, values[:, [place]])
        if place in known.axes[1].numbers:
            assert np.array_equal(found.values, values[:, [place]])
            assert (found.std == 0).all()
            continue
        expected = plain.step(new, values[:, [place]])
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
        np.testing.assert_allclose(found.std, expected.std, rtol=1e-9)
    assert (again.slices, plain.slices) == (14, 12)
    assert again.rmse == pytest.approx(plain.rmse, rel=1e-9)
    assert again.last_value_rmse == plain.last_value_rmse


def test_land_has_no_forecast_until_it_has_data() -> None:
    t, y = np.arange(16.0), np.arange(3.0)
    values = field(t)[:, None] + y[:, None]
    values[2, 0] = values[4, 1, :12] = np.nan
    levels = [JOINT["levels"][0], Level("y", Kernel("matern52", 2.0)), JOINT["levels"][1]]
    named = {"x": X, "y": y, "t": t[:12]}
    stream = Stream(fit(values[:, :, :12], named, **JOINT | {"levels": levels}), Plan())
    for place, land in enumerate([[6, 13], [6], [6], [6]], start=12):
        before = stream.model.predict(t=t[place : place + 1], extrapolate=True).values
        new = stream.model.axes[2].at(t[place])
        expected = stream.step(new, values[:, :, [place]])
        assert np.flatnonzero(np.isnan(expected.std)).tolist() == land
        np.testing.assert_allclose(expected.values, before, rtol=1e-9)  # NaN where that is


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("window", [None, 20])
def test_a_forecast_on_a_long_level_is_the_answer_of_the_model_there(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], uneven: bool, window: int | None
) -> None:
    """Slices come in order but for a late one, one comes again, and two have a missing cell."""
    monkeypatch.setattr(choice, "LONG", 15)
    t = times(uneven)
    values = field(t)
    values[3, [22, 31]] = np.nan
    stream = Stream(fitted(values[:, :12], t[:12], **how), Plan(window, replace=True))
    for place in [*range(12, 26), 27, 26, *range(28, 33), 32, *range(33, 40)]:
        before = stream.model.predict(t=t[place : place + 1], extrapolate=True).values
        new, known = stream.model.axes[1].at(t[place]), t[place] in stream.model.axes[1].numbers
        expected = stream.step(new, values[:, place : place + 1])
        if not known:  # else the answer is the data
            assert expected.values == pytest.approx(before, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("uneven", [False, True])
def test_settings_averaged_on_a_long_level_do_as_well_as_on_a_short_one(
    monkeypatch: pytest.MonkeyPatch, uneven: bool
) -> None:
    t = times(uneven, 150)
    values, rmse = field(t, seed=2), []
    for long in (1000, 40):
        monkeypatch.setattr(choice, "LONG", long)
        stream = Stream(fitted(values[:, :60], t[:60]), Plan(60, retune=True))
        for place in range(60, 150):
            stream.step(stream.model.axes[1].at(t[place]), values[:, [place]])
        rmse.append(stream.rmse)
    assert rmse[1] == pytest.approx(rmse[0], rel=0.02)


def stream_of(
    values: np.ndarray, t: np.ndarray, start: int, plan: Plan, mean: float = 2.9
) -> Stream:
    stream = Stream(fitted(values[:, :start], t[:start], mean=mean), plan)
    for place in range(start, t.size):
        stream.step(stream.model.axes[1].at(t[place]), values[:, place : place + 1])
    return stream


def test_errors_are_counted_as_they_are() -> None:
    t = times(uneven=False)
    values = field(t)
    stream = stream_of(values, t, 20, Plan())
    forecasts = [
        fitted(values[:, :p], t[:p]).predict(t=t[p : p + 1], extrapolate=True).values[:, 0]
        for p in range(20, 40)
    ]
    missed = np.array(forecasts).T - values[:, 20:]
    assert stream.rmse == pytest.approx(np.sqrt(np.mean(missed**2)))
    assert stream.last_value_rmse == pytest.approx(np.sqrt(np.mean(np.diff(values)[:, 19:] ** 2)))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_several_settings_follow_what_changes(scale: float) -> None:
    t = np.arange(300.0)
    rng = np.random.default_rng(1)
    noise = np.where(t < 150, 0.01, 1.0) * rng.normal(size=(7, 300))
    values = scale * (np.sin(X[:, None] + t / 12) + noise)
    own = stream_of(values, t, 60, Plan(window=60), mean=0.0)
    several = stream_of(values, t, 60, Plan(window=60, retune=True), mean=0.0)
    assert several.rmse < 0.9 * several.last_value_rmse
    assert several.rmse < own.rmse
    assert several.final_model().levels[1] != several.model.levels[1]


def test_shares_do_not_depend_on_units() -> None:
    t = times(uneven=False, count=60)
    values = field(t)
    start = [fit(c * values[:, :30], {"x": X, "t": t[:30]}, LEVELS) for c in (1.0, 1e-6)]
    forecasts = [
        Forecaster(m.growing, settings_around(LEVELS[1], t[:30])).forecast(m.growing, 31.0).values
        for m in start
    ]
    assert forecasts[0] == pytest.approx(1e6 * forecasts[1], rel=1e-6)


def test_error_bars_widen_with_what_is_missed() -> None:
    t = times(uneven=False, count=80)
    values = field(t)
    values[3, 40:] += np.random.default_rng(2).normal(size=40)
    stream = Stream(fitted(values[:, :30], t[:30]), Plan(window=30))
    bars = [
        stream.step(stream.model.axes[1].at(t[p]), values[:, p : p + 1]).std[:, 0]
        for p in range(30, 80)
    ]
    assert bars[-1][3] > 3 * bars[0][3]
    assert np.delete(bars[-1], 3).max() < 0.5 * bars[-1][3]
    promised = fitted(values[:, :30], t[:30]).std(t=t[30:31], extrapolate=True).values[:, 0]
    assert bars[0] == pytest.approx(promised)


def test_a_drift_is_noticed() -> None:
    t = times(uneven=False, count=80)
    values = field(t)
    assert stream_of(values, t, 30, Plan()).drift == 0
    values[:, 50:] += 30 * np.random.default_rng(2).normal(size=(7, 30))
    assert stream_of(values, t, 30, Plan()).drift > 3


@pytest.mark.slow
@pytest.mark.parametrize("retune", [False, True])
@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_missing_cells_and_bounds_go_together(how: dict[str, Any], retune: bool) -> None:
    t = times(uneven=False)
    values = field(t)
    holed = np.where(np.random.default_rng(0).random(values.shape) < 0.2, np.nan, values)
    start = fitted(values[:, :15], t[:15], **how)
    stream = Stream(start, Plan(max_rank=12, retune=retune))
    for place in range(15, 40):
        expected = stream.step(start.axes[1].at(t[place]), holed[:, place : place + 1])
        assert np.isfinite(expected.values).all()
        assert np.isfinite(expected.std).all()
    assert stream.model.axes[1].size == 12
    assert stream.rmse < 1.5 * stream.last_value_rmse
    assert stream.final_model().cascade.shape == (7, 12)


# --- which slices are learnt --------------------------------------------------------------------


def short(count: int = 10, period: float | None = None, **plan: Any) -> Stream:
    """A stream after slices at 0, 1, 2, ..."""
    levels = [LEVELS[0], Level("t", Kernel("matern32", 6.0, period), 1e-3)]
    t = np.arange(float(count))
    return Stream(fit(field(t), {"x": X, "t": t}, levels), Plan(**plan))


@pytest.mark.parametrize(
    ("window", "coordinate", "wanted"),
    [
        (5, 4.99, False),
        (5, 5.0, False),  # known
        (5, 5.01, True),
        (10, -0.01, False),
        (10, 0.01, True),
        (11, -0.01, True),
        (1, 9.01, True),
        (1, 8.99, False),
        (None, -50.0, True),
        (None, 3.0, False),
        (None, 3.0 + 1e-15, False),
        (None, 3.001, True),
    ],
)
def test_slices_within_the_window_are_wanted_unless_known(
    window: int | None, coordinate: float, wanted: bool
) -> None:
    stream = short(window=window)
    assert stream.wants(stream.model.axes[1].at(coordinate)) == wanted


@pytest.mark.parametrize(("coordinate", "wanted"), [(3.0, True), (5.0, True), (4.0, False)])
def test_a_known_slice_is_wanted_if_it_is_to_be_replaced(coordinate: float, wanted: bool) -> None:
    stream = short(window=5 if coordinate > 3 else None, replace=True)
    assert stream.wants(stream.model.axes[1].at(coordinate)) == wanted


def test_a_known_slice_is_not_wanted_where_slices_fall() -> None:
    t = np.arange(10.0)[::-1]
    stream = Stream(fitted(field(t), t), Plan())
    new = stream.model.axes[1]
    assert [stream.wants(new.at(z)) for z in (3.0, 9.0, 9.5, 10.0)] == [False, False, True, True]


def test_a_place_on_a_circle_is_known_on_every_turn() -> None:
    stream = short(period=24.0)
    new = stream.model.axes[1]
    assert [stream.wants(new.at(z)) for z in (27.0, -21.0, 27.5, 10.0)] == [
        False,
        False,
        True,
        True,
    ]


def test_what_is_wanted_is_kept_and_what_is_not_would_not_be() -> None:
    t = np.random.default_rng(0).permutation(30).astype(float)
    stream = short(4, window=6)
    for z in t[t > 3]:
        new, values = stream.model.axes[1].at(z), field(np.array([z]))
        if stream.wants(new):
            stream.step(new, values)
            assert z in stream.model.axes[1].numbers
        else:
            kept = stream.model.update(values, [z], window=6).axes[1].numbers
            assert z not in kept
    assert stream.model.axes[1].numbers.tolist() == list(range(24, 30))


# --- error bars and drift -----------------------------------------------------------------------


def test_error_bars_begin_as_those_of_the_model_and_fade_into_errors() -> None:
    bars = _StreamBars(np.array([[4.0], [1.0]]))
    assert bars.promised == bars.recent == 2.5
    assert bars.std.tolist() == [[2.0], [1.0]]
    bars.learn(np.array([[9.0], [np.nan]]))
    assert bars.std[0, 0] ** 2 == pytest.approx((0.99 * 5 * 4 + 9) / (0.99 * 5 + 1))
    assert bars.std[1, 0] == pytest.approx(1.0)
    assert bars.recent == pytest.approx((0.99 * 25 + 9) / (0.99 * 10 + 1))
    for _ in range(3000):
        bars.learn(np.array([[9.0], [16.0]]))
    assert bars.std.ravel().tolist() == pytest.approx([3.0, 4.0])
    assert bars.promised == 2.5


@pytest.mark.parametrize(
    ("slices", "ratio", "drift"), [(9, 5.0, 0.0), (10, 5.0, 5.0), (10, 3.0, 0.0), (99, 3.01, 3.01)]
)
def test_a_drift_is_three_times_the_error_after_ten_slices(
    slices: int, ratio: float, drift: float
) -> None:
    stream = short()
    assert stream.drift == 0.0
    stream.slices = slices
    assert stream.drift == 0.0
    stream._bars = _StreamBars(np.array([4.0]))
    stream._bars.recent = 4.0 * ratio**2
    assert stream.drift == pytest.approx(drift)
    stream._bars.promised = 0.0
    assert stream.drift == 0.0


def test_errors_are_counted_over_cells_with_a_value() -> None:
    t = np.array([0.0, 2.0, 1.0])  # the last one is that of the largest coordinate
    values = np.array([[1.0, 5.0, 2.0], [3.0, 7.0, 4.0]])
    model = fit(values, {"x": X[:2], "t": t}, LEVELS)
    tally = _Tally(model)
    assert np.isnan(tally.rmse(tally.ours))
    tally.learn(np.array([[4.0], [np.nan]]), np.array([[6.0], [np.nan]]))
    assert (tally.cells, tally.ours) == (1, 4.0)
    assert tally.last_value == pytest.approx(1.0)
    tally.learn(np.array([[0.0], [1.0]]), np.array([[6.0], [9.0]]))
    assert (tally.cells, tally.ours) == (3, 5.0)
    assert tally.last_value == pytest.approx(1.0 + 4.0)  # the gap kept its last value, 7
    assert tally.rmse(12.0) == 2.0


def test_a_forecast_is_not_learnt_before_it_is_learnt() -> None:
    stream = short()
    new = stream.model.axes[1].at(10.0)
    expected = stream.expect(new)
    assert (stream.slices, stream.model.axes[1].size) == (0, 10)
    assert np.isnan(stream.rmse)
    again = stream.expect(new)
    assert np.array_equal(again.values, expected.values)
    stream.learn(new, expected.values + 2.0)
    assert stream.slices == 1
    assert stream.rmse == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("retune", "count", "same"), [(False, 3, True), (True, 0, True), (True, 3, False)]
)
def test_settings_are_chosen_again_if_that_is_the_plan_and_slices_came(
    retune: bool, count: int, same: bool
) -> None:
    stream = short(20, retune=retune)
    for z in 20.0 + np.arange(count):
        stream.step(stream.model.axes[1].at(z), field(np.array([z])))
    assert (stream.final_model() is stream.model) == same
    assert stream.final_model().axes[1].size == 20 + count


def test_a_plan_is_followed() -> None:
    """Window, rank and replacing reach the model."""
    stream = short(10, window=8, max_rank=6, replace=True)
    for z in (9.0, 10.0, 11.0):
        stream.step(stream.model.axes[1].at(z), field(np.array([z]), seed=7))
    numbers = stream.model.axes[1].numbers
    assert numbers.size == 6
    assert numbers.max() == 11
    assert stream.model.origin["thinned"]["slices"] > 0
    replaced = stream.model.cascade.predict([None, np.array([11.0])])
    np.testing.assert_allclose(replaced, field(np.array([11.0]), seed=7), atol=1e-12)


@pytest.mark.parametrize("retune", [False, True])
@pytest.mark.parametrize("how", [{}, {"noise": "joint"}])
def test_a_model_of_one_slice_forecasts_by_the_settings_it_has_by_then(
    how: dict[str, Any], retune: bool
) -> None:
    days = np.arange(30).astype("M8[D]")
    values = 3 + np.sin(2 * X[:, None] + np.arange(30) / 5)
    model = fit(values[:, :1], {"x": X, "time": days[:1]}, **how)
    stream = Stream(model, Plan(retune=retune))
    for step in range(1, 30):
        new, before = stream.model.axes[1].at(days[step]), stream.model
        expected = stream.step(new, values[:, [step]])
        if not retune:
            own = before.predict(time=days[[step]], extrapolate=True)
            np.testing.assert_allclose(expected.values, own, atol=1e-6)
    assert stream.model.levels[-1] != model.levels[-1]
    assert stream.rmse < stream.last_value_rmse
