"""Draws given the observed cells, against the dense Gaussian posterior."""

from functools import reduce

import numpy as np
import pytest
from sphere_grids import SPHERE, kernels_of

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps import coarse
from dkrls_cli.gaps import samples as module
from dkrls_cli.gaps.coarse import CoarseMaker
from dkrls_cli.gaps.field import Grouping, SphereField, make_field
from dkrls_cli.gaps.samples import posterior_draws, posterior_variance, thinning
from dkrls_cli.gaps.solve import complete_field

PAIR = Grouping(((0, 1),))
GROUPINGS = pytest.mark.parametrize(
    "grouping", [Grouping(), PAIR, SPHERE], ids=["product", "group", "sphere"]
)
SHAPE = (5, 6)


def small(grouping):
    """Return a field on a tiny grid, and its observed cells: a hole, and single cells."""
    axes = [np.arange(float(m)) for m in SHAPE]
    kernels = [Kernel("matern32", 2.5)] * 2
    if grouping.sphere:
        axes, kernels = [40.0 * axes[0] - 80, 60.0 * axes[1]], kernels_of("matern32", 100.0)
    field = make_field(axes, kernels, grouping)
    observed = np.ones(SHAPE, bool)
    observed[1:4, 1:4] = observed[0, 5] = observed[4, 0] = False
    return field, observed


def noise_of(seed=5):
    return np.random.default_rng(seed).uniform(0.0, 0.6, SHAPE)


def posterior(field, observed, noise):
    """Return the covariance of all cells given the observed ones (30, 30), by one dense system."""
    v = field.sphere[:] if isinstance(field, SphereField) else reduce(np.kron, field.bases)
    prior = (v * field.variances.ravel()) @ v.T
    seen = observed.ravel()
    system = prior[np.ix_(seen, seen)] + np.diag(np.broadcast_to(noise, SHAPE).ravel()[seen])
    return prior - prior[:, seen] @ np.linalg.solve(system, prior[seen])


@pytest.mark.slow
@GROUPINGS
@pytest.mark.parametrize("noisy", [False, True], ids=["ridge", "noise"])
def test_draws_have_the_covariance_of_the_posterior(grouping, noisy):
    field, observed = small(grouping)
    ridge, noise = 0.05, noise_of() if noisy else None
    draw = posterior_draws(field, observed, ridge, (1,), noise)
    draws = np.array([draw(number).ravel() for number in range(800)])
    expected = posterior(field, observed, ridge + (noise if noisy else 0.0))
    cells = np.ones(30, bool) if noisy else ~observed.ravel()
    found = (draws.T @ draws / 800)[np.ix_(cells, cells)]
    spread = np.sqrt(np.outer(*[np.diag(expected)[cells]] * 2))
    # the standard error of a covariance is at most sqrt(2 / 800) = 0.05 of the variances
    error = np.abs(found - expected[np.ix_(cells, cells)]) / spread
    assert error.max() < 0.2
    assert np.sqrt(np.mean(error**2)) < 0.055
    assert np.abs(draws.mean(axis=0))[cells].max() < 0.18 * np.sqrt(spread.max())


@GROUPINGS
def test_draws_are_zero_at_observed_cells_unless_cells_have_noise(grouping):
    field, observed = small(grouping)
    without = posterior_draws(field, observed, 0.05, (1,))(0)
    assert (without[observed] == 0).all()
    assert (without[~observed] != 0).all()
    assert (posterior_draws(field, observed, 0.05, (1,), noise_of())(0) != 0).all()


def test_a_draw_depends_on_its_number_and_the_seed_alone():
    field, observed = small(PAIR)
    draw = posterior_draws(field, observed, 0.05, (1,))
    third = draw(3)
    draw(0)
    np.testing.assert_array_equal(draw(3), third)
    np.testing.assert_array_equal(posterior_draws(field, observed, 0.05, (1,))(3), third)
    assert np.abs(posterior_draws(field, observed, 0.05, (2,))(3) - third).max() > 1e-3
    assert np.abs(draw(2) - third).max() > 1e-3


def test_draws_share_one_coarse_space(monkeypatch):
    """Also of a smooth kernel, of which directions of no use are dropped."""
    made, gram = [], coarse.masked_gram
    monkeypatch.setattr(coarse, "masked_gram", lambda *args: made.append(1) or gram(*args))
    axes = [np.arange(24.0), np.arange(26.0)]
    observed = np.ones((24, 26), bool)
    observed[6:18, 7:20] = False
    draw = posterior_draws(make_field(axes, [Kernel("gaussian", 4.0)] * 2), observed, 1e-3, [0])
    for number in range(3):
        draw(number)
    assert len(made) == 1


def test_watched_cells_decide_when_the_solve_of_a_draw_ends(monkeypatch):
    axes = [np.arange(60.0)]
    field = make_field(axes, [Kernel("matern52", 6.0)], Grouping())
    observed = np.ones(60, bool)
    observed[5], observed[20:55] = False, False
    beside = np.arange(60) == 5
    steps, solve = [], module.complete_field

    def noting(*args, **options):
        steps.append(options["watched"])
        return solve(*args, **options)

    monkeypatch.setattr(module, "complete_field", noting)
    exact = posterior_draws(field, observed, 1e-3, (1,))(0)
    found = posterior_draws(field, observed, 1e-3, (1,), watched=beside)(0)
    assert steps[0] is None
    assert steps[1] is beside
    assert abs(found - exact)[beside].max() < 0.01
    alike = posterior_variance(field, observed, 1e-3, (1,), draws=1, watched=beside)
    np.testing.assert_array_equal(alike, found**2)
    assert steps[2] is beside


def test_noise_of_zero_is_no_noise():
    field, observed = small(PAIR)
    plain = posterior_draws(field, observed, 0.05, (1,))(0)
    zero = posterior_draws(field, observed, 0.05, (1,), np.zeros(SHAPE))(0)
    np.testing.assert_allclose(zero[~observed], plain[~observed], atol=0.02)


def test_without_data_nearby_a_draw_is_one_of_the_prior():
    axes = [np.arange(40.0), np.arange(6.0)]
    field = make_field(axes, [Kernel("matern12", 1.0)] * 2, PAIR)
    observed = np.zeros((40, 6), bool)
    observed[0] = True
    found = posterior_variance(field, observed, 0.1, (3,))
    assert found[20:].mean() == pytest.approx(1.0, abs=0.15)
    assert found[1].mean() < 0.95


@GROUPINGS
def test_the_variance_is_the_mean_square_of_the_draws(grouping):
    field, observed = small(grouping)
    found = posterior_variance(field, observed, 0.05, (1,), draws=7)
    draw = posterior_draws(field, observed, 0.05, (1,), only_size=True)
    np.testing.assert_allclose(found, np.mean([draw(i) ** 2 for i in range(7)], axis=0))
    usual = posterior_variance(field, observed, 0.05, (1,))
    expected = np.diag(posterior(field, observed, 0.05)).reshape(SHAPE)[~observed]
    ratio = usual[~observed] / expected
    assert module.DRAWS == 24
    assert 0.6 < ratio.mean() < 1.6
    assert (usual[observed] == 0).all()


@pytest.mark.parametrize("ridge", [0.0, 1e-12])
def test_a_ridge_of_nothing_has_draws(ridge):
    field, observed = small(Grouping())
    draws = np.array([posterior_draws(field, observed, ridge, (1,))(i) for i in range(100)])
    expected = np.diag(posterior(field, observed, ridge)).reshape(SHAPE)[~observed]
    assert np.isfinite(draws).all()
    ratio = (draws**2).mean(axis=0)[~observed] / expected
    assert 0.7 < ratio.mean() < 1.4


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((200, 300), (1, 1)),
        ((300, 300), (2, 1)),
        ((10, 60_000), (1, 10)),
        ((1000, 1000), (4, 5)),
        ((60_001,), (2,)),
    ],
)
def test_the_longest_axes_of_a_large_grid_are_thinned(shape, strides):
    found = thinning(shape)
    assert sorted(found) == sorted(strides)
    assert np.prod([-(-m // s) for m, s in zip(shape, found, strict=True)]) <= 60_000


def test_the_solve_of_a_draw_ends_as_soon_as_its_size_stays(monkeypatch):
    axes = [np.arange(48.0)] * 2
    field = make_field(axes, [Kernel("matern32", 4.0)] * 2)
    observed = np.ones((48, 48), bool)
    observed[10:38, 12:36] = False
    steps = []

    def count(*given, coarse, **options):
        done = complete_field(*given, coarse=CoarseMaker(observed * 1.0, 20), **options)
        steps.append(done.iterations)
        return done

    monkeypatch.setattr(module, "complete_field", count)
    exact = posterior_draws(field, observed, 1e-3, (1,))(0)
    rough = posterior_draws(field, observed, 1e-3, (1,), only_size=True)(0)
    assert steps[1] % 10 == 0
    assert 10 < steps[1] < 0.8 * steps[0]
    sizes = [np.sqrt(np.mean(draw[~observed] ** 2)) for draw in (rough, exact)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
