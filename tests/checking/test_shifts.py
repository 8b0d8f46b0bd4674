import numpy as np
import pytest

from dkrls_cli.checking.choice import CheckAxis, choose_predictor
from dkrls_cli.checking.shifts import find_shifts


def field(times, side, seed=0):
    """Return waves that travel over a square of places, with weather and noise."""
    rng = np.random.default_rng(seed)
    t, y, x = np.ix_(np.arange(times), np.arange(side), np.arange(side))
    weather = np.cumsum(rng.normal(size=times))[:, None, None]
    waves = 15 + 4 * np.sin(t / 5 + x / 6 - y / 5) + 0.3 * weather
    return waves + 0.05 * rng.normal(size=(times, side, side))


def shifts(values, along=0, used=None):
    used = ~np.isnan(values) if used is None else used
    axes = [CheckAxis(np.arange(float(n))) for n in values.shape]
    predictor = choose_predictor(values, used, axes, [along], near=True)
    return find_shifts(values, used, predictor, along)


def test_a_steady_field_has_none():
    assert not shifts(field(60, 8)).any()
    assert not shifts(field(11, 8)).any()


@pytest.mark.parametrize("along", [0, 1, 2])
def test_neighbours_that_jump_at_other_times_are_both_told(along):
    values = field(60, 8)
    truth = np.zeros(values.shape)
    truth[40:, 3, 3] = truth[10:30, 4, 4] = truth[45:, 3, 4] = 30.0
    truth[:20, 6, 1] = -20.0
    found = shifts(np.moveaxis(values + truth, 0, along), along)
    np.testing.assert_array_equal(np.moveaxis(found, along, 0) != 0, truth != 0)
    np.testing.assert_allclose(np.moveaxis(found, along, 0), truth, atol=1.5)


def test_gaps_and_cells_that_are_bad_already_do_not_matter():
    values, rng = field(60, 8), np.random.default_rng(5)
    values[40:, 3, 3] += 30.0
    values[:, 7, :3] = np.nan  # land
    values[rng.random(values.shape) < 0.2] = np.nan
    used = ~np.isnan(values)
    used[20, 5] = False
    values[20, 5] += 1e6
    found = shifts(values, used=used) != 0
    assert found[40:, 3, 3].all()
    assert found.sum() == 20


@pytest.mark.parametrize("seed", range(4))
def test_few_series_of_twelve_steps(seed):
    values = field(12, 9, seed)
    values[7:, 2, 6] += 25.0
    found = shifts(values) != 0
    assert found[7:, 2, 6].all()
    assert found.sum() == 5


@pytest.mark.parametrize("seed", range(3))
def test_spikes_are_no_jumps_not_even_of_short_series(seed):
    values, rng = field(12, 16, seed), np.random.default_rng(seed)
    spikes = (rng.random(values.shape) < 0.03) * rng.choice([-25.0, 25.0], values.shape)
    assert not shifts(values + spikes).any()
