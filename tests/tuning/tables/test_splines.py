"""Splines as candidates: where they are taken, and how their errors go together."""

import numpy as np
import pytest

from dkrls_cli.cascade.splines.cardinal import Cardinal
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.tables.leftout import Slices
from dkrls_cli.tuning.tables.splines import spline_candidates, with_error_kernel

X = np.linspace(0.0, 3.0, 24)


def smooth(x):
    return np.exp(np.outer(x, [0.5, 1.0, 1.5]))


@pytest.mark.parametrize(("count", "folds", "names"), [
    (2, None, []),
    (3, None, ["linear"]),
    (4, None, ["linear", "cubic"]),
    (5, None, ["linear", "cubic"]),
    (6, None, ["linear", "cubic", "quintic"]),
    (7, None, ["linear", "cubic", "quintic"]),
    (8, 4, ["linear", "cubic", "quintic"]),
    (7, 3, ["linear", "cubic"]),
])  # fmt: skip
def test_splines_are_tried_where_enough_samples_are_left(count, folds, names):
    slices = Slices.of(X[:count], smooth(X[:count]), folds, 100)
    assert [candidate.kernel.family for candidate in spline_candidates(slices)] == names


@pytest.fixture
def no_inverse_of_few(monkeypatch):
    """Matrices of fewer than twenty rows of quintic splines pass for singular."""
    build = Cardinal.build

    def limited(degree, nodes):
        if degree == 5 and nodes.size < 20:
            raise np.linalg.LinAlgError
        return build(degree, nodes)

    monkeypatch.setattr(Cardinal, "build", limited)


def test_coordinates_too_uneven_for_a_spline_leave_the_others(no_inverse_of_few):
    slices = Slices.of(X[:19] + 0.01, smooth(X[:19]), None, 100)
    assert [one.kernel.family for one in spline_candidates(slices)] == ["linear", "cubic"]


def test_coordinates_too_uneven_when_thinned_keep_the_usual_errors(no_inverse_of_few):
    slices = Slices.of(X + 0.02, smooth(X), None, 100)
    (quintic,) = spline_candidates(slices, "quintic")
    assert with_error_kernel(slices, quintic) == quintic


@pytest.mark.parametrize(("count", "name"), [(4, "cubic"), (6, "quintic")])
def test_a_polynomial_through_all_samples_is_taken_where_the_data_is_one(count, name):
    x = X[:count]
    data = np.outer(x ** (count - 2), [1.0, 2.0, -1.0]) + np.outer(x, [0.3, -1.0, 2.0])
    assert choose_level(x, data).taken.kernel.family == name
    noise = np.random.default_rng(3).standard_normal((count, 30))
    assert choose_level(x, noise).taken.kernel.family != name


def test_splines_are_not_tried_where_steps_are_too_uneven():
    x = np.array([0.0, 1e-300, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert spline_candidates(Slices.of(x, smooth(x), None, 100)) == []
    assert not choose_level(x, smooth(x)).taken.kernel.is_spline


def test_a_candidate_has_the_error_of_left_out_slices():
    slices = Slices.of(X, smooth(X), None, 100)
    (cubic,) = spline_candidates(slices, "cubic")
    assert cubic.error == pytest.approx(np.sqrt(slices.spline_errors("cubic").mean()))
    assert cubic.ridge == 0.0


def test_errors_of_smooth_data_fall_faster_between_samples_than_those_of_a_walk():
    """The covariance of errors is rough where a spline gains little from twice as many samples."""
    walk = np.cumsum(np.random.default_rng(4).standard_normal((24, 30)), axis=0)
    families = {}
    for name, data in (("smooth", smooth(X)), ("walk", walk)):
        slices = Slices.of(X, data, None, 100)
        found = with_error_kernel(slices, spline_candidates(slices, "cubic")[0])
        families[name] = found.kernel.errors
    assert families == {"smooth": "gaussian", "walk": "matern12"}


def test_few_samples_have_the_usual_covariance_of_errors():
    slices = Slices.of(X[:7], smooth(X[:7]), None, 100)
    (cubic,) = spline_candidates(slices, "cubic")
    assert with_error_kernel(slices, cubic) is cubic
    assert cubic.kernel.errors == "matern52"
    assert cubic.kernel.sigma == pytest.approx(16 * (X[1] - X[0]))


def test_a_level_takes_the_spline_that_is_exact():
    choice = choose_level(X, np.outer(X, [1.0, -2.0]) + 0.5)
    assert choice.taken.kernel.family == "linear"
    assert choice.taken in choice.tried
    assert choice.warnings == []


def test_noise_and_what_is_given_keep_the_kernel():
    noise = np.random.default_rng(0).standard_normal((24, 40))
    assert not choose_level(X, noise).taken.kernel.is_spline
    line = np.outer(X, [1.0, -2.0])
    for given in ({"family": "gaussian"}, {"sigma": 1.0}, {"ridge": 1e-8}, {"joint": True}):
        assert not any(c.kernel.is_spline for c in choose_level(X, line, **given).tried)
    assert not choose_level(X, line, period=4.0).taken.kernel.is_spline


def test_a_spline_that_is_named_is_taken():
    choice = choose_level(X, np.random.default_rng(0).standard_normal((24, 4)), family="quintic")
    assert choice.taken.kernel.family == "quintic"
    assert choice.tried == (choice.taken,)


def test_a_long_level_takes_a_spline_as_well():
    x = np.geomspace(1.0, 2.0, 170)
    choice = choose_level(x, np.column_stack([x, 2 * x - 1]))
    assert choice.taken.kernel.family in ("linear", "cubic", "quintic")
