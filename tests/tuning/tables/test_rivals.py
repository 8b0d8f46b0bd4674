"""The choice between a kernel, kernels of warped coordinates, and splines."""

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.tuning.candidates import Candidate
from dkrls_cli.tuning.tables.leftout import Slices
from dkrls_cli.tuning.tables.rivals import Rival, can_win, pick
from dkrls_cli.tuning.tables.splines import spline_candidates

KERNEL = Rival(None, Candidate(Kernel("matern52", 1.0), 1e-13, 1.0))
EXACT, NOISY = (
    Rival(None, Candidate(Kernel("gaussian", 1.0), ridge, 1.0)) for ridge in (1e-12, 1e-11)
)
WARPED = Rival("log", KERNEL.candidate)
QUINTIC, CUBIC, LINEAR = (
    Rival(None, Candidate(Kernel(name, errors="matern52"), 0.0, 1.0))
    for name in ("quintic", "cubic", "linear")
)
JOINED, EDGED = (
    Rival(None, Candidate(Kernel("cubic", pieces=(Piece(name, 1.0, 2.0),)), 0.0, 1.0))
    for name in ("quintic", "linear")
)


KNOWN = np.array([[*[1.0] * 99, 1e4]]).T
"""Squares of the kernel in one cell of each slice: those of one slice make their mean."""


def squares(mean, typical):
    """Squares with these ratios to those of the kernel."""
    usual = typical
    for _ in range(50):
        last = mean * KNOWN.sum() - 99 * usual
        usual = (typical * (last / 1e4) ** -0.01) ** (1 / 0.99)
    return np.array([[*[usual] * 99, last]]).T


@pytest.mark.parametrize(
    ("rival", "mean", "typical", "taken"),
    [
        (CUBIC, 0.49, 1.5, True),
        (CUBIC, 0.51, 1.01, False),
        (CUBIC, 0.79, 0.99, True),
        (CUBIC, 0.81, 0.71, False),
        (CUBIC, 0.81, 0.69, True),
        (CUBIC, 1.99, 0.09, True),
        (CUBIC, 2.01, 0.09, False),
        (WARPED, 0.79, 0.79, True),
        (WARPED, 0.81, 0.05, False),
        (LINEAR, 1.01, 0.66, True),
        (LINEAR, 1.03, 0.66, False),
        (LINEAR, 1.01, 0.71, False),
        (CUBIC, 1.01, 0.66, True),
        (JOINED, 1.01, 0.66, True),
        (EDGED, 1.01, 0.66, True),
        (EDGED, 1.03, 0.66, False),
        (EDGED, 1.01, 0.71, False),
    ],
)
def test_a_rival_is_taken_if_it_is_clearly_better(rival, mean, typical, taken):
    errors = {KERNEL: KNOWN, rival: squares(mean, typical)}
    assert pick(errors) is (rival if taken else KERNEL)


@pytest.mark.parametrize(
    ("kernel", "rival", "mean", "typical", "taken"),
    [
        (EXACT, QUINTIC, 1.99, 1.99, True),
        (EXACT, QUINTIC, 2.01, 2.0, False),
        (EXACT, QUINTIC, 1.9, 2.12, False),
        (EXACT, QUINTIC, 3.9, 1.02, True),
        (EXACT, QUINTIC, 1.02, 3.9, True),
        (EXACT, CUBIC, 1.5, 1.5, False),
        (EXACT, JOINED, 1.5, 1.5, False),
        (NOISY, QUINTIC, 1.5, 1.5, False),
        (KERNEL, QUINTIC, 1.5, 1.5, False),
    ],
)
def test_a_quintic_spline_that_is_as_good_is_taken_where_rounding_limits_the_kernel(
    kernel, rival, mean, typical, taken
):
    errors = {kernel: KNOWN, rival: squares(mean, typical)}
    assert pick(errors) is (rival if taken else kernel)


def test_the_best_rival_is_taken_and_none_where_there_is_none():
    known = np.ones((9, 1))
    assert pick({KERNEL: known, LINEAR: 0.2 * known, CUBIC: 0.1 * known}) is CUBIC
    assert pick({KERNEL: known}) is KERNEL


@pytest.mark.parametrize(
    ("rival", "mean", "cells", "taken"),
    [
        (LINEAR, 1.01, 0.29, True),
        (LINEAR, 1.01, 0.31, False),
        (LINEAR, 1.03, 0.29, False),
        (LINEAR, 1.99, 0.009, True),
        (LINEAR, 1.99, 0.011, False),
        (LINEAR, 2.01, 0.009, False),
        (WARPED, 0.9, 0.009, False),
    ],
)
def test_a_spline_is_taken_that_is_far_better_in_all_fibres_but_one(rival, mean, cells, taken):
    known, own = np.ones((9, 100)), np.ones((9, 100))
    known[:, -1] = 1e6
    own[:, -1] = mean * 1e6
    own[:, :-1] = (cells / mean**0.01) ** (1 / 0.99)
    assert pick({KERNEL: known, rival: own}) is (rival if taken else KERNEL)


def test_a_rival_on_warped_coordinates_is_a_candidate_with_that_warp():
    assert WARPED.warped.kernel == Kernel("matern52", 1.0, warp="log")
    assert KERNEL.warped == KERNEL.candidate


def test_a_comparison_is_made_only_where_a_spline_can_win():
    x = np.linspace(0.0, 3.0, 24)
    slices = Slices.of(x, np.exp(np.outer(x, [0.5, 1.0, 1.5])), None, 100)
    (cubic,) = spline_candidates(slices, "cubic")
    assert can_win(slices, cubic, Candidate(Kernel(), 0.1, 2 * cubic.error))
    assert not can_win(slices, cubic, Candidate(Kernel(), 0.1, 0.1 * cubic.error))
    assert not can_win(slices, cubic, Candidate(Kernel(), 0.1, 0.0))
