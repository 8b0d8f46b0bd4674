"""Boxes of stored grids: as the file has them, or without some coordinates."""

import numpy as np
import pytest
from sample_files import grid

from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.streaming.boxes import SomeColumns, boxes_of


@pytest.fixture
def source(tmp_path):
    axes = {"y": (np.arange(5.0), {}), "x": (np.arange(7.0), {})}
    return open_source([str(grid(tmp_path / "a.nc", axes))])


def test_boxes_are_parts_of_the_grid(source):
    whole = source.grid().values
    boxes = boxes_of(source, (np.arange(5), np.arange(7)))
    assert boxes is source.reader
    part = (slice(1, 4), slice(2, 7))
    np.testing.assert_array_equal(boxes.read_box(part), whole[part])


def test_coordinates_that_are_left_out_are_not_counted(source):
    whole = source.grid().values
    kept = (np.array([0, 2, 3]), np.arange(6))
    boxes = boxes_of(source, kept)
    assert isinstance(boxes, SomeColumns)
    np.testing.assert_array_equal(
        boxes.read_box((slice(1, 3), slice(4, 6))), whole[np.ix_([2, 3], [4, 5])]
    )


def test_tables_have_no_boxes(tmp_path):
    (tmp_path / "t.csv").write_text("x,y,v\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n")
    source = open_source([str(tmp_path / "t.csv")])
    with pytest.raises(InputError, match="can only be read as a whole"):
        boxes_of(source, (np.arange(2), np.arange(2)))
