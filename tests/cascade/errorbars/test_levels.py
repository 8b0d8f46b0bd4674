"""Error bars of levels and of filled cells, against dense algebra."""

from dataclasses import replace

import numpy as np
import pytest
from refitted_bars import (
    KERNELS,
    NEW,
    SPLINES,
    VALUES,
    D,
    X,
    covariance_left,
    fitted,
    rough_in_the_middle,
)

from dkrls_cli.cascade import cascade as cascade_module
from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.levels import FilledBars, LevelBars
from dkrls_cli.cascade.errorbars.runs import variance_in_runs
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import SPLINE_RIDGE, Kernel, gram
from dkrls_cli.cascade.level import Level


def test_levels_add_what_their_covariance_leaves_open():
    model = fitted(joint=False)
    known = replace(calibrate(model), growth=())
    parts = []
    for axis, (kernel, nodes) in enumerate(zip(KERNELS, (X, D), strict=True)):
        part = covariance_left(kernel, model.levels[axis].ridge, NEW[axis], nodes)
        parts.append(np.where(np.isin(NEW[axis], nodes), 0.0, known.scales[axis] * part))
    asked = [(part > 0).astype(int) for part in parts]
    expected = np.add.outer(*parts) * known.factors[np.ix_(*asked)]
    np.testing.assert_allclose(variance_on_grid(known, model, NEW), expected, rtol=1e-8)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_far_beyond_smooth_data_error_bars_reach_its_spread(constant):
    x, t = np.linspace(0, 6, 12), np.arange(24.0)
    values = 3 * np.cos(x)[:, None] + np.cos(x)[:, None] * np.sin(t / 4)
    levels = [Level("x", Kernel("gaussian", 3.0), 1e-10)]
    levels += [Level("t", Kernel("gaussian", 12.0, constant=constant), 1e-12)]
    model = fit_cascade(values, [x, t], levels)
    known = calibrate(model)
    beyond = 23.0 + np.array([0.5, 5.0, 15.0, 30.0, 1000.0])
    bars = np.sqrt(variance_on_grid(known, model, [x[[3]], beyond]))[0]
    around = values.mean(axis=1, keepdims=True) if constant else values.mean()
    assert bars[-1] == pytest.approx(np.sqrt(np.mean((values - around) ** 2)), rel=0.2)
    assert bars[0] < 1e-6
    assert np.all(np.diff(bars) > 0)
    points = [np.full(5, x[3]), beyond]
    np.testing.assert_allclose(np.sqrt(known.variance_at_points(model, points)), bars, rtol=1e-9)
    draw = known.deviations(model, [x[[3]], beyond[-1:]])
    drawn = np.std([draw(member) for member in range(400)])
    assert drawn == pytest.approx(bars[-1], rel=0.15)


def test_equal_coordinates_are_worked_out_once(monkeypatch):
    model, asked = fitted(joint=False), []
    known = calibrate(model)
    monkeypatch.setattr(
        cascade_module, "gram", lambda kernel, a, b: asked.append(a.size) or gram(kernel, a, b)
    )
    points = [np.array([0.7, 4.4, 0.7, 0.7]), np.array([0.1, 0.1, 0.2, D[2]])]
    spread = known.variance_at_points(model, points)
    assert asked == [2, 2]
    alone = [known.variance_at_points(model, [p[[i]] for p in points])[0] for i in range(4)]
    np.testing.assert_allclose(spread, alone, rtol=1e-12)


def test_points_blocks_and_members_have_the_local_scale():
    model = rough_in_the_middle()
    known = calibrate(model)
    query = [np.array([2.5, 12.0, 12.5]), np.array([0.5, 3.0, 4.2, 8.0])]
    whole = variance_on_grid(known, model, query)
    block = known.variance_blocks(model, query)((slice(1, 3), slice(0, 2)))
    np.testing.assert_allclose(block, whole[1:3, :2], rtol=1e-12)
    cells = [axis.ravel() for axis in np.meshgrid(*query, indexing="ij")]
    found = known.variance_at_points(model, cells)
    np.testing.assert_allclose(found, whole.ravel(), rtol=1e-12)
    stations = known.variance_at_points(model, query, spread=[0])
    np.testing.assert_allclose(stations, whole.T, rtol=1e-12)
    draw = known.deviations(model, query)
    plain = replace(known, local=()).deviations(model, query)
    local = np.ones((3, 4))
    local[[0, 2]] = known.local[0].at(query[0][[0, 2]])[:, None]
    np.testing.assert_allclose(draw(3), plain(3) * np.sqrt(local), rtol=1e-9)


def test_filled_cells_have_the_local_scale_of_their_place():
    model = rough_in_the_middle()
    known = calibrate(model)
    plain = LevelBars(known.errors, known.scales, known.factors)
    ratio = known.filled_variance(model, 0) / plain.filled_variance(model, 0)
    np.testing.assert_allclose(ratio, known.local[0].at(model.coordinates[0]), rtol=1e-12)
    assert (known.filled_variance(model, 1) == plain.filled_variance(model, 1)).all()


def test_filled_cells_are_as_uncertain_as_if_left_out():
    model = fitted(joint=False)
    plain = calibrate(model)
    assert isinstance(plain, LevelBars)
    filled = np.zeros((11, 8), bool)
    filled[1::3, ::3] = True
    for axis, nodes in enumerate((X, D)):
        bars = plain.with_unobserved(filled, axis)
        system = gram(KERNELS[axis], nodes, nodes) + model.levels[axis].ridge * np.eye(nodes.size)
        left_out = 1 / np.linalg.inv(system).diagonal()
        alone = plain.factors[(1, 0) if axis == 0 else (0, 1)] * plain.scales[axis] * left_out
        expected = np.where(filled, alone[:, None] if axis == 0 else alone, 0.0)
        np.testing.assert_allclose(variance_on_grid(bars, model, [X, D]), expected, rtol=1e-9)
        assert bars.errors is plain.errors


def test_cells_in_runs_are_as_uncertain_as_the_level_that_tells_most_of_them_says():
    values = np.outer(np.sin(X), np.cos(D))
    levels = [Level(n, Kernel("matern32", 3.0), 1e-3) for n in "xd"]
    model = fit_cascade(values, [X, D], levels)
    plain = calibrate(model)
    filled = np.zeros((11, 8), bool)
    filled[2:9, 3:6] = True
    bars = plain.with_unobserved(filled, 1)
    alone = plain.filled_variance(model, 1)[None, :]
    told = variance_in_runs(model, filled, plain.variance_alone)
    spread = model.predict() - model.predict().mean(axis=1, keepdims=True)
    expected = np.maximum(alone, np.minimum(told, (spread**2).mean()))
    found = variance_on_grid(bars, model, [X, D])
    np.testing.assert_allclose(found, np.where(filled, expected, 0.0), rtol=1e-9)
    assert found[5, 4] > 1.5 * alone[0, 4]
    draw = bars.deviations(model, [X, D], seed=5)
    members = np.array([draw(number) for number in range(200)])
    np.testing.assert_allclose(members.var(axis=0)[filled], found[filled], rtol=0.45)
    assert not members[:, ~filled].any()


@pytest.mark.parametrize("smooth", [False, True])
def test_filled_cells_are_known_between_others_in_blocks_and_at_points(smooth):
    model = fitted(joint=False)
    plain = calibrate(model)
    filled = np.zeros((11, 8), bool)
    filled[3, 2] = True  # both are in NEW
    bars = FilledBars(plain, filled, 1)
    whole, before = (variance_on_grid(b, model, NEW, smooth=smooth) for b in (bars, plain))
    more = np.zeros((3, 4))
    more[1, 2] = 0.0 if smooth else plain.filled_variance(model, 1)[2]
    np.testing.assert_allclose(whole, before + more, rtol=1e-12)
    assert smooth or whole[1, 2] > 0
    parts = bars.variance_blocks(model, NEW, smooth=smooth)
    part = slice(1, 3), slice(1, 4)
    np.testing.assert_allclose(parts(part), whole[part], rtol=1e-12)
    points = [axis.ravel() for axis in np.meshgrid(*NEW, indexing="ij")]
    at_points = bars.variance_at_points(model, points, smooth=smooth)
    np.testing.assert_allclose(at_points, whole.ravel(), rtol=1e-12)
    for spread in (0, 1):
        stations = bars.variance_at_points(model, NEW, spread=[spread], smooth=smooth)
        np.testing.assert_allclose(stations, whole.T if spread == 0 else whole, rtol=1e-12)


def test_a_filled_cell_of_a_spline_has_the_variance_of_one_left_out():
    model = fit_cascade(VALUES, [X, D], [Level("x", SPLINES[0]), Level("d", Kernel(), 0.1)])
    bars = calibrate(model)
    kept = np.delete(np.arange(X.size), 4)
    left = covariance_left(SPLINES[0].covariance, SPLINE_RIDGE, X[[4]], X[kept])[0]
    expected = bars.factors[1, 0] * bars.scales[0] * left
    assert bars.filled_variance(model, 0)[4] == pytest.approx(expected, rel=1e-4)
