"""A copy differs from its file in the cells to replace, and in nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from sample_files import RAW, packed

from dkrls_cli.errors import InputError, OutputError
from dkrls_cli.files.patching.whole import Patch, write_patched_copy

CELLS = np.zeros(RAW.shape, bool)
CELLS[1, 2] = CELLS[3, 4] = True


def patch(values: Any, **options: Any) -> Patch:
    return Patch(
        "t", CELLS, np.broadcast_to(np.float64(values), RAW.shape), "today: filled", **options
    )


def stored(path: Path) -> np.ndarray:
    with netCDF4.Dataset(path) as file:
        file["t"].set_auto_maskandscale(False)
        return np.array(file["t"][...])


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC"])
@pytest.mark.parametrize(
    "attrs",
    [
        {"scale_factor": 0.01, "add_offset": 3.0, "_FillValue": np.int16(-32768)},
        {"scale_factor": -0.01},
        {},
    ],
)
def test_only_the_cells_of_the_mask_change(
    tmp_path: Path, attrs: dict[str, Any], form: str
) -> None:
    source = packed(tmp_path / "a.nc", RAW, {**attrs, "units": "K"}, form=form)
    write_patched_copy(str(source), str(tmp_path / "b.nc"), [patch(5.0)], overwrite=False)
    before, after = stored(source), stored(tmp_path / "b.nc")
    assert after.dtype == before.dtype
    np.testing.assert_array_equal(after[~CELLS], before[~CELLS])
    scale, offset = attrs.get("scale_factor", 1.0), attrs.get("add_offset", 0.0)
    np.testing.assert_allclose(after[CELLS] * scale + offset, 5.0, atol=abs(scale) / 2)
    with netCDF4.Dataset(source) as old, netCDF4.Dataset(tmp_path / "b.nc") as new:
        assert new["t"].__dict__.keys() == old["t"].__dict__.keys()
        assert new.history == f"today: filled\n{old.history}"
        assert new.title == old.title
        assert list(new.variables) == list(old.variables)


def test_what_the_type_cannot_hold_is_told(tmp_path: Path) -> None:
    attrs = {"scale_factor": 0.5, "add_offset": 1.0, "_FillValue": np.int16(7)}
    source = packed(tmp_path / "a.nc", RAW, attrs)
    paths = str(source), str(tmp_path / "b.nc")
    assert write_patched_copy(*paths, [patch(5.0)], overwrite=True) == []
    assert write_patched_copy(*paths, [patch(1e6)], overwrite=True) == [
        "2 filled cells of 't' lie beyond -16383 to 16384.5, which its int16 can hold, and are "
        "stored as the nearer of the two"
    ]
    assert set(stored(tmp_path / "b.nc")[CELLS]) == {32767}
    assert write_patched_copy(*paths, [patch(4.5)], overwrite=True) == [
        "2 filled cells of 't' equal a mark of missing values, and are stored 0.5 beside it"
    ]
    assert set(stored(tmp_path / "b.nc")[CELLS]) == {6}


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
@pytest.mark.parametrize(
    ("value", "holds"), [(5.0, True), (1.0, True), (1e3, False), (-1.0, False)]
)
def test_a_range_that_filled_cells_leave_is_dropped(
    tmp_path: Path, suffix: str, value: float, holds: bool
) -> None:
    data = xr.Dataset({"t": (("x", "y"), RAW / 100, {"actual_range": [1.0, 900.0]})})
    source, target = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    data.to_netcdf(source) if suffix == "nc" else data.to_zarr(source, zarr_format=2)
    assert write_patched_copy(str(source), str(target), [patch(value)], overwrite=False) == []
    with xr.open_dataset(target, engine="zarr" if suffix == "zarr" else None) as after:
        assert ("actual_range" in after.t.attrs) == holds


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_errors_stand_beside_what_the_data_stands_beside(tmp_path: Path, suffix: str) -> None:
    attrs = {"grid_mapping": "crs", "coordinates": "height"}
    data = xr.Dataset({"t": (("x", "y"), RAW / 100, attrs), "crs": 0, "height": 2.0})
    source, target = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    data.to_netcdf(source) if suffix == "nc" else data.to_zarr(source, zarr_format=2)
    change = patch(5.0, added=("t_std", np.where(CELLS, 0.5, np.nan), {"units": "K"}))
    write_patched_copy(str(source), str(target), [change], overwrite=False)
    engine = "zarr" if suffix == "zarr" else None
    with xr.open_dataset(target, engine=engine, decode_coords=False) as after:
        assert after.t_std.attrs == {"units": "K", **attrs}


def test_dimensions_of_size_one_stay(tmp_path: Path) -> None:
    source = tmp_path / "a.nc"
    xr.Dataset({"t": (("z", "x", "y"), RAW[None].astype(float))}).to_netcdf(source)
    write_patched_copy(str(source), str(tmp_path / "b.nc"), [patch(5.0)], overwrite=False)
    after = xr.load_dataset(tmp_path / "b.nc")
    assert after.t.shape == (1, *RAW.shape)
    assert (after.t.values[0][CELLS] == 5).all()
    assert after.attrs["history"] == "today: filled"


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_zarr_stores_are_patched_alike(tmp_path: Path, version: Any, consolidated: bool) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    encoding = {"t": {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -1}}
    data = xr.Dataset(
        {"t": (("x", "y"), RAW / 100.0, {"ancillary_variables": "q"})}, attrs={"a": 1}
    )
    data.to_zarr(source, encoding=encoding, zarr_format=version, consolidated=consolidated)
    added = ("t_std", np.where(CELLS, 0.5, np.nan), {"units": "K"})
    write_patched_copy(str(source), str(target), [patch(5.0, added=added)], overwrite=False)
    group = zarr.open_group(target, mode="r")
    assert (group.metadata.consolidated_metadata is not None) == consolidated
    after = xr.open_dataset(target, engine="zarr", consolidated=consolidated).load()
    np.testing.assert_allclose(after.t.values, np.where(CELLS, 5.0, RAW / 100), atol=1e-9)
    np.testing.assert_array_equal(after.t_std.values, added[1])
    assert after.t.attrs["ancillary_variables"] == "q t_std"
    assert after.attrs == {"a": 1, "history": "today: filled"}
    with pytest.raises(InputError, match="a variable 't_std' already"):
        write_patched_copy(
            str(target), str(tmp_path / "c.zarr"), [patch(5.0, added=added)], overwrite=False
        )
    assert not (tmp_path / "c.zarr").exists()


@pytest.mark.parametrize("compressed", [True, False])
def test_a_variable_is_added_on_the_same_dimensions(tmp_path: Path, compressed: bool) -> None:
    source, target = tmp_path / "a.nc", tmp_path / "b.nc"
    given = xr.Dataset({"t": (("x", "y"), RAW / 100, {"ancillary_variables": "flag"})})
    given.to_netcdf(source, encoding={"t": {"zlib": compressed}})
    errors = np.where(CELLS, 0.5, np.nan).astype("f4")
    change = patch(5.0, added=("t_std", errors, {"units": "K"}))
    write_patched_copy(str(source), str(target), [change], overwrite=False)
    after = xr.load_dataset(target)
    np.testing.assert_array_equal(after.t_std.values, errors)
    assert after.t_std.dtype == np.float32
    assert after.t_std.attrs == {"units": "K"}
    assert after.t_std.encoding["zlib"] == compressed
    assert after.t.attrs["ancillary_variables"] == "flag t_std"
    with pytest.raises(InputError, match="a variable 't_std' already"):
        write_patched_copy(str(target), str(tmp_path / "c.nc"), [change], overwrite=False)
    assert not list(tmp_path.glob("*c.nc*"))


def test_the_file_itself_is_never_changed(tmp_path: Path) -> None:
    source = packed(tmp_path / "a.nc", RAW, {})
    before = source.read_bytes()
    write_patched_copy(str(source), str(tmp_path / "b.nc"), [patch(5.0)], overwrite=False)
    assert source.read_bytes() == before
    with pytest.raises(OutputError, match="exists already"):
        write_patched_copy(str(source), str(tmp_path / "b.nc"), [patch(5.0)], overwrite=False)
    write_patched_copy(str(source), str(tmp_path / "b.nc"), [patch(6.0)], overwrite=True)
    assert set(stored(tmp_path / "b.nc")[CELLS]) == {6}


def test_cells_can_be_made_missing(tmp_path: Path) -> None:
    fill = {"scale_factor": 0.01, "_FillValue": np.int16(-32768)}
    source = packed(tmp_path / "a.nc", RAW, fill)
    write_patched_copy(str(source), str(tmp_path / "b.nc"), [patch(np.nan)], overwrite=False)
    after = stored(tmp_path / "b.nc")
    assert (after[CELLS] == -32768).all()
    np.testing.assert_array_equal(after[~CELLS], stored(source)[~CELLS])


def test_integers_without_a_mark_cannot_be_missing(tmp_path: Path) -> None:
    source = packed(tmp_path / "a.nc", RAW, {"scale_factor": 0.01})
    with pytest.raises(InputError, match="without a _FillValue"):
        write_patched_copy(str(source), str(tmp_path / "b.nc"), [patch(np.nan)], overwrite=False)
    assert not (tmp_path / "b.nc").exists()
