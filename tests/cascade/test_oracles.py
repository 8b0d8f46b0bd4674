"""The cascade against solves that share no code with it.

Dense Kronecker solves on small grids, the paper's equations written out, scikit-learn, and sixty
digits where float64 cannot solve densely. The kernels are written out here once more.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level

FORMULAS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gaussian": lambda s: np.exp(-(s**2) / 2),
    "matern52": lambda s: (1 + 5**0.5 * s + 5 * s**2 / 3) * np.exp(-(5**0.5) * s),
    "matern32": lambda s: (1 + 3**0.5 * s) * np.exp(-(3**0.5) * s),
    "matern12": lambda s: np.exp(-s),
}
SHAPES = [(15,), (9, 12), (6, 5, 7), (4, 5, 3, 4), (3, 4, 2, 3, 2), (2, 3, 2, 2, 3, 2)]
PERIOD = 16.0

each_family = pytest.mark.parametrize("family", FORMULAS)
each_period = pytest.mark.parametrize("period", [None, PERIOD])
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{len(shape)}d")
each_kind = pytest.mark.parametrize("joint", [None, 1e-3], ids=["level", "joint"])


class Case:
    """Noise on a small uneven grid with settings that a dense solve can stand."""

    def __init__(
        self, shape: tuple[int, ...], family: str, period: float | None, joint: float | None
    ) -> None:
        rng = np.random.default_rng(len(shape))
        self.joint = joint
        self.axes = [rng.permutation(np.linspace(0, 12, m) + rng.uniform(0, 0.4, m)) for m in shape]
        self.levels = [
            Level(f"d{axis}", Kernel(family, 0.8 + 0.3 * axis, period), 0.0 if joint else 1e-3)
            for axis in range(len(shape))
        ]
        self.values = rng.standard_normal(shape)
        self.new = [rng.uniform(-1, 13, 3) for _ in shape]
        self.points = rng.uniform(-1, 13, (len(shape), 120))

    def fit(self) -> Cascade:
        return fit_cascade(self.values, self.axes, self.levels, joint_ridge=self.joint)

    def crosses(self, queries: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [
            cross(level.kernel, query, axis)
            for level, query, axis in zip(self.levels, queries, self.axes, strict=True)
        ]

    def solved(self) -> np.ndarray:
        """All weights from one dense system over the whole grid."""
        grams = self.crosses(self.axes)
        if self.joint is None:
            system = kron([shifted(k, v.ridge) for k, v in zip(grams, self.levels, strict=True)])
        else:
            system = shifted(kron(grams), self.joint)
        return np.linalg.solve(system, self.values.ravel())

    def on_grid(self, queries: Sequence[np.ndarray]) -> np.ndarray:
        answers = kron(self.crosses(queries)) @ self.solved()
        return answers.reshape([query.size for query in queries])

    def at_points(self, points: np.ndarray) -> np.ndarray:
        rows = [kron([k[n : n + 1] for k in self.crosses(points)]) for n in range(points.shape[1])]
        return np.concatenate(rows) @ self.solved()


def cross(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    distance = np.abs(a[:, None] - b)
    if kernel.period is not None:
        distance = kernel.period / np.pi * np.abs(np.sin(np.pi * distance / kernel.period))
    return FORMULAS[kernel.family](distance / kernel.sigma)


def kron(matrices: Sequence[np.ndarray]) -> np.ndarray:
    return reduce(np.kron, matrices)


def shifted(matrix: np.ndarray, ridge: float) -> np.ndarray:
    return matrix + ridge * np.eye(len(matrix))


def solve_along(tensor: np.ndarray, axis: int, system: np.ndarray) -> np.ndarray:
    fibres = np.moveaxis(tensor, axis, 0)
    solved = np.linalg.solve(system, fibres.reshape(len(system), -1))
    return np.moveaxis(solved.reshape(fibres.shape), 0, axis)


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-10) -> None:
    """Relative to the largest answer."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@each_kind
@each_period
@each_family
@each_shape
class TestDenseSolve:
    def test_on_a_grid_of_new_coordinates(self, shape, family, period, joint) -> None:
        case = Case(shape, family, period, joint)
        assert_close(case.fit().predict(case.new), case.on_grid(case.new))

    @pytest.mark.slow
    def test_at_scattered_points(self, shape, family, period, joint) -> None:
        case = Case(shape, family, period, joint)
        assert_close(case.fit().predict_points(case.points), case.at_points(case.points))

    def test_smoothed_at_the_nodes(self, shape, family, period, joint) -> None:
        case = Case(shape, family, period, joint)
        assert_close(case.fit().predict(smooth=True), case.on_grid(case.axes))


@pytest.mark.slow
@each_kind
@each_period
@each_family
@pytest.mark.parametrize("span", [0.5, 14.0])
def test_many_points_are_answered_like_few(
    span: float, family: str, period: float | None, joint: float | None
) -> None:
    """Close together and all over the grid; many points are worth a shorter way to the rows."""
    case = Case((20, 18), family, period, joint)
    points = np.random.default_rng(0).uniform(-1, span - 1, (2, 200)) + 0.1
    assert_close(case.fit().predict_points(points), case.at_points(points))


@each_family
@each_shape
def test_levels_pass_through_one_by_one(shape: tuple[int, ...], family: str) -> None:
    """Half of each axis' queries are nodes, whose row of the smoother is a unit vector."""
    case = Case(shape, family, None, None)
    operators, queries = [], []
    for level, axis, new in zip(case.levels, case.axes, case.new, strict=True):
        inverse = np.linalg.inv(shifted(cross(level.kernel, axis, axis), level.ridge))
        operators.append(np.vstack([cross(level.kernel, new, axis) @ inverse, np.eye(axis.size)]))
        queries.append(np.concatenate([new, axis]))
    expected = (kron(operators) @ case.values.ravel()).reshape([q.size for q in queries])
    assert_close(case.fit().predict(queries), expected)


@each_family
@each_shape
def test_joint_ridge_passes_through_cell_by_cell(shape: tuple[int, ...], family: str) -> None:
    case = Case(shape, family, None, 1e-3)
    queries = [np.concatenate([new, axis]) for new, axis in zip(case.new, case.axes, strict=True)]
    expected = case.on_grid(queries)
    expected[tuple(slice(3, None) for _ in shape)] = case.values
    assert_close(case.fit().predict(queries), expected)


@pytest.mark.parametrize("ridge", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("trained", [[0], [0, 1], [0, 1, 2], [1], [2, 0]])
def test_weights_of_every_level_are_those_of_algorithm_1(trained: list[int], ridge: float) -> None:
    case = Case((6, 5, 7), "matern32", None, None)
    levels = [Level(level.name, level.kernel, ridge) for level in case.levels]
    expected = case.values
    for axis in trained:
        k = cross(levels[axis].kernel, case.axes[axis], case.axes[axis])
        expected = solve_along(expected, axis, shifted(k, ridge))  # (20), (21)
    assert_close(fit_cascade(case.values, case.axes, levels).weights(trained), expected)


@pytest.mark.parametrize("ridge", [1e-12, 1e-6, 1e-2])
def test_joint_weights_are_those_of_one_dense_system(ridge: float) -> None:
    case = Case((6, 5, 7), "matern32", None, ridge)
    assert_close(case.fit().weights(range(3)).ravel(), case.solved())


@pytest.mark.parametrize("joint", [None, 1e-4], ids=["level", "joint"])
def test_weights_of_a_singular_gram_matrix_are_carried_by_the_ridge(joint: float | None) -> None:
    """Noise on a kernel of rank 8: most of it lies where only the ridge answers."""
    x = np.linspace(0, 1, 30)
    y = np.random.default_rng(0).standard_normal(30)
    model = fit_cascade(
        y, [x], [Level("x", Kernel(sigma=2.0), 0.0 if joint else 1e-4)], joint_ridge=joint
    )
    gram = cross(Kernel(sigma=2.0), x, x)
    expected = np.linalg.solve(shifted(gram, 1e-4), y)
    assert np.linalg.matrix_rank(gram) < 12
    assert_close(model.weights([0]), expected, 1e-9)


def test_walking_back_through_the_weights_as_in_the_paper() -> None:
    """(12) to (19), letter by letter, from the record of Algorithm 1."""
    case = Case((6, 5, 7), "gaussian", None, None)
    model = case.fit()
    (x, d1, d2), (x_val, d1_val, d2_val) = case.axes, case.new
    k_i, k_h1, k_h2 = (level.kernel for level in case.levels)
    m0, m1, m2 = case.values.shape
    gamma = model.weights([0, 1, 2]).reshape(m0 * m1, m2).T
    f = np.empty((x_val.size, d1_val.size, d2_val.size))
    for i in range(d2_val.size):
        eta = cross(k_h2, d2, d2_val[i : i + 1])[:, 0]  # (12)
        beta_tilde = gamma.T @ eta  # (13)
        beta = np.column_stack(np.split(beta_tilde, m0))  # (10), (14): m1 x m0
        for j in range(d1_val.size):
            tau = cross(k_h1, d1, d1_val[j : j + 1])[:, 0]  # (15)
            theta = beta.T @ tau  # (16), (17)
            for s in range(x_val.size):
                iota = cross(k_i, x, x_val[s : s + 1])[:, 0]  # (18)
                f[s, j, i] = theta @ iota  # (19)
    assert_close(model.predict(case.new), f)


def test_joint_ridge_is_kernel_ridge_regression_over_all_cells() -> None:
    """Coordinates in units of their sigma make scikit-learn's RBF the product kernel."""
    case = Case((6, 5, 7), "gaussian", None, 1e-2)
    sigmas = [level.kernel.sigma for level in case.levels]

    def cells(axes: Sequence[np.ndarray]) -> np.ndarray:
        grids = np.meshgrid(*[a / s for a, s in zip(axes, sigmas, strict=True)], indexing="ij")
        return np.stack([grid.ravel() for grid in grids], axis=1)

    rival = KernelRidge(alpha=1e-2, kernel="rbf", gamma=0.5)
    rival.fit(cells(case.axes), case.values.ravel())
    assert_close(case.fit().predict(case.new).ravel(), rival.predict(cells(case.new)))


@pytest.mark.parametrize(
    ("family", "nu"), [("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)]
)
def test_joint_ridge_is_kernel_ridge_regression_with_matern_kernels(family: str, nu: float) -> None:
    case = Case((9, 12), family, None, 1e-2)
    kernels = [Matern(level.kernel.sigma, nu=nu) for level in case.levels]

    def product(queries: Sequence[np.ndarray]) -> np.ndarray:
        pairs = zip(kernels, queries, case.axes, strict=True)
        return kron([k(query[:, None], axis[:, None]) for k, query, axis in pairs])

    rival = KernelRidge(alpha=1e-2, kernel="precomputed")
    rival.fit(product(case.axes), case.values.ravel())
    assert_close(case.fit().predict(case.new).ravel(), rival.predict(product(case.new)))


def exact_cross(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> mpmath.matrix:
    def entry(i: int, j: int) -> mpmath.mpf:
        z, sigma = mpmath.mpf(float(a[i])) - mpmath.mpf(float(b[j])), mpmath.mpf(kernel.sigma)
        if kernel.period is not None:
            turn = mpmath.pi / mpmath.mpf(kernel.period)
            z = mpmath.sin(turn * z) / turn
        return mpmath.exp(-(z**2) / (2 * sigma**2))

    return mpmath.matrix([[entry(i, j) for j in range(b.size)] for i in range(a.size)])


def exact_smoother(level: Level, query: np.ndarray, axis: np.ndarray) -> mpmath.matrix:
    """k(q, c) (K + ridge I)^-1 in as many digits as mpmath works with."""
    system = exact_cross(level.kernel, axis, axis) + mpmath.mpf(level.ridge) * mpmath.eye(axis.size)
    return exact_cross(level.kernel, query, axis) * mpmath.inverse(system)


def exact_kron(a: mpmath.matrix, b: mpmath.matrix) -> mpmath.matrix:
    return mpmath.matrix(
        [
            [a[i, j] * b[k, m] for j in range(a.cols) for m in range(b.cols)]
            for i in range(a.rows)
            for k in range(b.rows)
        ]
    )


def as_doubles(matrix: mpmath.matrix) -> np.ndarray:
    return np.array(matrix.tolist(), dtype=float)


def smooth_case(sizes: tuple[int, int], sigmas: tuple[float, float], ridge: float) -> tuple:
    axes = [np.linspace(0, 3, sizes[0]), np.linspace(-1, 3, sizes[1])]
    levels = [Level(name, Kernel(sigma=s), ridge) for name, s in zip("xy", sigmas, strict=True)]
    values = np.sin(axes[0])[:, None] * np.cos(axes[1]) + np.exp(-np.add.outer(axes[0], axes[1]))
    new = [np.linspace(0.1, 2.9, 6), np.linspace(-0.9, 2.9, 7)]
    return axes, levels, values, new


@pytest.mark.parametrize("ridge", [1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("sigmas", [(1.5, 2.0), (2.5, 3.0)])
def test_answers_hold_where_the_condition_is_beyond_float64(
    sigmas: tuple[float, float], ridge: float
) -> None:
    """Not for any sigma: far too long ones let the last digit of K itself into the answer."""
    axes, levels, values, new = smooth_case((14, 16), sigmas, ridge)
    model = fit_cascade(values, axes, levels)
    with mpmath.workdps(80):
        left, right = map(exact_smoother, levels, new, axes)
        expected = as_doubles(left * mpmath.matrix(values.tolist()) * right.T)
        gram = exact_cross(levels[0].kernel, axes[0], axes[0])
        condition = mpmath.mnorm(gram) * mpmath.mnorm(mpmath.inverse(gram))
    assert condition > 1e16
    assert_close(model.predict(new), expected, 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [1e-8, 1e-12])
def test_many_points_hold_where_the_condition_is_beyond_float64(ridge: float) -> None:
    axes, levels, values, _ = smooth_case((20, 24), (1.5, 2.0), ridge)
    points = np.random.default_rng(0).uniform([[0], [-1]], [[3], [3]], (2, 100))
    with mpmath.workdps(80):
        left, right = map(exact_smoother, levels, points, axes)
        through = left * mpmath.matrix(values.tolist())
        pairs = [through[n, :] * right[n, :].T for n in range(points.shape[1])]
        expected = np.array([float(pair[0]) for pair in pairs])
    assert_close(fit_cascade(values, axes, levels).predict_points(points), expected, 1e-7)


@pytest.mark.parametrize(
    ("family", "sigma"),
    [("gaussian", 2.0), ("gaussian", 4.0), ("matern52", 30.0), ("matern32", 300.0)],
)
def test_directions_of_tiny_eigenvalues_are_not_missed(family: str, sigma: float) -> None:
    """Noise at uneven coordinates, some nearly the same.

    The dense solve keeps every direction, and a ridge of 1e-6 makes its condition 5e7: both sides
    of the comparison are good to 1e-8.
    """
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.uniform(0, 10, 54)), rng.standard_normal(54)
    query, kernel = rng.uniform(0.3, 9.7, 60), Kernel(family, sigma)
    weights = np.linalg.solve(shifted(cross(kernel, x, x), 1e-6), y)
    model = fit_cascade(y, [x], [Level("x", kernel, 1e-6)])
    np.testing.assert_allclose(model.predict([query]), cross(kernel, query, x) @ weights, atol=3e-8)


@pytest.mark.parametrize("joint", [None, 1e-2], ids=["level", "joint"])
@pytest.mark.parametrize(("count", "step"), [(18, 0.25), (40, 0.15), (60, 0.1)])
def test_noise_is_carried_beyond_the_edges(count: int, step: float, joint: float | None) -> None:
    """There k(q, c) v is up to the root of v's eigenvalue, not the eigenvalue; condition 2e3."""
    x, y = step * np.arange(count), np.random.default_rng(0).standard_normal(count)
    outside, kernel = np.linspace(0.1, 4, 30), Kernel("gaussian", 1.0)
    query = np.concatenate([-outside, x[-1] + outside])
    weights = np.linalg.solve(shifted(cross(kernel, x, x), 1e-2), y)
    model = fit_cascade(y, [x], [Level("x", kernel, 0.0 if joint else 1e-2)], joint_ridge=joint)
    assert_close(model.predict([query]), cross(kernel, query, x) @ weights)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [1e-8, 1e-12])
def test_joint_answers_hold_where_the_condition_is_beyond_float64(ridge: float) -> None:
    axes, levels, values, new = smooth_case((9, 8), (4.0, 5.0), 0.0)
    new = [query[:3] for query in new]
    model = fit_cascade(values, axes, levels, joint_ridge=ridge)
    with mpmath.workdps(60):
        grams = [exact_cross(lv.kernel, a, a) for lv, a in zip(levels, axes, strict=True)]
        crosses = [exact_cross(lv.kernel, q, a) for lv, q, a in zip(levels, new, axes, strict=True)]
        system = exact_kron(*grams) + mpmath.mpf(ridge) * mpmath.eye(values.size)
        weights = mpmath.lu_solve(system, mpmath.matrix(values.ravel().tolist()))
        expected = as_doubles(exact_kron(*crosses) * weights).reshape(3, 3)
    assert_close(model.predict(new), expected, 1e-7)


def test_periodic_answers_hold_where_the_condition_is_beyond_float64() -> None:
    x, query = np.arange(16) / 16, np.linspace(0.02, 0.99, 9)
    level = Level("x", Kernel(sigma=0.6, period=1.0), 1e-12)
    y = np.exp(np.cos(2 * np.pi * x))
    with mpmath.workdps(60):
        expected = as_doubles(exact_smoother(level, query, x) * mpmath.matrix(y.tolist()))[:, 0]
    assert np.linalg.matrix_rank(cross(level.kernel, x, x)) < 16
    assert_close(fit_cascade(y, [x], [level]).predict([query]), expected, 1e-7)


@pytest.mark.parametrize("joint", [None, 0.0], ids=["level", "joint"])
@pytest.mark.parametrize("sigma", [1.5, 2.0, 4.0])
def test_no_ridge_at_all_gives_the_smooth_field_back(sigma: float, joint: float | None) -> None:
    x, d = np.linspace(0, 6, 40), np.linspace(0, 5, 30)
    query = [np.linspace(0.05, 5.95, 33), np.linspace(0.05, 4.95, 28)]
    levels = [Level("x", Kernel(sigma=sigma)), Level("d", Kernel(sigma=sigma))]
    model = fit_cascade(np.sin(x)[:, None] * np.cos(d), [x, d], levels, joint_ridge=joint)
    expected = np.sin(query[0])[:, None] * np.cos(query[1])
    np.testing.assert_allclose(model.predict(query), expected, atol=1e-6)
