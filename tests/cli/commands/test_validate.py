"""``dkrls validate``: a model against a grid, and the method against held-out parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr
from sample_files import EAST, latlon
from shell import dkrls, refusal


def test_validate_against_some_of_the_grid(model: Path, globe: Path, tmp_path: Path) -> None:
    with xr.open_dataset(globe, decode_times=False) as whole:
        parts = {
            "scalar": whole.isel(time=3),
            "thin": whole.isel(time=[3]),
            "turned": whole.isel(lat=slice(None, None, -1)).transpose("lon", "time", "lat"),
            "west": whole.assign_coords(lon=((whole.lon + 180) % 360 - 180).assign_attrs(EAST)),
        }
        for name, part in parts.items():
            part.drop_encoding().load().to_netcdf(tmp_path / f"{name}.nc")
            told = json.loads(
                dkrls("validate", tmp_path / f"{name}.nc", "--model", model, "--json").stdout
            )
            assert told["metrics"]["max_error"] < 1e-9, name
            assert told["metrics"]["n"] == part.t.size


def test_validate_picks_the_variable_of_the_model(model: Path, globe: Path, tmp_path: Path) -> None:
    with xr.open_dataset(globe, decode_times=False) as whole:
        whole.assign(s=whole.t * 2).load().to_netcdf(tmp_path / "two.nc")
    words = ["validate", tmp_path / "two.nc", "--model", model, "--json"]
    assert json.loads(dkrls(*words).stdout)["metrics"]["rmse"] < 1e-9
    assert json.loads(dkrls(*words, "--var", "s").stdout)["metrics"]["rmse"] > 1


@pytest.mark.parametrize("limit", [[], ["--max-memory", "1MB"]])
def test_coordinates_outside_the_training_range_are_told(
    model: Path, globe: Path, tmp_path: Path, limit: list[str]
) -> None:
    with xr.open_dataset(globe, decode_times=False) as whole:
        times, lat = whole.time, whole.lat
        later = whole.assign_coords(time=times + times[2] - times[0])
        moved = later.assign_coords(lat=(lat + 1.0).assign_attrs(lat.attrs)).isel(lat=slice(-1))
        moved.time.attrs.update(times.attrs)
        moved.drop_encoding().load().to_netcdf(tmp_path / "later.nc")
    told = dkrls("validate", tmp_path / "later.nc", "--model", model, *limit).stderr
    assert f"Note: 2 of {times.size} coordinates of 'time' are outside the training range" in told
    assert "outside" not in dkrls("validate", globe, "--model", model, *limit).stderr


def test_validate_refuses_another_grid(model: Path, tmp_path: Path) -> None:
    line = refusal("validate", latlon(tmp_path / "a.nc"), "--model", model)
    assert "The grid has dimensions lat, lon, the model time, lat, lon" in line


def test_validate_exits_with_3_above_a_threshold(model: Path, globe: Path) -> None:
    words = ["validate", globe, "--holdout", "lat=0.2", "--repeats", "1", "--fail-above"]
    assert "Missed: rmse is" in dkrls(*words, "rmse=0", code=3).stderr
    assert dkrls(*words, "rmse=0", "-q", code=3).stderr == ""
    dkrls(*words, "rmse=1e9")
    told = dkrls("validate", globe, "--model", model, "--fail-above", "rmse=-1", "--json", code=3)
    assert json.loads(told.stdout)["missed"] == ["rmse"]


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


def test_seeds_are_kept_to(globe: Path) -> None:
    words = ["validate", globe, "--holdout", "0.3", "--repeats", "2", "--json", "--seed"]

    def errors(seed: str) -> list[float]:
        return [run["rmse"] for run in json.loads(dkrls(*words, seed).stdout)["runs"]]

    assert errors("4") == errors("4")
    assert errors("4")[1] == errors("5")[0]


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


GIVEN = ["--kernel", "matern52", "--sigma", "60", "--ridge", "1e-2", "--poles", "none"]


def test_hold_outs_beyond_memory_are_told_as_others(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dkrls_cli.cli.commands import validate

    words = ["validate", globe, "--holdout", "0.2", "--repeats", 2, "--seed", 4, "--keep-edges"]
    words += [*GIVEN, "--json"]
    whole = json.loads(dkrls(*words).stdout)
    monkeypatch.setattr(validate, "holdouts_exceed", lambda *a: True)
    done = dkrls(*words, "--threads", 1)
    parts = json.loads(done.stdout)
    assert parts.keys() == whole.keys()
    assert parts["metrics"].keys() == whole["metrics"].keys()
    assert parts["held_out"] == whole["held_out"]
    assert parts["grid"] == whole["grid"]
    assert len(parts["runs"]) == 2
    assert [row.keys() for row in parts["levels"]] == [row.keys() for row in whole["levels"]]
    assert parts["metrics"]["n"] == whole["metrics"]["n"]
    assert parts["metrics"]["rmse"] == pytest.approx(whole["metrics"]["rmse"], rel=0.01)
    assert parts["calibration"]["n"] == whole["calibration"]["n"]
    assert "--report" in refusal(*words[:-1], "--report", tmp_path / "p.html", code=2)
    told = dkrls(*words[:-1], "--fail-above", "rmse=0", code=3)
    assert "Missed: rmse is" in told.stderr
    assert "median" in told.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--noise", "joint"], "joint ridge needs the whole grid"), (["--robust"], "robust fit")],
)
def test_hold_outs_that_need_the_whole_grid_are_refused_beyond_memory(
    globe: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], reason: str
) -> None:
    from dkrls_cli.cli.commands import validate

    monkeypatch.setattr(validate, "holdouts_exceed", lambda *a: True)
    assert reason in refusal("validate", globe, "--holdout", "0.2", *options, code=2)


def test_a_grid_beyond_memory_is_compared_part_by_part(
    model: Path, globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dkrls_cli.cli.commands import validate

    with xr.open_dataset(globe, decode_times=False) as whole:
        turned = (whole + 0.5).transpose("lon", "time", "lat").load()
    turned.to_netcdf(tmp_path / "turned.nc")
    words = ["validate", tmp_path / "turned.nc", "--model", model, "--smooth", "--json"]
    known = json.loads(dkrls(*words).stdout)
    monkeypatch.setattr(validate, "model_exceeds", lambda *a: True)
    found = json.loads(dkrls(*words, "--max-memory", "1GB").stdout)
    assert found.keys() == known.keys()
    for name, value in known["metrics"].items():
        assert found["metrics"][name] == pytest.approx(value, rel=1e-10), name
    assert found["levels"] == known["levels"]
    for name, value in known["calibration"].items():
        assert found["calibration"][name] == pytest.approx(value, rel=1e-9), name
    assert "--plot" in refusal(*words[:-1], "--plot", tmp_path / "p.png", code=2)
    line = refusal(*words[:-1], "--obs-error", "0.1", code=2)
    assert "beyond --max-memory" in line
    dkrls(*words, "--fail-above", "rmse=0.1", code=3)


def test_a_small_limit_goes_part_by_part(model: Path, globe: Path) -> None:
    """The limit counts: what exceeds it is not read at once."""
    from dkrls_cli.cli.commands.validate import model_exceeds
    from dkrls_cli.files.reading import open_source

    source = open_source([str(globe)])
    assert model_exceeds(source, 1e6)
    assert not model_exceeds(source, 1e12)
