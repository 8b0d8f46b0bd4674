import numpy as np
import pytest
from globe import latitude, longitude, ring, rows

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.planning.plan import plan_fit, pole_shape
from dkrls_cli.model.poles.planning import PolePlan, plan_poles
from dkrls_cli.model.settings import Settings

LAT, LON = latitude(rows("cell", 12)), longitude(ring(16))
X = axis_of("x", np.arange(5.0))


def plan(*axes, kind="auto", **settings):
    """Return how a grid on these axes goes on across the poles."""
    return plan_fit(axes, Settings(poles=kind, **settings)).poles


@pytest.mark.parametrize(
    ("axes", "places"),
    [
        ((LAT, LON), (0, 1)),
        ((LON, X, LAT), (2, 0)),
        ((LAT, longitude(ring(15, -180.0))), (0, 1)),
        ((LAT, longitude(np.linspace(0, 360, 17))), (0, 1)),  # a fit drops the last
        ((latitude(np.linspace(30, 90, 7)), LON), (0, 1)),
    ],
)
def test_a_latitude_that_reaches_a_pole_goes_on_beside_a_ring(axes, places):
    assert plan(*axes) == PolePlan(*places)
    assert plan(*axes, kind="vector") == PolePlan(*places, "vector")
    assert plan(*axes, kind="none") is None


@pytest.mark.parametrize(
    ("axes", "lacking"),
    [
        ((latitude(np.linspace(-50, 50, 6)), LON), "latitude"),
        ((axis_of("y", rows("cell", 12)), LON), "latitude"),
        ((LAT, longitude(np.linspace(0, 180, 16))), "longitude"),
        ((LAT, axis_of("x", ring(16))), "longitude"),
        ((LAT, X), "longitude"),
    ],
)
def test_other_grids_end_where_they_end(axes, lacking):
    assert plan(*axes) is None
    with pytest.raises(SettingError, match=f"has no {lacking}") as error:
        plan(*axes, kind="scalar")
    assert error.value.setting == "poles"


def test_a_longitude_that_is_no_circle_by_wish_does_not_go_on():
    assert plan(LAT, LON, period={"lon": "none"}) is None
    assert plan(LAT, LON, period={"lon": 720.0}) is None
    assert plan_poles([LAT, LON], [360.0, 360.0], "auto") is None


@pytest.mark.parametrize(
    ("name", "signs"),
    [
        ("eastward_wind", (-1,)),
        ("surface_downward_northward_stress", (-1,)),
        ("northward_sea_ice_velocity", (-1,)),
        ("air_temperature", (1, -1)),
        ("upward_air_velocity", (1, -1)),
        ("", (1, -1)),
    ],
)
def test_standard_names_tell_components_of_vectors(name, signs):
    assert PolePlan(0, 1).signs({"standard_name": name}) == signs
    assert PolePlan(0, 1, "scalar").signs({"standard_name": name}) == (1,)


def test_unknown_ways_are_refused():
    with pytest.raises(SettingError, match=r"Unknown way across the poles 'vectors'.*Did you mean"):
        Settings(poles="vectors")


@pytest.mark.parametrize("settings", [{"errors": True}, {"complete": False}])
def test_errors_and_groups_do_not_go_on(settings):
    group = "auto" if "errors" in settings else "lat,lon"
    asked = Settings(poles="scalar", group=group)
    with pytest.raises(SettingError, match="cannot go on across the poles as a scalar"):
        plan_fit([LAT, LON], asked, **settings)
    assert plan_fit([LAT, LON], Settings(group=group), **settings).poles is None


def test_a_grid_with_gaps_that_is_to_go_on_has_no_group():
    assert plan_fit([LAT, LON], Settings(), complete=False).group == (0, 1)
    asked = plan_fit([LAT, LON], Settings(poles="scalar"), complete=False)
    assert (asked.group, asked.poles) == ((), PolePlan(0, 1, "scalar"))


def test_the_rows_are_counted():
    assert pole_shape([X, LAT, LON], Settings()) == (5, 24, 16)
    assert pole_shape([X, LAT, LON], Settings(poles="none")) == (5, 12, 16)
    assert pole_shape([X, LON], Settings(poles="scalar")) == (5, 16)
