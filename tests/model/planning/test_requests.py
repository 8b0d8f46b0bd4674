"""Settings given for one level."""

import numpy as np
import pytest

from dkrls_cli import Kernel, Level
from dkrls_cli.cascade.kernels import FAMILIES
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import LevelRequest
from dkrls_cli.model.settings import Settings

EAST = {"units": "degrees_east"}
AXES = (axis_of("lat", [1.0, 2.0, 4.0]), axis_of("lon", np.arange(0.0, 360, 10), EAST))


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
