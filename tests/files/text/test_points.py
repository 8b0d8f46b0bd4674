"""Points are read block by block, each as soon as it is there, or refused by their line."""

import os
import sys

import numpy as np
import pytest

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.text.points import find_columns, join_blocks, point_blocks
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


# ---- which column is which dimension

SINCE = [np.datetime64("2020-01-01"), np.datetime64("2020-01-02")]
GLOBE = [
    axis_of("t", SINCE),
    axis_of("lat", [0.0, 1.0]),
    axis_of("x", [0.0, 1.0], {"standard_name": "longitude", "units": "degrees_east"}),
    axis_of("depth", [0.0, 1.0]),
]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("t lat x depth", {"t": 0, "lat": 1, "x": 2, "depth": 3}),
        ("id Latitude LON time depth", {"lat": 1, "x": 2, "t": 3, "depth": 4}),
        ("latitude lat longitude x", {"lat": 1, "x": 3}),  # exact names come first
        ("y long lats", {"x": 1, "lat": 2}),
        ("Depth z elevation", {}),  # names without a role are as they are
    ],
)
def test_columns_belong_to_dimensions_by_name_or_role(header, expected):
    assert find_columns(header.split(), GLOBE, "p.csv") == expected


@pytest.mark.parametrize(
    ("header", "axes", "message"),
    [
        ("latitude lats", GLOBE, "p.csv: 'latitude' or 'lats' may be meant for lat"),
        (
            "time",
            [axis_of("run", SINCE), axis_of("valid", SINCE)],
            "p.csv: 'time' may be meant for run, valid. Name the column",
        ),
    ],
)
def test_columns_that_may_mean_several_are_refused(header, axes, message):
    with pytest.raises(InputError, match=message):
        find_columns(header.split(), axes, "p.csv")


def test_a_dimension_with_its_own_column_leaves_the_other_to_its_rival():
    axes = [axis_of("run", SINCE), axis_of("valid", SINCE)]
    assert find_columns(["time", "run"], axes, "p.csv") == {"run": 1, "valid": 0}


def test_a_dimension_of_one_coordinate_needs_no_column(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x\n0.5\n0.6\n")
    axes = [POINT_AXES[0], axis_of("height", [7.5])]
    (block,) = point_blocks(str(path), axes)
    assert block.coordinates[1].tolist() == [7.5, 7.5]
    assert block.columns == [0, None]
    path.write_text("height,x\n9,0.5\n")
    (block,) = point_blocks(str(path), axes)
    assert block.coordinates[1].tolist() == [9]


def test_dimensions_given_for_all_points_are_no_columns(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("id,x\na,0.5\n")
    (block,) = point_blocks(str(path), POINT_AXES, 10, ["s", "t"])
    assert [axis.name for axis in block.axes] == ["x"]
    path.write_text("id,x,latitude\na,0.5,1\n")
    axes = [POINT_AXES[0], GLOBE[1]]
    with pytest.raises(SettingError, match="a column 'latitude', and 'lat' is given for all"):
        list(point_blocks(str(path), axes, 10, ["lat"]))


def test_a_missing_column_names_the_setting_that_helps(blocks):
    with pytest.raises(InputError) as caught:
        blocks("t,s\n")
    assert caught.value.setting == "at"


def test_coordinates_stay_as_they_were_written(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("lon\n-10\n350\n")
    (block,) = point_blocks(str(path), [axis_of("lon", np.arange(0.0, 360, 10))])
    assert block.coordinates[0].tolist() == [350, 350]
    assert block.axes[0].plain.tolist() == [-10, 350]


def test_blocks_join_to_the_whole_table(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("lon,s\n-10,p\n350,q\n20,q\n")
    axes = [axis_of("lon", np.arange(0.0, 360, 10)), POINT_AXES[1]]
    whole = join_blocks(list(point_blocks(str(path), axes, 2)))
    assert [len(whole.cells), whole.columns] == [3, [0, 1]]
    assert whole.axes[0].plain.tolist() == [-10, 350, 20]
    assert whole.coordinates[0].tolist() == [350, 350, 20]
    assert whole.axes[1].texts == ["p", "q", "q"]
    part = whole.take(slice(1, 3))
    assert (part.cells, part.axes[1].texts) == ([["350", "q"], ["20", "q"]], ["q", "q"])
