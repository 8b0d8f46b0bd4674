"""Tests of dkrls_cli.model.answering.regions: means over regions and periods."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit
from dkrls_cli.cascade.calibration.averaging import averaged_variances
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Means
from dkrls_cli.cascade.functionals.windows import open_parts
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.functionals import deviations
from dkrls_cli.model.answering import linear
from dkrls_cli.model.answering import regions as module
from dkrls_cli.model.answering.answers import Rules
from dkrls_cli.model.answering.ensembles import draw_members
from dkrls_cli.model.answering.regions import ask_region

LAT, LON, DAYS = np.arange(-85.0, 86, 10), np.arange(0.0, 360, 15), np.arange(12.0)
GIVEN = {"kernel": "gaussian", "sigma": {"lat": 30.0, "lon": 40.0, "time": 4.0}, "ridge": 1e-9}


def array(noise: float = 0.0) -> xr.DataArray:
    y, x = np.radians(LAT)[:, None, None], np.radians(LON)[:, None]
    values = 2 + np.cos(y) * np.cos(x) * np.cos(DAYS / 5) + 0.5 * np.sin(y)
    values = values + noise * np.random.default_rng(0).standard_normal(values.shape)
    coords = {
        "lat": ("lat", LAT, {"units": "degrees_north"}),
        "lon": ("lon", LON, {"units": "degrees_east"}),
        "time": ("time", np.datetime64("2020-01-01", "ns") + DAYS.astype("timedelta64[D]")),
    }
    return xr.DataArray(values, coords, ("lat", "lon", "time"), "t", {"units": "K"})


@pytest.fixture(scope="module")
def model():
    return fit(array(), **GIVEN)


def test_regions_that_are_known(model):
    whole = model.mean_over("lat,lon,time")
    assert whole.shape == ()
    assert float(whole) == pytest.approx(2.0, abs=1e-5)
    north = model.mean_over({"lat": (0, 90), "lon": None})
    assert north.dims == ("time",)
    assert np.allclose(north, 2.25, rtol=0, atol=1e-4)
    box = model.mean_over({"lat": (-30, 30), "lon": (345, 15)}, time="2020-01-01")
    widths = np.radians([60, 30])
    cosine = (widths[0] + np.sin(widths[0])) / 2 / (2 * np.sin(widths[0] / 2))
    exact = 2 + cosine * 2 * np.sin(widths[1] / 2) / widths[1]
    assert float(box) == pytest.approx(exact, abs=1e-4)
    assert np.allclose(model.mean_over("lon=-15:15,lat=-30:30", time="2020-01-01"), box, rtol=1e-12)
    days = model.mean_over("time=2020-01-03:2020-01-05", lat=[5.0], lon=[0.0])
    assert days.attrs["cell_methods"] == "time: mean"


@pytest.fixture(scope="module")
def monthly():
    """Three years of months, each at its beginning: cells begin in the middle of a month."""
    time = np.arange("2020-01", "2023-01", dtype="M8[M]").astype("M8[ns]")
    data = xr.DataArray(np.sin(np.arange(36.0) / 9), {"time": time}, ["time"], "t")
    return fit(data, kernel="gaussian", sigma={"time": 150.0}, ridge=1e-9)


@pytest.mark.parametrize(
    ("named", "moments"),
    [
        ("2020-02:2020-04", ("2020-02-01", "2020-05-01")),
        ("2021:2021", ("2021-01-01", "2022-01-01")),
        ("2021-03:2021-02", ("2021-02-01", "2021-04-01")),
        ("2021:2021-06-10", ("2021-01-01", "2022-01-01")),
        ("2021-06-10:2021-06", ("2021-06-01", "2021-07-01")),
        ("2021-01-15:2021-03", ("2021-01-15", "2021-04-01")),
        ("2020:2022", ("2020-01-01", "2022-12-16")),  # to the end of the last cell
        ("2019-12:2020-01", ("2019-12-16T12:00", "2020-02-01")),
        ("2021-04-01:2021-05-01", ("2021-04-01", "2021-05-01")),  # days are moments
    ],
)
def test_a_period_from_month_to_month_includes_both(monthly, named, moments):
    assert float(monthly.mean_over(f"time={named}")) == pytest.approx(
        float(monthly.mean_over({"time": moments})), rel=1e-12
    )
    assert float(monthly.mean_over({"time": named.split(":")})) == pytest.approx(
        float(monthly.mean_over({"time": moments})), rel=1e-12
    )


@pytest.mark.parametrize("named", ["2022:2023", "2019-11:2020-01", "2020-01:2023-01"])
def test_months_without_data_are_beyond_it(monthly, named):
    with pytest.raises(SettingError, match="reach beyond the cells of the data"):
        monthly.mean_over(f"time={named}")


def test_means_of_very_smooth_data_are_as_exact_as_its_values():
    x, y = np.linspace(10, 60, 13), np.linspace(0, 3, 5)
    f = lambda at: np.sin(0.2 * at) + 0.5 * np.cos(0.13 * at)  # noqa: E731
    data = np.multiply.outer(f(x), np.cos(y))
    sigma = {"lat": 21.0, "y": 1.0}
    found = fit(data, {"lat": x, "y": y}, kernel="gaussian", sigma=sigma, ridge=1e-13)
    fine = np.linspace(20, 50, 3001)
    weights = np.cos(np.radians(fine)) * np.r_[0.5, np.ones(2999), 0.5]
    for smooth in (False, True):
        mean = found.mean_over({"lat": (20, 50)}, y=y, smooth=smooth)
        true = np.average(f(fine), weights=weights) * np.cos(y)
        np.testing.assert_allclose(mean, true, atol=1e-5)


def test_a_range_of_a_warped_axis_stays_above_0():
    depth, x = np.array([5.0, 15.0, 30.0, 60.0, 120.0, 240.0]), np.arange(4.0)
    data = np.multiply.outer(np.log(depth), 1 + x)
    kernel = {"depth": "log-matern52", "x": "gaussian"}
    found = fit(data, {"depth": depth, "x": x}, kernel=kernel, ridge=1e-9)
    whole = found.mean_over({"depth": None}, x=[0.0])
    fine = np.geomspace(2.5, 300, 20001)
    true = np.trapezoid(np.log(fine), fine) / (300 - 2.5)
    np.testing.assert_allclose(whole, [true], atol=0.02)
    some = found.mean_over({"depth": (5, 240)}, x=[0.0])
    np.testing.assert_allclose(some, [(240 * np.log(240) - 5 * np.log(5)) / 235 - 1], atol=2e-3)
    with pytest.raises(InputError, match="log of coordinate 0 cannot be taken"):
        found.mean_over({"depth": (0, 100)}, x=[0.0])


def test_means_over_parts_make_the_mean_over_the_whole(model):
    parts = [
        float(model.mean_over({"lat": ends, "lon": None}, time="2020-01-03"))
        for ends in ((-90, 10), (10, 90))
    ]
    shares = np.diff(np.sin(np.radians([-90, 10, 90]))) / 2
    whole = model.mean_over("lat,lon", time="2020-01-03")
    assert np.dot(parts, shares) == pytest.approx(float(whole), abs=1e-10)


def test_slopes_of_means_and_their_errors(model):
    found = model.mean_over(
        "lat=-30:30,lon=-30:30", derivative="time", std=True, time=["2020-01-06"]
    )
    assert set(found.data_vars) == {"dt_dtime", "dt_dtime_std"}
    ends = model.mean_over("lat=-30:30,lon=-30:30", time=["2020-01-06T01:00", "2020-01-05T23:00"])
    slope = float(ends[0] - ends[1]) * 12
    assert float(found["dt_dtime"][0]) == pytest.approx(slope, abs=1e-5)
    assert (found["dt_dtime_std"] > 0).all()


def test_the_mean_of_noisy_data_is_that_of_the_data():
    noisy = array(noise=1.0)
    model = fit(noisy, kernel="matern12", sigma={"lat": 30.0, "lon": 40.0, "time": 4.0}, ridge=0.3)
    weights = np.diff(np.sin(np.radians([LAT - 5, LAT + 5]).T), axis=1)[:, 0]
    plain = np.average(noisy.values.mean(axis=(1, 2)), weights=weights)
    kept, smooth = (float(model.mean_over("lat,lon,time", smooth=s)) for s in (False, True))
    assert abs(kept - plain) < 0.02
    assert abs(kept - plain) < abs(smooth - plain)
    cell = {"lat": (-10, 0), "lon": (-7.5, 7.5)}
    one = model.mean_over(cell, time=["2020-01-04"])
    assert abs(float(one[0]) - float(noisy[8, 0, 3])) < 0.2


def test_standard_errors_agree_with_the_spread_of_an_ensemble():
    model = fit(
        array(noise=0.3),
        kernel="matern32",
        sigma={"lat": 60.0, "lon": 80.0, "time": 6.0},
        ridge=0.1,
    )
    found = model.mean_over("lat=-40:40,lon=60:180", std=True, time="2020-01-04T12:00")
    inside = model.ensemble(60, lat=LAT[5:13], lon=LON[4:13], time="2020-01-04T12:00")
    spread = inside.weighted(np.cos(np.radians(inside.lat))).mean(("lat", "lon")).std("realization")
    assert 0.2 < float(found["t_std"]) / float(spread) < 1.5  # members take errors to reach too far
    cells = model.std(lat=[0.0], lon=[97.0], time="2020-01-04T12:00")
    assert float(found["t_std"]) < float(cells[0, 0])


def test_land_is_left_out_and_told(monkeypatch):
    data = array().isel(time=slice(0, 3))
    land = np.zeros((18, 24), bool)
    land[9:, :12] = True
    gaps = fit(data.where(~land[:, :, None]), kernel="gaussian", sigma=GIVEN["sigma"], ridge=1e-6)
    found = gaps.mean_over("lat,lon")
    weights = np.broadcast_to(np.cos(np.radians(LAT))[:, None], land.shape) * ~land
    exact = (data.values * weights[:, :, None]).sum((0, 1)) / weights.sum()
    assert np.allclose(found, exact, rtol=0, atol=0.01)
    assert found.attrs["comment"] == "mean over 75 % of the region, where the data has values"
    assert "comment" not in gaps.mean_over("lat,lon", mask="none").attrs
    assert not np.allclose(gaps.mean_over("lat,lon", mask="none"), exact, atol=0.05)
    at_sea = gaps.mean_over({"lat": (-90, 0), "lon": None})
    assert "comment" not in at_sea.attrs
    on_land = gaps.mean_over({"lat": (20, 80), "lon": (20, 150)})
    assert np.isnan(on_land).all()
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    assert np.allclose(gaps.mean_over("lat,lon"), found, rtol=0, atol=1e-12)
    monkeypatch.setattr(deviations, "DRAWS", 3)
    errors = gaps.mean_over("lat,lon", std=True, time=data.time[:1].values)["t_std"]
    assert (errors > 0).all()
    slopes = gaps.mean_over("lat,lon", std=True, derivative="time")
    assert (slopes["dt_dtime_std"] > 0).all()


@pytest.mark.parametrize("lost", [[4, 5], [8, 9], [0, 1, 2]])
def test_columns_of_nothing_but_land_have_no_part_in_a_mean(lost):
    lon = np.arange(0.0, 100.0, 10.0)
    values = np.broadcast_to(lon / 10, (3, 4, 10)).copy()
    values[:, :, lost] = np.nan
    coords = {
        "time": DAYS[:3],
        "lat": ("lat", LAT[8:12], {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    data = xr.DataArray(values, coords, ("time", "lat", "lon"), "t")
    model = fit(data, kernel="cubic")
    sea = np.setdiff1d(np.arange(10.0), lost)
    for region in ("lon=-5:95", "lon=355:95"):
        found = model.mean_over(region)
        np.testing.assert_allclose(found, sea.mean(), rtol=1e-6)
        assert found.attrs["comment"].startswith(f"mean over {10 * sea.size} % of the region")
    assert float(model.mean_over({"lon": (10 * lost[0], 10 * lost[0] + 5)}).isnull().mean()) == 1
    with pytest.raises(SettingError, match="reach beyond the cells of the data"):
        model.mean_over("lon=-5:96")
    if 4 not in lost:
        with pytest.raises(SettingError, match="reach beyond the cells of the data"):
            model.mean_over("lon=-5:95", mask="none")


def test_land_in_a_complete_grid_is_left_out_of_slopes_as_well(model, monkeypatch):
    monkeypatch.setattr(module, "MEMBERS", 300)
    sea = xr.DataArray(LAT < 0, {"lat": LAT}, ("lat",))
    south = {"lat": (-90, 0), "lon": None}
    how = {"std": True, "derivative": "time", "time": ["2020-01-04T12:00"]}
    masked, exact = model.mean_over("lat,lon", mask=sea, **how), model.mean_over(south, **how)
    assert np.allclose(masked["dt_dtime"], exact["dt_dtime"], rtol=0, atol=1e-9)
    assert 0.2 < (masked["dt_dtime_std"] / exact["dt_dtime_std"]).item() < 5


def test_a_region_of_a_complete_grid_errs_beside_land_as_without(model, monkeypatch):
    monkeypatch.setattr(module, "MEMBERS", 200)
    sea, south = xr.DataArray(LAT < 0, {"lat": LAT}, ("lat",)), {"lat": (-90, 0), "lon": None}
    how = {"std": True, "time": array()["time"].values[:3]}
    masked = model.mean_over("lat,lon", mask=sea, **how)["t_std"].values
    exact = model.mean_over(south, **how)["t_std"].values
    assert (masked > 0).all()  # members are drawn between the cells, not at them
    assert np.all((masked / exact > 0.2) & (masked / exact < 5))
    monkeypatch.setattr(module, "_DRAWN", 2)  # two times at once
    parts = model.mean_over("lat,lon", mask=sea, **how)["t_std"].values
    assert np.all((parts / masked > 0.75) & (parts / masked < 1.33))


@pytest.mark.slow
def test_errors_of_regions_with_gaps_are_those_of_their_members(monkeypatch):
    monkeypatch.setattr(deviations, "DRAWS", 200)
    data = array(noise=0.05)
    holes = np.random.default_rng(1).random(data.shape) < 0.3
    holes[:6, :10] = True  # land
    gaps = fit(data.where(~holes), kernel="gaussian", sigma=GIVEN["sigma"], ridge=0.01)
    rules = Rules(land=gaps.coverage)
    query = ask_region(gaps, "lat,lon", {"time": ["2020-01-04"]}, rules)
    assert query.linear.has_land
    members = np.array(list(draw_members(query, 200)))
    assert members.std() == pytest.approx(query.std().item(), rel=0.25)
    assert members.mean() == pytest.approx(query.values().item(), abs=0.3 * members.std())


@pytest.mark.slow
def test_members_at_sea_are_as_wide_as_errors_where_cells_differ(monkeypatch):
    monkeypatch.setattr(deviations, "DRAWS", 24)
    data = array().isel(lat=slice(0, None, 2), lon=slice(0, None, 3))
    holes = np.random.default_rng(1).random(data.shape) < 0.15
    holes[2:5, 2:5] = True  # land; elsewhere cells that are observed and missing ones are averaged
    gaps = fit(data.where(~holes), kernel="gaussian", sigma=GIVEN["sigma"], ridge=1e-8)
    query = ask_region(gaps, "time", {"lat": LAT[[6]], "lon": LON[[9, 18]]}, Rules())
    assert query.linear.has_land
    draw = query.linear.deviations(5)
    spread = np.sqrt(np.mean([draw(member) ** 2 for member in range(100)], axis=0))
    assert np.allclose(spread, query.std(), rtol=0.25, atol=0, equal_nan=True)


def test_members_of_a_region_are_as_wide_as_its_errors():
    model = fit(array(noise=0.1), kernel="gaussian", sigma=GIVEN["sigma"], ridge=0.05)
    query = ask_region(model, "lat=-20:20,lon=0:90", {"time": ["2020-01-04T12:00"]}, Rules())
    members = np.array(list(draw_members(query, 400)))
    assert members.std() == pytest.approx(query.std().item(), rel=0.12)


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ("", "no dimension ''"),
        ({}, "which region"),
        ("depth=1:2", "depth"),
        ("lat=1", "not DIM=LOW:HIGH"),
        ("lat=1:2:3", "not DIM=LOW:HIGH"),
        ("time=1:x", "not DIM=FIRST:LAST"),
        ("lat,latitude", "named twice"),
        ({"lat": 5}, "two ends"),
        ({"lat": (5, 5)}, "has no width"),
        ({"lat": (5, 95)}, "reach beyond"),
    ],
)
def test_regions_that_are_none(model, region, words):
    with pytest.raises(SettingError, match=words):
        model.mean_over(region)
    with pytest.raises(SettingError, match="has coordinates"):
        model.mean_over("lat", lat=[5.0])


def test_labels_have_no_ranges():
    sites = fit(
        np.arange(12.0).reshape(3, 4) ** 0.5, {"site": ["a", "b", "c"], "x": np.arange(4.0)}
    )
    with pytest.raises(SettingError, match="text labels"):
        sites.mean_over("site")
    assert sites.mean_over("x=0:3", std=True)["values_std"].dims == ("site",)


def test_with_missing_cells_errors_are_at_least_those_of_all_settings(monkeypatch):
    days, places = np.arange(0.0, 12, 2), np.arange(5.0)
    data = np.random.default_rng(2).standard_normal((6, 5))
    data[2, 3] = np.nan
    given = {"kernel": "gaussian", "sigma": {"t": 30.0, "x": 0.1}, "ridge": 1e-3}
    gaps = fit(data, {"t": days, "x": places}, **given)
    told = gaps.mean_over({"t": (0, 10)}, std=True, x=places)["values_std"]
    series = gaps.predict(x=places).transpose("t", "x").values
    asked = Means(np.zeros(1), np.full(1, 10.0))
    (part,) = open_parts(SourceCells(days - 1, days + 1, are_means=False), asked, days)
    pieces = [
        gaps.mean_over({"t": (low, high)}, x=places).values * weight
        for low, high, weight in zip(part.asked.low, part.asked.high, part.weights, strict=True)
    ]
    kernel = gaps.level_of("t").kernel
    near = part.near
    known = averaged_variances(kernel, days[near], series[near], part.mean, np.sum(pieces, axis=0))
    monkeypatch.setattr(linear, "range_variances", lambda *_: np.zeros((1, 5)))
    usual = gaps.mean_over({"t": (0, 10)}, std=True, x=places)["values_std"]
    np.testing.assert_allclose(told, np.maximum(usual, np.sqrt(known)), rtol=1e-6)
    assert (told > 1.5 * usual).any()
    rules = Rules()
    query = ask_region(gaps, {"t": (0, 10)}, {"x": places}, rules)
    plain = query.linear.deviations(3)(0)
    monkeypatch.setattr(linear, "range_variances", lambda *_: np.full((1, 5), 100.0))
    wide = query.linear.deviations(3)(0)
    np.testing.assert_allclose(wide, plain * 10 / usual.values, rtol=1e-6)
    smooth = gaps.mean_over({"t": (0, 10)}, std=True, smooth=True, x=places)["values_std"]
    assert (smooth < 5).all()
