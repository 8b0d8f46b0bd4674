"""The choice between a kernel, kernels of warped coordinates, and splines."""

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.tuning.candidates import Candidate
from dkrls_cli.tuning.tables.leftout import Slices
from dkrls_cli.tuning.tables.rivals import Rival, can_win, pick
from dkrls_cli.tuning.tables.splines import spline_candidates

KERNEL = Rival(None, Candidate(Kernel("gaussian", 1.0), 1e-13, 1.0))
WARPED = Rival("log", KERNEL.candidate)
CUBIC, LINEAR = (
    Rival(None, Candidate(Kernel(name, errors="matern52"), 0.0, 1.0))
    for name in ("cubic", "linear")
)


def squares(mean, typical, count=100):
    """Mean squares with this mean, all but one of them this small."""
    return np.array([*[typical] * (count - 1), count * mean - (count - 1) * typical])


@pytest.mark.parametrize(
    ("rival", "mean", "typical", "taken"),
    [
        (CUBIC, 0.49, 0.49, True),
        (CUBIC, 0.51, 0.51, False),
        (WARPED, 0.79, 0.79, True),
        (WARPED, 0.81, 0.81, False),
        (CUBIC, 0.9, 0.08, True),
        (WARPED, 7.9, 0.05, True),
        (CUBIC, 7.9, 0.05, True),
        (CUBIC, 8.1, 0.05, False),
        (CUBIC, 0.9, 0.2, False),
        (LINEAR, 1.01, 0.66, True),
        (LINEAR, 1.03, 0.66, False),
        (LINEAR, 1.01, 0.71, False),
        (CUBIC, 1.01, 0.66, False),
    ],
)
def test_a_rival_is_taken_if_it_is_clearly_better(rival, mean, typical, taken):
    errors = {KERNEL: np.ones(100), rival: squares(mean, typical)}
    assert pick(errors) is (rival if taken else KERNEL)


def test_the_best_rival_is_taken_and_none_where_there_is_none():
    errors = {KERNEL: np.ones(9), LINEAR: np.full(9, 0.2), CUBIC: np.full(9, 0.1)}
    assert pick(errors) is CUBIC
    assert pick({KERNEL: np.ones(9)}) is KERNEL


def test_a_rival_is_compared_with_the_least_mean_of_all():
    """Far better in most places, but ten times as bad in the mean as another one."""
    errors = {KERNEL: np.ones(100), LINEAR: np.full(100, 0.2), CUBIC: squares(2.0, 1e-6)}
    assert pick(errors) is LINEAR
    assert pick({KERNEL: np.ones(100), CUBIC: squares(2.0, 1e-6)}) is CUBIC


def test_a_rival_on_warped_coordinates_is_a_candidate_with_that_warp():
    assert WARPED.warped.kernel == Kernel("gaussian", 1.0, warp="log")
    assert KERNEL.warped == KERNEL.candidate


def test_a_comparison_is_made_only_where_a_spline_can_win():
    x = np.linspace(0.0, 3.0, 24)
    slices = Slices.of(x, np.exp(np.outer(x, [0.5, 1.0, 1.5])), None, 100)
    (cubic,) = spline_candidates(slices, "cubic")
    assert can_win(slices, cubic, Candidate(Kernel(), 0.1, 2 * cubic.error))
    assert not can_win(slices, cubic, Candidate(Kernel(), 0.1, 0.1 * cubic.error))
    assert not can_win(slices, cubic, Candidate(Kernel(), 0.1, 0.0))
