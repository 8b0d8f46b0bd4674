"""What is known of a model with other slices."""

import numpy as np
import pytest
import xarray as xr
from growing_grids import slices, small

from dkrls_cli import fit, load_model


def test_gaps_are_described_until_they_are_gone():
    model = small(range(6)).update(*slices(range(6, 12), gaps=True))
    assert model.origin["missing"]["share"] == pytest.approx(3 / 48)
    assert model.origin["missing"]["settings_tried"] == 0
    again = model.update(*slices([12]))
    assert again.origin["missing"]["share"] == pytest.approx(3 / 52)
    later = model.update(*slices(range(12, 16)), window=4)
    assert later.unobserved is None
    assert "missing" not in later.origin


def test_several_times_show_land_that_one_time_did_not():
    lat, lon = np.linspace(-10, 10, 9), np.linspace(0, 20, 9)
    times = np.array(["2001-01-01", "2001-02-01", "2001-03-01"], "M8[ns]")
    field = np.cos(lat / 9)[:, None] * np.sin(lon / 7) + np.arange(3.0)[:, None, None]
    field[:, 4, 4] = np.nan  # an island, as small as a cloud
    field[0, 6, 2] = np.nan  # a cloud
    coords = {"time": times, "lat": lat, "lon": lon}
    data = xr.DataArray(field, coords, tuple(coords), name="t")
    settings = {"sigma": {"lat": 5.0, "lon": 5.0}, "kernel": "matern52", "ridge": 1e-4}
    model = fit(data[:1], **settings)
    assert model.predict().notnull().all()
    for step in (1, 2):
        model = model.update(data[step : step + 1])
        answers = model.predict()
        assert (
            answers.isnull().sum("time").values.tolist()
            == np.where(np.isnan(field).all(axis=0), step + 1, 0).tolist()
        )
    assert "land" not in model.origin
    np.testing.assert_array_equal(
        model.coverage.absent, fit(data, **settings, noise="joint").coverage.absent
    )


def test_several_times_show_a_row_of_land_that_one_time_did_not():
    lat, days = np.linspace(-10, 10, 9), np.arange("2001-01-01", 2, dtype="M8[D]")
    field = np.cos(lat / 9) + np.arange(2.0)[:, None]
    field[:, 4] = np.nan
    coords = {"time": days.astype("M8[ns]"), "lat": lat}
    data = xr.DataArray(field, coords, tuple(coords), name="t")
    model = fit(data[:1], sigma={"lat": 5.0})
    assert model.predict().notnull().all()
    answers = model.update(data[1:]).predict()
    assert np.argwhere(answers.isnull().values).tolist() == [[0, 4], [1, 4]]


def test_a_window_of_one_slice_does_not_forget_which_cells_had_data():
    lat, days = np.linspace(-10, 10, 9), np.arange("2001-01-01", 4, dtype="M8[D]")
    field = np.cos(lat / 9) + np.arange(4.0)[:, None]
    field[:, 7] = field[1:, 3] = np.nan
    coords = {"time": days.astype("M8[ns]"), "lat": lat}
    data = xr.DataArray(field, coords, tuple(coords), name="t")
    model = fit(data[:2], sigma={"lat": 5.0, "time": 2.0}, ridge=1e-4)
    for step in (2, 3):
        model = model.update(data[step : step + 1], window=step - 1)
        assert np.flatnonzero(model.coverage.absent).tolist() == [7]


def test_a_series_by_depth_with_lost_samples_grows_and_is_read_again(tmp_path):
    depth = np.arange(20.0)
    values = np.sin(depth / 3)
    values[[5, 8]] = np.nan
    attrs = {"standard_name": "depth", "positive": "down", "units": "m"}
    series = xr.DataArray(values, {"depth": ("depth", depth, attrs)}, ("depth",), name="t")
    model = fit(series[:15], kernel="matern32", sigma=4.0, ridge=1e-4).update(series[15:])
    model.save(tmp_path / "m.npz")
    xr.testing.assert_equal(load_model(tmp_path / "m.npz").predict(), model.predict())
    assert model.predict().depth.values.tolist() == depth.tolist()
