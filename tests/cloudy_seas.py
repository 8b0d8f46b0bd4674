"""Days of a sea with clouds and land, and which of its missing cells are filled."""

import numpy as np
import xarray as xr

from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.filling.cells import choose_cells
from dkrls_cli.model.settings import Settings

DAYS = np.arange("2001-01-01", "2001-01-11", dtype="datetime64[D]")
LAT, LON = np.linspace(-20, 20, 6), np.linspace(100, 130, 7)
FIELD = 15 + 4 * np.sin(np.add.outer(np.arange(10) / 4, np.add.outer(LAT / 10, LON / 9)))
LAND = np.add.outer(LAT, LON) > 130
WET = ~LAND & (LAT[:, None] < 10)
GIVEN = {"kernel": "matern52", "sigma": {"lat": 15, "lon": 15, "time": 5}, "ridge": 1e-4}
SETTINGS = Settings(**GIVEN)


def holes():
    missing = np.broadcast_to(LAND, FIELD.shape) | (
        np.random.default_rng(2).random(FIELD.shape) < 0.15
    )
    missing[:, 0, 0] = False  # so that no coordinate is lost by chance
    missing[2:5, 2, 1] = True
    return missing


MISSING = holes()
ALWAYS = np.broadcast_to(LAND, FIELD.shape)


def sample(missing=MISSING, dtype="float32"):
    """Days of a sea with clouds."""
    return xr.DataArray(
        np.where(missing, np.nan, FIELD).astype(dtype),
        {
            "time": DAYS,
            "lat": ("lat", LAT, {"units": "degrees_north"}),
            "lon": ("lon", LON, {"units": "degrees_east"}),
            "depth": (("lat", "lon"), np.ones((6, 7))),
        },
        ("time", "lat", "lon"),
        "sst",
        {"units": "degree_Celsius", "standard_name": "sea_surface_temperature"},
    )


GRID = as_grid(sample())


def filled_cells(**options):
    found = fill_grid(GRID, SETTINGS, **options)
    np.testing.assert_array_equal(found.cells, MISSING & ~np.isnan(found.grid.values))
    assert found.cells.sum() + sum(found.left.values()) == MISSING.sum()
    return found.cells


def chosen(*given):
    found = choose_cells(*given)
    return found.cells, found.left
