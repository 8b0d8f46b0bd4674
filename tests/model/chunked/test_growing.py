"""Updates block by block."""

import numpy as np
import pytest
from stored_grids import stored, waves

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError
from dkrls_cli.model.chunked.growing import plan_blocks, update_in_blocks
from dkrls_cli.model.fit import fit
from dkrls_cli.model.tiling.planning import process_bytes
from dkrls_cli.model.updating.update import update_model

LEVELS = (
    Level("lat", Kernel("gaussian", 8.0), 1e-4),
    Level("lon", Kernel("gaussian", 12.0), 1e-4),
    Level("time", Kernel("gaussian", 0.4), 1e-4),
)


@pytest.mark.parametrize("compact", [True, False])
def test_blocks_one_after_the_other_are_one_update(compact, monkeypatch):
    monkeypatch.setattr("dkrls_cli.model.chunked.growing.process_bytes", lambda: 0)
    data = waves(90, noise=0.3)
    model = fit(data.isel(time=slice(0, 30)), levels=LEVELS, compact=compact)
    later = data.isel(time=slice(30, 90))
    source, told = stored(later, (4, 20, 24)), []
    limit = 2 * 8 * 60 * 480 + 13 * 40 * 480
    assert [part.stop - part.start for part in plan_blocks(model, source, limit)] == [
        12
    ] * 5 or compact
    done = update_in_blocks(model, source, limit, tell=told.append)
    ours, at_once = done.model, update_model(model, later)
    whole = at_once.model
    assert (done.added, done.empty, done.surprise.cells) == (60, 0, 60 * 480)
    assert done.surprise.rmse == pytest.approx(at_once.surprise.rmse, rel=1e-9)
    assert done.surprise.promised == pytest.approx(at_once.surprise.promised, rel=1e-9)
    assert source.read.calls > 2
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert ours.shape == whole.shape == (90, 20, 24)
    at = {"lat": [33.3], "time": data.time.values[[2, 60]] + np.timedelta64(20, "m")}
    np.testing.assert_allclose(ours.predict(**at), whole.predict(**at), rtol=1e-9)
    np.testing.assert_allclose(ours.predict(), whole.predict(), rtol=1e-9)
    assert ours.origin["slices_added"] == whole.origin["slices_added"] == 60
    few = update_in_blocks(model, source, limit, window=20).model
    np.testing.assert_allclose(few.predict(), model.update(later, window=20).predict(), rtol=1e-9)


def test_slices_without_coordinates_are_counted_on_in_all_blocks(monkeypatch):
    monkeypatch.setattr("dkrls_cli.model.chunked.growing.process_bytes", lambda: 0)
    data = waves(60).drop_vars("time")
    data[36:44] = np.nan  # a block and more without a value: the positions stay free
    levels = [*LEVELS[:2], Level("time", Kernel("gaussian", 2.0), 1e-4)]
    model, later = fit(data[:30], levels=levels), data[30:]
    limit = 2 * 8 * 30 * 480 + 6 * 40 * 480
    done = update_in_blocks(model, stored(later, (4, 20, 24)), limit)
    whole = update_model(model, later)
    assert done.model.axes[0].numbers.tolist() == [*range(36), *range(44, 60)]
    assert done.surprise.rmse == pytest.approx(whole.surprise.rmse, rel=1e-9)
    at = {"time": [33.5, 50.5], "lat": [33.3]}
    np.testing.assert_allclose(done.model.predict(**at), whole.model.predict(**at), rtol=1e-9)


def test_a_slice_or_a_model_beyond_memory_is_refused():
    data = waves(60)
    model = fit(data.isel(time=slice(0, 30)), levels=LEVELS)
    source = stored(data.isel(time=slice(30, 60)), (4, 20, 24))
    with pytest.raises(InputError, match=r"with 30 more slices takes about \d+ MB"):
        update_in_blocks(model, source, process_bytes() - 1e6)
    assert len(plan_blocks(model, source, np.inf)) == 1
    object.__setattr__(source, "read", None)
    with pytest.raises(InputError, match="only be read as a whole"):
        update_in_blocks(model, source)


def test_a_window_bounds_what_the_model_takes(monkeypatch):
    monkeypatch.setattr("dkrls_cli.model.chunked.growing.process_bytes", lambda: 0)
    data = waves(90)
    model = fit(data.isel(time=slice(0, 30)), levels=LEVELS)
    source = stored(data.isel(time=slice(30, 90)), (4, 20, 24))
    limit = 2 * 8 * 20 * 480 + 9 * 40 * 480
    with pytest.raises(InputError, match="with 60 more slices"):
        plan_blocks(model, source, limit)
    assert [part.stop - part.start for part in plan_blocks(model, source, limit, 20)][:2] == [8, 8]


def test_slices_without_a_value_are_counted_and_not_compared(monkeypatch):
    monkeypatch.setattr("dkrls_cli.model.chunked.growing.process_bytes", lambda: 0)
    data = waves(60)
    model = fit(data.isel(time=slice(0, 30)), levels=LEVELS)
    later = data.isel(time=slice(30, 60)).copy()
    later[4:8] = np.nan
    done = update_in_blocks(model, stored(later, (4, 20, 24)), 2 * 8 * 30 * 480 + 5 * 40 * 480)
    assert (done.added, done.empty, done.surprise.cells) == (26, 4, 26 * 480)
    whole = model.update(later)
    np.testing.assert_allclose(done.model.predict(), whole.predict(), rtol=1e-9)
    later[:] = np.nan
    with pytest.raises(InputError, match="All 14400 values are missing"):
        update_in_blocks(model, stored(later, (4, 20, 24)))
