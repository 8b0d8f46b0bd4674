"""Ensembles against dense covariances: by what every random number does, and by drawing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from dense_draws import cells_of, covariance_of, joint_covariance, level_covariance

from dkrls_cli.cascade import ensembles as module
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing import fields, roots
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import FilledBars, LevelBars
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError

RNG = np.random.default_rng(21)
AXES = [np.arange(0.0, 360.0, 60.0), np.sort(RNG.uniform(0, 5, 5)), np.sort(RNG.uniform(0, 9, 7))]
KERNELS = [
    Kernel("matern52", 60.0, period=360.0),
    Kernel("gaussian", 0.9, constant=0.5),
    Kernel("matern32", 1.2, constant=1.0, cycle=4.0),
]
VALUES = RNG.standard_normal((6, 5, 7))
NEW = [
    np.array([10.0, 60.0, -350.0, 100.0]),  # 10 twice, a node
    np.array([0.3, AXES[1][2], 4.0]),
    np.array([0.5, AXES[2][3], 8.7]),
]
KINDS = ["level", "joint"]


def fitted(kind: str, ndim: int = 3) -> Cascade:
    joint = kind == "joint"
    ridges = (0.0,) * 3 if joint else (0.2, 0.1, 0.3)
    levels = [Level(n, k, r) for n, k, r in zip("abc", KERNELS, ridges, strict=True)][-ndim:]
    values = VALUES[(0,) * (3 - ndim)]
    return fit_cascade(values, AXES[-ndim:], levels, joint_ridge=0.2 if joint else None)


def dense(
    model: Cascade, bars: LevelBars | JointBars, points: Sequence[np.ndarray], smooth: bool = False
) -> np.ndarray:
    if isinstance(bars, JointBars):
        return joint_covariance(model, bars, points, smooth)
    return level_covariance(model, bars, points, smooth)


def station_cells(
    points: Sequence[np.ndarray], spread: Sequence[int]
) -> tuple[list[np.ndarray], int]:
    """Return all cells of stations as points, in the order of the answers."""
    count = next(p.size for axis, p in enumerate(points) if axis not in spread)
    places = np.meshgrid(np.arange(count), *(points[a] for a in spread), indexing="ij")
    cells = [
        places[1 + list(spread).index(axis)].ravel() if axis in spread else p[places[0].ravel()]
        for axis, p in enumerate(points)
    ]
    return cells, count


# The covariance, exactly --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smooth", [False, True])
def test_a_grid_has_the_covariance_of_the_model(kind: str, smooth: bool) -> None:
    model = fitted(kind)
    bars = calibrate(model)
    found = covariance_of(bars.deviations(model, NEW, smooth=smooth))
    expected = dense(model, bars, cells_of(NEW), smooth)
    np.testing.assert_allclose(found, expected, atol=1e-11 * expected.max())
    variance = variance_on_grid(bars, model, NEW, smooth=smooth).ravel()
    np.testing.assert_allclose(found.diagonal(), variance, atol=1e-12 * variance.max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [[], [0], [2], [0, 1], [1, 2]])
@pytest.mark.parametrize("smooth", [False, True])
def test_points_and_stations_have_the_covariance_of_the_model(
    kind: str, spread: list[int], smooth: bool
) -> None:
    model = fitted(kind)
    bars = calibrate(model)
    points = [q if axis in spread else np.resize(q, 4) for axis, q in enumerate(NEW)]
    draw = bars.deviations_at_points(model, points, spread=spread, smooth=smooth)
    cells, count = station_cells(points, spread)
    assert draw(0).shape == (count, *(points[axis].size for axis in spread))
    expected = dense(model, bars, cells, smooth)
    np.testing.assert_allclose(covariance_of(draw), expected, atol=1e-11 * expected.max())
    variance = bars.variance_at_points(model, points, spread=spread, smooth=smooth)
    np.testing.assert_allclose(expected.diagonal(), variance.ravel(), atol=1e-11 * expected.max())


@pytest.mark.parametrize("kind", KINDS)
def test_one_level_has_the_covariance_of_the_model(kind: str) -> None:
    model = fitted(kind, ndim=1)
    bars = calibrate(model)
    expected = dense(model, bars, NEW[2:])
    for draw in (bars.deviations(model, NEW[2:]), bars.deviations_at_points(model, NEW[2:])):
        np.testing.assert_allclose(covariance_of(draw), expected, atol=1e-11 * expected.max())


LONG_T = np.sort(RNG.uniform(0, 12, 30))
LONG_NEW = [np.array([0.3, 1.0, 1.6]), np.array([0.5, LONG_T[3], LONG_T[4], 8.7, 8.9])]


def long_model(kind: str, kernel: Kernel = KERNELS[2], t: np.ndarray = LONG_T) -> Cascade:
    joint = kind == "joint"
    levels = [Level("x", KERNELS[1], 0.0 if joint else 0.1), Level("t", kernel, 0.5 * (not joint))]
    values = np.random.default_rng(5).standard_normal((3, 30))
    axes = [np.array([0.0, 1.0, 2.2]), t]
    return fit_cascade(values, axes, levels, joint_ridge=0.2 if joint else None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("few", [4, 1024], ids=["drawn along", "dense"])
@pytest.mark.parametrize("long", [20, 1024], ids=["long", "short"])
def test_long_levels_have_the_covariance_of_the_model(
    kind: str, few: int, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LONG", long)
    for each in (fields, roots):
        monkeypatch.setattr(each, "FEW", few)
    model = long_model(kind)
    assert model.is_long(1) == (long == 20)
    bars = calibrate(model)
    query = [LONG_NEW[0], np.append(LONG_NEW[1], [2.2, 6.1, 6.15])]
    expected = dense(model, bars, cells_of(query))
    found = covariance_of(bars.deviations(model, query))
    np.testing.assert_allclose(found, expected, atol=1e-9 * expected.max())


@pytest.mark.slow
@pytest.mark.parametrize("spread", [[], [0], [1]])
def test_points_of_a_long_level_have_the_posterior_covariance(
    spread: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LONG", 20)
    model = long_model("joint")
    bars = calibrate(model)
    points = [q if a in spread else np.resize(q, 4) for a, q in enumerate(LONG_NEW)]
    expected = dense(model, bars, station_cells(points, spread)[0])
    found = covariance_of(bars.deviations_at_points(model, points, spread=spread))
    np.testing.assert_allclose(found, expected, atol=1e-10 * expected.max())


def test_many_new_coordinates_of_a_short_level_are_drawn_along_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each in (fields, roots):
        monkeypatch.setattr(each, "FEW", 4)
    query = [NEW[1], np.sort(RNG.uniform(0, 9, 6))]
    for kind in KINDS:
        model = fitted(kind, ndim=2)
        bars = calibrate(model)
        expected = dense(model, bars, cells_of(query))
        found = covariance_of(bars.deviations(model, query))
        np.testing.assert_allclose(found, expected, atol=1e-9 * expected.max())


def test_smooth_data_with_a_tiny_ridge_keeps_its_variance() -> None:
    """The open covariance is round-off of the prior, and the variance is exact all the same."""
    x = np.linspace(0, 3, 30)
    levels = [Level(n, Kernel("gaussian", 1.0), 1e-12) for n in "xy"]
    model = fit_cascade(np.outer(np.sin(x), np.cos(x)), [x, x], levels)
    bars, query = calibrate(model), [np.linspace(0.01, 3.2, 9), np.append(x[:3], 2.01)]
    variance = variance_on_grid(bars, model, query).ravel()
    found = covariance_of(bars.deviations(model, query)).diagonal()
    np.testing.assert_allclose(found, variance, rtol=1e-9)


# Factors of patterns ------------------------------------------------------------------------------


def test_factors_change_widths_and_not_correlations() -> None:
    model = fitted("level", ndim=2)
    bars = calibrate(model)
    wide = LevelBars(bars.errors, bars.scales, np.array([[1.0, 4.0], [9.0, 25.0]]))
    plain = LevelBars(bars.errors, bars.scales, np.ones((2, 2)))
    query = NEW[1:]
    one, other = (covariance_of(b.deviations(model, query)) for b in (wide, plain))
    sizes = np.where(one.diagonal() > 0, np.sqrt(one.diagonal()), 1.0)
    plainer = np.where(other.diagonal() > 0, np.sqrt(other.diagonal()), 1.0)
    np.testing.assert_allclose(
        one / np.outer(sizes, sizes), other / np.outer(plainer, plainer), atol=1e-12
    )
    assert (sizes / plainer).round(12).reshape(3, 3).tolist() == [[5, 3, 5], [2, 1, 2], [5, 3, 5]]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_ridge_is_noise_of_cells_as_far_as_all_levels_have_it(axis: int) -> None:
    """Two cells that all but coincide share their error, but for the noise of each of them."""
    model = fitted("level")
    bars, ridges = calibrate(model), np.array([level.ridge for level in model.levels])
    variances = np.array([kernel.variance for kernel in KERNELS])
    query = [np.array([10.0]), np.array([0.3]), np.array([0.5])]
    query[axis] = query[axis] + np.array([0.0, 1e-9])
    found = covariance_of(bars.deviations(model, query))
    white = (ridges / variances).min() * variances
    assert 0 < white[0] < ridges[0]
    noise = white.copy()
    noise[axis] = ridges[axis]  # what is no noise of cells is independent along its own axis
    expected = bars.factors[1, 1, 1] * bars.scales @ noise
    assert found[0, 0] - found[0, 1] == pytest.approx(expected, rel=1e-6)


def test_a_level_of_one_coordinate_says_nothing_of_noise() -> None:
    levels = [Level("t", Kernel(), 0.0), *(Level(n, Kernel("matern32", 1.0), 0.2) for n in "xy")]
    x, values = np.arange(6.0), np.random.default_rng(1).standard_normal((1, 6, 6))
    model = fit_cascade(values, [np.zeros(1), x, x], levels)
    assert module.split_ridges(model) == ([0.0, 0.2, 0.2], [0.0, 0.0, 0.0])
    alone = fit_cascade(np.ones(1), [np.zeros(1)], [Level("t", Kernel(), 0.3)])
    assert module.split_ridges(alone) == ([0.0], [0.3])


# Members ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smooth", [False, True])
def test_members_spread_as_wide_as_the_error_bars(kind: str, smooth: bool) -> None:
    model = fitted(kind)
    bars, count = calibrate(model), 2500
    draw = bars.deviations(model, NEW, smooth=smooth, seed=7)
    members = np.stack([draw(i) for i in range(count)])
    variance = variance_on_grid(bars, model, NEW, smooth=smooth)
    certain = variance == 0
    assert certain.any() != smooth
    assert not members[:, certain].any()
    ratios = members.var(axis=0)[~certain] / variance[~certain]
    assert np.abs(ratios - 1).max() < 5 * np.sqrt(2 / count)
    means = members.mean(axis=0)[~certain] / np.sqrt(variance[~certain] / count)
    assert np.abs(means).max() < 4.5


@pytest.mark.parametrize("kind", KINDS)
def test_means_over_regions_are_as_uncertain_as_the_model_says(kind: str) -> None:
    model = fitted(kind)
    bars, count = calibrate(model), 2500
    query = [np.arange(5.0, 120.0, 9.0), np.linspace(0.2, 4.0, 6), np.array([0.5, 0.7])]
    draw = bars.deviations(model, query, seed=2)
    means = np.array([draw(i).mean() for i in range(count)])
    expected = dense(model, bars, cells_of(query)).mean()
    assert means.var() == pytest.approx(expected, rel=5 * np.sqrt(2 / count))
    independent = variance_on_grid(bars, model, query).mean() / means.size
    assert expected > 20 * independent


@pytest.mark.parametrize("kind", KINDS)
def test_training_cells_never_deviate(kind: str) -> None:
    model = fitted(kind)
    bars = calibrate(model)
    assert not bars.deviations(model, AXES)(3).any()
    assert not bars.deviations_at_points(model, [a[:3] for a in AXES])(3).any()
    at_nodes = bars.deviations(model, NEW)(1)[1, 1, 1]
    assert at_nodes == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_depends_on_seed_and_number_only(kind: str) -> None:
    model = fitted(kind)
    bars = calibrate(model)
    draw = bars.deviations(model, NEW, seed=3)
    in_order = [draw(i) for i in range(4)]
    np.testing.assert_array_equal(draw(1), in_order[1])
    again = bars.deviations(model, NEW, seed=3)
    np.testing.assert_array_equal(again(3), in_order[3])
    assert not np.allclose(in_order[0], in_order[1])
    assert not np.allclose(bars.deviations(model, NEW, seed=4)(0), in_order[0])
    np.testing.assert_array_equal(
        bars.deviations(model, NEW)(2), bars.deviations(model, NEW, seed=0)(2)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_queries_at_one_place_get_one_deviation(kind: str) -> None:
    model = fitted(kind)
    bars = calibrate(model)
    drawn = bars.deviations(model, NEW)(0)
    np.testing.assert_array_equal(drawn[0], drawn[2])  # 10 and -350 degrees
    points = [np.array([10.0, 370.0, 11.0]), np.full(3, 0.3), np.full(3, 0.5)]
    one, same, other = bars.deviations_at_points(model, points)(0)
    assert one == same != other


def test_numbers_are_numpys_of_seed_and_member() -> None:
    first = module.member_rng(5, 2).standard_normal(3)
    np.testing.assert_array_equal(first, np.random.default_rng([5, 2]).standard_normal(3))
    assert not np.allclose(first, module.member_rng(5, 2, stream=1).standard_normal(3))


@pytest.mark.parametrize("kind", KINDS)
def test_no_points_have_no_deviations(kind: str) -> None:
    model = fitted(kind)
    none = [np.empty(0)] * 3
    assert calibrate(model).deviations_at_points(model, none)(0).shape == (0,)
    stations = [np.empty(0), np.empty(0), NEW[2]]
    assert calibrate(model).deviations_at_points(model, stations, spread=[2])(0).shape == (0, 3)


# Filled cells -------------------------------------------------------------------------------------


def filled_bars(model: Cascade, filled: np.ndarray, axis: int) -> FilledBars:
    bars = calibrate(model)
    assert isinstance(bars, LevelBars)
    return FilledBars(bars, filled, axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_filled_cells_deviate_as_far_as_if_left_out(axis: int) -> None:
    model = fitted("level")
    bars = filled_bars(model, RNG.random((6, 5, 7)) < 0.2, axis)
    query = [np.append(AXES[0][1:4], 10.0), np.append(AXES[1][:3], 0.3), AXES[2][:4]]
    found = covariance_of(bars.deviations(model, query))
    variance = variance_on_grid(bars, model, query).ravel()
    np.testing.assert_allclose(found.diagonal(), variance, atol=1e-12 * variance.max())
    points = cells_of(query)
    at_points = covariance_of(bars.deviations_at_points(model, points))
    np.testing.assert_allclose(at_points.diagonal(), variance, atol=1e-12 * variance.max())


def test_filled_cells_go_together_as_slices_left_out_together() -> None:
    model = fitted("level")
    filled = np.zeros((6, 5, 7), bool)
    filled[1:3, 2, [3, 4, 6]] = True
    bars = filled_bars(model, filled, 2)
    kernel, ridge, t = KERNELS[2], model.levels[2].ridge, AXES[2]
    gone, known = [3, 4, 6], [0, 1, 2, 5]
    system = gram(kernel, t[known], t[known]) + ridge * np.eye(4)
    cross = gram(kernel, t[known], t[gone])
    left = gram(kernel, t[gone], t[gone]) - cross.T @ np.linalg.solve(system, cross)
    white = kernel.variance * min(level.ridge / level.kernel.variance for level in model.levels)
    assert 0 < white < ridge
    left += (ridge - white) * np.eye(3)
    related = left / np.sqrt(np.outer(left.diagonal(), left.diagonal()))
    share = left.diagonal() / (left.diagonal() + white)
    own = bars.level_bars.filled_variance(model, 2)[gone]
    along = np.sqrt(np.outer(own * share, own * share)) * related
    beside = gram(KERNELS[0], AXES[0][1:3], AXES[0][1:3])
    expected = np.kron(beside, along) + np.diag(np.tile(own * (1 - share), 2))
    found = covariance_of(bars.deviations(model, [AXES[0][1:3], AXES[1][2:3], t[gone]]))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    at_points = cells_of([AXES[0][1:3], AXES[1][2:3], t[gone]])
    found = covariance_of(bars.deviations_at_points(model, at_points))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_filled_cells_are_independent_of_the_rest_and_nothing_else_changes() -> None:
    model = fitted("level")
    filled = np.zeros((6, 5, 7), bool)
    filled[1, 2, 3] = True
    bars = filled_bars(model, filled, 2)
    plain = bars.level_bars.deviations(model, NEW, seed=9)(1)
    drawn = bars.deviations(model, NEW, seed=9)(1)
    assert drawn[1, 1, 1] != 0.0
    drawn[1, 1, 1] = 0.0
    np.testing.assert_array_equal(drawn, plain)
    smooth = bars.deviations(model, NEW, seed=9, smooth=True)(1)
    np.testing.assert_array_equal(
        smooth, bars.level_bars.deviations(model, NEW, seed=9, smooth=True)(1)
    )


def test_all_slices_may_be_filled() -> None:
    model = fitted("level")
    bars = filled_bars(model, np.ones((6, 5, 7), bool), 2)
    found = covariance_of(bars.deviations(model, [AXES[0][:1], AXES[1][:1], AXES[2]]))
    variance = bars.level_bars.filled_variance(model, 2)
    np.testing.assert_allclose(found.diagonal(), variance, rtol=1e-12)


def test_a_long_level_may_have_filled_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = np.zeros((3, 30), bool)
    filled[1, 20:26] = True
    query = [np.array([0.0, 1.0]), LONG_T[18:24]]
    short = covariance_of(
        filled_bars(model := long_model("level"), filled, 1).deviations(model, query)
    )
    monkeypatch.setattr(choice, "LONG", 20)
    for each in (fields, roots):
        monkeypatch.setattr(each, "FEW", 2)
    model = long_model("level")
    assert model.is_long(1)
    found = covariance_of(filled_bars(model, filled, 1).deviations(model, query))
    np.testing.assert_allclose(found, short, atol=1e-9)


# What is refused ----------------------------------------------------------------------------------


def test_too_many_filled_slices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("level")
    bars = filled_bars(model, np.ones((6, 5, 7), bool), 2)
    monkeypatch.setattr(module, "LARGEST", 6)
    bars.deviations(model, [AXES[0], AXES[1], AXES[2][:6]])
    with pytest.raises(SettingError, match=r"7 coordinates of 'c' that have filled .* Ask for 6"):
        bars.deviations(model, AXES)


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_points_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "LARGEST", 4)
    model = fitted(kind)
    bars = calibrate(model)
    points = [RNG.uniform(0, 4, 5) for _ in range(3)]
    with pytest.raises(SettingError, match=r"5 scattered points .* Ask for 4 points at most"):
        bars.deviations_at_points(model, points)
    same = [np.append(p[:4], p[:4]) for p in points]  # four places, twice
    assert bars.deviations_at_points(model, same)(0).shape == (8,)


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_coordinates_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "LARGEST", 4)
    model = fitted(kind)
    bars = calibrate(model)
    query = [np.arange(1.0, 6.0), np.array([0.3]), np.array([0.5])]
    with pytest.raises(SettingError, match=r"5 coordinates of 'a' .* matern52 kernel on a circle"):
        bars.deviations(model, query)
    other = [np.array([5.0]), np.linspace(0.1, 4, 5), np.array([0.5])]
    with pytest.raises(SettingError, match=r"5 coordinates of 'b' .* gaussian kernel. Ask for 4"):
        bars.deviations(model, other)


def test_a_long_circle_is_dense_or_refused_under_a_joint_ridge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "LONG", 20)
    model = long_model("joint", Kernel("gaussian", 40.0, period=360.0), np.arange(0.0, 360.0, 12.0))
    assert model.is_long(1)
    bars, query = calibrate(model), [LONG_NEW[0], np.array([-1.0, 0.0, 90.3])]
    expected = dense(model, bars, cells_of(query))
    found = covariance_of(bars.deviations(model, query))
    np.testing.assert_allclose(found, expected, atol=1e-9 * expected.max())
    monkeypatch.setattr(module, "LARGEST", 31)
    with pytest.raises(SettingError, match=r"30 samples of 't' .* gaussian kernel under a joint"):
        bars.deviations(model, query)
