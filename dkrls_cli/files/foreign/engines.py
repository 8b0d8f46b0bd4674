"""Files that an engine of xarray reads: GRIB, GeoTIFF, and whatever else is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    import xarray as xr

# Engines by the endings of the names of files.
ENDINGS = {
    **dict.fromkeys((".grib", ".grib2", ".grb", ".grb2"), "cfgrib"),
    **dict.fromkeys((".tif", ".tiff"), "rasterio"),
}
# What to install for an engine, where that is not a package of its name.
_PACKAGES = {"cfgrib": "cfgrib eccodes", "rasterio": "rioxarray", "netcdf4": "netCDF4"}
# Options of engines besides those of xarray: cfgrib would write an index beside the file.
_OPTIONS: dict[str, dict[str, Any]] = {"cfgrib": {"indexpath": ""}}


class EngineFile(str):
    """A path with the name of the engine that reads it; else it is the text of the path."""

    engine: str

    def __new__(cls, path: str, engine: str) -> EngineFile:
        """Return a path to be read by an engine."""
        made = super().__new__(cls, path)
        made.engine = engine
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the engine in copies and in other processes."""
        return EngineFile, (str(self), self.engine)


def with_engine(paths: Sequence[str], engine: str | None) -> list[str]:
    """Return paths that an engine reads; as they are if there is none.

    Raises
    ------
    SettingError
        If a path is standard input, which no engine reads.
    """
    if engine is None:
        return list(paths)
    if "-" in paths:
        raise SettingError(
            f"Standard input is a table, and the engine '{engine}' reads files. Give a file."
        )
    return [EngineFile(path, engine) for path in paths]


def like_file(path: str, given: str) -> str:
    """Return a path that is read as a given one is: one of the files of a pattern."""
    return EngineFile(path, given.engine) if isinstance(given, EngineFile) else path


def engine_of(path: str) -> str | None:
    """Return the engine that reads a file, as it was given or by the ending of its name.

    >>> engine_of("era5.GRIB"), engine_of("sst.nc"), engine_of(EngineFile("sst.nc", "h5netcdf"))
    ('cfgrib', None, 'h5netcdf')
    """
    if isinstance(path, EngineFile):
        return path.engine
    name = path.lower()
    return next((engine for ending, engine in ENDINGS.items() if name.endswith(ending)), None)


def open_by_engine(path: str, engine: str) -> xr.Dataset:
    """Open a dataset by an engine, times as numbers with units.

    Raises
    ------
    InputError
        If there is no such engine.
    """
    import xarray as xr

    known = xr.backends.list_engines()
    if engine not in known:
        raise InputError(_lack(path, engine, list(known)))
    takes = known[engine].open_dataset_parameters or ()
    asked: dict[str, Any] = {"decode_times": False, "decode_coords": "all"}
    options = {key: value for key, value in asked.items() if key in takes}
    options |= _OPTIONS.get(engine, {})
    return _as_numbers(xr.open_dataset(path, engine=engine, cache=False, **options))


def _lack(path: str, engine: str, known: Sequence[str]) -> str:
    """Return what to do about an engine that is not there."""
    if engine in {*ENDINGS.values(), *_PACKAGES, "h5netcdf", "pydap", "scipy"}:
        package = _PACKAGES.get(engine, engine)
        return f"'{path}' needs the engine '{engine}' of xarray to be read: pip install {package}."
    return (
        f"xarray has no engine '{engine}' to read '{path}'. It has {', '.join(known)}; others come "
        f"with the packages that bring them.{suggest(engine, known)}"
    )


def _as_numbers(dataset: xr.Dataset) -> xr.Dataset:
    """Return a dataset whose dates, if the engine has made any, are numbers with units again."""
    import xarray as xr

    dates = {
        name: xr.conventions.encode_cf_variable(variable)
        for name, variable in dataset.variables.items()
        if variable.dtype.kind in "mM" or _holds_dates(variable)
    }
    return dataset.assign(dates) if dates else dataset


def _holds_dates(variable: xr.Variable) -> bool:
    """Return whether a variable of objects holds dates of a calendar."""
    if variable.dtype.kind != "O" or not variable.size:
        return False
    return hasattr(variable[(0,) * variable.ndim].values.item(), "calendar")
