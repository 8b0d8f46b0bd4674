"""What is refused before a value is read, as a fit refuses it."""

import math

import numpy as np
import pytest

from dkrls_cli import Level, fit
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import LevelRequest
from dkrls_cli.model.settings import Settings

EAST = {"units": "degrees_east"}
AXES = (axis_of("lat", [1.0, 2.0, 4.0]), axis_of("lon", np.arange(0.0, 360, 10), EAST))
GRID = Grid(np.random.default_rng(0).standard_normal((3, 36)), AXES)


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


def test_what_needs_a_complete_grid_is_refused_only_once_cells_are_known_to_be_missing():
    for settings, message in (
        (Settings(noise="level"), "one joint ridge only"),
        (Settings(folds=3), "Folds are for complete grids"),
    ):
        for complete in (None, True):
            assert not plan_fit(AXES, settings, complete).joint
        with pytest.raises(SettingError, match=message):
            plan_fit(AXES, settings, complete=False)


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
