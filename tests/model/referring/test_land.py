"""Points of grids with land are answered as each time is in memory."""

import numpy as np
import pytest
from chunked_grids import globe

from dkrls_cli import fit
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.settings import Settings

GIVEN = {"kernel": "matern32", "ridge": 1e-3, "mean": 0.1, "group": "none", "poles": "none"}
SIGMA = {"lat": 40.0, "lon": 50.0}


def with_land():
    data = globe(9, 14, 18)
    data[:, 3:7, 4:9] = np.nan
    data[:, 8, 0] = np.nan
    data[:, :2] = np.nan  # two latitudes without any data
    return data


def pair(tmp_path, data=None, chunks=(2, 14, 18)):
    """A model that refers to its data, and one in memory whose times are on their own."""
    data = with_land() if data is None else data
    path = tmp_path / "land.nc"
    data.to_netcdf(path, encoding={"f": {"chunksizes": chunks}})
    referring = fit_by_reference(open_source([str(path)]), Settings(sigma=SIGMA, **GIVEN))
    return referring, fit(data, sigma={**SIGMA, "time": 1e-3}, **GIVEN)


def scattered(data, count=60):
    rng = np.random.default_rng(3)
    lat = rng.uniform(-60, 88, count)
    lon = rng.uniform(0, 340, count)
    lat[:20], lon[:20] = data.lat.values[rng.integers(2, 14, 20)], data.lon.values[:20:2][0]
    return {"time": rng.choice([0.0, 1.0, 5.0, 8.0], count), "lat": lat, "lon": lon}


@pytest.mark.parametrize("smooth", [False, True])
def test_points_are_those_in_memory(tmp_path, smooth):
    referring, held = pair(tmp_path)
    at = scattered(with_land())
    found, expected = (m.predict_points(**at, smooth=smooth) for m in (referring, held))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert 0.02 < np.isnan(expected).mean() < 0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("at", [{}, {"time": [5.0, 1.0, 5.0]}])
def test_stations_are_those_in_memory(tmp_path, at):
    referring, held = pair(tmp_path)
    points = scattered(with_land(), 25)
    stations = {"lat": points["lat"], "lon": points["lon"]}
    found, expected = (model.predict_stations(stations, **at) for model in (referring, held))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_only_slices_that_points_need_are_completed(tmp_path, monkeypatch):
    from dkrls_cli.gaps.lasting.completion import MaskedSlices

    referring, _ = pair(tmp_path, chunks=(9, 14, 18))
    seen, complete = [], MaskedSlices.complete
    monkeypatch.setattr(
        MaskedSlices,
        "complete",
        lambda self, values, mean, **how: (
            seen.append(len(values)) or complete(self, values, mean, **how)
        ),
    )
    referring.predict_points(time=[0.0, 8.0], lat=[20.0, 21.0], lon=[5.0, 6.0])
    assert sum(seen) == 2


def test_what_cannot_be_asked_is_refused(tmp_path):
    referring, _ = pair(tmp_path)
    with pytest.raises(SettingError, match="coordinates of 'time' that it has"):
        referring.predict_points(time=[0.5], lat=[20.0], lon=[5.0])
    with pytest.raises(SettingError, match="coordinates of lat and lon each"):
        referring.predict_stations({"time": [1.0], "lat": [20.0]})
    with pytest.raises(SettingError, match="Derivatives at points"):
        referring.predict_points(time=[1.0], lat=[20.0], lon=[5.0], derivative="lat")


def test_other_gaps_are_named(tmp_path):
    data = with_land()
    data[8, 9, 9] = np.nan  # at a time that no settings are chosen on
    referring, _ = pair(tmp_path, data, chunks=(9, 14, 18))
    with pytest.raises(InputError, match="missing at some coordinates of time only"):
        referring.predict_points(time=[8.0], lat=[20.0], lon=[5.0])
