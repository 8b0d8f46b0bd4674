"""What options ask of models: masks, and what excludes each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, NORTH
from shell import csv_rows, dkrls, refusal

from dkrls_cli.cli.asking import AnswerOptions
from dkrls_cli.errors import InputError, SettingError


def test_a_mask_in_a_file_decides_by_its_nearest_cell(sea: Path, tmp_path: Path) -> None:
    lat, lon = np.array([-45.0, 45.0]), np.array([-135.0, -45.0, 45.0, 135.0])
    open_sea = np.ones((2, 4))
    open_sea[0, 1] = 0
    xr.Dataset(
        {"open": (("lat", "lon"), open_sea)},
        {"lat": ("lat", lat, NORTH), "lon": ("lon", lon, EAST)},
    ).to_netcdf(tmp_path / "mask.nc")
    words = ("predict", sea, "--mask", tmp_path / "mask.nc", "--at", "time=2000-01-02")
    rows = csv_rows(dkrls(*words).stdout)
    for row in rows:
        closed = float(row["lat"]) < 0 and 270 < float(row["lon"]) < 360
        if float(row["lat"]) and float(row["lon"]) not in (0.0, 270.0):
            assert (row["sst"] == "") == closed, row
    line = refusal("predict", sea, "--mask", "non")
    assert "There is no mask 'non'" in line
    assert "Did you mean 'none'?" in line


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (AnswerOptions(mean_over=["lat"], mean=True), "--mean-over does not go with --mean"),
        (AnswerOptions(mean_over=["lat"], mean_along="lon"), "--mean-over does not go with"),
        (
            AnswerOptions(allow_extrapolation=True, outside="missing"),
            "--allow-extrapolation and --outside missing do not go together",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: AnswerOptions, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        options.refuse_impossible()


def test_a_mask_that_is_not_there_is_refused_with_those_that_are() -> None:
    AnswerOptions(mask="none", allow_extrapolation=True, outside="extrapolate").refuse_impossible()
    with pytest.raises(InputError, match=r"no mask 'models'.* Choose from: model, none; or give"):
        AnswerOptions(mask="models").refuse_impossible()


def test_dimensions_and_whether_more_than_values_are_asked_for() -> None:
    assert AnswerOptions(mean_along=" lat, lon,").mean_dims == ["lat", "lon"]
    assert not AnswerOptions(std=True, smooth=True).asks
    for asked in ({"mean": True}, {"mean_over": ["lat"]}, {"derivative": ["x"]}):
        assert AnswerOptions(**asked).asks
