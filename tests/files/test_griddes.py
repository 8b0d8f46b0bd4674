"""Grids by name and by description, against exact formulae and against CDO where it is there."""

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
from hypothesis import given
from hypothesis import strategies as st
from sample_files import EAST, LAT, LON, NORTH, grid
from shell import csv_rows, dkrls, refusal

from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes import GRID_NAMES, describe_grid, gaussian_latitudes
from dkrls_cli.files.reading import read_coordinates
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


# Names --------------------------------------------------------------------------------------------


@given(st.integers(1, 2000), st.integers(1, 1000))
def test_a_regular_grid_parts_the_globe_evenly(columns: int, rows: int) -> None:
    lon, lat = named(f"r{columns}x{rows}")
    assert (lon.size, lat.size) == (columns, rows)
    np.testing.assert_allclose(lon, [360 * i / columns for i in range(columns)], atol=1e-11)
    np.testing.assert_allclose(lat, -lat[::-1], atol=1e-11)
    if rows % 2 and rows > 1:  # the poles and the equator have a row
        assert (lat[0], lat[-1]) == (-90, 90)
    else:  # centres of cells
        np.testing.assert_allclose(lat[0] + 90, 90 / rows, atol=1e-11)
    np.testing.assert_allclose(np.diff(lat), np.ptp(lat) / max(1, rows - 1), atol=1e-11)


@given(st.floats(0.1, 180))
def test_a_global_grid_has_cells_of_one_size_from_the_date_line_and_the_south_pole(
    step: float,
) -> None:
    lon, lat = named(f"global_{step!r}")
    assert lon[0] == pytest.approx(step / 2 - 180)
    assert lat[0] == pytest.approx(step / 2 - 90)
    assert abs(lon.size - 360 / step) <= 0.5 + 1e-9
    assert abs(lat.size - 180 / step) <= 0.5 + 1e-9
    for numbers in (lon, lat):
        np.testing.assert_allclose(np.diff(numbers), step)


@pytest.mark.parametrize("half", [1, 2, 3, 8, 48, 160, 320])
def test_gaussian_latitudes_are_roots_of_a_legendre_polynomial(half: int) -> None:
    lon, lat = named(f"n{half}")
    roots = np.polynomial.legendre.leggauss(2 * half)[0][::-1]
    np.testing.assert_allclose(lat, np.degrees(np.arcsin(roots)), atol=1e-11)
    np.testing.assert_array_equal(lat, -lat[::-1])
    np.testing.assert_allclose(lon, np.arange(4 * half) * 90 / half, atol=1e-11)


@pytest.mark.parametrize("name", ["N8", "F8", "f8"])
def test_a_gaussian_grid_has_several_names(name: str) -> None:
    for one, other in zip(named("n8"), named(name), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *[("t21grid", 32), ("t42grid", 64), ("t63grid", 96), ("t106grid", 160), ("t4grid", 8)],
        *[("tl63grid", 64), ("tl127grid", 128), ("tl159grid", 160), ("tl2grid", 4)],
    ],
)
def test_a_truncation_has_its_gaussian_grid(name: str, rows: int) -> None:
    lon, lat = named(name)
    assert (lon.size, lat.size) == (2 * rows, rows)
    np.testing.assert_array_equal(lat, gaussian_latitudes(rows))


def test_one_latitude_is_the_equator() -> None:
    assert gaussian_latitudes(1).tolist() == [0.0]


@pytest.mark.parametrize("name", ["lon=10/lat=-50.5", "lon=1e1_lat=-50.5", "LON=+10./LAT=-50.5"])
def test_a_point_is_a_grid_of_one_cell(name: str) -> None:
    assert [numbers.tolist() for numbers in named(name)] == [[10.0], [-50.5]]


@pytest.mark.parametrize(
    "name",
    [
        *["r360*180", "360x180", "rx", "r360x", "global", "global_", "global_x", "n", "t63"],
        *["zonal_10", "lon=10", "hp8", "gme4", "F8x", "xr4x2", "lon=1/lat=2/3", "tlgrid", "n8.5"],
    ],
)
def test_other_names_are_none(name: str) -> None:
    assert describe_grid(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("r0x180", "has 0 longitudes and 180 latitudes"),
        ("r4x0", "has 4 longitudes and 0 latitudes"),
        ("n0", "has 0 longitudes and 0 latitudes"),
        ("r1000001x2", "more than 1000000 coordinates"),
        ("global_0.0001", "more than 1000000 coordinates"),
        ("global_0", "steps of 0 degrees. Expected 0 to 180"),
        ("global_-1", "steps of -1 degrees"),
        ("global_181", "steps of 181 degrees"),
        ("n8001", "16002 latitudes is too large"),
        ("lon=10/lat=95", "has the latitude 95"),
    ],
)
def test_sizes_that_are_no_grid_are_refused(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        describe_grid(name)


def test_the_examples_of_every_form_are_grids() -> None:
    for name in GRID_NAMES.split(", "):
        assert describe_grid(name) is not None


@pytest.mark.parametrize("name", ["r8x4", "n4", "lon=10/lat=50"])
def test_axes_carry_what_cf_asks_for(name: str) -> None:
    axes = describe_grid(name)
    assert axes is not None
    assert [(axis.name, dict(axis.attrs)) for axis in axes] == [
        ("lon", {"standard_name": "longitude", "units": "degrees_east", "axis": "X"}),
        ("lat", {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"}),
    ]
    assert axes[0].turn == 360


# Descriptions -------------------------------------------------------------------------------------


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


def test_a_part_of_a_gaussian_grid_has_some_of_its_latitudes(tmp_path: Path) -> None:
    some = gaussian_latitudes(64)[16:32]
    text = f"gridtype=gaussian\nxsize=2\nysize=16\nnumLPE=32\nxfirst=0\nxinc=2\nyvals={some}\n"
    lat = described(tmp_path, text.replace("[", "").replace("]", ""))[1]
    np.testing.assert_allclose(lat, some, atol=1e-6)


def test_a_description_may_have_comments_quotes_and_values_over_lines(tmp_path: Path) -> None:
    text = (
        "#\n# gridID 1\n#\n\n  GridType =  lonlat  # a comment\ngridsize= 6\nxsize =3\nysize=2\n"
        'xname = "x"\nyname=breite\nxlongname = "x = of a place"\nxunits = "degrees_east"\n'
        "yunits = degree\nxvals = 1.5 2\n   4e0\nxbounds = 1 2 2 3\n 3 5\nyfirst = -10\n"
        "yinc = 20\nscanningMode = 64\n"
    )
    (tmp_path / "g").write_text(text)
    lon, lat = describe_grid(str(tmp_path / "g")) or []
    assert (lon.name, lat.name) == ("x", "breite")
    assert lon.plain.tolist() == [1.5, 2, 4]
    assert lat.plain.tolist() == [-10, 10]
    assert lat.attrs["standard_name"] == "latitude"


def test_values_and_steps_may_both_be_given_if_they_agree(tmp_path: Path) -> None:
    text = SMALL + "xvals = 10.00001 15 20\n"
    assert described(tmp_path, text)[0].tolist() == [10.00001, 15, 20]


def test_one_coordinate_needs_no_step(tmp_path: Path) -> None:
    text = "gridtype=lonlat\nxsize=1\nysize=1\nxfirst=7\nyvals=8\n"
    assert [numbers.tolist() for numbers in described(tmp_path, text)] == [[7], [8]]


@pytest.mark.parametrize("half", ["", "numLPE = 2\n", "np = 2\n", "numLPE = 0\n"])
def test_a_gaussian_grid_needs_no_latitudes(tmp_path: Path, half: str) -> None:
    text = f"gridtype = gaussian\nxsize = 8\nysize = 4\nxfirst = 0\nxinc = 45\n{half}"
    np.testing.assert_array_equal(described(tmp_path, text)[1], gaussian_latitudes(4))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("lonlat", "curvilinear"), "of gridtype 'curvilinear'. Expected lonlat or gaussian"),
        (("lonlat", "unstructured\nnumber = 7"), "of gridtype 'unstructured'"),
        (("lonlat", "projection\ngrid_mapping = x"), "of gridtype 'projection'"),
        (("gridtype = lonlat\n", ""), "a grid without gridtype"),
        (("xsize = 3\n", ""), "leaves out xsize"),
        (("ysize = 2\n", ""), "leaves out ysize"),
        (("xinc = 5\n", ""), "leaves out xinc. Expected xfirst and xinc, or xvals"),
        (("xfirst = 10\n", ""), "leaves out xfirst. Expected"),
        (("xfirst = 10\nxinc = 5\n", ""), "leaves out xfirst and xinc"),
        (("yvals = -30 45.5\n", ""), "leaves out yfirst and yinc"),
        (("xsize = 3", "xsize = three"), "xsize is 'three'. Expected a number of cells"),
        (("xsize = 3", "xsize = 0"), "xsize is '0'"),
        (("xsize = 3", "xsize = 1000001"), "xsize is 1000001. At most 1000000"),
        (("ysize = 2", "ysize = 3"), "ysize is 3, but yvals has 2 values"),
        (("-30", "-30 five"), "'five' in yvals is not a number"),
        (("-30", "nan"), "yvals is 'nan 45.5'. Expected finite numbers"),
        (("-30 45.5", ""), "yvals is ''. Expected finite numbers"),
        (("xinc = 5", "xinc = 5 6"), "xinc has 2 numbers. Expected one"),
        (("xinc = 5", "xinc = 0"), "has a coordinate of 'lon' twice"),
        (("xinc = 5", "xinc = 181"), "longitudes over 362 degrees"),
        (("-30", "-91"), "has the latitude -91. Expected -90 to 90"),
        (("-30", "45.5"), "has a coordinate of 'lat' twice"),
        (("ysize = 2", "ysize = 2\ngridsize = 7"), "gridsize is 7, but xsize and ysize are"),
        (("xinc = 5", "xinc = 5\nxvals = 10 15 21"), "xvals are not what xfirst and xinc give"),
        (("xinc = 5", "xinc = 5\nxinc = 6"), "Line 6 of .* gives xinc again"),
        (("xinc = 5", "xinc = 5\nxincr = 6"), "key 'xincr', which is not known for lonlat"),
        (("xinc = 5", "xinc = 5\nxnpole = 6"), "key 'xnpole'"),
        (("xinc = 5", "xinc = 5\nxunits = radian"), "xunits are 'radian'. Expected degrees"),
        (("xinc = 5", "xinc = 5\nyunits = m"), "yunits are 'm'. Expected degrees"),
        (("xinc = 5", "xinc = 5\nyname = lon"), "xname and yname are both 'lon'"),
        (("lonlat", "gaussian\nnumLPE = 1"), "2 latitudes are not those of a Gaussian grid"),
        (("lonlat", "gaussian\nnumLPE = x"), "numlpe is 'x'"),
    ],
)  # fmt: skip
def test_descriptions_that_describe_no_grid_are_refused(
    tmp_path: Path, change: tuple[str, str], reason: str
) -> None:
    assert change[0] in SMALL
    described(tmp_path, SMALL)
    with pytest.raises(InputError, match=reason):
        described(tmp_path, SMALL.replace(*change, 1))


def test_a_gaussian_grid_with_too_few_rows_for_its_half_leaves_out_latitudes(
    tmp_path: Path,
) -> None:
    text = "gridtype = gaussian\nxsize = 8\nysize = 4\nxfirst = 0\nxinc = 45\nnumLPE = 16\n"
    with pytest.raises(InputError, match="leaves out yfirst and yinc"):
        described(tmp_path, text)
    lat = " ".join(map(str, gaussian_latitudes(4)))
    with pytest.raises(InputError, match="numLPE 1, which has 2 in all"):
        described(tmp_path, text.replace("16", "1") + f"yvals = {lat}\n")


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


# As coordinates of another grid -------------------------------------------------------------------

OWN = [axis_of("time", [0.0, 1.0]), axis_of("y", LAT, NORTH), axis_of("x", LON, EAST)]


def test_a_name_gives_coordinates_by_role() -> None:
    found = read_coordinates("r4x2", OWN)
    assert {name: values.tolist() for name, values in found.items()} == {
        "y": [-45, 45],
        "x": [0, 90, 180, 270],
    }


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    grid(tmp_path / "a.nc", {"lat": (LAT[:3], NORTH), "lon": (LON, EAST)})
    os.rename("a.nc", "r4x2")
    assert read_coordinates("r4x2", OWN)["y"].tolist() == LAT[:3].tolist()
    Path("n4").write_text(SMALL)
    assert read_coordinates("n4", OWN)["y"].tolist() == [-30, 45.5]


@pytest.mark.parametrize("name", ["r360*180", "r360", "nothing.nc"])
def test_near_misses_are_told_the_forms(name: str) -> None:
    with pytest.raises(InputError, match=r"Nor is it a grid by name, such as r360x180, global_0.5"):
        read_coordinates(name, OWN)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_may_hold_a_description_and_nothing_else(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def ask(text: str) -> list[float]:
        sender = threading.Thread(target=pipe.write_text, args=(text,))
        sender.start()
        try:
            return list(read_coordinates(str(pipe), OWN)["y"])
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
