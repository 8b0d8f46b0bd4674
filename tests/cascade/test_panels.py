"""Panels against exact rows: pieces, the choice of panels, and answers at many points."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.cascade import panels as module
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.panels import (
    Curve,
    Panels,
    Piece,
    choose_panels,
    contract_points,
    cut,
    make_piece,
    sum_squares,
)
from dkrls_cli.cascade.tensors import contract

NODES = np.array([3.1, 0.0, 0.7, 1.2, 2.0, 4.4, 5.0])
EPS = np.finfo(float).eps


def kernel_rows(kernel: Kernel, nodes: np.ndarray = NODES) -> Callable[[np.ndarray], np.ndarray]:
    return lambda z: gram(kernel, z, nodes)


def curve_of(kernel: Kernel, points: np.ndarray, nodes: np.ndarray = NODES, **other) -> Curve:
    function, kinks = kernel_rows(kernel, nodes), kernel.family != "gaussian"
    return Curve(function, other.pop("matrices", ()), nodes, kinks, kernel.period, points, **other)


# ---- pieces


@pytest.mark.parametrize(
    ("kernel", "low", "high", "most"),
    [
        (Kernel("gaussian", 1.0), 1.0, 3.0, 7),
        (Kernel("matern12", 1.0), 1.2, 2.0, 2),
        (Kernel("matern32", 1.0), 1.2, 2.0, 4),
        (Kernel("matern52", 1.0), 1.2, 2.0, 6),
        (Kernel("matern32", 1.0, constant=2.0), 1.2, 2.0, 5),
        (Kernel("matern12", 2.0, period=7.0), 5.0, 7.0, 7),
        (Kernel("matern52", 1.0), -1.0, 0.0, 3),
    ],
)
def test_a_piece_has_the_rows_of_its_panel_in_few_directions(
    kernel: Kernel, low: float, high: float, most: int
) -> None:
    """Seven nodes span seven at most; between two nodes a Matern kernel spans 2, 4 or 6."""
    rows = kernel_rows(kernel)
    piece = make_piece(rows, low, high, NODES)
    assert piece is not None
    z = np.linspace(low, high, 301)
    np.testing.assert_allclose(piece(z), rows(z), rtol=0, atol=2e-14)
    np.testing.assert_allclose(piece.basis(z) @ piece.matrix, rows(z), rtol=0, atol=2e-14)
    assert np.linalg.matrix_rank(piece.matrix, tol=1e-13) <= most
    assert len(piece.matrix) <= most + 1


def test_a_piece_is_exact_at_its_own_points() -> None:
    rows = kernel_rows(Kernel("gaussian", 1.0))
    piece = make_piece(rows, -1.0, 1.0, NODES)
    assert piece is not None
    count = len(piece.mixture)
    z = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    np.testing.assert_allclose(piece.basis(z), piece.mixture, rtol=0, atol=2e-15)
    whole = Piece(0.0, 1.0, np.eye(3), np.eye(3))  # the middle point of three is 1
    np.testing.assert_array_equal(
        whole.basis(np.array([1.0 + np.cos(np.pi / 2)]))[0].round(12), [0, 1, 0]
    )
    np.testing.assert_allclose(piece(z), rows(z), rtol=0, atol=5e-15)


def test_a_piece_spends_two_terms_more_than_its_series() -> None:
    """1, z and z^2 would do; two more make sure of functions that decay slowly."""
    piece = make_piece(lambda z: np.stack([z**0, z, z**2], axis=1), 1.0, 3.0, NODES)
    assert piece is not None
    assert piece.mixture.shape == (5, 3)
    assert piece.matrix.shape == (3, 3)


@pytest.mark.parametrize(
    ("kernel", "low", "high"),
    [
        (Kernel("matern32", 1.0), 0.1, 1.0),
        (Kernel("gaussian", 0.01), 0.0, 1.0),
        (Kernel("gaussian", 1.0), 1e3, 2e3),
        (Kernel("gaussian", 1e-4, constant=1.0), 0.1, 4.9),
        (Kernel("matern32", 1e-4, constant=1.0), 1.2, 2.0),
        (Kernel("matern32", 1e-3, constant=1.0), 5.0, 6.0),
    ],
)
def test_rows_with_kinks_or_detail_or_nothing_have_no_piece(
    kernel: Kernel, low: float, high: float
) -> None:
    assert make_piece(kernel_rows(kernel), low, high, NODES) is None


def test_a_panel_without_length_has_one_row() -> None:
    rows = kernel_rows(Kernel("matern12", 1.0))
    piece = make_piece(rows, 1.3, 1.3, NODES)
    assert piece is not None
    np.testing.assert_array_equal(piece.matrix, rows(np.array([1.3])))
    np.testing.assert_array_equal(piece.basis(np.full(4, 1.3)), np.ones((4, 1)))


def test_pieces_are_multiplied_squared_and_rotated() -> None:
    rows, z = kernel_rows(Kernel("gaussian", 0.8)), np.linspace(0.4, 2.1, 99)
    piece = make_piece(rows, 0.4, 2.1, NODES)
    assert piece is not None
    matrix = np.random.default_rng(0).standard_normal((7, 30))
    np.testing.assert_allclose((piece @ matrix)(z), rows(z) @ matrix, atol=1e-13)
    np.testing.assert_allclose(piece.squared()(z), rows(z) ** 2, atol=1e-14)
    rotated = (piece @ matrix).rotated()
    assert rotated.matrix.shape == (len(piece.matrix),) * 2
    lengths = np.linalg.norm(rows(z) @ matrix, axis=1)
    np.testing.assert_allclose(np.linalg.norm(rotated(z), axis=1), lengths, rtol=1e-13)


def test_directions_below_the_noise_are_left_out() -> None:
    def rows(z: np.ndarray) -> np.ndarray:
        return np.stack([z**0, 1e-14 * z], axis=1)

    found = [make_piece(rows, -1.0, 1.0, np.array([]), noise) for noise in (1.0, 1e3)]
    assert [len(piece.matrix) for piece in found if piece is not None] == [2, 1]


def test_matrices_are_applied_to_the_pieces_of_all_panels() -> None:
    """One of the three panels has a kink inside, and no piece."""
    first, second = (np.random.default_rng(i).standard_normal((7, 7 - 2 * i)) for i in (0, 1))
    curve = curve_of(Kernel("matern32", 1.0), uniform(9), matrices=(first, second))
    panels = [(0.7, 1.2), (1.0, 1.4), (2.0, 3.1)]
    pieces = curve.pieces(panels)
    squares = replace(curve, squared=True).pieces(panels)
    assert [piece is None for piece in pieces] == [False, True, False]
    for (low, high), piece, square in zip(panels, pieces, squares, strict=True):
        z = np.linspace(low, high, 50)
        expected = curve.function(z) @ first @ second
        np.testing.assert_allclose(curve.rows(z), expected, atol=1e-14)
        if piece is not None and square is not None:
            np.testing.assert_allclose(piece(z), expected, atol=1e-13)
            np.testing.assert_allclose(square(z), expected**2, atol=1e-12)
    assert curve_of(Kernel("matern32", 1.0), uniform(9)).pieces([(1.0, 1.4)]) == [None]


# ---- panels of an axis


def test_a_smooth_axis_is_cut_evenly_between_its_points() -> None:
    curve = curve_of(Kernel("gaussian", 1.0), np.array([4.0, 0.5, 2.0]))
    np.testing.assert_allclose(curve.edges(2), [0.5, 2.25, 4.0])


def test_an_axis_with_kinks_is_cut_at_its_nodes() -> None:
    curve = curve_of(Kernel("matern32", 1.0), np.array([4.0, 0.5, 2.0]))
    np.testing.assert_array_equal(curve.edges(1), [0.5, 0.7, 1.2, 2.0, 3.1, 4.0])


def test_panels_reach_beyond_the_nodes_by_a_quarter_at_most() -> None:
    curve = curve_of(Kernel("gaussian", 1.0), np.array([-1e9, 1.0, 2.0, 6.0]))
    np.testing.assert_allclose(curve.edges(1), [-1.25, 6.0])
    panels = cut(curve, 1)
    assert panels.which.tolist() == [1, 0, 0, 0]
    assert panels.pieces[1] is None
    high = curve_of(Kernel("gaussian", 1.0), np.array([2.0, 1e9]))
    np.testing.assert_allclose(high.edges(1), [2.0, 6.25])
    assert cut(high, 1).which.tolist() == [0, 1]


def test_a_circle_is_unrolled_from_its_first_node() -> None:
    """Nodes 2, 5 and 1 on a circle of 6: between 5 and 7 there is no kink at 6."""
    nodes = np.array([8.0, -1.0, 1.0])
    curve = curve_of(Kernel("matern12", 1.0, period=6.0), np.array([0.5, 6.5, 1.5, 13.9]), nodes)
    np.testing.assert_array_equal(curve.breaks, [1.0, 2.0, 5.0, 7.0])
    np.testing.assert_allclose(curve.unrolled, [6.5, 6.5, 1.5, 1.9])
    np.testing.assert_allclose(curve.edges(1), [1.5, 2.0, 5.0, 6.5])


def test_points_are_in_the_panel_that_holds_them() -> None:
    points = np.array([0.0, 1.0, 0.99, 4.0, 3.0, 0.5])
    panels = cut(curve_of(Kernel("gaussian", 1.0), points), 4)
    assert panels.which.tolist() == [0, 1, 0, 3, 3, 0]
    assert [piece is None for piece in panels.pieces] == [False, True, True, False, True]


def test_groups_are_the_points_of_one_panel_if_they_outnumber_its_rows() -> None:
    one = Piece(0.0, 1.0, np.eye(2), np.ones((2, 5)))
    which = np.array([1, 0, 0, 1, 1, 2])
    panels = Panels(np.arange(6.0), which, (one, one, None))
    found = list(panels.groups(np.array([1, 2, 0, 3, 4, 5])))
    assert [(some.tolist(), piece) for some, piece in found] == [
        ([1, 2], None),
        ([0, 3, 4], one),
        ([5], None),
    ]
    assert list(panels.groups(np.array([], int))) == []


@pytest.mark.parametrize("cells", [3, 300])
def test_points_are_sorted_by_the_panels_of_all_axes(cells: int) -> None:
    """With more cells than 2^16 as well."""
    rng = np.random.default_rng(0)
    both = [Panels(np.zeros(999), rng.integers(0, cells, 999), (None,) * cells) for _ in range(2)]
    order = module._sorted_points(both)
    np.testing.assert_array_equal(order, np.lexsort([both[1].which, both[0].which]))


# ---- the choice


def uniform(count: int, low: float = 0.0, high: float = 5.0) -> np.ndarray:
    return np.random.default_rng(7).uniform(low, high, count)


def test_few_points_have_no_panels() -> None:
    """300 points in a tensor of 100 x 100 x 100 are 3e8 multiplications, 500 are more than 4e8."""
    nodes = np.linspace(0, 5, 100)
    for count, chosen in ((300, False), (500, True)):
        curve = curve_of(Kernel("gaussian", 2.0), uniform(count), nodes)
        assert bool(choose_panels([100, 100, 100], {0: curve}, count)) == chosen


def test_more_points_are_worth_more_panels() -> None:
    nodes, kernel = np.linspace(0, 5, 100), Kernel("gaussian", 0.5)

    def panels(count: int) -> int:
        chosen = choose_panels([100] * 3, {0: curve_of(kernel, uniform(count), nodes)}, count)
        return len(chosen[0].pieces) - 1

    assert 1 <= panels(1000) < panels(1_000_000)


def test_tensors_on_the_way_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, points = np.linspace(0, 5, 100), uniform(10_000)
    curves = {0: curve_of(Kernel("gaussian", 1.0), points, nodes)}
    assert choose_panels([100] * 3, curves, points.size)
    monkeypatch.setattr(module, "_MOST_NUMBERS", 10_000)
    assert not choose_panels([100] * 3, curves, points.size)
    assert 2**23 * 8 == 64 * 2**20


def test_rows_of_a_small_tensor_are_not_made_longer() -> None:
    """Two numbers per point need no panels but for the rows, which have a hundred."""
    nodes, points = np.linspace(0, 5, 100), uniform(100_000)
    curves = {0: curve_of(Kernel("gaussian", 1.0), points, nodes)}
    assert choose_panels([2], curves, points.size)
    assert not choose_panels([2], {}, points.size)


def test_huge_coordinates_have_no_panels() -> None:
    nodes = np.array([-1.5e308, 0.0, 1.5e308])
    curve = curve_of(Kernel("gaussian", 1.0), np.array([-1.6e308, 1.6e308] * 10), nodes)
    assert not choose_panels([10**9], {0: curve}, 20)


# ---- answers, against the way without panels

RNG = np.random.default_rng(3)
AXES = [RNG.permutation(np.sort(RNG.uniform(0, 10, 17))), np.linspace(-3, 3, 12), np.arange(9.0)]
NOISE = 4.0 + RNG.standard_normal((17, 12, 9))
KERNELS = {
    **{family: [Kernel(family, 2.5)] * 3 for family in FAMILIES},
    "circle": [Kernel("gaussian", 2.0, period=12.0), *[Kernel("matern32", 2.0, period=10.0)] * 2],
    "constant": [Kernel("matern52", 3.0, constant=4.0)] * 3,
    "cycle": [Kernel("matern12", 3.0, cycle=8.0, swing=2.0)] * 3,
}
each_kernel = pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
each_kind = pytest.mark.parametrize("joint", [None, 1e-2], ids=["level", "joint"])
each_rule = pytest.mark.parametrize("smooth", [False, True], ids=["through", "smooth"])


def fitted(kernels: list[Kernel], joint: float | None = None, values=NOISE, **options) -> Cascade:
    ridge = 1e-2 if joint is None else 0.0
    levels = [Level(name, kernel, ridge) for name, kernel in zip("xyt", kernels, strict=True)]
    return fit_cascade(values, AXES, levels, joint_ridge=joint, mean=4.0, **options)


def scattered(count: int) -> list[np.ndarray]:
    """Points in any order, some twice, some at nodes, a few far outside."""
    rng = np.random.default_rng(5)
    points = [rng.uniform(a.min() - 1, a.max() + 1, count) for a in AXES]
    for axis, (nodes, every) in enumerate(zip(AXES, (4, 5, 6), strict=True)):
        points[axis][::every] = rng.choice(nodes, points[axis][::every].size)
        points[axis][:3] = [-300.0, 1e12, nodes[2]]
        points[axis][3::10] = points[axis][2::10][: points[axis][3::10].size]
    return points


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[int, Panels]]]:
    """Panels cost nothing, and what was chosen is noted."""
    chosen: list[dict[int, Panels]] = []

    def choose(*given, **named) -> dict[int, Panels]:
        chosen.append(choose_panels(*given, **named))
        return chosen[-1]

    monkeypatch.setattr(module, "_WORTH_PANELS", 0.0)
    monkeypatch.setattr(module, "_VISIT", 0.0)
    monkeypatch.setattr(module, "_PIECE", 0.0)
    monkeypatch.setattr(module, "choose_panels", choose)
    return chosen


def without_panels(ask: Callable[[], np.ndarray]) -> np.ndarray:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "choose_panels", lambda *_, **__: {})
        return ask()


@pytest.mark.slow
@each_rule
@each_kind
@each_kernel
def test_panels_give_the_same_answers(
    kernels: list[Kernel], joint: float | None, smooth: bool, used: list[dict[int, Panels]]
) -> None:
    model, points = fitted(kernels, joint), scattered(3000)
    ask = partial(model.predict_points, points, smooth=smooth)
    tolerance = 1e-11 if joint is None else 1e-10  # the joint system of the constants is worse
    np.testing.assert_allclose(ask(), without_panels(ask), rtol=0, atol=tolerance)
    pieces = [piece for chosen in used for panels in chosen.values() for piece in panels.pieces]
    assert any(piece is not None for piece in pieces)


@each_rule
@each_kind
@pytest.mark.parametrize("spread", [[0], [2], [0, 1]])
def test_panels_give_the_same_answers_beside_spread_axes(
    spread: list[int], smooth: bool, joint: float | None, used: list[dict[int, Panels]]
) -> None:
    """Spread axes with more numbers than coordinates, and with fewer."""
    model, points = fitted(KERNELS["matern32"], joint), scattered(500)
    for axis, size in zip(spread, (3, 40), strict=False):
        points[axis] = points[axis][:size]
    ask = partial(model.predict_points, points, spread=spread, smooth=smooth)
    assert ask().shape == (500, 3, 40)[: 1 + len(spread)]
    np.testing.assert_allclose(ask(), without_panels(ask), rtol=0, atol=1e-11)
    assert any(used)


@each_kind
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_panels_give_the_same_answers_from_frames(
    dtype: type, joint: float | None, used: list[dict[int, Panels]]
) -> None:
    x, y, t = AXES
    values = 4.0 + np.sin(x)[:, None, None] * np.cos(y)[:, None] * np.ones(t.size)
    model = fitted(KERNELS["gaussian"], joint, values, dtype=dtype)
    assert model.frames[0] is not None
    ask = partial(model.predict_points, scattered(3000))
    np.testing.assert_allclose(ask(), without_panels(ask), rtol=0, atol=1e-11)
    assert any(used)


def test_panels_give_the_answers_of_a_dense_solve(used: list[dict[int, Panels]]) -> None:
    """Kernel ridge regression over the Kronecker product of the levels, at each point."""
    model, points = fitted(KERNELS["matern32"]), scattered(800)
    system, across = np.ones((1, 1)), np.ones((800, 1))
    for nodes, level, query in zip(AXES, model.levels, points, strict=True):
        own = gram(level.kernel, nodes, nodes) + level.ridge * np.eye(nodes.size)
        system = np.kron(system, own)
        row = gram(level.kernel, query, nodes)
        across = (across[:, :, None] * row[:, None, :]).reshape(800, -1)
    expected = 4.0 + across @ np.linalg.solve(system, (NOISE - 4.0).ravel())
    found = model.predict_points(points, smooth=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-8)
    assert len(used[0]) == 3


@pytest.mark.slow
def test_an_axis_of_many_length_scales_is_resolved_in_all_its_panels() -> None:
    """Its coordinates are rounded by more than the kernel is, which no series would get below."""
    axis = np.arange(900.0)
    model = fit_cascade(np.sin(axis), [axis], [Level("x", Kernel("gaussian", 3.0), 1e-3)])
    points = uniform(5000, 0, 899)
    panels = cut(model.curve(0, points, solved=False), 128)
    assert all(piece is not None for piece in panels.pieces[:-1])
    assert model.curve(0, points, solved=False).noise == pytest.approx(899 / 3 / 32)
    found = contract_points(
        model.core,
        5000,
        lambda *_: pytest.fail("no exact rows"),
        {},
        900,
        {},
        {0: model.curve(0, points, solved=False)},
    )
    np.testing.assert_allclose(found, model.predict([points]), rtol=0, atol=1e-11)


def test_the_same_coordinate_at_all_points_is_one_row(used: list[dict[int, Panels]]) -> None:
    model, points = fitted(KERNELS["gaussian"]), scattered(1000)
    points[1] = np.full(1000, 0.1)
    ask = partial(model.predict_points, points, smooth=True)
    np.testing.assert_allclose(ask(), without_panels(ask), rtol=0, atol=1e-11)
    assert {len(p.matrix) for p in used[0][1].pieces if p is not None} == {1}


@settings(max_examples=30, deadline=None)
@given(
    family=st.sampled_from(list(FAMILIES)),
    sigma=st.floats(0.3, 30),
    period=st.sampled_from([None, 11.0]),
    count=st.integers(1, 400),
    seed=st.integers(0, 99),
)
def test_panels_contract_like_exact_rows(
    family: str, sigma: float, period: float | None, count: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    kernel = Kernel(family, sigma, period)
    nodes, points = rng.uniform(0, 10, (2, 13)), rng.uniform(-4, 14, (2, count))
    tensor, places = rng.standard_normal((13, 5, 13)), {1: rng.integers(0, 5, count)}
    curves = {a: curve_of(kernel, points[a // 2], nodes[a // 2]) for a in (0, 2)}

    def rows(axis: int, part: slice | np.ndarray) -> np.ndarray:
        return gram(kernel, points[axis // 2][part], nodes[axis // 2])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORTH_PANELS", 0.0)
        patch.setattr(module, "_VISIT", 0.0)
        patch.setattr(module, "_PIECE", 0.0)
        found = contract_points(tensor, count, rows, places, 13, {}, curves)
    expected = contract(tensor, count, rows, places, 13)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_cell_takes_little_memory() -> None:
    """300,000 points of a tensor with 8 MB: beside it, the panel of every point and its order."""
    nodes = np.linspace(0, 5, 100)
    points = np.random.default_rng(0).uniform(0, 5, (3, 300_000))
    tensor = np.random.default_rng(1).standard_normal((100, 100, 100))
    curves = {a: curve_of(Kernel("gaussian", 0.5), points[a], nodes) for a in range(3)}
    tracemalloc.start()
    answers = contract_points(
        tensor, 300_000, lambda *_: pytest.fail("no exact rows"), {}, 100, {}, curves
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < answers.nbytes * 9 + 20e6
    assert math.isfinite(answers.sum())


# ---- sums of squares, and error bars


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [1, 50, 2**22])
def test_sums_of_squares_are_those_of_exact_rows(
    family: str, rows: int, used: list[dict[int, Panels]], monkeypatch: pytest.MonkeyPatch
) -> None:
    points, weights = np.append(uniform(1000, -1, 6), [400.0, 0.7]), np.arange(1.0, 8.0)
    curve = curve_of(Kernel(family, 1.5), points)
    expected = curve.function(points) ** 2 @ weights
    monkeypatch.setattr(module, "_ROWS", rows)
    np.testing.assert_allclose(sum_squares(curve, weights), expected, rtol=0, atol=1e-13)
    plain = without_panels(lambda: sum_squares(curve, weights))
    np.testing.assert_allclose(plain, expected, rtol=1e-14, atol=0)
    assert used[0]


def test_exact_rows_take_so_many_numbers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An axis of 7 coordinates: two rows are 14 numbers."""
    assert module._ROWS * 8 == 2**25
    asked: list[int] = []
    plain = curve_of(Kernel(), uniform(5))
    curve = replace(plain, function=lambda z: asked.append(z.size) or plain.function(z))
    monkeypatch.setattr(module, "_ROWS", 20)
    sum_squares(curve, np.ones(7))
    assert asked == [2, 2, 1]


def test_no_points_have_no_sums() -> None:
    assert sum_squares(curve_of(Kernel(), np.array([])), np.ones(7)).shape == (0,)


@each_rule
@each_kind
@each_kernel
def test_panels_give_the_same_error_bars(
    kernels: list[Kernel], joint: float | None, smooth: bool, used: list[dict[int, Panels]]
) -> None:
    model, points = fitted(kernels, joint), scattered(2000)
    ask = partial(calibrate(model).variance_at_points, model, points, smooth=smooth)
    found, expected = ask(), without_panels(ask)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * expected.max())
    assert any(used)


@pytest.mark.parametrize("ridge", [1e-8, 1e-4])
def test_joint_error_bars_keep_their_digits_under_a_small_ridge(
    ridge: float, used: list[dict[int, Panels]]
) -> None:
    """Squares of rows are weighed by up to 1 / ridge: each is resolved to its own size."""
    model, points = fitted(KERNELS["gaussian"], ridge), scattered(2000)
    ask = partial(calibrate(model).variance_at_points, model, points, smooth=True)
    found, expected = ask(), without_panels(ask)
    inside = np.all([abs(p) < 50 for p in points], axis=0)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=1e-6)
    assert any(used)
