"""Which files an input names, of which kind they are, and which of their values are usable."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sample_files import signalling

from dkrls_cli.errors import InputError
from dkrls_cli.files.source import Source, bytes_on_disk, expand, kind_of
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.style import Style


def source(values: np.ndarray) -> Source:
    axes = (axis_of("x", np.arange(float(values.shape[0]))), text_axis("s", ["a", "b"]))
    return Source(axes, "t", {"units": "K"}, Style(), str(values.dtype), lambda: values)


def test_large_grids_are_looked_at_in_parts_and_changed_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dkrls_cli.files.source.AT_ONCE", 3)
    values = np.array([[1, np.inf], [2, 3], [np.nan, 9.97e36], [-np.inf, 1e38]])
    made = source(values)
    expected = [[1, np.nan], [2, 3], [np.nan, np.nan], [np.nan, np.nan]]
    assert made.grid().values is values
    np.testing.assert_array_equal(values, expected)
    assert made.notes == ["values taken as missing: 2 infinite, 1 never written, 1 beyond 9.9e+36"]


def test_values_that_are_read_only_are_not_changed() -> None:
    values = np.array([[1, np.inf], [2, 3]])
    values.setflags(write=False)
    made = source(values)
    for _ in range(2):  # a table has its values already, and may be asked again
        np.testing.assert_array_equal(made.grid().values, [[1, np.nan], [2, 3]])
    assert values[0, 1] == np.inf


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_that_are_no_numbers_are_missing_and_counted(dtype: str) -> None:
    values = np.array([[1, np.nan], [np.inf, -np.inf], [9.97e36, 9.8e36], [-1e37, 2]], dtype)
    made = source(values)
    grid = made.grid()
    expected = np.array([[1, np.nan], [np.nan] * 2, [np.nan, 9.8e36], [np.nan, 2]], dtype)
    np.testing.assert_array_equal(grid.values, expected)
    assert grid.values.dtype == dtype
    assert made.notes == ["values taken as missing: 2 infinite, 1 never written, 1 beyond 9.9e+36"]
    assert (grid.name, grid.attrs, grid.dims) == ("t", {"units": "K"}, ("x", "s"))


def test_notes_name_only_what_was_found() -> None:
    infinite, unwritten = source(np.array([[np.inf, 1]])), source(np.array([[9.96921e36, 1.0]]))
    infinite.grid(), unwritten.grid()
    assert infinite.notes == ["values taken as missing: 1 infinite"]
    assert unwritten.notes == ["values taken as missing: 1 never written"]
    gappy = source(np.array([[np.nan, 1]]))
    gappy.grid()
    assert gappy.notes == []


def test_a_complete_grid_is_not_copied() -> None:
    values = np.ones((3, 2))
    assert source(values).grid().values is values


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signalling_nan_become_quiet_without_a_word(dtype: str) -> None:
    values = np.ones((2, 2), dtype)
    signalling(values, (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid = source(values).grid()
        wider = grid.values.astype(np.float64)
        assert np.isnan(wider + 1).tolist() == [[False, True], [False, False]]


def test_a_source_knows_its_shape() -> None:
    assert source(np.ones((3, 2))).shape == (3, 2)


# Files --------------------------------------------------------------------------------------------


def test_a_pattern_is_the_files_that_match_in_order_of_names(tmp_path: Path) -> None:
    for name in ("b.nc", "a.nc", "c.txt"):
        (tmp_path / name).touch()
    assert expand(f"{tmp_path}/*.nc") == [f"{tmp_path}/a.nc", f"{tmp_path}/b.nc"]
    assert expand(f"{tmp_path}/b.nc") == [f"{tmp_path}/b.nc"]
    assert expand("-") == ["-"]


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path) -> None:
    for name in ("a[1].nc", "a1.nc"):
        (tmp_path / name).touch()
    assert expand(f"{tmp_path}/a[1].nc") == [f"{tmp_path}/a[1].nc"]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file '.*a.nc'"):
        expand(f"{tmp_path}/a.nc")
    with pytest.raises(InputError, match=r"No file matches '.*\*.nc'"):
        expand(f"{tmp_path}/*.nc")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("-", "table"),
        ("a.csv", "table"),
        ("A.CSV", "table"),
        ("a.csv.gz", "table"),
        ("a.tsv", "table"),
        ("a.txt", "table"),
        ("a.zarr", "zarr"),
        ("a.zarr/", "zarr"),
        ("a.nc", "netcdf"),
        ("a.NC4", "netcdf"),
        ("a.cdf", "netcdf"),
        ("a.netcdf", "netcdf"),
    ],
)
def test_a_kind_is_known_by_the_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("name", "start", "kind"),
    [
        ("a", b"CDF\x01 more", "netcdf"),
        ("a.dat", b"\x89HDF\r\n\x1a\n", "netcdf"),
        ("a.dat", b"\x1f\x8b more", "table"),
    ],
)
def test_a_kind_is_known_by_the_first_bytes(
    tmp_path: Path, name: str, start: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(start)
    assert kind_of(str(tmp_path / name)) == kind


@pytest.mark.parametrize(
    ("name", "start", "reason"),
    [
        ("m.npz", b"PK\x03\x04", "is a zip archive, as model files are"),
        ("a.nc.gz", b"\x1f\x8b more", "is compressed: gunzip it first"),
        ("a.dat", b"\x89HDF\r\n\x1a", "is of no kind that can be read"),
        ("a.dat", b"FITS", "is of no kind that can be read. Expected NetCDF"),
        ("a.dat", b"GRIB", "is GRIB, whatever its name: end it in .grib"),
        ("a", b"", "is of no kind"),
    ],
)
def test_other_kinds_are_refused(tmp_path: Path, name: str, start: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(start)
    with pytest.raises(InputError, match=reason):
        kind_of(str(tmp_path / name))


@pytest.mark.parametrize("marker", ["zarr.json", ".zgroup"])
def test_a_folder_is_a_store_if_it_is_marked(tmp_path: Path, marker: str) -> None:
    for name in ("store", "store.nc"):
        (tmp_path / name).mkdir()
        with pytest.raises(InputError, match="is a folder and no Zarr store"):
            kind_of(str(tmp_path / name))
        (tmp_path / name / marker).touch()
        assert kind_of(str(tmp_path / name)) == "zarr"


def test_the_bytes_of_a_folder_are_those_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"123")
    (tmp_path / "a" / "d").write_bytes(b"12")
    assert bytes_on_disk(str(tmp_path / "a")) == 5
    assert bytes_on_disk(str(tmp_path / "a" / "d")) == 2
