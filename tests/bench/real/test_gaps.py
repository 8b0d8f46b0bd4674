"""The race on grids with gaps: what is hidden, who fills it, and what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_files import grid
from scipy.interpolate import LinearNDInterpolator
from scipy.ndimage import binary_opening
from shell import ROOT, assert_same_rows, dkrls, refusal

from dkrls_cli.bench.real.fillers import FILLERS, Holes, eof, per_axis
from dkrls_cli.bench.real.gaps import (
    BLOCKS,
    CELLS,
    GAPS,
    Gappy,
    attempt,
    block_of,
    cases_of,
    holes_of,
)
from dkrls_cli.bench.real.race import Outcome, rows_of, summary_of
from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid

CLOUDY = ROOT / "sample_data" / "ocean_gaps.nc"
TIME = {"units": "days since 2001-01-01"}


def waves(shape: tuple[int, ...], missing: float = 0.2) -> Grid:
    """A smooth field without some of its cells."""
    rng = np.random.default_rng(5)
    places = np.meshgrid(*map(np.arange, shape), indexing="ij")
    values = np.sin(sum((i + 1) * p / 9 for i, p in enumerate(places)))
    values[rng.random(shape) < missing] = np.nan
    names = ("time", "lat", "lon")[-len(shape) :]
    return Grid(
        values, tuple(axis_of(n, np.arange(float(m))) for n, m in zip(names, shape, strict=True))
    )


def holes(values: Any, asked: Any = None, time: int = 0) -> Holes:
    given = np.asarray(values, np.float64)
    return Holes(given, np.isnan(given) if asked is None else asked, time)


@pytest.fixture(scope="module")
def cloudy() -> Grid:
    return open_source([str(CLOUDY)]).grid()


@pytest.fixture(scope="module")
def cases(cloudy: Grid) -> list[Gappy]:
    return list(cases_of(cloudy, [0, 1]))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One race in its three forms."""
    folder = tmp_path_factory.mktemp("race")
    axes = {"time": (np.arange(9.0), TIME), "x": (np.arange(8.0), {})}
    field = {"t": (("time", "x"), waves((9, 8)).values, {})}
    path = grid(folder / "g.nc", axes, extra=field)
    words = ["bench", "gaps", path]
    run = dkrls(*words, "--json", "--csv", folder / "rows.csv")
    table = dkrls(*words, COLUMNS="100").stdout
    return {**json.loads(run.stdout), "csv": (folder / "rows.csv").read_text(), "table": table}


# What is hidden -----------------------------------------------------------------------------------


def test_a_tenth_of_the_observed_cells_is_hidden(cloudy: Grid, cases: list[Gappy]) -> None:
    assert [(case.kind, case.seed) for case in cases] == [
        (CELLS, 0),
        (BLOCKS, 0),
        (CELLS, 1),
        (BLOCKS, 1),
    ]
    observed = np.isfinite(cloudy.values)
    for case in cases:
        assert not (case.hidden & ~observed).any()
        np.testing.assert_array_equal(np.isfinite(case.seen.values), observed & ~case.hidden)
        share = case.hidden.sum() / observed.sum()
        assert share == pytest.approx(0.1, abs=1e-4 if case.kind == CELLS else 0.003)


def test_blocks_are_whole_and_cells_are_scattered(cloudy: Grid, cases: list[Gappy]) -> None:
    assert block_of(cloudy.axes) == [3, 5, 5]
    missing = np.isnan(cloudy.values)
    for case in cases:
        whole = binary_opening(case.hidden | missing, np.ones((3, 5, 5)))
        assert (case.kind == BLOCKS) == (not (case.hidden & ~whole).any())


def test_equal_seeds_hide_equal_cells(cloudy: Grid, cases: list[Gappy]) -> None:
    again = list(cases_of(cloudy, [0, 1]))
    for one, other in zip(cases, again, strict=True):
        np.testing.assert_array_equal(one.hidden, other.hidden)
    assert not np.array_equal(cases[0].hidden, cases[2].hidden)
    assert not np.array_equal(cases[1].hidden, cases[3].hidden)


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
    assert block_of([axis_of(name, np.arange(float(m))) for name, m in sizes.items()]) == sides


def test_labels_have_no_neighbours() -> None:
    sites = text_axis("site", [f"s{i}" for i in range(30)])
    assert block_of([sites, axis_of("x", np.arange(30.0))]) == [1, 5]


def test_few_cells_make_few_cases() -> None:
    small = Grid(np.zeros((2, 5)), (axis_of("x", [0.0, 1.0]), axis_of("y", np.arange(5.0))))
    assert [case.kind for case in cases_of(small, [0])] == [CELLS]
    assert list(cases_of(small.take([np.arange(2), np.arange(4)]), [0])) == []


# Who fills it -------------------------------------------------------------------------------------


def test_a_series_is_filled_along_itself() -> None:
    nan = np.nan
    values = [nan, 1.0, nan, nan, 4.0, 6.0, nan]
    np.testing.assert_allclose(per_axis(holes(values)), [1.0, 2.0, 3.0, 6.0])


def test_per_axis_is_the_mean_over_dimensions_that_reach() -> None:
    case = next(cases_of(waves((6, 9, 11)), [0]))
    seen = case.seen.values
    along = []
    for axis in range(3):
        moved = np.moveaxis(seen, axis, -1).copy()
        for fibre in moved.reshape(-1, moved.shape[-1]):
            known = np.flatnonzero(np.isfinite(fibre))
            if known.size:
                every = np.arange(fibre.size)
                fibre[:] = np.interp(every, known, fibre[known], np.nan, np.nan)
        along.append(np.moveaxis(moved, -1, axis)[case.hidden])
    reached = np.isfinite(along).any(axis=0)
    assert reached.any()
    answers = per_axis(holes_of(case))
    np.testing.assert_allclose(answers[reached], np.nanmean(np.array(along)[:, reached], axis=0))


def test_nearest_is_the_nearest() -> None:
    case = list(cases_of(waves((7, 8, 9), missing=0.5), [0]))[1]
    seen = case.seen.values
    known, asked = np.argwhere(np.isfinite(seen)), np.argwhere(case.hidden)
    away = ((asked[:, None] - known[None]) ** 2).sum(axis=2)
    answers = FILLERS["nearest"](holes_of(case))
    for row, answer in zip(away, answers, strict=True):
        assert answer in seen[tuple(known[row == row.min()].T)]


def test_griddata_is_linear_inside_the_hull_and_nearest_outside() -> None:
    case = next(cases_of(waves((7, 8)), [0]))
    seen = case.seen.values
    seen[0] = np.nan
    asked = case.hidden | (np.arange(7) == 0)[:, None]
    known = np.isfinite(seen)
    linear = LinearNDInterpolator(np.argwhere(known), seen[known])(np.argwhere(asked))
    given = holes(seen, asked)
    expected = np.where(np.isnan(linear), FILLERS["nearest"](given), linear)
    np.testing.assert_allclose(FILLERS["griddata"](given), expected)
    row = np.where(np.arange(7)[:, None] == 3, seen, np.nan)  # in a line: there is no hull
    flat = holes(row, asked & np.isnan(row))
    np.testing.assert_array_equal(FILLERS["griddata"](flat), FILLERS["nearest"](flat))


@pytest.mark.parametrize("time", [0, 1, 2])
def test_eof_recovers_what_has_few_modes(time: int) -> None:
    rng = np.random.default_rng(2)
    space, modes = rng.standard_normal((2, 60)), rng.standard_normal((2, 25)) * [[3.0], [1.0]]
    truth = 7.0 + np.moveaxis((space.T @ modes).reshape(6, 10, 25), -1, time)
    seen = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    answers = eof(holes(seen, time=time))
    asked = truth[np.isnan(seen)]
    assert np.sqrt(np.mean((answers - asked) ** 2)) < 0.01 * asked.std()


def test_eof_is_at_the_mean_where_nothing_was_ever_seen() -> None:
    values = waves((9, 4, 5)).values
    values[:, 2, 3] = np.nan
    asked = np.zeros(values.shape, bool)
    asked[:, 2, 3] = True
    np.testing.assert_allclose(eof(holes(values, asked)), np.nanmean(values))


@pytest.mark.parametrize("method", FILLERS)
@pytest.mark.parametrize("shape", [(30,), (9, 12), (4, 5, 6)])
def test_every_method_answers_every_cell(method: str, shape: tuple[int, ...]) -> None:
    for case in cases_of(waves(shape), [0]):
        answers = FILLERS[method](holes_of(case))
        assert answers.shape == (case.hidden.sum(),)
        assert np.isfinite(answers).all()


@pytest.mark.parametrize("method", GAPS.methods)
def test_the_order_of_coordinates_does_not_matter(method: str) -> None:
    field = waves((7, 9))
    mixed = np.random.default_rng(1).permutation(9)
    plain, turned = (
        next(cases_of(field.take([np.arange(7), order]), [0])) for order in (np.arange(9), mixed)
    )
    np.testing.assert_array_equal(plain.hidden, turned.hidden)
    assert attempt(method, plain).rmse == attempt(method, turned).rmse


def test_ours_recovers_a_smooth_field_and_says_how_well() -> None:
    outcome = attempt("dkrls", next(cases_of(waves((12, 14)), [0])))
    assert outcome.rmse < 0.01
    assert 0 < outcome.coverage90 <= 1


def test_slices_that_are_lost_are_no_hindrance() -> None:
    field = waves((10, 12))
    field.values[4] = np.nan
    case = next(cases_of(field, [0]))
    case.hidden[6] = np.isfinite(field.values[6])
    assert attempt("dkrls", case).rmse < 0.1


# What is told -------------------------------------------------------------------------------------


def test_ratios_are_to_the_best_of_all_others(cases: list[Gappy]) -> None:
    def rows(cover: float, **errors: float) -> list[dict[str, Any]]:
        raced = {"dkrls": Outcome(errors.pop("dkrls"), 9.0, 1.0, cover)}
        raced |= {name: Outcome(error, 9.0, 1.0) for name, error in errors.items()}
        return rows_of(GAPS, "g", cases[0], raced)

    found = rows(0.8, dkrls=1.0, eof=2.0, nearest=4.0) + rows(0.9, dkrls=8.0, eof=4.0, nearest=1.0)
    assert [row["ratio"] for row in found] == [0.5, 1.0, 2.0, 8.0, 4.0, 1.0]
    summary = summary_of(GAPS, found)
    assert (summary["beats_all"], summary["worst"]) == (0.5, 8.0)
    assert summary["geometric_mean"] == pytest.approx(2.0)
    assert (summary["least_coverage90"], summary["most_coverage90"]) == (0.8, 0.9)


def test_json_has_a_row_per_case_and_method(told: dict[str, Any]) -> None:
    rows = told["rows"]
    assert [row["method"] for row in rows] == list(GAPS.methods) * 2
    assert [row["hidden"] for row in rows] == [CELLS] * 5 + [BLOCKS] * 5
    for row in rows:
        assert row["seed"] == 0
        assert row["max_error"] >= row["rmse"] > 0
        assert row["seconds"] > 0
        assert (row["coverage90"] is None) == (row["method"] != "dkrls")
    for start in (0, 5):
        best = min(row["rmse"] for row in rows[start + 1 : start + 5])
        assert rows[start]["ratio"] == pytest.approx(rows[start]["rmse"] / best)


def test_csv_and_table_say_the_same_as_json(told: dict[str, Any]) -> None:
    assert_same_rows(told["csv"], told["rows"])
    line = next(x for x in told["table"].splitlines() if x.startswith(f"{BLOCKS}, seed 0"))
    errors = [float(f"{row['rmse']:.3g}") for row in told["rows"][5:]]
    assert line.split()[3:8] == [f"{error:.4g}" for error in errors]
    assert "share better than every rival" in told["table"]


def test_a_grid_without_gaps_races_as_well(tmp_path: Path) -> None:
    path = grid(tmp_path / "g.nc", {"x": (np.arange(12.0), {})})
    run = dkrls("bench", "gaps", path, "--methods", "nearest,per-axis", "--seeds", 2, "--json")
    found = json.loads(run.stdout)["rows"]
    assert [row["seed"] for row in found] == [0] * 4 + [1] * 4
    assert json.loads(run.stdout)["summary"]["beats_all"] is None


def test_wrong_data_and_words_are_refused(tmp_path: Path) -> None:
    nothing = {"t": (("x",), np.full(20, np.nan), {})}
    empty = grid(tmp_path / "e.nc", {"x": (np.arange(20.0), {})}, extra=nothing)
    assert "Expected ten observed cells at least." in refusal("bench", "gaps", empty)
    assert "There is no file" in refusal("bench", "gaps", tmp_path / "absent.nc")
    unknown = refusal("bench", "gaps", CLOUDY, "--methods", "linear", code=2)
    assert "Choose of dkrls, per-axis, nearest, griddata, eof." in unknown
    assert "--time-limit 0" in refusal("bench", "gaps", CLOUDY, "--time-limit", 0, code=2)
