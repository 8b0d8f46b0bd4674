"""Missing cells filled by conjugate gradients, against dense solves over the observed cells."""

import math
import tracemalloc
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from gap_grids import case, dense_answers, model_of, spectra_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sphere_grids import SPHERE, chordal, isotropic, kernels_of, places, rotation

from dkrls_cli.bench import paper_3d, paper_3d_split
from dkrls_cli.bench.speed import LONG_SIGMAS
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps import field as field_module
from dkrls_cli.gaps import solve
from dkrls_cli.gaps.coarse import CoarseMaker, CoarseSpace
from dkrls_cli.gaps.field import Grouping, make_field, product_field
from dkrls_cli.gaps.preconditioner import ProductPreconditioner
from dkrls_cli.gaps.solve import LEAST_RIDGE, complete, complete_field
from dkrls_cli.gaps.steps import system as system_module
from dkrls_cli.gaps.steps.system import System

SHAPES = [(40,), (12, 14), (7, 6, 8), (4, 5, 3, 6)]
RIDGE = 1e-3


@pytest.mark.parametrize("family", ["gaussian", "matern52", "matern32", "matern12"])
@pytest.mark.parametrize("period", [None, 16.0])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{len(shape)}d")
def test_completed_grid_holds_the_model_of_the_observed_cells(shape, family, period):
    values, axes, kernels = case(shape, family, period)
    completed = complete(values, axes, kernels, RIDGE, 0.3, tolerance=1e-13, limit=2000)
    missing = np.isnan(values)
    dense = dense_answers(values, axes, kernels, RIDGE, axes, mean=0.3)
    assert completed.converged
    np.testing.assert_array_equal(completed.values[~missing], values[~missing])
    np.testing.assert_allclose(completed.values[missing], dense[missing], rtol=0, atol=1e-8)
    new = [np.linspace(-0.5, 12.5, 4) for _ in shape]
    answers = model_of(completed, axes, kernels, RIDGE, 0.3).predict(new)
    expected = dense_answers(values, axes, kernels, RIDGE, new, mean=0.3)
    np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-8)


def test_filled_cells_have_no_weight():
    values, axes, kernels = case((7, 6, 8))
    completed = complete(values, axes, kernels, RIDGE, tolerance=1e-13, limit=2000)
    weights = model_of(completed, axes, kernels, RIDGE).weights(range(3))
    assert np.abs(weights[np.isnan(values)]).max() < 1e-8 * np.abs(weights).max()


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_tiny_and_huge_values_are_solved_for_alike(size):
    values, axes, kernels = case((9, 8, 10), "matern52", share=0.1)
    values[2:6, 3:7] = np.nan
    plain = complete(values, axes, kernels, RIDGE)
    scaled = complete(size * values, axes, kernels, RIDGE)
    assert scaled.iterations <= 1.2 * plain.iterations
    np.testing.assert_allclose(scaled.values / size, plain.values, atol=1e-7)


def test_a_start_saves_iterations_and_changes_nothing():
    values, axes, kernels = case((12, 14))
    cold = complete(values, axes, kernels, RIDGE, tolerance=1e-11)
    warm = complete(values, axes, kernels, RIDGE, tolerance=1e-11, start=cold.values)
    assert warm.iterations < cold.iterations / 2
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("holes", [False, True], ids=["scattered", "holes"])
def test_the_papers_field_is_recovered(holes):
    train, _ = paper_3d_split(0)
    truth = paper_3d(train)
    rng = np.random.default_rng(1)
    missing = rng.random(truth.shape) < (0.0 if holes else 0.3)
    for _ in range(10 if holes else 0):
        sides = [round(0.1 * m) for m in truth.shape]
        corner = [rng.integers(0, m - s) for m, s in zip(truth.shape, sides, strict=True)]
        missing[tuple(slice(c, c + s) for c, s in zip(corner, sides, strict=True))] = True
    kernels = [Kernel("gaussian", sigma) for sigma in LONG_SIGMAS]
    completed = complete(np.where(missing, np.nan, truth), train, kernels, 1e-12)
    assert completed.converged
    assert completed.iterations <= (100 if holes else 40)
    assert np.abs(completed.values - truth).max() < 1e-5


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(3)), st.floats(-50, 50), st.floats(-3, 3), st.integers(0, 99))
def test_order_of_axes_shifts_and_factors_do_not_matter(order, shift, factor, seed):
    values, axes, kernels = case((5, 6, 4), seed=seed)
    plain = complete(values, axes, kernels, RIDGE, tolerance=1e-12, limit=2000).values
    turned = complete(
        factor * values.transpose(order),
        [axes[axis] + shift for axis in order],
        [kernels[axis] for axis in order],
        RIDGE,
        tolerance=1e-12,
        limit=2000,
    ).values
    np.testing.assert_allclose(turned, factor * plain.transpose(order), atol=1e-7)


def test_answers_are_linear_in_the_data():
    values, axes, kernels = case((8, 9))
    other = np.where(np.isnan(values), np.nan, np.random.default_rng(5).standard_normal((8, 9)))
    one, two, both = (
        complete(data, axes, kernels, RIDGE, tolerance=1e-13, limit=2000).values
        for data in (values, other, 2 * values - other)
    )
    np.testing.assert_allclose(both, 2 * one - two, atol=1e-8)


def test_a_complete_grid_comes_back():
    values = np.random.default_rng(0).standard_normal((5, 6))
    completed = complete(values, [np.arange(5.0), np.arange(6.0)], [Kernel(), Kernel()], 0.1)
    assert (completed.converged, completed.iterations, completed.residual) == (True, 0, 0.0)
    np.testing.assert_array_equal(completed.values, values)
    assert not np.shares_memory(completed.values, values)


def test_a_constant_is_filled_with_itself():
    values = np.full((6, 7), 3.0)
    values[2:4, 3] = np.nan
    axes = [np.arange(6.0), np.arange(7.0)]
    filled = complete(values, axes, [Kernel(), Kernel()], 0.1, mean=3.0).values
    np.testing.assert_array_equal(filled, np.full((6, 7), 3.0))


def test_a_solve_that_was_cut_short_says_so():
    values, axes, kernels = case((12, 14))
    completed = complete(values, axes, kernels, 1e-6, limit=2)
    assert not completed.converged
    assert completed.residual > 1e-4
    assert completed.iterations == 4  # two of the solve, two that refine it
    assert np.isfinite(completed.values).all()
    assert complete(values, axes, kernels, 1e-6, limit=0).iterations == 0


def test_a_solve_stops_when_it_is_given_up():
    values, axes, kernels = case((12, 14))
    seen = []

    def give_up(answers):
        seen.append(answers)
        return len(seen) == 2

    completed = complete_field(
        product_field(spectra_of(axes, kernels)),
        values,
        1e-6,
        0.2,
        tolerance=0,
        limit=99,
        give_up=give_up,
    )
    assert completed.iterations == 20
    assert not completed.converged
    missing = np.isnan(values)
    np.testing.assert_allclose(seen[-1][missing], completed.values[missing], atol=1e-12)


def test_memory_is_a_few_arrays():
    rng = np.random.default_rng(0)
    axes = [np.arange(132.0), np.arange(73.0), np.arange(144.0)]
    values = rng.standard_normal((132, 73, 144))
    values[:, 20:50, 30:100] = np.nan
    values[rng.random(values.shape) < 0.2] = np.nan
    kernels = [Kernel("matern12", 20.0), Kernel("matern32", 6.0), Kernel("matern32", 8.0)]
    tracemalloc.start()
    complete(values, axes, kernels, 0.01, limit=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8.9 * values.nbytes  # most while distances to data are computed


def test_nothing_observed_and_no_ridge_are_refused():
    with pytest.raises(InputError, match="All 6 values are missing"):
        complete(np.full(6, np.nan), [np.arange(6.0)], [Kernel()], 0.1)
    for ridge in (-1.0, np.inf, np.nan):
        with pytest.raises(SettingError, match=f"Invalid joint ridge {ridge}"):
            complete(np.ones(6), [np.arange(6.0)], [Kernel()], ridge)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_the_residual_is_that_of_the_equations(tolerance):
    values, axes, kernels = case((6, 5))
    completed = complete_field(
        product_field(spectra_of(axes, kernels)), values, RIDGE, 0.0, tolerance=tolerance, limit=500
    )
    observed = np.isfinite(values)
    v = reduce(np.kron, [s.vectors for s in spectra_of(axes, kernels)])
    w = reduce(np.kron, [s.values for s in spectra_of(axes, kernels)])
    # f = V g at missing cells; weights of the completed grid give g: lambda g / w = V' (y - f)
    whole = completed.values.ravel()
    g = w / (w + RIDGE) * (v.T @ whole)
    right = v.T @ np.where(observed, values, 0.0).ravel()
    left = right - v.T @ (observed.ravel() * (v @ g)) - RIDGE / w * g
    assert completed.converged
    assert completed.residual <= tolerance
    assert np.linalg.norm(left) / np.linalg.norm(right) <= 10 * tolerance
    if tolerance > 1e-5:
        assert completed.residual > 1e-3 * tolerance  # no more work than was asked for


@pytest.mark.parametrize("slab", [1, 7, 50])
def test_slabs_of_any_size_give_the_same_answers(slab, monkeypatch):
    values, axes, kernels = case((7, 6, 8))
    whole = complete(values, axes, kernels, RIDGE, start=np.zeros((7, 6, 8)))
    monkeypatch.setattr(system_module, "SLAB", slab)
    parts = complete(values, axes, kernels, RIDGE, start=np.zeros((7, 6, 8)))
    assert parts.iterations == whole.iterations
    np.testing.assert_allclose(parts.values, whole.values, atol=1e-10)


def test_a_mask_that_lasts_takes_few_iterations():
    rng = np.random.default_rng(0)
    axes = [np.arange(30.0), np.arange(24.0), np.arange(28.0)]
    kernels = [Kernel("matern32", 5.0), Kernel("matern52", 6.0), Kernel("matern52", 6.0)]
    values = np.sin(axes[0])[:, None, None] + np.sin(axes[1] / 4)[:, None] * np.cos(axes[2] / 5)
    values += 0.1 * rng.standard_normal(values.shape)
    values[:, 4:15, 6:20] = np.nan
    values[rng.random(values.shape) < 0.2] = np.nan
    completed = complete(values, axes, kernels, 0.02, tolerance=1e-6)
    assert completed.converged
    assert completed.iterations <= 20


def test_fewer_directions_of_a_coarse_space_take_more_iterations():
    values = np.random.default_rng(0).standard_normal((24, 26)).cumsum(0).cumsum(1)
    values[3:20, 4:22] = np.nan
    axes, kernels = [np.arange(24.0), np.arange(26.0)], [Kernel("matern12", 6.0)] * 2
    options = {"tolerance": 1e-9, "limit": 500}
    counts = [
        complete_field(
            product_field(spectra_of(axes, kernels)),
            values,
            0.01,
            0.0,
            coarse=CoarseMaker(np.isfinite(values) * 1.0, most),
            **options,
        ).iterations
        for most in (1, 60, 400)
    ]
    assert counts[0] > 1.5 * counts[1] > 3 * counts[2]


def test_spectra_that_are_given_are_not_made_again(monkeypatch):
    values, axes, kernels = case((7, 6, 8))
    made = complete(values, axes, kernels, RIDGE)
    spectra = spectra_of(axes, kernels)
    monkeypatch.setattr(field_module, "gram", None)
    monkeypatch.setattr(field_module, "decompose", None)
    given = complete(values, axes, kernels, RIDGE, spectra=spectra)
    np.testing.assert_array_equal(given.values, made.values)


def test_a_solve_is_looked_at_every_ten_iterations():
    values, axes, kernels = case((12, 14))
    looks = []

    def give_up(answers):
        looks.append(answers.copy())
        return False

    done = complete_field(
        product_field(spectra_of(axes, kernels)),
        values,
        1e-6,
        0.0,
        tolerance=0,
        limit=35,
        give_up=give_up,
    )
    assert done.iterations == 35
    assert len(looks) == 3
    ten = complete_field(
        product_field(spectra_of(axes, kernels)), values, 1e-6, 0.0, tolerance=0, limit=10
    ).values
    missing = np.isnan(values)
    np.testing.assert_allclose(looks[0][missing], ten[missing], atol=1e-12)


# --- groups, noise, and cells that are watched --------------------------------------------------

PAIR = Grouping(((0, 1),))


def dense_field(field, values, noise, mean=0.0):
    """Return the mean of all cells given the observed ones, from K = V diag(w) V'."""
    v = reduce(np.kron, field.bases)
    covariance = (v * field.variances.ravel()) @ v.T
    seen = np.isfinite(values).ravel()
    noise = np.broadcast_to(noise, values.shape).ravel()[seen]
    system = covariance[np.ix_(seen, seen)] + np.diag(noise)
    weights = np.linalg.solve(system, values.ravel()[seen] - mean)
    return (covariance[:, seen] @ weights + mean).reshape(values.shape)


def holed(shape, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape).cumsum(0).cumsum(1)
    values[tuple(slice(m // 4, 3 * m // 4 + 1) for m in shape[:2])] = np.nan
    values[rng.random(shape) < 0.1] = np.nan
    return values, [np.arange(float(m)) for m in shape]


@pytest.mark.parametrize("family", ["matern12", "matern52"])
@pytest.mark.parametrize("ridge", [1e-4, 0.1])
@pytest.mark.parametrize(
    ("shape", "group"), [((11, 12), (0, 1)), ((7, 6, 4), (0, 1)), ((5, 7, 6), (1, 2))]
)
def test_a_group_is_filled_as_its_dense_covariance_says(shape, group, ridge, family):
    values, axes = holed(shape)
    kernels, grouping = [Kernel(family, 2.5)] * len(shape), Grouping((group,), 0.3, 0.4)
    done = complete(values, axes, kernels, ridge, 0.7, grouping=grouping, limit=2000)
    expected = dense_field(make_field(axes, kernels, grouping), values, ridge, 0.7)
    missing = np.isnan(values)
    assert done.converged
    np.testing.assert_array_equal(done.values[~missing], values[~missing])
    np.testing.assert_allclose(done.values[missing], expected[missing], atol=1e-5)


@pytest.mark.parametrize("grouping", [Grouping(), PAIR], ids=["product", "group"])
@pytest.mark.parametrize("whole", [False, True], ids=["holes", "complete"])
def test_with_noise_all_cells_are_answered_for(grouping, whole):
    values, axes = holed((9, 10))
    if whole:
        values = np.where(np.isnan(values), 1.0, values)
    noise = np.random.default_rng(1).uniform(0.0, 2.0, values.shape)
    noise[:2] = 0.0
    kernels = [Kernel("matern32", 2.0)] * 2
    done = complete(values, axes, kernels, 0.05, 0.4, grouping=grouping, noise=noise, limit=2000)
    expected = dense_field(make_field(axes, kernels, grouping), values, 0.05 + noise, 0.4)
    assert done.converged
    np.testing.assert_allclose(done.values, expected, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 1e-20, 1e-14, 1e-10, 1e-6])
def test_a_group_is_right_however_small_the_ridge(ridge):
    """A ridge of round-off once left cells off by the whole spread of the data, as converged."""
    values, axes = holed((9, 10))
    kernels = [Kernel("matern32", 2.5)] * 2
    done = complete(values, axes, kernels, ridge, grouping=PAIR, limit=3000)
    expected = dense_field(make_field(axes, kernels, PAIR), values, ridge)
    assert done.converged
    assert np.abs(done.values - expected)[np.isnan(values)].max() < 1e-4 * np.nanmax(np.abs(values))


def test_cells_that_are_not_watched_do_not_hold_up_a_solve():
    """A wide hole takes many iterations; single cells elsewhere need few of them."""
    rng = np.random.default_rng(0)
    values, axes = rng.standard_normal((40, 40)).cumsum(0), [np.arange(40.0)] * 2
    values[10:38, 10:38] = np.nan
    watched = np.zeros(values.shape, bool)
    watched[rng.integers(0, 5, 12), rng.integers(0, 40, 12)] = True
    values[watched] = np.nan
    field = make_field(axes, [Kernel("matern12", 8.0)] * 2, PAIR)
    expected = dense_field(field, values, 0.01)
    options = {"tolerance": 1e-6, "limit": 900, "coarse": CoarseMaker(np.isfinite(values) * 1.0, 9)}
    every = complete_field(field, values, 0.01, 0.0, **options)
    some = complete_field(field, values, 0.01, 0.0, watched=watched, **options)
    spread = np.nanmax(np.abs(values))
    assert every.converged
    assert some.converged
    assert some.iterations < 0.9 * every.iterations
    assert np.abs(every.values - expected)[np.isnan(values)].max() < 1e-4 * spread
    assert np.abs(some.values - expected)[watched].max() < 1e-4 * spread
    assert some.residual <= 1e-6


def test_a_solve_stops_when_its_last_three_steps_add_up_to_little():
    values, axes = holed((20, 20))
    field = make_field(axes, [Kernel("matern12", 4.0)] * 2, PAIR)

    def cells_after(steps):
        return complete_field(field, values, 0.1, 0.0, tolerance=0, limit=steps).values[missing]

    missing, spread = np.isnan(values), np.nanmax(np.abs(values))
    done = complete_field(field, values, 0.1, 0.0, tolerance=1e-4, limit=500)
    assert done.iterations <= 30  # of which three are a tenth
    *steps, last = (cells_after(done.iterations - back) for back in (4, 3, 2, 1, 0))
    changes = [np.abs(a - b).max() for a, b in pairwise([*steps, last])]
    assert np.abs(last - done.values[missing]).max() == 0
    assert done.residual == pytest.approx(sum(changes[1:]) / spread)
    assert sum(changes[1:]) <= 1e-4 * spread < sum(changes[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "reach", "share"),
    [
        ("gaussian", 4.0, 3e-11),
        ("matern52", 6.0, 1e-9),
        ("matern52", 6.0, 3e-11),
        ("matern12", 16.0, 1e-9),
    ],
)
def test_a_hole_among_scattered_gaps_is_right_or_told(family, reach, share):
    """Steps that change no cell by a thousandth may be 0.2 to 2 standard deviations off there."""
    rng = np.random.default_rng(1)
    axes = [np.arange(8.0), np.arange(24.0), np.arange(26.0)]
    kernels = [Kernel(family, sigma) for sigma in (0.7 * reach, reach, reach)]
    field = make_field(axes, kernels)
    ridge = share * float(field.variances.max())
    values = field.draw(rng) + math.sqrt(ridge) * rng.standard_normal(field.shape)
    missing = rng.random(field.shape) < 0.35
    missing[2:6, 8:17, 9:18] = True
    seen = np.where(missing, np.nan, values)
    done = complete(seen, axes, kernels, ridge, tolerance=1e-3, limit=1500, watched=missing)
    truth = dense_answers(seen, axes, kernels, ridge, axes)
    off = np.abs(done.values - truth)[missing].max() / np.nanmax(np.abs(seen))
    assert done.converged == (off <= 3e-3)
    assert done.converged or share < 1e-9


@pytest.mark.parametrize("again", [False, True])
def test_a_lasting_mask_that_is_met_again_has_a_coarse_space(again):
    """In windows of a search it ends in few steps: settings are not taken for unsolvable."""
    rng = np.random.default_rng(0)
    observed = rng.random((30, 30, 8)) > 0.1
    observed[5:20, 5:20] = False
    axes = [np.arange(float(m)) for m in observed.shape]
    field = make_field(axes, [Kernel("matern52", 6.0)] * 3)
    system = System(field, observed * 1.0, 1e-6, ~observed)
    near = solve._near(system, observed, CoarseMaker(observed * 1.0) if again else None)
    assert type(near) is (CoarseSpace if again else ProductPreconditioner)


def test_land_with_a_coarse_space_is_solved_for_in_fewer_steps():
    rng = np.random.default_rng(0)
    observed = rng.random((12, 14, 6)) > 0.1
    observed[3:9, 4:11] = False
    axes = [np.arange(float(m)) for m in observed.shape]
    kernels = [Kernel("matern52", 5.0)] * 3
    field, ridge = make_field(axes, kernels), 1e-3
    values = np.where(observed, field.draw(rng), np.nan)
    clouds = ~observed & observed.any(axis=2, keepdims=True)
    how = {"tolerance": 1e-7, "limit": 900, "watched": clouds}
    alone = complete_field(field, values, ridge, 0.0, **how)
    again = complete_field(field, values, ridge, 0.0, coarse=CoarseMaker(observed * 1.0), **how)
    truth = dense_answers(values, axes, kernels, ridge, axes)
    for done in (alone, again):
        assert done.converged
        np.testing.assert_allclose(done.values[clouds], truth[clouds], atol=1e-5)
    assert again.iterations < 0.6 * alone.iterations


@pytest.mark.slow
@pytest.mark.parametrize(("family", "ridge"), [("gaussian", 1e-4), ("matern52", 1e-3)])
@pytest.mark.parametrize("kind", ["clouds", "block"])
def test_large_holes_take_at_most_thirty_steps(kind, family, ridge):
    """On 40 x 60 x 60 cells, within 0.005 standard deviations of the exact solution."""
    from scipy.ndimage import gaussian_filter

    rng, shape = np.random.default_rng(5), (40, 60, 60)
    missing = np.zeros(shape, bool)
    missing[10:30, 15:45, 15:45] = True
    if kind == "clouds":
        cloud = gaussian_filter(rng.standard_normal(shape), (1.5, 5, 5), mode="wrap")
        missing = cloud > np.quantile(cloud, 0.4)
    axes, sigma = [np.arange(float(m)) for m in shape], 6.0 if family == "gaussian" else 10.0
    field = make_field(axes, [Kernel(family, sigma, None, 1.0)] * 3)
    values = field.draw(rng) + np.sqrt(ridge) * rng.standard_normal(shape)
    seen = np.where(missing, np.nan, values)
    done = complete_field(field, seen, ridge, 0.0, tolerance=2e-4, limit=500)
    exact = complete_field(field, seen, ridge, 0.0, tolerance=1e-6, limit=500)
    assert done.converged
    assert done.iterations <= 30
    off = np.abs(done.values - exact.values)[missing].max() / np.nanstd(seen)
    assert off < 0.005


def test_a_coarse_space_is_made_by_the_maker_that_is_given():
    observed = np.ones((30, 30), bool)
    observed[5:20, 5:20] = False
    field = make_field([np.arange(30.0)] * 2, [Kernel("matern12", 3.0)] * 2)
    system = System(field, observed * 1.0, 0.1, ~observed)
    near = solve._near(system, observed, CoarseMaker(observed * 1.0, 17))
    assert type(near) is CoarseSpace
    assert near.places[0].size == 17


def test_no_watched_cell_and_one_observed_cell_are_no_trouble():
    values, axes = np.full((4, 5), np.nan), [np.arange(4.0), np.arange(5.0)]
    values[1, 2] = 2.0
    field = make_field(axes, [Kernel("matern32", 2.0)] * 2, PAIR)
    nothing = np.zeros(values.shape, bool)
    done = complete_field(field, values, 0.1, 0.0, tolerance=1e-6, limit=50, watched=nothing)
    assert np.isfinite(done.values).all()
    full = complete_field(field, values, 0.1, 0.0, tolerance=1e-9, limit=50)
    np.testing.assert_allclose(
        full.values[np.isnan(values)], dense_field(field, values, 0.1)[np.isnan(values)], atol=1e-6
    )


@pytest.mark.parametrize("kind", ["scattered", "lasting", "lasting and scattered", "hole"])
def test_the_preconditioner_is_that_of_the_mask(kind):
    rng = np.random.default_rng(0)
    observed = np.ones((30, 30, 8), bool)
    if kind != "lasting":
        observed &= rng.random(observed.shape) > 0.1
    if "lasting" in kind:
        observed[5:20, 5:20] = False
    if kind == "hole":
        observed[5:20, 5:20, 1:8] = False
    axes = [np.arange(float(m)) for m in observed.shape]
    kernels = [Kernel("matern32", 3.0)] * 3
    system = System(make_field(axes, kernels), observed * 1.0, 0.1, ~observed)
    near = solve._near(system, observed, None)
    kinds = {"scattered": type(None), "hole": CoarseSpace}
    assert type(near) is kinds.get(kind, ProductPreconditioner)
    grouped = make_field(axes, kernels, Grouping(((0, 2),)))  # the mask lasts along a group
    near = solve._near(System(grouped, observed * 1.0, 0.1, ~observed), observed, None)
    assert (near is None) == (kind == "scattered")
    assert near is None or type(near) is CoarseSpace
    land = ~observed & ~observed.any(axis=2, keepdims=True)  # only other cells are watched
    near = solve._near(
        System(make_field(axes, kernels), observed * 1.0, 0.1, ~observed & ~land),
        observed,
        None,
    )
    assert type(near) is kinds.get(kind, ProductPreconditioner)


# --- the sphere ---------------------------------------------------------------------------------

GLOBE = np.linspace(-84, 84, 15), np.arange(0.0, 360, 15)


def dense_sphere(points, values, family, sigma, ridge):
    """Return the mean at all points given the observed ones, by the kernel of their chords."""
    seen = np.isfinite(values)
    system = chordal(family, sigma, points[seen]) + ridge * np.eye(seen.sum())
    return chordal(family, sigma, points, points[seen]) @ np.linalg.solve(system, values[seen])


def caps(points, *centres, radius=0.45):
    """Return which points lie in caps around some centres, wherever these are."""
    near = [np.linalg.norm(points - np.asarray(c), axis=1) < radius for c in centres]
    return np.any(near, axis=0)


@pytest.mark.parametrize("family", ["matern12", "matern32", "matern52", "gaussian"])
def test_holes_on_the_sphere_are_filled_as_the_dense_system_does(family):
    points = places(*GLOBE)
    values = isotropic(points, 40.0, 1)
    values[caps(points, [0, 0, 1], [1, 0, 0], [0, -1, 0.2])] = np.nan
    expected = dense_sphere(points, values, family, 40.0, 0.01)
    done = complete(
        values.reshape(15, 24),
        GLOBE,
        kernels_of(family, 40.0),
        0.01,
        grouping=SPHERE,
        tolerance=1e-10,
    )
    lost = np.isnan(values)
    assert done.converged
    np.testing.assert_allclose(done.values.ravel()[lost], expected[lost], atol=1e-6)
    np.testing.assert_array_equal(done.values.ravel()[~lost], values[~lost])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_sphere_beside_another_axis_is_solved_as_the_dense_system_does(place):
    """With noise of every cell, wherever the other axis is."""
    points, t = places(*GLOBE), np.arange(4.0)
    rng = np.random.default_rng(4)
    values = isotropic(points, 40.0, 2)[:, None] + 0.3 * rng.standard_normal((360, 4))
    values[caps(points, [0, 0, -1], [0, 1, 0])] = np.nan
    values[rng.random(values.shape) < 0.2] = np.nan
    noise = rng.uniform(0, 0.3, values.shape)
    whole = np.kron(chordal("matern32", 40.0, points), gram(Kernel("matern12", 3.0), t, t))
    seen = np.isfinite(values).ravel()
    system = whole[np.ix_(seen, seen)] + np.diag(0.02 + noise.ravel()[seen])
    expected = whole[:, seen] @ np.linalg.solve(system, values.ravel()[seen])
    axes, kernels = [*GLOBE], kernels_of("matern32", 40.0)
    axes.insert(place, t)
    kernels.insert(place, Kernel("matern12", 3.0))
    values, noise, expected = (
        np.moveaxis(a.reshape(15, 24, 4), 2, place) for a in (values, noise, expected)
    )
    group = tuple(axis for axis in range(3) if axis != place)
    grouping = Grouping((group,), sphere=True)
    how = {"grouping": grouping, "tolerance": 1e-10, "noise": noise}
    done = complete(values, axes, kernels, 0.02, **how)
    np.testing.assert_allclose(done.values, expected, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_field_may_be_turned(seed):
    """The dense answers with all places turned are the same: the poles of the grid are no matter.

    Holes are turned with the field, and are filled as well wherever they come to lie.
    """
    errors = []
    for turn in (np.eye(3), rotation(seed)):
        points = places(*GLOBE) @ turn
        truth = isotropic(points, 40.0, 7)
        lost = caps(points, [0, 0, 1], [1, 0, 0])
        values = np.where(lost, np.nan, truth)
        done = complete(
            values.reshape(15, 24), GLOBE, kernels_of("matern52", 40.0), 1e-4, grouping=SPHERE
        )
        expected = dense_sphere(points, values, "matern52", 40.0, 1e-4)
        np.testing.assert_allclose(done.values.ravel()[lost], expected[lost], atol=1e-5)
        area = np.cos(np.deg2rad(np.repeat(GLOBE[0], 24)))[lost]
        missed = (done.values.ravel() - truth)[lost]
        errors.append(np.sqrt(np.average(missed**2, weights=area)))
    assert max(errors) < 2 * min(errors) < 0.2


def test_a_hole_across_a_pole_or_the_seam_is_filled_as_well_as_one_at_the_equator():
    """In a plane a pole is an edge: the sphere errs far less there, and as little as elsewhere."""
    points = places(*GLOBE)
    found = {}
    for name, centre in (("pole", [0, 0, 1]), ("seam", [1, 0, 0]), ("equator", [0, 1, 0])):
        for grouping in (SPHERE, PAIR) if name == "pole" else (SPHERE,):
            squares = []
            for seed in range(4):
                truth = isotropic(points, 40.0, seed)
                lost = caps(points, centre, radius=0.5)
                values = np.where(lost, np.nan, truth).reshape(15, 24)
                done = complete(
                    values, GLOBE, kernels_of("matern52", 40.0), 1e-3, grouping=grouping
                )
                squares.append(np.mean((done.values.ravel() - truth)[lost] ** 2))
            found[name, grouping.sphere] = math.sqrt(np.mean(squares))
    for name in ("pole", "seam"):
        assert found[name, True] < 1.6 * found["equator", True]
    assert found["pole", True] < 0.5 * found["pole", False]


def test_a_mask_that_lasts_beside_a_sphere_has_its_preconditioner():
    points, t = places(*GLOBE), np.arange(12.0)
    field = make_field(
        [t, *GLOBE],
        [Kernel("matern32", 4.0), *kernels_of("matern32", 40.0)],
        Grouping(((1, 2),), sphere=True),
    )
    land = caps(points, [0, 0, 1], [1, 0, 0], radius=0.8).reshape(15, 24)
    rng = np.random.default_rng(0)
    observed = ~land & (rng.random((12, 15, 24)) > 0.05)
    truth = field.draw(rng)
    values = np.where(observed, truth, np.nan)
    watched = ~observed & ~land
    system = System(field, field.fold(observed * 1.0), 0.01, field.fold(watched))
    near = solve._near(system, observed, None)
    assert isinstance(near, ProductPreconditioner)
    how = {"tolerance": 1e-9, "limit": 500, "watched": watched}
    done = complete_field(field, values, 0.01, 0.0, **how)
    coarse = complete_field(field, values, 0.01, 0.0, tolerance=1e-10, limit=2000)
    assert done.converged
    assert done.iterations < 60
    np.testing.assert_allclose(done.values[watched], coarse.values[watched], atol=1e-6)


def test_a_solve_tells_how_far_it_is():
    rng = np.random.default_rng(0)
    x = np.arange(60.0)
    values = np.sin(x / 5)[:, None] * np.cos(x / 7)
    values[rng.random(values.shape) < 0.5] = np.nan
    values[20:45, 15:40] = np.nan
    shares: list[float] = []
    done = complete(values, [x, x], [Kernel("matern12", 6.0)] * 2, 1e-4, tell=shares.append)
    assert done.iterations >= 10
    assert len(shares) >= done.iterations // 10
    assert all(0 < share < 1 for share in shares)
    assert max(shares) > 0.5


# --- precision ----------------------------------------------------------------------------------


def land_and_sea(seed=0):
    """Return a grid with land and scattered gaps, its axes, and the gaps that are not land."""
    rng = np.random.default_rng(seed)
    axes = [np.arange(8.0), np.arange(14.0), np.arange(16.0)]
    values = np.sin(axes[0] / 3)[:, None, None] + np.cos(axes[1] / 4)[:, None] * np.sin(axes[2] / 5)
    values += 0.05 * rng.standard_normal(values.shape)
    gaps = rng.random(values.shape) < 0.15
    values[gaps] = np.nan
    values[:, 4:10, 4:11] = np.nan
    gaps[:, 4:10, 4:11] = False
    return values, axes, gaps


SEA = [Kernel("matern52", 4.0)] * 3


@pytest.fixture
def singles(monkeypatch):
    """Return a list that has an item for every system in single precision; no grid is too small."""
    made, in_single = [], System.in_single
    monkeypatch.setattr(solve, "_MANY_CELLS", 1)
    monkeypatch.setattr(System, "in_single", lambda self: made.append(self) or in_single(self))
    return made


@pytest.mark.parametrize("family", ["gaussian", "matern52", "matern12"])
@pytest.mark.parametrize("ridge", [1e-4, 0.01])
def test_in_single_precision_answers_are_as_exact_as_was_asked_for(family, ridge, singles):
    values, axes, gaps = land_and_sea()
    kernels = [Kernel(family, 4.0)] * 3
    field = make_field(axes, kernels)
    done = complete_field(field, values, ridge, 0.1, tolerance=1e-5, limit=900, watched=gaps)
    expected = dense_answers(values, axes, kernels, ridge, axes, mean=0.1)
    assert len(singles) == 1
    assert done.converged
    assert np.abs(done.values - expected)[gaps].max() < 1e-3 * np.nanstd(values)
    np.testing.assert_array_equal(done.values[np.isfinite(values)], values[np.isfinite(values)])


@pytest.mark.parametrize(
    ("change", "is_single"),
    [
        ({}, True),
        ({"tolerance": 0.99e-5}, False),
        ({"watched": None}, False),  # land is a hole
        ({"noise": np.full((8, 14, 16), 0.01)}, False),
        ({"ridge": 1.01e-9}, True),
        ({"ridge": 0.99e-9}, False),
    ],
    ids=["ordinary", "exact", "land", "noise", "small ridge", "tiny ridge"],
)
def test_single_precision_is_for_ordinary_solves_without_holes(change, is_single, singles):
    values, axes, gaps = land_and_sea()
    field = make_field(axes, SEA)
    given = {"ridge": 1e-3, "tolerance": 1e-5, "watched": gaps, "noise": None} | change
    ridge = given.pop("ridge") * float(field.variances.max())
    complete_field(field, values, ridge, 0.0, limit=3, **given)
    assert bool(singles) == is_single


def test_a_grid_with_a_coarse_space_and_a_sphere_are_in_double_precision(singles):
    values, axes, _ = land_and_sea()
    values[1:7, 2:13, 2:14] = np.nan
    values[0] = 1.0
    complete_field(make_field(axes, SEA), values, 0.01, 0.0, tolerance=1e-4, limit=3)
    points = places(*GLOBE)
    field = isotropic(points, 40.0, 1)
    field[::7] = np.nan
    how = {"grouping": SPHERE, "tolerance": 1e-4}
    complete(field.reshape(15, 24), GLOBE, kernels_of("matern32", 40.0), 0.01, **how)
    assert not singles


def test_few_cells_are_in_double_precision(singles, monkeypatch):
    values, axes, gaps = land_and_sea()
    how = {"tolerance": 1e-4, "limit": 3, "watched": gaps}
    for most, count in ((values.size + 1, 0), (values.size, 1)):
        monkeypatch.setattr(solve, "_MANY_CELLS", most)
        complete_field(make_field(axes, SEA), values, 0.01, 0.0, **how)
        assert len(singles) == count


def test_products_that_are_off_are_put_right_by_the_residual(singles, monkeypatch):
    """The residual is computed anew until it changes nothing: products of 1 % are enough."""
    values, axes, gaps = land_and_sea()
    field, how = make_field(axes, SEA), {"limit": 900, "watched": gaps}
    right = complete_field(field, values, 0.01, 0.0, tolerance=1e-9, **how).values
    multiply = System.multiply

    def multiply_roughly(self, g):
        product, reach = multiply(self, g)
        return (1.01 if self.is_single else 1.0) * product, reach

    monkeypatch.setattr(System, "multiply", multiply_roughly)
    done = complete_field(field, values, 0.01, 0.0, tolerance=1e-5, **how)
    assert singles
    assert done.converged
    spread = np.nanmax(np.abs(values))
    assert np.abs(done.values - right)[gaps].max() < 1e-4 * spread
    monkeypatch.setattr(System, "is_single", False)  # nothing is put right then
    monkeypatch.setattr(System, "multiply", lambda s, g: _scaled(multiply(s, g), 1.01))
    off = complete_field(field, values, 0.01, 0.0, tolerance=1e-5, **how)
    assert np.abs(off.values - right)[gaps].max() > 1e-3 * spread


def _scaled(found, factor):
    product, reach = found
    return factor * product, reach


@pytest.mark.parametrize(
    ("tolerance", "share"), [(1e-10, 1e-11), (1e-6, 2e-8), (1e-5, 2e-7), (1e-3, 1e-6)]
)
def test_the_looser_a_solve_the_more_directions_are_dropped(tolerance, share, monkeypatch):
    values, axes, gaps = land_and_sea()
    asked, useful = [], field_module.Field.useful
    monkeypatch.setattr(
        field_module.Field, "useful", lambda self, *how: asked.append(how) or useful(self, *how)
    )
    field = make_field(axes, [Kernel("gaussian", 9.0)] * 3)
    complete_field(field, values, 0.5, 0.0, tolerance=tolerance, limit=3, watched=gaps)
    assert asked == [(0.5, pytest.approx(share))]


def test_directions_that_are_dropped_change_no_answer_beyond_the_tolerance(monkeypatch):
    values, axes, gaps = land_and_sea()
    field = make_field(axes, [Kernel("gaussian", 3.0)] * 3)
    found = []
    for bounds in ((1e-11, 1e-11), (1e-6, 1e-6)):
        monkeypatch.setattr(solve, "_DROPPED_SHARES", bounds)
        done = complete_field(field, values, 0.01, 0.0, tolerance=1e-9, limit=900, watched=gaps)
        found.append(done.values)
    fewer, all_of_them = (math.prod(field.useful(0.01, s).variances.shape) for s in (1e-6, 1e-11))
    assert fewer < 0.9 * all_of_them
    assert np.abs(found[0] - found[1])[gaps].max() < 1e-6


@pytest.mark.parametrize("family", ["gaussian", "matern12"])
def test_a_group_tells_what_round_off_leaves_open(family):
    """A residual at round-off is none, but the missing cells are off by that times w / lambda."""
    x, y = np.arange(14.0), np.arange(16.0)
    values = np.sin(x[:, None] / 3) * np.cos(y / 4) + 0.3 * np.sin(np.outer(x, y) / 20)
    missing = np.random.default_rng(0).random(values.shape) < 0.2
    values[missing] = np.nan
    field = make_field([x, y], [Kernel(family, 1.0)] * 2, PAIR)
    w, ridge = field.variances, LEAST_RIDGE * float(field.variances.max())
    done = complete_field(field, values, ridge, 0.0, tolerance=1e-9, limit=1500)
    root = np.kron(*field.bases) * np.sqrt(w.ravel())  # by least squares, which squares nothing
    rows = np.vstack([root[~missing.ravel()], math.sqrt(ridge) * np.eye(w.size)])
    known = np.concatenate([values[~missing], np.zeros(w.size)])
    exact = (root @ np.linalg.lstsq(rows, known, rcond=None)[0]).reshape(values.shape)
    off = np.abs(done.values - exact)[missing].max() / np.abs(values[~missing]).max()
    assert done.converged
    assert 1e-6 < off < 3 * done.residual
    assert done.residual < 1e-4
