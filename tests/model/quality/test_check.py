from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import DkrlsError, check, fit
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.quality.check import check_grid, check_memory, check_slices

INTEL = Path(__file__).parents[4] / "shared/data/intel_lab_subsfin_14400x52.txt"


def field(times=40, places=12, seed=0):
    rng = np.random.default_rng(seed)
    t, x = np.arange(times)[:, None], np.arange(places)
    return 15 + 4 * np.sin(t / 5 + x / 6) + 0.1 * rng.normal(size=(times, places))


def labelled(values, **coords):
    time = np.datetime64("2020-01-01") + np.arange(len(values))
    coords = {"time": time, "lon": 30.0 * np.arange(values.shape[1]), **coords}
    attrs = {"units": "degC", "long_name": "heat"}
    return xr.DataArray(values, coords, ("time", "lon"), name="heat", attrs=attrs)


@pytest.fixture(scope="module")
def spiked():
    values = field()
    values[7, 3] += 5
    values[20, 8] -= 5
    values[30, 5] = np.nan
    return values


def test_flags_stand_beside_the_data(spiked):
    data = labelled(spiked)
    found = check(data)
    assert list(found) == ["heat", "heat_flag", "heat_expected", "heat_expected_std"]
    xr.testing.assert_equal(found.heat, data)
    assert found.heat.attrs["ancillary_variables"] == "heat_flag"
    assert found.heat_flag.dtype == np.int8
    assert found.heat_flag.attrs["standard_name"] == "quality_flag"
    assert np.argwhere(found.heat_flag.values == 1).tolist() == [[7, 3], [20, 8]]
    assert np.argwhere(found.heat_flag.values == 9).tolist() == [[30, 5]]
    assert float(found.heat_expected[7, 3]) == pytest.approx(spiked[7, 3] - 5, abs=0.5)
    assert "ancillary_variables" not in data.attrs


def test_the_order_of_axes_and_coordinates_does_not_matter(spiked):
    data = labelled(spiked)
    plain = check(data)
    order = np.random.default_rng(0).permutation(40)
    mixed = check(data.isel(time=order).transpose("lon", "time"))
    xr.testing.assert_allclose(
        mixed.heat_flag.transpose("time", "lon").sortby("time"), plain.heat_flag
    )


def test_a_repeated_longitude_has_the_flags_of_the_first(spiked):
    twice = np.concatenate([spiked, spiked[:, :1]], axis=1)
    twice[5, [0, -1]] += 5
    found = check(labelled(twice, lon=("lon", 30.0 * np.arange(13), {"units": "degrees_east"})))
    flags = found.heat_flag.values
    np.testing.assert_array_equal(flags[:, 0], flags[:, -1])
    assert flags[5, 0] == 1


def test_places_have_no_stuck_or_jumping_sensors():
    values = field()
    values[20:30, 5] = values[20, 5]
    axes = {"depth": np.arange(40.0), "x": np.arange(12.0)}
    assert "stuck" not in check_grid(as_grid(values, axes)).counts
    assert check_grid(as_grid(values, {"time": axes["depth"], "x": axes["x"]})).counts["stuck"] == 9


def test_settings_are_used(spiked):
    grid = as_grid(spiked, {"time": np.arange(40.0), "x": np.arange(12.0)})
    found = check(grid, kernel="gaussian", sigma={"time": 4.0, "x": 3.0}, ridge=1e-3)
    assert found.values_flag.values[7, 3] == 1
    with pytest.raises(DkrlsError, match="Unknown kernel"):
        check(grid, kernel="gauss")


@pytest.mark.parametrize("rate", [0.0, -1.0, 0.5, np.nan])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(DkrlsError, match="false-alarm rate"):
        check(field(), false_alarm=rate)


def test_infinite_values_are_refused():
    values = field()
    values[0, 0] = np.inf
    with pytest.raises(DkrlsError, match="1 of 480 values are infinite"):
        check(values)


def test_new_slices_are_checked_against_a_model():
    values = field(50)
    data = labelled(values)
    model = fit(data[:40], kernel="matern32", sigma={"time": 10, "lon": 90}, ridge=1e-3)
    new = data[40:].copy()
    new[3, 4] += 6
    new[8, 9] = np.nan
    found = check(new, model=model)
    assert dict(found.sizes) == {"time": 10, "lon": 12}
    assert np.argwhere(found.heat_flag.values == 1).tolist() == [[3, 4]]
    assert found.heat_flag.values[8, 9] == 9
    again = check(data[35:45], model=model)  # slices that the model has are not compared twice
    assert (again.heat_flag.values == 0).mean() > 0.98
    with pytest.raises(DkrlsError, match="'ridge' is for a grid alone"):
        check(new, model=model, ridge=1.0)
    with pytest.raises(DkrlsError):
        check(np.ones((3, 3)), model=model)


def test_a_single_new_slice_can_be_checked():
    data = labelled(field(50))
    model = fit(data[:40], kernel="matern32", sigma={"time": 10, "lon": 90}, ridge=1e-3)
    new = data[40:41].copy()
    new[0, 6] += 8
    checked = check_slices(model, as_grid(new))
    assert isinstance(checked.grid, Grid)
    assert np.argwhere(checked.bad).tolist() == [[0, 6]]


def test_memory_grows_with_the_cells():
    assert check_memory(10**6) > 2e8
    assert check_memory(2 * 10**6) - check_memory(10**6) == check_memory(10**6) - check_memory(0)


def lab(rng, times=900, sensors=12):
    """Return a twin of the lab: readings in steps of 0.01, slow and alike, with known faults."""
    t = np.arange(times)[:, None]
    day = 3 * np.sin(t / 150 + 0.1 * np.arange(sensors)) + 20
    drift = np.cumsum(0.01 * rng.normal(size=(times, sensors)), axis=0)
    values = np.round(day + drift + 0.005 * rng.normal(size=(times, sensors)), 2)
    bad = np.zeros(values.shape, bool)
    for start, stop, sensor in [(100, 101, 3), (300, 305, 5), (300, 302, 6), (640, 643, 9)]:
        values[start:stop, sensor] = rng.uniform(0, 10, stop - start).round(2)
        bad[start:stop, sensor] = True
    values[500:505, 7], bad[500:505, 7] = 0.0, True
    return values, bad


def test_bad_readings_of_a_lab_are_found():
    values, bad = lab(np.random.default_rng(0))
    found = check_grid(as_grid(values, {"time": np.arange(900.0), "sensor": np.arange(12.0)}))
    assert found.bad[bad].all()
    assert found.bad[~bad].mean() < 5e-3


@pytest.mark.slow
def test_bad_readings_of_the_intel_lab_are_found():
    """No sensor of the lab was ever below 13 degrees: 33 readings of seven sensors are."""
    if not INTEL.exists():
        pytest.skip("needs the file of the Intel Lab")
    values = np.loadtxt(INTEL)[5000:6000]
    known = values < 13
    assert known.sum() > 20
    found = check_grid(as_grid(values, {"time": np.arange(1000.0), "mote": np.arange(52.0)}))
    assert found.bad[known].all()
    assert found.bad[~known].mean() < 0.03


def test_a_longitude_that_is_there_twice_is_judged_twice():
    """The first of both stands for them; where the other one differs, it is judged by itself."""
    rng = np.random.default_rng(0)
    lon, t = np.arange(0.0, 361.0, 30.0), np.arange(20.0)
    values = 10 + np.cos(np.radians(lon) - t[:, None] / 3) + 0.05 * rng.normal(size=(20, 13))
    values[:, -1] = values[:, 0]
    values[5, -1] += 4.0  # the second alone is bad
    values[9, 0] += 4.0  # the first alone
    values[13, [0, -1]] += 4.0  # both
    values[15, 0] = values[17, -1] = np.nan
    array = xr.DataArray(
        values, {"time": t, "lon": ("lon", lon, {"units": "degrees_east"})}, ("time", "lon"), "v"
    )
    flags = check(array).v_flag.values
    assert flags[[5, 9, 13], 0].tolist() == [0, 1, 1]
    assert flags[[5, 9, 13], -1].tolist() == [1, 0, 1]
    assert flags[[15, 17], 0].tolist() == [9, 0]
    assert flags[[15, 17], -1].tolist() == [0, 9]
