"""Grids and queries for tests of what is done beyond memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from dkrls_cli import Model, fit
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.answering.answers import Query, Rules, ask
from dkrls_cli.model.answering.questions import read_question
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.settings import Settings


class InMemory:
    """An array that is read box by box, and counts what is read."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.cells_read = 0
        self.largest = 0

    def read_box(self, part):
        box = self.values[part]
        self.cells_read += box.size
        self.largest = max(self.largest, box.size)
        return box.copy()


def globe(times: int = 14, lats: int = 13, lons: int = 12, noise: float = 0.1) -> xr.DataArray:
    """A noisy field on the globe whose latitudes reach the poles."""
    rng = np.random.default_rng(5)
    time = np.arange(float(times))
    lat = np.linspace(-88.0, 88.0, lats)
    lon = np.arange(0.0, 360.0, 360.0 / lons)
    field = np.cos(np.radians(lat))[:, None] * np.cos(np.radians(lon))
    values = np.sin(time / 3)[:, None, None] * field + noise * rng.standard_normal(
        (times, lats, lons)
    )
    coords = {
        "time": time,
        "lat": ("lat", lat, {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    return xr.DataArray(values, coords, ("time", "lat", "lon"), name="f")


def fitted(data: xr.DataArray, **settings) -> Model:
    """A model whose kernels are given, and so quickly fitted."""
    given = {"kernel": "matern52", "sigma": {"time": 3.0, "lat": 40.0, "lon": 50.0}, "ridge": 1e-2}
    return fit(data, **{**given, **settings})


def query_of(model: Model, at, *, mean=False, derivative=(), outside="missing") -> Query:
    """What a model is asked at coordinates."""
    question = read_question(model, mean, derivative, False, at)
    return ask(model, model.axes_at(at), Rules(outside, "model", False, question), list(at))


def referring_pair(tmp_path, data=None, *, chunks=(7, 10, 9), dtype="f8", **settings):
    """A model that refers to its data, and the same in memory."""
    data = globe(40, 19, 36) if data is None else data
    path = tmp_path / "data.nc"
    data.astype(dtype).to_netcdf(path, encoding={"f": {"chunksizes": chunks}})
    sigma = {"time": 3.0, "lat": 20.0, "lon": 25.0}
    given = {"kernel": "matern32", "sigma": sigma, "ridge": 1e-2, "mean": 0.1, **settings}
    referring = fit_by_reference(open_source([str(path)]), Settings(**given))
    return referring, replace(fit(data.astype(dtype), **given), known_bars=referring.bars)
