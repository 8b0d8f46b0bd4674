"""Readers give the same values as the whole file, from any process, with few files open."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_source
from dkrls_cli.files.source import Source, kind_of
from dkrls_cli.files.stored import handles
from dkrls_cli.files.stored.reader import Reader, StoredVariable, span_of

TABLES = ("long_table", "zipped_table", "wide_table")
DAYS = {"units": "days since 2000-01-01"}
REST = (slice(None),) * 2
VALUES = np.arange(24 * 3 * 4.0).reshape(24, 3, 4)


def daily(folder: Path, lengths: Sequence[int], ending: str = "nc", **encoding: Any) -> list[str]:
    """Files of some time steps each, one after the other."""
    paths, start = [], 0
    for number, length in enumerate(lengths):
        values = VALUES[start : start + length].astype("f4")
        times = (
            "time",
            np.arange(start, start + length, dtype=float),
            {"units": "days since 2000-01-01"},
        )
        array = xr.Dataset({"t": (("time", "lat", "lon"), values)}, {"time": times})
        path = str(folder / f"{number:04}.{ending}")
        options = {"t": encoding} if encoding else {}
        if ending == "zarr":
            array.to_zarr(path, encoding=options, zarr_format=2)
        else:
            array.to_netcdf(path, encoding=options)
        paths.append(path)
        start += length
    return paths


@pytest.mark.parametrize("name", [name for name in files.WHOLE if name not in TABLES])
def test_parts_of_every_kind_of_file_are_those_of_xarray(name: str, tmp_path: Path) -> None:
    source = open_source([str(files.WHOLE[name](tmp_path))])
    assert source.reader is not None
    whole = source.load()
    assert source.reader.shape == source.shape == whole.shape
    assert source.reader.dtype == whole.dtype == source.dtype
    box = tuple(slice(size // 3, size - size // 4) for size in source.shape)
    np.testing.assert_array_equal(source.reader.read_box(box), whole[box])
    some = [np.unique(np.arange(size) ** 2 % size) for size in source.shape]
    np.testing.assert_array_equal(source.reader.read(some), whole[np.ix_(*some)])
    zarr = kind_of(source.paths[0]) == "zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of several fill values
        engine = {"engine": "zarr", "consolidated": False} if zarr else {}
        with xr.open_dataset(source.paths[0], decode_times=False, **engine) as data:
            theirs = data[source.name].values.reshape(whole.shape)
    np.testing.assert_array_equal(whole, theirs.astype(whole.dtype))


class Folder:
    """Files that are made once for all examples."""

    def __init__(self, folder: Path, ending: str) -> None:
        self.source = open_source(daily(folder, (1, 5, 2, 9, 7), ending))


@pytest.fixture(scope="module", params=["nc", "zarr"])
def joined(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Folder(tmp_path_factory.mktemp("joined"), request.param).source


def indices(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, size - 1), min_size=1, unique=True).map(sorted)


@given(rows=indices(24), lat=indices(3), lon=indices(4))
def test_any_indices_of_joined_files_are_those_of_the_whole(
    joined: Source, rows: list[int], lat: list[int], lon: list[int]
) -> None:
    assert joined.read is not None
    part = [np.array(own) for own in (rows, lat, lon)]
    np.testing.assert_array_equal(joined.read(part), VALUES[np.ix_(*part)])


@given(start=st.integers(0, 24), stop=st.integers(0, 24), last=st.integers(0, 4))
def test_any_box_of_joined_files_is_that_of_the_whole(
    joined: Source, start: int, stop: int, last: int
) -> None:
    assert joined.reader is not None
    box = (slice(start, stop), slice(None), slice(None, last))
    found = joined.reader.read_box(box)
    np.testing.assert_array_equal(found, VALUES[box])
    assert found.dtype == np.float32


def test_a_reader_reads_only_the_files_of_the_part(tmp_path: Path) -> None:
    paths = daily(tmp_path, (2, 2, 2))
    source = open_source(paths)
    for path in paths[::2]:
        os.remove(path)
    assert source.reader is not None
    np.testing.assert_array_equal(source.reader.read_box((slice(2, 4), *REST)), VALUES[2:4])
    with pytest.raises(InputError, match=r"0002\.nc' cannot be read"):
        source.reader.read_box((slice(3, 5), *REST))


def test_a_damaged_file_among_many_is_named(tmp_path: Path) -> None:
    paths = daily(tmp_path, (2, 2, 2, 2), zlib=True)
    raw = Path(paths[2]).read_bytes()
    for damaged in (raw[:500], b"no file at all", b""):
        Path(paths[2]).write_bytes(damaged)
        with pytest.raises(InputError, match=r"0002\.nc' "):
            open_source(paths)
    Path(paths[2]).write_bytes(raw)
    source = open_source(paths)
    written = os.stat(paths[1])
    Path(paths[1]).write_bytes(bytes(written.st_size))  # a disk that has lost its contents
    os.utime(paths[1], ns=(written.st_atime_ns, written.st_mtime_ns))
    assert source.reader is not None
    with pytest.raises(InputError, match=r"0001\.nc' "):
        source.reader.read_box((slice(0, 8), *REST))


def test_a_file_that_has_changed_is_refused_to_who_began_to_read_it(tmp_path: Path) -> None:
    (path,) = daily(tmp_path, (3,))
    source = open_source([path])
    box = (slice(0, 1),) * 3
    assert source.reader is not None
    assert source.reader.read_box(box).item() == 0
    other = str(tmp_path / "other.nc")
    with xr.open_dataset(path) as dataset:
        (dataset + 7).to_netcdf(other)
    os.replace(other, path)
    with pytest.raises(InputError, match=r"0000\.nc' was written to after it was opened"):
        source.reader.read_box(box)
    anew = open_source([path]).reader
    assert anew is not None
    assert anew.read_box(box).item() == 7


def test_a_store_that_has_changed_is_refused_as_well(tmp_path: Path) -> None:
    (path,) = daily(tmp_path, (3,), "zarr")
    source = open_source([path])
    box = (slice(0, 1),) * 3
    assert source.reader is not None
    before = source.reader.read_box(box)
    time.sleep(0.02)  # a file system may count time in steps of a few milliseconds
    with xr.open_zarr(path, consolidated=False, decode_times=False) as dataset:
        changed = dataset.load()
    changed["t"] = changed.t + 7
    changed.to_zarr(path, mode="w", consolidated=False, zarr_format=2)  # all files anew
    with pytest.raises(InputError, match=r"was written to after it was opened"):
        source.reader.read_box(box)
    anew = open_source([path]).reader
    assert anew is not None
    assert anew.read_box(box).item() == before.item() + 7


def test_a_file_that_has_fewer_cells_than_before_is_named(tmp_path: Path) -> None:
    (path,) = daily(tmp_path, (3,))
    stored = open_source([path]).reader
    assert stored is not None
    any_state = Reader(tuple(replace(part, state=None) for part in stored.parts))
    daily(tmp_path, (2,))
    with pytest.raises(InputError, match=r"0000\.nc' has changed: 't' has fewer cells"):
        any_state.read_all()


def test_few_files_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "_MOST_OPEN", 3)
    source = open_source(daily(tmp_path, (1,) * 8))
    assert source.read is not None
    np.testing.assert_array_equal(source.read([np.arange(n) for n in source.shape]), VALUES[:8])
    assert sum(str(tmp_path) in path for path, _ in handles._open) == 3
    np.testing.assert_array_equal(source.load(), VALUES[:8])
    assert not any(str(tmp_path) in path for path, _ in handles._open)


def test_files_may_be_packed_differently(tmp_path: Path) -> None:
    packings: list[dict[str, Any]] = [
        {"dtype": "i2", "scale_factor": 0.5, "_FillValue": np.int16(0)},
        {"dtype": "f4", "_FillValue": np.float32(30)},
        {"dtype": "f4", "_FillValue": np.float32(-1), "chunksizes": (1, 3, 4)},
    ]
    paths = []
    for number, packing in enumerate(packings):
        (tmp_path / str(number)).mkdir()
        made = daily(tmp_path / str(number), (2,) * (number + 1), **packing)
        paths.append(made[-1])
    source = open_source(paths)
    expected = VALUES[:6].copy()
    expected[0, 0, 0] = expected[2, 1, 2] = np.nan  # 0 in the first file, 30 in the second
    assert source.dtype == "float64"
    np.testing.assert_array_equal(source.load(), expected)
    assert source.reader is not None
    np.testing.assert_array_equal(source.reader.read_box((slice(1, 3), *REST)), expected[1:3])


def test_a_reader_is_pickled_and_reads_in_another_process(tmp_path: Path) -> None:
    source = open_source(daily(tmp_path, (2, 3)))
    raw = pickle.dumps(source.reader)
    assert len(raw) < 2000
    assert pickle.loads(raw) == source.reader
    code = (
        "import pickle, sys; reader = pickle.loads(sys.stdin.buffer.read())\n"
        "print(reader.read_box((slice(1, 4), slice(1), slice(1))).ravel().tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=raw, capture_output=True, check=True)
    assert done.stdout.decode().strip() == str(VALUES[1:4, 0, 0].tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_process_opens_files_of_its_own(tmp_path: Path) -> None:
    source = open_source(daily(tmp_path, (2, 3)))
    assert source.reader is not None
    box = (slice(1, 4), slice(0, 1), slice(0, 1))
    expected = source.reader.read_box(box)
    child = os.fork()
    if not child:
        same = not handles._open and np.array_equal(source.reader.read_box(box), expected)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_may_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "_MOST_OPEN", 2)
    source = open_source(daily(tmp_path, (5,) * 4, zlib=True))
    assert source.reader is not None
    boxes = [(slice(i % 18, i % 18 + 3), slice(None), slice(None)) for i in range(100)]
    with ThreadPoolExecutor(8) as pool:
        for box, found in zip(boxes, pool.map(source.reader.read_box, boxes), strict=True):
            np.testing.assert_array_equal(found, VALUES[:20][box])


def test_chunks_of_joined_files_are_no_longer_than_a_file(tmp_path: Path) -> None:
    (first,) = daily(tmp_path, (4,), chunksizes=(3, 2, 4))
    (tmp_path / "more").mkdir()
    others = daily(tmp_path / "more", (4, 2, 4))[1:]
    source = open_source([first, *others])
    assert source.chunks == (2, 2, 4)
    assert source.paths == (first, *others)


def test_a_box_has_no_steps() -> None:
    reader = Reader((StoredVariable("a.nc", "netcdf", "t", (5,), "float32"),))
    with pytest.raises(SettingError, match="has a step of 2"):
        reader.read_box((slice(0, 4, 2),))
    assert reader.read_box((slice(3, 3),)).shape == (0,)


def test_equal_steps_are_a_slice() -> None:
    assert span_of(np.array([1, 3, 5])) == slice(1, 6, 2)
    assert span_of(np.array([4])) == slice(4, 5, 1)
    np.testing.assert_array_equal(span_of(np.array([1, 2, 4])), [1, 2, 4])


@pytest.mark.slow
def test_many_files_are_read_with_few_handles(tmp_path: Path) -> None:
    source_code = (
        "import sys, resource, numpy as np; resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
        "from dkrls_cli.files.reading import open_source\n"
        "source = open_source([sys.argv[1]])\n"
        "part = [np.arange(0, 90, 7), np.array([0]), np.array([1])]\n"
        "print(source.shape, source.load().sum(), source.read(part).sum())"
    )
    array = xr.DataArray(np.ones((1, 2, 3), "f4"), dims=("time", "y", "x"), name="t")
    for day in range(90):
        times = ("time", [float(day)], DAYS)
        array.assign_coords(time=times).to_netcdf(tmp_path / f"{day:03}.nc")
    words = [sys.executable, "-c", source_code, str(tmp_path / "*.nc")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(90, 2, 3) 540.0 13.0"
