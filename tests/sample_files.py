"""Small files with the traits of the files that people really have, each by a function."""

from __future__ import annotations

import gzip
import io
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr
from hypothesis import strategies as st

from dkrls_cli.files.reading import read_targets
from dkrls_cli.files.text.rows import RowWriter

Builder = Callable[[Path], Any]
WHOLE: dict[str, Builder] = {}
"""Files that fit and predict; a builder returns the path, or the arguments of ``fit``."""
NOTES: dict[str, str] = {}
"""What is said about them."""
REFUSED: dict[str, tuple[Builder, str]] = {}
"""Files that are refused, and a part of what is said then."""

LAT = np.linspace(-60.0, 60.0, 5)
LON = np.arange(0.0, 360.0, 45.0)
NORTH = {"units": "degrees_north", "standard_name": "latitude"}
EAST = {"units": "degrees_east", "standard_name": "longitude"}
UNPACK = ("scale_factor", "add_offset")


LABELS = st.text(
    st.one_of(st.sampled_from(',";#\t\n äß漢'), st.sampled_from(string.ascii_letters)), min_size=1
).map(lambda text: f"L{text}".strip())
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def rows_text(dims: Any, texts: Any, answers: Any, form: str = "csv") -> str:
    """Cells of a grid as the text that the writer makes of them."""
    stream = io.StringIO()
    RowWriter(stream, form).write_cells(dims, texts, answers)
    return stream.getvalue()


def asked_of(path: Any, axes: Sequence[Any]) -> dict[str, Any]:
    """Return the coordinates that a grid has for the axes of one variable."""
    return read_targets(str(path), [axes]).coordinates[0]


def coordinates(axis: Any) -> list[Any]:
    """Labels of an axis, or its numbers if it has none."""
    return list(axis.labels) if axis.labels else axis.numbers.tolist()


def whole(note: str = "") -> Callable[[Builder], Builder]:
    """Register a file that can be used."""

    def register(build: Builder) -> Builder:
        WHOLE[build.__name__] = build
        if note:
            NOTES[build.__name__] = note
        return build

    return register


def refused(reason: str) -> Callable[[Builder], Builder]:
    """Register a file that is refused."""

    def register(build: Builder) -> Builder:
        REFUSED[build.__name__] = (build, reason)
        return build

    return register


def field(*axes: Any) -> np.ndarray:
    """A smooth field on axes of any numbers, between about 5 and 25."""
    waves = [np.sin(np.linspace(0.3, 2.9, len(axis)) + i) + 2.0 for i, axis in enumerate(axes)]
    total: np.ndarray = waves[0]
    for wave in waves[1:]:
        total = np.multiply.outer(total, wave)
    return 5.0 + 3.0 * total


def netcdf(
    path: Path,
    variables: Mapping[str, tuple[Sequence[str], Any, Mapping[str, Any]]],
    *,
    unlimited: str = "",
    form: str = "NETCDF4",
    attrs: Mapping[str, Any] | None = None,
) -> Path:
    """Write variables (dimensions, values as stored, attributes) with nothing done to them."""
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.setncatts(dict(attrs or {"history": "2001-01-01: made", "title": "a test"}))
        for name, (dims, values, given) in variables.items():
            array = np.asarray(values)
            for dim, size in zip(dims, array.shape, strict=True):
                if dim not in file.dimensions:
                    file.createDimension(dim, None if dim == unlimited else size)
            keep = {k: v for k, v in given.items() if k != "_FillValue"}
            kind = str if array.dtype.kind in "UO" else array.dtype
            big = array.dtype.byteorder == ">" and form.startswith("NETCDF4")
            variable = file.createVariable(
                name,
                kind,
                dims,
                fill_value=given.get("_FillValue"),
                endian="big" if big else "native",
            )
            variable.set_auto_maskandscale(False)
            variable.setncatts(keep)
            variable[...] = array
    return path


def grid(
    path: Path,
    coordinates: Mapping[str, tuple[Any, Mapping[str, Any]]],
    *,
    dtype: str = "float64",
    extra: Mapping[str, Any] | None = None,
    var_attrs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Path:
    """One variable ``t`` on coordinates given as values and attributes (None: no coordinate)."""
    made = {
        name: ((name,), values, attrs)
        for name, (values, attrs) in coordinates.items()
        if attrs is not None
    }
    values = field(*(values for values, _ in coordinates.values())).astype(dtype)
    given = {"units": "K", "long_name": "temperature", **(var_attrs or {})}
    return netcdf(
        path, {**made, "t": (tuple(coordinates), values, given), **(extra or {})}, **options
    )


def latlon(path: Path, **options: Any) -> Path:
    return grid(path, {"lat": (LAT, NORTH), "lon": (LON, EAST)}, **options)


def timed(path: Path, units: str, calendar: str | None, times: Any = None, **options: Any) -> Path:
    """A time axis and a latitude."""
    attrs = {"units": units, **({"calendar": calendar} if calendar else {})}
    values = np.arange(6.0) * 30 if times is None else times
    return grid(path, {"time": (values, attrs), "lat": (LAT, NORTH)}, **options)


# Kinds of file and numbers of dimensions ----------------------------------------------------------


@whole()
def classic_netcdf3(folder: Path) -> Path:
    return latlon(folder / "classic.cdf", form="NETCDF3_CLASSIC", dtype="float32")


@whole()
def offset_netcdf3(folder: Path) -> Path:
    return latlon(folder / "offset.nc", form="NETCDF3_64BIT_OFFSET")


@whole()
def data_netcdf3(folder: Path) -> Path:
    return latlon(folder / "data64.nc", form="NETCDF3_64BIT_DATA")


@whole()
def classic_netcdf4(folder: Path) -> Path:
    return latlon(folder / "classic4.nc4", form="NETCDF4_CLASSIC")


@whole()
def netcdf_without_ending(folder: Path) -> Path:
    return latlon(folder / "model_output")


@whole()
def one_dimension(folder: Path) -> Path:
    return grid(folder / "d1.nc", {"x": (np.arange(12.0), {})})


@whole()
def four_dimensions(folder: Path) -> Path:
    return grid(
        folder / "d4.nc",
        {
            "time": (np.arange(4.0), {"units": "days since 2000-01-01"}),
            "depth": (np.array([0.0, 5.0, 20.0, 100.0, 1000.0]), {"positive": "down"}),
            "lat": (LAT, NORTH),
            "lon": (LON, EAST),
        },
        dtype="float32",
    )


@whole()
def five_dimensions(folder: Path) -> Path:
    axes = {name: (np.arange(3.0) * (i + 1), {}) for i, name in enumerate("abcde")}
    return grid(folder / "d5.nc", axes)


@whole()
def zarr_store(folder: Path) -> Path:
    path = folder / "store.zarr"
    values = field(LAT, LON)
    coords = {"lat": ("lat", LAT, NORTH), "lon": ("lon", LON, EAST)}
    xr.Dataset({"t": (("lat", "lon"), values, {"units": "K"})}, coords).to_zarr(
        path, consolidated=False
    )
    return path


@whole()
def zarr_store_of_version_2(folder: Path) -> Path:
    path = folder / "old.zarr"
    xr.Dataset({"t": (("lat", "lon"), field(LAT, LON))}, {"lat": LAT, "lon": LON}).to_zarr(
        path, zarr_format=2, consolidated=True
    )
    return path


# Axes ---------------------------------------------------------------------------------------------


@whole()
def descending_latitude(folder: Path) -> Path:
    return grid(folder / "down.nc", {"lat": (LAT[::-1], NORTH), "lon": (LON, EAST)})


@whole()
def uneven_axis(folder: Path) -> Path:
    return grid(
        folder / "uneven.nc", {"z": (np.array([0, 1, 4, 9, 40, 41.5]), {}), "lat": (LAT, {})}
    )


@whole()
def shuffled_axis(folder: Path) -> Path:
    return grid(folder / "shuffled.nc", {"z": (np.array([3.0, 1, 2, 9, 4]), {}), "lat": (LAT, {})})


@whole()
def west_to_east(folder: Path) -> Path:
    return grid(folder / "west.nc", {"lat": (LAT, NORTH), "lon": (LON - 180, EAST)})


@whole()
def longitude_in_float32(folder: Path) -> Path:
    lon = np.arange(0.1, 360, 45.05).astype("float32")
    return grid(folder / "f4.nc", {"lat": (LAT.astype("float32"), NORTH), "lon": (lon, EAST)})


@whole()
def longitude_across_zero(folder: Path) -> Path:
    lon = np.array([340.0, 345, 350, 355, 0, 5, 10])
    return grid(folder / "zero.nc", {"lat": (LAT, NORTH), "lon": (lon, EAST)})


@whole()
def longitude_across_the_date_line(folder: Path) -> Path:
    lon = np.array([170.0, 175, 180, -175, -170])
    return grid(folder / "dateline.nc", {"lat": (LAT, NORTH), "lon": (lon, EAST)})


@whole()
def longitude_rolled(folder: Path) -> Path:
    return grid(folder / "rolled.nc", {"lat": (LAT, NORTH), "lon": (np.roll(LON, 3), EAST)})


@whole("lon 360.0 repeats an earlier one and is dropped")
def longitude_repeats_its_first(folder: Path) -> Path:
    lon = np.append(LON, 360.0)
    values = field(LAT, LON)
    return netcdf(
        folder / "closed.nc",
        {
            "lat": (("lat",), LAT, NORTH),
            "lon": (("lon",), lon, EAST),
            "t": (("lat", "lon"), np.concatenate([values, values[:, :1]], 1), {}),
        },
    )


@whole("dimension member has no coordinate: its positions 0 to 3 are used")
def dimension_without_coordinate(folder: Path) -> Path:
    return grid(folder / "bare.nc", {"member": (np.arange(4), None), "lat": (LAT, NORTH)})


@whole()
def packed_coordinates(folder: Path) -> Path:
    packed = {**NORTH, "scale_factor": 0.5, "add_offset": 10.0}
    values = np.array([-40, -20, 0, 20, 40], "int16")
    return grid(folder / "packed_lat.nc", {"lat": (values, packed), "lon": (LON, EAST)})


@whole()
def coordinate_with_fill_value(folder: Path) -> Path:
    given = {**NORTH, "_FillValue": -999.0}
    return grid(folder / "fill_lat.nc", {"lat": (LAT, given), "lon": (LON, EAST)})


@whole()
def integer_coordinates(folder: Path) -> Path:
    return grid(folder / "ints.nc", {"x": (np.arange(5, dtype="int32"), {}), "y": (LAT, {})})


@whole()
def labels_as_strings(folder: Path) -> Path:
    names = np.array(["Zürich", "Genève, lac", "東京", "d"], object)
    return grid(folder / "strings.nc", {"station": (names, {"long_name": "place"}), "y": (LAT, {})})


@whole()
def labels_as_characters(folder: Path) -> Path:
    names = netCDF4.stringtochar(np.array(["oslo", "rome", "lima"], "S6"))
    values = field(range(3), LAT)
    return netcdf(
        folder / "chars.nc",
        {
            "station": (("station", "width"), names, {}),
            "y": (("y",), LAT, {}),
            "t": (("station", "y"), values, {}),
        },
        form="NETCDF3_CLASSIC",
    )


@whole("dimension y has no coordinate: those of lat are used")
def latitude_beside_a_bare_dimension(folder: Path) -> Path:
    return grid(
        folder / "beside.nc",
        {"y": (LAT, None), "lon": (LON, EAST)},
        extra={"lat": (("y",), LAT**3 / 3600, NORTH)},
        var_attrs={"coordinates": "lat"},
    )


@whole("dimension record has no coordinate: those of valid are used")
def time_beside_a_bare_dimension(folder: Path) -> Path:
    return grid(
        folder / "record.nc",
        {"record": (np.arange(4), None), "lat": (LAT, NORTH)},
        extra={"valid": (("record",), np.arange(4) * 6, {"units": "hours since 2000-01-01"})},
        var_attrs={"coordinates": "valid"},
        unlimited="record",
    )


@whole("dimension station has no coordinate")
def names_beside_a_bare_dimension(folder: Path) -> Path:
    names = netCDF4.stringtochar(np.array(["oslo", "rome", "lima"], "S6"))
    return grid(
        folder / "dsg.nc",
        {
            "station": (np.arange(3), None),
            "time": (np.arange(5.0), {"units": "days since 1990-1-1"}),
        },
        extra={
            "station_name": (("station", "width"), names, {"cf_role": "timeseries_id"}),
            "lat": (("station",), np.array([1.0, 2, 3]), NORTH),
            "lon": (("station",), np.array([9.0, 8, 9]), EAST),
        },
        var_attrs={"coordinates": "lat lon station_name"},
    )


@whole()
def unicode_names(folder: Path) -> Path:
    path = folder / "größe.nc"
    return netcdf(
        path,
        {
            "höhe": (("höhe",), LAT, {"units": "µm", "long_name": "Höhe ü. M."}),
            "température": (("höhe",), field(LAT), {"units": "°C"}),
        },
    )


@whole()
def projected_grid_with_latitudes(folder: Path) -> Path:
    x, y = np.arange(5) * 1000.0, np.arange(4) * 1000.0
    yy, xx = np.meshgrid(y, x, indexing="ij")
    return grid(
        folder / "projected.nc",
        {
            "y": (y, {"standard_name": "projection_y_coordinate", "units": "m"}),
            "x": (x, {"standard_name": "projection_x_coordinate", "units": "m"}),
        },
        extra={
            "lat": (("y", "x"), 50 + yy / 1e5, NORTH),
            "lon": (("y", "x"), 5 + xx / 1e5, EAST),
            "crs": ((), np.int32(0), {"grid_mapping_name": "lambert_conformal_conic", "a": 6.4e6}),
        },
        var_attrs={"coordinates": "lat lon", "grid_mapping": "crs"},
    )


@whole()
def rotated_pole(folder: Path) -> Path:
    rlat, rlon = np.linspace(-5, 5, 4), np.linspace(355, 365, 5)
    return grid(
        folder / "rotated.nc",
        {
            "rlat": (rlat, {"standard_name": "grid_latitude", "units": "degrees"}),
            "rlon": (rlon, {"standard_name": "grid_longitude", "units": "degrees"}),
        },
        extra={
            "rotated_pole": ((), np.bytes_(b"a"), {"grid_north_pole_latitude": 39.25}),
            "lat": (("rlat", "rlon"), np.add.outer(rlat, rlon * 0), NORTH),
        },
        var_attrs={"grid_mapping": "rotated_pole"},
    )


# Time ---------------------------------------------------------------------------------------------


def _calendar(
    name: str, units: str, calendar: str | None, times: Any = None, note: str = ""
) -> None:
    def build(folder: Path) -> Path:
        return timed(folder / f"{name}.nc", units, calendar, times)

    build.__name__ = f"time_{name}"
    whole(note)(build)


_calendar("360_day", "days since 1850-01-01", "360_day")
_calendar("noleap", "days since 1850-01-01 00:00:00", "noleap")
_calendar("365_day", "hours since 2000-02-28", "365_day")
_calendar("all_leap", "days since 2001-01-01", "all_leap")
_calendar("julian", "days since 1850-01-01", "julian")
_calendar("gregorian", "seconds since 1970-1-1 0:0:0.0", "gregorian", np.arange(5) * 21600)
_calendar("no_calendar", "minutes since 1999-12-31T12:00:00Z", None)
_calendar("proleptic", "days since 1-1-1", "proleptic_gregorian", np.arange(700000.0, 700005))
_calendar(
    "hours_since_1", "hours since 1-1-1 00:00:0.0", "standard", np.arange(5) * 24 + 17557968.0
)
_calendar("int64", "days since 2000-01-01", "standard", np.arange(5))
_calendar("zone", "hours since 2000-01-01 00:00:00 -6:00", "standard")
_calendar("medieval", "days since 1400-01-01", "standard")
_calendar("capital", "Days Since 2000-01-01", "Standard")
_calendar("months", "months since 1990-01-01", "standard", note="are taken as calendar months")
_calendar("months_of_30_days", "months since 1960-01-01", "360_day", np.arange(6) + 0.5)
_calendar("calendar_years", "years since 1990-01-01", None, np.arange(6) / 4, "as calendar months")
_calendar("years", "common_years since 1990-01-01", None, note="used as they are, not as dates")
_calendar("year_0", "days since 0000-01-01", "standard", note="used as they are, not as dates")
_calendar("year_0_short", "days since 0-1-1 00:00:00", None, note="used as they are, not as dates")
_calendar("year_0_noleap", "days since 0000-01-01", "noleap")
_calendar("no_such", "days since 2000-01-01", "martian", note="used as they are, not as dates")
_calendar("no_calendar_named_none", "days since 2000-01-01", "none", note="used as they are")
_calendar(
    "stamps",
    "day as %Y%m%d.%f",
    "proleptic_gregorian",
    np.arange(20000101.0, 20000107),
    "time: 20000101 is read as 2000-01-01",
)
_calendar("far", "days since 2000-01-01", "standard", np.arange(4) * 1e9, "used as they are")
_calendar("no_reference", "days since beginning", "standard", note="used as they are")


@whole("cell_methods tells of means over time")
def unlimited_time_with_bounds(folder: Path) -> Path:
    times = np.arange(5.0) * 30 + 15
    return timed(
        folder / "bounds.nc",
        "days since 1999-01-01",
        "standard",
        times,
        unlimited="time",
        extra={
            "time_bnds": (("time", "bnds"), np.stack([times - 15, times + 15], 1), {}),
            "lat_bnds": (("lat", "bnds"), np.stack([LAT - 15, LAT + 15], 1), {}),
            "height": ((), 2.0, {"units": "m", "standard_name": "height", "positive": "up"}),
        },
        var_attrs={"coordinates": "height", "cell_methods": "time: mean"},
    )


@whole("cell_methods tells of sums over time")
def sums_over_time(folder: Path) -> Path:
    attrs = {"cell_methods": "time: sum"}
    return timed(folder / "sums.nc", "days since 1999-01-01", "standard", var_attrs=attrs)


# Values -------------------------------------------------------------------------------------------


def packed(path: Path, raw: Any, attrs: Mapping[str, Any], **options: Any) -> Path:
    array = np.asarray(raw)
    return netcdf(
        path,
        {
            "x": (("x",), np.arange(float(array.shape[0])), {"units": "m"}),
            "y": (("y",), np.arange(float(array.shape[1])), {"units": "m"}),
            "t": (("x", "y"), array, attrs),
        },
        **options,
    )


RAW = (field(range(5), range(6)) * 100).astype("int16")


@whole()
def packed_with_negative_scale(folder: Path) -> Path:
    attrs = {"scale_factor": -0.01, "add_offset": 280.0, "units": "K"}
    return packed(folder / "negative.nc", RAW, attrs, form="NETCDF3_CLASSIC")


@whole()
def packed_with_fill_value(folder: Path) -> Path:
    attrs = {
        "scale_factor": np.float32(0.01),
        "add_offset": np.float32(0),
        "_FillValue": np.int16(-1),
    }
    return packed(folder / "packed.nc", RAW, attrs)


@whole()
def packed_unsigned(folder: Path) -> Path:
    attrs = {"scale_factor": 0.1, "_Unsigned": "true"}
    return packed(folder / "unsigned.nc", (RAW // 10).astype("int8"), attrs, form="NETCDF3_CLASSIC")


@whole("several fill values")
def two_fill_values(folder: Path) -> Path:
    attrs = {"_FillValue": np.float32(-999), "missing_value": np.float32(1e20)}
    return packed(folder / "fills.nc", (RAW / 100).astype("float32"), attrs)


@whole()
def missing_value_of_other_type(folder: Path) -> Path:
    return packed(folder / "missing.nc", (RAW / 100).astype("float32"), {"missing_value": -9999.0})


@whole("answers are kept between 0 and 99, as valid_range tells")
def missing_value_as_text(folder: Path) -> Path:
    return packed(
        folder / "text.nc", RAW / 100.0, {"missing_value": "NaN", "valid_range": [0.0, 99.0]}
    )


@whole()
def big_endian(folder: Path) -> Path:
    return packed(folder / "big.nc", (RAW / 100).astype(">f4"), {"units": "K"})


for _kind in ("int8", "uint8", "int32", "int64", "uint16", "uint64"):

    def _integers(folder: Path, kind: str = _kind) -> Path:
        return packed(folder / f"{kind}.nc", (RAW // 100).astype(kind), {"units": "1"})

    _integers.__name__ = f"values_{_kind}"
    whole()(_integers)


@whole()
def values_marked_as_truths(folder: Path) -> Path:
    return packed(folder / "bool.nc", (RAW > 1500).astype("int8"), {"dtype": "bool"})


@whole("dimension x has no coordinate")
def values_of_an_enumeration(folder: Path) -> Path:
    path = folder / "enum.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 6)
        kind = file.createEnumType(np.uint8, "sky", {"clear": 0, "cloud": 1})
        file.createVariable("t", kind, ("x",))[:] = [0, 1, 1, 0, 0, 1]
    return path


@whole()
def values_all_equal(folder: Path) -> Path:
    return packed(folder / "flat.nc", np.full((4, 5), 3.5), {})


@whole()
def size_one_dimension(folder: Path) -> Path:
    return grid(
        folder / "thin.nc",
        {"level": (np.array([850.0]), {"units": "hPa"}), "lat": (LAT, NORTH), "lon": (LON, EAST)},
    )


@whole("variable t taken")
def other_variables_of_fewer_dimensions(folder: Path) -> Path:
    extra = {"orog": (("lat",), LAT * 2, {}), "n": ((), 3, {})}
    return latlon(folder / "several.nc", extra=extra)


@whole("answers are kept at or below 1e+09, as valid_max tells")
def odd_attributes(folder: Path) -> Path:
    attrs = {
        "levels": np.array([1, 2, 3], "int16"),
        "empty": "",
        "valid_max": np.float32(1e9),
        "name": "clash",
        "comment": "two\nlines, ünïcode",
    }
    return latlon(folder / "attrs.nc", var_attrs=attrs)


# Tables -------------------------------------------------------------------------------------------


def _rows() -> str:
    lines = ["time,station,temp"]
    for i in range(5):
        lines += [f"2020-01-0{i + 1},{name},{5 + i * k:.3f}" for k, name in enumerate("abc")]
    return "\n".join(lines) + "\n"


@whole("Read as a long table: 'temp' by time, station.\n")
def long_table(folder: Path) -> Path:
    (path := folder / "long.csv").write_text(_rows())
    return path


@whole("Read as a long table: 'temp' by time, station.\n")
def zipped_table(folder: Path) -> Path:
    path = folder / "long.csv.gz"
    path.write_bytes(gzip.compress(_rows().encode(), mtime=0))
    return path


@whole("Read as a wide table: rows 'YEAR', header 'column'.\n")
def wide_table(folder: Path) -> Path:
    rows = "\n".join(f"{2000 + i},{i},{i * 2},{i * i}" for i in range(6))
    (path := folder / "wide.csv").write_text(f"YEAR,JAN,FEB,MAR\n{rows}\n")
    return path


# Refused ------------------------------------------------------------------------------------------


def _curvilinear(path: Path, named: bool) -> Path:
    lat2, lon2 = np.add.outer(np.arange(4.0), np.arange(5) * 0.1), np.ones((4, 5))
    return grid(
        path,
        {"j": (np.arange(4), None), "i": (np.arange(5), None)},
        extra={"nav_lat": (("j", "i"), lat2, NORTH), "nav_lon": (("j", "i"), lon2, EAST)},
        var_attrs={"coordinates": "nav_lat nav_lon"} if named else {},
    )


@refused("is on a curvilinear grid: 'nav_lat' varies along j and i")
def curvilinear(folder: Path) -> Path:
    return _curvilinear(folder / "curvilinear.nc", True)


@refused("is on a curvilinear grid")
def curvilinear_without_coordinates(folder: Path) -> Path:
    return _curvilinear(folder / "curvilinear.nc", False)


@refused("is on a curvilinear grid")
def curvilinear_with_index_coordinates(folder: Path) -> Path:
    lat2 = np.add.outer(np.arange(4.0), np.arange(5) * 0.1)
    return grid(
        folder / "indexed.nc",
        {"y": (np.arange(4), {"axis": "Y"}), "x": (np.arange(5), {"axis": "X"})},
        extra={"lat": (("y", "x"), lat2, NORTH), "lon": (("y", "x"), lat2, EAST)},
        var_attrs={"coordinates": "lat lon"},
    )


@refused("2 variables to choose from: t (lat 5 x lon 8), s (lat 5 x lon 8). Choose one by its name")
def two_variables(folder: Path) -> Path:
    return latlon(folder / "two.nc", extra={"s": (("lat", "lon"), field(LAT, LON), {})})


@refused("has no variable of numbers on a grid")
def no_variable(folder: Path) -> Path:
    return netcdf(folder / "none.nc", {"lat": (("lat",), LAT, NORTH)})


@refused("has no variable of numbers on a grid")
def scalars_only(folder: Path) -> Path:
    return netcdf(folder / "scalar.nc", {"t": ((), 3.0, {})})


@refused("has no variable of numbers on a grid")
def text_variable_only(folder: Path) -> Path:
    return netcdf(folder / "texts.nc", {"t": (("x",), np.array(["a", "b"], object), {})})


@refused("It has no variable at all outside of groups")
def groups_only(folder: Path) -> Path:
    path = folder / "groups.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name in ("one", "two"):
            group = file.createGroup(name)
            group.createDimension("x", 4)
            group.createVariable("t", "f8", ("x",))[:] = 1
    return path


@refused("has no cells: time is empty")
def empty_dimension(folder: Path) -> Path:
    return timed(folder / "empty.nc", "days since 2000-01-01", None, np.empty(0), unlimited="time")


@refused("Coordinates of 'lat' have missing values")
def coordinate_with_nan(folder: Path) -> Path:
    lat = np.array([0.0, np.nan, 2, 3, 4])
    return grid(folder / "nan.nc", {"lat": (lat, NORTH), "lon": (LON, EAST)})


@refused("Coordinates of 'lat' have missing values, 1 of 5")
def coordinate_never_written(folder: Path) -> Path:
    lat = np.array([0.0, 1, netCDF4.default_fillvals["f8"], 3, 4])
    return grid(folder / "unwritten.nc", {"lat": (lat, NORTH), "lon": (LON, EAST)})


@refused("Coordinates of 'x' have missing values, 1 of 5")
def integer_coordinate_never_written(folder: Path) -> Path:
    x = np.array([0, 1, netCDF4.default_fillvals["i4"], 3, 4], "i4")
    return grid(folder / "unwritten.nc", {"x": (x, {}), "lon": (LON, EAST)})


@refused("'lon' has -9999, which is no longitude. Expected -720 to 720")
def longitude_marked_as_missing(folder: Path) -> Path:
    lon = np.where(LON == 90, -9999, LON)
    return grid(folder / "marked.nc", {"lat": (LAT, NORTH), "lon": (lon, EAST)})


@refused("Coordinates of 'time' have missing values")
def time_with_nan(folder: Path) -> Path:
    return timed(folder / "nat.nc", "days since 2000-01-01", None, np.array([0.0, np.nan, 2]))


@refused("'lat' has 1.0 2 times. Keep one, or their mean")
def coordinate_twice(folder: Path) -> Path:
    lat = np.array([0.0, 1, 1, 2, 3])
    return grid(folder / "twice.nc", {"lat": (lat, NORTH), "lon": (LON, EAST)})


@refused("'s' has a 2 times")
def label_twice(folder: Path) -> Path:
    return grid(
        folder / "labels.nc", {"s": (np.array(["a", "b", "a"], object), {}), "y": (LAT, {})}
    )


def _with_holes(path: Path, hole: Any, attrs: Mapping[str, Any], dtype: str = "float32") -> Path:
    values = (RAW / 100).astype(dtype)
    values[1, 2] = values[3, 4] = hole
    return packed(path, values, attrs)


MISSING = "2 of 30 cells of 't' are missing (6.67 %), the first at x=1.0, y=2.0"


@refused(MISSING)
def missing_as_nan(folder: Path) -> Path:
    return _with_holes(folder / "nan.nc", np.nan, {})


def signalling(values: np.ndarray, place: Any) -> None:
    """Put the NaN there that R writes for NA; arithmetic with it warns."""
    bits = {4: ("u4", 0x7F8007A2), 8: ("u8", 0x7FF00000000007A2)}
    kind, pattern = bits[values.dtype.itemsize]
    values.view(kind)[place] = pattern


@refused(MISSING)
def missing_as_signalling_nan(folder: Path) -> Path:
    values = (RAW / 100).astype("float32")
    signalling(values, (1, 2))
    signalling(values, (3, 4))
    return packed(folder / "signalling.nc", values, {})


@refused(MISSING)
def missing_as_fill_value(folder: Path) -> Path:
    return _with_holes(folder / "fill.nc", -999, {"_FillValue": np.float32(-999)})


@refused(MISSING)
def missing_as_missing_value(folder: Path) -> Path:
    attrs = {"_FillValue": np.float32(-999), "missing_value": np.float32(1e20)}
    return _with_holes(folder / "missing.nc", 1e20, attrs)


@refused(MISSING)
def missing_as_default_fill(folder: Path) -> Path:
    return _with_holes(folder / "default.nc", netCDF4.default_fillvals["f4"], {})


@refused(MISSING)
def missing_as_infinity(folder: Path) -> Path:
    return _with_holes(folder / "infinite.nc", np.inf, {})


@refused(MISSING)
def missing_as_text_number(folder: Path) -> Path:
    return _with_holes(folder / "text.nc", -9999, {"missing_value": "-9999"})


@refused(MISSING)
def missing_in_packed(folder: Path) -> Path:
    raw = RAW.copy()
    raw[1, 2] = raw[3, 4] = -32768
    attrs = {"scale_factor": 0.01, "add_offset": 1.0, "_FillValue": np.int16(-32768)}
    return packed(folder / "packed.nc", raw, attrs)


@refused(MISSING)
def missing_in_integers(folder: Path) -> Path:
    raw = RAW.astype("int32")
    raw[1, 2] = raw[3, 4] = netCDF4.default_fillvals["i4"]
    return packed(folder / "ints.nc", raw, {})


@refused("30 of 30 cells of 't' are missing (100 %)")
def never_written(folder: Path) -> Path:
    return packed(folder / "never.nc", np.full((5, 6), netCDF4.default_fillvals["f8"]), {})


@refused("has no variable of numbers on a grid. It has c (x 5 x x 5)")
def dimension_twice(folder: Path) -> Path:
    return netcdf(folder / "cov.nc", {"x": (("x",), LAT, {}), "c": (("x", "x"), np.eye(5), {})})


@refused("cannot be read")
def rows_of_any_length(folder: Path) -> Path:
    path = folder / "vlen.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        kind = file.createVLType(np.float64, "row")
        variable = file.createVariable("t", kind, ("x",))
        for i in range(3):
            variable[i] = np.arange(i + 1.0)
    return path


@refused("has no variable of numbers on a grid")
def records(folder: Path) -> Path:
    path = folder / "compound.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        pair = np.dtype([("a", "f8"), ("b", "i4")])
        file.createVariable("t", file.createCompoundType(pair, "pair"), ("x",))
    return path


@refused("is not a NetCDF file")
def text_named_netcdf(folder: Path) -> Path:
    (path := folder / "text.nc").write_text("lat,lon,t\n1,2,3\n")
    return path


@refused("is not a NetCDF file")
def empty_file(folder: Path) -> Path:
    (path := folder / "empty.nc").write_bytes(b"")
    return path


@refused("cannot be read")
def truncated_netcdf4(folder: Path) -> Path:
    path = latlon(folder / "cut.nc")
    path.write_bytes(path.read_bytes()[:3000])
    return path


@refused("is damaged: its header ends too early")
def truncated_netcdf3(folder: Path) -> Path:
    path = latlon(folder / "cut.nc", form="NETCDF3_CLASSIC")
    path.write_bytes(path.read_bytes()[:200])
    return path


@refused("is a folder and no Zarr store")
def folder_as_file(folder: Path) -> Path:
    (path := folder / "data").mkdir()
    return path


@refused("cannot be read")
def folder_named_zarr(folder: Path) -> Path:
    (path := folder / "empty.zarr").mkdir()
    return path


@refused("is compressed: gunzip it first")
def compressed_netcdf(folder: Path) -> Path:
    path = folder / "data.nc.gz"
    path.write_bytes(gzip.compress(latlon(folder / "data.nc").read_bytes()))
    return path


@refused("is a zip archive, as model files are")
def zip_archive(folder: Path) -> Path:
    np.savez(path := folder / "arrays.npz", a=LAT)
    return path


@refused("is of no kind that can be read")
def unknown_kind(folder: Path) -> Path:
    (path := folder / "picture.png").write_bytes(b"\x89PNG....")
    return path


@refused("There is no file")
def absent(folder: Path) -> Path:
    return folder / "absent.nc"


@refused("No file matches")
def absent_pattern(folder: Path) -> Path:
    return folder / "absent-*.nc"


@refused("is empty")
def empty_table(folder: Path) -> Path:
    (path := folder / "empty.csv").write_text("")
    return path


@refused("has a header and no rows")
def table_of_header(folder: Path) -> Path:
    (path := folder / "header.csv").write_text("a,b,c\n")
    return path


@refused("200 rows for the cells of x 100 x y 200: too few for a long table")
def scattered_table(folder: Path) -> Path:
    rows = "".join(f"{i % 100},{i * i % 10007},{i}\n" for i in range(200))
    (path := folder / "points.csv").write_text(f"x,y,t\n{rows}")
    return path
