"""Files and models that the tests of several commands use, made once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, grid
from shell import dkrls

DAYS = np.arange(0.0, 60, 5)
SEA_LAT, SEA_LON = np.linspace(-60.0, 60.0, 9), np.arange(0.0, 360.0, 30.0)
SINCE = {"units": "days since 2020-01-01", "calendar": "standard", "standard_name": "time"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def globe(folder: Path) -> Path:
    """A grid of the whole globe: 12 times, 5 latitudes, 8 longitudes."""
    axes = {"time": (DAYS, SINCE), "lat": (LAT, NORTH), "lon": (LON, EAST)}
    return grid(folder / "globe.nc", axes, unlimited="time")


@pytest.fixture(scope="session")
def model(folder: Path, globe: Path) -> Path:
    """A model of the globe."""
    dkrls("fit", globe, "-o", folder / "globe.npz")
    return folder / "globe.npz"


@pytest.fixture(scope="session")
def sites(folder: Path) -> Path:
    """A model with text labels."""
    axes = {"site": (np.array(["a", "b, north", "c"], object), {}), "x": (np.arange(5.0), {})}
    dkrls("fit", grid(folder / "sites.nc", axes), "-o", folder / "sites.npz")
    return folder / "sites.npz"


@pytest.fixture(scope="session")
def sea(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a sea with an island of three by three cells, at three times."""
    folder = tmp_path_factory.mktemp("sea")
    values = np.add.outer(np.arange(3.0), np.add.outer(np.cos(SEA_LAT / 50), np.sin(SEA_LON / 60)))
    values[:, 3:6, 4:7] = np.nan
    time = ("time", np.arange(3.0), {"units": "days since 2000-01-01"})
    xr.Dataset(
        {"sst": (("time", "lat", "lon"), values, {"units": "K"})},
        {"time": time, "lat": ("lat", SEA_LAT, NORTH), "lon": ("lon", SEA_LON, EAST)},
    ).to_netcdf(folder / "sea.nc")
    how = ("--kernel", "matern52", "--sigma", "time=2,lat=40,lon=60", "--ridge", "1e-4")
    dkrls("fit", folder / "sea.nc", "-o", folder / "sea.npz", *how)
    return folder / "sea.npz"
