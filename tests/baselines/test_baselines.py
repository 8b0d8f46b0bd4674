"""The baselines: one contract for all of them, and each against numbers that are not its own."""

import csv
import inspect
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.kernel_ridge import KernelRidge

from dkrls_cli import baselines
from dkrls_cli.baselines import BASELINES, Baseline
from dkrls_cli.baselines.least_squares.kkf import KKF
from dkrls_cli.baselines.least_squares.krlst import KRLST
from dkrls_cli.baselines.least_squares.nonstill import covariance
from dkrls_cli.baselines.least_squares.recursive import RecursiveDKRLS
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError

ORACLE = Path(__file__).parents[3] / "shared" / "data" / "kaf_oracle.csv"

each_baseline = pytest.mark.parametrize("name", BASELINES)


def grid(*axes: np.ndarray) -> np.ndarray:
    """All points of a grid, the first axis fastest: the paper's order, the last one time."""
    return np.stack([a.ravel(order="F") for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def field(points: np.ndarray) -> np.ndarray:
    return np.sin(points[:, 0]) * np.cos(points[:, 1] / 2) + 0.3


def taught(model: Baseline, points: np.ndarray, values: np.ndarray) -> Baseline:
    for x, y in zip(points, values, strict=True):
        model.update(x, y)
    return model


def gaussian(a: np.ndarray, b: np.ndarray, sigma: float) -> np.ndarray:
    return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2 * sigma**2))


X = grid(np.linspace(0, 4, 9), np.linspace(0, 5, 8))
Y = field(X)
NEW = np.random.default_rng(0).uniform(0, 4, (17, 2))


# The contract -------------------------------------------------------------------------------------


@each_baseline
class TestContract:
    def test_it_says_what_it_is(self, name: str) -> None:
        kind = BASELINES[name]
        assert kind.paper_name
        assert kind.summary.endswith(".")
        assert len(kind.summary) < 80

    def test_before_training_answers_are_zero(self, name: str) -> None:
        model = BASELINES[name]()
        assert model.size == 0
        np.testing.assert_array_equal(model.predict(NEW), np.zeros(17))

    def test_updating_returns_nothing_and_changes_answers(self, name: str) -> None:
        model = BASELINES[name]()
        seen = [model.predict(NEW)]
        for x, y in zip(X[:3], Y[:3], strict=True):
            assert model.update(x, y) is None
            seen.append(model.predict(NEW))
        assert all((a != b).any() for a, b in pairwise(seen))
        assert model.size >= 1

    def test_shapes(self, name: str) -> None:
        model = taught(BASELINES[name](), X, Y)
        for count in (0, 1, 17):
            answers = model.predict(NEW[:count])
            assert answers.shape == (count,)
            assert answers.dtype == np.float64
        one_by_one = [model.predict(point[None])[0] for point in NEW]
        np.testing.assert_allclose(model.predict(NEW), one_by_one, rtol=1e-8, atol=1e-10)

    def test_many_points_are_answered_in_parts(self, name: str) -> None:
        model = taught(BASELINES[name](), X, Y)
        many = np.tile(NEW, (300, 1))
        expected = np.tile(model.predict(NEW), 300)
        np.testing.assert_allclose(model.predict(many), expected, rtol=1e-8, atol=1e-10)

    def test_asking_does_not_change_what_is_learnt(self, name: str) -> None:
        asked, quiet = BASELINES[name](), taught(BASELINES[name](), X, Y)
        for x, y in zip(X, Y, strict=True):
            asked.predict(x[None])
            asked.update(x, y)
        assert asked.size == quiet.size
        np.testing.assert_allclose(asked.predict(NEW), quiet.predict(NEW), rtol=1e-7, atol=1e-8)

    def test_the_same_samples_give_the_same_answers(self, name: str) -> None:
        first, second = (taught(BASELINES[name](), X, Y).predict(NEW) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_the_order_of_features_does_not_matter(self, name: str) -> None:
        kind = BASELINES[name]
        turned: dict[str, Any] = {}
        order = np.arange(len(X))
        if "time" in inspect.signature(kind).parameters:
            turned = {"time": 0}
        elif name == "recursive":  # its levels turn with the features, and which is fastest
            turned, order = {"sigmas": (0.3, 1.0)}, np.lexsort((X[:, 1], X[:, 0]))
        expected = taught(kind(), X, Y).predict(NEW)
        found = taught(kind(**turned), X[order, ::-1], Y[order]).predict(NEW[:, ::-1])
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)

    def test_duplicates_leave_it_finite(self, name: str) -> None:
        model = taught(BASELINES[name](), np.repeat(X[:1], 30, axis=0), np.repeat(Y[:1], 30))
        assert np.isfinite(model.predict(NEW)).all()
        np.testing.assert_allclose(model.predict(X[:1]), Y[:1], rtol=0.2)

    def test_samples_draw_the_answers_to_them(self, name: str) -> None:
        model, before, after = BASELINES[name](), 0.0, 0.0
        for x, y in zip(X, Y, strict=True):
            before += abs(y - model.predict(x[None])[0])
            model.update(x, y)
            after += abs(y - model.predict(x[None])[0])
        assert after < 0.9 * before

    def test_what_is_given_is_not_kept_hold_of(self, name: str) -> None:
        model, x = BASELINES[name](), X[0].copy()
        model.update(x, Y[0])
        expected = model.predict(NEW)
        x[:] = 99.0
        np.testing.assert_array_equal(model.predict(NEW), expected)

    def test_unusable_samples_are_refused(self, name: str) -> None:
        model = taught(BASELINES[name](), X[:2], Y[:2])
        expected = model.predict(NEW)
        with pytest.raises(InputError, match=r"shape \(3,\)"):
            model.update([1.0, 2.0, 3.0], 1.0)
        with pytest.raises(InputError, match="finite"):
            model.update([1.0, np.nan], 1.0)
        with pytest.raises(InputError, match="finite"):
            model.update([1.0, 2.0], np.inf)
        with pytest.raises(InputError, match=r"shape \(2,\)"):
            model.predict([1.0, 2.0])
        np.testing.assert_array_equal(model.predict(NEW), expected)

    def test_a_refused_first_sample_is_none(self, name: str) -> None:
        model = BASELINES[name]()
        for x, y in (([np.nan, 0.0], 1.0), ([[1.0, 2.0]], 1.0), ([], 1.0)):
            with pytest.raises(InputError, match="Invalid sample"):
                model.update(x, y)
        np.testing.assert_array_equal(model.predict(NEW), np.zeros(17))
        assert np.isfinite(taught(model, X, Y).predict(NEW)).all()

    def test_unknown_settings_are_refused(self, name: str) -> None:
        with pytest.raises(TypeError):
            BASELINES[name](nonsense=1)  # type: ignore[call-arg]

    def test_impossible_settings_are_refused(self, name: str) -> None:
        kind = BASELINES[name]
        for setting, value in inspect.signature(kind).parameters.items():
            wrong: dict[str, Any] = {setting: (-1.0,) if setting == "sigmas" else -1.0}
            if setting == "time":
                continue
            wrong = {setting: "nonsense"} if isinstance(value.default, str) else wrong
            with pytest.raises(SettingError, match=r"Invalid|Unknown"):
                kind(**wrong)


def test_the_registry_cannot_be_written_to() -> None:
    with pytest.raises(TypeError):
        BASELINES["mine"] = KKF  # type: ignore[index]


def test_every_file_of_an_algorithm_is_registered() -> None:
    shared = {"__init__", "contract", "gaussian", "buffers", "cholesky"}
    files = {path.stem for path in Path(baselines.__file__).parent.rglob("*.py")}
    assert files - shared == set(BASELINES)


# One sample ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "share"),
    [
        ("klms", {"step": 0.3}, 0.3),
        ("klmp", {"step": 0.3, "power": 2.0}, 0.3),
        ("qklms", {"step": 1.0}, 1.0),
        ("norma", {"step": 0.3}, 0.3),
        ("knlms", {"step": 1.0, "damping": 1.0}, 0.5),
        ("krls", {"ridge": 0.25}, 0.8),
        ("nonstill", {"ridge": 0.25}, 0.8),
        ("swkrls", {"ridge": 0.25}, 0.8),
        ("fbkrls", {"ridge": 0.25}, 0.8),
        ("aldkrls", {}, 1.0),
        ("krlst", {"noise": 0.25, "jitter": 1e-12}, 0.8),
        ("kkf", {"noise": 0.25}, 0.8),
        ("recursive", {"ridge": 0.25}, 0.64),
    ],
)
def test_one_sample_comes_back_by_its_share(
    name: str, settings: dict[str, Any], share: float
) -> None:
    model = taught(BASELINES[name](**settings), X[5:6], np.array([3.0]))
    np.testing.assert_allclose(model.predict(X[5:6]), 3.0 * share, rtol=1e-10)


# KAFBOX and kmbox, run under GNU Octave -----------------------------------------------------------

COUNT = np.arange(1, 401)
WALK = 4 * np.mod(np.outer(COUNT, [0.7548776662466927, 0.5698402909980532]), 1.0)
NOISY = np.sin(1.5 * WALK[:, 0]) * np.cos(WALK[:, 1]) + 0.05 * np.sin(37 * COUNT)
TARGETS = np.array([(0.5, 0.5), (1, 3), (2, 2), (3.3, 0.7), (3.9, 3.9)])


def ahead(model: Baseline) -> np.ndarray:
    """Each value as guessed before it is learnt."""
    guesses = np.empty(len(WALK))
    for i, x in enumerate(WALK):
        guesses[i] = model.predict(x[None])[0]
        model.update(x, NOISY[i])
    return guesses


# KAFBOX 2.2 (norma in its order) and, with label_step, kmbox, both run under GNU Octave 7.3; the
# original order of norma: an independent numpy version. Mean squared error of all guesses, size,
# and the answers at the first three targets.
PRINTED: list[tuple[str, dict[str, Any], float, int, tuple[float, float, float]]] = [
    ("klms", {"step": 0.2, "budget": 100}, 0.0393767920462, 100,
     (0.482827904454, -0.829180311802, -0.0424965658622)),
    ("qklms", {"step": 0.5, "radius": 0.4}, 0.018267575709, 65,
     (0.638925060479, -1.01785641323, -0.0412522768991)),
    ("norma", {"window": 50, "step": 0.2, "order": "shrink-first"}, 0.113884193268, 50,
     (0.294231355061, -0.448503036825, -0.0233570439889)),
    ("norma", {"window": 50, "step": 0.2}, 0.113990828479, 50,
     (0.293994677019, -0.448105279583, -0.0233354541601)),
    ("swkrls", {"window": 50}, 0.01115653191, 50,
     (0.606046156917, -1.02567359282, -0.0171106704399)),
    ("fbkrls", {"budget": 50}, 0.0112758414538, 50,
     (0.587007255669, -0.979166600597, -0.0516545874372)),
    ("fbkrls", {"budget": 50, "label_step": 0.1}, 0.042887714133, 50,
     (0.616536065489, -0.629553297716, -0.0760404439607)),
    ("aldkrls", {"tolerance": 0.01}, 0.0108415454104, 63,
     (0.607041977152, -0.992295619111, -0.0533766542077)),
    ("aldkrls", {"tolerance": 0.01, "budget": 20}, 0.0170763521218, 20,
     (0.662791290898, -0.99323895787, -0.0576393859532)),
    ("krlst", {"budget": 50}, 0.0115725036606, 50,
     (0.61285973031, -0.999022956388, -0.0282108898343)),
    ("knlms", {}, 0.0228146159082, 156,
     (0.642462472613, -0.978472640147, -0.0656220418539)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "error", "size", "answers"), PRINTED)
def test_as_kafbox(
    name: str, settings: dict[str, Any], error: float, size: int, answers: tuple[float, ...]
) -> None:
    model = BASELINES[name](sigma=0.7, **settings)
    guesses = ahead(model)
    np.testing.assert_allclose(np.mean((guesses - NOISY) ** 2), error, rtol=1e-10)
    assert model.size == size
    np.testing.assert_allclose(model.predict(TARGETS[:3]), answers, rtol=1e-10)
    np.testing.assert_allclose(
        taught(BASELINES[name](sigma=0.7, **settings), WALK, NOISY).predict(TARGETS[:3]),
        answers,
        rtol=1e-10,
    )


@pytest.mark.parametrize(
    ("settings", "scale", "variances"),
    [
        ({}, 0.0561756605179824, (0.001772468076, 0.001851846006, 0.001567088945)),
        (
            {"forgetting": 1.0, "noise": 0.1},
            0.0236950313622752,
            (0.002993211023, 0.002803767992, 0.002906598012),
        ),
    ],
)
def test_krlst_variance_as_kafbox(
    settings: dict[str, Any], scale: float, variances: tuple[float, ...]
) -> None:
    model = KRLST(sigma=0.7, budget=50, **settings)
    assert np.isnan(model.variance(TARGETS)).all()
    taught(model, WALK, NOISY)
    np.testing.assert_allclose(model.scale, scale, rtol=1e-10)
    np.testing.assert_allclose(model.variance(TARGETS[:3]), variances, rtol=1e-9)


LETTERS = {"kernelpar": "sigma", "eta": "step", "tau": "window", "epsu": "radius"} | {
    "c": "ridge",
    "nu": "tolerance",
    "sn2": "noise",
    "mu": "label_step",
}
SHARED_LETTERS = {
    "lambda": {"norma": "regularization", "fbkrls": "ridge", "krlst": "forgetting"},
    "M": {"klms": "budget", "swkrls": "window", "fbkrls": "budget"}
    | {"aldkrls": "budget", "krlst": "budget"},
}


def oracle_rows() -> list[dict[str, str]]:
    if not ORACLE.exists():
        return []
    with ORACLE.open() as lines:
        return list(csv.DictReader(lines))


def oracle_model(row: dict[str, str]) -> Baseline:
    name = row["algo"].removeprefix("kmbox_").removesuffix("_var")
    name = "aldkrls" if name == "krls" else name
    given = dict(pair.split("=") for pair in row["params"].split(";") if pair)
    given.pop("tcoeff", None)  # declared by KAFBOX, without effect
    settings: dict[str, Any] = {"order": "shrink-first"} if name == "norma" else {}
    for letter, value in given.items():
        setting = LETTERS.get(letter) or SHARED_LETTERS[letter][name]
        settings[setting] = int(value) if setting in ("window", "budget") else float(value)
    return BASELINES[name](**settings)


@pytest.mark.skipif(not ORACLE.exists(), reason=f"{ORACLE} is not here")
@pytest.mark.parametrize("row", oracle_rows(), ids=lambda row: f"{row['algo']} {row['params']}")
def test_as_kafbox_to_all_digits(row: dict[str, str]) -> None:
    model = oracle_model(row)
    guesses = ahead(model)
    expected = [float(row[f"t{place}"]) for place in range(1, 6)]
    if row["algo"].endswith("_var"):
        assert isinstance(model, KRLST)
        np.testing.assert_allclose(model.variance(TARGETS), expected, rtol=1e-9)
        return
    np.testing.assert_allclose(model.predict(TARGETS), expected, rtol=0, atol=1e-9)
    assert model.size == int(row["dict_size"])
    errors = (guesses - NOISY) ** 2
    np.testing.assert_allclose(errors.mean(), float(row["osa_mse_all"]), atol=1e-9)
    np.testing.assert_allclose(errors[100:].mean(), float(row["osa_mse_after100"]), atol=1e-9)
    for place in (2, 3, 10, 400):
        np.testing.assert_allclose(
            guesses[place - 1], float(row[f"osa_pred_{place}"]), rtol=0, atol=1e-9
        )


# The algorithms written out, one sample at a time -------------------------------------------------

LONG = np.random.default_rng(5).uniform(0, 4, (700, 2))  # blocks, and a part of one
LONG[1::7] = LONG[::7]  # samples that repeat
CURVE = field(LONG)


def plain_qklms(points: np.ndarray, values: np.ndarray, radius: float) -> tuple[Any, Any]:
    centres, weights = [points[0]], [0.2 * values[0]]
    for x, y in zip(points[1:], values[1:], strict=True):
        error = y - gaussian(x[None], np.array(centres), 0.5)[0] @ weights
        distances = ((np.array(centres) - x) ** 2).sum(axis=1)
        nearest = int(np.argmin(distances))
        if distances[nearest] <= radius**2:
            weights[nearest] += 0.2 * error
        else:
            centres.append(x)
            weights.append(0.2 * error)
    return np.array(centres), np.array(weights)


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.05, 0.3, 2.0])
def test_qklms_in_blocks_is_qklms(radius: float) -> None:
    model = taught(BASELINES["qklms"](sigma=0.5, step=0.2, radius=radius), LONG, CURVE)
    centres, weights = plain_qklms(LONG, CURVE, radius)
    assert model.size == len(centres)
    np.testing.assert_allclose(
        model.predict(NEW), gaussian(NEW, centres, 0.5) @ weights, rtol=1e-10
    )


@pytest.mark.parametrize("window", [1, 5, 127, 128, 129, 300, 1000])
@pytest.mark.parametrize("order", ["original", "shrink-first"])
def test_norma_in_blocks_is_norma(window: int, order: str) -> None:
    settings = {"sigma": 0.5, "step": 0.3, "regularization": 0.05}
    model = taught(BASELINES["norma"](**settings, window=window, order=order), LONG, CURVE)
    weights, keep = np.zeros(0), 1 - 0.3 * 0.05
    for i, (x, y) in enumerate(zip(LONG, CURVE, strict=True)):
        k = gaussian(x[None], LONG[max(i - window, 0) : i], 0.5)[0]
        error = y - k @ weights * (keep if order == "shrink-first" else 1)
        weights = np.append(keep * weights, 0.3 * error)[-window:]
    expected = gaussian(NEW, LONG[-window:], 0.5) @ weights
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("power", [1.2, 2.0, 3.0])
def test_klmp_steps_down_the_gradient(power: float) -> None:
    model = taught(BASELINES["klmp"](sigma=0.5, step=0.2, power=power), LONG, CURVE)
    weights = np.zeros(len(LONG))
    for i, (x, y) in enumerate(zip(LONG, CURVE, strict=True)):
        error = y - gaussian(x[None], LONG[:i], 0.5)[0] @ weights[:i]
        weights[i] = 0.2 * abs(error) ** (power - 1) * np.sign(error)
    np.testing.assert_allclose(model.predict(NEW), gaussian(NEW, LONG, 0.5) @ weights, rtol=1e-8)


def test_klmp_of_power_two_is_klms() -> None:
    klmp, klms = BASELINES["klmp"](power=2.0, step=0.4), BASELINES["klms"](step=0.4)
    answers = [taught(model, LONG, CURVE).predict(NEW) for model in (klmp, klms)]
    np.testing.assert_allclose(*answers, rtol=1e-12)


def test_klmp_is_less_drawn_to_outliers() -> None:
    spoilt = CURVE.copy()
    spoilt[::20] += 30.0
    errors = [
        np.abs(taught(BASELINES["klmp"](power=p, step=0.1), LONG, spoilt).predict(NEW) - field(NEW))
        for p in (1.2, 2.0)
    ]
    assert errors[0].mean() < 0.5 * errors[1].mean()


# Kernel ridge regression --------------------------------------------------------------------------


def ridge_answers(points: np.ndarray, values: np.ndarray, sigma: float, ridge: float) -> np.ndarray:
    model = KernelRidge(alpha=ridge, kernel="rbf", gamma=1 / (2 * sigma**2))
    return np.asarray(model.fit(points, values).predict(NEW))


@pytest.mark.parametrize("learnt", [30, 40, 41, 350, 700])
def test_swkrls_is_ridge_regression_on_the_window(learnt: int) -> None:
    model = BASELINES["swkrls"](sigma=0.8, window=40, ridge=1e-3)
    taught(model, LONG[:learnt], CURVE[:learnt])
    last = slice(max(learnt - 40, 0), learnt)
    kernel = gaussian(LONG[last], LONG[last], 0.8) + 1e-3 * np.eye(min(learnt, 40))
    expected = gaussian(NEW, LONG[last], 0.8) @ np.linalg.solve(kernel, CURVE[last])
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-9)


def test_swkrls_does_not_drift() -> None:
    model = BASELINES["swkrls"](sigma=0.8, window=30, ridge=1e-2)
    taught(model, np.tile(LONG, (15, 1)), np.tile(CURVE, 15))
    expected = ridge_answers(LONG[-30:], CURVE[-30:], 0.8, 1e-2)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["krls", "swkrls", "fbkrls"])
def test_with_room_for_all_samples_it_is_ridge_regression(name: str) -> None:
    room = {"krls": {}, "swkrls": {"window": 700}, "fbkrls": {"budget": 700}}[name]
    model = taught(BASELINES[name](sigma=0.8, ridge=1e-2, **room), LONG, CURVE)
    expected = ridge_answers(LONG, CURVE, 0.8, 1e-2)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("asked_after", [[1, 2, 3], [511, 512, 513], [5, 520, 1030, 1031]])
def test_krls_may_be_asked_at_any_time(asked_after: list[int]) -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 9, (asked_after[-1], 2))
    values, model = field(points), BASELINES["krls"](sigma=0.8, ridge=1e-3)
    for i, (x, y) in enumerate(zip(points, values, strict=True), start=1):
        model.update(x, y)
        if i in asked_after:
            expected = ridge_answers(points[:i], values[:i], 0.8, 1e-3)
            np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-8)


def test_krls_names_the_remedy_for_a_singular_matrix() -> None:
    model = taught(BASELINES["krls"](ridge=1e-300), X[:1], Y[:1])
    expected = model.predict(NEW)
    model.update(X[0], Y[0])
    with pytest.raises(InputError, match="Raise the ridge"):
        model.predict(NEW)
    np.testing.assert_array_equal(model.predict(NEW), expected)


def test_aldkrls_with_all_samples_independent_interpolates() -> None:
    model = taught(BASELINES["aldkrls"](sigma=0.3, tolerance=1e-8), X, Y)
    assert model.size == len(X)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-9)


def test_aldkrls_solves_least_squares_in_its_dictionary() -> None:
    """All samples regressed on the projections that the dictionary had when each came."""
    model = taught(BASELINES["aldkrls"](sigma=0.7, tolerance=0.02), WALK, NOISY)
    kept: list[int] = []
    rows = []
    for i, x in enumerate(WALK):
        k = gaussian(WALK[kept], x[None], 0.7)[:, 0]
        a = np.linalg.solve(gaussian(WALK[kept], WALK[kept], 0.7), k) if kept else k
        if 1 - k @ a > 0.02:
            kept.append(i)
            a = np.append(np.zeros(len(kept) - 1), 1.0)
        rows.append(a)
    design = np.zeros((len(WALK), len(kept)))
    for i, a in enumerate(rows):
        design[i, : a.size] = a
    kernel = gaussian(WALK[kept], WALK[kept], 0.7)
    weights = np.linalg.lstsq(design @ kernel, NOISY)[0]
    assert model.size == len(kept)
    expected = gaussian(TARGETS, WALK[kept], 0.7) @ weights
    np.testing.assert_allclose(model.predict(TARGETS), expected, atol=1e-8)


def test_krlst_without_forgetting_is_a_gaussian_process() -> None:
    model = KRLST(sigma=0.7, budget=100, noise=0.05, forgetting=1.0, jitter=1e-9)
    taught(model, WALK[:60], NOISY[:60])
    process = GaussianProcessRegressor(RBF(0.7), alpha=0.05, optimizer=None)
    mean, deviation = process.fit(WALK[:60], NOISY[:60]).predict(TARGETS, return_std=True)
    np.testing.assert_allclose(model.predict(TARGETS), mean, atol=1e-6)
    np.testing.assert_allclose(
        model.variance(TARGETS) / model.scale, deviation**2 + 0.05, rtol=1e-5
    )


# Space and time -----------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [-1, 0])
def test_nonstill_kernel_is_the_formula_of_the_paper(time: int) -> None:
    first, second = (0.3, 1.1), (0.9, -0.4)
    u, h = (first[time] - second[time]), (first[1 + time] - second[1 + time])
    a, b = 0.7, 1.3
    expected = (a**2 * u**2 + 1) ** -0.5 * np.exp(-(b**2) * h**2 / (a**2 * u**2 + 1))
    (found,) = covariance(a, b, time)(np.array([first]), np.array([second]).T).ravel()
    assert np.isclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("features", [1, 2, 3, 4])
def test_nonstill_kernel_is_positive_definite(features: int) -> None:
    points = np.random.default_rng(2).uniform(0, 4, (150, features))
    spectrum = np.linalg.eigvalsh(covariance(1.0, 1.0, -1)(points, points.T))
    assert spectrum[0] > -1e-12 * spectrum[-1]


def test_nonstill_is_ridge_regression_with_that_kernel() -> None:
    model = taught(BASELINES["nonstill"](ridge=1e-2), LONG, CURVE)
    kernel = covariance(1.0, 1.0, -1)
    system = KernelRidge(alpha=1e-2, kernel="precomputed").fit(kernel(LONG, LONG.T), CURVE)
    expected = system.predict(kernel(NEW, LONG.T))
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-9)


@pytest.mark.parametrize("noise", [0.3, 1e-3])
def test_kkf_is_the_gaussian_process_that_it_filters(noise: float) -> None:
    """Knots at all sites: a Gaussian kernel in space times an exponential one in time."""
    sites, times = np.array([0.0, 0.7, 1.5, 2.2]), np.array([0.0, 0.5, 0.6, 2.0, 3.5])
    points = grid(sites, times)
    points = points[points[:, 0] <= 1 + points[:, 1]]  # sites join as time goes
    values = field(points)
    model = taught(KKF(sigma=0.9, memory=2.0, noise=noise, tolerance=1e-9), points, values)
    asked = grid(sites, np.array([-1.0, 0.0, 0.3, 0.6, 3.4, 3.5, 5.0]))

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(RBF(0.9)(a[:, :1], b[:, :1]) * Matern(2.0, nu=0.5)(a[:, 1:], b[:, 1:]))

    weights = np.linalg.solve(kernel(points, points) + noise * np.eye(len(points)), values)
    np.testing.assert_allclose(model.predict(asked), kernel(asked, points) @ weights, atol=1e-9)


def test_kkf_keeps_the_knots_it_needs() -> None:
    assert taught(KKF(sigma=5.0, tolerance=1e-3), X, Y).size < 5
    assert taught(KKF(sigma=0.2, tolerance=1e-3), X, Y).size == 9
    assert taught(KKF(sigma=0.2, tolerance=1e-3, knots=3), X, Y).size == 3


def test_kkf_refuses_to_go_back_in_time() -> None:
    model = taught(KKF(), np.array([[0.0, 2.0]]), np.array([1.0]))
    with pytest.raises(InputError, match="Sort the samples by time"):
        model.update([0.0, 1.0], 1.0)


@pytest.mark.parametrize("name", ["kkf", "nonstill"])
def test_time_must_be_one_of_the_features(name: str) -> None:
    with pytest.raises(InputError, match="time"):
        BASELINES[name](time=2).update([0.0, 1.0], 1.0)


def test_kkf_needs_space() -> None:
    with pytest.raises(InputError, match="space"):
        KKF().update([0.0], 1.0)


# D-KRLS by its recursion --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(20,), (9, 12), (6, 5, 7), (4, 3, 5, 2)], ids=len)
def test_recursive_weights_are_those_of_the_cascade(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    axes = [rng.permutation(np.linspace(0, 12, m)) for m in shape]
    sigmas = [0.8 + 0.2 * place for place in range(len(shape))]
    values = rng.standard_normal(shape)
    model = RecursiveDKRLS(sigmas=sigmas, ridge=1e-3)
    taught(model, grid(*axes), values.ravel(order="F"))
    levels = [Level(f"d{place}", Kernel(sigma=s), 1e-3) for place, s in enumerate(sigmas)]
    whole = fit_cascade(values, axes, levels)
    expected = whole.weights(range(len(shape)))
    np.testing.assert_allclose(model.weights, expected, atol=1e-8 * np.abs(expected).max())
    new = [rng.uniform(0, 12, 3) for _ in shape]
    np.testing.assert_allclose(
        model.predict(grid(*new)), whole.predict(new).ravel(order="F"), atol=1e-8
    )


def test_recursive_answers_while_the_grid_is_incomplete() -> None:
    """The lines that are complete, and one that is cut short."""
    model = taught(RecursiveDKRLS(sigmas=(0.5, 0.6)), X[:22], Y[:22])
    assert model.weights.shape == (9, 3)
    np.testing.assert_allclose(model.predict(X[:18]), Y[:18], atol=1e-3)
    np.testing.assert_allclose(model.predict(X[18:22]), Y[18:22], atol=1e-3)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda points: np.delete(points, 4, axis=0),
        lambda points: np.delete(points, 13, axis=0),
        lambda points: np.insert(points, 13, points[12], axis=0),
        lambda points: points[np.argsort(points[:, 0], kind="stable")][::2],
    ],
)
def test_recursive_refuses_what_is_not_a_grid(
    spoil: Callable[[np.ndarray], np.ndarray],
) -> None:
    points = spoil(X)
    with pytest.raises(InputError, match="must be a grid"):
        taught(RecursiveDKRLS(), points, field(points))


def test_recursive_goes_on_after_a_refusal() -> None:
    model, expected = RecursiveDKRLS(), taught(RecursiveDKRLS(), X, Y).weights
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        if i in (13, 18):
            with pytest.raises(InputError, match="must be a grid"):
                model.update([x[0] + 0.1, x[1] + 0.1], 1.0)
        model.update(x, y)
    np.testing.assert_array_equal(model.weights, expected)


def test_recursive_needs_a_sigma_for_each_feature() -> None:
    with pytest.raises(InputError, match="3 features, the model 2 levels"):
        RecursiveDKRLS().update([0.0, 0.0, 0.0], 1.0)
    with pytest.raises(SettingError, match="one for each dimension"):
        RecursiveDKRLS(sigmas=())
