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


def covariance_of(levels, times):
    nodes = (X, Y, times)
    pairs = zip(levels, nodes, strict=True)
    return reduce(np.kron, [gram(v.kernel, c, c) + v.ridge * np.eye(c.size) for v, c in pairs])


def left_out(levels, share):
    """Return the mean square by which cells of the complete slices, each left out, are missed."""
    covariance = covariance_of(levels, T[WHOLE])
    covariance += share * covariance.diagonal().mean() * np.eye(len(covariance))
    inverse = np.linalg.inv(covariance)
    missed = inverse @ (field()[..., WHOLE] - MEAN).ravel() / inverse.diagonal()
    return np.mean(missed**2)


def dense(levels, whole, share):
    """Return the filled cells: the mean of a Gaussian process given all that is observed."""
    together = np.concatenate([field()[..., whole], holed()], axis=2)
    lost = np.isnan(together).ravel()
    covariance = covariance_of(levels, np.concatenate([T[whole], T[GAPPY]]))
    noise = share * covariance.diagonal().mean()
    seen = covariance[np.ix_(~lost, ~lost)] + noise * np.eye(np.count_nonzero(~lost))
    known = np.linalg.solve(seen, together.ravel()[~lost] - MEAN)
    filled = np.where(lost, 0.0, together.ravel())
    filled[lost] = MEAN + covariance[np.ix_(lost, ~lost)] @ known
    return filled.reshape(together.shape)[..., whole.size :]


@pytest.fixture
def shares(monkeypatch):
    """Return the noises of all solves, as shares of the variance of a cell."""
    found = []

    def solve(field, values, noise, mean, **options):
        assert mean == 0.0
        found.append((noise / field.variance, options["tolerance"], options["limit"]))
        return complete_field(field, values, noise, mean, **options)

    monkeypatch.setattr(module, "complete_field", solve)
    return found


@pytest.mark.parametrize("ridge", [1e-10, 1e-4, 1.0])
def test_missing_cells_are_the_mean_given_all_that_is_observed(ridge, shares):
    """The noise is the one with which cells that are left out of complete slices are met best."""
    slices, levels = holed(), [replace(LEVELS[0], ridge=ridge), *LEVELS[1:]]
    done = fill_slices(grown(levels), T[GAPPY], slices)
    [(share, *ends)] = shares
    assert ends == [1e-9, 500]
    assert left_out(levels, share) < min(left_out(levels, f * share) for f in (0.1, 10.0))
    assert done.converged
    lost = np.isnan(slices)
    np.testing.assert_array_equal(done.values[~lost], slices[~lost])
    np.testing.assert_allclose(done.values, dense(levels, WHOLE, share), atol=1e-6)


def test_without_complete_slices_the_observed_cells_tell_the_noise(shares):
    done = fill_slices(grown(whole=WHOLE[:0]), T[GAPPY], holed())
    (first, *rough), _, (share, *ends) = shares
    assert first == pytest.approx(1e-2)
    assert (rough, ends) == ([1e-4, 100], [1e-9, 500])
    np.testing.assert_allclose(done.values, dense(LEVELS, WHOLE[:0], share), atol=1e-6)
    lost = np.isnan(holed())
    truth = field(noise=0.0)[..., GAPPY]
    assert np.std((done.values - truth)[lost]) < 0.2


@pytest.mark.parametrize(("count", "solves"), [(7, 3), (8, 1)])
def test_few_complete_slices_do_not_tell_the_noise(count, solves, shares):
    fill_slices(grown(whole=WHOLE[:count]), T[GAPPY], holed())
    assert len(shares) == solves


def test_a_smooth_level_does_not_multiply_the_noise_of_cells():
    """Three slices behind the last complete one: with its own ridge, cells are off by hundreds."""
    smooth = [*LEVELS[:2], Level("t", Kernel("gaussian", 6.0), 1e-10)]
    behind = np.array([13, 14, 15])
    slices = field()[..., behind].copy()
    lost = np.random.default_rng(1).random(slices.shape) < 0.3
    slices[lost] = np.nan
    done = fill_slices(grown(smooth, whole=np.arange(13)), T[behind], slices)
    assert np.std((done.values - field(noise=0.0)[..., behind])[lost]) < 0.1


def test_noise_grows_until_cells_are_solved_for(shares, monkeypatch):
    def never(done, *args, **options):
        return replace(done, converged=False)

    monkeypatch.setattr(module, "refine_cells", never)
    assert not fill_slices(grown(), T[GAPPY], holed()).converged
    noises = np.array([share for share, *_ in shares])
    np.testing.assert_allclose(noises / noises[0], [1.0, 1e2, 1e4])


def test_slices_nearby_are_looked_at(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 5)
    known = grown()
    assert WHOLE[module._nearest_slices(known, np.array([12.0]), 1)].tolist() == [9, 10, 11, 13, 14]
    monkeypatch.setattr(module, "_FEWEST", 2)
    monkeypatch.setattr(module, "_CELLS", 70)
    assert module._nearest_slices(known, np.array([12.0]), 35).size == 2
    ring = [*LEVELS[:2], Level("t", Kernel("matern32", 5.0, period=16.0), 1e-2)]
    around = grown(ring, whole=np.arange(15))
    assert module._nearest_slices(around, np.array([15.0]), 14).tolist() == [0, 1, 2, 13, 14]
    monkeypatch.setattr(module, "LARGEST", 3)
    assert module._nearest_slices(known, T[GAPPY], 1).size == 0


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
    assert sizes == [T.size, WHOLE.size]


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
