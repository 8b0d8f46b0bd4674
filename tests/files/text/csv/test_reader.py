"""Rows are split as they come, and each knows its line."""

import io

import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.csv.reader import make_reader, read_batches, read_header, read_rows


def reader_of(text):
    return make_reader(io.StringIO(text, newline=""))


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b;c,d\n", ","),
        ("a;b;c,d\n", ";"),
        ("a\tb\n", "\t"),
        ("abc\n", ","),
        ('"a;b;c",d\n', ","),
        ('"a;b\n;;",d\n', ","),
        ("# a;b;c\n \nx,y\n;;;;\n", ","),
        ("# a,b\n\nx;y\n", ";"),
        ("", ","),
    ],
)
def test_the_delimiter_is_the_one_of_the_header(text, delimiter):
    assert reader_of(text)[1] == delimiter


def test_lines_are_counted_with_comments_blanks_and_quoted_line_ends():
    reader, _ = reader_of('# c\nx,v\n\n1,2\n"a\n#b\n\n",3\n#\n 4, 5\n')
    assert read_header(reader, "it") == ["x", "v"]
    found = list(read_batches(reader, 2, 100, "it"))
    assert found == [([4, 8, 10], [["1", "2"], ["a\n#b\n\n", "3"], ["4", "5"]])]


def test_a_quote_in_quotes_does_not_end_the_cell():
    reader, _ = reader_of('x,v\n"a""b\n#c",1\n"d""e""f\n#g",2\n')
    read_header(reader, "it")
    assert list(read_rows(reader, "it")) == [['a"b\n#c', "1"], ['d"e"f\n#g', "2"]]


def test_spaces_after_a_delimiter_are_skipped():
    reader, _ = reader_of('x, "y"\n')
    assert next(read_rows(reader, "it")) == ["x", "y"]


def test_batches_are_full_but_for_the_last():
    for rows, sizes in ((2, [2, 2, 1]), (5, [5]), (6, [5])):
        reader, _ = reader_of("x\n" + "1\n" * 5)
        read_header(reader, "it")
        assert [len(cells) for _, cells in read_batches(reader, 1, rows, "it")] == sizes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty. Expected a header"),
        ("#\n\n", "it is empty"),
        ("a,b,a\n", "it has two columns 'a'"),
        ("a, a\n", "it has two columns 'a'"),
        ('a,"b\n', "Line 1 of it cannot be read .* quote left open"),
    ],
)
def test_headers_that_are_none_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        read_header(reader_of(text)[0], "it")


@pytest.mark.parametrize("row", ["1", "1,2,3"])
def test_ragged_rows_are_refused_by_their_line(row):
    reader, _ = reader_of(f"x,v\n1,2\n\n{row}\n")
    read_header(reader, "it")
    count = row.count(",") + 1
    with pytest.raises(InputError, match=f"Line 4 of it has {count} cells, the header 2"):
        list(read_batches(reader, 2, 100, "it"))


def test_many_columns_are_compared_in_one_pass():
    """Comparing each with each would take minutes."""
    names = [f"c{i}" for i in range(100_000)]
    assert read_header(iter([names]), "it") == names
    with pytest.raises(InputError, match="has two columns 'c7'"):
        read_header(iter([[*names, "c7"]]), "it")
