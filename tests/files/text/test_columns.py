"""Tables are split into the same columns by row and at once, or it is said why they are none."""

import gzip
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_files import NUMBERS, coordinates

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.columns import column_values, find_odd_label, split_at_once, split_by_row
from dkrls_cli.files.text.tables import read_table

LONG = "x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n"


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
        ("x;v\n1;2\n2;3,5\n", "'3,5' in it. Expected decimal points"),
        ("x\tv\n0,5\t2\n1,5\t3\n", "'0,5' in it. Expected decimal points"),
    ],
)
def test_what_is_no_table_is_said_with_its_place(read, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


# Splitting by row and at once

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


def test_both_ways_give_the_same_columns_and_only_rows_know_their_lines():
    raw = ("# c\n" + LONG).encode()
    by_row, at_once = split_by_row(raw, "t.csv"), split_at_once(raw, "t.csv")
    assert at_once.names == by_row.names == ["x", "y", "v"]
    assert at_once.rows == by_row.rows == 4
    for one, other in zip(by_row.columns, at_once.columns, strict=True):
        assert one.labels == other.labels
        assert one.codes.tolist() == other.codes.tolist()
    assert [by_row.line(row) for row in range(4)] == [3, 4, 5, 6]
    assert at_once.line(3) == 0


@pytest.mark.parametrize(
    "text", ["", "x\n1\n", "x,v\n1,2\n1\n", "x,v\n#c\n1,2\n", 'x,v\n"1,2",3\n', "x;v\n1;2,5\n"]
)
def test_what_is_odd_is_left_to_splitting_by_row(text):
    assert split_at_once(text.encode(), "t.csv") is None


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    table = split_by_row(b"lat,temp\n1,2\n", "t.csv")
    assert table.column("temp").labels == ["2"]
    with pytest.raises(InputError, match=r"'t.csv' has no column 'tmp'. It has lat, temp..*temp"):
        table.column("tmp")


def test_values_are_numbers_or_missing_and_the_first_other_text_is_odd():
    good, bad = split_by_row(b"a,b\n1,NA\nNA,x\n1,y\n", "t.csv").columns
    np.testing.assert_array_equal(column_values(good), [1, np.nan, 1])
    assert column_values(bad) is None
    assert bad.labels[find_odd_label(bad)] == "x"
