"""Tests of dkrls_cli.cascade.functionals.sharpening: sums kept, fields found, dense solves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals.answers import answer_grid, answer_points
from dkrls_cli.cascade.functionals.bars import variance_at_points, variance_blocks
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.draws import functional_draws
from dkrls_cli.cascade.functionals.functional import Derivatives, Means, Values
from dkrls_cli.cascade.functionals.sharpening import CellField, CellRows, cell_rows, joint_rows
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.gaps.solve import complete

EDGES = np.arange(0.0, 31.0)
SOURCE = SourceCells(EDGES[:-1], EDGES[1:])


def integral(z):
    """Return the integral of sin(z / 3) + 0.3 cos(z)."""
    return -3 * np.cos(z / 3) + 0.3 * np.sin(z)


def means(edges):
    return np.diff(integral(edges)) / np.diff(edges)


def over(edges, latitude=False):
    return Means(np.asarray(edges[:-1]), np.asarray(edges[1:]), latitude)


def model(kernel: Kernel, ridge: float, values=None) -> Cascade:
    data = means(EDGES) if values is None else values
    return fit_cascade(data, [EDGES[:-1] + 0.5], [Level("x", kernel, ridge)], mean=0.2)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("ridge", [1e-10, 0.1])
def test_means_over_cells_of_the_data_are_the_data(family, ridge):
    noisy = means(EDGES) + np.random.default_rng(0).standard_normal(30)
    cascade = model(Kernel(family, 3.0), ridge, noisy)
    coarse = answer_grid(cascade, [over(EDGES[::3])], cells={0: SOURCE})
    assert np.allclose(coarse, noisy.reshape(-1, 3).mean(axis=1), rtol=0, atol=1e-14)
    halves = answer_grid(cascade, [over(np.arange(0.0, 30.1, 0.5))], cells={0: SOURCE})
    assert np.allclose(halves.reshape(-1, 2).mean(axis=1), noisy, rtol=0, atol=1e-10)


def test_means_over_single_cells_pass_through():
    cascade = model(Kernel("gaussian", 3.0), 0.1)
    some = Means(EDGES[[4, 2]], EDGES[[5, 3]])
    rows = cell_rows(cascade, 0, SOURCE, some, False)
    assert isinstance(rows, np.ndarray)
    assert rows.tolist() == [4, 2]
    smooth = cell_rows(cascade, 0, SOURCE, some, True)
    assert isinstance(smooth, np.ndarray)
    assert smooth.shape == (2, 30)


@given(st.lists(st.floats(0.01, 29.99), min_size=1, max_size=12, unique=True))
def test_sums_are_kept_on_any_cells_that_cover_the_data(inner):
    edges = np.array([0.0, *sorted(inner), 30.0])
    edges = edges[np.diff(edges, prepend=-1.0) > 1e-6]
    cascade = model(Kernel("matern52", 4.0), 1e-3)
    found = answer_grid(cascade, [over(edges)], cells={0: SOURCE})
    assert found @ np.diff(edges) == pytest.approx(means(EDGES).sum(), abs=1e-10)


def test_smooth_fields_are_found_far_better_than_by_taking_means_for_values():
    cascade = model(Kernel("gaussian", 3.0), 1e-10)
    edges = np.arange(0.0, 30.1, 0.4)[5:-5]
    found = answer_grid(cascade, [over(edges)], cells={0: SOURCE})
    plain = answer_grid(cascade, [over(edges)])
    errors = [np.sqrt(np.mean((each - means(edges)) ** 2)) for each in (found, plain)]
    assert errors[0] < 1e-4 < 1e-2 * errors[1] * 100
    query = np.linspace(2.0, 28.0, 40)
    exact = np.sin(query / 3) + 0.3 * np.cos(query)
    assert np.abs(answer_grid(cascade, [Values(query)], cells={0: SOURCE}) - exact).max() < 1e-4
    slopes = np.cos(query / 3) / 3 - 0.3 * np.sin(query)
    asked = [Derivatives(query, 1)]
    assert np.abs(answer_grid(cascade, asked, cells={0: SOURCE}) - slopes).max() < 1e-3


def test_smooth_answers_leave_out_what_the_ridge_smooths():
    cascade = model(Kernel("gaussian", 3.0), 0.1)
    asked = [over(EDGES[::3])]
    smoothed = answer_grid(cascade, asked, smooth=True, cells={0: SOURCE})
    assert np.abs(smoothed - means(EDGES[::3])).max() > 1e-3


def test_circles_of_latitude_and_longitude():
    lon, lat = np.arange(0.0, 361.0, 30.0), np.arange(-90.0, 91.0, 30.0)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((6, 12))
    levels = [
        Level("lat", Kernel("matern32", 50.0), 0.01),
        Level("lon", Kernel("gaussian", 40.0, period=360.0), 0.02),
    ]
    centres = [(e[:-1] + e[1:]) / 2 for e in (lat, lon)]
    cascade = fit_cascade(data, centres, levels)
    cells = {
        0: SourceCells(lat[:-1], lat[1:], latitude=True),
        1: SourceCells(lon[:-1], lon[1:], period=360.0),
    }
    columns = np.array([-80.0, 0.0, 41.0, 100.0, 280.0])  # across the seam
    rows = np.array([-90.0, -11.0, 15.0, 90.0])
    found = answer_grid(cascade, [over(rows, True), over(columns)], cells=cells)
    areas = np.multiply.outer(np.diff(np.sin(np.radians(rows))), np.diff(columns))
    own = np.multiply.outer(np.diff(np.sin(np.radians(lat))), np.diff(lon))
    assert (found * areas).sum() == pytest.approx((data * own).sum(), abs=1e-10)
    turned = answer_grid(cascade, [over(lat, True), over(lon - 720)], cells=cells)
    assert np.allclose(turned, data, rtol=0, atol=1e-13)


def test_long_levels_keep_sums_as_well():
    edges = np.arange(0.0, 1301.0)
    values = np.sin(edges[:-1] / 20) + np.random.default_rng(0).standard_normal(1300)
    levels = [Level("t", Kernel("matern32", 9.0), 0.3)]
    cascade = fit_cascade(values, [edges[:-1] + 0.5], levels)
    assert cascade.is_long(0)
    source = SourceCells(edges[:-1], edges[1:])
    coarse = np.array([0.0, 7.5, 400.0, 401.0, 1300.0])
    asked = [over(coarse)]
    found = answer_grid(cascade, asked, cells={0: source})
    assert found @ np.diff(coarse) == pytest.approx(values.sum(), abs=1e-9)
    assert found[2] == pytest.approx(values[400], abs=1e-13)
    at = answer_points(cascade, asked, cells={0: source})
    assert np.allclose(at, found, rtol=0, atol=1e-9)


def test_answers_that_are_data_have_no_error():
    cascade = model(Kernel("gaussian", 3.0), 0.1)
    asked = Means(np.array([0.0, 3.0, 3.5]), np.array([1.0, 7.0, 4.0]))
    variance = variance_blocks(calibrate(cascade), cascade, [asked], cells={0: SOURCE})(
        (slice(0, 3),)
    )
    assert variance[:2].tolist() == [0.0, 0.0]
    assert variance[2] > 0
    smoothed = variance_blocks(
        calibrate(cascade), cascade, [asked], smooth=True, cells={0: SOURCE}
    )((slice(0, 3),))
    assert (smoothed > 0).all()


def test_places_outside_all_cells_are_answered_without_a_residual():
    cascade = model(Kernel("gaussian", 3.0), 0.1)
    field = CellField.of(cascade, 0, SOURCE)
    rows = CellRows(field, Values(np.array([-0.5, 30.5, 0.5])))
    assert (len(rows), rows.ndim, len(rows[1:])) == (3, 2, 2)
    found = rows @ np.eye(30)
    smooth = CellRows(field, rows.asked, smooth=True) @ np.eye(30)
    assert np.array_equal(found[:2], smooth[:2])
    assert not np.allclose(found[2], smooth[2])


@pytest.mark.parametrize("joint", [False, True])
def test_what_the_ridge_smooths_is_kept_in_means_of_values(joint):
    rng = np.random.default_rng(0)
    x, y = np.arange(8.0), np.arange(5.0)
    data = rng.standard_normal((8, 5))
    ridge = 0.0 if joint else 0.4
    levels = [Level(n, Kernel("matern32", 2.0), ridge) for n in "xy"]
    cascade = fit_cascade(data, [x, y], levels, joint_ridge=0.4 if joint else None)
    cells = {a: SourceCells.around(c, c - 0.5, c + 0.5, False, None) for a, c in enumerate((x, y))}
    asked = [over(x - 0.5), Values(y)]
    kept = answer_grid(cascade, asked, cells=cells)
    smooth = answer_grid(cascade, asked, cells=cells, smooth=True)
    assert np.abs(kept - data[:-1]).mean() < 0.5 * np.abs(smooth - data[:-1]).mean()
    between = [asked[0], Values(y[:-1] + 0.5)]
    if joint:  # no cell is known there
        plain = answer_grid(cascade, between)
        assert np.allclose(answer_grid(cascade, between, cells=cells), plain, rtol=0, atol=1e-13)
    points = [asked[0][:5], asked[1]]
    at = answer_points(cascade, points, cells=cells)
    assert np.allclose(at, kept[np.arange(5), np.arange(5)], rtol=0, atol=1e-12)
    shared = answer_points(cascade, asked, cells=cells, spread=[1])
    assert np.allclose(shared, kept, rtol=0, atol=1e-12)


@pytest.mark.parametrize("joint", [False, True])
def test_samples_beside_those_with_cells_are_no_part_of_them(joint):
    rng = np.random.default_rng(0)
    nodes = np.arange(-2.0, 8.0)
    data = rng.standard_normal(10)
    level = Level("x", Kernel("matern32", 2.0), 0.0 if joint else 0.4)
    cascade = fit_cascade(data, [nodes], [level], joint_ridge=0.4 if joint else None)
    own, places = nodes[2:9], np.arange(2, 9)
    half = SourceCells.around(own, own - 0.5, own + 0.5, False, None)
    some = SourceCells(half.low, half.high, are_means=False, places=places)
    every = SourceCells.around(nodes, nodes - 0.5, nodes + 0.5, False, None)
    asked = [over(np.array([-0.5, 0.7, 3.0, 6.5]))]
    found = [answer_grid(cascade, asked, cells={0: cells}) for cells in (some, every)]
    assert np.allclose(*found, rtol=0, atol=1e-13)


# A joint ridge ------------------------------------------------------------------------------------

ROWS, COLUMNS = np.array([0.0, 1.0, 2.5, 3.0, 4.2, 5.0, 6.0]), np.arange(-10.0, 91.0, 12.5)
TWO = {0: SourceCells(ROWS[:-1], ROWS[1:]), 1: SourceCells(COLUMNS[:-1], COLUMNS[1:], True)}
KERNELS = Kernel("matern32", 1.5), Kernel("gaussian", 25.0, constant=0.5)
ASKED = (
    [over(np.array([0.0, 0.7, 2.5, 6.0])), over(np.array([-10.0, 2.5, 50.0, 90.0]), True)],
    [Values(np.array([0.2, 2.5, 5.9])), Values(np.array([-3.0, 44.0]))],
    [Derivatives(np.array([1.1, 3.9]), 1), Values(np.array([10.0, 60.0]))],
)


def joint(data, ridge=0.03):
    levels = [Level(name, kernel) for name, kernel in zip("xy", KERNELS, strict=True)]
    nodes = [(edges[1:] + edges[:-1]) / 2 for edges in (ROWS, COLUMNS)]
    return fit_cascade(data, nodes, levels, joint_ridge=ridge, mean=0.3)


def midpoints(functional, kernel, nodes):
    """Return L k(., c) by brute force: sums over 4000 places of every interval."""
    if not isinstance(functional, Means):
        return functional.rows(kernel, nodes)
    places = functional.low + np.multiply.outer(
        (np.arange(4000) + 0.5) / 4000, functional.high - functional.low
    )
    weights = np.cos(np.radians(places)) if functional.latitude else np.ones(places.shape)
    kernels = gram(kernel, places.ravel(), nodes).reshape(*places.shape, nodes.size)
    return np.einsum("pq,pqm->qm", weights / weights.sum(axis=0), kernels)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("gaps", [False, True])
def test_joint_answers_are_those_of_a_dense_solve_with_brute_force_means(asked, gaps):
    rng = np.random.default_rng(2)
    data = rng.standard_normal((6, 8))
    observed = rng.random(data.shape) > (0.3 if gaps else 0.0)
    cascade = joint(data)
    if gaps:
        holes = np.where(observed, data, np.nan)
        cascade = joint(complete(holes, cascade.coordinates, KERNELS, 0.03, 0.3).values)
    grams = [gram(k, c, c) for k, c in zip(KERNELS, cascade.coordinates, strict=True)]
    seen = observed.ravel()
    weights = np.zeros(data.size)
    system = np.kron(*grams)[np.ix_(seen, seen)] + 0.03 * np.eye(seen.sum())
    weights[seen] = np.linalg.solve(system, data.ravel()[seen] - 0.3)
    largest = [np.linalg.eigvalsh(own)[-1] for own in grams]
    rows = []
    for axis, each in enumerate(asked):
        kernel, nodes, own = KERNELS[axis], cascade.coordinates[axis], grams[axis]
        ridge = 0.03 / largest[1 - axis] * np.eye(nodes.size)
        step = np.linalg.solve(own + ridge, own - midpoints(TWO[axis].means, kernel, nodes))
        sharp = np.eye(nodes.size) + step + step @ step
        rows.append(midpoints(each, kernel, nodes) @ sharp)
    mean = 0.0 if isinstance(asked[0], Derivatives) else 0.3
    exact = mean + rows[0] @ weights.reshape(data.shape) @ rows[1].T
    found = answer_grid(cascade, asked, cells=TWO, smooth=True)
    assert np.allclose(found, exact, rtol=0, atol=2e-6)


def test_joint_answers_keep_what_the_ridge_smooths_in_every_cell():
    data = np.random.default_rng(2).standard_normal((6, 8))
    cascade = joint(data)
    own = [over(ROWS), over(COLUMNS, True)]
    assert np.allclose(answer_grid(cascade, own, cells=TWO), data, rtol=0, atol=1e-13)
    residual = data - answer_grid(cascade, own, cells=TWO, smooth=True)
    assert np.abs(residual).max() > 0.1
    inside = [Values(np.array([0.2, 2.6, 7.0])), Values(np.array([-9.0, 89.0]))]
    kept, smooth = (answer_grid(cascade, inside, cells=TWO, smooth=yes) for yes in (False, True))
    expected = np.zeros((3, 2))
    expected[:2] = residual[np.ix_([0, 2], [0, 7])]  # the last place lies in no cell
    assert np.allclose(kept - smooth, expected, rtol=0, atol=1e-13)
    slopes = [Derivatives(np.array([0.2]), 1), inside[1]]
    kept, smooth = (answer_grid(cascade, slopes, cells=TWO, smooth=yes) for yes in (False, True))
    assert np.array_equal(kept, smooth)
    at = answer_points(cascade, [inside[0][:2], inside[1]], cells=TWO)
    both = answer_grid(cascade, inside, cells=TWO)
    assert np.allclose(at, both[[0, 1], [0, 1]], rtol=0, atol=1e-12)
    beside = answer_points(cascade, inside, cells=TWO, spread=[1])
    assert np.allclose(beside, both, rtol=0, atol=1e-12)


@given(
    st.lists(st.floats(0.01, 5.99), min_size=1, max_size=6, unique=True),
    st.sampled_from([1e-12, 1e-4, 0.5]),
)
def test_joint_sums_are_kept_on_any_cells_that_cover_the_data(inner, ridge):
    edges = np.array([0.0, *sorted(inner), 6.0])
    edges = edges[np.diff(edges, prepend=-1.0) > 1e-6]
    edges[-1] = 6.0
    data = np.random.default_rng(3).standard_normal((6, 8))
    columns = np.array([-10.0, 11.0, 90.0])
    found = answer_grid(joint(data, ridge), [over(edges), over(columns, True)], cells=TWO)
    areas = [np.diff(each) for each in (edges, np.sin(np.radians(columns)))]
    own = [np.diff(each) for each in (ROWS, np.sin(np.radians(COLUMNS)))]
    total = np.einsum("xy,x,y->", data, *own)
    assert np.einsum("xy,x,y->", found, *areas) == pytest.approx(total, abs=1e-10)


def test_a_smooth_field_is_found_under_a_joint_ridge_as_with_a_ridge_per_level():
    level = Level("x", Kernel("gaussian", 3.0))
    cascade = fit_cascade(means(EDGES), [EDGES[:-1] + 0.5], [level], joint_ridge=1e-10, mean=0.2)
    query = np.linspace(2.0, 28.0, 40)
    exact = np.sin(query / 3) + 0.3 * np.cos(query)
    found, plain = (answer_grid(cascade, [Values(query)], cells=c) for c in ({0: SOURCE}, {}))
    assert np.abs(found - exact).max() < 1e-4
    assert np.abs(plain - exact).max() > 1e-2


def test_a_ridge_of_nothing_is_no_reason_to_sharpen_round_off():
    level = Level("x", Kernel("gaussian", 6.0))
    cascade = fit_cascade(means(EDGES), [EDGES[:-1] + 0.5], [level], joint_ridge=0.0)
    field = CellField.of(cascade, 0, SOURCE)
    assert field.ridge == pytest.approx(1e-9 * cascade.spectrum(0).values[0])


def test_long_levels_keep_sums_under_a_joint_ridge():
    edges = np.arange(0.0, 1301.0)
    values = np.random.default_rng(0).standard_normal((1300, 2)) + np.sin(edges[:-1, None] / 20)
    levels = [Level("t", Kernel("matern32", 9.0)), Level("x", Kernel("gaussian", 1.0))]
    nodes = [edges[:-1] + 0.5, np.arange(2.0)]
    cascade = fit_cascade(values, nodes, levels, joint_ridge=0.3)
    assert cascade.is_long(0)
    cells = {0: SourceCells(edges[:-1], edges[1:])}
    coarse = np.array([0.0, 7.5, 400.0, 401.0, 1300.0])
    asked = [over(coarse), Values(nodes[1])]
    found = answer_grid(cascade, asked, cells=cells)
    assert np.allclose(np.diff(coarse) @ found, values.sum(axis=0), rtol=0, atol=1e-9)
    assert np.allclose(found[2], values[400], rtol=0, atol=1e-12)
    sharp = fit_cascade(values, nodes, levels, joint_ridge=1e-9)
    own = CellField.of(sharp, 0, cells[0])
    assert own.factor.ridge == own.ridge > 1e-9
    rows = joint_rows(cascade, 0, asked[0], cells[0])
    assert (len(rows), rows.ndim, len(rows[1:])) == (4, 2, 3)
    dense = fit_cascade(values[:40], [nodes[0][:40], nodes[1]], levels, joint_ridge=0.3)
    few = SourceCells(edges[:40], edges[1:41])
    field = CellField.of(dense, 0, few)
    weights = np.random.default_rng(1).standard_normal((40, 3))
    long = LongFactor.build(levels[0].kernel, nodes[0][:40], field.ridge)
    at = over(np.array([0.0, 3.3, 40.0]))
    by_vectors = field.smooth(at, field.sharpen(field.factor.vectors.T @ weights))
    other = replace(field, factor=long)
    assert np.allclose(by_vectors, other.smooth(at, other.sharpen(weights)), rtol=0, atol=1e-9)


def test_joint_means_over_unions_of_cells_have_no_error():
    cascade = joint(np.random.default_rng(2).standard_normal((6, 8)))
    bars = calibrate(cascade)
    asked = [over(np.array([0.0, 2.5, 2.7])), over(np.array([-10.0, 15.0, 90.0]), True)]
    whole = (slice(0, 2), slice(0, 2))
    variance = variance_blocks(bars, cascade, asked, cells=TWO)(whole)
    assert variance[0].tolist() == [0.0, 0.0]
    assert (variance[1] > 0).all()
    smoothed = variance_blocks(bars, cascade, asked, cells=TWO, smooth=True)(whole)
    assert (smoothed > 0).all()
    assert np.array_equal(variance[1], smoothed[1])
    at = variance_at_points(bars, cascade, asked, cells=TWO)
    assert np.allclose(at, variance.diagonal(), rtol=1e-9, atol=0)
    draws = functional_draws(bars, cascade, asked, cells=TWO)(0)
    assert np.array_equal(draws == 0, variance == 0)
    values = [Values(cascade.coordinates[0][:2]), Values(cascade.coordinates[1][:2])]
    assert (variance_blocks(bars, cascade, values, cells=TWO)(whole) > 0).all()
