"""Descriptions of grids are understood, and what is wrong with one is said."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.descriptions import begins_description, parse_description
from dkrls_cli.files.griddes.gaussian import gaussian_latitudes

SMALL = "gridtype = lonlat\nxsize = 3\nysize = 2\nxfirst = 10\nxinc = 5\nyvals = -30 45.5\n"


def described(text: str) -> tuple[np.ndarray, np.ndarray]:
    (lon, lat), _ = parse_description(text, "grid.txt")
    return lon.plain, lat.plain


def test_a_part_of_a_gaussian_grid_has_some_of_its_latitudes() -> None:
    some = gaussian_latitudes(64)[16:32]
    text = f"gridtype=gaussian\nxsize=2\nysize=16\nnumLPE=32\nxfirst=0\nxinc=2\nyvals={some}\n"
    lat = described(text.replace("[", "").replace("]", ""))[1]
    np.testing.assert_allclose(lat, some, atol=1e-6)


def test_a_description_may_have_comments_quotes_and_values_over_lines() -> None:
    text = (
        "#\n# gridID 1\n#\n\n  GridType =  lonlat  # a comment\ngridsize= 6\nxsize =3\nysize=2\n"
        'xname = "x"\nyname=breite\nxlongname = "x = of a place"\nxunits = "degrees_east"\n'
        "yunits = degree\nxvals = 1.5 2\n   4e0\nxbounds = 1 2 2 3\n 3 5\nyfirst = -10\n"
        "yinc = 20\nscanningMode = 64\n"
    )
    (lon, lat), cells = parse_description(text, "grid.txt")
    assert {name: bounds.tolist() for name, bounds in cells.items()} == {
        "x": [[1, 2], [2, 3], [3, 5]]
    }
    assert (lon.name, lat.name) == ("x", "breite")
    assert lon.plain.tolist() == [1.5, 2, 4]
    assert lat.plain.tolist() == [-10, 10]
    assert lat.attrs["standard_name"] == "latitude"


def test_values_and_steps_may_both_be_given_if_they_agree() -> None:
    text = SMALL + "xvals = 10.00001 15 20\n"
    assert described(text)[0].tolist() == [10.00001, 15, 20]


def test_one_coordinate_needs_no_step() -> None:
    text = "gridtype=lonlat\nxsize=1\nysize=1\nxfirst=7\nyvals=8\n"
    assert [numbers.tolist() for numbers in described(text)] == [[7], [8]]


@pytest.mark.parametrize("half", ["", "numLPE = 2\n", "np = 2\n", "numLPE = 0\n"])
def test_a_gaussian_grid_needs_no_latitudes(half: str) -> None:
    text = f"gridtype = gaussian\nxsize = 8\nysize = 4\nxfirst = 0\nxinc = 45\n{half}"
    np.testing.assert_array_equal(described(text)[1], gaussian_latitudes(4))


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
    change: tuple[str, str], reason: str
) -> None:
    assert change[0] in SMALL
    described(SMALL)
    with pytest.raises(InputError, match=reason):
        described(SMALL.replace(*change, 1))


def test_a_gaussian_grid_with_too_few_rows_for_its_half_leaves_out_latitudes() -> None:
    text = "gridtype = gaussian\nxsize = 8\nysize = 4\nxfirst = 0\nxinc = 45\nnumLPE = 16\n"
    with pytest.raises(InputError, match="leaves out yfirst and yinc"):
        described(text)
    lat = " ".join(map(str, gaussian_latitudes(4)))
    with pytest.raises(InputError, match="numLPE 1, which has 2 in all"):
        described(text.replace("16", "1") + f"yvals = {lat}\n")


def test_cells_have_two_bounds_each() -> None:
    with pytest.raises(InputError, match=r"xbounds has 5 numbers for 3 cells. Expected two"):
        described(SMALL + "xbounds = 1 2 2 3 3\n")


@pytest.mark.parametrize(
    ("head", "begins"),
    [
        (b"", False),
        (b"#\n# only comments\n", False),
        (b"lat,lon,v\n", False),
        (b"a = b\n", False),
        (b"# one\n\n GridType = x", True),
        (b"\xef\xbb\xbfxsize=3", True),
        (b"\xff = 3\n", False),
    ],
)
def test_a_description_begins_with_one_of_its_keys(head: bytes, begins: bool) -> None:
    assert begins_description(head) == begins
