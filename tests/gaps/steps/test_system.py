"""The system of equations applied factor by factor, against its dense matrix."""

import math
import tracemalloc
from functools import reduce

import numpy as np
import pytest
from sphere_grids import SPHERE, kernels_of

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.field import NO_GROUPS, Grouping, make_field
from dkrls_cli.gaps.steps import system as module
from dkrls_cli.gaps.steps.system import System

RIDGE = 0.02


def field_of(shape, grouping=NO_GROUPS):
    axes = [np.arange(float(m)) for m in shape]
    return make_field(axes, [Kernel("matern32", 2.0)] * len(shape), grouping)


def system_of(field, seed=0):
    rng = np.random.default_rng(seed)
    observed = rng.random(field.shape) > 0.4
    watched = ~observed & (rng.random(field.shape) > 0.3)
    return System(field, field.fold(observed * 1.0), RIDGE, field.fold(watched))


def dense(system):
    """Return V and the matrix V' M V + lambda / w."""
    field = system.field
    if field.grouped and len(field.operators) < len(field.shape):
        v = np.kron(field.sphere.columns(np.arange(field.sphere.shape[1])), np.eye(1))
    else:
        v = reduce(np.kron, field.bases)
    penalty = np.diag(RIDGE / field.variances.ravel())
    return v, (v.T * system.weights.ravel()) @ v + penalty


FIELDS = {
    "1d": field_of((23,)),
    "2d": field_of((9, 11)),
    "3d": field_of((5, 6, 7)),
    "4d": field_of((3, 4, 2, 5)),
    "narrow": field_of((6, 7, 3)),
    "group": field_of((7, 8), Grouping(((0, 1),))),
    "group beside an axis": field_of((4, 7, 6), Grouping(((1, 2),))),
    "dropped": field_of((9, 11, 8)).useful(30.0, 0.5),
}


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("slab", [1, 50, 2**15])
def test_a_product_is_that_of_the_dense_matrix(name, slab, monkeypatch):
    monkeypatch.setattr(module, "SLAB", slab)
    system = system_of(FIELDS[name])
    v, matrix = dense(system)
    g = np.random.default_rng(1).standard_normal(system.ranks)
    product, reach = system.multiply(g)
    scale = np.abs(matrix @ g.ravel()).max()
    np.testing.assert_allclose(product.ravel(), matrix @ g.ravel(), atol=1e-12 * scale)
    cells = np.abs(v @ g.ravel())[system.watched.ravel()]
    assert reach == pytest.approx(cells.max(), rel=1e-12)


@pytest.mark.parametrize("name", FIELDS)
def test_in_single_precision_it_is_that_to_seven_digits(name):
    double = system_of(FIELDS[name])
    single = double.in_single()
    assert (double.is_single, single.is_single) == (False, True)
    g = np.random.default_rng(1).standard_normal(single.ranks)
    g *= np.sqrt(single.field.variances)
    (exact, far), (product, reach) = double.multiply(g), single.multiply(g)
    assert product.dtype == np.float64
    assert 0 < np.abs(product - exact).max() < 1e-5 * np.abs(exact).max()
    assert reach == pytest.approx(far, rel=1e-5)
    assert single.share == pytest.approx(double.share, rel=1e-12)


def test_a_sphere_is_multiplied_as_its_dense_matrix():
    globe = [np.linspace(-60, 60, 5), np.arange(0.0, 360, 45)]
    system = system_of(make_field(globe, kernels_of("matern32", 40.0), SPHERE))
    v, matrix = dense(system)
    g = np.random.default_rng(1).standard_normal(system.ranks)
    product, reach = system.multiply(g)
    np.testing.assert_allclose(product, matrix @ g, atol=1e-10 * np.abs(matrix @ g).max())
    assert reach == pytest.approx(np.abs(v @ g)[system.watched].max())


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("name", FIELDS)
def test_the_residual_is_in_double_precision(name, is_single):
    system = system_of(FIELDS[name])
    v, matrix = dense(system)
    rng = np.random.default_rng(2)
    values = np.where(system.weights > 0, rng.standard_normal(system.field.shape), np.nan)
    g = rng.standard_normal(system.ranks) * np.sqrt(system.field.variances)
    seen = np.where(system.weights > 0, values - 0.7, 0.0).ravel()
    expected = v.T @ seen - matrix @ g.ravel()
    system = system.in_single() if is_single else system
    left = system.residual(g, values, 0.7)
    assert left.flags.c_contiguous
    np.testing.assert_allclose(left.ravel(), expected, atol=1e-12 * np.abs(expected).max())


def test_no_watched_cell_has_no_reach():
    field = FIELDS["3d"]
    system = System(field, np.ones(field.shape), RIDGE, np.zeros(field.shape, bool))
    assert system.multiply(np.ones(system.ranks))[1] == 0.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_reach_is_that_of_changes_up_and_down(sign):
    field = field_of((5, 6))
    watched = np.zeros(field.shape, bool)
    watched[2, 3] = True
    system = System(field, np.ones(field.shape), RIDGE, watched)
    g = field.analysis(sign * np.eye(5, 6, k=1))  # 1 or -1 in the watched cell
    assert system.multiply(g)[1] == pytest.approx(1.0)


@pytest.mark.parametrize("few", [0, 10**6])
def test_the_penalty_is_the_same_whether_it_is_held_or_not(few, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    system = system_of(FIELDS["3d"])
    assert (system._penalties is None) == (few == 0)
    np.testing.assert_array_equal(system.penalty(slice(1, 3)), RIDGE / FIELDS["3d"].variances[1:3])
    left = np.random.default_rng(0).standard_normal(system.ranks)
    expected = left / (system.share + RIDGE / FIELDS["3d"].variances)
    np.testing.assert_allclose(system.divide(left), expected, rtol=1e-12)


def test_a_product_takes_the_memory_of_one_grid_and_in_single_precision_of_half_as_much():
    """The coefficients are a view of the cells in double precision, and an array of their own."""
    field = field_of((40, 50, 60))
    system, g, taken = system_of(field), np.ones((40, 50, 60)), []
    for one in (system, system.in_single()):
        one.multiply(g)
        tracemalloc.start()
        one.multiply(g)
        taken.append(tracemalloc.get_traced_memory()[1] / g.nbytes)
        tracemalloc.stop()
    assert 1.0 <= taken[0] < 2.0
    assert 1.5 <= taken[1] < 2.2


def test_answers_and_their_coefficients_belong_together():
    system = system_of(FIELDS["2d"])
    g = np.random.default_rng(3).standard_normal(system.ranks)
    answers = system.answers(g, 2.0)
    shrunk = system.smoothed(answers, 2.0)
    np.testing.assert_allclose(
        shrunk, g / (1.0 + RIDGE / system.field.variances), atol=1e-12 * math.sqrt(g.size)
    )
