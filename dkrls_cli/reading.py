"""Files to grids: NetCDF, Zarr and tables, one file or several joined along one dimension."""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.axes import Axis, index_axis, number_axis, text_axis
from dkrls_cli.calendars import TimeScale
from dkrls_cli.errors import DkrlsError, InputError
from dkrls_cli.grid import Grid, Style
from dkrls_cli.settings import hierarchy_of, is_time
from dkrls_cli.tables import read_table

if TYPE_CHECKING:
    import xarray as xr

_TABLES = (".csv", ".csv.gz", ".tsv", ".txt")
_NETCDF = (".nc", ".nc4", ".cdf", ".netcdf")
_NUMBERS = "fiub"
_NO_LONGER_TRUE = ("bounds", "climatology", "cell_measures", "ancillary_variables", "coordinates")
_OF_PACKED_VALUES = ("valid_range", "valid_min", "valid_max")
_POINTERS = (*_NO_LONGER_TRUE, "grid_mapping", "formula_terms")
_BOUNDS = ("_bnds", "_bnd", "_bounds", "_vertices")
_GREGORIAN = ("gregorian", "proleptic_gregorian")  # joined, dates of today agree
_DEGREES = ("degrees_north", "degree_north", "degrees_east", "degree_east")
_PLACE = re.compile(r"(nav_|[xtuvg])?(lat|long?)(itude)?s?(_(rho|psi|[a-z])|\d*)", re.IGNORECASE)
_UNWRITTEN_FLOAT = 9.9e36
_UNWRITTEN = {  # what netCDF leaves in cells of integers that nobody wrote; any byte may be a value
    "int16": -32767,
    "uint16": 65535,
    "int32": -2147483647,
    "uint32": 4294967295,
    "int64": -9223372036854775806,
    "uint64": 18446744073709551614,
}


@dataclass(frozen=True, eq=False)
class Source:
    """A grid in a file, before its values are read.

    Attributes
    ----------
    axes, name, attrs, style
        As the grid will have them.
    dtype
        Of the values.
    load
        Reads the values.
    scalars
        Coordinates of dimensions of size 1, which are dropped, and of none.
    notes
        What was decided or noticed on the way, a sentence each.
    """

    axes: tuple[Axis, ...]
    name: str
    attrs: Mapping[str, Any]
    style: Style
    dtype: str
    load: Callable[[], NDArray[Any]]
    scalars: tuple[Axis, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(axis.size for axis in self.axes)

    def grid(self) -> Grid:
        """Read the values."""
        values, told = _without_unusable(self.load())
        self.notes.extend(told)
        return Grid(values, self.axes, self.name, self.attrs, self.style)


def open_source(
    inputs: Sequence[str], var: str | None = None, levels: Sequence[str] | None = None
) -> Source:
    """One variable of one file, or of several joined along the last level."""
    paths = [path for given in inputs for path in _expand(given)]
    if len(paths) == 1:
        return _without_repeats(_open(paths[0], var, levels, lambda _: False))
    grows = is_time if levels is None else lambda axis: axis.name == levels[-1]
    sources = [_open(path, var, levels, grows) for path in paths]
    return _without_repeats(_joined(sources, paths, levels))


def read_coordinates(path: str, axes: Sequence[Axis]) -> dict[str, Any]:
    """Coordinates of a file for those of the axes that it has: by name, else by what they are."""
    theirs = {axis.name: axis for axis in _all_axes(_expand(path)[0])}
    roles = {_role(axis): axis for axis in theirs.values() if _role(axis)}
    pairs = [(own, theirs.get(own.name) or roles.get(_role(own))) for own in axes]
    found = {own.name: like(axis, own) for own, axis in pairs if axis is not None}
    if not found:
        names = ", ".join(axis.name for axis in axes)
        raise InputError(f"'{path}' has no coordinate of the model's dimensions {names}.")
    return found


def has_variable(inputs: Sequence[str], name: str) -> bool:
    """Whether the first input, if it is a dataset, has a variable of this name."""
    path = _expand(inputs[0])[0]
    if _kind(path) == "table":
        return False
    with _dataset(path) as dataset:
        return name in dataset.data_vars


def like(theirs: Axis, own: Axis) -> Any:
    """Coordinates of another file in the terms of our axis."""
    kinds = [(axis.time is None, axis.labels is None) for axis in (theirs, own)]
    counted = [axis.units for axis in (theirs, own) if " since " in axis.units.lower()]
    if kinds[0] != kinds[1] or (own.time is None and len(set(counted)) > 1):
        raise InputError(
            f"Coordinates of '{own.name}' are of another kind there ({_kind_text(theirs)}) than "
            f"here ({_kind_text(own)})."
        )
    if own.time is not None and theirs.time is not None:
        same = theirs.time == own.time
        return theirs.numbers if same else own.time.numbers(theirs.time.texts(theirs.numbers))
    return theirs.texts if own.labels is not None else theirs.plain


def _kind_text(axis: Axis) -> str:
    return "text labels" if axis.labels is not None else axis.units or "numbers"


def _all_axes(path: str) -> list[Axis]:
    """Every coordinate of a file that is a vector or a scalar."""
    if _kind(path) == "table":
        return list(read_table(path)[0].axes)
    with _dataset(path) as dataset:
        vectors = [str(name) for name, v in dataset.variables.items() if v.dims == (name,)]
        return [*(_axis(dataset, name, []) for name in vectors), *_scalars(dataset)]


def _role(axis: Axis) -> str:
    """What a coordinate is, whatever its name."""
    if axis.time is not None:
        return "time"
    if axis.turn is not None:
        return "longitude"
    north = axis.units.lower() in ("degrees_north", "degree_north")
    return "latitude" if north else str(axis.attrs.get("standard_name", ""))


def _expand(given: str) -> list[str]:
    if given == "-" or os.path.exists(given):
        return [given]
    paths = sorted(glob.glob(given)) if glob.has_magic(given) else []
    if not paths:
        what = "No file matches" if glob.has_magic(given) else "There is no file"
        raise InputError(f"{what} '{given}'.")
    return paths


def _kind(path: str) -> str:
    """How to read a file: by its name, else by its first bytes."""
    name = path.lower().rstrip("/")
    if path == "-" or name.endswith(_TABLES):
        return "table"
    if name.endswith(".zarr"):
        return "zarr"
    if name.endswith(_NETCDF) and not os.path.isdir(path):
        return "netcdf"
    return _kind_by_content(path)


def _kind_by_content(path: str) -> str:
    expected = (
        f"Expected NetCDF ({' '.join(_NETCDF)}), Zarr (.zarr) or a table ({' '.join(_TABLES)})."
    )
    if os.path.isdir(path):
        if any(os.path.exists(os.path.join(path, n)) for n in ("zarr.json", ".zgroup")):
            return "zarr"
        raise InputError(f"'{path}' is a folder and no Zarr store. {expected}")
    with open(path, "rb") as file:
        start = file.read(8)
    if start[:3] == b"CDF" or start == b"\x89HDF\r\n\x1a\n":
        return "netcdf"
    if start[:2] == b"\x1f\x8b" and not path.lower().removesuffix(".gz").endswith(_NETCDF):
        return "table"
    what = {
        b"PK": "is a zip archive, as model files are, and no data",
        b"\x1f\x8b": "is compressed: gunzip it first",
    }.get(start[:2], "is of no kind that can be read")
    raise InputError(f"'{path}' {what}. {expected}")


def _open(
    path: str, var: str | None, levels: Sequence[str] | None, grows: Callable[[Axis], bool]
) -> Source:
    """A variable of a file; an axis that `grows` is kept even if it has one coordinate."""
    if _kind(path) != "table":
        return _open_dataset(path, var, grows)
    grid, told = read_table(path, var, levels)
    notes = [note.removesuffix(".") for note in told]
    return Source(
        grid.axes, grid.name, grid.attrs, Style(), "float64", lambda: grid.values, notes=notes
    )


def _open_dataset(path: str, var: str | None, grows: Callable[[Axis], bool]) -> Source:
    """A variable of a NetCDF file or Zarr store."""
    notes: list[str] = []
    with _dataset(path) as dataset:
        array = dataset[_choose(dataset, var, path, notes)]
        _refuse_shape(array, path)
        _refuse_curvilinear(dataset, array, path)
        axes, scalars = _axes(dataset, array, grows, notes)
        if not axes:
            raise InputError(f"'{array.name}' in '{path}' has no dimension of more than one cell.")
        notes.extend(_fill_notes(array))
        name, attrs, style = str(array.name), _attrs_of(array), _style(dataset, array)

    def load() -> NDArray[Any]:
        with _dataset(path) as again:
            return _loaded(again[name]).reshape([axis.size for axis in axes])

    dtype = style.dtype if array.dtype.kind == "f" else "float64"
    return Source(axes, name, attrs, style, dtype, load, scalars, notes)


@contextmanager
def _dataset(path: str) -> Iterator[xr.Dataset]:
    """An open dataset, times not decoded; what goes wrong in it is said in one line."""
    import xarray as xr

    zarr = {"engine": "zarr", "consolidated": False}
    options = zarr if _kind(path) == "zarr" else {"engine": "netcdf4"}
    with _explained(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matters of them is found out and said by ourselves
        with xr.open_dataset(
            path, decode_times=False, decode_coords="all", cache=False, **options
        ) as dataset:
            yield dataset


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """What goes wrong while a file is read, in one line and with what to try."""
    try:
        yield
    except (DkrlsError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        raise InputError(
            f"'{path}' needs {error.name} to be read: pip install 'dkrls-cli[zarr]'."
        ) from None
    except Exception as error:  # whatever the libraries make of a damaged file
        raise InputError(f"'{path}' {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".")
    if "Unknown file format" in text:
        return "is not a NetCDF file, whatever its name, or it is damaged."
    locked = "temporarily unavailable" in text or "HDF error" in text or "lock" in text.lower()
    hint = (
        " If the file is whole, another program or the file system may hold a lock on it: try "
        "again with HDF5_USE_FILE_LOCKING=FALSE in the environment."
    )
    return f"cannot be read: {text or type(error).__name__}.{hint if locked else ''}"


def _choose(dataset: xr.Dataset, var: str | None, path: str, notes: list[str]) -> str:
    """The variable asked for, or the one there is, or the only one of most dimensions."""
    variables = {str(name): array for name, array in dataset.data_vars.items()}
    if var is not None:
        if var in dataset.variables:
            return var
        raise InputError(f"'{path}' has no variable '{var}'. It has {_listed(variables)}.")
    named = {word for v in dataset.variables.values() for word in _references(v.attrs)}
    candidates = {
        name: array
        for name, array in variables.items()
        if name not in named and _is_field(name, array)
    }
    if not candidates:
        raise InputError(
            f"'{path}' has no variable of numbers on a grid. It has {_listed(variables)}."
        )
    depth = {n: (sum(size > 1 for size in a.shape), a.ndim) for n, a in candidates.items()}
    deepest = [name for name in candidates if depth[name] == max(depth.values())]
    if len(deepest) > 1:
        raise InputError(
            f"'{path}' has {len(deepest)} variables to choose from: "
            f"{_listed({name: candidates[name] for name in deepest})}. Name one with --var."
        )
    if len(candidates) > 1:
        others = ", ".join(name for name in candidates if name not in deepest)
        notes.append(f"variable {deepest[0]} taken, the only one of most dimensions (not {others})")
    return deepest[0]


def _is_field(name: str, array: xr.DataArray) -> bool:
    """Whether a variable may be the one to model, and does not describe the grid of another."""
    on_grid = max(array.shape, default=0) > 1 and len(set(array.dims)) == array.ndim
    describes = _is_place(name, array.attrs) or name.lower().endswith(_BOUNDS)
    return array.dtype.kind in _NUMBERS and on_grid and not describes


def _is_place(name: str, attrs: Mapping[str, Any]) -> bool:
    """Whether a variable is a latitude or longitude, by its units or else its name."""
    units = str(attrs.get("units", "")).lower()
    named = _PLACE.fullmatch(name) is not None
    return units in _DEGREES or (named and (not units or units.startswith(("deg", "rad"))))


def _references(attrs: Mapping[str, Any]) -> list[str]:
    """Names of other variables that attributes point at."""
    return [word for key in _POINTERS for word in str(attrs.get(key, "")).split()]


def _listed(variables: Mapping[str, xr.DataArray]) -> str:
    def shape(array: xr.DataArray) -> str:
        sizes = zip(array.dims, array.shape, strict=True)
        return " x ".join(f"{dim} {size}" for dim, size in sizes) or "scalar"

    shown = [f"{name} ({shape(array)})" for name, array in list(variables.items())[:12]]
    more = len(variables) - len(shown)
    listed = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return listed or "no variable at all outside of groups"


def _refuse_shape(array: xr.DataArray, path: str) -> None:
    """Refuse what is no grid of numbers at all."""
    what = f"'{array.name}' in '{path}'"
    if array.dtype.kind not in _NUMBERS:
        raise InputError(f"{what} holds {array.dtype}. Expected numbers.")
    if len(set(array.dims)) < array.ndim:
        raise InputError(f"{what} has a dimension twice: {', '.join(map(str, array.dims))}.")
    empty = [str(dim) for dim, size in array.sizes.items() if size == 0]
    if empty:
        raise InputError(f"{what} has no cells: {', '.join(empty)} is empty.")


def _refuse_curvilinear(dataset: xr.Dataset, array: xr.DataArray, path: str) -> None:
    """Refuse dimensions that only count cells, and share a 2-D latitude or longitude."""
    counting = [dim for dim in array.dims if array.sizes[dim] > 1 and _only_counts(dataset, dim)]
    for name, variable in dataset.variables.items():
        shared = [str(dim) for dim in variable.dims if dim in counting]
        if len(shared) > 1 and name != array.name and _is_place(str(name), variable.attrs):
            raise InputError(
                f"'{array.name}' in '{path}' is on a curvilinear grid: '{name}' varies along "
                f"{' and '.join(shared)}, so no dimension has coordinates of its own. "
                "Regrid it to a regular grid first (for example with cdo remapbil)."
            )


def _only_counts(dataset: xr.Dataset, dim: Any) -> bool:
    """Whether a dimension has no coordinate, or one that says 0, 1, 2, ... and no more."""
    if dim not in dataset.variables:
        return True
    coordinate = dataset[dim]
    units = str(coordinate.attrs.get("units", "1"))
    if units not in ("", "1") or coordinate.dtype.kind not in "fiu":
        return False
    steps = np.arange(coordinate.size)
    return any(np.array_equal(coordinate.values, steps + start) for start in (0, 1))


def _axes(
    dataset: xr.Dataset, array: xr.DataArray, grows: Callable[[Axis], bool], notes: list[str]
) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The axes of a variable, and the coordinates that it has but one of.

    Where files are joined, an axis that grows counts even if the variable has it as a scalar.
    """
    every = [_axis(dataset, str(dim), notes) for dim in array.dims]
    kept = [axis for axis in every if axis.size > 1 or grows(axis)]
    dropped = [axis for axis in every if axis not in kept]
    scalars = [axis for axis in _scalars(dataset) if axis.name in array.coords or is_time(axis)]
    if not any(map(grows, kept)):
        kept = [axis for axis in scalars if grows(axis)][:1] + kept
    for axis in kept:
        _refuse_coordinates(axis)
    if dropped and kept:
        notes.append(f"dimensions of size 1 dropped: {', '.join(axis.name for axis in dropped)}")
    return tuple(kept), tuple(a for a in (*dropped, *scalars) if a.has_coordinate)


def _scalars(dataset: xr.Dataset) -> list[Axis]:
    """The numbers in a file that stand alone, as axes of one coordinate."""
    return [
        _axis(dataset, str(name), [])
        for name, variable in dataset.variables.items()
        if variable.ndim == 0 and variable.dtype.kind in "fiu"
    ]


def _refuse_coordinates(axis: Axis) -> None:
    missing = int(np.count_nonzero(~np.isfinite(axis.numbers)))
    if missing:
        raise InputError(
            f"Coordinates of '{axis.name}' have missing values, {missing} of {axis.size}. "
            "Every one needs a number."
        )
    counts = Counter(axis.plain.tolist() if axis.labels is None else axis.labels)
    value, times = counts.most_common(1)[0]
    if times > 1:
        text = str(value) if axis.labels is not None else axis.at(value).texts[0]
        raise InputError(f"'{axis.name}' has {text} {times} times. Keep one, or their mean.")


def _axis(dataset: xr.Dataset, dim: str, notes: list[str]) -> Axis:
    """The axis of a dimension, or of a scalar."""
    name = _coordinate_of(dataset, dim)
    if name != dim and dataset.sizes[dim] > 1:
        used = f"those of {name}" if name else f"its positions 0 to {dataset.sizes[dim] - 1}"
        notes.append(f"dimension {dim} has no coordinate: {used} are used")
    if name is None:
        return index_axis(dim, dataset.sizes[dim])
    variable = dataset[name]
    attrs, values = _attrs_of(variable), np.atleast_1d(variable.values)
    if values.dtype.kind not in _NUMBERS:
        return text_axis(dim, [_decoded(v) for v in values.tolist()], attrs)
    axis = number_axis(dim, values, attrs)
    if " since " in axis.units.lower() and np.isfinite(axis.numbers).all():
        try:
            axis = _time_axis(axis)
        except (InputError, ValueError, OverflowError) as error:
            reason = str(error).rstrip(".")
            notes.append(f"{dim}: {reason}; its numbers are used as they are, not as dates")
    stored = np.dtype(variable.encoding.get("dtype", values.dtype))
    as_stored = stored.kind in "fiu" and not _is_packed(variable)
    return replace(axis, dtype=stored.newbyteorder("=").name) if as_stored else axis


def _coordinate_of(dataset: xr.Dataset, dim: str) -> str | None:
    """The coordinate of a dimension: its own, or the one latitude, longitude or time along it."""
    if dim in dataset.variables and dataset[dim].ndim < 2:
        return dim
    along = [
        str(name)
        for name, variable in dataset.variables.items()
        if variable.dims == (dim,)
        and variable.dtype.kind in "fiu"
        and (_is_place(str(name), variable.attrs) or " since " in str(variable.attrs.get("units")))
    ]
    return along[0] if len(along) == 1 else None


def _time_axis(axis: Axis) -> Axis:
    """An axis of numbers as dates, if its calendar holds them all."""
    attrs = dict(axis.attrs)
    units, calendar = str(attrs.pop("units")), str(attrs.pop("calendar", "standard")).lower()
    scale = TimeScale(units, calendar)
    if axis.size:
        scale.texts(np.array([axis.numbers.min(), axis.numbers.max()]))
    return replace(axis, time=scale, attrs=attrs)


def _decoded(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.strip().strip("\x00")


def _attrs_of(array: xr.DataArray) -> dict[str, Any]:
    """Attributes that will hold for answers too."""
    gone = (*_NO_LONGER_TRUE, *(_OF_PACKED_VALUES if _is_packed(array) else ()))
    return {str(key): value for key, value in array.attrs.items() if key not in gone}


def _is_packed(array: xr.DataArray) -> bool:
    return "scale_factor" in array.encoding or "add_offset" in array.encoding


def _style(dataset: xr.Dataset, array: xr.DataArray) -> Style:
    """How the file keeps the variable, to write answers alike."""
    fills = _marked_fills(array)
    pointer = array.encoding.get("grid_mapping", array.attrs.get("grid_mapping", ""))
    mapping = str(pointer).split(":")[0]
    known = mapping in dataset.variables
    floats = np.result_type(array.dtype, np.float32) if array.dtype.kind == "f" else np.float64
    return Style(
        dtype=np.dtype(floats).newbyteorder("=").name,
        fill=fills[0] if fills and not _is_packed(array) else None,
        global_attrs=dict(dataset.attrs),
        grid_mapping=mapping if known else None,
        grid_mapping_attrs=dict(dataset[mapping].attrs) if known else {},
    )


def _marked_fills(array: xr.DataArray) -> list[float]:
    """The fill values that a variable is marked with, those in texts included."""
    fills = []
    for key in ("_FillValue", "missing_value"):
        for fill in np.ravel(array.encoding.get(key, ())).tolist():
            try:
                fills.append(float(fill))
            except (TypeError, ValueError):
                continue
    return list(dict.fromkeys(fills))


def _fill_notes(array: xr.DataArray) -> list[str]:
    fills = _marked_fills(array)
    listed = ", ".join(f"{fill:g}" for fill in fills)
    return [f"several fill values are marked, all taken as missing: {listed}"] if fills[1:] else []


def _loaded(array: xr.DataArray) -> NDArray[Any]:
    """Values as floats of the machine, NaN where a fill value stands that xarray leaves."""
    floats = array.dtype.newbyteorder("=") if array.dtype.kind == "f" else np.dtype(np.float64)
    values = array.values.astype(floats, copy=False)
    for fill in _unmasked_fills(array):
        there = np.isclose(values, fill, rtol=4 * np.finfo(floats).eps, atol=0)
        values = np.where(there, np.nan, values) if there.any() else values
    return values


def _unmasked_fills(array: xr.DataArray) -> list[float]:
    """Fill values marked as text, and the one of integers that were never written."""
    text = isinstance(array.encoding.get("missing_value"), str)
    fills = [f for f in _marked_fills(array) if np.isfinite(f)] if text else []
    unwritten = _UNWRITTEN.get(str(np.dtype(array.encoding.get("dtype", "f8"))))
    if unwritten is not None and "_FillValue" not in array.encoding:
        scale = float(array.encoding.get("scale_factor", 1.0))
        fills.append(unwritten * scale + float(array.encoding.get("add_offset", 0.0)))
    return fills


def _without_unusable(values: NDArray[Any]) -> tuple[NDArray[Any], list[str]]:
    """Infinities, and what netCDF leaves in cells of floats that nobody wrote, made missing."""
    with np.errstate(invalid="ignore"):
        unusable = ~(np.abs(values) < _UNWRITTEN_FLOAT) & ~np.isnan(values)
    if not unusable.any():
        return values, []
    infinite = int(np.isinf(values).sum())
    counts = {"infinite": infinite, "never written": int(unusable.sum()) - infinite}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return np.where(unusable, np.nan, values), [f"values taken as missing: {told}"]


def _without_repeats(source: Source) -> Source:
    """A source without the columns that repeat a longitude one turn later."""
    for place, axis in enumerate(source.axes):
        kept = _first_of_each(axis)
        if kept.size == axis.size:
            continue
        gone = axis.take(np.setdiff1d(np.arange(axis.size), kept)).texts
        verb = "repeat earlier ones and are" if len(gone) > 1 else "repeats an earlier one and is"
        note = f"{axis.name} {', '.join(gone)} {verb} dropped"
        fresh = number_axis(axis.name, axis.stored[kept], axis.attrs)
        source = replace(
            source,
            axes=(*source.axes[:place], fresh, *source.axes[place + 1 :]),
            load=partial(_taken, source.load, kept, place),
            notes=[*source.notes, note],
        )
    return source


def _taken(load: Callable[[], NDArray[Any]], kept: Any, place: int) -> NDArray[Any]:
    return np.asarray(np.take(load(), kept, axis=place))


def _first_of_each(axis: Axis) -> NDArray[np.intp]:
    """Positions of coordinates that are not whole turns away from an earlier one."""
    if axis.turn is None or np.unique(axis.plain).size < axis.size:
        return np.arange(axis.size)
    digits = 4 if axis.dtype == "float32" else 9
    spots = np.round(np.mod(axis.plain, axis.turn), digits) % axis.turn
    return np.sort(np.unique(spots, return_index=True)[1])


def _joined(
    sources: Sequence[Source], paths: Sequence[str], levels: Sequence[str] | None
) -> Source:
    """Several sources as one, joined along the last level."""
    first = sources[0]
    last = hierarchy_of(first.axes, levels)[-1]
    place = [axis.name for axis in first.axes].index(last)
    for source, path in zip(sources[1:], paths[1:], strict=True):
        _check_alike(first, source, path, last)
    joined = _joined_axis([source.axes[place] for source in sources])
    axes = (*first.axes[:place], joined, *first.axes[place + 1 :])

    def load() -> NDArray[Any]:
        return np.concatenate([source.load() for source in sources], axis=place)

    notes = list(dict.fromkeys(note for source in sources for note in source.notes))
    notes.append(f"{len(sources)} files joined along {last}")
    return replace(first, axes=axes, load=load, notes=notes)


def _joined_axis(axes: Sequence[Axis]) -> Axis:
    """Axes of several files one after the other, in the terms of the first."""
    first = axes[0]
    if not any(axis.has_coordinate for axis in axes):
        return index_axis(first.name, sum(axis.size for axis in axes))
    if first.turn is not None or first.labels is not None:
        raise InputError(f"Files can be joined along time or numbers, not along '{first.name}'.")
    calendars = list(dict.fromkeys(_calendar(axis) for axis in axes))
    if len(calendars) > 1:
        raise InputError(f"The files count '{first.name}' by calendars {' and '.join(calendars)}.")
    numbers = np.concatenate([np.asarray(like(axis, first), np.float64) for axis in axes])
    joined = replace(first, numbers=numbers)
    order = np.sort(numbers)
    again = order[1:][np.diff(order) == 0]
    if again.size:
        text = replace(joined, numbers=again[:1]).texts[0]
        raise InputError(
            f"Coordinate {text} of '{first.name}' is in more than one of the files, or twice in "
            "one. Give each once."
        )
    return joined


def _calendar(axis: Axis) -> str:
    name = axis.time.calendar if axis.time else "none"
    return "standard" if name in _GREGORIAN else name


def _check_alike(first: Source, other: Source, path: str, last: str) -> None:
    """Refuse a file that does not continue the first one, saying what differs."""
    dims, theirs = [a.name for a in first.axes], [a.name for a in other.axes]
    if other.name != first.name or dims != theirs:
        raise InputError(
            f"'{path}' has {other.name} ({', '.join(theirs)}), the first file has {first.name} "
            f"({', '.join(dims)})."
        )
    for axis, its in zip(first.axes, other.axes, strict=True):
        if axis.name != last and axis.texts != its.texts:
            raise InputError(
                f"'{path}' has other coordinates of '{axis.name}' than the first file."
            )
