"""The competition of Heaton et al.: its cases, scores, published rows and our place."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.gappy_grids import waves
from scipy.stats import norm

from dkrls_cli.bench.real.heaton import (
    DATASETS,
    LEVEL,
    PUBLISHED,
    SATELLITE,
    SIMULATED,
    VARIABLES,
    CompetitionCase,
    CompetitionScores,
    find_dataset,
    make_competition_case,
    make_competition_rows,
    run_competition,
    score_cells,
    summarise_competition,
)
from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import open_variables
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.fill import fill

SHARED = Path(__file__).parents[4] / "shared" / "data"


def field() -> Grid:
    """A smooth field with some noise, whole."""
    smooth = waves((14, 18), missing=0.0)
    noise = 0.1 * np.random.default_rng(2).standard_normal(smooth.values.shape)
    return replace(smooth, values=smooth.values + noise, name="truth")


def masked(grid: Grid) -> Grid:
    """The field without a block of its cells."""
    values = grid.values.copy()
    values[4:9, 6:12] = np.nan
    return replace(grid, values=values, name="temp")


@pytest.fixture(scope="module")
def case() -> CompetitionCase:
    truth = field()
    train = masked(truth)
    truth.values[:, 6] = np.nan
    return make_competition_case(train, truth, "f.nc")


# Cases --------------------------------------------------------------------------------------------


def test_test_cells_are_missing_for_training_and_have_a_truth(case: CompetitionCase) -> None:
    expected = np.zeros((14, 18), bool)
    expected[4:9, 7:12] = True
    np.testing.assert_array_equal(case.test, expected)


def test_a_file_without_test_cells_is_refused() -> None:
    whole = field()
    with pytest.raises(InputError, match=r"'f.nc' has no test cells.*missing in 'truth'"):
        make_competition_case(whole, whole, "f.nc")
    train = masked(whole)
    with pytest.raises(InputError, match="has no test cells"):
        make_competition_case(train, replace(train, name="truth"), "f.nc")


def test_both_variables_are_on_the_same_dimensions() -> None:
    truth = field()
    turned = replace(truth, values=truth.values.T, axes=truth.axes[::-1])
    with pytest.raises(InputError, match=r"'temp' in 'f.nc' is on lat, lon, 'truth' on lon, lat"):
        make_competition_case(masked(truth), turned, "f.nc")


@pytest.mark.parametrize(
    ("path", "dataset"),
    [
        ("heaton_satellite.nc", SATELLITE),
        ("/data/AllSimulatedTemps.nc", SIMULATED),
        ("satellite/field.nc", None),
        ("satellite_and_simulated.nc", None),
        ("field.nc", None),
    ],
)
def test_the_name_of_a_file_says_which_data_set_it_is(path: str, dataset: str | None) -> None:
    assert find_dataset(path) == dataset


# Scores -------------------------------------------------------------------------------------------


def test_scores_follow_from_the_filled_field(case: CompetitionCase) -> None:
    found = run_competition(case)
    plain = fill(case.train, mask="none", std=True)
    answers, std = (plain[name].values[case.test] for name in ("temp", "temp_std"))
    truth = case.truth[case.test]
    low, high = norm.interval(0.95, answers, std)
    missed = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    assert found.rmse == pytest.approx(math.sqrt(np.mean((answers - truth) ** 2)))
    assert found.mae == pytest.approx(np.mean(np.abs(answers - truth)))
    assert found.interval_score == pytest.approx(np.mean(high - low + 40 * missed))
    assert found.coverage95 == np.mean((low <= truth) & (truth <= high))
    assert 0 < found.crps < found.mae + np.mean(std)
    assert found.seconds > 0
    assert found.note == ""


def test_other_cells_do_not_count(case: CompetitionCase) -> None:
    changed = np.where(case.test, case.truth, 99.0)
    changed[4:9, 6] = np.nan
    ours, theirs = run_competition(case), run_competition(replace(case, truth=changed))
    assert replace(ours, seconds=0.0) == replace(theirs, seconds=0.0)


def test_errors_as_promised_have_the_best_scores() -> None:
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(20000)
    right, narrow, wide = (
        score_cells(truth, np.zeros(20000), np.full(20000, variance), 1.0)
        for variance in (1.0, 0.2, 5.0)
    )
    assert right.coverage95 == pytest.approx(LEVEL, abs=0.005)
    assert narrow.coverage95 < right.coverage95 < wide.coverage95
    for other in (narrow, wide):
        assert right.crps < other.crps
        assert right.interval_score < other.interval_score
        assert (right.rmse, right.mae) == (other.rmse, other.mae)


def test_test_cells_beyond_the_data_are_told() -> None:
    truth = field()
    train = masked(truth)
    train.values[-1] = np.nan  # the last latitude has no data, so answers would be extrapolated
    found = run_competition(make_competition_case(train, truth, "f.nc"))
    assert found.note == "18 of 48 test cells are not filled"
    assert math.isnan(found.rmse)
    assert math.isnan(found.crps)


# Published rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", DATASETS)
def test_published_scores_are_plausible(dataset: str) -> None:
    """Relations that hold for any scores: a slip of a digit would break most of them."""
    assert len(PUBLISHED[dataset]) == 12
    for name, row in PUBLISHED[dataset].items():
        assert row.crps < row.mae < row.rmse, name
        assert 0 < row.coverage95 <= 1, name
        assert row.interval_score > 2 * row.rmse, name
        assert math.isnan(row.seconds), name
    assert list(PUBLISHED[SATELLITE]) == list(PUBLISHED[SIMULATED])


def test_published_errors_are_those_of_the_paper() -> None:
    errors = {
        name: (PUBLISHED[SATELLITE][name].rmse, PUBLISHED[SIMULATED][name].rmse)
        for name in ("SPDE", "LatticeKrig", "Periodic embedding", "Gapfill", "LAGP")
    }
    assert list(errors.values()) == [
        (1.53, 0.86),
        (1.68, 0.87),
        (1.79, 0.91),
        (1.86, 1.00),
        (2.08, 1.11),
    ]
    best = PUBLISHED[SATELLITE]["SPDE"]
    assert (best.mae, best.crps, best.interval_score, best.coverage95) == (1.10, 0.83, 8.85, 0.97)


OURS = CompetitionScores(1.7, 1.2, 0.9, 9.0, 0.9, 12.0)


def test_rows_are_sorted_by_rmse_with_ours_among_them() -> None:
    rows = make_competition_rows("a.nc", SATELLITE, OURS)
    assert len(rows) == 13
    assert [row["rmse"] for row in rows] == sorted(row["rmse"] for row in rows)
    (ours,) = (row for row in rows if row["source"] == "measured")
    assert (ours["method"], ours["seconds"], rows.index(ours)) == ("dkrls", 12.0, 4)
    for row in rows:
        assert (row["file"], row["dataset"]) == ("a.nc", SATELLITE)
        if row is not ours:
            published = PUBLISHED[SATELLITE][row["method"]]
            assert (row["mae"], row["crps"]) == (published.mae, published.crps)
            assert row["source"] == "published"


def test_without_a_data_set_there_is_only_our_row() -> None:
    (row,) = make_competition_rows("a.nc", None, OURS)
    assert (row["method"], row["dataset"]) == ("dkrls", None)
    assert summarise_competition([row]) == {
        "file": "a.nc",
        "dataset": None,
        "place": None,
        "methods": 1,
    }


@pytest.mark.parametrize(
    ("rmse", "place"), [(1.0, 1), (1.53, 1), (1.54, 2), (9.0, 13), (math.nan, None)]
)
def test_our_place_is_counted_by_rmse(rmse: float, place: int | None) -> None:
    rows = make_competition_rows("a.nc", SATELLITE, replace(OURS, rmse=rmse))
    summary = summarise_competition(rows)
    assert (summary["place"], summary["methods"]) == (place, 13)
    if place is None:
        assert rows[-1]["method"] == "dkrls"


# The data of the competition ----------------------------------------------------------------------


def shared(name: str) -> CompetitionCase:
    path = SHARED / f"heaton_{name}.nc"
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{path.name}; tests above have the same on a made field")
    train, truth = (source.grid() for source in open_variables([str(path)], VARIABLES))
    return make_competition_case(train, truth, str(path))


@pytest.mark.parametrize(("name", "test"), [(SATELLITE, 42740), (SIMULATED, 44431)])
def test_the_data_of_the_competition_has_its_cells(name: str, test: int) -> None:
    case = shared(name)
    assert case.train.values.shape == (300, 500)
    assert (case.train.observed.sum(), case.test.sum()) == (105569, test)


def test_a_made_field_of_the_same_shape_has_its_cells() -> None:
    """The twin of the test before, without the files."""
    truth: Any = waves((300, 500), missing=0.0)
    train = masked(truth)
    case = make_competition_case(train, truth, "f.nc")
    assert (case.train.observed.sum(), case.test.sum()) == (150000 - 30, 30)


def test_a_part_of_the_satellite_field_is_filled_whole() -> None:
    whole, part = shared(SATELLITE), [np.arange(100, 180), np.arange(200, 300)]
    found = run_competition(CompetitionCase(whole.train.take(part), whole.truth[np.ix_(*part)]))
    assert found.note == ""
    assert 1.0 < found.rmse < 4.0
    assert found.crps < found.mae < found.rmse
    assert 0.5 < found.coverage95 < 1.0
