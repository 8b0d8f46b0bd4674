"""Contents of pictures: values, errors and data of models, and data of files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.model import Model
from dkrls_cli.plots.pictures import (
    INTERVAL,
    ask_model,
    interval,
    picture_data,
    picture_model,
    training_data,
)
from dkrls_cli.plots.slices import Fixed, orient

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
LAT, LON, TIME = np.linspace(-40, 40, 7), np.linspace(0.0, 315.0, 8), np.arange(10.0)


def values() -> Any:
    t, y, x = np.meshgrid(TIME, np.radians(LAT), np.radians(LON), indexing="ij")
    return np.cos(y) * np.sin(x + t / 9) + t / 10


def labelled(gaps: bool = False) -> Any:
    import xarray as xr

    found = values()
    if gaps:
        found[-1, 2:4, 3] = np.nan
        found[:, 0, 0] = np.nan  # land
    axes = {"time": TIME, "lat": ("lat", LAT, NORTH), "lon": ("lon", LON, EAST)}
    return xr.DataArray(found, axes, ("time", "lat", "lon"), "t", {"units": "K"})


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(labelled())


@pytest.fixture(scope="module")
def gappy() -> Model:
    sigma = {"time": 9.0, "lat": 40.0, "lon": 90.0}
    return fit(labelled(gaps=True), kernel="gaussian", sigma=sigma, ridge=1e-6)


# Files --------------------------------------------------------------------------------------------


def test_data_of_two_dimensions_is_a_field() -> None:
    lat, lon = axis_of("lat", LAT, NORTH), axis_of("lon", LON, EAST)
    picture = picture_data(orient(Grid(values()[0], (lat, lon), "t", {"units": "K"})))
    assert (picture.title, picture.units, picture.line) == ("t", "K", None)
    [field] = picture.fields
    np.testing.assert_array_equal(field.values, values()[0])
    assert (field.scale.low, field.scale.high) == (values()[0].min(), values()[0].max())
    assert field.heading == ""


def test_data_of_one_dimension_is_a_line() -> None:
    picture = picture_data(orient(Grid(values()[:, 0, 0], (axis_of("time", TIME),), "t")))
    assert picture.fields == ()
    assert picture.line is not None
    assert picture.line.label == ""
    np.testing.assert_array_equal(picture.line.values, values()[:, 0, 0])


def test_data_without_values_is_refused() -> None:
    with pytest.raises(InputError, match="No cell of 't' has a value"):
        picture_data(orient(Grid(np.full(10, np.nan), (axis_of("time", TIME),), "t")))


# Models -------------------------------------------------------------------------------------------


def test_the_last_time_of_a_model_is_shown(model: Model) -> None:
    asked = ask_model(model, {})
    assert asked.fixed == [Fixed("time", "9.0", "the last of 10")]
    picture = picture_model(asked, std=False, data=False)
    assert picture.title == "t, time 9"
    [field] = picture.fields
    np.testing.assert_allclose(field.values, values()[-1], atol=1e-12)


def test_answers_between_the_data_have_errors_and_the_data_beside_them(model: Model) -> None:
    at = {"lat": np.linspace(-40, 40, 21), "lon": np.linspace(0, 310, 32), "time": [4.0]}
    asked = ask_model(model, at)
    assert asked.fixed == []
    data, field, errors = picture_model(asked, std=True, data=True).fields
    assert (data.heading, field.heading, errors.heading) == ("data", "model", "standard error")
    assert data.scale == field.scale
    np.testing.assert_allclose(data.values, values()[4], atol=1e-12)
    np.testing.assert_allclose(field.values, model.predict(**at).values[0])
    np.testing.assert_allclose(errors.values, model.std(**at).values[0])
    assert (errors.scale.low, errors.scale.high) == (0.0, errors.values.max())
    assert field.scale.low == min(data.values.min(), field.values.min())


def test_a_field_alone_needs_no_heading(model: Model) -> None:
    [field] = picture_model(ask_model(model, {"time": [4.0]}), std=False, data=False).fields
    assert field.heading == ""


def test_data_at_other_coordinates_is_refused(model: Model) -> None:
    with pytest.raises(SettingError, match=r"cannot be shown: it has no values at time=4.5"):
        picture_model(ask_model(model, {"time": [4.5]}), std=False, data=True)
    assert training_data(model, model.axes_at({"time": [4.5]})[:1]) is None


def test_a_line_has_an_interval_and_the_data(model: Model) -> None:
    at: dict[str, Any] = {"lat": [0.0], "lon": [45.0], "time": np.linspace(0, 9, 28)}
    line = picture_model(ask_model(model, at), std=True, data=False).line
    assert line is not None
    assert line.points is not None
    assert line.low is not None
    assert line.high is not None
    std = model.std(**at).values.ravel()
    np.testing.assert_allclose(line.high - line.values, INTERVAL * std, atol=1e-12)
    np.testing.assert_allclose(line.values - line.low, INTERVAL * std, atol=1e-12)
    np.testing.assert_array_equal(line.points[0], TIME)
    np.testing.assert_allclose(line.points[1], values()[:, 3, 1], atol=1e-12)


def test_the_data_of_a_line_is_that_in_its_range(model: Model) -> None:
    at: dict[str, Any] = {"lat": [0.0], "time": [4.0], "lon": [300.0, 330.0, 360.0, 420.0]}
    line = picture_model(ask_model(model, at), std=False, data=False).line
    assert line is not None
    assert line.points is not None
    assert sorted(line.points[0].tolist()) == [315.0, 360.0, 405.0]
    np.testing.assert_allclose(np.sort(line.points[1]), np.sort(values()[4, 3, [7, 0, 1]]))
    between = picture_model(ask_model(model, {**at, "lat": [1.0]}), std=False, data=False).line
    assert between is not None
    assert between.points is None


def test_missing_cells_are_no_data_and_land_no_answer(gappy: Model) -> None:
    picture = picture_model(ask_model(gappy, {"time": [9.0]}), std=False, data=True)
    data, field = picture.fields
    assert np.isnan(data.values[2:4, 3]).all()
    assert np.isfinite(field.values[2:4, 3]).all()
    assert np.isnan(data.values[0, 0])
    assert np.isnan(field.values[0, 0])
    np.testing.assert_allclose(data.values[4:], values()[-1, 4:], atol=1e-9)


def test_what_lies_outside_stays_missing(model: Model) -> None:
    asked = ask_model(model, {"lat": [0.0, 30.0, 60.0], "time": [4.0]})
    assert asked.query.outside_count == 8
    [field] = picture_model(asked, std=False, data=False).fields
    assert np.isnan(field.values).any(axis=1).tolist() == [False, False, True]
    with pytest.raises(InputError, match=r"No cell of 't' has a value at time=40.0"):
        picture_model(ask_model(model, {"time": [40.0]}), std=False, data=False)


def test_observations_with_errors_are_the_data() -> None:
    noisy = labelled()[:, :4, :4]
    found = fit(noisy, obs_error=0.1)
    picture = picture_model(ask_model(found, {"time": [4.0]}), std=False, data=True)
    data, field = picture.fields
    np.testing.assert_allclose(data.values, noisy[4].values)
    assert np.abs(field.values - data.values).max() > 1e-6


def test_intervals_keep_to_the_bounds() -> None:
    from dkrls_cli.model.answering.bounds import Bounds

    low, high = interval(np.array([0.1, 0.9]), np.array([1.0, 1.0]), Bounds(0.0, 1.0))
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [1.0, 1.0])
    assert interval(np.array([1.0]), np.array([2.0]))[0][0] == pytest.approx(1 - 2 * 1.6449)


def test_the_interval_holds_nine_tenths_of_a_normal_distribution() -> None:
    from math import erf, sqrt

    assert erf(INTERVAL / sqrt(2)) == pytest.approx(0.9, abs=1e-4)
