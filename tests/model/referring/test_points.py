"""Points of models that refer to their data are answered as those of a model in memory."""

from dataclasses import replace

import numpy as np
import pytest
from chunked_grids import globe
from chunked_grids import referring_pair as pair

from dkrls_cli import load_model
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.asking.queries import Manner, point_query
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.referring import points, tiles
from dkrls_cli.model.referring.grids import refer
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming.running import Threads


def scattered(count=300, seed=0):
    """Points, some of which are at coordinates of the data."""
    rng = np.random.default_rng(seed)
    data = globe(40, 19, 36)
    time, lat, lon = (rng.uniform(low, high, count) for low, high in ((0, 39), (-88, 88), (0, 360)))
    time[::3] = rng.integers(0, 40, count)[::3]
    lat[::6], lon[::6] = data.lat.values[3], data.lon.values[5]
    lon[-4:] = np.array([359.9, 0.0, 0.1, 180.0])[-count:]
    lat[-4:] = 87.9
    return {"time": time, "lat": lat, "lon": lon}


@pytest.mark.parametrize("poles", ["none", "auto"])
@pytest.mark.parametrize("asked", [{}, {"derivative": "lat"}, {"smooth": True}])
def test_values_and_errors_are_those_in_memory(tmp_path, poles, asked):
    referring, held = pair(tmp_path, poles=poles)
    at = scattered()
    found, expected = (model.predict_points(**at, **asked) for model in (referring, held))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    errors = [model.std_points(**at, **asked) for model in (referring, held)]
    np.testing.assert_allclose(*errors, rtol=0, atol=1e-12)
    assert found.attrs == expected.attrs


@pytest.mark.slow
@pytest.mark.parametrize("poles", ["none", "auto"])
@pytest.mark.parametrize("own", [("lat", "lon"), ("time",), ("time", "lon")])
@pytest.mark.parametrize("at", [{}, {"time": [1.5, 3.2, 4.0]}, {"time": [30.0, 2.0, 30.0]}])
def test_stations_are_those_in_memory(tmp_path, own, at, poles):
    referring, held = pair(tmp_path, poles=poles)
    stations = {name: scattered(12)[name] for name in own}
    at = {name: value for name, value in at.items() if name not in own}
    found, expected = (model.predict_stations(stations, **at) for model in (referring, held))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_saved_model_answers_from_its_file_and_draws_the_same_members(tmp_path):
    referring, held = pair(tmp_path)
    referring.save(tmp_path / "model.npz")
    at = scattered(40)
    members = load_model(tmp_path / "model.npz").ensemble_points(3, seed=5, **at)
    expected = held.ensemble_points(3, seed=5, **at)
    np.testing.assert_allclose(members, expected, rtol=0, atol=1e-12)


def test_bounds_hold_for_answers_errors_and_members(tmp_path):
    data = globe(40, 19, 36).clip(0.0, None)
    referring, held = pair(tmp_path, data, bounds=(0.0, None))
    at = scattered(60)
    for ask in ("predict_points", "std_points"):
        found, expected = (getattr(model, ask)(**at) for model in (referring, held))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    members = referring.ensemble_points(4, **at)
    assert float(members.min()) == 0.0


def test_single_precision_is_answered_as_precisely_as_it_is_stored(tmp_path):
    referring, held = pair(tmp_path, dtype="f4")
    at = scattered()
    found, expected = (model.predict_points(**at) for model in (referring, held))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_long_levels_and_their_derivatives(tmp_path):
    data = globe(1100, 5, 8)
    referring, held = pair(
        tmp_path, data, chunks=(300, 5, 8), sigma={"time": 3.0, "lat": 40.0, "lon": 60.0}
    )
    assert held.cascade.is_long(0)
    rng = np.random.default_rng(4)
    at = {"time": rng.uniform(0, 1099, 30), "lat": np.full(30, 3.0), "lon": rng.uniform(0, 360, 30)}
    at["time"][:5] = [0.0, 1.0, 555.0, 1099.0, 0.0]
    for asked in ({}, {"derivative": "time"}):
        found, expected = (model.predict_points(**at, **asked) for model in (referring, held))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    stations = {"lat": [3.0, 5.0], "lon": [7.0, 300.0]}
    found, expected = (m.predict_stations(stations, time=at["time"]) for m in (referring, held))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


class Counted:
    """Runs tasks one after the other, and remembers their answers."""

    workers = 1
    is_remote = False

    def __init__(self):
        self.runs = []

    def run(self, task, items):
        self.runs.append(len(items))
        for place, item in enumerate(items):
            yield place, task(item)


def asked_of(model, at):
    return point_query(model, None, at, Manner(), (), False).query


def test_points_that_do_not_fit_together_take_several_passes(tmp_path, monkeypatch):
    referring, held = pair(tmp_path)
    at, counted = scattered(), Counted()
    monkeypatch.setattr(points, "process_bytes", lambda: 0)
    query = refer(asked_of(referring, at), 100_000.0, counted)
    np.testing.assert_allclose(query.values(), held.predict_points(**at), rtol=0, atol=1e-12)
    assert len(counted.runs) > 2
    query.values()
    query.std()
    assert len(counted.runs) < 30  # read once, whatever is asked


def test_one_point_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    referring, _ = pair(tmp_path)
    monkeypatch.setattr(points, "process_bytes", lambda: 0)
    query = refer(asked_of(referring, scattered(3)), 300.0, Threads(1))
    with pytest.raises(InputError, match="Allow more memory"):
        query.values()


def test_few_points_read_little_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "_LEAST", 1)
    referring, _ = pair(tmp_path, chunks=(1, 19, 36))
    counted = Counted()
    at = {"time": [3.0, 17.0], "lat": [1.0, 2.0], "lon": [3.0, 4.0]}
    refer(asked_of(referring, at), 1e9, counted).values()
    assert counted.runs == [2]


def test_no_points_have_no_answers(tmp_path):
    referring, _ = pair(tmp_path)
    nothing = {"time": [], "lat": [], "lon": []}
    query = refer(asked_of(referring, nothing), 1e9, Threads(1))
    (block,) = query.blocks(10, std=True)
    assert block[1].shape == (0,)


def test_blocks_are_parts_of_the_answers(tmp_path):
    referring, _ = pair(tmp_path)
    at = scattered(10)
    query = refer(asked_of(referring, at), 1e9, Threads(1))
    found = list(query.blocks(4, std=True))
    assert len(found) > 2
    for part, values, errors in found:
        np.testing.assert_array_equal(values, query.values()[part])
        np.testing.assert_array_equal(errors, query.std()[part])
    assert sum(values.size for _, values, _ in found) == 10
    assert [errors for *_, errors in query.blocks(10)] == [None]


def test_missing_cells_are_named(tmp_path):
    data = globe(40, 19, 36)
    referring, _ = pair(tmp_path)
    data[20, 3, 4] = np.nan
    path = tmp_path / "other.nc"
    data.to_netcdf(path, encoding={"f": {"chunksizes": (7, 10, 9)}})
    other = replace(
        referring, reference=replace(referring.reference.of("f", (str(path),), contents=False))
    )
    near = {"time": [20.4], "lat": [data.lat.values[3]], "lon": [41.0]}
    with pytest.raises(InputError, match="missing cells, the first at time 20"):
        other.predict_points(**near)


def test_land_has_no_errors_in_older_files(tmp_path):
    data = globe(6, 14, 18)
    data[:, 3:7, 4:9] = np.nan
    path = tmp_path / "land.nc"
    data.to_netcdf(path)
    settings = Settings(kernel="matern32", sigma=40.0, ridge=1e-3, group="none", poles="none")
    model = fit_by_reference(open_source([str(path)]), settings)
    at = {"time": [0.0, 3.0], "lat": [20.0, 30.0], "lon": [5.0, 7.0]}
    assert np.isfinite(model.predict_points(**at)).all()
    assert np.isfinite(model.ensemble_points(2, **at)).all()
    older = replace(model, known_bars=JointBars(np.nan, np.nan))  # of a file without error bars
    assert np.isfinite(older.predict_points(**at)).all()
    for ask in (older.std_points, lambda **at: older.ensemble_points(2, **at)):
        with pytest.raises(SettingError, match="not known"):
            ask(**at)
    with pytest.raises(SettingError, match="not known"):
        older.std(lat=[20.0], lon=[5.0])
