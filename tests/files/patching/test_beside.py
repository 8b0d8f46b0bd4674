"""Names of variables and dimensions of a file are not given again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError
from dkrls_cli.files.patching.beside import check_names, shared_attributes


@pytest.fixture(params=["nc", 2, 3])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    data = xr.Dataset({"t": (("x", "realization"), np.zeros((2, 3))), "height": 2.0})
    if request.param == "nc":
        data.to_netcdf(tmp_path / "a.nc")
        return str(tmp_path / "a.nc")
    data.to_zarr(tmp_path / "a.zarr", zarr_format=request.param, consolidated=False)
    return str(tmp_path / "a.zarr")


@pytest.mark.parametrize("name", ["t", "height", "x"])
def test_names_of_variables_and_dimensions_are_refused(path: str, name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}' already, as the standard errors"):
        check_names(path, ["t_std", name], [])
    with pytest.raises(InputError, match=f"'{name}' already, as the members"):
        check_names(path, [], [name])


def test_the_dimension_of_an_ensemble_is_free_unless_there_is_one(path: str) -> None:
    check_names(path, ["t_std"], [])
    with pytest.raises(InputError, match="a dimension or variable 'realization' already"):
        check_names(path, [], ["t_ensemble"])


def test_what_stands_beside_a_variable_is_on_its_cells() -> None:
    own: dict[str, Any] = {"coordinates": "height", "grid_mapping": "crs"}
    assert shared_attributes({**own, "units": "K", "scale_factor": 2.0}) == own
    assert shared_attributes({}) == {}
