"""Grids beyond memory whose missing cells differ from time to time."""

from dataclasses import replace

import numpy as np
import pytest
from chunked_grids import globe, query_of

from dkrls_cli import load_model
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.answering.answers import Rules, ask
from dkrls_cli.model.chunked.reference import extend_reference, fit_by_reference
from dkrls_cli.model.filing.references import Reference
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.lasting import choosing
from dkrls_cli.model.lasting.choosing import survey_land
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


def streamed_from(source, settings, *, std=False, limit=1e9, at=MAP, mask=True):
    return stream_regrid(
        source,
        settings,
        lambda model: query_of(model, at) if mask else everywhere(model, at),
        [1, 2],
        std=std,
        limit=limit,
        workers=2,
        land=True,
        scattered=True,
    )


def everywhere(model, at):
    """What a model is asked at coordinates, on land as well."""
    return ask(model, model.axes_at(at), Rules("extrapolate", "none", False, None), list(at))


def answered(streamed, which=0):
    """Return all answers of a stream; of `which` 1, their standard errors."""
    values = np.full(streamed.query.shape, 9e9)

    def sink(part, found):
        values[part] = found[which]

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


def few_clouds():
    """Return a globe with land, clouds at two of five times, and a time without data."""
    data = globe(5, 10, 12)
    rng = np.random.default_rng(4)
    for time in (1, 2):
        data.values[time][rng.random((10, 12)) < 0.2] = np.nan
    data[:, 3:6, 4:7] = np.nan
    data[4] = np.nan
    return data


def test_standard_errors_of_a_time_are_those_of_a_file_of_that_time(tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "_SLICES", (1, 1))
    data = few_clouds()
    streamed = streamed_from(stored(tmp_path, data), GIVEN, std=True, mask=False)
    errors = answered(streamed, 1)
    alone = fit_grid(as_grid(data.isel(time=[2])), replace(GIVEN, poles="none"))  # in the middle
    expected = everywhere(alone, MAP).std()
    np.testing.assert_allclose(errors[2], expected[0], rtol=1e-7, atol=1e-9)
    assert np.abs(errors[1] - errors[2]).max() > 0.01
    assert np.isnan(errors[4]).all()


def test_a_model_knows_the_errors_of_every_time_also_from_its_file(tmp_path):
    source = stored(tmp_path, few_clouds())
    model = fit_by_reference(source, GIVEN)
    assert "on its own, and 1 without any data" in model.origin["settings_chosen_on"]
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    bars = again.bars
    assert isinstance(bars, LandBars)
    assert (bars.most, bars.one.usual) == (model.bars.most, model.bars.one.usual)
    at = {"lat": source.axes[1].numbers, "lon": source.axes[2].numbers}
    grid = again.std(mask="none", time=[1.0, 2.0, 3.0], **at)
    gone = few_clouds().isnull().sel(time=[1.0, 2.0, 3.0]).values
    np.testing.assert_array_equal(grid.values > 0, gone)
    streamed = streamed_from(source, GIVEN, std=True, at=at, mask=False)
    np.testing.assert_allclose(grid, answered(streamed, 1)[1:4])
    places = {"lat": [at["lat"][4], 20.0, 20.0], "lon": [at["lon"][5], 33.0, 33.0]}
    points = again.std_points(mask="none", time=[3.0, 1.0, 2.0], **places)
    inner = again.std(mask="none", time=[1.0, 2.0], lat=[20.0], lon=[33.0])
    np.testing.assert_allclose(points, [grid[2, 4, 5], *inner[:, 0, 0]], rtol=1e-9)
    stations = again.std_stations({"lat": [20.0], "lon": [33.0]}, mask="none", time=[2.0, 1.0])
    np.testing.assert_allclose(stations, inner[::-1, 0, 0].values[None], rtol=1e-9)
    with pytest.raises(SettingError, match="every time misses other cells"):
        bars.variance_blocks(again.cascade, again.cascade.coordinates)


def test_means_have_the_errors_of_their_time(tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "_SLICES", (1, 1))
    data = few_clouds()
    source = stored(tmp_path, data)
    found = survey_land(scan_land(source), replace(GIVEN, poles="none"), 1e9, bars=True)
    model = replace(found.model, reference=Reference.of("f", source.paths))
    alone = fit_grid(as_grid(data.isel(time=[2])), replace(GIVEN, poles="none"))
    at = {"lat": np.arange(-60.0, 61.0, 24.0), "lon": np.arange(0.0, 350.0, 55.0)}
    expected, errors = (one.std(mean=True, mask="none", **at) for one in (alone, model))
    np.testing.assert_allclose(errors[2], expected[0], rtol=5e-3)  # both are from draws
    assert float(np.abs(errors[1] / errors[2] - 1).max()) > 0.05
    region = "lat=-85:-45,lon=100:340"  # without cells that are missing at that time
    expected, mine = (one.mean_over(region, std=True) for one in (alone, model))
    np.testing.assert_allclose(mine.f[2], expected.f[0], rtol=1e-6)
    with pytest.raises(SettingError, match="every time misses other cells"):
        model.ensemble(2, **at)


@pytest.mark.parametrize("land", [True, False])
def test_a_model_grows_by_times_with_other_missing_cells(tmp_path, land):
    data = few_clouds().fillna(0.3).where(few_clouds().notnull() | (not land))
    data.values[1, 7, 7] = np.nan
    later = data.isel(time=slice(1, 3)).assign_coords(time=[7.0, 8.0])
    later.values[:, 9, 9] = np.nan
    first = fit_by_reference(stored(tmp_path, data, "a.nc"), GIVEN)
    stored(tmp_path, later, "b.nc")
    grown = extend_reference(first, [str(tmp_path / "b.nc")])
    whole = fit_by_reference(open_source([str(tmp_path / f"{n}.nc") for n in "ab"]), GIVEN)
    assert grown.bars.most == whole.bars.most
    at = {"lat": [20.0, 33.0], "lon": [33.0, 200.0], "time": [1.0, 7.0]}
    np.testing.assert_allclose(grown.predict(**at), whole.predict(**at), atol=1e-9)
    assert np.isfinite(grown.std(**at)).all()


def test_a_time_takes_memory_for_its_own_missing_cells(tmp_path):
    streamed = streamed_from(stored(tmp_path, clouded()), GIVEN)
    land = streamed.answers.land
    assert land.working_bytes(0) > replace(land, most=0).working_bytes(0) == 0
    with pytest.raises(InputError, match="MB are allowed"):
        streamed_from(stored(tmp_path, clouded(), "again.nc"), GIVEN, limit=1e6)
