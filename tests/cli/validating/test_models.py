"""Models of a file measured on grids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr
from sample_files import EAST
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


def test_a_grid_beyond_memory_is_compared_part_by_part(
    model: Path, globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dkrls_cli.cli.validating import models

    with xr.open_dataset(globe, decode_times=False) as whole:
        turned = (whole + 0.5).transpose("lon", "time", "lat").load()
    turned.to_netcdf(tmp_path / "turned.nc")
    words = ["validate", tmp_path / "turned.nc", "--model", model, "--smooth", "--json"]
    known = json.loads(dkrls(*words).stdout)
    monkeypatch.setattr(models, "model_exceeds", lambda *a: True)
    found = json.loads(dkrls(*words, "--max-memory", "4GB").stdout)
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
    from dkrls_cli.cli.validating.models import model_exceeds
    from dkrls_cli.files.reading import open_source

    source = open_source([str(globe)])
    assert model_exceeds(source, 1e6)
    assert not model_exceeds(source, 1e12)
