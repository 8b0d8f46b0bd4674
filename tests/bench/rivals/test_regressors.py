"""Scattered methods against their own libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import RBFInterpolator

from dkrls_cli.bench.rivals import regressors
from dkrls_cli.bench.rivals.regressors import (
    answer_in_blocks,
    draw_samples,
    fit_gaussian_process,
    fit_kernel_ridge,
    fit_rbf,
)

NODES = [np.linspace(0, 3, 15), np.linspace(-40.0, 50.0, 11)]
ASKED = [np.array([0.9, 1.4, 2.1]), np.array([-11.0, 3.0, 22.0])]


def mesh(axes: Any) -> list[np.ndarray]:
    return [part.ravel() for part in np.meshgrid(*axes, indexing="ij")]


def wave(x: Any, y: Any) -> Any:
    return 7.0 + np.sin(2 * x) * np.cos(y / 30)


def test_rbf_is_that_of_scipy_in_steps_of_the_grid() -> None:
    steps = [3.0 / 14, 9.0]
    known, asked = np.column_stack(mesh(NODES)), np.column_stack(mesh(ASKED))
    theirs = RBFInterpolator(known / steps, wave(*known.T))(asked / steps)
    ours = fit_rbf(mesh(NODES), wave(*known.T))(mesh(ASKED))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(("count", "neighbours"), [(1000, None), (1001, 50)])
def test_rbf_of_more_than_a_thousand_samples_uses_the_nearest(
    count: int, neighbours: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import scipy.interpolate

    seen: list[Any] = []
    monkeypatch.setattr(
        scipy.interpolate, "RBFInterpolator", lambda *_, neighbors: seen.append(neighbors)
    )
    fit_rbf([np.arange(float(count))], np.zeros(count))
    assert seen == [neighbours]


def test_the_nearest_samples_of_rbf_are_counted_in_steps() -> None:
    """With coordinates as they are, the nearest would all lie on one line."""
    nodes = [np.linspace(0, 3000, 40), np.linspace(0, 1, 50)]
    known, asked = mesh(nodes), mesh([np.array([400.0, 1700.0]), np.array([0.31, 0.77])])
    answers = fit_rbf(known, known[0] / 1000 + known[1])(asked)
    np.testing.assert_allclose(answers, asked[0] / 1000 + asked[1], rtol=1e-6)


@pytest.mark.parametrize("fit", [fit_kernel_ridge, fit_gaussian_process])
def test_settings_are_chosen_on_some_samples_and_all_are_fitted(
    fit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(regressors, "_CHOICE_SAMPLES", 30)
    known = mesh(NODES)
    answers = fit(known, wave(*known))(known)
    np.testing.assert_allclose(answers, wave(*known), atol=0.01)


def test_samples_are_drawn_without_repeats_and_alike_each_time() -> None:
    drawn = draw_samples(100, 30)
    assert drawn.shape == (30,)
    assert np.unique(drawn).size == 30
    np.testing.assert_array_equal(drawn, draw_samples(100, 30))
    np.testing.assert_array_equal(np.sort(draw_samples(7, 30)), np.arange(7))


@pytest.mark.parametrize("count", [1, 4, 5, 12])
def test_queries_are_answered_in_blocks(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regressors, "QUERIES_AT_ONCE", 4)
    sizes: list[int] = []

    class Sum:
        def predict(self, points: np.ndarray) -> np.ndarray:
            sizes.append(len(points))
            return np.asarray(points.sum(axis=1))

    x, y = np.arange(float(count)), 10 * np.arange(float(count))
    np.testing.assert_array_equal(answer_in_blocks(Sum())([x, y]), x + y)
    assert sizes == [4] * (count // 4) + ([count % 4] if count % 4 else [])
