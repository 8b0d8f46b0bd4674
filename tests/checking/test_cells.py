import numpy as np
import pytest

from dkrls_cli.checking import cells
from dkrls_cli.checking.cells import check_cells, worst_of_neighbours
from dkrls_cli.checking.choice import CheckAxis, choose_predictor
from dkrls_cli.checking.scales import Limits


@pytest.fixture(scope="module")
def field():
    x, t = np.meshgrid(np.arange(25) / 5, np.arange(40) / 5, indexing="ij")
    return np.sin(x) * np.cos(t) + 0.02 * np.random.default_rng(0).normal(size=(25, 40))


def run(values, rate=1e-3, floor=0.0, suspects=None):
    used = ~np.isnan(values)
    axes = [CheckAxis(np.arange(float(n))) for n in values.shape]
    predictor = choose_predictor(values, used, axes, near=True)
    return check_cells(values, used, predictor, rate, floor, suspects)


def test_good_cells_are_left_alone(field):
    found = run(field)
    assert found.bad.mean() < 5e-3
    known = np.abs(found.residual) / found.std
    assert np.median(known) == pytest.approx(0.67, abs=0.1)


def test_bad_cells_are_found_and_their_neighbours_are_not(field):
    values = field.copy()
    bad = np.zeros(field.shape, bool)
    bad[5, 5] = bad[5, 6] = bad[12, 20] = bad[0, 0] = bad[24, 39] = bad[13, 22] = True
    values[bad] += 3.0
    values[8, 8] = np.nan
    found = run(values)
    assert (found.bad & bad).sum() == bad.sum()
    assert (found.bad & ~bad).sum() <= 2
    assert found.residual[12, 20] == pytest.approx(3.0, abs=0.2)
    assert np.isnan(found.residual[8, 8])
    assert not found.bad[8, 8]


@pytest.mark.parametrize("seed", [0, 9])
def test_two_neighbours_that_are_off_alike_are_found_and_good_ones_beside_them_are_not(seed):
    walk = np.random.default_rng(seed).normal(size=(30, 20)).cumsum(axis=0).cumsum(axis=1)
    bad = np.zeros(walk.shape, bool)
    for row, column in [(5, 5), (12, 14), (20, 8), (25, 16), (8, 11), (17, 3)]:
        bad[row, column : column + 2] = True
    found = run(walk + bad * 5 * walk.std())
    assert found.bad[bad].all()
    assert found.bad[~bad].sum() <= 1


def test_good_cells_of_heavy_tails_are_left_alone_and_those_beyond_are_found():
    rng = np.random.default_rng(7)
    values = np.exp(2 * rng.normal(size=(30, 80)))
    assert run(values).bad.mean() < 1e-3
    bad = rng.random(values.shape) < 0.01
    values[bad] = 3e4
    found = run(values)
    assert found.bad[bad].all()
    assert found.bad[~bad].mean() < 1e-3


def test_suspects_that_agree_with_the_others_come_back(field):
    suspects = np.random.default_rng(1).random(field.shape) < 0.05
    found = run(field, suspects=suspects)
    assert found.bad.mean() < 5e-3


def test_no_cell_is_bad_within_rounding(field):
    assert not run(np.round(field, 1), floor=1.0).bad.any()


def test_the_worst_of_neighbours_is_told_by_size():
    score = np.array([2.0, 9.0, 0.5, 0.5, 3.0, 2.0])
    size = np.array([5.0, 4.0, 0.1, 0.1, 1.0, 7.0])
    assert np.flatnonzero(worst_of_neighbours(score, size, [0])).tolist() == [0, 5]
    score[0] = 0.5  # does not count, and yet may be what makes the next one look bad
    assert np.flatnonzero(worst_of_neighbours(score, size, [0])).tolist() == [5]
    apart = np.array([2.0, 0.0, 0.0, 2.0, 0.0])
    assert np.flatnonzero(worst_of_neighbours(apart, apart, [0])).tolist() == [0, 3]
    both = np.stack([apart, 2 * apart])
    assert worst_of_neighbours(both, both, [0]).sum() == 2
    assert worst_of_neighbours(both, both, [1]).sum() == 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_cell_far_from_smooth_data_is_bad_whatever_the_tail_of_tiny_residuals(seed):
    """Residuals of data without noise differ by orders of magnitude, and tell no limit."""
    rng = np.random.default_rng(seed)
    lat, lon, t = np.meshgrid(
        np.arange(18) / 3, np.arange(18) / 3, np.arange(12) / 5, indexing="ij"
    )
    values = np.cos(lat) * np.cos(lon + t) + np.cos(lat) ** 2 * np.sin(2 * lon) * np.cos(t)
    bad = rng.random(values.shape) < 0.004
    values[bad] += rng.choice([-3, 3], bad.sum())
    found = run(values)
    assert found.bad[bad].all()
    assert found.std.max() <= 1.0  # never above the spread of the data
    assert found.bad[~bad].mean() < 0.006  # those beside a bad cell that took part are 0.015


def test_far_is_twenty_residuals_and_the_spread_of_the_data(field, monkeypatch):
    values = field.copy()
    values[12, 20] += 3.0
    monkeypatch.setattr(cells, "find_limits", lambda *_: Limits(1e4, 1e4))
    monkeypatch.setattr(cells._Search, "put_back", lambda *_: np.zeros(field.shape, bool))
    assert run(values).bad[12, 20]
    for name in ("_FAR", "_CLEARLY"):
        with monkeypatch.context() as patch:
            patch.setattr(cells, name, 1e6)
            assert not run(values).bad.any()
