"""What every baseline must do, and all of them against KAFBOX."""

import csv
import inspect
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baselines.known_samples import (
    NEW,
    NOISY,
    TARGETS,
    WALK,
    X,
    Y,
    predict_ahead,
    teach,
)

from dkrls_cli import baselines
from dkrls_cli.baselines import BASELINES, Baseline
from dkrls_cli.baselines.contract import POINTS_AT_ONCE, BlockBaseline, split_points
from dkrls_cli.baselines.least_squares.krlst import KRLST
from dkrls_cli.errors import InputError, SettingError

ORACLE = Path(__file__).parents[3] / "shared" / "data" / "kaf_oracle.csv"

each_baseline = pytest.mark.parametrize("name", BASELINES)


# The contract -------------------------------------------------------------------------------------


@each_baseline
class TestContract:
    def test_it_has_a_name_and_a_summary(self, name: str) -> None:
        kind = BASELINES[name]
        assert kind.paper_name
        assert kind.summary.endswith(".")
        assert len(kind.summary) < 80

    def test_before_training_answers_are_zero(self, name: str) -> None:
        model = BASELINES[name]()
        assert model.size == 0
        np.testing.assert_array_equal(model.predict(NEW), np.zeros(17))

    def test_every_update_changes_the_answers(self, name: str) -> None:
        model = BASELINES[name]()
        seen = [model.predict(NEW)]
        for x, y in zip(X[:3], Y[:3], strict=True):
            assert model.update(x, y) is None
            seen.append(model.predict(NEW))
        assert all((a != b).any() for a, b in pairwise(seen))
        assert model.size >= 1

    def test_shapes(self, name: str) -> None:
        model = teach(BASELINES[name](), X, Y)
        for count in (0, 1, 17):
            answers = model.predict(NEW[:count])
            assert answers.shape == (count,)
            assert answers.dtype == np.float64
        one_by_one = [model.predict(point[None])[0] for point in NEW]
        np.testing.assert_allclose(model.predict(NEW), one_by_one, rtol=1e-8, atol=1e-10)

    def test_many_points_are_answered_in_parts(self, name: str) -> None:
        model = teach(BASELINES[name](), X, Y)
        many = np.tile(NEW, (300, 1))
        expected = np.tile(model.predict(NEW), 300)
        np.testing.assert_allclose(model.predict(many), expected, rtol=1e-8, atol=1e-10)

    def test_asking_does_not_change_what_is_learnt(self, name: str) -> None:
        asked, quiet = BASELINES[name](), teach(BASELINES[name](), X, Y)
        for x, y in zip(X, Y, strict=True):
            asked.predict(x[None])
            asked.update(x, y)
        assert asked.size == quiet.size
        np.testing.assert_allclose(asked.predict(NEW), quiet.predict(NEW), rtol=1e-7, atol=1e-8)

    def test_the_same_samples_give_the_same_answers(self, name: str) -> None:
        first, second = (teach(BASELINES[name](), X, Y).predict(NEW) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_the_order_of_features_does_not_matter(self, name: str) -> None:
        kind = BASELINES[name]
        turned: dict[str, Any] = {}
        order = np.arange(len(X))
        if "time" in inspect.signature(kind).parameters:
            turned = {"time": 0}
        elif name == "recursive":  # its levels turn with the features, and which is fastest
            turned, order = {"sigmas": (0.3, 1.0)}, np.lexsort((X[:, 1], X[:, 0]))
        expected = teach(kind(), X, Y).predict(NEW)
        found = teach(kind(**turned), X[order, ::-1], Y[order]).predict(NEW[:, ::-1])
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)

    def test_repeated_samples_give_finite_answers(self, name: str) -> None:
        model = teach(BASELINES[name](), np.repeat(X[:1], 30, axis=0), np.repeat(Y[:1], 30))
        assert np.isfinite(model.predict(NEW)).all()
        np.testing.assert_allclose(model.predict(X[:1]), Y[:1], rtol=0.2)

    def test_learning_a_sample_reduces_the_error_there(self, name: str) -> None:
        model, before, after = BASELINES[name](), 0.0, 0.0
        for x, y in zip(X, Y, strict=True):
            before += abs(y - model.predict(x[None])[0])
            model.update(x, y)
            after += abs(y - model.predict(x[None])[0])
        assert after < 0.9 * before

    def test_arguments_are_copied(self, name: str) -> None:
        model, x = BASELINES[name](), X[0].copy()
        model.update(x, Y[0])
        expected = model.predict(NEW)
        x[:] = 99.0
        np.testing.assert_array_equal(model.predict(NEW), expected)

    def test_unusable_samples_are_refused(self, name: str) -> None:
        model = teach(BASELINES[name](), X[:2], Y[:2])
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

    def test_a_refused_first_sample_sets_nothing(self, name: str) -> None:
        model = BASELINES[name]()
        for x, y in (([np.nan, 0.0], 1.0), ([[1.0, 2.0]], 1.0), ([], 1.0)):
            with pytest.raises(InputError, match="Invalid sample"):
                model.update(x, y)
        np.testing.assert_array_equal(model.predict(NEW), np.zeros(17))
        assert np.isfinite(teach(model, X, Y).predict(NEW)).all()

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


# Those of KAFBOX where it has the method; the others are this package's own.
DEFAULTS: dict[str, dict[str, Any]] = {
    "klms": {"sigma": 1.0, "step": 0.5, "budget": 10_000},
    "klmp": {"sigma": 1.0, "step": 0.2, "power": 1.5, "budget": 10_000},
    "knlms": {"sigma": 1.0, "step": 0.5, "coherence": 0.95, "damping": 1e-2},
    "qklms": {"sigma": 1.0, "step": 0.9, "radius": 0.1},
    "norma": {"sigma": 1.0, "step": 0.5, "regularization": 1e-2, "window": 500}
    | {"order": "original"},
    "krls": {"sigma": 1.0, "ridge": 1e-6},
    "skrls": {"sigma": 1.0, "tolerance": 1e-4, "budget": 1000},
    "swkrls": {"sigma": 1.0, "window": 250, "ridge": 1e-2},
    "fbkrls": {"sigma": 1.0, "budget": 100, "ridge": 1e-2, "label_step": 0.0},
    "krlst": {"sigma": 1.0, "budget": 100, "noise": 1e-2, "forgetting": 0.999, "jitter": 1e-6},
    "nonstill": {"time_rate": 1.0, "space_rate": 1.0, "ridge": 1e-6, "time": -1},
    "kkf": {"sigma": 1.0, "memory": 10.0, "noise": 1e-4, "tolerance": 1e-4, "knots": 200}
    | {"time": -1},
    "recursive": {"sigmas": (1.0, 0.3), "ridge": 1e-6},
}  # fmt: skip


@each_baseline
def test_defaults(name: str) -> None:
    settings = inspect.signature(BASELINES[name]).parameters.values()
    assert {setting.name: setting.default for setting in settings} == DEFAULTS[name]


def test_every_file_of_an_algorithm_is_registered() -> None:
    shared = {"__init__", "contract", "gaussian", "buffers", "cholesky"}
    shared |= {"checks", "expansion", "fixed_size"}
    files = {path.stem for path in Path(baselines.__file__).parent.rglob("*.py")}
    assert files - shared == set(BASELINES)


class Recorder(BlockBaseline):
    """Records the blocks that it is given."""

    def __init__(self) -> None:
        super().__init__(block=3)
        self.blocks: list[list[float]] = []

    @property
    def size(self) -> int:
        return 0

    def _learn_block(self, points: np.ndarray, values: np.ndarray) -> None:
        assert points.shape == (len(values), 2)
        self.blocks.append(values.tolist())

    def _answer(self, points: np.ndarray) -> np.ndarray:
        self._learn_waiting()
        return np.zeros(len(points))


def test_samples_wait_until_a_block_is_full_or_an_answer_is_needed() -> None:
    model = Recorder()
    for value in range(7):
        model.update([0.0, 1.0], float(value))
    assert model.blocks == [[0, 1, 2], [3, 4, 5]]
    model.predict([[0.0, 1.0]])
    model.predict([[0.0, 1.0]])
    assert model.blocks == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize("count", [1, POINTS_AT_ONCE, POINTS_AT_ONCE + 1, 2 * POINTS_AT_ONCE])
def test_points_are_split_into_equal_parts_and_a_rest(count: int) -> None:
    points = np.arange(2.0 * count).reshape(count, 2)
    parts = split_points(points)
    assert max(map(len, parts)) <= POINTS_AT_ONCE
    assert len(parts) == -(-count // POINTS_AT_ONCE)
    np.testing.assert_array_equal(np.concatenate(parts), points)


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
        ("skrls", {}, 1.0),
        ("krlst", {"noise": 0.25, "jitter": 1e-12}, 0.8),
        ("kkf", {"noise": 0.25}, 0.8),
        ("recursive", {"ridge": 0.25}, 0.64),
    ],
)
def test_one_sample_comes_back_by_its_share(
    name: str, settings: dict[str, Any], share: float
) -> None:
    model = teach(BASELINES[name](**settings), X[5:6], np.array([3.0]))
    np.testing.assert_allclose(model.predict(X[5:6]), 3.0 * share, rtol=1e-10)


# KAFBOX and kmbox, run under GNU Octave -----------------------------------------------------------


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
    ("skrls", {"tolerance": 0.01}, 0.0108415454104, 63,
     (0.607041977152, -0.992295619111, -0.0533766542077)),
    ("skrls", {"tolerance": 0.01, "budget": 20}, 0.0170763521218, 20,
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
    guesses = predict_ahead(model, WALK, NOISY)
    np.testing.assert_allclose(np.mean((guesses - NOISY) ** 2), error, rtol=1e-10)
    assert model.size == size
    np.testing.assert_allclose(model.predict(TARGETS[:3]), answers, rtol=1e-10)
    np.testing.assert_allclose(
        teach(BASELINES[name](sigma=0.7, **settings), WALK, NOISY).predict(TARGETS[:3]),
        answers,
        rtol=1e-10,
    )


LETTERS = {"kernelpar": "sigma", "eta": "step", "tau": "window", "epsu": "radius"} | {
    "c": "ridge",
    "nu": "tolerance",
    "sn2": "noise",
    "mu": "label_step",
}
SHARED_LETTERS = {
    "lambda": {"norma": "regularization", "fbkrls": "ridge", "krlst": "forgetting"},
    "M": {"klms": "budget", "swkrls": "window", "fbkrls": "budget"}
    | {"skrls": "budget", "krlst": "budget"},
}


def oracle_rows() -> list[dict[str, str]]:
    if not ORACLE.exists():
        return []
    with ORACLE.open() as lines:
        return list(csv.DictReader(lines))


def oracle_model(row: dict[str, str]) -> Baseline:
    name = row["algo"].removeprefix("kmbox_").removesuffix("_var")
    name = "skrls" if name == "krls" else name
    given = dict(pair.split("=") for pair in row["params"].split(";") if pair)
    given.pop("tcoeff", None)  # declared by KAFBOX, without effect
    settings: dict[str, Any] = {"order": "shrink-first"} if name == "norma" else {}
    for letter, value in given.items():
        setting = LETTERS.get(letter) or SHARED_LETTERS[letter][name]
        settings[setting] = int(value) if setting in ("window", "budget") else float(value)
    return BASELINES[name](**settings)


@pytest.mark.skipif(
    not ORACLE.exists(), reason="needs ../shared/data/kaf_oracle.csv; test_as_kafbox has part of it"
)
@pytest.mark.parametrize("row", oracle_rows(), ids=lambda row: f"{row['algo']} {row['params']}")
def test_as_kafbox_to_all_digits(row: dict[str, str]) -> None:
    model = oracle_model(row)
    guesses = predict_ahead(model, WALK, NOISY)
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
