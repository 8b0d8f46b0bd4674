"""A store that is changed keeps its metadata in one place, and its format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

from dkrls_cli.files.patching.stores import changed_store, dims_of, labels_of


def store(path: Path, version: Any, consolidated: bool) -> str:
    data = xr.Dataset({"t": (("x", "y"), np.zeros((2, 3)))})
    data.to_zarr(path, zarr_format=version, consolidated=consolidated)
    return str(path)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_what_is_added_is_found_again(tmp_path: Path, version: int, consolidated: bool) -> None:
    path = store(tmp_path / "a.zarr", version, consolidated)
    with changed_store(path) as group:
        assert dims_of(group["t"]) == ("x", "y")
        labels = labels_of(group, ["y", "x"], {"units": "K"})
        group.create_array("u", shape=(3, 2), dtype="f8", **labels)[...] = 1.0
    found = zarr.open_group(path, mode="r")
    assert (found.metadata.consolidated_metadata is not None) == consolidated
    after = xr.open_dataset(path, engine="zarr", consolidated=consolidated).load()
    assert after.u.dims == ("y", "x")
    assert after.u.attrs == {"units": "K"}
    assert (after.u == 1.0).all()


def test_an_array_without_names_has_none(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    assert dims_of(group.create_array("t", shape=(2,), dtype="f8")) == ()
