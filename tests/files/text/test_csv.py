"""Text is split into the same cells row by row and all at once; odd text is left to the rows."""

import gc
import gzip
import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text import csv as csv_module
from dkrls_cli.files.text.csv import (
    TextColumn,
    code_texts,
    csv_rows,
    csv_text,
    find_bad_text,
    is_missing,
    join_names,
    make_reader,
    open_text,
    parse_numbers,
    parse_values,
    read_batches,
    read_bytes,
    read_header,
    read_rows,
    source_name,
    split_columns,
    text_index,
    unzip_bytes,
)


def reader_of(text):
    return make_reader(io.StringIO(text, newline=""))


# Opening ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_text_is_unzipped_and_loses_its_byte_order_mark(tmp_path, pack):
    path = tmp_path / "t"
    path.write_bytes(pack("é\r\nb".encode("utf-8-sig")))
    with open_text(str(path)) as text:
        assert list(text) == ["é\r\n", "b"]
    assert unzip_bytes(read_bytes(str(path))) == "é\r\nb".encode()


def test_standard_input_is_read_and_stays_open(monkeypatch, tmp_path):
    (tmp_path / "t").write_text("a,b")
    for whole in (True, False):
        with open(tmp_path / "t", encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            if whole:
                assert read_bytes("-") == b"a,b"
            else:
                with open_text("-") as text:
                    assert text.read() == "a,b"
                del text
                gc.collect()
            assert not stdin.buffer.closed


def test_a_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    for read in (read_bytes, lambda path: open_text(path).__enter__()):
        with pytest.raises(InputError, match="standard input is closed"):
            read("-")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\xe9b", r"not UTF-8 text \(byte 0xe9\)"),
        (gzip.compress(b"abc" * 99, mtime=0)[:-9], "is damaged"),
        (b"\x1f\x8bno", "is damaged"),
    ],
    ids=["latin", "cut", "nonsense"],
)
def test_what_cannot_be_read_is_explained(tmp_path, data, words):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    expected = pytest.raises(InputError, match=f"'{path}' is .*{words.removeprefix('is ')}")
    with expected, open_text(str(path)) as text:
        text.read()


def test_paths_that_cannot_be_opened_are_named(tmp_path):
    for read in (read_bytes, lambda path: open_text(path).__enter__()):
        with pytest.raises(InputError, match=r"There is no file '.*absent'"):
            read(str(tmp_path / "absent"))
        with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
            read(str(tmp_path))


def test_a_broken_output_is_no_fault_of_the_input(tmp_path):
    (tmp_path / "t").write_text("a")
    with pytest.raises(BrokenPipeError), open_text(str(tmp_path / "t")):
        raise BrokenPipeError


# Row by row ---------------------------------------------------------------------------------------


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


# All at once --------------------------------------------------------------------------------------


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


# Cells --------------------------------------------------------------------------------------------


def test_texts_are_numbered_in_order_of_appearance():
    index = text_index()
    assert code_texts(index, ["b", "a", "b"]).tolist() == [0, 1, 0]
    assert code_texts(index, ["c", "a"]).tolist() == [2, 1]
    assert list(index) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1", " -2.5e1 ", "+.5"], [1.0, -25.0, 0.5]),
        ([], []),
        (["1", "x"], None),
        (["1_2"], None),
        ([""], None),
    ],
)
def test_texts_are_numbers_or_not(texts, numbers):
    found = parse_numbers(texts)
    assert found is None if numbers is None else found.tolist() == numbers


def test_values_may_be_missing():
    assert np.isnan(parse_values(["1", "NA", "inf", "nan", "1e999"])[1:]).all()
    assert parse_values(["1", "NA"])[0] == 1
    assert parse_values(["1", "2"]).tolist() == [1, 2]
    assert parse_values(["1", "no"]) is None


def test_missing_texts():
    assert all(map(is_missing, ["", "NA", "n/a", "Null", "NONE", "-", ".", "+Inf"]))
    assert not any(map(is_missing, ["0", "a", " ", "--", "nanny"]))


def test_the_first_text_that_is_wrong_is_found():
    def encode(texts):
        if "bad" in texts:
            raise SettingError("'bad' is bad.")
        return np.array([float(text) for text in texts])

    assert find_bad_text(encode, ["1", "bad", "nan"]) == ("bad", "'bad' is bad.")
    assert find_bad_text(encode, ["1", "nan"]) == ("nan", "'nan' is not a finite number.")
    with pytest.raises(AssertionError):
        find_bad_text(encode, ["1"])


def test_names_for_messages():
    assert source_name("-") == "standard input"
    assert source_name("a.csv") == "'a.csv'"
    assert join_names(["a", "", "b"]) == "a, (nameless), b"


def test_small_tables_go_to_text_and_back():
    rows = [{"a": 1, "b": float("nan"), "c": None}, {"a": "x,y", "b": 0.5, "c": 'say "z"'}]
    text = csv_text(rows)
    assert text.splitlines()[0] == "a,b,c"
    assert csv_rows(text) == [
        {"a": "1", "b": "", "c": ""},
        {"a": "x,y", "b": "0.5", "c": 'say "z"'},
    ]


# --- small inputs that would cost much ------------------------------------------------------------


def test_a_compressed_table_unfolds_to_a_hundred_times_its_size_at_most(monkeypatch):
    monkeypatch.setattr(csv_module, "_LEAST_UNZIPPED", 1000)
    table = b"x,v\n" + b"".join(b"%d,%d\n" % (i, i * 7919 % 1013) for i in range(3000))
    assert unzip_bytes(gzip.compress(table)) == table
    for size, refused in ((1000, False), (10**5, True)):
        bomb = gzip.compress(b"0" * size)
        if refused:
            with pytest.raises(InputError, match="compressed bytes hold more than"):
                unzip_bytes(bomb)
            with pytest.raises(InputError, match="Unzip the file first"):
                csv_module.text_of(io.BytesIO(bomb)).__enter__()
        else:
            assert len(unzip_bytes(bomb)) == size


def test_a_device_that_never_ends_is_not_read(tmp_path):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for read in (read_bytes, lambda path: open_text(path).__enter__()):
        with pytest.raises(InputError, match="is a device"):
            read(str(tmp_path / "zero.csv"))
    assert read_bytes("/dev/null") == b""


def test_a_table_that_does_not_fit_the_memory_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(b"x" * 1000)
    for room, refused in ((4000.0, False), (3999.0, True)):
        monkeypatch.setattr(csv_module, "available_bytes", lambda room=room: room)
        for path in (str(tmp_path / "a.csv"), "-"):
            stdin = SimpleNamespace(buffer=io.BytesIO(b"x" * 1000))
            monkeypatch.setattr(sys, "stdin", stdin)
            if refused:
                with pytest.raises(InputError, match="too much for the memory"):
                    read_bytes(path)
            else:
                assert len(read_bytes(path)) == 1000


def test_many_columns_are_compared_in_one_pass():
    """Comparing each with each would take minutes."""
    names = [f"c{i}" for i in range(100_000)]
    assert read_header(iter([names]), "it") == names
    with pytest.raises(InputError, match="has two columns 'c7'"):
        read_header(iter([[*names, "c7"]]), "it")


def test_a_message_lists_the_first_names():
    assert join_names(["a", "", "c"]) == "a, (nameless), c"
    assert join_names(map(str, range(14))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"
