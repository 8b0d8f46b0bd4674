"""Settings are refused or kept, and a plan refuses before a value is read what a fit refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli import Kernel, Level, fit
from dkrls_cli.cascade.kernels import FAMILIES
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.settings import DEFAULTS, FitPlan, LevelRequest, Settings, plan_fit

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


def test_given_settings_are_those_that_differ_from_the_defaults():
    given = {"levels": ["lon", "lat"], "sigma": {"lat": "3"}, "dtype": "float32", "mean": 2}
    assert Settings(**given, compact=False, noise="auto").given == given


def test_the_mean_is_a_number_or_that_of_the_data():
    assert Settings(mean="2.5").centre == 2.5
    assert Settings(mean=0).centre == 0.0
    assert fit(GRID, ridge=1.0, mean=7).cascade.mean == 7.0
    assert fit(GRID, ridge=1.0).cascade.mean == pytest.approx(GRID.values.mean())


def test_levels_have_the_names_given():
    assert Settings(["lon", Level("lat")]).level_names == ["lon", "lat"]
    assert plan_fit(AXES, Settings(["lon", Level("lat")])).hierarchy == ("lon", "lat")
    assert Settings([]).level_names == []


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


REFUSED = [
    ({"kernel": "magic"}, r"Unknown kernel 'magic'. Choose from: auto, gaussian, matern52"),
    ({"kernel": {"lat": "magic"}}, "magic"),
    ({"kernel": None}, "None"),
    ({"sigma": "wide"}, "Invalid sigma 'wide'"),
    ({"sigma": {"lat": 1, "lon": "wide"}}, "wide"),
    ({"sigma": None}, "Invalid sigma 'None'"),
    ({"sigma": -1.0}, "sigma -1"),
    ({"sigma": 0}, "sigma 0"),
    ({"sigma": {"lat": math.nan}}, "sigma nan"),
    ({"sigma": "0D"}, "Invalid sigma '0D'. Give a number, a duration such as 30D, or auto."),
    ({"sigma": {"lat": "30D"}}, "Invalid sigma '30D' of 'lat', which has no dates. Give a number"),
    ({"sigma": {"lon": "30D"}}, "'lon', which has no dates. Give a number of degrees_east."),
    ({"period": {"lat": "1Y"}}, "Invalid period '1Y' of 'lat', which has no dates"),
    ({"ridge": "3D"}, "Invalid ridge '3D'. Give a number, or auto."),
    ({"kernel": "mattern52"}, "Unknown kernel 'mattern52'. .* Did you mean 'matern52'"),
    ({"sigma": {"latt": 1.0}}, "no dimension 'latt' to set sigma of. .* Did you mean 'lat'"),
    ({"sigma": {"lat": 1.0, "latitude": 2.0}}, "'lat' to set sigma of was given twice"),
    ({"ridge": "much"}, "Invalid ridge 'much'"),
    ({"ridge": -1}, "ridge -1"),
    ({"ridge": {"lon": math.inf}}, "ridge inf of level 'lon'"),
    ({"ridge": -1, "noise": "joint"}, "joint ridge -1"),
    ({"period": "long"}, "Invalid period 'long'"),
    ({"period": {"lat": -3}}, "period -3"),
    ({"noise": "pink"}, "Unknown kind of noise 'pink'. Choose from: auto, level, joint."),
    ({"missing": "nonsense"}, "'nonsense'. Choose from: model, error."),
    ({"dtype": "float16"}, "'float16'. Choose from: float64, float32."),
    ({"mean": "none"}, "Invalid mean 'none'"),
    ({"mean": math.inf}, "Invalid mean inf"),
    ({"mean": "nan"}, "Invalid mean nan"),
    ({"folds": 1}, "Invalid number of folds 1"),
    ({"folds": -2}, "folds -2"),
    ({"ridge": {"time": 1.0}}, "no dimension 'time' to set ridge of. The data has lat, lon"),
    ({"kernel": {"lat": "auto", "z": "auto"}}, "no dimension 'z' to set kernel of"),
    ({"noise": "joint", "ridge": {"lat": 1.0}}, "one number"),
    ({"levels": ["lat", "lat"]}, "Name each"),
    ({"levels": ["lat"]}, "Name each"),
    ({"levels": []}, "Name each"),
    ({"levels": ["lat", Level("z")]}, "Name each"),
    ({"levels": [Level("lat"), "lon"], "sigma": {"lat": 3.0}}, "'lat' was given whole, and sigma"),
    ({"levels": [Level("lat"), Level("lon")], "kernel": "gaussian"}, "given whole, and kernel"),
    ({"levels": [Level("lat"), Level("lon")], "ridge": 0.1}, "given whole, and ridge"),
    ({"levels": [Level("lat", ridge=0.1), "lon"], "noise": "joint"}, "ridge 0.1 beside a joint"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_a_plan_refuses_what_a_fit_refuses_and_says_the_same(settings, message):
    with pytest.raises(SettingError, match=message) as planned:
        plan_fit(AXES, Settings(**settings))
    with pytest.raises(SettingError) as fitted:
        fit(GRID, **settings)
    assert str(planned.value) == str(fitted.value)
    assert "--" not in str(planned.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"folds": 2},
        {"levels": [Level("lat"), Level("lon")], "period": None},
        {"levels": [Level("lat"), Level("lon")], "ridge": 0.1, "noise": "joint"},
        {"levels": [Level("lat"), "lon"], "sigma": 20.0},
        {"missing": "error"},
        {"dtype": "float32", "compact": True, "mean": "0", "ridge": 0, "sigma": "20"},
    ],
)
def test_a_plan_allows_what_a_fit_allows(settings):
    assert plan_fit(AXES, Settings(**settings)).hierarchy == fit(GRID, **settings).hierarchy


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


def test_what_needs_a_complete_grid_is_refused_only_once_cells_are_known_to_be_missing():
    for settings, message in (
        (Settings(noise="level"), "one joint ridge only"),
        (Settings(folds=3), "Folds are for complete grids"),
    ):
        for complete in (None, True):
            assert not plan_fit(AXES, settings, complete).joint
        with pytest.raises(SettingError, match=message):
            plan_fit(AXES, settings, complete=False)


def test_every_family_of_kernels_can_be_asked_for():
    for family in FAMILIES:
        assert plan_fit(AXES, Settings(kernel=family)).levels[0].family == family


@pytest.mark.parametrize("wrong", [{"sigma": -1.0}, {"ridge": -0.1}, {"period": 0.0}])
def test_a_request_that_no_level_can_meet_is_refused(wrong):
    with pytest.raises(SettingError):
        LevelRequest("x", **wrong)


def test_an_example_has_the_settings_that_are_given():
    example = LevelRequest("x", "matern12", 3.0, 0.5, 7.0).example
    assert example == Level("x", Kernel("matern12", 3.0, 7.0), 0.5)


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


# Groups -------------------------------------------------------------------------------------------

MAP = [
    axis_of("time", np.arange(5.0)),
    axis_of("lat", np.arange(9.0), {"units": "degrees_north"}),
    axis_of("lon", np.arange(8.0), EAST),
]
FLAT = [
    axis_of("yc", np.arange(8.0), {"standard_name": "projection_y_coordinate"}),
    axis_of("xc", np.arange(2048.0), {"standard_name": "projection_x_coordinate"}),
]


@pytest.mark.parametrize("group", ["lat,lon", " lat , lon", ["lat", "lon"], ("lat", "lon")])
def test_a_group_has_names(group):
    settings = Settings(group=group)
    assert settings.group_names == ("lat", "lon")
    plan = plan_fit(MAP, settings)
    assert (plan.group, plan.group_given) == ((1, 2), True)
    hash(settings.group)


def test_a_group_may_be_any_dimensions_in_any_order():
    assert plan_fit(MAP, Settings(group="longitude,time")).group == (0, 2)
    assert plan_fit(MAP, Settings(group="lon,lat,time")).group == (0, 1, 2)
    assert plan_fit(AXES, Settings(group="lat,lon")).group == (
        0,
        1,
    )  # few coordinates are no reason


def test_latitude_and_longitude_or_the_axes_of_a_map_may_be_a_group():
    for axes, group in ((MAP, (1, 2)), (FLAT, (0, 1)), ([*MAP, *FLAT], (1, 2)), (MAP[:2], ())):
        plan = plan_fit(axes)
        assert (plan.group, plan.group_given) == (group, False)
        assert plan_fit(axes, Settings(group="none")).group == ()
        assert plan_fit(axes, complete=False).group == group
    assert Settings(group="auto").group_names is Settings(group="none").group_names is None


@pytest.mark.parametrize("size", [7, 2049])
def test_a_group_of_few_or_very_many_coordinates_is_not_tried(size):
    numbers = np.arange(size) / 10
    assert plan_fit([MAP[1], axis_of("lon", numbers, EAST)]).group == ()
    flat = axis_of("yc", numbers, {"standard_name": "projection_y_coordinate"})
    assert plan_fit([flat, FLAT[1]]).group == ()


@pytest.mark.parametrize(
    "settings",
    [
        {"sigma": {"lat": 3.0}},
        {"kernel": "gaussian"},
        {"kernel": {"lon": "matern12"}},
        {"levels": ["time", "lat", Level("lon")]},
    ],
)
def test_a_group_is_not_tried_where_settings_are_given(settings):
    assert plan_fit(MAP, Settings(**settings)).group == ()
    assert plan_fit(MAP, Settings(sigma={"time": 2.0}, ridge=0.1), complete=False).group == (1, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group": "lat"}, "Invalid group 'lat'. Name two or more dimensions, such as lat,lon"),
        ({"group": ["lat"]}, "Invalid group 'lat'"),
        ({"group": "lat,lat"}, "Invalid group 'lat,lat'"),
        ({"group": ""}, "Invalid group ''"),
        ({"group": "lat,latitude"}, "The group 'lat,latitude' names a dimension twice"),
        ({"group": "lat,depth"}, "no dimension 'depth' to group. The data has time, lat, lon"),
        ({"group": "lat,lonn"}, "Did you mean 'lon'"),
        (
            {"group": "lat,lon", "kernel": {"lat": "gaussian", "lon": "matern12"}},
            "The dimensions of a group have one kernel. Give none, or the same for all of them",
        ),
        ({"group": "lat,lon", "kernel": {"lat": "gaussian"}}, "have one kernel"),
        ({"group": "lat,lon", "levels": ["time", "lat", Level("lon")]}, "have one kernel"),
    ],
)
def test_groups_that_cannot_be_are_refused(settings, message):
    with pytest.raises(SettingError, match=message) as refused:
        plan_fit(MAP, Settings(**settings))
    assert "--" not in str(refused.value)


@pytest.mark.parametrize("family", ["gaussian", "matern32"])
def test_a_group_may_have_a_kernel_and_sigmas(family):
    kernel = {"lat": family, "lon": family}
    for kernels in (kernel, family):
        plan = plan_fit(MAP, Settings(group="lat,lon", kernel=kernels, sigma={"lat": 2, "lon": 3}))
        assert plan.group == (1, 2)


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (text_axis("site", list("abc")), "'site' cannot be in a group: it has 3 coordinates of t"),
        (axis_of("site", [2.0]), "'site' cannot be in a group: it has 1 coordinates. Expected 2 t"),
        (axis_of("site", np.arange(2049.0)), "it has 2049 coordinates. Expected 2 to 2048 numbers"),
    ],
)
def test_a_group_has_numbers_as_coordinates(axis, message):
    with pytest.raises(SettingError, match=message):
        plan_fit([MAP[1], axis], Settings(group="lat,site"))


def test_a_group_is_refused_once_no_cell_is_known_to_be_missing():
    settings = Settings(group="lat,lon")
    for complete in (None, False):
        assert plan_fit(AXES, settings, complete).group == (0, 1)
    with pytest.raises(SettingError, match=r"A group \(lat,lon\) is for grids with missing cells"):
        plan_fit(AXES, settings, complete=True)
    with pytest.raises(SettingError, match="no cell is missing here"):
        fit(GRID, group=("lat", "lon"))


def test_a_long_dimension_leaves_no_room_for_a_group():
    for size, group in ((2048, (1, 2)), (2049, ())):
        axes = [axis_of("time", np.arange(float(size)), MAP[0].attrs), *MAP[1:]]
        assert plan_fit(axes, complete=False).group == group
    with pytest.raises(SettingError, match="'time' has 2049 coordinates"):
        plan_fit(axes, Settings(group="lat,lon"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"kernel": {"lat": "cubic"}, "sigma": {"lat": 2}},
            "sigma 2 of 'lat'. A cubic spline",
        ),
        ({"kernel": {"lat": "cubic"}, "ridge": {"lat": 0.1}}, "Invalid ridge 0.1 of level 'lat'"),
        ({"kernel": {"lat": "linear"}, "noise": "joint"}, "'linear' of level 'lat' needs a compl"),
        ({"kernel": {"lat": "log-gaussian"}, "noise": "joint"}, "'log-gaussian' of level 'lat'"),
        ({"kernel": {"lon": "quintic"}}, "'quintic' cannot go round a circle"),
        ({"kernel": "splien"}, "Unknown kernel 'splien'"),
        ({"kernel": 3}, "Unknown kernel '3'"),
    ],
)
def test_splines_and_warps_are_refused_where_they_cannot_be(settings, message):
    with pytest.raises(SettingError, match=message):
        plan_fit(AXES, Settings(**settings))


def test_splines_need_a_complete_grid_and_warps_coordinates_above_0():
    given = Settings(kernel={"lat": "cubic"})
    assert plan_fit(AXES, given, complete=True).levels[0] == LevelRequest("lat", "cubic")
    with pytest.raises(SettingError, match="'cubic' of level 'lat' needs a complete grid"):
        plan_fit(AXES, given, complete=False)
    with pytest.raises(SettingError, match="'cubic' of level 'lat' needs a complete grid"):
        plan_fit(AXES, given, errors=True)
    with pytest.raises(InputError, match="The sqrt of coordinate 0 cannot be taken"):
        plan_fit([axis_of("x", [0.0, 1.0])], Settings(kernel="sqrt-gaussian"))


def test_a_circle_can_be_opened_for_a_spline():
    given = Settings(kernel={"lon": "quintic"}, period={"lon": "none"})
    assert plan_fit(AXES, given).levels[1] == LevelRequest("lon", "quintic")
