"""Error bars half-way between slices: against refits to thinned data, and fields that are drawn."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.growth import LEAST, with_growth
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.model.validation.metrics import coverage90

HALVES = np.arange(0.0, 39.5, 0.5)
RUNS = np.arange(40.0)
ROUGH, SMOOTH = Kernel("matern12", 6.0), Kernel("matern52", 6.0)


def drawn(kernel, seed=0, places=HALVES):
    root = np.linalg.cholesky(gram(kernel, places, places) + 1e-9 * np.eye(places.size))
    return root @ np.random.default_rng(seed).standard_normal((places.size, RUNS.size))


def trained(x, data, kernel=SMOOTH, ridge=1e-4):
    levels = [Level("x", kernel, ridge), Level("run", Kernel("matern12", 1e-3), 1e-9)]
    return fit_cascade(data, [x, RUNS], levels)


def plain_bars():
    return LevelBars(np.ones(2), np.array([1.5, 1.0]), np.full((2, 2), 0.5))


def miss_every_slice(x, data, **level):
    """Return the mean square error of inner slices left out by refits, and the mean variance."""
    squares, left = [], []
    unit = LevelBars(np.ones(2), np.ones(2), np.ones((2, 2)))
    for place in range(1, x.size - 1):
        other = trained(np.delete(x, place), np.delete(data, place, 0), **level)
        query = [x[[place]], RUNS]
        squares.append((other.predict(query) - data[place]) ** 2)
        left.append(variance_on_grid(unit, other, query)[0, 0])
    return np.mean(squares), np.mean(left)


def power_of_refits(x, data, **level):
    """Return the power of the variance with which errors grow when every second slice is lost."""
    near = miss_every_slice(x, data, **level)
    far = np.mean([miss_every_slice(x[s::2], data[s::2], **level) for s in (0, 1)], axis=0)
    return np.log(far[0] / near[0]) / np.log(far[1] / near[1])


def test_errors_grow_as_those_of_refits_to_thinned_data():
    x = np.sort(np.random.default_rng(4).uniform(0, 39, 26))
    data = drawn(ROUGH, places=x)
    model, query = trained(x, data), (x[:-1] + x[1:]) / 2
    plain, known = plain_bars(), with_growth(plain_bars(), model, 0)
    wider = (variance_on_grid(known, model, [query, RUNS]))[:, 0]
    before = (variance_on_grid(plain, model, [query, RUNS]))[:, 0]
    system = np.linalg.inv(gram(SMOOTH, x, x) + 1e-4 * np.eye(x.size))
    usual = 1.5 * 0.5 / np.diag(system)  # the variance of every slice, if left out
    power = power_of_refits(x, data)
    assert 0.05 < power < 0.6
    expected = np.maximum(np.minimum(usual[:-1], usual[1:]) / before, 1.0) ** (1 - power)
    np.testing.assert_allclose(wider / before, expected, rtol=0.03)  # like factors are not kept
    assert known.growth[1] is None


def test_the_ends_and_what_lies_beyond_stay_as_they_are():
    model, x = trained(HALVES[::2], drawn(ROUGH)[::2]), HALVES[::2]
    known = with_growth(plain_bars(), model, 0)
    query = [np.array([x[0] - 3.0, x[0] - 0.1, x[-1] + 0.2]), RUNS]
    plain = variance_on_grid(plain_bars(), model, query)
    np.testing.assert_allclose(variance_on_grid(known, model, query), plain, rtol=1e-12)


@pytest.mark.parametrize(("truth", "kernel"), [(SMOOTH, ROUGH), (SMOOTH, Kernel("matern32", 6.0))])
def test_where_errors_fall_faster_than_the_kernel_says_nothing_changes(truth, kernel):
    bars = plain_bars()
    assert with_growth(bars, trained(HALVES[::2], drawn(truth)[::2], kernel), 0) is bars


def test_few_slices_and_many_tell_nothing(monkeypatch):
    data, bars = drawn(ROUGH)[::2], plain_bars()
    few = trained(HALVES[: 2 * LEAST - 2 : 2], data[: LEAST - 1])
    assert with_growth(bars, few, 0) is bars
    enough = trained(HALVES[: 2 * LEAST : 2], data[:LEAST])
    assert with_growth(bars, enough, 0) is not bars
    white = np.random.default_rng(1).standard_normal(data.shape)
    for long in (trained(HALVES[::2], data), trained(HALVES[::2], white, Kernel("cubic"), 0.0)):
        assert with_growth(bars, long, 0) is not bars
        monkeypatch.setattr("dkrls_cli.cascade.errorbars.growth.LONG", 39)
        assert with_growth(bars, long, 0) is bars
        monkeypatch.undo()


def test_exact_data_has_no_error_to_grow():
    bars = plain_bars()
    assert with_growth(bars, trained(HALVES[::2], np.zeros((40, 40))), 0) is bars


def test_a_circle_has_no_ends():
    ring = np.arange(0.0, 360.0, 9.0)
    data = drawn(Kernel("matern12", 60.0, period=360.0), places=ring)
    smooth = Kernel("matern52", 60.0, period=360.0)
    scales = [
        with_growth(plain_bars(), trained(ring, np.roll(data, by, 0), smooth), 0).growth[0]
        for by in (0, 13)
    ]
    middles = ring + 4.5
    found = [scale.at(middles, 360.0) for scale in scales]
    assert found[0].min() > 1.5
    np.testing.assert_allclose(found[0], found[1], rtol=0.05)  # even steps: alike everywhere


@pytest.mark.parametrize("kernel", [Kernel("matern32", 6.0), SMOOTH])
def test_the_band_holds_half_way_where_data_is_rougher_than_the_kernel(kernel):
    truth, inner = drawn(ROUGH), np.s_[3:-3:2]
    model = trained(HALVES[::2], truth[::2], kernel, 1e-6)
    bars, query = calibrate(model), [HALVES[inner], RUNS]
    held = [
        coverage90(truth[inner], model.predict(query), variance_on_grid(known, model, query))
        for known in (replace(bars, growth=()), bars)
    ]
    assert held[0] < 0.75
    assert 0.88 < held[1] < 0.97


@pytest.mark.parametrize("smooth", [False, True])
def test_members_spread_as_wide_as_these_bars(smooth):
    model = trained(HALVES[::2], drawn(ROUGH)[::2])
    bars, query = with_growth(plain_bars(), model, 0), [np.array([2.5, 7.5, 7.9]), RUNS[:30]]
    draw = bars.deviations(model, query, smooth=smooth, seed=3)
    spread = np.mean([draw(member) ** 2 for member in range(60)], axis=(0, 2))
    variance = variance_on_grid(bars, model, query, smooth=smooth).mean(axis=1)
    np.testing.assert_allclose(spread, variance, rtol=0.12)
    plain = variance_on_grid(plain_bars(), model, query, smooth=smooth).mean(axis=1)
    assert (variance > 1.5 * plain).all()


@pytest.mark.parametrize(("sigma", "grows"), [(24.0, True), (0.5, False)])
def test_half_way_between_two_samples_a_share_of_leaving_one_out_is_open(sigma, grows):
    """At least: a short kernel leaves more."""
    x, ridge = np.array([3.0, 5.0]), 1e-6
    kernel = Kernel("matern32", sigma)
    model = trained(x, drawn(ROUGH, places=x), kernel=kernel, ridge=ridge)
    inverse = np.linalg.inv(gram(kernel, x, x) + ridge * np.eye(2))
    known = with_growth(plain_bars(), model, 0)
    places = np.array([3.0, 3.5, 4.0, 4.5, 5.0])
    wide = variance_on_grid(known, model, [places, RUNS])[:, 0]
    plain = variance_on_grid(plain_bars(), model, [places, RUNS])[:, 0]
    if grows:
        assert wide[2] == pytest.approx(0.5 * 1.5 * 0.04 / inverse[0, 0])
        assert (wide[1:4] > 1.5 * plain[1:4]).all()
    else:
        assert wide == pytest.approx(plain)
    assert (wide[[0, 4]] == 0).all()


def test_two_samples_on_a_circle_stay_as_they_are():
    x = np.array([0.0, 5.0])
    kernel = Kernel("matern32", 24.0, period=10.0)
    model = trained(x, drawn(ROUGH, places=x), kernel=kernel)
    assert with_growth(plain_bars(), model, 0).growth == ()
