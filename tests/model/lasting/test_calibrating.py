"""Error bars of grids with land are those of their slices in memory."""

import numpy as np
import pytest
from chunked_grids import globe

from dkrls_cli import fit, load_model
from dkrls_cli.files.reading import open_source
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.lasting import choosing
from dkrls_cli.model.settings import Settings

GIVEN = {
    "kernel": "matern32",
    "sigma": {"lat": 40.0, "lon": 50.0},
    "ridge": 1e-3,
    "mean": 0.1,
    "group": "none",
    "poles": "none",
}
AT = {"lat": np.arange(-60.0, 88.0, 7.0), "lon": np.arange(0.0, 350.0, 13.0)}


def with_land():
    data = globe(9, 14, 18)
    data[:, 3:7, 4:9] = np.nan
    data[:, 8, 0] = np.nan
    data[:, :2] = np.nan
    return data


def referring(tmp_path, data, name="land.nc"):
    data.to_netcdf(tmp_path / name)
    return fit_by_reference(open_source([str(tmp_path / name)]), Settings(**GIVEN))


@pytest.mark.slow
@pytest.mark.parametrize("at", [AT, {"lat": 20.0, "lon": [5.0, 80.0]}, {}])
def test_one_slice_tells_what_a_file_of_that_time_does(tmp_path, monkeypatch, at):
    monkeypatch.setattr(choosing, "_SLICES", (1, 1))
    data = with_land()
    model = referring(tmp_path, data)
    alone = fit(data.isel(time=[4]), **GIVEN)  # the slice in the middle
    expected = alone.std(mask="none", **at)
    found = model.std(mask="none", **at)
    assert found.sizes["time"] == 9
    for time in range(9):
        np.testing.assert_allclose(found[time], expected[0], rtol=1e-9, atol=1e-9)
    assert float(expected.max()) > 0.01


@pytest.mark.slow
def test_means_slopes_and_regions_have_the_errors_of_a_file_of_one_time(tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "_SLICES", (1, 1))
    data = with_land().isel(time=slice(0, 3))
    data[:, 8, 0] = 0.2  # one cell alone is no land to a file of one time
    model, alone = referring(tmp_path, data), fit(data.isel(time=[1]), **GIVEN)
    at = {"lat": np.arange(-40.0, 61.0, 25.0), "lon": np.arange(0.0, 350.0, 55.0)}
    for how in ({"mean": True}, {"derivative": "lat"}):
        expected, found = (one.std(mask="none", **at, **how) for one in (alone, model))
        np.testing.assert_allclose(found[2], expected[0], rtol=0.01)  # draws end at some accuracy
    for region in ("lat=-40:40,lon=0:300", "lat=50:60,lon=200:340", "lat=-60:60"):
        expected, found = (one.mean_over(region, std=True) for one in (alone, model))
        np.testing.assert_allclose(found.f[1], expected.f[0], rtol=1e-9)
        np.testing.assert_allclose(found.f_std[1], expected.f_std[0], rtol=0.01)


@pytest.mark.slow
def test_members_of_every_time_have_its_errors_and_are_independent(tmp_path):
    model = referring(tmp_path, with_land().isel(time=slice(0, 4)))
    at = {"lat": [20.0, 33.0, 70.0], "lon": [5.0, 80.0]}
    members = model.ensemble(80, mask="none", time=[2.0, 0.0, 2.0], **at)
    errors = model.std(mask="none", time=[0.0], **at).values
    ratio = members.std("realization") / errors
    assert 0.85 < float(ratio.mean()) < 1.15
    np.testing.assert_allclose(members[:, 0], members[:, 2], atol=1e-12)
    apart = members - model.predict(mask="none", time=[2.0, 0.0, 2.0], **at)
    assert abs(np.corrcoef(apart[:, 0].values.ravel(), apart[:, 1].values.ravel())[0, 1]) < 0.3
    whole = model.ensemble(80, mask="none", **at)
    np.testing.assert_allclose(whole[:, 2], members[:, 0], atol=1e-12)
    points = model.ensemble_points(
        80, mask="none", time=[2.0, 0.0], lat=[20.0, 33.0], lon=[5.0, 80.0]
    )
    std = model.std_points(mask="none", time=[2.0, 0.0], lat=[20.0, 33.0], lon=[5.0, 80.0])
    np.testing.assert_allclose(points.std("realization"), std, rtol=0.3)
    stations = model.ensemble_stations(3, {"lat": [20.0], "lon": [5.0]}, mask="none")
    alone = model.ensemble_points(3, mask="none", time=[3.0], lat=[20.0], lon=[5.0])
    assert stations.shape == (3, 1, 4)
    np.testing.assert_allclose(stations[:, 0, 3], alone[:, 0], atol=1e-12)
    means = model.ensemble(80, mean=True, mask="none", **at)
    ratio = means.std("realization") / model.std(mean=True, mask="none", **at)
    assert 0.8 < float(ratio.mean()) < 1.2


def test_points_have_the_errors_of_the_grid_also_from_a_file(tmp_path):
    model = referring(tmp_path, with_land())
    assert isinstance(model.bars, LandBars)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    grid = model.std(lat=[20.0, 33.0], lon=[5.0, 80.0], time=[2.0, 7.0])
    points = again.std_points(lat=[20.0, 33.0], lon=[5.0, 80.0], time=[7.0, 2.0])
    np.testing.assert_allclose(points, [grid[1, 0, 0], grid[0, 1, 1]], rtol=1e-12)
    stations = again.std_stations({"lat": [20.0, 33.0], "lon": [5.0, 80.0]})
    np.testing.assert_allclose(stations, np.repeat([[p] for p in points.values], 9, axis=1))


@pytest.mark.slow
def test_several_slices_are_told_together(tmp_path):
    """Errors of slices that differ in size are between the smallest and the largest."""
    data = with_land()
    fields = {"small": data, "mixed": data * (1.0 + 4.0 * (data.time > 2)), "large": 5.0 * data}
    bars = [referring(tmp_path, one, f"{name}.nc").bars.one for name, one in fields.items()]
    small, mixed, large = (one.between.climate for one in bars)
    assert small < mixed < large
    small, mixed, large = (one.error for one in bars)
    assert small < mixed < large
