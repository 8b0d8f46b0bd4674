"""Splines that change along their level, against the splines that they are made of."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from dkrls_cli.cascade.splines.cardinal import left_out_rows, spline_rows
from dkrls_cli.cascade.splines.pieces import (
    Piece,
    are_ordered,
    piece_weights,
    piecewise_left_out,
    piecewise_rows,
)

NODES = np.sort(np.random.default_rng(5).uniform(0.0, 10.0, 15))
PIECES = (Piece("cubic", 3.0, 4.5), Piece("quintic", 6.0, 7.0), Piece("linear", 8.0, 9.0))
QUERY = np.linspace(0.0, 10.0, 101)


def test_weights_sum_to_one_and_go_over_smoothly():
    weights = piece_weights("linear", PIECES, QUERY)
    np.testing.assert_allclose(sum(weights.values()), 1.0, atol=1e-15)
    assert all((own >= 0).all() and (own <= 1).all() for own in weights.values())
    assert weights["linear"][QUERY <= 3.0].min() == 1.0
    assert weights["linear"][QUERY >= 9.0].min() == 1.0
    assert weights["cubic"][(QUERY >= 4.5) & (QUERY <= 6.0)].min() == 1.0
    assert weights["quintic"][(QUERY > 6.0) & (QUERY < 7.0)] == pytest.approx(
        [t * t * (3 - 2 * t) for t in np.arange(1, 10) / 10]
    )


@pytest.mark.parametrize("derivative", [1, 2])
def test_derivatives_of_weights_are_those_of_differences(derivative):
    x, step = QUERY[(QUERY * 10) % 5 > 0.5] + 0.017, 1e-4  # away from the ends of pieces
    offsets, factors = {1: ([-1, 1], [-0.5, 0.5]), 2: ([-1, 0, 1], [1, -2, 1])}[derivative]
    found = piece_weights("linear", PIECES, x, derivative)
    for name, own in found.items():
        near = [piece_weights("linear", PIECES, x + k * step)[name] for k in offsets]
        np.testing.assert_allclose(
            own, np.tensordot(factors, near, 1) / step**derivative, atol=2e-5
        )


def test_rows_pass_through_the_samples_and_are_one_spline_within_a_piece():
    np.testing.assert_allclose(
        piecewise_rows("linear", PIECES, NODES, NODES), np.eye(NODES.size), atol=1e-12
    )
    shuffled = np.random.default_rng(0).permutation(NODES)
    data = np.sin(shuffled)
    found = piecewise_rows("linear", PIECES, shuffled, QUERY) @ data
    for name, low, high in (("linear", 0.0, 3.0), ("cubic", 4.5, 6.0), ("quintic", 7.0, 8.0)):
        inside = (low <= QUERY) & (high >= QUERY)
        degree = {"linear": 1, "cubic": 3, "quintic": 5}[name]
        want = make_interp_spline(NODES, np.sin(NODES), degree)(QUERY[inside])
        np.testing.assert_allclose(found[inside], want, atol=1e-9)


@pytest.mark.parametrize("derivative", [1, 2])
def test_derivatives_of_rows_are_those_of_differences(derivative):
    pieces, step = (Piece("quintic", 3.0, 6.0),), 1e-3
    x = QUERY[(QUERY > 3.1) & (QUERY < 5.9)]
    offsets, factors = {1: ([-1, 1], [-0.5, 0.5]), 2: ([-1, 0, 1], [1, -2, 1])}[derivative]
    near = [piecewise_rows("cubic", pieces, NODES, x + k * step) for k in offsets]
    want = np.tensordot(factors, near, 1) / step**derivative
    found = piecewise_rows("cubic", pieces, NODES, x, derivative)
    assert np.abs(found - want).max() < 1e-2 * np.abs(want).max()
    assert np.median(np.abs(found - want)) < 1e-5 * np.abs(want).max()


def test_left_out_rows_are_those_of_the_spline_at_the_sample():
    found = piecewise_left_out("linear", PIECES, NODES)
    assert not found.diagonal().any()
    for place, node in enumerate(NODES):
        weights = piece_weights("linear", PIECES, np.array([node]))
        kept = np.delete(np.arange(NODES.size), place)
        want = sum(w * spline_rows(n, NODES[kept], NODES[[place]]) for n, w in weights.items())
        np.testing.assert_allclose(found[place, kept], want[0], atol=1e-9)


def test_without_pieces_it_is_the_spline():
    assert np.array_equal(
        piecewise_rows("cubic", (), NODES, QUERY), spline_rows("cubic", NODES, QUERY)
    )
    assert np.array_equal(piecewise_left_out("cubic", (), NODES), left_out_rows("cubic", NODES))


@pytest.mark.parametrize(
    ("pieces", "ordered"),
    [
        ((), True),
        (PIECES, True),
        (PIECES[::-1], False),
        ((Piece("cubic", 1.0, 1.0),), False),
        ((Piece("cubic", 2.0, 1.0),), False),
        ((Piece("cubic", 1.0, np.inf),), False),
        ((Piece("cubic", 1.0, np.nan),), False),
        ((Piece("cubic", 1.0, 2.0), Piece("linear", 1.5, 3.0)), False),
        ((Piece("cubic", 1.0, 2.0), Piece("linear", 2.0, 3.0)), True),
    ],
)
def test_pieces_follow_each_other(pieces, ordered):
    assert are_ordered(pieces) is ordered
