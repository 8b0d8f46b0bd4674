"""Interpolators on problems of any order, and how a grid becomes a problem."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dkrls_cli.bench.rivals.interpolators import INTERPOLATORS, make_problem, move_first

RNG = np.random.default_rng(6)


def test_held_out_dimensions_come_first_and_the_others_in_one() -> None:
    values = RNG.normal(size=(2, 3, 4, 5))
    moved = move_first(values, [3, 1])
    assert moved.shape == (5, 3, 8)
    np.testing.assert_array_equal(moved[4, 2], values[:, 2, :, 4].ravel())
    assert move_first(values.astype(np.float32), [0]).dtype == np.float64


def test_a_problem_has_ascending_nodes_and_its_values_in_their_order() -> None:
    nodes = [np.arange(3.0), np.array([5.0, 1.0, 3.0, 2.0])]
    values = nodes[0][:, None] + 10 * nodes[1]
    problem = make_problem(values, nodes, {1: np.array([2.5])})
    assert problem.nodes[0].tolist() == [1.0, 2.0, 3.0, 5.0]
    assert problem.queries[0].tolist() == [2.5]
    np.testing.assert_array_equal(problem.values, 10 * problem.nodes[0][:, None] + nodes[0])
    assert problem.values.flags.c_contiguous


@pytest.mark.parametrize("name", INTERPOLATORS)
def test_polynomials_up_to_the_degree_are_exact_inside_and_outside(name: str) -> None:
    """And one degree more is not: the degree is the right one."""
    method, x = INTERPOLATORS[name], np.array([0.0, 0.7, 1.1, 2.0, 3.1, 3.9, 5.0, 6.2])
    query = np.array([-0.4, 0.3, 2.6, 6.6])
    errors = [
        np.abs(method.fit([x], (x**degree)[:, None])([query])[:, 0] - query**degree).max()
        for degree in (method.degree, method.degree + 1)
    ]
    assert errors[0] < 1e-8
    assert errors[1] > 1e-2


@pytest.mark.parametrize("name", ["spline3", "spline5", "cubic"])
def test_fewer_samples_than_the_degree_needs_fail(name: str) -> None:
    method = INTERPOLATORS[name]
    x = np.arange(float(method.degree))
    with pytest.raises(ValueError):  # noqa: PT011 (a message of scipy)
        method.fit([x], x[:, None])([x])


def test_xarrays_cubic_is_one_of_these() -> None:
    for count, name in ((2, "cubic"), (1, "spline3")):
        nodes = [np.linspace(0, 3, 9 + i) for i in range(count)]
        values = RNG.normal(size=[axis.size for axis in nodes])
        asked = {place: axis[:-1] + 0.1 for place, axis in enumerate(nodes)}
        problem = make_problem(values, nodes, asked)
        dims = [f"d{i}" for i in range(count)]
        array = xr.DataArray(problem.values, dict(zip(dims, nodes, strict=True)), [*dims, "r"])
        theirs = array.interp(dict(zip(dims, asked.values(), strict=True)), method="cubic")
        np.testing.assert_allclose(theirs, INTERPOLATORS[name].solve(problem), atol=1e-12)
