"""Slices with missing cells under a ridge per level, against one dense Gaussian process."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.spectrum import ROUND_OFF, Spectrum
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps import slices as module
from dkrls_cli.gaps.slices import fill_slices
from dkrls_cli.gaps.solve import complete_field

X, Y, T = np.linspace(0, 1, 7), np.array([0.0, 0.1, 0.3, 0.7, 1.1]), np.arange(16.0)
GAPPY = np.array([5, 6, 12])
WHOLE = np.setdiff1d(np.arange(T.size), GAPPY)
LEVELS = [
    Level("x", Kernel("matern52", 0.4), 1e-4),
    Level("y", Kernel("matern32", 0.6), 1e-3),
    Level("t", Kernel("matern32", 5.0, constant=1.0), 1e-2),
]
MEAN = 1.5


def field(noise=0.1):
    rng = np.random.default_rng(0)
    smooth = np.sin(3 * X[:, None, None] + T / 4) * np.cos(2 * Y[:, None]) + 2
    return smooth + noise * rng.normal(size=smooth.shape)


def holed():
    slices = field()[..., GAPPY].copy()
    slices[np.random.default_rng(1).random(slices.shape) < 0.3] = np.nan
    return slices


def grown(levels=LEVELS, axis=2, whole=WHOLE):
    trained = fit_cascade(field(), [X, Y, T], levels, mean=MEAN)
    return Growing(trained, axis).take(whole)


def dense(levels, whole, noise):
    """Return the filled cells: the mean of a Gaussian process given all that is observed."""
    slices, lost = holed(), np.isnan(holed()).ravel()
    kernel, ridge = levels[2].kernel, levels[2].ridge
    left = gram(kernel, T[GAPPY], T[GAPPY]) + ridge * np.eye(3)
    expected = np.full(slices.shape, MEAN)
    if whole.size:
        past = gram(kernel, T[whole], T[whole]) + ridge * np.eye(whole.size)
        weights = np.linalg.solve(past, gram(kernel, T[whole], T[GAPPY]))
        expected = MEAN + (field()[..., whole] - MEAN) @ weights
        left = left - gram(kernel, T[GAPPY], T[whole]) @ weights
    pairs = zip(levels[:2], (X, Y), strict=True)
    others = [gram(v.kernel, c, c) + v.ridge * np.eye(c.size) for v, c in pairs]
    covariance = reduce(np.kron, [*others, left])
    noise *= np.trace(covariance) / lost.size
    seen = covariance[np.ix_(~lost, ~lost)] + noise * np.eye(np.count_nonzero(~lost))
    known = np.linalg.solve(seen, (slices - expected).ravel()[~lost])
    return expected.ravel()[lost] + covariance[np.ix_(lost, ~lost)] @ known


@pytest.mark.parametrize("whole", [WHOLE, WHOLE[:0]], ids=["with complete slices", "without"])
def test_missing_cells_are_the_mean_given_all_that_is_observed(whole):
    slices = holed()
    done = fill_slices(grown(whole=whole), T[GAPPY], slices)
    lost = np.isnan(slices)
    assert done.converged
    np.testing.assert_array_equal(done.values[~lost], slices[~lost])
    np.testing.assert_allclose(done.values[lost], dense(LEVELS, whole, 1e-4), atol=1e-6)


@pytest.mark.parametrize(("ridge", "share"), [(1e-10, 1e-8), (2e-8, 2e-8), (1.0, 1e-3)])
def test_noise_of_a_cell_is_the_least_relative_ridge_but_not_nothing(ridge, share, monkeypatch):
    given = {}

    def solve(field, values, noise, mean, **options):
        given.update(options, share=noise / field.variance, mean=mean)
        return complete_field(field, values, noise, mean, **options)

    monkeypatch.setattr(module, "complete_field", solve)
    levels = [replace(LEVELS[0], ridge=ridge), *LEVELS[1:]]
    fill_slices(grown(levels), T[GAPPY], holed())
    assert given["share"] == pytest.approx(share)
    assert (given["mean"], given["tolerance"], given["limit"]) == (0.0, 1e-9, 500)


def test_noise_is_relative_to_the_variance_of_the_kernel():
    lost = np.isnan(holed())
    constant = [replace(LEVELS[0], kernel=Kernel("matern52", 0.4, constant=3.0)), *LEVELS[1:]]
    filled = fill_slices(grown(constant), T[GAPPY], holed()).values[lost]
    np.testing.assert_allclose(filled, dense(constant, WHOLE, 0.25e-4), atol=1e-6)


def test_any_axis_may_grow():
    turned = fit_cascade(np.moveaxis(field(), 2, 0), [T, X, Y], [LEVELS[2], *LEVELS[:2]], mean=MEAN)
    known = Growing(turned, 0).take(WHOLE)
    found = fill_slices(known, T[GAPPY], np.moveaxis(holed(), 2, 0)).values
    expected = fill_slices(grown(), T[GAPPY], holed()).values
    np.testing.assert_allclose(np.moveaxis(found, 0, 2), expected, atol=1e-7)


def test_levels_that_do_not_grow_are_not_decomposed_again(monkeypatch):
    sizes = []
    decompose = module.decompose

    def counted(matrix):
        sizes.append(len(matrix))
        return decompose(matrix)

    monkeypatch.setattr(module, "decompose", counted)
    fill_slices(grown(), T[GAPPY], holed())
    assert sizes == [GAPPY.size]


@pytest.mark.parametrize("known", ["none", "cut", "long"])
def test_a_spectrum_that_lacks_directions_is_made_anew(known):
    growing = grown()
    expected = fill_slices(growing, T[GAPPY], holed()).values
    factors = list(growing.cascade.factors)
    whole = factors[0]
    factors[0] = {
        "none": None,
        "cut": Spectrum(whole.vectors[:, :-1], whole.values[:-1]),
        "long": LongFactor.build(Kernel("matern32", 2.0), X, 0.1),
    }[known]
    poorer = Growing(replace(growing.cascade, factors=tuple(factors)), 2)
    spectrum = module._covariance(poorer.cascade, 0)
    level = LEVELS[0]
    covariance = gram(level.kernel, X, X) + level.ridge * np.eye(X.size)
    rebuilt = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
    np.testing.assert_allclose(rebuilt, covariance, atol=1e-12)
    if known == "none":
        np.testing.assert_allclose(
            fill_slices(poorer, T[GAPPY], holed()).values, expected, atol=1e-9
        )


def test_a_spectrum_has_a_floor_at_its_ridge_and_at_round_off():
    spectrum = Spectrum(np.eye(3), np.array([2.0, 1e-3, 0.0]))
    assert module._with_floor(spectrum, 1e-2).values.tolist() == [2.0, 1e-2, 1e-2]
    assert module._with_floor(spectrum, 0.0).values.tolist() == [2.0, 1e-3, 2.0 * ROUND_OFF]


def test_complete_slices_come_back_as_they_are():
    done = fill_slices(grown(), T[GAPPY], field()[..., GAPPY])
    np.testing.assert_array_equal(done.values, field()[..., GAPPY])
    assert done.iterations == 0


@pytest.mark.parametrize(("largest", "name"), [(6, "x"), (2, "x"), (7, None)])
def test_slices_too_long_for_a_dense_matrix_are_refused(largest, name, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", largest)
    if name is None:
        assert fill_slices(grown(), T[GAPPY], holed()).converged
        return
    with pytest.raises(SettingError, match=f"7 x 7 along '{name}'") as caught:
        fill_slices(grown(), T[GAPPY], holed())
    assert caught.value.setting == "noise"


def test_cells_of_a_spline_are_filled_by_the_covariance_of_its_errors():
    spline = Kernel("cubic", 3.0, errors="matern32")
    levels = [Level("x", Kernel("quintic", 0.5)), LEVELS[1], Level("t", spline)]
    known = fit_cascade(field()[..., WHOLE], [X, Y, T[WHOLE]], levels, mean=MEAN)
    slices = holed()
    found = fill_slices(Growing(known, 2), T[GAPPY], slices)
    expected = fill_slices(Growing(known.covariance, 2), T[GAPPY], slices)
    assert known.covariance is not known
    np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
