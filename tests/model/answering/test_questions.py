"""Tests of dkrls_cli.model.answering.questions: what a model answers beyond values."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import Model, fit, regrid
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.derived import EARTH_RADIUS
from dkrls_cli.model.answering.questions import Question

LAT, LON, DAYS = np.arange(-80.0, 81, 10), np.arange(0.0, 360, 15), np.arange(12.0)
GIVEN = {"kernel": "gaussian", "sigma": {"lat": 40.0, "lon": 50.0, "time": 6.0}, "ridge": 1e-10}
AT = {"lat": [-33.0, 14.0, 50.0], "lon": [3.0, 200.0], "time": [2.5, 7.0]}


def field(lat, lon, days):
    y, x = np.radians(lat)[:, None, None], np.radians(lon)[:, None]
    return 1 + np.cos(y) ** 2 * np.cos(x) * np.cos(np.asarray(days) / 5) + 0.5 * np.sin(y)


def array(**attrs) -> xr.DataArray:
    coords = {
        "lat": ("lat", LAT, {"units": "degrees_north"}),
        "lon": ("lon", LON, {"units": "degrees_east"}),
        "time": ("time", DAYS, {"units": "day"}),
    }
    return xr.DataArray(
        field(LAT, LON, DAYS), coords, ("lat", "lon", "time"), "t", {"units": "K"} | attrs
    )


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(array(), **GIVEN)


@pytest.mark.parametrize("dim", ["lat", "lon", "time"])
def test_derivatives_are_as_accurate_as_values(model, dim):
    ahead = {d: np.asarray(v, float) + (1e-5 if d == dim else 0) for d, v in AT.items()}
    behind = {d: np.asarray(v, float) - (1e-5 if d == dim else 0) for d, v in AT.items()}
    exact = (field(*ahead.values()) - field(*behind.values())) / 2e-5
    found = model.predict(**AT, derivative=dim)
    assert np.allclose(found, exact, rtol=0, atol=1e-5)
    assert (found.name, found.attrs["units"].split()[0]) == (f"dt_d{dim}", "K")
    errors = model.std(**AT, derivative=dim)
    assert errors.name == f"dt_d{dim}_std"
    assert (errors > 0).all()
    stations = {"lat": AT["lat"], "lon": [3.0, 200.0, 3.0]}
    at = model.predict_stations(stations, time=AT["time"], derivative=dim)
    assert np.allclose(at[1], found[1, 1], rtol=0, atol=1e-12)
    std = model.std_stations(stations, time=AT["time"], derivative=dim)
    assert np.allclose(std[1], errors[1, 1], rtol=1e-6)
    points = {d: np.asarray(v)[[1, 1]] for d, v in (AT | {"lon": [3.0, 200.0]}).items()}
    assert np.allclose(model.predict_points(**points, derivative=dim), found[1, 1, 1], atol=1e-12)
    assert np.allclose(model.std_points(**points, derivative=dim), errors[1, 1, 1], rtol=1e-6)


def test_metres_on_the_sphere(model):
    degree = EARTH_RADIUS * np.pi / 180
    for dim, length in (
        ("lat", np.full(3, degree)),
        ("lon", degree * np.cos(np.radians(AT["lat"]))),
    ):
        plain = model.predict(**AT, derivative=[dim, dim])
        metres = model.predict(**AT, derivative=[dim, dim], per_metre=True)
        assert np.allclose(metres * length[:, None, None] ** 2, plain, rtol=1e-12)
        assert metres.attrs["units"] == "K m-2"
        ratio = model.std(**AT, derivative=dim) / model.std(**AT, derivative=dim, per_metre=True)
        assert np.allclose(ratio, length[:, None, None], rtol=1e-12)


def test_a_metre_to_the_east_is_no_angle_at_a_pole(model):
    pole = {"lat": [90.0, 80.0], "outside": "extrapolate", "derivative": "lon", "per_metre": True}
    assert np.isnan(model.predict(**pole)[0]).all()
    assert not np.isnan(model.predict(**pole)[1]).any()


def test_means_over_cells(model):
    lat, lon = np.array([-40.0, 40.0]), np.array([60.0, 180.0, 300.0])
    found = model.predict(lat=lat, lon=lon, mean=True)
    z, w = np.polynomial.legendre.leggauss(30)
    rows, columns = (lat[:, None] + 40 * z), (lon[:, None] + 60 * z)
    weights = np.cos(np.radians(rows)) * w
    values = field(rows.ravel(), columns.ravel(), DAYS).reshape(2, 30, 3, 30, 12)
    exact = np.einsum("aibjt,ai,j->abt", values, weights / weights.sum(1, keepdims=True), w / 2)
    assert np.allclose(found, exact, rtol=0, atol=1e-4)
    assert found.attrs["cell_methods"] == "lat: lon: mean"
    errors = model.std(lat=lat, lon=lon, mean=True)
    assert errors.max() < model.std(lat=lat + 5, lon=lon + 7).min()
    along = model.predict(lat=lat, lon=lon, mean="lon")
    assert along.attrs["cell_methods"] == "lon: mean"
    assert not np.allclose(along, found, atol=1e-3)


def test_dimensions_at_their_own_coordinates_are_not_averaged(model):
    lat, lon = [-40.0, 40.0], [60.0, 180.0, 300.0]
    found = model.predict(lat=lat, lon=lon, time=DAYS, mean=True)
    assert found.attrs["cell_methods"] == "lat: lon: mean"
    assert model.predict(lat=lat, time=3.0, mean=True).attrs["cell_methods"] == "lat: mean"
    own = model.predict(lat=LAT, time=3.0, mean=True)
    assert own.attrs["cell_methods"] == "lat: mean"


def test_the_integral_is_kept(model):
    edges = np.array([-85.0, -40.0, 0.0, 15.0, 85.0])
    target = xr.Dataset(
        {"b": (("lat", "n"), np.stack([edges[:-1], edges[1:]], 1))},
        {"lat": ("lat", (edges[:-1] + edges[1:]) / 2, {"bounds": "b", "units": "degrees_north"})},
    )
    parts = regrid(array(), target, mean=True, **GIVEN)
    halves = target.isel(lat=[0]).assign(b=(("lat", "n"), [[-85.0, 85.0]])).assign_coords(lat=[0.0])
    halves.lat.attrs = target.lat.attrs
    whole = regrid(array(), halves, mean=True, **GIVEN)
    areas = np.diff(np.sin(np.radians(edges))) / np.diff(np.sin(np.radians(edges[[0, -1]])))
    assert np.allclose(np.einsum("lxt,l->xt", parts, areas), whole[0], rtol=0, atol=1e-10)
    both = regrid(array(), target, mean=True, std=True, **GIVEN)
    assert set(both.data_vars) == {"t", "t_std"}


def test_cells_of_the_data_are_inside_and_others_are_not(model):
    inside = model.predict(lat=[-70.0, -60.0], mean=True)  # from -75
    assert not np.isnan(inside).any()
    with pytest.raises(SettingError, match="1 of 2 cells of 'lat' reach beyond"):
        model.predict(lat=[-83.0, -70.0], mean=True)
    gone = model.predict(lat=[-83.0, -70.0], mean=True, outside="missing")
    assert np.isnan(gone).all(("lon", "time")).values.tolist() == [True, False]
    assert not np.isnan(model.predict(lat=[-83.0, -70.0], mean=True, outside="extrapolate")).any()


def test_blocks_are_the_whole(model):
    from dkrls_cli.model.answering.answers import Rules, ask, ask_points

    question = Question(mean=("lat",), derivative=("time",))
    axes = model.axes_at(
        {"lat": [-45.0, 0.0, 45.0], "lon": [3.0, 9.0, 4.0], "time": [1.0, 2.0, 3.0]}
    )
    query = ask(model, axes, Rules(question=question))
    values, errors = query.values(), query.std()
    for part, some, std in query.blocks(4, std=True):
        assert np.allclose(some, values[part], rtol=0, atol=1e-13)
        assert np.allclose(std, errors[part], rtol=1e-12)
    points = ask_points(model, axes, Rules(question=question), [0])
    diagonal = values[:, np.arange(3), np.arange(3)].T
    assert np.allclose(points.values(), diagonal, rtol=0, atol=1e-12)
    for part, some, std in points.blocks(2, std=True):
        assert np.allclose(some, points.values()[part], rtol=0, atol=1e-12)
        assert np.allclose(std, points.std()[part], rtol=1e-12)
    assert [std for *_, std in points.blocks(2)] == [None] * 6


def test_means_stay_within_bounds_and_derivatives_do_not():
    bounded = fit(array(), bounds=(-0.1, 2.6), **GIVEN)
    assert bounded.bounds is not None
    assert float(bounded.predict(time=[3.0], derivative="lat").min()) < 0
    rain = fit(
        np.array([0.0, 0.0, 5.0, 0.0, 0.0]),
        {"x": np.arange(5.0)},
        bounds="0,",
        kernel="gaussian",
        sigma=1.5,
        ridge=1e-6,
    )
    means, errors = (ask(x=[0.4, 0.6, 0.8], mean=True) for ask in (rain.predict, rain.std))
    assert float(means.min()) == 0.0
    free = fit(
        np.array([0.0, 0.0, 5.0, 0.0, 0.0]),
        {"x": np.arange(5.0)},
        bounds="none",
        kernel="gaussian",
        sigma=1.5,
        ridge=1e-6,
    )
    assert float(errors[0]) < float(free.std(x=[0.4, 0.6, 0.8], mean=True)[0])


@pytest.mark.slow
def test_a_model_with_gaps_has_error_bars_that_are_wider_in_them():
    values = array().isel(time=slice(0, 1))
    values[3:5, 2:4] = np.nan
    gaps = fit(values, kernel="gaussian", sigma={"lat": 40.0, "lon": 50.0}, ridge=1e-8)
    ahead, behind = (field(np.array([-33.0 + d]), LON, DAYS[:1]) for d in (1e-5, -1e-5))
    found = gaps.predict(lat=[-33.0], derivative="lat")
    assert np.allclose(found, (ahead - behind) / 2e-5, rtol=0, atol=1e-3)
    errors = gaps.std(lat=values.lat.values, derivative="lat")
    assert (errors > 0).all()
    smooth = gaps.std(lat=values.lat.values, derivative="lat", smooth=True)  # without noise of data
    assert smooth[3:5, 2:4].min() > smooth[8:12, 8:].max()
    means = gaps.std(mean="lat", lat=values.lat.values)
    assert means[3:5, 2:4].min() > means[8:12, 8:].max()
    members = gaps.ensemble(60, lat=[-33.0, 20.0], derivative="lat")
    asked = gaps.std(lat=[-33.0, 20.0], derivative="lat")
    assert np.allclose(members.std("realization"), asked, rtol=0.6)
    assert members.name == "dt_dlat_ensemble"
    stations = gaps.ensemble_stations(3, {"lat": [-33.0], "lon": [20.0]}, derivative="lat")
    points = gaps.ensemble_points(3, lat=[-33.0], lon=[20.0], derivative="lat")
    assert stations.name == points.name == "dt_dlat_ensemble"
    assert np.isfinite(stations).all()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"mean": True}, "Means over cells of which dimensions"),
        ({"mean": "lat", "derivative": "lat"}, "means over cells and for derivatives"),
        ({"derivative": "depth"}, "depth"),
        ({"per_metre": True}, "Metres on the sphere are for derivatives"),
        ({"derivative": "time", "per_metre": True}, "time is neither"),
        ({"derivative": ["lon", "lat"], "per_metre": True}, "values of one dimension of latitude"),
        ({"derivative": ["lat"] * 3}, "Orders 1 and 2"),
        (
            {"derivative": "lat", "lat": [-88.0], "outside": "nearest"},
            "missing or extrapolate instead of nearest",
        ),
        (
            {"mean": "lat", "lat": [-88.0, -86.0], "outside": "nearest"},
            "missing or extrapolate instead of nearest",
        ),
        ({"derivative": "lat", "lat": [-88.0]}, "outside the training range"),
    ],
)
def test_impossible_questions_are_refused(model, asked, words):
    with pytest.raises(SettingError, match=words):
        model.predict(**asked)


def test_the_nearest_answer_is_there_along_dimensions_of_values(model):
    end, beyond = {"lat": [80.0, 10.0]}, {"lat": [88.0, 10.0], "outside": "nearest"}
    for asked in ({"derivative": "time"}, {"mean": "lon", "lon": [60.0, 180.0, 300.0]}):
        assert np.array_equal(model.predict(**beyond, **asked), model.predict(**end, **asked))
        assert np.array_equal(model.std(**beyond, **asked), model.std(**end, **asked))
    points = {"lon": [3.0, 200.0], "time": [2.5, 7.0], "derivative": "time"}
    near = model.predict_points(**beyond, **points)
    assert np.array_equal(near, model.predict_points(**end, **points))
    means = fit(array(), cell_means="lon", **GIVEN)
    assert np.array_equal(means.predict(**beyond), means.predict(**end))


def test_what_labels_and_points_do_not_have():
    sites = fit(
        np.arange(12.0).reshape(3, 4) ** 0.5, {"site": ["a", "b", "c"], "x": np.arange(4.0)}
    )
    for asked in ({"derivative": "site"}, {"mean": ["site"]}):
        with pytest.raises(SettingError, match="text labels"):
            sites.predict(**asked)
    assert sites.predict(site=["b"], x=[0.5, 1.5], mean=True).attrs["cell_methods"] == "x: mean"
    with pytest.raises(SettingError, match="Points have no cells along 'x'"):
        sites.predict_stations({"x": [1.0, 2.0]}, mean="x")


def test_one_coordinate_has_no_derivative():
    x = np.arange(12.0)
    how = {"kernel": "matern52", "sigma": 3.0, "ridge": 1e-6}
    model = fit(np.sin(x)[None], {"time": [0.0], "x": x}, **how)
    assert model.predict(x=[2.5], derivative="x").shape == (1, 1)
    with pytest.raises(SettingError, match="'time' has one coordinate, which says nothing of a"):
        model.predict(derivative="time")


@pytest.mark.parametrize(
    ("ask", "purpose"),
    [
        (lambda data: fit(data, cell_means="t"), "means over cells"),
        (lambda data: fit(data).predict(mean=["t"]), "a mean or a derivative"),
        (lambda data: fit(data).predict(derivative="t"), "a mean or a derivative"),
        (lambda data: fit(data).mean_over({"t": (0, 1)}), "a mean over a region"),
        (lambda data: fit(data).mean_over({"x": (0, 1)}, derivative="t"), "a derivative"),
    ],
)
def test_a_dimension_that_is_not_there_is_named_with_what_it_was_given_for(ask, purpose):
    with pytest.raises(SettingError, match=rf"no dimension 't' for {purpose}\. The"):
        ask(xr.DataArray(np.ones((3, 4)), dims=("y", "x")))
