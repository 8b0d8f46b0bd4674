"""What fit and predict promise besides the numbers: passing through, storage, memory, refusals."""

import dataclasses
import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import DkrlsError, InputError, SettingError

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


@pytest.mark.parametrize("shape", [(3, 20), (20, 3), (2, 24, 2), (2, 3, 32), (13, 2, 4)])
def test_small_noise_passes_through_whatever_its_shape(shape: tuple[int, ...]) -> None:
    values = RNG.standard_normal(shape)
    names = [Level(f"d{axis}", Kernel(), 0.1) for axis in range(len(shape))]
    model = fit_cascade(values, [np.arange(size) for size in shape], names)
    np.testing.assert_allclose(model.predict(), values, atol=1e-12)


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


# ---- storage


def test_compact_drops_what_the_kernels_cannot_express_and_says_so() -> None:
    model = fitted(NOISE, sigma=3.0, compact=True)
    left, right = (spectrum.vectors @ spectrum.vectors.T for spectrum in model.spectra)
    projected = left @ NOISE @ right
    assert model.core.shape == tuple(spectrum.rank for spectrum in model.spectra)
    assert model.core.size < NOISE.size / 4
    np.testing.assert_allclose(model.predict(), projected, atol=1e-13)
    lost = np.sum((NOISE - projected) ** 2) / np.sum(NOISE**2)
    assert model.dropped == pytest.approx(lost, rel=1e-12)


@each_kind
def test_compact_changes_no_answer_at_new_coordinates(joint: float | None) -> None:
    compact, whole = (fitted(NOISE, joint, 3.0, compact=flag) for flag in (True, False))
    np.testing.assert_allclose(compact.predict(NEW), whole.predict(NEW), atol=1e-9)
    assert whole.dropped == 0
    assert whole.core.shape == NOISE.shape


def test_compact_drops_nothing_of_smooth_data() -> None:
    model = fitted(SMOOTH, sigma=2.0, compact=True)
    assert model.dropped < 1e-14
    np.testing.assert_allclose(model.predict(), SMOOTH, atol=1e-12)


@each_kind
@pytest.mark.parametrize("values", [NOISE, SMOOTH], ids=["noise", "smooth"])
def test_single_precision_costs_its_round_off(values: np.ndarray, joint: float | None) -> None:
    double, single = (fitted(values, joint, dtype=dtype) for dtype in (np.float64, np.float32))
    size = np.abs(values).max()
    assert single.core.dtype == np.float32
    assert single.core.nbytes * 2 == double.core.nbytes
    for queries in (None, NEW):
        answers = single.predict(queries)
        assert answers.dtype == np.float64
        error = np.abs(answers - double.predict(queries)).max()
        assert 1e-10 * size < error < 5e-7 * size


@pytest.mark.parametrize("values", [NOISE, SMOOTH], ids=["noise", "smooth"])
def test_model_does_not_share_memory_with_its_input_or_answers(values: np.ndarray) -> None:
    data, x = values.copy(), X.copy()
    model = fit_cascade(data, [x, D], levels(ridge=1e-3))
    before = model.predict(NEW)
    data[:], x[:] = 0, 0
    model.predict()[:] = 0
    model.predict([X[:3], D])[:] = 0
    np.testing.assert_array_equal(model.predict(NEW), before)
    np.testing.assert_allclose(model.predict(), values, atol=1e-13)


def test_model_is_frozen() -> None:
    model = fitted(NOISE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.dropped = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.levels[0].ridge = 1.0
    for array in (model.core, *model.coordinates):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
def test_memory_does_not_grow_with_the_number_of_points(smooth: bool, joint: float | None) -> None:
    model = fitted(NOISE, joint)

    def peak_beyond_answers(count: int) -> int:
        points = np.random.default_rng(0).uniform(0, 5, (2, count))
        points[:, ::3] = [X[:1], D[:1]]
        tracemalloc.start()
        answers = model.predict_points(points, smooth=smooth)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - answers.nbytes

    assert peak_beyond_answers(300_000) < 1.5 * peak_beyond_answers(150_000)


def test_points_are_answered_alike_in_any_number() -> None:
    """More points than are worked on at once."""
    model = fitted(NOISE)
    points = RNG.uniform(0, 5, (2, 140_000))
    some = slice(130_000, 132_000)
    np.testing.assert_allclose(
        model.predict_points(points)[some], model.predict_points(points[:, some]), atol=1e-12
    )


@each_kind
def test_asking_for_nothing_answers_nothing(joint: float | None) -> None:
    model = fitted(NOISE, joint)
    assert model.predict([[], None]).shape == (0, 30)
    assert model.predict_points([[], []]).shape == (0,)


# ---- refusals

ONE = np.arange(4.0)
LEVEL = Level("time", Kernel(sigma=2.0))


def fit_1d(values=ONE, coordinates=ONE, level: Level = LEVEL, **options) -> Cascade:
    return fit_cascade(values, [coordinates], [level], **options)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, math.nan, 4], "1 of 4 values are missing or infinite"),
        ([1, math.inf, math.nan, 4], "2 of 4 values are missing or infinite"),
        ([1, math.inf, -math.inf, 4], "2 of 4 values are missing or infinite"),
        (["a", "b", "c", "d"], "must be real numbers"),
        ([1, 2j, 3, 4], "must be real numbers"),
        (np.array([1, 2j, 3, 4]), "must be real numbers"),
        ([], "hold no grid"),
        (3.0, "hold no grid"),
        ([1, 2, 3], "Level 'time' has 4 coordinates for 3 samples"),
    ],
)
def test_unusable_values_are_refused(values: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit_1d(values)


@pytest.mark.parametrize(
    ("coordinates", "period", "message"),
    [
        ([0, 7, 2, 7], None, "Coordinates 1 and 3 of level 'time' are the same: 7 and 7"),
        ([0.0, 1, 2, -0.0], None, "Coordinates 0 and 3 of level 'time' are the same"),
        ([10, 90, 180, 370], 360.0, "0 and 3 of .* same place on the circle: 10 and 370"),
        ([0, 90, 180, 360], 360.0, "0 and 3 of .* same place on the circle: 0 and 360"),
        ([0.1, 90, 180, 360.1], 360.0, "0 and 3 of .* same place on the circle"),
        ([0, 1, math.nan, 3], None, "coordinates of level 'time' hold 1 values.*not finite.*nan"),
        ([0, math.inf, 2, -math.inf], None, "hold 2 values that are not finite, the first inf"),
        (["a", "b", "c", "d"], None, "coordinates of level 'time' must be real numbers"),
        ([[0, 1], [2, 3]], None, r"must be a vector, got shape \(2, 2\)"),
    ],
)
def test_unusable_coordinates_are_refused(
    coordinates: list, period: float | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_1d(coordinates=coordinates, level=Level("time", Kernel(sigma=2.0, period=period)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Level("time", ridge=-1.0), "Invalid ridge -1.0 of level 'time'"),
        (lambda: Level("time", ridge=math.nan), "Invalid ridge nan of level 'time'"),
        (lambda: Level("time", ridge=math.inf), "Invalid ridge inf of level 'time'"),
        (lambda: fit_1d(joint_ridge=-1.0), "Invalid joint ridge -1.0"),
        (lambda: fit_1d(joint_ridge=math.nan), "Invalid joint ridge nan"),
        (
            lambda: fit_1d(level=Level("time", ridge=0.5), joint_ridge=1.0),
            "Level 'time' has ridge 0.5 beside a joint ridge",
        ),
        (lambda: fit_cascade(NOISE, [X], levels()), "Values with 2 axes .* got 1 and 2"),
        (lambda: fit_cascade(NOISE, [X, D], [LEVEL]), "Values with 2 axes .* got 2 and 1"),
    ],
)
def test_wrong_settings_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        call()


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


@pytest.mark.parametrize("error", [InputError, SettingError])
def test_refusals_are_value_errors_of_this_package(error: type[Exception]) -> None:
    assert issubclass(error, ValueError)
    assert issubclass(error, DkrlsError)


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
