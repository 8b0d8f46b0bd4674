"""Sources of grids: which files an input names, their kinds, and a grid whose values wait."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import AT_ONCE, Indices, blocks
from dkrls_cli.errors import InputError
from dkrls_cli.files.foreign.engines import ENDINGS, engine_of, like_file
from dkrls_cli.files.foreign.parquet import ENDINGS as PARQUET
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import Grid
from dkrls_cli.grid.observations import attach_errors
from dkrls_cli.grid.style import Style

if TYPE_CHECKING:
    from dkrls_cli.files.stored.reader import Reader
    from dkrls_cli.files.text.copying import TableCopy

FileKind = Literal["table", "netcdf", "zarr", "engine"]

# Numbers this large mark missing values: netCDF leaves 9.97e36 in floats that nobody wrote.
UNWRITTEN = 9.9e36
_DEFAULT_FILL, _NEAR_FILL = 9.96921e36, 1e33

# Endings of the names of tables.
TABLES = (".csv", ".csv.gz", ".tsv", ".txt", *PARQUET)
_NETCDF = (".nc", ".nc4", ".cdf", ".netcdf")


@dataclass(frozen=True, eq=False)
class Source:
    """A grid in a file, before its values are read.

    Attributes
    ----------
    axes, name, attrs, style
        As the grid will have them.
    dtype
        Type of the values.
    load
        Reads the values, which may then be written to, or are read-only.
    scalars
        Axes of one coordinate that the grid does not have: scalars of the file.
    notes
        What was decided or noticed while reading, a sentence each, for the user.
    table
        The text table that the grid was read from, to be written again; None for other files.
    errors
        Reads the standard errors of the observations; None: they have none that are known.
    errors_from
        A number, or the name of the variable that they are read from; None: from elsewhere.
    read
        Reads the values at some coordinates: ascending indices for each axis. None: the values can
        only be read as a whole. Values that are no usable numbers are as the file has them.
    reader
        Does the same in any process, and can be pickled. None: the values are in memory.
    chunks
        Sizes of the stored chunks along each axis; None where values are stored in one piece, or
        that is not known.
    paths
        The files.
    compressed
        Whether the values are stored in fewer bytes than they have.
    """

    axes: tuple[Axis, ...]
    name: str
    attrs: Mapping[str, Any]
    style: Style
    dtype: str
    load: Callable[[], NDArray[Any]]
    scalars: tuple[Axis, ...] = ()
    notes: list[str] = field(default_factory=list)
    table: TableCopy | None = None
    errors: Callable[[], Grid | float] | None = None
    errors_from: float | str | None = None
    read: Callable[[Sequence[Indices]], NDArray[Any]] | None = None
    reader: Reader | None = None
    chunks: tuple[int, ...] | None = None
    paths: tuple[str, ...] = ()
    compressed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(axis.size for axis in self.axes)

    def grid(self) -> Grid:
        """Read the values; cells that hold no usable number are missing, and noted."""
        values, counts = mask_unusable(self.load())
        self.notes.extend(unusable_notes(counts))
        grid = Grid(values, self.axes, self.name, self.attrs, self.style)
        return grid if self.errors is None else attach_errors(grid, self.errors())


def expand(given: str) -> list[str]:
    """Return the files that an input stands for: itself, or those that a pattern matches.

    Raises
    ------
    InputError
        If there is no such file.
    """
    if given == "-" or os.path.exists(given):
        return [given]
    paths = sorted(glob.glob(given)) if glob.has_magic(given) else []
    if not paths:
        what = "No file matches" if glob.has_magic(given) else "There is no file"
        raise InputError(f"{what} '{given}'.")
    return [like_file(path, given) for path in paths]


def kind_of(path: str) -> FileKind:
    """Return how to read a file, by its name or else by its first bytes.

    Raises
    ------
    InputError
        If it is of no kind that can be read.
    """
    name = path.lower().rstrip("/")
    if engine_of(path) is not None:
        return "engine"
    if path == "-" or name.endswith(TABLES):
        return "table"
    if name.endswith(".zarr"):
        return "zarr"
    if name.endswith(_NETCDF) and not os.path.isdir(path):
        return "netcdf"
    return _kind_by_content(path)


def is_netcdf(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of NetCDF 3 or 4."""
    return start[:3] == b"CDF" or start[:8] == b"\x89HDF\r\n\x1a\n"


def bytes_on_disk(path: str) -> int:
    """Return the size of a file, or of all files of a folder."""
    if not os.path.isdir(path):
        return os.stat(path).st_size
    return sum(
        os.lstat(os.path.join(folder, name)).st_size
        for folder, _, names in os.walk(path)
        for name in names
    )


def _kind_by_content(path: str) -> FileKind:
    expected = (
        f"Expected NetCDF ({' '.join(_NETCDF)}), Zarr (.zarr), a table ({' '.join(TABLES)}), GRIB "
        f"or GeoTIFF ({' '.join(ENDINGS)})."
    )
    if os.path.isdir(path):
        if any(os.path.exists(os.path.join(path, n)) for n in ("zarr.json", ".zgroup")):
            return "zarr"
        raise InputError(f"'{path}' is a folder and no Zarr store. {expected}")
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror}).") from None
    if is_netcdf(start):
        return "netcdf"
    if start[:2] == b"\x1f\x8b" and not path.lower().removesuffix(".gz").endswith(_NETCDF):
        return "table"
    what = {
        b"PK": "is a zip archive, as model files are, and no data",
        b"\x1f\x8b": "is compressed: gunzip it first",
        b"GR": "is GRIB, whatever its name: end it in .grib",
    }.get(start[:2], "is of no kind that can be read")
    raise InputError(f"'{path}' {what}. {expected}")


def mask_unusable(values: NDArray[Any]) -> tuple[NDArray[Any], Counter[str]]:
    """Return values with NaN where they are infinite or were never written, and counts of these.

    Every NaN becomes a quiet one: arithmetic with the signalling NaN that R writes for NA warns.
    Values that may be written to are changed in place.
    """
    values = values if values.flags.writeable else values.copy()
    counts: Counter[str] = Counter()
    for part in blocks(values.shape, AT_ONCE):
        counts.update(_mask_part(values[part]))
    return values, counts


def _mask_part(values: NDArray[Any]) -> dict[str, int]:
    """Set values to NaN where they are infinite or were never written, and return their counts."""
    with np.errstate(invalid="ignore"):
        usable = np.abs(values) < UNWRITTEN
        if usable.all():
            return {}
        missing = np.isnan(values)
        infinite = int(np.count_nonzero(np.isinf(values)))
        unwritten = int(np.count_nonzero(np.abs(np.abs(values) - _DEFAULT_FILL) < _NEAR_FILL))
    large = int(np.count_nonzero(~usable & ~missing)) - infinite - unwritten
    values[~usable] = np.nan
    return {"infinite": infinite, "never written": unwritten, "beyond 9.9e+36": large}


def unusable_notes(counts: Mapping[str, int]) -> list[str]:
    """Return a note on the values that were taken as missing; none if there are none."""
    found = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return [f"values taken as missing: {found}"] if found else []
