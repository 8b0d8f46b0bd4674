"""Bounds of answers: what is kept within them, error bars among it, and what files tell of them."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dkrls_cli import fill, fit, load_model, validate
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files import npz
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.grid.style import Packing, Style
from dkrls_cli.model.answering.bounds import Bounds, bounds_told, choose_bounds, read_bounds
from dkrls_cli.model.fit import retune
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.stream import Plan, Stream

INF = math.inf
ENDS = [(0.0, 1.0), (0.0, INF), (-INF, 1.0), (-3.0, 0.2), (0.4, 0.45)]
MEANS = [-50.0, -6.0, -1.0, -0.1, 0.0, 0.3, 0.43, 0.5, 1.0, 1.2, 9.0]


# Clipped normal distributions ---------------------------------------------------------------------


def deviation(mean: float, std: float, low: float, high: float) -> float:
    """Root mean square of clip(X) - clip(mean) for a normal X, by quadrature."""
    answer = min(max(mean, low), high)

    def part(x: float) -> float:
        return (min(max(x, low), high) - answer) ** 2 * norm.pdf(x, mean, std)

    ends = [min(max(end, mean - 12 * std), mean + 12 * std) for end in (low, high)]
    cuts = sorted({mean - 12 * std, mean, mean + 12 * std, *ends})
    return math.sqrt(sum(quad(part, a, b, epsabs=0, epsrel=1e-10)[0] for a, b in pairwise(cuts)))


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), ENDS)
@pytest.mark.parametrize("std", [0.02, 0.5, 3.0])
def test_the_spread_is_that_of_a_clipped_normal_distribution(low, high, std):
    means = np.array(MEANS)
    found = Bounds(low, high).spread(means, np.full(means.shape, std))
    expected = [deviation(mean, std, low, high) for mean in MEANS]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * std)


def test_the_spread_agrees_with_a_sample():
    rng = np.random.default_rng(0)
    bounds = Bounds(0.0, 1.0)
    for mean, std in ((0.1, 0.3), (-0.4, 0.6), (0.9, 0.05)):
        sample = bounds.clip(rng.normal(mean, std, 400_000))
        answer = bounds.clip(np.array(mean))
        found = bounds.spread(np.array([mean]), np.array([std]))[0]
        assert found == pytest.approx(np.sqrt(np.mean((sample - answer) ** 2)), rel=0.01)


@given(
    st.floats(-1e3, 1e3),
    st.floats(0, 1e3),
    st.floats(-1e3, 1e3) | st.just(-INF),
    st.floats(1e-6, 1e3) | st.just(INF),
)
def test_the_spread_is_at_most_the_error_and_the_width(mean, std, low, width):
    high = width if math.isinf(low) else low + width
    bounds = Bounds(low, high)
    (found,) = bounds.spread(np.array([mean]), np.array([std]))
    assert 0 <= found <= std
    assert found <= high - low
    if std == 0:
        assert found == 0


def test_far_from_the_bounds_nothing_changes():
    values, std = np.array([5.0, 50.0]), np.array([0.1, 2.0])
    np.testing.assert_array_equal(Bounds(0, 100).clip(values), values)
    np.testing.assert_allclose(Bounds(0, 100).spread(values, std), std, rtol=1e-14)
    np.testing.assert_allclose(Bounds(0).spread(values, std), std, rtol=1e-14)


def test_missing_values_stay_missing():
    nothing = np.array([np.nan])
    assert np.isnan(Bounds(0, 1).clip(nothing)).all()
    assert np.isnan(Bounds(0, 1).spread(nothing, nothing)).all()


# What is given ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ("0,1", Bounds(0, 1)),
        (" 0 , 1e2 ", Bounds(0, 100)),
        ("0,", Bounds(0, INF)),
        (",100", Bounds(-INF, 100)),
        ("-inf,5", Bounds(-INF, 5)),
        ("-5,-1", Bounds(-5, -1)),
        ((0, 1), Bounds(0, 1)),
        ([0, None], Bounds(0)),
        ((None, "3"), Bounds(-INF, 3)),
        ([np.float32(0), np.int16(1)], Bounds(0, 1)),
        ((None, None), None),
        ((-INF, INF), None),
        ("none", None),
        (None, None),
    ],
)
def test_bounds_are_a_pair_or_a_text(given, bounds):
    assert read_bounds(given) == bounds


@pytest.mark.parametrize(
    "given",
    ["", "1", "0,1,2", "low,high", "1,0", "1,1", "nan,1", ",", "inf,", (1, 0), (0,), 5, [[1]]],
)
def test_what_bounds_nothing_is_refused(given):
    with pytest.raises(SettingError, match="ounds"):
        read_bounds(given)
    with pytest.raises(SettingError, match="ounds"):
        fit(np.ones((3, 4)), bounds=given)


def test_a_list_or_an_array_is_a_pair():
    assert Settings(bounds=[0, 1]) == Settings(bounds=np.array([0, 1])) == Settings(bounds=(0, 1))
    assert Settings(bounds=np.array([0, 1])).given == {"bounds": (0, 1)}
    assert Settings(bounds="auto").given == {}


def test_bounds_are_told_in_words():
    assert str(Bounds(0, 1)) == "between 0 and 1"
    assert str(Bounds(0)) == "at or above 0"
    assert str(Bounds(high=1.5)) == "at or below 1.5"


# What files tell ----------------------------------------------------------------------------------

FRACTION = {"standard_name": "sea_ice_area_fraction", "units": "1"}


@pytest.mark.parametrize(
    ("attrs", "bounds"),
    [
        ({"valid_range": np.array([0, 5], "i2")}, Bounds(0, 5)),
        ({"valid_range": [0.0, 1.0], "valid_min": -9.0}, Bounds(0, 1)),
        ({"valid_min": np.float32(0)}, Bounds(0)),
        ({"valid_max": np.array([3.0])}, Bounds(high=3)),
        ({"valid_min": -1, "valid_max": 1.0}, Bounds(-1, 1)),
        (FRACTION, Bounds(0, 1)),
        (FRACTION | {"units": "%"}, Bounds(0, 100)),
        (FRACTION | {"valid_max": 0.5}, Bounds(high=0.5)),
        ({"standard_name": "cloud_area_fraction_in_atmosphere_layer", "units": "1"}, Bounds(0, 1)),
        ({"standard_name": "area_fraction", "units": "percent"}, Bounds(0, 100)),
        ({"standard_name": "relative_humidity", "units": "%"}, Bounds(0, 100)),
        ({"standard_name": "volume_fraction_of_clay_in_soil", "units": "1"}, Bounds(0, 1)),
        (FRACTION | {"units": "km2"}, None),
        ({"standard_name": "sea_ice_area_fraction"}, None),
        (
            {"standard_name": "tendency_of_sea_ice_area_fraction_due_to_dynamics", "units": "1"},
            None,
        ),
        ({"standard_name": "change_over_time_in_x_area_fraction", "units": "1"}, None),
        ({"standard_name": "sea_ice_area_fraction standard_error", "units": "1"}, None),
        ({"standard_name": "air_temperature", "units": "1"}, None),
        ({"valid_range": "0 to 1"}, None),
        ({"valid_range": [1.0, 0.0]}, None),
        ({"valid_range": [1.0]}, None),
        ({"valid_min": "low"}, None),
        ({"valid_min": [1.0, 2.0]}, None),
        ({}, None),
    ],
)
def test_bounds_by_attributes(attrs, bounds):
    assert bounds_told(attrs)[0] == bounds


def grid_of(values, **attrs):
    return as_grid(xr.DataArray(np.asarray(values, float), name="ice", attrs=attrs))


def test_a_packed_file_tells_in_units_of_its_integers():
    attrs = {"scale_factor": 0.01, "valid_min": np.int16(0), "valid_max": np.int16(4500)}
    style = Style(packing=Packing("int16", attrs))
    bounds, note = choose_bounds("auto", replace(grid_of([[0.0, 30.0]]), style=style))
    assert (bounds, note) == (
        Bounds(0, 45),
        "answers are kept between 0 and 45, as valid_min and valid_max tells",
    )
    outside = replace(grid_of([[0.0, 46.0]]), style=style)
    assert choose_bounds("auto", outside)[0] is None


@pytest.mark.parametrize(
    "attrs",
    [
        {"valid_range": np.array([0.0, 45.0], "f4")},
        {"valid_range": np.array([0, 45], "i2"), "_Unsigned": "true"},
    ],
)
def test_limits_of_packed_values_that_may_count_these_are_told_and_not_used(attrs):
    style = Style(packing=Packing("int16", {"scale_factor": 0.01, **attrs}))
    grid = replace(grid_of([[0.0, 30.0]]), style=style)
    bounds, note = choose_bounds("auto", grid)
    shown = ", ".join(map(str, attrs["valid_range"].tolist()))
    assert bounds is None
    assert note == (
        f"valid_range {shown} of 'ice' is not used: nothing tells whether it counts the packed "
        "integers (int16) or the values"
    )
    assert choose_bounds("none", grid) == choose_bounds(None, grid) == (None, "")
    assert choose_bounds((0, 45), grid) == (Bounds(0, 45), "")


def test_what_the_file_tells_is_used_and_told():
    bounds, note = choose_bounds("auto", grid_of([[0.0, np.nan], [1.0, 0.5]], **FRACTION))
    assert bounds == Bounds(0, 1)
    assert note == (
        "answers are kept between 0 and 1, as the standard name 'sea_ice_area_fraction' tells"
    )
    assert choose_bounds(None, grid_of([[0.0, 1.0]], **FRACTION)) == (None, "")
    assert choose_bounds("auto", grid_of([[0.0, 1.0]])) == (None, "")


def test_bounds_of_the_file_that_data_lies_outside_of_are_not_used_and_that_is_told():
    values = [[0.0, np.nan, -0.2], [1.0, 1.3, 0.5]]
    bounds, note = choose_bounds("auto", grid_of(values, valid_range=[0.0, 1.0]))
    assert bounds is None
    assert note == (
        "answers are not kept between 0 and 1, as valid_range tells: "
        "2 of 5 values lie outside, from -0.2 to 1.3"
    )


def test_rounding_is_not_outside():
    bounds, _ = choose_bounds("auto", grid_of([[0.0, np.float32(1.0000001)]], **FRACTION))
    assert bounds == Bounds(0, float(np.float32(1.0000001)))
    bounds, _ = choose_bounds("auto", grid_of([[0.0, 1.00001]], **FRACTION))
    assert bounds is None
    bounds, _ = choose_bounds("auto", grid_of([[-1e-7, 0.5]], **FRACTION))
    assert bounds == Bounds(-1e-7, 1)
    bounds, _ = choose_bounds("auto", grid_of([[-1e-7, 0.5]], valid_min=0.0))
    assert bounds is None  # nothing says how large a value is


def test_given_bounds_hold_for_single_precision():
    tenth = float(np.float32(0.1))
    model = fit(np.array([[0.0, 0.05, tenth]] * 3), bounds=(0, 0.1))
    assert model.bounds == Bounds(0, tenth)
    with pytest.raises(SettingError, match="3 of 9 values"):
        fit(np.array([[0.0, 0.05, 0.100001]] * 3), bounds=(0, 0.1))


def test_a_grid_without_data_violates_nothing():
    nothing = grid_of(np.full((2, 3), np.nan), **FRACTION)
    assert choose_bounds("auto", nothing)[0] == Bounds(0, 1)
    assert choose_bounds("2,3", nothing) == (Bounds(2, 3), "")
    assert choose_bounds("2,3", grid_of(np.empty((0, 3))))[0] == Bounds(2, 3)


def test_given_bounds_that_the_data_violates_are_refused():
    values = [[0.0, np.nan, -0.2], [1.0, 1.3, 0.5]]
    with pytest.raises(SettingError, match=r"2 of 5 values lie outside, from -0\.2 to 1\.3") as no:
        fit(grid_of(values), bounds=(0, 1))
    assert no.value.setting == "bounds"
    assert fit(grid_of(values), bounds=(-0.2, 1.3)).bounds == Bounds(-0.2, 1.3)


def test_packed_limits_are_not_those_of_the_values():
    array = xr.DataArray(np.full((3, 4), 0.01), attrs={"valid_max": np.int16(100), "units": "1"})
    assert fit(array).bounds == Bounds(high=100)
    array.encoding["scale_factor"] = 1e-4
    model = fit(array)
    assert model.bounds is None
    assert model.attrs == {"units": "1"}


# Answers ------------------------------------------------------------------------------------------

X, T = np.arange(12.0), np.arange(14.0)
ICE = np.clip(0.5 + np.outer(np.sin(X / 1.5), np.cos(T / 2)), 0, 1)
GIVEN = {"kernel": "gaussian", "sigma": {"x": 2.0, "t": 2.5}, "ridge": 1e-3}
BETWEEN = {"x": np.linspace(0, 11, 34), "t": np.linspace(0, 13, 27)}
ONE = Bounds(0.0, 1.0)


def models(values=ICE):
    coordinates = {"x": X, "t": T}
    free = fit(values, coordinates, **GIVEN)
    return free, fit(values, coordinates, bounds="0,1", **GIVEN)


def holes():
    values = ICE.copy()
    values[np.random.default_rng(1).random(ICE.shape) < 0.3] = np.nan
    return values


@pytest.mark.parametrize("values", [ICE, holes()], ids=["complete", "gaps"])
def test_all_answers_are_clipped_and_their_errors_with_them(values):
    free, kept = models(values)
    assert (free.bounds, kept.bounds) == (None, ONE)
    raw, spread = free.predict(**BETWEEN).values, free.std(**BETWEEN).values
    assert raw.min() < -0.01
    assert raw.max() > 1.01
    answers, errors = ONE.clip(raw), ONE.spread(raw, spread)
    np.testing.assert_array_equal(kept.predict(**BETWEEN), answers)
    np.testing.assert_allclose(kept.std(**BETWEEN), errors, rtol=1e-12)
    assert (errors < spread).any()
    axes = kept.axes_at(BETWEEN)
    np.testing.assert_array_equal(kept.values_on(axes), answers)
    np.testing.assert_allclose(kept.std_on(axes), errors, rtol=1e-12)
    for part, block, std in kept.blocks_on(axes, 100, std=True):
        np.testing.assert_allclose(block, answers[part], atol=1e-12)
        np.testing.assert_allclose(std, errors[part], atol=1e-9)
        assert (block >= 0).all()
        assert (block <= 1).all()
    assert next(iter(kept.blocks_on(axes, 100)))[2] is None
    points = {"x": BETWEEN["x"][:20], "t": BETWEEN["t"][:20]}
    diagonal = np.arange(20), np.arange(20)
    np.testing.assert_allclose(kept.predict_points(**points), answers[diagonal], atol=1e-9)
    np.testing.assert_allclose(kept.std_points(**points), errors[diagonal], atol=1e-6)
    assert kept.predict_points(**points).min() >= 0


def test_observed_data_stays_as_it_is():
    values = holes()
    _, kept = models(values)
    seen = ~np.isnan(values)
    np.testing.assert_allclose(kept.predict().values[seen], values[seen], atol=1e-12)
    assert (kept.std().values[seen] == 0).all()
    filled = fill(values, {"x": X, "t": T}, mask="none", std=True, bounds=(0, 1), **GIVEN)
    np.testing.assert_array_equal(filled["values"].values[seen], values[seen])
    assert (filled["values_std"].values[seen] == 0).all()


def test_filled_cells_are_within_the_bounds_and_so_are_their_errors():
    values, given = holes(), {"mask": "none", "std": True, **GIVEN}
    free, kept = (
        fill(values, {"x": X, "t": T}, bounds=bounds, **given) for bounds in (None, (0, 1))
    )
    gaps = np.isnan(values)
    raw, std = (free[name].values[gaps] for name in ("values", "values_std"))
    assert (raw < 0).any()
    np.testing.assert_array_equal(kept["values"].values[gaps], ONE.clip(raw))
    np.testing.assert_allclose(kept["values_std"].values[gaps], ONE.spread(raw, std), rtol=1e-12)


def test_bounds_of_the_file_reach_the_model_and_its_origin():
    array = xr.DataArray(ICE, {"x": X, "t": T}, ("x", "t"), "ice", FRACTION)
    model = fit(array, **GIVEN)
    assert model.bounds == ONE
    assert "answers are kept between 0 and 1" in model.origin["bounds"]
    off = fit(array, bounds=None, **GIVEN)
    assert off.bounds is None
    assert "bounds" not in off.origin
    gaps = array.where(~np.isnan(holes()))
    assert float(fill(gaps, mask="none", **GIVEN).min()) >= 0
    assert float(fill(gaps, mask="none", bounds="none", **GIVEN).min()) < 0


@pytest.mark.parametrize("bounds", [(0, 1), (0, None), (None, 1.0), None])
def test_bounds_are_saved(bounds, tmp_path):
    model = fit(ICE, {"x": X, "t": T}, bounds=bounds, **GIVEN)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.bounds == model.bounds
    np.testing.assert_array_equal(again.predict(**BETWEEN), model.predict(**BETWEEN))
    header, _ = npz.read(tmp_path / "m.npz")
    assert ("bounds" in header) == (bounds is not None)  # files of older versions have none
    json.dumps(header, allow_nan=False)


def test_models_that_grow_keep_their_bounds_and_refuse_what_is_outside():
    model = fit(ICE[:, :10], {"x": X, "t": T[:10]}, bounds=(0, 1), **GIVEN)
    grown = model.update(ICE[:, 10:], T[10:])
    assert grown.bounds == ONE
    free = fit(ICE[:, :10], {"x": X, "t": T[:10]}, **GIVEN).update(ICE[:, 10:], T[10:])
    raw = free.predict(**BETWEEN)
    assert raw.min() < 0
    np.testing.assert_allclose(grown.predict(**BETWEEN), ONE.clip(raw.values), atol=1e-12)
    outside = ICE[:, 10:11] + 0.5
    with pytest.raises(InputError, match=r"between 0 and 1, and \d+ of 12 values lie outside"):
        model.update(outside, T[10:11])
    rounded = ICE[:, 10:11].copy()
    rounded[3] = float(np.float32(1.0000001))
    grown = model.update(rounded, T[10:11])
    assert grown.bounds == Bounds(0, float(rounded[3, 0]))
    np.testing.assert_allclose(grown.predict(t=10.0), rounded[:, 0], rtol=1e-14, atol=1e-14)
    assert retune(model).bounds == ONE


def test_forecasts_are_within_the_bounds():
    free, kept = (
        Stream(fit(ICE[:, :10], {"x": X, "t": T[:10]}, bounds=bounds, **GIVEN), Plan())
        for bounds in (None, (0, 1))
    )
    clipped, squares = False, []
    for step in range(10, 14):
        new = kept.model.axes[1].at(T[step])
        raw, expected = (stream.step(new, ICE[:, [step]]) for stream in (free, kept))
        np.testing.assert_allclose(expected.values, ONE.clip(raw.values), atol=1e-12)
        np.testing.assert_allclose(expected.std, ONE.spread(raw.values, raw.std), atol=1e-12)
        clipped |= bool((expected.values != raw.values).any())
        squares.append((expected.values - ICE[:, [step]]) ** 2)
    assert clipped
    assert kept.rmse == pytest.approx(np.sqrt(np.mean(squares)))
    assert kept.rmse < free.rmse


# Validation ---------------------------------------------------------------------------------------


def test_hold_outs_are_measured_with_bounds():
    given = {"holdout": 0.2, "repeats": 3, "seed": 3, "keep_edges": True, **GIVEN}
    free, kept = (validate(ICE, {"x": X, "t": T}, bounds=b, **given) for b in (None, (0, 1)))
    assert kept.metrics["rmse"] < free.metrics["rmse"]
    assert kept.metrics["coverage90"] > 0.5
    assert kept.model.bounds == ONE
    with pytest.raises(SettingError, match="lie outside"):
        validate(ICE * 2, {"x": X, "t": T}, bounds=(0, 1), **given)


def test_a_model_is_measured_with_its_bounds():
    free, kept = models()
    coordinates = {"x": BETWEEN["x"], "t": BETWEEN["t"]}
    truth = np.clip(0.5 + np.outer(np.sin(BETWEEN["x"] / 1.5), np.cos(BETWEEN["t"] / 2)), 0, 1)
    found = [validate(truth, coordinates, model=model).metrics for model in (free, kept)]
    assert found[1]["rmse"] < found[0]["rmse"]
    answers, std = kept.predict(**BETWEEN).values, kept.std(**BETWEEN).values
    inside = np.abs(answers - truth)[std > 0] <= 1.6448536269514722 * std[std > 0]
    assert found[1]["coverage90"] == pytest.approx(inside.mean())


def test_a_value_held_out_speaks_against_bounds_of_the_file_in_every_run():
    values = ICE.copy()
    values[6, 7] = 1.5
    array = xr.DataArray(values, {"x": X, "t": T}, ("x", "t"), "ice", FRACTION)
    found = validate(array, holdout=0.3, repeats=3, **GIVEN)
    assert found.model.bounds is None
    assert "1 of 168 values lie outside" in found.model.origin["bounds"]
    fine = validate(array.where(array <= 1, 1), holdout=0.3, repeats=1, **GIVEN)
    assert fine.model.bounds == ONE
