"""One ridge for a whole grid, against generalised cross-validation from a dense system."""

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.tuning import joint
from dkrls_cli.tuning.joint import choose_joint


def joint_score(values, system, ridge):
    left = ridge * np.linalg.inv(system + ridge * np.eye(values.size))
    return np.mean((left @ values.ravel()) ** 2) / (np.trace(left) / values.size) ** 2


def test_the_joint_ridge_makes_generalised_cross_validation_least():
    x, y = np.arange(9.0), np.arange(8.0)
    kernels = [Kernel("gaussian", 2.0), Kernel("matern32", 3.0)]
    noisy = np.sin(np.add.outer(x / 3, y / 4)) + 0.1 * np.random.default_rng(11).standard_normal(
        (9, 8)
    )
    given = choose_joint(noisy, [x, y], kernels, open_sigmas=[False, False]).setting
    assert list(given.kernels) == kernels

    def score(kernels, ridge):
        grams = (gram(k, c, c) for k, c in zip(kernels, (x, y), strict=True))
        return joint_score(noisy, np.kron(*grams), ridge)

    least = min(score(kernels, ridge) for ridge in np.geomspace(1e-6, 1e2, 200))
    assert score(kernels, given.ridge) <= 1.01 * least
    moved = choose_joint(noisy, [x, y], kernels, open_sigmas=[True, True]).setting
    assert score(moved.kernels, moved.ridge) < score(kernels, given.ridge)
    kept = choose_joint(noisy, [x, y], kernels, open_sigmas=[True, True], ridge=0.5).setting
    assert kept.ridge == 0.5


X, Y = np.arange(24.0), np.arange(20.0)
SMOOTH = np.sin(np.add.outer(X / 6, Y / 5))
SMOOTH += 0.05 * np.random.default_rng(2).standard_normal(SMOOTH.shape)


def sigmas(start, open_sigmas=(True, True), **how):
    kernels = [Kernel("gaussian", sigma) for sigma in start]
    found = choose_joint(SMOOTH, [X, Y], kernels, open_sigmas=open_sigmas, **how)
    return [kernel.sigma for kernel in found.setting.kernels]


def test_a_sigma_moves_four_steps_in_one_direction_at_most():
    assert sigmas((0.3, 0.3)) == pytest.approx([0.3 * 1.4**4] * 2)
    wavy = np.cos(1.3 * X)[:, None] * np.cos(1.5 * Y)
    wavy += 0.01 * np.random.default_rng(0).standard_normal(wavy.shape)
    kernels = [Kernel("matern52", 40.0)] * 2
    found = choose_joint(wavy, [X, Y], kernels, open_sigmas=[True, True]).setting
    assert [k.sigma for k in found.kernels] == pytest.approx([40 / 1.4**3, 40 / 1.4])


def test_a_ridge_below_round_off_is_taken_only_where_it_is_clearly_better():
    ridges = np.array([1e-14, 1e-10, 1e-2])
    assert joint._best_ridge(np.array([0.9, 1.1, 1.0]), ridges, 1e-12) == 2
    assert joint._best_ridge(np.array([0.26, 1.1, 1.0]), ridges, 1e-12) == 2
    assert joint._best_ridge(np.array([0.24, 1.1, 1.0]), ridges, 1e-12) == 0
    assert joint._best_ridge(np.array([0.9, 0.8, 1.0]), ridges, 1e-12) == 1
    assert joint._best_ridge(np.array([0.9]), ridges[:1], 1e-12) == 0  # the only one, as given


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sigma", [60.0, 200.0])
def test_noise_is_not_explained_by_eigenvalues_that_are_round_off(sigma, seed):
    """A kernel far too long for years that differ has few directions, and round-off beside them."""
    rng = np.random.default_rng(seed)
    years, months = np.arange(61.0), np.arange(12.0)
    values = 1.5 * rng.standard_normal((61, 1)) + 0.3 * rng.standard_normal((61, 12))
    values += 2.0 * np.cos(2 * np.pi * months / 12)
    kernels = [
        Kernel("gaussian", sigma, constant=1.0),
        Kernel("matern32", 10.0, period=12.0, constant=1.0),
    ]
    found = choose_joint(values - values.mean(), [years, months], kernels, open_sigmas=[True, True])
    assert found.setting.ridge > 1e-3


def test_a_sigma_moves_on_only_while_the_score_falls():
    """Where it stays, neither neighbour has a lower score."""
    found = sigmas((4.0, 3.0))
    score = scores(found)
    for axis in (1,):  # the other axis was settled while this one had its first sigma
        for factor in (1.4, 1 / 1.4):
            moved = list(found)
            moved[axis] *= factor
            assert scores(moved) >= score


def scores(widths):
    spectra = [
        decompose(gram(Kernel("gaussian", s), c, c)) for s, c in zip(widths, (X, Y), strict=True)
    ]
    data = spectra[0].vectors.T @ SMOOTH @ spectra[1].vectors
    return joint._least_score([data], [spectra], joint._RIDGES)[0]


def test_sigmas_that_are_given_stay():
    found = sigmas((0.3, 0.3), open_sigmas=(False, True))
    assert found[0] == 0.3
    assert found[1] > 0.3
    assert sigmas((0.3, 0.3), open_sigmas=(True, False))[1] == 0.3


@pytest.mark.parametrize(("cells", "move"), [(480, True), (479, False)])
def test_sigmas_of_a_large_grid_stay(cells, move, monkeypatch):
    monkeypatch.setattr(joint, "_MOVING_CELLS", cells)
    assert (sigmas((0.3, 0.3)) != [0.3, 0.3]) == move


def test_spectra_are_those_of_the_setting_and_none_is_made_twice(monkeypatch):
    made = []

    def counted(matrix):
        made.append(len(matrix))
        return decompose(matrix)

    kernels = [Kernel("gaussian", 0.3)] * 2
    known = decompose(gram(kernels[0], X, X))
    monkeypatch.setattr(joint, "decompose", counted)
    found = choose_joint(SMOOTH, [X, Y], kernels, open_sigmas=[False, True], spectra=[known, None])
    assert made == [20] + [20] * 4  # the second level as it was, and four steps up
    assert found.spectra[0] is known
    whole = decompose(gram(found.setting.kernels[1], Y, Y))
    np.testing.assert_array_equal(found.spectra[1].values, whole.values)
    settled = found.setting.kernels
    made.clear()
    choose_joint(SMOOTH, [X, Y], settled, open_sigmas=[False, False], spectra=found.spectra)
    assert made == []


@pytest.mark.parametrize("noise", [1e-8, 0.3])
def test_bins_give_the_ridge_of_the_exact_score(noise):
    x, y = np.arange(9.0), np.arange(8.0)
    kernels = [Kernel("matern32", 4.0), Kernel("matern12", 3.0)]
    values = np.sin(np.add.outer(x / 3, y / 4)) + noise * np.random.default_rng(1).standard_normal(
        (9, 8)
    )
    found = choose_joint(values, [x, y], kernels, open_sigmas=[False, False]).setting
    system = np.kron(*(gram(k, c, c) for k, c in zip(kernels, (x, y), strict=True)))
    exact = [joint_score(values, system, ridge) for ridge in joint._RIDGES]
    assert joint_score(values, system, found.ridge) <= 1.02 * min(exact)
    spectra = found and choose_joint(values, [x, y], kernels, open_sigmas=[False] * 2).spectra
    data = spectra[0].vectors.T @ values @ spectra[1].vectors
    for ridge in (1e-3, 0.1, 10.0):
        score, _ = joint._least_score([data], [spectra], np.array([ridge]))
        assert score * values.size == pytest.approx(joint_score(values, system, ridge), rel=0.2)


# --- long levels --------------------------------------------------------------------------------


def noisy_grid(size, columns=5, noise=0.3, seed=4):
    rng = np.random.default_rng(seed)
    waves = np.sin(np.multiply.outer(np.arange(size) / 20, np.linspace(1, 1.5, columns)))
    return waves + noise * rng.standard_normal((size, columns))


@pytest.mark.parametrize(("size", "count"), [(30, 1), (31, 3)])
def test_a_long_level_is_seen_through_three_windows(size, count, monkeypatch):
    monkeypatch.setattr(joint, "LONG", 30)
    monkeypatch.setattr(joint, "_WINDOW", 10)
    x, values = np.arange(float(size))[::-1].copy(), noisy_grid(size)
    windows = joint._windows(values, [x, np.arange(5.0)])
    assert len(windows) == count
    if count == 3:
        for window, start in zip(windows, (0, 10, 21), strict=True):
            np.testing.assert_array_equal(window.values, values[::-1][start : start + 10])
            np.testing.assert_array_equal(window.coordinates[0], np.arange(10.0))
        uneven = joint._windows(values, [x**1.1, np.arange(5.0)])
        for window, start in zip(uneven, (0, 10, 21), strict=True):
            np.testing.assert_array_equal(
                window.coordinates[0], np.arange(start, start + 10) ** 1.1
            )


def test_the_score_of_windows_is_that_of_all_their_cells(monkeypatch):
    monkeypatch.setattr(joint, "LONG", 30)
    monkeypatch.setattr(joint, "_WINDOW", 12)
    x = np.sort(np.random.default_rng(1).uniform(0, 90, 60))
    kernels = [Kernel("matern32", 6.0), Kernel("matern12", 3.0)]
    values, y = noisy_grid(60), np.arange(5.0)
    found = choose_joint(values, [x, y], kernels, open_sigmas=[False, False])
    parts = [slice(start, start + 12) for start in (0, 24, 48)]
    systems = [np.kron(gram(kernels[0], x[p], x[p]), gram(kernels[1], y, y)) for p in parts]

    def score(ridge):
        left = [ridge * np.linalg.inv(s + ridge * np.eye(len(s))) for s in systems]
        missed = [inv @ values[p].ravel() for inv, p in zip(left, parts, strict=True)]
        return np.sum(np.square(missed)) / sum(np.trace(inv) for inv in left) ** 2

    assert score(found.setting.ridge) <= 1.02 * min(score(ridge) for ridge in joint._RIDGES)
    assert found.spectra[0] is None
    np.testing.assert_allclose(found.spectra[1].values, decompose(gram(kernels[1], y, y)).values)


def test_the_joint_ridge_of_a_long_level_is_close_to_that_of_the_whole_grid(monkeypatch):
    x, y = np.arange(1100.0), np.arange(5.0)
    kernels, values = [Kernel("matern52", 30.0), Kernel("matern12", 3.0)], noisy_grid(1100)
    found = choose_joint(values, [x, y], kernels, open_sigmas=[False, False]).setting
    monkeypatch.setattr(joint, "LONG", 2000)
    whole = choose_joint(values, [x, y], kernels, open_sigmas=[False, False]).setting
    assert found.ridge == pytest.approx(whole.ridge, rel=0.6)


def test_windows_of_even_steps_share_their_spectrum(monkeypatch):
    made = []

    def counted(matrix):
        made.append(len(matrix))
        return decompose(matrix)

    monkeypatch.setattr(joint, "decompose", counted)
    kernels = [Kernel("matern32", 20.0), Kernel("matern12", 3.0)]
    x, y, values = np.arange(1100.0), np.arange(5.0), noisy_grid(1100)
    choose_joint(values, [x, y], kernels, open_sigmas=[False, False])
    assert made == [512, 5]
    made.clear()
    choose_joint(values, [x**1.01, y], kernels, open_sigmas=[False, False])
    assert made == [512] * 3 + [5]
    made.clear()
    known = decompose(gram(kernels[1], y, y))
    choose_joint(values, [x, y], kernels, open_sigmas=[True, False], spectra=[None, known])
    assert set(made) == {512}
