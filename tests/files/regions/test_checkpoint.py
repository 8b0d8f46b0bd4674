"""Runs that were killed go on, and give the file that they would have given."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError, OutputError
from dkrls_cli.files.output.names import hidden_beside
from dkrls_cli.files.regions import checkpoint as module
from dkrls_cli.files.regions.checkpoint import Checkpoint, has_checkpoint, open_checkpoint
from dkrls_cli.files.regions.slots import Blank, Slot
from dkrls_cli.files.regions.writer import grid_writer
from dkrls_cli.grid.axes import index_axis
from dkrls_cli.grid.style import Packing, Style

AXES = (index_axis("t", 12), index_axis("x", 5))
VALUES = np.linspace(-2, 30, 60).reshape(12, 5)
VALUES[3, 3] = np.nan
PACKED = Style(packing=Packing("int8", {"scale_factor": 0.25, "_FillValue": np.int8(-100)}))
BLANKS = [
    Blank("v", AXES, {"valid_min": -2.0, "valid_max": 1.0}, Style("float32")),
    Blank("w", AXES, {"valid_max": 30.0}, PACKED),
]
OPTIONS: dict[str, Any] = {"overwrite": False, "regions": {"t": 2}}


@pytest.fixture(autouse=True)
def dated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")


class KilledError(Exception):
    """Stands for a kill: nothing of the run is cleaned up but by itself."""


def run(output: Path, stop_before: float = np.inf, resume: bool = True, **key: Any) -> list[str]:
    """Write what is not done of six regions, and stop before one of them; return the notes."""
    source = output.parent / "input.txt"
    if not source.exists():
        source.write_text("values")
    with (
        open_checkpoint(
            str(output), {"rows": 2, **key}, [str(source)], resume=resume
        ) as checkpoint,
        checkpoint.writer(BLANKS, ["dkrls"], **OPTIONS) as writer,
    ):
        for number in range(6):
            if number in checkpoint.done:
                continue
            part = (slice(2 * number, 2 * number + 2), slice(0, 5))
            for name in "vw":
                writer.write(name, part, VALUES[part])
                if number >= stop_before:
                    raise KilledError  # in the middle of a region
            checkpoint.mark(number)
    return writer.notes


def whole(folder: Path, ending: str) -> Path:
    path = folder / f"whole.{ending}"
    with grid_writer(str(path), BLANKS, ["dkrls"], **OPTIONS) as writer:
        for name in "vw":
            writer.write(name, (slice(0, 12), slice(0, 5)), VALUES)
    return path


def same(one: Path, other: Path) -> None:
    """Compare raw values, attributes and encodings."""
    zarr: Any = {"engine": "zarr"} if one.is_dir() else {}
    with (
        xr.open_dataset(one, decode_cf=False, **zarr) as mine,
        xr.open_dataset(other, decode_cf=False, **zarr) as theirs,
    ):
        xr.testing.assert_identical(mine, theirs)
        for name in "vw":
            skipped = ("source",)
            codes = [
                {k: v for k, v in each[name].encoding.items() if k not in skipped}
                for each in (mine, theirs)
            ]
            assert codes[0] == codes[1]


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


ENDINGS = pytest.mark.parametrize("ending", ["nc", "zarr"])


@ENDINGS
def test_a_run_goes_on_where_it_was_stopped(ending: str, tmp_path: Path) -> None:
    output = tmp_path / f"out.{ending}"
    for stop in (0, 3, 3, 5):
        with pytest.raises(KilledError):
            run(output, stop)
        assert has_checkpoint(str(output))
        assert not output.exists()
    notes = run(output)
    assert not has_checkpoint(str(output))
    assert left(tmp_path) == {output.name, "input.txt"}
    same(output, whole(tmp_path, ending))
    assert notes == run(tmp_path / f"again.{ending}")


@ENDINGS
def test_a_disk_that_is_full_is_told_with_the_output(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / f"out.{ending}"

    def fail(*args: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Slot, "store", fail)
        with pytest.raises(OutputError, match=rf"out\.{ending}.* cannot be written \(No space"):
            run(output)
    run(output)  # goes on
    same(output, whole(tmp_path, ending))


@ENDINGS
def test_a_run_that_is_not_resumed_begins_anew(ending: str, tmp_path: Path) -> None:
    output = tmp_path / f"out.{ending}"
    with pytest.raises(KilledError):
        run(output, 3)
    with pytest.raises(KilledError):
        run(output, 1, resume=False)
    folder = hidden_beside(output, ".dkrls-resume")
    assert Checkpoint(str(output), folder).done == {0}


@ENDINGS
def test_regions_that_are_gone_are_not_done(ending: str, tmp_path: Path) -> None:
    output = tmp_path / f"out.{ending}"
    with pytest.raises(KilledError):
        run(output, 3)
    folder = hidden_beside(output, ".dkrls-resume")
    (folder / ("store.zarr" if ending == "zarr" else "parts")).rename(tmp_path / "elsewhere")
    run(output)
    same(output, whole(tmp_path, ending))


@ENDINGS
@pytest.mark.parametrize("old", [False, True])
def test_a_run_that_was_killed_when_its_output_was_made_is_done(
    ending: str, old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an old output in the place, and without one."""
    output = tmp_path / f"out.{ending}"
    if old:
        monkeypatch.setitem(OPTIONS, "overwrite", True)
        whole(tmp_path, ending).rename(output)
        if ending == "zarr":
            (output / "v" / "0.0").write_bytes(b"other")
    really = module.shutil.rmtree

    def killed(path: Path, **options: Any) -> None:
        if str(path).endswith("dkrls-resume"):
            raise KilledError
        really(path, **options)

    monkeypatch.setattr(module.shutil, "rmtree", killed)
    with pytest.raises(KilledError):
        run(output)
    monkeypatch.setattr(module.shutil, "rmtree", really)
    assert output.exists()
    run(output)
    same(output, whole(tmp_path, ending))
    assert not has_checkpoint(str(output))


@ENDINGS
def test_an_output_of_others_is_not_replaced(ending: str, tmp_path: Path) -> None:
    output = tmp_path / f"out.{ending}"
    with pytest.raises(KilledError):
        run(output, 3)
    whole(tmp_path, ending).rename(output)
    with pytest.raises(OutputError, match="exists already"):
        run(output)


def test_a_line_of_the_log_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    output = tmp_path / "out.nc"
    with pytest.raises(KilledError):
        run(output, 3)
    log = hidden_beside(output, ".dkrls-resume") / "log"
    with open(log, "a") as file:
        file.write('{"done": 4')
    assert Checkpoint(str(output), log.parent).done == {0, 1, 2}
    with pytest.raises(KilledError):
        run(output, 4)
    assert Checkpoint(str(output), log.parent).done == {0, 1, 2, 3}
    run(output)
    same(output, whole(tmp_path, "nc"))


def test_another_run_is_not_resumed(tmp_path: Path) -> None:
    output = tmp_path / "out.nc"
    with pytest.raises(KilledError):
        run(output, 3, sigma=0.5)
    with pytest.raises(InputError, match=r"was another one: sigma was 0\.5, is 0\.6\. Begin"):
        run(output, sigma=0.6)
    with pytest.raises(InputError, match=r"sigma was 0\.5, is not there; levels was not there"):
        run(output, levels=["x"])
    (tmp_path / "input.txt").write_text("others")
    words = "input has changed since the run that is to be resumed: input.txt has other contents"
    with pytest.raises(InputError, match=words):
        run(output, sigma=0.5)
    assert run(output, resume=False, sigma=0.6) == []


def test_another_version_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out.nc"
    with pytest.raises(KilledError):
        run(output, 3)
    monkeypatch.setattr(module, "__version__", "99.0.0")
    with pytest.raises(InputError, match=r"version of dkrls was [\d.]+, is 99\.0\.0"):
        run(output)


def test_inputs_may_be_known_by_contents(tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", str(tmp_path / "m.npz")
    for contents in (True, False):
        source.write_text("abc")
        options: dict[str, Any] = {"resume": True, "contents": contents}
        with pytest.raises(KilledError), open_checkpoint(output, {}, [str(source)], **options):
            raise KilledError
        os.utime(source, ns=(1, 1))
        if not contents:
            with (
                pytest.raises(InputError, match="has changed"),
                open_checkpoint(output, {}, [str(source)], **options),
            ):
                pass
            continue
        with open_checkpoint(output, {}, [str(source)], **options):
            pass


def test_two_runs_do_not_share_an_output(tmp_path: Path) -> None:
    output = str(tmp_path / "out.nc")
    with open_checkpoint(output, {}, [], resume=True):
        with (
            pytest.raises(OutputError, match=r"out\.nc' is being made by another run\. Wait"),
            open_checkpoint(output, {}, [], resume=True),
        ):
            pass
        with open_checkpoint(str(tmp_path / "other.nc"), {}, [], resume=True):
            pass
    assert left(tmp_path) == set()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    output = str(tmp_path / "absent" / "out.nc")
    with (
        pytest.raises(OutputError, match="no folder"),
        open_checkpoint(output, {}, [], resume=True),
    ):
        pass


def test_a_state_is_kept_with_what_has_gone_into_it(tmp_path: Path) -> None:
    output = str(tmp_path / "m.npz")
    state = {"core": np.arange(6.0).reshape(2, 3), "count": np.array(7)}

    def begin() -> None:
        with open_checkpoint(output, {}, [], resume=True) as checkpoint:
            assert checkpoint.load_state() is None
            checkpoint.save_state(state, [0, 1])
            checkpoint.save_state({name: value + 1 for name, value in state.items()}, {2, 0, 1})
            raise KilledError

    with pytest.raises(KilledError):
        begin()
    with open_checkpoint(output, {}, [], resume=True) as checkpoint:
        found = checkpoint.load_state()
        assert checkpoint.done == {0, 1, 2}
        assert found is not None
        for name, value in state.items():
            np.testing.assert_array_equal(found[name], value + 1)


def test_regions_that_are_missing_are_an_error(tmp_path: Path) -> None:
    output = tmp_path / "out.nc"
    with (
        pytest.raises(OutputError, match="is not whole"),
        open_checkpoint(str(output), {}, [], resume=True) as checkpoint,
        checkpoint.writer(BLANKS, [], **OPTIONS) as writer,
    ):
        writer.write("v", (slice(0, 2), slice(0, 5)), VALUES[:2])
    assert not output.exists()


@ENDINGS
def test_other_processes_return_what_is_marked(ending: str, tmp_path: Path) -> None:
    output = tmp_path / f"out.{ending}"

    def stopped(after: int) -> Iterator[int]:
        with (
            open_checkpoint(str(output), {}, [], resume=True) as checkpoint,
            checkpoint.writer(BLANKS, ["dkrls"], **OPTIONS) as writer,
        ):
            remote = writer.remote()
            assert remote is not None
            for number in sorted(set(range(6)) - checkpoint.done):
                part = (slice(2 * number, 2 * number + 2), slice(0, 5))
                tallies = {name: remote.write(name, part, VALUES[part]) for name in "vw"}
                checkpoint.mark(number, tallies)
                yield number
                if number == after:
                    raise KilledError

    with pytest.raises(KilledError):
        list(stopped(3))
    assert list(stopped(9)) == [4, 5]
    same(output, whole(tmp_path, ending))


KILLS = """
import os, random, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
import netCDF4, xarray, zarr
import test_checkpoint as test

draw, output, kills = random.Random(int(sys.argv[2])), Path(sys.argv[1]), 0
while True:
    left = draw.randint(1, 300) if kills < 6 else 0
    child = os.fork()
    if not child:
        def count(event, _):
            global left
            if event.split(".")[0] in ("open", "os", "shutil"):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(count)
        test.run(output)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status == 0:
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, status
    kills += 1
print(kills)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@ENDINGS
def test_a_run_that_is_killed_at_any_moment_gives_the_same_file(
    ending: str, tmp_path: Path
) -> None:
    """Killed before the n-th file is opened, made, renamed or removed, for random n."""
    expected, own = whole(tmp_path, ending), Path(__file__).parent
    output = tmp_path / f"out.{ending}"
    words = [sys.executable, "-c", KILLS, output, "5", own, own.parents[1]]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=100)
    same(output, expected)
    assert not has_checkpoint(str(output))
    assert int(done.stdout) > 2
