import numpy as np

from dkrls_cli.checking.runs import find_runs


def noise(rows=80, columns=6, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def test_a_run_is_told_from_its_second_cell_to_its_last():
    series = noise()
    series[20:30, 3] = series[20, 3]
    found = find_runs(series)
    assert np.argwhere(found).tolist() == [[row, 3] for row in range(21, 30)]


def test_a_run_needs_four_values():
    series = noise()
    series[20:23, 3] = series[20, 3]
    assert not find_runs(series).any()
    series[20:24, 3] = series[20, 3]
    assert find_runs(series).sum() == 3


def test_a_run_may_tremble_and_reach_the_end():
    series = noise()
    series[70:, 1] = series[70, 1] + 1e-4 * np.arange(10)
    assert find_runs(series)[71:, 1].all()


def test_runs_at_a_bound_are_natural():
    rain = np.maximum(noise(300, 6), 0.0)
    rain[100:110, 2] = 0.0
    assert not find_runs(rain).any()


def test_runs_of_coarse_data_are_natural():
    series = np.round(np.cumsum(0.3 * noise(400, 8), axis=0))
    assert find_runs(series).mean() < 0.01
    series[100:230, 3] = series[100, 3]
    assert find_runs(series)[102:230, 3].all()


def test_all_series_standing_still_is_natural():
    series = noise()
    series[20:30] = series[20]
    assert not find_runs(series).any()


def test_constant_missing_and_short_series_have_no_runs():
    assert not find_runs(np.ones((20, 3))).any()
    assert not find_runs(np.full((20, 3), np.nan)).any()
    assert not find_runs(np.ones((4, 3))).any()


def test_a_slow_turn_of_rounded_data_is_natural():
    series = np.round(np.sin(np.arange(200) / 60)[:, None] + np.arange(5) / 7, 3)
    assert not find_runs(series).any()


def test_a_single_series_can_be_stuck():
    series = noise(60, 1)
    series[20:30] = series[20]
    assert find_runs(series).sum() == 9
