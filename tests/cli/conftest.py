"""Files and models that the tests of several commands use, made once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sample_files import EAST, LAT, LON, NORTH, grid
from shell import dkrls

DAYS = np.arange(0.0, 60, 5)
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
