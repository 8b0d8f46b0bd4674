"""Splits part the indices as asked; metrics are what their formulas say."""

import math

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from dkrls_cli.errors import SettingError
from dkrls_cli.model.metrics import NAMES, scores
from dkrls_cli.model.splits import Split, alternate_split, random_split


def assert_parts(split: Split, size: int) -> None:
    for indices in (split.train, split.held):
        assert (np.diff(indices) > 0).all()
    np.testing.assert_array_equal(np.sort([*split.train, *split.held]), np.arange(size))


@pytest.mark.parametrize("keep_edges", [False, True])
@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 0.99])
@pytest.mark.parametrize("size", [1, 2, 3, 10, 145])
def test_random_split_parts_all_indices(size: int, fraction: float, keep_edges: bool) -> None:
    split = random_split(size, fraction, np.random.default_rng(0), keep_edges=keep_edges)
    assert_parts(split, size)
    assert split.train.size >= 1
    if keep_edges:
        assert {0, size - 1} <= set(split.train.tolist())


@pytest.mark.parametrize(("size", "held"), [(145, 29), (150, 30), (100, 20)])
def test_a_fifth_is_as_many_as_in_the_paper(size: int, held: int) -> None:
    assert random_split(size, 0.2, np.random.default_rng(0)).held.size == held


def test_random_split_follows_its_generator() -> None:
    first, again, other = (random_split(50, 0.3, np.random.default_rng(s)).held for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_edges_are_held_out_now_and_then_unless_kept() -> None:
    splits = [random_split(10, 0.5, np.random.default_rng(seed)) for seed in range(20)]
    assert any(0 in split.held for split in splits)
    assert any(9 in split.held for split in splits)


@pytest.mark.parametrize("fraction", [-0.1, 1.0, 2.0, math.nan])
def test_impossible_fraction_is_refused(fraction: float) -> None:
    with pytest.raises(SettingError, match=f"Invalid hold-out fraction {fraction}"):
        random_split(10, fraction, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("size", "held"), [(1, []), (2, []), (3, [1]), (6, [1, 3]), (7, [1, 3, 5])]
)
def test_alternate_split_holds_every_second_inner_index(size: int, held: list[int]) -> None:
    split = alternate_split(size)
    assert_parts(split, size)
    assert split.held.tolist() == held


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    truth, answers = rng.standard_normal((2, 5, 6))
    found, t, a = scores(truth, answers), truth.ravel(), answers.ravel()
    assert tuple(found) == NAMES
    assert found == pytest.approx(
        {
            "n": 30,
            "rmse": root_mean_squared_error(t, a),
            "mae": mean_absolute_error(t, a),
            "max_error": max(abs(t - a)),
            "normalized_max_error": max(abs(t - a)) / max(abs(t)),
            "bias": sum(a - t) / 30,
            "r2": r2_score(t, a),
        },
        rel=1e-12,
    )


def test_scores_by_hand() -> None:
    assert scores([1, 2, -4, 5], [1, 3, -4, 3]) == pytest.approx(
        {
            "n": 4,
            "rmse": math.sqrt(5 / 4),
            "mae": 0.75,
            "max_error": 2.0,
            "normalized_max_error": 0.4,
            "bias": -0.25,
            "r2": 1 - 5 / 42,
        }
    )


def test_unknown_truth_is_left_out() -> None:
    assert scores([1.0, math.nan, 3.0], [1.5, 9.0, 2.0]) == scores([1.0, 3.0], [1.5, 2.0])


def test_missing_answer_is_not_left_out() -> None:
    assert math.isnan(scores([1.0, 2.0], [1.0, math.nan])["rmse"])


def test_what_has_no_value_is_nan() -> None:
    nothing = scores([math.nan], [1.0])
    assert nothing.pop("n") == 0
    assert all(math.isnan(value) for value in nothing.values())
    assert math.isnan(scores([2.0, 2.0], [2.0, 3.0])["r2"])
    assert math.isnan(scores([0.0, 0.0], [1.0, 0.0])["normalized_max_error"])
