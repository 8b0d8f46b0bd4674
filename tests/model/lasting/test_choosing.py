"""Settings of stored grids with land, and models that refer to such grids."""

from dataclasses import replace

import numpy as np
import pytest
from chunked_grids import globe, query_of

from dkrls_cli import load_model
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.chunked.reference import extend_reference, fit_by_reference, open_reference
from dkrls_cli.model.lasting.choosing import known_land, plan_land, survey_land
from dkrls_cli.model.lasting.land import find_land
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming.known import gather
from dkrls_cli.model.streaming.request import plan_stream, stream_regrid
from dkrls_cli.model.streaming.running import Threads

GIVEN = {"kernel": "matern32", "sigma": {"lat": 40.0, "lon": 50.0}, "ridge": 1e-3, "mean": 0.1}
MAP = {"lat": np.arange(-80.0, 81.0, 8.0), "lon": np.arange(0.0, 360.0, 10.0)}


def with_land(times=6, start=0.0):
    data = globe(times, 14, 18)
    data[:, 3:7, 4:9] = np.nan
    data[:, :2] = np.nan
    return data.assign_coords(time=data.time + start)


def stored(tmp_path, data, name="land.nc"):
    data.to_netcdf(tmp_path / name, encoding={"f": {"chunksizes": (1, *data.shape[1:])}})
    return open_source([str(tmp_path / name)])


def surveyed(source, limit=1e9, **settings):
    return survey_land(find_land(source), Settings(**settings), limit)


def test_settings_that_are_given_are_taken_and_nothing_is_chosen(tmp_path):
    found = surveyed(stored(tmp_path, with_land()), **GIVEN)
    kernels = {level.name: level.kernel for level in found.model.levels}
    assert (kernels["lat"].family, kernels["lat"].sigma, kernels["lon"].sigma) == (
        "matern32",
        40.0,
        50.0,
    )
    assert (found.model.joint_ridge, found.model.cascade.mean, found.note) == (1e-3, 0.1, "")
    assert found.tolerance == 1e-9
    assert found.model.shape == (6, 12, 18)
    assert found.model.coverage.axes[1].size == 14
    assert "2 of 14 coordinates have no observed cell" in str(found.model.origin)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, GIVEN])
def test_directions_are_refused_and_marks_are_warned_of(tmp_path, settings):
    data = with_land()
    turning = 180.0 + 120.0 * data
    turning.attrs = {"standard_name": "wind_from_direction", "units": "degree"}
    with pytest.raises(InputError, match="'f' holds directions"):
        fit_by_reference(stored(tmp_path, turning), Settings(**settings))
    marked = data.where(np.isnan(data) | (data.lat < 60.0), -9999.0)
    model = fit_by_reference(stored(tmp_path, marked, "marked.nc"), Settings(**settings))
    (note,) = model.origin["notes"]
    assert "cells of 'f' hold -9999" in note


def test_the_mean_is_that_of_the_sea(tmp_path):
    data = with_land() + 7.0
    found = surveyed(stored(tmp_path, data.rename("f")), **{**GIVEN, "mean": "auto"})
    assert abs(found.model.cascade.mean - float(data.mean())) < 0.2


def test_what_is_open_is_chosen_beside_what_is_given(tmp_path):
    found = surveyed(stored(tmp_path, with_land()), sigma={"lat": 33.0})
    kernels = {level.name: level.kernel for level in found.model.levels}
    assert kernels["lat"].sigma == 33.0
    assert found.model.joint_ridge > 0
    assert "6 slices along time" in found.note


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"group": "lat,lon"}, "group"),
        ({"poles": "scalar"}, "poles"),
        ({"cell_means": True}, "means over cells"),
        ({"ridge": {"lat": 1e-2}}, "joint ridge is one number"),
        ({"noise": "level"}, "one joint ridge only"),
        ({"robust": True}, "robust"),
    ],
)
def test_settings_for_the_whole_grid_are_refused(tmp_path, settings, match):
    with pytest.raises(SettingError, match=match):
        surveyed(stored(tmp_path, with_land()), **settings)


def test_missing_cells_may_be_refused(tmp_path):
    with pytest.raises(InputError, match="missing"):
        surveyed(stored(tmp_path, with_land()), missing="error")


def test_gaps_beside_land_are_refused_before_anything_is_chosen(tmp_path):
    data = with_land()
    data[1::2, 9, 3] = np.nan
    with pytest.raises(InputError, match="at some coordinates of time only"):
        surveyed(stored(tmp_path, data))


def test_slices_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(InputError, match="Completing one slice"):
        surveyed(stored(tmp_path, with_land()), limit=1e6, **GIVEN)


def test_a_model_refers_to_a_grid_with_land_and_answers_as_regrid_does(tmp_path):
    source = stored(tmp_path, with_land())
    settings = Settings(**GIVEN)
    model = fit_by_reference(source, settings)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert (again.joint_ridge, again.storage) == (1e-3, "reference")
    data = open_reference(again)
    kept = tuple(axis.distinct for axis in data.axes)
    found = gather(plan_stream(data, kept, query_of(again, MAP), False, 1e9, 1), Threads(1))
    streamed = stream_regrid(
        source,
        settings,
        lambda m: query_of(m, MAP),
        [1, 2],
        std=False,
        limit=1e9,
        workers=1,
        land=True,
    )
    expected = gather(streamed, Threads(1)).values()
    assert 0.05 < np.isnan(expected).mean() < 0.6
    np.testing.assert_allclose(found.values(), expected, atol=1e-9)
    own = known_land(again, data)
    np.testing.assert_array_equal(own.missing, find_land(source).missing[:, 2:])


def test_a_model_of_a_grid_with_land_grows_if_the_land_is_the_same(tmp_path):
    model = fit_by_reference(stored(tmp_path, with_land()), Settings(**GIVEN))
    stored(tmp_path, with_land(4, 6.0), "more.nc")
    grown = extend_reference(model, [str(tmp_path / "more.nc")])
    assert (grown.shape, grown.joint_ridge) == ((10, 12, 18), 1e-3)
    assert grown.levels == model.levels
    assert grown.cascade.mean == model.cascade.mean
    both = open_reference(grown)
    kept = tuple(axis.distinct for axis in both.axes)
    found = gather(plan_stream(both, kept, query_of(grown, MAP), False, 1e9, 1), Threads(1))
    np.testing.assert_array_equal(np.isnan(found.values()[0]), np.isnan(found.values()[9]))


def test_a_model_does_not_grow_by_other_land(tmp_path):
    model = fit_by_reference(stored(tmp_path, with_land(3)), Settings(**GIVEN))
    other = with_land(5, 3.0)
    other[:, 10] = np.nan
    stored(tmp_path, other, "other.nc")
    with pytest.raises(InputError, match="Other cells"):
        extend_reference(model, [str(tmp_path / "other.nc")])


@pytest.mark.parametrize("bars", [False, True])
@pytest.mark.parametrize("settings", [GIVEN, {"mean": 0.1}, {**GIVEN, "mean": "auto"}])
def test_a_plan_has_the_grid_of_the_survey(tmp_path, monkeypatch, settings, bars):
    source = stored(tmp_path, with_land(40))
    land = find_land(source)
    planned, choosing = plan_land(land, Settings(**settings), 1e9, bars=bars)
    seen, read = set(), source.read

    def counted(indices):
        seen.update(indices[0].tolist())
        return read(indices)

    watched = replace(land, source=replace(source, read=counted))
    found = survey_land(watched, Settings(**settings), 1e9, bars=bars)
    assert planned.model.shape == found.model.shape
    assert planned.slices == found.slices
    np.testing.assert_array_equal(planned.missing, found.missing)
    for ours, theirs in zip(planned.kept, found.kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert found.choosing.chunks_read == choosing.chunks_read
    assert abs(choosing.chunks_read - len(seen)) <= 1
    assert choosing.bytes_read == choosing.chunks_read * 14 * 18 * 8
    assert choosing.memory > choosing.process


def test_a_plan_refuses_what_the_survey_refuses(tmp_path):
    land = find_land(stored(tmp_path, with_land()))
    for settings, limit, error in (
        ({**GIVEN, "missing": "error"}, 1e9, "missing"),
        (GIVEN, 1e6, "Completing one slice"),
    ):
        for use in (plan_land, survey_land):
            with pytest.raises(InputError, match=error):
                use(land, Settings(**settings), limit)
