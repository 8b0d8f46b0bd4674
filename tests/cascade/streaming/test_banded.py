"""Windows of rows: what they leave out is negligible, and none is wider than it must be."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.streaming.banded import Banded


@given(
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-6, 0.2]),
)
def test_what_is_left_out_is_negligible(samples, seed, negligible):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((5, samples)) * 10.0 ** rng.integers(-9, 1, (5, samples))
    rows[rng.random(rows.shape) < 0.3] = 0.0
    found = Banded.build(lambda part: rows[part], 5, None, negligible)
    inside = samples_of(found.windows[0], samples)
    assert 0 < inside.size <= samples
    outside = np.setdiff1d(np.arange(samples), inside)
    lengths = np.sqrt((rows**2).sum(axis=1))
    assert (np.sqrt((rows[:, outside] ** 2).sum(axis=1)) <= negligible * lengths + 1e-300).all()
    np.testing.assert_array_equal(found.groups[0].double, rows[:, inside])


def samples_of(window, samples) -> np.ndarray:
    return np.concatenate([np.arange(samples)[part] for part in window])


def test_a_window_in_two_parts_is_at_most_half_as_wide():
    rows = np.full((1, 9), 1.0)
    rows[0, [4, 5]] = 0.0
    found = Banded.build(lambda part: rows[part], 1, None, 1e-13)
    assert found.windows == ((slice(0, 9),),)


def test_ends_of_the_axis_are_left_out_although_rows_are_smallest_between():
    rows = np.array([[0.0, 0.0, 1.0, 1e-300, 1.0, 0.0, 1e-290]])
    found = Banded.build(lambda part: rows[part], 1, None, 1e-13)
    assert found.windows == ((slice(2, 5),),)
