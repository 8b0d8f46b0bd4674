"""Weights of slices, against dense solves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.threads import one_blas_thread
from dkrls_cli.tuning import weights
from dkrls_cli.tuning.weights import Factor, same_offsets

LEVEL = Level("t", Kernel("matern32", 6.0, constant=1.0), 1e-3)


def times(count=40, uneven=False):
    steps = np.random.default_rng(5).uniform(0.5, 1.5, count) if uneven else np.ones(count)
    return np.cumsum(steps)


def solved_weights(level, nodes, query):
    covariance = gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
    with one_blas_thread():
        return np.linalg.solve(covariance, gram(level.kernel, nodes, np.array([query]))[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [1e-2, 1e-6])
@pytest.mark.parametrize("family", ["matern12", "matern52", "gaussian"])
@given(steps=st.lists(st.floats(0.2, 3.0), min_size=6, max_size=40), window=st.integers(3, 50))
def test_weights_are_those_of_a_solve(steps, window, family, ridge):
    level = Level("t", Kernel(family, 2.0, constant=0.5), ridge)
    factor, coordinates = Factor(level), np.cumsum(steps)
    for place in range(2, coordinates.size):
        nodes = coordinates[max(0, place - window) : place]
        found = factor.weights(nodes, coordinates[place])
        solved = solved_weights(level, nodes, coordinates[place])
        assert np.linalg.norm(found - solved) <= 1e-13 / ridge * np.linalg.norm(solved)


@pytest.mark.parametrize("size", [255, 256])
def test_weights_of_a_large_factor_are_those_of_a_solve(size):
    level = Level("t", Kernel("matern32", 9.0, constant=1.0), 1e-4)
    nodes = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, size + 1))
    factor = Factor(level)
    for count in (size, size + 1):  # a new factor, and a row more
        found = factor.weights(nodes[:count], nodes[-1] + 0.7)
        solved = solved_weights(level, nodes[:count], nodes[-1] + 0.7)
        np.testing.assert_allclose(found, solved, atol=1e-10)


def test_the_inverse_of_a_triangle_is_lower_too():
    for size in (5, 300):
        lower = np.tril(np.random.default_rng(1).uniform(0.1, 1.0, (size, size)) / size)
        lower += np.eye(size)
        found = weights._invert_lower(lower)
        np.testing.assert_allclose(found @ lower, np.eye(size), atol=1e-12)
        assert not np.triu(found, 1).any()


def counted_grams(monkeypatch):
    sizes = []

    def counted(kernel, a, b):
        sizes.append((a.size, b.size))
        return gram(kernel, a, b)

    monkeypatch.setattr(weights, "gram", counted)
    return sizes


def test_a_slice_that_was_forecast_is_learnt_without_another_solve(monkeypatch):
    factor, t = Factor(LEVEL), times(60, uneven=True)
    factor.weights(t[:50], t[50])
    sizes = counted_grams(monkeypatch)
    factor.weights(t[:51], t[51])
    assert sizes == [(51, 1)]  # the new query only
    factor.weights(t[:52], t[55])
    assert sizes[1:] == [(52, 1)]
    factor.weights(t[:53], t[56])  # not the coordinate that was asked for
    assert sizes[2:] == [(52, 1), (53, 1)]
    factor.weights(t[:53], t[57])  # no new slice, so no row and no new factor
    assert sizes[4:] == [(53, 1)]


def test_many_new_slices_make_a_new_factor(monkeypatch):
    """One and an eighth of all are rows; more are a new factor."""
    t = times(90, uneven=True)
    for count, anew in ((45, False), (46, False), (47, True), (39, True)):
        factor = Factor(LEVEL)
        factor.weights(t[:40], t[40])
        with pytest.MonkeyPatch.context() as patch:
            sizes = counted_grams(patch)
            factor.weights(t[:count], t[89])
        assert ((count, count) in sizes) == anew, count


def test_other_nodes_make_a_new_factor():
    factor, t = Factor(LEVEL), times(40, uneven=True)
    factor.weights(t[:30], t[30])
    for nodes in (t[1:31], np.append(t[:29], t[30]), np.append(t[1:30], t[[31, 32]])):
        np.testing.assert_allclose(
            factor.weights(nodes, t[39]), solved_weights(LEVEL, nodes, t[39]), atol=1e-9
        )


def test_the_rows_have_room_that_doubles():
    factor, t = Factor(LEVEL), times(60)
    sizes = set()
    for count in range(2, 60):
        factor.weights(t[:count], t[count])
        sizes.add(len(factor._rows))
    assert sorted(sizes) == [2, 18, 36, 72]


@pytest.mark.parametrize(("scale", "same"), [(1.0, True), (100.0, False)])
def test_offsets_are_equal_but_for_rounding(scale, same):
    nodes = 1e4 + times(20) / 7
    offsets = nodes - nodes[-1] - 0.5
    moved = nodes + 3.3
    moved[4] += scale * 1e-12
    assert same_offsets(offsets, moved, float(nodes[-1]) + 3.8) == same


def test_offsets_of_another_number_of_nodes_differ():
    nodes = times(20)
    assert not same_offsets(nodes[1:] - 25.0, nodes, 25.0)
    assert not same_offsets(np.empty(0), nodes, 25.0)
