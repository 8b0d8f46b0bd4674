"""Tables give the grid that they hold, or say in which line and why they hold none."""

import gzip
import io
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
from sample_files import LABELS, NUMBERS, rows_text

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.tables import place_cells, read_table
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale

NAN = np.nan
DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")
SENSORS = Path(__file__).parents[3] / "sample_data" / "sensors.csv"
EL_NINO = Path(__file__).parents[4] / "shared" / "data" / "elnino.csv"
LONG = "x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n"
WIDE = "year,JAN,FEB,MAR\n1950,1.5,2,3\n1951,4,5,6\n1952,7,8,9.5\n"


@pytest.fixture(params=[0, 10**9], ids=["at once", "by row"])
def large(request, monkeypatch):
    """Let pandas split every table, and none: nobody may see a difference."""
    monkeypatch.setattr("dkrls_cli.files.text.tables.LARGE", request.param)


@pytest.fixture
def read(tmp_path, large):
    """Read a text as if it were a file."""

    def from_text(text, *args, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(str(path), *args, **options)

    return from_text


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes on standard input."""

    def bytes_on_stdin(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return bytes_on_stdin


def coordinates(axis):
    return list(axis.labels) if axis.labels else axis.numbers.tolist()


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


def test_two_columns_are_one_dimension(read):
    grid, _ = read("t,v\n3,30\n1,10\n2,20\n")
    assert grid.dims == ("t",)
    assert grid.values.tolist() == [10, 20, 30]


def test_a_wide_table_has_one_dimension_in_its_header(read):
    grid, notes = read(WIDE, name="nino.csv")
    assert (grid.name, grid.dims) == ("nino", ("year", "column"))
    assert [coordinates(axis) for axis in grid.axes] == [[1950, 1951, 1952], ["JAN", "FEB", "MAR"]]
    assert grid.values.tolist() == [[1.5, 2, 3], [4, 5, 6], [7, 8, 9.5]]
    assert notes == ["Read as a wide table: rows 'year', header 'column'."]


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


def test_one_slice_with_its_date_for_a_header_is_wide(read):
    grid, _ = read("lat,2020-01-01\n10,1\n20,2\n")
    assert grid.dims == ("lat", "column")
    assert grid.values.shape == (2, 1)


def test_variables_of_wide_tables_are_named_after_the_file_or_as_asked(read, pipe):
    assert read(WIDE, name="a.b.csv")[0].name == "a.b"
    assert read(gzip.compress(WIDE.encode()), name="t.csv.gz")[0].name == "t"
    assert read(WIDE, "sst")[0].name == "sst"
    pipe(WIDE.encode())
    assert read_table("-")[0].name == "values"


def test_a_column_of_values_that_is_named_makes_a_table_long(read):
    grid, notes = read("v,x,y\n1,1,1\n2,1,2\n3,2,1\n4,2,2\n", "v")
    assert grid.dims == ("x", "y")
    assert grid.values.tolist() == [[1, 2], [3, 4]]
    assert notes == ["Read as a long table: 'v' by x, y."]


def test_dimensions_that_are_named_come_in_that_order(read):
    grid, _ = read(LONG, dims=["y", "x"])
    assert grid.dims == ("y", "x")
    assert grid.values.tolist() == [[10, 30], [20, 40]]


def test_the_header_of_a_wide_table_can_be_given_a_name(read):
    across, _ = read(WIDE, dims=["year", "month"])
    down, _ = read(WIDE, "sst", ["month", "year"])
    assert (across.dims, down.dims, down.name) == (("year", "month"), ("month", "year"), "sst")
    np.testing.assert_array_equal(across.values, down.values.T)


def test_columns_that_are_neither_are_left_out_and_said(read):
    text = "x,flag,v,w\n1,ok,10,5\n2,bad,20,6\n"
    grid, notes = read(text, "v", ["x"])
    assert grid.values.tolist() == [10, 20]
    assert notes[1] == "Columns left out: flag, w."


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("options", [{}, {"var": "v"}])
def test_row_numbers_of_other_programs_are_left_out(read, start, options):
    header, *rows = LONG.splitlines()
    numbered = "\n".join([f",{header}", *(f"{i + start},{row}" for i, row in enumerate(rows))])
    grid, notes = read(numbered, **options)
    assert grid.dims == ("x", "y")
    assert notes[1] == "Columns left out: row."


def test_row_numbers_leave_the_name_row_to_another_column(read):
    text = ",row,col,v\n0,5,1,10\n1,5,2,20\n2,6,1,30\n3,6,2,40\n"
    for grid, notes in (read(text), read(text, "v", ["row", "col"])):
        assert grid.values.tolist() == [[10, 20], [30, 40]]
        assert notes[1] == "Columns left out: row_number."


def test_a_small_wide_table_of_numbers_is_not_taken_for_a_long_one(read):
    rows = "\n".join(f"{t},{t * t / 7},{1 / (t + 1)}" for t in range(10))
    assert read(f"t,north,south\n{rows}\n")[0].values.shape == (10, 2)
    assert read(f",north,south\n{rows}\n")[0].values.shape == (10, 2)
    assert read("t,north,south\n0,1,2\n")[0].values.shape == (1, 2)


def test_a_long_table_with_one_cell_per_slice_is_not_taken_for_a_wide_one(read):
    rows = "\n".join(f"{t},{t % 3},{t / 7}" for t in range(10))
    assert read(f"t,sensor,v\n{rows}\n")[0].values.shape == (10, 3)


def test_a_long_table_may_be_as_empty_as_one_in_twenty(read):
    def diagonal(size):
        return "x,y,v\n" + "".join(f"a{i},b{i},{i}\n" for i in range(size))

    assert read(diagonal(20))[0].values.shape == (20, 20)
    with pytest.raises(InputError, match="21 rows for the cells of x 21 x y 21: too few"):
        read(diagonal(21))
    assert read(diagonal(21), dims=["x", "y"])[0].values.shape == (21, 21)
    with pytest.raises(InputError, match=r"scattered points. Expected a grid"):
        read(diagonal(101), dims=["x", "y"])


def test_sample_sensors_are_long():
    grid, _ = read_table(str(SENSORS))
    assert (grid.name, grid.dims, grid.values.shape) == (
        "temperature",
        ("time", "sensor"),
        (192, 12),
    )
    assert grid.axes[0].time == DAYS
    assert np.isnan(grid.values).sum() == 192 * 12 - 2233


def test_months_in_a_header_are_wide(read):
    grid, _ = read("YEAR,JAN,FEB\n1950,23.11,24.2\n1951,24.19,25.28\n", name="elnino.csv")
    assert (grid.name, grid.dims, grid.values.shape) == ("elnino", ("YEAR", "column"), (2, 2))
    assert grid.axes[0].dtype == "int64"
    assert grid.values[0, 0] == 23.11


@pytest.mark.skipif(not EL_NINO.exists(), reason="development data are not here")
def test_el_nino_is_wide():
    grid, _ = read_table(str(EL_NINO))
    assert (grid.name, grid.dims, grid.values.shape) == ("elnino", ("YEAR", "column"), (61, 12))
    assert grid.axes[0].dtype == "int64"
    assert coordinates(grid.axes[1])[:2] == ["JAN", "FEB"]
    assert grid.values[0, 0] == 23.11


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
    "text", ["", "NA", "n/a", "NaN", "nan", "null", "None", "-", ".", "inf", "-Inf", "  ", "1e999"]
)
def test_texts_for_missing_values(read, text):
    grid, _ = read(f"x,v\n1,10\n2,{text}\n")
    np.testing.assert_array_equal(grid.values, [10, NAN])
    wide, _ = read(f"year,a,b\n1950,1,{text}\n1951,3,4\n")
    np.testing.assert_array_equal(wide.values, [[1, NAN], [3, 4]])


@pytest.mark.parametrize(
    "data",
    [
        LONG.encode("utf-8-sig"),
        LONG.replace("\n", "\r\n").encode(),
        LONG.replace("\n", "\r").encode(),
        LONG.rstrip().encode(),
        LONG.replace(",", ";").encode(),
        LONG.replace(",", "\t").encode(),
        LONG.replace(",", " , ").encode(),
        LONG.replace("a", '"a"').replace("x", '"x"').encode(),
        ("\n# made by, a; b; c; d\n\n" + LONG.replace("\n", "\n#x,1\n \n\t\n")).encode(),
        gzip.compress(LONG.encode("utf-8-sig")),
    ],
    ids=["bom", "crlf", "cr", "end", "semicolon", "tab", "spaces", "quotes", "comments", "gzip"],
)
def test_text_comes_in_many_dresses(read, pipe, data):
    expected = read(LONG)[0]
    pipe(data)
    for grid, _ in (read(data), read_table("-")):
        assert (grid.name, grid.dims) == (expected.name, expected.dims)
        assert [coordinates(a) for a in grid.axes] == [coordinates(a) for a in expected.axes]
        np.testing.assert_array_equal(grid.values, expected.values)


def test_standard_input_stays_open(monkeypatch):
    with open(SENSORS, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        read_table("-")
        assert not stdin.buffer.closed


def test_quoted_cells_hold_delimiters_quotes_and_line_ends(read):
    grid, _ = read('"a;b;c\n;","v"\n"x,1",1\n"say ""hi""",2\n"two\n\n#lines",3\n#\nlast,4\n')
    assert grid.dims == ("a;b;c\n;",)
    assert coordinates(grid.axes[0]) == ["x,1", 'say "hi"', "two\n\n#lines", "last"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# nothing\n\n", "is empty"),
        ("x,y,v\n", "has a header and no rows"),
        ("x\n1\n", "has one column, 'x'"),
        ("1,2,3\n4,5,6\n", "begins with '1', which is no name"),
        ("2020-01-01,s1,5\n2020-01-02,s1,6\n", "begins with '2020-01-01', which is no name"),
        ("x,,v\n1,2,3\n", "Column 2 of .* has no name"),
        ("x,x,v\n1,2,3\n", "two columns 'x'"),
        ("# c\nx,y,v\n1,2,3\n\n1,2\n", "Line 5 of .* has 2 cells, the header 3"),
        ("x,v\n1,2,3\n", "Line 2 of .* has 3 cells, the header 2"),
        ('x,v\n1,2\n"2,3\n4,5\n', "Line 4 of .* cannot be read .* Is a quote left open"),
        ('x,v\n1,2\n"2"3,4\n', "Line 3 of .* cannot be read .* Is a quote left open"),
        ("x,v\n1,2\n2,three\n", "Line 3 of .* has 'three' for a value.* another column"),
        ("x,v\n1,NA\n2,three\n", "Line 3 of .* has 'three' for a value"),
        ("x,v\n1,2\n\n2,1_0\n", "Line 4 of .* has '1_0' for a value"),
        ('x,v\n1,2\n2,"3,5"\n', "Line 3 of .* has '3,5' for a value.*decimal point"),
        ("x;v\n1;2\n2;3,5\n", "'3,5' in it. Expected decimal points"),
        ("x\tv\n0,5\t2\n1,5\t3\n", "'0,5' in it. Expected decimal points"),
        ("x,y,v\n1,a,1\n1,b,2\n1,a,3\n", r"two values for x=1, y=a, on lines 2 and 4"),
        ("x,v\n2,1\n1,5\n2,3\n1,4\n", r"two values for x=2, on lines 2 and 4"),
        ("x,1,2\n5,1,1\n6,2,2\n5,3,3\n", r"two values for x=5, column=1, on lines 2 and 4"),
        ("x,1,1.0\n5,1,1\n", r"two values for x=5, column=1, on lines 2 and 2"),
        ("x,y,v\n1,a,1\n,b,2\n", "Line 3 of .* has '' for a coordinate of 'x'"),
        ("x,y,v\n1,a,1\n2,,2\n", "Line 3 of .* has '' for a coordinate of 'y'"),
        ("x,v\n1,1\nNA,2\n", "Line 3 of .* has 'NA' for a coordinate of 'x'"),
        ("t,v\n2020-01-01,1\n-,2\n", "Line 3 of .* has '-' for a coordinate of 't'"),
        ("t,v\n2021-02-28,1\n2021-02-30,2\n", "Line 3 of .*, column 't': '2021-02-30'"),
        ("x,1,2\n5,1,oops\n", "Line 2 of .* has 'oops' for a value"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(read, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("name", "column 'b' holds 'n21' on line 23"),
        ("again", "'0' stands in its first column more than once"),
    ],
)
def test_neither_long_nor_wide_is_said_with_what_to_do(read, text, trouble):
    rows = [[str(i), f"{i / 7}", f"{i / 3}"] for i in range(40)]
    if text == "name":
        rows[21][2] = "n21"
    else:
        rows[30][0] = "0"
    table = "a,x,b\n" + "\n".join(map(",".join, rows))
    with pytest.raises(
        InputError, match=f"{len({r[0] for r in rows})} different a, 40 .*{trouble}.*name the"
    ):
        read(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"var": "w"},
            "no column 'w', .* '1' stands in its first column more than once. It has x,",
        ),
        ({"dims": ["x", "z"]}, "no column 'z', and is no wide table.*It has x, y, v"),
        ({"dims": ["p", "q"]}, "no column 'p'"),
        ({"dims": ["x", "y"], "var": "w"}, "no column 'w'"),
        ({"dims": ["x", "new"], "var": "v"}, "no column 'new'"),
        ({"dims": ["x", "y", "v"]}, "Besides x, y, v, .* has no column.* by its name"),
        ({"dims": ["x"]}, "Besides x, .* has y, v. Expected one column of values"),
        ({"dims": ["x", "y"], "var": "y"}, "name one column twice"),
        ({"dims": ["x", "x"], "var": "v"}, "name one column twice"),
        ({"dims": ["x"], "var": "v"}, "two values for x=1.*all dimensions"),
    ],
)
def test_names_that_do_not_fit_are_refused(read, options, message):
    with pytest.raises(InputError, match=message):
        read("x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n", **options)


def test_values_among_other_values_want_their_dimensions_named(read):
    rows = "".join(f"{i % 7},{i // 7},{i / 9},{i / 11}\n" for i in range(49))
    with pytest.raises(
        InputError, match=r"too few for all of them to be dimensions of .s..*Name the dim"
    ):
        read(f"x,y,s,t\n{rows}", "s")
    assert read(f"x,y,s,t\n{rows}", "s", ["x", "y"])[0].values.shape == (7, 7)


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


CELLS = st.sampled_from(
    [*"abxé01.-#\"';\t", "", " ", "-1.5", "1e400", "NA", "2020-01-01", "0000-01", '"q"', "1 ", "+2"]
)
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6)


def outcome(path, var, large):
    """What is read: all of a grid and the notes, or the error."""
    with mock.patch("dkrls_cli.files.text.tables.LARGE", large):
        try:
            grid, notes = read_table(str(path), var)
        except InputError as error:
            return str(error)
    axes = [(a.name, a.texts, a.dtype, a.time) for a in grid.axes]
    assert grid.values.shape == tuple(axis.size for axis in grid.axes)
    return grid.name, axes, grid.values.dtype, np.nan_to_num(grid.values, nan=-77).tolist(), notes


@given(
    ROWS, st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", "x"])
)
def test_any_text_is_a_grid_or_refused_and_the_same_both_ways(
    tmp_path_factory, rows, delimiter, end, var
):
    path = tmp_path_factory.mktemp("any") / "grid.csv"
    path.write_text(end.join(map(delimiter.join, rows)), "utf-8", newline="")
    assert outcome(path, var or None, 0) == outcome(path, var or None, 10**9)


NUMERALS = st.text("0123456789+-.eE_ xXnNaAiIfFdD", min_size=1, max_size=7)


@given(st.lists(NUMERALS, min_size=1, max_size=4), st.sampled_from(["%s", '"%s"']))
def test_numbers_are_read_alike_both_ways(tmp_path_factory, numerals, quotes):
    path = tmp_path_factory.mktemp("numerals") / "grid.csv"
    lines = [f"{i},{quotes % text}" for i, text in enumerate([*numerals, "1.5", "2.5"])]
    path.write_text("\n".join(["x,v", *lines]), "utf-8")
    assert outcome(path, "v", 0) == outcome(path, "v", 10**9)


@given(st.lists(NUMBERS, min_size=2, max_size=9, unique=True))
def test_numbers_are_read_to_the_last_digit_both_ways(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("digits") / "grid.csv"
    path.write_text("\n".join(["x,v", *(f"{i},{n!r}" for i, n in enumerate(numbers))]), "utf-8")
    for large in (0, 10**9):
        with mock.patch("dkrls_cli.files.text.tables.LARGE", large):
            assert read_table(str(path), "v")[0].values.tolist() == numbers


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
    with mock.patch("dkrls_cli.files.text.tables._split_by_row") as by_row:
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


# Scattered points, wide tables and columns of different quantities


def table_of(header, *columns):
    return (
        header
        + "\n"
        + "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))
    )


def random_columns(count, rows):
    return np.random.default_rng(rows).random((count, rows)).round(6)


@pytest.mark.parametrize("rows", [2, 3, 10, 30, 200])
@pytest.mark.parametrize(
    ("header", "points"),
    [
        ("x,t,v", "in x and t with values v"),
        ("lat,lon,temp", "in lat and lon with values temp"),
        ("longitude,latitude,time,sst", "in longitude, latitude and time with values sst"),
        ("x,y,z,value", "in x, y and z with values value"),
    ],
)
def test_scattered_points_are_refused_with_what_they_look_like(read, rows, header, points):
    columns = random_columns(header.count(",") + 1, rows)
    with pytest.raises(InputError, match=f"looks like {rows} scattered points {points}") as caught:
        read(table_of(header, *columns))
    assert f"its rows have {rows} different {header.split(',')[0]}, {rows} different" in str(
        caught.value
    )
    assert "Put the points on a grid first, or name the column of values" in str(caught.value)
    assert caught.value.setting == "var levels"


def test_scattered_points_with_their_values_named_are_refused(read):
    text = table_of("x,t,v", *random_columns(3, 10))
    with pytest.raises(
        InputError, match=r"looks like 10 scattered points in x and t with values v"
    ):
        read(text, "v")
    assert read(text, "v", ["x", "t"])[0].values.shape == (10, 10)


def test_a_few_coordinates_in_common_do_not_make_a_grid(read):
    x, t, v = random_columns(3, 12)
    x[5] = x[2]
    with pytest.raises(
        InputError, match=r"looks like 12 scattered points in x and t.* 11 different x"
    ):
        read(table_of("x,t,v", x, t, v))


def test_a_track_in_order_of_time_is_scattered(read):
    lat, lon, sst = random_columns(3, 40)
    with pytest.raises(
        InputError, match=r"40 scattered points in time, lat and lon with values sst"
    ):
        read(table_of("time,lat,lon,sst", range(40), lat, lon, sst))


def test_points_under_names_that_say_nothing_are_scattered_if_in_no_order(read):
    with pytest.raises(InputError, match=r"scattered points.* its first column is in no order"):
        read(table_of("a,b,c", *random_columns(3, 30)))


@pytest.mark.parametrize("rows", [2, 3, 30])
@pytest.mark.parametrize(
    "header",
    ["t,north,south", "year,Jan,Feb,Mar", "time,s1,s2", "date,London,Paris,Rome", "depth,a_1,a_2"],
)
def test_wide_tables_are_still_read(read, rows, header):
    width = header.count(",")
    grid, notes = read(table_of(header, range(rows), *random_columns(width, rows)))
    assert grid.values.shape == (rows, width)
    assert coordinates(grid.axes[1]) == header.split(",")[1:]
    assert notes[0].startswith("Read as a wide table")


def test_a_wide_table_in_no_order_is_read_if_its_header_is_a_series(read):
    ids = np.random.default_rng(0).permutation(50)
    assert read(table_of("id,Jan,Feb", ids, *random_columns(2, 50)))[0].values.shape == (50, 2)


def test_one_month_is_a_column_of_values(read):
    grid, _ = read("year,Jan\n1950,1\n1951,2\n")
    assert (grid.name, grid.dims) == ("Jan", ("year",))


def test_a_wide_table_of_few_different_values_is_not_taken_for_a_long_one(read):
    rain = [i % 4 for i in range(40)]
    for header in ("station,Jan,Feb", "time,s1,s2"):
        assert read(table_of(header, range(40), rain, rain))[0].values.shape == (40, 2)


@pytest.mark.parametrize("rows", [2, 3, 30])
def test_columns_of_different_quantities_are_refused(read, rows):
    one, other = random_columns(2, rows)
    for header in ("time,temp,pressure", "time,p,q"):
        with pytest.raises(
            InputError, match=r"columns of different quantities by 'time'.* Choose one column"
        ) as caught:
            read(table_of(header, range(rows), 10 * one, 990 + 40 * other))
        assert caught.value.setting == "var levels"
    text = table_of("time,temp,pressure", range(rows), 10 * one, 990 + 40 * other)
    assert read(text, "temp", ["time"])[0].values.shape == (rows,)


def test_what_cannot_be_told_is_read_as_its_dimensions_say(read):
    text = table_of("t,x,y,z", range(20), *random_columns(3, 20))
    with pytest.raises(InputError, match=r"scattered points in t, x and y with values z"):
        read(text)
    grid, _ = read(text, dims=["t", "component"])
    assert coordinates(grid.axes[1]) == ["x", "y", "z"]


def test_a_name_for_wide_values_that_is_like_a_column_is_refused(read):
    text = table_of("x,t,temp", *random_columns(3, 30))
    with pytest.raises(
        InputError, match=r"no column 'tmp', and does not look like a wide table.*Did"
    ):
        read(text, "tmp")


def test_row_numbers_before_points_on_one_dimension(read):
    grid, notes = read(table_of(",t,v", range(9), *random_columns(2, 9)))
    assert grid.dims == ("t",)
    assert notes[1] == "Columns left out: row."


def test_a_dimension_may_be_named_by_its_role(read):
    text = "latitude,longitude,v\n1,1,1\n1,2,2\n2,1,3\n2,2,4\n"
    assert read(text, dims=["lon", "lat"])[0].dims == ("longitude", "latitude")
    both = "lat,latitude,v\n1,1,1\n1,2,2\n2,1,3\n2,2,4\n"
    assert read(both, dims=["latitude", "lat"])[0].dims == ("latitude", "lat")


# Dates in other forms, and infinities


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
