"""Tables give the grid that they hold, or say in which line and why they hold none."""

import gzip
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sample_files import LABELS, NUMBERS, coordinates, rows_text

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.tables import place_cells, read_table
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale

NAN = np.nan
DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")
SENSORS = Path(__file__).parents[3] / "sample_data" / "sensors.csv"
LONG = "x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n"
WIDE = "year,JAN,FEB,MAR\n1950,1.5,2,3\n1951,4,5,6\n1952,7,8,9.5\n"


def test_a_long_table_has_a_column_per_dimension_and_one_of_values(read):
    grid, notes = read(LONG)
    assert (grid.name, grid.dims) == ("v", ("x", "y"))
    assert [coordinates(axis) for axis in grid.axes] == [[1, 2], ["a", "b"]]
    assert grid.values.tolist() == [[10, 20], [30, 40]]
    assert grid.values.dtype == np.float64
    assert notes == ["Read as a long table: 'v' by x, y."]


def test_rows_that_are_not_there_are_missing_cells(read):
    grid, _ = read("x,y,v\n1,a,10\n2,b,40\n1,b,20\n")
    np.testing.assert_array_equal(grid.values, [[10, 20], [NAN, 40]])


def test_a_mark_of_a_missing_latitude_is_no_place(read):
    with pytest.raises(InputError, match="'lat' has -999, which is no latitude"):
        read("lat,lon,v\n1,5,10\n1,6,20\n-999,5,30\n-999,6,40\n")


def test_two_columns_are_one_dimension(read):
    grid, _ = read("t,v\n3,30\n1,10\n2,20\n")
    assert grid.dims == ("t",)
    assert grid.values.tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    "text", ["", "NA", "n/a", "NaN", "nan", "null", "None", "-", ".", "inf", "-Inf", "  ", "1e999"]
)
def test_texts_for_missing_values(read, text):
    grid, _ = read(f"x,v\n1,10\n2,{text}\n")
    np.testing.assert_array_equal(grid.values, [10, NAN])
    wide, _ = read(f"year,a,b\n1950,1,{text}\n1951,3,4\n")
    np.testing.assert_array_equal(wide.values, [[1, NAN], [3, 4]])


@pytest.mark.parametrize("text", ["inf", "-Inf", "+INF", "Infinity", "1e999"])
def test_infinite_values_are_missing_and_told(read, text):
    grid, notes = read(f"x,v\n1,10\n2,{text}\n3,{text}\n4,\n")
    np.testing.assert_array_equal(grid.values, [10, NAN, NAN, NAN])
    assert notes[1:] == ["Values taken as missing: 2 infinite."]
    wide, notes = read(f"year,a,b\n1950,1,{text}\n1951,{text},4\n1952,3,{text}\n")
    assert np.isnan(wide.values).sum() == 3
    assert notes[1:] == ["Values taken as missing: 3 infinite."]
    assert len(read("x,v\n1,10\n2,NA\n")[1]) == 1
    with pytest.raises(InputError, match=r"for a coordinate of 'x'"):
        read("x,v\n1,10\ninf,5\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,v\n1,2\n2,three\n", "Line 3 of .* has 'three' for a value.* another column"),
        ("x,v\n1,NA\n2,three\n", "Line 3 of .* has 'three' for a value"),
        ("x,v\n1,2\n\n2,1_0\n", "Line 4 of .* has '1_0' for a value"),
        ('x,v\n1,2\n2,"3,5"\n', "Line 3 of .* has '3,5' for a value.*decimal point"),
        ("x,y,v\n1,a,1\n1,b,2\n1,a,3\n", r"two values for x=1, y=a, on lines 2 and 4"),
        ("x,v\n2,1\n1,5\n2,3\n1,4\n", r"two values for x=2, on lines 2 and 4"),
        ("x,1,2\n5,1,1\n6,2,2\n5,3,3\n", r"two values for x=5, column=1, on lines 2 and 4"),
        ("x,1,1.0\n5,1,1\n", r"two values for x=5, column=1, on lines 2 and 2"),
        ("x,1,2\n5,1,oops\n", "Line 2 of .* has 'oops' for a value"),
    ],
)
def test_values_that_do_not_fit_a_grid_are_said_with_their_lines(read, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(read, tmp_path):
    with pytest.raises(InputError, match=r"no file '.*nothing.csv'"):
        read_table(str(tmp_path / "nothing.csv"))
    with pytest.raises(InputError, match="cannot be read"):
        read_table(str(tmp_path))
    with pytest.raises(InputError, match=r"not UTF-8 text .byte 0xe9"):
        read("x,v\né,1\n".encode("latin-1"))
    whole = gzip.compress(LONG.encode() * 50)
    for broken in (whole[:-9], whole[:30] + b"????" + whole[34:], whole[:2] + b"?" + whole[3:]):
        with pytest.raises(InputError, match="is damaged"):
            read(broken)


def test_standard_input_stays_open(monkeypatch):
    with open(SENSORS, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        read_table("-")
        assert not stdin.buffer.closed


def test_a_large_regular_table_is_split_by_pandas(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(LONG)
    monkeypatch.setattr("dkrls_cli.files.text.tables.LARGE", len(LONG))
    with mock.patch("pandas.read_csv", side_effect=ValueError) as split:
        assert read_table(str(path))[0].values.tolist() == [[10, 20], [30, 40]]
        assert split.call_count == 1
        monkeypatch.setattr("dkrls_cli.files.text.tables.LARGE", len(LONG) + 1)
        read_table(str(path))
        assert split.call_count == 1
    with mock.patch("dkrls_cli.files.text.tables.split_by_row") as by_row:
        monkeypatch.setattr("dkrls_cli.files.text.tables.LARGE", 0)
        assert read_table(str(path))[0].values.tolist() == [[10, 20], [30, 40]]
    by_row.assert_not_called()


def test_a_small_table_does_not_import_pandas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(LONG)
    code = (
        f"import sys; from dkrls_cli.files.text.tables import read_table; read_table({str(path)!r})"
    )
    code += "; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Round trips

DATES = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(
    lambda date: date.replace(microsecond=0)
)


@st.composite
def axes(draw, name):
    """An axis as tables give it: numbers and dates sorted, distinct."""
    kind = draw(st.sampled_from(["int", "float", "date", "text"]))
    size = {"min_size": 1, "max_size": 5, "unique": True}
    if kind == "text":
        return text_axis(name, draw(st.lists(LABELS, **size)))
    if kind == "int":
        return axis_of(name, np.array(sorted(draw(st.lists(st.integers(-9999, 9999), **size)))))
    if kind == "float":
        return axis_of(name, np.unique(draw(st.lists(NUMBERS, **size))))
    dates = np.array(draw(st.lists(DATES, **size)), "datetime64[us]")
    return Axis(name=name, numbers=np.unique(DAYS.numbers(dates)), time=DAYS)


def texts_of(axis):
    if axis.labels is not None:
        return list(axis.labels)
    return DAYS.texts(axis.numbers) if axis.time else [repr(n) for n in axis.numbers.tolist()]


@given(
    names=st.lists(LABELS, min_size=2, max_size=4, unique=True),
    dtype=st.sampled_from([np.float64, np.float32]),
    large=st.sampled_from([0, 10**9]),
    data=st.data(),
)
def test_cells_are_read_back_as_they_were(tmp_path_factory, names, dtype, large, data):
    *dims, name = names
    grid_axes = [data.draw(axes(dim)) for dim in dims]
    shape = tuple(axis.size for axis in grid_axes)
    width = np.dtype(dtype).itemsize * 8
    values = data.draw(
        hnp.arrays(dtype, shape, elements=st.floats(width=width, allow_infinity=False))
    )
    path = tmp_path_factory.mktemp("trip") / "grid.csv"
    text = rows_text(dims, [texts_of(axis) for axis in grid_axes], {name: values})
    path.write_text(text, "utf-8", newline="")
    with mock.patch("dkrls_cli.files.text.tables.LARGE", large):
        grid, _ = read_table(str(path), dims=dims)
    assert (grid.name, grid.dims) == (name, tuple(dims))
    np.testing.assert_array_equal(grid.values.astype(dtype), values)
    for back, axis in zip(grid.axes, grid_axes, strict=True):
        assert (back.labels, back.time) == (axis.labels, axis.time)
        np.testing.assert_array_equal(back.numbers, axis.numbers)


# Cells and where they stand


def test_every_value_of_a_table_is_placed_in_the_grid(tmp_path):
    for text, values in ((LONG, [2]), (WIDE, [1, 2, 3])):
        placed = place_cells(text.encode(), "t.csv")
        rows = [line.split(",") for line in text.splitlines()[1:]]
        found = [[float(row[column]) for column in placed.values] for row in rows]
        assert placed.values == values
        np.testing.assert_array_equal(placed.grid.values.ravel()[placed.cells], found)
    assert place_cells(WIDE.encode(), "t.csv").is_wide
    placed = place_cells(b"v,t,s\n1,2020-01-02,b\n2,2020-01,a\n", "t.csv", "v")
    assert not placed.is_wide
    assert placed.texts == {1: ["2020-01", "2020-01-02"], 2: ["b", "a"]}
