"""The setting that is taken predicts most like the weighted average of all."""

import math
from collections import Counter

import numpy as np
import pytest
from levels_left_out import ROUGH, X, answers

from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.tuning.candidates import Candidate
from dkrls_cli.tuning.slices import average as module
from dkrls_cli.tuning.slices.average import nearest_to_average
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.slices.segments import Segment
from dkrls_cli.tuning.spectra import SpectrumCache


def test_the_setting_nearest_to_the_weighted_average_of_all_is_taken():
    choice = choose_level(X, ROUGH)
    candidates = [candidate for candidate in choice.tried if not candidate.kernel.is_spline]
    middles = (X[1:] + X[:-1]) / 2
    shares = np.empty(len(candidates))
    for family in FAMILIES:
        sigmas = np.unique([t.kernel.sigma for t in candidates if t.kernel.family == family])
        widths = dict(zip(sigmas, np.gradient(np.log(sigmas)), strict=True))
        for i, candidate in enumerate(candidates):
            if candidate.kernel.family == family:
                shares[i] = widths[candidate.kernel.sigma]
    scores = np.array([math.sqrt(candidate.error * candidate.typical) for candidate in candidates])
    weights = shares * (scores / scores.min()) ** -float(X.size)
    weights *= [max(candidate.ridge, 1e-6) ** -0.1 for candidate in candidates]
    clean = Counter(candidate.kernel for candidate in candidates if candidate.ridge < 2e-6)
    weights *= [min(1, 3 / clean[c.kernel]) if c.ridge < 2e-6 else 1 for c in candidates]
    some = np.flatnonzero(weights > 1e-3 * weights.max())
    found = {i: answers(X, ROUGH, candidates[i].kernel, candidates[i].ridge, middles) for i in some}
    average = sum(weights[i] * found[i] for i in some) / weights[some].sum()
    close = [i for i in some if weights[i] >= 0.3 * weights.max()]
    distance = {i: np.linalg.norm(found[i] - average) for i in close}
    taken = candidates.index(choice.taken)
    assert len(close) > 3
    assert distance[taken] <= 1.05 * min(distance.values())


@pytest.mark.parametrize(("ridges", "taken"), [
    ([1e-4, 1e-3, 1e-2, 0.1], 1e-3),  # 1e-2 if all counted alike
    ([1e-12, 1e-5, 1e-4, 1e-3], 1e-5),  # 1e-12 if it counted more than 1e-6
])  # fmt: skip
def test_of_settings_that_miss_slices_alike_those_of_a_small_ridge_count_more(ridges, taken):
    """Weights are the power -0.1 of ridges; below 1e-6 none passes for noise."""
    kernel, middles = Kernel("matern32", 2.0, constant=1.0), (X[1:] + X[:-1]) / 2
    found = np.array([answers(X, ROUGH, kernel, ridge, middles) for ridge in ridges])
    average = np.average(found, axis=0, weights=np.maximum(ridges, 1e-6) ** -0.1)
    nearest = int(np.argmin(np.linalg.norm(found - average, axis=(1, 2))))
    segment = Segment(X, [ROUGH], False, None, SpectrumCache())
    alike = [Candidate(kernel, ridge, 1.0) for ridge in ridges]
    assert nearest_to_average([segment], alike).ridge == ridges[nearest] == taken


@pytest.mark.parametrize(("clean", "counts"), [(2, 2), (3, 3), (12, 3)])
def test_candidates_of_one_kernel_without_noise_count_as_three_at_most(clean, counts):
    kernel, middles = Kernel("matern32", 2.0, constant=1.0), (X[1:] + X[:-1]) / 2
    ridges = [*np.geomspace(1e-14, 1e-6, clean), *np.geomspace(1e-5, 10.0, 30)]
    found = np.array([answers(X, ROUGH, kernel, ridge, middles) for ridge in ridges])
    weights = np.maximum(ridges, 1e-6) ** -0.1
    weights[:clean] *= counts / clean
    average = np.average(found, axis=0, weights=weights)
    away = np.linalg.norm(found - average, axis=(1, 2))
    close = np.flatnonzero(weights >= 0.3 * weights.max())
    segment = Segment(X, [ROUGH], False, None, SpectrumCache())
    alike = [Candidate(kernel, ridge, 1.0) for ridge in ridges]
    taken = nearest_to_average([segment], alike)
    assert taken.ridge == ridges[min(close, key=lambda i: away[i])]


class Answers:
    """A segment of two slices whose candidates answer what they are told to."""

    slices = 2

    def __init__(self, answers):
        self.answers = answers

    def midpoints(self, candidate):
        return np.array([self.answers[candidate.kernel.family]])


def nearest(**told):
    """Return the family taken; each has an error and an answer, and so the weight 1 / error^2."""
    candidates = [Candidate(Kernel(family), 1e-3, told[family][0]) for family in told]
    answers = {family: answer for family, (_, answer) in told.items()}
    return nearest_to_average([Answers(answers)], candidates).kernel.family


def test_the_middle_of_what_the_data_leaves_open_is_taken():
    taken = nearest(gaussian=(1.0, 0.0), matern52=(1.1, 5.0), matern32=(1.0, 10.0))
    assert taken == "matern52"
    assert nearest(gaussian=(1.0, 0.0), matern52=(1.0, 1.0)) == "gaussian"  # the first of equals
    assert nearest(gaussian=(0.0, 0.0), matern52=(1e-9, 5.0), matern32=(0.0, 10.0)) == "gaussian"


def test_a_candidate_of_little_weight_is_not_taken():
    others = {"gaussian": (1.0, 0.0), "matern32": (1.0, 10.0)}
    assert nearest(matern52=(0.299**-0.5, 5.0), **others) != "matern52"
    assert nearest(matern52=(0.301**-0.5, 5.0), **others) == "matern52"


def test_a_candidate_of_less_than_a_hundredth_does_not_count():
    """Two answers of nearly equal weight; a third far away draws the average to one of them."""
    two = {"gaussian": (1.0, 0.0), "matern52": (1.001**0.5, 10.0)}
    assert nearest(**two) == "gaussian"
    assert nearest(matern32=(0.0101**-0.5, 1e6), **two) == "matern52"
    assert nearest(matern32=(0.0099**-0.5, 1e6), **two) == "gaussian"


def test_one_slice_that_is_missed_by_much_does_not_decide_alone():
    told = {"gaussian": (2.0, 0.5), "matern52": (1.5, 1.0), "matern32": (1.1, 1.1)}
    found = [Candidate(Kernel(family), 1e-3, *errors) for family, errors in told.items()]
    answers = Answers({"gaussian": 0.0, "matern52": 5.0, "matern32": 10.0})
    answers.slices = 500
    assert nearest_to_average([answers], found).kernel.family == "gaussian"


def test_weights_grow_with_the_number_of_slices():
    candidates = [Candidate(Kernel(f), 1e-3, e) for f, e in (("gaussian", 1.0), ("matern12", 1.5))]
    answers = [Answers({"gaussian": 0.0, "matern12": 1.0})] * 9  # 18 slices: 1.5^-18 is nothing
    assert nearest_to_average(answers, candidates).kernel.family == "gaussian"


def test_a_kernel_counts_by_the_range_of_sigma_it_stands_for():
    kernels = [Kernel("gaussian", sigma) for sigma in (1.0, 2.0, 2.5, 16.0)]
    lone = Kernel("matern12", 3.0)
    shares = module._shares([*kernels, lone])
    expected = np.gradient(np.log([1.0, 2.0, 2.5, 16.0]))
    np.testing.assert_allclose([shares[kernel] for kernel in kernels], expected)
    assert shares[lone] == 1.0
