import numpy as np
import pytest

import dkrls_cli.checking.survey as survey_module
from dkrls_cli.checking.choice import CheckAxis
from dkrls_cli.checking.survey import (
    DUPLICATE,
    GOOD,
    JUMP,
    MISSING,
    SLICE,
    SPIKE,
    STUCK,
    UNIT,
    survey,
)


def field(times=60, places=12, seed=0):
    """Return a field of waves that travel and weather that places share, with noise."""
    rng = np.random.default_rng(seed)
    t, x = np.arange(times)[:, None], np.arange(places)
    weather = np.cumsum(rng.normal(size=times))[:, None]
    return 15 + 4 * np.sin(t / 5 + x / 6) + 0.3 * weather + 0.1 * rng.normal(size=(times, places))


def run(values, along=0, rate=1e-3, **about):
    axes = [CheckAxis(np.arange(float(n)), **about) for n in values.shape]
    return survey(values, axes, along, rate)


def test_good_data_is_good():
    found = run(field())
    assert found.bad.mean() < 5e-3
    near = np.abs(field() - found.expected) < 4.5 * found.std
    assert near.mean() > 0.99


def test_every_kind_is_told_from_the_others():
    values = field(80, 14)
    truth = np.zeros(values.shape, np.int8)
    values[2, 2] = np.nan
    truth[2, 2] = MISSING
    for cell in [(10, 3), (33, 8), (50, 3), (79, 11)]:
        values[cell] += 8.0
        truth[cell] = SPIKE
    values[20:30, 5] = values[20, 5]
    truth[21:30, 5] = STUCK
    values[60:, 10] += 15.0
    truth[60:, 10] = JUMP
    values[45] += 25.0
    truth[45] = SLICE
    values[52] = values[14]
    truth[52] = DUPLICATE
    values[66:, 1] += 273.15
    truth[66:, 1] = UNIT
    found = run(values)
    assert np.mean(found.flags == truth) > 0.985
    for kind in (SPIKE, STUCK, JUMP, SLICE, DUPLICATE, UNIT, MISSING):
        assert np.mean(found.flags[truth == kind] == kind) > 0.9, kind
    assert found.counts()["stuck"] == 9
    assert found.units[70, 1] == 0
    assert found.units[10, 3] == -1


def test_a_unit_that_changes_half_way_is_the_only_finding():
    values = field()
    values[30:] += 273.15
    found = run(values)
    assert (found.flags[30:] == UNIT).all() or (found.flags[:30] == UNIT).all()
    assert found.bad.sum() < 1.02 * values.size / 2


@pytest.mark.parametrize("seed", range(3))
def test_spikes_are_found_at_a_low_rate_of_false_alarms(seed):
    values = field(seed=seed)
    rng = np.random.default_rng(seed + 10)
    bad = rng.random(values.shape) < 0.02
    spikes = 5 * values.std(axis=0) * rng.choice([-1, 1], values.shape)
    found = run(np.where(bad, values + spikes, values))
    assert np.mean(found.bad[bad]) >= 0.95
    assert np.mean(found.bad[~bad]) < 5e-3


def test_one_slice_one_series_and_constant_data_can_be_checked():
    assert not run(field()[:1]).bad.any()
    series = field(60, 1)
    series[30] += 20
    assert np.argwhere(run(series).bad).tolist() == [[30, 0]]
    assert not run(np.full((9, 5), 3.0)).bad.any()
    spiked = np.full((9, 5), 3.0)
    spiked[4, 2] = 4.0
    assert np.argwhere(run(spiked).bad).tolist() == [[4, 2]]
    assert (run(np.full((4, 4), np.nan)).flags == MISSING).all()
    assert run(field().ravel()[:50], 0).bad.mean() < 0.05


def test_without_a_growing_axis_only_cells_are_checked():
    values = field()
    values[20:30, 5] = values[20, 5]
    found = run(values, None)
    assert set(np.unique(found.flags)) <= {GOOD, SPIKE, UNIT}


def smooth_field(seed: int, times: int = 60, side: int = 8) -> np.ndarray:
    """Return a field that is smooth in space, with a gradient and weather that neighbours share."""
    rng, x = np.random.default_rng(seed), np.arange(side)
    root = np.exp(-((np.subtract.outer(x, x) / 3.0) ** 2))
    weather = np.einsum("ij,tjk,lk->til", root, rng.standard_normal((times, side, side)), root)
    lat = np.linspace(0, 1, side)[:, None]
    season = 10 * lat * np.sin(np.arange(times) / 8)[:, None, None]
    return 20 - 30 * lat + season + weather + 0.02 * rng.standard_normal(weather.shape)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_neighbours_of_series_that_jump_do_not(seed):
    values, rng = smooth_field(seed), np.random.default_rng(seed + 50)
    jumping = np.zeros((8, 8), bool)
    for place in rng.choice(64, 6, replace=False):
        start, sign = rng.integers(20, 45), rng.choice([-1, 1])
        values[start:, place // 8, place % 8] += 40 * sign
        jumping[place // 8, place % 8] = True
    told = (run(values).flags == JUMP).any(axis=0)
    assert not told[~jumping].any()  # 2 to 14 of them were
    assert told[jumping].mean() > 0.8


def unusual_places(seed, times, size=12):
    """Return weather that all places share, on places that differ much from their neighbours."""
    rng = np.random.default_rng(seed)
    y, x = np.ix_(np.arange(size), np.arange(size))
    waves = [
        np.sin(y / 4 + x / 6),
        np.cos(y / 5 - x / 4),
        np.sin((y - x) / 3),
        np.ones((size, size)),
    ]
    weather = np.einsum("tk,kyx->tyx", rng.normal(size=(times, 4)), np.stack(waves))
    coast = np.sin(y / 2 + rng.normal()) + np.sin(x / 1.5 + rng.normal()) > 0.5
    places = 5.0 * coast + 3.0 * (rng.random((size, size)) < 0.05)
    return weather + places + 0.02 * rng.normal(size=weather.shape)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_spikes_among_unusual_places_leave_these_alone(seed):
    values, rng = unusual_places(seed, 40), np.random.default_rng(100 + seed)
    bad = rng.random(values.shape) < 0.02
    sign = rng.choice([-1, 1], values.shape)
    found = run(np.where(bad, values + 5 * values.std() * sign, values))
    assert found.bad[bad].mean() > 0.98
    assert found.bad[~bad].mean() < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_unusual_places_beside_stuck_series_do_not_jump(seed):
    values, rng = unusual_places(seed, 80), np.random.default_rng(seed)
    stuck = np.zeros(values.shape, bool)
    for y, x in rng.integers(2, 10, (4, 2)):
        values[30:45, y, x] = values[30, y, x]
        stuck[31:45, y, x] = True
    found = run(values)
    assert not (found.flags == JUMP).any()
    assert (found.flags[stuck] == STUCK).all()


def test_a_few_series_keep_their_usual_values():
    axes = [CheckAxis(np.arange(60.0)), CheckAxis(np.arange(12.0))]
    used = np.ones((60, 12), bool)
    assert not survey_module._choose_first(field(), used, axes, 0)[1].any()
    many = np.concatenate([field(), field() + 5.0, field(), field() + 9.0, field(), field() - 7], 1)
    axes[1] = CheckAxis(np.arange(72.0))
    _, usual = survey_module._choose_first(many, np.ones(many.shape, bool), axes, 0)
    assert np.allclose(usual, np.median(many, axis=0, keepdims=True))
    assert not survey_module._choose_first(many[:15], many[:15] > -99, axes, 0)[1].any()
    assert not survey_module._choose_first(many, many > -99, axes, None)[1].any()


def rain(seed):
    """Return showers that neighbours share, four fifths of all cells dry."""
    rng, x = np.random.default_rng(seed), np.arange(10)
    root = np.exp(-((np.subtract.outer(x, x) / 2.5) ** 2))
    waves = np.einsum("ij,tjk,lk->til", root, rng.standard_normal((80, 10, 10)), root)
    return np.maximum(waves / waves.std() - 0.8, 0.0) ** 2 * 10


def test_rain_on_dry_days_is_no_fault_but_far_too_much_is():
    values = rain(0)
    assert 0.7 < np.mean(values == 0) < 0.9
    assert run(values).bad.mean() < 5e-3  # a fifth of the cells was flagged
    values[40, 5, 5] += 40 * values.std()
    assert run(values).bad[40, 5, 5]


def test_yes_and_no_are_not_out_of_line():
    values = (field() > 15).astype(float)
    assert not run(values).bad.any()


def test_series_of_two_levels_are_left_alone():
    rng = np.random.default_rng(0)
    values = np.stack([np.repeat(rng.integers(0, 2, 60), 8) * 10.0 for _ in range(6)], 1)
    found = run(values + 0.1 * rng.normal(size=values.shape))
    assert not (found.flags == JUMP).any()


# --- fast changes ---------------------------------------------------------------------------------


def test_a_fast_change_does_not_make_all_before_it_bad():
    """Cells are left out one after the other where a slow rise ends in a fall: 68 in all."""
    rng, t = np.random.default_rng(1), np.arange(300.0)
    values = 20 + 0.01 * rng.normal(size=(300, 6)).cumsum(0) + np.arange(6)
    values[:, 2] += np.interp(t, [100, 160, 168, 300], [0.0, 3.0, -2.0, -2.0])
    values[60:70, 4] += 3.0
    values[200, 1] += 1.0
    found = run(values)
    assert found.bad[60:70, 4].all()
    assert found.bad[200, 1]
    assert found.bad.sum() <= 11 + 12
    back = (found.flags == GOOD) & ~np.isnan(values)
    far = np.abs(values - found.expected) / found.std
    assert far[back].max() < max(found.limits)


# --- coarse values --------------------------------------------------------------------------------


def test_values_rounded_to_a_step_of_their_noise_are_good():
    """Cells of one step step up together, repeat, and are often just what is expected."""
    rng = np.random.default_rng(0)
    slow = (
        10 + 3 * np.sin(np.arange(120) / 20)[:, None] + np.array([0.0, 1.3, 2.6, 3.9, 5.2, 0, 0, 1])
    )
    found = run(np.round(slow + 0.3 * rng.normal(size=slow.shape)))
    assert found.bad.mean() < 2e-3


@pytest.mark.parametrize("seed", [0, 2])
def test_counts_are_good(seed):
    found = run(np.random.default_rng(seed).poisson(1.0, size=(60, 8)).astype(float))
    assert found.bad.mean() < 2e-2  # without rounding 0.6 in one of them


@pytest.mark.parametrize(
    ("numbers", "floor"),
    [
        ([7.0, 8.0, 9.0, 10.0, 12.0], 0.5),  # steps of one
        ([0.1, 0.2, 0.3, 0.4, 0.5], 0.05),
        ([3.0, 4.0], 2.4e-7),  # a constant and a bad cell
        ([3.0, 4.0, 5.0], 3e-7),
        ([0.0, 11.0, 36.0, 91.0], 5.46e-6),  # no whole steps
        ([0.0, 1.0, 50.0, 80.0, 91.0], 5.46e-6),  # whole steps, but hardly one
    ],
)
def test_a_few_values_are_rounded_if_most_lie_a_step_apart(numbers, floor):
    values = np.full((10, 20), numbers[0])
    values.flat[: len(numbers)] = numbers
    assert survey_module._rounding(values) == pytest.approx(floor, rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.03])
def test_smooth_fields_without_noise_are_good_beside_gaps_and_beside_a_few_bad_cells(share):
    rng, t = np.random.default_rng(0), np.arange(12.0)
    lat, lon = np.arange(-60.0, 61, 20), np.arange(0.0, 360, 15)
    y, x = np.radians(lat)[:, None], np.radians(lon)
    field = 12 + np.sin(t / 4)[:, None, None] * np.cos(y) * np.cos(x) + 0.02 * lat[:, None]
    values = field + 1e-6 * rng.normal(size=field.shape)
    bad = rng.random(field.shape) < share
    values[bad] += 1.0
    values[rng.random(field.shape) < 0.05] = np.nan
    bad &= ~np.isnan(values)
    found = survey(values, [CheckAxis(t), CheckAxis(lat), CheckAxis(lon, 360.0)], 0)
    assert found.bad[bad].all()
    assert found.bad[~bad].mean() < 0.02
