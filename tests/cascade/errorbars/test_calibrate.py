"""Scales of error bars, against refits without slices and data drawn from the model."""

from dataclasses import replace

import numpy as np
import pytest
from refitted_bars import (
    KERNELS,
    NEW,
    RNG,
    SPLINES,
    VALUES,
    D,
    X,
    covariance_left,
    fitted,
    left_out,
    rough_in_the_middle,
)

from dkrls_cli import fit as fit_model
from dkrls_cli.cascade.calibration.local import LocalScale, find_local_scale, student_factor
from dkrls_cli.cascade.errorbars import calibrate as calibrate_module
from dkrls_cli.cascade.errorbars.bars import Z90, variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.leaving import leave_out as leave_out_plain
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import SPLINE_RIDGE, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.model.validation.metrics import coverage90


def test_calibration_is_that_of_refits_without_slices():
    model = fitted(joint=False)
    (h_x, v_x), (h_d, v_d) = left_out(model, 0), left_out(model, 1)
    inner = VALUES[1:-1, 1:-1]
    missed = {
        (1, 0): (h_x @ VALUES)[:, 1:-1] - inner,
        (0, 1): (VALUES @ h_d.T)[1:-1] - inner,
        (1, 1): h_x @ VALUES @ h_d.T - inner,
    }
    known = calibrate(model)
    scale = np.mean(missed[1, 0] ** 2 / v_x[:, None]), np.mean(missed[0, 1] ** 2 / v_d)
    widened = scale[0], scale[1] * student_factor(6)  # nine slices of x are enough
    np.testing.assert_allclose(known.scales, widened, rtol=1e-9)
    assert known.local == ()
    alone = [np.sqrt(np.mean(missed[p] ** 2)) for p in ((1, 0), (0, 1))]
    np.testing.assert_allclose(known.errors, alone, rtol=1e-9)
    for pattern, errors in missed.items():
        parts = scale[0] * pattern[0] * v_x, scale[1] * pattern[1] * v_d
        ratios = np.abs(errors) / np.sqrt(np.add.outer(*parts))
        expected = (np.quantile(ratios, 0.9) / Z90) ** 2
        assert known.factors[pattern] == pytest.approx(expected, rel=1e-8)


def test_a_ninety_percent_band_holds_ninety_percent_of_what_the_model_draws():
    x = np.arange(60.0)
    held = np.arange(2, 58, 4)
    train = np.setdiff1d(np.arange(60), held)
    root = np.linalg.cholesky(gram(Kernel("matern32", 4.0), x, x) + 1e-2 * np.eye(60))
    data = root @ RNG.standard_normal((60, 400))
    model = fit_model(data[train], {"x": x[train], "run": np.arange(400.0)})
    answers, spread = model.predict(x=x[held]), model.std(x=x[held]) ** 2
    assert 0.85 < coverage90(data[held], answers, spread) < 0.95


@pytest.mark.parametrize(("shape", "each"), [((40,), 38), ((140, 140), 128), ((28, 28, 28), 25)])
def test_some_sixteen_thousand_cells_are_predicted(shape, each, monkeypatch):
    asked = []

    def leave_out(cascade, axis, most, copies):
        left = plain(cascade, axis, most, copies)
        asked.append(left.nodes.size)
        return left

    plain = leave_out_plain
    monkeypatch.setattr(calibrate_module, "leave_out", leave_out)
    levels = [Level(f"d{a}", Kernel("matern12", 2.0), 0.1) for a in range(len(shape))]
    calibrate(fit_cascade(np.ones(shape), [np.arange(float(m)) for m in shape], levels))
    assert asked == [each] * len(shape)


def test_at_least_four_slices_of_a_level_are_left_out(monkeypatch):
    plain, asked = leave_out_plain, []

    def leave_out(cascade, axis, most, copies):
        asked.append(most)
        return plain(cascade, axis, most, copies)

    monkeypatch.setattr(calibrate_module, "_CELLS", 9)
    monkeypatch.setattr(calibrate_module, "leave_out", leave_out)
    calibrate(fitted(joint=False))
    assert asked == [4, 4]


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_a_band_holds_nine_of_ten_errors(share):
    errors = share * np.linspace(0, 1, 1001)
    factor = calibrate_module._band_factor(errors, np.full(1001, 0.25))
    assert np.mean(errors <= Z90 * np.sqrt(0.25 * factor) * (1 + 1e-12)) == pytest.approx(
        0.9, abs=2e-3
    )
    none = np.zeros(3)
    assert calibrate_module._band_factor(np.ones(3), none) == 1.0
    some = calibrate_module._band_factor(np.array([9.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    assert some == pytest.approx(1 / Z90**2)


def test_the_band_is_that_of_a_normal_distribution():
    from statistics import NormalDist

    assert pytest.approx(NormalDist().inv_cdf(0.95), rel=1e-15) == Z90


def test_a_single_series_has_no_local_scale_by_chance():
    x = np.arange(60.0)
    root = np.linalg.cholesky(gram(Kernel("matern32", 6.0), x, x) + 1e-9 * np.eye(60))
    bars = [
        calibrate(fit_cascade(series, [x], [Level("x", Kernel("matern32", 6.0), 1e-6)])).local
        for series in (root @ np.random.default_rng(0).standard_normal((60, 10))).T
    ]
    scales = [local[0] for local in bars if local]
    assert all(np.ptp(np.log(scale.factors)) < 1.5 for scale in scales)
    assert len(scales) < 5


@pytest.mark.parametrize("period", [None, 360.0])
def test_bands_are_wider_where_slices_are_missed_by_more(period):
    model = rough_in_the_middle(period)
    known = replace(calibrate(model), growth=())
    scale, none = known.local
    assert none is None  # the seven slices of d are too few
    step = model.coordinates[0][1]
    query = [step * np.array([2.5, 12.5, 23.5]), np.array([3.0, 3.5])]
    plain = LevelBars(known.errors, known.scales, known.factors)
    wider = variance_on_grid(known, model, query) / variance_on_grid(plain, model, query)
    np.testing.assert_allclose(wider, np.outer(scale.at(query[0], period), [1, 1]), rtol=1e-12)
    assert wider[1, 0] > 4 * wider[0, 0]
    at_nodes = [step * np.array([12.0]), np.array([3.5])]
    passed = variance_on_grid(known, model, at_nodes) / variance_on_grid(plain, model, at_nodes)
    assert passed == pytest.approx(1.0)


def test_local_scales_and_factors_are_those_of_all_cells_left_out():
    model = rough_in_the_middle()
    known = calibrate(model)
    levels = [leave_out_plain(model, axis, 99) for axis in (0, 1)]
    missed = calibrate_module._missed(model, levels)
    raw = known.scales / [1.0, student_factor(7)]
    parts = [s * level.variance for s, level in zip(raw, levels, strict=True)]
    ratios = missed[1, 1] / np.sqrt(np.add.outer(*parts))
    patterns = np.corrcoef(np.hstack([ratios, -ratios]))  # about 0, not about their mean
    pairs = patterns[~np.eye(len(patterns), dtype=bool)]
    places, squares = model.coordinates[0][levels[0].nodes], (ratios**2).mean(axis=1)
    fibres = min(1 / np.mean(pairs**2), 7)  # a slice has seven cells
    scale, own = find_local_scale(places, squares, fibres=fibres)
    assert scale.factors.max() < 0.95 * find_local_scale(places, squares)[0].factors.max()
    np.testing.assert_allclose(known.local[0].factors, scale.factors, rtol=1e-9)
    for pattern in ((1, 0), (0, 1), (1, 1)):
        variance = np.add.outer(*(part * on for part, on in zip(parts, pattern, strict=True)))
        variance *= own[:, None] if pattern[0] else 1.0
        ratios = np.abs(missed[pattern]) / np.sqrt(variance)
        expected = (np.quantile(ratios, 0.9) / Z90) ** 2
        assert known.factors[pattern] == pytest.approx(expected, rel=1e-9)


def test_a_model_of_one_level_has_the_same_variance_when_asked_again():
    model = fit_cascade(np.sin(X) + X, [X], [Level("x", KERNELS[0], 1e-3)])
    bars = LevelBars(np.ones(1), np.ones(1), np.array([1.0, 2.0]), (LocalScale(X, X + 1.0),))
    ask = bars.variance_blocks(model, NEW[:1])
    first = ask((slice(0, 3),)).copy()
    np.testing.assert_array_equal(ask((slice(0, 3),)), first)


@pytest.mark.parametrize("pieces", [(), (Piece("linear", X[4], X[6]),)])
def test_the_error_bars_of_splines_are_scaled_by_slices_left_out_of_them(pieces):
    axes, ridge = (X, D + 1.0), SPLINE_RIDGE
    splines = replace(SPLINES[0], pieces=pieces), SPLINES[1]
    levels = [Level("x", splines[0]), Level("d", splines[1])]
    model = fit_cascade(VALUES, axes, levels, mean=0.3)
    bars = replace(calibrate(model), growth=())
    for axis, (nodes, kernel) in enumerate(zip(axes, splines, strict=True)):
        data = np.moveaxis(VALUES, axis, 0)[:, 1:-1]
        missed, left = [], []
        for j in range(1, nodes.size - 1):
            kept = np.delete(np.arange(nodes.size), j)
            missed.append(gram(kernel, nodes[[j]], nodes[kept]) @ data[kept] - data[j])
            left.append(covariance_left(kernel.covariance, ridge, nodes[[j]], nodes[kept]))
        squares = np.concatenate(missed) ** 2
        assert bars.errors[axis] == pytest.approx(np.sqrt(squares.mean()), rel=1e-6)
        scale = np.mean(squares / np.array(left)) * student_factor(nodes.size - 2)
        assert bars.scales[axis] == pytest.approx(scale, rel=1e-4)
    new = [np.array([0.5 * (X[3] + X[4]), X[2]]), axes[1][[2]]]
    found = variance_on_grid(bars, model, new)
    alone = covariance_left(SPLINES[0].covariance, ridge, new[0][:1], X)[0]
    alone *= 1.0 if not bars.local or bars.local[0] is None else bars.local[0].at(new[0][:1])[0]
    assert found[0, 0] == pytest.approx(bars.factors[1, 0] * bars.scales[0] * alone, rel=1e-4)
    assert found[1, 0] == 0.0
