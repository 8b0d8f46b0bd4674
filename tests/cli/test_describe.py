"""Levels and models as rows of tables and as facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cli.describe import (
    cv_words,
    length_text,
    level_rows,
    level_table,
    missing_words,
    model_rows,
    pole_facts,
    pole_words,
    shape_text,
    tolerance_words,
)
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import to_data_array
from dkrls_cli.model.model import Model
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.poles.planning import Poles
from dkrls_cli.model.settings import Settings


@pytest.fixture(scope="module")
def field() -> Model:
    """A model whose hierarchy is not the order of its data, stored compactly."""
    x, y, z = np.linspace(5, 1, 9), np.arange(7.0), np.arange(6.0)
    values = np.sin(x)[:, None, None] + np.cos(y / 3)[:, None] * z / 6
    coordinates = {"x": x, "y": y, "z": z}
    kernel = {"x": "gaussian", "y": "matern32", "z": "matern52"}
    sigma = {"x": 2.0, "y": 3.0, "z": 4.0}
    settings = {"kernel": kernel, "sigma": sigma, "ridge": 1e-3, "compact": True}
    return fit(values, coordinates, levels=["z", "x", "y"], **settings)


def test_rows_are_in_the_order_of_the_hierarchy(field: Model) -> None:
    rows = model_rows(field)
    assert [row["dimension"] for row in rows] == ["z", "x", "y"]
    assert [row["level"] for row in rows] == [0, 1, 2]
    assert [row["size"] for row in rows] == [6, 9, 7]
    assert [row["kernel"] for row in rows] == ["matern52", "gaussian", "matern32"]
    assert [row["sigma"] for row in rows] == [4.0, 2.0, 3.0]
    assert {row["ridge"] for row in rows} == {1e-3}
    assert (rows[1]["from"], rows[1]["to"]) == ("1.0", "5.0")


def test_what_was_measured_stands_beside_its_own_level(field: Model) -> None:
    for row in model_rows(field):
        place = field.dims.index(row["dimension"])
        assert row["cv_error"] == field.errors[place]
        assert row["rank"] == field.ranks[place]
        assert row["kept"] == field.stored_shape[place]
    assert len(set(field.errors)) == 3


def test_settings_to_be_chosen_are_auto(field: Model) -> None:
    settings = Settings(["z", "x", "y"], sigma={"x": 2.5}, period={"y": 7.0})
    plan = plan_fit(field.axes, settings)
    rows = {row["dimension"]: row for row in level_rows(field.axes, plan.hierarchy, plan.levels)}
    assert list(rows) == ["z", "x", "y"]
    assert (rows["x"]["sigma"], rows["z"]["sigma"], rows["z"]["kernel"]) == (2.5, "auto", "auto")
    assert (rows["y"]["period"], rows["z"]["period"]) == (7.0, None)


def test_gaps_in_words(field: Model) -> None:
    assert missing_words(field) == {}
    values = np.add.outer(np.sin(np.arange(12.0) / 3), np.arange(5.0))
    values[4, 2] = np.nan
    model = fit(values, kernel="matern52", sigma=3.0, ridge=1e-3)
    assert missing_words(model)["solved"].endswith(", after 1 settings tried")
    known = {**model.origin["missing"], "settings_tried": 0}
    words = missing_words(replace(model, origin={"missing": known}))
    assert "group" not in words
    assert words["missing"].startswith("1.67 % of the cells: ")
    assert list(words) == ["missing", "typical gap", "solved"]
    assert "settings tried" not in words["solved"]


def test_a_shape_in_words(field: Model) -> None:
    assert shape_text(field.axes) == "x 9 x y 7 x z 6"


def test_sigmas_have_their_units() -> None:
    axes = [
        axis_of("lat", [0.0, 1.0], {"units": "degrees_north"}),
        axis_of("t", np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")),
        axis_of("site", ["a", "b"]),
        axis_of("x", [0.0, 1.0], {"units": "1"}),
        axis_of("y", [0.0, 1.0], {"units": "furlongs along the track"}),
        axis_of("z", [0.0, 1.0], {"units": "Fortnights Since 1066"}),
    ]
    plan = plan_fit(axes, Settings(sigma={"lat": 12.3456, "t": 30, "site": 1, "x": 2, "y": 3}))
    rows = level_rows(axes, [axis.name for axis in axes], plan.levels)
    units = ["degrees_north", "days", None, None, "furlongs along the track", "Fortnights"]
    assert [row["sigma_units"] for row in rows] == units
    assert [row["sigma"] for row in rows] == [12.3456, 30, 1, 2, 3, "auto"]
    assert list(rows[0])[6:8] == ["sigma", "sigma_units"]
    told = str(level_table(rows))
    assert "sigma_units" not in told
    assert "furlongs" not in told
    assert "Fortnights" not in told
    for text in ("12.35 degrees_north", "30 days"):
        assert text in told


@pytest.mark.parametrize(
    ("length", "units", "text"),
    [
        (30.0, "days", "30 days"),
        (5000.0, "days", "5000 days"),
        (43200.0, "hours", "1800 days"),
        (999.0, "hours", "999 hours"),
        (2592000.0, "Seconds", "30 days"),
        (3600.0, "second", "1 hours"),
        (1500.0, "second", "25 minutes"),
        (5e9, "microseconds", "1.389 hours"),
        (5000.0, "m", "5000 m"),
        (0.5, "furlongs along the track", "0.5"),
        ("auto", "days", "auto"),
    ],
)
def test_lengths_are_readable(length: float | str, units: str, text: str) -> None:
    assert length_text(length, units) == text


def test_the_tables_of_a_model_fit_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shape = (6, 7, 8)
    axes = {
        "time": axis_of("time", np.arange("2020-01", "2020-07", dtype="datetime64[M]")).values,
        "lat": np.linspace(-60, 60, 7),
        "lon": np.linspace(0, 100, 8),
    }
    data = to_data_array(
        np.random.default_rng(0).random(shape), [axis_of(k, v) for k, v in axes.items()], "v", {}
    )
    data["lat"].attrs["units"], data["lon"].attrs["units"] = "degrees_north", "degrees_east"
    told = str(level_table(model_rows(fit(data, ridge=0.1))))
    assert max(map(len, told.splitlines())) <= 80
    for units in ("degrees_north", "degrees_east", "days"):
        assert told.count(units) == 1


def test_a_tolerance_is_told_with_what_was_measured(field: Model) -> None:
    assert tolerance_words(field) == {}
    known = {"given": "0.001 of the standard deviation", "limit": 0.0123456, "rms": 1.5e-3}
    known |= {"max": 0.01, "bytes": 1200, "full_bytes": 56_000}
    model = replace(field, origin={"tolerance": known}, attrs={"units": "K"})
    assert tolerance_words(model) == {
        "tolerance": "0.01235 K (0.001 of the standard deviation)",
        "differences": "at most 0.01, root mean square 0.0015",
        "stored": "1.2 kB of 56 kB",
    }
    given = known | {"given": "0.01235 K"}
    plain = replace(field, origin={"tolerance": given}, attrs={"units": "K"})
    assert tolerance_words(plain)["tolerance"] == "0.01235 K"
    full = replace(field, origin={"tolerance": known | {"bytes": 56_000}})
    assert tolerance_words(full)["tolerance"].startswith("0.01235 (0.001 of")
    assert tolerance_words(full)["stored"].startswith("the full model: no smaller one")


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (None, ""),
        (
            {"share": 0.15, "factor": 0.2},
            "; a second scale of 0.2 of the first has 15 % of the variance",
        ),
    ],
)
def test_a_group_is_told(field: Model, second: dict[str, float] | None, text: str) -> None:
    known = {
        "share": 0.1,
        "pattern": "here",
        "typical_gap": "x 1",
        "residual": 0.0,
        "iterations": 1,
        "settings_tried": 0,
        "group": ["lat", "lon"],
        "second_scale": second,
    }
    words = missing_words(replace(field, origin={"missing": known}))
    assert words["group"] == f"lat, lon share one distance{text}"
    for sphere, where in ((True, ", on the sphere"), (False, "")):
        words = missing_words(replace(field, origin={"missing": {**known, "sphere": sphere}}))
        assert words["group"] == f"lat, lon share one distance{where}{text}"


def test_a_spline_has_no_sigma_and_a_warp_its_own_units() -> None:
    p = axis_of("p", np.geomspace(1.0, 90.0, 8), {"units": "Pa"})
    kernels = [Kernel("cubic", 2.0, warp="log"), Kernel("matern32", 3.0, warp="sqrt"), Kernel()]
    rows = [level_rows([p], ["p"], [Level("p", kernel)])[0] for kernel in kernels]
    assert [row["kernel"] for row in rows] == ["log-cubic", "sqrt-matern32", "gaussian"]
    assert [row["sigma"] for row in rows] == [None, 3.0, 1.0]
    assert [row["sigma_units"] for row in rows] == ["log(Pa)", "sqrt(Pa)", "Pa"]
    assert level_table(rows)


@pytest.mark.parametrize(
    ("lat", "where"),
    [
        ([-75.0, -45, -15, 15, 45, 75], "both poles"),
        ([75.0, 65, 55, 45, 35], "the north pole"),
        ([-90.0, -80, -70, -60], "the south pole"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "word"), [("scalar", "a scalar"), ("vector", "a component of a vector")]
)
def test_the_way_across_the_poles_is_told(
    lat: list[float], where: str, kind: Poles, word: str
) -> None:
    axes = {"lat": lat, "lon": np.arange(0.0, 360, 45)}
    values = np.random.default_rng(0).normal(size=(len(lat), 8))
    model = fit(values, axes, sigma=30, ridge=0.1, kernel="matern32", poles=kind)
    assert pole_words(model) == {"poles": f"continued across {where} as {word}"}
    facts = pole_facts(model)
    assert facts is not None
    assert facts["kind"] == kind
    assert model_rows(model)[0]["size"] == model_rows(model)[0]["kept"] == len(lat)
    ends = fit(values, axes, sigma=30, ridge=0.1, kernel="matern32", poles="none")
    assert (pole_words(ends), pole_facts(ends)) == ({}, None)


# The error beside the spread of the data


def test_errors_stand_beside_the_spread_of_the_data(field: Model) -> None:
    (text,) = cv_words(field).values()
    by_dim = dict(zip(field.dims, field.errors, strict=True))
    errors = ", ".join(f"{dim} {by_dim[dim]:.3g}" for dim in ("z", "x", "y"))
    low, high = (100 * end(field.errors) / field.spread for end in (min, max))
    assert text == f"{errors}; {low:.2g} to {high:.2g} % of the standard deviation"


def test_one_error_has_the_units_of_the_data() -> None:
    x = np.linspace(0, 6, 30)
    values = np.sin(x) + 0.1 * np.random.default_rng(0).standard_normal(x.size)
    model = replace(fit(values, {"x": x}), attrs={"units": "K"})
    (error,) = model.errors
    share = 100 * error / np.std(values)
    assert cv_words(model) == {
        "cv error": f"{error:.3g} K, {share:.2g} % of the standard deviation"
    }


def test_no_share_of_data_that_does_not_vary_and_no_error_of_one_slice() -> None:
    assert cv_words(fit(np.full(9, 3.0), {"x": np.arange(9.0)}))["cv error"].count("%") == 0
    assert cv_words(fit(np.array([3.0]), {"x": [1.0]}, sigma=1.0, ridge=0.1)) == {}
