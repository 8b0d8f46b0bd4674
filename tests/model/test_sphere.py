"""Models of global grids with missing cells, whose distances are those on the sphere."""

import numpy as np
import pytest
import xarray as xr
from sphere_grids import chordal, isotropic, places

from dkrls_cli import fill, fit, load_model
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.fit import retune
from dkrls_cli.model.planning import groups
from dkrls_cli.model.planning.plan import group_memory, plan_fit
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training.lost import enclosed_coordinates

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
LAT, LON = np.arange(-85.0, 90, 10), np.arange(0.0, 360, 15)
GIVEN = {"kernel": "matern32", "sigma": 40.0, "ridge": 1e-2, "group": "lat,lon"}


def globe(*lost, times=None, seed=3):
    """Return a smooth field on the globe, and the same with caps around some places missing."""
    points = places(LAT, LON)
    truth = isotropic(points, 40.0, seed).reshape(LAT.size, LON.size)
    values = truth.ravel().copy()
    for *centre, radius in lost:
        values[np.linalg.norm(points - np.asarray(centre), axis=1) < radius] = np.nan
    coords = {"lat": ("lat", LAT, NORTH), "lon": ("lon", LON, EAST)}
    whole = xr.DataArray(values.reshape(truth.shape), coords, ("lat", "lon"), "v")
    return truth, whole if times is None else whole.expand_dims(time=times).copy()


POLE, SIDE = (0, 0, 1, 0.4), (1, 0, 0, 0.5)


def dense(values):
    """Return the answers at all cells by the kernel of the chords, from one dense system."""
    points, seen = places(LAT, LON), np.isfinite(values.ravel())
    system = chordal("matern32", 40.0, points[seen]) + 1e-2 * np.eye(seen.sum())
    mean = values.ravel()[seen].mean()
    weights = np.linalg.solve(system, values.ravel()[seen] - mean)
    answers = mean + chordal("matern32", 40.0, points, points[seen]) @ weights
    return answers.reshape(values.shape)


# --- when ---------------------------------------------------------------------------------------


def axes_of(lat=LAT, lon=LON):
    return [axis_of("time", np.arange(5.0)), axis_of("lat", lat, NORTH), axis_of("lon", lon, EAST)]


@pytest.mark.parametrize(
    ("lat", "sphere"),
    [
        (LAT, True),
        (LAT[::-1], True),
        (np.arange(-30.0, 31, 5), True),
        (np.arange(-29.0, 30, 2), False),
        (np.arange(31.0, 61, 2.9), False),
        (np.arange(32.0, 61, 2), True),
        (-np.arange(32.0, 61, 2), True),
        (np.linspace(-90.00001, 90.00001, 19), True),
        (np.linspace(-91, 91, 19), False),
    ],
)
def test_latitudes_that_are_no_plane_are_on_the_sphere(lat, sphere):
    plan = plan_fit(axes_of(lat))
    assert (plan.group, plan.sphere) == ((1, 2), sphere)
    assert plan_fit(axes_of(lat), Settings(group="lon,lat"), complete=False).sphere == sphere


def test_longitudes_go_round():
    assert not plan_fit(axes_of(lon=np.arange(0.0, 180, 10))).sphere
    assert plan_fit(axes_of(lon=np.arange(-180.0, 180, 10))).sphere
    assert not plan_fit(axes_of(), Settings(period={"lon": "none"})).sphere
    assert not plan_fit(axes_of(), Settings(period={"lon": 400.0})).sphere
    assert not plan_fit(axes_of(), Settings(period={"lat": 400.0})).sphere


def test_a_sphere_has_latitude_longitude_and_one_sigma():
    axes = axes_of()
    assert not plan_fit(axes, Settings(group="lat,time")).sphere
    assert not plan_fit(axes, Settings(group="time,lat,lon")).sphere
    assert not plan_fit(axes, Settings(group="none")).sphere
    for sigma, sphere in (({"lat": 9.0, "lon": 9.0}, True), ({"lat": 9.0, "lon": 8.0}, False)):
        assert plan_fit(axes, Settings(group="lat,lon", sigma=sigma)).sphere == sphere
    assert not plan_fit(axes, Settings(group="lat,lon", sigma={"lat": 9.0})).sphere
    maps = [
        axis_of(name, np.arange(9.0), {"standard_name": f"projection_{name}_coordinate"})
        for name in "yx"
    ]
    plan = plan_fit(maps)
    assert (plan.group, plan.sphere) == ((0, 1), False)


def test_a_grid_that_is_too_fine_for_the_matrices_of_a_sphere_is_a_plane(monkeypatch):
    fine = axes_of(np.arange(-89.75, 90, 0.5), np.arange(0.0, 360, 0.5))
    assert plan_fit(fine).sphere
    finer = axes_of(np.arange(-89.875, 90, 0.25), np.arange(0.0, 360, 0.25))
    assert (plan_fit(finer).group, plan_fit(finer).sphere) == ((1, 2), False)
    for size, sphere in ((1024, True), (1025, False)):
        long = axes_of(np.linspace(-80, 80, size), np.arange(0.0, 360, 20))
        assert (plan_fit(long).group, plan_fit(long).sphere) == ((1, 2), sphere)
    held = group_memory(axes_of(), Settings())
    assert held == 8 * 2 * 9**2 * 13
    for most, sphere in ((held, True), (held - 1, False)):
        monkeypatch.setattr(groups, "_SPHERE_MEMORY", most)
        assert plan_fit(axes_of()).sphere == sphere


def test_memory_of_a_group_is_that_of_its_sphere():
    assert group_memory(axes_of(np.arange(-29.0, 30, 2)), Settings()) == 0
    assert group_memory(axes_of(), Settings(group="none")) == 0
    assert group_memory(axes_of(), Settings(group="lat,depth")) == 0  # which the fit refuses


# --- answers ------------------------------------------------------------------------------------


def test_a_model_on_the_sphere_has_the_dense_answers():
    _, array = globe((0.5, 0.5, 0.5, 0.6), SIDE)
    model = fit(array, **GIVEN)
    lost = np.isnan(array.values)
    assert model.bars.grouping.sphere
    assert model.origin["missing"]["sphere"]
    np.testing.assert_allclose(model.cascade.predict()[lost], dense(array.values)[lost], atol=1e-5)
    plane = fit(array, **{**GIVEN, "sigma": {"lat": 40.0, "lon": 40.1}})
    assert not plane.bars.grouping.sphere
    assert not plane.origin["missing"]["sphere"]


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True], ids=["lat, lon", "lon, lat"])
def test_a_polar_cap_without_any_data_is_a_hole(turned):
    truth, array = globe(POLE, SIDE)
    lost = np.isnan(array.values)
    assert lost[-2:].all()  # latitudes without data
    given = array.transpose("lon", "lat") if turned else array
    filled = fill(given, mask="none", std=True, **GIVEN).transpose("lat", "lon")
    np.testing.assert_allclose(filled.v.values[lost], dense(array.values)[lost], atol=1e-5)
    error = np.sqrt(np.mean((filled.v.values - truth)[lost] ** 2))
    assert error < 0.3
    assert (filled.v_std.values[lost] > 0).all()
    deep = filled.v_std.values[-1].mean()
    assert deep > filled.v_std.values[-2].mean()
    beyond = fill(array, mask="none", **{**GIVEN, "group": "none"})
    assert np.isnan(beyond.values[-2:]).all()


def test_what_a_sphere_leaves_out_is_told():
    _, array = globe(SIDE)
    array[:, 5] = np.nan
    array[-2:] = np.nan
    array[4] = np.nan
    model = fit(array, **GIVEN)
    assert "dropped_coordinates" not in model.origin
    assert model.shape == array.shape
    product = fit(array, **{**GIVEN, "group": "none"})
    assert len(product.origin["dropped_coordinates"]) == 2
    times = array.expand_dims(time=3.0 * np.arange(6)).copy()
    times[2] = np.nan
    model = fit(times, sigma={"lat": 40.0, "lon": 40.0, "time": 5.0}, ridge=1e-2, group="lat,lon")
    assert model.shape == (5, LAT.size, LON.size)
    (told,) = model.origin["dropped_coordinates"]
    assert told.startswith("time: 1 of 6 coordinates have no observed cell")


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([17], [17]),
        ([15, 16, 17], []),  # 55 degrees is the last
        ([16, 17], [16, 17]),
        ([0, 1], [0, 1]),
        ([0, 1, 2, 3], []),
        ([0, 1, 2, 3, 9, 17], [9, 17]),
    ],
)
def test_data_encloses_what_lies_between_and_near_a_pole(rows, kept):
    _, array = globe()
    array[rows] = np.nan
    array[:, [0, 7]] = np.nan
    found = enclosed_coordinates(as_grid(array), (0, 1))
    assert found[0].tolist() == kept
    assert found[1].tolist() == [0, 7]


# --- files, updates, members --------------------------------------------------------------------


def test_a_model_file_keeps_the_sphere(tmp_path):
    _, array = globe(POLE, SIDE)
    model = fit(array, **GIVEN)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.bars.grouping == model.bars.grouping
    np.testing.assert_allclose(again.predict(), model.predict(), atol=1e-6)
    np.testing.assert_allclose(again.std(), model.std(), rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_members_on_the_sphere_have_the_spread_of_the_bars():
    _, array = globe(POLE, SIDE)
    found = fill(array, mask="none", std=True, ensemble=60, seed=1, **GIVEN)
    lost = np.isnan(array.values)
    spread = found.v_ensemble.std("realization").values[lost]
    np.testing.assert_allclose(np.mean(spread / found.v_std.values[lost]), 1.0, atol=0.15)
    seen = found.v_ensemble.values.reshape(60, -1)[:, ~lost.ravel()]
    np.testing.assert_array_equal(seen, np.broadcast_to(array.values[~lost], seen.shape))


@pytest.mark.slow
def test_uncertain_cells_of_a_sphere_are_left():
    _, array = globe(POLE, SIDE)
    errors = fill(array, mask="none", std=True, **GIVEN).v_std.values
    most = float(np.median(errors[errors > 0]))
    found = fill(array, mask="none", max_std=most, **GIVEN)
    np.testing.assert_array_equal(np.isnan(found.values), errors > most)


@pytest.mark.slow
def test_new_slices_are_filled_on_the_sphere_and_retuning_keeps_it():
    _, array = globe(SIDE, times=np.arange(6.0))
    rng = np.random.default_rng(0)
    array += 0.1 * rng.standard_normal(array.shape)
    array[3:, :4, :6] = np.nan
    how = {
        "sigma": {"lat": 40.0, "lon": 40.0, "time": 5.0},
        "kernel": "matern32",
        "ridge": 1e-2,
        "mean": 0.0,
        "group": "lat,lon",
    }
    whole = fit(array, **how)
    grown = fit(array[:4], **how).update(array[4:])
    assert grown.bars.grouping == whole.bars.grouping
    np.testing.assert_allclose(grown.predict(), whole.predict(), atol=1e-4)
    again = retune(grown)
    assert again.bars.grouping.sphere
    sigmas = [level.kernel.sigma for level in again.levels if level.name != "time"]
    assert sigmas == [40.0, 40.0]
