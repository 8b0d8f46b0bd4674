"""The race on grids with gaps: what is hidden, and how methods fill it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.gappy_grids import waves
from scipy.ndimage import binary_opening
from shell import ROOT

from dkrls_cli.bench.real.gaps import (
    BLOCKS,
    CELLS,
    GAP_RACE,
    HOLE,
    HiddenCase,
    block_sides,
    hide_blocks,
    hide_hole,
    hole_sides,
    make_filling_problem,
    make_hidden_cases,
    run_filling,
    summarise_filling,
)
from dkrls_cli.bench.real.race import CaseResult, make_case_rows, summarise_rows
from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid

CLOUDY = ROOT / "sample_data" / "ocean_gaps.nc"


@pytest.fixture(scope="module")
def cloudy() -> Grid:
    return open_source([str(CLOUDY)]).grid()


@pytest.fixture(scope="module")
def cases(cloudy: Grid) -> list[HiddenCase]:
    return list(make_hidden_cases(cloudy, [0, 1]))


# What is hidden -----------------------------------------------------------------------------------


def test_a_tenth_of_the_observed_cells_is_hidden(cloudy: Grid, cases: list[HiddenCase]) -> None:
    assert [(case.kind, case.seed) for case in cases] == [
        (CELLS, 0),
        (BLOCKS, 0),
        (HOLE, 0),
        (CELLS, 1),
        (BLOCKS, 1),
        (HOLE, 1),
    ]
    observed = np.isfinite(cloudy.values)
    for case in cases:
        assert not (case.hidden & ~observed).any()
        np.testing.assert_array_equal(np.isfinite(case.seen.values), observed & ~case.hidden)
        share = case.hidden.sum() / observed.sum()
        if case.kind != HOLE:
            assert share == pytest.approx(0.1, abs=1e-4 if case.kind == CELLS else 0.003)


def test_cells_and_blocks_are_hidden_as_ever(cloudy: Grid, cases: list[HiddenCase]) -> None:
    """Which cells they are must not depend on the kinds of cases that stand beside them."""
    observed = np.isfinite(cloudy.values)
    for case in cases:
        if case.kind != HOLE:
            sides = [1, 1, 1] if case.kind == CELLS else [3, 5, 5]
            expected = hide_blocks(observed, sides, case.seed)
            np.testing.assert_array_equal(case.hidden, expected)


def test_blocks_are_whole_and_cells_are_scattered(cloudy: Grid, cases: list[HiddenCase]) -> None:
    assert block_sides(cloudy.axes) == [3, 5, 5]
    missing = np.isnan(cloudy.values)
    for case in cases:
        if case.kind == HOLE:
            continue
        whole = binary_opening(case.hidden | missing, np.ones((3, 5, 5)))
        assert (case.kind == BLOCKS) == (not (case.hidden & ~whole).any())


def test_equal_seeds_hide_equal_cells(cloudy: Grid, cases: list[HiddenCase]) -> None:
    again = list(make_hidden_cases(cloudy, [0, 1]))
    for one, other in zip(cases, again, strict=True):
        np.testing.assert_array_equal(one.hidden, other.hidden)
    for one, other in zip(cases[:3], cases[3:], strict=True):
        assert not np.array_equal(one.hidden, other.hidden)


@pytest.mark.parametrize(
    ("sizes", "sides"),
    [
        ({"time": 30, "lat": 20, "lon": 20}, [3, 5, 5]),
        ({"lon": 20, "lat": 9, "time": 4}, [5, 3, 1]),
        ({"depth": 30, "time": 12, "lat": 20, "lon": 40}, [3, 3, 5, 5]),
        ({"x": 30, "y": 2}, [5, 1]),
        ({"time": 30}, [3]),
    ],
)
def test_blocks_fit_the_grid(sizes: dict[str, int], sides: list[int]) -> None:
    assert block_sides([axis_of(name, np.arange(float(m))) for name, m in sizes.items()]) == sides


def test_labels_have_no_neighbours() -> None:
    sites = text_axis("site", [f"s{i}" for i in range(30)])
    assert block_sides([sites, axis_of("x", np.arange(30.0))]) == [1, 5]


def test_few_cells_make_few_cases() -> None:
    small = Grid(np.zeros((2, 5)), (axis_of("x", [0.0, 1.0]), axis_of("y", np.arange(5.0))))
    assert [case.kind for case in make_hidden_cases(small, [0])] == [CELLS]
    assert list(make_hidden_cases(small.take([np.arange(2), np.arange(4)]), [0])) == []


@pytest.mark.parametrize(
    ("sizes", "sides"),
    [
        ({"time": 48, "lat": 25, "lon": 36}, [12, 6, 9]),
        ({"x": 3, "y": 4}, [1, 1]),
        ({"x": 8, "y": 7}, [2, 1]),
        ({"x": 1}, [1]),
    ],
)
def test_a_hole_is_a_quarter_of_every_dimension(sizes: dict[str, int], sides: list[int]) -> None:
    assert hole_sides([axis_of(name, np.arange(float(m))) for name, m in sizes.items()]) == sides


def test_a_hole_has_one_label() -> None:
    sites = text_axis("site", [f"s{i}" for i in range(30)])
    assert hole_sides([sites, axis_of("x", np.arange(30.0))]) == [1, 7]


def test_a_hole_is_one_block_that_is_mostly_observed(cloudy: Grid, cases: list[HiddenCase]) -> None:
    observed = np.isfinite(cloudy.values)
    for case in (one for one in cases if one.kind == HOLE):
        places = np.argwhere(case.hidden)
        low, high = places.min(axis=0), places.max(axis=0) + 1
        assert (high - low <= [12, 6, 9]).all()
        box = tuple(map(slice, low, high))
        np.testing.assert_array_equal(case.hidden[box], observed[box])
        assert case.hidden.sum() >= 12 * 6 * 9 / 2


def place_counts(observed: np.ndarray, sides: list[int]) -> np.ndarray:
    """Observed cells of every place of a hole, by counting each."""
    views = np.lib.stride_tricks.sliding_window_view(observed, sides)
    return np.asarray(views.sum(axis=tuple(range(-observed.ndim, 0))))


@pytest.mark.parametrize(("shape", "sides"), [((13, 9), [3, 2]), ((8, 6, 5), [2, 1, 3])])
@pytest.mark.parametrize("share", [0.1, 0.45, 0.9])
def test_a_hole_lies_where_half_is_observed_or_where_most_is(
    shape: tuple[int, ...], sides: list[int], share: float
) -> None:
    observed = np.random.default_rng(3).random(shape) < share
    counts = place_counts(observed, sides)
    least = min(np.prod(sides) / 2, counts.max())
    found = {hide_hole(observed, sides, seed).tobytes() for seed in range(400)}
    allowed = set()
    for corner in np.argwhere(counts >= least):
        block = np.zeros(shape, bool)
        block[tuple(map(slice, corner, corner + sides))] = True
        allowed.add((block & observed).tobytes())
    assert found <= allowed
    assert len(found) > 0.8 * len(allowed)  # every place may be drawn


def test_a_hole_reaches_the_edges_of_the_grid() -> None:
    observed = np.ones((8, 8), bool)
    holes = [hide_hole(observed, [2, 2], seed) for seed in range(200)]
    assert all(hole.sum() == 4 for hole in holes)
    assert np.all(np.any(holes, axis=0))


def test_a_hole_leaves_something_to_learn_from() -> None:
    field = waves((32, 32), missing=0.0)
    field.values[:] = np.nan
    field.values[5:8, 5:9] = 1.0  # the hole of 8 x 8 covers all of it, and so does a block
    assert [case.kind for case in make_hidden_cases(field, [0])] == [CELLS]
    field.values[31, 31] = 1.0
    assert [case.kind for case in make_hidden_cases(field, [0])] == [CELLS, BLOCKS, HOLE]


def test_a_hole_of_one_cell_is_none() -> None:
    few = Grid(np.zeros((7, 7)), tuple(axis_of(name, np.arange(7.0)) for name in "xy"))
    assert [case.kind for case in make_hidden_cases(few, [0])] == [CELLS, BLOCKS]
    assert [case.kind for case in make_hidden_cases(waves((8, 7), 0.0), [0])] == [*GAP_RACE.kinds]


# Methods ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", GAP_RACE.methods)
def test_the_order_of_coordinates_does_not_matter(method: str) -> None:
    field = waves((7, 9))
    mixed = np.random.default_rng(1).permutation(9)
    plain, turned = (
        next(make_hidden_cases(field.take([np.arange(7), order]), [0]))
        for order in (np.arange(9), mixed)
    )
    np.testing.assert_array_equal(plain.hidden, turned.hidden)
    assert run_filling(method, plain).rmse == run_filling(method, turned).rmse


def test_ours_recovers_a_smooth_field_and_says_how_well() -> None:
    outcome = run_filling("dkrls", next(make_hidden_cases(waves((12, 14)), [0])))
    assert outcome.rmse < 0.01
    assert 0 < outcome.coverage90 <= 1


def test_slices_that_are_lost_are_no_hindrance() -> None:
    field = waves((10, 12))
    field.values[4] = np.nan
    case = next(make_hidden_cases(field, [0]))
    case.hidden[6] = np.isfinite(field.values[6])
    assert run_filling("dkrls", case).rmse < 0.1


def test_ratios_are_to_the_best_of_all_others(cases: list[HiddenCase]) -> None:
    def rows(cover: float, **errors: float) -> list[dict[str, Any]]:
        raced = {"dkrls": CaseResult(errors.pop("dkrls"), 9.0, 1.0, cover)}
        raced |= {name: CaseResult(error, 9.0, 1.0) for name, error in errors.items()}
        return make_case_rows(GAP_RACE, "g", cases[0], raced)

    found = rows(0.8, dkrls=1.0, eof=2.0, nearest=4.0) + rows(0.9, dkrls=8.0, eof=4.0, nearest=1.0)
    assert [row["ratio"] for row in found] == [0.5, 1.0, 2.0, 8.0, 4.0, 1.0]
    summary = summarise_rows(GAP_RACE, found)
    assert (summary["beats_all"], summary["worst"]) == (0.5, 8.0)
    assert summary["geometric_mean"] == pytest.approx(2.0)
    assert (summary["least_coverage90"], summary["most_coverage90"]) == (0.8, 0.9)


def test_a_summary_of_no_rows_is_not_a_number() -> None:
    assert all(np.isnan(value) for value in summarise_filling([]).values())


def test_a_case_is_a_problem_with_its_time() -> None:
    field = waves((6, 9, 11))
    case = next(make_hidden_cases(field, [0]))
    problem = make_filling_problem(case)
    assert problem.time == 0
    np.testing.assert_array_equal(problem.asked, case.hidden)
    np.testing.assert_array_equal(problem.values, case.seen.values)
    turned = Grid(field.values.T, field.axes[::-1])
    assert make_filling_problem(next(make_hidden_cases(turned, [0]))).time == 2


@pytest.mark.parametrize("sides", [[1, 1], [3, 2], [5, 5]])
def test_hiding_stops_at_a_tenth(sides: list[int]) -> None:
    observed = np.random.default_rng(0).random((20, 30)) < 0.8
    hidden = hide_blocks(observed, sides, 3)
    wanted = int(0.1 * observed.sum())
    assert wanted <= hidden.sum() < wanted + np.prod(sides)
    assert not (hidden & ~observed).any()


def test_a_block_lies_around_its_cell_and_inside_the_grid() -> None:
    observed = np.ones(100, bool)  # ten cells are wanted: the first block has enough
    for seed in range(40):
        centre = int(np.random.default_rng(seed).permutation(np.argwhere(observed))[0, 0])
        first = min(max(centre - 5, 0), 100 - 11)
        hidden = np.flatnonzero(hide_blocks(observed, [11], seed))
        np.testing.assert_array_equal(hidden, np.arange(first, first + 11))
