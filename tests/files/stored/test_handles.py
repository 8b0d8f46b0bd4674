"""Files are opened, closed and named in errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError
from dkrls_cli.files.stored.handles import (
    close_files,
    declared_sizes,
    explain_reading,
    open_netcdf,
    read_part,
    zarr_sizes,
)


def test_declared_sizes_are_those_of_the_variables(tmp_path: Path) -> None:
    array = xr.DataArray(np.zeros((3, 4), np.float32), dims=("x", "y"), name="v")
    array.to_netcdf(tmp_path / "a.nc")
    array.to_dataset().to_zarr(tmp_path / "a.zarr", zarr_format=2)
    with open_netcdf(str(tmp_path / "a.nc")) as file:
        assert declared_sizes(file) == {"v": 48}
    assert zarr_sizes(str(tmp_path / "a.zarr")) == {"v": 48}


def test_errors_of_libraries_name_the_file() -> None:
    with (
        pytest.raises(InputError, match=r"'a\.nc' cannot be read: HDF5 is out of order\.$"),
        explain_reading("a.nc"),
    ):
        raise RuntimeError("HDF5 is out\nof order.")
    with pytest.raises(InputError, match="is not a NetCDF file"), explain_reading("a.nc"):
        raise OSError(-51, "NetCDF: Unknown file format")
    with pytest.raises(MemoryError), explain_reading("a.nc"):
        raise MemoryError


def test_a_variable_that_is_gone_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "a.nc")
    xr.DataArray(np.zeros(3), dims="x", name="v").to_netcdf(path)
    with pytest.raises(InputError, match=r"a\.nc' cannot be read: 'w'"):
        read_part(path, "netcdf", "w", [slice(0, 3)])
    assert read_part(path, "netcdf", "v", [slice(0, 1), slice(0, 3)]).tolist() == [0, 0, 0]
    close_files([path])
