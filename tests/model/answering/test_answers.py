"""Land stays land, and what lies outside is refused, left out, held or extrapolated as asked."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model
from dkrls_cli.errors import DkrlsError, InputError, SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.answering.answers import Rules, ask, ask_points

RNG = np.random.default_rng(11)
LAT, LON = np.linspace(-60.0, 60.0, 13), np.arange(0.0, 360.0, 20.0)
TIME = np.arange("2001-01-01", "2001-01-21", dtype="datetime64[D]")
GIVEN = {"kernel": "matern52", "sigma": {"time": 5.0, "lat": 20.0, "lon": 30.0}, "ridge": 1e-3}


def field(time, lat, lon):
    t, y, x = np.meshgrid(np.asarray(time, float), lat, lon, indexing="ij")
    return 280 + 10 * np.cos(np.deg2rad(y)) + np.sin(np.deg2rad(x)) * np.cos(t / 5)


def ocean(land=True):
    """A field of the sea: a continent, a row of land at the southern end, and a gap in time."""
    values = field(range(TIME.size), LAT, LON)
    if land:
        values[:, 4:9, 3:7] = np.nan
        values[:, 0] = np.nan
        values[3:6, 10, 10] = np.nan
    attrs = {"units": "degrees_east"}
    coords = {"time": TIME, "lat": LAT, "lon": ("lon", LON, attrs)}
    return xr.DataArray(values, coords, ("time", "lat", "lon"), "sst")


@pytest.fixture(scope="module")
def model():
    return fit(ocean(), **GIVEN)


def test_the_whole_grid_comes_back_with_its_land(model):
    answers = model.predict()
    assert answers.shape == ocean().shape
    assert answers.lat.values.tolist() == LAT.tolist()
    land = np.isnan(ocean().values).all(axis=0)
    np.testing.assert_array_equal(np.isnan(answers.values), np.broadcast_to(land, answers.shape))
    np.testing.assert_array_equal(np.isnan(model.std().values), np.isnan(answers.values))
    gap = field(range(TIME.size), LAT, LON)[3:6, 10, 10]
    assert np.abs(answers.values[3:6, 10, 10] - gap).max() < 0.2


def test_the_nearest_cell_decides_between_coordinates(model):
    middle = {"time": TIME[4], "lat": [0.0, 33.0, 37.0], "lon": [100.0, 135.0]}
    found = np.isnan(model.predict(**middle).values)
    # The continent is 20 S to 20 N, which is 25 S to 25 N between cells, and 60 E to 120 E.
    assert found.tolist() == [[True, False], [False, False], [False, False]]
    edge = model.predict(time=TIME[4], lat=[24.0, 26.0], lon=[51.0, 49.0, 129.0, 131.0])
    assert np.isnan(edge.values).tolist() == [[True, False, True, False], [False] * 4]


def test_a_mask_may_be_refused_or_replaced(model):
    everywhere = model.predict(mask="none", lat=[0.0], lon=[80.0, 90.0])
    assert np.isfinite(everywhere.values).all()
    with pytest.raises(SettingError, match="Unknown mask 'land'"):
        model.predict(mask="land")
    north = xr.DataArray([0, 1], {"lat": [-30.0, 30.0]}, ("lat",), "open")
    answers = model.predict(mask=north, time=TIME[0])
    assert np.isnan(answers.values).any(axis=1).tolist() == [bool(lat <= 0) for lat in LAT]
    points = {"time": TIME[[1, 1]], "lat": [-10.0, 10.0], "lon": 200.0}
    assert np.isnan(model.predict_points(**points, mask=north)).values.tolist() == [True, False]
    assert np.isnan(model.std_points(**points, mask=as_grid(north)).values).tolist() == [
        True,
        False,
    ]


def test_points_of_unequal_number_are_refused(model):
    with pytest.raises(SettingError, match="3 and 2"):
        model.predict_points(time=TIME[:3], lat=[1.0, 2.0], lon=5.0)


def test_without_a_mask_every_cell_of_the_file_is_answered(model):
    answers, errors = model.predict(mask="none"), model.std(mask="none")
    assert answers.shape == ocean().shape
    assert np.isfinite(answers).all()
    assert (errors.sel(lat=-60.0) > errors.sel(lat=-50.0)).all()
    for land, outside, count in (
        ("none", "refuse", 1),
        ("model", "refuse", 0),
        ("none", "missing", 0),
    ):
        query = ask(model, model.axes_at({}), Rules(outside, land), [])
        assert query.extrapolated_count == count * TIME.size * LON.size
        assert query.outside_count == (1 - count) * TIME.size * LON.size


@pytest.mark.parametrize("outside", ["refuse", "missing", "nearest", "extrapolate"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_coordinates_that_are_not_finite_are_refused_whatever_the_rule(model, outside, bad):
    with pytest.raises(SettingError, match=r"A coordinate of 'lat' is .* Expected a finite"):
        model.predict(lat=[0.0, bad], outside=outside)
    with pytest.raises(SettingError, match="A coordinate of 'lat' is"):
        model.std_points(lat=[bad], lon=[1.0], time=TIME[:1], outside=outside)


@pytest.mark.parametrize("outside", ["refuse", "missing", "nearest", "extrapolate"])
def test_places_on_no_globe_are_refused_or_outside_and_never_answered(model, outside):
    """Marks of unknown places: a longitude of -9999 is 81 degrees, to a circle."""
    for predict in (model.predict, model.predict_points):
        with pytest.raises(InputError, match="'lon' has -9999, which is no longitude"):
            predict(time=TIME[4], lat=30.0, lon=-9999.0, outside=outside)
        if outside == "missing":
            assert np.isnan(predict(time=TIME[4], lat=-999.0, lon=130.0, outside=outside)).all()
            continue
        with pytest.raises(DkrlsError, match=r"no latitude|outside the training range"):
            predict(time=TIME[4], lat=-999.0, lon=130.0, outside=outside)


def test_coordinates_of_the_file_without_data_are_answered_as_missing_not_refused(model):
    assert model.axes[1].size == LAT.size - 1
    row = model.predict(lat=-60.0, time=TIME[:2])
    assert np.isnan(row.values).all()
    answers = model.predict(mask="none", outside="missing")
    assert np.isnan(answers.sel(lat=-60.0)).all()
    assert np.isfinite(answers.sel(lat=-50.0)).all()
    assert np.isnan(model.predict(mask="none", lat=-60.0)).all()
    assert np.isfinite(model.predict(mask="none", lat=-60.0, extrapolate=True)).all()
    with pytest.raises(SettingError, match=r"outside the training range -50\.0 to 60\.0"):
        model.predict(lat=-61.0)


def test_points_are_answered_as_the_grid(model):
    at = {"time": TIME[[4, 4, 5]], "lat": [0.0, 45.0, -60.0], "lon": [80.0, 200.0, 10.0]}
    values, std = model.predict_points(**at), model.std_points(**at)
    assert np.isnan(values.values).tolist() == [True, False, True]
    assert np.isnan(std.values).tolist() == [True, False, True]
    alone = model.predict(time=TIME[4], lat=45.0, lon=200.0)
    assert values[1] == pytest.approx(float(alone), rel=1e-12)
    assert np.isfinite(model.predict_points(**at, mask="none")).values.tolist() == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("outside", ["missing", "nearest", "extrapolate"])
def test_outside_is_left_out_held_or_extrapolated(model, outside):
    far = {"time": TIME[2], "lat": [55.0, 70.0], "lon": [200.0]}
    answers = model.predict(**far, outside=outside).values[:, 0]
    errors = model.std(**far, outside=outside).values[:, 0]
    points = {"time": TIME[[2, 2]], "lat": [55.0, 70.0], "lon": [200.0, 200.0]}
    np.testing.assert_allclose(model.predict_points(**points, outside=outside), answers)
    np.testing.assert_allclose(model.std_points(**points, outside=outside), errors, atol=1e-12)
    end = float(model.predict(time=TIME[2], lat=60.0, lon=200.0))
    assert answers[0] == pytest.approx(float(model.predict(time=TIME[2], lat=55.0, lon=200.0)))
    if outside == "missing":
        assert np.isnan([answers[1], errors[1]]).all()
    elif outside == "nearest":
        assert answers[1] == pytest.approx(end, rel=1e-12)
    else:
        assert abs(answers[1] - end) > 0.01


def test_outside_is_refused_unless_allowed(model):
    message = r"1 of 2 coordinates of 'lat' are outside the training range .* the first 95\.0"
    for call in (model.predict, model.std):
        with pytest.raises(SettingError, match=message) as refused:
            call(lat=[50.0, 95.0])
        assert refused.value.setting == "outside"
    with pytest.raises(SettingError, match="outside the training range"):
        model.predict_points(lat=[95.0], lon=[0.0], time=TIME[:1])
    assert np.isfinite(model.predict(lat=88.0, lon=200.0, extrapolate=True)).all()
    with pytest.raises(SettingError, match="Unknown way with what lies outside 'drop'"):
        model.predict(lat=95.0, outside="drop")


def test_counts_say_how_many_cells_stay_missing_and_why(model):
    axes = model.axes_at({"time": TIME[:2], "lat": [0.0, 45.0, 70.0, 80.0]})
    query = ask(model, axes, Rules("missing"))
    missing = np.isnan(query.values())
    assert query.outside_count == 2 * 2 * LON.size
    assert query.land_count == 2 * 4
    assert np.count_nonzero(missing) == query.outside_count + query.land_count
    assert ask(model, axes, Rules("nearest", "none")).outside_count == 0
    points = [
        model.axes[0].at(TIME[[2, 2, 2]]),
        model.axes[1].at([0.0, 45.0, 70.0]),
        model.axes[2].at([80.0] * 3),
    ]
    found = ask_points(model, points, Rules("missing"))
    assert (found.outside_count, found.land_count) == (1, 1)


def test_stations_are_answered_as_the_grid(model):
    stations = {"lat": [0.0, 45.0, 70.0], "lon": [80.0, 201.0, 10.0]}
    answers = model.predict_stations(stations, outside="missing")
    errors = model.std_stations(stations, outside="missing")
    assert answers.dims == ("station", "time")
    assert np.isnan(answers.values).all(axis=1).tolist() == [True, False, True]
    assert np.isnan(errors.values).all(axis=1).tolist() == [True, False, True]
    np.testing.assert_allclose(answers[1], model.predict(lat=45.0, lon=201.0), rtol=1e-9)
    np.testing.assert_allclose(errors[1], model.std(lat=45.0, lon=201.0), rtol=1e-6)
    assert np.isfinite(model.predict_stations(stations, outside="nearest", mask="none")).all()
    with pytest.raises(SettingError, match="outside the training range"):
        model.predict_stations(stations)


@pytest.mark.parametrize("cells", [1, 7, 1000])
def test_blocks_of_stations_are_parts_of_the_whole(model, cells):
    axes = [
        model.axes[0].take([1, 2, 3]),
        model.axes[1].at([0.0, 45.0, 70.0, 31.0]),
        model.axes[2].at([80.0, 80.0, 80.0, 11.0]),
    ]
    query = ask_points(model, axes, Rules("missing"), spread=[0])
    values, errors = query.values(), query.std()
    assert (values.shape, query.outside_count, query.land_count) == ((4, 3), 3, 3)
    seen = np.zeros(values.shape, int)
    for part, block, std in query.blocks(cells, std=True):
        np.testing.assert_allclose(block, values[part], rtol=1e-9)
        np.testing.assert_allclose(std, errors[part], rtol=1e-9, atol=1e-12)
        seen[part] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("cells", [1, 7, 50, 10_000])
def test_blocks_are_parts_of_the_whole(model, cells):
    axes = model.axes_at({"time": TIME[3:5], "lat": [0.0, 20.0, 70.0]})
    query = ask(model, axes, Rules("missing"))
    values, errors = query.values(), query.std()
    assert np.isnan(values).any()
    seen = np.zeros(query.shape, int)
    for part, block, std in query.blocks(cells, std=True):
        np.testing.assert_allclose(block, values[part], rtol=1e-9)
        np.testing.assert_allclose(std, errors[part], rtol=1e-9, atol=1e-12)
        seen[part] += 1
    assert (seen == 1).all()
    assert all(std is None for _, _, std in query.blocks(cells))


def test_a_model_file_remembers_land_and_the_whole_grid(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    xr.testing.assert_equal(again.predict(), model.predict())
    xr.testing.assert_equal(
        again.predict(lat=[1.0, 48.0], lon=[77.0]), model.predict(lat=[1.0, 48.0], lon=[77.0])
    )


def test_an_update_takes_the_whole_grid_and_opens_cells_that_have_data_now(model):
    later = ocean().isel(time=[-1]).assign_coords(time=TIME[-1:] + 1)
    later[0, 4, 3] = 285.0
    after = model.update(later)
    answers = after.predict()
    assert answers.sizes["time"] == TIME.size + 1
    assert answers.sizes["lat"] == LAT.size
    assert np.isfinite(answers[:, 4, 3]).all()
    assert np.isnan(answers[:, 5, 4]).all()


def test_an_update_with_data_where_the_model_never_had_any_is_refused(model):
    later = ocean().isel(time=[-1]).assign_coords(time=TIME[-1:] + 1)
    later[0, 0, 5] = 280.0
    with pytest.raises(
        ValueError, match=r"data at 'lat' -60\.0, where the model has never had any"
    ):
        model.update(later)


def test_a_ring_with_longitudes_left_out_is_still_a_ring():
    whole = ocean(land=False)
    for left_out in ([4, 5], [2], range(3, 9), range(1, 8)):
        part = whole.isel(lon=np.delete(np.arange(LON.size), list(left_out)))
        ring = fit(part, **GIVEN)
        assert np.isfinite(ring.predict(lon=LON)).all()
        assert ring.level_of("lon").kernel.period == 360.0


def test_longitudes_between_the_smallest_and_the_largest_are_never_outside():
    region = ocean(land=False).isel(lon=[2, 3, 4, 11, 12])
    line = fit(region, **GIVEN)
    assert line.level_of("lon").kernel.period is None
    assert np.isfinite(line.predict(lon=LON[2:13])).all()
    with pytest.raises(SettingError, match="outside the training range"):
        line.predict(lon=LON[13])


@pytest.mark.parametrize("lon", [np.arange(-180.0, 181, 20), np.arange(0.0, 361, 20)])
def test_a_file_that_has_a_longitude_twice_works_and_comes_back_whole(lon):
    values = field(range(3), LAT, lon)
    coords = {"time": TIME[:3], "lat": LAT, "lon": ("lon", lon, {"units": "degrees_east"})}
    closed = xr.DataArray(values, coords, ("time", "lat", "lon"), "t")
    model = fit(closed, **GIVEN)
    assert model.level_of("lon").kernel.period == 360.0
    assert model.axes[2].size == lon.size - 1
    np.testing.assert_allclose(model.predict(), closed, rtol=1e-12)
    assert model.predict().lon.values.tolist() == lon.tolist()
    later = closed.isel(time=[0]).assign_coords(time=TIME[3:4])
    assert model.update(later).predict().shape == (4, LAT.size, lon.size)


# --- one time step ------------------------------------------------------------------------------


def test_one_time_step_keeps_its_time_and_grows():
    months = np.array(["2001-03-01", "2001-04-01", "2001-05-01"], "datetime64[ns]")
    march = xr.DataArray(
        field([0], LAT, LON),
        {"time": months[:1], "lat": LAT, "lon": ("lon", LON, {"units": "degrees_east"})},
        ("time", "lat", "lon"),
        "t",
    )
    for given in (march, march.isel(time=0)):
        model = fit(given)
        assert model.hierarchy[-1] == "time"
        assert model.predict().sizes["time"] == 1
        april = (march + 1).assign_coords(time=months[1:2])
        after = model.update(april if given is march else april.isel(time=0))
        assert after.predict().time.values.tolist() == months[:2].tolist()
        np.testing.assert_allclose(after.predict(time=months[1]), (march + 1)[0], rtol=1e-9)
        np.testing.assert_allclose(after.predict(time=months[0]), march[0], rtol=1e-9)
        with pytest.raises(ValueError, match="2001-03-01 of 'time' is in the model already"):
            after.update(march)


def test_a_model_of_one_time_step_chooses_its_settings_as_it_grows():
    whole = ocean(land=False)
    model = fit(whole.isel(time=[0]))
    chosen = [model.origin["last_level_chosen_on"]]
    for place in range(1, 8):
        model = model.update(whole.isel(time=[place]))
        chosen.append(model.origin["last_level_chosen_on"])
    assert chosen == [1, 2, 2, 4, 4, 4, 4, 8]
    model = model.update(whole.isel(time=slice(8, 20)))
    assert model.origin["last_level_chosen_on"] == 20
    between = TIME[10] + np.timedelta64(12, "h")
    truth = field([10.5], LAT, LON)[0]
    assert np.abs(model.predict(time=between).values - truth).max() < 0.01
    given = fit(whole.isel(time=[0]), **GIVEN).update(whole.isel(time=slice(1, 20)))
    assert given.levels[-1].kernel.sigma == GIVEN["sigma"]["time"]


def test_enough_slices_settle_a_model_for_good():
    days = np.arange("2001-01-01", "2001-02-20", dtype="datetime64[D]")
    values = np.sin(np.add.outer(np.arange(50) / 4, LAT / 20))
    whole = xr.DataArray(values, {"time": days, "lat": LAT}, ("time", "lat"))
    model = fit(whole.isel(time=[0])).update(whole.isel(time=slice(1, 23)))
    assert model.origin["last_level_chosen_on"] == 23
    settled = model.update(whole.isel(time=slice(23, 46)))
    assert "last_level_chosen_on" not in settled.origin
    after = settled.update(whole.isel(time=slice(46, 50)))
    assert after.levels == settled.levels


def test_land_told_by_shape_is_told_by_time_when_there_are_two_times():
    """An island of one cell is taken for a gap in one time step, and for land in two."""
    whole = ocean().rename("t")
    whole[:, 2, 12] = np.nan
    one = fit(whole.isel(time=[0]), **GIVEN)
    assert "land" in one.origin
    assert np.isfinite(one.predict()[0, 2, 12])
    assert np.isnan(one.predict()[0, 6, 5])
    two = one.update(whole.isel(time=[1]))
    assert "land" not in two.origin
    assert np.isnan(two.predict()[:, 2, 12]).all()
    assert two.predict().sizes["lat"] == LAT.size
    assert np.isnan(two.predict()[:, 0]).all()
    cloud = whole.isel(time=[2]).copy()
    cloud[0, 11, 3] = np.nan
    three = two.update(cloud)
    assert np.isfinite(three.predict()[2, 11, 3])
    fitted = fit(whole.isel(time=slice(0, 2)), **GIVEN)
    np.testing.assert_array_equal(np.isnan(two.predict()), np.isnan(fitted.predict()))


def test_times_without_data_stay_in_the_grid_of_a_model_that_grows():
    whole = ocean()
    whole[7] = np.nan
    model = fit(whole.isel(time=slice(0, 12)), **GIVEN)
    assert model.axes[0].size == 11
    assert model.predict().sizes["time"] == 12
    grown = model.update(whole.isel(time=slice(12, 15)))
    assert grown.axes[0].size == 14
    np.testing.assert_array_equal(grown.predict().time, whole.time[:15])
    assert np.isfinite(grown.predict()[7, 10]).all()
    found = grown.update(ocean().isel(time=[7]))
    assert found.axes[0].size == found.predict().sizes["time"] == 15
    late = grown.update(whole.isel(time=slice(15, 18)), window=5)
    assert late.predict().sizes["time"] == 5
    backwards = fit(whole.isel(time=slice(11, None, -1)), **GIVEN)
    later = backwards.update(whole.isel(time=[12]))
    np.testing.assert_array_equal(later.predict().time, whole.time[12::-1])
