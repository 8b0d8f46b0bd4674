from datetime import datetime

import cftime
import numpy as np
import pytest

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of, index_axis, text_axis

KINDS = {
    "float64": np.array([0.25, 3.5, -1.0]),
    "float32": np.array([0.1, 0.2, 0.3], np.float32),
    "int16": np.array([10, 5, 1], np.int16),
    "datetime64": np.array(["2001-02-03", "2001-02-04T06", "2001-02-09"], "datetime64[ns]"),
    "cftime": np.array([cftime.datetime(2000, 2, d, calendar="360_day") for d in (1, 29, 30)]),
    "text": np.array(["north", "south", "a b"]),
    "bytes": np.array([b"north ", b"south", b"x"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_come_back_in_their_own_terms(kind):
    values = KINDS[kind]
    axis = axis_of("d", values)
    decoded = axis.values
    if kind == "bytes":
        assert decoded.tolist() == ["north", "south", "x"]
    else:
        np.testing.assert_array_equal(decoded, values)
        assert decoded.dtype.kind == values.dtype.kind


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_read_back_as_the_same_coordinates(kind):
    axis = axis_of("d", KINDS[kind])
    np.testing.assert_array_equal(axis.encode(axis.texts), axis.numbers)


def test_a_decimal_finds_the_float32_coordinate_it_means():
    axis = axis_of("lat", KINDS["float32"])
    assert axis.encode(0.1) == axis.numbers[0]
    assert axis.encode(0.15) == 0.15


def test_new_coordinates_keep_the_stored_type_only_where_it_holds_them():
    axis = axis_of("level", KINDS["int16"])
    assert axis.at([7.0]).values.dtype == np.int16
    assert axis.at([7.5]).values.dtype == np.float64


def test_python_dates_are_dates():
    axis = axis_of("time", [datetime(2020, 1, 1), datetime(2020, 1, 2)])
    assert axis.encode("2020-01-01T12:00") == axis.numbers.mean()


def test_unknown_labels_are_named_with_those_there_are():
    axis = text_axis("station", ["a", "b", "c", "d", "e"])
    with pytest.raises(SettingError, match=r"no 'z'.*a, b, c, d, \.\.\. \(5 of them\)"):
        axis.encode(["a", "z"])


def test_what_is_no_number_is_refused_by_name():
    with pytest.raises(SettingError, match="'north' is not a number"):
        axis_of("lat", [1.0, 2.0]).encode("north")


@pytest.mark.parametrize(
    "values", [np.zeros((2, 2)), np.array([1j, 2j]), np.array([{}, []], object)]
)
def test_coordinates_that_are_none_are_refused(values):
    with pytest.raises(InputError, match="'d'"):
        axis_of("d", values)


def test_a_dimension_without_coordinates_counts_from_zero():
    axis = index_axis("x", 3)
    assert axis.numbers.tolist() == [0, 1, 2]
    assert not axis.has_coordinate


LON = {"units": "degrees_east"}


@pytest.mark.parametrize(
    ("plain", "numbers"),
    [
        ([350.0, 355.0, 0.0, 5.0], [-10.0, -5.0, 0.0, 5.0]),
        ([0.5, 325.5, 340.5, 355.5], [0.5, -34.5, -19.5, -4.5]),
        ([170.0, 175.0, 180.0, -175.0, -170.0], [170.0, 175.0, 180.0, 185.0, 190.0]),
        ([-60.0, -30.0, 0.0, 20.0], [-60.0, -30.0, 0.0, 20.0]),
        ([0.0, 90.0, 180.0, 270.0], [0.0, 90.0, 180.0, 270.0]),
    ],
)
def test_longitude_is_laid_out_without_a_jump(plain, numbers):
    axis = axis_of("x", plain, LON)
    spread = np.subtract.outer(axis.numbers, axis.numbers)
    np.testing.assert_array_equal(spread, np.subtract.outer(numbers, numbers))
    np.testing.assert_array_equal(axis.values, plain)


def test_longitude_is_asked_for_in_any_convention_and_written_as_asked():
    axis = axis_of("lon", [350.0, 355.0, 0.0, 5.0], LON)
    asked = axis.at([-7.5, 352.5, 2.0, 362.0])
    assert asked.numbers.tolist() == pytest.approx(
        [axis.numbers[0] + 2.5, axis.numbers[0] + 2.5, axis.numbers[2] + 2, axis.numbers[2] + 2]
    )
    assert asked.values.tolist() == [-7.5, 352.5, 2.0, 362.0]


@pytest.mark.parametrize("units", ["m", "degrees_north", "radians"])
def test_what_is_not_degrees_of_longitude_has_no_turn(units):
    assert axis_of("lon", [350.0, 0.0, 10.0], {"units": units}).turn is None


def test_decimals_find_float32_coordinates_that_were_added_up():
    axis = axis_of("lat", np.arange(0, 2, 0.1, dtype=np.float32))
    np.testing.assert_array_equal(axis.encode(np.round(axis.numbers, 1)), axis.numbers)
    assert axis.encode(0.1001) == 0.1001
