"""Queries as users give them: stations, points, and coordinates by name or by role."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit
from dkrls_cli.errors import SettingError

RNG = np.random.default_rng(7)


def sample():
    """A labelled grid: time x lat x station, with attributes."""
    return xr.DataArray(
        RNG.standard_normal((6, 5, 4)),
        {
            "time": np.datetime64("2001-01-01") + np.arange(6).astype("timedelta64[D]"),
            "lat": ("lat", np.linspace(60, -60, 5), {"units": "degrees_north"}),
            "station": ["a", "b", "c", "d"],
        },
        ["time", "lat", "station"],
        "tas",
        {"units": "K"},
    )


STATIONS = {"lat": [-30, 12.5, 60], "station": ["c", "c", "a"]}


def test_stations_are_answered_at_all_coordinates_of_the_other_dimensions():
    model = fit(sample())
    answers, errors = model.predict_stations(STATIONS), model.std_stations(STATIONS)
    assert (answers.dims, answers.name, errors.name) == (("station", "time"), "tas", "tas_std")
    assert answers.station.values.tolist() == ["c", "c", "a"]
    assert answers.lat.values.tolist() == [-30, 12.5, 60]
    assert answers.lat.dims == ("station",)
    assert answers.lat.attrs["units"] == "degrees_north"
    assert answers.attrs["units"] == errors.attrs["units"] == "K"
    np.testing.assert_array_equal(answers.time, sample().time)
    for i, (lat, station) in enumerate(zip(*STATIONS.values(), strict=True)):
        alone = model.predict(lat=lat, station=station)
        np.testing.assert_allclose(answers[i], alone, rtol=1e-12, atol=1e-12)
        alone = model.std(lat=lat, station=station)
        np.testing.assert_allclose(errors[i], alone, rtol=1e-9, atol=1e-12)


def test_stations_are_answered_at_given_coordinates_and_smoothed():
    model = fit(sample(), ridge=0.1)
    at = {"time": ["2001-01-02T12:00", "2001-01-03"]}
    answers = model.predict_stations({"station": ["a", "d"], "lat": [30, 0]}, smooth=True, **at)
    assert answers.shape == (2, 2)
    points = [(t, y, s) for s, y in (("a", 30), ("d", 0)) for t in at["time"]]
    time, lat, station = zip(*points, strict=True)
    alone = model.predict_points(time=time, lat=lat, station=station, smooth=True)
    np.testing.assert_allclose(answers.values.ravel(), alone, rtol=1e-12, atol=1e-12)
    errors = model.std_stations({"station": ["a", "d"], "lat": [30, 0]}, smooth=True, **at)
    alone = model.std_points(time=time, lat=lat, station=station, smooth=True)
    np.testing.assert_allclose(errors.values.ravel(), alone, rtol=1e-9)
    one = model.predict_stations({"station": ["a", "d"], "lat": [30, 0]}, time="2001-01-03")
    assert one.dims == ("station",)
    assert one.time.values == np.datetime64("2001-01-03")


def test_stations_need_no_coordinates_of_their_own_in_the_data():
    model = fit(np.outer(np.arange(9.0), np.arange(8.0)))
    answers = model.predict_stations({"dim_0": [2, 3.5]})
    assert answers.dims == ("station", "dim_1")
    assert list(answers.coords) == ["dim_0"]


@pytest.mark.parametrize(
    ("stations", "at", "message"),
    [
        ({"lat": [1.0]}, {"lat": 3}, "'lat' were given twice"),
        ({}, {}, "at least one dimension"),
        ({"lat": [1.0]}, {}, "has a dimension 'station'. Give the stations by it"),
        ({"depth": [1.0], "station": ["a"]}, {}, "no dimension 'depth'"),
        ({"lat": [1.0, 2.0], "station": ["a"]}, {}, "equally many coordinates"),
        ({"station": ["e"]}, {}, "has no 'e'"),
    ],
)
def test_stations_that_are_none_are_refused(stations, at, message):
    with pytest.raises(SettingError, match=message):
        fit(sample()).predict_stations(stations, **at)


def test_coordinates_may_be_given_by_role():
    lat, t = np.linspace(-40, 40, 9), np.arange(8.0)
    model = fit(np.outer(np.cos(lat / 30), np.sin(t / 3)), {"latitude": lat, "t": t}, ridge=1e-6)
    for ask in (model.predict, model.std):
        named, by_role = ask(latitude=12.0, t=[1.5]), ask(lat=12.0, t=[1.5])
        assert by_role.dims == named.dims == ("t",)
        assert by_role.identical(named)
    for ask in (model.predict_points, model.std_points):
        assert ask(lat=[12.0], t=[1.5]) == ask(latitude=[12.0], t=[1.5])
    with pytest.raises(SettingError, match=r"coordinate for 't' as well"):
        model.predict_points(lat=[12.0])
    with pytest.raises(SettingError, match=r"'latitude' was given twice"):
        model.predict(lat=12.0, latitude=13.0)
    with pytest.raises(SettingError, match=r"no dimension 'lon'. The model has latitude, t."):
        model.predict(lon=1.0)
