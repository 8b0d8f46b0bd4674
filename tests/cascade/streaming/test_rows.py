"""Rows cut to what counts: the same answers as the rows themselves, at fewer operations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.kernels import Kernel, gram, kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.streaming.banded import GROUPS, NEGLIGIBLE, Banded
from dkrls_cli.cascade.streaming.dense import Dense, Factored
from dkrls_cli.cascade.streaming.forms import Mixed, Taken, Whole
from dkrls_cli.cascade.streaming.rows import (
    NEGLIGIBLE_IN_SINGLE,
    _least_directions,
    cut_rows,
    negligible_in,
    noise_in,
)
from dkrls_cli.cascade.streaming.split import Split
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


@pytest.mark.slow
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


def test_wide_rows_are_split_into_near_entries_and_few_sums():
    kernel = with_constant("matern52", 60.0)
    rows, found = cut(kernel, 0.3, HALVES, NEGLIGIBLE_IN_SINGLE)
    assert isinstance(found, Split)
    banded = Banded.build(lambda part: rows[part], len(rows), None, NEGLIGIBLE_IN_SINGLE)
    assert found.operations < 0.5 * banded.operations


def test_rows_in_no_order_are_not_split():
    query = np.random.default_rng(4).permutation(HALVES)
    _, found = cut(with_constant("matern52", 60.0), 0.3, query, NEGLIGIBLE_IN_SINGLE)
    assert isinstance(found, Dense)


def test_smooth_kernels_have_few_directions():
    _, found = cut(with_constant("gaussian", 40.0), 1e-4, HALVES, 1e-9)
    assert isinstance(found, Factored)
    assert operations(found) < 0.3


def test_rows_without_small_entries_are_one_matrix():
    cascade, every = cascade_of(kernel_named("matern32", 8.0), 1e-2), range(60, SIZE, 10)
    rows = np.random.default_rng(7).standard_normal((SIZE, SIZE))
    given = [np.tril(np.triu(rows, -width), width) for width in every]
    found = [cut_rows(cascade, 0, one) for one in given]
    shares = [operations(one) for one in found if isinstance(one, Banded)]
    assert len(shares) > 2
    assert 0.75 < max(shares) < 0.8
    dense = found[len(shares) :]
    assert all(isinstance(one, Dense) for one in dense)
    np.testing.assert_array_equal(dense[-1].matrix.double, given[-1])


def test_training_coordinates_are_taken_and_not_multiplied():
    cascade = cascade_of(with_constant("matern52", 8.0), 1e-3)
    found = cut_rows(cascade, 0, cascade.answer_rows(0, NODES[[7, 3, 9]], False))
    assert isinstance(found, Taken)
    assert found.window(slice(0, 2)) == slice(3, 8)
    data = np.random.default_rng(2).standard_normal((5, 2))
    np.testing.assert_array_equal(found.apply(data, 0, slice(0, 2)), data[[4, 0]])


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


def test_groups_of_rows_are_small_where_windows_are_narrow():
    _, narrow = cut(kernel_named("matern12", 0.2), 1e-3, HALVES)
    rows, _ = cut(kernel_named("matern12", 50.0), 10.0, HALVES)
    wide = Banded.build(lambda part: rows[part], len(rows))
    assert isinstance(narrow, Banded)
    assert narrow.group == GROUPS[0] < wide.group


def test_on_a_circle_a_window_may_go_round_its_end():
    kernel = replace(kernel_named("matern52", 3.0), period=float(SIZE))
    query = NODES + 0.25
    rows, found = cut(kernel, 1e-3, query, 1e-9)
    assert isinstance(found, Banded)
    parts = [len(window) for window in found.windows]
    assert (parts[0], *parts[3:-3], parts[-1]) == (2, *[1] * (len(parts) - 6), 2)
    assert found.windows[-1][0].start == 0
    assert found.windows[-1][1].stop == SIZE
    data = np.random.default_rng(5).standard_normal((2, SIZE, 3))
    np.testing.assert_allclose(
        found.apply(data, 1, slice(0, SIZE)), along(data, 1, rows), atol=1e-8
    )
    assert found.operations < 0.3 * rows.size


def test_noise_of_small_ridges_is_left_out_in_single_precision_only():
    def negligible(ridge, single):
        return negligible_in(cascade_of(kernel_named("matern52", 8.0), ridge), 0, single=single)

    assert negligible(1e-2, True) == NEGLIGIBLE_IN_SINGLE
    assert negligible(1e-8, True) == pytest.approx(2 * 2.2e-16 * np.sqrt(SIZE) / 1e-8, rel=0.02)
    assert negligible(1e-14, True) == 1e-5
    assert negligible(0.0, True) == NEGLIGIBLE_IN_SINGLE
    assert negligible(1e-8, False) == NEGLIGIBLE


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
@pytest.mark.parametrize(("ridge", "noisy"), [(1e-8, True), (1e-10, False)])
def test_rows_without_their_noise_are_as_close_to_those_of_an_exact_solve(ridge, noisy):
    query, sigma = np.arange(0.25, SIZE, 2.0), 30.0
    cascade = cascade_of(replace(kernel_named("gaussian", sigma), period=float(SIZE)), ridge)
    rows = cascade.answer_rows(0, query, False)
    found = cut_rows(cascade, 0, rows, negligible_in(cascade, 0, single=True), noisy=noisy)
    assert isinstance(found, Factored)
    assert operations(found) < 0.5
    exact = exact_row(query[3], sigma, ridge)
    kept = found.left.matrix.double[3] @ found.right.matrix.double
    noise = np.linalg.norm(rows[3] - exact)
    assert 1e-7 < noise < 1e-4
    assert 0.2 * noise < noise_in(cascade, 0) < noise
    assert np.linalg.norm(kept - exact) < 1.1 * noise


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
@pytest.mark.parametrize(("sigma", "ridge"), [(30.0, 1e-10), (60.0, 1e-11), (30.0, 1e-12)])
def test_rows_in_directions_of_their_kernel_are_closer_to_those_of_an_exact_solve(sigma, ridge):
    query, kernel = np.arange(0.25, SIZE, 2.0), kernel_named("gaussian", sigma)
    rows, found = without_noise(replace(kernel, period=float(SIZE)), ridge, query)
    assert isinstance(found, Factored)
    assert operations(found) < 0.5
    exact = exact_row(query[3], sigma, ridge)
    kept = found.left.matrix.double[3] @ found.right.matrix.double
    assert np.linalg.norm(kept - exact) < 0.7 * np.linalg.norm(rows[3] - exact)
    wave = 2.0 + np.cos(6 * np.pi * NODES / SIZE)
    assert np.allclose(found.apply(wave, 0, slice(None)), rows @ wave, rtol=0, atol=1e-9)


def test_rows_that_their_kernel_does_not_express_stay_whole():
    wide, data = kernel_named("gaussian", 30.0), np.random.default_rng(0).normal(size=SIZE)
    rows, found = without_noise(wide, 1e-11, np.append(HALVES, NODES[7]))
    assert found.apply(data, 0, slice(None))[-1] == pytest.approx(data[7], abs=1e-6)
    for noisy, ridge in ((True, 1e-11), (False, 1e-13)):  # in double precision, or mere noise
        rows, found = without_noise(wide, ridge, HALVES, noisy=noisy)
        least = 1e-12 * np.linalg.norm(rows)
        assert np.allclose(found.apply(data, 0, slice(None)), rows @ data, rtol=0, atol=least)


def without_noise(kernel, ridge, query, *, noisy=False):
    cascade = cascade_of(kernel, ridge)
    rows = cascade.answer_rows(0, query, False)
    least = NEGLIGIBLE if noisy else negligible_in(cascade, 0, single=True)
    return rows, cut_rows(cascade, 0, rows, least, noisy=noisy)


def test_noise_is_told_only_where_a_ridge_leaves_some_and_up_to_a_limit():
    wide, rough = kernel_named("gaussian", 30.0), kernel_named("matern12", 8.0)
    assert noise_in(cascade_of(wide, 1e-14), 0) == 1e-4
    assert noise_in(cascade_of(wide, 0.0), 0) == noise_in(cascade_of(kernel_named("cubic"), 0), 0)
    assert noise_in(cascade_of(wide, 0.0), 0) == 0.0
    values = np.linalg.eigvalsh(gram(rough, NODES, NODES))
    of_ends = 0.1 * np.finfo(float).eps * values[-1] / (values[0] + 1e-8)
    assert noise_in(cascade_of(rough, 1e-8), 0) == pytest.approx(of_ends, rel=1e-9)
    long = cascade_of(kernel_named("matern32", 10.0), 1e-8, np.arange(1500.0))
    assert isinstance(long.factor(0), LongFactor)
    assert noise_in(long, 0) == 0.0


def exact_row(place, sigma, ridge):
    """Return k' C^-1 of a Gaussian on a circle, in extended precision."""
    steps, turn = np.arange(SIZE).astype(np.longdouble), 2 * np.arccos(np.longdouble(-1))

    def kernel(apart):
        chord = 2 * SIZE / turn * np.sin(turn / 2 * apart / SIZE)
        return np.exp(-(chord**2) / (2 * np.longdouble(sigma) ** 2))

    waves = np.cos(turn * (np.outer(np.arange(SIZE), np.arange(SIZE)) % SIZE) / SIZE)
    sines = np.sin(turn * (np.outer(np.arange(SIZE), np.arange(SIZE)) % SIZE) / SIZE)
    weights = 1 / (waves @ kernel(steps) + np.longdouble(ridge)) / SIZE
    asked = kernel(np.longdouble(place) - steps)
    return np.asarray(
        waves @ (weights * (waves @ asked)) + sines @ (weights * (sines @ asked)), np.float64
    )


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_directions_are_at_least_as_many_as_the_bound(size, samples, seed):
    matrix = np.random.default_rng(seed).standard_normal((size, samples))
    least = _least_directions(matrix)
    sizes = np.linalg.svd(matrix)[1]
    assert 0 < least <= (sizes**2).sum() / sizes[0] ** 2 + 1e-12
    assert _least_directions(0 * matrix) == 0
