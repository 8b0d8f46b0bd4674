"""Chunks that change while a store is read are noticed, however they are stored."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import open_source
from dkrls_cli.files.stored.members import ChunkFiles, newest_member

VALUES = np.arange(6 * 4 * 4.0).reshape(6, 4, 4)
LATER = 10**9  # nanoseconds


def stored(folder: Path, form: int, shards: bool) -> Path:
    path = folder / "a.zarr"
    coords = {"time": np.arange(6.0), "lat": np.arange(4.0), "lon": np.arange(4.0)}
    array = xr.DataArray(VALUES, coords, ("time", "lat", "lon"), "t")
    encoding = {"chunks": (1, 2, 4), **({"shards": (2, 4, 4)} if shards else {})}
    made = array.to_dataset()
    made.to_zarr(path, zarr_format=form, consolidated=False, encoding={"t": encoding})  # type: ignore[call-overload]
    return path


@pytest.mark.parametrize(("form", "shards"), [(2, False), (3, False), (3, True)])
def test_a_chunk_that_is_overwritten_in_place_is_noticed(
    tmp_path: Path, form: int, shards: bool
) -> None:
    path = stored(tmp_path, form, shards)
    reader = open_source([str(path)]).reader
    assert reader is not None
    every = slice(None)
    np.testing.assert_array_equal(reader.read_box((every,) * 3), VALUES)
    files = ChunkFiles.of(str(path), "t")
    place = (4 // files.sizes[0], 2 // files.sizes[1], 0)
    chunk = path / "t" / files.metadata.encode_chunk_key(place)
    newest = newest_member(str(path / "t"))
    with open(chunk, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(first)  # the folder does not change
    os.utime(chunk, ns=(newest + LATER, newest + LATER))
    np.testing.assert_array_equal(reader.read_box((slice(0, 4), every, every)), VALUES[:4])
    with pytest.raises(InputError, match="was written to after it was opened"):
        reader.read_box((slice(3, 5), every, every))
    with pytest.raises(InputError, match="was written to after it was opened"):
        reader.read([np.array([0, 4]), np.arange(4), np.arange(4)])


def test_chunks_that_were_never_written_have_no_time(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "b.zarr" / "t", shape=(4, 4), chunks=(2, 2), dtype="f4")
    array[:2, 2:] = 1.0
    files = ChunkFiles.of(str(tmp_path / "b.zarr"), "t")
    assert files.newest([slice(2, 4), slice(0, 4)]) == 0
    assert files.newest([slice(0, 2), np.array([1])]) == 0
    written = os.stat(tmp_path / "b.zarr" / "t" / files.metadata.encode_chunk_key((0, 1)))
    assert files.newest([slice(0, 4), slice(0, 4)]) == written.st_mtime_ns
    empty = tmp_path / "empty"
    empty.mkdir()
    assert newest_member(str(empty)) == 0
