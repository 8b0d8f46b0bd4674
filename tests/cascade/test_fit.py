"""Fits: what is refused, how the data is stored, and what a fit takes."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from dkrls_cli.cascade import fit as module
from dkrls_cli.cascade import spectrum
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.errors import DkrlsError, InputError, SettingError

RNG = np.random.default_rng(11)
X, D = np.linspace(0, 6, 40), np.linspace(0, 5, 30)
NOISE = RNG.standard_normal((40, 30))
SMOOTH = np.sin(X)[:, None] * np.cos(D) + 0.1 * np.cos(2 * X)[:, None] * D
NEW = [np.linspace(0.03, 5.9, 17), np.linspace(0.04, 4.9, 19)]

each_kind = pytest.mark.parametrize("joint", [None, 1e-2], ids=["level", "joint"])


def levels(sigma: float = 1.0, ridge: float = 0.0) -> list[Level]:
    return [Level(name, Kernel("gaussian", sigma), ridge) for name in ("x", "d")]


def fitted(
    values: np.ndarray, joint: float | None = None, sigma: float = 1.0, **options
) -> Cascade:
    ridge = 1e-2 if joint is None else 0.0
    return fit_cascade(values, [X, D], levels(sigma, ridge), joint_ridge=joint, **options)


# ---- storage


@pytest.mark.parametrize("shape", [(3, 20), (20, 3), (2, 24, 2), (2, 3, 32), (13, 2, 4)])
def test_small_noise_passes_through_whatever_its_shape(shape: tuple[int, ...]) -> None:
    values = RNG.standard_normal(shape)
    names = [Level(f"d{axis}", Kernel(), 0.1) for axis in range(len(shape))]
    model = fit_cascade(values, [np.arange(size) for size in shape], names)
    np.testing.assert_allclose(model.predict(), values, atol=1e-12)


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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_only_values_that_nobody_can_change_are_shared(dtype: str) -> None:
    data = NOISE.astype(dtype)
    view = data[:]
    view.setflags(write=False)
    for given in (data, view):
        assert not np.shares_memory(fit_cascade(given, [X, D], levels(ridge=1e-3)).core, data)
    data.setflags(write=False)
    model = fit_cascade(data, [X, D], levels(ridge=1e-3))
    assert np.shares_memory(model.core, data)
    turned = fit_cascade(data.T, [D, X], levels(ridge=1e-3)[::-1])  # a core is in order
    assert not np.shares_memory(turned.core, data)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("mean", [0.0, 0.3])
@pytest.mark.parametrize("joint", [None, 1e-3])
@pytest.mark.parametrize("values", [NOISE, SMOOTH], ids=["noise", "smooth"])
def test_single_precision_answers_as_the_same_numbers_in_double(
    values: np.ndarray, joint: float | None, mean: float, compact: bool
) -> None:
    single = values.astype(np.float32)
    ridge = 1e-3 if joint is None else 0.0
    how = {"joint_ridge": joint, "mean": mean, "compact": compact}
    found, same = (
        fit_cascade(data, [X, D], levels(ridge=ridge), **how)
        for data in (single, single.astype(np.float64))
    )
    assert same.core.dtype == found.storage == same.storage == np.float64
    assert found.exact == (found.core.dtype == np.float32)
    assert found.dropped == pytest.approx(same.dropped, abs=1e-14)
    points = [np.array([0.31, X[3], 2.2]), np.array([1.1, D[2], D[5]])]
    for smooth in (False, True):
        np.testing.assert_allclose(
            found.predict(NEW, smooth=smooth), same.predict(NEW, smooth=smooth), atol=1e-12
        )
        np.testing.assert_allclose(
            found.predict_points(points, smooth=smooth),
            same.predict_points(points, smooth=smooth),
            atol=1e-12,
        )
    rounded = fit_cascade(single, [X, D], levels(ridge=ridge), dtype="float32", **how)
    assert (rounded.storage, rounded.exact) == (np.float32, False)


def test_model_is_frozen() -> None:
    model = fitted(NOISE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.dropped = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.levels[0].ridge = 1.0
    for array in (model.core, *model.coordinates):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_share_that_is_dropped_does_not_depend_on_units(size: float) -> None:
    plain = fitted(NOISE, sigma=3.0, compact=True).dropped
    assert 0 < plain < 1
    assert fitted(size * NOISE, sigma=3.0, compact=True).dropped == pytest.approx(plain, rel=1e-9)
    assert fitted(-size * NOISE, sigma=3.0, compact=True).dropped == pytest.approx(plain, rel=1e-9)
    assert fitted(0.0 * NOISE, sigma=3.0, compact=True).dropped == 0.0


@pytest.mark.parametrize("mean", [0.0, 280.0])
def test_frames_hold_the_constant_that_is_taken_out(mean: float) -> None:
    model = fitted(SMOOTH, mean=mean)
    sizes = [frame.shape[1] for frame in model.frames if frame is not None]
    assert sizes == ([3, 3] if mean else [2, 2])
    for frame in model.frames:
        assert frame is not None
        np.testing.assert_allclose(frame.T @ frame, np.eye(frame.shape[1]), atol=1e-13)
        outside = np.ones(len(frame)) - frame @ frame.sum(axis=0)
        assert (np.abs(outside).max() < 1e-12) == bool(mean)


@pytest.mark.parametrize(("columns", "framed"), [(11, False), (12, True)])
def test_a_frame_is_taken_only_if_it_halves_the_data(columns: int, framed: bool) -> None:
    """Of rank 4 in 24 x 12 cells: 2 x (24 x 4 + 4 x 12) = 24 x 12, all in float64."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((24, 4)) @ rng.standard_normal((4, columns))
    axes = [np.arange(24.0), np.arange(float(columns))]
    levels = [Level(n, Kernel("matern12", 1.0), 1e-2) for n in "ab"]
    model = fit_cascade(values, axes, levels)
    assert [frame is not None for frame in model.frames] == [framed, False]
    assert any(f is not None for f in fit_cascade(values, axes, levels, compact=True).frames)


def test_the_numbers_of_a_series_are_kept_as_they_are() -> None:
    model = fit_cascade(NOISE[0], [D], [Level("d", Kernel(), 1e-2)], mean=280.0)
    np.testing.assert_array_equal(model.core, NOISE[0])


def test_the_longest_axis_is_framed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, shape = [], (6, 9, 7)

    def span(core: np.ndarray, axis: int, fibres: int) -> np.ndarray | None:
        assert fibres == math.prod(shape) // shape[axis]
        seen.append((axis, core.shape))
        return np.eye(core.shape[axis])[:, :2]

    monkeypatch.setattr(module, "span", span)
    fit_cascade(np.ones(shape), [range(m) for m in shape], [Level(n) for n in "abc"])
    assert seen == [(1, (6, 9, 7)), (2, (6, 2, 7)), (0, (6, 2, 2))]


@each_kind
def test_spectra_that_are_given_are_not_computed_again(
    joint: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = fitted(NOISE, joint)
    known = [decompose(gram(Kernel("gaussian", 1.0), c, c)) for c in (X, D)]

    def refuse(_: np.ndarray) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(spectrum, "decompose", refuse)
    given = fitted(NOISE, joint, spectra=known)
    np.testing.assert_array_equal(given.predict(NEW), plain.predict(NEW))


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
    ("call", "message"),
    [
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


@pytest.mark.parametrize("error", [InputError, SettingError])
def test_refusals_are_value_errors_of_this_package(error: type[Exception]) -> None:
    assert issubclass(error, ValueError)
    assert issubclass(error, DkrlsError)
