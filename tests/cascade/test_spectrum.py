"""Spectra against known ones and dense algebra, and the rule for what is round-off."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from dkrls_cli.cascade import spectrum as module
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import (
    ROUND_OFF,
    Spectrum,
    decompose,
    extend,
    factor,
    spectra_of,
)

X = np.linspace(0, 10, 60)
EPS = np.finfo(float).eps


@pytest.mark.parametrize("sigma", [0.05, 1.0, 20.0, 1e300])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_kept_is_orthonormal_descending_and_the_whole_matrix(
    family: str, sigma: float
) -> None:
    matrix = gram(Kernel(family, sigma), X, X)
    spectrum = decompose(matrix)
    v, w = spectrum.vectors, spectrum.values
    assert v.shape == (X.size, spectrum.rank)
    assert (np.diff(w) <= 0).all()
    np.testing.assert_allclose(v.T @ v, np.eye(spectrum.rank), atol=1e-13)
    np.testing.assert_allclose((v * w) @ v.T, matrix, atol=X.size * EPS * w[0])


def test_values_of_a_circulant_matrix_are_its_fourier_transform() -> None:
    """Even steps around a circle; each value but the first and the middle comes twice."""
    z = np.arange(16) / 16
    first_row = np.exp(-((np.sin(np.pi * z) / np.pi) ** 2) / (2 * 0.08**2))
    expected = np.sort(np.fft.fft(first_row).real)[::-1]
    values = decompose(gram(Kernel("gaussian", 0.08, 1.0), z, z)).values
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize(("gap", "rank"), [(1.0, 12), (1e-6, 12), (1e-14, 12), (1e-17, 7)])
def test_rank_counts_values_above_round_off(gap: float, rank: int) -> None:
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))
    values = np.where(np.arange(12) < 7, np.linspace(2, 1, 12), gap)
    matrix = (rotation * values) @ rotation.T
    assert decompose((matrix + matrix.T) / 2).expressible().rank == rank


@pytest.mark.parametrize(("sigma", "rank"), [(1e-3, 60), (1e300, 1)])
def test_rank_at_both_ends_of_sigma(sigma: float, rank: int) -> None:
    assert decompose(gram(Kernel("gaussian", sigma), X, X)).expressible().rank == rank


@pytest.mark.parametrize("sigma", [2.0, 5.0, 50.0])
def test_dropped_directions_carry_no_answer_to_smooth_data(sigma: float) -> None:
    """The dense solve keeps all directions; its condition of 1e8 allows this comparison."""
    kernel, ridge = Kernel("gaussian", sigma), 1e-6
    query, y = np.linspace(0.1, 9.9, 37), np.sin(X) + 0.1 * X
    matrix, cross = gram(kernel, X, X), gram(kernel, query, X)
    spectrum = decompose(matrix).expressible()
    v, w = spectrum.vectors, spectrum.values
    answers = cross @ (v / (w + ridge)) @ (v.T @ y)
    expected = cross @ np.linalg.solve(matrix + ridge * np.eye(X.size), y)
    assert spectrum.rank < X.size
    np.testing.assert_allclose(answers, expected, atol=1e-8)


@pytest.mark.parametrize("ridge", [1e-12, 1e-6, 1.0])
def test_a_ridge_above_round_off_keeps_every_direction(ridge: float) -> None:
    whole = decompose(gram(Kernel("gaussian", 5.0), X, X))
    assert whole.solvable(ridge).rank == X.size
    assert whole.solvable(1e-16).rank == whole.expressible().rank < X.size / 2
    assert (whole.values >= 0).all()


# ---- the algebra of K + ridge

MATERN = Kernel("matern32", 2.0, constant=0.5)
RIDGE = 1e-2
SYSTEM = gram(MATERN, X, X) + RIDGE * np.eye(X.size)

each_form = pytest.mark.parametrize(
    "whole",
    [decompose(SYSTEM - RIDGE * np.eye(60)), factor(SYSTEM - RIDGE * np.eye(60), RIDGE)],
    ids=["eigenvectors", "triangle"],
)


@each_form
def test_a_solve_an_inverse_and_its_diagonal_are_those_of_the_dense_matrix(whole: Spectrum) -> None:
    dense = np.linalg.inv(SYSTEM)
    right = np.random.default_rng(0).standard_normal((60, 4))
    np.testing.assert_allclose(whole.vectors @ whole.solve(RIDGE, right), dense @ right, atol=1e-9)
    np.testing.assert_allclose(whole.inverse(RIDGE), dense, atol=1e-9)
    np.testing.assert_allclose(whole.inverse(RIDGE, np.array([7, 3])), dense[[7, 3]], atol=1e-9)
    np.testing.assert_allclose(whole.inverse_diagonal(RIDGE), dense.diagonal(), rtol=1e-10)


@each_form
def test_explained_variance_is_that_of_the_dense_matrix(whole: Spectrum) -> None:
    across = gram(MATERN, np.array([-1.0, 0.05, 4.4]), X)
    expected = np.einsum("ij,jk,ik->i", across, np.linalg.inv(SYSTEM), across)
    np.testing.assert_allclose(whole.explained(RIDGE, across @ whole.vectors), expected, rtol=1e-10)


@pytest.mark.parametrize(("size", "held"), [(9, True), (10, True), (11, False)])
def test_small_matrices_are_decomposed_by_one_thread(
    size: int, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []

    def one_thread() -> nullcontext[None]:
        used.append(size)
        return nullcontext()

    assert module._SMALL == 1024
    monkeypatch.setattr(module, "_SMALL", 10)
    monkeypatch.setattr(module, "one_blas_thread", one_thread)
    decompose(np.eye(size))
    assert bool(used) == held


# ---- what is round-off


def diagonal(*values: float) -> Spectrum:
    return Spectrum(np.eye(len(values)), np.array(values))


def test_round_off_is_four_epsilons_of_the_largest_value() -> None:
    assert ROUND_OFF == 4 * EPS
    above, below = (float(np.nextafter(8 * EPS, side)) for side in (1.0, 0.0))
    assert diagonal(2.0, above, 8 * EPS, below, 0.0).solvable(0.0).rank == 2
    assert diagonal(2.0, 0.0, 0.0).solvable(8 * EPS).rank == 1
    assert diagonal(2.0, 0.0, 0.0).solvable(above).rank == 3


def test_directions_are_dropped_from_the_end_and_none_costs_nothing() -> None:
    whole = diagonal(3.0, 2.0, 1.0)
    fewer = whole.first(2)
    assert fewer.values.tolist() == [3.0, 2.0]
    assert fewer.vectors.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert fewer.vectors.flags.c_contiguous
    assert whole.first(3) is whole
    assert whole.solvable(0.0) is whole


def test_values_below_zero_are_zero() -> None:
    matrix = np.diag([1.0, -1e-17, 0.5])
    assert decompose(matrix).values.tolist() == [1.0, 0.5, 0.0]


def test_a_level_drops_what_its_share_of_a_joint_ridge_cannot_solve() -> None:
    """Beside values up to 8 of the other level, a ridge r counts r / 8."""
    known = [diagonal(2.0, 0.0), diagonal(8.0, 1.0)]
    axes, levels = [np.arange(2.0)] * 2, [Level("a"), Level("b")]
    limit = 8 * 2 * ROUND_OFF
    for ridge, rank in ((0.99 * limit, 1), (1.01 * limit, 2)):
        assert [s.rank for s in spectra_of(axes, levels, ridge, known)] == [rank, 2]


# ---- long levels: triangles


@pytest.mark.parametrize(("first", "size"), [(1, 2), (1, 60), (59, 60), (30, 60), (290, 300)])
def test_triangles_are_inverses_of_any_size(first: int, size: int) -> None:
    x = np.arange(float(size))
    gramian = gram(Kernel("matern32", 7.0), x, x)
    known = factor(gramian[:first, :first], 1e-3)
    whole = extend(known, gramian[:first, first:], gramian[first:, first:], 1e-3)
    unit = np.eye(size)
    np.testing.assert_allclose(whole.inverse(1e-3) @ (gramian + 1e-3 * unit), unit, atol=1e-9)
    assert whole.triangular
    assert np.array_equal(np.triu(whole.vectors), whole.vectors)
    assert np.array_equal(whole.vectors[:first, :first], known.vectors)
    np.testing.assert_allclose(whole.values + 1e-3, 1.0, rtol=1e-14)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the costly functions that were called, in their order."""
    called: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(module, name)

        def call(*arguments: Any) -> Any:
            called.append(name)
            return plain(*arguments)

        return call

    for name in ("gram", "decompose", "factor", "extend"):
        monkeypatch.setattr(module, name, counted(name))
    return called


def spectrum_of(size: int, ridge: float, known: Spectrum | None = None) -> Spectrum:
    level = Level("t", Kernel("matern32", 3.0, constant=1.0), ridge)
    return spectra_of([np.arange(float(size))], [level], None, [known])[0]


@pytest.mark.parametrize(("size", "triangular"), [(10, False), (11, True)])
def test_a_level_is_long_above_a_limit(
    size: int, triangular: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module._LONG == 2000
    monkeypatch.setattr(module, "_LONG", 10)
    assert spectrum_of(size, 1e-3).triangular == triangular


@pytest.mark.parametrize(("share", "triangular"), [(0.5, False), (1.0, False), (1.01, True)])
def test_cholesky_needs_a_ridge_above_1e_7_of_the_variance(
    share: float, triangular: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONG", 10)
    assert spectrum_of(20, share * 1e-7 * 2.0).triangular == triangular


def test_a_known_triangle_is_kept_or_extended(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONG", 10)
    first, whole = spectrum_of(20, 1e-3), spectrum_of(25, 1e-3)
    calls.clear()
    assert spectrum_of(20, 1e-3, first) is first
    assert calls == []
    longer = spectrum_of(25, 1e-3, first)
    assert calls == ["gram", "gram", "extend"]
    np.testing.assert_allclose(longer.vectors, whole.vectors, atol=1e-10)
    np.testing.assert_array_equal(longer.values, whole.values)


def test_a_known_spectrum_is_not_computed_again(calls: list[str]) -> None:
    kernel = Kernel("gaussian", 4.0)
    whole = decompose(gram(kernel, X, X))
    calls.clear()
    levels = [Level("a", kernel, 1e-20), Level("b", kernel, 1e-3)]
    found = spectra_of([X, X], levels, None, [whole, whole])
    assert calls == []
    assert [s.rank for s in found] == [whole.expressible().rank, X.size]
    spectra_of([X, X], [Level("a", kernel), Level("b", kernel)], 1e-3, [whole, whole])
    assert calls == []
    spectra_of([X, X], [Level("a", kernel), Level("b", kernel)], 1e-3, [None, whole])
    assert calls == ["gram", "decompose"]


def test_a_known_spectrum_of_other_coordinates_is_computed_again(calls: list[str]) -> None:
    known = spectrum_of(20, 1e-3)
    calls.clear()
    longer = spectrum_of(25, 1e-3, known)
    assert calls == ["gram", "decompose"]
    np.testing.assert_array_equal(longer.values, spectrum_of(25, 1e-3).values)


def test_long_levels_answer_as_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    t, x = np.arange(24.0), np.linspace(0, 1, 9)
    values = np.random.default_rng(0).standard_normal((9, 24))
    levels = [Level("x", Kernel("matern52", 0.4), 1e-4), Level("t", MATERN, 1e-2)]
    plain = fit_cascade(values, [x, t], levels, mean=1.5)
    monkeypatch.setattr(module, "_LONG", 10)
    long = fit_cascade(values, [x, t], levels, mean=1.5)
    assert [s.triangular for s in long.spectra] == [False, True]
    queries = [np.array([0.03, x[2], 0.9]), np.array([-0.5, 3.3, t[5], 25.0])]
    np.testing.assert_allclose(long.predict(queries), plain.predict(queries), atol=1e-9)
    np.testing.assert_allclose(long.predict(smooth=True), plain.predict(smooth=True), atol=1e-9)
    points = [axis.ravel() for axis in np.meshgrid(*queries, indexing="ij")]
    np.testing.assert_allclose(long.predict_points(points), long.predict(queries).ravel())
    np.testing.assert_allclose(long.weights([0, 1]), plain.weights([0, 1]), rtol=1e-6, atol=1e-6)
