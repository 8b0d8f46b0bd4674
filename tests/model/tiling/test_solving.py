"""Settings of tiles, and solves of single tiles."""

from dataclasses import replace

import numpy as np
import pytest
from gap_grids import dense_answers
from tiled_grids import daily, settings

from dkrls_cli.errors import ConvergenceError, InputError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.tiling.solving import choose_model, least_bar
from dkrls_cli.model.training.lost import drop_lost_slices

GIVEN = settings({"lat": 3.0, "lon": 3.0, "time": 4.0}, constant=1.0)


def model_of(grid, **others):
    plan = plan_fit(grid.axes, GIVEN, complete=False)
    usual = {"bounds": None, "single": False, "accept_inexact": False, "std": True}
    mean = float(np.nanmean(grid.values))
    return choose_model(grid, plan, grid.axes, (0,), mean, **{**usual, **others})


@pytest.fixture(scope="module")
def grid():
    return drop_lost_slices(as_grid(daily(20, 4, 5)))[0]


def test_a_tile_is_solved_as_a_dense_system_is(grid):
    model = model_of(grid)
    solved = model.solve(grid.values, grid.axes, None)
    kernels = model.choice.setting.kernels
    axes = [axis.numbers for axis in grid.axes]
    exact = dense_answers(grid.values, axes, kernels, 0.01, axes, model.choice.mean)
    missing = np.isnan(grid.values)
    assert np.abs(solved.answers - exact)[missing].max() < 1e-6
    assert np.array_equal(solved.answers[~missing], grid.values[~missing])


def test_standard_errors_are_those_of_a_whole_grid(grid):
    whole = fill_grid(grid, GIVEN, mask="none", std=True)
    solved = model_of(grid).solve(grid.values, grid.axes, None)
    rows = [np.arange(3, 9), np.arange(4), np.arange(1, 5)]
    assert np.allclose(solved.std(rows), whole.std[np.ix_(*rows)], rtol=1e-6)
    near = solved.near_bars()
    assert near.shape == grid.values.shape
    assert (near[np.isnan(grid.values)] > 0).all()


def test_bounds_and_single_precision_hold(grid):
    low = float(np.nanmin(grid.values))
    bounded = model_of(grid, bounds=Bounds(low), single=True)
    solved = bounded.solve(grid.values, grid.axes, None)
    missing = np.isnan(grid.values)
    new = solved.answers[missing]
    assert np.array_equal(new, new.astype("f4"))
    free = model_of(grid).solve(grid.values, grid.axes, None)
    rows = [np.arange(size) for size in grid.values.shape]
    assert (solved.std(rows) <= free.std(rows) + 1e-12).all()


def test_solves_that_do_not_end_are_refused_or_accepted(grid, monkeypatch):
    monkeypatch.setattr("dkrls_cli.model.tiling.solving.SOLVE_LIMIT", 1)
    with pytest.raises(ConvergenceError, match="solved for to"):
        model_of(grid).solve(grid.values, grid.axes, None)
    model_of(grid, accept_inexact=True).solve(grid.values, grid.axes, None)


def test_a_part_with_too_little_data_is_refused(grid):
    few = grid.take([np.arange(20)[:5], np.arange(1), np.arange(5)])
    plan = plan_fit(grid.axes, GIVEN, complete=False)
    others = {"bounds": None, "single": False, "accept_inexact": False, "std": False}
    with pytest.raises(InputError, match="too little data"):
        choose_model(few, plan, grid.axes, (0,), 0.0, **others)


def test_the_least_bar_is_above_what_a_solve_leaves(grid):
    choice = (model := model_of(grid)).choice
    least = max(10 * choice.tolerance * choice.spread, 1e-9 * abs(choice.mean))
    assert least_bar(model) == pytest.approx(least)
    flat = replace(model, choice=replace(choice, spread=0.0, mean=0.0))
    assert least_bar(flat) > 0
