"""The header of NetCDF 3 is read as the library reads it, and a damaged one is refused."""

from __future__ import annotations

import random
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from shell import refusal

from dkrls_cli.errors import InputError
from dkrls_cli.files.guards import classic
from dkrls_cli.files.guards.classic import check_classic, is_classic

FORMATS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]


def write(path: Path, form: str, records: int = 3) -> None:
    """Write a file with fixed and growing variables."""
    with netCDF4.Dataset(path, "w", format=form) as dataset:
        dataset.title = "a title"
        dataset.createDimension("time", None)
        dataset.createDimension("x", 5)
        for name, kind, dims in (("t", "f8", ("time", "x")), ("b", "i1", ("x",)), ("s", "i4", ())):
            variable = dataset.createVariable(name, kind, dims)
            variable.setncattr("scale", np.arange(3.0))
            variable.setncattr("units", "K")
            variable[...] = np.ones((records, 5) if name == "t" else variable.shape)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("records", [1, 3])
def test_the_data_ends_where_the_file_ends(tmp_path: Path, form: str, records: int) -> None:
    path = tmp_path / "a.nc"
    write(path, form, records)
    assert is_classic(str(path))
    check_classic(str(path))
    assert classic._Header(path.read_bytes()).data_end() == path.stat().st_size


@pytest.mark.parametrize("growing", [0, 1, 2, 3])
@pytest.mark.parametrize("records", [0, 1, 4])
def test_records_are_filled_up_unless_they_are_of_one_variable(
    tmp_path: Path, growing: int, records: int
) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as dataset:
        dataset.createDimension("t", None)
        dataset.createDimension("x", 3)
        dataset.createVariable("fixed", "i2", ("x",))[:] = 1
        for number in range(growing):
            dataset.createVariable(f"v{number}", "i1", ("t", "x"))[:] = np.ones((records, 3))
    end = classic._Header(path.read_bytes()).data_end()
    assert 0 <= path.stat().st_size - end < 4  # the last bytes may fill up a multiple of four
    check_classic(str(path))


def test_other_files_are_not_classic(tmp_path: Path) -> None:
    netCDF4.Dataset(tmp_path / "a.nc", "w").close()
    assert not is_classic(str(tmp_path / "a.nc"))
    (tmp_path / "b.nc").write_bytes(b"CDF")
    assert not is_classic(str(tmp_path / "b.nc"))


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_was_cut_is_refused_wherever_it_was_cut(tmp_path: Path, form: str) -> None:
    write(tmp_path / "a.nc", form)
    whole = (tmp_path / "a.nc").read_bytes()
    for length in range(4, len(whole)):
        (tmp_path / "cut.nc").write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"is damaged: its header|is cut short, or damaged"):
            check_classic(str(tmp_path / "cut.nc"))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"\0\0\0\x0a\0\0\0\x02", b"\0\0\0\x0a\x7f\0\0\x02", "counts 2130706434 items"),
        (b"\0\0\0\x0a\0\0\0\x02", b"\0\0\0\x0d\0\0\0\x02", "has 13 where a list should begin"),
        (b"\0\0\0\x05title", b"\0\x10\0\x05title", "counts 1048581 items"),
        (b"\0\0\0\x06\0\0\0\x03", b"\0\0\0\x63\0\0\0\x03", "has a type 99"),
        (
            b"\0\0\0\x01b\0\0\0\0\0\0\x01\0\0\0\x01",
            b"\0\0\0\x01b\0\0\0\0\0\0\x01\0\0\0\x02",
            "a dim",
        ),
        (b"\0\0\0\x01x\0\0\0\0\0\0\x05", b"\0\0\0\x01x\0\0\0\x0f\0\0\x05", "is cut short"),
    ],
)
def test_a_header_with_wrong_numbers_is_refused(
    tmp_path: Path, old: bytes, new: bytes, reason: str
) -> None:
    write(tmp_path / "a.nc", "NETCDF3_CLASSIC")
    data = (tmp_path / "a.nc").read_bytes()
    assert old in data
    (tmp_path / "a.nc").write_bytes(data.replace(old, new, 1))
    with pytest.raises(InputError, match=reason):
        check_classic(str(tmp_path / "a.nc"))
    assert "a.nc" in refusal("fit", tmp_path / "a.nc", "-o", tmp_path / "m.npz")


def test_any_bytes_are_accepted_or_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.nc", "NETCDF3_64BIT_OFFSET")
    whole, rng = (tmp_path / "a.nc").read_bytes(), random.Random(1)
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 3, 10])):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        (tmp_path / "b.nc").write_bytes(data)
        try:
            check_classic(str(tmp_path / "b.nc"))
        except InputError:
            refused += 1
    assert 50 < refused < 400


def test_a_file_that_still_grows_is_not_cut(tmp_path: Path) -> None:
    write(tmp_path / "a.nc", "NETCDF3_CLASSIC")
    data = bytearray((tmp_path / "a.nc").read_bytes())
    data[4:8] = b"\xff" * 4
    (tmp_path / "a.nc").write_bytes(data)
    check_classic(str(tmp_path / "a.nc"))
