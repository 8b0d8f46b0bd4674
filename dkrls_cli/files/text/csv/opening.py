"""Tables opened as text or bytes: files, standard input, Parquet, unzipped if they are gzipped.

Devices that never end, and tables that the memory has no room for, are refused before they are
read.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, TextIO, cast

from dkrls_cli.errors import InputError
from dkrls_cli.files.foreign.parquet import is_parquet, read_as_csv, text_size
from dkrls_cli.memory import available_bytes

# Bytes that are read at a time, and the share of the free memory that the bytes of a table may
# take: as columns they take several times as much.
_BLOCK, _MEMORY_SHARE = 2**22, 0.25
# What a compressed table may unfold to, in times its size, and bytes that are always allowed.
# Tables of numbers shrink to a third or a tenth; what shrinks to a hundredth is one number.
_LARGEST_RATIO, _LEAST_UNZIPPED = 100, 2**23

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextmanager
def open_text(path: str) -> Iterator[TextIO]:
    """Open a file, or standard input (``-``), as text, unzipped if it is gzipped.

    Raises
    ------
    InputError
        If it cannot be read, while opening it or later in the block; the message says why.
    """
    with _open_raw(path) as raw, text_of(raw) as text:
        yield text


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file or of standard input (``-``) as they are, or raise InputError."""
    most = _MEMORY_SHARE * available_bytes()
    with _open_raw(path) as raw:
        if os.path.isfile(path):
            _refuse_more(os.path.getsize(path), most, path)
            return raw.read()
        found, size = [], 0
        while block := raw.read(_BLOCK):  # a pipe may never end
            found.append(block)
            size += len(block)
            _refuse_more(size, most, path)
    return b"".join(found)


def _refuse_more(size: int, most: float, path: str) -> None:
    """Raise InputError if a table has more bytes than the memory has room for."""
    if size > most:
        raise InputError(
            f"{source_name(path)} has {size / 1e9:.3g} GB or more, too much for the memory of this "
            "machine. Give a part of it, or a NetCDF file."
        )


@contextmanager
def _open_raw(path: str) -> Iterator[IO[bytes]]:
    source = source_name(path)
    if path == "-" and sys.stdin is None:
        raise InputError(f"{source} is closed. Expected rows of values.")
    with explain_reading(source), ExitStack() as stack:
        if is_parquet(path):
            _refuse_more(text_size(path), _MEMORY_SHARE * available_bytes(), path)
            yield io.BytesIO(b"".join(read_as_csv(path)))
            return
        raw = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
        _refuse_device(raw, source)
        yield raw


def _refuse_device(raw: IO[bytes], source: str) -> None:
    """Raise InputError if a stream is a device that never ends, such as /dev/zero."""
    try:
        number = raw.fileno()
        about = os.fstat(number)
    except (OSError, ValueError):  # of a stream in memory
        return
    endless = stat.S_ISCHR(about.st_mode) and not os.isatty(number)
    if endless and about.st_rdev != os.stat(os.devnull).st_rdev:
        raise InputError(f"{source} is a device. Expected a file or a pipe with rows of values.")


@contextmanager
def explain_reading(source: str) -> Iterator[None]:
    """Turn errors of reading into InputErrors of one line that name the source."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"There is no file {source}.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(
            f"{source} is not UTF-8 text (byte 0x{byte:02x}). Save it as UTF-8."
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged ({error}). Compress it again.") from None
    except BrokenPipeError:  # of an output that is written meanwhile
        raise
    except OSError as error:
        raise InputError(f"{source} cannot be read ({error.strerror}).") from None


def source_name(path: str) -> str:
    """Return what to call a file in a message."""
    return "standard input" if path == "-" else f"'{path}'"


@contextmanager
def text_of(raw: IO[bytes]) -> Iterator[TextIO]:
    """Read bytes, gzipped or not, as UTF-8 text; the stream of bytes stays open."""
    text = io.TextIOWrapper(_unzip(raw), encoding="utf-8-sig", newline="")
    try:
        yield text
    finally:
        text.detach()


def unzip_bytes(raw: bytes) -> bytes:
    """Return bytes without the compression and the byte order mark that they may have.

    Raise InputError if they are compressed so far that hardly a table can be in them.
    """
    if not raw.startswith(_GZIP):
        return raw.removeprefix(_BYTE_ORDER_MARK)
    most = max(_LEAST_UNZIPPED, _LARGEST_RATIO * len(raw))
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(
            f"{len(raw)} compressed bytes hold more than {most / 1e6:.3g} MB, which is rarely a "
            "table. Unzip the file first if it is right."
        )
    return data.removeprefix(_BYTE_ORDER_MARK)


def _unzip(raw: IO[bytes]) -> IO[bytes]:
    """Return a stream as it is, or what is in it if it is gzipped."""
    if isinstance(raw, io.BytesIO):
        return io.BytesIO(unzip_bytes(raw.read()))
    seen = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(Any, raw))
    gzipped = seen.peek(2)[:2] == _GZIP
    return cast(IO[bytes], gzip.GzipFile(fileobj=seen)) if gzipped else seen
