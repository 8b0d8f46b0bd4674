"""The variance of a missing cell given its neighbours, against dense conditioning."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps.calibration import nearest as module
from dkrls_cli.gaps.calibration.nearest import distance

RIDGE = 1e-3

# ---- neighbours along an axis


def nearest_observed(seen: list[bool], place: int, step: int, circle: bool) -> int:
    """The first observed cell from a place on, in one direction; the size if there is none."""
    size = len(seen)
    for away in range(size + 1):
        there = place + step * away
        if not circle and not 0 <= there < size:
            break
        if seen[there % size]:
            return there % size
    return size


@given(hnp.arrays(bool, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6)), st.booleans())
def test_neighbours_are_the_nearest_observed_cells(observed: np.ndarray, circle: bool) -> None:
    before, after = module._neighbours(observed, circle=circle)
    assert before.shape == after.shape == observed.shape
    for place in np.ndindex(observed.shape):
        seen = observed[(slice(None), *place[1:])].tolist()
        assert before[place] == nearest_observed(seen, place[0], -1, circle)
        assert after[place] == nearest_observed(seen, place[0], 1, circle)


def looking_up(similarity):
    """The similarity of pairs of places, 0 of those beyond the last."""
    padded = np.pad(similarity, ((0, 1), (0, 1)))
    return lambda one, other: padded[one, other]


def rows_of(places):
    return np.broadcast_to(np.arange(len(places))[:, None], places.shape)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 9.0])
def test_precision_is_that_of_conditioning_on_two_neighbours(sigma: float, ridge: float) -> None:
    """Of 3 x 3 covariances: 1 / (1 - k' (K + ridge)^-1 k) - 1, with fewer where there are fewer."""
    z = np.array([0.0, 0.7, 1.1, 2.5, 4.0])
    similarity = gram(Kernel("matern32", sigma), z, z)
    none = z.size
    sides = [(0, 3), (3, 0), (1, 4), (none, 3), (0, none), (none, none), (3, 3)]
    before, after = (np.tile([side[i] for side in sides], (z.size, 1)) for i in (0, 1))
    found = module._precision(looking_up(similarity), rows_of(before), before, after, ridge)
    for place in (2,):  # a cell that is none of the neighbours
        for column, side in enumerate(sides):
            near = sorted({n for n in side if n != none})
            system = similarity[np.ix_(near, near)] + ridge * np.eye(len(near))
            across = similarity[place, near]
            explained = across @ np.linalg.solve(system, across)
            assert found[place, column] == pytest.approx(1 / (1 - explained) - 1, rel=1e-9)
    assert (found[:, 5] == 0).all()


def test_precision_stays_finite_where_neighbours_are_the_same() -> None:
    similarity = np.ones((3, 3))
    places = np.zeros((3, 1), int)
    for ridge in (0.0, 1e-12):
        found = module._precision(
            looking_up(similarity), rows_of(places), places, places + 2, ridge
        )
        assert np.isfinite(found).all()
        assert (found >= 0).all()


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 3), st.integers(1, 90))
def test_parts_beside_an_axis_cover_the_grid_once(shape: list[int], axis: int, most: int) -> None:
    axis %= len(shape)
    counts = np.zeros(shape, int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", most)
        parts = list(module._beside(shape, axis))
    for part in parts:
        counts[part] += 1
        assert part[axis] == slice(None)
    assert (counts == 1).all()
    if len(shape) > 1:
        longest = max(m for other, m in enumerate(shape) if other != axis)
        least = math.prod(shape) // longest  # one index of the axis that is cut
        assert all(counts[part].size <= max(most, least) for part in parts)
        assert all(counts[part].size + least > most for part in parts[:-1])


def test_half_a_megabyte_is_worked_on_at_once() -> None:
    assert module._AT_ONCE * 8 == 2**19


# ---- distances to data


@pytest.mark.parametrize("at_once", [1, 20, 10**6])
@pytest.mark.parametrize("period", [None, 9.0])
def test_distances_do_not_depend_on_blocks_nor_on_the_order(
    period: float | None, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    observed = rng.random((9, 8, 5)) < 0.4
    axes = [np.arange(9.0), np.sort(rng.uniform(0, 8, 8)), np.arange(5.0)]
    kernels = [Kernel("matern32", 2.0, period, 0.5), Kernel("matern52", 3.0), Kernel("matern12")]
    whole = distance(axes, kernels, observed, RIDGE)
    orders = [rng.permutation(m) for m in observed.shape]
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    turned = distance(
        [axis[order] for axis, order in zip(axes, orders, strict=True)],
        kernels,
        observed[np.ix_(*orders)],
        RIDGE,
    )
    np.testing.assert_allclose(turned, whole[np.ix_(*orders)], rtol=1e-12)
    moved = [axes[0] + 4.0, *axes[1:]]
    np.testing.assert_allclose(distance(moved, kernels, observed, RIDGE), whole, rtol=1e-9)


@pytest.mark.parametrize("constant", [0.0, 1.5])
@pytest.mark.parametrize("period", [None, 9.0])
def test_a_distance_is_the_variance_given_the_neighbours_of_a_cell(
    period: float | None, constant: float
) -> None:
    observed = np.random.default_rng(3).random((9, 8)) < 0.6
    axes = [np.arange(9.0), np.arange(8.0)]
    kernels = [Kernel("matern32", 2.0, period, constant), Kernel("matern52", 3.0)]
    prior = kernels[0].variance
    found = distance(axes, kernels, observed, RIDGE)
    assert (found[observed] == 0).all()
    for i, j in np.argwhere(~observed):
        column, row = observed[:, j].tolist(), observed[i].tolist()
        circle = period is not None
        places = {(nearest_observed(column, i, step, circle), j) for step in (-1, 1)}
        places |= {(i, nearest_observed(row, j, step, False)) for step in (-1, 1)}
        near = sorted(p for p in places if p[0] < 9 and p[1] < 8)
        cells = [np.array(c, float) for c in zip(*near, strict=True)]
        pairs = [gram(k, c, c) for k, c in zip(kernels, cells, strict=True)]
        spot = [np.array([float(z)]) for z in (i, j)]
        here = [gram(k, z, c)[0] for k, z, c in zip(kernels, spot, cells, strict=True)]
        cross, system = here[0] * here[1], pairs[0] * pairs[1] + RIDGE * np.eye(len(near))
        left = prior - cross @ np.linalg.solve(system, cross)
        assert found[i, j] == pytest.approx(left, abs=1e-9)


def test_far_from_all_data_the_distance_is_the_prior_variance() -> None:
    observed = np.zeros((4, 5), bool)
    observed[0, 0] = True
    kernels = [Kernel("matern32", 1.0, constant=2.0), Kernel()]
    found = distance([np.arange(4.0), np.arange(5.0)], kernels, observed, RIDGE)
    assert found[2, 3] == 3.0
    assert found[0, 0] == 0.0


def test_a_missing_cell_is_never_certain() -> None:
    """Not even beside data that is all but at its place."""
    axes = [np.array([0.0, 1e-12, 1.0])]
    observed = np.array([True, False, True])
    kernel = Kernel("gaussian", 1.0, constant=3.0)
    found = distance(axes, [kernel], observed, 0.0)
    assert found.tolist() == [0.0, pytest.approx(1e-12 * 4.0, rel=1e-6), 0.0]
