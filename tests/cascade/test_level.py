"""Levels and their checks: ridges, and coordinates that fit the data."""

import dataclasses
import math

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level, check_axis, check_ridges, checked_coordinates
from dkrls_cli.errors import InputError, SettingError


def level_of(period: float | None = None, ridge: float = 0.0) -> Level:
    return Level("time", Kernel(sigma=2.0, period=period), ridge)


@pytest.mark.parametrize("ridge", [-1.0, -1e-300, math.nan, math.inf])
def test_a_ridge_is_a_finite_number_0_or_above(ridge: float) -> None:
    with pytest.raises(SettingError, match=f"Invalid ridge {ridge} of level 'time'.*0 or above"):
        level_of(ridge=ridge)
    assert level_of(ridge=0.0).ridge == 0.0


def test_a_level_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        level_of().ridge = 1.0


@pytest.mark.parametrize(
    ("coordinates", "period", "message"),
    [
        ([0, 7, 2, 7], None, "Coordinates 1 and 3 of level 'time' are the same: 7 and 7"),
        ([0.0, 1, 2, -0.0], None, "Coordinates 0 and 3 of level 'time' are the same"),
        ([10, 90, 180, 370], 360.0, "0 and 3 of .* same place on the circle: 10 and 370"),
        ([0, 90, 180, 360], 360.0, "0 and 3 of .* same place on the circle: 0 and 360"),
        ([0.1, 90, 180, 360.1], 360.0, "0 and 3 of .* same place on the circle"),
        ([0, 1, math.nan, 3], None, "coordinates of level 'time' hold 1 values.*not finite.*nan"),
        ([0, math.inf, 2, -math.inf], None, "hold 2 values that are not finite, the first inf"),
        (["a", "b", "c", "d"], None, "coordinates of level 'time' must be real numbers"),
        ([[0, 1], [2, 3]], None, r"must be a vector, got shape \(2, 2\)"),
    ],
)
def test_unusable_coordinates_are_refused(
    coordinates: list, period: float | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        checked_coordinates([coordinates], [level_of(period)], (4,))


def test_coordinates_are_copied_and_read_only() -> None:
    given = np.array([3.0, 1.0, 2.0])
    (axis,) = checked_coordinates([given], [level_of()], (3,))
    given[0] = 9.0
    assert axis.tolist() == [3.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        axis[0] = 1.0
    (whole,) = checked_coordinates([range(3)], [level_of()], (3,))
    assert whole.dtype == np.float64


@pytest.mark.parametrize("count", [3, 5])
def test_there_is_one_coordinate_per_sample(count: int) -> None:
    with pytest.raises(InputError, match=f"Level 'time' has {count} coordinates for 4 samples"):
        checked_coordinates([range(count)], [level_of()], (4,))


@pytest.mark.parametrize(("axes", "levels"), [(1, 2), (2, 1), (3, 2), (2, 3), (3, 3)])
def test_there_is_one_axis_and_one_level_per_axis_of_the_data(axes: int, levels: int) -> None:
    message = f"Values with 2 axes need as many coordinates and levels, got {axes} and {levels}"
    with pytest.raises(SettingError, match=message):
        checked_coordinates([range(4)] * axes, [level_of()] * levels, (4, 4))


def test_the_circle_of_the_kernel_decides_what_is_the_same_place() -> None:
    turned = np.array([0.0, 5.0, 10.0])
    check_axis(turned, level_of())
    with pytest.raises(InputError, match=r"0 and 2 .* the same place on the circle"):
        check_axis(turned, level_of(period=10.0))


@pytest.mark.parametrize("ridge", [-1.0, math.nan, math.inf])
def test_a_joint_ridge_is_a_finite_number_0_or_above(ridge: float) -> None:
    with pytest.raises(SettingError, match=f"Invalid joint ridge {ridge}"):
        check_ridges([level_of()], ridge)


def test_a_joint_ridge_stands_alone() -> None:
    check_ridges([level_of(), level_of()], 0.0)
    check_ridges([level_of(ridge=0.5)], None)
    with pytest.raises(SettingError, match=r"Level 'time' has ridge 0\.5 beside a joint ridge"):
        check_ridges([level_of(), level_of(ridge=0.5)], 1.0)


def test_a_spline_has_no_ridge() -> None:
    assert Level("x", Kernel("cubic")).ridge == 0.0
    with pytest.raises(SettingError, match=r"ridge 0.1 of level 'x'. A cubic spline passes"):
        Level("x", Kernel("cubic"), 0.1)


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("gaussian", warp="log")])
def test_splines_and_warps_stand_under_no_joint_ridge(kernel: Kernel) -> None:
    check_ridges([Level("x", kernel)], None)
    with pytest.raises(SettingError, match=f"The kernel '{kernel.name}' of level 'x' needs a comp"):
        check_ridges([Level("y"), Level("x", kernel)], 0.1)


def test_a_warped_level_needs_coordinates_above_0() -> None:
    level = Level("x", Kernel("gaussian", warp="sqrt"))
    check_axis(np.array([2.0, 1.0]), level)
    with pytest.raises(InputError, match="The sqrt of coordinate 0 cannot be taken"):
        check_axis(np.array([2.0, 0.0]), level)
