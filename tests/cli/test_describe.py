"""Levels and models as rows of tables and as facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.cli.describe import level_rows, missing_words, model_rows, shape_text
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import Settings, plan_fit


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
    assert words["missing"].startswith("1.67 % of the cells: ")
    assert list(words) == ["missing", "typical gap", "solved"]
    assert "settings tried" not in words["solved"]


def test_a_shape_in_words(field: Model) -> None:
    assert shape_text(field.axes) == "x 9 x y 7 x z 6"
