"""Which slices of a level are left out, and by which rows they are predicted."""

import numpy as np
import pytest

from dkrls_cli.cascade.errorbars.leaving import leave_out
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level


def level_of(size, period=None, most=99):
    """The slices that are left out of one level."""
    z = np.random.default_rng(size).permutation(np.arange(float(size)))
    model = fit_cascade(z, [z], [Level("z", Kernel("matern32", 2.0, period), 0.1)])
    return z, model, leave_out(model, 0, most)


@pytest.mark.parametrize("size", [4, 5, 12])
def test_ends_of_a_line_are_not_left_out(size):
    z, _, left = level_of(size)
    assert z[left.nodes].tolist() == list(range(1, size - 1))


@pytest.mark.parametrize(
    ("size", "period"), [(1, None), (2, None), (3, None), (4, 4.0), (12, 12.0)]
)
def test_a_circle_and_few_slices_have_no_ends(size, period):
    z, _, left = level_of(size, period)
    assert z[left.nodes].tolist() == list(range(size))


@pytest.mark.parametrize(("most", "kept"), [(10, 10), (9, 9), (4, 4), (2, 2)])
def test_slices_left_out_are_spread_evenly(most, kept):
    z, model, left = level_of(12, most=most)
    numbers = z[left.nodes]
    assert numbers.size == kept
    assert (numbers[0], numbers[-1]) == (1, 10)
    assert np.ptp(np.diff(numbers)) <= 1
    rows = left.twice[left.nodes.size :]
    assert (rows[np.arange(kept), left.nodes] == 0).all()
    inverse = np.linalg.inv(gram(model.levels[0].kernel, z, z) + 0.1 * np.eye(12))
    np.testing.assert_allclose(left.variance, 1 / inverse.diagonal()[left.nodes], rtol=1e-10)
    assert (rows != 0).sum() == 11 * kept


@pytest.mark.parametrize(("size", "judged"), [(20, range(1, 18)), (1100, range(1, 1096))])
def test_copies_are_not_left_out_and_copied_slices_of_long_levels_neither(size, judged):
    copies = np.full(size, -1)
    copies[-2:] = [size - 3, size - 4]
    x = np.arange(float(size))
    cascade = fit_cascade(np.sin(x), [x], [Level("x", Kernel("matern12", 2.0), 0.1)])
    left = leave_out(cascade, 0, 2000, copies)
    assert left.nodes.tolist() == list(judged)


def test_a_long_level_solves_for_its_slices_or_for_its_fibres_whichever_are_fewer(monkeypatch):
    x, solved = np.arange(1100.0), []
    cascade = fit_cascade(np.sin(x), [x], [Level("x", Kernel("matern32", 3.0), 0.1)])
    left = leave_out(cascade, 0, 6)
    solve = LongFactor.solve

    def counted(factor, right):
        solved.append(right.shape[1])
        return solve(factor, right)

    monkeypatch.setattr(LongFactor, "solve", counted)
    fibres = np.random.default_rng(5).standard_normal((x.size, 9))
    many, few, one = (left.twice @ fibres[:, :n] for n in (9, 6, 1))
    assert solved == [6, 6, 1]
    np.testing.assert_allclose(many[:, :6], few, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(many[:, :1], one, rtol=1e-11, atol=1e-13)
    inverse = np.linalg.inv(gram(cascade.levels[0].kernel, x, x) + 0.1 * np.eye(x.size))
    own, weights = fibres[left.nodes], inverse[left.nodes]
    expected = own - weights @ fibres * left.variance[:, None]
    np.testing.assert_allclose(many, np.concatenate([own, expected]), rtol=1e-9, atol=1e-12)
