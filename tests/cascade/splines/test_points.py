"""Splines at scattered points, against scipy's splines along one axis after another."""

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator, make_interp_spline

from dkrls_cli.cascade.splines.pieces import Piece, piecewise_rows
from dkrls_cli.cascade.splines.points import LocalRows, contract_local, is_within_reach

RNG = np.random.default_rng(7)
AXES = [np.sort(RNG.uniform(0.0, 5.0, size)) for size in (9, 8, 11)]
DATA = RNG.normal(size=(9, 8, 11))
POINTS = [RNG.uniform(axis[0], axis[-1], 40) for axis in AXES]
PIECES = (Piece("quintic", 1.0, 2.0), Piece("cubic", 3.0, 4.0))


def test_linear_splines_take_samples_beside_a_point():
    rows = [
        LocalRows.of_splines("linear", (), axis, x) for axis, x in zip(AXES, POINTS, strict=True)
    ]
    assert all(own.coefficients is None and own.places.shape == (40, 2) for own in rows)
    want = RegularGridInterpolator(AXES, DATA)(np.transpose(POINTS))
    np.testing.assert_allclose(contract_local(DATA, rows), want, atol=1e-12)


@pytest.mark.parametrize(("name", "degree"), [("cubic", 3), ("quintic", 5)])
def test_smooth_splines_take_as_many_coefficients_as_their_degree_and_one(name, degree):
    rows = [LocalRows.of_splines(name, (), axis, x) for axis, x in zip(AXES, POINTS, strict=True)]
    assert {own.places.shape for own in rows} == {(40, degree + 1)}
    want = DATA
    for axis, (nodes, x) in enumerate(zip(AXES, POINTS, strict=True)):
        want = make_interp_spline(nodes, want, degree, axis=axis)(x)
    points = np.arange(40)
    np.testing.assert_allclose(contract_local(DATA, rows), want[points, points, points], atol=1e-8)


@pytest.mark.parametrize("first", ["linear", "cubic"])
def test_pieces_and_nodes_in_any_order_answer_as_their_rows(first):
    shuffled = RNG.permutation(AXES[2])
    before = 4 * AXES[2][0] - 3 * AXES[2][1]  # three steps beyond the first
    x = np.append(POINTS[2], [before])
    rows = LocalRows.of_splines(first, PIECES, shuffled, x)
    found = contract_local(DATA[0, 0], [rows])
    want = piecewise_rows(first, PIECES, shuffled, x) @ DATA[0, 0]
    np.testing.assert_allclose(found, want, atol=1e-8)


def test_axes_at_nodes_are_looked_up_and_points_go_in_blocks(monkeypatch):
    monkeypatch.setattr("dkrls_cli.cascade.splines.points._NUMBERS", 20)
    nodes = RNG.integers(0, 8, 40)
    middle = LocalRows.at_nodes(nodes)
    ends = [LocalRows.of_splines("cubic", (), AXES[a], POINTS[a]) for a in (0, 2)]
    found = contract_local(DATA.astype(np.float32), [ends[0], middle, ends[1]])
    first, last = (piecewise_rows("cubic", (), AXES[a], POINTS[a]) for a in (0, 2))
    want = np.einsum("pi,ipk,pk->p", first, DATA[:, nodes].astype(np.float32), last)
    np.testing.assert_allclose(found, want, atol=1e-9)


def test_reach_ends_four_outermost_steps_beyond_the_ends():
    nodes = np.array([3.0, 0.0, 1.0])
    found = is_within_reach(nodes, np.array([-4.1, -4.0, 0.0, 11.0, 11.1]))
    assert found.tolist() == [False, True, True, True, False]
