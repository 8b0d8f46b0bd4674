"""The candidates of a level, and what is told of them."""

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.tuning.candidates import Candidate, LevelChoice


def choice_of(*settings):
    """Return a choice of the first of some candidates, given as sigma, ridge and error."""
    tried = tuple(Candidate(Kernel("gaussian", s), r, e) for s, r, e in settings)
    return LevelChoice(tried[0], tried)


def test_a_level_under_a_joint_ridge_takes_the_least_error_with_a_real_ridge():
    choice = choice_of((1.0, 1e-9, 0.1), (2.0, 9e-5, 0.2), (3.0, 1e-4, 0.4), (4.0, 0.1, 0.5))
    assert choice.under_joint_ridge.kernel.sigma == 3.0
    assert choice_of((1.0, 1e-9, 0.3), (2.0, 1e-8, 0.2)).under_joint_ridge.kernel.sigma == 2.0


def test_the_score_is_between_the_error_of_all_slices_and_the_typical_one():
    assert Candidate(Kernel(), 0.1, 9.0, 4.0).score == 6.0
    assert Candidate(Kernel(), 0.1, 9.0).score == 9.0


def test_warnings_name_what_is_at_the_end_of_its_range():
    shortest = choice_of((1.0, 1e-3, 0.1), (2.0, 1e-3, 0.2)).warnings
    assert shortest == ["sigma 1 is the shortest tried"]
    assert choice_of((2.0, 1e-3, 0.1), (1.0, 1e-3, 0.2)).warnings == []
    assert choice_of((1.0, 10.0, 0.1)).warnings == ["ridge 10 is the largest tried"]
    assert choice_of((1.0, 1.0, 0.1), (1.0, 10.0, 0.2)).warnings == []


def test_the_curve_has_the_best_ridge_of_each_kernel_in_order():
    found = [
        Candidate(Kernel("matern12", 1.0), 0.1, 3.0),
        Candidate(Kernel("gaussian", 2.0), 0.1, 2.0),
        Candidate(Kernel("gaussian", 1.0, cycle=5.0), 0.1, 4.0),
        Candidate(Kernel("gaussian", 1.0), 0.1, 5.0),
        Candidate(Kernel("gaussian", 2.0), 0.2, 1.0),
        Candidate(Kernel("gaussian", 2.0), 0.3, 1.5),
    ]
    curve = LevelChoice(found[0], tuple(found)).curve
    assert curve == [found[3], found[4], found[0], found[2]]
