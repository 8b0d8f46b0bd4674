"""Rivals of other libraries: accurate, finite everywhere, and as their own libraries answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.interpolate import NdBSpline, RegularGridInterpolator
from scipy.interpolate import make_interp_spline as splined

from dkrls_cli.bench.rivals import registry
from dkrls_cli.bench.rivals.registry import RIVALS, Rival

RNG = np.random.default_rng(3)
NODES = [np.sort(RNG.choice(np.linspace(0, 3, 18), 15, False)), np.linspace(-40.0, 50.0, 11)]
INSIDE = [np.array([0.9, 1.4, 2.1]), np.array([-11.0, 3.0, 22.0, 31.0])]
OUTSIDE = [np.array([-0.3, 3.4]), np.array([-60.0, 0.0, 58.0])]


def wave(x: Any, y: Any) -> Any:
    return 7.0 + np.sin(2 * x) * np.cos(y / 30)


def mesh(axes: Any) -> list[np.ndarray]:
    return [part.ravel() for part in np.meshgrid(*axes, indexing="ij")]


def answers_of(rival: Rival, nodes: Any, queries: Any) -> np.ndarray:
    """Answers on the product of the queries, for both kinds of rivals."""
    if rival.missing():
        pytest.skip(rival.missing())
    shape = [query.size for query in queries]
    if rival.scattered:
        parts = mesh(nodes)
        return rival.fit(parts, wave(*parts))(mesh(queries)).reshape(shape)
    return rival.fit(nodes, wave(*np.ix_(*nodes)))(queries)


@pytest.fixture(params=RIVALS)
def rival(request: pytest.FixtureRequest) -> Rival:
    return RIVALS[request.param]


GOOD = {
    "linear": 0.1,
    "xarray": 0.1,
    "rbf": 0.01,
    "cubic": 2e-3,
    "spline3": 2e-3,
    "spline5": 2e-4,
}


@pytest.mark.slow
def test_a_smooth_field_is_answered_well(rival: Rival) -> None:
    """Kernels meet it to a hundredth of a percent, polynomials as their degree lets them."""
    errors = np.abs(answers_of(rival, NODES, INSIDE) - wave(*np.ix_(*INSIDE)))
    assert errors.max() < GOOD.get(rival.name, 1e-3)


@pytest.mark.slow
def test_answers_outside_are_finite(rival: Rival) -> None:
    answers = answers_of(rival, NODES, OUTSIDE)
    assert np.isfinite(answers).all()
    assert answers.shape == (2, 3)


@pytest.mark.slow
def test_the_order_of_coordinates_does_not_matter(rival: Rival) -> None:
    mixed = [RNG.permutation(NODES[0]), NODES[1][::-1]]
    again = answers_of(rival, mixed, INSIDE)
    loose = 1e-2 if rival.library == "sklearn" else 1e-6  # these draw samples by their place
    np.testing.assert_allclose(again, answers_of(rival, NODES, INSIDE), atol=loose)


@pytest.mark.slow
def test_the_same_twice_is_the_same(rival: Rival) -> None:
    first = answers_of(rival, NODES, INSIDE)
    np.testing.assert_array_equal(first, answers_of(rival, NODES, INSIDE))


@pytest.mark.slow
@pytest.mark.parametrize("dims", [1, 3])
def test_any_number_of_dimensions(rival: Rival, dims: int) -> None:
    if rival.missing():
        pytest.skip(rival.missing())
    nodes = [np.linspace(0, 1, 6 + place) for place in range(dims)]
    queries = [np.array([0.3, 0.55, 0.7]) + place / 50 for place in range(dims)]
    known, asked = (mesh(a) if rival.scattered else np.ix_(*a) for a in (nodes, queries))
    values = np.asarray(sum(np.sin(k) for k in known))
    given = (known, asked) if rival.scattered else (nodes, queries)
    answers = rival.fit(given[0], values)(given[1])
    np.testing.assert_allclose(answers, sum(np.sin(a) for a in asked), atol=0.02)


@pytest.mark.parametrize("name", ["linear", "cubic"])
@pytest.mark.parametrize("queries", [INSIDE, OUTSIDE])
def test_regular_grids_are_those_of_scipy(name: str, queries: Any) -> None:
    theirs = RegularGridInterpolator(
        NODES, wave(*np.ix_(*NODES)), name, bounds_error=False, fill_value=None
    )(np.stack(np.meshgrid(*queries, indexing="ij"), axis=-1))
    np.testing.assert_allclose(answers_of(RIVALS[name], NODES, queries), theirs, rtol=1e-12)


@pytest.mark.parametrize("degree", [3, 5])
def test_splines_one_after_another_are_those_of_their_tensor_product(degree: int) -> None:
    first = splined(NODES[0], wave(*np.ix_(*NODES)), k=degree)
    second = splined(NODES[1], first.c, k=degree, axis=1)
    theirs = NdBSpline((first.t, second.t), np.moveaxis(second.c, 0, 1), degree)
    points = np.stack(np.meshgrid(*INSIDE, indexing="ij"), axis=-1)
    ours = answers_of(RIVALS[f"spline{degree}"], NODES, INSIDE)
    np.testing.assert_allclose(ours, theirs(points), rtol=1e-11)


def test_xarray_is_its_own_interp_inside() -> None:
    array = xr.DataArray(wave(*np.ix_(*NODES)), {"x": NODES[0], "y": NODES[1]}, ["x", "y"])
    theirs = array.interp(x=INSIDE[0], y=INSIDE[1]).values
    np.testing.assert_allclose(answers_of(RIVALS["xarray"], NODES, INSIDE), theirs, rtol=1e-12)


def test_linear_methods_extrapolate_alike() -> None:
    linear, ours = (answers_of(RIVALS[name], NODES, OUTSIDE) for name in ("linear", "xarray"))
    np.testing.assert_allclose(ours, linear, rtol=1e-12)


@pytest.mark.slow
def test_methods_with_a_noise_model_smooth_noise() -> None:
    axes = [np.linspace(0, 3, 14), np.linspace(-40.0, 50.0, 14)]
    parts = mesh(axes)
    noisy = wave(*parts) + 0.2 * RNG.standard_normal(parts[0].size)
    for name in ("kernel-ridge", "gp", "gpytorch"):
        rival = RIVALS[name]
        if rival.missing():
            continue
        if rival.scattered:
            answers = rival.fit(parts, noisy)(parts)
        else:
            answers = rival.fit(axes, noisy.reshape(14, 14))(axes).ravel()
        assert np.sqrt(np.mean((answers - wave(*parts)) ** 2)) < 0.09, name


# Registry -------------------------------------------------------------------------------------


def test_the_registry_has_these_rivals() -> None:
    names = ["linear", "cubic", "spline3", "spline5", "xarray", "rbf", "kernel-ridge", "gp"]
    assert [*names, "gpytorch"] == list(RIVALS)
    assert {c.name for c in RIVALS.values() if c.scattered} == {"rbf", "kernel-ridge", "gp"}
    for name, rival in RIVALS.items():
        assert rival.name == name
        assert 0 < len(rival.summary) <= 45


@pytest.mark.parametrize(
    ("name", "package"),
    [("gp", "scikit-learn"), ("kernel-ridge", "scikit-learn"), ("gpytorch",) * 2],
)
def test_a_rival_without_its_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda library: None)
    why = f"{package} is not installed: pip install 'dkrls-cli[bench]'"
    assert RIVALS[name].missing() == why


def test_scipy_and_xarray_are_always_there() -> None:
    assert not any(c.missing() for c in RIVALS.values() if c.library in ("scipy", "xarray"))
