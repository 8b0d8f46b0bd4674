"""Groups: which dimensions may share one distance, and which may not."""

import numpy as np
import pytest

from dkrls_cli import Level, fit
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings

EAST = {"units": "degrees_east"}
AXES = (axis_of("lat", [1.0, 2.0, 4.0]), axis_of("lon", np.arange(0.0, 360, 10), EAST))
GRID = Grid(np.random.default_rng(0).standard_normal((3, 36)), AXES)


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
