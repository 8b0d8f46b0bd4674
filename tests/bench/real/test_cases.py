"""Which cells of a grid are held out, and which train."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sample_files import EAST, NORTH
from shell import ROOT

from dkrls_cli.bench.real.cases import (
    ALTERNATE,
    RANDOM,
    HeldOutCase,
    horizontal_axes,
    make_held_out_cases,
    sort_axes,
)
from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid

OCEAN = ROOT / "sample_data" / "ocean.nc"
X = np.arange(4.0)


def case_of(grid: Grid, kind: str = RANDOM) -> HeldOutCase:
    return next(case for case in make_held_out_cases(grid, [0]) if case.kind == kind)


@pytest.fixture(scope="module")
def ocean() -> Grid:
    return open_source([str(OCEAN)]).grid()


def test_a_fifth_of_every_dimension_is_held_out_and_the_edges_are_kept(ocean: Grid) -> None:
    cases = [case for case in make_held_out_cases(ocean, range(3)) if case.kind == RANDOM]
    assert [case.seed for case in cases] == [0, 1, 2]
    for case in cases:
        assert case.held == (0, 1, 2)
        assert case.truth.values.shape == (10, 5, 7)
        for whole, known in zip(ocean.axes, case.train.axes, strict=True):
            assert {whole.numbers[0], whole.numbers[-1]} <= set(known.numbers)
    assert not np.array_equal(cases[0].query_axes[0].numbers, cases[1].query_axes[0].numbers)


def test_every_second_latitude_and_longitude_is_held_out_and_all_else_kept(ocean: Grid) -> None:
    case = case_of(ocean, ALTERNATE)
    assert (case.held, case.seed) == ((1, 2), None)
    values = ocean.values
    np.testing.assert_array_equal(case.truth.values, values[:, 1:-1:2][:, :, 1:-1:2])
    np.testing.assert_array_equal(case.query_axes[0].numbers, ocean.axes[0].numbers)
    assert case.train.values.shape == (48, 13, 19)
    assert case.samples == 13


@pytest.mark.parametrize(
    ("dims", "thinned"),
    [
        (("latitude", "longitude", "depth"), ("latitude", "longitude")),
        (("x", "y", "z"), ("y", "z")),
        (("lon", "depth", "time"), ("lon", "depth")),
        (("time", "lat"), ("lat",)),
        (("time",), ()),
    ],
)
def test_what_counts_as_horizontal_axes(dims: tuple[str, ...], thinned: tuple[str, ...]) -> None:
    axes = [axis_of(dim, np.arange(5.0)) for dim in dims]
    assert tuple(axis.name for axis in horizontal_axes(axes)) == thinned


def test_latitude_is_known_by_its_units() -> None:
    axes = [axis_of("a", X, NORTH), axis_of("b", X, EAST), axis_of("c", X), axis_of("d", X)]
    assert [axis.name for axis in horizontal_axes(axes)] == ["a", "b"]


def test_labels_and_short_dimensions_are_kept() -> None:
    sites = text_axis("site", [f"s{i}" for i in range(10)])
    axes = (sites, axis_of("pair", np.arange(2.0)), axis_of("x", np.arange(12.0)))
    cases = list(make_held_out_cases(Grid(np.zeros((10, 2, 12)), axes), [0]))
    assert [case.held for case in cases] == [(2,), (2,)]
    assert list(make_held_out_cases(Grid(np.zeros((10, 2)), axes[:2]), [0])) == []


def test_the_axis_of_a_dimension_that_is_kept_is_the_training_axis_itself(ocean: Grid) -> None:
    case = case_of(ocean, ALTERNATE)
    assert case.query_axes[0] is case.train.axes[0]
    assert case.query_axes[1] is case.truth.axes[1]


def test_the_fewest_samples_are_those_of_a_held_out_dimension(ocean: Grid) -> None:
    case = case_of(ocean, ALTERNATE)
    assert (case.samples, case.shortest) == (13, "lat")
    assert case.columns == {"held_out": ALTERNATE, "seed": None, "samples": 13}
    few = Grid(np.zeros((2, 12)), (axis_of("x", X[:2]), axis_of("y", np.arange(12.0))))
    assert case_of(few).shortest == "y"


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [0, 1, 3, 2]])
def test_axes_are_sorted_unless_they_ascend_or_descend(order: list[int]) -> None:
    grid = Grid(10 * X[order], (axis_of("x", X[order]),), "t")
    found = sort_axes(grid)
    monotonic = order in ([0, 1, 2, 3], [3, 2, 1, 0])
    expected = X[order] if monotonic else X
    np.testing.assert_array_equal(found.axes[0].numbers, expected)
    np.testing.assert_array_equal(found.values, 10 * expected)
    assert found.name == "t"


def test_a_case_can_be_sent_to_another_process(ocean: Grid) -> None:
    case = case_of(ocean)
    copy: Any = pickle.loads(pickle.dumps(case))
    np.testing.assert_array_equal(copy.truth.values, case.truth.values)
