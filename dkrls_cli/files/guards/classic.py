"""The header of a NetCDF 3 file, read with care before the library reads it.

The library believes the header: a count with one wrong bit lets it ask for gigabytes, and cells
beyond the end of a file that was cut short read as zeros. The format is that of the netCDF User's
Guide, "File Structure and Performance": lists of dimensions, attributes and variables, each with
its number of items.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from dkrls_cli.errors import InputError

# Bytes of a header that are read: files with a thousand variables have a hundredth of it.
_LARGEST = 2**24

# Marks of the lists, and bytes of a number of each type: NetCDF 3 has six, version 5 of it more.
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}

# A number of records that says that they are still being written.
_GROWING = (2**32 - 1, 2**64 - 1)


def is_classic(path: str) -> bool:
    """Return whether a file is NetCDF 3, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(4) in (b"CDF\x01", b"CDF\x02", b"CDF\x05")


def check_classic(path: str) -> None:
    """Raise InputError if a NetCDF 3 file is damaged, or has fewer bytes than it declares."""
    size = os.stat(path).st_size
    with open(path, "rb") as file:
        header = _Header(file.read(_LARGEST))
    try:
        end = header.data_end()
    except ValueError as error:
        raise InputError(f"'{path}' is damaged: its header {error}.") from None
    if end > size:
        raise InputError(
            f"'{path}' has {size} bytes and declares data up to byte {end}: it is cut short, or "
            "damaged."
        )


@dataclass
class _Header:
    """The bytes of a header, and how far they have been read."""

    raw: bytes
    place: int = 4

    def data_end(self) -> int:
        """Return the byte at which the data ends that the header declares."""
        records = self._count(checked=False)
        lengths = [self._dimension() for _ in range(self._list(_DIMENSIONS))]
        self._skip_attributes()
        variables = [self._variable(lengths) for _ in range(self._list(_VARIABLES))]
        growing = [size for _, size, grows in variables if grows]
        # records are filled up to a multiple of four, but not those of a single variable
        step = sum(size + -size % 4 for size in growing) if growing[1:] else sum(growing)
        last = 0 if records in _GROWING else max(0, records - 1)
        ends = [begin + size + grows * last * step for begin, size, grows in variables]
        return max(ends, default=0) if records else max(_fixed_ends(variables), default=0)

    @property
    def _wide(self) -> bool:
        """Whether counts have eight bytes."""
        return self.raw[3] == 5

    def _number(self, width: int) -> int:
        end = self.place + width
        if end > len(self.raw):
            raise ValueError("ends too early")
        found = int.from_bytes(self.raw[self.place : end], "big")
        self.place = end
        return found

    def _count(self, *, checked: bool = True) -> int:
        """Return a number of items, of which each takes a byte at least if it is `checked`."""
        found = self._number(8 if self._wide else 4)
        if checked and found > len(self.raw) - self.place:
            raise ValueError(f"counts {found} items, more than it has bytes")
        return found

    def _skip(self, size: int) -> None:
        """Go on behind so many bytes, which are filled up to a multiple of four."""
        self.place += size + -size % 4
        if self.place > len(self.raw):
            raise ValueError("ends too early")

    def _list(self, mark: int) -> int:
        """Return the number of items of a list; one without any has no mark."""
        found, count = self._number(4), self._count()
        if found != mark and (found, count) != (0, 0):
            raise ValueError(f"has {found} where a list should begin")
        return count

    def _dimension(self) -> int:
        self._skip(self._count())
        return self._count(checked=False)

    def _skip_attributes(self) -> None:
        for _ in range(self._list(_ATTRIBUTES)):
            self._skip(self._count())
            width = self._width()
            self._skip(width * self._count())

    def _width(self) -> int:
        """Return the bytes of a number of the type that is named next."""
        kind = self._number(4)
        if kind not in _SIZES:
            raise ValueError(f"has a type {kind}")
        return _SIZES[kind]

    def _variable(self, lengths: list[int]) -> tuple[int, int, bool]:
        """Return where a variable begins, its bytes or those of a record, and if it has records."""
        self._skip(self._count())
        width = 8 if self._wide else 4
        places = [self._number(width) for _ in range(self._count())]
        if any(place >= len(lengths) for place in places):
            raise ValueError("names a dimension that it does not have")
        self._skip_attributes()
        size = self._width()
        self._number(width)  # its bytes, which are those that we count
        begin = self._number(4 if self.raw[3] == 1 else 8)
        own = [lengths[place] for place in places]
        grows = bool(own) and own[0] == 0
        return begin, size * math.prod(own[1:] if grows else own), grows


def _fixed_ends(variables: list[tuple[int, int, bool]]) -> list[int]:
    """Return where the variables end that have no records."""
    return [begin + size for begin, size, grows in variables if not grows]
