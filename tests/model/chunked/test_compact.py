"""Compact models made part by part, beside those of fits in memory."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from stored_grids import globe, stored, waves
from threadpoolctl import threadpool_info

from dkrls_cli.cascade.factors.levels import make_factors
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_file
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.grid.style import Packing, Style
from dkrls_cli.model.chunked import compact, reduction
from dkrls_cli.model.chunked.compact import fit_compact, plan_compact, plan_given, run_here
from dkrls_cli.model.chunked.ground import prepare
from dkrls_cli.model.chunked.survey import survey
from dkrls_cli.model.fit import fit, fit_grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.planning import process_bytes

LEVELS = (
    Level("lat", Kernel("gaussian", 8.0), 1e-4),
    Level("lon", Kernel("gaussian", 12.0), 1e-4),
    Level("time", Kernel("gaussian", 0.4), 1e-4),
)
RING = (
    Level("lat", Kernel("gaussian", 40.0), 1e-4),
    Level("lon", Kernel("gaussian", 40.0, 360.0), 1e-4),
    Level("time", Kernel("matern12", 3.0), 1e-4),
)


@pytest.fixture(autouse=True)
def _many_pieces(monkeypatch):
    monkeypatch.setattr(reduction, "_PIECE", 2000)


def agree(ours, whole, **at):
    """Check that two models are the same."""
    assert ours.cascade.core.shape == whole.cascade.core.shape
    assert ours.dropped == pytest.approx(whole.dropped, abs=1e-10)
    assert ours.cascade.mean == pytest.approx(whole.cascade.mean, rel=1e-12)
    size = float(np.abs(whole.cascade.predict()).max())
    for asked in ({}, at):
        error = np.abs(ours.predict(**asked) - whole.predict(**asked)).max()
        assert error < 1e-10 * size
        spread = whole.std(**asked)
        np.testing.assert_allclose(ours.std(**asked), spread, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(ours.errors, whole.errors, rtol=1e-8)


@pytest.mark.parametrize("chunks", [(7, 5, 8), (60, 3, 3), (1, 20, 24), None])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_compact_fit_part_by_part_is_the_one_in_memory(chunks, dtype):
    data = waves(noise=0.3, dtype=dtype)
    whole = fit(data, levels=LEVELS, compact=True)
    ours = fit_compact(stored(data, chunks), Settings(levels=LEVELS, compact=True))
    assert whole.dropped > 1e-5  # something is left out
    agree(
        ours, whole, lat=[21.3, 44.0], lon=[3.3], time=data.time.values[:2] + np.timedelta64(9, "m")
    )


@pytest.mark.parametrize("poles", ["scalar", "vector", "none"])
@pytest.mark.parametrize("nx", [36, 35])  # an odd ring has no longitude half a turn away
@pytest.mark.parametrize("flat", [False, True])
def test_rows_across_the_poles_are_part_of_the_sums(poles, nx, flat):
    data = globe(14, 21, nx, noise=0.2)
    levels = list(RING)
    if flat:
        data, levels = data.isel(time=0, drop=True), levels[:2]
    chunks = (5, 8, 9)[-data.ndim :]
    whole = fit(data, levels=levels, poles=poles, compact=True)
    ours = fit_compact(stored(data, chunks), Settings(levels=levels, poles=poles))
    if nx % 2 and poles != "none":  # squares of a ring that is asked about are estimated
        assert ours.dropped == pytest.approx(whole.dropped, abs=0.01)
        ours = replace(ours, cascade=replace(ours.cascade, dropped=whole.dropped))
    agree(ours, whole, lat=[-89.5, 3.0], lon=[1.0, 200.0])
    assert ours.across_poles == poles


def test_packed_integers_and_files_of_netcdf(tmp_path):
    data = waves(40, 16, 18, noise=0.3)
    encoding = {
        "f": {
            "dtype": "int16",
            "scale_factor": 0.001,
            "add_offset": 10.0,
            "chunksizes": (9, 8, 7),
            "_FillValue": -32768,
        }
    }
    data.to_netcdf(tmp_path / "p.nc", encoding=encoding)
    settings = Settings(levels=LEVELS)
    source = open_file(str(tmp_path / "p.nc"))
    ground = prepare(source, settings)
    assert ground.stored.itemsize == 2
    whole = fit_grid(source.grid(), Settings(levels=LEVELS, compact=True))
    agree(fit_compact(source, settings), whole, lat=[33.3])


def test_a_mean_that_is_given_and_storage_in_single_precision():
    data = waves(noise=0.3)
    for mean in (0.0, 4.0):
        whole = fit(data, levels=LEVELS, compact=True, mean=mean)
        agree(
            fit_compact(stored(data, (9, 9, 9)), Settings(levels=LEVELS, mean=mean)),
            whole,
            lat=[33.3],
        )
    single = fit_compact(stored(data, (9, 9, 9)), Settings(levels=LEVELS, dtype="float32"))
    assert single.storage == "float32"


def test_settings_are_chosen_if_they_are_not_given():
    data = waves(noise=0.3)
    source = stored(data, (7, 20, 24))
    model = fit_compact(source, Settings())
    chosen = survey(source, Settings()).model
    assert model.levels == chosen.levels
    agree(model, fit(data, levels=list(model.levels), compact=True), lat=[33.3])
    assert model.shape == data.shape


def test_levels_that_keep_all_directions_stay_in_samples():
    levels = (LEVELS[0], Level("lon", Kernel("matern12", 3.0), 1e-3), LEVELS[2])
    data = waves(noise=0.3)
    whole = fit(data, levels=levels, compact=True)
    assert [frame is None for frame in whole.cascade.frames] == [False, False, True]
    agree(fit_compact(stored(data, (7, 5, 8)), Settings(levels=levels)), whole, lon=[2.0])


@pytest.mark.parametrize("workers", [1, 3])
def test_slabs_are_added_in_their_order(workers):
    source = stored(waves(noise=0.3), (7, 5, 8))
    found = survey(source, Settings(levels=LEVELS), bars=False)
    plan = plan_compact(prepare(source, Settings(levels=LEVELS)), found)
    parts = list(run_here(source.read, plan.reduction, plan.tasks(), workers))
    assert [part.cells for part in parts] == [
        sum(math.prod(p.stop - p.start for p in piece) for piece in slab) for slab in plan.tasks()
    ]
    assert len(parts) > 2


def test_a_missing_cell_stops_the_pass_where_it_is():
    data = waves(60, noise=0.3)
    data[3, 2, 1] = np.nan
    source = stored(data, (1, 20, 24))
    told = []
    with pytest.raises(InputError, match=r"missing, at time=2000-01-01T03.*lat=23.*fill the gaps"):
        fit_compact(source, Settings(levels=LEVELS, mean=0.0), tell=told.append)
    assert source.read.cells < 0.5 * data.size
    assert max(told, default=0.0) < 0.5
    data[:, 2, 1] = np.nan
    with pytest.raises(InputError, match="in the part on which settings are chosen"):
        fit_compact(stored(data, (1, 20, 24)), Settings())


def test_progress_is_told_and_bounds_are_those_of_all_data():
    data = waves(noise=0.3).assign_attrs(valid_range=[-50.0, 50.0])
    told = []
    model = fit_compact(stored(data, (7, 5, 8)), Settings(levels=LEVELS), tell=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert (model.bounds.low, model.bounds.high) == (-50.0, 50.0)
    data[59, 19, 23] = 60.0  # in the last chunk only
    outside = fit_compact(stored(data, (7, 5, 8)), Settings(levels=LEVELS))
    assert outside.bounds is None
    assert "values reach from" in outside.origin["bounds"]
    style = Style(packing=Packing("int16", {"scale_factor": 0.1, "valid_max": 50.0}))
    packed = replace(as_grid(data.drop_attrs()), style=style)
    unclear = fit_compact(stored(packed, (7, 5, 8)), Settings(levels=LEVELS))
    assert unclear.bounds is None
    assert unclear.origin["bounds"].startswith("valid_max 50.0 of")
    with pytest.raises(SettingError, match="The bounds do not hold"):
        fit_compact(stored(data, (7, 5, 8)), Settings(levels=LEVELS, bounds=(-50, 50)))


def test_a_core_beyond_memory_is_refused_with_what_to_try():
    rough = [Level(dim, Kernel("matern12", 0.1), 0.1) for dim in ("lat", "time")]
    smooth = Level("lon", Kernel("gaussian", 30.0), 0.1)
    source = stored(waves(100, 100, 100), (10, 10, 10))
    settings = Settings(levels=[*rough, smooth], mean=0.0)
    with pytest.raises(InputError, match=r"100 x 100 x \d+ numbers") as refused:
        fit_compact(source, settings, process_bytes() + 1e6)
    text = str(refused.value)
    assert "keep 100 of 100 directions of time (matern12, sigma 0.1), 100 of 100" in text
    assert "of lon" not in text
    assert "a model that refers to it" in text
    assert source.read.calls == 0
    enough = 1.2e6 * float(re.search(r"about (\d+) MB", text)[1])
    assert plan_given(source, settings, enough).memory <= enough


def test_the_plan_keeps_to_its_limit():
    source = stored(waves(100, 60, 60), (10, 20, 20))
    settings = Settings(levels=LEVELS, mean=0.0)
    found, ground = survey(source, settings, bars=False), prepare(source, settings)
    limit = process_bytes() + 12e6
    plan = plan_compact(ground, found, limit)
    assert plan.memory <= limit
    assert plan.bytes_read == 4 * 100 * 60 * 60
    assert plan_compact(ground, found).workers >= plan.workers


def test_a_model_survives_its_file_and_grows(tmp_path):
    from dkrls_cli import load_model

    data = waves(60, noise=0.3)
    model = fit_compact(stored(data.isel(time=slice(0, 55)), (7, 5, 8)), Settings(levels=LEVELS))
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    np.testing.assert_allclose(again.predict(lat=[33.3]), model.predict(lat=[33.3]))
    assert again.update(data.isel(time=slice(55, 60))).shape == (60, 20, 24)


def test_every_cell_is_read_once_where_settings_are_given():
    data = waves(noise=0.3)
    source = stored(data, (7, 5, 8))
    fit_compact(source, Settings(levels=LEVELS))
    assert source.read.cells == data.size


@pytest.mark.slow
def test_a_long_level_stays_in_samples_and_its_error_bars_are_planned_for():
    data = waves(1100, 8, 9, noise=0.3)
    levels = (*LEVELS[:2], Level("time", Kernel("matern32", 0.4), 1e-3))
    source, settings = stored(data, (100, 8, 9)), Settings(levels=levels)
    whole = fit(data, levels=levels, compact=True)
    assert whole.cascade.frames[0] is None
    agree(fit_compact(source, settings), whole, lat=[33.3])
    plan = plan_compact(prepare(source, settings), survey(source, settings, bars=False))
    assert plan.memory > process_bytes() - 1e6 + 4 * plan.core_bytes


def test_a_store_of_zarr_is_read_as_well(tmp_path):
    pytest.importorskip("zarr")
    data = waves(40, 16, 18, noise=0.3)
    data.to_dataset().to_zarr(
        tmp_path / "p.zarr", encoding={"f": {"chunks": (9, 8, 7)}}, zarr_format=2
    )
    source = open_file(str(tmp_path / "p.zarr"))
    assert prepare(source, Settings()).stored.chunks == (9, 8, 7)
    whole = fit_grid(source.grid(), Settings(levels=LEVELS, compact=True))
    agree(fit_compact(source, Settings(levels=LEVELS)), whole, lat=[33.3])


def test_fewer_slabs_at_once_rather_than_chunks_that_are_read_twice(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr(reduction, "_PIECE", 2**21)
    source, settings = stored(waves(100, 50, 50), (50, 50, 50)), Settings(levels=LEVELS, mean=0.0)
    found, ground = survey(source, settings, bars=False), prepare(source, settings)
    assert plan_compact(ground, found).workers == 4
    plan = plan_compact(ground, found, found.plan.process + 20e6)
    assert plan.slabs.sides >= (50, 50, 50)
    assert 1 <= plan.workers < 4


def test_factors_of_levels_are_made_on_one_thread(monkeypatch):
    seen = []

    def counted(*given):
        seen.extend(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")
        return make_factors(*given)

    monkeypatch.setattr(compact, "make_factors", counted)
    fit_compact(stored(waves(noise=0.3), (7, 5, 8)), Settings(levels=LEVELS))
    assert set(seen) == {1}


def test_given_settings_are_planned_without_reading_and_others_are_not_planned():
    source = stored(waves(noise=0.3), (7, 5, 8))
    plan = plan_given(source, Settings(levels=LEVELS))
    assert plan is not None
    assert source.read.cells == 0
    found = survey(source, Settings(levels=LEVELS, mean=0.0), bars=False)
    known = plan_compact(prepare(source, Settings(levels=LEVELS)), found).memory
    assert plan.memory == pytest.approx(known, abs=2**16)  # the process may have grown by pages
    assert plan_given(source, Settings()) is None
