"""Chunked arrays are loaded if they fit, and refused in one line if not."""

import numpy as np
import pytest
import xarray as xr
from chunked_grids import fitted, globe

import dkrls_cli
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.model.chunked import loading
from dkrls_cli.model.chunked.loading import refuse_errors, refuse_large

dask_array = pytest.importorskip("dask.array")


def huge() -> xr.DataArray:
    """Eight terabytes, which fail if any of it is computed."""

    def fail(block: np.ndarray) -> np.ndarray:
        raise AssertionError("computed")

    zeros = dask_array.zeros((1_000_000, 1000, 1000), chunks=(100, 1000, 1000))
    lazy = zeros.map_blocks(fail, dtype=float, meta=np.empty((0, 0, 0)))
    return xr.DataArray(lazy, dims=("time", "lat", "lon"), name="t2m")


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (dkrls_cli.fit, "Give compact=True"),
        (dkrls_cli.fill, "Select a part"),
        (dkrls_cli.check, "Select a part"),
        (lambda data: dkrls_cli.validate(data, holdout=0.2), "Select a part"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_read(call, advice):
    with pytest.raises(InputError, match=rf"'t2m' takes about \S+ GB in memory.* {advice}"):
        call(huge())


def test_what_fits_is_loaded():
    data = globe()
    whole, chunked = fitted(data), fitted(data.chunk(time=4))
    np.testing.assert_array_equal(whole.cascade.core, chunked.cascade.core)


def test_the_limit_is_what_a_fit_takes(monkeypatch):
    data = globe().chunk()
    needed = loading.footprint(data.shape, machine=loading.Machine(1e9, 1e9)).memory
    with_gaps = loading.footprint(data.shape, gaps=True, machine=loading.Machine(1e9, 1e9)).memory
    assert with_gaps > needed
    monkeypatch.setattr(loading, "held_bytes", lambda: 1e9)
    monkeypatch.setattr(loading, "peak_bytes", lambda: 1e9)
    for allowed, gaps in ((needed, False), (with_gaps, True)):
        monkeypatch.setattr(loading, "available_bytes", lambda size=allowed: (size + 1) / 0.8)
        refuse_large(data, gaps=gaps)
        monkeypatch.setattr(loading, "available_bytes", lambda size=allowed: (size - 1) / 0.8)
        with pytest.raises(InputError, match="may be used"):
            refuse_large(data, gaps=gaps)
        refuse_large(data.load(), gaps=gaps)  # is in memory already
        data = data.chunk()


def test_errors_of_observations_go_with_loaded_arrays():
    refuse_errors(None)
    with pytest.raises(SettingError, match="load the array first"):
        refuse_errors(0.0)


# ------------------------------------------------------------------------------- compact models


def test_a_compact_fit_is_one_pass_and_that_of_the_array_in_memory():
    data, computed = globe(40, 24, 20), []

    def count(block: np.ndarray) -> np.ndarray:
        computed.append(block.shape)
        return block

    lazy = data.chunk(time=4)
    lazy = lazy.copy(data=lazy.data.map_blocks(count, dtype=float, meta=np.empty((0, 0, 0))))
    small = fitted(lazy, compact=True, poles="none", origin={"file": "a.nc"})
    assert len(computed) == 10
    whole = fitted(data, compact=True, poles="none")
    at = {"time": [2.5, 7.0], "lat": [-3.0, 30.0], "lon": [12.0, 200.0]}
    np.testing.assert_allclose(small.predict(**at), whole.predict(**at), atol=1e-10)
    assert small.origin["file"] == "a.nc"


def test_a_tolerance_is_kept_part_by_part(monkeypatch):
    monkeypatch.setattr("dkrls_cli.model.fit.as_grid", lambda *args: pytest.fail("loaded"))
    data = globe(40, 24, 20, noise=0.0)
    small = fitted(data.chunk(time=10), ridge=1e-6, tolerance=0.05)
    inside = {"time": data.time.values, "lat": data.lat.values, "lon": data.lon.values}
    error = np.abs(small.predict(**inside).values - data.values).max()
    assert error <= 0.05 * float(data.std())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"obs_error": 0.1}, "Errors of the observations"),
        ({"coordinates": [[1.0]]}, "Coordinates were given"),
        ({"watch": print}, "cannot be watched"),
        ({"noise": "joint"}, "One joint ridge"),
        ({"robust": True}, "robust fit"),
    ],
)
def test_what_needs_the_whole_array_is_refused(settings, told):
    with pytest.raises(SettingError, match=told):
        fitted(globe().chunk(time=4), compact=True, **settings)


def test_missing_cells_of_a_compact_model_are_named():
    data = globe(40, 24, 20)
    data[17, 3, 2] = np.nan
    with pytest.raises(InputError, match=r"missing, at time=17.0, lat=-65.0\d*, lon=36.0"):
        fitted(data.chunk(time=4), compact=True, mean=0.0, poles="none")
