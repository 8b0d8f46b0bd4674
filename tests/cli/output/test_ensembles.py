"""``dkrls predict --ensemble``: the same members in every form of output, one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, grid
from shell import HERE, csv_rows, dkrls, refusal

from dkrls_cli import load_model
from dkrls_cli.cascade.drawing import fields
from dkrls_cli.cli.output import ensembles as module
from dkrls_cli.model.answering import ensembles as drawing

WHERE = ["--at", "lat=0,1.5", "--at", "lon=7,45", "--at", "time=2020-01-03,2020-01-06"]
ASKED = {"lat": [0, 1.5], "lon": [7, 45], "time": ["2020-01-03", "2020-01-06"]}
STATIONS = "id,lon,lat\na,-10,1.5\nb,7,30\nc,350,1.5\n"
PLACES = {"lon": [-10.0, 7.0, 350.0], "lat": [1.5, 30.0, 1.5]}
DAYS = ["2020-01-03", "2020-01-06"]


def members(model: Path, seed: int = 0, count: int = 3) -> xr.DataArray:
    return load_model(model).ensemble(count, seed=seed, **ASKED)


def opened(path: Path) -> xr.Dataset:
    with xr.open_dataset(path, engine="zarr" if path.suffix == ".zarr" else None) as found:
        return found.load()


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
@pytest.mark.parametrize("std", [False, True])
def test_files_hold_the_answers_and_the_members(
    model: Path, tmp_path: Path, name: str, std: bool
) -> None:
    more = ["--std"] if std else []
    dkrls("predict", model, *WHERE, *more, "--ensemble", 3, "--seed", 5, "-o", tmp_path / name)
    plain = tmp_path / f"plain{Path(name).suffix}"
    dkrls("predict", model, *WHERE, *more, "-o", plain)
    found, before = opened(tmp_path / name), opened(plain)
    drawn = found.t_ensemble
    assert drawn.dims == ("realization", "time", "lat", "lon")
    np.testing.assert_allclose(drawn, members(model, 5), rtol=1e-6)
    assert found.realization.dtype == np.int32
    assert found.realization.values.tolist() == [0, 1, 2]
    assert found.realization.attrs["standard_name"] == "realization"
    assert drawn.attrs["long_name"].endswith(", ensemble members")
    for key in ("units", "standard_name"):
        assert drawn.attrs.get(key) == found.t.attrs.get(key)
    rest = found.drop_vars(["t_ensemble", "realization"])
    xr.testing.assert_identical(rest.drop_attrs(), before.drop_attrs())
    assert rest.t.attrs == before.t.attrs
    assert "--ensemble 3 --seed 5" in found.attrs["history"].splitlines()[0]


def test_means_and_derivatives_have_members(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.nc"
    dkrls("predict", model, *WHERE, "--derivative", "time", "--std", "--ensemble", 3, "-o", out)
    expected = load_model(model).ensemble(3, derivative="time", **ASKED)
    np.testing.assert_allclose(opened(out).dt_dtime_ensemble, expected, rtol=1e-6)
    told = dkrls("predict", model, "--mean-over", "lat,lon", "--ensemble", 4, *WHERE[4:])
    rows = csv_rows(told.stdout)
    assert len({row["t"] for row in rows}) == len(rows)
    assert {row["realization"] for row in rows} == {"0", "1", "2", "3"}
    stations = "lat,lon\n2.5,12\n"
    told = dkrls(
        *("predict", model, "--points", "-", "--derivative", "time", "--ensemble", 2, "--std"),
        *WHERE[4:],
        stdin=stations,
    )
    assert {"dt_dtime", "dt_dtime_std"} <= set(csv_rows(told.stdout)[0])


def test_netcdf_goes_to_stdout(model: Path, tmp_path: Path) -> None:
    told = dkrls("predict", model, *WHERE, "--ensemble", 2, "--format", "nc").stdout_bytes
    (tmp_path / "a.nc").write_bytes(told)
    np.testing.assert_allclose(
        opened(tmp_path / "a.nc").t_ensemble, members(model, 0, 2), rtol=1e-6
    )


def test_a_file_appears_only_when_all_members_are_there(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(query: Any, count: int, seed: int) -> Any:
        yield np.zeros(query.shape)
        raise MemoryError("of the second member")

    monkeypatch.setattr(drawing, "draw_members", fail)
    for name in ("a.nc", "a.zarr", "a.csv"):
        line = refusal("predict", model, *WHERE, "--ensemble", 2, "-o", tmp_path / name)
        assert "of the second member" in line
    assert not list(tmp_path.iterdir())


def test_members_are_drawn_when_they_are_written(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member is in memory at a time, however many there are."""
    alive: list[int] = []

    class Member(np.ndarray):
        def __array_finalize__(self, other: Any) -> None:
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    most = 0

    def draw(query: Any, count: int, seed: int) -> Any:
        nonlocal most
        for _ in range(count):
            yield np.zeros(query.shape).view(Member)
            most = max(most, len(alive))

    monkeypatch.setattr(drawing, "draw_members", draw)
    dkrls("predict", model, *WHERE, "--ensemble", 20, "-o", tmp_path / "a.nc")
    assert opened(tmp_path / "a.nc").sizes["realization"] == 20
    assert most < 8


@pytest.mark.parametrize("name", [n for n in files.WHOLE if "table" not in n])
def test_every_kind_of_file_has_members(name: str, tmp_path: Path) -> None:
    source = files.WHOLE[name](tmp_path)
    given = ["--kernel", "matern32", "--ridge", "1e-3"]
    dkrls("fit", source, "-q", *given, "-o", tmp_path / "m.npz")
    known = load_model(tmp_path / "m.npz")
    dkrls("predict", tmp_path / "m.npz", "-q", "--smooth", "--ensemble", 2, "-o", tmp_path / "o.nc")
    with xr.open_dataset(tmp_path / "o.nc", decode_times=False) as found:
        drawn = found[f"{known.name}_ensemble"]
        assert drawn.dims == ("realization", *known.dims)
        assert found.realization.dims == ("realization",)
        np.testing.assert_allclose(drawn, known.ensemble(2, smooth=True), rtol=1e-4, atol=1e-4)


def test_packed_data_has_members_in_single_precision(tmp_path: Path) -> None:
    raw = np.random.default_rng(0).integers(0, 900, (6, 8)).astype(np.int16)
    path = files.packed(tmp_path / "a.nc", raw, {"scale_factor": 0.01, "_FillValue": np.int16(-1)})
    dkrls("fit", path, "-o", tmp_path / "m.npz", "--kernel", "matern32", "--ridge", "0.1")
    dkrls("predict", tmp_path / "m.npz", "--ensemble", 2, "-o", tmp_path / "o.nc")
    with xr.open_dataset(tmp_path / "o.nc", mask_and_scale=False) as found:
        assert (found.t.dtype, found.t_ensemble.dtype) == (np.int16, np.float32)
        np.testing.assert_allclose(found.t_ensemble[1], raw * 0.01, atol=1e-5)


def test_a_scalar_realization_of_the_source_gives_way(tmp_path: Path) -> None:
    axes = {"lat": (LAT, NORTH), "lon": (LON, EAST)}
    path = grid(tmp_path / "a.nc", axes)
    with xr.open_dataset(path) as source:
        numbered = source.load().assign_coords(realization=((), 7), height=((), 2.0))
    numbered.to_netcdf(tmp_path / "b.nc")
    dkrls("fit", tmp_path / "b.nc", "-o", tmp_path / "m.npz", "--kernel", "matern32")
    for name in ("o.nc", "p.nc"):
        more = ["--ensemble", 2] if name == "o.nc" else []
        dkrls("predict", tmp_path / "m.npz", *more, "-o", tmp_path / name)
    found = opened(tmp_path / "o.nc")
    assert found.realization.values.tolist() == [0, 1]
    assert found.height.item() == 2.0
    assert opened(tmp_path / "p.nc").realization.item() == 7


# Rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [1, 3, 2**15])
def test_rows_have_the_number_of_their_member(
    model: Path, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_CELLS", cells)
    rows = csv_rows(dkrls("predict", model, *WHERE, "--ensemble", 3, "--seed", 5).stdout)
    assert list(rows[0]) == ["realization", "time", "lat", "lon", "t"]
    expected = members(model, 5)
    assert [row["realization"] for row in rows] == [str(i) for i in range(3) for _ in range(8)]
    found = np.array([float(row["t"]) for row in rows]).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    one = csv_rows(dkrls("predict", model, *WHERE).stdout)
    assert [(r["time"], r["lat"], r["lon"]) for r in rows[8:16]] == [
        (r["time"], r["lat"], r["lon"]) for r in one
    ]


def test_rows_have_standard_errors_as_well(model: Path, tmp_path: Path) -> None:
    dkrls("predict", model, *WHERE, "--ensemble", 2, "--std", "-o", tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert list(rows[0]) == ["realization", "time", "lat", "lon", "t", "t_std"]
    std = load_model(model).std(**ASKED).values.ravel()
    for number in range(2):
        some = [row["t_std"] for row in rows if row["realization"] == number]
        np.testing.assert_allclose(some, std, rtol=1e-5)


def test_json_holds_all_members(model: Path) -> None:
    told = json.loads(dkrls("predict", model, *HERE, "--ensemble", 2, "--json").stdout)
    assert told["variable"] == "t"
    assert [row["realization"] for row in told["answers"]] == [0, 0, 1, 1]


def test_json_tells_what_was_written(model: Path, tmp_path: Path) -> None:
    words = [*WHERE, "--ensemble", 2, "-o", tmp_path / "a.nc", "--json"]
    told = json.loads(dkrls("predict", model, *words, "--seed", 3).stdout)
    assert told == {
        "output": str(tmp_path / "a.nc"),
        "variable": "t",
        "cells": 8,
        "members": 2,
        "seed": 3,
    }
    again = json.loads(dkrls("predict", model, *words, "--overwrite").stdout)
    assert again["seed"] == 0


def test_seeds_are_reproducible(model: Path) -> None:
    words = ["predict", model, *WHERE, "--ensemble", 2]
    first = dkrls(*words, "--seed", 1).stdout
    assert dkrls(*words, "--seed", 1).stdout == first
    assert dkrls(*words, "--seed", 2).stdout != first
    assert dkrls(*words).stdout == dkrls(*words, "--seed", 0).stdout
    assert dkrls("predict", model, *WHERE, "--ensemble", 5, "--seed", 1).stdout.startswith(first)


# Where to answer ----------------------------------------------------------------------------------


def test_like_outside_and_masks_hold_for_members(model: Path, tmp_path: Path) -> None:
    like = grid(tmp_path / "like.nc", {"lat": (np.array([-80.0, 10.0, 50.0]), NORTH)})
    words = ["predict", model, "--like", like, "--at", "lon=7,8", "--at", "time=2020-01-03"]
    mask = xr.DataArray([[0.0, 1.0]], {"lat": [0.0], "lon": [7.0, 8.0]}, ("lat", "lon"), "mask")
    mask.to_netcdf(tmp_path / "mask.nc")
    for more in ([], ["--outside", "nearest"], ["--mask", tmp_path / "mask.nc"]):
        out = dkrls(*words, *more, "--ensemble", 2, "-o", tmp_path / "o.nc", "--overwrite")
        plain = dkrls(*words, *more, "-o", tmp_path / "p.nc", "--overwrite")
        assert out.stderr == plain.stderr
        answers, found = opened(tmp_path / "p.nc").t, opened(tmp_path / "o.nc")
        xr.testing.assert_equal(found.t, answers)
        for number in range(2):
            np.testing.assert_array_equal(np.isnan(found.t_ensemble[number]), np.isnan(answers))
    assert np.isnan(answers).sum() == 4


def test_variables_have_members_each(tmp_path: Path) -> None:
    dims, coords = ("x", "y"), {"x": np.arange(5.0), "y": np.arange(6.0)}
    rng = np.random.default_rng(0)
    data = {name: (dims, rng.standard_normal((5, 6))) for name in ("t", "u")}
    xr.Dataset(data, coords).to_netcdf(tmp_path / "a.nc")
    model = tmp_path / "m.npz"
    dkrls("fit", tmp_path / "a.nc", "--var", "all", "-o", model, "--kernel", "matern32")
    words = ["predict", model, "--at", "x=0.5,2.5", "--ensemble", 3]
    dkrls(*words, "-o", tmp_path / "o.nc")
    rows = csv_rows(dkrls(*words).stdout)
    assert list(rows[0]) == ["realization", "x", "y", "t", "u"]
    found = opened(tmp_path / "o.nc")
    for name in ("t", "u"):
        drawn = found[f"{name}_ensemble"]
        expected = load_model(model, name).ensemble(3, x=[0.5, 2.5])
        np.testing.assert_allclose(drawn, expected, rtol=1e-12)
        np.testing.assert_allclose([float(r[name]) for r in rows], expected.values.ravel())
    told = json.loads(dkrls(*words, "-o", tmp_path / "q.nc", "--json").stdout)
    assert (told["variables"], told["cells"], told["members"]) == (["t", "u"], 24, 3)


# Points and stations ------------------------------------------------------------------------------


def test_stations_have_members_in_rows(model: Path) -> None:
    words = ["predict", model, "--points", "-", "--at", f"time={','.join(DAYS)}", "--ensemble", 2]
    rows = csv_rows(dkrls(*words, "--std", stdin=STATIONS).stdout)
    assert list(rows[0]) == ["id", "lon", "lat", "realization", "time", "t", "t_std"]
    expected = load_model(model).ensemble_stations(2, PLACES, time=DAYS).values
    found = np.array([float(row["t"]) for row in rows]).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert [row["id"] for row in rows] == list("aabbcc") * 2
    assert [row["realization"] for row in rows] == ["0"] * 6 + ["1"] * 6


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_stations_have_members_in_files(model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "p.csv").write_text(STATIONS)
    words = ["--points", tmp_path / "p.csv", "--at", f"time={','.join(DAYS)}", "--std"]
    dkrls("predict", model, *words, "--ensemble", 3, "-o", tmp_path / name)
    found = opened(tmp_path / name)
    assert found.t_ensemble.dims == ("realization", "time", "station")
    expected = load_model(model).ensemble_stations(3, PLACES, time=DAYS)
    turned = expected.transpose("realization", "time", "station")
    np.testing.assert_allclose(found.t_ensemble, turned, rtol=1e-6)
    assert found.t.dims == ("time", "station")
    assert {"lat", "lon"} <= set(found.t_ensemble.coords)
    assert found.realization.attrs["standard_name"] == "realization"


def test_points_have_members(model: Path, tmp_path: Path) -> None:
    points = "lon,lat,time\n7,1.5,2020-01-03\n8,1.5,2020-01-04\n"
    rows = csv_rows(dkrls("predict", model, "--points", "-", "--ensemble", 2, stdin=points).stdout)
    known = load_model(model)
    asked = {"lon": [7, 8], "lat": [1.5, 1.5], "time": ["2020-01-03", "2020-01-04"]}
    expected = known.ensemble_points(2, **asked)
    found = [float(row["t"]) for row in rows]
    np.testing.assert_allclose(found, expected.values.ravel(), rtol=1e-6)
    (tmp_path / "p.csv").write_text(points)
    dkrls(
        "predict", model, "--points", tmp_path / "p.csv", "--ensemble", 2, "-o", tmp_path / "o.nc"
    )
    drawn = opened(tmp_path / "o.nc").t_ensemble
    assert drawn.dims == ("realization", "obs")
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["a.nc", "a.zarr", "a.csv"])
def test_a_table_without_rows_has_no_members(model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "p.csv").write_text("lon,lat,time\n")
    words = ["--points", tmp_path / "p.csv", "--ensemble", 2, "-o", tmp_path / name]
    dkrls("predict", model, *words)
    if name == "a.csv":
        assert (tmp_path / name).read_text() == "lon,lat,time,realization,t\n"
    else:
        assert opened(tmp_path / name).t_ensemble.shape == (2, 0)


def test_points_outside_are_counted(model: Path) -> None:
    points = "lon,lat,time\n7,1.5,2020-01-03\n8,88,2020-01-04\n"
    words = ["predict", model, "--points", "-", "--ensemble", 2, "--outside", "missing"]
    told = dkrls(*words, stdin=points)
    assert "1 of 2 cells of t stay missing, outside the training range" in told.stderr
    assert [row["t"] == "" for row in csv_rows(told.stdout)] == [False, True, False, True]


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", ["0", "-3", "two"])
def test_an_ensemble_has_members(model: Path, count: str) -> None:
    assert "'--ensemble'" in refusal("predict", model, "--ensemble", count, code=2)


def test_a_seed_is_no_negative_number_and_needs_an_ensemble(model: Path) -> None:
    assert "'--seed'" in refusal("predict", model, "--ensemble", "2", "--seed", "-1", code=2)
    line = refusal("predict", model, "--seed", "0", code=2)
    assert "--seed 0 is for the members of --ensemble N. Give both." in line


def test_names_that_are_taken_are_refused(tmp_path: Path) -> None:
    dims, coords = ("x", "y"), {"x": np.arange(5.0), "y": np.arange(6.0)}
    data = {name: (dims, np.eye(5, 6)) for name in ("t", "t_ensemble")}
    xr.Dataset(data, coords).to_netcdf(tmp_path / "a.nc")
    model = tmp_path / "m.npz"
    dkrls("fit", tmp_path / "a.nc", "--var", "all", "-o", model, "--kernel", "matern32")
    line = refusal("predict", model, "--ensemble", 2, code=2)
    assert "'t_ensemble' is a variable of its own and the name of the ensemble of 't'" in line
    dkrls("predict", model, "--var", "t", "--ensemble", 2, "-o", tmp_path / "o.nc")


def test_a_column_of_the_same_name_is_refused(model: Path, tmp_path: Path) -> None:
    points = "lon,lat,time,realization\n7,1.5,2020-01-03,4\n"
    words = ["predict", model, "--points", "-", "--ensemble", 2]
    line = refusal(*words, stdin=points)
    assert "There is a column 'realization' already" in line
    named = points.replace("realization", "t_ensemble")
    line = refusal(*words, "-o", tmp_path / "o.nc", stdin=named)
    assert "There is a column 't_ensemble' already" in line


def test_too_many_points_are_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "LARGEST", 2)
    words = ["predict", model, "--points", "-", "--at", "time=2020-01-03", "--ensemble", 2]
    points = STATIONS + "d,9,3\n"
    assert "3 scattered points is too large" in refusal(*words, stdin=points, code=2)
    assert len(csv_rows(dkrls(*words, stdin=STATIONS).stdout)) == 6  # a and c are one place


def test_different_grids_do_not_go_into_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = {
        "t": (("x", "y"), rng.standard_normal((5, 6))),
        "u": (("x",), rng.standard_normal(5)),
    }
    coords = {"x": np.arange(5.0), "y": np.arange(6.0)}
    xr.Dataset(data, coords).to_netcdf(tmp_path / "a.nc")
    model = tmp_path / "m.npz"
    dkrls("fit", tmp_path / "a.nc", "--var", "all", "-o", model, "--kernel", "matern32")
    line = refusal("predict", model, "--ensemble", 2, code=2)
    assert "on different grids, and rows have one" in line
    dkrls("predict", model, "--ensemble", 2, "-o", tmp_path / "o.nc")
    found = opened(tmp_path / "o.nc")
    assert found.u_ensemble.dims == ("realization", "x")
    assert found.t_ensemble.dims == ("realization", "x", "y")
