import numpy as np
import pytest

from dkrls_cli import DkrlsError, fill, fit, load_model, regrid, validate
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.quality.robust import ROBUST, clean_grid
from dkrls_cli.model.settings import Settings

X, T = np.arange(14.0), np.arange(36.0)
AXES = {"x": X, "time": T}


def field(seed=0):
    noise = 0.02 * np.random.default_rng(seed).normal(size=(X.size, T.size))
    return np.sin(X / 3)[:, None] * np.cos(T / 4) + 0.3 * np.cos(X / 2)[:, None] + noise


def spiked(values, seed=1, share=0.02):
    rng = np.random.default_rng(seed)
    bad = rng.random(values.shape) < share
    size = 5 * values.std(axis=1, keepdims=True) * rng.choice([-1, 1], values.shape)
    return np.where(bad, values + size, values), bad


def truth(x, t):
    return np.sin(x / 3)[:, None] * np.cos(t / 4) + 0.3 * np.cos(x / 2)[:, None]


def error(model):
    x, t = X[:-1] + 0.5, T[:-1] + 0.5
    return float(np.sqrt(np.mean((model.predict(x=x, time=t).values - truth(x, t)) ** 2)))


@pytest.fixture(scope="module")
def fits():
    dirty, bad = spiked(field())
    plain, pulled = fit(field(), AXES), fit(dirty, AXES)
    return plain, pulled, fit(dirty, AXES, robust=True), bad


def test_a_robust_fit_is_nearly_as_good_as_one_without_bad_cells(fits):
    plain, pulled, robust, _ = fits
    assert error(robust) < 1.1 * error(plain)
    assert error(pulled) > 2 * error(plain)


def test_its_settings_are_nearly_those_without_bad_cells(fits):
    plain, _, robust, _ = fits
    for one, other in zip(plain.levels, robust.levels, strict=True):
        assert one.kernel.family == other.kernel.family
        assert one.kernel.sigma == pytest.approx(other.kernel.sigma, rel=0.5)


def test_it_tells_what_was_left_out_and_keeps_it(fits, tmp_path):
    _, _, robust, bad = fits
    known = robust.origin[ROBUST]
    assert 0.9 * bad.sum() <= known["cells"] <= 1.3 * bad.sum()
    assert set(known["kinds"]) == {"spike"}
    robust.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.origin[ROBUST]["cells"] == known["cells"]
    left_out = again.std().values > 0
    assert left_out[bad].mean() > 0.9
    assert not left_out[~bad].mean() > 0.02


def test_data_without_bad_cells_is_fitted_as_ever():
    values = np.round(field(), 3)
    plain, robust = fit(values, AXES, sigma=3, kernel="matern32", ridge=0.1), None
    robust = fit(values, AXES, sigma=3, kernel="matern32", ridge=0.1, robust=True)
    np.testing.assert_allclose(robust.predict(x=[1.5]), plain.predict(x=[1.5]), atol=0.02)
    assert ROBUST not in plain.origin


def test_with_gaps_or_a_joint_ridge_bad_cells_are_missing():
    dirty, bad = spiked(field())
    gaps = dirty.copy()
    gaps[3:5, 10:14] = np.nan
    for values, settings in [(gaps, Settings()), (dirty, Settings(noise="joint"))]:
        cleaned = clean_grid(as_grid(values, AXES), settings)
        assert cleaned.replaced is None
        observed = bad & ~np.isnan(values)
        assert np.isnan(cleaned.grid.values[observed]).mean() > 0.9
        assert not np.isnan(cleaned.grid.values).all()
    cleaned = clean_grid(as_grid(dirty, AXES), Settings())
    assert cleaned.grid.is_complete
    np.testing.assert_allclose(cleaned.grid.values[cleaned.bad], field()[cleaned.bad], atol=0.3)


def test_fill_and_regrid_are_not_pulled():
    dirty, bad = spiked(field(), share=0.01)
    dirty[6, 18:21] = np.nan
    given = {"kernel": "matern52", "sigma": {"x": 5, "time": 6}, "ridge": 1e-3}
    filled = fill(dirty, AXES, robust=True, **given)
    missing = np.isnan(dirty)
    np.testing.assert_allclose(filled.values[missing], field()[missing], atol=0.15)
    np.testing.assert_array_equal(filled.values[bad & ~missing], dirty[bad & ~missing])
    half = regrid(dirty, {"time": T[:-1] + 0.5}, AXES, robust=True, **given)
    assert np.sqrt(np.nanmean((half.values - truth(X, T[:-1] + 0.5)) ** 2)) < 0.05


def test_validate_asks_for_good_cells_only():
    dirty, _ = spiked(field())
    given = {
        "holdout": {"time": 0.2},
        "repeats": 1,
        "kernel": "matern52",
        "sigma": 4,
        "ridge": 1e-3,
    }
    plain, robust = (validate(dirty, AXES, **given, robust=yes).metrics for yes in (False, True))
    assert robust["rmse"] < 0.2 * plain["rmse"]
    assert robust["n"] <= plain["n"]


def test_too_many_bad_cells_are_refused():
    values = field() * 3 + 15
    values[:, 20:] += 273.15
    with pytest.raises(DkrlsError, match=r"do not fit the others .* K instead of degC"):
        fit(values, AXES, robust=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_bad_cells_of_smooth_data_are_filled_from_the_others(seed):
    """What fibres say of a cell is no better than the worst of its neighbours."""
    rng = np.random.default_rng(seed)
    x, y, t = np.meshgrid(np.arange(14) / 3, np.arange(14) / 3, np.arange(10) / 5, indexing="ij")
    values = np.cos(x) * np.cos(y + t) + np.cos(x) ** 2 * np.sin(2 * y) * np.cos(t)
    bad = rng.random(values.shape) < 0.004
    bad[4, 4:6, 3] = bad[5, 4, 3] = True
    model = fit(np.where(bad, values + 3.0, values), robust=True)
    assert model.origin[ROBUST]["cells"] >= bad.sum()
    assert np.abs(model.predict().values - values).max() < 0.05


@pytest.mark.parametrize("kind", ["scalar", "vector"])
def test_bad_cells_are_marked_behind_a_pole_too(kind):
    lat, lon = np.arange(-75.0, 76, 10), np.arange(0.0, 360, 20)
    noise = 0.01 * np.random.default_rng(0).normal(size=(16, 18))
    values = np.cos(np.radians(lat))[:, None] * np.cos(np.radians(lon)) + noise
    values[0, 4] += 3.0
    how = {"kernel": "matern52", "sigma": 40.0, "ridge": 1e-3}
    model = fit(values, {"lat": lat, "lon": lon}, **how, robust=True, poles=kind)
    rows, copied = model.poles.copies(model.cascade.shape[0]), model.filled
    own = np.flatnonzero(rows < 0)[0]
    assert copied[own, 4]
    assert copied[np.flatnonzero(rows == own)[0], 13]  # half a turn away
    assert float(model.std().values[0, 4]) > 0
