"""Forecasts of long levels, step by step, against weights that are solved for."""

import numpy as np
import pytest

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.tuning import following
from dkrls_cli.tuning.following import LongForecaster

X = np.linspace(0, 1, 40)
LEVELS = [
    Level("x", Kernel("matern52", 0.4), 1e-4),
    Level("t", Kernel("matern32", 30.0, constant=1.0), 1e-2),
]
OTHERS = [Level("t", Kernel("matern32", sigma, constant=1.0), 0.1) for sigma in (5.0, 50.0)]
GAUSSIAN = Level("t", Kernel("gaussian", 5.0, constant=1.0), 0.1)
NOISE = np.random.default_rng(0).standard_normal((40, 400))
SMOOTH = np.outer(np.cos(3 * X), np.sin(np.arange(400.0) / 9))


def times(uneven=True):
    steps = np.random.default_rng(5).uniform(0.5, 1.5, 400) if uneven else np.ones(400)
    return np.cumsum(steps)


def start(t, count, values=NOISE, levels=LEVELS):
    return Growing(fit_cascade(values[:, :count], [X, t[:count]], levels), 1)


def expected(growing, level, coordinate, seen=slice(None)):
    """Sums of slices and of ones, with weights of those that are seen."""
    places = np.arange(growing.coordinates.size)[seen]
    nodes = growing.coordinates[places]
    system = gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
    row = np.linalg.solve(system, gram(level.kernel, nodes, np.array([coordinate]))[:, 0])
    return np.append(growing.samples(places) @ row, row.sum())


def check(forecaster, growing, coordinate, levels, seen=slice(None)):
    found = forecaster.forecast(growing, float(coordinate))
    wanted = [expected(growing, level, coordinate, seen) for level in levels]
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("values", [NOISE, SMOOTH], ids=["noise", "smooth"])
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
def test_the_own_setting_sees_the_very_slices_of_a_window(values, uneven, monkeypatch):
    """Slices leave one or several at a time, and the filter is made anew when too many did."""
    monkeypatch.setattr(following, "_LEAVING", 7)
    t = times(uneven)
    growing, forecaster = start(t, 150, values), LongForecaster(LEVELS[1:], exact=1)
    stop = 150
    for new, drop in [(1, 0), (2, 0), *[(1, 1)] * 12, (1, 5), (2, 2), (9, 1), (1, 9), (1, 1)]:
        check(forecaster, growing, t[stop] - 0.1, LEVELS[1:])
        growing = growing.append(t[stop : stop + new], values[:, stop : stop + new], drop=drop)
        stop += new
    check(forecaster, growing, t[stop], LEVELS[1:])


def test_the_own_filter_is_made_seldom(monkeypatch):
    t, made = times(), []
    build = following._build
    monkeypatch.setattr(following, "_build", lambda *how: made.append(how[2]) or build(*how))
    growing, forecaster = start(t, 150), LongForecaster(LEVELS[1:], exact=1)
    for place in range(150, 310):
        forecaster.forecast(growing, t[place])
        growing = growing.append(t[[place]], NOISE[:, [place]], drop=1)
    assert set(made) == {64}
    assert len(made) <= 2 + 160 // 64 + 1  # before and after the first slice, and a full buffer
    forecaster.forecast(growing, t[310])
    before = len(made)
    forecaster.forecast(growing.append(t[310:375], NOISE[:, 310:375]), t[375])
    assert len(made) == before + 1  # 65 at once are more than it takes one by one


def test_all_slices_of_a_filter_may_have_left():
    t, forecaster = times(), LongForecaster(LEVELS[1:], exact=1)
    growing = start(t, 20)
    for place in range(20, 70):
        check(forecaster, growing, t[place], LEVELS[1:])
        growing = growing.append(t[[place]], NOISE[:, [place]], drop=1)


def test_slices_that_changed_are_seen_anew():
    """A window of the same coordinates may have other values: a slice was replaced or filled."""
    t, forecaster = times(), LongForecaster(LEVELS[1:], exact=1)
    growing = start(t, 150).append(t[[150]], NOISE[:, [150]])
    check(forecaster, growing, t[151], LEVELS[1:])
    other = growing.take(np.arange(150)).append(t[[150]], NOISE[:, [399]])
    check(forecaster, other, t[151], LEVELS[1:])
    check(forecaster, growing, t[151], LEVELS[1:])
    check(forecaster, growing.drop_first(3), t[151], LEVELS[1:])
    forecaster = LongForecaster(LEVELS[1:], exact=1)
    check(forecaster, growing.drop_first(3), t[153], LEVELS[1:])
    check(forecaster, growing, t[153], LEVELS[1:])  # slices at the front that it has not seen
    check(forecaster, growing.append(t[[151]], NOISE[:, [151]]), t[153], LEVELS[1:])
    check(forecaster, growing, t[153], LEVELS[1:])  # and the last that it has seen is not there
    check(forecaster, start(t, 120), t[153], LEVELS[1:])  # a cascade that has never grown
    check(forecaster, growing, t[153], LEVELS[1:])


@pytest.mark.parametrize("level", [LEVELS[1], GAUSSIAN], ids=["matern", "gaussian"])
def test_what_no_filter_can_tell_is_solved_for(level):
    """Places between slices, slices in any order, and kernels without states."""
    t, forecaster = times(), LongForecaster([level], exact=1)
    growing = start(t, 150, levels=[LEVELS[0], level])
    for coordinate in (t[60] + 0.2, t[0] - 1.0, t[149] + 0.5, t[149] + 2.0):
        check(forecaster, growing, coordinate, [level])
    turned = growing.take(np.arange(150)[::-1])
    check(forecaster, turned, t[149] + 0.5, [level])


@pytest.mark.parametrize("long", [100, 1000], ids=["long", "dense"])
def test_solved_weights_are_kept_while_all_shifts(monkeypatch, long):
    """Where no filter serves, as the slices stand in falling order."""
    monkeypatch.setattr(choice, "LONG", long)
    t, forecaster, solved = -times(uneven=False), LongForecaster(LEVELS[1:], exact=1), []
    weights = following._Solved._weights
    monkeypatch.setattr(
        following._Solved, "_weights", lambda *how: solved.append(how[1].size) or weights(*how)
    )
    growing = start(t, 150)
    for place in range(150, 155):
        check(forecaster, growing, t[place], LEVELS[1:])
        growing = growing.append(t[[place]], NOISE[:, [place]], drop=1)
    check(forecaster, growing, t[155] - 0.5, LEVELS[1:])
    assert solved == [150, 150]


# --- settings beside the own one ----------------------------------------------------------------


def test_other_settings_remember_slices_that_left_of_late():
    """Until those slices are more than one in four."""
    t, forecaster = times(), LongForecaster(OTHERS, exact=0)
    growing = whole = start(t, 200)
    for place in range(200, 252):
        remembered = whole if place < 251 else growing
        found = forecaster.forecast(growing, t[place])
        wanted = [expected(remembered, level, t[place]) for level in OTHERS]
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)
        whole = whole.append(t[[place]], NOISE[:, [place]])
        growing = growing.append(t[[place]], NOISE[:, [place]], drop=1)


def test_other_settings_see_late_slices_when_these_are_many():
    t, forecaster = times(), LongForecaster(OTHERS, exact=0)
    growing = start(t, 200).take(np.arange(0, 200, 2))
    forecaster.forecast(growing, t[200])
    for count in (33, 34):  # one in four of 134 are 33
        late = np.sort(np.concatenate([np.arange(0, 200, 2), np.arange(1, 2 * count, 2)]))
        seen = start(t, 200).take(late)
        known = growing if count == 33 else seen
        found = forecaster.forecast(seen, t[200])
        wanted = [expected(known, level, t[200]) for level in OTHERS]
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


def test_many_new_slices_make_a_new_filter(monkeypatch):
    t, made = times(), []
    build = following._build
    monkeypatch.setattr(following, "_build", lambda *how: made.append(how[2]) or build(*how))
    forecaster = LongForecaster(OTHERS, exact=0)
    growing = start(t, 100)
    for stop in (101, 134, 180):  # one in four of 134 are 33
        check(forecaster, growing, t[stop], OTHERS)
        check(forecaster, growing, t[stop], OTHERS)  # again, without a new slice
        new = slice(growing.coordinates.size, stop)
        growing = growing.append(t[new], NOISE[:, new])
    check(forecaster, growing, t[stop], OTHERS)
    assert made == [0, 0]


def test_other_settings_follow_frames_that_change():
    t, forecaster = times(), LongForecaster(OTHERS, exact=0)
    growing = start(t, 200, SMOOTH)
    check(forecaster, growing, t[200], OTHERS)
    growing = growing.append(t[[200]], SMOOTH[:, [200]])
    check(forecaster, growing, t[201], OTHERS)
    wider = growing.append(t[[201]], SMOOTH[:, [201]] + 0.1 * NOISE[:, [0]])
    assert wider.cascade.core.shape != growing.cascade.core.shape
    check(forecaster, wider, t[202], OTHERS)


def test_a_gaussian_sees_the_latest_slices():
    """At least 200, and up to 50 more until the first of them go."""
    t, forecaster = times(), LongForecaster([GAUSSIAN], exact=0)
    growing = start(t, 300)
    for place, seen in ((300, 200), (330, 230), (350, 250), (351, 200), (352, 201)):
        old = growing.coordinates.size
        if place > old:
            growing = growing.append(t[old:place], NOISE[:, old:place])
        check(forecaster, growing, t[place] + 0.1, [GAUSSIAN], slice(-seen, None))


def test_weights_of_the_latest_slices_are_kept_while_all_shifts(monkeypatch):
    t, forecaster, asked = times(uneven=False), LongForecaster([GAUSSIAN], exact=0), []
    weights = following.Factor.weights
    monkeypatch.setattr(
        following.Factor, "weights", lambda *how: asked.append(how[1].size) or weights(*how)
    )
    growing = start(t, 300)
    for place in range(300, 310):
        check(forecaster, growing, t[place], [GAUSSIAN], slice(-200, None))
        growing = growing.append(t[[place]], NOISE[:, [place]], drop=1)
    assert asked == [200]


def test_late_slices_are_forecast_from_the_latest():
    t, forecaster = times(), LongForecaster(OTHERS, exact=0)
    growing = start(t, 300)
    check(forecaster, growing, t[250] + 0.1, OTHERS, slice(-200, None))
    shuffled = growing.take(np.random.default_rng(0).permutation(300))
    found = forecaster.forecast(shuffled, t[300])
    wanted = [expected(growing, level, t[300], slice(-200, None)) for level in OTHERS]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_fewer_slices_than_the_latest_are_all_seen():
    t, forecaster = times(), LongForecaster([GAUSSIAN], exact=0)
    check(forecaster, start(t, 120), t[120], [GAUSSIAN])


def test_settings_keep_their_order():
    t = times()
    settings = [LEVELS[1], GAUSSIAN, *OTHERS]
    growing = start(t, 190)
    check(LongForecaster(settings, exact=1), growing, t[190], settings)
    check(LongForecaster(settings[1:], exact=0), growing, t[190], settings[1:])
