"""Plans of validations: what they tell is what is read, and nothing is read for them."""

import math

import numpy as np
import pytest
from stored_grids import waves

from dkrls_cli import fit
from dkrls_cli.errors import SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.files.stored import reader
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming.running import Threads
from dkrls_cli.model.streaming.validating import (
    validate_holdout_in_blocks,
    validate_model_in_blocks,
    validation_bytes,
)
from dkrls_cli.model.validation.planning import plan_holdouts, plan_model

GIVEN = {"kernel": "gaussian", "sigma": 5.0, "ridge": 1e-2}
SIZE = 8 * 30 * 12 * 14
HOW = {
    "holdout": 0.3,
    "repeats": 3,
    "seed": 1,
    "keep_edges": False,
    "smooth": False,
    "limit": math.inf,
}


@pytest.fixture
def source(tmp_path):
    waves(30, 12, 14, dtype="float64").to_netcdf(
        tmp_path / "a.nc", encoding={"f": {"chunksizes": (5, 12, 14)}}
    )
    return open_source([str(tmp_path / "a.nc")])


@pytest.fixture
def read(monkeypatch):
    """What is read of files of data, in bytes, part by part."""
    real, sizes = reader.read_part, []

    def noting(*part):
        found = real(*part)
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(reader, "read_part", noting)
    return sizes


def test_a_model_that_refers_to_its_data_reads_it_and_the_truth(source, read):
    model = fit_by_reference(source, Settings(**GIVEN))
    read.clear()
    plan = plan_model(model, source, smooth=False, limit=math.inf, workers=2)
    assert not read
    assert not plan.in_memory
    validate_model_in_blocks(model, source, scheduler=Threads(2))
    assert plan.bytes_read == sum(read) == plan.bytes_stored == 2 * SIZE


def test_a_grid_that_fits_is_read_once_in_memory_and_another_part_by_part(source, read):
    model = fit(waves(30, 12, 14, dtype="float64"), **GIVEN)
    whole = plan_model(model, source, smooth=False, limit=math.inf, workers=2)
    assert (whole.in_memory, whole.parts, whole.memory) == (True, 1, validation_bytes(source))
    cut = plan_model(model, source, smooth=False, limit=1.0, workers=2)
    assert (cut.in_memory, cut.parts) == (False, 1)
    assert cut.bytes_read == whole.bytes_read == SIZE
    assert not read


def test_hold_outs_are_planned_as_the_first_times_their_number(source, read):
    plan, one = (
        plan_holdouts(source, Settings(**GIVEN), **HOW | {"repeats": n}, workers=1) for n in (3, 1)
    )
    assert not read
    assert (plan.parts, plan.bytes_read) == (3 * one.parts, 3 * one.bytes_read)
    assert plan.memory == pytest.approx(one.memory, rel=0.02)  # this process may have grown
    validate_holdout_in_blocks(source, Settings(**GIVEN), **HOW, scheduler=Threads(1))
    assert 1.0 / 1.5 < plan.bytes_read / sum(read) < 1.5  # each hold-out reads other boxes
    assert np.prod(plan.query.shape) == 9 * 4 * 4


def test_what_hold_outs_refuse_is_refused(source):
    with pytest.raises(SettingError, match="held out in memory only"):
        plan_holdouts(source, Settings(**GIVEN, cell_means=True), **HOW, workers=1)
