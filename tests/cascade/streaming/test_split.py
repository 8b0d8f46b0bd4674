"""Rows split into near entries and sums of blocks: the same answers as the rows themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.streaming.split import Split
from dkrls_cli.cascade.tensors import along

SIZE = 210
NODES = np.arange(float(SIZE))


def markov_rows(states: int, query, ridge=0.2, sigma=40.0) -> np.ndarray:
    """Return rows of a Matern kernel of so many states, by a dense solve."""
    scaled = np.sqrt(2 * states - 1) / sigma

    def kernel(a, b):
        r = scaled * np.abs(a[:, None] - b)
        return {1: 1.0, 2: 1 + r, 3: 1 + r + r**2 / 3}[states] * np.exp(-r)

    return np.linalg.solve(kernel(NODES, NODES) + ridge * np.eye(SIZE), kernel(NODES, query)).T


@pytest.mark.parametrize("states", [1, 2, 3])
def test_the_sums_of_a_block_are_the_states_on_both_sides(states):
    found = Split.build(markov_rows(states, NODES[:-1] + 0.5), 70, 1e-9)
    assert [len(sums.double) for sums in found.sums] == [states, 2 * states, states]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("query", [NODES[:-1] + 0.5, np.flip(NODES[3:-1:7] + 0.3)])
@pytest.mark.parametrize("width", [64, 70, 128])
def test_split_rows_answer_as_the_rows_do(axis, query, width):
    rows = markov_rows(2, query)
    found = Split.build(rows, width, 1e-13)
    assert (found.size, found.samples) == rows.shape
    assert found.window(slice(0, 1)) == slice(0, SIZE)
    shape = [3, 4, 5]
    shape[axis] = SIZE
    data = np.random.default_rng(0).standard_normal(shape)
    whole = along(data, axis, rows)
    for part in (slice(0, query.size), slice(0, 1), slice(5, 21), slice(query.size - 1, None)):
        expected = whole[(slice(None),) * axis + (part,)]
        np.testing.assert_allclose(found.apply(data, axis, part), expected, atol=1e-12)


def test_single_precision_stays_single():
    rows = markov_rows(3, NODES[:-1] + 0.5)
    data = np.random.default_rng(1).standard_normal((SIZE, 6)).astype(np.float32)
    answers = Split.build(rows, 64, 1e-8).apply(data, 0, slice(None))
    assert answers.dtype == np.float32
    assert np.abs(answers - rows @ data.astype(float)).max() < 2e-6


@given(
    size=st.integers(1, 30),
    samples=st.integers(2, 40),
    width=st.integers(1, 50),
    seed=st.integers(0, 99),
    negligible=st.sampled_from([1e-13, 1e-6, 1e-2, 0.3]),
)
def test_what_is_left_out_is_negligible(size, samples, width, seed, negligible):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size, samples)) * 10.0 ** rng.uniform(-6, 1, (size, samples))
    rows[rng.random(size) < 0.1] = 0.0
    found = Split.build(rows, width, negligible).apply(np.eye(samples), 0, slice(None))
    missed = np.linalg.norm(found - rows, axis=1)
    assert (missed <= (negligible + 1e-12) * np.linalg.norm(rows, axis=1) + 1e-300).all()


def test_noise_is_no_state():
    rows = markov_rows(2, NODES[:-1] + 0.5)
    noise = np.random.default_rng(2).standard_normal(rows.shape)
    noise *= 1e-6 / np.linalg.norm(noise, axis=1, keepdims=True)
    found = Split.build(rows + noise, 70, 1e-9, 1e-6)
    assert [len(sums.double) for sums in found.sums] == [2, 4, 2]
    missed = np.linalg.norm(found.apply(np.eye(SIZE), 0, slice(None)) - rows, axis=1)
    assert missed.max() < 1.1e-6
    less = [len(sums.double) for sums in Split.build(rows + noise, 70, 1e-9, 5e-7).sums]
    assert less > [10, 10, 10]
    assert [len(s.double) for s in Split.build(rows, 70, 1e-9, 1e-10).sums] == [2, 4, 2]


def test_operations_are_those_of_all_products():
    found = Split.build(markov_rows(1, NODES[:-1] + 0.5), 70, 1e-9)
    assert found.operations == (SIZE - 1) * 70 + (SIZE - 1) * 4 + 70 * 4
