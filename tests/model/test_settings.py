"""Settings as values: what was given, and what no grid allows."""

import numpy as np
import pytest

from dkrls_cli import Level, fit
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings

EAST = {"units": "degrees_east"}
AXES = (axis_of("lat", [1.0, 2.0, 4.0]), axis_of("lon", np.arange(0.0, 360, 10), EAST))
GRID = Grid(np.random.default_rng(0).standard_normal((3, 36)), AXES)


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
