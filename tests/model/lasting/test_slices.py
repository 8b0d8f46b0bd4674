"""Slices with land are completed once their missing cells are those that are known."""

import pickle

import numpy as np
import pytest
from chunked_grids import globe

from dkrls_cli import fit
from dkrls_cli.errors import ConvergenceError, InputError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.lasting.choosing import survey_land
from dkrls_cli.model.lasting.land import find_land
from dkrls_cli.model.lasting.slices import LandSlices
from dkrls_cli.model.settings import Settings

GIVEN = {"kernel": "matern32", "ridge": 1e-3, "mean": 0.1, "group": "none", "poles": "none"}


def slices_of(tmp_path, **changed):
    data = globe(4, 9, 12)
    data[:, 3:5, 4:7] = np.nan
    path = tmp_path / "land.nc"
    data.to_netcdf(path)
    found = survey_land(find_land(open_source([str(path)])), Settings(sigma=40.0, **GIVEN), np.inf)
    return data, LandSlices.of(found, found.model, **changed)


def test_missing_cells_are_those_of_a_model_of_one_slice(tmp_path):
    data, land = slices_of(tmp_path)
    done = land.complete(data.values.copy())
    for time in range(4):
        model = fit(data[time], sigma=40.0, **GIVEN)
        expected = model.predict(mask="none").values[0]
        np.testing.assert_allclose(done[time] + 0.1, expected, rtol=0, atol=1e-6)


def test_an_end_that_is_not_reached_is_told_unless_it_is_accepted(tmp_path):
    from dataclasses import replace

    data, land = slices_of(tmp_path)
    with pytest.raises(ConvergenceError, match="after"):
        replace(land, tolerance=-1.0).complete(data.values.copy())
    replace(land, tolerance=-1.0, inexact=True).complete(data.values.copy())


def test_other_processes_make_a_solver_of_their_own(tmp_path):
    data, land = slices_of(tmp_path)
    expected = land.ready().complete(data.values.copy())
    assert land.solver is land.solver
    sent = pickle.loads(pickle.dumps(land))
    assert "_solver" not in vars(sent)
    np.testing.assert_array_equal(sent.complete(data.values.copy()), expected)


def test_other_missing_cells_are_refused(tmp_path):
    data, land = slices_of(tmp_path)
    box = tuple(slice(0, size) for size in data.shape)
    land.refuse_gaps(data.values, box)
    for value in (np.nan, np.inf):
        other = data.values.copy()
        other[2, 0, 1] = value
        with pytest.raises(InputError, match=r"first at time 2\.0, lat -88\.0, lon 30\.0"):
            land.refuse_gaps(other, box)


@pytest.mark.parametrize("neighbours", [1, 16])
def test_slices_that_miss_other_cells_are_solved_for_as_exactly(tmp_path, monkeypatch, neighbours):
    from dataclasses import replace

    from dkrls_cli.gaps.lasting import completion
    from dkrls_cli.model.lasting import slices

    data, land = slices_of(tmp_path)
    data[0, 6:, :5] = np.nan
    data[2] = np.nan
    expected = [
        None if time == 2 else fit(data[time], sigma=40.0, **GIVEN).predict(mask="none").values[0]
        for time in range(4)
    ]
    monkeypatch.setattr(slices, "_NEIGHBOURS", neighbours)  # 1 does not reach the end
    monkeypatch.setattr(completion.MaskedSlices.complete, "__kwdefaults__", {"limit": 12})
    done = replace(land, most=60).complete(data.values.copy())
    assert np.isnan(done[2]).all()
    for time in (0, 1, 3):
        np.testing.assert_allclose(done[time] + 0.1, expected[time], rtol=0, atol=1e-6)


def test_few_neighbours_suffice_for_a_slice_of_its_own(tmp_path, monkeypatch):
    from dataclasses import replace

    from dkrls_cli.gaps.lasting.completion import MaskedSlices

    data, land = slices_of(tmp_path)
    data[0, 6:, :5] = np.nan
    asked = []
    real = MaskedSlices.with_mask

    def noted(self, missing, *neighbours):
        asked.append(neighbours)
        return real(self, missing, *neighbours)

    monkeypatch.setattr(MaskedSlices, "with_mask", noted)
    replace(land, most=60).complete(data.values.copy())
    assert asked == [(16,)]  # the others miss land alone
