"""Grids keep values and labels together, and come from and go to xarray."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.arrays import is_frozen
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.grid import (
    Grid,
    as_grid,
    coordinate_axes,
    drop_repeats,
    ensemble_variable,
    from_data_array,
    is_labelled,
    realization_axis,
    scalar_axes,
    station_array,
    std_variable,
    to_data_array,
)

AXES = (axis_of("x", [10, 20, 30]), text_axis("s", ["a", "b"]))


def grid(values):
    return Grid(np.asarray(values, float), AXES, "t", {"units": "K"})


def test_a_part_has_its_own_coordinates():
    part = grid([[1, 2], [3, 4], [5, 6]]).take([np.array([2, 0]), np.array([1])])
    assert part.values.tolist() == [[6.0], [2.0]]
    assert [axis.texts for axis in part.axes] == [["30", "10"], ["b"]]
    assert (part.name, part.attrs, part.dims) == ("t", {"units": "K"}, ("x", "s"))


def test_observed_cells_are_those_that_are_not_missing():
    gappy = grid([[1, np.nan], [3, 4], [np.nan, -np.inf]])
    assert gappy.observed.tolist() == [[True, False], [True, True], [False, True]]
    assert gappy.observed.dtype == bool
    assert not gappy.is_complete
    assert grid([[1, 2], [3, 4], [5, 6]]).is_complete
    assert Grid(np.empty((0, 2)), AXES).is_complete


def test_missing_cells_are_counted_and_the_first_is_located():
    grid([[1, 2], [3, 4], [5, 6]]).refuse_missing()
    message = r"2 of 6 cells of 't' are missing \(33.3 %\), the first at x=20, s=b\."
    with pytest.raises(InputError, match=message):
        grid([[1, 2], [3, np.nan], [np.nan, 6]]).refuse_missing()


def array(**sizes):
    values = np.arange(float(np.prod(list(sizes.values())))).reshape(list(sizes.values()))
    coords = {dim: np.arange(size) * 2.0 for dim, size in sizes.items()}
    return xr.DataArray(values, coords, list(sizes), "t", {"units": "K"})


def test_an_array_comes_back_from_xarray_as_it_was():
    given = array(x=3, y=2)
    made = from_data_array(given)
    back = to_data_array(made.values, made.axes, made.name, made.attrs)
    xr.testing.assert_identical(back, given)


def test_dimensions_without_coordinates_stay_without():
    made = from_data_array(xr.DataArray(np.ones((2, 3)), dims=("a", "b")))
    assert [axis.has_coordinate for axis in made.axes] == [False, False]
    assert made.name == "values"
    assert not to_data_array(made.values, made.axes, "v", {}).coords


def test_dimensions_of_one_coordinate_stay_and_a_scalar_time_becomes_one():
    given = array(z=1, x=3, time=1)
    assert from_data_array(given).dims == ("z", "x", "time")
    scalar = given.isel(time=0, z=0)
    assert from_data_array(scalar).dims == ("time", "x")
    assert from_data_array(scalar, keep="z").dims == ("z", "x")
    assert from_data_array(scalar, keep="absent").dims == ("x",)
    np.testing.assert_array_equal(from_data_array(scalar).values[0], scalar.values)


def test_time_itself_comes_before_a_time_of_reference():
    days = {"units": "days since 2000-01-01"}
    scalar = array(x=3).assign_coords(
        start=((), 0.0, {**days, "standard_name": "forecast_reference_time"}),
        time=((), 5.0, days),
        step=np.timedelta64(3, "h"),
        height=2.0,
    )
    assert from_data_array(scalar).dims == ("time", "x")
    assert from_data_array(scalar.drop_vars("time")).dims == ("start", "x")
    dated = scalar.expand_dims("start").drop_vars("time")
    assert from_data_array(dated).dims == ("start", "x")


def test_one_cell_is_no_grid_but_may_be_a_slice():
    one = array(x=1, time=1)
    with pytest.raises(InputError, match="no dimension of more than one coordinate"):
        from_data_array(one)
    assert from_data_array(one, keep="time").dims == ("x", "time")


def test_columns_that_repeat_a_longitude_are_dropped():
    lon = np.arange(-45.0, 405, 45)  # a halo of one column on either side
    axes = (axis_of("lon", lon, {"units": "degrees_east"}), axis_of("y", [1.0, 2.0]))
    values = np.arange(2.0 * lon.size).reshape(lon.size, 2)
    fewer, notes = drop_repeats(Grid(values, axes, "t"))
    note = "lon 315.0, 360.0 repeat earlier ones and are dropped, though values differ by up to 16"
    assert notes == [note]
    np.testing.assert_array_equal(fewer.axes[0].plain, lon[:8])
    np.testing.assert_array_equal(fewer.values, values[:8])
    assert fewer.name == "t"
    assert drop_repeats(fewer) == (fewer, [])


def test_values_beside_a_dropped_longitude_keep_their_places():
    lon = np.array([0.0, 90.0, 360.0, 180.0, 270.0])
    grid = Grid(np.arange(5.0), (axis_of("lon", lon, {"units": "degrees_east"}),))
    fewer, notes = drop_repeats(grid)
    assert notes[0].startswith("lon 360.0 repeats an earlier one and is dropped, though values")
    assert fewer.values.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (280.1, ""),
        (np.float32(280.1), ""),
        (280.2, ", though values differ by up to 0.1"),
        (np.nan, ""),
    ],
)
def test_repeated_longitudes_that_differ_are_told(last, told):
    lon = axis_of("lon", np.arange(0.0, 361, 90), {"units": "degrees_east"})
    fewer, notes = drop_repeats(Grid(np.array([280.1, 281.0, 282.0, 283.0, last]), (lon,)))
    assert notes == [f"lon 360.0 repeats an earlier one and is dropped{told}"]
    assert fewer.values.tolist() == [280.1, 281, 282, 283]


def test_a_cell_that_is_missing_in_the_first_of_repeated_longitudes_is_that_of_a_later_one():
    lon = axis_of("lon", np.arange(0.0, 361, 90), {"units": "degrees_east"})
    values = np.arange(10.0).reshape(2, 5)
    values[1, 0] = np.nan
    errors = np.where(np.isnan(values), 0.0, 0.1 + values)
    given = Grid(values, (axis_of("y", [0.0, 1.0]), lon), errors=errors)
    fewer, _ = drop_repeats(given)
    np.testing.assert_array_equal(fewer.values, [[0, 1, 2, 3], [9, 6, 7, 8]])
    np.testing.assert_array_equal(fewer.errors, 0.1 + fewer.values)
    assert np.isnan(given.values[1, 0])


@pytest.mark.parametrize(
    ("lon", "kept"),
    [
        (np.append(np.arange(0.0, 360, 45), 360.0 + 4e-10), 8),
        (np.append(np.arange(0.0, 360, 45), 360.0 + 2e-9), 9),
        (np.append(np.arange(0.1, 360, 45), 360.1).astype("float32"), 8),
        (np.array([0.0, 90.0, 90.0, 360.0]), 4),
    ],
)
def test_longitudes_repeat_to_the_decimals_of_their_type(lon, kept):
    assert axis_of("lon", lon, {"units": "degrees_east"}).distinct.size == kept


def test_what_is_no_grid_is_refused():
    with pytest.raises(InputError, match="got a Dataset"):
        from_data_array(array(x=3).to_dataset())
    with pytest.raises(InputError, match="'t' has no dimension of more than one"):
        from_data_array(array(x=1))


def test_labelled_data_is_known_without_importing_xarray():
    assert is_labelled(array(x=2))
    assert not is_labelled(np.ones(2))
    assert not is_labelled(None)


def test_a_standard_error_is_named_after_its_variable():
    assert std_variable("t", {}) == ("t_std", {"long_name": "standard error of t"})
    attrs = {"long_name": "warmth", "standard_name": "air_temperature", "units": "K", "x": 1}
    assert std_variable("t", attrs)[1] == {
        "long_name": "standard error of warmth",
        "standard_name": "air_temperature standard_error",
        "units": "K",
    }


# --- data in memory becomes a grid ---

X = np.arange(4.0)


def test_a_grid_is_taken_as_it_is():
    grid = as_grid(np.eye(3))
    assert as_grid(grid) is grid


def test_an_array_gets_positions_or_the_coordinates_given():
    plain = as_grid([[1, 2], [3, 4]])
    assert plain.dims == ("dim_0", "dim_1")
    assert plain.values.dtype == np.float64
    assert not any(axis.has_coordinate for axis in plain.axes)
    in_order = as_grid(np.zeros((4, 2)), [X, ["a", "b"]])
    assert in_order.dims == ("dim_0", "dim_1")
    assert in_order.axes[1].labels == ("a", "b")
    named = as_grid(np.zeros((4, 2)), {"x": X, "site": ["a", "b"]})
    assert named.dims == ("x", "site")
    np.testing.assert_array_equal(named.axes[0].numbers, X)


def test_a_data_array_keeps_name_attributes_and_single_coordinates():
    array = xr.DataArray(
        np.arange(8).reshape(1, 4, 2),
        {"z": [5.0], "x": ("x", X, {"units": "m"})},
        ("z", "x", "y"),
        "t",
        {"units": "K"},
    )
    grid = as_grid(array)
    assert (grid.name, grid.dims, dict(grid.attrs)) == ("t", ("z", "x", "y"), {"units": "K"})
    assert grid.values.dtype == np.float64
    assert grid.axes[1].units == "m"
    assert [axis.name for axis in scalar_axes(array, ("z", "x", "w"))] == ["z"]
    assert scalar_axes(array, ("z",))[0].numbers.tolist() == [5.0]
    one = array.isel(x=2)
    assert [axis.numbers.tolist() for axis in scalar_axes(one, ("x", "z"))] == [[2.0], [5.0]]


def test_masked_cells_are_missing():
    grid = as_grid(np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]))
    assert np.isnan(grid.values).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("data", "coordinates", "error", "message"),
    [
        (np.zeros((4, 4)), {"x": X}, InputError, r"shape \(4, 4\) do not fit coordinates x 4"),
        (np.zeros((4, 3)), [X, X], InputError, "dim_0 4 x dim_1 4"),
        (xr.DataArray(X), {"x": X}, SettingError, "its own"),
        (as_grid(X), [X], SettingError, "its own"),
        (xr.Dataset({"a": ("x", X)}), None, InputError, "Dataset"),
        (xr.DataArray(3.0), None, InputError, "no dimension"),
        (np.array(["a", "b"]), None, InputError, "real numbers"),
        (xr.DataArray(np.array([1j, 2])), None, InputError, "real numbers"),
    ],
)
def test_data_that_makes_no_grid_is_refused(data, coordinates, error, message):
    with pytest.raises(error, match=message):
        as_grid(data, coordinates)


def test_values_are_not_copied():
    values = np.eye(3)
    assert as_grid(values).values is values
    assert isinstance(as_grid(values), Grid)


# Ensembles ----------------------------------------------------------------------------------------


def test_members_are_described_as_the_data_is():
    attrs = {"units": "K", "standard_name": "air_temperature", "cell_methods": "time: mean"}
    name, about = ensemble_variable("t", attrs)
    assert name == "t_ensemble"
    assert about == {
        "long_name": "t, ensemble members",
        "units": "K",
        "standard_name": "air_temperature",
    }
    assert ensemble_variable("t", {"long_name": "heat"})[1] == {
        "long_name": "heat, ensemble members"
    }


def test_members_are_counted_from_zero():
    axis = realization_axis(3)
    assert (axis.name, axis.values.dtype, axis.values.tolist()) == (
        "realization",
        np.int32,
        [0, 1, 2],
    )
    assert axis.attrs["standard_name"] == "realization"


def test_members_of_stations_come_first():
    values = np.arange(12.0).reshape(2, 3, 2)
    stations = station_array(values, AXES, [1], {}, "t_ensemble", {}, members=2)
    assert stations.dims == ("realization", "station", "s")
    assert stations.realization.values.tolist() == [0, 1]
    assert stations.realization.attrs["standard_name"] == "realization"
    assert stations.x.dims == ("station",)
    alone = station_array(values[0], AXES, [1], {}, "t", {})
    assert alone.dims == ("station", "s")


@pytest.mark.parametrize(
    ("scale", "refused"),
    [(1.0, False), (1e99, False), (2e100, True), (1e-99, False), (1e-101, True), (0.0, False)],
)
def test_values_whose_squares_are_no_numbers_are_refused(scale, refused):
    made = grid([[0.0, np.nan], [scale / 3, 0.0], [-scale, 0.0]])
    if refused:
        with pytest.raises(InputError, match=r"largest value of 't' is .* count in other units"):
            made.refuse_unsuitable()
    else:
        made.refuse_unsuitable()


def test_infinite_and_missing_values_have_messages_of_their_own():
    for value in (np.nan, np.inf, -np.inf):
        grid(np.full((3, 2), value)).refuse_unsuitable()


def test_coordinates_that_reach_too_far_are_refused():
    for width, refused in ((1e300, False), (1.1e300, True), (1.7e308, True)):
        made = Grid(np.ones(2), (axis_of("x", [-width / 2, width / 2]),))
        if refused:
            with pytest.raises(InputError, match="Coordinates of 'x' reach from"):
                made.refuse_unsuitable()
        else:
            made.refuse_unsuitable()
    Grid(np.ones(2), (axis_of("x", [0.0, np.inf]),)).refuse_unsuitable()  # has its own message
    Grid(np.ones(2), (axis_of("x", [0.0, 5e-324]),)).refuse_unsuitable()


@pytest.mark.parametrize(("scale", "told"), [(1.0, False), (1e-30, False), (1e-40, True)])
def test_digits_that_float32_loses_are_told(scale, told):
    rng = np.random.default_rng(2)
    made = Grid(rng.random((3, 2)) * scale, AXES)
    made.values[0, 0] = np.nan
    assert ("lose digits in float32" in made.single_note) == told


@pytest.mark.parametrize("labelled", [False, True])
def test_single_precision_is_kept_where_that_is_asked_for(labelled: bool) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    data = xr.DataArray(values, dims=["x", "y"]) if labelled else values
    assert as_grid(data).values.dtype == np.float64
    assert np.shares_memory(as_grid(data, keep_single=True).values, values)
    assert as_grid(data.astype("int16"), keep_single=True).values.dtype == np.float64


def test_a_frozen_grid_cannot_be_changed_by_the_way_of_its_owner() -> None:
    owner = np.zeros((4, 3))
    grid = as_grid(owner.reshape(3, 4))
    assert grid.freeze() is grid
    assert is_frozen(grid.values)
    assert not owner.flags.writeable


@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
def test_tables_of_pandas_would_lose_their_labels_and_are_refused(kind):
    import pandas as pd

    with pytest.raises(InputError, match=f"a {kind} of pandas, .*DataArray"):
        as_grid(getattr(pd, kind)(np.arange(4.0), index=[1.0, 2.5, 3.0, 7.0]))


def test_dates_that_a_file_stores_in_single_precision_are_the_numbers_that_it_has():
    scale = TimeScale("days since 1850-01-01")
    hours = np.datetime64("2000-01-01", "ns") + np.arange(5) * np.timedelta64(1, "h")
    stored = scale.numbers(hours).astype(np.float32).astype(np.float64)
    time = xr.DataArray(scale.dates(stored), dims="time")
    time.encoding = {"dtype": np.dtype("float32"), "units": scale.units, "calendar": "standard"}
    data = xr.DataArray(np.arange(5.0), {"time": time}, ("time",), "t")
    for axis in (coordinate_axes(data)[0], from_data_array(data).axes[0]):
        np.testing.assert_array_equal(axis.numbers, stored)
        np.testing.assert_array_equal(axis.encode(hours), stored)
        np.testing.assert_array_equal(axis.values, time.values)
    time.encoding["units"] = "fortnights since 1850-01-01"
    odd = xr.DataArray(np.arange(5.0), {"time": time}, ("time",), "t")
    assert from_data_array(odd).axes[0].units == "days since 1970-01-01"
