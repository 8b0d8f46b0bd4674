"""Kernels against scalar formulas, scikit-learn, and what makes a kernel a kernel."""

import dataclasses
import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from dkrls_cli.cascade.kernels import (
    FAMILIES,
    SPLINES,
    Kernel,
    gram,
    kernel_named,
    kernel_text,
    pairs,
    read_kernel,
)
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.circle import nearest, wrap
from dkrls_cli.errors import DkrlsError, InputError, SettingError

SKLEARN = {
    "gaussian": RBF,
    "matern52": lambda sigma: Matern(sigma, nu=2.5),
    "matern32": lambda sigma: Matern(sigma, nu=1.5),
    "matern12": lambda sigma: Matern(sigma, nu=0.5),
}
RNG = np.random.default_rng(3)
A, B = RNG.uniform(-5, 5, 40), RNG.uniform(-5, 5, 30)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 7.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_gram_is_the_one_of_scikit_learn(family: str, sigma: float) -> None:
    expected = SKLEARN[family](sigma)(A[:, None], B[:, None])
    np.testing.assert_allclose(gram(Kernel(family, sigma), A, B), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    ("z", "other", "sigma"), [(0.0, 1.0, 1.0), (2.5, -0.5, 0.7), (4.0, 4.0, 3.0)]
)
def test_gaussian_is_the_formula_of_the_paper(z: float, other: float, sigma: float) -> None:
    expected = math.exp(-((z - other) ** 2) / (2 * sigma**2))
    (found,) = gram(Kernel("gaussian", sigma), np.array([z]), np.array([other])).ravel()
    assert math.isclose(found, expected, rel_tol=1e-14)


@pytest.mark.parametrize("period", [1.0, 10.0, 360.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_distance_on_a_circle_is_the_chord(family: str, period: float) -> None:
    def on_circle(z: np.ndarray) -> np.ndarray:
        return period / (2 * np.pi) * np.exp(2j * np.pi * z / period)

    sigma = period / 5
    chord = np.abs(on_circle(A)[:, None] - on_circle(B))
    expected = SKLEARN[family](sigma)(np.zeros((1, 1)), chord.reshape(-1, 1)).reshape(chord.shape)
    np.testing.assert_allclose(gram(Kernel(family, sigma, period), A, B), expected, rtol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_short_sigma_does_not_see_the_circle(family: str) -> None:
    z = np.linspace(-3e-4, 3e-4, 21)
    line, circle = (gram(Kernel(family, 1e-4, period), z, z) for period in (None, 1.0))
    np.testing.assert_allclose(circle, line, atol=1e-6)


@pytest.mark.parametrize("turns", [-2, -1, 1, 5])
@pytest.mark.parametrize("family", FAMILIES)
def test_whole_turns_change_nothing(family: str, turns: int) -> None:
    kernel = Kernel(family, 1.5, 7.0)
    np.testing.assert_allclose(gram(kernel, A + 7 * turns, B), gram(kernel, A, B), atol=1e-13)


@pytest.mark.parametrize("period", [None, 11.0])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_gram_is_symmetric_semidefinite_with_unit_diagonal(
    family: str, sigma: float, period: float | None
) -> None:
    matrix = gram(Kernel(family, sigma, period), A, A)
    eigenvalues = np.linalg.eigvalsh(matrix)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 1.0)
    assert eigenvalues[0] > -1e-14 * eigenvalues[-1]


@pytest.mark.parametrize("sigma", [5e-324, 1e-300, 1.0, 1e300, 1.7e308])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_finite_distance_or_sigma_is_too_extreme(family: str, sigma: float) -> None:
    z = np.array([0.0, 1e-320, 1e-300, 1.0, 1e8, 1e300, 1.7e308])
    matrix = gram(Kernel(family, sigma), z, -z)
    assert ((matrix >= 0) & (matrix <= 1)).all()


@pytest.mark.parametrize("period", [1e-300, 7e-9, 360.0, 1e300])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_finite_distance_or_period_is_too_extreme(family: str, period: float) -> None:
    z = np.array([0.0, 1e-300, 1.0, 1e300, 1.7e308])
    matrix = gram(Kernel(family, 1.0, period), z, -z)
    assert ((matrix >= 0) & (matrix <= 1)).all()


@pytest.mark.parametrize("period", [None, 3.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_gram_leaves_its_arguments_alone(family: str, period: float | None) -> None:
    a, b = A.copy(), B.copy()
    gram(Kernel(family, 1.0, period), a, b)
    np.testing.assert_array_equal(a, A)
    np.testing.assert_array_equal(b, B)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_constant_and_a_cycle_are_added(family: str) -> None:
    z, other = np.linspace(-3, 9, 40), np.linspace(0, 30, 17)
    plain, circle = Kernel(family, 1.7), Kernel("gaussian", 0.25 * 5.0, 5.0)
    kernel = Kernel(family, 1.7, None, constant=2.0, cycle=5.0, swing=3.0)
    expected = gram(plain, z, other) + 2.0 + 3.0 * gram(circle, z, other)
    np.testing.assert_allclose(gram(kernel, z, other), expected, atol=1e-13)
    assert np.diag(gram(kernel, z, z)) == pytest.approx(np.full(40, kernel.variance))
    assert np.linalg.eigvalsh(gram(kernel, z, z)).min() > -1e-12


def test_wrap_brings_whole_turns_together() -> None:
    z = np.array([-358.5, 1.5, 361.5, 721.5])
    np.testing.assert_array_equal(wrap(z, 360.0), 1.5)
    np.testing.assert_array_equal(wrap(z, None), z)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"family": "square"}, "Unknown kernel 'square'.*gaussian, matern52, matern32, matern12"),
        ({"sigma": 0.0}, "Invalid sigma 0.0"),
        ({"sigma": -1.0}, "Invalid sigma -1.0"),
        ({"sigma": math.nan}, "Invalid sigma nan"),
        ({"sigma": math.inf}, "Invalid sigma inf"),
        ({"period": 0.0}, "Invalid period 0.0"),
        ({"period": -360.0}, "Invalid period -360.0"),
        ({"period": math.nan}, "Invalid period nan"),
        ({"period": math.inf}, "Invalid period inf"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(SettingError, match=message) as caught:
        Kernel(**settings)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, DkrlsError)


def test_a_kernel_is_the_papers_of_unit_length_unless_told_otherwise() -> None:
    assert Kernel() == Kernel("gaussian", 1.0, None, 0.0, None, 1.0)
    assert Kernel().variance == 1.0
    assert Kernel(swing=3.0).variance == 1.0
    assert Kernel(cycle=5.0).variance == 2.0
    assert Kernel(constant=0.5, cycle=5.0, swing=3.0).variance == 4.5


def test_kernel_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Kernel().sigma = 2.0


@pytest.mark.parametrize(
    "nodes", [np.linspace(0, 1.9, 20), np.arange(0, 2, 0.1), 1e6 + np.arange(0, 2, 0.1)]
)
def test_decimals_mean_the_nodes_they_round_to(nodes: np.ndarray) -> None:
    kernel = Kernel()
    typed = np.round(nodes, 1)
    assert nearest(typed, nodes, kernel.period)[1].all()
    assert (nearest(typed, nodes, kernel.period)[0] == np.arange(nodes.size)).all()
    assert not nearest(nodes[:-1] + 1e-6, nodes, kernel.period)[1].any()


@pytest.mark.parametrize("period", [None, 11.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_pairs_are_entries_of_the_gram_matrix(family: str, period: float | None) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-30, 30, (2, 40))
    kernel = Kernel(family, 3.0, period, constant=0.5, cycle=7.0, swing=0.3)
    np.testing.assert_allclose(pairs(kernel, a, b), gram(kernel, a, b).diagonal(), atol=1e-13)


@pytest.mark.parametrize("family", SPLINES)
def test_a_spline_is_the_identity_among_its_samples_and_rows_elsewhere(family: str) -> None:
    nodes = np.sort(RNG.uniform(0, 9, 12))
    kernel = Kernel(family)
    assert np.array_equal(gram(kernel, nodes, nodes), np.eye(12))
    rows = gram(kernel, np.array([2.5, 7.0]), nodes)
    np.testing.assert_allclose(rows @ (3 * nodes - 1), [6.5, 20.0], atol=1e-10)


@pytest.mark.parametrize(("warp", "function"), [("log", np.log), ("sqrt", np.sqrt)])
@pytest.mark.parametrize("family", [*FAMILIES, *SPLINES])
def test_a_warped_kernel_is_that_of_warped_coordinates(family: str, warp: str, function) -> None:
    a, b = RNG.uniform(1, 9, 15), RNG.uniform(0.5, 10, 12)
    kernel = Kernel(family, 0.7, warp=warp)
    expected = gram(Kernel(family, 0.7), function(a), function(b))
    assert np.array_equal(gram(kernel, a, b), expected)
    if family in FAMILIES:
        np.testing.assert_allclose(pairs(kernel, a[:12], b), np.diagonal(expected[:12]), rtol=1e-12)
    assert kernel.unwarped == Kernel(family, 0.7)
    assert Kernel(family).unwarped == Kernel(family)


@pytest.mark.parametrize("bad", [0.0, -2.0, math.nan])
def test_a_coordinate_without_logarithm_or_root_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match=r"The log of coordinate .* cannot be taken, and"):
        gram(Kernel("gaussian", warp="log"), np.array([1.0, bad]), np.array([1.0]))
    with pytest.raises(InputError, match=r"'sqrt-cubic' needs it. Give coordinates above 0"):
        gram(Kernel("cubic", warp="sqrt"), np.array([1.0]), np.array([bad, 1.0]))
    assert gram(Kernel(warp="log"), np.empty(0), np.array([1.0])).shape == (0, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"family": "cubic", "period": 360.0}, "'cubic' cannot go round a circle"),
        ({"family": "linear", "cycle": 12.0}, "nor repeat with a cycle"),
        ({"warp": "log", "period": 360.0}, "'log-gaussian' cannot go round a circle"),
        ({"warp": "sqrt", "cycle": 1.0}, "'sqrt-gaussian' cannot go round a circle"),
        ({"family": "cubic", "constant": 1.0}, "cubic spline has no constant, got 1.0"),
        ({"warp": "exp"}, "Unknown warp 'exp'. Choose from: log, sqrt"),
        ({"errors": "matern12"}, "Invalid covariance 'matern12' of the errors of a gaussian"),
        ({"family": "cubic", "errors": "linear"}, "Invalid covariance 'linear' of the errors"),
        ({"pieces": (Piece("cubic", 1.0, 2.0),)}, "Invalid pieces .* of a gaussian kernel"),
        ({"family": "cubic", "pieces": (Piece("matern12", 1.0, 2.0),)}, "Invalid pieces"),
        ({"family": "cubic", "pieces": (Piece("linear", 2.0, 1.0),)}, "Invalid pieces"),
    ],
)
def test_splines_and_warps_refuse_what_they_cannot_have(settings: dict, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Kernel(**settings)


def test_the_covariance_of_a_spline_is_that_of_its_errors() -> None:
    spline = Kernel("cubic", 2.0, warp="log", errors="matern12")
    assert spline.covariance == Kernel("matern12", 2.0, warp="log")
    assert Kernel("cubic", 2.0).covariance == Kernel("matern52", 2.0)
    plain = Kernel("matern32", 2.0, constant=1.0)
    assert plain.covariance is plain


def test_kernels_have_names_with_their_warp() -> None:
    assert kernel_named("matern32", 2.0, 7.0) == Kernel("matern32", 2.0, 7.0)
    assert kernel_named("log-quintic") == Kernel("quintic", warp="log")
    assert kernel_named("sqrt-gaussian").name == "sqrt-gaussian"
    with pytest.raises(SettingError, match=r"Unknown kernel 'logcubic'.*mean 'log-cubic'"):
        kernel_named("logcubic")


PIECES = Piece("cubic", -1.5, 1e-9), Piece("linear", 3.0, 2e17)


def test_a_spline_with_pieces_has_the_names_of_all_and_the_rows_of_each() -> None:
    spline = Kernel("linear", warp="log", pieces=(Piece("cubic", 1.0, 2.0),))
    assert (spline.name, spline.roughest) == ("log-linear/cubic", "linear")
    assert Kernel("quintic", pieces=(Piece("cubic", 1.0, 2.0),)).roughest == "cubic"
    assert Kernel("matern12").roughest == "matern12"
    nodes = np.geomspace(1.0, 40.0, 12)
    for query, family in ((1.7, "linear"), (30.0, "cubic")):
        rows = gram(Kernel(family, warp="log"), np.array([query]), nodes)
        assert np.array_equal(gram(spline, np.array([query]), nodes), rows)


# Kernels as text


@pytest.mark.parametrize(
    "kernel",
    [
        Kernel("gaussian", 2.5),
        Kernel("matern52", 0.1, 360.0, constant=1.0),
        Kernel("matern12", 3.0, constant=0.25, cycle=365.2425, swing=1 / 3),
        Kernel("gaussian", 1e-9, cycle=24.0, swing=0.0),
        Kernel("matern32", 2.0, warp="log", constant=1.0),
        Kernel("cubic", 4.0, errors="matern12"),
        Kernel("linear", 4.0, warp="sqrt", errors="gaussian"),
        Kernel("linear", 4.0, errors="matern52", pieces=PIECES),
    ],
)
def test_a_kernel_is_read_from_its_text(kernel: Kernel) -> None:
    assert read_kernel(kernel_text(kernel), kernel.sigma, kernel.period) == kernel


@pytest.mark.parametrize(
    "text",
    [
        *("gaussian+", "gaussian+constant", "gaussian+constant:x", "gaussian+constant:-1"),
        *("gaussian+cycle:3", "gaussian+cycle:3:1:2", "gaussian+other:1", "gaussian+constant:inf"),
        *("gaussian+errors:", "gaussian+errors:matern12", "cubic+constant:1", "gaussian+errors"),
        *("gausian+constant:1", "cubic+errors:cubic", "gaussian+constant:nan"),
        *("gaussian+cubic:1:2", "linear+cubic:1", "linear+cubic:2:1", "linear+cubic:1:x"),
    ],
)
def test_a_wrong_text_of_a_kernel_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match=r"kernel|constant|covariance"):
        read_kernel(text, 1.0)
