"""What holds for every grid: symmetries, limits, and finite answers at any finite setting."""

from functools import reduce
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.cascade.level import Level

SEEDS = st.integers(0, 2**32 - 1)
FAMILY = st.sampled_from(sorted(FAMILIES))


class Grid(NamedTuple):
    values: np.ndarray
    axes: list[np.ndarray]
    levels: list[Level]
    joint: float | None
    new: list[np.ndarray]

    def fit(self, values: np.ndarray | None = None) -> Cascade:
        chosen = self.values if values is None else values
        return fit_cascade(chosen, self.axes, self.levels, joint_ridge=self.joint)

    def mixed(self) -> list[np.ndarray]:
        """New coordinates and nodes in one query."""
        return [
            np.concatenate([q, axis[::2], q]) for q, axis in zip(self.new, self.axes, strict=True)
        ]


def quarters(size: int) -> st.SearchStrategy[np.ndarray]:
    """Distinct coordinates in any order, multiples of 1/4 so that shifts are exact."""
    numbers = st.lists(st.integers(-60, 60), min_size=size, max_size=size, unique=True)
    return numbers.map(lambda chosen: np.array(chosen) / 4)


@st.composite
def grids(draw: st.DrawFn, kinds: tuple[str, ...] = ("level", "joint")) -> Grid:
    """One to three levels, short and long; noise, one direction, or nearly empty values."""
    sizes = st.integers(1, 5) | st.integers(12, 28)
    shape = draw(st.lists(sizes, min_size=1, max_size=3))
    joint = {"level": None, "joint": 0.02}[draw(st.sampled_from(kinds))]
    rng = np.random.default_rng(draw(SEEDS))
    values = rng.standard_normal(shape)
    texture = draw(st.sampled_from(["noise", "rank one", "sparse"]))
    if texture == "rank one":
        values = reduce(np.multiply.outer, [rng.standard_normal(size) for size in shape])
    elif texture == "sparse":
        values[rng.uniform(size=shape) < 0.9] = 0
    levels = [
        Level(
            f"d{axis}",
            Kernel(draw(FAMILY), draw(st.floats(0.1, 4.0)), draw(st.sampled_from([None, 32.0]))),
            draw(st.floats(0.01, 1.0)) if joint is None else 0.0,
        )
        for axis in range(len(shape))
    ]
    axes = [draw(quarters(size)) for size in shape]
    return Grid(values, axes, levels, joint, [rng.uniform(-16, 16, 3) for _ in shape])


def assert_same(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * (1 + abs(expected).max()))


@given(grids(), st.floats(-5, 5), SEEDS)
def test_answers_are_linear_in_the_values(grid: Grid, factor: float, seed: int) -> None:
    other = np.random.default_rng(seed).standard_normal(grid.values.shape)
    first, second, both = (
        grid.fit(values).predict(grid.mixed())
        for values in (grid.values, other, grid.values + factor * other)
    )
    assert_same(both, first + factor * second)


@given(grids(), st.randoms(use_true_random=False))
def test_order_of_the_levels_does_not_matter(grid: Grid, random) -> None:
    order = random.sample(range(grid.values.ndim), grid.values.ndim)
    turned = Grid(
        grid.values.transpose(order),
        [grid.axes[axis] for axis in order],
        [grid.levels[axis] for axis in order],
        grid.joint,
        [grid.new[axis] for axis in order],
    )
    expected = grid.fit().predict(grid.mixed()).transpose(order)
    assert_same(turned.fit().predict(turned.mixed()), expected)


@given(grids(), st.randoms(use_true_random=False))
def test_order_of_the_samples_does_not_matter(grid: Grid, random) -> None:
    orders = [random.sample(range(axis.size), axis.size) for axis in grid.axes]
    axes = [axis[order] for axis, order in zip(grid.axes, orders, strict=True)]
    shuffled = grid._replace(values=grid.values[np.ix_(*orders)], axes=axes)
    for smooth in (False, True):
        expected = grid.fit().predict(grid.mixed(), smooth=smooth)
        assert_same(shuffled.fit().predict(grid.mixed(), smooth=smooth), expected)


@given(grids(), st.floats(-100, 100), st.floats(0.01, 100))
def test_units_of_a_coordinate_do_not_matter(grid: Grid, shift: float, scale: float) -> None:
    def rescaled(level: Level) -> Level:
        kernel = level.kernel
        period = None if kernel.period is None else kernel.period * scale
        return Level(level.name, Kernel(kernel.family, kernel.sigma * scale, period), level.ridge)

    first, *others = grid.levels
    elsewhere = grid._replace(
        axes=[grid.axes[0] * scale + shift, *grid.axes[1:]], levels=[rescaled(first), *others]
    )
    query = [grid.new[0] * scale + shift, *grid.mixed()[1:]]
    expected = grid.fit().predict([grid.new[0], *grid.mixed()[1:]])
    assert_same(elsewhere.fit().predict(query), expected, 1e-8)


@given(grids())
def test_points_of_a_grid_are_answered_like_the_grid(grid: Grid) -> None:
    queries = grid.mixed()
    points = [axis.ravel() for axis in np.meshgrid(*queries, indexing="ij")]
    model = grid.fit()
    for smooth in (False, True):
        on_grid = model.predict(queries, smooth=smooth)
        assert_same(model.predict_points(points, smooth=smooth), on_grid.ravel(), 1e-11)


@given(grids())
def test_training_coordinates_pass_through(grid: Grid) -> None:
    model = grid.fit()
    if all(frame is None for frame in model.frames):
        np.testing.assert_array_equal(model.predict(), grid.values)
    assert_same(model.predict(), grid.values, 1e-12)


@pytest.mark.slow
@given(grids(("level",)))
def test_a_level_passes_through_on_its_own(grid: Grid) -> None:
    """A slice of the grid is a grid: with level 0 at its nodes, only the other levels count."""
    assume(grid.values.ndim > 1)
    together = grid.fit().predict([None, *grid.new[1:]])
    for index, values in enumerate(grid.values):
        alone = fit_cascade(values, grid.axes[1:], grid.levels[1:]).predict(grid.new[1:])
        assert_same(together[index], alone)


@given(grids())
def test_answers_do_not_depend_on_what_else_is_asked(grid: Grid) -> None:
    model, queries = grid.fit(), grid.mixed()
    together = model.predict(queries)
    for place in (0, -1, 3):
        alone = model.predict([query[[place]] for query in queries])
        assert_same(alone.ravel(), together[(place,) * together.ndim], 1e-11)


@given(grids(), st.sampled_from([1e-6, 1e-9, 1e-12]))
def test_a_vanishing_ridge_interpolates(grid: Grid, ridge: float) -> None:
    """Samples at least ten sigmas apart, so K is the unit matrix: the data shrinks by the ridge."""
    levels = [
        Level(level.name, Kernel(level.kernel.family, 0.005), ridge if grid.joint is None else 0.0)
        for level in grid.levels
    ]
    joint = None if grid.joint is None else ridge
    model = fit_cascade(grid.values, grid.axes, levels, joint_ridge=joint)
    assert_same(model.predict(smooth=True), grid.values, 4 * ridge + 1e-12)


@given(grids(), st.integers(-3, 3), st.booleans())
def test_answers_meet_where_the_circle_closes(grid: Grid, turns: int, smooth: bool) -> None:
    first, *others = grid.levels
    kernel = Kernel(first.kernel.family, first.kernel.sigma, 32.0)
    model = grid._replace(levels=[Level(first.name, kernel, first.ridge), *others]).fit()
    query = grid.mixed()
    turned = [query[0] + 32.0 * turns, *query[1:]]
    assert_same(model.predict(turned, smooth=smooth), model.predict(query, smooth=smooth))


NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6)
POSITIVE = st.floats(1e-300, 1e300)
SETTINGS = st.tuples(FAMILY, POSITIVE)
RIDGES = st.just(0.0) | POSITIVE


def assert_finite(x: list[float], query: list[float], kernel: Kernel, ridge: float) -> None:
    values = np.cos(np.arange(len(x)))
    for model in (
        fit_cascade(values, [x], [Level("x", kernel, ridge)]),
        fit_cascade(values, [x], [Level("x", kernel)], joint_ridge=ridge),
    ):
        for smooth in (False, True):
            assert np.isfinite(model.predict([query], smooth=smooth)).all()
            assert np.isfinite(model.predict_points([query], smooth=smooth)).all()


@given(NUMBERS, NUMBERS, SETTINGS, RIDGES)
@example([-1e308, 1e308], [0.0], ("gaussian", 1.0), 0.0)
@example([0.0, 1e300], [1.0], ("gaussian", 1e-300), 0.0)
@example([0.0, 5e-324, 1.0], [0.5], ("matern52", 1e300), 0.0)
def test_answers_on_a_line_are_finite(
    x: list[float], query: list[float], settings: tuple[str, float], ridge: float
) -> None:
    assert_finite(list(set(x)), query, Kernel(*settings), ridge)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reach", [1e-300, 1e300, 1.7e308])
def test_many_points_far_and_near_are_finite(reach: float, family: str) -> None:
    x, points = np.arange(20.0), reach * np.linspace(-1, 1, 101)
    model = fit_cascade(np.sin(x), [x], [Level("x", Kernel(family), 0.1)])
    assert np.isfinite(model.predict_points([points])).all()


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    NUMBERS,
    st.tuples(FAMILY, POSITIVE, st.just(360.0) | POSITIVE),
    RIDGES,
)
@example([0.0, 0.5], [1e308], ("gaussian", 1.0, 1e-3), 0.0)
@example([0.0, 0.5], [-1.7e308, 1.7e308], ("gaussian", 1.0, 360.0), 0.0)
@example([0.0, 0.5], [0.5], ("matern12", 1e-300, 1e300), 0.0)
def test_answers_on_a_circle_are_finite(
    turns: list[float], query: list[float], settings: tuple[str, float, float], ridge: float
) -> None:
    """With samples that are apart on the circle as well."""
    kernel = Kernel(*settings)
    _, first = np.unique(np.round(np.mod(turns, 1.0), 9) % 1.0, return_index=True)
    assert_finite(np.array(turns)[first] * kernel.period, query, kernel, ridge)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
@given(sigma=st.floats(0.1, 10), ridge=st.floats(1e-3, 10), q=st.floats(-5, 5))
def test_one_sample_answers_by_hand(
    family: str, joint: bool, sigma: float, ridge: float, q: float
) -> None:
    """y k(q, c) / (1 + ridge)."""
    assume(q != 2.0)
    level = Level("x", Kernel(family, sigma), 0.0 if joint else ridge)
    model = fit_cascade([3.0], [[2.0]], [level], joint_ridge=ridge if joint else None)
    k = scalar_kernel(family, abs(q - 2.0) / sigma)
    assert model.predict([[q]])[0] == pytest.approx(3 * k / (1 + ridge), rel=1e-12)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
@given(sigma=st.floats(0.1, 10), ridge=st.floats(1e-3, 10), q=st.floats(-5, 5))
def test_two_samples_answer_by_hand(
    family: str, joint: bool, sigma: float, ridge: float, q: float
) -> None:
    """The inverse of [[1 + ridge, k], [k, 1 + ridge]] by Cramer's rule."""
    assume(min(abs(q), abs(q - 1.0)) > 1e-12)
    level = Level("x", Kernel(family, sigma), 0.0 if joint else ridge)
    model = fit_cascade([3.0, -1.0], [[0.0, 1.0]], [level], joint_ridge=ridge if joint else None)
    k, diagonal = scalar_kernel(family, 1.0 / sigma), 1 + ridge
    determinant = diagonal**2 - k**2
    weights = [(3 * diagonal + k) / determinant, (-diagonal - 3 * k) / determinant]
    expected = sum(
        weight * scalar_kernel(family, abs(q - c) / sigma)
        for weight, c in zip(weights, (0.0, 1.0), strict=True)
    )
    assert model.predict([[q]])[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def scalar_kernel(family: str, s: float) -> float:
    root3, root5 = 3**0.5 * s, 5**0.5 * s
    return {
        "gaussian": np.exp(-(s**2) / 2),
        "matern52": (1 + root5 + root5**2 / 3) * np.exp(-root5),
        "matern32": (1 + root3) * np.exp(-root3),
        "matern12": np.exp(-s),
    }[family]
