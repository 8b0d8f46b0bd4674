"""Tests of dkrls_cli.model.answering.slopes."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.interpolate import CubicSpline

from dkrls_cli import fit
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.errors import SettingError
from dkrls_cli.model.answering import slopes as module
from dkrls_cli.model.answering.questions import Question
from dkrls_cli.model.answering.slopes import can_replace, noisy_slopes, noisy_values, with_slopes

X, T = np.arange(24.0), np.arange(40.0)
RIDGES = {"x": 1e-4, "t": 1e-3}


def rough(seed: int = 0) -> xr.DataArray:
    """Return series of t that are random walks with some noise, smooth in x."""
    rng = np.random.default_rng(seed)
    waves = np.sin(np.outer(X, [0.1, 0.2, 0.3]) + rng.uniform(0, 6, 3))
    walks = rng.standard_normal((3, T.size)).cumsum(axis=1)
    return xr.DataArray(waves @ walks, {"x": X, "t": T}, ("x", "t"), "v", {"units": "m"})


@pytest.fixture(scope="module")
def model():
    kernel = {"x": "gaussian", "t": "matern12"}
    return fit(rough(), kernel=kernel, sigma={"x": 6.0, "t": 40.0}, ridge=RIDGES)


def test_slopes_of_a_rough_level_come_from_a_smoother_one_and_that_is_told(model):
    found = model.predict(derivative="t", t=T[:-1] + 0.5)
    assert found.attrs["comment"].startswith("slopes along t are those of a matern")
    assert "as the matern12 kernel of the values has none" in found.attrs["comment"]
    steps = np.diff(rough().values, axis=1)
    assert np.corrcoef(found.values.ravel(), steps.ravel())[0, 1] > 0.98
    errors = model.std(derivative="t", t=T[:-1] + 0.5)
    assert (errors > 0).all()
    points = model.predict_points(x=[3.0], t=[2.5], derivative="t")
    assert points.item() == pytest.approx(found.sel(x=3.0, t=2.5).item(), rel=1e-9)
    assert points.attrs["comment"] == found.attrs["comment"]
    assert np.array_equal(model.predict(t=[2.5]), model.predict(t=[2.5]))
    assert model.level_of("t").kernel.family == "matern12"  # values stay what they are


def test_slopes_are_nearer_than_those_of_differences_and_splines():
    whole = rough(1)
    thin = whole.isel(t=slice(0, None, 2))
    held = T[1:-1:2]
    truth = CubicSpline(T, whole.values, axis=1)(held, 1)
    spline = CubicSpline(thin.t, thin.values, axis=1)(held, 1)
    kernel = {"x": "gaussian", "t": "matern12"}
    ours = fit(thin, kernel=kernel).predict(derivative="t", t=held)
    assert np.mean((ours.values - truth) ** 2) < np.mean((spline - truth) ** 2)


def test_the_level_is_chosen_once(model, monkeypatch):
    question = Question(derivative=("t",))
    first, words = with_slopes(model, question)
    monkeypatch.setattr(module, "choose_level", None)
    again, same = with_slopes(model, question)
    assert first.cascade.levels == again.cascade.levels
    assert words == same
    assert first.cascade.levels[0] == model.cascade.levels[0]
    assert with_slopes(model, Question(derivative=("x",))) == (model, "")
    assert with_slopes(model, None) == (model, "")


def test_second_derivatives_come_from_a_kernel_that_has_them(model):
    second, words = with_slopes(model, Question(derivative=("t", "t")))
    assert second.level_of("t").kernel.family in ("matern52", "gaussian")
    assert "slopes along t" in words
    with pytest.raises(SettingError, match="Orders 1 and 2"):
        model.predict(derivative=["t"] * 3)


def test_what_a_model_does_not_hold_stays_refused(model, monkeypatch):
    assert not can_replace(model, 3)
    monkeypatch.setattr(Cascade, "is_stand_in", True)
    assert not can_replace(model, 1)
    with pytest.raises(SettingError, match="no first derivative"):
        model.predict(derivative="t")


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_slopes_under_a_joint_ridge_come_from_the_data_that_it_has_filled(missing):
    whole, half = rough(), T[:-1] + 0.5
    data = whole.where(np.random.default_rng(2).random(whole.shape) >= missing)
    how = {"kernel": {"x": "gaussian", "t": "matern12"}, "sigma": {"x": 6.0, "t": 40.0}}
    joint = fit(data, noise="joint", ridge=1e-5, **how)
    found = joint.predict(derivative="t", t=half)
    assert "as the matern12 kernel of the values has none" in found.attrs["comment"]
    steps = np.diff(whole.values, axis=1)
    assert np.corrcoef(found.values.ravel(), steps.ravel())[0, 1] > 0.98
    errors = joint.std(derivative="t", t=half[:5])
    assert (errors > 0).all()
    spread = joint.ensemble(60, derivative="t", t=half[:5]).std("realization")
    assert 0.8 < (spread / errors).median() < 1.25
    second = with_slopes(joint, Question(derivative=("t", "t")))[0]
    assert second.level_of("t").kernel.family == "matern52"
    assert second.joint_ridge >= joint.joint_ridge


def test_slopes_of_means_over_cells_come_from_a_smoother_kernel_as_well():
    how = {"sigma": {"x": 6.0, "t": 40.0}, "ridge": RIDGES, "cell_means": "t"}
    means = fit(rough(), kernel={"x": "gaussian", "t": "matern12"}, **how)
    smoother = with_slopes(means, Question(derivative=("t",)))[0].level_of("t")
    given = fit(rough(), levels=[means.level_of("x"), smoother], cell_means="t")
    found, exact = (m.predict(derivative="t", t=[2.3, 7.0]) for m in (means, given))
    assert np.allclose(found, exact, rtol=0, atol=1e-9)
    assert (means.std(derivative="t", t=[2.3, 7.0]) > 0).all()


def test_a_smaller_frame_of_the_data_is_enough():
    kernel = {"x": "gaussian", "t": "matern12"}
    how = {"kernel": kernel, "sigma": {"x": 6.0, "t": 40.0}, "ridge": RIDGES}
    compact, plain = fit(rough(), compact=True, **how), fit(rough(), **how)
    assert any(frame is not None for frame in compact.cascade.frames)
    found, exact = (m.predict(derivative="t", x=[3.5], t=[2.5]).item() for m in (compact, plain))
    assert found == pytest.approx(exact, abs=0.2)


def test_slopes_that_may_be_those_of_noise_are_known(model):
    noisy = fit(rough(), kernel="matern52", sigma={"x": 6.0, "t": 4.0}, ridge={"x": 1e-6, "t": 0.4})
    question = Question(derivative=("t", "x"))
    (dim,), (share,) = zip(*noisy_slopes(noisy, question, smooth=False).items(), strict=True)
    assert (dim, share) == ("t", pytest.approx(0.4 / noisy.level_of("t").kernel.variance))
    assert noisy_slopes(noisy, question, smooth=True) == {}
    assert noisy_slopes(noisy, None, smooth=False) == {}
    assert noisy_slopes(model, question, smooth=False) == {}
    joint = fit(rough(), kernel="matern52", noise="joint", sigma=4.0, ridge=0.4)
    assert set(noisy_slopes(joint, question, smooth=False)) == {"t", "x"}


def test_errors_of_slopes_count_noise_that_passes_through_the_data():
    rng, t, x = np.random.default_rng(3), np.arange(40.0), np.arange(20.0)
    phase = np.add.outer(0.25 * t, 0.2 * x)
    given = {"sigma": {"t": 12.0, "x": 20.0}, "kernel": "gaussian", "ridge": 0.01}
    model = fit(np.sin(phase) + 0.2 * rng.standard_normal(phase.shape), {"t": t, "x": x}, **given)
    half = t[2:-3] + 0.5
    true = 0.25 * np.cos(np.add.outer(0.25 * half, 0.2 * x))
    missed = np.abs(model.predict(derivative="t", t=half) - true)
    held = np.mean(missed <= 1.645 * model.std(derivative="t", t=half))
    assert 0.82 < held < 0.97


def test_values_of_means_that_may_be_noise_are_known():
    how = {"kernel": "matern52", "sigma": 4.0, "cell_means": "t"}
    noisy = fit(rough(), ridge={"x": 0.4, "t": 0.2}, **how)
    prior = noisy.level_of("t").kernel.variance
    assert noisy_values(noisy, Question(), smooth=False) == {"t": pytest.approx(0.2 / prior)}
    assert noisy_values(noisy, Question(), smooth=True) == {}
    assert noisy_values(noisy, Question(mean=("t",)), smooth=False) == {}
    assert noisy_values(noisy, Question(derivative=("t",)), smooth=False) == {}
    assert noisy_values(noisy, None, smooth=False) == {}
    exact = fit(rough(), ridge={"x": 0.4, "t": 1e-4}, **how)
    assert noisy_values(exact, Question(), smooth=False) == {}
    joint = fit(rough(), noise="joint", ridge=0.4, **how)
    assert set(noisy_values(joint, Question(), smooth=False)) == {"t"}
