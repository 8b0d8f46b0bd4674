"""The settings that are tried: sigmas, ridges and cycles, and finer steps around the best."""

import math

import numpy as np
import pytest
from levels_left_out import ROUGH, X

from dkrls_cli.cascade.kernels import FAMILIES
from dkrls_cli.tuning.candidates import RIDGES
from dkrls_cli.tuning.slices import search as module
from dkrls_cli.tuning.slices.choice import choose_level


def test_sigmas_are_tried_from_less_than_a_step_to_several_extents():
    x = np.arange(0.0, 60.0, 2.0)
    data = ROUGH[np.arange(30) % 14]
    for period, longest in ((None, 3 * 58.0), (60.0, 3 * 60 / math.pi)):
        coarse = [c.kernel for c in choose_level(x, data, period=period).tried]
        sigmas = list(dict.fromkeys(k.sigma for k in coarse if k.family == "gaussian"))[:9]
        np.testing.assert_allclose(sigmas, np.geomspace(0.8, longest, 9))


def test_the_search_is_refined_around_the_best_of_the_two_best_families():
    choice = choose_level(X, ROUGH)
    sigmas = {}
    for candidate in choice.tried:
        sigmas.setdefault(candidate.kernel.family, set()).add(candidate.kernel.sigma)
    errors = {f: min(c.error for c in choice.tried if c.kernel.family == f) for f in FAMILIES}
    best, second, *others = sorted(FAMILIES, key=errors.get)
    counts = [len(sigmas[family]) for family in (best, second, *others)]
    assert counts == [9 + 10, 9 + 4, 9, 9]
    step = (3 * np.ptp(X) / (0.4 * np.median(np.diff(X)))) ** (1 / 8)
    for family, halvings in ((best, 5), (second, 2)):
        top = min((c for c in choice.tried if c.kernel.family == family), key=lambda c: c.error)
        ratios = np.sort(np.abs(np.log(np.array(list(sigmas[family])) / top.kernel.sigma)))
        assert ratios[1] == pytest.approx(np.log(step) / 2**halvings)


@pytest.mark.parametrize(("limit", "sigmas"), [(4.0, 9), (math.inf, 13)])
def test_a_second_family_that_is_far_behind_is_not_refined(limit, sigmas, monkeypatch):
    monkeypatch.setattr(module, "_FAR_BEHIND", limit)
    x = np.linspace(0.0, 12.0, 30)
    choice = choose_level(x, np.sin(np.outer(x, [1.0, 1.1])))
    kernels = {candidate.kernel for candidate in choice.tried}
    found = {family: sum(kernel.family == family for kernel in kernels) for family in FAMILIES}
    assert found == {"gaussian": 19, "matern52": sigmas, "matern32": 0, "matern12": 0}


def test_ridges_so_small_that_directions_drop_out_are_not_tried():
    """Directions drop out below 4 eps times m times the variance, here 2 and with a cycle 3."""
    x = np.arange(50.0)
    data = np.cos(np.multiply.outer(x / 3, [1.0, 1.1]))
    tried = choose_level(x, data, sigma=5.0, cycles=[20.0]).tried
    least = {}
    for candidate in tried:
        key = candidate.kernel.cycle, candidate.kernel.swing
        least[key] = min(candidate.ridge, least.get(key, 1.0))
    assert least == {(None, 1.0): 1e-13, (20.0, 1.0): 3e-13, (20.0, 10.0): 1e-12}
    assert {c.ridge for c in tried if c.kernel.cycle is None} == set(RIDGES[2:].tolist())


def test_a_ridge_of_zero_can_be_given():
    x = np.arange(30.0)
    data = np.sin(x / 9)[:, None]
    taken = choose_level(x, data, family="gaussian", sigma=30.0, ridge=0.0).taken
    assert taken.error < 1e-3


@pytest.mark.parametrize("slices", [11, 12])
def test_few_slices_have_no_typical_error(slices):
    found = choose_level(X[:slices], ROUGH[:slices])
    kernels = [candidate for candidate in found.tried if not candidate.kernel.is_spline]
    assert all((candidate.typical is None) == (slices == 11) for candidate in kernels)
