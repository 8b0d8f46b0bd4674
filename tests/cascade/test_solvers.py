"""The two solvers against dense algebra, and where they differ."""

from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.solvers import JointSolver, LevelSolver
from dkrls_cli.cascade.spectrum import Spectrum, decompose
from dkrls_cli.errors import SettingError

RNG = np.random.default_rng(4)
SHAPE = (6, 5, 7)
AXES = [np.sort(RNG.uniform(0, 6, m)) for m in SHAPE]
KERNELS = [Kernel("matern32", 1.3), Kernel("gaussian", 0.6), Kernel("matern12", 2.0, constant=1.0)]
RIDGES, JOINT, MEAN = (0.1, 0.2, 0.3), 0.05, 1.5
VALUES = RNG.standard_normal(SHAPE) + 1.0
GRAMS = [gram(k, c, c) for k, c in zip(KERNELS, AXES, strict=True)]


def fitted(joint: float | None = None, values: np.ndarray = VALUES) -> Cascade:
    ridges = RIDGES if joint is None else (0.0, 0.0, 0.0)
    levels = [Level(n, k, r) for n, k, r in zip("abc", KERNELS, ridges, strict=True)]
    return fit_cascade(values, AXES, levels, joint_ridge=joint, mean=MEAN)


def dense(joint: float | None) -> np.ndarray:
    """The matrix of the whole system."""
    if joint is not None:
        return reduce(np.kron, GRAMS) + joint * np.eye(VALUES.size)
    return reduce(np.kron, [k + r * np.eye(len(k)) for k, r in zip(GRAMS, RIDGES, strict=True)])


@pytest.mark.parametrize("joint", [None, JOINT], ids=["level", "joint"])
def test_weights_solve_the_whole_system(joint: float | None) -> None:
    solver = fitted(joint).solver
    assert isinstance(solver, LevelSolver if joint is None else JointSolver)
    expected = np.linalg.solve(dense(joint), VALUES.ravel() - MEAN)
    np.testing.assert_allclose(solver.weights([0, 1, 2]).ravel(), expected, atol=1e-9)


def test_weights_of_some_levels_solve_along_their_axes() -> None:
    inverse = np.linalg.inv(GRAMS[1] + RIDGES[1] * np.eye(5))
    expected = np.einsum("aib,ij->ajb", VALUES - MEAN, inverse)
    np.testing.assert_allclose(fitted().solver.weights([1]), expected, atol=1e-10)
    np.testing.assert_allclose(fitted().solver.weights([]), VALUES - MEAN, atol=1e-12)


@pytest.mark.parametrize("axes", [[], [0], [0, 1], [1, 0, 2], [0, 1, 2, 2]])
def test_one_layer_has_weights_of_all_axes_only(axes: list[int]) -> None:
    with pytest.raises(SettingError, match="one layer of weights only: ask for all axes"):
        fitted(JOINT).solver.weights(axes)


def test_the_joint_system_has_this_diagonal_and_these_eigenvalues() -> None:
    solver = fitted(JOINT).solver
    assert isinstance(solver, JointSolver)
    diagonal = np.linalg.inv(dense(JOINT)).diagonal().reshape(SHAPE)
    np.testing.assert_allclose(solver.inverse_diagonal(), diagonal, rtol=1e-9)
    found = np.sort(solver.eigenvalues().ravel())
    np.testing.assert_allclose(found, np.linalg.eigvalsh(dense(JOINT)), rtol=1e-9)


@pytest.mark.parametrize("solved", [[True, False, True], [False, True, False], [True] * 3])
def test_coefficients_solve_the_axes_they_are_asked_for(solved: list[bool]) -> None:
    model = fitted()
    expected = VALUES - MEAN
    for axis in np.flatnonzero(solved):
        inverse = np.linalg.inv(GRAMS[axis] + RIDGES[axis] * np.eye(SHAPE[axis]))
        expected = np.moveaxis(np.tensordot(inverse, expected, (1, axis)), 0, axis)
    found = model.solver.coefficients(solved)
    for axis in np.flatnonzero(solved):
        vectors = model.spectra[axis].vectors
        found = np.moveaxis(np.tensordot(vectors, found, (1, axis)), 0, axis)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_levels_pass_through_one_by_one_and_cells_as_a_whole() -> None:
    at_node = np.array([[True, True, False], [True, False, False], [True, True, False]])
    assert fitted().solver.pass_through(at_node).tolist() == at_node.tolist()
    whole = fitted(JOINT).solver.pass_through(at_node)
    assert whole.tolist() == [[True, False, False]] * 3


@pytest.mark.parametrize("joint", [None, JOINT], ids=["level", "joint"])
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("nodes", [[0, 3], [0], []], ids=len)
def test_answers_are_those_of_the_dense_system(
    nodes: list[int], smooth: bool, joint: float | None
) -> None:
    """Between the nodes, at some of them, the first among them, and along some axes only."""
    for mixed in ((True, True, True), (True, False, False), (False, False, False)):
        queries = [
            np.append(axis[nodes or [1]], [0.4, 2.2]) if new else axis
            for axis, new in zip(AXES, mixed, strict=True)
        ]
        found = fitted(joint).solver.answer_blocks(queries, smooth)(
            tuple(slice(0, query.size) for query in queries)
        )
        at = [np.isin(q, c) & (not smooth) for q, c in zip(queries, AXES, strict=True)]
        cross = [gram(k, q, c) for k, q, c in zip(KERNELS, queries, AXES, strict=True)]
        if joint is not None:
            weights = np.linalg.solve(dense(joint), VALUES.ravel() - MEAN)
            expected = (reduce(np.kron, cross) @ weights).reshape(found.shape) + MEAN
            places = [np.searchsorted(c, q[a]) for q, c, a in zip(queries, AXES, at, strict=True)]
            expected[np.ix_(*at)] = VALUES[np.ix_(*places)]
        else:
            rows = [
                k @ np.linalg.inv(g + r * np.eye(len(g)))
                for k, g, r in zip(cross, GRAMS, RIDGES, strict=True)
            ]
            for row, query, axis, known in zip(rows, queries, AXES, at, strict=True):
                row[known] = np.equal.outer(query[known], axis)
            expected = (reduce(np.kron, rows) @ (VALUES.ravel() - MEAN)).reshape(found.shape) + MEAN
        np.testing.assert_allclose(found, expected, atol=1e-9)
        if not any(mixed) and not smooth:
            np.testing.assert_array_equal(found, VALUES)


@pytest.mark.parametrize("joint", [None, JOINT], ids=["level", "joint"])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_block_is_answered_like_the_whole(joint: float | None, smooth: bool) -> None:
    model = fitted(joint)
    queries = [np.append(axis[1:4], [0.4, 2.2]) for axis in AXES]
    whole = model.predict(queries, smooth=smooth)
    answer = model.solver.answer_blocks(queries, smooth)
    part = slice(2, 3), slice(0, 5), slice(1, 4)
    np.testing.assert_allclose(answer(part), whole[part], atol=1e-12)
    if not smooth:
        nodes = tuple(slice(0, 3) for _ in SHAPE)
        np.testing.assert_allclose(answer(nodes), VALUES[1:4, 1:4, 1:4], rtol=1e-12)


def test_the_tensor_is_solved_where_that_makes_it_shorter() -> None:
    """Along an axis of fewer directions than the core has samples there; always when joint."""
    x = np.arange(30.0)
    noise = RNG.standard_normal((30, 8))
    levels = [Level("x", Kernel("gaussian", 9.0)), Level("y", Kernel("matern12", 0.2))]
    model = fit_cascade(noise, [x, np.arange(8.0)], levels)
    assert model.spectra[0].rank < 30
    assert model.spectra[1].rank == 8 == model.core.shape[1]
    assert [model.solver.solves_tensor(axis) for axis in (0, 1)] == [True, False]
    joint = fit_cascade(noise, [x, np.arange(8.0)], levels, joint_ridge=0.1)
    assert [joint.solver.solves_tensor(axis) for axis in (0, 1)] == [True, True]


def test_spectra_of_other_levels_stay_valid_unless_the_ridge_is_joint() -> None:
    new = Spectrum(np.eye(2), np.ones(2))
    model = fitted()
    assert model.solver.factors_after(1, new) == (model.factors[0], new, model.factors[2])
    assert model.solver.factors_after(0, None) == (None, *model.factors[1:])
    assert fitted(JOINT).solver.factors_after(1, new) == (None, None, None)


def test_directions_of_short_levels_without_an_eigenvalue_are_solved_beside_a_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A Gaussian on near coordinates has eigenvalues of exactly 0: nothing is divided by them."""
    monkeypatch.setattr(choice, "LONG", 60)
    t, x = np.arange(90.0), np.linspace(0, 0.1, 9)
    kernels = [Kernel("matern32", 4.0), Kernel("gaussian", 2.0)]
    values = RNG.standard_normal((90, 9))
    levels = [Level(name, kernel) for name, kernel in zip("tx", kernels, strict=True)]
    known = decompose(gram(kernels[1], x, x))
    floored = Spectrum(known.vectors, np.where(known.values < 1e-14, 0.0, known.values))
    model = fit_cascade(values, [t, x], levels, joint_ridge=0.05, spectra=[None, floored])
    whole = np.kron(gram(kernels[0], t, t), gram(kernels[1], x, x)) + 0.05 * np.eye(810)
    expected = np.linalg.solve(whole, values.ravel())
    found = model.solver.weights([0, 1]).ravel()
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_blocks_of_a_grid_beside_a_long_axis_are_those_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "LONG", 60)
    t, x = np.arange(90.0), np.arange(6.0)
    levels = [Level("t", Kernel("matern32", 4.0), 0.1), Level("x", Kernel("matern32", 2.0), 0.1)]
    model = fit_cascade(RNG.standard_normal((90, 6)), [t, x], levels)
    queries = [t[:20] + 0.5, x[:2] + 0.5]  # fewer places: columns are answered block by block
    whole = model.predict(queries)
    for part, block in model.predict_blocks(queries, 5):
        np.testing.assert_allclose(block, whole[part], atol=1e-12)
