"""Splines: those of scipy between the samples, straight beyond them, and without samples."""

import numpy as np
import pytest
from scipy.interpolate import BarycentricInterpolator, make_interp_spline

from dkrls_cli.cascade.splines.cardinal import (
    DEGREES,
    Cardinal,
    fitting_degree,
    is_solvable,
    left_out_rows,
    spline_rows,
)
from dkrls_cli.errors import InputError

AXES = {
    "even": np.linspace(-2.0, 3.0, 14),
    "log": np.geomspace(1e-2, 1e3, 14),
    "random": np.sort(np.random.default_rng(3).uniform(0, 5, 14)),
}


def scipys(name, nodes, query, derivative=0):
    degree = fitting_degree(name, nodes.size)
    return make_interp_spline(nodes, np.eye(nodes.size), k=degree)(query, derivative)


@pytest.mark.parametrize("name", DEGREES)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_rows_between_samples_are_those_of_scipy(name, axis, derivative):
    nodes = AXES[axis]
    query = np.random.default_rng(0).uniform(nodes[0], nodes[-1], 50)
    found, expected = (
        spline_rows(name, nodes, query, derivative),
        scipys(name, nodes, query, derivative),
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max() + 1e-12)


@pytest.mark.parametrize("name", DEGREES)
def test_the_row_of_a_sample_is_its_unit_vector(name):
    nodes = AXES["random"]
    np.testing.assert_allclose(spline_rows(name, nodes, nodes), np.eye(nodes.size), atol=1e-11)


def test_samples_may_stand_in_any_order():
    nodes, order = AXES["log"], np.random.default_rng(1).permutation(14)
    query = np.array([0.5, 7.0, 900.0])
    shuffled = spline_rows("cubic", nodes[order], query)
    assert np.array_equal(shuffled, spline_rows("cubic", nodes, query)[:, order])


@pytest.mark.parametrize("name", DEGREES)
def test_beyond_its_ends_a_spline_goes_on_with_its_slope(name):
    nodes = AXES["even"]
    step, away = nodes[1] - nodes[0], np.array([-7.0, 2.5])
    ends = nodes[[0, -1]] + [-4 * step, 4 * step]
    np.testing.assert_allclose(
        spline_rows(name, nodes, ends), scipys(name, nodes, ends), rtol=1e-9, atol=1e-9
    )
    slopes = spline_rows(name, nodes, ends, 1)
    expected = spline_rows(name, nodes, ends) + away[:, None] * slopes
    np.testing.assert_allclose(spline_rows(name, nodes, ends + away), expected, rtol=1e-9)
    np.testing.assert_allclose(spline_rows(name, nodes, ends + away, 1), slopes, rtol=1e-9)
    assert not spline_rows(name, nodes, ends + away, 2).any()


def test_polynomials_up_to_the_degree_are_exact():
    nodes, query = AXES["random"], np.linspace(*AXES["random"][[0, -1]], 30)
    for name, degree in DEGREES.items():
        np.testing.assert_allclose(
            spline_rows(name, nodes, query) @ nodes**degree, query**degree, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize(
    ("count", "degrees"), [(1, 0), (2, 1), (3, 1), (4, 3), (5, 3), (6, 5), (40, 5)]
)
def test_too_few_samples_lower_the_degree(count, degrees):
    assert fitting_degree("quintic", count) == degrees
    assert fitting_degree("linear", count) == min(1, degrees)
    nodes = np.arange(float(count))
    np.testing.assert_allclose(spline_rows("quintic", nodes, nodes), np.eye(count), atol=1e-12)


def refitted(name, nodes, block):
    """Rows that predict the samples of a block by a spline of scipy through all others."""
    kept = np.delete(np.arange(nodes.size), block)
    rows = np.zeros((block.size, nodes.size))
    degree = fitting_degree(name, kept.size)
    spline = make_interp_spline(nodes[kept], np.eye(kept.size), k=degree)
    x = nodes[kept]
    ends = np.clip(nodes[block], 5 * x[0] - 4 * x[1], 5 * x[-1] - 4 * x[-2])
    straight = (nodes[block] - ends)[:, None] * spline(ends, 1)
    rows[:, kept] = spline(ends) + straight
    return rows


@pytest.mark.parametrize("name", DEGREES)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("blocks", [None, 3, 5])
def test_samples_left_out_are_predicted_as_by_a_spline_through_the_others(name, axis, blocks):
    nodes = AXES[axis]
    parts = np.array_split(np.arange(14), blocks or 14)
    expected = np.concatenate([refitted(name, nodes, block) for block in parts])
    found = left_out_rows(name, nodes, parts if blocks else None)
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-6)


@pytest.mark.parametrize("name", DEGREES)
@pytest.mark.parametrize("count", [3, 4, 6, 7])
def test_short_levels_leave_samples_out_as_well(name, count):
    nodes = AXES["random"][:count]
    expected = np.concatenate([refitted(name, nodes, np.array([j])) for j in range(count)])
    if fitting_degree(name, count) == count - 1:  # then it is a polynomial, with and without one
        for j in range(1, count - 1):
            kept = np.delete(np.arange(count), j)
            expected[j, kept] = BarycentricInterpolator(nodes[kept], np.eye(count - 1))(nodes[j])
    np.testing.assert_allclose(left_out_rows(name, nodes), expected, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-70, 1e70])
def test_left_out_samples_do_not_depend_on_the_unit_of_nodes(unit):
    nodes = np.cumsum(np.random.default_rng(2).uniform(0.5, 2.0, 12))
    for blocks in (None, [np.arange(4, 7)]):
        expected = left_out_rows("quintic", nodes, blocks)
        np.testing.assert_allclose(left_out_rows("quintic", unit * nodes, blocks), expected, 1e-6)


@pytest.mark.parametrize("name", ["linear", "cubic", "quintic"])
def test_a_sample_alone_is_predicted_by_nothing(name):
    assert left_out_rows(name, np.array([3.0])).tolist() == [[0.0]]


def test_rows_without_ends_are_the_same_inside():
    nodes = AXES["even"]
    whole, inner = left_out_rows("cubic", nodes), left_out_rows("cubic", nodes, ends=False)
    assert np.array_equal(whole[1:-1], inner[1:-1])
    assert whole[0, 0] == 0.0


@pytest.mark.parametrize("step", [1e-13, 1e-300, 5e-324])
def test_steps_that_are_too_uneven_are_refused(step):
    nodes = np.array([0.0, step, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert not is_solvable(nodes)
    with pytest.raises(InputError, match="7 coordinates from 0 to 5 are too uneven for a cubic"):
        spline_rows("cubic", nodes, np.array([0.5]))
    assert is_solvable(np.array([0.0, 1e-11, 5.0]))
    assert is_solvable(np.array([3.0]))
    assert not is_solvable(np.array([-1e308, 0.0, 1e308]))


def test_nodes_whose_matrix_is_singular_are_refused(monkeypatch):
    def singular(matrix):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "inv", singular)
    nodes = np.array([-76129.0, 0.0, 1.0, 1.5, 1.75, 977427.0])
    with pytest.raises(InputError, match=r"for a quintic spline: their extent is 4\.2e\+06 times"):
        spline_rows("quintic", nodes, np.array([0.5]))


def test_the_splines_of_the_last_nodes_are_kept():
    nodes = AXES["even"]
    first = Cardinal.build(3, nodes)
    np.testing.assert_array_equal(
        first.rows(nodes[:3] + 0.1), spline_rows("cubic", nodes, nodes[:3] + 0.1)
    )
