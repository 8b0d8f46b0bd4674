"""Races: what is held out, that rivals are who they say, and what is told of them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import EAST, NORTH, grid
from scipy.interpolate import RegularGridInterpolator, make_interp_spline
from shell import ROOT, assert_same_rows, dkrls, refusal, spawn

from dkrls_cli import fit
from dkrls_cli.bench import speed
from dkrls_cli.bench.machine import machine
from dkrls_cli.bench.real.between import REAL, attempt, interpolation
from dkrls_cli.bench.real.cases import ALTERNATE, RANDOM, Case, cases_of, horizontal
from dkrls_cli.bench.real.race import Outcome, rows_of, summary_of
from dkrls_cli.bench.rivals import RIVALS, laid_out
from dkrls_cli.bench.speed import Measure
from dkrls_cli.bench.worker import FailedError, OutOfTimeError, Worker
from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid

OCEAN = ROOT / "sample_data" / "ocean.nc"
X, LAT, LON = np.arange(4.0), np.linspace(60.0, -60.0, 13), np.arange(0.0, 130.0, 10.0)


def made(values: Any, **coordinates: Any) -> Grid:
    return Grid(values, tuple(axis_of(name, c) for name, c in coordinates.items()))


def wavy(*coordinates: Any) -> np.ndarray:
    parts = np.meshgrid(*coordinates, indexing="ij")
    return np.sin(sum((i + 1) * p / 30 for i, p in enumerate(parts))) + parts[0] / 9


def case_of(grid: Grid, kind: str = RANDOM) -> Case:
    return next(case for case in cases_of(grid, [0]) if case.kind == kind)


@pytest.fixture(scope="module")
def ocean() -> Grid:
    return open_source([str(OCEAN)]).grid()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One race in its three forms."""
    folder = tmp_path_factory.mktemp("race")
    run = dkrls("bench", "real", OCEAN, "--seeds", 1, "--json", "--csv", folder / "rows.csv")
    table = dkrls("bench", "real", OCEAN, "--seeds", 1, COLUMNS="100").stdout
    return {**json.loads(run.stdout), "csv": (folder / "rows.csv").read_text(), "table": table}


# What is held out ---------------------------------------------------------------------------------


def test_a_fifth_of_every_dimension_is_held_out_and_the_edges_are_kept(ocean: Grid) -> None:
    cases = [case for case in cases_of(ocean, range(3)) if case.kind == RANDOM]
    assert [case.seed for case in cases] == [0, 1, 2]
    for case in cases:
        assert case.held == (0, 1, 2)
        assert case.truth.values.shape == (10, 5, 7)
        for whole, known in zip(ocean.axes, case.train.axes, strict=True):
            assert {whole.numbers[0], whole.numbers[-1]} <= set(known.numbers)
    assert not np.array_equal(cases[0].queries[0], cases[1].queries[0])


def test_every_second_latitude_and_longitude_is_held_out_and_all_else_kept(ocean: Grid) -> None:
    case = case_of(ocean, ALTERNATE)
    assert (case.held, case.seed) == ((1, 2), None)
    values = ocean.values
    np.testing.assert_array_equal(case.truth.values, values[:, 1:-1:2][:, :, 1:-1:2])
    np.testing.assert_array_equal(case.queries[0], ocean.axes[0].numbers)
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
def test_what_counts_as_horizontal(dims: tuple[str, ...], thinned: tuple[str, ...]) -> None:
    axes = [axis_of(dim, np.arange(5.0)) for dim in dims]
    assert tuple(axis.name for axis in horizontal(axes)) == thinned


def test_units_tell_latitude_whatever_its_name() -> None:
    axes = [axis_of("a", X, NORTH), axis_of("b", X, EAST), axis_of("c", X), axis_of("d", X)]
    assert [axis.name for axis in horizontal(axes)] == ["a", "b"]


def test_labels_and_short_dimensions_are_kept() -> None:
    sites = text_axis("site", [f"s{i}" for i in range(10)])
    axes = (sites, axis_of("pair", np.arange(2.0)), axis_of("x", np.arange(12.0)))
    cases = list(cases_of(Grid(np.zeros((10, 2, 12)), axes), [0]))
    assert [case.held for case in cases] == [(2,), (2,)]
    assert list(cases_of(Grid(np.zeros((10, 2)), axes[:2]), [0])) == []


# Who races ----------------------------------------------------------------------------------------


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
        assert attempt(name, case).rmse == pytest.approx(error, rel=1e-9)
    for degree in (3, 5):
        values = case.train.values[flip].astype(np.float64)
        for axis, (node, query) in enumerate(zip(rising, axes, strict=True)):
            values = make_interp_spline(node, values, k=degree, axis=axis)(query)
        outcome = attempt(f"spline{degree}", case)
        assert outcome.rmse == pytest.approx(np.sqrt(np.mean((values - truth) ** 2)), rel=1e-9)
        assert outcome.max_error == pytest.approx(np.abs(values - truth).max(), rel=1e-9)


def test_cubic_is_that_of_scipy_slice_by_slice() -> None:
    field = made(wavy(X, LAT, LON), x=X, lat=LAT, lon=LON)
    case = case_of(field, ALTERNATE)
    _, lat, lon = (axis.numbers for axis in case.train.axes)
    asked = np.stack(np.meshgrid(*case.queries[1:], indexing="ij"), axis=-1)
    answers = [
        RegularGridInterpolator((lat[::-1], lon), part[::-1], method="cubic")(asked)
        for part in case.train.values
    ]
    error = np.sqrt(np.mean((np.array(answers) - case.truth.values) ** 2))
    assert attempt("cubic", case).rmse == pytest.approx(error, rel=1e-6)


def test_ours_is_the_default_fit(ocean: Grid) -> None:
    case = case_of(ocean)
    model = fit(case.train)
    at = {axis.name: axis.values for axis in case.truth.axes}
    error = model.predict(**at).values - case.truth.values
    outcome = attempt("dkrls", case)
    assert outcome.rmse == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    inside = np.abs(error) <= 1.6448536269514722 * model.std(**at).values
    assert outcome.coverage90 == pytest.approx(inside.mean())


def test_xarrays_cubic_is_one_of_those_that_race() -> None:
    for kind, held in ((RANDOM, "cubic"), (ALTERNATE, "spline3")):
        coordinates = {"lat": LAT, "lon": LON} if held == "cubic" else {"time": X, "lat": LAT}
        case = case_of(made(wavy(*coordinates.values()), **coordinates), kind)
        given = interpolation(case)
        dims = [f"d{i}" for i in range(len(given.nodes))]
        array = xr.DataArray(given.values, dict(zip(dims, given.nodes, strict=True)), [*dims, "r"])
        answers = array.interp(dict(zip(dims, given.queries, strict=True)), method="cubic")
        np.testing.assert_allclose(answers, RIVALS[held].answer(given), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", RIVALS)
@pytest.mark.parametrize("order", ["ascending", "descending", "any"])
def test_a_linear_field_is_exact_for_every_rival(method: str, order: str) -> None:
    x, y = np.linspace(0, 3, 15), np.linspace(-2, 7, 12)
    order_of = {"ascending": np.arange(12), "descending": np.arange(12)[::-1]}
    y = y[order_of.get(order, np.random.default_rng(3).permutation(12))]
    for case in cases_of(made(1 + 2 * x[:, None] + 3 * y, x=x, y=y), [0]):
        assert {y.min(), y.max()} <= set(case.train.axes[1].numbers)
        assert attempt(method, case).max_error < (1e-3 if method == "cubic" else 1e-12)


def test_answers_come_back_in_the_order_of_the_truth(ocean: Grid) -> None:
    case = case_of(ocean, ALTERNATE)
    truth = laid_out(case.truth.values, case.held)
    assert truth.shape == (12, 17, 48)
    np.testing.assert_array_equal(truth[3, 5], case.truth.values[:, 3, 5])
    assert interpolation(case).values.shape == (13, 19, 48)


# Ratios -------------------------------------------------------------------------------------------


def outcomes(**errors: float) -> dict[str, Outcome]:
    return {name: Outcome(rmse=error, seconds=1.0) for name, error in errors.items()}


def test_ratios_are_to_the_best_reference_in_hindsight(ocean: Grid) -> None:
    case = case_of(ocean)
    raced = outcomes(dkrls=3.0, linear=8.0, spline3=4.0, spline5=6.0, cubic=1.0)
    ratios = {row["method"]: row["ratio"] for row in rows_of(REAL, "g", case, raced)}
    assert ratios == {"dkrls": 0.75, "linear": 2.0, "spline3": 1.0, "spline5": 1.5, "cubic": 0.25}


def test_a_field_that_all_answer_has_ratio_one() -> None:
    case = case_of(made(np.full((12, 12), 7.0), x=np.arange(12.0), y=np.arange(12.0)))
    rows = rows_of(
        REAL, "g", case, {name: attempt(name, case) for name in ("dkrls", *REAL.references)}
    )
    assert [row["ratio"] for row in rows] == [1.0] * 4


def test_the_summary_counts_what_was_compared(ocean: Grid) -> None:
    short = case_of(made(np.eye(6), x=np.arange(6.0), y=np.arange(6.0)))
    rows = [
        *rows_of(REAL, "a", case_of(ocean), outcomes(dkrls=1.0, linear=2.0)),
        *rows_of(REAL, "b", short, outcomes(dkrls=8.0, linear=4.0)),
        *rows_of(
            REAL, "c", short, {"dkrls": Outcome(note="stopped"), "linear": Outcome(1.0, 1.0, 3.0)}
        ),
    ]
    summary = summary_of(REAL, rows)
    assert (summary["cases"], summary["compared"], summary["within_2_percent"]) == (3, 2, 0.5)
    assert summary["geometric_mean"] == pytest.approx(1.0)
    assert (summary["worst"], summary["worst_of_ten_samples"]) == (2.0, 0.5)
    assert [row["finished"] for row in summary["methods"]] == [2, 3]


# Time limits --------------------------------------------------------------------------------------


def test_a_worker_stops_what_takes_too_long_and_goes_on() -> None:
    with Worker(time.monotonic) as worker:
        start = time.monotonic()
        with pytest.raises(OutOfTimeError, match=r"stopped after 0\.2 s"):
            worker.run(0.2, time.sleep, 60)
        assert time.monotonic() - start < 10
        assert worker.run(10, abs, -3) == 3
        with pytest.raises(FailedError, match="TypeError: bad operand"):
            worker.run(10, abs, "x")
        assert worker.run(float("inf"), abs, -4) == 4


def test_a_worker_whose_process_ends_begins_another() -> None:
    import os

    with Worker(time.monotonic) as worker:
        with pytest.raises(FailedError, match="its process ended"):
            worker.run(10, os._exit, 1)
        assert worker.run(10, abs, -5) == 5


def test_a_method_out_of_time_is_told_and_not_left_out() -> None:
    words = ["bench", "real", OCEAN, "--seeds", 1, "--methods", "linear,cubic"]
    run = dkrls(*words, "--time-limit", "0.000001")
    assert "20 %, seed 0: cubic stopped after 1e-06 s." in run.stdout
    assert "every second: cubic stopped after 1e-06 s." in run.stdout
    assert "cases" in run.stdout


# What is told -------------------------------------------------------------------------------------


def test_json_has_a_row_per_case_and_method(told: dict[str, Any]) -> None:
    rows = told["rows"]
    assert [row["method"] for row in rows] == list(REAL.methods) * 2
    assert [row["held_out"] for row in rows[:: len(REAL.methods)]] == [RANDOM, ALTERNATE]
    assert [row["seed"] for row in rows[:: len(REAL.methods)]] == [0, None]
    for row in rows:
        assert row["grid"] == str(OCEAN)
        assert row["rmse"] > 0
        assert row["max_error"] >= row["rmse"]
        assert row["seconds"] > 0
        assert (row["coverage90"] is None) == (row["method"] != "dkrls")
    assert {"threads", "numpy", "scipy", "xarray", "dkrls"} <= set(told["machine"])


def test_ratio_and_summary_follow_from_the_rows(told: dict[str, Any]) -> None:
    ratios = []
    for start in (0, len(REAL.methods)):
        rows = {row["method"]: row for row in told["rows"][start : start + len(REAL.methods)]}
        best = min(rows[name]["rmse"] for name in REAL.references)
        for row in rows.values():
            assert row["ratio"] == pytest.approx(row["rmse"] / best)
        ratios.append(rows["dkrls"]["ratio"])
    summary = told["summary"]
    assert summary["geometric_mean"] == pytest.approx(np.exp(np.mean(np.log(ratios))))
    assert summary["worst"] == summary["worst_of_ten_samples"] == max(ratios)
    assert summary["within_2_percent"] == np.mean(np.array(ratios) <= 1.02)


def test_csv_and_table_say_the_same_as_json(told: dict[str, Any]) -> None:
    assert_same_rows(told["csv"], told["rows"])
    line = next(x for x in told["table"].splitlines() if x.startswith(RANDOM))
    errors = [f"{row['rmse']:.3g}" for row in told["rows"][: len(REAL.methods)]]
    assert line.split()[4 : 4 + len(REAL.methods)] == [f"{float(e):.4g}" for e in errors]


def test_the_tables_fit_a_terminal(told: dict[str, Any], tmp_path: Path) -> None:
    axes = {"lat": (np.linspace(-60, 60, 13), NORTH), "lon": (np.arange(0.0, 120.0, 10.0), EAST)}
    words = ["bench", "real", grid(tmp_path / "g.nc", axes), "--seeds", 1]
    narrow = dkrls(*words, COLUMNS="60").stdout
    for text, width in ((told["table"], 100), (narrow, 60)):
        below = text.splitlines()[1:]  # the first line is the path, as long as it is
        assert max(map(len, below)) <= width


def test_short_dimensions_skip_splines_and_say_so(tmp_path: Path) -> None:
    axes = {"x": (np.arange(5.0), {}), "y": (np.arange(30.0), {})}
    path = grid(tmp_path / "g.nc", axes)
    words = ["bench", "real", path, "--seeds", 1, "--methods", "dkrls,linear,spline3,spline5"]
    text = dkrls(*words).stdout
    assert "20 %, seed 0: spline5 skipped: needs 6 samples, x has 4." in text
    assert "every second: spline3 skipped: needs 4 samples, x has 3." in text
    assert "seed 0: spline3" not in text


def test_a_series_has_but_one_kind(tmp_path: Path) -> None:
    path = grid(tmp_path / "g.nc", {"time": (np.arange(20.0), {"units": "days since 2001-01-01"})})
    run = dkrls("bench", "real", path, "--seeds", 1, "--json", "--methods", "dkrls,linear")
    assert "has no room for 'every second'." in run.stderr
    assert "Note: spline3, spline5 will not race" in run.stderr
    assert {row["held_out"] for row in json.loads(run.stdout)["rows"]} == {RANDOM}


def test_every_file_is_a_grid_of_its_own_and_verbose_tells_of_the_machine(tmp_path: Path) -> None:
    for name, size in (("a", 9), ("b", 12)):
        grid(tmp_path / f"{name}.nc", {"x": (np.arange(float(size)), {}), "y": (X, {})})
    words = ["bench", "real", tmp_path / "*.nc", "--seeds", 1, "--methods", "linear", "--json"]
    run = dkrls(*words, "-v")
    found = json.loads(run.stdout)["rows"]
    assert list(dict.fromkeys(Path(row["grid"]).name for row in found)) == ["a.nc", "b.nc"]
    assert f"threads {machine()['threads']}, dkrls " in run.stderr
    assert all(word in run.stderr for word in ("numpy", "scipy", "xarray", "linear: rmse"))


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--methods", "linear,magic"], "Unknown method 'magic'. Choose of dkrls, linear"),
        (["--methods", ","], "Unknown method ''"),
        (["--time-limit", "0"], "Invalid --time-limit 0. Give seconds above 0."),
        (["--time-limit", "nan"], "Invalid --time-limit nan"),
    ],
)
def test_a_wrong_command_line_is_refused(options: list[str], reason: str) -> None:
    assert reason in refusal("bench", "real", OCEAN, *options, code=2)


def test_wrong_data_is_refused_before_any_race(tmp_path: Path) -> None:
    missing = files.REFUSED["missing_as_nan"][0](tmp_path)
    assert "2 of 30 cells" in refusal("bench", "real", OCEAN, missing)
    assert "There is no file" in refusal("bench", "real", OCEAN, tmp_path / "absent.nc")
    pair = grid(tmp_path / "pair.nc", {"x": (np.arange(2.0), {}), "y": (np.arange(2.0), {})})
    assert "can be held out: x 2 x y 2" in refusal("bench", "real", pair)
    two = {"s": (("x",), np.arange(9.0), {})}
    several = grid(tmp_path / "two.nc", {"x": (np.arange(9.0), {})}, extra=two)
    assert "Choose one by its name (var)" in refusal("bench", "real", several)
    dkrls("bench", "real", several, "--var", "s", "--seeds", 1, "--methods", "linear")


def test_an_output_is_refused_before_any_race(tmp_path: Path) -> None:
    (target := tmp_path / "rows.csv").write_text("mine")
    absent = tmp_path / "absent.nc"  # which is not even looked for
    assert "exists already" in refusal("bench", "real", absent, "--csv", target)
    assert "There is no folder" in refusal("bench", "real", absent, "--csv", tmp_path / "x" / "y")
    words = ["bench", "real", OCEAN, "--seeds", 1, "--methods", "linear", "--csv", target]
    dkrls(*words, "--overwrite")
    assert target.read_text().startswith("grid,variable,held_out,seed,samples,method,rmse")


# Against the clock --------------------------------------------------------------------------------


@pytest.mark.parametrize("race", ["speed", "tuning", "large", "startup"])
def test_clocks_print_what_they_measure(race: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, race, lambda: [Measure("fit", 1.25, "x the products")])
    assert "fit    1.25  x the products" in dkrls("bench", race).stdout
    found = json.loads(dkrls("bench", race, "--json").stdout)
    assert found["rows"] == [{"what": "fit", "value": 1.25, "unit": "x the products"}]
    assert found["machine"]["threads"] >= 1


def test_growth_is_told_in_products_of_the_same_size() -> None:
    bound, fitting, asking = speed._growth((5, 4))
    assert (bound.what, bound.unit) == ("one matrix product per dimension, 5 x 4", "ms")
    assert (fitting.what, asking.what) == ("fit, noise, 5 x 4", "all midpoints, noise, 5 x 4")
    assert fitting.unit == asking.unit == "x the products"
    assert min(bound.value, fitting.value, asking.value) > 0


def test_grids_of_two_to_six_dimensions_have_about_as_many_cells() -> None:
    cells = {len(shape): np.prod(shape) for shape in speed.GROWING} | {3: 64**3}
    assert (64, 64, 64) in speed.GROWING
    assert sorted(cells) == [1, 2, 3, 4, 5, 6]
    assert max(cells[n] for n in range(2, 7)) < 1.2 * min(cells[n] for n in range(2, 7))


def test_a_race_in_a_process_of_its_own(tmp_path: Path) -> None:
    axes = {"x": (np.arange(9.0), {}), "y": (np.arange(9.0), {})}
    path = grid(tmp_path / "g.nc", axes)
    run = spawn("bench", "real", path, "--seeds", 1, "--methods", "dkrls,linear,spline3,spline5")
    assert (run.returncode, run.stderr) == (0, "")
    assert "worst ratio" in run.stdout
    assert spawn("bench", "real").returncode == 2
