"""Ensembles of answers: labels, seeds, bounds, land, what lies outside, and what is refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import Model, fit
from dkrls_cli.errors import SettingError
from dkrls_cli.model.answering.answers import Rules, ask
from dkrls_cli.model.answering.ensembles import draw_members

LAT, LON = np.linspace(-60.0, 60.0, 9), np.arange(0.0, 360.0, 40.0)
TIME = np.arange("2001-01-01", "2001-01-11", dtype="datetime64[D]")
GIVEN: dict[str, Any] = {
    "kernel": "matern32",
    "sigma": {"time": 5.0, "lat": 30.0, "lon": 60.0},
    "ridge": 1e-2,
    "noise": "level",
}
AT: dict[str, Any] = {"lat": [3.0, 15.0, 17.5], "lon": [10.0, 40.0], "time": TIME[2:5]}


def field(name: str = "sst") -> xr.DataArray:
    t, y, x = np.meshgrid(np.arange(10.0), LAT, LON, indexing="ij")
    rng = np.random.default_rng(1)
    values = 10 * np.cos(np.deg2rad(y)) + np.sin(np.deg2rad(x)) * np.cos(t / 3)
    coords = {"time": TIME, "lat": LAT, "lon": ("lon", LON, {"units": "degrees_east"})}
    attrs = {"units": "K", "long_name": "temperature", "standard_name": "air_temperature"}
    noisy = values + 0.1 * rng.standard_normal(values.shape)
    return xr.DataArray(noisy, coords, ("time", "lat", "lon"), name, {**attrs, "history": "x"})


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(field(), **GIVEN)


# Labels -------------------------------------------------------------------------------------------


def test_members_are_labelled_after_cf(model: Model) -> None:
    members = model.ensemble(3, **AT)
    assert members.dims == ("realization", "time", "lat", "lon")
    assert members.realization.dtype == np.int32
    assert members.realization.values.tolist() == [0, 1, 2]
    assert members.realization.attrs["standard_name"] == "realization"
    assert members.name == "sst_ensemble"
    assert members.attrs == {
        "long_name": "temperature, ensemble members",
        "standard_name": "air_temperature",
        "units": "K",
    }
    answers = model.predict(**AT)
    for dim in answers.dims:
        xr.testing.assert_identical(members[dim], answers[dim])


def test_a_scalar_drops_its_dimension_and_names_are_found_by_meaning(model: Model) -> None:
    members = model.ensemble(2, latitude=15.0, lon=[10.0], time="2001-01-03")
    assert members.dims == ("realization", "lon")
    assert members.lat.item() == 15.0


# Members ------------------------------------------------------------------------------------------


def test_members_pass_through_the_data_and_spread_as_the_errors_say(model: Model) -> None:
    members, answers, std = model.ensemble(2500, **AT), model.predict(**AT), model.std(**AT)
    at_node = {"lat": 15.0, "lon": 40.0}
    same = members.sel(at_node) == field().sel(time=TIME[2:5], **at_node)
    assert bool(same.all())
    off = std.values > 0
    assert off.sum() == off.size - 3
    ratio = (members.std("realization") / std).values[off]
    assert np.abs(ratio - 1).max() < 5 / np.sqrt(2 * 2500)
    np.testing.assert_allclose(members.mean("realization"), answers, atol=5 * std.max() / 50)


def test_members_are_answers_plus_what_the_error_bars_draw(model: Model) -> None:
    query = ask(model, model.axes_at(AT), Rules(), list(AT))
    draw = model.bars.deviations(model.cascade, model.queries(query.asked), seed=8)
    assert draw(0).shape == query.shape
    members = model.ensemble(400, **AT).values - model.predict(**AT).values
    other = np.stack([draw(i) for i in range(400)])
    ratio = members.mean(axis=(1, 2, 3)).std() / other.mean(axis=(1, 2, 3)).std()
    assert 0.8 < ratio < 1.25


def test_a_member_is_the_same_whatever_their_number(model: Model) -> None:
    few, many = model.ensemble(2, seed=3, **AT), model.ensemble(5, seed=3, **AT)
    np.testing.assert_array_equal(few, many[:2])
    assert not np.allclose(few, model.ensemble(2, seed=4, **AT))
    np.testing.assert_array_equal(model.ensemble(2, **AT), model.ensemble(2, seed=0, **AT))


def test_an_iterator_yields_the_same_members(model: Model) -> None:
    whole = model.ensemble(3, seed=1, **AT)
    found = model.iter_ensemble(3, seed=1, **AT)
    assert isinstance(found, Iterator)
    for number, member in enumerate(found):
        xr.testing.assert_identical(member, whole.isel(realization=number))
    one = next(model.iter_ensemble(1, lat=3.0, lon=10.0, time="2001-01-03"))
    assert (one.dims, one.realization.item()) == ((), 0)


def test_one_member_at_a_time_is_in_memory(model: Model) -> None:
    at = {"lat": np.linspace(-50, 50, 60), "lon": np.linspace(0, 350, 80), "time": TIME}
    size = 60 * 80 * 10 * 8

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in model.iter_ensemble(count, **at):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(12) < peak(3) + size


def test_variables_of_other_names_err_independently() -> None:
    """The same numbers for both would make their errors go together."""
    one, other = (fit(field(name), **GIVEN) for name in ("sst", "tos"))
    first, second = (
        (m.ensemble(300, **AT) - m.predict(**AT)).values.reshape(300, -1) for m in (one, other)
    )
    off = first.std(axis=0) > 0
    products = np.mean(first[:, off] * second[:, off], axis=0)
    assert np.abs(products / (first.std(axis=0) * second.std(axis=0))[off]).max() < 0.3


# Bounds, land and what lies outside ---------------------------------------------------------------


def test_members_stay_within_bounds() -> None:
    data = field().clip(9.5, None) - 9.5
    model = fit(data, **GIVEN, bounds=(0.0, None))
    members = model.ensemble(50, **AT)
    assert float(members.min()) == 0.0
    free = fit(data, **GIVEN).ensemble(50, **AT)
    np.testing.assert_array_equal(members, free.clip(0.0))


def test_cells_without_an_answer_have_none_in_any_member(model: Model) -> None:
    mask = xr.DataArray(
        [[1.0, 0.0], [1.0, 1.0]], {"lat": [-30.0, 30.0], "lon": [10.0, 40.0]}, ("lat", "lon")
    )
    at = {**AT, "lat": [-70.0, 3.0, 15.0, 29.0]}
    for rules in ({"outside": "missing"}, {"outside": "missing", "mask": mask}):
        answers, members = model.predict(**rules, **at), model.ensemble(2, **rules, **at)
        for member in members:
            np.testing.assert_array_equal(np.isnan(member), np.isnan(answers))
        assert np.isnan(answers).any()


def test_outside_follows_the_rules_of_answers(model: Model) -> None:
    far = {**AT, "lat": [58.0, 60.0, 75.0]}
    with pytest.raises(SettingError, match="outside the training range"):
        model.ensemble(2, **far)
    near = model.ensemble(2, outside="nearest", **far)
    np.testing.assert_array_equal(near.sel(lat=75.0), near.sel(lat=60.0))
    wide, inside = (
        (model.ensemble(200, extrapolate=True, **far) - model.predict(extrapolate=True, **far))
        .std("realization")
        .sel(lat=lat)
        .values
        for lat in (75.0, 58.0)
    )
    assert (wide > inside).all()


def test_smooth_members_differ_from_the_data(model: Model) -> None:
    at_node = {"lat": 15.0, "lon": 40.0, "time": TIME[2]}
    assert float(model.ensemble(5, **at_node).std()) == 0.0
    assert float(model.ensemble(5, smooth=True, **at_node).std()) > 0.0


# Points and stations ------------------------------------------------------------------------------

PLACES = {"lat": [3.0, 15.0, 3.0], "lon": [10.0, 40.0, 370.0]}


def test_points_have_members(model: Model) -> None:
    points = {**PLACES, "time": TIME[[2, 2, 2]]}
    members = model.ensemble_points(2500, **points)
    assert members.shape == (2500, 3)
    std = model.std_points(**points)
    assert (members[:, 1] == model.predict_points(**points)[1]).all()
    np.testing.assert_array_equal(members[:, 0], members[:, 2])  # the same place
    assert members[:, 0].std() == pytest.approx(std[0], rel=5 / np.sqrt(5000))
    np.testing.assert_array_equal(members[:2], model.ensemble_points(2, **points))


def test_stations_have_members(model: Model) -> None:
    members = model.ensemble_stations(3, PLACES, time=TIME[2:4], seed=5)
    answers = model.predict_stations(PLACES, time=TIME[2:4])
    assert members.dims == ("realization", "station", "time")
    assert members.realization.attrs["standard_name"] == "realization"
    xr.testing.assert_identical(members.lat.drop_vars("realization", errors="ignore"), answers.lat)
    np.testing.assert_array_equal(members[:, 1], np.broadcast_to(answers[1], (3, 2)))
    assert model.ensemble_stations(2, PLACES, time=TIME[2]).dims == ("realization", "station")


def test_filled_cells_of_an_update_have_members() -> None:
    data = field()
    model = fit(data[:8], **GIVEN)
    gaps = data[8:].copy()
    gaps[0, 3:5, 2] = np.nan
    grown = model.update(gaps)
    members, std = grown.ensemble(300), grown.std()
    spread = members.std("realization").values
    filled = std.values > 0
    assert (members.values == grown.predict().values)[:, ~filled].all()
    assert filled.sum() == 2
    np.testing.assert_allclose(spread[filled], std.values[filled], rtol=0.25)


# Grids with missing cells -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gappy() -> tuple[Model, np.ndarray]:
    data = field()
    missing = np.random.default_rng(3).random(data.shape) < 0.2
    missing[4:7, 2:5, 2:6] = True
    joint = {"kernel": "matern32", "sigma": GIVEN["sigma"], "ridge": 1e-2}
    return fit(data.where(~missing), **joint), missing


def test_missing_cells_have_members(gappy: tuple[Model, np.ndarray]) -> None:
    model, missing = gappy
    members, answers, std = model.ensemble(60, seed=2), model.predict(), model.std()
    assert members.dims == ("realization", *answers.dims)
    assert (members.values == answers.values)[:, ~missing].all()
    spread = members.std("realization").values[missing] / std.values[missing]
    assert spread.mean() == pytest.approx(1.0, abs=0.1)
    assert (np.abs(members - answers).values[:, missing] < 6 * std.values[missing]).all()


def test_points_and_stations_have_the_members_of_the_grid(
    gappy: tuple[Model, np.ndarray],
) -> None:
    model, missing = gappy
    members = model.ensemble(3, seed=2)
    t, i, j = np.argwhere(missing)[::9].T
    lat, lon = members.lat.values[i], members.lon.values[j]
    found = model.ensemble_points(3, lat=lat, lon=lon, time=members.time.values[t], seed=2)
    np.testing.assert_allclose(found, members.values[:, t, i, j], rtol=1e-9)
    stations = model.ensemble_stations(3, {"lat": lat, "lon": lon}, seed=2)
    together = stations.values[:, np.arange(t.size), t]
    np.testing.assert_allclose(together, members.values[:, t, i, j], rtol=1e-9)


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1])
def test_an_ensemble_has_members(model: Model, count: int) -> None:
    with pytest.raises(SettingError, match=f"number of members {count}. It must be 1 or more"):
        model.ensemble(count, **AT)
    with pytest.raises(SettingError, match="number of members"):
        model.iter_ensemble(count, **AT)  # at once, and not at the first member


def test_a_seed_is_no_negative_number(model: Model) -> None:
    with pytest.raises(SettingError, match=r"Invalid seed -1\. It must be 0 or above"):
        model.ensemble(2, seed=-1, **AT)


def test_a_dimension_of_the_same_name_is_refused() -> None:
    own = fit(field().rename(time="realization"), kernel="matern32", sigma=9.0, ridge=0.1)
    with pytest.raises(SettingError, match="'sst' has a dimension 'realization' of its own"):
        own.ensemble(2)


def test_draws_are_refused_before_the_first_is_asked_for(model: Model) -> None:
    query = ask(model, model.axes_at(AT), Rules(), list(AT))
    with pytest.raises(SettingError, match="number of members"):
        draw_members(query, 0)
    assert len(list(draw_members(query, 2))) == 2
