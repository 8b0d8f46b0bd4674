"""Fits beyond memory: models that refer to their data, compact models, and runs that go on."""

import json

import numpy as np
import pytest
import xarray as xr
from shell import csv_rows, dkrls, peak_of, refusal
from stored_grids import waves

from dkrls_cli import load_model
from dkrls_cli.cli.output import chunks
from dkrls_cli.files.reading import open_source
from dkrls_cli.files.stored import reader
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.settings import Settings

GIVEN = ["--kernel", "gaussian", "--sigma", "lat=8,lon=12,time=0.4", "--ridge", "1e-4"]
AT = ["--at", "lat=21:45:2", "--at", "lon=1:9:1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks")
    data = waves(30, 12, 14, dtype="float64")
    encoding = {"f": {"chunksizes": (5, 12, 14)}}
    data.to_netcdf(folder / "a.nc", encoding=encoding)
    both = data.to_dataset(name="f").assign(g=2 * data + 1)
    both.to_netcdf(folder / "both.nc")
    whole = waves(40, 12, 14, dtype="float64")
    whole.to_netcdf(folder / "whole.nc")
    whole.isel(time=slice(0, 30)).to_netcdf(folder / "first.nc", encoding=encoding)
    whole.isel(time=slice(30, 40)).to_netcdf(folder / "next.nc")
    return folder


@pytest.fixture
def little(monkeypatch):
    """Let fits in memory be too large, whatever the size of the grid."""
    from dkrls_cli.cli.commands import fit

    monkeypatch.setattr(fit, "exceeds", lambda *a, **k: True)


@pytest.fixture
def refers(folder, tmp_path, little):
    """The file of a model that refers to its data."""
    dkrls("fit", folder / "a.nc", *GIVEN, "-o", tmp_path / "m.npz")
    return tmp_path / "m.npz"


def test_a_full_model_refers_to_its_data(folder, refers):
    model = load_model(refers)
    assert model.storage == "reference"
    assert model.origin["inputs"] == ["a.nc"]
    told = dkrls("fit", folder / "a.nc", *GIVEN, "-o", refers, "--overwrite")
    assert "refers to the data" in told.stderr
    assert "--compact" in told.stderr


@pytest.mark.parametrize("how", [["--compact"], ["--tolerance", "0.01"]])
def test_a_compact_model_is_that_of_a_fit_in_memory(folder, tmp_path, monkeypatch, how):
    from dkrls_cli.cli.commands import fit

    words = ["fit", folder / "a.nc", *GIVEN, *how]
    dkrls(*words, "-o", tmp_path / "whole.npz")
    monkeypatch.setattr(fit, "exceeds", lambda *a, **k: True)
    dkrls(*words, "-o", tmp_path / "parts.npz")
    parts, whole = (load_model(tmp_path / f"{name}.npz") for name in ("parts", "whole"))
    assert parts.storage != "reference"
    at = {"lat": [20.3, 33.3], "lon": [5.5]}
    exact = 1e-10 if how == ["--compact"] else 0.01
    np.testing.assert_allclose(parts.predict(**at), whole.predict(**at), atol=exact)


def test_a_dry_run_reads_one_time_at_most_and_writes_nothing(folder, little, monkeypatch):
    real, before, read = reader.read_part, set(folder.iterdir()), []

    def noting(*part):
        read.append(real(*part))
        return read[-1]

    monkeypatch.setattr(reader, "read_part", noting)
    plan = json.loads(dkrls("fit", folder / "a.nc", "--dry-run", "--json").stdout)
    assert plan["model"] == "reference"
    assert 0 < plan["bytes_read"] <= 2 * 8 * 30 * 12 * 14
    compact = json.loads(dkrls("fit", folder / "a.nc", "--compact", "--dry-run", "--json").stdout)
    assert compact["model"] == "compact"
    assert compact["passes"] >= 1.0
    assert compact["bytes_read"] >= 8 * 30 * 12 * 14
    told = dkrls("fit", folder / "a.nc", "--dry-run").stdout
    assert "refers to the data" in told
    assert read
    assert all(part.shape == (1, 12, 14) for part in read)
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("how", "passes"),
    [(["--compact"], 1), (["--tolerance", "0.01"], 2)],
    ids=["compact", "promise"],
)
def test_the_plan_of_given_settings_is_what_is_read(
    folder, tmp_path, little, monkeypatch, how, passes
):
    real, read = reader.read_part, []

    def noting(*part):
        found = real(*part)
        read.append(found.nbytes)
        return found

    monkeypatch.setattr(reader, "read_part", noting)
    words = ["fit", folder / "a.nc", *GIVEN, *how, "--max-memory", "4GB"]
    plan = json.loads(dkrls(*words, "--dry-run", "--json").stdout)
    assert not read
    assert plan["bytes_read"] == passes * 8 * 30 * 12 * 14
    assert plan["passes"] == passes
    assert plan["memory_bytes"] < 4e9
    told = dkrls(*words, "--dry-run").stdout
    assert ("about" in told, "two passes" in told) == (True, passes == 2)
    dkrls(*words, "-o", tmp_path / "m.npz")
    assert sum(read) == plan["bytes_read"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "limit", "given"),
    [
        ((4000, 60, 60), "450MB", ["--kernel", "matern32", "--sigma", "3", "--ridge", "0.01"]),
        ((120, 500, 600), "380MB", []),
    ],
    ids=["a long level, given", "dense levels, chosen"],
)
def test_a_fit_that_refers_to_its_data_takes_what_is_told(tmp_path, shape, limit, given):
    dims = ("time", "y", "x")
    axes = {dim: np.arange(float(size)) for dim, size in zip(dims, shape, strict=True)}
    time, y, x = (np.arange(size, dtype=np.float32) for size in shape)
    values = 0.1 * np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    values += np.sin(time / 9)[:, None, None] * np.sin(y / 7)[:, None] + np.cos(x / 8)
    data = xr.DataArray(values, axes, dims, name="f")
    data.to_netcdf(tmp_path / "f.nc", encoding={"f": {"chunksizes": (20, *shape[1:])}})
    words = ["fit", tmp_path / "f.nc", "--max-memory", limit, *given]
    done, used = peak_of([*words, "--dry-run", "--json"], [*words, "-o", tmp_path / "m.npz", "-q"])
    told = json.loads(done.stdout)
    assert told["model"] == "reference"
    assert 1.0 <= told["memory_bytes"] / used <= 1.5


def interrupted(after):
    """Return a function that keeps sums, and is interrupted when it has done so some times."""
    from dkrls_cli.files.regions.checkpoint import Checkpoint

    real, saved = Checkpoint.save_state, []

    def save(self, arrays, done):
        real(self, arrays, done)
        saved.append(set(done))
        if len(saved) == after:
            raise KeyboardInterrupt

    return save, saved


@pytest.fixture
def often(monkeypatch):
    """Cut slabs small, and keep sums after each of them."""
    from dkrls_cli.model.streaming import summing

    monkeypatch.setattr("dkrls_cli.model.chunked.reduction._PIECE", 5 * 12 * 14)
    monkeypatch.setattr(chunks, "slab_runner", lambda *given: summing.SlabRunner(*given, every=0.0))


@pytest.mark.parametrize("stop", [1, 3])
def test_an_interrupted_compact_fit_is_resumed(folder, tmp_path, monkeypatch, often, stop):
    from dkrls_cli.files.regions.checkpoint import Checkpoint
    from dkrls_cli.model.chunked import reduction

    words = ["fit", folder / "a.nc", *GIVEN, "--compact", "--resume", "-o", tmp_path / "m.npz"]
    save, saved = interrupted(stop)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_state", save)
        dkrls(*words, code=130)
    assert len(saved[-1]) == stop
    assert not (tmp_path / "m.npz").exists()
    slabs, real = [], reduction.reduce_slab
    monkeypatch.setattr(
        "dkrls_cli.model.streaming.summing.reduce_slab",
        lambda read, how, slab: (slabs.append(slab), real(read, how, slab))[1],
    )
    assert "resuming what" in dkrls(*words).stderr
    resumed = len(slabs)
    words[-1] = tmp_path / "once.npz"
    dkrls(*words)
    assert resumed == len(slabs) - resumed - stop
    ours, once = (load_model(tmp_path / f"{name}.npz") for name in ("m", "once"))
    np.testing.assert_allclose(ours.cascade.core, once.cascade.core, rtol=0, atol=1e-11)
    assert ours.cascade.mean == pytest.approx(once.cascade.mean, rel=1e-13)
    assert {path.name for path in tmp_path.iterdir()} == {"m.npz", "once.npz"}


def test_sums_of_other_slabs_are_not_taken(folder, tmp_path, monkeypatch, often):
    """Slabs are cut by the memory that there is, which may be another when a run goes on."""
    from dkrls_cli.files.regions.checkpoint import Checkpoint

    words = ["fit", folder / "a.nc", *GIVEN, "--compact", "--resume", "-o", tmp_path / "m.npz"]
    save, _ = interrupted(2)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_state", save)
        dkrls(*words, code=130)
    monkeypatch.setattr("dkrls_cli.model.chunked.reduction._PIECE", 10 * 12 * 14)
    dkrls(*words)
    words[-1] = tmp_path / "once.npz"
    dkrls(*words)
    ours, once = (load_model(tmp_path / f"{name}.npz") for name in ("m", "once"))
    np.testing.assert_allclose(ours.cascade.core, once.cascade.core, rtol=0, atol=1e-11)


def test_only_one_variable_is_resumed(folder, tmp_path):
    words = ["fit", folder / "both.nc", "--var", "all", "--compact", "--resume"]
    assert "--var" in refusal(*words, "-o", tmp_path / "m.npz", code=2)


def test_missing_cells_are_refused_by_compact_fits_alone(folder, tmp_path, little):
    data = xr.load_dataset(folder / "a.nc")
    data.f[3, 2, 1] = np.nan
    data.to_netcdf(tmp_path / "holes.nc")
    words = ["fit", tmp_path / "holes.nc", *GIVEN, "-o", tmp_path / "m.npz"]
    assert "missing" in refusal(*words, "--compact")
    assert not (tmp_path / "m.npz").exists()
    assert "each is answered on its own" in dkrls(*words, "--group", "none").stderr
    rows = csv_rows(dkrls("predict", tmp_path / "m.npz", *AT, "--std").stdout)
    assert len(rows) == 30 * 13 * 9


# Answers of models that refer to their data.


def in_memory(folder, tmp_path, name="a.nc", *others):
    """Return the file of the same model with its data."""
    from dkrls_cli.cli.commands import fit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "exceeds", lambda *a, **k: False)
        dkrls("fit", folder / name, *GIVEN, *others, "-o", tmp_path / "held.npz", "--overwrite")
    return tmp_path / "held.npz"


@pytest.mark.parametrize("std", [[], ["--std"]])
def test_predict_answers_as_a_model_with_its_data(folder, tmp_path, refers, std):
    held = in_memory(folder, tmp_path)
    ours, theirs = (
        csv_rows(dkrls("predict", path, *AT, "--at", "time=2000-01-01T05:20", *std).stdout)
        for path in (refers, held)
    )
    assert [row.keys() for row in ours] == [row.keys() for row in theirs]
    assert len(ours) == 13 * 9
    for name in ours[0]:
        if name not in ("time", "f_std"):
            np.testing.assert_allclose(*([float(r[name]) for r in x] for x in (ours, theirs)))
    for path, name in ((refers, "ours.nc"), (held, "theirs.nc")):
        dkrls("predict", path, *AT, *std, "-o", tmp_path / name)
    a, b = (xr.load_dataset(tmp_path / f"{name}.nc") for name in ("ours", "theirs"))
    np.testing.assert_allclose(a.f, b.f, atol=1e-9)
    assert set(a.variables) == set(b.variables)
    assert a.f.attrs == b.f.attrs


def test_means_over_regions_of_a_reference(folder, tmp_path, refers):
    held = in_memory(folder, tmp_path)
    words = ["--mean-over", "lat=24:36,lon", "--std"]
    ours, theirs = (csv_rows(dkrls("predict", path, *words).stdout) for path in (refers, held))
    assert len(ours) == len(theirs)
    for name in ("f", "f_std"):
        np.testing.assert_allclose(
            *([float(r[name]) for r in x] for x in (ours, theirs)), rtol=1e-6
        )


def test_predict_in_parts_writes_the_same(folder, tmp_path, refers):
    dkrls("predict", refers, *AT, "-o", tmp_path / "once.nc")
    dkrls("predict", refers, *AT, "--resume", "-o", tmp_path / "parts.nc")
    dkrls("predict", refers, *AT, "--max-memory", "none", "--resume", "-o", tmp_path / "p.zarr")
    once = xr.load_dataset(tmp_path / "once.nc")
    np.testing.assert_allclose(xr.load_dataset(tmp_path / "parts.nc").f, once.f, atol=1e-12)
    np.testing.assert_allclose(
        xr.load_dataset(tmp_path / "p.zarr", engine="zarr").f, once.f, atol=1e-12
    )


def test_two_variables_that_refer_are_answered(folder, tmp_path, little):
    model = tmp_path / "both.npz"
    dkrls("fit", folder / "both.nc", "--var", "all", *GIVEN, "-o", model)
    dkrls("predict", model, *AT, "--std", "-o", tmp_path / "out.nc")
    found = xr.load_dataset(tmp_path / "out.nc")
    np.testing.assert_allclose(found.g, 2 * found.f + 1, atol=1e-9)
    np.testing.assert_allclose(found.g_std, 2 * found.f_std, rtol=1e-5)


POINTS = """name,lat,lon,time
a,33.3,5.2,2000-01-01T05:20
b,21,1,2000-01-01T04:00
c,40.1,8,2000-01-02
"""


@pytest.mark.parametrize("how", [[], ["--std"], ["--ensemble", 3, "--seed", 4]])
@pytest.mark.parametrize("table", ["-", "p.csv"])
def test_points_of_a_reference_are_those_of_a_model_with_its_data(
    folder, tmp_path, refers, how, table
):
    held = in_memory(folder, tmp_path)
    (tmp_path / "p.csv").write_text(POINTS)
    path = table if table == "-" else tmp_path / table
    ours, theirs = (
        csv_rows(dkrls("predict", model, "--points", path, *how, stdin=POINTS).stdout)
        for model in (refers, held)
    )
    assert [row["name"] for row in ours] == [row["name"] for row in theirs]
    assert len(ours) == (9 if "--ensemble" in how else 3)
    tolerance = 0.05 if "--ensemble" in how else 1e-6  # bars of a part of the data
    np.testing.assert_allclose(
        *([float(r["f"]) for r in x] for x in (ours, theirs)), atol=tolerance
    )


@pytest.mark.parametrize("out", ["st.nc", "st.zarr", "st.csv"])
def test_stations_of_a_reference(folder, tmp_path, refers, out):
    held = in_memory(folder, tmp_path)
    (tmp_path / "st.csv").write_text("lat,lon\n33.3,5.2\n21,1\n")
    found = []
    for number, model in enumerate((refers, held)):
        path = tmp_path / f"{number}_{out}"
        dkrls("predict", model, "--points", tmp_path / "st.csv", "--at", "time=all", "-o", path)
        if out.endswith("csv"):
            found.append([float(row["f"]) for row in csv_rows(path.read_text())])
        else:
            found.append(xr.load_dataset(path).f.values.ravel())
    assert len(found[0]) == 60
    np.testing.assert_allclose(*found, atol=1e-9)


def test_ensembles_of_a_reference_pass_through_its_data(folder, tmp_path, refers):
    for out in ("e.nc", "again.nc"):
        dkrls("predict", refers, *AT, "--ensemble", 4, "--seed", 2, "-o", tmp_path / out)
    found, again = (xr.load_dataset(tmp_path / name) for name in ("e.nc", "again.nc"))
    np.testing.assert_array_equal(found.f_ensemble, again.f_ensemble)
    data = xr.load_dataset(folder / "a.nc").f
    assert float(found.f_ensemble.std("realization").max()) > 0
    dkrls("predict", refers, "--ensemble", 2, "-o", tmp_path / "nodes.nc")
    nodes = xr.load_dataset(tmp_path / "nodes.nc").f_ensemble
    np.testing.assert_allclose(nodes, data.expand_dims(realization=2), atol=1e-12)


def test_what_a_reference_does_not_answer_is_refused(folder, tmp_path, refers):
    (tmp_path / "p.csv").write_text(POINTS)
    over = ["--mean-over", "lat,lon", "--std"]
    for words in (["--points", tmp_path / "p.csv"], [*AT, "--ensemble", 3], over):
        told = refusal("predict", refers, *words, "--resume", "-o", tmp_path / "o.nc", code=2)
        assert "--resume is for answers on grids" in told
    held = in_memory(folder, tmp_path)
    for words in (["--scheduler", "local"], ["--resume"]):
        out = tmp_path / "o.nc"
        assert "holds its data" in refusal("predict", held, *AT, *words, "-o", out, code=2)
        assert not out.exists()


def test_a_model_that_refers_to_land_is_not_told_to_be_made_compact(folder, tmp_path, little):
    data = xr.load_dataset(folder / "a.nc")
    data["f"][{"lat": slice(2, 5), "lon": slice(3, 6)}] = np.nan
    data.to_netcdf(tmp_path / "land.nc")
    for source, advised in ((folder / "a.nc", True), (tmp_path / "land.nc", False)):
        told = dkrls("fit", source, *GIVEN, "-o", tmp_path / f"{advised}.npz")
        assert told.exit_code == 0, told.stderr
        assert "has to stay as it is." in told.stderr
        assert ("--compact" in told.stderr) == advised


@pytest.mark.parametrize("words", [["--scheduler", "local"], ["--resume"]])
def test_a_fit_with_nothing_to_distribute_or_resume_is_refused(folder, tmp_path, words):
    model = tmp_path / "m.npz"
    told = refusal("fit", folder / "a.nc", *GIVEN, *words, "-o", model, code=2)
    assert "nothing to do" in told
    assert "--compact or --tolerance" in told
    assert not model.exists()
    dkrls("fit", folder / "a.nc", *GIVEN, "--tolerance", "0.01", "--resume", "-o", model)
    assert model.exists()


def test_data_that_has_changed_is_not_answered_from(folder, tmp_path, little):
    data = xr.load_dataset(folder / "a.nc")
    data.to_netcdf(tmp_path / "mine.nc")
    dkrls("fit", tmp_path / "mine.nc", *GIVEN, "-o", tmp_path / "m.npz")
    (tmp_path / "mine.nc").unlink()
    assert "mine.nc" in refusal("predict", tmp_path / "m.npz", *AT)
    (data + 1).to_netcdf(tmp_path / "mine.nc")
    for words in (["predict", tmp_path / "m.npz", *AT], ["update", tmp_path / "m.npz", "x.nc"]):
        if words[0] == "update":
            words[-1] = folder / "next.nc"
        assert "changed" in refusal(*words)
    assert "changed" in refusal("validate", folder / "a.nc", "--model", tmp_path / "m.npz")


# Updates of models that refer to their data.


@pytest.fixture
def grown(folder, tmp_path, little):
    """The file of a model that refers to two files, one of them added."""
    dkrls("fit", folder / "first.nc", *GIVEN, "-o", tmp_path / "m.npz")
    told = json.loads(dkrls("update", tmp_path / "m.npz", folder / "next.nc", "--json").stdout)
    assert (told["added"], told["slices"]) == (10, 40)
    return tmp_path / "m.npz"


def test_a_model_that_grew_answers_as_a_fit_of_all(folder, tmp_path, grown):
    mean = load_model(grown).cascade.mean
    levels = load_model(grown).levels
    grid = open_source([str(folder / "whole.nc")]).grid()
    whole = fit_grid(grid, Settings(list(levels), mean=mean))
    dkrls("predict", grown, *AT, "-o", tmp_path / "out.nc")
    found = xr.load_dataset(tmp_path / "out.nc").f
    at = {"lat": found.lat.values, "lon": found.lon.values}
    assert found.sizes["time"] == 40
    np.testing.assert_allclose(found, whole.predict(**at), atol=1e-9)
    between = ["--at", "time=2000-01-02T08:30"]
    rows = csv_rows(dkrls("predict", grown, *AT, *between).stdout)
    times = np.array(["2000-01-02T08:30"], "datetime64[ns]")
    np.testing.assert_allclose(
        [float(row["f"]) for row in rows], np.ravel(whole.predict(**at, time=times)), atol=1e-9
    )


def test_what_does_not_go_on_is_refused(folder, tmp_path, grown):
    before = grown.read_bytes()
    assert "more than one of the files" in refusal("update", grown, folder / "next.nc")
    other = waves(45, 9, 14, dtype="float64").isel(time=slice(40, 45))
    other.to_netcdf(tmp_path / "other.nc")
    assert "lat" in refusal("update", grown, tmp_path / "other.nc")
    assert "no file" in refusal("update", grown, tmp_path / "none.nc")
    for words in (["--window", 5], ["--retune"], ["--replace"], ["--max-rank", 9]):
        line = refusal("update", grown, folder / "next.nc", *words, code=2)
        assert words[0] in line
    for words in (["--var", "f"], ["--obs-error", "0.1"]):
        assert words[0] in refusal("update", grown, folder / "next.nc", *words, code=2)
    assert grown.read_bytes() == before


def test_files_that_hold_and_refer_are_not_updated(folder, tmp_path, little):
    from dataclasses import replace

    from dkrls_cli.model.saving import save_models

    dkrls("fit", folder / "a.nc", *GIVEN, "-o", tmp_path / "m.npz")
    held = replace(load_model(in_memory(folder, tmp_path)), name="g")
    save_models([load_model(tmp_path / "m.npz"), held], tmp_path / "two.npz")
    line = refusal("update", tmp_path / "two.npz", folder / "next.nc", code=2)
    assert "g holds it" in line
