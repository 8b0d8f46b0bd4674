"""Answers besides the numbers: passing through, blocks, points, memory, refusals."""

import dataclasses
import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import make_interp_spline

from dkrls_cli.cascade import cascade as module
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import SPLINE_RIDGE, Kernel, kernel_named
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError

RNG = np.random.default_rng(11)
X, D = np.linspace(0, 6, 40), np.linspace(0, 5, 30)
NOISE = RNG.standard_normal((40, 30))
SMOOTH = np.sin(X)[:, None] * np.cos(D) + 0.1 * np.cos(2 * X)[:, None] * D
NEW = [np.linspace(0.03, 5.9, 17), np.linspace(0.04, 4.9, 19)]

each_kind = pytest.mark.parametrize("joint", [None, 1e-2], ids=["level", "joint"])


def levels(sigma: float = 1.0, ridge: float = 0.0, period: float | None = None) -> list[Level]:
    return [Level(name, Kernel("gaussian", sigma, period), ridge) for name in ("x", "d")]


def fitted(
    values: np.ndarray, joint: float | None = None, sigma: float = 1.0, **options
) -> Cascade:
    ridge = 1e-2 if joint is None else 0.0
    return fit_cascade(values, [X, D], levels(sigma, ridge), joint_ridge=joint, **options)


# ---- at the nodes


@each_kind
def test_training_coordinates_pass_through_bit_for_bit(joint: float | None) -> None:
    model = fitted(NOISE, joint)
    assert model.frames == (None, None)
    np.testing.assert_array_equal(model.predict(), NOISE)
    np.testing.assert_array_equal(model.predict([X[::-1], D[3:9]]), NOISE[::-1, 3:9])
    np.testing.assert_array_equal(model.predict_points([X[:30], D]), NOISE[:30].diagonal())


@each_kind
def test_smooth_data_in_its_frame_passes_through_to_round_off(joint: float | None) -> None:
    model = fitted(SMOOTH, joint)
    assert model.core.shape == (2, 2)
    np.testing.assert_allclose(model.predict(), SMOOTH, atol=1e-13)
    np.testing.assert_allclose(model.predict_points([X[:30], D]), SMOOTH.diagonal(), atol=1e-13)


def test_smooth_asks_the_model_at_the_nodes_as_well() -> None:
    model = fitted(NOISE)
    assert np.abs(model.predict(smooth=True) - NOISE).max() > 0.1
    np.testing.assert_allclose(
        model.predict_points([X[:30], D], smooth=True),
        model.predict(smooth=True)[:30].diagonal(),
        atol=1e-12,
    )


def test_answer_does_not_depend_on_what_else_is_asked() -> None:
    model = fitted(NOISE)
    together = model.predict([[X[3], 1.234], [0.777, D[4]]])
    alone = [[model.predict([[x], [d]])[0, 0] for d in (0.777, D[4])] for x in (X[3], 1.234)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    assert together[0, 1] == NOISE[3, 4]


@pytest.mark.parametrize("turns", [-1, 1, 3])
@pytest.mark.parametrize("first", [0.0, 0.1, 1 / 3])
def test_nodes_pass_through_on_every_turn_of_the_circle(first: float, turns: int) -> None:
    """Also where adding a turn rounds the coordinate."""
    longitude = first + np.arange(0.0, 360.0, 20.0)
    values = RNG.standard_normal(18)
    model = fit_cascade(values, [longitude], [Level("lon", Kernel(sigma=30.0, period=360.0), 0.5)])
    np.testing.assert_allclose(model.predict([longitude + 360.0 * turns]), values, atol=1e-13)


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
def test_memory_does_not_grow_with_the_number_of_points(
    smooth: bool, joint: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_POINTS_AT_ONCE", 2**12)
    model = fitted(NOISE, joint)

    def peak_beyond_answers(count: int) -> int:
        points = np.random.default_rng(0).uniform(0, 5, (2, count))
        points[:, ::3] = [X[:1], D[:1]]
        tracemalloc.start()
        answers = model.predict_points(points, smooth=smooth)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - answers.nbytes

    assert peak_beyond_answers(20_000) < 1.5 * peak_beyond_answers(10_000)


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("at_once", [1, 7, 99, 100])
def test_points_are_answered_alike_in_any_number(
    at_once: int, smooth: bool, joint: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, points = fitted(NOISE, joint), RNG.uniform(0, 5, (2, 100))
    points[0, ::4], points[1, ::3] = X[7], D[2]
    whole = model.predict_points(points, smooth=smooth)
    monkeypatch.setattr(module, "_POINTS_AT_ONCE", at_once)
    some = model.predict_points(points, smooth=smooth)
    np.testing.assert_allclose(some, whole, atol=1e-11)


def test_half_a_million_points_are_answered_at_once() -> None:
    assert module._POINTS_AT_ONCE == 2**19


@pytest.mark.parametrize("period", [None, 1e4])
def test_a_far_point_does_not_change_the_answers_at_others(period: float | None) -> None:
    """A series from the others to that one would see the constant, and no coordinate."""
    kernel = Kernel("gaussian", 1.0, period, constant=4.0)
    model = fit_cascade(NOISE, [X, D], [Level("x", kernel, 1e-2), Level("d", kernel, 1e-2)])
    points = np.random.default_rng(1).uniform(0.01, 4.99, (2, 400))
    alone = model.predict_points(points)
    points[:, 0] = 9e3
    np.testing.assert_allclose(model.predict_points(points)[1:], alone[1:], atol=1e-11)


@pytest.mark.parametrize(("count", "kernel"), [(159, False), (160, True)])
def test_many_points_are_answered_by_a_series(
    count: int, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From four points per coordinate on, of at most as many terms as there are coordinates."""
    asked = []

    def refuse(rows: Callable, low: float, high: float, limit: int, peaks: np.ndarray) -> None:
        asked.append((float(low), float(high), limit))

    model, points = fitted(NOISE), RNG.uniform(0.01, 4.99, (2, count))
    answers = model.predict_points(points)
    monkeypatch.setattr(module, "resolve", refuse)
    np.testing.assert_allclose(model.predict_points(points), answers, atol=1e-11)
    ranges = [(axis.min(), axis.max(), m) for axis, m in zip(points, (40, 30), strict=True)]
    assert sorted(asked) == sorted(ranges if kernel else ranges[1:])


def test_points_are_answered_like_the_grid_where_one_axis_is_singular() -> None:
    """That axis is solved for in the tensor, the other one in the rows."""
    chosen = [Level("x", Kernel("gaussian", 4.0)), Level("d", Kernel("matern12", 0.2), 1e-2)]
    model = fit_cascade(NOISE, [X, D], chosen, mean=0.5)
    assert [model.solver.solves_tensor(axis) for axis in (0, 1)] == [True, False]
    queries = [RNG.uniform(1, 5, 5), RNG.uniform(1, 4, 5)]
    expected = model.predict(queries).diagonal()
    found = model.predict_points(queries)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_a_series_saves_the_kernel_of_most_points(monkeypatch: pytest.MonkeyPatch) -> None:
    model, points = fitted(NOISE, sigma=2.0), RNG.uniform(1, 4, (2, 1000))
    plain, asked = Cascade.kernel_rows, []

    def kernel_rows(self: Cascade, axis: int, query: np.ndarray) -> np.ndarray:
        asked.append(query.size)
        return plain(self, axis, query)

    monkeypatch.setattr(Cascade, "kernel_rows", kernel_rows)
    answers = model.predict_points(points)
    assert sum(asked) < 200
    monkeypatch.setattr(module, "resolve", lambda *_, **__: None)
    np.testing.assert_allclose(model.predict_points(points), answers, atol=1e-9)


# ---- blocks


@st.composite
def small_grids(draw: st.DrawFn) -> tuple[Cascade, list[np.ndarray]]:
    """A model of one to four axes, and queries of new coordinates and nodes."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    joint = draw(st.sampled_from([None, 0.1]))
    chosen = [Level(f"d{a}", Kernel(), 0.1 if joint is None else 0.0) for a in range(len(shape))]
    axes = [np.arange(float(m)) for m in shape]
    model = fit_cascade(rng.standard_normal(shape), axes, chosen, joint_ridge=joint, mean=0.3)
    return model, [
        np.append(axis, rng.uniform(0, m, 2)) for axis, m in zip(axes, shape, strict=True)
    ]


@given(small_grids(), st.integers(1, 80), st.booleans())
def test_blocks_are_parts_of_the_whole_answer(
    case: tuple[Cascade, list[np.ndarray]], cells: int, smooth: bool
) -> None:
    model, queries = case
    whole = model.predict(queries, smooth=smooth)
    together = np.full(whole.shape, np.nan)
    bars = calibrate(model)
    variance, spread = (
        bars.variance_blocks(model, queries, smooth=smooth),
        np.full(whole.shape, np.nan),
    )
    order = []
    for part, values in model.predict_blocks(queries, cells, smooth=smooth):
        assert np.isnan(together[part]).all()
        together[part], spread[part] = values, variance(part)
        order.append(tuple(side.start for side in part))
    np.testing.assert_allclose(together, whole, atol=1e-12)
    expected = variance_on_grid(bars, model, queries, smooth=smooth)
    np.testing.assert_allclose(spread, expected, rtol=1e-9, atol=1e-12)
    assert order == sorted(order)
    assert (len(order) == 1) == (whole.size <= cells)


def test_blocks_pass_through_unless_asked_not_to() -> None:
    model = fitted(NOISE)
    for part, values in model.predict_blocks([None, None], 100):
        np.testing.assert_array_equal(values, NOISE[part])


# ---- which queries are training coordinates


@pytest.mark.parametrize("step", [1.0, 1e-12])
def test_a_node_is_found_where_rounding_has_moved_it(step: float) -> None:
    """By 8 epsilons of the largest coordinate, but far less than a step."""
    nodes = np.append(step * np.arange(4), max(1.0, 4 * step))
    model = fit_cascade(np.arange(5.0), [nodes], [Level("x", Kernel(sigma=step), 0.5)])
    slack = min(8 * np.finfo(float).eps * nodes[-1], 1e-6 * step)
    near, far = (nodes[2] + slack * share * np.array([-1, 1]) for share in (0.9, 1.2))
    assert model.find_nodes(0, near).tolist() == [2, 2]
    assert model.find_nodes(0, far).tolist() == [-1, -1]
    assert model.find_nodes(0, near, smooth=True).tolist() == [-1, -1]


def test_nodes_on_a_circle_are_found_on_every_turn() -> None:
    level = Level("x", Kernel(sigma=30.0, period=360.0), 0.5)
    model = fit_cascade(np.arange(4.0), [[0.0, 90.0, 200.0, 300.0]], [level])
    query = np.array([360.0, -270.0, 560.0, 299.0, -60.0, 359.9999])
    assert model.find_nodes(0, query).tolist() == [0, 1, 2, -1, 3, -1]


def test_training_coordinates_are_known_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(NOISE)
    monkeypatch.setattr(module, "nearest", None)
    assert model.find_nodes(1, model.coordinates[1]).tolist() == list(range(30))
    assert (model.find_nodes(1, model.coordinates[1], smooth=True) == -1).all()


# ---- limits


@each_kind
def test_asking_for_nothing_answers_nothing(joint: float | None) -> None:
    model = fitted(NOISE, joint)
    assert model.predict([[], None]).shape == (0, 30)
    assert model.predict_points([[], []]).shape == (0,)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.predict([X]), r"one query per level \(2\), got 1"),
        (lambda model: model.predict_points([X, X, X]), r"one query per level \(2\), got 3"),
        (lambda model: model.predict([[0.0, math.nan], None]), "query of level 'x' .* nan"),
        (lambda model: model.predict([None, math.inf]), "query of level 'd' .* inf"),
        (lambda model: model.predict([None, ["now"]]), "query of level 'd' must be real numbers"),
        (lambda model: model.predict([None, [[1.0]]]), r"must be a vector, got shape \(1, 1\)"),
        (lambda model: model.predict_points([[0, 1], [0]]), "equally many .* got 2, 1"),
    ],
)
def test_wrong_queries_are_refused(ask: Callable[[Cascade], object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        ask(fitted(NOISE))


def test_joint_ridge_has_one_layer_of_weights() -> None:
    with pytest.raises(SettingError, match="one layer"):
        fitted(NOISE, 1e-2).weights([0])


@each_kind
@pytest.mark.parametrize("values", [NOISE, SMOOTH], ids=["noise", "smooth"])
def test_a_mean_is_taken_out_before_and_added_after(
    values: np.ndarray, joint: float | None
) -> None:
    ridge = {"joint_ridge": 1e-3} if joint else {}
    chosen = levels(ridge=0.0 if joint else 1e-3)
    about = fit_cascade(values + 280.0, [X, D], chosen, mean=280.0, **ridge)
    plain = fit_cascade(values, [X, D], chosen, **ridge)
    for smooth in (False, True):
        for queries in (None, NEW, [X, NEW[1]]):
            answers = about.predict(queries, smooth=smooth) - 280.0
            np.testing.assert_allclose(answers, plain.predict(queries, smooth=smooth), atol=1e-9)
    points = [RNG.uniform(1, 4, 2000), RNG.uniform(1, 4, 2000)]
    np.testing.assert_allclose(
        about.predict_points(points) - 280.0, plain.predict_points(points), atol=1e-9
    )
    np.testing.assert_allclose(about.predict([[1e6], [1e6]]), 280.0)


def test_without_a_mean_the_core_is_used_as_it_is() -> None:
    model = fitted(NOISE)
    assert model.centred_core() is model.core
    about = fitted(SMOOTH, mean=280.0)
    expected = fitted(SMOOTH - 280.0)
    rows = [frame[[3, 4]] for frame in about.frames if frame is not None]
    np.testing.assert_allclose(
        rows[0] @ about.centred_core() @ rows[1].T, expected.predict()[3:5, 3:5], atol=1e-9
    )


@pytest.mark.parametrize("axes", [[-1], [2], [0, 1, 2]])
def test_weights_of_axes_that_are_not_there_are_refused(axes: list[int]) -> None:
    model = fitted(NOISE)
    with pytest.raises(SettingError, match="The model has axes 0 to 1"):
        model.weights(axes)
    np.testing.assert_array_equal(model.weights([1, 0, 1]), model.weights([0, 1]))
    assert model.weights([]).shape == (40, 30)


def test_a_spectrum_is_known_when_it_was_given_or_computed() -> None:
    model = fitted(NOISE)
    later = dataclasses.replace(model, factors=(None, model.factors[1]))
    assert later.known_factor(0) is None
    assert later.known_factor(1) is model.factors[1]
    assert later.known_factor(0) is not later.spectra[0]
    assert later.known_factor(0) is later.spectra[0]


# ---- points spread over other axes

T = np.linspace(0, 4, 24)
BOX = RNG.standard_normal((12, 10, 24))
LOW = np.sin(X[:12])[:, None, None] * np.cos(D[:10])[:, None] * np.cos(T) + 290
PLACES = [
    np.concatenate([X[:4], [0.21, 0.33, 1.5, X[5]]]),
    np.concatenate([D[:3], [0.4, D[7], 0.9, 1.1, D[5]]]),
    np.concatenate([T[3:6], [0.05, 3.9, 2.2], T[:2]]),
]


def box(values: np.ndarray, joint: float | None, **options) -> Cascade:
    ridge = 1e-2 if joint is None else 0.0
    three = [Level(name, Kernel("matern32", 1.0), ridge) for name in "xdt"]
    return fit_cascade(values, [X[:12], D[:10], T], three, joint_ridge=joint, **options)


def one_by_one(points: list[np.ndarray], spread: tuple[int, ...]) -> list[np.ndarray]:
    """Every point at every coordinate of the other axes, as scattered points."""
    count = next(v.size for axis, v in enumerate(points) if axis not in spread)
    cells = np.meshgrid(np.arange(count), *(points[axis] for axis in sorted(spread)), indexing="ij")
    order = [0, *sorted(spread)]
    return [
        (cells[sorted(spread).index(a) + 1] if a in order[1:] else points[a][cells[0]]).ravel()
        for a in range(len(points))
    ]


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("kind", ["samples", "frames", "single", "compact"])
@pytest.mark.parametrize("spread", [(2,), (0,), (1, 2), (2, 0)])
def test_stations_are_answered_as_scattered_points_are(
    joint: float | None, smooth: bool, kind: str, spread: tuple[int, ...]
) -> None:
    options = {"single": {"dtype": "float32"}, "compact": {"compact": True}}.get(kind, {})
    model = box(LOW if kind in ("frames", "compact") else BOX, joint, mean=0.5, **options)
    assert any(frame is not None for frame in model.frames) == (kind in ("frames", "compact"))
    points = [np.append(v, v[::-1]) if a in spread else v for a, v in enumerate(PLACES)]
    found = model.predict_points(points, spread=spread, smooth=smooth)
    assert found.shape == (8, *(points[axis].size for axis in sorted(spread)))
    expected = model.predict_points(one_by_one(points, spread), smooth=smooth)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found.ravel(), expected, rtol=0, atol=1e-12 * scale)


@each_kind
def test_stations_at_training_cells_are_the_data_bit_for_bit(joint: float | None) -> None:
    model = box(BOX, joint)
    found = model.predict_points([X[:10], D[:10], T], spread=[2])
    np.testing.assert_array_equal(found, BOX[range(10), range(10)])
    found = model.predict_points([X[:10], D[:10], T[[5, 2]]], spread=[2])
    np.testing.assert_array_equal(found, BOX[range(10), range(10)][:, [5, 2]])


@each_kind
def test_the_tensor_is_contracted_once_for_all_times(
    joint: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of a station's place is computed once, not once for each of its times."""
    model, asked = box(BOX, joint), []
    plain = Cascade.kernel_rows

    def kernel_rows(self: Cascade, axis: int, query: np.ndarray) -> np.ndarray:
        asked.append((axis, query.size))
        return plain(self, axis, query)

    monkeypatch.setattr(Cascade, "kernel_rows", kernel_rows)
    between = np.linspace(0.1, 3.9, 50)
    model.predict_points([np.array([0.21, 0.33]), np.array([0.4, 0.5]), between], spread=[2])
    assert sorted(asked) == [(0, 2), (1, 2), (2, 50)]


@each_kind
def test_no_station_and_no_time_answer_nothing(joint: float | None) -> None:
    model, none = box(BOX, joint), np.empty(0)
    assert model.predict_points([none, none, T], spread=[2]).shape == (0, 24)
    assert model.predict_points([X[:2], D[:2], none], spread=[2]).shape == (2, 0)


@pytest.mark.parametrize(
    ("points", "spread", "message"),
    [
        ([X[:3], D[:2], T], [2], "equally many coordinates per axis, got 3, 2"),
        ([X[:3], D[:2], T], [0, 1, 2], "equally many coordinates per axis, got none"),
        ([X[:3], D[:3]], [1], "Expected one query per level"),
    ],
)
def test_stations_that_do_not_fit_are_refused(points: list, spread: list, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        box(BOX, None).predict_points(points, spread=spread)


@each_kind
def test_many_stations_come_in_parts(joint: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = box(BOX, joint)
    whole = model.predict_points(PLACES, spread=[2])
    monkeypatch.setattr(module, "_POINTS_AT_ONCE", 3)
    np.testing.assert_allclose(model.predict_points(PLACES, spread=[2]), whole, atol=1e-13)


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("spread", [(2,), (1, 2), (2, 0)])
def test_stations_have_the_variance_of_scattered_points(
    joint: float | None, smooth: bool, spread: tuple[int, ...]
) -> None:
    model = box(BOX, joint)
    bars = calibrate(model)
    points = [np.append(v, v[::-1]) if a in spread else v for a, v in enumerate(PLACES)]
    found = bars.variance_at_points(model, points, spread=spread, smooth=smooth)
    expected = bars.variance_at_points(model, one_by_one(points, spread), smooth=smooth)
    assert found.shape == (8, *(points[axis].size for axis in sorted(spread)))
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-9, atol=1e-14)


LOG = np.geomspace(1.0, 400.0, 40)
SPLINES = [
    Level("x", Kernel("quintic", 0.4, warp="log", errors="gaussian")),
    Level("d", Kernel("cubic", 0.5, errors="matern32")),
]


def by_scipy(values: np.ndarray, x: np.ndarray, d: np.ndarray) -> np.ndarray:
    first = make_interp_spline(np.log(LOG), values, k=5)(np.log(x))
    return np.moveaxis(make_interp_spline(D, first, k=3, axis=1)(d), 1, -1)


@pytest.mark.parametrize("values", [SMOOTH, NOISE], ids=["smooth", "noise"])
def test_splines_answer_as_those_of_scipy(values: np.ndarray) -> None:
    model = fit_cascade(values, [LOG, D], SPLINES, mean=0.7)
    x, d = np.geomspace(1.1, 390.0, 31), NEW[1]
    expected = by_scipy(values, x, d)
    np.testing.assert_allclose(model.predict([x, d]), expected, atol=1e-11)
    np.testing.assert_allclose(model.predict([x, d], smooth=True), expected, atol=1e-11)
    np.testing.assert_allclose(model.predict([LOG, D], smooth=True), values, atol=1e-11)
    at = np.arange(x.size), np.arange(x.size) % d.size
    points = model.predict_points([x, d[at[1]]])
    np.testing.assert_allclose(points, expected[at], atol=1e-11)


def test_many_points_of_splines_are_those_of_a_grid() -> None:
    model = fit_cascade(NOISE, [LOG, D], SPLINES)
    rng = np.random.default_rng(0)
    x, d = rng.uniform(1.0, 400.0, 40_000), rng.uniform(0.0, 5.0, 40_000)
    found = model.predict_points([x, d])
    some = slice(0, 40)
    expected = np.diagonal(model.predict([x[some], d[some]]))
    np.testing.assert_allclose(found[some], expected, atol=1e-9)


def test_the_weights_of_splines_are_the_data() -> None:
    model = fit_cascade(NOISE, [LOG, D], SPLINES, mean=0.7)
    np.testing.assert_allclose(model.weights([0, 1]), NOISE - 0.7, atol=1e-12)


def test_the_covariance_of_a_cascade_has_no_splines() -> None:
    model = fit_cascade(SMOOTH, [LOG, D], [SPLINES[0], Level("d", Kernel(), 0.1)])
    other = model.covariance
    assert other.levels == (
        Level("x", Kernel("gaussian", 0.4, warp="log"), SPLINE_RIDGE),
        model.levels[1],
    )
    assert other.factor(1) is model.factor(1)
    assert other.covariance is other


@pytest.mark.parametrize("kept", [slice(None), slice(2, 9)])
def test_the_spread_from_the_core_is_that_of_the_data(kept: slice) -> None:
    rng = np.random.default_rng(0)
    x, y, z = np.linspace(0, 3, 12), np.linspace(0, 5, 15), np.arange(9.0)
    values = 1e3 + np.einsum("i,j,k->ijk", np.sin(x), np.cos(y), rng.standard_normal(9))
    given = [Level("x", Kernel(sigma=1.0)), Level("y", Kernel(sigma=1.5)), Level("z", Kernel())]
    cascade = fit_cascade(values, [x, y, z], given, mean=990.0, compact=True)
    assert any(frame is not None for frame in cascade.frames)
    held = cascade.predict()[kept]
    found = cascade.spread([kept, slice(None), slice(None)])
    assert found == pytest.approx(held.std(), rel=1e-9)
    back = cascade.predict()[:, :, kept]
    assert cascade.spread([slice(None), slice(None), kept]) == pytest.approx(back.std(), rel=1e-9)


@pytest.mark.parametrize("name", ["linear", "cubic", "log-quintic"])
@pytest.mark.parametrize("storage", ["float64", "float32"])
def test_many_points_of_splines_are_answered_as_few(name, storage):
    """Few points go by rows over all samples, many by the B-splines beside them."""
    axes = [np.sort(RNG.uniform(1.0, 5.0, size)) for size in (8, 12)]
    both = [Level(n, kernel_named(name)) for n in "xy"]
    model = fit_cascade(100.0 + RNG.normal(size=(8, 12)).astype(storage), axes, both)
    points = RNG.uniform(0.9, 5.5, (2, 200))
    points[0, ::3], points[1, ::5] = axes[0][2], axes[1][4]  # some pass through
    points[1, 7] = 300.0  # one is far beyond
    whole = model.predict_points(points)
    few = np.concatenate([model.predict_points(points[:, at : at + 5]) for at in range(0, 200, 5)])
    np.testing.assert_allclose(whole, few, rtol=1e-10, atol=1e-9 * np.abs(few).max())
    np.testing.assert_array_equal(whole[::15], model.core[2, 4])


def test_many_points_of_splines_take_no_rows_over_all_samples(monkeypatch):
    axes = [np.arange(6.0), np.arange(7.0)]
    model = fit_cascade(
        RNG.normal(size=(6, 7)), axes, [Level(n, kernel_named("cubic")) for n in "xy"]
    )
    points = RNG.uniform(0.1, 4.9, (2, 13))
    want = model.predict_points(points[:, :12])  # fewer than 6 + 7: by rows
    monkeypatch.setattr(type(model), "_answer_group", None)
    np.testing.assert_allclose(model.predict_points(points)[:12], want, atol=1e-12)
