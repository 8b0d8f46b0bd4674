"""Grids beyond memory with land are answered as each of their times is in memory."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from chunked_grids import globe, query_of

from dkrls_cli.errors import ConvergenceError, InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming.request import stream_regrid
from dkrls_cli.model.streaming.running import Threads
from dkrls_cli.model.streaming.stages import answer_in_blocks

MAP = {"lat": np.arange(-80.0, 81.0, 8.0), "lon": np.arange(0.0, 360.0, 10.0)}
GIVEN = Settings(
    kernel="matern32", sigma={"lat": 40.0, "lon": 50.0}, ridge=1e-3, mean=0.1, group="none"
)
ALONE = Settings(
    kernel="matern32",
    sigma={"time": 1e-3, "lat": 40.0, "lon": 50.0},
    ridge=1e-3,
    mean=0.1,
    group="none",
)
ROOM = 4e9  # bytes, the process of the tests included


def with_land(times=6, lats=14, lons=18):
    data = globe(times, lats, lons)
    data[:, 3:7, 4:9] = np.nan
    data[:, 8, 0] = np.nan
    data[:, :2] = np.nan  # two latitudes without any data
    data[:, 10:13, 15:] = np.nan
    return data


def stored(tmp_path, data, chunks=None, name="land.nc", **encoding):
    path = tmp_path / name
    data.to_netcdf(path, encoding={"f": {"chunksizes": chunks or data.shape, **encoding}})
    return open_source([str(path)])


def streamed_from(source, settings, at=MAP, *, workers=2, limit=ROOM, std=False):
    return stream_regrid(
        source,
        settings,
        lambda model: query_of(model, at),
        [1, 2],
        std=std,
        limit=limit,
        workers=workers,
        land=True,
    )


def answered(streamed, workers=2, which=0):
    """Return all answers of a stream; of `which` 1, their standard errors."""
    values = np.full(streamed.query.shape, 9e9)

    def sink(part, found):
        values[part] = found[which]

    answer_in_blocks(streamed.boxes, streamed.answers, streamed.plan, Threads(workers), sink)
    return values


def in_memory(source, settings, at=MAP):
    return query_of(fit_grid(source.grid(), settings), at).values()


def test_sea_and_land_are_those_of_a_grid_in_memory_whose_times_are_on_their_own(tmp_path):
    source = stored(tmp_path, with_land(), (1, 14, 18))
    expected = in_memory(source, ALONE)
    found = answered(streamed_from(source, GIVEN))
    assert 0.05 < np.isnan(expected).mean() < 0.6
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, atol=2e-8)


@pytest.mark.parametrize("place", [0, 3])
def test_every_time_is_answered_as_if_there_were_no_other(tmp_path, place):
    data = with_land()
    found = answered(streamed_from(stored(tmp_path, data), GIVEN))
    alone = stored(tmp_path, data.isel(time=[place]), name="one.nc")
    settings = Settings(**{**GIVEN.given, "sigma": {"lat": 40.0, "lon": 50.0, "time": 1.0}})
    sea = ~np.isnan(found[place])
    expected = query_of(fit_grid(alone.grid(), settings), MAP).values()[0]
    np.testing.assert_allclose(found[place][sea], expected[sea], atol=2e-8)


def test_answers_are_those_of_the_dense_solve_over_the_sea(tmp_path):
    from dkrls_cli.cascade.kernels import Kernel, gram

    data = with_land()
    streamed = streamed_from(stored(tmp_path, data), GIVEN)
    found = answered(streamed)
    kernels = Kernel("matern32", 40.0), Kernel("matern32", 50.0, 360.0)
    sea = data[0].notnull().values
    lat, lon = np.meshgrid(data.lat, data.lon, indexing="ij")
    own = [lat[sea], lon[sea]]
    asked = np.meshgrid(MAP["lat"], MAP["lon"], indexing="ij")
    among = np.prod([gram(k, c, c) for k, c in zip(kernels, own, strict=True)], axis=0)
    toward = np.prod(
        [gram(k, q.ravel(), c) for k, q, c in zip(kernels, asked, own, strict=True)], axis=0
    )
    values = data.values[:, sea] - 0.1
    truth = 0.1 + toward @ np.linalg.solve(among + 1e-3 * np.eye(len(among)), values.T)
    truth = truth.T.reshape(found.shape)
    at_cells = np.isin(MAP["lat"], data.lat)[:, None] & np.isin(MAP["lon"], data.lon)
    compared = ~np.isnan(found) & ~at_cells
    np.testing.assert_allclose(found[compared], truth[compared], atol=2e-8)


def test_answers_at_cells_of_the_data_are_the_data(tmp_path):
    data = with_land()
    own = {"lat": data.lat.values, "lon": data.lon.values[::2]}
    found = answered(streamed_from(stored(tmp_path, data), GIVEN, own))
    np.testing.assert_allclose(found, data.values[:, :, ::2], atol=1e-12)


@pytest.mark.parametrize("order", [("lat", "time", "lon"), ("lon", "lat", "time")])
def test_axes_may_lie_in_any_order(tmp_path, order):
    data = with_land()
    source = stored(tmp_path, data.transpose(*order))
    streamed = stream_regrid(
        source,
        GIVEN,
        lambda model: query_of(model, MAP),
        [order.index("lat"), order.index("lon")],
        std=False,
        limit=ROOM,
        workers=1,
        land=True,
    )
    expected = answered(streamed_from(stored(tmp_path, data, name="usual.nc"), GIVEN))
    found = answered(streamed, 1).transpose([order.index(d) for d in ("time", "lat", "lon")])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_some_times_may_be_asked_for_and_blocks_be_of_any_size(tmp_path):
    from dkrls_cli.model.streaming.planning import Work, plan_blocks

    source = stored(tmp_path, with_land())
    whole = answered(streamed_from(source, GIVEN))
    streamed = streamed_from(source, GIVEN, {**MAP, "time": [1.0, 2.0, 5.0]})
    work = Work((1, 14, 18), 8, 8, 1e9, blocks=3)
    cut = replace(streamed, plan=plan_blocks(streamed.answers, work))
    assert len(cut.plan.blocks) == 3
    np.testing.assert_allclose(answered(cut), whole[[1, 2, 5]], atol=1e-9)


def test_longitudes_that_repeat_and_depths_are_taken_as_in_memory(tmp_path):
    data = with_land(times=3)
    again = data.isel(lon=[0]).assign_coords(lon=("lon", [360.0], data.lon.attrs))
    source = stored(tmp_path, xr.concat([data, again], "lon"))
    expected = answered(streamed_from(stored(tmp_path, data, name="usual.nc"), GIVEN))
    np.testing.assert_allclose(answered(streamed_from(source, GIVEN)), expected, atol=1e-9)


def test_a_column_of_depths_is_solved_together(tmp_path):
    data = with_land(times=2).expand_dims(depth=[0.0, 10.0, 30.0], axis=1).copy()
    data["depth"].attrs = {"positive": "down", "units": "m", "axis": "Z"}
    data = (data * (1.0 + data.depth / 20.0)).rename("f")
    data[:, 2, 5:9, 8:12] = np.nan
    source = stored(tmp_path, data)
    given = Settings(**{**GIVEN.given, "sigma": {"lat": 40.0, "lon": 50.0, "depth": 20.0}})
    alone = Settings(**{**given.given, "sigma": {**given.sigma, "time": 1e-3}})
    streamed = stream_regrid(
        source,
        given,
        lambda model: query_of(model, MAP),
        [2, 3],
        std=False,
        limit=ROOM,
        workers=1,
        land=True,
    )
    np.testing.assert_allclose(answered(streamed), in_memory(source, alone), atol=2e-8)


@pytest.mark.slow
def test_settings_that_are_chosen_give_the_answers_of_the_same_settings_given(tmp_path):
    source = stored(tmp_path, with_land())
    streamed = streamed_from(source, Settings())
    model = streamed.query.model
    assert "settings chosen on 6 slices along time" in streamed.note
    kernels = [level.kernel for level in model.levels if level.name != "time"]
    found = answered(streamed)
    fibres = with_land()
    error = np.nanstd(found - answered(streamed_from(source, GIVEN)))
    assert error < 0.3 * float(fibres.std())
    assert {kernel.period for kernel in kernels} == {None, 360.0}


def test_cells_that_are_missing_at_some_times_only_are_refused_with_their_place(tmp_path):
    data = with_land()
    data[4, 9, 3] = np.nan
    streamed = streamed_from(stored(tmp_path, data), GIVEN)
    with pytest.raises(InputError, match=r"some coordinates of time only.*time 4.*lon 60.*fill"):
        answered(streamed)


def test_cells_of_land_that_have_data_at_some_times_are_refused(tmp_path):
    data = with_land()
    data[0, 4, 5] = 1.0
    streamed = streamed_from(stored(tmp_path, data), GIVEN)
    with pytest.raises(InputError, match="at some coordinates of time only"):
        answered(streamed)


def test_values_beyond_the_bounds_are_refused(tmp_path):
    data = with_land()
    settings = Settings(**{**GIVEN.given, "bounds": (-5.0, 5.0)})
    clipped = answered(streamed_from(stored(tmp_path, data), settings))
    assert np.nanmax(clipped) <= 5.0
    data[1, 9, 3] = 7.0
    with pytest.raises(InputError, match="Give bounds that hold"):
        answered(streamed_from(stored(tmp_path, data, name="beyond.nc"), settings))


@pytest.mark.parametrize(
    ("at", "std", "match"),
    [
        ({**MAP, "time": [1.5]}, False, "at the coordinates of 'time'"),
    ],
)
def test_what_takes_the_whole_grid_is_refused(tmp_path, at, std, match):
    with pytest.raises(SettingError, match=match):
        streamed_from(stored(tmp_path, with_land()), GIVEN, at, std=std)


def asked_of(source, settings, question, std=False):
    def ask(model):
        return query_of(model, MAP, **question)

    return stream_regrid(
        source, settings, ask, [1, 2], std=std, limit=ROOM, workers=2, land=True
    ), query_of(fit_grid(source.grid(), ALONE), MAP, **question)


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        {"mean": "lat"},
        {"mean": ["lat", "lon"]},
        {"derivative": "lat"},
        {"derivative": ["lat", "lon"]},
        {"mean": "lat", "derivative": "lon"},
    ],
)
def test_means_and_derivatives_are_those_of_times_on_their_own(tmp_path, question):
    source = stored(tmp_path, with_land(), (1, 14, 18))
    streamed, held = asked_of(source, GIVEN, question)
    found, expected = answered(streamed), held.values()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.nanmax(np.abs(expected)))
    there = replace(streamed, answers=pickle.loads(pickle.dumps(streamed.answers)))
    np.testing.assert_array_equal(answered(there), found)


@pytest.mark.parametrize(
    "question", [{"derivative": "time"}, {"mean": "time", "derivative": "lat"}]
)
def test_questions_that_take_all_times_are_refused(tmp_path, question):
    with pytest.raises(SettingError, match="no means and no derivatives along 'time'"):
        asked_of(stored(tmp_path, with_land()), GIVEN, question, False)


@pytest.mark.parametrize("question", [{}, {"mean": ["lat", "lon"]}])
def test_answers_with_errors_are_sent_to_other_processes(tmp_path, question):
    source = stored(tmp_path, globe(2, 10, 12).where(globe(2, 10, 12).lon < 200), (1, 10, 12))
    streamed, _ = asked_of(source, GIVEN, question, True)
    there = replace(streamed, answers=pickle.loads(pickle.dumps(streamed.answers)))
    np.testing.assert_allclose(answered(there, which=1), answered(streamed, which=1), rtol=1e-6)


@pytest.mark.parametrize("inexact", [False, True])
def test_a_solve_that_does_not_end_is_refused_unless_it_is_accepted(tmp_path, inexact):
    settings = Settings(**GIVEN.given, accept_inexact=inexact)
    streamed = streamed_from(stored(tmp_path, with_land()), settings)
    land = replace(streamed.answers.land, tolerance=-1.0)
    hard = replace(streamed, answers=replace(streamed.answers, land=land))
    if inexact:
        np.testing.assert_allclose(answered(hard), answered(streamed), atol=1e-7)
    else:
        with pytest.raises(ConvergenceError, match="larger ridge"):
            answered(hard)


def test_answers_can_be_sent_to_other_processes(tmp_path):
    streamed = streamed_from(stored(tmp_path, with_land()), GIVEN)
    part = next(iter(streamed.plan.blocks))
    values = streamed.boxes.read_box(streamed.answers.box(part))
    sent = pickle.loads(pickle.dumps(streamed.answers))
    assert "_solver" not in sent.land.__dict__
    np.testing.assert_allclose(
        sent.answer(values, part)[0], streamed.answers.answer(values, part)[0], atol=1e-12
    )
    assert not sent.is_separable
    with pytest.raises(TypeError, match="along one axis alone"):
        sent.rows[1].apply(values, 1, slice(0, 2))
