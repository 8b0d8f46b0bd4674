"""Text is split into the same cells all at once as row by row; odd text is left to the rows."""

import numpy as np
import pytest

from dkrls_cli.files.text.csv.splitting import TextColumn, split_columns


def split(text, head=1, names=("x", "y", "v"), delimiter=","):
    return split_columns(text.encode(), head, names, delimiter)


ROWS = [f"{i % 3},s{i % 2},{i / 8}" for i in range(12)]

BODY = "\n".join(ROWS)

REGULAR = f"x,y,v\n{BODY}\n"


def cells(column):
    return [column.labels[code] for code in column.codes]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (REGULAR, {}),
        (REGULAR.rstrip(), {}),
        (REGULAR + "\n\r\n", {}),
        (REGULAR.replace("\n", "\r\n"), {}),
        (REGULAR.replace(",", ";"), {"delimiter": ";"}),
        (REGULAR.replace(",", "\t"), {"delimiter": "\t"}),
        (REGULAR.replace(",", ", "), {}),
        (REGULAR.replace(",s0", ",  s0", 2), {}),
        (REGULAR.replace(",s0", ', "s0"', 2), {}),
        (f"# a\n\n{REGULAR}", {"head": 3}),
        (REGULAR.replace("s0", '"s0"').replace("s1", '"s1"'), {}),
        (REGULAR.replace("s0", '"s0"', 3), {}),
        (REGULAR.replace("s1", "s1  "), {}),
    ],
)
def test_a_regular_table_is_split_into_columns(text, options):
    columns = split(text, **options)
    expected = [row.split(",") for row in ROWS]
    assert [column.name for column in columns] == ["x", "y", "v"]
    assert [column.size for column in columns] == [12, 12, 12]
    assert columns[0].numbers is None
    assert columns[2].numbers.tolist() == [i / 8 for i in range(12)]
    for place, column in enumerate(columns):
        assert cells(column) == [row[place] for row in expected]
        assert column.labels == list(dict.fromkeys(row[place] for row in expected))
        assert column.codes.dtype == np.intp


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (REGULAR.replace("2,s0", "2", 1), {}),  # too few cells
        (REGULAR.replace("2,s0", "2,s0,1", 1), {}),  # too many
        (REGULAR.replace("2,s0", "2", 1).replace("1,s1", "1,s1,1", 1), {}),  # both
        (REGULAR + "1\n2\n3\n", {}),  # too few in as many lines as there are columns
        (REGULAR.replace("2,s0", "\n2,s0", 1), {}),  # a blank line
        (REGULAR.replace("2,s0", "#\n2,s0", 1), {}),
        (REGULAR.replace("2,s0", "#2,s0", 1), {}),  # a comment
        (REGULAR.replace("0,s0", "#0,s0", 1), {}),  # the first row is one
        (REGULAR.replace("s1", '"s,1"', 1), {}),  # a delimiter in quotes
        (REGULAR.replace("s1", '"s\n1"', 1), {}),  # a line end in quotes
        (REGULAR.replace("s1", '"s""1"', 1), {}),  # a quote in quotes
        (REGULAR.replace("s1", '"s1"x', 1), {}),  # text after a quote
        (REGULAR.replace("s1", 's"1', 1), {}),  # a quote in a text
        (REGULAR.replace("s1", "s1\r", 1), {}),  # a line end of its own
        (REGULAR.replace("\n", "\r"), {}),
        (REGULAR.replace("\n", "\r", 1), {}),  # a line end in the header
        (REGULAR.replace("s1", "\ts1", 1), {}),  # a tab, which is blank
        (REGULAR.replace("s1", "s\0", 1), {}),
        ("x,y,v", {}),  # no row
        ("x,y,v\n", {}),
    ],
)
def test_a_table_that_is_not_regular_is_left_to_the_rows(text, options):
    assert split(text, **options) is None


@pytest.mark.parametrize(
    "odd", ["1\n2\n3\n", "1,s1\n2,s0,1,5\n", "1,s1\n2,s0\n1,s1\n", "\n\n\n", "1,s1,7\r2,s0\n"]
)
def test_odd_rows_are_seen_where_no_sample_is_taken(odd):
    rows = [f"{i % 3},s{i % 2},{i / 8}\n" for i in range(9000)]
    place = 8995  # samples are the 1000 rows in the middle, and every tenth
    whole = "x,y,v\n" + "".join(rows)
    assert split(whole)[2].numbers.tolist() == [i / 8 for i in range(9000)]
    assert split("x,y,v\n" + "".join([*rows[:place], odd, *rows[place:]])) is None


def test_a_column_of_numbers_with_an_odd_text_is_left_to_the_rows():
    far = REGULAR + "".join(f"1,s1,{i / 7}\n" for i in range(4000))
    assert split(far)[2].numbers.size == 4012
    assert split(far.replace("1,s1,1.0\n", "1,s1,one\n")) is None
    assert split(REGULAR.encode().replace(b"s1", b"s\xe9").decode("latin-1")) is not None
    assert split_columns(REGULAR.encode().replace(b"s1", b"s\xe9"), 1, "xyv", ",") is None


def test_missing_values_are_missing_however_they_are_spelt():
    marks = ["", "NA", "na", "N/A", "NaN", "nan", "NULL", "None", "-", ".", "inf", "-Inf"]
    rows = [f"1,a,{i / 8}\n" for i in range(40)]
    text = "x,y,v\n" + "".join(rows + [f"1,b,{mark}\n" for mark in marks])
    (_, _, values) = split(text)
    assert values.numbers[:40].tolist() == [i / 8 for i in range(40)]
    assert np.isnan(values.numbers[40:]).all()
    assert cells(values)[40:] == marks


def test_columns_are_read_by_what_is_in_them():
    """Values that repeat among neighbours, or far apart, or never; texts and numbers."""
    count = 5000
    rows = [f"{i // 50},{i % 7},t{i},{i * 0.37},{i // 1000}" for i in range(count)]
    names = ["slow", "quick", "text", "value", "few"]
    columns = split("h\n" + "\n".join(rows), names=names)
    assert [c.name for c in columns if c.numbers is not None] == ["value"]
    for place, column in enumerate(columns):
        assert cells(column) == [row.split(",")[place] for row in rows]


def test_texts_of_a_column_are_made_once_and_only_if_needed():
    made = []

    def texts():
        made.append(1)
        return ["a", "b"], np.array([0, 1, 0])

    column = TextColumn("x", texts, np.zeros(3))
    assert column.size == 3
    assert not made
    assert (column.labels, column.codes.tolist()) == (["a", "b"], [0, 1, 0])
    assert made == [1]
    assert TextColumn("x", texts).size == 3
