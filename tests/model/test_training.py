"""Models of grids with missing cells, against dense solves over the observed ones."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError

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
    assert "here and there" in known["pattern"]


def test_settings_are_chosen_and_recover_the_field():
    chosen = fit(VALUES, {"x": X, "d": D})
    assert chosen.cascade.joint_ridge is not None
    assert np.sqrt(np.mean((chosen.predict().values - CLEAN)[GAPS] ** 2)) < 0.03
    kept = fit(VALUES, {"x": X, "d": D}, kernel={"x": "matern12"}, sigma={"d": 2.5})
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
        ({"noise": "level"}, SettingError, "joint ridge"),
        ({"ridge": {"x": 0.1}}, SettingError, "one number"),
        ({"folds": 3}, SettingError, "complete grids"),
    ],
)
def test_what_gaps_do_not_allow_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        fit(VALUES, {"x": X, "d": D}, **options)


def test_nothing_at_all_and_infinities_are_refused():
    with pytest.raises(InputError, match="missing"):
        fit(np.full((4, 5), np.nan))
    infinite = VALUES.copy()
    infinite[0, 0] = np.inf
    with pytest.raises(InputError, match="infinite"):
        fit(infinite, {"x": X, "d": D})


def test_a_solve_that_does_not_end_is_said(monkeypatch):
    from dkrls_cli.gaps.solve import complete
    from dkrls_cli.model import training

    def hasty(*args, **options):
        return complete(*args, **{**options, "limit": 1})

    monkeypatch.setattr(training, "complete", hasty)
    model = fit(VALUES, {"x": X, "d": D}, **GIVEN)
    assert "in 1 steps" in model.origin["notes"][0]
