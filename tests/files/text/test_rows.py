"""Rows of answers are text that reads back as the same cells."""

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_files import LABELS, NUMBERS, rows_text

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text import rows as rows_module
from dkrls_cli.files.text.points import PointBlock
from dkrls_cli.files.text.rows import RowWriter, number_text, quote_cell
from dkrls_cli.grid.axes import axis_of

NAN = np.nan


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_is_written_as_short_as_it_reads_back(number):
    text = rows_text([], [], {"v": np.array(number, np.float32)}).splitlines()[1]
    assert np.float32(text) == np.float32(number)
    assert len(text) <= len(repr(float(np.float32(number))))


@given(LABELS, NUMBERS)
def test_json_lines_are_read_back_as_they_were(label, number):
    (line,) = rows_text([label], [[label]], {"v": np.array([number])}, "jsonl").splitlines()
    assert json.loads(line) == {label: label, "v": number}


def test_rows_come_in_the_order_of_the_grid():
    answers = {"v": np.arange(4.0).reshape(2, 2), "v_std": np.array([[0.1, NAN], [0.3, np.inf]])}
    assert rows_text(["x", "y"], [["1", "2"], ["a", "b"]], answers) == (
        "x,y,v,v_std\n1,a,0.0,0.1\n1,b,1.0,\n2,a,2.0,0.3\n2,b,3.0,\n"
    )
    lines = rows_text(["x", "y"], [["1", "2"], ["a", "b"]], answers, "jsonl").splitlines()
    assert lines[1] == '{"x": 1, "y": "b", "v": 1.0, "v_std": null}'
    assert [json.loads(line)["v_std"] for line in lines] == [0.1, None, 0.3, None]


def test_floats_are_as_short_as_their_type_allows():
    third = np.array([0.1, 1 / 3])
    assert rows_text(["x"], ["ab"], {"v": third}) == "x,v\na,0.1\nb,0.3333333333333333\n"
    assert rows_text(["x"], ["ab"], {"v": third.astype("f4")}) == "x,v\na,0.1\nb,0.33333334\n"
    large = np.array([2000001, 1e-7], np.float32)
    assert rows_text(["x"], ["ab"], {"v": large}) == "x,v\na,2000001.0\nb,1e-07\n"
    assert rows_text(["x"], ["ab"], {"n": np.array([1, 2])}) == "x,n\na,1\nb,2\n"


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
    assert (
        rows_text(["x"], [[text]], {"v": np.zeros(1)}, "jsonl") == f'{{"x": {token}, "v": 0.0}}\n'
    )


@pytest.mark.parametrize("text", ["a,b", 'say "x"', "#1", " a", "a ", "a\nb", "a;b", "\xa0a"])
def test_cells_that_need_quotes_get_them(text):
    quoted = '"' + text.replace('"', '""') + '"'
    assert rows_text([text], [[text]], {"v": np.zeros(1)}) == f"{quoted},v\n{quoted},0.0\n"
    assert rows_text(["p"], [["a b é"]], {"v": np.zeros(1)}) == "p,v\na b é,0.0\n"


def test_unknown_formats_are_refused():
    with pytest.raises(SettingError, match=r"'xml'. Choose from: csv, jsonl"):
        RowWriter(io.StringIO(), "xml")


def test_answers_of_another_size_are_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        rows_text(["x"], [["1", "2"]], {"v": np.zeros(3)})


def test_answers_may_not_hide_a_column():
    block = PointBlock(["x", "sst"], [["1", "2"]], [axis_of("x", [1.0])])
    with pytest.raises(InputError, match="column 'sst' already"):
        RowWriter(io.StringIO()).write_points(block, {"sst": np.ones(1)})


CELLS = [["a", "1970-01-02", "q ", "0.5"], ["b,c", "1970-01-01T12:00", "p", "1e1"]]
BLOCKS = [
    PointBlock(["id", "t", "s", "x"], CELLS, [axis_of("x", [0.5, 10.0])]),
    PointBlock(["id", "t", "s", "x"], [["d", "1970-01-02", "q", "-1"]], [axis_of("x", [-1.0])]),
]


def test_points_keep_their_cells_and_get_answers():
    csv_stream, json_stream = io.StringIO(), io.StringIO()
    csv_writer, json_writer = RowWriter(csv_stream), RowWriter(json_stream, "jsonl")
    for block in BLOCKS:
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


@pytest.mark.parametrize(("form", "expected"), [("csv", "x,v\n"), ("jsonl", "")])
def test_no_points_are_a_header_at_most(form, expected):
    stream = io.StringIO()
    RowWriter(stream, form).write_points(PointBlock(["x"], [], []), {"v": np.empty(0)})
    assert stream.getvalue() == expected


TIMES = ["2020-01-01", "2020-01-02", "2020-01-03"]


@pytest.mark.parametrize("at_once", [1, 3, 4, 2**15])
def test_points_are_repeated_for_every_cell_of_dimensions(at_once, monkeypatch):
    monkeypatch.setattr(rows_module, "_CELLS_AT_ONCE", at_once)
    block = PointBlock(["id", "x"], [["a", "1"], ["b,c", "2"]], [axis_of("x", [1.0, 2.0])])
    values = np.arange(12.0).reshape(2, 3, 2)
    csv_stream, json_stream = io.StringIO(), io.StringIO()
    for stream, form in ((csv_stream, "csv"), (json_stream, "jsonl")):
        writer = RowWriter(stream, form)
        writer.write_points(block, {"v": values}, ["time", "z"], [TIMES, ["5", "top"]])
    header, *lines = csv_stream.getvalue().splitlines()
    assert header == "id,x,time,z,v"
    assert lines == [
        f"{row},{time},{z},{6.0 * i + 2 * j + k}"
        for i, row in enumerate(["a,1", '"b,c",2'])
        for j, time in enumerate(TIMES)
        for k, z in enumerate(["5", "top"])
    ]
    told = [json.loads(line) for line in json_stream.getvalue().splitlines()]
    assert told[7] == {"id": "b,c", "x": 2, "time": "2020-01-01", "z": "top", "v": 7.0}
    assert len(told) == 12


def test_no_points_are_a_header_with_the_dimensions():
    stream = io.StringIO()
    none = PointBlock(["id", "x"], [], [axis_of("x", [1.0]).take([])])
    RowWriter(stream).write_points(none, {"v": np.empty((0, 3))}, ["time"], [TIMES])
    assert stream.getvalue() == "id,x,time,v\n"


def test_few_texts_are_in_memory_at_once():
    assert rows_module._CELLS_AT_ONCE == 2**15


def test_a_number_is_the_shortest_text_that_reads_back():
    for value in (0.1, 1e-300, -3.0, 123456789.125):
        assert float(number_text(value)) == value
    assert [number_text(v) for v in (np.nan, np.inf, 0.1)] == ["", "", "0.1"]


def test_a_cell_is_quoted_where_it_must_be():
    for text in ("a", "a b", "é"):
        assert quote_cell(text) == text
    for text in ("a,b", "a;b", "a\tb", 'say "hi"', " a", "#a", "two\nlines"):
        reader = csv.reader(io.StringIO(quote_cell(text), newline=""), strict=True)
        assert next(reader) == [text]
        assert quote_cell(text).startswith('"')


def test_records_have_texts_and_numbers():
    import io

    from dkrls_cli.files.text.rows import RowWriter

    records = [{"a": "x,y", "b": 1.5, "c": ""}, {"a": "007", "b": float("nan"), "c": "q"}]
    for form, expected in [
        ("csv", 'a,b,c\n"x,y",1.5,\n007,,q\n'),
        (
            "jsonl",
            '{"a": "x,y", "b": 1.5, "c": ""}\n{"a": "007", "b": null, "c": "q"}\n',
        ),
    ]:
        stream = io.StringIO()
        RowWriter(stream, form).write_records(["a", "b", "c"], records)
        assert stream.getvalue() == expected
    stream = io.StringIO()
    RowWriter(stream).write_records(["a", "b"], [])
    assert stream.getvalue() == "a,b\n"
