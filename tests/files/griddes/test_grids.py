"""Grids by name and by description, against CDO where it is there."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sample_files import EAST, LAT, LON, NORTH, asked_of, grid
from shell import csv_rows, dkrls, refusal

from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.grids import describe_grid
from dkrls_cli.grid.axes import axis_of

NAMES = ["r360x180", "r5x4", "r4x5", "r6x1", "r1x5", "R7x3", "global_1", "global_0.25"]
NAMES += ["global_7", "global_7.1", "global_100", "n8", "N32", "F8", "f3", "t1grid", "t21grid"]
NAMES += ["t30grid", "T63grid", "tl21grid", "tl63grid", "TL2grid", "lon=10/lat=50"]
NAMES += ["lon=-1.5_lat=.5"]
SMALL = "gridtype = lonlat\nxsize = 3\nysize = 2\nxfirst = 10\nxinc = 5\nyvals = -30 45.5\n"


def named(name: str) -> tuple[np.ndarray, np.ndarray]:
    axes = describe_grid(name)
    assert axes is not None
    return axes[0].plain, axes[1].plain


def described(folder: Path, text: str) -> tuple[np.ndarray, np.ndarray]:
    path = folder / "grid.txt"
    path.write_text(text)
    return named(str(path))


def griddes(name: str) -> str:
    """What CDO says of a grid."""
    if shutil.which("cdo") is None:
        pytest.skip("cdo is not installed")
    command = ["cdo", "-s", "griddes", f"-const,0,{name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", NAMES)
def test_names_and_descriptions_are_understood_as_cdo_does(name: str, tmp_path: Path) -> None:
    for own, theirs in zip(named(name), described(tmp_path, griddes(name)), strict=True):
        np.testing.assert_allclose(own, theirs, atol=1e-11)


def test_a_part_of_a_gaussian_grid_is_read_as_cdo_describes_it(tmp_path: Path) -> None:
    if shutil.which("cdo") is None:
        pytest.skip("cdo is not installed")
    words = ["cdo", "-s", "griddes", "-sellonlatbox,0,90,0,45", "-const,0,n32"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    lon, lat = described(tmp_path, text)
    assert (lon.size, lat.size) == (33, 16)


@pytest.mark.parametrize(
    "content",
    [b"", b"#\n# only comments\n", b"lat,lon,v\n1,2,3\n", b"\x89HDF\r\n\x1a\n", b"a = b\n"],
)
def test_other_files_are_no_descriptions(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.txt").write_bytes(content)
    assert describe_grid(str(tmp_path / "f.txt")) is None
    assert describe_grid(str(tmp_path)) is None


def test_a_description_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_bytes(b"gridtype = \xff\n")
    with pytest.raises(InputError, match="not UTF-8"):
        describe_grid(str(tmp_path / "f.txt"))


# As coordinates of another grid ------------------------------------------------------------------

OWN = [axis_of("time", [0.0, 1.0]), axis_of("y", LAT, NORTH), axis_of("x", LON, EAST)]


def test_a_name_gives_coordinates_by_role() -> None:
    found = asked_of("r4x2", OWN)
    assert {name: values.tolist() for name, values in found.items()} == {
        "y": [-45, 45],
        "x": [0, 90, 180, 270],
    }


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    grid(tmp_path / "a.nc", {"lat": (LAT[:3], NORTH), "lon": (LON, EAST)})
    os.rename("a.nc", "r4x2")
    assert asked_of("r4x2", OWN)["y"].tolist() == LAT[:3].tolist()
    Path("n4").write_text(SMALL)
    assert asked_of("n4", OWN)["y"].tolist() == [-30, 45.5]


@pytest.mark.parametrize("name", ["r360*180", "r360", "nothing.nc"])
def test_near_misses_are_told_the_forms(name: str) -> None:
    with pytest.raises(InputError, match=r"Nor is it a grid by name, such as r360x180, global_0.5"):
        asked_of(name, OWN)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_may_hold_a_description_and_nothing_else(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def ask(text: str) -> list[float]:
        sender = threading.Thread(target=pipe.write_text, args=(text,))
        sender.start()
        try:
            return list(asked_of(pipe, OWN)["y"])
        finally:
            sender.join()

    assert ask(SMALL) == [-30, 45.5]
    with pytest.raises(InputError, match=r"is a pipe. Expected the description of a grid"):
        ask("lat,lon,v\n1,2,3\n")
    table = tmp_path / "p.csv"
    os.mkfifo(table)
    assert describe_grid(str(table)) is None  # not even opened


@pytest.mark.parametrize("peeks", [True, False])
def test_standard_input_is_taken_if_it_is_a_description(
    monkeypatch: pytest.MonkeyPatch, peeks: bool
) -> None:
    def stdin(text: str) -> io.IOBase:
        raw = io.BytesIO(text.encode())
        return io.BufferedReader(raw) if peeks else raw

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin(SMALL)))
    assert named("-")[1].tolist() == [-30, 45.5]
    rest = stdin("lat,lon,v\n1,2,3\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=rest))
    assert describe_grid("-") is None
    assert rest.read() == b"lat,lon,v\n1,2,3\n"
    monkeypatch.setattr(sys, "stdin", None)
    assert describe_grid("-") is None


def test_predict_like_a_name_a_description_and_a_pipe(tmp_path: Path) -> None:
    source = grid(tmp_path / "g.nc", {"lat": (np.arange(-80.0, 81, 10), NORTH), "lon": (LON, EAST)})
    dkrls("fit", source, "-o", tmp_path / "m.npz")
    told = csv_rows(dkrls("predict", tmp_path / "m.npz", "--like", "r4x2").stdout)
    assert [(row["lat"], row["lon"]) for row in told[:2]] == [("-45.0", "0.0"), ("-45.0", "90.0")]
    assert len(told) == 8
    (tmp_path / "d.txt").write_text(SMALL)
    told = dkrls("predict", tmp_path / "m.npz", "--like", tmp_path / "d.txt").stdout
    assert dkrls("predict", tmp_path / "m.npz", "--like", "-", stdin=SMALL).stdout == told
    assert {row["lon"] for row in csv_rows(told)} == {"10.0", "15.0", "20.0"}
    line = refusal("predict", tmp_path / "m.npz", "--like", "r360*180")
    assert "No file matches 'r360*180'. Nor is it a grid by name" in line
