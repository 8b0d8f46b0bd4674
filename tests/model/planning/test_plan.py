"""The plan of a fit: settings resolved for the axes of a grid."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli import Kernel, Level, fit
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.settings import DEFAULTS, Settings

EAST = {"units": "degrees_east"}
AXES = (axis_of("lat", [1.0, 2.0, 4.0]), axis_of("lon", np.arange(0.0, 360, 10), EAST))
GRID = Grid(np.random.default_rng(0).standard_normal((3, 36)), AXES)
DAYS = axis_of("time", np.arange("2001-01", "2004-01", dtype="datetime64[M]"))


def test_defaults_leave_everything_open():
    assert Settings() == DEFAULTS
    assert DEFAULTS.given == {}
    assert DEFAULTS.centre is None
    assert DEFAULTS.level_names is None
    plan = plan_fit(AXES)
    assert plan == FitPlan(
        ("lat", "lon"), (LevelRequest("lat"), LevelRequest("lon", period=360.0)), False, None
    )


def test_settings_are_taken_for_all_levels_or_by_dimension():
    plan = plan_fit(AXES, Settings(sigma={"lat": "3.5"}, kernel="matern12", ridge=0.25))
    assert plan.levels[0] == LevelRequest("lat", "matern12", 3.5, 0.25)
    assert plan.levels[1] == LevelRequest("lon", "matern12", None, 0.25, 360.0)
    mixed = plan_fit(AXES, Settings(kernel={"lon": "gaussian"}, ridge={"lon": 0}))
    assert [level.family for level in mixed.levels] == [None, "gaussian"]
    assert [level.ridge for level in mixed.levels] == [None, 0.0]


def test_a_period_is_found_unless_it_is_given():
    def periods(period):
        return [level.period for level in plan_fit(AXES, Settings(period=period)).levels]

    assert periods("auto") == [None, 360.0]
    assert periods({"lon": "none"}) == periods(None) == [None, None]
    assert periods({"lat": 50}) == [50.0, 360.0]
    assert periods({"lat": "auto"}) == [None, 360.0]


def test_cycles_are_tried_only_where_the_period_is_open():
    assert plan_fit([DAYS]).levels[0].cycles == (DAYS.time.year,)
    assert plan_fit([DAYS], Settings(period="none")).levels[0].cycles == ()


def test_a_level_given_whole_is_kept():
    level = Level("lat", Kernel("matern32", 2.0), 0.5)
    plan = plan_fit(AXES, Settings(["lon", level], sigma={"lon": 9}))
    assert plan.levels == (level, LevelRequest("lon", None, 9.0, None, 360.0))


def test_the_ridge_is_joint_when_asked_for_or_when_cells_are_missing():
    assert not plan_fit(AXES, complete=True).joint
    for plan in (
        plan_fit(AXES, Settings(noise="joint", ridge="0.1")),
        plan_fit(AXES, Settings(ridge=0.1), complete=False),
        plan_fit(AXES, Settings(noise="joint", ridge=0.1), complete=False),
    ):
        assert plan.joint
        assert plan.joint_ridge == 0.1
        assert [level.ridge for level in plan.levels] == [None, None]
    assert plan_fit(AXES, complete=False).joint_ridge is None
    assert plan_fit(AXES, Settings(noise="level", ridge=0.1)).joint_ridge is None


def test_a_joint_ridge_may_stand_beside_whole_levels_without_one():
    whole = [Level("lat", Kernel(sigma=1.0)), Level("lon", Kernel(sigma=30.0))]
    assert plan_fit(AXES, Settings(whole, noise="joint", ridge=0.1)).joint_ridge == 0.1


@pytest.mark.parametrize(
    ("coordinates", "settings", "message"),
    [
        ([1.0, 2.0, 1.0], {}, "Coordinates 0 and 2 of level 'x' are the same"),
        ([1.0, 2.0, math.nan], {}, "1 values that are not finite"),
        ([1.0, 2.0, math.inf], {"sigma": 1, "kernel": "gaussian"}, "not finite"),
        ([1.0, 3.0, 6.0], {"period": 5}, "the same place on the circle"),
        ([1.0, 3.0, 6.0], {"levels": [Level("x", Kernel(period=5.0))]}, "the same place"),
    ],
)
def test_coordinates_are_refused_before_values_are_read(coordinates, settings, message):
    with pytest.raises(InputError, match=message) as planned:
        plan_fit([axis_of("x", coordinates)], Settings(**settings))
    with pytest.raises(InputError) as fitted:
        fit(np.arange(3.0), {"x": coordinates}, **settings)
    assert str(planned.value) == str(fitted.value)


def test_lengths_of_time_may_be_durations():
    hours = axis_of("t", np.arange(0.0, 900, 30))
    hours = replace(hours, time=TimeScale("hours since 2001-01-01"))
    plan = plan_fit([DAYS, AXES[0]], Settings(sigma={"time": "30D"}, period={"time": "1Y"}))
    assert plan.levels[0].sigma == 30.0
    assert plan.levels[0].period == DAYS.time.year
    assert plan_fit([hours], Settings(sigma="2D")).levels[0].sigma == 48.0
    assert plan_fit([hours], Settings(sigma={"time": "P1W"})).levels[0].sigma == 168.0
    with pytest.raises(SettingError, match=r"of 'lat', which has no dates"):
        plan_fit([DAYS, AXES[0]], Settings(sigma="30D"))


def test_dimensions_may_be_named_by_their_role():
    named = Settings(
        ["longitude", "latitude"], {"latitude": "gaussian"}, {"longitude": 9}, period={"long": None}
    )
    plan = plan_fit(AXES, named)
    assert plan.hierarchy == ("lon", "lat")
    assert plan.levels == (LevelRequest("lat", "gaussian"), LevelRequest("lon", None, 9.0))
    whole = plan_fit(AXES, Settings(["lon", Level("latitude", Kernel(sigma=2.0), 0.5)]))
    assert whole.levels[0] == Level("lat", Kernel(sigma=2.0), 0.5)
    assert fit(GRID, sigma={"latitude": 3.0}).levels[0].kernel.sigma == 3.0


def test_levels_need_not_name_a_dimension_of_one_coordinate():
    axes = [axis_of("height", [2.0]), axis_of("x", [0.0, 1.0]), axis_of("time", [0.0, 1.0])]
    assert plan_fit(axes, Settings(["time", "x"])).hierarchy == ("height", "time", "x")
    whole = Level("x", Kernel("matern52", 3.0))
    plan = plan_fit(axes, Settings(["time", whole]))
    assert plan.hierarchy == ("height", "time", "x")
    assert plan.levels[1] == whole
    with pytest.raises(SettingError, match="are not the dimensions of the data"):
        plan_fit(axes, Settings(["x"]))
