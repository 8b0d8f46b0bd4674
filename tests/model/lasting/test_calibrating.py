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
