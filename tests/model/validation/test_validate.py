"""Validation is a fit, answers and metrics, put together by hand here."""

import math
import statistics

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, validate
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid, as_grid
from dkrls_cli.model.answering.cellmeans import model_cells
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.validation.metrics import coverage90, scores
from dkrls_cli.model.validation.splits import random_split
from dkrls_cli.model.validation.validate import read_fractions, validate_holdout, validate_model
from dkrls_cli.tuning.trials.record import ChoiceRecord

X, T = np.linspace(0, 4, 10), np.arange(12.0)
VALUES = np.sin(np.add.outer(T / 4, X)) + 3.0
VALUES += 0.05 * np.random.default_rng(0).standard_normal(VALUES.shape)
GIVEN = {"kernel": "matern52", "sigma": {"x": 1.5, "time": 4.0}, "ridge": 1e-2}
SETTINGS = Settings(**GIVEN)
GRID = as_grid(VALUES, {"time": T, "x": X})
AXES = GRID.axes
SITES = axis_of("site", np.array(["a", "b", "c"]))


def labelled(values=VALUES):
    return xr.DataArray(values, {"time": T, "x": X}, ("time", "x"), "tas")


@pytest.fixture(scope="module")
def model():
    return fit(GRID, **GIVEN)


def expected(model, truth, at, smooth=False):
    answers = model.predict(**at, smooth=smooth, extrapolate=True).values
    variance = model.std(**at, smooth=smooth, extrapolate=True).values ** 2
    return {**scores(truth, answers), "coverage90": coverage90(truth, answers, variance)}


# A model against a grid ---------------------------------------------------------------------------


def test_a_model_is_measured_by_its_answers_at_the_coordinates_of_the_grid(model):
    at = {"time": T[:-1] + 0.5, "x": X[2:5]}
    truth = np.sin(np.add.outer(at["time"] / 4, at["x"])) + 3.0
    found = validate(truth, at, model=model)
    assert found.metrics == pytest.approx(expected(model, truth, at), nan_ok=True)
    assert found.metrics["rmse"] > 0
    assert 0 < found.metrics["coverage90"] <= 1
    assert (found.runs, found.held_out, found.model) == ((), {}, model)
    assert [axis.size for axis in found.axes] == [11, 3]
    assert found.seconds >= 0


def test_training_data_is_passed_through_unless_smooth(model):
    found = validate(GRID, model=model)
    assert found.metrics["max_error"] == 0
    assert math.isnan(found.metrics["coverage90"])
    smooth = validate(GRID, model=model, smooth=True)
    at = {"time": T, "x": X}
    assert smooth.metrics == pytest.approx(expected(model, VALUES, at, smooth=True), nan_ok=True)
    assert smooth.metrics["rmse"] > 0


def test_cells_of_unknown_truth_do_not_count(model):
    truth = VALUES + 1.0
    truth[0, :4] = np.nan
    metrics = validate(labelled(truth), model=model).metrics
    assert metrics["n"] == VALUES.size - 4
    assert metrics["bias"] == pytest.approx(-1.0)


def test_dimensions_may_be_turned_or_have_one_coordinate(model):
    offset = labelled(VALUES + np.arange(12.0)[:, None])
    assert validate(offset.transpose("x", "time"), model=model).metrics == pytest.approx(
        validate(offset, model=model).metrics, nan_ok=True
    )
    for part in (offset.isel(time=3), offset.isel(time=[3])):
        found = validate(part, model=model)
        assert found.metrics["bias"] == pytest.approx(-3.0)
        assert [axis.size for axis in found.axes] == [1, 10]
    grid = as_grid(offset.isel(time=3))
    scalars = (axis_of("time", [3.0]),)
    assert validate_model(model, grid, scalars).metrics["bias"] == pytest.approx(-3.0)


def test_a_truth_in_other_units_is_refused():
    model = fit(labelled(VALUES).assign_attrs(units="K"))
    assert validate(labelled(VALUES), model=model).metrics["n"] == VALUES.size
    with pytest.raises(InputError, match=r"are in 'degC', those of the model in 'K'"):
        validate(labelled(VALUES).assign_attrs(units="degC"), model=model)


def test_whole_numbers_are_a_truth_like_others(model):
    whole = Grid(np.full(VALUES.shape, 3), AXES)
    assert validate(whole, model=model).metrics["n"] == VALUES.size


@pytest.mark.parametrize(
    ("data", "dims"),
    [
        (labelled().isel(time=3).drop_vars("time"), "x"),
        (labelled().rename(x="y"), "time, y"),
        (labelled().expand_dims(z=[1.0, 2.0]), "z, time, x"),
    ],
)
def test_a_grid_with_other_dimensions_than_the_model_is_refused(model, data, dims):
    message = f"The grid has dimensions {dims}, the model time, x"
    with pytest.raises(InputError, match=message):
        validate(data, model=model)


def test_a_model_takes_no_settings_of_a_fit(model):
    with pytest.raises(SettingError, match="'sigma' goes with a hold-out"):
        validate(GRID, model=model, sigma=3.0)


@pytest.mark.parametrize("both", [True, False])
def test_a_model_or_a_hold_out_is_needed_and_not_both(model, both):
    given = {"model": model, "holdout": 0.2} if both else {}
    with pytest.raises(SettingError, match="either a model or a fraction"):
        validate(GRID, **given)


# Hold-outs ----------------------------------------------------------------------------------------


def by_hand(seed, fractions, keep_edges=False, smooth=False):
    """Model and metrics of one hold-out: split every axis in turn, fit, ask, measure."""
    rng = np.random.default_rng(seed)
    train, held = [], []
    for axis in AXES:
        every = np.arange(axis.size)
        if axis.name in fractions:
            split = random_split(axis.size, fractions[axis.name], rng, keep_edges=keep_edges)
        train.append(split.train if axis.name in fractions else every)
        held.append(split.held if axis.name in fractions else every)
    model = fit(GRID.take(train), **GIVEN)
    at = dict(zip(GRID.dims, (T[held[0]], X[held[1]]), strict=True))
    return model, expected(model, VALUES[np.ix_(*held)], at, smooth)


@pytest.mark.parametrize(
    ("holdout", "keep_edges", "smooth"),
    [(0.3, False, False), ({"x": 0.3}, True, False), ({"time": "0.2"}, False, True)],
)
def test_hold_outs_are_fits_of_the_rest_with_one_seed_after_the_other(holdout, keep_edges, smooth):
    found = validate(
        labelled(),
        holdout=holdout,
        repeats=3,
        seed=7,
        keep_edges=keep_edges,
        smooth=smooth,
        **GIVEN,
    )
    fractions = holdout if isinstance(holdout, dict) else dict.fromkeys(GRID.dims, holdout)
    fractions = {dim: float(value) for dim, value in fractions.items()}
    assert found.held_out == fractions
    runs = [by_hand(7 + i, fractions, keep_edges, smooth) for i in range(3)]
    assert len(found.runs) == 3
    for run, (_, metrics) in zip(found.runs, runs, strict=True):
        seconds = {key: run[key] for key in ("fit_seconds", "predict_seconds")}
        assert run == pytest.approx({**metrics, **seconds}, rel=1e-9, nan_ok=True)
        assert min(seconds.values()) >= 0
    for name in ("rmse", "bias", "r2", "fit_seconds"):
        assert found.metrics[name] == statistics.median(run[name] for run in found.runs)
    np.testing.assert_array_equal(found.model.predict(), runs[-1][0].predict())
    assert [axis.size for axis in found.axes] == [12, 10]


def test_the_count_of_cells_is_that_of_the_first_run():
    gappy = VALUES.copy()
    gappy[np.random.default_rng(1).random(VALUES.shape) < 0.2] = np.nan
    found = validate(gappy, {"time": T, "x": X}, holdout={"time": 0.3}, repeats=3, **GIVEN)
    counts = [run["n"] for run in found.runs]
    assert len(set(counts)) > 1
    assert found.metrics["n"] == counts[0] != statistics.median(counts)


def test_hold_outs_without_a_known_cell_say_nothing():
    t = np.arange(24.0)
    values = np.where(np.isin(t % 7, (0, 2, 4)), np.nan, np.sin(t / 3))
    how = {"kernel": "matern32", "sigma": 3.0, "ridge": 1e-2}
    found = validate(values, {"t": t}, holdout={"t": 0.05}, repeats=6, seed=1, **how)
    known = [run["rmse"] for run in found.runs if run["n"]]
    assert 2 < len(known) < 6
    assert found.metrics["rmse"] == statistics.median(known)
    assert found.metrics["n"] == 1


def test_repeats_are_five_and_the_seed_is_zero_if_not_given():
    found = validate(GRID, holdout=0.3, **GIVEN)
    assert len(found.runs) == 5
    first = validate(GRID, holdout=0.3, repeats=1, seed=0, **GIVEN)
    assert found.runs[0]["rmse"] == first.runs[0]["rmse"]
    assert found.runs[1]["rmse"] != first.runs[0]["rmse"]
    assert found.seconds >= sum(run["fit_seconds"] for run in found.runs)


def test_every_run_is_told_as_it_is_done():
    told = []
    found = validate_holdout(
        GRID, SETTINGS, holdout=0.3, repeats=2, on_run=lambda *run: told.append(run)
    )
    assert told == list(enumerate(found.runs))


def test_kept_edges_are_never_asked_for():
    asked = {
        keep: [
            validate_holdout(
                GRID, SETTINGS, holdout={"time": 0.5}, repeats=1, seed=seed, keep_edges=keep
            )
            .model.axes[0]
            .numbers
            for seed in range(6)
        ]
        for keep in (True, False)
    }
    assert all({0.0, 11.0} <= set(times.tolist()) for times in asked[True])
    assert not all({0.0, 11.0} <= set(times.tolist()) for times in asked[False])


def test_text_labels_are_held_out_of_nothing():
    values = VALUES[:, :3]
    found = validate(values, {"time": T, "site": ["a", "b", "c"]}, holdout=0.3, repeats=1)
    assert found.held_out == {"time": 0.3}
    assert found.metrics["n"] == 4 * 3


@pytest.mark.parametrize("fraction", [1e-9, 0.5, "0.25", 1 - 1e-9])
def test_fractions_lie_between_0_and_1(fraction):
    assert read_fractions(fraction, AXES) == dict.fromkeys(GRID.dims, float(fraction))
    assert read_fractions({"x": fraction}, AXES) == {"x": float(fraction)}


@pytest.mark.parametrize(
    ("holdout", "message"),
    [
        (0, "Invalid hold-out 0. Give a fraction between 0 and 1"),
        (1.0, "hold-out 1.0"),
        (-0.2, "hold-out -0.2"),
        (math.nan, "hold-out nan"),
        ({"x": 0.5, "time": 1.5}, "hold-out 1.5"),
        ("some", "'some' is not a fraction"),
        ({"depth": 0.2}, "no dimension 'depth'. The data has time, x, site."),
        ({"x": 0.2, "site": 0.2}, "'site' holds text labels"),
        ({}, "no dimension to hold"),
    ],
)
def test_other_fractions_are_refused(holdout, message):
    with pytest.raises(SettingError, match=message):
        read_fractions(holdout, (*AXES, SITES))


def test_a_grid_of_labels_only_has_nothing_to_hold_out():
    with pytest.raises(SettingError, match="no dimension to hold"):
        read_fractions(0.2, [SITES])


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        (3, {"holdout": {"x": 0.1}}, r"'x' is too short \(3\) to hold out a fraction of 0.1"),
        (2, {"holdout": {"x": 0.5}, "keep_edges": True}, r"'x' is too short \(2\)"),
        (9, {"holdout": 0.3, "repeats": 0}, "Invalid number of repeats 0"),
        (9, {"holdout": 0.3, "seed": -1}, "Invalid seed -1"),
        (9, {"holdout": 0.3, "missing": "nonsense"}, "nonsense"),
    ],
)
def test_hold_outs_that_cannot_be_are_refused(size, options, message):
    with pytest.raises(SettingError, match=message):
        validate(VALUES[:, :size], {"time": T, "x": X[:size]}, **options)


def test_an_unknown_setting_is_an_error():
    with pytest.raises(TypeError, match="sigmas"):
        validate(GRID, holdout=0.2, sigmas=3)


# What is kept of the comparisons ------------------------------------------------------------------


def test_evidence_is_kept_on_request_only(model):
    truth = np.sin(np.add.outer(T[:-1] / 4, X)) + 3.0
    at = {"time": T[:-1] + 0.5, "x": X}
    assert validate(truth, at, model=model).evidence is None
    found = validate(truth, at, model=model, evidence=True)
    answers = model.predict(**at, extrapolate=True).values
    by_time, by_x = found.evidence.coordinates
    np.testing.assert_allclose(by_time.bias, (answers - truth).mean(axis=1))
    np.testing.assert_allclose(by_x.rmse, np.sqrt(np.mean((answers - truth) ** 2, axis=0)))
    assert by_time.axis.numbers.tolist() == at["time"].tolist()
    np.testing.assert_array_equal(found.evidence.shown.answers, answers)
    assert found.spread == pytest.approx(truth.std())
    assert found.calibration.count == truth.size
    assert found.calibration.observed[8] == found.metrics["coverage90"]


def test_evidence_of_hold_outs_is_that_of_all_runs_at_their_own_coordinates():
    found = validate_holdout(GRID, SETTINGS, holdout=0.3, repeats=3, seed=4, evidence=True)
    counts = {name: np.zeros(size) for name, size in (("time", T.size), ("x", X.size))}
    squares = {name: np.zeros(size) for name, size in (("time", T.size), ("x", X.size))}
    inside = 0.0
    for seed in (4, 5, 6):
        rng = np.random.default_rng(seed)
        rows, columns = (random_split(axis.size, 0.3, rng) for axis in AXES)
        part = VALUES[np.ix_(rows.train, columns.train)]
        own = fit(part, {"time": T[rows.train], "x": X[columns.train]}, **GIVEN)
        truth = VALUES[np.ix_(rows.held, columns.held)]
        at = {"time": T[rows.held], "x": X[columns.held]}
        missed = own.predict(**at, extrapolate=True).values - truth
        std = own.std(**at, extrapolate=True).values
        inside += np.count_nonzero(np.abs(missed) <= 1.6448536269514722 * std)
        counts["time"][rows.held] += columns.held.size
        counts["x"][columns.held] += rows.held.size
        squares["time"][rows.held] += np.sum(missed**2, axis=1)
        squares["x"][columns.held] += np.sum(missed**2, axis=0)
    for own in found.evidence.coordinates:
        np.testing.assert_array_equal(own.counts, counts[own.axis.name])
        np.testing.assert_allclose(own.squares, squares[own.axis.name], rtol=1e-9)
    assert found.calibration.count == counts["x"].sum()
    assert found.calibration.inside[8] == inside
    assert found.spread == pytest.approx(VALUES.std())


def test_what_was_tried_is_told_of_the_last_hold_out():
    record = ChoiceRecord()
    open_x = Settings(kernel="gaussian", sigma={"time": 4.0, "x": "auto"}, ridge=1e-3)
    found = validate_holdout(GRID, open_x, holdout=0.3, repeats=2, watch=record)
    (choice,) = record.of("x")
    assert choice.taken.kernel == found.model.level_of("x").kernel
    assert record.of("time") == ()


def cell_mean_grid(edges_x, edges_y) -> xr.DataArray:
    """Return the means of sin(x / 4) exp(y / 5) over cells of uneven width, with their bounds."""
    over_x = -4 * np.diff(np.cos(edges_x / 4)) / np.diff(edges_x)
    over_y = 5 * np.diff(np.exp(edges_y / 5)) / np.diff(edges_y)
    axes = {"x": (edges_x[1:] + edges_x[:-1]) / 2, "y": (edges_y[1:] + edges_y[:-1]) / 2}
    return xr.DataArray(np.outer(over_x, over_y), axes, ("x", "y"))


EDGES = np.linspace(0.0, 30.0, 31), np.linspace(0.0, 6.0, 16)
SMOOTH = {"kernel": "gaussian", "sigma": {"x": 4.0, "y": 3.0}, "ridge": 1e-9}


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_held_out_means_are_asked_for_as_means_over_their_cells(noise):
    data = cell_mean_grid(*EDGES)
    how = {"holdout": {"x": 0.25}, "repeats": 1, "seed": 2, "keep_edges": True, "noise": noise}
    found = validate(data, cell_means="x", **how, **SMOOTH)
    assert found.model.cell_means == ("x",)
    kept = found.model.axis_of("x").numbers
    low, high = model_cells(found.model, ())[0].low, model_cells(found.model, ())[0].high
    assert np.allclose(low, kept - 0.5, rtol=0, atol=1e-12)  # not half-way to the next that is kept
    assert np.allclose(high, kept + 0.5, rtol=0, atol=1e-12)
    assert found.metrics["rmse"] < 2e-5
    values = found.model.predict(x=data.x[1:-1], mask="none")
    assert np.abs(values - data[1:-1]).max() > 5e-3  # values are something else


@pytest.mark.parametrize("gaps", [False, True])
def test_models_of_means_are_measured_on_means_over_the_cells_of_a_grid(gaps):
    data = cell_mean_grid(*EDGES)
    known = data.copy()
    if gaps:
        known[3::5, 4::3] = np.nan
    models = [fit(known, cell_means=how, **SMOOTH) for how in (True, False)]
    coarse = cell_mean_grid(EDGES[0][2:-2:3], EDGES[1][::3])
    found, plain = (validate(coarse, model=model).metrics["rmse"] for model in models)
    assert found < 1e-4
    assert plain > 1e-2
    if not gaps:
        assert validate(data, model=models[0]).metrics["max_error"] < 1e-12
