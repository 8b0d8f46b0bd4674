"""Points are read block by block, each as soon as it is there, or refused by their line."""

import os
import sys

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.points import point_blocks
from dkrls_cli.grid.axes import axis_of, text_axis

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
    assert (block.header, block.cells) == (["t", "s", "x"], [])
    assert [numbers.size for numbers in block.coordinates] == [0, 0, 0]


def test_a_block_has_65536_rows_unless_told(tmp_path):
    (tmp_path / "points.csv").write_text("x\n" + "1\n" * 65537)
    found = point_blocks(str(tmp_path / "points.csv"), POINT_AXES[:1])
    assert [len(block.cells) for block in found] == [65536, 1]


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
