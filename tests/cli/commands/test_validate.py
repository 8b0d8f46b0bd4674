"""``dkrls validate``: what it refuses, and the bounds of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr
from sample_files import latlon
from shell import dkrls, refusal


def test_validate_refuses_another_grid(model: Path, tmp_path: Path) -> None:
    line = refusal("validate", latlon(tmp_path / "a.nc"), "--model", model)
    assert "The grid has dimensions lat, lon, the model time, lat, lon" in line


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "Give either --model MODEL or --holdout FRACTION"),
        (["--holdout", "1.5"], "a fraction between 0 and 1"),
        (["--holdout", "some"], "is not a fraction"),
        (["--holdout", "depth=0.2"], "no dimension 'depth'"),
        (["--holdout", "0.2", "--fail-above", "speed=1"], "is not METRIC=VALUE"),
        (["--holdout", "0.2", "--fail-above", "rmse=x"], "'x' is not a number"),
    ],
)
def test_validate_refuses_what_makes_no_sense(globe: Path, options: list[str], reason: str) -> None:
    assert reason in refusal("validate", globe, *options, code=2)


def test_validate_with_a_model_takes_no_settings(model: Path, globe: Path) -> None:
    line = refusal("validate", globe, "--model", model, "--sigma", "3", code=2)
    assert "--sigma goes with --holdout" in line


def test_bounds_of_the_file_are_told_and_measured(tmp_path: Path) -> None:
    attrs = {"standard_name": "cloud_area_fraction", "units": "%", "valid_min": 0.0}
    whole = latlon(tmp_path / "a.nc", var_attrs=attrs)
    with xr.open_dataset(whole) as dataset:
        ice = dataset.load()
    ice["t"] = (abs(ice.t) / abs(ice.t).max()).assign_attrs(attrs)
    ice.to_netcdf(source := tmp_path / "b.nc")
    words = ("validate", source, "--holdout", "lat=0.3", "--repeats", "1")
    told = dkrls(*words, "--json")
    assert "Note: answers are kept at or above 0, as valid_min tells. --bounds" in told.stderr
    assert "Note: answers" not in dkrls(*words, "--bounds", "none").stderr
    assert "lie outside" in refusal(*words, "--bounds", "0.5,", code=2)
    dkrls("fit", source, "-o", tmp_path / "m.npz")
    assert "answers are kept" in dkrls("info", tmp_path / "m.npz").stdout
    given = ("validate", source, "--model", tmp_path / "m.npz")
    assert "--bounds goes with --holdout" in refusal(*given, "--bounds", "0,1", code=2)
    assert json.loads(dkrls(*given, "--json").stdout)["metrics"]["max_error"] < 1e-9
