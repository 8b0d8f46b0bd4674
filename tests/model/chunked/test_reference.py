"""Full models that refer to their data."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from stored_grids import globe, stored, waves

from dkrls_cli import load_model
from dkrls_cli.errors import InputError
from dkrls_cli.files import npz
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.chunked.reference import (
    extend_reference,
    fit_by_reference,
    open_reference,
)
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.saving import load_models, save_models
from dkrls_cli.model.settings import DEFAULTS, Settings


@pytest.fixture
def source(tmp_path):
    waves(30, 12, 14).to_netcdf(tmp_path / "a.nc", encoding={"f": {"chunksizes": (5, 6, 7)}})
    return open_source([str(tmp_path / "a.nc")])


def test_a_model_that_refers_to_its_data_survives_its_file(source, tmp_path):
    model = fit_by_reference(source, DEFAULTS)
    whole = fit_grid(source.grid(), DEFAULTS)
    model.save(tmp_path / "m.npz")
    assert (tmp_path / "m.npz").stat().st_size < 0.5 * 4 * 30 * 12 * 14
    header, arrays = npz.read(tmp_path / "m.npz")
    assert (header["version"], "core" in arrays) == (4, False)
    again = load_model(tmp_path / "m.npz")
    assert again.reference == model.reference
    assert again.levels == model.levels == whole.levels
    assert again.storage == "reference"
    assert again.cascade.is_stand_in
    assert again.shape == (30, 12, 14)
    queries = whole.queries(whole.axes_at({"lat": [33.3], "lon": [5.5]}))
    np.testing.assert_allclose(again.variance(queries), whole.variance(queries), rtol=1e-6)
    data = open_reference(again)
    np.testing.assert_array_equal(data.load(), source.load())


def test_rows_across_the_poles_are_kept_without_values(tmp_path):
    globe(8, 19, 36).to_netcdf(tmp_path / "g.nc")
    source = open_source([str(tmp_path / "g.nc")])
    model = fit_by_reference(source, Settings(poles="scalar"))
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.across_poles == "scalar"
    assert again.cascade.shape == model.cascade.shape != again.shape == (8, 19, 36)
    assert again.poles.before == model.poles.before
    assert again.cascade.is_stand_in


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.weights(1),
        lambda m: m.update(waves(31, 12, 14).isel(time=[30])),
        lambda m: m.growing,
        lambda m: m.values_on(m.axes),
        lambda m: next(m.blocks_on(m.axes, 100)),
    ],
)
def test_what_needs_values_never_answers_without_them(use, source):
    model = fit_by_reference(source, DEFAULTS)
    with pytest.raises(InputError, match="refers to its data and holds no values"):
        use(model)


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.predict(),
        lambda m: m.predict(lat=[33.3], derivative="lat"),
        lambda m: m.predict(lat=[33.3, 34.4], mean=True),
        lambda m: m.predict_points(lat=[33.3], lon=[4.0], time=m.axes[0].values[:1]),
        lambda m: m.predict_stations({"lat": [33.3], "lon": [4.0]}),
        lambda m: m.ensemble(2, lat=[33.3]),
    ],
)
def test_answers_are_read_from_data_that_is_the_same(use, source, tmp_path):
    model = fit_by_reference(source, DEFAULTS)
    assert np.isfinite(use(model)).all()
    waves(30, 12, 14, seed=1).to_netcdf(tmp_path / "other.nc")
    os.replace(tmp_path / "other.nc", tmp_path / "a.nc")
    with pytest.raises(InputError, match="has changed"):
        use(model)


def test_data_that_has_changed_is_refused(source, tmp_path):
    model = fit_by_reference(source, DEFAULTS)
    waves(30, 12, 14, seed=1).to_netcdf(tmp_path / "other.nc")
    os.replace(tmp_path / "other.nc", tmp_path / "a.nc")
    with pytest.raises(InputError, match="has changed"):
        open_reference(model)
    with pytest.raises(InputError, match="has changed"):
        extend_reference(model, [str(tmp_path / "b.nc")])


def test_a_model_grows_by_files_that_are_not_read(source, tmp_path, monkeypatch):
    model = fit_by_reference(source, DEFAULTS)
    later = waves(40, 12, 14).isel(time=slice(30, 40))
    later.to_netcdf(tmp_path / "b.nc")
    monkeypatch.setattr("dkrls_cli.files.stored.reader.read_part", None)
    grown = extend_reference(model, [str(tmp_path / "b.nc")])
    monkeypatch.undo()
    assert grown.shape == (40, 12, 14)
    assert grown.levels == model.levels
    assert grown.cascade.mean == model.cascade.mean
    assert grown.errors == model.errors
    assert grown.origin["slices_added"] == 10
    grown.save(tmp_path / "m.npz")
    values = open_reference(load_model(tmp_path / "m.npz")).load()
    np.testing.assert_array_equal(values[30:], later.values)
    with pytest.raises(InputError, match="in more than one of the files"):
        extend_reference(grown, [str(tmp_path / "b.nc")])


def test_several_variables_may_refer_and_hold(source, tmp_path):
    refers = fit_by_reference(source, DEFAULTS)
    holds = replace(fit_grid(source.grid(), DEFAULTS), name="g")
    save_models([holds, refers], tmp_path / "m.npz")
    found = load_models(tmp_path / "m.npz")
    assert (found["f"].storage, found["g"].storage) == ("reference", "float64")
    assert found["g"].predict(lat=[33.3]).size == 30 * 14


def test_a_stand_in_that_refers_to_nothing_is_not_saved(source, tmp_path):
    model = replace(fit_by_reference(source, DEFAULTS), reference=None)
    with pytest.raises(InputError, match="holds no values"):
        model.save(tmp_path / "m.npz")
    assert not (tmp_path / "m.npz").exists()


def test_files_of_models_that_hold_their_data_are_as_before(source, tmp_path):
    fit_grid(source.grid(), DEFAULTS).save(tmp_path / "m.npz")
    header, _ = npz.read(tmp_path / "m.npz")
    assert (header["version"], "reference" in json.dumps(header)) == (3, False)


def test_what_cannot_be_referred_to_is_refused(source, tmp_path):
    with pytest.raises(InputError, match="not in a file"):
        fit_by_reference(stored(waves()), DEFAULTS)
    with pytest.raises(InputError, match="nothing to make smaller"):
        fit_by_reference(source, Settings(tolerance=0.1))
    data = xr.DataArray(np.ones((20, 9)), dims=("run", "band"), name="f")  # no places at times
    data[0, 0] = np.nan
    data.to_netcdf(tmp_path / "gaps.nc")
    with pytest.raises(InputError, match="in the part on which settings are chosen"):
        fit_by_reference(open_source([str(tmp_path / "gaps.nc")]), DEFAULTS)
