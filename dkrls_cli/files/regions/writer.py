"""Grids to files, region by region: the values of a variable are never all in memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any, Protocol

from numpy.typing import NDArray

from dkrls_cli.arrays import Slices
from dkrls_cli.files.output.atomic import atomic_write
from dkrls_cli.files.output.placing import flush_several
from dkrls_cli.files.regions.creating import Plan, create_file, finish_file, plan_file
from dkrls_cli.files.regions.slots import Blank, Slot, Tally
from dkrls_cli.files.stored.handles import NETCDF_LOCK

# Bytes of the cache of chunks of a variable that is written: a few chunks.
_CHUNK_CACHE = 2**24
# Bytes of a store that are written at a time: zarr holds all chunks of them, twice.
_AT_ONCE = 2**23
# Seconds between two times that a file is brought onto the disk while it is written: few, so that
# the disk has something to do all the time.
_FLUSH_EVERY = 0.1
# How many times as long as it takes to list the files of a store it is not listed again: 5 % of a
# processor is little.
_REST = 20.0


class Remote(Protocol):
    """Writes regions in another process: it can be pickled, and holds no open file."""

    def write(self, name: str, part: Slices, values: NDArray[Any]) -> Tally:
        """Write a region, and return what is to be added to the writer: see `Writer.add`."""
        ...


class Writer:
    """Writes regions of the variables of a file, each once, in any order and from any thread.

    Parameters
    ----------
    plan
        The file, which has been created.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tallies = {name: Tally() for name in plan.slots}
        self._fresh: dict[str, Tally] = {}
        self._adding = Lock()

    def write(self, name: str, part: Slices, values: NDArray[Any]) -> None:
        """Write a region of a variable, NaN where values are missing.

        Parameters
        ----------
        name
            Name of the variable.
        part
            A slice for each of its axes.
        values
            Values of that shape.

        Raises
        ------
        OutputError
            If the type of the variable cannot hold the values: see :meth:`Slot.store`.
        """
        self.add(name, self._put(name, part, values))

    def add(self, name: str, tally: Tally) -> None:
        """Add what is known of a region that another process has written."""
        with self._adding:
            self.tallies[name] += tally
            self._fresh[name] = self._fresh.get(name, Tally()) + tally

    def take_fresh(self) -> dict[str, Tally]:
        """Return what is known of the regions since this was called last."""
        fresh, self._fresh = self._fresh, {}
        return fresh

    def remote(self) -> Remote | None:
        """Return what writes regions from other processes; None if only this one can."""
        return None

    @property
    def notes(self) -> list[str]:
        """What was not written as in the source, or not as it is, a sentence each."""
        found = [slot.all_notes(self.tallies[name]) for name, slot in self.plan.slots.items()]
        return [note for notes in found for note in notes]

    def _put(self, name: str, part: Slices, values: NDArray[Any]) -> Tally:
        raise NotImplementedError


class NetcdfWriter(Writer):
    """Writes regions into an open NetCDF file."""

    def __init__(self, plan: Plan, file: Any) -> None:
        super().__init__(plan)
        self._file = file
        for name in plan.slots:
            file.variables[name].set_auto_maskandscale(False)
            if file.variables[name].chunking() != "contiguous":
                file.variables[name].set_var_chunk_cache(size=_CHUNK_CACHE)

    def _put(self, name: str, part: Slices, values: NDArray[Any]) -> Tally:
        slot = self.plan.slots[name]
        region = slot.region(part, values)
        stored, tally = slot.store(values)
        self.put_stored(name, region, stored)
        return tally

    def put_stored(self, name: str, part: Slices, stored: NDArray[Any]) -> None:
        """Write a region that is in the stored type already."""
        with NETCDF_LOCK:
            self._file.variables[name][part] = stored


@dataclass(frozen=True, eq=False)
class ZarrRemote:
    """Writes regions into a Zarr store, from any process."""

    path: str
    slots: Mapping[str, Slot]

    def write(self, name: str, part: Slices, values: NDArray[Any]) -> Tally:
        """Write a region of a variable, and return what is known of it."""
        import zarr

        slot, tally = self.slots[name], Tally()
        first, *others = slot.region(part, values)
        group: Any = zarr.open_group(self.path, mode="r+", use_consolidated=False)
        array = group[name]
        step = _rows_at_once(array)
        for start in range(first.start, first.stop, step):
            rows = slice(start, min(first.stop, start + step))
            stored, own = slot.store(values[rows.start - first.start : rows.stop - first.start])
            array[(rows, *others)] = stored
            tally += own
        return tally


def _rows_at_once(array: Any) -> int:
    """Return how many rows of an array to write at a time: whole chunks of little memory."""
    row = math.prod(array.shape[1:]) * array.dtype.itemsize * array.chunks[0]
    return int(array.chunks[0] * max(1, _AT_ONCE // max(1, row)))


class RemoteWriter(Writer):
    """Writes regions as other processes may."""

    def __init__(self, plan: Plan, remote: Remote) -> None:
        super().__init__(plan)
        self._remote = remote

    def remote(self) -> Remote:
        """Return what writes regions from other processes."""
        return self._remote

    def _put(self, name: str, part: Slices, values: NDArray[Any]) -> Tally:
        return self._remote.write(name, part, values)


@contextmanager
def grid_writer(
    path: str,
    blanks: Sequence[Blank],
    command: Sequence[str],
    *,
    overwrite: bool,
    compress: int | None = None,
    regions: Mapping[str, int] | None = None,
) -> Iterator[Writer]:
    """Yield what writes variables to a NetCDF file, or a Zarr store if named ``.zarr``, in regions.

    The file takes its place, whole, when the block ends without an error, and is then as
    :func:`dkrls_cli.files.writing.write_grid` writes it. Values that a packing cannot hold are an
    exception: they are stored as the nearest that it can, and noted.

    Parameters
    ----------
    path
        The target.
    blanks
        The variables. Dimensions of the same name have the same coordinates.
    command
        Words of the command line, for the history.
    overwrite
        Whether the target may exist.
    compress
        Level of compression, 0 (none) to 9. None: 1 for variables above 1 MB, and what Zarr does.
    regions
        By dimension, how many coordinates a region has, where it does not have all of them: no two
        regions share a chunk then. None: chunks as of a file that is written at once.

    Raises
    ------
    OutputError
        If the target exists and may not be overwritten, or cannot be written.
    InputError
        If the library for the format is not installed, or two variables have different coordinates
        along the same dimension.
    """
    target = path.rstrip("/")
    zarr = target.endswith(".zarr")
    plan = plan_file(blanks, command, zarr=zarr, compress=compress, regions=regions)
    with atomic_write(target, overwrite=overwrite, folder=zarr) as temporary:
        create_file(temporary, plan, path)
        with opened_writer(temporary, plan) as writer:
            yield writer
        finish_file(temporary, plan, writer.tallies)


@contextmanager
def opened_writer(path: Path, plan: Plan) -> Iterator[Writer]:
    """Yield what writes regions into a file that has been created."""
    if plan.zarr:
        with flushed_meanwhile(path):
            yield RemoteWriter(plan, ZarrRemote(str(path), plan.slots))
        return
    import netCDF4

    with NETCDF_LOCK:
        file = netCDF4.Dataset(path, "r+")
    try:
        with flushed_meanwhile(path):
            yield NetcdfWriter(plan, file)
    finally:
        with NETCDF_LOCK:
            file.close()


@contextmanager
def flushed_meanwhile(path: Path, every: float = _FLUSH_EVERY) -> Iterator[None]:
    """Bring what is written to a file or store onto the disk now and then, in a thread beside.

    Little is then left to be waited for at the end, when all of it has to be there. What cannot be
    brought there meanwhile is told then. What is there is dropped from the cache of the system, so
    that its memory serves for what is written next: a large output takes little of it, and leaves
    the input in the cache.

    Parameters
    ----------
    path
        The file, or the folder of the store.
    every
        Seconds between two times.
    """
    ended = Event()

    def flush() -> None:
        known: set[Path] = set()
        pause = every
        while not ended.wait(pause):
            start = perf_counter()
            fresh = _files(path) - known
            pause = max(every, _REST * (perf_counter() - start))
            flush_several(fresh, _try_to_flush)
            if path.is_dir():  # files of a store are written once
                known |= fresh

    thread = Thread(target=flush, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _files(path: Path) -> set[Path]:
    """Return a file, or all files of a store."""
    if not path.is_dir():
        return {path}
    return {Path(folder, name) for folder, _, names in os.walk(path) for name in names}


def _try_to_flush(path: Path) -> None:
    """Bring the contents of a file onto the disk, if it is still there and the system can."""
    with suppress(OSError):
        _flush(path)


def _flush(path: Path) -> None:
    """Bring the contents of a file onto the disk, and drop them from the cache of the system."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        getattr(os, "fdatasync", os.fsync)(descriptor)  # macOS has no fdatasync
        if hasattr(os, "posix_fadvise"):  # nor this, which drops only what is on the disk
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
