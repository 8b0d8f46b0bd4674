"""Which factor a level gets, and that a cascade answers with it as with a dense one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.factors import banded, choice
from dkrls_cli.cascade.factors import levels as module
from dkrls_cli.cascade.factors.levels import long_axis, make_factor, make_factors
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum, decompose
from dkrls_cli.errors import SettingError

X = np.linspace(0, 10, 60)
MATERN = Kernel("matern32", 5.0, constant=1.0)


def diagonal(*values: float) -> Spectrum:
    return Spectrum(np.eye(len(values)), np.array(values))


# ---- which factor


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the costly functions that were called, in their order."""
    called: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(module, name)

        def call(*arguments: Any) -> Any:
            called.append(name)
            return plain(*arguments)

        return call

    for name in ("gram", "decompose"):
        monkeypatch.setattr(module, name, counted(name))
    return called


def factor_of(size: int, known: Any = None) -> Any:
    return make_factor(np.arange(float(size)), Level("t", MATERN, 1e-3), known)


@pytest.mark.parametrize(("size", "long"), [(10, False), (11, True)])
def test_a_level_is_long_above_a_limit(
    size: int, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LONG", 10)
    assert isinstance(factor_of(size), LongFactor) == long


def test_a_known_factor_is_kept_or_extended(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LONG", 10)
    first = factor_of(20)
    assert factor_of(20, first) is first
    longer = factor_of(25, first)
    np.testing.assert_allclose(
        longer.inverse_diagonal(), factor_of(25).inverse_diagonal(), rtol=1e-12
    )
    assert calls == []


def test_a_known_spectrum_is_not_computed_again(calls: list[str]) -> None:
    kernel = Kernel("gaussian", 4.0)
    whole = decompose(gram(kernel, X, X))
    levels = [Level("a", kernel, 1e-20), Level("b", kernel, 1e-3)]
    found = make_factors([X, X], levels, None, [whole, whole])
    assert calls == []
    assert [s.rank for s in found] == [whole.expressible().rank, X.size]
    free = [Level("a", kernel), Level("b", kernel)]
    make_factors([X, X], free, 1e-3, [whole, whole])
    assert calls == []
    make_factors([X, X], free, 1e-3, [None, whole])
    assert calls == ["gram", "decompose"]


def test_a_known_spectrum_of_other_coordinates_is_computed_again(calls: list[str]) -> None:
    known = factor_of(20)
    calls.clear()
    longer = factor_of(25, known)
    assert calls == ["gram", "decompose"]
    np.testing.assert_array_equal(longer.values, factor_of(25).values)


GAUSSIAN = Kernel("gaussian", 8.0)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
def test_a_ridge_that_a_band_cannot_solve_with_is_never_raised_in_silence(
    joint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a spectrum can be made it is; a longer level is refused, and told what would do."""
    monkeypatch.setattr(choice, "LONG", 100)
    monkeypatch.setattr(banded, "LEAST_EIGENVALUE", 1e-6)
    axes = [np.arange(1500.0), np.arange(3.0)]

    def factor_with(ridge: float) -> Any:
        own = 0.0 if joint else ridge
        levels = [Level("t", GAUSSIAN, own), Level("x", Kernel("matern12", 1e-3), own)]
        return make_factors(axes, levels, ridge if joint else None, [None, None])[0]

    assert isinstance(factor_with(1e-4), LongFactor)
    assert isinstance(factor_with(1e-9), Spectrum)
    level = Level("t", GAUSSIAN, 1e-9)
    raised = LongFactor.build(GAUSSIAN, axes[0][:1400], 1e-9)
    assert isinstance(make_factor(axes[0], level, raised), Spectrum)  # known, and to be extended
    monkeypatch.setattr(module, "LARGEST", 1499)
    assert isinstance(factor_with(1e-4), LongFactor)
    with pytest.raises(SettingError, match="'t' cannot be solved with a ridge of 1e-09"):
        factor_with(1e-9)


def test_a_level_drops_what_its_share_of_a_joint_ridge_cannot_solve() -> None:
    """Beside values up to 8 of the other level, a ridge r counts r / 8."""
    known = [diagonal(2.0, 0.0), diagonal(8.0, 1.0)]
    axes, levels = [np.arange(2.0)] * 2, [Level("a"), Level("b")]
    limit = 8 * 2 * ROUND_OFF
    for ridge, rank in ((0.99 * limit, 1), (1.01 * limit, 2)):
        assert [s.rank for s in make_factors(axes, levels, ridge, known)] == [rank, 2]


def test_the_longest_of_several_levels_is_the_long_one_under_a_joint_ridge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "LONG", 10)
    levels = [Level(name, MATERN) for name in "abc"]
    axes = [np.arange(float(size)) for size in (12, 40, 30)]
    assert long_axis(axes, levels) == 1
    assert long_axis([axis[:10] for axis in axes], levels) is None
    kinds = [type(factor) for factor in make_factors(axes, levels, 0.1, [None] * 3)]
    assert kinds == [Spectrum, LongFactor, Spectrum]


def test_two_levels_that_are_too_long_for_a_spectrum_are_refused_under_a_joint_ridge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "LONG", 10)
    monkeypatch.setattr(module, "LARGEST", 29)
    levels = [Level("a", MATERN), Level("b", MATERN)]
    axes = [np.arange(40.0), np.arange(30.0)]
    with pytest.raises(SettingError, match="'a' and 'b' both have more than 29 coordinates"):
        long_axis(axes, levels)
    assert long_axis([axes[0], axes[1][:29]], levels) == 0


# ---- answers

FAMILIES = {
    "rough": Kernel("matern12", 3.0),
    "constant": MATERN,
    "cycle": Kernel("matern52", 4.0, constant=1.0, cycle=7.0, swing=2.0),
    "gaussian": Kernel("gaussian", 1.0),
}

GRIDS = {  # shape, kernels, and the size above which a level is long
    "one level": ((150,), ["constant"], 100),
    "first": ((150, 6), ["constant", "gaussian"], 100),
    "last": ((6, 150), ["gaussian", "cycle"], 100),
    "middle": ((6, 150, 5), ["rough", "constant", "cycle"], 100),
    "framed": ((130, 7, 8), ["cycle", "rough", "constant"], 100),
    "two": ((90, 20), ["cycle", "cycle"], 10),
}


def asked(model: Cascade, axes: list[Array]) -> dict[str, Array]:
    """Return all that a cascade can answer, between coordinates and at some of them.

    How errors grow with the gap is measured on levels that are not long.
    """
    rng, bars = np.random.default_rng(5), calibrate(model)
    if isinstance(bars, LevelBars):
        bars = replace(bars, growth=())
    grid = [np.concatenate([rng.uniform(c.min(), c.max(), 17), c[2:5]]) for c in axes]
    points = [rng.uniform(c.min(), c.max(), 50) for c in axes]
    for place, vector in enumerate(points):
        some = slice(0, 10 * (place + 1))
        vector[some] = np.resize(axes[place], vector[some].size)
    blocks = [values.ravel() for _, values in model.predict_blocks(grid, 200)]
    longest = int(np.argmax(model.shape))
    few = [query if axis == longest else query[:3] for axis, query in enumerate(grid)]
    parts = [values.ravel() for _, values in model.predict_blocks(few, 25)]
    np.testing.assert_allclose(np.concatenate(parts), model.predict(few).ravel(), atol=1e-9)
    found = {
        "grid": model.predict(grid),
        "smooth": model.predict(grid, smooth=True),
        "data": model.predict(),
        "last axis": model.predict([*[None] * (model.ndim - 1), grid[-1]]),
        "first axis": model.predict([grid[0], *[None] * (model.ndim - 1)]),
        "few": model.predict([*grid[:-1], grid[-1][:1]]),
        "points": model.predict_points(points),
        "smooth points": model.predict_points(points, smooth=True),
        "weights": model.weights(range(model.ndim)),
        "errors": bars.errors,
        "variance": variance_on_grid(bars, model, grid),
        "smooth variance": variance_on_grid(bars, model, grid, smooth=True),
        "variance at points": bars.variance_at_points(model, points),
    }
    np.testing.assert_allclose(np.concatenate(blocks), found["grid"].ravel(), atol=1e-9)
    for axis in range(model.ndim if model.ndim > 1 else 0):
        mixed = [grid[a] if a == axis else points[a] for a in range(model.ndim)]
        found[f"spread {axis}"] = model.predict_points(mixed, spread=[axis])
        found[f"variance, spread {axis}"] = bars.variance_at_points(model, mixed, spread=[axis])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rising", [True, False], ids=["rising", "any order"])
@pytest.mark.parametrize("joint_ridge", [None, 0.03], ids=["levels", "joint"])
@pytest.mark.parametrize("name", GRIDS)
def test_long_levels_answer_as_others_do(
    name: str, joint_ridge: float | None, rising: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, kinds, limit = GRIDS[name]
    rng = np.random.default_rng(len(name))
    axes = [np.cumsum(rng.uniform(0.2, 1, size)) for size in shape]
    axes = [axis if rising else rng.permutation(axis) for axis in axes]
    values = rng.standard_normal(shape).cumsum(axis=0)
    if name == "framed":
        values = np.multiply.outer(np.sin(axes[0]), rng.standard_normal(shape[1:]))
    ridges = [0.0 if joint_ridge else ridge for ridge in (1e-3, 1e-4, 0.1)]
    levels = [
        Level(f"d{place}", FAMILIES[kind], ridge)
        for place, (kind, ridge) in enumerate(zip(kinds, ridges, strict=False))
    ]
    dense = fit_cascade(values, axes, levels, joint_ridge=joint_ridge, mean=0.7)
    expected = asked(dense, axes)
    monkeypatch.setattr(choice, "LONG", limit)
    model = fit_cascade(values, axes, levels, joint_ridge=joint_ridge, mean=0.7)
    long = [model.is_long(axis) for axis in range(model.ndim)]
    assert sum(long) == (2 if name == "two" and joint_ridge is None else 1)
    assert (model.frames[int(np.argmax(shape))] is not None) == (name == "framed")
    for what, answers in asked(model, axes).items():
        scale = float(np.abs(expected[what]).max())
        np.testing.assert_allclose(answers, expected[what], atol=1e-9 * scale, err_msg=what)
    np.testing.assert_array_equal(model.predict(), dense.predict())


def test_a_factor_is_made_when_its_axis_is_asked_between_coordinates() -> None:
    levels = [Level(name, MATERN, 1e-3) for name in "ab"]
    trained = fit_cascade(np.random.default_rng(0).random((30, 40)), [X[:30], X[:40]], levels)
    model = Cascade(trained.levels, trained.coordinates, (None, None), trained.frames, trained.core)
    model.predict()
    assert [model.known_factor(axis) for axis in (0, 1)] == [None, None]
    model.predict([None, [0.3]])
    assert model.known_factor(0) is None
    assert model.known_factor(1) is not None
