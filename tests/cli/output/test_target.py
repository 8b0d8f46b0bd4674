"""Where a command writes to, and in which format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from shell import HERE, dkrls, refusal

from dkrls_cli.cli.output.target import Target, chosen_target, grid_target
from dkrls_cli.cli.report import Report
from dkrls_cli.errors import OutputError, SettingError


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["-o", "answers"],
            "The format of 'answers' is not known. End the name in one of .csv",
        ),
        (["-o", "o.PDF"], "'o.PDF' is the name of a picture, and this command writes values"),
        (["-o", "o.csv", "--format", "nc"], "do not go together"),
        (["--format", "xml"], "'--format': 'xml'. Choose from: csv, jsonl, nc."),
        (["--json", "--format", "csv"], "--json and --format csv both write to stdout"),
    ],
)
def test_formats_that_make_no_sense(model: Path, options: list[str], reason: str) -> None:
    assert reason in refusal("predict", model, *options, code=2)


def test_a_name_without_ending_takes_the_format(model: Path, tmp_path: Path) -> None:
    dkrls("predict", model, *HERE, "-o", tmp_path / "answers", "--format", "csv")
    assert (tmp_path / "answers").read_text().startswith("time,lat,lon,t\n")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((None, None, False), (None, "csv")),
        (("-", None, False), (None, "csv")),
        ((None, "jsonl", False), (None, "jsonl")),
        (("-", None, True), (None, "json")),
        (("o.csv", None, False), ("o.csv", "csv")),
        (("o.JSONL", None, True), ("o.JSONL", "jsonl")),
        (("o.ndjson", None, False), ("o.ndjson", "jsonl")),
        (("o.zarr/", None, False), ("o.zarr", "zarr")),
        (("o.nc4", "nc", False), ("o.nc4", "nc")),
        (("o.cdf", None, False), ("o.cdf", "nc")),
        (("o.txt", "csv", False), ("o.txt", "csv")),
        (("o.png", "csv", False), ("o.png", "csv")),
    ],
)
def test_the_format_is_what_was_asked_for_or_what_the_name_ends_in(
    given: tuple[str | None, str | None, bool], expected: tuple[str | None, str]
) -> None:
    for overwrite in (False, True):
        assert chosen_target(*given, overwrite) == Target(*expected, overwrite)


def test_a_grid_goes_to_a_file_for_grids(tmp_path: Path) -> None:
    for name, form in (("g.nc", "nc"), ("g.zarr", "zarr")):
        path = str(tmp_path / name)
        assert grid_target(path, False, None, Report()) == Target(path, form, False)
    for wrong in ("-", str(tmp_path / "g.csv")):
        with pytest.raises(SettingError, match="cannot be written as a grid"):
            grid_target(wrong, False, None, Report())
    (tmp_path / "g.nc").touch()
    with pytest.raises(OutputError, match="exists"):
        grid_target(str(tmp_path / "g.nc"), False, None, Report())
    grid_target(str(tmp_path / "g.nc"), True, None, Report())


def test_stdout_can_always_be_written() -> None:
    Target(None, "csv", False).refuse_unwritable(Report())


@pytest.mark.parametrize("name", ["m.h5", "m", "m.npz.gz", "m.nc"])
def test_a_model_goes_to_a_file_for_models(
    globe: Path, model: Path, tmp_path: Path, name: str
) -> None:
    for words in (["fit", globe], ["update", model, globe], ["stream", model]):
        line = refusal(*words, "-o", tmp_path / name, code=2, stdin="")
        right = tmp_path / f"{Path(name).stem}.npz"
        assert f"'{tmp_path / name}' does not end in .npz" in line
        assert line.endswith(f"Write -o {right}.")
    assert not list(tmp_path.iterdir())


def test_a_model_of_another_name_may_be_changed_in_place(globe: Path, tmp_path: Path) -> None:
    dkrls("fit", globe, "-o", tmp_path / "M.NPZ", "--ridge", "1")
    (tmp_path / "M.NPZ").rename(tmp_path / "old.model")
    for extra in ([], ["-o", tmp_path / "old.model"]):
        dkrls("update", tmp_path / "old.model", globe, "--replace", *extra)


def test_no_command_replaces_what_it_reads(globe: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("lat,lon,time\n0,7,2020-01-03\n")
    for words in (
        ["fill", globe, "-o", globe],
        ["regrid", globe, "-o", globe, "--like", "r8x4"],
        ["predict", model, "--points", tmp_path / "p.csv", "-o", tmp_path / "p.csv"],
        ["predict", model, "--like", globe, "-o", globe],
        ["predict", model, "-o", model, "--format", "csv"],
        ["info", model, "--weights", tmp_path / "link.nc"],
    ):
        if words[0] == "info":
            (tmp_path / "link.nc").symlink_to(model)
        assert "is one of the inputs" in refusal(*words, "--overwrite")


def test_what_a_killed_command_left_is_told(globe: Path, tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f".m.npz.{ended.pid}.part").touch()
    told = dkrls("fit", globe, "-o", tmp_path / "m.npz", "--sigma", "20").stderr
    assert "Note: an unfinished 'm.npz', left by a command that was killed, is removed." in told
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
