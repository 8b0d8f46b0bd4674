"""The files of a Zarr store: when they were changed, and in which of them a part of an array lies.

A store that is written to while it is read would give parts of two versions of its data. Its
folders do not tell that: a chunk that is replaced changes the folder that it lies in, which may be
any below that of the array, and one that is overwritten in place changes no folder at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dkrls_cli.arrays import Indices


@dataclass(frozen=True, eq=False)
class ChunkFiles:
    """The files in which the chunks of an array lie.

    Attributes
    ----------
    folder
        Folder of the array.
    sizes
        Sizes of what is stored in a file: those of a chunk, or of a shard of chunks.
    metadata
        Metadata of the array, which name the file of a chunk.
    """

    folder: str
    sizes: tuple[int, ...]
    metadata: Any

    @classmethod
    def of(cls, path: str, name: str) -> ChunkFiles:
        """Return the files of an array of a store."""
        import zarr

        array: Any = zarr.open_array(os.path.join(path, name), mode="r")
        return cls(os.path.join(path, name), tuple(array.shards or array.chunks), array.metadata)

    def newest(self, part: Sequence[slice | Indices]) -> int:
        """Return when the files of a part were changed last, in nanoseconds; 0 if none is there.

        A chunk that was never written has no file.
        """
        places = [
            _chunks_of(own, size).tolist() for own, size in zip(part, self.sizes, strict=True)
        ]
        names = (self.metadata.encode_chunk_key(place) for place in product(*places))
        return max(map(_changed, (os.path.join(self.folder, name) for name in names)), default=0)


def _chunks_of(part: slice | Indices, size: int) -> Indices:
    """Return the numbers of the chunks along an axis that have samples of a part."""
    if isinstance(part, slice):
        part = np.arange(part.start, part.stop, part.step or 1)
    return np.unique(part // max(1, size))


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def newest_member(folder: str) -> int:
    """Return when a file below a folder was changed last, in nanoseconds; 0 if there is none."""
    return max((each.stat().st_mtime_ns for each in _files(folder)), default=0)


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path)
            else:
                yield entry
