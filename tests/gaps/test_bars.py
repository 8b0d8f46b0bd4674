"""Error bars of grids with missing cells, against dense conditioning and brute force."""

import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.cascade.errorbars.bars import Z90, variance_on_grid
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps import bars as module
from dkrls_cli.gaps import samples
from dkrls_cli.gaps.bars import GapBars, field_variance, rescale
from dkrls_cli.gaps.calibration.local import left_out_errors, local_scale
from dkrls_cli.gaps.calibration.nearest import distance
from dkrls_cli.gaps.calibration.widths import scale_by_distance
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.pattern import distance_to_data
from dkrls_cli.gaps.samples import posterior_variance

RIDGE = 1e-3

# ---- the variance of answers

KERNELS = [Kernel("matern32", 2.0), Kernel("gaussian", 1.5, period=12.0), Kernel("matern12", 3.0)]
AXES = [np.array([3.0, 0.0, 1.0, 2.5]), np.array([0.0, 5.0, 9.0]), np.array([0.0, 1.0])]
OBSERVED = np.random.default_rng(1).random((4, 3, 2)) < 0.6
NEW = [
    np.array([-1.0, 0.4, 2.5, 9.0]),
    np.array([5.0, 10.5, -3.0, 1.0]),
    np.array([0.25, 1.0, 7.0]),
]


def barred(power: float = 0.7) -> tuple:
    values = np.random.default_rng(2).standard_normal((4, 3, 2))
    levels = [Level(n, k) for n, k in zip("abc", KERNELS, strict=True)]
    model = fit_cascade(values, AXES, levels, joint_ridge=0.05)
    return model, GapBars(~OBSERVED, scale=2.0, power=power, error=0.3)


def interpolated(values: np.ndarray, queries: list[np.ndarray]) -> np.ndarray:
    """Linear along every axis, around the circle of the second."""
    for axis, (nodes, query) in enumerate(zip(AXES, queries, strict=True)):
        order, period = np.argsort(nodes), 12.0 if axis == 1 else None
        values = np.apply_along_axis(
            lambda f, n=nodes, o=order, q=query, p=period: np.interp(q, n[o], f[o], period=p),
            axis,
            values,
        )
    return values


def left_by_a_complete_grid(queries: list[np.ndarray]) -> np.ndarray:
    system = reduce(np.kron, [gram(k, c, c) for k, c in zip(KERNELS, AXES, strict=True)])
    cross = reduce(np.kron, [gram(k, q, c) for k, q, c in zip(KERNELS, queries, AXES, strict=True)])
    inverse = np.linalg.inv(system + 0.05 * np.eye(24))
    left = 1.0 - np.einsum("ij,jk,ik->i", cross, inverse, cross) + 0.05
    return left.reshape([q.size for q in queries])


def pattern_of(nodes: list[np.ndarray], queries: list[np.ndarray]) -> tuple:
    """For every axis, 1 where a query is none of its nodes; the second is a circle."""
    there = [queries[0], queries[1] % 12.0, queries[2]]
    found = [~np.isin(query, own) for query, own in zip(there, nodes, strict=True)]
    return np.ix_(*[yes.astype(int) for yes in found])


@pytest.mark.parametrize("power", [0.7, 1.0])
def test_variance_is_that_of_the_cells_around_and_of_what_slices_leave_open(power: float) -> None:
    model, bars = barred(power)
    away = distance(AXES, KERNELS, OBSERVED, 0.05)
    cells = interpolated(np.where(OBSERVED, 0.0, 2.0 * (away + 0.05) ** power), NEW)
    left, scale = left_by_a_complete_grid(NEW), bars.slices.scale_in(model)
    wide = cells + scale.variance(left, [np.ones(1, int)] * 3)
    np.testing.assert_allclose(variance_on_grid(bars, model, NEW, smooth=True), wide, rtol=1e-8)
    expected = cells + scale.variance(left, pattern_of(AXES, NEW))
    for node in ((2, 0, 1), (2, 2, 1)):  # 2.5, 5.0 or 9.0, 1.0 are nodes in NEW
        expected[node] = cells[node]
    np.testing.assert_allclose(variance_on_grid(bars, model, NEW), expected, rtol=1e-8)
    assert (cells > 0).any()


@pytest.mark.parametrize("family", ["gaussian", "matern32"])
def test_bands_hold_slices_that_were_never_seen(family: str) -> None:
    """A smooth field and kernels that are too short for it: the model says next to nothing."""
    rng = np.random.default_rng(5)
    axes = [np.arange(24.0), np.arange(20.0)]
    kernels = [Kernel(family, 2.5, constant=1.0)] * 2
    waves = [rng.standard_normal(4) for _ in range(2)]
    values = 5.0 * np.sin(0.31 * axes[0] + waves[0][0])[:, None] * np.cos(0.4 * axes[1]) + np.sin(
        0.11 * axes[0][:, None] * 1.3 + 0.2 * axes[1]
    )
    missing = rng.random(values.shape) < 0.1
    seen = np.setdiff1d(np.arange(24), out := np.array([4, 9, 15, 20]))
    levels = [Level(n, k) for n, k in zip("ab", kernels, strict=True)]
    model = fit_cascade(values[seen], [axes[0][seen], axes[1]], levels, joint_ridge=1e-8)
    bars = GapBars(missing[seen], scale=1e-6, power=1.0, error=1e-3)
    queries = [axes[0][out], axes[1]]
    missed = model.predict(queries) - values[out]
    inside = np.abs(missed) <= Z90 * np.sqrt(variance_on_grid(bars, model, queries))
    assert 0.8 <= inside.mean() <= 1.0
    unscaled = np.sqrt(1e-6 * variance_on_grid(module.UNSCALED, model, queries))
    assert (np.abs(missed) <= Z90 * unscaled).mean() < 0.3


@pytest.mark.parametrize("smooth", [False, True])
def test_observed_cells_are_certain_and_missing_ones_are_not(smooth: bool) -> None:
    model, bars = barred()
    spread = variance_on_grid(bars, model, model.coordinates, smooth=smooth)
    assert ((spread == 0) == (OBSERVED & (not smooth))).all()
    assert np.array_equal(bars.unobserved, ~OBSERVED)


@pytest.mark.parametrize("smooth", [False, True])
def test_blocks_and_points_have_the_variance_of_the_grid(smooth: bool) -> None:
    model, bars = barred()
    queries = [np.append(new, nodes) for new, nodes in zip(NEW, AXES, strict=True)]
    whole = variance_on_grid(bars, model, queries, smooth=smooth)
    variance = bars.variance_blocks(model, queries, smooth=smooth)
    for part in [
        (slice(0, 8), slice(2, 7), slice(1, 5)),
        (slice(5, 6), slice(0, 1), slice(0, 5)),
        (slice(4, 8), slice(4, 7), slice(3, 5)),
    ]:
        np.testing.assert_allclose(variance(part), whole[part], rtol=1e-9)
    points = [axis.ravel() for axis in np.meshgrid(*queries, indexing="ij")]
    at_points = bars.variance_at_points(model, points, smooth=smooth)
    np.testing.assert_allclose(at_points, whole.ravel(), rtol=1e-9)
    stations = [np.arange(8), np.array([0, 1, 2, 3, 4, 5, 6, 6])]  # of the first two axes
    some = [queries[0][stations[0]], queries[1][stations[1]], queries[2]]
    at_stations = bars.variance_at_points(model, some, spread=[2], smooth=smooth)
    np.testing.assert_allclose(at_stations, whole[tuple(stations)], rtol=1e-9)


@pytest.mark.parametrize("noisy", [False, True])
def test_bars_hold_answers_that_swing_far_beyond_the_data(noisy: bool) -> None:
    """A kernel far longer than the steps of its axis goes astray where one is as long as it."""
    x, y = np.geomspace(1.0, 1000.0, 10), np.linspace(0.0, 3.0, 11)

    def truth(x: np.ndarray) -> np.ndarray:
        return np.sin(np.log(x))[:, None] * np.cos(y)

    values = truth(x)
    values[4, 5] = np.nan
    levels = [Level("x", Kernel("gaussian", 450.0)), Level("y", Kernel("gaussian", 3.0))]
    how = {"noise": "joint", "ridge": 1e-8, "obs_error": 1e-6 if noisy else None}
    model = fit(values, {"x": x, "y": y}, levels, **how)
    wide = np.sqrt(x[-1:] * x[-2:-1])
    missed = model.predict(x=wide).values - truth(wide)
    std = model.std(x=wide).values
    assert np.abs(missed).max() > 10.0
    assert (np.abs(missed) < 3.0 * std).all()
    assert (std < 3.0 + np.abs(missed)).all()
    points = model.std_points(x=np.repeat(wide, y.size), y=y)
    np.testing.assert_allclose(points, std[0], rtol=1e-9)


def test_distances_are_those_of_the_settings_and_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, bars = barred()
    other = replace(model, joint_ridge=0.3)
    for cascade, ridge in ((model, 0.05), (other, 0.3)):
        expected = distance(AXES, KERNELS, OBSERVED, ridge)
        np.testing.assert_array_equal(bars.distance_in(cascade), expected)
    monkeypatch.setattr(module, "distance", None)
    assert bars.distance_in(model) is bars.distance_in(model)
    with pytest.raises(TypeError):
        replace(bars, unobserved=OBSERVED).distance_in(model)  # of other cells nothing is known


def test_bars_can_be_measured_on_data_that_a_model_will_not_keep() -> None:
    model, bars, _ = holed(**PRODUCT)
    other = replace(model, core=3.0 * model.core)
    queries = [PLACES[0] + 0.5, PLACES[1], PLACES[2][:2]]
    measured = variance_on_grid(bars.measured_in(other), model, queries)
    np.testing.assert_allclose(measured, variance_on_grid(bars, other, queries), rtol=1e-12)
    assert (measured > variance_on_grid(bars, model, queries)).all()


def test_bars_with_other_missing_cells_are_as_wide_as_before() -> None:
    _, bars = barred()
    missing = np.zeros((2, 2), bool)
    again = rescale(bars, missing)
    assert again.unobserved is missing
    assert (again.scale, again.power, again.error) == (2.0, 0.7, 0.3)
    complete = rescale(JointBars(error=0.4, scale=3.0), missing)
    assert (complete.scale, complete.power, complete.error) == (3.0, 1.0, 0.4)
    assert bars.with_unobserved(OBSERVED, 0) is bars
    assert bars.errors.tolist() == [0.3]


# ---- holes


def holed_grid() -> tuple:
    rng = np.random.default_rng(0)
    observed = rng.random((40, 44)) > 0.15
    observed[10:28, 12:32] = False
    axes = [np.arange(40.0), np.arange(44.0)]
    return axes, [Kernel("matern12", 8.0)] * 2, Grouping(((0, 1),)), observed


@pytest.mark.slow
def test_the_variance_of_a_field_is_that_of_draws() -> None:
    axes, kernels, grouping, observed = holed_grid()
    near = distance(axes, kernels, observed, 0.01)
    field = make_field(axes, kernels, grouping)
    for draws, count in ((None, 100), (5, 5)):  # of a small grid, many draws cost little
        found = field_variance(axes, kernels, grouping, observed, 0.01, near, draws)
        expected = posterior_variance(field, observed, 0.01, (2019,), draws=count)
        np.testing.assert_array_equal(found, expected)


def test_a_large_grid_has_draws_with_fewer_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    axes, kernels, grouping, observed = holed_grid()
    near = distance(axes, kernels, observed, 0.01)
    whole = field_variance(axes, kernels, grouping, observed, 0.01, near)
    monkeypatch.setattr(samples, "_CELLS", 500)
    thin = field_variance(axes, kernels, grouping, observed, 0.01, near)
    away = distance_to_data(observed)
    assert (thin <= near).all()
    beside = (away > 0) & (away < 2)
    np.testing.assert_array_equal(thin[beside], near[beside])
    assert (thin[~observed] > 0).all()
    for low, high in ((2, 4), (4, 20)):
        here = (away >= low) & (away < high)
        assert 0.7 < thin[here].mean() / whole[here].mean() < 1.4


def test_bars_in_holes_are_those_of_draws_and_factors() -> None:
    model, bars = barred()
    near = distance(AXES, KERNELS, OBSERVED, 0.05)
    drawn = field_variance(AXES, KERNELS, Grouping(), OBSERVED, 0.05, near)
    calls = []

    def factors() -> tuple[float, ...]:
        calls.append(1)
        return 1.5, 0.7

    held = replace(bars, factors=factors)
    assert calls == []  # nothing is drawn before it is asked for
    expected = scale_by_distance(drawn + 0.05, OBSERVED, (1.5, 0.7))
    np.testing.assert_allclose(held.distance_in(model), expected)
    queries = [np.append(new, nodes) for new, nodes in zip(NEW, AXES, strict=True)]
    smooth = variance_on_grid(held, model, queries, smooth=True)
    left = held.slices.scale_in(model).variance(
        left_by_a_complete_grid(queries), [np.ones(1, int)] * 3
    )
    np.testing.assert_allclose(smooth, left + interpolated(expected, queries), rtol=1e-8)
    at_nodes = variance_on_grid(held, model, model.coordinates)
    assert ((at_nodes == 0) == OBSERVED).all()
    points = [axis.ravel() for axis in np.meshgrid(*queries, indexing="ij")]
    at_points = held.variance_at_points(model, points, smooth=True)
    np.testing.assert_allclose(at_points, smooth.ravel(), rtol=1e-9)
    assert calls == [1]
    assert bars.hole_factors == ()
    assert replace(bars, factors=(2.0,)).hole_factors == (2.0,)


def test_bars_expand_to_axes_of_one_coordinate() -> None:
    grouping = Grouping(((0, 1),), 0.4, 0.2)
    bars = GapBars(np.eye(3, 4, dtype=bool), 1.0, 1.0, 0.1, grouping, (1.2, 1.1))
    wide = bars.expand((1, 3, 1, 4), [1, 3])
    assert wide.unobserved.shape == (1, 3, 1, 4)
    assert wide.grouping == Grouping(((1, 3),), 0.4, 0.2)
    assert wide.hole_factors == (1.2, 1.1)
    np.testing.assert_array_equal(wide.unobserved[0, :, 0], bars.unobserved)


# ---- members

PLACES = [np.arange(10.0), np.arange(9.0), np.arange(6.0)]
SETTINGS = [Kernel("matern32", 3.0), Kernel("matern32", 3.0), Kernel("matern12", 2.0, constant=0.5)]
GROUP = Grouping(((0, 1),), 0.2, 0.4)
PRODUCT = {"scale": 2.0, "power": 0.7}
HOLES = {"scale": 2.0, "power": 0.7, "grouping": GROUP, "factors": (1.2, 1.5, 2.0)}


def holed(**how) -> tuple:
    """A model of a grid with a hole and scattered gaps, its error bars, and its missing cells."""
    rng = np.random.default_rng(4)
    missing = rng.random((10, 9, 6)) < 0.15
    missing[2:7, 2:6] = True
    levels = [Level(n, k) for n, k in zip("abc", SETTINGS, strict=True)]
    model = fit_cascade(rng.standard_normal(missing.shape), PLACES, levels, joint_ridge=0.05)
    return model, GapBars(missing, error=0.3, **how), missing


@pytest.fixture(scope="module", params=[PRODUCT, HOLES], ids=["product", "holes"])
def members(request: pytest.FixtureRequest) -> tuple:
    """Error bars, and 400 members drawn from them."""
    model, bars, missing = holed(**request.param)
    draw = bars.deviations(model, PLACES, seed=3)
    return model, bars, missing, np.array([draw(number) for number in range(400)])


@pytest.mark.slow
def test_members_spread_as_the_error_bars_say(members: tuple) -> None:
    model, bars, missing, drawn = members
    assert (drawn[:, ~missing] == 0).all()
    std = np.sqrt(variance_on_grid(bars, model, PLACES))
    ratio = drawn[:, missing].std(axis=0) / std[missing]
    assert ratio.mean() == pytest.approx(1.0, abs=0.1)
    assert ratio.min() > 0.5
    assert ratio.max() < 2.0
    assert np.abs(drawn.mean(axis=0)[missing] / std[missing]).mean() < 0.06


@pytest.mark.slow
def test_members_spread_as_the_error_bars_of_a_large_grid_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There the error bars are from draws with fewer cells, and the members are not."""
    monkeypatch.setattr(samples, "_CELLS", 100)
    model, bars, missing = holed(**HOLES)
    std = np.sqrt(variance_on_grid(bars, model, PLACES))
    draw = bars.deviations(model, PLACES, seed=3)
    drawn = np.array([draw(number) for number in range(100)])
    ratio = drawn[:, missing].std(axis=0) / std[missing]
    assert ratio.mean() == pytest.approx(1.0, abs=0.1)


def test_members_know_how_uncertain_a_mean_is(members: tuple) -> None:
    """As the posterior covariance of a dense system says; of cells alone it would be far less."""
    model, bars, missing, drawn = members
    field = make_field(PLACES, SETTINGS, bars.grouping)
    basis = reduce(np.kron, field.bases)
    prior = (basis * field.variances.ravel()) @ basis.T
    seen = ~missing.ravel()
    system = prior[np.ix_(seen, seen)] + 0.05 * np.eye(seen.sum())
    left = prior - prior[:, seen] @ np.linalg.solve(system, prior[seen])
    left += 0.05 * np.eye(seen.size)
    wide = np.sqrt(variance_on_grid(bars, model, PLACES).ravel() / left.diagonal())
    covariance = wide[:, None] * left * wide
    region = np.zeros(missing.shape, bool)
    region[3:6, 3:5, 2:4] = True
    cells = region.ravel()
    expected = math.sqrt(covariance[np.ix_(cells, cells)].mean())
    assert drawn[:, region].mean(axis=1).std() == pytest.approx(expected, rel=0.15)
    alone = math.sqrt(covariance.diagonal()[cells].mean() / cells.sum())
    assert expected > 1.5 * alone


@pytest.mark.slow
@pytest.mark.parametrize("how", [PRODUCT, HOLES], ids=["product", "holes"])
def test_members_at_points_are_those_of_the_grid(how: dict) -> None:
    model, bars, missing = holed(**how)
    whole = bars.deviations(model, PLACES, seed=3)(1)
    between = [np.array([3.0, 3.4]), np.array([4.0, 4.7, 8.0]), np.array([2.0, 2.5])]
    some = bars.deviations(model, between, seed=3)(1)
    assert some[0, 0, 0] == pytest.approx(whole[3, 4, 2])
    assert some[0, 2, 0] == pytest.approx(whole[3, 8, 2])
    cells = np.argwhere(missing)[::7]
    points = [axis[place] for axis, place in zip(PLACES, cells.T, strict=True)]
    at_points = bars.deviations_at_points(model, points, seed=3)(1)
    np.testing.assert_allclose(at_points, whole[tuple(cells.T)], rtol=1e-9)
    stations = [points[0], points[1], PLACES[2]]
    series = bars.deviations_at_points(model, stations, spread=[2], seed=3)(1)
    np.testing.assert_allclose(series, whole[tuple(cells.T[:2])], rtol=1e-9, atol=1e-12)
    seen = [axis[place] for axis, place in zip(PLACES, np.argwhere(~missing)[0], strict=True)]
    assert bars.deviations_at_points(model, [np.atleast_1d(c) for c in seen])(0).tolist() == [0.0]


@pytest.mark.slow
@pytest.mark.parametrize("how", [PRODUCT, HOLES], ids=["product", "holes"])
def test_members_between_coordinates_spread_as_the_error_bars_say(how: dict) -> None:
    model, bars, _ = holed(**how)
    queries = [np.arange(0.5, 9), np.arange(8.0) + 0.3, PLACES[2]]
    std = np.sqrt(variance_on_grid(bars, model, queries))
    draw = bars.deviations(model, queries, seed=5)
    ratio = np.array([draw(number) for number in range(60)]).std(axis=0) / std
    assert ratio.mean() == pytest.approx(1.0, abs=0.1)
    points = [axis.ravel()[::5] for axis in np.meshgrid(*queries, indexing="ij")]
    draw = bars.deviations_at_points(model, points, seed=5)
    ratio = np.array([draw(number) for number in range(60)]).std(axis=0) / std.ravel()[::5]
    assert ratio.mean() == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-6, 1e4])
def test_members_do_not_depend_on_units(size: float) -> None:
    """Also between coordinates, where two kinds of errors are added."""
    queries = [np.array([3.0, 4.5]), np.array([3.2]), PLACES[2]]
    model, plain, _ = holed(**PRODUCT)
    larger = replace(model, core=size * model.core)
    other = replace(plain, scale=plain.scale * size**2)
    one, two = (
        bars.deviations(cascade, queries, seed=1)(0)
        for cascade, bars in ((model, plain), (larger, other))
    )
    np.testing.assert_allclose(two, size * one, rtol=1e-9)


def test_a_member_depends_on_seed_and_number_only() -> None:
    model, bars, missing = holed(**PRODUCT)
    draw = bars.deviations(model, PLACES, seed=3)
    second = draw(1)
    np.testing.assert_array_equal(second, bars.deviations(model, PLACES, seed=3)(1))
    assert (second != draw(0))[missing].all()
    assert (second != bars.deviations(model, PLACES, seed=4)(1))[missing].all()


def test_no_missing_cell_and_no_point_have_no_deviation() -> None:
    model, bars, missing = holed(**PRODUCT)
    whole = replace(bars, unobserved=np.zeros(missing.shape, bool))
    assert not whole.deviations(model, PLACES)(0).any()
    none = [np.empty(0)] * 3
    assert bars.deviations_at_points(model, none)(0).shape == (0,)


# ---- local scale


def expected_scale(model, missing: np.ndarray, usual: float | None = None) -> np.ndarray:
    spectra = [decompose(gram(k, c, c)) for k, c in zip(SETTINGS, PLACES, strict=True)]
    errors = left_out_errors(model.predict() - model.mean, spectra, 0.05)
    return local_scale(errors, ~missing, usual)


@pytest.mark.slow
@pytest.mark.parametrize("usual", [None, 0.4])
@pytest.mark.parametrize("how", ["PRODUCT", "HOLES"])
def test_variances_and_members_have_the_local_scale_of_the_data(how, usual) -> None:
    model, bars, missing = holed(**globals()[how])
    local = replace(bars, is_local=True, usual=usual)
    scale = expected_scale(model, missing, usual)
    assert scale[missing].std() > 0.05
    np.testing.assert_allclose(local.local_scale_in(model), scale, rtol=1e-8)
    plain, scaled = (variance_on_grid(each, model, PLACES) for each in (bars, local))
    np.testing.assert_allclose(scaled, plain * scale, rtol=1e-8)
    one, other = (each.deviations(model, PLACES, seed=1)(5) for each in (bars, local))
    np.testing.assert_allclose(other, one * np.sqrt(scale), rtol=1e-8)
    at_points = local.variance_at_points(model, [c[[3, 5]] for c in PLACES])
    np.testing.assert_allclose(at_points, scaled[[3, 5], [3, 5], [3, 5]], rtol=1e-8)


def test_the_local_scale_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, bars, _ = holed(**PRODUCT)
    bars = replace(bars, is_local=True)
    found = bars.local_scale_in(model)
    monkeypatch.setattr(module, "left_out_errors", None)
    assert bars.local_scale_in(model) is found


def test_the_mean_of_a_model_has_no_local_error() -> None:
    model, bars, missing = holed(**PRODUCT)
    shifted = fit_cascade(model.predict() + 50.0, PLACES, model.levels, joint_ridge=0.05, mean=50.0)
    found = replace(bars, is_local=True).local_scale_in(shifted)
    np.testing.assert_allclose(found, expected_scale(model, missing), rtol=1e-6)


def test_a_model_without_its_data_keeps_the_local_scale_that_was_measured() -> None:
    model, bars, missing = holed(**PRODUCT)
    bars = replace(bars, is_local=True)
    compact = fit_cascade(model.predict(), PLACES, model.levels, joint_ridge=0.05, compact=True)
    np.testing.assert_array_equal(bars.local_scale_in(compact), 1.0)
    known = bars.measured_in(model)
    assert known.local is not None
    scale = expected_scale(model, missing)
    np.testing.assert_allclose(known.local, scale[missing], rtol=1e-8)
    np.testing.assert_allclose(
        known.local_scale_in(compact), np.where(missing, scale, 1.0), rtol=1e-8
    )
    assert rescale(known, missing).local is None  # of other cells it was not measured
    assert rescale(known, missing).is_local
    assert replace(bars, is_local=False).measured_in(model).local is None
    np.testing.assert_array_equal(replace(bars, is_local=False).local_scale_in(model), 1.0)


def test_a_long_level_has_no_local_scale() -> None:
    x = np.arange(1500.0)
    missing = np.zeros(1500, bool)
    missing[700:720] = True
    model = fit_cascade(np.sin(x), [x], [Level("x", Kernel("matern32", 9.0))], joint_ridge=0.1)
    assert model.is_long(0)
    bars = GapBars(missing, 1.0, 1.0, 0.1, is_local=True)
    np.testing.assert_array_equal(bars.local_scale_in(model), 1.0)


def test_members_along_a_very_long_dimension_are_refused() -> None:
    module.refuse_long("xt", (2048, 2048))
    with pytest.raises(SettingError, match=r"'t' has 2049 coordinates, and members .* 2048") as no:
        module.refuse_long("xt", (3, 2049))
    with pytest.raises(SettingError, match="ask for the answers alone"):
        module.refuse_long("xt", (3, 2049), linear=True)
    assert no.value.setting == "std"


def test_groups_follow_their_axes() -> None:
    _, bars, missing = holed(**HOLES)
    wider = bars.expand((10, 1, 9, 6), (0, 2, 3))
    assert wider.unobserved.shape == (10, 1, 9, 6)
    assert wider.grouping == replace(GROUP, axes=((0, 2),))
    assert np.array_equal(wider.unobserved[:, 0], missing)


def test_draws_of_error_bars_do_not_wait_for_land():
    observed = np.random.default_rng(0).random((12, 9, 10)) > 0.2
    observed[:, 2:6, 3:8] = False
    observed[0, 0, 0], land = False, np.broadcast_to(~observed.any(axis=0), observed.shape)
    found = module._beside_data(observed)
    np.testing.assert_array_equal(found, ~observed & ~land)
    only = np.broadcast_to(~land[0], observed.shape)  # nothing but land is missing
    np.testing.assert_array_equal(module._beside_data(only), ~only)
    hole = np.ones((12, 9), bool)
    hole[3:6, 3:6] = False
    np.testing.assert_array_equal(module._beside_data(hole), ~hole)


@pytest.mark.parametrize(("shares", "off"), [((2.0, 2.0), 0.05), ((0.5, 4.5), 0.2)])
def test_cells_have_spreads_of_their_own_where_these_differ_by_more_than_chance(
    shares, off, monkeypatch
):
    """Of draws whose mean squares scatter as those of a hundred normal numbers do."""
    observed, ridge = np.zeros((20, 30), bool), 1e-9
    field = make_field([np.arange(20.0), np.arange(30.0)], [Kernel("gaussian", 2.0)] * 2)
    away = np.random.default_rng(0).uniform(0.2, 0.3, 600)
    truth = np.where(np.arange(600) % 2, *shares)
    chance = np.random.default_rng(1).chisquare(100, 600) / 100
    asked = []

    def drawn(*_, draws):
        asked.append(draws)
        return (truth * away * chance).reshape(observed.shape)

    monkeypatch.setattr(module, "posterior_variance", drawn)
    found = module._drawn_shares(field, observed, ridge, away)
    assert asked == [100]
    assert np.sqrt(np.mean(np.log(found / truth) ** 2)) < off
