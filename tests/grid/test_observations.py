"""Errors of observations: aligned by coordinates, and refused where they say nothing."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.grid import as_grid, drop_repeats
from dkrls_cli.grid.observations import attach_errors, describe_errors, read_number, with_errors

TIME = np.array(["2020-01-01", "2020-02-01", "2020-03-01"], "M8[ns]")
LAT = np.array([-10.0, 0.0, 10.0, 20.0])


def data():
    values = np.arange(12.0).reshape(3, 4)
    values[1, 2] = np.nan
    array = xr.DataArray(values, {"time": TIME, "lat": LAT}, ("time", "lat"), "sst", {"units": "K"})
    array.lat.attrs["units"] = "degrees_north"
    return array


def errors_of(errors, array=None):
    array = data() if array is None else array
    return with_errors(array, as_grid(array), errors).errors


def by_lat(values=(1.0, 2.0, 3.0, 4.0), lat=LAT, name="lat", **attrs):
    return xr.DataArray(list(values), {name: lat}, (name,), "e", attrs)


EXPECTED = np.array([[1, 2, 3, 4], [1, 2, 0, 4], [1, 2, 3, 4.0]])


@pytest.mark.parametrize("number", [0.5, "0.5", np.float32(0.5), 0, xr.DataArray(0.5)])
def test_a_number_is_that_of_every_observation(number):
    found = errors_of(number)
    assert found[1, 2] == 0.0
    assert set(np.delete(found.ravel(), 6)) == {float(number)}


def test_errors_on_some_dimensions_are_those_of_all_others():
    np.testing.assert_array_equal(errors_of(by_lat()), EXPECTED)
    np.testing.assert_array_equal(errors_of(np.array([1.0, 2, 3, 4])), EXPECTED)
    np.testing.assert_array_equal(errors_of(as_grid(by_lat())), EXPECTED)
    by_time = xr.DataArray([1.0, 2.0, 3.0], {"time": TIME}, ("time",))
    assert errors_of(by_time)[:, 0].tolist() == [1, 2, 3]


def test_errors_are_aligned_by_coordinates_in_any_order_and_under_other_names():
    turned = by_lat([4.0, 3.0, 2.0, 1.0], LAT[::-1])
    np.testing.assert_array_equal(errors_of(turned), EXPECTED)
    more = by_lat([9.0, 1.0, 2.0, 3.0, 4.0], [-20.0, *LAT])
    np.testing.assert_array_equal(errors_of(more), EXPECTED)
    named = by_lat(name="latitude")
    named.latitude.attrs["units"] = "degrees_north"
    np.testing.assert_array_equal(errors_of(named), EXPECTED)
    single = by_lat(lat=(LAT / 3).astype("f4"))
    np.testing.assert_array_equal(errors_of(single, data().assign_coords(lat=LAT / 3)), EXPECTED)
    both = xr.DataArray(
        np.arange(12.0).reshape(4, 3) + 1, {"lat": LAT, "time": TIME}, ("lat", "time")
    )
    expected = np.where(np.isnan(data()), 0, both.T)
    np.testing.assert_array_equal(errors_of(both), expected)


def test_labels_are_matched_by_their_text():
    array = xr.DataArray(np.ones((2, 3)), {"site": ["a", "b"], "x": [0.0, 1, 2]}, ("site", "x"))
    errors = xr.DataArray([3.0, 2.0, 1.0], {"site": ["c", "b", "a"]}, ("site",))
    assert errors_of(errors, array)[:, 0].tolist() == [1, 2]
    with pytest.raises(InputError, match="lack coordinates of 'site' that the data has: b"):
        errors_of(errors.sel(site=["a", "c"]), array)


def test_a_coordinate_of_the_data_may_hold_its_errors():
    array = data().assign_coords(e=("lat", [1.0, 2, 3, 4]))
    np.testing.assert_array_equal(errors_of("e", array), EXPECTED)
    with pytest.raises(SettingError, match="no coordinate 'err' with its errors") as found:
        errors_of("err", data().assign_coords(errs=("lat", [1.0, 2, 3, 4])))
    assert "errs" in str(found.value)
    with pytest.raises(SettingError, match="no coordinate 'e'"):
        with_errors(np.ones((2, 2)), as_grid(np.ones((2, 2))), "e")


def test_errors_at_one_time_are_those_of_all_times():
    one = by_lat().expand_dims(time=TIME[:1] + np.timedelta64(90, "D"))
    np.testing.assert_array_equal(errors_of(one), EXPECTED)
    scalar = by_lat().assign_coords(time=TIME[0])
    np.testing.assert_array_equal(errors_of(scalar), EXPECTED)


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (-1.0, "is -1 at time=2020-01-01, lat=-10.0, where there is a value, and 10 more"),
        (np.nan, "is missing at time=2020-01-01, lat=-10.0"),
        (np.inf, "is inf at"),
        (by_lat([1.0, 1.0, 1.0, -2.0]), "is -2 at time=2020-01-01, lat=20.0"),
        (by_lat([1.0, np.nan, 1.0, 2.0]), "is missing at time=2020-01-01, lat=0.0"),
        (by_lat(units="mK"), "The errors 'e' are in 'mK', the values of 'sst' in 'K'"),
        (by_lat(lat=LAT + 1), "lack coordinates of 'lat' that the data has: -10.0, 0.0"),
        (by_lat()[:3], "lack coordinates of 'lat' that the data has: 20.0"),
        (by_lat(name="depth"), "have a dimension 'depth'. The data has time, lat"),
        (np.ones(5), r"have shape \(5,\), which does not fit a grid of shape \(3, 4\)"),
    ],
)
def test_errors_that_do_not_fit_are_refused(errors, said):
    with pytest.raises(InputError, match=said) as found:
        errors_of(errors)
    assert "\n" not in str(found.value)


def test_one_such_cell_is_named_alone():
    errors = np.ones((3, 4))
    errors[2, 1] = -3.0
    with pytest.raises(
        InputError, match=r"is -3 at time=2020-03-01, lat=0.0, where there is a value\."
    ):
        errors_of(errors)


def test_missing_cells_need_no_error():
    errors = np.ones((3, 4))
    errors[1, 2] = np.nan
    assert errors_of(errors)[1, 2] == 0.0
    errors[1, 2] = -5.0
    assert errors_of(errors)[1, 2] == 0.0


def test_the_same_units_and_no_units_are_taken():
    for units in ({"units": "K"}, {"units": "kelvin"}, {}):
        np.testing.assert_array_equal(errors_of(by_lat(**units)), EXPECTED)


def test_dimensions_without_coordinates_have_the_same_number_of_cells():
    grid = as_grid(xr.DataArray(np.ones((2, 3)), dims=("y", "x")))
    found = with_errors(None, grid, xr.DataArray([1.0, 2.0, 3.0], dims="x"))
    assert found.errors[1].tolist() == [1, 2, 3]
    with pytest.raises(InputError, match="have 4 cells along 'x', the data 3"):
        with_errors(None, grid, xr.DataArray([1.0, 2, 3, 4], dims="x"))


def test_errors_go_with_parts_of_the_grid():
    grid = attach_errors(as_grid(data()), as_grid(by_lat()))
    part = grid.take([np.array([2, 0]), np.array([3, 1])])
    assert part.errors.tolist() == [[4, 2], [4, 2]]
    assert with_errors(data(), grid, None) is grid
    east = {"units": "degrees_east"}
    lon = xr.DataArray([0.0, 120.0, 240.0, 360.0], dims="lon", attrs=east)
    turn = xr.DataArray(np.arange(8.0).reshape(2, 4), {"lon": lon}, ("y", "lon"))
    fewer, _ = drop_repeats(with_errors(turn, as_grid(turn), np.array([1.0, 2, 3, 4])))
    assert fewer.errors.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_numbers_are_told_from_names():
    assert read_number("1e-3") == 1e-3
    assert read_number("sst_error") is None
    assert read_number(None) is None
    assert read_number([1.0]) is None


def test_errors_of_observed_cells_are_described():
    observed = np.array([True, True, False, True])
    found = describe_errors(np.array([1.0, 5.0, 99.0, 2.0]), observed)
    assert found == {"least": 1.0, "median": 2.0, "most": 5.0}
