"""Splits part the indices of a dimension as asked."""

import math

import numpy as np
import pytest

from dkrls_cli.errors import SettingError
from dkrls_cli.model.validation.splits import Split, alternate_split, random_split


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


def test_the_generator_decides_which_are_held_out_and_nothing_else() -> None:
    held = random_split(20, 0.25, np.random.default_rng(3)).held
    expected = np.sort(np.random.default_rng(3).choice(20, 5, replace=False))
    np.testing.assert_array_equal(held, expected)


def test_kept_edges_are_never_held_out_and_their_neighbours_are() -> None:
    splits = [random_split(6, 0.5, np.random.default_rng(s), keep_edges=True) for s in range(30)]
    assert {i for split in splits for i in split.held.tolist()} == {1, 2, 3, 4}
    assert {split.held.size for split in splits} == {3}


@pytest.mark.parametrize(
    ("size", "fraction", "keep_edges", "held"),
    [(4, 0.99, False, 3), (4, 0.99, True, 2), (1, 0.9, False, 0), (10, 0.0, False, 0)],
)
def test_some_always_train(size: int, fraction: float, keep_edges: bool, held: int) -> None:
    split = random_split(size, fraction, np.random.default_rng(0), keep_edges=keep_edges)
    assert split.held.size == held
