"""Tests of dkrls_cli.cascade.functionals.cells: sums that are kept, and fields that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.functionals.answers import answer_grid, answer_points
from dkrls_cli.cascade.functionals.bars import variance_blocks
from dkrls_cli.cascade.functionals.cells import CellRows, SourceCells, known_means
from dkrls_cli.cascade.functionals.functional import Derivatives, Means, Values
from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError

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
    assert known_means(SOURCE, asked).tolist() == [True, True, False]
    assert known_means(SOURCE, Values(EDGES[:2])).tolist() == [False, False]
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
    rows = CellRows(cascade, 0, SOURCE, Values(np.array([-0.5, 30.5, 0.5])))
    assert (len(rows), rows.ndim, len(rows[1:])) == (3, 2, 2)
    found = rows @ np.eye(30)
    smooth = CellRows(cascade, 0, SOURCE, rows.asked, smooth=True) @ np.eye(30)
    assert np.array_equal(found[:2], smooth[:2])
    assert not np.allclose(found[2], smooth[2])
    pieces = SOURCE.cut(Means(np.array([-2.0, 40.0]), np.array([0.5, 41.0])))
    assert pieces.cell.tolist() == [-1, 0, -1]
    assert pieces.share == pytest.approx([0.8, 0.2, 1.0])


def test_cells_that_overlap_are_refused():
    with pytest.raises(InputError, match="overlap: that from 0 to 2"):
        SourceCells(np.array([1.0, 0.0]), np.array([3.0, 2.0]))
    with pytest.raises(InputError, match="overlap"):
        SourceCells(np.array([0.0, 200.0]), np.array([100.0, 370.0]), period=360.0)


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


def test_cells_of_values_end_in_gaps():
    nodes = np.array([0.0, 1.0, 2.0, 9.0, 10.0])
    cells = SourceCells.around(
        nodes, nodes - 0.5, nodes + np.array([0.5, 0.5, 3.5, 0.5, 0.5]), False, None
    )
    assert cells.high[2] == 2.5
    assert not cells.are_means


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
