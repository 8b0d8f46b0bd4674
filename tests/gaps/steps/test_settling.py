"""What is still due to change, from the changes of the steps that were done."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.gaps.steps.settling import still_due


@pytest.mark.parametrize(("steps", "counted"), [(3, 3), (30, 3), (31, 4), (40, 4), (200, 20)])
def test_the_last_tenth_of_the_steps_counts_and_three_at_least(steps, counted):
    changes = [2.0**place for place in range(steps)]
    assert still_due(changes) == sum(changes[-counted:])


def test_too_few_steps_tell_nothing():
    assert still_due([]) == math.inf
    assert still_due([0.0, 0.0]) == math.inf
    assert still_due([0.0, 0.0, 0.0]) == 0.0
    assert still_due([0.5], fewest=1) == 0.5
    assert still_due([0.0] * 9, fewest=10) == math.inf


@given(st.floats(0.05, 0.97), st.integers(20, 300))
def test_steps_that_shrink_evenly_are_due_to_add_up_to_about_as_much(pace, steps):
    """Of a geometric series, what is left is less than its last tenth if that has halved."""
    changes = pace ** np.arange(steps)
    left = changes[-1] * pace / (1 - pace)
    if pace ** max(3, math.ceil(steps / 10)) < 0.5:
        assert left <= still_due(list(changes))
