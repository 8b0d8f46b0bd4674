"""Coordinates are numbers, dates or labels, or the line of what is wrong with them is said."""

import numpy as np
import pytest
from sample_files import coordinates

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.coordinates import is_coordinate, mixed_label_notes, read_axis
from dkrls_cli.files.text.csv.splitting import TextColumn
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale

DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("20,-10,0.5", [-10, 0.5, 20]),
        ("2020-01-02,2020-01-01,2020-01-03", [18262, 18263, 18264]),
        ("c,a,b", ["c", "a", "b"]),
    ],
)
def test_a_header_holds_numbers_dates_or_texts(read, header, expected):
    grid, _ = read(f",{header}\n7,1,2,3\n5,4,5,6\n")
    assert grid.dims == ("row", "column")
    assert coordinates(grid.axes[1]) == expected
    sorted_columns = (
        [1, 2, 0] if expected[0] == -10 else [1, 0, 2] if expected[0] != "c" else slice(3)
    )
    np.testing.assert_array_equal(grid.values, np.array([[4, 5, 6], [1, 2, 3]])[:, sorted_columns])


def test_numbers_are_sorted_and_whole_ones_stay_whole(read):
    grid, _ = read("x,y,v\n10,1.0,1\n9,2.5,2\n10,2.5,3\n9,1,4\n")
    assert [axis.dtype for axis in grid.axes] == ["int64", "float64"]
    assert [coordinates(axis) for axis in grid.axes] == [[9, 10], [1, 2.5]]
    assert grid.values.tolist() == [[4, 2], [1, 3]]


def test_dates_are_sorted_days(read):
    grid, _ = read("t,v\n1970-01-03,3\n1970-01-01T12:00,1\n1970-02,4\n1970-01-02 00:00Z,2\n")
    assert grid.axes[0].time == DAYS
    assert coordinates(grid.axes[0]) == [0.5, 1, 2, 31]
    assert grid.values.tolist() == [1, 2, 3, 4]


def test_years_are_numbers(read):
    axis = read("t,v\n1950,1\n1951,2\n")[0].axes[0]
    assert (axis.time, axis.dtype, coordinates(axis)) == (None, "int64", [1950, 1951])


def test_texts_stay_in_order_of_appearance(read):
    grid, notes = read("s,v\nz,1\n a ,2\nm,3\n")
    assert coordinates(grid.axes[0]) == ["z", "a", "m"]
    assert len(notes) == 1


@pytest.mark.parametrize("labels", [["1_2", "1_3"], ["NA", "-"], ["2020-13", "2020-45"]])
def test_what_only_looks_like_numbers_or_dates_is_text(read, labels):
    grid, _ = read(f"s,v\n{labels[0]},1\n{labels[1]},2\n")
    assert coordinates(grid.axes[0]) == labels


def test_one_text_among_numbers_is_said(read):
    _, notes = read("s,v\n1,1\n2,2\nx,3\n")
    assert notes[1:] == ["The coordinates of 's' are taken as texts, because of 'x'."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y,v\n1,a,1\n,b,2\n", "Line 3 of .* has '' for a coordinate of 'x'"),
        ("x,y,v\n1,a,1\n2,,2\n", "Line 3 of .* has '' for a coordinate of 'y'"),
        ("x,v\n1,1\nNA,2\n", "Line 3 of .* has 'NA' for a coordinate of 'x'"),
        ("t,v\n2020-01-01,1\n-,2\n", "Line 3 of .* has '-' for a coordinate of 't'"),
        ("t,v\n2021-02-28,1\n2021-02-30,2\n", "Line 3 of .*, column 't': '2021-02-30'"),
    ],
)
def test_coordinates_that_are_wrong_are_said_with_their_lines(read, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


# Dates in other forms


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["31/01/2020", "01/02/2020"], "day/month/year: '31/01/2020' is 2020-01-31"),
        (["01/31/2020", "02/01/2020"], "month/day/year: '01/31/2020' is 2020-01-31"),
        (["2020/01/31", "2020/02/01"], "year/month/day: '2020/01/31' is 2020-01-31"),
        (["31 Jan 2020", "1 Feb 2020"], "name of the month: '31 Jan 2020' is 2020-01-31"),
    ],
)
def test_dates_of_one_reading_are_read_and_told(read, texts, form):
    grid, notes = read(f"t,v\n{texts[1]},2\n{texts[0]},1\n")
    assert coordinates(grid.axes[0]) == [18292, 18293]
    assert grid.values.tolist() == [1, 2]
    assert notes[1].startswith(f"Dates of 't' are read as {form.split(':')[0]}")
    across, notes = read(f"x,{texts[0]},{texts[1]}\n1,5,6\n2,7,8\n")
    assert coordinates(across.axes[1]) == [18292, 18293]
    assert notes[1] == f"Dates of 'column' are read as {form}."


@pytest.mark.parametrize("name", ["time", "date"])
def test_eight_digits_are_dates_in_a_column_of_dates_and_told(read, name):
    grid, notes = read(f"{name},v\n20200201,2\n20200131,1\n")
    assert coordinates(grid.axes[0]) == [18292, 18293]
    assert notes[1].startswith(f"Dates of '{name}' are read as yyyymmdd")
    assert coordinates(read("id,v\n20200201,2\n20200131,1\n")[0].axes[0]) == [20200131, 20200201]


@pytest.mark.parametrize(
    ("name", "form", "texts", "dates"),
    [
        ("time", "yyyymmddhh", ["2020013123", "2020020100"], ["2020-01-31T23:00"]),
        ("timestamp", "yyyymmddhhmm", ["202001312330", "202002010000"], ["2020-01-31T23:30"]),
        ("month", "yyyymm", ["201912", "202001"], ["2019-12-01"]),
    ],
)
def test_digits_of_hours_and_of_months_are_dates_and_told(read, name, form, texts, dates):
    grid, notes = read(f"{name},v\n{texts[0]},2\n{texts[1]},1\n")
    assert grid.axes[0].texts[:1] == dates
    assert notes[1].startswith(f"Dates of '{name}' are read as {form}: ")
    assert read(f"id,v\n{texts[0]},2\n{texts[1]},1\n")[0].axes[0].time is None


def test_six_digits_of_a_time_are_a_number(read):
    assert read("time,v\n201912,2\n202001,1\n")[0].axes[0].time is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "t,v\n01/01/2020,1\n01/02/2020,2\n",
            "Line 3 of .*, column 't': the date '01/02/2020' can",
        ),
        (
            "t,v\n1.2.2020,1\n2.2.2020,2\n",
            r"Line 2 of .*'1.2.2020' can be 2020-02-01 or 2020-01-02",
        ),
        ("t,v\n13/1/2020,1\n1/13/2020,2\n", "Line 3 of .*another order than '13/1/2020'"),
        ("t,v\n31/01/20,1\n30/01/20,2\n", "Line 2 of .*has a year of two digits"),
        ("x,01/02/2020,01/03/2020\n1,5,6\n", "The header of .*the date '01/02/2020' can be"),
        (
            "t,v\n30/02/2020,1\n31/01/2020,2\n",
            "Line 2 of .*, column 't': '2020-02-30' is not a date",
        ),
    ],
)
def test_dates_of_two_readings_are_refused(read, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    if "is not a date" not in message:
        assert "Write dates as ISO 8601, like 2020-01-31." in str(caught.value)


def test_dates_among_other_texts_are_texts_and_told(read):
    grid, notes = read("t,v\n31/01/2020,1\nlater,2\n")
    assert coordinates(grid.axes[0]) == ["31/01/2020", "later"]
    assert notes[1:] == ["The coordinates of 't' are taken as texts, because of 'later'."]


# Axes of columns


@pytest.mark.parametrize("text", ["1", "-1.5e3", "2020-01", "2020-01-31 12:00", "31/01/2020"])
def test_numbers_and_dates_are_coordinates(text):
    assert is_coordinate(text)


@pytest.mark.parametrize("text", ["Jan", "1_2", "2020-13", "", "s1"])
def test_other_texts_are_not_coordinates(text):
    assert not is_coordinate(text)


def test_an_axis_has_a_place_for_every_row():
    column = TextColumn("x", (["30", "10", "20"], np.array([0, 1, 2, 1])))
    axis, places, notes = read_axis(column, lambda *_: "Here")
    assert (axis.name, coordinates(axis), notes) == ("x", [10, 20, 30], [])
    assert places.tolist() == [2, 0, 1, 0]


def test_the_place_of_a_wrong_coordinate_is_asked_for():
    column = TextColumn("x", (["1", "NA"], np.array([0, 1])))
    with pytest.raises(InputError, match=r"^Place 1 of x has 'NA' for a coordinate of 'x'\."):
        read_axis(column, lambda column, label: f"Place {label} of {column.name}")


def test_labels_are_noted_if_some_of_them_are_coordinates():
    assert mixed_label_notes(text_axis("s", ["a", "b"])) == []
    assert mixed_label_notes(axis_of("s", [1.0, 2.0])) == []
    assert mixed_label_notes(text_axis("s", ["1", "b"])) == [
        "The coordinates of 's' are taken as texts, because of 'b'."
    ]
