"""Interpolators and the default fit on held-out cells, against direct calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator, make_interp_spline
from shell import ROOT

from dkrls_cli import fit
from dkrls_cli.bench.real.cases import ALTERNATE, RANDOM, HeldOutCase, make_held_out_cases
from dkrls_cli.bench.real.interpolation import (
    make_interpolation_problem,
    run_interpolation,
    summarise_interpolation,
)
from dkrls_cli.bench.rivals.interpolators import INTERPOLATORS, move_first
from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid

OCEAN = ROOT / "sample_data" / "ocean.nc"
X, LAT, LON = np.arange(4.0), np.linspace(60.0, -60.0, 13), np.arange(0.0, 130.0, 10.0)


def made(values: Any, **coordinates: Any) -> Grid:
    return Grid(values, tuple(axis_of(name, c) for name, c in coordinates.items()))


def wavy(*coordinates: Any) -> np.ndarray:
    parts = np.meshgrid(*coordinates, indexing="ij")
    return np.sin(sum((i + 1) * p / 30 for i, p in enumerate(parts))) + parts[0] / 9


def case_of(grid: Grid, kind: str = RANDOM) -> HeldOutCase:
    return next(case for case in make_held_out_cases(grid, [0]) if case.kind == kind)


@pytest.fixture(scope="module")
def ocean() -> Grid:
    return open_source([str(OCEAN)]).grid()


@pytest.mark.parametrize("kind", [RANDOM, ALTERNATE])
def test_rivals_answer_as_direct_calls_do(ocean: Grid, kind: str) -> None:
    """Every slice by a call of its own, with nothing of the races in between."""
    case = case_of(ocean, kind)
    nodes = [axis.numbers for axis in case.train.axes]
    axes = [axis.numbers for axis in case.truth.axes]
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    flip = np.s_[:, ::-1, :]  # latitude descends
    rising = [nodes[0], nodes[1][::-1], nodes[2]]
    linear = RegularGridInterpolator(rising, case.train.values[flip])(mesh)
    truth = case.truth.values
    for name in ("linear", "xarray"):
        error = np.sqrt(np.mean((linear - truth) ** 2))
        assert run_interpolation(name, case).rmse == pytest.approx(error, rel=1e-9)
    for degree in (3, 5):
        values = case.train.values[flip].astype(np.float64)
        for axis, (node, query) in enumerate(zip(rising, axes, strict=True)):
            values = make_interp_spline(node, values, k=degree, axis=axis)(query)
        outcome = run_interpolation(f"spline{degree}", case)
        assert outcome.rmse == pytest.approx(np.sqrt(np.mean((values - truth) ** 2)), rel=1e-9)
        assert outcome.max_error == pytest.approx(np.abs(values - truth).max(), rel=1e-9)


def test_cubic_is_that_of_scipy_slice_by_slice() -> None:
    field = made(wavy(X, LAT, LON), x=X, lat=LAT, lon=LON)
    case = case_of(field, ALTERNATE)
    _, lat, lon = (axis.numbers for axis in case.train.axes)
    asked = np.stack(
        np.meshgrid(*[axis.numbers for axis in case.query_axes[1:]], indexing="ij"), axis=-1
    )
    answers = [
        RegularGridInterpolator((lat[::-1], lon), part[::-1], method="cubic")(asked)
        for part in case.train.values
    ]
    error = np.sqrt(np.mean((np.array(answers) - case.truth.values) ** 2))
    assert run_interpolation("cubic", case).rmse == pytest.approx(error, rel=1e-6)


def test_ours_is_the_default_fit(ocean: Grid) -> None:
    case = case_of(ocean)
    model = fit(case.train)
    at = {axis.name: axis.values for axis in case.truth.axes}
    error = model.predict(**at).values - case.truth.values
    outcome = run_interpolation("dkrls", case)
    assert outcome.rmse == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    inside = np.abs(error) <= 1.6448536269514722 * model.std(**at).values
    assert outcome.coverage90 == pytest.approx(inside.mean())


@pytest.mark.parametrize("method", INTERPOLATORS)
@pytest.mark.parametrize("order", ["ascending", "descending", "any"])
def test_a_linear_field_is_exact_for_every_rival(method: str, order: str) -> None:
    x, y = np.linspace(0, 3, 15), np.linspace(-2, 7, 12)
    order_of = {"ascending": np.arange(12), "descending": np.arange(12)[::-1]}
    y = y[order_of.get(order, np.random.default_rng(3).permutation(12))]
    for case in make_held_out_cases(made(1 + 2 * x[:, None] + 3 * y, x=x, y=y), [0]):
        assert {y.min(), y.max()} <= set(case.train.axes[1].numbers)
        assert run_interpolation(method, case).max_error < (1e-3 if method == "cubic" else 1e-12)


def test_answers_come_back_in_the_order_of_the_truth(ocean: Grid) -> None:
    case = case_of(ocean, ALTERNATE)
    truth = move_first(case.truth.values, case.held)
    assert truth.shape == (12, 17, 48)
    np.testing.assert_array_equal(truth[3, 5], case.truth.values[:, 3, 5])
    assert make_interpolation_problem(case).values.shape == (13, 19, 48)


def test_a_method_with_too_few_samples_is_skipped() -> None:
    case = case_of(made(wavy(np.arange(5.0), np.arange(30.0)), x=np.arange(5.0), y=np.arange(30.0)))
    assert case.samples == 4
    assert run_interpolation("spline5", case).note == "skipped: needs 6 samples, x has 4"
    assert run_interpolation("spline3", case).note == ""


def test_ratios_up_to_two_percent_above_the_best_count_as_close() -> None:
    rows = [
        {"ratio": ratio, "samples": samples}
        for ratio, samples in ((0.5, 9), (1.02, 10), (1.021, 11), (3.0, 9))
    ]
    assert summarise_interpolation(rows) == {
        "within_2_percent": 0.5,
        "worst_of_ten_samples": 1.021,
    }
    assert all(np.isnan(value) for value in summarise_interpolation([]).values())
