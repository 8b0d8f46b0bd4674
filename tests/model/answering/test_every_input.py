"""Every question of every kind of model: the truth is the field, and members are as wide as errors.

The field is analytic. Slopes are its differences, and means its quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import Model, fit
from dkrls_cli.gaps.functionals import deviations

LAT, LON, TIME = np.arange(-60.0, 61, 12), np.arange(0.0, 360, 24), np.arange(10.0)
SIGMA = {"lat": 40.0, "lon": 55.0, "time": 8.0}
AT = {"time": [2.4, 6.7], "lat": [-20.0, 31.0], "lon": [50.0, 200.0]}
CELLS = {"time": [2.4, 6.7], "lat": [-20.0, 4.0, 28.0], "lon": [50.0, 90.0, 130.0]}
HOLES = np.random.default_rng(1).random((10, 11, 15)) < 0.12
LAND = np.zeros(HOLES.shape, bool)
LAND[:, 8:10, 11:13] = True


def wave(time, lat, lon):
    t, y = np.asarray(time, float)[:, None, None], np.radians(lat)[:, None]
    x = np.radians(lon)
    return 5 + 2 * np.sin(y) + np.cos(y) ** 2 * np.cos(x) * (1 + 0.5 * np.cos(t / 9))


@dataclass(frozen=True)
class Kind:
    """A kind of input: what is done to the data, how it is fitted, and how near answers are."""

    fitted: dict = field(default_factory=dict)
    missing: np.ndarray | None = None
    turned: tuple[str, ...] = ()
    noise: float = 0.0
    near: float = 1e-2

    def model(self) -> Model:
        values = wave(TIME, LAT, LON)
        values = values + self.noise * np.random.default_rng(0).standard_normal(values.shape)
        coords = {
            "time": TIME,
            "lat": ("lat", LAT, {"units": "degrees_north"}),
            "lon": ("lon", LON, {"units": "degrees_east"}),
        }
        data = xr.DataArray(values, coords, ("time", "lat", "lon"), "f")
        data = data if self.missing is None else data.where(~self.missing)
        for dim in self.turned:
            data = data.isel({dim: slice(None, None, -1)})
        given = {"kernel": "gaussian", "sigma": SIGMA, "ridge": 1e-8, "poles": "none"}
        return fit(data, **{**given, **self.fitted})


ROUGH = {"kernel": "matern12", "sigma": {"lat": 90.0, "lon": 120.0, "time": 40.0}, "ridge": 1e-6}
KINDS = {
    "complete": Kind(),
    "descending": Kind(turned=("lat", "time")),
    "compact": Kind({"compact": True}),
    "joint": Kind({"noise": "joint"}),
    "gaps": Kind(missing=HOLES),
    "land and gaps": Kind(missing=HOLES | LAND),
    "observation errors": Kind({"obs_error": 0.01}, noise=0.01, near=0.05),
    "rough": Kind(ROUGH, near=0.3),
    "rough with gaps": Kind(ROUGH, missing=HOLES, near=0.3),
    "cubic": Kind(
        {"kernel": "cubic", "sigma": "auto", "ridge": "auto", "period": "none"}, near=0.1
    ),
}


def slope(dim):
    step = {d: np.full(2, 1e-3 if d == dim else 0.0) for d in AT}
    ahead, behind = ([np.add(AT[d], sign * step[d]) for d in AT] for sign in (1, -1))
    return (wave(*ahead) - wave(*behind)) / 2e-3


def mean_over(low, high):
    lat = np.linspace(low, high, 2001)
    lat = (lat[1:] + lat[:-1]) / 2
    return np.average(wave(AT["time"], lat, AT["lon"]), axis=1, weights=np.cos(np.radians(lat)))


def cell_means():
    z, w = np.polynomial.legendre.leggauss(12)
    lat, lon = (np.asarray(CELLS[d])[:, None] + half * z for d, half in (("lat", 12), ("lon", 20)))
    found = wave(CELLS["time"], lat.ravel(), lon.ravel()).reshape(2, 3, 12, 3, 12)
    weights = np.cos(np.radians(lat)) * w
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("taibj,ai,j->tab", found, weights, w / 2)


@pytest.fixture(scope="module", params=KINDS)
def asked(request):
    kind = KINDS[request.param]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deviations, "DRAWS", 24)
        yield kind.model(), kind.near


QUESTIONS = {
    **{f"slope in {dim}": ({"derivative": dim} | AT, slope(dim)) for dim in AT},
    "means": ({"mean": ["lat", "lon"]} | CELLS, cell_means()),
}
SIZES = {"slope in time": 0.05, "slope in lat": 0.03, "slope in lon": 0.02, "means": 1.0}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_those_of_the_field_and_members_as_wide_as_errors(asked, name):
    model, near = asked
    question, truth = QUESTIONS[name]
    found = model.predict(**question).transpose("time", "lat", "lon")
    assert np.allclose(found, truth, rtol=0, atol=3 * near * SIZES[name])
    errors = model.std(**question)
    assert (errors > 0).all()
    spread = model.ensemble(40, **question).std("realization")
    assert 0.7 < float((spread / errors).median()) < 1.4
    if "derivative" in question:
        one = {dim: np.asarray(places)[:1] for dim, places in AT.items()}
        points = model.predict_points(**one, derivative=question["derivative"])
        assert np.ravel(points)[0] == pytest.approx(found.values[0, 0, 0], rel=1e-9, abs=1e-12)


def test_means_over_a_range_are_those_of_the_field(asked):
    model, near = asked
    found = model.mean_over({"lat": (-37.0, 25.0)}, std=True, time=AT["time"], lon=AT["lon"])
    assert np.allclose(found["f"].transpose("time", "lon"), mean_over(-37.0, 25.0), atol=near)
    assert (found["f_std"] > 0).all()
