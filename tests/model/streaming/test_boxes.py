"""Boxes of stored grids: as the file has them, or without some coordinates."""

import numpy as np
import pytest
from sample_files import grid

from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.streaming.boxes import SomeColumns, boxes_of, read_columns, restrict


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


@pytest.mark.parametrize("at_once", [1, 4, 2**20])
@pytest.mark.parametrize(
    "kept", [([0, 4], [0, 6]), ([1, 2, 4], [0, 1, 5]), ([3], range(7)), (range(5), [6]), ([], [2])]
)
def test_columns_are_read_in_boxes_that_are_not_much_larger(source, monkeypatch, at_once, kept):
    from dkrls_cli.files.stored.reader import Reader

    monkeypatch.setattr("dkrls_cli.model.streaming.boxes._AT_ONCE", at_once)
    whole, sizes, real = source.grid().values, [], Reader.read_box

    def read_box(self, box):
        found = real(self, box)
        sizes.append(found.size)
        return found

    monkeypatch.setattr(Reader, "read_box", read_box)
    indices = [np.array(list(own), int) for own in kept]
    found = read_columns(source.reader, indices)
    np.testing.assert_array_equal(found, whole[np.ix_(*indices)])
    assert all(size <= max(at_once, 2 * found.size) for size in sizes)


def test_a_source_with_some_coordinates_is_a_source(source):
    whole = source.grid().values
    some = restrict(source, (np.array([0, 2, 3]), np.array([1, 4, 5, 6])))
    once = whole[np.ix_([0, 2, 3], [1, 4, 5, 6])]
    assert some.shape == (3, 4)
    np.testing.assert_array_equal(some.grid().values, once)
    np.testing.assert_array_equal(some.axes[1].numbers, [1, 4, 5, 6])
    np.testing.assert_array_equal(some.read([np.array([1, 2]), np.array([0])]), once[1:, :1])
    again = restrict(some, (np.array([0, 2]), np.array([1, 2])))
    np.testing.assert_array_equal(again.grid().values, once[np.ix_([0, 2], [1, 2])])
    np.testing.assert_array_equal(again.reader.read_box((slice(1, 2), slice(0, 2))), once[2:, 1:3])
