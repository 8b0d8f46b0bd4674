"""The order of steps: no other is cheaper, and the answers are those of all rows at once."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.streaming.dense import Dense, Factored
from dkrls_cli.cascade.streaming.forms import Taken, Whole
from dkrls_cli.cascade.streaming.products import Both
from dkrls_cli.cascade.streaming.steps import cheapest_order, plan_steps


def cost(rows, order, box, sizes) -> float:
    """Return the cost of applying rows in an order, each to the cells that are left."""
    cells, total = [*box], 0.0
    for axis in order:
        each = rows[axis].operations / rows[axis].samples
        total += np.prod(cells) * each * (1.2 if axis == len(rows) - 1 else 1.0)
        cells[axis] = sizes[axis]
    return total


@given(st.lists(st.tuples(*[st.integers(1, 40)] * 2), min_size=1, max_size=4))
def test_no_order_of_axes_is_cheaper(pairs):
    box, sizes = zip(*pairs, strict=True)
    rows = [Whole(np.ones((size, m)), m) for m, size in pairs]  # type: ignore[arg-type]
    found = cost(rows, cheapest_order(rows, box, sizes), box, sizes)
    least = min(cost(rows, order, box, sizes) for order in permutations(range(len(rows))))
    assert found == pytest.approx(least)


def smooth_rows(size: int, samples: int, directions: int, seed: int = 0) -> Factored:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size, directions)) @ rng.standard_normal((directions, samples))
    return Factored.build(rows, 1e-10)


def test_other_axes_are_answered_in_the_directions_of_factored_rows():
    rng = np.random.default_rng(8)
    matrix = rng.standard_normal((30, 40))
    rows = [Taken(np.arange(3), 3), Dense(Both.of(matrix)), smooth_rows(20, 60, 4)]
    parts = tuple(slice(0, own.size) for own in rows)
    steps = plan_steps(rows, (3, 40, 60), parts, range(3))
    assert [(step.axis, step.rows.size) for step in steps if step.axis] == [
        (2, 4),
        (1, 30),
        (2, 20),
    ]
    data = result = rng.standard_normal((3, 40, 60))
    for step in steps:
        result = step.rows.apply(result, step.axis, step.part)
    expected = np.einsum("abc,pb,qc->apq", data, matrix, rows[2].apply(np.eye(60), 0, parts[2]))
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-9)


def test_fewer_answers_than_directions_take_factored_rows_at_once():
    rows = [smooth_rows(20, 21, 18)]
    steps = plan_steps(rows, (21,), (slice(3, 5),), [0])
    assert [step.rows for step in steps] == rows
    data = np.random.default_rng(9).standard_normal((21, 2))
    found = steps[0].rows.apply(data, 0, steps[0].part)
    np.testing.assert_allclose(found, (rows[0].apply(np.eye(21), 0, slice(None)) @ data)[3:5])


def test_axes_that_are_not_asked_have_no_step():
    rows = [smooth_rows(20, 60, 4), smooth_rows(20, 60, 4)]
    parts = (slice(None), slice(2, 5))
    assert {step.axis for step in plan_steps(rows, (60, 60), parts, [1])} == {1}
