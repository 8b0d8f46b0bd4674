"""``dkrls plot``, and pictures of ``dkrls fill``: every kind of input, in files and as text."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, field, grid, netcdf
from shell import dkrls, refusal
from tiled_grids import daily, shrink

pytest.importorskip("matplotlib", reason="drawing needs the extra plot")

SETTINGS = ("--kernel", "gaussian", "--sigma", "30", "--ridge", "1e-4")


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a PNG in dots."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


# Files --------------------------------------------------------------------------------------------


def test_a_file_is_drawn_at_its_last_time(globe: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    done = dkrls("plot", globe, "-o", out)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "Note: time=2020-02-25 is shown, the last of 12; --at time=... shows another."
    ]
    assert size_of(out)[0] == 1417
    done = dkrls("plot", globe, "-o", out, "--overwrite", "--width", 80, "--at", "time=2020-01-06")
    assert done.stderr == ""
    assert size_of(out)[0] == 629
    assert list(tmp_path.iterdir()) == [out]


def test_the_title_is_in_the_json(globe: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.svg"
    words = ("--at", "time=2020-01-06", "--at", "lat=0", "--json", "-o", out)
    told = json.loads(dkrls("plot", globe, *words).stdout)
    assert told == {"output": str(out), "title": "temperature, 2020-01-06, 0°", "units": "K"}
    assert out.read_bytes().startswith(b"<?xml")


def test_a_cell_that_the_file_has_not_is_said_or_refused(globe: Path) -> None:
    done = dkrls("plot", globe, "--at", "time=2020-01-07", "--term")
    assert "Note: time=2020-01-06 is shown, the nearest to 2020-01-07.\n" in done.stderr
    line = refusal("plot", globe, "--at", "time=2021-01-07", "--term", code=2)
    assert "The file has no time=2021-01-07; the nearest is 2020-02-25." in line
    line = refusal("plot", globe, "--at", "tiem=2021-01-07", "--term", code=2)
    assert "There is no dimension 'tiem'. The file has time, lat, lon. Did you mean" in line


@pytest.mark.parametrize("kind", ["zarr", "csv", "360_day", "one time", "labels", "wide"])
def test_every_kind_of_file_is_drawn(kind: str, globe: Path, tmp_path: Path) -> None:
    path, expected = tmp_path / "in.nc", "temperature"
    if kind == "zarr":
        path = tmp_path / "in.zarr"
        xr.open_dataset(globe).to_zarr(path, consolidated=False)
    elif kind == "csv":
        path = tmp_path / "in.csv"
        path.write_text("x,site,t\n1,a,10\n1,b,NA\n2,a,30\n2,b,40\n")
        expected = "t"
    elif kind == "wide":
        path = tmp_path / "in.csv"
        path.write_text("year,JAN,FEB\n2000,1,2\n2001,3,4\n2002,4,\n")
        expected = "in"
    elif kind == "labels":
        grid(path, {"site": (np.array(["b", "$a$ <x>"], object), {}), "x": (np.arange(5.0), {})})
    else:
        days = np.array([30.0]) if kind == "one time" else np.arange(0.0, 720, 30)
        since = {"units": "days since 2000-01-01", "calendar": "360_day", "standard_name": "time"}
        grid(path, {"time": (days, since), "lat": (LAT, NORTH), "lon": (LON, EAST)})
        if kind == "one time":
            expected = "temperature, 2000-02-01"
    out = tmp_path / "out.png"
    shown = dkrls("plot", path, "-o", out, "--term")
    assert shown.stdout.splitlines()[0].startswith(expected)
    assert size_of(out)[0] == 1417


def test_several_variables_ask_for_one(tmp_path: Path) -> None:
    values = field(LAT, LON)
    path = netcdf(
        tmp_path / "two.nc",
        {
            "lat": (("lat",), LAT, NORTH),
            "lon": (("lon",), LON, EAST),
            "u": (("lat", "lon"), values, {}),
            "v": (("lat", "lon"), -values, {}),
        },
    )
    line = refusal("plot", path, "--term", code=1)
    assert "u" in line
    assert "--var" in line
    assert dkrls("plot", path, "--term", "--var", "v").stdout.startswith("v\n")


def test_what_is_for_models_is_refused_for_files(globe: Path) -> None:
    for option in ("--std", "--data"):
        line = refusal("plot", globe, "--term", option, code=2)
        assert f"{option} is for a model, and '{globe}' is none." in line


# Models -------------------------------------------------------------------------------------------


def test_a_model_answers_between_its_data(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    at = ("--at", "lat=-60:60:10", "--at", "lon=-90:90:10", "--at", "time=2020-01-06")
    assert dkrls("plot", model, *at, "--std", "--data", "-o", out).stderr == ""
    three = size_of(out)
    dkrls("plot", model, *at, "-o", out, "--overwrite")
    assert size_of(out)[1] > three[1]  # one panel is larger than one of three
    line = refusal("plot", model, "--at", "time=2020-01-07", "--data", "--term", code=2)
    assert "cannot be shown: it has no values at time=2020-01-07" in line


def test_a_model_shows_its_last_time_and_what_lies_outside_is_empty(model: Path) -> None:
    done = dkrls("plot", model, "--at", "lat=0:90:15", "--term")
    assert done.stderr.splitlines() == [
        "Note: time=2020-02-25 is shown, the last of 12; --at time=... shows another.",
        "Note: 16 of 56 cells are outside the training range and stay empty.",
    ]
    assert "blank: missing" in done.stdout
    line = refusal("plot", model, "--at", "time=2030-01-01", "--term")
    assert "No cell of 't' has a value at time=2030-01-01: there is nothing to draw" in line


def test_a_line_has_its_interval_and_the_data(model: Path, tmp_path: Path) -> None:
    at = ("--at", "lat=0", "--at", "lon=45", "--at", "time=2020-01-01:2020-02-25:1D")
    shown = dkrls("plot", model, *at, "--std", "--term", "-o", tmp_path / "a.pdf").stdout
    assert shown.splitlines()[0] == "temperature, 0°, 45°E"
    assert shown.endswith("line: model, sparse dots: 90 % interval, o: data\n")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_one_cell_is_refused(model: Path) -> None:
    at = ("--at", "lat=0", "--at", "lon=45", "--at", "time=2020-01-01")
    line = refusal("plot", model, *at, "--term", code=2)
    assert "One cell of 't' is left" in line


def test_a_model_of_text_labels_is_drawn(sites: Path) -> None:
    shown = dkrls("plot", sites, "--term").stdout
    assert "b, north" in shown
    line = dkrls("plot", sites, "--at", "x=2", "--std", "--term").stdout
    assert "x: model, bars: 90 % interval, o: data" in line


def test_a_model_is_known_by_its_bytes(model: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "model"
    renamed.write_bytes(model.read_bytes())
    assert dkrls("plot", renamed, "--term", "--std").stdout.count("\n") > 20
    assert "no-such.npz" in refusal("plot", tmp_path / "no-such.npz", "--term")
    assert "There is no file" in refusal("plot", tmp_path / "no-such.nc", "--term")


def test_a_model_of_several_variables_asks_for_one(tmp_path: Path, globe: Path) -> None:
    other = xr.open_dataset(globe).assign(u=lambda data: 2 * data.t)
    other.to_netcdf(tmp_path / "two.nc")
    dkrls("fit", tmp_path / "two.nc", "--var", "all", *SETTINGS, "-o", tmp_path / "two.npz")
    line = refusal("plot", tmp_path / "two.npz", "--term", code=2)
    assert "has models of 2 variables: t, u. Choose one. Option: --var." in line
    assert dkrls("plot", tmp_path / "two.npz", "--term", "--var", "u").exit_code == 0


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ((), 2, "Where should the picture go? Give -o PICTURE.png, or --term."),
        (("-o", "a.gif"), 2, "Expected a name that ends in .png, .svg or .pdf"),
        (("-o", "no/a.png"), 1, "There is no folder 'no'"),
        (("--term", "--json"), 2, "--json and --term both write to stdout"),
        (("-o", "a.png", "--width", "59"), 2, "--width 59 is no width of a picture. Expected 60"),
        (("-o", "a.png", "--width", "601"), 2, "to 600 mm"),
        (("-o", "a.png", "--width", "nan"), 2, "--width nan is no width"),
    ],
)
def test_command_lines_that_make_no_sense(
    words: Any, code: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert reason in refusal("plot", "no-such.nc", *words, code=code)


def test_a_picture_that_exists_is_refused_before_the_work(tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    out.write_bytes(b"old")
    line = refusal("plot", tmp_path / "no-such.nc", "-o", out)
    assert "exists already" in line
    assert "--overwrite" in line
    assert out.read_bytes() == b"old"


def test_only_files_need_matplotlib(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = refusal("plot", globe, "-o", tmp_path / "a.png")
    assert line.endswith("matplotlib is not installed. Try pip install 'dkrls-cli[plot]'.")
    assert "temperature" in dkrls("plot", globe, "--term").stdout
    line = refusal(
        "fill", tmp_path / "no.nc", "-o", tmp_path / "o.nc", "--plot", tmp_path / "a.png"
    )
    assert "matplotlib is not installed" in line


@pytest.mark.parametrize("command", ["predict", "regrid", "fill"])
def test_commands_that_write_values_name_this_one(command: str, globe: Path) -> None:
    words = ("--like", "r8x4") if command == "regrid" else ()
    line = refusal(command, globe, *words, "-o", "a.png", code=2)
    assert "'a.png' is the name of a picture, and this command writes values." in line
    assert "dkrls plot ... -o a.png" in line


# Fills --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gappy(tmp_path_factory: pytest.TempPathFactory, globe: Path) -> Path:
    """Two variables with gaps: most of them at the fourth time."""
    path = tmp_path_factory.mktemp("gaps") / "gaps.nc"
    data = xr.open_dataset(globe).load()
    data.t[3, 1:3, 2:5] = np.nan
    data.t[5, 3, 1] = np.nan
    data.t[:, 0, 0] = np.nan
    data.assign(u=2 * data.t).to_netcdf(path)
    return path


def filled(gappy: Path, output: Path, *words: Any, **options: Any) -> Any:
    picture = output.with_suffix(".png")
    return dkrls("fill", gappy, "-o", output, *SETTINGS, "--plot", picture, *words, **options)


def test_a_fill_is_drawn_where_most_is_filled(gappy: Path, tmp_path: Path) -> None:
    done = filled(gappy, tmp_path / "a.nc", "--var", "t", "--json")
    said = f"time=2020-01-16 is shown in {tmp_path / 'a.png'}, where most cells (6) are filled."
    assert said in done.stderr
    assert json.loads(done.stdout)["plot"] == str(tmp_path / "a.png")
    assert size_of(tmp_path / "a.png")[0] == 1417
    assert "t_std" not in xr.open_dataset(tmp_path / "a.nc")


@pytest.mark.slow
def test_several_variables_are_rows_and_ensembles_are_drawn(gappy: Path, tmp_path: Path) -> None:
    filled(gappy, tmp_path / "a.nc", "--var", "t", "--ensemble", "2")
    done = filled(gappy, tmp_path / "b.csv", "--var", "all", "--std")
    assert "shown of t in" in done.stderr
    assert "shown of u in" in done.stderr
    one, two = (size_of(tmp_path / name)[1] for name in ("a.png", "b.png"))
    assert abs(two - 2 * one) <= 2


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [("a.gif", 2, "Expected a name that ends in .png"), ("there.png", 1, "exists already")],
)
def test_a_picture_of_a_fill_is_refused_before_the_work(
    name: str, code: int, reason: str, gappy: Path, tmp_path: Path
) -> None:
    (tmp_path / "there.png").write_bytes(b"")
    out = tmp_path / "a.nc"
    line = refusal("fill", gappy, "-o", out, "--var", "t", "--plot", tmp_path / name, code=code)
    assert reason in line
    assert not out.exists()


@pytest.mark.slow
def test_a_fill_in_tiles_is_drawn_from_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch)
    source = tmp_path / "in.nc"
    daily(dtype="float32").to_netcdf(source)
    given = ("--kernel", "matern52", "--sigma", "3", "--ridge", "0.01", "--group", "none")
    tiles = ("--max-memory", f"{50 * 42}B")
    whole = dkrls(
        "fill", source, "-o", tmp_path / "a.nc", *given, "--plot", tmp_path / "a.png", "--std"
    )
    parts = dkrls(
        *("fill", source, "-o", tmp_path / "b.nc", *given, *tiles),
        *("--plot", tmp_path / "b.png", "--std"),
    )
    assert "in tiles" not in whole.stderr
    assert "is filled in" in parts.stderr
    shown = [
        next(line.partition(" is shown")[0] for line in done.stderr.splitlines() if "shown" in line)
        for done in (whole, parts)
    ]
    assert shown[0] == shown[1]
    assert size_of(tmp_path / "a.png") == size_of(tmp_path / "b.png")
    words = ("-o", tmp_path / "c.nc", *given, *tiles, "--plot", tmp_path / "c.png")
    assert "error bars only with --std" in dkrls("fill", source, *words).stderr
