import numpy as np
import pytest

from dkrls_cli.checking.scales import (
    Limits,
    find_limits,
    growth,
    heavy_limits,
    local_scale,
    nearby_scale,
    robust_spread,
)


@pytest.mark.parametrize(
    ("draw", "most"),
    [
        (lambda rng: rng.normal(size=60_000), 1e-3),
        (lambda rng: rng.standard_t(4, size=60_000), 2e-3),
        (lambda rng: rng.laplace(size=60_000), 2e-3),
        (lambda rng: rng.exponential(size=60_000) - np.log(2), 2e-3),
    ],
)
def test_the_rate_is_kept_whatever_the_tail(draw, most):
    numbers = draw(np.random.default_rng(0))
    numbers = numbers / (1.4826 * np.median(np.abs(numbers)))
    limits = find_limits(numbers, 1e-3)
    share = np.mean(limits.excess(numbers) > 1)
    assert 1e-4 < share < most


@pytest.mark.parametrize("sigma", [1.5, 2.0, 2.5])
def test_a_heavy_tail_is_known_by_its_inner_quantiles(sigma):
    numbers = np.random.default_rng(1).normal(size=20_000)
    found = heavy_limits(np.expm1(sigma * numbers), 1e-3)
    truth = np.expm1(sigma * 3.09)  # of normal numbers, 0.001 exceed 3.09
    assert found.low == 0.0
    assert truth < found.high < 4 * truth
    mixed = np.where(np.arange(20_000) % 10, numbers, 100.0)
    assert heavy_limits(mixed, 1e-3) == Limits(0.0, 0.0)


def test_bad_cells_move_the_limit_little():
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=20_000)
    clean = find_limits(numbers, 1e-3)
    numbers[:100] = 40.0
    assert find_limits(numbers, 1e-3).high < 2 * clean.high
    assert find_limits(numbers, 1e-3).low == pytest.approx(clean.low, rel=0.1)


def test_a_scale_from_few_numbers_is_known_less_well():
    """A share of 0.001 of numbers of a few degrees of freedom exceeds the limit (Student's t)."""
    limits = [find_limits(np.ones(count), 1e-3).high for count in (2, 10, 27, 49)]
    assert limits == pytest.approx([636.619, 9.474, 4.589, 3.916], rel=1e-3)


def test_numbers_without_a_tail_have_the_limits_of_normal_ones():
    assert find_limits(np.zeros(100), 1e-3).high == pytest.approx(3.2905, abs=1e-3)


def test_limits_are_compared_side_by_side():
    limits = Limits(2.0, 4.0)
    assert limits.excess(np.array([-3.0, 3.0])).tolist() == [1.5, 0.75]
    assert limits.capped(3.0) == Limits(2.0, 3.0)
    assert limits.at_least(3.0) == Limits(3.0, 4.0)


def test_a_scale_follows_the_slices():
    rng = np.random.default_rng(2)
    truth = np.outer(np.geomspace(0.2, 5, 30), np.geomspace(1, 4, 40))
    sizes = np.abs(rng.normal(size=truth.shape) * truth)
    sizes[4, 5] = np.nan
    found = local_scale(sizes, np.ones(sizes.shape, bool))
    assert np.abs(np.log(found / truth)).mean() < 0.2
    found = local_scale(np.zeros((5, 5)), np.ones((5, 5), bool))
    assert (found > 0).all()


def test_where_most_residuals_are_0_the_others_tell_the_scale():
    rng = np.random.default_rng(3)
    # rows and columns of zeros beside those of none: scales as far apart would overflow
    sizes = np.abs(rng.normal(size=(40, 12))) * 1e3
    sizes[:14], sizes[:, :7] = 0.0, 0.0
    sizes[rng.random(sizes.shape) < 0.1] = 500.0
    with np.errstate(all="raise"):
        found = local_scale(sizes, np.ones(sizes.shape, bool))
    assert np.mean(sizes == 0) > 0.5
    np.testing.assert_array_equal(found, local_scale(sizes, sizes > 0))
    assert 300 < found.min() <= found.max() < 3000


def test_a_scale_follows_the_neighbourhood():
    rng = np.random.default_rng(3)
    sizes = np.abs(rng.normal(size=(40, 40)))
    sizes[10:20, 10:20] *= 5
    found = nearby_scale(sizes, np.ones(sizes.shape, bool), 2)
    assert found[12:18, 12:18].mean() > 1.8
    assert np.median(found[25:, 25:]) == pytest.approx(1.0, abs=0.15)
    alone = sizes.copy()
    alone[30, 30] = 1e6
    again = nearby_scale(alone, np.ones(sizes.shape, bool), 2)
    assert again[30, 30] == pytest.approx(found[30, 30], rel=0.02)  # the cell itself does not count


def test_errors_grow_as_the_ends_show():
    rng = np.random.default_rng(4)
    left, spread = rng.normal(size=(30, 200)), np.ones((30, 200))
    used = np.ones(left.shape, bool)
    spread[[0, -1]] = 2.0
    left[[0, -1]] *= 4.0
    assert growth(left, spread, used, [0]) == pytest.approx(2.0, abs=0.2)
    left[[0, -1]] *= 1000.0
    assert growth(left, spread, used, [0]) == 3.0
    assert growth(left, spread, used, [1]) == 1.5


def test_a_robust_spread_does_not_mind_a_few_wild_numbers():
    numbers = np.random.default_rng(0).normal(scale=2.0, size=4000)
    numbers[:40] = 1e6
    assert robust_spread(numbers) == pytest.approx(2.0, rel=0.1)
    assert robust_spread(np.array([0.0, 0.0, 0.0, 4.0])) == pytest.approx(np.sqrt(3))
    assert robust_spread(np.array([np.nan])) == 0.0


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("freedom", [2, 3, 30])
def test_the_rate_is_kept_in_heavy_tails(rate, freedom):
    rng = np.random.default_rng(7)
    good = rng.standard_t(freedom, size=30_000)
    limits = find_limits(good, rate)
    assert 0.5 * rate < np.mean(limits.excess(good) > 1.0) < 1.6 * rate
