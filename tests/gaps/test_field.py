"""Fields in waves, against closed forms of isotropic kernels and dense covariances."""

import math
from functools import reduce

import numpy as np
import pytest
from gap_grids import spectra_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.cascade.tensors import apply
from dkrls_cli.gaps import field as module
from dkrls_cli.gaps.field import Grouping, make_field, product_field, waves_of

PAIR = Grouping(((0, 1),))

EXACT = {"gaussian": 1e-8, "matern52": 1e-2, "matern32": 1e-2, "matern12": 0.05}
"""How far a group may be from its kernel: waves end at the step of the grid."""


def isotropic(family, r):
    """The families as functions of the distance in length scales, as textbooks have them."""
    if family == "gaussian":
        return np.exp(-(r**2) / 2)
    if family == "matern12":
        return np.exp(-r)
    s = math.sqrt(3 if family == "matern32" else 5) * r
    return (1 + s + (s**2 / 3 if family == "matern52" else 0.0)) * np.exp(-s)


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


@pytest.mark.parametrize("offset", [0.0, 0.5, -0.2], ids=["at 0", "between", "anywhere"])
@pytest.mark.parametrize("size", [2, 3, 8, 9, 24, 25])
def test_waves_of_a_full_ring_are_orthonormal(size, offset):
    waves = waves_of((np.arange(size) + offset) * (360.0 / size), 360.0)
    assert waves.circle
    np.testing.assert_allclose(waves.values.T @ waves.values, np.eye(size), atol=1e-12)
    turns = np.arange(size) + 1  # 0, 1, 1, 2, 2 ... turns
    np.testing.assert_allclose(waves.frequencies, (turns // 2) * (2 * math.pi / 360.0))


@pytest.mark.parametrize("size", [2, 7, 40])
def test_waves_of_a_line_with_its_margins_are_orthonormal(size):
    """At the coordinates and at those of the margin, in even steps."""
    waves = waves_of(0.5 * np.arange(size) + 3.0, None)
    assert not waves.circle
    margin = max(2, round(0.1 * size))
    assert waves.values.shape == (size, size + 2 * margin)
    length = 0.5 * (size + 2 * margin)
    np.testing.assert_allclose(waves.frequencies, np.arange(size + 2 * margin) * math.pi / length)
    beyond = (np.arange(size + 2 * margin) + 0.5) / (size + 2 * margin)
    whole = np.cos(math.pi * np.multiply.outer(beyond, np.arange(beyond.size)))
    whole *= np.sqrt(np.where(np.arange(beyond.size) > 0, 2.0, 1.0) / beyond.size)
    np.testing.assert_allclose(whole.T @ whole, np.eye(beyond.size), atol=1e-12)
    np.testing.assert_allclose(waves.values, whole[margin : margin + size], atol=1e-12)


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
    assert waves_of(np.mod(arc, 360.0), 360.0).frequencies.size == 120


# --- how many waves -----------------------------------------------------------------------------


def test_uneven_steps_have_waves_for_the_shortest_within_a_limit():
    """Twice as many as there are coordinates, in units of the length, at most."""
    near = np.array([0.0, 1.0, 2.0, 2.6, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    waves = waves_of(near, None)
    length = math.pi / waves.frequencies[1]
    assert waves.frequencies.size == math.ceil(2 * length / (8.0 + 1.0) * 10)
    mild = waves_of(line(30, 4), None)
    shortest = np.diff(np.sort(line(30, 4))).min()
    assert mild.frequencies.size == math.ceil(math.pi / mild.frequencies[1] / shortest)


def test_waves_are_made_once(monkeypatch):
    axis = line(17, 9)
    first = waves_of(axis, None)
    assert waves_of(axis.copy(), None) is first
    assert waves_of(axis, 40.0) is not first


def test_squares_of_waves_have_a_mean_of_one_in_their_number():
    for waves in (waves_of(line(50, 3), None), waves_of(line(50, 3), 50.0)):
        number = waves.frequencies.size
        assert (waves.values**2).sum(axis=1).mean() == pytest.approx(1.0, abs=0.02)
        assert (waves.values[:, 0] ** 2).mean() == pytest.approx(1 / number)


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


def test_directions_far_below_the_ridge_are_left_out():
    x = np.arange(40.0)
    spectra = spectra_of([x, x], [Kernel("gaussian", 3.0), Kernel("matern12", 3.0)])
    field = product_field(spectra)
    for ridge in (1e-3, 1e-10, 1e-14):
        kept = field.useful(ridge)
        largest = [s.values[0] for s in spectra]
        for own, spectrum, other in zip(kept.bases, spectra, reversed(largest), strict=True):
            whole = spectrum.values * other
            lifted = whole + ridge > ROUND_OFF * whole[0]
            assert own.shape[1] == np.count_nonzero((whole > 1e-11 * ridge) & lifted)
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
