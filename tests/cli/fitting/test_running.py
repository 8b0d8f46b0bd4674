"""Fits in memory, and what is reported of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, grid
from shell import HERE, csv_rows, dkrls, refusal

from dkrls_cli import load_model


def test_means_over_cells_are_told_and_kept(tmp_path: Path) -> None:
    axes = {"lat": (LAT, NORTH), "lon": (LON, EAST)}
    source = grid(tmp_path / "a.nc", axes)
    with xr.open_dataset(source) as data:
        told = data.load()
    told.t.attrs["cell_methods"] = "area: mean"
    told.to_netcdf(tmp_path / "b.nc")
    given = ("--kernel", "gaussian", "--sigma", "60", "--ridge", "1e-3")
    result = dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "b.npz", *given)
    assert "--cell-means keeps them as means" in result.stderr
    kept = dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "c.npz", *given, "--cell-means")
    assert "--cell-means" not in kept.stderr
    dkrls("predict", tmp_path / "c.npz", "--mean-along", "lat,lon", "-o", tmp_path / "d.nc")
    with xr.open_dataset(tmp_path / "d.nc") as means:
        assert np.allclose(means.t, told.t, rtol=0, atol=1e-10)
    assert "may be noise" not in dkrls("predict", tmp_path / "c.npz").stderr
    noisy = ("--ridge", "0.1", "--cell-means", "--overwrite")
    dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "c.npz", *given[:-2], *noisy)
    assert "a share of 0.1 may be noise" in dkrls("predict", tmp_path / "c.npz").stderr
    assert "may be noise" not in dkrls("predict", tmp_path / "c.npz", "--smooth").stderr
    along = ("--cell-means-along", "lat", "--overwrite")
    dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "c.npz", *given, *along)
    assert load_model(tmp_path / "c.npz").cell_means == ("lat",)


@pytest.mark.parametrize(
    "options",
    [
        ["--compact"],
        ["--float32"],
        ["--tolerance", "1e-3"],
        ["--noise", "joint"],
        ["--threads", "1"],
    ],
)
def test_every_kind_of_model_answers(globe: Path, tmp_path: Path, options: list[str]) -> None:
    dkrls("fit", globe, *options, "-o", tmp_path / "m.npz")
    told = csv_rows(dkrls("predict", tmp_path / "m.npz", *HERE).stdout)
    assert all(5 < float(row["t"]) < 90 for row in told)
    assert "grid" in dkrls("info", tmp_path / "m.npz").stdout


def test_bounds_are_kept_by_every_answer_of_a_model(tmp_path: Path) -> None:
    rows = [f"{x},{d},{min(1, max(0, (x - 5) / 2))}" for x in range(11) for d in range(5)]
    (source := tmp_path / "t.csv").write_text("x,day,ice\n" + "\n".join(rows) + "\n")
    given = ("--kernel", "gaussian", "--sigma", "x=1.5", "--sigma", "day=3", "--ridge", "1e-4")
    where = ("--at", "x=3.5,4.5,7.5,8.5", "--at", "day=1.5", "--std")
    answers = {}
    for bounds in ("none", "0,1", "0,"):
        saved = tmp_path / "m.npz"
        words = ("fit", source, "-o", saved, *given, "--overwrite", "--bounds", bounds)
        assert "answers" not in dkrls(*words).stderr
        printed = csv_rows(dkrls("predict", saved, *where).stdout)
        answers[bounds] = [(float(row["ice"]), float(row["ice_std"])) for row in printed]
    free, both, low = (answers[bounds] for bounds in ("none", "0,1", "0,"))
    assert min(free)[0] < 0
    assert max(free)[0] > 1
    assert [value for value, _ in both] == [min(max(value, 0), 1) for value, _ in free]
    assert [value for value, _ in low] == [max(value, 0) for value, _ in free]
    assert all(one[1] < other[1] for one, other in zip(both, free, strict=True))
    (config := tmp_path / "c.toml").write_text("bounds = [0, 1]\n")
    dkrls("fit", source, "-o", saved, *given, "--overwrite", "--config", config)
    assert csv_rows(dkrls("predict", saved, *where).stdout)[0]["ice"] == str(both[0][0])
    assert "'0;1'" in refusal("fit", source, "--dry-run", "--bounds", "0;1", code=2)
    line = refusal("fit", source, "-o", saved, "--overwrite", "--bounds", ",0.5", code=2)
    assert "at or below 0.5, and 20 of 55 values lie outside, from 1 to 1" in line
    assert line.endswith("Option: --bounds.")
