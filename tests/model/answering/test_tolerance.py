"""Tolerances: how they are read, what they mean, and that models keep and report them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.storage.compress import stored_bytes
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.answering.tolerance import Tolerance, read_tolerance
from dkrls_cli.model.fit import retune
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import Settings

X, Y, T = np.linspace(0, 4, 18), np.linspace(0, 3, 15), np.arange(24.0)
NOISE = 1e-3 * np.random.default_rng(3).standard_normal((24, 15, 18))
VALUES = (
    280
    + np.sin(T / 4)[:, None, None] * np.cos(Y)[:, None] * np.sin(X)
    + 0.3 * np.cos(T / 9)[:, None, None] * Y[:, None] * np.cos(X)
    + NOISE
)
GIVEN = {"kernel": "matern52", "sigma": {"x": 1.5, "y": 1.5, "time": 5.0}}


def labelled(values: np.ndarray = VALUES, units: str = "K") -> xr.DataArray:
    coordinates = {"time": T[: len(values)], "y": Y, "x": X}
    attrs = {"units": units} if units else {}
    return xr.DataArray(values, coordinates, ("time", "y", "x"), "tas", attrs)


def with_gaps() -> np.ndarray:
    values = VALUES.copy()
    values[np.random.default_rng(1).random(values.shape) < 0.2] = np.nan
    return values


def refined(model: Cascade) -> list[np.ndarray]:
    """Return nodes and midpoints of every axis."""
    return [np.concatenate([c, c[:-1] + np.diff(c) / 2]) for c in model.coordinates]


# ---- reading


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1e-3, Tolerance(1e-3)),
        (1, Tolerance(1.0)),
        ("1e-3", Tolerance(1e-3)),
        (" .5 ", Tolerance(0.5)),
        ("0.05K", Tolerance(0.05, "K")),
        ("5.e-2 degree_Celsius", Tolerance(0.05, "degree_Celsius")),
        ("2 kg m-2 s-1", Tolerance(2.0, "kg m-2 s-1")),
        ("0.1 1", Tolerance(0.1, "1")),
        ("0.5%", Tolerance(0.5, "%")),
    ],
)
def test_a_number_is_a_share_and_units_follow_it(given: float | str, expected: Tolerance) -> None:
    assert read_tolerance(given) == expected
    assert Settings(tolerance=given).allowed == expected


@pytest.mark.parametrize("given", [0, 0.0, -1e-3, float("nan"), float("inf"), "0", "-2 K", "0 K"])
def test_a_tolerance_that_is_not_above_0_is_refused_in_one_line(given: float | str) -> None:
    with pytest.raises(SettingError, match=r"^Invalid tolerance [^\n]* above 0: [^\n]*$"):
        Settings(tolerance=given)


@pytest.mark.parametrize("given", ["", "K", "small", "nan", "K 0.05"])
def test_a_text_without_a_number_is_refused(given: str) -> None:
    with pytest.raises(SettingError, match=f"Invalid tolerance '{given}'. Give a share of the"):
        Settings(tolerance=given)


def test_units_must_be_those_of_the_variable() -> None:
    with pytest.raises(SettingError, match=r"'tas' has the units 'K'. Give '0.05 K', or a share"):
        fit(labelled(), tolerance="0.05 degC")
    with pytest.raises(SettingError, match=r"'tas' has no units. Give a share of the standard"):
        fit(labelled(units=""), tolerance="0.05 K")
    Tolerance(0.05, "K").check_units("tas", {"units": " K "})
    Tolerance(0.05, "m/s").check_units("tas", {"units": "m s-1"})
    Tolerance(0.05).check_units("tas", {})


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_a_share_is_of_the_standard_deviation_of_the_observed_cells(size: float) -> None:
    values = size * np.array([[1.0, np.nan], [3.0, 5.0]])
    expected = 0.1 * size * np.std([1.0, 3.0, 5.0])
    assert Tolerance(0.1).in_units(values) == pytest.approx(expected, rel=1e-12)
    assert Tolerance(0.1, "K").in_units(values) == 0.1
    assert Tolerance(0.1).in_units(np.zeros((2, 2))) == 0.0


def test_tolerances_are_told_as_they_were_given() -> None:
    assert str(Tolerance(1e-3)) == "0.001 of the standard deviation"
    assert str(Tolerance(0.05, "K")) == "0.05 K"


# ---- models


def check_promise(small: Model, full: Model, limit: float) -> None:
    """Compare the answers of two models; the first must tell the differences in its origin."""
    assert small.levels == full.levels
    told = small.origin["tolerance"]
    queries = refined(full.cascade)
    off = small.cascade.predict(queries) - full.cascade.predict(queries)
    assert np.abs(off).max() <= limit
    assert told["limit"] == pytest.approx(limit, rel=1e-12)
    assert told["max"] == pytest.approx(np.abs(off).max(), rel=0.02)
    assert told["rms"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-6)
    assert told["bytes"] == stored_bytes(small.cascade) < told["full_bytes"] / 5
    assert told["full_bytes"] == stored_bytes(full.cascade)


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_a_model_keeps_its_promise(noise: str) -> None:
    how = {**GIVEN, "noise": noise, "ridge": 1e-3}
    full = fit(labelled(), **how)
    check_promise(fit(labelled(), tolerance=0.02, **how), full, 0.02 * float(np.std(VALUES)))
    check_promise(fit(labelled(), tolerance="0.01 K", **how), full, 0.01)


def test_through_gaps_the_promise_is_for_the_completed_grid() -> None:
    values, how = with_gaps(), {**GIVEN, "ridge": 1e-3}
    full, small = fit(labelled(values), **how), fit(labelled(values), tolerance=0.02, **how)
    check_promise(small, full, 0.02 * float(np.nanstd(values)))
    np.testing.assert_array_equal(small.unobserved, np.isnan(values))
    np.testing.assert_allclose(small.std(x=1.1), full.std(x=1.1), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("errors", [None, 0.05])
@pytest.mark.parametrize("less", [{"compact": True}, {"tolerance": 0.02}])
def test_through_gaps_error_bars_are_those_of_the_full_model(
    less: dict, errors: float | None, tmp_path: Path
) -> None:
    """Of what a small model leaves out its error bars know: also from its file."""
    how = {**GIVEN, "kernel": "gaussian", "ridge": 1e-3, "obs_error": errors}
    full, small = fit(labelled(with_gaps()), **how), fit(labelled(with_gaps()), **how, **less)
    small.save(tmp_path / "small.npz")
    full.save(tmp_path / "full.npz")
    assert stored_bytes(small.cascade) < stored_bytes(full.cascade)
    asked = {"x": 1.1, "time": [2.0, 2.5]}
    for model in (small, load_model(tmp_path / "small.npz"), load_model(tmp_path / "full.npz")):
        np.testing.assert_allclose(model.std(**asked), full.std(**asked), rtol=1e-7)


def test_error_bars_are_those_of_the_full_model() -> None:
    how = {**GIVEN, "ridge": 1e-3}
    full, small = fit(labelled(), **how), fit(labelled(), tolerance=0.02, **how)
    assert small.errors == full.errors
    np.testing.assert_allclose(small.std(x=1.1, y=0.7), full.std(x=1.1, y=0.7), rtol=1e-9)


def test_a_tolerance_takes_the_place_of_compact_and_dtype() -> None:
    how = {**GIVEN, "ridge": 1e-3, "tolerance": 0.02}
    plain, both = fit(labelled(), **how), fit(labelled(), **how, compact=True, dtype="float32")
    assert both.origin == plain.origin
    np.testing.assert_array_equal(both.cascade.core, plain.cascade.core)


def test_nothing_is_told_without_a_tolerance() -> None:
    assert "tolerance" not in fit(labelled(), **GIVEN, ridge=1e-3).origin


def test_constant_data_is_stored_as_it_is() -> None:
    model = fit(np.full((8, 9), 3.0), kernel="matern52", sigma=2.0, ridge=0.1, tolerance=0.1)
    told = model.origin["tolerance"]
    assert (told["limit"], told["rms"], told["max"]) == (0.0, 0.0, 0.0)
    assert told["bytes"] == told["full_bytes"] == stored_bytes(model.cascade)
    np.testing.assert_allclose(model.predict(), 3.0)


def test_between_labels_nothing_is_measured() -> None:
    names = [f"s{i}" for i in range(15)]
    array = labelled().assign_coords(y=names)
    how = {"kernel": "matern52", "sigma": {"x": 1.5, "y": 2.0, "time": 5.0}, "ridge": 1e-3}
    full, small = fit(array, **how).cascade, fit(array, tolerance=0.02, **how)
    queries = refined(full)
    queries[1] = full.coordinates[1]
    off = small.cascade.predict(queries) - full.predict(queries)
    assert small.origin["tolerance"]["rms"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-6)


def test_a_file_keeps_the_numbers_and_the_promise(tmp_path) -> None:
    model = fit(labelled(), tolerance=0.02, **GIVEN, ridge=1e-3)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.origin == model.origin
    assert stored_bytes(again.cascade) == stored_bytes(model.cascade)
    assert again.storage == "float32"
    queries = refined(model.cascade)
    np.testing.assert_array_equal(again.cascade.predict(queries), model.cascade.predict(queries))


@pytest.mark.parametrize("noise", ["level", "joint"])
def test_new_slices_end_the_promise(noise: str) -> None:
    how = {**GIVEN, "noise": noise, "ridge": 1e-3}
    model = fit(labelled(VALUES[:20]), tolerance=0.02, **how)
    grown = model.update(labelled().isel(time=slice(20, None)))
    assert "tolerance" in model.origin
    assert "tolerance" not in grown.origin
    np.testing.assert_allclose(grown.predict(), VALUES, atol=0.03)
    between = {"x": [1.1, 2.3], "time": [3.5, 21.5]}
    np.testing.assert_allclose(
        grown.predict(**between), fit(labelled(), **how).predict(**between), atol=0.03
    )


def test_other_settings_end_the_promise() -> None:
    model = fit(labelled(), tolerance=0.02, **GIVEN, ridge=1e-3)
    assert "tolerance" not in retune(model).origin


def test_a_grid_of_one_axis_is_stored_in_single_precision() -> None:
    model = fit(as_grid(np.sin(X) + 280), kernel="matern52", sigma=3.0, tolerance=1e-3)
    assert model.storage == "float32"
    assert model.origin["tolerance"]["max"] < 1e-3
