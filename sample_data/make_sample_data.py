"""Make the sample data: a formula, an ocean without and with gaps, and two tables of sensors.

Usage: python make_sample_data.py [FOLDER]

Everything is computed from formulas and seeded random numbers, so each run gives the same values.
Without FOLDER the files are written next to this script.
"""

import csv
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import xarray as xr

EDDY_SEED, CLOUD_SEED, SENSOR_SEED, LATER_SEED = 11, 22, 33, 44
LAND_SHARE, CLOUD_SHARE = 0.22, 0.12
FILL_VALUE = -999.0

# Centre latitude and longitude, then radius in latitude and longitude, all in degrees. The four
# merge into two continents, one of which crosses the zero meridian.
HIGHLANDS = [(40, 265, 24, 34), (-20, 300, 30, 20), (12, 20, 34, 30), (48, 90, 16, 36)]

CF_ATTRS = {"Conventions": "CF-1.10", "source": "computed from formulas and seeded noise"}
TIME_ATTRS = {
    "standard_name": "time",
    "long_name": "time",
    "units": "days since 2020-01-01",
    "calendar": "standard",
    "axis": "T",
}
LAT_ATTRS = {
    "standard_name": "latitude",
    "long_name": "latitude",
    "units": "degrees_north",
    "axis": "Y",
    "bounds": "lat_bnds",
}
LON_ATTRS = {
    "standard_name": "longitude",
    "long_name": "longitude",
    "units": "degrees_east",
    "axis": "X",
    "bounds": "lon_bnds",
}
SST_ATTRS = {
    "standard_name": "sea_surface_temperature",
    "long_name": "sea surface temperature",
    "units": "degree_Celsius",
}


def paper_2d() -> xr.Dataset:
    """Return sin(x) cos(d / 2) on a regular grid."""
    x = np.linspace(0.1, 4 * np.pi, 145)
    d = np.linspace(0.1, 8 * np.pi, 150)
    return xr.Dataset(
        {
            "upsilon": (
                ("x", "d"),
                np.outer(np.sin(x), np.cos(d / 2)),
                {"long_name": "sin(x) cos(d / 2)", "units": "1"},
            )
        },
        coords={
            "x": ("x", x, {"long_name": "first coordinate", "units": "1"}),
            "d": ("d", d, {"long_name": "second coordinate", "units": "1"}),
        },
        attrs=CF_ATTRS | {"title": "Product of a sine and a cosine", "source": "sin(x) cos(d / 2)"},
    )


def ocean() -> xr.Dataset:
    """Return the sea surface temperature of a planet that is all covered by water."""
    day = axis("time", np.arange(48) * 5.0 + 2)
    lat = axis("lat", np.linspace(60.0, -60.0, 25))
    lon = axis("lon", np.arange(36) * 10.0)
    sst = (
        climate(day, lat)
        + warm_pool(lat, lon)
        + zonal_waves(day, lat, lon)
        + 0.8 * eddies(day, lat, lon)
    )
    return xr.Dataset(
        {
            "sst": (("time", "lat", "lon"), as_stored(sst), SST_ATTRS),
            "lat_bnds": (("lat", "bnds"), cell_bounds(lat.values)),
            "lon_bnds": (("lon", "bnds"), cell_bounds(lon.values)),
        },
        coords={
            "time": ("time", day.values, TIME_ATTRS),
            "lat": ("lat", lat.values, LAT_ATTRS),
            "lon": ("lon", lon.values, LON_ATTRS),
        },
        attrs=CF_ATTRS | {"title": "Invented sea surface temperature"},
    )


def with_gaps(whole: xr.Dataset) -> xr.Dataset:
    """Return an ocean with missing cells: land, the same at every time, and moving clouds."""
    day, lat, lon = (axis(name, whole[name].values) for name in ("time", "lat", "lon"))
    seen = ~land(lat, lon)
    seen = seen & ~clouds(day, lat, lon, over=seen)
    gappy = whole.assign(sst=whole.sst.where(seen))
    gappy.sst.encoding["_FillValue"] = FILL_VALUE
    return gappy.assign_attrs(title="Invented sea surface temperature, hidden by land and clouds")


def climate(day: xr.DataArray, lat: xr.DataArray) -> xr.DataArray:
    """Return warm tropics, cold poles, and summers half a year apart between the hemispheres."""
    mean = 2 + 25 * np.cos(np.deg2rad(lat)) ** 2
    season = np.cos(2 * np.pi * (day - 235) / 365.25)
    return mean + 4 * np.sin(np.deg2rad(lat)) * season


def warm_pool(lat: xr.DataArray, lon: xr.DataArray) -> xr.DataArray:
    """Return a patch of warmer water near the equator."""
    return 2.5 * bump((lat - 2) / 14, degrees_east_of(150, lon) / 40)


def zonal_waves(day: xr.DataArray, lat: xr.DataArray, lon: xr.DataArray) -> xr.DataArray:
    """Return waves around the globe: long and slow far from the equator, short and fast on it."""

    def wave(number: int, period: float) -> xr.DataArray:
        return np.cos(number * np.deg2rad(lon) - 2 * np.pi * day / period)

    northern = 1.2 * bump((lat - 42) / 16) * (wave(2, 160) + 0.5 * wave(3, 90))
    southern = 1.0 * bump((lat + 48) / 14) * (wave(1, 240) + 0.6 * wave(4, 110))
    equatorial = 0.6 * bump(lat / 8) * wave(5, -45)
    return northern + southern + equatorial


def eddies(day: xr.DataArray, lat: xr.DataArray, lon: xr.DataArray) -> xr.DataArray:
    """Return warm and cold eddies that drift slowly westward."""
    rng = np.random.default_rng(EDDY_SEED)
    return drifting_blobs(rng, day, lat, lon, count=80, reach=(9, 18), speed=-0.4, lifetime=40)


def clouds(
    day: xr.DataArray, lat: xr.DataArray, lon: xr.DataArray, over: xr.DataArray
) -> xr.DataArray:
    """Return which cells are cloudy: CLOUD_SHARE of the cells that `over` marks."""
    rng = np.random.default_rng(CLOUD_SEED)
    thickness = drifting_blobs(
        rng, day, lat, lon, count=240, reach=(10, 20), speed=2.5, lifetime=14
    )
    return thickness > thickness.where(over).quantile(1 - CLOUD_SHARE).item()


def land(lat: xr.DataArray, lon: xr.DataArray) -> xr.DataArray:
    """Return which cells are land: the highest LAND_SHARE of a height map made of HIGHLANDS."""
    height = sum(
        bump((lat - north) / lat_reach, degrees_east_of(east, lon) / lon_reach)
        for north, east, lat_reach, lon_reach in HIGHLANDS
    )
    return height > height.quantile(1 - LAND_SHARE).item()


def drifting_blobs(
    rng: np.random.Generator,
    day: xr.DataArray,
    lat: xr.DataArray,
    lon: xr.DataArray,
    *,
    count: int,
    reach: tuple[float, float],
    speed: float,
    lifetime: float,
) -> xr.DataArray:
    """Return a sum of blobs that grow, drift eastward at `speed` (degrees a day) and fade."""

    def one_each(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(values, dims="blob")

    strength = one_each(rng.normal(size=count))
    north = one_each(rng.uniform(-65, 65, count))
    east = one_each(rng.uniform(0, 360, count))
    prime = one_each(rng.uniform(day.values[0] - lifetime, day.values[-1] + lifetime, count))
    age = day - prime
    lat_reach, lon_reach = reach
    across = (lat - north) / lat_reach
    along = degrees_east_of(east + speed * age, lon) / lon_reach
    return (strength * bump(across, along, age / lifetime)).sum("blob")


def bump(*offsets: xr.DataArray) -> xr.DataArray:
    """Return a Gaussian that is 1 where all offsets are 0."""
    return np.exp(-sum(offset**2 for offset in offsets))


def degrees_east_of(origin: xr.DataArray | float, lon: xr.DataArray) -> xr.DataArray:
    """Return the signed shortest way from `origin` to `lon` around the globe, in degrees."""
    return (lon - origin + 180) % 360 - 180


def axis(name: str, values: np.ndarray) -> xr.DataArray:
    """Return values as an array along the dimension `name`."""
    return xr.DataArray(values, dims=name)


def as_stored(field: xr.DataArray) -> np.ndarray:
    """Return a field in single precision, rounded to 0.001 so that all processors agree."""
    return field.transpose("time", "lat", "lon").values.round(3).astype(np.float32)


def cell_bounds(centres: np.ndarray) -> np.ndarray:
    """Return both edges of each cell of an evenly spaced coordinate."""
    half = (centres[1] - centres[0]) / 2
    return np.stack([centres - half, centres + half], axis=1)


def sensors(first: int, steps: int, seed: int) -> list[tuple[str, str, str]]:
    """Return half-hourly temperatures of twelve sensors, without some that are lost."""
    rng = np.random.default_rng(seed)
    hours = np.arange(first, first + steps)[:, None] / 2
    place = np.linspace(0, 1, 12)
    mean = 11 + 2 * place + 0.01 * hours
    amplitude = 4 + 1.5 * np.sin(np.pi * place)
    warmest_hour = 14 + 2 * place
    temperature = mean + amplitude * np.cos(2 * np.pi * (hours - warmest_hour) / 24)
    temperature += rng.normal(scale=0.05, size=temperature.shape)

    lost = rng.random(temperature.shape) < 0.03
    lost[(hours[:, 0] >= 40) & (hours[:, 0] < 45), 6] = True  # s07 is silent for five hours

    start = datetime(2024, 3, 1)
    return [
        (
            (start + timedelta(hours=hours[row, 0])).isoformat(),
            f"s{column + 1:02d}",
            f"{temperature[row, column]:.3f}",
        )
        for row, column in np.argwhere(~lost)
    ]


def write_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset, compressed without loss; only variables that name a fill value get one."""
    encoding = {
        name: {"zlib": True, "complevel": 4, "_FillValue": variable.encoding.get("_FillValue")}
        for name, variable in dataset.variables.items()
    }
    dataset.to_netcdf(path, engine="netcdf4", encoding=encoding)


def write_csv(rows: list[tuple[str, str, str]], path: Path) -> None:
    """Write the rows of the sensors below a header, with the same line ends on every system."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("time", "sensor", "temperature"))
        writer.writerows(rows)


def main(folder: Path) -> None:
    """Write the five files into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = ocean()
    write_netcdf(paper_2d(), folder / "paper_2d.nc")
    write_netcdf(whole, folder / "ocean.nc")
    write_netcdf(with_gaps(whole), folder / "ocean_gaps.nc")
    write_csv(sensors(0, 4 * 48, SENSOR_SEED), folder / "sensors.csv")
    write_csv(sensors(4 * 48, 24, LATER_SEED), folder / "sensors_next.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
