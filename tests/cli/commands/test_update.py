"""``dkrls update``: files of new slices, in place, one at a time, and nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from shell import PATIENCE, ROOT, dkrls, refusal

from dkrls_cli import fit, load_model
from dkrls_cli.cli.commands.update import Change, report_change
from dkrls_cli.cli.report import Report
from dkrls_cli.errors import OutputError
from dkrls_cli.files.output.locks import lock_file
from dkrls_cli.files.reading import open_source

DAYS = np.datetime64("2024-01-01", "ns") + np.arange(40) * np.timedelta64(1, "D")
SETTINGS = ["--kernel", "matern52", "--sigma", "x=0.4", "--sigma", "time=144", "--ridge", "1e-3"]


def field() -> xr.DataArray:
    x = np.linspace(0, 1, 12)
    values = np.sin(np.arange(40) / 5)[:, None] * np.cos(3 * x) + 4
    values += 0.05 * np.random.default_rng(0).normal(size=values.shape)
    coords = {"time": DAYS, "x": ("x", x, {"units": "km"})}
    return xr.DataArray(values, coords, ("time", "x"), "flow", {"units": "m3 s-1"})


def written(array: xr.DataArray, path: Path, since: str = "2024-01-01") -> Path:
    if path.suffix == ".csv":
        array.to_series().reset_index().to_csv(path, index=False)
    elif path.suffix == ".zarr":
        encoding = {"time": {"units": f"days since {since}"}}
        array.to_dataset().to_zarr(path, encoding=encoding, consolidated=False)
    else:
        array.to_netcdf(path, encoding={"time": {"units": f"hours since {since}"}})
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    start = written(field().isel(time=slice(0, 30)), tmp_path / "start.nc")
    dkrls("fit", start, "-o", tmp_path / "m.npz", *SETTINGS)
    return tmp_path / "m.npz"


def answers(model: Path) -> list[str]:
    """What a model says between and beyond its coordinates."""
    at = ["--at", "x=0.33,0.7", "--at", "time=2024-01-10T06:00,2024-02-10"]
    return dkrls("predict", model, *at, "--allow-extrapolation", "--std").stdout.splitlines()


def refitted(model: Path, path: Path, array: xr.DataArray) -> Path:
    """A fit of other slices with the settings and the mean of a model."""
    known = load_model(model)
    grid = open_source([str(written(array, path.with_suffix(".nc")))]).grid()
    fit(grid, levels=known.levels, mean=known.cascade.mean).save(path)
    return path


def assert_same(model: Path, other: Path) -> None:
    mine, theirs = answers(model), answers(other)
    assert mine[0] == theirs[0]
    for one, two in zip(mine[1:], theirs[1:], strict=True):
        *place, value, spread = one.split(",")
        *there, expected, band = two.split(",")
        assert place == there
        assert float(value) == pytest.approx(float(expected), rel=1e-9)
        assert float(spread) == pytest.approx(float(band), rel=1e-6)


@pytest.mark.parametrize("kind", ["nc", "csv", "zarr"])
def test_files_of_every_kind_join(model: Path, tmp_path: Path, kind: str) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / f"new.{kind}", since="1970-01-01")
    told = json.loads(dkrls("update", model, new, "--json").stdout)
    assert (told["slices_before"], told["slices_added"], told["slices"]) == (30, 10, 40)
    assert told["to"].startswith("2024-02-09")
    assert told["forecast_rmse"] > 0
    assert_same(model, refitted(model, tmp_path / "all.npz", field()))


def test_one_slice_with_a_scalar_time(model: Path, tmp_path: Path) -> None:
    for place in (30, 32, 31):
        new = written(field().isel(time=place), tmp_path / f"{place}.nc")
        dkrls("update", model, new)
    whole = field().isel(time=slice(0, 33))
    assert_same(model, refitted(model, tmp_path / "all.npz", whole))


def test_several_files_and_standard_input(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    parts = [
        written(field().isel(time=slice(a, a + 5)), tmp_path / f"part-{a}.csv") for a in (30, 35)
    ]
    dkrls("update", model, tmp_path / "part-*.csv", "-o", other)
    lines = [path.read_text().splitlines() for path in parts]
    stdin = "\n".join([*lines[0], *lines[1][1:]]) + "\n"
    dkrls("update", model, "-", stdin=stdin)
    assert_same(model, other)


def test_a_wide_table_joins(tmp_path: Path) -> None:
    header = "time," + ",".join(f"s{i}" for i in range(5))
    lines = [f"{t}," + ",".join(f"{np.sin(t / 4 + i):.6f}" for i in range(5)) for t in range(20)]
    (tmp_path / "old.csv").write_text("\n".join([header, *lines[:15]]))
    (tmp_path / "new.csv").write_text("\n".join([header, *lines[15:]]))
    model = tmp_path / "m.npz"
    dkrls("fit", tmp_path / "old.csv", "-o", model)
    dkrls("update", model, tmp_path / "new.csv")
    assert load_model(model).shape == (20, 5)


def test_a_known_coordinate_needs_a_word(model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    again = written(field().isel(time=slice(29, 31)) + 1, tmp_path / "again.nc")
    line = refusal("update", model, again)
    assert "2024-01-30" in line
    assert "--replace" in line
    assert model.read_bytes() == before
    dkrls("update", model, again, "--replace")
    changed = field()
    changed[29:31] += 1
    assert_same(model, refitted(model, tmp_path / "all.npz", changed.isel(time=slice(0, 31))))


def test_a_window_is_the_model_of_its_slices(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.nc")
    dkrls("update", model, new, "--window", 15)
    whole = field().isel(time=slice(25, None))
    assert_same(model, refitted(model, tmp_path / "all.npz", whole))


def test_thinning_tells_what_it_costs(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.nc")
    told = json.loads(dkrls("update", model, new, "--max-rank", 20, "--json").stdout)
    assert told["slices"] == 20
    assert told["thinned"]["slices"] == 20
    assert 0 < told["thinned"]["rmse"] < 0.5
    assert "left out" in dkrls("update", model, new, "--max-rank", 19, "--replace").stdout
    assert "thinned" in dkrls("info", model).stdout


def test_gaps_in_new_slices_are_filled(model: Path, tmp_path: Path) -> None:
    holed = field()
    holed[33, 4:6] = np.nan
    new = written(holed.isel(time=slice(30, None)), tmp_path / "new.nc")
    assert "missing" in dkrls("update", model, new).stdout
    at = ["--at", "time=2024-02-03", "--at", "x=all"]
    told = dkrls("predict", model, *at, "--std").stdout.splitlines()[1:]
    cells = [line.split(",") for line in told]
    assert [float(cell[-1]) > 0 for cell in cells] == [i in (4, 5) for i in range(12)]
    truth = field().values[33]
    assert [float(c[-2]) for c in cells] == pytest.approx(truth, abs=0.3)


def test_slices_without_any_value_are_left_out_and_told(model: Path, tmp_path: Path) -> None:
    holed = field()
    holed[33] = np.nan
    new = written(holed.isel(time=slice(30, None)), tmp_path / "new.nc")
    result = dkrls("update", model, new, "--json")
    told = json.loads(result.stdout)
    assert (told["slices_added"], told["slices"]) == (9, 39)
    assert "observed cell left out: 1" in result.stderr


def test_gaps_that_a_window_leaves_behind_are_told_no_more(model: Path, tmp_path: Path) -> None:
    holed = field()
    holed[31, 4:6] = np.nan
    new = written(holed.isel(time=slice(30, 35)), tmp_path / "new.nc")
    later = written(holed.isel(time=slice(35, None)), tmp_path / "later.nc")
    assert "missing" in dkrls("update", model, new).stdout
    assert "missing" not in dkrls("update", model, later, "--window", 5).stdout
    assert "missing" not in dkrls("info", model).stdout


def test_a_drift_is_warned_of_unless_settings_are_chosen_anew(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.nc")
    far = written(field().isel(time=slice(30, None)) * 9, tmp_path / "far.nc")
    out = tmp_path / "out.npz"
    assert "Warning" not in dkrls("update", model, new, "-o", out).stderr
    told = dkrls("update", model, far, "-o", out, "--overwrite")
    assert "times the standard error that the model predicted" in told.stderr
    told = dkrls("update", model, far, "-o", out, "--overwrite", "--retune")
    assert "Warning" not in told.stderr
    before, after = load_model(model).levels, load_model(out).levels
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_marks_of_missing_cells_in_new_data_are_warned_of(model: Path, tmp_path: Path) -> None:
    new = field().isel(time=slice(30, 40))
    new.values[[2, 5], [3, 4]] = -9999
    path = written(new, tmp_path / "new.csv")
    told = "Warning: 2 cells of 'flow' hold -9999, and all others 2."
    rest = ["--holdout", "time=0.3", "--repeats", "1", *SETTINGS]
    for options in (["update", model, path, "-o", tmp_path / "up.npz"], ["validate", path, *rest]):
        assert dkrls(*options).stderr.count(told) == 1
    assert dkrls("validate", path, "--model", model, "--smooth").stderr.count(told) == 1
    told = "Warning: 1 cell of 'flow' holds -9999, and all others"
    assert dkrls("stream", model, stdin=path.read_text()).stderr.count(told) == 1


def test_what_does_not_fit_is_refused_and_nothing_changes(model: Path, tmp_path: Path) -> None:
    new, before = field().isel(time=slice(30, None)), model.read_bytes()
    cases = {
        "in 'l s-1'": new.assign_attrs(units="l s-1"),
        "'x' differ": new.isel(x=slice(0, 6)),
        "dimensions time, y": new.rename(x="y"),
    }
    for i, (words, array) in enumerate(cases.items()):
        assert words in refusal("update", model, written(array, tmp_path / f"{i}.nc"))
    noleap = xr.DataArray(new.values, {"time": np.arange(30.0, 40), "x": new.x}, new.dims, "flow")
    noleap["time"].attrs = {"units": "days since 2024-01-01", "calendar": "noleap"}
    noleap.to_netcdf(tmp_path / "noleap.nc")
    assert "calendar noleap" in refusal("update", model, tmp_path / "noleap.nc")
    assert "no model file" in refusal("update", tmp_path / "no.npz", tmp_path / "noleap.nc")
    assert "no file" in refusal("update", model, tmp_path / "no.nc")
    assert "no folder" in refusal("update", tmp_path / "no" / "m.npz", tmp_path / "noleap.nc")
    (tmp_path / "old.npz").write_bytes(b"old")
    assert "exists" in refusal("update", model, tmp_path / "0.nc", "-o", tmp_path / "old.npz")
    assert model.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(os.name == "nt", reason="other links and permissions there")
def test_links_and_permissions_stay(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.csv")
    link = tmp_path / "latest.npz"
    link.symlink_to(model.name)
    model.chmod(0o600)
    dkrls("update", link, new)
    assert link.is_symlink()
    assert load_model(model).shape == (40, 12)
    assert model.stat().st_mode & 0o777 == 0o600


def test_an_output_that_is_a_folder_is_named(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.csv")
    (tmp_path / "folder").mkdir()
    line = dkrls("update", model, new, "-o", tmp_path / "folder", "--overwrite", code=1).stderr
    assert f"'{tmp_path / 'folder'}' is a folder and cannot be replaced by a file" in line
    assert ".part" not in line


def test_a_lock_is_waited_for_and_taken_away(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "m.npz"
    with lock_file(path, 0.0, said.append):
        other = lock_file(path, 0.2, said.append)
        with pytest.raises(OutputError, match="being changed by another command"):
            other.__enter__()
    assert len(said) == 1
    with lock_file(path, 0.0, said.append):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_updates_at_once_lose_nothing(model: Path, tmp_path: Path) -> None:
    new = [written(field().isel(time=[i]), tmp_path / f"{i}.csv") for i in range(30, 34)]
    command = [sys.executable, "-m", "dkrls_cli", "update", str(model), "--wait", str(PATIENCE)]
    running = [
        subprocess.Popen([*command, str(path)], cwd=ROOT, stdout=subprocess.DEVNULL) for path in new
    ]
    assert [process.wait(PATIENCE) for process in running] == [0] * 4
    assert load_model(model).shape == (34, 12)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
@pytest.mark.parametrize("moment", ["npz.write", "os.replace = Path.replace"])
def test_a_killed_update_leaves_the_old_model_and_no_lock(
    model: Path, tmp_path: Path, moment: str
) -> None:
    """Killed before anything is written, and when all is written but not yet renamed."""
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.csv")
    before = model.read_bytes()
    program = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from dkrls_cli.files import npz\n"
        "from dkrls_cli.__main__ import main\n"
        "def kill(*given, **how):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{moment} = kill\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "update", str(model), str(new)]
    ended = subprocess.run(command, cwd=ROOT, check=False, timeout=PATIENCE)
    assert ended.returncode == -signal.SIGKILL
    assert model.read_bytes() == before
    dkrls("update", model, new, "--wait", "0")
    assert load_model(model).shape == (40, 12)


def test_the_model_itself_may_be_named_as_output(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.nc")
    dkrls("update", model, new, "-o", model)
    assert load_model(model).shape == (40, 12)


def test_new_slices_without_units_are_taken_to_have_those_of_the_model(
    model: Path, tmp_path: Path
) -> None:
    new = written(field().isel(time=slice(30, None)).drop_attrs(), tmp_path / "new.nc")
    told = dkrls("update", model, new, "-o", tmp_path / "out.npz").stderr
    assert told == "Note: 'flow' has no units: taken as 'm3 s-1'.\n"


def test_a_variable_of_another_name_is_noted_unless_it_was_asked_for(
    model: Path, tmp_path: Path
) -> None:
    new = written(field().isel(time=slice(30, None)).rename("other"), tmp_path / "new.nc")
    out = ["-o", tmp_path / "out.npz", "--overwrite"]
    told = dkrls("update", model, new, *out).stderr
    assert told == "Note: 'other' is used as the model's 'flow'.\n"
    assert dkrls("update", model, new, *out, "--var", "other").stderr == ""


def test_only_new_warnings_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def change(before: list[str], after: list[str], empty: int) -> Change:
        models: Any = [SimpleNamespace(origin={"notes": notes}) for notes in (before, after)]
        surprise = SimpleNamespace(drifts=False)
        done: Any = SimpleNamespace(model=models[1], empty=empty, surprise=surprise)
        return Change(*models, done, 0.0)

    report_change(change(["old"], ["old", "new"], 0), Report())
    assert capsys.readouterr().err == "Warning: new.\n"
    report_change(change([], [], 2), Report())
    assert capsys.readouterr().err == "Note: slices without any observed cell left out: 2.\n"


def test_of_several_updates_to_one_new_file_one_wins(model: Path, tmp_path: Path) -> None:
    """All of them see that the file is not there; only the first may write it."""
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.csv")
    command = [sys.executable, "-m", "dkrls_cli", "update", model, new, "-o", tmp_path / "out.npz"]
    pipe = subprocess.PIPE
    runs = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    errors = [run.communicate(timeout=PATIENCE)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 1, 1]
    refused = [text for text in errors if "exists already" in text]
    assert len(refused) == 2
    load_model(tmp_path / "out.npz")


def test_a_model_by_another_name_is_changed_in_place(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.csv")
    (tmp_path / "link.npz").symlink_to(model)
    dkrls("update", model, new, "-o", tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()


def test_an_input_is_not_overwritten(model: Path, tmp_path: Path) -> None:
    new = written(field().isel(time=slice(30, None)), tmp_path / "new.npz.csv")
    (tmp_path / "new.npz").symlink_to(new)
    line = refusal("update", model, new, "-o", tmp_path / "new.npz", "--overwrite")
    assert "is one of the inputs" in line


def test_missing_cells_that_are_not_solved_for_are_an_error_unless_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dkrls_cli.model.updating import refilling

    x, t = np.arange(9.0), np.arange(8.0)
    values = np.sin(np.add.outer(x / 2, t / 3))
    values[np.random.default_rng(1).random((9, 8)) < 0.3] = np.nan
    whole = xr.DataArray(values, {"x": x, "t": t}, ("x", "t"), "v")
    path, new, out = (tmp_path / name for name in ("m.npz", "new.nc", "out.npz"))
    fit(whole.isel(t=slice(0, 6)), kernel="matern52", sigma=3.0, ridge=1e-3).save(path)
    whole.isel(t=slice(6, None)).to_netcdf(new)
    monkeypatch.setattr(refilling, "_LIMIT", 1)
    said = refusal("update", path, new, "-o", out)
    assert "The missing cells are solved for to" in said
    assert said.endswith("Option: --accept-inexact.")
    assert not out.exists()
    told = dkrls("update", path, new, "-o", out, "--accept-inexact", "--retune")
    assert "Warning: the missing cells are solved for to" in told.stderr
    assert out.exists()


@pytest.mark.parametrize("how", [[], ["--window", 15]])
def test_slices_beyond_memory_are_added_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[Any]
) -> None:
    from dkrls_cli.model.chunked import growing

    first, later = field().isel(time=slice(0, 12)), field().isel(time=slice(12, 40))
    written(later, tmp_path / "new.nc")
    dkrls("fit", written(first, tmp_path / "a.nc"), *SETTINGS, "-o", tmp_path / "m.npz")
    words = ["update", tmp_path / "m.npz", tmp_path / "new.nc", *how, "--json", "-o"]
    whole = json.loads(dkrls(*words, tmp_path / "whole.npz").stdout)
    real, blocks = growing.plan_blocks, []
    monkeypatch.setattr(growing, "process_bytes", lambda: 0)
    limit = 2 * 8 * 12 * 28 + 5 * 40 * 12

    def plan(*given: Any) -> list[slice]:
        blocks.append(real(given[0], given[1], limit, *given[3:]))
        return blocks[-1]

    monkeypatch.setattr(growing, "plan_blocks", plan)
    parts = json.loads(dkrls(*words, tmp_path / "parts.npz").stdout)
    assert len(blocks[-1]) > 3 - len(how) / 2
    assert parts.keys() == whole.keys()
    for name in ("slices_before", "slices_added", "slices", "from", "to", "drift", "levels"):
        assert parts[name] == whole[name], name
    for name in ("forecast_rmse", "promised_rmse"):
        assert parts[name] == pytest.approx(whole[name], rel=1e-9)
    at = {"x": [0.33], "time": DAYS[[30]] + np.timedelta64(5, "h")}
    ours, once = (load_model(tmp_path / f"{name}.npz") for name in ("parts", "whole"))
    assert ours.axes[ours.grows].texts == once.axes[once.grows].texts
    np.testing.assert_allclose(ours.predict(**at), once.predict(**at), rtol=1e-9)
    np.testing.assert_allclose(ours.predict(), once.predict(), rtol=1e-9)
    for option in (["--retune"], ["--max-rank", 5]):
        line = refusal(*words[:3], *option, "-o", tmp_path / "none.npz", code=2)
        assert "a few at a time" in line
    assert not (tmp_path / "none.npz").exists()


def test_slices_that_can_only_be_read_whole_are_refused_beyond_memory(tmp_path: Path) -> None:
    first, later = field().isel(time=slice(0, 12)), field().isel(time=slice(12, 40))
    dkrls("fit", written(first, tmp_path / "a.nc"), *SETTINGS, "-o", tmp_path / "m.npz")
    words = ["update", tmp_path / "m.npz", written(later, tmp_path / "new.csv")]
    assert "--max-memory" in refusal(*words, "--max-memory", "1MB")
    dkrls(*words, "--max-memory", "2GB", "--threads", 1)
