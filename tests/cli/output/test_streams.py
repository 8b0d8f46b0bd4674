"""Commands beyond memory: part by part, within the memory that is told, the same answers."""

import json

import numpy as np
import pytest
import xarray as xr
from chunked_grids import globe
from shell import dkrls, peak_of, refusal

GIVEN = ["--kernel", "matern52", "--sigma", "lat=40,lon=50,time=3", "--ridge", "1e-2"]
AT = ["--at", "lat=-90:90:10", "--at", "lon=0:350:10"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    data = globe()
    data.attrs = {"units": "K", "long_name": "field"}
    data.to_netcdf(folder / "grid.nc", encoding={"f": {"chunksizes": (2, 13, 12)}})
    data.to_dataset().to_zarr(
        folder / "grid.zarr", encoding={"f": {"chunks": (2, 13, 12)}}, zarr_format=2
    )
    both = data.to_dataset(name="f").assign(g=2 * data + 1)
    both.to_netcdf(folder / "both.nc")
    packed = {"dtype": "i2", "scale_factor": 1e-3, "_FillValue": -9999}
    data.to_netcdf(folder / "packed.nc", encoding={"f": packed})
    return folder


@pytest.fixture
def little(monkeypatch):
    """Let fits in memory be too large, whatever the size of the grid."""
    from dkrls_cli.cli.commands import regrid

    monkeypatch.setattr(regrid, "exceeds", lambda *a: True)


@pytest.mark.parametrize("name", ["grid.nc", "grid.zarr", "packed.nc"])
@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_answers_and_errors_are_those_in_memory(
    folder, tmp_path, little, monkeypatch, name, ending
):
    words = ["regrid", folder / name, *AT, *GIVEN, "--std"]
    streamed = dkrls(*words, "-o", tmp_path / f"parts.{ending}")
    assert streamed.exit_code == 0, streamed.stderr
    assert "goes part by part" in streamed.stderr
    monkeypatch.undo()
    assert dkrls(*words, "-o", tmp_path / f"whole.{ending}").exit_code == 0
    parts, whole = (
        xr.load_dataset(tmp_path / f"{one}.{ending}", engine="zarr" if ending == "zarr" else None)
        for one in ("parts", "whole")
    )
    step = 2e-3 if name == "packed.nc" else 1e-5  # the mean is that of a part
    np.testing.assert_allclose(parts.f, whole.f, atol=step)
    assert parts.f.attrs == whole.f.attrs
    assert parts.f_std.attrs == whole.f_std.attrs
    assert (parts.f_std.isnull() == whole.f_std.isnull()).all()
    assert set(parts.variables) == set(whole.variables)


def test_errors_are_near_those_in_memory(folder, tmp_path, little, monkeypatch):
    """They are calibrated on a part of the grid; rows are made once, for what is run."""
    from dkrls_cli.model.streaming import request

    monkeypatch.setattr(request, "plan_regrid", lambda *a, **k: pytest.fail("planned for itself"))
    words = ["regrid", folder / "grid.nc", *AT, *GIVEN, "--std"]
    assert dkrls(*words, "-o", tmp_path / "parts.nc").exit_code == 0
    monkeypatch.undo()
    assert dkrls(*words, "-o", tmp_path / "whole.nc").exit_code == 0
    parts, whole = (xr.load_dataset(tmp_path / f"{one}.nc") for one in ("parts", "whole"))
    ratio = (parts.f_std / whole.f_std).where(whole.f_std > 0)
    assert 0.7 < float(ratio.median()) < 1.4


def test_several_variables_go_into_one_file(folder, tmp_path, little):
    out = tmp_path / "both.nc"
    done = dkrls("regrid", folder / "both.nc", "--var", "all", *AT, *GIVEN, "-o", out, "--json")
    assert done.exit_code == 0, done.stderr
    assert [one["variable"] for one in json.loads(done.stdout)["variables"]] == ["f", "g"]
    both = xr.load_dataset(out)
    np.testing.assert_allclose(both.g, 2 * both.f + 1, atol=1e-10)


def test_a_dry_run_tells_the_plan_and_writes_nothing(folder, tmp_path, little):
    out = tmp_path / "none.nc"
    done = dkrls("regrid", folder / "grid.nc", *AT, "-o", out, "--dry-run", "--json")
    plan = json.loads(done.stdout)
    assert not out.exists()
    assert plan["bytes_written"] == 8 * 14 * 19 * 36
    assert plan["passes"] >= 1
    assert plan["parts"] >= 1
    assert plan["bytes_read"] >= 8 * 14 * 13 * 12
    told = dkrls("regrid", folder / "grid.nc", *AT, "-o", out, "--dry-run").stdout
    assert "parts" in told
    assert "written" in told


def test_a_dry_run_in_memory_tells_what_a_fit_takes(folder, tmp_path):
    done = dkrls("regrid", folder / "grid.nc", *AT, "-o", tmp_path / "a.nc", "--dry-run", "--json")
    assert json.loads(done.stdout)["memory_bytes"] > 0
    assert not (tmp_path / "a.nc").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "-"], "Give -o OUT.nc or OUT.zarr"),
        (["-o", "out.csv"], "Give -o OUT.nc or OUT.zarr"),
        (["-o", "out.nc", "--noise", "joint"], "joint ridge needs the whole grid"),
        (["-o", "out.nc", "--robust"], "robust fit needs the whole grid"),
        (["-o", "out.nc", "--mean-over", "lat", "--std"], "Standard errors of means over regions"),
        (["-o", "out.nc", "--scheduler", "local:0"], "no local scheduler"),
        (["-o", "out.nc", "--scheduler", "local", "--scheduler-file", "x"], "do not go together"),
    ],
)
def test_what_cannot_go_part_by_part_is_one_line(
    folder, tmp_path, little, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    at = AT[2:] if "--mean-over" in words else AT
    assert message in refusal("regrid", folder / "grid.nc", *at, *words, code=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--resume"], ["--scheduler", "local:2"]])
@pytest.mark.parametrize("command", ["fit", "regrid"])
def test_tables_do_not_go_part_by_part(tmp_path, command, option):
    (path := tmp_path / "t.csv").write_text("x,y,v\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n")
    out = tmp_path / ("m.npz" if command == "fit" else "o.nc")
    words = [command, path, "-o", out, *(["--at", "x=0.5"] if command == "regrid" else [])]
    assert "can only be read as a whole" in refusal(*words, *option, code=2)
    assert not out.exists()


def test_missing_cells_say_what_to_try(folder, tmp_path, little):
    data = xr.load_dataset(folder / "grid.nc")
    data.f[3, 2, 1] = np.nan
    data.isel(lon=1).drop_vars("lon").drop_attrs().rename(lat="band").to_netcdf(
        tmp_path / "holes.nc"
    )
    words = ["regrid", tmp_path / "holes.nc", "--at", "band=-80:80:3", "-o", tmp_path / "out.nc"]
    assert "fill it first" in refusal(*words, "--kernel", "matern52")
    assert not (tmp_path / "out.nc").exists()


def test_outputs_are_compressed_as_inputs_are(folder, tmp_path, little):
    data = xr.load_dataset(folder / "grid.nc")
    data.to_netcdf(tmp_path / "zipped.nc", encoding={"f": {"zlib": True, "complevel": 1}})
    for name, words, level in (
        (folder / "grid.nc", [], False),
        (tmp_path / "zipped.nc", [], None),
        (folder / "grid.nc", ["--compress", "4"], True),
    ):
        out = tmp_path / "out.nc"
        at = ["--at", "lat=-90:90:2", "--at", "lon=0:350:1"]
        dkrls("regrid", name, *at, *GIVEN, "-o", out, "--overwrite", *words)
        with xr.open_dataset(out) as found:
            assert found.f.encoding["zlib"] == (level is not False)


@pytest.mark.parametrize("ending", ["nc", "zarr"])
@pytest.mark.parametrize("stop", [0, 2, 5])
def test_an_interrupted_run_is_resumed(folder, tmp_path, monkeypatch, ending, stop):
    from dkrls_cli.files.regions.checkpoint import Checkpoint

    out = tmp_path / f"out.{ending}"
    words = ["regrid", folder / "grid.nc", *AT, *GIVEN, "--std", "--resume", "-o", out]
    real, marked = Checkpoint.mark, []

    def mark(self, number, tallies=None):
        if len(marked) == stop:
            raise KeyboardInterrupt
        marked.append(number)
        real(self, number, tallies)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "mark", mark)
        dkrls(*words, code=130)
    assert not out.exists()
    assert marked == list(range(stop))
    again = dkrls(*words, "--quiet" if stop else "--json")
    assert again.exit_code == 0
    words[-1] = tmp_path / f"once.{ending}"
    dkrls(*words)
    engine = "zarr" if ending == "zarr" else None
    xr.testing.assert_identical(
        xr.load_dataset(out, engine=engine).drop_attrs(),
        xr.load_dataset(words[-1], engine=engine).drop_attrs(),
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([out.name, words[-1].name])


def test_a_run_on_other_input_is_not_resumed(folder, tmp_path, monkeypatch):
    from dkrls_cli.files.regions.checkpoint import Checkpoint

    data = xr.load_dataset(folder / "grid.nc")
    data.to_netcdf(tmp_path / "in.nc")
    words = ["regrid", tmp_path / "in.nc", *AT, *GIVEN, "--resume", "-o", tmp_path / "out.nc"]
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "mark", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt()))
        dkrls(*words, code=130)
    (tmp_path / "in.nc").unlink()
    (data + 1).to_netcdf(tmp_path / "in.nc")
    assert "changed" in refusal(*words)


@pytest.mark.slow
def test_the_memory_that_is_told_is_kept(tmp_path):
    """84 MB of float64 data in 340 MB, of which the process takes most."""
    rng = np.random.default_rng(0)
    shape = (200, 160, 330)
    data = xr.DataArray(
        rng.standard_normal(shape),
        {"time": np.arange(200.0), "y": np.arange(160.0), "x": np.arange(330.0)},
        ("time", "y", "x"),
        name="f",
    )
    data.to_netcdf(tmp_path / "a.nc", encoding={"f": {"chunksizes": (1, 160, 330)}})
    words = ["regrid", str(tmp_path / "a.nc"), "--at", "y=0:159:0.5", "--at", "x=0:329:0.5"]
    words += ["--kernel", "matern52", "--sigma", "4", "--ridge", "1e-2", "--json"]
    words += ["--max-memory", "340MB", "-o", str(tmp_path / "o.nc")]
    done, used = peak_of(words)
    told = json.loads(done.stdout)["memory_bytes"]
    assert told <= 340e6
    assert used < 1.5 * told
    with xr.open_dataset(tmp_path / "o.nc") as found:
        assert found.f.shape == (200, 319, 659)


@pytest.mark.parametrize("encoding", [{}, {"dtype": "i2", "scale_factor": 1e-3}])
def test_land_stays_land_and_the_sea_is_that_of_every_time(tmp_path, little, monkeypatch, encoding):
    data = globe()
    data[:, 4:8, 3:7] = np.nan
    data[:, 0] = np.nan
    form = {"chunksizes": (1, 13, 12), "_FillValue": -9999, **encoding}
    data.to_netcdf(tmp_path / "sea.nc", encoding={"f": form})
    given = ["--kernel", "matern52", "--sigma", "lat=40,lon=50,time=1e-3", "--ridge", "1e-3"]
    words = ["regrid", tmp_path / "sea.nc", *AT, *given, "--group", "none"]
    streamed = dkrls(*words, "--std", "-o", tmp_path / "parts.nc")
    assert streamed.exit_code == 0, streamed.stderr
    monkeypatch.undo()
    assert dkrls(*words, "-o", tmp_path / "whole.nc").exit_code == 0
    parts, whole = (xr.load_dataset(tmp_path / f"{one}.nc").f for one in ("parts", "whole"))
    assert 0.1 < float(whole.isnull().mean()) < 0.5
    np.testing.assert_array_equal(parts.isnull(), whole.isnull())
    np.testing.assert_allclose(parts, whole, atol=3e-3)  # the mean is that of a part
    errors = xr.load_dataset(tmp_path / "parts.nc").f_std
    np.testing.assert_array_equal(errors.isnull(), whole.isnull())
    np.testing.assert_array_equal(errors, np.broadcast_to(errors.values[:1], errors.shape))
    assert 0.01 < float(errors.mean()) < 1.0
    assert parts.attrs == {**whole.attrs, "ancillary_variables": "f_std"}


@pytest.mark.parametrize("land", [True, False])
def test_gaps_at_some_times_are_answered_time_by_time(tmp_path, little, monkeypatch, land):
    data = globe()
    data[:, 4:8, 3:7] = np.nan if land else data[:, 4:8, 3:7]
    data[2, 9, 9] = np.nan
    data[5] = data[5].where(data.lon < 200)
    data.to_netcdf(tmp_path / "gaps.nc", encoding={"f": {"chunksizes": (1, 13, 12)}})
    given = ["--kernel", "matern52", "--sigma", "lat=40,lon=50,time=1e-3", "--ridge", "1e-3"]
    words = ["regrid", tmp_path / "gaps.nc", *AT, *given, "--group", "none", "--poles", "none"]
    streamed = dkrls(*words, "-o", tmp_path / "parts.nc")
    assert "is read once more" in streamed.stderr
    assert "each is answered on its own" in streamed.stderr
    monkeypatch.undo()
    dkrls(*words, "-o", tmp_path / "whole.nc")
    parts, whole = (xr.load_dataset(tmp_path / f"{one}.nc").f for one in ("parts", "whole"))
    assert (float(whole.isnull().mean()) > 0.12) == land
    np.testing.assert_array_equal(parts.isnull(), whole.isnull())
    np.testing.assert_allclose(parts, whole, atol=3e-3)  # the mean is that of a part


@pytest.mark.parametrize("seen", [True, False])
def test_gaps_at_some_times_are_resumed(tmp_path, little, monkeypatch, seen):
    """Also if they are found when the first parts are written already."""
    from dkrls_cli.files.regions.checkpoint import Checkpoint
    from dkrls_cli.model.chunked import panels

    monkeypatch.setattr(panels, "_CHEAP", 0)
    data = globe()
    data[13 if not seen else slice(0, None, 2), 4:6, 3] = np.nan
    data.to_netcdf(tmp_path / "gaps.nc", encoding={"f": {"chunksizes": (1, 13, 12)}})
    given = ["--kernel", "matern52", "--sigma", "lat=40,lon=50,time=1e-3", "--ridge", "1e-3"]
    words = ["regrid", tmp_path / "gaps.nc", *AT, *given, "--group", "none", "--poles", "none"]
    words += ["--threads", 1, "--bounds", "none"]
    dkrls(*words, "-o", tmp_path / "once.nc")
    words += ["--resume", "-o", tmp_path / "out.nc"]
    real, marked = Checkpoint.mark, []

    def mark(self, number, tallies=None):
        if len(self.done) == 2 and "scattered" in (self.folder / "key.json").read_text():
            raise KeyboardInterrupt
        marked.append(number)
        real(self, number, tallies)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "mark", mark)
        first = dkrls(*words, code=130)
    assert "is read once more" in first.stderr
    again = dkrls(*words)
    assert "resuming" in again.stderr
    assert "is read once more" not in again.stderr
    found, once = (xr.load_dataset(tmp_path / f"{name}.nc").f for name in ("out", "once"))
    np.testing.assert_array_equal(found, once)


def test_a_dry_run_sees_land(tmp_path, little):
    data = globe()
    data[:, 4:8, 3:7] = np.nan
    data.to_netcdf(tmp_path / "sea.nc", encoding={"f": {"chunksizes": (1, 13, 12)}})
    words = ["regrid", tmp_path / "sea.nc", *AT, "--kernel", "matern52", "--sigma", "40"]
    words += ["--ridge", "1e-3", "-o", tmp_path / "out.nc", "--json", "--overwrite"]
    plan = json.loads(dkrls(*words, "--dry-run").stdout)
    assert not (tmp_path / "out.nc").exists()
    done = json.loads(dkrls(*words).stdout)
    assert {key: plan[key] for key in ("parts", "land", "outside", "bytes_written")} == {
        key: done[key] for key in ("parts", "land", "outside", "bytes_written")
    }
    assert plan["land"] > 0
    assert 0 < plan["bytes_read"] - data.nbytes <= 3 * data[0].nbytes  # slices for the mean
    bars = json.loads(dkrls(*words, "--std", "--dry-run").stdout)
    assert bars["bytes_written"] == 2 * plan["bytes_written"]
    assert bars["bytes_read"] > plan["bytes_read"]  # slices for the error bars
    refused = dkrls(*words, "--missing", "error", "--dry-run", code=1)
    assert "missing" in refused.stderr
