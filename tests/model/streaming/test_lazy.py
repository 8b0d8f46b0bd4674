"""Answers of chunked arrays: lazy, chunk by chunk, and those of the array in memory."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import xarray as xr
from chunked_grids import globe, query_of

import dkrls_cli
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming import lazy, request
from dkrls_cli.model.streaming.lazy import lazy_regrid

dask = pytest.importorskip("dask")

GIVEN = {"kernel": "matern52", "sigma": {"time": 3.0, "lat": 40.0, "lon": 50.0}, "ridge": 1e-2}
MAP = {"lat": np.linspace(-80.0, 80.0, 11), "lon": np.arange(0.0, 360.0, 25.0)}
CHUNKS = {"time": 4, "lat": 10, "lon": 7}


def data_of(times=40, lats=24, lons=20):
    """A field whose mean on a part is not that of the whole."""
    data = globe(times, lats, lons) + 0.1 * xr.DataArray(np.arange(times) ** 0.5, dims="time")
    return data.transpose("time", "lat", "lon").rename("f").assign_attrs(units="K")


def watched(data, chunks, computed):
    """Return a chunked array that notes every chunk of it that is computed."""

    def note(block, block_id=None):
        computed.append(block_id)
        return block

    late = data.chunk(chunks)
    noting = late.data.map_blocks(note, dtype=data.dtype, meta=np.empty((0,) * data.ndim))
    return late.copy(data=noting)


def answers_of(data, settings, asked, *, std=False, **how):
    """Return lazy answers and errors with a mean that is given, and those in memory."""
    ask_model = partial(query_of, at=asked, **how)
    query, values, errors = lazy_regrid(data, settings, ask_model, std=std)
    expected = ask_model(fit_grid(as_grid(data), settings))
    assert query.shape == values.shape == expected.shape
    return values, errors, expected


# ------------------------------------------------------------------------ equal to those in memory


@pytest.mark.parametrize(
    "asked",
    [
        MAP,
        {"lon": MAP["lon"]},
        {**MAP, "time": [9.0, 30.0, 3.0, 4.0, 4.0]},
        {**MAP, "time": np.linspace(0.5, 38.5, 13)},
        {"time": [12.0]},
        {"time": [-5.0, 3.5, 99.0]},
    ],
    ids=["map", "lon", "times", "between times", "one time", "outside"],
)
@pytest.mark.parametrize("most", ["128MiB", "6kiB", "1kiB"])
def test_answers_are_those_in_memory(asked, most):
    data = data_of()
    with dask.config.set({"array.chunk-size": most}):
        values, errors, expected = answers_of(
            data.chunk(CHUNKS), Settings(**GIVEN, mean=0.3), asked
        )
    np.testing.assert_allclose(values.compute(), expected.values(), atol=1e-10)
    assert errors is None
    assert values.dtype == np.float64


@pytest.mark.parametrize(
    ("settings", "how"),
    [
        ({"bounds": (-1.02, 1.79)}, {"outside": "extrapolate"}),
        ({"poles": "none"}, {}),
        ({"cell_means": True}, {}),
        ({}, {"mean": True}),
        ({}, {"derivative": "lat"}),
        ({}, {"derivative": ("lat", "time")}),
        ({}, {"outside": "nearest"}),
        ({}, {"outside": "extrapolate"}),
    ],
)
def test_every_question_is_answered_as_in_memory(settings, how):
    asked = {**MAP, "lat": np.linspace(-89.5, 89.5, 12)}
    chosen = Settings(**GIVEN, mean=0.3, **settings)
    values, _, expected = answers_of(data_of().chunk(CHUNKS), chosen, asked, **how)
    np.testing.assert_allclose(values.compute(), expected.values(), atol=1e-10)


@pytest.mark.parametrize("how", [{"mean": True}, {"derivative": "lat"}])
def test_errors_of_means_and_slopes_need_nothing_of_a_dimension_that_passes_through(how):
    """The scale of its errors is not known: no chunk was looked at for it."""
    data, chosen = data_of(), Settings(**GIVEN, mean=0.3, poles="none")
    asked = {"lat": np.linspace(-80.0, 80.0, 9), "lon": np.arange(0.0, 350.0, 25.0)}
    _, errors, expected = answers_of(data.chunk(CHUNKS), chosen, asked, std=True, **how)
    np.testing.assert_allclose(errors.compute(), expected.std(), rtol=0.02)


def test_in_two_steps_no_chunk_is_large(monkeypatch):
    """Between all coordinates, a map is answered first, then the times."""
    asked = {**MAP, "time": np.linspace(0.5, 38.5, 13)}
    settings, most, sizes = Settings(**GIVEN, mean=0.3, poles="none"), 6 * 1024, []
    run = lazy.LazyStep.__call__

    def watch(step, block, place):
        found = run(step, block, place)
        sizes.append(max(block.nbytes, found.nbytes))
        return found

    monkeypatch.setattr(lazy.LazyStep, "__call__", watch)
    with dask.config.set({"array.chunk-size": most}):
        values, _, expected = answers_of(data_of().chunk(CHUNKS), settings, asked)
    np.testing.assert_allclose(values.compute(), expected.values(), atol=1e-10)
    assert most / 4 < max(sizes) <= most


def test_chunks_that_pass_through_are_kept_unless_they_are_large():
    data = data_of().chunk(CHUNKS)
    assert dkrls_cli.regrid(data, MAP, **GIVEN).chunks == ((4,) * 10, (11,), (15,))
    with dask.config.set({"array.chunk-size": 2 * 8 * 24 * 20}):
        assert dkrls_cli.regrid(data, MAP, **GIVEN).chunks[0] == (2,) * 20
    fine = {"lat": np.linspace(-80.0, 80.0, 48), "lon": np.arange(0.0, 360.0, 9.0)}
    with dask.config.set({"array.chunk-size": 2 * 8 * 48 * 40}):
        assert dkrls_cli.regrid(data, fine, **GIVEN).chunks[0] == (2,) * 20


def test_with_settings_given_only_the_mean_is_that_of_a_part():
    data = data_of(times=80)
    late = dkrls_cli.regrid(data.chunk(time=10), MAP, **{**GIVEN, "ridge": 1e-4})
    whole = dkrls_cli.regrid(data, MAP, **{**GIVEN, "ridge": 1e-4})
    difference = np.abs(late.compute() - whole).max()
    assert 0 < difference < 1e-6


def test_labels_and_errors_are_those_in_memory():
    data = data_of()  # so small that settings and errors are found on all of it
    for std in (False, True):
        late = dkrls_cli.regrid(data.chunk(time=10), MAP, std=std, poles="none")
        whole = dkrls_cli.regrid(data, MAP, std=std, poles="none")
        assert late.chunks
        for one, other in zip(late.coords.values(), whole.coords.values(), strict=True):
            xr.testing.assert_identical(one, other)
    assert list(late) == list(whole) == ["f", "f_std"]
    for name in whole:
        assert late[name].attrs == whole[name].attrs
        assert late[name].dims == whole[name].dims
    done = late.compute()
    np.testing.assert_allclose(done.f, whole.f, atol=0.03)
    np.testing.assert_allclose(done.f_std, whole.f_std, rtol=0.25)


def test_errors_with_the_same_bars_are_those_in_memory(monkeypatch):
    data, settings = data_of(), Settings(**GIVEN, mean=0.3)
    model = fit_grid(as_grid(data), settings)
    survey = request.survey

    def with_its_bars(*args, **how):
        found = survey(*args, **how)
        return replace(found, model=replace(found.model, known_bars=model.known_bars))

    monkeypatch.setattr(request, "survey", with_its_bars)
    _, errors, expected = answers_of(data.chunk(CHUNKS), settings, MAP, std=True)
    np.testing.assert_allclose(errors.compute(), expected.std(), atol=1e-10)
    assert expected.std().max() > 0.01


def test_a_scalar_time_and_a_repeated_longitude():
    data = data_of()
    again = data.isel(lon=[0]).assign_coords(lon=("lon", [360.0], data.lon.attrs))
    one = xr.concat([again, data], "lon").isel(time=5)
    one = one.assign_coords(time=np.datetime64("2001-02-03", "ns"))
    late = dkrls_cli.regrid(one.chunk(lat=6), MAP, **{**GIVEN, "sigma": 30.0})
    whole = dkrls_cli.regrid(one, MAP, **{**GIVEN, "sigma": 30.0})
    assert late.chunks == ((1,), (11,), (15,))
    xr.testing.assert_allclose(late.compute(), whole, atol=1e-10)


def test_text_labels_and_integers():
    rng = np.random.default_rng(2)
    x = np.arange(30.0)
    values = np.round(100 * np.sin(x / 5) + rng.normal(size=(3, 30))).astype("int16")
    data = xr.DataArray(values, {"band": ["b", "a", "c"], "x": x}, ("band", "x"), name="n")
    settings = Settings(kernel="matern52", sigma={"x": 4.0}, ridge=0.0, mean=7.0)
    asked = {"x": x[:-1] + 0.5, "band": ["c", "b"]}
    values, _, expected = answers_of(data.chunk(band=1), settings, asked)
    np.testing.assert_allclose(values.compute(), expected.values(), atol=1e-9)


def test_dates_of_a_calendar_without_leap_days():
    data = data_of()
    days = xr.date_range("2001-01-01", periods=40, calendar="360_day", use_cftime=True)
    data = data.assign_coords(time=days)
    asked = {**MAP, "time": days[[3, 30]]}
    late = dkrls_cli.regrid(data.chunk(time=8), asked, **{**GIVEN, "ridge": 1e-6})
    whole = dkrls_cli.regrid(data, asked, **{**GIVEN, "ridge": 1e-6})
    assert late.chunks is not None
    xr.testing.assert_identical(late.time, whole.time)
    xr.testing.assert_allclose(late.compute(), whole, atol=1e-6)


# -------------------------------------------------------------------------------------------- lazy


def test_with_everything_given_nothing_is_computed():
    computed = []
    data = watched(data_of(), CHUNKS, computed)
    settings = Settings(**GIVEN, mean=0.3, poles="none")
    _, values, _ = lazy_regrid(data, settings, partial(query_of, at=MAP), std=False)
    assert computed == []
    values[8:12].compute()
    assert {block[0] for block in computed} == {2}


def test_settings_are_chosen_on_a_few_chunks():
    computed = []
    data = watched(data_of(times=200), {"time": 1}, computed)
    late = dkrls_cli.regrid(data, MAP, std=True)
    assert 3 <= len({block[0] for block in computed}) <= 24
    computed.clear()
    late.isel(time=[7]).compute()
    assert {block[0] for block in computed} == {7}
    assert len(computed) == 1  # values and errors are made together


def test_a_chunk_that_cannot_be_computed_fails_where_it_is_asked_for():
    def fail(block, block_id=None):
        if block_id[0] == 6:
            raise RuntimeError("disk on fire")
        return block

    late = data_of().chunk(time=4)
    late = late.copy(data=late.data.map_blocks(fail, dtype=float, meta=np.empty((0, 0, 0))))
    settings = Settings(**GIVEN, mean=0.3, poles="none")
    _, values, _ = lazy_regrid(late, settings, partial(query_of, at=MAP), std=False)
    assert np.isfinite(values[:24].compute()).all()
    with pytest.raises(RuntimeError, match="disk on fire"):
        values[24].compute()


@pytest.mark.parametrize("times", [None, [39.0, 17.0, 1.0]])
def test_a_missing_cell_is_named_when_it_is_met(times):
    data = data_of()
    data[17, 3, 2] = np.nan
    asked = MAP if times is None else {**MAP, "time": times}
    settings = Settings(**GIVEN, mean=0.3, poles="none")
    _, values, _ = lazy_regrid(data.chunk(time=4), settings, partial(query_of, at=asked), std=False)
    if times is None:
        assert np.isfinite(values[:16].compute()).all()
    with pytest.raises(InputError, match=r"first at time 17.0, lat -65.0\d*, lon 36.0"):
        values.compute()


# ----------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"noise": "joint"}, "One joint ridge"),
        ({"robust": True}, "robust fit"),
        ({"obs_error": 0.1}, "Errors of the observations"),
        ({"compact": True}, "Leave out compact, or load the array first"),
        ({"tolerance": 0.1}, "Leave out tolerance"),
        ({"dtype": "float32"}, "Leave out dtype"),
        ({"coordinates": [[1.0]]}, "Coordinates were given"),
        ({"outside": "refuse", "target": {"lat": [99.0]}}, "outside the training range"),
        ({"derivative": "depth"}, "depth"),
        ({"outside": "away"}, "Unknown way"),
        ({"sigma": -1.0}, "sigma"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_computed(options, told):
    computed = []
    data = watched(data_of(), CHUNKS, computed)
    with pytest.raises(SettingError, match=told):
        dkrls_cli.regrid(data, **{"target": MAP, **options})
    assert computed == []


def test_missing_cells_that_are_no_places_at_times_are_refused():
    data = data_of().isel(lon=0, drop=True).drop_attrs().rename(lat="band", time="run")
    data[:21, 3] = np.nan
    data["band"].attrs.clear()
    with pytest.raises(InputError, match="in the part on which settings are chosen"):
        dkrls_cli.regrid(data.chunk(run=4), {"band": MAP["lat"]})


# -------------------------------------------------------------------------------- other processes


def test_the_graph_can_be_sent():
    late = dkrls_cli.regrid(data_of().chunk(CHUNKS), MAP, mean=True, std=True, **GIVEN)
    sent = pickle.loads(pickle.dumps(late))
    xr.testing.assert_identical(sent.compute(), late.compute())


@pytest.mark.slow
def test_workers_of_a_cluster_answer_as_threads_do():
    distributed = pytest.importorskip("distributed")
    late = dkrls_cli.regrid(data_of().chunk(CHUNKS), MAP, std=True, **GIVEN)
    here = late.compute()
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    with cluster, distributed.Client(cluster):
        there = late.compute()
    xr.testing.assert_allclose(there, here, atol=1e-12)


# ------------------------------------------------------------------------------------------- land

ALONE = {
    "kernel": "matern32",
    "sigma": {"time": 1e-3, "lat": 40.0, "lon": 50.0},
    "ridge": 1e-3,
    "group": "none",
    "poles": "none",
}


def with_land():
    data = data_of(12, 14, 18)
    data[:, 3:7, 4:9] = np.nan
    data[:, :2] = np.nan  # two latitudes without any data
    return data


@pytest.mark.parametrize("times", [None, [9, 2, 3, 11]])
@pytest.mark.parametrize("chunks", [{"time": 4}, {"time": 5, "lat": 6, "lon": 7}])
def test_land_stays_land_and_the_sea_is_that_of_every_time(times, chunks):
    data = with_land()
    asked = MAP if times is None else {**MAP, "time": data.time.values[times]}
    ask_model = partial(query_of, at=asked)
    query, values, _ = lazy_regrid(data.chunk(chunks), Settings(**ALONE), ask_model, std=False)
    own_mean = Settings(**ALONE, mean=query.model.cascade.mean)  # that of a part
    whole = ask_model(fit_grid(as_grid(data), own_mean)).values()
    assert 0.02 < np.isnan(whole).mean() < 0.6
    found = values.compute(scheduler="synchronous")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(whole))
    np.testing.assert_allclose(found, whole, atol=2e-8)


def test_errors_and_settings_of_a_grid_with_land_are_those_of_a_part():
    data = with_land()
    grid = dkrls_cli.regrid(data.chunk(time=1), MAP, std=True, mask="none")
    assert grid.f.chunks == ((1,) * 12, (11,), (15,))
    found = grid.compute(scheduler="synchronous")
    errors = found.f_std.values[:, 2:]  # no answers outside the range of the data
    assert (errors > 0).all()
    np.testing.assert_array_equal(errors, np.broadcast_to(errors[:1], errors.shape))
    alone = {"noise": "joint", "group": "none", "poles": "none"}
    plain = dkrls_cli.regrid(data.isel(time=[3]), MAP, mask="none", **alone)
    np.testing.assert_allclose(found.f[3, 2:], plain[0, 2:], atol=0.15)  # other settings


@pytest.mark.parametrize("std", [False, True])
def test_gaps_that_come_and_go_are_answered_time_by_time(std):
    data = with_land().isel(time=slice(0, 6))
    data[[1, 3, 4], 9:11, 9] = np.nan
    data[5, 8] = np.nan
    ask_model = partial(query_of, at=MAP)
    settings = Settings(**ALONE)
    query, values, errors = lazy_regrid(data.chunk(time=2), settings, ask_model, std=std)
    whole = ask_model(fit_grid(as_grid(data), Settings(**ALONE, mean=query.model.cascade.mean)))
    found = values.compute(scheduler="synchronous")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(whole.values()))
    np.testing.assert_allclose(found, whole.values(), atol=2e-7)
    assert (errors is not None) == std
    if std:
        ratio = np.sqrt(np.nanmean(errors.compute() ** 2) / np.nanmean(whole.std() ** 2))
        assert 0.8 < ratio < 1.25


def test_gaps_beside_land_are_named_when_they_are_met():
    data = with_land()
    data[10, 9, 9] = np.nan
    late = data.chunk(time=1)
    asked = {**MAP, "time": data.time.values[[3, 10]]}
    _, values, _ = lazy_regrid(late, Settings(**ALONE), partial(query_of, at=asked), std=False)
    with pytest.raises(InputError, match=r"only, the first at time 10\.0, lat 33\.8"):
        values.compute(scheduler="synchronous")
