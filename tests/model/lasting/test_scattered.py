"""Grids beyond memory whose missing cells differ from time to time."""

from dataclasses import replace

import numpy as np
import pytest
from chunked_grids import globe, query_of

from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.lasting.land import scan_land
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming.request import stream_regrid
from dkrls_cli.model.streaming.running import Threads
from dkrls_cli.model.streaming.stages import answer_in_blocks

MAP = {"lat": np.arange(-80.0, 81.0, 8.0), "lon": np.arange(0.0, 360.0, 10.0)}
GIVEN = Settings(
    kernel="matern32", sigma={"lat": 40.0, "lon": 50.0}, ridge=1e-3, mean=0.1, group="none"
)
ALONE = replace(GIVEN, sigma={"time": 1e-3, "lat": 40.0, "lon": 50.0})


def clouded(*, land=True, lost=False):
    """Return a globe with land and, at most times, clouds."""
    data = globe(6, 14, 18)
    rng = np.random.default_rng(4)
    for time in (0, 1, 3, 4):
        data.values[time][rng.random((14, 18)) < 0.2] = np.nan
        data[time, 2 * time : 2 * time + 3, 5:11] = np.nan
    if land:
        data[:, 3:7, 4:9] = np.nan
        data[:, :2] = np.nan  # two latitudes without any data
    if lost:
        data[4] = np.nan
    return data


def stored(tmp_path, data, name="clouds.nc"):
    path = tmp_path / name
    data.to_netcdf(path, encoding={"f": {"chunksizes": (1, *data.shape[1:])}})
    return open_source([str(path)])


def streamed_from(source, settings, *, std=False, limit=1e9):
    return stream_regrid(
        source,
        settings,
        lambda model: query_of(model, MAP),
        [1, 2],
        std=std,
        limit=limit,
        workers=2,
        land=True,
        scattered=True,
    )


def answered(streamed):
    values = np.full(streamed.query.shape, 9e9)

    def sink(part, found):
        values[part] = found[0]

    answer_in_blocks(streamed.boxes, streamed.answers, streamed.plan, Threads(2), sink)
    return values


@pytest.mark.parametrize("land", [True, False])
def test_answers_are_those_of_a_grid_in_memory_whose_times_are_on_their_own(tmp_path, land):
    source = stored(tmp_path, clouded(land=land))
    expected = query_of(fit_grid(source.grid(), ALONE), MAP).values()
    found = answered(streamed_from(source, GIVEN))
    assert np.isnan(expected).any() == land
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, atol=2e-8)


@pytest.mark.parametrize("place", [0, 2, 3])
def test_answers_of_a_time_are_those_of_the_dense_solve_over_its_cells(tmp_path, place):
    from dkrls_cli.cascade.kernels import Kernel, gram

    data = clouded()
    found = answered(streamed_from(stored(tmp_path, data), GIVEN))[place]
    kernels = Kernel("matern32", 40.0), Kernel("matern32", 50.0, 360.0)
    seen = data[place].notnull().values
    grid = np.meshgrid(data.lat, data.lon, indexing="ij")
    asked = np.meshgrid(MAP["lat"], MAP["lon"], indexing="ij")
    own = [part[seen] for part in grid]
    among = np.prod([gram(k, c, c) for k, c in zip(kernels, own, strict=True)], axis=0)
    toward = np.prod(
        [gram(k, q.ravel(), c) for k, q, c in zip(kernels, asked, own, strict=True)], axis=0
    )
    weights = np.linalg.solve(among + 1e-3 * np.eye(len(among)), data[place].values[seen] - 0.1)
    truth = 0.1 + (toward @ weights).reshape(found.shape)
    at_cells = np.isin(MAP["lat"], data.lat)[:, None] & np.isin(MAP["lon"], data.lon)
    compared = ~np.isnan(found) & ~at_cells
    assert compared.sum() > 300
    np.testing.assert_allclose(found[compared], truth[compared], atol=2e-8)


def test_times_without_data_have_no_answers(tmp_path):
    streamed = streamed_from(stored(tmp_path, clouded(lost=True)), GIVEN)
    assert "on its own, and 1 without any data have no answers" in streamed.note
    notes = streamed.query.model.origin["dropped_coordinates"]
    assert notes == [
        "lat: 2 of 14 coordinates have no observed cell and are left out, -88.0, -74.46153846153847"
    ]
    found = answered(streamed)
    others = answered(streamed_from(stored(tmp_path, clouded(), "whole.nc"), GIVEN))
    assert np.isnan(found[4]).all()
    rest = [0, 1, 2, 3, 5]
    np.testing.assert_allclose(found[rest], others[rest], atol=1e-12)


def test_settings_are_chosen_on_times_with_other_missing_cells(tmp_path):
    data = clouded(lost=True)
    streamed = streamed_from(stored(tmp_path, data), Settings(group="none", bounds="none"))
    assert "settings chosen on 5 slices along time" in streamed.note
    found = answered(streamed)
    lat, lon = np.radians(MAP["lat"])[:, None], np.radians(MAP["lon"])
    truth = np.sin(np.arange(6) / 3)[:, None, None] * np.cos(lat) * np.cos(lon)
    known = ~np.isnan(found)
    assert known.sum() > 2000
    assert np.sqrt(((found - truth)[known] ** 2).mean()) < 0.06  # the noise of a cell is 0.1


def test_land_is_what_is_missing_at_all_times(tmp_path):
    data = clouded(lost=True)
    land = scan_land(stored(tmp_path, data))
    assert land is not None
    np.testing.assert_array_equal(land.missing[0], data.isnull().all("time").values)
    counts = data.isnull().sum(["lat", "lon"]).values
    assert land.most == sorted(counts)[-2] < counts[4] == data[4].size
    assert [own.tolist() for own in land.empty] == [[4], [0, 1], []]


def test_gaps_that_come_and_go_have_no_standard_errors(tmp_path):
    with pytest.raises(InputError, match="missing at some coordinates of time only"):
        streamed_from(stored(tmp_path, clouded()), GIVEN, std=True)


def test_a_time_takes_memory_for_its_own_missing_cells(tmp_path):
    streamed = streamed_from(stored(tmp_path, clouded()), GIVEN)
    land = streamed.answers.land
    assert land.working_bytes(0) > replace(land, most=0).working_bytes(0) == 0
    with pytest.raises(InputError, match="MB are allowed"):
        streamed_from(stored(tmp_path, clouded(), "again.nc"), GIVEN, limit=1e6)
