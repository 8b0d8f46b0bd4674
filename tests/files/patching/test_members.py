"""Members of an ensemble stand beside a variable, and nothing else of the file changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError
from dkrls_cli.files.patching.members import Members, append_members, whole_chunks

SHAPE = (2, 3, 4)
DRAWN = np.random.default_rng(0).standard_normal((5, *SHAPE))


def members(**options: Any) -> Members:
    given: dict[str, Any] = {"beside": "t", "name": "t_ensemble", "attrs": {"units": "K"}}
    given |= {"dtype": "float32", "count": 5, "arrays": iter(DRAWN)}
    return Members(**given | options)


def answers(path: Path, zarr: bool, shape: tuple[int, ...] = SHAPE) -> str:
    """A file of answers with coordinates beside them, and a time that can grow."""
    attrs = {"coordinates": "height", "grid_mapping": "crs", "scale": 2.0}
    data = xr.Dataset(
        {"t": (("time", "y", "x"), np.zeros(shape), attrs), "crs": 0, "height": 2.0},
        {"time": ("time", np.arange(float(shape[0])), {"units": "days since 2000-01-01"})},
    )
    if zarr:
        data.to_zarr(path, zarr_format=2, consolidated=True)
    else:
        data.to_netcdf(path, unlimited_dims=["time"])
    return str(path)


def read(path: str, zarr: bool) -> xr.Dataset:
    with xr.open_dataset(path, engine="zarr" if zarr else None, decode_coords=False) as found:
        return found.load()


@pytest.mark.parametrize("zarr", [False, True])
def test_members_are_written_beside_the_answers(tmp_path: Path, zarr: bool) -> None:
    path = answers(tmp_path / "a", zarr)
    before = read(path, zarr)
    append_members(path, members(), lambda size: {}, zarr=zarr)
    after = read(path, zarr)
    assert after.t_ensemble.dims == ("realization", "time", "y", "x")
    assert after.t_ensemble.dtype == np.float32
    np.testing.assert_array_equal(after.t_ensemble, DRAWN.astype(np.float32))
    assert after.t_ensemble.attrs == {"units": "K", "coordinates": "height", "grid_mapping": "crs"}
    assert after.realization.dtype == np.int32
    assert after.realization.values.tolist() == [0, 1, 2, 3, 4]
    assert after.realization.attrs["standard_name"] == "realization"
    assert "_FillValue" not in after.realization.encoding
    xr.testing.assert_identical(after.drop_vars(["t_ensemble", "realization"]), before)


@pytest.mark.parametrize("zarr", [False, True])
def test_missing_cells_of_members_are_marked(tmp_path: Path, zarr: bool) -> None:
    holes = DRAWN.copy()
    holes[:, 1, 2] = np.nan
    path = answers(tmp_path / "a", zarr)
    append_members(path, members(arrays=iter(holes), dtype="float64"), lambda size: {}, zarr=zarr)
    after = read(path, zarr)
    np.testing.assert_array_equal(after.t_ensemble, holes)
    assert np.isnan(after.t_ensemble.encoding["_FillValue"])


@pytest.mark.parametrize("zarr", [False, True])
def test_ensembles_of_two_variables_share_their_numbers(tmp_path: Path, zarr: bool) -> None:
    path = answers(tmp_path / "a", zarr)
    append_members(path, members(), lambda size: {}, zarr=zarr)
    append_members(path, members(name="u", arrays=iter(DRAWN + 1)), lambda size: {}, zarr=zarr)
    after = read(path, zarr)
    np.testing.assert_allclose(after.u - after.t_ensemble, 1.0, atol=1e-6)
    assert after.sizes["realization"] == 5


@pytest.mark.parametrize("zarr", [False, True])
def test_members_are_taken_one_by_one_and_compressed_as_asked(tmp_path: Path, zarr: bool) -> None:
    path, taken, sizes = answers(tmp_path / "a", zarr), [], []

    def drawn() -> Any:
        for number, values in enumerate(DRAWN):
            taken.append(number)
            yield values

    def filters(size: int) -> dict[str, Any]:
        assert not taken
        sizes.append(size)
        return {"compressors": None} if zarr else {"zlib": True, "complevel": 3}

    append_members(path, members(arrays=drawn()), filters, zarr=zarr)
    assert (taken, sizes) == ([0, 1, 2, 3, 4], [5 * 24 * 4])
    encoding = read(path, zarr).t_ensemble.encoding
    assert tuple(encoding["chunks" if zarr else "chunksizes"]) == (1, *SHAPE)
    assert not encoding["compressors"] if zarr else encoding["complevel"] == 3


@pytest.mark.parametrize("zarr", [False, True])
def test_a_name_that_is_taken_is_refused(tmp_path: Path, zarr: bool) -> None:
    path = answers(tmp_path / "a", zarr)
    with pytest.raises(InputError, match="has a variable 'height' already, as the members"):
        append_members(path, members(name="height"), lambda size: {}, zarr=zarr)


@pytest.mark.parametrize("zarr", [False, True])
def test_no_cells_have_members_without_cells(tmp_path: Path, zarr: bool) -> None:
    path = answers(tmp_path / "a", zarr, (0, 3, 4))
    append_members(path, members(arrays=iter(DRAWN[:, :0])), lambda size: {}, zarr=zarr)
    assert read(path, zarr).t_ensemble.shape == (5, 0, 3, 4)


def test_chunks_of_nothing_are_nothing() -> None:
    assert whole_chunks((3, 0, 4)) == (3, 0, 4)
