"""Models of fields that go on across the poles."""

import json

import numpy as np
import pytest
from globe import eastward, globe, moving, planar, ring, rows, scalar

from dkrls_cli import load_model
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, ModelFileError, SettingError
from dkrls_cli.files import npz
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.fit import fit_grid, retune
from dkrls_cli.model.regrid import regrid
from dkrls_cli.model.saving import save_models
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.stream import Plan, Stream
from dkrls_cli.model.updating.update import update_model

LAT, LON, TIME = rows("cell", 12), ring(16), np.arange(8.0)
LEVELS = [
    Level("lat", Kernel("matern52", 40.0, constant=1.0), 1e-6),
    Level("lon", Kernel("matern52", 60.0, 360.0, constant=1.0), 1e-6),
    Level("time", Kernel("matern32", 6.0, constant=1.0), 1e-6),
]
QUERY = {"lat": [-90.0, -88.0, 10.0, 89.0], "lon": [3.0, 200.0]}


def map_model(field=scalar, lat=LAT, lon=LON, **settings):
    """Return a model of a map; its levels are given."""
    return fit_grid(globe(field(lat, lon), lat, lon), Settings(LEVELS[:2], **settings))


def moving_model(time=TIME, lon=LON, values=None, **settings):
    """Return a model of a field that moves; its levels are given."""
    values = moving(LAT, lon, time) if values is None else values
    given = {"levels": LEVELS, "mean": 1.0, "poles": "scalar"} | settings
    return fit_grid(globe(values, LAT, lon, time), Settings(**given))


def error(model, field):
    """Return the largest error next to the poles."""
    return float(np.abs(model.predict(**QUERY).values - field(**QUERY))[[0, 1, 3]].max())


@pytest.mark.parametrize(
    ("field", "kind"), [(scalar, "scalar"), (eastward, "vector"), (planar, "none")]
)
def test_a_field_goes_on_as_what_it_is(field, kind):
    model = map_model(field)
    assert model.across_poles == kind
    assert model.shape == (12, 16)
    assert np.array_equal(model.predict().values, field(LAT, LON))
    if kind == "none":
        assert model.predict(**QUERY, outside="missing").isnull().sum() == 6
        return
    ends = map_model(field, poles="none")
    beyond = np.abs(ends.predict(**QUERY, extrapolate=True).values - field(**QUERY))
    assert error(model, field) < 0.2 * beyond[[0, 1, 3]].max()


@pytest.mark.parametrize(
    ("lat", "lon"),
    [
        (LAT[::-1], LON),
        (rows("pole", 13), ring(16, -180.0)),
        (LAT, ring(17)),
        (LAT, np.linspace(-180, 180, 17)),
        (LAT.astype(np.float32), ring(16).astype(np.float32)),
        (np.linspace(20, 85, 14), LON),
    ],
)
def test_all_grids_round_the_globe_go_on(lat, lon):
    model = map_model(lat=lat, lon=lon)
    assert model.across_poles == "scalar"
    assert np.allclose(model.predict().values, scalar(lat, lon), atol=1e-14)
    found = model.predict(lat=[89.0], lon=[3.0, 200.0]).values
    assert np.allclose(found, scalar([89.0], [3.0, 200.0]), atol=0.02)


@pytest.mark.parametrize("dims", [("lat", "lon", "z"), ("z", "lon", "lat")])
def test_any_order_of_dimensions_goes_on(dims):
    z = axis_of("z", np.linspace(0, 2, 4))
    axes = {axis.name: axis for axis in (*globe(scalar(LAT, LON), LAT, LON).axes, z)}
    values = np.multiply.outer(scalar(LAT, LON), 1 + z.numbers)
    order = [("lat", "lon", "z").index(dim) for dim in dims]
    grid = Grid(values.transpose(order), tuple(axes[dim] for dim in dims))
    levels = [*LEVELS[:2], Level("z", Kernel("gaussian", 2.0, constant=1.0), 1e-9)]
    model = fit_grid(grid, Settings(levels))
    assert model.across_poles == "scalar"
    found = model.predict(lat=[89.0], lon=[3.0], z=1.0).item()
    assert np.isclose(found, 2 * scalar([89.0], [3.0]).item(), atol=0.02)


def test_what_is_asked_for_is_done_whatever_the_data_says():
    assert map_model(poles="none").poles is None
    assert map_model(poles="vector").across_poles == "vector"
    assert map_model(planar, poles="scalar").across_poles == "scalar"
    named = globe(scalar(LAT, LON), LAT, LON, standard_name="eastward_wind")
    assert fit_grid(named, Settings(LEVELS[:2])).across_poles == "none"  # it is none, as it seems


def test_grids_that_reach_no_pole_are_modelled_as_ever():
    lat = np.linspace(-60, 60, 9)
    grid = globe(scalar(lat, LON), lat, LON)
    auto, none = (fit_grid(grid, Settings(poles=kind)) for kind in ("auto", "none"))
    assert auto.levels == none.levels
    assert np.array_equal(auto.predict(lat=[3.0]), none.predict(lat=[3.0]))


def test_the_settings_of_latitude_are_chosen_with_copies_and_those_of_others_without():
    seen = []
    grid = globe(scalar(LAT, LON), LAT, LON)
    given = Settings(kernel="gaussian", ridge=1e-9)
    found = fit_grid(grid, given, watch=lambda dim, choice: seen.append(dim))
    ends = fit_grid(grid, Settings(kernel="gaussian", ridge=1e-9, poles="none"))
    assert seen == ["lat", "lon", "lat"]
    assert found.level_of("lon") == ends.level_of("lon")
    assert found.level_of("lat") != ends.level_of("lat")
    assert error(found, scalar) < 1e-4


@pytest.mark.parametrize("settings", [{"folds": 4}, {"noise": "joint"}])
def test_folds_and_a_joint_ridge_keep_the_settings_of_the_data(settings):
    grid = globe(scalar(LAT, LON), LAT, LON)
    both = [
        fit_grid(grid, Settings(kernel="gaussian", poles=kind, **settings))
        for kind in ("scalar", "none")
    ]
    assert both[0].levels == both[1].levels
    assert error(both[0], scalar) < 0.05


def test_nothing_lies_beyond_the_pole():
    model = map_model()
    with pytest.raises(SettingError, match=r"outside the training range -90.0 to 90.0"):
        model.predict(lat=[90.5])
    with pytest.raises(InputError, match=r"'lat' has 90.5, which is no latitude"):
        model.predict(lat=[90.5], lon=3.0, outside="nearest")
    found = model.predict(lat=[90.5, 90.0], lon=3.0, outside="missing").values
    assert np.isnan(found).tolist() == [True, False]
    cap = map_model(lat=np.linspace(20, 85, 14))
    with pytest.raises(SettingError, match=r"outside the training range 20.0 to 90.0"):
        cap.predict(lat=[19.0])


def test_the_pole_is_one_place():
    model = map_model()
    found = model.predict(lat=[90.0], lon=np.arange(0.0, 360.0, 7.0)).values
    assert np.ptp(found) < 0.01
    wind = map_model(eastward).predict(lat=[90.0], lon=[40.0, 220.0]).values
    assert np.isclose(wind[0, 0], -wind[0, 1], atol=1e-3)


def test_error_bars_are_calibrated_on_the_data():
    model = map_model()
    bars, rows_ = model.bars, model.poles
    every = calibrate(model.cascade)
    assert bars.errors[0] != every.errors[0]
    values, cascade = model.cascade.predict(), model.cascade
    missed = []
    for row in range(12):  # all others but the copy of the row
        gone = [rows_.inner(24).start + row, *np.flatnonzero(rows_.copies(24) == row + 6)]
        left = np.setdiff1d(np.arange(24), gone)
        k = cascade.levels[0].kernel
        whole = gram(k, cascade.coordinates[0], cascade.coordinates[0]) + 1e-6 * np.eye(24)
        weights = np.linalg.solve(whole[np.ix_(left, left)], whole[left, gone[0]])
        mean = cascade.mean
        missed.append(weights @ (values[left] - mean) + mean - values[gone[0]])
    assert np.isclose(bars.errors[0], np.sqrt(np.mean(np.square(missed))), rtol=1e-6)


def test_error_bars_of_a_joint_ridge_are_those_of_the_data_alone():
    grid = globe(scalar(LAT, LON), LAT, LON)
    levels = [Level(level.name, level.kernel) for level in LEVELS[:2]]
    found, ends = (
        fit_grid(grid, Settings(levels, noise="joint", ridge=1e-4, poles=kind))
        for kind in ("scalar", "none")
    )
    assert isinstance(found.bars, JointBars)
    assert np.isclose(found.bars.scale, ends.bars.scale)
    assert np.isclose(found.bars.error, ends.bars.error)
    assert (
        0
        < found.std(lat=[87.0], lon=[3.0]).item()
        < ends.std(lat=[87.0], lon=[3.0], outside="extrapolate").item()
    )


def test_members_of_an_ensemble_spread_as_the_error_bars_say():
    model = map_model()
    at = {"lat": [-89.0, 40.0, 89.0], "lon": [3.0, 100.0]}
    spread = model.ensemble(400, **at).std("realization") / model.std(**at)
    assert np.allclose(spread, 1.0, atol=0.15)


@pytest.mark.parametrize("lon", [LON, ring(15)])
@pytest.mark.parametrize("gap", [False, True])
def test_an_update_is_a_fit_of_all_slices(lon, gap):
    values = moving(LAT, lon, TIME)
    if gap:
        values[6, 10:, 2] = values[7, :2, 5:9] = np.nan
    start = moving_model(TIME[:5], lon)
    found = start
    for part in (slice(5, 7), slice(7, 8)):
        found = found.update(globe(values[part], LAT, lon, TIME[part]))
    assert found.shape == (8, 12, lon.size)
    assert found.coverage.axes[1].size == 12
    if gap:  # then the slices with gaps are filled from the others
        assert found.unobserved.shape == found.shape
        assert np.array_equal(found.unobserved, np.isnan(values))
        assert np.allclose(found.predict(), moving(LAT, lon, TIME), atol=0.3)
        assert found.std().values[np.isnan(values)].min() > 0
        return
    again = moving_model(lon=lon)
    assert np.allclose(
        found.predict(**QUERY, time=2.5), again.predict(**QUERY, time=2.5), atol=1e-9
    )
    assert np.allclose(found.std(**QUERY, time=2.5), again.std(**QUERY, time=2.5), rtol=1e-6)


@pytest.mark.parametrize("dim", ["lat", "lon"])
def test_new_latitudes_and_longitudes_have_other_rows_across_the_poles(dim):
    place = ("lat", "lon").index(dim)
    order = ("lon", "lat") if dim == "lat" else ("lat", "lon")
    whole = globe(scalar(LAT, LON), LAT, LON)
    own = {axis.name: axis for axis in whole.axes}
    values = whole.values.transpose([("lat", "lon").index(name) for name in order])
    grid = Grid(values, tuple(own[name] for name in order), "field")
    levels = [LEVELS[("lat", "lon").index(name)] for name in order]
    size = (12, 16)[place]
    parts = [[np.arange(grid.axes[0].size), np.arange(start, size, 2)] for start in (0, 1)]
    start = fit_grid(grid.take(parts[0]), Settings(levels, mean=1.0, poles="scalar"))
    found = start.update(grid.take(parts[1]))
    again = fit_grid(grid, Settings(levels, mean=1.0, poles="scalar"))
    assert (found.across_poles, found.shape) == ("scalar", again.shape)
    assert np.allclose(found.predict(**QUERY), again.predict(**QUERY), atol=1e-8)
    assert np.allclose(found.std(**QUERY), again.std(**QUERY), rtol=1e-5)


@pytest.mark.parametrize("row", [2, 5])
def test_missing_cells_are_not_solved_for_without_the_rows_across_the_poles(row):
    """Old slices are those of even rows, new ones those of odd rows."""
    values = scalar(LAT, LON)
    values[row, 3] = np.nan
    lat, lon = globe(values, LAT, LON).axes
    levels = [Level(own.name, own.kernel) for own in LEVELS[1::-1]]
    old, new = (Grid(values.T, (lon, lat)).take([np.arange(16), np.r_[s:12:2]]) for s in (0, 1))
    model = fit_grid(old, Settings(levels, noise="joint", ridge=1e-3, poles="scalar"))
    with pytest.raises(InputError, match="goes on across the poles, and new coordinates of 'lat'"):
        model.update(new)


def test_the_surprise_of_new_slices_is_that_of_the_data():
    new = globe(moving(LAT, LON, TIME[6:]), LAT, LON, TIME[6:])
    model = moving_model(TIME[:6])
    found = update_model(model, new)
    missed = model.predict(time=TIME[6:], extrapolate=True).values - new.values
    assert found.surprise.cells == missed.size
    assert np.isclose(found.surprise.rmse, np.sqrt(np.mean(missed**2)))


def test_a_joint_ridge_is_that_of_the_ring(tmp_path):
    levels = [Level(level.name, level.kernel) for level in LEVELS]
    model = moving_model(lon=ring(15), levels=levels, noise="joint", ridge=1e-3)
    assert model.poles.ring.ridge == 1e-3
    save_models([model], tmp_path / "m.npz")
    assert load_model(tmp_path / "m.npz").poles.ring == model.poles.ring


def test_windows_ranks_and_new_settings_keep_the_rows():
    model = moving_model(TIME[:6])
    after = model.update(globe(moving(LAT, LON, TIME[6:]), LAT, LON, TIME[6:]), window=5)
    assert (after.shape[0], after.across_poles) == (5, "scalar")
    thinned = model.update(globe(moving(LAT, LON, TIME[6:]), LAT, LON, TIME[6:]), max_rank=4)
    assert (thinned.shape[0], thinned.across_poles) == (4, "scalar")
    gone = np.setdiff1d(TIME, thinned.axes[0].numbers)
    missed = thinned.predict(time=gone).values - moving(LAT, LON, gone)
    assert np.isclose(thinned.origin["thinned"]["rmse"], np.sqrt(np.mean(missed**2)))
    tuned = retune(model)
    assert tuned.levels[:2] == model.levels[:2]
    assert np.allclose(tuned.predict(), model.predict(), atol=1e-9)
    assert tuned.across_poles == "scalar"


@pytest.mark.parametrize("tunes", [False, True])
def test_a_stream_has_the_rows_of_the_data(tunes):
    values = moving(LAT, LON, TIME)
    stream = Stream(moving_model(TIME[:5]), Plan(retune=tunes))
    values[6, 10:, 3] = np.nan
    for step in (5, 6, 7):
        found = stream.step(stream.model.axes[0].at(TIME[step]), values[[step]])
        assert found.values.shape == found.std.shape == (1, 12, 16)
    assert stream.model.shape == (8, 12, 16)
    assert stream.rmse < stream.last_value_rmse
    assert stream.final_model().across_poles == "scalar"


@pytest.mark.parametrize(
    ("lon", "settings", "stored"),
    [
        (LON, {}, False),
        (LON, {"dtype": "float32"}, False),
        (ring(15), {}, True),
        (LON, {"tolerance": 0.01}, True),
    ],
)
def test_a_model_file_gives_the_model_back(tmp_path, lon, settings, stored):
    size = 0.0 if "tolerance" in settings else 0.1
    noise = size * np.random.default_rng(0).normal(size=(8, 12, lon.size))
    model = moving_model(lon=lon, values=moving(LAT, lon, TIME) + noise, **settings)
    save_models([model], tmp_path / "m.npz")
    assert npz.read(tmp_path / "m.npz")[0]["poles"]["stored"] == stored
    found = load_model(tmp_path / "m.npz")
    assert (found.across_poles, found.shape) == ("scalar", model.shape)
    assert np.array_equal(found.cascade.coordinates[1], model.cascade.coordinates[1])
    for name in ("predict", "std"):
        one, other = (getattr(m, name)(**QUERY, time=2.5) for m in (found, model))
        assert np.array_equal(one, other)
    new = globe(moving(LAT, lon, [8.0]), LAT, lon, [8.0])
    both = [m.update(new).predict(**QUERY, time=7.5) for m in (found, model)]
    assert np.array_equal(*both)


def test_copies_take_no_room_in_a_model_file(tmp_path):
    noise = np.random.default_rng(0).normal(size=(8, 12, 16))
    for kind in ("none", "scalar"):
        save_models([moving_model(values=noise, poles=kind)], tmp_path / kind)
    sizes = [(tmp_path / kind).stat().st_size for kind in ("none", "scalar")]
    assert sizes[1] < sizes[0] + 500


@pytest.mark.parametrize(
    "change",
    [
        {"latitude": 2},
        {"longitude": 5},
        {"latitude": 0},
        {"before": [12]},
        {"kind": "tensor"},
        {"stored": 1},
        {"stored": True},
        {"rows": 3},
    ],
)
def test_a_damaged_record_is_refused(tmp_path, change):
    noise = np.random.default_rng(0).normal(size=(8, 12, 16))
    save_models([moving_model(values=noise)], tmp_path / "m.npz")
    header, arrays = npz.read(tmp_path / "m.npz")
    header["poles"] |= change
    kept = {key: header[key] for key in header if key not in ("format", "version", "arrays")}
    npz.write(tmp_path / "m.npz", json.loads(json.dumps(kept)), arrays)
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "m.npz").predict(lat=[3.0])


def test_weights_have_the_rows_across_the_poles():
    found = map_model().weights(2)
    assert dict(found.sizes) == {"lat": 24, "lon": 16}
    assert (found.lat.min(), found.lat.max()) < (-150, 200)


def test_the_smallest_model_within_a_tolerance_goes_on():
    model = moving_model(tolerance=0.01)
    assert model.across_poles == "scalar"
    assert error_of_moving(model) < 0.05


def error_of_moving(model):
    """Return the largest error of a field that moves, at a time of the data."""
    truth = scalar(**QUERY, phase=60.0) + 0.1 * np.sin(3.0)
    return float(np.abs(model.predict(**QUERY, time=3.0).values - truth).max())


def test_gaps_go_on_only_where_that_is_asked_for():
    values = scalar(LAT, LON)
    values[10:, 3:6] = values[4, 7] = np.nan
    grid = globe(values, LAT, LON)
    levels = [Level(level.name, level.kernel) for level in LEVELS[:2]]
    settings = {"levels": levels, "ridge": 1e-6, "group": "none"}
    ends, found = (fit_grid(grid, Settings(**settings, poles=k)) for k in ("auto", "scalar"))
    assert (ends.across_poles, found.across_poles) == ("none", "scalar")
    assert np.array_equal(found.unobserved, np.isnan(values))
    hole = np.isnan(values) & (LAT[:, None] > 60)
    missed = np.abs(ends.cascade.predict() - scalar(LAT, LON))[hole].max()
    across = np.abs(found.cut(found.cascade.predict()) - scalar(LAT, LON))[hole].max()
    assert across < 0.5 * missed
    for key in ("share", "pattern", "typical_gap"):
        assert found.origin["missing"][key] == ends.origin["missing"][key]
    assert found.std(mask="none").values[hole].min() > 0
    filled = fill_grid(grid, Settings(**settings, poles="scalar"), mask="none")
    assert np.allclose(filled.grid.values[hole], scalar(LAT, LON)[hole], atol=1.01 * across)


def test_regridding_reaches_the_pole():
    data = globe(scalar(LAT, LON), LAT, LON)
    target = {"lat": [-90.0, 0.0, 90.0], "lon": [10.0]}
    found = regrid(data, target, levels=LEVELS[:2])
    assert np.allclose(found.values, scalar(**target), atol=0.02)
    assert regrid(data, target, levels=LEVELS[:2], poles="none").isnull().sum() == 2
