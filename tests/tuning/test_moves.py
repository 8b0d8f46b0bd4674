"""Settings to start a search from, and its steps."""

import math

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.gaps.field import Grouping
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.moves import (
    LevelConstraint,
    Move,
    list_group_starts,
    list_moves,
    list_starts,
    sigma_bounds,
)

BOUNDS = ((0.5, 40.0), (0.1, 9.0))
SETTING = JointSetting((Kernel("matern52", 3.0, None, 1.0), Kernel("matern32", 2.0, 12.0)), 1e-3)
WIDTHS = {"gaussian": 1.0, "matern52": 1.3, "matern32": 1.7, "matern12": 4.0}


# --- moves --------------------------------------------------------------------------------------


def test_a_move_multiplies_sigmas_within_bounds():
    move = Move((0, 1), BOUNDS, 3.0)
    assert [k.sigma for k in move.apply(SETTING, 1).kernels] == [9.0, 6.0]
    back = move.apply(SETTING, -1)
    assert [k.sigma for k in back.kernels] == pytest.approx([1.0, 2 / 3])
    assert back.ridge == 1e-3
    far = Move((0, 1), BOUNDS, 100.0)
    assert [k.sigma for k in far.apply(SETTING, 1).kernels] == [40.0, 9.0]
    assert [k.sigma for k in far.apply(SETTING, -1).kernels] == [0.5, 0.1]


def test_a_move_changes_its_own_levels_only():
    moved = Move((1,), BOUNDS, 3.0).apply(SETTING, 1)
    assert moved.kernels[0] is SETTING.kernels[0]
    assert moved.kernels[1] == Kernel("matern32", 6.0, 12.0)


@pytest.mark.parametrize(
    ("ridge", "sign", "moved"),
    [(1e-3, 1, 9e-3), (1e-3, -1, 1e-3 / 9), (5.0, 1, 10.0), (2e-13, -1, 1e-13)],
)
def test_a_move_multiplies_the_ridge_within_bounds(ridge, sign, moved):
    found = Move((), BOUNDS, ridge_factor=9.0).apply(JointSetting(SETTING.kernels, ridge), sign)
    assert found.ridge == pytest.approx(moved, rel=1e-9, abs=0)
    assert found.kernels == SETTING.kernels


@pytest.mark.parametrize("ridge", [0.0, 20.0])
def test_a_ridge_that_is_given_stays_though_it_is_out_of_bounds(ridge):
    assert Move((0,), BOUNDS, 3.0).apply(JointSetting(SETTING.kernels, ridge), 1).ridge == ridge


@pytest.mark.parametrize("rescaled", [False, True])
def test_a_move_goes_to_the_next_family(rescaled):
    move = Move((0,), BOUNDS, families=True, rescaled=rescaled)
    names = list(FAMILIES)
    for place, name in enumerate(names):
        setting = JointSetting((Kernel(name, 3.0), SETTING.kernels[1]), 1e-3)
        for sign in (1, -1):
            kernel = move.apply(setting, sign).kernels[0]
            neighbour = names[min(max(place + sign, 0), 3)]
            assert kernel.family == neighbour
            width = WIDTHS[neighbour] / WIDTHS[name] if rescaled else 1.0
            assert kernel.sigma == pytest.approx(3.0 * width)


def test_a_move_adds_or_removes_the_constant():
    move = Move((0, 1), BOUNDS, constants=True)
    assert [k.constant for k in move.apply(SETTING, 1).kernels] == [1.0, 1.0]
    assert [k.constant for k in move.apply(SETTING, -1).kernels] == [0.0, 0.0]
    assert move.apply(SETTING, 1).kernels[1].sigma == 2.0


def test_everything_that_is_open_has_a_move():
    moves = list(list_moves([LevelConstraint()] * 2, None, BOUNDS, 1.7))
    assert moves == [
        Move((), BOUNDS, ridge_factor=1.7**2),
        Move((0, 1), BOUNDS, 1.7),
        Move((0, 1), BOUNDS, families=True, rescaled=True),
        Move((0,), BOUNDS, 1.7),
        Move((0,), BOUNDS, families=True, rescaled=True),
        Move((0,), BOUNDS, constants=True),
        Move((1,), BOUNDS, 1.7),
        Move((1,), BOUNDS, families=True, rescaled=True),
        Move((1,), BOUNDS, constants=True),
    ]


def test_what_is_given_has_no_move():
    whole = LevelConstraint("matern32", 2.0)
    assert list(list_moves([whole, whole], 0.1, BOUNDS, 3.0)) == []
    family = LevelConstraint("matern32")
    assert list(list_moves([whole, family], 0.1, BOUNDS, 3.0)) == [
        Move((1,), BOUNDS, 3.0),
        Move((1,), BOUNDS, constants=True),
    ]
    sigma = LevelConstraint(sigma=2.0)
    assert list(list_moves([sigma, whole], 0.1, BOUNDS, 3.0)) == [
        Move((0,), BOUNDS, families=True, rescaled=False),
        Move((0,), BOUNDS, constants=True),
    ]
    two = [LevelConstraint(), family]
    together = [move for move in list_moves(two, 0.1, BOUNDS, 3.0) if len(move.axes) > 1]
    assert together == [Move((0, 1), BOUNDS, 3.0)]


def test_a_kernel_that_is_given_has_no_constant_added():
    assert LevelConstraint("gaussian", 1.0).constant == 0.0
    assert [c.constant for c in (LevelConstraint("gaussian"), LevelConstraint(sigma=1.0))] == [1, 1]


# --- bounds and starts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coordinates", "period", "bounds"),
    [
        (np.arange(0.0, 21.0, 2.0), None, (0.6, 80.0)),
        (np.arange(0.0, 20.0, 2.0), 20.0, (0.6, 80.0 / math.pi)),
        (np.arange(0.0, 5.0), 400.0, (0.3, 16.0)),  # a short part of a circle
        (np.array([7.0]), None, (0.3, 4.0)),
    ],
)
def test_sigmas_are_bounded_by_steps_and_extent(coordinates, period, bounds):
    assert sigma_bounds(coordinates, period) == pytest.approx(bounds)


def test_starts_are_rough_with_noise_and_smooth_without():
    axes = [np.arange(0.0, 20.0, 2.0), np.arange(9.0)]
    rough, smooth = list_starts(axes, [LevelConstraint(), LevelConstraint(period=9.0)], None)
    found = [([k.sigma for k in s.kernels], s.ridge) for s in rough]
    expected = [
        (pytest.approx([2.0 * reach * 1.3, reach * 1.3]), ridge)
        for reach in (2.0, 6.0, 18.0)
        for ridge in (0.1, 1e-3)
    ]
    assert found == expected
    found = [([k.sigma for k in s.kernels], s.ridge) for s in smooth]
    assert found == [([12.0, 6.0], 1e-9), ([36.0, 18.0], 1e-9)]
    assert {k.family for s in rough for k in s.kernels} == {"matern52"}
    assert {k.family for s in smooth for k in s.kernels} == {"gaussian"}
    assert [k.period for k in rough[0].kernels] == [None, 9.0]
    assert [k.constant for k in rough[0].kernels] == [1.0, 1.0]


def test_starts_keep_what_is_given():
    axes = [np.arange(9.0)] * 3
    own = Kernel("matern12", 5.0, constant=0.3)
    given = [LevelConstraint("matern12"), LevelConstraint(sigma=2.5), LevelConstraint(kernel=own)]
    rough, smooth = list_starts(axes, given, 0.05)
    assert len(rough) == 3
    for setting in (*rough, *smooth):
        assert setting.ridge == 0.05
        assert setting.kernels[0].family == "matern12"
        assert setting.kernels[1].sigma == 2.5
        assert setting.kernels[2] is own
    assert rough[0].kernels[0].sigma == 8.0  # two steps, as wide as a Gaussian of two


def test_there_is_one_start_where_all_is_given_and_none_twice():
    given = [LevelConstraint("gaussian", 2.0)] * 2
    assert list_starts([np.arange(9.0)] * 2, given, 0.05) == [
        [JointSetting((Kernel("gaussian", 2.0),) * 2, 0.05)]
    ]
    rough, smooth = list_starts([np.arange(9.0)] * 2, given, None)
    assert [s.ridge for s in rough] == [0.1, 1e-3]
    assert [s.ridge for s in smooth] == [1e-9, 1e-9]


# --- groups -------------------------------------------------------------------------------------

GROUPING = Grouping(((0, 1),))
TOGETHER = JointSetting((Kernel("matern12", 3.0), Kernel("matern12", 2.0)), 1e-3, GROUPING)


def test_levels_of_a_group_move_together():
    three = (*BOUNDS, (1.0, 2.0))
    moves = list(list_moves([LevelConstraint()] * 3, None, three, 1.7, [(0, 1)]))
    assert moves == [
        Move((), three, ridge_factor=1.7**2),
        Move((0, 1, 2), three, 1.7),
        Move((0, 1), three, 1.7),
        Move((0, 1), three, families=True, rescaled=True),
        Move((), three, second=True),
        Move((0, 1), three, constants=True),
        Move((0,), three, 1.7),
        Move((1,), three, 1.7),
        Move((2,), three, 1.7),
        Move((2,), three, families=True, rescaled=True),
        Move((2,), three, constants=True),
    ]
    alone = list(list_moves([LevelConstraint()] * 2, 0.1, BOUNDS, 1.7, [(0, 1)]))
    assert alone.count(Move((0, 1), BOUNDS, 1.7)) == 1


def test_what_is_given_of_a_group_has_no_move():
    whole = [LevelConstraint("matern12", 2.0)] * 2
    assert list(list_moves(whole, 0.1, BOUNDS, 3.0, [(0, 1)])) == []
    families = [LevelConstraint("matern12"), LevelConstraint("matern12")]
    moves = list(list_moves(families, 0.1, BOUNDS, 3.0, [(0, 1)]))
    assert not any(move.families for move in moves)
    assert Move((), BOUNDS, second=True) in moves
    sigmas = [LevelConstraint(sigma=2.0), LevelConstraint(sigma=3.0)]
    moves = list(list_moves(sigmas, 0.1, BOUNDS, 3.0, [(0, 1)]))
    assert moves == [
        Move((0, 1), BOUNDS, families=True, rescaled=False),
        Move((0, 1), BOUNDS, constants=True),
    ]


def test_a_move_gives_a_second_scale_more_or_less_of_the_variance():
    move, setting, shares = Move((), BOUNDS, second=True), TOGETHER, []
    assert move.apply(setting, -1) == setting
    for _ in range(5):
        setting = move.apply(setting, 1)
        shares.append(setting.grouping.share)
        assert setting.grouping.factor == 0.2
        assert (setting.kernels, setting.ridge) == (TOGETHER.kernels, 1e-3)
    assert shares == [0.15, 0.4, 0.7, 0.7, 0.7]
    for _ in range(3):
        setting = move.apply(setting, -1)
    assert setting == TOGETHER


def test_the_ridge_of_a_group_is_not_tiny():
    move = Move((), BOUNDS, ridge_factor=9.0)
    low = JointSetting(TOGETHER.kernels, 2e-5, GROUPING)
    assert move.apply(low, -1).ridge == pytest.approx(1e-5)
    assert move.apply(low, -1).grouping == GROUPING
    given = JointSetting(TOGETHER.kernels, 1e-9, GROUPING)
    assert Move((0,), BOUNDS, 3.0).apply(given, 1).ridge == 1e-9  # one that is given stays


def test_groups_start_rough_with_short_to_long_sigmas():
    axes = [np.arange(0.0, 20.0, 2.0), np.arange(9.0), np.arange(5.0)]
    starts = list_group_starts(axes, [LevelConstraint()] * 3, None, ((0, 1),))
    found = [[([k.sigma for k in s.kernels], s.ridge) for s in kind] for kind in starts]
    assert found == [
        [(pytest.approx([2.0 * reach, reach, reach]), ridge) for reach in (6.0, 24.0, 96.0)]
        for ridge in (0.1, 0.1 / 9)
    ]
    assert {k.family for kind in starts for s in kind for k in s.kernels} == {"matern12"}
    assert all(s.grouping == GROUPING for kind in starts for s in kind)


def test_groups_have_one_start_for_each_ridge_where_kernels_are_given():
    given = [LevelConstraint("matern32", 2.0)] * 2
    starts = list_group_starts([np.arange(9.0)] * 2, given, None, ((0, 1),))
    kernels = (Kernel("matern32", 2.0),) * 2
    assert starts == [[JointSetting(kernels, ridge, GROUPING)] for ridge in (0.1, 0.1 / 9)]


def test_the_ridges_of_a_group_are_one_step_of_the_first_round_apart():
    """To the last bit: a setting that is reached from both is tried once."""
    levels, axes = [LevelConstraint()] * 2, [np.arange(9.0)] * 2
    (first, *_), (second, *_) = list_group_starts(axes, levels, None, ((0, 1),))
    moves = list_moves(levels, None, BOUNDS, 3.0, ((0, 1),))
    (by_ridge,) = [move for move in moves if move.ridge_factor > 1]
    assert by_ridge.apply(first, -1) == second


def test_kernels_of_a_group_start_with_one_family_and_constant():
    given = [LevelConstraint("matern52"), LevelConstraint("matern52", 2.0), LevelConstraint()]
    (starts,) = list_group_starts([np.arange(9.0)] * 3, given, 0.05, ((0, 1),))
    assert len(starts) == 3
    for start in starts:
        one, other, last = start.kernels
        assert (one.family, other.family, last.family) == ("matern52", "matern52", "matern12")
        assert one.constant == other.constant
        assert other.sigma == 2.0
        assert start.ridge == 0.05


# --- the sphere ---------------------------------------------------------------------------------

GLOBE = Grouping(((0, 1),), sphere=True)


def test_latitude_and_longitude_of_a_sphere_move_together_only():
    bounds = ((0.5, 9.0), (0.3, 7.0), (1.0, 2.0))
    shared = ((0.3, 9.0), (0.3, 9.0), (1.0, 2.0))
    moves = list(list_moves([LevelConstraint()] * 3, None, bounds, 1.7, [(0, 1)], sphere=True))
    assert moves == [
        Move((), shared, ridge_factor=1.7**2),
        Move((0, 1, 2), shared, 1.7),
        Move((0, 1), shared, 1.7),
        Move((0, 1), shared, families=True, rescaled=True),
        Move((), shared, second=True),
        Move((0, 1), shared, constants=True),
        Move((2,), shared, 1.7),
        Move((2,), shared, families=True, rescaled=True),
        Move((2,), shared, constants=True),
    ]


def test_a_sphere_keeps_one_sigma_through_all_moves():
    axes = [np.arange(-80.0, 90, 20), np.arange(0.0, 360, 5), np.arange(6.0)]
    (start, *_), *_ = list_group_starts(axes, [LevelConstraint()] * 3, None, ((0, 1),), sphere=True)
    assert start.grouping == GLOBE
    bounds = ((0.5, 90.0), (0.3, 70.0), (1.0, 2.0))
    for move in list_moves([LevelConstraint()] * 3, None, bounds, 3.0, [(0, 1)], sphere=True):
        for sign in (1, -1):
            setting = start
            for _ in range(4):
                setting = move.apply(setting, sign)
                assert setting.kernels[0].sigma == setting.kernels[1].sigma
                assert setting.kernels[0].family == setting.kernels[1].family
                assert setting.grouping.sphere


def test_a_sphere_starts_with_the_steps_of_its_first_axis():
    axes = [np.arange(-80.0, 90, 20), np.arange(0.0, 360, 5)]
    starts = list_group_starts(axes, [LevelConstraint()] * 2, 0.1, ((0, 1),), sphere=True)
    found = [[k.sigma for k in setting.kernels] for setting in starts[0]]
    assert found == [pytest.approx([20.0 * reach] * 2) for reach in (6.0, 24.0, 96.0)]
