"""Missing cells filled by conjugate gradients, against dense solves over the observed cells."""

import tracemalloc
from functools import reduce

import numpy as np
import pytest
from gap_grids import case, dense_answers, model_of, spectra_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.bench import paper_3d, paper_3d_split
from dkrls_cli.bench.speed import LONG_SIGMAS
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.spectrum import ROUND_OFF
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps import solve
from dkrls_cli.gaps.solve import complete, complete_with_spectra

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
    assert scaled.iterations <= plain.iterations + 1
    np.testing.assert_allclose(scaled.values / size, plain.values, atol=1e-7)


def test_a_start_saves_iterations_and_changes_nothing():
    values, axes, kernels = case((12, 14))
    cold = complete(values, axes, kernels, RIDGE, tolerance=1e-11)
    warm = complete(values, axes, kernels, RIDGE, tolerance=1e-11, start=cold.values)
    assert warm.iterations < cold.iterations / 2
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-8)


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
    assert completed.iterations <= (100 if holes else 30)
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
    assert completed.iterations == 4  # two of the solve, two that refine it
    assert np.isfinite(completed.values).all()
    assert complete(values, axes, kernels, 1e-6, limit=0).iterations == 0


def test_a_solve_stops_when_it_is_given_up():
    values, axes, kernels = case((12, 14))
    seen = []

    def give_up(answers):
        seen.append(answers)
        return len(seen) == 2

    completed = complete_with_spectra(
        spectra_of(axes, kernels), values, 1e-6, 0.2, tolerance=0, limit=99, give_up=give_up
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
    assert peak < 6.9 * values.nbytes  # 5.2 of the solve, the others of its refinement


def test_nothing_observed_and_no_ridge_are_refused():
    with pytest.raises(InputError, match="All 6 values are missing"):
        complete(np.full(6, np.nan), [np.arange(6.0)], [Kernel()], 0.1)
    for ridge in (-1.0, np.inf, np.nan):
        with pytest.raises(SettingError, match=f"Invalid joint ridge {ridge}"):
            complete(np.ones(6), [np.arange(6.0)], [Kernel()], ridge)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_the_residual_is_that_of_the_equations(tolerance):
    values, axes, kernels = case((6, 5))
    completed = complete_with_spectra(
        spectra_of(axes, kernels), values, RIDGE, 0.0, tolerance=tolerance, limit=500
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
    assert np.linalg.norm(left) / np.linalg.norm(right) <= 2 * tolerance
    if tolerance > 1e-5:
        assert completed.residual > 1e-3 * tolerance  # no more work than was asked for


@pytest.mark.parametrize("slab", [1, 7, 50])
def test_slabs_of_any_size_give_the_same_answers(slab, monkeypatch):
    values, axes, kernels = case((7, 6, 8))
    whole = complete(values, axes, kernels, RIDGE, start=np.zeros((7, 6, 8)))
    monkeypatch.setattr(solve, "_SLAB", slab)
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


def test_fewer_directions_of_a_lasting_mask_take_more_iterations():
    values, axes, kernels = case((9, 8, 10), "matern52", share=0.1)
    values[2:6, 3:7] = np.nan
    options = {"tolerance": 1e-9, "limit": 500}
    counts = [
        complete_with_spectra(
            spectra_of(axes, kernels), values, RIDGE, 0.0, directions=directions, **options
        ).iterations
        for directions in (1, None)
    ]
    assert counts[0] > counts[1]


def test_scattered_gaps_are_preconditioned_by_their_observed_share():
    values, axes, kernels = case((7, 6))
    observed = np.isfinite(values)
    system = solve._System(tuple(spectra_of(axes, kernels)), observed, RIDGE)
    left = np.random.default_rng(0).standard_normal((7, 6))
    w = np.multiply.outer(*(s.values for s in system.spectra))
    found = solve._precondition(system, None, left)
    np.testing.assert_allclose(found, left * w / (observed.mean() * w + RIDGE), rtol=1e-12)


def test_spectra_that_are_given_are_not_made_again(monkeypatch):
    values, axes, kernels = case((7, 6, 8))
    made = complete(values, axes, kernels, RIDGE)
    spectra = spectra_of(axes, kernels)
    monkeypatch.setattr(solve, "gram", None)
    monkeypatch.setattr(solve, "decompose", None)
    given = complete(values, axes, kernels, RIDGE, spectra=spectra)
    np.testing.assert_array_equal(given.values, made.values)


def test_directions_far_below_the_ridge_are_left_out():
    x = np.arange(40.0)
    spectra = spectra_of([x, x], [Kernel("gaussian", 3.0), Kernel("matern12", 3.0)])
    for ridge in (1e-3, 1e-10, 1e-14):
        kept = solve._useful(spectra, ridge)
        largest = [s.values[0] for s in spectra]
        for own, spectrum, other in zip(kept, spectra, reversed(largest), strict=True):
            share = spectrum.values * other / ridge
            lifted = spectrum.values + ridge / other > ROUND_OFF * spectrum.values[0]
            assert own.rank == np.count_nonzero((share > 1e-11) & lifted)
            assert own.vectors.flags.c_contiguous
    assert [s.rank for s in solve._useful(spectra, 1e15)] == [1, 1]  # one at least


def test_a_solve_is_looked_at_every_ten_iterations():
    values, axes, kernels = case((12, 14))
    looks = []

    def give_up(answers):
        looks.append(answers.copy())
        return False

    done = complete_with_spectra(
        spectra_of(axes, kernels), values, 1e-6, 0.0, tolerance=0, limit=35, give_up=give_up
    )
    assert done.iterations == 35
    assert len(looks) == 3
    ten = complete_with_spectra(
        spectra_of(axes, kernels), values, 1e-6, 0.0, tolerance=0, limit=10
    ).values
    missing = np.isnan(values)
    np.testing.assert_allclose(looks[0][missing], ten[missing], atol=1e-12)
