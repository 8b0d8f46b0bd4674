"""Coordinates on lines and circles, against brute force in exact arithmetic."""

import statistics
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.circle import is_behind, is_even, nearest, outside, repeated, spacing, wrap

WHOLE = st.integers(-1000, 1000)
PERIODS = st.none() | st.integers(1, 90)


def vector(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float64)


def is_same(z: float, nodes: np.ndarray, period: float | None = None) -> bool:
    return bool(nearest(vector(z), nodes, period)[1][0])


def distance(one: int, other: int, period: int | None) -> Fraction:
    """The shortest way between two whole numbers, on a line or around a circle."""
    if period is None:
        return Fraction(abs(one - other))
    return Fraction(min((one - other) % period, (other - one) % period))


# ------------------------------------------------------------------ wrap


@given(z=st.lists(WHOLE, min_size=1, max_size=9), period=st.integers(1, 90))
def test_wrap_gives_the_remainder_of_whole_turns(z: list[int], period: int) -> None:
    assert wrap(vector(*z), float(period)).tolist() == [number % period for number in z]


def test_wrap_leaves_a_line_unchanged() -> None:
    z = vector(-1e9, 0.0, 720.0)
    assert wrap(z, None) is z


# --------------------------------------------------------------- nearest


@given(
    z=st.lists(WHOLE, min_size=1, max_size=9),
    nodes=st.lists(WHOLE, min_size=1, max_size=9),
    period=PERIODS,
)
def test_nearest_is_the_closest_of_all_nodes(
    z: list[int], nodes: list[int], period: int | None
) -> None:
    index, same = nearest(vector(*z), vector(*nodes), period)
    for query, found, equal in zip(z, index, same, strict=True):
        least = min(distance(query, node, period) for node in nodes)
        assert distance(query, nodes[found], period) == least
        assert equal == (least == 0)


def test_nearest_of_equal_nodes_is_a_node_there() -> None:
    index, same = nearest(vector(2, 7), vector(7, 2, 2), None)
    assert index[0] in (1, 2)
    assert index[1] == 0
    assert same.all()


@pytest.mark.parametrize(("z", "expected"), [(359.9, 0), (-0.1, 0), (180.1, 1), (720.0, 0)])
def test_nearest_looks_across_the_seam_of_a_circle(z: float, expected: int) -> None:
    index, _ = nearest(vector(z), vector(0, 180, 90), 360.0)
    assert index[0] == expected


def test_nearest_below_the_first_node_is_the_last_one_across_the_seam() -> None:
    index, same = nearest(vector(1), vector(20, 350, 100), 360.0)
    assert index[0] == 1
    assert not same[0]


def test_a_sum_that_rounds_is_at_its_node() -> None:
    assert 0.1 + 0.2 != 0.3
    assert is_same(0.1 + 0.2, vector(0.0, 0.1, 0.3))


@pytest.mark.parametrize("sign", [-1, 1])
def test_on_a_line_the_tolerance_is_eight_epsilons_of_the_largest_node(sign: int) -> None:
    nodes = sign * vector(0.0, 1.0, 1024.0)
    slack = 8 * 2.0**-52 * 1024
    assert is_same(slack, nodes)
    assert is_same(-slack, nodes)
    assert not is_same(np.nextafter(slack, 1), nodes)
    assert not is_same(-np.nextafter(slack, 1), nodes)


def test_two_nodes_have_a_tolerance_and_one_has_none() -> None:
    assert is_same(0.1 + 0.2, vector(0.1, 0.3))
    assert is_same(0.3, vector(0.3))
    assert not is_same(0.1 + 0.2, vector(0.3))


def test_on_a_line_the_tolerance_is_a_millionth_of_the_smallest_step_at_most() -> None:
    nodes = vector(1024.0, 0.0, 1e-8, -5.0)  # eight epsilons of 1024 are 1.8e-12
    assert is_same(1e-6 * 1e-8, nodes)
    assert not is_same(np.nextafter(1e-6 * 1e-8, 1), nodes)


@pytest.mark.parametrize("nodes", [vector(0), vector(0, 90), vector(0, 1e-3, 180)])
def test_on_a_circle_the_tolerance_is_four_epsilons_of_the_period(nodes: np.ndarray) -> None:
    slack = 4 * 2.0**-52 * 256
    assert is_same(slack, nodes, 256.0)
    assert not is_same(np.nextafter(slack, 1), nodes, 256.0)


@pytest.mark.parametrize("sign", [-1, 1])
def test_on_a_circle_the_tolerance_grows_with_the_coordinate(sign: int) -> None:
    ulp = 2.0**-42  # of 1024
    assert is_same(sign * (1024 + 4 * ulp), vector(0.0, 0.5), 1.0)
    assert not is_same(sign * (1024 + 5 * ulp), vector(0.0, 0.5), 1.0)
    assert is_same(0.0, vector(sign * (1024 + 4 * ulp), 0.5), 1.0)
    assert not is_same(0.0, vector(sign * (1024 + 5 * ulp), 0.5), 1.0)


def test_on_a_circle_the_tolerance_is_a_billionth_of_a_turn_at_most() -> None:
    ulp = 2.0**-30  # of 2 ** 22: 0.93e-9
    assert is_same(2.0**22 + ulp, vector(0.0, 0.5), 1.0)
    assert not is_same(2.0**22 + 2 * ulp, vector(0.0, 0.5), 1.0)


@pytest.mark.parametrize("z", [-1e-20, 360 - 4e-14, 1e-20])
def test_just_below_a_turn_is_the_same_place_as_zero(z: float) -> None:
    index, same = nearest(vector(z), vector(90, 0), 360.0)
    assert index[0] == 1
    assert same[0]


def test_nearest_bears_the_largest_numbers() -> None:
    huge = 1.7e308
    index, same = nearest(vector(huge, -huge, 0), vector(-huge, huge), None)
    assert index[:2].tolist() == [1, 0]
    assert same.tolist() == [True, True, False]
    assert repeated(vector(-huge, huge), None) is None


# -------------------------------------------------------------- repeated


@given(z=st.lists(WHOLE, min_size=1, max_size=12), period=PERIODS)
def test_repeated_is_two_coordinates_of_one_place(z: list[int], period: int | None) -> None:
    found = repeated(vector(*z), period)
    places = {number if period is None else number % period for number in z}
    assert (found is None) == (len(places) == len(z))
    if found is not None:
        first, second = found
        assert first < second
        assert distance(z[first], z[second], period) == 0


@pytest.mark.parametrize(
    "z",
    [(-180.0, 0.0, 180.0), (0.0, 90.0, 360.0), (10.0, 0.0, 720.0 - 1e-13), (1e-14, 5.0, -1e-14)],
)
def test_repeated_looks_across_the_seam_of_a_circle(z: tuple[float, ...]) -> None:
    first, second = repeated(vector(*z), 360.0) or (-1, -1)
    assert abs(distance(round(z[first]), round(z[second]), 360)) == 0
    assert first < second
    assert repeated(vector(*z), None) is None


def test_a_single_coordinate_is_not_repeated() -> None:
    assert repeated(vector(5.0), None) is None
    assert repeated(vector(5.0), 360.0) is None
    assert repeated(vector(0.0), 360.0) is None


def test_on_a_line_only_equal_numbers_are_repeated() -> None:
    assert repeated(vector(3.0, 1.0, 3.0), None) == (0, 2)
    assert repeated(vector(3.0, 1.0, np.nextafter(3, 4)), None) is None


def test_on_a_circle_repeated_has_the_tolerance_of_nearest() -> None:
    slack = 4 * 2.0**-52 * 256
    assert repeated(vector(90.0, 0.0, slack), 256.0) == (1, 2)
    assert repeated(vector(90.0, 0.0, np.nextafter(slack, 1)), 256.0) is None
    assert repeated(vector(90.0, 0.0, 256 - slack), 256.0) == (1, 2)
    assert repeated(vector(90.0, 0.0, 256 - 2 * slack), 256.0) is None
    far = 2.0**22  # a billionth of a turn at most
    assert repeated(vector(0.5, 0.0, far + 2.0**-30), 1.0) == (1, 2)
    assert repeated(vector(0.5, 0.0, far + 2.0**-29), 1.0) is None


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("sign", [-1, 1])
def test_on_a_circle_the_order_of_coordinates_does_not_matter(
    order: tuple[int, ...], sign: int
) -> None:
    ulp = 2.0**-42  # of 1024
    z = vector(sign * 1024.5, sign * (0.5 + 4 * ulp), 0.25)[list(order)]
    assert repeated(z, 1.0) == tuple(sorted([order.index(0), order.index(1)]))
    z = vector(sign * 1024.5, sign * (0.5 + 5 * ulp), 0.25)[list(order)]
    assert repeated(z, 1.0) is None


@pytest.mark.parametrize("z", [(10.0, 370.0), (370.0, 10.0), (0.0, 360.0), (-1e-14, 0.0)])
def test_two_coordinates_may_be_one_place(z: tuple[float, float]) -> None:
    assert repeated(vector(*z), 360.0) == (0, 1)


@given(z=st.lists(WHOLE, min_size=2, max_size=9, unique=True), turns=st.integers(-3, 3))
def test_nearest_finds_what_repeated_would_refuse(z: list[int], turns: int) -> None:
    period = 2001  # all of them are distinct places
    later = z[0] + turns * period
    assert repeated(vector(*z), period) is None
    assert repeated(vector(*z, later), period) == (0, len(z))
    assert is_same(later, vector(*z), period)


# --------------------------------------------------------------- spacing


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=15))
def test_spacing_is_the_median_step_of_distinct_coordinates(z: list[int]) -> None:
    distinct = sorted(set(z))
    steps = [high - low for low, high in pairwise(distinct)]
    assert spacing(vector(*z)) == (statistics.median(steps) if steps else 1.0)


@pytest.mark.parametrize("z", [(7.0,), (7.0, 7.0, 7.0)])
def test_spacing_of_one_place_is_one(z: tuple[float, ...]) -> None:
    assert spacing(vector(*z)) == 1.0


def test_spacing_ignores_repeated_coordinates_and_one_wide_step() -> None:
    assert spacing(vector(0, 0, 0, 0, 2, 4, 6, 100)) == 2.0


# --------------------------------------------------------------- outside

RANGES = {
    "range": (vector(-500, 0, 500), 1e-6),
    "largest": (vector(1000, 900), 1e-6),
    "smallest": (vector(-900, -1000, -950), 1e-6),
    "one node": (vector(1000), 1e-6),
}


@pytest.mark.parametrize(("nodes", "slack"), RANGES.values(), ids=RANGES)
def test_outside_begins_a_billionth_beyond_the_nodes(nodes: np.ndarray, slack: float) -> None:
    low, high = nodes.min() - slack, nodes.max() + slack
    inside = vector(low, nodes.min(), nodes.mean(), nodes.max(), high)
    beyond = vector(np.nextafter(low, -1e9), np.nextafter(high, 1e9), -1e9, 1e9)
    assert not outside(inside, nodes, None).any()
    assert outside(beyond, nodes, None).all()


@given(z=st.lists(WHOLE, min_size=1, max_size=9), nodes=st.lists(WHOLE, min_size=1, max_size=9))
def test_outside_is_below_all_nodes_or_above_all(z: list[int], nodes: list[int]) -> None:
    expected = [number < min(nodes) or number > max(nodes) for number in z]
    assert outside(vector(*z), vector(*nodes), None).tolist() == expected


def test_nothing_is_outside_a_circle() -> None:
    found = outside(vector(-1e6, 5, 1e6), vector(0, 10), 360.0)
    assert found.dtype == bool
    assert found.tolist() == [False] * 3


@pytest.mark.parametrize("first", [-9.0, 1.0])
def test_behind_is_farther_than_the_tolerance_of_nearest(first: float) -> None:
    nodes = np.array([first, 2.0, 3.0])
    slack = 8 * np.finfo(float).eps * max(abs(first), 3.0)
    assert is_behind(3.0 + 1.2 * slack, nodes)
    assert not is_behind(3.0 + 0.9 * slack, nodes)
    assert not is_behind(2.5, nodes)
    assert not nearest(np.array([3.0 + 1.2 * slack]), nodes, None)[1][0]


def test_steps_that_differ_by_rounding_are_even() -> None:
    assert is_even(np.arange(1000) * 0.1)
    assert is_even(1e6 + np.arange(1000) * 0.1)
    assert is_even(np.array([3.0]))
    assert not is_even(np.arange(1000) * 0.1 + 1e-9 * (np.arange(1000) == 500))
