"""Validation block by block: the metrics of a validation in memory."""

import numpy as np
import pytest
import xarray as xr
from chunked_grids import fitted, globe

from dkrls_cli import fit, validate
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming import request
from dkrls_cli.model.streaming.running import Threads
from dkrls_cli.model.streaming.validating import (
    validate_holdout_in_blocks,
    validate_model_in_blocks,
    validation_bytes,
)

GIVEN = {
    "kernel": "matern52",
    "sigma": {"time": 3.0, "lat": 40.0, "lon": 50.0},
    "ridge": 1e-2,
    "mean": 0.25,
    "poles": "none",
}
ERRORS = ("n", "rmse", "mae", "max_error", "normalized_max_error", "bias", "r2")


@pytest.fixture
def data(tmp_path):
    found = globe()
    found.to_netcdf(tmp_path / "a.nc", encoding={"f": {"chunksizes": (2, 5, 6)}})
    return found


@pytest.fixture
def source(data, tmp_path):
    return open_source([str(tmp_path / "a.nc")])


@pytest.fixture
def little(monkeypatch):
    """Let the program take nothing, so that a limit is that of the blocks."""
    monkeypatch.setattr(request, "process_bytes", lambda: 0)


def parts(source, **how):
    """Hold out in blocks."""
    how = {"holdout": 0.3, "repeats": 2, "scheduler": Threads(2), **how}
    return validate_holdout_in_blocks(source, Settings(**GIVEN), **how)


def assert_same(found, known, names=ERRORS):
    for name in names:
        assert found[name] == pytest.approx(known[name], rel=1e-10, abs=1e-12), name


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"seed": 3, "keep_edges": True},
        {"smooth": True},
        {"holdout": {"time": 0.2}},
        {"holdout": {"lat": 0.3, "lon": "0.2"}, "repeats": 1},
    ],
)
def test_hold_outs_are_those_in_memory(data, source, how):
    found = parts(source, **how)
    known = validate(data, **{"holdout": 0.3, "repeats": 2, **how}, **GIVEN)
    assert list(found.metrics) == list(known.metrics)
    assert found.held_out == known.held_out
    assert len(found.runs) == len(known.runs)
    for ours, theirs in zip(found.runs, known.runs, strict=True):
        assert_same(ours, theirs)
        assert ours["coverage90"] == pytest.approx(theirs["coverage90"], abs=0.15)  # of a part
    assert_same(found.metrics, known.metrics)


def test_small_blocks_have_the_same_sums(data, source, little, monkeypatch):
    from dkrls_cli.model.streaming import stages, validating

    sizes, real = [], stages.answer_in_blocks

    def count(boxes, answers, plan, *others, **how):
        sizes.append(len(plan.blocks))
        real(boxes, answers, plan, *others, **how)

    monkeypatch.setattr(validating, "answer_in_blocks", count)
    how = {"holdout": {"lat": 0.3, "lon": 0.2}, "repeats": 1, "smooth": False}
    once = parts(source, **how, limit=np.inf, scheduler=Threads(1)).metrics
    monkeypatch.setattr("dkrls_cli.model.streaming.planning._ENOUGH", 1)
    many = parts(source, **how, limit=np.inf, scheduler=Threads(1)).metrics
    assert sizes[1] > sizes[0]
    assert_same(many, once, (*ERRORS, "coverage90"))


def test_repeated_coordinates_are_left_out_as_in_memory(data, tmp_path):
    twice = xr.concat([data, data.isel(lon=[0]).assign_coords(lon=[360.0])], "lon")
    twice.to_netcdf(tmp_path / "twice.nc")
    found = parts(open_source([str(tmp_path / "twice.nc")]), repeats=1)
    assert_same(found.metrics, validate(twice, holdout=0.3, repeats=1, **GIVEN).metrics)


def test_settings_that_are_chosen_are_as_good(data, source):
    found = validate_holdout_in_blocks(
        source, Settings(), holdout=0.2, repeats=1, scheduler=Threads(1)
    )
    known = validate(data, holdout=0.2, repeats=1)
    assert found.metrics["rmse"] == pytest.approx(known.metrics["rmse"], rel=0.2)
    assert found.model.name == "f"


@pytest.mark.parametrize("dims", [("time", "lat", "lon"), ("lon", "time", "lat")])
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("refers", [False, True])
def test_a_model_is_measured_as_in_memory(
    data, source, tmp_path, monkeypatch, dims, smooth, refers
):
    model = fit(data, **GIVEN)
    truth = data.interp(lat=data.lat.values[:-1] + 7.0, lon=data.lon.values[:-1] + 15.0).transpose(
        *dims
    )
    truth = truth.where(truth.lat < 60)  # some are not known
    truth.to_netcdf(tmp_path / "truth.nc")
    whole = validate(truth, model=model, smooth=smooth)
    known = whole.metrics
    asked = model
    if refers:
        asked = fit_by_reference(source, Settings(**GIVEN))
    monkeypatch.setattr("dkrls_cli.model.streaming.validating.AT_ONCE", 100)
    found = validate_model_in_blocks(
        asked, open_source([str(tmp_path / "truth.nc")]), smooth=smooth, scheduler=Threads(2)
    )
    assert list(found.metrics) == list(known)
    assert_same(found.metrics, known)
    assert found.spread == pytest.approx(whole.spread, rel=1e-10)
    assert found.calibration.count == whole.calibration.count
    assert found.metrics["coverage90"] == pytest.approx(known["coverage90"], abs=0.1 * refers)


def test_a_model_of_means_is_measured_on_means_over_the_cells_of_a_grid(data, tmp_path):
    model = fit(data, **{**GIVEN, "ridge": 1e-6}, cell_means=["time", "lon"])
    pairs = data.coarsen(lon=2).mean()
    pairs.to_netcdf(tmp_path / "pairs.nc")
    source = open_source([str(tmp_path / "pairs.nc")])
    found = validate_model_in_blocks(model, source, scheduler=Threads(1)).metrics
    assert_same(found, validate(pairs, model=model).metrics)
    assert found["rmse"] < 1e-4  # means over two cells are those of their means


def test_scalars_and_single_dimensions_are_matched(data, tmp_path):
    model = fitted(data)
    one = data.isel(time=4, drop=False).expand_dims(member=[1.0])
    one.to_netcdf(tmp_path / "one.nc")
    source = open_source([str(tmp_path / "one.nc")])
    found = validate_model_in_blocks(model, source, scheduler=Threads(1))
    assert found.metrics["n"] == 13 * 12
    assert found.metrics["max_error"] < 1e-12


def test_a_truth_in_other_units_is_refused(data, tmp_path):
    model = fitted(data.assign_attrs(units="K"))
    data.assign_attrs(units="degC").to_netcdf(tmp_path / "truth.nc")
    source = open_source([str(tmp_path / "truth.nc")])
    with pytest.raises(InputError, match=r"are in 'degC', those of the model in 'K'"):
        validate_model_in_blocks(model, source, scheduler=Threads(1))


def test_truth_with_errors_or_without_a_file_is_held(data, source):
    from dataclasses import replace

    from dkrls_cli.grid.grid import as_grid

    model = fitted(data.isel(lat=slice(None, None, 2)))
    known = validate(data, model=model, obs_error=0.5).metrics
    noisy = replace(source, errors=lambda: 0.5, reader=None)
    found = validate_model_in_blocks(model, noisy, scheduler=Threads(1)).metrics
    assert_same(found, known, (*ERRORS, "coverage90"))
    assert as_grid(data).values.shape == source.shape


@pytest.mark.parametrize("clouds", [False, True])
def test_places_of_a_grid_with_missing_cells_are_held_out_as_in_memory(tmp_path, clouds):
    data = globe(4, 12, 14)
    data[:, 4:7, 3:6] = np.nan
    if clouds:
        data.values[1:3][np.random.default_rng(1).random((2, 12, 14)) < 0.2] = np.nan
    data.to_netcdf(tmp_path / "holes.nc", encoding={"f": {"chunksizes": (1, 12, 14)}})
    given = {**GIVEN, "group": "none"}
    how = {"holdout": {"lat": 0.2, "lon": 0.2}, "repeats": 1}
    source = open_source([str(tmp_path / "holes.nc")])
    found = validate_holdout_in_blocks(source, Settings(**given), scheduler=Threads(2), **how)
    alone = {**given, "sigma": {**GIVEN["sigma"], "time": 1e-3}}
    known = validate(data, **how, **alone).metrics
    for name in ERRORS:
        assert found.metrics[name] == pytest.approx(known[name], rel=1e-5), name
    assert found.metrics["coverage90"] == pytest.approx(known["coverage90"], abs=0.1)


def test_what_cannot_go_part_by_part_is_refused(data, source, tmp_path):
    data[:, 2, 1] = np.nan
    data.to_netcdf(tmp_path / "holes.nc")
    with pytest.raises(SettingError, match=r"that it has\. Ask there, or fill"):
        parts(open_source([str(tmp_path / "holes.nc")]), holdout={"time": 0.3})
    with pytest.raises(SettingError, match="joint ridge needs the whole grid"):
        validate_holdout_in_blocks(
            source, Settings(noise="joint"), holdout=0.2, scheduler=Threads(1)
        )
    with pytest.raises(SettingError, match="repeats 0"):
        parts(source, repeats=0)
    with pytest.raises(InputError, match="dimensions time, lat, the model"):
        validate_model_in_blocks(
            fitted(data.fillna(0)),
            open_source([str(_without_lon(data, tmp_path))]),
            scheduler=Threads(1),
        )


def _without_lon(data, tmp_path):
    path = tmp_path / "flat.nc"
    data.isel(lon=0, drop=True).fillna(0).to_netcdf(path)
    return path


def test_the_memory_of_a_grid_at_once_counts_its_cells(source):
    assert validation_bytes(source) >= 40 * 14 * 13 * 12
