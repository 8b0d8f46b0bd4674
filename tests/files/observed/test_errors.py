"""Errors of observations in files: numbers, other variables, other files."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.observed.errors import (
    GivenErrors,
    known_errors,
    open_with_errors,
    slices_with_errors,
)
from dkrls_cli.files.reading import open_slices, open_source, read_tables

TIME, LAT = np.arange(3.0), np.array([-10.0, 0.0, 10.0, 20.0])
ERRORS = np.arange(1.0, 13.0).reshape(3, 4)


def dataset(**more):
    dims = ("time", "lat")
    about = {"units": "K", "standard_name": "air_temperature"}
    found = xr.Dataset(
        {"t": (dims, ERRORS * 10, about), "t_error": (dims, ERRORS, {"units": "K"})},
        {"time": ("time", TIME, {"units": "days since 2000-01-01"}), "lat": LAT},
    )
    return found.assign(more)


@pytest.fixture
def path(tmp_path):
    dataset().to_netcdf(tmp_path / "t.nc")
    return str(tmp_path / "t.nc")


def opened(paths, *texts, names=(), levels=None):
    paths = [paths] if isinstance(paths, str) else paths
    return open_with_errors(paths, names, levels, GivenErrors.read(texts))


@pytest.mark.parametrize("names", [(), ("t",), ("all",)])
def test_another_variable_has_the_errors_and_is_not_modelled(path, names):
    (source,) = opened(path, "t_error", names=names)
    assert source.name == "t"
    assert source.errors_from == "t_error"
    np.testing.assert_array_equal(source.grid().errors, ERRORS)


def test_a_number_and_a_file(path, tmp_path):
    (source,) = opened(path, "0.5", names=("t",))
    assert source.errors_from == 0.5
    assert (source.grid().errors == 0.5).all()
    other = str(tmp_path / "e.csv")
    Path(other).write_text("lat,e\n" + "".join(f"{lat},{i + 1}\n" for i, lat in enumerate(LAT)))
    (source,) = opened(path, other, names=("t",))
    assert source.errors_from is None
    assert source.grid().errors[1].tolist() == [1, 2, 3, 4]


def test_zarr_and_packed_errors_are_unpacked(tmp_path):
    store = str(tmp_path / "t.zarr")
    dataset().to_zarr(store, consolidated=False)
    (source,) = opened(store, "t_error")
    np.testing.assert_array_equal(source.grid().errors, ERRORS)
    packed = str(tmp_path / "packed.nc")
    encoding = {
        "t_error": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -99}
    }
    dataset().to_netcdf(packed, encoding=encoding)
    (source,) = opened(packed, "t_error")
    np.testing.assert_allclose(source.grid().errors, ERRORS)


def test_each_of_several_variables_has_its_own(tmp_path):
    path = str(tmp_path / "two.nc")
    dataset(u=dataset().t * 2).to_netcdf(path)
    t, u = opened(path, "t=t_error", "u=0.25", names=("t", "u"))
    np.testing.assert_array_equal(t.grid().errors, ERRORS)
    assert (u.grid().errors == 0.25).all()
    t, u = opened(path, "t=t_error", "7", names=("all",))
    assert (t.errors_from, u.errors_from) == ("t_error", 7.0)
    t, u = opened(path, "u=0.25", names=("t", "u"))
    assert t.errors is None
    assert t.grid().errors is None


def test_files_that_are_joined_have_joined_errors(tmp_path):
    paths = []
    for number in range(2):
        part = dataset(site=("lat", LAT + 50)).assign_coords(time=TIME + 3 * number)
        part.time.attrs["units"] = "days since 2000-01-01"
        paths.append(str(tmp_path / f"{number}.nc"))
        part.to_netcdf(paths[-1])
    (source,) = opened(paths, "t_error", names=("t",))
    np.testing.assert_array_equal(source.grid().errors, np.concatenate([ERRORS, ERRORS]))
    (source,) = opened(paths, "site", names=("t",))
    np.testing.assert_array_equal(source.grid().errors, np.broadcast_to(LAT + 50, (6, 4)))


TABLE = "lat,lon,t,e\n" + "".join(
    f"{lat},{lon},{lat + lon},{0.1 * (i + 1)}\n"
    for i, (lat, lon) in enumerate((a, b) for a in (0, 1, 2) for b in (10, 20))
)


@pytest.mark.parametrize(("names", "levels"), [(("t",), None), ((), ["lat", "lon"])])
def test_another_column_of_a_table_has_the_errors(tmp_path, names, levels):
    path = str(tmp_path / "t.csv")
    Path(path).write_text(TABLE)
    (source,) = opened(path, "e", names=names, levels=levels)
    assert source.name == "t"
    np.testing.assert_allclose(source.grid().errors.ravel(), 0.1 * np.arange(1, 7))


def test_a_table_without_a_named_column_of_values_is_refused(tmp_path):
    path = str(tmp_path / "t.csv")
    Path(path).write_text(TABLE)
    with pytest.raises(InputError, match="Choose the one of the values by its name") as found:
        opened(path, "e")
    assert found.value.setting == "var"
    with pytest.raises(InputError, match="no column 'f'"):
        opened(path, "f", names=("t",))


def test_what_is_neither_number_nor_variable_nor_file_is_refused(path):
    with pytest.raises(InputError, match=r"'t_eror' are no number, no variable .* and no file"):
        opened(path, "t_eror")
    with pytest.raises(SettingError, match="for a variable 'u', which is not modelled"):
        opened(path, "u=t_error")


@pytest.mark.parametrize("texts", [("1", "2"), ("a=1", "a=2"), ("=1",), ("a=",)])
def test_texts_that_say_two_things_or_none_are_refused(texts):
    with pytest.raises(SettingError, match="NAME=VALUE"):
        GivenErrors.read(texts)


def test_texts_are_for_one_variable_or_all():
    given = GivenErrors.read(["a=1", "2"])
    assert (given.of("a"), given.of("b")) == ("1", "2")
    assert given
    assert not GivenErrors.read(None)
    assert GivenErrors.read(["a=1"]).of("b") is None


@pytest.mark.parametrize("text", ["t_error", "0.5"])
def test_new_slices_have_errors_too(path, text):
    raw = read_tables([path])
    source = open_slices([path], "t", ["lat", "time"], "t", raw)
    found = slices_with_errors(source, [path], text, ["lat", "time"], raw).grid()
    expected = ERRORS if text == "t_error" else np.full((3, 4), 0.5)
    np.testing.assert_array_equal(found.errors, expected)
    with pytest.raises(InputError, match="no variable"):
        slices_with_errors(source, [path], "nosuch", ["lat", "time"], raw)


@pytest.mark.parametrize(
    ("attrs", "link", "found"),
    [
        ({"standard_name": "air_temperature standard_error"}, "", "t_error"),
        ({"standard_name": "sea_temperature standard_error"}, "t_error", "t_error"),
        ({"standard_name": "sea_temperature standard_error"}, "", None),
        ({"standard_name": "air_temperature status_flag"}, "t_error", None),
        ({}, "t_error", None),
    ],
)
def test_standard_errors_after_cf_are_found(tmp_path, attrs, link, found):
    data = dataset()
    data.t_error.attrs = attrs
    data.t.attrs["ancillary_variables"] = link
    path = str(tmp_path / "cf.nc")
    data.to_netcdf(path)
    assert known_errors([path], open_source([path], "t")) == found


def test_tables_have_no_standard_names(tmp_path):
    path = str(tmp_path / "t.csv")
    Path(path).write_text(TABLE)
    source = open_source([path], "t", ["lat", "lon"])
    assert known_errors([path], source) is None
