"""Points of grids with land are answered as each time is in memory."""

import numpy as np
import pytest
import xarray as xr
from chunked_grids import globe

from dkrls_cli import fit
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.asking.queries import Manner, point_query
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.referring import points as point_answers
from dkrls_cli.model.referring import tiles
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


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [False, True])
def test_points_are_those_in_memory(tmp_path, smooth):
    referring, held = pair(tmp_path)
    at = scattered(with_land())
    found, expected = (m.predict_points(**at, smooth=smooth) for m in (referring, held))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert 0.02 < np.isnan(expected).mean() < 0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("at", [{}, {"time": [5.0, 1.0, 5.0]}, {"time": [1.0, 2.0]}])
@pytest.mark.parametrize("least", [tiles._LEAST, 1])
def test_stations_are_those_in_memory(tmp_path, at, least, monkeypatch):
    monkeypatch.setattr(tiles, "_LEAST", least)  # 1: every two times are a tile
    referring, held = pair(tmp_path)
    points = scattered(with_land(), 25)
    stations = {"lat": points["lat"], "lon": points["lon"]}
    found, expected = (model.predict_stations(stations, **at) for model in (referring, held))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.slow
def test_slices_of_two_dimensions(tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "_LEAST", 1)
    data = with_land().isel(time=slice(0, 6))
    levels = np.array([0.0, 10.0, 20.0])
    deep = xr.concat([data * (1 + level / 7) for level in levels], "depth").assign_coords(
        depth=levels
    )
    deep = deep.transpose("time", "depth", "lat", "lon")
    path = tmp_path / "deep.nc"
    deep.rename("f").to_netcdf(path, encoding={"f": {"chunksizes": (2, 2, 14, 18)}})
    referring = fit_by_reference(open_source([str(path)]), Settings(sigma=SIGMA, **GIVEN))
    points = {key: numbers[15:25] for key, numbers in scattered(with_land()).items()}
    own = {"lat": points["lat"], "lon": points["lon"], "depth": np.resize(levels[[2, 0]], 10)}
    found = referring.predict_stations(own, time=[4.0, 1.0])
    for place in range(10):
        alone = {key: float(numbers[place]) for key, numbers in own.items()}
        answers = referring.predict(time=[4.0, 1.0], **alone)
        np.testing.assert_allclose(found[place], answers, rtol=0, atol=1e-9)


def test_a_cell_counts_what_completing_it_takes(tmp_path):
    referring, _ = pair(tmp_path)
    query = point_query(referring, None, scattered(with_land()), Manner(), (), False).query
    sums = point_answers._opened(query, open_source([str(tmp_path / "land.nc")]))[1](query).sums
    assert sums.cell_bytes == 8 * 4 + 8 * 10


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
    with pytest.raises(SettingError, match="of a grid with missing cells need all of it"):
        referring.std_points(time=[1.0], lat=[20.0], lon=[5.0], derivative="lat")


@pytest.mark.slow
def test_other_gaps_are_named(tmp_path):
    data = with_land()
    data[8, 9, 9] = np.nan  # at a time that no settings are chosen on
    referring, _ = pair(tmp_path, data, chunks=(9, 14, 18))
    with pytest.raises(InputError, match="missing at some coordinates of time only"):
        referring.predict_points(time=[8.0], lat=[20.0], lon=[5.0])


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{"mean": "lat"}, {"derivative": "lon"}])
def test_means_and_derivatives_have_values_errors_and_members(tmp_path, asked):
    referring, held = pair(tmp_path)
    at = {"lat": [10.0, 21.0], "lon": [30.0, 50.0], **asked}
    np.testing.assert_allclose(referring.predict(**at), held.predict(**at), rtol=0, atol=1e-7)
    for found in (referring.std(**at), referring.ensemble(2, **at)[0]):
        assert (np.isfinite(found) == np.isfinite(held.predict(**at))).all()
