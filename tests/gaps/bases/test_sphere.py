"""The basis on the sphere, against dense kernels of chords and Legendre polynomials."""

import math

import numpy as np
import pytest
from scipy.special import eval_legendre
from sphere_grids import chordal, places

from dkrls_cli.cascade.kernels import FAMILIES
from dkrls_cli.gaps.bases import sphere as module
from dkrls_cli.gaps.bases.sphere import sphere_basis, sphere_memory

LATITUDES = {
    "mirrored": np.arange(-80.0, 90, 20),  # with the equator
    "without equator": np.arange(-75.0, 90, 30),
    "with poles": np.linspace(90, -90, 7),
    "north": np.array([5.0, 30.0, 31.0, 60.0, 85.0, 90.0]),
    "in any order": np.array([40.0, -70.0, 3.0, -12.0, 88.0]),
}
ROUND = {"even": np.arange(-180.0, 180, 36), "odd": np.arange(5.0, 365, 40)}


def kernel_of(family, sigma):
    def kernel(squares):
        return FAMILIES[family](np.sqrt(squares) / math.radians(sigma))

    return kernel


def dense(latitudes, longitudes, kernel):
    basis, variances = sphere_basis(latitudes, longitudes, kernel)
    v = basis[:]
    return basis, v, (v * variances) @ v.T


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lon", ROUND.values(), ids=ROUND)
@pytest.mark.parametrize("lat", LATITUDES.values(), ids=LATITUDES)
def test_the_covariance_is_the_kernel_of_the_chord(lat, lon, family):
    _, _, found = dense(lat, lon, kernel_of(family, 25.0))
    np.testing.assert_allclose(found, chordal(family, 25.0, places(lat, lon)), atol=1e-7)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4])
def test_a_legendre_polynomial_has_as_many_directions_as_its_degree_says(degree):
    """The addition theorem: a kernel P_l(cos angle) has 2 l + 1 directions, all others nothing."""
    lat, lon = LATITUDES["mirrored"], np.arange(0.0, 360, 30)
    basis, variances = sphere_basis(lat, lon, lambda c: eval_legendre(degree, 1.0 - c / 2))
    assert np.count_nonzero(variances > 1e-9 * variances.max()) == 2 * degree + 1
    v, there = basis[:], places(lat, lon)
    expected = eval_legendre(degree, np.clip(there @ there.T, -1, 1))
    np.testing.assert_allclose((v * variances) @ v.T, expected, atol=1e-9)


@pytest.mark.parametrize("lat", LATITUDES.values(), ids=LATITUDES)
@pytest.mark.parametrize("lon", ROUND.values(), ids=ROUND)
def test_directions_are_orthonormal_where_longitudes_go_round(lat, lon):
    basis, v, _ = dense(lat, lon, kernel_of("matern32", 20.0))
    assert basis.shape == v.shape == (lat.size * lon.size,) * 2
    assert len(basis) == lat.size * lon.size
    assert len(basis.T) == basis.shape[1]
    np.testing.assert_allclose(v.T @ v, np.eye(len(v)), atol=1e-12)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("lat", LATITUDES.values(), ids=LATITUDES)
@pytest.mark.parametrize("lon", [*ROUND.values(), np.arange(100.0, 160, 8)])
def test_products_are_those_of_the_matrix(lat, lon, width):
    basis, v, _ = dense(lat, lon, kernel_of("matern12", 20.0))
    rng = np.random.default_rng(1)
    g, y = rng.standard_normal((v.shape[1], width)), rng.standard_normal((len(v), width))
    np.testing.assert_allclose(basis @ g, v @ g, atol=1e-12)
    np.testing.assert_allclose(basis.T @ y, v.T @ y, atol=1e-12)
    np.testing.assert_array_equal(basis.T[2:5], v.T[2:5])
    np.testing.assert_allclose(basis.mean_squares(), (v**2).mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(basis.cell_squares(), (v**2).sum(axis=1), atol=1e-12)
    some = np.array([7, 0, 3, v.shape[1] - 1])
    parts = basis.meridional(some)[:, None] * basis.zonal[:, basis.waves[some]]
    np.testing.assert_array_equal(parts.reshape(len(v), 4), v[:, some])


@pytest.mark.parametrize("lat", LATITUDES.values(), ids=LATITUDES)
def test_some_directions_are_a_part_of_the_matrix(lat):
    basis, variances = sphere_basis(lat, ROUND["even"], kernel_of("gaussian", 60.0))
    kept = variances > 1e-6
    assert 0 < kept.sum() < kept.size
    some = basis.keep(kept)
    np.testing.assert_array_equal(some[:], basis[:][:, kept])
    g = np.random.default_rng(0).standard_normal((kept.sum(), 2))
    np.testing.assert_allclose(some @ g, some[:] @ g, atol=1e-12)
    np.testing.assert_allclose(some.T @ (some @ g), some[:].T @ some[:] @ g, atol=1e-11)
    assert some.operations < basis.operations


def test_operations_are_two_for_each_number_of_the_matrices():
    lat, lon = LATITUDES["north"], np.arange(0.0, 360, 45)
    basis, _ = sphere_basis(lat, lon, kernel_of("matern12", 20.0))
    assert basis.operations == 2 * (8 * 6 * 6 + 6 * 8 * 8)
    half, _ = sphere_basis(LATITUDES["without equator"], lon, kernel_of("matern12", 20.0))
    assert half.operations == 2 * (8 * 2 * 3 * 3 + 6 * 8 * 8)
    assert half.is_mirrored
    assert not basis.is_mirrored


# --- a part of the circle -----------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 340.0, -90.0, 719.7])
@pytest.mark.parametrize("lat", ["north", "mirrored"])
def test_longitudes_of_a_part_of_the_circle_have_a_shorter_period(lat, shift):
    """The covariance holds between all of them, across the end of the circle as well."""
    lat, arc = LATITUDES[lat], np.arange(0.0, 80, 8)
    lon = (arc + shift) % 360
    basis, _, found = dense(lat, lon, kernel_of("matern12", 15.0))
    assert basis.shape == (lat.size * 10, lat.size * 20)
    np.testing.assert_allclose(found, chordal("matern12", 15.0, places(lat, lon)), atol=5e-3)


@pytest.mark.parametrize(("size", "waves"), [(17, 34), (18, 36), (30, 36), (35, 36)])
def test_the_period_is_a_turn_at_most(size, waves):
    lon = np.random.default_rng(0).permutation(10.0 * np.arange(size))
    basis, _, found = dense(LATITUDES["north"], lon, kernel_of("matern32", 15.0))
    assert basis.zonal.shape == (size, waves)
    expected = chordal("matern32", 15.0, places(LATITUDES["north"], lon))
    np.testing.assert_allclose(found, expected, atol=1e-2 if waves < 36 else 1e-7)


def test_uneven_longitudes_have_nearly_the_kernel():
    lon = np.arange(0.0, 360, 10) + np.random.default_rng(2).uniform(-1, 1, 36)
    _, _, found = dense(LATITUDES["with poles"], lon, kernel_of("matern52", 30.0))
    expected = chordal("matern52", 30.0, places(LATITUDES["with poles"], lon))
    np.testing.assert_allclose(found, expected, atol=2e-3)


# --- poles and latitudes ------------------------------------------------------------------------


def test_a_pole_has_one_value_at_all_longitudes():
    lat, lon = LATITUDES["with poles"], np.arange(0.0, 360, 30)
    basis, variances = sphere_basis(lat, lon, kernel_of("matern32", 20.0))
    numbers = np.random.default_rng(0).standard_normal((basis.shape[1], 1))
    field = (basis @ (np.sqrt(variances)[:, None] * numbers)).reshape(7, 12)
    assert np.ptp(field[0]) < 1e-4  # of the least variances that there are
    assert np.ptp(field[-1]) < 1e-4
    assert np.ptp(field[3]) > 1.0


def test_variances_are_above_zero():
    """At a pole there is one value, and the other directions of its row have none."""
    _, variances = sphere_basis(LATITUDES["with poles"], ROUND["even"], kernel_of("matern12", 20.0))
    assert variances.min() == 1e-13 * variances.max()


@pytest.mark.parametrize(("off", "rows"), [(0.0, 4), (1e-7, 4), (1e-3, 8)])
def test_latitudes_share_rows_with_their_mirror_images(off, rows):
    lat = np.array([-70.0, -50, -30, -10, 10, 30, 50, 70 + off])
    basis, _ = sphere_basis(lat, ROUND["even"], kernel_of("matern12", 20.0))
    assert basis.runs[0].even.shape[1] == rows
    assert basis.is_mirrored == (rows == 4)


@pytest.mark.parametrize("lat", LATITUDES.values(), ids=LATITUDES)
def test_the_memory_is_that_of_the_matrices(lat):
    basis, _ = sphere_basis(lat, ROUND["even"], kernel_of("matern12", 20.0))
    held = sum(run.even.nbytes + run.odd.nbytes for run in basis.runs)
    assert held <= sphere_memory(lat, ROUND["even"]) < 1.4 * held


def test_a_kernel_is_computed_in_parts(monkeypatch):
    lat, lon = LATITUDES["in any order"], ROUND["odd"]
    whole = dense(lat, lon, kernel_of("matern32", 20.0))[2]
    monkeypatch.setattr(module, "_AT_ONCE", 60)
    np.testing.assert_allclose(dense(lat, lon, kernel_of("matern32", 20.0))[2], whole, atol=1e-12)
