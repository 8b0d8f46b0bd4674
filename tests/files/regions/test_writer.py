"""A file that is written region by region is the one that is written at once."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import sample_files as files

from dkrls_cli.arrays import Slices
from dkrls_cli.errors import InputError, OutputError
from dkrls_cli.files.reading import open_source
from dkrls_cli.files.regions.slots import Blank
from dkrls_cli.files.regions.writer import Writer, grid_writer
from dkrls_cli.files.writing import Field, write_grid
from dkrls_cli.grid.axes import axis_of, index_axis
from dkrls_cli.grid.style import Packing, Style

DATED = pytest.mark.usefixtures("dated")


@pytest.fixture
def dated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")


def regions_of(shape: tuple[int, ...], steps: tuple[int, ...]) -> Iterator[Slices]:
    ranges = [range(0, size, step) for size, step in zip(shape, steps, strict=True)]
    for starts in itertools.product(*ranges):
        ends = zip(starts, steps, shape, strict=True)
        yield tuple(slice(start, min(size, start + step)) for start, step, size in ends)


def blank_of(field: Field, **options: Any) -> Blank:
    missing = bool(np.isnan(field.values).any())
    return Blank(
        field.name, field.axes, field.attrs, field.style, **{"may_miss": missing, **options}
    )


def write_parts(writer: Writer, field: Field, steps: tuple[int, ...]) -> None:
    """Write a field in regions, the last one first."""
    for part in reversed(list(regions_of(field.values.shape, steps))):
        writer.write(field.name, part, field.values[part])


def write_both(folder: Path, ending: str, fields: list[Field], **options: Any) -> list[str]:
    """Write fields at once and in regions, compare the files, and return the notes."""
    once, parts = folder / f"once.{ending}", folder / f"parts.{ending}"
    command = ["dkrls", "predict"]
    notes = write_grid(str(once), fields, command, overwrite=False, **options)
    blanks = [blank_of(field) for field in fields]
    with grid_writer(str(parts), blanks, command, overwrite=False, **options) as writer:
        for field in fields:
            write_parts(writer, field, tuple(max(1, size // 2) for size in field.values.shape))
    assert writer.notes == notes
    (same_stores if ending == "zarr" else same_files)(once, parts)
    return notes


def same_attrs(one: Any, other: Any) -> None:
    assert set(one.ncattrs()) == set(other.ncattrs())
    for key in one.ncattrs():
        mine, theirs = one.getncattr(key), other.getncattr(key)
        assert type(mine) is type(theirs)
        np.testing.assert_array_equal(mine, theirs)


def same_files(one: Path, other: Path) -> None:
    with netCDF4.Dataset(one) as mine, netCDF4.Dataset(other) as theirs:
        same_attrs(mine, theirs)
        sizes = [
            {name: (len(dim), dim.isunlimited()) for name, dim in file.dimensions.items()}
            for file in (mine, theirs)
        ]
        assert sizes[0] == sizes[1]
        assert set(mine.variables) == set(theirs.variables)
        for name, variable in mine.variables.items():
            same = theirs.variables[name]
            for each in (variable, same):
                each.set_auto_maskandscale(False)
            assert (variable.dtype, variable.dimensions) == (same.dtype, same.dimensions)
            assert (variable.filters(), variable.chunking()) == (same.filters(), same.chunking())
            assert variable.endian() == same.endian()
            same_attrs(variable, same)
            np.testing.assert_array_equal(variable[...], same[...])


def same_stores(one: Path, other: Path) -> None:
    names = [sorted(p.relative_to(f).as_posix() for p in f.rglob("*")) for f in (one, other)]
    assert names[0] == names[1]
    for name in names[0]:
        if not (one / name).is_file():
            continue
        mine, theirs = (one / name).read_bytes(), (other / name).read_bytes()
        if Path(name).name.startswith(".z"):
            assert json.loads(mine) == json.loads(theirs), name
        else:
            assert mine == theirs, name


TABLES = ("long_table", "zipped_table", "wide_table")


@DATED
@pytest.mark.parametrize("name", [name for name in files.WHOLE if name not in TABLES])
def test_regions_make_the_file_that_is_written_at_once(name: str, tmp_path: Path) -> None:
    grid = open_source([str(files.WHOLE[name](tmp_path))]).grid()
    field = Field(grid.name, grid.values, grid.axes, grid.attrs, grid.style)
    write_both(tmp_path, "zarr" if len(name) % 4 == 0 else "nc", [field])


AXES = (
    axis_of("time", np.arange(6.0), {"units": "days since 2000-01-01"}),
    axis_of("lat", np.linspace(-60, 60, 5), {"units": "degrees_north"}),
    index_axis("member", 4),
)
VALUES = np.linspace(0, 30, 120).reshape(6, 5, 4)
GAPS = np.where(VALUES % 7 < 1, np.nan, VALUES)
MARKED = {"scale_factor": 0.01, "add_offset": 3.0, "_FillValue": np.int16(-1)}


@DATED
@pytest.mark.parametrize("ending", ["nc", "zarr"])
@pytest.mark.parametrize("values", [VALUES, GAPS])
@pytest.mark.parametrize(
    "style",
    [
        Style(),
        Style("float32", fill=-9.0, marks=("_FillValue", "missing_value")),
        Style(packing=Packing("int16", MARKED)),
        Style(packing=Packing("int16", {"scale_factor": 0.01, "valid_min": np.int16(0)})),
        Style(packing=Packing("uint8", {"scale_factor": 0.5, "missing_value": np.uint8(0)})),
        Style("float32", unlimited=("time",)),
        Style("float32", unlimited=("member",)),
    ],
)
def test_styles_are_written_alike(
    style: Style, values: np.ndarray, ending: str, tmp_path: Path
) -> None:
    stated = {
        "units": "K",
        "valid_range": [0.0, 30.0],
        "valid_max": 29.0,
        "actual_range": np.array([0.0, 30.0]),
        "flag": True,
    }
    if style.packing is not None and "missing_value" in style.packing.attrs:
        values = values + 1  # 0 is the mark
    fields = [
        Field("t", values, AXES, stated, style),
        Field("t_std", VALUES + 1, AXES, {}, Style()),
    ]
    write_both(tmp_path, ending, fields)


@DATED
@pytest.mark.parametrize("ending", ["nc", "zarr"])
@pytest.mark.parametrize("compress", [None, 0, 3])
def test_compression_is_the_same(ending: str, compress: int | None, tmp_path: Path) -> None:
    axes = (index_axis("x", 400), index_axis("y", 400))
    values = np.arange(160_000.0).reshape(400, 400) % 977
    write_both(tmp_path, ending, [Field("t", values, axes)], compress=compress)


def test_what_a_packing_cannot_hold_is_the_nearest_and_noted(tmp_path: Path) -> None:
    style = Style(packing=Packing("int16", {"scale_factor": 0.01, "_FillValue": np.int16(5)}))
    values = VALUES.copy()
    values[0, 0, :3] = 1e6, 0.05, np.nan
    field = Field("t", values, AXES, {}, style)
    path = str(tmp_path / "a.nc")
    with grid_writer(path, [blank_of(field)], [], overwrite=False) as writer:
        write_parts(writer, field, (6, 5, 4))
        assert writer.notes == [
            "1 cells of 't' lie beyond -327.68 to 327.67, which its int16 can hold, and are stored "
            "as the nearer of the two",
            "1 cells of 't' equal a mark of missing values, and are stored as the next number "
            "beside it",
        ]
    found = open_source([path]).load()
    np.testing.assert_allclose(found[0, 0, :3], [327.67, 0.04, np.nan], atol=1e-9)


def test_a_number_equal_to_the_fill_is_not_missing(tmp_path: Path) -> None:
    field = Field("t", VALUES, AXES, {}, Style("float32", fill=0.0))
    path = str(tmp_path / "a.nc")
    with grid_writer(path, [blank_of(field)], [], overwrite=False) as writer:
        write_parts(writer, field, (2, 5, 4))
    assert "equal a mark of missing values" in writer.notes[0]
    found = open_source([path]).load()
    np.testing.assert_allclose(found, VALUES.astype("f4"), atol=1e-30)


def test_what_no_type_holds_is_refused(tmp_path: Path) -> None:
    big = Field("t", VALUES * 1e40, AXES, {}, Style("float32"))
    path = str(tmp_path / "a.nc")
    with (
        pytest.raises(OutputError, match=r"'t' has 3e\+41, which float32 cannot hold"),
        grid_writer(path, [blank_of(big)], [], overwrite=False) as writer,
    ):
        write_parts(writer, big, (6, 5, 4))
    gaps = Field("t", GAPS, AXES, {}, Style(packing=Packing("int16", {"scale_factor": 0.1})))
    with (
        pytest.raises(OutputError, match="'t' has missing cells, and no mark for them in int16"),
        grid_writer(path, [blank_of(gaps, may_miss=False)], [], overwrite=False) as writer,
    ):
        write_parts(writer, gaps, (6, 5, 4))
    assert list(tmp_path.iterdir()) == []


def test_other_coordinates_and_existing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    other = replace(AXES[1], numbers=AXES[1].numbers + 1)
    blanks = [Blank("a", AXES), Blank("b", (AXES[0], other, AXES[2]))]
    with (
        pytest.raises(InputError, match="different coordinates of 'lat'"),
        grid_writer(str(path), blanks, [], overwrite=False),
    ):
        pass
    path.write_bytes(b"old")
    with (
        pytest.raises(OutputError, match="exists already"),
        grid_writer(str(path), blanks[:1], [], overwrite=False),
    ):
        pass
    with (
        pytest.raises(ZeroDivisionError),
        grid_writer(str(path), blanks[:1], [], overwrite=True),
    ):
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_regions_are_made_of_whole_chunks(ending: str, tmp_path: Path) -> None:
    axes = (index_axis("t", 50), index_axis("y", 300), index_axis("x", 600))
    path = str(tmp_path / f"a.{ending}")
    with grid_writer(path, [Blank("v", axes)], [], overwrite=False, regions={"t": 12}) as writer:
        for part in regions_of((50, 300, 600), (12, 300, 600)):
            shape = (part[0].stop - part[0].start, 300, 600)
            writer.write("v", part, np.full(shape, float(part[0].start)))
    source = open_source([path])
    assert source.chunks == (2, 300, 600)
    assert source.reader is not None
    column = source.reader.read_box((slice(None), slice(7, 8), slice(9, 10))).ravel()
    np.testing.assert_array_equal(column, np.arange(50) // 12 * 12)


def test_a_store_is_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dkrls_cli.files.regions.writer._AT_ONCE", 1)
    path = str(tmp_path / "a.zarr")
    axes = (index_axis("t", 20), index_axis("x", 500), index_axis("y", 100))
    values = np.random.default_rng(0).normal(size=(20, 500, 100))
    field = Field("v", values, axes)
    with grid_writer(path, [blank_of(field)], [], overwrite=False, regions={"t": 7}) as writer:
        write_parts(writer, field, (7, 500, 100))
    np.testing.assert_array_equal(open_source([path]).load(), values)


def _write_remotely(remote: Any, part: Slices, values: np.ndarray) -> Any:
    return remote.write("t", part, values)


@DATED
@pytest.mark.slow
def test_other_processes_write_regions_of_a_store(tmp_path: Path) -> None:
    field = Field("t", GAPS, AXES, {"valid_min": 0.0, "valid_max": 7.0}, Style("float32"))
    once, parts = tmp_path / "once.zarr", tmp_path / "parts.zarr"
    steps, blank = (2, 5, 4), blank_of(field)
    for path in (once, parts):
        with grid_writer(str(path), [blank], [], overwrite=False, regions={"time": 2}) as writer:
            if path == once:
                write_parts(writer, field, steps)
                continue
            remote = writer.remote()
            assert pickle.loads(pickle.dumps(remote)).slots["t"].dtype == "float32"
            jobs = [(remote, part, GAPS[part]) for part in regions_of(GAPS.shape, steps)]
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                for tally in pool.starmap(_write_remotely, jobs):
                    writer.add("t", tally)
    same_stores(once, parts)


def test_netcdf_is_written_by_one_process(tmp_path: Path) -> None:
    with grid_writer(str(tmp_path / "a.nc"), [Blank("t", AXES)], [], overwrite=False) as writer:
        assert writer.remote() is None


@pytest.mark.parametrize("style", [Style("float32"), Style(packing=Packing("int16", MARKED))])
@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_memory_is_that_of_a_few_blocks(ending: str, style: Style, tmp_path: Path) -> None:
    """A variable of 64 MB, in regions of 3.2 MB."""
    shape = (20, 400, 1000)
    axes = tuple(index_axis(name, size) for name, size in zip("tyx", shape, strict=True))
    values = np.ones((1, *shape[1:]))
    path = str(tmp_path / f"a.{ending}")
    blank = Blank("v", axes, {}, style)
    tracemalloc.start()
    try:
        with grid_writer(path, [blank], [], overwrite=False, regions={"t": 1}) as writer:
            for row in range(shape[0]):
                writer.write("v", (slice(row, row + 1), slice(None), slice(None)), values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * values.nbytes


@pytest.mark.parametrize("error", [None, OSError("full")])
def test_a_file_is_brought_onto_the_disk_while_it_is_written(tmp_path, monkeypatch, error):
    from threading import Event, active_count

    from dkrls_cli.files.regions import writer

    twice, seen = Event(), []

    def flush(path):
        seen.append(path)
        if len(seen) > 1:
            twice.set()
        if error is not None:
            raise error

    monkeypatch.setattr(writer, "_flush", flush)
    before = active_count()
    with writer.flushed_meanwhile(tmp_path / "f", every=1e-4):
        assert twice.wait(30.0)
    assert active_count() == before
    assert set(seen) == {tmp_path / "f"}


def test_files_of_a_store_are_brought_onto_the_disk_once_each(tmp_path, monkeypatch):
    from threading import Event

    from dkrls_cli.files.regions import writer

    came, seen = {"a": Event(), "b": Event()}, []

    def flush(path):
        seen.append(path)
        came[path.name].set()

    monkeypatch.setattr(writer, "_flush", flush)
    monkeypatch.setattr(writer, "_REST", 0.0)
    with writer.flushed_meanwhile(tmp_path, every=1e-4):
        for name, event in came.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / name).touch()
            assert event.wait(30.0)
    assert seen == [tmp_path / name / name for name in came]


def test_bringing_a_file_onto_the_disk_leaves_it_as_it_is(tmp_path):
    from dkrls_cli.files.regions.writer import _flush

    (tmp_path / "f").write_bytes(b"abc")
    _flush(tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"abc"


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="not on this system")
def test_a_whole_file_is_dropped_from_the_cache_once_it_is_on_the_disk(tmp_path, monkeypatch):
    from dkrls_cli.files.regions.writer import _flush

    (tmp_path / "f").write_bytes(b"abc")
    calls = []
    monkeypatch.setattr(os, "fdatasync", calls.append)
    monkeypatch.setattr(os, "posix_fadvise", lambda *what: calls.append(what))
    _flush(tmp_path / "f")
    file, advice = calls
    assert advice == (file, 0, 0, os.POSIX_FADV_DONTNEED)
