"""Rows cut to what counts: the same answers as the rows themselves, at fewer operations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.kernels import Kernel, kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.streaming.rows import (
    GROUPS,
    NEGLIGIBLE,
    NEGLIGIBLE_IN_SINGLE,
    Banded,
    Factored,
    Mixed,
    Taken,
    Whole,
    cut_rows,
)
from dkrls_cli.cascade.tensors import along

SIZE = 300
NODES = np.arange(float(SIZE))
HALVES = NODES[:-1] + 0.5


def cascade_of(kernel: Kernel, ridge: float, nodes=NODES) -> Cascade:
    return Cascade((Level("x", kernel, ridge),), (nodes,), (None,), (None,), np.zeros(1))


def with_constant(family: str, sigma: float, variance: float = 1.0) -> Kernel:
    return replace(kernel_named(family, sigma), constant=variance)


def cut(kernel, ridge, query, negligible=NEGLIGIBLE, nodes=NODES):
    cascade = cascade_of(kernel, ridge, nodes)
    rows = cascade.answer_rows(0, query, False)
    return rows, cut_rows(cascade, 0, rows, negligible)


KERNELS = [
    (with_constant("matern12", 20.0), 0.1, Banded),
    (with_constant("matern32", 12.0, 0.3), 1e-2, Banded),
    (with_constant("matern52", 8.0, 2.5), 1e-3, Banded),
    (kernel_named("matern52", 8.0), 1e-3, Banded),
    (with_constant("gaussian", 30.0), 1e-4, Factored),
    (kernel_named("cubic"), 0.0, Banded),
]


@pytest.mark.parametrize(("kernel", "ridge", "form"), KERNELS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_cut_rows_answer_as_the_rows_do(kernel, ridge, form, axis):
    rows, found = cut(kernel, ridge, HALVES)
    shape = [3, 4, 5]
    shape[axis] = SIZE
    data = np.random.default_rng(0).standard_normal(shape)
    assert type(cut(kernel, ridge, HALVES, NEGLIGIBLE_IN_SINGLE)[1]) is form
    whole = along(data, axis, rows)
    assert (found.size, found.samples) == (HALVES.size, SIZE)
    ends = [slice(3, GROUPS[0] + 1), *(slice(group, group + 1) for group in GROUPS)]
    for part in (slice(0, HALVES.size), *ends):
        expected = whole[(slice(None),) * axis + (part,)]
        np.testing.assert_allclose(found.apply(data, axis, part), expected, atol=2e-12)


@pytest.mark.parametrize(("kernel", "ridge", "form"), KERNELS)
def test_single_precision_is_as_exact_as_its_data(kernel, ridge, form):
    rows, found = cut(kernel, ridge, HALVES, NEGLIGIBLE_IN_SINGLE)
    data = np.random.default_rng(1).standard_normal((SIZE, 7)).astype(np.float32)
    answers = found.apply(data, 0, slice(0, HALVES.size))
    assert answers.dtype == np.float32
    assert np.abs(answers - rows @ data.astype(float)).max() < 2e-6


def operations(rows: object) -> float:
    assert isinstance(rows, Banded | Factored)
    return rows.operations / (rows.size * rows.samples)


def test_a_constant_does_not_widen_the_windows():
    _, plain = cut(kernel_named("matern32", 5.0), 1e-2, HALVES, 1e-9)
    _, lifted = cut(with_constant("matern32", 5.0), 1e-2, HALVES, 1e-9)
    assert operations(plain) < 0.6
    assert operations(lifted) == pytest.approx(operations(plain), rel=0.1)


def test_smooth_kernels_have_few_directions():
    _, found = cut(with_constant("gaussian", 40.0), 1e-4, HALVES, 1e-9)
    assert isinstance(found, Factored)
    assert operations(found) < 0.3


def test_training_coordinates_are_taken_and_not_multiplied():
    cascade = cascade_of(with_constant("matern52", 8.0), 1e-3)
    found = cut_rows(cascade, 0, cascade.answer_rows(0, NODES[[7, 3, 9]], False))
    assert isinstance(found, Taken)
    assert found.window(slice(0, 2)) == slice(3, 8)
    data = np.random.default_rng(2).standard_normal((5, 2))
    np.testing.assert_array_equal(found.apply(data, 0, slice(0, 2)), data[[4, 0]])
    all_of_them = Taken(np.arange(5), 5)
    assert all_of_them.apply(data, 0, slice(0, 5)) is data


def test_rows_that_pass_through_beside_others():
    query = np.sort(np.concatenate([NODES, HALVES]))
    rows, found = cut(with_constant("matern52", 8.0), 1e-3, query)
    assert isinstance(found, Mixed)
    assert (found.size, found.samples) == (query.size, SIZE)
    data = np.random.default_rng(3).standard_normal((SIZE, 2))
    for part in (slice(0, query.size), slice(5, 6), slice(6, 7), slice(11, 90)):
        answers = found.apply(data, 0, part)
        np.testing.assert_allclose(answers, rows[part] @ data, atol=2e-12)
        at_nodes = np.isin(query[part], NODES)
        np.testing.assert_array_equal(answers[at_nodes], (rows[part] @ data)[at_nodes])


def test_few_rows_that_pass_through_stay_with_the_others():
    _, found = cut(with_constant("matern52", 8.0), 1e-3, np.append(HALVES, NODES[:3]))
    assert not isinstance(found, Mixed)


def test_long_levels_keep_their_operator():
    nodes = np.arange(1500.0)
    kernel = with_constant("matern32", 10.0)
    cascade = cascade_of(kernel, 1e-2, nodes)
    query = nodes[:20] + 0.5
    rows = cascade.answer_rows(0, query, False)
    found = cut_rows(cascade, 0, rows)
    assert isinstance(found, Whole)
    assert (found.size, found.samples) == (20, 1500)
    assert found.window(slice(2, 3)) == slice(0, 1500)
    data = np.random.default_rng(4).standard_normal((2, 1500))
    expected = (rows[5:9] @ data.T).T
    np.testing.assert_allclose(found.apply(data, 1, slice(5, 9)), expected, atol=1e-12)


@given(
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-6, 0.2]),
)
def test_what_is_left_out_is_negligible(samples, seed, negligible):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((5, samples)) * 10.0 ** rng.integers(-9, 1, (5, samples))
    rows[rng.random(rows.shape) < 0.3] = 0.0
    found = Banded.build(lambda part: rows[part], 5, None, negligible)
    window = found.windows[0]
    assert 0 <= window.start < window.stop <= samples
    outside = np.abs(rows).sum(axis=1) - np.abs(rows[:, window]).sum(axis=1)
    assert (outside <= negligible * np.abs(rows).sum(axis=1) + 1e-15).all()
    np.testing.assert_array_equal(found.groups[0].double, rows[:, window])


def test_groups_of_rows_are_small_where_windows_are_narrow():
    _, narrow = cut(kernel_named("matern12", 0.2), 1e-3, HALVES)
    _, wide = cut(kernel_named("matern12", 50.0), 10.0, HALVES)
    assert isinstance(narrow, Banded)
    assert isinstance(wide, Banded)
    assert narrow.group == GROUPS[0] < wide.group
