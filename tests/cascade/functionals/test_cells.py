"""Tests of dkrls_cli.cascade.functionals.cells: intervals cut at the ends of cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.functionals.cells import SourceCells, known_means, own_cells
from dkrls_cli.cascade.functionals.functional import Means, Values
from dkrls_cli.errors import InputError

EDGES = np.arange(0.0, 31.0)
SOURCE = SourceCells(EDGES[:-1], EDGES[1:])


def test_places_outside_all_cells_are_pieces_of_their_own():
    pieces = SOURCE.cut(Means(np.array([-2.0, 40.0]), np.array([0.5, 41.0])))
    assert pieces.cell.tolist() == [-1, 0, -1]
    assert pieces.share == pytest.approx([0.8, 0.2, 1.0])


def test_means_that_the_data_tells():
    asked = Means(np.array([0.0, 3.0, 3.5]), np.array([1.0, 7.0, 4.0]))
    assert known_means(SOURCE, asked).tolist() == [True, True, False]
    assert known_means(SOURCE, Values(EDGES[:2])).tolist() == [False, False]


def test_the_cell_of_a_place_on_a_line_and_a_circle():
    assert SOURCE.find(np.array([29.5, -0.1, 0.2, 30.1])).tolist() == [29, -1, 0, -1]
    round_the_earth = SourceCells(np.array([0.0, 90.0]), np.array([90.0, 180.0]), period=360.0)
    assert round_the_earth.find(np.array([-350.0, 200.0, 460.0])).tolist() == [0, -1, 1]


def test_no_intervals_have_no_pieces():
    none = np.empty(0)
    pieces = SOURCE.cut(Means(none, none))
    assert pieces.cell.size == 0
    assert pieces.average(np.empty((0, 3))).shape == (0, 3)
    assert pieces.shares(30).shape == (0, 30)
    assert SOURCE.find(none).size == 0


def test_cells_that_overlap_are_refused():
    with pytest.raises(InputError, match="overlap: that from 0 to 2"):
        SourceCells(np.array([1.0, 0.0]), np.array([3.0, 2.0]))
    with pytest.raises(InputError, match="overlap"):
        SourceCells(np.array([0.0, 200.0]), np.array([100.0, 370.0]), period=360.0)


def test_cells_of_values_end_in_gaps():
    nodes = np.array([0.0, 1.0, 2.0, 9.0, 10.0])
    cells = SourceCells.around(
        nodes, nodes - 0.5, nodes + np.array([0.5, 0.5, 3.5, 0.5, 0.5]), False, None
    )
    assert cells.high[2] == 2.5
    assert not cells.are_means


def test_cells_that_means_are_taken_over_one_by_one():
    asked = Means(np.array([3.0, 0.0]), np.array([4.0, 1.0]))
    found = own_cells(SOURCE, asked)
    assert found is not None
    assert found.tolist() == [3, 0]
    assert own_cells(SOURCE, Means(np.array([3.0]), np.array([5.0]))) is None
    assert own_cells(SOURCE, Means(np.array([3.0, 4.5]), np.array([4.0, 5.0]))) is None
    assert own_cells(SOURCE, Values(EDGES[:2])) is None
    assert own_cells(SOURCE, Means(EDGES[:0], EDGES[:0])) is None
    assert own_cells(replace(SOURCE, are_means=False), asked) is None
