"""Numbers whose digits are dates become dates, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit
from dkrls_cli.files.reading import open_file, read_targets
from dkrls_cli.files.stored.digits import cells_of_digits, dates_of_digits
from dkrls_cli.grid.axes import number_axis


def texts(numbers: list[float], name: str = "time", **attrs: Any) -> list[str] | None:
    read = dates_of_digits(number_axis(name, np.array(numbers), attrs))
    return None if read is None else read[0].texts


@pytest.mark.parametrize(
    ("numbers", "units", "dates"),
    [
        ([20200131, 20200201], "", ["2020-01-31", "2020-02-01"]),
        ([20200131.25, 20200201.75], "day as %Y%m%d.%f", ["2020-01-31T06:00", "2020-02-01T18:00"]),
        ([20200131.3333333], "day as %Y%m%d.%f", ["2020-01-31T08:00"]),
        ([20200131.0416667], "day as %Y%m%d.%f", ["2020-01-31T01:00"]),  # seven digits of an hour
        ([20200131, 20200201], "YYYYMMDD", ["2020-01-31", "2020-02-01"]),
        ([2020013123, 2020020100], "yyyymmddhh", ["2020-01-31T23:00", "2020-02-01T00:00"]),
        ([202001312330, 202002010000], "", ["2020-01-31T23:30", "2020-02-01T00:00"]),
        ([201912, 202001], "month as %Y%m.%f", ["2019-12-01", "2020-01-01"]),
    ],
)
def test_digits_are_read_as_dates(numbers: list[float], units: str, dates: list[str]) -> None:
    assert texts(numbers, **({"units": units} if units else {})) == dates


@pytest.mark.parametrize(
    ("numbers", "attrs", "reason"),
    [
        ([20200131, 20200230], {}, "2020-02-30"),
        ([20200228, 20200229], {"calendar": "noleap"}, "2020-02-29"),
        ([20200131], {"calendar": "lunar"}, "Unknown calendar 'lunar'"),
        ([8500115, 8500215], {"units": "day as %Y%m%d.%f"}, "digits by 'day as %Y%m%d.%f' cannot"),
        ([201912.5, 202001.0], {"units": "month as %Y%m.%f"}, "digits by 'month as %Y%m.%f'"),
    ],
)
def test_digits_that_are_no_dates_stay_and_a_note_says_why(
    numbers: list[float], attrs: dict[str, Any], reason: str
) -> None:
    axis = number_axis("time", np.array(numbers), attrs)
    same, note = dates_of_digits(axis) or (None, "")
    assert same is axis
    assert note.startswith("time: ")
    assert reason in note
    assert note.endswith("; its numbers are used as they are, not as dates")


@pytest.mark.parametrize(
    ("numbers", "name", "attrs"),
    [
        ([20200131, 20200201], "x", {}),  # of what, nobody says
        ([20200131, 20200201], "time", {"units": "s"}),
        ([20200131, 20201301], "time", {}),  # there is no month 13
        ([201912, 202001], "time", {}),  # may be seconds
        ([20200131, np.nan], "time", {}),
        ([0.0, 1.0], "time", {}),
        ([1585429200.0, 1585432800.0], "time", {}),  # seconds since 1970
        ([1850.0, 1851.0], "time", {}),
        ([], "time", {}),
    ],
)
def test_other_numbers_stay(numbers: list[float], name: str, attrs: dict[str, Any]) -> None:
    assert texts(numbers, name, **attrs) is None


def test_a_calendar_has_its_own_dates() -> None:
    assert texts([20200230], units="YYYYMMDD", calendar="360_day") == ["2020-02-30"]


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_a_file_has_even_days_across_months_and_says_so(
    tmp_path: Path, suffix: str, dtype: str
) -> None:
    days = np.array([20200130, 20200131, 20200201, 20200202], dtype)
    data = xr.DataArray(np.arange(4.0), {"time": ("time", days)}, name="v")
    path = str(tmp_path / f"days.{suffix}")
    if suffix == "zarr":
        data.to_dataset().to_zarr(path, consolidated=False)
    else:
        data.to_dataset().to_netcdf(path)
    source = open_file(path)
    np.testing.assert_array_equal(np.diff(source.axes[0].numbers), 1.0)
    assert "time: 20200130 is read as 2020-01-30" in source.notes


@pytest.mark.parametrize("days", [[20200130, 20200230], [20200130, 20200131]])
def test_numbers_that_stay_keep_how_they_are_stored(tmp_path: Path, days: list[int]) -> None:
    path = str(tmp_path / "days.nc")
    times = ("time", np.array(days, np.int32), {"calendar": "noleap"})
    xr.DataArray(np.arange(2.0), {"time": times}, name="v").to_dataset().to_netcdf(path)
    axis = open_file(path).axes[0]
    assert axis.dtype == ("float64" if axis.time else "int32")
    assert (axis.time is None) == (days[1] == 20200230)


def monthly(path: Path, times: np.ndarray, ends: np.ndarray, **attrs: Any) -> str:
    """Write four means over months, with the ends of these."""
    data = xr.Dataset(
        {
            "v": ("time", np.array([1.0, 3.0, 2.0, 4.0])),
            "time_bnds": (("time", "n"), np.stack([ends[:-1], ends[1:]], axis=1)),
        },
        {"time": ("time", times, {"bounds": "time_bnds", **attrs})},
    )
    data.to_netcdf(path)
    return str(path)


def test_bounds_of_digits_are_those_of_the_dates(tmp_path: Path) -> None:
    months = np.array([20191201, 20200101, 20200201, 20200301, 20200401])
    digits = monthly(tmp_path / "a.nc", months[:-1] + 14, months, units="day as %Y%m%d.%f")
    days = np.array([18231, 18262, 18293, 18322, 18353])
    dates = monthly(tmp_path / "b.nc", days[:-1] + 14, days, units="days since 1970-01-01")
    given = {"kernel": "matern52", "sigma": 30.0, "ridge": 1e-6, "cell_means": "time"}
    found, expected = (fit(open_file(path).grid(), **given) for path in (digits, dates))
    at = {"time": ["2020-01-10", "2020-02-29"]}
    np.testing.assert_allclose(found.predict(**at), expected.predict(**at), rtol=1e-12)
    cells = read_targets(digits, [expected.axes]).cells[0]
    np.testing.assert_array_equal(cells["time"][1], [18262.0, 18293.0])


@pytest.mark.parametrize("ends", [[0, 1, 2, 3, 4], [20191201, 20200101, 20200201, 20200230, 0]])
@pytest.mark.parametrize("units", [{}, {"units": "YYYYMMDD"}])
def test_bounds_that_are_no_dates_are_left_out(
    tmp_path: Path, ends: list[int], units: dict[str, str]
) -> None:
    months = np.array([20191215, 20200115, 20200215, 20200315])
    path = monthly(tmp_path / "a.nc", months, np.array(ends), **units)
    assert open_file(path).style.bounds == {}
    assert read_targets(path, [open_file(path).axes]).cells == [{}]


def test_bounds_of_other_numbers_stay() -> None:
    cells = np.array([[0.0, 1.0]])
    assert cells_of_digits("time", {}, np.array([0.5]), cells) is cells
    assert cells_of_digits("time", {"units": "days"}, np.array([20200115]), cells) is cells
