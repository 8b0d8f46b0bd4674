"""Error bars of grids with missing cells, calibrated on hidden cells."""

import math
from dataclasses import replace

import numpy as np
import pytest
from gap_grids import field

from dkrls_cli.cascade.errorbars.bars import variance_on_grid
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.gaps.calibration.local import left_out_errors, local_scale
from dkrls_cli.gaps.calibration.nearest import distance
from dkrls_cli.gaps.calibration.widths import calibrated
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.solve import complete
from dkrls_cli.tuning.calibration import holes as module
from dkrls_cli.tuning.calibration.holes import factors_by_power, gap_bars, usual_grid_error
from dkrls_cli.tuning.gaps import choose_with_gaps, has_holes
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.moves import LevelConstraint

PAIR = Grouping(((0, 1),))


def smooth():
    """Return a smooth map with single cells missing."""
    axes = [np.arange(26.0), np.arange(24.0)]
    values = np.sin(axes[0] / 4)[:, None] * np.cos(axes[1] / 5)
    values[np.random.default_rng(0).random(values.shape) < 0.1] = np.nan
    return values, axes


# --- narrow gaps --------------------------------------------------------------------------------


def test_error_bars_are_calibrated_on_hidden_cells_beside_their_local_scale():
    _, holed, axes = field()
    given = [LevelConstraint("gaussian", sigma) for sigma in (1.8, 2.0, 4.0)]
    chosen = choose_with_gaps(holed, axes, given, ridge=0.02)
    kernels, ridge = chosen.setting.kernels, chosen.setting.ridge
    spectra = [decompose(gram(kernel, c, c)) for kernel, c in zip(kernels, axes, strict=True)]
    seen = [np.isfinite(window.seen) for window in chosen.windows]
    errors = [left_out_errors(window.answers, spectra, ridge) for window in chosen.windows]
    usual = np.mean([e[s].mean() for e, s in zip(errors, seen, strict=True)])
    reached, missed = [], []
    for window, observed, error in zip(chosen.windows, seen, errors, strict=True):
        away = distance(axes, kernels, observed, ridge)[window.hidden]
        size = local_scale(error, observed, usual)[window.hidden]
        reached.append(away + ridge)
        missed.append(window.residuals / np.sqrt(size))
    bars = gap_bars(holed, axes, chosen)
    expected = calibrated(np.concatenate(reached), np.concatenate(missed))
    assert (bars.scale, bars.power) == pytest.approx(expected)
    assert bars.is_local
    assert module._usual_window_error(chosen) == pytest.approx(usual)
    assert bars.error == chosen.error
    np.testing.assert_array_equal(bars.unobserved, np.isnan(holed))


def test_error_bars_do_not_depend_on_where_zero_is():
    _, holed, axes = field()
    given = [LevelConstraint("gaussian", sigma) for sigma in (1.8, 2.0, 4.0)]
    found = [
        gap_bars(
            holed + mean, axes, choose_with_gaps(holed + mean, axes, given, ridge=0.02, mean=mean)
        )
        for mean in (0.0, 30.0)
    ]
    assert found[1].scale == pytest.approx(found[0].scale, rel=1e-6)
    assert found[1].power == pytest.approx(found[0].power, rel=1e-6)


def test_windows_of_a_part_have_spectra_of_their_own():
    values, axes = smooth()
    given = [LevelConstraint("matern32", 5.0)] * 2
    chosen = choose_with_gaps(values, axes, given, ridge=0.01)
    part = (slice(3, 20), slice(None))
    windows = tuple(
        replace(
            window,
            coordinates=(axes[0][part[0]], axes[1]),
            values=window.values[part],
            hidden=window.hidden[part],
            answers=window.answers[part],
            weights=None,
        )
        for window in chosen.windows
    )
    for window in windows:
        kernels = chosen.setting.kernels
        own = [
            decompose(gram(kernel, c, c))
            for kernel, c in zip(kernels, window.coordinates, strict=True)
        ]
        expected = left_out_errors(window.answers, own, 0.01)
        found = module._window_errors(window, replace(chosen, windows=windows))
        np.testing.assert_allclose(found, expected)


def test_views_with_fewer_cells_have_a_usual_error_of_their_own():
    values, axes = smooth()
    chosen = choose_with_gaps(values, axes, [LevelConstraint("matern32", 5.0)] * 2, ridge=0.01)
    dense = chosen.windows[0]
    thin = replace(dense, strides=(2, 2), answers=10.0 * dense.answers)
    one, other = module._window_scales(replace(chosen, windows=(dense, thin)), True)
    (expected,) = module._window_scales(replace(chosen, windows=(dense,)), True)
    np.testing.assert_array_equal(one, expected)
    np.testing.assert_allclose(other, expected)
    alone, both, only = (
        module._usual_window_error(replace(chosen, windows=windows))
        for windows in ((dense,), (dense, thin), (thin,))
    )
    assert (both, only) == pytest.approx((alone, 10.0 * alone))


def test_the_usual_error_of_a_grid_is_that_of_its_cells_left_out():
    values, axes = smooth()
    found = choose_with_gaps(values, axes, [LevelConstraint("matern52", 8.0)] * 2, ridge=1e-3)
    found = replace(found, mean=0.3)
    kernels = found.setting.kernels
    done = complete(values, axes, kernels, 1e-3, 0.3, tolerance=1e-9).values
    spectra = [decompose(gram(kernel, c, c)) for kernel, c in zip(kernels, axes, strict=True)]
    errors = left_out_errors(done - 0.3, spectra, 1e-3)
    expected = errors[np.isfinite(values)].mean()
    assert usual_grid_error(values, axes, found) == pytest.approx(expected, rel=1e-4)


def test_bars_are_wider_where_the_field_is_rougher():
    """Nine of ten cells are held on a rough half of a map and on a smooth one."""
    rng = np.random.default_rng(3)
    axes = [np.arange(40.0), np.arange(60.0)]
    truth = make_field(axes, [Kernel("matern32", 6.0)] * 2).draw(rng)
    truth *= np.where(axes[1] < 30, 0.3, 1.0)
    values = np.where(rng.random(truth.shape) < 0.15, np.nan, truth)
    given = [LevelConstraint("matern32", 6.0)] * 2
    chosen = choose_with_gaps(values, axes, given, ridge=1e-4)
    bars = gap_bars(values, axes, chosen)
    done = complete(values, axes, chosen.setting.kernels, 1e-4)
    levels = [Level(n, k) for n, k in zip("ab", chosen.setting.kernels, strict=True)]
    model = fit_cascade(done.values, axes, levels, joint_ridge=1e-4)
    halves = [np.s_[:, :27], np.s_[:, 33:]]
    held = {}
    for name, known in (("local", bars), ("one", replace(bars, is_local=False))):
        spread = np.sqrt(variance_on_grid(known, model, axes))
        inside = np.abs(done.values - truth) <= 1.645 * spread
        held[name] = [inside[half][np.isnan(values[half])].mean() for half in halves]
    assert min(held["local"]) > 0.8
    assert np.ptp(held["local"]) < np.ptp(held["one"]) / 2
    assert held["one"][0] > 0.97


# --- holes --------------------------------------------------------------------------------------


def test_exact_bands_have_factors_of_one():
    rng = np.random.default_rng(0)
    powers = np.repeat([0, 1, 2], [4000, 8000, 16000])
    factors = factors_by_power(np.abs(rng.standard_normal(28_000)), powers)
    assert len(factors) == 3
    np.testing.assert_allclose(factors, 1.0, atol=0.05)


@pytest.mark.parametrize("size", [0.5, 3.0])
def test_factors_follow_the_errors_at_each_distance(size):
    rng = np.random.default_rng(1)
    powers = np.repeat([0, 1], [20_000, 80_000])
    sizes = np.where(powers == 0, 1.0, size)
    factors = factors_by_power(np.abs(sizes * rng.standard_normal(100_000)), powers)
    np.testing.assert_allclose(factors, [1.0, size**2], rtol=0.05)


def test_few_cells_shrink_to_the_factor_of_all():
    rng = np.random.default_rng(2)
    ratios = np.abs(rng.standard_normal(40_010))
    powers = np.zeros(ratios.size, int)
    powers[-10:] = 1
    ratios[-10:] *= 100.0
    whole = module._factor(ratios)
    own = module._factor(ratios[-10:])
    expected = math.exp((10 / 4 * math.log(own) + 30 * math.log(whole)) / (10 / 4 + 30))
    factors = factors_by_power(ratios, powers)
    assert factors[1] == pytest.approx(expected)
    assert factors[1] < 3.0 < own
    powers[-10:] = 3  # 64 cells at that distance are as good as one
    few = factors_by_power(ratios, powers)
    assert len(few) == 4
    assert few[3] < 1.1
    assert few[1:3] == pytest.approx((whole, whole))  # no cell of their own


def test_errors_of_nothing_have_tiny_factors():
    assert 0 < factors_by_power(np.zeros(20), np.zeros(20, int))[0] < 1e-20


@pytest.mark.parametrize("hole", [False, True])
def test_error_bars_take_draws_where_there_are_holes(hole):
    values, axes = smooth()
    if hole:
        values[10:16, 10:16] = np.nan
    found = choose_with_gaps(values, axes, [LevelConstraint("matern52", 8.0)] * 2, ridge=1e-3)
    bars = gap_bars(values, axes, found)
    assert (bars.factors is not None) == hole
    assert (len(bars.hole_factors) > 0) == hole


def test_a_long_level_has_no_draws():
    """They would take a matrix of the long axis."""
    t = np.arange(1500.0)
    values = np.sin(t / 20)
    values[300:360] = values[800:870] = np.nan
    given = [LevelConstraint("matern32", 20.0)]
    found = choose_with_gaps(values, [t], given, ridge=0.01)
    assert has_holes(found.windows, 4.0)
    assert found.spectra == (None,)
    assert gap_bars(values, [t], found).hole_factors == ()


@pytest.mark.slow
@pytest.mark.parametrize("grouping", [Grouping(), PAIR], ids=["product", "group"])
def test_bands_in_a_hole_hold_nine_of_ten(grouping):
    """Of fields drawn from the model: 80 to 97 % of the cells in their holes."""
    axes, kernels = [np.arange(40.0)] * 2, (Kernel("matern12", 6.0),) * 2
    prior = make_field(axes, kernels, grouping)
    inside, middle = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = prior.draw(rng) + 0.1 * rng.standard_normal((40, 40))
        holed = values.copy()
        holed[8:28, 10:30] = np.nan
        given = [LevelConstraint("matern12", 6.0)] * 2
        found = choose_with_gaps(
            holed, axes, given, ridge=0.01, groups=grouping.axes, force=bool(grouping.axes)
        )
        assert found.setting == JointSetting(kernels, 0.01, grouping)
        bars = gap_bars(holed, axes, found)
        assert len(bars.hole_factors) >= 2
        done = complete(holed, axes, kernels, 0.01, grouping=grouping)
        levels = [Level(name, kernel) for name, kernel in zip("ab", kernels, strict=True)]
        model = fit_cascade(done.values, axes, levels, joint_ridge=0.01)
        spread = np.sqrt(variance_on_grid(bars, model, axes))
        missing = np.isnan(holed)
        held = np.abs(done.values - values) <= 1.645 * spread
        inside.append(held[missing].mean())
        middle.append(held[14:22, 16:24].mean())
    assert 0.80 <= np.mean(inside) <= 0.97
    assert 0.75 <= np.mean(middle) <= 0.99


def test_every_place_hides_other_cells_and_six_are_taken(monkeypatch):
    values, axes = smooth()
    values[10:16, 10:16] = np.nan
    found = choose_with_gaps(values, axes, [LevelConstraint("matern52", 8.0)] * 2, ridge=1e-3)
    hidden, draws = [], []
    real, variance = module._miss_cells, module.field_variance
    monkeypatch.setattr(
        module, "_miss_cells", lambda *given: hidden.append(given[-1]) or real(*given)
    )
    monkeypatch.setattr(
        module,
        "field_variance",
        lambda *given, **more: draws.append(more["draws"]) or variance(*given, **more),
    )
    factors = gap_bars(values, axes, found).hole_factors
    assert len({cells.tobytes() for cells in hidden}) == len(hidden) == 6
    assert draws == [6] * 6
    assert not any((cells & np.isnan(values)).any() for cells in hidden)
    assert len(factors) <= 2  # no cell to be filled is 4 cells away from data


def test_errors_of_all_places_count_up_to_the_distance_of_the_gaps(monkeypatch):
    values, axes = smooth()
    values[10:16, 10:16] = np.nan
    found = choose_with_gaps(values, axes, [LevelConstraint("matern52", 8.0)] * 2, ridge=1e-3)
    rng = np.random.default_rng(0)
    given = [(np.abs(rng.standard_normal(50)), rng.integers(0, 4, 50)) for _ in range(6)]
    left = iter(given)
    monkeypatch.setattr(module, "_miss_cells", lambda *_: next(left))
    ratios, powers = (np.concatenate(parts) for parts in zip(*given, strict=True))
    expected = factors_by_power(ratios[powers <= 1], powers[powers <= 1])
    assert module.hole_factors(values, axes, found) == expected


def test_hidden_errors_are_in_units_of_draws_and_local_scale():
    values, axes = smooth()
    values[10:16, 10:16] = np.nan
    kernels, ridge = [Kernel("matern52", 8.0)] * 2, 1e-3
    found = choose_with_gaps(values, axes, [LevelConstraint("matern52", 8.0)] * 2, ridge=ridge)
    hidden = np.zeros(values.shape, bool)
    hidden[3:8, 14:19] = True
    hidden &= np.isfinite(values)
    ratios, powers = module._miss_cells(values, axes, found, hidden)
    seen = np.isfinite(values) & ~hidden
    done = complete(np.where(seen, values, np.nan), axes, kernels, ridge, tolerance=1e-9)
    near = distance(axes, kernels, seen, ridge)
    drawn = module.field_variance(axes, kernels, Grouping(), seen, ridge, near, draws=6)
    spectra = [decompose(gram(kernel, c, c)) for kernel, c in zip(kernels, axes, strict=True)]
    size = local_scale(left_out_errors(done.values, spectra, ridge), seen)
    expected = np.abs(done.values - values) / np.sqrt((drawn + ridge) * size)
    np.testing.assert_allclose(ratios, expected[hidden], rtol=1e-3, atol=1e-6)
    assert set(powers) == {0, 1}


@pytest.mark.parametrize(("holes", "places"), [(1, 6), (2, 3), (3, 2), (4, 2)])
def test_the_more_deep_holes_there_are_the_fewer_places_they_need(holes, places):
    """All of them are put to other places each time, but one of them is put where most is seen."""
    values, axes = np.zeros((40, 40)), [np.arange(40.0)] * 2
    for row, column in [(3, 3), (3, 25), (25, 3), (25, 25)][:holes]:
        values[row : row + 7, column : column + 7] = np.nan
    values[15:18, 35] = np.nan  # a shallow gap is none of them
    assert len(list(module._hide_in_turn(values, axes, np.isnan(values)))) == places


def test_single_cells_are_hidden_if_the_gaps_hide_none(monkeypatch):
    values, axes = smooth()
    nothing = np.zeros(values.shape, bool)
    monkeypatch.setattr(module, "place_gaps", lambda *_: nothing)
    (hidden,) = module._hide_in_turn(values, axes, np.isnan(values))
    assert hidden.any()
    assert not (hidden & np.isnan(values)).any()


def test_land_alone_is_as_good_as_gaps_to_calibrate_by():
    values, axes = smooth()
    values[10:16, 10:16] = np.nan
    found = choose_with_gaps(values, axes, [LevelConstraint("matern52", 8.0)] * 2, ridge=1e-3)
    every = module.hole_factors(values, axes, replace(found, targets=np.isnan(values)))
    for targets in (None, np.zeros(values.shape, bool)):
        none = replace(found, targets=targets)
        assert module.hole_factors(values, axes, none) == every
