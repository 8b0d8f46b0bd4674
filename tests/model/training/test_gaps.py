"""Models of grids with missing cells, against dense solves over the observed ones."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fill, fit, load_model
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import ConvergenceError, InputError, SettingError
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.training import joint
from dkrls_cli.model.training.gaps import train_through_gaps

RNG = np.random.default_rng(5)
X, D = np.linspace(0, 4, 9), np.sort(RNG.uniform(0, 6, 11))
CLEAN = np.sin(np.add.outer(X, D / 2)) + 3.0
GAPS = RNG.random(CLEAN.shape) < 0.3
VALUES = np.where(GAPS, np.nan, CLEAN)
GIVEN = {"kernel": "matern52", "sigma": {"x": 1.5, "d": 2.0}, "ridge": 1e-3}
AT = {"x": np.array([0.3, X[2], 3.1]), "d": np.array([D[1], 2.2, 5.0])}


def dense(queries):
    """Kernel ridge regression over the observed cells only."""
    kernels = Kernel("matern52", 1.5), Kernel("matern52", 2.0)
    cells = [axis[~GAPS] for axis in np.meshgrid(X, D, indexing="ij")]
    asked = [axis.ravel() for axis in np.meshgrid(*queries, indexing="ij")]

    def covariance(a, b):
        return np.prod([gram(k, p, q) for k, p, q in zip(kernels, a, b, strict=True)], axis=0)

    mean = VALUES[~GAPS].mean()
    system = covariance(cells, cells) + 1e-3 * np.eye(len(cells[0]))
    weights = np.linalg.solve(system, VALUES[~GAPS] - mean)
    return (covariance(asked, cells) @ weights + mean).reshape([len(q) for q in queries])


@pytest.fixture(scope="module")
def model():
    return fit(VALUES, {"x": X, "d": D}, **GIVEN)


def test_missing_cells_are_answered_by_the_observed_ones(model):
    np.testing.assert_allclose(model.predict().values[GAPS], dense([X, D])[GAPS], atol=1e-7)
    np.testing.assert_allclose(model.predict().values[~GAPS], VALUES[~GAPS], rtol=1e-12)
    new = [AT["x"][[0, 2]], AT["d"][[1, 2]]]
    np.testing.assert_allclose(model.predict(x=new[0], d=new[1]), dense(new), atol=1e-7)
    np.testing.assert_allclose(model.predict(smooth=True), dense([X, D]), atol=1e-7)


def test_error_bars_are_open_in_gaps_and_closed_at_data(model):
    bars = model.std().values
    assert (bars[~GAPS] == 0).all()
    assert (bars[GAPS] > 0).all()
    wide = model.std(**AT).values
    assert np.isfinite(wide).all()
    cells = [axis.ravel() for axis in np.meshgrid(AT["x"], AT["d"], indexing="ij")]
    points = model.std_points(x=cells[0], d=cells[1])
    np.testing.assert_allclose(points, wide.ravel(), rtol=1e-9)
    parts = model.bars.variance_blocks(model.cascade, model.queries(model.axes_at(AT)))
    np.testing.assert_allclose(parts((slice(1, 3), slice(0, 2))), wide[1:3, :2] ** 2, rtol=1e-9)


def test_a_model_through_gaps_is_saved_whole(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert np.array_equal(again.predict(**AT), model.predict(**AT))
    np.testing.assert_allclose(again.std(**AT), model.std(**AT), rtol=1e-5)
    assert again.errors == model.errors
    assert again.origin == model.origin


def test_what_is_missing_is_remembered(model):
    known = model.origin["missing"]
    assert known["share"] == pytest.approx(GAPS.mean())
    assert known["residual"] < 1e-6
    assert known["iterations"] > 0
    assert known["settings_tried"] == 1  # all was given
    assert "here and there" in known["pattern"]


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_filled_cells_are_float32_where_all_data_is(scale):
    single = (scale * VALUES).astype(np.float32)
    exact = np.where(GAPS, np.nan, single.astype(np.float64))
    almost = exact.copy()
    almost[~GAPS] *= 1 + 1e-12  # no longer float32, and so is what is filled
    rounded, free = (
        fit(values, {"x": X, "d": D}, **GIVEN).predict().values for values in (exact, almost)
    )
    np.testing.assert_array_equal(rounded[~GAPS], exact[~GAPS])
    np.testing.assert_array_equal(rounded.astype(np.float32), rounded)
    assert (free.astype(np.float32) != free)[GAPS].all()
    np.testing.assert_allclose(rounded[GAPS], free[GAPS], rtol=1e-7)
    assert np.array_equal(fit(single, {"x": X, "d": D}, **GIVEN).predict(), rounded)
    answers = fill(xr.DataArray(single, {"x": X, "d": D}, ("x", "d")), **GIVEN).values
    np.testing.assert_allclose(answers[GAPS], free[GAPS], rtol=1e-7)


def test_the_share_that_is_missing_counts_what_was_dropped_before():
    grid, settings = as_grid(VALUES, {"x": X, "d": D}), Settings(**GIVEN)
    plan = plan_fit(grid.axes, settings, complete=False)
    facts = train_through_gaps(grid, plan, settings, 0.75).facts
    assert facts["missing"]["share"] == 0.75


def test_the_last_level_is_that_of_the_hierarchy():
    values = np.random.default_rng(1).standard_normal((4, 6, 3))
    values[2, :, 1] = np.nan
    coordinates = {"x": range(4), "time": range(6), "y": range(3)}
    model = fit(values, coordinates, sigma=2.0, kernel="matern52", ridge=0.1)
    assert model.hierarchy == ("x", "y", "time")
    assert model.origin["missing"]["pattern"] == "8.33 % at all time"


def test_the_mean_may_be_given_through_gaps():
    assert fit(VALUES, {"x": X, "d": D}, **GIVEN).cascade.mean == VALUES[~GAPS].mean()
    given = fit(VALUES, {"x": X, "d": D}, mean=2.5, **GIVEN)
    assert given.cascade.mean == 2.5
    assert float(given.predict(x=1000.0, d=1000.0, extrapolate=True)) == pytest.approx(2.5)


def test_storage_and_compactness_are_kept_through_gaps():
    small = fit(VALUES, {"x": X, "d": D}, dtype="float32", compact=True, **GIVEN)
    assert small.storage == "float32"
    np.testing.assert_allclose(small.predict(smooth=True), dense([X, D]), atol=1e-4)


def test_settings_are_chosen_and_recover_the_field():
    chosen = fit(VALUES, {"x": X, "d": D}, noise="joint")
    assert chosen.cascade.joint_ridge is not None
    assert np.sqrt(np.mean((chosen.predict().values - CLEAN)[GAPS] ** 2)) < 0.03
    given = {"kernel": {"x": "matern12"}, "sigma": {"d": 2.5}}
    kept = fit(VALUES, {"x": X, "d": D}, **given, noise="joint")
    assert kept.levels[0].kernel.family == "matern12"
    assert kept.levels[1].kernel.sigma == 2.5


def test_coordinates_without_data_are_dropped_and_can_be_asked_for():
    lost = VALUES.copy()
    lost[4], lost[:, 7] = np.nan, np.nan
    model = fit(xr.DataArray(lost, {"x": X, "d": D}, ("x", "d")), **GIVEN)
    assert model.cascade.shape == (8, 10)
    assert "1 of 9" in model.origin["dropped_coordinates"][0]
    assert np.isfinite(model.predict(x=X[4])).all()
    only_slices = CLEAN.copy()
    only_slices[4] = np.nan
    complete = fit(only_slices, {"x": X, "d": D})
    assert complete.cascade.joint_ridge is None
    assert abs(float(complete.predict(x=X[4], d=D[3])) - CLEAN[4, 3]) < 0.05


def test_a_level_given_whole_keeps_all_of_its_kernel():
    given = [Level("x", Kernel("matern52", 1.5, constant=2.0)), Level("d", Kernel("gaussian", 2.0))]
    assert fit(VALUES, {"x": X, "d": D}, given).levels == tuple(given)


def test_masked_arrays_are_gaps():
    masked = np.ma.array(CLEAN, mask=GAPS)
    np.testing.assert_array_equal(
        fit(masked, {"x": X, "d": D}, **GIVEN).predict(),
        fit(VALUES, {"x": X, "d": D}, **GIVEN).predict(),
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"missing": "error"}, InputError, "cells of 'values' are missing"),
        ({"missing": "ignore"}, SettingError, "ignore"),
        ({"noise": "joint", "ridge": {"x": 0.1}}, SettingError, "one number"),
        ({"noise": "joint", "folds": 3}, SettingError, "complete grids"),
    ],
)
def test_settings_that_need_a_complete_grid_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        fit(VALUES, {"x": X, "d": D}, **options)


def test_nothing_at_all_and_infinities_are_refused():
    with pytest.raises(InputError, match="missing"):
        fit(np.full((4, 5), np.nan))
    infinite = VALUES.copy()
    infinite[0, 0] = np.inf
    with pytest.raises(InputError, match="infinite"):
        fit(infinite, {"x": X, "d": D})


def test_a_solve_that_does_not_end_is_an_error(monkeypatch):
    monkeypatch.setattr(joint, "SOLVE_LIMIT", 1)
    with pytest.raises(ConvergenceError, match=r"solved for to .* only, after \d+ steps") as found:
        fit(VALUES, {"x": X, "d": D}, **GIVEN)
    assert found.value.setting == "accept_inexact"
    assert "Give a larger ridge or a shorter sigma" in str(found.value)
    with pytest.raises(ConvergenceError):
        fill(VALUES, {"x": X, "d": D}, **GIVEN)


def test_a_solve_that_does_not_end_may_be_accepted_and_is_noted_in_the_model(monkeypatch):
    exact = fit(VALUES, {"x": X, "d": D}, **GIVEN, accept_inexact=True)
    assert exact.origin["notes"] == []
    monkeypatch.setattr(joint, "SOLVE_LIMIT", 1)
    model = fit(VALUES, {"x": X, "d": D}, **GIVEN, accept_inexact=True)
    (note,) = model.origin["notes"]
    assert "the missing cells are solved for to" in note
    assert "steps; a larger ridge" in note
    filled = fill(VALUES, {"x": X, "d": D}, **GIVEN, accept_inexact=True)
    np.testing.assert_allclose(filled, model.predict())


@pytest.mark.parametrize("group", ["x,d", "none"])
def test_a_group_is_remembered(group):
    model = fit(VALUES, {"x": X, "d": D}, group=group, **GIVEN)
    known, grouping = model.origin["missing"], model.bars.grouping
    if group == "none":
        assert "group" not in known
        assert grouping.axes == ()
    else:
        assert known["group"] == ["x", "d"]
        assert grouping.axes == ((0, 1),)
        second = {"share": grouping.share, "factor": grouping.factor} if grouping.share else None
        assert known["second_scale"] == second


def test_a_group_has_its_place_beside_dimensions_of_one_coordinate():
    plain = fit(VALUES, {"x": X, "d": D}, group="x,d", **GIVEN)
    sigma = {**GIVEN["sigma"], "one": 1.0}
    model = fit(
        VALUES[:, None], {"x": X, "one": [3.0], "d": D}, group="x,d", **{**GIVEN, "sigma": sigma}
    )
    assert model.bars.grouping.axes == ((0, 2),)
    np.testing.assert_allclose(model.predict().values[:, 0], plain.predict(), atol=1e-8)
    np.testing.assert_allclose(model.std().values[:, 0], plain.std(), rtol=1e-6)


def long_series():
    """A grid of 160 steps at 4 places with scattered gaps and a sensor dead for a while."""
    rng = np.random.default_rng(7)
    t, x = np.arange(160.0), np.arange(4.0)
    values = np.sin(np.add.outer(t / 7, x / 3)) + 0.1 * rng.standard_normal((160, 4))
    values[rng.random(values.shape) < 0.1] = np.nan
    values[40:90, 2] = np.nan
    return xr.DataArray(values, dims=("t", "x"), coords={"t": t, "x": x})


LONG_LEVELS = [Level("x", Kernel("matern52", 2.0)), Level("t", Kernel("matern32", 9.0))]


def test_a_grid_with_a_long_level_has_the_model_of_a_short_one(monkeypatch):
    for room in ("tuning.calibration.holes", "gaps.bars"):  # long levels have no local scale
        monkeypatch.setattr(
            f"dkrls_cli.{room}.local_scale", lambda errors, observed, usual: np.ones(observed.shape)
        )

    def ask(array):
        model = fit(array, levels=LONG_LEVELS, noise="joint", ridge=1e-3)
        at = {"t": np.linspace(0, 159, 301), "x": [0.0, 0.4, 2.0, 2.6]}
        points = {"t": np.array([0.0, 41.3, 60.0, 158.2]), "x": np.array([1.0, 2.0, 2.0, 0.1])}
        later = array.isel(t=slice(100, None))
        grown = fit(array.isel(t=slice(0, 100)), levels=LONG_LEVELS, noise="joint", ridge=1e-3)
        return [
            model.predict(**at).values,
            model.std(**at).values,
            model.predict_points(**points),
            model.std_points(**points),
            grown.update(later).predict(**at).values,
        ]

    short = ask(long_series())
    monkeypatch.setattr(choice, "LONG", 90)
    for found, expected in zip(ask(long_series()), short, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_ridge_that_was_chosen_is_raised_until_the_solve_ends(monkeypatch):
    """With a given ridge it is an error, with one that was chosen another is taken, and told."""
    solve, ridges, limits = joint.complete, [], []

    def hard(values, coordinates, kernels, ridge, *args, **options):
        ridges.append(ridge)
        limits.append(options["limit"])
        done = solve(values, coordinates, kernels, ridge, *args, **options)
        return replace(done, converged=len(ridges) > 2)

    monkeypatch.setattr(joint, "complete", hard)
    smooth = np.outer(np.sin(X), np.cos(D))
    smooth[np.isnan(VALUES)] = np.nan
    kernels = {"kernel": "gaussian", "sigma": {"x": 3.0, "d": 3.0}}
    model = fit(smooth, {"x": X, "d": D}, **kernels, noise="joint")
    assert model.joint_ridge == ridges[-1] == pytest.approx(ridges[0] * 100 ** (len(ridges) - 1))
    assert len(ridges) == 3
    assert ridges[-1] <= 1e-3
    (note,) = model.origin["notes"]
    assert f"the ridge is {ridges[-1]:.2g}, not {ridges[0]:.2g}" in note
    exact = fit(smooth, {"x": X, "d": D}, **kernels, ridge=ridges[-1])
    assert model.cascade.levels == exact.cascade.levels
    np.testing.assert_allclose(model.predict(), exact.predict(), rtol=0, atol=1e-3)
    assert (limits[0], limits[-1]) == (500, 1500)  # all patience with a ridge that was given
    ridges.clear()
    with pytest.raises(ConvergenceError):
        fit(smooth, {"x": X, "d": D}, **kernels, ridge=1e-6)


def test_a_ridge_is_not_raised_beyond_a_thousandth(monkeypatch):
    solve, ridges = joint.complete, []

    def never(values, coordinates, kernels, ridge, *args, **options):
        ridges.append(ridge)
        done = solve(values, coordinates, kernels, ridge, *args, **options)
        return replace(done, converged=False)

    monkeypatch.setattr(joint, "complete", never)
    smooth = np.where(np.isnan(VALUES), np.nan, np.outer(np.sin(X), np.cos(D)))
    with pytest.raises(ConvergenceError):
        fit(smooth, {"x": X, "d": D}, kernel="gaussian", sigma=3.0)
    assert len(ridges) > 2
    assert 1e-5 < ridges[-1] <= 1e-3


def test_a_group_refuses_a_ridge_that_round_off_would_decide_for():
    """A solve would take a larger ridge, with answers far from those of the one that is given."""
    smooth = {"kernel": "gaussian", "sigma": {"x": 4.0, "d": 4.0}, "group": "x,d"}
    with pytest.raises(SettingError, match=r"Invalid joint ridge 1e-12.*at least ") as refused:
        fit(VALUES, {"x": X, "d": D}, **smooth, ridge=1e-12)
    least = float(str(refused.value).split("at least ")[1].split(":")[0])
    field = make_field([X, D], [Kernel("gaussian", 4.0)] * 2, Grouping(((0, 1),)))
    assert least == pytest.approx(1e-11 * field.variances.max(), rel=0.05)
    assert fit(VALUES, {"x": X, "d": D}, **smooth, ridge=1.1 * least).joint_ridge == 1.1 * least
    without = {**smooth, "group": "none"}
    assert fit(VALUES, {"x": X, "d": D}, **without, ridge=1e-12).joint_ridge == 1e-12
