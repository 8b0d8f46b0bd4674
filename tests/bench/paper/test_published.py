"""The paper's datasets, settings and results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench import paper_3d_split
from dkrls_cli.bench.paper.published import (
    DATASETS,
    PAPER_SETTINGS,
    PUBLISHED,
    intel_lab_dataset,
    paper_2d,
    paper_3d,
    synthetic_dataset,
)


@pytest.mark.parametrize(
    ("name", "train", "held"),
    [
        ("paper-2d", (116, 120), (29, 30)),
        ("paper-3d", (116, 120, 80), (29, 30, 20)),
        ("cross", (37, 38), (11, 12)),
    ],
)
def test_datasets_have_the_sizes_of_the_paper(
    name: str, train: tuple[int, ...], held: tuple[int, ...]
) -> None:
    task = synthetic_dataset(name).make_task(1)
    assert task.values.shape == train
    assert task.truth.shape == held
    for known, asked in zip(task.coordinates, task.queries, strict=True):
        assert not set(known) & set(asked)


def test_the_split_is_that_of_the_other_races() -> None:
    train, held = paper_3d_split(4)
    task = synthetic_dataset("paper-3d").make_task(4)
    for ours, theirs in zip((*task.coordinates, *task.queries), (*train, *held), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("paper-2d", (4 * np.pi, 8 * np.pi)),
        ("paper-3d", (4 * np.pi, 8 * np.pi, 12 * np.pi)),
        ("cross", (0.4244, 0.8488)),
    ],
)
def test_coordinates_are_even_from_a_tenth(name: str, ends: tuple[float, ...]) -> None:
    for axis, end in zip(synthetic_dataset(name).coordinates, ends, strict=True):
        assert (axis[0], axis[-1]) == (0.1, end)
        np.testing.assert_allclose(np.diff(axis), axis[1] - axis[0], rtol=1e-9)


def test_functions_are_those_of_the_paper() -> None:
    x, y, z = np.array([0.3, 1.0]), np.array([0.5, 2.0, 4.0]), np.array([1.0])
    assert paper_2d([x, y])[1, 2] == pytest.approx(math.sin(1.0) * math.cos(2.0))
    assert paper_3d([x, y, z])[0, 1, 0] == pytest.approx(
        math.cos(0.3) * math.sin(1.0) * math.sin(1 / 3)
    )
    assert paper_3d([x, y, z]).shape == (2, 3, 1)


def test_a_fifth_of_the_times_of_the_lab_is_held_out_and_no_sensor() -> None:
    lab = intel_lab_dataset(np.zeros((52, 100)))
    assert (lab.name, lab.held) == ("intel-lab", (0, 20))
    assert (lab.coordinates[0][0], lab.coordinates[0][-1]) == (1, 52)
    assert (lab.coordinates[1][0], lab.coordinates[1][-1]) == (301, 400)
    task = lab.make_task(0)
    assert (task.values.shape, task.truth.shape) == ((52, 80), (52, 20))


def test_every_result_of_the_paper_has_its_settings() -> None:
    assert set(PUBLISHED) == set(PAPER_SETTINGS) == set(DATASETS)
    for name in DATASETS:
        assert set(PUBLISHED[name]) == set(PAPER_SETTINGS[name])
        for method, settings in PAPER_SETTINGS[name].items():
            BASELINES["recursive" if method == "dkrls" else method](**settings)


def test_skrls_has_the_paper_s_results_under_its_name() -> None:
    assert PUBLISHED["paper-2d"]["skrls"].seconds == 108.66
    assert "aldkrls" not in PUBLISHED["paper-2d"]
