"""Spectra against known ones and dense algebra, and the rule for what is round-off."""

from contextlib import nullcontext

import numpy as np
import pytest

from dkrls_cli.cascade import spectrum as module
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose

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

WHOLE = decompose(gram(MATERN, X, X))


def test_a_solve_an_inverse_and_its_diagonal_are_those_of_the_dense_matrix() -> None:
    dense = np.linalg.inv(SYSTEM)
    right = np.random.default_rng(0).standard_normal((60, 4))
    np.testing.assert_allclose(WHOLE.vectors @ WHOLE.solve(RIDGE, right), dense @ right, atol=1e-9)
    np.testing.assert_allclose(WHOLE.inverse(RIDGE), dense, atol=1e-9)
    np.testing.assert_allclose(WHOLE.inverse(RIDGE, np.array([7, 3])), dense[[7, 3]], atol=1e-9)
    np.testing.assert_allclose(WHOLE.inverse_diagonal(RIDGE), dense.diagonal(), rtol=1e-10)


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
