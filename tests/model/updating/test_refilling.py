"""New slices with missing cells: filled alike in any order, and known to be filled."""

from dataclasses import replace

import numpy as np
import pytest
from growing_grids import (
    JOINT,
    LEVELS,
    NEW,
    T,
    X,
    Y,
    assert_equal_models,
    field,
    fitted,
    grid_of,
    with_gaps,
)

from dkrls_cli import fit, load_model
from dkrls_cli.errors import ConvergenceError, InputError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.field import Grouping
from dkrls_cli.gaps.solve import Completed, complete
from dkrls_cli.model.fit import retune
from dkrls_cli.model.updating import refilling
from dkrls_cli.model.updating.update import update_model


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_slices_with_gaps_may_come_in_any_order(how):
    array, lost = with_gaps()
    start = fitted(array.isel(t=slice(0, 10)), **how)
    at_once = start.update(array.isel(t=slice(10, None)))
    by_ones = start
    for place in (20, 10, 23, 12, 15, 11, 13, 14, 16, 17, 19, 18, 22, 21):
        by_ones = by_ones.update(array.isel(t=[place]))
    assert_equal_models(by_ones, at_once, tolerance=1e-9)
    assert np.array_equal(by_ones.unobserved, lost)
    truth = field()
    missed = (by_ones.predict().values - truth)[lost]
    assert np.abs(missed).std() < 0.3
    assert np.array_equal(by_ones.predict().values[~lost], truth[~lost])
    assert (by_ones.std().values[lost] > 0).all()
    assert (by_ones.std().values[~lost] == 0).all()


def test_the_order_does_not_matter_where_cells_are_hard_to_solve_for():
    array, _ = with_gaps(slices=range(8, 24))
    ridges = (4e-2, 1e-8, 2e-7)
    levels = [replace(level, ridge=ridge) for level, ridge in zip(LEVELS, ridges, strict=True)]
    start = fitted(array.isel(t=slice(0, 8)), levels=levels)
    at_once = start.update(array.isel(t=slice(8, None)))
    by_parts = start
    for part in ([20, 9, 13], [23, 11], [8, 22, 10, 12], [21, 14, 15, 16, 17, 18, 19]):
        by_parts = by_parts.update(array.isel(t=part))
    assert_equal_models(by_parts, at_once)


def test_a_grid_with_gaps_is_fitted_as_it_is_updated():
    array, _ = with_gaps(slices=range(24))
    whole = fitted(array, **{**JOINT, "noise": "auto"})
    start = fitted(array.isel(t=slice(0, 15)), **{**JOINT, "noise": "auto"})
    updated = start.update(array.isel(t=slice(15, None)))
    assert isinstance(updated.bars, GapBars)
    np.testing.assert_allclose(
        updated.predict(**NEW, extrapolate=True), whole.predict(**NEW, extrapolate=True), rtol=1e-9
    )
    np.testing.assert_allclose(updated.predict(), whole.predict(), rtol=1e-9)


def test_points_know_which_cells_were_filled():
    array, lost = with_gaps()
    model = fitted(array.isel(t=slice(0, 10))).update(array.isel(t=slice(10, None)))
    i, j, k = np.argwhere(lost)[0]
    i2, j2, k2 = np.argwhere(~lost)[-1]
    at = {"x": [X[i], X[i2]], "y": [Y[j], Y[j2]], "t": [T[k], T[k2]]}
    spread = model.std_points(**at)
    assert spread[0] == pytest.approx(float(model.std()[i, j, k]))
    assert spread[1] == 0


def test_filled_cells_survive_a_file_and_a_window(tmp_path):
    array, lost = with_gaps()
    model = fitted(array.isel(t=slice(0, 10))).update(array.isel(t=slice(10, 20)))
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz").update(array.isel(t=slice(20, None)), window=6)
    assert np.array_equal(again.unobserved, lost[..., -6:])
    direct = model.update(array.isel(t=slice(20, None)), window=6)
    assert_equal_models(again, direct)


def test_a_stream_of_nothing_but_gaps_goes_on():
    array = grid_of(field())
    array[2] = np.nan  # a place that never reports again
    start = fitted(grid_of(field()).isel(t=slice(0, 4)))
    model = start
    for place in range(4, 24):
        model = model.update(array.isel(t=[place]), window=8)
    assert model.unobserved.all(axis=(1, 2))[2]
    assert np.isfinite(model.predict(t=[24.0], extrapolate=True)).all()


def test_an_empty_slice_is_left_out():
    array = grid_of(field())
    array[..., 21] = np.nan
    model = fitted(array.isel(t=slice(0, 20))).update(array.isel(t=slice(20, None)))
    assert model.axes[2].size == 23
    with pytest.raises(InputError, match="missing"):
        model.update(array.isel(t=[21]))


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_thinning_knows_gaps(how):
    array, _ = with_gaps()
    model = fitted(array.isel(t=slice(0, 10)), **how).update(
        array.isel(t=slice(10, None)), max_rank=9
    )
    assert model.cascade.shape == (9, 5, 9)
    assert model.unobserved.shape == (9, 5, 9)
    assert np.isfinite(model.std(**NEW, extrapolate=True)).all()


def test_retuning_keeps_a_place_that_is_silent_now():
    array = grid_of(field())
    array[2, :, 10:] = np.nan
    start = fitted(array.isel(t=slice(0, 10)), **JOINT)
    model = start.update(array.isel(t=slice(10, None)), window=8)
    other = retune(model)
    assert other.cascade.shape == (9, 5, 8)
    assert np.array_equal(other.unobserved, model.unobserved)
    assert other.levels[2] != model.levels[2]
    more = array.isel(t=[23]).assign_coords(t=[24.0])
    assert np.isfinite(other.update(more, window=8).predict(t=[25.0], extrapolate=True)).all()


def test_retuning_fills_anew():
    array, lost = with_gaps()
    model = fitted(array.isel(t=slice(0, 10))).update(array.isel(t=slice(10, None)))
    other = retune(model)
    assert np.array_equal(other.unobserved, lost)
    held = fitted(array.isel(t=slice(0, 10)), levels=other.levels)
    again = held.update(array.isel(t=slice(10, None)))
    assert_equal_models(other, again)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("exact", ["both", "slices", "model"])
def test_cells_are_filled_as_float32_where_all_data_is(joint, exact):
    rng = np.random.default_rng(4)
    before, after = rng.standard_normal((8, 6)), rng.standard_normal((8, 3))
    if exact != "slices":
        before = before.astype(np.float32).astype(np.float64)
    if exact != "model":
        after = after.astype(np.float32).astype(np.float64)
    missing = np.zeros((8, 9), bool)
    missing[2:5, 6] = missing[7, 8] = True
    missing[1, 1] = joint  # then the fit has gaps as well
    values = np.where(missing, np.nan, np.hstack([before, after]))
    how = {"kernel": "matern32", "sigma": 2.0, "ridge": 0.1}
    model = fit(values[:, :6], {"x": np.arange(8.0), "t": np.arange(6.0)}, **how)
    updated = model.update(values[:, 6:], np.arange(6.0, 9.0)).predict().values
    np.testing.assert_array_equal(updated[~missing], values[~missing])
    assert (updated.astype(np.float32) == updated)[missing].all() == (exact == "both")


def test_a_model_with_a_group_fills_new_slices_with_it():
    array, lost = with_gaps(slices=range(24))
    how = {
        "kernel": "matern32",
        "sigma": {"x": 0.4, "y": 0.6, "t": 5.0},
        "ridge": 1e-2,
        "mean": 1.5,
    }
    start = fit(array.isel(t=slice(0, 22)), group="x,y", **how)
    grown = start.update(array.isel(t=[22])).update(array.isel(t=[23]))
    grouping = grown.bars.grouping
    assert grouping.axes == ((0, 1),)
    kernels = [level.kernel for level in grown.levels]
    whole = complete(array.values, [X, Y, T], kernels, 1e-2, 1.5, grouping=grouping, limit=1500)
    np.testing.assert_allclose(grown.predict().values[lost], whole.values[lost], atol=1e-6)
    product = complete(array.values, [X, Y, T], kernels, 1e-2, 1.5)
    assert np.abs(product.values - whole.values)[lost].max() > 1e-3
    assert grown.origin["missing"]["group"] == ["x", "y"]


def test_retuning_keeps_the_group_of_a_model():
    array, _ = with_gaps()
    start = fit(array, group="x,y", sigma={"x": 2.0, "y": 2.0}, kernel="matern12", ridge=1e-2)
    other = retune(start)
    assert start.bars.grouping.axes == ((0, 1),)
    assert other.bars.grouping == start.bars.grouping
    kernels = [level.kernel for level in other.cascade.levels]
    whole = complete(
        array.values,
        other.cascade.coordinates,
        kernels,
        other.joint_ridge,
        other.cascade.mean,
        grouping=start.bars.grouping,
    )
    np.testing.assert_allclose(other.cascade.predict(), whole.values, atol=1e-5)


def test_new_error_bars_keep_a_group_and_its_factors():
    lost = np.eye(3, dtype=bool)
    group = Grouping(((0, 1),), 0.4, 0.2)
    new = GapBars(lost, 2.0, 1.1, 0.3, factors=(5.0,))
    for factors, kept in (((1.5, 1.2), (1.5, 1.2)), (None, (5.0,))):
        bars = refilling.keep_group(GapBars(lost, 1.0, 1.0, 0.1, group, factors), new)
        assert (bars.grouping, bars.hole_factors, bars.scale) == (group, kept, 2.0)
    assert refilling.keep_group(GapBars(lost, 1.0, 1.0, 0.1), new) is new


# --- solves that do not end ---------------------------------------------------------------------


def stuck(residual):
    """Return a function that stands for a solve that stopped with this much still due."""

    def solve(*args, **_):
        slices = next(a for a in args if isinstance(a, np.ndarray) and a.ndim == 3)
        return Completed(np.nan_to_num(slices), 7, residual, converged=False)

    return solve


@pytest.mark.parametrize(
    ("how", "solver"), [({}, "fill_slices"), (JOINT, "complete")], ids=["level", "joint"]
)
def test_an_update_that_is_not_solved_for_is_an_error_unless_accepted(how, solver, monkeypatch):
    array, _ = with_gaps()
    start, more = fitted(array.isel(t=slice(0, 10)), **how), array.isel(t=slice(10, None))
    monkeypatch.setattr(refilling, solver, stuck(0.5))
    with pytest.raises(ConvergenceError, match=r"solved for to 0.5 of .* after 7 steps") as found:
        start.update(more)
    assert found.value.setting == "accept_inexact"
    with pytest.raises(ConvergenceError):
        update_model(start, more)
    accepted = start.update(more, accept_inexact=True)
    assert "solved for to 0.5 only" in accepted.origin["notes"][0]
    assert update_model(start, more, accept_inexact=True).model.origin["notes"]
    with pytest.raises(ConvergenceError):
        start.update(more, accept_inexact=False, max_rank=12)
    start.update(more, accept_inexact=True, max_rank=12)


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_an_update_is_as_exact_as_a_fit_and_need_not_be_more(how, monkeypatch):
    """What is still due must be below three thousandths of the model's error."""
    array, _ = with_gaps()
    start, more = fitted(array.isel(t=slice(0, 10)), **how), array.isel(t=slice(10, None))
    judge = refilling.Judge(start, accept_inexact=False)
    enough = 3e-3 * float(start.bars.errors.min()) / float(np.nanstd(array.values))
    assert 1e-8 < enough < 1e-3
    good = Completed(array.values, 3, 0.99 * enough, converged=False)
    assert judge.check(good, array.values).converged
    poor = replace(good, residual=1.01 * enough)
    with pytest.raises(ConvergenceError):
        judge.check(poor, array.values)
    assert refilling.Judge(start, accept_inexact=True).check(poor, array.values) is poor
    solver = "complete" if how else "fill_slices"
    monkeypatch.setattr(refilling, solver, stuck(1e-9))
    assert start.update(more).origin["notes"] == []


def test_settings_that_were_given_are_solved_for_as_exactly_as_can_be():
    array, _ = with_gaps(slices=range(24))
    start = fit(array, kernel="matern52", sigma=3.0, ridge=1e-3)
    assert start.origin["missing"]["settings_tried"] == 1
    judge = refilling.Judge(start, accept_inexact=False)
    done = Completed(array.values, 3, 1e-8, converged=False)
    with pytest.raises(ConvergenceError):
        judge.check(done, array.values)


def test_retuning_is_as_strict(monkeypatch):
    array, _ = with_gaps(slices=range(24))
    start = fit(array, kernel="matern52", sigma=3.0, ridge=1e-3)
    monkeypatch.setattr(refilling, "complete", stuck(0.5))
    with pytest.raises(ConvergenceError):
        retune(start)
    assert "solved for to 0.5" in retune(start, accept_inexact=True).origin["notes"][0]


def test_missing_cells_of_new_slices_are_filled_to_within_the_noise():
    """Levels chosen on complete slices say nothing of the noise of single cells."""
    x, y, t = np.linspace(0, 3, 8), np.linspace(0, 2, 10), np.arange(34.0)
    smooth = 8 * np.sin(x)[:, None, None] * np.cos(t / 8) + 2 * np.cos(y[:, None] - t / 5)
    values = smooth + 0.05 * np.random.default_rng(0).normal(size=smooth.shape)
    lost = np.random.default_rng(1).random((x.size, y.size, 10)) < 0.05
    start = fit(values[..., :24], {"x": x, "y": y, "time": t[:24]})
    model = start.update(np.where(lost, np.nan, values[..., 24:]), t[24:])
    missed = model.predict().values[..., 24:] - smooth[..., 24:]
    assert np.abs(missed[lost]).max() < 0.15
    assert lost.sum() > 5
