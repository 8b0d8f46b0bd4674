"""Tables give the grid that they hold, or say in which line and why they hold none."""

import gzip
import io
import json
import os
import string
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.points import PointBlock, point_blocks
from dkrls_cli.files.rows import RowWriter
from dkrls_cli.files.tables import read_table
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale

NAN = np.nan
DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")
SENSORS = Path(__file__).parents[2] / "sample_data" / "sensors.csv"
EL_NINO = Path(__file__).parents[3] / "shared" / "data" / "elnino.csv"
LONG = "x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n"
WIDE = "year,JAN,FEB,MAR\n1950,1.5,2,3\n1951,4,5,6\n1952,7,8,9.5\n"


@pytest.fixture
def read(tmp_path):
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


def written(dims, texts, answers, form="csv"):
    stream = io.StringIO()
    RowWriter(stream, form).write_cells(dims, texts, answers)
    return stream.getvalue()


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
        ("x,v\n1,2\n2,three\n", "Line 3 of .* has 'three' for a value.*--var"),
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
    with pytest.raises(InputError, match=f"a {len({r[0] for r in rows})} x x 40.*{trouble}.*--var"):
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
        ({"dims": ["x", "y", "v"]}, "Besides x, y, v, .* has no column.*--var"),
        ({"dims": ["x"]}, "Besides x, .* has y, v. Expected one column of values"),
        ({"dims": ["x", "y"], "var": "y"}, "one is twice"),
        ({"dims": ["x", "x"], "var": "v"}, "one is twice"),
        ({"dims": ["x"], "var": "v"}, "two values for x=1.*--levels"),
    ],
)
def test_names_that_do_not_fit_are_refused(read, options, message):
    with pytest.raises(InputError, match=message):
        read("x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n", **options)


def test_values_among_other_values_want_their_dimensions_named(read):
    rows = "".join(f"{i % 7},{i // 7},{i / 9},{i / 11}\n" for i in range(49))
    with pytest.raises(InputError, match=r"too few to be all dimensions of 's'.*--levels"):
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

LABELS = st.text(
    st.one_of(st.sampled_from(',";#\t\n äß漢'), st.sampled_from(string.ascii_letters)), min_size=1
).map(lambda text: f"L{text}".strip())
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
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
    data=st.data(),
)
def test_cells_are_read_back_as_they_were(tmp_path_factory, names, dtype, data):
    *dims, name = names
    grid_axes = [data.draw(axes(dim)) for dim in dims]
    shape = tuple(axis.size for axis in grid_axes)
    width = np.dtype(dtype).itemsize * 8
    values = data.draw(
        hnp.arrays(dtype, shape, elements=st.floats(width=width, allow_infinity=False))
    )
    path = tmp_path_factory.mktemp("trip") / "grid.csv"
    text = written(dims, [texts_of(axis) for axis in grid_axes], {name: values})
    path.write_text(text, "utf-8", newline="")
    grid, _ = read_table(str(path), dims=dims)
    assert (grid.name, grid.dims) == (name, tuple(dims))
    np.testing.assert_array_equal(grid.values.astype(dtype), values)
    for back, axis in zip(grid.axes, grid_axes, strict=True):
        assert (back.labels, back.time) == (axis.labels, axis.time)
        np.testing.assert_array_equal(back.numbers, axis.numbers)


CELLS = st.sampled_from(
    [*"abxé01.-#\"';\t", "", " ", "-1.5", "1e400", "NA", "2020-01-01", "0000-01"]
)
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6)


@given(ROWS, st.sampled_from(",;\t"), st.sampled_from([None, "a", "x"]))
def test_any_text_is_a_grid_or_refused(tmp_path_factory, rows, delimiter, var):
    path = tmp_path_factory.mktemp("any") / "grid.csv"
    path.write_text("\n".join(map(delimiter.join, rows)), "utf-8")
    try:
        grid, _ = read_table(str(path), var)
    except InputError:
        return
    assert grid.values.shape == tuple(axis.size for axis in grid.axes)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_is_written_as_short_as_it_reads_back(number):
    text = written([], [], {"v": np.array(number, np.float32)}).splitlines()[1]
    assert np.float32(text) == np.float32(number)
    assert len(text) <= len(repr(float(np.float32(number))))


@given(LABELS, NUMBERS)
def test_json_lines_are_read_back_as_they_were(label, number):
    (line,) = written([label], [[label]], {"v": np.array([number])}, "jsonl").splitlines()
    assert json.loads(line) == {label: label, "v": number}


def test_rows_come_in_the_order_of_the_grid():
    answers = {"v": np.arange(4.0).reshape(2, 2), "v_std": np.array([[0.1, NAN], [0.3, np.inf]])}
    assert written(["x", "y"], [["1", "2"], ["a", "b"]], answers) == (
        "x,y,v,v_std\n1,a,0.0,0.1\n1,b,1.0,\n2,a,2.0,0.3\n2,b,3.0,\n"
    )
    lines = written(["x", "y"], [["1", "2"], ["a", "b"]], answers, "jsonl").splitlines()
    assert lines[1] == '{"x": 1, "y": "b", "v": 1.0, "v_std": null}'
    assert [json.loads(line)["v_std"] for line in lines] == [0.1, None, 0.3, None]


def test_floats_are_as_short_as_their_type_allows():
    third = np.array([0.1, 1 / 3])
    assert written(["x"], ["ab"], {"v": third}) == "x,v\na,0.1\nb,0.3333333333333333\n"
    assert written(["x"], ["ab"], {"v": third.astype("f4")}) == "x,v\na,0.1\nb,0.33333334\n"
    large = np.array([2000001, 1e-7], np.float32)
    assert written(["x"], ["ab"], {"v": large}) == "x,v\na,2000001.0\nb,1e-07\n"
    assert written(["x"], ["ab"], {"n": np.array([1, 2])}) == "x,n\na,1\nb,2\n"


def test_a_header_is_written_once():
    stream = io.StringIO()
    writer = RowWriter(stream)
    for block in ("1", "2"):
        writer.write_cells(["x"], [[block]], {"v": np.array([0.5])})
    assert stream.getvalue() == "x,v\n1,0.5\n2,0.5\n"


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("1.50", "1.50"),
        ("-2", "-2"),
        ("1e5", "1e5"),
        (".5", "0.5"),
        ("+3", "3.0"),
        ("7.", "7.0"),
        ("007", '"007"'),
        ("1_0", '"1_0"'),
        ("2020-01-01", '"2020-01-01"'),
        ("é", '"é"'),
        ("", "null"),
        ("nan", "null"),
        ("inf", "null"),
    ],
)
def test_json_has_numbers_where_texts_are_numbers(text, token):
    assert written(["x"], [[text]], {"v": np.zeros(1)}, "jsonl") == f'{{"x": {token}, "v": 0.0}}\n'


@pytest.mark.parametrize("text", ["a,b", 'say "x"', "#1", " a", "a ", "a\nb", "a;b", "\xa0a"])
def test_cells_that_need_quotes_get_them(text):
    quoted = '"' + text.replace('"', '""') + '"'
    assert written([text], [[text]], {"v": np.zeros(1)}) == f"{quoted},v\n{quoted},0.0\n"
    assert written(["p"], [["a b é"]], {"v": np.zeros(1)}) == "p,v\na b é,0.0\n"


def test_unknown_formats_are_refused():
    with pytest.raises(SettingError, match=r"'xml'. Choose csv or jsonl"):
        RowWriter(io.StringIO(), "xml")


def test_answers_of_another_size_are_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        written(["x"], [["1", "2"]], {"v": np.zeros(3)})


# Points

POINT_AXES = [
    axis_of("x", [0.0, 1.0]),
    text_axis("s", ["p", "q"]),
    axis_of("t", [np.datetime64("1970-01-01")]),
]
POINTS = 'id,t,s,x\n#\n a,1970-01-02, q ,0.5\n"b,c",1970-01-01T12:00,p,1e1\nd,1970-01-02,q,-1\n'


@pytest.fixture
def blocks(tmp_path):
    def from_text(text, rows=65536):
        path = tmp_path / "points.csv"
        path.write_text(text)
        return list(point_blocks(str(path), POINT_AXES, rows))

    return from_text


def test_points_have_numbers_on_every_axis(blocks):
    (block,) = blocks(POINTS)
    assert block.header == ["id", "t", "s", "x"]
    assert [numbers.tolist() for numbers in block.coordinates] == [
        [0.5, 10, -1],
        [1, 0, 1],
        [1, 0.5, 1],
    ]


def test_points_come_in_blocks(blocks):
    assert [len(block.cells) for block in blocks(POINTS, rows=2)] == [2, 1]
    assert [len(block.cells) for block in blocks(POINTS, rows=3)] == [3]


def test_no_points_are_one_empty_block(blocks):
    (block,) = blocks("t,s,x\n")
    assert [numbers.size for numbers in block.coordinates] == [0, 0, 0]
    for form, expected in {"csv": "t,s,x,v\n", "jsonl": ""}.items():
        stream = io.StringIO()
        RowWriter(stream, form).write_points(block, {"v": np.empty(0)})
        assert stream.getvalue() == expected


def test_points_keep_their_cells_and_get_answers(blocks):
    csv_stream, json_stream = io.StringIO(), io.StringIO()
    csv_writer, json_writer = RowWriter(csv_stream), RowWriter(json_stream, "jsonl")
    for block in blocks(POINTS, rows=2):
        answers = {"v": block.coordinates[0], "v_std": np.full(len(block.cells), NAN)}
        csv_writer.write_points(block, answers)
        json_writer.write_points(block, answers)
    assert csv_stream.getvalue().splitlines() == [
        "id,t,s,x,v,v_std",
        'a,1970-01-02,"q ",0.5,0.5,',
        '"b,c",1970-01-01T12:00,p,1e1,10.0,',
        "d,1970-01-02,q,-1,-1.0,",
    ]
    assert [json.loads(line) for line in json_stream.getvalue().splitlines()][1] == {
        "id": "b,c",
        "t": "1970-01-01T12:00",
        "s": "p",
        "x": 10.0,
        "v": 10.0,
        "v_std": None,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,s\n", "no column 'x', a coordinate of every point. It has t, s"),
        ("", "is empty"),
        ("t,s,x\n1970-01-02,p,1\n\n1970-01-02,p,one\n", "Line 4 of .*'one' is not a number"),
        ("t,s,x\n1970-01-02,p,\n", "Line 2 of .*'' is not a number"),
        ("t,s,x\n1970-01-02,p,nan\n", "Line 2 of .*'nan' is not a finite number"),
        ("t,s,x\n1970-01-02,z,1\n", "Line 2 of .*no 'z'"),
        ("t,s,x\nsoon,p,1\n", "Line 2 of .*'soon' is not a date"),
        ("t,s,x\n1970-01-02,p\n", "Line 2 of .* has 2 cells, the header 3"),
    ],
)
def test_points_that_are_none_are_refused_by_line(blocks, text, message):
    with pytest.raises(InputError, match=message):
        blocks(text)


def test_a_wrong_point_is_found_after_the_blocks_before_it(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x\n1\n2\nthree\n")
    stream = point_blocks(str(path), POINT_AXES[:1], rows=2)
    assert next(stream).coordinates[0].tolist() == [1, 2]
    with pytest.raises(InputError, match="Line 4"):
        next(stream)


def test_answers_may_not_hide_a_column():
    block = PointBlock(["x", "sst"], [["1", "2"]], [np.ones(1)])
    with pytest.raises(InputError, match="column 'sst' already"):
        RowWriter(io.StringIO()).write_points(block, {"sst": np.ones(1)})


def test_points_of_a_pipe_are_answered_before_it_ends(monkeypatch):
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as stdin, open(writing, "wb", buffering=0) as sender:
        monkeypatch.setattr(sys, "stdin", stdin)
        stream = point_blocks("-", POINT_AXES[:1], rows=2)
        sender.write(b"x\n1\n2\n")
        assert next(stream).coordinates[0].tolist() == [1, 2]
        sender.write(b"3\n4\n")
        assert next(stream).coordinates[0].tolist() == [3, 4]
        sender.close()
        assert list(stream) == []
