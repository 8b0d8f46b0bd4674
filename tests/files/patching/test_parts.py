"""Variables that are patched part by part are those that are patched at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from sample_files import RAW, packed

from dkrls_cli.errors import InputError
from dkrls_cli.files.patching.parts import AddedVariable, patched_copy
from dkrls_cli.files.patching.whole import Patch, write_patched_copy

CELLS = np.zeros(RAW.shape, bool)
CELLS[1, 2] = CELLS[3, 4] = True


def patch(value: float, added: Any = None) -> Patch:
    return Patch("t", CELLS, np.full(RAW.shape, value), "today: filled", added)


def write_in_parts(source: Path, target: Path, patch: Patch, added: AddedVariable | None) -> Any:
    """Patch a copy row by row, the first rows twice."""
    with patched_copy(str(source), str(target), overwrite=False) as copy:
        with copy.variable("t", added) as writer:
            everything = np.ones(RAW.shape, bool)
            whole = tuple(slice(0, size) for size in RAW.shape)
            writer.write(whole, everything, np.full(RAW.shape, 7.0), None)  # to be undone
            writer.restart()
            for row in range(len(RAW)):
                part = (slice(row, row + 1), *whole[1:])
                errors = None if patch.added is None else patch.added[1][part]
                writer.write(part, patch.cells[part], patch.values[part], errors)
            notes = writer.notes
        copy.add_history(patch.history)
    return notes


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC", "zarr"])
@pytest.mark.parametrize("value", [5.0, 1e9])
def test_parts_make_the_same_copy_as_the_whole(tmp_path: Path, form: str, value: float) -> None:
    attrs = {"scale_factor": 0.01, "_FillValue": np.int16(-32768), "actual_range": [-1e3, 1e3]}
    source = packed(tmp_path / "a.nc", RAW, attrs, form="NETCDF4" if form == "zarr" else form)
    if form == "zarr":
        dataset = xr.open_dataset(source, mask_and_scale=False)
        source = tmp_path / "a.zarr"
        dataset.to_zarr(source, zarr_format=2)
    ending = source.suffix
    std = np.arange(RAW.size, dtype="f4").reshape(RAW.shape)
    added = AddedVariable("t_std", "float32", {"units": "K"})
    change = patch(value, added=("t_std", std, {"units": "K"}))
    one, other = tmp_path / f"one{ending}", tmp_path / f"other{ending}"
    notes = write_patched_copy(str(source), str(one), [change], overwrite=False)
    assert write_in_parts(source, other, change, added) == notes
    assert bool(notes) == (value > 1e3)
    options: Any = {"mask_and_scale": False}
    whole, parts = (xr.open_dataset(path, **options).load() for path in (one, other))
    xr.testing.assert_identical(whole.drop_vars("t_std"), parts.drop_vars("t_std"))
    np.testing.assert_array_equal(whole["t_std"], parts["t_std"])
    assert parts["t_std"].attrs["units"] == "K"
    assert parts.attrs["history"].startswith("today: filled")
    assert ("actual_range" in parts["t"].attrs) == (value < 1e3)


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_a_copy_in_parts_is_whole_or_not_there(tmp_path: Path, ending: str) -> None:
    source = packed(tmp_path / "a.nc", RAW, {})
    if ending == "zarr":
        xr.open_dataset(source, mask_and_scale=False).to_zarr(tmp_path / "a.zarr", zarr_format=2)
        source = tmp_path / "a.zarr"
    before = sorted(path.name for path in tmp_path.iterdir())
    target = tmp_path / f"b.{ending}"
    with (
        pytest.raises(InputError, match="has a variable 't' already"),
        patched_copy(str(source), str(target), overwrite=False) as copy,
        copy.variable("t", AddedVariable("t", "float32", {})),
    ):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_parts_of_whole_chunks_are_whole_chunks_of_the_errors(tmp_path: Path) -> None:
    source, data = tmp_path / "a.zarr", xr.Dataset({"t": (("x", "y"), RAW / 100)})
    data.to_zarr(source, zarr_format=2, encoding={"t": {"chunks": (2, 3)}})
    std = np.ones(RAW.shape, "f4")
    change = patch(5.0, added=("t_std", std, {}))
    write_in_parts(source, tmp_path / "b.zarr", change, AddedVariable("t_std", "float32", {}))
    write_patched_copy(str(source), str(tmp_path / "c.zarr"), [change], overwrite=False)
    assert zarr.open_group(tmp_path / "b.zarr")["t_std"].chunks == (2, 3)
    assert zarr.open_group(tmp_path / "c.zarr")["t_std"].chunks == RAW.shape  # at once
