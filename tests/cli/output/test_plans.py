"""Plans of answers: told before anything is read or written, and kept."""

import json

import numpy as np
import pytest
import xarray as xr
from shell import dkrls, peak_of, refusal
from stored_grids import waves

from dkrls_cli.files.stored import reader

GIVEN = ["--kernel", "gaussian", "--sigma", "lat=8,lon=12,time=0.4", "--ridge", "1e-4"]
AT = ["--at", "lat=21:45:2", "--at", "lon=1:9:1"]
ASKED = 30 * 13 * 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A grid, a model that holds it, and one that refers to it."""
    folder = tmp_path_factory.mktemp("plans")
    data = waves(30, 12, 14, dtype="float64")
    data.to_netcdf(folder / "a.nc", encoding={"f": {"chunksizes": (5, 12, 14)}})
    dkrls("fit", folder / "a.nc", *GIVEN, "-o", folder / "holds.npz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkrls_cli.cli.commands.fit.exceeds", lambda *a, **k: True)
        dkrls("fit", folder / "a.nc", *GIVEN, "-o", folder / "refers.npz")
    return folder


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


@pytest.mark.parametrize("options", [[], ["--std"]])
def test_the_plan_of_a_model_that_holds_its_data(folder, tmp_path, options):
    words = ["predict", folder / "holds.npz", *AT, *options, "-o", tmp_path / "o.nc"]
    plan = json.loads(dkrls(*words, "--dry-run", "--json").stdout)
    assert (plan["parts"], plan["passes"], plan["bytes_read"]) == (1, 0.0, 0)
    assert plan["bytes_written"] == 8 * ASKED * (1 + len(options))
    assert plan["memory_bytes"] > plan["bytes_written"]
    told = dkrls(*words, "--dry-run").stdout
    assert "in memory, about" in told
    assert "written" in told
    assert not any(tmp_path.iterdir())


def test_the_plan_of_rows_does_not_know_how_long_they_are(folder, tmp_path):
    words = ["predict", folder / "holds.npz", *AT, "-o", tmp_path / "o.csv", "--dry-run"]
    assert json.loads(dkrls(*words, "--json").stdout)["bytes_written"] is None
    assert "written" not in dkrls(*words).stdout
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("options", [[], ["--std"], ["--resume"]])
def test_the_plan_of_a_model_that_refers_to_its_data_is_what_is_read(
    folder, tmp_path, read, options
):
    words = ["predict", folder / "refers.npz", *AT, *options, "-o", tmp_path / "o.nc"]
    plan = json.loads(dkrls(*words, "--dry-run", "--json").stdout)
    assert not read
    assert not any(tmp_path.iterdir())
    dkrls(*words)
    assert plan["bytes_read"] == sum(read) == 8 * 30 * 12 * 14
    assert plan["bytes_written"] == 8 * ASKED * (1 + ("--std" in options))
    regridded = ["regrid", folder / "a.nc", *AT, *GIVEN, "--resume", "-o", tmp_path / "r.nc"]
    assert plan.keys() == json.loads(dkrls(*regridded, "--dry-run", "--json").stdout).keys()


def test_rows_of_data_that_is_referred_to_are_held(folder, tmp_path, read):
    words = ["predict", folder / "refers.npz", *AT, "--dry-run"]
    plan = json.loads(dkrls(*words, "-o", tmp_path / "o.csv", "--json").stdout)
    assert plan["bytes_written"] is None
    assert "part" in dkrls(*words, "-o", tmp_path / "o.csv").stdout
    assert not read


@pytest.mark.parametrize(
    ("model", "options", "named"),
    [
        ("holds", ["--points", "p.csv"], "--points"),
        ("holds", ["--ensemble", "3"], "--ensemble"),
        ("refers", ["--mean-over", "lat", "--std"], "--std with --mean-over"),
    ],
)
def test_what_no_plan_is_made_of_is_refused(folder, model, options, named):
    line = refusal("predict", folder / f"{model}.npz", *options, "--dry-run", code=2)
    assert f"not of {named}. Leave" in line


def test_a_plan_refuses_what_the_answers_refuse(folder, tmp_path):
    words = ["predict", folder / "holds.npz", "--at", "lat=99", "-o", tmp_path / "o.nc"]
    assert refusal(*words, "--dry-run", code=2) == refusal(*words, code=2)


@pytest.mark.slow
def test_answers_of_a_model_in_memory_take_what_is_told(tmp_path):
    shape, dims = (100, 200, 250), ("time", "y", "x")
    values = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    axes = {dim: np.arange(float(size)) for dim, size in zip(dims, shape, strict=True)}
    xr.DataArray(values, axes, dims, name="f").to_netcdf(tmp_path / "f.nc")
    given = ["--kernel", "matern32", "--sigma", "3", "--ridge", "0.1"]
    dkrls("fit", tmp_path / "f.nc", *given, "-o", tmp_path / "m.npz")
    words = ["predict", tmp_path / "m.npz", "--at", "y=0:199:0.5", "--at", "time=0:30:0.5"]
    words += ["-o", tmp_path / "o.nc"]
    done, peak = peak_of([*words, "--dry-run", "--json"], words)
    told = json.loads(done.stdout)["memory_bytes"]
    assert 1.0 / 1.5 <= told / peak <= 1.5


def test_the_plan_of_a_validation(folder, tmp_path, read):
    words = ["validate", folder / "a.nc", "--dry-run", "--json"]
    whole = json.loads(dkrls(*words, "--model", folder / "holds.npz").stdout)
    parts = json.loads(dkrls(*words, "--model", folder / "refers.npz").stdout)
    assert whole.keys() == parts.keys()
    assert (whole["passes"], whole["bytes_read"]) == (1.0, 8 * 30 * 12 * 14)
    assert parts["bytes_read"] == 2 * whole["bytes_read"]
    told = dkrls(*words[:-1], "--model", folder / "holds.npz").stdout
    assert "in memory, about" in told
    assert "read" in told
    assert "written" not in told
    assert not read


def test_the_plan_of_hold_outs_is_that_of_a_fit_in_memory_or_of_parts(folder, read, monkeypatch):
    words = ["validate", folder / "a.nc", "--holdout", "0.2", *GIVEN, "--dry-run"]
    fits = json.loads(dkrls("fit", folder / "a.nc", *GIVEN, "--dry-run", "--json").stdout)
    whole = json.loads(dkrls(*words, "--json").stdout)
    assert whole.keys() == fits.keys()
    assert whole["cells"] == 24 * 10 * 11
    assert whole["memory_parts"]["held besides"] >= 8 * 30 * 12 * 14
    monkeypatch.setattr("dkrls_cli.cli.validating.holdouts.holdouts_exceed", lambda *a: True)
    told = dkrls(*words).stdout
    assert "parts" in told
    assert "passes" in told
    assert not read


@pytest.mark.parametrize("option", ["--plot", "--report", "--fail-above"])
def test_a_dry_run_measures_nothing_to_draw_or_to_judge(folder, tmp_path, option):
    value = {"--plot": "a.png", "--report": "a.html", "--fail-above": "rmse=1"}[option]
    words = ["validate", folder / "a.nc", "--holdout", "0.2", option, value, "--dry-run"]
    assert f"{option} is for what was measured" in refusal(*words, code=2)
