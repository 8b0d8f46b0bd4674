"""``dkrls info``: what a model file contains."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr
from sample_files import LAT, LON
from shell import dkrls, refusal

from dkrls_cli import Model, fit, load_model
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.chunked.reference import fit_by_reference
from dkrls_cli.model.settings import Settings


def test_weights_of_every_level_are_written(model: Path, tmp_path: Path) -> None:
    told = dkrls("info", model, "--weights", tmp_path / "w.nc")
    assert told.stderr == f"Weights of 3 levels written to {tmp_path / 'w.nc'}.\n"
    weights = xr.load_dataset(tmp_path / "w.nc")
    assert list(weights.data_vars) == ["weights_1", "weights_2", "weights_3"]
    assert weights.weights_3.shape == (12, LAT.size, LON.size)
    assert "exists already" in refusal("info", "absent.npz", "--weights", tmp_path / "w.nc")
    assert "as a grid" in refusal("info", model, "--weights", tmp_path / "w.csv", code=2)
    dkrls("info", model, "--weights", tmp_path / "w.nc", "--overwrite", "--json")


def test_a_joint_ridge_has_one_layer_of_weights(globe: Path, tmp_path: Path) -> None:
    dkrls("fit", globe, "--noise", "joint", "-o", tmp_path / "m.npz")
    dkrls("info", tmp_path / "m.npz", "--weights", tmp_path / "w.nc")
    assert list(xr.load_dataset(tmp_path / "w.nc").data_vars) == ["weights_3"]


@pytest.mark.parametrize("command", ["predict", "info"])
@pytest.mark.parametrize("what", ["data", "absent", "folder", "text"])
def test_what_is_no_model_is_refused(globe: Path, tmp_path: Path, command: str, what: str) -> None:
    (tmp_path / "text.npz").write_text("no model")
    given = {
        "data": globe,
        "absent": tmp_path / "absent.npz",
        "folder": tmp_path,
        "text": tmp_path / "text.npz",
    }[what]
    line = refusal(command, given)
    assert ("There is no model file" if what == "absent" else "is not a model file") in line


def facts_of(text: str) -> dict[str, str]:
    """The list above the table of levels, as names and values."""
    lines = [line.split("  ", 1) for line in text.split("\n\n", maxsplit=1)[0].splitlines()]
    return {name: value.strip() for name, value in lines}


def test_facts_of_a_model(model: Path) -> None:
    told = json.loads(dkrls("info", model, "--json").stdout)
    cells = 12 * LAT.size * LON.size
    assert (told["cells"], told["data_bytes"], told["storage"]) == (cells, 8 * cells, "float64")
    assert told["file_bytes"] == model.stat().st_size
    assert told["joint_ridge"] is None
    assert told["dropped"] == 0
    words = facts_of(dkrls("info", model).stdout)
    assert words["grid"] == "time 12 x lat 5 x lon 8"
    assert words["ridge"] == "per level"
    assert words["inputs"] == "globe.nc"
    assert words["options"] == "none"
    assert "dropped" not in words
    assert "missing" not in words


def test_facts_of_a_compact_joint_model_in_single_precision(tmp_path: Path) -> None:
    x = np.linspace(0, 3, 20)
    field = np.outer(np.sin(x), np.cos(x)).astype("f4")
    array = xr.DataArray(field, {"x": x, "y": x}, ("x", "y"), "t", {"units": "K"})
    array.to_netcdf(tmp_path / "t.nc")
    words = ["--noise", "joint", "--compact", "--float32", "--sigma", "y=2", "--sigma", "x=1"]
    dkrls("fit", tmp_path / "t.nc", "-o", tmp_path / "m.npz", *words)
    told = json.loads(dkrls("info", tmp_path / "m.npz", "--json").stdout)
    assert (told["data_bytes"], told["storage"], told["units"]) == (4 * 400, "float32", "K")
    words = facts_of(dkrls("info", tmp_path / "m.npz").stdout)
    assert words["variable"] == "t (K)"
    assert words["ridge"] == f"joint, {told['joint_ridge']:g}"
    assert words["options"] == "sigma=y=2, x=1, noise=joint, compact=True, dtype=float32"


def test_a_variable_without_units_has_no_brackets(tmp_path: Path) -> None:
    fit(np.arange(12.0).reshape(3, 4)).save(tmp_path / "m.npz")
    assert facts_of(dkrls("info", tmp_path / "m.npz").stdout)["variable"] == "values"


def test_what_a_compact_model_left_out_is_printed(tmp_path: Path) -> None:
    x = np.linspace(0, 3, 30)
    rough = np.outer(np.sin(9 * x), np.cos(x)) + np.random.default_rng(0).normal(size=(30, 30))
    model = fit(rough, kernel="gaussian", sigma=20.0, ridge=1e-2, compact=True)
    assert model.dropped > 0
    model.save(tmp_path / "m.npz")
    words = facts_of(dkrls("info", tmp_path / "m.npz").stdout)
    assert words["dropped"] == f"{model.dropped:.3g} of the energy"


def test_gaps_are_described_in_words_once(tmp_path: Path) -> None:
    values = np.add.outer(np.sin(np.arange(12.0) / 3), np.arange(5.0))
    values[4, 2] = np.nan
    fit(values, kernel="matern52", sigma=3.0, ridge=1e-3).save(tmp_path / "m.npz")
    words = facts_of(dkrls("info", tmp_path / "m.npz").stdout)
    assert words["missing"].startswith("1.67 % of the cells: ")
    assert json.loads(dkrls("info", tmp_path / "m.npz", "--json").stdout)["origin"]["missing"]


def test_weights_are_compressed_as_asked_for(model: Path, tmp_path: Path) -> None:
    dkrls("info", model, "--weights", tmp_path / "w.nc", "--compress", "5")
    with netCDF4.Dataset(tmp_path / "w.nc") as file:
        assert file["weights_1"].filters()["complevel"] == 5
    assert "Give --weights OUT.nc" in refusal("info", model, "--compress", "5", code=2)


def test_splines_and_warps_are_told(tmp_path: Path) -> None:
    p, t = np.geomspace(1.0, 1e3, 12), np.linspace(300.0, 400.0, 11)
    table = xr.DataArray(np.outer(np.log(p), t), coords={"p": p, "T": t}, name="h")
    table["p"].attrs["units"] = "Pa"
    table.to_netcdf(tmp_path / "h.nc")
    out = dkrls("fit", tmp_path / "h.nc", "-o", tmp_path / "m.npz", "--kernel", "p=log-cubic", "-v")
    assert "log-cubic" in out.stderr
    told = json.loads(dkrls("info", tmp_path / "m.npz", "--json").stdout)["levels"]
    kernels = {row["dimension"]: row["kernel"] for row in told}
    assert kernels == {"p": "log-cubic", "T": "linear"}
    assert {row["dimension"]: row["sigma"] for row in told} == {"p": None, "T": None}
    assert "log-cubic" in dkrls("info", tmp_path / "m.npz").stdout
    refused = dkrls(
        "fit",
        tmp_path / "h.nc",
        "-o",
        tmp_path / "n.npz",
        "--kernel",
        "p=cubic",
        "--noise",
        "joint",
        code=2,
    )
    assert "needs a complete grid with a ridge per level" in refused.stderr


def test_where_the_data_is_that_a_model_refers_to(globe: Path, tmp_path: Path) -> None:
    source = open_source([str(globe)])
    fit_by_reference(source, Settings()).save(tmp_path / "m.npz")
    told = dkrls("info", tmp_path / "m.npz").stdout
    assert "unchanged" in told
    assert "reference" in told
    os.utime(globe, ns=(1, 1))
    assert "changed: " in dkrls("info", tmp_path / "m.npz").stdout
    facts = json.loads(dkrls("info", tmp_path / "m.npz", "--json").stdout)
    assert facts["reference"]["files"] == [str(globe)]
    assert "written again" in facts["reference"]["changed"][0]
    assert "holds no values" in refusal("info", tmp_path / "m.npz", "--weights", tmp_path / "w.nc")


# The options of a fit


def refitted(path: Path, folder: Path, *words: Any) -> tuple[Model, Model, str]:
    """Return a model, the one that its options give back, and these options."""
    first, again, options = folder / "a.npz", folder / "b.npz", folder / "a.toml"
    dkrls("fit", path, "-o", first, *words)
    options.write_text(dkrls("info", first, "--config").stdout)
    dkrls("fit", path, "--config", options, "-o", again)
    return load_model(first), load_model(again), options.read_text()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--noise", "joint", "--float32", "--bounds", "none", "--poles", "none"],
        ["--kernel", "lat=matern12", "--levels", "lon,lat,time", "--compact"],
        ["--obs-error", "0.1"],
        ["--tolerance", "1e-3", "--robust"],
        ["--cell-means-along", "lat"],
    ],
)
def test_the_options_printed_give_the_model_back(
    globe: Path, tmp_path: Path, words: list[str]
) -> None:
    first, again, options = refitted(globe, tmp_path, *words)
    assert first.levels == again.levels
    assert (first.joint_ridge, first.hierarchy) == (again.joint_ridge, again.hierarchy)
    assert (first.across_poles, first.cell_means) == (again.across_poles, again.cell_means)
    between = {"lat": [3.0], "lon": [7.0, 33.0]}
    for one, other in (
        (first.predict(**between), again.predict(**between)),
        (first.std(**between), again.std(**between)),
    ):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-9, atol=1e-12)
    table = tomllib.loads(options)["fit"]
    assert table["var"] == first.name
    assert table.get("float32", False) == ("--float32" in words)
    assert table.get("bounds") == ("none" if "--bounds" in words else None)


@pytest.mark.slow
@pytest.mark.parametrize("group", ["none", "lat,lon"])
def test_the_options_of_a_fit_through_gaps_give_the_model_back(
    globe: Path, tmp_path: Path, group: str
) -> None:
    gappy = tmp_path / "gappy.nc"
    with xr.open_dataset(globe) as whole:
        (name,) = whole.data_vars
        hidden = np.random.default_rng(1).random(whole[name].shape) < 0.2
        whole.assign({name: whole[name].where(~hidden)}).to_netcdf(gappy)
    first, again, options = refitted(gappy, tmp_path, "--group", group)
    assert first.levels == again.levels
    apart = np.nanmax(np.abs(first.predict().values - again.predict().values))
    assert apart < 1e-4 * np.nanstd(first.predict().values)  # the accuracy of the first solve
    assert options.startswith("# ")
    assert tomllib.loads(options)["fit"]["group"] == group


def test_levels_given_whole_serve_other_commands_too(globe: Path, tmp_path: Path) -> None:
    words = ["--levels", "lat,lon,time", "--kernel", "lat=gaussian+constant:1"]
    words += ["--sigma", "lat=20,lon=40,time=30", "--period", "lat=none"]
    plan = dkrls("fit", globe, *words, "--ridge", "lat=0.01", "--dry-run", "--json").stdout
    rows = json.loads(plan)["levels"]
    assert [row["kernel"] for row in rows] == ["gaussian", "auto", "auto"]
    assert "gaussian" in dkrls("fit", globe, *words, "--ridge", "lat=0.01", "--dry-run").stdout
    gappy = tmp_path / "gappy.nc"
    with xr.open_dataset(globe) as whole:
        (name,) = whole.data_vars
        whole.assign({name: whole[name].where(whole[name] > whole[name].min())}).to_netcdf(gappy)
    dkrls("fill", gappy, *words, "--ridge", "0.01", "--mask", "none", "-o", tmp_path / "f.nc")
    assert not xr.load_dataset(tmp_path / "f.nc")[name].isnull().any()
    dkrls("check", globe, *words, "--ridge", "lat=0.01", "-o", tmp_path / "c.nc")


def test_the_options_of_splines_and_of_text_tables(tmp_path: Path) -> None:
    x = np.array([1.0, 2, 3, 5, 10, 20, 50, 100])
    lines = [f"{a},{b},{np.log(a) * np.exp(b / 4)}" for a in x for b in range(6)]
    (path := tmp_path / "t.csv").write_text("\n".join(["x,y,p", *lines]))
    first, again, options = refitted(path, tmp_path)
    assert "errors:" in options
    assert {one.name: one for one in first.levels} == {one.name: one for one in again.levels}


def test_options_are_printed_of_one_variable_and_alone(
    globe: Path, model: Path, tmp_path: Path
) -> None:
    assert "does not go with --json" in refusal("info", model, "--config", "--json", code=2)
    assert "--weights" in refusal("info", model, "--config", "--weights", tmp_path / "w.nc", code=2)
    both = tmp_path / "both.nc"
    with xr.open_dataset(globe) as data:
        (name,) = [str(one) for one in data.data_vars]
        data.assign(other=2 * data[name]).to_netcdf(both)
    dkrls("fit", both, "--var", "all", "-o", tmp_path / "m.npz", "--sigma", "20", "--ridge", "1e-3")
    line = refusal("info", tmp_path / "m.npz", "--config", code=2)
    assert f"The model has {name}, other" in line
    told = dkrls("info", tmp_path / "m.npz", "--config", "--var", "other").stdout
    assert tomllib.loads(told)["fit"]["var"] == "other"


def test_what_only_python_can_set_is_told(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 9)
    fit(np.sin(x), {"x": x}, mean=3.0, origin={"options": {"mean": 3.0}}).save(tmp_path / "m.npz")
    told = dkrls("info", tmp_path / "m.npz", "--config").stdout
    assert told.startswith("# mean 3.0 was set in Python: no option does\n[fit]\n")
