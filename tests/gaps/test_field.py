"""Fields in waves, against closed forms of isotropic kernels and dense covariances."""

from functools import reduce
from itertools import permutations

import numpy as np
import pytest
from gap_grids import spectra_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sphere_grids import SPHERE, chordal, kernels_of, places
from sphere_grids import textbook as isotropic

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.gaps import field as module
from dkrls_cli.gaps.field import Grouping, make_field, product_field, sphere_sigma, waves_of

PAIR = Grouping(((0, 1),))

EXACT = {"gaussian": 1e-8, "matern52": 1e-2, "matern32": 1e-2, "matern12": 0.05}
"""How far a group may be from its kernel: waves end at the step of the grid."""


def column(field, place):
    """Return the covariance of one cell with all others."""
    rows = [basis[i] for basis, i in zip(field.bases, place, strict=True)]
    return apply(field.variances * reduce(np.multiply.outer, rows), field.bases)


def dense(field):
    """Return the covariance V diag(w) V' of all cells."""
    v = reduce(np.kron, field.bases)
    return (v * field.variances.ravel()) @ v.T


def distances(axes, sigmas, place):
    """Return the distance of all cells from one, in length scales."""
    parts = [((c - c[i]) / s) ** 2 for c, s, i in zip(axes, sigmas, place, strict=True)]
    return np.sqrt(reduce(np.add.outer, parts))


def line(size, seed=None):
    """Return coordinates with steps of 1, or with steps of 0.75 to 1.25."""
    even = np.arange(float(size))
    return even if seed is None else even + np.random.default_rng(seed).uniform(-0.12, 0.13, size)


# --- one distance -------------------------------------------------------------------------------


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize("sigmas", [(6.0, 6.0), (5.0, 8.0)], ids=["round", "long"])
@pytest.mark.parametrize("family", EXACT)
def test_a_group_has_the_isotropic_kernel(family, sigmas, uneven):
    axes = [line(111, 1 if uneven else None), line(121, 2 if uneven else None)]
    field = make_field(axes, [Kernel(family, sigma) for sigma in sigmas], PAIR)
    place = (55, 60)
    expected = isotropic(family, distances(axes, sigmas, place))
    np.testing.assert_allclose(column(field, place), expected, rtol=0, atol=EXACT[family])


def test_contours_of_a_group_are_circles_and_of_a_product_diamonds():
    axes, kernels = [line(61), line(61)], [Kernel("matern12", 5.0)] * 2
    there, diagonal = (30 + 10, 30), (30 + 6, 30 + 8)  # both ten steps away
    grouped = column(make_field(axes, kernels, PAIR), (30, 30))
    product = column(make_field(axes, kernels), (30, 30))
    assert grouped[there] == pytest.approx(grouped[diagonal], rel=0.02)
    assert product[there] > 1.9 * product[diagonal]


@pytest.mark.parametrize("family", ["gaussian", "matern52", "matern12"])
def test_a_group_of_three_axes_has_the_isotropic_kernel(family):
    axes, sigmas, place = [line(31), line(33), line(35)], (2.5, 3.0, 3.5), (15, 16, 17)
    kernels = [Kernel(family, sigma) for sigma in sigmas]
    field = make_field(axes, kernels, Grouping(((0, 1, 2),)))
    expected = isotropic(family, distances(axes, sigmas, place))
    atol = 1e-7 if family == "gaussian" else 2 * EXACT[family]
    np.testing.assert_allclose(column(field, place), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_units_of_the_coordinates_do_not_matter(scale):
    plain = make_field([line(12), line(15)], [Kernel("matern32", 3.0)] * 2, PAIR)
    scaled = make_field(
        [scale * line(12) - 7, scale * line(15) + 9], [Kernel("matern32", 3.0 * scale)] * 2, PAIR
    )
    np.testing.assert_allclose(dense(scaled), dense(plain), atol=1e-9)


def test_a_constant_adds_its_variance_everywhere():
    axes = [line(14), line(11)]
    plain, more = (
        make_field(axes, [Kernel("matern12", 3.0, None, constant)] * 2, PAIR)
        for constant in (0.0, 1.5)
    )
    np.testing.assert_allclose(dense(more) - dense(plain), 1.5, atol=1e-12)
    assert more.variance == pytest.approx(plain.variance + 1.5)


@given(st.floats(0.05, 0.95), st.floats(0.1, 4.0))
@settings(max_examples=15, deadline=None)
def test_a_second_scale_is_a_mixture(share, factor):
    axes, groups = [line(13), line(12)], ((0, 1),)
    one, other = (make_field(axes, [Kernel("matern32", s)] * 2, PAIR) for s in (3.0, 3.0 * factor))
    both = make_field(axes, [Kernel("matern32", 3.0)] * 2, Grouping(groups, share, factor))
    expected = (1 - share) * dense(one) + share * dense(other)
    np.testing.assert_allclose(dense(both), expected, atol=1e-12)


@pytest.mark.parametrize("group", [(0, 1), (0, 2), (1, 2), (2, 0)])
def test_a_group_is_a_factor_beside_the_other_axis(group):
    axes, sizes = [line(4, 1), line(5, 2), line(6, 3)], (4, 5, 6)
    kernels = [Kernel("matern32", 2.0 + axis) for axis in range(3)]
    field = make_field(axes, kernels, Grouping((group,)))
    (other,) = {0, 1, 2} - set(group)
    assert field.grouped == frozenset(group)
    own = [axes[axis] for axis in group]
    together = dense(make_field(own, [kernels[axis] for axis in group], PAIR))
    alone = gram(kernels[other], axes[other], axes[other])
    covariance = np.kron(together, alone).reshape([sizes[a] for a in (*group, other)] * 2)
    order = np.argsort([*group, other])
    turned = covariance.transpose([*order, *(order + 3)])
    np.testing.assert_allclose(dense(field), turned.reshape(120, 120), atol=1e-10)


def test_without_groups_it_is_the_product_of_the_kernels():
    axes = [line(5, 1), line(6, 2)]
    kernels = [Kernel("matern32", 2.0, None, 0.5), Kernel("gaussian", 1.0)]
    expected = np.kron(*(gram(k, c, c) for k, c in zip(kernels, axes, strict=True)))
    np.testing.assert_allclose(dense(make_field(axes, kernels)), expected, atol=1e-12)
    known = spectra_of(axes, kernels)
    np.testing.assert_allclose(dense(make_field(axes, kernels, spectra=known)), expected, atol=1e-9)
    assert make_field(axes, kernels, spectra=known).bases[0] is known[0].vectors
    assert make_field(axes, kernels).grouped == frozenset()


# --- circles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [36, 37])
@pytest.mark.parametrize("family", ["gaussian", "matern12"])
def test_a_circle_in_a_group_comes_round(family, size):
    """The kernel of all turns together, scaled to a variance of 1."""
    ring, across = np.arange(float(size)), line(81)
    kernels = [Kernel(family, 6.0, float(size)), Kernel(family, 6.0)]
    found = column(make_field([ring, across], kernels, PAIR), (5, 40))
    images = 0.0
    for turn in range(-4, 5):
        away = np.add.outer((ring - 5 + turn * size) ** 2, (across - 40) ** 2)
        images = images + isotropic(family, np.sqrt(away) / 6.0)
    atol = 1e-8 if family == "gaussian" else EXACT[family]
    np.testing.assert_allclose(found, images / images[5, 40], atol=atol)
    other = column(make_field([ring, across], kernels, PAIR), (size - 2, 40))
    np.testing.assert_allclose(other, np.roll(found, size - 7, axis=0), atol=1e-12)


@pytest.mark.parametrize("turn", [0.0, 90.0, -720.0])
def test_an_arc_may_cross_the_end_of_the_circle(turn):
    """Longitudes of Europe from 0 to 360 are those from -180 to 180."""
    arc, lat = np.arange(-12.0, 13.0, 3.0), line(7)
    kernels = [Kernel("matern12", 9.0, 360.0), Kernel("matern12", 3.0)]
    plain = dense(make_field([arc, lat], kernels, PAIR))
    crossed = dense(make_field([np.mod(arc, 360.0) + turn, lat], kernels, PAIR))
    np.testing.assert_allclose(crossed, plain, atol=1e-9)
    assert waves_of(np.mod(arc, 360.0), 360.0).frequencies.size == 18


@pytest.mark.parametrize(
    ("family", "sigma", "off"), [("gaussian", 9.0, 1e-7), ("matern32", 2.0, 1e-3)]
)
def test_an_arc_varies_as_the_circle_that_it_is_a_part_of(family, sigma, off):
    """Where the kernel ends before the arc does: it has fewer waves."""
    ring, lat = np.arange(0.0, 360.0, 3.0), line(5)
    kernels = [Kernel(family, sigma, 360.0), Kernel(family, sigma / 3)]
    part = slice(70, 100)
    whole = dense(make_field([ring, lat], kernels, PAIR)).reshape(120, 5, 120, 5)[part, :, part]
    arc = make_field([ring[part], lat], kernels, PAIR)
    np.testing.assert_allclose(dense(arc).reshape(whole.shape), whole, atol=off)
    assert arc.variances.shape[0] == 60
    assert make_field([ring[:60], lat], kernels, PAIR).variances.shape[0] == 120


# --- how many waves -----------------------------------------------------------------------------
# --- variance, draws, useful directions ---------------------------------------------------------


@pytest.mark.parametrize("grouping", [Grouping(), PAIR], ids=["product", "group"])
def test_variance_is_the_mean_of_the_diagonal(grouping):
    axes = [line(7, 1), line(9, 2)]
    field = make_field(axes, [Kernel("matern12", 2.0, None, 0.3)] * 2, grouping)
    assert field.variance == pytest.approx(np.diag(dense(field)).mean())


@pytest.mark.parametrize("grouping", [Grouping(), PAIR], ids=["product", "group"])
def test_draws_have_the_covariance_of_the_field(grouping):
    field = make_field([line(5), line(4)], [Kernel("matern32", 2.0)] * 2, grouping)
    rng = np.random.default_rng(0)
    draws = np.array([field.draw(rng).ravel() for _ in range(4000)])
    np.testing.assert_allclose(draws.T @ draws / 4000, dense(field), atol=0.09)
    again = field.draw(np.random.default_rng(3))
    np.testing.assert_array_equal(field.draw(np.random.default_rng(3)), again)


@pytest.mark.parametrize("share", [None, 1e-6, 0.1])
def test_directions_far_below_the_ridge_are_left_out(share):
    x = np.arange(40.0)
    spectra = spectra_of([x, x], [Kernel("gaussian", 3.0), Kernel("matern12", 3.0)])
    field = product_field(spectra)
    for ridge in (1e-3, 1e-10, 1e-14):
        kept = field.useful(ridge) if share is None else field.useful(ridge, share)
        largest = [s.values[0] for s in spectra]
        for own, spectrum, other in zip(kept.bases, spectra, reversed(largest), strict=True):
            whole = spectrum.values * other
            lifted = whole + ridge > ROUND_OFF * whole[0]
            assert own.shape[1] == np.count_nonzero((whole > (share or 1e-11) * ridge) & lifted)
            assert own.flags.c_contiguous
    assert field.useful(1e15).variances.shape == (1, 1)  # one at least


@given(st.floats(-8, 1), st.sampled_from(["gaussian", "matern12"]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_what_is_dropped_changes_no_answer(exponent, family, group):
    ridge = 10.0**exponent
    grouping = PAIR if group else Grouping()
    field = make_field([line(9), line(8)], [Kernel(family, 3.0)] * 2, grouping)
    kept = field.useful(ridge)
    lost = np.abs(dense(kept) - dense(field)).max()
    assert lost <= 1e-11 * ridge * field.variances.size + 1e-13 * field.variances.max()
    assert kept.grouped == field.grouped


def test_a_field_with_nothing_to_drop_is_returned_as_it_is():
    field = make_field([line(9), line(8)], [Kernel("matern12", 3.0)] * 2, PAIR)
    assert field.useful(0.1) is field
    assert Grouping((), 0.0, 1.0) == module.NO_GROUPS


# --- the sphere ---------------------------------------------------------------------------------

LAT, LON = np.arange(-75.0, 90, 30), np.arange(0.0, 360, 45)


def sphere_matrix(field):
    """Return V of a field on the sphere, in the order of the grid."""
    whole = np.eye(field.variances.size).reshape(-1, *field.variances.shape)
    return np.array([field.unfold(field.synthesis(g)).ravel() for g in whole]).T


@pytest.mark.parametrize("family", ["matern12", "matern52", "gaussian"])
def test_a_sphere_has_the_kernel_of_the_chord_and_a_constant(family):
    field = make_field([LAT, LON], kernels_of(family, 30.0, 0.5), SPHERE)
    v = sphere_matrix(field)
    expected = chordal(family, 30.0, places(LAT, LON)) + 0.5
    np.testing.assert_allclose((v * field.variances) @ v.T, expected, atol=1e-7)
    assert field.variance == pytest.approx(1.5)
    assert field.shape == (6, 8)


def test_a_second_scale_of_the_sphere_is_a_mixture():
    grouping = Grouping(((0, 1),), 0.3, 0.2, sphere=True)
    field = make_field([LAT, LON], kernels_of("matern32", 30.0), grouping)
    v, there = sphere_matrix(field), places(LAT, LON)
    expected = 0.7 * chordal("matern32", 30.0, there) + 0.3 * chordal("matern32", 6.0, there)
    np.testing.assert_allclose((v * field.variances) @ v.T, expected, atol=1e-7)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_sphere_is_a_factor_beside_the_other_axis_wherever_its_axes_are(order):
    """Latitude and longitude may be in any order, with another axis before, between or after."""
    axes, kernels = [LAT, LON, line(4, 1)], [*kernels_of("matern32", 40.0), Kernel("matern12", 2.0)]
    turned = [axes[axis] for axis in order], [kernels[axis] for axis in order]
    group = tuple(sorted((order.index(0), order.index(1))))
    field = make_field(*turned, Grouping((group,), sphere=True))
    assert field.shape == tuple(c.size for c in turned[0])
    assert field.grouped == frozenset(group)
    v = sphere_matrix(field)
    own = np.kron(chordal("matern32", 40.0, places(LAT, LON)), gram(kernels[2], axes[2], axes[2]))
    own = own.reshape(6, 8, 4, 6, 8, 4).transpose([*order, *(3 + axis for axis in order)])
    found = (v * field.variances.ravel()) @ v.T
    np.testing.assert_allclose(found, own.reshape(192, 192), atol=1e-7)
    assert field.variance == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    weights = rng.random(field.shape)
    np.testing.assert_array_equal(field.unfold(field.fold(weights)), weights)
    back = field.analysis(field.fold(weights))
    np.testing.assert_allclose(back.ravel(), v.T @ weights.ravel(), atol=1e-12)
    assert field.mean_share(field.fold(weights)) == pytest.approx(
        np.mean((v**2).T @ weights.ravel())
    )
    some = np.unravel_index(np.array([0, 5, 77, 191]), field.variances.shape)
    matrices, columns = field.factors(some)
    parts = [matrix[:, column] for matrix, column in zip(matrices, columns, strict=True)]
    product = reduce(lambda a, b: a[..., None, :] * b, parts).reshape(192, 4)
    np.testing.assert_allclose(product, v[:, [0, 5, 77, 191]], atol=1e-12)
    assert field.axis_of(order.index(2)) == 1
    numbers = field.draw(np.random.default_rng(3))
    assert numbers.shape == field.shape


def test_a_rotation_of_the_sphere_changes_nothing():
    """The covariance of cells that a rotation takes to other cells of the grid."""
    lat, lon = np.linspace(-90, 90, 5), np.arange(0.0, 360, 90)
    field = make_field([lat, lon], kernels_of("matern12", 50.0), SPHERE)
    v = sphere_matrix(field)
    covariance = ((v * field.variances) @ v.T).reshape(5, 4, 5, 4)
    # the pole and two places on the equator are at right angles, as are the other way round
    assert covariance[4, 0, 2, 1] == pytest.approx(covariance[2, 0, 2, 1], abs=1e-9)
    assert covariance[4, 0, 2, 1] == pytest.approx(covariance[0, 3, 2, 2], abs=1e-9)
    # half-way to the pole from both sides, across it, and along the equator
    assert covariance[3, 0, 3, 2] == pytest.approx(covariance[2, 0, 2, 1], abs=1e-9)


@given(st.floats(-8, 1), st.sampled_from(["gaussian", "matern12"]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_what_is_dropped_of_a_sphere_changes_no_answer(exponent, family, beside):
    ridge = 10.0**exponent
    axes, kernels = [LAT, LON], kernels_of(family, 70.0)
    if beside:
        axes, kernels = [*axes, line(5)], [*kernels, Kernel("gaussian", 3.0)]
    field = make_field(axes, kernels, SPHERE)
    kept = field.useful(ridge)
    whole, some = sphere_matrix(field), sphere_matrix(kept)
    found = (some * kept.variances.ravel()) @ some.T
    lost = np.abs(found - (whole * field.variances.ravel()) @ whole.T).max()
    assert lost <= 1e-11 * ridge * field.variances.size + 1e-13 * field.variances.max()
    assert (kept.grouped, kept.shape) == (field.grouped, field.shape)


@pytest.mark.parametrize("share", [1e-11, 1e-6])
def test_directions_of_a_sphere_far_below_the_ridge_are_left_out(share):
    kernels = [*kernels_of("gaussian", 70.0), Kernel("gaussian", 3.0)]
    field = make_field([LAT, LON, line(5)], kernels, SPHERE)
    for ridge in (1.0, 1e4, 1e15):
        sizes = [field.variances.max(axis=axis) for axis in (1, 0)]
        expected = tuple(max(1, np.count_nonzero(size > share * ridge)) for size in sizes)
        assert field.useful(ridge, share).variances.shape == expected
        assert share > 1e-11 or field.useful(ridge).variances.shape == expected
    assert field.useful(1e4).variances.shape < field.variances.shape


def test_a_sphere_with_nothing_to_drop_is_returned_as_it_is():
    field = make_field([LAT, LON], kernels_of("matern12", 30.0), SPHERE)
    assert field.useful(0.1) is field
    again = make_field([LAT.copy(), LON], kernels_of("matern12", 30.0), SPHERE)
    assert again.sphere is field.sphere  # it is made once


def test_two_sigmas_of_a_sphere_become_one():
    assert sphere_sigma(kernels_of("matern12", 7.3)) == 7.3
    assert sphere_sigma([Kernel("matern12", 4.0), Kernel("matern12", 9.0, 360.0)]) == 6.0


def test_operations_of_a_field_are_those_of_its_products():
    plain = make_field([line(5), line(6)], [Kernel("matern12", 2.0)] * 2)
    assert plain.operations == 4 * 5 * 6 * (5 + 6)
    kernels = [*kernels_of("matern12", 30.0), Kernel("matern12", 2.0)]
    field = make_field([LAT, LON, line(3)], kernels, SPHERE)
    assert field.operations == 2 * field.sphere.operations * 3 + 4 * 6 * 8 * 3 * 3
